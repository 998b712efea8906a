"""What is read of uv's answers."""

from __future__ import annotations

import pytest

from accel_env.errors import ClosureError
from accel_env.lock.answer import names_in, read_pylock, without_wheel
from accel_env.lock.closer import Found

ANSWER = """
lock-version = "1.0"
created-by = "uv"

[[packages]]
name = "numpy"
version = "2.3.5"
wheels = [{ url = "https://user:secret@files.example/numpy-2.3.5%2Bx-py3-none-any.whl", size = 7, hashes = { sha256 = "55" } }]

[[packages]]
name = "torch"
version = "2.14.1+cu126"
archive = { path = "/tmp/torch.whl", hashes = { sha256 = "66" } }

[[packages]]
name = "direct"
version = "1"
archive = { url = "https://files.example/direct-1-py3-none-any.whl", hashes = { sha256 = "77" } }

[[packages]]
name = "bare"
version = "2"
vcs = { type = "git", url = "https://example.org/bare", commit-id = "0" }
"""


def test_the_answer_without_the_stand_ins() -> None:
    files, seen = read_pylock(ANSWER, {"torch", "triton"})
    assert seen == {"torch"} and files == (
        Found(
            "numpy", "2.3.5", "numpy-2.3.5+x-py3-none-any.whl", "https://files.example/numpy-2.3.5%2Bx-py3-none-any.whl", "55", 7
        ),
        Found("direct", "1", "direct-1-py3-none-any.whl", "https://files.example/direct-1-py3-none-any.whl", "77"),
        Found("bare", "2", "", "", ""),
    )


@pytest.mark.parametrize("text", ["packages = 3", '[[packages]]\nversion = "1"', "not toml", "packages = [1]"])
def test_an_answer_in_another_form(text: str) -> None:
    with pytest.raises(ClosureError) as caught:
        read_pylock(text, set())
    assert caught.value.reference == "uv-output"


def test_names_in_the_reason_and_not_in_the_hints() -> None:
    words = names_in("Because Foo_Bar==1 depends on torch[x]>=2, no a.b.\nhint: `numpy` and torchvision")
    assert {"foo-bar", "torch", "a-b"} <= words and not {"numpy", "torchvision", "foo"} & words


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("cause: Because all versions of gptqmodel have no usable wheels and you require gptqmodel, no.", ("gptqmodel",)),
        ("Because iopath==0.1.10 has no usable wheels and only iopath<=0.1.10 is available", ("iopath",)),
        ("Because torch==2.14.1 has no wheels with a matching platform tag (e.g., `macosx_11_0_arm64`)", ("torch",)),
        ("Because a<2 has no usable wheels and b has no wheels with a matching Python ABI tag", ("a", "b")),
        ("Because x depends on y and y was not found\nhint: z has no usable wheels", ()),
    ],
)
def test_what_has_no_wheel(words: str, names: tuple[str, ...]) -> None:
    assert without_wheel(words) == names
