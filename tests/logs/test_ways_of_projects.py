"""Lines, blocks and tables as projects of many fields print them: each number at its step, under its name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.logs.reading import points, read

STEPS = range(1, 41)


def loss(step: int) -> float:
    return round(8 / (step + 3), 4)


def test_a_numbered_part_of_a_loss_keeps_its_number(tmp_path: Path) -> None:
    block = "Iteration {0} / 40\n  Content 1 loss: {1}\n  Style 1 loss: 3.5\n  Style 2 loss: 4.5\n  Total loss: {2}\n"
    run = read(tmp_path, "".join(block.format(at, 2 * at, loss(at)) for at in STEPS))
    assert points(run, "loss") == {at: loss(at) for at in STEPS}
    assert points(run, "Content_1_loss") == {at: 2 * at for at in STEPS}


def test_steps_of_a_search_and_seconds_of_an_iteration_count_nothing(tmp_path: Path) -> None:
    block = (
        "***** Iteration #{0} *****\nLoss: {1}\nLine search trials: 1\nLine search step: 1.000000\n"
        "Seconds required for this iteration: 0.1{0:02d}\n\n"
    )
    assert points(read(tmp_path, "".join(block.format(at, loss(at)) for at in STEPS)), "loss") == {
        at: loss(at) for at in STEPS
    }


def test_a_percentage_behind_the_word_for_an_epoch_is_no_epoch(tmp_path: Path) -> None:
    text = "".join(
        f"Training epoch {at}: 0.01 0.0002\nEpoch: 50.0%  lr: 0.01  loss: {loss(at)}  eta: <1min\n" for at in STEPS
    )
    assert read(tmp_path, text)["loss"].step.tolist() == list(STEPS)


@pytest.mark.parametrize("label", ["Validation Epoch 5", "Validation Epoch 5:"])
def test_a_dict_below_the_heading_of_an_evaluation_is_of_it(tmp_path: Path, label: str) -> None:
    text = "".join(
        f"Train Epoch {at}\n{json.dumps({'Loss': loss(at), 'Time_Epoch': 0.5}, indent=4)}\n\n" for at in range(1, 6)
    )
    run = read(tmp_path, f"{text}{label}\n{json.dumps({'Loss': 9.5}, indent=4)}\n")
    assert points(run, "loss") == {at: loss(at) for at in range(1, 6)}
    assert points(run, "eval_loss") == {5: 9.5}


def test_parts_below_the_loss_of_an_evaluation_are_of_it(tmp_path: Path) -> None:
    block = (
        "\nEpoch {0}\nVal loss:   {1:.5f}\nl1: 0.5 kl: 0.2 loss: {1:.3f} \n"
        "Train loss: {2:.5f}\nl1: 0.1 kl: 0.4 loss: {2:.3f} \n"
    )
    run = read(tmp_path, "".join(block.format(at, loss(at) + 1, loss(at)) for at in STEPS))
    assert points(run, "eval_l1") == dict.fromkeys(STEPS, 0.5)
    assert points(run, "l1") == dict.fromkeys(STEPS, 0.1)
    assert points(run, "loss") == {at: loss(at) for at in STEPS}


def test_a_dict_that_two_loggers_print_below_its_step_is_one_record(tmp_path: Path) -> None:
    text = ""
    for at in STEPS:
        heading = f"Step {100 * at} per-step time 0.512s"
        values = f"{{'Loss/classification_loss': {loss(at) / 2},\n 'Loss/total_loss': {loss(at)}}}"
        logged = f"I1101 10:00:{at:02d}.123456 1400 model_lib_v2.py:705]"
        text += f"INFO:tensorflow:{heading}\n{logged} {heading}\nINFO:tensorflow:{values}\n{logged} {values}\n"
    run = read(tmp_path, text)
    assert points(run, "loss") == {100 * at: loss(at) for at in STEPS}
    assert run.step_name == "step"


def test_dicts_that_stay_the_same_below_their_steps_are_records(tmp_path: Path) -> None:
    text = "".join(
        f"Step {at} per-step time 0.5s\n{{'Loss/aux_loss': 0.5,\n 'Loss/total_loss': 0.0}}\n" for at in STEPS
    )
    assert points(read(tmp_path, text), "loss") == dict.fromkeys(STEPS, 0.0)


def test_batches_in_brackets_behind_an_epoch_in_brackets_count_within_it(tmp_path: Path) -> None:
    text = "".join(
        f"ppcls INFO: [Train][Epoch {epoch}/9][Iter: {at}/80]lr(Cosine): 0.01, loss: {epoch + at / 100}\n"
        for epoch in (1, 2)
        for at in range(0, 80, 5)
    )
    run = read(tmp_path, f"{text}ppcls INFO: [Train][Epoch 2/9][Avg]loss: 7.5\n")
    assert run["loss"].step[-1] - run["loss"].step[0] == 80 + 75
    assert (run["loss"].value[-1], run["epoch_mean/loss"].value.tolist()) == (2.75, [7.5])


def test_micro_batches_so_far_are_no_accuracy(tmp_path: Path) -> None:
    run = read(tmp_path, "".join(f"step: {at}  acc: 0  loss: {loss(at):7.4f}  lr: 1.00e-03\n" for at in STEPS))
    assert "accuracy" not in run.series
    assert points(run, "loss") == {at: loss(at) for at in STEPS}


LETTERS = (
    " train   E: {0}   I: {1:,}   R: {2:.1f}   T: 0:01:00\n",
    "| train | F: {3} | S: {1} | E: {0} | L: 250 | R: {2:.4f} | BS: {3} | FPS: 60.25 | T: 0:00:04\n",
)


@pytest.mark.parametrize("line", LETTERS)
def test_letters_of_loggers_of_reinforcement_learning_are_written_out(tmp_path: Path, line: str) -> None:
    text = "".join(line.format(at, 250 * at, 4.5 * at, 500 * at) for at in STEPS)
    assert points(read(tmp_path, text), "reward") == {250 * at: 4.5 * at for at in STEPS}


OTHER_WAYS = {
    "L-BFGS-B": "At iterate{0:5d}    f=  {1:.4f}D+01    |proj g|=  2.29790D-01\n\n",
    "R": "iter {0:3d} value {2:.6f}\n",
    "tinygrad": "{0:3d} {0:7.2f} ms run,    1.20 ms AMD, {2:7.4f} loss, 0.010000 LR, 0.46 GB used,   900.10 GFLOPS\n",
}


@pytest.mark.parametrize("line", OTHER_WAYS.values(), ids=OTHER_WAYS)
def test_losses_are_read_that_other_names_or_places_hold(tmp_path: Path, line: str) -> None:
    run = read(tmp_path, "".join(line.format(at, loss(at), 10 * loss(at)) for at in STEPS))
    assert points(run, "loss") == pytest.approx({at: 10 * loss(at) for at in STEPS})


def test_cntk_counts_the_batches_and_tells_means_and_evaluations_of_epochs(tmp_path: Path) -> None:
    text = ""
    for epoch in STEPS:
        for last in (100, 200):
            text += (
                f" Epoch[{epoch:2d} of 40]-Minibatch[{last - 99:4d}-{last:4d}, {last / 2:.2f}%]: "
                f"CrossEntropyWithSoftmax = {loss(epoch)} * 6400; time = 1.2s\n"
            )
        text += f"Finished Epoch[{epoch:2d} of 40]: [Training] CrossEntropyWithSoftmax = 9.5 * 12800; epochTime=2.4s\n"
        text += f"Finished Evaluation [{epoch}]: Minibatch[1-79]: metric = 4.5% * 10000;\n"
    run = read(tmp_path, text)
    assert points(run, "loss") == {100 * at: loss((at + 1) // 2) for at in range(1, 81)}
    assert (run["epoch_mean/CrossEntropyWithSoftmax"].value[0], run["eval_metric"].value[0]) == (9.5, 4.5)


def test_a_table_with_a_column_for_each_phase_is_a_record(tmp_path: Path) -> None:
    block = (
        "Running evaluation for step: {0}, epoch: 1\n\n"
        "╒══════════╤════════╤════════════╕\n│          │  train │ validation │\n╞══════════╪════════╪════════════╡\n"
        "│ accuracy │ 0.5000 │     0.4000 │\n├──────────┼────────┼────────────┤\n"
        "│ loss     │ {1:.4f} │     2.5000 │\n╘══════════╧════════╧════════════╛\n"
    )
    run = read(tmp_path, "".join(block.format(at, loss(at)) for at in STEPS))
    assert points(run, "loss") == {at: loss(at) for at in STEPS}
    assert points(run, "eval_accuracy") == dict.fromkeys(STEPS, 0.4)


def test_cells_without_a_value_stay_empty_in_a_table_with_a_rule_of_underscores(tmp_path: Path) -> None:
    row = "    {0:>9}    {1:>9}    {2:>12}    {3:>14}\n"
    header = row.format("Iteration", "LearnRate", "TrainingLoss", "ValidationLoss")
    rows = (row.format(at, 0.01, "" if at == 1 else loss(at), loss(at) if at % 5 == 1 else "") for at in STEPS)
    run = read(tmp_path, "".join([header, row.format("_" * 9, "_" * 9, "_" * 12, "_" * 14), *rows]))
    assert points(run, "loss") == {at: loss(at) for at in STEPS if at > 1}
    assert points(run, "eval_loss") == {at: loss(at) for at in STEPS if at % 5 == 1}
    assert points(run, "learning_rate") == dict.fromkeys(STEPS, 0.01)


def test_rows_whose_counter_comes_last_follow_each_other_without_a_rule(tmp_path: Path) -> None:
    row = "{0:36} {1:>8}\n"
    values = (
        ("replay_buffer/size", 1000),
        ("trainer/QF1 Loss", 0),
        ("trainer/Alpha", 0.5),
        ("eval/Returns", -20),
        ("Epoch", 0),
    )
    text = "".join(
        row.format(name, {"Epoch": at, "trainer/QF1 Loss": loss(at)}.get(name, value))
        for at in STEPS
        for name, value in values
    )
    assert points(read(tmp_path, text), "value_loss") == {at: loss(at) for at in STEPS}


def test_measures_below_a_record_are_of_its_evaluation(tmp_path: Path) -> None:
    text = "".join(f"[{at}] time=1.5, avg_loss={loss(at)}\nEval: 16_h1={at / 8}, 32_h1=0.5\n" for at in STEPS)
    assert points(read(tmp_path, text), "eval_16_h1") == {at: at / 8 for at in STEPS}


def test_times_of_a_batch_and_of_its_data_are_told_apart(tmp_path: Path) -> None:
    line = "Train: [1][{0}/40]\tBT 0.512 (0.600)\tDT 0.125 (0.010)\tloss {1} ({1})\n"
    run = read(tmp_path, "".join(line.format(at, loss(at)) for at in STEPS))
    assert (run["step_time"].value[0], run["data_time"].value[0]) == (0.512, 0.125)


def test_a_share_that_is_skipped_is_no_count_of_steps(tmp_path: Path) -> None:
    bars = (f"{at * 2:3d}%|##| {at}/50 [00:01<00:10,  1.2it/s, train_auc=70.{at}%, skipped=1.2%]" for at in STEPS)
    assert "skipped_iterations" not in read(tmp_path, "\r".join(bars)).series


def test_a_phase_and_a_number_behind_a_step_are_its_loss(tmp_path: Path) -> None:
    run = read(tmp_path, "".join(f"{at} val 9.5\n{at} hella 0.25\n{at} train {loss(at):.6f}\n" for at in STEPS))
    assert points(run, "loss") == {at: loss(at) for at in STEPS}
    assert points(run, "eval_loss") == dict.fromkeys(STEPS, 9.5)


def test_counters_that_share_a_cell_of_a_header_are_two_columns(tmp_path: Path) -> None:
    rows = (f"      {at // 4:2d}    {at % 4:2d} {loss(at):12.6g} {at:12.4g}\n" for at in STEPS)
    run = read(tmp_path, "".join(["# Epoch batch         loss       loss_f\n", *rows]))
    assert run["loss"].value.tolist() == [loss(at) for at in STEPS]
    assert run["loss_f"].value.tolist() == list(STEPS)
