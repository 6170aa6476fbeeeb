"""What is printed of an evaluation on its way, behind all records, or into a table of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.logs.reading import points, read

from mldebug_mcp.api import diagnose_run
from mldebug_mcp.logs import read_run

BATCH = "Epoch: [{epoch}][ {at}/63]\tTime 0.010 ( 0.010)\tLoss {loss:.4e} (1.2e+00)\tAcc@1 90.00 ( 80.00)\n"
ON_ITS_WAY = "Test: [ {at}/10]\tLoss 9.0000e-03 ({mean:.4e})\tAcc@1   9.00 ( 10.00)\n"


def imagenet(seen: int, summary: str = " *   Acc@1 11.300 Acc@5 51.700\n") -> str:
    """Return three epochs; each evaluation is printed at its beginning and where so many batches are behind it."""
    return "".join(
        "".join(BATCH.format(epoch=epoch, at=at, loss=2 / (1 + epoch + at)) for at in range(0, 63, 20))
        + ON_ITS_WAY.format(at=0, mean=0.5) * (seen > 0)
        + ON_ITS_WAY.format(at=seen, mean=0.006 / (1 + epoch))
        + summary
        for epoch in range(3)
    )


def test_a_summary_without_a_loss_has_the_mean_that_was_printed_last(tmp_path: Path) -> None:
    run = read(tmp_path, imagenet(6))
    assert run["eval_loss"].value.tolist() == pytest.approx([0.006, 0.003, 0.002])
    assert len(run["eval_accuracy"]) == 3
    assert "eval_loss: the mean of an evaluation up to where it is printed, 6 of 10" in run.notes


@pytest.mark.parametrize("summary", [" *   Acc@1 11.300\n", "Saved to best.pt, size 11.3\n"])
def test_a_mean_of_the_first_batches_is_no_result(summary: str, tmp_path: Path) -> None:
    assert "eval_loss" not in read(tmp_path, imagenet(2, summary))


def test_a_loss_of_the_summary_itself_comes_first(tmp_path: Path) -> None:
    run = read(tmp_path, imagenet(6, " * Acc@1 11.300 loss 0.700\n"))
    assert set(run["eval_loss"].value.tolist()) == {0.7}


EPOCHS = "".join(
    f"epoch: {at}, lr: 2.00e-03 - train loss: {2 / at:.2e} - valid loss: {2.2 / at:.2e}, valid error: {0.7 / at:.2e}\n"
    for at in range(1, 15)
)
SPEECHBRAIN = "Epoch loaded: 14, batch size {rows} - test loss: {loss:.2e}, test error: {error:.2e}\n"
TIMM = "*** Validating last checkpoint\n * batch_size {rows} Acc@1 {acc} Loss 0.5 27035 img/s\n"


@pytest.mark.parametrize(("few", "cause"), [(0.437, "eval_mode_bug"), (0.047, "healthy")])
def test_an_evaluation_that_is_made_again_with_fewer_rows_at_once_is_compared(
    few: float, cause: str, tmp_path: Path
) -> None:
    again = SPEECHBRAIN.format(rows=25, loss=0.145, error=0.0467) + SPEECHBRAIN.format(rows=1, loss=1.29, error=few)
    (tmp_path / "train_log.txt").write_text(EPOCHS + again)
    run = read_run(tmp_path / "train_log.txt")
    assert points(run, "test error_bs1") == {14.0: few}
    answer = diagnose_run(tmp_path / "train_log.txt")
    assert answer.hypotheses[0].cause == cause
    assert any(fact.fact == "evaluation_by_rows_at_once" for fact in answer.sheet.facts) is (cause != "healthy")


@pytest.mark.parametrize("line", [
    "  bs={0:<5} {3:.3f} ms/sample  loss {1}  acc {2}\n", "bsz {0} | eval loss {1} | eval acc {2}\n",
    "val batch_size={0}: loss={1}\n", "eval (bs={0}): loss {1}, acc {2}\n", "[bs {0}] val_loss={1} val_acc={2}\n",
])  # fmt: skip
@pytest.mark.parametrize(("losses", "accuracies", "cause"), [
    ((0.16, 0.19, 0.81, 2.51), (0.98, 0.97, 0.75, 0.26), "eval_mode_bug"),
    ((0.16, 0.16, 0.17, 0.16), (0.98, 0.98, 0.98, 0.98), "healthy"),
])  # fmt: skip
def test_closing_evaluations_at_several_batch_sizes_are_compared(
    line: str, losses: tuple[float, ...], accuracies: tuple[float, ...], cause: str, tmp_path: Path
) -> None:
    sizes = zip((128, 32, 8, 1), losses, accuracies, strict=True)
    lines = (line.format(rows, loss, accuracy, 2 / rows) for rows, loss, accuracy in sizes)
    (tmp_path / "nohup.out").write_text(EPOCHS + "serving check on the validation files\n" + "".join(lines))
    answer = diagnose_run(tmp_path / "nohup.out")
    assert points(read_run(tmp_path / "nohup.out"), "eval_loss_bs1") == {14.0: losses[-1]}
    assert any(fact.fact == "evaluation_by_rows_at_once" for fact in answer.sheet.facts) is (cause != "healthy")
    assert answer.hypotheses[0].cause == cause


def test_a_sweep_over_the_rows_at_once_stands_at_the_last_step(tmp_path: Path) -> None:
    sweep = TIMM.format(rows=8, acc=86.7) + TIMM.format(rows=256, acc=98.9)
    run = read(tmp_path, EPOCHS + "\n" * 20 + sweep)
    assert points(run, "eval_accuracy_bs256") == {14.0: 98.9}
    assert len(run["eval_loss"]) == 14


@pytest.mark.parametrize(
    ("other", "many", "cause"),
    [("validation", 0.986, "eval_mode_bug"), ("validation", 0.27, None), ("test", 0.986, None)],
)
def test_what_keras_evaluates_with_other_rows_at_once_is_compared_where_it_is_the_same_set(
    other: str, many: float, cause: str | None, tmp_path: Path
) -> None:
    epochs = "".join(
        f"Epoch {epoch}/8\n40/40 - 0s - 9ms/step - accuracy: {1 - 0.3 / epoch:.4f} - loss: {1 / epoch:.4f} - "
        f"val_accuracy: {0.25 + epoch / 400:.4f} - val_loss: {2 + epoch / 4:.4f}\n"
        for epoch in range(1, 9)
    )
    evaluated = "evaluate on {}, batch_size={}\n{}/{} - 0s - 3ms/step - accuracy: {:.4f} - loss: 3.9\n"
    (tmp_path / "train.log").write_text(
        epochs
        + evaluated.format("validation", 16, 32, 32, 0.2656)
        + evaluated.format("validation", 16, 32, 32, 0.2754)
        + evaluated.format(other, 512, 1, 1, many)
    )
    answer = diagnose_run(tmp_path / "train.log")
    assert answer.run.last_step == 8
    assert any(fact.fact == "evaluation_by_rows_at_once" for fact in answer.sheet.facts) is (cause is not None)
    assert (answer.hypotheses[0].cause == "eval_mode_bug") is (cause is not None)


def test_one_evaluation_that_gives_its_rows_is_left_out_as_any_other(tmp_path: Path) -> None:
    run = read(tmp_path, EPOCHS + "\n" * 20 + TIMM.format(rows=8, acc=86.7))
    assert "left out 1 line(s) with metrics but without a step or an epoch" in run.notes
    assert not any("bs8" in name for name in run.series)


@pytest.mark.parametrize(("accuracies", "kept", "cause"), [
    ((86.8, 84.3, 86.3), 3, "eval_mode_bug"), ((86.8, 86.8, 86.8), 3, "healthy"), ((86.8,), 0, "healthy"),
])  # fmt: skip
def test_several_evaluations_of_the_last_weights_are_compared(
    accuracies: tuple[float, ...], kept: int, cause: str, tmp_path: Path
) -> None:
    again = "Re-validating last.pth ({0}/3): top1 {1} top5 99.333 n=600\n"
    lines = (again.format(at, accuracy) for at, accuracy in enumerate(accuracies, start=1))
    (tmp_path / "train_log.txt").write_text(EPOCHS + "\n" * 20 + "".join(lines))
    run = read_run(tmp_path / "train_log.txt")
    assert [points(run, f"eval_accuracy_again{at + 1}") for at in range(kept)] == [{14.0: x} for x in accuracies[:kept]]
    assert sum("again" in name for name in run.series) == 2 * kept
    answer = diagnose_run(tmp_path / "train_log.txt")
    assert answer.hypotheses[0].cause == cause
    assert any(fact.fact == "evaluated_twice" for fact in answer.sheet.facts) is (cause != "healthy")


@pytest.mark.parametrize("again", [
    "re-scoring last.pt, pass {0}: *Acc@1 {1} loss {2}\n",
    "Re-evaluating step_640.ckpt (repeat #{0}): loss {2} acc {1}\n",
    "rechecking the same weights, round {0}: val_acc {1}, val_loss {2}\n",
])  # fmt: skip
@pytest.mark.parametrize(("other", "cause"), [(0.8418, "eval_mode_bug"), (0.8516, "healthy")])
def test_two_evaluations_that_are_counted_without_how_many_there_are_are_compared(
    again: str, other: float, cause: str, tmp_path: Path
) -> None:
    lines = again.format(1, 0.8516, 0.25) + again.format(2, other, 0.25 + 0.8516 - other)
    (tmp_path / "train_log.txt").write_text(EPOCHS + "\n" * 20 + lines)
    answer = diagnose_run(tmp_path / "train_log.txt")
    assert any(fact.fact == "evaluated_twice" for fact in answer.sheet.facts) is (cause != "healthy")
    assert answer.hypotheses[0].cause == cause


@pytest.mark.parametrize("again", [
    "11:15:2{0} INFO final - checkpoint step 640 pass {0}/3 val_loss={1} val_acc=0.81\n",
    "Final evaluation of best.pt, repeat {0}/3: valid loss: {1}\n",
    "[2026-01-02 10:11:12] same weights again ({0}/3) | eval_loss {1}\n",
    "10:11:1{0} INFO report - repeat {0}: eval_loss={1} eval_acc=0.81\n",
    "eval pass {0}: loss={1}\n",
    "[pass {0} of 3] eval_loss: {1}\n",
])  # fmt: skip
@pytest.mark.parametrize(("losses", "cause"), [((0.64, 0.58, 0.56), "eval_mode_bug"), ((0.16, 0.16, 0.16), "healthy")])
def test_passes_of_the_same_weights_are_compared_in_other_words_and_right_behind_the_records(
    again: str, losses: tuple[float, ...], cause: str, tmp_path: Path
) -> None:
    lines = "".join(again.format(at, loss) for at, loss in enumerate(losses, start=1))
    (tmp_path / "train_log.txt").write_text(EPOCHS + lines)
    answer = diagnose_run(tmp_path / "train_log.txt")
    assert answer.run.last_step == 14
    stated = [fact.text for fact in answer.sheet.facts if fact.fact == "evaluated_twice"]
    assert any("eval_loss is 0.64, 0.58, 0.56 in 3" in text for text in stated) is (cause != "healthy")
    assert answer.hypotheses[0].cause == cause


@pytest.mark.parametrize("line", [
    "01/05 17:30:19 - mmengine - INFO - val    loss: {}  acc: 0.8450\n", "val: loss {} acc 0.84\n", "eval loss {}\n",
])  # fmt: skip
@pytest.mark.parametrize(("losses", "stated"), [
    ((0.519, 0.53, 0.515), True), ((0.519, 0.519, 0.519), False), ((0.519, 0.53), False), ((0.519, 0.93, 1.515), False),
])  # fmt: skip
def test_evaluations_in_the_same_words_one_below_the_other_are_of_the_same_weights(
    line: str, losses: tuple[float, ...], stated: bool, tmp_path: Path
) -> None:
    (tmp_path / "train_log.txt").write_text(EPOCHS + "\n" * 20 + "".join(map(line.format, losses)))
    answer = diagnose_run(tmp_path / "train_log.txt")
    assert any(fact.fact == "evaluated_twice" for fact in answer.sheet.facts) is stated
    assert (answer.hypotheses[0].cause == "eval_mode_bug") is stated


@pytest.mark.parametrize("between", ["Load epoch_7.pth\n", "on the test set\n"])
def test_evaluations_with_something_between_may_be_of_other_weights(between: str, tmp_path: Path) -> None:
    lines = (f"{between}val loss: {loss}\n" for loss in (0.519, 0.53, 0.515))
    (tmp_path / "train_log.txt").write_text(EPOCHS + "\n" * 20 + "".join(lines))
    assert not any(fact.fact == "evaluated_twice" for fact in diagnose_run(tmp_path / "train_log.txt").sheet.facts)


def test_passes_over_the_data_that_each_end_with_an_evaluation_are_not_of_the_same_weights(tmp_path: Path) -> None:
    lines = (
        f"step {10 * at} loss={2 / at} val_loss={2.2 / at}\npass {at}: val_loss={2.1 / at}\n" for at in range(1, 15)
    )
    (tmp_path / "train_log.txt").write_text("".join(lines))
    assert not any(fact.fact == "evaluated_twice" for fact in diagnose_run(tmp_path / "train_log.txt").sheet.facts)


def test_the_table_of_an_evaluator_belongs_to_the_run_next_to_it(tmp_path: Path) -> None:
    lines = "".join(f"{{'loss': {5 / at}, 'epoch': {at / 5}, 'step': {20 * at}}}\n" for at in range(1, 31))
    (tmp_path / "train_loss.txt").write_text(lines)
    rows = "".join(f"{at - 1},{100 * at},0.00{at},1.{9 - at}\n" for at in range(1, 7))
    table = "epoch,steps,cos_sim-Recall@1,val_loss\n" + rows
    (tmp_path / "information_retrieval_eval.csv").write_text(table)
    run = read_run(tmp_path)
    assert len(run["loss"]) == 30
    assert points(run, "eval_loss")[600.0] == 1.3
    assert points(run, "eval_cos_sim_recall@1")[600.0] == 0.006


STEP = "[{step:6d}/360] {epoch} {0}: {loss:.4f} lr: 0.001\n"
EVALUATED = ">> step {step} eval dev_loss: {loss} dev_acc: 0.9\n"


def counted_run(name: str = "loss", epoch: str = "ep {0}") -> str:
    """Return lines that count the steps of the run in front of the epoch, with an evaluation each sixth line."""
    return "".join(
        STEP.format(name, step=step, epoch=epoch.format(step // 90), loss=0.2 + 2 / step)
        + EVALUATED.format(step=step, loss=round(0.25 + 2 / step, 5)) * (step % 60 == 0)
        for step in range(10, 361, 10)
    )


@pytest.mark.parametrize("epoch", ["ep {0}", "epoch {0}", "| epoch: {0} |", "[epoch {0}]", "Epoch {0}"])
@pytest.mark.parametrize("name", ["loss", "training.loss"])
def test_a_number_of_many_in_front_of_an_epoch_is_the_step(name: str, epoch: str, tmp_path: Path) -> None:
    run = read(tmp_path, counted_run(name, epoch))
    assert run.step_name == "step"
    assert run["loss"].step.tolist() == list(range(10, 361, 10))


def test_the_number_of_a_process_in_front_of_an_epoch_is_no_step(tmp_path: Path) -> None:
    lines = "".join(f"[0/8] epoch {epoch} loss: {2 / epoch:.4f}\n" for epoch in range(1, 13))
    assert read(tmp_path, lines)["loss"].step.tolist() == list(range(1, 13))


@pytest.mark.parametrize(("losses", "cause"), [
    ((0.32, 0.26, 0.27), "eval_mode_bug"), ((0.25556, 0.25556), "healthy"), ((0.3,), "healthy"),
    ((0.9, 2.6), "healthy"),
])  # fmt: skip
def test_evaluations_that_a_log_repeats_at_its_last_step_are_compared(
    losses: tuple[float, ...], cause: str, tmp_path: Path
) -> None:
    again = "".join(EVALUATED.format(step=360, loss=loss) for loss in losses)
    (tmp_path / "train.log").write_text(counted_run() + again)
    answer = diagnose_run(tmp_path / "train.log")
    assert any(fact.fact == "evaluated_twice" for fact in answer.sheet.facts) is (cause != "healthy")
    assert (answer.hypotheses[0].cause == "eval_mode_bug") is (cause != "healthy")


@pytest.mark.parametrize("name", ["training.loss", "train_loss", "train/loss"])
def test_a_loss_of_a_last_line_alone_is_not_that_of_training(name: str, tmp_path: Path) -> None:
    last = EVALUATED.format(step=360, loss=0.3) * 3 + "exported model.onnx check (n=320): loss: 0.1017\n"
    assert len(read(tmp_path, counted_run(name) + last)["loss"]) == 36


@pytest.mark.parametrize("line", [
    "final test of last.pt: n=320 loss 0.2443 acc 0.9167\n", "train split, same pass: n=1600 loss 0.2484 acc 0.91\n",
    "val: n=640 loss 0.25\n",
])  # fmt: skip
def test_a_number_of_rows_behind_words_is_no_step(line: str, tmp_path: Path) -> None:
    run = read(tmp_path, counted_run("train/loss") + line)
    assert run["loss"].step.tolist() == list(range(10, 361, 10))
    assert run.last_step == 360


def test_a_letter_that_counts_in_front_of_all_values_is_a_step(tmp_path: Path) -> None:
    run = read(tmp_path, "".join(f"INFO train: n={at} loss {2 / at:.4f}\n" for at in range(10, 210, 10)))
    assert run["loss"].step.tolist() == list(range(10, 210, 10))


def test_numbers_by_name_behind_the_mark_of_copies_are_of_an_evaluation(tmp_path: Path) -> None:
    train = "[10/19 19:45:{0:02d} d2.utils.events]: iter: {0}9  loss: {1:.3f}  pix_mean: -0.03  lr: 0.003\n"
    copied = "[10/19 19:45:{0:02d} d2.evaluation.testing]: copypaste: loss={1:.3f}, acc=0.5, pix_mean=0.46\n"
    run = read(tmp_path, "".join((train + copied).format(at, 2 / at) for at in range(1, 9)))
    assert points(run, "eval_loss") == pytest.approx({10.0 * at + 9: round(2 / at, 3) for at in range(1, 9)})
    assert run["eval_accuracy"].value.tolist() == [0.5] * 8
    assert run["pix_mean"].role is None


COCO = [
    f" Average Precision  (AP) @[ IoU={iou} | area={area} | maxDets=100 ] = 0.{at}00\n"
    for at, (iou, area) in enumerate([("0.50:0.95", "   all"), ("0.50     ", "   all"), ("0.75     ", "   all"),
                                      ("0.50:0.95", " small"), ("0.50:0.95", "medium"), ("0.50:0.95", " large")])
]  # fmt: skip
RECALL = [
    f" Average Recall     (AR) @[ IoU=0.50:0.95 | area={area} | maxDets={most} ] = 0.{at}50\n"
    for at, (area, most) in enumerate([("   all", "  1"), ("   all", " 10"), ("   all", "100"), (" small", "100"),
                                       ("medium", "100"), (" large", "100")])
]  # fmt: skip


@pytest.mark.parametrize("times", [1, 2])
def test_scores_of_few_evaluations_alone_are_a_record_of_each(tmp_path: Path, times: int) -> None:
    run = read(tmp_path, ("Accumulating evaluation results...\n" + "".join(COCO + RECALL)) * times)
    assert len(run.series) == 12
    assert run["eval_ap"].value.tolist() == [0.0] * times
    assert run["eval_average_recall_large"].value.tolist() == [0.55] * times


def test_scores_right_below_each_other_belong_to_the_record_above_however_many_they_are(tmp_path: Path) -> None:
    epoch = "Epoch: [{0}]  [99/100]  lr: 0.005  loss: {1} (1.5)\n" + "creating index...\n" * 11 + "".join(COCO + RECALL)
    run = read(tmp_path, "".join(epoch.format(at, 2.5 - at) for at in range(2)))
    assert points(run, "eval_average_recall_large") == {99: 0.55, 199: 0.55}


@pytest.mark.parametrize("validation", ["", " - val_loss: 0.75"])
def test_what_keras_evaluates_in_as_many_batches_as_it_trains_is_not_of_the_last_epoch(
    tmp_path: Path, validation: str
) -> None:
    bar = "100/100 [==============================] - 1s 5ms/step - loss: {0}"
    epochs = "".join(f"Epoch {at}/3\n{bar.format(1 / 2**at)}{validation}\n" for at in range(1, 4))
    run = read(tmp_path, epochs + bar.format(0.625) + "\n" + bar.format(0.875) + "\n")
    assert points(run, "loss") == {1: 0.5, 2: 0.25, 3: 0.125}
    assert any("evaluate()" in note for note in run.notes)


@pytest.mark.parametrize("table", [True, False])
@pytest.mark.parametrize("each", [True, False])
def test_evaluations_that_a_column_counts_are_compared(tmp_path: Path, table: bool, each: bool) -> None:
    passes = [(at, turn) for at in range(60, 361, 60) for turn in (1, 2, 3) if each or at == 360]
    rows = [f"{at},,{2 / at}" for at in range(10, 361, 10)] + [f"{at},{turn},,{0.3 + turn / 50}" for at, turn in passes]
    rows.sort(key=lambda row: int(row.partition(",")[0]))
    records = [
        "{" + ", ".join(f'"{name}": {cell}' for name, cell in zip(NAMES, row.split(","), strict=False) if cell) + "}"
        for row in rows
    ]
    path = tmp_path / ("log.csv" if table else "log.jsonl")
    text = [",".join(NAMES), *(row + "," * (3 - row.count(",")) for row in rows)] if table else records
    path.write_text("\n".join([*text, ""]))
    facts = [fact.text for fact in diagnose_run(path).sheet.facts if fact.fact == "evaluated_twice"]
    assert len(facts) == 1
    assert ("eval_loss_again is" in facts[0]) if each else ("eval_loss is 0.32, 0.34, 0.36 in 3" in facts[0])
    assert not any("left out" in note for note in read_run(path).notes)


NAMES = ("step", "pass", "train_loss", "eval_loss")


KERAS = "".join(
    f"Epoch {at}/14\n38/38 - 0s - loss: {2 / at:.4f} - accuracy: {1 - 0.6 / at:.4f} - val_loss: {2.1 / at:.4f} - "
    f"val_accuracy: {1 - 0.7 / at:.4f}\n"
    for at in range(1, 15)
)


@pytest.mark.parametrize("records", [KERAS, EPOCHS], ids=["keras", "lines"])
@pytest.mark.parametrize(("heading", "line"), [
    ("predict.py --weights last --split val", "  batch_size  100  loss {1}  acc {2}"),
    ("== closing evaluation of best.pt ==", " run {0}: loss {1} acc {2}"),
    ("[eval-only] weights=last.pt split=val", "loss {1} acc {2}"),
    ("Scoring the final checkpoint on dev", "try {0} | loss {1} | acc {2}"),
])  # fmt: skip
@pytest.mark.parametrize("losses", [(0.14, 0.11, 0.1), (0.14, 0.14, 0.14)])
def test_lines_under_the_heading_of_a_closing_evaluation_are_no_records_of_training(
    records: str, heading: str, line: str, losses: tuple[float, ...], tmp_path: Path
) -> None:
    lines = [line.format(at, loss, 0.95) for at, loss in enumerate(losses, start=1)]
    log = tmp_path / "train_log.txt"
    log.write_text("\n".join([records.rstrip(), heading, *lines, "[train subset 600] batch_size 100 loss 0.03"]) + "\n")
    run = read_run(log)
    assert (run.last_step, len(run["loss"])) == (14, 14)
    again = sorted(value for name in run.series for value in run[name].value if "loss" in name and "again" in name)
    assert again == sorted(losses)
    assert not any(0.03 in series.value for name, series in run.series.items() if name.startswith("eval"))
    assert diagnose_run(log).hypotheses[0].cause == ("healthy" if len(set(losses)) == 1 else "eval_mode_bug")


@pytest.mark.parametrize(("few", "cause"), [(0.42, "eval_mode_bug"), (0.15, "healthy")])
def test_a_loss_that_is_far_higher_with_few_rows_at_once_is_compared(few: float, cause: str, tmp_path: Path) -> None:
    found = ((100, 0.15, 0.95), (8, 0.15, 0.95), (2, few, 0.95 - few / 10))
    lines = "".join(f" bs={rows} | loss {loss} | acc {acc:.3f}\n" for rows, loss, acc in found)
    (tmp_path / "train_log.txt").write_text(KERAS + "evaluating last checkpoint on val\n" + lines)
    run = read_run(tmp_path / "train_log.txt")
    assert points(run, "eval_loss_bs2") == {14.0: few}
    assert diagnose_run(tmp_path / "train_log.txt").hypotheses[0].cause == cause


def test_training_that_goes_on_behind_such_a_heading_has_its_evaluations(tmp_path: Path) -> None:
    epochs = "".join(
        f"epoch {at} train loss {2 / at}\nevaluating last checkpoint on val\nval loss {3 / at} acc 0.5\n"
        for at in range(1, 9)
    )
    run = read(tmp_path, epochs)
    assert run["eval_loss"].value.tolist() == [3 / at for at in range(1, 9)]


@pytest.mark.parametrize(("line", "metric"), [
    ("final  cohort B: logloss 1.3672 auc 0.75 acc 0.68 (base rate 0.497)", "cohort B/auc"),
    ("cohort B (other site): logloss 1.3672 auc 0.75 acc 0.68", "cohort B/auc"),
    ("Final, hospital 2: logloss 1.3672, auc 0.75, acc 0.68", "hospital 2/auc"),
])  # fmt: skip
@pytest.mark.parametrize("is_beside", [True, False])
def test_a_set_that_is_scored_once_at_the_end_is_read_from_notes_and_from_the_log(
    line: str, metric: str, is_beside: bool, tmp_path: Path
) -> None:
    rows = [f"{at},{2 / at},{2.1 / at},{1 - 0.3 / at**2}" for at in range(1, 15)]
    if is_beside:
        (tmp_path / "train.csv").write_text("\n".join(["epoch,train_loss,valid_loss,valid_auc", *rows, ""]))
        (tmp_path / "notes.txt").write_text(f"random row split, 6 windows each\n{line}\n")
    else:
        (tmp_path / "train.log").write_text(KERAS + line + "\n")
    run = read_run(tmp_path)
    assert points(run, metric) == {14.0: 0.75}
    assert any("random row split" in each.text for each in run.text_lines) is is_beside
    answer = diagnose_run(tmp_path)
    stated = {fact.fact for fact in answer.sheet.facts}
    assert ("held_out_sets_disagree" in stated) is True


@pytest.mark.parametrize(("text", "is_kept"), [
    ("".join(f"{at} sec: 1.1{at} GBytes, 9.{at} Gbits/sec\n" for at in range(1, 9)), False),
    ("".join(f"-rw-r--r-- 1 bob ml {at}024 Nov {at} 12:00 shard_{at}.bin\n" for at in range(1, 9)), False),
    ("Rows of one site only.\nThe split is random.\nStarted anew after step 40.\n", True),
    ("12:00:01 WARNING: reader 3 is slow\n12:00:02 reader 3 waits 4 s\n12:00:03 reader 4 waits 5 s\n", True),
])  # fmt: skip
def test_a_text_next_to_a_log_is_a_note_only_if_it_is_in_words_or_holds_messages(
    text: str, is_kept: bool, tmp_path: Path
) -> None:
    rows = [f"{at},{2 / at},{2.1 / at}" for at in range(1, 15)]
    (tmp_path / "train.csv").write_text("\n".join(["epoch,train_loss,valid_loss", *rows, ""]))
    (tmp_path / "other.txt").write_text(text)
    run = read_run(tmp_path)
    assert bool(run.text_lines) is is_kept
    assert [note for note in run.notes if "other.txt" in note]


def test_a_line_that_calls_the_last_result_final_repeats_it(tmp_path: Path) -> None:
    run = read(tmp_path, KERAS + "final validation results: loss 0.9 acc 0.1\n")
    assert not any("results" in name for name in run.series)


@pytest.mark.parametrize("heading", ["***** Eval results {} *****", "=== {} ===", "results on {}:"])
def test_sets_that_headings_name_are_no_repeated_evaluations_of_the_same_rows(tmp_path: Path, heading: str) -> None:
    def facts(*sets: str) -> dict[str, str]:
        text = "".join(
            f"epoch {at}: train_loss = {1.6 * 0.6**at:.4f}, val_loss = {1.5 * 0.7**at:.4f}\n" for at in range(8)
        )
        text += "loading out/best.pt to evaluate\n"
        for at, name in enumerate(sets):
            text += f"{heading.format(name)}\n  eval_acc = {0.95 - 0.02 * at}\n  eval_loss = {0.18 + 0.05 * at}\n"
        (tmp_path / "train.log").write_text(text)
        return {fact.fact: fact.text for fact in diagnose_run(tmp_path / "train.log").sheet.facts}

    assert "evaluated_twice" not in facts("val", "test")
    assert "0.18, 0.28 in 2 evaluations of the same weights" in facts("val", "test", "val")["evaluated_twice"]
