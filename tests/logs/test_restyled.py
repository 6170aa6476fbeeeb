"""The same run in every style gives the same run: quantities, steps, values, settings and attempts.

`python -m tests.restyle.report` shows what each style lacks, and every kind of failure with the styles that it hits.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.restyle.report import read_back
from tests.restyle.stories import STORIES
from tests.restyle.style import Style, random_style
from tests.restyle.styles import STYLES
from tests.restyle.variants import variants
from tests.restyle.write import write

PLAIN = ("jsonl_plain", "equals", "csv", "trainer_state")
"""Styles that any story can be told in whole."""


@pytest.mark.parametrize("story", ["healthy_language_model", "healthy_classifier"])
@pytest.mark.parametrize("style", STYLES.values(), ids=lambda style: style.name)
def test_a_run_is_read_the_same_in_every_style(style: Style, story: str, tmp_path: Path) -> None:
    written = write(STORIES[story](steps=150), style, tmp_path)
    assert [*read_back(written)] == []


@pytest.mark.parametrize("seed", range(40))
def test_a_run_is_read_the_same_in_a_style_drawn_by_seed(seed: int, tmp_path: Path) -> None:
    written = write(STORIES["healthy_classifier"](steps=150), random_style(seed), tmp_path)
    assert [*read_back(written)] == []


@pytest.mark.parametrize("style", PLAIN)
@pytest.mark.parametrize("story", STORIES)
def test_every_story_is_read_as_it_was_told(story: str, style: str, tmp_path: Path) -> None:
    written = write(STORIES[story](), STYLES[style], tmp_path)
    assert [*read_back(written)] == []


@pytest.mark.parametrize("style", PLAIN)
def test_a_run_is_read_the_same_whatever_stands_beside_it_and_however_it_counts(style: str, tmp_path: Path) -> None:
    for number, variant in enumerate(variants(STORIES["spike"](), STYLES[style])):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert [*read_back(write(variant.story, variant.style, folder))] == [], variant.name
