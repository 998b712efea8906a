"""`verify DIR`: build a rendered folder twice and compare."""
from __future__ import annotations

from accel_env.cli.build import BUILDER, DIR, ENGINE, NETWORK, PLATFORM, PROGRESS, SECRET, build_words
from accel_env.cli.options import JSON
from accel_env.cli.table import Verb, Words

VERB = Verb(
    ("verify",), "Build a rendered folder, build it again without the cache, and show the first file that differs.",
    (PLATFORM, BUILDER, NETWORK, SECRET, ENGINE, PROGRESS, JSON), DIR, "accel-env verify DIR",
)


def run(words: Words) -> int:
    """Print the digests that both builds have; 0, 6 when the engine failed, 7 when they differ."""
    from accel_env import app_build
    from accel_env.cli.output import print_answer, progress_of
    from accel_env.cli.show_build import mode_of, verified_lines, view

    asked = build_words(words)
    with view(mode_of(words)) as watch:
        answer = app_build.verify(asked, watch, progress_of(words.flag("json")))
    print_answer(answer, words.flag("json"), verified_lines)
    return 0
