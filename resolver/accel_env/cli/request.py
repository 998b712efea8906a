"""From typed words to the request that `app` takes."""
from __future__ import annotations

from typing import TYPE_CHECKING

from accel_env.cli.table import Words
from accel_env.errors import UsageError

if TYPE_CHECKING:
    from accel_env.app import Request


def request(words: Words, *, needs_asks: bool = True) -> Request:
    """The request of the common options. UsageError where nothing is asked."""
    from accel_env.app import Request

    if needs_asks and not words.many("asks") and not words.many("requirements"):
        example = f"{' '.join(('accel-env', *words.verb.words))} torch bitsandbytes"
        raise UsageError("nothing-asked", "name at least one package, or a file with -r", hint=f"try `{example}`")
    return Request(
        asks=words.many("asks"),
        requirement_files=words.many("requirements"),
        host=words.text("host"),
        devices=words.many("device"),
        driver=words.text("driver"),
        stack=words.text("stack"),
        python=words.text("python"),
        glibc=words.text("glibc"),
        arch=words.text("arch"),
        target=words.text("target"),
        prefer=words.text("prefer"),
        offline=words.flag("offline"),
        overlays=words.many("overlay"),
        source_builds=words.flag("source_builds"),
    )


def repeated(words: Words) -> tuple[str, ...]:
    """The user's words for the line that says what to run next: all but the switch for JSON."""
    return tuple(word for word in words.typed if word != "--json")


def folder(words: Words) -> str:
    """The folder named by -o. UsageError without one."""
    output = words.text("output")
    if not output:
        raise UsageError("no-folder", f"`{' '.join(words.verb.words)}` writes files and needs a folder", hint="add -o DIR")
    return output
