"""The sheet in as many characters as there are: what decides is kept, the rest is shortened, named or counted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator

from mldebug_mcp.diagnose.sheet import lines_of
from mldebug_mcp.models.sheet import CurveFact, QuantityFact, Sheet
from mldebug_mcp.text import figure, shorten

SHORT_NAME = 40
LONGEST_LINE, LINE_LESS = 600, 40
LEAST_EVENTS = 4
LONGEST_EVENT = 160
Step = Callable[[Sheet], Sheet]
_BETWEEN = 2
"""Characters between two lines in JSON, besides their quotation marks."""
_ALSO = "also logged (read_metric shows them): "


def lines_within(sheet: Sheet, room: int) -> list[str]:
    """Return the lines of a sheet that fit into so many characters of JSON.

    What no finding rests on and no setting marks goes first: settings that are not known by name, the course of columns
    that are not results, jumps without a finding, from the least on. Only where what decides is itself too much,
    lines are cut.
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


def least_room(sheet: Sheet) -> int:
    """Return the characters of JSON that what decides takes: the lines of the sheet when nothing else is left."""
    return _length(lines_of([sheet, *_shorter(sheet)][-1]))


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


def _briefly(kept: Callable[[QuantityFact], bool]) -> Step:
    """Return the step that tells the last quantity that is not kept by its first and last values alone."""

    def brief(sheet: Sheet) -> Sheet:
        for place, one in reversed(list(enumerate(sheet.quantities))):
            if not kept(one) and (short := _brief(one)) != one:
                return sheet.model_copy(
                    update={"quantities": [*sheet.quantities[:place], short, *sheet.quantities[place + 1 :]]}
                )
        return sheet

    return brief


def _brief(quantity: QuantityFact) -> QuantityFact:
    curves = [one.model_copy(update={"text": _ends(one)}) for one in quantity.curves]
    return quantity.model_copy(update={"curves": curves, "gap": ""})


def _ends(curve: CurveFact) -> str:
    name, first, last = shorten(curve.name, SHORT_NAME), figure(curve.first), figure(curve.last)
    return f"{name}: {last}" if first == last else f"{name}: {first} to {last}"


def _without_columns(kept: Callable[[QuantityFact], bool]) -> Step:
    """Return the step that leaves out the last quantity that is not kept, and names it."""

    def fewer(sheet: Sheet) -> Sheet:
        for place, one in reversed(list(enumerate(sheet.quantities))):
            if not kept(one):
                left = [*sheet.quantities[:place], *sheet.quantities[place + 1 :]]
                return sheet.model_copy(
                    update={"quantities": left, "not_judged": _also_logged(one.curves[0].name, sheet.not_judged)}
                )
        return sheet

    return fewer


def _also_logged(name: str, lines: Iterable[str]) -> list[str]:
    """Return what was not judged with the name of one more column."""
    names = [line.removeprefix(_ALSO) for line in lines if line.startswith(_ALSO)]
    also = _ALSO + ", ".join([shorten(name, SHORT_NAME), *names])
    return [*(one for one in lines if not one.startswith(_ALSO)), shorten(also, 300)]


def _fewer_settings(least: int) -> Step:
    """Return the step that leaves out the last setting whose value is usual, but for so many."""

    def fewer(sheet: Sheet) -> Sheet:
        usual = [at for at, one in enumerate(sheet.settings) if not one.usual]
        if len(usual) <= least:
            return sheet
        return sheet.model_copy(update={"settings": [one for at, one in enumerate(sheet.settings) if at != usual[-1]]})

    return fewer


def _fewer_events(least: int) -> Step:
    """Return the step that leaves out the smallest jump at which no finding begins, but for so many."""

    def fewer(sheet: Sheet) -> Sheet:
        jumps = [one for one in sheet.events if not one.findings and one.size]
        if len(jumps) <= least:
            return sheet
        smallest = min(jumps, key=lambda one: one.size)
        return sheet.model_copy(update={"events": [one for one in sheet.events if one is not smallest]})

    return fewer


def _shorter_events(sheet: Sheet) -> Sheet:
    return sheet.model_copy(
        update={"events": [one.model_copy(update={"text": shorten(one.text, LONGEST_EVENT)}) for one in sheet.events]}
    )


def _matters(one: QuantityFact) -> bool:
    return one.matters


def _decides(one: QuantityFact) -> bool:
    return one.decides or one.name in ("loss", "reward")


_STEPS: tuple[Step, ...] = (
    _fewer_settings(36), _briefly(_matters), _fewer_settings(20), _fewer_events(LEAST_EVENTS),
    _without_columns(_matters), _fewer_settings(12), _shorter_events, _briefly(_decides), _fewer_events(1),
    _fewer_settings(4), _without_columns(_decides),
)  # fmt: skip
"""What is left out, in this order."""


def _length(lines: list[str]) -> int:
    return sum(len(json.dumps(line)) + _BETWEEN for line in lines)
