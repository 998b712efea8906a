"""A long run against the reader of error texts; not part of the unit run.

    .venv/bin/python tests/fuzz/fuzz_signatures.py --minutes 3

Random bytes, parts of real messages in any order, and for every pattern the texts that make it work hardest. It prints the
slowest patterns and exits with 1 where something crashed, or where one search took longer than the limit.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from pathlib import Path
from typing import Any

import yaml

from accel_env.judge import signatures
from accel_env.judge.signatures import Table
from accel_env.judge.text_scan import AFTER, BEFORE, Scanner
from accel_env.matrix.load import open_matrix

LIMIT = 0.25  # seconds that one search in one window may take, on a busy machine
WINDOW = BEFORE + AFTER
EXAMPLES = Path(__file__).parents[1] / "signatures"
FILL = ("a", " ", "1", ".", "a ", "1.", "x/", "sm_90 ", "a-1 (2) ", "==1 ", "_", "A", "`", "'", "(", "0x", "a.so: ", "\\")


def pieces(table: Table) -> list[str]:
    """Literals, and the words of the real examples."""
    found = [*table.by_needle, *FILL, "\n", "\t", "\0", "\u2502", "\x1b[31m"]
    for path in EXAMPLES.glob("*.yaml"):
        for row in yaml.safe_load(path.read_text(encoding="utf-8")).values():
            for example in row["find"]:
                found += [example["text"], *re.split(r"(\s+|[:()`'])", example["text"])]
    return [piece for piece in found if piece]


def hard_windows(table: Table, chance: random.Random) -> dict[str, float]:
    """The longest search of each pattern over windows made of its needles and of what its groups may match."""
    slowest: dict[str, float] = {}
    for signature in table.signatures:
        pattern = table.pattern(signature)
        for _ in range(12):
            needle, fill = chance.choice(signature.needles), chance.choice(FILL)
            for window in (
                needle + fill * WINDOW,
                fill * BEFORE + needle + fill * AFTER,
                (needle + fill) * WINDOW,
                (needle + " ") * WINDOW,
            ):
                start = time.perf_counter()
                pattern.search(window[:WINDOW])
                took = time.perf_counter() - start
                slowest[signature.id] = max(took, slowest.get(signature.id, 0.0))
    return slowest


def mixed(chance: random.Random, parts: list[str]) -> bytes:
    """Bytes to be read: noise, or parts of messages."""
    if chance.random() < 0.3:
        return chance.randbytes(chance.randrange(6000))
    return "".join(chance.choices(parts, k=chance.randrange(200))).encode("utf-8", "replace")


def run(minutes: float, seed: int) -> int:
    """The exit status."""
    chance, end = random.Random(seed), time.monotonic() + minutes * 60
    table = signatures.load(open_matrix(), strict=True)
    parts, rounds, clues = pieces(table), 0, 0
    slowest: dict[str, float] = {}
    while time.monotonic() < end:
        for name, took in hard_windows(table, chance).items():
            slowest[name] = max(took, slowest.get(name, 0.0))
        for _ in range(300):
            content: Any = mixed(chance, parts)
            scanner = Scanner(table)
            cut = chance.randrange(len(content) + 1)
            scanner.feed(content[:cut])
            scanner.feed(content[cut:])
            clues += len(scanner.hits())
            rounds += 1
    worst = sorted(slowest.items(), key=lambda item: -item[1])[:5]
    print(
        f"{rounds} texts, {clues} clues, seed {seed}; slowest searches: "
        + ", ".join(f"{name} {took * 1000:.1f} ms" for name, took in worst)
    )
    return 1 if worst and worst[0][1] > LIMIT else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    words = parser.parse_args()
    sys.exit(run(words.minutes, words.seed))
