"""Every signature finds real texts and leaves near misses alone; texts and logs are read as a whole and in bounded time."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from accel_env.errors import InputError
from accel_env.judge import signatures
from accel_env.judge.signatures import Table
from accel_env.judge.text_table import DOCUMENT
from accel_env.judge.types import Clue
from accel_env.matrix.load import Matrix, open_matrix

EXAMPLES = Path(__file__).parents[1] / "signatures"


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return open_matrix()


@pytest.fixture(scope="module")
def table(matrix: Matrix) -> Table:
    return signatures.load(matrix, strict=True)


def examples() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(EXAMPLES.glob("*.yaml")):
        for name, row in yaml.safe_load(path.read_text(encoding="utf-8")).items():
            assert name not in found, f"{name} stands in two files"
            found[name] = row
    return found


EXAMPLE_ROWS = examples()


def clues_of(name: str, text: str, matrix: Matrix, table: Table) -> list[Clue]:
    return [clue for clue in signatures.read([text], matrix, table) if clue.signature == name]


def test_every_signature_has_examples_and_near_misses(table: Table) -> None:
    known = {signature.id for signature in table.signatures}
    assert known == set(EXAMPLE_ROWS)
    assert not [name for name, row in EXAMPLE_ROWS.items() if not row.get("find") or not row.get("miss")]


@pytest.mark.parametrize("name", EXAMPLE_ROWS)
def test_examples_are_found(name: str, matrix: Matrix, table: Table) -> None:
    for example in EXAMPLE_ROWS[name]["find"]:
        found = clues_of(name, example["text"], matrix, table)
        assert found, f"{name} does not find {example['text']!r}"
        clue = found[0]
        assert clue.component == example.get("component", clue.component)
        assert clue.rule == example.get("rule", clue.rule)
        for key, value in example.get("proves", {}).items():
            assert any(each.facts.get(key) == str(value) for each in found), (key, value, [dict(each.facts) for each in found])


@pytest.mark.parametrize("name", EXAMPLE_ROWS)
def test_near_misses_are_left_alone(name: str, matrix: Matrix, table: Table) -> None:
    for text in EXAMPLE_ROWS[name]["miss"]:
        assert not clues_of(name, text, matrix, table), f"{name} finds {text!r}"


def test_every_signature_rests_on_a_fact(matrix: Matrix, table: Table) -> None:
    for signature in table.signatures:
        fact = matrix.fact(signature.fact)
        assert fact.source and fact.grade


RULES = """
driver-too-old-for-cuda-runtime driver-missing driver-userspace-kernel-mismatch driver-userspace-pair-mismatch
open-kernel-module-required kernel-driver-not-loaded kernel-module-missing fabric-manager-missing gpu-arch-not-in-wheel
gpu-arch-not-in-toolchain gpu-arch-unsupported-by-package backend-unsupported-by-package gfx-not-in-wheel
gfx-not-in-library wrong-isa-override false-positive-warning container-gpu-runtime-missing
container-requirement-unsatisfied forward-compat-unsupported-hw cuda-compat-lib-shadows-host-driver device-not-passed
device-permission driver-lib-not-on-path extension-abi-mismatch extension-cuda-major-mismatch package-pair-mismatch
package-pin-conflict native-lib-missing-for-runtime version-string-misparsed soname-mismatch
system-cuda-lib-shadows-wheel numpy-abi cpu-only-build duplicate-install vendor-build-overwritten
vendor-stack-version-mismatch python-no-wheel platform-no-wheel no-prebuilt-wheel glibc-too-old libstdcxx-too-old
wrong-index index-metadata-missing-deps pinned-version-unavailable local-version-not-normalised tool-matrix-gap
build-toolchain-missing build-toolchain-version-mismatch runtime-compiler-missing path-with-space
"""


def test_every_rule_is_told_by_some_text(table: Table) -> None:
    assert {signature.rule for signature in table.signatures} == set(RULES.split())


def test_unknown_texts_give_nothing(matrix: Matrix, table: Table) -> None:
    for text in ("", "   ", "ZeroDivisionError: division by zero", "everything works", "\0\x01\udcff", "loss 0.123 " * 500):
        assert signatures.read([text], matrix, table) == ()


# --- logs -------------------------------------------------------------------------------------------------------------

FATAL = "RuntimeError: The NVIDIA driver on your system is too old (found version 12080)."


def filler(count: int) -> Iterator[str]:
    for number in range(count):
        yield f"2026-01-02 03:04:{number % 60:02d} INFO step {number} loss {number / 7:.4f}"


def test_the_deciding_line_of_a_long_log(matrix: Matrix, table: Table) -> None:
    lines = [*filler(20_000), FATAL, *filler(20_000)]
    scan = signatures.scan_log(lines, matrix, table)
    assert [clue.signature for clue in scan.clues] == ["cuda-driver-too-old"]
    assert scan.lines == ((20_001, FATAL),)
    assert scan.size == sum(len(line) + 1 for line in lines)


@pytest.mark.parametrize("shift", [0, 1, 17, 40, 80, 300, 700, 1800])
def test_a_text_on_the_border_of_two_blocks_is_found_once(shift: int, matrix: Matrix, table: Table) -> None:
    from accel_env.judge.text_scan import BLOCK, Scanner

    text = (
        "Found GPU0 GTX 1080 which is of cuda capability 6.1.\n"
        "  Minimum and Maximum cuda capability supported by this version\n (7.0) - (12.0)\n"
    )
    scanner = Scanner(table)
    whole = (b"x" * 99 + b"\n") * (BLOCK // 100)
    content = whole[: BLOCK - shift] + b"\n" + text.encode() + whole
    for start in range(0, len(content), BLOCK):
        scanner.feed(content[start : start + BLOCK])
    found = [hit for hit in scanner.hits() if hit.clue.signature == "arch-range"]
    assert [hit.clue.facts["arch"] for hit in found] == ["sm_61"]
    assert found[0].line == content[: found[0].offset].count(b"\n") + 1


def test_logs_of_windows_shells_are_read(tmp_path: Path, matrix: Matrix, table: Table) -> None:
    for name, mark, encoding in (("le", codecs.BOM_UTF16_LE, "utf-16-le"), ("be", codecs.BOM_UTF16_BE, "utf-16-be")):
        path = tmp_path / name
        path.write_bytes(mark + f"start\r\n{FATAL}\r\n".encode(encoding))
        scan = signatures.scan_log(path, matrix, table)
        assert [clue.signature for clue in scan.clues] == ["cuda-driver-too-old"] and scan.lines == ((2, FATAL),)


def test_a_log_that_cannot_be_read_is_refused(tmp_path: Path, matrix: Matrix, table: Table) -> None:
    with pytest.raises(InputError, match="No such file") as caught:
        signatures.scan_log(tmp_path / "missing.log", matrix, table)
    assert caught.value.reference == "log-unreadable" and caught.value.exit_code == 3
    with pytest.raises(InputError):
        signatures.scan_log(tmp_path, matrix, table)


def test_a_log_that_repeats_itself_gives_each_clue_once(matrix: Matrix, table: Table) -> None:
    scan = signatures.scan_log([FATAL] * 5_000, matrix, table)
    assert len(scan.clues) == 1 and scan.lines == ((1, FATAL),)


def test_prefixes_of_servers_do_not_hide_a_message_of_several_lines(matrix: Matrix, table: Table) -> None:
    text = "\n".join(
        f"(EngineCore_DP0 pid=85718) ERROR 03-06 10:56:53 [core.py:1006] {line}"
        for line in (
            "The detected CUDA version (12.9) mismatches the version that was used to compile",
            "PyTorch (11.8). Please make sure",
        )
    )
    assert [clue.facts["nvcc"] for clue in signatures.read([text], matrix, table)] == ["12.9"]


def test_the_heavier_clue_comes_first_and_the_vaguer_one_goes(matrix: Matrix, table: Table) -> None:
    text = "x/flash_attn_2_cuda.so: undefined symbol: _ZN3c104cuda9SetDeviceEi\nRuntimeError: CUDA error: invalid device ordinal"
    names = [clue.signature for clue in signatures.read([text], matrix, table)]
    assert names == ["symbol-setdevice-old", "cuda-ordinal"]


def test_clues_of_several_texts_come_together(matrix: Matrix, table: Table) -> None:
    found = signatures.read([FATAL, "RuntimeError: operator torchvision::nms does not exist", FATAL], matrix, table)
    assert {clue.signature for clue in found} == {"cuda-driver-too-old", "torchvision-nms"}
    assert [clue.weight for clue in found] == sorted((clue.weight for clue in found), reverse=True)


# --- the file ---------------------------------------------------------------------------------------------------------


class Document:
    """A matrix that holds nothing but signatures."""

    def __init__(self, **content: object) -> None:
        self._content = content

    def document(self, name: str) -> dict[str, Any]:
        return dict(self._content) if name == DOCUMENT else {}


ROW = {
    "id": "one",
    "needles": ["a needle"],
    "pattern": r"a needle (?P<size>\d{1,3})",
    "rule": "numpy-abi",
    "components": ["numpy"],
    "weight": 50,
    "fact": "signatures:f",
}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"pattern": r"a needle (\d{1,3}){2,9}"}, "nests repetitions"),
        ({"pattern": r"a needle .*x"}, "without a bound"),
        ({"pattern": "a needle ("}, "no regular expression"),
        ({"pattern": "(a needle)?"}, "empty text"),
        ({"components": ["{width}"]}, "no group"),
        ({"components": ["{size|thing}"]}, "neither a filter nor a look-up"),
        ({"weight": 0}, "from 1 to 100"),
        ({"needles": ["abc"]}, "4 to 200"),
        ({"over": ["two"]}, "none of them"),
        ({"severity": "bad"}, "none of"),
        ({"fixes": [{"kind": "prayer"}]}, "none of"),
        ({"colour": "red"}, "unknown key"),
    ],
)
def test_faulty_rows_are_refused(change: dict[str, object], complaint: str) -> None:
    with pytest.raises(InputError) as caught:
        signatures.load(Document(signatures=[{**ROW, **change}]), strict=True)
    assert complaint in str(caught.value) and "signatures.yaml" in str(caught.value)


def test_an_id_stands_once() -> None:
    with pytest.raises(InputError, match="twice"):
        signatures.load(Document(signatures=[ROW, ROW]))


def test_a_matrix_without_signatures_gives_no_clues() -> None:
    assert signatures.read([FATAL], Document()) == ()


def test_fixes_without_their_captures_are_left_out() -> None:
    fixes = [{"kind": "package", "name": "numpy", "spec": "<{size}"}, {"kind": "action", "do": "rest"}]
    row = {**ROW, "pattern": r"a needle(?: (?P<size>\d{1,3}))?", "fixes": fixes, "proves": {"size": "{size}"}}
    table = Document(signatures=[row])
    (bare,), (full,) = (signatures.read([text], table) for text in ("a needle", "a needle 7"))
    assert [fix.kind for fix in bare.fixes] == ["action"] and bare.facts == {}
    assert [fix.spec for fix in full.fixes] == ["<7", ""] and full.facts == {"size": "7"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{n|driver_number}", "12.8"),
        ("{short|after2}", "12.9"),
        ("{short|after1}", "1.29"),
        ("{v|minor}", "2.8"),
        ("{v|patch}", "2.8.0"),
        ("{v|label}", "cu128"),
        ("{none/v|major}", "2"),
        ("{name|name}", "flash-attn"),
        ("{so|module}", "bitsandbytes"),
        ("{so|module|table}", "bnb"),
        ("{bare|module}", "flash_attn_2_cuda"),
        ("{archs|archs}", "compute_90 sm_80 sm_90"),
        ("{win|module}", "torchaudio"),
        ("plain", "plain"),
    ],
)
def test_placeholders(text: str, value: str) -> None:
    from accel_env.judge.text_fill import fill

    captures: dict[str, str | None] = {
        "n": "12080",
        "short": "129",
        "v": "2.8.0+cu128",
        "none": None,
        "name": "Flash_Attn",
        "archs": "sm_90 sm_80 compute_90",
        "so": "/x/lib/python3.10/site-packages/bitsandbytes/libbitsandbytes_cuda128.so",
        "bare": "flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so",
        "win": "C:\\venv\\lib\\site-packages\\torchaudio\\lib\\libtorchaudio.pyd",
    }
    assert fill(text, captures, {"table": {"bits*": "bnb"}}) == value


@pytest.mark.parametrize("text", ["{none}", "{n|minor}", "{v|table}", "{name|driver_number}"])
def test_placeholders_without_a_value(text: str) -> None:
    from accel_env.judge.text_fill import Unfilled, fill

    with pytest.raises(Unfilled):
        fill(text, {"none": None, "n": "12080", "v": "1", "name": "x"}, {"table": {}})
