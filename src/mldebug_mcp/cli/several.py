"""Several runs named at once: paths, and patterns that a shell was told to leave alone."""

from __future__ import annotations

import glob
from collections.abc import Sequence

from mldebug_mcp.errors import InputError
from mldebug_mcp.logs.elsewhere import is_elsewhere
from mldebug_mcp.paths import expanded
from mldebug_mcp.text import shorten


def matching(patterns: Sequence[str]) -> list[str]:
    """Return the paths that are meant, each once: a pattern such as `runs/*/log.jsonl` stands for all that match it.

    Raises:
        InputError: nothing matches a pattern.
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        if is_elsewhere(pattern):
            found[pattern] = None
            continue
        place = expanded(pattern)
        if not glob.has_magic(pattern) or place.exists():  # a folder may be called run[1]
            found[pattern] = None
            continue
        matches = sorted(glob.glob(str(place), recursive=True))  # noqa: PTH207 - Path.glob takes no absolute pattern
        if not matches:
            raise InputError(f"{shorten(pattern, 200)}: no file or folder matches this pattern; check it with ls")
        found |= dict.fromkeys(matches)
    return list(found)
