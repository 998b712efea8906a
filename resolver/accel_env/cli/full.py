"""The typer application, built from the verbs' tables: help, completion and the wording of misread command lines."""
from __future__ import annotations

import contextlib
import inspect
import os
import sys
from collections.abc import Callable, Sequence
from typing import Protocol, cast

import typer

from accel_env.cli.complete import completer
from accel_env.cli.table import Option, Verb, VerbModule, Words
from accel_env.cli.verbs import GROUPS, MODULES, verb_module
from accel_env.errors import UsageError

ABOUT = "Resolve a working Python, PyTorch and accelerator stack for a machine, explain it, lock it, and write its image."
COMPLETION = "_ACCEL_ENV_COMPLETE"  # set by the shell that asks what a word can become; there are no words then
EPILOG = "Start with: accel-env resolve torch bitsandbytes"


class _Misread(Protocol):
    """What the usage errors of every typer release have in common."""

    exit_code: int

    def format_message(self) -> str: ...


def run(words: Sequence[str]) -> int:
    """Let typer read the words and run the verb; returns the exit code. UsageError for what cannot be read."""
    if not words and COMPLETION not in os.environ:
        return _help_aside()
    try:
        # standalone_mode=False: the errors come to us, and `main` alone prints and exits.
        code = typer.main.get_command(build(words))(args=list(words), prog_name="accel-env", standalone_mode=False)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        raise _usage(cast(_Misread, error), words) from None
    return code if isinstance(code, int) else 0


def _help_aside() -> int:
    """The help on stderr and the code of a usage error, for a command line without words."""
    with contextlib.redirect_stdout(sys.stderr):
        run(["--help"])
    return UsageError.exit_code


def build(words: Sequence[str] = ()) -> typer.Typer:
    """The application with every verb; `words` are what the user typed."""
    settings = {"help_option_names": ["-h", "--help"]}
    root = typer.Typer(
        name="accel-env", help=ABOUT, epilog=EPILOG, context_settings=settings,
        rich_markup_mode=None, pretty_exceptions_enable=False,
    )
    root.callback()(_root)
    groups: dict[str, typer.Typer] = {}
    for path in MODULES:
        module = verb_module(path)
        parent = root
        if len(path) > 1:
            if path[0] not in groups:
                groups[path[0]] = typer.Typer(help=GROUPS[path[0]], context_settings=settings, rich_markup_mode=None)
                root.add_typer(groups[path[0]], name=path[0])
            parent = groups[path[0]]
        epilog = f"Example: {module.VERB.example}"
        command = _command(module, words[len(path):])
        parent.command(path[-1], help=module.VERB.summary, epilog=epilog, context_settings=settings)(command)
    return root


def _root(version: bool = typer.Option(False, "--version", callback=lambda wanted: _version(wanted), is_eager=True,
                                       help="Print the version and exit.")) -> None:
    """Options of the program itself."""


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        from accel_env.matrix import installed, store

        place = store.locate()
        typer.echo(f"{version('accel-env')} (matrix {installed.read_version(place)}, {installed.origin(place)})")
        raise typer.Exit


def _command(module: VerbModule, typed: Sequence[str]) -> Callable[..., int]:
    """A function with the signature that typer reads options from, and the verb's `run` behind it."""
    verb = module.VERB

    def command(**values: object) -> int:
        return module.run(Words(verb, {dest: _listed(value) for dest, value in values.items()}, typed))

    # typer reads signatures; this one is data.
    command.__signature__ = _signature(verb)  # type: ignore[attr-defined]
    command.__annotations__ = {}
    return command


def _signature(verb: Verb) -> inspect.Signature:
    parameters = [_parameter(option.dest, list[str] if option.metavar else bool, _option(option)) for option in verb.options]
    if verb.argument is not None:
        word = verb.argument
        kind = list[str] if word.many else str
        default = typer.Argument(
            None, metavar=word.metavar, help=word.help, show_default=False, autocompletion=completer(word.completes)
        )
        parameters.insert(0, _parameter(word.dest, kind, default))
    return inspect.Signature(parameters)


def _parameter(name: str, annotation: object, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _option(option: Option) -> object:
    if not option.metavar:
        return typer.Option(False, *option.flags, help=option.help, show_default=False)
    complete = completer(option.completes, option.choices)
    return typer.Option(
        None, *option.flags, help=option.help, metavar=option.metavar, show_default=False, autocompletion=complete
    )


def _listed(value: object) -> tuple[str, ...]:
    """Typer's value as the quick parser gives it."""
    if value is None or value is False:
        return ()
    if value is True:
        return ("1",)
    return tuple(str(one) for one in value) if isinstance(value, (list, tuple)) else (str(value),)


def _usage(error: _Misread, words: Sequence[str]) -> UsageError:
    verb = next((" ".join(path) for path in MODULES if tuple(words[: len(path)]) == path), "")
    message = error.format_message().rstrip(".")
    return UsageError("usage", message, hint=f"`accel-env {verb + ' ' if verb else ''}--help` lists what is possible")
