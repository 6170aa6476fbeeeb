"""How far above the training loss the evaluation loss lies in the later half, and how far that one has come down."""

from __future__ import annotations

from functools import partial

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.statistics import end_level, median
from mldebug_mcp.symptoms.beginning import PASSES, epoch_at
from mldebug_mcp.symptoms.evaluation import begins_late, compared, refuse_another_scale
from mldebug_mcp.symptoms.quality import as_share, as_shares, ranking_metrics
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.symptoms.rising import is_slight, rise_of_evaluation
from mldebug_mcp.symptoms.ways import first_seen
from mldebug_mcp.text import figure

FACTOR = 1.4
SHARE_OF_START = 0.1
"""The evaluation loss is this many times the training loss, and both the gap and the training loss are at least this
share of the first loss. No healthy run of benchmarks/faults comes near. Chosen by hand."""
IMPROVED, STILL_LOW, FACTOR_OF_IMPROVED = 0.85, 1.05, 1.9
"""... or this many times where evaluation has come below the first share of the first loss, and is within the second of
its lowest: what is learnt serves held-out rows too, and training rows are known better, as in most sound runs on tables
and with boosted trees. Chosen on small runs of Keras and XGBoost."""
MUCH_IMPROVED, FACTOR_OF_MUCH_IMPROVED = 0.35, 3.0
"""... or this many times where it has come below this share: so classifiers of pictures end. Chosen by hand."""
GAINED, AT_BEST, GOOD = 0.02, 0.005, 0.85
"""... or where the accuracy of evaluation is so much above the first one, so near to its best, and good. By hand."""
LEAST_EVALUATIONS = 4
ABOVE = 1.25
"""Times the loss at the beginning, for evaluation to be above that. Chosen by hand."""
GONE, LEFT = 0.05, 0.2
"""Of the training loss at first: to less than that it has come, and so far above it the evaluation loss stays. In
benchmarks/faults runs that know their rows by heart come to 0.02, and no healthy one does both. Chosen by hand."""
NEARLY, LEFT_BY_FAR = SHARE_OF_START, 0.4
"""... or to less than that, where the evaluation loss stays farther above it: up to where `eval_gap_wide` begins, whose
gap may be narrower. Chosen by hand."""

FALLS = 0.05
"""Over the later half an evaluation loss that falls by so much does not stay where it is. Chosen by hand."""
SCORE_GAINS = 0.05
"""A score that gains so much, as a share, still gets better. Chosen by hand."""

_RUINS = ("loss_divergence", "loss_nonfinite", "loss_scale_suspicious", "loss_above_start", "eval_learns_nothing")

WIDE = Outcome(
    "eval_gap_wide",
    """The evaluation loss lies far above a training loss that is not near zero, throughout the later half.

    The training rows are not memorised, and held-out ones are far worse nevertheless. Not this when: the training
    loss is near zero, as when a small set is memorised (`eval_gap_grows`, `loss_zero`); both losses fall by the same
    factor all the way, as sums over different numbers of rows do; evaluation has improved, stays at its best, and is
    less than 1.9 times the training loss, or three times if it has improved much.""",
    background=0.01,
    sources=("slavv_37",),
    follows=_RUINS,
    instead=("eval_gap_steady", "eval_bad_from_start"),
)
ABOVE_START = Outcome(
    "eval_above_start",
    """The evaluation loss lies far above the training loss, and above what the training loss was at first.

    Training makes held-out rows worse than no training at all, although the training rows are not memorised.
    Not this when: the training loss is near zero; the evaluation loss stays below where training began.""",
    background=0.1,
    sources=("slavv_37",),
    of=WIDE.id,
    follows=_RUINS,
    instead=("eval_gap_steady", "eval_bad_from_start"),
)
AT_ZERO = Outcome(
    "eval_gap_at_zero",
    """The training loss is near zero, and the evaluation loss stays at a good part of what training began with.

    The training rows are memorised. Not this when: both are near zero; the training loss is still well above zero
    (`eval_gap_wide`). Where the evaluation loss rises too this is unknown, for `eval_gap_grows` says more; so it is
    where it still falls, and where a score of rankings still gets better: their loss depends on how many candidates
    there are.""",
    background=0.01,
    sources=("goodfellow_ch11",),
    follows=("loss_divergence", "loss_nonfinite"),
)


@question(
    WIDE,
    ABOVE_START,
    AT_ZERO,
    needs=("loss", "eval_loss"),
    not_for=("grpo", "ppo", "rl", "preference"),
    whole_run=True,
)
def eval_gap_level(run: Run) -> Answers:
    """Compare the later halves, where training is near zero and where it is not."""
    answers = first_seen({WIDE.id: partial(_wide, run), AT_ZERO.id: partial(_at_zero, run)})
    wide = answers.get(WIDE.id)
    above = _above_start(run, wide) if isinstance(wide, Evidence) else None
    return answers if above is None else {**answers, ABOVE_START.id: above}


def _wide(run: Run) -> Evidence | None:
    if run.kind == "boosting":
        raise CannotTell("trees always know their own rows better")
    both = compared(run, LEAST_EVALUATIONS)
    refuse_another_scale(both.train, both.evaluation)
    begin = epoch_at(run, float(run["loss"].finite.step[0]))
    if begin is not None and begin > PASSES:
        raise CannotTell(f"the log begins at epoch {figure(begin)}: what training began with is not known")
    if begin is None and begins_late(run["loss"]) and begins_late(run["eval_loss"]):
        raise CannotTell(
            f"the log begins at {run.step_name} {figure(run.first_step)}: what training began with is not known"
        )
    start, level, reached = both.start, both.train_level, both.eval_level
    if start > 0 and not (both.evaluation[both.later] > 0).all():
        raise CannotTell("an evaluation loss is not above zero, so there is no ratio to judge")
    improved = start > 0 and level > 0 and both.evaluation[-2:].mean() <= STILL_LOW * both.evaluation.min()
    much = reached < MUCH_IMPROVED * start or _accuracy_grows(run)
    factor = FACTOR_OF_MUCH_IMPROVED if much else FACTOR_OF_IMPROVED
    if improved and reached < min(IMPROVED * start, factor * level):
        return None
    far = (both.evaluation > FACTOR * both.train) & (both.evaluation - both.train > SHARE_OF_START * start)
    if start <= 0 or level < SHARE_OF_START * start or not far[both.later].all():
        return None
    first = float(both.steps[len(far) - int(np.argmin(far[::-1])) if not far.all() else 0])
    return Evidence(
        f"from {run.step_name} {figure(first)} on the evaluation loss is far above the training loss: "
        f"{figure(reached)} and {figure(level)} in the later half of {len(far)} evaluations; training began at "
        f"{figure(start)}",
        steps=(first,),
        values={"eval": reached, "train": level, "start": start, "factor": reached / level},
    )


def _accuracy_grows(run: Run) -> bool:
    """Say whether the accuracy of evaluation has grown and is at its best at the end."""
    accuracy = run["eval_accuracy"].finite.value if "eval_accuracy" in run else np.empty(0)
    if not len(accuracy):
        return False
    shares = as_shares(accuracy)
    first, best, last = float(shares[0]), float(shares.max()), float(shares[-1])
    return last >= max(best - AT_BEST, first + GAINED, GOOD)


def _above_start(run: Run, wide: Evidence) -> Evidence | CannotTell | None:
    if run.kind == "sft":
        return CannotTell("a model that is fine-tuned knows something already, and may forget it")
    if wide.values["eval"] < ABOVE * wide.values["start"]:
        return None
    return Evidence(
        f"the evaluation loss is {figure(wide.values['eval'])} in the later half, where training began at "
        f"{figure(wide.values['start'])} and has come to {figure(wide.values['train'])}",
        steps=wide.steps,
        values=wide.values,
    )


def _at_zero(run: Run) -> Evidence | None:
    both = compared(run, LEAST_EVALUATIONS)
    start, level, reached = both.start, both.train_level, both.eval_level
    rise = rise_of_evaluation(run)
    if rise is not None and not is_slight(run, rise):
        raise CannotTell("the evaluation loss rises, which says more")
    left = LEFT if level < GONE * start else LEFT_BY_FAR
    if not 0 <= level < NEARLY * start or reached - level < left * start:
        return None
    later = both.evaluation[both.later]
    if median(later[-2:]) < (1 - FALLS) * later[0]:
        raise CannotTell(
            "the evaluation loss still falls: rows are learnt by heart, and held-out rows are served by it"
        )
    known = float(both.steps[int(np.argmax(both.train < NEARLY * start))])
    if _still_gains(run, known):
        raise CannotTell("a score of rankings still gets better: its loss may be over more candidates than a batch")
    return Evidence(
        f"loss has come from {figure(start)} to {figure(level)}, while eval_loss is {figure(reached)} (medians of the "
        f"later half of {len(both.steps)} evaluations)",
        steps=(known,),
        values={"start": start, "train": level, "eval": reached},
    )


def _still_gains(run: Run, since: float) -> bool:
    """Say whether a score of rankings, which is best at one, ends clearly above what it was at a step."""
    scores = [one.finite for one in ranking_metrics(run) if len(one.finite) >= LEAST_EVALUATIONS]
    before = [(one, one.at(since)) for one in scores]
    return any(
        then is not None and as_share(end_level(one.value)) - as_share(then) > SCORE_GAINS for one, then in before
    )
