"""What rows of a data set share, with each other and with those of another one."""

from __future__ import annotations

from dataclasses import dataclass

from mldebug_mcp.batch.ragged import Ints


@dataclass(frozen=True, slots=True)
class Overlap:
    """What rows share. Pairs are row numbers: a row, and the earlier or other one.

    Args:
        exact, near: Pairs within the data set; near ones are not exact.
        rows: Rows looked at.
        against: The other data set's path, or "".
        against_rows: Its rows.
        against_exact, against_near: Pairs of a row of the data set and one of the other.
    """

    exact: Ints
    near: Ints
    rows: int
    against: str = ""
    against_rows: int = 0
    against_exact: Ints | None = None
    against_near: Ints | None = None
