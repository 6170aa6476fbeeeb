"""The list of readers and the folder of formats say the same."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from mldebug_mcp.logs import formats
from mldebug_mcp.logs.formats import BINARY_READERS, TEXT_READERS, reader_named

LISTED = {*BINARY_READERS.values(), *TEXT_READERS}


def _has_name(node: ast.Module | ast.ClassDef) -> bool:
    return any(isinstance(part, ast.Assign) and ast.unparse(part.targets[0]) == "NAME" for part in node.body)


def test_every_format_is_listed() -> None:
    there: set[str] = set()
    for path in Path(formats.__path__[0]).glob("[a-z]*.py"):
        module = ast.parse(path.read_text(encoding="utf-8"))
        classes = [node.name for node in module.body if isinstance(node, ast.ClassDef) and _has_name(node)]
        there |= {f"{path.stem}.{name}" for name in classes} | ({path.stem} if _has_name(module) else set())
    assert there == LISTED


@pytest.mark.parametrize("name", sorted(LISTED))
def test_a_format_says_what_it_is_called_how_it_is_known_and_how_it_is_read(name: str) -> None:
    reader = reader_named(name)
    assert all(getattr(reader, offered, None) for offered in ("__doc__", "NAME", "read"))
    assert name in BINARY_READERS.values() or reader.matches.__doc__
