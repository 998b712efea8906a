"""The files that hold no packages, as typed values: stacks, devices, images, indexes, Pythons, conflicts, artifacts."""
from __future__ import annotations

from dataclasses import dataclass

from accel_env.matrix import checks
from accel_env.matrix.read import Row
from accel_env.matrix.types import (
    Answer,
    ArchAlias,
    ArchDriver,
    Artifact,
    CodeRule,
    DeviceRow,
    DriverFloor,
    DriverName,
    ForwardCompat,
    Inbox,
    InboxKernel,
    Index,
    KindRule,
    KindRun,
    KnownConflict,
    NoDriver,
    Over,
    PythonRelease,
    Stack,
    StackRelease,
)
from accel_env.model import GRADES, Fact, Image

_INDEX_KINDS = ("simple", "flat", "asset")


@dataclass(frozen=True, slots=True)
class Vendor:
    """One device file."""

    vendor: str
    pci_vendor: str
    strip: tuple[str, ...]
    rows: tuple[DeviceRow, ...]


def parse_facts(row: Row) -> dict[str, Fact]:
    """Full id -> fact, of the `facts` of a document."""
    found: dict[str, Fact] = {}
    for name, inner in row.keyed("facts").items():
        full = f"{row.stem}:{name}"
        found[full] = Fact(full, inner.text("text"), inner.text("source"), inner.one_of("grade", GRADES),
                           inner.text("checked", check=checks.date), inner.optional("doubt"))
        if ":" in name:
            inner.fault("", "the id of a fact holds no `:`")
        inner.close()
    return found


def parse_stack(row: Row) -> Stack:
    """The stack of a stack file."""
    run = row.maybe("run")
    found = Stack(
        name=row.text("stack"), vendor=row.text("vendor"),
        run_args=run.texts("args") if run else (),
        run_env=run.pairs("env") if run else {},
        run_fact=run.fact() if run else "",
        run_note=run.optional("note") if run else "",
        code_rules=tuple(_code_rule(item) for item in row.rows("code_rules")),
        aliases=tuple(_alias(item) for item in row.rows("aliases")),
        driver_names=tuple(_driver_name(item) for item in row.rows("driver_names")),
        releases=tuple(_stack_release(item) for item in row.rows("releases")),
        arch_drivers=tuple(_arch_driver(item) for item in row.rows("arch_drivers")),
        forward_compat=_forward_compat(row.maybe("forward_compat")),
        kind_rules=tuple(_kind_rule(item) for item in row.rows("kind_rules")),
        inbox=_inbox(row.maybe("inbox")),
        answer=_answer(row.maybe("answer")),
        over=_over(row.maybe("over")),
        run_several=run.texts("several") if run else (),
        run_kinds=tuple(_kind_run(item) for item in run.rows("kinds")) if run else (),
        no_drivers=tuple(_no_driver(item) for item in row.rows("no_drivers")),
    )
    if run:
        run.close()
    row.close()
    return found


def _code_rule(row: Row) -> CodeRule:
    found = CodeRule(row.text("device", check=checks.arch), row.texts("not_from", required=True, check=checks.arch),
                     row.optional("before", checks.version), row.fact())
    row.close()
    return found


def _alias(row: Row) -> ArchAlias:
    found = ArchAlias(row.text("a", check=checks.arch), row.text("b", check=checks.arch), row.fact())
    row.close()
    return found


def _driver_name(row: Row) -> DriverName:
    found = DriverName(row.text("match"), row.text("release", check=checks.version), row.fact())
    row.close()
    return found


def _cpu(text: str) -> str:
    return "" if text in ("x86_64", "aarch64") else f"`{text}` is none of: x86_64, aarch64"


def _arch_driver(row: Row) -> ArchDriver:
    archs = row.texts("archs", required=True, check=checks.arch)
    found = ArchDriver(archs, row.text("allows", check=checks.specifier), row.fact())
    row.close()
    return found


def _forward_compat(row: Row | None) -> ForwardCompat | None:
    if row is None:
        return None
    branches = row.texts("branches", required=True, check=checks.version)
    found = ForwardCompat(row.texts("kinds", required=True), branches, row.fact())
    row.close()
    return found


def _kind_run(row: Row) -> KindRun:
    found = KindRun(row.text("kind"), row.texts("args"), row.fact())
    row.close()
    return found


def _no_driver(row: Row) -> NoDriver:
    found = NoDriver(row.text("kind"), row.text("allows", check=checks.specifier), row.text("text"), row.fact())
    row.close()
    return found


def _kind_rule(row: Row) -> KindRule:
    found = KindRule(row.text("kind"), row.texts("archs", check=checks.arch), row.text("text"), row.fact())
    row.close()
    return found


def _inbox(row: Row | None) -> Inbox | None:
    if row is None:
        return None
    kernels: list[InboxKernel] = []
    for item in row.rows("kernels"):
        kernels.append(InboxKernel(item.texts("archs", required=True, check=checks.arch),
                                   item.text("allows", check=checks.specifier), item.fact()))
        item.close()
    found = Inbox(row.text("text"), row.fact(), tuple(kernels))
    row.close()
    return found


def _answer(row: Row | None) -> Answer | None:
    if row is None:
        return None
    found = Answer(row.text("text"), row.fact())
    row.close()
    return found


def _over(row: Row | None) -> Over | None:
    if row is None:
        return None
    found = Over(row.text("stack"), row.texts("beneath", required=True, check=checks.distribution), row.fact())
    row.close()
    return found


def _stack_release(row: Row) -> StackRelease:
    floors: dict[str, DriverFloor] = {}
    driver = row.maybe("driver")
    allows: tuple[str, ...] = ()
    if driver:
        allows = driver.texts("allows", check=checks.specifier)
        for system in checks.OSES:
            if floor := driver.maybe(system):
                floors[system] = DriverFloor(floor.text("minor", check=checks.version), floor.optional("full", checks.version))
                floor.close()
        if not floors and not allows:
            driver.fault("", "must hold floors per os or `allows`")
    found = StackRelease(
        version=row.text("version", check=checks.version), driver_floors=floors, driver_allows=allows,
        driver_fact=driver.fact() if driver else "",
        targets=row.texts("targets", check=checks.arch), archs=row.texts("archs", check=checks.arch),
        torch=row.optional("torch", checks.version), sycl=row.optional("sycl"), hip=row.optional("hip"),
        fact=row.fact(), date=row.optional("date", checks.date),
    )
    if driver:
        driver.close()
    row.close()
    return found


def parse_devices(row: Row) -> Vendor:
    """The devices of a device file."""
    vendor = row.text("vendor")
    found = Vendor(vendor, row.optional("pci_vendor", checks.pci, empty=True), row.texts("strip"),
                   tuple(parse_device(item, vendor) for item in row.rows("devices", required=True)))
    row.close()
    return found


def parse_device(row: Row, vendor: str) -> DeviceRow:
    """One device."""
    found = DeviceRow(
        vendor=vendor, name=row.text("name"), arch=row.text("arch", check=checks.arch), aliases=row.texts("aliases"),
        pci=row.texts("pci", check=checks.pci), integrated=row.flag("integrated"), kind=row.optional("kind"),
        memory_mib=row.whole("memory_mib"), stack=row.optional("stack"), unsupported=row.optional("unsupported"), fact=row.fact(),
        cpu=row.optional("cpu", check=_cpu),
    )
    row.close()
    return found


def parse_images(row: Row) -> tuple[Image, ...]:
    """The images of an `images` list."""
    found: list[Image] = []
    for item in row.rows("images"):
        brings = item.pairs("brings", check=checks.version, names=checks.distribution)
        torch = item.optional("torch")
        if torch and "torch" in brings:
            item.fault("torch", "stands under `brings` already")
        digests = item.pairs("digests", check=checks.image_digest, names=checks.platform)
        found.append(Image(
            ref=item.text("ref"), digest=item.optional("digest", checks.image_digest), digests=digests,
            python=item.optional("python", checks.python), libc=item.optional("libc", checks.version),
            libstdcxx=item.optional("libstdcxx", checks.version), stack=item.optional("stack"),
            torch=torch or brings.get("torch", "").partition("+")[0],
            os=item.optional("os"), default=item.flag("default"), fact=item.fact(), archs=item.texts("archs", check=checks.arch),
            brings=brings, platforms=item.texts("platforms", required=bool(brings), check=checks.platform),
            code=item.pairs("code", names=checks.distribution), compat=item.flag("compat"), requires=item.flag("requires"),
            environment=item.optional("environment"), note=item.optional("note"), purpose=item.optional("purpose"),
        ))
        item.close()
    return tuple(found)


def parse_indexes(row: Row) -> dict[str, Index]:
    """Name -> index, of an `indexes` mapping."""
    found: dict[str, Index] = {}
    for name, item in row.keyed("indexes").items():
        found[name] = Index(name, item.text("url", check=checks.url), item.one_of("kind", _INDEX_KINDS),
                            item.fact(required=False))
        item.close()
    return found


def parse_pythons(row: Row) -> tuple[PythonRelease, ...]:
    """The Pythons, in order of preference."""
    found: list[PythonRelease] = []
    for item in row.rows("pythons", required=True):
        found.append(PythonRelease(item.text("version", check=checks.python), item.text("status"), item.fact()))
        item.close()
    return tuple(found)


def parse_conflicts(row: Row) -> tuple[KnownConflict, ...]:
    """The known-bad pairs."""
    found: list[KnownConflict] = []
    for item in row.rows("conflicts", required=True):
        sides = [(side.text("name", check=checks.distribution), side.optional("allows", checks.specifier), side)
                 for side in item.rows("packages", required=True)]
        for _, _, side in sides:
            side.close()
        if len(sides) != 2:
            item.fault("packages", f"must name two packages, names {len(sides)}")
            sides = [*sides, *sides, ("", "", item), ("", "", item)]
        (a, a_allows, _), (b, b_allows, _) = sides[:2]
        found.append(KnownConflict(item.text("id"), (a, a_allows), (b, b_allows), item.text("why"), item.fact()))
        item.close()
    return tuple(found)


def parse_artifacts(row: Row) -> tuple[str, dict[str, Artifact]]:
    """The index, and file name -> artifact."""
    index = row.text("index")
    row.optional("source")
    found: dict[str, Artifact] = {}
    for name, item in row.keyed("files", required=True).items():
        sha256 = item.optional("sha256", checks.sha256)
        rivals = item.maybe("conflict")
        conflict: dict[str, tuple[str, ...]] = {}
        for rival in rivals or ():
            if rivals:
                rivals.check_name(rival, checks.sha256)
                conflict[rival] = rivals.texts(rival)
        sources = item.texts("sources")
        if conflict and sha256:
            conflict, sha256 = {sha256: sources, **conflict}, ""
        found[name] = Artifact(sha256, item.whole("size"), item.whole("seen") or 0, item.one_of("grade", GRADES), sources,
                               item.optional("tag"), conflict)
        item.close()
    row.close()
    return index, found
