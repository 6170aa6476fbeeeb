"""The short form of every answer stays within 10,000 characters, a diagnosis within 6,000, whatever the input."""

from __future__ import annotations

import json
import math
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import CallToolResult

from mldebug_mcp.checks import symptoms
from mldebug_mcp.judge.search import explain
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.knowledge.errors import known_errors
from mldebug_mcp.models import (
    Call,
    Citation,
    CurvePoint,
    Diagnosis,
    Finding,
    Hypothesis,
    NextStep,
    ProbeResult,
    RankedCause,
    RunSummary,
    State,
)
from mldebug_mcp.report.concise import concise_explanation, concise_probe
from mldebug_mcp.report.diagnosis_concise import MAX_DIAGNOSIS_CHARACTERS as DIAGNOSIS
from mldebug_mcp.report.diagnosis_concise import concise
from mldebug_mcp.server.messages import MAX_CONCISE_CHARACTERS, reply
from tests.memory import scenarios

pytestmark = pytest.mark.anyio

LONG = "a long sentence, with “quotes”, 数字 and \N{GRINNING FACE}; " * 40


def size(result: CallToolResult) -> int:
    """Return the characters of the longer of both forms, in whichever way a client writes the structured one."""
    assert not result.is_error, result.content
    text: str = result.content[0].text  # type: ignore[union-attr]
    assert json.loads(text) == result.structured_content
    return max(len(text), len(json.dumps(result.structured_content)))


async def called(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert size(result) <= MAX_CONCISE_CHARACTERS
    return result.structured_content or {}


def citations(count: int) -> list[Citation]:
    return [
        Citation(id=f"c{i}", text=LONG, source="s", author=LONG, title=LONG, url="http://x/" + "y" * 3000)
        for i in range(count)
    ]


def hypotheses(count: int) -> list[Hypothesis]:
    steps = [
        NextStep(id=f"x.{i}", action=LONG, cost="hours", confirms=LONG, refutes=LONG, call=LONG) for i in range(20)
    ]
    shares = {"unknown": 1 / count, "healthy": 1 / count} | {f"cause_number_{i}": 1 / count for i in range(count - 2)}
    return [
        Hypothesis(cause=cause, probability=share, credence="almost certain", summary=LONG, because=[LONG] * 30,
                   against=[LONG] * 30, fix=LONG, next_steps=steps, citations=citations(9))
        for cause, share in shares.items()
    ]  # fmt: skip


async def test_a_run_with_five_hundred_metrics_and_endless_names(client: Client, tmp_path: Path) -> None:
    names = [f"{i}/" + "metric" * 30 for i in range(500)]
    log = tmp_path / ("n" * 200 + ".jsonl")
    noise = random.Random(0)
    with log.open("w") as file:
        for step in range(60):
            loss = math.nan if step > 50 else 2 + noise.random() + 30 * (step % 9 == 8)
            record = {"step": step, "loss": loss, "grad_norm": 50.0 * step, "eval_loss": 2 + step}
            file.write(json.dumps(record | {name: noise.random() for name in names}) + "\n")

    answer = await called(client, "diagnose_run", path=str(log))

    assert "loss_nonfinite" in [one["symptom"] for one in answer["findings"]]
    assert answer["notes"][-1].startswith("shortened; everything: ")


@pytest.mark.parametrize("count", [3, 66, 80])
def test_two_hundred_findings_and_as_many_causes_of_equal_probability(count: int) -> None:
    whole = Diagnosis(
        run=RunSummary(path="p" * 4000, formats=["jsonl"] * 50, records=1, steps=1, metrics=[LONG] * 2000),
        findings=[
            Finding(symptom=f"s{i}", state=State.PRESENT, summary=LONG, steps=[1.0] * 999, values={LONG: 1.0})
            for i in range(200)
        ],
        hypotheses=hypotheses(count),
        next_steps=[NextStep(action=LONG, cost="hours")] * 30,
        next_step=Call(tool="explain", arguments={"id": "loss_spike"}),
        notes=[LONG] * 100,
    )

    result = reply(whole, "concise", concise)

    assert DIAGNOSIS / 2 < size(result) <= DIAGNOSIS
    shown = Diagnosis.model_validate(result.structured_content)
    assert sum(one.probability for one in shown.hypotheses) == pytest.approx(1)
    assert {"healthy", "unknown"} <= {one.cause for one in shown.hypotheses}
    assert shown.findings[0].symptom == "s0"
    assert shown.notes[-1].startswith("shortened; everything: ")


async def test_every_state_of_every_symptom_and_no_finding_at_all(client: Client) -> None:
    for findings in ({}, dict.fromkeys(symptoms(), "present"), dict.fromkeys(symptoms(), "absent")):
        answer = await called(client, "update_diagnosis", findings=findings, outcomes={})
        assert sum(one["probability"] for one in answer["hypotheses"]) == pytest.approx(1)


async def test_a_log_that_says_next_to_nothing(client: Client, tmp_path: Path) -> None:
    for number, line in enumerate(['{"x": 1}', '{"step": 1, "loss": 2.0}', '{"loss": NaN}']):
        log = tmp_path / f"{number}.jsonl"
        log.write_text(line + "\n")
        await called(client, "diagnose_run", path=str(log))


async def test_a_batch_with_megabyte_rows_and_everything_wrong(client: Client, tmp_path: Path) -> None:
    batch, config = tmp_path / "batch.jsonl", tmp_path / "config.json"
    config.write_text('{"vocab_size": 1000, "max_position_embeddings": 512}')
    rows = [
        {"input_ids": [5] * 200_000, "labels": [-100] * 200_000, "attention_mask": [0] * 200_000},
        {"input_ids": [10**6] * 50, "labels": [7] * 50, "attention_mask": [1] * 49 + [0]},
        *({"input_ids": [1, 1, 2, 3], "labels": [1, 1, 2, 3], "attention_mask": [1, 1, 1, 1]} for _ in range(3000)),
        {"input_ids": [], "labels": [], "attention_mask": []},
    ]
    batch.write_text("".join(json.dumps(row) + "\n" for row in rows))

    answer = await called(client, "inspect_batch", path=str(batch), model=str(config), purpose="sft")

    assert len(answer["findings"]) >= 4


async def test_a_batch_that_fails_every_check_with_endless_texts(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mldebug_mcp.judge import batch as verb
    from mldebug_mcp.models.data import BatchFinding, BatchInspection, BatchSummary, Place, RowView, TemplateView

    whole = BatchInspection(
        batch=BatchSummary(path="p", formats=["jsonl"], purpose="sft", columns=[LONG] * 300),
        findings=[
            BatchFinding(
                check=name, severity="error", summary=LONG, why=LONG, fix=LONG, fixes=dict.fromkeys("abcdefg", LONG),
                rows=list(range(1000)), row_count=10**9, values=dict.fromkeys(map(str, range(100)), 1.5),
                places=[Place(row=i, start=0, stop=9, text=LONG) for i in range(9)], citations=citations(5),
            )
            for name in symptoms("batch")
        ],
        rows=[RowView(row=i, tokens=10**6, text=LONG * 100) for i in range(30)],
        template=TemplateView(text=LONG * 10),
        notes=[LONG] * 100,
    )  # fmt: skip
    monkeypatch.setattr(verb, "inspect_batch", lambda *_, **__: whole)

    answer = await called(client, "inspect_batch", path="anything")

    assert [one["check"] for one in answer["findings"]][:5] == list(symptoms("batch"))[:5]


async def test_a_snapshot_of_two_hundred_thousand_events(client: Client, tmp_path: Path) -> None:
    tree = scenarios.snapshot_of(scenarios.out_of_memory())
    trace = tree["device_traces"][0]
    endless = [{"filename": f"/{'deep/' * 300}{LONG}.py", "line": 7, "name": "f" * 5000}] * 60
    for event in trace[: len(trace) // 2]:
        event["frames"] = endless
    tree["device_traces"][0] = trace * (200_000 // len(trace) + 1)
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(tree))

    answer = await called(client, "check_memory", path=str(path))
    assert answer["snapshot"]["trace_events"] >= 200_000
    assert answer["findings"]
    await called(client, "check_memory", path=str(path), against=str(path))
    for site in answer["top_allocations"]:
        await called(client, "check_memory", path=str(path), focus=site["id"])


async def test_the_memory_of_a_model_whose_name_is_a_megabyte(client: Client, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    shape = {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257}
    config.write_text(json.dumps(shape | {"_name_or_path": "n" * 10**6, "architectures": ["x" * 10**6]}))
    assert (await called(client, "estimate_memory", config=str(config)))["total_bytes"] > 10**9


def test_a_probe_with_many_causes_and_an_endless_output() -> None:
    causes = hypotheses(40)
    whole = ProbeResult(
        verdict="cannot_learn",
        summary=LONG,
        causes=[RankedCause(cause=one.cause, probability=one.probability) for one in causes],
        findings=[Finding(symptom=f"probe_{i}", state=State.PRESENT, summary=LONG, steps=[1] * 99) for i in range(60)],
        hypotheses=causes,
        next_steps=[NextStep(action=LONG, cost="hours")] * 9,
        curve=[CurvePoint(step=i, loss=math.nan) for i in range(200)],
        output=LONG,
        notes=[LONG] * 50,
    )
    assert size(reply(whole, "concise", concise_probe)) <= MAX_CONCISE_CHARACTERS


@pytest.mark.parametrize("limit", [1, 20])
@pytest.mark.parametrize("query", ["loss", "why does my loss spike, diverge, go to NaN or not learn?", "x" * 100_000])
async def test_the_longest_search(client: Client, query: str, limit: int) -> None:
    await called(client, "search_folklore", query=query, limit=limit)


def test_every_entry_of_the_catalogue() -> None:
    known = catalogue()
    kinds = (known.causes, known.quotes, known.sources, known.menus, symptoms(), known_errors())
    entries = [explain(name) for kind in kinds for name in kind]
    whole = {one.id: size(reply(one, "full", concise_explanation)) for one in entries}
    assert max(whole.values()) > MAX_CONCISE_CHARACTERS, "no entry is long: this test tells nothing"
    for one in entries:
        assert size(reply(one, "concise", concise_explanation)) <= MAX_CONCISE_CHARACTERS


@pytest.mark.parametrize(
    ("characters", "line"),
    [
        (10**6, lambda i: f"[rank{i % 900}]: RuntimeError: something odd number {i} happened in {LONG[:100]}"),
        (10**6, lambda i: f'  File "/{"d/" * 40}{i}.py", line {i}, in f\nRuntimeError: CUDA out of memory. {i}'),
        (10**7, lambda _: "INFO nothing to see here " * 40),
        (10**6, lambda _: "a" * 10**5),
    ],
    ids=["ranks", "frames", "prose", "one letter"],
)
async def test_megabytes_of_error_text(client: Client, characters: int, line: Callable[[int], str]) -> None:
    lines: list[str] = []
    total = 0
    while total < characters:
        lines.append(line(len(lines)))
        total += len(lines[-1]) + 1
    answer = await called(client, "explain_error", text="\n".join(lines))
    assert answer["error"] is not None or answer["advice"]
