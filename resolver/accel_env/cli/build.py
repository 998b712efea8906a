"""`build DIR`: build the image of a rendered folder."""
from __future__ import annotations

from typing import TYPE_CHECKING

from accel_env.cli.options import JSON
from accel_env.cli.table import Argument, Option, Verb, Words

if TYPE_CHECKING:
    from accel_env.app_build import BuildWords

DIR = Argument("folder", "DIR", "A folder that `render` wrote.", many=False, completes="path")
PLATFORM = Option("platform", ("--platform",), "Build for this platform, by emulation or on a remote builder.", "OS/CPU")
BUILDER = Option("builder", ("--builder",), "The buildx builder to use.", "NAME")
NETWORK = Option("network", ("--network",), "The network of the build steps; `host` is the machine's own.", "MODE")
SECRET = Option(
    "secret", ("--secret",), "A file that a step may read and no layer keeps; repeat for several.", "id=ID,src=FILE", many=True
)
ENGINE = Option("engine", ("--engine",), "The container engine.", "docker|podman", choices=("docker", "podman"))
PROGRESS = Option(
    "progress", ("--progress",), "How to show what goes on.", "auto|plain|quiet", choices=("auto", "plain", "quiet")
)
TAG = Option("tag", ("--tag", "-t"), "The name of the image.", "REF")
PUSH = Option("push", ("--push",), "Push the image to a registry under this name.", "REF")
NO_CACHE = Option("no_cache", ("--no-cache",), "Run every step again.")
VERB = Verb(
    ("build",), "Build the image of a rendered folder, and note its digests in DIR/image.json.",
    (TAG, PUSH, PLATFORM, BUILDER, NETWORK, SECRET, NO_CACHE, ENGINE, PROGRESS, JSON), DIR, "accel-env build DIR",
)


def run(words: Words) -> int:
    """Print what was built; 0, or 6 when the engine failed."""
    from accel_env import app_build
    from accel_env.cli.output import print_answer
    from accel_env.cli.show_build import built_lines, mode_of, view

    with view(mode_of(words)) as watch:
        answer = app_build.build(build_words(words), watch)
    print_answer(answer, words.flag("json"), built_lines)
    return 0


def build_words(words: Words) -> BuildWords:
    """The words as `app_build` takes them. UsageError without a folder."""
    from accel_env.app_build import BuildWords
    from accel_env.errors import UsageError

    if not words.text("folder"):
        raise UsageError(
            "no-folder", f"`{' '.join(words.verb.words)}` needs a folder", hint="name one that `accel-env render -o DIR` wrote"
        )
    return BuildWords(
        words.text("folder"), words.text("tag"), words.text("push"), words.text("platform"), words.text("builder"),
        words.text("network"), words.many("secret"), words.text("engine"), words.flag("no_cache"),
    )
