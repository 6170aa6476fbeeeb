"""JSON lines that wrap what a program printed are read as that."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.logs.reading import points, read

from mldebug_mcp.logs import Run

COUNT = 30
LOSSES = {float(step): round(3 - step / 50, 2) for step in range(1, COUNT)}
WRAPPED: dict[str, Callable[[int, float], dict[str, object]]] = {
    "Docker": lambda step, loss: {"log": f"step={step} loss={loss}\n", "time": "2026-01-01T00:00:00Z"},
    "logging as JSON": lambda step, loss: {"level": "INFO", "lineno": 10, "message": f"step {step} loss {loss}"},
    "cloud logging": lambda step, loss: {"textPayload": f"Epoch {step}/30: loss: {loss}", "severity": "INFO"},
    "dicts": lambda step, loss: {"log": f"{{'loss': {loss}, 'epoch': {step}}}\n", "stream": "stderr"},
    "a bar": lambda step, loss: {"log": f"\r{step}%|#   | {step}/100 [00:01<00:09, 3.21it/s, loss={loss}]"},
}  # fmt: skip


def wrapped(folder: Path, way: str, more: str = "") -> Run:
    lines = (json.dumps(WRAPPED[way](int(step), loss)) + "\n" for step, loss in LOSSES.items())
    return read(folder, "".join(lines) + more, "container.json")


@pytest.mark.parametrize("way", WRAPPED)
def test_lines_that_were_wrapped_are_read_as_text(way: str, tmp_path: Path) -> None:
    run = wrapped(tmp_path, way)
    assert points(run, "loss") == LOSSES
    assert "lineno" not in run


def test_an_error_in_a_wrapped_line_ends_the_run(tmp_path: Path) -> None:
    died = json.dumps({"log": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"})
    run = wrapped(tmp_path, "Docker", f"{died}\n")
    assert "out of memory" in run.fatal[-1].text


def test_a_record_with_metrics_beside_a_text_is_a_record(tmp_path: Path) -> None:
    rows = ({"step": step, "loss": loss, "message": "step 7 loss 9.0"} for step, loss in LOSSES.items())
    run = read(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "log.jsonl")
    assert run.formats == ("jsonl",)
    assert points(run, "loss") == LOSSES
