"""conda's ways: package specs, command lines, environment files; pixi's manifest and lock."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from accel_env.judge.files import requirement, requirements, yamltext
from accel_env.judge.files.errors import broken
from accel_env.judge.files.values import Document, Install, Scene, Step, Tools, Wanted
from accel_env.solve.problem import normalise

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_VALUED = frozenset(
    {"-c", "--channel", "-n", "--name", "-p", "--prefix", "-f", "--file", "--override-channels-with", "--solver", "-r"}
)
_FILE_NAME = re.compile(r"([^/]+)-([^-/]+)-([^-/]+?)(?:\.conda|\.tar\.bz2)")


@dataclass(slots=True)
class Words:
    """What a conda command line says."""

    specs: list[str] = field(default_factory=list)
    channels: tuple[str, ...] = ()
    files: list[str] = field(default_factory=list)


def read(words: Sequence[str]) -> Words:
    """The words after the verb."""
    found = Words()
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            found.specs.append(word)
            continue
        flag, equals, value = word.partition("=")
        if flag in _VALUED:
            value = value if equals else rest.pop(0) if rest else ""
            if flag in ("-c", "--channel"):
                found.channels += (value,)
            elif flag in ("-f", "--file"):
                found.files.append(value)
    return found


def spec(text: str, where: str) -> Wanted | None:
    """A conda match spec (`pytorch=2.1=py3.10_cuda12.1*`, `conda-forge::numpy>=1.2,<2`) as a requirement, or None."""
    channel, _, plain = text.strip().strip("'\"").rpartition("::")
    plain = plain.split("[", 1)[0].strip()
    match = _NAME.match(plain)
    if not match:
        return None
    rest = plain[match.end() :].strip()
    version, build = rest, ""
    if rest[:1] == "=" or rest[:1].isspace() or not rest:
        parts = rest.strip().lstrip("=").replace(" ", "=").split("=")
        version = parts[0] if parts else ""
        build = parts[-1] if len(parts) > 1 else ""
        exact = rest.startswith("==")
        version = _pep440(version, exact) if version else ""
    return Wanted(normalise(match[0]), _valid(version), where, text, index=channel, build=build)


def _pep440(version: str, exact: bool) -> str:
    """conda's `=1.2` means 1.2 and everything below it; its ranges are PEP 440's."""
    if version[:1] in "<>!~":
        return version
    if exact or version.endswith("*"):
        return f"=={version.removesuffix('*').rstrip('.')}.*" if version.endswith("*") else f"=={version}"
    return f"=={version}.*"


def _valid(text: str) -> str:
    from accel_env.solve.versions import valid_specifier

    return text if valid_specifier(text) else ""


def environment(text: str, file: str) -> Scene:
    """An `environment.yml`. InputError with file and line where it is broken."""
    root = yamltext.parse(text, file)
    channels = root.get("channels").texts()
    wanted: list[Wanted] = []
    made: list[Step] = []
    python = ""
    pips: list[Step] = []
    if not root.get("dependencies"):
        raise broken(file, root.line, "an environment file lists `dependencies`", "YAML")
    for item in root.get("dependencies").items:
        if not item.text:
            pips += _pip_list(item.get("pip"), file)
            continue
        found = spec(item.text, f"{file}:{item.line}")
        if found and found.name == "python":
            python = found.spec
        elif found:
            wanted.append(found)
    if wanted:
        made.append(Install("conda", tuple(wanted), wanted[0].where, channels=channels))
    return Scene(root.get("name").text or file, file, "list", (*made, *pips), python=python)


def _pip_list(node: yamltext.Node, file: str) -> list[Step]:
    listed = requirements.Listed()
    for item in node.items:
        if item.text.startswith("-"):
            requirements.add_option(item.text, item.line, file, lambda _: None, listed)
        elif item.text:
            found = requirements.one(item.text, f"{file}:{item.line}", file, item.line)
            listed.wanted += [found] if found else []
    return [requirements.as_install(listed, "pip", f"{file}:{node.line}")] if node.items else []


def pixi_lock(text: str, file: str) -> Document:
    """A `pixi.lock`: every environment and platform is a scene of its own."""
    root = yamltext.parse(text, file)
    scenes: list[Scene] = []
    for name, environment_node in root.get("environments").pairs:
        for platform, packages in environment_node.get("packages").pairs:
            wanted = tuple(filter(None, (_locked(item, file) for item in packages.items)))
            conda = tuple(w for w in wanted if w.build)
            pip = tuple(w for w in wanted if not w.build)
            python = next((w.spec.removeprefix("==") for w in conda if w.name == "python"), "")
            steps: tuple[Step, ...] = (Install("conda", conda, f"{file}:{packages.line}"),) if conda else ()
            if pip:
                steps += (Install("pip", pip, f"{file}:{packages.line}"),)
            scenes.append(Scene(f"{name} on {platform}", file, "lock", steps, python=python, systems=(_system(platform),)))
    return Document(file, "pixi.lock", tuple(scenes))


def _system(platform: str) -> str:
    names = {"64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
    system, _, cpu = platform.partition("-")
    return f"{ {'osx': 'macos', 'win': 'windows'}.get(system, system) }_{names.get(cpu, cpu)}".replace(" ", "")


def _locked(node: yamltext.Node, file: str) -> Wanted | None:
    where = f"{file}:{node.line}"
    wheel = requirement.wheel(node.get("pypi").text)
    if wheel:
        url = node.get("pypi").text
        return Wanted(wheel[0], f"=={wheel[1]}", where, url, url, hashed=True, locked=True, files=(url.rpartition("/")[2],))
    match = _FILE_NAME.fullmatch(node.get("conda").text.rpartition("/")[2])
    if not match:
        return None
    return Wanted(normalise(match[1]), requirement.exactly(match[2]), where, match[0], locked=True, hashed=True, build=match[3])


def pixi(table: dict[str, object], file: str, line_of: object) -> Scene:
    """The manifest of pixi as far as its default environment goes."""
    from accel_env.judge.files.tomltext import Lines, mapping, text_of

    assert isinstance(line_of, Lines)
    conda: list[Wanted] = []
    python = ""
    for name, value in mapping(table.get("dependencies")).items():
        version = text_of(value) or text_of(mapping(value).get("version"))
        found = spec(f"{name} {version}" if version not in ("", "*") else name, f"{file}:{line_of.of(name)}")
        if found is None:
            continue
        found = replace(found, spec=_valid(_pep440(version, False)) if version not in ("", "*") else "")
        if name == "python":
            python = found.spec
        else:
            conda.append(replace(found, build=text_of(mapping(value).get("build"))))
    pips: list[Wanted] = []
    for name, value in mapping(table.get("pypi-dependencies")).items():
        version = text_of(value) or text_of(mapping(value).get("version"))
        pips.append(
            Wanted(
                normalise(name), _valid("" if version == "*" else version), f"{file}:{line_of.of(name)}", name,
                url=text_of(mapping(value).get("url")), index=text_of(mapping(value).get("index")),
            )
        )  # fmt: skip
    steps: list[Step] = []
    if conda:
        steps.append(Install("conda", tuple(conda), conda[0].where))
    if pips:
        steps.append(Install("uv", tuple(pips), pips[0].where))
    if python:
        steps.insert(0, Tools((f"python={python.removeprefix('==').removesuffix('.*')}",), f"{file}:{line_of.of('python')}"))
    return Scene("the default environment", file, "list", tuple(steps), python=python)
