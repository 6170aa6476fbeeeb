"""The prepared catalogue holds what its sources hold, whenever and wherever it was made."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from mldebug_mcp.core.errors import CatalogueError
from mldebug_mcp.core.paths import knowledge_folder
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.knowledge.playbook import read_catalogue
from mldebug_mcp.knowledge.prepared import from_lines, load_kept, to_lines

ROOT = knowledge_folder()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the sources that a test may change."""
    folder = tmp_path / "sources"
    folder.mkdir()
    shutil.copy2(ROOT / "PLAYBOOK.md", folder)
    for name in ("references", "evidence"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


def change(path: Path, old: str, new: str) -> None:
    """Change a file but neither its size nor its times."""
    times = path.stat()
    text = path.read_text(encoding="utf-8")
    assert text.count(old) >= 1
    assert len(old) == len(new)
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_the_catalogue_is_that_of_its_sources() -> None:
    assert catalogue() == read_catalogue(ROOT)


def test_nothing_is_lost_in_the_file() -> None:
    known = read_catalogue(ROOT)
    assert from_lines(to_lines(known).encode()) == known


def test_an_answer_has_the_same_fields_from_the_sources_and_from_the_file() -> None:
    known = read_catalogue(ROOT)
    prepared = from_lines(to_lines(known).encode())
    for kind in ("causes", "quotes", "sources", "menus"):
        for id_, entry in getattr(known, kind).items():
            same = getattr(prepared, kind)[id_]
            assert same.model_dump_json(exclude_unset=True) == entry.model_dump_json(exclude_unset=True), id_


def test_a_source_that_changed_in_a_character_makes_the_catalogue_anew(copy: Path) -> None:
    kept = copy.parent / "kept"
    load_kept(copy, kept)
    before = kept.read_bytes()
    assert load_kept(copy, kept) == catalogue()
    assert kept.read_bytes() == before
    change(copy / "PLAYBOOK.md", "Drop or repair the rows", "Find and drop the rows.")
    assert load_kept(copy, kept).causes["bad_batch"].fix.startswith("Find and drop")
    assert kept.read_bytes() != before


def test_a_source_that_breaks_its_grammar_is_named_although_a_catalogue_was_kept(copy: Path) -> None:
    kept = copy.parent / "kept"
    load_kept(copy, kept)
    change(copy / "PLAYBOOK.md", "**Fix:** Drop", "**Fox:** Drop")
    with pytest.raises(CatalogueError, match=r"PLAYBOOK\.md:\d+: .*Fox"):
        load_kept(copy, kept)


@pytest.mark.parametrize("content", [b"", b"nothing", b"cut", b"other"])
def test_a_kept_file_that_is_damaged_is_made_anew(copy: Path, content: bytes) -> None:
    kept = copy.parent / "kept"
    load_kept(copy, kept)
    whole = kept.read_bytes()
    damaged = {b"cut": whole[: len(whole) // 2], b"other": whole.partition(b"\n")[0] + b"\n[1]"}
    kept.write_bytes(damaged.get(content, content))
    assert load_kept(copy, kept) == catalogue()
    assert kept.read_bytes() == whole


def test_where_nothing_can_be_written_the_catalogue_is_made_in_memory(copy: Path) -> None:
    (copy.parent / "a file").write_text("")
    kept = copy.parent / "a file" / "kept"
    assert load_kept(copy, kept) == catalogue()
    assert sorted(path.name for path in copy.parent.iterdir()) == ["a file", "sources"]
