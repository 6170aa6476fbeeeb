"""Do the settings of a policy's training let it learn at all?"""

from __future__ import annotations

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.text import figure

SHORT = 0.1
"""A discount that looks ahead by less than this share of an episode; one that looks ahead by two steps is short
whatever the episode. Chosen: by hand."""
LEAST_EPISODE = 10.0
"""Steps that a typical episode must have. Chosen: shorter ones, as in bandits, need no looking ahead."""


@question(
    Outcome(
        "discount_above_one",
        """The discount of future rewards is above 1, so that values grow with each backup.

        Not this when: it is 1, as in episodes that end.
        """,
        background=0.001,
        as_chosen=True,
    ),
    Outcome(
        "discount_low",
        """The discount of future rewards looks ahead by less than a tenth of an episode, and by two steps at most.

        Not this when: episodes are short, as in bandits; their length is not logged. The bounds were chosen by hand.
        """,
        background=0.01,
        as_chosen=True,
    ),
    Outcome(
        "entropy_bonus_negative",
        """The coefficient of the entropy bonus is below zero: the policy is rewarded for being sure.

        Not this when: it is zero or above.
        """,
        background=0.004,
        as_chosen=True,
    ),
    whole_run=True,
)
def policy_settings(run: Run) -> Answers:
    """Judge the discount and the sign of the entropy bonus of an agent."""
    if run.kind not in ("rl", "ppo"):
        raise CannotTell("judged in reinforcement learning only")
    discount, bonus = run.setting("gamma"), run.setting("ent_coef")
    if discount is not None and discount > 1:
        return {"discount_above_one": Evidence(f"the discount is {figure(discount)}", values={"gamma": discount})}
    if bonus is not None and bonus < 0:
        summary = f"the entropy bonus has the coefficient {figure(bonus)}"
        return {"entropy_bonus_negative": Evidence(summary, values={"ent_coef": bonus})}
    unknown: dict[str, Evidence | CannotTell] = {}
    if bonus is None:
        unknown["entropy_bonus_negative"] = CannotTell("the entropy bonus is not in the configuration")
    if discount is None:
        reason = CannotTell("the discount is not in the configuration")
        return {**unknown, "discount_above_one": reason, "discount_low": reason}
    low = _looks_ahead(run, discount)
    if isinstance(low, Evidence):
        return {"discount_low": low}
    return unknown if low is None else {**unknown, "discount_low": low}


def _looks_ahead(run: Run, discount: float) -> Evidence | CannotTell | None:
    """Compare the steps that a discount looks ahead, 1 / (1 - discount), with the length of an episode."""
    length = next(run.with_role(Quantity.EPISODE_LENGTH, phase="train"), None)
    if length is None or not len(length.finite):
        return CannotTell("the length of episodes is not logged")
    typical, horizon = median(length.finite.value), 1 / (1 - discount) if discount < 1 else float("inf")
    if horizon > 2 or typical < LEAST_EPISODE or horizon >= SHORT * typical:
        return None
    return Evidence(
        f"a discount of {figure(discount)} looks ahead by {figure(horizon)} steps; an episode has {figure(typical)}",
        values={"gamma": discount, "horizon": horizon, "episode": typical},
    )
