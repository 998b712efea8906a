"""Which stack binds, and how its torch comes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from accel_env.model import Device, Host, Policy
from accel_env.solve.versions import split_stack

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix


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
