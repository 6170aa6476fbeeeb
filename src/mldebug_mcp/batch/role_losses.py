"""How much of each role's words the loss is computed on, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.ragged import Bools
from mldebug_mcp.batch.roles import RowRoles, Turn
from mldebug_mcp.batch.templates import ASSISTANT, PROMPT_ROLES

MOST = 0.5
"""Share of a turn's words that have to be trained on for the turn to count as trained. Chosen by hand: a mask may be
off by a token or two, and nobody trains on half a turn on purpose."""


@dataclass(frozen=True, slots=True)
class RoleLoss:
    """A row whose turns and trained tokens are known.

    Args:
        roles: The row.
        prompts_trained: Turns of the prompt's roles that are trained on, as token places.
        only_prompts: Whether no turn of the assistant is trained on, though there is one.
        prompt_tokens: Trained tokens in those turns.
    """

    roles: RowRoles
    prompts_trained: tuple[Turn, ...]
    only_prompts: bool
    prompt_tokens: int


def role_losses(batch: Batch) -> Iterator[RoleLoss]:
    """Yield the decoded rows in which both turns and the loss are known."""
    for row in batch.roles:
        if row.side.trained is None or not row.turns or row.side.name == "prompt":
            continue
        offset = int(row.side.ids.offsets[row.index])
        trained = row.side.trained[offset : int(row.side.ids.offsets[row.index + 1])]
        prompts = tuple(turn for turn in row.turns if turn.role in PROMPT_ROLES and _share(trained, turn) > MOST)
        answers = [_share(trained, turn) for turn in row.turns if turn.role == ASSISTANT and turn.stop > turn.start]
        tokens = sum(int(trained[turn.start : turn.stop].sum()) for turn in prompts)
        yield RoleLoss(row, prompts, bool(answers) and max(answers) <= MOST, tokens)


def _share(trained: Bools, turn: Turn) -> float:
    words = trained[turn.start : turn.stop]
    return float(words.mean()) if len(words) else 0.0
