"""Compose files: services with the image or the build they run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from accel_env.judge.files.dockerfile import base_of
from accel_env.judge.files.errors import broken
from accel_env.judge.files.substitute import expand
from accel_env.judge.files.values import UNKNOWN, Base, Document, Scene, Service, Variable
from accel_env.judge.files.yamltext import Node, parse

_DOLLAR = "\1"  # compose writes a plain dollar as two

# The scene of a Dockerfile: path, build arguments, target stage; None where it cannot be read.
Build = Callable[[str, Mapping[str, str], str], Scene | None]


def read(text: str, file: str, build: Build) -> Document:
    """The services of a compose file. InputError with file and line where it is broken."""
    root = parse(text, file)
    services = root.get("services")
    if not services.pairs:
        raise broken(file, root.line, "a compose file lists `services`", "YAML")
    scenes: list[Scene] = []
    also: list[str] = []
    for name, node in services.pairs:
        service = _service(name, node, file)
        dockerfile = _dockerfile(node.get("build"), file)
        built = (
            build(dockerfile, _pairs(node.get("build", "args")), _plain(node.get("build", "target").text)) if dockerfile else None
        )
        if built is not None:
            also.append(built.file)
            title = f"service {name} ({built.title})"
            scenes.append(Scene(title, built.file, "image", built.steps, built.base, built.python, service))
        else:
            scenes.append(Scene(f"service {name}", file, "image", (), _image(node, file), service=service))
    return Document(file, "compose", tuple(scenes), tuple(also))


def _image(node: Node, file: str) -> Base | None:
    image = _plain(node.get("image").text)
    if not image or node.get("build"):
        return None
    return base_of(image, f"{file}:{node.get('image').line}", node.get("platform").text)


def _dockerfile(node: Node, file: str) -> str:
    """The path of the Dockerfile of a build; empty where there is none, or it is no path here."""
    if not node:
        return ""
    context = _plain(node.text or node.get("context").text or ".")
    name = _plain(node.get("dockerfile").text) or "Dockerfile"
    if UNKNOWN in context + name or "://" in context or context.startswith("git@"):
        return ""
    return os.path.normpath(os.path.join(os.path.dirname(file), context, name))


def _service(name: str, node: Node, file: str) -> Service:
    reserved = node.get("deploy", "resources", "reservations", "devices")
    asked = any(set(item.get("capabilities").texts()) & {"gpu", "compute"} or item.get("driver").text for item in reserved.items)
    devices = [item.text or item.get("source").text for item in node.get("devices").items]
    return Service(
        name,
        f"{file}:{node.line}",
        runtime=_plain(node.get("runtime").text),
        gpus=asked or bool(node.get("gpus")),
        devices=tuple(_plain(text) for text in devices),
        groups=node.get("group_add").texts(),
        privileged=node.get("privileged").text.lower() in ("true", "yes", "on"),
        variables=_variables(node.get("environment"), file),
    )


def _variables(node: Node, file: str) -> tuple[Variable, ...]:
    """`NAME: value` or `- NAME=value`."""
    found = [Variable(key, _plain(value.text), f"{file}:{value.line}") for key, value in node.pairs]
    for item in node.items:
        key, _, value = item.text.partition("=")
        found.append(Variable(key, _plain(value), f"{file}:{item.line}"))
    return tuple(found)


def _pairs(node: Node) -> dict[str, str]:
    return {v.name: v.value for v in _variables(node, "")}


def _plain(text: str) -> str:
    """The text with the defaults of its variables; what only the shell knows is unknown."""
    return expand(text.replace("$$", _DOLLAR), {}, escape="", unset=UNKNOWN).replace(_DOLLAR, "$")
