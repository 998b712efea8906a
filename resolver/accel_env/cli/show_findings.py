"""A diagnosis as text for people: what was read, then per cause what is wrong, why, and what to do about it."""

from __future__ import annotations

from accel_env.cli.text import Json, items, mapping, reason, string, wrap

REASONS, FIXES = 4, 4  # per finding, in text
LINES = 5  # of a log, named before the findings
PACKAGES = 12  # named in the line about what was judged


def findings_lines(answer: Json, columns: int) -> list[str]:
    """What was judged, the findings with the root cause first, and the verdict in one line."""
    lines = _judged(answer, columns)
    for text in (*items(answer, "notes"), *items(answer, "disagreements")):
        lines += wrap(f"note: {text}", columns, "", "  ")
    told = items(answer, "lines")
    for line in told[:LINES]:
        place = f"{string(line, 'file')}:{string(line, 'line')}"
        lines += wrap(f"{place}: {string(line, 'text')}", columns, "", "  ")
    if len(told) > LINES:
        lines.append(f"and {len(told) - LINES} more deciding lines; --json has them all")
    for finding in items(answer, "findings"):
        lines += ["", *finding_lines(finding, columns)]
    return [*lines, "", *wrap(_verdict(answer), columns, "", "  ")]


def finding_lines(finding: object, columns: int) -> list[str]:
    """One finding."""
    component = string(finding, "component")
    where = string(finding, "where")
    head = f"{string(finding, 'severity')}: {string(finding, 'rule')}" + (f" ({component})" if component else "")
    lines = wrap(f"{head} at {where}" if where else head, columns)
    lines += wrap(string(finding, "message"), columns, "  ")
    cause = string(finding, "consequence_of")
    if cause:
        lines += wrap(f"a consequence of {cause}: it goes away with it", columns, "  ", "    ")
    because = items(finding, "because")
    for one in because[:REASONS]:
        lines += wrap(f"because: {reason(one)}", columns, "  ", "    ")
    if len(because) > REASONS:
        lines.append(f"  because: and {len(because) - REASONS} more facts; --json has them all")
    fixes = items(finding, "fixes")
    if fixes:
        lines.append("  do this:" if len(fixes) == 1 else "  do one of these, the cheapest first:")
        lines += [line for fix in fixes[:FIXES] for line in _fix(fix, columns)]
    if len(fixes) > FIXES:
        more = len(fixes) - FIXES
        lines.append(f"    and {more} more way{'s' if more > 1 else ''} out; --json has them all")
    return lines


def _fix(fix: object, columns: int) -> list[str]:
    from accel_env.judge.findings import fix_text

    checked = " (verified: every need holds with it)" if string(fix, "verified") else ""
    command = string(fix, "command")
    if not command:
        return wrap(f"- {fix_text(mapping(fix))}{checked}", columns, "    ", "      ")
    said = fix_text({**mapping(fix), "command": ""})
    # A command stays on one line: it is there to be copied.
    return [*wrap(f"- {said}{checked}:", columns, "    ", "      "), f"        {command}"]


def _judged(answer: Json, columns: int) -> list[str]:
    origins = ", ".join(str(one) for one in items(answer, "judged"))
    environment = mapping(answer, "environment")
    parts = [_machine(environment), _devices(environment), _packages(answer)]
    known = "; ".join(part for part in parts if part)
    if not known and not origins:
        return []
    told = known or ("" if items(answer, "findings") or items(answer, "lines") else "nothing in it was recognised")
    said = f" {origins}" if origins else ""
    return wrap(f"judged{said}" + (f": {told}" if told else ""), columns, "", "  ")


def _machine(environment: Json) -> str:
    python = string(environment, "python")
    glibc = string(environment, "glibc")
    named = [f"Python {python}" if python else "", f"{string(environment, 'os')} {string(environment, 'arch')}".strip()]
    return ", ".join(part for part in (*named, f"glibc {glibc}" if glibc else "") if part)


def _devices(environment: Json) -> str:
    counted: dict[str, int] = {}
    for device in items(environment, "gpus"):
        known = [string(device, "arch"), f"driver {string(device, 'driver')}" if string(device, "driver") else ""]
        inner = ", ".join(part for part in known if part)
        text = (string(device, "name") or "a device") + (f" ({inner})" if inner else "")
        counted[text] = counted.get(text, 0) + 1
    return ", ".join(text if count == 1 else f"{count} x {text}" for text, count in counted.items())


def _packages(answer: Json) -> str:
    """The packages that accel-env knows something about; the others are counted."""
    packages = mapping(answer, "environment", "packages")
    known = [str(name) for name in _modelled(answer)][:PACKAGES]
    more = len(packages) - len(known)
    others = f"{more} {'other ' if known else ''}package{'s' if more > 1 else ''}" if more else ""
    if not known:
        return f"{others} that accel-env knows nothing about" if others else ""
    return ", ".join(f"{name} {packages[name]}" for name in known) + (f" and {others}" if others else "")


def _modelled(answer: Json) -> tuple[object, ...]:
    """The packages that the matrix models; all of them where the answer does not tell them apart."""
    packages = mapping(answer, "environment", "packages")
    return items(answer, "modelled") if "modelled" in answer else tuple(packages)


def _verdict(answer: Json) -> str:
    severities = [string(finding, "severity") for finding in items(answer, "findings")]
    counts = [(severities.count(word), word) for word in ("error", "warning", "note")]
    said = ", ".join(f"{count} {word}{'s' if count > 1 else ''}" for count, word in counts if count)
    environment = mapping(answer, "environment")
    if not severities and not _modelled(answer) and not environment.get("wanted") and not environment.get("gpus"):
        return "nothing to judge: no package, no device and no error text that accel-env knows was found"
    if not said:
        return "clean: none of the facts that accel-env has speaks against this environment"
    return said if answer.get("status") == "errors" else f"no error; {said}"
