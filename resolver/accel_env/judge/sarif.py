"""Findings in SARIF, the format that code hosts and editors read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accel_env.judge.findings import full_message, place

FORMAT = "2.1" + ".0"  # of SARIF itself; written in two parts because no release of anything else belongs into code


def sarif(answer: Mapping[str, Any], file: str = "") -> dict[str, Any]:
    """One run with a rule per kind of finding; `file` is the place of findings that name none of their own."""
    rows = answer["findings"]
    rules = list(dict.fromkeys(row["rule"] for row in rows))
    driver = {"name": "accel-env", "rules": [_rule(rule) for rule in rules]}
    results = [_result(row, rules.index(row["rule"]), file) for row in rows]
    return {"version": FORMAT, "runs": [{"tool": {"driver": driver}, "results": results}]}


def _rule(rule: str) -> dict[str, Any]:
    return {"id": rule, "name": rule, "shortDescription": {"text": rule.replace("-", " ")}}


def _result(row: Mapping[str, Any], index: int, file: str) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": row["rule"],
        "ruleIndex": index,
        "level": row["severity"],
        "message": {"text": full_message(row)},
        "properties": {"component": row["component"], "fixes": row["fixes"]},
    }
    path, line = place(row.get("where", "")) if row.get("where") else (file, 0)
    if path:
        physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(path)}}
        if line:
            physical["region"] = {"startLine": line}
        result["locations"] = [{"physicalLocation": physical}]
    return result


def _uri(path: str) -> str:
    from urllib.parse import quote

    return quote(path.replace("\\", "/"), safe="/:")
