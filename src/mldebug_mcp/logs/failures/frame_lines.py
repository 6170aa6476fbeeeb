"""A line of a traceback → the frame or the code that it names, as Python, notebooks (IPython) and Rich write them.

Python writes `File "x.py", line 3, in f` and the code below. IPython writes `File x.py:3, in f(a)`, `Cell In[7], line
3` or (before version 8) `x.py in f(a)`, and marks the line among its neighbours by an arrow. Rich draws a box with
`x.py:3 in f`, and marks the line by `❱`; a long path goes on in the next line of the box.
"""

from __future__ import annotations

import re
from dataclasses import replace

from mldebug_mcp.logs.failures.failure import Frame
from mldebug_mcp.logs.numbers import whole_number
from mldebug_mcp.text import clean

MAX_CODE = 160
BOX = ("│", "╭", "╰")
"""How a line of a box begins, in which Rich draws a traceback."""

_PYTHON = re.compile(r'\s*File "(?P<file>[^"]{1,400})", line (?P<line>\d+)(?:, in (?P<function>.{1,120}))?')
_IPYTHON = (
    re.compile(r'File (?P<file>[^\s"][^"]{0,400}?):(?P<line>\d+)(?:, in (?P<function>[^(]{1,120}))?'),
    re.compile(
        r"(?P<file>(?:Cell|Input) In ?\[\d+\])(?:, (?:in )?[\[<(]?(?:cell )?line:? (?P<line>\d+))?(?P<function>)"
    ),
    re.compile(
        r"(?P<file><ipython-input-[\w-]{1,80}>|[~./\\\w][^\s()]{0,300}) in "
        r"(?P<function><[^<>]{1,60}>|[\w.]{1,120})(?P<line>)"
    ),
)
_LINK = re.compile(r"\[([^\]\[]{1,300})\]\([^()\s]{1,400}\)")
"""What a page makes of a path or a line number that a notebook shows as a link."""
_ARROW = re.compile(r"-{1,6}> (?P<line>\d+)(?: (?P<code>.*))?$")
_NUMBERED = re.compile(r"\s*\d+(?:\s|$)")
_RICH = re.compile(r"(?P<file>\S.{0,400}):(?P<line>\d+)(?: in(?: (?P<function>\S{1,120}))?)?$")
_WHOLE_PATH = re.compile(r"[/~\\<]|[A-Za-z]:[/\\]")
"""How a path begins; a line of a box that begins otherwise may hold the end of one."""
_RICH_CELL = re.compile(r"in (?P<file><[^<>]{1,80}>):(?P<line>\d+)$")
_RICH_ARROW = re.compile(r"❱ +\d+ +(?:│ *)*(?P<code>.*)$")


def python_frame(line: str) -> Frame | None:
    """Return the frame that a line of Python's own traceback names."""
    return _frame(_PYTHON.match(line)) if 'File "' in line else None


def notebook_frame(line: str) -> Frame | None:
    """Return the frame that a line of a notebook's traceback names; its line number may stand at its code."""
    if line[:1].isspace():
        return None
    line = _LINK.sub(r"\1", line)
    return next((_frame(found) for pattern in _IPYTHON if (found := pattern.match(line))), None)


def box_frame(line: str, above: str) -> Frame | None:
    """Return the frame that a line of a box names.

    Args:
        line: The line, with its border.
        above: The content of the line above it in the box, which may hold the first half of a path.
    """
    inner = box_content(line)
    if not line.startswith("│") or not inner:
        return None
    found = _RICH_CELL.match(inner) or _RICH.match(inner if _WHOLE_PATH.match(inner) else above + inner)
    return _frame(found) if found and "❱" not in inner and not _NUMBERED.match(inner) else None


def box_content(line: str) -> str:
    """Return what a line of a box holds between its borders."""
    return line.strip("│ \t\r\n")


def with_code(frame: Frame, line: str) -> Frame:
    """Return a frame with the code that a line below it shows; the frame itself where the line shows none."""
    arrow = _ARROW.match(_LINK.sub(r"\1", line).strip())
    if arrow:
        number = whole_number(arrow["line"])
        return replace(frame, line=frame.line or number, code=clean((arrow["code"] or "").strip()[:MAX_CODE]))
    if line.startswith(BOX):
        marked = _RICH_ARROW.search(box_content(line))
        return replace(frame, code=clean(marked["code"].strip()[:MAX_CODE])) if marked else frame
    code = line.strip()
    if frame.code or not code.strip("^~ ") or not line[:1].isspace() or _NUMBERED.match(line):
        return frame
    return replace(frame, code=clean(code[:MAX_CODE]))


def is_arrow(line: str) -> bool:
    """Return whether a line is the one that a notebook's traceback marks."""
    return line.startswith("-") and _ARROW.match(_LINK.sub(r"\1", line)) is not None


def _frame(found: re.Match[str] | None) -> Frame | None:
    if found is None:
        return None
    function = clean(found.groupdict().get("function") or "").strip()
    return Frame(clean(found["file"]), whole_number(found["line"] or "0"), function)
