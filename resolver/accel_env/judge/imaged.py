"""What the name of the container's image tells about the environment inside, where nobody says otherwise."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from accel_env.judge.types import Environment, Installed

if TYPE_CHECKING:
    from accel_env.judge.book import Book
    from accel_env.judge.files.images import Known
    from accel_env.matrix.load import Matrix

_REFERENCE = re.compile(r"([a-z0-9][\w./-]*?(?::\d+/[\w./-]+)?)(?::([\w][\w.-]*))?(?:@sha256:[0-9a-f]+)?")


def image_of(environment: Environment, matrix: Matrix, book: Book) -> Known | None:
    """The image of the container; None where its base is no reference or of no known family."""
    base = environment.container.base.strip() if environment.container else ""
    found = _REFERENCE.fullmatch(base)
    if found is None or ("/" not in found[1] and not found[2]):
        return None
    from accel_env.judge.files.images import known
    from accel_env.judge.files.tables import open_tables
    from accel_env.judge.files.values import Base

    image = known(Base(base, "container", found[1], found[2] or ""), open_tables(matrix), book)
    return image if image.family is not None else None


def with_image(environment: Environment, matrix: Matrix, book: Book) -> Environment:
    """The environment with the image's Python, C library, stack, torch and main package, as far as nobody spoke of them."""
    image = image_of(environment, matrix, book)
    if image is None:
        return environment
    host = environment.host
    if not host.libc and image.libc:
        host = replace(host, libc=image.libc, libc_family="glibc", libstdcxx=host.libstdcxx or image.libstdcxx)
    host = replace(host, python=host.python or image.python)
    names = {row.name for row in environment.installed}
    rows = []
    if image.torch and "torch" not in names:
        rows.append(Installed("torch", image.torch, image.label, origin="image", vendor=image.vendor or not image.label))
    rows += [
        Installed(name, version, origin="image", vendor=True) for name, version in image.brings if version and name not in names
    ]
    extra = dict(environment.extra)
    if image.release and "image_stack" not in extra:
        extra["image_stack"] = image.stack
    return replace(environment, host=host, installed=(*environment.installed, *rows), extra=extra)
