"""Error messages that users meet, with cause and fix, from `errors.jsonl`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from pydantic import Field, ValidationError

from mldebug_mcp.core.errors import CatalogueError
from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.core.text import clean
from mldebug_mcp.knowledge.catalogue import Entry

# What the message of a failed allocation counts, and whether it shows free memory in pieces.


_SIZE = r"(?<![\d.])(\d{1,15}(?:\.\d{1,15})?) ?([KMGT])(?:i?B|b)"
_BYTES = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
"""Bytes of a unit. Source: IEC 80000-13."""
REQUEST = regex(
    r"(?i)(?:(?:tried|failed|unable) to|could not|cannot|can't) (?:alloc(?:ate)?|take|get|obtain|reserve|grab) "
    rf"{_SIZE}"
)
_UNUSED = regex(rf"(?i){_SIZE} is reserved by PyTorch but unallocated")
_ALLOCATED = regex(rf"(?i){_SIZE} (?:already allocated|is allocated by PyTorch)")
_RESERVED = regex(rf"(?i){_SIZE} reserved in total")
_FREE = regex(rf"(?i){_SIZE} (?:is )?free\b")
_FREE_BEFORE = regex(rf"(?i)\bfree:? {_SIZE}")
_LARGEST = regex(rf"(?i)\blargest(?: (?:free|contiguous))?(?: block)?(?: is|:)? {_SIZE}")
"""What an allocator of its own prints: `free 86.4 MiB in 37 blocks, largest 16.7 MiB`."""
_ALLOWED = regex(rf"(?i){_SIZE} allowed")
"""What a process may take where it may not have the whole device."""

MIN_SHARE_OF_RESERVED = 0.07
"""Of all that is reserved. Chosen: a process that is full has a little unused as well."""
ROOM = 64 * _BYTES["M"]
"""In bytes: the allocator asks for more than a tensor needs, in units of 2 and of 20 MiB. Chosen."""


def lies_in_pieces(asked: float, allocated: float, unused: float, free: float) -> bool:
    """Return whether a request failed although more than it asked for was unused: that was not in one piece.

    A little unused memory is ordinary, and with less than the request the device is full. Sizes are in bytes. Source of
    the rule: PyTorch, "CUDA semantics: memory management", which speaks of much that is reserved and unallocated.

    Args:
        asked: What was asked for.
        allocated: What tensors held.
        unused: What was reserved without an allocation.
        free: What the device had left for this process.
    """
    return unused >= max(asked, MIN_SHARE_OF_RESERVED * (allocated + unused)) or free >= asked + ROOM


@dataclass(frozen=True, slots=True)
class PrintedAllocation:
    """An allocation that failed, in bytes, as its message counts it.

    Args:
        asked: What was asked for.
        allocated: What tensors held, 0 if unknown.
        unused: What was reserved without an allocation; None if unknown.
        free: What the device had left; 0 if unknown, or if the process may not take all of it.
        largest: The largest free piece; None if unknown.
    """

    asked: float
    allocated: float
    unused: float | None
    free: float
    largest: float | None = None

    @property
    def in_pieces(self) -> bool:
        """Whether the message shows free memory that lies in pieces."""
        if self.largest is not None:
            return self.largest < self.asked <= self.free
        return lies_in_pieces(self.asked, self.allocated, self.unused or 0.0, self.free)


def printed_allocation(text: str) -> PrintedAllocation | None:
    """Return what a message of PyTorch's allocator counts; None where it does not say what was asked for."""
    asked, unused, allocated, reserved, free, free_before, largest = (
        _first_bytes(pattern, text)
        for pattern in (REQUEST, _UNUSED, _ALLOCATED, _RESERVED, _FREE, _FREE_BEFORE, _LARGEST)
    )
    free = free if free is not None else free_before
    if asked is None:
        return None
    if unused is None and reserved is not None and allocated is not None:
        unused = reserved - allocated
    return PrintedAllocation(asked, allocated or 0.0, unused, 0.0 if _ALLOWED.search(text) else free or 0.0, largest)


def _first_bytes(pattern: re.Pattern[str], text: str) -> float | None:
    found = pattern.search(text)
    return _in_bytes((found[1], found[2])) if found else None


def _in_bytes(size: tuple[str, str]) -> float:
    return float(size[0]) * _BYTES[size[1].upper()]


# A regular expression → words of which one stands in every text that it matches.
#
# Looking for a word costs a fraction of what a pattern costs, and a line of a log shows few of the errors that are
# known: the patterns of the others need not be tried. What stands in groups is left out, so that a pattern without a
# word outside of them is always tried.


MIN_LENGTH = 3
"""Characters of a word that tells lines apart; the patterns with no word of that length are always tried. Chosen."""

_PIECE = regex(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{\d*,?\d*\}|.", re.DOTALL)
_LETTER_CLASS = regex(r"\\[A-Za-z0-9]")


def required_words(pattern: str) -> tuple[str, ...]:
    """Return words; at least one is in every text that a pattern matches; nothing if it has none."""
    if "(?i)" in pattern:
        return ()
    words = [max(_runs(alternative), key=len, default="") for alternative in _alternatives(pattern)]
    return tuple(words) if all(len(word) >= MIN_LENGTH for word in words) else ()


def _alternatives(pattern: str) -> list[list[str]]:
    """Return the pieces of each alternative of the whole pattern; a group, with all in it, is one empty piece."""
    alternatives: list[list[str]] = [[]]
    depth = 0
    for piece in _PIECE.findall(pattern):
        if piece == "(":
            depth += 1
        elif piece == ")":
            depth -= 1
            if depth == 0:
                alternatives[-1].append("")
        elif depth == 0 and piece == "|":
            alternatives.append([])
        elif depth == 0:
            alternatives[-1].append(piece)
    return alternatives


def _runs(pieces: list[str]) -> list[str]:
    """Return the words that every match of an alternative holds: what stands between its wildcards."""
    runs = [""]
    for piece in pieces:
        if piece in ("?", "*") or (piece.startswith("{") and len(piece) > 1):
            runs[-1] = runs[-1][:-1]  # what stands before it may be missing
            runs.append("")
        elif len(piece) == 1 and piece not in ".^$+":
            runs[-1] += piece
        elif len(piece) == 2 and piece[0] == "\\" and not _LETTER_CLASS.match(piece):
            runs[-1] += piece[1]
        else:
            runs.append("")
    return runs


# Error messages that users meet, with cause and fix: `errors.jsonl`, one row each.
#
# The order of the rows is the order of the answer: a row that matches fewer texts is above one that matches more.
# Patterns are matched against one line of bounded length with single spaces, and hold no unbounded repetition, so that
# no input makes them slow.


FILE = "errors.jsonl"
MAX_TEXT = 4_000
"""Characters of a message that the patterns see."""


class Role(StrEnum):
    """What a message is: the error itself, the echo of another one, or a warning."""

    ERROR = "error"
    ECHO = "echo"
    WARNING = "warning"


class KnownError(Entry):
    """A row of `errors.jsonl`."""

    id: str
    message: str = Field(description="An example; empty where the trouble shows no message.")
    pattern: str = Field(description="Regular expression; empty where the trouble shows no message.")
    cause: str
    fix: str
    mistaken_for: str
    causes: tuple[str, ...] = Field(description="Ids of causes of the playbook.")
    source: str = Field(description="Id of an evidence record, or a URL.")
    locator: str
    credence: str
    role: Role = Role.ERROR
    condition: str = Field("", description="What the numbers of the message have to say: a key of CONDITIONS.")
    code: str = Field("", description="Regular expression for the code that raised it, where the words do not suffice.")
    component: str = Field("", description="The part of a program that has to have raised it: a key of COMPONENTS.")
    device: str = Field("", description="The kind of device that it is about: a key of DEVICES.")
    general: bool = Field(False, description="It names a kind of message, and holds where no other row does.")
    states: bool = Field(
        False, description="Its messages name what is wrong: their values say more than the words of this row."
    )
    interpreter: bool = Field(
        False, description="Python itself raises it, in any code: it points to no cause of a run."
    )

    @property
    def required_words(self) -> tuple[str, ...]:
        """Words; at least one is in every text that it fits. Nothing if none are known."""
        return required_words(self.pattern) or CONDITION_WORDS.get(self.condition, ())

    @property
    def vagueness(self) -> int:
        """How little it says of the fault: 0 one message, 1 a kind of a library's messages, 2 any code's."""
        return 2 if self.interpreter else int(self.general)

    def fits(self, text: str, code: str = "", origin: str = "") -> bool:
        """Return whether a text, of single spaces and bounded length, shows this error.

        Args:
            text: The message.
            code: The line of code that raised it, where a traceback shows it.
            origin: The name of the process and the frames of the traceback, one a line.
        """
        if not self.pattern or _compiled(self.pattern).search(text) is None:
            return False
        if self.code and _compiled(self.code).search(code) is None:
            return False
        if self.component and _compiled(COMPONENTS[self.component]).search(origin) is None:
            return False
        if self.device and self.device not in (named := devices_named(text)) and named:
            return False
        return not self.condition or CONDITIONS[self.condition](text, code)


def devices_named(text: str) -> set[str]:
    """Return the kinds of devices that a message names."""
    return {device for device, names in DEVICES.items() if _compiled(names).search(text)}


_compiled = lru_cache(maxsize=None)(re.compile)
"""A pattern, compiled once: there are more of them than the module `re` remembers."""


@lru_cache(maxsize=1)
def known_errors() -> Mapping[str, KnownError]:
    """Return the rows of `errors.jsonl` by id, in file order; raises CatalogueError where one breaks the grammar."""
    rows: dict[str, KnownError] = {}
    lines = (Path(__file__).parent / FILE).read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            row = KnownError.model_validate(json.loads(line))
        except (ValueError, ValidationError) as error:
            raise CatalogueError(FILE, number, str(error).splitlines()[0]) from None
        if row.id in rows:
            raise CatalogueError(FILE, number, f"{row.id} is there twice; ids are unique")
        rows[row.id] = row
    return rows


def match(
    text: str, *, warnings: bool = False, code: str = "", origin: str = "", general: bool = True
) -> list[KnownError]:
    """Return the known errors that a message shows, the most specific first.

    Args:
        text: The message: a line or a few. Only the first 4,000 characters are looked at.
        warnings: Whether messages that stop nothing count too.
        code: The line of code that raised it, where a traceback shows it.
        origin: The name of the process and the frames of the traceback, one a line.
        general: Whether rows count that name a kind of a library's messages.
    """
    line = " ".join(clean(text[: 4 * MAX_TEXT]).split())[:MAX_TEXT]
    rows = [row for row in _candidates(line) if warnings or row.role is not Role.WARNING]
    return ranked(row for row in rows if row.fits(line, code, origin) and (general or not row.general))


def ranked(rows: Iterable[KnownError]) -> list[KnownError]:
    """Return the rows that fit a message by their specificity.

    A row that holds for one component comes before one that holds wherever the words appear. A general row and one of
    the interpreter, the first alone, hold where no other does.
    """
    fitting = list(rows)
    specific = [row for row in fitting if not row.vagueness]
    return sorted(specific, key=lambda row: not row.component) or fitting[:1]


def _candidates(line: str) -> list[KnownError]:
    """Return the rows that may fit a line, in file order: those with a required word in it."""
    rows = tuple(known_errors().values())
    return [rows[place] for place in sorted({place for word, place in _places() if word in line})]


@lru_cache(maxsize=1)
def _places() -> tuple[tuple[str, int], ...]:
    """Return each required word with the place of its row; for a row of none the empty word, which is in every line."""
    rows = known_errors().values()
    return tuple((word, place) for place, row in enumerate(rows) for word in row.required_words or ("",))


def is_fragmented(text: str) -> bool:
    """Return whether an out-of-memory message shows memory, free or reserved and unused, far beyond the request.

    PyTorch's allocator writes the sizes into the message; where more was free or unused than was asked for, it was not
    in one piece (PyTorch, "CUDA semantics: memory management"). A process with a memory allowance runs into that
    instead, and a little of what is reserved is unused in any process.
    """
    counted = printed_allocation(text)
    return counted is not None and counted.in_pieces


_RAISED = regex(r"(?:\w{1,60}\.){0,8}\w{0,60}(?:Error|Exception)\b")
_REFUSAL = regex(
    r"(?:\w{1,60}\.){0,8}(?:Value|Type|NotImplemented|Assertion|Import|Configuration|Config|Validation)Error\b|"
    r"(?:\w{1,60}\.){0,8}MisconfigurationException\b"
)

_OPERATOR = regex(r"(?:Runtime|Index)Error\b")
"""The types that the operators of PyTorch raise."""


def is_raised(text: str) -> bool:
    """Return whether a message begins with the type of an exception: words of a warning are no error."""
    return _RAISED.match(text) is not None


def is_refusal(text: str, code: str) -> bool:
    """Return whether a message is of Python code that refuses what it was given: by its type, or its line of code.

    RuntimeError and IndexError are no such types: the operators of tensors raise them, in words of their own.
    """
    return _REFUSAL.match(text) is not None or (is_raised(text) and code.startswith("raise "))


def is_of_operator(text: str, code: str) -> bool:
    """Return whether a message can be of an operator of tensors, which compiled code raises: no `raise` is shown."""
    return _OPERATOR.match(text) is not None and not code.startswith(("raise ", "assert "))


def is_shared(text: str) -> bool:
    """Return whether an out-of-memory message reports another process on the same GPU.

    In a container the process that failed is listed under its number outside, as if it were another one: then what the
    process listed has, and what the allocator reserved, would be more than the GPU has.
    """
    if "this process has" in text:
        return True
    listed = re.findall(rf"Process \d+ has {_SIZE} memory in use", text)
    capacity = _first_bytes(re.compile(rf"total capac(?:i)?ty of {_SIZE}"), text)
    own = sum(
        _first_bytes(re.compile(rf"{_SIZE} is {what} by PyTorch"), text) or 0.0 for what in ("allocated", "reserved")
    )
    return len(listed) > 1 or capacity is None or sum(map(_in_bytes, listed)) + own <= capacity


COMPONENTS = {
    "checkpoint_loading": r"\bin (?:_?load_state_dict\w{0,20}|_load_from_state_dict|load_checkpoint\w{0,20}|"
    r"_?load_pretrained\w{0,20}|_load_state_dict_into\w{0,30}|set_module_tensor_to_device|load_adapter\w{0,20}|"
    r"set_peft_model_state_dict|resume_from\w{0,20}|_load_from_checkpoint)\b",
    "pin_memory": r"pin_memory",
    "exporting": r"[/\\]torch[/\\](?:_?export|onnx|jit|fx|_dynamo|_functorch)[/\\]",
    "arguments": r"(?:[Aa]rguments|[Cc]onfig\w{0,20}|args)\.py[^\n]{0,80}$|"
    r"in (?:__post_init__|_?validate\w{0,30})\b[^\n]{0,200}$",
    "activations": r"[/\\]transformers[/\\]activations\.py",
    "graph_layers": r"[/\\]torch_geometric[/\\]",
    "collating": r"[/\\]_utils[/\\]collate\.py",
    "image_transforms": r"[/\\]torchvision[/\\]transforms[/\\]",
    "dataloader": r"[/\\]torch[/\\]utils[/\\]data[/\\]dataloader\.py",
    "optimizer": r"[/\\]torch[/\\]optim[/\\]",
    "file_reading": r"[/\\](?:serialization|pickle\w{0,10})\.py|: [^\n]{0,80}(?:pickle|torch)\.load\(",
    "encoding_attribute": r"(?:tokenization_utils_base|feature_extraction_utils)\.py[^\n]{0,20} in __getattr__\b"
    r"[^\n]{0,200}\Z",
    "whole_column": r"\A(?![\s\S]{0,40000}(?:[/\\]arrow_dataset\.py| in __getitem__\b))[\s\S]{0,40000}?"
    r"(?:[Tt]ok\w{0,30}|encode\w{0,20})\([^\n]{0,160}?\b"
    r"(?:\w{0,30}_)?(?:ds|df|datasets?|frame|table|train|test|val\w{0,10}|(?<=_)data)(?:_\w{0,20})?\[['\"]",
    "sentence_trainer": r"[/\\]sentence_transformers[/\\](?:\w{1,40}[/\\]){0,3}(?:trainer|data_collator)\.py",
    "ray_report": r"\b(?:tune|train)\.report\(|[/\\]ray[/\\](?:train|tune|air)[/\\][^\n]{0,400}\Z",
    "mds_writing": r"[/\\]streaming[/\\]base[/\\]format[/\\]",
    "chat_template": r"[/\\]chat_template_utils\.py|in apply_chat_template\b",
    "metrics": r"[/\\](?:torchmetrics|evaluate)[/\\]",
    "model_code": r"[/\\]transformers[/\\]models[/\\][^\n]{0,400}\Z",
    "positions": r": [^\n]{0,200}(?<![A-Za-z])(?:wpe|pe|pos|positions?|pos_\w{1,30}|position_\w{1,30}|"
    r"\w{1,30}_positions?)\b[^\n]{0,160}(?:\n[^\n]{0,200}[/\\]torch[/\\][^\n]{0,400}){0,8}\Z",
    "trl": r"[/\\]trl[/\\]",
    "generation": r"[/\\]transformers[/\\]generation[/\\]",
    "tables": r"[/\\]pandas[/\\]core[/\\]|[/\\]datasets[/\\](?:arrow_dataset|table|formatting)\b|[/\\]polars[/\\]",
    "library_check": r"(?:site|dist)-packages[/\\][^\n]{1,400}: raise [^\n]{0,200}\Z",
    "vllm": r"^(?:VLLM::)?(?:EngineCore|Worker_TP|VllmWorker|APIServer)|[/\\]vllm[/\\]",
}
"""A part of a program → how its processes, or the frames of its code, are named."""
DEVICES = {
    "cuda": r"\bCUDA\b|\bcuda\b",
    "tpu": r"\bTPU|[Hh][Bb][Mm](?![a-z])|tpu_",
    "apple": r"\bMPS\b|\[METAL\]|metal::|kIOGPU",
}
"""A kind of device → how a message names it. A row of one kind does not hold for a message that names another."""
CONDITION_WORDS = {"raised": ("Error", "Exception"), "refusal": ("Error", "Exception"), "operator": ("Error",)}
"""Words; one of them is in every text that a condition holds for."""
CONDITIONS: Mapping[str, Callable[[str, str], bool]] = {
    "fragmented": lambda text, _: is_fragmented(text),
    "shared": lambda text, _: is_shared(text),
    "raised": lambda text, _: is_raised(text),
    "refusal": is_refusal,
    "operator": is_of_operator,
}
"""What a message, or the line of code that raised it, has to say."""
