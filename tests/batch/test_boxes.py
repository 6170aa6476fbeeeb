"""Boxes of object detection: annotations of COCO are read, what is wrong with them is seen, and a page draws them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.judge.batch import inspect_batch
from mldebug_mcp.models.data import BatchInspection
from mldebug_mcp.report.pages import page

Box = list[float]
GOOD: list[Box] = [[10, 20, 100, 50], [300, 200, 200, 200]]


def coco(*boxes: Box, **changes: Any) -> dict[str, Any]:
    """Return annotations of two images, 640 wide and 480 high."""
    annotations = [
        {"id": number, "image_id": number % 2 + 1, "category_id": 18, "bbox": box} for number, box in enumerate(boxes)
    ]
    images = [{"id": number, "width": 640, "height": 480, "file_name": f"{number}.jpg"} for number in (1, 2)]
    return {"images": images, "annotations": annotations, "categories": [{"id": 18, "name": "dog"}]} | changes


def inspected(path: Path, value: object) -> BatchInspection:
    file = path / "annotations.json"
    file.write_text(json.dumps(value), encoding="utf-8")
    return inspect_batch(file)


def test_annotations_of_coco_are_read_and_their_boxes_drawn(tmp_path: Path) -> None:
    answer = inspected(tmp_path, coco(*GOOD))

    assert answer.batch.rows == 2
    assert answer.findings == []
    assert answer.rows[0].text == "dog at 10, 20, 100, 50"
    drawn = page(answer)
    assert 'x="1.56" y="4.17" width="15.62" height="10.42"' in drawn
    assert "<title>dog</title>" in drawn


@pytest.mark.parametrize(
    ("boxes", "said"),
    [
        ([[10, 20, 0, 50], GOOD[1]], "1 boxes have no width or height"),
        ([GOOD[0], [500, 400, 200, 300]], "1 boxes reach beyond their image"),
        ([[400, 300, 600, 450], [300, 200, 630, 470]], "fit the image only as corners"),
        ([[0.1, 0.1, 0.3, 0.3], [0.2, 0.5, 0.4, 0.2]], "boxes are shares of the image, where COCO has pixels"),
    ],
)
def test_boxes_that_are_not_those_of_coco_are_seen(boxes: list[Box], said: str, tmp_path: Path) -> None:
    findings = inspected(tmp_path, coco(*boxes)).findings

    assert [one.check for one in findings] == ["box_out_of_range"]
    assert said in findings[0].summary


def test_annotations_that_name_what_is_not_there_are_counted(tmp_path: Path) -> None:
    value = coco(*GOOD)
    value["annotations"][0]["image_id"] = 99
    value["annotations"][1]["category_id"] = 7

    notes = " ".join(inspected(tmp_path, value).notes)

    assert "left out 1 annotation without a box, or of an image that is not there" in notes
    assert "1 annotations name a category that is not there" in notes


@pytest.mark.parametrize(
    "changes",
    [
        {"categories": None},
        {"categories": [{"name": "no id"}]},
        {"annotations": [{"image_id": 1, "bbox": ["a", None, {}, 1]}]},
        {"annotations": [{"image_id": [], "bbox": [1, 2, 3]}, {"image_id": 1, "bbox": [1, 2, 3, 4]}]},
        {"images": [{"id": 1}, {"id": None, "width": "wide"}]},
    ],
)
def test_annotations_of_any_shape_are_read_or_refused_with_a_reason(changes: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "annotations.json"
    file.write_text(json.dumps(coco(*GOOD, **changes)), encoding="utf-8")
    said = ""
    try:
        answer = inspect_batch(file)
    except InputError as error:
        said = str(error)

    assert "none of its columns" in said if said else answer.batch.rows == 2


@pytest.mark.parametrize(
    ("boxes", "checks"),
    [
        ([[10, 20, 110, 70], [300, 200, 500, 400], [300, 200, 90, 80]], ["box_out_of_range"]),
        ([[10, 20, 110, 70], [300, 200, 500, 400], [300, 200, 390, 280]], []),
        ([[10, 20, 100, 50], [300, 200, 200, 200], [300, 200, 90, 80]], []),
    ],
)
def test_boxes_in_a_column_of_their_own_are_of_one_form(boxes: list[Box], checks: list[str], tmp_path: Path) -> None:
    rows = [{"image": f"{n}.jpg", "width": 640, "height": 480, "boxes": boxes, "labels": [1, 2, 3]} for n in range(4)]
    file = tmp_path / "boxes.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert [finding.check for finding in inspect_batch(file).findings] == checks


@pytest.mark.parametrize(("odd", "fits"), [([200, 150, 40, 30], True), ([200, 150, 200, 180], False)])
def test_boxes_of_a_source_that_gives_width_and_height_are_named(odd: Box, fits: bool, tmp_path: Path) -> None:
    rows = [
        {"width": 640, "height": 480, "boxes": [odd if n % 5 == 4 else [10 + n, 20, 60 + n, 90]], "labels": [1]}
        for n in range(40)
    ]
    file = tmp_path / "boxes.jsonl"
    file.write_text("".join(json.dumps(row | {"source": f"cam{n % 5}"}) + "\n" for n, row in enumerate(rows)))
    finding = next(each for each in inspect_batch(file).findings if each.check == "box_out_of_range")
    assert ("fit their images as left, top, width and height" in finding.summary) is fits
    assert finding.summary.endswith('all of them have source "cam4", which 8 rows have')
