"""The METADATA of a wheel: from the file beside it (PEP 658), else out of the wheel's end, without the rest of it."""
from __future__ import annotations

import zipfile

from accel_env.errors import ClosureError
from accel_env.inspect.source import open_wheel
from updating.pages import File
from updating.source import Source


def read_metadata(source: Source, file: File) -> str:
    """The text. ClosureError where it cannot be had, or is not what the index says."""
    if file.metadata:
        url = f"{file.url}.metadata"
        return (source.get(url) if file.metadata == "-" else source.check(url, file.metadata)).text
    source.asked += 1
    try:
        with open_wheel(source.place(file.url)) as stream, zipfile.ZipFile(stream) as wheel:
            for name in wheel.namelist():
                if name.endswith(".dist-info/METADATA") and name.count("/") == 1:
                    return wheel.read(name).decode("utf-8", "replace")
    except (zipfile.BadZipFile, OSError, NotImplementedError) as problem:
        raise ClosureError("wheel-unreadable", f"{file.name} is no wheel that can be read: {problem}", hint="try again") from None
    raise ClosureError("wheel-unreadable", f"{file.name} holds no METADATA", hint="look at it by hand")
