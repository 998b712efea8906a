"""How each vendor is found, which code runs on what, and how its driver versions compare. No table of versions lives here."""
from __future__ import annotations

from collections.abc import Mapping

from accel_env.vendors.base import Found, PciDevice, Sighting, Vendor, pci_devices, valid_driver

__all__ = ["Found", "PciDevice", "Sighting", "Vendor", "pci_devices", "valid_driver", "vendors"]


def vendors() -> Mapping[str, Vendor]:
    """Vendor name of the device files -> module, in the order in which devices are listed; `none` is the CPU stack's."""
    from accel_env.vendors.amd import Amd
    from accel_env.vendors.cpu import Cpu
    from accel_env.vendors.habana import Habana
    from accel_env.vendors.intel import Intel
    from accel_env.vendors.nvidia import Nvidia
    from accel_env.vendors.others import HOOKS, Apple, Other

    found: dict[str, Vendor] = {"nvidia": Nvidia(), "amd": Amd(), "habana": Habana(), "intel": Intel()}
    found.update({name: Other(name, refine) for name, refine in HOOKS.items()})
    return {**found, "apple": Apple(), "none": Cpu()}
