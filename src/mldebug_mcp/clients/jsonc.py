"""JSON, with the comments and trailing commas that VS Code and Zed allow: read, and edited where one value changes.

No library of Python edits such a file and keeps its comments and layout: so this parses it with the place of each
value, and changes the text only there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mldebug_mcp.core.errors import InputError

TOKEN = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<scalar>"(?:[^"\\\x00-\x1f]|\\.)*"|-?\d[\d.eE+-]*|true|false|null)
    |(?P<mark>[{}\[\]:,])""",
    re.VERBOSE | re.DOTALL,
)
MAX_JSON_LEVELS = 200
"""Levels; configurations have a dozen, and deeper ones would exhaust Python's stack."""


@dataclass
class Node:
    """A value and where it stands in the text."""

    start: int
    end: int
    data: Any
    members: dict[str, Node] = field(default_factory=dict)
    trailing_comma: bool = False


def read(text: str, where: str) -> dict[str, Any]:
    """Return the settings; none if there is nothing but blanks and comments.

    Raises:
        InputError: with the line, if the text is not JSON or holds no object.
    """
    root = _Parser(text, where).document()
    if root is None:
        return {}
    if not isinstance(root.data, dict):
        raise InputError(f"{where} holds {json.dumps(root.data)[:40]} where an object {{...}} is expected")
    return root.data


def put(text: str, path: Sequence[str], value: object, where: str) -> str:
    """Return the text with the value at a path of keys; objects that lack are made."""
    root = node = _Parser(text, where).document()
    style = _Style.of(text)
    for number, key in enumerate(path):
        if node is None or key not in node.members:
            for outer in reversed(path[number + 1 :]):
                value = {outer: value}
            return _add(text, node, key, value, style) if root else _begin(text, {key: value}, style)
        node = node.members[key]
    assert node is not None  # noqa: S101 - the path is not empty
    return text[: node.start] + style.render(value, _indent(text, node.start)) + text[node.end :]


@dataclass(frozen=True)
class _Style:
    """How a file is laid out: what one level is indented by, and its line ends."""

    unit: str
    line_end: str

    @classmethod
    def of(cls, text: str) -> _Style:
        indented = re.search(r'\n([ \t]+)"', text)
        return cls(indented[1] if indented else "  ", "\r\n" if "\r\n" in text else "\n")

    def render(self, value: object, indent: str) -> str:
        return json.dumps(value, indent=self.unit, ensure_ascii=False).replace("\n", self.line_end + indent)


def _begin(text: str, value: object, style: _Style) -> str:
    """Return a file that held nothing, or only comments, with its first object."""
    head = text.rstrip()
    return head + (style.line_end if head else "") + style.render(value, "") + style.line_end


def _add(text: str, node: Node | None, key: str, value: object, style: _Style) -> str:
    """Return the text with a new last member in an object, on lines of its own unless the object has only one."""
    assert node is not None  # noqa: S101 - only a root can be missing
    closing = node.end - 1
    last = max((member.end for member in node.members.values()), default=None)
    head = text[:closing].rstrip()
    if last is not None and not node.trailing_comma:
        head = text[:last] + "," + head[last:]
    if last is not None and "\n" not in text[node.start : closing]:
        blank = text[len(text[:closing].rstrip()) : closing]
        return f"{head} {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}{blank}{text[closing:]}"
    outer = _indent(text, node.start)
    indent = outer + style.unit
    member = f"{indent}{json.dumps(key)}: {style.render(value, indent)}{',' if node.trailing_comma else ''}"
    return style.line_end.join([head, member, outer + text[closing:]])


def _indent(text: str, position: int) -> str:
    """Return the blanks that the line of a position begins with."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip())]


class _Parser:
    def __init__(self, text: str, where: str) -> None:
        self.text = text
        self.where = where
        self.position = 0
        self.depth = 0

    def document(self) -> Node | None:
        """Return the root; None if there is none."""
        if self.peek() == "":
            return None
        root = self.value()
        if self.peek():
            raise self.wrong("more text after the end")
        return root

    def peek(self) -> str:
        """Return the token after blanks and comments; an empty string at the end."""
        while self.position < len(self.text):
            token = TOKEN.match(self.text, self.position)
            if token is None:
                raise self.wrong("this is not JSON")
            if token.lastgroup != "blank":
                return token[0]
            self.position = token.end()
        return ""

    def take(self, expected: str) -> None:
        if self.peek() != expected:
            raise self.wrong(f"{expected} is missing")
        self.position += len(expected)

    def value(self) -> Node:
        self.depth += 1
        if self.depth > MAX_JSON_LEVELS:
            raise self.wrong(f"more than {MAX_JSON_LEVELS} levels")
        opening = self.peek()
        start = self.position
        if opening == "{":
            node = self.object()
        elif opening == "[":
            node = Node(start, start, self.array())
        else:
            node = Node(start, start, self.scalar())
        node.start, node.end = start, self.position
        self.depth -= 1
        return node

    def object(self) -> Node:
        self.take("{")
        node = Node(0, 0, {})
        comma = True
        while self.peek() != "}":
            if not comma:
                raise self.wrong("a comma or } is missing")
            key = self.scalar()
            if not isinstance(key, str):
                raise self.wrong("a key in quotes is missing")
            if key in node.members:
                raise self.wrong(f"the key {key[:40]!r} stands here a second time")
            self.take(":")
            node.members[key] = self.value()
            node.data[key] = node.members[key].data
            comma = self.peek() == ","
            if comma:
                self.take(",")
        self.take("}")
        node.trailing_comma = comma and bool(node.members)
        return node

    def array(self) -> list[Any]:
        self.take("[")
        items: list[Any] = []
        comma = True
        while self.peek() != "]":
            if not comma:
                raise self.wrong("a comma or ] is missing")
            items.append(self.value().data)
            comma = self.peek() == ","
            if comma:
                self.take(",")
        self.take("]")
        return items

    def scalar(self) -> str | float | bool | None:
        written = self.peek()
        try:
            found: str | float | bool | None = json.loads(written)
        except ValueError:
            raise self.wrong("a value is missing") from None
        self.position += len(written)
        return found

    def wrong(self, problem: str) -> InputError:
        line = self.text.count("\n", 0, self.position) + 1
        return InputError(f"{self.where}:{line}: {problem}; the file was left alone: fix it there first")
