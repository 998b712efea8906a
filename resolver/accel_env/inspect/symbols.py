"""What an extension asks of torch, by the names of its undefined symbols."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

# The outermost namespace of a mangled name, behind what marks methods, tables and guards: its length and its name.
_MANGLED = re.compile(rb"_Z(?:T[A-Z]|GV)?N?[KVROr]*(?:2at|3c10|5torch|6caffe2)")
_PYTHON = re.compile(rb"(?:_Z[0-9]+)?_?THP[A-Z]\w+")
_STABLE = re.compile(rb"(?:aoti_)?torch_\w+")
_CXX11 = (b"__cxx11", b"B5cxx11")
_OLD_STRING = re.compile(rb"(?<![A-Za-z0-9])Ss(?![a-z])|RKSs|PKSs|ESs|_Ss|vSs")


@dataclass(frozen=True, slots=True)
class TorchUse:
    """`wanted`: the symbols of torch that a wheel does not define itself, sorted; `stable`: all of them belong to the C shim that
    stays the same over releases; `cxx11`: std::string of the new ABI in them, None where no name tells."""

    wanted: tuple[str, ...]
    stable: bool
    cxx11: bool | None


def is_torch(name: bytes) -> bool:
    """Whether a symbol is torch's by its name."""
    return bool(_STABLE.fullmatch(name) or _MANGLED.match(name) or _PYTHON.fullmatch(name))


def torch_use(undefined: Iterable[bytes], defined: Iterable[bytes]) -> TorchUse | None:
    """What all libraries of a wheel together ask of torch; None where they ask nothing."""
    own = set(defined)
    wanted = sorted({name for name in undefined if name not in own})
    if not wanted:
        return None
    stable = all(_STABLE.fullmatch(name) for name in wanted)
    texts = tuple(name.decode("utf-8", "replace") for name in wanted)
    return TorchUse(texts, stable, new_strings(wanted))


def new_strings(names: Iterable[bytes]) -> bool | None:
    """Whether the names hold std::string of the new C++ ABI rather than of the old one; None where no name holds one.

    By majority: a library of the old ABI may pass on a few names of the new one that it took in.
    """
    new = old = 0
    for name in names:
        if any(mark in name for mark in _CXX11):
            new += 1
        elif _OLD_STRING.search(name):
            old += 1
    return new > old if new or old else None
