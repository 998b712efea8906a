"""What the closer chose where it would not have what the solver picked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accel_env.lock.artifacts import PYPI

if TYPE_CHECKING:
    from accel_env.lock.closer import Refusal
    from accel_env.model import Lock

Json = dict[str, Any]


def instead(refusal: Refusal, lock: Lock) -> str:
    """What is locked instead of picks that the closer refused, with its reason word for word; empty where they are all gone."""
    locked = {file.name: file.version.partition("+")[0] for file in lock.files}
    pairs = [(name, version.partition("+")[0]) for name, version, _ in refusal.picks]
    changed = [(name, old, locked[name]) for name, old in pairs if locked.get(name, old) != old]
    if not changed:
        return ""
    told = ", ".join(f"{name} {new} instead of {old}" for name, old, new in changed)
    return f"locked: {told}, which the closure refused; in its words: {refusal.reason}"


def with_chosen(plan: Json, lock: Lock) -> Json:
    """The plan with what the closer chose in place of a pick that it refused: for showing, and without reasons."""
    rows = {
        file.name: {"version": file.version, "build": "any", "index": file.index, "evidence": "metadata", "because": []}
        for file in lock.files
        if file.name in lock.solution.problem.left and file.name not in plan["picks"] and file.index == PYPI
    }
    return {**plan, "picks": {**plan["picks"], **rows}} if rows else plan
