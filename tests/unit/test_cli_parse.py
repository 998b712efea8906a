"""The quick parser and the typer application read one table alike, and what neither can read is a usage error."""
from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import SimpleNamespace

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_env.__main__ import main
from accel_env.cli import full, quick
from accel_env.cli.table import Verb, Words
from accel_env.cli.verbs import MODULES, verb_module
from accel_env.errors import UsageError


class Reader:
    """Reads words through the real typer application, with verbs that only remember what they were given."""

    def __init__(self) -> None:
        self.seen: list[Words] = []
        self.command = typer.main.get_command(self._build())

    def _build(self) -> typer.Typer:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                full, "verb_module", lambda path: SimpleNamespace(VERB=verb_module(path).VERB, run=self.seen.append)
            )
            return full.build()

    def read(self, words: Sequence[str]) -> Words:
        self.seen.clear()
        self.command(args=list(words), prog_name="accel-env", standalone_mode=False)
        return self.seen[0]


READER = Reader()
VALUES = st.sampled_from(["torch", "bitsandbytes>=0.49", "RTX 9990:2", "x86_64", "venv", "newest", "a=b", "", "--", "-", "é"])


def words_of(verb: Verb) -> st.SearchStrategy[list[str]]:
    flags = [(flag, option) for option in verb.options for flag in option.flags]
    pieces = [VALUES.map(lambda value: [value])]
    for flag, option in flags:
        pieces.append(st.just([flag]))
        pieces.append(VALUES.map(lambda value, flag=flag: [f"{flag}={value}"]))  # type: ignore[misc]
        if option.metavar:
            pieces.append(VALUES.map(lambda value, flag=flag: [flag, value]))  # type: ignore[misc]
            if not flag.startswith("--"):
                pieces.append(VALUES.map(lambda value, flag=flag: [flag + value]))  # type: ignore[misc]
    return st.lists(st.one_of(pieces), max_size=6).map(lambda lists: [word for words in lists for word in words])


def outcome(verb: Verb, read: Words | Exception) -> object:
    if isinstance(read, Exception):
        return str(read)
    dests = [option.dest for option in verb.options] + ([verb.argument.dest] if verb.argument else [])
    return {dest: read.many(dest)[:1] if _switch(verb, dest) else read.many(dest) for dest in dests}


def _switch(verb: Verb, dest: str) -> bool:
    return any(option.dest == dest and not option.metavar for option in verb.options)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(MODULES)).flatmap(lambda path: words_of(verb_module(path).VERB).map(lambda words: (path, words))))
def test_both_parsers_read_alike(case: tuple[tuple[str, ...], list[str]]) -> None:
    path, words = case
    read = quick.parse([*path, *words])
    if read is None:
        return  # declined: typer alone reads it
    verb, given_ = read
    ours: Words | Exception
    theirs: Words | Exception
    try:
        ours = Words(verb, given_, words)
    except UsageError as error:
        ours = error
    try:
        theirs = READER.read([*path, *words])
    except UsageError as error:
        theirs = error
    assert outcome(verb, ours) == outcome(verb, theirs)


@pytest.mark.parametrize(
    "line", ["resolve torch --json -r a.txt", "matrix show torch==9.9.1", "detect -o h.json", "lock torch -oout --offline"]
)
def test_ordinary_commands_take_the_quick_way(line: str) -> None:
    assert quick.parse(line.split()) is not None


@pytest.mark.parametrize(
    "line", ["", "--help", "resolve --help", "resolve torch --pyton 3", "resolve --device", "resolve --json=1", "matrix", "nope"]
)
def test_everything_else_is_left_to_typer(line: str) -> None:
    assert quick.parse(line.split()) is None


def test_quick_way_imports_no_typer() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from accel_env.cli import quick; quick.parse(['resolve', 'torch'])\n"
        "heavy = {'typer', 'click', 'rich', 'argparse', 'json', 'shutil'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert [m for m in sys.modules if m.startswith('accel_env.cli.')] == ['accel_env.cli.table', 'accel_env.cli.verbs', "
        "'accel_env.cli.quick', 'accel_env.cli.options', 'accel_env.cli.resolve'], sorted(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr == ""


@pytest.mark.parametrize(
    ("line", "told", "hint"),
    [
        ("resolv torch", "No such command 'resolv'", "accel-env --help"),
        ("resolve torch --pyton 3.12", "--python", "accel-env resolve --help"),
        ("resolve torch --device", "'--device' requires an argument", "accel-env resolve --help"),
        ("matrix show a b", "b", "accel-env matrix show --help"),
        ("matrix", "Missing command", "accel-env --help"),
    ],
)
def test_misread_words_are_a_usage_error(line: str, told: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: usage\n") and told in err and hint in err.splitlines()[-1]


def test_usage_error_as_json_leaves_stdout_empty(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["resolve", "--nonsense", "--json"]) == 2
    out, err = capsys.readouterr()
    error: Mapping[str, object] = json.loads(err)["error"]
    assert out == "" and error["exit_code"] == 2 and "--nonsense" in str(error["message"])


def test_no_words_print_the_help_aside(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    out, err = capsys.readouterr()
    assert out == "" and all(path[0] in err for path in MODULES)


@pytest.mark.parametrize("path", [(), ("matrix",), *MODULES])
def test_help_names_every_option(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*path, "--help"]) == 0
    out = capsys.readouterr().out
    options = verb_module(path).VERB.options if path in MODULES else ()
    assert all(flag in out for option in options for flag in option.flags)


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip()[0].isdigit()
