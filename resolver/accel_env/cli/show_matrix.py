"""Answers about the matrix itself, as text for people."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from accel_env.cli.text import Json, fits, items, mapping, pairs, program, quoted, reason, string, table, wrap

LINES = 60  # of text about one thing; --json has all of it
ROWS = 40  # builds in the table of a package, half of it where a build takes two lines
VERSIONS = 8  # of a package, in the text about a stack
TAGS = 3
HAS_ALL = "--json has all"


def shown_lines(answer: Json, columns: int, platform: str = "") -> list[str]:
    """What `matrix show` found, as text of about LINES lines; builds for `platform` come first."""
    if "list" in answer:
        return _listed(answer, columns)
    if "bundle" in answer:
        lines = bundle_lines(answer, columns)
    elif "package" in answer:
        lines = package_lines(answer, columns, platform)
    else:
        lines = stack_lines(answer, columns) if "stack" in answer else device_lines(answer, columns)
    return _cut(lines, LINES)


def _cut(lines: list[str], size: int) -> list[str]:
    return lines if len(lines) <= size else [*lines[: size - 2], "", f"and {len(lines) - size + 2} more lines; {HAS_ALL}"]


def _listed(answer: Json, columns: int) -> list[str]:
    rows = [(string(row, "name"), string(row, "summary")) for row in items(answer, "rows")]
    lines = pairs(rows, columns)
    if string(answer, "list") == "profiles":
        lines += ["", f"use one as --host NAME; `{program()} resolve torch --host {rows[0][0] if rows else 'NAME'}`"]
    if string(answer, "list") == "bundles":
        example = f"`{program()} resolve {rows[0][0] if rows else '@NAME'}`"
        lines += ["", *wrap(f"?: left out where it cannot be had; |: the first that can be had. Ask for one: {example}", columns)]
    return lines


def bundle_lines(answer: Json, columns: int) -> list[str]:
    """A bundle: a row per name of a member, with the stacks that it is for and whether it may be left out."""
    facts = {string(fact, "id"): fact for fact in items(answer, "facts")}
    rows = []
    for member in items(answer, "members"):
        may = f"left out where it cannot be had, or torch would be more than {string(member, 'behind')} minor releases older"
        note = may if string(member, "optional") == "True" else ""
        for choice in items(member, "any"):
            stacks = " ".join(str(one) for one in items(choice, "stacks"))
            said = "; ".join(part for part in (f"on {stacks}" if stacks else "", note) if part)
            rows.append((string(choice, "ask"), said or "always"))
    return [f"@{string(answer, 'bundle')}: {string(answer, 'summary')}", "", *pairs(rows, columns), *_facts(facts, columns)]


def package_lines(answer: Json, columns: int, platform: str = "") -> list[str]:
    """A package: summary, a row per build, what each build of a single release needs, the facts behind it."""
    facts = {string(fact, "id"): fact for fact in items(answer, "facts")}
    # The platform of the machine first; the order within one platform is the matrix's.
    builds = sorted(items(answer, "builds"), key=lambda build: string(build, "platform") != platform)
    lines = wrap(f"{string(answer, 'package')}: {string(answer, 'summary')}".rstrip(": "), columns, "", "  ")
    lines += ["", *_builds(builds, columns)]
    for note in items(answer, "absent"):
        archs = " ".join(str(arch) for arch in items(note, "archs"))
        told = _because(facts, string(note, "fact"), string(note, "text"))
        lines += ["", *wrap(f"not on {string(note, 'stack')}{f' ({archs})' if archs else ''}: {told}", columns, "", "  ")]
    releases = items(answer, "releases")
    if len(releases) > 1:
        one = f"{string(answer, 'package')}=={releases[0]}"
        last = ["", *wrap(f"needs and facts of one release: `{program()} matrix show {one}`", columns, "", "  ")]
        return [*_cut(lines, LINES - len(last)), *last]
    for build in builds:
        lines += _needs(build, columns)
    return [*lines, *_facts(facts, columns)]


def _builds(builds: Sequence[object], columns: int) -> list[str]:
    """The table of builds; what nobody has said about a build has a column where there is such a one."""
    doubtful = any(items(build, "unknown") for build in builds[:ROWS])
    head = ("version", "build", *(("unknown",) if doubtful else ()), "platform", "stack", "tags", "index")
    rows = [_build_row(build, doubtful) for build in builds[:ROWS]]
    shown = rows if fits([head, *rows], columns) else rows[: ROWS // 2]
    lines = table(head, shown, columns)
    if len(shown) < len(builds):
        lines.append(f"and {len(builds) - len(shown)} more builds; {HAS_ALL}")
    if doubtful:
        lines += ["", *wrap("unknown: nobody has said it in public, so such a build is not picked", columns, "", "  ")]
    return lines


def stack_lines(answer: Json, columns: int) -> list[str]:
    """A stack: its releases with the drivers that they need, what there is to install, the facts behind it."""
    facts = {string(fact, "id"): fact for fact in items(answer, "facts")}
    vendor = string(answer, "vendor")
    served = f"the stack of {vendor} devices" if vendor != "none" else "the stack without an accelerator"
    lines = [f"{string(answer, 'stack')} {string(answer, 'version')}".rstrip() + f": {served}"]
    lines += wrap(string(answer, "answer"), columns, "  ")
    releases = items(answer, "releases")
    if releases:
        lines += ["", *table(("release", "driver", "all of it from", "torch"), [_release_row(one) for one in releases], columns)]
    for name, title in (("targets", "its compiler knows"), ("archs", "it serves")):
        values = " ".join(str(one) for one in items(releases[0], name)) if len(releases) == 1 else ""
        lines += ["", *wrap(f"{title} {values}", columns, "", "  ")] if values else []
    drivers = [(string(rule, "allows"), " ".join(str(arch) for arch in items(rule, "archs")))
               for rule in items(answer, "arch_drivers")]
    lines += ["", "drivers of architectures", *(f"  {line}" for line in pairs(drivers, columns - 2))] if drivers else []
    builds = [(name, _versions(versions)) for name, versions in mapping(answer, "builds").items()]
    lines += ["", "builds", *(f"  {line}" for line in pairs(builds, columns - 2))] if builds else ["", "no builds"]
    return [*lines, *_facts(facts, columns)]


def _versions(versions: object) -> str:
    """The newest versions; how many more there are."""
    known = [str(one) for one in versions] if isinstance(versions, (list, tuple)) else []
    more = f" and {len(known) - VERSIONS} more" if len(known) > VERSIONS else ""
    return ", ".join(known[:VERSIONS]) + more


def _release_row(release: object) -> tuple[str, str, str, str]:
    """A release with its drivers on Linux: enough for machine code, and for everything."""
    minor, full = (string(release, "drivers", "linux", key) for key in ("minor", "full"))
    allows = " or ".join(str(one) for one in items(release, "driver_allows"))
    return (string(release, "version"), f">={minor}" if minor else allows or "unknown", f">={full}" if full else "",
            string(release, "torch"))


def device_lines(answer: Json, columns: int) -> list[str]:
    """A product, or a row for each of an architecture; then the facts."""
    facts = {string(fact, "id"): fact for fact in items(answer, "facts")}
    devices = items(answer, "devices")
    if len(devices) > 1:
        each = [[string(device, key) for key in ("name", "vendor", "arch", "kind")] for device in devices]
        return [*table(("name", "vendor", "arch", "kind"), each, columns), *_facts(facts, columns)]
    device = devices[0]
    memory = string(device, "memory_mib")
    rows = [
        ("vendor", string(device, "vendor")), ("arch", string(device, "arch")), ("kind", string(device, "kind")),
        ("memory", f"{memory} MiB" if memory else ""), ("cpu", string(device, "cpu")),
        ("also", ", ".join(str(one) for one in items(device, "aliases"))),
        ("pci ids", " ".join(str(one) for one in items(device, "pci"))),
        ("stack", " ".join(str(one) for one in items(device, "stacks"))), ("not served", string(device, "unsupported")),
    ]
    next_words = (program(), "resolve", "torch", "--device", string(device, "name"))
    return [string(device, "name"), "", *pairs(rows, columns), *_facts(facts, columns), "",
            f"next: {quoted(next_words)}"]


def _because(facts: Json, name: str, text: str) -> str:
    fact = facts.get(name, {})
    return reason({"text": text, "source": string(fact, "source"), "grade": string(fact, "grade")})


def _facts(facts: Json, columns: int) -> list[str]:
    lines = ["", "facts"] if facts else []
    for name, fact in facts.items():
        lines += wrap(f"{name}: {reason(fact)}", columns, "  ", "    ")
    return lines


def _label(build: object) -> str:
    variant = string(build, "variant")
    return string(build, "build") + (f" ({variant})" if variant else "")


def _build_row(build: object, doubtful: bool) -> tuple[str, ...]:
    tags = [str(tag) for tag in items(build, "tags")]
    unknown = (", ".join(str(one) for one in items(build, "unknown")),) if doubtful else ()
    index = string(build, "index").removeprefix("https://").replace("/releases/download/{tag}/{file}", "")
    return (
        string(build, "version"), _label(build), *unknown, string(build, "platform"), string(build, "stack") or "any",
        " ".join(tags) if len(tags) <= TAGS else f"{tags[0]} .. {tags[-1]}", index,
    )


def _needs(build: object, columns: int) -> list[str]:
    lines = ["", f"{string(build, 'version')} {_label(build)} on {string(build, 'platform')} needs"]
    for need in items(build, "needs"):
        parts = [string(need, "name"), string(need, "allows"), *(str(value) for value in items(need, "values"))]
        parts += [f"{key} {value}" for key, value in mapping(need, "abi").items()]
        for key in ("jit", "lacks"):
            values = " ".join(str(value) for value in items(need, key))
            parts += [f"{key}: {values}"] if values else []
        parts += [string(need, "when"), string(need, "marker")]
        parts += [word for word, key in (("unknown", "unknown"), ("or second choice", "soft")) if string(need, key) == "True"]
        text = " ".join(part for part in parts if part)
        lines += wrap(f"{string(need, 'need')}: {text} ({string(need, 'fact')})", columns, "  ", "    ")
    return lines


def lint_lines(answer: Json, columns: int, notes: bool = False) -> list[str]:
    """A paragraph per broken rule, and per note where they are wanted; the verdict with both counts last."""
    problems, told = items(answer, "problems"), items(answer, "notes")
    lines: list[str] = []
    for label, finding in (*(("error", one) for one in problems), *(("note", one) for one in told if notes)):
        parts = (label, string(finding, "where"), string(finding, "rule"), string(finding, "message"))
        lines += wrap(": ".join(part for part in parts if part), columns, "", "  ")
    counts = ", ".join(
        f"{len(found)} {word}{'' if len(found) == 1 else 's'}" for found, word in ((problems, "error"), (told, "note"))
    )
    hidden = "" if notes or not told else " (--notes shows them)"
    verdict = "the matrix breaks its rules" if problems else "the matrix keeps its rules"
    return [*lines, *([""] if lines else []), f"{verdict}: {counts}{hidden}"]


def stats_lines(answer: Json, columns: int) -> list[str]:
    """Every count by its name; groups of equal rows as a table."""
    plain = [(key, str(value)) for key, value in answer.items() if not isinstance(value, Mapping) and key != "schema"]
    lines = pairs(plain, columns)
    for key, value in answer.items():
        if not isinstance(value, Mapping) or not value:
            continue
        rows = [(name, row) for name, row in value.items() if isinstance(row, Mapping)]
        if rows:
            head = (key, *rows[0][1])
            body = table(head, [(name, *(string(row, column) for column in head[1:])) for name, row in rows], columns)
        else:
            body = [key, *(f"  {line}" for line in pairs([(name, str(count)) for name, count in value.items()], columns - 2))]
        lines += ["", *body]
    return lines
