"""Evaluation losses that lie far below the training loss."""

from __future__ import annotations

from functools import partial

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.scale import predicts_tokens
from mldebug_mcp.measure.statistics import median, start_level
from mldebug_mcp.symptoms.evaluation import beside_training, compared, refuse_sums_of_epochs
from mldebug_mcp.symptoms.quality import all_zero
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.symptoms.ways import said_by
from mldebug_mcp.text import figure

FAR_BELOW, FROM_THE_START, GROWN = 0.65, 0.35, 0.7
"""The evaluation loss lies far below the training loss if its share of that is under the first number, and under the
third times its share at the first evaluation; or under the second number in any case.

Dropout, augmentation, the lag of a running mean and an easier set put the training loss above the evaluation loss from
the start; memorised rows, or labels that cannot be learnt, do so as training goes on.
"""
FAR_BELOW_OF_TOKENS, GAP_OF_TOKENS = 0.85, 0.5
"""The losses of language models are in nats on one scale and trained with little dropout: half a nat is a wide gap."""
LEAST_GAP = 0.05
"""Nats: below this both are small."""
SHARE_OF_START = 0.08
"""... and below this share of what the loss was at first: of a loss near zero, half is nothing."""
TIMES_AT_FIRST, TIMES_ALWAYS = 5.0, 2.0
"""How many times the evaluation loss the training loss is at first, and at every later evaluation."""
SOLVED = 2.0
"""The first evaluation loss is no more than so many times the lowest: there is nothing left to learn ..."""
FALLS = 2.0
"""... while training learns by this factor more: summed losses fall in step with those of evaluation."""
LEAST_SOLVED = 3
TIMES_OF_TOKENS = 2.0
"""Dropout and other rows move the two apart by tenths. Chosen by hand."""
LEAST_OF_TOKENS = 3
STAYS = 0.75
"""Share of its first level that the training loss keeps."""
BELOW, LAGS_ALWAYS = 1.17, 1.12
"""The training loss is typically this many times the evaluation loss, and at each later evaluation this many."""
APART = 0.08
"""How far apart they are, as a share of the first training loss."""
FARTHER = 1.2
"""How many times farther apart than at the first evaluation: an easier set is easier from the start."""
LEAST_LAGGING = 8
"""In the first epochs of a detector, or with much dropout, training stays behind: real sound runs do for five."""
MIXED = ("mixup", "mixup_alpha", "cutmix", "cutmix_alpha", "label_smoothing", "label_smoothing_factor", "smoothing")
"""Settings of training, in timm's words and others', that evaluation goes without."""
NOT_IN_TOKENS = ("supervised", "diffusion", "boosting")

BELOW_TRAIN = Outcome(
    "eval_below_train",
    """The evaluation loss falls far below the training loss, and stays there.

    Not this when: dropout, augmentation or an easier set put it there from the first evaluation on, unless it was near
    its best then; the training loss is a mean over an epoch of fast progress; it is summed over micro-batches
    (`loss_scale_suspicious`), or perhaps over the batches of an epoch. The factors were chosen by hand.""",
    background=0.05,  # regularisation and a curriculum do it too
    sources=("kapoor_leakage",),
    as_chosen=True,
    follows=("loss_falls_back", "loss_scale_suspicious"),
)
SOLVED_AT_ONCE = Outcome(
    "eval_solved_from_start",
    """The evaluation loss is near its best from the first evaluation on, far below a training loss that still falls.

    Not this when: the evaluation loss falls along with training, however far below it dropout or augmentation put it;
    the training loss is as low soon after, as in a mean over a first epoch of fast progress. The factors were chosen by
    hand: an easy task is solved in the first epoch by training and evaluation alike.""",
    background=0.06,
    sources=("kapoor_leakage",),
    of=BELOW_TRAIN.id,
    as_chosen=True,
    follows=("loss_falls_back", "loss_scale_suspicious"),
)
FAR_ABOVE = Outcome(
    "train_far_above_eval",
    """A language model's training loss is more than twice its evaluation loss at every evaluation.

    Both are nats per token, if they are computed alike over rows alike. Not this when: the quotient is the number of
    accumulated micro-batches (`loss_scale_suspicious`); it comes about in training.""",
    background=0.02,
    sources=("hf_gradacc_blog",),
    of=BELOW_TRAIN.id,
    as_chosen=True,
    follows=("loss_scale_suspicious", "loss_divergence", "loss_nonfinite"),
)
LAGS = Outcome(
    "train_lags_eval",
    """The training loss stays near where it began, while the evaluation loss falls well below it.

    The evaluation rows are learnt, but the training rows cannot be fitted. Not this when: the training loss falls too
    (`eval_below_train`); labels are mixed or smoothed, as configured; the evaluation set is easier from the first
    evaluation on; the training loss is a multiple (`loss_scale_suspicious`). The numbers were chosen by hand on
    benchmarks/faults: none of its healthy runs has it.""",
    background=0.01,
    follows=("loss_scale_suspicious", "loss_falls_back"),
)


@question(
    BELOW_TRAIN,
    SOLVED_AT_ONCE,
    FAR_ABOVE,
    LAGS,
    needs=("eval_loss", "loss"),
    not_for=("grpo", "ppo", "rl", "preference"),
    points=2,
    whole_run=True,
)
def eval_below(run: Run) -> Answers:
    """Tell a training loss that cannot be fitted from an evaluation that is too good."""
    if all_zero(run["eval_loss"]):
        raise CannotTell("the evaluation loss is zero at every evaluation, and tells nothing")
    attributes = {SOLVED_AT_ONCE.id: said_by(partial(_solved, run)), FAR_ABOVE.id: said_by(partial(_far_above, run))}
    too_good = [one for one in attributes.values() if isinstance(one, Evidence)]
    lags = said_by(partial(_lags, run))
    if isinstance(lags, Evidence) and not too_good:
        return {LAGS.id: lags}
    below = said_by(partial(_below, run))
    whole = too_good[0] if too_good and not isinstance(below, Evidence) else below
    answers = {BELOW_TRAIN.id: whole, LAGS.id: None if isinstance(lags, Evidence) else lags, **attributes}
    return {outcome: said for outcome, said in answers.items() if said is not None}


def _below(run: Run) -> Evidence | None:
    refuse_sums_of_epochs(run)
    steps, train, evaluation = beside_training(run["loss"].finite, run["eval_loss"])
    late = slice(len(steps) // 2, None)
    if len(steps[late]) < 1:
        raise CannotTell("no training loss was logged before an evaluation")
    ratio = evaluation[late] / train[late]
    gap = median(train[late] - evaluation[late])
    factor = median(ratio)
    first = float(evaluation[0] / train[0]) if train[0] > 0 else 0.0
    limit = max(min(FAR_BELOW, GROWN * first), FROM_THE_START)
    if predicts_tokens(run) and gap >= GAP_OF_TOKENS:
        limit = FAR_BELOW_OF_TOKENS
    least = max(LEAST_GAP, SHARE_OF_START * start_level(run["loss"].finite.value))
    if not 0 <= factor < limit or gap < least or (ratio < 1).mean() < 0.9:
        return None
    return Evidence(
        f"eval_loss is {figure(median(evaluation[late]))} where the training loss is "
        f"{figure(median(train[late]))} (median over the later half of {len(steps)} evaluations)",
        steps=(float(steps[late][0]),),
        values={"factor": factor, "gap": gap},
    )


def _solved(run: Run) -> Evidence | None:
    if run.kind == "diffusion":
        raise CannotTell("the loss of a diffusion model depends on the noise levels that are drawn")
    steps, train, evaluation = beside_training(run["loss"].finite, run["eval_loss"])
    if len(steps) < LEAST_SOLVED:
        raise CannotTell(f"{LEAST_SOLVED} evaluations after a training loss are needed")
    first, lowest, begun = float(evaluation[0]), float(evaluation.min()), float(train[0])
    solved = lowest >= 0 and first <= SOLVED * lowest and begun >= TIMES_AT_FIRST * first
    if not solved or begun * lowest < FALLS * first * float(train.min()) or (train < TIMES_ALWAYS * evaluation).any():
        return None
    return Evidence(
        f"eval_loss is {figure(first)} at the first of {len(steps)} evaluations, {figure(lowest)} at its lowest, while "
        f"the training loss goes from {figure(begun)} to {figure(float(train[-1]))}",
        steps=(float(steps[0]),),
        values={"first": first, "lowest": lowest, "training_first": begun},
    )


def _far_above(run: Run) -> Evidence | None:
    if run.kind in NOT_IN_TOKENS or not predicts_tokens(run):
        raise CannotTell("it is not known that this run trains a language model")
    both = compared(run, LEAST_OF_TOKENS)
    if not (both.evaluation > 0).all():
        raise CannotTell("an evaluation loss is not above zero")
    times = both.train / both.evaluation
    if float(times.min()) < TIMES_OF_TOKENS:
        return None
    first = float(both.steps[0])
    return Evidence(
        f"the training loss is {figure(float(times.min()))} to {figure(float(times.max()))} times the evaluation loss "
        f"at all {len(times)} evaluations, from {run.step_name} {figure(first)} on",
        steps=(first,),
        values={"times": median(times), "evaluations": len(times)},
    )


def _lags(run: Run) -> Evidence | None:
    if any(run.setting(name) for name in MIXED):
        raise CannotTell("labels are mixed or smoothed, which keeps the training loss up")
    both = compared(run, LEAST_LAGGING)
    if not (both.evaluation > 0).all():
        raise CannotTell("an evaluation loss is not above zero, so there is no ratio to judge")
    start, level, reached = both.start, both.train_level, both.eval_level
    times = both.train / both.evaluation
    typical = median(times[both.later])
    apart = typical > BELOW and float(times[both.later].min()) > LAGS_ALWAYS and level - reached > APART * start
    if not apart or level < STAYS * start or typical - 1 < FARTHER * (float(times[0]) - 1):
        return None
    return Evidence(
        f"loss stays at {figure(level)} of {figure(start)} at first, while eval_loss falls to {figure(reached)} "
        f"(medians of the later half of {len(times)} evaluations)",
        steps=(float(both.steps[both.later][0]),),
        values={"start": start, "train": level, "eval": reached, "factor": typical},
    )
