"""A notebook that a real kernel of Jupyter runs shows a diagnosis; skipped without `nbclient` and `ipykernel`."""

from __future__ import annotations

from pathlib import Path

import pytest

from mldebug_mcp import diagnose_run
from tests.conftest import PATIENCE

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")


def test_a_cell_that_ends_in_a_diagnosis_shows_what_the_library_gives(examples: Path, tmp_path: Path) -> None:
    run = str(examples / "overfit")
    cells = [f"import mldebug_mcp\nmldebug_mcp.diagnose_run({run!r})", "print(_)\n_.to_frame()"]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])

    nbclient.NotebookClient(book, timeout=int(PATIENCE), resources={"metadata": {"path": str(tmp_path)}}).execute()

    (shown,), (printed, frame) = (cell["outputs"] for cell in book.cells)
    assert shown["data"]["text/html"] == diagnose_run(run)._repr_html_()
    assert printed["text"].startswith("<Diagnosis of ")
    assert "<th>cause</th>" in frame["data"]["text/html"]
