"""`smoke TARGET`: run the checks in an image, a virtual environment, or this interpreter."""
from __future__ import annotations

from accel_env.cli.options import JSON
from accel_env.cli.table import Argument, Option, Verb, Words

TARGET = Argument(
    "target", "TARGET", "An image, a virtual environment, a folder that `lock` or `render` wrote, or a cell.", many=False,
    completes="path",
)
OPTIONS = (
    Option("here", ("--here",), "Check this interpreter."),
    Option(
        "level", ("--level",), "The highest level: files alone, imports on the CPU (the default), or the device.",
        "static|import|device", choices=("static", "import", "device"),
    ),
    Option(
        "device", ("--device",), "The device of level `device`; else the first there is. `cpu` exercises the checks.", "KIND",
        choices=("cuda", "xpu", "hpu", "cpu"),
    ),
    Option("only", ("--only",), "Only checks with this text in their names; repeat for several.", "TEXT", many=True),
    Option("plan", ("--plan",), "The plan to compare with: plan.json or its folder.", "FILE", completes="path"),
    Option("venv", ("--venv",), "Install the folder's lock into a scratch environment instead of running its image."),
    Option("engine", ("--engine",), "The container engine.", "docker|podman", choices=("docker", "podman")),
    Option("patience", ("--patience",), "All time limits times this.", "FACTOR"),
    Option("report", ("--report",), "Write the report as JSON, too.", "FILE", completes="path"),
    Option("junit", ("--junit",), "Write the report as JUnit XML, too.", "FILE", completes="path"),
    Option("evidence", ("--evidence",), "Where nothing failed, keep the result in the matrix of this clone."),
)  # fmt: skip
VERB = Verb(
    ("smoke",), "Run the smoke checks in an image, an environment or this interpreter.", (*OPTIONS, JSON), TARGET,
    "accel-env smoke --here",
)


def run(words: Words) -> int:
    """Print the report; 0, or 7 where a check failed."""
    from accel_env import app_smoke
    from accel_env.app_scene import SmokeWords
    from accel_env.cli.output import print_answer, talk
    from accel_env.cli.show_smoke import report_lines

    asked = SmokeWords(
        words.text("target"), words.flag("here"), words.text("level") or "import", words.text("device"), words.many("only"),
        words.text("plan"), words.text("engine"), words.flag("venv"), words.text("patience"), words.text("report"),
        words.text("junit"), words.flag("evidence"),
    )
    answer = app_smoke.smoke(asked, lambda line: talk([line]))
    print_answer(answer, words.flag("json"), report_lines)
    return 0 if answer["status"] == "pass" else 7
