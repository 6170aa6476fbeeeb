"""Which files of a folder are a training corpus, and which are its validation or test split, by their names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from mldebug_mcp.core.text import counted, some_of

HELD_OUT = re.compile(r"(?<![a-z])(?:val|valid|validation|dev|eval|evaluation|test)(?![a-z])", re.IGNORECASE)
"""Words by which the scripts of nanoGPT, llm.c, modded-nanogpt and the Hub's data sets name what is held out."""


def without_held_out(files: Sequence[Path]) -> list[Path]:
    """Return the files whose names do not say that they are held out, or all of them if all do."""
    return [file for file in files if not HELD_OUT.search(file.name)] or list(files)


def held_out_note(files: Sequence[Path]) -> list[str]:
    """Return the note that some files of a folder are left out, as their names say that they are held out."""
    left = sorted({file.name for file in files} - {file.name for file in without_held_out(files)})
    if not left:
        return []
    return [
        f"left out {counted(len(left), 'file')} that the name says to be held out ({some_of(left)}); give one as "
        "against to look for its documents in the training corpus"
    ]
