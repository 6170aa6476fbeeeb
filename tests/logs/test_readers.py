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
    assert not there - LISTED, f"list {there - LISTED} in TEXT_READERS or BINARY_READERS of formats/__init__.py"
    assert not LISTED - there, f"no class of formats with a NAME is called {LISTED - there}"


@pytest.mark.parametrize("name", sorted(LISTED))
def test_a_format_says_what_it_is_called_how_it_is_known_and_how_it_is_read(name: str) -> None:
    reader = reader_named(name)
    lacks = [offered for offered in ("__doc__", "NAME", "read") if not getattr(reader, offered, None)]
    assert not lacks, f"give {name} {', '.join(lacks)}"
    assert name in BINARY_READERS.values() or reader.matches.__doc__, f"say in a docstring what {name} matches"
