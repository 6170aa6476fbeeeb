"""The sheet in as many characters as there are: what decides is kept, the rest is counted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from mldebug_mcp.diagnose.sheet import lines_of
from mldebug_mcp.models.sheet import Sheet
from mldebug_mcp.text import shorten

SHORT_NAME = 40
LONGEST_LINE, LINE_LESS = 600, 40
LEAST_COLUMNS, LEAST_EVENTS = 5, 4
Step = Callable[[Sheet], Sheet]
_BETWEEN = 2
"""Characters between two lines in JSON, beside their quotation marks."""


def lines_within(sheet: Sheet, room: int) -> list[str]:
    """Return the lines of a sheet that fit into so many characters of JSON.

    What no finding rests on and no setting marks goes first: settings that are not known by name, columns that are no
    result, jumps of which no finding tells, from the least on. At last the names of what is left out are cut.
    """
    lines = lines_of(sheet)
    for shorter in _shorter(sheet):
        if _length(lines) <= room:
            return lines
        lines = lines_of(shorter)
    for longest in (*range(LONGEST_LINE, SHORT_NAME, -LINE_LESS), 0):
        if _length(lines) <= room:
            break
        lines = [shorten(line, longest) for line in lines] if longest else _first(lines, room)
    return lines


def _first(lines: list[str], room: int) -> list[str]:
    """Return as many of the lines as there is room for."""
    return next(lines[:count] for count in range(len(lines), -1, -1) if _length(lines[:count]) <= max(0, room))


def _shorter(sheet: Sheet) -> Iterator[Sheet]:
    """Yield the sheet shorter and shorter."""
    for step in _STEPS:
        for _ in range(60):
            sheet, before = step(sheet), sheet
            if sheet == before:
                break
            yield sheet


def _fewer_columns(sheet: Sheet) -> Sheet:
    """Leave out the last column that is no result and that no finding rests on, and name it."""
    return _without_column(sheet, {one.name for one in sheet.quantities if one.matters})


def _fewer_results(sheet: Sheet) -> Sheet:
    """Leave out the last result; they stand in the order in which they decide."""
    return _without_column(sheet, {one.name for one in sheet.quantities[:LEAST_COLUMNS]})


def _without_column(sheet: Sheet, kept: set[str]) -> Sheet:
    place = next((at for at in reversed(range(len(sheet.quantities))) if sheet.quantities[at].name not in kept), None)
    if place is None:
        return sheet
    left = sheet.quantities[place]
    names = [line.removeprefix(_ALSO) for line in sheet.not_judged if line.startswith(_ALSO)]
    also = _ALSO + ", ".join([shorten(left.curves[0].name, SHORT_NAME), *names])
    return sheet.model_copy(
        update={
            "quantities": [*sheet.quantities[:place], *sheet.quantities[place + 1 :]],
            "not_judged": [*(one for one in sheet.not_judged if not one.startswith(_ALSO)), shorten(also, 300)],
        }
    )


_ALSO = "also logged (read_metric shows them): "


def _fewer_settings(least: int) -> Step:
    """Return the step that leaves out the last setting whose value is usual, but for so many."""

    def fewer(sheet: Sheet) -> Sheet:
        usual = [at for at, one in enumerate(sheet.settings) if not one.usual]
        if len(usual) <= least:
            return sheet
        return sheet.model_copy(update={"settings": [one for at, one in enumerate(sheet.settings) if at != usual[-1]]})

    return fewer


def _fewer_events(sheet: Sheet) -> Sheet:
    """Leave out the smallest jump at which no finding begins."""
    jumps = [one for one in sheet.events if not one.findings and one.size]
    if len(jumps) <= LEAST_EVENTS:
        return sheet
    least = min(jumps, key=lambda one: one.size)
    return sheet.model_copy(update={"events": [one for one in sheet.events if one is not least]})


_STEPS: tuple[Step, ...] = (
    _fewer_settings(36), _fewer_columns, _fewer_settings(20), _fewer_events, _fewer_settings(12), _fewer_results,
)  # fmt: skip
"""What is left out, in this order."""


def _length(lines: list[str]) -> int:
    return sum(len(json.dumps(line)) + _BETWEEN for line in lines)
