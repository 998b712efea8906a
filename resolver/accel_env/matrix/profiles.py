"""Named machines of the matrix, in the format of host files."""
from __future__ import annotations

from accel_env.matrix import checks
from accel_env.matrix.read import Row
from accel_env.matrix.types import Profile


def parse_profiles(row: Row) -> dict[str, Profile]:
    """Name -> profile."""
    found: dict[str, Profile] = {}
    for name, item in row.keyed("profiles", required=True).items():
        host = item.maybe("host", required=True)
        found[name] = Profile(name, item.text("summary"), _host(host) if host else {})
        item.close()
    return found


def _host(row: Row) -> dict[str, object]:
    found: dict[str, object] = {}
    if "os" in row:
        found["os"] = row.one_of("os", checks.OSES)
    if "arch" in row:
        found["arch"] = row.one_of("arch", checks.CPUS)
    for key in ("kernel", "glibc", "libstdcxx", "python", "engine", "container"):
        if key in row:
            found[key] = row.text(key)
    if "libc" in row:
        found["libc"] = row.pairs("libc")
    if "wsl" in row:
        found["wsl"] = row.flag("wsl")
    found["devices"] = tuple(_host_device(item) for item in row.rows("devices"))
    row.close()
    return found


def _host_device(row: Row) -> dict[str, object]:
    found: dict[str, object] = {"name": row.text("name")}
    for key in ("vendor", "arch", "driver", "pci_id"):
        if key in row:
            found[key] = row.text(key)
    for key in ("count", "memory_mib"):
        if key in row:
            found[key] = row.whole(key)
    row.close()
    return found
