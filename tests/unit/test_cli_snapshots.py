"""Whole commands: what they print on stdout and stderr and their exit code, against files in snapshots/.

`app` is replaced by fixed answers, so these change when the words change and not when the matrix does.
`pytest --update-snapshots` writes what is printed now; read the diff before committing it.
"""
from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import accel_env
from accel_env.__main__ import main
from accel_env.errors import ClosureError, InputError

FOLDER = Path(__file__).parent / "snapshots"

BECAUSE_ARCH = {
    "need": "arch", "text": "torch 9.9.1+cu999 has machine code for sm_70", "fact": "torch/9.9.1:arch", "source": "release notes",
    "grade": "vendor",
}
BECAUSE_COMMUNITY = {
    "need": "package:torch", "text": "the wheel of a neighbouring torch loads", "fact": "packages/flash-attn:range",
    "source": "https://example.org/ci/log", "grade": "community", "doubt": "seen once",
}
HOST = {
    "os": "linux", "arch": "x86_64", "glibc": "2.36",
    "devices": [{"vendor": "nvidia", "name": "Tesla V100", "arch": "sm_70", "driver": "999.95.05"}] * 2,
}
PLAN: dict[str, object] = {
    "schema": "accel-env/plan/1", "status": "ok", "target": "container",
    "matrix": {"version": "2026.11.30", "digest": "sha256:00"}, "host": HOST,
    "stack": {"name": "cuda", "version": "99.6"}, "python": "3.12",
    "picks": {
        "torch": {
            "version": "9.9.1", "build": "cu999", "index": "https://download.example.org/whl/cu999", "evidence": "metadata",
            "because": [BECAUSE_ARCH],
        },
        "bitsandbytes": {
            "version": "0.99.2", "build": "any", "variant": "cuda999", "index": "pypi", "evidence": "inspected", "because": [],
        },
        "flash-attn": {
            "version": "2.9.3", "build": "any", "index": "https://example.org/releases/download/v2.9.3",
            "evidence": "metadata", "because": [BECAUSE_COMMUNITY],
        },
    },
    "outside": ["transformers>=5"], "image": {"ref": "python:3.12-slim-bookworm", "digest": "sha256:" + "0123456789ab" * 5},
    "env": {"KEY": "a b"}, "run_args": ["--gpus", "all"], "lockable": True,
    "warnings": [
        {"rule": "first-run-slow", "message": "the first run compiles kernels", "source": "user guide"},
        {"rule": "outside-matrix", "message": "outside the matrix, closed by uv at lock time: transformers>=5", "source": ""},
    ],
}
VENV = {**PLAN, "target": "venv", "image": None}
CONFLICT: dict[str, object] = {
    "schema": "accel-env/plan/1", "status": "conflict", "matrix": PLAN["matrix"], "host": HOST,
    "conflict": {
        "core": [
            {"kind": "ask", "text": "flash-attn"}, {"kind": "host", "text": "architecture sm_70"},
        ],
        "because": [{**BECAUSE_ARCH, "text": "flash-attn has code for sm_80 and newer"}],
        "relaxations": [
            {"change": [{"kind": "drop", "name": "flash-attn", "spec": ""}], "gives": {"torch": "9.9.1+cu999"}},
            {
                "change": [
                    {"kind": "package", "name": "torch", "spec": "<9"}, {"kind": "driver", "name": "driver", "spec": ">=999"},
                ],
                "gives": {"torch": "8.9.0+cu998", "flash-attn": "2.9.3"},
            },
        ],
    },
    "warnings": [{"rule": "device-ignored", "message": "an integrated GPU is left out", "source": ""}],
}
REJECTED = {
    "candidate": "flash-attn 2.9.3", "need": "arch", "text": "has code for sm_80 and newer", "met": "sm_70",
    "fact": "packages/flash-attn:arch", "source": "setup.py", "grade": "vendor",
}
WHY_NOT = {
    "schema": "accel-env/why-not/1", "package": "flash-attn", "candidates": 14,
    "answer": "No build of flash-attn works here: 14 were looked at and each lacks something.",
    "rejections": [REJECTED, {**REJECTED, "candidate": "flash-attn 2.9.2"}] + [
        {
            **REJECTED, "candidate": f"flash-attn 2.8.{n}", "need": "python", "text": "has wheels for cp312",
            "met": f"3.{min(n, 14)}",
        }
        for n in range(30, 0, -1)
    ],
}
DETECTED = {
    "os": "linux", "kernel": "6.9.1", "arch": "x86_64", "libc": {"family": "glibc", "version": "2.36"}, "python": "3.12",
    "pythons": ["3.13", "3.12"],
    "devices": [
        {
            "vendor": "nvidia", "name": "GeForce RTX 9990", "arch": "sm_990", "memory_mib": 24564, "driver": "",
            "pci_id": "10de:ffff",
        },
        {"vendor": "amd", "name": "Graphics", "arch": "gfx9990", "driver": "", "integrated": True},
    ],
    "provenance": {"kernel": "uname", "libc": "ldd", "pythons": "PATH"}, "notes": ["nvidia-smi did not answer within 5 s"],
}
WRITTEN = {"plan": PLAN, "locked": 31, "written": ["out/pylock.toml", "out/requirements.lock", "out/plan.json"]}
STATS = {
    "schema": "accel-env/stats/1", "version": "2026.11.30", "totals": {"builds": 140, "devices": 700},
    "packages": {"torch": {"releases": 40, "builds": 600}, "bitsandbytes": {"releases": 12, "builds": 90}},
}
SHOWN = {
    "package": "bitsandbytes", "summary": "8-bit quantisation", "releases": ["0.99.2"],
    "builds": [
        {
            "version": "0.99.2", "build": "any", "variant": "cuda999", "platform": "linux_x86_64", "stack": "cuda",
            "tags": ["py3"], "index": "pypi", "unknown": ["publication", "arch"],
            "needs": [
                {"need": "arch", "values": ["sm_70"], "jit": ["compute_90"], "fact": "packages/bitsandbytes:arch"},
                {"need": "torch", "allows": ">=2.4", "abi": {"cuda": ">=12"}, "soft": True, "fact": "packages/bitsandbytes:arch"},
            ],
        },
    ],
    "absent": [{"stack": "xpu", "archs": ["pvc"], "text": "use something else", "fact": "packages/bitsandbytes:arch"}],
    "facts": [{"id": "packages/bitsandbytes:arch", **BECAUSE_ARCH}],
}


FACT = {"id": "stacks/cuda:floors", "text": "driver floors", "source": "release notes", "grade": "vendor"}
STACK = {
    "stack": "cuda", "version": "99.6", "vendor": "nvidia", "answer": "",
    "releases": [
        {
            "version": "99.6", "drivers": {"linux": {"minor": "985.60", "full": "990.28"}}, "driver_allows": [],
            "targets": ["sm_70", "sm_990"], "archs": [], "torch": "",
        },
    ],
    "arch_drivers": [{"archs": ["sm_70"], "allows": "<995"}],
    "builds": {"torch": [f"9.{n}.0" for n in range(11, 0, -1)], "flash-attn": ["2.9.3"]}, "facts": [FACT],
}
DEVICE = {
    "devices": [
        {
            "name": "GeForce RTX 9990", "vendor": "nvidia", "arch": "sm_990", "aliases": ["RTX 9990 OEM"], "pci": ["ffff"],
            "kind": "geforce", "memory_mib": 24564, "stacks": ["cuda"], "unsupported": "",
        },
    ],
    "facts": [FACT],
}
NOTE = {"where": "images.yaml: python:9.9", "rule": "image-unpinned", "message": "a default image has no digest"}
BROKEN = {"where": "torch/9.9.1.yaml: releases[0]", "rule": "no-source", "message": "a fact needs it"}


def raising(error: BaseException) -> Callable[..., Mapping[str, object]]:
    def call(*_: object) -> Mapping[str, object]:
        raise error

    return call


def answering(answer: Mapping[str, object]) -> Callable[..., Mapping[str, object]]:
    return lambda *_: answer


CHANGES = (
    ("drop", "flash-attn", "", "without flash-attn"),
    ("device", "Arc B580", "leave out", "without the Arc B580"),
    ("package", "torch", "==9.1", "ask for torch==9.1"),
    ("driver", "nvidia", ">=999", "nvidia driver >=999"),
    ("driver", "amd", ">=9", "amd driver >=9"),
    ("python", "python", "==3.12.*", "Python 3.12"),
    ("stack", "cuda", "cuda-99", "--stack cuda-99"),
    ("source", "flash-attn", "--source-builds", "build flash-attn from source with --source-builds"),
    ("libc", "glibc", ">=2.28", "a system with glibc >=2.28"),
    ("target", "container", "", "--target container"),
    ("moon", "phase", "full", "moon phase full"),
)


@pytest.mark.parametrize(("kind", "name", "spec", "text"), CHANGES)
def test_a_way_out_in_words(kind: str, name: str, spec: str, text: str) -> None:
    from accel_env.cli.show_conflict import conflict_lines

    way_out = {"change": [{"kind": kind, "name": name, "spec": spec}], "gives": {"numpy": "2", "torch": "9"}}
    assert conflict_lines({"conflict": {"relaxations": [way_out]}}, 200)[-1] == f"hint: {text}: gives torch 9, numpy 2"


LACKING = InputError(
    "unknown-device", "--device names `RTX 9991`, which the matrix does not know", context=("nearest: RTX 9990",),
    hint="use one of the names above",
)
CASES: dict[str, tuple[str, str, Callable[..., Mapping[str, object]]]] = {
    "resolve": ("resolve torch bitsandbytes flash-attn --device 'Tesla V100:2' --driver 999.95.05", "resolve", answering(PLAN)),
    "resolve-narrow": ("resolve torch", "resolve", answering(PLAN)),
    "resolve-json": ("resolve torch --json", "resolve", answering({"schema": "accel-env/plan/1", "status": "ok", "note": "é"})),
    "resolve-conflict": ("resolve torch flash-attn", "resolve", answering(CONFLICT)),
    "resolve-conflict-json": (
        "resolve torch --json", "resolve", answering({"schema": "accel-env/plan/1", "status": "conflict"})
    ),
    "resolve-bad-device": ("resolve torch --device 'RTX 9991'", "resolve", raising(LACKING)),
    "resolve-bad-device-json": ("resolve torch --json", "resolve", raising(LACKING)),
    "resolve-bug": ("resolve torch", "resolve", raising(RuntimeError("two\nlines"))),
    "resolve-interrupted": ("resolve torch", "resolve", raising(KeyboardInterrupt())),
    "resolve-venv": ("resolve torch --target venv", "resolve", answering(VENV)),
    "explain": ("explain torch", "explain", answering({**PLAN, "explanation": ["newest torch whose build runs on sm_70"]})),
    "explain-not": ("explain --not flash-attn", "explain_not", answering(WHY_NOT)),
    "detect": ("detect", "detect", answering(DETECTED)),
    "detect-nothing": ("detect", "detect", answering({"os": "linux", "arch": "x86_64", "devices": []})),
    "lock": ("lock torch -o out", "lock", answering(WRITTEN)),
    "lock-offline": (
        "lock torch -o out", "lock",
        raising(ClosureError("closure-failed", "uv could not reach PyPI", hint="check the network, or name a mirror")),
    ),
    "matrix-stats": ("matrix stats", "matrix_stats", answering(STATS)),
    "matrix-show": ("matrix show bitsandbytes", "matrix_show", answering(SHOWN)),
    "matrix-show-stack": ("matrix show cuda-99.6", "matrix_show", answering(STACK)),
    "matrix-show-device": ("matrix show 9990", "matrix_show", answering(DEVICE)),
    "matrix-show-profiles": (
        "matrix show profiles", "matrix_show",
        answering({"list": "profiles", "rows": [{"name": "v990", "summary": "one V990"}, {"name": "mi9", "summary": "two MI9"}]}),
    ),
    "matrix-lint": ("matrix lint", "matrix_lint", answering({"problems": [], "notes": [NOTE, NOTE]})),
    "matrix-lint-notes": ("matrix lint --notes", "matrix_lint", answering({"problems": [BROKEN], "notes": [NOTE]})),
    "matrix-lint-broken": ("matrix lint", "matrix_lint", answering({"problems": [BROKEN], "notes": [NOTE]})),
    "nothing-asked": ("resolve", "resolve", answering(PLAN)),
    "lock-without-folder": ("lock torch", "lock", answering(WRITTEN)),
    "option-twice": ("resolve torch --driver 1 --driver 2", "resolve", answering(PLAN)),
    "unknown-choice": ("resolve torch --target vm", "resolve", answering(PLAN)),
}


@pytest.fixture
def fake_app(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """`accel_env.app` with a Request that keeps its fields and no function yet."""
    app = ModuleType("accel_env.app")
    app.Request = SimpleNamespace  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "accel_env.app", app)
    monkeypatch.setattr(accel_env, "app", app, raising=False)
    return app


@pytest.mark.parametrize("name", CASES)
def test_command_prints_what_it_printed(
    name: str, fake_app: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    import shlex

    line, function, answer = CASES[name]
    monkeypatch.setenv("COLUMNS", "60" if name.endswith("-narrow") else "100")
    monkeypatch.delenv("ACCEL_ENV_DEBUG", raising=False)
    monkeypatch.delenv("ACCEL_ENV_PROGRAM", raising=False)
    setattr(fake_app, function, answer)
    code = main(shlex.split(line))
    out, err = capsys.readouterr()
    printed = f"$ accel-env {line}\nexit code: {code}\n--- stdout\n{out}--- stderr\n{err}"
    path = FOLDER / f"{name}.txt"
    if request.config.getoption("--update-snapshots"):
        path.write_text(printed, encoding="utf-8")
    assert printed == path.read_text(encoding="utf-8")
    assert all(part == part.rstrip() for part in printed.split("\n")), "blanks at the end of a line"


def test_every_snapshot_has_its_command() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(CASES)


def test_json_is_one_document(fake_app: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    fake_app.resolve = answering(PLAN)  # type: ignore[attr-defined]
    assert main(["resolve", "torch", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == PLAN


def test_the_next_command_is_called_as_this_one_was(
    fake_app: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_app.resolve = answering(PLAN)  # type: ignore[attr-defined]
    monkeypatch.setenv("ACCEL_ENV_PROGRAM", "./scripts/accel-env")
    assert main(["resolve", "torch"]) == 0
    out = capsys.readouterr().out
    assert "\nnext: ./scripts/accel-env lock torch -o DIR" in out and "`./scripts/accel-env explain`" in out
    monkeypatch.setenv("ACCEL_ENV_PROGRAM", "/my tools/accel-env")
    assert main(["resolve", "torch"]) == 0
    assert "next: '/my tools/accel-env' lock torch" in capsys.readouterr().out
    assert main(["resolve"]) == 2
    assert "/my tools/accel-env resolve" in capsys.readouterr().err


def test_what_is_outside_the_matrix_is_said_once(fake_app: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    fake_app.resolve = answering(PLAN)  # type: ignore[attr-defined]
    assert main(["resolve", "torch"]) == 0
    assert capsys.readouterr().out.count("transformers") == 1


def test_debug_shows_the_traceback(
    fake_app: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_app.resolve = raising(RuntimeError("oops"))  # type: ignore[attr-defined]
    monkeypatch.setenv("ACCEL_ENV_DEBUG", "1")
    assert main(["resolve", "torch"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_request_carries_every_option(fake_app: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[SimpleNamespace] = []

    def resolve(request: SimpleNamespace) -> Mapping[str, object]:
        seen.append(request)
        return PLAN

    fake_app.resolve = resolve  # type: ignore[attr-defined]
    words = (
        "torch bitsandbytes -r a.txt -rb.txt --host h.json --device A --device=B:2 --driver 1 --stack s --python 3.12 "
        "--glibc 2.1 --arch arm64 --target venv --prefer newest --offline --overlay o.yaml --source-builds --base vendor"
    )
    assert main(["resolve", *words.split()]) == 0
    assert vars(seen[0]) == {
        "asks": ("torch", "bitsandbytes"), "requirement_files": ("a.txt", "b.txt"), "host": "h.json", "devices": ("A", "B:2"),
        "driver": "1", "stack": "s", "python": "3.12", "glibc": "2.1", "arch": "arm64", "target": "venv",
        "prefer": "newest", "offline": True, "overlays": ("o.yaml",), "source_builds": True, "base": "vendor", "own_base": False,
    }
    assert capsys.readouterr().out.rstrip().endswith(f"next: accel-env lock {words} -o DIR")
