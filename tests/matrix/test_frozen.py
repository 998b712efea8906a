"""Frozen classes behave as those of the standard library."""
from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Mapping

import pytest

from accel_env import frozen, model


@frozen.dataclass(frozen=True, slots=True)
class Ours:
    """Doc."""

    a: int
    b: tuple[str, ...] = ()
    c: Mapping[str, int] = frozen.field(default_factory=dict)

    @property
    def double(self) -> int:
        return self.a * 2


@dataclasses.dataclass(frozen=True, slots=True)
class Theirs:
    """Doc."""

    a: int
    b: tuple[str, ...] = ()
    c: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @property
    def double(self) -> int:
        return self.a * 2


@frozen.dataclass(frozen=True, slots=True)
class One:
    only: str


def test_values() -> None:
    assert Ours(1) == Ours(1, (), {}) != Ours(2)
    other: object = Theirs(1)
    assert Ours(1) != other
    assert repr(Ours(1, b=("x",))) == repr(Theirs(1, b=("x",))).replace("Theirs", "Ours")
    assert Ours(3).double == 6 and Ours.__doc__ == "Doc."
    assert Ours(1).c is not Ours(1).c
    assert One("x") == One("x") and hash(One("x")) == hash(One("x")) and len({One("x"), One("x"), One("y")}) == 2
    assert not hasattr(Ours(1), "__dict__") and Ours.__match_args__ == Theirs.__match_args__


def test_a_default_that_fails_leaves_no_open_value() -> None:
    with pytest.raises(TypeError):
        Ours()  # type: ignore[call-arg]
    assert type(Ours(1)) is Ours


def test_frozen() -> None:
    value = Ours(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        value.a = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del value.a


@pytest.mark.parametrize("arguments", [(), (1, (), {}, 4)])
def test_wrong_arguments(arguments: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        Ours(*arguments)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Ours(1, d=2)  # type: ignore[call-arg]


def test_the_standard_functions_work() -> None:
    value = Ours(1, ("x",), {"k": 2})
    assert dataclasses.is_dataclass(value)
    assert dataclasses.replace(value, a=5) == Ours(5, ("x",), {"k": 2})
    assert dataclasses.asdict(value) == dataclasses.asdict(Theirs(1, ("x",), {"k": 2}))
    assert [item.name for item in dataclasses.fields(Ours)] == ["a", "b", "c"]
    assert dataclasses.fields(Ours)[2].default_factory is dict


def test_copies() -> None:
    value = Ours(1, ("x",), {"k": 2})
    assert copy.deepcopy(value) == copy.copy(value) == pickle.loads(pickle.dumps(value)) == value


def test_patterns() -> None:
    match Ours(1, ("x",)):
        case Ours(a, b):
            assert (a, b) == (1, ("x",))


def test_the_types_of_the_project_use_it() -> None:
    assert dataclasses.replace(model.Device("v", "n", "a"), driver="1").driver == "1"
    assert hash(model.Need(model.Subject.ARCH, "f")) == hash(model.Need(model.Subject.ARCH, "f"))


def test_only_what_is_offered() -> None:
    with pytest.raises(TypeError, match="only frozen=True"):
        frozen.dataclass(frozen=False, slots=True)
    with pytest.raises(TypeError, match="no bases"):
        frozen.dataclass(frozen=True, slots=True)(type("Below", (One,), {}))
