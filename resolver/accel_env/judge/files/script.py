"""Shell scripts as far as installing goes: words with their lines, and whether a command is sure to run."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from accel_env.judge.files.substitute import variable
from accel_env.judge.files.values import UNKNOWN

OPERATORS = ("&&", "||", ";;", ";", "|", "&", "(", ")", "\n")


@dataclass(frozen=True, slots=True)
class Source:
    """A text made of pieces of a file: `starts[n]` is where the piece from line `lines[n]` begins."""

    text: str
    starts: tuple[int, ...] = (0,)
    lines: tuple[int, ...] = (1,)

    def line_at(self, place: int) -> int:
        """The line of the file at a place of the text."""
        index = bisect_right(self.starts, place) - 1
        return self.lines[index] + self.text.count("\n", self.starts[index], place)


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a command. `operator`: it stands between commands. `swallowed`: a redirection took it as a file's name."""

    text: str
    place: int
    operator: bool = False
    swallowed: bool = False


class _Lexer:
    """One pass over a script; never fails, whatever the text."""

    def __init__(self, text: str, variables: dict[str, str]) -> None:
        self.text = text
        self.variables = variables
        self.place = 0
        self.parts: list[str] = []
        self.begun = -1

    def words(self) -> Iterator[Word]:
        """Words and operators in order; comments and here-documents are left out."""
        text, size = self.text, len(self.text)
        redirected = False
        while self.place < size:
            char = text[self.place]
            if char in " \t\r":
                self.place += 1
            elif char == "#" and self.begun < 0 and (not self.place or text[self.place - 1] in " \t\r\n;&|("):
                end = text.find("\n", self.place)
                self.place = size if end < 0 else end
                continue
            elif operator := next((o for o in OPERATORS if text.startswith(o, self.place)), ""):
                yield from self._done(redirected)
                redirected = False
                yield Word(operator, self.place, operator=True)
                self.place += len(operator)
                continue
            elif char in "<>":
                yield from self._redirect(redirected)
                redirected = True
                continue
            else:
                yield from self._piece(char, redirected)
                continue
            if self.begun >= 0:
                yield from self._done(redirected)
                redirected = False
        yield from self._done(redirected)

    def _redirect(self, redirected: bool) -> Iterator[Word]:
        # a number right before it is a file descriptor, not a word
        if self.begun >= 0 and "".join(self.parts).isdigit():
            self.parts, self.begun = [], -1
        yield from self._done(redirected)
        while self.place < len(self.text) and self.text[self.place] in "<>&|":
            self.place += 1

    def _done(self, redirected: bool) -> Iterator[Word]:
        if self.begun >= 0:
            yield Word("".join(self.parts), self.begun, swallowed=redirected)
            self.parts, self.begun = [], -1

    def _piece(self, char: str, redirected: bool) -> Iterator[Word]:
        """One quoted stretch, expansion or character of a word."""
        if self.begun < 0:
            self.begun = self.place
        if char == "'":
            end = self.text.find("'", self.place + 1)
            end = len(self.text) if end < 0 else end
            self.parts.append(self.text[self.place + 1 : end])
            self.place = end + 1
        elif char == '"':
            self._quoted()
        elif char == "\\":
            self._escaped()
        elif char in "$`":
            begun = self.begun
            for n, part in enumerate(self._expansion().split()):
                if n:  # an unquoted value with blanks is several words
                    yield from self._done(redirected)
                    self.begun = begun
                self.parts.append(part)
            if not self.parts:
                self.begun = -1
        else:
            self.parts.append(char)
            self.place += 1

    def _escaped(self) -> None:
        """A character after a backslash; a line that goes on is no word."""
        following = self.text[self.place + 1 : self.place + 2]
        if following != "\n":
            self.parts.append(following)
        elif not self.parts:
            self.begun = -1
        self.place += 2

    def _quoted(self) -> None:
        self.place += 1
        while self.place < len(self.text):
            char = self.text[self.place]
            if char == '"':
                self.place += 1
                return
            if char == "\\" and self.place + 1 < len(self.text):
                following = self.text[self.place + 1]
                self.parts.append("" if following == "\n" else following if following in '"\\$`' else char + following)
                self.place += 2
            elif char in "$`":
                self.parts.append(self._expansion())
            else:
                self.parts.append(char)
                self.place += 1

    def _expansion(self) -> str:
        """The value of what starts here; what a command would print is unknown."""
        text = self.text
        if text[self.place] == "`":
            end = text.find("`", self.place + 1)
            self.place = len(text) if end < 0 else end + 1
            return UNKNOWN
        if text.startswith("$(", self.place):
            depth, place = 1, self.place + 2
            while place < len(text) and depth:
                depth += {"(": 1, ")": -1}.get(text[place], 0)
                place += 1
            self.place = place
            return UNKNOWN
        value, self.place = variable(text, self.place, self.variables, UNKNOWN)
        return value


def words(text: str, variables: dict[str, str]) -> Iterator[Word]:
    """The words and operators of a script, one by one: what is put into `variables` meanwhile counts for the words after it."""
    return _Lexer(text, variables).words()
