"""Properties of every rendered image."""

from __future__ import annotations

import json
import re
import shlex

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.integration.samples import DIGEST, candidate, lock_of, locked, solution

from accel_env.model import Host, Image, Lock, Solution
from accel_env.render import RenderOptions, render
from accel_env.render.compose import compose
from accel_env.render.dockerfile import quoted
from accel_env.render.recipe import Cmd, Comment, Copy, From, Label, Run, User

words = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=20)
names = st.from_regex(r"[A-Z][A-Z0-9_]{0,9}", fullmatch=True)
versions = st.from_regex(r"[1-9]\.[0-9]{1,2}\.[0-9]", fullmatch=True)
digests = st.from_regex(r"sha256:[0-9a-f]{64}", fullmatch=True)


@st.composite
def images(draw: st.DrawFn) -> tuple[Solution, Lock]:
    """A solution of any stack, on a plain or a vendor base, with any environment."""
    machine, vendor = draw(st.sampled_from(["x86_64", "aarch64"])), draw(st.booleans())
    stack = draw(st.sampled_from(["cuda-12.6", "rocm-7.2", "xpu-2026.1", "cpu"])) if not vendor else "gaudi-1.23.0"
    image = Image(
        draw(st.sampled_from(["python:3.12-slim", "vault.example:5000/x/y:latest"])), draw(digests), stack="x" if vendor else ""
    )
    torch = candidate("torch", draw(versions), "hpu" if vendor else "cu126", "image" if vendor else "house:cu126")
    found = solution(
        torch,
        stack=stack,
        image=image,
        env=draw(st.dictionaries(names, words, max_size=4)),
        host=Host(arch=machine),
        run_args=tuple(draw(st.lists(words, max_size=3))),
    )
    files = [locked(f"p{place}", version) for place, version in enumerate(draw(st.lists(versions, max_size=3)))]
    return found, lock_of(found, *files, notes=tuple(draw(st.lists(st.text(max_size=30), max_size=2))))


options = st.builds(
    RenderOptions,
    uid=st.integers(1, 65533),
    gid=st.integers(1, 65533),
    command=st.lists(words, min_size=1, max_size=3).map(tuple),
    formats=st.sampled_from([(), ("devcontainer",), ("apptainer", "devcontainer")]),
)


@settings(max_examples=60, deadline=None)
@given(images(), options)
def test_every_recipe(pair: tuple[Solution, Lock], chosen: RenderOptions) -> None:
    found, lock = pair
    steps = list(compose(found, lock, DIGEST, DIGEST, chosen).instructions())
    assert all(step.pinned for step in steps if isinstance(step, From))
    assert isinstance(steps[-1], Label)
    users = [step for step in steps if isinstance(step, User)]
    assert len(users) == 1 and users[0].uid > 0 and users[0].gid > 0
    commands = [command for step in steps if isinstance(step, Run) for command in step.commands]
    installs = [command for command in commands if re.search(r"\bpip\b.*\binstall\b", command)]
    assert len(installs) == bool(lock.files)
    assert all("--require-hashes" in command and "--no-deps" in command for command in installs)
    last = max(place for place, step in enumerate(steps) if isinstance(step, From))
    assert not any(isinstance(step, (Run, Comment)) for step in steps[last:])
    assert [step for step in steps[last:] if isinstance(step, Copy)] == [Copy(("/out/",), "/", "build")]
    assert [step.words for step in steps if isinstance(step, Cmd)] == [chosen.command]


@settings(max_examples=40, deadline=None)
@given(images(), options, st.binary(max_size=20))
def test_same_input_same_bytes_and_nothing_breaks_out(pair: tuple[Solution, Lock], chosen: RenderOptions, plan: bytes) -> None:
    found, lock = pair
    files = render(found, lock, {"requirements.lock": b"x"}, plan, chosen)
    assert files == render(found, lock, {"requirements.lock": b"x"}, plan, chosen)
    assert files["plan.json"] == plan
    known = ("#", "ARG ", "FROM ", "COPY ", "RUN ", "ENV ", "WORKDIR ", "USER ", "ENTRYPOINT []", "CMD ", "LABEL ")
    logical = re.sub(r"\\\n", " ", files["Dockerfile"].decode()).split("\n")
    assert all(line == "" or line.startswith(known) for line in logical)
    assert sum(line.startswith("FROM ") for line in logical) == 2
    assert sum(line.startswith("RUN ") for line in logical) == 1
    assert [json.loads(line[4:]) for line in logical if line.startswith("CMD ")] == [list(chosen.command)]


@given(words)
def test_quoting_can_be_undone(value: str) -> None:
    text = quoted(value)
    assert re.sub(r'\\([\\"$])', r"\1", text[1:-1]) == value
    if "`" not in value:
        assert shlex.split(text.replace("\\$", "$")) == [value]
