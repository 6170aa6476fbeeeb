"""One of the two networks of a GAN has nearly no loss, while the other's stays high."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.adversarial import LEAST, Contest, contests
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure


@symptom(sources=("ganhacks",), background=0.002)
def adversarial_loss_one_sided(run: Run) -> Evidence | None:
    """Of a GAN one network has nearly no loss over the later half, beside a high one of the other, or by its outputs.

    Not this when: it is near zero on some batches only; the high one comes down; a Wasserstein critic is below zero.
    """
    logged = contests(run)
    if not logged:
        raise CannotTell(f"no two losses that play against each other, both above zero, have {LEAST} values together")
    won = next((one for one in logged if one.wins is not None), None)
    return None if won is None else _by_outputs(run, won) if won.of_outputs else _by_losses(run, won)


def _by_outputs(run: Run, won: Contest) -> Evidence:
    (real, generated), levels = won.names, won.levels
    what = "tells real from generated samples nearly always" if won.wins else "takes generated samples for real ones"
    return Evidence(
        f"{real} is {figure(levels[0])} and {generated} {figure(levels[1])} from {run.place(won.step)} on (medians): "
        f"the discriminator {what}",
        steps=(won.step,),
        values={"real": levels[0], "generated": levels[1], "discriminator_wins": float(won.wins or 0)},
    )


def _by_losses(run: Run, won: Contest) -> Evidence:
    winner, loser = (0, 1) if won.wins else (1, 0)
    gone, high = won.levels[winner], won.levels[loser]
    return Evidence(
        f"{won.names[winner]} is {figure(gone)} from {run.place(won.step)} on (median), while {won.names[loser]} is "
        f"{figure(high)} (it began at {figure(won.first[loser])})",
        steps=(won.step,),
        values={"gone": gone, "high": high, "discriminator_wins": float(won.wins or 0)},
    )
