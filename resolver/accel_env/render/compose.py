"""A solution and its lock -> the recipe of the image.

Two stages. The first fills /out with everything that is new and gives all of it one time; the second copies /out over the same
base. That is the shape whose layers come out equal on every builder tried: folders that a COPY makes would get today's time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from accel_env.errors import ClosureError, UsageError
from accel_env.render.book import FORWARD
from accel_env.render.head import EPOCH, header, labels
from accel_env.render.recipe import Arg, Cmd, Copy, Entrypoint, Env, From, Instruction, Mount, Recipe, Run, Stage, User, Workdir
from accel_env.render.source import SOURCES, WHEELS, Devel, compile_step, toolkit_steps
from accel_env.render.system import system_steps

if TYPE_CHECKING:
    from accel_env.model import Image, Lock, Solution

REQUIREMENTS = "requirements.lock"
CONSTRAINTS = "image-constraints.txt"
PROGRAMS = "/opt/accel-env"
_VENV = "/opt/venv"
_CONTEXT = "/tmp/accel-env"
_CA, _CONF = "/run/secrets/ca.pem", "/run/secrets/pip.conf"
_INSTALL = "install --require-hashes --no-deps --only-binary :all: --no-compile --no-input --disable-pip-version-check"
_SAFE = re.compile(r"[A-Za-z0-9._+!-]+")


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """`allow_unpinned`: take a base without a digest. `labels`: further OCI labels (`org.opencontainers.image.source` ...).

    `formats`: what to write beside the Dockerfile: `devcontainer`, `apptainer`. `base`: an image to use instead of the plan's.
    `packages`: of the operating system, into the image. `compiler`: whether a C compiler is among them. `headers`: a package for
    the headers of a distribution's Python. `devel`: how to compile what has no wheel. `env`: variables of the image beside the
    plan's. `programs`: name -> content of files for PROGRAMS.
    """

    allow_unpinned: bool = False
    uid: int = 10001
    gid: int = 10001
    user: str = "app"
    workdir: str = "/workspace"
    command: tuple[str, ...] = ("python3",)
    labels: Mapping[str, str] = field(default_factory=dict)
    formats: tuple[str, ...] = ()
    base: Image | None = None
    packages: tuple[str, ...] = ()
    compiler: bool = False
    headers: str = ""
    devel: Devel | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    programs: Mapping[str, bytes] = field(default_factory=dict)


def compose(solution: Solution, lock: Lock, plan_digest: str, lock_digest: str, options: RenderOptions) -> Recipe:
    """The recipe of the image. UsageError without a base image, ClosureError (5) when its digest is unknown and must be known."""
    image = options.base or base_image(solution)
    digest = base_digest(solution, image, options)
    moment = epoch(lock)
    first = Stage(From(image.ref, digest, "build"), _build_steps(solution, lock, options))
    last = Stage(From(image.ref, digest), _image_steps(solution, options))
    marks = labels(solution, lock, From(image.ref, digest), (plan_digest, lock_digest), moment, options)
    return Recipe(header(solution, lock, digest, moment, options), (Arg(EPOCH, str(moment)),), (first, last), marks)


def base_image(solution: Solution) -> Image:
    """The image of the plan; UsageError when there is none (a plan for the host itself)."""
    if solution.image is None:
        raise UsageError(
            "no-base-image",
            f"the plan for {solution.stack} on {solution.problem.host.platform} has no base image, so there is no image to write",
            hint="`accel-env lock` writes what a virtual environment on that machine needs",
        )
    return solution.image


def base_digest(solution: Solution, image: Image, options: RenderOptions) -> str:
    """The digest that pins the base, empty only if that was allowed: of the index when known, else of the platform."""
    digest = image.digest or image.digests.get(solution.problem.host.platform, "")
    if not digest and not options.allow_unpinned:
        raise ClosureError(
            "image-unpinned",
            f"no digest is known of the base image {image.ref}, so the same file would build another image tomorrow",
            hint=f"--base {image.ref}@sha256:DIGEST names it; an overlay's images row of this ref and its digest does for good;"
            " --allow-unpinned goes without",
        )
    return digest


def epoch(lock: Lock) -> int:
    """The time of everything in the image, in seconds: the lock's cut-off, else the day of the matrix, never now."""
    import datetime

    text = lock.exclude_newer or lock.tools.get("matrix", "").replace(".", "-")
    try:
        moment = datetime.datetime.fromisoformat(text.replace("Z", "+00:00").replace("z", "+00:00"))
    except ValueError:
        raise UsageError(
            "bad-cutoff", f"the cut-off of the lock is no date: {text!r}", hint="YYYY-MM-DD, or YYYY-MM-DDTHH:MM:SSZ"
        ) from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=datetime.timezone.utc)).timestamp())


def image_pins(solution: Solution) -> tuple[tuple[str, str], ...]:
    """(name, public version) of every pick that the base image brings and nothing may replace."""
    pins = [
        (pick.candidate.name, pick.candidate.version.partition("+")[0])
        for pick in solution.picks
        if pick.candidate.index == "image"
    ]
    for word in (word for pin in pins for word in pin):
        if not _SAFE.fullmatch(word):
            raise UsageError("bad-name", f"{word!r} is neither a package name nor a version")
    return tuple(sorted(pins))


def compiled(lock: Lock) -> tuple[str, ...]:
    """The names of the files that are no wheels, so that they must be compiled."""
    return tuple(file.name for file in lock.files if not file.filename.endswith(".whl"))


def context_files(solution: Solution, lock: Lock, options: RenderOptions) -> tuple[str, ...]:
    """The names of the files that the first stage takes in."""
    locks = (WHEELS, SOURCES) if compiled(lock) else (REQUIREMENTS,)
    return (*locks, *((CONSTRAINTS,) if image_pins(solution) else ()), *sorted(options.programs))


def _build_steps(solution: Solution, lock: Lock, options: RenderOptions) -> tuple[Instruction, ...]:
    pins = image_pins(solution)
    sources = compiled(lock)
    if sources and options.devel is None:
        raise UsageError(
            "source-build",
            f"{', '.join(sources)} must be compiled, which needs a toolkit in the first stage of the image",
            hint="say --devel, or ask for a release that has a wheel",
        )
    install = install_commands(solution, lock, options)
    steps: list[Instruction] = [Arg(EPOCH)]
    steps += system_steps(options.packages, keep=True, headers=options.headers) if options.packages else ()
    if sources and options.devel:
        steps += system_steps(options.devel.packages, keep=False) if options.devel.packages else ()
        steps += toolkit_steps(options.devel)
    steps += [Copy(context_files(solution, lock, options), f"{_CONTEXT}/"), Run(install, _mounts() if lock.files else ())]
    if sources and options.devel:
        words = _INSTALL.replace("--only-binary", "--no-binary") + " --no-build-isolation"
        steps.append(compile_step(options.devel, _pip(words, pins, SOURCES), _secrets(pins), _mounts()))
    last = steps.pop()
    assert isinstance(last, Run)
    # In one step with what fills the environment: moving what an earlier step made would copy it, gigabyte by gigabyte.
    return (*steps, Run((*last.commands, *_out_tree(options)), last.mounts))


def _mounts() -> tuple[Mount, ...]:
    """pip's cache, and two secrets that a site may give: its CA bundle and its pip configuration. Neither stays in the image."""
    return (Mount("cache", "/root/.cache/pip"), Mount("secret", _CA, "ca"), Mount("secret", _CONF, "pip"))


def install_commands(solution: Solution, lock: Lock, options: RenderOptions) -> tuple[str, ...]:
    """The environment at its final place (scripts name it), seeing the image's own packages where the image brings any."""
    pins = image_pins(solution)
    checks = [_expect(name, version) for name, version in pins]
    if options.base:
        checks.insert(0, _expect_python(solution.python))
    venv = f"python3 -m venv --without-pip {'--system-site-packages ' if pins else ''}{_VENV}"
    if len(compiled(lock)) == len(lock.files):
        return (*checks, venv)
    return (*checks, venv, *_secrets(pins), _pip(_INSTALL, pins, WHEELS if compiled(lock) else REQUIREMENTS))


def _secrets(pins: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    return (
        # A vendor's own list would stop the build over what nothing here replaces; what must stay is in the constraints below.
        *(("unset PIP_CONSTRAINT",) if pins else ()),
        f"if [ -s {_CA} ]; then export PIP_CERT={_CA}; fi",
        f"if [ -s {_CONF} ]; then export PIP_CONFIG_FILE={_CONF}; fi",
    )


def _pip(words: str, pins: tuple[tuple[str, str], ...], file: str) -> str:
    # pip and not uv: measured on ten wheels with torch among them, fetching uv and installing with it takes 11 to 14 s, pip 8 to
    # 17 s; both repeat, and a site's pip.conf is what sites have.
    constraints = f" --constraint {_CONTEXT}/{CONSTRAINTS}" if pins else ""
    return f"python3 -m pip --python {_VENV}/bin/python {words}{constraints} --requirement {_CONTEXT}/{file}"


def _expect_python(python: str) -> str:
    """Stops the build when a base that the user named brings another Python than the plan is for."""
    wanted = tuple(int(part) for part in python.removesuffix("t").split(".")[:2])
    return f"python3 -c 'import sys; assert sys.version_info[:2] == {wanted}, \"the base brings Python \" + sys.version'"


def _expect(name: str, version: str) -> str:
    """Stops the build when the image brings another version than the plan says."""
    return (
        f'python3 -c \'from importlib.metadata import version; found = version("{name}"); '
        f'assert found.partition("+")[0] == "{version}", "the image brings {name} " + found\''
    )


def _out_tree(options: RenderOptions) -> tuple[str, ...]:
    """Moves what is new to /out and gives it one time. Bytecode is compiled to a form that does not look at file times; a file
    in the syntax of another Python (torch ships one) must not stop that."""
    home = f"/home/{options.user}"
    programs = " ".join(f"{_CONTEXT}/{name}" for name in sorted(options.programs))
    return (
        f"mkdir -p /out/opt /out/etc /out{home} /out{options.workdir}",
        f"mv {_VENV} /out{_VENV}",
        # One process: with several the bytecode depends on which of them compiled what before.
        f"{{ python3 -m compileall -q --invalidation-mode unchecked-hash -s /out -p / /out{_VENV}/lib || true; }}",
        "cp /etc/passwd /etc/group /out/etc/",
        f"echo '{options.user}:x:{options.uid}:{options.gid}::{home}:/bin/sh' >> /out/etc/passwd",
        f"echo '{options.user}:x:{options.gid}:' >> /out/etc/group",
        # With modes of their own: those in the context are of whoever checked it out.
        *((f"install -D -m 644 -t /out{PROGRAMS} {programs}",) if programs else ()),
        f"chown {options.uid}:{options.gid} /out{home} /out{options.workdir}",
        f'find /out -exec touch -h -d "@${{{EPOCH}}}" {{}} +',
    )


def _image_steps(solution: Solution, options: RenderOptions) -> tuple[Instruction, ...]:
    """The image itself: what the first stage prepared, and settings. Nothing runs here."""
    env = {"PATH": f"{_VENV}/bin:${{PATH}}", "HOME": f"/home/{options.user}"} | dict(
        sorted({**solution.env, **options.env}.items())
    )
    return (
        Copy(("/out/",), "/", "build"),
        Env(tuple(env.items()), expand=("PATH",)),
        Workdir(options.workdir),
        User(options.uid, options.gid),
        *((Entrypoint(()),) if _resets_entrypoint(solution, options) else ()),
        Cmd(options.command),
    )


def _resets_entrypoint(solution: Solution, options: RenderOptions) -> bool:
    """A vendor's image may start a program of its own, to which the command would be an argument.

    The general one of a plan that runs by the forward compatibility package keeps its own: that is what turns the package on.
    """
    if not image_pins(solution):
        return False
    purpose = (options.base or base_image(solution)).purpose
    return bool(purpose) or not any(warned.rule == FORWARD for warned in solution.warnings)
