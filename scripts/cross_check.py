#!/usr/bin/env python3
"""Let uv judge plans: does `uv pip compile` accept the exact picks, for the plan's Python and platform?

usage: .venv/bin/python scripts/cross_check.py [--count N] [--seed N] [--jobs N] [--bundle NAME ...] [--json FILE]

Plans are drawn at random from profile x bundle x Python; those count whose picks all come from PyPI, so that uv sees what a
user's installer would see: `name[extras]==version` of every pick and what the bundle holds beyond the matrix. Every pick must
have a wheel; where another package has none, that is said, for such a plan cannot be locked. uv knows nothing of the matrix: a
refusal is a fault of the matrix, or of a release on PyPI that nobody can install.
Exit status: 0 where uv accepts every plan, 1 where it refuses one, 2 where fewer than N plans could be drawn.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix

UNSOLVABLE = 1  # uv's exit status for requirements that cannot hold together; any other is trouble of its own
ACCEPTED, BUILT, REFUSED = "accepted", "accepted, but a package has no wheel", "refused"
SECONDS = 600
TRIES = 3


@dataclass(frozen=True)
class Drawn:
    """A plan and the question that it puts to uv. `platform`: as uv writes it, with the glibc of the base image."""

    profile: str
    bundle: str
    python: str
    platform: str
    lines: tuple[str, ...]

    @property
    def label(self) -> str:
        """What a reader knows it by."""
        return f"{self.profile} @{self.bundle} Python {self.python}"


def main() -> int:
    """Draw, ask, report."""
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument("--count", type=_above_zero, default=200)
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--jobs", type=_above_zero, default=4)
    words.add_argument("--bundle", action="append", default=[])
    words.add_argument("--json", type=Path)
    given = words.parse_args()
    if given.json and not given.json.parent.is_dir():
        words.error(f"--json: there is no folder {given.json.parent}")

    from accel_env.app import matrix_of

    matrix = matrix_of()
    if strange := sorted(set(given.bundle) - set(matrix.bundles())):
        words.error(f"--bundle: the matrix has no bundle {', '.join(strange)}")
    plans = list(itertools.islice(draw(matrix, random.Random(given.seed), given.bundle), given.count))
    print(f"{len(plans)} plans of matrix {matrix.version}, seed {given.seed}", file=sys.stderr)
    refused: list[dict[str, str]] = []
    built: list[str] = []
    with ThreadPoolExecutor(given.jobs) as pool:
        for place, (plan, (verdict, said)) in enumerate(zip(plans, pool.map(judge, plans), strict=True), 1):
            print(f"[{place}/{len(plans)}] {verdict}: {plan.label}", file=sys.stderr)
            if verdict == REFUSED:
                refused.append({"plan": plan.label, "requirements": " ".join(plan.lines), "uv": said})
            elif verdict == BUILT:
                built.append(f"{plan.label}: {said}")
    for row in refused:
        print(f"{row['plan']}\n  {row['requirements']}\n  {row['uv']}\n")
    for line in built:
        print(f"{BUILT}: {line}")
    print(f"uv accepts {len(plans) - len(refused)}/{len(plans)}, {len(built)} of them only where it may build a package")
    if given.json:
        report = {"plans": len(plans), "seed": given.seed, "refused": refused, "built": built}
        given.json.write_text(json.dumps(report, indent=1) + "\n")
    return 1 if refused else 2 if len(plans) < given.count else 0


def _above_zero(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number above zero")
    return int(text)


def draw(matrix: Matrix, chance: random.Random, only: list[str]) -> Iterator[Drawn]:
    """Plans whose picks are all on PyPI, each question once, in random order."""
    pythons = [row.version for row in matrix.pythons() if not row.version.endswith("t")]
    bundles = only or list(matrix.bundles())
    every = list(itertools.product(matrix.profiles(), bundles, pythons))
    chance.shuffle(every)
    seen: set[tuple[str, str, tuple[str, ...]]] = set()
    for profile, bundle, python in every:
        plan = plan_for(matrix, profile, bundle, python)
        if plan is not None and (plan.python, plan.platform, plan.lines) not in seen:
            seen.add((plan.python, plan.platform, plan.lines))
            yield plan


def plan_for(matrix: Matrix, profile: str, bundle: str, python: str) -> Drawn | None:
    """The plan as a question; None where there is none, or where a pick comes from elsewhere than PyPI."""
    from accel_env.app import Request, problem_of
    from accel_env.app_close import answer_of
    from accel_env.errors import AccelEnvError
    from accel_env.model import Solution

    try:
        problem, _ = problem_of(Request(asks=(f"@{bundle}",), host=profile, python=python), matrix)
        answer = answer_of(problem, matrix)
    except AccelEnvError:
        return None
    if not isinstance(answer, Solution) or any(pick.candidate.index != "pypi" for pick in answer.picks):
        return None
    libc = answer.image.libc if answer.image else ""
    host = answer.problem.host
    asked = {ask.name: ask.extras for ask in answer.problem.asks}
    lines = []
    for pick in answer.picks:
        candidate = pick.candidate
        extras = ",".join(dict.fromkeys((*candidate.extras, *asked.get(candidate.name, ()))))
        lines.append(f"{candidate.name}{f'[{extras}]' if extras else ''}=={candidate.version}")
    lines += [ask.text or ask.name for ask in answer.outside]
    tag = f"manylinux_{libc.replace('.', '_')}" if libc else "unknown-linux-gnu"
    return Drawn(profile, bundle, answer.python, f"{host.arch}-{tag}", tuple(lines))


def judge(plan: Drawn) -> tuple[str, str]:
    """(verdict, uv's words against wheels alone). RuntimeError where uv itself fails."""
    said = ask(plan, ["--no-build"])
    if not said:
        return ACCEPTED, ""
    picks = [word for line in plan.lines for word in ("--only-binary", line.partition("==")[0].partition("[")[0])]
    again = ask(plan, picks)
    return (REFUSED, again) if again else (BUILT, said)


def ask(plan: Drawn, limits: list[str]) -> str:
    """uv's words where it refuses the plan under some limits, else nothing."""
    from accel_env.lock.uv import find_uv

    command = [
        find_uv(), "pip", "compile", "-", "--quiet", "--no-header", "--color", "never", "--no-python-downloads", "--no-config",
        "--python-version", plan.python, "--python-platform", plan.platform, *limits,
    ]  # fmt: skip
    lines = "\n".join(plan.lines) + "\n"
    done = None
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(TRIES):
            done = subprocess.run(command, input=lines, cwd=folder, text=True, capture_output=True, timeout=SECONDS, check=False)
            if done.returncode in (0, UNSOLVABLE):
                return done.stderr.strip() if done.returncode else ""
    raise RuntimeError(f"uv failed on {plan.label}: {done.stderr.strip() if done else ''}")


if __name__ == "__main__":
    sys.exit(main())
