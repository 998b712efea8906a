"""Matrix data apart from the code: installing it, going back, and what two states of it have to say differently."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from accel_env.errors import InputError

Json = dict[str, Any]


def update(place: str, keys: tuple[str, ...], force: bool, progress: Callable[[str], None]) -> Json:
    """Installs the signed archive at a path or URL, after its signature, its format and its rules were checked."""
    from accel_env.matrix import store
    from accel_env.update import fetch, minisign
    from accel_env.update.archive import read_archive
    from accel_env.update.keys import trusted_keys
    from accel_env.update.place import install

    packaged = store.packaged()
    trusted = trusted_keys(packaged, keys)
    what = fetch.name_of(place)
    content = fetch.read(place)
    if not trusted:
        raise InputError(
            "no-key", "no key is known that archives could be signed with", hint="name the signer's public key: --key FILE"
        )
    where = fetch.signature_of(place)
    signature = minisign.parse_signature(fetch.read(where, 1 << 16).decode("utf-8", "replace"), fetch.name_of(where))
    key = minisign.verify(content, signature, trusted, what)
    progress(f"{what}: signed by {key.name or key.id}; checking the matrix in it")
    name = install(read_archive(content, what), force=force, packaged=packaged, what=what)
    return {**status(keys), "installed": name, "signed_by": key.id, "comment": signature.comment}


def back() -> Json:
    """Goes back to the matrix before the one that was installed last."""
    from accel_env.update import place

    left, now = place.back()
    return {**status(()), "left": left, "now": now}


def status(keys: tuple[str, ...]) -> Json:
    """Which matrix is used, which others there are, and whose archives are taken."""
    from accel_env.matrix import installed, store
    from accel_env.update.keys import trusted_keys

    packaged = store.packaged()
    folder = installed.data_folder()
    rows = installed.history(folder) if folder else ()
    used = store.locate()
    return {
        "schema": "accel-env/update/1",
        "used": {"from": installed.origin(used), "version": installed.read_version(used), "path": used},
        "packaged": {"version": installed.read_version(packaged), "path": packaged},
        "others": [
            {
                "name": name,
                "version": installed.version_of(name),
                "path": os.path.join(folder, name),
                "forced": forced,
                "there": os.path.isfile(os.path.join(folder, name, "matrix.yaml")),
            }
            for name, forced in rows
        ],
        "keys": [{"id": key.id, "name": key.name} for key in trusted_keys(packaged, keys)],
    }
