"""Locking for real: uv against an index on this machine, and a torch-like index without hashes beside it."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.loopback import Site, serving
from tests.integration.samples import RULES, Tables, beside, candidate, make_wheel, solution

from accel_env.errors import ClosureError
from accel_env.lock.close import LockOptions, close, look_into
from accel_env.lock.closer import Refusal
from accel_env.lock.fetch import hash_wheel
from accel_env.lock.uv import UvCloser
from accel_env.lock.write import lock_files
from accel_env.matrix.types import Index
from accel_env.model import Host, Lock, Solution

TAG = "cp312-cp312-manylinux_2_28_x86_64"
TORCH = f"torch-9.1.0+cu126-{TAG}.whl"
CUT_OFF = "2026-11-30T00:00:00Z"
# pip without a site's settings
PLAIN = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")} | {"PIP_CONFIG_FILE": os.devnull}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with serving(tmp_path / "site") as site:
        (site.wheels / "cu126").mkdir()
        make_wheel(site.wheels / "cu126", "torch", "9.1.0+cu126", ("smallpart>=1",), TAG, b"cuda")
        # The same release on the package index must never be taken instead of the pick.
        make_wheel(site.simple, "torch", "9.1.0", ("smallpart>=1", "nvidia-thing-cu13"))
        make_wheel(site.simple, "smallpart", "1.0")
        make_wheel(site.simple, "smallpart", "1.5", ("leaf; sys_platform == 'linux'", "windows-only; sys_platform == 'win32'"))
        site.newer.add(make_wheel(site.simple, "smallpart", "2.0").name)
        make_wheel(site.simple, "leaf", "3.0")
        make_wheel(site.simple, "leaf", "4.0", tag="cp312-cp312-manylinux_2_39_x86_64")
        make_wheel(site.simple, "wants-torch", "1.0", ("torch>=9",))
        make_wheel(site.simple, "wants-old-torch", "1.0", ("torch<9",))
        yield site


def tables(site: Site) -> Tables:
    return Tables(indexes_={"house": Index("house", f"{site.url}/whl", "simple")})


def pick(*outside: str, **more: object) -> Solution:
    torch = candidate("torch", "9.1.0", "cu126", "house:cu126", stack="cuda-12.6", requires=("smallpart>=1",))
    return solution(torch, outside=outside)


def closed(
    found: Solution, site: Site, matrix: Tables | None = None, *, offline: bool = False, cache: Path | None = None
) -> Lock | Refusal:
    closer = UvCloser(default_index=f"{site.url}/simple")
    return close(found, matrix or tables(site), RULES, closer, LockOptions(CUT_OFF, offline, cache))


def test_the_whole_closure_with_a_file_that_no_index_hashes(site: Site, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = closed(pick("wants-torch"), site, cache=cache)
    assert isinstance(first, Lock)
    # leaf 4.0 is for a newer libc than the image's, smallpart 2.0 came after the cut-off.
    assert {file.name: file.version for file in first.files} == {
        "leaf": "3.0",
        "smallpart": "1.5",
        "torch": "9.1.0+cu126",
        "wants-torch": "1.0",
    }
    torch = next(file for file in first.files if file.name == "torch")
    real = (site.wheels / "cu126" / TORCH).read_bytes()
    assert (torch.sha256, torch.size) == (hashlib.sha256(real).hexdigest(), len(real))
    assert torch.url == f"{site.url}/whl/cu126/{TORCH.replace('+', '%2B')}"
    assert site.hits[f"/whl/cu126/{TORCH}"] == 1

    again = closed(pick("wants-torch"), site, cache=cache)
    assert isinstance(again, Lock) and lock_files(again) == lock_files(first)
    assert site.hits[f"/whl/cu126/{TORCH}"] == 1  # downloaded once, remembered


def test_pip_installs_the_lock_and_nothing_else(site: Site, tmp_path: Path) -> None:
    # This interpreter's own tags: pip installs here, not in the image.
    make_wheel(site.wheels / "cu126", "torch", "9.1.0+cu126", ("smallpart>=1",), "py3-none-any")
    torch = candidate("torch", "9.1.0", "cu126", "house:cu126", requires=("smallpart>=1",))
    lock = closed(solution(torch, tags={"torch": "py3"}), site)
    assert isinstance(lock, Lock)
    text = lock_files(lock)["requirements.lock"]
    (tmp_path / "requirements.lock").write_bytes(text)
    done = install(tmp_path, site)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "into").glob("*.py")) == ["leaf.py", "smallpart.py", "torch.py"]

    (tmp_path / "requirements.lock").write_bytes(text.replace(lock.files[-1].sha256.encode(), b"0" * 64))
    refused = install(tmp_path, site)
    assert refused.returncode != 0 and "DO NOT MATCH THE HASHES" in refused.stderr


def install(folder: Path, site: Site) -> subprocess.CompletedProcess[str]:
    """pip as requirements.lock says, into a folder, from the site alone."""
    words = "install --no-cache-dir --require-hashes --no-deps --only-binary :all: --no-compile -r requirements.lock"
    place = ["--target", "into", "--upgrade", "--index-url", f"{site.url}/simple"]
    return subprocess.run(
        [sys.executable, "-m", "pip", *words.split(), *place], cwd=folder, env=PLAIN, capture_output=True, text=True, check=False
    )


def test_a_hash_on_the_page_saves_the_download(site: Site) -> None:
    site.hashes_on_pages = True
    lock = closed(pick(), site)
    assert isinstance(lock, Lock) and site.hits[f"/whl/cu126/{TORCH}"] == 0
    assert lock.files[-1].sha256 == hashlib.sha256((site.wheels / "cu126" / TORCH).read_bytes()).hexdigest()


def test_a_known_hash_needs_no_index_at_all(site: Site) -> None:
    matrix = tables(site)
    matrix.know("house:cu126", TORCH, size=5)
    lock = closed(pick(), site, matrix)
    assert isinstance(lock, Lock) and lock.files[-1].size == 5
    assert not any(path.startswith("/whl/") for path in site.hits)


def test_offline_from_what_uv_remembers(site: Site) -> None:
    matrix = tables(site)
    matrix.know("house:cu126", TORCH)
    online = closed(pick(), site, matrix)
    before = sum(site.hits.values())
    offline = closed(pick(), site, matrix, offline=True)
    assert isinstance(online, Lock) and isinstance(offline, Lock) and lock_files(online) == lock_files(offline)
    assert sum(site.hits.values()) == before
    with pytest.raises(ClosureError) as caught:
        closed(pick("wants-torch"), site, matrix, offline=True)
    assert caught.value.reference == "network-needed" and "wants-torch" in str(caught.value)


def test_uv_refuses_in_its_own_words(site: Site) -> None:
    refusal = closed(pick("wants-old-torch"), site)
    assert isinstance(refusal, Refusal) and refusal.picks == (("torch", "9.1.0", "cu126"),)
    assert "No solution found" in refusal.reason and "wants-old-torch" in refusal.reason and "/tmp" not in refusal.reason
    missing = closed(pick("never-heard-of"), site)
    assert isinstance(missing, Refusal) and "never-heard-of" in missing.reason


def test_bounds_of_the_picks_hold_for_what_uv_chooses(site: Site) -> None:
    torch = candidate("torch", "9.1.0", "cu126", "house:cu126", requires=("smallpart>=1",), needs=(beside("smallpart", "<1.5"),))
    lock = closed(solution(torch), site)
    assert isinstance(lock, Lock) and {file.name: file.version for file in lock.files}["smallpart"] == "1.0"


def test_what_the_image_brings_is_neither_fetched_nor_replaced(site: Site) -> None:
    torch = candidate("torch", "9.1.0", "hpu", "image", stack="gaudi-1.0")
    lock = closed(solution(torch, outside=("wants-torch",), stack="gaudi-1.0"), site)
    assert isinstance(lock, Lock) and [file.name for file in lock.files] == ["wants-torch"]


def test_a_pick_from_the_package_index(site: Site) -> None:
    lock = closed(solution(candidate("smallpart", "1.0")), site)
    assert isinstance(lock, Lock) and [(file.name, file.version) for file in lock.files] == [("smallpart", "1.0")]
    file = next(site.simple.glob("smallpart-1.0-*"))
    assert lock.files[0].sha256 == hashlib.sha256(file.read_bytes()).hexdigest()


def test_the_package_index_serves_other_bytes_than_the_matrix_knows(site: Site) -> None:
    matrix = tables(site)
    matrix.know("pypi", "smallpart-1.5-py3-none-any.whl", sha256="9" * 64)
    matrix.know("house:cu126", TORCH)
    with pytest.raises(ClosureError) as caught:
        closed(pick(), site, matrix)
    assert caught.value.reference == "artifact-hash-mismatch" and "smallpart-1.5" in str(caught.value)


def test_a_damaged_file_is_refused(site: Site) -> None:
    site.cut = 10
    with pytest.raises(ClosureError) as caught:
        closed(pick(), site)
    assert caught.value.reference == "artifact-broken" and TORCH in str(caught.value)
    site.hide_length = True  # nothing announces the end: only the file itself tells
    with pytest.raises(ClosureError) as caught:
        closed(pick(), site)
    assert caught.value.reference == "artifact-broken" and "no complete zip" in str(caught.value)


def test_a_damaged_file_is_not_remembered(site: Site, tmp_path: Path) -> None:
    site.cut = 10
    with pytest.raises(ClosureError):
        closed(pick(), site, cache=tmp_path / "cache")
    site.cut = 0
    assert isinstance(closed(pick(), site, cache=tmp_path / "cache"), Lock)


def test_another_package_under_the_files_name(site: Site) -> None:
    other = make_wheel(site.wheels, "evil", "1.0")
    (site.wheels / "cu126" / TORCH).write_bytes(other.read_bytes())
    with pytest.raises(ClosureError) as caught:
        closed(pick(), site)
    assert caught.value.reference == "artifact-broken" and "evil-1.0.dist-info" in str(caught.value)


def test_a_file_that_is_not_there(site: Site) -> None:
    (site.wheels / "cu126" / TORCH).unlink()
    with pytest.raises(ClosureError) as caught:
        closed(pick(), site)
    assert caught.value.reference == "artifact-missing" and caught.value.exit_code == 5
    assert f"{site.url}/whl/cu126/torch/" in str(caught.value) and "torch 9.1.0+cu126 for cp312 on linux_x86_64" in str(
        caught.value
    )


def test_a_file_that_the_index_lists_for_others_only(site: Site) -> None:
    (site.wheels / "cu126" / TORCH).rename(site.wheels / "cu126" / TORCH.replace("cp312", "cp313"))
    with pytest.raises(ClosureError) as caught:
        closed(pick(), site)
    assert caught.value.reference == "artifact-missing"


def test_an_index_that_is_gone(site: Site, tmp_path: Path) -> None:
    gone = Tables(indexes_={"house": Index("house", "http://127.0.0.1:9/whl", "simple")})
    with pytest.raises(ClosureError) as caught:
        closed(pick(), site, gone)
    assert caught.value.reference == "network-down" and "http://127.0.0.1:9/whl/cu126/torch/" in str(caught.value)
    closer = UvCloser(default_index="http://127.0.0.1:9/simple")
    with pytest.raises(ClosureError) as caught:
        close(pick(), tables(site), RULES, closer, LockOptions(CUT_OFF))
    assert (
        caught.value.reference == "network-down"
        and caught.value.exit_code == 5
        and "http://127.0.0.1:9/simple" in str(caught.value)
    )


def test_bounds_of_a_download(site: Site, tmp_path: Path) -> None:
    url = f"{site.url}/whl/cu126/{TORCH.replace('+', '%2B')}"
    for hide in (False, True):
        site.hide_length = hide
        with pytest.raises(ClosureError) as caught:
            hash_wheel(url, TORCH, limit=100)
        assert caught.value.reference == "artifact-too-large"
    site.hide_length = False
    said: list[str] = []
    found = hash_wheel(url, TORCH, progress=said.append)
    assert any(TORCH in line for line in said)
    with pytest.raises(ClosureError) as caught:
        hash_wheel(url, TORCH, expected="0" * 64)
    assert caught.value.reference == "artifact-hash-mismatch" and found.sha256 in str(caught.value)
    with pytest.raises(ClosureError, match="no http or https"):
        hash_wheel("file:///etc/passwd", "x.whl")


def test_a_users_settings_do_not_bend_the_lock(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where the package index is, is the user's to say."""
    plain = closed(pick("wants-torch"), site, cache=tmp_path / "cache")
    settings = tmp_path / "home" / ".config" / "uv" / "uv.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(
        f'index-url = "{site.url}/simple"\nresolution = "lowest"\nextra-index-url = ["http://127.0.0.1:9"]\n'
        '[pip]\nresolution = "lowest"\nexclude-newer = "2020-01-01"\n'
    )
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("UV_RESOLUTION", "lowest")
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_CONFIG_FILE", "UV_NO_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    bent = close(pick("wants-torch"), tables(site), RULES, UvCloser(), LockOptions(CUT_OFF, cache=tmp_path / "cache"))
    assert isinstance(plain, Lock) and isinstance(bent, Lock) and lock_files(bent) == lock_files(plain)


def test_a_requirement_on_a_module_is_met_by_the_pick_that_owns_it(site: Site) -> None:
    make_wheel(site.simple, "triton", "3.9.0")
    make_wheel(site.simple, "wants-triton", "1.0", ("triton>=3.5",))
    make_wheel(site.simple, "wants-old-triton", "1.0", ("triton<3.5",))
    matrix = tables(site)
    matrix.know("house:cu126", TORCH)
    matrix.know("house:cu126", f"triton_house-3.8.0-{TAG}.whl")
    torch = candidate("torch", "9.1.0", "cu126", "house:cu126", requires=("smallpart>=1", "triton-house==3.8.0"))
    house = candidate("triton-house", "3.8.0", "any", "house:cu126")
    lock = closed(solution(torch, house, outside=("wants-triton",)), site, matrix)
    assert isinstance(lock, Lock) and "requirements on triton are met by triton-house 3.8.0: it owns the module" in lock.notes
    assert [file.name for file in lock.files] == ["leaf", "smallpart", "torch", "triton-house", "wants-triton"]
    refusal = closed(solution(torch, house, outside=("wants-old-triton",)), site, matrix)
    assert isinstance(refusal, Refusal) and [name for name, _, _ in refusal.picks] == ["triton-house"]
    assert "wants-old-triton" in refusal.reason and "triton is triton-house 3.8.0 here" in refusal.reason


def test_wheels_for_the_oldest_macos_that_torch_is_for(site: Site) -> None:
    make_wheel(site.simple, "metal", "1.0", tag="cp312-cp312-macosx_14_0_arm64")
    make_wheel(site.simple, "metal", "2.0", tag="cp312-cp312-macosx_15_0_arm64")
    lock = closed(solution(candidate("metal", "1.0"), host=Host(os="macos", arch="aarch64"), image=None), site)
    assert isinstance(lock, Lock) and [file.filename for file in lock.files] == ["metal-1.0-cp312-cp312-macosx_14_0_arm64.whl"]
    refusal = closed(solution(candidate("metal", "2.0"), host=Host(os="macos", arch="aarch64"), image=None), site)
    assert isinstance(refusal, Refusal) and "macosx_14_0_arm64" in refusal.reason


def test_a_refusal_of_torch_finds_the_torch_that_would_do(site: Site) -> None:
    make_wheel(site.simple, "torch", "8.0.0")
    make_wheel(site.simple, "torch", "7.0.0")
    found = pick("wants-old-torch")
    refusal = closed(found, site)
    assert isinstance(refusal, Refusal) and refusal.torch == ""
    closer = UvCloser(default_index=f"{site.url}/simple")
    assert look_into(refusal, found, tables(site), RULES, closer, LockOptions(CUT_OFF)).torch == "8.0.0"


def test_a_password_in_the_address_of_the_index_is_in_no_lock(site: Site) -> None:
    address = site.url.replace("http://", "http://me:secret@")
    closer = UvCloser(default_index=f"{address}/simple")
    lock = close(solution(candidate("smallpart", "1.0")), tables(site), RULES, closer, LockOptions(CUT_OFF))
    assert isinstance(lock, Lock) and lock.files[0].url.startswith(site.url)
    assert b"secret" not in b"".join(lock_files(lock).values())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_nothing_is_left_behind_when_it_is_told_to_end(tmp_path: Path, number: signal.Signals) -> None:
    program = tmp_path / "uv"
    program.write_text(
        f"#!{sys.executable}\nimport pathlib, sys, time\n"
        "if '--version' in sys.argv or '--help' in sys.argv: sys.exit()\n"
        "pathlib.Path(__file__).with_name('started').touch()\ntime.sleep(60)\n"
    )
    program.chmod(0o755)
    words = ["lock", "torch==2.14.1", "--host", "cpu-x86_64", "-o", str(tmp_path / "out")]
    script = (
        f"import sys; import accel_env.lock.uv as uv; uv.find_uv = lambda: {str(program)!r}\n"
        f"from accel_env.__main__ import main; sys.exit(main({words!r}))"
    )
    (tmp_path / "tmp").mkdir()
    child = subprocess.Popen(
        [sys.executable, "-c", script], env=PLAIN | {"TMPDIR": str(tmp_path / "tmp")}, stderr=subprocess.PIPE, text=True
    )
    while not (tmp_path / "started").exists() and child.poll() is None:
        time.sleep(0.02)
    assert [path.name[:10] for path in (tmp_path / "tmp").iterdir()] == ["accel-env-"]
    child.send_signal(number)
    _, talk = child.communicate(timeout=20)
    assert list((tmp_path / "tmp").iterdir()) == [] and not (tmp_path / "out").exists()
    assert child.returncode == 130 and "interrupted" in talk
