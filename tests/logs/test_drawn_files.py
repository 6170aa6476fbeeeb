"""Whole logs: phases in turn, counters of any sort, tables, blocks and JSON lines are read as they were written."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, nan
from pathlib import Path

import pytest
from tests.logs.drawn_logs import NOTED, drawn_log, misread
from tests.logs.reading import Points, assert_holds, read

DRAWN, SEED = 60, 100
FIVE = (41, 51, 61, 71, 81)

WRITTEN: dict[str, tuple[str, str, Mapping[str, Points]]] = {
    "a phase in round brackets is one": (
        "".join(f"step {at} loss: 2.5 | acc: 0.5\n(val) step {at} loss: 3.5 | acc: 0.25\n" for at in FIVE),
        "step",
        {"loss": dict.fromkeys(FIVE, 2.5), "eval_loss": dict.fromkeys(FIVE, 3.5)},
    ),
    "an evaluation that counts the steps of training stands there, also before the first of them": (
        ">>> eval it 0/9000 val_loss=4.5\n"
        + "".join(f"it {at}/9000 loss={at / 16}\n>>> eval it {at}/9000 val_loss={at / 8}\n" for at in FIVE),
        "step",
        {"loss": {at: at / 16 for at in FIVE}, "eval_loss": {0: 4.5, **{at: at / 8 for at in FIVE}}},
    ),
    "an evaluation that counts its own batches stands at the training above, by its last line": (
        "".join(
            f"step {at} loss: {at / 16}\ndev: [5/25] val_loss: 9.5\ndev: [25/25] val_loss: {at / 8}\n" for at in FIVE
        ),
        "step",
        {"loss": {at: at / 16 for at in FIVE}, "eval_loss": {at: at / 8 for at in FIVE}},
    ),
    "an evaluation below a heading behind the time of day is one": (
        "".join(
            f"[10:00:{at}] step {at} loss: {at / 16}\n[10:00:{at}] [dev]\n[10:00:{at}]   loss: {at / 8}\n"
            for at in (13, 29, 45)
        ),
        "step",
        {"loss": {at: at / 16 for at in (13, 29, 45)}, "eval_loss": {at: at / 8 for at in (13, 29, 45)}},
    ),
    "a number in brackets behind an epoch is the step": (
        "".join(f"epoch {at // 50} [{at}] loss: {at / 16}\n" for at in FIVE),
        "step",
        {"loss": {at: at / 16 for at in FIVE}},
    ),
    "batches under the heading of an epoch count on by how many it has": (
        "".join(f"Epoch {epoch}/9\n  batch 49/391 loss: 2.5\n  batch 299/391 loss: 2.25\n" for epoch in (1, 2, 3)),
        "step",
        {"loss": {49: 2.5, 299: 2.25, 440: 2.5, 690: 2.25, 831: 2.5, 1081: 2.25}},
    ),
    "steps that a line names with its epoch are not those of an epoch": (
        "".join(
            f"epoch {epoch} it {at}/9000 loss: 2.5\n" + (f"it {at}/9000 dev: val_loss: 3.5\n" if at % 20 == 1 else "")
            for at, epoch in ((41, 0), (51, 0), (61, 1), (71, 1), (81, 2))
        ),
        "step",
        {"loss": dict.fromkeys(FIVE, 2.5), "eval_loss": dict.fromkeys((41.0, 61.0, 81.0), 3.5)},
    ),
    "a letter that counts epochs stands before the batch": (
        "".join(f"E{epoch} |   20/100 | loss: 2.5\nE{epoch} |   80/100 | loss: 2.25\n" for epoch in (0, 1)),
        "step",
        {"loss": {20: 2.5, 80: 2.25, 120: 2.5, 180: 2.25}},
    ),
    "a loss that is NaN before its mean is NaN": (
        "step 41 loss 2.5 (2.5) lr 0.1\nstep 51 loss nan (2.5) lr 0.1\n",
        "step",
        {"loss": {41: 2.5, 51: nan}},
    ),
    "an evaluation under a label that is NaN is the same series": (
        "step 41 loss 2.5\n[dev] val_loss 3.5 val_acc 0.5\nstep 51 loss 2.5\n[dev] val_loss NaN val_acc 0.5\n",
        "step",
        {"eval_loss": {41: 3.5, 51: nan}},
    ),
    "dicts in text say by a field which phase they are of": (
        "".join(
            f'INFO metrics: {{"it": {at}, "split": "train", "loss": 2.5}}\n'
            f'INFO metrics: {{"it": {at}, "split": "val", "loss": 3.5}}\n'
            for at in FIVE
        ),
        "step",
        {"loss": dict.fromkeys(FIVE, 2.5), "eval_loss": dict.fromkeys(FIVE, 3.5)},
    ),
    "dicts in text may hold one metric each": (
        "".join(
            f'INFO {{"name": "train/loss", "value": 2.5, "step": {at}}}\n'
            f'INFO {{"name": "train/lr", "value": 0.125, "step": {at}}}\n'
            for at in FIVE
        ),
        "step",
        {"loss": dict.fromkeys(FIVE, 2.5), "learning_rate": dict.fromkeys(FIVE, 0.125)},
    ),
    "dots lead from names to numbers, and to none": (
        "".join(f"step ........ {at}\nloss ........ {'-inf' if at in (51, 61) else 2.5}\n\n" for at in FIVE),
        "step",
        {"loss": {at: -inf if at in (51, 61) else 2.5 for at in FIVE}},
    ),
    "names stand in two lines, and a power of ten among them": (
        "               train    valid         lr\n       iter     loss     loss     [1e-3]\n"
        + "".join(f"         {at}     2.50     3.50     0.5000\n" for at in FIVE),
        "step",
        {
            "loss": dict.fromkeys(FIVE, 2.5),
            "eval_loss": dict.fromkeys(FIVE, 3.5),
            "learning_rate": dict.fromkeys(FIVE, 5e-4),
        },
    ),
    "rows with their number go on below a warning, where numbers touch but for a blank": (
        "       step   loss    acc\n0      4100    244 0.2500\n1      4600    392 0.5000\n"
        "UserWarning: 3 images are missing\n2      5100    219 0.2500\n3      5600    307 0.5000\n",
        "step",
        {"loss": {4100: 244.0, 4600: 392.0, 5100: 219.0, 5600: 307.0}},
    ),
    "a cell at the end of a row may be empty": (
        "step | train loss | val loss\n" + "".join(f"{at} | 2.5 | {3.5 if at == 61 else ''}\n" for at in FIVE),
        "step",
        {"loss": dict.fromkeys(FIVE, 2.5), "eval_loss": {61.0: 3.5}},
    ),
    "an evaluation that is NaN but in each second record was not measured in the others": (
        "step | train loss | val loss\n" + "".join(f"{at} | 2.5 | {3.5 if at % 20 == 1 else 'nan'}\n" for at in FIVE),
        "step",
        {"loss": dict.fromkeys(FIVE, 2.5), "eval_loss": dict.fromkeys((41.0, 61.0, 81.0), 3.5)},
    ),
    "a learning rate next to both losses is not of evaluation": (
        "Step  Training Loss  Validation Loss  Learning Rate  Recall\n"
        + "".join(f"{at}    2.5            3.5              0.125          0.25\n" for at in FIVE),
        "step",
        {"learning_rate": dict.fromkeys(FIVE, 0.125), "eval_recall": dict.fromkeys(FIVE, 0.25)},
    ),
}

RECORDS: dict[str, tuple[str, Mapping[str, Points]]] = {
    "a column without a known name counts, if it alone rises": (
        "".join(f'{{"n": {at}, "loss": 2.5}}\n' for at in FIVE),
        {"loss": dict.fromkeys(FIVE, 2.5)},
    ),
    "records of one metric keep such a column": (
        "".join(f'{{"name": "loss", "value": 2.5, "n": {at}}}\n' for at in FIVE),
        {"loss": dict.fromkeys(FIVE, 2.5)},
    ),
    "a list may hold one metric in each item": (
        "".join(f'{{"step": {at}, "scalars": [{{"tag": "loss", "value": 2.5}}]}}\n' for at in FIVE),
        {"loss": dict.fromkeys(FIVE, 2.5)},
    ),
}


@pytest.mark.parametrize(("text", "step_name", "metrics"), WRITTEN.values(), ids=WRITTEN)
def test_a_log_is_read_as_written(text: str, step_name: str, metrics: Mapping[str, Points], tmp_path: Path) -> None:
    assert_holds(read(tmp_path, text), step_name, metrics)


@pytest.mark.parametrize(("text", "metrics"), RECORDS.values(), ids=RECORDS)
def test_json_lines_are_read_as_written(text: str, metrics: Mapping[str, Points], tmp_path: Path) -> None:
    assert_holds(read(tmp_path, text, "train.jsonl"), "step", metrics)


def test_nan_at_the_place_of_an_evaluation_stays_a_value(tmp_path: Path) -> None:
    values = {0.0: 2.0, 5.0: 2.0, 10.0: nan, 15.0: 2.0, 20.0: 2.0}
    rows = "".join(f"{at},1.5,{values.get(float(at), 'nan')}\n" for at in range(25))
    assert_holds(read(tmp_path, f"step,loss,val_loss\n{rows}", "log.csv"), "step", {"eval_loss": values})


@pytest.mark.parametrize("number", range(DRAWN))
def test_a_drawn_log_is_read_as_written_or_a_note_says_that_it_counts_no_steps(number: int, tmp_path: Path) -> None:
    log = drawn_log(number, SEED)
    wrong = misread(log, read(tmp_path, "\n".join([*log.lines, ""]), f"run{log.suffix}"))
    assert {name: what for name, what in wrong.items() if what != NOTED} == {}
