"""What a check is, and how it says its verdict. Python 3.8 and newer, standard library alone: this travels into images."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Dict, NamedTuple, Tuple  # noqa: UP035  the alias below is evaluated, by Python 3.8 too

SCHEMA = "accel-env/smoke/1"
LEVELS = ("static", "import", "device")
PASS, FAIL, SKIP = "pass", "fail", "skip"
# What only the driver of the machine brings: not missing from an image that lacks it.
DRIVER_LIBRARIES = ("libcuda.so", "libnvidia-", "libnvcuvid.so", "libnvoptix.so")

Answer = Tuple[str, Dict[str, Any]]  # noqa: UP006


class FailedError(Exception):
    """The check found something wrong; the text says what."""


class SkippedError(Exception):
    """The check does not apply here; the text says why."""


class Context(NamedTuple):
    """What a check may know. `device`: `cpu`, `cuda` (AMD's too), `xpu`, `hpu`; empty: the first that is there.

    `expect` is what the plan says, any part of it missing: `python`; `versions` {distribution: version}; `devices`
    [architecture]; `libraries` [ending of the path of a library that the plan counts on]; `compiles` (bool).
    """

    expect: dict[str, Any]
    device: str = ""


class Check(NamedTuple):
    """One check: `seconds` is its time limit; `run` gives (detail, facts) or raises."""

    level: str
    name: str
    seconds: float
    run: Callable[[Context], Answer]


class Result(NamedTuple):
    """The end of a check."""

    level: str
    name: str
    verdict: str
    detail: str
    seconds: float
    facts: dict[str, Any] | None = None

    def line(self) -> str:
        """The result for people."""
        return f"{self.verdict:4}  {self.level:6}  {self.name:28} {self.seconds:6.1f} s  {self.detail}"

    def row(self) -> dict[str, Any]:
        """The result as the report holds it."""
        found = {
            "level": self.level, "name": self.name, "verdict": self.verdict, "detail": self.detail,
            "seconds": round(self.seconds, 2),
        }  # fmt: skip
        if self.facts:
            found["facts"] = self.facts
        return found


def near(what: str, error: float, tolerance: float) -> str:
    """A sentence on an error within the tolerance; FailedError beyond it, and for what is no number."""
    if math.isnan(error) or math.isinf(error) or error > tolerance:
        raise FailedError(f"{what}: error {error:.3g}, allowed {tolerance:g}")
    return f"{what}: error {error:.3g} of {tolerance:g}"


def some(texts: Any, most: int = 5) -> str:
    """The texts in one line, the first `most` of them."""
    listed = list(texts)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return "; ".join(listed[:most]) + more


def of_driver(text: str) -> str:
    """The driver's library that a text names, empty when it names none."""
    return next((word.strip(":,'\"()") for word in text.split() if word.strip(":,'\"()").startswith(DRIVER_LIBRARIES)), "")
