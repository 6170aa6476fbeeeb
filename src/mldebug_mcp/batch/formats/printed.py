"""Batches as programs print them: tensors, lists behind a name, and the lines in which trainers show an example."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from mldebug_mcp.batch.columns import Table
from mldebug_mcp.core.access import is_folder, read_bytes
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import counted, shorten

_COLUMNS = {
    "input_ids": "input_ids", "tokens": "input_ids", "label_ids": "labels", "labels_ids": "labels", "labels": "labels",
    "attention_mask": "attention_mask", "input_mask": "attention_mask", "input_masks": "attention_mask",
    "token_type_ids": "token_type_ids", "segment_ids": "token_type_ids", "position_ids": "position_ids",
    "loss_mask": "loss_mask", "decoder_input_ids": "decoder_input_ids",
}  # fmt: skip
"""Our name of a column by the one that is printed, in lower case."""
_ANY_COLUMN = "|".join(sorted(_COLUMNS, key=len, reverse=True))
_CALL = r"(?:\b(?:[a-z]{1,8}\.){0,2}(?:tensor|array|devicearray|tensorimpl|parameter)\(\s{0,8})?"
_NUMBER = r"-?\d{1,19}(?:\.\d{0,19})?"
_VALUE = re.compile(
    rf"(?<![\w.])(?P<name>{_ANY_COLUMN})['\"]?\]?\s{{0,4}}[:=]?\s{{0,8}}"
    rf"(?:{_CALL}(?P<list>\[)|(?P<bare>{_NUMBER}(?: {_NUMBER}){{3,}})[ \t]*$)",
    re.IGNORECASE | re.MULTILINE,
)
"""A column and its numbers: "'labels': tensor([[", "[LABELS_IDS] [-100, 5]", "input_ids: 101 2045 103"."""
_ALONE = re.compile(rf"{_CALL}(?P<list>\[\[\s{{0,8}}\d)", re.IGNORECASE)
"""A matrix without a name."""
_LABEL_AND_TOKEN = re.compile(r"\((?P<label>-100|\d{1,9}), (?P<token>\d{1,9})\)")
"""Label and token, behind each text, as axolotl shows an example: "Hello(9906, 9906) !(-100, 0)"."""
MIN_PAIRS = 4
"""Pairs in a line that shows an example; chosen: prose has fewer."""
_OF_LIST = re.compile(r"[\[\]]|\.\.\.|…|True|False|[^\s\d,.+-]")
"""What is neither a number nor between two in a list; anything but its brackets ends it."""
MASKED = -100
MAX_BYTES = 64 * 1024 * 1024
MAX_EXAMPLES = 10_000
"""Columns, or examples, of a text that are read. Chosen: people paste one to a hundred."""
WRITE_WHOLE = (
    "print() left numbers out ('...'): save the batch itself, with torch.save(batch, 'batch.pt'), or print it after "
    "torch.set_printoptions(threshold=10**7)"
)


class PrintedReader:
    """A text in which a program printed a batch, or a trainer an example: all of the numbers have to be there."""

    NAME = "printed"

    @staticmethod
    def matches(path: Path, head: bytes) -> bool:
        """It is text, no JSON, and a column or a line of pairs begins in it."""
        start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
        if is_folder(path) or b"\0" in head or re.match(rb'(?:\{|\[\s*\{)\s*"', start) or _is_list_of_json(start):
            return False
        text = head.decode("utf-8", "replace")
        return bool(_VALUE.search(text) or _ALONE.search(text) or any(map(_shows_pairs, text.splitlines())))

    @staticmethod
    def rows(path: Path) -> None:
        """One piece holds them all."""
        del path

    @staticmethod
    def tables(path: Path) -> Iterator[Table]:
        """Yield the text as one table. Raises InputError where numbers were left out, or columns do not fit."""
        name = shorten(str(path), 200)
        text = read_bytes(path, MAX_BYTES, "save the batch itself").decode("utf-8", "replace")
        columns, notes = _columns_in(text, name)
        columns = columns or _pairs_in(text)
        if not columns:
            raise InputError(f"{name}: no column of numbers is in it; save the batch itself, with torch.save")
        sizes = {column: len(rows) for column, rows in columns.items()}
        if len(set(sizes.values())) > 1:
            differ = ", ".join(f"{column} {size}" for column, size in sizes.items())
            raise InputError(f"{name}: the printed columns have different numbers of rows ({differ}); save the batch")
        rows = next(iter(sizes.values()))
        yield Table(dict(columns), notes=[f"read {counted(rows, 'row')} as a program printed them", *notes])


def _is_list_of_json(start: bytes) -> bool:
    """Say whether a text begins with a list that JSON has too: a line of a log, "[INFO]", is none."""
    return re.match(rb"\[\s*(?:\[|\]|-?\d[\d.eE+-]*\s*[,\]])", start) is not None


def _shows_pairs(line: str) -> bool:
    return len(list(islice(_LABEL_AND_TOKEN.finditer(line), MIN_PAIRS))) == MIN_PAIRS


def _columns_in(text: str, name: str) -> tuple[dict[str, list[object]], list[str]]:
    """Return the columns of all batches in a text, the rows of each below those before it, and notes."""
    notes: list[str] = []
    batches: list[dict[str, list[object]]] = [{}]
    found = list(islice(_VALUE.finditer(text), MAX_EXAMPLES))
    for match in found:
        column = _COLUMNS[match["name"].lower()]
        bare: list[object] = [*map(_number, (match["bare"] or "").split())]
        value = _list_at(text, match.start("list"), name) if match["list"] else bare
        if match["bare"] and column == "labels" and MASKED not in value:
            notes = [f"left out {match['name']}: TensorFlow programs mask their loss by input_mask, not by {MASKED}"]
        elif value:
            if column in batches[-1]:
                batches.append({})
            batches[-1][column] = value
    if not found and (alone := _ALONE.search(text)):
        batches[-1]["input_ids"] = _list_at(text, alone.start("list"), name)
    columns: dict[str, list[object]] = {}
    for batch in batches:
        rows = next((len(value) for value in batch.values() if isinstance(value[0], list)), 0)
        for column, value in batch.items():
            one_each = isinstance(value[0], list) or len(value) == rows
            columns.setdefault(column, []).extend(value if one_each else [value])
    return columns, notes


def _list_at(text: str, start: int, name: str) -> list[object]:
    """Return the list that begins at a place, empty if it holds anything but numbers and lists of them."""
    depth, end = 0, start
    for part in _OF_LIST.finditer(text, start):
        if part[0] in ("...", "…"):
            raise InputError(f"{name}: {WRITE_WHOLE}")
        if part[0] not in ("[", "]", "True", "False"):
            return []
        depth += {"[": 1, "]": -1}.get(part[0], 0)
        end = part.end()
        if depth == 0:
            break
    if depth:
        return []
    written = text[start:end].replace("True", "1").replace("False", "0")
    written = re.sub(r"(?<=[\d\]])\s+(?=[-\d\[])", ", ", re.sub(r"(?<=\d)\.(?!\d)", ".0", written))
    try:
        value = json.loads(written)
    except (ValueError, RecursionError):
        return []
    return [_whole(row) for row in value] if isinstance(value, list) else []


def _whole(value: object) -> object:
    """Return the numbers of a mask, printed as "1.", as whole ones."""
    if isinstance(value, list):
        return [_whole(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() else value


def _pairs_in(text: str) -> dict[str, list[object]]:
    """Return the examples of a text that shows label and token behind each piece of text, one on each line."""
    examples = [
        [(int(pair["label"]), int(pair["token"])) for pair in _LABEL_AND_TOKEN.finditer(line)]
        for line in islice(filter(_shows_pairs, text.splitlines()), MAX_EXAMPLES)
    ]
    if not examples:
        return {}
    return {
        "input_ids": [[token for _, token in example] for example in examples],
        "labels": [[label for label, _ in example] for example in examples],
    }
