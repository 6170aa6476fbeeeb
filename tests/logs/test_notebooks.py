"""Notebooks: what their cells printed is read cell by cell; tables of data and broken documents are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.logs.reading import points

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.logs import Run, read_run

SAMPLES = Path(__file__).parent / "samples" / "notebook"


def notebook(folder: Path, *cells: list[object] | object) -> Run:
    path = folder / "train.ipynb"
    outputs = [{"cell_type": "code", "outputs": cell} for cell in cells]
    path.write_text(json.dumps({"cells": outputs, "nbformat": 4, "metadata": {}}))
    return read_run(path)


def stream(text: object) -> dict[str, object]:
    return {"output_type": "stream", "name": "stdout", "text": text}


def table(*rows: str) -> dict[str, object]:
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row.split())}</tr>" for row in rows[1:])
    head = "".join(f"<th>{name}</th>" for name in rows[0].split())
    return {"output_type": "display_data", "data": {"text/html": f"<table><tr>{head}</tr>{body}</table>"}}


def test_two_cells_that_train_are_two_attempts_and_the_error_is_of_the_first() -> None:
    run = read_run(SAMPLES / "loops.ipynb")
    assert run.formats == ("notebook",)
    first, last = run.attempts
    assert (first.records, first.ending.how, first.judged) == (5, "error", False)
    assert first.ending.text == "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"
    assert (last.records, last.judged) == (8, True)
    assert len(run["loss"]) == 8
    assert not run.messages


def test_the_table_of_the_trainer_is_read_and_a_table_of_data_is_not() -> None:
    run = read_run(SAMPLES / "trainer.ipynb")
    assert points(run, "loss") == {5: 2.277003, 10: 1.915386, 15: 1.678850, 20: 1.539274}
    assert points(run, "eval_loss") == {5: 2.032759, 10: 1.756630, 15: 1.565460, 20: 1.496985}


def test_the_table_of_fastai_is_read_with_marks_inside_its_cells(tmp_path: Path) -> None:
    run = notebook(tmp_path, [table("epoch train_loss valid_loss time", "0 <b>1.5</b> 1.4 00:10", "1 1.2 1.3 00:11")])
    assert points(run, "loss") == {0: 1.5, 1: 1.2}
    assert points(run, "eval_loss") == {0: 1.4, 1: 1.3}


def test_cells_that_go_on_are_one_run_and_bars_overwrite_themselves(tmp_path: Path) -> None:
    run = notebook(
        tmp_path,
        [stream(["epoch 1: loss 3.0\n", "epoch 2: loss 2.0\n"])],
        [stream("loading: 10%\rloading: 100%\nepoch 3: loss 1.5\n"), stream("epoch 4: loss 1.25\n")],
    )
    assert len(run.segments) == 1
    assert points(run, "loss") == {1: 3, 2: 2, 3: 1.5, 4: 1.25}


def test_a_compressed_notebook_in_a_run_folder_is_found(tmp_path: Path) -> None:
    import gzip

    (tmp_path / "loops.ipynb.gz").write_bytes(gzip.compress((SAMPLES / "loops.ipynb").read_bytes()))
    assert read_run(tmp_path).formats == ("notebook",)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"cells": [', "not valid JSON"),
        ('{"worksheets": []}', "no cells in it"),
        ('{"cells": []}', "no metrics found"),
    ],
)
def test_a_document_without_outputs_is_refused(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "a.ipynb").write_text(text)
    with pytest.raises(InputError, match=why):
        read_run(tmp_path / "a.ipynb")


def test_outputs_of_any_shape_are_passed_over(tmp_path: Path) -> None:
    odd: list[object] = [None, 3, {}, {"data": {"text/html": 5, "text/plain": [1, None]}}, {"text": {}}]
    errors: list[object] = [{"output_type": "error"}, {"output_type": "error", "traceback": [1], "ename": "E"}]
    run = notebook(tmp_path, "no list", odd, errors, [stream("epoch 1: loss 3.0\nepoch 2: loss 2.0\n")])
    assert run.records == 2


@pytest.mark.parametrize("piece", ["<td", "<td>", "<table", "<tr", "<table><tr><th>epoch<th>loss<tr>", "<!["])
def test_markup_that_never_ends_is_passed_over(tmp_path: Path, piece: str) -> None:
    markup = {"output_type": "display_data", "data": {"text/html": piece * (300_000 // len(piece))}}
    assert notebook(tmp_path, [markup], [stream("epoch 1: loss 3.0\nepoch 2: loss 2.0\n")]).records == 2


def test_what_cells_beyond_the_two_thousandth_printed_is_read_as_one_and_told(tmp_path: Path) -> None:
    run = notebook(tmp_path, *([stream(f"step {number} loss {4 - number / 1000}\n")] for number in range(1, 2101)))
    assert run.records == 2100
    assert points(run, "loss")[2100] == pytest.approx(1.9)
    assert any(note.startswith("more than 2,000 cells printed something") for note in run.notes)
