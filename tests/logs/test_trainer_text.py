"""What Trainers print and people paste: rounded epochs, tables, wrapped and broken off dicts, all read whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.logs.reading import points, read

from mldebug_mcp import diagnose_run
from mldebug_mcp.core.errors import InputError


def printed(*records: tuple[float, float]) -> str:
    return "".join(
        f"{{'loss': {loss}, 'learning_rate': {5e-5 - 1e-7 * row}, 'epoch': {epoch}}}\n"
        for row, (loss, epoch) in enumerate(records)
    )


def test_an_evaluation_stands_at_the_epoch_of_its_record(tmp_path: Path) -> None:
    run = read(
        tmp_path, printed((2.5, 0.25), (2.25, 0.5)) + "{'eval_loss': 2.1, 'epoch': 0.5}\n" + printed((1.5, 0.75))
    )
    assert points(run, "eval_loss") == {0.5: 2.1}
    assert points(run, "loss") == {0.25: 2.5, 0.5: 2.25, 0.75: 1.5}


def test_records_of_a_single_rounded_epoch_are_counted(tmp_path: Path) -> None:
    run = read(tmp_path, printed((2.5, 0.0), (2.25, 0.0)))
    assert (run.step_name, points(run, "loss")) == ("record", {1: 2.5, 2: 2.25})


def test_the_steps_of_an_excerpt_are_read_from_its_bar(tmp_path: Path) -> None:
    lines = []
    for step in range(3100, 3108):
        bar = f" 24%|##4       | {step}/12800 [2:10:00<6:50:00,  2.54s/it]\n"
        lines += [printed((1.0 + step / 1e4, round(step / 12800, 2))), bar, bar.replace(str(step), str(step + 1))]
    run = read(tmp_path, "".join(lines))
    assert (run.step_name, run["loss"].step.tolist()) == ("step", list(range(3100, 3108)))


CARD = """
- Loss: 0.71
- Wer: 31.5

### Training results

| Training Loss | Epoch | Step | Validation Loss | Wer     | F1  |
|:-------------:|:-----:|:----:|:---------------:|:-------:|:---:|
| No log        | 1.0   | 150  | 0.91            | 40.25   | 0.0 |
| 0.52          | 2.0   | 300  | 0.8             | 35.5    | 0.5 |
| 0.31          | 3.0   | 450  | 0.71            | **31.5** ← best | 0.6 |
"""


def test_the_table_of_a_model_card_is_read(tmp_path: Path) -> None:
    run = read(tmp_path, CARD, "README.md")
    assert (run.step_name, run.records) == ("step", 3)
    assert points(run, "loss") == {300: 0.52, 450: 0.31}
    assert points(run, "eval_loss") == {150: 0.91, 300: 0.8, 450: 0.71}
    assert points(run, "eval_wer") == {150: 40.25, 300: 35.5, 450: 31.5}
    assert points(run, "eval_f1") == {150: 0.0, 300: 0.5, 450: 0.6}


def test_the_table_of_a_card_is_read_where_the_folder_has_no_other_log(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(CARD, encoding="utf-8")
    (tmp_path / "config.json").write_text('{"hidden_size": 64}', encoding="utf-8")
    assert diagnose_run(str(tmp_path)).run.last == {"loss": 0.31, "eval_loss": 0.71}
    (tmp_path / "train.log").write_text("".join(f"step {step} loss 2.{step}\n" for step in range(1, 9)))
    assert diagnose_run(str(tmp_path)).run.last == {"loss": 2.8}


@pytest.mark.parametrize(
    "card", ["We reached a loss of 0.5.\n", "| Model | Accuracy |\n|---|---|\n| A | 0.5 |\n| B | 0.6 |\n"]
)
def test_a_card_without_a_table_by_step_is_no_log_of_its_folder(tmp_path: Path, card: str) -> None:
    (tmp_path / "README.md").write_text(card, encoding="utf-8")
    with pytest.raises(InputError, match="no training log found"):
        diagnose_run(str(tmp_path))


def test_a_notebooks_table_with_long_names_and_no_outer_pipes_is_read(tmp_path: Path) -> None:
    name = "rewards / answer_is_found_in_the_document_and_cited"
    rows = "".join(f"{step} | 0.00{step} | {step / 4} | -{step}.5\n" for step in (1, 2, 3))
    run = read(tmp_path, f"Step | Training Loss | reward | {name}\n-- | -- | -- | --\n{rows}")
    assert points(run, "reward") == {1: 0.25, 2: 0.5, 3: 0.75}
    assert points(run, name) == {1: -1.5, 2: -2.5, 3: -3.5}


def test_a_table_whose_columns_stand_one_blank_apart_is_read(tmp_path: Path) -> None:
    run = read(
        tmp_path, "Training Loss Epoch Step Validation Loss F1\n-------\n2.5 1.0 291 1.75 0.25\n1.5 2.0 582 1.5 0.5\n"
    )
    assert (points(run, "loss"), points(run, "eval_loss")) == ({291: 2.5, 582: 1.5}, {291: 1.75, 582: 1.5})
    assert points(run, "eval_f1") == {291: 0.25, 582: 0.5}


def test_marks_beside_the_names_of_columns_are_no_part_of_them(tmp_path: Path) -> None:
    run = read(tmp_path, "| Epoch | Loss ↓ | Accuracy ↑ | Remark |\n|---|---|---|---|\n| 1 | 0.65 | 0.6 | a start |\n")
    assert (points(run, "loss"), points(run, "accuracy")) == ({1: 0.65}, {1: 0.6})


def test_a_dict_that_a_terminal_wrapped_within_a_number_is_whole(tmp_path: Path) -> None:
    line = "{'loss': 0.4375, 'rewards/chosen': 1.15625, 'logps/chosen': -28.53125, 'epoch': 0.5}"
    for width in range(20, 60, 3):
        run = read(tmp_path, "\n".join(line[at : at + width] for at in range(0, len(line), width)))
        assert {name: series.value.tolist() for name, series in run.series.items()} == {
            "loss": [0.4375],
            "rewards/chosen": [1.15625],
            "logps/chosen": [-28.53125],
        }


def test_records_of_a_trainer_state_that_were_pasted_without_its_head_are_read(tmp_path: Path) -> None:
    text = """  "log_history": [
    {
      "epoch": 3.5,
      "loss": 9.25,
      "step": 100
    },
    {
      "epoch": 3.5,
      "eval_loss": NaN,
      "eval_wer": 0.75,
      "step": 100
    },
    {
      "epoch": 7.0,
      "loss": 8.5,
      "step": 200
    },
"""
    run = read(tmp_path, text, "pasted.json")
    assert points(run, "loss") == {100: 9.25, 200: 8.5}
    assert points(run, "eval_wer") == {100: 0.75}


def test_a_record_with_a_loss_is_no_closing_summary(tmp_path: Path) -> None:
    run = read(
        tmp_path,
        "".join(
            f"{{'loss': '{3 - step / 4}', 'epoch': '{step / 8}', 'train_runtime': '{step * 2}'}}\n"
            for step in range(1, 5)
        )
        + "{'train_runtime': 9.5, 'train_loss': 2.4, 'epoch': 0.5}\n",
    )
    assert run["loss"].value.tolist() == [2.75, 2.5, 2.25, 2.0]
    assert run["summary/train_loss"].value.tolist() == [2.4]


def test_the_closing_line_of_a_jsonl_log_may_hold_its_history(tmp_path: Path) -> None:
    lines = [f'{{"loss": {4 - step}, "epoch": 0.{step}, "global_step/max_steps": "{step}/3"}}' for step in (1, 2, 3)]
    lines.append('{"best_metric": 1.0, "global_step": 3, "log_history": [{"loss": 3, "step": 1}]}')
    run = read(tmp_path, "\n".join(lines), "logging.jsonl")
    assert (run.formats, run.step_name, points(run, "loss")) == (("jsonl",), "step", {1: 3, 2: 2, 3: 1})
    assert not any("cut off" in note for note in run.notes)


def test_metrics_of_an_evaluation_without_their_prefix_are_not_those_of_training(tmp_path: Path) -> None:
    run = read(
        tmp_path,
        "{'loss': 0.1, 'reward': 4.0, 'completions/mean_length': 80.5, 'kl': 0.25, 'epoch': 0.5}\n"
        "{'eval_loss': 0.2, 'eval_runtime': 9.5, 'reward': 3.0, 'completions/mean_length': 40.5, 'epoch': 0.5}\n",
    )
    assert (run["reward"].value.tolist(), run["completion_length"].value.tolist()) == ([4.0], [80.5])
    assert (run["eval_reward"].value.tolist(), run["eval_completion_length"].value.tolist()) == ([3.0], [40.5])


@pytest.mark.parametrize(
    ("line", "metric", "step_name"),
    [
        ("Epoch... ({} / 30 | Loss: {})", "loss", "epoch"),
        ("Step... ({} | Loss: {}, Learning Rate: 3e-05)", "loss", "step"),
        ("Loss after epoch {}: {}", "loss", "epoch"),
        ("Validation loss at the end of epoch {} is {}", "eval_loss", "epoch"),
        ("Average loss at step {} = {}", "loss", "step"),
        ("[2026-02-03 04:05:06,789][Main][INFO] - [eval] Step {} out of 90 | Loss --> {} | ", "eval_loss", "step"),
        ("| epoch 001 | valid on 'valid' subset | loss {1} | ppl 1.5 | num_updates {0}", "eval_loss", "step"),
        ("{} | loss {} | lr 3.000000e-04 | 812.40ms", "loss", "step"),
        ("{}: train_ppl=tensor(9.5, device='cuda:0') train_epoch_loss=tensor({}, device='cuda:0')", "loss", "step"),
        ("Epoch {}: train_epoch_loss train_epoch_loss=tensor({}, device='cuda:1')", "loss", "epoch"),
        ("{{'embedding_loss': {1}, 'epoch': {0}}}", "loss", "epoch"),
        ("Epoch:[1/2]({}/99) loss:{} lr:0.000550000000 epoch_Time:330.0min:", "loss", "step"),
        ("Epoch:[1/2]({}/99), loss: {}, logits_loss: 1.9, lr: 0.00049999, epoch_time: 85.0min", "loss", "step"),
        ("[ Wed Jun  6 16:04:06 2018 ] \tBatch({}/99) done. Loss: {}  lr:0.100000", "loss", "step"),
        ("Step {}, val. loss: {}", "eval_loss", "step"),
        ("Train step of epoch 0:  9%|# | {}/99 [00:04<01:39, 1.1it/s, gpt_loss={}, loss_mean=1.9]", "loss", "step"),
        ("Train step of epoch 0:  9%|# | {}/99 [00:04<01:39, 1.1it/s, preference_loss={}]", "loss", "step"),
        ("Eval stage of steps {}: 100%|##| 5/5 [00:05<00:00, 2.1it/s, eval gpt_loss={}]", "eval_loss", "step"),
    ],
)
def test_lines_of_example_scripts_are_read(tmp_path: Path, line: str, metric: str, step_name: str) -> None:
    run = read(tmp_path, "\n".join(line.format(step, 2 - step / 16) for step in (4, 8, 12)))
    assert run.step_name == step_name
    assert points(run, metric) == {4: 1.75, 8: 1.5, 12: 1.25}
    assert "cuda" not in run


def test_the_module_and_the_line_that_loguru_prints_are_no_metric(tmp_path: Path) -> None:
    head = "2026-02-03 04:05:06.789 | INFO     | my_model.train:train"
    run = read(
        tmp_path,
        "".join(
            f"{head}:31 - epoch={epoch}\n{head}:33 - train_loss={1 / epoch}, val_loss={2 / epoch}\n"
            f"2026-02-03 04:05:07.789 | SUCCESS  | __main__:<module>:35 - train_acc={epoch / 4}, val_acc={epoch / 8}\n"
            for epoch in (1, 2, 4)
        ),
    )
    assert (run.step_name, points(run, "eval_loss")) == ("epoch", {1: 2.0, 2: 1.0, 4: 0.5})
    assert points(run, "eval_accuracy") == {1: 0.125, 2: 0.25, 4: 0.5}
    assert set(run.series) == {"loss", "eval_loss", "accuracy", "eval_accuracy"}


def test_records_between_two_drawings_of_a_bar_that_lags_keep_steps_of_their_own(tmp_path: Path) -> None:
    lines = []
    for step in range(1, 121):
        lines.append(f"{{'loss': {3 - step / 100:.3f}, 'grad_norm': 1.0, 'epoch': {step / 120:.4f}}}\n")
        if step % 4 == 0:
            lines.append(f"  1%|#         | {step}/120 [00:10<1:02:11,  1.31s/it]\n")
    run = read(tmp_path, "".join(lines))
    assert run["loss"].step.tolist() == list(range(1, 121))
