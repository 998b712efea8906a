"""Commands of a build -> steps: pip, uv, conda, poetry, the package managers of operating systems, downloads."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from accel_env.judge.files import condalike, piplike, requirement, requirements
from accel_env.judge.files.commands import Command
from accel_env.judge.files.errors import broken
from accel_env.judge.files.values import UNKNOWN, Install, Removed, Step, Tools, Variable, Wanted
from accel_env.solve.problem import normalise

_PIP = re.compile(r"pip(?:\d(?:\.\d+)?)?(?:\.exe)?")
_PYTHON = re.compile(r"python(\d(?:\.\d+)?)?t?")
_SYSTEM = ("apt-get", "apt", "dnf", "yum", "microdnf", "tdnf", "zypper", "apk")
_WRAPPERS = frozenset({"nice", "ionice", "stdbuf", "timeout", "retry", "tini", "gosu", "xvfb-run"})
_CONDAS = frozenset({"conda", "mamba", "micromamba"})


@dataclass(frozen=True, slots=True)
class Context:
    """What a command is read with. `file`: the file it stands in; `find`: text and name of a file that a command names.

    `lock`: the steps of a lock file that a command syncs from, by the tool's name.
    """

    file: str
    find: Callable[[str], tuple[str, str] | None]
    lock: Callable[[str], tuple[Step, ...]] | None = None


def steps(command: Command, context: Context) -> tuple[Step, ...]:
    """What a command installs; empty for commands that install nothing."""
    words = _bare(command.words)
    if not words:
        return ()
    where = f"{context.file}:{command.line}"
    head, rest = words[0].rpartition("/")[2], words[1:]
    if _PYTHON.fullmatch(head) and rest[:1] == ("-m",):
        return _module(head, rest[1:], command, context, where)
    if head == "virtualenv":
        return _venv(rest, where)
    if _PIP.fullmatch(head):
        return _pip(rest, command, context, where)
    if head == "uv":
        return _uv(rest, command, context, where)
    if head in _CONDAS:
        return _conda(head, rest, command, context, where)
    if head == "poetry":
        return _synced("poetry", rest, context) if rest[:1] in (("install",), ("sync",)) else ()
    return _system(head, words, where)


def _system(head: str, words: tuple[str, ...], where: str) -> tuple[Step, ...]:
    """Commands that bring no Python packages: the system's package managers, downloads, which Python is the default."""
    rest = words[1:]
    if head in ("update-alternatives", "ln"):
        return _default(rest, where)
    if head in _SYSTEM and any(word in ("install", "add", "in") for word in rest):
        names = tuple(word for word in rest if not word.startswith("-") and word not in ("install", "add", "in"))
        return (Tools(names, where),)
    if head in ("wget", "curl", "aria2c", "sh", "bash") or ".run" in head:
        return (Tools(tuple(word for word in words if not word.startswith("-")), where),)
    return ()


def _module(python: str, rest: tuple[str, ...], command: Command, context: Context, where: str) -> tuple[Step, ...]:
    """What follows `python -m`."""
    if rest[:1] == ("pip",):
        return (*_version_of(python, where), *_pip(rest[1:], command, context, where))
    if rest[:2] == ("uv", "pip"):
        return _uv(rest[1:], command, context, where)
    return (*_version_of(python, where), *_venv(rest[1:], where)) if rest[:1] in (("venv",), ("virtualenv",)) else ()


def _default(rest: Sequence[str], where: str) -> tuple[Step, ...]:
    """What makes a Python the one that `python3` starts."""
    names = [word.rpartition("/")[2] for word in rest if not word.startswith("-")]
    target = next((name for name in names if _PYTHON.fullmatch(name) and "." in name), "")
    return _version_of(target, where) if target and {"python", "python3"} & set(names) else ()


def _venv(rest: Sequence[str], where: str) -> tuple[Step, ...]:
    return () if "--system-site-packages" in rest else (Tools(("venv",), where),)


def _bare(words: Sequence[str]) -> tuple[str, ...]:
    """The words without what only wraps the command (`timeout 60`, `conda run -n env`)."""
    rest = list(words)
    while rest and rest[0] in _WRAPPERS:
        rest.pop(0)
        while rest and (rest[0].startswith("-") or rest[0][:1].isdigit()):
            rest.pop(0)
    if len(rest) > 2 and rest[0].rpartition("/")[2] in _CONDAS and rest[1] == "run":
        rest = rest[2:]
        while rest and rest[0].startswith("-"):
            takes = rest.pop(0) in ("-n", "--name", "-p", "--prefix", "--cwd")
            if takes and rest:
                rest.pop(0)
    if rest[:2] == ["uv", "run"]:
        rest = [word for word in rest[2:] if not word.startswith("--")]
    return tuple(rest)


def _version_of(python: str, where: str) -> tuple[Step, ...]:
    match = _PYTHON.fullmatch(python)
    return (Tools((f"python={match[1]}",), where),) if match and match[1] and "." in match[1] else ()


def _pip(rest: Sequence[str], command: Command, context: Context, where: str) -> tuple[Step, ...]:
    place = piplike.verb(rest)
    asked = rest[place] if place >= 0 else ""
    plain = [word for word in rest[place + 1 :] if not word.startswith("-")]
    if asked == "uninstall":
        return (Removed(tuple(normalise(word) for word in plain), where),)
    if asked == "config":
        return _configured(plain, where)
    if asked not in ("install", "wheel", "download"):
        return ()
    words = piplike.read([*rest[:place], *rest[place + 1 :]])
    return _install("pip", words, command, context, where)


def _configured(words: Sequence[str], where: str) -> tuple[Step, ...]:
    """`pip config set global.index-url URL`: from here on like the variable of that name."""
    if len(words) < 2 or words[0] not in ("set", "unset"):
        return ()
    name = "PIP_" + words[1].rpartition(".")[2].upper().replace("-", "_")
    return (Variable(name, words[2] if words[0] == "set" and len(words) > 2 else "", where),)


def _uv(rest: Sequence[str], command: Command, context: Context, where: str) -> tuple[Step, ...]:
    plain = [word for word in rest if not word.startswith("-")]
    if plain[:2] == ["pip", "install"] or plain[:2] == ["pip", "sync"]:
        verb = rest.index(plain[1])
        words = piplike.read([*rest[: rest.index("pip")], *rest[verb + 1 :]])
        if plain[1] == "sync":
            words.files, words.requirements = words.requirements, []
        made = _install("uv", words, command, context, where)
        return (*((Tools((f"python={words.python}",), where),) if words.python[:1].isdigit() else ()), *made)
    if plain[:2] == ["pip", "uninstall"]:
        return (Removed(tuple(normalise(word) for word in plain[2:]), where),)
    if plain[:1] == ["sync"]:
        return _synced("uv", rest, context)
    if plain[:1] == ["add"]:
        return _install("uv", piplike.read([word for word in rest if word != "add"]), command, context, where)
    if plain[:1] == ["venv"] or plain[:2] == ["python", "install"]:
        asked = piplike.read([word for word in rest if word not in ("venv", "python", "install")])
        python = asked.python or (asked.requirements[0] if plain[0] == "python" and asked.requirements else "")
        names = (f"python={python}",) if python[:1].isdigit() else ()
        return (Tools((*names, "venv") if plain[0] == "venv" and "--system-site-packages" not in rest else names, where),)
    return ()


def _install(tool: str, words: piplike.Words, command: Command, context: Context, where: str) -> tuple[Step, ...]:
    words = requirements.with_variables(words, tool, command.variables)
    # a word that only the shell knows can be a requirement as well as an index
    open_words = any(word.startswith(UNKNOWN) for word in words.requirements)
    words.extras += [UNKNOWN] if open_words else []
    listed = requirements.Listed()
    skipped: list[str] = []
    for name in words.files:
        found = context.find(name) if UNKNOWN not in name else None
        if found is None:
            skipped.append(name.replace(UNKNOWN, "..."))
            continue
        text, path = found
        part = requirements.read(text, path, lambda inner: (context.find(inner) or (None,))[0])
        listed.wanted += part.wanted
        listed.words.index = part.words.index or listed.words.index
        listed.words.extras += part.words.extras
        listed.words.links += part.words.links
        listed.words.constraints += part.words.constraints
        listed.words.pre = listed.words.pre or part.words.pre
        listed.words.hashes = listed.words.hashes or part.words.hashes
        skipped += part.missing
    listed.wanted += _named(words.requirements, context.file, command.line, where)
    made = requirements.as_install(listed, tool, where, words)
    limits, read = _limits((*words.constraints, *listed.words.constraints), context)
    return (
        replace(
            made,
            limits=limits,
            constrained=made.constrained and (not read or any(row.name == "torch" for row in limits)),
            maybe=command.maybe or open_words,
            backend=words.backend if tool == "uv" else "",
            first_index=tool == "uv" and words.strategy in ("", "first-index"),
            variables=command.variables,
            swallowed=command.swallowed,
            skipped=tuple(skipped),
        ),
    )


def _limits(names: Sequence[str], context: Context) -> tuple[tuple[Wanted, ...], bool]:
    """(the rows of constraints files, whether all of them are here): one that the build makes may hold anything."""
    rows: list[Wanted] = []
    for name in names:
        found = context.find(name) if UNKNOWN not in name else None
        if found is None:
            return tuple(rows), False
        listed = requirements.read(found[0], found[1], lambda inner: (context.find(inner) or (None,))[0])
        rows += [row for row in listed.wanted if not row.vague]
        if listed.missing:
            return tuple(rows), False
    return tuple(rows), True


def _named(texts: Sequence[str], file: str, line: int, where: str) -> list[Wanted]:
    found = []
    for text in texts:
        try:
            wanted = requirement.parse(text, where)
        except ValueError as error:
            if UNKNOWN in text:
                continue
            raise broken(file, line, str(error), "requirements") from None
        if wanted is not None:
            found.append(wanted)
    return found


def _synced(tool: str, rest: Sequence[str], context: Context) -> tuple[Step, ...]:
    return context.lock(tool) if context.lock is not None else ()


def _conda(head: str, rest: Sequence[str], command: Command, context: Context, where: str) -> tuple[Step, ...]:
    plain = [word for word in rest if not word.startswith("-")]
    verb = next((word for word in plain if word in ("install", "create", "update")), "")
    if not verb:
        return ()
    words = condalike.read([word for word in rest if word not in (verb, "env")])
    made: list[Step] = []
    for name in words.files:
        found = context.find(name) if name.endswith((".yml", ".yaml")) and UNKNOWN not in name else None
        if found:
            made += condalike.environment(found[0], found[1]).steps
    wanted = tuple(filter(None, (condalike.spec(text, where) for text in words.specs)))
    pythons = tuple(f"python={w.spec.lstrip('=').removesuffix('.*')}" for w in wanted if w.name == "python" and w.spec)
    if pythons:
        made.append(Tools(pythons, where))
    kept = tuple(w for w in wanted if w.name != "python")
    if kept:
        made.append(Install("conda", kept, where, channels=words.channels, maybe=command.maybe))
    return tuple(made)


def relative(name: str, base: str) -> str:
    """A path that a file names, seen from where the program runs."""
    return os.path.normpath(os.path.join(os.path.dirname(base), name))
