"""The house rules that no linter knows: no data in code, small modules, small functions."""
from __future__ import annotations

import ast
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "resolver").rglob("*.py"))
MODULE_LINES, FUNCTION_LINES = 300, 40
# Longer modules, up to 500 lines, and why.
LONGER = {"model.py": "the types of one flow are read together"}

# What belongs into matrix/*.yaml: releases, architectures, builds, addresses of indexes.
DATA = (
    ("a release", re.compile(r"(?<![\w.])\d+\.\d+\.\d+(?![\w.])")),
    ("an NVIDIA architecture", re.compile(r"\b(?:sm|compute)_\d{2,}")),
    ("an AMD architecture", re.compile(r"\bgfx\d[0-9a-f]{2,}\b")),
    ("a build label", re.compile(r"\b(?:cu1\d\d|rocm\d)\b|\brocm\d+\.\d+")),
    ("an address", re.compile(r"https?://(?!127\.0\.0\.1|localhost)[\w-]+\.[\w.-]+")),
)


def literals(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, text) of every string in the code, docstrings left out (comments never reach the tree)."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


def findings(source: str) -> list[str]:
    return [
        f"line {line}: {text!r} holds {what}"
        for line, text in literals(ast.parse(source))
        for what, pattern in DATA
        if pattern.search(text)
    ]


@pytest.mark.parametrize(
    "text", ["2.14.1", ">=525.60.13", "sm_90", "compute_90", "gfx942", "cu126", "rocm7.2", "https://download.pytorch.org/whl"]
)
def test_data_in_code_is_found(text: str) -> None:
    assert findings(f'"""A module."""\nfloor = "{text}"\n')


@pytest.mark.parametrize(
    "source",
    ['"""Since 2.14.1 on sm_90."""\n', "x = 1  # gfx942\n", 'p = r"sm_(\\d+)"\n', 'v = "3"\n', "v = '127.0.0.1'\n"],
)
def test_docstrings_comments_and_patterns_are_no_data(source: str) -> None:
    assert not findings(source)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_hold_no_data(path: Path) -> None:
    assert not findings(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_and_functions_are_small(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert source.count("\n") <= (500 if path.name in LONGER else MODULE_LINES)
    long = [
        f"{node.name}: {(node.end_lineno or 0) - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and (node.end_lineno or 0) - node.lineno + 1 > FUNCTION_LINES
    ]
    assert not long, long


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_postpone_annotations(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    annotated = any(isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AnnAssign)) for node in ast.walk(ast.parse(source)))
    assert not annotated or "from __future__ import annotations" in source


def test_sockets_stay_on_this_machine() -> None:
    with socket.socket() as outside, pytest.raises(OSError, match="without the network marker"):
        outside.connect(("192.0.2.1", 80))
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()[:2]):
        pass


def test_child_processes_find_no_way_out() -> None:
    assert os.environ["https_proxy"].startswith("http://127.0.0.1:")


@pytest.mark.parametrize(("under_ci", "outcome"), [("true", "1 failed, 1 passed"), ("", "1 passed, 1 skipped")])
def test_a_skip_fails_under_ci_alone(tmp_path: Path, under_ci: str, outcome: str) -> None:
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    network: x\n    docker: x\n    gpu: x\n")
    (tmp_path / "test_it.py").write_text(
        "import pytest\ndef test_a():\n    pytest.skip('no reason')\ndef test_b():\n    pass\n"
        "@pytest.mark.network\ndef test_c():\n    raise SystemError\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", str(tmp_path)], capture_output=True, text=True,
        check=False, cwd=tmp_path, env={**os.environ, "CI": under_ci},
    )
    assert f"{outcome}, 1 deselected" in done.stdout
