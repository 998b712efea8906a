"""What a plan and its lock let one expect of an environment."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from accel_env.errors import InputError

Json = dict[str, Any]
PLAN, LOCK = "plan.json", "requirements.lock"
_PIN = re.compile(r"^(?P<name>[\w.-]+)(?:==(?P<version>[^\s;\\]+)| @ (?P<url>\S+))", re.MULTILINE)


def read_plan(path: str) -> tuple[Json, str]:
    """The plan and the text of the lock beside it; `path` is plan.json or its folder. InputError (3) where it is no plan."""
    from accel_env.system.files import read_file

    place = Path(path) / PLAN if Path(path).is_dir() else Path(path)
    try:
        plan = json.loads(read_file(place))
    except (ValueError, RecursionError) as problem:
        raise InputError(
            "file-unreadable", f"{place} is no JSON: {problem}", hint="`accel-env lock -o DIR` writes a plan"
        ) from None
    if not isinstance(plan, dict) or plan.get("status") != "ok" or not isinstance(plan.get("picks"), dict):
        raise InputError("no-plan", f"{place} holds no plan that works", hint="`accel-env lock -o DIR` writes a plan")
    lock = place.with_name(LOCK)
    return plan, read_file(lock) if lock.is_file() else ""


def expected(plan: Json, lock: str) -> Json:
    """What the checks compare with. Versions are those of the lock; of a pick that an image brings, the plan's."""
    picks = plan["picks"]
    versions = {
        name: str(pick["version"]).partition("+")[0] for name, pick in picks.items() if pick.get("index") == "image" or not lock
    }
    return {
        "python": str(plan.get("python", "")),
        "devices": [str(device.get("arch", "")) for device in plan.get("host", {}).get("devices", ())],
        "picks": sorted(picks),
        "versions": versions | locked(lock),
        "libraries": [
            f"{name.replace('-', '_')}/lib{name.replace('-', '_')}_{pick['variant']}.so"
            for name, pick in sorted(picks.items())
            if pick.get("variant")
        ],
    }


def locked(text: str) -> Json:
    """Name -> version of everything in a requirements.lock."""
    found = {}
    for pin in _PIN.finditer(text):
        version = pin["version"] or unquote(pin["url"]).rpartition("/")[2].split("-")[1]
        found[pin["name"]] = version
    return found
