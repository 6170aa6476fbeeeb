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
from mldebug_mcp.logs.error_lines import is_error
from mldebug_mcp.logs.lines.assembler import Assembler
from mldebug_mcp.logs.lines.bar_steps import BarSteps
from mldebug_mcp.logs.lines.bars import bar_in, is_fastprogress
from mldebug_mcp.logs.lines.boxes import Box
from mldebug_mcp.logs.lines.columns import Columns
from mldebug_mcp.logs.lines.dicts import MAX_LINES, dict_in, opens_dict
from mldebug_mcp.logs.lines.drawn import DrawnBars
from mldebug_mcp.logs.lines.frameworks import framework_of
from mldebug_mcp.logs.lines.pairs import heads_evaluation
from mldebug_mcp.logs.lines.parsed import Parsed, parse_line
from mldebug_mcp.logs.lines.prefixes import without_prefix
from mldebug_mcp.logs.lines.rich_bars import RichBar
from mldebug_mcp.logs.lines.template import Template, learn
from mldebug_mcp.logs.names import canonical, is_telling
from mldebug_mcp.logs.numbers import to_number
from mldebug_mcp.logs.source import LogFile
from mldebug_mcp.text import clean

NAME = "text"

MAX_TEMPLATES = 8
"""Shapes of lines that are remembered at a time."""

MAX_RUN = 4096
"""Lines of one shape that are converted together."""
MAX_HEADING = 80
"""Characters of a line that may be a heading."""
BELOW_HEADING = 5
"""Lines under the heading of an evaluation that belong to it."""
MAX_DULL = 5000
"""Lines that said nothing which are remembered, without their digits, so that their like is passed over."""

_CONVENTIONS = {
    "fairseq": "fairseq logs its losses in bits (base 2): a nat is 1.44 bits",
    "vits": "lists without names are read as VITS prints them (guessed): losses, step, learning rate",
}
"""What is to be said of a framework's numbers."""

_NO_DIGITS = str.maketrans("", "", "0123456789")
_SKIPPED = re.compile(
    r"Skipping step.{0,200}?loss scale: [\d.e+]{1,40}(?:.{0,200}?reducing to (?P<scale>[\d.e+]{1,40}))?"
    r"|overflow detected.{0,200}?setting loss scale to: (?P<set>[\d.e+]{1,40})",  # fairseq
    re.IGNORECASE,
)
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
        self._templates: list[Template] = []
        self._seen: set[tuple[str, ...]] = set()
        self._box = Box()
        self._columns = Columns()
        self._dict: list[str] = []
        self._bars = DrawnBars(self._records)
        self._rich = RichBar()
        self._bar_steps = BarSteps()
        self._run: list[tuple[str, ...]] = []
        self._run_of: Template | None = None
        self._run_line = 0
        self._dull: set[str] = set()
        self._evaluated_from = 0  # the line of the heading under which an evaluation stands, 0 if none does
        self._inner = False
        self._rest = False

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
        kept = (self._templates, self._seen, self._dull)  # ending changes none of them
        memo: dict[int, object] = {id(one): one for one in kept} | {id(self._builder): builder}
        deepcopy(self, memo).end()

    def _take(self, number: int, line: str) -> None:
        for template in self._templates:
            match = template.pattern.fullmatch(line)
            if match is not None:
                self._alike(number, template, match.groups())
                return
        skeleton = line.translate(_NO_DIGITS)
        if skeleton in self._dull and not self._dict:
            return
        self._end_alike()
        self._rest = False
        self._unlike(number, line)
        if not self._rest and not self._dict and len(self._dull) < MAX_DULL and len(line) < MAX_DULL:
            self._dull.add(skeleton)

    def _alike(self, number: int, template: Template, texts: tuple[str, ...]) -> None:
        """Take a line of a known shape; those in a row are converted together."""
        if template is not self._run_of or len(self._run) >= MAX_RUN:
            self._end_alike()
            self._bars.end()
            self._run_of = template
            self._templates.remove(template)
            self._templates.insert(0, template)
        self._run.append(texts)
        self._run_line = number

    def _end_alike(self) -> None:
        if self._run and self._run_of is not None:
            # The last one stays open: what follows may belong to its step.
            self._records.many(self._run_of, self._run[:-1])
            self._records.take(self._run_line, self._run_of.parsed(self._run[-1]))
        self._run, self._run_of = [], None

    def _unlike(self, number: int, line: str) -> None:
        """Take a line of a shape that is not known yet."""
        if "\x1b" in line or "\b" in line:
            line = clean(line)
        if is_error(line):
            self._builder.message(number, line)
            self._rest = True
        if self._dict and self._goes_on(number, line):
            self._rest = True
            return
        if self._shaped(number, line):
            self._rest = True
        else:
            self._plain(number, line)

    def end(self) -> None:
        """Finish the text."""
        self._end_alike()
        if self._dict:
            self._whole_dict(0, dict_in("".join(self._dict)))
        self._box.end()
        self._end_box(0)
        self._rich.end()
        self._end_rich(0)
        self._bars.end()
        if self._columns.guessed:
            self._builder.note(f"rows without names are read as {self._columns.guessed}")
        if self._bars.evaluated:
            self._builder.note("left out what Keras' evaluate() printed: it is not of the epoch under which it stands")
        self._records.end()
        self._bar_steps.settle(self._builder)

    def _shaped(self, number: int, line: str) -> bool:
        """Read a line that is more than pairs: part of a box or a table, a dict, a bar, a skipped step."""
        riched = self._rich.take(line)
        self._end_rich(number)
        if riched or is_fastprogress(line):
            return True
        message = without_prefix(line).message
        boxed = self._box.take(message)
        self._end_box(number)
        if boxed:
            return True
        bar = bar_in(line)
        row = (
            self._columns.take(bar.head if bar is not None and not bar.around else message) if message.strip() else None
        )
        if row is None and bar is not None:
            if not self._bars.take(number, bar):
                self._bar_steps.bar(bar.head, bar.at, bar.total)
            elif len(self._builder.formats) < 2:
                self._name_format(line)
            message = bar.around
        if row is not None:
            self._take_row(number, row)
            return True
        if "{" in message and self._take_dict(number, message):
            self._name_format(line)
            return True
        skipped = _SKIPPED.search(message) if "kipping" in message or "overflow" in message else None
        if skipped is not None:
            self._take_skip(skipped)
            return True
        if bar is not None and message.strip():
            self._plain(number, message)
        return bar is not None

    def _plain(self, number: int, line: str) -> None:
        if not _WORTH.search(line):
            self._take_heading(number, line)
            return
        parsed = parse_line(line, evaluation=self._evaluated_from > max(0, number - BELOW_HEADING))
        if parsed.counters.values:
            self._evaluated_from = 0
        if parsed.telling:
            self._name_format(line)
            self._inner = self._inner or "| train_inner |" in line
            if self._inner and "| train |" in line:  # fairseq closes an epoch with the mean over it
                parsed.metrics = {f"epoch_mean/{name}": value for name, value in parsed.metrics.items()}
        if parsed.telling or parsed.counters.values:
            if parsed.telling:
                self._bars.end()
            elif "epoch" in parsed.counters.values:
                bare = not parsed.metrics and not parsed.counters.rest.strip(" |:-")
                self._bars.heading(parsed.counters.values["epoch"], bare=bare)
            self._records.take(number, parsed)
        elif parsed.metrics:
            self._records.take(number, parsed)
        self._rest = self._rest or bool(parsed.metrics or parsed.counters.values)
        if parsed.telling and parsed.counters.values:
            self._learn(line, parsed)

    def _take_heading(self, number: int, line: str) -> None:
        """Note where an evaluation begins, or training again, if the line says nothing else."""
        evaluated = heads_evaluation(line) if len(line) < MAX_HEADING else None
        if evaluated is not None:
            self._evaluated_from, self._rest = number * evaluated, True

    def _name_format(self, line: str) -> None:
        name = framework_of(line)
        if name is not None and name not in self._builder.formats:
            self._builder.formats.append(name)
            if name in _CONVENTIONS:
                self._builder.note(_CONVENTIONS[name])

    def _learn(self, line: str, parsed: Parsed) -> None:
        shape = tuple(parsed.metrics)
        if shape not in self._seen:
            self._seen.add(shape)
            return
        template = learn(line, parsed)
        if template is not None:
            self._templates = [template, *self._templates[: MAX_TEMPLATES - 1]]

    def _take_row(self, number: int, row: dict[str, float]) -> None:
        if any(map(is_telling, row)):
            self._bars.end()
            self._records.whole(number, row)

    def _end_box(self, number: int) -> None:
        if self._box.done:
            self._records.whole(number, self._box.done)
            self._box.done = None

    def _end_rich(self, number: int) -> None:
        if self._rich.done:
            self._name_format(f"{self._rich.done.head} [{self._rich.done.metrics}")
            self._bars.take(number, self._rich.done)
            self._rich.done = None

    def _take_dict(self, number: int, message: str) -> bool:
        record = dict_in(message)
        if not record and message.strip() != "{":  # JSON that was printed over several lines opens with it
            return False
        if opens_dict(message):
            self._dict = [message]
            return True
        before = parse_line(message.partition("{")[0])
        told = {name: value for name, value in before.metrics.items() if is_telling(name)}
        return self._whole_dict(number, {**before.counters.values, **told, **record})

    def _goes_on(self, number: int, line: str) -> bool:
        """Read on in a dict that began on a line above: a terminal may have wrapped it within a number."""
        self._dict.append(line)
        if "}" not in line and ("'" in line or '"' in line) and len(self._dict) < MAX_LINES:
            return True
        lines, self._dict = self._dict, []
        part = "}" in line
        self._whole_dict(number, dict_in("".join(lines if part else lines[:-1])))
        return part

    def _whole_dict(self, number: int, record: dict[str, object]) -> bool:
        if not any(map(is_telling, record)) and "train_runtime" not in record:
            return False
        self._bars.end()
        row = self._records.whole(number, record)
        if row is not None and not any(canonical(name) == "step" for name in record):
            self._bar_steps.printed(row, to_number(record.get("epoch")), regular="loss" in record)
        return True

    def _take_skip(self, skipped: re.Match[str]) -> None:
        """A step skipped for overflow: an event between records."""
        told = skipped["scale"] or skipped["set"]
        scale = {"loss_scale": float(told)} if told else {}
        self._records.flush()
        self._bar_steps.event(self._builder.rows)
        self._builder.numbers({"overflow": 1.0, **scale}, event=True)
