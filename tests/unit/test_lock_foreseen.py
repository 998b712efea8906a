"""What is known before a lock is tried: that it will be refused, what to do instead, and what stays as an image brings it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.samples import RULES, Tables, candidate, lock_of, locked, solution

from accel_env import app, app_close
from accel_env.app_image import ImageWords
from accel_env.cli.show_plan import plan_lines
from accel_env.cli.show_written import written_lines
from accel_env.lock.chosen import instead, with_chosen
from accel_env.lock.close import LockOptions, close
from accel_env.lock.closer import Closure, Found, Question, Refusal
from accel_env.lock.foreseen import foreseen, hopeless, staying
from accel_env.lock.notes import missing
from accel_env.lock.rules import SourceOnly, Stays, load_rules
from accel_env.model import Ask, Image, Lock, Pick, Solution

TORCH = candidate("torch", "2.14.1", "cu126", "pypi", stack="cuda-12.6")
DRIVER = candidate("driver", "1.0", requires=("archived==1.0.9", "extra-only; extra == 'x'"))
PLAIN = candidate("driver", "0.9")
KNOWN = replace(RULES, source_only=(SourceOnly(("archived", "extra-only"), "archives alone", "closure:x"),),
                stays=(Stays(("*vendor/pytorch:*",), ("numpy",), "it was built over its own", "closure:y"),))  # fmt: skip
OWN = Image("reg.example/vendor/pytorch:1", "sha256:" + "ab" * 32, stack="cuda-12.6", torch="2.14.0")
VENDOR = candidate("torch", "2.14.0", "nv", "image", stack="cuda-12.6")


def test_a_requirement_without_wheels_is_foreseen() -> None:
    told = foreseen(solution(TORCH, DRIVER), (), KNOWN)
    assert told and "driver 1.0 requires archived" in told.why and told.fact == "closure:x"
    assert "pip wheel --no-deps archived`" in told.instead and "UV_DEFAULT_INDEX" in told.instead
    assert foreseen(solution(TORCH, PLAIN), (), KNOWN) is None


def test_what_must_be_compiled_leaves_a_lock_of_the_rest() -> None:
    built = (Pick(candidate("slow", "1.0", "source"), "cp312"),)
    found = solution(TORCH, built[0].candidate, asks=(Ask("slow", ">=1", text="slow>=1"), Ask("other", "<2", text="other<2")))
    told = foreseen(found, built, KNOWN)
    assert told and "`accel-env lock 'other<2' torch==2.14.1`" in told.instead
    assert "`pip install --no-build-isolation slow==1.0`" in told.instead and "slow 1.0+source must be compiled" in told.why


def test_other_choices_help_only_where_a_release_does_without() -> None:
    found = solution(TORCH, DRIVER)
    assert hopeless(("archived",), found, KNOWN, Tables(builds={"driver": (DRIVER,)}))
    assert not hopeless(("archived",), found, KNOWN, Tables(builds={"driver": (DRIVER, PLAIN)}))
    assert not hopeless(("else",), found, KNOWN, Tables(builds={"driver": (DRIVER,)}))


class Script:
    """A closer that always gives numpy and another."""

    def close(self, question: Question) -> Closure | Refusal:
        """See Closer."""
        found = [Found(n, "1.0", f"{n}-1.0-py3-none-any.whl", f"https://f.example/{n}", "1" * 64, 1) for n in ("numpy", "six")]
        return Closure(tuple(found), {"uv": "9"})


@pytest.mark.parametrize(("image", "names"), [(OWN, ["six"]), (replace(OWN, ref="reg.example/other:1"), ["numpy", "six"])])
def test_what_an_image_brings_in_an_unknown_version_stays(image: Image, names: list[str]) -> None:
    found = solution(VENDOR, image=image, outside=("six",))
    lock = close(found, Tables(), KNOWN, Script(), LockOptions("2026-11-30T00:00:00Z"))
    assert isinstance(lock, Lock) and [file.name for file in lock.files] == names
    assert any("numpy stays the image's own" in note for note in lock.notes) == (names == ["six"])


def test_what_was_asked_for_by_name_does_not_stay() -> None:
    assert [name for name, _ in staying(solution(VENDOR, image=OWN), KNOWN)] == ["numpy"]
    assert not staying(solution(VENDOR, image=OWN, asks=(Ask("numpy", ""),)), KNOWN)
    assert not staying(solution(TORCH, image=OWN), KNOWN)


def test_a_plan_says_what_to_do_where_a_lock_is_refused() -> None:
    """The shown plan alone: what is kept in a file knows nothing of what is tried next."""
    plan = app.resolve(app.Request(asks=("axolotl",), devices=("L40S",), driver="580.95.05"))
    assert plan["warnings"][0]["rule"] == "lock-refused" and "langdetect" in plan["warnings"][0]["message"]
    last = "\n".join(plan_lines(plan, ("axolotl",), 200)).rpartition("next: ")[2]
    assert "langdetect" in last and "accel-env lock" not in last
    matrix = app.matrix_of()
    problem, _ = app.problem_of(app.Request(asks=("axolotl",), devices=("L40S",)), matrix)
    kept = app_close.plan_of(app_close.answer_of(problem, matrix), matrix)
    assert not any(warning["rule"] == "lock-refused" for warning in kept["warnings"])


def test_what_the_closer_chose_is_shown_and_said() -> None:
    """What is locked is in the table of `lock`, and no note speaks of a refusal without saying what came of it."""
    found = solution(TORCH)
    found = replace(found, problem=replace(found.problem, left=("numpy",)))
    lock = lock_of(found, locked("numpy", "2.3.5"), locked("torch", "2.14.1"))
    told = instead(Refusal("six needs numpy<2.4", (("numpy", "2.4.6", "any"),)), lock)
    assert told == "locked: numpy 2.3.5 instead of 2.4.6, which the closure refused; in its words: six needs numpy<2.4"
    assert not instead(Refusal("x", (("torch", "2.14.1", "cu126"), ("gone", "1.0", "any"))), lock)
    plan = {"picks": {"torch": {"version": "2.14.1"}}}
    assert with_chosen(plan, lock)["picks"]["numpy"]["version"] == "2.3.5" and list(plan["picks"]) == ["torch"]


def test_what_is_written_is_shown_with_its_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `resolve` shows it; the file holds what no later evidence changes."""
    words = app.Request(asks=("torch",), devices=("A100",), driver="580.95.05")
    matrix = app.matrix_of()
    result = app_close.answer_of(app.problem_of(words, matrix)[0], matrix)
    assert isinstance(result, Solution)
    lock = lock_of(result, locked("torch", result.picks[0].candidate.version))
    monkeypatch.setattr(app, "close_problem", lambda *_, **__: (lock, app_close.plan_of(result, matrix), ()))
    shown = app.lock(words, str(tmp_path / "out"))["plan"]["picks"]
    assert shown == app.resolve(words)["picks"] and shown["torch"]["evidence"] != "metadata"
    assert json.loads((tmp_path / "out" / "plan.json").read_text())["picks"]["torch"]["evidence"] == "metadata"


def test_what_the_image_lacks_is_a_warning_before_anything_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a note that asks for a compiler is met by the words that put one in."""
    words, matrix = app.Request(asks=("torch",), devices=("Arc B580",)), app.matrix_of()
    result = app_close.answer_of(app.problem_of(words, matrix)[0], matrix)
    assert isinstance(result, Solution)
    lock = lock_of(result, locked("torch", "2.14.0"), notes=(*missing(result, load_rules(matrix)), "another"))
    monkeypatch.setattr(app, "close_problem", lambda *_, **__: (lock, app_close.plan_of(result, matrix), ()))
    plain, compiler = (app.render(words, str(tmp_path / str(on)), ImageWords(compiler=on)) for on in (False, True))
    lines = written_lines(plain, 100)
    assert lines[0].startswith("warning: not in this image") and "no device" in " ".join(lines[:3])
    assert plain["notes"][0] == "another" and not any("not in this image" in line for line in lines[3:])
    assert "the image needs a C++ compiler" in str(plain["plan"]) and "C++ compiler" not in str(compiler["plan"])
    assert "C++ compiler" in (tmp_path / "True" / "plan.json").read_text()


def test_the_rules_of_the_repository() -> None:
    rules = load_rules(app.matrix_of())
    names = {rule.names[0]: rule for rule in rules.stays}
    refs = [image.ref for image in app.matrix_of().images() if names["numpy"].holds(image.ref)]
    assert refs and all("nvidia/pytorch:" in ref for ref in refs)
