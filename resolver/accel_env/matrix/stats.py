"""How much the matrix holds, as plain counts."""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from accel_env.matrix.load import Matrix
from accel_env.model import GRADES


def stats(matrix: Matrix) -> Mapping[str, object]:
    """Counts by name, ready for JSON. `wheels` counts (platform, tag) of all builds, `hashed` those whose hash is known here."""
    facts = matrix.facts()
    devices = list(matrix.devices())
    images = matrix.images()
    packages = {name: _package(matrix, name) for name in sorted(matrix.package_names())}
    artifacts = {index: _files(matrix, index) for index in matrix.artifact_indexes()}
    grades = Counter(fact.grade for fact in facts)
    return {
        "schema": "accel-env/stats/1",
        "version": matrix.version,
        "digest": matrix.digest,
        "totals": {
            "packages": len(packages), "releases": _sum(packages, "releases"), "builds": _sum(packages, "builds"),
            "candidates": _sum(packages, "candidates"), "wheels": _sum(packages, "wheels"), "devices": len(devices),
            "pci_ids": sum(len(row.pci) for row in devices), "facts": len(facts), "hashes": _sum(artifacts, "hashes"),
        },
        "packages": packages,
        "devices": dict(sorted(Counter(row.vendor for row in devices).items())),
        "pci_ids": dict(sorted(Counter(row.vendor for row in devices for _ in row.pci).items())),
        "stacks": {name: len(stack.releases) for name, stack in sorted(matrix.stacks().items())},
        "facts": {**{grade: grades[grade] for grade in GRADES}, "with doubt": sum(bool(fact.doubt) for fact in facts)},
        "artifacts": artifacts,
        "inspected": {name: count for name in packages if (count := _inspected(matrix, name))},
        "images": {
            "all": len(images), "with digest": sum(bool(image.digest or image.digests) for image in images),
            "default": sum(image.default for image in images),
        },
        "pythons": len(matrix.pythons()),
        "conflicts": len(matrix.conflicts()),
        "profiles": len(matrix.profiles()),
        "bundles": len(matrix.bundles()),
    }


def _sum(rows: Mapping[str, Mapping[str, int]], name: str) -> int:
    return sum(row[name] for row in rows.values())


def _package(matrix: Matrix, name: str) -> dict[str, int]:
    candidates = [item for platform in matrix.platforms(name) for item in matrix.candidates(name, platform)]
    return {
        "releases": len({item.version for item in candidates}),
        "builds": len({(item.version, item.build, item.variant, item.index, item.fact, item.tags) for item in candidates}),
        "candidates": len(candidates),
        "wheels": len({(item.version, item.build, item.index, item.platform, tag) for item in candidates for tag in item.tags}),
        "hashed": len({(item.version, item.build, item.index, item.platform, tag) for item in candidates for tag in item.hashed}),
        "unselectable": sum(any(need.unknown for need in item.needs) for item in candidates),
    }


def _inspected(matrix: Matrix, name: str) -> int:
    """The (build, platform, tag) whose file was read and agrees."""
    return sum(len(tags) for tags in matrix.inspected(name).values())


def _files(matrix: Matrix, index: str) -> dict[str, int]:
    files = matrix.artifact_files(index).values()
    return {
        "files": len(files), "hashes": sum(bool(file.sha256) for file in files),
        "seen twice or more": sum(bool(file.sha256) and file.seen > 1 for file in files),
        "in conflict": sum(bool(file.conflict) for file in files),
    }
