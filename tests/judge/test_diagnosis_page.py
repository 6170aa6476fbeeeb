from __future__ import annotations

import hashlib
import html
import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.runs import run_of, run_of_records

from mldebug_mcp.cli import main
from mldebug_mcp.judge import diagnose
from mldebug_mcp.logs import Run, read_run
from mldebug_mcp.models import State
from mldebug_mcp.report.curves import MAX_CURVE_STRETCHES, MOST_PANELS, Panel, panels, round_values, scale_of
from mldebug_mcp.report.diagnosis_html import diagnosis_html
from mldebug_mcp.report.sections import worth_showing

EXAMPLES = Path(__file__).parents[2] / "examples"


def page_of(run: Run, reference: Run | None = None) -> str:
    return diagnosis_html(diagnose(run, reference), run, reference)


def panels_of(run: Run, reference: Run | None = None) -> list[Panel]:
    answer = diagnose(run)
    return panels(run, answer, worth_showing(answer.findings), reference)


def write_log(path: Path, records: Sequence[Mapping[str, object]]) -> Path:
    path.write_text("\n".join(json.dumps(one) for one in records))
    return path


@pytest.mark.parametrize("name", ["loss_spike", "divergence", "nan_loss", "overfit"])
def test_each_onset_stands_in_a_picture_under_the_number_by_which_it_is_listed(name: str) -> None:
    run = read_run(EXAMPLES / name)
    answer = diagnose(run)
    page = diagnosis_html(answer, run)
    pictures = "".join(re.findall(r"<svg.*?</svg>", page, re.DOTALL))
    begun = [one for one in answer.findings if one.state is State.PRESENT and one.steps]

    assert begun
    for one in begun:
        number = re.search(rf'class="number">(\d+)</span><b>{one.symptom}</b>', page)
        assert number is not None
        assert re.search(rf"[>, ]{number[1]}[<,]", pictures)
        assert re.search(rf"<title>[^<]*{one.symptom} at ", pictures)


def test_the_page_shows_what_the_terminal_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"

    assert main(["diagnose", str(EXAMPLES / "divergence"), "--html", str(page)]) == 0

    text = page.read_text(encoding="utf-8")
    answer = diagnose(read_run(EXAMPLES / "divergence"))
    assert answer.hypotheses[0].cause in capsys.readouterr().out
    for one in answer.hypotheses[:5]:
        assert f"<b>{one.cause}</b>" in text
    assert answer.next_steps[0].id in text
    assert answer.hypotheses[0].citations[0].url in text


def test_the_page_stands_alone_and_escapes_what_comes_from_the_log(tmp_path: Path) -> None:
    evil = "</text><script>alert(1)</script>"
    records = [{"step": step, "loss": 4 / step, f"eval_{evil}_loss": 5 / step} for step in range(1, 40)]
    folder = tmp_path / "<img src=x>"
    folder.mkdir()
    page = page_of(read_run(write_log(folder / "log.jsonl", records)))
    kinds = re.findall(r"<script([^>]*)>", page)

    assert set(kinds) == {"", ' type="application/json"'}
    assert kinds.count("") == 1, "one script of ours"
    assert "alert(1)</script>" not in page
    assert "<img" not in page
    assert "default-src 'none'" in page
    assert not re.search(r"<[^>]*\b(?:src|srcset|action)=|url\((?!#)|@import|<link", page.replace("url(#${clip})", ""))


def test_the_policy_of_the_page_allows_its_own_script_and_no_other() -> None:
    page = page_of(read_run(EXAMPLES / "loss_spike"))
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)

    assert script is not None
    digest = b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert "connect-src" not in page
    assert not re.search(r"<[^>]* on\w+=", page)


def data_of(page: str) -> list[dict[str, Any]]:
    return [json.loads(one) for one in re.findall(r'<script type="application/json">(.*?)</script>', page)]


def test_the_values_under_the_pointer_are_those_of_the_log() -> None:
    loss, *_ = data_of(page_of(read_run(EXAMPLES / "loss_spike")))
    (steps, values), *_ = loss["curves"][0]["lines"]

    assert values[steps.index(250)] == pytest.approx(6.616, abs=1e-3)
    assert (loss["first"], loss["last"]) == (1, 400)


def test_the_worst_event_is_pointed_at_and_a_healthy_run_has_none() -> None:
    page = page_of(read_run(EXAMPLES / "loss_spike"))

    assert data_of(page)[0]["worst"] == 250
    assert "<title>worst: at 250</title>" in page
    assert all(one["worst"] is None for one in data_of(page_of(read_run(EXAMPLES / "healthy"))))


@pytest.mark.parametrize(
    ("example", "told"),
    [
        ("loss_spike", ("<b>Perhaps a bad batch (", "<dt>Why</dt>", "<dt>Next</dt>", "<dt>Fix</dt>")),
        ("healthy", ("<b>Healthy (", "nothing unusual in loss (")),
    ],
)
def test_the_page_begins_with_what_leads_and_how_sure_that_is(example: str, told: tuple[str, ...]) -> None:
    before_the_curves = page_of(read_run(EXAMPLES / example)).partition("<figure")[0]

    assert all(one in before_the_curves for one in told)


def test_the_page_has_the_sheet_of_the_run_with_unusual_settings_beside_what_is_usual() -> None:
    run = run_of(loss=np.linspace(4, 2, 200), config={"learning_rate": 5.0, "max_steps": 400, "optim": "adamw"})
    sheet, page = diagnose(run).sheet, page_of(run)

    assert all(html.escape(line) in page for line in sheet.ran)
    assert any(one.usual for one in sheet.settings)
    for one in sheet.settings:
        marked = f"<mark>{html.escape(f'{one.name} = {one.value}')}</mark>"
        assert (marked in page) == bool(one.usual)
        assert html.escape(one.usual) in page
    assert all(html.escape(part) in page for one in sheet.quantities for part in one.parts)
    assert all(html.escape(str(one)) in page for one in sheet.events)


def test_a_page_on_next_to_nothing_says_so_first() -> None:
    assert "Cannot be judged: " in page_of(run_of(loss=[3.0, 2.0]))
    assert "Cannot be judged: " in page_of(run_of({"widgets": np.linspace(1, 2, 50)}))


def test_siblings_are_drawn_behind_a_run_and_do_not_stretch_its_scale(tmp_path: Path) -> None:
    for name, last in {"a": 2.0, "b": 1e6}.items():
        (tmp_path / name).mkdir()
        falling = np.linspace(4, last, 60 if name == "a" else 50).tolist()
        write_log(tmp_path / name / "log.jsonl", [{"step": i, "loss": one} for i, one in enumerate(falling)])
    page = tmp_path / "page.html"

    assert main(["diagnose", str(tmp_path), "--html", str(page)]) == 0

    shown = page.read_text(encoding="utf-8")
    behind, own = data_of(shown)[0]["curves"]
    assert (behind["name"], behind["of"]) == ("loss of b", True)
    assert (own["name"], own["of"]) == ("loss", False)
    assert data_of(shown)[0]["high"] < 10
    assert "values to 1000000 are beyond the scale" in shown


def test_siblings_are_compared_in_the_panels_and_in_a_table_with_what_is_set_otherwise(tmp_path: Path) -> None:
    for rate, last in {1e-4: 3.0, 1e-3: 1.0, 3e-3: 0.5}.items():
        folder = tmp_path / f"rate_{rate}"
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps({"learning_rate": rate, "batch_size": 8, "optim": "adamw"}))
        write_log(folder / "log.jsonl", [{"step": i, "loss": one} for i, one in enumerate(np.linspace(4, last, 60))])
    page = tmp_path / "page.html"

    assert main(["diagnose", str(tmp_path), "--run", "rate_0.001", "--html", str(page)]) == 0

    shown = page.read_text(encoding="utf-8")
    (panel, *_) = data_of(shown)
    *behind, own = panel["curves"]
    assert [one["name"] for one in behind] == [
        "loss of rate_0.0001 (learning_rate=0.0001)",
        "loss of rate_0.003 (learning_rate=0.003)",
    ]
    assert len({one["colour"] for one in (*behind, own)}) == 3, "they are told apart"
    assert panel["low"] <= 0.5, "a sibling that does not flatten the run is within the scale"
    rows = re.findall(r"<tr><td>(?:<b>)?([^<]+)", shown)
    assert rows[:3] == ["rate_0.003", "this run", "rate_0.0001"], "the best first"


def test_a_curve_of_very_many_records_keeps_its_lowest_and_highest_points_in_few() -> None:
    loss = 2 + np.random.default_rng(0).normal(0, 0.1, 200_000)
    loss[123_456], loss[7] = 9.0, -3.0
    (panel,) = panels_of(run_of(loss=loss))
    (curve,) = panel.curves

    assert len(curve.values) <= 4 * MAX_CURVE_STRETCHES
    assert {9.0, -3.0} <= set(curve.values.tolist())


def test_nan_is_marked_where_it_stands_and_the_curve_ends_before_it() -> None:
    loss = np.concatenate([np.linspace(4, 2, 50), np.full(10, np.nan)])
    run = run_of(loss=loss)
    (panel,) = panels_of(run)

    assert panel.curves[0].lost.tolist() == run["loss"].step[50:].tolist()
    assert len(panel.curves[0].values) == 50
    assert page_of(run).count("×<title>NaN or infinite") == 10


def test_a_log_without_a_finite_value_has_a_page_but_no_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write_log(tmp_path / "log.jsonl", [{"step": step, "loss": "nan"} for step in range(30)])

    assert "<svg" not in page_of(read_run(log))
    assert main(["diagnose", str(log), "--png", str(tmp_path / "a.png")]) == 2
    assert "no curve to draw" in capsys.readouterr().err


def test_each_stretch_between_restarts_is_a_line_of_its_own(tmp_path: Path) -> None:
    steps = [*range(100), *range(60, 160)]
    log = write_log(tmp_path / "log.jsonl", [{"step": step, "loss": 5 - step / 50} for step in steps])
    (panel,) = panels_of(read_run(log))

    assert [len(step) for step, _ in panel.curves[0].lines] == [100, 100]
    assert panel.restarts == (60.0,)
    assert "dotted: restarts" in page_of(read_run(log))


def test_the_reference_run_is_drawn_behind_as_far_as_the_run_has_come() -> None:
    short, long = run_of(loss=np.linspace(4, 3, 50)), run_of(loss=np.linspace(4, 2, 500))
    behind, own = panels_of(short, long)[0].curves

    assert behind.of
    assert behind.lines[0][0].max() == own.lines[0][0].max()
    assert "loss of the reference run" in page_of(short, long)


def test_training_and_evaluation_of_one_metric_share_a_panel_and_none_is_drawn_twice() -> None:
    falling = np.linspace(4, 2, 60)
    run = run_of(loss=falling, eval_loss=falling + 0.2, accuracy=falling / 5, eval_accuracy=falling / 6)
    names = [[curve.name for curve in panel.curves] for panel in panels_of(run)]

    assert names == [["loss", "eval_loss"], ["accuracy", "eval_accuracy"]]


def test_a_log_of_very_many_metrics_has_a_bounded_page() -> None:
    falling = np.linspace(4, 2, 60)
    run = run_of({f"eval_{number}_loss": falling for number in range(500)}, loss=falling)

    assert len(panels_of(run)) <= MOST_PANELS
    assert len(page_of(run)) < 200_000


def test_a_scale_is_logarithmic_where_values_span_far_and_linear_for_a_schedule() -> None:
    decades = np.logspace(0, 5, 100)

    assert scale_of([decades]).logarithmic
    assert not scale_of([decades], linear=True).logarithmic
    assert not scale_of([np.linspace(1, 5, 100)]).logarithmic


def test_an_outlier_does_not_flatten_the_rest_and_is_told_in_words() -> None:
    loss = np.concatenate([np.linspace(1, -1, 200), [-1e6], np.linspace(-1, -1.1, 50)])
    (panel,) = panels_of(run_of(loss=loss))

    assert panel.scale.low > -50
    assert panel.beyond == -1e6
    assert "values to -1000000 are beyond the scale" in page_of(run_of(loss=loss))


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3.0, 1e9), (1e-9, 3e-9), (2.0, 2.0), (0.0, np.inf)])
def test_labels_are_few_round_and_within_the_range(low: float, high: float) -> None:
    values = round_values(low, high)

    assert 1 <= len(values) <= 12
    assert all(low <= value <= high for value in values)


@pytest.mark.parametrize("steps", [[0, 1, 2, 3], [-1e308, 0, 5e307, 1e308], [1, 1, 1, 1]])
@pytest.mark.parametrize("loss", [[1e308, -1e308, 0, 1], [5e-324, 1e-320, 1e-310, 1e308], [0, 0, 0, 0], [3, 3, 3, 3]])
def test_numbers_at_the_ends_of_what_a_float_holds_are_drawn_within_the_picture(
    steps: list[float], loss: list[float]
) -> None:
    run = run_of_records({"step": step, "loss": value} for step, value in zip(steps, loss, strict=True))
    points = re.findall(r'points="([^"]*)"', page_of(run))

    assert all(-1 <= float(one) <= 1000 for line in points for pair in line.split() for one in pair.split(","))


def test_a_picture_is_drawn_where_matplotlib_is_installed(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "run.png"

    assert main(["diagnose", str(EXAMPLES / "nan_loss"), "--png", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
