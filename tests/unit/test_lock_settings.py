"""What of a user's configuration reaches the closer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.unit.test_lock_uv import Fake

from accel_env.errors import ClosureError
from accel_env.lock.settings import asks_offline, environment, settings

MIRROR = "https://mirror.example/simple"


def home(folder: Path, files: dict[str, str], **variables: str) -> Fake:
    """A machine whose user has these files in his home."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return Fake({"HOME": str(folder), "XDG_CONFIG_DIRS": str(folder / "machine"), **variables})


@pytest.mark.parametrize(
    "text",
    [
        f'index-url = "{MIRROR}"',
        f'index-url = "https://other.example"\n[pip]\nindex-url = "{MIRROR}"',
        f'[pip]\nresolution = "lowest"\n[[index]]\nurl = "https://x.example"\n[[index]]\nurl = "{MIRROR}"\ndefault = true',
    ],
)
def test_the_default_index_and_nothing_that_bends(tmp_path: Path, text: str) -> None:
    bending = 'resolution = "lowest"\nprerelease = "allow"\nextra-index-url = ["https://evil.example"]\n'
    bending += 'exclude-newer = "2020-01-01"\n'
    found = settings(home(tmp_path, {".config/uv/uv.toml": bending + text}))
    assert MIRROR in found
    assert not any(word in found for word in ("lowest", "allow", "evil", "2020", "x.example", "other.example"))


def test_how_the_network_is_reached_stays(tmp_path: Path) -> None:
    text = 'native-tls = true\nallow-insecure-host = ["a", "b"]\nconcurrent-downloads = 2\nkeyring-provider = "subprocess"\n'
    index = f'[[index]]\nname = "house"\nurl = "{MIRROR}"\ndefault = true\nauthenticate = "always"\nexplicit = true'
    assert settings(home(tmp_path, {".config/uv/uv.toml": text + index})).splitlines() == [
        "native-tls = true",
        'allow-insecure-host = ["a", "b"]',
        'keyring-provider = "subprocess"',
        "concurrent-downloads = 2",
        "[[index]]",
        'name = "house"',
        f'url = "{MIRROR}"',
        "default = true",
        'authenticate = "always"',
    ]


def test_who_wins(tmp_path: Path) -> None:
    pip = f"[global]\nindex-url = {MIRROR}\nextra-index-url = https://evil.example\n"
    assert settings(home(tmp_path, {".config/pip/pip.conf": pip})) == f'index-url = "{MIRROR}"\n'
    assert "first" in settings(home(tmp_path, {}, PIP_INDEX_URL="https://first.example"))
    files = {"machine/uv/uv.toml": 'index-url = "https://machine.example"\nnative-tls = true\n'}
    assert "machine" in settings(home(tmp_path, files, PIP_INDEX_URL="https://first.example"))
    own = {".config/uv/uv.toml": 'index-url = "https://own.example"\nnative-tls = false\n'}
    assert settings(home(tmp_path, own)) == 'native-tls = false\nindex-url = "https://own.example"\n'
    # uv reads these itself
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        assert settings(home(tmp_path, {}, **{name: MIRROR})) == "native-tls = false\n"


def test_files_that_are_named_or_left_out(tmp_path: Path) -> None:
    files = {"other.toml": f'index-url = "{MIRROR}"', ".config/uv/uv.toml": 'index-url = "https://own.example"'}
    assert MIRROR in settings(home(tmp_path, files, UV_CONFIG_FILE=str(tmp_path / "other.toml")))
    assert settings(home(tmp_path, {}, UV_NO_CONFIG="1", PIP_CONFIG_FILE=os.devnull)) == ""
    named = {"pip.ini": f"[install]\nindex-url={MIRROR}"}
    assert MIRROR in settings(home(tmp_path, named, UV_NO_CONFIG="true", PIP_CONFIG_FILE=str(tmp_path / "pip.ini")))
    assert settings(home(tmp_path / "nobody", {}, PIP_CONFIG_FILE=os.devnull)) == ""


def test_broken_files(tmp_path: Path) -> None:
    with pytest.raises(ClosureError, match=r"uv\.toml is no TOML") as caught:
        settings(home(tmp_path, {".config/uv/uv.toml": "index-url = "}))
    assert "UV_NO_CONFIG" in caught.value.hint
    strange = {".config/uv/uv.toml": "index = 3\npip = 4\nindex-url = 5\nnative-tls = { a = 1 }", ".pip/pip.conf": "no section"}
    assert settings(home(tmp_path, strange)) == ""


def test_a_machine_that_runs_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    from accel_env.system.types import Machine

    there = {"C:\\R\\uv\\uv.toml": "native-tls = true", "C:\\R\\pip\\pip.ini": f"[global]\nindex-url = {MIRROR}"}
    monkeypatch.setattr(Fake, "machine", lambda self: Machine("windows", "11", "x86_64", "3.12"))
    monkeypatch.setattr(Fake, "read_text", lambda self, path: there.get(path))
    assert settings(Fake({"APPDATA": "C:\\R"})) == f'native-tls = true\nindex-url = "{MIRROR}"\n'


def test_variables() -> None:
    given = {
        "PATH": "p",
        "UV_INDEX_HOUSE_PASSWORD": "secret",
        "UV_HTTP_TIMEOUT": "3",
        "UV_RESOLUTION": "lowest",
        "UV_CACHE_DIR": "",
        "UV_INDEX": "x",
        "UV_CONFIG_FILE": "y",
        "UV_INDEX_URL": "z",
    }
    assert set(environment(given)) == {"PATH", "UV_INDEX_HOUSE_PASSWORD", "UV_HTTP_TIMEOUT", "UV_INDEX_URL"}
    assert environment(given, "http://a", "14.0") == {
        "PATH": "p",
        "UV_INDEX_HOUSE_PASSWORD": "secret",
        "UV_HTTP_TIMEOUT": "3",
        "UV_DEFAULT_INDEX": "http://a",
        "MACOSX_DEPLOYMENT_TARGET": "14.0",
    }
    assert asks_offline(Fake({"UV_OFFLINE": "true"})) and not asks_offline(Fake({"UV_OFFLINE": "0"}))
