"""Prompts for generation stop before the assistant's turn is opened."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.tokenizer import Tokenizer
from mldebug_mcp.errors import is_failure
from mldebug_mcp.symptoms.batch.registry import BatchEvidence, batch_check, of_rows

_QUESTION = "Where is the river?"


@batch_check(
    severity="error",
    why="The model must write the marker of its own turn first: it goes on with the user's words, or stops.",
    fix="tokenizer.apply_chat_template(messages, add_generation_prompt=True) for every prompt that is generated from.",
    fixes={"vLLM": "llm.chat adds it; with llm.generate render the prompt yourself."},
    quotes=("unsloth_chat_template", "transformers_template_special_tokens"),
    purposes=("generation",),
)
def generation_prompt_missing(batch: Batch) -> BatchEvidence | None:
    """A prompt ends with a turn of the user or of a tool, and the template would open the assistant's after it.

    Not this when: the template opens no turn, or closes none of the user's (Mistral's); the prompt ends within an
    assistant's turn, to be continued; rows without labels may be something else than prompts, as long as nobody says
    what they are for.
    """
    closing, opening = ("", "") if batch.tokenizer is None else _markers(batch.tokenizer)
    if not closing or not opening:
        return None
    named = {side.name for side in batch.sides if side.name == "prompt" or batch.purpose_given}
    found = [row for row in batch.roles if row.side.name in named and _stops_short(row.text, closing, opening)]
    if not found:
        return None
    rows = np.unique([row.number for row in found])
    which = of_rows(rows, batch.rows)
    return BatchEvidence(
        f"the prompts of {which} end with a closed turn and do not open the assistant's, {opening}", rows
    )


def _markers(tokenizer: Tokenizer) -> tuple[str, str]:
    """Return what the chat template writes after a question, and what it adds to open the answer; "" for nothing."""
    if tokenizer.template is None:
        return "", ""
    try:
        closed, opened = (
            tokenizer.render([{"role": "user", "content": _QUESTION}], add_generation_prompt=add)
            for add in (False, True)
        )
    except BaseException as error:
        if not is_failure(error):
            raise
        return "", ""
    return closed.rpartition(_QUESTION)[2].strip(), opened.removeprefix(closed).strip()


def _stops_short(text: str, closing: str, opening: str) -> bool:
    """Whether a text ends with a closed turn that is not the assistant's."""
    before, found, after = text.rstrip().rpartition(closing)
    return bool(found) and not after and opening not in before.rpartition(closing)[2]
