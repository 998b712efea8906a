"""Requirements, pyproject.toml, conda's and pixi's files: names, ranges, indexes, lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from accel_env.judge.files.load import load
from accel_env.judge.files.values import Document, Install, Tools, Wanted

WHEEL = "https://github.com/Dao-AILab/flash-attention/releases/download/v2.8.3/flash_attn-2.8.3+cu12torch2.8cxx11abiTRUE-cp312-cp312-linux_x86_64.whl"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(name: str, text: str) -> Document:
    Path(name).write_text(text, encoding="utf-8")
    return load(name)


def install(name: str, text: str, scene: int = 0) -> Install:
    return next(step for step in read(name, text).scenes[scene].steps if isinstance(step, Install))


def rows(wanted: tuple[Wanted, ...]) -> list[tuple[str, str, str]]:
    return [(w.name, w.spec, w.where.rpartition(":")[2]) for w in wanted]


def test_requirements() -> None:
    one = install(
        "requirements.txt",
        "\ufeff# first\n--index-url https://download.pytorch.org/whl/cu128\n--extra-index-url=https://e\n"
        "Torch == 2.9.1 ; python_version >= '3.10'  # pinned\nflash_attn>=2.8,\\\n  <3\n\nfoo[bar]~=1.2\n-e .\n./local\ngit+https://g/x\n"
        f"{WHEEL}#sha256=abc\nnumpy==2.0 \\\n  --hash=sha256:aa\n",
    )
    assert rows(one.wanted) == [
        ("torch", "==2.9.1", "4"),
        ("flash-attn", "<3,>=2.8", "5"),
        ("foo", "~=1.2", "8"),
        ("flash-attn", "==2.8.3+cu12torch2.8cxx11abiTRUE", "12"),
        ("numpy", "==2.0", "13"),
    ]
    assert (one.index, one.extras) == ("https://download.pytorch.org/whl/cu128", ("https://e",))
    assert one.wanted[0].markers == ('python_version >= "3.10"',)
    assert one.wanted[2].extras == ("bar",)
    assert one.wanted[3].url.startswith(WHEEL) and one.wanted[3].hashed
    assert one.wanted[4].hashed and not one.wanted[0].hashed


def test_direct_references_and_variables() -> None:
    one = install("requirements.in", f"flash-attn @ {WHEEL}\ntorch @ git+https://g/torch\nnumpy==${{NUMPY}}\n")
    assert one.wanted[0].spec == "==2.8.3+cu12torch2.8cxx11abiTRUE"
    assert one.wanted[1].vague and one.wanted[2].vague


def test_included_files_and_constraints(folder: Path) -> None:
    (folder / "other.txt").write_text("numpy\n")
    document = read("requirements.txt", "-r other.txt\n-c limits.txt\n-r gone.txt\ntorch\n")
    one = document.scenes[0].steps[0]
    assert isinstance(one, Install) and [w.where for w in one.wanted] == ["other.txt:1", "requirements.txt:4"]
    assert one.constrained and one.skipped == ("gone.txt",) and document.also == ("other.txt",)


def test_pyproject_of_uv() -> None:
    document = read(
        "pyproject.toml",
        """
[project]
requires-python = ">=3.11,<3.13"
dependencies = ["numpy", "torch==2.9.1"]
[project.optional-dependencies]
gpu = ["flash-attn>=2.8"]
[dependency-groups]
dev = ["pytest"]
[[tool.uv.index]]
name = "pt"
url = "https://download.pytorch.org/whl/cu128"
explicit = true
[tool.uv.sources]
torch = { index = "pt" }
""",
    )
    assert [s.title for s in document.scenes] == ["the dependencies", "with the extra gpu", "with the group dev"]
    plain, gpu = (next(s for s in scene.steps if isinstance(s, Install)) for scene in document.scenes[:2])
    assert [(w.name, w.spec, w.index, w.where) for w in plain.wanted] == [
        ("numpy", "", "", "pyproject.toml:4"),
        ("torch", "==2.9.1", "https://download.pytorch.org/whl/cu128", "pyproject.toml:4"),
    ]
    assert plain.tool == "uv" and plain.first_index and plain.extras == ()
    assert document.scenes[0].python == "<3.13,>=3.11" or document.scenes[0].python == ">=3.11,<3.13"
    assert [w.name for w in gpu.wanted] == ["numpy", "torch", "flash-attn"]


def test_pyproject_of_uv_with_a_source_per_platform() -> None:
    one = install(
        "pyproject.toml",
        """
[project]
dependencies = ["torch>=2.7"]
[[tool.uv.index]]
name = "cu128"
url = "https://download.pytorch.org/whl/cu128"
[[tool.uv.index]]
name = "cpu"
url = "https://download.pytorch.org/whl/cpu"
default = true
[tool.uv.sources]
torch = [{ index = "cu128", marker = "sys_platform == 'linux'" }, { index = "cpu", marker = "sys_platform == 'darwin'" }]
""",
    )
    both = ("sys_platform == 'linux'", "sys_platform == 'darwin'")
    assert [(w.index.rpartition("/")[2], w.markers, w.unless) for w in one.wanted] == [
        ("cu128", both[:1], ()),
        ("cpu", both[1:], ()),
        ("", (), both),
    ]
    assert (one.index, one.extras) == ("https://download.pytorch.org/whl/cpu", ("https://download.pytorch.org/whl/cu128",))


def test_sources_of_extras_that_exclude_each_other() -> None:
    document = read(
        "pyproject.toml",
        """
[project]
dependencies = ["torch>=2.5"]
[project.optional-dependencies]
cpu = ["torch>=2.5"]
cu128 = ["torch>=2.5"]
all = ["numpy"]
[tool.uv]
conflicts = [[{ extra = "cpu" }, { extra = "cu128" }]]
[tool.uv.sources]
torch = [{ index = "pt-cpu", extra = "cpu" }, { index = "pt-cu128", extra = "cu128" }]
[[tool.uv.index]]
name = "pt-cpu"
url = "https://download.pytorch.org/whl/cpu"
explicit = true
[[tool.uv.index]]
name = "pt-cu128"
url = "https://download.pytorch.org/whl/cu128"
explicit = true
""",
    )
    said = {}
    for scene in document.scenes:
        (one,) = (s for s in scene.steps if isinstance(s, Install))
        rows = [(w.index.rpartition("/")[2], w.where.rpartition(":")[2]) for w in one.wanted if w.name == "torch"]
        said[scene.title] = (scene.alternative, rows)
    assert said == {
        "the dependencies": (False, [("", "3")]),
        "with the extra cpu": (True, [("cpu", "3"), ("cpu", "5")]),
        "with the extra cu128": (True, [("cu128", "3"), ("cu128", "6")]),
        "with the extra all": (False, [("", "3")]),
    }


@pytest.mark.parametrize(
    ("written", "spec"),
    [
        ("^2.1", "<3,>=2.1"),
        ("^0.2.3", "<0.3,>=0.2.3"),
        ("~2.1", "==2.1.*"),
        ("2.9.1", "==2.9.1"),
        ("*", ""),
        (">=2,<3", "<3,>=2"),
        ("nonsense", ""),
    ],
)
def test_ranges_of_poetry(written: str, spec: str) -> None:
    text = (
        '[tool.poetry.dependencies]\npython = "^3.10"\n'
        f'torch = {{ version = "{written}", source = "pt" }}\n'
        '[[tool.poetry.source]]\nname = "pt"\nurl = "https://download.pytorch.org/whl/cu128"\npriority = "explicit"\n'
    )
    one = install("pyproject.toml", text)
    assert one.tool == "poetry"
    (torch,) = one.wanted
    assert sorted(torch.spec.split(",")) == sorted(spec.split(",")) and torch.index.endswith("cu128")
    assert torch.where == "pyproject.toml:3"


def test_environment_of_conda() -> None:
    document = read(
        "environment.yml",
        "name: x\nchannels: [pytorch, nvidia]\ndependencies:\n- python=3.11\n- pytorch=2.5.1=py3.11_cuda12.4*\n"
        "- conda-forge::numpy>=1.26,<2\n- pytorch-cuda=12.4\n- pip\n- pip:\n  - --extra-index-url https://e\n  - vllm==0.6.0\n",
    )
    steps = document.scenes[0].steps
    conda, pip = (s for s in steps if isinstance(s, Install))
    assert conda.channels == ("pytorch", "nvidia") and document.scenes[0].python.startswith("==3.11")
    found = {w.name: w for w in conda.wanted}
    assert (found["pytorch"].spec, found["pytorch"].build) == ("==2.5.1.*", "py3.11_cuda12.4*")
    assert (found["numpy"].index, found["numpy"].where) == ("conda-forge", "environment.yml:6")
    assert (pip.tool, pip.extras, rows(pip.wanted)) == ("pip", ("https://e",), [("vllm", "==0.6.0", "11")])


def test_pixi() -> None:
    document = read(
        "pixi.toml",
        '[workspace]\nchannels = ["conda-forge"]\nplatforms = ["linux-64"]\n[dependencies]\npython = "3.12.*"\nnumpy = ">=2"\n'
        '[pypi-dependencies]\ntorch = { version = ">=2.9", index = "https://download.pytorch.org/whl/cu128" }\n',
    )
    scene = document.scenes[0]
    assert "3.12" in scene.python or Tools(("python=3.12",), "pixi.toml:5") in scene.steps
    torch = next(w for s in scene.steps if isinstance(s, Install) for w in s.wanted if w.name == "torch")
    assert (torch.spec, torch.index) == (">=2.9", "https://download.pytorch.org/whl/cu128")
