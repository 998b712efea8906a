"""How old the matrix is. What depends on the day is said, and never written into a plan or lock that is kept."""
from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from accel_env.matrix.load import Matrix

RULE = "matrix-old"
TODAY = "ACCEL_ENV_TODAY"  # the day to count from, as YYYY-MM-DD, instead of the clock's


def warning(matrix: Matrix, today: str = "") -> str:
    """A sentence where the matrix is older than it says it may be; empty where it is not, or its version is no date."""
    limit = matrix.document("matrix").get("stale_after_days")
    born = _day(matrix.version.replace(".", "-"))
    now = _day(today or os.environ.get(TODAY, "")) or int(time.time() // 86400)
    if not limit or not born or now - born <= limit:
        return ""
    return (f"the matrix is of {matrix.version}, {now - born} days ago: newer releases, drivers and faults are not in it; "
            "install a newer accel-env, or newer data with `accel-env matrix update`")


def _day(text: str) -> int:
    """Days since 1970-01-01 of `Y-M-D` (what follows is left out); 0 for what is no date."""
    parts = text.split("-")[:3]
    if len(parts) < 3 or not all(part.isdigit() for part in parts):
        return 0
    year, month, day = map(int, parts)
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return 0
    # Years that begin in March, so that the leap day is the last one; `datetime` costs more than all of this module.
    year, month = (year - 1, month + 9) if month < 3 else (year, month - 3)
    return year * 365 + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 1 - 719468
