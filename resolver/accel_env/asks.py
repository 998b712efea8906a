"""The asks of a request: words on the command line and lines of requirements files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from accel_env.errors import InputError, UsageError
from accel_env.model import Ask
from accel_env.solve.problem import merge, normalise, parse_ask
from accel_env.system.types import System

DEPTH = 8
STDIN = "standard input"
_ARCHIVES = (".whl", ".zip", ".tar.gz", ".tgz")
# Patterns as text: they are compiled only for a word that is no requirement.
_URL = r"(?:(?P<name>[A-Za-z0-9._-]+)(?:\[.*\])?\s*@\s*)?(?P<vcs>git|hg|svn|bzr)?\+?(?P<url>[a-z][a-z0-9.]+://?\S+)"
_PATH = r"\.{1,2}|(?:\.{0,2}|~|[A-Za-z]:)[/\\].*|\S+\.(?:whl|zip|tar\.gz|tgz)"
_FILE = (r"(?P<name>[A-Za-z0-9][A-Za-z0-9._]*?)-(?P<version>\d[A-Za-z0-9.!]*)(?:(?:\+|%2B)\S*?)?"
         r"(?:-\S*\.whl|\.tar\.gz|\.zip|\.tgz)")
_BUNDLE = r"@(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)"
_ONE_SIGN = r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:\s*=\s*|\s+)(?P<version>\d[\w.*+!]*)"
_EXPORT = "name the packages as words, or export them: `uv export --no-hashes`, `pip freeze`, `poetry export`"
# What a file is by its name's end -> what to do instead.
_OTHER_FILES = (
    ((".yml", ".yaml"), "write the packages of its pip section and of its dependencies into a requirements file"),
    ((".json",), "a machine is given with --host; packages come as words or in a requirements file"),
    (_ARCHIVES, "write its name and version as a requirement; a wheel of your own goes into an overlay"),
    ((".toml", ".py", ".cfg", "pipfile", "pipfile.lock", "poetry.lock", "uv.lock", "pdm.lock"), _EXPORT),
)


def read_asks(words: Sequence[str], files: Sequence[str], system: System) -> tuple[tuple[Ask, ...], tuple[str, ...]]:
    """(asks in order, notes about lines that say something else than a requirement).

    UsageError for a word that is no requirement, InputError (file and line) for a file that cannot be read or parsed.
    """
    asks = [_ask(word, f"argument {n}") for n, word in enumerate(words, 1)]
    notes: list[str] = []
    for name in files:
        asks += _file(name, system, notes, DEPTH)
    if not asks:
        origins = ", ".join(STDIN if name == "-" else name for name in files)
        raise UsageError(
            "nothing-asked",
            f"no requirement in {origins}" if files else "no package was named",
            hint="name at least one package, for example torch",
        )
    return merge(asks), tuple(notes)


def _ask(text: str, origin: str) -> Ask:
    """`parse_ask` with a hint that fits what people write instead of a requirement."""
    text = text.strip()
    if text.startswith("@"):
        return _bundle(text, origin)
    try:
        # By its characters alone the name of an archive could be that of a package.
        return parse_ask(f"./{text}" if text.endswith(_ARCHIVES) else text, origin)
    except UsageError as error:
        found = re.fullmatch(_URL, text)
        if found or re.fullmatch(_PATH, text):
            raise _place(text, origin, found) from None
        slip = re.fullmatch(_ONE_SIGN, text)
        if slip is None:
            raise
        raise UsageError(error.reference, error.message, hint=f"write '{slip['name']}=={slip['version']}'") from None


def _bundle(text: str, origin: str) -> Ask:
    """The ask for a bundle: its name with the sign. UsageError for anything that goes on behind the name."""
    found = re.fullmatch(_BUNDLE, text)
    if found is None:
        raise UsageError("bad-bundle", f"{origin}: {text!r} is no bundle: one is written @name, for example @finetune",
                         hint="write what bounds a member as a requirement of its own, for example 'torch<3'")
    return Ask(f"@{normalise(found['name'])}", "", (), text, origin)


def _place(text: str, origin: str, url: re.Match[str] | None) -> UsageError:
    """The error for a requirement that says where a file is; its hint names what is there, as far as the text tells."""
    kind = "is no requirement but a path" if not url else "names a version control system" if url["vcs"] else "names a URL"
    file = re.search(_FILE, text.rsplit("/", 1)[-1])
    name = (url["name"] or "") if url else ""
    if not name and url and url["vcs"]:
        name = url["url"].rstrip("/").rsplit("/", 1)[-1].partition("@")[0].removesuffix(".git")
    meant = f"{file['name'].replace('_', '-')}=={file['version']}" if file else f"{name or 'NAME'}==VERSION"
    return UsageError("bad-requirement", f"{origin}: {text!r} {kind}; the matrix picks files itself",
                      hint=f"write {meant!r}; a wheel of your own goes into an overlay (--overlay)")


def _text(name: str, system: System) -> str:
    """The text of a requirements file, or of standard input. InputError where it is of another kind or cannot be read."""
    for ends, hint in _OTHER_FILES:
        if name.lower().endswith(ends):
            raise InputError("not-requirements", f"-r reads requirements files, and {name} is none", hint=hint)
    from accel_env.system.files import check_file, read_text_file

    if name == "-" or name.startswith("/dev/fd/"):
        return read_text_file(name)
    check_file(name)
    text = system.read_text(name)
    if text is None:
        raise InputError("unreadable-file", f"cannot read the requirements file {name}",
                         hint="check the path; `-r -` reads standard input")
    return text.removeprefix("\ufeff")


def _file(name: str, system: System, notes: list[str], depth: int) -> list[Ask]:
    text, origin = _text(name, system), STDIN if name == "-" else name
    if not depth:
        raise InputError(
            "nested-requirements",
            f"{name}: requirements files include each other too deeply",
            hint="remove the circle of -r lines",
        )
    asks: list[Ask] = []
    for number, line in _logical_lines(text):
        if line.startswith("-"):
            asks += _option(name, f"{origin}:{number}", line, system, notes, depth)
            continue
        try:
            asks.append(_ask(line, f"{origin}:{number}"))
        except UsageError as error:
            raise InputError(error.reference, error.message, hint=error.hint) from None
    return asks


def _option(name: str, where: str, line: str, system: System, notes: list[str], depth: int) -> list[Ask]:
    flag, _, value = line.replace("=", " ", 1).partition(" ")
    if flag in ("-r", "--requirement") or (flag.startswith("-r") and not flag.startswith("--")):
        included = value.strip() or flag[2:]
        return _file(str(PurePath(name).parent / included), system, notes, depth - 1)
    reasons = {
        "-e": "it names a project of your own; ask for what that needs",
        "-c": "constraints are not read; write their ranges as requirements",
    }
    short = {"--editable": "-e", "--constraint": "-c"}.get(flag, flag[:2])
    notes.append(f"{where}: {flag} is left out: {reasons.get(short, 'the matrix names the index of every package it picks')}")
    return []


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """(line number, requirement) without comments, hashes and continuations."""
    held, start = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        start = start or number
        held += raw.rstrip("\\") if raw.rstrip().endswith("\\") else raw
        if raw.rstrip().endswith("\\"):
            continue
        yield from ((start, line) for line in [_bare(held)] if line)
        held, start = "", 0
    if _bare(held):  # a last line that promises another one
        yield start, _bare(held)


def _bare(line: str) -> str:
    """A line without its comment and hashes."""
    return "" if line.lstrip().startswith("#") else line.split(" #", 1)[0].split(" --hash", 1)[0].strip()
