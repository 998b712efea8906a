"""A plan as text for people, from the plan's JSON alone."""
from __future__ import annotations

from collections.abc import Sequence

from accel_env.cli.output import answer_json, answer_text, talk
from accel_env.cli.text import Json, fits, items, mapping, pairs, program, quoted, reason, string, table, width, wrap

HEAD = ("package", "version", "build", "index", "evidence")
REFUSED = "lock-refused"  # the warning that a lock of this plan is known to fail, with what to do `instead`
OUTSIDE, MEANT = "outside-matrix", "did you mean"
AGE = "matrix-old"  # the one warning that is about the matrix and not about the plan
DIGEST_SHOWN = 19  # "sha256:" and twelve digits: enough to recognise an image by


def print_plan(answer: Json, as_json: bool, words: Sequence[str], explained: bool = False) -> int:
    """Print a plan or a refusal as wanted; returns the exit code: 0, or 4 for a refusal."""
    refused = string(answer, "status") == "conflict"
    if as_json or not refused:
        # said where a program that keeps the answer does not lose it; a refusal says it itself
        for warning in items(answer, "warnings"):
            if string(warning, "rule") == AGE:
                talk([f"warning: {AGE}", *wrap(string(warning, "message"), width(), "  ")])
    if as_json:
        answer_json(answer)
    elif refused:
        from accel_env.cli.show_conflict import conflict_lines

        # The refusal is worded as an error and goes where errors go; as JSON it is the answer.
        talk(conflict_lines(answer, width()))
    else:
        answer_text(plan_lines(answer, words, width(), explained))
    return 4 if refused else 0


def plan_lines(plan: Json, words: Sequence[str], columns: int, explained: bool = False) -> list[str]:
    """The plan: host, picks, how to run it, what to know, and the next command."""
    lines = [*wrap(f"for {host_line(plan)}", columns, "", "  "), "", *picks_table(plan, columns), "", *_setting(plan, columns)]
    lines += left_out_lines(plan, columns)
    if explained:
        lines += _why(plan, columns)
    lines += _warnings(plan, columns)
    community = _community(plan)
    if community and not explained:
        lines += ["", f"* rests on facts of the community (`{program()} explain` shows them with their sources):"]
        for text in community:
            lines += wrap(text, columns, "  ", "    ")
    return [*lines, "", *_next(plan, words, columns)]


def _next(plan: Json, words: Sequence[str], columns: int) -> list[str]:
    """The next command; where a lock is known to be refused, what can be done instead."""
    refused = next((warning for warning in items(plan, "warnings") if string(warning, "rule") == REFUSED), None)
    command = f"{quoted((program(), 'lock', *words, '-o'))} DIR"
    if refused is None and _misspelt(plan):
        named = ", ".join(str(name) for name in items(plan, "outside"))
        return wrap(f"next: mend the name; or, where {named} is what you mean, {command}", columns, "", "  ")
    if refused is None:
        return [f"next: {command}"]
    return wrap(f"next: {string(refused, 'instead')}", columns, "", "  ")


def _misspelt(plan: Json) -> bool:
    """True where nothing was picked, and what was asked for is all but the name of something that the matrix has."""
    told = [string(one, "message") for one in items(plan, "warnings") if string(one, "rule") == OUTSIDE]
    return not mapping(plan, "picks") and any(MEANT in text for text in told)


def host_line(answer: Json) -> str:
    """The machine in one line: accelerators with architecture and driver, os, CPU; glibc where the answer depends on it."""
    host = mapping(answer, "host")
    devices: dict[str, int] = {}
    for device in items(host, "devices"):
        known = [string(device, "arch"), f"driver {string(device, 'driver')}" if string(device, "driver") else ""]
        text = f"{string(device, 'name')} ({', '.join(part for part in known if part)})"
        devices[text] = devices.get(text, 0) + 1
    named = [text if count == 1 else f"{count} x {text}" for text, count in devices.items()] or ["no accelerator"]
    binds = string(answer, "target") == "venv"  # a container brings its own
    glibc = f"glibc {string(host, 'glibc')}" if binds and string(host, "glibc") else ""
    return ", ".join(part for part in (*named, f"{string(host, 'os')} {string(host, 'arch')}".strip(), glibc) if part)


def picks_table(plan: Json, columns: int) -> list[str]:
    """One aligned row per pick; a star marks what rests on a community fact."""
    rows = []
    for name, pick in mapping(plan, "picks").items():
        star = " *" if _community_of(pick) else ""
        variant = f" ({string(pick, 'variant')})" if string(pick, "variant") else ""
        build, evidence = string(pick, "build") + variant, string(pick, "evidence") + star
        rows.append([name, string(pick, "version"), build, _short_index(string(pick, "index")), evidence])
    if not rows:
        return ["nothing that was asked for is in the matrix"]
    if fits([HEAD, *rows], columns):
        return table(HEAD, rows, columns)
    # On a narrow terminal the site alone; --json has every address in full.
    return table(HEAD, [[*row[:3], row[3].partition("/")[0], row[4]] for row in rows], columns)


def _short_index(index: str) -> str:
    """An index as people recognise it: without the scheme, a release page as `site/owner/repository@tag`."""
    return index.removeprefix("https://").replace("/releases/download/", "@")


def _setting(plan: Json, columns: int) -> list[str]:
    image = string(plan, "image", "ref")
    digest = string(plan, "image", "digest")
    env = [f"{key}={value}" for key, value in mapping(plan, "env").items()]
    args = tuple(str(arg) for arg in items(plan, "run_args"))
    version = string(plan, "stack", "version")
    rows = [
        ("python", string(plan, "python")),
        ("stack", f"{string(plan, 'stack', 'name')} {'' if version == 'any' else version}".strip()),
        ("image", f"{image}@{digest[:DIGEST_SHOWN]}" if digest else f"{image} (not pinned)" if image else ""),
        ("env", quoted(env)),
        ("lock", "needs the network: no hash is known for some file" if string(plan, "lockable") == "False" else ""),
        ("overlay", "; ".join(_overlay(row) for row in items(plan, "overlays"))),
        ("run", quoted(("docker", "run", "--rm", *args)) + " IMAGE" if image else ""),
    ]
    return pairs(rows, columns)


def left_out_lines(plan: Json, columns: int) -> list[str]:
    """What the bundles go without here: the reason, and what stands in."""
    lines: list[str] = []
    for row in items(plan, "left_out"):
        source, other = string(row, "source"), string(row, "stands_in_source")
        lines += ["", f"left out of @{string(row, 'bundle')}: {string(row, 'name')}"]
        lines += wrap(string(row, "why") + (f" ({source})" if source else ""), columns, "  ", "    ")
        if string(row, "stands_in"):
            text = f"instead: {string(row, 'stands_in')}" + (f" ({other})" if other and other != source else "")
            lines += wrap(text, columns, "  ", "    ")
    return lines


def _overlay(row: object) -> str:
    """An overlay and what of it the plan rests on."""
    given = mapping(row, "gives")
    gives = [f"{kind} {', '.join(map(str, items(given, kind)))}" for kind in given]
    name = string(row, "name").removeprefix("overlay/")
    return f"{name} ({', '.join(gives)})" if gives else f"{name} (nothing of it)"


def _warnings(plan: Json, columns: int) -> list[str]:
    lines: list[str] = []
    for warning in items(plan, "warnings"):
        if string(warning, "rule") == AGE:
            continue
        source = string(warning, "source")
        text = string(warning, "message") + (f" ({source})" if source else "")
        lines += ["", f"warning: {string(warning, 'rule')}", *wrap(text, columns, "  ")]
    return lines


def _why(plan: Json, columns: int) -> list[str]:
    lines: list[str] = []
    for name, pick in mapping(plan, "picks").items():
        lines += ["", f"why {name} {string(pick, 'version')} {string(pick, 'build')}"]
        reasons = items(pick, "because")
        for because in reasons:
            need = string(because, "need")
            lines += wrap(f"{need}: {reason(because)}" if need else reason(because), columns, "  ", "    ")
        lines += [] if reasons else ["  it asks nothing of this host"]
    told = items(plan, "explanation")
    if told:
        lines += ["", "passed over on the way"]
        for one in told:
            lines += wrap(reason(one) if string(one, "text") else str(one), columns, "  ", "    ")
    return lines


def _community(plan: Json) -> list[str]:
    """One line per pick: the needs that rest on community facts, doubtful ones marked."""
    lines = []
    for name, pick in mapping(plan, "picks").items():
        needs: dict[str, bool] = {}
        for because in _community_of(pick):
            need = string(because, "need")
            needs[need] = needs.get(need, False) or bool(string(because, "doubt"))
        if needs:
            lines.append(f"{name}: {', '.join(need + (' (doubtful)' if doubt else '') for need, doubt in needs.items())}")
    return lines


def _community_of(pick: object) -> list[object]:
    return [because for because in items(pick, "because") if string(because, "grade") == "community"]
