"""The frozen values of judging: what was found, what the texts say, and what follows from it.

Flow: report, collected texts, interpreter, files -> Environment; error texts -> Clue; needs + clues -> Finding with Fix.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from accel_env.model import Because, Host

SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True, slots=True)
class Installed:
    """One package that is there, or (`wanted`) that somebody tries to install.

    `version` is the public version, empty when unknown; `local` the label (`cu128`, `cpu`, `rocm6.3`), empty when unknown:
    an unknown label is not a missing one. `spec` holds what was written where no single version is known (`>=0.45,<0.46`).
    `vendor` marks builds that no index serves (vendor image, `nv`, `.lw.git`, `a0+git`, conda, source). `origin` says who
    said so (`environment.packages`, `pip list`, `requirements.txt:7`).
    """

    name: str
    version: str = ""
    local: str = ""
    spec: str = ""
    text: str = ""
    origin: str = ""
    wanted: bool = False
    vendor: bool = False
    nightly: bool = False
    url: str = ""


@dataclass(frozen=True, slots=True)
class Container:
    """The container that the environment runs in. `args` are the words of `docker run`; empty means unknown."""

    base: str = ""
    runtime: str = ""
    args: str = ""


@dataclass(frozen=True, slots=True)
class Environment:
    """What is judged. Empty means unknown, never "not there". `disagreements`: statements that contradict each other.

    `cuda_driver`: the CUDA version that the driver offers (`12.4`). `variables`: the process environment as far as said.
    `extra`: facts that have no field of their own (`cuda_toolkit`, `nvcc`, `oneapi`, `cann`, ...), as written.
    """

    host: Host = field(default_factory=Host)
    installed: tuple[Installed, ...] = ()
    cuda_driver: str = ""
    container: Container | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)
    texts: tuple[str, ...] = ()
    disagreements: tuple[str, ...] = ()
    known: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Clue:
    """What one signature of matrix/signatures.yaml read out of a text.

    `rule` and `component` are a prior for the finding; `facts` what its captures prove (`cuda_driver: 12.8`,
    `torch_built: >=2.8`, `needs_soname: libcudart.so.13`); `line` the deciding line, `weight` orders clues of one text.
    `means` is what the text tells in words, where its own words do not.
    """

    signature: str
    rule: str
    component: str
    line: str
    facts: Mapping[str, str] = field(default_factory=dict)
    weight: int = 0
    severity: str = "error"
    fact: str = ""
    fixes: tuple[Fix, ...] = ()
    means: str = ""

    @property
    def told(self) -> str:
        """What the text tells, as the message of a finding."""
        said = f"the text says: {self.line.strip()}"
        return f"{self.means}; {said}" if self.means else said


@dataclass(frozen=True, slots=True)
class Fix:
    """One way out; each alone is enough. `kind` is a word of FIX_KINDS, which fields count depends on it.

    package: name, spec, build; env: set, unset; driver, python, toolchain: spec (name); action, host-config,
    container-arg, hardware: do; image, index, build: name, do. `verified`: the solver found that all needs hold with it.
    """

    kind: str
    name: str = ""
    spec: str = ""
    build: str = ""
    set: Mapping[str, str] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    do: str = ""
    command: str = ""
    verified: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause. `consequence_of` names the rule of the finding that explains this one; `where` is `file:line` for `check`."""

    rule: str
    component: str
    severity: str
    message: str
    because: tuple[Because, ...] = ()
    fixes: tuple[Fix, ...] = ()
    consequence_of: str = ""
    where: str = ""


FIX_KINDS = (
    "package",
    "driver",
    "image",
    "toolchain",
    "env",
    "index",
    "python",
    "build",
    "container-arg",
    "host-config",
    "hardware",
    "action",
)
