"""Whether the knowledge files agree with each other: digests, quotes elsewhere, ids and citations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from mldebug_mcp.errors import CatalogueError
from mldebug_mcp.knowledge.catalogue import Catalogue
from mldebug_mcp.knowledge.errors import known_errors
from mldebug_mcp.knowledge.evidence import digest
from mldebug_mcp.knowledge.markdown import parse_blocks

_CREDIT = re.compile(r"\n— \[(?P<label>[^\]]+)\]\((?:\.\./)?evidence/(?P<source>\w+)\.md#(?P<quote>\w+)\)$")
_CITATION = re.compile(r"\]\((?:\.\./)?evidence/(?P<source>\w+)\.md#(?P<quote>\w+)\)")


def problems(folder: Path, known: Catalogue) -> Iterator[str]:
    """Yield what is wrong with the knowledge files in a folder, a line each."""
    for quote in known.quotes.values():
        if digest(quote.text) != quote.sha256:
            yield f"evidence/{quote.source.id}.md: {quote.id}: the digest does not fit the text"
    for path in documents(folder):
        yield from _document_problems(path, path.relative_to(folder).as_posix(), known)
    for cause in known.causes.values():
        if not _CITATION.search(cause.summary):
            yield f"PLAYBOOK.md: {cause.id}: the main claim has no citation"
    yield from _error_problems(known)


def documents(folder: Path) -> list[Path]:
    """Return the files that quote from the records."""
    return [folder / "SKILL.md", folder / "PLAYBOOK.md", *sorted((folder / "references").glob("*.md"))]


def _document_problems(path: Path, name: str, known: Catalogue) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    for block in parse_blocks(text):
        if block.kind == "quote":
            yield from _quote_problems(block.text, f"{name}:{block.line}", known)
    for match in _CITATION.finditer(text):
        quote = known.quotes.get(match["quote"])
        if quote is None or quote.source.id != match["source"]:
            yield f"{name}: no record holds {match['source']}.md#{match['quote']}"


def _quote_problems(text: str, where: str, known: Catalogue) -> Iterator[str]:
    credit = _CREDIT.search(text)
    if credit is None:
        yield f"{where}: a quote ends in a line of its own with a dash and a link to its record"
        return
    quote = known.quotes.get(credit["quote"])
    if quote is not None and digest(text[: credit.start()]) != quote.sha256:
        yield f"{where}: not the words of {quote.id}"


def _error_problems(known: Catalogue) -> Iterator[str]:
    try:
        rows = known_errors()
    except CatalogueError as error:
        yield str(error)
        return
    for row in rows.values():
        if not row.source.startswith("https://") and row.source not in known.sources:
            yield f"errors.jsonl: {row.id}: {row.source} is neither a source nor a URL"
        for cause in set(row.causes) - known.causes.keys():
            yield f"errors.jsonl: {row.id}: {cause} has no section in PLAYBOOK.md"
