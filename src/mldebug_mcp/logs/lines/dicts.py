"""Dicts that were printed: by the Trainer (Python's spelling) and by loggers that write JSON into a line of text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mldebug_mcp.logs.decoding.json_values import objects_in
from mldebug_mcp.logs.numbers import NUMBER, parse_number

MAX_LINES = 200
"""Lines over which one printed dict may be wrapped."""

_BRACES = re.compile(r"\{[^{}]*(?:\}|$)")
_NESTED = re.compile(r"\{[^{}]*\{")
_PAIR = re.compile(
    r"""['"]([^'"\n]{1,200})['"]\s*:\s*(?:(?:np\.|numpy\.)?(?:float\d+|array)\(|tensor\()?\[?['"]?"""
    rf"""({NUMBER})(?![\w.]|\s*,[^'"\[]*\])""",  # the only number of a list, not the first of several
    re.IGNORECASE,
)


def dict_in(line: str) -> dict[str, object]:
    """Return what the dicts of a line hold, empty if there are none. A dict cut off at the line's end counts."""
    start = line.find('{"')
    if start >= 0 and line.find("{", start + 1) > 0:  # nested: only a JSON parser sees what belongs where
        values: Mapping[str, object] = next(objects_in(line, start), {})
        if values:
            return dict(values)
    record: dict[str, object] = {}
    if _NESTED.search(line):
        for name, text in _PAIR.findall(line, line.find("{")):
            record.setdefault(name, parse_number(text))
        return record
    for braces in _BRACES.findall(line):
        for name, text in _PAIR.findall(braces):
            number = parse_number(text)
            if number is not None:
                record[name] = number
    return record


def opens_dict(line: str) -> bool:
    """Say whether a dict begins in this line and goes on in the next."""
    brace = line.rfind("{")
    return brace >= 0 and "}" not in line[brace:] and (line[brace + 1 :].strip()[:1] in ("'", '"', ""))
