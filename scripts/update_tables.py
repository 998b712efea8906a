#!/usr/bin/env python3
"""Reads tables that vendors publish for machines: PyTorch's build matrix and release table, ROCm's compatibility table.

A build of torch that a table names and the matrix has not is drafted as `unknown` (not picked); a ROCm release is drafted
with its targets and kernel drivers. Python source is read as data and never run. A table that lost rows, or names a stack,
Python or target that the matrix does not know, stops the run.
"""

from __future__ import annotations

import ast
import csv
import io
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from packaging.version import InvalidVersion, Version

from updating import edit
from updating.run import Job, main

ROCM = "stacks/rocm.yaml"
CHANNEL = "release"


def draft(job: Job) -> None:
    """Every table of refresh.yaml."""
    readers: dict[str, Callable[[Job, Mapping[str, Any], str], None]] = {
        "torch-builds": _torch_builds,
        "torch-releases": _torch_releases,
        "rocm": _rocm,
    }
    for name, rules in job.settings["tables"].items():
        readers[name](job, rules, job.source.get(rules["url"]).text)


def _torch_builds(job: Job, rules: Mapping[str, Any], text: str) -> None:
    """The script that generates PyTorch's build matrix: what its release channel builds."""
    names = _literals(text)
    found = {key: names.get(name) for key, name in rules["names"].items()}
    lists = {key: value.get(CHANNEL) for key, value in found.items() if isinstance(value, dict)}
    stable = str(found.get("version") or "")
    if not stable or not all(isinstance(lists.get(key), list) and lists[key] for key in ("cuda", "rocm", "python")):
        job.broken(f"{rules['url']} holds no {', '.join(rules['names'].values())} of the channel {CHANNEL} any more")
        return
    if f"torch/{stable}.yaml" not in job.model.raw:
        job.notes.append(
            f"torch {stable} is the stable release of the table, and has no file in the matrix: see update_pypi.py"
        )
        return
    labels = {f"cu{one.replace('.', '')}": f"cuda-{one}" for one in lists["cuda"] or ()}
    labels |= {f"rocm{one}": f"rocm-{'.'.join(one.split('.')[:2])}" for one in lists["rocm"] or ()}
    tags = [tag for python in lists["python"] or () if (tag := _tag(job, python, rules["url"]))]
    _missing(job, stable, labels, tags, rules)
    for label in sorted(_sure(job, stable) - set(labels)):
        job.broken(f"{rules['url']} builds torch {stable} no more as {label}, and the matrix has such builds")


def _literals(text: str) -> dict[str, Any]:
    """The constants that a Python source assigns at its top level."""
    found: dict[str, Any] = {}
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return {}
    for node in body:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        for target in targets:
            if isinstance(target, ast.Name) and isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                try:
                    found[target.id] = ast.literal_eval(node.value)
                except ValueError:
                    continue
    return found


def _tag(job: Job, python: str, where: str) -> str:
    if python not in {one.version for one in job.model.pythons}:
        job.unknown(f"{where} names Python {python}, which python.yaml does not know")
        return ""
    return "cp" + python.replace(".", "")


def _sure(job: Job, release: str) -> set[str]:
    """The labels of CUDA and ROCm builds on PyTorch's index whose existence is not in doubt."""
    return {
        build.build
        for package in job.model.packages
        if package.file == f"torch/{release}.yaml"
        for one in package.releases
        for build in one.builds
        if build.index.startswith("pytorch:")
        and build.stack.partition("-")[0] in ("cuda", "rocm")
        and not any(need.unknown and need.name == "torch" for need in build.needs)
    }


def _missing(job: Job, release: str, labels: Mapping[str, str], tags: Sequence[str], rules: Mapping[str, Any]) -> None:
    """Drafts the builds that a table names and the matrix has in no form."""
    file = f"torch/{release}.yaml"
    plain, _ = edit.parsed(job.text(file), file)
    row = next(one for one in plain["releases"] if one["version"] == release)
    have = {build["build"] for build in row["builds"]}
    for label, stack in sorted(labels.items()):
        if stack not in job.stacks():
            job.unknown(f"{rules['url']} names {label}: the matrix has no release {stack}")
        elif label not in have:
            fact = f"table-{label}"
            said = f"A table names {label} for torch {release}; no file of it was seen, its architectures are unknown"
            build = {
                "build": label,
                "index": f"pytorch:{label}",
                "platforms": list(rules["platforms"][stack.partition("-")[0]]),
                "stack": stack,
                "tags": list(tags) or _tags(row),
                "needs": {"published": {"unknown": True, "fact": fact}, "arch": {"unknown": True, "fact": fact}},
                "fact": fact,
            }
            block = edit.fact_block(fact, said, rules["source"], "vendor", job.today)
            text = edit.add_facts(edit.add_build(job.text(file), file, release, edit.build_lines(build)), file, [block])
            job.put(file, text, f"torch {release}+{label}")


def _tags(release: Mapping[str, Any]) -> list[str]:
    return list(release["builds"][0]["tags"])


def _torch_releases(job: Job, rules: Mapping[str, Any], text: str) -> None:
    """The table of RELEASE.md: CUDA and ROCm releases of each torch series."""
    rows = list(_markdown(text, rules["columns"]))
    if not rows:
        job.broken(f"{rules['url']} holds no table with the columns {', '.join(rules['columns'].values())} any more")
        return
    ours: dict[str, str] = {}
    for package in job.model.packages:
        for release in package.releases if package.name == "torch" else ():
            series = ".".join(release.version.split(".")[:2])
            if series not in ours or Version(release.version) > Version(ours[series]):
                ours[series] = release.version
    listed = {row["series"] for row in rows}
    for series in sorted(set(ours) - listed, key=Version):
        if Version(series) < max(map(Version, listed)):
            job.broken(f"{rules['url']} lists torch {series} no more")
    for row in rows:
        if row["series"] in ours:
            cuda = re.findall(r"CUDA (\d+\.\d+)", row["cuda"] + row["experimental"])
            labels = {f"cu{one.replace('.', '')}": f"cuda-{one}" for one in cuda}
            labels |= {
                f"rocm{one}": f"rocm-{'.'.join(one.split('.')[:2])}"
                for one in re.findall(r"ROCm (\d+\.\d+(?:\.\d+)?)", row["rocm"])
            }
            _missing(job, ours[row["series"]], labels, (), rules)


def _markdown(text: str, columns: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The rows of the first table that has the columns, by our names for them."""
    places: dict[str, int] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.strip().startswith("|") else []
        if not places and all(name in cells for name in columns.values()):
            places = {key: cells.index(name) for key, name in columns.items()}
        elif places and not cells:
            return
        elif places and len(cells) > max(places.values()) and re.fullmatch(r"\d+\.\d+", cells[places["series"]]):
            yield {key: cells[place] for key, place in places.items()}


def _rocm(job: Job, rules: Mapping[str, Any], text: str) -> None:
    """ROCm's compatibility table: targets and kernel drivers of each release."""
    rows = list(csv.reader(io.StringIO(text)))
    releases = [cell.strip() for cell in rows[0][1:]] if rows and rows[0][0].strip() == rules["head"] else []
    targets = _group(rows, rules["targets"])
    drivers = _group(rows, rules["drivers"])
    if not releases or not targets or not all(map(_is_version, releases)):
        job.broken(f"{rules['url']} is no table of ROCm releases with their targets any more")
        return
    known = {one.version for one in job.model.stacks["rocm"].releases}
    words = {target for one in job.model.stacks["rocm"].releases for target in one.targets} | {
        row.arch for vendor in job.model.vendors.values() for row in vendor.rows
    }
    listed = {".".join(release.split(".")[:2]) for release in releases}
    for release in sorted(known - listed, key=Version):
        if release in rules.get("listed", ()):
            job.broken(f"{rules['url']} lists ROCm {release} no more")
    done: set[str] = set()
    for column, release in enumerate(releases, 1):
        series = ".".join(release.split(".")[:2])
        if series in known or series in done:
            continue
        done.add(series)
        found = [match[0] for row in targets if len(row) > column and (match := re.search(r"\bgfx[0-9a-f]+\b", row[column]))]
        strange = sorted(set(found) - words)
        if strange:
            job.unknown(f"{rules['url']}: ROCm {release} names {', '.join(strange)}, which no device or stack of the matrix has")
            continue
        allows = (
            [f"=={one}.*" for row in drivers for one in re.findall(r"\b(\d+\.\d+)(?:\.[\dx]+)?\b", row[column])]
            if drivers
            else []
        )
        if not allows:
            job.notes.append(f"ROCm {release} is new, and the table does not name its kernel drivers: add it to {ROCM} by hand")
            continue
        _rocm_release(job, series, release, found, list(dict.fromkeys(allows)), rules)


def _rocm_release(
    job: Job, series: str, release: str, targets: Sequence[str], allows: Sequence[str], rules: Mapping[str, Any]
) -> None:
    fact = f"table-{series}"
    head = {"version": series, "driver": {"allows": list(allows), "fact": fact}, "targets": list(targets), "fact": fact}
    said = f"ROCm {release}: GPU targets and tested kernel driver versions of AMD's compatibility table"
    block = edit.fact_block(fact, said, rules["source"], "vendor", job.today)
    body = edit.release_block(head, [])[:-1]
    text = edit.add_release(edit.add_facts(job.text(ROCM), ROCM, [block]), ROCM, series, body)
    if wrong := edit.only_added(edit.parsed(job.text(ROCM), ROCM)[0], edit.parsed(text, ROCM)[0]):
        raise AssertionError(f"the draft for {ROCM} changes {wrong}")
    job.put(ROCM, text, f"ROCm {series}")


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def _group(rows: Sequence[Sequence[str]], title: str) -> list[Sequence[str]]:
    """The row whose first cell fits, and those below it whose first cell is empty, up to an empty or titled row."""
    start = next((place for place, row in enumerate(rows) if row and re.search(title, row[0])), None)
    if start is None:
        return []
    found = [rows[start]]
    for row in rows[start + 1 :]:
        if not row or row[0].strip() or not any(cell.strip() for cell in row[1:]):
            break
        found.append(row)
    return found


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", draft))
