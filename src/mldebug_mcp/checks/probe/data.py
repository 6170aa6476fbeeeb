"""Do the outputs depend on the inputs, and can the labels be learned from them?"""

from __future__ import annotations

from mldebug_mcp.checks.check import CannotTell, Evidence, probe_symptom
from mldebug_mcp.checks.probe import is_random, learns, require_unlike_units
from mldebug_mcp.core.text import figure
from mldebug_mcp.probe.measured import Dependence, Measured, Reference


@probe_symptom(
    effects={"no_signal": "often", "dead_units": "often", "vanishing_gradients": "sometimes"},
    sources=("karpathy_recipe",),
)
def probe_input_ignored(measured: Measured, dependence: Dependence) -> Evidence | None:
    """The output does not change with the input."""
    if is_random(measured):
        raise CannotTell("each call draws what it computes the loss of")
    if dependence.inputs_change is None:
        raise CannotTell("the output could not be compared")
    require_unlike_units(measured, "give the same for all inputs")
    return Evidence("the output stays the same with other inputs") if dependence.inputs_change < 1e-6 else None


@probe_symptom(effects={"no_signal": "sometimes", "bad_batch": "rarely"})
def probe_inputs_constant(measured: Measured, distinct_inputs: int, reference: Reference) -> Evidence | None:
    """All rows have the same input, or the model is given the same for all, though their labels differ."""
    if distinct_inputs == 1 and reference.least > 0:
        return Evidence("all rows have the same input, with different labels")
    differ = (reference.distinct_labels or 0) > 1 or (reference.variance or 0.0) > 0
    if measured.distinct_given != 1 or not differ or measured.memorised:
        return None
    return Evidence("the model is given the same for all rows, with different labels")


MIN_ROWS_OF_ONE_LABEL = 8
"""Rows from which one label for all is not an accident. Chosen: of two equal classes one batch in 128 has it."""


@probe_symptom(
    effects={"class_imbalance": "usually", "no_signal": "sometimes", "unshuffled_data": "sometimes"}, background=0.0005
)
def probe_labels_constant(measured: Measured, reference: Reference) -> Evidence | None:
    """All labels of at least 8 are the same, so that an output that ignores its input is right.

    Not this when: labels are 0 and 1 alone, which losses on pairs take as marks; there are fewer.
    """
    if reference.trained_labels < MIN_ROWS_OF_ONE_LABEL or measured.targets == "binary":
        return None
    if reference.distinct_labels != 1 and reference.variance != 0:
        return None
    return Evidence(f"all {reference.trained_labels} labels are the same", values={"labels": reference.trained_labels})


@probe_symptom(effects={"label_noise": "usually", "unknown": "rarely"}, background=0.0002)
def probe_targets_drawn(measured: Measured, targets_drawn: str) -> Evidence | None:
    """Labels or targets are drawn anew at each call: the model is given others, or only its outputs stay the same.

    Not this when: the batch is learnt all the same, as where words are hidden at random.
    """
    if not is_random(measured):
        raise CannotTell("calls with nothing changed give the same loss")
    if not targets_drawn or measured.memorised or learns(measured):
        return None
    if targets_drawn == "order":
        return Evidence("each call gives the model the same rows in another order, and their order changes the loss")
    if targets_drawn == "labels":
        return Evidence("the model is given other labels at each call of the loss")
    return Evidence("the outputs stay the same from call to call and the loss does not: targets are drawn anew")


@probe_symptom(effects={"bad_batch": "sometimes", "no_signal": "rarely", "unknown": "sometimes"}, background=0.0002)
def probe_batch_changed(measured: Measured, changed_in_call: list[str]) -> Evidence | None:
    """Each call of the loss changes the batch in place, so that no two steps train on the same.

    Not this when: the batch is memorised; a second call leaves it as it is.
    """
    if not changed_in_call or measured.memorised:
        return None
    return Evidence(f"each call of the loss changes the batch in place: {', '.join(changed_in_call)}")


@probe_symptom(effects={"bad_batch": "always"})
def probe_inputs_nonfinite(inputs_finite: bool) -> Evidence | None:
    """The batch itself holds NaN or infinity."""
    return None if inputs_finite else Evidence("the inputs of the batch hold NaN or infinity")


@probe_symptom(effects={"no_preference_signal": "always"}, background=0.0001)
def probe_sides_equal(equal_sides: list[str]) -> Evidence | None:
    """A positive and a negative, or a chosen and a rejected column of the batch, are the same.

    Not this when: the columns are masks; they differ in a single number.
    """
    if not equal_sides:
        return None
    return Evidence(f"{' and '.join(equal_sides)} are the same in all rows")


@probe_symptom(effects={"all_labels_masked": "always"})
def probe_labels_masked(measured: Measured, trained_labels: int) -> Evidence | None:
    """No label of the batch is trained on: all are the ignored index (-100), or masked by another column.

    Not this when: the batch is memorised, so that its labels are trained on after all.
    """
    if trained_labels or measured.memorised:
        return None
    return Evidence(
        "0 labels of the batch are trained on: all are -100, masked by another column, or in the first place, which "
        "the shift by one drops"
    )


MIN_AGREEING_LABEL_SHARE = 0.9
"""Share of labels that settles it. Chosen: a template may change a few."""


@probe_symptom(effects={"label_shift_error": "usually"})
def probe_labels_shifted(measured: Measured, labels_against_ids: dict[str, float], causal: bool) -> Evidence | None:
    """The labels are shifted twice, or not at all, against the logits.

    Not this when: the labels repeat the inputs so much that positions cannot be distinguished.
    """
    same, following = labels_against_ids["same"], labels_against_ids["next"]
    if measured.loss_formula is None or "cross_entropy" not in measured.loss_formula or not causal:
        raise CannotTell("not a language model whose loss is a known form of cross-entropy")
    shifted = "shifted" in measured.loss_formula
    if shifted and following > MIN_AGREEING_LABEL_SHARE > 0.5 > same:
        what = f"{following:.0%} of the labels are the next token already, and the loss shifts them once more"
    elif not shifted and same > MIN_AGREEING_LABEL_SHARE > 0.5 > following:
        what = f"{same:.0%} of the labels are the token at their own position, and the loss does not shift them"
    else:
        return None
    return Evidence(what, values={"same_position": same, "next_position": following})


FEW_CLASSES = 16
"""Distinct labels up to which it is not judged. Chosen: so few may be tags rather than tokens."""


@probe_symptom(effects={"no_signal": "often"}, background=0.0001)
def probe_labels_unrelated(
    measured: Measured, labels_against_ids: dict[str, float], causal: bool, reference: Reference
) -> Evidence | None:
    """The labels of a language model are not its inputs, at no shift: shuffled or another text.

    Not this when: positions are tagged with few classes, or one mask token stands for what is to be predicted.
    """
    if not causal or measured.targets != "tokens" or (reference.distinct_labels or 0) <= FEW_CLASSES:
        raise CannotTell("not a causal language model")
    shares = labels_against_ids
    best = max(shares["same"], shares["next"], shares["previous"])
    if best > 0.5 or shares["under_one_id"] > 0.5:
        return None
    return Evidence(
        f"{shares['same']:.0%} of the labels are the token at their position, {shares['next']:.0%} the next one",
        values={"same_position": shares["same"], "next_position": shares["next"]},
    )


FLOOR_ROWS = 0.02
"""Share of a uniform guess's loss that contradictions leave. Chosen: by hand."""
FLOOR_TOKENS = 0.10
"""The same of tokens. Chosen: texts that only begin alike leave up to 6 %."""


@probe_symptom(effects={"label_noise": "usually"}, background=0.001)
def probe_rows_contradict(measured: Measured, reference: Reference) -> Evidence | None:
    """Equal inputs carry different labels, so that no model can learn them all.

    Not this when: texts only begin alike (the first words of different rows), or all inputs are the same.
    """
    if measured.distinct_inputs == 1:
        return None
    floor = reference.least / (reference.variance or reference.uniform or 1.0)
    if floor <= (FLOOR_TOKENS if measured.targets == "tokens" else FLOOR_ROWS):
        return None
    rows = ", ".join(map(str, reference.contradicting_rows[:10]))
    return Evidence(
        f"rows {rows} have equal inputs and different labels; the loss cannot fall below {figure(reference.least)}",
        values={"least_loss": reference.least, "rows": len(reference.contradicting_rows)},
    )


@probe_symptom(
    effects={"rows_mixed": "always", "eval_mode_bug": "rarely"}, sources=("karpathy_recipe", "karpathy_mistakes")
)
def probe_rows_mixed(dependence: Dependence) -> Evidence | None:
    """The output of a row changes with another row, in evaluation mode.

    Not this when: rows are compared on purpose, as in a contrastive loss.
    """
    if dependence.rows_mixed is None:
        raise CannotTell("the output has no rows that belong to those of the batch")
    if not dependence.rows_mixed or dependence.batch_statistics:
        return None
    return Evidence(
        f"outputs of other rows change by {figure(dependence.row_change or 0)} of their size with the last row",
        values={"change": dependence.row_change or 0.0},
    )


@probe_symptom(
    effects={"train_eval_mismatch": "often", "no_signal": "sometimes", "unknown": "sometimes"}, background=0.0005
)
def probe_padding_seen(dependence: Dependence) -> Evidence | None:
    """The output changes with what stands in the padding, though the model uses the mask: it may be inverted.

    Not this when: the model uses no mask, or the batch has no padding.
    """
    if dependence.padding_seen is None:
        raise CannotTell("the batch has no tokens with padding and a mask")
    if not dependence.padding_seen or not dependence.mask_used:
        return None
    return Evidence("outputs change with the tokens that the mask leaves out; the mask may be inverted on its way")


@probe_symptom(effects={"causal_mask_missing": "always"}, sources=("karpathy_recipe",))
def probe_future_visible(measured: Measured, dependence: Dependence, loss_formula: str) -> Evidence | None:
    """Predictions of the next token change with tokens that come after it.

    Not this when: the model fills in masked tokens, where it is meant to see both sides.
    """
    if dependence.sees_future is None:
        raise CannotTell("not a model of token positions")
    follows = (measured.labels_against_ids or {}).get("next", 0.0) > 0.9
    if not dependence.sees_future or not ("shifted" in loss_formula or follows):
        return None
    return Evidence(
        f"outputs change by {figure(dependence.future_change or 0)} of their size when only later tokens change",
        values={"change": dependence.future_change or 0.0},
    )


@probe_symptom(effects={"tokenizer_mismatch": "often"})
def probe_vocabulary_small(vocabulary: str) -> Evidence | None:
    """A token id has no row in its embedding."""
    return Evidence(vocabulary) if vocabulary else None
