"""No accelerator: nothing to find, everything runs."""
from __future__ import annotations

from accel_env.model import Need
from accel_env.system.types import System
from accel_env.vendors.base import Found, PciDevice, Stack, Table


class Cpu:
    """See accel_env.vendors.base.Vendor."""

    def probe(self, system: System, table: Table, bus: tuple[PciDevice, ...] | None = None) -> Found:
        """Nothing: a CPU is no device of its own."""
        return Found()

    def runs(self, need: Need, arch: str, stack: Stack, release: str) -> str:
        """`native`: builds for the CPU have no architecture."""
        return "native"

    def normalise_driver(self, text: str, stack: Stack) -> str:
        """Empty: there is no driver."""
        return ""
