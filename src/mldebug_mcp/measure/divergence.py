"""How far a policy is from its reference, or from the policy before an update, against what is usual."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Run, Series

TO_REFERENCE = 2.0
"""Axolotl, for GRPO: 0 to 0.5 is healthy, above 2 the policy has gone too far. Per token."""
WHOLE_TEXT = 40.0
"""Nats per completion, over whose tokens TRL's PPO sums. Chosen: well above the 6 or so that its adaptive controller
aims at (remote_gpu_trainer)."""
PER_UPDATE = 0.1
"""Nats, of one update. Chosen: between what Schulman calls small, 0.01, and really big, 10 (schulman_nuts_talk)."""
LEAST_RECORDS = 5
"""Records of a divergence without which it is not known that a policy stays near. Chosen: by hand."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """A divergence as logged.

    Args:
        series: Its finite values, of which there is at least one.
        what: From what the policy diverges.
        limit: What it exceeds only where something is wrong.
        of_update: Whether it is that of one update.
        summed: Whether it is summed over the tokens of a completion.
    """

    series: Series
    what: str
    limit: float
    of_update: bool
    summed: bool


def divergences(run: Run) -> list[Divergence]:
    """Return the divergences that a run logs, that from the reference first; in classic RL there is no reference."""
    summed, agent = run.kind == "ppo", run.kind == "rl"
    to_reference = WHOLE_TEXT if summed else PER_UPDATE if agent else TO_REFERENCE
    limits = {"kl": to_reference, "approx_kl": PER_UPDATE, "loss_kl": PER_UPDATE}
    found = []
    for name, limit in limits.items():
        if name in run and len(series := run[name].finite):
            of_update = limit == PER_UPDATE
            what = "of an update" if of_update else "to the reference"
            found.append(Divergence(series, what, limit, of_update, summed and not of_update))
    return found


def stays_near(run: Run) -> bool:
    """Say whether the policy is known to stay near: enough is logged, and not one record exceeds its limit."""
    logged = divergences(run)
    return bool(logged) and all(
        len(one.series) >= LEAST_RECORDS and float(one.series.value.max()) <= one.limit for one in logged
    )


def cost(run: Run, kl: float) -> float | None:
    """Return what a divergence from the reference costs in reward, by the coefficient in the settings."""
    beta = run.setting("beta")
    return None if beta is None or not np.isfinite(beta) else beta * kl
