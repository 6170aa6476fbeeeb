"""Lines under a label of their own, which repeat the metrics of the records, are series of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.logs.reading import points, read

EPOCHS = 80
LOSS = {float(epoch): round(2 + 4 / epoch, 4) for epoch in range(1, EPOCHS + 1)}
OTHER = {float(epoch): round(3 + 0.01 * epoch, 4) for epoch in range(4, EPOCHS + 1, 4)}


def _record(style: str, epoch: int) -> str:
    loss, accuracy = LOSS[epoch], 0.5
    return {
        "counter": f"epoch {epoch}: loss={loss} acc={accuracy}\n",
        "bar": f"Epoch {epoch}/{EPOCHS}\n9/9 [======] - 0s 3ms/step - loss: {loss} - acc: {accuracy}\n",
        "heading": f"Epoch {epoch}\nmean loss {loss}, acc {accuracy}\n",
    }[style]


def _text(style: str, label: str) -> str:
    return "".join(
        _record(style, epoch) + (label.format(OTHER[epoch]) if epoch in OTHER else "") for epoch in range(1, EPOCHS + 1)
    )


@pytest.mark.parametrize("style", ["counter", "bar", "heading"])
@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("[hospital B, n=300] loss: {} - acc: 0.25\n", "hospital B"),
        ("clean copies | loss {} | acc 0.25\n", "clean copies"),
    ],
)
def test_a_label_that_is_not_known_names_a_series(style: str, label: str, name: str, tmp_path: Path) -> None:
    run = read(tmp_path, _text(style, label))
    assert points(run, "loss") == LOSS
    assert points(run, f"{name}/loss") == OTHER
    assert set(run["accuracy"].value.tolist()) == {0.5}


def test_a_label_with_the_counter_of_its_record_names_a_series(tmp_path: Path) -> None:
    text = "".join(
        f"step {epoch} | loss {LOSS[epoch]}\n"
        + (f"step {epoch} | noisy rows: loss {OTHER[epoch]}\n" if epoch in OTHER else "")
        for epoch in range(1, EPOCHS + 1)
    )
    run = read(tmp_path, text)
    assert points(run, "loss") == LOSS
    assert points(run, "noisy rows/loss") == OTHER


@pytest.mark.parametrize("label", ["unseen set", "held-out set", "blind", "blind results"])
def test_words_for_held_out_data_are_those_of_an_evaluation(label: str, tmp_path: Path) -> None:
    run = read(tmp_path, _text("bar", f"[{label}] loss: {{}} - acc: 0.25\n"))
    assert points(run, "loss") == LOSS
    assert points(run, "eval_loss") == OTHER


def test_validation_keeps_its_name_next_to_another_evaluation(tmp_path: Path) -> None:
    text = "".join(
        f"Epoch {epoch}\ntrain loss: {LOSS[epoch]}\nval loss: {LOSS[epoch] + 1}\n"
        + (f"[blind data] loss: {OTHER[epoch]}\n" if epoch in OTHER else "")
        for epoch in range(1, EPOCHS + 1)
    )
    run = read(tmp_path, text)
    assert points(run, "eval_loss") == {epoch: loss + 1 for epoch, loss in LOSS.items()}
    own = [curve for curve in run.series.values() if (curve.logged_as or curve.name).startswith("blind data/")]
    assert [dict(zip(curve.step.tolist(), curve.value.tolist(), strict=True)) for curve in own] == [OTHER]


def test_the_label_of_the_records_themselves_says_nothing(tmp_path: Path) -> None:
    text = "".join(f"Epoch {epoch}\n[runner] loss: {loss}, acc: 0.5\n" for epoch, loss in LOSS.items())
    assert points(read(tmp_path, text), "loss") == LOSS


def test_each_head_of_a_potential_is_a_curve_of_its_own(tmp_path: Path) -> None:
    line = "2024-10-18 16:24:36.769 INFO: Epoch {}: head: {}, loss=  {}, RMSE_F=   {} meV / A\n"
    rows = [(1, "default", 0.25, 40.5), (1, "other", 0.5, 90.5), (2, "default", 0.125, 30.5), (2, "other", 0.375, 80.5)]
    run = read(tmp_path, "".join(line.format(*row) for row in rows))
    assert points(run, "eval_loss") == {1: 0.25, 2: 0.125}
    assert points(run, "eval_other/loss") == {1: 0.5, 2: 0.375}
    assert points(run, "eval_other/rmse_f") == {1: 90.5, 2: 80.5}
    assert "loss" not in run


@pytest.mark.parametrize(("labels", "names"), [
    (("image tower  ", "text tower   "), ("image tower/weight_norm", "text tower/weight_norm")),
    (("emb   ", "norm  "), ("emb/weight_norm", "norm/weight_norm")),
])  # fmt: skip
def test_rows_with_a_label_of_their_own_below_a_heading_are_series_of_it(
    labels: tuple[str, str], names: tuple[str, str], tmp_path: Path
) -> None:
    text = "".join(
        f"[{10 * at}]\n  loss  {2 + 4 / at:.4f}\n"
        + "".join(f"  {label}|w| {row + at / 100}  grad_norm 0.5\n" for row, label in enumerate(labels, start=1))
        for at in range(1, 30)
    )
    run = read(tmp_path, text)
    for row, name in enumerate(names, start=1):
        assert points(run, name) == {10.0 * at: row + at / 100 for at in range(1, 30)}


def test_evaluations_by_their_batch_below_training_are_no_records_of_it(tmp_path: Path) -> None:
    text = "".join(
        f"epoch {at}\n    train    loss {1 / at:.4f} acc 0.9\n"
        + "".join(f"    val@{rows}   loss {rows / at:.4f} acc 0.8\n" for rows in (768, 64))
        for at in range(1, 12)
    )
    run = read(tmp_path, text)
    assert points(run, "loss") == {float(at): round(1 / at, 4) for at in range(1, 12)}
    assert points(run, "val@64/loss") == {float(at): round(64 / at, 4) for at in range(1, 12)}


def test_several_records_below_the_heading_of_a_round_are_all_read(tmp_path: Path) -> None:
    losses = [round(5 - at / 10, 3) for at in range(20)]
    rounds = (f"Round {at // 5}\n" * (at % 5 == 0) + f"    loss {loss}   grad_norm 0.5\n"
              for at, loss in enumerate(losses))  # fmt: skip
    assert read(tmp_path, "".join(rounds))["loss"].value.tolist() == losses


def test_a_table_whose_cells_bars_divide_keeps_rows_with_an_empty_last_cell(tmp_path: Path) -> None:
    rows = [f"{at}|{2 / at:.4f}|{'0.9' if at % 5 == 0 else ''}" for at in range(1, 20)]
    run = read(tmp_path, "\n".join(["it|loss|acc", *rows]), "log.csv")
    assert points(run, "loss") == {float(at): round(2 / at, 4) for at in range(1, 20)}
