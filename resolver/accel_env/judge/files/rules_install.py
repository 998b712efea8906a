"""Findings about where and how packages are taken: indexes, labels, hashes, nightlies, swallowed words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from accel_env.judge.files.pick import exact
from accel_env.judge.files.pool import PYPI, Places, doubtful, home_of, places, pool, requires_of
from accel_env.judge.files.requirements import IGNORED
from accel_env.judge.files.values import UNKNOWN, Install, Wanted
from accel_env.judge.types import Finding, Fix
from accel_env.model import Subject
from accel_env.solve.versions import allows, parse, split_stack

if TYPE_CHECKING:
    from accel_env.judge.files.scope import Scope
    from accel_env.judge.files.state import Missing

_FAMILY = "torch"
NAMES = 4  # of packages in one sentence


def install_findings(scope: Scope) -> Iterator[Finding]:
    """Everything about the installs of a scene."""
    for step in scope.scene.steps:
        if isinstance(step, Install):
            yield from _indexes(scope, step)
            yield from _swallowed(scope, step)
            yield from _nightly(scope, step)
            yield from _backend(scope, step)
    yield from _hashes(scope)
    yield from _ignored(scope)
    for missing in scope.state.missing:
        yield from _missing(scope, missing)


def _of_family(scope: Scope, install: Install) -> list[Wanted]:
    """The requirements whose builds differ by index."""
    index = scope.matrix.candidates(_FAMILY, "linux_x86_64")
    keys = {c.index.partition(":")[0] for c in index if c.build.startswith("cu") and c.index != PYPI}
    found = []
    for one in install.wanted:
        if any(c.index.partition(":")[0] in keys for c in scope.matrix.candidates(one.name, scope.host.platform)):
            found.append(one)
    return found


def _indexes(scope: Scope, install: Install) -> Iterator[Finding]:
    """An index of torch builds beside PyPI: the higher version wins, whatever its build."""
    if install.first_index or install.tool in ("conda", "poetry") or UNKNOWN in install.extras:
        return
    rows, lacking = [], []
    for one in _of_family(scope, install):
        where = places(one, install, scope.matrix)
        others = tuple(key for key in where.keys if key != PYPI)
        settled = one.locked or one.url or "+" in one.spec or one.index
        if settled or PYPI not in where.keys or not any(":" in key for key in others) or _follows(scope, one):
            continue
        if not exact(one.spec):
            rows.append(one)
        elif not pool(one, Places(others), scope.matrix, scope.host.platform) and not where.unknown:
            lacking.append(one)
    url = next((u for u in (*install.extras, *install.links, install.index) if u and "pypi" not in u), "")
    family = " ".join(w.text for w in _of_family(scope, install))
    command = f"pip install {family} --index-url {url}"
    line = scope.scene.options.get("extras", "")
    if rows:
        text = f"{_names([w.name for w in rows])}: {url} stands beside PyPI, and pip takes the highest version of both: "
        text += "a newer release on PyPI is another build"
        reasons = (scope.because("index", "an extra index does not come first", scope.tables.note("extra-index")),)
        fixes = (Fix("index", do="name one index for the torch family, in a command of its own", command=command),)
        yield scope.finding("wrong-index", rows[0].name, "warning", text, line or rows[0].where, reasons, fixes)
    for one in lacking:
        yield _elsewhere(scope, one, url, line or one.where)


def _follows(scope: Scope, wanted: Wanted) -> bool:
    """Whether another package's pin settles the release: where an index beside PyPI has it, its label makes it the higher one."""
    here = scope.state.packages.get(wanted.name)
    if exact(wanted.spec) or here is None or not here.candidates:
        return False
    pinned = {p.name for p in scope.state.packages.values() if not p.free}
    said = requires_of(here.candidates[0].requires, scope.host.platform, scope.state.python)
    return any(exact(spec) and name in pinned for name, spec in said)


def _elsewhere(scope: Scope, one: Wanted, url: str, where: str) -> Finding:
    """A pin that the index beside PyPI does not hold: PyPI's build is taken."""
    here = scope.state.packages.get(one.name)
    taken = f": pip takes PyPI's {here.label}" if here is not None and here.candidates else ""
    text = f"{one.text}: {url} has no such release{taken}"
    fact = here.candidates[0].fact if here is not None and here.candidates else scope.tables.note("extra-index")
    reasons = (scope.because("index", "an extra index does not come first", fact),)
    rows = [c for c in scope.matrix.candidates(one.name, scope.host.platform) if allows(one.spec, c.version)]
    labels = list(dict.fromkeys(c.index for c in rows if ":" in c.index and scope.index_url(c.index)))
    fixes = [Fix("index", k.partition(":")[2], do=f"name an index that has it: {scope.index_url(k)}") for k in labels[:3]]
    return scope.finding("wrong-index", one.name, "warning", text, where, reasons, fixes)


def _swallowed(scope: Scope, install: Install) -> Iterator[Finding]:
    for word in install.swallowed:
        if re.match(r"=\d|\d+\.\d", word):
            reasons = (scope.because("shell", f"the shell writes into a file named {word}", scope.tables.note("redirect")),)
            fixes = (Fix("action", do="put the requirement in quotes"),)
            text = f"an unquoted > in this command is a redirection into {word}: the bound never reaches {install.tool}"
            yield scope.finding("version-string-misparsed", install.tool, "warning", text, install.where, reasons, fixes)


def _ignored(scope: Scope) -> Iterator[Finding]:
    """An index behind a requirement, which counts for nothing there."""
    where = scope.scene.options.get(IGNORED, "")
    if where:
        text = "an index or a place for wheels stands behind a requirement: pip reads these options on lines of their own alone"
        reasons = (scope.because("index", text, scope.tables.note("line-option")),)
        fixes = (Fix("action", do="put the option on a line of its own, above the requirements; it then counts for all of them"),)
        yield scope.finding("wrong-index", "pip", "warning", text, where, reasons, fixes)


def _nightly(scope: Scope, install: Install) -> Iterator[Finding]:
    rows = [w for w in _of_family(scope, install) if _is_nightly(scope, w, install)]
    if not rows:
        return
    names = _names([w.name for w in rows])
    reasons = (scope.because("index", f"{names} from an index of nightlies", scope.tables.note("nightly")),)
    fixes = (Fix("package", rows[0].name, do="take a release"),)
    text = f"{names}: a nightly build, which is not there any more when the image is built again"
    yield scope.finding("nightly-build", rows[0].name, "warning", text, rows[0].where, reasons, fixes)


def _is_nightly(scope: Scope, wanted: Wanted, install: Install) -> bool:
    if places(wanted, install, scope.matrix).nightly or "/nightly/" in wanted.url:
        return True
    version = wanted.spec.lstrip("=").partition("+")[0] if exact(wanted.spec) else ""
    return bool(version) and parse(version).is_devrelease


def _backend(scope: Scope, install: Install) -> Iterator[Finding]:
    """uv looks for a driver while the image is built, and there is none."""
    if install.backend != "auto" or scope.scene.kind != "image":
        return
    names = scope.matrix.package_names()
    if not any(w.name == _FAMILY or (w.name in names and _wants(scope, w.name)) for w in install.wanted):
        return
    stack, fact = scope.tables.backend_auto
    reasons = (scope.because("index", "the backend is chosen while the image is built", fact),)
    fixes = (Fix("index", do="name the backend (--torch-backend=...) or the index"),)
    text = f"--torch-backend=auto takes the {stack} build here: no driver is visible while an image is built"
    yield scope.finding("cpu-only-build", "torch", "warning", text, install.where, reasons, fixes)


def _wants(scope: Scope, name: str) -> bool:
    """Whether builds of a package require torch."""
    rows = scope.matrix.candidates(name, scope.host.platform)
    return any(dict(requires_of(c.requires, scope.host.platform, "")).get(_FAMILY) is not None for c in rows[:4])


def _hashes(scope: Scope) -> Iterator[Finding]:
    """Packages of the torch family without a hash; once per scene."""
    if scope.scene.file.endswith("pyproject.toml") or not any(isinstance(s, Install) for s in scope.scene.steps):
        return
    rows: list[Wanted] = []
    for step in scope.scene.steps:
        if isinstance(step, Install) and step.tool != "conda" and not step.hashes:
            rows += [w for w in step.wanted if not w.hashed and _many_files(scope, w.name)]
            mixed = [w for w in step.wanted if w.hashed and not w.locked]
            if mixed and any(not w.hashed for w in step.wanted):
                yield _half(scope, step)
                return
    if not rows:
        return
    names = _names([w.name for w in rows])
    reasons = (scope.because("hash", f"{names}: nothing says which file it is", scope.tables.note("hash")),)
    fixes = (Fix("action", do="lock the files: `accel-env lock` writes requirements.lock for pip install --require-hashes"),)
    yield scope.finding("unhashed-install", rows[0].name, "warning", f"{names} without a hash", rows[0].where, reasons, fixes)


def _many_files(scope: Scope, name: str) -> bool:
    """Whether one name and version can be several files: builds beside torch, or on indexes besides PyPI."""
    if name not in scope.matrix.package_names():
        return False
    rows = scope.matrix.candidates(name, scope.host.platform)
    built = any(c.index != PYPI for c in rows) or any(n.subject is Subject.TORCH for c in rows for n in c.needs)
    return name == _FAMILY or built or _wants(scope, name)


def _half(scope: Scope, install: Install) -> Finding:
    bare = next(w for w in install.wanted if not w.hashed)
    reasons = (scope.because("hash", "one hash switches the check on for all", scope.tables.note("hash")),)
    fixes = (Fix("action", do="give every requirement a hash, or none"),)
    text = f"{bare.text or bare.name} has no hash while others have one: pip refuses the whole file"
    return scope.finding("unhashed-install", bare.name, "error", text, bare.where, reasons, fixes)


def _missing(scope: Scope, missing: Missing) -> Iterator[Finding]:
    """Nothing at the places where the installer looks: a label on PyPI, a build that this index does not have."""
    one, install = missing.wanted, missing.install
    sure = scope.scene.kind == "image" and not install.maybe and not install.skipped
    label = one.spec.partition("+")[2]
    if label and missing.places.keys == (PYPI,):
        reasons = [scope.because("index", f"{one.text} is not on PyPI", scope.tables.note("label"))]
        url = scope.index_url(home_of(one.name, label, scope.matrix, scope.host.platform))
        command = f"pip install {one.text} --index-url {url}" if url else ""
        fixes = [Fix("index", label, do=f"name the index of {label}", command=command)]
        text = f"{one.text}: PyPI has no version with a label, and no other index is named" + ("" if sure else " here")
        rows = [c for c in scope.matrix.candidates(one.name, scope.host.platform) if c.build == label]
        mine = [c for c in rows if allows(one.spec.partition("+")[0], c.version)]
        if rows and mine and all(doubtful(c) for c in mine):
            text += f"; whether that release is built for {label} at all, nobody has published"
            reasons.append(scope.because("index", text, mine[0].fact))
            fixes = _published(scope, one)
        yield scope.finding("wrong-index", one.name, "error" if sure else "warning", text, one.where, reasons, fixes)
        return
    named = [key for key in missing.places.keys if ":" in key]
    if not named or not missing.elsewhere or not exact(one.spec) or PYPI in missing.places.keys:
        return
    fact = next((c.fact for c in scope.matrix.candidates(one.name, scope.host.platform) if c.index in missing.elsewhere), "")
    reasons = [scope.because("index", f"{one.name} {one.spec.lstrip('=')} is at {', '.join(missing.elsewhere[:6])}", fact)]
    others = tuple(
        Fix("index", key.partition(":")[2] or key, do=f"take it from {scope.index_url(key) or 'PyPI'}")
        for key in _usable(scope, one, missing.elsewhere)[:3]
    )
    text = f"{one.text}: {', '.join(scope.index_url(k) or k for k in named)} has no such build"
    severity = "error" if _certain(scope, missing, named) else "warning"
    yield scope.finding("pinned-version-unavailable", one.name, severity, text, one.where, reasons, others)


def _certain(scope: Scope, missing: Missing, named: Sequence[str]) -> bool:
    """Whether the indexes surely lack the pin: other releases of theirs are listed, and no build whose existence is open."""
    one, install = missing.wanted, missing.install
    rows = scope.matrix.candidates(one.name, scope.host.platform)
    listed = all(any(c.index == key and not doubtful(c) for c in rows) for key in named)
    version = one.spec.lstrip("= ").partition("+")[0]
    open_ones = [c for c in rows if c.index in named and doubtful(c) and allows(f"=={version}", c.version)]
    bound = one.locked or one.index  # by a project's own table, whose extras may exclude each other
    return listed and not open_ones and not (install.maybe or install.skipped or missing.places.unknown or bound)


def _published(scope: Scope, one: Wanted) -> list[Fix]:
    """The builds of the pinned release that surely exist and that this host runs."""
    public = one.spec.partition("+")[0]
    keys = list(dict.fromkeys(c.index for c in scope.matrix.candidates(one.name, scope.host.platform)))
    return [
        Fix("index", key.partition(":")[2] or key, do=f"{one.name}{public} from {scope.index_url(key) or 'PyPI'}")
        for key in _usable(scope, one, keys)[:3]
    ]


def _usable(scope: Scope, one: Wanted, keys: Sequence[str]) -> list[str]:
    """The indexes whose build of the pinned release meets what this host needs; those without an accelerator's come last."""
    from accel_env.judge.files.needs import environment_of
    from accel_env.judge.scene import Scene as Judged

    scene = Judged(environment_of(scope), (), scope.matrix, scope.know.book)
    rows = [c for c in scope.matrix.candidates(one.name, scope.host.platform) if allows(one.spec.partition("+")[0], c.version)]
    fine = [c for c in rows if c.index in keys and c.index != "image" and not doubtful(c) and not scene.failures(c)]
    served = [c for c in fine if not scope.named or not scene.stack_name or split_stack(c.stack)[0] == scene.stack_name]
    return list(dict.fromkeys(c.index for c in served or fine))


def _names(names: list[str]) -> str:
    kept = list(dict.fromkeys(names))
    return ", ".join(kept[:NAMES]) + (f" and {len(kept) - NAMES} more" if len(kept) > NAMES else "")
