"""Reports of the checks, on the side of this project: read, judged, and written for other programs."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree

from accel_env.errors import VerifyError
from accel_env.smoke.verdict import FAIL, LEVELS, PASS, SCHEMA, SKIP

Json = dict[str, Any]
# The grade that a level gives when nothing in it failed.
GRADES = {"static": "inspected", "import": "imported", "device": "ran"}
_UNPRINTABLE = re.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD]")


def parse(text: str, talk: str = "") -> Json:
    """The report in what the program printed. VerifyError (7), with the last lines of `talk`, where there is none."""
    try:
        found = json.loads(text[text.index("{") :])
        if found["schema"] != SCHEMA or not all(check["verdict"] in (PASS, FAIL, SKIP) for check in found["checks"]):
            raise ValueError("no report")
    except (ValueError, KeyError, TypeError, RecursionError):
        raise VerifyError(
            "no-report",
            "the checks gave no report",
            context=tuple(line for line in talk.strip().splitlines()[-8:]),
            hint="the environment needs a Python of 3.8 or newer that starts",
        ) from None
    report: Json = found
    return report


def levels_to(level: str) -> tuple[str, ...]:
    """A level and those below it."""
    return LEVELS[: LEVELS.index(level) + 1]


def failures(report: Json) -> list[Json]:
    """The checks that failed."""
    return [check for check in report["checks"] if check["verdict"] == FAIL]


def grade(report: Json) -> str:
    """The evidence that the report is: of the highest level in which something passed and, with all below, nothing failed; empty
    where there is none. A device that is the CPU proves nothing for a device."""
    best = ""
    for level in LEVELS:
        checks = [check for check in report["checks"] if check["level"] == level]
        if not any(check["verdict"] == PASS for check in checks) or any(check["verdict"] == FAIL for check in checks):
            break
        if level != "device" or report.get("device") != "cpu":
            best = GRADES[level]
    return best


def junit(report: Json, name: str) -> str:
    """The report as JUnit XML, one suite per level."""
    root = ElementTree.Element("testsuites", name=_printable(name))
    for level in report["levels"]:
        checks = [check for check in report["checks"] if check["level"] == level]
        count = {verdict: str(sum(check["verdict"] == verdict for check in checks)) for verdict in (FAIL, SKIP)}
        seconds = f"{sum(check['seconds'] for check in checks):.2f}"
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=level,
            tests=str(len(checks)),
            failures=count[FAIL],
            errors="0",
            skipped=count[SKIP],
            time=seconds,
        )
        for check in checks:
            case = ElementTree.SubElement(
                suite, "testcase", classname=f"smoke.{level}", name=_printable(check["name"]), time=f"{check['seconds']:.2f}"
            )
            if check["verdict"] == FAIL:
                ElementTree.SubElement(case, "failure", message=_printable(check["detail"])).text = _printable(check["detail"])
            elif check["verdict"] == SKIP:
                ElementTree.SubElement(case, "skipped", message=_printable(check["detail"]))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _printable(text: str) -> str:
    """The text without what XML cannot hold."""
    return _UNPRINTABLE.sub("?", str(text))
