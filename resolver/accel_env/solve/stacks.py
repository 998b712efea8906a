"""Which stack binds, and how its torch comes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from accel_env.model import Candidate, Device, Host, Policy, Subject
from accel_env.solve.versions import split_stack

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix
    from accel_env.matrix.types import Stack

OWN = "own"  # what a vendor's own build of torch provides: its ABI is nobody else's


def comes_in_images(matrix: Matrix, host: Host, stack: str) -> bool:
    """True where a stack's torch comes in the vendor's images and not as wheels."""
    return any(c.index == "image" and split_stack(c.stack)[0] == stack for c in matrix.candidates("torch", host.platform))


def active_stack(matrix: Matrix, devices: Sequence[Device], policy: Policy) -> str:
    """The stack name that binds: the one asked for, else the vendor's of the chosen devices, else `cpu`."""
    if policy.stack:
        return split_stack(policy.stack)[0]
    if not devices:
        return "cpu"
    for name, stack in matrix.stacks().items():
        if stack.vendor == devices[0].vendor:
            return name
    return devices[0].vendor


def beneath(stack: Stack | None, asked: Collection[str]) -> str:
    """The stack whose builds of torch serve this one's devices under a plugin that is among the asks; empty where none does."""
    over = stack.over if stack else None
    return over.stack if over and not set(over.beneath).isdisjoint(asked) else ""


def leads(candidate: Candidate) -> bool:
    """True for a build that says by itself which release of the stack is in use: torch, or a framework that needs no torch."""
    if candidate.module == "torch":
        return True
    own = bool(split_stack(candidate.stack)[1])
    return own and not any(need.subject is Subject.TORCH and need.when == "always" for need in candidate.needs)
