"""What is kept of a step at which the loss left its course: the batch, and an event that says where it is."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from mldebug_mcp.capture import save_batch
from mldebug_mcp.recorder.late import Value

FOLDER = "batches"
MOST_BATCHES = 8
"""Batches that are saved of a run. Chosen: the first spikes tell, and a run in trouble has hundreds."""
MOST_BYTES = 64 * 1024 * 1024
"""Bytes of a batch that is saved."""


class Incidents:
    """Saves batches beside a recording.

    Args:
        folder: Where they go.
        mark: What stands in their names: the rank, where there are several.
    """

    def __init__(self, folder: Path, mark: str) -> None:
        self._folder, self._mark, self._saved = folder, mark, 0

    def save(self, step: int, batch: Value) -> str:
        """Save the batch of a step; return the name of its file, "" where it cannot be saved or enough are."""
        columns = columns_of(batch)
        if not columns or self._saved >= MOST_BATCHES or _bytes_of(columns) > MOST_BYTES:
            return ""
        ending = ".pt" if "torch" in sys.modules else ".json"
        file = self._folder / FOLDER / f"step-{step}{self._mark}{ending}"
        try:
            save_batch(columns, file)
        except (ValueError, TypeError, AttributeError, OSError, RuntimeError) as error:
            sys.stderr.write(f"mldebug_mcp.recorder: the batch of step {step} cannot be saved: {error}\n")
            return ""
        self._saved += 1
        return f"{FOLDER}/{file.name}"


def columns_of(batch: Value) -> dict[str, Value]:
    """Return a batch as columns; a pair of tensors is inputs and labels, more are numbered."""
    if batch is None:
        return {}
    if isinstance(batch, Mapping) or hasattr(batch, "items"):
        return {str(name): value for name, value in batch.items() if value is not None}
    if not isinstance(batch, tuple | list):
        return {"inputs": batch}
    if batch and all(isinstance(one, Mapping) for one in batch):
        return {str(name): [row.get(name) for row in batch] for name in batch[0]}
    names = ["inputs", "labels"] if len(batch) == 2 else [f"column_{at}" for at in range(len(batch))]
    return dict(zip(names, batch, strict=True))


def _bytes_of(columns: Mapping[str, Value]) -> int:
    return sum(one.numel() * one.element_size() for one in columns.values() if hasattr(one, "element_size"))
