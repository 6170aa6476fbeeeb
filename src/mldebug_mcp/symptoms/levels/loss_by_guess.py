"""A loss that rests where an answer that says nothing has it: a uniform guess, a constant, one embedding for all."""

from __future__ import annotations

import math
import re
from fnmatch import fnmatch

import numpy as np

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.answers import has_settled, no_better_than_the_mean, nothing_right
from mldebug_mcp.measure.beginning import PASSES, epoch_at
from mldebug_mcp.measure.quality import ACCURACIES, as_shares
from mldebug_mcp.measure.scale import uniform_loss
from mldebug_mcp.measure.statistics import end_level, median, start_level
from mldebug_mcp.symptoms.levels.loss_scale_suspicious import loss_scale_suspicious
from mldebug_mcp.symptoms.levels.loss_slow import creeps_below
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure

NEAR = 0.03
"""Within this share of ln(n) the loss is that of a guess. Chosen: unigram statistics of text lie far below."""
EXACTLY, FROM_TWO = 0.01, 0.2
"""Nats off ln 2 where the number of classes is not known, and share of it off which it began. Chosen: a loss that falls
from far may come by."""
NEAR_BY_ACCURACY = 0.08
"""... of ln 2 where the accuracy keeps to a half. Chosen: labels that are noise leave a loss a little above it."""
KNOWS = 0.2
"""Share below a guess of an evaluation that knows more. Chosen: whatever dropout adds in training."""
LEAST_ACCURACIES = 4
"""Chosen: fewer may agree by chance."""
MOST_ABOVE, MOST_OF_GUESS = 1.5, 3.0
"""Times its start and times a guess up to which a loss counts as a guess. Chosen: higher ones have blown up."""
BY_CHANCE = 0.05
"""So much more than a guess may be right. Chosen: on a small set."""
HALF = 0.02
"""So far from a half is the accuracy of a guess between two classes. Chosen: over some thousand rows."""
LEAST_RECORDS, STANDS = 10, 0.01
"""Fewer records tell only where nearly all are within this share of a guess. Chosen: means of epochs are."""
LEAST = 8
"""Records of the loss of an embedding. Chosen: half of them are a level."""
TRIPLET = ("*triplet*",)
CONTRASTIVE = ("*contrastive*", "*infonce*", "*info_nce*", "nce", "nce_loss", "*_nce_loss", "*nt_xent*", "*ntxent*")
USUAL_MARGINS = (0.1, 0.2, 0.3, 0.5, 1.0, math.log(2))
"""Source: triplet_reid_issue_30; ln 2 is that of the soft margin, ln(1 + exp(0))."""
USUAL_BATCHES = tuple(2**power for power in range(3, 17))
"""Chosen: from 8 to 65,536."""
AT_LEVEL, SPREAD = 0.005, 0.01
"""How near to it an embedding's loss stays, and how little it varies. Chosen: hard triplets go up and down about it."""
GONE, LEFT = 0.02, 0.25
"""Nats, and share of its highest, below which a divergence from the prior is gone. Chosen: a code in use has more."""
_DIVERGENCE = re.compile(r"(?:train[_/])?(?:vae_)?kl(?:d|_loss|_div(?:ergence)?(?:_loss)?)?")
_RECONSTRUCTION = re.compile(r"recon|(?:^|_)rec(?:_|$)|vae_r_loss")


def loss_at_chance(run: Run) -> Evidence | None:
    """The training loss ends at ln(classes or tokens), that of a uniform guess, or up to three times that.

    Or it rests while no answer is ever right, or R² never shows more than the mean of the targets. Not this when: it is
    summed or has risen; evaluation is better.
    """
    loss = run["loss"].finite
    if (of_the_mean := no_better_than_the_mean(run)) is not None:
        return Evidence(
            f"{of_the_mean.name} is {figure(median(of_the_mean.value))} (median) and never above "
            f"{figure(of_the_mean.value.max())} in {len(of_the_mean)} evaluations, and the mean of the targets has 0",
            steps=(float(of_the_mean.step[0]),),
            values={"end": end_level(loss.value), "r2": median(of_the_mean.value)},
        )
    wrong = nothing_right(run)
    if wrong is not None and has_settled(loss):
        return _never_right(run, loss, wrong)
    start, end = start_level(loss.value), end_level(loss.value)
    known = uniform_loss(run)
    uniform = known if known is not None else _of_two(run, start, end)
    near = NEAR if known is not None else NEAR_BY_ACCURACY
    _refuse_few(run, loss, end, uniform)
    if abs(end - uniform) > near * uniform and (known is None or not _worse(run, start, end, known)):
        return None
    if _evaluation_knows_more(run, uniform) or creeps_below(run, uniform):
        return None
    return Evidence(
        f"loss is {figure(end)} at the end, {run.place(loss.step[-1])}; a uniform guess has "
        f"{figure(uniform)} = ln({math.exp(uniform):.0f})",
        steps=(float(loss.step[0]),),
        values={"end": end, "uniform_guess": uniform},
    )


def _never_right(run: Run, loss: Series, wrong: Series) -> Evidence:
    end = end_level(loss.value)
    return Evidence(
        f"loss is {figure(end)} at the end, {run.place(loss.step[-1])}, and has hardly moved "
        f"for three quarters of the log; {wrong.name} shows no right answer in {len(wrong)} evaluations",
        steps=(float(wrong.step[0]),),
        values={"end": end},
    )


def _refuse_few(run: Run, loss: Series, end: float, uniform: float) -> None:
    """Raise CannotTell for few records, unless they are means of epochs that stand, or of a model at rest."""
    if len(loss) >= LEAST_RECORDS:
        return
    of_epochs = run.step_name == "epoch" and bool(np.all(loss.step == np.floor(loss.step)))
    stand = bool(np.all(np.abs(loss.value[1:] - uniform) <= STANDS * uniform))
    late = (epoch_at(run, float(loss.step[0])) or 0.0) > PASSES and float(np.ptp(loss.value)) <= STANDS * end
    if not late and not (of_epochs and stand):
        raise CannotTell(f"fewer than {LEAST_RECORDS} records, which do not stand at the loss of a guess")


def _worse(run: Run, start: float, end: float, uniform: float) -> bool:
    """Say whether a loss ends above that of a guess, and neither has blown up nor is a sum."""
    if not uniform < end < MOST_OF_GUESS * uniform:
        return False
    fell = end < start * (1 + NEAR) or (end < MOST_ABOVE * start and _guesses(run, uniform))
    return fell and loss_scale_suspicious(run) is None


def _accuracies(run: Run) -> Floats:
    """Return the accuracies that are logged as shares, those of evaluation if there are enough of them."""
    found = [as_shares(run[name].finite.value) for name in ACCURACIES if name in run]
    return next((one for one in found if len(one) >= LEAST_ACCURACIES), np.empty(0))


def _guesses(run: Run, uniform: float) -> bool:
    """Say whether the accuracy stays that of a guess, however rough the loss."""
    right, guess = _accuracies(run), math.exp(-uniform)
    return len(right) > 0 and float(right.max()) <= guess + BY_CHANCE * (1 - guess)


def _evaluation_knows_more(run: Run, uniform: float) -> bool:
    evaluation = run["eval_loss"].finite.value if "eval_loss" in run else np.empty(0)
    return len(evaluation) > 0 and float(evaluation[-1]) < (1 - KNOWS) * uniform


def _of_two(run: Run, start: float, end: float) -> float:
    """Return ln 2 where the loss stands there, or the accuracy at a half, from start to end.

    Among how many others a model guesses neither a loss nor an accuracy tells: 2.08 is near ln 8 in ten classes too.
    """
    two, right = math.log(2), _accuracies(run)
    halves = len(right) > 0 and float(np.abs(right - 1 / 2).max()) <= HALF
    if (abs(end - two) <= EXACTLY and abs(start - two) <= FROM_TWO * two) or (
        halves and abs(start - end) <= STANDS * end
    ):
        return two
    raise CannotTell("the number of classes or tokens is not known")


def loss_at_collapse(run: Run) -> Evidence | None:
    """A triplet loss stays at its margin, a contrastive one at ln(candidates), or a VAE's divergence vanishes.

    So it is where all inputs have one embedding. Not this when: the loss varies about it, or goes on from there.
    """
    found = None
    for name, series in run.series.items():
        levels, vanishing, one = _levels(run, name), _is_divergence(run, name), series.finite
        if not (levels or vanishing) or len(one) < LEAST:
            continue
        found = one
        later = one.value[len(one) // 2 :]
        level = median(later)
        if vanishing:
            if _vanishes(one.value, later):
                return _collapsed(run, one, later, 0.0)
            continue
        beside = next((each for each in levels if abs(level - each) <= AT_LEVEL * each), None)
        if beside is not None and level > 0 and float(np.ptp(later)) <= SPREAD * level:
            return _collapsed(run, one, later, beside)
    if found is None:
        raise CannotTell(f"no loss of an embedding has {LEAST} finite values")
    return None


def _is_divergence(run: Run, name: str) -> bool:
    """Say whether a metric is the divergence of a variational autoencoder's code from its prior."""
    if _DIVERGENCE.fullmatch(name.lower()) is None:
        return False
    return any(_RECONSTRUCTION.search(other.lower()) for other in run.series)


def _vanishes(value: Floats, later: Floats) -> bool:
    highest = float(value.max())
    gone = float(later.min()) >= 0 and float(later.max()) <= min(GONE, LEFT * highest)
    return highest > 0 and gone and float(value[-1]) <= 2 * median(later)


def _levels(run: Run, name: str) -> tuple[float, ...]:
    """Return the losses that equal embeddings would have, none if the metric is not the loss of an embedding."""
    lowered = name.lower()
    if any(fnmatch(lowered, pattern) for pattern in TRIPLET):
        margin = run.setting("margin")
        return (margin,) if margin else USUAL_MARGINS
    if any(fnmatch(lowered, pattern) for pattern in CONTRASTIVE):
        rows = run.setting("batch_size") or run.setting("per_device_train_batch_size")
        # Against the rows of the other view, or against all rows of both views but itself (SimCLR).
        return tuple(math.log(each) for size in ((rows,) if rows else USUAL_BATCHES) for each in (size, 2 * size - 1))
    return ()


def _collapsed(run: Run, loss: Series, later: Floats, beside: float) -> Evidence:
    first = float(loss.step[len(loss) - len(later)])
    what = "equal embeddings have" if beside else f"it was {figure(loss.value.max())}, and equal codes have"
    return Evidence(
        f"{loss.name} is {figure(median(later))} from {run.place(first)} to the end, between "
        f"{figure(later.min())} and {figure(later.max())}: {what} {figure(beside)}",
        steps=(first,),
        values={"level": median(later), "of_equal_embeddings": beside, "spread": float(np.ptp(later))},
    )
