"""Turn a root file system into an image with one layer and nothing of today in it, and push it to a plain registry.

usage: push_base.py TAR NAME:TAG REGISTRY-URL EPOCH; prints the digest of the manifest.
"""

from __future__ import annotations

import datetime
import gzip
import hashlib
import json
import platform
import shutil
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import IO

MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
# No proxy: the registry is on this machine.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def main(tar: str, name: str, registry: str, epoch: str) -> str:
    """Push the image; returns `sha256:...` of its manifest."""
    repository, _, tag = name.partition(":")
    target = f"{registry}/v2/library/{repository}"
    with tempfile.TemporaryFile() as packed, open(tar, "rb") as plain:
        diff_id = _digest(plain)
        plain.seek(0)
        # mtime 0 and no file name: the same bytes every time. Level 1: it is read back on this machine alone.
        with gzip.GzipFile("", "wb", 1, packed, mtime=0) as stream:
            shutil.copyfileobj(plain, stream, 1 << 20)
        packed.seek(0)
        layer = _push_blob(target, packed)
    config = json.dumps(_config(diff_id, int(epoch)), sort_keys=True).encode()
    with tempfile.TemporaryFile() as stream:
        stream.write(config)
        stream.seek(0)
        settings = _push_blob(target, stream)
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", **settings},
        "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", **layer}],
    }
    content = json.dumps(manifest, sort_keys=True).encode()
    _send("PUT", f"{target}/manifests/{tag}", content, MANIFEST)
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _config(diff_id: str, epoch: int) -> dict[str, object]:
    created = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "architecture": MACHINES[platform.machine()],
        "os": "linux",
        "created": created,
        "config": {"Cmd": ["python3"], "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [diff_id]},
        "history": [{"created": created, "created_by": "mmdebstrap"}],
    }


def _push_blob(target: str, stream: IO[bytes]) -> dict[str, object]:
    """Upload a blob; returns its `digest` and `size` in bytes."""
    digest = _digest(stream)
    size = stream.seek(0, 2)
    stream.seek(0)
    place = _send("POST", f"{target}/blobs/uploads/", b"")
    joint = "&" if "?" in place else "?"
    _send("PUT", f"{place}{joint}digest={digest}", stream, "application/octet-stream", size)
    return {"digest": digest, "size": size}


def _send(method: str, url: str, body: bytes | IO[bytes], kind: str = "", size: int | None = None) -> str:
    headers = {"Content-Length": str(len(body) if isinstance(body, bytes) else size)} | ({"Content-Type": kind} if kind else {})
    with OPENER.open(urllib.request.Request(url, body, headers, method=method), timeout=120) as answer:
        return str(answer.headers.get("Location", ""))


def _digest(stream: IO[bytes]) -> str:
    total = hashlib.sha256()
    while block := stream.read(1 << 20):
        total.update(block)
    return f"sha256:{total.hexdigest()}"


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(str(__doc__))
    Path(sys.argv[1]).stat()  # a missing file is said before anything is sent
    print(main(*sys.argv[1:]))
