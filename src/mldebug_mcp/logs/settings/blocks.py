"""Blocks of lines with a key and its value each: `key: value`, `key = value`, Megatron's dots, tables, YAML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from mldebug_mcp.logs.settings.reprs import value_in

_DOTTED = re.compile(r"(?P<indent>\s*+)(?P<key>[A-Za-z_][\w-]{0,80}) ?\.{3,} ?(?P<value>\S.{0,300})?")
_TABLE = re.compile(
    r"(?P<indent>)\s*+[|│┃]\s*+(?P<key>[A-Za-z_][\w ./-]{0,80}?)\s*+[|│┃]\s*+(?P<value>[^|│┃]{0,300}?)\s*+[|│┃]?"
)
_PAIR = re.compile(
    r"(?P<indent>[ \t]*+)(?:[*•]\s++|-\s++(?=[\w ]{1,60}[:=]\s))?"
    r"['\"]?(?P<key>[A-Za-z_][\w ./-]{0,80}?(?:\([^()\n]{0,80}\))?)['\"]?"
    r"\s*+(?::(?=\s|$)|=(?!=))\s*+(?P<value>.{0,1000}?),?"
)
_ALIGNED = re.compile(
    r"(?P<indent>[ \t]*+)(?P<key>[A-Za-z_][\w./-]{0,80}(?: [\w./-]{1,40}){0,3}+)(?: ?\t ?| {2,200})"
    r"(?P<value>[^\s({](?:[^ \t({]| (?! )){0,80})"
)
"""A column of keys and one of values, with nothing but blanks between them."""
_ITEM = re.compile(r"(?P<indent>[ \t]*+)-\s++(?P<value>[^:=\n]{1,200}|['\"].{0,200}['\"])")
_OTHER_PAIR = re.compile(r"[\s,|;][A-Za-z_][\w./-]{0,40}\s?[:=]\s?[-+\d.]")
_REMARK = re.compile(r"\s+(?:#.*|\[default:.*\]\s*)$")
MAX_LINE = 2000
"""Characters of a line that may be a setting: a key, a value of at most a thousand, a remark."""


class Pair(NamedTuple):
    """A line with a key and its value; a value of None opens a block of its own, a key of "" is an item of a list."""

    indent: int
    key: str
    value: str | None
    dotted: bool = False


def pair_in(line: str) -> Pair | None:
    """Return the only key of a line and its value, None if there is none or more than one."""
    line = line.rstrip()
    if len(line) > MAX_LINE:
        return None
    if "**" in line:
        line = line.replace("**", "")  # Markdown: "- **batch size**: 64"
    dotted = _DOTTED.fullmatch(line)
    if dotted:
        return Pair(len(dotted["indent"]), dotted["key"], dotted["value"] or "", dotted=True)
    table = _TABLE.fullmatch(line)
    if table:
        return Pair(0, table["key"], table["value"])
    pair = _PAIR.fullmatch(line)
    if pair:
        value = _REMARK.sub("", pair["value"]).rstrip(",")
        if _OTHER_PAIR.search(f" {value}") and value[:1] not in "{[(":
            return None
        return Pair(_width(pair["indent"]), pair["key"].strip(), value if value else None)
    other = _ALIGNED.fullmatch(line) or _ITEM.fullmatch(line)
    return Pair(_width(other["indent"]), other.groupdict().get("key", ""), other["value"]) if other else None


def settings_in_block(lines: Sequence[str]) -> tuple[dict[str, object], bool]:
    """Return the settings in a block of lines, indented ones below the key before them, and whether they are dotted."""
    found: dict[str, object] = {}
    above: list[tuple[int, str]] = []
    pairs = [pair for line in lines if (pair := pair_in(line)) is not None]
    for pair in pairs:
        if not pair.key:
            _add_item(found, above, pair)
            continue
        while above and above[-1][0] >= pair.indent:
            above.pop()
        name = "/".join([*(key for _, key in above), pair.key])
        if pair.value is None:
            above.append((pair.indent, pair.key))
        else:
            found.setdefault(name, value_in(pair.value))
    return found, bool(pairs) and sum(pair.dotted for pair in pairs) * 2 > len(pairs)


def _add_item(found: dict[str, object], above: list[tuple[int, str]], item: Pair) -> None:
    """Add an item to the list that the key before it opened."""
    name = "/".join(key for _, key in above)
    if name and item.value is not None:
        items = found.setdefault(name, [])
        if isinstance(items, list):
            items.append(value_in(item.value))


def _width(indent: str) -> int:
    return len(indent.expandtabs(4))
