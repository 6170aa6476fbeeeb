"""The first cause stays the same where the same run is written in another way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.restyle.stories import STORIES
from tests.restyle.story import Story
from tests.restyle.style import Style
from tests.restyle.styles import STYLES
from tests.restyle.variants import variants
from tests.restyle.write import write

from mldebug_mcp import diagnose_run

PLAIN = Style("plain", "json", config="json_file", keys="short")
RUNS = ("healthy_language_model", "divergence", "not_a_number", "overfitting")
ALIKE = ("jsonl_namespaces", "dict_with_steps", "sentence_resumed", "csv_lightning", "wandb_export", "tensorboard")
"""Styles that have a place for all that these runs log."""


def _first_cause(story: Story, style: Style, folder: Path) -> str:
    folder.mkdir()
    write(story, style, folder)
    return diagnose_run(folder).hypotheses[0].cause


@pytest.mark.parametrize("name", RUNS)
def test_a_run_keeps_its_first_cause_in_other_styles(name: str, tmp_path: Path) -> None:
    story = STORIES[name]()
    first = _first_cause(story, PLAIN, tmp_path / "plain")
    told = [replace(STYLES[style], config=STYLES[style].config or "json_file", keys="short") for style in ALIKE]
    found = {style.name: _first_cause(story, style, tmp_path / style.name) for style in told}
    assert found == dict.fromkeys(ALIKE, first)


@pytest.mark.parametrize("name", RUNS)
def test_a_run_keeps_its_first_cause_where_it_is_scaled_rounded_thinned_or_logs_more(name: str, tmp_path: Path) -> None:
    story = STORIES[name]()
    first = _first_cause(story, PLAIN, tmp_path / "plain")
    found = {one.name: _first_cause(one.story, one.style, tmp_path / one.name) for one in variants(story, PLAIN)}
    assert found == dict.fromkeys(found, first)
    assert len(found) == 4


def test_the_runs_that_are_compared_have_different_first_causes(tmp_path: Path) -> None:
    causes = {_first_cause(STORIES[name](), PLAIN, tmp_path / name) for name in RUNS}
    assert len(causes) == len(RUNS)
