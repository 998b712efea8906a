"""The environment as the needs see it: devices that run other code under an override, drivers by bounds, builds by name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from accel_env.judge.book import Book, open_book
from accel_env.judge.builds import Possible, possible
from accel_env.judge.drivers import driver_said, stacks_by_words, vendor_by_words
from accel_env.judge.types import Clue, Environment, Installed
from accel_env.model import Because, Candidate, Device, Need, Policy, Subject
from accel_env.solve.explain import because
from accel_env.solve.ground import Ground
from accel_env.solve.problem import choose_devices, distinct
from accel_env.solve.verdict import ALWAYS
from accel_env.solve.versions import allows, split_stack

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix

_NO_FILE = r"\bno (?:\S{1,60} ){0,4}wheels?\b|no matching distribution|from versions:|no wheels? with a matching"
OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"


@dataclass(frozen=True, slots=True)
class Failed:
    """A need of a build that the environment does not meet, and what it met."""

    candidate: Candidate
    need: Need
    met: str


class Scene:
    """One environment under judgement. Built once; the questions are pure after that."""

    def __init__(
        self,
        environment: Environment,
        clues: tuple[Clue, ...],
        matrix: Matrix,
        book: Book | None = None,
        *,
        like: Scene | None = None,
        bare: bool = False,
    ) -> None:
        self.matrix = matrix
        self.book = book or open_book(matrix)
        self.environment = environment
        self.clues = clues
        self.devices, self.ignored = choose_devices(environment.host, Policy(), matrix)
        self.vendor = self.devices[0].vendor if self.devices else vendor_by_words(environment, self.book)
        self.host = replace(environment.host, devices=self._effective())
        stack = matrix.stacks().get(self.stack_name)
        self.driver = driver_said(environment, self.devices, stack, self.host, matrix, self.book)
        self.bare = bare  # no ways out are looked for
        # the same machine was judged before: what its needs said is kept
        self._grounds: dict[str, Ground] = like._grounds if like is not None and like.host == self.host else {}
        self._possible: dict[str, Possible | None] = {}
        self._plain = False

    @property
    def complaint(self) -> bool:
        """True where somebody reports that something fails, not just a full device: then what is likely is worth an error."""
        said = [clue for clue in self.clues if (clue.severity, clue.rule) != ("note", "false-positive-warning")]
        return bool(said or (self.environment.texts and not self.clues))

    @property
    def arch(self) -> str:
        """The one architecture of the devices; empty for none or several."""
        archs = {d.arch for d in self.devices if d.arch}
        return archs.pop() if len(archs) == 1 else ""

    @property
    def stack_name(self) -> str:
        """The stack that serves the devices; empty without any."""
        return next((s.name for s in self.matrix.stacks().values() if s.vendor == self.vendor), "") if self.vendor else ""

    @property
    def on_board(self) -> bool:
        """True where a device is of a kind that no index serves."""
        stack = self.matrix.stacks().get(self.stack_name)
        rules = stack.kind_rules if stack else ()
        return any(d.kind == rule.kind and (not rule.archs or d.arch in rule.archs) for rule in rules for d in self.devices)

    def mentions(self, name: str) -> bool:
        """True where a text speaks of a package, by its name or its module."""
        module = self.matrix.modules().get(name, name)
        words = "\n".join(self.environment.texts).lower().replace("_", "-")
        names = {name, module.replace("_", "-")}
        return any(re.search(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", words) for word in names) or any(
            clue.component == name for clue in self.clues
        )

    def wanted(self, row: Installed) -> bool:
        """True where somebody tries to install the package: said so, or a text tells that no file of it fits."""
        return row.wanted or (
            self.mentions(row.name) and bool(re.search(_NO_FILE, "\n".join(self.environment.texts), re.IGNORECASE))
        )

    def said(self, key: str) -> str:
        """A fact of the environment that has no field of its own."""
        return self.environment.extra.get(key, "")

    def proved(self, key: str) -> str:
        """A fact that the clues prove; the heaviest clue counts."""
        return next((clue.facts[key] for clue in self.clues if clue.facts.get(key)), "")

    def row(self, name: str) -> Installed | None:
        """What is said about a package; what is there before what is wanted."""
        rows = [row for row in self.environment.installed if row.name == name]
        return min(rows, key=lambda row: row.wanted, default=None)

    def rows(self) -> Iterator[Installed]:
        """Each package once."""
        for name in dict.fromkeys(row.name for row in self.environment.installed):
            row = self.row(name)
            if row is not None:
                yield row

    def possible(self, name: str) -> Possible | None:
        """The builds that a package can be; None where nothing is known about them."""
        if name not in self._possible:
            row = self.row(name)
            found = possible(self._vendored(row), self.matrix, self.host.platform) if row else None
            self._possible[name] = self._accelerated(found) if name == "torch" and found else found
        return self._possible[name]

    def _accelerated(self, found: Possible) -> Possible:
        """A text that only an accelerated torch prints rules the CPU builds out."""
        if found.labelled or not any(clue.rule in self.book.accelerated for clue in self.clues):
            return found
        kept = tuple(c for c in found.candidates if split_stack(c.stack)[0] != "cpu")
        return replace(found, candidates=kept, default=tuple(c for c in found.default if c in kept)) if kept else found

    def stacks(self) -> set[str]:
        """The stacks that builds may be for: that of the devices, else of torch, or of the texts; empty: any."""
        if self.stack_name:
            return {self.stack_name}
        found = self.possible("torch")
        known = {split_stack(c.stack)[0] for c in found.likely} - {""} if found else set()
        return known or stacks_by_words(self.environment, self.book)

    def _vendored(self, row: Installed) -> Installed:
        """A torch without label inside a vendor's image is the vendor's."""
        container = self.environment.container
        image = self.book.image(container.base) if container else None
        if self._plain:
            return replace(row, vendor=False)
        plain = not row.local and row.name in ("torch", *self.book.pairs, *self.book.pins)
        return replace(row, vendor=True) if image is not None and plain and not row.wanted else row

    @contextmanager
    def as_index(self) -> Iterator[None]:
        """Vendors' builds read as the releases of their number: for pairs, which follow the release."""
        before, self._plain = self._plain, True
        kept, self._possible = self._possible, {}
        try:
            yield
        finally:
            self._plain, self._possible = before, kept

    def torch(self) -> Installed | None:
        """The torch of the environment."""
        return self.row("torch")

    def torch_known(self) -> bool:
        """True where something is said about which torch it is."""
        row = self.torch()
        return row is not None and bool(row.version or row.local or row.spec or row.vendor or row.text)

    def torch_label(self) -> str:
        """The build label of torch: said, or that of all its likely builds; empty when open."""
        row = self.torch()
        if row is None:
            return ""
        if row.local:
            return row.local
        found = self.possible("torch")
        labels = {c.build for c in found.likely} if found else set()
        return labels.pop() if len(labels) == 1 else ""

    def ground(self, stack: str) -> Ground:
        """The solver's view of the host for builds of a stack."""
        if stack not in self._grounds:
            known = stack in self.matrix.stacks()
            mine = distinct(d for d in self.host.devices if d.arch and known and d.vendor == self.matrix.stacks()[stack].vendor)
            bare = tuple(replace(d, driver="") for d in mine)
            host = replace(self.host, devices=bare)
            self._grounds[stack] = Ground(
                self.matrix, host, bare, Policy(target="venv", stack=stack if known else "", source_builds=True), (), ALWAYS
            )
        return self._grounds[stack]

    def failures(self, candidate: Candidate, *, wanted: bool = False) -> list[Failed]:
        """The needs of a build that this host does not meet. What nobody has published fails nothing."""
        stack = split_stack(candidate.stack)[0] if candidate.stack else self.stack_name
        verdict = self.ground(stack).judge(candidate)
        rows = [
            Failed(candidate, f.need, f.met)
            for f in verdict.failures
            if not f.need.unknown and not (f.need.subject is Subject.PACKAGE and f.need.name == candidate.name)
        ]
        failed = self.driver_failure(candidate, jit=verdict.jit)
        if failed:
            rows.append(failed)
        if wanted:
            rows += self._python_failures(candidate)
        return rows

    def lacks_code(self, candidate: Candidate) -> bool:
        """True where a build, maybe of another platform, has no code for the devices here."""
        verdict = self.ground(split_stack(candidate.stack)[0] or self.stack_name).judge(candidate)
        return any(f.need.subject is Subject.ARCH for f in verdict.failures)

    def _python_failures(self, candidate: Candidate) -> Iterator[Failed]:
        from accel_env.solve.versions import tag_fits

        python = self.host.python
        if not python:
            return
        for need in candidate.needs:
            if need.subject is Subject.PYTHON:
                tags = not need.values or any(tag_fits(tag, python) for tag in need.values)
                if not tags or not allows(need.allows, python.rstrip("t") + ".99"):
                    yield Failed(candidate, need, f"this is Python {python}")
                return
        if candidate.tags and not any(tag_fits(tag, python) for tag in candidate.tags):
            yield Failed(candidate, Need(Subject.PYTHON, candidate.fact, values=candidate.tags), f"this is Python {python}")

    def driver_failure(self, candidate: Candidate, *, jit: bool = False) -> Failed | None:
        """The driver rule of a build's stack, under the bounds of what is known about the driver."""
        if not candidate.stack or not self.driver.text:
            return None
        name = split_stack(candidate.stack)[0]
        if name != (self.stack_name or name) or not self._driver_is_for(name):
            return None
        need = self.ground(name).driver_need(candidate.stack, full=jit)
        if need is None or need.unknown:
            return None
        specs = need.values or (need.allows,)
        if any(not self.driver.fails(spec) for spec in specs):
            return None
        if not need.values and self.forward_compatible(candidate):
            return None
        return Failed(candidate, need, f"the driver here is {self.driver.text}")

    def _driver_is_for(self, stack: str) -> bool:
        known = self.matrix.stacks().get(stack)
        return (
            known is not None
            and (not self.vendor or known.vendor == self.vendor)
            and self.driver.low[:1].isdigit() | bool(self.driver.high)
        )

    def forward_compatible(self, candidate: Candidate) -> bool:
        """True where the vendor's compat package is there and serves this kind of device under this driver branch."""
        stack = self.matrix.stacks().get(split_stack(candidate.stack)[0])
        rule = stack.forward_compat if stack else None
        if rule is None or not any(key.startswith("cuda_compat") for key in self.environment.extra):
            return False
        return bool(self.devices) and all(d.kind in rule.kinds for d in self.devices)

    def _effective(self) -> tuple[Device, ...]:
        """The devices as the runtime sees them: an override replaces the target."""
        target = self.override_target()
        return tuple(replace(d, arch=target) if target and d.vendor == "amd" else d for d in self.devices)

    def override_target(self) -> str:
        """The target that HSA_OVERRIDE_GFX_VERSION names, `10.3.0` -> `gfx1030`; empty without one."""
        parts = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", self.environment.variables.get(OVERRIDE, "").strip())
        return f"gfx{parts[1]}{int(parts[2]):x}{int(parts[3]):x}" if parts else ""

    def spoken(self, text: str, candidate: Candidate) -> str:
        """A sentence about a build; where only its label is known it names no version, where its label is inferred it says so."""
        row = self.row(candidate.name)
        if row is None or row.version or row.spec:
            named = f"{candidate.name} {candidate.version} (inferred: build {candidate.build})"
            return text.replace(candidate.label, named, 1) if row and not row.local and self._several(candidate) else text
        label = row.local or candidate.build
        return text.replace(candidate.label, f"{candidate.name} ({label} build)" if label else candidate.name, 1)

    def _several(self, one: Candidate) -> bool:
        """True where a labelled build's release was published in builds of other labels too."""
        found = self.possible(one.name) if one.build not in ("", "any") else None
        return found is not None and len({c.build for c in found.candidates if c.version == one.version}) > 1

    def because(self, need: str, text: str, fact: str) -> Because:
        """A reason with its fact."""
        return because(self.matrix, need, text, fact)

    def named(self, devices: tuple[Device, ...] | None = None) -> str:
        """The devices in words."""
        chosen = self.devices if devices is None else devices
        said = dict.fromkeys(f"{d.name} ({d.arch})" if d.arch and d.arch not in d.name else d.name or d.arch for d in chosen)
        return " and ".join(said) or "the accelerator"
