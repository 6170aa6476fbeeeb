"""Image placeholders were cut or do not match the features."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.ragged import Ints, Runs
from mldebug_mcp.batch.sequences import Sequences
from mldebug_mcp.symptoms.batch.registry import (
    NO_ROWS,
    BatchEvidence,
    batch_check,
    of_rows,
    rows_that,
    spots_at,
)

NAMES = ("<|image_pad|>", "<image>", "<image_soft_token>", "<|image|>", "[IMG]", "<IMG_CONTEXT>")
"""Placeholders of Qwen-VL, LLaVA, Gemma 3, Llama 3.2, Pixtral and InternVL."""


@batch_check(
    severity="error",
    why="The model raises an error over the number of image features, or answers about an image that it sees in part.",
    fix="max_length=None in SFTConfig or DPOConfig for vision-language models, or large enough for the image tokens.",
    fixes={
        "Axolotl": "raise sequence_len; skip_prepare_dataset and remove_unused_columns: false for multimodal data.",
        "Unsloth": "raise max_seq_length; use UnslothVisionDataCollator.",
        "LLaMA-Factory": "raise cutoff_len or lower image_max_pixels.",
    },
    quotes=("trl_vlm_truncation",),
)
def image_tokens_truncated(batch: Batch) -> BatchEvidence | None:
    """The placeholders of images are fewer or more than the image features, or a row ends in the middle of them.

    Not this when: the batch has no images and no placeholders; images differ in size and the grid sizes account for it.
    """
    token = _placeholder(batch)
    told = next((problem for problem in batch.problems if problem.check == "image_tokens_truncated"), None)
    if told is not None:
        rows = np.array(told.rows, np.int64)
        return BatchEvidence(
            f"{rows_that(rows, batch.rows, 'has', 'have')} another number of images than of <image> in the text", rows
        )
    if token is None:
        return None
    for side in batch.sides:
        found = side.ids.runs(side.ids.flat == token)
        count = int((found.stop - found.start).sum())
        expected = _expected(batch, count)
        cut = _cut_runs(side, found)
        if len(cut):
            rows = np.unique(side.numbers[found.row[cut]])
            said = f"{rows_that(rows, batch.rows, 'ends', 'end')} in the middle of an image's placeholders"
            return BatchEvidence(said, rows, spots_at(side, found.start[cut]), {"placeholders": count})
        if expected is not None and expected != count:
            wrong = _wrong_runs(batch, found)
            rows = np.unique(side.numbers[found.row if wrong is None else found.row[wrong]])
            where = "" if wrong is None else f"; they differ in {of_rows(rows, batch.rows)}"
            said = f"{count} image placeholders in the batch, {expected} are wanted by its images{where}"
            return BatchEvidence(said, rows, values={"placeholders": count, "expected": expected})
    return None


def _placeholder(batch: Batch) -> int | None:
    if batch.model.image_token is not None:
        return batch.model.image_token
    if batch.tokenizer is None:
        return None
    return next((batch.tokenizer.special[name] for name in NAMES if name in batch.tokenizer.special), None)


def _expected(batch: Batch, count: int) -> int | None:
    """Return how many placeholders the images of the batch take, or None if that is not known."""
    grid = batch.integers.get("image_grid_thw")
    if grid is not None:
        merge = batch.model.image_merge or 2
        return int(np.prod(grid.reshape(-1, 3), axis=1).sum()) // merge**2
    pixels = batch.floats.get("pixel_values")
    if pixels is None or pixels.ndim not in (4, 5):
        return None
    images = int(np.prod(pixels.shape[: pixels.ndim - 3]))
    if batch.model.image_tokens is not None:
        return images * batch.model.image_tokens
    # One size for all images: the placeholders divide evenly among them, or stand for one image each.
    return None if images and count and count % images == 0 else images


def _wrong_runs(batch: Batch, found: Runs) -> Ints | None:
    """Return the images whose placeholders do not fit their grid, where each stretch of placeholders is one image."""
    grid = batch.integers.get("image_grid_thw")
    if grid is None or len(grid.reshape(-1, 3)) != len(found):
        return None
    wanted = np.prod(grid.reshape(-1, 3), axis=1) // (batch.model.image_merge or 2) ** 2
    return np.flatnonzero(found.stop - found.start != wanted)


def _cut_runs(side: Sequences, found: Runs) -> Ints:
    """Return the runs that end with their row and are shorter than the others."""
    if len(found) < 2:
        return NO_ROWS
    length = found.stop - found.start
    _, stop = side.bounds
    return np.flatnonzero((found.stop == stop[found.row]) & (length < length.max()))
