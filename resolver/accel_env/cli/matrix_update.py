"""`matrix update FILE|URL`: matrix data from a signed archive, apart from the code."""

from __future__ import annotations

from accel_env.cli.options import JSON
from accel_env.cli.table import Argument, Option, Verb, Words
from accel_env.errors import UsageError

PLACE = Argument(
    "place", "FILE|URL", "An archive; its signature lies beside it, with .minisig at the end.", many=False, completes="path"
)
BACK = Option("back", ("--back",), "Go back to the matrix that was used before the last update.")
STATUS = Option("status", ("--status", "--list"), "Show which matrix is used, which are installed, and which keys are trusted.")
KEY = Option(
    "key", ("--key",), "Also trust this public key of minisign; repeat for several.", "FILE", many=True, completes="path"
)
FORCE = Option("force", ("--force",), "Install a matrix that is not newer than the one in use.")
VERB = Verb(
    ("matrix", "update"),
    "Install matrix data from a signed archive, or go back.",
    (BACK, STATUS, KEY, FORCE, JSON),
    PLACE,
    "accel-env matrix update accel-env-matrix.tar.gz --key signer.pub",
)


def run(words: Words) -> int:
    """Do it and say what is used now."""
    from accel_env import app_matrix
    from accel_env.cli.output import print_answer, progress_of
    from accel_env.cli.show_update import update_lines

    place = words.many("place")
    if bool(place) + words.flag("back") + words.flag("status") != 1:
        raise UsageError(
            "update-what",
            "`matrix update` takes one of an archive, --back and --status",
            hint="try `accel-env matrix update --status`",
        )
    if words.flag("back"):
        answer = app_matrix.back()
    elif words.flag("status"):
        answer = app_matrix.status(words.many("key"))
    else:
        answer = app_matrix.update(place[0], words.many("key"), words.flag("force"), progress_of(words.flag("json")))
    print_answer(answer, words.flag("json"), update_lines)
    return 0
