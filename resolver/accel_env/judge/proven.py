"""What error texts prove and nobody has said: the driver's CUDA version, the device, the build of torch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from accel_env.judge.types import Clue, Environment, Installed
from accel_env.model import Host

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix


def with_facts(environment: Environment, clues: tuple[Clue, ...], matrix: Matrix) -> Environment:
    """The environment with what the clues prove and nobody has said: driver, device, build of torch."""
    proved: dict[str, str] = {}
    for clue in clues:
        for key, value in clue.facts.items():
            proved.setdefault(key, value)
    if not environment.cuda_driver and proved.get("cuda_driver"):
        environment = replace(environment, cuda_driver=proved["cuda_driver"])
    arch = proved.get("arch", "")
    if arch and not any(d.arch for d in environment.host.devices):
        environment = replace(environment, host=_with_device(environment.host, arch, matrix))
    return _with_torch(environment, proved)


def _with_device(host: Host, arch: str, matrix: Matrix) -> Host:
    from accel_env.judge.machine import devices_of

    found = devices_of([{"arch": re.sub(r"(sm_\d+)[af]$", r"\1", arch)}], matrix)
    driver = next((d.driver for d in host.devices if d.driver), "")
    named = next((d.name for d in host.devices if d.name), "")
    return replace(
        host, devices=tuple(replace(d, driver=driver, name=named or d.name) for d in found if d.vendor) or host.devices
    )


def _with_torch(environment: Environment, proved: Mapping[str, str]) -> Environment:
    """torch as a message names it: `you have 2.1.2+cpu`, or the label that a library's name was made from."""
    version, _, label = proved.get("torch_has", "").partition("+")
    library = re.fullmatch(r"(cuda|rocm)(\d{2,4})", proved.get("library", ""))
    rows = [row for row in environment.installed if row.name == "torch"]
    if library and library[1] == "cuda" and not label:
        label = "cu" + library[2]
    if not version and not label:
        return environment
    if not rows:
        return replace(
            environment, installed=(*environment.installed, Installed("torch", version, label, origin="the error text"))
        )
    row = rows[0]
    if row.local or row.vendor or (version and row.version and not row.version.startswith(version)):
        return environment
    more = replace(row, version=row.version or version, local=label)
    return replace(environment, installed=tuple(more if item is row else item for item in environment.installed))
