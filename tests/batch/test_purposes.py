"""The purpose that is inferred, with what suggests it, and what is said of templates and pairs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.batch.kit import Maker, tokenizer_of

from mldebug_mcp.capture import save_batch
from mldebug_mcp.judge.batch import inspect_batch
from mldebug_mcp.models.data import BatchInspection


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


def asked(number: int) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"Compute {number} times {number + 1}"}]


def product(number: int) -> str:
    return str(number * (number + 1))


PROMPTS: dict[str, list[object]] = {
    "trl": [{"prompt": asked(number), "answer": product(number)} for number in range(40)],
    "plain": [{"prompt": f"What is {number} times two?", "ground_truth": str(2 * number)} for number in range(40)],
    "verl": [
        {
            "data_source": "sums", "prompt": asked(number), "ability": "math", "extra_info": {"index": number},
            "reward_model": {"style": "rule", "ground_truth": product(number)},
        }
        for number in range(40)
    ],
    "open-instruct": [
        {"messages": asked(number), "ground_truth": product(number), "dataset": "sums"} for number in range(40)
    ],
    "questions": [{"question": f"What is {number} by two?", "ground_truth": str(2 * number)} for number in range(40)],
}  # fmt: skip


@pytest.mark.parametrize("family", [None, "chatml"])
@pytest.mark.parametrize("form", PROMPTS)
def test_prompts_that_wait_for_an_answer_are_for_generation(form: str, family: str | None, tmp_path: Path) -> None:
    inspection = written(tmp_path, PROMPTS[form], family)

    assert inspection.batch.purpose == "generation"
    assert not inspection.findings
    assert "as prompts for generation; other columns:" in " ".join(inspection.notes)


def test_conversations_that_nothing_is_compared_with_lack_their_answers(tmp_path: Path) -> None:
    inspection = written(tmp_path, [{"messages": asked(number)} for number in range(40)])

    assert "all_labels_masked" in {finding.check for finding in inspection.findings}


def marked(number: int, mark: object, name: str = "label") -> dict[str, object]:
    return {"prompt": f"What is {number} times two?", "completion": f" It is {2 * number}.", name: mark}


@pytest.mark.parametrize("family", [None, "chatml"])
@pytest.mark.parametrize(
    ("name", "desired", "undesired"),
    [("label", True, False), ("label", 1, 0), ("label", "desirable", "undesirable"), ("kto_tag", True, False)],
)
def test_marks_of_completions_are_named_and_counted(
    name: str, desired: object, undesired: object, family: str | None, tmp_path: Path
) -> None:
    rows: list[object] = [marked(number, undesired if number % 4 else desired, name) for number in range(40)]
    inspection = written(tmp_path, rows, family)

    notes = " ".join(inspection.notes)
    assert inspection.batch.purpose == "kto"
    assert not [finding for finding in inspection.findings if finding.severity != "info"]
    assert f"{name} marks which completions are desired" in notes
    assert "10 completions are marked as desired and 30 as not" in notes
    assert "desirable_weight from 3.00 to 4.00" in notes


def test_marks_in_a_ratio_that_no_weight_has_to_mend_ask_for_none(tmp_path: Path) -> None:
    notes = " ".join(written(tmp_path, [marked(number, number % 2 == 0) for number in range(40)]).notes)

    assert "20 completions are marked as desired and 20 as not" in notes
    assert "_weight" not in notes


@pytest.mark.parametrize("mark", [True, False])
def test_completions_that_all_have_one_mark_are_a_warning(mark: bool, tmp_path: Path) -> None:
    inspection = written(tmp_path, [marked(number, mark) for number in range(40)])

    finding = next(one for one in inspection.findings if one.check == "class_imbalance")
    assert finding.severity == "warning"
    assert finding.summary == f"all 40 completions are marked as {'desired' if mark else 'undesired'}"


def test_marks_of_whole_conversations_are_read_where_they_are_sure(tmp_path: Path) -> None:
    tagged = written(tmp_path, [{"messages": chat(f"{number}."), "kto_tag": number > 9} for number in range(20)])
    classed = written(tmp_path, [{"messages": chat(f"{number}."), "label": number % 2} for number in range(20)])

    assert tagged.batch.purpose == "kto"
    assert classed.batch.purpose == "sft"
    assert "label rates the rows" in " ".join(classed.notes)


def test_a_reward_next_to_an_answer_is_named(tmp_path: Path) -> None:
    rows: list[object] = [
        {"prompt": f"What is {number}?", "response": f"It is {number}.", "reward": number / 7} for number in range(20)
    ]

    assert "reward rates the rows, and training on answers takes all of them alike" in " ".join(
        written(tmp_path, rows).notes
    )


def stepwise(number: int, labels: list[bool]) -> dict[str, object]:
    return {"prompt": f"Solve {number}.", "completions": [f"First {number}.", "Then that.", "So."], "labels": labels}


@pytest.mark.parametrize("family", [None, "chatml"])
def test_marks_of_steps_are_counted_and_each_step_has_to_have_one(family: str | None, tmp_path: Path) -> None:
    whole = [stepwise(number, [True, number % 2 == 0, False]) for number in range(20)]
    inspection = written(tmp_path, list(whole), family)
    assert inspection.batch.purpose == "classification"
    assert not [finding for finding in inspection.findings if finding.severity != "info"]
    assert "30 of 60 steps are labelled right" in inspection.notes

    lacking = written(tmp_path, [*whole, stepwise(20, [True, False])], family)
    finding = next(one for one in lacking.findings if one.check == "schema_mismatch")
    assert finding.rows == [20]


@pytest.mark.parametrize("labels", [["right"], [None], [{}], [0.5], [[1]], "wrong", 3])
def test_labels_of_steps_that_are_no_marks_are_left_alone(labels: object, tmp_path: Path) -> None:
    rows: list[object] = [{"prompt": "Solve it.", "completions": ["First."], "labels": labels} for _ in range(4)]

    assert written(tmp_path, rows).batch.rows == 4
