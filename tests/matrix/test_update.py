"""Matrix data from signed archives: what is installed, what is used, and everything that must be refused with nothing changed."""

from __future__ import annotations

import base64
import gzip
import io
import os
import shutil
import tarfile
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from scripts.make_archive import SecretKey, archive, collect, new_key, read_key, sign
from scripts.make_archive import main as make_archive

from accel_env import app_matrix
from accel_env.__main__ import main
from accel_env.errors import ClosureError, InputError, UsageError
from accel_env.matrix import installed, store
from accel_env.matrix.load import open_matrix
from accel_env.update.archive import read_archive, write_archive
from accel_env.update.minisign import parse_key, parse_signature, verify

# A public key and signatures of `hello` that minisign 0.11 itself made: hashed (the default) and legacy.
VERSION = "2026.11.30"
KEY = "untrusted comment: minisign public key BC698E8DFD1BD02A\nRWQq0Bv9jY5pvJUE9A6anSrH4kuupxtCqXzOLkcl70e8HjcY53i+m4kR\n"
HASHED = """\
untrusted comment: signature from minisign secret key
RUQq0Bv9jY5pvOEHDyf1AdMEy9YvmRuCQacTd0YwFNfWUTi4pXLsSUKCW2Z2RojP7RL/khMUnrRLSjq1E3Vw2e0YfOE7KDBHmgk=
trusted comment: signed by minisign
Kwcpd01HAbGCGmkRnHLyUCXK16nqyFosi5pTkd77gAqTucYdZTcplexSQx6OURf6mnd1ALWkXxKfgu+bcv0KDw==
"""
LEGACY = """\
untrusted comment: signature from minisign secret key
RWQq0Bv9jY5pvDFcPQrk/LXBdlagWtDbDQNmOh/q963An7oKQgFlde18kCTwgCMHA+ukU1QeTxIKGDMD6eYpWpcCJmf50kpXCgI=
trusted comment: the old form
F8vEs4pIl8y2gCc2vlC/LdkU9FydUs745lNnYICs0FlODWhO1hxUuapc6kpaTrsigk7SgdYrijZEE5Er9DDlCw==
"""


class Desk:
    """A packaged matrix, a signer, and archives made by it."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder, self.root = folder, root
        new_key(folder / "k")
        self.key = folder / "k.pub"

    def make(self, version: str, **changed: Callable[[str], str]) -> Path:
        """An archive of another version, with files changed that are named like `indexes` for indexes.yaml; it may be broken."""
        files = collect(self.root)
        files["matrix.yaml"] = files["matrix.yaml"].replace(VERSION.encode(), version.encode())
        for name, change in changed.items():
            files[f"{name}.yaml"] = change(files[f"{name}.yaml"].decode()).encode()
        return self.signed(f"accel-env-matrix-{version}.tar.gz", write_archive(files))

    def signed(self, name: str, content: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content)
        path.with_name(f"{name}.minisig").write_text(sign(content, self.secret, "a comment"))
        return path

    @property
    def secret(self) -> SecretKey:
        return read_key((self.folder / "k").read_text(), "")

    def update(self, place: Path | str, force: bool = False, key: Path | None = None) -> dict[str, object]:
        return app_matrix.update(str(place), (str(key or self.key),), force, lambda _: None)


@pytest.fixture
def desk(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setenv("ACCEL_ENV_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(store, "packaged", lambda: str(root))
    shutil.rmtree(root / "inspected", ignore_errors=True)  # they disagree with the rest, for tests of their own
    return Desk(tmp_path, root)


def state(desk: Desk) -> dict[str, bytes]:
    data = desk.folder / "data"
    return {str(path.relative_to(data)): path.read_bytes() for path in sorted(data.rglob("*")) if path.is_file()}


def test_a_newer_matrix_is_used_and_given_back(desk: Desk) -> None:
    assert store.locate() == str(desk.root)
    answer = desk.update(desk.make("2027.1.10"))
    assert open_matrix().version == "2027.1.10" and installed.origin(store.locate()) == "installed"
    assert str(answer["installed"]).startswith("2027.1.10-") and answer["comment"] == "a comment"
    desk.update(desk.make("2027.2.1"))
    assert open_matrix().version == "2027.2.1"
    assert app_matrix.back()["now"] == answer["installed"]
    assert open_matrix().version == "2027.1.10"
    assert app_matrix.back()["now"] == ""
    assert store.locate() == str(desk.root)
    with pytest.raises(UsageError, match="no matrix is installed"):
        app_matrix.back()


def test_the_third_one_sweeps_the_first(desk: Desk) -> None:
    for version in ("2027.1.1", "2027.1.2", "2027.1.3"):
        desk.update(desk.make(version))
    folders = sorted(path.name for path in (desk.folder / "data" / "matrix").iterdir() if path.is_dir())
    assert [installed.version_of(name) for name in folders] == ["2027.1.2", "2027.1.3"]


def test_the_same_again_is_no_news(desk: Desk) -> None:
    made = desk.make("2027.1.10")
    desk.update(made)
    before = state(desk)
    assert desk.update(made)["installed"] == ""
    assert state(desk) == before


@pytest.mark.parametrize("forced", [False, True])
def test_a_damaged_one_is_said_and_put_back(desk: Desk, forced: bool) -> None:
    made = desk.make("2020.1.1" if forced else "2027.1.10")
    name = str(desk.update(made, force=forced)["installed"])
    before = state(desk)
    (desk.folder / "data" / "matrix" / name / "python.yaml").unlink()
    with pytest.raises(InputError, match="not what was installed") as caught:
        open_matrix()
    assert "--back" in caught.value.hint
    assert desk.update(made)["installed"] == name
    assert state(desk) == before and open_matrix().version == installed.version_of(name)


def test_a_folder_in_the_place_of_the_list_leaves_nothing(desk: Desk) -> None:
    place = desk.folder / "data" / "matrix"
    (place / "current" / "x").mkdir(parents=True)
    with pytest.raises(UsageError, match="cannot be written"):
        desk.update(desk.make("2027.1.10"))
    assert not [path for path in place.iterdir() if path.name.startswith("current.")]


def test_a_newer_packaged_one_wins_over_an_installed_one(desk: Desk) -> None:
    desk.update(desk.make("2027.1.10"))
    text = (desk.root / "matrix.yaml").read_text()
    (desk.root / "matrix.yaml").write_text(text.replace(open_matrix(desk.root).version, "2027.10.1"))
    assert store.locate() == str(desk.root), "dates are compared as numbers"


def test_an_older_one_needs_force_and_is_then_used(desk: Desk) -> None:
    old = desk.make("2020.1.1")
    with pytest.raises(InputError, match=r"holds the matrix of 2020\.1\.1") as caught:
        desk.update(old)
    assert "--force" in caught.value.hint and not state(desk)
    desk.update(old, force=True)
    assert open_matrix().version == "2020.1.1"
    assert app_matrix.status(())["others"][0]["forced"] is True


def test_the_variable_chooses_another(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.update(desk.make("2027.1.10"))
    monkeypatch.setenv("ACCEL_ENV_MATRIX", str(desk.root))
    assert open_matrix().version != "2027.1.10" and app_matrix.status(())["used"]["from"] == "named"


@pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX's")
def test_what_others_can_write_does_not_count(desk: Desk) -> None:
    desk.update(desk.make("2027.1.10"))
    os.chmod(desk.folder / "data" / "matrix" / "current", 0o666)
    assert store.locate() == str(desk.root)


@pytest.mark.parametrize("line", ["../../m-2027.1.10\n", ".hidden\n", "nowhere-00\n", "\n", "\xff\n"])
def test_a_strange_list_means_the_packaged_one(desk: Desk, line: str) -> None:
    desk.update(desk.make("2027.1.10"))
    (desk.folder / "data" / "matrix" / "current").write_bytes(line.encode("latin-1"))
    assert store.locate() == str(desk.root)


def flip(path: Path, place: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[place] ^= 1
    path.write_bytes(bytes(raw))


def other_key(desk: Desk, path: Path) -> None:
    new_key(desk.folder / "other")
    secret = read_key((desk.folder / "other").read_text(), "")
    path.with_name(f"{path.name}.minisig").write_text(sign(path.read_bytes(), secret, "a comment"))


def same_id(desk: Desk, path: Path) -> None:
    """Another's key under the trusted key's id."""
    secret = SecretKey(desk.secret.id, os.urandom(32))
    path.with_name(f"{path.name}.minisig").write_text(sign(path.read_bytes(), secret, "a comment"))


def comment(desk: Desk, path: Path) -> None:
    file = path.with_name(f"{path.name}.minisig")
    file.write_text(file.read_text().replace("a comment", "another one"))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


TAMPERED: dict[str, tuple[Callable[[Desk, Path], object], str]] = {
    "a bit": (lambda d, p: flip(p, len(p.read_bytes()) // 2), "is not what was signed"),
    "the first bit": (lambda d, p: flip(p, 0), "is not what was signed"),
    "truncated": (lambda d, p: cut(p), "is not what was signed"),
    "something behind it": (lambda d, p: p.write_bytes(p.read_bytes() + b"x"), "is not what was signed"),
    "empty": (lambda d, p: p.write_bytes(b""), "is not what was signed"),
    "another's key": (other_key, "which is not trusted"),
    "another's key, same id": (same_id, "is not what was signed"),
    "another comment": (comment, "is not what was signed"),
    "no signature": (lambda d, p: p.with_name(f"{p.name}.minisig").unlink(), "cannot be read"),
    "a torn signature": (lambda d, p: cut(p.with_name(f"{p.name}.minisig")), "is no signature of minisign"),
    "an empty signature": (lambda d, p: p.with_name(f"{p.name}.minisig").write_text(""), "is no signature of minisign"),
    "no archive": (lambda d, p: p.unlink(), "cannot be read"),
}


@pytest.mark.parametrize("how", TAMPERED)
def test_what_was_not_signed_like_that_is_refused(desk: Desk, how: str) -> None:
    path = desk.make("2027.2.1")
    spoil, said = TAMPERED[how]
    spoil(desk, path)
    with pytest.raises(InputError, match=said) as caught:
        desk.update(path)
    assert caught.value.exit_code == 3 and caught.value.hint
    assert not state(desk) and store.locate() == str(desk.root)


def test_what_is_installed_survives_a_bad_archive(desk: Desk) -> None:
    desk.update(desk.make("2027.1.10"))
    before = state(desk)
    bad = desk.make("2027.2.1")
    flip(bad, 100)
    for path in (bad, desk.make("2027.2.2", matrix=lambda text: text + "surprise: 1\n")):
        with pytest.raises(InputError):
            desk.update(path)
    assert state(desk) == before and open_matrix().version == "2027.1.10"


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", content: bytes = b"x") -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    info.size = len(content) if kind == tarfile.REGTYPE else 0
    return info, content


def tar(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return gzip.compress(plain.getvalue())


MATRIX = member("matrix.yaml")
ARCHIVES: dict[str, tuple[bytes, str]] = {
    "up": (tar(MATRIX, member("../evil.yaml")), "is no file of a matrix"),
    "up from a folder": (tar(MATRIX, member("packages/../../evil.yaml")), "is no file of a matrix"),
    "absolute": (tar(MATRIX, member("/etc/cron.d/evil.yaml")), "is no file of a matrix"),
    "hidden": (tar(MATRIX, member(".current.yaml")), "is no file of a matrix"),
    "backslash": (tar(MATRIX, member("packages\\evil.yaml")), "is no file of a matrix"),
    "line break": (tar(MATRIX, member("packages/a\nb.yaml")), "is no file of a matrix"),
    "another folder": (tar(MATRIX, member("bin/evil.yaml")), "is no file of a matrix"),
    "a program": (tar(MATRIX, member("packages/evil.py")), "is no file of a matrix"),
    "a link": (tar(MATRIX, member("packages/a.yaml", tarfile.SYMTYPE, "/etc/passwd")), "is no plain file"),
    "a hard link": (tar(MATRIX, member("packages/a.yaml", tarfile.LNKTYPE, "matrix.yaml")), "is no plain file"),
    "a device": (tar(MATRIX, member("packages/a.yaml", tarfile.CHRTYPE)), "is no plain file"),
    "a pipe": (tar(MATRIX, member("packages/a.yaml", tarfile.FIFOTYPE)), "is no plain file"),
    "twice": (tar(MATRIX, MATRIX), "is there twice"),
    "no matrix in it": (tar(member("python.yaml")), "no matrix.yaml"),
    "no tar": (gzip.compress(b"hello"), "is no archive"),
    "no gzip": (b"hello", "is no archive"),
    "half a tar": (gzip.compress(gzip.decompress(tar(MATRIX, member("a.yaml", content=b"x" * 4096)))[:2048]), "is no archive"),
    "half a gzip": (tar(MATRIX, member("a.yaml", content=os.urandom(9000)))[:4000], "is no archive"),
}


@pytest.mark.parametrize("how", ARCHIVES)
def test_an_archive_that_is_no_matrix_is_refused_even_signed(desk: Desk, how: str) -> None:
    content, said = ARCHIVES[how]
    with pytest.raises(InputError, match=said) as caught:
        desk.update(desk.signed("x.tar.gz", content))
    assert caught.value.exit_code == 3 and not state(desk)
    assert not list(desk.folder.glob("**/evil*"))


def test_a_bomb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from accel_env.update import archive as module

    monkeypatch.setattr(module, "_FILE", 1000)
    with pytest.raises(InputError, match="larger than any matrix"):
        read_archive(tar(MATRIX, member("a.yaml", content=b"0" * 5000)), "x")


def test_a_matrix_that_breaks_its_format_or_rules_is_refused(desk: Desk) -> None:
    made = (
        desk.make("2027.1.1", matrix=lambda text: text + "surprise: 1\n"),
        desk.make("2027.1.2", indexes=lambda text: text.replace("fact: url", "fact: nowhere")),
        desk.make("2027.1.3", python=lambda text: "{"),
        desk.make("2027.1.4", matrix=lambda text: text.replace("2027.1.4", "../../2027.1.4")),
    )
    for path in made:
        with pytest.raises(InputError, match=path.name) as caught:
            desk.update(path)
        assert caught.value.exit_code == 3 and caught.value.context
    assert not state(desk) and store.locate() == str(desk.root)


def test_a_matrix_of_nothing_but_its_version_is_refused(desk: Desk) -> None:
    head = desk.root.joinpath("matrix.yaml").read_bytes().replace(VERSION.encode(), b"2027.1.1")
    with pytest.raises(InputError, match="breaks rules") as caught:
        desk.update(desk.signed("x.tar.gz", write_archive({"matrix.yaml": head})))
    assert any("python.yaml" in line for line in caught.value.context) and not state(desk)


def test_aliases_do_not_multiply(desk: Desk) -> None:
    rows = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    with pytest.raises(InputError, match="fault") as caught:
        desk.update(desk.make("2027.1.1", indexes=lambda text: f"{text}a0: &a0 [x]\n{rows}"))
    assert any("no file of the matrix has aliases" in line for line in caught.value.context) and not state(desk)


def test_the_script_that_signs_says_what_is_wrong(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    nowhere, key = str(desk.folder / "nowhere"), str(desk.folder / "k")
    assert make_archive(["--key", nowhere]) == 3
    assert make_archive(["--key", key, "--matrix", str(desk.folder)]) == 3
    assert make_archive(["--key", key, "--matrix", str(desk.root), "-o", key]) == 2
    assert capsys.readouterr().err.count("error: ") == 3


def test_without_a_key_nothing_is_taken(desk: Desk) -> None:
    path = desk.make("2027.1.10")
    with pytest.raises(InputError, match="no key is known"):
        app_matrix.update(str(path), (), False, lambda _: None)
    with pytest.raises(InputError, match="is no public key"):
        desk.update(path, key=path.with_name(f"{path.name}.minisig"))


def test_keys_of_the_packaged_matrix_count_and_those_of_a_archive_do_not(desk: Desk) -> None:
    row = f'- {{key: "{desk.key.read_text().splitlines()[1]}", name: the project, fact: f}}\n'
    text = f'schema: accel-env/keys/1\nfacts:\n  f: {{text: t, source: s, grade: vendor, checked: "2026-11-30"}}\nkeys:\n{row}'
    (desk.root / "keys.yaml").write_text(text)
    answer = app_matrix.update(str(desk.make("2027.1.10")), (), False, lambda _: None)
    assert answer["keys"] == [{"id": parse_key(desk.key.read_text(), "k").id, "name": "the project"}]
    (desk.root / "keys.yaml").unlink()
    with pytest.raises(InputError, match="no key is known"):
        app_matrix.update(str(desk.make("2027.2.1")), (), False, lambda _: None)


def test_over_http_from_this_machine_alone(desk: Desk) -> None:
    path = desk.make("2027.1.10")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            file = desk.folder / self.path.partition("?")[0].strip("/")
            self.send_response(200 if file.is_file() else 404)
            self.end_headers()
            self.wfile.write(file.read_bytes() if file.is_file() else b"")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        url = f"http://127.0.0.1:{http.server_address[1]}"
        with pytest.raises(ClosureError, match="cannot be read"):
            desk.update(f"{url}/nothing.tar.gz")
        desk.update(f"{url}/{path.name}?a=1")
        http.shutdown()
    assert open_matrix().version == "2027.1.10"
    for bad in ("http://example.org/x.tar.gz", "ftp://example.org/x", "file:///etc/passwd", "https://[::1/x"):
        with pytest.raises(UsageError, match=r"is no (https )?URL"):
            desk.update(bad)


def test_the_command(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    path = desk.make("2027.1.10")
    assert main(["matrix", "update", str(path), "--key", str(desk.key)]) == 0
    out = capsys.readouterr()
    assert "installed 2027.1.10-" in out.out and "2027.1.10 (installed)" in out.out and "signed by" in out.err
    assert main(["matrix", "stats"]) == 0
    assert "installed" in capsys.readouterr().out
    assert main(["matrix", "update", "--back"]) == 0
    assert "went back from 2027.1.10-" in capsys.readouterr().out
    assert main(["matrix", "update", "--status", "--json"]) == 0
    assert '"from": "packaged"' in capsys.readouterr().out
    assert main(["matrix", "update"]) == 2 and main(["matrix", "update", str(path), "--back"]) == 2
    flip(path, 50)
    assert main(["matrix", "update", str(path), "--key", str(desk.key)]) == 3
    assert "hint:" in capsys.readouterr().err


def test_the_same_matrix_gives_the_same_archive(desk: Desk, tmp_path: Path) -> None:
    first = archive(desk.root, tmp_path / "k", tmp_path / "one")
    second = archive(desk.root, tmp_path / "k", tmp_path / "two")
    assert first.read_bytes() == second.read_bytes()
    signature = parse_signature(first.with_name(f"{first.name}.minisig").read_text(), "s")
    assert open_matrix(desk.root).digest in signature.comment


def test_without_the_extra_it_is_said(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    path = desk.make("2027.1.10")
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    with pytest.raises(UsageError, match="which is not installed") as caught:
        desk.update(path)
    assert "'.[update]'" in caught.value.hint


def test_signatures_that_minisign_made() -> None:
    key = parse_key(KEY, "key")
    for text in (HASHED, LEGACY):
        signature = parse_signature(text, "signature")
        assert verify(b"hello\n", signature, (key,), "hello") is key
        with pytest.raises(InputError, match="not what was signed"):
            verify(b"hello", signature, (key,), "hello")


def test_secret_keys(desk: Desk) -> None:
    lines = (desk.folder / "k").read_text().splitlines()
    raw = base64.b64decode(lines[1])
    bare = base64.b64encode(raw[:-32] + bytes(32)).decode()  # `minisign -G -W` leaves the checksum out
    assert read_key(f"{lines[0]}\n{bare}\n", "") == desk.secret
    torn = base64.b64encode(raw[:100] + b"x" + raw[101:]).decode()
    with pytest.raises(InputError, match="password"):
        read_key(f"{lines[0]}\n{torn}\n", "")
    with pytest.raises(InputError, match="no secret key"):
        read_key(desk.key.read_text(), "")
    with pytest.raises(InputError, match="cannot be written"):
        new_key(desk.folder / "k")
