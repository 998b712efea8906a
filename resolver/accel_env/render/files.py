"""Everything that `render` hands over, as file name -> content."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from accel_env.errors import UsageError
from accel_env.render.compose import CONSTRAINTS, REQUIREMENTS, RenderOptions, compiled, compose, context_files, image_pins
from accel_env.render.dockerfile import dockerfile
from accel_env.render.source import SOURCES, WHEELS, split_lock

if TYPE_CHECKING:
    from accel_env.model import Lock, Solution

FORMATS = ("devcontainer", "apptainer")


def check_formats(names: Iterable[str]) -> None:
    """UsageError for an output format that there is none of."""
    for name in names:
        if name not in FORMATS:
            raise UsageError("unknown-format", f"there is no output format `{name}`", hint=f"formats: {', '.join(FORMATS)}")


def render(
    solution: Solution, lock: Lock, lock_files: Mapping[str, bytes], plan: bytes, options: RenderOptions | None = None
) -> dict[str, bytes]:
    """The files of the image's folder; the same input gives the same bytes.

    `lock_files`: what `lock.write.lock_files` gives; `plan`: the bytes of plan.json. UsageError for an unknown format or a plan
    without an image, ClosureError (5) for a base without a digest.
    """
    import hashlib

    options = options or RenderOptions()
    check_formats(options.formats)
    digests = [f"sha256:{hashlib.sha256(content).hexdigest()}" for content in (plan, lock_files[REQUIREMENTS])]
    recipe = compose(solution, lock, digests[0], digests[1], options)
    files = {"Dockerfile": dockerfile(recipe).encode(), **lock_files, "plan.json": plan}
    pins = image_pins(solution)
    if pins:
        files[CONSTRAINTS] = "".join(f"{name}=={version}\n" for name, version in pins).encode()
    if sources := compiled(lock):
        parts = split_lock(lock_files[REQUIREMENTS].decode(), sources)
        files |= {name: text.encode() for name, text in zip((WHEELS, SOURCES), parts, strict=True)}
    files |= options.programs
    context = context_files(solution, lock, options)
    files[".dockerignore"] = "".join(f"{line}\n" for line in ("*", *(f"!{name}" for name in context))).encode()
    from accel_env.render.sbom import PATH as BILL
    from accel_env.render.sbom import sbom

    files[BILL] = sbom(solution, lock, digests[0], digests[1], options).encode()
    if "devcontainer" in options.formats:
        from accel_env.render.devcontainer import PATH, devcontainer

        files[PATH] = devcontainer(solution, options).encode()
    if "apptainer" in options.formats:
        from accel_env.render.apptainer import PATH as DEFINITION
        from accel_env.render.apptainer import definition

        files[DEFINITION] = definition(solution, lock, recipe, options).encode()
    return files
