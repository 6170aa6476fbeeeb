"""A preference pair lacks its prompt or its sides do not share it."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.pairs import Pair, content, pairs
from mldebug_mcp.batch.ragged import Bools
from mldebug_mcp.batch.sequences import Sequences
from mldebug_mcp.batch.templates import PROMPT_ROLES
from mldebug_mcp.symptoms.batch.registry import (
    BatchEvidence,
    batch_check,
    of_rows,
)

LEAST_SHARED = 2
"""Different tokens that both sides begin with, besides the first one, that may be a prompt where no tokenizer tells."""


@batch_check(
    severity="error",
    why="The two completions are compared as answers to different questions, or to none.",
    fix=(
        "Give prompt, chosen and rejected columns (TRL calls this the explicit prompt format), or conversations "
        "that begin alike."
    ),
    fixes={
        "Axolotl": "check type: under datasets: and the field names of prompt, chosen and rejected.",
        "LLaMA-Factory": "ranking: true and the columns prompt, chosen, rejected in dataset_info.json.",
    },
    quotes=("hfcourse_decode_inputs",),
    purposes=("dpo",),
)
def prompt_missing(batch: Batch) -> BatchEvidence | None:
    """The prompt of a pair is empty, or the chosen and the rejected row do not begin alike.

    Nor do they where they share a system turn or a marker, and the user asks something else in each.

    Not this when: prompts stand in a column of their own.
    """
    chosen, rejected, prompt = batch.side("chosen"), batch.side("rejected"), batch.side("prompt")
    if prompt is not None:
        rows = prompt.numbers[_hardly_anything(batch, prompt)]
        what = "the prompt of {} is empty"
    elif chosen is not None and rejected is not None:
        rows = np.array(
            [pair.number for pair in pairs(chosen, rejected) if not pair.same and _begin_apart(batch, chosen, pair)],
            np.int64,
        )
        asked = [row for problem in batch.problems if problem.check == "prompt_missing" for row in problem.rows]
        rows = np.union1d(rows, asked).astype(np.int64)
        what = "chosen and rejected of {} do not begin with the same prompt"
    else:
        return None
    if not len(rows):
        return None
    return BatchEvidence(what.format(of_rows(rows, batch.rows)), rows)


def _hardly_anything(batch: Batch, prompt: Sequences) -> Bools:
    special = batch.tokenizer.special_ids if batch.tokenizer is not None else batch.ends | {batch.bos}
    rows = [bool(set(content(prompt, row).tolist()) - special) for row in range(prompt.rows)]
    return ~np.array(rows, np.bool_)


def _begin_apart(batch: Batch, chosen: Sequences, pair: Pair) -> bool:
    """Whether what both sides begin with holds no word of a prompt."""
    shared = content(chosen, pair.chosen)[: pair.shared]
    known = batch.tokenizer
    if known is None:
        # A beginning that is masked is a prompt, however short.
        masked = chosen.trained is not None and not chosen.trained[chosen.bounds[0][pair.chosen]]
        return len(set(shared.tolist()) - {batch.bos}) < (1 if masked else LEAST_SHARED)
    row = next((row for row in batch.roles if row.side is chosen and row.index == pair.chosen), None)
    if row is not None and row.turns:
        first = row.turns[0]
        return first.role not in PROMPT_ROLES or pair.chosen_start + pair.shared <= first.start
    return not set(shared.tolist()) - known.special_ids
