"""The configuration puts rows of like length into one batch."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom


@symptom(
    sources=("alpaca_lora",), not_for=("grpo", "ppo", "rl", "boosting"), whole_run=True, background=0.05, as_chosen=True
)
def rows_grouped_by_length(run: Run) -> Evidence | None:
    """The configuration puts rows of like length into one batch, so that the loss goes with the length.

    Not this when: the setting is off; where it is not given it cannot be told.
    """
    grouped = run.settings.flag("group_by_length")
    if grouped is None:
        raise CannotTell("the configuration does not say whether rows are grouped by length")
    return Evidence("the configuration sets group_by_length to true", values={"grouped": 1}) if grouped else None
