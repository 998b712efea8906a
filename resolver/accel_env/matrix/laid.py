"""What of a plan came from overlays: said in the plan, so that nobody takes a site's word for the matrix's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accel_env.matrix.load import Matrix

Json = dict[str, Any]


def laid(plan: Mapping[str, Any], matrix: Matrix) -> list[Json]:
    """Per overlay its name and what of it this plan rests on, by kind; empty where there is no overlay."""
    rows = matrix.document("overlays")
    return [{"name": name, "gives": _given(plan, held, matrix)} for name, held in rows.items()]


def _given(plan: Mapping[str, Any], held: Mapping[str, Any], matrix: Matrix) -> Json:
    picks: Mapping[str, Any] = plan.get("picks") or {}
    urls = {name: matrix.index_url(name).partition("{")[0] for name in held.get("indexes", ())}
    found = {
        "packages": [
            name for name, pick in picks.items() if f"{name}=={pick['version']}+{pick['build']}" in held.get("builds", ())
        ],
        "indexes": [name for name, url in urls.items() if any(_is_under(pick["index"], name, url) for pick in picks.values())],
        "images": [ref for ref in [(plan.get("image") or {}).get("ref")] if ref in held.get("images", ())],
        "devices": [one["name"] for one in plan["host"].get("devices", ()) if one["name"] in held.get("devices", ())],
        "bundles": [name for name in plan.get("bundles", ()) if name.lstrip("@") in held.get("bundles", ())],
        "forbids": [text for text in held.get("forbids", ()) if text.partition(" ")[0] in _named(plan)],
    }
    return {kind: list(dict.fromkeys(names)) for kind, names in found.items() if names}


def _is_under(index: str, name: str, url: str) -> bool:
    return index == name or index.startswith(url)


def _named(plan: Mapping[str, Any]) -> frozenset[str]:
    """The packages that a plan picks, or a refusal speaks of."""
    texts = " ".join(str(one.get("text", "")) for one in (plan.get("conflict") or {}).get("because", ()))
    return frozenset(plan.get("picks") or {}) | frozenset(texts.split())
