"""A candidate against what was read out of its file: need by need, confirmed or otherwise. The binary wins."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from accel_env.matrix.inspected import Contents, Reading, TorchSymbols, requires_digest
from accel_env.model import Candidate, Fact, Need, Subject

_SONAMES = {"cuda": "libcudart.so.", "sycl": "libsycl.so."}
_MINORS = 30  # more than a major version of CUDA ever had


@dataclass(frozen=True, slots=True)
class Check:
    """One comparison. `need` is the need that it is about, None for what is no need; `instead`: that need as the binary has it,
    where the two differ and the need can say so."""

    subject: str
    agrees: bool
    documented: str
    read: str
    need: Need | None = None
    instead: Need | None = None
    text: str = ""


def checks_of(candidate: Candidate, reading: Reading) -> tuple[Check, ...]:
    """Everything of a candidate that the reading speaks about."""
    found = list(_said(candidate, reading))
    inside = None if candidate.variant and candidate.stack == "cpu" else reading.held.of(candidate.variant)
    if inside is not None:
        for need in candidate.needs:
            found.extend(_need(need, inside))
        found.extend(_provided(candidate, inside, reading))
        found.extend(_torch(candidate, reading))
    return tuple(found)


def _said(candidate: Candidate, reading: Reading) -> Iterator[Check]:
    """METADATA."""
    ours = requires_digest(candidate.requires)
    yield Check("requires", ours == reading.held.requires, ours, reading.held.requires)
    python = next((need.allows for need in candidate.needs if need.subject is Subject.PYTHON), "")
    if python:
        same = python == reading.held.python or SpecifierSet(python) == SpecifierSet(reading.held.python)
        yield Check("requires-python", same, python, reading.held.python or "nothing")


def _need(need: Need, inside: Contents) -> Iterator[Check]:
    if need.unknown:
        return
    if need.subject is Subject.LIBC and need.name == "glibc" and inside.glibc:
        yield from _floor(need, "glibc", inside.glibc)
    elif need.subject is Subject.LIBSTDCXX and inside.glibcxx:
        yield from _floor(need, "GLIBCXX", inside.glibcxx)
    elif need.subject is Subject.ARCH and need.name != "libraries":
        yield from _arch(need, inside)
    elif need.subject is Subject.TORCH:
        for key, start in _SONAMES.items():
            yield from _soname(need, key, start, inside)


def _floor(need: Need, word: str, read: str) -> Iterator[Check]:
    """A lower floor in the binary agrees, and the need goes on to rest on what asks for more: an installer goes by the tag."""
    floor = need.allows.removeprefix(">=")
    agrees = Version(read) <= Version(floor)
    instead = None if agrees else replace(need, allows=f">={read}")
    about = need if Version(read) >= Version(floor) else None
    text = f"its symbols need {word} {read}"
    yield Check(need.subject.value, agrees, f"{word} {floor}", f"{word} {read}", about, instead, text)


def _arch(need: Need, inside: Contents) -> Iterator[Check]:
    """The list is confirmed when the binary has code for all of it, and nothing beyond it throughout."""
    code = {*inside.code, *inside.some_code, *inside.gfx}
    ptx = {*inside.ptx, *inside.some_ptx}
    if not code and not ptx:
        return
    if inside.gfx and any(value.startswith("sm_") for value in need.values):
        code -= set(inside.gfx)
    lost = [value for value in need.values if value not in code]
    more = [value for value in (*inside.code, *_gfx(need, inside)) if value not in need.values]
    lost_jit = [value for value in need.jit if value not in ptx]
    more_jit = [value for value in inside.ptx if value not in need.jit]
    agrees = not (lost or more or lost_jit or more_jit)
    values = tuple(value for value in need.values if value not in lost) + tuple(more)
    jit = tuple(value for value in need.jit if value not in lost_jit) + tuple(more_jit)
    instead = None if agrees else replace(need, values=values, jit=jit)
    yield Check("arch", agrees, _lists(need.values, need.jit), _lists(values, jit), need, instead, _code_text(inside))


def _gfx(need: Need, inside: Contents) -> tuple[str, ...]:
    return inside.gfx if any(value.startswith("gfx") for value in need.values) else ()


def _lists(code: Iterable[str], jit: Iterable[str]) -> str:
    later = " ".join(sorted(jit))
    return " ".join(sorted(code)) + (f" | {later}" if later else "")


def _code_text(inside: Contents) -> str:
    parts = [f"code for {', '.join((*inside.code, *inside.gfx)) or 'no one architecture'} throughout"]
    parts += [f"in parts of it for {', '.join(inside.some_code)}"] if inside.some_code else []
    parts += [f"PTX for {', '.join(inside.ptx)}" if inside.ptx else "no PTX throughout"] if not inside.gfx else []
    parts += [f"PTX in parts of it for {', '.join(inside.some_ptx)}"] if inside.some_ptx else []
    return "; ".join(parts)


def _soname(need: Need, key: str, start: str, inside: Contents) -> Iterator[Check]:
    """The runtime that a library links, against the ABI that it wants of torch."""
    wanted = dict(need.abi).get(key)
    majors = sorted({name.removeprefix(start).partition(".")[0] for name in inside.needed if name.startswith(start)})
    if not wanted or len(majors) != 1:
        return
    major = majors[0]
    if wanted[:1] in "<>=!~":
        allowed = SpecifierSet(wanted)
        agrees = any(allowed.contains(f"{major}.{minor}") for minor in range(_MINORS))
    else:
        agrees = wanted.partition(".")[0] == major
    yield Check(f"torch {key}", agrees, f"{key} {wanted}", f"{start}{major}", need, None, f"links {start}{major}")


def _provided(candidate: Candidate, inside: Contents, reading: Reading) -> Iterator[Check]:
    """What a torch build offers to extensions."""
    provided = dict(candidate.provides)
    start = _SONAMES["cuda"]
    majors = sorted({name.removeprefix(start).partition(".")[0] for name in inside.needed if name.startswith(start)})
    if provided.get("cuda") and len(majors) == 1:
        ours = provided["cuda"].partition(".")[0]
        yield Check("provides cuda", ours == majors[0], ours, majors[0])
    read = reading.held.cxx11
    if provided.get("cxx11abi") and read:
        yield Check("provides cxx11abi", provided["cxx11abi"] == read, provided["cxx11abi"], read)


def _torch(candidate: Candidate, reading: Reading) -> Iterator[Check]:
    """The torch releases that the needs allow, against those that define the symbols."""
    torch = reading.held.torch
    if torch is None or candidate.name == "torch":
        return
    needs = [need for need in candidate.needs if _is_torch(need)]
    if torch.cxx11:
        for need in needs:
            wanted = dict(need.abi).get("cxx11abi")
            if wanted:
                yield Check("torch cxx11abi", wanted == torch.cxx11, wanted, torch.cxx11, need)
    allowed = SpecifierSet(",".join(need.allows for need in needs if need.allows))
    tried = [version for version in (*torch.fits, *torch.lacks) if allowed.contains(version, prereleases=True)]
    wrong = sorted((version for version in tried if version in torch.lacks), key=Version)
    if not tried:
        return
    about = next((need for need in needs if need.subject is Subject.TORCH), None)
    fits = ", ".join(sorted(torch.fits, key=Version)) or "no release read"
    text = f"wants {torch.symbols} symbols of torch{' (the stable C shim alone)' * torch.stable}, all defined by {fits}"
    text += f"; {wrong[-1]} lacks {torch.lacks[wrong[-1]]}" if wrong else ""
    documented = about.allows if about and not set(wrong) >= set(tried) else ""
    instead = replace(about, allows=_narrowed(documented, torch)) if wrong and about else None
    yield Check("torch", not wrong, str(allowed) or "any", f"fits {fits}", about, instead, text)


def _narrowed(allows: str, torch: TorchSymbols) -> str:
    """The specifier less the releases that lack symbols: from the first to the last that has them all, as far as was tried.
    Where none of what it allows has them, the caller leaves it out."""
    fits = sorted(torch.fits, key=Version)
    low, high = (Version(fits[0]), Version(fits[-1])) if fits else (Version("0"), Version("9999"))
    gaps = [f"!={version}" for version in sorted(torch.lacks, key=Version) if low < Version(version) < high]
    return ",".join([*([allows] if allows else []), *([f">={low}", f"<={high}"] if fits else []), *gaps])


def _is_torch(need: Need) -> bool:
    plain = need.subject is Subject.PACKAGE and need.name == "torch" and need.when != "absent" and not need.marker
    return (need.subject is Subject.TORCH or plain) and not need.unknown


def fact_of(reading: Reading, check: Check, documented: Fact | None) -> Fact:
    """The reading as the fact behind a need. The documented one is its doubt where the two differ.

    Symbols say which releases of torch define them, not which one a build belongs to: a doubtful pair stays doubtful.
    """
    said = f"documented otherwise ({check.documented}): {documented.source}" if documented and not check.agrees else ""
    if documented and check.agrees and check.subject == "torch":
        said = documented.doubt
    return Fact(
        id=f"inspected/{reading.package}:{reading.filename}#{check.subject.replace(' ', '-')}",
        text=f"{reading.filename}: {check.text}",
        source=f"ELF files and device code of {reading.filename} ({reading.index}), read on {reading.read}",
        grade="measured", checked=reading.read, doubt=said,
    )
