"""Writes a trained run as its team would have logged it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from benchmarks.loops.industry.configs import head_lines, write_file
from benchmarks.loops.industry.names import axis_of, named
from benchmarks.loops.industry.styles_file import FILES
from benchmarks.loops.industry.styles_text import LINES, keras, markdown
from benchmarks.loops.industry.trace import Case, Row, Trace


def write(folder: Path, case: Case, trace: Trace) -> None:
    """Write the log and the configuration of a run into its folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_file(case.conf, folder, trace.settings)
    head = head_lines(case.conf, trace.settings)
    if case.style == "own":  # the loop wrote it itself; the notes are the file's lines
        _text(folder / "train.log", [*head, *(text for _at, text in trace.notes)])
        return
    if case.style == "state":
        _text(folder / "trainer_state.json", [text for _at, text in trace.notes])
        return
    rows = named(trace, case.names, case.drop)
    axis = axis_of(rows, case.names)
    if case.style in FILES:
        FILES[case.style](folder, rows, axis)
        told = head + [text for _at, text in trace.notes]
        if told:
            _text(folder / "stdout.txt", told)
        return
    body = _lines(case.style, trace, rows, axis)
    _text(folder / ("report.md" if case.style == "markdown" else "train.log"), head + body)


def _lines(style: str, trace: Trace, rows: list[Row], axis: str) -> list[str]:
    if style in {"keras", "markdown"}:
        kept = (
            rows
            if style == "markdown"
            else [row for row in rows if any("val" in name or "dev" in name for name in row)]
        )
        written = keras(kept) if style == "keras" else markdown(kept)
        return written + [text for _at, text in trace.notes]
    lines: list[str] = []
    for index, row in enumerate(rows):
        lines += trace.notes_at(index)
        lines.append(LINES[style](index, row, axis))
    return lines + trace.notes_at(len(rows))


def _text(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def entry(name: str, case: Case) -> str:
    """Return the line of the index for a run."""
    line: dict[str, object] = {"run": name, "cause": case.cause, "also": list(case.also), "task": case.task}
    line |= {"style": case.style, "fact": case.fact, "weak": case.weak}
    return json.dumps(line)
