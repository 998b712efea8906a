"""Where each verb lives. A verb's file is imported only when that verb, the help or a completion needs it."""
from __future__ import annotations

from typing import cast

from accel_env.cli.table import VerbModule

# In the order of the help.
MODULES = {
    ("detect",): "accel_env.cli.detect",
    ("resolve",): "accel_env.cli.resolve",
    ("explain",): "accel_env.cli.explain",
    ("lock",): "accel_env.cli.lock",
    ("render",): "accel_env.cli.render",
    ("build",): "accel_env.cli.build",
    ("verify",): "accel_env.cli.verify",
    ("smoke",): "accel_env.cli.smoke",
    ("cells",): "accel_env.cli.cells",
    ("doctor",): "accel_env.cli.doctor",
    ("check",): "accel_env.cli.check",
    ("matrix", "show"): "accel_env.cli.matrix_show",
    ("matrix", "lint"): "accel_env.cli.matrix_lint",
    ("matrix", "stats"): "accel_env.cli.matrix_stats",
    ("matrix", "verify"): "accel_env.cli.matrix_verify",
    ("matrix", "diff"): "accel_env.cli.matrix_diff",
    ("matrix", "update"): "accel_env.cli.matrix_update",
}
GROUPS = {"matrix": "Look into what accel-env knows."}


def verb_module(words: tuple[str, ...]) -> VerbModule:
    """The module of one verb, imported now."""
    # __import__ with a fromlist is importlib.import_module without importing importlib.
    return cast(VerbModule, __import__(MODULES[words], fromlist=["run"]))
