"""The loss is computed on the user's turns instead of the assistant's."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.role_losses import role_losses
from mldebug_mcp.symptoms.batch.registry import (
    BatchEvidence,
    batch_check,
    of_rows,
    prompt_spot,
)


@batch_check(
    severity="error",
    why="The model learns to write the user's side of the conversation and is never taught to answer.",
    fix=(
        "Invert the mask: labels are -100 on everything but the assistant's turns. In TRL, see that the "
        "{% generation %} marks of the chat template surround the assistant's content."
    ),
    fixes={
        "Unsloth": "train_on_responses_only: instruction_part and response_part are exchanged.",
        "Axolotl": "roles_to_train: [assistant]; check the role mapping (message_property_mappings, roles).",
        "LLaMA-Factory": "check the tags: user_tag and assistant_tag are exchanged.",
    },
    quotes=("axolotl_plateau_mask", "hfcourse_decode_inputs"),
    purposes=("sft", "dpo", "vlm"),
)
def wrong_role_in_loss(batch: Batch) -> BatchEvidence | None:
    """The user's turns are trained on and the assistant's are not; or most conversations have the two exchanged.

    They do where the assistant speaks first and the user has the last word.

    Not this when: both are trained on (`prompt_not_masked`), or neither (`row_labels_masked`).
    """
    found = [row for row in role_losses(batch) if row.prompts_trained and row.only_prompts]
    if not found:
        return _exchanged(batch)
    rows = np.unique([row.roles.number for row in found])
    tokens = sum(row.prompt_tokens for row in found)
    return BatchEvidence(
        f"in {of_rows(rows, batch.rows)} the loss is on {tokens} tokens of the prompt's roles and on hardly any of "
        f"the assistant's",
        rows,
        tuple(prompt_spot(row) for row in found[:3]),
        {"prompt_tokens_trained": tokens},
    )


def _exchanged(batch: Batch) -> BatchEvidence | None:
    told = next((problem for problem in batch.problems if problem.check == "wrong_role_in_loss"), None)
    if told is None:
        return None
    rows = np.array(told.rows, np.int64)
    # Prompts for reinforcement learning end with the user too, and some begin with a greeting.
    return BatchEvidence(f"the conversations of {of_rows(rows, batch.rows)} {told.summary}", rows, severity="warning")
