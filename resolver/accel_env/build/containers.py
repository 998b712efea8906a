"""Running a command in a container by `docker run` or `podman run`, which take the same words."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator

from accel_env.build.engine import Ran, RunRequest
from accel_env.build.process import start, stop, terminable
from accel_env.errors import BuildError

REFUSED = 125  # what `docker run` ends with when it could not start the container


def run_container(program: str, request: RunRequest, discard: Callable[[str], None], more: tuple[str, ...] = ()) -> Ran:
    """Runs the container and removes it; `discard` removes one by name when it does not end by itself. `more`: an engine's
    own words."""
    name = f"accel-env-{os.urandom(6).hex()}"
    with terminable():
        began = time.monotonic()
        process = start([program, *run_words(request, name, more)])
        status: int | None = None
        try:
            output, talk = process.communicate(timeout=request.timeout)
            status = process.returncode
        except subprocess.TimeoutExpired:
            discard(name)
            output, talk = process.communicate()
        except BaseException:
            # Removing the container ends the command too. The engine may have been just about to make it: look again.
            discard(name)
            stop(process)
            discard(name)
            raise
    if status == REFUSED:
        raise BuildError(
            "cannot-run",
            f"{os.path.basename(program)} cannot run {request.image}",
            context=tuple(talk.strip().splitlines()[-8:]),
            hint="check the device flags of the plan, and that the vendor's container runtime is set up",
        )
    return Ran(status, output, talk, time.monotonic() - began)


def run_words(request: RunRequest, name: str, more: tuple[str, ...] = ()) -> list[str]:
    """The words after the program."""
    words = ["run", "--rm", "--name", name, *more]
    if not any(word.startswith(("--net=", "--network=")) or word in ("--net", "--network") for word in request.words):
        words += ["--network", request.network]
    words += ["--read-only", "--tmpfs", "/tmp:exec"] if request.read_only else []
    words += ["--user", request.user] if request.user else []
    words += ["--entrypoint", request.entrypoint] if request.entrypoint is not None else []
    for key, value in request.env:
        words += ["--env", f"{key}={value}"]
    words += list(_mounts(request))
    return [*words, *request.words, request.image, *request.command]


def _mounts(request: RunRequest) -> Iterator[str]:
    for here, there in request.mounts:
        # `--mount` and not `-v`: it refuses a source that does not exist instead of making a folder of root's.
        yield "--mount"
        yield f"type=bind,source={os.path.abspath(here)},target={there},readonly"
