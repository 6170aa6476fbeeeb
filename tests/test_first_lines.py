"""What every verb that judges prints first: what is wrong or that nothing is, the facts, the next command, the fix."""

from __future__ import annotations

import json
import pickle
import random
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from mldebug_mcp.cli import main, make_parser
from tests.memory import scenarios
from tests.memory.allocator import Allocator

OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."

SCRIPT = """import torch.nn.functional as F
for x, y in loader:
    loss = F.cross_entropy(model(x).softmax(-1), y)
    loss.backward()
    opt.step()
"""


def first_lines(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, str]:
    """Run a command and return its verdict block: the headline, and the text behind each label."""
    assert main(list(arguments)) in (0, 1)
    block = capsys.readouterr().out.split("\n\n")[0]
    assert "…" not in block
    parts = {"headline": ""}
    label = "headline"
    for line in block.splitlines():
        if line[:6].strip() in ("Why", "Seen", "Next", "Fix"):
            label = line[:6].strip()
            parts[label] = line[6:]
        elif line.strip().startswith("mldebug-mcp "):
            parts["command"] = line.strip()
        else:
            parts[label] += f" {line.strip()}"
    return {name: text.strip() for name, text in parts.items()}


def runs_of(folder: Path, name: str, *, level: float) -> list[str]:
    paths = []
    for seed in range(3):
        noise = random.Random(f"{name}{seed}")
        path = folder / f"{name}{seed}" / "log.jsonl"
        path.parent.mkdir(parents=True)
        records = [
            {"step": step, "loss": 2 * 0.97**step + noise.gauss(0, 0.02), "eval_loss": level + noise.gauss(0, 0.02)}
            for step in range(1, 81)
        ]
        path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
        paths.append(str(path.parent))
    return paths


def batch_of(path: Path, labels: list[int]) -> str:
    rows = [{"input_ids": [5 + row, 6, 7, 8], "attention_mask": [1] * 4, "labels": labels} for row in range(4)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return str(path)


def can_be_run(command: str) -> bool:
    """Say whether the parser takes a command as it is printed."""
    make_parser().parse_args(shlex.split(command)[1:])
    return True


def test_a_batch_is_told_by_its_gravest_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = first_lines(capsys, "batch", batch_of(tmp_path / "batch.jsonl", [-100] * 4))
    assert said["headline"].startswith("Wrong: ")
    assert "[all_labels_masked]" in said["headline"]
    assert said["Why"]
    assert said["Fix"]
    assert can_be_run(said["command"])


def test_a_healthy_batch_is_told_with_what_was_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = first_lines(capsys, "batch", batch_of(tmp_path / "batch.jsonl", [-100, 6, 7, 8]), "--purpose", "sft")
    assert said["headline"].startswith("Nothing wrong in 4 rows with 16 tokens, 12 of them trained on")
    assert "Fix" not in said
    assert can_be_run(said["command"])


@pytest.mark.parametrize(
    ("gpu", "headline"),
    [
        (scenarios.leak, "a memory leak"),
        (scenarios.fragmented, "fragmented GPU memory"),
        (scenarios.training, "Healthy"),
    ],
)
def test_a_snapshot_is_told_by_its_cause(
    gpu: Callable[[], Allocator], headline: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = tmp_path / "snapshot.pickle"
    snapshot.write_bytes(pickle.dumps(scenarios.snapshot_of(gpu())))
    said = first_lines(capsys, "memory", str(snapshot))
    assert headline in said["headline"]
    assert ("Fix" in said) == (headline != "Healthy")
    assert can_be_run(said["command"])


def test_a_script_is_told_by_its_surest_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT, encoding="utf-8")
    said = first_lines(capsys, "script", str(script))
    assert said["headline"].startswith("Certainly wrong in train.py, line 3: ")
    assert "missing_zero_grad" in said["Why"]
    assert said["Fix"]
    assert can_be_run(said["command"])


def test_runs_are_told_by_those_that_are_sick(capsys: pytest.CaptureFixture[str]) -> None:
    said = first_lines(capsys, "runs", str(Path(__file__).parents[1] / "examples"), "--no-cache")
    assert said["headline"] == "5 runs: a fault leads in 4, 1 healthy"
    assert "divergence: a learning rate that is too high (" in said["Why"]
    assert said["Fix"].startswith("For ")
    assert "--run divergence" in said["command"]
    assert can_be_run(said["command"])


def test_two_kinds_of_runs_are_told_with_both_levels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = runs_of(tmp_path, "a", level=0.7), runs_of(tmp_path, "b", level=0.9)
    said = first_lines(capsys, "compare", *a, "--b", *b)
    assert said["headline"].startswith("A is better: eval_loss is 0.")
    same = first_lines(capsys, "compare", *a[:2], "--b", a[2], a[1])
    assert same["headline"].startswith("Cannot tell A from B: ")
    assert "runs of each" in same["Fix"]
    assert can_be_run(said["command"])


@pytest.mark.parametrize(
    ("text", "headline"),
    [
        (OUT_OF_MEMORY, "[cuda_oom]"),
        ("ZebraError: the stripes are crossed", "Not a known message: ZebraError: the stripes are crossed"),
        ("all is well", "No error found"),
    ],
)
def test_an_error_is_told_by_what_it_means(text: str, headline: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = first_lines(capsys, "error", text)
    assert headline in said["headline"]
    assert said["Next"]
    assert "command" not in said or can_be_run(said["command"])
    assert ("command" in said) is ("Zebra" not in text)  # of an unknown message no command of ours tells more


def test_a_watched_run_is_told_at_the_first_look(capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(__file__).parents[1] / "examples" / "divergence"
    assert main(["watch", str(folder), "--for", "0.001"]) == 0
    reading, headline, *rest = capsys.readouterr().out.splitlines()
    assert "reading: " in reading
    assert headline.startswith("Almost certainly a learning rate that is too high")
    assert [line[:3] for line in rest if line[:3] in ("Why", "Nex", "Fix")] == ["Why", "Nex", "Fix"]
