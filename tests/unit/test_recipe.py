"""What holds of every recipe, whatever it is for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.integration.samples import DIGEST, SLIM, candidate, lock_of, locked, solution

from accel_env.errors import ClosureError, UsageError
from accel_env.model import Image, Lock, Solution, Warned
from accel_env.render.compose import RenderOptions, compose, epoch
from accel_env.render.recipe import Arg, Cmd, Copy, Entrypoint, Env, From, Label, Recipe, Run, User, Workdir

TORCH = candidate("torch", "2.14.1", "cu126", "house:cu126", stack="cuda-12.6")
GAUDI = Image(
    "vault.example/gaudi/1.23.0/ubuntu24.04/pytorch-installer-2.9.0:latest", DIGEST, stack="gaudi-1.23.0", torch="2.9.0"
)


def composed(found: Solution, options: RenderOptions | None = None, lock: Lock | None = None) -> Recipe:
    lock = lock or lock_of(found, locked("torch", "2.14.1"))
    return compose(found, lock, DIGEST, DIGEST, options or RenderOptions())


def runs(recipe: Recipe) -> list[str]:
    return [command for step in recipe.instructions() if isinstance(step, Run) for command in step.commands]


def test_two_stages_over_one_pinned_base() -> None:
    recipe = composed(solution(TORCH))
    bases = [step for step in recipe.instructions() if isinstance(step, From)]
    assert [(base.ref, base.digest, base.stage, base.pinned) for base in bases] == [
        (SLIM.ref, DIGEST, "build", True),
        (SLIM.ref, DIGEST, "", True),
    ]


def test_the_last_stage_runs_nothing_and_copies_one_prepared_tree() -> None:
    last = composed(solution(TORCH)).stages[-1]
    assert [type(step) for step in last.steps] == [Copy, Env, Workdir, User, Cmd]
    assert last.steps[0] == Copy(("/out/",), "/", "build")
    assert last.steps[3] == User(10001, 10001)


def test_one_install_with_hashes_and_nothing_beside_the_lock() -> None:
    installs = [command for command in runs(composed(solution(TORCH))) if " install " in command]
    assert len(installs) == 1
    for word in ("--require-hashes", "--no-deps", "--only-binary :all:", "--no-compile"):
        assert word in installs[0]
    assert "index-url" not in installs[0]
    assert not any(word in command for command in runs(composed(solution(TORCH))) for word in ("apt", "curl", "wget"))


def test_secrets_and_cache_stay_out_of_the_image() -> None:
    mounts = [mount for step in composed(solution(TORCH)).instructions() if isinstance(step, Run) for mount in step.mounts]
    assert [(mount.kind, mount.id) for mount in mounts] == [("cache", ""), ("secret", "ca"), ("secret", "pip")]


def test_time_comes_from_the_lock() -> None:
    recipe = composed(solution(TORCH))
    assert recipe.arguments == (Arg("SOURCE_DATE_EPOCH", "1795996800"),)
    assert dict(recipe.labels.values)["org.opencontainers.image.created"] == "2026-11-30T00:00:00Z"
    lock = lock_of(solution(TORCH))
    assert epoch(replace(lock, exclude_newer="2026-11-30")) == 1795996800
    assert epoch(replace(lock, exclude_newer="2026-11-30T02:00:00+02:00")) == 1795996800
    assert epoch(replace(lock, exclude_newer="")) == 1795996800
    with pytest.raises(UsageError):
        epoch(replace(lock, exclude_newer="yesterday"))


def test_labels_come_last_and_name_matrix_plan_and_base() -> None:
    recipe = composed(solution(TORCH), RenderOptions(labels={"org.opencontainers.image.source": "https://example.org/x"}))
    assert isinstance(list(recipe.instructions())[-1], Label)
    labels = dict(recipe.labels.values)
    assert labels["accel-env.matrix.digest"] == "sha256:" + "cd" * 32 and labels["accel-env.matrix.version"] == "2026.11.30"
    assert labels["accel-env.plan.digest"] == DIGEST and labels["org.opencontainers.image.base.digest"] == DIGEST
    assert labels["org.opencontainers.image.base.name"] == SLIM.ref
    assert labels["org.opencontainers.image.source"] == "https://example.org/x"
    assert list(labels) == sorted(labels)


def test_settings_of_the_plan_and_no_driver_demand_of_our_own() -> None:
    recipe = composed(solution(TORCH, env={"NVIDIA_VISIBLE_DEVICES": "all"}))
    env = next(step for step in recipe.instructions() if isinstance(step, Env))
    assert dict(env.values) == {"PATH": "/opt/venv/bin:${PATH}", "HOME": "/home/app", "NVIDIA_VISIBLE_DEVICES": "all"}
    asked = composed(solution(TORCH, env={"NVIDIA_REQUIRE_CUDA": "cuda>=12.6"}))
    assert ("NVIDIA_REQUIRE_CUDA", "cuda>=12.6") in next(step for step in asked.instructions() if isinstance(step, Env)).values


def test_a_digest_of_the_platform_is_good_enough() -> None:
    image = replace(SLIM, digest="", digests={"linux_x86_64": DIGEST})
    assert composed(solution(TORCH, image=image)).stages[0].base.digest == DIGEST


def test_an_unpinned_base_is_refused_unless_allowed() -> None:
    found = solution(TORCH, image=replace(SLIM, digest="", digests={"linux_aarch64": DIGEST}))
    with pytest.raises(ClosureError) as caught:
        composed(found)
    assert (
        caught.value.reference == "image-unpinned"
        and SLIM.ref in caught.value.message
        and "--allow-unpinned" in caught.value.hint
        and f"--base {SLIM.ref}@sha256:" in caught.value.hint
    )
    recipe = composed(found, RenderOptions(allow_unpinned=True))
    assert "org.opencontainers.image.base.digest" not in dict(recipe.labels.values)
    assert not recipe.stages[0].base.pinned and any("not pinned" in line for line in recipe.header)


def test_a_plan_without_an_image() -> None:
    with pytest.raises(UsageError) as caught:
        composed(solution(TORCH, image=None))
    assert caught.value.reference == "no-base-image"


def test_torch_of_a_vendor_image_is_checked_and_kept() -> None:
    found = solution(candidate("torch", "2.9.0", "hpu", "image", stack="gaudi-1.23.0"), stack="gaudi-1.23.0", image=GAUDI)
    recipe = composed(found, lock=lock_of(found, locked("peft", "0.21.2")))
    commands = runs(recipe)
    assert 'version("torch")' in commands[0] and '== "2.9.0"' in commands[0]
    assert "--system-site-packages" in commands[1]
    install = next(command for command in commands if " install " in command)
    assert "--constraint /tmp/accel-env/image-constraints.txt" in install and "--require-hashes" in install
    assert Copy(("requirements.lock", "image-constraints.txt"), "/tmp/accel-env/") in recipe.stages[0].steps


def test_a_vendors_program_is_not_what_the_container_starts() -> None:
    """`docker run IMAGE` is python3, and not an argument of what a vendor's image starts."""
    torch = candidate("torch", "2.9.0", "hpu", "image", stack="gaudi-1.23.0")
    found = solution(torch, stack="gaudi-1.23.0", image=GAUDI)
    last = composed(found, lock=lock_of(found)).stages[-1].steps
    assert last[-2:] == (Entrypoint(()), Cmd(("python3",)))
    bridged = replace(found, warnings=(Warned("forward-compat", "x"),))
    general, serving = (replace(bridged, image=replace(GAUDI, purpose=purpose)) for purpose in ("", "vllm"))
    assert Entrypoint(()) not in composed(general, lock=lock_of(general)).stages[-1].steps
    assert Entrypoint(()) in composed(serving, lock=lock_of(serving)).stages[-1].steps
    assert Entrypoint(()) not in composed(solution(TORCH)).stages[-1].steps


def test_what_a_vendors_image_holds_is_not_judged() -> None:
    found = solution(candidate("torch", "2.9.0", "hpu", "image", stack="gaudi-1.23.0"), stack="gaudi-1.23.0", image=GAUDI)
    recipe = composed(found, lock=lock_of(found, locked("peft", "0.21.2")))
    assert not any("compiler" in line for line in recipe.header)
    # its own list of versions would stop the installation; ours names what must stay
    assert runs(recipe).index("unset PIP_CONSTRAINT") < next(n for n, line in enumerate(runs(recipe)) if " install " in line)
    assert "unset PIP_CONSTRAINT" not in runs(composed(solution(TORCH)))


def test_nothing_to_install_is_no_install() -> None:
    found = solution(candidate("torch", "2.9.0", "hpu", "image"), stack="gaudi-1.23.0", image=GAUDI)
    recipe = composed(found, lock=lock_of(found))
    assert not any(" install " in command for command in runs(recipe))
    assert not [mount for step in recipe.instructions() if isinstance(step, Run) for mount in step.mounts]


def test_a_name_that_would_end_the_quoting() -> None:
    found = solution(candidate("to'rch", "2.9.0", "hpu", "image"), stack="gaudi-1.23.0", image=GAUDI)
    with pytest.raises(UsageError):
        composed(found, lock=lock_of(found))


def test_what_cannot_be_pinned_is_said() -> None:
    found = solution(candidate("torch", "2.14.0", "xpu", "house:xpu"), stack="xpu-2026.1", run_args=("--device", "/dev/dri"))
    header = composed(found, lock=lock_of(found, notes=("not in this image: libze1",))).header
    assert "Note: not in this image: libze1" in header and "Run: docker run --device /dev/dri IMAGE" in header
