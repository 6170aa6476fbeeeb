"""What every answer has: the same in text and structure, a schema that it fits, and a call to make next."""

from __future__ import annotations

import json
import math
import pickle
import random
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from mcp import Client

from mldebug_mcp.judge import diagnose_run
from mldebug_mcp.report.diagnosis_concise import MAX_HEALTHY_CHARACTERS
from mldebug_mcp.server.messages import FULL_LIMIT, MAX_CONCISE_CHARACTERS
from mldebug_mcp.server.tools import TOOLS
from tests.memory import scenarios

pytestmark = pytest.mark.anyio

Calls = dict[str, list[dict[str, Any]]]

SHAPE = {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 500, "n_positions": 64}


@pytest.fixture
def calls(examples: Path, tmp_path: Path) -> Calls:
    """Calls of every tool but the probe, which needs torch: on what is wrong, on what is not, on what is not known."""
    bad, good = tmp_path / "bad.jsonl", tmp_path / "good.jsonl"
    bad.write_text("".join(f'{{"input_ids": [5, 6, {i}], "labels": [-100, -100, -100]}}\n' for i in range(9)))
    good.write_text("".join(f'{{"input_ids": [{i}, 6, 7], "labels": [{i}, 6, 7]}}\n' for i in range(9)))
    config = tmp_path / "config.json"
    config.write_text(json.dumps(SHAPE))
    leak = tmp_path / "snapshot.pickle"
    leak.write_bytes(pickle.dumps(scenarios.snapshot_of(scenarios.leak())))
    oom = tmp_path / "oom.txt"
    oom.write_text(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity\n"
    )
    recorded = tmp_path / "recorder.jsonl"
    recorded.write_text(
        '{"recorder": 1, "rows_kind": "index"}\n{"step": 1, "rows": [3]}\n{"step": 2, "rows": [1, 3]}\n'
    )
    looped = tmp_path / "train.py"
    looped.write_text(
        "for x, y in loader:\n    loss = criterion(model(x), y)\n    loss.backward()\n    optimizer.step()\n"
    )
    runs = [{"path": str(examples / name)} for name in ("loss_spike", "nan_loss", "overfit", "divergence", "healthy")]
    return {
        "diagnose_run": [*runs, {**runs[0], "reference": runs[4]["path"]}],
        "read_metric": [
            {"path": runs[0]["path"], "names": ["loss", "grad_norm"]},
            {"path": runs[0]["path"], "names": ["loss"], "first": 240, "last": 260},
        ],
        "diagnose_runs": [{"path": str(examples)}],
        "compare_runs": [{"a": [runs[0]["path"], runs[4]["path"]], "b": [one["path"] for one in runs[2:4]]}],
        "update_diagnosis": [
            {"findings": {"loss_spike": "present"}, "outcomes": {"lr_too_high.1": "refutes"}, "path": "runs/7"},
            {"findings": {}, "outcomes": {}},
            {"outcomes": {"bad_batch.1": "refutes"}, "path": runs[0]["path"]},
        ],
        "inspect_batch": [{"path": str(bad), "purpose": "sft"}, {"path": str(good), "purpose": "pretraining"}],
        "inspect_script": [{"path": str(looped)}, {"path": str(examples / "make_examples.py")}],
        "rows_at": [
            {"path": str(recorded), "step": 2},
            {"path": str(recorded), "step": 2, "data": str(good)},
        ],
        "check_memory": [{"path": str(leak)}, {"path": str(leak), "focus": "activations"}, {"path": str(oom)}],
        "estimate_memory": [
            {"config": str(config)},
            {"config": str(config), "batch_size": 64, "checkpointing": "full", "chunked_loss": True},
            {"config": str(config), "lora_rank": 4, "devices": 8, "sharding": "zero3"},
        ],
        "search_folklore": [{"query": "loss spike"}, {"query": "zzzzqq"}, {"query": "reward", "kind": "quote"}],
        "explain": [
            {"id": one} for one in ("loss_spike", "bad_batch", "bekman_mle", "menu_nan", "cuda_oom", "unknown")
        ],
        "explain_error": [
            {"text": "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB"},
            {"text": "ZyxError: the frobnicator does not fit"},
            {"text": "all is well"},
        ],
    }


async def answers_to(client: Client, calls: Calls, detail: str) -> list[tuple[str, dict[str, Any]]]:
    answers = []
    for tool, arguments in calls.items():
        for call in arguments:
            result = await client.call_tool(tool, {**call, "detail": detail})
            assert not result.is_error, result.content
            assert json.loads(result.content[0].text) == result.structured_content  # type: ignore[union-attr]
            answers.append((tool, result.structured_content or {}))
    return answers


async def test_every_tool_takes_detail_and_is_concise_by_default(client: Client) -> None:
    tools = (await client.list_tools()).tools
    assert len(tools) == len(TOOLS) == 14
    for tool in tools:
        detail = tool.input_schema["properties"]["detail"]
        assert (detail["enum"], detail["default"]) == (["concise", "full"], "concise")


@pytest.mark.parametrize("detail", ["concise", "full"])
async def test_every_answer_suggests_a_call_that_really_runs(client: Client, calls: Calls, detail: str) -> None:
    for tool, answer in await answers_to(client, calls, detail):
        call = answer["next_step"]
        result = await client.call_tool(call["tool"], call["arguments"])
        assert not result.is_error, (tool, call, result.content)


async def test_every_answer_fits_its_schema_in_both_eras(client_of_each_era: Client, calls: Calls) -> None:
    schemas = {tool.name: tool.output_schema for tool in (await client_of_each_era.list_tools()).tools}
    for detail in ("concise", "full"):
        for tool, answer in await answers_to(client_of_each_era, calls, detail):
            schema = schemas[tool]
            assert schema is not None
            jsonschema.Draft202012Validator.check_schema(schema)
            jsonschema.validate(answer, schema)


async def test_what_was_left_out_is_got_by_the_call_that_the_answer_names(client: Client, calls: Calls) -> None:
    short, whole = await answers_to(client, calls, "concise"), await answers_to(client, calls, "full")
    for (tool, brief), (_, full) in zip(short, whole, strict=True):
        named = any("detail" in note and tool in note for note in brief["notes"])
        offered = brief["next_step"]["arguments"].get("detail") == "full"
        assert named or offered or {**full, **brief} == full


async def test_leading_facts_are_in_the_text_as_well(client: Client, examples: Path) -> None:
    result = await client.call_tool("diagnose_run", {"path": str(examples / "loss_spike")})
    answer, text = result.structured_content, result.content[0].text  # type: ignore[union-attr]
    assert answer is not None
    for fact in (answer["findings"][0]["summary"], answer["hypotheses"][0]["cause"], answer["next_step"]["tool"]):
        assert json.dumps(fact, ensure_ascii=False) in text


async def test_numbers_that_are_not_finite_are_the_same_strings_everywhere(client: Client, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    values = [2.0, math.nan, math.inf, -math.inf] * 3
    log.write_text("".join(json.dumps({"step": step, "loss": loss}) + "\n" for step, loss in enumerate(values)))
    result = await client.call_tool("diagnose_run", {"path": str(log), "detail": "full"})
    text = result.content[0].text  # type: ignore[union-attr]
    assert json.loads(text, parse_constant=pytest.fail)["run"]["last"]["loss"] == "-inf"


async def test_a_long_argument_is_not_repeated(client: Client) -> None:
    text = "".join(f"ValueError: shapes ({i}, 3) and ({i}, 4) do not fit, id {i}\n" for i in range(2000))
    result = await client.call_tool("explain_error", {"text": "RuntimeError: CUDA out of memory\n" + text})
    assert len(json.dumps(result.structured_content)) < MAX_CONCISE_CHARACTERS


def healthy_log(path: Path, **more: float) -> Path:
    draw = random.Random(1)
    with path.open("w") as log:
        for step in range(1, 401):
            record = {
                "step": step * 10,
                "loss": round(2.1 + 3 * math.exp(-step / 60) + draw.gauss(0, 0.03), 4),
                "grad_norm": round(abs(draw.gauss(1, 0.1)), 4),
                "learning_rate": 1e-4 * min(step / 40, 1 - step / 410),
                "epoch": round(step / 400, 4),
            }
            if step % 40 == 0:
                record |= {"eval_loss": round(2.2 + 3 * math.exp(-step / 60), 4), "eval_runtime": 3.2}
            log.write(json.dumps(record | more) + "\n")
    return path


@pytest.mark.parametrize("folder", ["run", "experiments/2026-11-20/llama-3-8b-instruct-lora-r16-lr1e-4-bs64-seed1"])
async def test_a_healthy_run_is_answered_in_a_few_lines(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(folder).mkdir(parents=True)
    path = str(healthy_log(Path(folder) / "log.jsonl", tokens_per_second=1234.5))

    result = await client.call_tool("diagnose_run", {"path": path})

    answer = result.structured_content
    assert answer is not None
    assert max(len(result.content[0].text), len(json.dumps(answer))) < MAX_HEALTHY_CHARACTERS  # type: ignore[union-attr]
    assert {"run", "findings", "hypotheses", "next_steps", "notes"} <= answer.keys()
    assert answer["run"]["path"].endswith("log.jsonl")
    assert answer["run"]["steps"] == 400
    assert answer["run"]["last"]["loss"] == pytest.approx(2.1, abs=0.2)
    assert [one["cause"] for one in answer["hypotheses"]] == ["healthy", "unknown"]
    assert sum(one["probability"] for one in answer["hypotheses"]) == pytest.approx(1)
    assert answer["hypotheses"][0]["credence"]
    assert "nothing unusual" in answer["notes"]
    assert answer["next_step"]["arguments"] == {"id": "healthy"}
    assert answer["notes"][-1].startswith("shortened; everything: ")


async def test_the_healthy_example_says_what_was_not_logged(client: Client, examples: Path) -> None:
    result = await client.call_tool("diagnose_run", {"path": str(examples / "healthy")})
    assert result.structured_content is not None
    assert "not logged: eval_loss" in result.structured_content["notes"]


async def test_what_was_seen_in_a_healthy_run_is_named(client: Client, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    draw = random.Random(2)
    rows = [{"step": i, "loss": 1 + math.exp(-i / 9) + draw.gauss(0, 0.02), "learning_rate": 1e-4} for i in range(60)]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = await client.call_tool("diagnose_run", {"path": str(log)})
    assert result.structured_content is not None
    (finding,) = result.structured_content["findings"]
    assert (finding["symptom"], finding["state"]) == ("lr_no_warmup", "present")
    assert finding["summary"].startswith("learning_rate is at its peak, 0.0001, from step 0 on")
    assert len(result.content[0].text) < MAX_HEALTHY_CHARACTERS  # type: ignore[union-attr]


async def test_a_log_with_an_error_line_and_no_metrics_is_not_passed_over_as_healthy(
    client: Client, tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    log.write_text("TypeError: forward() got an unexpected keyword argument 'labels'\n")
    result = await client.call_tool("diagnose_run", {"path": str(log)})
    assert "unexpected keyword" in result.content[0].text  # type: ignore[union-attr]


async def test_the_whole_answer_keeps_the_arguments_of_the_call(client: Client, examples: Path) -> None:
    config = str(examples / "healthy" / "config.json")
    result = await client.call_tool("diagnose_run", {"path": str(examples / "healthy"), "config": config, "run": ""})
    assert result.structured_content is not None
    assert f'config="{config}"' in result.structured_content["notes"][-1]


async def test_unlikely_causes_are_folded_also_where_unknown_leads(client: Client, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    steps = "".join(f"step {at}: loss {4 / at**0.2:.4f}\n" for at in range(1, 60))
    log.write_text(f"{steps}Traceback (most recent call last):\nFrobnicateError: no frob at 7\n", encoding="utf-8")
    result = await client.call_tool("diagnose_run", {"path": str(log)})
    assert result.structured_content is not None
    leader, *others = result.structured_content["hypotheses"]
    assert leader["cause"] == "unknown"
    assert {one["cause"] for one in others if one["probability"] < 0.01} <= {"healthy"}
    assert leader["probability"] + sum(one["probability"] for one in others) == pytest.approx(1)


async def test_a_run_with_a_fault_keeps_its_rivals_and_checks(client: Client, examples: Path) -> None:
    result = await client.call_tool("diagnose_run", {"path": str(examples / "loss_spike")})
    assert result.structured_content is not None
    assert result.structured_content["verdict"]["fix"]
    assert result.structured_content["next_steps"]


async def test_what_holds_nothing_is_left_out_of_the_short_form_but_for_the_fields_of_the_contract(
    client: Client, examples: Path
) -> None:
    result = await client.call_tool("diagnose_run", {"path": str(examples / "divergence")})
    answer = result.structured_content
    assert answer is not None
    assert all(answer[name] for name in answer)
    contract = {"cause", "probability", "credence", "because", "against", "next_steps", "citations"}
    for one in answer["hypotheses"]:
        assert contract <= one.keys()
        assert all(one[name] for name in one.keys() - contract)


async def test_which_of_several_runs_was_read_is_said_even_if_it_is_healthy(client: Client, tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        healthy_log(tmp_path / "runs" / name / "log.jsonl")
    result = await client.call_tool("diagnose_run", {"path": str(tmp_path / "runs")})
    assert result.structured_content is not None
    assert any(
        note.startswith("read second, the last of the longest of 2 runs; run=")
        for note in result.structured_content["notes"]
    )


async def test_a_full_answer_is_bounded_says_what_is_cut_and_begins_with_what_is_seen(
    client: Client, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    rows = [
        {"step": step, "loss": 3 / step + 0.5 * (step == 90), **{f"layer_{at}/grad_norm": 1 + at for at in range(600)}}
        for step in range(1, 121)
    ]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    many = tmp_path / "many"
    for at in range(150):
        (many / f"{at}{'name' * 50}").mkdir(parents=True)
        (many / f"{at}{'name' * 50}" / "log.jsonl").write_text(
            "".join(json.dumps({"step": step, "loss": 3 / step}) + "\n" for step in range(1, 60))
        )
    for tool, path in (("diagnose_run", log), ("diagnose_runs", many)):
        result = await client.call_tool(tool, {"path": str(path), "detail": "full"})
        text, answer = result.content[0].text, result.structured_content or {}  # type: ignore[union-attr]
        assert json.loads(text) == answer
        assert len(text) <= FULL_LIMIT
        if tool == "diagnose_runs":
            assert any(f"mldebug-mcp runs {path} --json" in note for note in answer["notes"])


@pytest.mark.parametrize("example", ["loss_spike", "healthy"])
async def test_a_full_answer_to_an_ordinary_run_is_whole(client: Client, examples: Path, example: str) -> None:
    result = await client.call_tool("diagnose_run", {"path": str(examples / example), "detail": "full"})
    answer = result.structured_content or {}
    assert answer["findings"] == diagnose_run(examples / example).model_dump(mode="json")["findings"]


async def test_a_single_item_is_taken_for_a_list_of_it_and_pairs_for_a_mapping(client: Client, examples: Path) -> None:
    path = str(examples / "loss_spike")

    async def answer_to(tool: str, **arguments: object) -> dict[str, Any]:
        result = await client.call_tool(tool, {"path": path, **arguments})
        assert not result.is_error, result.content
        return result.structured_content or {}

    for name in ("loss", "grad_norm"):
        assert await answer_to("read_metric", names=name) == await answer_to("read_metric", names=[name])
    checks = {"bad_batch.1": "refutes", "lr_too_high.1": "confirms"}
    plain = await answer_to("update_diagnosis", outcomes=checks)
    pairs = [f"{check}={outcome}" for check, outcome in checks.items()]
    given = await answer_to("update_diagnosis", outcomes=pairs)
    assert given["hypotheses"] == plain["hypotheses"]
    one = await answer_to("update_diagnosis", outcomes="bad_batch.1=refutes")
    again = await answer_to("update_diagnosis", outcomes={"bad_batch.1": "refutes"})
    assert one["hypotheses"] == again["hypotheses"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("update_diagnosis", {"outcomes": ["bad_batch.1=refutes", "bad_batch.1=confirms"]}),
        ("update_diagnosis", {"outcomes": ["bad_batch.1"]}),
        ("update_diagnosis", {"outcomes": "bad_batch.1=refutes=really"}),
        ("read_metric", {"path": "log.jsonl", "names": {"loss": "loss"}}),
        ("compare_runs", {"a": "one", "b": "other"}),
    ],
)
async def test_what_could_be_misread_is_refused(client: Client, tool: str, arguments: dict[str, Any]) -> None:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert "argument" in result.content[0].text  # type: ignore[union-attr]


async def test_short_answers_keep_the_settings_that_differ_and_say_what_unknown_counts(
    client: Client, tmp_path: Path
) -> None:
    for rate in (0.001, 0.003):
        folder = tmp_path / f"lr{rate}"
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps({"learning_rate": rate, "weight_decay": 0.1}))
        losses = [2 + 2 * 0.98**step + 0.05 * math.sin(step * step) for step in range(300)]
        rows = [{"step": step, "loss": loss, "grad_norm": 1 + loss / 10} for step, loss in enumerate(losses)]
        (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    many = (await client.call_tool("diagnose_runs", {"path": str(tmp_path)})).structured_content or {}
    assert sorted(row["settings"]["learning_rate"] for row in many["rows"]) == [0.001, 0.003]
    one = (await client.call_tool("diagnose_run", {"path": str(tmp_path), "run": "lr0.001"})).structured_content or {}
    assert sum(cause["probability"] for cause in one["hypotheses"]) == pytest.approx(1, abs=0.02)
    assert any("counted under unknown" in note for note in one["notes"])
