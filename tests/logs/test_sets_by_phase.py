"""Lines that name a set by its phase alone, numbers without a name, and the headings and tables around them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.logs import read_run
from mldebug_mcp.logs.run import Run

VISITS = range(1, 9)


def read(tmp_path: Path, text: str) -> Run:
    (tmp_path / "run.log").write_text(text)
    return read_run(tmp_path / "run.log")


def fall(at: int, by: float = 0.0) -> str:
    return f"{4 / (1 + at / 3) + by:.3f}"


def values(run: Run, name: str) -> Sequence[str]:
    return [f"{value:.3f}" for value in run[name].value]


@pytest.mark.parametrize("form", [
    "Epoch: {at}, Phase: {s}, Loss: {l}, Acc: {a}", "Epoch: {at}\tMode: {s}\tLoss: {l}\tAcc: {a}",
    "Phase: Training, Dataset used: {s}, Epoch: {at}, Accuracy: {a}, Cross-Entropy: {l}",
    "epoch {at} loss {l} acc {a} split: {s}", "epoch {at} loss {l} acc {a} [{s}]",
    "Epoch {at}, {s}, loss: {l}, acc: {a}", "INFO:{s}:epoch {at} loss {l} acc {a}",
])  # fmt: skip
def test_a_line_that_names_its_set_as_a_value_is_of_that_set(tmp_path: Path, form: str) -> None:
    sets = [("train", 0.0, "0.9"), ("validation", 0.25, "0.8")]
    run = read(
        tmp_path, "".join(f"{form.format(at=at, s=s, l=fall(at, by), a=a)}\n" for at in VISITS for s, by, a in sets)
    )
    assert run.step_name == "epoch"
    assert values(run, "loss") == [fall(at) for at in VISITS]
    assert values(run, "eval_loss") == [fall(at, 0.25) for at in VISITS]
    assert run["accuracy"].value.tolist() == [0.9] * 8
    assert run["eval_accuracy"].value.tolist() == [0.8] * 8


@pytest.mark.parametrize("form", [
    "{at} tr {t}/{a} te {e}/{b} w 40.1", "[{at}] trn {t} / {a} | tst {e} / {b}",
    "it {at}: train {t}/{a}  heldout {e}/{b}", "{at},000 | tr: {t}/{a} | va: {e}/{b}",
])  # fmt: skip
def test_a_loss_and_a_share_behind_each_phase_are_loss_and_accuracy(tmp_path: Path, form: str) -> None:
    rows = [{"at": at, "t": fall(at), "e": fall(at, 0.2), "a": f"0.{at}", "b": f"0.0{at}"} for at in VISITS]
    run = read(tmp_path, "".join(f"{form.format(**row)}\n" for row in rows))
    assert values(run, "loss") == [row["t"] for row in rows]
    assert values(run, "eval_loss") == [row["e"] for row in rows]
    assert run["accuracy"].value[-1] == 0.8
    assert run["eval_accuracy"].value[-1] == 0.08
    assert run["loss"].step[0] == (1000 if ",000" in form else 1)


@pytest.mark.parametrize("line", ["train 0.8 dev 0.1 test 0.1 (shares)", "rows: train 512  val 64  fresh 64"])
def test_the_sizes_of_sets_are_no_losses(tmp_path: Path, line: str) -> None:
    rows = "".join(f"step {10 * at} loss {fall(at)}\n" for at in VISITS)
    run = read(tmp_path, f"{line}\n{rows}")
    assert run["loss"].step.tolist() == [10 * at for at in VISITS]
    assert not {"train", "dev", "val", "eval_loss"} & run.series.keys()


@pytest.mark.parametrize("heading", ["--- pass {}", "== sweep {} ==", "# lap {}/8", "epoch {}"])
def test_phases_below_a_heading_of_a_pass_are_its_losses(tmp_path: Path, heading: str) -> None:
    text = "".join(
        f"{heading.format(at)}\n    trn {fall(at)}\n    val {fall(at, -0.1)}\n"
        + (f"    fresh {fall(at, 0.1)}\n" if at % 2 == 0 else "")
        for at in VISITS
    )
    run = read(tmp_path, text)
    assert run.step_name == "epoch"
    assert values(run, "loss") == [fall(at) for at in VISITS]
    assert values(run, "eval_loss") == [fall(at, -0.1) for at in VISITS]
    assert values(run, "fresh loss") == [fall(at, 0.1) for at in VISITS if at % 2 == 0]


@pytest.mark.parametrize("form", ["{} {}", "{}: {}   (g 0.71, lr 1.0e-03)", "{}  |  {}", "{},000  {}"])
def test_a_number_without_a_name_behind_its_counter_is_the_loss_where_it_falls(tmp_path: Path, form: str) -> None:
    text = "".join(
        f"{form.format(20 * at, fall(at))}\n"
        + (f"     dev law {fall(at, 0.1)}  code {fall(at, 0.3)}\n" * (at % 4 == 0))
        for at in VISITS
    )
    run = read(tmp_path, f"plan: law only; width 64\n{text}")
    assert run["loss"].logged_as == "unnamed"
    assert values(run, "loss") == [fall(at) for at in VISITS]
    assert run["loss"].step[0] == (20_000 if ",000" in form else 20)
    assert values(run, "eval_law_loss") == [fall(at, 0.1) for at in (4, 8)]
    assert values(run, "eval_code_loss") == [fall(at, 0.3) for at in (4, 8)]


def test_a_phase_alone_that_falls_with_the_loss_is_no_accuracy_though_it_begins_near_to_one(tmp_path: Path) -> None:
    lines = [
        f"ep{at} loss={1.5 / at:.3f}\nval {0.9 / at + 0.1:.3f} acc {0.95 - 0.25 / at:.3f}\n" for at in range(1, 13)
    ]
    run = read(tmp_path, f"train 5000, val 600, batch 50\n{''.join(lines)}")
    assert run["eval_loss"].value.tolist() == pytest.approx([0.9 / at + 0.1 for at in range(1, 13)], abs=1e-3)
    assert "eval_accuracy" not in run


def test_a_number_without_a_name_that_rises_has_no_role(tmp_path: Path) -> None:
    run = read(tmp_path, "demo\n" + "".join(f"{at}  0.{at}\n" for at in VISITS) + "end\n")
    assert "loss" not in run
    assert run["unnamed"].role is None


def test_a_list_of_weights_above_a_log_is_none_of_its_records(tmp_path: Path) -> None:
    weights = "".join(f"{at}: 0.{at}\n" for at in range(4))
    run = read(tmp_path, weights + "".join(f"step {10 * at} loss {fall(at)}\n" for at in VISITS))
    assert run["loss"].step.tolist() == [10 * at for at in VISITS]
    assert "unnamed" not in run


@pytest.mark.parametrize("form", ["{at} {name} {value}", "[{at}] {name}: {value}", "step {at} {name} {value}"])
def test_lines_of_one_phase_each_and_a_measure_beside_them_are_one_record(tmp_path: Path, form: str) -> None:
    lines = []
    for at in VISITS:
        lines.append(form.format(at=20 * at, name="train", value=fall(at)))
        if at % 2 == 0:
            lines.append(form.format(at=20 * at, name="heldout", value=fall(at, 0.1)))
            lines.append(f"{20 * at} probing_script  {at}.5 (a script of its own)")
    run = read(tmp_path, "\n".join(lines) + "\n")
    assert run["loss"].step.tolist() == [20 * at for at in VISITS]
    assert values(run, "eval_loss") == [fall(at, 0.1) for at in VISITS if at % 2 == 0]
    assert run["probing_script"].value.tolist() == [at + 0.5 for at in VISITS if at % 2 == 0]


def test_a_list_of_layers_above_a_log_opens_no_record(tmp_path: Path) -> None:
    layers = "".join(f"{at} conv {16 * at}.5\n" for at in (1, 2, 3))
    run = read(tmp_path, layers + "".join(f"step {10 * at} loss {fall(at)}\n" for at in VISITS))
    assert run["loss"].step.tolist() == [10 * at for at in VISITS]
    assert "conv" not in run


@pytest.mark.parametrize(("head", "row"), [
    ("| step | train | dev |\n|---:|---:|---:|", "| {at} | {t} | {e} |"), ("iter  trn  held out", "{at}  {t}  {e}"),
    ("epoch, train, test", "{at}, {t}, {e}"),
])  # fmt: skip
def test_columns_of_phases_behind_a_counter_are_losses(tmp_path: Path, head: str, row: str) -> None:
    rows = "".join(f"{row.format(at=at, t=fall(at), e=fall(at, 0.1))}\n" for at in VISITS)
    run = read(tmp_path, f"# model of text\n\n{head}\n{rows}")
    assert values(run, "loss") == [fall(at) for at in VISITS]
    assert values(run, "eval_loss") == [fall(at, 0.1) for at in VISITS]


def test_cells_between_commas_and_a_blank_are_shares_where_they_count_of_a_total(tmp_path: Path) -> None:
    rows = "".join(f"{at}, 0.{at}, {3 + at}.5, {2 * at}/16\n   > 5+2= -> 7$$\n" for at in VISITS)
    run = read(tmp_path, f"adder | cap 32\niter, score, len(mean), at_cap\n{rows}")
    assert run["score"].step.tolist() == list(VISITS)
    assert run["at_cap"].value.tolist() == [at / 8 for at in VISITS]


def test_the_split_of_a_table_without_a_counter_is_no_record(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text("train  val  test\n512  64  64\n")
    with pytest.raises(InputError):
        read_run(tmp_path / "run.log")


def test_a_heading_in_the_plural_tells_how_many_there_are_to_be(tmp_path: Path) -> None:
    blocks = "".join(f"update = {20 * at}\n  nll = {fall(at)}\n  lr = 0.00{at}\n\n" for at in VISITS)
    run = read(tmp_path, f"updates = 320\npeak = 0.002\n\n{blocks}")
    assert run["loss"].step.tolist() == [20 * at for at in VISITS]
    assert run.planned["step"] == 320


@pytest.mark.parametrize(
    ("before", "after"), [("raw g", "used g"), ("gn pre clip", "gn post clip"), ("grad", "grad clipped")]
)
def test_the_norm_behind_clipping_stands_beside_that_before_it(tmp_path: Path, before: str, after: str) -> None:
    rows = "".join(f"| {at} | {fall(at)} | {1 + at % 3}.5 | 0.25 |\n" for at in VISITS)
    run = read(tmp_path, f"| step | train loss | {before} | {after} |\n|---|---|---|---|\n{rows}")
    assert run["grad_norm"].value[0] == 2.5
    assert set(run["clipped_grad_norm"].value.tolist()) == {0.25}


def test_a_mean_with_its_least_and_its_most_is_the_return_of_a_policy(tmp_path: Path) -> None:
    text = "".join(
        f"u{6 * at:03} points {10 + at}.5 (min {at} max {30 + at}) ev 0.{at} H 0.6{9 - at}\n" for at in VISITS
    )
    run = read(tmp_path, text)
    assert run["reward"].value.tolist() == [10.5 + at for at in VISITS]
    assert "reward" not in read(tmp_path, text.replace("points", "reply len"))
