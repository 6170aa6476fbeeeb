"""Files that no framework writes but somebody may: a server over stdio answers them, or says what is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.stdio_process import Process, started


@pytest.fixture(scope="module")
def server() -> Iterator[Process]:
    with started() as running:
        yield running


def ask(server: Process, tool: str, **arguments: Any) -> dict[str, Any]:
    result: dict[str, Any] = server.ask("tools/call", name=tool, arguments={**arguments, "detail": "full"})["result"]
    return result


def log(path: Path, **columns: float) -> str:
    path.write_text("".join(json.dumps({"step": step, "loss": 4 / step, **columns}) + "\n" for step in range(1, 40)))
    return str(path)


@pytest.mark.parametrize(
    ("one", "other"), [("a  b", "a b"), ("x\u200b", "x"), ("y" * 300 + "1", "y" * 300 + "2"), ("loss ", "Loss")]
)
def test_metrics_whose_names_look_the_same_are_both_there(
    server: Process, tmp_path: Path, one: str, other: str
) -> None:
    alone = ask(server, "diagnose_run", path=log(tmp_path / "alone.jsonl", **{one: 1.0}))
    both = ask(server, "diagnose_run", path=log(tmp_path / "both.jsonl", **{one: 1.0, other: 2.0}))

    metrics = both["structuredContent"]["run"]["metrics"]
    assert len(metrics) == len(set(metrics)) == len(alone["structuredContent"]["run"]["metrics"]) + 1


@pytest.mark.parametrize("value", ["!!bool foo", "!!int ''", "!!float ''", "!!timestamp foo", "!!binary ä"])
def test_a_tag_that_does_not_fit_its_value_is_an_error_of_one_line(server: Process, tmp_path: Path, value: str) -> None:
    (tmp_path / "args.yaml").write_text(f"lr: {value}\n", encoding="utf-8")

    result = ask(server, "diagnose_run", path=log(tmp_path / "log.jsonl"), config=str(tmp_path / "args.yaml"))

    assert result["isError"]
    assert "mend it or name another configuration" in result["content"][0]["text"]
    assert "Traceback" not in result["content"][0]["text"]


def test_a_column_that_is_one_value_is_left_out_with_a_note(server: Process, tmp_path: Path) -> None:
    ids = np.arange(12).reshape(3, 4)
    np.savez(tmp_path / "scalar.npz", input_ids=ids, labels=np.array(3))

    result = ask(server, "inspect_batch", path=str(tmp_path / "scalar.npz"))

    assert not result["isError"]
    assert result["structuredContent"]["batch"]["rows"] == 3
    assert any("labels: left out" in note for note in result["structuredContent"]["notes"])


def test_a_bfloat16_column_that_is_one_value_is_left_out_with_a_note(server: Process, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    safetensors = pytest.importorskip("safetensors.torch")
    ids = torch.arange(12).reshape(3, 4)
    weight = torch.tensor(3.0, dtype=torch.bfloat16)
    safetensors.save_file({"input_ids": ids, "labels": ids.clone(), "weight": weight}, tmp_path / "b.safetensors")

    result = ask(server, "inspect_batch", path=str(tmp_path / "b.safetensors"))

    assert not result["isError"]
    assert any("weight: left out" in note for note in result["structuredContent"]["notes"])


@pytest.mark.parametrize(
    "line",
    ["rank" + " " * 1_000_000 + "x", "2024-01-01 00:00:00 abcdefghijklmnopqrstuv " * 25_000,
     "[2024-01-01 00:00:00 a]" * 45_000, "12:00:00 " * 110_000, " rank 1" * 140_000],
    ids=["spaces", "times", "bracketed times", "hours", "ranks"],
)  # fmt: skip
def test_a_line_of_a_megabyte_is_read_within_the_time_of_a_call(server: Process, tmp_path: Path, line: str) -> None:
    path = tmp_path / "train.log"
    path.write_text(f"step 1 loss: 2.0\nstep 2 loss: 1.8\n{line}\nstep 3 loss: 1.7\n")

    result = ask(server, "diagnose_run", path=str(path))

    assert result["structuredContent"]["run"]["last_step"] == 3
    # Quadratic, it took 37 s of processor time and more, which no call is given.
