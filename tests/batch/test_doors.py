"""The same inspection from the command line, from Python and through the MCP server; what a person sees."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from rich.console import Console
from tests.batch.kit import Maker

from mldebug_mcp.capture import save_batch
from mldebug_mcp.checks import symptoms
from mldebug_mcp.cli import main
from mldebug_mcp.core.limits import listening
from mldebug_mcp.judge import inspect_batch
from mldebug_mcp.judge.next_steps import possible_call
from mldebug_mcp.judge.search import explain
from mldebug_mcp.report.concise import concise_inspection
from mldebug_mcp.report.data_terminal import TOKEN_STYLES, coloured, print_inspection
from mldebug_mcp.server import make_server

VOCABULARY = [
    "all_labels_masked", "row_labels_masked", "prompt_not_masked", "padding_not_masked", "eos_masked", "missing_bos",
    "double_bos", "missing_eos", "pad_token_unset", "pad_is_eos", "padding_side_wrong", "attention_mask_mismatch",
    "attention_mask_inverted", "token_id_out_of_range", "vocab_size_mismatch", "labels_shifted", "labels_mismatch",
    "truncated_completion", "no_completion_left", "image_tokens_truncated", "packing_without_position_reset",
    "empty_row", "duplicate_rows", "length_outlier", "chat_template_mismatch", "special_token_split",
    "chosen_equals_rejected", "prompt_missing", "schema_mismatch", "nonfinite_values", "input_not_normalized",
    "label_out_of_range", "class_imbalance", "wrong_role_in_loss", "length_mismatch", "position_ids_wrong",
]  # fmt: skip


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    """A batch whose prompts are trained on, with its tokenizer beside it."""
    made = Maker("chatml")
    rows = [{"input_ids": row["input_ids"], "labels": row["input_ids"]} for row in made.rows()]
    return save_batch(made.pad(rows), tmp_path / "batch.safetensors", tokenizer=made.hf)


def test_every_check_of_the_vocabulary_is_there_and_documented() -> None:
    assert set(VOCABULARY) <= symptoms("batch").keys()
    for one in symptoms("batch").values():
        assert "Not this when:" in one.doc, one.id
        assert all((one.outcome.why, one.outcome.fix, one.outcome.quotes)), one.id
        entry = explain(one.id)
        assert entry.kind == "check"
        assert len(entry.citations) == len(one.outcome.quotes), one.id


def test_command_line_and_library_give_the_same_answer(faulty: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tokenizer = f"{faulty}.tokenizer"
    assert main(["batch", str(faulty), "--tokenizer", tokenizer, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == json.loads(inspect_batch(faulty, tokenizer).to_json())
    assert told["batch"]["rows"] == 4
    assert told["batch"]["trained_tokens"] == told["batch"]["tokens"]
    found = {one["check"]: one for one in told["findings"]}
    assert found["prompt_not_masked"]["rows"] == [0, 1, 2, 3]
    assert found["prompt_not_masked"]["fix"]
    assert found["prompt_not_masked"]["citations"]


@pytest.mark.parametrize("family", ["chatml", "llama3", "mistral", "gemma", "own"])
def test_the_rendered_template_tells_whose_words_stand_where(family: str, tmp_path: Path) -> None:
    made = Maker(family)
    template = inspect_batch(save_batch(made.batch(), tmp_path / "batch.json"), made.tokenizer).template
    assert template is not None
    said = [(span.role, template.text[span.start : span.stop].strip()) for span in template.spans]
    assert said == [("user", "Qone"), ("assistant", "Aone"), ("user", "Qtwo"), ("assistant", "Atwo")]


def test_the_exit_code_tells_with_check(faulty: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["batch", str(faulty), "--tokenizer", f"{faulty}.tokenizer", "--check"]) == 1
    healthy = save_batch(Maker("chatml").batch(), tmp_path / "healthy.json")
    assert main(["batch", str(healthy), "--check"]) == 0
    assert main(["batch", str(tmp_path / "nowhere.json")]) == 2
    assert "no such file or folder" in capsys.readouterr().err


def test_the_terminal_shows_rows_findings_and_numbers(faulty: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["batch", str(faulty), "--tokenizer", f"{faulty}.tokenizer"])
    shown = capsys.readouterr().out
    for part in ("prompt_not_masked", "⟦<|im_start|>user", "‹pad×", "trained on", "The chat template", "fix:"):
        assert part in shown


def test_a_colour_terminal_tells_trained_masked_special_and_padding_apart(faulty: Path) -> None:
    row = inspect_batch(faulty, f"{faulty}.tokenizer").rows[0]
    text = coloured(row)
    styles = {str(span.style): text.plain[span.start : span.end] for span in text.spans}
    assert {TOKEN_STYLES["trained"], TOKEN_STYLES["special trained"], TOKEN_STYLES["padding"]} <= styles.keys()
    assert styles[TOKEN_STYLES["padding"]] == f"‹pad×{row.padding}›"
    assert coloured(row, plain=True).plain == row.text


@pytest.mark.parametrize("no_color", [True, False])
def test_without_colours_marks_tell_what_is_trained_on(no_color: bool, tmp_path: Path) -> None:
    rows = [{"prompt": f"Translate {number}:", "completion": f"Wort {number}"} for number in range(9)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    console = Console(file=StringIO(), force_terminal=True, no_color=no_color, width=100)
    print_inspection(console, inspect_batch(tmp_path / "rows.jsonl"))
    assert isinstance(console.file, StringIO)
    assert ("⟦Wort 0" in console.file.getvalue()) is no_color


def test_the_page_stands_alone_and_escapes_the_batch(tmp_path: Path) -> None:
    made = Maker("chatml")
    ids = made.tokenizer.encode("<script>alert(1)</script>")
    batch = save_batch({"input_ids": [ids], "labels": [ids]}, tmp_path / "batch.json", tokenizer=made.hf)
    page = tmp_path / "page.html"
    assert main(["batch", str(batch), "--tokenizer", f"{batch}.tokenizer", "--html", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "http" not in text.split("</style>")[1].replace("https://", "http").split("<blockquote")[0]
    assert 'class="trained"' in text


def test_the_concise_answer_is_bounded(tmp_path: Path) -> None:
    made = Maker("llama3")
    rows = [made.row(number, 12) for number in range(24)]
    for row in rows:
        row["labels"] = [*row["input_ids"][1:], 7]
    answer = inspect_batch(save_batch(rows, tmp_path / "rows.json"), made.tokenizer)
    assert answer.findings
    assert len(concise_inspection(answer).to_json()) < 12_000


def test_saved_batches_read_back_alike(tmp_path: Path) -> None:
    made = Maker("chatml")
    answers = [
        inspect_batch(save_batch(made.batch(), tmp_path / f"batch{suffix}"), made.tokenizer)
        for suffix in (".json", ".npz", ".safetensors")
    ]
    first = answers[0].batch.model_dump(exclude={"path", "formats", "columns"})
    assert all(one.batch.model_dump(exclude={"path", "formats", "columns"}) == first for one in answers)
    with pytest.raises(ValueError, match=r"\.json, \.pt"):
        save_batch(made.batch(), tmp_path / "batch.csv")


@pytest.mark.parametrize("family", ["chatml", "llama3", "mistral", "gemma", "own"])
def test_raw_conversations_are_rendered_and_healthy(family: str, tmp_path: Path) -> None:
    from tests.batch.kit import talk

    made = Maker(family)
    sharegpt = {"user": "human", "assistant": "gpt"}
    forms: dict[str, list[dict[str, Any]]] = {
        "messages": [{"messages": talk(2, number)} for number in range(4)],
        "sharegpt": [
            {"conversations": [{"from": sharegpt[one["role"]], "value": one["content"]} for one in talk(2, number)]}
            for number in range(4)
        ],
        "pairs": [
            {"prompt": talk(1, number)[:1], "chosen": talk(1, number)[1:], "rejected": talk(1, number + 1)[1:]}
            for number in range(4)
        ],
        "whole": [
            {"chosen": talk(1, number), "rejected": [talk(1, number)[0], talk(1, number + 1)[1]]} for number in range(4)
        ],
        "completions": [
            {"prompt": talk(1, number)[0]["content"] + " ", "completion": talk(1, number)[1]["content"]}
            for number in range(4)
        ],
        "instructions": [
            {"instruction": talk(1, number)[0]["content"], "input": "", "output": talk(1, number)[1]["content"]}
            for number in range(4)
        ],
        "texts": [{"text": talk(1, number)[1]["content"]} for number in range(4)],
    }
    for name, rows in forms.items():
        path = tmp_path / f"{name}.jsonl"
        path.write_text("\n".join(json.dumps(row) for row in rows))
        answer = inspect_batch(path, made.tokenizer)
        graver = {one.check: one.severity for one in answer.findings if one.severity != "info"}
        assert graver == {}, name
        assert answer.notes


def test_text_that_holds_the_first_token_gets_a_second_one(tmp_path: Path) -> None:
    made = Maker("llama3")
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(json.dumps({"text": f"<|begin_of_text|>Row {row}."}) for row in range(4)))
    assert "double_bos" in {one.check for one in inspect_batch(path, made.tokenizer).findings}


@pytest.mark.anyio
async def test_the_mcp_tool_gives_the_concise_answer(faulty: Path) -> None:
    arguments = {"path": str(faulty), "tokenizer": f"{faulty}.tokenizer", "purpose": "sft"}
    async with Client(make_server()) as client:
        done = await client.call_tool("inspect_batch", arguments)
        broken = await client.call_tool("inspect_batch", {"path": "nowhere.json"})
    expected = json.loads(concise_inspection(inspect_batch(faulty, f"{faulty}.tokenizer", purpose="sft")).to_json())
    assert done.structured_content is not None
    assert done.structured_content | {"notes": expected["notes"]} == expected
    assert done.structured_content["notes"][-1].startswith("shortened; everything: ")
    assert broken.is_error
    assert "no such file or folder" in broken.content[0].text  # type: ignore[union-attr]


def test_an_inspection_tells_how_far_it_is(faulty: Path) -> None:
    told: list[str] = []
    with listening(told.append):
        inspect_batch(faulty)
    assert "4 rows, 96 tokens" in told


def test_a_diagnosis_suggests_the_batch_beside_the_log(faulty: Path) -> None:
    log = faulty.parent / "log.jsonl"
    log.write_text("")
    call = possible_call('inspect_batch(path="BATCH", purpose="sft")', str(log), "preference")
    assert call == f'inspect_batch(path="{faulty}", tokenizer="{faulty}.tokenizer", purpose="dpo")'
    elsewhere = possible_call('inspect_batch(path="BATCH", purpose="sft")', "/nowhere/log.jsonl")
    assert elsewhere == 'inspect_batch(path="BATCH", purpose="sft")'


@pytest.mark.anyio
async def test_the_tool_finds_evaluation_rows_in_the_training_data(tmp_path: Path) -> None:
    rows = [{"input_ids": [5, 6, 7, 8 + row], "labels": [-100, -100, 7, 8 + row]} for row in range(6)]
    for name, part in (("train.jsonl", rows), ("eval.jsonl", rows[2:4])):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in part))
    arguments = {"path": str(tmp_path / "train.jsonl"), "against": str(tmp_path / "eval.jsonl"), "purpose": "sft"}
    async with Client(make_server(), raise_exceptions=True) as client:
        result = await client.call_tool("inspect_batch", arguments)
    found = {one["check"]: one for one in result.structured_content["findings"]}
    assert found["split_leakage"]["rows"] == [2, 3]


def test_the_home_folder_in_the_path_of_a_model_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "config.json").write_text('{"vocab_size": 50}')
    batch = save_batch({"input_ids": [[1, 2, 90]], "labels": [[1, 2, 90]]}, tmp_path / "batch.json")
    found = inspect_batch(batch, model="~/config.json").findings
    assert "token_id_out_of_range" in [one.check for one in found]
