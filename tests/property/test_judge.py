"""What holds for every judgement: sources, verified fixes, and peace with what the solver picks."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accel_env.hostfile import from_mapping
from accel_env.judge.doctor import judge
from accel_env.judge.proven import with_facts
from accel_env.judge.scene import Scene
from accel_env.judge.signatures import load, read
from accel_env.judge.types import SEVERITIES, Environment, Fix, Installed
from accel_env.judge.verify import left_over, releases, with_driver, with_package, with_variables
from accel_env.matrix.load import open_matrix
from accel_env.model import Ask, Device, Host, Policy, Solution
from accel_env.solve.finish import answer
from accel_env.solve.problem import state
from accel_env.solve.prune import prune

MATRIX = open_matrix()
TABLE = load(MATRIX)
BUNDLES = (("torch",), ("torch", "bitsandbytes"), ("torch", "torchvision", "torchaudio"), ("torch", "flash-attn"), ("vllm",))


def environment_of(solution: Solution) -> Environment:
    """What a plan installs, as somebody would list it afterwards."""
    rows = []
    for pick in solution.picks:
        candidate = pick.candidate
        label = "" if candidate.build in ("", "any") else candidate.build
        vendor = candidate.index == "image"
        rows.append(Installed(candidate.name, candidate.version, "" if vendor else label, vendor=vendor, origin="plan"))
    host = replace(solution.problem.host, python=solution.python, devices=solution.problem.devices)
    image = solution.image
    if image is not None:
        host = replace(host, libc=image.libc, libc_family="glibc" if image.libc else "", libstdcxx=image.libstdcxx)
    return Environment(host=host, installed=tuple(rows))


@pytest.mark.parametrize("profile", sorted(MATRIX.profiles()))
def test_what_the_solver_picks_is_no_error(profile: str) -> None:
    host = from_mapping(MATRIX.profiles()[profile].host, profile, MATRIX)
    for bundle in BUNDLES:
        asks = tuple(Ask(name, "", text=name) for name in bundle)
        plan = answer(prune(state(host, asks, Policy(), MATRIX), MATRIX))
        if not isinstance(plan, Solution):
            continue
        found = judge(environment_of(plan), (), MATRIX)
        bad = [(f.rule, f.component, f.message) for f in found if f.severity == "error"]
        assert not bad, (bundle, [p.candidate.label for p in plan.picks], bad)


def _versions(name: str) -> list[tuple[str, str]]:
    rows = {(c.version, "" if c.build in ("", "any") else c.build) for c in MATRIX.candidates(name, "linux_x86_64")}
    return sorted(rows)


NAMES = (
    "torch",
    "torchvision",
    "torchaudio",
    "triton",
    "bitsandbytes",
    "flash-attn",
    "xformers",
    "numpy",
    "vllm",
    "triton-xpu",
    "ctranslate2",
)
DEVICES = (
    Device("nvidia", "Tesla V100", "sm_70"),
    Device("nvidia", "NVIDIA GeForce RTX 5090", "sm_120"),
    Device("nvidia", "NVIDIA A100", "sm_80"),
    Device("nvidia", "Tesla K80", "sm_37"),
    Device("amd", "AMD Radeon RX 6700 XT", "gfx1031"),
    Device("amd", "AMD Instinct MI300X", "gfx942"),
    Device("intel", "Intel Arc B580", "bmg-g21"),
    Device("habana", "Gaudi 2", "gaudi2"),
)
TEXTS = (
    "CUDA error: no kernel image is available for execution on the device",
    "The NVIDIA driver on your system is too old (found version 11040).",
    "x/flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so: undefined symbol: _ZN3c104cuda9SetDeviceEa",
    "RuntimeError: HIP error: invalid device function",
    "Configured CUDA binary not found at /x/libbitsandbytes_cuda130.so",
    "ERROR: No matching distribution found for torch==2.3.1+cu121",
    "operator torchvision::nms does not exist",
    "",
)


@st.composite
def environments(draw: st.DrawFn) -> Environment:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    rows = []
    for name in names:
        version, label = draw(st.sampled_from(_versions(name)))
        said = draw(st.sampled_from(("all", "version", "label", "nothing")))
        row = Installed(
            name, version if said in ("all", "version") else "", label if said in ("all", "label") else "", origin="x"
        )
        rows.append(replace(row, wanted=draw(st.booleans()) and draw(st.booleans()), vendor=draw(st.integers(0, 9)) == 0))
    device = draw(st.none() | st.sampled_from(DEVICES))
    driver = draw(st.sampled_from(("", "470.103.01", "535", "550.54.14", "580.95.05")))
    devices = (replace(device, driver=driver if device.vendor == "nvidia" else ""),) if device else ()
    host = Host(
        os=draw(st.sampled_from(("linux", "linux", "windows"))),
        arch=draw(st.sampled_from(("x86_64", "x86_64", "aarch64"))),
        libc=draw(st.sampled_from(("", "2.17", "2.31", "2.39"))),
        python=draw(st.sampled_from(("", "3.8", "3.10", "3.12", "3.14"))),
        devices=devices,
    )
    variables = draw(st.sampled_from(({}, {"HSA_OVERRIDE_GFX_VERSION": "10.3.0"})))
    texts = tuple(text for text in draw(st.lists(st.sampled_from(TEXTS), max_size=2)) if text)
    cuda = draw(st.sampled_from(("", "", "11.4", "12.8", "13.x")))
    return Environment(host=host, installed=tuple(rows), variables=variables, texts=texts, cuda_driver=cuda)


SLOW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SLOW
@given(environments())
def test_findings_have_sources_and_known_words(environment: Environment) -> None:
    for finding in judge(environment, read(environment.texts, MATRIX, TABLE), MATRIX):
        assert finding.because and all(reason.source and reason.grade for reason in finding.because)
        assert finding.severity in SEVERITIES and finding.rule and finding.component and finding.message


@SLOW
@given(environments())
def test_a_verified_fix_leaves_nothing(environment: Environment) -> None:
    clues = read(environment.texts, MATRIX, TABLE)
    scene = Scene(with_facts(environment, clues, MATRIX), clues, MATRIX)
    for finding in judge(environment, clues, MATRIX):
        for fix in finding.fixes:
            if fix.verified:
                for changed in applied(scene, fix):
                    assert not left_over(changed, scene), (fix, finding.rule)


def applied(scene: Scene, fix: Fix) -> list[Environment]:
    """Every environment that a fix can make."""
    if fix.kind == "driver":
        changed = with_driver(scene, fix)
        return [changed] if changed else []
    if fix.kind == "env":
        variables = with_variables(scene.environment, fix)
        return [variables] if variables else []
    if fix.do.startswith("remove"):
        return [replace(scene.environment, installed=tuple(r for r in scene.environment.installed if r.name != fix.name))]
    if fix.do.startswith(("together", "what the solver picks")):
        changed = scene.environment
        # each part is chosen beside those before it: what the first one moves decides which builds the others have
        pattern = r"([a-z][\w-]*) ?(?:==)?(\d[\w.]*)(?:\+([\w.]+))?"
        for name, version, label in re.findall(pattern, f"{fix.name} {fix.spec} {fix.do}"):
            part = Fix("package", name, f"=={version}", fix.build if name == fix.name else label)
            here = Scene(changed, (), MATRIX, like=scene)
            chosen = releases(part, here) or releases(part, scene)
            assert chosen, f"{part} names a build that is not published here: {fix}"
            changed = with_package(changed, part, chosen[0])
        return [changed]
    return [with_package(scene.environment, fix, candidate) for candidate in releases(fix, scene)]


@SLOW
@given(environments())
def test_judging_is_repeatable(environment: Environment) -> None:
    clues = read(environment.texts, MATRIX, TABLE)
    assert judge(environment, clues, MATRIX) == judge(environment, clues, MATRIX)
