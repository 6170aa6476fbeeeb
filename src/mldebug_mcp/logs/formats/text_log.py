"""Text that a training script printed: any framework's, or one's own.

The shape of the records is learnt from the text. Each line is offered to the shapes in turn: a progress bar, a printed
dict, a box, a table, and at last `name: value` pairs with a counter. What is no record is passed over, and lines that
read like errors are kept as messages. `lines/` holds the shapes, `lines.assembler` puts the records together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from copy import deepcopy

from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.decoding.blocks import lines_of
from mldebug_mcp.logs.error_lines import ErrorLines
from mldebug_mcp.logs.lines.alike import AlikeLines
from mldebug_mcp.logs.lines.assembler import Assembler
from mldebug_mcp.logs.lines.bar_steps import BarSteps
from mldebug_mcp.logs.lines.bars import Bar, bar_in, is_fastprogress
from mldebug_mcp.logs.lines.boxes import Box
from mldebug_mcp.logs.lines.drawn import DrawnBars
from mldebug_mcp.logs.lines.frameworks import framework_of
from mldebug_mcp.logs.lines.parsed import parse_line
from mldebug_mcp.logs.lines.phases import heads_evaluation
from mldebug_mcp.logs.lines.prefixes import records_in, without_prefix
from mldebug_mcp.logs.lines.printed_dicts import PrintedDicts
from mldebug_mcp.logs.lines.rich_bars import RichBar
from mldebug_mcp.logs.lines.tables import Table
from mldebug_mcp.logs.names import is_telling
from mldebug_mcp.logs.source import LogFile
from mldebug_mcp.text import clean

NAME = "text"

MAX_HEADING = 80
"""Characters of a line that may be a heading."""
BELOW_HEADING = 5
"""Lines under the heading of an evaluation that belong to it."""
LONG = 120
"""Characters of a line that may hold several records."""
MAX_DULL = 5000
"""Lines that said nothing which are remembered, without their digits, so that their like is passed over."""
MAX_DULL_LINE = 5000
"""Characters of such a line: longer ones seldom come again, and would take much memory."""

_CONVENTIONS = {
    "fairseq": "fairseq logs its losses in bits (base 2): a nat is 1.44 bits",
    "vits": "lists without names are read as VITS prints them (guessed): losses, step, learning rate",
}
"""What is to be said of a framework's numbers."""

_NO_DIGITS = str.maketrans("", "", "0123456789")
_STRAIGHT = str.maketrans("‘’“”", "''\"\"")
"""Quotation marks as word processors and forums set them, in dicts that were copied from there."""
_RESUMED = re.compile(
    r"\bresum(?:ing|ed)\b.{0,60}\b(?:from|checkpoint|ckpt|training|at (?:step|epoch|iter))", re.IGNORECASE
)
"""A line that tells of a resume; settings say `resume: path` and the like."""
_SKIPPED = re.compile(
    r"Skipping step.{0,200}?loss scale: [\d.e+]{1,40}(?:.{0,200}?reducing to (?P<scale>[\d.e+]{1,40}))?"
    r"|overflow detected.{0,200}?setting loss scale to: (?P<set>[\d.e+]{1,40})"  # fairseq
    r"|Skipping step.{0,200}?reducing loss scale to (?P<apex>\d{1,40}(?:\.\d{1,40})?(?:e[+-]?\d{1,4})?)",
    re.IGNORECASE,
)
_REPEATS = re.compile(r"best iteration is:\s*$", re.IGNORECASE)
"""LightGBM's last words, under which it prints the line of its best iteration once more."""
_WORTH = re.compile(r"\d|nan|inf", re.IGNORECASE)


def matches(file: LogFile) -> bool:
    """Any text: this reader comes last."""
    return not file.binary


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read the lines that are records and keep those that read like errors."""
    text = Text(builder)
    text.take_lines(file.lines())
    text.end()


def follow(file: LogFile, builder: RunBuilder) -> Text:
    """Return what reads the text as it grows."""
    del file
    return Text(builder)


class Text:
    """What has been read of a text so far."""

    def __init__(self, builder: RunBuilder) -> None:
        self._builder = builder
        self._line = 0
        self._records = Assembler(builder)
        self._bars = DrawnBars(self._records)
        self._bar_steps = BarSteps()
        self._alike = AlikeLines(self._records, self._bars)
        self._dicts = PrintedDicts(self._records, self._bars, self._bar_steps)
        self._box = Box()
        self._table = Table()
        self._rich = RichBar()
        self._dull: set[str] = set()
        self._evaluated_from = 0  # the line of the heading under which an evaluation stands, 0 if none does
        self._repeated = 0  # the line that says what was said before, 0 if none does
        self._inner = False
        self._errors = ErrorLines()

    def take_lines(self, lines: Iterable[str]) -> None:
        """Take the next lines."""
        for line in lines:
            self._line += 1
            for part in line.split("^M") if "^M" in line else (line,):  # a carriage return as `cat -v` shows it
                if len(part) > 2:
                    self._take(self._line, part)

    def take_block(self, block: bytes) -> None:
        """Take a block of whole lines."""
        self.take_lines(lines_of(block))

    def tell(self, builder: RunBuilder) -> None:
        """End the text for a builder of its own: what is open here stays open."""
        memo: dict[int, object] = {id(self._dull): self._dull, id(self._builder): builder}  # ending adds no dull lines
        deepcopy(self, memo).end()

    def end(self) -> None:
        """Finish the text."""
        self._alike.end()
        self._dicts.end()
        self._box.end()
        self._end_box(0)
        self._rich.end()
        self._end_rich_bar(0)
        self._bars.end()
        if self._table.guessed:
            self._builder.note(f"rows without names are read as {self._table.guessed}")
        if self._bars.evaluated:
            self._builder.note("left out what Keras' evaluate() printed: it is not of the epoch under which it stands")
        self._records.end()
        self._bar_steps.settle(self._builder)

    def _take(self, number: int, line: str) -> None:
        if number == self._repeated:
            return
        if self._alike.take(number, line):
            return
        skeleton = line.translate(_NO_DIGITS)
        if skeleton in self._dull and not self._dicts.open:
            return
        self._alike.end()
        said = self._unlike(number, line)
        if not said and not self._dicts.open and len(self._dull) < MAX_DULL and len(line) < MAX_DULL_LINE:
            self._dull.add(skeleton)

    def _unlike(self, number: int, line: str) -> bool:
        """Take a line of a shape that is not known yet; return whether it said anything."""
        if "\x1b" in line or "\b" in line:
            line = clean(line)
        if len(line) > LONG and len(parts := records_in(line)) > 1:
            said = [self._unlike(number, part) for part in parts]
            return any(said)
        if "{" in line and not line.isascii():
            line = line.translate(_STRAIGHT)
        if self._errors.goes_on(line):
            self._builder.message_goes_on(line)
            return True
        ignored = self._errors.ignoring
        failed = self._errors.take(line)
        if failed:
            self._builder.message(number, line, self._errors.code)
        # What belongs to an ignored exception may stand in one that counts, later: it is not dull.
        failed = failed or ignored or self._errors.ignoring
        if self._dicts.open and self._dicts.go_on(number, line):
            return True
        resumed = "esum" in line and _RESUMED.search(line) is not None
        if resumed:
            self._records.flush()
            self._builder.resumed()
        return self._shaped(number, line) or self._plain(number, line) or failed or resumed

    def _shaped(self, number: int, line: str) -> bool:
        """Read a line that is more than pairs: part of a box or a table, a dict, a bar, a skipped step."""
        if self._in_rich_bar(number, line) or is_fastprogress(line):
            return True
        message = without_prefix(line).message
        if self._in_box(number, message):
            return True
        bar = bar_in(line)
        cells = bar.head if bar is not None and not bar.around else message
        row = self._table.take(cells) if message.strip() else None
        if row is not None:
            self._take_row(number, row)
            return True
        if bar is not None:
            self._take_bar(number, bar, line)
            message = bar.around
        if "{" in message and self._dicts.take(number, message):
            self._name_framework(line)
            return True
        skipped = _SKIPPED.search(message) if "kipping" in message or "overflow" in message else None
        if skipped is not None:
            self._take_skip(skipped)
            return True
        if bar is not None and message.strip():
            self._plain(number, message)
        return bar is not None

    def _plain(self, number: int, line: str) -> bool:
        """Read a line of pairs, or a heading; return whether it was one."""
        if not _WORTH.search(line):
            return self._take_heading(number, line)
        parsed = parse_line(line, evaluation=self._evaluated_from > max(0, number - BELOW_HEADING))
        if parsed.counters.values:
            self._evaluated_from = 0
        if parsed.telling:
            self._name_framework(line)
            self._inner = self._inner or "| train_inner |" in line
            if self._inner and "| train |" in line:  # fairseq closes an epoch with the mean over it
                parsed.metrics = {f"epoch_mean/{name}": value for name, value in parsed.metrics.items()}
        if parsed.telling:
            self._bars.end()
        elif "epoch" in parsed.counters.values:
            bare = not parsed.metrics and not parsed.counters.rest.strip(" |:-")
            self._bars.heading(parsed.counters.values["epoch"], bare=bare)
        if not parsed.metrics and not parsed.counters.values:
            return False
        self._records.take(number, parsed)
        if parsed.telling and parsed.counters.values:
            self._alike.learn(line, parsed)
        return True

    def _take_heading(self, number: int, line: str) -> bool:
        """Note where an evaluation begins, or training again, or a repeated line, if the line says nothing else."""
        if len(line) < MAX_HEADING and _REPEATS.search(line):
            self._repeated = number + 1
            return True
        evaluated = heads_evaluation(line) if len(line) < MAX_HEADING else None
        if evaluated is None:
            return False
        self._evaluated_from = number * evaluated
        return True

    def _in_rich_bar(self, number: int, line: str) -> bool:
        taken = self._rich.take(line)
        self._end_rich_bar(number)
        return taken

    def _end_rich_bar(self, number: int) -> None:
        if self._rich.done:
            self._name_framework(f"{self._rich.done.head} [{self._rich.done.metrics}")
            self._bars.take(number, self._rich.done)
            self._rich.done = None

    def _in_box(self, number: int, message: str) -> bool:
        taken = self._box.take(message)
        self._end_box(number)
        return taken

    def _end_box(self, number: int) -> None:
        if self._box.done:
            self._records.whole(number, self._box.done)
            self._box.done = None

    def _take_row(self, number: int, row: dict[str, float]) -> None:
        if any(map(is_telling, row)):
            self._bars.end()
            self._records.whole(number, row)

    def _take_bar(self, number: int, bar: Bar, line: str) -> None:
        if not self._bars.take(number, bar):
            self._bar_steps.bar(bar.head, bar.at, bar.total)
        elif len(self._builder.formats) < 2:
            self._name_framework(line)

    def _take_skip(self, skipped: re.Match[str]) -> None:
        """A step skipped for overflow: an event between records."""
        told = skipped["scale"] or skipped["set"] or skipped["apex"]
        scale = {"loss_scale": float(told)} if told else {}
        self._records.flush()
        self._bar_steps.event(self._builder.rows)
        self._builder.numbers({"overflow": 1.0, **scale}, event=True)

    def _name_framework(self, line: str) -> None:
        name = framework_of(line)
        if name is not None and name not in self._builder.formats:
            self._builder.formats.append(name)
            if name in _CONVENTIONS:
                self._builder.note(_CONVENTIONS[name])
