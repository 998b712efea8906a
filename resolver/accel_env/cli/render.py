"""`render ASK... -o DIR`: lock, then write the Dockerfile and what goes with it."""
from __future__ import annotations

from accel_env.cli.lock import INTO
from accel_env.cli.options import ASKS, BASE, COMMON
from accel_env.cli.table import Option, Verb, Words

FORMAT = Option("format", ("--format",), "A further output; repeat for several.", "NAME", many=True)
UNPINNED = Option(
    "allow_unpinned", ("--allow-unpinned",), "Write a Dockerfile although the base image has no known digest."
)
COMPILER = Option("compiler", ("--compiler",), "Put a C and C++ compiler into the image: torch.compile and Triton need one.")
DEVEL = Option("devel", ("--devel",), "Compile packages without a wheel in a stage with the stack's toolkit.")
VERB = Verb(
    ("render",), "Lock, then write the Dockerfile and what goes with it.",
    (INTO, FORMAT, BASE, COMPILER, DEVEL, UNPINNED, *COMMON), ASKS,
    "accel-env render torch bitsandbytes -o DIR",
)


def run(words: Words) -> int:
    """Print what was written; errors have the codes of `errors`."""
    from accel_env import app
    from accel_env.app_image import ImageWords
    from accel_env.cli.output import print_answer, progress_of
    from accel_env.cli.request import folder, request
    from accel_env.cli.show_written import written_lines

    image = ImageWords(
        words.text("base"), words.flag("compiler"), words.flag("devel"), words.flag("allow_unpinned"), words.many("format")
    )
    answer = app.render(request(words), folder(words), image, progress_of(words.flag("json")))
    print_answer(answer, words.flag("json"), written_lines)
    return 0
