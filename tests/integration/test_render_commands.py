"""The shell commands of the first stage, run for real in a folder that stands for the root."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.loopback import serving
from tests.integration.samples import DIGEST, candidate, lock_of, locked, make_wheel, solution

from accel_env.lock.write import lock_files
from accel_env.model import Image, Lock, Solution
from accel_env.render import RenderOptions
from accel_env.render.compose import compose, epoch
from accel_env.render.files import render
from accel_env.render.recipe import Run

GAUDI = Image("vault.example/gaudi:1", DIGEST, stack="gaudi-1.0", torch="9.1.0")


def run_stage(found: Solution, lock: Lock, root: Path, index: str = "") -> subprocess.CompletedProcess[str]:
    """Runs the first stage; every absolute path of the image is moved under `root`."""
    context = root / "tmp" / "accel-env"
    for folder in (context, root / "etc", root / "opt", root / "bin"):
        folder.mkdir(parents=True, exist_ok=True)
    (root / "etc" / "passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    (root / "etc" / "group").write_text("root:x:0:\n")
    if not (root / "bin" / "python3").exists():
        (root / "bin" / "python3").symlink_to(sys.executable)
    for name, content in render(found, lock, lock_files(lock), b"{}").items():
        (context / name).write_bytes(content)
    env = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
    env |= {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1", "SOURCE_DATE_EPOCH": str(epoch(lock))}
    env |= {"PATH": f"{root / 'bin'}:{env['PATH']}", "PIP_INDEX_URL": index}
    options = RenderOptions(uid=os.getuid(), gid=os.getgid())
    script = []
    for step in compose(found, lock, DIGEST, DIGEST, options).instructions():
        if isinstance(step, Run):
            script.append(moved(" && ".join(step.commands), root))
    return subprocess.run(["sh", "-euc", "\n".join(script)], env=env, capture_output=True, text=True, check=False)


def moved(command: str, root: Path) -> str:
    """The command with the image's folders under `root`."""
    return re.sub(r"(?<![\w.])/(?=(opt/venv|tmp/accel-env|run/secrets|etc/passwd|etc/group|out)\b)", f"{root}/", command)


def digest_of(tree: Path) -> str:
    """Names, modes, times and contents of everything under `tree`."""
    total = hashlib.sha256()
    for path in sorted(tree.rglob("*")):
        status = path.lstat()
        content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        total.update(f"{path.relative_to(tree)} {status.st_mode:o} {status.st_mtime_ns} ".encode() + content)
    return total.hexdigest()


def real_lock(found: Solution, folder: Path) -> Lock:
    """A lock of one small wheel of the folder's index."""
    wheel = make_wheel(folder, "smallpart", "1.0")
    file = locked("smallpart", "1.0", filename=wheel.name)
    return lock_of(found, replace(file, sha256=hashlib.sha256(wheel.read_bytes()).hexdigest()))


def test_the_out_tree(tmp_path: Path) -> None:
    found = solution(candidate("smallpart", "1.0"))
    with serving(tmp_path / "site") as site:
        lock = real_lock(found, site.simple)
        root = tmp_path / "root"
        done = run_stage(found, lock, root, f"{site.url}/simple")
        assert done.returncode == 0, done.stderr
        first = digest_of(root / "out")
        times = {path.lstat().st_mtime for path in (root / "out").rglob("*")} | {(root / "out").lstat().st_mtime}
        assert times == {float(epoch(lock))}
        assert list((root / "out" / "opt" / "venv").rglob("smallpart.py"))
        compiled = next((root / "out" / "opt" / "venv").rglob("smallpart.*.pyc")).read_bytes()
        assert int.from_bytes(compiled[4:8], "little") == 0b01  # checked by hash, and the hash is not looked at
        assert not list((root / "out").rglob("pip*"))
        passwd = (root / "out" / "etc" / "passwd").read_text().splitlines()
        assert passwd == ["root:x:0:0::/root:/bin/sh", f"app:x:{os.getuid()}:{os.getgid()}::/home/app:/bin/sh"]
        assert not (root / "opt" / "venv").exists()
        subprocess.run(["rm", "-rf", str(root)], check=True)
        assert run_stage(found, lock, root, f"{site.url}/simple").returncode == 0
        assert digest_of(root / "out") == first


def test_a_file_with_another_hash_stops_the_build(tmp_path: Path) -> None:
    found = solution(candidate("smallpart", "1.0"))
    with serving(tmp_path / "site") as site:
        lock = real_lock(found, site.simple)
        make_wheel(site.simple, "smallpart", "1.0", payload=b"# changed\n")
        done = run_stage(found, lock, tmp_path / "root", f"{site.url}/simple")
    assert done.returncode != 0 and "hash" in done.stderr.lower() and not (tmp_path / "root" / "out").exists()


@pytest.mark.parametrize(("brought", "fits"), [("9.1.0+hpu.1", True), ("9.2.0", False)])
def test_torch_of_a_vendor_image(tmp_path: Path, brought: str, fits: bool) -> None:
    found = solution(candidate("torch", "9.1.0", "hpu", "image"), stack="gaudi-1.0", image=GAUDI)
    root = tmp_path / "root"
    base = tmp_path / "base"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(base)], check=True)
    site_packages = next(base.rglob("site-packages"))
    (site_packages / f"torch-{brought}.dist-info").mkdir()
    (site_packages / f"torch-{brought}.dist-info" / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: torch\nVersion: {brought}\n"
    )
    pip = next(path for path in map(Path, sys.path) if (path / "pip" / "__init__.py").is_file())
    (site_packages / "pip").symlink_to(pip / "pip")
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "python3").write_text(f'#!/bin/sh\nexec {base}/bin/python3 "$@"\n')
    (root / "bin" / "python3").chmod(0o755)
    with serving(tmp_path / "site") as site:
        done = run_stage(found, real_lock(found, site.simple), root, f"{site.url}/simple")
    if fits:
        assert done.returncode == 0, done.stderr
        assert list((root / "out" / "opt" / "venv").rglob("smallpart.py"))
        assert not list((root / "out" / "opt" / "venv").rglob("torch*"))
    else:
        assert done.returncode != 0 and "the image brings torch 9.2.0" in done.stderr
