"""Packages of the operating system in an image: from a dated snapshot or a site's own sources, never from today's archive.

Bases that Debian's makers built name in a comment the snapshot that they were built from; that one is used, so the base's digest
fixes the packages too. What an installation changed is copied into the prepared tree, file by file: the last stage runs nothing.
"""

from __future__ import annotations

import re

from accel_env.errors import UsageError
from accel_env.render.recipe import Comment, Instruction, Mount, Run

APT = "/run/secrets/apt.sources"
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+")
_LISTS = "/etc/apt/sources.list.d"
_MARK = "/tmp/before-apt"
_APT = "DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends"
# Written by every installation, different every time or of no use in an image.
_LEFT_OUT = ("/proc", "/sys", "/dev", "/run", "/tmp", "/out", "/etc/apt", "/var/cache", "/var/log", "/var/lib/apt")
_OF_THE_BUILD = ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf")


def system_steps(packages: tuple[str, ...], *, keep: bool, headers: str = "") -> tuple[Instruction, ...]:
    """Installs packages in the first stage. `keep`: they go to /out too. `headers`: one more, where the Python is the
    distribution's and its headers are not there. UsageError for what is no name of a package."""
    for name in (*packages, *([headers] if headers else [])):
        if not _PACKAGE.fullmatch(name):
            raise UsageError("bad-package", f"{name!r} is no name of a package of the operating system")
    commands = (
        f"touch {_MARK}",
        _sources(),
        "apt-get -o Acquire::Check-Valid-Until=false -o Acquire::Retries=5 update",
        f"{_APT} {' '.join(sorted(set(packages)))}",
        *((_headers(headers),) if headers else ()),
        *(("mkdir -p /out", _collect()) if keep else ()),
    )
    # The snapshot pins the versions; names of versions would say it twice.
    return (Comment("hadolint ignore=DL3008,DL3009"), Run(commands, (Mount("secret", APT, "apt"),)))


def _headers(package: str) -> str:
    place = "$(python3 -c 'import sysconfig; print(sysconfig.get_path(\"include\"))')"
    return f'case "{place}" in /usr/include/*) [ -e "{place}/Python.h" ] || {_APT} {package};; esac'


def _sources() -> str:
    """The sources of the site where the build was given them, else the snapshot that the base names; else the step fails."""
    dated = "[0-9]{8}T[0-9]{6}Z$"
    files = f"{_LISTS}/*.sources"
    return (
        f"if [ -s {APT} ]; then rm -rf /etc/apt/sources.list {_LISTS}/*; "
        f"if grep -q '^Types:' {APT}; then cp {APT} {_LISTS}/site.sources; else cp {APT} {_LISTS}/site.list; fi; "
        f"else sed -i -E '/^# https?:.*{dated}/{{s/^# /URIs: /;n;d}}' {files}; "
        f"if [ -s /etc/apt/sources.list ] || ! grep -q '^URIs:' {files} || "
        f"[ -n \"$(sed -n -E '/^URIs:/{{/{dated}/!p}}' {files})\" ]; then "
        "echo 'this base names no dated snapshot of its packages: give one with --secret id=apt,src=SOURCES' >&2; exit 1; fi; fi"
    )


def _collect() -> str:
    """Copies what changed since the mark. Folders come along as parents, with their modes; one that is empty by itself."""
    pruned = " -o ".join(f"-path {path}" for path in _LEFT_OUT)
    names = " ".join(f"! -path {path}" for path in _OF_THE_BUILD)
    return (
        f"find / -xdev \\( {pruned} \\) -prune -o -cnewer {_MARK} \\( ! -type d -o -empty \\) "
        f"! -name '*-old' {names} -exec cp -a --parents -t /out {{}} +"
    )
