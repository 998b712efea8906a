"""Findings as the mapping `accel-env/diagnosis/1`, and as annotations of a continuous integration job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from accel_env.judge.types import Environment, Finding, Fix, Installed
from accel_env.model import Because

SCHEMA = "accel-env/diagnosis/1"
STATUS = {"error": "errors", "warning": "warnings"}
_FIX_TEXTS = ("name", "spec", "build", "do", "command")
_LEVELS = {"error": "error", "warning": "warning", "note": "notice"}
# How workflow commands escape data, and what their properties escape besides.
_DATA = (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"))
_PROPERTY = (*_DATA, (":", "%3A"), (",", "%2C"))


def diagnosis(findings: Iterable[Finding], environment: Environment | None = None, judged: Sequence[str] = ()) -> dict[str, Any]:
    """The answer of `doctor` and `check`; findings keep their order.

    `judged` says where the environment came from; with an environment the answer also tells what was read.
    """
    rows = [finding_mapping(finding) for finding in findings]
    answer: dict[str, Any] = {"schema": SCHEMA, "status": status(rows), "findings": rows}
    if judged:
        answer["judged"] = list(judged)
    if environment is not None:
        answer["environment"] = environment_mapping(environment)
        if environment.disagreements:
            answer["disagreements"] = list(environment.disagreements)
    return answer


def status(rows: Iterable[Mapping[str, Any]]) -> str:
    """`errors`, `warnings`, or `clean` where there is nothing worse than a note."""
    found = {row["severity"] for row in rows}
    return next((word for severity, word in STATUS.items() if severity in found), "clean")


def exit_code(answer: Mapping[str, Any]) -> int:
    """8 where an error was found, else 0."""
    from accel_env.errors import FindingsError

    return FindingsError.exit_code if answer["status"] == STATUS["error"] else 0


def finding_mapping(finding: Finding) -> dict[str, Any]:
    """One finding; what is empty and not part of the fixed shape is left out."""
    row: dict[str, Any] = {
        "rule": finding.rule,
        "component": finding.component,
        "severity": finding.severity,
        "message": finding.message,
        "because": [because_mapping(because) for because in finding.because],
        "fixes": [fix_mapping(fix) for fix in finding.fixes],
    }
    if finding.consequence_of:
        row["consequence_of"] = finding.consequence_of
    if finding.where:
        row["where"] = finding.where
    return row


def because_mapping(because: Because) -> dict[str, str]:
    """Text, source and grade; the fact's id and a doubt where there are any."""
    row = {"text": because.text, "source": because.source, "grade": because.grade}
    row.update({key: value for key, value in (("fact", because.fact), ("doubt", because.doubt)) if value})
    return row


def fix_mapping(fix: Fix) -> dict[str, Any]:
    """The kind and the fields that say something."""
    row: dict[str, Any] = {"kind": fix.kind}
    row.update({key: getattr(fix, key) for key in _FIX_TEXTS if getattr(fix, key)})
    if fix.set:
        row["set"] = dict(fix.set)
    if fix.unset:
        row["unset"] = list(fix.unset)
    if fix.verified:
        row["verified"] = True
    return row


def environment_mapping(environment: Environment) -> dict[str, Any]:
    """What was read of the environment, in the keys of a report file; the unknown is left out."""
    host, container = environment.host, environment.container
    devices = [
        {key: value for key, value in (("name", d.name), ("arch", d.arch), ("driver", d.driver)) if value} for d in host.devices
    ]
    pairs: dict[str, Any] = {
        # without anybody's word these two are defaults of the type
        "os": host.os if "os" in environment.known or host.provenance.get("os") else "",
        "arch": host.arch if "arch" in environment.known or host.provenance.get("arch") else "",
        "kernel": host.kernel,
        host.libc_family or "libc": host.libc,
        "python": host.python,
        "gpus": devices,
        "cuda_driver": environment.cuda_driver,
        "packages": {item.name: installed_text(item) for item in environment.installed if not item.wanted},
        "wanted": {item.name: installed_text(item) for item in environment.installed if item.wanted},
        "container": {
            key: value
            for key, value in (("base", container.base), ("runtime", container.runtime), ("args", container.args))
            if value
        }
        if container
        else {},
        "env": dict(environment.variables),
        **environment.extra,
    }
    return {key: value for key, value in pairs.items() if value}


def installed_text(item: Installed) -> str:
    """`2.13.0+cpu`: the version as it was said."""
    label = f"+{item.local}" if item.local else ""
    return (f"{item.version}{label}" if item.version else "") or item.spec or item.text or "unknown"


def github_lines(answer: Mapping[str, Any], file: str = "") -> list[str]:
    """One `::error file=...` line per finding; `file` stands for findings that name no place of their own."""
    lines = []
    for row in answer["findings"]:
        path, line = place(row.get("where", "")) if row.get("where") else (file, 0)
        properties = [("file", path), ("line", str(line) if line else ""), ("title", f"{row['rule']} ({row['component']})")]
        given = ",".join(f"{key}={_escaped(value, _PROPERTY)}" for key, value in properties if value)
        lines.append(f"::{_LEVELS[row['severity']]} {given}::{_escaped(full_message(row), _DATA)}")
    return lines


def place(where: str) -> tuple[str, int]:
    """(file, line) of `Dockerfile:7`; line 0 where there is none."""
    path, colon, line = where.rpartition(":")
    return (path, int(line)) if colon and line.isdigit() else (where, 0)


def full_message(row: Mapping[str, Any]) -> str:
    """The message with the reasons and the ways out in one text."""
    parts = [row["message"]]
    parts += [f"because: {because['text']} ({because['grade']}: {because['source']})" for because in row["because"]]
    parts += [f"fix: {fix_text(fix)}" for fix in row["fixes"]]
    return "\n".join(parts)


def fix_text(fix: Mapping[str, Any]) -> str:
    """A way out in words, the pasteable command first where there is one."""
    if fix.get("command"):
        return str(fix["command"])
    name, spec, build = (str(fix.get(key, "")) for key in ("name", "spec", "build"))
    if fix["kind"] == "env":
        pairs = [f"{key}={value}" for key, value in fix.get("set", {}).items()]
        said = " and ".join(filter(None, (f"set {' '.join(pairs)}" if pairs else "", _unset(fix))))
        return ": ".join(part for part in (said, str(fix.get("do", ""))) if part) or "change the environment"
    what = f"{name}{'' if not spec or spec[0] in '<>=!~' else ' '}{spec}" + (f" (build {build})" if build else "")
    texts = {
        "package": f"install {what}",
        "driver": f"a driver {spec}" if spec else f"a newer driver of {name}",
        "python": f"Python {spec}",
        "toolchain": f"the toolchain {what}",
        "image": f"the image {what}",
        "index": f"the index {what}",
    }
    if fix["kind"] == "build" and fix.get("set"):
        settings = " ".join(f"{key}={value}" for key, value in fix["set"].items())
        texts["build"] = f"{what}{'' if fix.get('do') else ': build it from source'}, with {settings}"
    said = texts.get(fix["kind"], what) if name or spec else ""
    return ": ".join(part for part in (said, str(fix.get("do", ""))) if part) or fix["kind"]


def _unset(fix: Mapping[str, Any]) -> str:
    return f"unset {' '.join(fix['unset'])}" if fix.get("unset") else ""


def _escaped(text: str, table: Iterable[tuple[str, str]]) -> str:
    for mark, code in table:
        text = text.replace(mark, code)
    return text
