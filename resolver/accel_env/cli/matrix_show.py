"""`matrix show PKG[==V]`: what is known about one package."""
from __future__ import annotations

from accel_env.cli.options import JSON, OVERLAY
from accel_env.cli.table import Argument, Verb, Words
from accel_env.errors import UsageError

SPEC = Argument("spec", "PKG[==V]", "A package of the matrix, or one release of it.", many=False, completes="package")
VERB = Verb(
    ("matrix", "show"), "Show what is known about a package or one release.", (OVERLAY, JSON), SPEC,
    "accel-env matrix show bitsandbytes",
)


def run(words: Words) -> int:
    """Print the package's builds and facts."""
    from accel_env import app
    from accel_env.cli.output import print_answer
    from accel_env.cli.show_matrix import package_lines

    spec = words.many("spec")
    if not spec:
        raise UsageError("nothing-named", "`matrix show` needs a package", hint="try `accel-env matrix show torch`")
    answer = app.matrix_show(spec[0], words.many("overlay"))
    print_answer(answer, words.flag("json"), package_lines)
    return 0
