"""Puts readings behind the needs of candidates: what a binary confirms is measured, and where it says otherwise it wins."""
from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from accel_env.matrix.agree import Check, checks_of, fact_of
from accel_env.matrix.expand import wheel_name
from accel_env.matrix.inspected import Reading
from accel_env.matrix.types import Artifact
from accel_env.model import Candidate, Fact, Need, Subject

Spread = dict[str, tuple[Candidate, ...]]
# What makes one build of a package on a platform: the key of the table of inspected tags.
Key = tuple[str, str, str, str, str]
_RAISED = frozenset([Subject.ARCH, Subject.LIBC, Subject.LIBSTDCXX, Subject.TORCH])


@dataclass(frozen=True, slots=True)
class Difference:
    """A reading that says otherwise than the matrix."""

    candidate: Candidate
    reading: Reading
    check: Check


def key_of(candidate: Candidate) -> Key:
    """What tells builds apart that come from different files or libraries."""
    return candidate.version, candidate.build, candidate.variant, candidate.index, candidate.platform


def _build_number(filename: str) -> int:
    """The build tag of a wheel's name (`-1-cp312-...`): installers take the highest."""
    parts = filename.split("-")
    number = re.match(r"\d+", parts[2]) if len(parts) == 6 else None
    return int(number[0]) if number else 0


class Amender:
    """Candidates with the facts of readings. `facts`: those that readings gave; `tags`: package -> build -> the tags whose file
    was inspected and agrees; `differences`: what does not, before the binary won."""

    def __init__(
        self, readings: Iterable[Reading], artifacts: Mapping[str, Mapping[str, Artifact]], facts: Mapping[str, Fact],
        seen: Mapping[str, object],
    ) -> None:
        """`seen`: inspected/disagreements.yaml; what it says a reading is silent about is not compared."""
        self._artifacts, self._documented = artifacts, facts
        silent = seen.get("silent", [])
        rows = silent if isinstance(silent, list) else []
        self._silent = {(row.get("package"), row.get("subject")) for row in rows if isinstance(row, Mapping)}
        self._by: dict[tuple[str, str, str, str], dict[str, list[Reading]]] = {}
        for reading in readings:
            wheel = wheel_name(reading.filename)
            for platform in wheel.platforms if wheel else ():
                tags = self._by.setdefault((reading.package, reading.index, wheel.version, platform), {}) if wheel else {}
                for tag in wheel.tags if wheel else ():
                    tags.setdefault(tag, []).append(reading)
        self.facts: dict[str, Fact] = {}
        self.tags: dict[str, dict[Key, tuple[str, ...]]] = {}
        self.differences: list[Difference] = []

    def amend(self, spread: Spread) -> Spread:
        """The candidates of one package, amended."""
        return {platform: tuple(map(self._candidate, rows)) for platform, rows in spread.items()} if self._by else spread

    def _candidate(self, candidate: Candidate) -> Candidate:
        found = list(self._readings(candidate))
        if not found:
            return candidate
        checks = [(reading, check) for _, reading in found for check in self._checks(candidate, reading)]
        self.differences.extend(Difference(candidate, reading, check) for reading, check in checks if not check.agrees)
        needs = tuple(self._need(need, [row for row in checks if row[1].need is need]) for need in candidate.needs)
        amended = replace(candidate, needs=needs)
        tags = [tag for tag, reading in found if all(check.agrees for check in self._checks(amended, reading))]
        if tags:
            self.tags.setdefault(candidate.name, {})[key_of(candidate)] = tuple(dict.fromkeys(tags))
        return amended

    def _readings(self, candidate: Candidate) -> Iterator[tuple[str, Reading]]:
        """(tag, reading) of the candidate's own files, of files that were built again the last; a local label in a file name must
        be its own."""
        tags = self._by.get((candidate.name, candidate.index, candidate.version, candidate.platform), {})
        for tag in candidate.tags:
            found = tags.get(tag, ())
            last = max((_build_number(reading.filename) for reading in found), default=0)
            for reading in (reading for reading in found if _build_number(reading.filename) == last):
                wheel = wheel_name(reading.filename)
                if wheel and wheel.local in ("", candidate.build.replace("-", ".").replace("_", ".").lower()):
                    yield tag, reading

    def _checks(self, candidate: Candidate, reading: Reading) -> Iterator[Check]:
        for check in checks_of(candidate, reading):
            if (candidate.name, check.subject) not in self._silent:
                yield check
        artifact = self._artifacts.get(reading.index, {}).get(reading.filename)
        if artifact and artifact.sha256 and artifact.sha256 != reading.sha256:
            yield Check("sha256", False, artifact.sha256, reading.sha256)

    def _need(self, need: Need, checks: list[tuple[Reading, Check]]) -> Need:
        """The need with the reading behind it; where one differs, as that one has it."""
        if not checks or need.subject not in _RAISED:
            return need
        wrong = [row for row in checks if not row[1].agrees]
        if any(check.instead is None for _, check in wrong):
            return need
        reading, check = (wrong or checks)[0]
        joined = "; ".join(dict.fromkeys(other.text for which, other in checks if which is reading and other.text))
        fact = fact_of(reading, replace(check, text=joined), self._documented.get(need.fact))
        self.facts[fact.id] = fact
        return replace(check.instead or need, fact=fact.id)
