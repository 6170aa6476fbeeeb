"""The rules: what in a script is wrong for certain, likely, or depending on what the script does not show.

Each rule looks at the calls in their order. None runs anything. A rule that is not sure says so by its certainty. What
the script does right is found as well, as it rules causes out.
"""

from mldebug_mcp.script.faults import Fault, Rule
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.rules import (
    arguments,
    conditions,
    data,
    evaluation,
    groups,
    handlers,
    labels,
    lightning,
    loss,
    meaning,
    networks,
    order,
    parameters,
    reinforcement,
    rows,
    schedule,
    signs,
    step,
    unused,
)

RULES: tuple[Rule, ...] = (
    step.gradients_never_cleared,
    step.nothing_is_stepped,
    step.nothing_gives_gradients,
    step.clipping_of_scaled_gradients,
    step.backward_in_autocast,
    step.scaler_half_used,
    order.steps_without_gradient,
    order.clips_without_effect,
    handlers.clipped_by_a_late_handler,
    order.schedules_before_optimizer,
    order.never_cleared,
    order.modes_left,
    step.accumulation,
    step.stepped_twice,
    step.state_not_detached,
    schedule.schedule_out_of_step,
    schedule.lightning_interval,
    schedule.schedule_of_another_optimizer,
    evaluation.modes,
    evaluation.gradients_of_evaluation,
    evaluation.metrics_computed_wrongly,
    evaluation.last_batch_only,
    evaluation.sum_times_rows,
    evaluation.rows_by_batches,
    evaluation.best_by_the_wrong_side,
    loss.activation_twice,
    loss.loss_without_graph,
    loss.policy_moves_its_critic,
    loss.losses_kept,
    loss.shapes_broadcast,
    loss.reductions_mixed,
    loss.weights_on_a_mean,
    loss.keras_logits,
    labels.labels_shifted,
    labels.shifted_in_the_data,
    labels.padding_in_loss,
    labels.padding_in_labels,
    lightning.step_gives_loss,
    meaning.arguments_swapped,
    meaning.divergence_of_what,
    meaning.softmax_over_the_batch,
    meaning.mask_inverted,
    meaning.ignored_index_differs,
    meaning.next_place_in_sight,
    meaning.all_rows_one_target,
    meaning.target_is_random,
    meaning.times_the_temperature,
    meaning.sampled_without_gradient,
    conditions.never_holds,
    conditions.counter_passes_by,
    data.data_order,
    data.evaluation_data,
    data.own_statistics,
    data.augmented_evaluation,
    data.seeds_set_again,
    data.workers_alike,
    data.shuffled_apart,
    data.split_twice,
    data.not_shuffled_by_a_helper,
    data.unused_split,
    data.scaled_before_split,
    rows.encoder_fitted_before_split,
    rows.scaled_in_training_alone,
    rows.rows_changed_in_place,
    parameters.parameters_left_out,
    parameters.unfrozen_outside_optimizer,
    parameters.head_frozen,
    signs.loss_has_wrong_sign,
    networks.target_never_updated,
    networks.ema_never_applied,
    networks.ema_never_updated,
    networks.average_without_buffers,
    networks.average_forgets,
    networks.network_without_optimizer,
    networks.clips_another_model,
    networks.generator_in_discriminator_loss,
    networks.target_is_the_same,
    networks.weights_kept_by_reference,
    networks.without_gradient_of_its_own,
    reinforcement.returns_past_the_end,
    reinforcement.target_with_gradient,
    reinforcement.old_log_probability_with_gradient,
    reinforcement.clipped_the_wrong_way,
    reinforcement.divergence_is_rewarded,
    reinforcement.value_of_own_actions_made_smaller,
    groups.compared_across_prompts,
    unused.result_unused,
    unused.argument_unused,
    arguments.settings_contradict,
)


def faults_of(roles: Roles) -> list[Fault]:
    """Return what is wrong in a script, by line; of one rule a line is named once."""
    found: dict[tuple[str, int], Fault] = {}
    for fault in (fault for rule in RULES for fault in rule(roles)):
        held = found.get((fault.rule, fault.line))
        if held is None or BY_CERTAINTY[fault.certainty] < BY_CERTAINTY[held.certainty]:
            found[fault.rule, fault.line] = fault
    return sorted(found.values(), key=lambda fault: (fault.line, fault.rule))


BY_CERTAINTY = {"certain": 0, "likely": 1, "depends": 2}
