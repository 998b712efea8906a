"""What `render` refuses before it closes over anything: a closure may take minutes and the network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from accel_env import app
from accel_env.app_image import ImageWords
from accel_env.errors import AccelEnvError

DIGEST = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("host", "words", "reference"),
    [
        ("gaudi2-1.23", ImageWords(), "image-unpinned"),
        ("v100-r580", ImageWords(base="own 1"), "bad-base"),
        ("v100-r580", ImageWords(base="own:1"), "image-unpinned"),
        ("v100-r580", ImageWords(base=f"python:3.11-slim-bookworm@{DIGEST}"), "base-of-another-python"),
        ("v100-r580", ImageWords(base=f"mirror.example/library/python:3.9@{DIGEST}"), "base-of-another-python"),
        ("v100-r580", ImageWords(base=f"alpine:3.20@{DIGEST}"), "base-without-glibc"),
        ("v100-r580", ImageWords(formats=("nothing",)), "unknown-format"),
        ("arc-a770", ImageWords(devel=True), "no-source-builds"),
    ],
)
def test_an_image_that_could_not_be_written_is_refused_first(
    host: str, words: ImageWords, reference: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "close_problem", lambda *_words, **_more: pytest.fail("the closure was begun"))
    with pytest.raises(AccelEnvError) as caught:
        app.render(app.Request(asks=("torch",), host=host), str(tmp_path / "out"), words)
    assert caught.value.reference == reference and caught.value.hint
    assert not (tmp_path / "out").exists()


def test_what_is_allowed_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class BegunError(Exception):
        pass

    def begin(*_words: Any, **_more: Any) -> None:
        raise BegunError

    monkeypatch.setattr(app, "close_problem", begin)
    with pytest.raises(BegunError):
        app.render(app.Request(asks=("torch",), host="gaudi2-1.23"), str(tmp_path / "out"), ImageWords(allow_unpinned=True))
