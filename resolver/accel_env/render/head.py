"""What a recipe says about itself: the comment at its top and its labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accel_env.render.recipe import From, Label

if TYPE_CHECKING:
    from accel_env.model import Lock, Solution
    from accel_env.render.compose import RenderOptions

EPOCH = "SOURCE_DATE_EPOCH"


def labels(solution: Solution, lock: Lock, base: From, digests: tuple[str, str], moment: int, options: RenderOptions) -> Label:
    """The labels, by key. `digests`: of the plan and of the lock."""
    import datetime

    title = ", ".join(pick.candidate.label for pick in solution.picks)
    created = datetime.datetime.fromtimestamp(moment, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    values = {
        "org.opencontainers.image.title": title,
        "org.opencontainers.image.created": created,
        "org.opencontainers.image.base.name": base.ref,
        "org.opencontainers.image.base.digest": base.digest,
        "accel-env.stack": solution.stack,
        "accel-env.matrix.version": lock.tools.get("matrix", ""),
        "accel-env.matrix.digest": lock.tools.get("matrix_digest", ""),
        "accel-env.plan.digest": digests[0],
        "accel-env.lock.digest": digests[1],
    }
    told = {key: value for key, value in values.items() if value} | dict(options.labels)
    return Label(tuple(sorted(told.items())))


def _made_by(lock: Lock, options: RenderOptions) -> str:
    """The words that write this file again; empty where nobody knows them."""
    program, _, words = lock.tools.get("made_by", "").partition(" lock ")
    if not words:
        return ""
    base = f"{options.base.ref}@{options.base.digest}".rstrip("@") if options.base else ""
    flags = (("--compiler", options.compiler), ("--devel", options.devel), ("--allow-unpinned", options.allow_unpinned))
    more = [*(["--base", base] if base else []), *(flag for flag, on in flags if on)]
    return " ".join(["Made by:", program, "render", words, *more])


def header(solution: Solution, lock: Lock, digest: str, moment: int, options: RenderOptions) -> tuple[str, ...]:
    """The lines of the comment. `digest`: of the base; `moment`: the time of everything in the image."""
    lines = [
        "Written by accel-env; do not edit.",
        f"Stack {solution.stack}, Python {solution.python}, {solution.problem.host.platform}.",
    ]
    if made_by := _made_by(lock, options):
        lines.append(made_by)
    lines.append(f"Build: {EPOCH}={moment} docker buildx build --provenance=false .")
    lines.append("Secrets of a site, both optional: --secret id=ca,src=CA-BUNDLE --secret id=pip,src=PIP.CONF")
    if solution.run_args:
        lines.append(f"Run: docker run {' '.join(solution.run_args)} IMAGE")
    if any(p.candidate.module == "torch" and p.candidate.index != "image" for p in solution.picks) and not options.compiler:
        lines.append("No C compiler is inside: torch.compile and Triton need one when they run (render --compiler).")
    if options.packages:
        lines.append("A site's own package sources instead of the base's snapshot: --secret id=apt,src=SOURCES")
    if not digest:
        lines.append("The base is not pinned: this file may build another image tomorrow.")
    return (*lines, *(f"Note: {note}" for note in lock.notes))
