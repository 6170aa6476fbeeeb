"""A tokenized batch or data set file → `Batch`: what the model is really trained on, as numpy arrays."""

from __future__ import annotations

from mldebug_mcp.batch.batch import PURPOSES, Batch, Problem, Purpose
from mldebug_mcp.batch.read import read_batches
from mldebug_mcp.batch.sequences import Sequences

__all__ = ["PURPOSES", "Batch", "Problem", "Purpose", "Sequences", "read_batches"]
