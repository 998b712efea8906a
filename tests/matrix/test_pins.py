"""Releases that exclude each other by what they require outside the matrix."""
from __future__ import annotations

import pytest

from accel_env.matrix.packages import Build, Package, Release
from accel_env.matrix.pins import clashes, disjoint
from accel_env.model import Fact

PLATFORM = "linux_x86_64"


def package(name: str, releases: dict[str, tuple[str, ...]], *, own: tuple[str, ...] | None = None, module: str = "") -> Package:
    """A package of one build a release; `own`: what that build requires instead of the release's list."""
    found = []
    for version, requires in releases.items():
        build = Build("any", "", "pypi", (PLATFORM,), "", ("py3",), own, (), 0, "", "", (), (), "f", "")
        found.append(Release(version, "", "", requires, "f", (build,), ""))
    return Package(name, module or name, "", (), tuple(found), f"packages/{name}.yaml")


@pytest.mark.parametrize(("a", "b", "apart"), [
    ("==1.0", "==1.1", True), ("==1.0", "==1.0.0", False), ("==1.0", ">=1.1", True), ("==1.2", ">=1.1,<2", False),
    (">=0.7.11,<0.8.0", ">=1.3.0,<1.4.0", True), (">=1.3", "<1.3", True), (">=1.3", "<=1.3", False), (">1.3", "<=1.3", True),
    ("==2.10.*", ">=2.10.2", False), ("==2.10.*", "==2.10.4", False), ("==2.10.*", "==2.11.0", True), ("~=1.4", "<1.4", True),
    (">1.0", "<1.1", False), ("!=1.3.*,>=1.3", "<2", False), ("!=1.3", ">=1.3,<1.4", False), ("==1.0rc1", ">=1.0", True),
])
def test_specifiers_that_no_release_can_satisfy_together(a: str, b: str, apart: bool) -> None:
    assert disjoint(a, b) is apart
    assert disjoint(b, a) is apart


def test_a_release_is_told_what_may_be_beside_it() -> None:
    one = package("one", {"2.0": ("parser==0.2", "plain"), "1.0": ("parser==0.1",)})
    two = package("two", {"2.0": ("parser==0.3",), "1.1": ("parser==0.2",), "1.0": ("parser>=0.1,<0.3",)})
    rows, facts = clashes([one, two], {"packages/one:metadata": Fact("packages/one:metadata", "", "", "vendor", "2026-11-30")})
    because = "pins:one+two"
    assert rows["one"] == {"1.0": [("two", "<=1.0", "present", because)], "2.0": [("two", "<=1.1", "present", because)]}
    assert rows["two"] == {"2.0": [("one", "", "absent", because)], "1.1": [("one", ">=2.0", "present", because)]}
    fact = facts[because]
    assert "one 2.0 and two 2.0 want parser ==0.2 and ==0.3" in fact.text
    assert (fact.grade, fact.checked) == ("vendor", "2026-11-30")


def test_holes_in_the_middle_are_named_one_by_one() -> None:
    one = package("one", {"1.0": ("parser!=2.0",)})
    two = package("two", {"3.0": ("parser==3.0",), "2.0": ("parser==2.0",), "1.0": ("parser==1.0",)})
    assert clashes([one, two], {})[0]["one"] == {"1.0": [("two", "!=2.0", "present", "pins:one+two")]}


@pytest.mark.parametrize("other", [
    package("two", {"1.0": ('parser==0.3; extra == "all"',)}), package("two", {"1.0": ('parser==0.3; python_version < "3.11"',)}),
    package("two", {"1.0": ('parser==0.3; sys_platform == "win32"',)}), package("two", {"1.0": ("parser",)}),
    package("two", {"1.0": ("parser==0.3",)}, own=()), package("two", {"1.0": ("parser==0.3",)}, module="one"),
    package("two", {"1.0": ("not a requirement ==",)}),
], ids=["extra", "python", "platform", "unbounded", "another-list", "same-module", "no-requirement"])
def test_what_does_not_always_hold_keeps_nothing_apart(other: Package) -> None:
    assert clashes([package("one", {"1.0": ("parser==0.2",)}), other], {}) == ({}, {})


def test_what_the_matrix_holds_is_left_to_the_resolver() -> None:
    held = package("parser", {"0.2": (), "0.3": ()})
    pair = [package("one", {"1.0": ("parser==0.2",)}), package("two", {"1.0": ("parser==0.3",)})]
    assert clashes([*pair, held], {}) == ({}, {})
