"""An Apptainer (Singularity) definition of the same environment: the same base, the same locked files, one stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accel_env.errors import UsageError
from accel_env.render.compose import CONSTRAINTS, PROGRAMS, REQUIREMENTS, RenderOptions, compiled, image_pins, install_commands
from accel_env.render.recipe import Env, From, Recipe, Run
from accel_env.render.system import system_steps

if TYPE_CHECKING:
    from accel_env.model import Lock, Solution

PATH = "apptainer.def"


def definition(solution: Solution, lock: Lock, recipe: Recipe, options: RenderOptions) -> str:
    """The text of the definition file. UsageError for a lock of which something must be compiled."""
    base = recipe.stages[0].base
    system = system_steps(options.packages, keep=False, headers=options.headers) if options.packages else ()
    if compiled(lock):
        raise UsageError("unknown-format", "a definition file of Apptainer cannot compile packages", hint="leave --format out")
    commands = [command for step in system if isinstance(step, Run) for command in step.commands]
    commands += install_commands(solution, lock, options)
    sources = [REQUIREMENTS, *([CONSTRAINTS] if image_pins(solution) else [])]
    programs = [f"    {name} {PROGRAMS}/{name}" for name in sorted(options.programs)]
    env = next(step for step in recipe.stages[-1].steps if isinstance(step, Env))
    sections = [
        [*(f"# {line}" for line in recipe.header[:2]), "Bootstrap: docker", f"From: {_reference(base)}"],
        ["%files", *(f"    {name} /tmp/accel-env/{name}" for name in sources), *programs],
        [
            "%post",
            "    set -eu",
            *(f"    {command}" for command in commands),
            "    rm -rf /tmp/accel-env /root/.cache/pip",
        ],
        ["%environment", *(f"    export {key}={_word(value, env.expand)}" for key, value in env.values if key != "HOME")],
        ["%runscript", f'    exec {" ".join(_word(word) for word in options.command)} "$@"'],
        ["%labels", *(f"    {key} {value}" for key, value in recipe.labels.values)],
    ]
    return "\n\n".join("\n".join(section) for section in sections) + "\n"


def _reference(base: From) -> str:
    """The base as Apptainer takes it: it knows a tag or a digest, not both."""
    if not base.digest:
        return base.ref
    head, slash, tail = base.ref.rpartition("/")
    return f"{head}{slash}{tail.partition(':')[0]}@{base.digest}"


def _word(value: str, expand: tuple[str, ...] = ()) -> str:
    """A shell word; only `${NAME}` of the names in `expand` is expanded."""
    if "\n" in value:
        raise UsageError("unprintable-value", f"a line break cannot stand in a definition file: {value!r}")
    safe = value
    for character in ("\\", '"', "$", "`"):
        safe = safe.replace(character, f"\\{character}")
    for name in expand:
        safe = safe.replace(f"\\${{{name}}}", f"${{{name}}}")
    return f'"{safe}"'
