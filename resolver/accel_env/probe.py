"""What this machine has, each fact with the probe that gave it; and what the command line says instead."""
from __future__ import annotations

import re
from collections.abc import Sequence, Set

from accel_env.errors import UsageError
from accel_env.model import Device, Host
from accel_env.system.types import Machine, System
from accel_env.vendors import Found, pci_devices, valid_driver, vendors
from accel_env.vendors.base import arch_of, changed, numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from accel_env.matrix.load import Matrix

    T = TypeVar("T")

CPUS = {"amd64": "x86_64", "x64": "x86_64", "arm64": "aarch64"}
PYTHON_TIMEOUT = 2.0  # seconds that a Python may take to say its version
MOST = 1024  # devices of one name
_LIBSTDCXX = ("/usr/lib/{cpu}-linux-gnu/libstdc++.so.6", "/usr/lib64/libstdc++.so.6", "/usr/lib/libstdc++.so.6",
              "/lib/{cpu}-linux-gnu/libstdc++.so.6", "/lib64/libstdc++.so.6")


class _Scene:
    """Collects notes and provenance while the parts of a Host are found."""

    def __init__(self) -> None:
        self.devices: list[Device] = []
        self.notes: list[str] = []
        self.provenance: dict[str, str] = {}

    def keep(self, name: str, answer: tuple[T, str]) -> T:
        """The value of an answer; its source is remembered where there is one."""
        value, source = answer
        if source and value:
            self.provenance[name] = source
        return value

    def add(self, found: Found) -> None:
        """Take over what a vendor's probe saw."""
        for sighting in found.sightings:
            prefix = f"devices[{len(self.devices)}]"
            self.devices.append(sighting.device)
            self.provenance.update({f"{prefix}.{name}": source for name, source in sighting.gave})
        self.notes += found.notes


def probe(system: System, matrix: Matrix, *, full: bool = True, accelerators: bool = True) -> Host:
    """The machine as a Host. `full=False` leaves out what costs commands and only `detect` shows (engine, further Pythons);
    `accelerators=False` the vendors' probes, for a machine whose devices the command line describes.

    A broken or hanging tool becomes a note of the Host; nothing is raised.
    """
    machine, scene = system.machine(), _Scene()
    if accelerators:
        _accelerators(system, matrix, scene)
    cpu = machine.cpu.lower()
    family, libc = scene.keep("libc", _libc(system, machine))
    return Host(
        os=scene.keep("os", (machine.os, "interpreter")), arch=scene.keep("arch", (CPUS.get(cpu, cpu), "interpreter")),
        kernel=scene.keep("kernel", (machine.release, "uname")), libc_family=family, libc=libc,
        libstdcxx=scene.keep("libstdcxx", _libstdcxx(system, cpu)), python=scene.keep("python", (machine.python, "interpreter")),
        pythons=scene.keep("pythons", _pythons(system, scene.notes) if full else (tuple(filter(None, (machine.python,))), "")),
        devices=tuple(scene.devices), engine=scene.keep("engine", _engine(system, scene.notes) if full else ("", "")),
        container=scene.keep("container", _container(system)), wsl="microsoft" in machine.release.lower(),
        notes=tuple(scene.notes), provenance=dict(scene.provenance),
    )


def _accelerators(system: System, matrix: Matrix, scene: _Scene) -> None:
    bus, table = pci_devices(system), matrix.devices()
    for vendor in vendors().values():
        scene.add(vendor.probe(system, table, bus))
    if not scene.devices and system.access("/dev/dxg") != "absent":
        scene.notes.append("Windows shares a GPU with this WSL (/dev/dxg), but no vendor's tool names it")


def _libc(system: System, machine: Machine) -> tuple[tuple[str, str], str]:
    """(family, version) of the C library and what told it."""
    if machine.os != "linux":
        return ("", ""), ""
    if found := re.match(r"glibc (\d+\.\d+)", machine.libc):
        return ("glibc", found[1]), "confstr CS_GNU_LIBC_VERSION"
    done = system.run(("getconf", "GNU_LIBC_VERSION"))
    if found := re.match(r"glibc (\d+\.\d+)", done.stdout):
        return ("glibc", found[1]), "getconf GNU_LIBC_VERSION"
    done = system.run(("ldd", "--version"))
    if found := re.search(r"musl libc.*\s+Version (\d+\.\d+\.\d+)", done.stdout + done.stderr, re.DOTALL):
        return ("musl", found[1]), "ldd --version"
    if found := re.match(r"ldd \(.*\) (\d+\.\d+)", done.stdout):
        return ("glibc", found[1]), "ldd --version"
    loaders = system.glob("/lib/ld-musl-*.so.1")
    return (("musl", ""), loaders[0]) if loaders else (("", ""), "")


def _libstdcxx(system: System, cpu: str) -> tuple[str, str]:
    """The newest GLIBCXX level of the system's libstdc++: libstdc++.so.6.0.N has 3.4.N; else by its symbols."""
    for pattern in _LIBSTDCXX:
        path = pattern.format(cpu=cpu)
        if found := re.search(r"libstdc\+\+\.so\.6\.0\.(\d+)$", system.readlink(path) or ""):
            return f"3.4.{found[1]}", path
        levels = [int(level.rsplit(".", 1)[1]) for level in system.scan(path, r"GLIBCXX_3\.4\.\d+")]
        if levels:
            return f"3.4.{max(levels)}", path
    return "", ""


def _pythons(system: System, notes: list[str]) -> tuple[tuple[str, ...], str]:
    """The interpreters by name on PATH that run, this one included, newest first; a note names the others."""
    paths: dict[str, list[str]] = {}
    for folder in (system.env("PATH") or "").split(":"):
        for path in system.glob(f"{folder.rstrip('/')}/python3.*") if folder.startswith("/") else ():
            name = path.rsplit("/", 1)[-1].removeprefix("python")
            if re.fullmatch(r"3\.\d+t?", name):
                paths.setdefault(name, []).append(path)
    own = {system.machine().python} - {""}
    run = own | {name for name, known in paths.items() if name in own or any(_runs(system, path) for path in known)}
    broken = _newest_first(paths.keys() - run)
    if broken:
        notes.append(f"on PATH, but not running: {', '.join(f'python{name}' for name in broken)}")
    return _newest_first(run), "PATH"


def _runs(system: System, path: str) -> bool:
    """Whether an interpreter answers: the shims of version managers do not for a Python that is not chosen here.

    Recordings from before the question hold no answer; there the file alone counts.
    """
    done = system.run((path, "--version"), PYTHON_TIMEOUT)
    return system.access(path) == "ok" if done.missing else done.status == 0


def _newest_first(pythons: Set[str]) -> tuple[str, ...]:
    return tuple(sorted(pythons, key=lambda text: (int(text.rstrip("t").split(".")[1]), text), reverse=True))


def _engine(system: System, notes: list[str]) -> tuple[str, str]:
    """`docker 27.3.1 (runtimes: nvidia)`: the container engine that answers, with the runtimes and CDI devices that it offers."""
    specs = (path for folder in ("/etc/cdi", "/var/run/cdi") for path in system.glob(f"{folder}/*.*"))
    cdi = {path.rsplit("/", 1)[-1].rsplit(".", 1)[0] for path in specs}
    cdi_text = f"cdi: {', '.join(sorted(cdi))}" if cdi else ""
    done = system.run(("docker", "version", "--format", "{{.Server.Version}}"))
    if done.status == 0 and done.stdout.strip():
        info = system.run(("docker", "info", "--format", "{{json .Runtimes}}"))
        names = sorted(set(re.findall(r'"([\w.-]+)":\s*\{', info.stdout)) - {"status", "runc", "io.containerd.runc.v2"})
        extras = "; ".join(filter(None, (f"runtimes: {', '.join(names)}" if names else "", cdi_text)))
        return f"docker {done.stdout.strip()}" + (f" ({extras})" if extras else ""), "docker version"
    if not done.missing:
        notes.append(f"the docker daemon does not answer: {done.problem or 'no version'}")
    done = system.run(("podman", "version", "--format", "{{.Client.Version}}"))
    if done.status == 0 and done.stdout.strip():
        return f"podman {done.stdout.strip()}" + (f" ({cdi_text})" if cdi_text else ""), "podman version"
    return "", ""


def _container(system: System) -> tuple[str, str]:
    """Which kind of container this is; empty outside of one."""
    if system.env("KUBERNETES_SERVICE_HOST"):
        return "kubernetes", "KUBERNETES_SERVICE_HOST"
    for kind, path in (("podman", "/run/.containerenv"), ("docker", "/.dockerenv"), ("apptainer", "/.singularity.d")):
        if system.access(path) != "absent":
            return kind, path
    if said := system.env("container"):
        return said, "variable container"
    found = re.search(r"kubepods|docker|containerd|libpod|lxc", system.read_text("/proc/1/cgroup") or "")
    return (found.group(), "/proc/1/cgroup") if found else ("", "")


def override(host: Host, *, devices: Sequence[str] = (), driver: str = "", python: str = "", glibc: str = "", arch: str = "",
             matrix: Matrix) -> Host:
    """The host with what the command line says instead: it may describe a machine that is not here.

    `devices` are names, aliases or architectures (`sm_90`, `gfx942`), each with an optional count; `cpu` for none.
    They replace all that was found, drivers included. Raises UsageError for what makes no sense.
    """
    if not any((devices, driver, python, glibc, arch)):
        return host
    given = dict(host.provenance)
    chosen = host.devices
    if devices:
        given = {name: source for name, source in given.items() if not name.startswith("devices[")}
        chosen = tuple(device for text in devices for device in _named(text, matrix))
        given |= {"devices": "--device"} | {f"devices[{n}]": "--device" for n in range(len(chosen))}
    if driver:
        chosen = _driven(chosen, driver, given, matrix)
    changes: dict[str, str] = {}
    arch = CPUS.get(arch.lower(), arch.lower())
    for name, option, value in (("python", "--python", python), ("libc", "--glibc", glibc), ("arch", "--arch", arch)):
        shape, example = _SHAPES[name]
        if value and not re.fullmatch(shape, value):
            raise UsageError(f"bad-{name}", f"{option} {value} is not understood", hint=f"write {example}")
        if value:
            changes[name] = value
            given[name] = option
    if glibc:
        changes["libc_family"] = "glibc"
    values: dict[str, Any] = {"devices": chosen, "provenance": given, **changes}
    return changed(host, **values)


_SHAPES = {"python": (r"3\.\d+t?", "X.Y, or X.Yt for a free-threaded one"), "libc": (r"\d+\.\d+", "X.Y"),
           "arch": (r"x86_64|aarch64", "x86_64 or aarch64")}


def _named(text: str, matrix: Matrix) -> tuple[Device, ...]:
    """The devices that one `--device` means: by name, or as a nameless device of an architecture."""
    name, count = _counted(text.strip())
    if name.lower() in ("cpu", "none"):
        return ()
    table = matrix.devices()
    row = table.meant(name)
    if row is not None:
        return (Device(row.vendor, row.name, arch_of(row), "", row.memory_mib, row.pci[0] if row.pci else "", row.integrated,
                       row.kind),) * count
    rows = [row for row in table if row.arch == name.lower()]
    if rows:
        kinds = {row.kind for row in rows}
        return (Device(rows[0].vendor, rows[0].arch, rows[0].arch, integrated=all(row.integrated for row in rows),
                       kind=kinds.pop() if len(kinds) == 1 else ""),) * count
    if name and not table.core(name):
        raise UsageError("no-product", f"--device {text}: {name} names no product", hint=f"write the product, for example "
                         f"{_example(name, matrix)!r}, or an architecture; `accel-env detect` shows what this machine has")
    heard = table.heard(name)
    if heard is not None:
        raise UsageError("unknown-device", f"--device {text}: {heard.name} is understood, {table.unheard(name, heard)!r} is not",
                         hint=f"write --device {heard.name!r}; several products are given with a --device each, NAME:COUNT")
    near = table.nearest(name)
    raise UsageError("unknown-device", f"{name} is no single device that the matrix knows",
                     hint=f"the nearest names are {', '.join(near)}" if near else "write it as the driver names it")


def _example(text: str, matrix: Matrix) -> str:
    """A product that people have: the one of most profiles, of the vendor that the text names where it names one."""
    table, seen = matrix.devices(), dict[str, int]()
    vendor = next((name for name in table.vendors() if name in text.lower()), "")
    for profile in matrix.profiles().values():
        devices = profile.host.get("devices", ())
        for device in devices if isinstance(devices, (list, tuple)) else ():
            row = table.by_name(None, str(device.get("name", "")))
            if row is not None and vendor in ("", row.vendor):
                seen[row.name] = seen.get(row.name, 0) + 1
    return max(seen, key=lambda name: seen[name]) if seen else next(row.name for row in table if vendor in ("", row.vendor))


def _counted(text: str) -> tuple[str, int]:
    """Name and count of `A100:8`, `8xA100`, `8 x A100`, `A100 x8`. UsageError for a count that is none."""
    name, count = text, "1"
    before = re.fullmatch(r"(\d+)\s*[x×*]\s*(\S.*)", text, re.IGNORECASE)
    after = re.fullmatch(r"(.*\S)\s+[x×*]\s*(\d+)", text, re.IGNORECASE)
    if ":" in text:
        name, _, count = (part.strip() for part in text.partition(":"))
        count = "" if before else count  # said twice
    elif before and after:
        # Two numbers (`3090 x 2`, `2 x 3090`): nobody has more devices than the number of the product.
        name, count = (after[1], after[2]) if int(after[2]) < int(before[1]) else (before[2], before[1])
    elif before or after:
        name, count = (before[2], before[1]) if before else (after[1], after[2]) if after else (name, count)
    if not re.fullmatch(r"\d{1,9}", count) or not 1 <= int(count) <= MOST:
        raise UsageError("bad-count", f"--device {text}: the count is no whole number from 1 to {MOST}",
                         hint="write NAME or NAME:COUNT")
    return name, int(count)


def _driven(devices: tuple[Device, ...], driver: str, given: dict[str, str], matrix: Matrix) -> tuple[Device, ...]:
    """The devices with this driver. It is meant for the discrete ones where an integrated one of another vendor is present."""
    if not valid_driver(driver):
        raise UsageError("bad-driver", f"--driver {driver} is no driver version",
                         hint="write the version as the driver's own tool prints it")
    meant = {device.vendor for device in devices if not device.integrated} or {device.vendor for device in devices}
    if len(meant) != 1:
        why = "there is no device that it could drive" if not meant else f"it could be that of {' or '.join(sorted(meant))}"
        raise UsageError("driver-without-device", f"--driver {driver}: {why}", hint="name the device with --device NAME")
    _refuse_release(driver, meant, matrix)
    for n, device in enumerate(devices):
        if device.vendor in meant:
            given[f"devices[{n}].driver"] = "--driver"
    return tuple(changed(device, driver=driver) if device.vendor in meant else device for device in devices)


def _refuse_release(driver: str, vendors: Set[str], matrix: Matrix) -> None:
    """UsageError for a driver that is a release of the vendor's stack and below every driver that any release asks for."""
    for stack in matrix.stacks().values():
        floors = [numbers(text) for release in stack.releases for floor in release.driver_floors.values()
                  for text in (floor.minor, floor.full) if text]
        same = [release.version for release in stack.releases
                if f"{driver}.".startswith(f"{release.version}.") or f"{release.version}.".startswith(f"{driver}.")]
        if stack.vendor in vendors and same and floors and numbers(driver) < min(floors):
            built = {c.stack for place in matrix.platforms("torch") for c in matrix.candidates("torch", place)}
            named = next((one for one in same if f"{stack.name}-{one}" in built), same[0])
            raise UsageError(
                "bad-driver", f"--driver {driver} looks like a {stack.name.upper()} version (nvidia-smi prints it beside the "
                "driver version)", hint=f"write the driver's version; --stack {stack.name}-{named} asks for that release")
