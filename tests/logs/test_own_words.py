"""Numbers behind names in ways of one's own: shares, ranges, several names behind one, texts, short counters."""

from __future__ import annotations

from pathlib import Path

import pytest

from mldebug_mcp.logs import Run, read_run
from mldebug_mcp.logs.text.pairs import pairs_in, written_out


def read(folder: Path, text: str) -> Run:
    log = folder / "train.log"
    log.write_text(text)
    return read_run(log)


@pytest.mark.parametrize(("line", "meant"), [
    ("docs=[0..99]", {"docs_first": 0, "docs_last": 99}), ("rows 100..199", {"rows_first": 100, "rows_last": 199}),
    ("ids=(7:15)", {"ids_first": 7, "ids_last": 15}), ("docs 100–199", {"docs_first": 100, "docs_last": 199}),
    ("ratio[min/mean/max]=0.5/1.0/1.5", {"ratio/min": 0.5, "ratio/mean": 1.0, "ratio/max": 1.5}),
    ("ratio (min / max): 0.5 / 1.5", {"ratio/min": 0.5, "ratio/max": 1.5}),
    ("uniq 16 of 128", {"uniq": 0.125}), ("exact 24 out of 30", {"exact": 0.8}),
    ("reward 0.188 +- 0.392 over 128", {"reward": 0.188}),
    ("|step| asked 0.002 got 0.001", {"update_norm(asked)": 0.002, "update_norm(got)": 0.001}),
    ("|dw| meant=2e-3 done=1e-3", {"update_norm(meant)": 0.002, "update_norm(done)": 0.001}),
    ("served 64, v45, mean reward 0.5", {"served": 64, "version": 45, "mean reward": 0.5}),
    # Other ways with such marks stay what they are.
    ("loss (train/val): 1.26 / 1.34", {"train loss": 1.26, "val loss": 1.34}),
    ("loss 1.5 - 2.5", {"loss": 1.5}),
])  # fmt: skip
def test_numbers_have_the_names_that_stand_with_them(line: str, meant: dict[str, float]) -> None:
    assert pairs_in(written_out(line)) == pytest.approx(meant)


@pytest.mark.parametrize("line", [
    "  [up {step}] nll {loss:.3f}, tokens so far 7,707", "[u{step}] nll {loss:.3f}", "[mb {step}/400] nll {loss:.3f}",
])  # fmt: skip
def test_a_short_counter_in_brackets_counts(line: str, tmp_path: Path) -> None:
    run = read(tmp_path, "\n".join(line.format(step=step, loss=4 - step / 200) for step in range(20, 340, 20)))
    assert run["loss"].step.tolist() == list(range(20, 340, 20))


def test_the_index_of_a_layer_in_brackets_counts_nothing(tmp_path: Path) -> None:
    run = read(tmp_path, "\n".join(f"[layer {at % 4}] step {at} loss {4 - at / 20:.3f}" for at in range(1, 30)))
    assert run.last_step == 29


@pytest.mark.parametrize("text", ["' lisoft 19 whs'", '"red. loss 3.5 and"', "'</s>[INST] what is 4'"])
def test_a_text_behind_a_name_is_no_measure(text: str, tmp_path: Path) -> None:
    lines = [f"[a.sft:main] step={step} loss={3 - step / 100:.3f}" for step in range(10, 110, 10)]
    lines += [f"[a.sft:evaluate] step={step} exact=0.{step // 20} last={text}" for step in range(20, 110, 20)]
    run = read(tmp_path, "\n".join(lines))
    assert len(run["loss"]) == 10
    assert run["eval_exact"].value.tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])


def test_an_evaluation_before_training_by_a_measure_of_ones_own_is_kept(tmp_path: Path) -> None:
    lines = ["eval step 0 | ended 6/6"]
    lines += [f"step {step} loss {3 - step / 100:.3f}" for step in range(10, 60, 10)]
    run = read(tmp_path, "\n".join([*lines, "eval step 50 | ended 3/6"]))
    assert run["eval_ended"].value.tolist() == [1.0, 0.5]


def test_thousands_in_lines_below_the_head_separate_no_cells(tmp_path: Path) -> None:
    lines = [f"upd {step} loss {4 - step / 200:.3f} counted_tok {1000 + 816 * step:,}" for step in range(15, 315, 15)]
    run = read(tmp_path, "\n".join(["mean prompt 40.0, mean answer 12.0; 16 rows", *lines]))
    assert run["loss"].value[0] == pytest.approx(3.925)
    assert run["counted_tok"].value[0] == 13240


@pytest.mark.parametrize(("name", "is_value"), [("v_mean", True), ("v", True), ("version", False)])
def test_v_of_a_policy_is_its_value_where_it_counts_nothing(name: str, is_value: bool, tmp_path: Path) -> None:
    lines = [f"step {at} reward {at % 7} entropy 0.{90 - at} {name} {at if not is_value else at * 1.5 - 3}"
             for at in range(1, 40)]  # fmt: skip
    run = read(tmp_path, "\n".join(lines))
    assert ("value" in run) is is_value


@pytest.mark.parametrize("sampler", [
    "served 64, mean reward {reward:.3f}, H {entropy:.3f}", "reward {reward:.3f} | entropy {entropy:.3f}",
])  # fmt: skip
@pytest.mark.parametrize("same", [True, False])
def test_a_log_without_steps_is_placed_by_a_result_that_another_holds(sampler: str, same: bool, tmp_path: Path) -> None:
    rewards = [0.3 + 0.013 * (7 * at % 11) for at in range(24)]
    learner = [f"step {5 * at + 5} reward {reward:.3f} kl 0.0{at}" for at, reward in enumerate(rewards)]
    sampled = [sampler.format(reward=reward + (not same), entropy=0.9 - at / 50) for at, reward in enumerate(rewards)]
    (tmp_path / "learner.log").write_text("\n".join(learner))
    (tmp_path / "sampler.log").write_text("\n".join(sampled))
    run = read_run(tmp_path)
    assert ("entropy" in run and run["entropy"].step.tolist() == list(range(5, 125, 5))) is same
