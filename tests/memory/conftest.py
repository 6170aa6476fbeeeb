from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

Save = Callable[..., Path]
LLAMA_8B = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
}


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Write an object as a pickle, as `_dump_snapshot` does."""

    def write(tree: object, name: str = "snapshot.pickle", protocol: int | None = None) -> Path:
        path = tmp_path / name
        path.write_bytes(pickle.dumps(tree, protocol=protocol))
        return path

    return write


@pytest.fixture
def llama(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA_8B))
    return path
