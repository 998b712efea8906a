"""Of two pins that exclude each other: the release of the one that belongs to the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from accel_env.judge.files.pick import Clash, exact
from accel_env.judge.files.pool import doubtful, requires_of, runs_on
from accel_env.judge.types import Fix
from accel_env.solve.versions import allows, parse

if TYPE_CHECKING:
    from accel_env.judge.files.scope import Scope


def partner(scope: Scope, clash: Clash, component: str) -> Iterator[Fix]:
    """The release of the one that goes with the other's pin."""
    yield from _beside_pin(scope, clash, component)
    for candidate, spec in clash.needs:
        yield Fix("package", clash.on, spec, do=f"what {candidate.label} belongs to")


def _beside_pin(scope: Scope, clash: Clash, component: str) -> Iterator[Fix]:
    """The newest release of the component that takes the pinned version of what it requires; nothing where none is pinned."""
    pin = next((w for w in (clash.a, clash.b) if w.name == clash.on and w.name != component), None)
    if pin is None or not exact(pin.spec):
        return
    version = pin.spec.lstrip("= ").partition("+")[0]
    fitting = []
    for one in scope.matrix.candidates(component, scope.host.platform):
        spec = dict(requires_of(one.requires, scope.host.platform, scope.state.python)).get(pin.name, "")
        if spec and allows(spec, version) and one.index != "image" and not doubtful(one) and runs_on(one, scope.state.python):
            fitting.append(one.version)
    newest = max(fitting, key=parse, default="")
    if newest:
        yield Fix("package", component, f"=={newest}", do=f"what {pin.name} {version} belongs to")
