"""A refusal as text for people: what clashes, the facts behind it, then what would help, cheapest first."""
from __future__ import annotations

from accel_env.cli.show_plan import host_line
from accel_env.cli.text import Json, items, mapping, reason, string, wrap

REASONS = 5  # in text


def conflict_lines(answer: Json, columns: int) -> list[str]:
    """`error: reference`, the clash in one sentence, `because` lines, a blank line, one `hint:` per way out."""
    conflict = mapping(answer, "conflict")
    lines = [f"error: {_reference(conflict)}"]
    lines += wrap(_sentence(conflict), columns, "  ")
    lines += wrap(f"host: {host_line(answer)}", columns, "  ", "    ")
    because = items(conflict, "because")
    for one in because[:REASONS]:
        lines += wrap(f"because: {reason(one)}", columns, "  ", "    ")
    if len(because) > REASONS:
        lines.append(f"  because: and {len(because) - REASONS} more facts; --json has them all")
    for warning in items(answer, "warnings"):
        lines += wrap(f"warning: {string(warning, 'message')}", columns, "  ", "    ")
    hints = [_hint(relaxation) for relaxation in items(conflict, "relaxations")]
    lines.append("")
    for hint in hints or [_no_way(conflict)]:
        lines += wrap(f"hint: {hint}", columns, "", "  ")
    return lines


def _no_way(conflict: Json) -> str:
    asks = [item for item in items(conflict, "core") if string(item, "kind") == "ask"]
    if len(asks) == 1:
        return "no single change of the ask or of an option makes it work"
    return "no single change makes it work; drop or loosen one of the asks"


def _reference(conflict: Json) -> str:
    """A slug for the clash: the need that the first reason is about; what stands in is none."""
    because = items(conflict, "because")
    first = next((reason for reason in because if string(reason, "need") != "instead"), None)
    need = string(first, "need").partition(":")[0]
    return f"{need}-not-met" if need else "no-combination"


def _sentence(conflict: Json) -> str:
    core = items(conflict, "core")
    asks = [string(item, "text") for item in core if string(item, "kind") == "ask"]
    host = [string(item, "text") for item in core if string(item, "kind") != "ask"]
    if asks and host:
        return f"{_and(asks)} cannot work with {_and(host)}"
    return f"{_and(asks or host)} cannot work together" if len(core) > 1 else f"{_and(asks or host)} cannot work"


def _hint(relaxation: object) -> str:
    changes = _and([_change(change) for change in items(relaxation, "change")])
    given = mapping(relaxation, "gives")
    order = sorted(given, key=lambda name: name != "torch")
    gives = ", ".join(f"{name} {given[name]}" for name in order)
    return f"{changes}: gives {gives}" if gives else changes


def _change(change: object) -> str:
    kind, name, spec = string(change, "kind"), string(change, "name"), string(change, "spec")
    texts = {
        "drop": f"without {name}",
        "device": f"without the {name}",
        "package": f"ask for {name}{spec}",
        "driver": f"{'a' if name in ('', 'driver') else name} driver {spec}",
        "python": f"Python {spec.removeprefix('==').removesuffix('.*')}",
        "stack": f"--stack {spec or name}" if name else "no --stack",
        "base": f"--base {name}" if name else "no --base",
        "source": f"build {name} from source with {spec}",
        "libc": f"a system with {name} {spec}",
        "target": f"--target {name}",
    }
    return texts.get(kind) or f"{kind} {' '.join(part for part in (name, spec) if part)}"


def _and(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else "what was asked"
