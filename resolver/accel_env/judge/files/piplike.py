"""The words of `pip install` and `uv pip install`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

# Options that take a value and tell nothing here.
_MUTE = """
--no-binary --only-binary -t --target --prefix --root --platform --implementation --abi --progress-bar --upgrade-strategy --proxy
--timeout --retries --trusted-host --cert --client-cert --cache-dir --log --config-settings -C --config-setting --global-option
--build-option --install-option --src --report --exists-action --use-feature --use-deprecated --overrides --override
--build-constraint --build-constraints -b --excludes --exclude --exclude-newer --exclude-newer-package --prerelease --resolution
--link-mode --keyring-provider --refresh-package --reinstall-package --no-build-isolation-package --no-build-package
--no-binary-package --no-sources-package --fork-strategy --python-platform --config-file --directory --project
--allow-insecure-host --group --extra --no-group --only-group --no-extra --hash --build --root-user-action --python-version
--color --dest -d -w --wheel-dir --package --no-install-package
"""
_TAKES_VALUE = frozenset(_MUTE.split())
_INDEX = ("-i", "--index-url", "--pypi-url", "--default-index")
_SPEAKING = frozenset(
    (
        *("--requirement", "--requirements", "--find-links", "--constraint", "--constraints", "--upgrade-package"),
        *("--python", "--torch-backend", "--index-strategy"),
    )
)
_EXTRA = ("--extra-index-url", "--index")


@dataclass(slots=True)
class Words:
    """What the words of one command say, as typed."""

    requirements: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    index: str = ""
    extras: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    constraints: list[str] = field(default_factory=list)
    python: str = ""
    backend: str = ""
    strategy: str = ""
    upgraded: list[str] = field(default_factory=list)
    upgrade: bool = False
    no_deps: bool = False
    isolated: bool = True
    pre: bool = False
    hashes: bool = False
    no_index: bool = False
    reinstall: bool = False


def read(words: Sequence[str]) -> Words:
    """The words after `install`."""
    found = Words()
    for flag, value in _options(words):
        if not flag:
            found.requirements.append(value)
        elif flag in _INDEX:
            found.index = value
        elif flag in _EXTRA:
            found.extras += value.split()
        else:
            _other(found, flag, value)
    return found


def _other(found: Words, flag: str, value: str) -> None:
    lists = {
        "-r": found.files, "--requirement": found.files, "--requirements": found.files,
        "-f": found.links, "--find-links": found.links,
        "-c": found.constraints, "--constraint": found.constraints, "--constraints": found.constraints,
        "-P": found.upgraded, "--upgrade-package": found.upgraded,
    }  # fmt: skip
    texts = {"-p": "python", "--python": "python", "--torch-backend": "backend", "--index-strategy": "strategy"}
    switches = {
        "-U": "upgrade", "--upgrade": "upgrade", "--no-deps": "no_deps", "--pre": "pre", "--require-hashes": "hashes",
        "--no-index": "no_index", "--force-reinstall": "reinstall", "-I": "reinstall", "--ignore-installed": "reinstall",
        "--reinstall": "reinstall",
    }  # fmt: skip
    if flag in lists:
        lists[flag].append(value)
    elif flag in texts:
        setattr(found, texts[flag], value)
    elif flag in switches:
        setattr(found, switches[flag], True)
    elif flag == "--no-build-isolation":
        found.isolated = False


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(flag, value); plain words have no flag, an editable project is neither."""
    rest = list(words)
    rest.reverse()
    while rest:
        word = rest.pop()
        if word == "--":
            yield from (("", plain) for plain in reversed(rest))
            return
        if not word.startswith("-") or word == "-":
            yield "", word
        elif word.startswith("--"):
            flag, equals, value = word.partition("=")
            if flag == "--editable":
                value = value or (rest.pop() if rest else "")
                continue
            if equals:
                yield flag, value
            else:
                yield flag, rest.pop() if rest and _valued(flag) else ""
        else:
            yield from _short(word, rest)


def verb(words: Sequence[str]) -> int:
    """Where the verb stands after the options of the program itself (`pip --python X install`); -1 without one."""
    place = 0
    while place < len(words):
        word = words[place]
        if not word.startswith("-"):
            return place
        place += 1 if "=" in word or not _valued(word) else 2
    return -1


def _valued(flag: str) -> bool:
    return flag in _INDEX or flag in _EXTRA or flag in _TAKES_VALUE or flag in _SPEAKING


def _short(word: str, rest: list[str]) -> Iterator[tuple[str, str]]:
    """`-rfile`, `-r file`, `-qU`."""
    flag, glued = word[:2], word[2:]
    if flag in ("-r", "-c", "-f", "-i", "-p", "-P", "-t", "-C", "-e", "-d", "-w", "-b"):
        value = glued.removeprefix("=") or (rest.pop() if rest else "")
        if flag != "-e":
            yield flag, value
        return
    for letter in word[1:]:
        yield f"-{letter}", ""
