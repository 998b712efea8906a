"""Shell scripts: which commands run, with which words, variables and lines."""

from __future__ import annotations

import pytest

from accel_env.judge.files.commands import commands
from accel_env.judge.files.script import Source
from accel_env.judge.files.substitute import expand
from accel_env.judge.files.values import UNKNOWN


def said(text: str, **variables: str) -> list[str]:
    """The commands; `?` before those that may not run, `...` for what only the shell knows."""
    rows = commands(Source(text), variables)
    return [("?" if row.maybe else "") + " ".join(row.words).replace(UNKNOWN, "...") for row in rows]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("pip install a && pip install b; pip install c", ["pip install a", "pip install b", "pip install c"]),
        ("pip install 'a>=1' \"b<2\" c\\>3", ["pip install a>=1 b<2 c>3"]),
        ("pip install a || true", ["?pip install a", "?true"]),
        ("(pip install a)", ["pip install a"]),
        ("pip install a | tee log", ["pip install a", "tee log"]),
        ("# pip install a\npip install b # c", ["pip install b"]),
        ("pip install a#b", ["pip install a#b"]),
        ("A=1 B=2 pip install a", ["pip install a"]),
        ("env A=1 pip install a", ["pip install a"]),
        ("bash -c 'pip install a && pip install b'", ["pip install a", "pip install b"]),
        ("bash -lc \"sh -c 'pip install a'\"", ["pip install a"]),
        ("sudo pip install a", ["pip install a"]),
        ("pip install $(cat list) b", ["pip install ... b"]),
        ("pip install `cat list` b", ["pip install ... b"]),
        ("pip install a \\\n  b", ["pip install a b"]),
        ("pip install a > log 2>&1", ["pip install a"]),
        ("for x in a b; do pip install $x; done", ["?pip install ..."]),
        ("case $X in a) pip install a;; esac", ["?pip install a"]),
    ],
)
def test_commands_of_a_script(text: str, wanted: list[str]) -> None:
    assert said(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('if [ "$GPU" = cuda ]; then pip install a; else pip install b; fi', ["pip install a"]),
        ('if [ "$GPU" = rocm ]; then pip install a; else pip install b; fi', ["pip install b"]),
        (
            'if [ "$GPU" = rocm ]; then pip install a; elif [ "$GPU" = cuda ]; then pip install b; else pip install c; fi',
            ["pip install b"],
        ),
        ('if [ "$GPU" != rocm ] && [ -n "$GPU" ]; then pip install a; fi', ["pip install a"]),
        ('if [ "$GPU" = rocm ] || [ "$GPU" = cuda ]; then pip install a; fi', ["pip install a"]),
        ('if [ -z "$GPU" ]; then pip install a; fi; pip install b', ["pip install b"]),
        ('if [ "$(uname -m)" = x86_64 ]; then pip install a; else pip install b; fi', ["?pip install a", "?pip install b"]),
        ('[ "$GPU" = cuda ] && pip install a', ["pip install a"]),
        ('[ "$GPU" = rocm ] && pip install a', []),
        ('if test "$GPU" = cuda; then if [ "$GPU" = rocm ]; then pip install a; fi; pip install b; fi', ["pip install b"]),
    ],
)
def test_conditions_that_the_file_settles(text: str, wanted: list[str]) -> None:
    assert [row for row in said(text, GPU="cuda") if "pip" in row] == wanted


def test_variables_live_from_their_assignment_on() -> None:
    assert said("X=a; pip install $X; X=b; pip install ${X}") == ["pip install a", "pip install b"]
    assert said('if [ "$U" = 1 ]; then X=a; else X=b; fi; pip install $X', U="1") == ["pip install a"]
    assert said('if [ "$(id)" = 1 ]; then X=a; else X=b; fi; pip install $X') == ["pip install ..."]
    assert said("export X=a Y='b c'; pip install $X $Y") == ["pip install a b c"]
    assert said("pip install $UNSET_NAME")[0] in ("pip install ...", "pip install")


def test_words_that_a_redirection_takes() -> None:
    (row,) = commands(Source("pip install torch>=2.9 numpy"), {})
    assert row.words == ("pip", "install", "torch", "numpy") and row.swallowed == ("=2.9",)


def test_lines_through_continuations() -> None:
    rows = commands(Source("apt-get update\n\npip install \\\n  a\npip install b"), {})
    assert [(row.words[0], row.line) for row in rows] == [("apt-get", 1), ("pip", 3), ("pip", 5)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("$A-${B}", "1-"),
        ("${A:-x}${B:-y}${B-z}", "1yz"),
        ("${A:+x}${B:+y}", "x"),
        ("${A#1}", UNKNOWN),
        ("\\$A", "$A"),
        ("$", "$"),
        ("${", UNKNOWN),
    ],
)
def test_variables_in_a_text(text: str, wanted: str) -> None:
    assert expand(text, {"A": "1"}) == wanted
