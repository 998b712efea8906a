"""Every question of tests/plans, asked in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from accel_env.app import Request, resolve
from accel_env.solve.problem import normalise

HERE = Path(__file__).parent
Row = Mapping[str, Any]
GRID = [Version(f"{a}.{b}.{c}") for a in range(4) for b in range(40) for c in range(4)]
OPTIONS = ("driver", "stack", "python", "glibc", "arch", "target", "prefer", "base")


def rows() -> Iterator[Any]:
    for file in sorted(HERE.glob("*.yaml")):
        for row in yaml.safe_load(file.read_text()):
            yield pytest.param(row, id=row["id"])


@pytest.mark.parametrize("row", list(rows()))
def test_plan(row: Row, tmp_path: Path) -> None:
    given = {name: str(row[name]) for name in OPTIONS if name in row}
    if "host" in row:
        (tmp_path / "host.json").write_text(json.dumps(row["host"]))
        given["host"] = str(tmp_path / "host.json")
    request = Request(
        asks=tuple(row["asks"]), devices=tuple(row.get("devices", ())), source_builds=bool(row.get("source_builds")), **given
    )
    plan = resolve(request)
    assert row["answer"] in (plan["status"], "either"), short(plan)
    missed = list(of_plan(plan, row) if plan["status"] == "ok" else of_conflict(plan, row))
    assert not missed, short(plan)


def short(plan: Row) -> str:
    if plan["status"] == "ok":
        return ", ".join(f"{n} {p['version']}+{p['build']}" for n, p in plan["picks"].items())
    return json.dumps(plan["conflict"], indent=1)[:4000]


def lacking(words: Any, text: str) -> list[Any]:
    low = text.lower()
    listed = words if isinstance(words, list) else [words] if words else []
    return [w for w in listed if not any(str(x).lower() in low for x in (w if isinstance(w, list) else [w]))]


def fits(pick: Row | None, want: Row) -> bool:
    if pick is None:
        return False
    inside = SpecifierSet(want.get("version", "")).contains(Version(pick["version"]), prereleases=True)
    builds = want.get("build") or ["*"]
    named = any(fnmatch(pick["build"], b) for b in (builds if isinstance(builds, list) else [builds]))
    return inside and named and want.get("index", "") in pick["index"]


def of_plan(plan: Row, row: Row) -> Iterator[str]:
    picks = {normalise(name): pick for name, pick in plan["picks"].items()}
    yield from (f"{n} is not {w}" for n, w in row.get("picks", {}).items() if not fits(picks.get(normalise(n)), w))
    yield from (f"{n} is {w}" for n, w in row.get("never", {}).items() if normalise(n) in picks and fits(picks[normalise(n)], w))
    options = row.get("one_of", [])
    if options and not any(all(fits(picks.get(normalise(n)), w) for n, w in option.items()) for option in options):
        yield f"none of {options}"
    builds = {picks[normalise(n)]["build"] for n in row.get("same_build", ()) if normalise(n) in picks}
    if len(builds) > 1:
        yield f"builds differ: {builds}"
    if plan["python"] != row.get("gives_python", plan["python"]):
        yield f"python {plan['python']}"
    yield from (f"stack {plan['stack']}" for k, v in row.get("gives_stack", {}).items() if not plan["stack"][k].startswith(v))
    image = (plan["image"] or {}).get("ref", "")
    yield from (f"image lacks {w}" for w in lacking(row.get("image"), image))
    yield from (f"image has {w}" for w in row.get("image_never", ()) if w in image)
    yield from (
        f"env lacks {n}" for n, v in row.get("env", {}).items() if plan["env"].get(n) is None or v not in (None, plan["env"][n])
    )
    yield from (f"env sets {n}" for n in row.get("env_never", ()) if n in plan["env"])
    yield from (f"run line lacks {w}" for w in lacking(row.get("run"), " ".join(plan["run_args"])))
    warned = " ".join(f"{w['rule']} {w['message']}" for w in plan["warnings"])
    yield from (f"no warning of {w}" for w in lacking(row.get("warns"), warned))
    both = [
        *lacking(row.get("says_when_ok"), json.dumps(plan)),
        *(lacking(row.get("says"), json.dumps(plan)) if row["answer"] == "ok" else ()),
    ]
    yield from (f"nowhere says {w}" for w in both)


def of_conflict(plan: Row, row: Row) -> Iterator[str]:
    conflict = plan["conflict"]
    core = " | ".join(item["text"] for item in conflict["core"])
    yield from (f"core lacks {w}" for w in lacking(row.get("core"), core))
    yield from (f"reasons lack {w}" for w in lacking(row.get("reasons"), core + json.dumps(conflict["because"])))
    yield from (f"nowhere says {w}" for w in lacking(row.get("says"), json.dumps(plan)))
    changes = [c for r in conflict["relaxations"] for c in r["change"]]
    wanted = row.get("way_out", [])
    if wanted and not any(same(change, want) for change in changes for want in wanted):
        yield f"no way out like {wanted}"
    first = {c["kind"] for r in conflict["relaxations"][:1] for c in r["change"]}
    yield from (f"{kind} comes first" for kind in row.get("first_way_out_never", ()) if kind in first)


def same(change: Row, want: Row) -> bool:
    if change["kind"] != want["kind"] or (want.get("name") and normalise(change["name"]) != normalise(want["name"])):
        return False
    ours, theirs = spec(change["spec"]), spec(want.get("spec", ""))
    if ours is None or theirs is None:
        return True
    named = [Version(s.version.removesuffix(".*")) for s in [*ours, *theirs]]
    return any(ours.contains(v, prereleases=True) and theirs.contains(v, prereleases=True) for v in [*GRID, *named])


def spec(text: str) -> SpecifierSet | None:
    """The set, or None for words that are no specifier (`leave out`, `cuda-12.6`)."""
    text = f"=={text}" if text[:1].isdigit() else text
    try:
        return SpecifierSet(text)
    except ValueError:
        return None
