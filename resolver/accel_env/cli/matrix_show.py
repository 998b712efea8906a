"""`matrix show NAME`: what is known about a package, a stack or a device, or what there is of a kind."""
from __future__ import annotations

from accel_env.cli.options import JSON, OVERLAY
from accel_env.cli.table import Argument, Verb, Words
from accel_env.errors import UsageError

SPEC = Argument(
    "spec", "NAME", "A package (torch, torch==X.Y.Z), a stack (cuda, cuda-X.Y), a device (4090) or an architecture, "
    "a bundle (@finetune); or the word profiles, stacks, packages or bundles for a list.", many=False, completes="known",
)
VERB = Verb(
    ("matrix", "show"), "Show what is known about a package, a stack or a device, or list profiles, stacks or packages.",
    (OVERLAY, JSON), SPEC, "accel-env matrix show bitsandbytes",
)


def run(words: Words) -> int:
    """Print what is known; as text a long answer is cut, and this machine's platform comes first."""
    from accel_env import app
    from accel_env.cli.output import print_answer
    from accel_env.cli.show_matrix import shown_lines
    from accel_env.cli.text import program

    spec = words.many("spec")
    if not spec:
        shown = f"{program()} matrix show"
        raise UsageError("nothing-named", "`matrix show` needs a package, a stack or a device",
                         hint=f"try `{shown} torch`, or a list: `{shown} profiles`, `{shown} stacks`, `{shown} packages`")
    answer = app.matrix_show(spec[0], words.many("overlay"))
    print_answer(answer, words.flag("json"), lambda found, columns: shown_lines(found, columns, _platform()))
    return 0


def _platform() -> str:
    """This machine as the matrix names platforms."""
    from accel_env.probe import CPUS
    from accel_env.system.real import RealSystem

    machine = RealSystem().machine()
    return f"{machine.os}_{CPUS.get(machine.cpu.lower(), machine.cpu.lower())}"
