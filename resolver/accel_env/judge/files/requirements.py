"""Requirements files: lines, options, includes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from accel_env.judge.files import piplike, requirement
from accel_env.judge.files.errors import broken
from accel_env.judge.files.values import UNKNOWN, Install, Wanted

DEPTH = 8
IGNORED = "ignored"  # the key of the first option that stands where no installer reads it
_TRUE = frozenset({"1", "true", "yes", "on"})
_HASH = re.compile(r"\s--hash[= ]\S+")
_OPTION = re.compile(r"\s--(?:global-option|config-settings?|install-option|build-option)[= ]\S+")
# Options of the whole file: behind a requirement nothing reads them.
_IGNORED = re.compile(r"\s(?:--(?:extra-)?index-url|--find-links|-i|-f)[= ]\s*\S+")
_VARIABLE = re.compile(r"\$\{[A-Z0-9_]+\}")

# The text of a file by its name, None where there is none.
Opener = Callable[[str], str | None]


@dataclass(slots=True)
class Listed:
    """What a requirements file and those that it includes say."""

    wanted: list[Wanted] = field(default_factory=list)
    words: piplike.Words = field(default_factory=piplike.Words)
    options: dict[str, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def read(text: str, file: str, opener: Opener) -> Listed:
    """The requirements of a file. InputError with file and line for a line that is none."""
    listed = Listed()
    _read(text, file, opener, listed, DEPTH)
    return listed


def as_install(listed: Listed, tool: str, where: str, more: piplike.Words | None = None) -> Install:
    """The listed requirements as one act of installing, with the options of a command besides."""
    words, own = listed.words, more or piplike.Words()
    return Install(
        tool=tool,
        wanted=tuple(listed.wanted),
        where=where,
        index=own.index or words.index,
        extras=(*own.extras, *words.extras),
        links=(*own.links, *words.links),
        constrained=bool(own.constraints or words.constraints),
        upgrade=own.upgrade or own.reinstall,
        no_deps=own.no_deps,
        isolated=own.isolated,
        pre=own.pre or words.pre,
        hashes=own.hashes or words.hashes,
    )


def _read(text: str, file: str, opener: Opener, listed: Listed, depth: int) -> None:
    listed.files.append(file)
    for number, line in logical_lines(text):
        if UNKNOWN in line:
            raise broken(file, number, "there is a NUL character in this line", "requirements")
        if line.startswith("-"):
            add_option(line, number, file, opener, listed, depth)
            continue
        if _IGNORED.search(line):
            listed.options.setdefault(IGNORED, f"{file}:{number}")
        found = one(line, f"{file}:{number}", file, number)
        if found is not None:
            listed.wanted.append(found)


def one(line: str, where: str, file: str, number: int) -> Wanted | None:
    """The requirement of one line, hashes included. InputError where it is none."""
    plain = _IGNORED.sub("", _OPTION.sub("", _HASH.sub("", line)))
    try:
        found = requirement.parse(_VARIABLE.sub(UNKNOWN, plain), where)
    except ValueError as error:
        raise broken(file, number, str(error), "requirements") from None
    return replace(found, hashed=True) if found and ("--hash=" in line or "--hash " in line) else found


def add_option(line: str, number: int, file: str, opener: Opener, listed: Listed, depth: int = DEPTH) -> None:
    """Take a line that is an option (`--extra-index-url ...`, `-r other.txt`) into what is listed."""
    words = piplike.read(_VARIABLE.sub(UNKNOWN, line).replace("=", " ", 1).split() if line.startswith("--") else line.split())
    for name in words.files:
        path = os.path.normpath(os.path.join(os.path.dirname(file), name))
        text = opener(path)
        if text is None:
            listed.missing.append(path)
            continue
        if not depth:
            raise broken(file, number, "requirements files include each other too deeply", "requirements")
        _read(text, path, opener, listed, depth - 1)
    where = f"{file}:{number}"
    target = listed.words
    if words.index:
        target.index = words.index
        listed.options["index"] = where
    for kind, mine, theirs in (("extras", target.extras, words.extras), ("links", target.links, words.links)):
        mine += theirs
        if theirs:
            listed.options.setdefault(kind, where)
    target.constraints += words.constraints
    target.pre = target.pre or words.pre
    target.hashes = target.hashes or words.hashes
    target.no_index = target.no_index or words.no_index


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """(number of the first line, content) without comments and continuations."""
    held: list[str] = []
    start = 0
    for number, raw in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        if raw.strip().startswith("#"):
            continue
        start = start or number
        if raw.rstrip().endswith("\\"):
            held.append(raw.rstrip()[:-1])
            continue
        held.append(raw)
        line = re.split(r"\s#", " ".join(held), maxsplit=1)[0].strip()
        if line:
            yield start, line
        held, start = [], 0
    line = re.split(r"\s#", " ".join(held), maxsplit=1)[0].strip()
    if line:
        yield start, line


def with_variables(words: piplike.Words, tool: str, environment: Mapping[str, str]) -> piplike.Words:
    """The options that pip or uv take from environment variables, under those of the command."""
    own = {name.partition("_")[2]: value for name, value in environment.items() if name.startswith(f"{tool.upper()}_")}
    words.index = words.index or own.get("DEFAULT_INDEX", "") or own.get("INDEX_URL", "")
    words.extras += f"{own.get('EXTRA_INDEX_URL', '')} {own.get('INDEX', '')}".split()
    words.links += own.get("FIND_LINKS", "").split()
    words.constraints += own.get("CONSTRAINT", "").split()
    words.backend = words.backend or own.get("TORCH_BACKEND", "")
    words.strategy = words.strategy or own.get("INDEX_STRATEGY", "")
    words.pre = words.pre or own.get("PRE", "") in _TRUE
    words.hashes = words.hashes or own.get("REQUIRE_HASHES", "") in _TRUE
    if "NO_BUILD_ISOLATION" in own:
        # pip's variable is read the other way round: 0 or no switch the isolation off; everybody who sets it wants that
        words.isolated = False
    return words
