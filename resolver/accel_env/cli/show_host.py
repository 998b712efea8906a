"""A detected host as text for people, each fact with the probe that gave it."""
from __future__ import annotations

from accel_env.cli.text import Json, items, mapping, pairs, string, table, wrap

FIELDS = (
    ("os", "os"), ("kernel", "kernel"), ("arch", "cpu"), ("libstdcxx", "libstdc++"), ("python", "python"),
    ("container", "container"), ("engine", "engine"),
)


def host_lines(host: Json, columns: int) -> list[str]:
    """The accelerators, the rest of the machine, then notes about probes that failed."""
    devices = items(host, "devices")
    lines = ["accelerators"] if devices else ["no accelerator found: the cpu stack applies"]
    if devices:
        found = [_device(device) for device in devices]
        lines += [f"  {line}" for line in table(("name", "arch", "driver", "memory", "pci id"), found, columns - 2)]
    from_probe = mapping(host, "provenance")
    rows = []
    for key, label in FIELDS:
        rows.append((label, _told(string(host, key), string(from_probe, key))))
    pythons = [str(python) for python in items(host, "pythons")]
    if len(pythons) > 1:
        rows.append(("pythons", _told(", ".join(pythons), string(from_probe, "pythons"))))
    libc = f"{string(host, 'libc', 'family')} {string(host, 'libc', 'version')}".strip()
    rows.insert(3, ("libc", _told(libc, string(from_probe, "libc"))))
    lines += ["", *pairs(rows, columns)]
    lines += [f"wrote {path}" for path in items(host, "written")]
    for note in items(host, "notes"):
        lines += wrap(f"note: {note}", columns, "", "  ")
    return lines


def _told(value: str, probe: str) -> str:
    return f"{value} ({probe})" if value and probe else value


def _device(device: object) -> tuple[str, str, str, str, str]:
    memory = string(device, "memory_mib")
    name = string(device, "name") + (" (integrated)" if string(device, "integrated") == "True" else "")
    return (
        name, string(device, "arch") or "unknown", string(device, "driver") or "unknown",
        f"{memory} MiB" if memory else "", string(device, "pci_id"),
    )
