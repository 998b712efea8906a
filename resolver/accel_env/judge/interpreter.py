"""What is installed for an interpreter, read from its files: nothing of it is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accel_env.judge.types import Environment

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix
    from accel_env.system.types import System


def read_interpreter(python: str, system: System, matrix: Matrix, *, imports: bool = False) -> Environment:
    """The packages of an interpreter (empty: this one), without the machine's devices.

    `imports` also imports the modelled packages, each in a child process with a time limit; what fails goes to `texts`.
    UsageError where `python` is no interpreter.
    """
    return Environment()
