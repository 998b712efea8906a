"""Bundles on the small invented matrix: what is taken, what is left out and why, and how users see it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from accel_env import app, app_close
from accel_env.__main__ import main
from accel_env.asks import read_asks
from accel_env.cli import complete
from accel_env.errors import ClosureError, UsageError
from accel_env.lock.closer import Closure, Found, Question, Refusal
from accel_env.matrix.load import Matrix, open_matrix
from accel_env.model import Lock, Problem
from accel_env.solve.bundles import settle, split
from accel_env.system.real import RealSystem

TINY = Path(__file__).parent.parent / "data" / "tiny"
FACTS = 'facts: {words: {text: what people mean, source: this test, grade: vendor, checked: "2026-01-01"}}\n'
NEW, OLD = ("Mid 80", "580.95.05"), ("Old 60", "580.95.05")
Json = dict[str, Any]


class Site:
    """The small matrix with bundles of one's own."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "site.yaml"

    def bundles(self, text: str) -> None:
        rows = [f"  {line}\n" for line in text.strip().splitlines()]
        self.file.write_text(f"schema: accel-env/overlay/1\n{FACTS}behind: 1\nbundles:\n{''.join(rows)}")

    def request(self, *asks: str, device: tuple[str, str] = NEW, **more: Any) -> app.Request:
        return app.Request(asks=asks, devices=(device[0],), driver=device[1], overlays=(str(self.file),), **more)

    def plan(self, *asks: str, device: tuple[str, str] = NEW, **more: Any) -> Json:
        return app.resolve(self.request(*asks, device=device, **more))

    def matrix(self) -> Matrix:
        return open_matrix(TINY, (self.file,))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("ACCEL_ENV_MATRIX", str(TINY))
    found = Site(tmp_path)
    found.bundles("""
work:
  summary: to work with
  fact: words
  members: [torch, {ask: fastattn, optional: true, stands_in: something else, fact: words}, arrays]
lean:
  summary: newest torch
  fact: words
  members: [torch, {ask: fastattn, optional: true, behind: 0, stands_in: something else, fact: words}]
must: {summary: all of it, fact: words, members: [torch, fastattn]}
names:
  summary: one of these
  fact: words
  members: [{any: [{ask: accel-new, stacks: [cuda-13]}, {ask: accel-old, stacks: [cuda-12]}]}]
beside:
  summary: after torch
  fact: words
  members: [torch, {any: [{ask: accel-new, stacks: [cuda-13]}, {ask: accel-old, stacks: [cuda-12]}], optional: true}]
apart: {summary: apart, fact: words, members: ["torch>=3.1", {ask: server, optional: true}]}
rocks:
  summary: for others
  fact: words
  members: [torch, {ask: rock, stacks: [rocm], optional: true, stands_in: sand, fact: words}]
""")
    return found


def picked(plan: Json) -> dict[str, str]:
    assert plan["status"] == "ok", plan
    return {name: pick["version"] for name, pick in plan["picks"].items()}


def test_an_optional_member_is_taken_within_its_bound_and_the_plan_says_what_it_costs(site: Site) -> None:
    plan = site.plan("@work")
    assert picked(plan)["torch"] == "3.0.0" and picked(plan)["fastattn"] == "2.0"
    assert plan["bundles"] == ["work"] and plan["left_out"] == [] and plan["asks"] == ["torch", "fastattn", "arrays"]
    said = [(w["message"], w["source"]) for w in plan["warnings"] if w["rule"] == "older-torch"]
    assert said == [("fastattn holds torch at 3.0.0; without it 3.1.0", "this test")]


def test_beyond_its_bound_it_is_left_out(site: Site) -> None:
    plan = site.plan("@lean")
    assert picked(plan)["torch"] == "3.1.0" and "fastattn" not in plan["picks"]
    (row,) = plan["left_out"]
    assert row["why"] == "fastattn holds torch at 3.0.0; without it 3.1.0: 1 minor releases, and @lean gives none for it"
    assert row["stands_in"] == "something else" and row["source"] == row["stands_in_source"] == "this test"
    assert not [w for w in plan["warnings"] if w["rule"] == "older-torch"]


def test_what_cannot_be_had_is_left_out_with_the_packages_own_word_for_what_stands_in(site: Site) -> None:
    plan = site.plan("@work", device=OLD)
    (row,) = plan["left_out"]
    assert (row["name"], row["bundle"]) == ("fastattn", "work") and picked(plan)["torch"] == "3.1.0"
    assert "has code for sm_80, sm_90; this host has Old 60 (sm_60)" in row["why"]
    assert row["stands_in"] == "use the built-in attention" and row["stands_in_source"] == "this test"


def test_what_does_not_go_with_the_rest_is_left_out(site: Site) -> None:
    (row,) = site.plan("@apart")["left_out"]
    assert row["name"] == "server" and "torch" in row["why"] and row["stands_in"] == ""


def test_what_has_no_name_on_the_stack_is_left_out_or_refused(site: Site) -> None:
    (row,) = site.plan("@rocks")["left_out"]
    assert row["why"] == "nothing of it is known for cuda, but rock for rocm" and row["stands_in"] == "sand"
    refusal = site.plan("@names", stack="cpu")
    assert refusal["status"] == "conflict" and [item["text"] for item in refusal["conflict"]["core"]] == ["@names", "stack cpu"]
    assert "accel-new for cuda-13" in refusal["conflict"]["because"][-1]["text"]
    assert refusal["bundles"] == ["names"] and refusal["left_out"] == []


def test_what_the_user_names_is_a_must(site: Site) -> None:
    assert site.plan("@work", "fastattn", device=OLD)["status"] == "conflict"
    assert picked(site.plan("@lean", "fastattn"))["torch"] == "3.0.0"
    assert site.plan("@lean", "@must", device=OLD)["status"] == "conflict"
    assert picked(site.plan("@lean", "@must"))["fastattn"] == "2.0"


def test_bounds_of_the_user_count(site: Site) -> None:
    plan = site.plan("torch<3.1", "@lean")
    assert picked(plan) == {"torch": "3.0.0", "fastattn": "2.0"} and plan["left_out"] == []
    assert plan["asks"].count("torch<3.1") == 1 and "torch" not in plan["asks"]


@pytest.mark.parametrize("bundle", ["@names", "@beside"])
@pytest.mark.parametrize(("driver", "name"), [("580.95.05", "accel-new"), ("570.10", "accel-old")])
def test_the_first_name_that_the_drivers_releases_allow(site: Site, driver: str, bundle: str, name: str) -> None:
    plan = site.plan(bundle, device=("Mid 80", driver))
    assert plan["outside"] == [name] and plan["left_out"] == []


def test_a_device_that_the_newer_release_does_not_know_gets_the_older_name(site: Site) -> None:
    assert site.plan("@names", device=OLD)["outside"] == ["accel-old"]


def test_two_bundles_are_their_members_together(site: Site) -> None:
    plan = site.plan("@work", "@rocks", "@work")
    assert plan["bundles"] == ["work", "rocks"] and plan["asks"] == ["torch", "fastattn", "arrays"]


def test_unknown_names_and_tails(site: Site) -> None:
    with pytest.raises(UsageError) as caught:
        site.plan("@wrok")
    assert caught.value.reference == "unknown-bundle" and "@work" in caught.value.hint
    for text in ("@", "@work<2", "@work[all]", "@work; os_name=='nt'"):
        with pytest.raises(UsageError, match="is no bundle"):
            site.plan(text)


def test_a_requirements_file_may_name_bundles(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("@Work  # ours\ntorch<3.1\n")
    asks, notes = read_asks((), (str(tmp_path / "list.txt"),), RealSystem())
    assert [ask.name for ask in asks] == ["@work", "torch"] and not notes


def test_why_not_says_that_it_is_left_out(site: Site) -> None:
    told = app.explain_not(site.request("@lean"), "fastattn")
    assert told["answer"].startswith("fastattn is left out of @lean: fastattn holds torch at 3.0.0")
    old = app.explain_not(site.request("@work", device=OLD), "fastattn")
    assert old["rejections"] and old["instead"][0]["text"] == "use the built-in attention"


def settled(site: Site, *asks: str) -> tuple[Problem, Matrix]:
    matrix = site.matrix()
    return app.problem_of(site.request(*asks), matrix)[0], matrix


def close(site: Site, monkeypatch: pytest.MonkeyPatch, words: str, *asks: str) -> tuple[Lock, Json]:
    """The lock of asks with a closer that refuses, in these words, whatever holds fastattn."""

    class Closer:
        def close(self, question: Question) -> Closure | Refusal:
            if any(stand_in.name == "fastattn" for stand_in in question.stand_ins):
                return Refusal(words)
            names = [line.partition("==")[0] for line in question.requirements if "==" in line]
            return Closure(tuple(Found(name, "1", f"{name}-1-py3-none-any.whl", "", "1" * 64, 1) for name in names), {"uv": "9"})

    monkeypatch.setattr("accel_env.lock.uv.UvCloser", lambda **_: Closer())
    problem, matrix = settled(site, *asks)
    lock, plan, _ = app_close.close_problem(problem, (), matrix, lambda _: None)
    return lock, plan


def test_an_optional_member_that_the_closure_refuses_is_left_out(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, plan = close(site, monkeypatch, "Because fastattn==2.0 depends on nothing that is there, no.", "@work")
    assert "fastattn" not in plan["picks"] and picked(plan)["torch"] == "3.1.0"
    (row,) = plan["left_out"]
    assert row["why"].startswith("the closure over it was refused: Because fastattn==2.0")
    assert not [w for w in plan["warnings"] if w["rule"] == "older-torch"]
    assert all(pick.candidate.name != "fastattn" for pick in lock.solution.picks)


def test_a_refusal_that_names_no_optional_member_stands(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ClosureError, match="closure-refused"):
        close(site, monkeypatch, "Because arrays is broken, no.", "@work")
    with pytest.raises(ClosureError, match="closure-refused"):
        close(site, monkeypatch, "Because fastattn==2.0 is broken, no.", "@work", "fastattn")


def test_without_bundles_nothing_changes(site: Site) -> None:
    problem, matrix = settled(site, "torch")
    assert settle(problem, (), matrix) is problem and split(problem.asks, matrix) == (problem.asks, ())
    plan = site.plan("torch")
    assert "bundles" not in plan and "left_out" not in plan


def test_text_for_people(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--device", "Old 60", "--driver", "580.95.05", "--overlay", str(site.file)]
    assert main(["resolve", "@work", *words]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "left out of @work: fastattn" in out and "instead: use the built-in attention" in out
    assert main(["matrix", "show", "bundles", "--overlay", str(site.file)]) == 0
    listed = capsys.readouterr().out
    assert "torch, fastattn?, arrays" in listed and "accel-new | accel-old" in listed
    assert main(["matrix", "show", "@names", "--overlay", str(site.file)]) == 0
    assert "on cuda-12" in capsys.readouterr().out
    assert main(["matrix", "show", "@nmaes", "--overlay", str(site.file)]) == 3
    assert "@names" in capsys.readouterr().err
    assert main(["matrix", "stats", "--json", "--overlay", str(site.file)]) == 0
    assert json.loads(capsys.readouterr().out)["bundles"] == 8


def test_completion_knows_that_shells_cut_at_the_sign(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = complete.completer("ask")
    assert ask is not None
    monkeypatch.setenv("COMP_WORDS", "accel-env\nresolve\n@hou")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert ask("@hou") == ["@house"] and "torch" in ask("tor")
    monkeypatch.setenv("COMP_WORDS", "accel-env\nresolve\n@\nhou")
    monkeypatch.setenv("COMP_CWORD", "3")
    assert ask("hou") == ["house"] and ask("tor") == []
