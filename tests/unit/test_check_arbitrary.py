"""Readers of `check` on any text: a document, or a refusal that names the file. Nothing else comes out."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accel_env.errors import InputError
from accel_env.hostfile import read as read_host
from accel_env.judge.files.check import judge_files, know
from accel_env.judge.files.commands import commands
from accel_env.judge.files.load import load
from accel_env.judge.files.script import Source
from accel_env.judge.files.substitute import expand
from accel_env.matrix.load import open_matrix

CHECK = Path(__file__).parents[1] / "check"
NAMES = (
    "Dockerfile",
    "requirements.txt",
    "pyproject.toml",
    "uv.lock",
    "poetry.lock",
    "pylock.toml",
    "pixi.toml",
    "pixi.lock",
    "environment.yml",
    "compose.yaml",
)
WORDS = r"""
    FROM nvidia/cuda:12.8.0-devel-ubuntu22.04 AS a|FROM a|RUN pip install torch|ARG A=1|ENV A=${A:-b} C|RUN <<E|E
    COPY --from=a /opt/venv /opt/venv|&&|\|"|'|`|$(|)|${|}|[|]|[[|]]|{|}|#|:|- |=|==|>=|--|-r requirements.txt|-e .
    --hash=sha256:0|@ https://x/torch-2.9.1+cu128-cp312-cp312-linux_x86_64.whl|torch|torchvision==0.24.1+cu128
    ;python_version<"3.9"|[package]|[[package]]|name = "torch"|version = "2.9.1"|dependencies:|services:|image: |build: .
      a:|[project]|[tool.uv.sources]|[tool.poetry.dependencies]|[tool.pixi.pypi-dependencies]|channels: [pytorch]|*a|&a
    !!x|? |%YAML|---|<<: |if [ "$A" = 1 ]; then|fi|else|for i in a b; do|done|case|esac|uv pip install|conda install
    poetry install|--index-url|https://download.pytorch.org/whl/cu128
"""
ODD = ("\n", "\t", "\0", "\ufeff", "\u2028", "\N{LATIN SMALL LETTER E WITH ACUTE}", "|", "||")
PIECES = st.sampled_from([*WORDS.replace("\n    ", "|").split("|"), *ODD])
TEXTS = st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=30).map("".join), st.lists(PIECES, max_size=30).map("\n".join))
SETTINGS = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def read(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        document = load(str(path))
    except InputError as error:
        assert error.reference in ("file-broken", "file-unreadable", "unknown-file") and str(folder) in error.message, error
    else:
        assert document.file == str(path)


@pytest.mark.parametrize("name", NAMES)
@SETTINGS
@given(text=TEXTS)
def test_any_text_is_read_or_refused(tmp_path: Path, name: str, text: str) -> None:
    read(tmp_path, name, text)


GOOD = [
    (name, text)
    for path in sorted(CHECK.rglob("*.yaml"))
    for document in [yaml.safe_load(path.read_text(encoding="utf-8"))]
    for row in [document, *document.get("caught", ()), *document.get("fine", ())]
    for name, text in row.get("files", {}).items()
]


@SETTINGS
@given(st.sampled_from(GOOD), st.integers(0, 2000), st.integers(0, 40), st.one_of(st.just(""), PIECES))
def test_a_damaged_file_is_read_or_refused(tmp_path: Path, good: tuple[str, str], place: int, length: int, new: str) -> None:
    name, text = good
    place %= len(text) + 1
    read(tmp_path, name, text[:place] + new + text[place + length :])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "text", ["[" * 20000, "{" * 20000, "a: " * 5000, "((((" * 5000, "$(" * 20000, "${a:-" * 5000, "\\\n" * 20000]
)
def test_deep_nesting_is_no_crash(tmp_path: Path, name: str, text: str) -> None:
    read(tmp_path, name, text)
    read(tmp_path, name, f"FROM a\nRUN {text}\n")


@SETTINGS
@given(TEXTS)
def test_any_script_gives_commands_with_lines_of_it(text: str) -> None:
    for command in commands(Source(text), {"A": "1"}):
        assert command.words and 1 <= command.line <= text.count("\n") + 1


@SETTINGS
@given(TEXTS)
def test_any_text_can_be_expanded(text: str) -> None:
    assert isinstance(expand(text, {"A": "1"}), str)


KNOWLEDGE = know(open_matrix())
HOSTS = ("rtx4090-r580", "v100-r580", "mi300x", "gh200", "rtx4090-windows", "gaudi2-1.22", "cpu-x86_64")


@settings(SETTINGS, max_examples=60)
@given(st.sampled_from(GOOD), st.sampled_from(HOSTS), st.integers(0, 2000), st.integers(0, 40), st.one_of(st.just(""), PIECES))
def test_a_damaged_file_is_judged(tmp_path: Path, good: tuple[str, str], name: str, place: int, length: int, new: str) -> None:
    file, text = good
    place %= len(text) + 1
    path = tmp_path / file
    path.write_text(text[:place] + new + text[place + length :], encoding="utf-8")
    host = read_host(name, KNOWLEDGE.matrix)
    try:
        document = load(str(path), host.arch)
    except InputError:
        return
    for finding in judge_files([document], host, KNOWLEDGE):
        assert finding.where.startswith(str(tmp_path)) and finding.message and finding.because
