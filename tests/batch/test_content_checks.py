"""Checks of templates, pairs, inputs and classes: a faulty batch and a near miss each."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.batch.kit import Inspect, Maker

from mldebug_mcp.judge.batch import inspect_batch

CHAT = ["chatml", "llama3", "mistral", "gemma", "own"]


def as_plain_text(made: Maker, text: str) -> list[int]:
    """Tokenize with special tokens read as ordinary text, as split_special_tokens=True does."""
    made.hf.split_special_tokens = True
    try:
        return [int(token) for token in made.hf(text, add_special_tokens=False)["input_ids"]]
    finally:
        made.hf.split_special_tokens = False


@pytest.mark.parametrize(
    ("family", "other"), [("llama3", "chatml"), ("chatml", "llama3"), ("gemma", "mistral"), ("mistral", "gemma")]
)
def test_another_templates_markers_are_seen(family: str, other: str, inspect: Inspect) -> None:
    made, foreign = Maker(family), Maker(other)
    texts = ["".join(foreign.tokenizer.pieces(row["input_ids"])) for row in foreign.rows()]
    rows = [{"input_ids": ids, "labels": ids} for ids in map(made.tokenizer.encode, texts)]
    found = inspect(made.pad(rows), made.tokenizer, "sft")
    assert found["chat_template_mismatch"] == "error"
    assert "missing_eos" not in found
    assert "special_token_split" not in found


def test_a_mention_of_another_template_is_none(inspect: Inspect) -> None:
    made = Maker("llama3")
    asked = "What do <|im_start|>user\nhello<|im_end|> and <|im_start|>assistant\nmean?"
    text = made.tokenizer.render([{"role": "user", "content": asked}, {"role": "assistant", "content": "Markers."}])
    ids = made.tokenizer.encode(text, special=False)
    batch = made.pad([*made.rows(), {"input_ids": ids, "labels": [-100] * (len(ids) - 4) + ids[-4:]}])
    assert "chat_template_mismatch" not in inspect(batch, made.tokenizer, "sft")


def test_plain_instruction_markers_are_a_template_of_their_own(inspect: Inspect) -> None:
    made = Maker("base")
    text = "### Instruction:\nName a prime number.\n\n### Response:\nSeven is a prime number.<|endoftext|>"
    ids = made.tokenizer.encode(text)
    start = len(made.tokenizer.encode(text.split("Seven", maxsplit=1)[0]))
    found = inspect([{"input_ids": ids, "labels": [-100] * start + ids[start:]}], made.tokenizer, "sft")
    assert not {check for check, severity in found.items() if severity != "info"}
    whole = inspect([{"input_ids": ids, "labels": ids}], made.tokenizer, "sft")
    assert whole["prompt_not_masked"] == "warning"


@pytest.mark.parametrize("family", CHAT)
def test_special_tokens_spelt_by_ordinary_ones_are_seen(family: str, inspect: Inspect) -> None:
    made = Maker(family)
    rows = []
    for row in made.rows():
        ids = as_plain_text(made, "".join(made.tokenizer.pieces(row["input_ids"])))
        rows.append({"input_ids": ids, "labels": ids})
    assert inspect(made.pad(rows), made.tokenizer, "sft")["special_token_split"] == "error"


def test_an_end_token_written_as_text_is_seen(inspect: Inspect) -> None:
    made = Maker("mistral")
    rows = []
    for row in made.rows():
        ids = row["input_ids"][:-1] + as_plain_text(made, "</s>")
        rows.append({"input_ids": ids, "labels": [*row["labels"][:-1], *ids[len(row["labels"]) - 1 :]]})
    found = inspect(made.pad(rows), made.tokenizer, "sft")
    assert found["special_token_split"] == "error"
    assert found["missing_eos"] == "error"


def test_a_special_token_mentioned_in_passing_is_not_split(inspect: Inspect) -> None:
    made = Maker("mistral")
    row = made.row()
    mention = as_plain_text(made, "What does </s> mean? ")
    ids = row["input_ids"][:3] + mention + row["input_ids"][3:]
    labels = row["labels"][:3] + [-100] * len(mention) + row["labels"][3:]
    batch = made.pad([*made.rows(), {"input_ids": ids, "labels": labels}])
    assert "special_token_split" not in inspect(batch, made.tokenizer, "sft")


def preference(made: Maker) -> dict[str, Any]:
    """Pairs as full rows with labels, the form of older trainers."""
    sides = {"chosen": made.rows(4), "rejected": []}
    for number, row in enumerate(sides["chosen"]):
        start = next(place for place, label in enumerate(row["labels"]) if label != -100)
        worse = made.row(number + 1)
        answer = [token for token, label in zip(worse["input_ids"], worse["labels"], strict=True) if label != -100]
        sides["rejected"].append({"input_ids": row["input_ids"][:start] + answer, "labels": [-100] * start + answer})
    return {f"{side}_{name}": [row[name] for row in rows] for side, rows in sides.items() for name in rows[0]}


@pytest.mark.parametrize("family", CHAT)
def test_pairs_with_one_prompt_and_two_answers_are_healthy(family: str, inspect: Inspect) -> None:
    made = Maker(family)
    for tokenizer in (made.tokenizer, None):
        found = inspect(preference(made), tokenizer)
        assert not {check for check, severity in found.items() if severity != "info"}


@pytest.mark.parametrize("family", CHAT)
def test_pairs_without_a_difference_are_seen(family: str, inspect: Inspect) -> None:
    made = Maker(family)
    batch = preference(made)
    for name in ("input_ids", "labels"):
        batch[f"rejected_{name}"] = batch[f"chosen_{name}"]
    for tokenizer in (made.tokenizer, None):
        found = inspect(batch, tokenizer)
        assert found["chosen_equals_rejected"] == "error"
        assert "prompt_missing" not in found


def test_one_other_word_is_a_difference(inspect: Inspect) -> None:
    made = Maker("chatml")
    batch = preference(made)
    for name in ("input_ids", "labels"):
        batch[f"rejected_{name}"] = [list(row) for row in batch[f"chosen_{name}"]]
        for row in batch[f"rejected_{name}"]:
            row[-4] = made.tokenizer.encode("x")[0]
    assert "chosen_equals_rejected" not in inspect(batch, made.tokenizer)


@pytest.mark.parametrize("family", CHAT)
def test_sides_with_different_prompts_are_seen(family: str, inspect: Inspect) -> None:
    made = Maker(family)
    batch = preference(made)
    for name in ("input_ids", "labels"):
        batch[f"rejected_{name}"] = batch[f"rejected_{name}"][1:] + batch[f"rejected_{name}"][:1]
    assert inspect(batch, made.tokenizer)["prompt_missing"] == "error"


def test_an_empty_prompt_column_is_seen(inspect: Inspect) -> None:
    made = Maker("chatml")
    rows = made.rows()
    batch = {
        "prompt_ids": [row["input_ids"][:10] for row in rows],
        "chosen_ids": [row["input_ids"][10:] for row in rows],
        "rejected_ids": [row["input_ids"][12:] for row in rows],
    }
    assert "prompt_missing" not in inspect(batch, made.tokenizer)
    batch["prompt_ids"][2] = []
    assert inspect(batch, made.tokenizer)["prompt_missing"] == "error"


def test_columns_that_the_purpose_lacks_are_seen(inspect: Inspect) -> None:
    made = Maker("chatml")
    assert inspect(made.batch(), made.tokenizer, "dpo")["schema_mismatch"] == "error"
    assert inspect({"input_ids": [[1, 2], [3, 4]], "labels": [0, 1]}, None, "sft")["schema_mismatch"] == "error"
    rows = made.rows()
    del rows[2]["labels"]
    assert inspect(rows, made.tokenizer)["schema_mismatch"] == "error"
    assert "schema_mismatch" not in inspect([{**row, "source": "web"} for row in made.rows()], made.tokenizer, "sft")


def images(scale: float, shift: float, rows: int = 8) -> list[Any]:
    chance = random.Random(0)
    return [[[[chance.gauss(shift, scale) for _ in range(4)] for _ in range(4)] for _ in range(3)] for _ in range(rows)]


def test_nan_and_infinity_in_inputs_are_seen(inspect: Inspect) -> None:
    batch = {"pixel_values": images(1, 0), "labels": [0, 1] * 4}
    assert inspect(batch) == {}
    for wrong in (float("nan"), float("-inf")):
        batch["pixel_values"][3][0][1][2] = wrong
        assert inspect(batch)["nonfinite_values"] == "error"


def test_inputs_on_another_scale_are_seen(inspect: Inspect) -> None:
    labels = [0, 1] * 4
    assert inspect({"pixel_values": images(70, 120), "labels": labels})["input_not_normalized"] == "warning"
    assert inspect({"pixel_values": images(0, 0), "labels": labels})["input_not_normalized"] == "warning"
    assert inspect({"pixel_values": images(0.8, 0.3), "labels": labels}) == {}
    assert inspect({"inputs_embeds": images(0.02, 0), "labels": labels}) == {}


def test_rows_that_are_sorted_by_class_are_remarked(inspect: Inspect) -> None:
    rows = np.random.default_rng(0).normal(size=(90, 6)).tolist()
    assert inspect({"x": rows, "y": sorted([0, 1, 2] * 30)}) == {"classes_sorted": "info"}
    assert inspect({"x": rows, "y": [0, 1, 2] * 30}) == {}
    assert inspect({"x": rows, "y": [0, *sorted([0, 1, 2] * 30)[:-1]][::-1]}) == {"classes_sorted": "info"}
    assert inspect({"x": rows, "y": [*sorted([0, 1, 2] * 29), 0, 1, 2]}) == {}


def test_class_labels_outside_the_classes_are_seen(inspect: Inspect) -> None:
    batch = {"input_ids": [[5, 6, 7 + row] for row in range(8)], "labels": [0, 1, 2, 0, 1, 2, 0, 1]}
    assert inspect(batch, model={"num_labels": 2})["label_out_of_range"] == "error"
    assert "label_out_of_range" not in inspect(batch, model={"num_labels": 3})
    assert "label_out_of_range" not in inspect(
        {**batch, "labels": [0, 1, 2, -100, 1, 2, 0, 1]}, model={"num_labels": 3}
    )
    assert inspect({**batch, "labels": [0, 1, 2, -1, 1, 2, 0, 1]})["label_out_of_range"] == "error"


def test_a_class_that_dominates_is_seen(inspect: Inspect) -> None:
    ids = [[5, 6, 7 + row] for row in range(40)]
    assert inspect({"input_ids": ids, "labels": [0] * 38 + [1, 2]})["class_imbalance"] == "warning"
    assert inspect({"input_ids": ids, "labels": [0] * 40})["class_imbalance"] == "warning"
    assert "class_imbalance" not in inspect({"input_ids": ids, "labels": [0] * 30 + [1] * 10})
    assert "class_imbalance" not in inspect({"input_ids": ids[:4], "labels": [0, 0, 0, 0]})


IMAGE = 5
"""The id of a byte that no text of the tests holds."""


def vision(made: Maker, per_image: int = 4) -> dict[str, Any]:
    token = IMAGE
    rows = [
        {
            "input_ids": row["input_ids"][:5] + [token] * per_image + row["input_ids"][5:],
            "labels": row["labels"][:5] + [-100] * per_image + row["labels"][5:],
        }
        for row in made.rows()
    ]
    batch = made.pad(rows)
    batch["pixel_values"] = images(1, 0, 4)
    return batch


def test_image_placeholders_have_to_match_the_images(inspect: Inspect) -> None:
    made = Maker("chatml")
    model = {"image_token_id": IMAGE, "image_seq_length": 4}
    assert {c for c, s in inspect(vision(made), made.tokenizer, model=model).items() if s != "info"} == set()
    assert inspect(vision(made, 3), made.tokenizer, model=model)["image_tokens_truncated"] == "error"
    assert "image_tokens_truncated" not in inspect(vision(made, 3), made.tokenizer, model={"image_token_id": IMAGE})


def test_a_row_that_ends_inside_an_image_is_seen(inspect: Inspect) -> None:
    made = Maker("chatml")
    batch = vision(made)
    batch.pop("attention_mask")
    for name, fill in (("input_ids", IMAGE), ("labels", -100)):
        batch[name] = [row[:9] if number != 2 else row[:4] + [fill] * 3 for number, row in enumerate(batch[name])]
        batch[name] = [
            row + [made.hf.pad_token_id if name == "input_ids" else -100] * (9 - len(row)) for row in batch[name]
        ]
    assert inspect(batch, made.tokenizer, "vlm", {"image_token_id": IMAGE})["image_tokens_truncated"] == "error"


def test_grid_sizes_say_how_many_placeholders_are_due(inspect: Inspect) -> None:
    made = Maker("chatml")
    batch = vision(made)
    batch["pixel_values"] = [[0.5, -0.5, 1.5, -1.0]] * 64
    batch["image_grid_thw"] = [[1, 4, 4]] * 4
    model = {"image_token_id": IMAGE, "vision_config": {"spatial_merge_size": 2}}
    assert "image_tokens_truncated" not in inspect(batch, made.tokenizer, "vlm", model)
    batch["image_grid_thw"] = [[1, 4, 8]] * 4
    assert inspect(batch, made.tokenizer, "vlm", model)["image_tokens_truncated"] == "error"


def test_rows_that_differ_in_columns_no_check_reads_are_no_repeats(inspect: Inspect) -> None:
    pairs = [
        {"query": f"Where is river {row // 4}?", "document": f"The river {row} is here.", "label": float(row % 4 == 0)}
        for row in range(16)
    ]
    assert inspect(pairs) == {}
    assert inspect([*pairs, *pairs[:8]])["duplicate_rows"] == "warning"
    table = [{"price": 9.5, "city": "ab"[row % 2], "rooms": row, "label": row % 3} for row in range(16)]
    assert inspect(table) == {}


def test_one_question_about_several_images_in_patches_is_no_repeat(inspect: Inspect) -> None:
    made = Maker("chatml")
    batch = made.pad(made.rows()[:1] * 4)
    batch["pixel_values"] = images(16, 0, 4)
    assert "duplicate_rows" not in inspect(batch, made.tokenizer, "vlm")


def test_images_that_lack_placeholders_are_named_by_row(tmp_path: Path) -> None:
    made = Maker("chatml")
    batch = vision(made)
    batch["pixel_values"] = [[0.5, -0.5, 1.5, -1.0]] * 64
    batch["image_grid_thw"] = [[1, 4, 4], [1, 4, 8], [1, 4, 4], [1, 4, 4]]
    (tmp_path / "batch.json").write_text(json.dumps(batch))
    (tmp_path / "config.json").write_text(json.dumps({"image_token_id": IMAGE}))
    answer = inspect_batch(tmp_path / "batch.json", made.tokenizer, tmp_path / "config.json")
    assert answer.batch.rows == 4
    assert [one.rows for one in answer.findings if one.check == "image_tokens_truncated"] == [[1]]


@pytest.mark.parametrize("family", ["chatml", "llama3", "gemma"])
def test_prompts_that_do_not_open_the_answer_are_seen(family: str, inspect: Inspect) -> None:
    made = Maker(family)
    asked = [[{"role": "user", "content": word}] for word in ("Why?", "Where?", "Who was it?")]
    for opened in (False, True):
        texts = [made.tokenizer.render(one, add_generation_prompt=opened) for one in asked]
        batch = {"prompt_ids": [made.tokenizer.encode(text, special=False) for text in texts]}
        found = inspect(batch, made.tokenizer, "generation")
        assert ("generation_prompt_missing" in found) is not opened
    begun = [made.tokenizer.render([*one, {"role": "assistant", "content": "It"}]) for one in asked]
    rows = [{"input_ids": made.tokenizer.encode(text, special=False)} for text in begun]
    assert "generation_prompt_missing" not in inspect(rows, made.tokenizer, "generation")


def test_classes_of_pixels_have_to_fit_the_model(inspect: Inspect) -> None:
    pixels = [[[row % 3, 255], [1, 2]] for row in range(4)]
    batch = {"pixel_values": images(4, 0, 2), "labels": pixels}
    assert "label_out_of_range" not in inspect(batch, model={"num_labels": 3})
    assert inspect(batch, model={"num_labels": 2})["label_out_of_range"] == "error"


def test_images_that_hardly_vary_are_seen_behind_the_offsets_of_their_channels(inspect: Inspect) -> None:
    def normalised(scale: float, *, last: bool) -> list[Any]:
        chance = np.random.default_rng(0).random((4, 3, 8, 8)) * scale
        offsets = np.array([0.485, 0.456, 0.406]).reshape(1, 3, 1, 1)
        pixels = (chance - offsets) / 0.225
        return list((pixels.transpose(0, 2, 3, 1) if last else pixels).tolist())

    for last in (False, True):
        for scale in (0, 1 / 255):
            assert inspect({"pixel_values": normalised(scale, last=last)})["input_not_normalized"] == "warning"
        assert inspect({"pixel_values": normalised(1, last=last)}) == {}


def test_masks_of_0_and_255_are_no_classes_with_a_void(inspect: Inspect) -> None:
    masks = [[[0, 255 * (row % 2)], [255, 0]] for row in range(4)]
    batch = {"pixel_values": images(4, 0, 2), "labels": masks}
    assert inspect(batch)["label_out_of_range"] == "error"
    assert inspect(batch, model={"num_labels": 2})["label_out_of_range"] == "error"
    masks[0][0][0] = 1
    assert "label_out_of_range" not in inspect(batch, model={"num_labels": 2})


def test_boxes_are_read_on_the_scale_of_their_detector(inspect: Inspect) -> None:
    def targets(name: str, boxes: list[list[float]], label: int = 3) -> list[dict[str, Any]]:
        return [{"boxes": boxes, name: [label] * len(boxes)}, {"boxes": [], name: []}]

    def found(rows: list[dict[str, Any]], column: str = "labels", model: Any = None) -> dict[str, str]:
        return inspect({"pixel_values": images(2, 0, 2), column: rows}, model=model)

    shares, corners = [[0.5, 0.5, 0.2, 0.4], [0.9, 0.5, 0.3, 0.1]], [[10.0, 20, 40, 30], [0.0, 5, 12, 9]]
    assert "box_out_of_range" not in found(targets("class_labels", shares))
    assert found(targets("class_labels", corners))["box_out_of_range"] == "error"
    assert "box_out_of_range" not in found(targets("labels", corners), "targets")
    assert found(targets("labels", [[10.0, 20, 30, 5]]), "targets")["box_out_of_range"] == "error"
    many = targets("class_labels", shares, 95)
    assert found(many, model={"num_labels": 91})["label_out_of_range"] == "error"
    assert found(many, model={"num_labels": 96}).keys() & {"label_out_of_range", "box_out_of_range"} == set()


def test_images_of_several_sizes_are_as_many_rows_as_there_are_images(tmp_path: Path) -> None:
    (tmp_path / "batch.json").write_text(json.dumps({"images": [[[0.1, 0.9]], [[0.4], [0.2]], [[0.7]]]}))
    assert inspect_batch(tmp_path / "batch.json").batch.rows == 3


def test_classes_written_as_floats_are_seen_where_the_model_has_several(inspect: Inspect) -> None:
    batch = {"input_ids": [[5, 6, 7 + row] for row in range(8)], "labels": [0.0, 1.0, 2.0, 0.0, 1.0, 2.0, 0.0, 1.0]}
    assert inspect(batch, model={"num_labels": 3})["schema_mismatch"] == "error"
    assert inspect(batch, model={"num_labels": 1}) == {}
    assert inspect(batch) == {}


def test_rows_of_few_possible_values_repeat_by_chance(inspect: Inspect) -> None:
    cells = [{"x": [float(row % 3), float(row % 4 // 2)], "y": row % 2} for row in range(40)]
    assert inspect(cells) == {}
    measured = [{"x": [random.Random(row % 30).random() for _ in range(4)], "y": row % 2} for row in range(40)]
    assert inspect(measured)["duplicate_rows"] == "warning"


def test_sparse_rows_repeat_by_chance(inspect: Inspect) -> None:
    rng = np.random.default_rng(0)
    sparse = (rng.random((128, 40)) < 0.1).astype(float)
    assert len(np.unique(sparse, axis=0)) < 128
    assert inspect({"x": sparse.tolist(), "y": [0, 1] * 64}) == {}
    dense = rng.normal(size=(64, 10))
    assert inspect({"x": [*dense.tolist()] * 2, "y": [0, 1] * 64}) == {"duplicate_rows": "warning"}


@pytest.mark.parametrize("name", ["x", "X", "features", "data"])
def test_features_on_any_other_scale_are_seen_under_the_usual_names(inspect: Inspect, name: str) -> None:
    rows = np.random.default_rng(0).normal(size=(64, 6))
    assert inspect({name: rows.tolist(), "y": [0, 1] * 32}) == {}
    for wrong in (rows + 100, rows * 500, rows * 1e-5):
        assert inspect({name: wrong.tolist(), "y": [0, 1] * 32}) == {"input_not_normalized": "warning"}


def test_windows_that_hold_their_own_target_are_seen(tmp_path: Path) -> None:
    series = np.random.default_rng(0).normal(size=300)
    windows = np.lib.stride_tricks.sliding_window_view(series[:-1], 24)
    for shift, expected in ((-1, ["X[:, 23, 0] and y hold the same values in all rows"]), (0, [])):
        targets = series[24 + shift : 24 + shift + len(windows)]
        np.savez(tmp_path / "windows.npz", X=windows[..., None], y=targets)
        assert [one.summary for one in inspect_batch(tmp_path / "windows.npz").findings] == expected
    np.savez(tmp_path / "windows.npz", X=windows[..., None], y=windows)
    assert inspect_batch(tmp_path / "windows.npz").findings == []


def test_windows_of_a_series_in_its_own_unit_are_remarked(inspect: Inspect) -> None:
    windows = np.random.default_rng(0).normal(20, 4, (64, 12, 2))
    targets = np.linspace(0, 1, 64).tolist()
    assert inspect({"X": windows.tolist(), "y": targets}) == {"input_not_normalized": "info"}
    assert inspect({"X": (windows * 40).tolist(), "y": targets}) == {"input_not_normalized": "warning"}


def test_images_left_as_bytes_among_scaled_ones_are_named(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 3)).astype(np.float32)
    mixed, dark = pixels / 255, pixels.copy()
    mixed[[3, 17]] *= 255
    dark[5] = pixels[5] // 64
    found = []
    for name, held in (("mixed", mixed), ("dark", dark), ("scaled", pixels / 255)):
        np.savez(tmp_path / f"{name}.npz", images=held, labels=np.arange(40) % 4)
        found += [(one.summary, one.rows) for one in inspect_batch(tmp_path / f"{name}.npz").findings]
    assert found[0] == ("images reaches 255 in 2 of 40 images, and 1 in the others", [3, 17])
    assert not any("in the others" in summary for summary, _ in found[1:])


def test_images_stored_as_bytes_are_only_remarked(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (16, 8, 8, 3))
    found = []
    for kind in ("uint8", "float32"):
        np.savez(tmp_path / f"{kind}.npz", images=pixels.astype(kind), labels=np.arange(16) % 4)
        found.append({one.check: one.severity for one in inspect_batch(tmp_path / f"{kind}.npz").findings})
    assert found == [{"input_not_normalized": "info"}, {"input_not_normalized": "warning"}]


@pytest.mark.parametrize("opened", ["", "\n", "<think>\n", "<think>\n\n</think>\n\n"])
def test_prompts_that_open_an_answer_or_a_thought_lack_no_end(inspect: Inspect, opened: str) -> None:
    made = Maker("chatml")
    asked = [[{"role": "user", "content": word}] for word in ("Why?", "Where?", "Who was it?")]
    texts = [made.tokenizer.render(one, add_generation_prompt=True) + opened for one in asked]
    rows = [{"input_ids": made.tokenizer.encode(text, special=False)} for text in texts]
    assert inspect(rows, made.tokenizer) == {}


def test_colours_that_stand_last_do_not_fit_a_model_of_transformers(inspect: Inspect) -> None:
    rng = np.random.default_rng(3)
    last, first = ({"pixel_values": rng.normal(size=shape).tolist()} for shape in ((4, 32, 32, 3), (4, 3, 32, 32)))
    assert inspect(last, model={"model_type": "vit", "num_labels": 10}) == {"schema_mismatch": "error"}
    assert inspect(first, model={"model_type": "vit", "num_labels": 10}) == {}
    assert inspect(last) == {}


def test_a_target_in_another_scale_within_its_window_is_seen(tmp_path: Path) -> None:
    series = 50 + 9 * np.random.default_rng(0).normal(size=300)
    windows = np.lib.stride_tricks.sliding_window_view(series[:-1], 24)
    ahead = (np.lib.stride_tricks.sliding_window_view(series[1:], 24) - 50) / 9
    steps = np.arange(299.0)
    ramps = np.lib.stride_tricks.sliding_window_view(steps[:-1], 24)[: len(windows)]
    scaled = np.stack([(windows - 50) / 9, ahead], axis=2).astype(np.float32)
    for inputs, targets, expected in (
        (scaled, series[24:], ["X[:, 23, 1] is y in another scale"]),
        (scaled[..., :1], series[24:], []),
        (ramps, steps[24 : 24 + len(ramps)], []),
    ):
        np.savez(tmp_path / "windows.npz", X=inputs, y=targets[: len(inputs)])
        found = inspect_batch(tmp_path / "windows.npz").findings
        assert [finding.summary for finding in found if finding.check == "equal_columns"] == expected
