"""`minimal_core`: QuickXplain over the asks and host facts of a field that has no solution."""

from __future__ import annotations

from collections.abc import Callable

from accel_env.solve.field import Field
from accel_env.solve.search import feasible
from accel_env.solve.verdict import Item


def minimal_core(field: Field, within: int | None = None) -> tuple[Item, ...]:
    """QuickXplain over the asks and host facts of `within` (all by default): without any one member there is a solution."""
    scope = field.everything if within is None else within
    items = [item for item in field.items if item.bit & scope]
    seen: dict[int, bool] = {}

    def broken(chosen: list[Item]) -> bool:
        active = field.base & scope
        for item in chosen:
            active |= item.bit
        if active not in seen:
            seen[active] = feasible(field, active)
        return not seen[active]

    if broken([i for i in items if i.kind == "ask"]):
        items = [i for i in items if i.kind == "ask"]
    return tuple(_quickxplain([], False, items, broken))


def _quickxplain(base: list[Item], changed: bool, items: list[Item], broken: Callable[[list[Item]], bool]) -> list[Item]:
    if changed and broken(base):
        return []
    if len(items) <= 1:
        return items
    half = len(items) // 2
    left, right = items[:half], items[half:]
    from_right = _quickxplain(base + left, bool(left), right, broken)
    from_left = _quickxplain(base + from_right, bool(from_right), left, broken)
    return from_left + from_right
