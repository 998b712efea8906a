"""The benchmark's own arithmetic and words; what it measures is not for a test."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from scripts.bench import Figure, lines

ROOT = Path(__file__).resolve().parents[2]


def test_budgets_are_judged() -> None:
    assert Figure("a", 5.0, "x", 5).met and not Figure("a", 5.1, "x", 5).met
    assert Figure("a", 99.0, "x").met and not Figure("a", None, "x", 5).met


def test_figures_as_lines() -> None:
    told = list(lines([Figure("cold", 6.0, "starts", 5, "60 ms"), Figure("uv", None, "of it", 0.25, "no uv")]))
    assert told == ["cold  6.00 starts  budget 5: MISSED  (60 ms)", "uv    cannot be measured  budget 0.25: MISSED  (no uv)"]


def test_help_is_there() -> None:
    done = subprocess.run([sys.executable, ROOT / "scripts" / "bench.py", "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "--json" in done.stdout
