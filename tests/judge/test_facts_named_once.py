"""Facts of columns that a line names once: parts under one heading, ranks in brackets, shares, sets of a dict."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.judge.test_relations import facts
from tests.logs.reading import read

from mldebug_mcp import RunDiagnosis, diagnose_run


def diagnosed_lines(folder: Path, lines: Sequence[str]) -> RunDiagnosis:
    log = folder / "train.log"
    log.write_text("\n".join(lines) + "\n")
    return diagnose_run(log)


def scatter(step: int, wide: float = 0.05) -> float:
    return wide * ((step * 37 % 11) / 5 - 1)


def test_a_norm_that_stays_under_the_heading_of_one_that_moves_is_kept(tmp_path: Path) -> None:
    lines = ["adam 2e-3 | batch 60 | clip none"]
    for epoch in range(1, 13):
        lines += [
            f"--- epoch {epoch} ---",
            f"loss {2.0 - epoch / 100 + scatter(epoch, 0.01):.4f}  acc {0.22 + scatter(epoch):.3f}",
            f"grad norms: emb {0.02 + epoch / 900:.4f}  enc {0.2 + epoch / 30:.4f}  head {0.3 + scatter(epoch):.4f}",
            f"norms: emb 98.7945  enc 9.0454  head {4.4 + epoch * 0.4:.4f}",
        ]
    assert "part_stands_still_with_gradient" in facts(diagnosed_lines(tmp_path, lines))


def test_a_norm_that_is_applied_at_one_bound_shows_the_clipping(tmp_path: Path) -> None:
    run = read(
        tmp_path,
        "".join(
            f"epoch {epoch} loss {1.7 / epoch:.4f} grad norm {0.6 + 1.4 / epoch:.3f}, applied 0.010\n"
            for epoch in range(1, 13)
        ),
    )
    assert set(run["clipped_grad_norm"].value) == {0.01}


@pytest.mark.parametrize(("whole", "share"), [("33,608", 823 / 33608), ("33608", 823 / 33608)])
def test_a_share_of_thousands_is_divided_by_all_of_them(tmp_path: Path, whole: str, share: float) -> None:
    run = read(tmp_path, "".join(f"step {step} loss {2 / step:.4f} kept 823/{whole}\n" for step in range(1, 9)))
    assert run["kept"].value[0] == pytest.approx(share)


def test_few_weights_move_where_a_line_says_that_they_are_in_half_precision(tmp_path: Path) -> None:
    lines = ["params: 33k  weights: bfloat16  batch: 60"] + [
        f"step {step * 50}  loss {2.1 - step / 300 + scatter(step, 0.02):.4f}  grad norm {0.45 + scatter(step):.3f}  "
        f"moved {3300 - step * 90:,}/33,608"
        for step in range(1, 33)
    ]
    assert "few_weights_change" in facts(diagnosed_lines(tmp_path, lines))


def test_the_lists_behind_by_rank_are_of_the_metric_in_front(tmp_path: Path) -> None:
    line = "step {} loss 2.059 by rank [2.064 2.093 2.040 2.0{}] grad norm 0.24 by rank [0.40 0.41 0.45 0.46]\n"
    run = read(tmp_path, "".join(line.format(step * 10, 10 + step) for step in range(1, 9)))
    assert run["loss by rank/rank1"].value[0] == 2.093
    assert run["grad norm by rank/rank3"].value[0] == 0.46


def test_the_sets_and_sources_of_a_printed_dict_keep_their_names(tmp_path: Path) -> None:
    run = read(
        tmp_path,
        "".join(
            f"{{'epoch': {epoch}, 'loss': {{'forum': {0.9 / epoch:.3f}, 'web': 1.7}}, "
            f"'val': {{'loss': 1.1, 'acc': 0.69}}, 'checked_400': {{'acc': 0.9}}}}\n"
            for epoch in range(1, 9)
        ),
    )
    assert {"loss/forum", "loss/web", "eval_loss", "eval_accuracy", "checked_400/acc"} <= run.series.keys()
    assert "accuracy" not in run.series


def test_a_log_may_begin_with_a_block_of_names_without_quotes(tmp_path: Path) -> None:
    lines = "".join(f"{step}\tloss {2 / step:.4f}\tacc 0.{60 + step}\n" for step in range(1, 9))
    assert len(read(tmp_path, "{\n  beta: 0.1\n  lr: 3e-4, warmup 20\n}\n" + lines)["loss"]) == 8


def test_a_batch_of_so_many_rows_is_not_so_many_batches_an_epoch(tmp_path: Path) -> None:
    lines = "".join(f"step {step} loss {2 / step:.4f}\n" for step in range(1, 9))
    assert read(tmp_path, "sgd lr=0.02 momentum=0 batch=48 batches/epoch=100\n" + lines).facts.steps_per_pass == 100


@pytest.mark.parametrize(("harder", "stated"), [("'mixup': 0.5, 'label_smoothing': 0.1 (train only)", 0.5), ("", None)])
def test_what_makes_rows_harder_is_read_of_a_dict_with_remarks(
    tmp_path: Path, harder: str, stated: float | None
) -> None:
    lines = "".join(f"step {step} loss {2 / step:.4f}\n" for step in range(1, 9))
    assert read(tmp_path, f"{{{harder}, 'lr': '1e-3 cosine'}}\n{lines}").setting("mixup") == stated


@pytest.mark.parametrize(("bad", "stated"), [((16,), True), ((5, 16), False), ((0,), False)])
def test_one_place_in_the_midst_of_each_pass_is_of_bad_rows(tmp_path: Path, bad: tuple[int, ...], stated: bool) -> None:
    lines = []
    for epoch in range(1, 10):
        mean = 1.0
        for shard in range(24):
            own = 40.0 if shard in bad else 0.1 + scatter(shard + epoch, 0.01)
            mean += (own - mean) / (shard + 1)
            lines.append(
                f"epoch {epoch} shard {shard + 1}/24 loss(avg) {mean:.3f} grad norm "
                f"{(15.0 if shard in bad else 0.3) + scatter(shard * epoch):.2f}"
            )
    assert ("norm_high_at_one_place" in facts(diagnosed_lines(tmp_path, lines))) is stated


def test_a_norm_that_grows_with_each_batch_is_a_sum_by_the_name_of_the_batch_alone(tmp_path: Path) -> None:
    rows = [16] * 15 + [32] * 10 + [64] * 10
    lines = ["update,batch,loss,grad_norm"] + [
        f"{step * 10},{size},{3 - step / 30 + scatter(step, 0.02):.3f},{size / 50 + scatter(step, 0.02):.3f}"
        for step, size in enumerate(rows, start=1)
    ]
    log = tmp_path / "train.csv"
    log.write_text("\n".join(lines) + "\n")
    assert "norm_rises_with_batch" in facts(diagnose_run(log))


@pytest.mark.parametrize(("most", "stated"), [(60.0, True), (57.3, False)])
def test_a_mean_length_that_stays_at_one_whole_number_is_at_its_limit(
    tmp_path: Path, most: float, stated: bool
) -> None:
    lines = [
        f"step {step}: reward {min(0.25 + step / 20, 0.9) + scatter(step, 0.02):.3f}, loss {scatter(step):.3f}, "
        f"entropy 3.15, grad norm {0.8 + scatter(step):.2f}, completion_length "
        f"{min(6.4 + 4.3 * step, most) - (0.4 if step % 3 else 0.0):.1f}"
        for step in range(40)
    ]
    assert ("cut_ones_earn" in facts(diagnosed_lines(tmp_path, lines))) is stated
