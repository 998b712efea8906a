#!/usr/bin/env python3
"""Plans of every profile and bundle: how many of the picks from PyPI are inspected or better, and which are not.

`--at-least 80` fails where the share, in per cent, is lower. `--json` prints the counts and the files that nobody has read.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from accel_env import app
from accel_env.app_close import answer_of, shown_plan
from accel_env.errors import AccelEnvError
from accel_env.matrix.load import Matrix, open_matrix
from accel_env.model import EVIDENCE

ROOT = Path(__file__).resolve().parents[1]


def main(words: list[str] | None = None) -> int:
    """0, or 1 where the share is lower than asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--profile", action="append", default=[], help="only these profiles")
    parser.add_argument("--bundle", action="append", default=[], help="only these bundles")
    parser.add_argument("--at-least", type=float, default=0.0, metavar="PERCENT")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(words)
    matrix = open_matrix(ROOT / "matrix")
    counts, others = count(matrix, given.profile or sorted(matrix.profiles()), given.bundle or sorted(matrix.bundles()))
    total = sum(counts[level] for level in EVIDENCE)
    share = 100 * sum(counts[level] for level in EVIDENCE[1:]) / total if total else 0.0
    missing = [{"pick": " ".join(key), "plans": number} for key, number in others.most_common()]
    if given.json:
        print(json.dumps({"share": round(share, 2), "counts": dict(counts), "not inspected": missing}, indent=1))
    else:
        print(f"{counts['plans']} plans, {counts['refused']} refusals; {total} picks from PyPI, {share:.1f} % inspected or more")
        print(", ".join(f"{level} {counts[level]}" for level in EVIDENCE))
        for row in missing[:40]:
            print(f"  {row['plans']:5d} {row['pick']}")
    return 0 if share >= given.at_least else 1


def count(matrix: Matrix, profiles: list[str], bundles: list[str]) -> tuple[Counter[str], Counter[tuple[str, ...]]]:
    """(plans, refusals and PyPI picks by evidence; the picks that are not inspected)."""
    counts: Counter[str] = Counter()
    others: Counter[tuple[str, ...]] = Counter()
    for profile in profiles:
        for bundle in bundles:
            answer = solved(matrix, profile, bundle)
            if "picks" not in answer:
                counts["refused"] += 1
                continue
            counts["plans"] += 1
            platform = f"{answer['host']['os']}_{answer['host']['arch']}"
            for name, pick in answer["picks"].items():
                if pick["index"] != "pypi":
                    continue
                counts[pick["evidence"]] += 1
                if pick["evidence"] == EVIDENCE[0]:
                    others[(name, pick["version"], pick["build"], pick.get("variant", "-"), pick.get("tag", "-"), platform)] += 1
    return counts, others


def solved(matrix: Matrix, profile: str, bundle: str) -> dict[str, Any]:
    """The plan as `resolve` shows it; no picks where there is none."""
    try:
        problem, notes = app.problem_of(app.Request(asks=(f"@{bundle}",), host=profile), matrix)
        return shown_plan(answer_of(problem, matrix), matrix, notes)
    except AccelEnvError:
        return {}


if __name__ == "__main__":
    sys.exit(main())
