"""Full readings as JSON: what a run keeps aside so that the next one does not read the same bytes again."""

from __future__ import annotations

from collections import Counter
from typing import Any

from accel_env.inspect.fatbin import DeviceCode
from accel_env.inspect.sycl import Images
from accel_env.inspect.wheel import Library, Wheel

Json = dict[str, Any]


def library_row(value: Library) -> Json:
    """A library as JSON, empty values left out."""
    row: Json = {
        "name": value.name,
        "size": value.size,
        "crc": value.crc,
        "machine": value.machine,
        "soname": value.soname,
        "needed": list(value.needed),
        "versions": [list(pair) for pair in value.versions],
        "containers": value.cuda.containers,
        "code": dict(sorted(value.cuda.code.items())),
        "ptx": dict(sorted(value.cuda.ptx.items())),
        "gfx": dict(sorted(value.gfx.items())),
        "bundles": value.bundles,
        "sycl": sorted(value.sycl.targets),
        "sycl_devices": sorted(value.sycl.devices),
        "spirv": value.sycl.spirv,
        "wanted": sorted(name.decode("latin-1") for name in value.wanted),
        "defined": sorted(name.decode("latin-1") for name in value.defined),
    }
    return {key: item for key, item in row.items() if item or key in ("name", "size", "crc")}


def library_of(row: Json) -> Library:
    """The library of `library_row`."""
    return Library(
        row["name"],
        row["size"],
        row["crc"],
        row.get("machine", ""),
        row.get("soname", ""),
        tuple(row.get("needed", ())),
        tuple((first, second) for first, second in row.get("versions", ())),
        DeviceCode(row.get("containers", 0), Counter(row.get("code", {})), Counter(row.get("ptx", {}))),
        Counter(row.get("gfx", {})),
        row.get("bundles", 0),
        Images(set(row.get("sycl", ())), set(row.get("sycl_devices", ())), row.get("spirv", False)),
        frozenset(name.encode("latin-1") for name in row.get("wanted", ())),
        frozenset(name.encode("latin-1") for name in row.get("defined", ())),
    )


def wheel_row(value: Wheel) -> Json:
    """A wheel as JSON; its libraries by name, size and CRC-32 alone."""
    kept = {"Name", "Version", "Requires-Python", "Requires-Dist", "Metadata-Version"}
    return {
        "filename": value.filename,
        "size": value.size,
        "metadata": [[key, item] for key, item in value.metadata if key in kept],
        "tags": list(value.tags),
        "members": value.members,
        "kernels": dict(value.kernels),
        "libraries": [[item.name, item.size, item.crc] for item in value.libraries],
    }


def wheel_of(row: Json, libraries: tuple[Library, ...]) -> Wheel:
    """The wheel of `wheel_row` with its libraries."""
    from accel_env.inspect.wheel import make_wheel

    metadata = tuple((key, item) for key, item in row["metadata"])
    kernels = tuple(sorted(row["kernels"].items()))
    return make_wheel(row["filename"], row["size"], metadata, tuple(row["tags"]), row["members"], libraries, kernels)
