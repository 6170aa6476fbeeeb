"""The rules: what in a script is wrong for certain, likely, or depending on what the script does not show.

Each module asks about one topic; its first line says what. A new rule stands with its topic, in `RULES`, and in a row
of `faults.csv`. Each rule looks at the calls in their order. None runs anything. A rule that is not sure says so by its
certainty. What the script does right is found as well, as it rules causes out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mldebug_mcp.models.script import SUREST_FIRST
from mldebug_mcp.script.calls import Call, constant_of
from mldebug_mcp.script.faults import Fault, Rule
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.rules import (
    evaluation,
    gradients,
    labels,
    loaders,
    loss,
    parameters,
    policies,
    rows,
    schedule,
    step,
    trainers,
    without_effect,
)

HOLDS_BACK = re.compile(r"accum(?:ulat|[^a-z])|grad_acc|acc_steps|no_sync|sync_gradients|deepspeed", re.IGNORECASE)
"""What is written in a script whose steps may wait for several batches, by its own code or by that of a framework."""
RULES: tuple[Rule, ...] = (
    loaders.data_order,
    loaders.streams_in_one_order,
    loaders.seeds_set_again,
    loaders.workers_alike,
    loaders.shuffled_apart,
    loaders.not_shuffled_by_a_helper,
    loaders.same_rows_given,
    loaders.same_rows_by_name,
    loaders.evaluates_training_data,
    loaders.same_rows_read,
    loaders.split_twice,
    loaders.drawn_twice,
    loaders.whole_and_part,
    loaders.unused_split,
    loaders.split_of_the_configuration,
    rows.fitted_before_split,
    rows.own_statistics,
    rows.statistics_of_each_part,
    rows.statistics_of_each_slice,
    rows.augmented_evaluation,
    rows.fitted_again,
    rows.scaled_before_split,
    rows.encoder_fitted_before_split,
    rows.scaled_in_training_alone,
    rows.rows_changed_in_place,
    labels.labels_shifted,
    labels.shifted_in_the_data,
    labels.shifted_on_the_way,
    labels.padding_in_loss,
    labels.padding_in_labels,
    labels.mask_inverted,
    labels.ignored_index_differs,
    labels.data_hidden,
    labels.softmax_over_another_axis,
    labels.ignored_where_masked,
    labels.next_place_in_sight,
    labels.vocabularies_differ,
    labels.tokens_without_embedding,
    loss.activation_twice,
    loss.activation_of_a_configuration,
    loss.shapes_broadcast,
    loss.reductions_mixed,
    loss.weights_on_a_mean,
    loss.class_weights_of_single_rows,
    loss.keras_logits,
    loss.arguments_swapped,
    loss.statistics_swapped,
    loss.divergence_of_what,
    loss.softmax_over_the_batch,
    loss.normalized_over_the_batch,
    loss.all_rows_one_target,
    loss.times_the_temperature,
    loss.loss_has_wrong_sign,
    gradients.loss_without_graph,
    gradients.term_without_gradient,
    gradients.losses_kept,
    gradients.part_cut_from_loss,
    gradients.sampled_without_gradient,
    labels.target_is_random,
    labels.target_of_another_prediction,
    policies.policy_moves_its_critic,
    policies.roles_exchanged,
    policies.margin_has_wrong_sign,
    policies.returns_past_the_end,
    policies.target_with_gradient,
    policies.old_log_probability_with_gradient,
    policies.clipped_the_wrong_way,
    policies.divergence_is_rewarded,
    policies.value_of_own_actions_made_smaller,
    policies.reward_is_a_distance,
    policies.entropy_of_target,
    policies.action_without_gradient,
    policies.compared_across_prompts,
    step.gradients_never_cleared,
    step.nothing_is_stepped,
    step.nothing_gives_gradients,
    step.clipping_of_scaled_gradients,
    step.autocast_around_the_loop,
    step.backward_in_autocast,
    step.scaler_half_used,
    step.steps_without_gradient,
    step.clips_without_effect,
    step.schedules_before_optimizer,
    step.never_cleared,
    step.accumulation,
    step.window_thrown_away,
    step.stepped_twice,
    step.state_not_detached,
    schedule.schedule_out_of_step,
    schedule.schedule_counts_another_unit,
    schedule.schedule_at_another_pace,
    schedule.lengths_differ,
    schedule.keras_counts_batches,
    schedule.made_for_lightning_alone,
    schedule.schedule_of_another_optimizer,
    parameters.trains_frozen_model,
    parameters.parameters_left_out,
    parameters.unfrozen_outside_optimizer,
    parameters.head_frozen,
    parameters.target_never_updated,
    parameters.ema_never_applied,
    parameters.ema_never_updated,
    parameters.average_without_buffers,
    parameters.average_forgets,
    parameters.network_without_optimizer,
    parameters.clips_another_model,
    parameters.generator_in_discriminator_loss,
    parameters.target_is_the_same,
    parameters.without_gradient_of_its_own,
    evaluation.modes_left,
    evaluation.modes,
    evaluation.gradients_of_evaluation,
    evaluation.metrics_computed_wrongly,
    evaluation.mean_of_batch_scores,
    evaluation.loss_by_batch_size,
    evaluation.last_batch_only,
    evaluation.sum_times_rows,
    evaluation.rows_by_batches,
    evaluation.rows_of_another,
    evaluation.best_by_the_wrong_side,
    evaluation.never_better,
    evaluation.state_not_loaded,
    evaluation.made_anew_after_loading,
    evaluation.schedule_starts_over,
    evaluation.scheduled_after_loading,
    evaluation.optimizer_starts_over,
    evaluation.moments_not_loaded,
    evaluation.weights_kept_by_reference,
    trainers.step_gives_loss,
    trainers.never_stepped_by_hand,
    trainers.monitored_never_logged,
    trainers.settings_contradict,
    trainers.empty_labels_left_out,
    trainers.observers_go_on,
    trainers.begins_with_whole_gradients,
    trainers.rate_no_longer_chosen,
    trainers.annotation_zero,
    trainers.target_moved_on,
    trainers.steps_of_each_optimizer,
    trainers.logits_by_the_batch,
    trainers.negative_labels_counted,
    trainers.alphabet_of_a_sample,
    trainers.decay_without_rate,
    trainers.adam_of_bf16_weights,
    trainers.merges_dropped_in_evaluation,
    trainers.best_checkpoint_is_nan,
    trainers.classes_numbered_apart,
    trainers.means_counted_in_half,
    trainers.numpy_sums_in_bfloat16,
    trainers.checkpointed_statistics,
    trainers.average_warms_up_anyway,
    without_effect.handler_never_called,
    without_effect.hook_never_called,
    without_effect.never_holds,
    without_effect.counter_passes_by,
    without_effect.result_unused,
    without_effect.argument_unused,
    without_effect.parameter_renamed,
)


@dataclass(frozen=True, slots=True)
class Cleared:
    """A cause that the script rules out, or makes unlikely.

    Args:
        cause: The cause.
        line: The line that says so.
        says: What stands there.
    """

    cause: str
    line: int
    says: str


def faults_of(roles: Roles) -> list[Fault]:
    """Return what is wrong in a script, by line; of one rule a line is named once."""
    found: dict[tuple[str, int], Fault] = {}
    for fault in (fault for rule in RULES for fault in rule(roles)):
        same = found.get((fault.rule, fault.line), fault)
        surest = min(same, fault, key=lambda known: SUREST_FIRST.index(known.certainty))
        found[fault.rule, fault.line] = replace(surest, lines=tuple(dict.fromkeys((*same.lines, *fault.lines))))
    return sorted(found.values(), key=lambda fault: (fault.line, fault.rule))


def cleared_by(roles: Roles, faults: Sequence[Fault]) -> list[Cleared]:
    """Return what a script of its own loop does right; a cause that one of its faults names is not among them."""
    if not roles.trains_by_hand:
        return []
    named = {fault.cause for fault in faults}
    found = [cleared for cleared in _cleared(roles) if cleared.cause not in named]
    return list({cleared.cause: cleared for cleared in found}.values())


def _cleared(roles: Roles) -> Iterator[Cleared]:
    backward = roles.backwards[0]
    for clear in roles.script.named("zero_grad"):
        if any(step.function == clear.function and step.loops == clear.loops for step in roles.steps):
            yield Cleared("missing_zero_grad", clear.line, "gradients are cleared in the loop that steps")
    evals, trains = roles.script.named("eval"), roles.script.named("train")
    if evals and trains:
        yield Cleared(
            "eval_mode_bug", evals[0].line, "the model is put into evaluation mode and back into training mode"
        )
    for call in roles.script.calls:
        if (
            roles.is_cross_entropy(call)
            and call.node.args
            and loss.activation_of(roles, roles.source_of(call.node.args[0], call), call) in ("", "logits")
        ):
            yield Cleared("double_softmax", call.line, "cross-entropy is given outputs without a softmax")
        if call.method == "clip_grad_norm_" and call.order > backward.order and _clips_where_it_steps(roles, call):
            yield Cleared("exploding_gradients", call.line, "gradients are clipped between backward and step")
    for name, made in roles.loaders.items():
        given = (
            {keyword.arg: keyword.value for keyword in made.value.keywords} if isinstance(made.value, ast.Call) else {}
        )
        if "shuffle" in given and constant_of(given["shuffle"]) is True:
            yield Cleared("unshuffled_data", made.line, f"{name} shuffles")
    yield from _warm_up_of_optimizer(roles)
    yield from _steps_without_accumulation(roles)


WARMUPS_OF_OPTIMIZERS = ("warmup_steps", "warmup_length")
"""Parameters by which optimizers such as those of schedulefree and heavyball warm up, unseen in the learning rate."""


def _warm_up_of_optimizer(roles: Roles) -> Iterator[Cleared]:
    """Yield the optimizers that are given the parameters of a model and a warm-up of their own."""
    for call in roles.script.calls:
        steps = next((call.keywords[name] for name in WARMUPS_OF_OPTIMIZERS if name in call.keywords), None)
        made_of = " ".join(ast.unparse(argument) for argument in (*call.node.args, *call.keywords.values()))
        is_off = isinstance(steps, ast.Constant) and not steps.value
        if steps is None or is_off or ".parameters(" not in made_of:
            continue
        says = f"{call.name} warms up by itself over {ast.unparse(steps)} steps, which the learning rate does not show"
        yield Cleared("insufficient_warmup", call.line, says)


def _clips_where_it_steps(roles: Roles, clip: Call) -> bool:
    """Whether gradients are clipped only where a step of the same function follows, not at each micro-batch."""
    steps = [step for step in roles.steps if step.function == clip.function]
    return not steps or any(set(step.conditions) <= set(clip.conditions) for step in steps)


def _steps_at_once(roles: Roles, backward: Call) -> bool:
    """Whether no step that follows in the same function waits for more rounds of the loop of a backward."""
    steps = [step for step in roles.steps if step.function == backward.function]
    return all(
        len(step.loops) >= len(backward.loops) and set(step.conditions) <= set(backward.conditions) for step in steps
    )


def _steps_without_accumulation(roles: Roles) -> Iterator[Cleared]:
    if roles.accumulating:
        says = "accelerator.accumulate divides the loss and steps at the last batch of each window"
        yield Cleared("grad_accum_scaling", roles.accumulating[0].line, says)
    elif all(_steps_at_once(roles, each) for each in roles.backwards) and not HOLDS_BACK.search(roles.source):
        yield Cleared(
            "grad_accum_scaling", roles.backwards[0].line, "each batch makes a step: no gradients are accumulated"
        )
