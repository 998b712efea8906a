"""What is known of the driver: a number, a branch, a range, or the CUDA version that it offers, as bounds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accel_env.judge.types import Environment
from accel_env.solve.versions import allows, parse

if TYPE_CHECKING:
    from accel_env.judge.book import Book
    from accel_env.matrix.load import Matrix
    from accel_env.matrix.types import Stack
    from accel_env.model import Device, Host


@dataclass(frozen=True, slots=True)
class Driver:
    """What is known of the driver: at least `low`, below `high`; both empty for nothing. `text` is how it was said."""

    low: str = ""
    high: str = ""
    text: str = ""

    def fails(self, spec: str) -> bool:
        """True when no driver within the bounds meets `>=floor`, or the known one misses any other specifier."""
        floor = spec[2:] if spec.startswith(">=") else ""
        if floor and "," not in floor:
            if self.high:
                return parse(self.high) <= parse(floor)
            return bool(self.low) and not allows(spec, self.low)
        return bool(self.low) and not self.high and not allows(spec, self.low)


def vendor_by_words(environment: Environment, book: Book) -> str:
    """The vendor where no device is named: by the driver's CUDA version, its number, the software that is there."""
    if environment.cuda_driver:
        return "nvidia"
    driver = environment.extra.get("driver", "")
    base = environment.container.base if environment.container else ""
    names = " ".join(row.name for row in environment.installed)
    for vendor, pattern in book.vendor_signs.items():
        if re.search(pattern, f"{driver} {base} {names}", re.IGNORECASE):
            return vendor
    return ""


def stacks_by_words(environment: Environment, book: Book) -> set[str]:
    """The stacks that the texts speak of; empty for none."""
    words = "\n".join(environment.texts)
    return {stack for stack, pattern in book.text_stacks.items() if words and re.search(pattern, words, re.IGNORECASE)}


def driver_said(
    environment: Environment, devices: tuple[Device, ...], stack: Stack | None, host: Host, matrix: Matrix, book: Book
) -> Driver:
    """The bounds of the driver, from its number or from the CUDA version that it offers."""
    extra = environment.extra
    said = next((d.driver for d in devices if d.driver), "") or _number(extra.get("driver", ""), extra.get("driver_spec", ""))
    spec = extra.get("driver_spec", "")
    vendor = stack.vendor if stack else ""
    if said and stack is not None:
        return _bounded(_normal(said, stack), said, vendor)
    if spec:
        version = spec.lstrip("<>=")
        return Driver(version if spec.startswith(">") else "", version if spec.startswith("<") else "", spec)
    offered = environment.cuda_driver
    return by_cuda(offered, host, matrix, book) if offered and vendor in ("", "nvidia") else Driver()


def _number(text: str, spec: str) -> str:
    found = re.search(r"(?<![\w.])(\d+(?:\.\d+)+(?:-\d+)?|[3-9]\d\d)(?![\w])", text)
    return found[1] if found and not spec and ";" not in text else ""


def _normal(text: str, stack: Stack) -> str:
    from accel_env.vendors import vendors

    vendor = vendors().get(stack.vendor)
    return vendor.normalise_driver(text, stack) if vendor else text


def by_cuda(offered: str, host: Host, matrix: Matrix, book: Book) -> Driver:
    """Bounds of a driver that offers a CUDA version: its own release's driver, and that of the next version."""
    floors = {}
    system = "windows" if host.wsl else host.os
    for toolkit in book.toolkits:
        floors[toolkit.version] = toolkit.drivers.get(system, "")
    stack = matrix.stacks().get("cuda")
    for release in stack.releases if stack else ():
        floor = release.driver_floors.get(system)
        floors[release.version] = floor.full or floor.minor if floor else ""
    series = offered.removesuffix(".x")
    known = sorted((v for v, floor in floors.items() if floor), key=parse)
    text = f"one that offers CUDA {offered}"
    mine = [v for v in known if v == series or ("." not in series and v.startswith(f"{series}."))]
    if not mine:
        later = [v for v in known if parse(v) > parse(series)]
        return Driver("", floors[later[0]] if later else "", text)
    after = [v for v in known if parse(v) > parse(mine[-1]) and parse(floors[v]) > parse(floors[mine[-1]])]
    return Driver(floors[mine[0]], floors[after[0]] if after else "", text)


def _bounded(normal: str, said: str, vendor: str) -> Driver:
    """A branch alone (`535`) is any release of it."""
    if vendor in ("", "nvidia") and normal.isdigit():
        return Driver(normal, str(int(normal) + 1), f"branch {said}")
    return Driver(normal, "", said)
