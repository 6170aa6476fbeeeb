"""What a log means beyond its names: conventions that show only when all columns are known.

Each is a function that changes the columns where its convention holds, and says so: those of abbreviations
(`abbreviations`), of times, shares and memory (`units`), of what is called the loss (`losses`), of pairs of answers
(`pairs`), of when an evaluation was made (`evaluations`), and those that one framework alone has (`frameworks`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mldebug_mcp.logs.columns import Columns
from mldebug_mcp.logs.conventions.abbreviations import (
    abbreviations,
    clipped_gradients,
    counters_of_composer,
    episodes_as_ep,
    shares_of_phases,
)
from mldebug_mcp.logs.conventions.evaluations import filtered_nan, held_evaluation, scores_of_evaluation, taking_turns
from mldebug_mcp.logs.conventions.frameworks import BOOSTER, OF_FRAMEWORKS, is_boosted, wandb_export
from mldebug_mcp.logs.conventions.letters import accuracy_beside_loss, objective_alone
from mldebug_mcp.logs.conventions.losses import (
    bare_phases,
    evaluation_of_its_name,
    length_of_completions,
    mean_reward,
    named_loss,
    perplexity_alone,
)
from mldebug_mcp.logs.conventions.pairs import pairs
from mldebug_mcp.logs.conventions.phases import beside_both_losses, of_training_inside
from mldebug_mcp.logs.conventions.units import batch_in_epoch, clock, memory, percentages, rates, time_and_data


@dataclass(frozen=True, slots=True)
class Held:
    """What the conventions that hold for a log say of it.

    Args:
        notes: What was read otherwise than its names say.
        settings: What they tell of the configuration.
    """

    notes: tuple[str, ...]
    settings: Mapping[str, str]


def apply(columns: Columns, choose: Callable[[Mapping[str, int]], str]) -> Held:
    """Apply every convention to the columns of a log (raw name → column), in place.

    Args:
        columns: By the names that they were logged with.
        choose: Returns which run is read, of several by the number of their values.
    """
    wandb_export(columns, choose)
    settings = {BOOSTER: "trees"} if is_boosted(columns) else {}
    notes = tuple(note for convention in _CONVENTIONS if (note := convention(columns)))
    return Held(notes, settings)


_CONVENTIONS: tuple[Callable[[Columns], str | None], ...] = (
    *OF_FRAMEWORKS,
    counters_of_composer,
    episodes_as_ep,
    abbreviations,
    clipped_gradients,
    shares_of_phases,
    time_and_data,
    clock,
    rates,
    percentages,
    memory,
    mean_reward,
    length_of_completions,
    pairs,
    named_loss,
    evaluation_of_its_name,
    bare_phases,
    perplexity_alone,
    objective_alone,
    accuracy_beside_loss,
    beside_both_losses,
    taking_turns,
    held_evaluation,
    of_training_inside,
    scores_of_evaluation,
    batch_in_epoch,
    filtered_nan,
)
