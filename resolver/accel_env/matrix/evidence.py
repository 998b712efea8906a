"""The grade of the picks of a plan: by what was read out of their files, and by what was really run (`matrix/evidence/*.json`).

A pick is `inspected` where its own file was read (`matrix/inspected/`) and agrees with the matrix. A file of evidence counts for
a pick when build, Python, platform and torch are the same: an extension that loads into one torch proves nothing for another.
`ran` holds for the architectures that it ran on; elsewhere the same file says `imported`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from accel_env.errors import InputError
from accel_env.model import EVIDENCE

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix

Json = dict[str, Any]
FOLDER, SCHEMA = "evidence", "accel-env/evidence/1"
_SAME = ("version", "build", "index", "variant", "tag")
_KEYS = frozenset(
    ["schema", "date", "level", "python", "platform", "stack", "host", "matrix", "plan", "image", "picks", "checks"]
)


def lift(plan: Json, matrix: Matrix) -> Json:
    """The plan with the best evidence of each pick. InputError (3) for a file of evidence that breaks its format."""
    if not plan.get("picks"):
        return plan
    platform = f"{plan['host']['os']}_{plan['host']['arch']}"
    read = {name: inspected(pick, name, platform, matrix) for name, pick in plan["picks"].items()}
    picks = {name: {**pick, "evidence": EVIDENCE[1]} if read[name] else pick for name, pick in plan["picks"].items()}
    found = read_evidence(matrix.root, str(plan["stack"]["name"]))
    if found:
        picks = {name: {**pick, "evidence": _best(plan, name, pick, found)} for name, pick in picks.items()}
    return {**plan, "picks": picks}


def inspected(pick: Json, name: str, platform: str, matrix: Matrix) -> bool:
    """Whether the very file of a pick, as a plan writes it, was read and agrees."""
    for (version, build, variant, index, where), tags in matrix.inspected(name).items():
        if (version, build, variant, where) == (pick["version"], pick["build"], pick.get("variant", ""), platform):
            shown = pick["index"]
            if pick.get("tag", "") in tags and (shown == index or shown == matrix.index_url(index)):
                return True
    return False


def read_evidence(root: str, stack: str = "") -> list[Json]:
    """The files of one stack (all where none is named), sorted by name; empty where there is no folder."""
    folder = os.path.join(root, FOLDER)
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".json") and name.startswith(stack))
    except OSError:
        return []
    return [_read(os.path.join(folder, name)) for name in names]


def keep(root: str, plan: Json, report: Json, device: Json, date: str) -> str:
    """Writes what a smoke report proves of a plan into the matrix at `root`; gives the path. `device`: what was seen of it at the
    level `device`, else empty. UsageError where the matrix is part of an installed package."""
    import hashlib
    import json

    from accel_env.errors import UsageError
    from accel_env.system.files import write_file

    if not os.path.isdir(os.path.join(root, "schema")) or os.path.basename(root).startswith("_"):
        raise UsageError(
            "matrix-read-only", "evidence goes into the matrix of a clone, and this one is installed", hint="run in a clone"
        )
    row = _row(plan, report, device)
    digest = hashlib.sha256(json.dumps(row, sort_keys=True).encode()).hexdigest()[:12]
    os.makedirs(os.path.join(root, FOLDER), exist_ok=True)
    path = os.path.join(root, FOLDER, f"{row['stack']}-py{row['python']}-{digest}.json")
    write_file(path, json.dumps({"schema": SCHEMA, "date": date, **row}, indent=1) + "\n")
    return path


def _row(plan: Json, report: Json, device: Json) -> Json:
    host, environment = plan["host"], report["environment"]
    version = plan["stack"]["version"]
    checks = report["checks"]
    seen = {key: device[key] for key in ("name", "arch", "driver", "count", "memory_mib") if device.get(key)}
    return {
        "level": report["evidence"],
        "python": plan["python"],
        "platform": f"{host['os']}_{host['arch']}",
        "stack": plan["stack"]["name"] + ("" if version == "any" else f"-{version}"),
        "host": {"libc": environment["libc"], "python": environment["python"], "devices": [seen] if seen else []},
        "matrix": plan["matrix"],
        "plan": report.get("plan", ""),
        "image": report.get("image", ""),
        "picks": {name: {key: pick[key] for key in _SAME if key in pick} for name, pick in plan["picks"].items()},
        "checks": {
            "pass": sum(check["verdict"] == "pass" for check in checks),
            "skip": [f"{check['level']} {check['name']}" for check in checks if check["verdict"] == "skip"],
        },
    }


def _read(path: str) -> Json:
    import json

    shown = f"{FOLDER}/{os.path.basename(path)}"
    try:
        with open(path, encoding="utf-8") as stream:
            row = json.load(stream)
    except (OSError, ValueError) as problem:
        raise InputError(
            "evidence-unreadable", f"{shown} cannot be read: {problem}", hint="delete it, or run `smoke --evidence` again"
        ) from None
    faults = _faults(row)
    if faults:
        raise InputError(
            "evidence-invalid", f"{shown}: {faults[0]}", context=tuple(faults[1:]), hint="matrix/README.md tells the format"
        )
    found: Json = row
    return found


def _faults(row: object) -> list[str]:
    if not isinstance(row, Mapping):
        return ["must be a mapping"]
    faults = [f"the key `{key}` is missing" for key in sorted(_KEYS - row.keys())]
    faults += [f"unknown key `{key}`" for key in sorted(row.keys() - _KEYS)]
    if faults:
        return faults
    if row["schema"] != SCHEMA:
        faults.append(f"`schema` must be {SCHEMA}")
    if row["level"] not in EVIDENCE[1:]:
        faults.append(f"`level` is none of {', '.join(EVIDENCE[1:])}")
    if not isinstance(row["picks"], Mapping) or not all(isinstance(pick, Mapping) for pick in row["picks"].values()):
        faults.append("`picks` must be a mapping of mappings")
    if not isinstance(row["host"], Mapping) or not isinstance(row["host"].get("devices"), list):
        faults.append("`host` must be a mapping with a list of `devices`")
    return faults


def _best(plan: Json, name: str, pick: Json, files: list[Json]) -> str:
    grades = [str(pick.get("evidence", EVIDENCE[0]))]
    for row in files:
        if _applies(plan, row, name) and (not plan["picks"].get("torch") or _applies(plan, row, "torch")):
            grades.append(_grade(plan, row))
    return max(grades, key=EVIDENCE.index)


def _applies(plan: Json, row: Json, name: str) -> bool:
    platform = f"{plan['host']['os']}_{plan['host']['arch']}"
    ours, theirs = plan["picks"].get(name), row["picks"].get(name)
    if ours is None or theirs is None or row["platform"] != platform or row["python"] != plan["python"]:
        return False
    return all(ours.get(key, "") == theirs.get(key, "") for key in _SAME)


def _grade(plan: Json, row: Json) -> str:
    """What a file says for the devices of the plan."""
    ran_on = {device.get("arch") for device in row["host"]["devices"]}
    devices = {device.get("arch") for device in plan["host"].get("devices", ())}
    if row["level"] == "ran" and not (devices and devices <= ran_on):
        return "imported"
    return str(row["level"])
