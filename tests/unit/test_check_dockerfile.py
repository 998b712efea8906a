"""Dockerfiles: stages, variables, here-documents, what a command installs, and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from accel_env.judge.files.load import load
from accel_env.judge.files.values import Document, Install, Removed, Tools, Variable


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(text: str, arch: str = "x86_64") -> Document:
    Path("Dockerfile").write_text(text, encoding="utf-8")
    return load("Dockerfile", arch)


def installs(text: str, stage: int = -1, arch: str = "x86_64") -> list[Install]:
    return [step for step in read(text, arch).scenes[stage].steps if isinstance(step, Install)]


def test_a_stage_has_its_ancestors_steps() -> None:
    document = read("FROM python:3.12 AS Base\nENV A=1\nRUN pip install torch\nFROM base\nRUN pip install numpy\n")
    first, last = document.scenes
    assert (first.title, last.title, first.final, last.final) == ("stage base", "stage 1", False, True)
    assert last.base is not None and (last.base.ref, last.base.where) == ("python:3.12", "Dockerfile:1")
    assert [s.where for s in last.steps] == ["Dockerfile:2", "Dockerfile:3", "Dockerfile:5"]


@pytest.mark.parametrize(
    ("reference", "repository", "tag", "digest"),
    [
        ("nvidia/cuda:12.8.0-devel-ubuntu22.04", "nvidia/cuda", "12.8.0-devel-ubuntu22.04", ""),
        ("docker.io/library/python:3.12", "python", "3.12", ""),
        ("localhost:5000/a/b", "localhost:5000/a/b", "", ""),
        ("python:3.12@sha256:" + "a" * 64, "python", "3.12", "sha256:" + "a" * 64),
        ("python@sha256:" + "a" * 64, "python", "", "sha256:" + "a" * 64),
    ],
)
def test_references(reference: str, repository: str, tag: str, digest: str) -> None:
    base = read(f"FROM --platform=linux/amd64 {reference}\n").scenes[0].base
    assert base is not None
    assert (base.repository, base.tag, base.digest, base.platform) == (repository, tag, digest, "linux/amd64")


def test_arguments_before_from_are_for_from_alone() -> None:
    scene = read("ARG V=12.8\nARG I=nvidia/cuda:${V}.0-base-ubuntu22.04\nFROM $I\nENV A=$V\nARG V\nENV B=$V\n").scenes[0]
    assert scene.base is not None and scene.base.tag == "12.8.0-base-ubuntu22.04"
    assert [s.value for s in scene.steps if isinstance(s, Variable)] == ["", "12.8"]


def test_an_argument_without_a_value_is_unknown() -> None:
    base = read("ARG I\nFROM ${I}\n").scenes[0].base
    assert base is not None and base.repository == ""


def test_environment_in_its_old_and_new_form() -> None:
    steps = read("FROM a\nENV A 1 2\nENV B=\"x y\" C='$A' D=\\\n3\n").scenes[0].steps
    assert [(s.name, s.value) for s in steps if isinstance(s, Variable)] == [("A", "1 2"), ("B", "x y"), ("C", "$A"), ("D", "3")]


def test_continuations_comments_and_blank_lines_inside() -> None:
    (one,) = installs("FROM a\nRUN apt-get update && \\\n# why\n\n    pip install \\\n      torch==2.9.1 \\\n      numpy\n")
    assert [(w.name, w.spec, w.where) for w in one.wanted] == [
        ("torch", "==2.9.1", "Dockerfile:5"),
        ("numpy", "", "Dockerfile:5"),
    ]


def test_another_escape_character() -> None:
    assert installs("# escape=`\nFROM a\nRUN pip install `\n torch\n")[0].wanted[0].name == "torch"


def test_here_documents() -> None:
    found = installs("FROM a\nRUN <<EOF\npip install torch\n\npip install numpy\nEOF\nRUN <<'E' bash\npip install vllm\nE\n")
    assert [(i.wanted[0].name, i.where) for i in found] == [
        ("torch", "Dockerfile:3"),
        ("numpy", "Dockerfile:5"),
        ("vllm", "Dockerfile:8"),
    ]


def test_the_json_form() -> None:
    assert installs('FROM a\nRUN ["pip", "install", "torch>=2"]\n')[0].wanted[0].spec == ">=2"


def test_options_of_pip() -> None:
    (one,) = installs(
        "FROM a\nENV PIP_EXTRA_INDEX_URL=https://e\nRUN PIP_NO_CACHE_DIR=1 python3 -m pip --no-input install -U --pre "
        "--index-url=https://i -f https://l -c c.txt --no-deps --no-build-isolation --require-hashes torch\n"
    )
    assert (one.tool, one.index, one.extras, one.links) == ("pip", "https://i", ("https://e",), ("https://l",))
    assert one.upgrade and one.pre and one.constrained and one.no_deps and not one.isolated and one.hashes
    assert one.variables["PIP_NO_CACHE_DIR"] == "1"


def test_uv_takes_the_first_index_and_knows_backends() -> None:
    (one,) = installs("FROM a\nRUN uv pip install --system --torch-backend=cu128 torch\n")
    assert one.tool == "uv" and one.first_index and one.backend == "cu128"
    (one,) = installs("FROM a\nENV UV_INDEX_STRATEGY=unsafe-best-match\nRUN uv pip install --system torch\n")
    assert not one.first_index


def test_requirements_beside_the_dockerfile(folder: Path) -> None:
    (folder / "requirements").mkdir()
    (folder / "requirements" / "gpu.txt").write_text("--extra-index-url https://e\n-r base.txt\ntorch==2.9.1\n")
    (folder / "requirements" / "base.txt").write_text("numpy\n")
    (one,) = installs("FROM a\nCOPY requirements/gpu.txt /tmp/r.txt\nRUN pip install -r /tmp/r.txt -r gone.txt\n")
    assert [(w.name, w.where) for w in one.wanted] == [("numpy", "requirements/base.txt:1"), ("torch", "requirements/gpu.txt:3")]
    assert one.extras == ("https://e",) and one.skipped == ("gone.txt",)


def test_what_is_copied_from_another_stage() -> None:
    steps = (
        read("FROM a AS b\nRUN pip install torch\nRUN pip uninstall -y numpy\nFROM c\nCOPY --from=b /opt/venv /opt/venv\n")
        .scenes[1]
        .steps
    )
    kinds = [type(step) for step in steps]
    assert kinds == [Tools, Install, Removed]
    one = steps[1]
    assert isinstance(one, Install) and one.built
    steps = read("FROM a AS b\nRUN pip install torch\nFROM c\nCOPY --from=b /src/app.py /app.py\n").scenes[1].steps
    assert [type(step) for step in steps] == [Tools]


def test_conda_and_system_packages() -> None:
    steps = (
        read("FROM a\nRUN apt-get install -y cuda-toolkit-12-8\nRUN conda install -y -c pytorch pytorch=2.5.1 python=3.11\n")
        .scenes[0]
        .steps
    )
    assert steps[0] == Tools(("cuda-toolkit-12-8",), "Dockerfile:2")
    conda = next(s for s in steps if isinstance(s, Install))
    assert (conda.tool, conda.channels, conda.wanted[0].name, conda.wanted[0].spec) == (
        "conda",
        ("pytorch",),
        "pytorch",
        "==2.5.1.*",
    )
    assert Tools(("python=3.11",), "Dockerfile:3") in steps


def test_the_architecture_of_the_platform() -> None:
    text = 'FROM a\nARG TARGETARCH\nRUN if [ "$TARGETARCH" = arm64 ]; then pip install torch; else pip install numpy; fi\n'
    assert installs(text)[0].wanted[0].name == "numpy"
    assert installs(text, arch="aarch64")[0].wanted[0].name == "torch"


def test_configured_indexes_hold_from_then_on() -> None:
    first, last = installs("FROM a\nRUN pip install x\nRUN pip config set global.index-url https://i && pip install torch\n")
    assert (first.index, last.index) == ("", "https://i")


def test_environments_and_the_pythons_they_are_for() -> None:
    steps = (
        read("FROM a\nRUN python3.11 -m venv /v && python3 -m pip --python /v/bin/python install --no-deps torch\n")
        .scenes[0]
        .steps
    )
    assert [type(s) for s in steps] == [Tools, Tools, Install]
    assert steps[1] == Tools(("venv",), "Dockerfile:2")
    assert not any(isinstance(s, Tools) for s in read("FROM a\nRUN python3 -m venv --system-site-packages /v\n").scenes[0].steps)


def test_a_tree_that_becomes_the_root_takes_its_environment_along() -> None:
    text = "FROM a AS b\nRUN pip install torch\nFROM c\nCOPY --from=b {} /\n"
    assert installs(text.format("/out/")) and not installs(text.format("/app/main"))


@pytest.mark.parametrize(
    "command",
    [
        "update-alternatives --set python3 /usr/bin/python3.12",
        "update-alternatives --install /usr/bin/python3 python3 /usr/bin/python3.12 1",
        "ln -sf /usr/bin/python3.12 /usr/bin/python",
    ],
)
def test_what_makes_a_python_the_default(command: str) -> None:
    assert read(f"FROM a\nRUN {command}\n").scenes[0].steps == (Tools(("python=3.12",), "Dockerfile:2"),)
    assert not read(f"FROM a\nRUN {command.replace('python', 'gcc')}\n").scenes[0].steps
