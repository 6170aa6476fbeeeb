"""The list of readers and the folder of formats say the same."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from mldebug_mcp.logs import formats
from mldebug_mcp.logs.format_list import BINARY_READERS, TEXT_READERS

LISTED = {*BINARY_READERS.values(), *TEXT_READERS}


def test_every_format_is_listed_but_the_one_of_folders() -> None:
    files = Path(formats.__path__[0]).glob("[a-z]*.py")
    there = {path.stem for path in files if "\nNAME = " in path.read_text(encoding="utf-8")}
    assert there == LISTED | {"mlflow_folder"}


@pytest.mark.parametrize("name", sorted(LISTED))
def test_a_format_says_what_it_is_called_how_it_is_known_and_how_it_is_read(name: str) -> None:
    module = import_module(f"{formats.__name__}.{name}")
    assert all(getattr(module, offered, None) for offered in ("__doc__", "NAME", "read"))
    assert name in BINARY_READERS.values() or module.matches.__doc__
