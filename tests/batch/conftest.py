"""The door through which most tests of batches go."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.batch.kit import Inspect

from mldebug_mcp.batch.tokenizer import Tokenizer

MODEL = '{"vocab_size": 32000, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}'
NEEDED = ("datasets", "pyarrow", "safetensors", "torch", "transformers", "trl")
if not all(map(find_spec, NEEDED)):
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture
def inspect(tmp_path: Path) -> Inspect:
    """Write a batch as JSON and inspect it; returns the severity of each finding by check."""
    from mldebug_mcp.judge.batch import inspect_batch

    def look(
        batch: Any, tokenizer: Tokenizer | None = None, purpose: str = "auto", model: Any = None
    ) -> dict[str, str]:
        path = tmp_path / "batch.json"
        path.write_text(json.dumps(batch), encoding="utf-8")
        config = None
        if model is not None:
            config = tmp_path / "config.json"
            config.write_text(json.dumps(model), encoding="utf-8")
        answer = inspect_batch(path, tokenizer, config, purpose)
        broken = [note for note in answer.notes if "could not be judged" in note]
        assert not broken, broken
        return {finding.check: finding.severity for finding in answer.findings}

    return look


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(MODEL)
    return path
