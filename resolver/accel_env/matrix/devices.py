"""Finding a product by the name that a driver or a person wrote, or by its PCI id."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from accel_env.matrix.types import DeviceRow

_MARKS = r"\((?:r|tm|c)\)|[®™©]"
_WORD = r"[a-z0-9]+"
_TOKEN = r"[a-z]+|[0-9]+"
_MEMORY = r"(?<![a-z0-9])\d+(?:\.\d+)?\s*(?:g|gb|gib)(?![a-z0-9])"
# What people and drivers write around the name of a product; without one it means nothing.
_AROUND = frozenset({
    "gpu", "gpus", "graphics", "card", "cards", "accelerator", "accelerators", "device", "devices", "video", "display",
    "adapter", "controller", "laptop", "mobile", "desktop", "server", "workstation", "edition", "generation", "module",
    "corporation", "corp", "inc", "developer", "kit", "devkit",
})
# What tells a board's form, memory or share: beside a name that is known it changes nothing.
_FORM = r"(?:sxm|pcie|oam|mxm|nvl|nvlink|hbm|gddr|ddr|lpddr)\d*[a-z]?|\d+[abcq]|grid|mig|with|max|q|design|an?|the|my"

# One vendor, as compiled: PCI vendor, words to strip, flat rows, key -> place, PCI id -> place.
VendorTable = tuple[str, tuple[str, ...], tuple[tuple[object, ...], ...], Mapping[str, int], Mapping[str, int]]
# (vendor, text) -> (length of what was found, place of the row)
Stage = Callable[[str, str], list[tuple[int, int]]]


def plain_words(text: str) -> list[str]:
    """The words of a text in lower case, none stripped."""
    import re

    return re.findall(_WORD, re.sub(_MARKS, " ", text.lower()))


def words_of(text: str, strip: tuple[str, ...]) -> list[list[str]]:
    """The words that count, each cut where letters meet digits: `Tesla V100-SXM2` -> [[v, 100], [sxm, 2]]."""
    import re

    return [re.findall(_TOKEN, word) for word in plain_words(text) if word not in strip]


def key_of(text: str, strip: tuple[str, ...]) -> str:
    """The words that count as one key; two spellings of one name have one key."""
    return " ".join(token for word in words_of(text, strip) for token in word)


class DeviceTable:
    """All products of the matrix."""

    def __init__(self, vendors: Mapping[str, VendorTable]) -> None:
        self._vendors = vendors

    def __iter__(self) -> Iterator[DeviceRow]:
        for vendor, table in self._vendors.items():
            for place in range(len(table[2])):
                yield self._row(vendor, place)

    def __len__(self) -> int:
        return sum(len(table[2]) for table in self._vendors.values())

    def vendors(self) -> Mapping[str, str]:
        """Vendor -> PCI vendor id (empty where it has none)."""
        return {vendor: table[0] for vendor, table in self._vendors.items()}

    def by_name(self, vendor: str | None, text: str) -> DeviceRow | None:
        """The product that the text names, None where it names none or several of different architectures.

        First the exact name or alias; then those that hold the whole text; then the longest one that the text holds. What is
        held begins and ends at word borders: `A100X` is no A100.
        """
        return self._first((self._exact, self._wider, self._longest), text, vendor)

    def meant(self, text: str) -> DeviceRow | None:
        """The product that a person means: as `heard`, None where the text says more than the table understands."""
        row = self.heard(text)
        return None if row is None or self.unheard(text, row) else row

    def unheard(self, text: str, row: DeviceRow) -> str:
        """The words of a text beyond the product that was heard in it; forms, memory and what stands in parentheses aside."""
        import re

        said = ""
        # `chip [product]` is how lists of PCI devices write it
        for tried in (text, re.sub(r"\([^()]*\)", " ", text), *re.findall(r"\[([^\[\]]+)\]", text)[-1:]):
            words = [word for word in self.core(tried).split() if not re.fullmatch(_FORM, word)]
            if any(self._first((self._exact, self._wider), one) for one in (tried, self.core(tried), " ".join(words))):
                return ""
            span = self._span(row.vendor, " ".join(words))
            left = " ".join([*words[:span[0]], *words[span[1]:]]) if span else ""
            if span and not left:
                return ""
            said = said or left
        return said

    def heard(self, text: str) -> DeviceRow | None:
        """The product that a text holds: as `by_name`, but a memory size beside the name is tolerated, and words that name no
        product (`gpu`, a vendor) never find one by themselves.
        """
        core = self.core(text)
        if not core:
            typed = plain_words(text)
            return next((row for row in self if typed in map(plain_words, (row.name, *row.aliases))), None)
        return self._first((self._exact, self._wider), text) or self.by_name(None, core)

    def core(self, text: str) -> str:
        """The words of a text that can name a product: without memory sizes, vendors, what their tables strip, and `gpu`."""
        import re

        around = _AROUND.union(self._vendors, *(table[1] for table in self._vendors.values()))
        words = [word for word in plain_words(re.sub(_MEMORY, " ", text.lower())) if word not in around]
        return " ".join(words) if any(len(word) > 1 for word in words) else ""

    def by_pci(self, pci_vendor: str, pci_id: str) -> DeviceRow | None:
        """The product with this PCI vendor and device id (hex, `0x` or not)."""
        wanted = pci_vendor.lower().removeprefix("0x")
        device = pci_id.lower().removeprefix("0x").zfill(4)
        for vendor, table in self._vendors.items():
            if table[0] == wanted and device in table[4]:
                return self._row(vendor, table[4][device])
        return None

    def nearest(self, text: str, n: int = 5) -> tuple[str, ...]:
        """Up to n product names like the text, the likest first."""
        import difflib

        named: dict[str, str] = {}
        wanted: set[str] = set()
        for vendor, table in self._vendors.items():
            wanted.add(key_of(text, table[1]))
            named.update((key, self._row(vendor, place).name) for key, place in table[3].items() if key not in named)
        close: list[str] = []
        for key in sorted(wanted):
            close += difflib.get_close_matches(key, named, n=n * 2, cutoff=0.5)
        return tuple(dict.fromkeys(named[key] for key in close))[:n]

    def _first(self, stages: Sequence[Stage], text: str, vendor: str | None = None) -> DeviceRow | None:
        """The product of the first stage that finds any, None where that finds several of different architectures."""
        chosen = [name for name in ([vendor] if vendor else self._vendors) if name in self._vendors]
        for stage in stages:
            best = max((length for name in chosen for length, _ in stage(name, text)), default=0)
            rows = [self._row(name, place) for name in chosen for length, place in stage(name, text) if length == best]
            if rows:
                return rows[0] if len({(row.vendor, row.arch, row.unsupported) for row in rows}) == 1 else None
        return None

    def _row(self, vendor: str, place: int) -> DeviceRow:
        return DeviceRow(*self._vendors[vendor][2][place])  # type: ignore[arg-type]

    def _exact(self, vendor: str, text: str) -> list[tuple[int, int]]:
        table = self._vendors[vendor]
        key = key_of(text, table[1])
        return [(len(key), table[3][key])] if key in table[3] else []

    def _longest(self, vendor: str, text: str) -> list[tuple[int, int]]:
        span = self._span(vendor, text)
        return [span[2:]] if span else []

    def _span(self, vendor: str, text: str) -> tuple[int, int, int, int] | None:
        """Of the longest name that the text holds: first word, the one after its last, length, place of the row."""
        table = self._vendors[vendor]
        words = words_of(text, table[1])
        for size in range(len(words) - 1, 0, -1):
            for start in range(len(words) - size + 1):
                key = " ".join(token for word in words[start:start + size] for token in word)
                # A bare number in a longer text is a memory size or a driver as often as a product.
                if key in table[3] and not key.isdigit():
                    return start, start + size, len(key), table[3][key]
        return None

    def _wider(self, vendor: str, text: str) -> list[tuple[int, int]]:
        """All products whose name or alias holds the text get one length; the shortest comes first."""
        table = self._vendors[vendor]
        key = key_of(text, table[1])
        if not key:
            return []
        found = sorted((len(other), place) for other, place in table[3].items() if f" {key} " in f" {other} ")
        return [(1, place) for _, place in found if self._has_words(vendor, place, key)]

    def _has_words(self, vendor: str, place: int, key: str) -> bool:
        """Whether whole words of a name or alias of the row make up the key."""
        row, strip = self._row(vendor, place), self._vendors[vendor][1]
        for text in (row.name, *row.aliases):
            words = [" ".join(word) for word in words_of(text, strip)]
            if any(" ".join(words[start:end]) == key for start in range(len(words)) for end in range(start + 1, len(words) + 1)):
                return True
        return False
