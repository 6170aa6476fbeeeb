"""Does preference training separate chosen answers from rejected ones?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.checks.check import (
    Answers,
    CannotTell,
    Evidence,
    by_outcome,
    first_seen,
    known,
    outcome_of,
    question,
    require_values,
    symptom,
)
from mldebug_mcp.checks.curve import at_common_steps, edge_width, finite_of, noise
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.core.text import counted, figure
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.kinds import scores_pairs
from mldebug_mcp.logs.run import Run, Series

# Pairs of answers in preference training: how far both move, and whether anything sets them apart.


DEFAULT_BETA = 0.1
"""Strength of the pull to the reference where the settings do not say. Source: TRL's default (trl_docs)."""
LEAST_RECORDS = 8
"""Records that a change needs. Chosen: by hand."""
MAX_MISSING_START_SHARE = 0.05
"""Share of the run that may be missing before a first reward. Chosen: by hand."""
REFERENCE_FREE = 0.7
"""The implicit rewards of a policy that is its own reference begin at zero. Where the first one is this share of the
largest, and far beyond the noise, they are no log-ratios (SimPO, ORPO). Chosen: by hand."""
NO_REWARD = 1e-6
"""Implicit rewards up to this size never left zero. Chosen: what rounding leaves."""
MIN_CHANGE_STANDARD_ERRORS = 10.0
"""Standard errors of a change of log-probabilities that measures beta. Chosen: to a tenth of it."""
REWARDS = ("rewards/chosen", "rewards/rejected")
LOGPS = ("logps/chosen", "logps/rejected")


@dataclass(frozen=True, slots=True)
class Change:
    """How far one curve moved over the run, in nats, and the error of that."""

    by: float
    error: float


def _source(run: Run) -> tuple[str, str] | None:
    has_logps = all(name in run for name in LOGPS)
    if all(name in run for name in REWARDS) and not _are_free_of_reference(run):
        return LOGPS if has_logps and _are_zero(run) else REWARDS
    return LOGPS if has_logps else None


def _are_zero(run: Run) -> bool:
    """Say whether the rewards never leave zero, as where the reference is trained too: then they tell of no fall."""
    return not any(np.abs(run[name].finite.value).max(initial=0.0) > NO_REWARD for name in REWARDS)


def _are_free_of_reference(run: Run) -> bool:
    """Say whether the rewards begin far from zero: then they are no log-ratios to what training begins with."""
    values = run["rewards/chosen"].finite.value
    if len(values) < LEAST_RECORDS or run.first_step > MAX_MISSING_START_SHARE * run.last_step:
        return False
    begun = abs(float(values[0]))
    return begun > max(REFERENCE_FREE * float(np.abs(values).max()), 3 * noise(values))


def _began(run: Run) -> float:
    values = finite_of(run, "logps/chosen").value
    return median(values[: edge_width(len(values))]) if len(values) else 0.0


def _change(run: Run, name: str, unit: float, *, origin_is_zero: bool) -> Change | None:
    values = run[name].finite.value / unit
    if len(values) < LEAST_RECORDS:
        return None
    edge = max(edge_width(len(values)), len(values) // 8)
    start = 0.0 if origin_is_zero else median(values[:edge])
    return Change(median(values[-edge:]) - start, 1.25 * noise(values) * float(np.sqrt(2 / edge)))


def _beta(run: Run) -> tuple[float, str]:
    """Return what a nat is worth in implicit rewards, and in words where that is from.

    Where no setting says it, the rewards and the log-probabilities of the same answers do, once those have moved. Both
    move together, for the reference stands still.
    """
    if stated := run.setting("beta"):
        return stated, f"from the rewards over beta = {stated:.4g}"
    for reward, logps in zip(REWARDS, LOGPS, strict=True):
        moved = _change(run, logps, 1.0, origin_is_zero=False) if logps in run else None
        paid = _change(run, reward, 1.0, origin_is_zero=False)
        if moved is None or paid is None or abs(moved.by) < max(LEAST_FALL, MIN_CHANGE_STANDARD_ERRORS * moved.error):
            continue
        if (measured := paid.by / moved.by) > 0:
            return measured, f"from the rewards over beta = {measured:.2g}, by which they move with {logps}"
    return DEFAULT_BETA, f"from the rewards if beta is {DEFAULT_BETA:.4g}, the default of TRL"


def apart(run: Run, names: tuple[str, str]) -> tuple[Floats, Floats, Floats] | None:
    """Return the steps of the records that hold a pair of metrics, how far these are apart, and the size of the larger.

    None where no record holds both.
    """
    found = _common_values(run, names)
    if found is None:
        return None
    steps, chosen, rejected = found
    return steps, np.abs(chosen - rejected), np.maximum(np.abs(chosen), np.abs(rejected))


def margin_of(run: Run) -> Series | None:
    """Return by how much the reward of the chosen answer is higher, where both are logged; None without them."""
    found = _common_values(run, REWARDS)
    if found is None:
        return None
    steps, chosen, rejected = found
    return Series(" - ".join(REWARDS), steps, chosen - rejected)


def _common_values(run: Run, names: tuple[str, str]) -> tuple[Floats, Floats, Floats] | None:
    """Return the steps at which both metrics were logged, and their values there; None where there are none."""
    if not all(name in run for name in names):
        return None
    found = at_common_steps(run[names[0]].finite, run[names[1]].finite)
    return found if len(found[0]) else None


# Does preference training tell chosen answers from rejected ones?


ACCURACIES = ("rewards/accuracies", "accuracy")
"""How often the chosen answer has the higher reward: of DPO and its like, of a reward model."""
MARGINS = ("rewards/margins", "margin")
"""By how much the chosen answer has the higher reward: of DPO and its like, of a reward model."""
HELD_OUT = ("eval_rewards/accuracies", "eval_accuracy")
MIN_ACCURACY_RECORDS = 8
"""Records of accuracies and rewards. Chosen: fewer are the beginning."""
LEAST_BELOW = 4
"""Records of an accuracy below one half. Chosen: fewer are the beginning."""
LEAST_STEPS = 20
"""Steps that those records cover. Chosen: fewer are the beginning."""
MAX_CHANCE_ACCURACY = 0.58
"""An accuracy that is at most chance. Chosen: a third of the way from 0.5 to the 0.7 that remote_gpu_trainer calls
healthy."""
MIN_LEARNT_ACCURACY = 0.65
"""An accuracy that has learnt. Chosen: two thirds of the way from 0.5 to the 0.7 that remote_gpu_trainer calls
healthy."""
ACCURACY_STANDARD_ERRORS = 2.0
"""Standard errors of a mean accuracy. Chosen: by hand."""
MAX_ACCURACY_BELOW_CHANCE = 0.35
"""An accuracy below chance. Chosen: as far below one half as `MIN_LEARNT_ACCURACY` is above it."""
LEAST_GROWTH = 0.1
"""Growth of a margin. Chosen: 0.1 brings the DPO loss from 0.693 to 0.644."""
LEAST_NATS = 1.0
"""Nats of that growth, times beta, where beta is small. Chosen: by hand."""
MAX_EQUAL_DIFFERENCE_SHARE = 1e-6
"""How far equal values are apart, as a share of their size. Chosen: rounding in float32."""
MIN_EQUAL_RECORD_SHARE = 0.95
"""Share of the records in which they are equal. Chosen: by hand."""
MIN_REWARD_MOVEMENT = 0.05
"""How far rewards have moved. Chosen: by hand."""
MAX_ALIKE_DIFFERENCE_SHARE = 0.003
"""Share of it by which they differ. Chosen: answers that merely fall together differ by some per cent."""
LEAST_ZEROS = 5
"""Records past the first in which rewards are zero. Chosen: in a warm-up in bf16 both models may still agree."""


def _of_pairs(run: Run, names: tuple[str, str], least: int) -> Series:
    """Return a metric of pairs; raise CannotTell where it is too short, or the run scores no pairs."""
    name = names[0] if names[0] in run else names[1]
    logged = name in run and (name == names[0] or scores_pairs(run))
    found = known(run[name] if logged else margin_of(run) if names == MARGINS else None, f"not logged: {names[0]}")
    return require_values(found.finite.where(found.finite.step > 0), least)


def dpo_pairs_alike(run: Run) -> Evidence | None:
    """Chosen and rejected answers have the same values, record by record.

    Not this when: only the rewards are equal, and zero; both fall, and some per cent remain between them.
    """
    logps, rewards = apart(run, LOGPS), apart(run, REWARDS)
    if logps is not None and bool((logps[2] > 0).all()):
        steps, between, size = logps
        equal = between <= MAX_EQUAL_DIFFERENCE_SHARE * size
        if equal.mean() >= MIN_EQUAL_RECORD_SHARE:
            alike = f"equal in {equal.mean():.0%} of {counted(len(equal), 'record')}"
            return _evidence(f"{' and '.join(LOGPS)} are {alike}", steps, share=float(equal.mean()))
    if rewards is None or len(rewards[0]) < MIN_ACCURACY_RECORDS:
        return None
    steps = rewards[0]
    typical, large = (median(values[len(steps) // 2 :]) for values in rewards[1:])
    if large < MIN_REWARD_MOVEMENT or typical > MAX_ALIKE_DIFFERENCE_SHARE * large:
        return None
    alike = f"a median size of {figure(large)} over the later half, and differ by {figure(typical)}"
    return _evidence(f"{' and '.join(REWARDS)} have {alike}", steps, size=large, apart=typical)


def _evidence(summary: str, steps: Floats, **values: float) -> Evidence:
    return Evidence(summary, steps=(float(steps[0]),), values=values)


def dpo_rewards_zero(run: Run) -> Evidence | None:
    """The implicit rewards of both answers are exactly zero: policy and reference are the same.

    Not this when: the log covers only the first steps; the rewards are tiny but move.
    """
    rewards = known(apart(run, REWARDS), f"not logged: {' and '.join(REWARDS)}")
    steps, _, size = rewards
    if len(size) <= LEAST_ZEROS or float(steps[-1]) < LEAST_STEPS:
        return None
    largest = float(size[1:].max())
    bounded = f"{figure(largest)} at most in all {len(size)} records up to {run.step_name}"
    summary = f"{' and '.join(REWARDS)} are {bounded} {figure(steps[-1])}"
    return _evidence(summary, steps, largest=largest) if largest <= NO_REWARD else None


def _end(accuracy: Series, part: int, least: int) -> tuple[float, float, float]:
    """Return mean and standard error over the last records, one in `part`, and the step of the first of them."""
    late = accuracy.value[-max(least, len(accuracy) // part) :]
    return float(late.mean()), float(late.std() / np.sqrt(len(late))), float(accuracy.step[-len(late)])


def dpo_accuracy_below_chance(run: Run) -> Evidence | None:
    """The chosen answer ends with the higher reward far less than half of the time, in training or evaluation.

    Not this when: it is near one half; it is 0 where all rewards are equal, as at the first step.
    """
    judged = [metric for names in (ACCURACIES, HELD_OUT) if (metric := _logged(run, names)) is not None]
    if not judged:
        raise CannotTell(f"fewer than {LEAST_BELOW} preference accuracies are logged")
    for accuracy in judged:
        mean, error, since = _end(accuracy, 4, 3)
        if mean + ACCURACY_STANDARD_ERRORS * error < MAX_ACCURACY_BELOW_CHANCE and _rewards_differ(run, accuracy):
            summary = f"{accuracy.name} has a mean of {figure(mean)} over its last quarter"
            return Evidence(summary, steps=(since,), values={"mean": mean, "error": error})
    return None


def _rewards_differ(run: Run, accuracy: Series) -> bool:
    """Say whether an accuracy counts pairs: some are right, or the margin of the same rows is clearly negative."""
    name = accuracy.name.replace("accuracies", "margins").replace("accuracy", "margin")
    margin = finite_of(run, name).value
    return bool(accuracy.value.any()) or (len(margin) > 0 and median(margin[len(margin) // 2 :]) < -LEAST_GROWTH)


def _logged(run: Run, names: tuple[str, str]) -> Series | None:
    try:
        return _of_pairs(run, names, LEAST_BELOW)
    except CannotTell:
        return None


def dpo_accuracy_chance(run: Run) -> Evidence | None:
    """The share of pairs in which the chosen answer has the higher reward is still near one half at the end.

    Not this when: it rises late; batches are so small that their mean is not known (then it is unknown).
    """
    accuracy = _of_pairs(run, ACCURACIES, MIN_ACCURACY_RECORDS)
    if accuracy.step[-1] - accuracy.step[0] < LEAST_STEPS and len(accuracy) < LEAST_STEPS:
        raise CannotTell(f"the accuracies cover only {len(accuracy)} records")
    mean, error, since = _end(accuracy, 3, 5)
    if mean - ACCURACY_STANDARD_ERRORS * error > MAX_CHANCE_ACCURACY or mean >= MIN_LEARNT_ACCURACY:
        return None
    if mean > MAX_CHANCE_ACCURACY or mean + ACCURACY_STANDARD_ERRORS * error > MAX_CHANCE_ACCURACY + 2 * (
        MIN_LEARNT_ACCURACY - MAX_CHANCE_ACCURACY
    ):
        raise CannotTell(
            f"the accuracy is {figure(mean)} ± {figure(ACCURACY_STANDARD_ERRORS * error)} at the end: too noisy to tell"
        )
    summary = f"{accuracy.name} has a mean of {figure(mean)} from {run.place(since)} on"
    return _evidence(summary, accuracy.step, mean=mean, error=error)


def dpo_margin_flat(run: Run) -> Evidence | None:
    """The margin between the rewards of chosen and rejected answers stays where it was.

    Not this when: beta is small, so that margins are small although the pairs are separated; the log covers only
    the first steps.
    """
    margin = _of_pairs(run, MARGINS, MIN_ACCURACY_RECORDS)
    if margin.step[-1] - margin.step[0] < LEAST_STEPS and len(margin) < LEAST_STEPS:
        raise CannotTell(f"the margins cover {figure(margin.step[-1] - margin.step[0])} {run.step_name}s only")
    quarter = max(3, len(margin) // 4)
    start, end = median(margin.value[:quarter]), median(margin.value[-quarter:])
    if start > LEAST_GROWTH and len(margin) > MIN_ACCURACY_RECORDS:
        start = min(start, 0.0)  # it had grown before the first records were averaged
    beta = run.setting("beta")
    needed = min(LEAST_GROWTH, LEAST_NATS * beta) if beta is not None and beta > 0 else LEAST_GROWTH
    accuracy = _logged(run, ACCURACIES)
    if end - start >= needed or (accuracy is not None and _end(accuracy, 4, 3)[0] >= MIN_LEARNT_ACCURACY):
        return None
    between = f"between {run.step_name}s {figure(margin.step[0])} and {figure(margin.step[-1])}"
    return _evidence(
        f"{margin.name} goes from {figure(start)} to {figure(end)} {between}", margin.step, start=start, end=end
    )


@question(
    outcome_of(dpo_pairs_alike, 0.002),
    outcome_of(dpo_rewards_zero, 0.002),
    outcome_of(dpo_accuracy_below_chance, 0.004),
    outcome_of(dpo_accuracy_chance, 0.03, "remote_gpu_trainer"),
    outcome_of(dpo_margin_flat, 0.03, "remote_gpu_trainer"),
    any_of=(*MARGINS, *ACCURACIES, *HELD_OUT, *REWARDS, *LOGPS),
)
def pairs(run: Run) -> Answers:
    """Equal answers first, for nothing can tell them apart; then a policy that is its reference; then what it tells."""
    judges = (dpo_pairs_alike, dpo_rewards_zero, dpo_accuracy_below_chance, dpo_accuracy_chance, dpo_margin_flat)
    return first_seen(by_outcome(judges, run))


# Do chosen and rejected answers lose their probability together?


LEAST_FALL = 10.0
"""Nats per answer by which both must fall. Chosen: batches of other lengths alone move log-probabilities by some."""
MIN_FALL_GAIN_RATIO = 1.5
"""Times what the margin gains that the chosen answers lose. Chosen: they then fall together more than apart."""
OF_ALL = 0.75
"""... or they lose this share of the log-probability at first, whatever the rejected do. Chosen: by hand."""


@symptom(background=0.03, sources=("razin_displacement", "remote_gpu_trainer"))
def dpo_logps_fall(run: Run) -> Evidence | None:
    """Log-probabilities of chosen and rejected both fall.

    They fall by far more than they move apart, or without end.
    Not this when: the margin grows as much as the chosen answers lose, which is how DPO often works (a remark);
    as long as these keep most of the probability that they had; the fall is within the noise of batches; a
    reward model is trained, which has no such probabilities. The factors were chosen by hand.
    """
    if scores_pairs(run):
        return None  # it scores answers, and gives them no probability that could fall
    names = known(_source(run), "not logged: rewards that are zero at first, or logps, both of chosen and of rejected")
    # Rewards are preferred: they are log-ratios to the reference, free of the length of the answers.
    beta, source = _beta(run) if names is REWARDS else (1.0, "from logps")
    chosen, rejected = (_change(run, name, beta, origin_is_zero=names is REWARDS) for name in names)
    if chosen is None or rejected is None:
        raise CannotTell(f"fewer than {LEAST_RECORDS} finite values of the rewards or log-probabilities")
    began = _began(run)
    if chosen.by > -max(LEAST_FALL, 3 * chosen.error) or rejected.by > -max(LEAST_FALL, 3 * rejected.error):
        return None
    gain = chosen.by - rejected.by
    together = -chosen.by > MIN_FALL_GAIN_RATIO * max(gain, 0.0)
    lost = began < 0 and -chosen.by > OF_ALL * -began
    remark = ""
    if lost:
        remark = f"; the chosen began at {figure(began)} nats"
    elif not together:
        remark = ": they move apart more than the chosen fall"
    return Evidence(
        f"by {run.place(run.last_step)} the log-probability of the chosen answers is down by "
        f"{figure(-chosen.by)} nats and that of the rejected by {figure(-rejected.by)} ({source}){remark}",
        steps=(run.first_step,),
        values={"chosen": chosen.by, "rejected": rejected.by, "margin_gain": gain},
        present=together or lost,
    )
