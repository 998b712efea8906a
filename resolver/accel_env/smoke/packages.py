"""Level `static`, by metadata: versions, owners of files, requirements among the installed packages."""

from __future__ import annotations

import os
import sys
from typing import Any

from accel_env.smoke.installed import STRAY, distributions, files, name_of, normal, versions
from accel_env.smoke.verdict import Answer, Context, FailedError, SkippedError, some

# Installers: there by habit, in no lock.
_TOOLS = frozenset(["pip", "setuptools", "wheel", "uv"])


def planned_versions(context: Context) -> Answer:
    """Every package of the lock is installed in its version."""
    wanted = {normal(name): str(version) for name, version in context.expect.get("versions", {}).items()}
    here = versions()
    if not wanted:
        raise SkippedError(f"no plan says what should be installed; {len(here)} packages are")
    wrong = [f"{name} {here.get(name, 'is missing')}, the plan says {version}" for name, version in sorted(wanted.items())
             if not _same(here.get(name, ""), version)]  # fmt: skip
    if wrong:
        raise FailedError(f"{len(wrong)} of {len(wanted)} packages are not as planned: {some(wrong)}")
    others = sorted(set(here) - set(wanted) - _TOOLS)
    text = f"{len(wanted)} packages as planned" + (f", {len(others)} beside them: {some(others)}" if others else "")
    return text, {"not in the plan": others} if others else {}


def _same(here: str, wanted: str) -> bool:
    """Whether an installed version is the wanted one; a local label counts only where the plan has one."""
    public, _, local = here.lower().partition("+")
    wanted_public, _, wanted_local = wanted.lower().partition("+")
    return public == wanted_public and (not wanted_local or local.replace("-", ".") == wanted_local.replace("-", "."))


def owners(context: Context) -> Answer:
    """No file of an import package is claimed by two distributions with different content."""
    claims: dict[str, dict[str, set[str]]] = {}
    for distribution in distributions():
        name = name_of(distribution)
        for path, digest, _ in files(distribution):
            if path.endswith((".py", ".so")) and not path.startswith(".."):
                claims.setdefault(path, {}).setdefault(digest or name, set()).add(name)
    shared: dict[tuple[str, ...], set[str]] = {}
    for path, digests in claims.items():
        if len(digests) > 1:
            names = tuple(sorted({name for group in digests.values() for name in group}))
            shared.setdefault(names, set()).add(path.partition("/")[0])
    # `tests`, `docs` and the like at the top are left by accident and imported by nobody.
    real = {names: modules for names, modules in shared.items() if any(_claimed(module) for module in modules)}
    if real:
        lines = [f"{' and '.join(names)} both own {', '.join(sorted(modules))}" for names, modules in sorted(real.items())]
        raise FailedError(f"packages overwrite each other: {some(lines)}")
    return f"one owner for each of {len(claims)} modules", {}


def _claimed(module: str) -> bool:
    """Whether a top-level folder or file is something that one imports, or a namespace of such."""
    return module.partition(".")[0] not in STRAY


def requirements(context: Context) -> Answer:
    """What each package requires is installed in a version that it allows: what `pip check` says."""
    here, problems, count = versions(), [], 0
    installed = distributions()  # before the parser, which may look elsewhere
    parse = _parser()
    for distribution in installed:
        for text in distribution.requires or ():
            found = parse(text)
            if found.marker is not None and not found.marker.evaluate({"extra": ""}):
                continue
            count += 1
            version = here.get(normal(found.name))
            if version is None:
                problems.append(f"{name_of(distribution)} requires {found.name}, which is not installed")
            elif not found.specifier.contains(version, prereleases=True):
                problems.append(f"{name_of(distribution)} requires {found.name}{found.specifier}, {version} is installed")
    if problems:
        raise FailedError(f"{len(problems)} requirements are not met: {some(problems)}")
    return f"{count} requirements are met", {}


def _parser() -> Any:
    """The class that reads requirements: of `packaging`, or of the copy inside the pip of this or the base Python."""
    base = os.path.join(sys.base_prefix, "lib", f"python{sys.version_info[0]}.{sys.version_info[1]}")
    for extra in ("", os.path.join(base, "site-packages"), os.path.join(base, "dist-packages"),
                  os.path.join(sys.base_prefix, "lib", "python3", "dist-packages")):  # fmt: skip
        if extra:
            sys.path.append(extra)  # this process ends with the check
        for module in ("packaging.requirements", "pip._vendor.packaging.requirements"):
            try:
                return __import__(module, fromlist=["Requirement"]).Requirement
            except ImportError:
                continue
    raise SkippedError("neither `packaging` nor a pip is here to read requirements with")
