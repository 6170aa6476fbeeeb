"""Text that a training script printed: any framework's, or one's own.

The shape of the records is learnt from the text. Each line is offered to the shapes in turn: a progress bar, a printed
dict, a box, a table, and at last `name: value` pairs with a counter. Other lines are passed over, and lines that
read like errors are kept as messages. `text` holds the shapes; lines like those above them are taken by the block.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from itertools import islice, pairwise

from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import clean
from mldebug_mcp.logs.attempts import (
    CLOSING_NAMES,
    MIN_LINE_LETTERS,
    ProcessStarts,
    RecordedLine,
    fold_in,
    tells_resume,
)
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.endings import ErrorLines
from mldebug_mcp.logs.line_prefixes import (
    ROW_MARK,
    drawings_in,
    heads_closing,
    heads_evaluation,
    names_phase,
    records_drawn_in,
    records_in,
    without_prefix,
)
from mldebug_mcp.logs.log_file import LogFile, blocks
from mldebug_mcp.logs.names.metrics import UNNAMED, is_telling
from mldebug_mcp.logs.numbers import MAY_HOLD_NUMBER, NO_DIGITS, without_underscores
from mldebug_mcp.logs.run import warns
from mldebug_mcp.logs.text.counters import RichBar, bar_in, is_fastprogress, keras_epochs_in
from mldebug_mcp.logs.text.pairs import named_parts, names_of_parts
from mldebug_mcp.logs.text.parsed_line import (
    LineContent,
    content_of,
    drawing_of,
    lines_joined,
    parse_line,
    straightened,
)
from mldebug_mcp.logs.text.records import KnownLines, Memory, Records
from mldebug_mcp.logs.text.skeletons import MARKS, Skeletons
from mldebug_mcp.logs.text.tables import (
    CopyPaste,
    HeadedBlock,
    Table,
    boxes_joined,
    is_rule,
    may_be_row,
    open_box_from,
)

# The frameworks whose printed lines are known by sight: it says only whose they are; all are read alike.

_LINES: tuple[tuple[str, str | tuple[str, ...], str], ...] = (
    ("megatron", "iteration", r"iteration\s+\d+\s*/\s*\d+\s*\|.*elapsed time per iteration"),
    ("megatron", "iteration", r"validation loss at (?:the end of )?iteration"),
    ("nanogpt", ("iter", "train loss"), r"^\s*iter \d+: loss [\d.naif]+, time|^\s*step \d+: train loss .*val loss"),
    ("nanochat", "lrm: ", r"^\s*step \d+(?:/\d+)? \([\d.]+%\) \| (?:train )?loss: .*\| (?:grad norm: .*\| )?lrm: "),
    ("modded-nanogpt", "step:", r"\bstep:\d+/\d+ (?:train_loss|val_loss|train_time):"),
    ("llm.c", "norm ", r"^\s*step\s+\d+/\d+ \| (?:train )?loss [\d.naif]+.*\| norm "),
    ("llm.c", "s:", r"^\s*s:\d+ (?:trl|tel|eval):"),
    ("litgpt", "loss train:", r"\biter \d+ (?:\| )?step \d+.*loss train:"),
    ("torchtitan", "tps:", r"\bstep:\s*\d+\s+loss:\s*[\d.naif]+.*\btps:"),
    ("torchtune", ("|loss:", "| loss:"), r"^\s*\d+\|\d+\|Loss:|^Step \d+ \| loss:[\d.naif]+ "),
    ("verl", "step:", r"\bstep:\d+ - [\w/.()-]+:[\d.naif-]+ - "),
    ("fairseq", "| ", r"\| (?:train|train_inner|valid) \| (?:\{|epoch \d+)|\| epoch \d+ \| (?:valid|loss)"),
    ("mmengine", "(train)", r"\b(?:Epoch|Iter)\(train\)\s*\["),
    ("mmcv", "lr:", r"\bEpoch \[\d+\]\[\d+/\d+\]\s+lr:|\bIter \[\d+/\d+\]\s+lr:"),
    ("detectron2", "total_loss:", r"\biter: \d+\s+total_loss:"),
    ("timm", "loss:", r"^\s*(?:Train|Test): ?\d* \[\s*\d+/\d+.*Loss:"),
    ("lerobot", "smpl:", r"\bstep:\S+ smpl:\S+ ep:"),
    ("deepspeed", "skipped=", r"\bstep=\d+, skipped=\d+, lr=\["),
    ("keras", ("[", "loss: "), r"^\s*\d+/\d+ (?:\[[=>.]{5,}\]|[━─]{5,}|- \d+m?s\b.* - \w*loss: )"),
    ("lightning", "v_num", r"\bEpoch \d+:.{0,300}\[[^\]]{0,300}\bv_num[=:]"),
    ("transformers", "'epoch': ", r"\{'(?:eval_|train_)?(?:loss|runtime)': .*'epoch': "),
    ("fairseq", "[info]", r"\[train(?:_inner)?\]\[INFO\] - \{.*\"(?:num_updates|wps)\""),
    ("vits", "[", r"\[(?:[\d.naif-]+, ){3,12}\d+, [\d.e-]+\]\s*$"),
    ("unsloth", "it]", r"%\|.*it\]\s*\d+, [\d.]+\s*$"),
    ("darknet", " avg", r"^\s*\d+(?:, \d+\.\d+)?: [\d.naif-]+, [\d.naif-]+ avg"),
)
"""The name of each, what its lines contain (see `regex`), and what they look like."""
_PATTERNS = tuple((name, regex(pattern, needs=needs)) for name, needs, pattern in _LINES)
_LOOKED_AT = 2000
"""Characters of a line that are looked at: on a longer one the patterns, which try every place, would take minutes."""


_CAPTURED = regex(rb"^\[(?:stdout\]:.*|stderr\]:.*%\|.*)$", re.MULTILINE)
"""What a logger copies from the console: all of its output, and the bars among its errors; tracebacks are kept."""
_OWN_LOSS = regex(rb"^\[(?!std(?:out|err)\])[a-z_]+\][^\n]{0,200}\bloss\b", re.MULTILINE)
"""A loss under another tag of the same logger."""


def framework_of(line: str) -> str | None:
    """Return the framework that printed a line, or None."""
    line = line[:_LOOKED_AT]
    return next((name for name, pattern in _PATTERNS if pattern.search(line)), None)


_CONVENTIONS = {
    "fairseq": "fairseq logs its losses in bits (base 2): a nat is 1.44 bits",
    "unsloth": "two numbers behind a bar are read as the step and the loss (guessed)",
    "vits": "lists without names are read as VITS prints them (guessed): losses, step, learning rate",
}
"""The note on a framework's numbers."""


def name_framework(builder: RunBuilder, line: str) -> None:
    """Add the framework that a line is of to the formats of a run, and the note on its numbers."""
    name = framework_of(line)
    if name is not None and name not in builder.formats:
        builder.formats.append(name)
        if name in _CONVENTIONS:
            builder.note(_CONVENTIONS[name])


# Records that are drawn over several lines: boxes, tables, and the bars of rich and fastprogress.


_BROKEN = regex(
    rb"^(?P<above>[^\n]{80,}[^\n |:=-])\n"
    rb"(?P<below>(?![^\n]{0,40}\b(?:epoch|iteration|iter|step|update|ep)s?\b[\s:.=#\[]{0,4}\d)"  # such a line counts
    rb"(?:[^|\s]{0,12} ?\|\s{1,3}[A-Za-z][^\n]{0,4000}"
    rb"|[\w./@+]{0,60}(?::[-\d.]{1,24})? - [\w./@-]{1,60}:[-\d][^\n]{0,20000}))$",
    re.MULTILINE | re.IGNORECASE,
)
"""A line of many parts that the terminal broke inside of a name or a number, and the rest of it: "… | gnorm 0.58", "0 |
clip 0.0 | …" (fairseq), "… - response_length/me", "an:330.4 - …" (verl)."""
_PARTS = regex(
    rb"(?:\|\s{1,3}[A-Za-z][\w ()/.-]{0,60}?:?\s{1,12}| - [\w./@-]{1,60}:)(?:[-+]?\d|nan\b|inf\b)", re.IGNORECASE
)
_PHASES_IN_FRONT = regex(
    r"^(?:\||│) {1,80}(?:\||│)(?P<phases>(?: {1,40}[A-Za-z]{2,10} {0,8}(?:\||│)){2,3})[ \t]*\n"
    r"(?P<rows>(?:(?:\||│|╞|├|╘|\+)[^\n]{1,2000}\n){2,400})".encode(),
    re.MULTILINE,
)
"""A table with a column for each phase and a row for each metric, below a line that counts (Ludwig)."""
_SIDE = regex(r"\s*[|│]\s*")


_WORD_IN_FRONT = regex(rb"\| {0,3}[A-Za-z]{1,12} {0,3}\|")
"""So begins a whole line, "| train | E: 5 | R: 40.5", and the next one."""

_OF_FORTRAN = regex(rb"(?<=\.\d\d)(\d{0,20})D(?=[-+]\d\d\b)")
"""The exponent of a number of double precision: "1.25D+02"."""


_EPOCH_BELOW = regex(
    rb"^(?P<above>[A-Za-z][\w ]{0,30}\bstep:? {0,2}\d{1,12} {0,3}\|[^\n%]{1,400}[^\n %|])[ \t]*\n"
    rb"(?P<below>\| [^\n|]{1,40} \| epoch:? \d[^\n]{1,2000})$",
    re.MULTILINE | re.IGNORECASE,
)
"""A record of two lines: the second one begins with a bar and names the epoch (TFLearn): "Training Step: 2 | …",
"| Adam | epoch: 001 | loss: 0.5 …"."""


_WIDE_TABLE = regex(
    rb"^(?:[^\n\\]{3,1000}[^\s\\][ \t]{1,8}\\[ \t]*\n[^\n\\]{3,1000}\n){1,50}[^\n\\]{3,1000}\n[^\n\\]{1,1000}$",
    re.MULTILINE,
)
"""A table of one row that pandas wrapped, each row of names but the last one ending in a backslash (ParlAI)."""


_COUNTER_ROW = regex(
    rb"^[> ]{0,4}(?:[\w ]{1,30}/)?(?:epoch|iteration|itr|step) {2,80}\d{1,12}[ \t]*$", re.MULTILINE | re.IGNORECASE
)
_ROWS = regex(
    rb"(?:^[> ]{0,4}[A-Za-z(][^\n|:=]{0,78}[^\s|:=,>] {2,80}[-+]?(?:\d[-+\d.e]{0,30}|nan|inf)[ \t]*\n){4,500}"
    rb"(?:[> \t]{0,80}\n)?",
    re.MULTILINE | re.IGNORECASE,
)
"""Names and numbers in two columns; the row that counts may come last, as in the tables of rlkit and garage."""


class Structures:
    """Gathers their lines and gives whole ones to the records."""

    def __init__(self, builder: RunBuilder, records: Records) -> None:
        self._builder = builder
        self._records = records
        self._rich = RichBar()
        self._copied = CopyPaste()
        self._headed = HeadedBlock()
        self._closing: list[str] = []
        self.table = Table()

    def is_open(self, *, but_for_table: bool = False) -> bool:
        """Say whether one goes on in the next line; the open table does not count, if `but_for_table`."""
        drawn = self._rich.open or self._copied.open or self._headed.open
        return drawn or (self.table.open and not but_for_table)

    def take(self, number: int, line: str) -> bool:
        """Take a line; return whether it is part of a structure."""
        if self._is_part(self._rich, number, line) or is_fastprogress(line):
            return True
        if self._is_part(self._headed, number, line):
            return True
        copied = self._copied.take(line)
        if copied is not None:
            if copied:
                self._records.assembler.whole(number, copied)
            return True
        message = without_prefix(line).message
        if line.startswith(ROW_MARK) or is_rule(message):
            return False
        bar = bar_in(line)
        cells = bar.head if bar is not None and not bar.around else message
        if row_of_set := self.table.row_of_set(cells):
            self._records.assembler.take(number, parse_line(row_of_set))
            return True
        row = self.table.take(cells) if message.strip() else None
        if row and (self.table.tells or any(map(is_telling, row))):
            self._records.bars.end()
            self._records.assembler.whole(number, row)
        return row is not None

    def end(self) -> None:
        """End what is open."""
        self._headed.end()
        self._rich.end()
        self._give_done(0)
        if self._headed.others:
            self._builder.note(
                f"left out {self._headed.others} result(s) of other trials than the first: each is a run of its own"
            )
        if self.table.guessed:
            self._builder.note(f"rows without names are read as {self.table.guessed}")

    def set_aside_closing_figures(self) -> None:
        """Say of closing figures that they are of no step, where a text holds nothing else, once for each phase."""
        if len(set(self._closing)) == self._builder.rows:
            self._builder.set_aside()

    def _is_part(self, drawn: RichBar | HeadedBlock, number: int, line: str) -> bool:
        taken = drawn.take(line)
        self._give_done(number)
        return taken

    def _give_done(self, number: int) -> None:
        """Give the records what has just ended."""
        if self._headed.done is not None:
            (phase, record), self._headed.done = self._headed.done, None
            # The Trainer may have printed the same before.
            if phase != "train" or not self._builder.column(CLOSING_NAMES[0]):
                self._closing += [phase] if phase else []
                self._records.dicts.take(number, record)
        if self._rich.done:
            name_framework(self._builder, f"{self._rich.done.head} [{self._rich.done.metrics}")
            drawing = drawing_of(self._rich.done)
            if drawing.telling:
                self._records.bars.take(number, drawing)
            self._rich.done = None


NAME = "text"

MAX_HEADING = 80
"""Characters of a line that may be a heading."""
MIN_LONG_LINE = 120
"""Characters of a line that may hold several records."""
MAX_DULL = 5000
"""Lines without a reading that are remembered, without their digits, so that their like is passed over."""
MAX_DULL_LINE = 5000
"""Characters of such a line: longer ones seldom come again, and would take much memory."""
PIECE_BYTES, FIRST_BYTES = 512 * 1024, 16 * 1024
"""Bytes that are taken together, as they fit the processor's caches; and at first, when nothing is known yet."""
LINES_TOGETHER = 4096
"""Lines of a file that cannot be read by the block which are taken together."""

LIKE_BYTES, SAME_WIDTH = 4096, 5
"""Bytes above the end in which lines like the last one are looked for, and how many of these tell how a number is
written. Chosen: an evaluation may stand between."""
_LAST_NUMBER = regex(rb"(?<![\w.])[-+]?\d[\d,]*(?:\.\d*)?(?:[eE][-+]?\d*)?$")
BREAKS_LOOKED_FOR = 1 << 16
"""Bytes of a block in which lines that a terminal broke are looked for. Chosen: a terminal breaks every long line."""
_WRAPPED = regex(rb"(,[ \t]*[A-Za-z_]\w*[:=])[ \t]*\n[ \t]*([-+]?\d[\d.eE+-]*)(?=,[ \t]+[A-Za-z_]\w*[:=])")
"""A line that a terminal broke between a name and its number: the number goes up to its name."""
_REPEATS = regex(r"best iteration(?: is)?:\s*$", re.IGNORECASE)
"""The last words of LightGBM and XGBoost, under which they print the line of the best iteration once more."""
_HANGS_ON_NUMBERS = "exit"
"""Stands in lines that are errors or none by a number in them: "exit code: 137"."""
_OF_EPOCH = "| train |"
"""Stands in lines of fairseq that mean something else once lines of another kind were seen."""


def matches(file: LogFile) -> bool:
    """Any text: this reader comes last."""
    return not file.binary


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read the lines that are records and keep those that read like errors."""
    text = Text(builder)
    if file.is_utf8:
        for block in blocks(file):
            text.take_block(block)
    else:
        text.take_lines(file.lines())
    text.end()


def read_lines(lines: Iterable[str], builder: RunBuilder) -> None:
    """Read lines that stood inside of another form."""
    text = Text(builder)
    text.take_lines(lines)
    text.end()


def follow(file: LogFile, builder: RunBuilder) -> Text:
    """Return what reads the text as it grows."""
    del file
    return Text(builder)


class Text:
    """What has been read of a text so far.

    Args:
        builder: Where the records go.
        learns: Lines like those above them are taken by their shape; else each is read by itself, with the same result.
    """

    def __init__(self, builder: RunBuilder, *, learns: bool = True) -> None:
        self._builder = builder
        self._learns = learns
        self._line = 0
        self._bytes = 0
        self._above = b""
        self._open_box = b""  # the rows in which the last block ended
        self._is_unnamed = False  # most lines are a counter and a number without a name
        self._counts_batches = False  # lines begin with an epoch and the batch in it
        self._logs_own_losses = False
        self._records = Records(builder)
        self._memory = Memory()
        self._structures = Structures(builder, self._records)
        self._dull: set[str] = set()
        self._repeated = 0  # the line that says what was said before, 0 if none does
        self._inner = False
        self._errors = ErrorLines()
        self._starts = ProcessStarts()
        self._names_of_parts: dict[int, list[str]] = {}  # that lines above all records join, by how many they are

    def take_lines(self, lines: Iterable[str]) -> None:
        """Take the next lines."""
        lines = iter(lines)
        while together := list(islice(lines, LINES_TOGETHER)):
            self.take_block("\n".join([*together, ""]).encode("utf-8", errors="replace"))

    def take_block(self, block: bytes) -> None:
        """Take a block of whole lines."""
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if not block.endswith(b"\n"):
            block = self._without_cut_number(block) + b"\n"
        block = _as_printed(block)
        if self._bytes < BREAKS_LOOKED_FOR:
            head = self._above + block[:BREAKS_LOOKED_FOR]
            self._is_unnamed = self._is_unnamed or _tells_unnamed(head)
            self._counts_batches = self._counts_batches or _counts_batches(head)
        if self._counts_batches:
            block = _EPOCH_AND_BATCH.sub(rb"\1e\g<epoch> b\g<batch>", block)
        if self._is_unnamed:
            block = _UNNAMED_ROW.sub(rb"\g<step>: %s \g<number>" % UNNAMED.encode(), block)
        if b"[std" in block:
            block = self._without_captured(block)
        self._above = block[-LIKE_BYTES:]
        block = self._open_box + block
        end = open_box_from(block)
        self._open_box = block[end:]
        self._take_whole(boxes_joined(block[:end]))

    def _take_whole(self, block: bytes) -> None:
        """Take a block of whole lines and boxes."""
        if not self._learns or any(mark in block for mark in MARKS):
            for line in block[:-1].split(b"\n"):
                self._line += 1
                self._slowly(self._line, line)
            return
        alike = KnownLines(
            self._records, self._slowly, self._is_settled, _read, memory=self._memory, table=self._structures.table
        )
        start = 0
        while start < len(block):
            size = min(PIECE_BYTES, max(FIRST_BYTES, self._bytes))
            end = block.find(b"\n", start + size) + 1 or len(block)
            piece, start = block[start:end], end
            self._bytes += len(piece)
            skeletons = Skeletons(piece, self._memory.layouts)
            alike.take(skeletons, self._line)
            self._line += len(skeletons)

    def _without_captured(self, block: bytes) -> bytes:
        """Empty lines that a logger copied from the console, where it writes the losses under a tag of its own too."""
        self._logs_own_losses = self._logs_own_losses or _OWN_LOSS.search(block) is not None
        if not self._logs_own_losses:
            return block
        kept, captured = _CAPTURED.subn(b"", block)
        if captured:
            self._builder.note("left out lines under [stdout] and bars under [stderr]: the console's copies of records")
        return kept

    def _without_cut_number(self, block: bytes) -> bytes:
        """Return the end of a text without the number in which it breaks off: `2.`, or `2.3` below `2.3456`."""
        *above, last = (self._above + block)[-LIKE_BYTES:].split(b"\n")
        number = _LAST_NUMBER.search(last)
        if number is None:
            return block
        before = rb"[-+\d.,eE]+".join(
            map(re.escape, re.split(rb"[-+]?\d[\d.,]*(?:[eE][-+]?\d+)?", last[: number.start()]))
        )
        like = [found for line in above if (found := re.match(before + rb"(?P<number>[-+]?\d[-+\d.,eE]*)", line))]
        decimals = {_decimals(found["number"]) for found in like}
        shorter = len(like) >= SAME_WIDTH and len(decimals) == 1 and _decimals(number[0]) < min(decimals)
        if not shorter and number[0][-1:].isdigit():
            return block
        self._builder.note("the log breaks off within the last number of its last line, which is left out")
        return block[: len(block) - len(number[0])]

    def tell(self, builder: RunBuilder) -> None:
        """End the text for a builder of its own: what is open here stays open."""
        shared = (self._dull, self._memory)  # ending adds nothing to them
        memo: dict[int, object] = {**{id(item): item for item in shared}, id(self._builder): builder}
        deepcopy(self, memo).end()

    def end(self) -> None:
        """Finish the text."""
        self._take_whole(boxes_joined(self._open_box))
        self._records.dicts.end()
        self._structures.end()
        self._records.bars.end()
        if self._records.bars.evaluated:
            self._builder.note("left out what Keras' evaluate() printed: it is not of the epoch under which it stands")
        if lag := self._records.bars.lag:
            self._builder.note(
                f"a progress bar shows the metrics that were set last: they may be up to {lag} step(s) older than the "
                "step they are read at"
            )
        self._records.assembler.end_closing()
        self._records.assembler.flush()
        self._records.dicts.histories.end(self._builder)
        self._records.assembler.end()
        self._records.bar_steps.settle(self._builder)
        for names in self._names_of_parts.values():
            self._builder.rename(named_parts(names))
        self._structures.set_aside_closing_figures()

    @property
    def is_drawing(self) -> bool:
        """Whether a printed dict, a box or a table goes on in the next line."""
        return self._records.dicts.open or self._structures.is_open() or bool(self._open_box)

    def _is_settled(self, *, but_for_table: bool = False) -> bool:
        """Say whether no line above goes on in the next one, but for the open table, if so asked."""
        goes_on = (
            self._errors.open
            or self._records.dicts.open
            or self._structures.is_open(but_for_table=but_for_table)
            or self._repeated
        )
        return not goes_on and not self._starts.is_busy(self._builder.rows)

    def _slowly(self, number: int, line: bytes) -> LineContent | None:
        """Read a line; return what it says, None if that hangs on more than its skeleton."""
        text = line.decode("utf-8", errors="replace")
        if "^M" in text:  # a carriage return as `cat -v` shows it
            for part in text.split("^M"):
                self._take(number, part)
            return None
        if "#015" in text or "#033[" in text:
            for part in drawings_in(text):
                self._take(number, part)
            return None
        if "%|" in text and (parts := lines_joined(text)):
            for part in parts:
                self._take(number, part)
            return None
        return self._take(number, text)

    def _take(self, number: int, line: str) -> LineContent | None:
        if len(line) <= 2 and not self._records.dicts.open:
            self._watch_starts(number, line, "")  # a brace of a configuration that is printed anew
            if line.strip() == "{":  # or of a record that is printed over several lines
                self._records.dicts.begin(line, evaluation=self._records.under_heading(number))
                return None
            return LineContent()
        if number == self._repeated:
            self._repeated = 0
            return None
        settled = self._is_settled()
        skeleton = line.translate(NO_DIGITS)
        if settled and skeleton in self._dull:
            self._watch_starts(number, line, skeleton)
            return None if self._starts.watches(skeleton) else LineContent()
        if not self._builder.rows and any(map(line.__contains__, "/|,")):
            for names in names_of_parts(line):
                several = len(names) in self._names_of_parts and self._names_of_parts[len(names)] != names
                self._names_of_parts[len(names)] = [] if several else names
        content = self._unlike(number, line)
        nothing = content is not None and content.is_nothing
        if nothing and settled and sum(map(str.isalpha, skeleton)) >= MIN_LINE_LETTERS:
            self._keep_words(number, _cleaned(line))
        self._watch_starts(number, line, skeleton if nothing else "")
        if content is None or _HANGS_ON_NUMBERS in line or _OF_EPOCH in line or may_be_row(content.head):
            return None
        dull = nothing and settled and self._is_settled() and len(self._dull) < MAX_DULL
        if self._learns and dull and len(line) < MAX_DULL_LINE:
            self._dull.add(skeleton)
        return None if nothing and self._starts.watches(skeleton) else content

    def _watch_starts(self, number: int, line: str, skeleton: str) -> None:
        """Look whether the program starts again; a line that says something of a record has no skeleton."""
        start = self._starts.take(number, line, skeleton, self._builder.rows, failed=self._builder.failed)
        if start is not None:
            start.row = self._builder.rows + self._records.assembler.is_open
            self._builder.started(start)

    def _keep_words(self, number: int, line: str) -> None:
        row = self._builder.rows + self._records.assembler.is_open + self._records.bars.holds_record
        self._builder.text_line(RecordedLine(row, number, without_prefix(line).message.strip(), warns(line)))

    def _unlike(self, number: int, line: str) -> LineContent | None:
        """Take a line of a shape that is not known yet."""
        line = _cleaned(line)
        if len(line) > MIN_LONG_LINE and len(parts := _records_of(line)) > 1:
            contents = [self._unlike(number, part) for part in parts]
            return LineContent() if all(content is not None and content.is_nothing for content in contents) else None
        if "{" in line or not self._records.dicts.open:  # else it may be the rest of a dict that was wrapped
            line = straightened(line)
        if self._errors.goes_on(line):
            self._builder.message_goes_on(line)
            return None
        ignored = self._errors.ignoring
        failed = self._errors.take(line)
        if failed:
            behind = self._records.assembler.holds_record + self._records.bars.holds_record
            self._builder.message(number, line, self._errors.code, behind=behind)
        # What belongs to an ignored exception may stand in one that counts, later, and so may a resume: it is not dull.
        fold = fold_in(without_prefix(line).message) if "fold" in line.lower() else None
        special = failed or ignored or self._errors.ignoring or tells_resume(line) or fold is not None
        if fold is not None:
            self._builder.fold(fold, behind=self._records.assembler.is_open)
        if self._records.dicts.open and self._records.dicts.go_on(number, line):
            return None
        if tells_resume(line, begun=bool(self._builder.rows) or self._records.assembler.is_open):
            self._records.assembler.flush()
            self._builder.resumed()
            self._keep_words(number, line)
        if self._structures.take(number, without_underscores(line)):
            return None
        content = self._by_itself(number, line)
        return None if special else content

    def _by_itself(self, number: int, line: str) -> LineContent | None:
        """Read a line by itself; return what it says, None for a heading."""
        content = content_of(line, evaluation=self._records.under_heading(number))
        if content.drawing is not None and content.drawing.telling and len(self._builder.formats) < 2:
            name_framework(self._builder, line)
        if content.opens or content.record is not None:
            name_framework(self._builder, line)
        elif content.plain is not None and content.plain.telling:
            name_framework(self._builder, content.text)
            self._inner = self._inner or "| train_inner |" in content.text
            if self._inner and _OF_EPOCH in content.text:  # fairseq closes an epoch with the mean over it
                content.plain.metrics = {f"epoch_mean/{name}": value for name, value in content.plain.metrics.items()}
        elif content.skipped is None and self._take_heading(number, content.text):
            return None
        return content if self._records.take(number, content) else LineContent()

    def _take_heading(self, number: int, line: str) -> bool:
        """Note where an evaluation begins, or training again, or a repeated line, if the line says nothing else."""
        if len(line) < MAX_HEADING and _REPEATS.search(line):
            self._repeated = number + 1
            return True
        message = without_prefix(line).message
        if len(message) < MAX_HEADING and heads_closing(message):
            self._records.head_closing()
        if len(message) >= MAX_HEADING or MAY_HOLD_NUMBER.search(message):
            return False
        if self._records.assembler.name_closing_set(message):
            return True
        evaluated = heads_evaluation(message)
        if evaluated is None:
            return False
        self._records.head(number, evaluation=evaluated)
        return True


_CODE = regex(rb"^`([^`\n]{20,20000})`[ \t]*$", re.MULTILINE)
"""A line that whoever pasted it marked as code."""


def _records_of(line: str) -> list[str]:
    """Return the records of a line in which line ends were lost."""
    parts = keras_epochs_in(line) or records_in(line)
    return parts if len(parts) > 1 else records_drawn_in(line)


def lines_as_printed(lines: Iterable[str]) -> Iterator[str]:
    """Yield as many lines, put together as they were printed: some hold what stood in others."""
    lines = iter(lines)
    while together := list(islice(lines, LINES_TOGETHER)):
        block = _as_printed("\n".join([*together, ""]).encode("utf-8", errors="replace"))
        yield from block.decode("utf-8", errors="replace").split("\n")[:-1]


def _as_printed(block: bytes) -> bytes:
    """Return a block without the line ends that a terminal or a table put into its lines.

    Whether there are any is looked for in the first lines alone: a whole block would cost as much as reading it.
    """
    head = block[:BREAKS_LOOKED_FOR]
    for marks, pattern, meant in _AS_PRINTED:
        if any(mark in head for mark in marks) and pattern.sub(meant, head) != head:
            block = pattern.sub(meant, block)
    if b"  " in head and _COUNTER_ROW.search(head):
        block = _ROWS.sub(_boxed, block)
    return block


def _by_phase(table: re.Match[bytes]) -> bytes:
    """Return a table of phases with a line for each metric: "train loss: 0.5, validation loss: 0.6"."""
    phases, *rows = (_SIDE.split(row.decode(errors="replace"))[1:-1] for row in table[0].splitlines())
    if not all(map(names_phase, phases[1:])):
        return table[0]
    lines = [
        ", ".join(f"{phase} {row[0]}: {value}" for phase, value in zip(phases[1:], row[1:], strict=False))
        for row in rows
    ]
    return "\n".join(["", *(line if row else "" for line, row in zip(lines, rows, strict=True)), ""]).encode()


def _mended(broken: re.Match[bytes]) -> bytes:
    """Return the line that a terminal broke as one, with an empty line below it that keeps the numbers of lines."""
    above, below = broken["above"], broken["below"]
    are_parts = len(_PARTS.findall(below)) > 1 and len(_PARTS.findall(above)) > 2
    are_parts = are_parts and not (_WORD_IN_FRONT.match(above) and _WORD_IN_FRONT.match(below))
    return above + below + b"\n" if are_parts else broken[0]


def _boxed(rows: re.Match[bytes]) -> bytes:
    """Return rows of two columns as those of a box, and an empty line below as its end, unless the first row counts.

    Names that come again below a row that counts are of the next record; others would be of one record.
    """
    lines = [line.strip(b"> \t") for line in rows[0].splitlines()]
    cells = [line.rpartition(b"  ") for line in lines]
    counts = [at for at, line in enumerate(lines, start=1) if _COUNTER_ROW.match(line)]
    blocks = [[name.rstrip() for name, _, _ in cells[first:last]] for first, last in pairwise([0, *counts, len(cells)])]
    is_repeated = any(len({*names}) < len(names) for names in blocks)
    if _COUNTER_ROW.match(lines[0]) or is_repeated or not counts:
        return rows[0]
    return b"".join(
        b"| %s | %s |\n" % (name.rstrip(), value) if value else b"-" * 8 + b"\n" for name, _, value in cells
    )


def _unwrapped(table: re.Match[bytes]) -> bytes:
    """Return a wrapped table as a row of names and one of values, with empty lines below for the numbers of lines."""
    lines = [line.rstrip(b" \t\\").split() for line in table[0].split(b"\n")]
    names, values = lines[::2], lines[1::2]
    numbers = all(MAY_HOLD_NUMBER.search(value.decode(errors="replace")) for row in values for value in row)
    if not numbers or any(len(above) != len(below) for above, below in zip(names, values, strict=True)):
        return table[0]
    rows = [b"  ".join(cell for row in part for cell in row) for part in (names, values)]
    return b"\n".join([*rows, *[b""] * (len(lines) - 2)])


_UNNAMED_ROW = regex(
    rb"^[ \t]{0,12}(?P<step>\d{1,3}(?:,\d{3}){1,3}|\d{1,9})(?:[ \t]{0,4}[:|,]|(?=[ \t]))[ \t]{1,12}"
    rb"(?P<number>-?\d{1,9}\.\d{1,12}(?:e[-+]?\d{1,3})?)(?=[ \t]*$|[ \t]{1,12}[(\[|]|[ \t]{2,12}[A-Za-z])",
    re.MULTILINE | re.IGNORECASE,
)
_DIGIT_IN_LINE = regex(rb"^.*\d.*$", re.MULTILINE)
LEAST_UNNAMED, LEAST_SHARE_UNNAMED = 4, 0.5
"""Lines of a counter and a number without a name that make a log of such records, and their share of its lines with
numbers. Chosen: a list of weights stands among other lines."""


def _tells_unnamed(head: bytes) -> bool:
    """Say whether most lines give a number behind a counter that rises, and no header names it."""
    rows = list(_UNNAMED_ROW.finditer(head))
    if len(rows) < LEAST_UNNAMED:
        return False
    steps = [int(row["step"].replace(b",", b"")) for row in rows]
    table = Table()
    for line in head[: rows[0].start()].decode(errors="replace").splitlines():
        table.take(line)
    rises = all(before < after for before, after in pairwise(steps))
    return rises and not table.open and len(rows) >= LEAST_SHARE_UNNAMED * len(_DIGIT_IN_LINE.findall(head))


_EPOCH_AND_BATCH = regex(rb"^([ \t]{0,12})(?P<epoch>\d{1,6})/(?P<batch>\d{1,9})(?=[ \t])", re.MULTILINE)
"""An epoch and the batch in it, "  03/12  loss=0.2", where others print a step of many."""
LEAST_BATCHES = 3
"""Lines whose second number rises while the first one stays. Chosen: the length of a run seldom changes."""


def _counts_batches(head: bytes) -> bool:
    """Say whether lines begin with an epoch and a batch: the second number rises, until the first one goes on."""
    rows = [(int(row["epoch"]), int(row["batch"])) for row in _EPOCH_AND_BATCH.finditer(head)]
    rises = [epoch == then and batch < after for (epoch, batch), (then, after) in pairwise(rows)]
    begins = [epoch < then and batch >= after for (epoch, batch), (then, after) in pairwise(rows)]
    return sum(rises) >= LEAST_BATCHES and all(map(operator.or_, rises, begins))


_AS_PRINTED: tuple[tuple[tuple[bytes, ...], re.Pattern[bytes], bytes | Callable[[re.Match[bytes]], bytes]], ...] = (
    ((b"`",), _CODE, rb"\1"),
    ((b":\n", b": \n", b"=\n", b"= \n"), _WRAPPED, rb"\1 \2\n"),
    ((b"|", b" pid="), _BROKEN, _mended),
    ((b" train ",), _PHASES_IN_FRONT, _by_phase),
    ((b"D+",), _OF_FORTRAN, rb"\1E"),
    ((b"| epoch",), _EPOCH_BELOW, rb"\g<above> \g<below>\n"),
    ((b"\\",), _WIDE_TABLE, _unwrapped),
)
"""What stands in a block with such lines, one of several; what they look like; and how they were printed."""


def _cleaned(line: str) -> str:
    return clean(line) if "\x1b" in line or "\b" in line else line


def _read(line: str) -> LineContent:
    """Read a line by itself, with the colours that it has."""
    return content_of(straightened(_cleaned(line)))


def _decimals(number: bytes) -> int:
    """Return how many characters stand behind the decimal point of a number, those of an exponent included."""
    return len(number.partition(b".")[2])
