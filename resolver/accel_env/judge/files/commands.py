"""Words of a shell script -> simple commands, with what is known about whether they run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from accel_env.judge.files.script import Source, Word, words
from accel_env.judge.files.values import UNKNOWN

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_PREFIXES = frozenset(
    {"then", "else", "do", "{", "!", "time", "exec", "command", "sudo", "nohup", "if", "elif", "while", "until"}
)
_OPENERS = frozenset({"if", "while", "until", "for", "case", "select"})
_LOOPS = frozenset({"for", "case", "select"})  # what follows on the same line is no command
_CLOSERS = frozenset({"fi", "done", "esac", "}"})
_TESTS = frozenset({"[", "[[", "test"})
_DEPTH = 6


@dataclass(frozen=True, slots=True)
class Command:
    """A simple command. `maybe`: it depends on something that only the build knows, or its failure is passed over."""

    words: tuple[str, ...]
    line: int
    maybe: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    swallowed: tuple[str, ...] = ()


@dataclass(slots=True)
class _Frame:
    """An open `if` (or loop). `now`: does this branch run (None: nobody knows); `taken`: has an earlier one run.

    `asking`: its condition is being read, with `answer` so far.
    """

    now: bool | None
    taken: bool | None = False
    asking: bool = False
    answer: bool | None = True


class _Reader:
    def __init__(self, source: Source, variables: Mapping[str, str], depth: int) -> None:
        self.source, self.depth = source, depth
        self.variables = dict(variables)
        self.frames: list[_Frame] = []
        self.chain: bool | None = True
        self.found: list[Command] = []

    def read(self, inside: bool) -> list[Command]:
        """The commands that may run; `inside`: the whole script may not."""
        current: list[Word] = []
        last = ""
        for word in words(self.source.text, self.variables):
            if not word.operator:
                current.append(word)
                continue
            self._command(current, last, word.text, inside)
            current, last = [], word.text
        self._command(current, last, "", inside)
        return self.found

    def _command(self, found: list[Word], before: str, after: str, inside: bool) -> None:
        if before in ("", ";", "\n", "&", ";;", "(", ")"):
            self.chain = True
        plain = [word.text for word in found if not word.swallowed]
        if plain and plain[0] in _CLOSERS:
            if plain[0] != "}" and self.frames:
                self.frames.pop()
            return
        self._keywords(plain)
        if not plain:
            return
        runs = self._runs(before)
        frame = self.frames[-1] if self.frames and self.frames[-1].asking else None
        if plain[0] in _TESTS or frame is not None:
            verdict = _test(plain) if plain[0] in _TESTS else None
            if frame is not None:
                frame.answer = _either(frame.answer, verdict) if before == "||" else _both(frame.answer, verdict)
            if plain[0] in _TESTS:
                self.chain = _both(self.chain, verdict)
                return
        if runs is False:
            return
        maybe = runs is None or inside or before == "||" or after == "||"
        self._emit(plain, found, maybe)

    def _keywords(self, plain: list[str]) -> None:
        """Take the keywords at the front; nothing is left of a line that begins a loop."""
        while plain and plain[0] in _PREFIXES | _OPENERS:
            self._keyword(plain[0])
            if plain[0] in _LOOPS:
                plain.clear()
            del plain[:1]

    def _keyword(self, head: str) -> None:
        """Opens and turns branches."""
        if head in _OPENERS:
            self.frames.append(_Frame(None, asking=head == "if"))
        elif not self.frames:
            return
        frame = self.frames[-1]
        if head == "then" and frame.asking:
            frame.asking = False
            frame.now = _both(None if frame.taken is None else not frame.taken, frame.answer)
        elif head in ("else", "elif"):
            frame.taken = None if frame.now is None or frame.taken is None else frame.taken or frame.now
            frame.now = None if frame.taken is None else not frame.taken
            frame.asking, frame.answer = head == "elif", True

    def _runs(self, before: str) -> bool | None:
        state: bool | None = self.chain if before in ("&&", "") else True
        for frame in self.frames:
            state = _both(state, frame.now)
        return state

    def _emit(self, plain: list[str], found: list[Word], maybe: bool) -> None:
        swallowed = tuple(word.text for word in found if word.swallowed)
        own: dict[str, str] = {}
        if plain[0] == "env":
            plain.pop(0)
        while plain and (match := _ASSIGNMENT.fullmatch(plain[0])):
            own[match[1]] = match[2]
            plain.pop(0)
        line = self.source.line_at(found[0].place)
        if not plain or plain[0] in ("export", "declare", "local", "readonly"):
            pairs = (_ASSIGNMENT.fullmatch(word) for word in plain[1:])
            self._set(own | {match[1]: match[2] for match in pairs if match}, maybe)
            return
        inner = _script_of(plain)
        if inner is not None and self.depth:
            nested = Source(inner, (0,), (line,))
            self.found += [
                Command(c.words, line, c.maybe, c.variables, c.swallowed)
                for c in _Reader(nested, {**self.variables, **own}, self.depth - 1).read(maybe)
            ]
            return
        self.found.append(Command(tuple(plain), line, maybe, {**self.variables, **own}, swallowed))

    def _set(self, values: Mapping[str, str], maybe: bool) -> None:
        """Assignments; what may not happen leaves a variable with two possible values."""
        for name, value in values.items():
            self.variables[name] = value if not maybe or self.variables.get(name) == value else UNKNOWN


def commands(source: Source, variables: Mapping[str, str]) -> tuple[Command, ...]:
    """The simple commands of a script that run or may run; never fails."""
    return tuple(_Reader(source, variables, _DEPTH).read(inside=False))


def _both(a: bool | None, b: bool | None) -> bool | None:
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def _either(a: bool | None, b: bool | None) -> bool | None:
    if a is True or b is True:
        return True
    return None if a is None or b is None else False


def _script_of(plain: list[str]) -> str | None:
    """The script of `bash -c '...'`."""
    if plain[0].rpartition("/")[2] not in ("bash", "sh", "dash", "zsh", "ash"):
        return None
    for index, word in enumerate(plain[1:], 1):
        if word.startswith("-") and not word.startswith("--") and word.endswith("c"):
            return plain[index + 1] if index + 1 < len(plain) else None
        if not word.startswith(("-", "+")):
            return None
    return None


def _test(plain: list[str]) -> bool | None:
    """What `[ a = b ]` says, where both sides are known."""
    inner = [word for word in plain[1:] if word not in ("]", "]]")]
    if any(UNKNOWN in word for word in inner):
        return None
    if len(inner) == 3 and inner[1] in ("=", "==", "!="):
        if "*" in inner[2]:
            return None
        return (inner[0] == inner[2]) == (inner[1] != "!=")
    if len(inner) == 2 and inner[0] in ("-z", "-n"):
        return (not inner[1]) == (inner[0] == "-z")
    return None
