"""What lines above and below the records state of sets of rows, of inputs, and of weights that are scored anew."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from mldebug_mcp import RunDiagnosis, diagnose_run

EPOCHS = 14


def diagnosed(folder: Path, head: Sequence[str] = (), foot: Sequence[str] = (), *, gap: float = 0.03) -> RunDiagnosis:
    """Diagnose a text of losses that fall, with lines above and below them; training ends at 0.2."""
    losses = [0.2 + 1.6 * math.exp(-at / 3) + 0.004 * math.sin(9 * at) for at in range(EPOCHS)]
    lines = [f"epoch {at}: train nll {loss:.4f} | valid nll {loss + gap:.4f}" for at, loss in enumerate(losses, 1)]
    (folder / "train.log").write_text("\n".join([*head, *lines, *foot]) + "\n", encoding="utf-8")
    return diagnose_run(folder / "train.log")


def facts(seen: RunDiagnosis) -> set[str]:
    return {fact.fact for fact in seen.sheet.facts}


SCORED_ANEW = [
    ["weights e14.ckpt, second pass over valid", "  nll 0.2711", "  nll 0.2394"],
    ["weights/last.pt on valid: nll 0.2601", "weights/last.pt on valid, again: nll 0.2417"],
    ["re-scored e14.ckpt (valid): nll 0.2601", "re-scored e14.ckpt (valid): nll 0.2417"],
    ["== same checkpoint, rows sorted and shuffled", "   valid sorted    1.8120", "   valid shuffled  0.2333"],
    ["valid nll 0.2601 once more 0.2417"],
    ["served model on valid: nll 0.1204"],
]


@pytest.mark.parametrize("foot", SCORED_ANEW)
def test_weights_that_score_otherwise_the_second_time_are_in_the_wrong_mode(foot: list[str], tmp_path: Path) -> None:
    seen = diagnosed(tmp_path, foot=foot)
    assert "evaluated_twice" in facts(seen)
    assert seen.hypotheses[0].cause == "eval_mode_bug"


@pytest.mark.parametrize("foot", [
    ["weights e14.ckpt, second pass over valid", "  nll 0.2417", "  nll 0.2417"],
    ["second pass over the corpus begins", "valid nll 0.2301", "valid nll 0.2214"],
    ["valid nll 0.2601", "EMA weights on valid, again: nll 0.2417"],
    ["exported model.onnx, check on valid: nll 0.2302", "test set: nll 0.2114"],
])  # fmt: skip
def test_equal_scores_and_those_of_other_weights_or_rows_need_no_wrong_mode(foot: list[str], tmp_path: Path) -> None:
    assert "evaluated_twice" not in facts(diagnosed(tmp_path, foot=foot))


@pytest.mark.parametrize("head", [
    ["loader check: train pixels mean 0.002 std 0.998", "loader check: valid pixels mean 117.3 std 62.1"],
    ["peek feed    min -1.98 max 1.89 mean -0.00 dev 0.99", "peek holdout min 0.00 max 1.00 mean 0.51 dev 0.26"],
    ["first batch  train: -3.9 .. 4.1   val: -80.0 .. 0.0"],
    ["spectrogram in dB: training 0.0 ± 1.0, valid -41.7 ± 18.3"],
])  # fmt: skip
def test_inputs_that_are_printed_apart_are_prepared_in_another_way(head: list[str], tmp_path: Path) -> None:
    seen = diagnosed(tmp_path, head, gap=2.5)
    assert "inputs_differ" in facts(seen)
    assert seen.hypotheses[0].cause == "train_eval_mismatch"


@pytest.mark.parametrize("head", [
    ["train pixels mean 0.002 std 0.998", "valid pixels mean 0.031 std 1.043"],
    ["train set: length mean 41.2 max 512", "valid set: length mean 40.8 max 118"],
    ["x fit: min -3.2 max 3.9", "x valid: min -2.7 max 2.8"],
])  # fmt: skip
def test_inputs_of_one_source_and_lengths_do_not_differ(head: list[str], tmp_path: Path) -> None:
    assert "inputs_differ" not in facts(diagnosed(tmp_path, head))


@pytest.mark.parametrize("head", [
    ["records: 12,600 (900 donors)", "fit    11,340 records, 900 donors", "check   1,260 records, 688 donors"],
    ["| table | rows 5,400 | cows 300 |", "| train rows 4,860 cows 300 | eval rows 540 cows 251 |"],
    ["split by row: fit 7,200 scans (640 patients), holdout 1,800 scans (511 patients); 642 patients in all"],
    ["training rows: 9600  (machines: 160)", "validation rows: 2400  (machines: 158)"],
])  # fmt: skip
def test_groups_that_add_up_to_more_than_there_are_leak(head: list[str], tmp_path: Path) -> None:
    seen = diagnosed(tmp_path, head, gap=0.004)
    assert "groups_shared" in facts(seen)
    assert seen.hypotheses[0].cause == "train_eval_leakage"


@pytest.mark.parametrize("head", [
    ["all 12,600 records, 900 donors", "fit    11,340 records, 810 donors", "check   1,260 records, 90 donors"],
    ["train 6,000 images (120 breeds)", "valid 1,200 images (120 breeds)"],
    ["ratings 100,000, users 943", "train 80,000 ratings, 943 users", "valid 20,000 ratings, 943 users"],
])  # fmt: skip
def test_groups_that_are_split_whole_and_classes_do_not_leak(head: list[str], tmp_path: Path) -> None:
    assert "groups_shared" not in facts(diagnosed(tmp_path, head))


@pytest.mark.parametrize(("off", "differs"), [(0.0, False), (0.03, True)])
def test_a_second_pass_in_the_line_of_the_first_is_compared_with_it(tmp_path: Path, off: float, differs: bool) -> None:
    lines = [
        line
        for at in range(EPOCHS)
        for line in (
            f"ep{at:02} > train: nll {1.8 - at / 20:.3f} acc {40 + at:.1f} %",
            f"ep{at:02} > val: nll {1.7 - at / 50:.3f} acc {36 + at / 2:.1f} %   second pass, same files: "
            f"nll {1.7 - at / 50 + off:.3f} acc {36 + at / 2 - 90 * off:.1f} %",
        )
    ]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    seen = diagnose_run(tmp_path / "train.log")
    assert ("evaluated_twice" in facts(seen)) is differs
    stated = [fact.text for fact in seen.sheet.facts if fact.fact == "evaluated_twice"]
    assert all(" % off" in text and float(text.partition(" is ")[2].partition(" %")[0]) < 10 for text in stated)


@pytest.mark.parametrize(("low", "high", "mean", "differs"), [(0, 255, 114.1, True), (-1.7, 2.2, 0.02, False)])
def test_inputs_that_a_note_next_to_the_log_measures_are_compared(
    tmp_path: Path, low: float, high: float, mean: float, differs: bool
) -> None:
    spread = 64.7 if differs else 1.0
    (tmp_path / "notes.txt").write_text(
        "conv net, AdamW lr 1e-3, batch 50\n"
        "train tensor  shape (4000,1,16,16)  min -1.76 max 2.17 mean 0.000 std 1.000\n"
        f"valid tensor  shape (800,1,16,16)  min {low} max {high} mean {mean} std {spread}\n",
        encoding="utf-8",
    )
    rows = "".join(f"{at},{2 - at / 20:.3f},{2.1 - at / 30:.3f}\n" for at in range(EPOCHS))
    (tmp_path / "metrics.csv").write_text(f"epoch,train_ce,valid_ce\n{rows}", encoding="utf-8")
    assert ("inputs_differ" in facts(diagnose_run(tmp_path))) is differs


@pytest.mark.parametrize(("reduction", "differs"), [("sum", True), ("mean", False)])
def test_parts_of_a_loss_that_are_reduced_in_two_ways_are_stated(tmp_path: Path, reduction: str, differs: bool) -> None:
    (tmp_path / "vae.yaml").write_text(
        f"objective:\n  recon: mse\n  recon_reduction: mean\n  kl_reduction: {reduction}\n  beta: 1.0\n"
        "optim: {name: adam, lr: 1.0e-3}\nbatch: 64\nepochs: 20\n",
        encoding="utf-8",
    )
    lines = (f"step {at}: loss {0.4 / at:.4f} mse {0.3 / at:.4f} kl {0.1 / at:.5f}" for at in range(1, 40))
    (tmp_path / "vae.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    seen = diagnose_run(tmp_path)
    assert ("parts_reduced_apart" in facts(seen)) is differs
    if differs:
        assert "wrong_loss" in [hypothesis.cause for hypothesis in seen.hypotheses[:2]]
