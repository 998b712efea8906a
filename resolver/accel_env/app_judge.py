"""The judging verbs: from what the user named to an Environment, and from its findings to the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
    from accel_env.judge import unlisted
    from accel_env.judge.doctor import judge
    from accel_env.judge.findings import diagnosis
    from accel_env.judge.signatures import read

    parts, judged = _parts(sources, matrix, host_of)
    environment = _merged(parts)
    if sources.described and sources.host_words and not sources.host_file:
        environment = replace(environment, host=host_of(environment.host))
    scans = [_scanned(name, matrix) for name in sources.logs]
    clues = (*(clue for scan in scans for clue in scan.clues), *read(environment.texts, matrix))
    answer = diagnosis(judge(environment, clues, matrix), _sorted(environment, matrix), (*judged, *sources.logs))
    answer["modelled"] = [name for name in answer["environment"].get("packages", ()) if name in matrix.package_names()]
    if sources.logs:
        answer["lines"] = [
            {"file": name, "line": number, "text": text}
            for name, scan in zip(sources.logs, scans, strict=True)
            for number, text in scan.lines
        ]
    answer["notes"] = [
        *environment.host.notes,
        *unlisted.of_environment(environment, matrix),
        *_notes(sources, environment, bool(clues), shown=bool(answer["findings"])),
    ]
    return answer


def _notes(sources: Sources, environment: Environment, recognised: bool, *, shown: bool) -> Iterator[str]:
    """What is worth saying though it is no finding: what was not understood, and what a CPU build or its absence means here."""
    if (sources.errors or sources.logs) and not recognised:
        more = "; what follows is what the environment itself shows" if shown else ""
        yield f"not recognised: no error text that accel-env knows{more}"
    torch = next((one for one in environment.installed if one.name == "torch"), None)
    if not sources.described and torch is None:
        yield f"torch is not installed for {environment.host.provenance.get('python', 'this interpreter')}{_another(environment)}"
    if not sources.described and torch is not None and not environment.host.devices:
        label = torch.local or "default"
        runs = "which is right for it" if torch.local == "cpu" else "which runs on its CPU alone"
        yield f"no accelerator was found on this machine; torch {torch.version} is the {label} build, {runs}"


def _another(environment: Environment) -> str:
    """The interpreter that is meant perhaps: that of the active environment, where this program is installed elsewhere."""
    active = environment.variables.get("VIRTUAL_ENV") or environment.variables.get("CONDA_PREFIX") or ""
    program = environment.host.provenance.get("python", "")
    if not active or program.startswith(f"{active}/"):
        return "; --python PATH names another interpreter"
    return f"; the active environment is another one: --python {active}"


def _sorted(environment: Environment, matrix: Matrix) -> Environment:
    """The environment with the packages that the matrix models first, torch at their head."""
    names = matrix.package_names()
    ordered = sorted(environment.installed, key=lambda one: (one.name != "torch", one.name not in names))
    return replace(environment, installed=tuple(ordered))


def _parts(sources: Sources, matrix: Matrix, host_of: Callable[[Host | None], Host]) -> tuple[list[Environment], list[str]]:
    """The environments that the sources give, the better one first, and how to name them."""
    from accel_env.judge.types import Environment

    parts: list[Environment] = []
    judged: list[str] = []
    if not sources.described:
        # before the machine: the Python that counts is that of the interpreter
        parts.append(_interpreter(sources, matrix))
        judged.append(sources.python or "this interpreter")
    if sources.host_file or not sources.described:
        parts.append(Environment(host=host_of(None), known=frozenset({"os", "arch"})))
        judged.append(sources.host_file or "this machine")
    if sources.report:
        parts.append(_report(sources.report, matrix))
        judged.append(sources.report)
    for name in sources.collect_env:
        parts.append(_dump(name, matrix))
        judged.append(name)
    if sources.errors:
        parts.append(Environment(texts=sources.errors))
        judged.append("the error text")
    return parts or [Environment()], judged


def _interpreter(sources: Sources, matrix: Matrix) -> Environment:
    from accel_env.judge.interpreter import read_interpreter
    from accel_env.system.real import RealSystem

    return read_interpreter(sources.python, RealSystem(), matrix, imports=sources.imports)


def _report(name: str, matrix: Matrix) -> Environment:
    from accel_env.judge.report import read_report
    from accel_env.system.files import read_text_file

    return read_report(read_text_file(name), matrix, name)


def _dump(name: str, matrix: Matrix) -> Environment:
    from accel_env.judge.collect import collect
    from accel_env.system.files import read_text_file

    return collect(read_text_file(name), matrix, name)


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
    from accel_env.system.files import check_file

    if name != "-":
        check_file(name)
    return scan_log(sys.stdin if name == "-" else name, matrix)


def fleet(source: str) -> tuple[str, ...]:
    """The host files in a folder, sorted; empty where `source` is no folder. InputError for a folder without any."""
    import os

    from accel_env.errors import InputError

    if not source or not os.path.isdir(source):
        return ()
    names = tuple(os.path.join(source, name) for name in sorted(os.listdir(source)) if name.endswith(".json"))
    if not names:
        raise InputError("no-host-files", f"the folder {source} holds no host file", hint="`accel-env detect -o FILE` writes one")
    return names


def check(files: Sequence[str], matrix: Matrix, hosts: Sequence[tuple[str, Host]], *, named: bool) -> Json:
    """The diagnosis of files on hosts, given with their names; `named` False: only what holds on any machine is judged."""
    from accel_env.judge import unlisted
    from accel_env.judge.files.check import Judged, judge_files, know, merged
    from accel_env.judge.files.load import load
    from accel_env.judge.findings import diagnosis, finding_mapping, status

    knowledge = know(matrix)
    loaded = {arch: tuple(load(name, arch) for name in files) for arch in dict.fromkeys(host.arch for _, host in hosts)}
    rows = [Judged(name, judge_files(loaded[host.arch], host, knowledge, named=named)) for name, host in hosts]
    pairs = merged(rows)
    answer = diagnosis([finding for finding, _ in pairs], None, files)
    if len(hosts) > 1:
        for row, (_, names) in zip(answer["findings"], pairs, strict=True):
            row["hosts"] = list(names)
    answer["hosts"] = []
    for one in rows:
        severities = [finding.severity for finding in one.findings]
        counts = {f"{word}s": severities.count(word) for word in ("error", "warning", "note")}
        answer["hosts"].append({"host": one.host, "status": status(map(finding_mapping, one.findings)), **counts})
    answer["also"] = list(dict.fromkeys(name for documents in loaded.values() for d in documents for name in d.also))
    documents = next(iter(loaded.values()), ())
    answer["notes"] = list(unlisted.of_documents(documents, matrix))
    return answer
