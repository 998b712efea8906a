"""Signatures in the format of minisign: Ed25519 over the bytes (`Ed`) or over their BLAKE2b-512 (`ED`), and over the comment.

A public key is base64 of `Ed`, 8 bytes of key id and 32 bytes of key; a signature file has four lines: a comment that nobody
signed, base64 of algorithm, key id and signature, a comment that is signed, base64 of the signature over signature and comment.
"""

from __future__ import annotations

from dataclasses import dataclass

from accel_env.errors import InputError, UsageError

_UNTRUSTED, _TRUSTED = "untrusted comment:", "trusted comment:"


@dataclass(frozen=True, slots=True)
class PublicKey:
    """`id` as minisign shows it: 16 hex digits."""

    id: str
    raw: bytes
    name: str = ""


@dataclass(frozen=True, slots=True)
class Signature:
    """A parsed signature file. `comment` is signed."""

    hashed: bool
    key_id: str
    signature: bytes
    comment: str
    whole: bytes


def parse_key(text: str, where: str) -> PublicKey:
    """The key in a public key file, or in its second line alone. InputError that names `where` for anything else."""
    lines = [line.strip() for line in text.strip().splitlines() if not line.startswith(_UNTRUSTED)]
    raw = _decode(lines[0], 42) if len(lines) == 1 else None
    if raw is None or raw[:2] != b"Ed":
        raise InputError("key-invalid", f"{where} is no public key of minisign", hint="name the file that ends with .pub")
    return PublicKey(_id(raw[2:10]), raw[10:])


def parse_signature(text: str, where: str) -> Signature:
    """The signature in a file. InputError that names `where` for anything else."""
    lines = text.splitlines()
    good = len(lines) == 4 and lines[0].startswith(_UNTRUSTED) and lines[2].startswith(_TRUSTED)
    raw, whole = (_decode(lines[1], 74), _decode(lines[3], 64)) if good else (None, None)
    if raw is None or whole is None or raw[:2] not in (b"Ed", b"ED"):
        raise InputError("signature-invalid", f"{where} is no signature of minisign", hint="fetch the file again, whole")
    return Signature(raw[:2] == b"ED", _id(raw[2:10]), raw[10:], lines[2].removeprefix(_TRUSTED).strip(), whole)


def verify(content: bytes, signature: Signature, keys: tuple[PublicKey, ...], what: str) -> PublicKey:
    """The key that signed the content. InputError where none of the keys did, or content or comment is not what was signed."""
    key = next((one for one in keys if one.id == signature.key_id), None)
    if key is None:
        known = ", ".join(one.id for one in keys) or "none"
        raise InputError(
            "signed-by-another-key",
            f"{what} is signed by the key {signature.key_id}, which is not trusted here",
            context=(f"trusted: {known}",),
            hint="get the archive from whom you trust, or name their key with --key FILE",
        )
    import hashlib

    signed = hashlib.blake2b(content).digest() if signature.hashed else content
    comment = signature.comment.encode()
    if not (_holds(key, signature.signature, signed) and _holds(key, signature.whole, signature.signature + comment)):
        raise InputError(
            "signature-wrong",
            f"{what} is not what was signed: it was changed, cut short, or has another one's signature",
            hint="fetch both files again; where it stays so, do not use them",
        )
    return key


def _holds(key: PublicKey, signature: bytes, message: bytes) -> bool:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise UsageError(
            "no-verifier",
            "signatures are checked by the package cryptography, which is not installed",
            hint="install accel-env with its extra `update`; in a checkout: pip install '.[update]'",
        ) from None
    try:
        Ed25519PublicKey.from_public_bytes(key.raw).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _decode(text: str, size: int) -> bytes | None:
    import base64
    import binascii

    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if len(raw) == size else None


def _id(raw: bytes) -> str:
    """Eight bytes, the least significant first, as hex digits."""
    return raw[::-1].hex().upper()
