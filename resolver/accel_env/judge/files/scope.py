"""One scene on one host, with everything that the rules ask about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from accel_env.judge.files.images import Known, known
from accel_env.judge.files.state import State
from accel_env.judge.files.walk import Walker
from accel_env.judge.types import Finding, Fix
from accel_env.model import Because, Device
from accel_env.solve.explain import because
from accel_env.solve.versions import split_stack

if TYPE_CHECKING:
    from accel_env.judge.book import Book
    from accel_env.judge.files.pick import Present
    from accel_env.judge.files.tables import Tables
    from accel_env.judge.files.values import Scene
    from accel_env.matrix.load import Matrix
    from accel_env.model import Host


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The matrix and its documents, opened once."""

    matrix: Matrix
    tables: Tables
    book: Book


class Scope:
    """A scene under judgement. `named`: a machine was named; without one only what holds on any machine is judged."""

    def __init__(self, scene: Scene, host: Host, know: Knowledge, *, named: bool) -> None:
        self.scene, self.host, self.know, self.named = scene, host, know, named

    @property
    def matrix(self) -> Matrix:
        """The matrix."""
        return self.know.matrix

    @property
    def tables(self) -> Tables:
        """What `check` knows of words."""
        return self.know.tables

    @cached_property
    def image(self) -> Known | None:
        """What is known of the image that the scene starts from; None without one."""
        return known(self.scene.base, self.tables, self.know.book) if self.scene.base else None

    @cached_property
    def state(self) -> State:
        """What ends up installed."""
        return Walker(self.scene, self.image, self.host, self.matrix, self.tables).walk()

    @cached_property
    def devices(self) -> tuple[Device, ...]:
        """The devices that count: one vendor's."""
        from accel_env.model import Policy
        from accel_env.solve.problem import choose_devices

        return choose_devices(self.host, Policy(), self.matrix)[0]

    @property
    def stack_name(self) -> str:
        """The stack of the devices; empty without any."""
        vendor = self.devices[0].vendor if self.devices else ""
        return next((s.name for s in self.matrix.stacks().values() if vendor and s.vendor == vendor), "")

    @property
    def torch(self) -> Present | None:
        """The torch that ends up installed."""
        return self.state.packages.get("torch")

    def torch_stack(self) -> str:
        """`cuda-12.8` of the torch that ends up installed, empty where nobody can tell."""
        return self.stack_of(self.torch)

    def stack_of(self, torch: Present | None) -> str:
        """`cuda-12.8` of a torch, empty where nobody can tell."""
        if torch is None:
            return ""
        if torch.candidates:
            stacks = {c.stack for c in torch.candidates}
            return stacks.pop() if len(stacks) == 1 else ""
        return self.image.stack if torch.vendor and self.image is not None and torch.where == self.image.base.where else ""

    def because(self, need: str, text: str, fact: str) -> Because:
        """A reason with its fact."""
        return because(self.matrix, need, text, fact)

    def finding(
        self,
        rule: str,
        component: str,
        severity: str,
        message: str,
        where: str,
        reasons: Iterable[Because],
        fixes: Iterable[Fix] = (),
    ) -> Finding:
        """A finding at a place of a file."""
        return Finding(rule, component, severity, message, tuple(reasons), tuple(fixes), where=where)

    def index_url(self, key: str) -> str:
        """The URL behind the key of an index; empty for PyPI and what has none."""
        if key in ("pypi", "image", "?") or "{" in key:
            return ""
        url = self.matrix.index_url(key)
        return url if "{" not in url else ""


def major(stack_or_version: str) -> str:
    """`13` of `cuda-13.0` and of `13.0`."""
    version = split_stack(stack_or_version)[1] if "-" in stack_or_version else stack_or_version
    return version.partition(".")[0]
