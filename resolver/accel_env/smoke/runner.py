"""The program: every check in a child process with a time limit, so that a crash or a hang is a result like any other."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from typing import Any

from accel_env.smoke.device import KINDS, backward, compiled, driver, matmul_half, matmul_single, memory, tensor
from accel_env.smoke.imports import (
    import_check,
    import_checks,
    numpy_bridge,
    tokenizers_round_trip,
    torch_maths,
    transformers_forward,
)
from accel_env.smoke.installed import versions
from accel_env.smoke.kernels import (
    all_reduce,
    flash_attention,
    quant_eight,
    quant_four,
    quant_optimizer,
    sdpa,
    triton_kernel,
)
from accel_env.smoke.packages import owners, planned_versions, requirements
from accel_env.smoke.quant import bitsandbytes_cpu
from accel_env.smoke.static import archs, majors, needed, python, symbols, system_versions
from accel_env.smoke.verdict import FAIL, LEVELS, PASS, SCHEMA, SKIP, Check, Context, FailedError, Result, SkippedError

_FAILED = 7


def fixed_checks() -> list[Check]:
    """Every check but the imports, in order; seconds are for a slow machine with a cold disk."""
    return [
        Check("static", "python", 30, python),
        Check("static", "packages as planned", 60, planned_versions),
        Check("static", "requirements met", 60, requirements),
        Check("static", "one owner per module", 120, owners),
        Check("static", "libraries found", 240, needed),
        Check("static", "system libraries new enough", 240, system_versions),
        Check("static", "symbols of torch", 300, symbols),
        Check("static", "one major", 240, majors),
        Check("static", "architectures", 240, archs),
        Check("import", "torch maths", 180, torch_maths),
        Check("import", "numpy bridge", 180, numpy_bridge),
        Check("import", "bitsandbytes on the CPU", 180, bitsandbytes_cpu),
        Check("import", "tokenizers", 120, tokenizers_round_trip),
        Check("import", "transformers", 300, transformers_forward),
        Check("device", "driver", 180, driver),
        Check("device", "tensor", 180, tensor),
        Check("device", "matmul in 32 bits", 180, matmul_single),
        Check("device", "matmul in 16 bits", 180, matmul_half),
        Check("device", "backward", 180, backward),
        Check("device", "torch.compile", 600, compiled),
        Check("device", "triton kernel", 300, triton_kernel),
        Check("device", "attention", 180, sdpa),
        Check("device", "flash-attn", 180, flash_attention),
        Check("device", "bitsandbytes 8 bits", 180, quant_eight),
        Check("device", "bitsandbytes 4 bits", 180, quant_four),
        Check("device", "bitsandbytes optimizer", 180, quant_optimizer),
        Check("device", "memory", 180, memory),
        Check("device", "all-reduce", 300, all_reduce),
    ]


def all_checks(expect: dict[str, Any]) -> list[Check]:
    """Every check in the order in which they run."""
    fixed = fixed_checks()
    place = next(number for number, check in enumerate(fixed) if check.level == "import")
    return [*fixed[:place], *import_checks(expect), *fixed[place:]]


def run_one(check: Check, context: Context) -> Result:
    """The check in this process; whatever it raises is a verdict."""
    start = time.monotonic()
    verdict, detail, facts = PASS, "", None
    try:
        detail, facts = check.run(context)
    except SkippedError as problem:
        verdict, detail = SKIP, str(problem)
    except FailedError as problem:
        verdict, detail = FAIL, str(problem)
    except BaseException as problem:
        traceback.print_exc()
        verdict, detail = FAIL, f"{type(problem).__name__}: {problem}"
    return Result(check.level, check.name, verdict, " ".join(detail.split()), time.monotonic() - start, facts)


def run_child(check: Check, words: Sequence[str], patience: float = 1.0) -> Result:
    """The check in a child process, started by the command `words`."""
    start = time.monotonic()
    limit = check.seconds * patience
    with tempfile.TemporaryDirectory() as folder:
        answer, log = os.path.join(folder, "answer"), os.path.join(folder, "log")
        with open(log, "wb") as stream:
            line = [*words, "--one", f"{check.level}/{check.name}", "--answer", answer]
            child = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True)
            try:
                status: int | None = child.wait(limit)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                _end(child)
        seconds = time.monotonic() - start
        with contextlib.suppress(OSError, ValueError), open(answer, encoding="utf-8") as found:
            row = json.load(found)
            return Result(check.level, check.name, row["verdict"], row["detail"], seconds, row.get("facts"))
        what = f"no answer within {limit:g} s" if status is None else _ended(status)
        return Result(check.level, check.name, FAIL, f"{what}{_last(log)}", seconds)


def _end(child: Any) -> None:
    """Ends what is left of a child and of those it started."""
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
    child.wait()


def _ended(status: int) -> str:
    if status >= 0:
        return f"ended with status {status} and no answer"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


def _last(log: str) -> str:
    """The last line that the child said."""
    with open(log, "rb") as stream:
        stream.seek(max(0, os.path.getsize(log) - 4096))
        lines = [line.strip() for line in stream.read().decode("utf-8", "replace").splitlines() if line.strip()]
    return f"; it said last: {lines[-1][:300]}" if lines else ""


def report(results: Sequence[Result], levels: Sequence[str], device: str) -> dict[str, Any]:
    """The report as JSON knows it."""
    here = versions()
    libc = " ".join(part for part in platform.libc_ver() if part)
    summary = {verdict: sum(result.verdict == verdict for result in results) for verdict in (PASS, FAIL, SKIP)}
    return {
        "schema": SCHEMA, "status": FAIL if summary[FAIL] else PASS, "levels": list(levels), "device": device,
        "environment": {
            "python": platform.python_version(), "platform": f"{platform.system().lower()}_{platform.machine()}", "libc": libc,
            "packages": len(here), "torch": here.get("torch", ""),
        },
        "summary": summary, "checks": [result.row() for result in results],
    }  # fmt: skip


def chosen(given: Any) -> list[Check]:
    """The checks that the command line asks for."""
    listed = all_checks(given.expect) if "import" in given.levels else fixed_checks()
    wanted = [check for check in listed if check.level in given.levels]
    if given.only:
        wanted = [check for check in wanted if any(part in f"{check.level}/{check.name}" for part in given.only)]
    return wanted


def parsed(words: Sequence[str]) -> Any:
    """The command line."""
    parser = argparse.ArgumentParser(description="Whether this environment works. Prints a report as JSON; exit status 7: no.")
    parser.add_argument("--levels", default="static,import", help=f"which levels, of {','.join(LEVELS)}")
    parser.add_argument("--device", default="", choices=("", "cpu", *KINDS), help="for level device; else the first there is")
    parser.add_argument("--expect", default="{}", help="what the plan says, as JSON, or @FILE")
    parser.add_argument("--only", action="append", default=[], help="checks with this text in their names; repeat for several")
    parser.add_argument("--patience", type=float, default=1.0, help="all time limits times this")
    parser.add_argument("--output", default="-", help="where the report goes")
    parser.add_argument("--one", default="", help=argparse.SUPPRESS)
    parser.add_argument("--answer", default="", help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    given.levels = [level for level in given.levels.split(",") if level]
    unknown = [level for level in given.levels if level not in LEVELS]
    if unknown:
        parser.error(f"no such level: {', '.join(unknown)}")
    try:
        if given.expect.startswith("@"):
            with open(given.expect[1:], encoding="utf-8") as stream:
                given.expect = json.load(stream)
        else:
            given.expect = json.loads(given.expect)
    except (OSError, ValueError) as problem:
        parser.error(f"--expect: {problem}")
    return given


def main(words: Sequence[str] | None = None) -> int:
    """0, or 7 where a check failed."""
    typed = list(sys.argv[1:] if words is None else words)
    given = parsed(typed)
    if given.one:
        return _answer_one(given)
    results = []
    for check in chosen(given):
        result = run_child(check, [sys.executable, os.path.abspath(sys.argv[0]), *typed], given.patience)
        print(result.line(), file=sys.stderr, flush=True)
        results.append(result)
    text = json.dumps(report(results, given.levels, given.device), indent=1)
    if given.output == "-":
        print(text)
    else:
        with open(given.output, "w", encoding="utf-8") as stream:
            stream.write(text + "\n")
    return _FAILED if any(result.verdict == FAIL for result in results) else 0


def _answer_one(given: Any) -> int:
    """Runs one check here and writes its result into a file, whole."""
    level, _, name = given.one.partition("/")
    check = next((check for check in fixed_checks() if (check.level, check.name) == (level, name)), None)
    if check is None and level == "import":
        check = import_check(name, given.expect)
    if check is None:
        return 2
    row = run_one(check, Context(given.expect, given.device)).row()
    with open(given.answer + ".part", "w", encoding="utf-8") as stream:
        json.dump(row, stream)
    os.replace(given.answer + ".part", given.answer)
    return 0
