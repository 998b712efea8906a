"""Host files and profiles: a machine as JSON, written on one and read on another."""
from __future__ import annotations

import os
import re
from collections.abc import Mapping

from accel_env.errors import InputError, UsageError
from accel_env.model import Device, Host
from accel_env.system.files import read_file, write_file
from accel_env.vendors import valid_driver
from accel_env.vendors.base import arch_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from accel_env.matrix.load import Matrix
    from accel_env.matrix.types import DeviceRow

SCHEMA = "accel-env/host/1"
_HINT = "`accel-env detect -o FILE` writes a host file"
_TEXTS = ("os", "kernel", "arch", "python", "libstdcxx", "engine", "container")
_KEYS = frozenset({*_TEXTS, "schema", "libc", "glibc", "pythons", "devices", "wsl", "notes", "provenance"})
_DEVICE_TEXTS = ("vendor", "name", "arch", "driver", "pci_id", "kind")
_DEVICE_KEYS = frozenset({*_DEVICE_TEXTS, "memory_mib", "integrated", "count"})


def read(source: str, matrix: Matrix) -> Host:
    """The Host of a host file, of a recorded machine (a folder) or of a named profile of the matrix.

    Raises InputError where the file cannot be read or breaks the format (it names file and key), UsageError where
    `source` is neither a file nor a profile (it names the nearest profiles).
    """
    profile = matrix.profiles().get(source)
    if profile is not None and not os.path.isfile(source):
        return from_mapping(profile.host, f"profile {source}", matrix)
    if not os.path.exists(source) and not re.search(r"[/\\]|\.(json|ya?ml)$", source):
        import difflib

        near = difflib.get_close_matches(source, list(matrix.profiles()), 5, 0.4)
        raise UsageError("unknown-host", f"{source} is neither a host file nor a profile of the matrix",
                         hint=f"the nearest profiles are {', '.join(near)}" if near else
                              f"`accel-env matrix show profiles` lists the profiles; {_HINT}")
    if os.path.isdir(source):
        return _recorded(source, matrix)
    import json

    text = read_file(source)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("host-file-broken", f"{source} is no JSON: {error}", hint=_HINT) from error
    if not isinstance(value, dict):
        raise InputError("host-file-broken", f"{source} must hold a JSON object", hint=_HINT)
    return from_mapping(value, source, matrix)


def _recorded(folder: str, matrix: Matrix) -> Host:
    """The host of a folder that `detect --record` wrote."""
    from accel_env.probe import probe
    from accel_env.system.replay import ReplayedSystem

    if not os.path.isfile(os.path.join(folder, "env.json")):
        raise InputError("host-file-broken", f"{folder} is a folder and holds no recorded machine",
                         hint="name the host file in it, or a folder that `accel-env detect --record DIR` wrote")
    return probe(ReplayedSystem(folder), matrix, full=False)


def write(host: Host, path: str | Path) -> None:
    """Write a host file, whole or not at all. Raises UsageError where that fails."""
    import json

    write_file(path, json.dumps(to_mapping(host), indent=2) + "\n")


def to_mapping(host: Host) -> dict[str, Any]:
    """The host in the format of a host file; what is unknown is left out."""
    libc = {"family": host.libc_family, "version": host.libc} if host.libc_family or host.libc else None
    pairs: dict[str, Any] = {
        "schema": SCHEMA, "os": host.os, "kernel": host.kernel, "libc": libc, "libstdcxx": host.libstdcxx, "arch": host.arch,
        "python": host.python, "pythons": list(host.pythons), "engine": host.engine, "container": host.container, "wsl": host.wsl,
    }
    kept = {key: value for key, value in pairs.items() if value}
    kept["devices"] = [_device_mapping(device) for device in host.devices]
    kept.update({key: value for key, value in (("notes", list(host.notes)), ("provenance", dict(host.provenance))) if value})
    return kept


def _device_mapping(device: Device) -> dict[str, Any]:
    """A device; `arch` stays even when it is empty: that says it is not known, and the reader does not guess."""
    pairs = {"vendor": device.vendor, "name": device.name, "arch": device.arch, "memory_mib": device.memory_mib,
             "driver": device.driver, "pci_id": device.pci_id, "integrated": device.integrated, "kind": device.kind}
    return {key: value for key, value in pairs.items() if value or key == "arch"}


def from_mapping(value: Mapping[str, Any], origin: str, matrix: Matrix) -> Host:
    """The Host of a mapping in host-file format. Raises InputError that names `origin` and the key."""
    _known(value, _KEYS, origin, "")
    if value.get("schema", SCHEMA) != SCHEMA:
        raise _wrong(origin, "schema", f"must be {SCHEMA}")
    texts = {key: _text(value, key, origin) for key in _TEXTS}
    family, version = _libc(value, origin)
    wsl = value.get("wsl", False)
    if not isinstance(wsl, bool):
        raise _wrong(origin, "wsl", "must be true or false")
    rows = value.get("devices", ())
    if not isinstance(rows, (list, tuple)):
        raise _wrong(origin, "devices", "must be a list")
    provenance = value.get("provenance") or {}
    if not isinstance(provenance, Mapping) or not all(isinstance(text, str) for text in provenance.values()):
        raise _wrong(origin, "provenance", "must map names to text")
    devices = tuple(device for n, row in enumerate(rows) for device in _devices(row, origin, f"devices[{n}]", matrix))
    return Host(
        os=texts["os"] or "linux", arch=texts["arch"] or "x86_64", kernel=texts["kernel"], libc_family=family, libc=version,
        libstdcxx=texts["libstdcxx"], python=_python(texts["python"], origin), pythons=_texts(value, "pythons", origin),
        devices=devices, engine=texts["engine"], container=texts["container"], wsl=wsl, notes=_texts(value, "notes", origin),
        provenance=dict(provenance) or {"host": origin},
    )


def _devices(row: Any, origin: str, path: str, matrix: Matrix) -> tuple[Device, ...]:
    """The devices of one entry; what it leaves out comes from the device table, by PCI id and then by name."""
    if not isinstance(row, Mapping):
        raise _wrong(origin, path, "must be an object")
    _known(row, _DEVICE_KEYS, origin, f"{path}.")
    given = {key: _text(row, key, origin, f"{path}.") for key in _DEVICE_TEXTS}
    if not given["name"] and not given["arch"] and not given["pci_id"]:
        raise _wrong(origin, path, "needs a name, an arch or a pci_id")
    if given["driver"] and not valid_driver(given["driver"]):
        raise _wrong(origin, f"{path}.driver", f"{given['driver']!r} is no driver version")
    count = _whole(row, "count", origin, path)
    memory = _whole(row, "memory_mib", origin, path)
    integrated = row.get("integrated")
    if integrated is not None and not isinstance(integrated, bool):
        raise _wrong(origin, f"{path}.integrated", "must be true or false")
    found = _look_up(given, f"{origin}: {path}", "arch" in row, matrix)
    # The name decides only what the file leaves open: a file that says `arch` is believed.
    same = found if found is not None and given["arch"] in ("", found.arch) else None
    return (Device(
        given["vendor"].lower() or (found.vendor if found else ""), given["name"] or (found.name if found else given["arch"]),
        given["arch"] if "arch" in row else arch_of(found) if found else "", given["driver"],
        memory if memory is not None else same.memory_mib if same else None, given["pci_id"].lower(),
        integrated if integrated is not None else bool(same and same.integrated), given["kind"] or (same.kind if same else ""),
    ),) * (1 if count is None else count)


def _look_up(given: Mapping[str, str], where: str, says_arch: bool, matrix: Matrix) -> DeviceRow | None:
    """The row of the device table. None is fine for an entry that says vendor and arch itself, else InputError."""
    table, vendor = matrix.devices(), given["vendor"].lower()
    buses = [ident for name, ident in table.vendors().items() if vendor in ("", name)]
    rows = [row for row in (table.by_pci(ident, given["pci_id"]) for ident in buses if given["pci_id"] and ident) if row]
    found = rows[0] if len(rows) == 1 else table.by_name(vendor or None, given["name"]) if given["name"] else None
    if found and not rows and not says_arch and table.unheard(given["name"], found):
        found = None  # a name that is understood in part may mean another product, or two
    if found is None and not (vendor and says_arch):
        text = given["name"] or given["pci_id"] or given["arch"]
        near = table.nearest(text)
        raise InputError("unknown-device", f"{where}: {text} is no single device that the matrix knows",
                         hint="write its vendor and arch" + (f", or a known name: {', '.join(near)}" if near else ""))
    return found


def _whole(row: Mapping[str, Any], key: str, origin: str, path: str) -> int | None:
    """A whole number from 1, None when it is not said."""
    value = row.get(key)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise _wrong(origin, f"{path}.{key}", "must be a whole number from 1")
    return value


def _libc(value: Mapping[str, Any], origin: str) -> tuple[str, str]:
    """(family, version) of `libc: {family, version}`, or of the short form `glibc: "2.31"`."""
    short, libc = value.get("glibc"), value.get("libc")
    if short is not None and libc is not None:
        raise _wrong(origin, "glibc", "says the same as libc: keep one of them")
    if short is not None:
        libc = {"family": "glibc", "version": short}
    if libc is None:
        return "", ""
    if not isinstance(libc, Mapping):
        raise _wrong(origin, "libc", "must be an object with family and version")
    _known(libc, frozenset({"family", "version"}), origin, "libc.")
    version = _text(libc, "version", origin, "libc.")
    if version and not re.fullmatch(r"\d+(\.\d+)+", version):
        raise _wrong(origin, "libc.version", f"{version!r} is no version")
    return _text(libc, "family", origin, "libc.") or "glibc", version


def _python(text: str, origin: str) -> str:
    """`3.12` or `3.14t`; a patch number is dropped."""
    found = re.fullmatch(r"(3\.\d+)(?:\.\d+\S*?)?(t?)", text)
    if text and not found:
        raise _wrong(origin, "python", f"{text!r} is no Python version")
    return f"{found[1]}{found[2]}" if found else ""


def _known(value: Mapping[str, Any], keys: frozenset[str], origin: str, path: str) -> None:
    for key in value:
        if key not in keys:
            import difflib

            near = difflib.get_close_matches(str(key), sorted(keys), 1)
            raise InputError("host-file-broken", f"{origin}: {path}{key} is no key of a host file",
                             hint=f"did you mean {near[0]}?" if near else f"the keys are {', '.join(sorted(keys))}")


def _text(value: Mapping[str, Any], key: str, origin: str, path: str = "") -> str:
    text = value.get(key)
    if text is None:
        return ""
    if not isinstance(text, str):
        raise _wrong(origin, f"{path}{key}", "must be text in quotes")
    return text.strip()


def _texts(value: Mapping[str, Any], key: str, origin: str) -> tuple[str, ...]:
    texts = value.get(key) or ()
    if not isinstance(texts, (list, tuple)) or not all(isinstance(text, str) for text in texts):
        raise _wrong(origin, key, "must be a list of texts")
    return tuple(texts)


def _wrong(origin: str, path: str, why: str) -> InputError:
    return InputError("host-file-broken", f"{origin}: {path} {why}", hint=_HINT)
