"""Where the matrix lives, and its files as plain mappings. The only module that knows YAML.

YAML is read strictly: keys are text and unique, and whatever YAML would read as something else than text, whole number or
true/false (an unquoted `3.10`, a date, an empty value) is refused with file, line and dotted path.
"""
from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache

from accel_env.errors import InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import yaml

    from accel_env.matrix.compiled import Stamp
    from accel_env.matrix.read import Faults

FOLDERS = ("artifacts", "devices", "inspected", "packages", "stacks", "torch")
_ENDINGS: Mapping[str, tuple[str, ...]] = {"artifacts": (".json",), "inspected": (".json", ".yaml")}
_WHOLE = frozenset("0123456789")


def locate(root: str | None = None) -> str:
    """The folder of the matrix: the argument, else ACCEL_ENV_MATRIX, else an installed one that is newer, else the packaged."""
    given = root or os.environ.get("ACCEL_ENV_MATRIX", "")
    if not given:
        from accel_env.matrix.installed import preferred

        place = packaged()
        return preferred(place) or place
    return _folder(given)


def packaged() -> str:
    """The matrix that came with the code: what the wheel carries, else the repository's."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    carried = os.path.join(package, "_matrix")
    if os.path.isfile(os.path.join(carried, "matrix.yaml")):
        return carried
    return _folder(os.path.join(os.path.dirname(os.path.dirname(package)), "matrix"))


def _folder(place: str) -> str:
    if os.path.isfile(os.path.join(place, "matrix.yaml")):
        return os.path.abspath(place)
    raise InputError("matrix-missing", f"{place} holds no matrix: there is no matrix.yaml in it",
                     hint="point ACCEL_ENV_MATRIX at the folder `matrix` of the repository, or install the package again")


def list_files(root: str) -> tuple[Stamp, ...]:
    """(relative path with `/`, size in bytes, mtime in ns) of every file of the matrix, sorted by path."""
    found: list[Stamp] = []
    for folder in ("", *FOLDERS):
        ending = _ENDINGS.get(folder, (".yaml",))
        place = os.path.join(root, folder)
        try:
            names = [name for name in os.listdir(place) if name.endswith(ending) and not name.startswith(".")]
            for name in names:
                place = os.path.join(root, folder, name)
                status = os.stat(place)
                found.append((f"{folder}/{name}" if folder else name, status.st_size, status.st_mtime_ns))
        except OSError as problem:
            if folder and place == os.path.join(root, folder) and isinstance(problem, FileNotFoundError):
                continue
            raise unreadable(place, problem) from None
    return tuple(sorted(found))


def unreadable(path: str, problem: OSError) -> InputError:
    """The error for a file that the system does not let us read."""
    return InputError("matrix-unreadable", f"{path}: {problem.strerror or problem}", hint="check the path and its permissions")


def read_bytes(path: str) -> bytes:
    """The content of a file; InputError where it cannot be read."""
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except OSError as problem:
        raise unreadable(path, problem) from None


def digest_of(contents: Mapping[str, bytes]) -> str:
    """`sha256:` over sorted paths and contents."""
    import hashlib

    total = hashlib.sha256()
    for path in sorted(contents):
        total.update(f"{path}\0{len(contents[path])}\0".encode())
        total.update(contents[path])
    return f"sha256:{total.hexdigest()}"


def parse_json(content: bytes, file: str, faults: Faults) -> dict[str, object]:
    """The mapping in a JSON file; what is wrong goes to `faults`."""
    import json

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            faults.add(file, "", f"the key `{twice}` stands there twice")
        return found

    try:
        value = json.loads(content, object_pairs_hook=unique)
    except (ValueError, RecursionError) as problem:
        faults.add(file, "", f"is no JSON: {problem}")
        return {}
    if not isinstance(value, dict):
        faults.add(file, "", "must hold a mapping")
        return {}
    return value


def parse_yaml(content: bytes, file: str, faults: Faults, lines: dict[str, int] | None = None) -> dict[str, object]:
    """The mapping in a YAML file; what is wrong goes to `faults`. `lines`, if given, gets the line of every dotted path."""
    import yaml

    loader = _loader()(content)
    try:
        node = loader.get_single_node()
    except (yaml.YAMLError, ValueError, RecursionError) as problem:
        mark = getattr(problem, "problem_mark", None)
        what = getattr(problem, "problem", None) or str(problem).splitlines()[0]
        faults.add(file, "", f"is no YAML: {what}", mark.line + 1 if mark else 0)
        return {}
    finally:
        loader.dispose()
    if not isinstance(node, yaml.MappingNode):
        faults.add(file, "", "must hold a mapping")
        return {}
    try:
        value = _Builder(yaml, file, faults, lines).build(node, "")
    except RecursionError:
        faults.add(file, "", "is nested too deeply")
        return {}
    return value if isinstance(value, dict) else {}


@cache
def _loader() -> Any:
    """yaml's safe loader that remembers what kind of value a plain word is: they stand there a hundred thousand times."""
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    known: dict[tuple[str, tuple[bool, bool]], str] = {}

    class Loader(base):  # type: ignore[misc]
        def resolve(self, kind: type, value: Any, implicit: Any) -> str:
            if kind is not yaml.ScalarNode:
                return super().resolve(kind, value, implicit)  # type: ignore[no-any-return]
            key = (value, implicit)
            if key not in known:
                known[key] = super().resolve(kind, value, implicit)
            return known[key]

    return Loader


def yaml_texts(content: str, shown: str) -> object:
    """Any YAML or JSON text with every scalar as the text that stands there (`3.10` stays `3.10`, `null` is empty).

    For files that people write for other tools, which are read leniently. InputError that names `shown` where it is neither.
    """
    import yaml

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        return yaml.load(content, Loader=loader)  # BaseLoader makes text, lists and mappings only
    except (yaml.YAMLError, ValueError, RecursionError) as problem:
        mark = getattr(problem, "problem_mark", None)
        what = getattr(problem, "problem", None) or str(problem).splitlines()[0]
        where = f"{shown}:{mark.line + 1}" if mark else shown
        raise InputError("yaml-broken", f"{where}: is no YAML: {what}", hint="correct the file, or write it as JSON") from None


class _Builder:
    """YAML nodes -> dict, list, str, int, bool; nothing else gets through."""

    def __init__(self, module: Any, file: str, faults: Faults, lines: dict[str, int] | None) -> None:
        from accel_env.matrix.read import dotted

        self._dotted = dotted
        self._scalar, self._sequence = module.ScalarNode, module.SequenceNode
        self._file, self._faults, self._lines = file, faults, lines
        self._seen: set[int] = set()  # nodes by identity: an alias is the node that it refers to

    def build(self, node: yaml.Node, path: str) -> object:
        if id(node) in self._seen:
            self._fault(node, path, "is referred to by an alias (`*name`): no file of the matrix has aliases")
            return node.value if isinstance(node, self._scalar) else {}
        self._seen.add(id(node))
        if self._lines is not None:
            self._lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, self._scalar):
            return node.value if node.tag == "tag:yaml.org,2002:str" else self._plain(node, path)
        if isinstance(node, self._sequence):
            return [self.build(item, f"{path}[{place}]") for place, item in enumerate(node.value)]
        found: dict[str, object] = {}
        for key, item in node.value:
            if not isinstance(key, self._scalar) or key.tag != "tag:yaml.org,2002:str":
                shown = f"the key `{key.value}`" if isinstance(key, self._scalar) else "a key"
                self._fault(key, path, f"{shown} is not text to YAML: write it in quotes")
            elif key.value in found:
                self._fault(key, self._dotted(path, key.value), f"the key `{key.value}` stands there twice")
            else:
                inner = self._dotted(path, key.value)
                if self._lines is not None:
                    self._lines[inner] = key.start_mark.line + 1
                found[key.value] = self.build(item, inner)
        return found

    def _plain(self, node: yaml.ScalarNode, path: str) -> object:
        kind = node.tag.rpartition(":")[2]
        if kind == "int" and _WHOLE.issuperset(node.value) and (node.value == "0" or node.value[0] != "0"):
            return int(node.value)
        if kind == "bool" and node.value in ("true", "false"):
            return node.value == "true"
        if kind == "null":
            self._fault(node, path, "has no value")
        elif kind not in ("int", "bool", "float", "timestamp"):
            self._fault(node, path, f"has the tag {node.tag}: no file of the matrix has tags")
        else:
            self._fault(node, path, f'YAML reads {node.value} as {kind}, not as text: write "{node.value}"')
        return node.value

    def _fault(self, node: yaml.Node, path: str, message: str) -> None:
        self._faults.add(self._file, path, message, node.start_mark.line + 1)


def compose_plain(text: str) -> tuple[object, str, int]:
    """(content, what is wrong, its line) of the first document of anybody's YAML; content is `(line, text | list | dict)`.

    Every scalar is the text that stands there (`3.10` stays `3.10`), merge keys are put in, keys that are no text are left out.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text.encode("utf-8", "replace"))
    try:
        node = loader.get_node() if loader.check_node() else None
        return (_Plain(yaml).build(node) if node is not None else (1, "")), "", 0
    except (yaml.YAMLError, ValueError) as problem:
        mark = getattr(problem, "problem_mark", None)
        what = getattr(problem, "problem", None) or str(problem).splitlines()[0]
        return (1, ""), str(what), mark.line + 1 if mark else 0
    except RecursionError:
        return (1, ""), "it is nested too deeply, or an alias (`*name`) refers to what holds it", 0
    finally:
        loader.dispose()


class _Plain:
    """YAML nodes of anybody -> (line, text | list | dict)."""

    LIMIT = 1_000_000  # values, aliases written out: a small file can mean a huge one

    def __init__(self, module: Any) -> None:
        self._scalar, self._sequence = module.ScalarNode, module.SequenceNode
        self._count = 0

    def build(self, node: yaml.Node) -> tuple[int, object]:
        self._count += 1
        if self._count > self.LIMIT:
            raise ValueError("its aliases make too much of it")
        line = node.start_mark.line + 1
        if isinstance(node, self._scalar):
            return line, "" if node.tag == "tag:yaml.org,2002:null" else node.value
        if isinstance(node, self._sequence):
            return line, [self.build(item) for item in node.value]
        found: dict[str, object] = {}
        for key, item in node.value:
            if not isinstance(key, self._scalar):
                continue
            if key.tag == "tag:yaml.org,2002:merge":
                merged = item.value if isinstance(item, self._sequence) else [item]
                for _, inner in map(self.build, merged):
                    found = {**inner, **found} if isinstance(inner, dict) else found
            else:
                found[key.value] = (key.start_mark.line + 1, self.build(item)[1])
        return line, found
