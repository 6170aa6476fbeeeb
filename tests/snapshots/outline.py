"""A page as text and structure: what a reader sees, indented under what it stands in; pictures are named, not drawn."""

from __future__ import annotations

from html.parser import HTMLParser

_UNSEEN = ("style", "script", "head")
_PICTURES = ("svg",)
_BLOCKS = frozenset({
    "h1", "h2", "p", "li", "ol", "ul", "tr", "table", "figure", "figcaption", "details", "summary", "blockquote", "div",
    "section",
})  # fmt: skip
_VOID = frozenset({"br", "input", "meta", "link", "hr", "img"})


def outline(page: str) -> str:
    """Return the outline of an HTML page."""
    parser = _Outline()
    parser.feed(page)
    parser.close()
    return "\n".join(parser.lines) + "\n"


class _Outline(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._open: list[str] = []
        self._words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _VOID:
            return
        if not self._hidden and tag in (*_BLOCKS, *_PICTURES):
            self._end_line()
            named = dict(attrs)
            kind = "".join(f".{one}" for one in (named.get("class") or "").split())
            label = f" [{told}]" if (told := named.get("aria-label")) else ""
            self.lines.append(f"{self._indent}<{tag}{kind}>{label}")
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in _BLOCKS and not self._hidden:
            self._end_line()
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self._words += data.split()

    def close(self) -> None:
        super().close()
        self._end_line()

    @property
    def _hidden(self) -> bool:
        return any(tag in (*_UNSEEN, *_PICTURES) for tag in self._open)

    @property
    def _indent(self) -> str:
        return "  " * sum(tag in _BLOCKS for tag in self._open)

    def _end_line(self) -> None:
        if self._words:
            self.lines.append(f"{self._indent}{' '.join(self._words)}")
            self._words = []
