from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

Save = Callable[..., Path]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Write an object as a pickle, as `_dump_snapshot` does."""

    def write(tree: object, name: str = "snapshot.pickle", protocol: int | None = None) -> Path:
        path = tmp_path / name
        path.write_bytes(pickle.dumps(tree, protocol=protocol))
        return path

    return write
