"""Is the training loss finite, and if not, how is it lost?"""

from __future__ import annotations

from collections.abc import Callable
from inspect import cleandoc

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.not_finite import Lost, first_lost, training_losses
from mldebug_mcp.symptoms import lost_loss
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.symptoms.telling import told
from mldebug_mcp.text import counted, figure

POLICIES = ("grpo", "ppo", "rl")
"""Kinds of run whose loss says nothing by its size: what leads to a NaN counts there, and not the rest."""
LOST, COUNTED = "loss_nonfinite", "nan_steps_counted"
CHOSEN = ("loss_nonfinite_at_first", "loss_nonfinite_in_warmup")
"""Attributes whose background follows from the length of what they speak of, not from runs."""

Way = Callable[[Run, Lost], Evidence | None]
ANY: dict[str, Way] = {
    "loss_climbs_to_nan": lost_loss.climbs,
    "gradient_climbs_to_nan": lost_loss.gradient_climbs,
    "gradient_lost_first": lost_loss.gradient_first,
    "gradient_zero_before_nan": lost_loss.gradient_zero,
}
OF_A_LEVEL: dict[str, Way] = {
    "loss_nonfinite_at_first": lost_loss.at_first,
    "loss_nonfinite_in_warmup": lost_loss.in_warmup,
    "loss_nonfinite_passes": lost_loss.passes,
    "nonfinite_spreads": lost_loss.spreads,
    "loss_part_finite": lost_loss.parts_finite,
    "loss_nan_alone": lost_loss.nan_alone,
}
"""What is told of a loss that is a level, and of no policy's."""


def _outcome(name: str, doc: str, background: float, *sources: str, instead: tuple[str, ...] = ()) -> Outcome:
    """Return an attribute of a loss that is not finite; its background is how often such a loss has it by chance."""
    return Outcome(name, cleandoc(doc), background, sources, of=LOST, instead=instead, as_chosen=name in CHOSEN)


@question(
    Outcome(
        LOST,
        cleandoc("""The training loss is NaN or infinite.

        Not this when: a counter such as "number of nan iterations: 0" is logged, or an evaluation metric is NaN by
        definition. The Hugging Face Trainer hides NaN by default (`logging_nan_inf_filter=True` puts the mean so far in
        its place): absence of NaN in its log proves little. Where no total is logged, as of a GAN, its parts are
        judged.
        """),
        0.001,
        ("axolotl_stability",),
        instead=("logits_grow",),
    ),
    Outcome(
        COUNTED,
        cleandoc("""A counter of steps with a NaN is above zero, while every loss that is logged is finite.

        Losses are means over the steps between two records, of which those with a NaN are left out. Not this when: the
        counter is logged and stays at zero.
        """),
        0.005,
    ),
    _outcome(
        "loss_nonfinite_at_first",
        """The loss of the first step is NaN or infinite: no update had been made, so none can have brought it about.

        What is left is the batch, the labels, the weights as loaded or initialised, and the arithmetic. Not this when:
        the first record is a mean over several steps, of which a later one may be at fault. Judged only where each step
        is logged. The background was chosen by hand.
        """,
        0.03,
    ),
    _outcome(
        "loss_nonfinite_in_warmup",
        """The loss becomes NaN or infinite while the learning rate still climbs to its peak, or just as it is there.

        Trouble that has nothing to do with the rate comes in that part of a run no more often than its length says: a
        tenth, as warmups go, which is the background. Not this when: there is no warmup in the log. Judged only where
        the loss is lost after finite records. The shares were chosen by hand.
        """,
        0.1,
        "bekman_mle",
    ),
    _outcome(
        "loss_nonfinite_passes",
        """The training loss is NaN or infinite in some records, and finite in later ones that are no worse than before.

        The weights are sound: those batches alone have such a loss, and no update is made of it, or one that does no
        harm. Not this when: it never comes back, or comes back higher; or a loss of evaluation is not finite either.
        That is unknown, for the weights are spoilt then, whatever it came from.
        """,
        0.001,
    ),
    _outcome(
        "nonfinite_spreads",
        """Ever more of the records have a loss that is NaN or infinite, and others among them are finite.

        What overflows grows from step to step, and the batches differ in how much of it they hold. Not this when: the
        loss is lost for good at once, which weights that are NaN bring about; or now and then, as often at the end as
        at first. The shares were chosen by hand.
        """,
        0.02,
    ),
    _outcome(
        "loss_climbs_to_nan",
        """The loss rises to many times its earlier level in the records just before it becomes NaN or infinite.

        Not this when: it is NaN from one record to the next, at an ordinary level: then one operation or one batch
        gives the NaN, not an unstable run. Judged only where the loss becomes NaN after at least four finite records.
        """,
        0.25,
        "axolotl_stability",
        instead=("grad_norm_growing",),
    ),
    _outcome(
        "gradient_climbs_to_nan",
        """The gradient norm leaves its level in the last records before the loss becomes NaN or infinite.

        To three times its median and beyond all that came before. Not this when: the norm is as before up to the last
        record, so that the trouble is in that batch or operation. It cannot be told where norms are logged clipped. The
        factors were chosen on runs of our own.
        """,
        0.2,
        "axolotl_stability",
    ),
    _outcome(
        "gradient_lost_first",
        """The gradient norm is NaN or infinite in a record whose loss is still finite, and the loss only later.

        The backward pass is lost before the forward pass. Not this when: both are lost in the same record, or the norm
        stays finite; then the forward pass is the first.
        """,
        0.2,
        "axolotl_stability",
    ),
    _outcome(
        "gradient_zero_before_nan",
        """The gradient norm is exactly zero in the record before the loss becomes NaN or infinite.

        Not this when: it is zero throughout, or ordinary up to there.
        """,
        0.01,
    ),
    _outcome(
        "loss_part_finite",
        """The training loss is not finite, and another part of it is, in the same records: the weights are finite yet.

        What comes out of weights that are NaN is NaN in all parts. Not this when: all parts are lost, or none is
        logged; the loss comes back by itself. Not told by one record alone: where an unstable run overflows, one part
        is the first, before the update that takes the weights with it.
        """,
        0.0005,
    ),
    _outcome(
        "loss_nan_alone",
        """No training loss is finite, from the first record on, while every evaluation loss is.

        Weights that a NaN had reached would spoil the evaluation too: either no update is made of such a loss, or it
        has no gradient, as the mean over no label at all has none. Not this when: the loss was finite first, which is a
        failure on the way; evaluation fails too.
        """,
        0.0005,
    ),
)
def not_finite(run: Run) -> Answers:
    """Say whether the training loss is finite, and if not, how it is lost."""
    losses = training_losses(run)
    if not losses:
        raise CannotTell("not logged: loss")
    loss = first_lost(losses)
    if loss is None:
        return told({COUNTED: lambda: _counted(run)})
    judged = ANY if run.kind in POLICIES else ANY | OF_A_LEVEL
    untold = {name: CannotTell(f"not judged for a run of kind {run.kind}") for name in OF_A_LEVEL.keys() - judged}
    return {
        LOST: _evidence(run, loss),
        **untold,
        **told({name: _bound(one, run, loss) for name, one in judged.items()}),
    }


def _bound(tell: Way, run: Run, loss: Lost) -> Callable[[], Evidence | None]:
    return lambda: tell(run, loss)


def _counted(run: Run) -> Evidence | None:
    counter = next(run.with_role(Quantity.NAN_STEPS, phase="train"), None)
    if counter is None or not len(counter.finite):
        raise CannotTell("no counter of steps with a NaN is logged")
    up = counter.finite.where(counter.finite.value > 0)
    if not len(up):
        return None
    first = float(up.step[0])
    return Evidence(
        f"{counter.name} is above zero in {len(up)} of {counted(len(counter.finite), 'record')}, the first at "
        f"{run.step_name} {figure(first)} ({figure(float(up.value[0]))}), and the loss is finite in all",
        steps=(first,),
        values={"records": len(up), "highest": float(up.value.max())},
    )


def _evidence(run: Run, loss: Lost) -> Evidence:
    before = (
        f"; the last finite value before it is {figure(float(loss.series.value[loss.at - 1]))}"
        if loss.at
        else ", from the first record on"
    )
    return Evidence(
        f"{loss.series.name} is {loss.kind} at {run.step_name} {figure(loss.step)}{before}; "
        f"{loss.count} of the {len(loss.bad) - loss.at} values from there on are not finite",
        steps=(loss.step,),
        values={
            "count": loss.count,
            "share": loss.count / len(loss.bad),
            "stays": float(loss.for_good),
            "first_index": loss.at,
        },
    )
