"""Does the evaluation loss lie far below the training loss, and did it come there as rows were seen again?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.evaluation import Compared, compared, refuse_sums_of_epochs
from mldebug_mcp.measure.quality import all_zero
from mldebug_mcp.measure.scale import predicts_tokens
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.symptoms.readings import outcome_of
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.symptoms.telling import by_outcome, first_seen, told
from mldebug_mcp.text import figure

FAR_BELOW, FROM_THE_START, GROWN, OFTEN = 0.65, 0.35, 0.7, 0.9
"""Of the training loss: below the first, and the third times its share at the first evaluation, or below the second in
any case; at this share of the later evaluations. Chosen: dropout and augmentation cost a third from the start."""
FAR_BELOW_OF_TOKENS, GAP_OF_TOKENS = 0.85, 0.5
"""The same of language models, where the gap is this many nats. Chosen: they train with little dropout."""
LEAST_GAP, SHARE_OF_START = 0.05, 0.08
"""Nats, and of the first training loss: of a loss near zero half is nothing. Chosen: by hand."""
BESIDE = 0.95
"""Of the training loss: from there on an evaluation was beside it at first. Chosen: within the scatter of batches."""
TIMES_OF_TOKENS = 2.0
"""Times the evaluation loss, at every evaluation of a language model. Chosen: dropout moves the two by tenths."""
STAYS, BELOW, LAGS_ALWAYS, APART, FARTHER = 0.75, 1.17, 1.12, 0.08, 1.2
"""Of its first level, what training keeps; times the evaluation loss, typically and always; apart by that share of the
first loss, and times as far as at first. Fitted: on label noise in benchmarks/faults, no healthy run has it."""
LEAST_LAGGING, LEAST = 8, 3
"""Evaluations: sound detectors lag for five; of a multiple. Chosen: beyond that."""
MIXED = ("mixup", "mixup_alpha", "cutmix", "cutmix_alpha", "label_smoothing", "label_smoothing_factor", "smoothing")
"""Settings of training, in timm's words and others', that evaluation goes without."""
NOT_IN_TOKENS = ("supervised", "diffusion", "boosting")
_FOLLOWS = ("loss_falls_back", "loss_scale_suspicious")


def _evidence(both: Compared, what: str, since: float) -> Evidence:
    return Evidence(
        f"eval_loss is {figure(both.eval_level)} where the training loss is {figure(both.train_level)} (medians of the "
        f"later half of {len(both.steps)} evaluations){what}; training began at {figure(both.start)}",
        steps=(since,),
        values={"start": both.start, "train": both.train_level, "eval": both.eval_level},
    )


def _share(both: Compared) -> float:
    """Return the evaluation loss as a share of the training loss at the first evaluation, 0 where that has no sense."""
    return float(both.evaluation[0] / both.train[0]) if both.train[0] > 0 else 0.0


def eval_below_train(run: Run, both: Compared) -> Evidence | None:
    """The evaluation loss falls far below the training loss, and stays there.

    Not this when: dropout, augmentation or an easier set put it there from the first evaluation on; the training loss
    is a sum, over micro-batches (`loss_scale_suspicious`) or over the batches of an epoch.
    """
    refuse_sums_of_epochs(run)
    ratio = both.evaluation[both.later] / both.train[both.later]
    gap = median((both.train - both.evaluation)[both.later])
    limit = max(min(FAR_BELOW, GROWN * _share(both)), FROM_THE_START)
    if predicts_tokens(run) and gap >= GAP_OF_TOKENS:
        limit = FAR_BELOW_OF_TOKENS
    if not 0 <= median(ratio) < limit or gap < max(LEAST_GAP, SHARE_OF_START * both.start):
        return None
    # Where training still falls fast, what it has come to by an evaluation is below its mean since the one before.
    loss = run["loss"].finite
    nearest = loss.value[np.searchsorted(loss.step, both.steps[both.later], side="right") - 1]
    if (ratio < 1).mean() < OFTEN or median(both.evaluation[both.later] / nearest) >= limit:
        return None
    return _evidence(both, "", float(both.steps[both.later][0]))


def eval_below_grows(both: Compared) -> Evidence | None:
    """Evaluation was beside the training loss at first, and has come far below it since.

    Not this when: it was below from the first evaluation on, as with dropout or an easier set.
    """
    share = _share(both)
    said = f", and was {figure(share)} times it at first"
    return _evidence(both, said, float(both.steps[0])) if share >= BESIDE else None


def train_far_above_eval(run: Run, both: Compared) -> Evidence | None:
    """A language model's training loss is more than twice its evaluation loss at every evaluation.

    Both are nats per token, if they are computed alike over rows alike. Not this when: it comes about in training.
    """
    if run.kind in NOT_IN_TOKENS or not predicts_tokens(run):
        raise CannotTell("it is not known that this run trains a language model")
    if len(both.steps) < LEAST or not (both.evaluation > 0).all():
        raise CannotTell(f"{LEAST} evaluations above zero are needed")
    times = both.train / both.evaluation
    said = f", {figure(times.min())} to {figure(times.max())} times it"
    return _evidence(both, said, float(both.steps[0])) if float(times.min()) >= TIMES_OF_TOKENS else None


def train_lags_eval(run: Run, both: Compared) -> Evidence | None:
    """The training loss stays near where it began, while the evaluation loss falls well below it.

    Not this when: the training loss falls too (`eval_below_train`); labels are mixed or smoothed, as configured; the
    evaluation set is easier from the first evaluation on.
    """
    if any(run.setting(name) for name in MIXED):
        raise CannotTell("labels are mixed or smoothed, which keeps the training loss up")
    if len(both.steps) < LEAST_LAGGING or not (both.evaluation > 0).all():
        raise CannotTell(f"{LEAST_LAGGING} evaluations above zero are needed")
    times = both.train / both.evaluation
    typical = median(times[both.later])
    apart = both.train_level - both.eval_level > APART * both.start and both.train_level >= STAYS * both.start
    if not apart or typical <= BELOW or float(times[both.later].min()) <= LAGS_ALWAYS:
        return None
    farther = typical - 1 >= FARTHER * (float(times[0]) - 1)
    return _evidence(both, ", near its start", float(both.steps[both.later][0])) if farther else None


@question(
    outcome_of(eval_below_train, 0.05, "kapoor_leakage", as_chosen=True, follows=_FOLLOWS),
    outcome_of(eval_below_grows, 0.15, "kapoor_leakage", of="eval_below_train", as_chosen=True, follows=_FOLLOWS),
    outcome_of(
        train_far_above_eval,
        0.02,
        "hf_gradacc_blog",
        of="eval_below_train",
        as_chosen=True,
        follows=("loss_scale_suspicious", "loss_divergence", "loss_nonfinite"),
    ),
    outcome_of(train_lags_eval, 0.01, follows=_FOLLOWS),
    needs=("eval_loss", "loss"),
    not_for=("grpo", "ppo", "rl", "preference"),
    points=2,
    whole_run=True,
)
def eval_below(run: Run) -> Answers:
    """Tell a training loss that cannot be fitted from an evaluation that is too good."""
    if all_zero(run["eval_loss"]):
        raise CannotTell("the evaluation loss is zero at every evaluation, and tells nothing")
    both = compared(run, 1)
    times = told(by_outcome((train_far_above_eval,), run, both))
    if isinstance(said := times.get("train_far_above_eval"), Evidence):
        return {"eval_below_train": said, **times}
    answers = first_seen(by_outcome((train_lags_eval, eval_below_train), run, both))
    return {**answers, **times, **told(by_outcome((eval_below_grows,), both))}
