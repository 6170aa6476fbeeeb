"""The server through an in-memory client: what tools and resources answer, and each trap of the wire."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from mcp import Client

from mldebug_mcp.server import make_server

pytestmark = pytest.mark.anyio


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with Client(make_server(), raise_exceptions=True) as connected:
        yield connected


async def structured(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    content: dict[str, Any] = result.structured_content
    return content


async def refused(client: Client, tool: str, **arguments: object) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    text = result.content[0].text  # type: ignore[union-attr]
    assert "\n" not in text
    return text


async def test_a_diagnosis_over_the_wire_leads_with_what_the_library_says(client: Client, examples: Path) -> None:
    answer = await structured(client, "diagnose_run", path=str(examples / "overfit"))
    assert answer["hypotheses"][0]["cause"] == "overfitting"
    assert [finding["symptom"] for finding in answer["findings"]] == ["eval_gap_grows"]


@pytest.mark.parametrize("detail", ["concise", "full"])
async def test_probabilities_sum_to_one_in_both_forms(client: Client, examples: Path, detail: str) -> None:
    answer = await structured(client, "diagnose_run", path=str(examples / "loss_spike"), detail=detail)
    assert sum(one["probability"] for one in answer["hypotheses"]) == pytest.approx(1)
    assert {"healthy", "unknown"} <= {one["cause"] for one in answer["hypotheses"]}


async def test_text_and_structured_content_say_the_same(client: Client, examples: Path) -> None:
    result = await client.call_tool("diagnose_run", {"path": str(examples / "divergence")})
    assert json.loads(result.content[0].text) == result.structured_content  # type: ignore[union-attr]


async def test_a_concise_answer_stays_under_ten_thousand_characters(client: Client, examples: Path) -> None:
    for run in ("loss_spike", "divergence", "nan_loss", "overfit", "healthy"):
        answer = await structured(client, "diagnose_run", path=str(examples / run))
        assert len(json.dumps(answer)) < 10_000


async def test_a_nan_reaches_the_client_and_fits_the_schema(client: Client, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"step": 1, "loss": 2.0}\n{"step": 2, "loss": NaN}\n{"step": 3, "loss": Infinity}\n')
    answer = await structured(client, "diagnose_run", path=str(log), detail="full")
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    schema = tools["diagnose_run"].output_schema
    assert schema is not None
    jsonschema.validate(answer, schema)
    assert "loss_nonfinite" in [finding["symptom"] for finding in answer["findings"] if finding["state"] == "present"]


async def test_a_lone_surrogate_or_an_escape_in_the_log_does_not_reach_the_wire(client: Client, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(
        "".join(json.dumps({"step": step, "loss": 1.0, "\ud800\u001b[31mx\u202e": 1.0}) + "\n" for step in range(5))
    )
    answer = await structured(client, "diagnose_run", path=str(log))
    assert "�x" in answer["run"]["metrics"]


async def test_a_path_that_is_no_text_is_refused_in_one_line(client: Client) -> None:
    assert "no such file" in await refused(client, "diagnose_run", path="/nowhere/\udcff")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"pth": "x"}, "'pth'"),
        ({"path": "x", "detial": "full"}, "it takes: path, config, run, reference, names, script, detail"),
        ({"path": "x", "detail": "long"}, "'concise' or 'full'"),
        ({"path": 3}, "'path'"),
        ({}, "'path'"),
    ],
)
async def test_wrong_arguments_are_refused_with_what_is_allowed(
    client: Client, arguments: dict[str, Any], told: str
) -> None:
    said = await refused(client, "diagnose_run", **arguments)
    assert told in said
    assert "pydantic" not in said


async def test_an_unusable_log_is_an_answer_for_the_model_and_the_server_lives_on(
    client: Client, tmp_path: Path, examples: Path
) -> None:
    assert "no training log found" in await refused(client, "diagnose_run", path=str(tmp_path))
    answer = await structured(client, "diagnose_run", path=str(examples / "healthy"))
    assert answer["hypotheses"][0]["cause"] == "healthy"


async def test_descriptions_are_dedented_and_use_the_words_of_users(client: Client) -> None:
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    for tool in tools.values():
        assert tool.description
        assert "\n    " not in tool.description
        assert len(tool.description) < 4096
        assert tool.output_schema is not None
    for word in ("loss spike", "NaN", "not learning", "plateau", "overfit"):
        assert word in (tools["diagnose_run"].description or "")


async def test_only_the_tool_that_runs_code_of_the_users_is_not_called_read_only(client: Client) -> None:
    hints = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}
    assert [name for name, hint in hints.items() if hint and hint.open_world_hint] == ["probe_overfit"]
    assert [name for name, hint in hints.items() if hint and not hint.read_only_hint] == ["probe_overfit"]
    # Of a tool that only reads, the protocol asks no more: these hints mean something for the others alone.
    assert [name for name, hint in hints.items() if hint and hint.destructive_hint] == ["probe_overfit"]


async def test_search_answers_with_verbatim_cited_quotes(client: Client) -> None:
    answer = await structured(client, "search_folklore", query="overfit a single batch first", limit=3)
    assert len(answer["quotes"]) == 3
    assert all(quote["text"] and quote["url"].startswith("http") for quote in answer["quotes"])


async def test_explain_answers_for_every_kind_of_id(client: Client) -> None:
    for name, kind in (("loss_spike", "symptom"), ("lr_too_high", "cause"), ("karpathy_recipe", "source")):
        assert (await structured(client, "explain", id=name))["kind"] == kind


async def test_each_entry_can_be_read_as_a_resource(client: Client) -> None:
    listed = {str(one.uri) for one in (await client.list_resources()).resources}
    assert {"mldebug://causes", "mldebug://symptoms", "mldebug://quotes", "mldebug://sources"} <= listed
    for uri in (
        *listed,
        "mldebug://cause/bad_batch",
        "mldebug://symptom/loss_zero",
        "mldebug://source/karpathy_recipe",
    ):
        assert (await client.read_resource(uri)).contents[0].text  # type: ignore[union-attr]


async def test_the_prompt_names_the_run(client: Client) -> None:
    prompt = await client.get_prompt("debug_training_run", {"path": "runs/7"})
    assert "runs/7" in prompt.messages[0].content.text  # type: ignore[union-attr]


def test_the_library_leaves_the_root_logger_alone() -> None:
    before = list(logging.getLogger().handlers)
    import mldebug_mcp.server  # noqa: F401

    assert logging.getLogger().handlers == before


async def test_the_memory_of_a_model_is_estimated_over_the_wire(client: Client, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(
        '{"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257, "n_positions": 1024}'
    )

    whole = await structured(client, "estimate_memory", config=str(config), length=1024)
    halved = await structured(client, "estimate_memory", config=str(config), length=1024, optimizer="lion")

    assert whole["parameters"] == 124_439_808
    assert whole["total_bytes"] - halved["total_bytes"] == 4 * whole["parameters"]
    assert "adamw_8bit" in await refused(client, "estimate_memory", config=str(config), optimizer="adam")
