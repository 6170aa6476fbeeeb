"""Evaluations that jump: by how much, and whether the weights can be why."""

from __future__ import annotations

from functools import partial

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.evaluation import evaluation_losses
from mldebug_mcp.measure.noise_by_rate import noise_by_rate
from mldebug_mcp.measure.quality import quality_metrics
from mldebug_mcp.measure.scale import predicts_tokens
from mldebug_mcp.measure.statistics import last_decimal, median
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.symptoms.ways import said_by
from mldebug_mcp.text import figure

LEAST = 8
"""Evaluations. Chosen: fewer show no typical change."""
SHARE, SHARE_OF_TOKENS, SHARE_LEVEL = 0.25, 0.08, 0.3
"""Typical change from one evaluation to the next, as a share of the level, at least of the third up to 1; of
the loss of a language model. Chosen: means over thousands of tokens of a random subset move by 1 or 2 %."""
RANDOM = 0.5
"""Half the mean squared change over the variance. Chosen: half way between a trend and pure chance."""
KEPT, OF_LEVEL = 0.3, 0.01
"""Share of its noise that an evaluation keeps at a tenth of the rate, and its size there, of the level. Fitted:
networks with dropout or batch statistics there keep a third and more, 1.2 to 4 % of the level; others up to 0.5 %."""
DECIMALS = 4.0
"""Units of the last printed decimal. Chosen: less is rounding."""

FLICKERS = Outcome(
    "eval_metric_flickers",
    """A metric or loss of evaluation jumps up and down from one evaluation to the next without a trend.

    By a quarter of its level, a language model's loss by 8 %. Not this when: it has a trend, however noisy; the jumps
    are small against its level; it is the return of an RL agent. Small evaluation sets make healthy runs flicker.""",
    background=0.03,
    as_chosen=True,
    follows=("loss_above_start", "loss_divergence", "loss_nonfinite"),
)
STAYS = Outcome(
    "eval_noise_stays",
    """The evaluation loss jumps as much at the end, where the learning rate has fallen tenfold, as it did at the peak.

    What weights do shrinks with the rate, so the evaluation itself draws by chance. Not this when: the noise goes with
    the rate; it is below 1 % of the level, as over random subsets of many rows; the rate stays up.""",
    background=0.15,
    as_chosen=True,  # subsets are drawn anew on purpose, too
    of=FLICKERS.id,
)


@question(FLICKERS, STAYS, not_for=("grpo", "ppo", "rl"), whole_run=True)
def eval_noise(run: Run) -> Answers:
    """Look at the changes from one evaluation to the next, of losses and of scores."""
    stays, whole = said_by(partial(_stays, run)), said_by(partial(_flickers, run))
    seen = stays if isinstance(stays, Evidence) and not isinstance(whole, Evidence) else whole
    return {name: one for name, one in {FLICKERS.id: seen, STAYS.id: stays}.items() if one is not None}


def _flickers(run: Run) -> Evidence | None:
    series = [one.finite for one in _measured(run)]
    series = [one for one in series if len(one) >= LEAST]
    if not series:
        raise CannotTell(f"no evaluation loss or metric has {LEAST} finite values")
    found = [(one, *_flicker(one)) for one in series]
    found = [one for one in found if one[1] > _limit(run, one[0]) and one[2] > RANDOM]
    if not found or (2 * len(found) < len(series) and not any(one[0].name == "eval_loss" for one in found)):
        return None
    one, typical, chance = max(found, key=lambda item: item[1])
    return Evidence(
        f"{one.name} changes by {typical:.0%} of its level from one evaluation to the next (median of {len(one) - 1}; "
        f"between {figure(float(one.value.min()))} and {figure(float(one.value.max()))}) without a trend",
        steps=(float(one.step[0]),),
        values={"typical_change": typical, "randomness": chance, "metrics": len(found)},
    )


def _measured(run: Run) -> list[Series]:
    found: list[Series] = []
    for find in (evaluation_losses, quality_metrics):
        try:
            found += find(run)
        except CannotTell:
            continue
    return found


def _limit(run: Run, series: Series) -> float:
    return SHARE_OF_TOKENS if series.name == "eval_loss" and predicts_tokens(run) else SHARE


def _flicker(series: Series) -> tuple[float, float]:
    """Return the typical change as a share of the level, and how random the curve is, over its later three quarters."""
    values: Floats = series.value[len(series) // 4 :]
    level = median(np.abs(values))
    if float(np.abs(values).max()) <= 1:
        level = max(level, SHARE_LEVEL)
    if not level:
        return 0.0, 0.0
    variance, change = float(np.var(values)), np.diff(values)
    return median(np.abs(change)) / level, float(np.mean(change**2)) / (2 * variance) if variance else 0.0


def _stays(run: Run) -> Evidence | None:
    rate = next((one for one in run.with_role(Quantity.LEARNING_RATE)), None)
    if rate is None:
        raise CannotTell("not logged: the learning rate")
    evaluation = evaluation_losses(run)[0].finite
    noise = noise_by_rate(evaluation, rate)
    if noise is None:
        raise CannotTell("the learning rate does not fall tenfold, or there are few evaluations before and after")
    least = max(OF_LEVEL * abs(noise.level), DECIMALS * last_decimal(evaluation.value))
    if noise.low < least or noise.kept < KEPT:
        return None
    return Evidence(
        f"{evaluation.name} scatters by {figure(noise.low)} about {figure(noise.level)} at the last {noise.count} "
        f"evaluations, from {run.step_name} {figure(noise.since)} on, where the learning rate is "
        f"{figure(noise.rate_low)}, and by {figure(noise.high)} where it was {figure(noise.rate_high)}",
        steps=(noise.since,),
        values={"noise": noise.low, "noise_before": noise.high, "level": noise.level},
    )
