"""How people ask for an entry, or tell of what it is about, in words that the entry itself does not use.

`asked.jsonl` holds a line for each thing asked about: `about`, tags that entries are filed under or their own ids, and
`asked`, phrases. They are searched beside the words of the entry and never shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

FILE = "asked.jsonl"


@lru_cache(maxsize=1)
def asked() -> Mapping[str, tuple[str, ...]]:
    """Return the phrases for each tag or id."""
    phrases: dict[str, list[str]] = {}
    for line in (Path(__file__).parent / FILE).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        for tag in row["about"]:
            phrases.setdefault(tag, []).extend(row["asked"])
    return {tag: tuple(said) for tag, said in phrases.items()}


def asked_for(tags: Iterable[str]) -> tuple[str, ...]:
    """Return the phrases for any of some tags and ids, each once."""
    return tuple(dict.fromkeys(phrase for tag in tags for phrase in asked().get(tag, ())))
