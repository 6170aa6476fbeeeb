"""What can be told of a page's accessibility from its source: names, order, keyboard, contrast (WCAG 2.2)."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from mldebug_mcp.judge import diagnose
from mldebug_mcp.logs import read_run
from mldebug_mcp.report.chart import COLOURS, ONSET, REFERENCE
from mldebug_mcp.report.diagnosis_html import diagnosis_html

EXAMPLES = Path(__file__).parents[2] / "examples"
TEXT, GRAPHICS = 4.5, 3.0
"""Least contrast of text (1.4.3) and of what a graphic is understood by (1.4.11)."""


@pytest.fixture(scope="module")
def page() -> str:
    run = read_run(EXAMPLES / "loss_spike")
    good = read_run(EXAMPLES / "healthy")
    return diagnosis_html(diagnose(run, good), run, good)


class Elements(HTMLParser):
    """All elements of a page with their attributes, their text and the elements around them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str], tuple[str, ...]]] = []
        self.texts: list[str] = []
        self._open: list[tuple[str, int]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}, tuple(name for name, _ in self._open)))
        self.texts.append("")
        if tag not in ("meta", "input", "br", "img", "link", "hr"):
            self._open.append((tag, len(self.found) - 1))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        for _, place in self._open:
            self.texts[place] += data


def test_the_page_names_its_language_and_what_it_is_of_and_may_be_zoomed(page: str) -> None:
    assert '<html lang="en">' in page
    assert "<title>" in page
    assert "user-scalable" not in page
    assert "maximum-scale" not in page
    assert page.count("<main>") == 1


def test_headings_follow_each_other_in_order(page: str) -> None:
    levels = [int(level) for level in re.findall(r"<h([1-6])", page)]

    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_every_control_has_a_name(page: str) -> None:
    elements = Elements(page)
    controls = [
        (tag, around, text)
        for (tag, _, around), text in zip(elements.found, elements.texts, strict=True)
        if tag in ("input", "button", "select", "textarea")
    ]

    assert len(controls) > 4
    for tag, around, text in controls:
        assert "label" in around if tag == "input" else text.strip(), tag


def test_pictures_and_what_takes_the_keyboard_are_named_and_in_the_order_of_the_page(page: str) -> None:
    elements = Elements(page).found
    pictures = [given for tag, given, _ in elements if tag == "svg"]
    reachable = [given for _, given, _ in elements if "tabindex" in given]

    assert pictures
    assert all(given.get("role") == "img" and given.get("aria-label") for given in pictures)
    assert reachable
    assert all(given["tabindex"] == "0" and given["role"] and given["aria-label"] for given in reachable)


def test_every_id_is_given_once_and_tables_have_headings(page: str) -> None:
    elements = Elements(page).found
    ids = [given["id"] for _, given, _ in elements if "id" in given]

    assert len(ids) == len(set(ids))
    assert all(given.get("scope") in ("col", "row") for tag, given, _ in elements if tag == "th")
    assert page.count("<table") == page.count("<thead>")


def schemes_of(page: str) -> dict[str, dict[str, str]]:
    light, dark = re.findall(r":root \{([^}]*)\}", page)
    return {name: dict(re.findall(r"--(\w+): (#\w+)", rules)) for name, rules in (("light", light), ("dark", dark))}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("colour", ["text", "dim", "bad", "warn", "info", "good"])
def test_text_stands_out_from_the_page(page: str, scheme: str, colour: str) -> None:
    colours = schemes_of(page)[scheme]

    assert contrast(colours[colour], colours["back"]) >= TEXT


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("colour", [*COLOURS, REFERENCE, ONSET])
def test_curves_and_marks_stand_out_from_the_page(page: str, scheme: str, colour: str) -> None:
    assert contrast(colour, schemes_of(page)[scheme]["back"]) >= GRAPHICS


@pytest.mark.parametrize("colour", [ONSET, "#6b6b6b"])
def test_numbers_stand_out_from_their_badges(page: str, colour: str) -> None:
    assert f"background: {colour}" in page
    assert contrast("#ffffff", colour) >= TEXT


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    digits = colour.removeprefix("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    shares = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
