"""Archives of images read as streams, and what differs between two."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator, Mapping

import pytest

from accel_env.build.archive import Archive, Entry, read_archive
from accel_env.build.compare import Difference, compare_configs, compare_layers, first_layer


def member(name: str, content: bytes = b"", **settings: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in settings.items():
        setattr(info, key, value)
    return info, content


def packed(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))
    return whole.getvalue()


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def layer(content: bytes = b"one", mtime: int = 5, mode: int = 0o644) -> bytes:
    return packed(
        member("opt/", type=tarfile.DIRTYPE, mode=0o755),
        member("./opt/file", content, mtime=mtime, mode=mode),
        member("opt/link", type=tarfile.SYMTYPE, linkname="file"),
    )


CONFIG = json.dumps({"created": "x", "history": [{"created": "x"}]}).encode()
LAYOUTS = ("blobs", "blobs, packed", "docker 20.10")


def image(layers: tuple[bytes, ...], layout: str = "blobs", config: bytes = CONFIG) -> bytes:
    """An archive as engines write it."""
    members = []
    for place, content in enumerate(layers):
        if layout == "docker 20.10":
            members += [member(f"{place}/VERSION", b"1.0"), member(f"{place}/layer.tar", content)]
        else:
            held = gzip.compress(content, mtime=0) if layout.endswith("packed") else content
            members.append(member(f"blobs/sha256/{digest(held)[7:]}", held))
    name = f"{digest(config)[7:]}.json" if layout == "docker 20.10" else f"blobs/sha256/{digest(config)[7:]}"
    return packed(*members, member(name, config), member("manifest.json", b"[]"), member("repositories", b"{}"))


def chunks(content: bytes, size: int = 700) -> Iterator[bytes]:
    return (content[place : place + size] for place in range(0, len(content), size))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_archive_is_read_as_it_comes(layout: str) -> None:
    first, second = layer(), layer(b"another" * 300)
    found = read_archive(chunks(image((first, second), layout)))
    assert set(found.layers) == {digest(first), digest(second)}
    assert found.documents[digest(CONFIG)] == CONFIG
    files = found.layers[digest(first)]
    assert set(files) == {"opt", "opt/file", "opt/link"}
    assert files["opt/file"] == Entry("file", 0o644, (0, 0), 5, 3, "", hashlib.sha256(b"one").hexdigest())
    assert files["opt/link"].kind == "link" and files["opt/link"].link == "file"


def test_layers_that_nobody_asks_for_are_passed_over() -> None:
    first, second = layer(), layer(b"other")
    found = read_archive(chunks(image((first, second))), {digest(first)})
    assert set(found.layers) == {digest(second)}


def test_an_empty_layer_has_its_digest_too() -> None:
    empty = packed()
    assert read_archive(chunks(image((empty,)))).layers == {digest(empty): {}}


def differences(one: bytes, other: bytes) -> tuple[Difference, ...]:
    base = layer(b"base")
    archives = [read_archive(chunks(image((base, each)))) for each in (one, other)]
    layers = [(digest(base), digest(each)) for each in (one, other)]
    found = compare_layers(layers[0], layers[1], archives[0], archives[1])
    assert found.layer == 2
    return found.differences


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (layer(b"two"), "content (both 3 bytes)"),
        (layer(b"four"), "content (3 against 4 bytes)"),
        (layer(mtime=6), "time 1970-01-01T00:00:05Z against 1970-01-01T00:00:06Z"),
        (layer(mode=0o600), "mode 644 against 600"),
        (layer(b"two", 6), "content (both 3 bytes), time 1970-01-01T00:00:05Z against 1970-01-01T00:00:06Z"),
    ],
)
def test_the_file_that_differs(other: bytes, what: str) -> None:
    assert differences(layer(), other) == (Difference("opt/file", what),)


def test_files_of_one_image_alone_and_other_kinds() -> None:
    one = packed(member("a", b"x"), member("b", b"x", uid=1), member("l", type=tarfile.SYMTYPE, linkname="a"))
    other = packed(member("a/", type=tarfile.DIRTYPE), member("b", b"x", uid=2), member("c"), member("l", type=tarfile.SYMTYPE))
    assert differences(one, other) == (
        Difference("a", "file against folder"),
        Difference("b", "owner 1:0 against 2:0"),
        Difference("c", "only in the second"),
        Difference("l", "target a against "),
    )


def test_archives_of_the_same_files_in_another_order() -> None:
    files = [member("a", b"x"), member("b", b"y")]
    assert differences(packed(*files), packed(*reversed(files)))[0].what.startswith("the same files")


def test_only_some_are_shown() -> None:
    one = packed(*(member(f"f{number:02}", b"x") for number in range(25)))
    found = compare_layers(("a",), ("b",), _only("a", one), _only("b", packed()))
    assert len(found.differences) == 10 and found.more == 15


def _only(name: str, content: bytes) -> Archive:
    read = read_archive(chunks(image((content,))))
    return Archive(read.documents, {name: read.layers[digest(content)]})


def test_numbers_of_layers() -> None:
    assert first_layer(("a", "b"), ("a", "b")) == 0
    assert first_layer(("a", "b"), ("a", "c")) == 2
    assert first_layer(("a",), ("a", "c")) == 2
    empty = read_archive(chunks(image(())))
    assert compare_layers(("a",), ("a", "c"), empty, empty).differences == (Difference("layer 2", "only in the second image"),)


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, [("a.b[1]", "2 against 3")]),
        ({"a": 1}, {"b": "x" * 100}, [("a", "1 against null"), ("b", f'null against "{"x" * 76}...')]),
        ({"a": [1]}, {"a": [1, 2]}, [("a", "[1] against [1, 2]")]),
    ],
)
def test_configurations(one: Mapping[str, object], other: Mapping[str, object], wanted: list[tuple[str, str]]) -> None:
    found = compare_configs(json.dumps(one).encode(), json.dumps(other).encode())
    assert [(each.where, each.what) for each in found.differences] == wanted and found.layer == 0


def test_the_same_values_in_other_bytes() -> None:
    assert compare_configs(b'{"a":1}', b'{"a": 1}').differences[0].what == "the same values, written differently"
