"""Rules about vendors' images: what they bring is modelled, and the lists of machine code that they name are there and used."""
from __future__ import annotations

from collections.abc import Callable, Iterator

from accel_env.matrix.compile import Model
from accel_env.matrix.findings import LintProblem, error, note

FILE = "images.yaml"


def rules() -> tuple[Callable[[Model], Iterator[LintProblem]], ...]:
    """All rules of this file."""
    return (images_bring_what_is_modelled, code_is_named)


def images_bring_what_is_modelled(model: Model) -> Iterator[LintProblem]:
    """An image with contents brings torch of a Python and a release of a stack; a package that nobody models is told in vain."""
    names = set(model.names())
    for image in model.images:
        if not image.brings:
            continue
        if "torch" not in image.brings or not image.python or "-" not in image.stack:
            yield error("image-contents", FILE, image.ref, "what `brings` has torch, `python`, and a release as its `stack`")
        for name in image.brings:
            if name not in names:
                yield note("image-package", FILE, image.ref, f"the matrix has no package `{name}`, so that nobody sees it")
        if image.purpose and image.purpose not in image.brings:
            yield error("image-purpose", FILE, image.ref, f"it is made for {image.purpose}, which it does not bring")


def code_is_named(model: Model) -> Iterator[LintProblem]:
    """Every list that an image names is there, for what the image brings; every list is named."""
    used = {(image.ref, package, name) for image in model.images for package, name in image.code.items()}
    for ref, package, name in sorted(used):
        brings = next(image.brings for image in model.images if image.ref == ref)
        if name not in model.code:
            yield error("image-code", FILE, ref, f"there is no list `{name}` under `code`", f"there are: {', '.join(model.code)}")
        if package not in brings:
            yield error("image-code", FILE, ref, f"code of {package}, which the image does not bring")
    for name in model.code:
        if name not in {one for _, _, one in used}:
            yield note("code-unused", FILE, f"code.{name}", "no image names this list")
