"""Lines and tables as loops of one's own print them, in no framework's form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.logs.reading import points

from mldebug_mcp import diagnose_run
from mldebug_mcp.logs import read_run
from mldebug_mcp.logs.run import Run

EPOCHS = range(1, 7)


def read(tmp_path: Path, text: str, name: str = "train.log") -> Run:
    (tmp_path / name).write_text(text)
    return read_run(tmp_path / name)


def test_counters_of_one_letter_are_read_with_the_loss_and_the_accuracy_beside_it(tmp_path: Path) -> None:
    text = "".join(
        f"E{at:03} I{12 * at:05} L={2.5 - 0.3 * at:.4g} a={0.1 * at:.4g}\n"
        f"V E{at:03} I{12 * at:05} L={2.6 - 0.3 * at:.4g} a={0.05 * at:.4g}\n"
        for at in EPOCHS
    )
    run = read(tmp_path, text)
    assert run["loss"].step.tolist() == [12 * at for at in EPOCHS]
    assert run["epoch"].value.tolist() == list(EPOCHS)
    assert run["eval_loss"].value[0] == 2.3
    assert run["accuracy"].value[-1] == 0.6
    assert run["eval_accuracy"].value[-1] == 0.3


def test_a_letter_beside_the_loss_that_is_no_share_keeps_its_name(tmp_path: Path) -> None:
    run = read(tmp_path, "".join(f"E{at} S{at} L={2 - 0.1 * at:.2f} a={40 * at}\n" for at in EPOCHS))
    assert "accuracy" not in run
    assert run["a"].value[-1] == 240


def test_terse_lines_of_folds_start_anew_with_each(tmp_path: Path) -> None:
    fold = "".join(f"E{at:03} I{at:05} L={2 - 0.3 * at:.4g}\n" for at in EPOCHS)
    run = read(tmp_path, "".join(f"! --- fold {number}/3 ---\n{fold}" for number in (1, 2, 3)))
    assert len(run.attempts) == 3
    assert run["loss"].step.tolist() == list(EPOCHS)


def test_many_terse_lines_are_read_as_few_are(tmp_path: Path) -> None:
    lines = [f"E{1 + at // 100:03} I{at:05} L={2 - at / 2000:.5g} gn={1 + at % 7}\n" for at in range(1, 2001)]
    whole = read(tmp_path, "".join(lines))
    assert whole["loss"].step.tolist() == list(range(1, 2001))
    assert whole["loss"].value[-1] == 1.0


PARTS = (
    ("loss {0:.4f} top1 {1:.3f} | val {2:.4f} top1 {3:.3f}", {"loss", "accuracy", "eval_loss", "eval_accuracy"}),
    ("loss {0:.4f} | gn body {1:.3f} head {2:.4f} | wn body {2:.4f} head {3:.3f}",
     {"loss", "gn body", "gn head", "wn body", "wn head"}),
    ("loss {0:.4f} top1 {1:.3f} val {2:.4f} top1 {3:.3f}", {"loss", "accuracy", "eval_loss", "eval_accuracy"}),
    ("train loss {0:.4f} acc {1:.3f} | val loss {2:.4f} acc {3:.3f} | gnorm {1:.3f} | gn body {1:.3f} head {2:.4f}",
     {"loss", "accuracy", "eval_loss", "eval_accuracy", "grad_norm", "gn body", "head"}),
    ("loss {0:.4f} | time fwd {1:.3f} bwd {2:.4f} | mem fwd {2:.4f} bwd {3:.3f}",
     {"loss", "time fwd", "time bwd", "mem fwd", "mem bwd"}),
)  # fmt: skip


@pytest.mark.parametrize(("form", "names"), PARTS)
def test_a_name_in_two_parts_between_bars_stands_with_what_heads_each(
    tmp_path: Path, form: str, names: set[str]
) -> None:
    values = [(2 - 0.1 * at, 0.1 * at, 2.1 - 0.1 * at, 0.05 * at) for at in EPOCHS]
    run = read(tmp_path, "".join(f"ep {at} {form.format(*row)}\n" for at, row in zip(EPOCHS, values, strict=True)))
    assert names <= run.series.keys()
    assert {round(float(run[name].value[-1]), 3) for name in names} == {round(value, 3) for value in values[-1]}


@pytest.mark.parametrize(("form", "of_loss", "of_accuracy"), [
    ("| loss {0:.3f} | val {2:.3f} | lr 1e-3", True, False), ("loss {0:.3f} acc {1:.3f} valid {2:.3f}", True, False),
    ("loss {0:.3f} acc {1:.3f} val {1:.3f}", False, True), ("loss {0:.3f} acc {1:.3f} val {3:.3f}", False, False),
])  # fmt: skip
def test_a_phase_alone_is_the_measure_of_training_that_it_begins_near_to(
    tmp_path: Path, form: str, of_loss: bool, of_accuracy: bool
) -> None:
    values = [(2 - 0.1 * at, 0.1 * at, 2.1 - 0.1 * at, 40.0) for at in EPOCHS]
    run = read(tmp_path, "".join(f"epoch {at} {form.format(*row)}\n" for at, row in zip(EPOCHS, values, strict=True)))
    assert ("eval_loss" in run) is of_loss
    assert ("eval_accuracy" in run) is of_accuracy
    assert of_loss or of_accuracy or "val" in run


def test_dots_that_lead_to_a_value_are_no_part_of_the_name(tmp_path: Path) -> None:
    text = "".join(
        f"===== Epoch {at} of 6 =====\n  training loss.....: {9 - at}\n  validation cer......: {90 - at}.00 %\n\n"
        for at in EPOCHS
    )
    run = read(tmp_path, text)
    assert run["loss"].value.tolist() == [9 - at for at in EPOCHS]
    assert run["eval_cer"].value[0] == pytest.approx(0.89)


def test_an_evaluation_that_counts_the_steps_of_the_run_is_read_at_its_step(tmp_path: Path) -> None:
    stamp = "2025-03-10 10:17:25,891 [INFO] trainer:"
    text = "".join(
        f"{stamp} Training [{10 * at}/60] loss: {3 - 0.2 * at:.3f}\n"
        f"{stamp} Evaluation (val) [{10 * at}/60] loss: {3.1 - 0.2 * at:.3f}\n"
        for at in EPOCHS
    )
    run = read(tmp_path, text)
    assert run["loss"].step.tolist() == [10 * at for at in EPOCHS]
    assert run["eval_loss"].step.tolist() == [10 * at for at in EPOCHS]


def test_a_logger_behind_the_level_does_not_hide_a_phase_or_a_value(tmp_path: Path) -> None:
    text = "".join(
        f"[INFO] train: epoch {at} loss {2 - 0.1 * at:.1f}\n[INFO] val: epoch {at} loss {3 - 0.1 * at:.1f}\n"
        for at in EPOCHS
    )
    run = read(tmp_path, text)
    assert run["loss"].value[0] == 1.9
    assert run["eval_loss"].value[0] == 2.9


def test_a_level_and_a_dotted_logger_stand_before_the_message(tmp_path: Path) -> None:
    lines = [f"{6000 * at} crops | ce {1 - 0.1 * at:.1f} hit 0.{at}5 | dev ce {2 + at}.3 hit 0.2" for at in EPOCHS]
    bare = read(tmp_path, "\n".join(lines))
    for prefix in ("I farm.cls: ", "INFO farm.train.loop:  "):
        run = read(tmp_path, "".join(f"{prefix}{line}\n" for line in lines))
        assert run["loss"].value.tolist() == bare["loss"].value.tolist() == [round(1 - 0.1 * at, 1) for at in EPOCHS]
        assert run["eval_loss"].value[0] == 3.3


def test_the_length_of_summaries_makes_no_policy_of_a_model_with_an_evaluation_loss(tmp_path: Path) -> None:
    rows = [f"{at},{2.2 - 0.1 * at:.2f},{2.3 - 0.05 * at:.2f},{0.3 + 0.01 * at:.2f},{14 + at}" for at in EPOCHS]
    text = "\n".join(["epoch,train_loss,eval_loss,eval_rouge1,gen_len", *rows])
    assert read(tmp_path, text).kind not in ("grpo", "ppo")


def test_settings_on_a_line_above_a_log_are_no_epoch(tmp_path: Path) -> None:
    text = "model=cnn  epochs=24  batch_size=64  optimizer=adam  lr=0.002  seed=26\n" + "".join(
        f"[train] (ep {at}.00, it {8 * at}) loss: {1 - 0.1 * at:.2f}\n" for at in EPOCHS
    )
    run = read(tmp_path, text)
    assert run["epoch"].value.tolist() == list(EPOCHS)
    assert run.setting("num_train_epochs") == 24
    assert run.setting("learning_rate") == 0.002


def test_an_epoch_that_is_called_ep_is_told_with_its_total(tmp_path: Path) -> None:
    run = read(tmp_path, "".join(f"ep  {at:2}/14  loss (train) {2 - 0.1 * at:.2f}\n" for at in EPOCHS))
    assert run.step_name == "epoch"
    assert run["loss"].step.tolist() == list(EPOCHS)


def test_a_measure_of_ones_own_that_an_evaluation_tells_alone_is_kept(tmp_path: Path) -> None:
    text = "".join(
        f"[00:0{at}] iter {25 * at}: loss={1 - 0.1 * at:.2f}\n[00:0{at}] VAL iter {25 * at}: swd={2 - 0.1 * at:.2f}\n"
        for at in EPOCHS
    )
    run = read(tmp_path, text)
    assert run["eval_swd"].step.tolist() == [25 * at for at in EPOCHS]


def test_how_long_an_evaluation_took_is_no_measure(tmp_path: Path) -> None:
    text = "".join(f"iter {25 * at}: loss={1 - 0.1 * at:.2f}\nval iter {25 * at}: took={at}.5\n" for at in EPOCHS)
    assert not any(name.startswith("eval") for name in read(tmp_path, text).series)


def test_sentences_list_metrics_and_say_on_which_data(tmp_path: Path) -> None:
    text = "".join(
        f"At update {5 * at} on training data: loss d is 0.{at}, d real is 0.9{at}, gpu util is 99.{at}.\n"
        f"At update {5 * at} on held-out data: loss is 1.{at}.\n"
        for at in EPOCHS
    )
    run = read(tmp_path, text)
    assert run["d real"].value[-1] == 0.96
    assert run["gpu util"].value[-1] == 99.6
    assert run["eval_loss"].value.tolist() == [1 + at / 10 for at in EPOCHS]


def test_what_detectron2_prints_to_be_copied_is_an_evaluation(tmp_path: Path) -> None:
    prefix = "[03/12 04:05:1{} d2.{}]: "
    text = "".join(
        prefix.format(at, "utils.events")
        + f" eta: 00:32  iter: {20 * at}  total_loss: {3 - 0.2 * at:.1f}\n"
        + "".join(
            prefix.format(at, "evaluation.testing") + f"copypaste: {said}\n"
            for said in ("Task: val", "loss,acc", f"{3.1 - 0.2 * at:.1f},0.8{at}")
        )
        for at in EPOCHS
    )
    run = read(tmp_path, text)
    assert run["eval_loss"].step.tolist() == [20 * at for at in EPOCHS]
    assert run["eval_accuracy"].value[-1] == 0.86


def test_what_stands_beside_both_losses_of_fastai_is_of_validation(tmp_path: Path) -> None:
    head = "epoch  train_loss  train_kl  valid_loss  rmse  kl  time\n"
    rows = "".join(f"{at}      0.{9 - at}  0.1{at}  0.{8 - at}  0.5{at}  0.2{at}  00:09\n" for at in range(6))
    run = read(tmp_path, head + rows)
    assert run["eval_rmse"].value[-1] == 0.55
    assert run["kl"].value[-1] == 0.15
    assert run["eval_kl"].value[-1] == 0.25


def test_a_header_that_is_the_last_comment_names_the_columns(tmp_path: Path) -> None:
    rows = "".join(f"{9 * at}\t{2 - 0.1 * at:.2f}\t{'NA' if at % 2 else 1 + 0.1 * at}\n" for at in EPOCHS)
    text = (
        f"# model\tcnn\n# epochs\t12\n# batch_size\t64\n# optimizer\tadam\n# lr\t0.003\n#step\tloss\tval loss\n{rows}"
    )
    run = read(tmp_path, text, "curve.tsv")
    assert run["loss"].step.tolist() == [9 * at for at in EPOCHS]
    assert run["eval_loss"].step.tolist() == [18, 36, 54]
    assert run.setting("learning_rate") == 0.003


def test_files_of_one_metric_each_are_named_by_it(tmp_path: Path) -> None:
    (tmp_path / "opts.txt").write_text("--model vae\n--epochs 28\n--batch_size 64\n--optimizer adam\n--lr 0.003\n")
    for name in ("train_loss", "train_beta", "train_kl", "val_loss", "val_kl"):
        (tmp_path / f"{name}.txt").write_text("".join(f"{16 * at} {5.5 + len(name) - at}\n" for at in EPOCHS))
    run = read_run(tmp_path)
    assert {"loss", "eval_loss", "kl", "eval_kl", "train_beta"} <= run.series.keys()
    assert "value" not in run
    assert run.kind != "rl"


def test_an_accuracy_on_training_data_that_an_evaluation_measures_is_of_training(tmp_path: Path) -> None:
    records = "".join(f"- step: {at}\n  val:\n    train_acc: 0.9{at}\n    acc: 0.5{at}\n" for at in EPOCHS)
    run = read(tmp_path, records, "history.yaml")
    assert run["accuracy"].value[0] == 0.91
    assert run["eval_accuracy"].value[0] == 0.51


def test_a_phase_in_brackets_stands_behind_a_name_or_before_it(tmp_path: Path) -> None:
    rows = "".join(f"{9 * at}\t{2 - 0.1 * at:.2f}\t{0.5 + at}\t0.{at}\n" for at in EPOCHS)
    run = read(tmp_path, f"step\tloss[train]\t|g|[train]\t[val] acc\n{rows}", "curve.tsv")
    assert run["loss"].value[0] == 1.9
    assert run["grad_norm"].value[-1] == 6.5
    assert run["eval_accuracy"].value[-1] == 0.6


def test_an_objective_is_the_loss_where_there_is_no_other(tmp_path: Path) -> None:
    rows = "".join(f"{9 * at}\t{2 - 0.1 * at:.2f}\t{3 - 0.1 * at:.2f}\n" for at in EPOCHS)
    run = read(tmp_path, f"step\tobj[train]\tobj[val]\n{rows}", "curve.tsv")
    assert run["loss"].value[0] == 1.9
    assert run["eval_loss"].value[0] == 2.9
    whole = read(tmp_path, f"step\tobjective\treward\n{rows}", "policy.tsv")
    assert whole["objective"].logged_as == ""
    boxes = read(tmp_path, f"step\tobj\tbox\n{rows}", "boxes.tsv")
    assert "loss" not in boxes or boxes["loss"].logged_as != "obj"


LOGURU = """\
2026-01-20 17:30:54.515 | INFO     | src.loop:train_step:88 - 0/100 loss=2.2428 lr=1.00e-04 gn=10.7147
2026-01-20 17:31:13.947 | INFO     | src.loop:train_step:88 - 5/100 loss=1.9110 lr=3.00e-04 gn=9.7115
2026-01-20 17:33:46.059 | INFO     | src.loop:run_validation:91 - 10/100 loss=2.6831 acc=0.8333
2026-01-20 17:33:51.901 | INFO     | src.loop:train_step:88 - 10/100 loss=1.5664 lr=0.0011 gn=0.7917
2026-01-20 17:34:05.606 | INFO     | src.loop:run_validation:91 - 20/100 loss=2.5301 acc=0.8438
2026-01-20 17:34:09.606 | INFO     | src.loop:train_step:88 - 20/100 loss=1.2301 lr=0.0013 gn=0.7077
"""


def test_a_function_that_evaluates_says_so_of_the_lines_that_it_logs(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(LOGURU)
    run = read_run(tmp_path)
    assert run["loss"].step.tolist() == [0, 5, 10, 20]
    assert run["eval_loss"].value.tolist() == [2.6831, 2.5301]
    assert run["eval_loss"].step.tolist() == [10, 20]


def test_ep_is_the_epoch_where_batches_and_measures_of_learning_follow(tmp_path: Path) -> None:
    lines = []
    for epoch in range(6):
        lines += [f"ep {epoch} it {batch} mse {3 / (1 + epoch + batch / 80):.4f}\n" for batch in (0, 20, 40, 60)]
        lines.append(f"== ep {epoch}: train_mse {3 / (1.5 + epoch):.4f} | valid_mse {4 / (1.5 + epoch):.4f}\n")
    run = read(tmp_path, "".join(lines))
    assert len(run["mse"]) == 24
    assert len(run["eval_loss"]) == 6
    assert run["mse"].step.tolist() == sorted(run["mse"].step.tolist())
    assert not run.incidents


@pytest.mark.parametrize("word", [">> {} it:", "{} iters:", "-- {} steps |", "# {} iterations:"])
def test_a_line_between_bars_stands_at_the_count_before_its_word(word: str, tmp_path: Path) -> None:
    lines = []
    for step in range(10, 130, 10):
        epoch, batch = divmod(step - 1, 60)
        drawn = "#" * (batch // 6)
        lines.append(
            f"Epoch {epoch + 1}: 50%|{drawn:10}| {batch + 1}/60 [00:01<00:01, 50.0it/s, loss={3 - step / 50:.2f}]"
        )
        if step % 40 == 0:
            lines.append(f"  {word.format(step)} loss=0.5 word_acc={step / 200} word_rate=0.25")
    run = read(tmp_path, "\n".join([*lines, ""]))
    assert points(run, "word_acc") == {40: 0.2, 80: 0.4, 120: 0.6}
    assert points(run, "word_rate") == {40: 0.25, 80: 0.25, 120: 0.25}
    assert points(run, "loss") == pytest.approx({float(step): 3 - step / 50 for step in range(10, 130, 10)})


COUNTERS_WITHOUT_A_WORD = [
    "[{}/5000] - ", "({}/5000) ", "{}/5000 - ", "({}) | ", "<{}>, ", "#{} ", "{}it: ", "{}) ", "{}: ", "   {} file 07 ",
    "i={}, ", "u{:04} ", "n_iter {} | ", "rank=0 [{}/5000] | ", "[rank0]: [{}]: ", "[train] {}/5000, ",
    "Nov 20 10:00:00 node-7 python[4121]: [{}/5000] - ", "[INFO|trainer.py:88] 2026-11-20 10:00:00,123 >> [{}] ",
]  # fmt: skip


@pytest.mark.parametrize("counter", COUNTERS_WITHOUT_A_WORD)
def test_a_number_alone_in_front_of_the_values_is_the_step(counter: str, tmp_path: Path) -> None:
    steps = range(40, 1000, 20)
    run = read(tmp_path, "".join(f"{counter.format(at)}loss={4 - at / 500:.3f} lr=1e-3\n" for at in steps))
    assert run["loss"].step.tolist() == list(steps)
    assert not any("no step counter" in note for note in run.notes)


def test_a_number_alone_that_never_changes_is_no_step(tmp_path: Path) -> None:
    run = read(tmp_path, "".join(f"({4}) loss={4 - at / 50:.3f} lr=1e-3\n" for at in range(100)))
    assert run["loss"].step.tolist() == list(range(1, 101))


@pytest.mark.parametrize("gap", [" ", "  "])
def test_a_pace_behind_a_loss_is_named_by_what_stands_before_it(gap: str, tmp_path: Path) -> None:
    names = gap.join(("step {}", "loss 2.5", "tokens/s 50,889", "grad_norm 1.5"))
    run = read(tmp_path, "".join(f"{names.format(at)}\n" for at in range(30)))
    assert run["tokens/s"].value[0] == 50_889
    assert run["grad_norm"].value[0] == 1.5


def test_a_markdown_table_without_blanks_keeps_its_norms_and_its_empty_cells(tmp_path: Path) -> None:
    rows = "".join(
        f"|{at}|{2 - at / 50:.2f}|0.004||g{at}|\n".replace(f"g{at}", f"{at / 100}") for at in range(3, 60, 3)
    )
    run = read(tmp_path, f"|ep|loss|lr|note||g||\n|---|---|---|---|---|\n{rows}", "notes.md")
    assert run["grad_norm"].value[0] == 0.03
    assert run["loss"].value[0] == 1.94
    assert len(run["learning_rate"]) == 19


def test_columns_parted_by_blanks_may_be_norms_and_none_of_them_counts(tmp_path: Path) -> None:
    rows = "".join(f"  {at:4}   {1 + at / 97:.4E}     {0.5 - at / 999:.4f}  4.00E-03\n" for at in range(0, 90, 3))
    run = read(tmp_path, f"     i   |dE/dw|it   mse       lr\n{rows}", "PEND.DAT")
    assert run["learning_rate"].step.tolist() == list(range(0, 90, 3))
    assert run["grad_norm"].value[0] == 1.0


def test_the_numbers_of_a_printed_model_count_no_steps(tmp_path: Path) -> None:
    model = "  (0): Conv2d(3, 64, eps=1e-05)\n  (1): GroupNorm(16, 256, eps=1e-05, affine=True)\n" * 9
    run = read(tmp_path, model + "".join(f"[{at}/900] loss: {3 - at / 500:.3f}\n" for at in range(20, 900, 20)))
    assert run["loss"].step.tolist() == list(range(20, 900, 20))
    assert run.first_step == 20


@pytest.mark.parametrize("between", [" | ", ", "])
def test_statistics_behind_one_name_are_columns_of_that_name(tmp_path: Path, between: str) -> None:
    lines = [
        between.join((f"step {at}", f"nll 0.{at}", f"sigma min {0.5 - at / 10:.4f} mean 1.{at}", "lr 2e-3"))
        for at in EPOCHS
    ]
    run = read(tmp_path, "\n".join(lines))
    assert run["sigma min"].value[-1] == -0.1
    assert run["sigma mean"].value[0] == 1.1
    assert "mean" not in run


@pytest.mark.parametrize("second", ["meta-val (100 tasks)", "meta-val query loss"])
def test_values_before_and_after_an_adaptation_are_columns_of_the_one_name(tmp_path: Path, second: str) -> None:
    first = "meta-train query loss"
    lines = [f"Iteration {at} | {first} pre 3.{at} post 2.{at} | {second} pre 3.5 post 1.{at}" for at in EPOCHS]
    run = read(tmp_path, "\n".join(lines))
    assert run["meta-train query loss post"].value[0] == 2.1
    assert run["meta-val query loss pre"].value[0] == 3.5
    assert run["meta-val query loss post"].value[0] == 1.1
    assert run["meta-val query loss post"].role.is_evaluation  # type: ignore[union-attr]
    assert len(run.series) == 4


def test_the_loss_after_an_adaptation_that_falls_alone_is_healthy(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).normal(0, 0.1, (40, 4))
    lines = [
        f"Iteration {25 * at} | meta-train query loss pre {3.2 + a:.3f} post {1.7 + 2.4 * 0.9**at + b:.3f} "
        f"| meta-val (100 tasks) pre {3.2 + c:.3f} post {1.7 + 2.4 * 0.9**at + d:.3f}\n"
        for at, (a, b, c, d) in enumerate(noise.tolist(), start=1)
    ]
    (tmp_path / "log.txt").write_text("".join(lines))
    assert diagnose_run(tmp_path / "log.txt").hypotheses[0].cause == "healthy"


def test_words_and_a_number_between_two_bars_of_a_record_are_a_column(tmp_path: Path) -> None:
    text = "".join(
        f"| epoch 1 | {at}/ 54 batches | loss 7.{at} | ppl 13{at}.5 | max gnorm 0.2{at}\n"
        f"| epoch 1 | it took 5 | loss 7.{at} |\n"
        for at in EPOCHS
    )
    run = read(tmp_path, text)
    assert run["max gnorm"].value.tolist() == [float(f"0.2{at}") for at in EPOCHS]
    assert "it took" not in run


@pytest.mark.parametrize(("line", "names"), [
    ("step {0} | loss {1:.4f} | |lr*u| {2:.2e} |w-w_prev| {3:.2e} | wnorm 24.6",
     {"update_norm(lr.u)": 1e-3, "update_norm(w-w_prev)": 4e-4, "wnorm": 24.6}),
    ("{0} loss={1:.4f} |g|=2.5 |w|=24.6 |dw|={2:.2e}",
     {"grad_norm": 2.5, "weight_norm": 24.6, "update_norm(dw)": 1e-3}),
    ("iter {0}: loss {1:.4f}, |dw|/|w| {2:.2e}", {"update_ratio": 1e-3}),
])  # fmt: skip
def test_norms_in_bars_are_read_beside_one_another(tmp_path: Path, line: str, names: dict[str, float]) -> None:
    run = read(tmp_path, "".join(line.format(10 * at, 2 - at / 100, 1e-3, 4e-4) + "\n" for at in range(1, 21)))
    assert {name: run[name].value[-1] for name in names} == pytest.approx(names)
    assert run["loss"].step.tolist() == [10 * at for at in range(1, 21)]


@pytest.mark.parametrize(("head", "precision"), [
    ("loaded ckpt/stage1.pt (68.2K params, dtype torch.bfloat16)", "bf16"), ("model built, dtype: float16", "fp16"),
    ("params in dtype torch.float32", None), ("dtypes are checked", None),  # autocast may compute in another
])  # fmt: skip
def test_a_format_of_numbers_in_a_line_of_prose_is_a_setting(tmp_path: Path, head: str, precision: str | None) -> None:
    run = read(tmp_path, head + "\n" + "".join(f"step {at} loss {2 - at / 100:.3f}\n" for at in range(1, 21)))
    assert run.facts.precision == precision


@pytest.mark.parametrize("phase", ["val", "test", "dev"])
def test_evaluations_that_are_called_by_their_length_alone_are_losses_where_they_begin_as_the_loss(
    tmp_path: Path, phase: str
) -> None:
    losses = [1.5 + 2.5 * 0.9**at for at in range(1, 41)]

    def lines(times: float) -> str:
        return "".join(
            f"  {10 * at} loss={loss:.4f} gn=1.2\n"
            + (f"      {phase}@12={times * loss:.4f} {phase}@96={times * loss + 0.1:.4f}\n" if at % 5 == 0 else "")
            for at, loss in enumerate(losses, start=1)
        )

    run = read(tmp_path, lines(1.1))
    assert run["eval_loss@12"].step.tolist() == [50 * at for at in range(1, 9)]
    assert run["eval_loss@96"].value[0] == pytest.approx(1.1 * losses[4] + 0.1, abs=1e-3)
    assert f"{phase}@96" in read(tmp_path, lines(0.1)).series


BELOW: dict[str, tuple[str, dict[str, int | None]]] = {
    "lists": ("s{0} nll {1}\n   shard nll [{1}, {2}, 4.5]\n   peak g  [0.5 0.6 {2}]\n",
              {"shard nll/1": 1, "peak g/2": 1, "mean peak g": None}),
    "round": ("step {0} loss {1}\n  probe err ({1}, {2})\n", {"probe err/1": 1}),
    "heads": ("{0:>5}   loss {1}  g 0.5\n         upd/lr rms: emb {1} ln {2} head 0.5\n"
              "         sqrt(v) rms: emb 1e-3 ln {2}\n",
              {"upd/lr rms/ln": 1, "upd/lr rms/emb": 0, "sqrt(v) rms/ln": 1}),
    "commas": ("step={0} loss={1}\n    |w| by group: attn={1}, mlp={2}\n", {"w by group/mlp": 1}),
    "alone": ("step {0}: loss {1}\n    panel probe {2}\n", {"panel probe": 1}),
    "number above": ("#{0}\n  rows [{2}, 4]\n  loss   [{1}, {2}]\n  part  [0.5, {2}]  total {1}\n",
                     {"rows/0": 1, "part/1": 1, "total": 0}),
}  # fmt: skip


@pytest.mark.parametrize("style", BELOW)
def test_lists_and_groups_below_a_record_belong_to_it(style: str, tmp_path: Path) -> None:
    form, names = BELOW[style]
    values = [(10 * at, 4 - at / 4, 3 - at / 8) for at in range(1, 9)]
    run = read(tmp_path, "two ranks of a small model\n" + "".join(form.format(*each) for each in values))
    assert run["loss"].step.tolist() == [step for step, _, _ in values]
    for name, place in names.items():
        assert len(run[name]) == len(values)
        assert place is None or run[name].value.tolist() == [each[1 + place] for each in values]


@pytest.mark.parametrize("line", [
    "    val: loss {0} acc 0.5", "   it took about 3.5", "   the probe is at 0.5", "    lr: warmup 0.1 step 5",
])  # fmt: skip
def test_a_phase_or_a_sentence_below_a_record_heads_no_group(line: str, tmp_path: Path) -> None:
    run = read(tmp_path, "".join(f"step {at} loss {2 / at}\n{line.format(3 / at)}\n" for at in range(1, 9)))
    assert not any("/" in name or name.startswith(("it ", "the ")) for name in run.series)
    assert len(run["loss"]) == 8


@pytest.mark.parametrize(("line", "names"), [
    ("step {0} loss 2.5 ratio[min/mean/max]={1}/1.5/{2} g=0.5", {"ratio/min": 1, "ratio/max": 2, "g": None}),
    ("step {0} loss 2.5 | zap (disk/net): {1}/{2}s | acc 0.5", {"zap/disk_s": 1, "zap/net_s": 2}),
    ('step {0} loss 2.5\n   dev [acc, gap] {{"qa": [{1}, 0.5], "web": [0.5, {2}]}}',
     {"eval_qa/acc": 1, "eval_web/gap": 2}),
    ("step {0} loss 2.5\n   dev (acc|gap) qa {1}|0.5, web 0.5|{2}", {"eval_qa/acc": 1, "eval_web/gap": 2}),
    ("step {0} loss 2.5 norms [lo, hi] ({1}, {2})", {"norms/lo": 1, "norms/hi": 2}),
    ("step {0} loss 2.5  zap/sync/hooks: {1}/0.5/{2} ms", {"zap_ms": 1, "hooks_ms": 2}),
    ("step {0} loss 2.5\n   dev acc/gap: qa {1}/0.5, web 0.5/{2}", {"eval_qa/acc": 1, "eval_web/gap": 2}),
])  # fmt: skip
def test_names_in_brackets_are_those_of_as_many_values_behind_them(
    line: str, names: dict[str, int | None], tmp_path: Path
) -> None:
    values = [(at, at / 20, 0.5 + at / 25) for at in range(1, 10)]
    run = read(tmp_path, "".join(line.format(*each) + "\n" for each in values))
    for name, place in names.items():
        assert len(run[name]) == len(values)
        assert place is None or run[name].value.tolist() == [each[place] for each in values]


@pytest.mark.parametrize("line", ["tok/s: 900.5 loss 2.5", "loss (train/val): 2.5/0.5", "loss/rank: 2.5/2.5"])
def test_a_pace_two_phases_and_ranks_are_no_parts(line: str, tmp_path: Path) -> None:
    run = read(tmp_path, "".join(f"step {at} {line}\n" for at in range(1, 10)))
    assert not {"tok", "s", "rank"} & run.series.keys()
    assert any(2.5 in series.value for name, series in run.series.items() if "loss" in name)


def test_names_in_brackets_of_another_count_name_no_values(tmp_path: Path) -> None:
    run = read(tmp_path, "".join(f"step {at} loss 2.5 ratio[min/mean/max]=0.{at}/1.5\n" for at in range(1, 10)))
    assert not {"ratio/min", "ratio/mean", "ratio/max"} & run.series.keys()


SLASHED = "step {0} loss {1} g 0.5  0.1/{2}/3.5 ms  tok/s 900\n"


@pytest.mark.parametrize(("above", "names"), [
    ("cpu-ms per step (process clock): get/fwd/hooks, means of 20", ("get_ms", "fwd_ms", "hooks_ms")),
    ("each line ends in [get, fwd, hooks]", ("get_ms", "fwd_ms", "hooks_ms")),
    ("times are get | fwd | hooks", ("get_ms", "fwd_ms", "hooks_ms")),
    ("get/fwd/hooks or pull/run/push", ("part1of3_ms", "part2of3_ms", "part3of3_ms")),
    ("a small model", ("part1of3_ms", "part2of3_ms", "part3of3_ms")),
])  # fmt: skip
def test_values_that_slashes_join_have_the_names_of_a_line_above_or_their_places(
    above: str, names: tuple[str, ...], tmp_path: Path
) -> None:
    lines = "".join(SLASHED.format(at, 3 - at / 20, 1 + at / 20) for at in range(1, 20))
    run = read(tmp_path, f"{above}\n{lines}")
    assert all(len(run[name]) == 19 for name in names)
    assert run[names[2]].value[0] in (3.5, 0.0035)


@pytest.mark.parametrize(("parts", "quantity"), [((3.0, 4.0, 12.0), "weight_norm"), ((0.3, 0.4, 1.2), "grad_norm")])
@pytest.mark.parametrize("form", ["|{0}|", "‖{0}‖", "||{0}||"])
def test_norms_in_bars_are_of_gradients_where_they_add_up_to_the_whole(
    parts: tuple[float, ...], quantity: str, form: str, tmp_path: Path
) -> None:
    header = ";".join(["it", "train_nll", "|g|", *(form.format(part) for part in ("emb", "qkv", "mlp"))])
    rows = (";".join(map(str, (at, 3 - at / 50, 1.3, *parts))) for at in range(1, 21))
    run = read(tmp_path, "\n".join([header, *rows, ""]), "norms.csv")
    assert run[f"{quantity}/mlp"].value[0] == parts[2]


@pytest.mark.parametrize("sample", [
    "sample: prompt='q12' gold='10 13 14' completion='10 clearly 3 therefore 13 hence' reward=1.40",
    "[eval] sample @ 20: 'mix 1 spoons' => 'loss 4 4 4 4'", 'Example 3: "acc 0.5 and loss 7.0" -> "reward 2 loss 9"',
    "completion: 'therefore loss 13 because loss 3'",
])  # fmt: skip
def test_the_numbers_of_a_row_that_is_shown_are_no_metrics(tmp_path: Path, sample: str) -> None:
    text = "".join(f"step {at} loss {2 / at:.4f} reward {0.1 * at:.4f}\n{sample}\n" for at in EPOCHS)
    run = read(tmp_path, text)
    assert set(run.series) == {"loss", "reward"}
    assert points(run, "reward") == pytest.approx({at: 0.1 * at for at in EPOCHS})


@pytest.mark.parametrize(("line", "named"), [
    ("stage='train' step={at} loss={loss:.4f}", {"loss"}),
    ("step={at} loss={loss:.4f} note='val loss 7 and acc 3' lr=0.1", {"loss", "learning_rate"}),
])  # fmt: skip
def test_a_quoted_text_amid_a_line_has_no_metrics_and_a_quoted_word_is_read_on(
    tmp_path: Path, line: str, named: set[str]
) -> None:
    run = read(tmp_path, "".join(line.format(at=at, loss=2 / at) + "\n" for at in EPOCHS))
    assert set(run.series) == named


@pytest.mark.parametrize("mark", ["#step", "# step", "step"])
def test_names_in_columns_at_the_right_that_single_blanks_part_are_read_however_many(tmp_path: Path, mark: str) -> None:
    names = (mark, "train/loss", "optim/total_grad_norm", "lr", "rewards/chosen", "rewards/rejected",
             "rewards/accuracies", "rewards/margins", "logps/chosen", "val/loss")  # fmt: skip
    rows = [(str(at), f"{0.7 - at / 100:.3f}", "0.2", "1.0e-04", "-0.1", "-0.2", f"{0.5 + at / 20:.3f}", "0.1", "-30.5",
             "--") for at in EPOCHS]  # fmt: skip
    rows.append(("6", "--", "--", "--", "-0.3", "-0.1", "0.3", "-0.2", "-31.5", "0.750"))
    widths = [7, *(max(9, len(name)) for name in names[1:])]
    text = "".join(
        " ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) + "\n" for row in (names, *rows)
    )
    run = read(tmp_path, text)
    assert len(run["loss"].finite) == len(EPOCHS)
    assert points(run, "eval_loss") == {6: 0.75}
    assert run["rewards/accuracies"].value[:2].tolist() == pytest.approx([0.55, 0.6])


def test_a_share_in_percent_behind_a_word_for_a_counter_counts_nothing(tmp_path: Path) -> None:
    shares = [0.0, 72.0, 71.3, 4.0, 70.0, 74.0, 12.5, 9.0]
    run = read(
        tmp_path,
        "".join(
            f"u{5 * at:05}: ctc {9 - at / 4:.3f} nat/phone | blank frames {share:5.1f} % | gnorm 3.8 | lr 6.0e-4\n"
            for at, share in enumerate(shares, 1)
        ),
    )
    assert run["loss"].step.tolist() == [5 * at for at in range(1, 9)]
    assert len(run.segments) == 1


def test_a_measure_with_its_set_and_a_remark_in_brackets_is_of_that_set(tmp_path: Path) -> None:
    run = read(
        tmp_path,
        "".join(
            f"  {at:2}  loss[train,dropout]={1.7 - at / 20:.3f}  acc[train,dropout]={0.16 + at / 40:.2f}  "
            f"loss[val]={1.6 - at / 20:.3f}  acc[val]={0.2 + at / 40:.3f}\n"
            for at in range(20)
        ),
    )
    assert points(run, "loss")[0] == 1.7
    assert points(run, "accuracy")[0] == 0.16
    assert points(run, "eval_loss")[0] == 1.6
    assert points(run, "eval_accuracy")[0] == 0.2
    assert not any("no other word stands next to the phase" in note for note in run.notes)


def test_epoch_and_batch_by_their_letters_and_classes_below_a_record_are_read(tmp_path: Path) -> None:
    run = read(
        tmp_path,
        "".join(
            "".join(f"  [e{at:02} b{batch:03}] pixel_ce={0.9 - at / 10:.5f}  gnorm=0.96\n" for batch in (0, 10, 20))
            + f"== epoch {at:02} == train_ce {0.9 - at / 10:.5f} | val_ce {0.8 - at / 10:.5f} | pixel_acc 99.14%\n"
            "     IoU   background 0.991  crack 0.000  pore 0.012  mean 0.334\n"
            "     predicted share  background 99.90%  crack 0.00%  pore 0.10%\n"
            for at in range(6)
        ),
    )
    assert run["grad_norm"].step.tolist()[:4] == [0, 10, 20, 30]
    assert len(run["pixel_ce"]) == 18
    assert points(run, "IoU/crack") == dict.fromkeys(run["eval_loss"].step.tolist(), 0.0)
    assert run["IoU/pore"].value[-1] == 0.012
    assert "predicted share/background" in run


def test_a_second_group_of_a_line_replaces_no_number_of_the_first(tmp_path: Path) -> None:
    run = read(
        tmp_path,
        "".join(
            f"ep{at:02} > train: nll {1.8 - at / 20:.3f} acc {40 + at:.1f} %\n"
            f"ep{at:02} > val: nll {1.7 - at / 50:.3f} acc {36 + at / 2:.1f} %   "
            f"second pass, same files: nll {1.6 - at / 50:.3f} acc {35 + at / 2:.1f} %\n"
            f"ep{at:02} > first 300 train images through the val path: nll {1.75 - at / 50:.3f} acc {39 + at:.1f} %\n"
            for at in range(12)
        ),
    )
    assert run["eval_loss"].value[0] == 1.7
    assert run["eval_accuracy"].value[0] == 0.36
    assert run["eval_second_pass_nll"].value[0] == 1.6
    assert run["loss"].value[:2].tolist() == [1.8, 1.75]
    assert run["eval_on_train_rows/nll"].value[0] == 1.75


def test_an_epoch_behind_a_step_of_many_is_no_episode(tmp_path: Path) -> None:
    run = read(
        tmp_path,
        "".join(
            f"[ {2 * at:5}/140] ep 0 train/loss: {-at / 100:.4f} train/reward: {at / 40:.4f}\n"
            + (f"  >> ep 0 step {2 * at} eval val/top1: {at / 40:.4f}\n" if at % 10 == 0 else "")
            for at in range(1, 31)
        ),
    )
    assert run.step_name == "step"
    assert run["reward"].step.tolist() == [2 * at for at in range(1, 31)]
    assert run["eval_accuracy"].step.tolist() == [20, 40, 60]


def test_norms_of_the_gradient_by_player_are_kept_where_one_is_zero_throughout(tmp_path: Path) -> None:
    run = read(
        tmp_path,
        "".join(
            f"it={20 * at:<5} D {1.4 - at / 30:.4f}  G {0.7 + at / 30:.4f} "
            f"D(x)=0.5{at:02} |gD|=0.4{at:02} |gG|=0.0000\n"
            for at in range(20)
        ),
    )
    assert run["grad_norm/G"].value.tolist() == [0.0] * 20
    assert run["grad_norm/D"].value[3] == 0.403


def test_numbers_of_a_line_of_settings_are_of_their_own_words(tmp_path: Path) -> None:
    records = "".join(f"epoch {at}: loss {2 - at / 10:.3f}\n" for at in range(1, 9))
    head = "args: net=mlp dropout=0.5 opt=adam lr=0.002 bs_train=100 epochs=30 classes=8\n"
    run = read(tmp_path, head + records)
    assert (run.setting("num_labels"), run.setting("num_train_epochs")) == (8, 30)
    head = "conv-ctc  utts 1600/200  adam peak lr 6e-4, linear warm-up 100 updates  clip 5.0  batch 16  12 epochs\n"
    run = read(tmp_path, head + records)
    assert (run.setting("warmup_steps"), run.setting("max_steps"), run.setting("num_train_epochs")) == (100, None, 12)
    head = "kws | adamw wd .05 batch 50 | checkpoint: weights, optimizer, sampler, every 100 steps\n"
    assert read(tmp_path, head + records).setting("max_steps") is None
    run = read(tmp_path, f"envs=32 rollout=40 epochs=4 minibatches=4 lr=1e-3 clip=0.2 gamma=0.98\n{records}")
    assert (run.setting("n_steps"), run.setting("num_generations")) == (40, None)


@pytest.mark.parametrize(
    "line",
    [
        "Epoch {at} Train, loss = {train:.4f}\nEpoch {at} Valid, loss = {held_out:.4f}\n",
        "  {at} |######      | dice 0.3{at:02} (liver 0.2{at:02} kidney 0.4{at:02})  "
        "ce {train:.4f}/{held_out:.4f} tr/va  patience 0/8\n",
    ],
)
def test_sets_behind_an_epoch_or_behind_two_numbers_are_those_of_the_losses(tmp_path: Path, line: str) -> None:
    losses = {at: (round(0.7 - at / 20, 4), round(0.6 - at / 20, 4)) for at in range(12)}
    text = (line.format(at=at, train=train, held_out=held_out) for at, (train, held_out) in losses.items())
    run = read(tmp_path, "".join(text))
    assert points(run, "loss") == {at: train for at, (train, _) in losses.items()}
    assert points(run, "eval_loss") == {at: held_out for at, (_, held_out) in losses.items()}


def test_two_numbers_in_front_are_an_epoch_and_a_batch_where_the_second_begins_anew(tmp_path: Path) -> None:
    run = read(
        tmp_path,
        "".join(
            f"  {at:02}/{batch}  lr=1.66e-04  loss={2.3 - at / 5 - batch / 1000:.4f}  acc=0.{at}{batch}\n"
            for at in range(6)
            for batch in (12, 24, 36)
        ),
    )
    assert run["loss"].step.tolist() == [36 * at + batch for at in range(6) for batch in (12, 24, 36)]
    steps = read(tmp_path, "".join(f"  {at}/600  loss={2.3 - at / 500:.4f}\n" for at in range(0, 600, 50)))
    assert steps["loss"].step.tolist() == list(range(0, 600, 50))
