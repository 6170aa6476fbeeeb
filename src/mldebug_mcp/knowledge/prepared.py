"""The prepared catalogue: all that the knowledge files hold, as one file of JSON lines that loads fast.

The wheel carries it, made when the package was built. An editable install makes it when the sources changed since it
was made, and keeps it next to the compiled modules; where nothing can be written there, it is made at each start.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

from mldebug_mcp.core.paths import knowledge_folder
from mldebug_mcp.knowledge.catalogue import (
    Catalogue,
    Cause,
    Effect,
    Entry,
    Frequency,
    Link,
    Menu,
    MenuItem,
    Quote,
    Source,
)
from mldebug_mcp.models import NextStep

EntryT = TypeVar("EntryT", bound=Entry)

SHIPPED = "catalogue.jsonl"
"""Its name in the wheel, next to the knowledge files."""
_HERE = Path(__file__).parent
KEPT = _HERE / "__pycache__" / "catalogue.prepared"
"""Where an editable install keeps it: made from sources, as compiled modules are."""


@lru_cache(maxsize=1)
def catalogue() -> Catalogue:
    """Return the catalogue that ships with the package, read once."""
    return load()


def load() -> Catalogue:
    """Return the catalogue: the one that the wheel carries, or one that the sources have made.

    Raises:
        CatalogueError: a source breaks its grammar.
    """
    folder = knowledge_folder()
    with contextlib.suppress(OSError):
        return from_lines((folder / SHIPPED).read_bytes())
    return load_kept(folder, KEPT)


def load_kept(folder: Path, kept: Path) -> Catalogue:
    """Return the catalogue of the sources in a folder; it is made anew where they are not those it was made of."""
    digest = digest_of_sources(folder)
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        first, _, rest = kept.read_bytes().partition(b"\n")
        if first.decode() == digest:
            return from_lines(rest)
    from mldebug_mcp.knowledge.playbook import read_catalogue  # and with it the parser of Markdown

    made = read_catalogue(folder)
    with contextlib.suppress(OSError):
        _write(kept, f"{digest}\n{to_lines(made)}".encode())
    return made


def digest_of_sources(folder: Path) -> str:
    """Return what tells the sources in a folder, and the code that reads them, from others: by name, size and times.

    A change that sets the time of modification back still moves the other one. Reading them all takes a fiftieth of a
    small diagnosis.
    """
    kinds = (
        (folder, "PLAYBOOK.md"),
        (folder / "references", "causes.md"),
        (folder / "evidence", ".md"),
        (_HERE, ".csv"),
        (_HERE, ".py"),
    )
    stamps = [
        (entry.name, (status := entry.stat()).st_size, status.st_mtime_ns, status.st_ctime_ns)
        for place, ending in kinds
        for entry in os.scandir(place)
        if entry.name.endswith(ending)
    ]
    return hashlib.sha256(repr(sorted(stamps)).encode()).hexdigest()


def to_lines(made: Catalogue) -> str:
    """Return a catalogue as lines: its tables with the ids of the entries of each kind, then a line for each entry.

    That line has its fields as JSON, so that an answer parses those that it needs.
    """
    kinds = (
        [source.model_dump(mode="json", exclude_unset=True) for source in made.sources.values()],
        [
            quote.model_dump(mode="json", exclude={"source"}, exclude_unset=True) | {"source": quote.source.id}
            for quote in made.quotes.values()
        ],
        [cause.model_dump(mode="json", exclude_unset=True) for cause in made.causes.values()],
        [menu.model_dump(mode="json", exclude_unset=True) for menu in made.menus.values()],
    )
    links = [[link.cause, link.outcome, link.word, link.quotes, link.counted] for link in made.links]
    ids = [[entry["id"] for entry in entries] for entries in kinds]
    lines = [_dumps([links, made.names, made.priors, made.relations, ids])]
    lines += [_dumps(entry) for entries in kinds for entry in entries]
    return "".join(f"{line}\n" for line in lines)


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def from_lines(text: bytes) -> Catalogue:
    """Return the catalogue that was written by `to_lines`; its entries were checked when they were made.

    Raises:
        ValueError: it is not such text.
    """
    first, *lines = text.split(b"\n")
    links, names, priors, relations, ids = json.loads(first)
    if lines.pop() or len(lines) != sum(map(len, ids)):
        raise ValueError("the catalogue is cut")
    rows = iter(lines)
    of_sources, of_quotes, of_causes, of_menus = (dict(zip(named, rows, strict=False)) for named in ids)
    sources = _Entries(of_sources, partial(_entry, Source))
    quotes = _Entries(of_quotes, lambda row: _entry(Quote, row, source=sources[row["source"]]))
    causes, menus = _Entries(of_causes, _cause), _Entries(of_menus, _menu)
    made = [
        Link(cause, outcome, word, tuple(cited), tuple(counts) if counts else None)
        for cause, outcome, word, cited, counts in links
    ]
    return Catalogue(causes, quotes, sources, menus, made, names, priors, relations)


class _Entries(Mapping[str, EntryT]):
    """Entries by id, each made when it is asked for: an answer cites a few of many hundred quotes."""

    def __init__(self, rows: Mapping[str, bytes], make: Callable[[Mapping[str, Any]], EntryT]) -> None:
        self._rows = rows
        self._entries: dict[str, EntryT] = {}
        self._make = make

    def __getitem__(self, name: str) -> EntryT:
        found = self._entries.get(name)
        if found is None:
            found = self._entries.setdefault(name, self._make(json.loads(self._rows[name])))
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def _entry(kind: type[EntryT], row: Mapping[str, Any], **parts: object) -> EntryT:
    """Return an entry as it was checked before, without the schema that checks it; JSON's lists are its tuples."""
    fields = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
    construct: Any = kind.model_construct
    entry: EntryT = construct(**fields | parts)
    return entry


def _cause(row: Mapping[str, Any]) -> Cause:
    effects = tuple(Effect(symptom, Frequency(word), tuple(cited)) for symptom, word, cited in row["effects"])
    steps = tuple(NextStep.model_construct(**step) for step in row["next_steps"])
    return _entry(Cause, row, effects=effects, next_steps=steps)


def _menu(row: Mapping[str, Any]) -> Menu:
    return _entry(Menu, row, items=tuple(_entry(MenuItem, item) for item in row["items"]))


def _write(path: Path, content: bytes) -> None:
    """Write a file at once, so that a process that reads it meanwhile finds the old one or the new one."""
    path.parent.mkdir(exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
