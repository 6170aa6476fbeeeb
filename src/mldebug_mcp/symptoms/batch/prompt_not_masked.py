"""Prompt tokens carry labels."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.pairs import pairs
from mldebug_mcp.batch.ragged import Bools, Ints, count_rows
from mldebug_mcp.batch.role_losses import role_losses
from mldebug_mcp.batch.sequences import IGNORE, Sequences
from mldebug_mcp.symptoms.batch.registry import (
    BatchEvidence,
    batch_check,
    of_rows,
    prompt_spot,
    rows_where,
)


@batch_check(
    severity="warning",
    why=(
        "The model spends its capacity on writing the user's words; on short answers the loss is mostly the prompt's, "
        "so it looks better or worse than the answers are."
    ),
    fix=(
        "TRL: give prompt and completion columns (completion_only_loss is then the default), or "
        "assistant_only_loss=True for conversations with a template that has {% generation %} marks."
    ),
    fixes={
        "Transformers": "set the labels of prompt tokens to -100.",
        "Unsloth": "wrap the trainer in train_on_responses_only(...).",
        "Axolotl": "train_on_inputs: false, and roles_to_train: [assistant].",
        "LLaMA-Factory": "train_on_prompt: false.",
    },
    quotes=("axolotl_plateau_mask", "hfcourse_decode_inputs"),
    purposes=("sft", "dpo", "vlm"),
)
def prompt_not_masked(batch: Batch) -> BatchEvidence | None:
    """The loss is computed on the system's, user's or tool's turns besides the assistant's.

    Not this when: only the markers before an answer are trained on; the assistant's turns are the masked ones
    (`wrong_role_in_loss`); the purpose is pretraining, where every token is trained on. A turn counts if more than
    half of its words are trained on: a mask that is off by a token or two does not count.
    """
    found = [row for row in role_losses(batch) if row.prompts_trained and not row.only_prompts]
    if found:
        rows = np.unique([row.roles.number for row in found])
        tokens = sum(row.prompt_tokens for row in found)
        return BatchEvidence(
            f"{tokens} prompt tokens in {of_rows(rows, batch.rows)} carry labels",
            rows,
            tuple(prompt_spot(row) for row in found[:3]),
            {"prompt_tokens_trained": tokens},
        )
    return _against_columns(batch)


def _against_columns(batch: Batch) -> BatchEvidence | None:
    """Look for labels where the completion mask says prompt, and on what both sides of a pair share."""
    rows = rows_where(batch.sides, _labelled_outside_completion)
    chosen, rejected = batch.side("chosen"), batch.side("rejected")
    if not len(rows) and chosen is not None and rejected is not None:
        rows = _shared_and_trained(chosen, rejected)
    if len(rows):
        return BatchEvidence(f"prompt tokens in {of_rows(rows, batch.rows)} carry labels", rows)
    plain = batch.purpose == "sft" and batch.purpose_given and not any(row.turns for row in batch.roles)
    if plain and batch.trained_sides and all(map(_all_trained, batch.trained_sides)):
        return BatchEvidence(
            "no token of any row is masked: if the rows begin with prompts, the prompts are trained on too",
            severity="info",
        )
    return None


def _all_trained(side: Sequences) -> bool:
    return side.trained is not None and not side.packed and bool(np.all(side.trained[side.content]))


def _labelled_outside_completion(side: Sequences) -> Bools:
    if side.labels is None or side.loss_mask is None:
        return np.zeros(side.rows, np.bool_)
    outside = np.flatnonzero((side.labels.flat != IGNORE) & (side.loss_mask.flat == 0) & side.content)
    return count_rows(outside, side.ids) > 1


def _shared_and_trained(chosen: Sequences, rejected: Sequences) -> Ints:
    """Return the pairs in which most of what both sides begin with is trained on, from its first or second token.

    What is masked first and then trained on is a prompt, and completions that begin alike.
    """
    rows = []
    for pair in pairs(chosen, rejected):
        if chosen.labels is None or pair.shared < 2 or pair.same:
            continue
        labels = chosen.labels.row(pair.chosen)[pair.chosen_start : pair.chosen_start + pair.shared]
        if bool(np.any(labels[:2] != IGNORE)) and float(np.mean(labels != IGNORE)) > 0.5:
            rows.append(pair.number)
    return np.array(rows, np.int64)
