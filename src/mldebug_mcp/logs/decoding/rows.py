"""The rows of a table of text, one after another, as records."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mldebug_mcp.logs.beside import is_long, phase_in, tells_kind
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.names import COUNTERS, canonical, is_telling
from mldebug_mcp.logs.numbers import parse_number
from mldebug_mcp.logs.roles import Quantity, role_of

_TAG = re.compile(r".*?-tag-(?P<tag>.+)|(?P<name>.+)")
"""What TensorBoard calls the files that it exports: "run-version_7-tag-train_loss.csv"."""
_COMMENT = re.compile(r"^#+\s*(?=\S)")
"""A header that is a comment, as numpy's `savetxt` writes it."""
_IN_BRACKETS = re.compile(
    r"(?P<name>[^\[\]]{1,80}?) ?[\[(](?P<phase>[a-z]{2,10})[\])]"
    r"|[\[(](?P<before>[a-z]{2,10})[\])] ?(?P<behind>[^\[\]]{1,80})",
    re.IGNORECASE,
)
_CLOCKS = frozenset({Quantity.ELAPSED, Quantity.TIMESTAMP})


def named_by_its_file(header: list[str], stem: str) -> list[str]:
    """Return a header whose only metric is called "value", as a file of one metric has it, with the metric's name.

    Args:
        header: The names of the columns.
        stem: The name of the file without its ending: the tag that TensorBoard exported, or the metric itself.
    """
    named = _TAG.fullmatch(stem)
    others = [name for name in header if name.lower() != "value"]
    if named is None or len(others) != len(header) - 1 or not all(map(_places, others)):
        return header
    metric = named["tag"] or (named["name"] if role_of(named["name"]) is not None else "")
    return [metric if metric and name.lower() == "value" else name for name in header]


def _phase_first(name: str) -> str:
    """Return a name with its phase in brackets, `|g|[train]`, as one that is understood, if it is not by itself."""
    found = _IN_BRACKETS.fullmatch(name)
    if found is None or role_of(name) is not None:
        return name
    bare, phase = found["name"] or found["behind"], phase_in(found["phase"] or found["before"])
    several = (f"{phase}/{bare}", bare) if phase == "train" else (f"{phase}/{bare}",)
    return next((one for one in several if phase and role_of(one) is not None), name)


def _places(name: str) -> bool:
    role = role_of(name)
    return canonical(name) in COUNTERS or (role is not None and role.quantity in _CLOCKS)


class Rows:
    """Takes rows of cells, the header first, and counts what is no record.

    Args:
        builder: Where the records go.
        stem: The name of the file without its ending.
    """

    def __init__(self, builder: RunBuilder, stem: str) -> None:
        self._builder = builder
        self._stem = stem
        self._texts: frozenset[str] = frozenset()
        self.header: list[str] = []
        self._first: list[str] = []
        self.ragged = 0
        self.empty = 0

    def take(self, rows: Iterable[list[str]]) -> None:
        """Read rows; raises csv.Error at a broken one."""
        for row in rows:
            if not self.header:
                self._head(row)
            elif [cell.strip() for cell in row] == self._first:
                self._builder.new_part()
            elif len(row) != len(self.header) and self._is_another_head(row):
                self._head(row)
            elif len(row) != len(self.header):
                self.ragged += bool(row)
            else:
                named = zip(self.header, row, strict=True)
                values = {name: self._value(name, cell) for name, cell in named if name}
                self.empty += not self._builder.record(values)

    def _head(self, row: list[str]) -> None:
        self._first = [re.sub(r"\s+", " ", name).strip() for name in row]
        first = _COMMENT.sub("", self._first[0]) if self._first else ""
        self.header = named_by_its_file(list(map(_phase_first, [first, *self._first[1:]])), self._stem)
        self._texts = frozenset(name for name in self.header if is_long(self.header) or tells_kind(name))

    def _is_another_head(self, row: list[str]) -> bool:
        """Say whether a row names other columns for the rows below it, as a program prints them for evaluation."""
        names = [cell.strip() for cell in row]
        return (
            names[:1] == self._first[:1]
            and all(parse_number(name) is None for name in names)
            and any(map(is_telling, names))
        )

    def _value(self, name: str, cell: str) -> object:
        """Return the number of a cell, or its text where that may tell of what the others are."""
        number = parse_number(cell)
        return cell if number is None and name in self._texts else number

    def tell(self, builder: RunBuilder) -> None:
        """Say in the notes what was no record."""
        if self.ragged:
            builder.note(f"skipped {self.ragged} row(s) with another number of cells than the header")
        if self.empty:
            builder.note(f"skipped {self.empty} row(s) without a number")
