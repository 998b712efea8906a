"""The options that several verbs share, each written once."""
from __future__ import annotations

from accel_env.cli.table import Argument, Option

ASKS = Argument(
    "asks", "ASK", "What must work together, as requirements: torch, 'bitsandbytes>=0.49', flash-attn; @finetune is a bundle.",
    completes="ask",
)

HOST = Option(
    "host", ("--host",), "A host file of `detect -o`, a folder of `detect --record`, or a profile (`matrix show profiles`).",
    "FILE|DIR|PROFILE", completes="host",
)
DEVICE = Option(
    "device", ("--device",), "An accelerator by name or architecture, `cpu` for none; repeat for several kinds.", "NAME[:COUNT]",
    many=True, completes="device",
)
DRIVER = Option(
    "driver", ("--driver",), "The driver's version (not the CUDA version that nvidia-smi prints beside it).", "VERSION"
)
GLIBC = Option("glibc", ("--glibc",), "The host's glibc; binds with --target venv.", "X.Y")
ARCH = Option(
    "arch", ("--arch",), "The CPU architecture; amd64 and arm64 are other names of the two.", "x86_64|aarch64",
    choices=("x86_64", "aarch64", "amd64", "arm64"),
)

STACK = Option(
    "stack", ("--stack",), "Only this stack (or this release of it); `cpu` asks for CPU.", "NAME[-VERSION]",
    completes="stack",
)
PYTHON = Option("python", ("--python",), "Only this Python.", "X.Y", completes="python")
REQUIREMENTS = Option(
    "requirements", ("--requirement", "-r"), "Read asks from a requirements file, `-` for standard input; repeat for several.",
    "FILE", many=True, completes="path",
)
TARGET = Option(
    "target", ("--target",), "Where it will run; a container brings its own glibc and Python.", "container|venv",
    choices=("container", "venv"),
)
PREFER = Option(
    "prefer", ("--prefer",), "What to prefer where versions compete.", "lockable|newest|tested",
    choices=("lockable", "newest", "tested"),
)
SOURCE_BUILDS = Option(
    "source_builds", ("--source-builds",), "Allow packages that have no wheel and are compiled in a builder stage."
)
BASE = Option(
    "base", ("--base",), "Where torch comes from: `vendor` for the vendor's images, or one of them; a digest pins it.",
    "vendor|NAME:TAG[@sha256:DIGEST]", completes="base",
)
OVERLAY = Option(
    "overlay", ("--overlay",), "A site's own facts, mirrors and wheels; repeat for several.", "FILE", many=True,
    completes="path",
)
OFFLINE = Option("offline", ("--offline",), "Use no network.")

JSON = Option("json", ("--json",), "Print JSON instead of text; an error, too, is JSON then, on stderr.")

DESCRIBE = (HOST, DEVICE, DRIVER, GLIBC, ARCH)
CHOOSE = (STACK, PYTHON, REQUIREMENTS, TARGET, PREFER, SOURCE_BUILDS, OVERLAY, OFFLINE)
COMMON = (*DESCRIBE, *CHOOSE, JSON)
