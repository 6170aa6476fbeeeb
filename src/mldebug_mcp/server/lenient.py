"""Arguments in a form that is not the schema's and has one meaning only: taken as what is meant."""

from __future__ import annotations

from pydantic import BeforeValidator

SEPARATOR = "="


def _listed(value: object) -> object:
    """Return a single item as a list of it."""
    return [value] if isinstance(value, str | int) and not isinstance(value, bool) else value


def _by_id(value: object) -> object:
    """Return `id=word` or a list of such as a mapping; ids hold no equals sign, and one given twice is refused."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) and item.count(SEPARATOR) == 1 for item in items):
        return value
    pairs = [(before.strip(), after.strip()) for before, _, after in (item.partition(SEPARATOR) for item in items)]
    return dict(pairs) if len(dict(pairs)) == len(pairs) else value


ONE_OR_MORE = BeforeValidator(_listed)
BY_ID = BeforeValidator(_by_id)
