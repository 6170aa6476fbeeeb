"""A folder: the logs of one run are merged, several runs are kept apart, the configuration is found."""

from __future__ import annotations

import json
import math
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from tests.hostile.pickles import CALLS, NOTE

from mldebug_mcp.core import access
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.logs import read_run

ROWS = [{"step": step, "loss": 3.0 - step / 100} for step in range(10, 60, 10)]


def _jsonl(path: Path, rows: list[dict[str, float]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_logs_of_one_run_are_merged_by_step_and_nothing_counts_twice(tmp_path: Path) -> None:
    _jsonl(tmp_path / "metrics.jsonl", ROWS)
    (tmp_path / "train.log").write_text(
        "".join(f"step {row['step']} loss {row['loss']:.4f} grad_norm 1.5\n" for row in ROWS)
    )
    run = read_run(tmp_path)
    assert run.records == 5
    assert run["loss"].step.tolist() == [10, 20, 30, 40, 50]
    assert run["grad_norm"].step.tolist() == [10, 20, 30, 40, 50]
    assert run.segments[0].series["grad_norm"].value.tolist() == [1.5] * 5
    assert any("merged" in note for note in run.notes)


def test_error_lines_of_the_other_logs_are_kept(tmp_path: Path) -> None:
    _jsonl(tmp_path / "metrics.jsonl", ROWS)
    (tmp_path / "stderr.err").write_text("Traceback (most recent call last):\nRuntimeError: CUDA out of memory\n")
    assert [message.text for message in read_run(tmp_path).messages][-1] == "RuntimeError: CUDA out of memory"


def test_runs_beside_one_another_are_kept_apart_and_chosen_by_name(tmp_path: Path) -> None:
    _jsonl(tmp_path / "lr_1e-4" / "metrics.jsonl", ROWS)
    _jsonl(tmp_path / "lr_1e-3" / "metrics.jsonl", [{**row, "loss": 9.0} for row in ROWS[:3]])
    run = read_run(tmp_path)
    assert run["loss"].value[0] == 2.9
    assert any("lr_1e-3 (3)" in note for note in run.notes)
    chosen = read_run(tmp_path, run="lr_1e-3")
    assert chosen["loss"].value.tolist() == [9.0, 9.0, 9.0]
    assert not any("this folder itself" in note for note in chosen.notes)


def test_a_run_that_is_not_there_is_an_error_that_lists_those_that_are(tmp_path: Path) -> None:
    _jsonl(tmp_path / "a" / "metrics.jsonl", ROWS)
    _jsonl(tmp_path / "b" / "metrics.jsonl", ROWS)
    with pytest.raises(InputError, match=r"no run 'c'.*a \(5.*b \(5"):
        read_run(tmp_path, run="c")


def test_a_run_asked_for_in_a_log_of_one_run_is_an_error_unless_it_is_that(tmp_path: Path) -> None:
    _jsonl(tmp_path / "metrics.jsonl", ROWS)
    for path in (tmp_path, tmp_path / "metrics.jsonl"):
        with pytest.raises(InputError, match=r"no run 'c'; there is only metrics.jsonl"):
            read_run(path, run="c")
        assert read_run(path, run="metrics").records == 5


def test_a_run_asked_for_beside_folders_that_hold_no_log_is_an_error(tmp_path: Path) -> None:
    _jsonl(tmp_path / "a" / "metrics.jsonl", ROWS)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "log.csv").write_text("name,city\nann,rome\n")
    with pytest.raises(InputError, match=r"no run 'b'; there is only a \(5\)"):
        read_run(tmp_path, run="b")


def test_the_newest_trainer_state_stands_for_all_checkpoints(tmp_path: Path) -> None:
    for step in (10, 100, 20):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        history = [{"step": one, "loss": 1.0} for one in range(5, step + 1, 5)]
        (folder / "trainer_state.json").write_text(json.dumps({"log_history": history}))
    run = read_run(tmp_path)
    assert run.records == 20
    assert run.last_step == 100


def test_a_wandb_run_folder_is_read_with_its_configuration(tmp_path: Path) -> None:
    files = tmp_path / "run-20260101_100000-abc" / "files"
    files.mkdir(parents=True)
    (files / "output.log").write_text("".join(f"step {row['step']} loss {row['loss']:.4f}\n" for row in ROWS))
    (files / "wandb-summary.json").write_text('{"train/loss": 2.5, "train/global_step": 50, "_timestamp": 1.5e9}')
    (files / "config.yaml").write_text("wandb_version: 1\nlearning_rate:\n  desc: null\n  value: 0.003\n")
    run = read_run(tmp_path)
    assert run["loss"].value.tolist() == pytest.approx([2.9, 2.8, 2.7, 2.6, 2.5])
    assert run.config["learning_rate"] == 0.003


def test_hydra_keeps_the_configuration_in_a_hidden_folder(tmp_path: Path) -> None:
    _jsonl(tmp_path / "metrics.jsonl", ROWS)
    (tmp_path / ".hydra").mkdir()
    (tmp_path / ".hydra" / "config.yaml").write_text("optimizer:\n  lr: 0.01\ntrainer:\n  max_epochs: 3\n")
    run = read_run(tmp_path)
    assert run.config["learning_rate"] == 0.01
    assert run.config["num_train_epochs"] == 3


def test_nothing_in_a_pickled_configuration_is_run(tmp_path: Path) -> None:
    _jsonl(tmp_path / "metrics.jsonl", ROWS)
    (tmp_path / "training_args.bin").write_bytes(b"c" + NOTE + b"(S'called'\ntR.")
    assert "training_args.bin: no settings in it" in " ".join(read_run(tmp_path).notes)
    assert not CALLS


def test_an_empty_folder_says_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no training log found.*trainer_state\.json"):
        read_run(tmp_path)


def test_logs_in_a_folder_of_the_evaluation_are_evaluation_metrics(tmp_path: Path) -> None:
    _jsonl(tmp_path / "train" / "metrics.jsonl", ROWS)
    _jsonl(tmp_path / "validation" / "metrics.jsonl", [{"step": 50, "loss": 4.5}])
    run = read_run(tmp_path)
    assert run["loss"].value[-1] == 2.5
    assert run["eval_loss"].value.tolist() == [4.5]


@pytest.mark.parametrize(
    "printed",
    [
        "  lr .............................. 0.00015\n  clip_grad ....................... 1.0\n"
        "  train_iters ..................... 500\n  fp16 ............................ True\n"
        "  padded_vocab_size ............... 50304\n",
        "Namespace(lr=0.00015, clip_grad=1.0, train_iters=500, fp16=True, padded_vocab_size=50304, name='a, b')\n",
    ],
)
def test_the_arguments_printed_at_the_head_are_the_configuration(tmp_path: Path, printed: str) -> None:
    (tmp_path / "train.log").write_text(printed + "step 1: loss 2.5\nstep 2: loss 2.25\n")
    run = read_run(tmp_path / "train.log")
    settings = ("learning_rate", "max_grad_norm", "max_steps", "vocab_size")
    assert [run.config[name] for name in settings] == [0.00015, 1.0, 500, 50304]
    assert run.config["fp16"] is True


def test_nothing_is_taken_from_another_run_in_the_same_folder(tmp_path: Path) -> None:
    for name, factor in (("a", 1.0), ("b", 1.5)):
        rows = [{"step": at, "loss": factor * 3 / at**0.3} for at in range(1, 80 if name == "a" else 60)]
        if name == "b":
            rows = [row | {"eval_loss": row["loss"] + 1, "grad_norm": 1.0} for row in rows]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    run = read_run(tmp_path)
    assert set(run.series) == {"loss"}
    (told,) = (note for note in run.notes if "holds 2 runs; only a.jsonl, the longest, is read here" in note)
    assert told.endswith(": b.jsonl")
    assert set(read_run(tmp_path, run="b").series) == {"loss", "eval_loss", "grad_norm"}


def test_two_logs_of_one_run_are_merged_also_where_one_is_rounded(tmp_path: Path) -> None:
    rows = [{"step": at, "loss": 3 / at**0.3} for at in range(1, 80)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    short = [{"step": row["step"], "loss": round(row["loss"], 3), "grad_norm": 1.5} for row in rows[:60]]
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, short)), encoding="utf-8")
    assert set(read_run(tmp_path).series) == {"loss", "grad_norm"}


def _version(folder: Path, steps: range) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rows = "".join(f"{step},{3 - step / 1000:.4f}\n" for step in steps)
    (folder / "metrics.csv").write_text("step,train_loss\n" + rows)


def test_a_run_that_goes_on_in_another_folder_is_read_as_one_with_two_stretches(tmp_path: Path) -> None:
    _version(tmp_path / "version_0", range(0, 300, 5))
    _version(tmp_path / "version_1", range(250, 600, 5))
    run = read_run(tmp_path)
    assert (run.first_step, run.last_step) == (0, 595)
    assert [segment.first_step for segment in run.segments] == [0, 250]
    assert len(run["loss"]) == 120
    assert any("version_1 goes on at step 250, where version_0 ends at 295" in note for note in run.notes)
    assert read_run(tmp_path, run="version_1").first_step == 250


def test_runs_that_begin_anew_or_branch_off_are_kept_apart(tmp_path: Path) -> None:
    _version(tmp_path / "anew" / "version_0", range(0, 300, 5))
    _version(tmp_path / "anew" / "version_1", range(0, 600, 5))
    assert len(read_run(tmp_path / "anew").segments) == 1
    _version(tmp_path / "branches" / "version_0", range(0, 300, 5))
    for number in (1, 2):
        _version(tmp_path / "branches" / f"version_{number}", range(300, 700 + number, 5))
    assert read_run(tmp_path / "branches").first_step == 300


def _crashed(folder: Path) -> list[dict[str, float]]:
    """Write the state of a checkpoint at step 60 and return the records of the run, which went on to step 95."""
    rows = [{"step": step, "loss": 3.0 - step / 100} for step in range(5, 100, 5)]
    state = folder / "checkpoint-60" / "trainer_state.json"
    state.parent.mkdir()
    state.write_text(json.dumps({"log_history": [row for row in rows if row["step"] <= 60], "max_steps": 120}))
    return rows


@pytest.mark.parametrize("place", ["metrics.jsonl", "runs/Jan01_node/metrics.jsonl"])
def test_what_came_after_the_last_checkpoint_of_a_crash_is_read_where_another_log_holds_it(
    place: str, tmp_path: Path
) -> None:
    rows = _crashed(tmp_path)
    _jsonl(tmp_path / place, [*rows[:-1], {"step": 95, "loss": math.nan}])
    run = read_run(tmp_path)
    assert run.last_step == 95
    assert math.isnan(run["loss"].value[-1])


def test_another_runs_log_does_not_go_on_where_a_checkpoint_ends(tmp_path: Path) -> None:
    rows = _crashed(tmp_path)
    _jsonl(tmp_path / "runs" / "other" / "metrics.jsonl", [{**row, "loss": row["loss"] * 1.1} for row in rows])
    assert read_run(tmp_path).last_step == 60


def test_a_trainers_model_is_known_from_its_newest_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": ROWS}))
    for step, size in ((20, 8), (100, 32)):
        checkpoint = tmp_path / f"checkpoint-{step}"
        checkpoint.mkdir()
        (checkpoint / "trainer_state.json").write_text(json.dumps({"log_history": ROWS[:2]}))
        (checkpoint / "config.json").write_text(json.dumps({"vocab_size": size}))
    assert read_run(tmp_path).config["vocab_size"] == 32


@pytest.mark.parametrize("broken", ["lr: [1, 2", "- just\n- a list\n", "[" * 5000])
def test_a_broken_configuration_beside_a_log_is_noted_and_one_that_was_named_is_refused(
    broken: str, tmp_path: Path
) -> None:
    _jsonl(tmp_path / "metrics.jsonl", ROWS)
    config = tmp_path / "hparams.yaml"
    config.write_text(broken)
    run = read_run(tmp_path)
    assert run.records == 5
    assert any(note.startswith("read without its configuration: ") for note in run.notes)
    with pytest.raises(InputError, match=r"hparams\.yaml"):
        read_run(tmp_path, config=config)


def test_tags_of_python_in_a_configuration_are_read_as_plain_values_and_call_nothing(tmp_path: Path) -> None:
    _jsonl(tmp_path / "metrics.jsonl", ROWS)
    (tmp_path / "hparams.yaml").write_text(
        "lr: 0.003\nbetas: !!python/tuple [0.9, 0.95]\nout: !!python/object/apply:pathlib.PosixPath [/, data]\n"
        "args: !!python/object:argparse.Namespace {weight_decay: 0.1}\n"
        f"call: !!python/object/apply:os.mkdir ['{tmp_path}/made']\n"
    )
    config = read_run(tmp_path).config
    assert (config["learning_rate"], config["weight_decay"]) == (0.003, 0.1)
    assert not (tmp_path / "made").exists()


def test_a_damaged_event_file_is_told_of_and_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "events.out.tfevents.1").write_bytes(b"\x18\0\0\0\0\0\0\0" + bytes(range(60)))
    with pytest.raises(InputError, match="first record of this event file is damaged"):
        read_run(tmp_path)
    _jsonl(tmp_path / "metrics.jsonl", ROWS)
    assert any("not read: " in note and "tfevents" in note for note in read_run(tmp_path).notes)


def test_of_very_many_runs_the_largest_are_read_and_any_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mldebug_mcp.logs.read.MAX_RUNS", 3)
    for number in range(9):
        _version(tmp_path / f"run_{number}", range(20 + 10 * (number == 4)))
    run = read_run(tmp_path)
    assert len(run["loss"]) == 30
    assert any("only the 3 largest of 9 runs" in note for note in run.notes)
    assert len(read_run(tmp_path, run="run_8")["loss"]) == 20


def test_a_folder_that_may_not_be_read_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _jsonl(tmp_path / "metrics.jsonl", ROWS)
    (tmp_path / "private").mkdir()
    held = access.held_folder

    def refuse(folder: Path) -> AbstractContextManager[int | Path]:  # root, as in containers, may read everything
        if folder.name == "private":
            raise PermissionError(13, "Permission denied", str(folder))
        return held(folder)

    monkeypatch.setattr("mldebug_mcp.core.access.held_folder", refuse)
    assert any("private: this folder may not be read" in note for note in read_run(tmp_path).notes)


def test_what_is_logged_at_step_0_again_does_not_draw_a_stretch_to_the_beginning(tmp_path: Path) -> None:
    for name, steps in (("version_0", range(0, 300, 5)), ("version_1", range(300, 600, 5))):
        rows = [{"step": 0, "hp_metric": -1.0}, *({"step": step, "loss": 3 - step / 1000} for step in steps)]
        _jsonl(tmp_path / name / "metrics.jsonl", rows)
    assert [segment.first_step for segment in read_run(tmp_path).segments] == [0, 300]


def test_a_folder_without_a_metric_is_not_counted_among_the_runs(tmp_path: Path) -> None:
    _jsonl(tmp_path / "run" / "metrics.jsonl", ROWS)
    (tmp_path / "debug").mkdir()
    (tmp_path / "debug" / "internal.log").write_text("RuntimeError: connection lost\n")
    assert not any("longest of" in note for note in read_run(tmp_path).notes)


@pytest.mark.parametrize(("head", "found"), [("#step loss score_mean", True), ("1 3:0.5 7:0.25", False)])
def test_a_table_of_steps_that_ends_as_data_is_found_next_to_other_logs(head: str, found: bool, tmp_path: Path) -> None:
    (tmp_path / "run.dat").write_text(f"{head}\n" + "".join(f"{at} {2 / at} {at / 10}\n" for at in range(10, 100)))
    (tmp_path / "stdout.log").write_text("".join(f"step {10 * at} prompt 3 score 1.2\n" for at in range(1, 11)))
    assert ("loss" in read_run(tmp_path).series) is found


@pytest.mark.parametrize("name", ["train.progress", "notes.cfg", "history.yml", "LOSSES", "run.o4711"])
@pytest.mark.parametrize(
    ("other", "text"),
    [
        ("notes.txt", "a longer batch next time\n"),
        ("options.json", '{"lr": 0.1, "batch_size": 3}'),
        ("d.csv", "x,y\na,b\n"),
    ],
)
def test_a_text_of_any_ending_is_found_where_no_file_with_the_ending_of_a_log_holds_a_metric(
    tmp_path: Path, name: str, other: str, text: str
) -> None:
    (tmp_path / other).write_text(text)
    (tmp_path / name).write_text("".join(f"step {step} loss {1 / step:.4f}\n" for step in range(1, 30)))
    assert len(read_run(tmp_path)["loss"]) == 29


def test_a_configuration_that_names_a_loss_is_no_log_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "train.yml").write_text("loss: 0.5\nlr: 0.1\n")
    with pytest.raises(InputError, match="no training log found"):
        read_run(tmp_path)


def test_a_refused_folder_says_what_lies_in_it_and_how_the_likeliest_file_ends(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("bought bread\n" * 40 + "the \x1b[31mlast line\n")
    (tmp_path / "model.yaml").write_text("layers: 3\n")
    with pytest.raises(InputError, match="no training log found") as refused:
        read_run(tmp_path)
    assert "there are notes.txt, model.yaml" in str(refused.value)
    assert 'notes.txt ends with "bought bread" / "the last line"' in str(refused.value)


def _console_of_a_framework(folder: Path, rows: int) -> None:
    _jsonl(folder / "lightning_logs" / "version_0" / "metrics.jsonl",
           [{"step": step, "train_loss": 3.0 - step / 200} for step in range(100)])  # fmt: skip
    lines = [f"Epoch {at} train_loss: 2.{at} val_loss: 2.{at}\n" for at in range(rows)]
    (folder / "train.log").write_text("".join(lines))


def test_a_console_of_one_record_is_not_read_in_place_of_the_log_below_it(tmp_path: Path) -> None:
    _console_of_a_framework(tmp_path, rows=1)
    run = read_run(tmp_path)
    assert (run.records, run.runs_in_folder) == (100, 1)
    assert any("lightning_logs/version_0" in note for note in run.notes)


def test_a_log_of_its_own_that_tells_enough_is_read_before_the_runs_below_it(tmp_path: Path) -> None:
    _console_of_a_framework(tmp_path, rows=25)
    assert read_run(tmp_path).records == 25


def test_a_console_that_ends_in_an_error_is_read_before_the_runs_below_it(tmp_path: Path) -> None:
    _console_of_a_framework(tmp_path, rows=1)
    with (tmp_path / "train.log").open("a") as file:
        file.write("RuntimeError: CUDA error: device-side assert triggered\n")
    assert read_run(tmp_path).records == 1


@pytest.mark.parametrize(("epoch", "kept"), [(0.5, False), (2.25, True)])
def test_the_trainer_of_a_stream_is_planned_by_steps_and_its_epochs_count_where_passes_end(
    epoch: float, kept: bool, tmp_path: Path
) -> None:
    """Source: transformers 5.24.0 of a stream without a length; sys.maxsize epochs stand in its state."""
    history = [{"step": step, "loss": 3 - step / 100, "epoch": epoch * step / 100} for step in (25, 50, 75, 100)]
    state = {"max_steps": 200, "num_train_epochs": 2**63 - 1, "log_history": history}
    (tmp_path / "trainer_state.json").write_text(json.dumps(state))
    run = read_run(tmp_path)
    assert "num_train_epochs" not in run.settings
    assert ("epoch" in run) is kept
    assert any("counts the steps that are planned" in note for note in run.notes) is not kept
