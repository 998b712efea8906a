#!/usr/bin/env python3
"""Print how fast accel-env is, as ratios and figures taken in one run on one machine.

usage: .venv/bin/python scripts/bench.py [--only NAME ...] [--repeat N] [--json]

cold    a whole `accel-env resolve` process against a bare interpreter start (`python -c pass`)
uv      the same process against `uv pip compile --offline` of the same packages with a warm cache
warm    milliseconds per resolve in one process that keeps the matrix open
fleet   seconds and peak MiB for 10,000 hosts of 200 kinds, each kind solved once

Compared programs take turns, so that a slow moment of the machine hits all alike; medians are compared.
Exit status: 0 where every budget is met, 1 where one is missed, 2 where something could not be measured.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix

ASKS = ("torch", "bitsandbytes", "flash-attn")
# A machine for which all three exist, so that the search has something to find on any machine that runs this.
HOST = "h100-r580"
HOSTS, KINDS = 10_000, 200


@dataclass(frozen=True)
class Figure:
    """One line of the result. `value` is None where it could not be measured, and `note` says why."""

    name: str
    value: float | None
    unit: str
    budget: float | None = None
    note: str = ""

    @property
    def met(self) -> bool:
        return self.budget is None or (self.value is not None and self.value <= self.budget)


def main() -> int:
    """Measure what was asked for, print it, return the exit status."""
    parts: Mapping[str, Callable[[int], Iterator[Figure]]] = {"cold": cold, "uv": against_uv, "warm": warm, "fleet": fleet}
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", choices=sorted(parts), help="measure this alone; repeat for several")
    parser.add_argument("--repeat", type=int, default=15, metavar="N", help="runs of each process (default: 15)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--fleet-worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fleet_worker:
        print(json.dumps(fleet_worker()))
        return 0
    figures = [figure for name in options.only or parts for figure in parts[name](max(1, options.repeat))]
    if options.json:
        print(json.dumps([{**asdict(figure), "met": figure.met} for figure in figures], indent=2))
    else:
        print("\n".join(lines(figures)))
    if any(figure.value is None for figure in figures):
        return 2
    return 0 if all(figure.met for figure in figures) else 1


def lines(figures: Sequence[Figure]) -> Iterator[str]:
    """The figures, aligned, with their budgets."""
    size = max(len(figure.name) for figure in figures)
    for figure in figures:
        value = "cannot be measured" if figure.value is None else f"{figure.value:.2f} {figure.unit}"
        budget = "" if figure.budget is None else f"  budget {figure.budget:g}: {'met' if figure.met else 'MISSED'}"
        yield f"{figure.name.ljust(size)}  {value}{budget}{f'  ({figure.note})' if figure.note else ''}"


def command(*words: str) -> list[str]:
    """accel-env as its console script runs it, without the shell."""
    return [sys.executable, str(Path(sys.executable).with_name("accel-env")), *words]


def seconds(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> tuple[float, int]:
    """(wall seconds, exit status) of one process whose output is thrown away."""
    start = time.perf_counter()
    done = subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, env=environment)
    return time.perf_counter() - start, done.returncode


def medians(commands: Sequence[Sequence[str]], repeat: int) -> list[float]:
    """Median seconds of each command, measured in turns after one unmeasured round."""
    taken: list[list[float]] = [[] for _ in commands]
    for round_ in range(repeat + 1):
        for times, argv in zip(taken, commands, strict=True):
            time_, _ = seconds(argv)
            if round_:
                times.append(time_)
    return [statistics.median(times) for times in taken]


def _compile() -> None:
    """Bytecode for the checkout, as the set-up makes it: else PYTHONDONTWRITEBYTECODE would have us measure the compiler."""
    compileall.compile_dir(Path(__file__).resolve().parents[1] / "resolver", quiet=2)


def cold(repeat: int) -> Iterator[Figure]:
    """Whole processes against interpreter starts: for a described host, and for this very machine."""
    _compile()
    described, here = command("resolve", *ASKS, "--host", HOST), command("resolve", *ASKS)
    _, status = seconds(described)
    bare, for_host, for_here = medians([[sys.executable, "-c", "pass"], described, here], repeat)
    yield Figure("bare interpreter start", bare * 1000, "ms")
    note = f"{for_host * 1000:.0f} ms" + ("" if status == 0 else f"; exit status {status}")
    yield Figure(f"cold resolve for {HOST}", for_host / bare, "starts", 5, note)
    yield Figure("cold resolve on this machine", for_here / bare, "starts", 5, f"{for_here * 1000:.0f} ms, probes included")


def against_uv(repeat: int) -> Iterator[Figure]:
    """The same packages through `uv pip compile --offline`, its cache filled just before."""
    name = "cold resolve against uv pip compile --offline"
    _compile()
    with tempfile.TemporaryDirectory() as folder:
        for asks in (ASKS, ASKS[:-1]):
            asked = Path(folder) / "asked.in"
            asked.write_text("\n".join(asks) + "\n")
            uv = [
                *(sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-header"),
                *("--cache-dir", folder + "/cache", "--python-version", "3.12", "--python-platform", "x86_64-manylinux_2_28"),
                *("--only-binary", ":all:", str(asked)),
            ]
            done = subprocess.run(uv, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                break
        else:
            said = next((line.strip() for line in done.stderr.splitlines() if line.strip()), "no word")
            yield Figure(name, None, "of uv's time", 0.25, f"uv cannot fill its cache here: {said}")
            return
        # `python -m uv` adds an interpreter start; the program itself is what is compared.
        from uv import find_uv_bin

        offline = [find_uv_bin(), *uv[3:], "--offline"]
        ours, theirs = medians([command("resolve", *asks, "--host", HOST), offline], repeat)
        left = "" if asks == ASKS else f"; without {ASKS[-1]}, which has no wheel on PyPI"
        yield Figure(name, ours / theirs, "of uv's time", 0.25, f"{ours * 1000:.0f} ms against {theirs * 1000:.0f} ms{left}")


def warm(repeat: int) -> Iterator[Figure]:
    """Milliseconds per resolve for every profile of the matrix, the matrix open already."""
    from accel_env import app

    matrix = app.matrix_of()
    times: list[tuple[float, str]] = []
    for profile in sorted(matrix.profiles()):
        best = min(_answer_seconds(profile, matrix) for _ in range(min(repeat, 3)))
        times.append((best * 1000, profile))
    values = sorted(time_ for time_, _ in times)
    worst = max(times)
    yield Figure("resolve in process, median", statistics.median(values), "ms", 20, f"{len(values)} profiles")
    yield Figure("resolve in process, 9 in 10", values[(len(values) * 9) // 10 - 1], "ms")
    yield Figure("resolve in process, slowest", worst[0], "ms", None, worst[1])


def _answer_seconds(profile: str, matrix: Matrix) -> float:
    from accel_env import app
    from accel_env.solve.finish import answer
    from accel_env.solve.prune import prune

    start = time.perf_counter()
    problem, _ = app.problem_of(app.Request(asks=ASKS, host=profile), matrix)
    answer(prune(problem, matrix))
    return time.perf_counter() - start


def fleet(_: int) -> Iterator[Figure]:
    """Wall seconds and peak MiB of a process of its own that answers for a fleet."""
    argv = [sys.executable, os.path.abspath(__file__), "--fleet-worker"]
    start = time.perf_counter()
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - start
    if done.returncode:
        said = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no word"
        yield Figure("fleet", None, "s", 5, said)
        return
    told = json.loads(done.stdout)
    yield Figure(f"{HOSTS} hosts of {told['kinds']} kinds", wall, "s", 5, f"{told['solved']} of them with an answer")
    yield Figure("fleet, peak memory", told["peak_mib"], "MiB", 300)


def fleet_worker() -> dict[str, float]:
    """Answer for HOSTS hosts; equal problems are solved once, as a program for a fleet would do."""
    from accel_env import app
    from accel_env.model import Solution
    from accel_env.solve.finish import answer
    from accel_env.solve.prune import prune

    matrix = app.matrix_of()
    profiles = sorted(matrix.profiles())
    pythons = ["", *(python.version for python in matrix.pythons())]
    kinds = [(profile, python) for python in pythons for profile in profiles][:KINDS]
    answers: dict[str, bool] = {}
    solved = 0
    for number in range(HOSTS):
        profile, python = kinds[number % len(kinds)]
        problem, _ = app.problem_of(app.Request(asks=ASKS, host=profile, python=python), matrix)
        key = repr(problem)
        if key not in answers:
            answers[key] = isinstance(answer(prune(problem, matrix)), Solution)
        solved += answers[key]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # Linux counts KiB
    return {"kinds": len(kinds), "solved": solved, "peak_mib": peak}


if __name__ == "__main__":
    sys.exit(main())
