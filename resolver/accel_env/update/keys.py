"""Whose archives are taken: the keys that came with the code, and those that were named."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from accel_env.errors import AccelEnvError, InputError

if TYPE_CHECKING:
    from accel_env.update.minisign import PublicKey

KEYS = "keys.yaml"


def trusted_keys(packaged: str, files: tuple[str, ...]) -> tuple[PublicKey, ...]:
    """The keys that came with the code and those in the files. Keys inside an archive do not count: it would vouch for itself."""
    from dataclasses import replace

    from accel_env.matrix import store
    from accel_env.matrix.read import Faults
    from accel_env.system.files import read_file
    from accel_env.update.minisign import parse_key

    found: list[PublicKey] = []
    path = os.path.join(packaged, KEYS)
    if os.path.isfile(path):
        faults = Faults()
        plain = store.parse_yaml(store.read_bytes(path), KEYS, faults)
        rows = plain.get("keys", [])
        if faults.items or not isinstance(rows, list):
            raise InputError("matrix-invalid", f"{KEYS} cannot be read", context=tuple(map(str, faults.items)), hint="correct it")
        for row in rows:
            found.append(replace(parse_key(str(row.get("key")), f"{KEYS}, {row.get('name')}"), name=str(row.get("name"))))
    return (*found, *(parse_key(read_file(file), file) for file in files))


def signature_state(path: str, content: bytes) -> str:
    """What the signature beside an archive is worth here, in words: for who only looks at the archive."""
    from accel_env.matrix import store
    from accel_env.update import fetch, minisign

    where = fetch.signature_of(path)
    if not os.path.exists(where):
        return "not signed"
    try:
        signature = minisign.parse_signature(fetch.read(where, 1 << 16).decode("utf-8", "replace"), fetch.name_of(where))
        key = minisign.verify(content, signature, trusted_keys(store.packaged(), ()), fetch.name_of(path))
    except AccelEnvError as problem:
        return problem.message
    return f"signed by {key.name or key.id}"
