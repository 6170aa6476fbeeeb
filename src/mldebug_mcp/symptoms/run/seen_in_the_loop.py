"""What did a recorder see in the loop that ought not to be: of rows, inputs, outputs, and the loss made of them?"""

from __future__ import annotations

from collections.abc import Callable

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure import fed, looks, recomputed
from mldebug_mcp.symptoms.readings import Reading, first_of
from mldebug_mcp.symptoms.registry import Answers, Evidence, Outcome, question


def _seen(name: str, background: float, see: Callable[[Run], looks.Seen | None], doc: str) -> Reading:
    """Return how an outcome is seen."""

    def read(run: Run) -> Evidence | None:
        seen = see(run)
        return None if seen is None else Evidence(seen.said, seen.steps, seen.values)

    return Reading(Outcome(name, doc, background, as_chosen=True), read, settled=False, not_for=())


READINGS = (
    _seen("gradients_kept", 0.001, looks.gradients_kept, """Gradients are not zero before any backward pass.

        So each update takes those of all updates before. Not this when: they are cleared once between two updates, as
        where they are accumulated on purpose."""),
    _seen("rows_come_again", 0.002, fed.rows_start_over, """From a resume on come the rows of an earlier stretch again.

        In the order that they had. Not this when: a new pass begins there; lost steps are made again."""),
    _seen("rows_evaluated", 0.003, fed.rows_of_evaluation, """Batches of the training hold rows of an evaluation.

        Value by value. Not this when: fewer than one row in ten is; no recorder saw both on the CPU."""),
    _seen("inputs_differ", 0.01, fed.inputs_of_evaluation, """Evaluation feeds the model other numbers than training.

        Not this when: shares of numbers up to any bound agree within a quarter; inputs are tokens."""),
    _seen("loss_multiplied", 0.002, recomputed.multiplied, """The loss is a multiple of the outputs' cross-entropy.

        Not this when: the multiple changes, as with weights of classes or other terms; it is below 1.5."""),
    _seen("softmax_taken_twice", 0.001, recomputed.softmax_twice, """The loss takes a softmax of what a softmax gave.

        So it is the cross-entropy of the softmax of the outputs. Not this when: it is that of the outputs."""),
    _seen("loss_unlike_outputs", 0.02, recomputed.unlike_outputs, """The loss is not the outputs' cross-entropy.

        Nor a multiple of it. Not this when: it is off by less than a third, as with smoothed labels."""),
    _seen("running_statistics_stale", 0.003, looks.stale_statistics, """Running statistics stay far from the batches'.

        Evaluation normalises by them. Not this when: they follow within some looks; batches have few values."""),
    _seen("inputs_odd", 0.01, fed.odd_inputs, """The inputs of a few batches vary far more or less than all others.

        Not this when: more than one batch in ten does; inputs are tokens."""),
    _seen("features_few", 0.003, looks.few_features, """The last layer reads four numbers or fewer for more classes.

        Not this when: it reads more; classes are not known; a picture is to be drawn of the features."""),
)  # fmt: skip
"""How each outcome is seen, and how often a healthy run shows it. Chosen: few runs are recorded."""


@question(
    *(one.outcome for one in READINGS),
    any_of=("gradients_kept", "row_again", "rows_evaluated", "inputs_*", "recomputed/*", "statistics_apart/*"),
    whole_run=True,
)
def seen_in_the_loop(run: Run) -> Answers:
    """Look at gradients, rows, inputs of evaluation and the loss, then for what is odd in batches and layers."""
    return first_of(run, READINGS)
