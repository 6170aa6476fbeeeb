"""How columns stand to one another, to bounds, to the steps of events and to settings: facts with what is expected.

What is asked is the quantity that a column holds, and arithmetic. The mean of the labels alone goes by its name. A fact
names no cause.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, islice

import numpy as np

from mldebug_mcp.judge.columns import Kind, course, evaluation, expected, policies, printed, trained
from mldebug_mcp.judge.ranking import CauseEvidence, question_of
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.logs import Run
from mldebug_mcp.models import Finding, State
from mldebug_mcp.models.diagnosis import DerivedFact

MOST_FACTS = 6
"""Facts of one run. Chosen: what an answer has room for."""
_KINDS: tuple[Kind, ...] = (
    trained.nothing_trained, trained.sum_stops, course.start_thrown_away, course.zeros_end_passes,
    trained.lost_where_negative, trained.norm_lost, trained.lost_near_zero, trained.lost_by_scale,
    trained.lost_with_gradient, trained.lost_at_once, trained.lost_by_chance, trained.steps_of_one_length,
    trained.weights_stand_still, trained.weights_come_to_rest, trained.part_stands_still, trained.parts_shrink_apart,
    trained.weights_at_zero, trained.scores_stand_still, trained.answers_of_all_rows, expected.events_go_on,
    expected.steps_skipped, expected.off_expectation, expected.predictions_off_labels, expected.layer_gives_nothing,
    expected.part_without_gradient, expected.layers_shrink, expected.policy_never_moves, expected.values_above_returns,
    expected.score_worsens, expected.evaluation_is_training, expected.sets_score_apart, expected.part_never_learns,
    expected.sides_disagree, expected.true_reward_falls, expected.loss_by_noise_backwards,
    expected.component_never_earned, evaluation.prompts_count_unmeant, evaluation.prompts_count_by_setting,
    evaluation.both_sides_count, evaluation.loss_apart_from_answers, evaluation.answers_with_silence,
    evaluation.data_floor, evaluation.better_than_baseline, trained.subtracted, trained.divergence_against_mean,
    course.rate_at_floor_at_once, course.rate_rests_early, course.rate_zero_throughout,
    course.rate_falls_before_milestones, course.stages_explain_jumps, course.scaled_at_once, course.batch_comes_again,
    course.rows_after_resume, course.begins_anew_at_resume, course.gradients_alike, course.events_at_one_rank,
    course.input_far_off, trained.penalty_rules, policies.values_run_off, policies.source_mirrored, course.time_grows,
    policies.success_falls, policies.success_stays_low, policies.pairs_contradict, policies.writing_falls_with_pairs,
    policies.picks_worse_than_chance, policies.grades_fall_with_pairs, policies.cut_ones_earn,
    policies.training_pairs_behind, policies.answers_alike, policies.falls_at_intervals,
    evaluation.known_but_not_written, evaluation.answers_begin_later, evaluation.inputs_differ,
    course.norm_huge_at_start, course.norm_grows_backwards, course.norm_runs_away, course.cycles_end_lower,
    course.few_rows_learn, course.state_begins_anew, course.around_resumes, course.easier_after_evaluation,
    evaluation.untrained, evaluation.above_checkpoint, evaluation.far_beyond_guess, evaluation.unknown_tokens,
    evaluation.answers_no_longer_end, evaluation.scored_apart, evaluation.scored_apart_at_end, trained.many_units_dead,
    trained.layer_of_zeros, evaluation.ranked_backwards, evaluation.files_shared, printed.groups_shared,
    evaluation.negated_probability, evaluation.quantiles_mirrored, evaluation.scores_equal, evaluation.perfect_at_once,
    policies.entropy_out_of_bounds, evaluation.training_rows_evaluated, evaluation.evaluated_twice,
    evaluation.below_accuracy, evaluation.losses_and_accuracies_disagree, evaluation.ranking_by_chance,
    evaluation.ranking_stands_still, evaluation.hits_contradict_ranks, evaluation.scores_out_of_order,
    evaluation.score_of_last_batch, evaluation.loss_rises_with_order, evaluation.multiples,
    evaluation.evaluation_after_passes, evaluation.evaluation_by_rows_at_once, evaluation.worse_beyond_length,
    evaluation.held_out_sets_disagree, evaluation.evaluation_stands_still, evaluation.evaluation_began_alike,
    evaluation.evaluation_good_at_once, evaluation.too_low_for_one_pass, evaluation.repeats_itself,
    evaluation.skips_letters, trained.update_below_spacing, trained.update_partly_lost, trained.average_below_spacing,
    course.norm_rises_in_each_pass, course.norm_rises_with_batch, trained.descent_below_spacing,
    trained.few_weights_change, trained.weights_hardly_move, policies.moved_before_update, policies.ratio_leaves_one,
    policies.stale_policy, policies.old_samples_far_off, policies.solved_with_reward, policies.little_left_to_earn,
    policies.nothing_written, policies.chance_ends_at_once, evaluation.few_distinct_rows, evaluation.within_first_pass,
    evaluation.where_the_gap_opens, evaluation.evaluation_beyond_start, course.rows_of_a_batch_alike,
    course.labels_in_order, evaluation.narrow_layer, evaluation.narrow_between, evaluation.base_rate,
    evaluation.beyond_guess, course.piece_stands_out, course.levels_come_again, course.one_jump_a_pass,
    course.order_recurs, course.few_places_of_period, course.worse_for_a_stretch, course.update_of_a_part_jumps,
    course.stops_at_spike, policies.groups_alike, policies.far_without_gain, policies.logps_multiplied,
    policies.both_sides_sink, policies.begins_off_reference, policies.entropy_lowered, policies.unpaid_entropy_lost,
    policies.much_clipped, trained.rising_parts, trained.weighed_parts, evaluation.at_bounds,
    evaluation.outside_of_shares, evaluation.beyond_one, evaluation.uniform_policy, evaluation.contradictions,
    evaluation.majority, evaluation.classes_unanswered, evaluation.training_behind, policies.at_limit, course.growing,
    course.column_runs_off, course.frozen_columns, course.at_first_evaluation, course.periods,
)  # fmt: skip
"""What yields facts of one kind, the sharpest kinds first; the first fact of a kind counts."""
_EACH_COUNTS = frozenset({
    trained.answers_of_all_rows, trained.update_below_spacing, trained.weighed_parts, evaluation.at_bounds,
    policies.entropy_out_of_bounds, policies.success_falls, policies.success_stays_low, course.around_resumes,
    course.growing, expected.events_go_on, expected.off_expectation,
})  # fmt: skip
"""Kinds whose facts say several things: each of them counts."""


def column_facts(run: Run) -> list[DerivedFact]:
    """Return how the columns of a run stand to one another, to bounds and to settings, the sharpest kinds first."""
    with np.errstate(all="ignore"):
        of_kinds = (islice(kind(run), None if kind in _EACH_COUNTS else 1) for kind in _KINDS)
        return list(islice(chain.from_iterable(of_kinds), MOST_FACTS))


_STATED_BY: Mapping[str, Sequence[str]] = {
    "loss_multiple": ("loss_scale_suspicious",),
    "start_thrown_away": ("loss_rises", "loss_divergence", "loss_above_start", "loss_jumps_at_start", "loss_huge"),
    "rate_at_floor_at_once": ("lr_decays_early", "lr_schedule_short"),
    "rate_rests_early": ("lr_decays_early", "lr_schedule_short"),
    "levels_come_again": ("batches_recur",),
    "one_jump_a_pass": ("loss_spikes_regular",),
    "success_falls_with_reward": ("eval_reward_falls",),
    "chance_ends_at_once": ("exploration_ends_early",),
    "nothing_written": ("completion_length_shrinks",),
    "entropy_lowered": ("entropy_bonus_negative",),
    "loss_contradicts_accuracy": ("loss_below_accuracy", "eval_metric_zero", "eval_score_behind_loss"),
    "much_clipped": ("clip_ratio_high",),
    "time_grows": ("step_time_grows", "step_time_doubles"),
    "norm_adds_up": ("grad_norm_adds_up",),
    "many_units_dead": ("units_dead",),
    "layer_of_zeros": ("units_dead",),
    "ranked_backwards": ("eval_below_chance",),
    "moves_at_resume": (
        "loss_jump_at_resume", "loss_falls_back", "epoch_starts_over", "state_missing_at_resume", "lr_jump_at_resume",
    ),
    "cut_at_limit": ("completions_truncated", "completions_reach_limit"),
    "training_behind": ("train_lags_eval",),
    "undisturbed_training_behind": ("train_lags_eval",),
    "scores_contradict": ("eval_metric_zero", "eval_score_behind_loss"),
    "apart_within_first_pass": ("eval_gap_in_first_pass",),
    "worse_than_any_guess": ("loss_rises", "loss_divergence", "loss_huge"),
    "evaluation_worse_than_any_guess": ("eval_gap_grows", "eval_bad_from_start", "eval_never_improves", "loss_rises"),
}  # fmt: skip
"""Symptoms that say the same as a fact: what one phenomenon says counts once."""
_REPEATS = (
    "apart_within_first_pass", "worse_than_any_guess", "evaluation_worse_than_any_guess", "start_thrown_away",
)  # fmt: skip
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
    "source_contradicts": ("eval_gap", "eval_rise", "eval_score_gap", "eval_chance"),
    "prompts_count_unmeant": ("eval_gap",),
    "padding_counts": ("eval_gap",),
    "falls_at_intervals": ("policy_movement",),
    "old_samples_far_off": ("policy_movement", "policy_entropy", "reward_course"),
    "sum_stops": ("eval_gap", "loss_level"),
    "hits_contradict_ranks": ("eval_frozen",),
    "ranking_stands_still": ("eval_frozen",),
    "worse_beyond_length": ("eval_gap", "eval_rise"),
    "levels_come_again": ("data_order", "loss_events", "loss_level", "gradient_level"),
    "norm_high_at_one_place": ("same_order", "data_order", "loss_beginning", "eval_below"),
    ONE_RANK: ("loss_level", "loss_noisy", "loss_beginning", "loss_events", "loss_course", "gradient_level"),
}
"""Questions whose symptoms a fact makes: pairs the wrong way round have a loss far above training, which grows as the
others are learnt; prompts are easier than answers; old samples make a policy look far off; the mean over ranks goes
with the one that parts. They are shown, and count with the fact, once."""
_SHOWN_BY_ZEROS = (
    "loss_drops_to_zero", "loss_periodic", "loss_spikes_regular", "loss_sawtooth", "loss_pattern_by_epoch",
    "loss_epoch_steps", "loss_noisy", "batches_recur", "few_batches_stand_out",
)  # fmt: skip
"""What losses of exactly 0 at the end of each pass look like."""
_EXPLAINED_BY: Mapping[str, Sequence[str]] = {
    "batches_of_one_row": _SHOWN_BY_ZEROS,
    "last_batch_of_one_row": _SHOWN_BY_ZEROS,
    "empty_batches": ("loss_nonfinite", "loss_nonfinite_passes", "nonfinite_recurs"),
    "scaled_at_once": ("loss_above_start", "loss_divergence", "loss_rises"),
    "stages_explain_jumps": (
        "loss_above_start", "loss_divergence", "loss_hump", "loss_rises", "loss_spike", "loss_spike_high",
        "loss_spike_single", "spike_fades", "grad_norm_spike",
    ),
}  # fmt: skip
"""Symptoms that need no fault where a fact at the same step gives their reason."""


def with_reasons(findings: Sequence[Finding], facts: Sequence[DerivedFact]) -> list[Finding]:
    """Return the findings; those that a fact at the same step explains without a fault become unknown.

    A fact of several steps explains all jumps, so that it holds at any step.
    """
    reasons = {
        (symptom, fact.steps[0] if len(fact.steps) == 1 else None): fact.text
        for fact in facts
        for symptom in _EXPLAINED_BY.get(fact.fact, ())
    }
    return [
        finding if reason is None else finding.model_copy(update={"state": State.UNKNOWN, "summary": reason})
        for finding in findings
        for at in [finding.steps[0] if finding.steps else None]
        for reason in [reasons.get((finding.symptom, at), reasons.get((finding.symptom, None)))]
    ]


def evidence_from_columns(facts: Sequence[DerivedFact], findings: Sequence[Finding] = ()) -> list[CauseEvidence]:
    """Return what the facts on the columns of a run say about the causes that explain them.

    A fact that a finding states, too, is left out.
    """
    present = {finding.symptom for finding in findings if finding.state is State.PRESENT}
    return [
        CauseEvidence(
            cause, bits, fact.text, "log", question_of(_STATED_BY[fact.fact][0]) if fact.fact in _ADDS else fact.fact
        )
        for fact in facts
        if fact.fact in _ADDS or present.isdisjoint(_STATED_BY.get(fact.fact, ()))
        for cause, bits in catalogue().relations.get(fact.fact, {}).items()
    ]
