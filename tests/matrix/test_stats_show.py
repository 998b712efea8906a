"""Counts and contents as mappings, ready for JSON."""
from __future__ import annotations

import json
from pathlib import Path

import pytest

from accel_env.errors import InputError, UsageError
from accel_env.matrix.load import open_matrix
from accel_env.matrix.show import show
from accel_env.matrix.stats import stats


def test_counts(root: Path) -> None:
    found = json.loads(json.dumps(stats(open_matrix(root))))
    assert found["totals"] == {
        "packages": 4, "releases": 6, "builds": 7, "candidates": 10, "wheels": 16, "devices": 4, "pci_ids": 3, "facts": 48,
        "hashes": 3,
    }
    assert found["packages"]["torch"] == {
        "releases": 2, "builds": 3, "candidates": 5, "wheels": 9, "hashed": 4, "unselectable": 1,
    }
    assert found["packages"]["ext"]["unselectable"] == 1
    assert found["facts"] == {"vendor": 43, "measured": 2, "community": 3, "with doubt": 1}
    assert found["artifacts"]["house:zz20"] == {"files": 4, "hashes": 2, "seen twice or more": 1, "in conflict": 1}
    assert found["images"] == {"all": 4, "with digest": 4, "default": 3}
    assert found["stacks"] == {"cpu": 0, "zz": 2} and found["devices"] == {"acme": 4}


def test_one_release(root: Path) -> None:
    found = json.loads(json.dumps(show(open_matrix(root), "Ext == 2.0")))
    assert (found["package"], found["releases"]) == ("ext", ["2.0"])
    build = found["builds"][0]
    assert (build["version"], build["build"], build["platform"], build["stack"], build["tags"], build["index"]) == (
        "2.0", "any", "linux_x86_64", "zz-20.0", ["py3"], "pypi",
    )
    assert {"need": "kernel", "allows": ">=6.2", "soft": True, "fact": "packages/ext:loader"} in build["needs"]
    assert [note["stack"] for note in found["absent"]] == ["cpu", "zz"]
    assert [fact["id"] for fact in found["facts"]] == ["packages/ext:metadata", "packages/ext:loader", "packages/ext:absent"]
    assert found["facts"][1]["grade"] == "measured"


def test_a_whole_package(root: Path) -> None:
    found = show(open_matrix(root), "torch")
    assert found["releases"] == ["9.1.0", "9.0.0"]
    assert json.loads(json.dumps(found))["facts"][-1]["doubt"] == "only one page says so"


def test_what_there_is_not(root: Path) -> None:
    matrix = open_matrix(root)
    with pytest.raises(UsageError, match="is no package"):
        show(matrix, "torch==")
    with pytest.raises(InputError, match="no package `vllm`"):
        show(matrix, "vllm")
    with pytest.raises(InputError, match="no release of torch that fits `==8`") as caught:
        show(matrix, "torch==8")
    assert caught.value.hint == "it has: 9.0.0, 9.1.0" or caught.value.hint == "it has: 9.1.0, 9.0.0"
