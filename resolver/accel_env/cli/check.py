"""`check FILE...`: whether what files describe is going to work on a host, or on every host of a folder."""

from __future__ import annotations

from accel_env.cli.doctor import FORMAT
from accel_env.cli.options import ARCH, DEVICE, DRIVER, GLIBC, JSON, OVERLAY, PYTHON
from accel_env.cli.table import Argument, Option, Verb, Words
from accel_env.errors import UsageError

FILES = Argument(
    "files",
    "FILE",
    "Requirements, lock files, pyproject.toml, environment.yml, pixi files, Dockerfiles, compose files.",
    completes="path",
)
HOST = Option(
    "host",
    ("--host",),
    "A host file written by `detect -o`, a named profile, or a folder of host files.",
    "FILE|PROFILE|DIR",
    completes="host",
)
VERB = Verb(
    ("check",),
    "Judge files that describe an environment against a host.",
    (HOST, DEVICE, DRIVER, GLIBC, ARCH, PYTHON, OVERLAY, FORMAT, JSON),
    FILES,
    "accel-env check Dockerfile requirements.txt --host v100-r580",
)


def run(words: Words) -> int:
    """Print the findings; 0, or 8 where an error was found."""
    from accel_env import app
    from accel_env.cli.doctor import print_diagnosis, wanted_format
    from accel_env.cli.request import request

    files = words.many("files")
    if not files:
        raise UsageError("nothing-named", "`check` needs a file", hint="try `accel-env check Dockerfile`")
    wanted = wanted_format(words)
    answer = app.check(request(words, needs_asks=False), files)
    if wanted != "text":
        return print_diagnosis(answer, wanted, files[0])
    from accel_env.cli.output import answer_text
    from accel_env.cli.show_check import check_lines
    from accel_env.cli.text import width
    from accel_env.judge.findings import exit_code

    answer_text(check_lines(answer, width()))
    return exit_code(answer)
