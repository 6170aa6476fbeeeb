"""What a log means beyond its names is found out and told in the notes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.logs.reading import points, read

from mldebug_mcp.logs import Run, read_run

SAMPLES = Path(__file__).parent / "samples"


def _read(folder: Path, rows: list[dict[str, float]], config: dict[str, float]) -> Run:
    (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "config.json").write_text(json.dumps(config))
    return read_run(folder / "log.jsonl")


def _told(run: Run, word: str) -> list[str]:
    return [note for note in run.notes if word in note]


@pytest.mark.parametrize(("factor", "word"), [(1, "mean"), (8, "sum")])
def test_the_first_loss_tells_whether_micro_batches_are_summed(tmp_path: Path, factor: int, word: str) -> None:
    rows = [{"step": step, "loss": factor * (10.9 - step / 50)} for step in range(1, 60)]
    run = _read(tmp_path, rows, {"gradient_accumulation_steps": 8, "vocab_size": 50257})
    assert len(_told(run, f"the {word} over 8 accumulated micro-batches")) == 1


@pytest.mark.parametrize(("factor", "word"), [(1, "mean"), (4, "sum")])
def test_the_evaluation_tells_it_where_the_run_begins_with_a_trained_model(
    tmp_path: Path, factor: int, word: str
) -> None:
    rows = [{"step": step, "loss": factor * 1.5} for step in range(1, 60)]
    rows += [{"step": 60, "eval_loss": 1.6}]
    run = _read(tmp_path, rows, {"gradient_accumulation_steps": 4})
    assert len(_told(run, f"the {word} over 4 accumulated micro-batches")) == 1


@pytest.mark.parametrize("config", [{}, {"gradient_accumulation_steps": 1, "vocab_size": 50257}])
def test_without_accumulation_nothing_is_told_of_it(tmp_path: Path, config: dict[str, float]) -> None:
    rows = [{"step": step, "loss": 10.8, "eval_loss": 10.8} for step in range(1, 60)]
    assert not _told(_read(tmp_path, rows, config), "accumulated")


def test_a_loss_that_fits_neither_is_not_guessed_about(tmp_path: Path) -> None:
    rows = [{"step": step, "loss": 2.5} for step in range(1, 60)]
    assert not _told(_read(tmp_path, rows, {"gradient_accumulation_steps": 8, "vocab_size": 50257}), "accumulated")


def test_the_trainer_that_was_really_run_logs_the_mean(tmp_path: Path) -> None:
    state = (SAMPLES / "trainer" / "accumulated" / "trainer_state.json").read_text()
    (tmp_path / "trainer_state.json").write_text(state)
    (tmp_path / "config.json").write_text('{"gradient_accumulation_steps": 4, "vocab_size": 64}')
    assert _told(read_run(tmp_path), "the mean over 4 accumulated micro-batches")


@pytest.mark.parametrize("file", ["", "trainer_state.json", "log_history.csv", "stdout.log"])
def test_a_trainer_with_a_loss_of_ones_own_logs_the_sum(file: str) -> None:
    run = read_run(SAMPLES / "trainer" / "summed" / file)
    assert _told(run, "the sum over 4 accumulated micro-batches: it is at 4.088 x eval_loss; divide by 4")


def test_an_accuracy_above_one_is_told_to_be_in_percent(tmp_path: Path) -> None:
    run = _read(tmp_path, [{"epoch": epoch, "loss": 1.0, "val_acc": 90.0 + epoch} for epoch in range(3)], {})
    assert _told(run, "val_acc: in percent")
    assert run["eval_accuracy"].value.tolist() == [90, 91, 92]


def test_milliseconds_become_seconds(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("".join(f"step {step} loss 2.5 step_time 250.0ms\n" for step in (1, 2, 3)))
    (tmp_path / "b.csv").write_text("step,loss,step_time_ms\n1,2.5,250\n2,2.5,250\n3,2.5,250\n")
    for name in ("a.log", "b.csv"):
        assert read_run(tmp_path / name)["step_time"].value.tolist() == [0.25] * 3


@pytest.mark.parametrize(
    ("printed", "gib"),
    [("11163", 11163 / 1024), ("8589934592", 8.0), ("11.5", 11.5), ("9216MB", 9.0), ("nan", math.nan)],
)
def test_a_memory_without_a_unit_is_in_the_one_that_a_device_can_have(tmp_path: Path, printed: str, gib: float) -> None:
    lines = (f"step {step} loss: {2.5 - step / 100} memory: {printed}" for step in range(1, 20))
    run = read(tmp_path, "\n".join(lines))
    assert run["memory"].value.tolist() == pytest.approx([gib] * 19, nan_ok=True)
    assert any("by its size" in note for note in run.notes) is printed.isdigit()


def test_steps_with_thousands_separators_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("".join(f"step {step:,}: loss 2.5\n" for step in (500, 1000, 1500, 12000)))
    assert read_run(tmp_path / "a.log")["loss"].step.tolist() == [500, 1000, 1500, 12000]


def test_a_dict_that_was_wrapped_over_lines_is_one_record(tmp_path: Path) -> None:
    rows = "".join(
        f"{{'loss': 2.5, 'grad_norm': 1.25,\n 'learning_rate': 1e-05,\n 'epoch': {epoch}.0}}\n"
        for epoch in (1, 2, 3, 4, 5)
    )
    (tmp_path / "a.log").write_text(rows)
    run = read_run(tmp_path / "a.log")
    assert run.records == 5
    assert run.step_name == "epoch"
    assert run["loss"].step.tolist() == [1, 2, 3, 4, 5]
    assert run["learning_rate"].value.tolist() == [1e-05] * 5


def test_an_explained_variance_of_nan_is_kept_and_makes_no_loss_nan(tmp_path: Path) -> None:
    (tmp_path / "progress.csv").write_text(
        "time/total_timesteps,train/loss,train/explained_variance\n2048,0.5,nan\n4096,0.25,nan\n6144,0.125,0.5\n"
    )
    run = read_run(tmp_path / "progress.csv")
    assert run["loss"].value.tolist() == [0.5, 0.25, 0.125]
    assert run["explained_variance"].value.tolist() == pytest.approx([math.nan, math.nan, 0.5], nan_ok=True)


@pytest.mark.parametrize(
    ("printed", "metric"),
    [("loss:sum", "loss"), ("train/box_om", "box_om"), ("eval_g0_loss", "eval_g0_loss"), ("val/box_om", "eval_box_om")],
)
def test_odd_names_are_read(tmp_path: Path, printed: str, metric: str) -> None:
    run = _read(tmp_path, [{"step": step, printed: 2.5} for step in (1, 2, 3)], {})
    assert run[metric].value.tolist() == [2.5] * 3


def test_a_table_without_a_counter_counts_its_rows_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "history.csv").write_text("loss,val_loss\n2.5,2.75\n2.25,2.5\n2.0,2.25\n")
    run = read_run(tmp_path / "history.csv")
    assert run.step_name == "record"
    assert run["eval_loss"].step.tolist() == [1, 2, 3]
    assert _told(run, "no step counter")


HELD = "Epoch 1 | iter {} step {} | loss train: {:.3f}, val: {} | iter time: 100.00 ms (step)\n"


def test_a_loss_that_fails_beside_its_evaluation_stays_nan(tmp_path: Path) -> None:
    run = read(tmp_path, "step,loss,val_loss\n1,2.5,2.75\n2,nan,2.5\n3,nan,nan\n", "metrics.csv")
    assert np.isnan(run["loss"].value).tolist() == [False, True, True]


def test_the_loss_of_an_embedding_keeps_its_own_name_too(tmp_path: Path) -> None:
    run = read(tmp_path, "step 1 triplet_loss: 0.5\nstep 2 triplet_loss: 0.25\n")
    assert points(run, "loss") == points(run, "triplet_loss") == {1: 0.5, 2: 0.25}


def test_an_evaluation_that_is_printed_again_with_each_record_counts_once(tmp_path: Path) -> None:
    lines = [
        HELD.format(step, step, 3 - step / 100, "n/a" if step < 5 else 2.5 if step < 9 else 2.25)
        for step in range(1, 13)
    ]
    run = read(tmp_path, "".join(lines))
    assert points(run, "eval_loss") == {5: 2.5, 9: 2.25}


def test_an_evaluation_from_before_the_log_began_is_left_out_and_told(tmp_path: Path) -> None:
    run = read(tmp_path, "".join(HELD.format(step, step, 3 - step / 1000, 4.5) for step in range(500, 512)))
    assert "eval_loss" not in run
    assert any("before the log begins" in note for note in run.notes)


def test_an_evaluation_that_never_changes_over_epochs_is_kept(tmp_path: Path) -> None:
    run = read(tmp_path, "".join(f"Epoch {epoch}: loss: {3 - epoch / 100}, val_loss: 2.5\n" for epoch in range(1, 13)))
    assert run["eval_loss"].value.tolist() == [2.5] * 12


@pytest.mark.parametrize(
    ("training", "evaluation"),
    [("contrastive_loss", "val_contrastive_loss"), ("Average triplet loss", "val_triplet_loss"), ("mse", "val_mse")],
)
def test_a_single_loss_with_a_name_of_its_own_is_the_loss(tmp_path: Path, training: str, evaluation: str) -> None:
    rows = [{"step": step, training: 3 - step / 20, evaluation: 3.1 - step / 20} for step in range(1, 20)]
    run = _read(tmp_path, rows, {})
    assert run["loss"].value[-1] == pytest.approx(2.05)
    assert run["eval_loss"].value[-1] == pytest.approx(2.15)
    assert _told(run, f"{training!r} is read as the loss")


@pytest.mark.parametrize(
    "names",
    [
        ("loss", "mse"),
        ("recon_loss", "percep_loss"),
        ("Loss_D", "Loss_G"),
        ("kl_loss", "lr"),
        ("val_mse", "lr"),
        ("policy_loss", "mse"),
        ("cls_loss", "lr"),
    ],
)
def test_where_several_or_only_a_part_are_logged_none_is_made_the_loss(tmp_path: Path, names: tuple[str, str]) -> None:
    run = _read(tmp_path, [{"step": step, names[0]: 3 - step / 20, names[1]: 1.5} for step in range(1, 20)], {})
    assert not _told(run, "is read as the loss")


def test_the_loss_of_classes_is_the_loss_where_right_answers_are_counted(tmp_path: Path) -> None:
    rows = [{"step": step, "train/cls_loss": 3 - step / 20, "train/top1": 0.3 + step / 40} for step in range(1, 20)]
    assert _read(tmp_path, rows, {})["loss"].value[-1] == pytest.approx(2.05)


def test_a_total_beside_its_parts_is_the_loss_unless_it_counts(tmp_path: Path) -> None:
    rows = [{"step": step, "total": 3 - step / 20, "kd": 2.0, "ce": 1.0 - step / 30} for step in range(1, 20)]
    assert _read(tmp_path, rows, {})["loss"].value[0] == pytest.approx(2.95)
    rows = [{"step": step, "total": 500.0, "kd": 2.0, "ce": 1.0 - step / 30} for step in range(1, 20)]
    assert _told(_read(tmp_path, rows, {}), "'ce' is read as the loss")


@pytest.mark.parametrize(("is_sum", "loss"), [(True, 5.2), (False, None)])
def test_a_total_of_losses_with_names_is_the_loss_where_it_is_their_sum(
    tmp_path: Path, is_sum: bool, loss: float | None
) -> None:
    parts = [(3 - step / 20, 5 * 0.9**step) for step in range(1, 20)]
    rows: list[dict[str, float]] = [
        {"step": step, "total": one + 0.5 * other if is_sum else 12 + step**2 % 7 / 5, "a_loss": one, "b_loss": other}
        for step, (one, other) in enumerate(parts, 1)
    ]
    run = _read(tmp_path, rows, {})
    assert (round(run["loss"].value[0], 2) if "loss" in run else None) == loss


def test_an_evaluation_by_another_measure_is_not_compared(tmp_path: Path) -> None:
    rows = [{"step": step, "total": 3 - step / 20, "ce": 1.0, "val_ce": 1.1} for step in range(1, 20)]
    assert "eval_loss" not in _read(tmp_path, rows, {})


def test_an_error_that_is_infinite_from_the_first_record_on_is_the_loss(tmp_path: Path) -> None:
    log = tmp_path / "results.csv"
    log.write_text("epoch,train_mse,val_mse\n" + "".join(f"{epoch},inf,inf\n" for epoch in range(6)))
    assert read_run(log)["loss"].value.tolist() == [math.inf] * 6


def test_an_evaluation_that_stands_still_at_last_is_worked_out_each_time(tmp_path: Path) -> None:
    evaluation = [0.9, 0.8, 0.7, 0.6, *[0.5] * 16]
    rows = [{"step": float(5 * at), "loss": 0.5**at, "eval_loss": one} for at, one in enumerate(evaluation)]
    assert len(_read(tmp_path, rows, {})["eval_loss"]) == 20


def test_the_evaluation_of_a_likelihood_stands_beside_that_of_training(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("".join(f"Epoch {at} train nll {3 - at / 10:.2f} val nll {3.1 - at / 10:.2f}\n" for at in range(9)))
    run = read_run(path)
    assert run["eval_loss"].value.tolist() == pytest.approx([3.1 - at / 10 for at in range(9)])


def test_a_likelihood_beside_another_loss_keeps_its_name(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("".join(f"Epoch {at} train loss {9 - at:.2f} val nll {3.1 - at / 10:.2f}\n" for at in range(9)))
    assert "eval_loss" not in read_run(path)


def test_the_loss_of_kair_is_that_of_a_generator_without_an_opponent(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    line = "26-01-01 10:00:20.123 : <epoch:{at:3d}, iter:{step:8,d}, lr:1e-4> G_loss: {loss:.3e}{more} \n"
    test = "26-01-01 10:00:20.123 : <epoch:{at:3d}, iter:{step:8,d}, Average PSNR : {psnr:.2f}dB\n"
    path.write_text(
        "".join(
            line.format(at=at, step=1000 * at, loss=1 / at, more="") + test.format(at=at, step=1000 * at, psnr=20 + at)
            for at in range(1, 9)
        )
    )
    run = read_run(path)
    assert run["loss"].value.tolist() == pytest.approx([1 / at for at in range(1, 9)], rel=1e-3)
    assert run["Average PSNR"].value.tolist() == [21, 22, 23, 24, 25, 26, 27, 28]
    path.write_text("".join(line.format(at=1, step=at, loss=1 / at, more=" D_real: 0.5") for at in range(1, 9)))
    assert "loss" not in read_run(path)


def _of_pairs(folder: Path, more: str = "") -> Run:
    lines = (
        f"step {step} loss {0.69 - step / 100:.3f} reward_accuracy {0.5 + step / 100:.2f} "
        f"train-margin {step / 50:.2f}{more}\n"
        for step in range(1, 31)
    )
    return read(folder, "".join(lines))


def test_the_accuracy_and_the_margin_of_rewards_are_those_of_pairs(tmp_path: Path) -> None:
    run = _of_pairs(tmp_path)
    assert run["rewards/accuracies"].value[0] == 0.51
    assert run["margin"].value[0] == 0.02
    assert run.kind == "preference"


def test_an_accuracy_of_the_reward_of_a_policy_is_one_of_its_rewards(tmp_path: Path) -> None:
    run = _of_pairs(tmp_path, " reward 0.5 kl 0.01 completion_length 120")
    assert "rewards/accuracies" not in run
    assert run.kind == "grpo"


def test_symbols_of_papers_are_read_as_what_they_stand_for(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    rows = [f"{i},{2 - i / 20},{1 + i / 10},0.001,{2.1 - i / 20}" for i in range(1, 21)]
    path.write_text("\n".join(["iter,objective,|g|,eta,dev_loss", *rows]))
    run = read_run(path)
    assert {"loss", "grad_norm", "learning_rate", "eval_loss"} <= run.series.keys()
    assert run["loss"].value[0] == 1.95


def test_an_eta_that_counts_down_is_the_time_that_is_left(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["iter,loss,eta", *(f"{i},{2 - i / 20},{400 - 20 * i}" for i in range(1, 21))]))
    assert "learning_rate" not in read_run(path).series


def test_a_log_of_evaluations_keeps_the_loss_of_another_set_beside_its_own(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("\n".join(["step,loss", *(f"{i},{2 - i / 50}" for i in range(1, 41))]))
    rows = [f"{i},{2 - i / 50},{2 + i / 50}" for i in range(10, 41, 10)]
    (tmp_path / "valid.csv").write_text("\n".join(["step,loss,test_loss", *rows]))
    run = read_run(tmp_path)
    assert run["eval_loss"].value.tolist() == [1.8, 1.6, 1.4, 1.2]
    assert run["test_loss"].value.tolist() == [2.2, 2.4, 2.6, 2.8]


def test_a_bare_length_is_that_of_completions_in_the_log_of_a_policy_and_of_episodes_in_that_of_an_agent(
    tmp_path: Path,
) -> None:
    rows = [{"step": i, "reward": i / 40, "reward_std": 0.2, "kl": 0.01, "length": 10 + i} for i in range(1, 31)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    run = read_run(tmp_path / "a.jsonl")
    assert (run.kind, run["completion_length"].value[-1]) == ("grpo", 40)
    agent = [{"step": i, "reward": i / 40, "value_loss": 0.2, "length": 10 + i} for i in range(1, 31)]
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, agent)))
    assert "completion_length" not in read_run(tmp_path / "b.jsonl")


def _lines(folder: Path, rows: Sequence[Mapping[str, object]]) -> Run:
    (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return read_run(folder / "log.jsonl")


def test_an_objective_is_the_loss_wherever_it_stands_and_the_held_out_one_that_of_evaluation(tmp_path: Path) -> None:
    run = _lines(
        tmp_path,
        [
            {"update": at, "train": {"objective": 2 - at / 50, "gradient_l2": 0.5, "eta": 0.002}}
            | ({"validation": {"holdout_objective": 2.1 - at / 50}} if at % 10 == 0 else {})
            for at in range(1, 41)
        ],
    )
    assert {"loss", "eval_loss", "grad_norm", "learning_rate"} <= run.series.keys()
    assert run["loss"].value[0] == 1.98
    assert run["eval_loss"].value.tolist() == pytest.approx([1.9, 1.7, 1.5, 1.3])


def test_a_single_capital_letter_is_the_loss_of_a_log_that_has_no_other(tmp_path: Path) -> None:
    run = _lines(tmp_path, [{"it": at, "L": 2 - at / 50, "|g|": 1.5, "Lval": 2.1 - at / 60} for at in range(1, 41)])
    assert {"loss", "eval_loss", "grad_norm"} <= run.series.keys()


@pytest.mark.parametrize(("name", "seconds"), [("sec", 0.5), ("seconds", 0.5), ("ms", 0.0005)])
def test_a_column_called_by_a_unit_of_time_is_the_time_of_a_step_or_a_clock(
    tmp_path: Path, name: str, seconds: float
) -> None:
    steps = [{"step": at, "loss": 2 - at / 50, name: 0.5 + 0.1 * (at % 2)} for at in range(0, 40, 2)]
    assert _lines(tmp_path, steps)["step_time"].value[0] == seconds
    clock = [{"step": at, "loss": 2 - at / 50, name: 0.5 * at} for at in range(1, 41)]
    assert "step_time" not in _lines(tmp_path, clock).series
    assert "elapsed" in _lines(tmp_path, clock).series


def test_a_score_that_is_logged_with_evaluations_alone_is_of_evaluation(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"step": at, "loss": 2 - at / 50} for at in range(1, 41)]
    for at in (9, 19, 29, 39):
        rows[at] |= {"val_loss": 2.0, "clicks_auc": 0.5 + at / 100}
    run = _lines(tmp_path, rows)
    assert run["eval_clicks_auc"].value.tolist() == [0.59, 0.69, 0.79, 0.89]
    assert _told(run, "clicks_auc")


def test_a_score_that_is_logged_with_every_loss_is_of_training(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"step": at, "loss": 2 - at / 50, "acc": at / 50} for at in range(1, 41)]
    for at in (9, 19, 29, 39):
        rows[at] |= {"val_loss": 2.0}
    run = _lines(tmp_path, rows)
    assert "accuracy" in run
    assert "eval_accuracy" not in run


def test_an_eta_that_stands_still_is_the_learning_rate_however_high(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["iter,loss,eta", *(f"{i},{2 - i / 20},3.0" for i in range(1, 21))]))
    assert read_run(path)["learning_rate"].value.tolist() == [3.0] * 20


OF_A_POLICY = {"reward": 0.01, "kl": 0.001, "loss": 0.02}
OF_AN_AGENT = {"mean_return": 2.0, "policy_loss": 0.01, "ep_len": 3.0}


def _beside(folder: Path, rising: Mapping[str, float], name: str, first: float, last: float) -> frozenset[str]:
    rows = [{"step": step, **{one: by * step for one, by in rising.items()}} for step in range(40)]
    for row, value in zip(rows, np.linspace(first, last, len(rows)), strict=True):
        row[name] = float(value)
    return frozenset(_read(folder, rows, {}).series)


@pytest.mark.parametrize(
    "name",
    ["comp_len", "gen_len", "resp_len", "out_len", "output_length", "answer_len", "response_tokens", "gen_tokens_mean"],
)
def test_the_length_of_what_a_policy_writes_is_read_in_any_wording(tmp_path: Path, name: str) -> None:
    assert "completion_length" in _beside(tmp_path, OF_A_POLICY, name, 200.0, 420.0)


@pytest.mark.parametrize(
    ("name", "quantity"),
    [
        ("zero_std_groups", "frac_reward_zero_std"),
        ("groups_no_variance", "frac_reward_zero_std"),
        ("uniform_groups", "frac_reward_zero_std"),
        ("truncated", "completions/clipped_ratio"),
        ("overlong", "completions/clipped_ratio"),
        ("ratio_mean", "policy_ratio"),
        ("seq_entropy", "entropy"),
    ],
)
def test_a_share_of_a_policy_is_read_by_its_values(tmp_path: Path, name: str, quantity: str) -> None:
    assert quantity in _beside(tmp_path, OF_A_POLICY, name, 0.1, 0.9)
    assert quantity not in _beside(tmp_path, {"loss": 0.1}, name, 0.1, 0.9)


def test_a_count_of_groups_is_no_share(tmp_path: Path) -> None:
    assert "frac_reward_zero_std" not in _beside(tmp_path, OF_A_POLICY, "zero_std_groups", 3.0, 14.0)


def test_episodes_that_are_truncated_are_no_completions(tmp_path: Path) -> None:
    assert "completions/clipped_ratio" not in _beside(tmp_path, OF_AN_AGENT, "truncated", 0.1, 0.9)


@pytest.mark.parametrize(
    ("name", "quantity"),
    [
        ("loss_value", "value_loss"),
        ("exp_var", "explained_variance"),
        ("explore_eps", "exploration_rate"),
        ("kl_loss", "kl"),
    ],
)
def test_abbreviations_of_an_agent_are_read_beside_its_returns(tmp_path: Path, name: str, quantity: str) -> None:
    assert quantity in _beside(tmp_path, OF_AN_AGENT, name, 0.1, 0.9)


def test_a_clipped_ratio_beside_a_clip_fraction_is_that_of_completions(tmp_path: Path) -> None:
    logged = {**OF_A_POLICY, "clip_frac": 0.001, "comp_len": 2.0}
    read_as = _beside(tmp_path, logged, "clipped_ratio", 0.1, 0.9)
    assert {"clip_ratio", "completions/clipped_ratio"} <= read_as


def test_a_clipped_ratio_next_to_lengths_alone_is_that_of_completions(tmp_path: Path) -> None:
    read_as = _beside(tmp_path, {**OF_A_POLICY, "comp_len": 2.0}, "clipped_ratio", 0.1, 0.9)
    assert "completions/clipped_ratio" in read_as
    assert "clip_ratio" not in read_as


def test_tokens_of_each_record_are_no_tokens_seen(tmp_path: Path) -> None:
    rows = [{"step": step, "loss": 2 - step / 40, "total_num_tokens": 9e4 + 7e3 * (step % 3)} for step in range(40)]
    assert "num_tokens" not in _read(tmp_path, rows, {}).series


@pytest.mark.parametrize(("training", "held_out"), [("tr", "te"), ("train", "va"), ("trn", "tst")])
def test_phases_alone_are_losses_in_any_abbreviation(tmp_path: Path, training: str, held_out: str) -> None:
    falls = np.exp(-np.arange(40) / 9)
    rows = [
        {"epoch": at + 1, training: 0.55 + float(fall), held_out: 0.61 + float(fall)} for at, fall in enumerate(falls)
    ]
    assert {"loss", "eval_loss"} <= _read(tmp_path, rows, {}).series.keys()
