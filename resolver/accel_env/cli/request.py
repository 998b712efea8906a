"""From typed words to the request that `app` takes."""
from __future__ import annotations

from typing import TYPE_CHECKING

from accel_env.cli.table import Words
from accel_env.cli.text import program
from accel_env.errors import UsageError

if TYPE_CHECKING:
    from accel_env.app import Request


def request(words: Words, *, needs_asks: bool = True) -> Request:
    """The request of the common options. UsageError where nothing is asked."""
    from accel_env.app import Request

    if needs_asks and not words.many("asks") and not words.many("requirements"):
        example = f"{' '.join((program(), *words.verb.words))} torch bitsandbytes"
        raise UsageError("nothing-asked", "name at least one package, or a file with -r", hint=f"try `{example}`")
    return Request(
        asks=words.many("asks"),
        requirement_files=words.many("requirements"),
        host=words.text("host"),
        devices=words.many("device"),
        driver=words.text("driver"),
        stack=_stack(words.text("stack")),
        python=words.text("python"),
        glibc=words.text("glibc"),
        arch=words.text("arch"),
        target=words.text("target"),
        prefer=words.text("prefer"),
        offline=words.flag("offline"),
        overlays=words.many("overlay"),
        source_builds=words.flag("source_builds"),
        base=words.text("base"),
        own_base=words.verb.words == ("render",),
    )


def _stack(text: str) -> str:
    """The stack as typed. UsageError for a release that is not joined as the matrix joins it: `cuda12.6`, `cu126`."""
    name = text.lower().rstrip("0123456789.").rstrip(" -_=:v")
    release = text[len(name):].lstrip(" -_=:v")
    if not release or text == f"{name}-{release}" or not name:
        return text
    from accel_env.matrix.load import open_matrix

    known = [f"{stack.name}-{one.version}" for stack in open_matrix().stacks().values() if stack.name.startswith(name)
             for one in stack.releases if release in (one.version, one.version.replace(".", ""))]
    if not known:
        return text
    raise UsageError("unknown-stack", f"--stack {text}: a stack and its release are joined by a hyphen",
                     hint=f"write --stack {known[0]}")


def repeated(words: Words) -> tuple[str, ...]:
    """The user's words for the line that says what to run next: all but the switch for JSON."""
    return tuple(word for word in words.typed if word != "--json")


def folder(words: Words) -> str:
    """The folder named by -o. UsageError without one."""
    output = words.text("output")
    if not output:
        raise UsageError("no-folder", f"`{' '.join(words.verb.words)}` writes files and needs a folder", hint="add -o DIR")
    return output
