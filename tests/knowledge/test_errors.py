"""Known error messages: each pattern finds its own example and nothing that a healthy run prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mldebug_mcp.diagnose.explain_error import explain_error
from mldebug_mcp.errors import CatalogueError
from mldebug_mcp.knowledge import errors as module
from mldebug_mcp.knowledge.errors import KnownError, Role, is_fragmented, known_errors, match

WITH_MESSAGE = [row for row in known_errors().values() if row.pattern]
EXAMPLES = Path(__file__).parents[2] / "examples"
# A quantifier without a bound, or one over a group: what makes a pattern slow on hostile text.
UNBOUNDED = re.compile(r"(?<!\\d)(?<!\\)[*+]|\)\{\d*,?\d*\}")


@pytest.mark.parametrize("row", WITH_MESSAGE, ids=lambda row: row.id)
def test_a_message_is_matched_by_its_own_row_first(row: KnownError) -> None:
    assert match(row.message, warnings=True)[0].id == row.id


@pytest.mark.parametrize("row", WITH_MESSAGE, ids=lambda row: row.id)
def test_a_message_is_found_in_the_middle_of_a_log(row: KnownError) -> None:
    log = [f"step {step} loss 2.{step}" for step in range(300)]
    log.insert(170, row.message)
    answer = explain_error("\n".join(log))
    assert answer.error is not None
    assert answer.error.line == 171
    assert answer.matches[0].id == row.id


@pytest.mark.parametrize("row", WITH_MESSAGE, ids=lambda row: row.id)
def test_a_pattern_has_no_unbounded_repetition(row: KnownError) -> None:
    outside_classes = re.sub(r"\[[^\]]*\]", "C", row.pattern)
    assert UNBOUNDED.search(outside_classes) is None


def healthy_lines() -> Iterator[str]:
    for path in sorted(EXAMPLES.glob("*/*")):
        if path.suffix in (".log", ".txt", ".jsonl", ".json", ".csv"):
            yield from path.read_text(encoding="utf-8").splitlines()


def test_no_line_of_the_examples_looks_like_an_error() -> None:
    seen = {row.id for line in set(healthy_lines()) for row in match(line)}
    assert seen == set()


def test_there_are_the_frameworks_that_users_meet() -> None:
    words = " ".join(row.message.lower() for row in WITH_MESSAGE)
    frameworks = (
        "cuda nccl deepspeed bitsandbytes tokenizer datasets safetensors dataloader dynamo vllm flashattention "
        "lightning keras jax fsdp peft pyarrow triton"
    )
    # FSDP and PEFT errors name no framework: their rows do.
    ids = " ".join(known_errors())
    assert [name for name in frameworks.split() if name not in words and name not in ids] == []
    assert len(known_errors()) >= 118


def test_warnings_count_only_when_they_are_asked_for() -> None:
    text = "`use_cache=True` is incompatible with gradient checkpointing. Setting `use_cache=False`..."
    assert match(text) == []
    assert [row.role for row in match(text, warnings=True)] == [Role.WARNING]


@pytest.mark.parametrize(
    ("text", "fragmented"),
    [
        ("Tried to allocate 304.00 MiB (GPU 0; 8.00 GiB total; 142.76 MiB already allocated; 6.32 GiB free;", True),
        ("Tried to allocate 2.00 GiB. GPU 0 has 79.15 GiB of which 1.10 GiB is free. ", False),
        ("Tried to allocate 2.00 GiB. 1.00 GiB is free. 9.00 GiB is reserved by PyTorch but unallocated", True),
        ("Tried to allocate 1.00 GiB. 7.43 GiB is free. 7.37 GiB allowed; 7.01 GiB is allocated by PyTorch", False),
        ("CUDA out of memory.", False),
    ],
)
def test_fragmentation_is_read_from_the_numbers_of_the_message(text: str, fragmented: bool) -> None:
    assert is_fragmented(text) is fragmented


def test_a_message_wrapped_over_lines_and_coloured_is_matched() -> None:
    assert match("\x1b[31mCUDA out\x1b[0m of\n   memory.\nTried to allocate 2 GiB")[0].id == "cuda_oom"


@pytest.mark.parametrize("text", ["", "\x00", "a" * 100_000, "Process " * 20_000, "Shapes (" * 20_000, "\ud800"])
def test_hostile_text_matches_nothing(text: str) -> None:
    assert match(text) == []


@pytest.mark.parametrize(
    ("line", "problem"),
    [("not json", "Expecting value"), ('{"id": "x"}', "validation error"), ("", "Expecting value")],
)
def test_a_row_that_breaks_the_grammar_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, problem: str
) -> None:
    (tmp_path / "errors.jsonl").write_text(line + "\n", encoding="utf-8")
    monkeypatch.setattr(module, "__file__", str(tmp_path / "errors.py"))
    known_errors.cache_clear()
    try:
        with pytest.raises(CatalogueError, match=rf"errors\.jsonl:1: .*{problem}"):
            known_errors()
    finally:
        known_errors.cache_clear()
