"""Parsing JSON and YAML as trainers write them.

JSON may hold bare NaN and Infinity, be cut off in the middle, or nest without end. A YAML list of mappings is read
line by line, so that a file of any length costs no more than its lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.limits import checkpoint
from mldebug_mcp.logs.names.metrics import COUNTERS, canonical, is_telling
from mldebug_mcp.logs.numbers import parse_number, to_number

# Parsing JSON as trainers write it: bare NaN and Infinity, files cut off in the middle, nesting without end.

_DECODER = json.JSONDecoder()
OBJECTS_BETWEEN_CHECKPOINTS = 16_384

Object = dict[str, object]


def parse_json(text: str, each: Callable[[Object], Object] | None = None) -> object:
    """Return the value that `text` holds; `each` is called for every object in it.

    Raises:
        ValueError: it is not JSON, or nested too deeply.
    """
    try:
        return json.loads(text, object_hook=each)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def parse_object(text: str) -> Object | None:
    """Return the object that `text` holds, or None if it holds none."""
    try:
        value = parse_json(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def is_column(value: object) -> bool:
    """Say whether a value is a list of numbers, such as a Keras history has for each metric; null is not logged."""
    if not isinstance(value, list) or any(item is not None and to_number(item) is None for item in value[:10]):
        return False
    return next((to_number(item) is not None for item in value if item is not None), False)


def holds_columns(value: object) -> bool:
    """Say whether an object holds columns of numbers or a list of objects, by itself or in the objects in it."""
    if not isinstance(value, dict):
        return False
    return any(
        (is_column(part) and len(part) > 1)
        or (isinstance(part, list) and len(part) > 1 and isinstance(part[0], dict))
        or (isinstance(part, dict) and any(is_column(inner) for inner in part.values()))
        for part in value.values()
    )


def parse_document(text: str) -> object:
    """Return the value of a whole document, with checkpoints: parsing a large one takes seconds."""
    count = 0

    def each(value: Object) -> Object:
        nonlocal count
        count += 1
        if count % OBJECTS_BETWEEN_CHECKPOINTS == 0:
            checkpoint(f"{count:,} objects read")
        return value

    return parse_json(text, each)


def objects_in(text: str, start: int = 0) -> Iterator[Object]:
    """Yield the objects that stand one after another in `text` from `start`, up to the first cut off or broken one."""
    while True:
        brace = text.find("{", start)
        if brace < 0 or text[start:brace].strip(" \t\r\n,["):
            return
        try:
            value, start = _DECODER.raw_decode(text, brace)
        except (ValueError, RecursionError):
            return
        yield value


def closed(text: str) -> str:
    """Return the text of a list that is cut off, closed behind the last list in it."""
    return f"{text[: text.rfind(']') + 1]}]"


def cut_off(name: str, records: int) -> str:
    """Return the note of a document read only at its beginning."""
    return f"{name} is cut off or broken: {records} whole records were read from its beginning"


# Lists of mappings in a YAML document, read line by line: records, as a loop appends them, `- step: 1` and so on.
#
# Lists of flat mappings, or of mappings in them, are read, so that a file of any length costs no more than its lines.
# Anchors, tags and lists in brackets are not what loops append: such lines are left out.


_QUOTED = r"'[^']{1,200}'|\"[^\"]{1,200}\""
"""A key in quotes."""
_LINE = regex(
    r"(?P<indent> {0,80})(?P<item>- {1,8})?"
    rf"(?P<key>{_QUOTED}|[^\s'\":#&*!?{{}}\[\]|>-][^:#]{{0,200}}):(?:\s+(?P<value>.*))?",
    needs=":",
)
MOST_DEEP = 8
"""Mappings inside of each other that are read. Chosen: loops log two."""


LEAST_LISTED = 2
"""Items with a counter that make a list under a key one of records: a configuration lists mappings too."""
MOST_LISTED_NUMBERS = 100
"""Numbers of a list under a key that are read. Chosen: layers and classes are fewer."""
MOST_OTHER = 0.1
"""Share of lines at most that are no keys, in a document of keys. Chosen: a text that only looks like one has more."""
_BOUNDARY = regex(r"(?:---|\.\.\.)(?=\s|$)")
"""Where a document of a stream begins or ends; a longer line of hyphens is a rule."""
_DUMPED = regex(r"^ {0,80}[\w./-]{1,200}:(?: (?:\{\}|\[\]|-?\.(?:nan|inf)))?$")
"""A line as only a writer of YAML prints it: a key that opens a mapping, nothing, NaN or infinity."""
RESULT_HEADING = regex(r"Result for (?P<trial>[\w.=,/()-]{1,200}):\s{0,4}")
"""Above a result of Ray's Tune: "Result for PPO_CartPole_00000:"."""
_NUMBER_ITEM = regex(r"(?P<indent> {0,80})- {1,8}(?P<value>[-+.\w]{1,40})")
"""An item that is nothing but a number, such as that of a layer."""
_COMMENT = regex(r"\s+#[^'\"]*$")
_ITEM = regex(r"^ {0,80}- {1,8}['\"\w{]", re.MULTILINE)


_BRACED = regex(
    rf"(?P<head> {{0,80}}(?:- {{1,8}})?)(?:(?P<key>{_QUOTED}|[^\s'\":#{{}}\[\]-][^:#{{}}]{{0,200}}):\s{{1,8}})?"
    r"(?P<braces>\{.*\})\s*"
)
_PART = regex(
    rf"\s*+(?:(?P<key>{_QUOTED}|[^\s'\":{{}}\[\],][^:{{}}\[\],]{{0,200}}):\s*+)?"
    r"(?:(?P<open>\{)|(?P<value>'[^']{0,200}'|\"[^\"]{0,200}\"|[^\s{}\[\],'\"][^{}\[\],]{0,200})?(?P<end>[,}]\s*+,?))"
)


def in_block_style(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines with what a key or an item has in braces as lines of their own: `train: {loss: 2.1, acc: 0.4}`."""
    for line in lines:
        braced = _BRACED.fullmatch(line) if "{" in line else None
        yield from [line] if braced is None else _unbraced(braced) or [line]


def _unbraced(braced: re.Match[str]) -> list[str]:
    """Return the lines of what stands in braces; none where it is another form."""
    head, key, text = braced["head"], braced["key"], braced["braces"]
    if not key and "-" not in head:
        return []
    lines = [f"{head}{key}:"] if key else []
    depth, at = 1, 1
    while 0 < depth <= MOST_DEEP and (part := _PART.match(text, at)) is not None:
        before = head if not lines else " " * (len(head) + 2 * (depth if key else depth - 1))
        if part["open"] and not part["key"]:
            return []
        if part["key"]:
            lines.append(f"{before}{part['key']}: {part['value'] or ''}".rstrip())
        depth += 1 if part["open"] else -part["end"].count("}")
        at = part.end()
    return lines if not depth and not text[at:].strip() else []


def lists_records(head: str) -> bool:
    """Say of the beginning of a document whether it lists records: a configuration is a mapping."""
    if _ITEM.search(head) is None:
        return False
    shown = (line for line in head.splitlines() if line.strip() and not line.startswith(("#", "---", "%")))
    lines = list(in_block_style(shown))
    found = [_LINE.fullmatch(line) for line in lines[:2]]
    if len(found) < 2 or found[0] is None or found[1] is None or found[0]["indent"]:
        return False
    if found[0]["item"]:
        return bool(found[1]["indent"]) and not found[1]["item"]
    other = sum(_LINE.fullmatch(line) is None and _NUMBER_ITEM.fullmatch(line.rstrip()) is None for line in lines)
    records = listed_records(lines)
    return other <= MOST_OTHER * len(lines) and sum(record is not None for record in records) >= LEAST_LISTED


def listed_records(lines: Iterable[str]) -> Iterator[dict[str, object] | None]:
    """Yield the records of the document, and None for each other line of a list."""
    listed = _Items()
    for line in in_block_style(lines):
        if not line.strip() or line.lstrip().startswith(("#", "---", "...")):
            continue
        found = _LINE.fullmatch(line.rstrip())
        if found is None:
            if listed.open and not listed.lists(line):
                yield None
            continue
        if done := listed.take(found):
            yield done
    if done := listed.end():
        yield done


def streams_records(head: str) -> bool:
    """Say of the beginning of a text whether it is a stream of YAML documents (`---`), each of them a record."""
    lines = head.splitlines()
    if sum(_BOUNDARY.match(line) is not None for line in lines) < LEAST_LISTED:
        return False
    other = sum(not _is_key(line.rstrip()) for line in lines if not _is_between(line))
    if other > MOST_OTHER * len(lines):
        return False
    records = [record for record in streamed_records(lines) if record]
    counted = [record for record in records if any(canonical(name) in COUNTERS for name in record)]
    words = any(isinstance(value, str) and is_telling(name) for record in records for name, value in record.items())
    return len(counted) >= LEAST_LISTED and len(counted) > len(records) / 2 and not words


def prints_records(head: str) -> bool:
    """Say of the beginning of a text whether it is nothing but results printed as YAML, as RLlib prints them.

    They are mappings with others or with special values in them, or the counters stand last in each; an empty line is
    between two. A configuration holds neither a result nor a counter. Results with headings are lines of a text.
    """
    lines = [line.rstrip() for line in head.splitlines() if line.strip()]
    if any(map(RESULT_HEADING.fullmatch, lines)) or sum(not _is_key(line) for line in lines) > MOST_OTHER * len(lines):
        return False
    records = [record for record in printed_records(head.splitlines()) if record]
    whole = records[:-1]  # the last one may be cut off
    if not any(map(_DUMPED.search, lines)) and not (whole and all(map(_counts_last, whole))):
        return False
    numbers = {name for record in records for name, value in record.items() if isinstance(value, float)}
    return any(map(is_telling, numbers)) and any(canonical(name) in COUNTERS for name in numbers)


def _counts_last(record: Mapping[str, object]) -> bool:
    """Say whether a mapping begins with a metric and ends in a counter: read as text, it would be of the next one."""
    names = [canonical(name) for name in record]
    return names[0] not in COUNTERS and names[-1] in COUNTERS


def printed_records(lines: Iterable[str]) -> Iterator[dict[str, object] | None]:
    """Yield the record of each mapping between empty lines, and None for each line that is not a key of one."""
    return streamed_records(line if line.strip() else "---" for line in lines)


def streamed_records(lines: Iterable[str]) -> Iterator[dict[str, object] | None]:
    """Yield the record of each document of a stream, and None for each line that is not a key of one."""
    document = _Items()
    for line in in_block_style(lines):
        if _BOUNDARY.match(line) and (done := document.end()):
            yield done
        if _is_between(line):
            continue
        found = _LINE.fullmatch(line.rstrip())
        if found is None:
            yield None
        else:
            document.keep(found)
    if done := document.end():
        yield done


def _is_between(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith(("#", "%")) or _BOUNDARY.match(line) is not None


def _is_key(line: str) -> bool:
    """Say whether a line is a key with its value: one with a colon in it would have to be quoted."""
    found = _LINE.fullmatch(line)
    return found is not None and (": " not in (found["value"] or "") or found["value"][0] in "'\"")


class _Items:
    """The items of the lists of a document, one after another."""

    def __init__(self) -> None:
        self._key = ""
        self._indent: int | None = None  # that of the items of the open list
        self._record: dict[str, object] = {}
        self._above: list[tuple[int, str]] = []

    @property
    def open(self) -> bool:
        """Whether a list is open."""
        return self._indent is not None

    def take(self, found: re.Match[str]) -> dict[str, object]:
        """Take a line with a key; return the record that it ends, empty if it ends none."""
        indent, key = len(found["indent"]), found["key"].strip("'\" ")
        if found["item"] and (self._indent is None or indent <= self._indent):
            done, self._indent = self.end(), indent
        elif not found["item"] and indent == 0 and (self._key or self._indent is None):
            done, self._indent, self._key = self.end(), None, key
        else:
            done = {}
        if self._indent is not None:
            self.keep(found)
        return done

    def end(self) -> dict[str, object]:
        """Return the record that is open; empty for an item of a list under a key that counts nothing."""
        done, self._record, self._above = self._record, {}, []
        counts = any(canonical(name) in COUNTERS and isinstance(value, float) for name, value in done.items())
        if not self._key or counts:
            return done
        return {}

    def lists(self, line: str) -> bool:
        """Take a number of a list under the last key of the open record; return whether it is one."""
        item = _NUMBER_ITEM.fullmatch(line.rstrip())
        if item is None or not self._above or len(item["indent"]) < self._above[-1][0]:
            return False
        values = self._record.setdefault("/".join(name for _, name in self._above), [])
        if isinstance(values, list) and len(values) <= MOST_LISTED_NUMBERS:
            values.append(_value(item["value"]))
        return True

    def keep(self, found: re.Match[str]) -> None:
        """Take a line with a key for one of the open record."""
        key = found["key"].strip("'\" ")
        depth = len(found["indent"]) + len(found["item"] or "")
        self._above = [parent for parent in self._above if parent[0] < depth][:MOST_DEEP]
        value = (found["value"] or "").strip()
        if value:
            self._record["/".join([*(name for _, name in self._above), key])] = _value(value)
        else:
            self._above.append((depth, key))


def _value(text: str) -> object:
    """Return a plain number as one, anything else as text."""
    bare = _COMMENT.sub("", text).strip("'\"")
    number = parse_number(bare.lstrip("+").lower())
    return bare if number is None else number
