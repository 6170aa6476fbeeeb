"""Evaluations that jump: by how much, and whether the weights can be why."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.noise_by_rate import noise_by_rate
from mldebug_mcp.measure.scale import predicts_tokens
from mldebug_mcp.measure.statistics import end_level, last_decimal, median, positive, start_level
from mldebug_mcp.symptoms.evaluation import evaluation_losses
from mldebug_mcp.symptoms.quality import ACCURACIES, as_shares, quality_metrics
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.symptoms.ways import said_by
from mldebug_mcp.text import figure

LEAST = 8
SHARE, SHARE_OF_TOKENS = 0.25, 0.08
"""Typical change from one evaluation to the next, as a share of the level (of at least 0.3 for a metric up to 1). Means
over thousands of tokens of a random subset move by 1 or 2 %."""
RANDOM, RANDOM_SWING = 0.5, 0.4
"""Half the mean squared change over the variance: 1 for pure chance, near 0 for a trend."""
CHANGE = 0.12
"""Typical change of an accuracy that swings. Over twenty rows, four in five right, it is 0.08."""
FACTOR = 2.0
"""Typical change of a loss that swings: of benchmarks/faults only runs at a hundred times a good rate come there."""
BOTH_WAYS = 2
"""Such changes up, and such changes down: a metric that gets better by leaps goes one way."""
GONE = 0.05
"""Of where training began: a loss below it may double for nothing. All were chosen by hand."""
KEPT, OF_LEVEL = 0.3, 0.01
"""Share of its noise that an evaluation keeps at a tenth of the rate, and its size there, of the level. Small networks
with dropout or batch statistics at evaluation keep a third and more, 1.2 to 4 % of the level; in evaluation mode, also
with batch normalisation, they are left with 0.01 to 0.5 %."""
DECIMALS = 4.0
"""Units of the last printed decimal: less is rounding."""
NOT_POLICIES = ("grpo", "ppo", "rl")
NOT_SWINGING = ("preference", "boosting")

FLICKERS = Outcome(
    "eval_metric_flickers",
    """A metric or loss of evaluation jumps up and down from one evaluation to the next without a trend.

    By a quarter of its level, a language model's loss by 8 %, an accuracy by 0.12; or by as much where the weights
    hardly move as before. Not this when: it has a trend, however noisy; the jumps are small against its level; it is
    the return of an RL agent. By itself it says little: batch normalisation and small evaluation sets make healthy runs
    flicker in their first epochs.""",
    background=0.03,
    as_chosen=True,
    follows=("loss_above_start",),
)
SWINGS = Outcome(
    "eval_metric_swings",
    """From one evaluation to the next much of what was right goes wrong or comes back, while the training loss falls.

    The accuracy of evaluation typically changes by 0.12 or more throughout the later half of the run, or without one
    the loss by a factor of two. Not this when: it settles in the later half; the training loss swings as well; only a
    score over a few rows moves, by a few rows.""",
    background=0.1,
    as_chosen=True,
    of=FLICKERS.id,
    follows=("loss_divergence", "loss_nonfinite", "loss_noisy", "loss_above_start"),
)
TOKENS = Outcome(
    "eval_tokens_flicker",
    """The evaluation loss of a language model changes by 8 % and more from one evaluation to the next, at random.

    In evaluation mode, on a fixed set, the loss per token has hardly any noise. Not this when: it has a trend; training
    itself jumps (`loss_divergence`); training rows are known by heart, and held-out ones are met by chance.""",
    background=0.1,
    as_chosen=True,  # few of the healthy runs that were counted train language models
    of=FLICKERS.id,
    follows=("eval_gap_at_zero", "eval_gap_grows", "eval_gap_wide", "loss_divergence", "loss_nonfinite"),
)
STAYS = Outcome(
    "eval_noise_stays",
    """The evaluation loss jumps as much at the end, where the learning rate has fallen tenfold, as it did at the peak.

    What weights do shrinks with the rate, so the evaluation itself draws by chance: other rows each time, dropout, or
    statistics of shuffled batches. Not this when: the noise goes with the rate; it is below 1 % of the level, as over
    random subsets of many rows; the rate stays up.""",
    background=0.15,
    as_chosen=True,  # subsets are drawn anew on purpose, too
    of=FLICKERS.id,
)


@question(FLICKERS, SWINGS, TOKENS, STAYS, not_for=NOT_POLICIES, whole_run=True)
def eval_noise(run: Run) -> Answers:
    """Look at the changes from one evaluation to the next, of losses and of scores."""
    attributes = {SWINGS.id: _swings, TOKENS.id: _tokens, STAYS.id: _stays}
    told = {name: said_by(partial(judge, run)) for name, judge in attributes.items()}
    whole = said_by(partial(_flickers, run))
    seen = next((one for one in (whole, *told.values()) if isinstance(one, Evidence)), whole)
    return {name: one for name, one in {FLICKERS.id: seen, **told}.items() if one is not None}


def _flickers(run: Run) -> Evidence | None:
    series: list[Series] = []
    for find in (evaluation_losses, quality_metrics):
        try:
            series += [one.finite for one in find(run)]
        except CannotTell:
            continue
    series = [one for one in series if len(one) >= LEAST]
    if not series:
        raise CannotTell(f"no evaluation loss or metric has {LEAST} finite values")
    found = [(one, *_flicker(one)) for one in series]
    found = [item for item in found if item[1] > SHARE and item[2] > RANDOM]
    if not found or 2 * len(found) < len(series):
        return None
    one, typical, chance = max(found, key=lambda item: item[1])
    return Evidence(
        f"{one.name} changes by {typical:.0%} of its level from one evaluation to the next (median of {len(one) - 1}; "
        f"between {figure(float(one.value.min()))} and {figure(float(one.value.max()))}) without a trend",
        steps=(float(one.step[0]),),
        values={"typical_change": typical, "randomness": chance, "metrics": len(found)},
    )


def _tokens(run: Run) -> Evidence | None:
    if not predicts_tokens(run):
        raise CannotTell("it is not known that this run trains a language model")
    evaluation = run["eval_loss"].finite if "eval_loss" in run else None
    if evaluation is None or len(evaluation) < LEAST:
        raise CannotTell(f"the evaluation loss has fewer than {LEAST} finite values")
    typical, chance = _flicker(evaluation)
    if typical < SHARE_OF_TOKENS or chance < RANDOM:
        return None
    return Evidence(
        f"eval_loss changes by {typical:.0%} of its level from one evaluation to the next (median of "
        f"{len(evaluation) - 1}), between {figure(float(evaluation.value.min()))} and "
        f"{figure(float(evaluation.value.max()))}",
        steps=(float(evaluation.step[0]),),
        values={"typical_change": typical, "randomness": chance},
    )


def _flicker(series: Series) -> tuple[float, float]:
    """Return the typical change as a share of the level, and how random the curve is, over its later three quarters."""
    values: Floats = series.value[len(series) // 4 :]
    level = median(np.abs(values))
    if float(np.abs(values).max()) <= 1:
        level = max(level, 0.3)
    return (median(np.abs(np.diff(values))) / level, _randomness(values)) if level else (0.0, 0.0)


def _randomness(curve: Floats) -> float:
    variance = float(np.var(curve))
    return float(np.mean(np.diff(curve) ** 2)) / (2 * variance) if variance else 0.0


def _swings(run: Run) -> Evidence | None:
    if run.kind in NOT_SWINGING:
        raise CannotTell(f"not judged for a run of kind {run.kind}")
    name = next((one for one in (ACCURACIES[0], "eval_loss") if one in run and len(run[one].finite) >= LEAST), None)
    if name is None or "loss" not in run:
        raise CannotTell(f"no accuracy or loss of evaluation has {LEAST} finite values beside a training loss")
    series, loss = run[name].finite, run["loss"].finite.value
    value = series.value
    if name == ACCURACIES[0]:
        value, curve, least = as_shares(value), as_shares(value), CHANGE
    elif positive(value) and median(value) > GONE * start_level(loss) > 0:
        curve, least = np.log(value), math.log(FACTOR)
    else:
        return None
    later = slice(len(curve) // 2, None)
    change = np.diff(curve[later])
    typical = median(np.abs(change))
    if min(np.sum(change > least), np.sum(change < -least)) < BOTH_WAYS or typical < least:
        return None
    if (
        _randomness(curve[later]) < RANDOM_SWING
        or end_level(loss) >= start_level(loss)
        or _leaps(loss[len(loss) // 2 :])
    ):
        return None
    return Evidence(
        f"{name} lies between {figure(float(value[later].min()))} and {figure(float(value[later].max()))} in the later "
        f"half of {len(value)} evaluations, without a trend, while the training loss goes from "
        f"{figure(start_level(loss))} to {figure(end_level(loss))}",
        steps=(float(series.step[later][0]),),
        values={"typical_change": typical, "lowest": float(value[later].min()), "highest": float(value[later].max())},
    )


def _leaps(trained: Floats) -> bool:
    """Say whether the training loss changes by large factors too, beside its trend."""
    if not positive(trained):
        return False
    change = np.diff(np.log(trained))
    return median(np.abs(change - median(change))) > math.log(FACTOR) / 2


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
