"""`matrix verify PKG==V`: one artifact read again and compared with what the matrix says of it."""
from __future__ import annotations

from accel_env.cli.options import JSON, OVERLAY, PYTHON
from accel_env.cli.table import Argument, Option, Verb, Words
from accel_env.errors import ClosureError, UsageError

SPEC = Argument(
    "spec", "PKG[==V][+BUILD]", "The release, and of several builds the one that is meant.", many=False, completes="known"
)
OPTIONS = (
    Option("build", ("--build",), "The build by its label, or a variant in it.", "LABEL"),
    PYTHON,
    Option("platform", ("--platform",), "The platform of the file; else Linux on x86_64.", "OS_CPU"),
    Option("index", ("--index",), "Take the file from this index instead of its own.", "URL"),
    Option(
        "file", ("--file",), "A local copy; its hash is the matrix's or, with --index, the one listed there.", "WHEEL",
        completes="path",
    ),
    Option("quick", ("--quick",), "Read by ranges and believe the index's hash, instead of downloading all and hashing it."),
)
VERB = Verb(
    ("matrix", "verify"), "Read one artifact again and compare it with the matrix.", (*OPTIONS, OVERLAY, JSON), SPEC,
    "accel-env matrix verify bitsandbytes",
)


def run(words: Words) -> int:
    """Print what agrees and what differs; 0, or 5 where something differs, or the hash is another one or known to nobody."""
    from accel_env import app
    from accel_env.app_inspect import Wanted, verify
    from accel_env.cli.output import print_answer, progress_of

    if not words.text("spec"):
        raise UsageError("nothing-named", "`matrix verify` needs a release", hint=f"such as `{VERB.example}`")
    asked = Wanted(
        words.text("spec"), words.text("build"), words.text("python"), words.text("platform"), words.text("index"),
        words.text("file"), words.flag("quick"),
    )
    answer = verify(asked, app.matrix_of(words.many("overlay")), progress_of(words.flag("json")))
    print_answer(answer, words.flag("json"), _lines)
    return 0 if answer["status"] == "agrees" else ClosureError.exit_code


def _lines(answer: object, columns: int) -> list[str]:
    from accel_env.cli.text import items, mapping, string, wrap

    found = mapping({"answer": answer}, "answer")
    heads = {
        "agrees": "agrees with the matrix", "differs": "differs from the matrix",
        "unproven": "says what the matrix does, but nobody gives its hash: --index URL takes the hash that an index lists",
        "refused": "is not the file that is known: do not install it before you know why",
    }  # fmt: skip
    lines = wrap(f"{string(found, 'file')} {heads[string(found, 'status')]}", columns, "", "  ")
    lines += [line for text in items(found, "differences") for line in wrap(f"- {text}", columns, "", "  ")]
    lines += [line for text in items(found, "agrees") for line in wrap(f"= {text}", columns, "", "  ")]
    return lines
