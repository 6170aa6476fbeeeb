"""How columns stand to one another, to bounds, to the steps of events and to settings: facts with what is expected.

What is asked is the quantity that a column holds, and arithmetic. The mean of the labels alone goes by its name. A fact
names no cause.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from mldebug_mcp.checks.policies import kept_rise
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import figure
from mldebug_mcp.judge import column_bounds as bounds
from mldebug_mcp.judge import column_courses as courses
from mldebug_mcp.judge import column_pairs as pairs
from mldebug_mcp.judge import column_success as success
from mldebug_mcp.judge.column_pairs import (
    LEAST_PAIRS,
    MIN_RECORDS_FOR_LEVEL,
    POLICIES,
    columns_of,
    named,
    tail,
    training_loss,
)
from mldebug_mcp.judge.ranking import CauseEvidence, question_of
from mldebug_mcp.logs import Run, Series
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.names.words import pieces_of
from mldebug_mcp.logs.settings.settings import flag_of
from mldebug_mcp.models import Finding, State
from mldebug_mcp.models.base import SOUND
from mldebug_mcp.models.diagnosis import DerivedFact

# Norms that stay the same to their last digit.


LEAST_STILL = 10
"""Records of a norm of the weights that tell whether it moves. Chosen."""
FAR_BEYOND = 20.0
"""Times the last logged digit that updates are long together. Chosen: they do not all point outwards."""
STAYED = 0.95
"""Share of its start that a loss keeps which nothing brings down. Chosen."""


def weights_stand_still(run: Run) -> Iterator[DerivedFact]:
    """Yield that the norm of the weights is one number throughout, though gradients and learning rate are not zero.

    Steps of plain gradient descent, learning rate times gradient norm each, would move it by more than its last digit.
    Not this where the loss falls: the norm may be of weights that are frozen.
    """
    norms = [series.finite for series in run.with_role(Quantity.WEIGHT_NORM) if len(series.finite) >= LEAST_STILL]
    still = next((norm for norm in norms if not np.ptp(norm.value) and norm.value[0] > 0), None)
    if still is None or not {"grad_norm", "learning_rate"} <= run.series.keys():
        return
    loss = training_loss(run, MIN_RECORDS_FOR_LEVEL)
    if loss is not None and median(tail(loss)) < STAYED * median(loss.value[:LEAST_STILL]):
        return
    gradient, rate = (run[name].finite for name in ("grad_norm", "learning_rate"))
    if not len(gradient) or not len(rate) or not _would_move(run, still, gradient):
        return
    value = float(still.value[0])
    yield DerivedFact.model_construct(
        fact="weights_stand_still",
        text=(
            f"{named(still)} is exactly {figure(value)} in all {len(still)} records, while {named(rate)} is about "
            f"{figure(float(rate.value.mean()))} and {named(gradient)} about {figure(median(gradient.value))}. "
            "Updates by such gradients would move it."
        ),
        values={"value": value, "records": float(len(still))},
    )


def _would_move(run: Run, norm: Series, gradient: Series) -> bool:
    """Say whether plain steps by a gradient and the learning rate go far beyond the last digit of a norm."""
    rate = run["learning_rate"].finite.value if "learning_rate" in run else np.zeros(0)
    steps = float(norm.step[-1] - norm.step[0]) if run.step_name == "step" else float(len(norm) - 1)
    travelled = steps * float(rate.mean()) * median(gradient.value) if len(rate) else 0.0
    return travelled >= FAR_BEYOND * _last_digit(float(norm.value[0]))


_ON_PURPOSE = regex(r"freez|frozen|linear_?prob|(?:^|[/_.])(?:lora|peft|adapter|vera|dora)", re.IGNORECASE)
"""What settings and norms are called where parts of a model are left as they are on purpose."""
MOVES = 0.01
"""Share of its start by which the norm of another part moves. Chosen: rounding moves none so far."""


_CHANGES = frozenset({"delta", "deltas", "change", "changed", "moved", "update", "updates"})
"""Words of what is logged of how far weights have moved since the record before."""
_OF_NORMS = frozenset({"grad", "gradient", "gradients", "norm", "gnorm", "l2", "g"})
"""Words of a gradient norm beyond those of its part."""


def part_stands_still(run: Run) -> Iterator[DerivedFact]:
    """Yield that the weights of one part keep their norm to the last digit, or do not change, where another part moves.

    Not this where a setting freezes parts, or adapters are trained in their place. A part that has a gradient all the
    same is not frozen: then its weights are left out of the updates.
    """
    changes = [series.finite for series in run.series.values() if _is_change(series)]
    changes = [change for change in changes if len(change) >= LEAST_STILL]
    norms = [norm for norm in columns_of(run, Quantity.WEIGHT_NORM, least=LEAST_STILL) if norm.value[0] > 0]
    unchanged = [change for change in changes if not change.value.any()]
    still = unchanged or [norm for norm in norms if not np.ptp(norm.value)]
    moving = [change for change in changes if median(change.value) > 0] if unchanged else []
    moving = moving or [norm for norm in norms if abs(float(norm.value[-1]) / float(norm.value[0]) - 1) > MOVES]
    if not still or not moving or _leaves_parts(run, moving):
        return
    first, other = float(still[0].value[0]), moving[0].value
    gradient = _gradient_of(run, still[0])
    if gradient is not None and not unchanged and not _would_move(run, still[0], gradient):
        gradient = None
    has = "" if gradient is None else f" {named(gradient)} is about {figure(median(gradient.value))}."
    yield DerivedFact.model_construct(
        fact="part_stands_still_with_gradient" if has else "part_stands_still",
        text=(
            f"{named(still[0])} is exactly {figure(first)} in all {len(still[0])} records, while {named(moving[0])} "
            f"goes from {figure(float(other[0]))} to {figure(float(other[-1]))}.{has} Weights that are trained move."
        ),
        values={"value": first, "records": float(len(still[0]))},
    )


def _is_change(series: Series) -> bool:
    is_of_weights = series.role is None or series.role.quantity in (Quantity.UPDATE_RATIO, Quantity.CHANGED_WEIGHTS)
    return is_of_weights and not _CHANGES.isdisjoint(pieces_of(series.name))


def _gradient_of(run: Run, part: Series) -> Series | None:
    """Return the gradient norm of a part, where it is above zero in most records; None where none is known."""
    words = set(pieces_of(part.name))
    norms = columns_of(run, Quantity.GRADIENT_NORM, least=LEAST_STILL)
    shared = [
        norm for norm in norms if (own := set(pieces_of(norm.name)) - _OF_NORMS) and own <= words and median(norm.value)
    ]
    return shared[0] if shared else None


def _leaves_parts(run: Run, moving: Sequence[Series]) -> bool:
    """Say whether settings or names tell that some parts of the model are not to be trained."""
    named_so = any(_ON_PURPOSE.search(norm.name) for norm in moving)
    return named_so or any(
        bool(setting.value) and flag_of(setting.value) is not False
        for setting in run.settings.values()
        if _ON_PURPOSE.search(setting.key) or _ON_PURPOSE.search(str(setting.value))
    )


def _last_digit(value: float) -> float:
    """Return the unit of the last digit with which a number is written, at least that of double precision."""
    return next((10.0**-places for places in range(13) if round(value, places) == value), abs(value) * 1e-12)


# Updates that are smaller than the distance from one number to the next.


SPACING = {"bf16": 2.0**-8, "fp16": 2.0**-11}
"""Distance of a number from the next as a share of it, at most: 8 and 11 bits of precision (IEEE 754, bfloat16)."""
_PURE = ("pure", "full", "true", "weights")
"""Words that say that the weights themselves are kept in half precision."""


def update_below_spacing(run: Run) -> Iterator[DerivedFact]:
    """Yield updates below half the distance to the next number, where weights are kept in half precision."""
    precision = run.facts.precision
    kept_in = str(run.settings["precision"].value).lower() if "precision" in run.settings else ""
    spacing = SPACING.get(precision or "", 0.0) if any(word in kept_in for word in _PURE) else 0.0
    for ratio in columns_of(run, Quantity.UPDATE_RATIO):
        if spacing and ratio.role is not None and ratio.role.is_whole and 0 < median(ratio.value) < spacing / 2:
            yield DerivedFact.model_construct(
                fact="update_below_spacing",
                text=(
                    f"{named(ratio)} is {figure(median(ratio.value))} (median) and the weights are kept in {kept_in}. "
                    f"{precision} rounds a change below {figure(spacing / 2)} of a weight away, so most updates "
                    "have no effect."
                ),
                values={"ratio": median(ratio.value), "spacing": spacing},
            )


FEW_CHANGE = 0.1
"""Share of the weights that a step changes, below which most stand still. Chosen: in float32 nearly all move."""
_OF_WEIGHTS = regex(r"param|weight", re.IGNORECASE)
"""What the name of a setting holds that gives the type of the weights themselves."""


def few_weights_change(run: Run) -> Iterator[DerivedFact]:
    """Yield that steps change few of the weights where these are kept in half precision, though gradients go on."""
    dtype = run.settings.get("dtype")
    if dtype is None or not _OF_WEIGHTS.search(dtype.key) or run.facts.precision not in SPACING:
        return
    for changed in columns_of(run, Quantity.CHANGED_WEIGHTS, least=LEAST_PAIRS):
        first, last = float(changed.value[0]), median(tail(changed))
        if not last < FEW_CHANGE:
            continue
        spacing = SPACING[run.facts.precision]
        yield DerivedFact.model_construct(
            fact="few_weights_change",
            text=(
                f"{named(changed)} goes from {figure(100 * first)} to {figure(100 * last)} % (median of the last "
                f"third), and {dtype.key} is {dtype.value}. That type rounds a change below "
                f"{figure(spacing / 2)} of a weight away; in float32 nearly every weight moves at each step."
            ),
            values={"first": first, "last": last},
        )
        return


# What a policy earns, and what other scores say of the same answers.


SOLVED = 0.9
"""Share of right answers from which on a task is solved. Chosen."""
UNSOLVED = 0.5
"""Share of right answers at first, below which it was not. Chosen."""


def solved_with_reward(run: Run) -> Iterator[DerivedFact]:
    """Yield that a share of right answers rises to nearly all together with the reward that is trained."""
    rise = kept_rise(run) if run.kind in POLICIES else None
    if rise is None:
        return
    for score in columns_of(run, Quantity.ACCURACY, Quantity.SUCCESS_RATE, least=MIN_RECORDS_FOR_LEVEL):
        first, last = median(score.value[:LEAST_PAIRS]), median(score.value[-MIN_RECORDS_FOR_LEVEL:])
        if first >= UNSOLVED or not SOLVED <= last <= 1:
            continue
        yield DerivedFact.model_construct(
            fact="solved_with_reward",
            text=(
                f"{named(score)} rises from {figure(first)} to {figure(last)} while the reward rises from "
                f"{figure(rise[0])} to {figure(rise[1])} and stays: the answers are right, too. Where nearly all are "
                "right, little entropy, small gradients and groups of equal rewards are to be expected."
            ),
            values={"first": first, "last": last},
        )
        return


STALE = 16.0
"""Updates by which the policy that samples lags behind, from which on it is old. Chosen: a few are usual."""
FEW_EFFECTIVE = 0.5
"""Share of the samples that is effective, below which weights of a few rule. Chosen: fresh samples have nearly 1."""


def stale_policy(run: Run) -> Iterator[DerivedFact]:
    """Yield how old the policy that samples becomes, and which share of its samples is effective."""
    ages = columns_of(run, Quantity.POLICY_AGE, least=MIN_RECORDS_FOR_LEVEL)
    effective = columns_of(run, Quantity.EFFECTIVE_SAMPLES, least=MIN_RECORDS_FOR_LEVEL)
    oldest = float(ages[0].value.max()) if ages else 0.0
    share = median(effective[0].value) if effective else 1.0
    parts = [f"{named(ages[0])} goes up to {figure(oldest)}"] if oldest >= STALE else []
    if share < FEW_EFFECTIVE and float(effective[0].value.max()) <= 1:
        lowest = figure(float(effective[0].value.min()))
        parts.append(f"{named(effective[0])} is about {figure(share)} (median), and {lowest} at the least")
    if parts:
        yield DerivedFact.model_construct(
            fact="stale_policy",
            text=f"{'; '.join(parts)}. Samples of a policy that is a few updates old nearly all count.",
            values={"oldest": oldest, "effective": share},
        )


MOST_FACTS = 6
"""Facts of one run. Chosen: what an answer has room for."""


_KINDS: tuple[Callable[[Run], Iterator[DerivedFact]], ...] = (
    pairs.nothing_trained, weights_stand_still, part_stands_still,
    bounds.prompts_count_unmeant, bounds.data_floor, pairs.subtracted,
    success.success_falls, courses.cycles_end_lower, courses.few_rows_learn,
    bounds.around_resumes, bounds.untrained, bounds.above_checkpoint, bounds.far_beyond_guess,
    pairs.training_rows_evaluated, pairs.evaluated_twice, pairs.below_accuracy, pairs.multiples,
    pairs.evaluation_after_passes, pairs.evaluation_by_rows_at_once,
    pairs.held_out_sets_disagree, pairs.evaluation_began_alike, pairs.evaluation_good_at_once,
    bounds.too_low_for_one_pass, update_below_spacing, few_weights_change, stale_policy,
    solved_with_reward, pairs.within_first_pass, pairs.evaluation_beyond_start,
    bounds.base_rate, bounds.beyond_guess, bounds.one_jump_a_pass, bounds.worse_for_a_stretch,
    bounds.logps_multiplied, pairs.entropy_lowered,
    bounds.much_clipped, pairs.rising_parts, pairs.weighed_parts, bounds.at_bounds, bounds.beyond_one,
    bounds.uniform_policy, pairs.contradictions, bounds.majority, pairs.training_behind, bounds.at_limit,
    bounds.growing, pairs.frozen_columns, bounds.at_first_evaluation, bounds.periods,
)  # fmt: skip
"""What yields facts of one kind, the sharpest kinds first."""


def column_facts(run: Run) -> list[DerivedFact]:
    """Return how the columns of a run stand to one another, to bounds and to settings, the sharpest kinds first."""
    with np.errstate(all="ignore"):
        return list(islice((fact for kind in _KINDS for fact in kind(run)), MOST_FACTS))


_SUGGESTS: Mapping[str, Mapping[str, float]] = {
    "nothing_trained": {"all_labels_masked": 9.0},
    "labels_run_out": {
        "all_labels_masked": 14.0,
        "lr_too_high": -4.0,
        "adam_instability": -4.0,
        "bad_data_pocket": -4.0,
        "overfitting": -4.0,
    },
    "weights_stand_still": {"params_not_training": 9.0},
    "part_stands_still": {"params_not_training": 6.0},
    "part_stands_still_with_gradient": {"params_not_training": 12.0, SOUND: -2.0},
    "prompts_count_unmeant": {"prompt_not_masked": 10.0},
    "below_data_floor": {
        "label_shift_error": 7.0,
        "causal_mask_missing": 7.0,
        "train_eval_leakage": 3.0,
        SOUND: -4.0,
    },
    "near_data_floor": {SOUND: 4.0, "lr_too_low": -3.0},
    "cycles_end_lower": {"overfitting": -3.0, "lr_too_high": -3.0, "insufficient_warmup": -3.0},
    "set_cycles_end_lower": {SOUND: 3.0, "overfitting": -3.0, "lr_too_high": -3.0, "insufficient_warmup": -3.0},
    "few_rows_learn": {"batch_too_small": -5.0},
    "few_weights_change": {"low_precision_update": 10.0},
    "stale_policy": {"off_policy_staleness": 5.0},
    "solved_with_reward": {SOUND: 3.0, "reward_hacking": -4.0, "length_exploitation": -4.0},
    "success_falls_with_reward": {"reward_hacking": 8.0, SOUND: -4.0},
    "success_gone": {"reward_hacking": 3.0, "length_exploitation": -6.0},
    "success_falls_with_pairs": {"preference_labels_swapped": 12.0, "dpo_collapse": 3.0, SOUND: -4.0},
    "success_falls_with_loss": {"label_shift_error": 8.0, "causal_mask_missing": 3.0, "metric_bug": 3.0, SOUND: -4.0},
    "part_subtracted": {"wrong_loss": 6.0},
    "entropy_lowered": {"entropy_collapse": 6.0},
    "starts_untrained": {"bad_init": 4.0},
    "first_loss_far_beyond_guess": {"bad_init": 4.0, "grad_accum_scaling": 3.0, "tokenizer_mismatch": -3.0},
    "evaluation_differs": {"eval_mode_bug": 5.0, "train_eval_mismatch": 3.0, "overfitting": -6.0},
    "evaluated_twice": {"eval_mode_bug": 11.0},
    "gap_between_rows": {"overfitting": 3.0, "eval_mode_bug": -4.0},
    "loss_contradicts_accuracy": {"metric_bug": 6.0, "eval_mode_bug": 3.0},
    "much_clipped": {"off_policy_staleness": 5.0, "kl_blowup": 3.0, "entropy_collapse": 3.0},
    "moves_at_resume": {"resume_state_lost": 3.0, "resume_data_replayed": 1.0},
    "rises_at_resume": {"resume_state_lost": 3.0, "resume_data_replayed": -4.0},
    "loss_multiple": {"grad_accum_scaling": 8.0},
    "part_stays": {"params_not_training": 9.0, "wrong_loss": 6.0},
    "scores_contradict": {"metric_bug": 7.0},
    "beyond_one": {"metric_bug": 12.0},
    "surer_than_guess_as_loaded": {"tokenizer_mismatch": 10.0, "bad_init": -4.0},
    "evaluation_by_rows_at_once": {"eval_mode_bug": 10.0},
    "majority_alone": {"class_imbalance": 2.0},
    "rare_class_unanswered": {"class_imbalance": 5.0, "metric_bug": -4.0},
    "cut_at_limit": {"completion_limit_low": 5.0},
    "update_below_spacing": {"low_precision_update": 10.0},
    "too_low_for_one_pass": {"label_shift_error": 4.0, "causal_mask_missing": 4.0},
    "worse_than_constant": {"double_softmax": 6.0},
    "training_behind": {"label_noise": 6.0},
    "undisturbed_training_behind": {"label_noise": 9.0},
    "apart_within_first_pass": {"resume_data_replayed": 7.0, "duplicated_data": 6.0},
    "no_better_than_constant": {"no_signal": 4.0},
    "uniform_policy": {"exploration_failure": 3.0, "no_signal": 3.0},
    "worse_than_any_guess": {"lr_too_high": 5.0, "missing_zero_grad": 4.0, "wrong_loss": 4.0, "bad_init": 3.0},
    "evaluation_worse_than_any_guess": {"lr_too_high": 3.0},
    "one_jump_a_pass": {"bad_data_pocket": 5.0, "bad_batch": 4.0},
    "worse_for_a_stretch": {"bad_batch": 3.0, "bad_data_pocket": 3.0, SOUND: -3.0},
    "held_out_sets_disagree": {"train_eval_leakage": 6.0, "overfitting": -4.0},
    "evaluation_good_at_once": {"train_eval_leakage": 11.0, "metric_bug": 7.0, "train_eval_mismatch": 4.0},
    "evaluation_began_alike": {"train_eval_mismatch": -3.0},
    "evaluation_beyond_start": {"train_eval_mismatch": 6.0, "eval_mode_bug": 5.0, "metric_bug": 3.0},
    "logps_multiplied": {"dpo_collapse": 5.0, "lr_too_high": 4.0},
}
"""Bits for the causes that explain a fact. By hand: eight where a half of the runs with the cause show it and one in
five hundred healthy ones. Of 407 healthy runs of the data set none shows a multiple or a contradiction. None shows
training that is behind or a loss too low for one pass. What two causes explain counts less for each,
and arithmetic without a way out most. What three or more healthy runs show, such as a norm that grows, is stated and
does not weigh. Of 650 healthy runs, public ones among them, none has a part that is subtracted or an entropy that is
lowered. None has a start from scratch, a loss that contradicts its accuracy, much clipping or a move at a resume. Of
runs with a fault, 3 of 44 of `wrong_loss`, 4 of 26 of `entropy_collapse` and 2 of 31 of `bad_init` show the first
three. The others show in 6 of 33 of `metric_bug`, 6 of 13 of `off_policy_staleness` and 10 of 24 of
`resume_state_lost`. A resume itself is known, so a move at one weighs less. A loss that jumps up at one tells against
rows that come again, as those were learnt: 1 of 23 runs that lost their state has it, none of 22 with such rows. A
first loss of ten times a guess is in 4 of 31 runs of `bad_init` and 3 of `grad_accum_scaling`. It is in five of
other causes, none of them with tokens that do not fit, and in none of 650 healthy ones. An
evaluation that ends far above training came down with it at first in 9 of 38 runs that overfit. Of runs whose rows are
prepared in another way 1 of 25 has that. In
9 runs of `train_eval_leakage`, of seven authors, one set of evaluation is served as training is, and another far worse.
No other of 2,500 runs has that. A loss
that is a multiple by its setting is in 8 of 17 runs of `grad_accum_scaling`, and in no other of 2,059. Six healthy
policies and one that is stale are solved with their reward. No run of the data set has a part whose weights stand
still, few weights that change or old samples by their columns. Those bits are by the arithmetic. An evaluation that
is worse for a stretch is in 6 of 49 runs of `bad_batch` and in three of other causes. No healthy one of 580 has it.
An accuracy that is exactly the share of all but a rare class is in 2 runs of `class_imbalance` and no other of 2,178.
Success that falls while training gains is in none of 2,057 runs. Nor are labels that run out, or a part that has a
gradient and never changes. Those bits are by the arithmetic. A rate whose cycles end lower each time is in two healthy
runs and in four of `lr_schedule_bug`. So it counts for health where settings have it alone. Batches of few rows that
learn steadily are in three healthy runs and in one whose rate is too high.
None of these has a start above its checkpoint, or evaluations of few rows at once. Those bits are by the arithmetic."""


_STATED_BY: Mapping[str, Sequence[str]] = {
    "loss_multiple": ("loss_scale_suspicious",),
    "one_jump_a_pass": ("loss_spikes_regular",),
    "success_falls_with_reward": ("eval_reward_falls",),
    "entropy_lowered": ("entropy_bonus_negative",),
    "loss_contradicts_accuracy": ("loss_below_accuracy", "eval_metric_zero", "eval_score_behind_loss"),
    "much_clipped": ("clip_ratio_high",),
    "moves_at_resume": (
        "loss_jump_at_resume",
        "loss_falls_back",
        "epoch_starts_over",
        "state_missing_at_resume",
        "lr_jump_at_resume",
    ),
    "cut_at_limit": ("completions_truncated", "completions_reach_limit"),
    "training_behind": ("train_lags_eval",),
    "undisturbed_training_behind": ("train_lags_eval",),
    "scores_contradict": ("eval_metric_zero", "eval_score_behind_loss"),
    "apart_within_first_pass": ("eval_gap_in_first_pass",),
    "worse_than_any_guess": ("loss_rises", "loss_divergence", "loss_huge"),
    "evaluation_worse_than_any_guess": ("eval_gap_grows", "eval_bad_from_start", "eval_never_improves", "loss_rises"),
}
"""Symptoms that say the same as a fact: what one phenomenon says counts once."""
_REPEATS = ("apart_within_first_pass", "worse_than_any_guess", "evaluation_worse_than_any_guess")
"""Facts that add next to nothing to what the symptom that says the same states."""


_ADDS = ("loss_multiple",)
"""Facts that name a setting besides, which the symptom does not: they count with it, as one question."""


def not_repeated(facts: Sequence[DerivedFact], findings: Sequence[Finding]) -> list[DerivedFact]:
    """Return the facts without one whose numbers a finding has."""
    present = {finding.symptom for finding in findings if finding.state is State.PRESENT}
    return [fact for fact in facts if fact.fact not in _REPEATS or present.isdisjoint(_STATED_BY[fact.fact])]


def evidence_from_columns(facts: Sequence[DerivedFact], findings: Sequence[Finding] = ()) -> list[CauseEvidence]:
    """Return what the facts on the columns of a run say about the causes that explain them.

    A fact that a finding states, too, is left out.
    """
    present = {finding.symptom for finding in findings if finding.state is State.PRESENT}
    return [
        CauseEvidence(cause, bits, fact.text, "log", _question(fact.fact))
        for fact in facts
        if fact.fact in _ADDS or present.isdisjoint(_STATED_BY.get(fact.fact, ()))
        for cause, bits in _SUGGESTS.get(fact.fact, {}).items()
    ]


def _question(fact: str) -> str:
    """Return what a fact answers: the question of the symptom that says the same, else one of its own."""
    return question_of(_STATED_BY[fact][0]) if fact in _ADDS else fact
