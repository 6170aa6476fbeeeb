"""The purpose that is inferred, with what suggests it, and what is said of templates and pairs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.batch.kit import Maker, tokenizer_of

from mldebug_mcp.capture import save_batch
from mldebug_mcp.judge.batch import inspect_batch
from mldebug_mcp.models.batch import BatchInspection


def written(path: Path, rows: list[object], family: str | None = None) -> BatchInspection:
    file = path / "rows.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return inspect_batch(file, None if family is None else tokenizer_of(family))


def chat(answer: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": "What then?"}, {"role": "assistant", "content": answer}]


def test_an_inferred_purpose_is_stated_with_its_evidence(tmp_path: Path) -> None:
    made = Maker("chatml")
    save_batch(made.batch(), tmp_path / "batch.json")

    batch = inspect_batch(tmp_path / "batch.json").batch
    assert batch.purpose == "sft"
    assert "of its tokens are masked" in batch.purpose_because
    assert inspect_batch(tmp_path / "batch.json", purpose="sft").batch.purpose_because == ""


@pytest.mark.parametrize(("family", "has_marks"), [("chatml", True), ("llama3", False)])
def test_a_template_without_generation_marks_is_named(family: str, has_marks: bool, tmp_path: Path) -> None:
    notes = " ".join(written(tmp_path, [{"messages": chat("Seven.")}, {"messages": chat("Eleven.")}], family).notes)

    assert ("this chat template has no {% generation %} marks" in notes) is not has_marks


@pytest.mark.parametrize("family", [None, "llama3"])
def test_an_empty_answer_of_a_pair_is_named_with_its_side(family: str | None, tmp_path: Path) -> None:
    rows = [{"chosen": chat(answer), "rejected": chat("No.")} for answer in ("Yes.", "", "It is.")]

    finding = next(one for one in written(tmp_path, list(rows), family).findings if one.check == "empty_row")

    assert (finding.rows, finding.summary) == ([1], "the chosen answer is empty, in row 1")


def test_a_collated_pair_without_a_completion_stays_a_pair(tmp_path: Path) -> None:
    from trl.trainer.dpo_trainer import DataCollatorForPreference

    made, rows = Maker("chatml"), []
    for number in range(4):
        ids = made.row(number)
        prompt = sum(label == -100 for label in ids["labels"])
        said = ids["input_ids"][prompt:]
        rows.append({"prompt_ids": ids["input_ids"][:prompt], "chosen_ids": said, "rejected_ids": said[:-2]})
    batch = DataCollatorForPreference(pad_token_id=made.hf.pad_token_id)(rows)
    batch["completion_mask"][2] = 0
    save_batch(batch, tmp_path / "batch.json")

    answer = inspect_batch(tmp_path / "batch.json", made.tokenizer)

    assert answer.batch.purpose == "dpo"
    finding = next(one for one in answer.findings if one.check == "row_labels_masked")
    assert "the chosen answer of row 2 is empty" in finding.summary


def test_labels_that_are_one_number_everywhere_are_no_classes(tmp_path: Path) -> None:
    made = Maker("chatml")
    batch = made.batch()
    batch["labels"] = [[5 if label >= 0 else label for label in row] for row in batch["labels"]]
    save_batch(batch, tmp_path / "batch.json")

    assert "labels_mismatch" in {one.check for one in inspect_batch(tmp_path / "batch.json", made.tokenizer).findings}
