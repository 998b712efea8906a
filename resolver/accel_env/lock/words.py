"""The words that ask for a lock again: of the plan, never of the command line, which may hold paths of one machine."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING

from accel_env.lock.question import requirement

if TYPE_CHECKING:
    from accel_env.model import Solution

# Asks that nobody typed: what closing over an earlier answer added.
NEEDED, TAKEN = "needed by the closure", "taken by the closure"


def words_of(solution: Solution) -> str:
    """`lock torch --device ... --stack ...`; empty where no words describe the machine (another system than Linux)."""
    problem, host = solution.problem, solution.problem.host
    if host.os != "linux":
        return ""
    devices = Counter(device.name or device.arch for device in problem.devices)
    drivers = {device.driver for device in problem.devices}
    options = [
        *(("--device", name if count == 1 else f"{name}:{count}") for name, count in devices.items()),
        *([] if devices or solution.stack != "cpu" else [("--device", "cpu")]),
        ("--driver", drivers.pop() if len(drivers) == 1 else ""),
        ("--arch", host.arch),
        ("--stack", solution.stack),
        ("--python", solution.python),
        ("--target", problem.policy.target),
        ("--glibc", host.libc if problem.policy.target == "venv" else ""),
        ("--base", problem.policy.base),
        ("--prefer", "" if problem.policy.prefer == "default" else problem.policy.prefer),
    ]
    # of a bundle its members: what was left out of it here stays out, whatever the words about the machine leave away
    asks = list(dict.fromkeys(requirement(ask) for ask in problem.asks if ask.origin not in (NEEDED, TAKEN)))
    return shlex.join(["lock", *asks, *(word for option, value in options if value for word in (option, value))])
