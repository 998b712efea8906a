"""Engines that know no SOURCE_DATE_EPOCH (Docker 20.10 and before) write today's date into an image's configuration.

Their layers come out equal when every file in them has its time already; so it is enough to write the configuration anew. The
engine has the layers, and when it loads an archive it does not look into the file of a layer that it has: none is in there.
"""

from __future__ import annotations

import datetime
import hashlib
import io
import json
import tarfile
import tempfile
from typing import Any

from accel_env.build.archive import read_archive
from accel_env.build.engine import Engine
from accel_env.errors import BuildError


def redate(engine: Engine, ref: str, image: str, epoch: int) -> str:
    """Gives `ref` a configuration in which nothing is later than `epoch` (seconds); returns its digest. The old one goes."""
    found = engine.inspect(image)
    skipped = found.layers if found else ()
    config = read_archive(engine.save(image), skipped).documents.get(image)
    if config is None:
        raise BuildError("engine-too-old", "the image's configuration cannot be read, so its date cannot be set")
    content = dated(json.loads(config), epoch)
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    if digest == image:
        return digest
    with tempfile.NamedTemporaryFile(prefix="accel-env-", suffix=".tar") as file:
        file.write(archive(content, ref, len(json.loads(content)["rootfs"]["diff_ids"])))
        file.flush()
        engine.load(file.name)
    loaded = engine.inspect(digest)
    if loaded is None or loaded.layers != skipped:
        raise BuildError("engine-too-old", "the engine did not take the image whose date was set", hint="use Docker 23 or newer")
    engine.tag(digest, ref)
    engine.remove(image)
    return digest


def dated(config: dict[str, Any], epoch: int) -> bytes:
    """The configuration with every later moment brought down to `epoch`, in one way of writing it."""
    moment = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")

    def clamped(value: dict[str, Any]) -> dict[str, Any]:
        # Moments of one zone compare as text.
        return {**value, "created": moment} if str(value.get("created", "")) > moment else value

    history = [clamped(item) for item in config.get("history") or ()]
    return json.dumps(clamped({**config, "history": history}), sort_keys=True, separators=(",", ":")).encode()


def archive(config: bytes, ref: str, layers: int) -> bytes:
    """A docker-archive with a configuration, and layers that are only named."""
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    row = {"Config": name, "RepoTags": [ref], "Layers": [f"{number}/layer.tar" for number in range(layers)]}
    manifest = json.dumps([row]).encode()
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        for path, content in ((name, config), ("manifest.json", manifest)):
            member = tarfile.TarInfo(path)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return whole.getvalue()
