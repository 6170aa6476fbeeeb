"""Many runs as a page: a card with a small curve of each, filters, and nothing that a name could run."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pytest

from mldebug_mcp.cli import main
from mldebug_mcp.judge.runs import diagnose_runs
from mldebug_mcp.models.runs import RunRow, Runs
from mldebug_mcp.report.pages import MOST_CARDS, runs_html, write_runs_html

NAN = float("nan")


def row(name: str = "a", last: float | None = 1.0, cause: str = "healthy", **more: object) -> RunRow:
    curve = () if last is None else ((0.0, 3.0), (50.0, 2.0), (100.0, last))
    fields = {"metric": "loss", "better": "lower", "best": last, "curve": curve, **more}
    return RunRow(name=name, path="", last=last, cause=cause, **fields)


def test_each_run_is_a_card_with_its_curve_its_settings_and_what_it_may_be() -> None:
    page = runs_html(Runs(path="sweep", rows=[
        row("bad", 9.0, "lr_too_high", onset=50.0, settings={"learning_rate": 0.03}), row("good"),
    ]))  # fmt: skip
    assert page.count("<svg") == page.count("<polyline") == 2
    assert page.count("<line ") == 1
    assert "lr_too_high" in page
    assert "learning_rate 0.03" in page
    assert '<option value="lr_too_high">lr_too_high (1)' in page
    assert page.index("bad") < page.index("good")


def test_all_runs_are_drawn_on_one_scale_so_that_they_can_be_compared() -> None:
    page = runs_html(Runs(path="sweep", rows=[row("high", 2.0, curve_metric="loss"), row("low", curve_metric="loss")]))
    ends = [float(points.split()[-1].split(",")[1]) for points in re.findall(r'points="([^"]+)"', page)]
    assert ends[0] < ends[1]
    assert "loss from 1 to 3." in page, "the values that were logged, without the margins of the chart"


def test_values_that_are_not_finite_and_runs_without_a_curve_are_shown_as_such() -> None:
    page = runs_html(Runs(path="sweep", rows=[
        row("lost", curve=((0.0, 2.0), (1.0, NAN), (2.0, float("inf")))), row("unread", None, "", note="no log in it"),
    ]))  # fmt: skip
    assert page.count("\u00d7</text>") == 2
    assert "no log in it" in page
    assert "nan" not in "".join(re.findall(r'points="([^"]+)"', page))


def test_hostile_names_are_text_and_the_one_script_is_ours() -> None:
    evil = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202e'
    hostile = row(evil, metric=evil, step_name=evil, note=evil, ending=evil, settings={evil: evil})
    page = runs_html(Runs(path=evil, rows=[hostile], notes=[evil]))
    assert page.count("<script>") == 1
    assert "<img" not in page
    assert "\u202e" not in page
    script = page.split("<script>")[1].split("</script>")[0]
    assert f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" in page
    assert "http" not in re.sub(r"content-security-policy", "", page, flags=re.IGNORECASE).replace("http-equiv", "")


def test_of_very_many_runs_the_first_are_drawn_and_the_rest_is_counted() -> None:
    page = runs_html(Runs(path="sweep", rows=[row(f"r{number}") for number in range(MOST_CARDS + 5)]))
    assert page.count("<li class=healthy") == MOST_CARDS
    assert "5 further runs not drawn" in page


def test_the_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    examples = Path(__file__).parents[2] / "examples"
    assert main(["runs", str(examples), "--no-cache", "--processes", "1", "--html", str(tmp_path / "p.html")]) == 0
    assert "5 runs" in capsys.readouterr().out
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert page.count("<polyline") == 5


def test_a_folder_gets_a_page_for_each_run_which_its_card_links_to(tmp_path: Path) -> None:
    examples = Path(__file__).parents[2] / "examples"
    write_runs_html(diagnose_runs(examples), tmp_path / "pages")
    index = (tmp_path / "pages" / "index.html").read_text(encoding="utf-8")
    for number, name in enumerate(re.findall(r'<h3><a href="run-\d+.html">(\w+)</a>', index), start=1):
        page = (tmp_path / "pages" / f"run-{number}.html").read_text(encoding="utf-8")
        assert name in page.partition("</h1>")[0].rpartition("<h1>")[2]
    assert index.count('<h3><a href="run-') == 5
