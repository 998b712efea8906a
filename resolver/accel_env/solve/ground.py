"""What a host and a policy say about one candidate alone: which of its needs fail, and on whose account."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from accel_env.model import Candidate, Device, Host, Need, Policy, Subject
from accel_env.solve.images import NO_GLIBC, base_levels, driver_failure
from accel_env.solve.stacks import active_stack, beneath, leads
from accel_env.solve.verdict import ALWAYS, CLEAN, SOURCE_RANK, Failure, Item, Verdict
from accel_env.solve.versions import allows, split_stack, stack_fits

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix
    from accel_env.matrix.types import Stack, StackRelease
    from accel_env.vendors import Vendor


class Ground:
    """The host as the needs see it. Build one per problem; `judge` is pure after that."""

    def __init__(
        self,
        matrix: Matrix,
        host: Host,
        devices: Sequence[Device],
        policy: Policy,
        items: Sequence[Item],
        source: int,
        asked: Collection[str] = (),
    ) -> None:
        from accel_env.vendors import vendors

        self.matrix = matrix
        self.host = host
        self.devices = tuple(devices)
        self.policy = policy
        self.bits = {item.key: item.bit for item in items} | {"source": source}
        self.stacks = matrix.stacks()
        self.stack_name = active_stack(matrix, devices, policy)
        self.stack: Stack | None = self.stacks.get(self.stack_name)
        self.vendor: Vendor | None = vendors().get(self.stack.vendor) if self.stack else None
        self.beneath = beneath(self.stack, asked)
        self.libc, self.libstdcxx = base_levels(matrix, host, policy, self.stack_name)
        # by identity: the matrix shares equal needs, and hashing one anew for each candidate costs more than judging it
        self._arch: dict[tuple[int, str], tuple[Failure | None, bool]] = {}
        self._simple: dict[int, Failure | None] = {}
        self._stacks: dict[tuple[str, bool, bool, str], Verdict | None] = {}
        self._full: dict[str, bool] = {}
        self._rules: dict[tuple[str, bool], list[Failure]] = {}
        self._driver: dict[tuple[str, bool], Failure | None] = {}

    def _bit(self, key: str) -> int:
        return self.bits.get(key, ALWAYS)

    def _charge(self, key: str) -> tuple[int, ...]:
        return (self._bit(key),)

    def _each_device(self) -> tuple[int, ...]:
        return tuple(self._bit(f"device:{n}") for n in range(len(self.devices))) or self._charge("none")

    def judge(self, candidate: Candidate, needs: tuple[Need, ...] | None = None) -> Verdict:
        """All static needs of a candidate against this host. `needs`: the part of them that the host decides (`Matrix.parts`)."""
        foreign = self._stack(candidate)
        if foreign:
            return foreign
        failure: Failure | None
        hard: list[Failure] = []
        soft: list[Failure] = []
        if candidate.rank >= SOURCE_RANK and not self.policy.source_builds:
            need = Need(Subject.PACKAGE, candidate.fact, name=candidate.name)
            hard.append(Failure(need, "it is picked only with --source-builds", self._charge("source")))
        if candidate.index == "image" and self.policy.target == "venv":
            need = Need(Subject.PACKAGE, candidate.fact, name=candidate.name)
            hard.append(Failure(need, "this plan is for a venv", self._charge("target")))
        if candidate.stack:
            hard += self._host_rules(candidate)
        jit = False
        for need in candidate.needs if needs is None else needs:
            if need.subject is Subject.ARCH:
                failure, by_jit = self._arch_need(need, candidate)
                jit = jit or by_jit
            elif id(need) in self._simple:
                failure = self._simple[id(need)]
            else:
                failure = self._simple[id(need)] = self._simple_need(need)
            if failure:
                (soft if need.soft else hard).append(failure)
        failure = driver_failure(self, candidate, self._driver_of(candidate, jit))
        if failure:
            hard.append(failure)
        return Verdict(tuple(hard), tuple(soft), jit) if hard or soft or jit else CLEAN

    def _arch_need(self, need: Need, candidate: Candidate) -> tuple[Failure | None, bool]:
        key = (id(need), candidate.stack)
        if key not in self._arch:
            self._arch[key] = self._arch_of(need, candidate)
        return self._arch[key]

    def _simple_need(self, need: Need) -> Failure | None:
        if need.unknown:
            # a site forbids a release by a need on itself: its own words say why
            said = self.matrix.fact(need.fact).text if need.subject is Subject.PACKAGE else ""
            return Failure(need, said, (ALWAYS,))
        host = self.host
        subject = need.subject
        if subject is Subject.OS:
            return None if host.os in need.values else Failure(need, f"this host runs {host.os}", self._charge("os"))
        if subject is Subject.CPU:
            return None if host.arch in need.values else Failure(need, f"this host is {host.arch}", self._charge("cpu"))
        if subject is Subject.LIBC and self.libc:
            where = "this host has" if self.policy.target == "venv" else "the base image has"
            what = f"glibc {self.libc}" if self.libc != NO_GLIBC else f"{host.libc_family} {host.libc}, no glibc"
            return None if allows(need.allows, self.libc) else Failure(need, f"{where} {what}", self._charge("libc"))
        if subject is Subject.LIBSTDCXX and self.libstdcxx:
            fine = allows(need.allows, self.libstdcxx)
            return (
                None if fine else Failure(need, f"libstdc++ here goes up to GLIBCXX_{self.libstdcxx}", self._charge("libstdcxx"))
            )
        if subject is Subject.KERNEL and host.kernel:
            kernel = host.kernel.split("-", 1)[0]
            return (
                None
                if allows(need.allows, kernel)
                else Failure(need, f"this host runs kernel {host.kernel}", self._charge("kernel"))
            )
        if subject is Subject.DRIVER:
            return self._driver_need(need)
        return None

    def _stack(self, candidate: Candidate) -> Verdict | None:
        """The verdict on a build of another stack: nothing else about it matters."""
        if not candidate.stack:
            return None
        key = (candidate.stack, candidate.module == "torch", leads(candidate), candidate.fact)  # each says its own source
        if key not in self._stacks:
            failure = self._stack_of(candidate)
            self._stacks[key] = Verdict((failure,), (), False) if failure else None
        return self._stacks[key]

    def _stack_of(self, candidate: Candidate) -> Failure | None:
        stack = candidate.stack
        need = Need(Subject.STACK, candidate.fact, values=(stack,))
        name, _ = split_stack(stack)
        if name == self.beneath:
            return None
        if name != self.stack_name:
            if self.policy.stack and split_stack(self.policy.stack)[0] == self.stack_name:
                return Failure(need, f"--stack {self.policy.stack} was asked for", self._charge("stack"))
            names = ", ".join(d.name or d.arch for d in self.devices) or "no accelerator on this host"
            return Failure(
                need, f"the stack of {names} is {self.stack_name or 'none'}" if self.devices else names, self._each_device()
            )
        # frameworks without torch are built for a major release of their stack
        wanted = self.policy.stack if candidate.module == "torch" or self.beneath else self.policy.stack.partition(".")[0]
        if wanted and leads(candidate) and not stack_fits(wanted, stack):
            return Failure(need, f"--stack {self.policy.stack} was asked for", self._charge("stack"))
        return None

    def _host_rules(self, candidate: Candidate) -> list[Failure]:
        """What the stack says whatever the build: kinds that its indexes do not serve, drivers that dropped an architecture."""
        stack = self.stack
        if stack is None or not self.devices:
            return []
        image = candidate.index == "image"
        key = (candidate.stack, image)
        if key not in self._rules:
            rows: list[Failure] = []
            for index, device in enumerate(self.devices):
                bit = self._bit(f"device:{index}")
                for rule in () if image else stack.kind_rules:
                    if rule.kind == device.kind and (not rule.archs or device.arch in rule.archs):
                        rows.append(
                            Failure(
                                Need(Subject.STACK, rule.fact, values=(candidate.stack,)),
                                f"this host has {_named(device)}: {rule.text}",
                                (bit,),
                            )
                        )
                for need in self._unmet(device):
                    why = f"driver {device.driver} does not know {_named(device)}"
                    rows.append(Failure(need, why, (bit | self._bit("driver"),)))
                release = self.release(candidate.stack)
                if release and release.archs and device.arch not in release.archs:
                    rows.append(
                        Failure(Need(Subject.ARCH, release.fact, values=release.archs), f"this host has {_named(device)}", (bit,))
                    )
            self._rules[key] = rows
        return self._rules[key]

    def _unmet(self, device: Device) -> list[Need]:
        driver = self.driver(device)
        needs = device_driver_needs(self.stack, device) if self.stack and driver[:1].isdigit() else []
        return [need for need in needs if not allows(need.allows, driver)]

    def knows(self, device: Device) -> bool:
        """False where a device's driver is known not to know it."""
        return not self._unmet(device)

    def _arch_of(self, need: Need, candidate: Candidate) -> tuple[Failure | None, bool]:
        if not self.devices or self.vendor is None or self.stack is None:
            return None, False
        release = split_stack(candidate.stack)[1]
        charges: list[int] = []
        missed, jit = [], False
        for index, device in enumerate(self.devices):
            how = "" if need.unknown else self._runs(need, device, release)
            jit = jit or how == "jit"
            if not how:
                charges.append(self._bit(f"device:{index}"))
                missed.append(_named(device))
        if not charges:
            return None, jit
        said = f"this host has {' and '.join(dict.fromkeys(missed))}"
        return Failure(need, f"{said}" if need.unknown else said, tuple(charges)), False

    def _runs(self, need: Need, device: Device, release: str) -> str:
        assert self.vendor is not None and self.stack is not None
        if need.lacks and not need.values and not need.jit:
            return "" if device.arch in need.lacks else "native"
        return self.vendor.runs(need, device.arch, self.stack, release)

    def _driver_of(self, candidate: Candidate, jit: bool) -> Failure | None:
        """The stack's own driver rule: the minor floor for machine code, the full floor once code is compiled at run time."""
        key = (candidate.stack, jit)
        if key not in self._driver:
            self._driver[key] = self._floor(candidate.stack, jit)
        return self._driver[key]

    def _floor(self, stack: str, jit: bool) -> Failure | None:
        plain = self.driver_need(stack, full=False)
        failure = self._driver_need(plain) if plain else None
        full = self.driver_need(stack, full=True) if jit else None
        if failure or full is None:
            return failure
        failure = self._driver_need(full)
        if failure is None or ALWAYS in failure.charges:
            return failure
        # without the device that must compile at run time the lower floor would do
        return Failure(failure.need, failure.met, tuple(self._bit("driver") | device for device in self._each_device()))

    def driver_need(self, stack: str, *, full: bool) -> Need | None:
        """The driver need of a stack release on this host's os; None where the stack has no driver rule."""
        release = self.matrix.stack_release(stack) if "-" in stack else None
        if release is None:
            return None
        if release.driver_allows:
            return Need(Subject.DRIVER, release.driver_fact, values=release.driver_allows)
        # under WSL2 the driver is the Windows one, and so is its number
        floor = release.driver_floors.get("windows" if self.host.wsl else self.host.os)
        wanted = (floor.full if full else floor.minor) if floor else ""
        if floor is None or not wanted:
            return Need(Subject.DRIVER, release.driver_fact, unknown=True) if floor else None
        return Need(Subject.DRIVER, release.driver_fact, allows=f">={wanted}")

    def _driver_need(self, need: Need) -> Failure | None:
        if need.unknown:
            return Failure(need, "nobody has published the floor", (ALWAYS,)) if self.devices else None
        for device in self.devices:
            driver = self.driver(device)
            if not driver or not driver[0].isdigit():
                continue
            specs = need.values or (need.allows,)
            if not any(allows(spec, driver) for spec in specs):
                return Failure(need, f"this host has driver {device.driver}", self._charge("driver"))
        return None

    def driver(self, device: Device) -> str:
        """The packaged driver release of a device, comparable; empty when unknown."""
        if not device.driver or self.vendor is None or self.stack is None:
            return ""
        return self.vendor.normalise_driver(device.driver, self.stack)

    def fully_supported(self, stack: str) -> bool:
        """True when every device's driver meets the full floor of the stack release, or nothing is known against it."""
        if stack not in self._full:
            need = self.driver_need(stack, full=True)
            self._full[stack] = need is None or self._driver_need(need) is None
        return self._full[stack]

    def release(self, stack: str) -> StackRelease | None:
        """The stack release behind a candidate's stack."""
        return self.matrix.stack_release(stack) if "-" in stack else None


def device_driver_needs(stack: Stack, device: Device) -> list[Need]:
    """What a device asks of the driver whatever the build: the first that knows it, the last that still does."""
    return [
        Need(Subject.DRIVER, known.fact, allows=known.allows, name=device.arch)
        for known in stack.arch_drivers
        if device.arch in known.archs
    ]


def _named(device: Device) -> str:
    return f"{device.name} ({device.arch})" if device.name and device.name != device.arch else device.arch
