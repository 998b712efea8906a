"""Importing packages in child processes, for what no file tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accel_env.system.types import System

IMPORT_SECONDS = 60.0
_TAIL = 40  # lines of what a failed import printed

# Asking torch for its devices makes it say what is wrong with the driver.
_PROBES = {"torch": "import torch; torch.cuda.is_available()"}


def failures(program: str, packages: Sequence[str], modules: Mapping[str, str], system: System) -> tuple[str, ...]:
    """What the imports that fail print, torch's first; without torch nothing else is tried."""
    texts: list[str] = []
    for name in sorted(dict.fromkeys(packages), key=lambda name: name != "torch"):
        module = modules.get(name, name).replace("-", "_")
        code = _PROBES.get(name, f"import {module}")
        done = system.run((program, "-c", code), IMPORT_SECONDS)
        said = "\n".join(done.stderr.strip().splitlines()[-_TAIL:])
        if done.status == 0:
            texts += [said] if "Warning: " in said and name in _PROBES else []
            continue
        texts.append(said or f"`{code}`: {done.problem}")
        if name == "torch":
            break
    return tuple(texts)
