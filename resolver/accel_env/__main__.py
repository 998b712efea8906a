"""`accel-env` and `python -m accel_env`: read the words, run the verb, word every failure, return the exit code."""
from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

from accel_env.errors import AccelEnvError, Interrupted, UsageError

BUG, PIPE_CLOSED = 1, 141  # the latter as shells report SIGPIPE


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns its exit code and raises nothing."""
    words = list(sys.argv[1:] if argv is None else argv)
    if sys.stdout is None or sys.stderr is None:
        # closed by the caller (`>&-`): then nobody wants to read it
        nowhere = io.TextIOWrapper(io.FileIO(os.devnull, "w"), encoding="utf-8")
        sys.stdout, sys.stderr = sys.stdout or nowhere, sys.stderr or nowhere
    try:
        return _run(words)
    except AccelEnvError as error:
        return _tell(error, words)
    except KeyboardInterrupt:
        return _interrupted(words)
    except BrokenPipeError:
        # The reader went away (`| head`). stdout gets a new end, or the interpreter complains while closing it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except OSError as error:
        if not error.filename:
            return _bug(error)
        # a name that the file system does not take, wherever it is met first
        said = f"{error.filename}: {error.strerror}"
        return _tell(UsageError("file-system", said, hint="check the name and its permissions"), words)
    except Exception as error:
        return _bug(error)


def _run(words: list[str]) -> int:
    from accel_env.cli import quick

    # Shells ask for completions through this variable; only typer answers that.
    if "_ACCEL_ENV_COMPLETE" not in os.environ:
        read = quick.parse(words)
        if read is not None:
            from accel_env.cli.table import Words
            from accel_env.cli.verbs import verb_module

            verb, given = read
            return verb_module(verb.words).run(Words(verb, given, words[len(verb.words):]))
    from accel_env.cli import full

    return full.run(words)


def _tell(error: AccelEnvError, words: list[str]) -> int:
    from accel_env.cli import output
    from accel_env.cli.text import program

    if "--json" in words:
        output.error_json(error)
    else:
        # a command that the text names is to be called as this one was
        output.talk(str(error).replace("`accel-env ", f"`{program()} ").split("\n"))
    return error.exit_code


def _interrupted(words: list[str]) -> int:
    if "--json" in words:
        from accel_env.cli import output

        output.error_json(Interrupted("interrupted", "interrupted before there was an answer"))
    else:
        print("interrupted", file=sys.stderr)
    return Interrupted.exit_code


def _bug(error: Exception) -> int:
    if os.environ.get("ACCEL_ENV_DEBUG") == "1":
        import traceback

        traceback.print_exc()
    else:
        said = " ".join(str(error).split())[:200]
        print(
            f"error: bug: {type(error).__name__}: {said}; this is a bug: run it again with ACCEL_ENV_DEBUG=1 "
            "and report the command and the traceback to the project's issue tracker",
            file=sys.stderr,
        )
    return BUG


if __name__ == "__main__":
    sys.exit(main())
