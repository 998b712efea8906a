"""`doctor`: judge an environment that is installed already, or described by reports, dumps and error texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accel_env.cli.options import DESCRIBE, HOST, JSON, OVERLAY
from accel_env.cli.table import Option, Verb, Words
from accel_env.errors import UsageError

if TYPE_CHECKING:
    from accel_env.app_judge import Sources

REPORT = Option(
    "report", ("--report",), "A report file: YAML or JSON with environment, error, collect_env.", "FILE", completes="path"
)
COLLECT_ENV = Option(
    "collect_env",
    ("--collect-env",),
    "Pasted output of collect_env, nvidia-smi, rocminfo, pip list and the like, `-` for stdin; repeat for several.",
    "FILE",
    many=True,
    completes="path",
)
ERROR = Option("error", ("--error",), "An error text; repeat for several.", "TEXT", many=True)
LOG = Option("log", ("--log",), "A log of any length, `-` for stdin; repeat for several.", "FILE", many=True, completes="path")
PYTHON = Option("interpreter", ("--python",), "The interpreter to judge instead of this one.", "PATH", completes="path")
IMPORT = Option("imports", ("--import",), "Also try the imports, each in a child process with a time limit.")
FORMAT = Option(
    "format", ("--format",), "How to print it.", "text|json|sarif|github", choices=("text", "json", "sarif", "github")
)
VERB = Verb(
    ("doctor",),
    "Judge an installed environment, or one that texts describe; say what is wrong and what to do.",
    (REPORT, COLLECT_ENV, ERROR, LOG, PYTHON, IMPORT, *DESCRIBE, OVERLAY, FORMAT, JSON),
    None,
    "accel-env doctor --collect-env dump.txt --error 'CUDA error: no kernel image is available'",
)


def run(words: Words) -> int:
    """Print the diagnosis; 0, or 8 where an error was found."""
    from accel_env import app
    from accel_env.cli.request import request

    answer = app.doctor(request(words, needs_asks=False), _sources(words))
    files = (words.text("report"), *words.many("collect_env"), *words.many("log"))
    return print_diagnosis(answer, wanted_format(words), next((name for name in files if name not in ("", "-")), ""))


def _sources(words: Words) -> Sources:
    from accel_env.app_judge import Sources

    return Sources(
        report=words.text("report"),
        collect_env=words.many("collect_env"),
        errors=words.many("error"),
        logs=words.many("log"),
        python=words.text("interpreter"),
        imports=words.flag("imports"),
        host_file=words.text("host"),
        host_words=any(words.many(option.dest) for option in DESCRIBE if option is not HOST),
    )


def wanted_format(words: Words) -> str:
    """The format of --format, or of --json. UsageError where they disagree."""
    given = words.text("format")
    if words.flag("json") and given not in ("", "json"):
        raise UsageError("format-given-twice", f"--json and --format {given} exclude each other", hint="keep one of them")
    return "json" if words.flag("json") else given or "text"


def print_diagnosis(answer: dict[str, object], wanted: str, file: str = "") -> int:
    """Print a diagnosis in a format; `file` is the place of findings that name none. Returns the exit code."""
    from accel_env.cli.output import answer_json, answer_text
    from accel_env.judge.findings import exit_code, github_lines

    if wanted == "json":
        answer_json(answer)
    elif wanted == "sarif":
        from accel_env.judge.sarif import sarif

        answer_json(sarif(answer, file))
    elif wanted == "github":
        answer_text(github_lines(answer, file))
    else:
        from accel_env.cli.show_findings import findings_lines
        from accel_env.cli.text import width

        answer_text(findings_lines(answer, width()))
    return exit_code(answer)
