"""Conventions of tables and JSON documents: what counts the steps, what is a clock, which names stand for what."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.logs import Run, read_run


def _read(folder: Path, name: str, text: str) -> Run:
    path = folder / name
    path.write_text(text)
    return read_run(path)


def test_stable_baselines_counts_environment_steps_and_logs_minus_the_entropy(tmp_path: Path) -> None:
    run = _read(
        tmp_path,
        "progress.csv",
        "time/iterations,rollout/ep_rew_mean,time/total_timesteps,train/entropy_loss,train/approx_kl,time/time_elapsed\n"
        "1,-20.5,2048,,,2\n2,-19.25,4096,-1.375,0.0125,4\n",
    )
    assert run["reward"].step.tolist() == [2048, 4096]
    assert run["entropy"].value.tolist() == [1.375]
    assert run["approx_kl"].value.tolist() == [0.0125]
    assert run["elapsed"].value.tolist() == [2, 4]


def test_an_episode_monitor_counts_the_steps_of_its_episodes(tmp_path: Path) -> None:
    run = _read(
        tmp_path, "0.monitor.csv", '#{"t_start": 1.5, "env_id": "A"}\nr,l,t\n-5.0,10,1.5\n-4.0,20,3.0\n-3.5,5,4.5\n'
    )
    assert run["reward"].step.tolist() == [10, 30, 35]
    assert run["reward"].value.tolist() == [-5.0, -4.0, -3.5]
    assert any("monitor" in note for note in run.notes)


def test_openai_baselines_names_its_losses(tmp_path: Path) -> None:
    run = _read(
        tmp_path,
        "progress.csv",
        "TimeElapsed,loss_vf_loss,EpRewMean,TimestepsSoFar,loss_ent,loss_kl\n2.5,0.05,0.1,1024,1.25,0.001\n4.5,0.04,0.2,2048,1.2,0.002\n",
    )
    assert run["value_loss"].step.tolist() == [1024, 2048]
    assert run["entropy"].value.tolist() == [1.25, 1.2]
    assert run["reward"].value.tolist() == [0.1, 0.2]


def test_ultralytics_results_count_epochs_and_their_time_is_a_clock(tmp_path: Path) -> None:
    names = ("epoch", "time", "train/box_loss", "metrics/mAP50(B)", "val/box_loss", "lr/pg0")
    rows = (
        (1, 10.5, 1.234, 0.511, 1.345, 0.001),
        (2, 20.5, 1.134, 0.521, 1.245, 0.002),
        (3, 30.5, 1.034, 0.5, 1.1, 0.003),
    )
    text = "".join(",".join(f"{cell:>23}" for cell in row) + "\n" for row in (names, *rows))
    run = _read(tmp_path, "results.csv", text)
    assert run.step_name == "epoch"
    assert run["box_loss"].value.tolist() == [1.234, 1.134, 1.034]
    assert run["eval_box_loss"].value.tolist() == [1.345, 1.245, 1.1]
    assert run["learning_rate"].value.tolist() == [0.001, 0.002, 0.003]
    assert "elapsed" in run
    assert "time" not in run


def test_a_keras_log_with_several_runs_has_several_attempts(tmp_path: Path) -> None:
    run = _read(
        tmp_path,
        "training.csv",
        "epoch,accuracy,loss,val_loss\n0,0.5,1.5,1.6\n1,0.6,1.4,1.5\n2,0.7,1.3,1.4\nepoch,accuracy,loss,val_loss\n0,0.4,1.7,1.8\n1,0.5,1.6,1.7\n",
    )
    assert [attempt.records for attempt in run.attempts] == [3, 2]
    assert run["loss"].value.tolist() == [1.7, 1.6]


def test_a_batch_counter_inside_epochs_is_counted_on(tmp_path: Path) -> None:
    run = _read(
        tmp_path, "gan.csv", "Epoch,Batch,Gen Loss,Disc Loss\n0,0,0.5,1.1\n0,1,0.6,1.2\n1,0,0.7,1.3\n1,1,0.8,1.4\n"
    )
    assert run["Gen Loss"].step.tolist() == [0, 1, 2, 3]


def test_a_chart_exported_from_wandb_is_named_by_its_metric(tmp_path: Path) -> None:
    name = "brave-sun-1 - train/loss"
    text = f'"Step","{name}","{name}__MIN","{name}__MAX"\n"4","2.5","2.5","2.5"\n"8","2.25","2.25","2.25"\n'
    run = _read(tmp_path, "export.csv", text)
    assert set(run.series) == {"loss"}
    assert run["loss"].value.tolist() == [2.5, 2.25]


def test_a_chart_with_several_runs_gives_the_one_that_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    path.write_text(
        "Step,a - loss,a - loss__MIN,a - loss__MAX,b - loss,b - loss__MIN,b - loss__MAX\n"
        "1,2.5,2.5,2.5,3.5,3.5,3.5\n2,2.25,2.25,2.25,3.25,3.25,3.25\n3,2.125,2.125,2.125,,,\n"
    )
    assert read_run(path)["loss"].value.tolist() == [2.5, 2.25, 2.125]
    assert read_run(path, run="b")["loss"].value.tolist() == [3.5, 3.25]


def test_columns_without_a_header_are_guessed_and_the_guess_is_told(tmp_path: Path) -> None:
    run = _read(tmp_path, "train_loss.txt", "1.5 0\n1.25 100\n1.125 200\n1.0 300\n")
    assert run["loss"].step.tolist() == [0, 100, 200, 300]
    assert run["loss"].value.tolist() == [1.5, 1.25, 1.125, 1.0]
    assert any("guessed" in note for note in run.notes)


@pytest.mark.parametrize(("name", "series"), [("loss", "loss"), ('"val_loss"', "eval_loss")])
def test_a_name_above_bare_numbers_is_a_table_of_one_column(tmp_path: Path, name: str, series: str) -> None:
    (tmp_path / "log.csv").write_text(f"{name}\n2.5\n2.25\n2.0\nnan\n")

    run = read_run(tmp_path / "log.csv")

    assert run[series].value[:3].tolist() == [2.5, 2.25, 2.0]
    assert len(run[series]) == 4


@pytest.mark.parametrize("values", [{"1": 10.5, "5": 10.25, "10": 10.125}, [10.5, 10.25, 10.125]])
def test_golden_values_are_read_at_their_steps(tmp_path: Path, values: object) -> None:
    document = {"lm loss": {"start_step": 1, "end_step": 10, "step_interval": 5, "values": values}}
    run = _read(tmp_path, "golden_values.json", json.dumps(document))
    assert run["loss"].value.tolist() == [10.5, 10.25, 10.125]
    assert run["loss"].step.tolist() == ([1, 5, 10] if isinstance(values, dict) else [1, 6, 11])


def test_mmcv_json_keeps_validation_apart(tmp_path: Path) -> None:
    lines = [
        {"env_info": "Python 3.10", "seed": 0},
        {"mode": "train", "epoch": 1, "iter": 50, "lr": 0.01, "loss": 2.5},
        {"mode": "train", "epoch": 1, "iter": 100, "lr": 0.02, "loss": 2.25},
        {"mode": "val", "epoch": 1, "iter": 625, "lr": 0.02, "bbox_mAP": 0.125},
        {"mode": "train", "epoch": 2, "iter": 50, "lr": 0.02, "loss": 2.0},
    ]
    run = _read(tmp_path, "run.log.json", "\n".join(map(json.dumps, lines)))
    assert run["loss"].value.tolist() == [2.5, 2.25, 2.0]
    assert run["loss"].step.tolist() == [50, 100, 150]
    assert run["eval_bbox_map"].value.tolist() == [0.125]


def test_all_results_of_the_trainer_are_a_summary(tmp_path: Path) -> None:
    run = _read(
        tmp_path, "all_results.json", '{"epoch": 3.0, "eval_loss": 0.5, "train_loss": 0.75, "train_runtime": 10.5}'
    )
    assert run.records == 1
    assert "loss" not in run
    assert run["summary/eval_loss"].value.tolist() == [0.5]


def test_ms_swift_writes_its_step_with_the_total(tmp_path: Path) -> None:
    rows = [
        {"loss": 2.5, "learning_rate": 1e-5, "epoch": 0.1, "global_step/max_steps": "5/100", "percentage": "5.00%"},
        {"loss": 2.25, "learning_rate": 2e-5, "epoch": 0.2, "global_step/max_steps": "10/100", "percentage": "10.00%"},
    ]
    run = _read(tmp_path, "logging.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert run["loss"].step.tolist() == [5, 10]


def test_a_nan_that_the_trainer_hides_is_told(tmp_path: Path) -> None:
    history = [
        {"step": 10, "epoch": 0.1, "loss": 2.5, "grad_norm": 1.0, "learning_rate": 1e-5},
        {"step": 20, "epoch": 0.2, "loss": 2.5, "grad_norm": float("nan"), "learning_rate": 1e-5},
    ]
    run = _read(tmp_path, "trainer_state.json", json.dumps({"log_history": history}))
    assert any("logging_nan_inf_filter" in note for note in run.notes)


def test_a_text_without_metrics_or_errors_is_refused_with_a_reason(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no metrics found"):
        _read(tmp_path, "notes.txt", "Dear diary, today I trained a model.\nIt was good.\n")


def test_a_log_of_errors_alone_is_read_for_its_errors(tmp_path: Path) -> None:
    run = _read(tmp_path, "crash.log", "RuntimeError: CUDA error: out of memory\n")
    assert run.records == 0
    assert [message.line for message in run.messages] == [1]
    assert any("no metrics" in note for note in run.notes)


@pytest.mark.parametrize("copies", [1, 20_000])
def test_an_error_in_structured_records_is_kept(tmp_path: Path, copies: int) -> None:
    lines = [f'{{"step": {step}, "loss": 2.5, "note": "a line like others"}}\n' for step in range(1, copies + 1)]
    crash = '{"time": 12.5, "level": "ERROR", "message": "torch.OutOfMemoryError: CUDA out of memory."}\n'
    run = _read(tmp_path, "train.jsonl", "".join([*lines, '{"level": "INFO", "message": "saved"}\n', crash]))
    assert [one.text[:22] for one in run.messages] == ["torch.OutOfMemoryError"]
    assert len(run["loss"]) == copies


def test_structured_records_of_errors_alone_are_read_for_their_errors(tmp_path: Path) -> None:
    run = _read(tmp_path, "errors.jsonl", '{"error": "CUDA error: device-side assert triggered", "rank": "one"}\n')
    assert [one.text for one in run.messages] == ["CUDA error: device-side assert triggered"]
    assert any("no metrics" in note for note in run.notes)


def test_an_error_in_what_a_model_wrote_is_no_error_of_the_run(tmp_path: Path) -> None:
    row = '{"step": 1, "reward": 0.5, "completion": "ValueError: x must be positive"}\n'
    assert _read(tmp_path, "train.jsonl", row * 3).messages == ()


HISTORY = {"loss": [2.5, 2.0, 1.5], "acc": [0.25, 0.5, 0.625]}
EVALUATED = {"loss": [2.75, 2.25, 1.75], "acc": [0.125, 0.375, 0.5]}


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize(
    "document",
    [
        {"train": HISTORY, "val": EVALUATED},
        {"args": {"lr": 0.1, "betas": [0.9, 0.99]}, "train": HISTORY, "val": EVALUATED},
        {"train_loss": HISTORY["loss"], "val_loss": EVALUATED["loss"], "args": {"lr": 0.1}, "best_epoch": 2},
        {"history": {"loss": HISTORY["loss"], "val_loss": EVALUATED["loss"]}},
        {"train": {"rmse": HISTORY["loss"]}, "eval": {"rmse": EVALUATED["loss"]}},
        {
            "epochs": [
                {"train": {"loss": loss}, "val": {"loss": eval_loss}}
                for loss, eval_loss in zip(HISTORY["loss"], EVALUATED["loss"], strict=True)
            ]
        },
    ],
    ids=["phases", "beside settings", "flat", "one group", "measures", "records"],
)
def test_columns_are_read_wherever_they_stand_in_a_document(
    document: object, indent: int | None, tmp_path: Path
) -> None:
    (tmp_path / "history.json").write_text(json.dumps(document, indent=indent))
    run = read_run(tmp_path / "history.json")
    assert run["loss"].value.tolist() == HISTORY["loss"]
    assert run["eval_loss"].value.tolist() == EVALUATED["loss"]


@pytest.mark.parametrize(
    "table",
    [
        "epoch;train_loss;val_loss\n1;2,110;2,210\n2;0,966;1,066\n3;0,545;0,645\n",
        "epoch\ttrain_loss\tval_loss\n1\t2,110\t2,210\n2\t0,966\t1,066\n3\t0,545\t0,645\n",
        'epoch,train_loss,val_loss\n1,"2,110","2,210"\n2,"0,966","1,066"\n3,"0,545","0,645"\n',
    ],
    ids=["semicolons", "tabs", "quotes"],
)
def test_a_table_with_decimal_commas_is_no_table_of_thousands(table: str, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(table)
    run = read_run(tmp_path / "log.csv")
    assert run["loss"].value.tolist() == [2.11, 0.966, 0.545]
    assert run["eval_loss"].value.tolist() == [2.21, 1.066, 0.645]
    assert any("decimal commas" in note for note in run.notes)


@pytest.mark.parametrize(("measures", "kind"), [(("logloss", "auc"), "boosting"), (("mse", "auc"), "supervised")])
def test_the_results_of_boosting_say_that_trees_were_boosted(
    measures: tuple[str, ...], kind: str, tmp_path: Path
) -> None:
    path = tmp_path / "evals.json"
    path.write_text(json.dumps({part: {key: [0.6, 0.5, 0.4] for key in measures} for part in ("train", "eval")}))
    run = read_run(path)
    assert run.kind == kind
    assert run["eval_loss"].value.tolist() == [0.6, 0.5, 0.4]


def test_a_column_that_is_far_shorter_than_the_others_is_spread_over_them(tmp_path: Path) -> None:
    history = {
        "step": [*range(10, 310, 10)],
        "train_loss": [2.0 - 0.01 * i for i in range(30)],
        "val_loss": [2.1, 2, 1.9],
    }
    run = _read(tmp_path, "history.json", json.dumps(history))
    assert run["eval_loss"].step.tolist() == [100, 200, 300]
    assert run["loss"].step.tolist() == history["step"]


@pytest.mark.parametrize(
    ("epochs", "values", "steps"), [(10, 3, [3, 6, 9]), (10, 2, [5, 10]), (7, 3, [2, 4, 6]), (10, 4, [3, 5, 8, 10])]
)
def test_values_of_each_so_many_epochs_stand_at_their_multiples(
    epochs: int, values: int, steps: list[int], tmp_path: Path
) -> None:
    """Source: `History.history` of Keras 3.15.1 with `validation_freq`; of the last row no frequency is known."""
    history = {"loss": [5 - 0.1 * at for at in range(epochs)], "val_loss": [4 - 0.1 * at for at in range(values)]}
    assert _read(tmp_path, "history.json", json.dumps(history))["eval_loss"].step.tolist() == steps


def test_a_column_that_lacks_its_last_values_keeps_its_place(tmp_path: Path) -> None:
    run = _read(tmp_path, "history.json", json.dumps({"loss": [5, 4, 3, 2, 1], "val_loss": [5.5, 4.5, 3.5, 2.5]}))
    assert (run["eval_loss"].step - run["loss"].step[0]).tolist() == [0, 1, 2, 3]


def test_an_error_printed_below_json_lines_ends_the_run(tmp_path: Path) -> None:
    records = "".join(json.dumps({"step": step, "loss": 3 - step / 20}) + "\n" for step in range(1, 31))
    words = 'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    loss.backward()\n'
    died = _read(tmp_path, "died.jsonl", f"{records}{words}torch.OutOfMemoryError: CUDA out of memory. Tried to\n")
    assert died.ending.how == "error"
    assert "out of memory" in died.messages[-1].text
    assert died.messages[-1].records == 30
    assert not any("cut off" in note for note in died.notes)


def test_an_error_between_json_lines_does_not_end_the_run(tmp_path: Path) -> None:
    lines = [json.dumps({"step": step, "loss": 3 - step / 20}) for step in range(1, 31)]
    run = _read(tmp_path, "log.jsonl", "\n".join([*lines[:10], "RuntimeError: upload failed", *lines[10:], ""]))
    assert run.ending.how != "error"
    assert len(run["loss"]) == 30


def test_json_lines_of_which_the_last_is_half_written_are_told_as_cut_off(tmp_path: Path) -> None:
    run = _read(tmp_path, "log.jsonl", '{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 1.9}\n{"step": 3, "lo')
    assert any("cut off" in note for note in run.notes)


def test_a_table_that_is_printed_below_other_text_may_count_samples_instead_of_steps(tmp_path: Path) -> None:
    rows = "".join(f"{64 * n},{-1 / n}\n" for n in range(1, 9))
    run = _read(tmp_path, "train.log", f"loading data\nsamples_seen,train.total_loss\n{rows}")
    assert run["loss"].value.tolist() == [-1 / n for n in range(1, 9)]
    assert run["samples_seen"].value.tolist() == [64 * n for n in range(1, 9)]


def test_names_of_a_table_that_touch_are_parted_by_the_columns_below(tmp_path: Path) -> None:
    names = ["step", "loss", "lr", "test_loss", "test_pearson_r", "test_train_pearson_r"]
    rows = [
        [f"{5 * i}", f"{2 - i / 40:.4e}", "2.0000e-03", f"{2 - i / 50:.4e}", f"{i / 50:.4e}", "-"] for i in range(1, 30)
    ]
    lines = ["".join(f"{cell:>14}" for cell in row) for row in [names, *rows]]
    run = _read(tmp_path, "history.txt", "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]]))
    assert run.last_step == 145
    assert run["loss"].value[0] == 1.975
    assert run["test_pearson_r"].value[-1] == 0.58


@pytest.mark.parametrize("width", [0, 12, 25])
def test_names_that_touch_at_the_left_of_their_columns_are_parted_by_the_first_row(tmp_path: Path, width: int) -> None:
    names = ["epoch", "train_loss", "train_params_changed_frac", "valid_loss", "accuracy", "time"]
    rows = [
        [f"{at}", f"{2 - at / 8:.6f}", f"{at / 9:.6f}", f"{3 - at / 8:.6f}", f"{at / 16:.6f}", f"00:1{at}"]
        for at in range(9)
    ]
    widths = [width or max(8, len(name)) for name in names]
    cells = [zip(row, widths, strict=True) for row in [names, *rows]]
    run = _read(tmp_path, "train.log", "\n".join("".join(f"{cell:<{wide}}" for cell, wide in row) for row in cells))
    assert run["loss"].value.tolist() == [2 - at / 8 for at in range(9)]
    assert run["train_params_changed_frac"].value[-1] == pytest.approx(8 / 9, abs=1e-6)
    assert run["eval_loss"].value.tolist() == [3 - at / 8 for at in range(9)]
    assert run["eval_accuracy"].value.tolist() == [at / 16 for at in range(9)]


def test_a_name_wider_than_its_column_does_not_move_the_values_of_the_others(tmp_path: Path) -> None:
    names = ["step", "loss", "test_loss", "test_label_frac", "test_acc"]
    rows = [[f"{5 * i}", f"{2 - i / 40:.4e}", f"{2 - i / 50:.4e}", "2.8000e-01", f"{i / 50:.4e}"] for i in range(1, 30)]
    text = "\n".join("".join(f"{cell:>14}" for cell in row) for row in [names, *rows])
    run = _read(tmp_path, "history.txt", text)
    assert run.last_step == 145
    assert run["loss"].value[0] == 1.975
    assert run["eval_accuracy"].value[-1] == 0.58


def test_a_table_in_markdown_may_have_empty_cells_and_a_norm_in_bars(tmp_path: Path) -> None:
    rows = [f"| {at} | {2 - at / 50} | 1.5 | {0.5 if at % 10 == 0 else ''} |" for at in range(1, 41)]
    (tmp_path / "report.md").write_text("\n".join(["| it | loss | |g| | acc |", "|---|---|---|---|", *rows]))
    run = read_run(tmp_path)
    assert run["loss"].step.tolist() == list(range(1, 41))
    assert len(run["grad_norm"]) == 40
    assert run["accuracy"].step.tolist() == [10, 20, 30, 40]


def test_a_history_that_is_written_out_with_its_epochs_beside_it_is_read(tmp_path: Path) -> None:
    history = {"loss": [2.0, 1.5, 1.2], "val_loss": [2.1, 1.7, 1.6]}
    path = tmp_path / "history.json"
    path.write_text(json.dumps({"history": history, "epoch": [0, 1, 2], "params": {"epochs": 3, "steps": 40}}))
    run = read_run(path)
    assert run["loss"].value.tolist() == history["loss"]
    assert run["eval_loss"].value.tolist() == history["val_loss"]


@pytest.mark.parametrize(("head", "side"), [("┃", "│"), ("│", "│"), ("║", "║"), ("|", "|")])
def test_a_table_with_drawn_sides_is_read_as_one_with_typed_ones(tmp_path: Path, head: str, side: str) -> None:
    rows = [f"{side} {step:>4} {side} {3 - step / 100:.4f} {side} {1 + step / 7:.3f} {side}" for step in range(1, 61)]
    evaluated = f"{side}   60 {side}      - {side}      - {side}"
    text = "\n".join(["┏━━━━━━┳━━━━━━┳━━━━━━┓", f"{head} step {head} loss {head} gnorm {head}", *rows, evaluated, ""])
    run = _read(tmp_path, "console.txt", text)
    assert run["loss"].value.tolist() == pytest.approx([3 - step / 100 for step in range(1, 61)])
    assert run["grad_norm"].step.tolist() == list(range(1, 61))
