"""Numbers that are not finite in a run that computes in half precision."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.precision import in_half_precision, overflow
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure


@symptom(sources=("bekman_mle", "opt_175b_logbook"), background=0.1, as_chosen=True, follows=("loss_scale_falls",))
def overflows_in_fp16(run: Run) -> Evidence | None:
    """The loss, or the gradient norm again and again, is NaN or infinite, and the run computes in half precision.

    Fp16 holds no number above 65504; a loss that rests at its first level belongs to it where every step is skipped.
    Not this when: the precision is another one, which rules overflow of fp16 out; a loss scaler loses single steps
    while it looks for its scale, at the start or once in a hundred steps. Unknown where all is finite, or where neither
    the settings nor a loss scale tell the precision. The background, the share of runs in fp16, was chosen by hand.
    """
    lost = overflow(run)
    if lost is None:
        raise CannotTell("the loss and the gradient norm are finite, or not logged")
    half = in_half_precision(run)
    if half is None:
        raise CannotTell("neither the settings nor a loss scale tell the precision")
    if not half:
        return None
    return Evidence(
        f"{lost.series} is not finite in {lost.lost} of {lost.records} records, from {run.step_name} "
        f"{figure(lost.step)} on, and the run computes in fp16",
        steps=(lost.step,),
        values={"lost": float(lost.lost), "share": lost.lost / lost.records},
    )
