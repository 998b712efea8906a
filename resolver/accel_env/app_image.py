"""From the words about an image (`--base`, `--compiler`, `--devel`) to the options that rendering takes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accel_env.errors import ClosureError, UsageError
from accel_env.model import Image, Subject

if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix
    from accel_env.model import Host, Lock, Policy, Solution
    from accel_env.render.book import RecipeBook
    from accel_env.render.compose import RenderOptions
    from accel_env.render.source import Devel

Json = dict[str, Any]
VENDOR = "vendor"
UNPINNED = "image-unpinned"  # the warning, and the refusal, of a base whose digest nobody named
_MUSL = "alpine"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
CHECKS_LABEL = "accel-env.checks"  # the path of the smoke checks in an image
_REFERENCE = re.compile(r"[a-z0-9][a-z0-9._:/-]*[A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class ImageWords:
    """What was typed. `base`: `REF@sha256:...`; empty for the plan's own."""

    base: str = ""
    compiler: bool = False
    devel: bool = False
    allow_unpinned: bool = False
    formats: tuple[str, ...] = ()


def image_options(words: ImageWords, solution: Solution, matrix: Matrix, lock: Lock | None = None) -> RenderOptions:
    """The options for a solution; every image holds the smoke checks. `lock`: what is known of it by then.

    UsageError for a base that is no reference, ClosureError (5) without a toolkit's digest.
    """
    from accel_env.render.book import added, demanded, load_book
    from accel_env.render.compose import PROGRAMS, RenderOptions
    from accel_env.smoke.checks import program
    from accel_env.smoke.local import PROGRAM

    book = load_book(matrix)
    return RenderOptions(
        allow_unpinned=words.allow_unpinned,
        formats=words.formats,
        base=base_of(words.base) if words.base not in ("", VENDOR) else None,
        packages=book.compiler if words.compiler else (),
        compiler=words.compiler,
        headers=book.headers if words.compiler else "",
        devel=devel_of(solution, book, matrix) if words.devel else None,
        env=demanded(solution, book, matrix) | added(solution, [file.name for file in lock.files] if lock else (), book),
        programs={PROGRAM: program()},
        labels={CHECKS_LABEL: f"{PROGRAMS}/{PROGRAM}"},
    )


def met(plan: Json, words: ImageWords, matrix: Matrix) -> Json:
    """The plan, for showing, without the notes that ask for what the words give: a compiler, a base's digest."""
    from accel_env.render.book import load_book

    answers = load_book(matrix).answers if words.compiler else ()
    rest = [warning for warning in plan["warnings"] if not str(warning["message"]).endswith(tuple(answers))]
    pinned = "@" in words.base
    return {**plan, "warnings": [warning for warning in rest if not (pinned and warning["rule"] == UNPINNED)]}


def check_image(words: ImageWords, solution: Solution, matrix: Matrix) -> None:
    """Refuses, before hours go into a closure, an image that could not be written after it: see `image_options`, and a base
    without a digest where one must be known."""
    from accel_env.render.compose import base_digest, base_image
    from accel_env.render.files import check_formats

    options = image_options(words, solution, matrix)
    image = solution.image
    if image is not None and image.environment and any(pick.candidate.tag == image.ref for pick in solution.picks):
        raise UsageError(
            "base-environment",
            f"torch of {image.ref} is in a virtual environment of the image ({image.environment}), which cannot be built on yet",
            hint="`accel-env lock` with the same words says what to install in it, constrained to the torch that is there",
        )
    check_formats(options.formats)
    if options.base:
        _check_own(options.base.ref, solution, matrix)
    base_digest(solution, options.base or base_image(solution), options)


def _check_own(ref: str, solution: Solution, matrix: Matrix) -> None:
    """UsageError for a base whose name says that what was planned does not run on it: the build would tell that much later."""
    said, planned = _python_of(ref, matrix), solution.python.removesuffix("t")
    if said and said != planned:
        raise UsageError("base-of-another-python", f"--base {ref} holds Python {said}; this plan is for Python {solution.python}",
                         hint=f"add --python {said}, or name a base with Python {planned}")
    bound = [pick.candidate.label for pick in solution.picks if any(n.subject is Subject.LIBC for n in pick.candidate.needs)]
    if _MUSL in ref and bound:
        raise UsageError("base-without-glibc", f"--base {ref} has musl for a C library, and {bound[0]} needs glibc",
                         hint="name a base with glibc, such as one of Debian or Ubuntu")


def _python_of(ref: str, matrix: Matrix) -> str:
    """The Python that an image is known to hold, or that its tag tells where the image is one of Python's own; else empty."""
    rows = [image for image in matrix.images() if image.python]
    known = next((image.python for image in rows if image.ref == ref), "")
    name, _, tag = ref.rpartition(":")
    own = {image.ref.partition(":")[0] for image in rows if image.default}
    told = re.match(r"3\.\d+", tag) if name.rpartition("/")[2] in own else None
    return known or (told[0] if told else "")


def vendor_base(text: str, matrix: Matrix, own: bool = False) -> str:
    """What `--base` says about where torch comes from: `vendor`, a vendor image of the matrix, or nothing (empty).

    UsageError for an image that the matrix does not know, unless a base of one's own (`own`) will do, as it does for rendering.
    """
    import difflib

    ref, at, _ = text.partition("@")
    if at:
        base_of(text)  # a digest that is none is refused wherever it is written
        if ref == VENDOR:
            raise UsageError("bad-base", f"--base {text}: a digest is one image's", hint="--base NAME:TAG@sha256:DIGEST")
    known = [image.ref for image in matrix.images() if image.torch]
    if ref == VENDOR or ref in known:
        return ref
    if own:
        return ""
    near = difflib.get_close_matches(ref, known, 3) or known[:3]
    raise UsageError("unknown-base", f"--base {text}: no image of the matrix whose torch is known",
                     hint=f"`--base {VENDOR}` for any of the vendor's; near it: {', '.join(near)}")


def check_base(policy: Policy, host: Host, matrix: Matrix) -> None:
    """UsageError for a base that no plan for this machine can stand on: in a virtual environment, or on another stack."""
    from accel_env.solve.images import image_pythons
    from accel_env.solve.problem import choose_devices
    from accel_env.solve.stacks import active_stack
    from accel_env.solve.versions import split_stack

    if not policy.base:
        return
    if policy.target == "venv":
        raise UsageError("base-in-venv", f"--base {policy.base} names an image, and a plan for --target venv stands on none",
                         hint="leave --base out, or ask for --target container")
    stack = active_stack(matrix, choose_devices(host, policy, matrix)[0], policy)
    if image_pythons(matrix, stack, policy):
        return
    of = sorted({split_stack(i.stack)[0] for i in matrix.images() if i.torch and policy.base in (VENDOR, i.ref)})
    what = "any image that brings torch" if policy.base == VENDOR else "it"
    raise UsageError("base-of-another-stack", f"--base {policy.base}: {what} is for {' or '.join(of)}; this plan is for {stack}",
                     hint="leave --base out, or name a machine that the image is for (--device, --host)")


def base_of(text: str) -> Image:
    """The image that a user named. UsageError for what is no reference."""
    ref, at, digest = text.partition("@")
    if not _REFERENCE.fullmatch(ref) or (at and not _DIGEST.fullmatch(digest)):
        raise UsageError("bad-base", f"{text} is no reference of an image", hint="--base NAME:TAG@sha256:DIGEST")
    return Image(ref, digest)


def devel_of(solution: Solution, book: RecipeBook, matrix: Matrix) -> Devel:
    """How to compile on the stack of the solution, for the devices of the plan."""
    from accel_env.render.source import Devel

    rule = book.source_rule(solution.stack)
    if rule is None:
        raise UsageError(
            "no-source-builds", f"how packages are compiled for {solution.stack} is not known", hint="leave --devel out"
        )
    ref = _builder(solution.stack, matrix) if rule.toolkit else ""
    archs = tuple(device.arch for device in solution.problem.devices)
    named = {rule.variable: rule.archs(archs)} if rule.variable and archs else {}
    return Devel(book.compiler, ref, rule.toolkit, {**rule.env, **named}, rule.memory_gib)


def _builder(stack: str, matrix: Matrix) -> str:
    """`ref@digest` of the first image of the matrix that holds the stack's toolkit and no torch."""
    fitting = [image for image in matrix.images() if image.stack == stack and not image.torch]
    pinned = [image for image in fitting if image.digest]
    if not pinned:
        known = ", ".join(image.ref for image in fitting) or "none"
        raise ClosureError(
            "toolkit-unpinned",
            f"no digest is known of an image with the toolkit of {stack} (known images: {known})",
            hint="an overlay whose images hold one of these refs and its digest pins it",
        )
    return f"{pinned[0].ref}@{pinned[0].digest}"
