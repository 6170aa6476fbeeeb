"""Blocks that a heading names: results that Tune prints as YAML, and the closing figures of the Trainer's scripts."""

from __future__ import annotations

from mldebug_mcp.core.lazy import regex
from mldebug_mcp.logs.json_yaml import RESULT_HEADING, printed_records
from mldebug_mcp.logs.numbers import parse_number

_FIGURES = regex(r"(?:\[.{1,80}>> )?\*{5} (?P<phase>\w{1,20}) metrics \*{5}\s{0,4}")
"""Above what `Trainer.log_metrics` prints: "***** train metrics *****"."""
_FIGURE = regex(r"(?:\[.{1,80}>>)?\s{1,8}(?P<name>\w{1,100}) {1,100}= {1,40}(?P<value>[^\s=][^=]{0,40}?)\s{0,4}")
_CLOCK = regex(r"(?:(?P<days>\d{1,4}) days?, )?(?P<hours>\d{1,4}):(?P<minutes>\d\d):(?P<seconds>\d\d(?:\.\d{1,9})?)")
MAX_LINES_OF_RESULT = 5000
"""Lines of one result that are kept. Chosen: those of RLlib with all their histograms have a thousand."""


class HeadedBlock:
    """Open lines below a heading. `take` a line; when the block has ended, `done` holds its phase and its record.

    A result has no phase. Of several trials the first is read; `others` counts the results of the others.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._phase = self._first = self._trial = ""
        self.open = False
        self.others = 0
        self.done: tuple[str, dict[str, object]] | None = None

    def take(self, line: str) -> bool:
        """Take a line if it is a heading or stands below one."""
        result, figures = RESULT_HEADING.fullmatch(line), _FIGURES.fullmatch(line)
        if result or figures:
            self.end()
            self._trial = result["trial"] if result else ""
            self._phase = figures["phase"] if figures else ""
            self._first = self._first or self._trial
            self.open = True
            return True
        row = self.open and bool(_FIGURE.fullmatch(line) if self._phase else line[:1] == " " and line.strip())
        if row and len(self._lines) < MAX_LINES_OF_RESULT:
            self._lines.append(line)
        elif not row:
            self.end()
        return row

    def end(self) -> None:
        """End the block that is open, if one is."""
        lines, self._lines, self.open = self._lines, [], False
        if not lines:
            return
        if self._phase:
            self.done = self._phase, _figures(lines, self._phase)
        elif self._trial == self._first:
            self.done = "", next((record for record in printed_records(lines) if record), {})
        else:
            self.others += 1


def _figures(lines: list[str], phase: str) -> dict[str, object]:
    """Return the figures of a phase; those of training are means over the run, as in the Trainer's last record."""
    found = [row for line in lines if (row := _FIGURE.fullmatch(line))]
    values = {row["name"]: _value(row["value"]) for row in found}
    if phase != "train":
        return values
    return {f"summary/{name}": value for name, value in values.items() if name != "epoch"}


def _value(text: str) -> object:
    clock = _CLOCK.fullmatch(text)
    if clock is None:
        return parse_number(text)
    hours = 24 * int(clock["days"] or 0) + int(clock["hours"])
    return 60.0 * (60 * hours + int(clock["minutes"])) + float(clock["seconds"])
