"""Texts in which no known form finds a metric: numbers are read by where they stand in lines that come again."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from tests.logs.test_lines_of_ones_own import read

from mldebug_mcp import diagnose_run
from mldebug_mcp.core.errors import InputError

STEPS = range(1, 13)
FORMS = {
    "slashes": ("{step:>6,}  tr {loss:.4f}/{acc:.3f}  te {dev:.4f}/{dev_acc:.3f}  w {norm:.2f}\n", 100, "step"),
    "letters": ("u{step:03} trn {loss:.4f} held-out {dev:.4f} | spare {norm:.2f}\n", 10, "step"),
    "percent": (
        "{step:02}  tr {loss:.4f} ({percent:.1f}%)\n    val {dev:.4f} ({percent:.1f}%)   w {norm:.2f}\n",
        1,
        "step",
    ),
    "blocks": ("--- pass {step}\n    trn {loss:.4f}\n    val {dev:.4f}\n    w {norm:.2f}\n", 1, "epoch"),
    "sections": ("round {step}\n fit\n   nats {loss:.4f}\n tune\n   nats {dev:.4f}\n w {norm:.2f}\n", 1, "epoch"),
    "bare": ("{step}  {loss:.4f}\nvalid {dev:.4f}  w {norm:.2f}\n", 20, "step"),
    "columns": ("| {step} | {loss:.4f} | {dev:.4f} | {norm:.2f} |\n", 20, "step"),
}
HEADS = {"columns": "# my run\n\n- sgd, rate .1\n\n| step | train | dev | w |\n|---:|---:|---:|---:|\n"}


def written(form: str, every: int) -> str:
    lines = [HEADS.get(form, "a net of mine, sgd, three layers\n")]
    for at in STEPS:
        acc = 0.05 * at
        lines.append(FORMS[form][0].format(
            step=at * every, loss=3 - 0.2 * at, dev=3.1 - 0.2 * at, acc=acc, dev_acc=acc, percent=100 * acc,
            norm=40 + at,
        ))  # fmt: skip
    return "".join(lines)


@pytest.mark.parametrize("form", FORMS)
def test_the_losses_of_a_layout_of_ones_own_are_read_with_their_steps(tmp_path: Path, form: str) -> None:
    _, every, unit = FORMS[form]
    run = read(tmp_path, written(form, every))
    assert run.step_name == unit
    assert run["loss"].step.tolist() == [every * at for at in STEPS]
    assert run["loss"].value.tolist() == pytest.approx([3 - 0.2 * at for at in STEPS], abs=1e-4)
    assert run["eval_loss"].value.tolist() == pytest.approx([3.1 - 0.2 * at for at in STEPS], abs=1e-4)
    assert any(series.value[-1] == 52 for series in run.series.values())
    assert any("guessed" in note for note in run.notes)


@pytest.mark.parametrize("form", ["slashes", "percent"])
def test_the_share_behind_a_loss_is_the_accuracy_of_its_phase(tmp_path: Path, form: str) -> None:
    run = read(tmp_path, written(form, FORMS[form][1]))
    assert run["accuracy"].value[-1] == pytest.approx(0.6)
    assert run["eval_accuracy"].value[-1] == pytest.approx(0.6)


def test_groups_of_a_line_keep_the_numbers_of_parts_of_one_name_apart(tmp_path: Path) -> None:
    block = (
        "round {at}\ntrain     {loss:.4f}\nheld      {loss:.4f}   {at}/20\n"
        "grad      head {at}.5   body 0.{at:02}\nsize      head {at}.75   body 4.{at:02}\n"
    )
    run = read(tmp_path, "".join(block.format(at=at, loss=3 - 0.1 * at) for at in STEPS))
    assert {run[name].value[-1] for name in ("grad head", "grad body", "size head", "size body")} == {
        12.5,
        0.12,
        12.75,
        4.12,
    }
    assert run["eval_accuracy"].value[-1] == 0.6


def test_names_above_rows_name_their_cells_and_samples_between_them_are_passed_over(tmp_path: Path) -> None:
    rows = "".join(f"{at}, {0.1 * at:.3f}, {at}/80, 1.5\n   > 5+{at}= -> 7$$ 12\n" for at in STEPS)
    run = read(tmp_path, f"adder | cap 32 tokens\niter, score, at_cap, len(mean)\n{rows}")
    assert run["score"].value[-1] == 1.2
    assert run["at_cap"].value[-1] == 0.15
    assert run["score"].step.tolist() == list(STEPS)


@pytest.mark.parametrize("line", [
    "pass {at}  ce {loss:.4f} (+ {extra:.3f} penalty)  next(){wait}ms  {pace}img/s\n",
    "it{at} ce{loss:.4f} penalty {extra:.3f} | next {wait}ms | {pace}img/s\n",
    "<{at}> ce {loss:.4f} [{extra:.3f} penalty] next={wait}ms, {pace}img/s\n",
])  # fmt: skip
def test_what_stands_behind_a_number_names_it_or_is_its_unit(tmp_path: Path, line: str) -> None:
    text = "".join(line.format(at=at, loss=3 - 0.2 * at, extra=0.5 + at, wait=50 + at, pace=200 + at) for at in STEPS)
    run = read(tmp_path, f"my own net\n{text}")
    ends = {name: float(series.value[-1]) for name, series in run.series.items()}
    assert ends["loss"] == pytest.approx(0.6)
    assert ends["penalty"] == 12.5
    assert ends["data_time"] == pytest.approx(0.062)
    assert ends["img/s"] == 212


@pytest.mark.parametrize("line", [
    "    score last 50: {score:+.3f} +- {spread:.3f}\n    actor: entropy {entropy:.3f} of 0.693\n",
    "    score last 50 = {score:+.3f} ± {spread:.3f}\n    actor: entropy {entropy:.3f} out of 0.693\n",
])  # fmt: skip
def test_a_number_that_ends_a_name_and_the_bound_of_another_are_no_values(tmp_path: Path, line: str) -> None:
    blocks = (
        f"({at * 2000:,} moves; {at * 31} games)\n"
        + line.format(score=at / 13, spread=1 / at, entropy=0.7 / at)
        + f"    critic: mse {0.5 / at:.4f}, explained +0.{at + 10}\n"
        for at in STEPS
    )
    run = read(tmp_path, f"a corridor\n\n{''.join(blocks)}")
    assert run["reward"].value[-1] == pytest.approx(12 / 13, abs=1e-3)
    assert run["reward_std"].value[-1] == pytest.approx(1 / 12, abs=1e-3)
    assert run["entropy"].value[-1] == pytest.approx(0.7 / 12, abs=1e-3)
    assert run["reward"].step.tolist() == [2000 * at for at in STEPS]
    assert "loss" not in run


def test_sets_under_headings_are_apart_and_one_that_measures_as_another_is_one_of_evaluation(tmp_path: Path) -> None:
    block = "epoch {at}\n  fit\n    loss {loss:.3f}\n  tune\n    loss {dev:.3f}\n  site2\n    loss {far:.3f}\n"
    run = read(
        tmp_path, "".join(block.format(at=at, loss=3 - 0.2 * at, dev=3.1 - 0.2 * at, far=3 + at) for at in STEPS)
    )
    ends = {name: float(series.value[-1]) for name, series in run.series.items()}
    assert (ends["loss"], ends["eval_loss"]) == pytest.approx((0.6, 0.7))
    assert [name for name, end in ends.items() if end == 15] == ["eval_site2_loss"]
    assert run.step_name == "epoch"


def test_the_numbers_of_a_list_are_parts_and_their_mean_is_theirs(tmp_path: Path) -> None:
    line = "Ep{at:02}  fit ce {loss:.4f}  iou {a:.1f} {b:.1f} {c:.1f}  mean {b:.1f}\n"
    rows = (line.format(at=at, loss=3 - 0.2 * at, a=at + 0.5, b=at + 1.5, c=at + 2.5) for at in STEPS)
    run = read(tmp_path, "".join(rows))
    assert run["loss"].value[-1] == pytest.approx(0.6)
    assert {name: float(series.value[-1]) for name, series in run.series.items() if "mean" in name} in (
        {"train mean iou": 13.5},
        {"mean iou": 13.5},
        {"mean": 13.5},
    )


def test_a_legend_names_what_stands_in_brackets(tmp_path: Path) -> None:
    rows = "".join(f"step {at * 25:4} [{3 - 0.2 * at:.3f}]  {4 - at / 5:.3f} / {2 - at / 9:.3f}\n" for at in STEPS)
    assert read(tmp_path, f"eps target\n[loss] then by half of t\n\n{rows}")["loss"].value[-1] == pytest.approx(0.6)
    with pytest.raises(InputError, match="no metrics"):
        read(tmp_path, f"[remarks] none\nthe loss is below\n\n{rows}")


@pytest.mark.parametrize("count", ["minibatches {first}-{last}:", "my minibatches {first}-{last},"])
def test_a_range_counts_by_its_end_and_a_size_of_memory_is_one(tmp_path: Path, count: str) -> None:
    lines = (
        f"LOG (my-train) {count.format(first=30 * at - 29, last=30 * at)} objf -{3 - 0.2 * at:.3f} per frame\n"
        f"LOG (my-diag)  valid objf -{3.1 - 0.2 * at:.3f}; proc {1024 + 512 * at} MiB, cache 2.5 MiB\n"
        for at in STEPS
    )
    run = read(tmp_path, "".join(lines))
    assert run["loss"].value[-1] == pytest.approx(0.6)
    assert run["memory"].value[-1] == 7
    assert run["memory"].step.tolist() == [30 * at for at in STEPS]


def test_a_text_in_words_of_its_own_is_read_where_its_lines_count_evenly_and_are_measured(tmp_path: Path) -> None:
    run = read(
        tmp_path,
        "".join(f"game {4 * at:2}  pay  {at}.25   q mean  {1000 * at:,}.5   td² {at * 7}.75\n" for at in STEPS),
    )
    assert run["q mean"].step.tolist() == [4 * at for at in STEPS]
    assert run["q mean"].value.tolist() == [1000 * at + 0.5 for at in STEPS]
    assert run["pay"].value[-1] == 12.25


def test_bars_that_stand_alone_part_cells_and_a_cell_may_hold_several_numbers(tmp_path: Path) -> None:
    rows = "".join(
        f"| {1000 * at:<6,}| {3 - 0.2 * at:.3f} | {3.1 - 0.2 * at:.3f} | 0.{at + 10} | {at}.5 {at}.75 | {at} of 7,188\n"
        for at in STEPS
    )
    run = read(tmp_path, f"| second stage\n|\n| upd | fit | held | |g| | |w| by cube | cells changed in 200\n{rows}")
    assert run["loss"].step.tolist() == [1000 * at for at in STEPS]
    assert run["loss"].value[-1] == pytest.approx(0.6)
    assert run["eval_loss"].value[-1] == pytest.approx(0.7)
    assert run["grad_norm"].value[-1] == 0.22
    assert [run[f"|w| by cube {at}"].value[-1] for at in (1, 2)] == [12.5, 12.75]
    assert run["cells changed in 200"].value[-1] == 12


def test_a_list_in_brackets_is_called_by_the_name_in_front_of_it_and_not_by_its_order(tmp_path: Path) -> None:
    block = "@{step} fit {loss:.4f} away {loss:.4f} (0.2)\n   grad, in->out: [{at}e-09 {at}e-05 {at}e-02]\n"
    run = read(tmp_path, "".join(block.format(step=90 * at, at=at, loss=3 - 0.2 * at) for at in STEPS))
    assert [run[f"grad {part}"].value[-1] for part in (1, 2, 3)] == [12e-9, 12e-5, 12e-2]


def test_sets_that_measure_the_same_stay_apart_though_one_name_leads_several_numbers(tmp_path: Path) -> None:
    lines = []
    for at in STEPS:
        lines += [f"lap {at}\n    fit   bce {3 - 0.2 * at:.3f}\n    check bce {3.1 - 0.2 * at:.3f}, auc 0.{70 + at}\n"]
        lines += [f"    march bce {3 + at / 8:.3f}, auc 0.{60 - at}\n"] * (at % 2 == 0)
    run = read(tmp_path, "".join(lines))
    assert run["eval_auc"].value.tolist() == [(70 + at) / 100 for at in STEPS]
    assert run["march auc"].value.tolist() == [(60 - at) / 100 for at in STEPS if at % 2 == 0]
    assert "auc" not in run


def test_a_block_in_braces_that_is_no_json_heads_a_log(tmp_path: Path) -> None:
    rows = "".join(f"{15 * at}\tloss {3 - 0.2 * at:.4f}\tacc 0.{60 + at}\tgrad norm 0.2{at}\n" for at in STEPS)
    run = read(tmp_path, f"{{\n  pairs: 4,000 (val 600)\n  reference: sft checkpoint, frozen\n}}\n{rows}")
    assert run["loss"].step.tolist() == [15 * at for at in STEPS]
    assert run["accuracy"].value[-1] == 0.72
    with pytest.raises(InputError, match="not valid JSON"):
        read(tmp_path, '{\n  "loss": [1.5, 1.25,\n  1.0')


def test_a_count_of_something_else_than_steps_does_not_hide_records(tmp_path: Path) -> None:
    line = "{step:4}  n={batch:<3} nce {loss:.3f}  (coin 3.47)  |  g {norm:.2f}\n"
    run = read(
        tmp_path,
        "".join(
            line.format(step=50 * at, batch=32 * 2 ** (at // 4), loss=3 - 0.2 * at, norm=1 + 1 / at) for at in STEPS
        ),
    )
    assert run["loss"].step.tolist() == [50 * at for at in STEPS]
    assert run["n"].value[-1] == 256


def test_lines_with_a_remark_do_not_hide_those_without_and_nan_is_kept(tmp_path: Path) -> None:
    lost = "step: {at} ce {loss:.3f} |dW| nan spread.min 0.0e+00 -> dropped ({count} so far)\n"
    kept = "step: {at} ce {loss:.3f} |dW| 1.{at} spread.min 3.5e-01\n"
    steps = range(10, 40)
    run = read(
        tmp_path,
        "".join((lost if at % 2 else kept).format(at=at, loss=3 - at / 20, count=at // 2) for at in steps),
    )
    assert run["loss"].step.tolist() == list(steps)
    assert [math.isnan(value) for value in run["|dW|"].value.tolist()] == [at % 2 == 1 for at in steps]


SHUFFLED = [31, 7, 58, 22, 90, 14, 66, 41, 3, 77, 19, 52]


@pytest.mark.parametrize("line", [
    "{at}. screws: price {a}.25, tax 0.{b}\n",
    "day {at}: low {a}.5 high {b}.5\n",
    "{at:05}.tar  size {a}.25 MB  crc 0.{b}\n",
    "layer {at}: error 0.{at:03} scale 0.{a}\n",
    "component {at}: variance 0.{a} cumulative 0.{at:03}\n",
])  # fmt: skip
def test_the_rows_of_a_list_go_nowhere_or_are_things_and_are_refused(tmp_path: Path, line: str) -> None:
    rows = zip(STEPS, SHUFFLED, SHUFFLED[5:] + SHUFFLED[:5], strict=True)
    with pytest.raises(InputError):
        read(tmp_path, "".join(line.format(at=at, a=a, b=b) for at, a, b in rows))


def test_a_total_that_only_grows_is_a_sum_so_far_and_no_loss(tmp_path: Path) -> None:
    run = read(tmp_path, "".join(f"{at} paid {at}.25 total {at * at}.5\n" for at in STEPS))
    assert "loss" not in run


def test_a_best_and_a_mean_next_to_each_other_and_a_variance_stand_for_themselves(tmp_path: Path) -> None:
    line = "generation {at}: best {at}.5 mean {at}.25 | energy {at}.75 variance 0.{low}\n"
    run = read(tmp_path, "".join(line.format(at=at, low=50 - at) for at in STEPS))
    assert run["mean"].value[-1] == 12.25
    assert run["variance"].value[-1] == 0.38


def test_a_word_of_sentences_in_front_of_a_list_names_its_members(tmp_path: Path) -> None:
    block = "----- round {at} -----\n fit   {loss:.3f}\n held  {loss:.3f}   right 90.9%\n"
    block += " said  [29{at}6, 44, 0, 0, 0, 0]\n was   [2688, 222, 42, 20, 17, 11]\n"
    text = "".join(block.format(at=at, loss=1 / (at + 1)) for at in range(8))
    run = read(tmp_path, f"=== leaf ===\n9,000 train / 3,000 held. sgd .002 m.9 bs 100, 8 rounds\n{text}")
    assert [run[f"was {kind}"].value[-1] for kind in range(1, 7)] == [2688, 222, 42, 20, 17, 11]


@pytest.mark.parametrize("text", [
    "".join(f"-rw-r--r-- 1 root root {at * 1000} Nov {at} file{at}.bin\n" for at in range(1, 20)),
    "".join(f"chapter {at} page {at * 7}\n" for at in range(1, 20)),
    "".join(f"{at} apples at {at}.50 each\n" for at in range(1, 20)),
    "tr 3.1 te 3.2\ntr 3.0 te 3.1\n",
])  # fmt: skip
def test_a_text_that_counts_but_tells_of_no_training_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "list.log").write_text(text)
    with pytest.raises(InputError, match="no metrics"):
        diagnose_run(tmp_path / "list.log")
