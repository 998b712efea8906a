"""Products by the names that drivers and people write, and by PCI id."""
from __future__ import annotations

import pytest

from accel_env.matrix.compile import pack_vendor
from accel_env.matrix.devices import DeviceTable, key_of, words_of
from accel_env.matrix.tables import Vendor
from accel_env.matrix.types import DeviceRow


def row(vendor: str, name: str, arch: str, *aliases: str, pci: tuple[str, ...] = ()) -> DeviceRow:
    return DeviceRow(vendor, name, arch, aliases, pci, fact="f")


ACME = Vendor("acme", "10de", ("acme", "geforce", "tesla"), (
    row("acme", "GeForce RTX 4090", "a89", pci=("2684",)),
    row("acme", "GeForce RTX 4090 Laptop GPU", "a89"),
    row("acme", "Tesla V100 SXM2", "a70", "V100-SXM2"),
    row("acme", "Tesla V100S", "a70"),
    row("acme", "A100", "a80"),
    row("acme", "H100", "a90"),
    row("acme", "GH200", "a90"),
    row("acme", "RTX 4000", "a75"),
    row("acme", "RTX 4000 Ada Generation", "a89"),
    row("acme", "GeForce GTX TITAN X", "a52"),
))
OTHER = Vendor("other", "1002", ("other", "radeon"), (
    row("other", "Instinct MI300X", "g942", "Instinct MI300X OAM", pci=("74a1",)),
    row("other", "Radeon RX 7900 XTX", "g1100", "Navi 31 [Radeon RX 7900 XT/7900 XTX]"),
    row("other", "Radeon 550", "g803"),
))
TABLE = DeviceTable({vendor.vendor: pack_vendor(vendor) for vendor in (ACME, OTHER)})


@pytest.mark.parametrize(("text", "name"), [
    ("GeForce RTX 4090", "GeForce RTX 4090"),
    ("ACME GeForce RTX 4090", "GeForce RTX 4090"),
    ("rtx4090", "GeForce RTX 4090"),
    ("4090", "GeForce RTX 4090"),
    ("RTX 4090 Laptop GPU", "GeForce RTX 4090 Laptop GPU"),
    ("Tesla V100-SXM2-32GB", "Tesla V100 SXM2"),
    ("v100", "Tesla V100 SXM2"),
    ("Acme A100-SXM4-80GB MIG 1g.5gb", "A100"),
    ("Acme H100 80GB HBM3", "H100"),
    ("Acme GH200 480GB", "GH200"),
    ("RTX 4000", "RTX 4000"),
    ("RTX 4000 Ada", "RTX 4000 Ada Generation"),
    ("MI300X", "Instinct MI300X"),
    ("Other Instinct(TM) MI300X OAM", "Instinct MI300X"),
    ("7900 XTX", "Radeon RX 7900 XTX"),
    ("rx7900xtx", "Radeon RX 7900 XTX"),
    ("550", "Radeon 550"),
])
def test_names_as_written(text: str, name: str) -> None:
    found = TABLE.by_name(None, text)
    assert found is not None and found.name == name


@pytest.mark.parametrize("text", [
    "", "acme", "RTX 9090", "A100X", "driver 550", "4000", "MI300", "H10", "XTX Acme RTX", "RTX",
])
def test_no_guess(text: str) -> None:
    """Unknown, glued to something else, or of several architectures."""
    assert TABLE.by_name(None, text) is None


def test_a_vendor_limits_the_search() -> None:
    assert TABLE.by_name("other", "H100") is None
    assert TABLE.by_name("nobody", "H100") is None
    found = TABLE.by_name("acme", "H100")
    assert found and found.arch == "a90"


@pytest.mark.parametrize(("vendor", "device"), [("10de", "2684"), ("0x10DE", "0x2684"), ("1002", "74a1"), ("1002", "74A1")])
def test_pci(vendor: str, device: str) -> None:
    assert TABLE.by_pci(vendor, device) is not None


def test_pci_ids_belong_to_their_vendor() -> None:
    assert TABLE.by_pci("1002", "2684") is None and TABLE.by_pci("10de", "ffff") is None


def test_nearest_names() -> None:
    assert TABLE.nearest("RTX 4900")[0] == "GeForce RTX 4090"
    assert "H100" in TABLE.nearest("H10")
    assert len(TABLE.nearest("RTX 4000 Ada Gen", 2)) == 2
    assert TABLE.nearest("zzzzzz") == ()


def test_all_rows_are_there() -> None:
    assert len(TABLE) == len(list(TABLE)) == 13
    assert TABLE.vendors() == {"acme": "10de", "other": "1002"}


def test_keys() -> None:
    assert words_of("Tesla V100-SXM2", ("tesla",)) == [["v", "100"], ["sxm", "2"]]
    assert key_of("Acme® RTX™ 4090 (R)", ("acme",)) == "rtx 4090"
