"""How columns stand to one another, to bounds, to the steps of events and to settings: facts with what is expected.

What is asked is the quantity that a column holds, and arithmetic. The mean of the labels alone goes by its name. A fact
names no cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from mldebug_mcp.judge.columns import course, evaluation, guesses, policies, trained
from mldebug_mcp.judge.ranking import CauseEvidence, question_of
from mldebug_mcp.logs import Run
from mldebug_mcp.models import Finding, State
from mldebug_mcp.models.base import SOUND
from mldebug_mcp.models.diagnosis import DerivedFact

MOST_FACTS = 6
"""Facts of one run. Chosen: what an answer has room for."""
_KINDS: tuple[Callable[[Run], Iterator[DerivedFact]], ...] = (
    trained.nothing_trained, trained.lost_where_negative, trained.lost_near_zero, trained.lost_by_scale,
    trained.lost_with_gradient, trained.steps_of_one_length, trained.weights_stand_still, trained.weights_come_to_rest,
    trained.part_stands_still, trained.scores_stand_still,
    guesses.prompts_count_unmeant, guesses.data_floor, guesses.better_than_baseline, trained.subtracted,
    trained.divergence_against_mean,
    course.rate_at_floor_at_once, course.rate_zero_throughout, course.rate_falls_before_milestones,
    course.stages_explain_jumps,
    policies.success_falls, policies.success_stays_low, policies.pairs_contradict, policies.cut_ones_earn,
    policies.falls_at_intervals, evaluation.known_but_not_written, evaluation.inputs_differ,
    course.norm_huge_at_start, course.norm_runs_away, course.cycles_end_lower, course.few_rows_learn,
    course.around_resumes, guesses.untrained, guesses.above_checkpoint, guesses.far_beyond_guess,
    guesses.unknown_tokens,
    evaluation.negated_probability,
    evaluation.training_rows_evaluated, evaluation.evaluated_twice, evaluation.below_accuracy,
    evaluation.ranking_by_chance, evaluation.loss_rises_with_order, evaluation.multiples,
    evaluation.evaluation_after_passes, evaluation.evaluation_by_rows_at_once,
    evaluation.held_out_sets_disagree, evaluation.evaluation_began_alike, evaluation.evaluation_good_at_once,
    guesses.too_low_for_one_pass, trained.update_below_spacing, trained.few_weights_change,
    trained.weights_hardly_move, policies.stale_policy,
    policies.solved_with_reward, evaluation.within_first_pass,
    evaluation.where_the_gap_opens, evaluation.evaluation_beyond_start, course.rows_of_a_batch_alike,
    guesses.narrow_layer, guesses.base_rate, guesses.beyond_guess, course.one_jump_a_pass, course.worse_for_a_stretch,
    course.stops_at_spike, policies.groups_alike,
    policies.far_without_gain, policies.logps_multiplied, policies.entropy_lowered, policies.unpaid_entropy_lost,
    policies.much_clipped, trained.rising_parts, trained.weighed_parts, guesses.at_bounds, guesses.outside_of_shares,
    guesses.beyond_one,
    guesses.uniform_policy, evaluation.contradictions, guesses.majority, evaluation.training_behind, policies.at_limit,
    course.growing, course.frozen_columns, course.at_first_evaluation, course.periods,
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
    "weights_come_to_rest": {"low_precision_update": 8.0, "too_little_capacity": -2.0, SOUND: -2.0},
    "scores_stand_still": {"params_not_training": 6.0, "lr_too_low": -4.0, "clip_too_tight": -2.0},
    "part_stands_still": {"params_not_training": 6.0},
    "part_stands_still_with_gradient": {"params_not_training": 12.0, SOUND: -2.0},
    "prompts_count_unmeant": {"prompt_not_masked": 10.0},
    "below_data_floor": {
        "label_shift_error": 7.0,
        "causal_mask_missing": 7.0,
        "train_eval_leakage": 3.0,
        SOUND: -4.0,
    },
    "better_than_baseline": {SOUND: 2.0, "no_signal": -4.0},
    "near_data_floor": {SOUND: 4.0, "lr_too_low": -3.0},
    "cycles_end_lower": {"overfitting": -3.0, "lr_too_high": -3.0, "insufficient_warmup": -3.0},
    "set_cycles_end_lower": {SOUND: 3.0, "overfitting": -3.0, "lr_too_high": -3.0, "insufficient_warmup": -3.0},
    "rate_at_floor_at_once": {"lr_schedule_bug": 9.0, "lr_too_low": -2.0, SOUND: -2.0},
    "rate_falls_before_milestones": {"lr_schedule_bug": 9.0, SOUND: -2.0},
    "rate_zero_throughout": {"lr_schedule_bug": 4.0, "params_not_training": 2.0, "lr_too_low": -6.0},
    "stages_explain_jumps": {
        SOUND: 3.0,
        "bad_batch": -4.0,
        "bad_data_pocket": -4.0,
        "lr_too_high": -3.0,
        "adam_instability": -3.0,
    },
    "few_rows_learn": {"batch_too_small": -5.0},
    "few_weights_change": {"low_precision_update": 10.0},
    "stale_policy": {"off_policy_staleness": 5.0},
    "solved_with_reward": {SOUND: 3.0, "reward_hacking": -4.0, "length_exploitation": -4.0},
    "success_falls_with_reward": {"reward_hacking": 8.0, SOUND: -4.0},
    "success_stays_low": {"reward_hacking": 5.0, "length_exploitation": 4.0, SOUND: -6.0},
    "as_long_as_before": {"length_exploitation": -6.0},
    "success_gone": {"reward_hacking": 3.0, "length_exploitation": -6.0},
    "success_falls_with_pairs": {"preference_labels_swapped": 12.0, "dpo_collapse": 3.0, SOUND: -4.0},
    "success_falls_with_loss": {"label_shift_error": 8.0, "causal_mask_missing": 3.0, "metric_bug": 3.0, SOUND: -4.0},
    "pairs_contradict": {
        "preference_labels_swapped": 10.0,
        "train_eval_mismatch": 5.0,
        "dpo_collapse": -3.0,
        SOUND: -6.0,
    },
    "cut_ones_earn": {"length_exploitation": 6.0, "reward_hacking": 3.0, "kl_blowup": -2.0, SOUND: -4.0},
    "falls_at_intervals": {"off_policy_staleness": 10.0, "lr_too_high": -4.0, "kl_blowup": -3.0},
    "known_but_not_written": {
        "label_shift_error": 8.0,
        "causal_mask_missing": 5.0,
        "metric_bug": 3.0,
        "train_eval_mismatch": 3.0,
        SOUND: -6.0,
    },
    "norm_runs_away": {"exploding_gradients": 5.0, "lr_too_high": 3.0, "invalid_math": -4.0},
    "norm_huge_at_start": {"exploding_gradients": 10.0, "bad_init": 5.0, "lr_too_high": -4.0, SOUND: -4.0},
    "norm_adds_up": {"missing_zero_grad": 10.0, SOUND: -4.0},
    "lost_where_negative": {"invalid_math": 14.0, "lr_too_high": -3.0, "exploding_gradients": -3.0},
    "lost_near_zero": {"invalid_math": 4.0, "lr_too_high": -1.0, "exploding_gradients": -1.0},
    "lost_by_scale": {"fp8_zero_scale": 9.0, "exploding_gradients": -4.0, "lr_too_high": -4.0},
    "lost_with_gradient": {"all_labels_masked": -4.0},
    "steps_of_one_length": {"clip_too_tight": 6.0, "wrong_loss": -2.0},
    "part_subtracted": {"wrong_loss": 6.0},
    "part_given_up": {"wrong_loss": 5.0, SOUND: -2.0},
    "divergence_against_mean": {"wrong_loss": 9.0, "representation_collapse": -2.0, SOUND: -4.0},
    "entropy_lowered": {"entropy_collapse": 6.0},
    "far_without_gain": {
        "kl_blowup": 4.0,
        "lr_too_high": 3.0,
        "off_policy_staleness": 4.0,
        "length_exploitation": -4.0,
        "reward_hacking": -4.0,
        SOUND: -3.0,
    },
    "unpaid_entropy_lost": {"entropy_collapse": 4.0, "exploration_failure": 2.0},
    "starts_untrained": {"bad_init": 4.0},
    "first_loss_far_beyond_guess": {"bad_init": 4.0, "grad_accum_scaling": 3.0, "tokenizer_mismatch": -3.0},
    "evaluation_differs": {"eval_mode_bug": 8.0, "train_eval_mismatch": 6.0, "overfitting": -6.0, SOUND: -4.0},
    "negated_probability": {"wrong_loss": 6.0, SOUND: -4.0},
    "unknown_tokens": {"tokenizer_mismatch": 7.0, "bad_init": -3.0, SOUND: -2.0},
    "weights_hardly_move": {"lr_too_low": 9.0, "no_signal": -3.0, "vanishing_gradients": -3.0, "dead_units": -3.0},
    "groups_alike_without_entropy": {"entropy_collapse": 6.0, "reward_broken": -6.0, SOUND: -4.0},
    "groups_alike_with_entropy": {"no_reward_variance": 4.0, "entropy_collapse": -4.0, SOUND: -2.0},
    "inputs_differ": {"train_eval_mismatch": 10.0, "eval_mode_bug": -4.0, "no_signal": -4.0, SOUND: -6.0},
    "loss_rises_with_order": {"metric_bug": 8.0, "lr_too_high": -6.0, "exploding_gradients": -4.0, SOUND: -2.0},
    "ranking_by_chance": {"metric_bug": 12.0, "overfitting": -4.0, SOUND: -4.0},
    "evaluated_twice": {"eval_mode_bug": 11.0},
    "gap_between_rows": {"overfitting": 3.0, "eval_mode_bug": -4.0},
    "loss_contradicts_accuracy": {"metric_bug": 6.0, "eval_mode_bug": 3.0, "overfitting": -3.0, SOUND: -3.0},
    "much_clipped": {"off_policy_staleness": 5.0, "kl_blowup": 3.0, "entropy_collapse": 3.0},
    "moves_at_resume": {"resume_state_lost": 3.0, "resume_data_replayed": 1.0},
    "rises_at_resume": {"resume_state_lost": 3.0, "resume_data_replayed": -4.0},
    "loss_multiple": {"grad_accum_scaling": 8.0},
    "part_stays": {"params_not_training": 9.0, "wrong_loss": 6.0},
    "scores_contradict": {"metric_bug": 7.0},
    "beyond_one": {"metric_bug": 12.0},
    "outside_of_shares": {"metric_bug": 14.0, SOUND: -4.0},
    "surer_than_guess_as_loaded": {"tokenizer_mismatch": 10.0, "bad_init": -4.0},
    "surer_than_guess": {"tokenizer_mismatch": 5.0},
    "evaluation_by_rows_at_once": {"eval_mode_bug": 10.0},
    "majority_alone": {"class_imbalance": 2.0},
    "one_answer_of_majority": {"class_imbalance": 6.0, "metric_bug": -4.0},
    "rare_class_unanswered": {"class_imbalance": 5.0, "metric_bug": -4.0},
    "cut_at_limit": {"completion_limit_low": 5.0},
    "none_ends": {"completion_limit_low": 3.0, SOUND: -2.0},
    "update_below_spacing": {"low_precision_update": 10.0},
    "too_low_for_one_pass": {"label_shift_error": 4.0, "causal_mask_missing": 4.0},
    "worse_than_constant": {"double_softmax": 6.0},
    "training_behind": {"label_noise": 6.0},
    "undisturbed_training_behind": {"label_noise": 9.0},
    "apart_within_first_pass": {"resume_data_replayed": 7.0, "duplicated_data": 6.0},
    "narrow_layer": {"too_little_capacity": 8.0, SOUND: -3.0},
    "by_heart_in_few_passes": {"duplicated_data": 5.0, "train_eval_mismatch": -4.0, SOUND: -2.0},
    "turns_after_many_passes": {"duplicated_data": -5.0},
    "rows_of_a_batch_alike": {"unshuffled_data": 7.0, "bad_data_pocket": 4.0, "label_noise": -4.0, SOUND: -4.0},
    "no_better_than_constant": {"no_signal": 4.0},
    "uniform_policy": {"exploration_failure": 3.0, "no_signal": 3.0},
    "worse_than_any_guess": {"lr_too_high": 5.0, "missing_zero_grad": 4.0, "wrong_loss": 4.0, "bad_init": 3.0},
    "evaluation_worse_than_any_guess": {"lr_too_high": 3.0},
    "one_jump_a_pass": {"bad_data_pocket": 5.0, "bad_batch": 4.0},
    "worse_for_a_stretch": {"bad_batch": 3.0, "bad_data_pocket": 3.0, SOUND: -3.0},
    "stops_at_spike": {"low_precision_update": 5.0, "adam_instability": 3.0, SOUND: -4.0},
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
three. The others show in 8 of 33 of `metric_bug`, 6 of 13 of `off_policy_staleness` and 10 of 24 of
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
One that never moves next to a Dice or F1 of 0, while the loss falls, is in 10 of them, and in no other.
Success that falls while training gains is in none of 2,057 runs. Nor are labels that run out, or a part that has a
gradient and never changes. Those bits are by the arithmetic. A rate whose cycles end lower each time is in two healthy
runs and in four of `lr_schedule_bug`. So it counts for health where settings have it alone. Batches of few rows that
learn steadily are in three healthy runs and in one whose rate is too high. Steps of one length are in 7 runs of
`clip_too_tight`, pairs that contradict in 4 of `preference_labels_swapped`. Falls at intervals are in 2 of
`off_policy_staleness`, norms that add up smoothly in 13 of `missing_zero_grad`. Cut answers that earn are in one that
hacks its reward by length. No other of 2,178 runs has these five. None of them has a norm that runs away before the
loss, or a loss that is lost where a column is negative. Nor has one texts that are never right with tokens that are
known. None of these has a start above its checkpoint, or evaluations of few rows at once. Those bits are by the
arithmetic. So are those of a rate at its floor at once or falling too early, of scores that stand still, and of hits by
chance. So are those of stages and of a loss that rises with the order. None of 2,195 runs has a part that is given up
for one below zero. A first loss that is lost with its gradient is in 4 runs of `invalid_math` and 7 of `fp16_overflow`.
In 10 of `all_labels_masked`, and no other, that gradient is 0. Those of a rate of 0 throughout and of a share outside
of 0 to 100 % are by hand, too. So are those of a divergence against a mean and of an evaluation below a baseline, which
no run of the data set has. Nor has one a minimum near zero before its loss is lost, or an entropy that nothing pays for
and that is lost. Rows of training that do as badly as rows held out are in 2 runs of `eval_mode_bug` and no other. Of
2,346 runs 25 have weights that hardly move, 23 of them of `lr_too_low` and 2 of `low_precision_update`. Groups that
earn alike are in 6 runs of `entropy_collapse` where the entropy is lost. Where it is kept, they are in 6 of
`no_reward_variance` and 1 other; none of these is healthy. No run has a negated probability, many unknown tokens, or a
start above a guess with weights that are loaded. Those bits are by the arithmetic.
Weights that come to rest are in none of 2,346 runs. Policies that go far without gain are 4 of `kl_blowup`, 2 that are
stale and one with a high rate. A layer too narrow for the classes is in one of `too_little_capacity`.
Of 2346 runs 3 of `reward_hacking`, 4 of `length_exploitation` and 1 of `kl_blowup` earn nearly all
while few answers are right. A huge norm at first is in 3 of `exploding_gradients` and 1 of `bad_init`. Batches of
like rows are in 5 of `unshuffled_data` and 1 of `bad_data_pocket`. Rows known by heart in few passes are in 6 of
`duplicated_data` and 2 of other causes. No healthy run has these, and none a statistic of inputs that is far off. Of 16
runs that turn after many passes, 10 of `overfitting` and a healthy one, none is of `duplicated_data`."""
_STATED_BY: Mapping[str, Sequence[str]] = {
    "loss_multiple": ("loss_scale_suspicious",),
    "rate_at_floor_at_once": ("lr_decays_early", "lr_schedule_short"),
    "one_jump_a_pass": ("loss_spikes_regular",),
    "success_falls_with_reward": ("eval_reward_falls",),
    "entropy_lowered": ("entropy_bonus_negative",),
    "loss_contradicts_accuracy": ("loss_below_accuracy", "eval_metric_zero", "eval_score_behind_loss"),
    "much_clipped": ("clip_ratio_high",),
    "norm_adds_up": ("grad_norm_adds_up",),
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


ONE_RANK = "one_rank_astray"
FOLLOWS_FROM: Mapping[str, Sequence[str]] = {
    "pairs_contradict": ("eval_gap", "eval_rise", "eval_score_gap", "eval_chance"),
    ONE_RANK: ("loss_level", "loss_noisy", "loss_beginning", "loss_events", "loss_course", "gradient_level"),
}
"""Questions whose symptoms a fact makes: pairs the wrong way round have a loss far above training, which grows as the
others are learnt; the mean over ranks goes with the one that parts. They are shown, and count with the fact, once."""


_EXPLAINED_BY: Mapping[str, Sequence[str]] = {
    "stages_explain_jumps": (
        "loss_above_start",
        "loss_divergence",
        "loss_hump",
        "loss_rises",
        "loss_spike",
        "loss_spike_high",
        "loss_spike_single",
        "spike_fades",
        "grad_norm_spike",
    ),
}
"""Symptoms that need no fault where a fact at the same step gives their reason."""


def with_reasons(findings: Sequence[Finding], facts: Sequence[DerivedFact]) -> list[Finding]:
    """Return the findings; those that a fact at the same step explains without a fault become unknown."""
    reasons = {(symptom, fact.steps[0]): fact.text for fact in facts for symptom in _EXPLAINED_BY.get(fact.fact, ())}
    return [
        finding if reason is None else finding.model_copy(update={"state": State.UNKNOWN, "summary": reason})
        for finding in findings
        for reason in [reasons.get((finding.symptom, finding.steps[0])) if finding.steps else None]
    ]


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
