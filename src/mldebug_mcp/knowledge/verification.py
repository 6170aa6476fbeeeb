"""Compare quotes with their sources, and the knowledge files with each other. Nothing is ever changed."""

from __future__ import annotations

import html
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args
from urllib.parse import urlsplit

from mldebug_mcp.core.errors import CatalogueError, InputError
from mldebug_mcp.core.limits import checkpoint
from mldebug_mcp.core.paths import knowledge_folder
from mldebug_mcp.core.text import shorten
from mldebug_mcp.knowledge.catalogue import Catalogue, Grade, Quote
from mldebug_mcp.knowledge.errors import known_errors
from mldebug_mcp.knowledge.playbook import digest, normalised, parse_blocks
from mldebug_mcp.knowledge.prepared import catalogue
from mldebug_mcp.models import EvidenceReport, QuoteCheck

# Whether the knowledge files agree with each other: digests, quotes elsewhere, ids and citations.


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


# Compare each quote with a copy of its source: local files, or pages that are fetched. Nothing is ever changed.


MAX_BYTES = 20 * 1024 * 1024
MAX_COPIES = 2_000
REQUEST_TIMEOUT_SECONDS = 20.0
HOST_PAUSE_SECONDS = 1.0
"""Seconds between two requests to one host."""
AGENT = "mldebug-mcp evidence verify (+https://pypi.org/project/mldebug-mcp/)"

_ON_GITHUB = re.compile(r"github ([\w.-]+/[\w.-]+)@([0-9a-f]{7,40}):(\S+)")
_TAG = re.compile(r"<(?:script|style)\b.*?</(?:script|style)>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_LINK = re.compile(r"\[([^\]\[]*)\]\([^()\s]*\)")

Fetch = Callable[[str], str]
"""Return the text of a page; raises OSError if it cannot be had."""


def verify(copies: Path | None = None, *, offline: bool = False, fetch: Fetch | None = None) -> EvidenceReport:
    """Check the records against each other and, unless offline, each quote against its source.

    Args:
        copies: A folder with copies of the originals; without one the pages are fetched.
        offline: Only check the records against each other.
        fetch: How to fetch a page; urllib by default.

    Raises:
        InputError: `copies` is not a folder.
    """
    known = catalogue()
    wrong = [shorten(problem, 300) for problem in problems(knowledge_folder(), known)]
    if offline:
        return EvidenceReport(quotes=len(known.quotes), grades=_grades(known), problems=wrong)
    look = _Copies.read(copies).look if copies is not None else _Pages(fetch or _PoliteFetch().get).look
    checks: list[QuoteCheck] = []
    for quote in known.quotes.values():
        checkpoint(f"looking for the words of {quote.id}: quote {len(checks) + 1} of {len(known.quotes)}")
        checks.append(look(quote))
    return EvidenceReport(
        quotes=len(checks),
        grades=_grades(known),
        found=sum(check.state == "found" for check in checks),
        changed=[check for check in checks if check.state == "changed"],
        unreachable=[check for check in checks if check.state == "unreachable"],
        problems=wrong,
    )


def _grades(known: Catalogue) -> dict[str, int]:
    """Return how many quotes have each grade, surest first."""
    counts = Counter(quote.grade for quote in known.quotes.values())
    return {grade: counts[grade] for grade in get_args(Grade)}


def stands_in(quote: str, text: str) -> bool:
    """Return whether the fragments of a quote stand in a normalised text, in order."""
    position = 0
    for fragment in quote.split("[...]"):
        wanted = normalised(fragment)
        found = text.find(wanted, position)
        if found < 0:
            return False
        position = found + len(wanted)
    return True


def readable(text: str) -> str:
    """Return the text of a page or file as quotes are compared with it: no tags, no targets of links, normalised."""
    if "<html" in text[:2_000].lower() or "<!doctype html" in text[:200].lower():
        text = html.unescape(_TAG.sub(" ", text))
    return normalised(_LINK.sub(r"\1", text))


@dataclass(slots=True)
class _Copies:
    texts: dict[str, str]

    @classmethod
    def read(cls, folder: Path) -> _Copies:
        if not folder.is_dir():
            raise InputError(
                f"{shorten(str(folder), 200)}: no such folder; name one that holds copies of the originals"
            )
        files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_size <= MAX_BYTES]
        texts = {path.name: readable(path.read_text(encoding="utf-8", errors="replace")) for path in files[:MAX_COPIES]}
        return cls(texts)

    def look(self, quote: Quote) -> QuoteCheck:
        own = [name for name in self.texts if Path(name).stem == quote.source.id]
        for name in own or self.texts:
            if stands_in(quote.text, self.texts[name]):
                return QuoteCheck(id=quote.id, state="found", where=name)
        if own:
            return QuoteCheck(id=quote.id, state="changed", where=own[0])
        return QuoteCheck(id=quote.id, state="unreachable", where=f"no copy holds it; name one {quote.source.id}.md")


@dataclass(slots=True)
class _Pages:
    fetch: Fetch
    pages: dict[str, str | None] = field(default_factory=dict)

    def look(self, quote: Quote) -> QuoteCheck:
        read = ""
        for url in _urls(quote):
            text = self._page(url)
            if text is not None and stands_in(quote.text, text):
                return QuoteCheck(id=quote.id, state="found", where=url)
            read = read or (url if text is not None else "")
        if read:
            return QuoteCheck(id=quote.id, state="changed", where=read)
        return QuoteCheck(id=quote.id, state="unreachable", where=quote.source.url)

    def _page(self, url: str) -> str | None:
        if url not in self.pages:
            try:
                self.pages[url] = readable(self.fetch(url))
            except (OSError, ValueError):
                self.pages[url] = None
        return self.pages[url]


def _urls(quote: Quote) -> Iterator[str]:
    """Yield where a quote can be read: the very file it was verified against, then the source's page."""
    on_github = _ON_GITHUB.match(quote.verified_against)
    if on_github:
        repository, commit, path = on_github.groups()
        yield f"https://raw.githubusercontent.com/{repository}/{commit}/{path}"
    if urlsplit(quote.source.url).scheme in ("http", "https"):
        yield quote.source.url


class _PoliteFetch:
    """Fetches pages with a pause between two requests to one host, a time limit and a size limit."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def get(self, url: str) -> str:
        import urllib.request

        host = urlsplit(url).netloc
        time.sleep(max(0.0, self._last.get(host, 0.0) + HOST_PAUSE_SECONDS - time.monotonic()))
        request = urllib.request.Request(url, headers={"User-Agent": AGENT})  # noqa: S310 - http(s) only, see _urls
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_TIMEOUT_SECONDS) as response:  # noqa: S310
                if "pdf" in response.headers.get_content_type():
                    raise OSError("a PDF is not read; keep a text copy and use --copies")
                content: bytes = response.read(MAX_BYTES)
        finally:
            self._last[host] = time.monotonic()
        return content.decode("utf-8", errors="replace")
