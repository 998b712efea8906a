"""The judging verbs: from what the user named to an Environment, and from its findings to the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accel_env.judge.signatures import LogScan
    from accel_env.judge.types import Environment
    from accel_env.matrix.load import Matrix
    from accel_env.model import Host

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sources:
    """What `doctor` judges, as typed; nothing at all means this interpreter on this machine.

    `host_file` counts before what the texts say about the machine; `host_words`: further options describe it.
    """

    report: str = ""
    collect_env: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    python: str = ""
    imports: bool = False
    host_file: str = ""
    host_words: bool = False

    @property
    def described(self) -> bool:
        """Whether texts describe the environment, so that nothing of this machine is meant."""
        return bool(self.report or self.collect_env or self.errors or self.logs) and not (self.python or self.imports)


def doctor(sources: Sources, matrix: Matrix, host_of: Callable[[Host | None], Host]) -> Json:
    """The diagnosis of interface.md. `host_of` gives the machine that options name, else this one; or alters a host by them."""
    from accel_env.judge.doctor import judge
    from accel_env.judge.findings import diagnosis
    from accel_env.judge.signatures import read

    parts, judged = _parts(sources, matrix, host_of)
    environment = _merged(parts)
    if sources.described and sources.host_words and not sources.host_file:
        environment = replace(environment, host=host_of(environment.host))
    scans = [_scanned(name, matrix) for name in sources.logs]
    clues = (*(clue for scan in scans for clue in scan.clues), *read(environment.texts, matrix))
    answer = diagnosis(judge(environment, clues, matrix), environment, (*judged, *sources.logs))
    if sources.logs:
        answer["lines"] = [
            {"file": name, "line": number, "text": text}
            for name, scan in zip(sources.logs, scans, strict=True)
            for number, text in scan.lines
        ]
    if (sources.errors or sources.logs) and not clues:
        answer["notes"] = [
            "not recognised: no error text that accel-env knows; what follows is what the environment itself shows"
        ]
    return answer


def _parts(sources: Sources, matrix: Matrix, host_of: Callable[[Host | None], Host]) -> tuple[list[Environment], list[str]]:
    """The environments that the sources give, the better one first, and how to name them."""
    from accel_env.judge.collect import collect
    from accel_env.judge.interpreter import read_interpreter
    from accel_env.judge.report import read_report
    from accel_env.judge.types import Environment
    from accel_env.system.files import read_text_file
    from accel_env.system.real import RealSystem

    parts: list[Environment] = []
    judged: list[str] = []
    if not sources.described:
        # before the machine: the Python that counts is that of the interpreter
        parts.append(read_interpreter(sources.python, RealSystem(), matrix, imports=sources.imports))
        judged.append(sources.python or "this interpreter")
    if sources.host_file or not sources.described:
        parts.append(Environment(host=host_of(None), known=frozenset({"os", "arch"})))
        judged.append(sources.host_file or "this machine")
    if sources.report:
        parts.append(read_report(read_text_file(sources.report), matrix, sources.report))
        judged.append(sources.report)
    for name in sources.collect_env:
        parts.append(collect(read_text_file(name), matrix, name))
        judged.append(name)
    if sources.errors:
        parts.append(Environment(texts=sources.errors))
        judged.append("the error text")
    return parts or [Environment()], judged


def _merged(parts: list[Environment]) -> Environment:
    from accel_env.judge.report import merge

    merged = parts[0]
    for part in parts[1:]:
        merged = merge(merged, part)
    return merged


def _scanned(name: str, matrix: Matrix) -> LogScan:
    """The deciding lines of a log, `-` for standard input."""
    import sys

    from accel_env.judge.signatures import scan_log

    return scan_log(sys.stdin if name == "-" else name, matrix)
