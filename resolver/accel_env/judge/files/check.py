"""`judge_files`: documents against hosts. Rules about files here, needs of builds by `doctor`'s own judge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from accel_env.judge.files.needs import FOR_THIS_HOST, need_findings
from accel_env.judge.files.rules_build import build_findings
from accel_env.judge.files.rules_conda import conda_findings
from accel_env.judge.files.rules_device import device_findings
from accel_env.judge.files.rules_image import image_findings
from accel_env.judge.files.rules_install import install_findings
from accel_env.judge.files.rules_vendor import vendor_findings
from accel_env.judge.files.scope import Knowledge, Scope
from accel_env.judge.types import Finding

if TYPE_CHECKING:
    from accel_env.judge.files.values import Document
    from accel_env.matrix.load import Matrix
    from accel_env.model import Host

RANK = {"error": 0, "warning": 1, "note": 2}


@dataclass(frozen=True, slots=True)
class Judged:
    """What was found for one host; `host` is the name of its file or profile, empty where no machine was named."""

    host: str
    findings: tuple[Finding, ...]


def know(matrix: Matrix) -> Knowledge:
    """The matrix with the documents that judging needs. InputError for a broken one."""
    from accel_env.judge.book import open_book
    from accel_env.judge.files.tables import open_tables

    return Knowledge(matrix, open_tables(matrix), open_book(matrix))


def judge_files(documents: Sequence[Document], host: Host, knowledge: Knowledge, *, named: bool = True) -> tuple[Finding, ...]:
    """The findings about documents on one host, errors first, then by place.

    `named` False: no machine was named, and only what holds on any machine is judged.
    """
    found: list[Finding] = []
    for document in documents:
        rivals: list[list[Finding]] = []
        for scene in document.scenes:
            if scene.systems and host.platform not in scene.systems:
                continue
            rows = list(judge_scope(Scope(scene, host, knowledge, named=named)))
            if scene.alternative:
                rivals.append(rows)
            else:
                found += rows
        found += _settled(rivals)
    return ordered(found)


def _settled(rivals: Sequence[Sequence[Finding]]) -> Iterator[Finding]:
    """Of environments that exclude each other one that works is enough: what the others lack for this host is no fault."""
    works = any(all(f.rule not in FOR_THIS_HOST for f in rows) for rows in rivals)
    for finding in (f for rows in rivals for f in rows):
        if works and finding.rule in FOR_THIS_HOST:
            yield replace(finding, severity="note", message=f"{finding.message}; another extra or group is for this host")
        else:
            yield finding


def judge_scope(scope: Scope) -> Iterator[Finding]:
    """The findings about one scene."""
    yield from image_findings(scope)
    yield from install_findings(scope)
    yield from conda_findings(scope)
    yield from build_findings(scope)
    yield from vendor_findings(scope)
    yield from device_findings(scope)
    yield from need_findings(scope)


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each cause once: the same rule and component at the same place, or for the same component at all, is one finding."""
    kept: dict[tuple[str, str, str], Finding] = {}
    for finding in findings:
        key = (finding.rule, finding.component, finding.where)
        first = kept.get(key)
        if first is None or RANK[finding.severity] < RANK[first.severity]:
            kept[key] = finding
    rows = [_doubted(f) for f in kept.values()]
    said = {(f.component, f.where) for f in rows if f.rule == "vendor-build-overwritten"}
    rows = [f for f in rows if not (f.rule == "wrong-index" and (f.component, f.where) in said)]
    rows = [_marked(f, rows) for f in rows]
    return tuple(sorted(rows, key=lambda f: (RANK[f.severity], bool(f.consequence_of), *_place(f.where))))


def _marked(finding: Finding, rows: Sequence[Finding]) -> Finding:
    """A finding with another at the same place that explains it is that one's consequence."""
    from accel_env.judge.order import EXPLAINS

    here = {row.rule for row in rows if row.severity == "error" and row.where == finding.where}
    for cause, followers in EXPLAINS.items():
        if cause in here and finding.rule in followers and cause != finding.rule:
            return replace(finding, consequence_of=cause)
    return finding


def _doubted(finding: Finding) -> Finding:
    """What rests on doubtful facts alone is no error."""
    if finding.severity == "error" and finding.because and all(reason.doubt for reason in finding.because):
        return replace(finding, severity="warning")
    return finding


def _place(where: str) -> tuple[str, int]:
    file, colon, line = where.rpartition(":")
    return (file, int(line)) if colon and line.isdigit() else (where, 0)


def merged(rows: Sequence[Judged]) -> list[tuple[Finding, tuple[str, ...]]]:
    """The findings of all hosts, each once, with the hosts that have it."""
    kept: dict[tuple[str, str, str, str, str], tuple[Finding, list[str]]] = {}
    for row in rows:
        for finding in row.findings:
            key = (finding.rule, finding.component, finding.where, finding.message, finding.severity)
            kept.setdefault(key, (finding, []))[1].append(row.host)
    listed = sorted(kept.values(), key=lambda pair: (RANK[pair[0].severity], *_place(pair[0].where)))
    return [(finding, tuple(hosts)) for finding, hosts in listed]
