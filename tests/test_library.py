from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import polars as pl
import pytest

import mldebug_mcp
from mldebug_mcp import Diagnosis, InputError, MissingExtraError, diagnose_run, read_run
from mldebug_mcp.models.base import LONGEST_REPR

EXAMPLES = Path(__file__).parent.parent / "examples"
NAN = float("nan")


def records_of(example: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (EXAMPLES / example / "log.jsonl").read_text().splitlines()]


def settings_of(example: str) -> dict[str, Any]:
    settings: dict[str, Any] = json.loads((EXAMPLES / example / "config.json").read_text())
    return settings


def forms_of(records: list[dict[str, Any]]) -> dict[str, Any]:
    frame = pd.DataFrame(records)
    return {
        "records": records,
        "generator": (one for one in records),
        "pandas": frame,
        "pandas by its index": frame.set_index("step"),
        "polars": pl.DataFrame(records),
        "columns": {name: [one[name] for one in records] for name in records[0]},
        "columns of numpy": {name: np.array([one[name] for one in records]) for name in records[0]},
    }


@pytest.mark.parametrize("form", forms_of([{"step": 1}]))
def test_data_in_memory_is_diagnosed_as_the_log_that_holds_it(form: str) -> None:
    data = forms_of(records_of("loss_spike"))[form]
    from_file = diagnose_run(EXAMPLES / "loss_spike")
    from_memory = diagnose_run(data, settings=settings_of("loss_spike"))

    assert [one.symptom for one in from_memory.present] == [one.symptom for one in from_file.present]
    assert from_memory.present[0].steps[0] == 250
    assert [(one.cause, one.probability) for one in from_memory.hypotheses] == [
        (one.cause, one.probability) for one in from_file.hypotheses
    ]


def test_settings_beside_the_data_count_and_stand_before_those_beside_a_log() -> None:
    alone, told = read_run(records_of("healthy")), read_run(records_of("healthy"), settings={"learning_rate": 0.5})

    assert alone.setting("learning_rate") is None
    assert told.setting("learning_rate") == 0.5
    assert read_run(EXAMPLES / "healthy", settings={"lr": 0.5}).setting("learning_rate") == 0.5


def test_a_reference_may_be_data_too() -> None:
    answer = diagnose_run(records_of("loss_spike"), reference=pd.DataFrame(records_of("healthy")))

    assert answer.comparison is not None


def test_no_call_is_offered_that_would_look_for_data_in_memory_on_a_disk() -> None:
    answer = diagnose_run(records_of("loss_spike"))

    assert answer.next_step is not None
    assert "path" not in answer.next_step.arguments


def test_a_key_that_is_not_there_was_not_logged_and_nan_is_a_value() -> None:
    records: list[dict[str, Any]] = [{"step": step, "loss": 3.0 - step / 100} for step in range(100)]
    records[40]["loss"] = NAN
    records[99]["eval_loss"] = 2.0
    run = read_run(records)

    assert np.flatnonzero(np.isnan(run["loss"].value)).tolist() == [40]
    assert len(run["eval_loss"]) == 1


def test_none_in_a_column_was_not_logged() -> None:
    run = read_run({"step": [1, 2, 3, 4], "loss": [4.0, 3.0, 2.0, 1.0], "eval_loss": [None, 3.5, None, 2.5]})

    assert run["eval_loss"].step.tolist() == [2, 4]


def with_evaluations(losses: list[float]) -> pd.DataFrame:
    """Return the history of a trainer that writes each evaluation as a record of its own."""
    records: list[dict[str, float]] = []
    for step, loss in enumerate(losses, start=1):
        records.append({"step": step, "loss": loss, "learning_rate": 1e-3})
        if step % 10 == 0:
            records.append({"step": step, "eval_loss": 2.0})
    return pd.DataFrame([*records, {"step": len(losses), "train_runtime": 5.0}])


def test_a_data_frame_leaves_empty_what_other_rows_measure() -> None:
    run = read_run(with_evaluations([3 - step / 100 for step in range(100)]))

    assert len(run["loss"]) == len(run["learning_rate"]) == 100
    assert len(run["eval_loss"]) == 10
    assert all(np.isfinite(one.value).all() for one in run.series.values())
    assert any("NaN cells of the DataFrame taken for not logged" in note for note in run.notes)


def test_a_loss_that_is_nan_where_its_companions_were_measured_is_nan_in_a_data_frame_too() -> None:
    losses = [3 - step / 100 if step < 70 else NAN for step in range(100)]
    losses[30] = NAN
    run = read_run(with_evaluations(losses))

    assert np.flatnonzero(np.isnan(run["loss"].value)).tolist() == [30, *range(70, 100)]
    assert len(run["eval_loss"]) == 10


def test_a_row_of_nothing_but_clocks_says_nothing_of_the_loss() -> None:
    losses = [3 - step / 100 for step in range(100)]
    for pictures in (25, 50, 75):
        losses[pictures] = NAN
    run = read_run(pd.DataFrame({"_step": range(100), "_runtime": range(100), "loss": losses}))

    assert len(run["loss"]) == 97
    assert np.isfinite(run["loss"].value).all()


def test_a_loss_alone_that_ends_in_nan_has_gone_nan() -> None:
    losses = [3 - step / 100 if step < 70 else NAN for step in range(100)]
    run = read_run(pd.DataFrame({"step": range(100), "loss": losses}))

    assert int(np.isnan(run["loss"].value).sum()) == 30


def test_an_evaluation_in_every_tenth_row_was_not_logged_in_the_others() -> None:
    losses = [3 - step / 100 for step in range(100)]
    held_out = [2.0 if step % 10 == 0 else NAN for step in range(100)]
    run = read_run(pd.DataFrame({"step": range(100), "loss": losses, "eval_loss": held_out}))

    assert len(run["eval_loss"]) == 10


@pytest.mark.parametrize("form", ["list", "records"])
def test_nan_that_fills_the_cells_of_a_table_was_not_logged_in_any_form_of_it(form: Literal["list", "records"]) -> None:
    losses = [3 - step / 100 for step in range(98)] + [NAN, NAN]
    held_out = [2.0 if step % 10 == 0 else NAN for step in range(100)]
    table = pd.DataFrame({"step": range(100), "loss": losses, "eval_loss": held_out})

    run = read_run(table.to_dict(form))  # type: ignore[arg-type]

    assert len(run["eval_loss"]) == 10
    assert np.isfinite(run["eval_loss"].value).all()
    assert np.flatnonzero(np.isnan(run["loss"].value)).tolist() == [98, 99]
    assert any("90 NaN cells of the table taken for not logged, 2 for NaN" in note for note in run.notes)


def test_numbers_of_other_libraries_are_numbers() -> None:
    torch = pytest.importorskip("torch")
    run = read_run([{"step": np.int64(step), "loss": torch.tensor(3.0 - step), "text": "a"} for step in range(3)])

    assert run["loss"].value.tolist() == [3.0, 2.0, 1.0]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (17, "cannot be read from int; give a path, a DataFrame"),
        ([(1, 2.0)], "record 1 is not a dict but tuple"),
        ([], "no metrics in the records"),
        (pd.DataFrame({"name": ["a", "b"]}), "no metrics in the DataFrame"),
        ({}, "no metrics in the columns"),
    ],
)
def test_what_is_no_run_is_refused_with_what_is_allowed(data: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        diagnose_run(data)


def test_a_name_that_says_nothing_is_explained_as_for_files() -> None:
    records = [{"step": step, "q": 3 - step / 100} for step in range(100)]

    assert "loss" in read_run(records, names={"q": "loss"})
    with pytest.raises(InputError, match="nothing called 'p' is in it; it has q"):
        read_run(records, names={"p": "loss"})
    with pytest.raises(InputError, match="run= names one of several"):
        read_run(records, run="a")


def test_a_notebook_shows_the_verdict_the_curves_and_the_causes() -> None:
    shown = diagnose_run(EXAMPLES / "loss_spike")._repr_html_()

    assert "Perhaps a bad batch" in shown
    assert shown.count("<svg") == 3
    assert "loss jumps from" in shown
    assert "<b>healthy</b>" in shown


def test_what_a_notebook_shows_runs_nothing_loads_nothing_and_styles_itself_alone() -> None:
    evil = "<img src=x onerror=alert(1)>"
    shown = diagnose_run([{"step": step, "loss": 3.0, f"eval_{evil}_loss": 4.0} for step in range(50)])._repr_html_()

    assert "<img" not in shown
    assert "<script" not in shown
    style = re.search(r"<style>(.*?)</style>", shown, re.DOTALL)
    assert style is not None
    rules: Iterator[str] = (rule.split("{")[0] for rule in style[1].split("}") if rule.strip())
    assert all(rule.strip().startswith(".mldebug") for rule in rules)


def test_present_holds_what_is_seen_and_nothing_else() -> None:
    answer = diagnose_run(EXAMPLES / "loss_spike")

    assert answer.present
    assert answer.present == [one for one in answer.findings if one.state == "present"]


def test_the_hypotheses_and_the_metrics_come_as_data_frames() -> None:
    answer = diagnose_run(EXAMPLES / "loss_spike")
    causes, metrics = answer.to_frame(), answer.log.to_frame()

    assert causes["cause"].tolist() == [one.cause for one in answer.hypotheses]
    assert causes["probability"].sum() == pytest.approx(1)
    assert metrics.index.name == "step"
    assert metrics.loc[250, "loss"] == pytest.approx(6.616, abs=1e-3)


def test_without_pandas_a_data_frame_is_refused_with_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = diagnose_run(EXAMPLES / "loss_spike")
    monkeypatch.setitem(sys.modules, "pandas", None)
    for to_frame in (answer.to_frame, answer.log.to_frame):
        with pytest.raises(MissingExtraError, match=r"pandas: pip install 'mldebug-mcp\[pandas\]'"):
            to_frame()


def test_the_curves_come_as_a_figure_that_a_notebook_shows() -> None:
    pytest.importorskip("matplotlib")
    figure: Any = diagnose_run(EXAMPLES / "loss_spike").plot()

    assert len(figure.axes) == 3
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_the_answer_is_the_one_of_the_server() -> None:
    answer = diagnose_run(EXAMPLES / "loss_spike")

    assert isinstance(answer, Diagnosis)
    assert Diagnosis.model_validate_json(answer.to_json()).to_json() == answer.to_json()
    assert answer.model_copy(update={"notes": []})._repr_html_()


def test_every_answer_stands_for_itself_in_a_line() -> None:
    answer = diagnose_run(EXAMPLES / "loss_spike")
    answers = [answer, *answer.findings, *answer.hypotheses, *answer.next_steps, answer.run]
    answers += [mldebug_mcp.explain("lr_too_high"), mldebug_mcp.search_folklore("spike")]

    for one in answers:
        assert "\n" not in repr(one)
        assert len(repr(one)) <= LONGEST_REPR or isinstance(one, Diagnosis)
    assert repr(answer.present[0]).startswith("<Finding symptom=loss_spike, state=present, summary=loss jumps")


def test_the_package_lists_its_verbs_before_they_are_loaded() -> None:
    code = "import mldebug_mcp, sys; print(dir(mldebug_mcp), 'numpy' in sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert all(f"'{name}'" in printed for name in ("diagnose_run", "inspect_batch", "explain", "read_run", "watch_run"))
    assert printed.rstrip().endswith("False")
