#!/usr/bin/env python3
"""Makes an archive of the matrix and signs it for `accel-env matrix update`; `--new-key FILE` makes a key pair first.

The same matrix gives the same archive. Keys and signatures are minisign's own, so that `minisign -V` checks them too. A secret
key that is protected by a password takes it from the variable ACCEL_ENV_SIGNING_PASSWORD.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from accel_env.errors import AccelEnvError, InputError, UsageError
from accel_env.matrix import store
from accel_env.system.files import read_file
from accel_env.update.archive import FOLDERS, write_archive
from accel_env.update.place import check

ROOT = Path(__file__).resolve().parents[1]
PASSWORD = "ACCEL_ENV_SIGNING_PASSWORD"


@dataclass(frozen=True, slots=True)
class SecretKey:
    """Key id (8 bytes) and the seed of an Ed25519 key (32 bytes)."""

    id: bytes
    seed: bytes


def main(words: list[str] | None = None) -> int:
    """0, or the code of what went wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--key", type=Path, metavar="FILE", help="the secret key of minisign to sign with")
    parser.add_argument("--new-key", type=Path, metavar="FILE", help="make a key pair: FILE (secret, no password) and FILE.pub")
    parser.add_argument("--matrix", type=Path, default=ROOT / "matrix", metavar="DIR", help="another matrix than this checkout's")
    parser.add_argument("-o", "--output", type=Path, default=Path(), metavar="DIR", help="where the archive goes")
    given = parser.parse_args(words)
    if not given.key and not given.new_key:
        parser.error("give --key FILE, or --new-key FILE to make one")
    try:
        if given.new_key:
            new_key(given.new_key)
        if given.key:
            archive(given.matrix, given.key, given.output)
    except AccelEnvError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except OSError as problem:
        print(f"error: cannot-write\n  {problem.filename}: {problem.strerror}", file=sys.stderr)
        return UsageError.exit_code
    return 0


def archive(matrix: Path, key: Path, output: Path) -> Path:
    """Writes the archive and its signature; gives the path of the archive."""
    secret = read_key(read_file(key), os.environ.get(PASSWORD, ""))
    files = collect(Path(store.locate(str(matrix))))
    version, digest = check(str(matrix), str(matrix))
    content = write_archive(files)
    target = output / f"accel-env-matrix-{version}.tar.gz"
    output.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    comment = f"accel-env matrix {version} {digest}"
    target.with_name(f"{target.name}.minisig").write_text(sign(content, secret, comment))
    print(f"wrote {target} ({len(content) >> 10} KiB, {len(files)} files) and {target.name}.minisig", file=sys.stderr)
    return target


def collect(matrix: Path) -> dict[str, bytes]:
    """The files of a matrix that an archive holds: data and its README; the schemas are for editors."""
    found = {}
    for path in sorted(matrix.rglob("*")):
        name = path.relative_to(matrix).as_posix()
        folder, _, file = name.rpartition("/")
        if path.is_file() and not file.startswith(".") and (not folder or folder in FOLDERS):
            found[name] = path.read_bytes()
    return found


def sign(content: bytes, key: SecretKey, comment: str) -> str:
    """The text of a signature file."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.from_private_bytes(key.seed)
    signature = private.sign(hashlib.blake2b(content).digest())
    lines = [
        "untrusted comment: signature of a matrix of accel-env",
        base64.b64encode(b"ED" + key.id + signature).decode(),
        f"trusted comment: {comment}",
        base64.b64encode(private.sign(signature + comment.encode())).decode(),
    ]
    return "\n".join(lines) + "\n"


def new_key(path: Path) -> None:
    """Writes a key pair; the secret one is readable by its owner alone, and never written over."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    seed, number = os.urandom(32), os.urandom(8)
    public = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()
    pair = number + seed + public
    raw = b"Ed" + b"\0\0" + b"B2" + bytes(48) + pair + hashlib.blake2b(b"Ed" + pair, digest_size=32).digest()
    shown = number[::-1].hex().upper()
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as problem:
        raise InputError(
            "key-exists", f"{path} cannot be written: {problem.strerror}", hint="name a file that is not there"
        ) from None
    with open(handle, "w", encoding="ascii") as stream:
        stream.write(f"untrusted comment: secret key of accel-env archives {shown}\n{base64.b64encode(raw).decode()}\n")
    public_text = f"untrusted comment: minisign public key {shown}\n{base64.b64encode(b'Ed' + number + public).decode()}\n"
    path.with_name(f"{path.name}.pub").write_text(public_text)
    print(f"wrote {path} and {path.name}.pub (key {shown})", file=sys.stderr)


def read_key(text: str, password: str) -> SecretKey:
    """The secret key in a file of minisign. InputError where it is none, or the password is wrong."""
    lines = text.strip().splitlines()
    try:
        raw = base64.b64decode(lines[1], validate=True)
    except (IndexError, ValueError):
        raw = b""
    if len(raw) != 158 or raw[:2] != b"Ed" or raw[4:6] != b"B2" or raw[2:4] not in (b"Sc", b"\0\0"):
        raise InputError(
            "key-invalid", "this is no secret key of minisign", hint="make one: scripts/make_archive.py --new-key FILE"
        )
    body = raw[54:]
    if raw[2:4] == b"Sc":
        stream = _scrypt(password, raw[6:38], int.from_bytes(raw[38:46], "little"), int.from_bytes(raw[46:54], "little"))
        body = bytes(a ^ b for a, b in zip(body, stream, strict=True))
    is_open = raw[2:4] == b"\0\0" and body[72:] == bytes(32)  # minisign -W leaves the checksum out
    if not is_open and hashlib.blake2b(b"Ed" + body[:72], digest_size=32).digest() != body[72:]:
        raise InputError("key-locked", "the password of the secret key is wrong", hint=f"put it into the variable {PASSWORD}")
    return SecretKey(body[:8], body[8:40])


def _scrypt(password: str, salt: bytes, operations: int, memory: int) -> bytes:
    """The key stream, with scrypt's parameters as libsodium derives them from its two limits."""
    operations = max(operations, 32768)
    limit = operations // 32 if operations < memory // 32 else memory // 1024
    exponent = next((one for one in range(1, 63) if 1 << one > limit // 2), 63)
    p = 1 if operations < memory // 32 else min(operations // 4 // (1 << exponent), 0x3FFFFFFF) // 8
    return hashlib.scrypt(password.encode(), salt=salt, n=1 << exponent, r=8, p=p, maxmem=memory + (64 << 20), dklen=104)


if __name__ == "__main__":
    sys.exit(main())
