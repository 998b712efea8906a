"""Which engine to use."""

from __future__ import annotations

import shutil
import subprocess

from accel_env.build.engine import Engine
from accel_env.errors import BuildError

NAMES = ("docker", "podman")


def find_engine(wanted: str = "") -> Engine:
    """Docker where one answers, else podman; or the one that is wanted. BuildError when there is none."""
    refusals = []
    for name in (wanted,) if wanted else NAMES:
        program = shutil.which(name)
        if program is None:
            continue
        engine = _engine(name, program)
        try:
            engine.info()
        except BuildError as problem:
            refusals.append(problem)
            continue
        return engine
    if refusals:
        raise refusals[0]
    raise BuildError(
        "no-engine",
        f"{wanted or 'neither docker nor podman'} is {'not ' if wanted else ''}installed",
        hint="install Docker with buildx, or podman; or copy the folder to a machine that has one",
    )


def _engine(name: str, program: str) -> Engine:
    if name == "podman" or _is_podman(program):
        from accel_env.build.podman import PodmanEngine

        return PodmanEngine(program)
    from accel_env.build.docker import DockerEngine

    return DockerEngine(program)


def _is_podman(program: str) -> bool:
    """Whether `docker` is podman under another name, as the package podman-docker makes it."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.stdout.startswith("podman")
