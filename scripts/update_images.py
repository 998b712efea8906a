#!/usr/bin/env python3
"""Refreshes the digests of `images.yaml` and drafts new tags, by the registries' own API (with anonymous tokens).

Tags that are rebuilt under the same name (refresh.yaml, `images: mutable`) get their new digest. Another digest of any other
known tag, a tag that is gone, or a platform that is gone stops the run. New tags are drafted where a pattern of refresh.yaml
says what they hold.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

from packaging.version import Version

from accel_env.model import Image
from updating import edit
from updating.registry import Manifest, Ref, Registry, parse_ref
from updating.run import Job, main

FILE = "images.yaml"


def draft(job: Job) -> None:
    """Looks at every known tag, then for new ones."""
    rules = job.settings["images"]
    registry = Registry(job.source)
    refs = {image.ref: parse_ref(image.ref, rules["registries"]) for image in job.model.images}
    for image in job.model.images:
        _known(job, image, refs[image.ref], registry)
    for row in rules["new"]:
        ours = {ref.tag for ref in refs.values() if ref.shown.startswith(f"{row['repository']}:")}
        _new(job, row, ours, registry)


def _known(job: Job, image: Image, ref: Ref, registry: Registry) -> None:
    found = registry.manifest(ref)
    if found is None:
        job.broken(f"{image.ref}: the registry has no such tag any more")
        return
    known = {image.digest, *image.digests.values()} - {""}
    today = {found.digest, *found.digests.values()}
    if set(image.digests) - set(found.digests) and not known <= today:
        job.broken(f"{image.ref}: the registry has it no more for {', '.join(sorted(set(image.digests) - set(found.digests)))}")
        return
    if known and known <= today and (image.digest or not found.digests):
        return
    is_mutable = any(re.fullmatch(pattern, image.ref) for pattern in job.settings["images"]["mutable"])
    if known - today and not is_mutable:
        job.broken(f"{image.ref}: the registry says {found.digest}, the matrix has {', '.join(sorted(known))}")
        return
    made = registry.manifest(ref, details=True) or found
    _replace(job, image, made)


def _replace(job: Job, image: Image, made: Manifest) -> None:
    """The item with the digests of today, and a fact that says where they are from."""
    text = job.text(FILE)
    plain, places = edit.parsed(text, FILE)
    items = plain["images"]
    number = next(place for place, item in enumerate(items) if item["ref"] == image.ref)
    item = dict(items[number])
    shared = sum(other.get("fact") == item["fact"] for other in items) > 1
    fact = _fact_name(image.ref) if shared else item["fact"]
    old = plain.get("facts", {}).get(item["fact"], {})
    source = f"registry API: manifest of {image.ref}"
    said = _said(image.ref, made)
    if shared:
        said, source = f"{old.get('text', '').rstrip('.')}. {said}", f"{old.get('source', '')}; {source}"
    block = edit.fact_block(
        fact, said, source, old.get("grade", "vendor") if shared else "vendor", job.today, old.get("doubt", "")
    )
    new = {"ref": item.pop("ref"), "digest": made.digest, **({"digests": dict(made.digests)} if made.digests else {})}
    new |= {key: value for key, value in item.items() if key not in ("digest", "digests")} | {"fact": fact}
    lines = text.split("\n")
    start = places[f"images[{number}]"] - 1
    end = places[f"images[{number + 1}]"] - 1 if number + 1 < len(items) else len(lines)
    while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
        end -= 1
    if any("#" in line.partition('"')[0] for line in lines[start:end]):
        job.unknown(f"{image.ref}: its lines in {FILE} hold a comment: put the digest {made.digest} there by hand")
        return
    is_flow = lines[start].startswith("- {")
    body = edit.wrapped("- ", edit.flow(new), "   ") if is_flow else _block(new)
    text = "\n".join([*lines[:start], *body, *lines[end:]])
    text = edit.add_facts(text, FILE, [block]) if shared and fact not in plain.get("facts", {}) else _put_fact(text, fact, block)
    job.put(FILE, text, f"{image.ref}: {made.digest}")


def _put_fact(text: str, name: str, block: list[str]) -> str:
    """The text with the fact's lines replaced."""
    _, places = edit.parsed(text, FILE)
    lines = text.split("\n")
    key = next(path for path in places if path in (f"facts.{name}", f'facts["{name}"]'))
    start = places[key] - 1
    end = next((place for place in range(start + 1, len(lines)) if not lines[place].startswith("    ")), len(lines))
    return "\n".join([*lines[:start], *block, *lines[end:]])


def _block(item: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    for key, value in item.items():
        lead = "  " if lines else "- "
        if isinstance(value, Mapping):
            lines += [f"{lead}{key}:", *(f'    {name}: "{inner}"' for name, inner in value.items())]
        else:
            lines.append(f"{lead}{key}: {edit.scalar(value)}")
    return lines


def _said(ref: str, made: Manifest) -> str:
    python = made.env.get("PYTHON_VERSION", "")
    when = f" of {made.created}" if made.created else ""
    return f"{ref}{when}{f': Python {python}' if python else ''}, digest as its registry gives it"


def _fact_name(ref: str) -> str:
    return "digest-" + re.sub(r"[^A-Za-z0-9.]+", "-", ref)


def _new(job: Job, row: Mapping[str, Any], ours: set[str], registry: Registry) -> None:
    """Tags that fit the pattern and are newer than every known one that does."""
    pattern = re.compile(row["tag"])
    known = [found for tag in ours if (found := pattern.fullmatch(tag))]
    newest = max((_number(found) for found in known), default=Version("0"))
    ref = parse_ref(f"{row['repository']}:latest", job.settings["images"]["registries"])
    tags = registry.tags(ref)
    gone = sorted(found.string for found in known if found.string not in tags)
    if gone:
        job.broken(f"{row['repository']}: the registry lists no tag {', '.join(gone)} any more")
    for tag in tags:
        found = pattern.fullmatch(tag)
        if found and tag not in ours and _number(found) > newest:
            _item(job, row["repository"], found, registry)


def _number(found: re.Match[str]) -> Version:
    """The release that a tag is of: its first numbers."""
    digits = re.match(r"[\d.]+", found.string)
    return Version(digits[0].strip(".") if digits else "0")


def _item(job: Job, repository: str, found: re.Match[str], registry: Registry) -> None:
    """One new image, where every word of its tag is one of the matrix."""
    ref, said = f"{repository}:{found.string}", found.groupdict()
    python, cuda = said.get("python") or "", said.get("cuda") or ""
    os = job.settings["images"]["releases"].get(said.get("release") or "", "") or re.sub(
        r"^([a-z]+)(\d)", r"\1-\2", said.get("os") or ""
    )
    twin = next((image for image in job.model.images if image.os == os and image.libc), None)
    if python and python not in {one.version for one in job.model.pythons}:
        job.unknown(f"{ref}: python.yaml knows no Python {python}")
    elif cuda and f"cuda-{cuda}" not in job.stacks():
        job.unknown(f"{ref}: the matrix has no release cuda-{cuda}")
    elif twin is None:
        job.unknown(f"{ref}: no image of the matrix tells the glibc of {os or 'its system'}")
    else:
        made = registry.manifest(parse_ref(ref, job.settings["images"]["registries"]), details=True)
        if made:
            _add(job, repository, ref, made, {"python": python, "stack": f"cuda-{cuda}" if cuda else ""}, twin)


def _add(job: Job, repository: str, ref: str, made: Manifest, words: Mapping[str, str], twin: Image) -> None:
    fact = re.sub(r"[^A-Za-z0-9.]+", "-", ref)
    item: dict[str, Any] = {"ref": ref, "digest": made.digest, **({"digests": dict(made.digests)} if made.digests else {})}
    rows = {
        "python": words["python"],
        "libc": twin.libc,
        "libstdcxx": twin.libstdcxx,
        "os": twin.os,
        "stack": words["stack"],
        "fact": fact,
    }
    item |= {key: value for key, value in rows.items() if value}
    said = f"{_said(ref, made)}; glibc and libstdc++ are those of the other images of {twin.os}"
    text = edit.add_facts(
        job.text(FILE), FILE, [edit.fact_block(fact, said, f"registry API: manifest of {ref}", "vendor", job.today)]
    )
    plain, places = edit.parsed(text, FILE)
    first = next((place for place, other in enumerate(plain["images"]) if other["ref"].startswith(f"{repository}:")), None)
    lines = text.split("\n")
    start = len(lines) if first is None else places[f"images[{first}]"] - 1
    job.put(FILE, "\n".join([*lines[:start], *_block(item), *lines[start:]]), f"{ref}: {made.digest}")


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", draft))
