"""Environment markers of requirements: what a platform decides, and what is left for the Python.

Light on purpose: the form that `reduce_marker` leaves is judged here, without the parser of `packaging`.
"""
from __future__ import annotations

_PYTHON_NAMES = ("python_version", "python_full_version", "implementation_name", "implementation_version",
                 "platform_python_implementation")
_MACHINES = {("windows", "x86_64"): "AMD64", ("windows", "aarch64"): "ARM64", ("macos", "aarch64"): "arm64"}
SYSTEMS = {"linux": ("Linux", "linux", "posix"), "windows": ("Windows", "win32", "nt"), "macos": ("Darwin", "darwin", "posix")}
# Minor releases of Python 3 on which a marker is tried out.
_MINORS = range(40)
_LEFT = "python_version "


def split_platform(platform: str) -> tuple[str, str]:
    """`linux_x86_64` -> (`linux`, `x86_64`)."""
    system, _, cpu = platform.partition("_")
    return system, cpu


def marker_environment(platform: str, python: str) -> dict[str, str]:
    """The PEP 508 environment of a CPython (`3.12`, `3.14t`) on a platform of the matrix."""
    system, cpu = split_platform(platform)
    platform_system, sys_platform, os_name = SYSTEMS[system]
    plain = python.rstrip("t")
    return {
        "implementation_name": "cpython", "implementation_version": f"{plain}.0", "os_name": os_name,
        "platform_machine": _MACHINES.get((system, cpu), cpu), "platform_python_implementation": "CPython",
        "platform_release": "", "platform_system": platform_system, "platform_version": "",
        "python_full_version": f"{plain}.0", "python_version": plain, "sys_platform": sys_platform,
    }


def reduce_marker(marker: str, platform: str, extras: tuple[str, ...] = ()) -> str | None:
    """The part of a marker that the platform (and the extras that are wanted) leave open: empty where it always holds, None
    where it never does.

    A marker that depends on `python_version` over one range of versions comes back as that range.
    """
    from packaging.markers import Marker

    parsed = Marker(marker)

    def holds(python: str) -> bool:
        env = marker_environment(platform, python)
        return any(parsed.evaluate({**env, "extra": extra}) for extra in extras) if extras else parsed.evaluate(env)

    if not any(name in marker for name in _PYTHON_NAMES):
        return "" if holds("3.0") else None
    if any(name in marker for name in _PYTHON_NAMES[1:]):
        return marker
    held = [holds(f"3.{minor}") for minor in _MINORS]
    if all(held) or not any(held):
        return "" if held[0] else None
    first = held.index(True)
    end = first + sum(held)
    if not all(held[first:end]):
        return marker
    lower = [f'{_LEFT}>= "3.{first}"'] if first else []
    upper = [f'{_LEFT}< "3.{end}"'] if end < len(held) else []
    return " and ".join(lower + upper)


def marker_holds(marker: str, platform: str, python: str) -> bool:
    """Whether the marker of a need holds for a Python (`3.12`, `3.14t`) on a platform; an empty one always does."""
    for part in marker.split(" and ") if marker else ():
        word, _, bound = part.partition(" \"3.")
        if word not in (f"{_LEFT}>=", f"{_LEFT}<") or not bound[:-1].isdigit():
            return _evaluate(marker, platform, python)
        minor = int(python.rstrip("t").partition(".")[2])
        if (minor >= int(bound[:-1])) != word.endswith(">="):
            return False
    return True


def _evaluate(marker: str, platform: str, python: str) -> bool:
    from packaging.markers import Marker

    return Marker(marker).evaluate(marker_environment(platform, python))
