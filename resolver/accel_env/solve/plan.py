"""The plan as JSON mappings (`accel-env/plan/1`): what `resolve --json` prints and `plan.json` holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from accel_env.model import Because, Conflict, Device, Host, Pick, Problem, Solution, Warned
from accel_env.solve.versions import split_stack

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix

SCHEMA = "accel-env/plan/1"
Json = dict[str, Any]


def plan(result: Solution | Conflict, matrix: Matrix) -> Json:
    """The whole plan or refusal; key order is fixed, so the same result gives the same bytes."""
    common: Json = {
        "schema": SCHEMA,
        "status": "ok" if isinstance(result, Solution) else "conflict",
        "matrix": {"version": matrix.version, "digest": matrix.digest},
        "asks": [a.text or a.name for a in result.problem.asks],
        **bundles(result.problem, matrix),
        **({"base": result.problem.policy.base} if result.problem.policy.base else {}),
        "target": result.problem.policy.target,
        "host": host(result.problem.host, result.problem.devices),
    }
    return common | (_solution(result, matrix) if isinstance(result, Solution) else _conflict(result, matrix))


def bundles(problem: Problem, matrix: Matrix) -> Json:
    """The bundles that were asked for, and which of their members are left out; nothing where there were none."""
    if not problem.bundles:
        return {}

    def source(fact: str) -> str:
        return matrix.fact(fact).source if fact else ""

    rows = [
        {"name": row.name, "bundle": row.bundle, "why": row.why, "fact": row.fact, "source": source(row.fact),
         "stands_in": row.stands_in, "stands_in_source": source(row.stands_in_fact)}
        for row in problem.left_out
    ]  # fmt: skip
    return {"bundles": list(problem.bundles), "left_out": rows}


def host(value: Host, devices: Iterable[Device]) -> Json:
    """The host part: what the plan was made for."""
    row: Json = {"os": value.os, "arch": value.arch}
    if value.libc and value.libc_family in ("", "glibc"):
        row["glibc"] = value.libc
    if value.kernel:
        row["kernel"] = value.kernel
    row["devices"] = [_device(d) for d in devices]
    return row


def _device(device: Device) -> Json:
    row: Json = {"vendor": device.vendor, "name": device.name, "arch": device.arch}
    if device.driver:
        row["driver"] = device.driver
    return row


def _solution(value: Solution, matrix: Matrix) -> Json:
    name, version = split_stack(value.stack)
    image = value.image
    return {
        "stack": {"name": name, "version": version or "any"},
        "python": value.python,
        "picks": {p.candidate.name: _pick(p, matrix) for p in value.picks},
        "outside": [a.text or a.name for a in value.outside],
        "image": {"ref": image.ref, "digest": image.digest_on(value.problem.host.platform) or None} if image else None,
        "env": dict(value.env),
        "run_args": list(value.run_args),
        "lockable": value.lockable,
        "warnings": [_warning(w, matrix) for w in value.warnings],
    }


def _pick(pick: Pick, matrix: Matrix) -> Json:
    candidate = pick.candidate
    row: Json = {
        "version": candidate.version,
        "build": candidate.build,
        "index": index_text(candidate.index, candidate.tag, matrix),
        "evidence": pick.evidence,
    }
    if candidate.variant:
        row["variant"] = candidate.variant
    if pick.tag:
        row["tag"] = pick.tag
    row["because"] = [_because(b) for b in pick.because]
    return row


def index_text(index: str, tag: str, matrix: Matrix) -> str:
    """The index as interface.md writes it: `pypi`, `image`, an index URL, or the release page's URL of an asset."""
    if index in ("pypi", "image"):
        return index
    return matrix.index_url(index).replace("{tag}", tag or "...").removesuffix("/{file}")


def _because(value: Because) -> Json:
    row = {"need": value.need, "text": value.text, "fact": value.fact, "source": value.source, "grade": value.grade}
    return row | ({"doubt": value.doubt} if value.doubt else {})


def _warning(value: Warned, matrix: Matrix) -> Json:
    fact = matrix.fact(value.fact) if value.fact else None
    row: Json = {"rule": value.rule, "message": value.message, "source": fact.source if fact else ""}
    return row | ({"fact": fact.id, "grade": fact.grade} if fact else {})


def _conflict(value: Conflict, matrix: Matrix) -> Json:
    return {
        "conflict": {
            "core": [{"kind": c.kind, "text": c.text} for c in value.core],
            "because": [_because(b) for b in value.because],
            "relaxations": [
                {"change": [{"kind": c.kind, "name": c.name, "spec": c.spec} for c in r.change], "gives": dict(r.gives)}
                for r in value.relaxations
            ],
        },
        "warnings": [_warning(w, matrix) for w in value.warnings] + _ignored(value.problem),
    }


def _ignored(problem: Problem) -> list[Mapping[str, str]]:
    return [
        {"rule": "device-ignored", "message": f"{d.name or d.arch} ({d.vendor}) is left out: {why}", "source": ""}
        for d, why in problem.ignored
    ]
