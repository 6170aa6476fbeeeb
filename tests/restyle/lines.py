"""Forms of a printed record whose names the style chooses."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Cell:
    """A name and what is written for it; `word` where that is a text and no number."""

    name: str
    text: str
    word: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """What is written at one step.

    Args:
        step: The step, from 1.
        phase: "train", "eval", or "both".
        axis: Where the run is.
        metrics: What was measured.
        opens: No record had these names right before, so a table needs its heading.
        time: The time of day.
        of: Steps of the whole run.
    """

    step: int
    phase: str
    axis: Sequence[Cell]
    metrics: Sequence[Cell]
    opens: bool
    time: datetime
    of: int

    @property
    def cells(self) -> list[Cell]:
        return [*self.axis, *self.metrics]


def _json_value(cell: Cell) -> str:
    return (
        json.dumps(cell.text)
        if cell.word or "/" in cell.text
        else cell.text.replace("nan", "NaN").replace("inf", "Infinity")
    )


def _object(cells: Sequence[Cell]) -> str:
    return "{" + ", ".join(f"{json.dumps(cell.name)}: {_json_value(cell)}" for cell in cells) + "}"


def _nested(record: Record) -> str:
    rooms: dict[str, list[Cell]] = {}
    for cell in record.metrics:
        room, _, name = cell.name.rpartition("/")
        rooms.setdefault(room, []).append(Cell(name, cell.text))
    parts = [f"{json.dumps(cell.name)}: {_json_value(cell)}" for cell in [*record.axis, *rooms.pop("", [])]]
    return "{" + ", ".join([*parts, *(f"{json.dumps(room)}: {_object(cells)}" for room, cells in rooms.items())]) + "}"


def _event(record: Record) -> str:
    event = "evaluation" if record.phase == "eval" else "train_step"
    head = f'"timestamp": "{record.time.isoformat()}", "level": "INFO", "event": "{event}"'
    return "{" + f'{head}, "data": {_object(record.cells)}' + "}"


def _python(record: Record) -> str:
    inner = (f"{c.name!r}: {c.text!r}" if c.word or "/" in c.text else f"{c.name!r}: {c.text}" for c in record.cells)
    return "{" + ", ".join(inner) + "}"


def _joined(cells: Sequence[Cell], between: str, joint: str) -> str:
    return joint.join(f"{cell.name}{between}{cell.text}" for cell in cells)


def _sentence(record: Record) -> str:
    head = ", ".join(f"{cell.name.capitalize()} {cell.text}" for cell in record.axis)
    return f"{head}: {_joined(record.metrics, ' ', ', ')}"


def _brackets(record: Record) -> str:
    head = "".join(f"[{cell.name} {cell.text}]" for cell in record.axis)
    return f"{head} {_joined(record.metrics, ': ', '  ')}"


def _box(record: Record) -> str:
    wide = max(len(cell.name) for cell in record.cells) + 4
    rule = "-" * (wide + 19)
    body = [f"| {cell.name:<{wide}} | {cell.text:<12} |" for cell in record.cells]
    return "\n".join([rule, *body, rule])


def _grid(record: Record) -> str:
    rule = "+" + "+".join("-" * 14 for _ in record.cells) + "+"
    rows = ["|" + "|".join(f" {cell.text:<13}" for cell in record.cells) + "|"]
    if record.opens:
        rows = [rule, "|" + "|".join(f" {cell.name:<13}" for cell in record.cells) + "|", rule, *rows]
    return "\n".join(rows)


def _markdown(record: Record) -> str:
    rows = ["| " + " | ".join(cell.text for cell in record.cells) + " |"]
    if record.opens:
        names = "| " + " | ".join(cell.name for cell in record.cells) + " |"
        rows = [names, "|" + "|".join(" --- " for _ in record.cells) + "|", *rows]
    return "\n".join(rows)


def _columns(record: Record) -> str:
    wide = [max(12, len(cell.name) + 2) for cell in record.cells]
    rows = ["".join(f"{cell.text:<{w}}" for cell, w in zip(record.cells, wide, strict=True)).rstrip()]
    if record.opens:
        rows.insert(0, "".join(f"{cell.name:<{w}}" for cell, w in zip(record.cells, wide, strict=True)).rstrip())
    return "\n".join(rows)


def _printed_csv(record: Record) -> str:
    heading = [",".join(cell.name for cell in record.cells)] if record.opens else []
    return "\n".join([*heading, ",".join(cell.text for cell in record.cells)])


def _bar(record: Record) -> str:
    postfix = ", ".join(f"{cell.name}={cell.text}" for cell in [*record.axis[1:], *record.metrics])
    if record.phase == "eval":
        return f"\n{record.axis[0].name} {record.step}: {postfix}"
    share = record.step / record.of
    bar = ("█" * int(10 * share)).ljust(10)
    return f"\r{share:4.0%}|{bar}| {record.step}/{record.of} [02:06<04:11,  2.38it/s, {postfix}]"


def _logfmt(record: Record) -> str:
    what = "eval" if record.phase == "eval" else "train"
    return f'ts={record.time.isoformat()} level=info msg="{what} metrics" {_joined(record.cells, "=", " ")}'


def _documents(record: Record) -> str:
    return "---\n" + _joined(record.cells, ": ", "\n")


def _pretty(record: Record) -> str:
    return "{" + ",\n ".join(f"{cell.name!r}: {cell.text}" for cell in record.cells) + "}"


def _mllog(record: Record) -> str:
    head = '"namespace": "", "event_type": "POINT_IN_TIME"'
    at = json.dumps({"file": "train.py", "lineno": 188, "step_num": record.step})
    ms = int(record.time.timestamp() * 1000)
    return "\n".join(
        f':::MLLOG {{{head}, "time_ms": {ms}, "key": "{cell.name}", "value": {_json_value(cell)}, "metadata": {at}}}'
        for cell in record.metrics
    )


ONE_LINE: Mapping[str, Callable[[Record], str]] = {
    "json": lambda record: _object(record.cells),
    "dict": _python,
    "dict_of_strings": lambda r: "{" + ", ".join(f"{c.name!r}: {c.text!r}" for c in r.cells) + "}",
    "equals": lambda record: _joined(record.cells, "=", " "),
    "equals_commas": lambda record: _joined(record.cells, " = ", ", "),
    "colon_bars": lambda record: _joined(record.cells, ": ", " | "),
    "colon_commas": lambda record: _joined(record.cells, ": ", ", "),
    "colon_spaces": lambda record: _joined(record.cells, ": ", "  "),
    "colon_tabs": lambda record: _joined(record.cells, ": ", "\t"),
    "space_bars": lambda record: "| " + _joined(record.cells, " ", " | "),
    "sentence": _sentence,
    "brackets": _brackets,
}
"""One line a record, behind any prefix."""
LINES: Mapping[str, Callable[[Record], str]] = {
    **ONE_LINE,
    "json_nested": _nested,
    "json_event": _event,
    "logfmt": _logfmt,
    "box": _box,
    "grid": _grid,
    "markdown": _markdown,
    "columns": _columns,
    "printed_csv": _printed_csv,
    "bar": _bar,
    "yaml_documents": _documents,
    "pretty_dict": _pretty,
    "mllog": _mllog,
}
COUNT_STEPS = frozenset({"bar", "mllog"})
"""Forms that count steps themselves, whatever the style's axis is."""
EXTENSION = {"json": "jsonl", "json_nested": "jsonl", "json_event": "jsonl", "markdown": "md"}
"""Of the file's name, where nothing else is printed in it; a log otherwise."""
