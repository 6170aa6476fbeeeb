"""A jump of a nat or more of a language model that was trained from scratch."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.run.loss_spike import passing_jumps
from mldebug_mcp.symptoms.tokens import uniform_of_tokens
from mldebug_mcp.text import counted, figure

NATS = 1.0
"""Per token, above the level before: a mean over thousands of tokens does not move so far by hard text."""
RECORDS = 3
"""Records above half the height, or else jumps: one record may hold one broken batch. Both chosen by hand."""


@symptom(
    needs=("loss",),
    sources=("palm_2022", "opt_175b_logbook"),
    points=12,
    not_for=("grpo", "ppo", "rl", "diffusion", "preference", "supervised", "sft"),
    background=0.01,
)
def loss_spike_nats(run: Run) -> Evidence | None:
    """The loss of a new language model jumps by a nat per token, for several records or several times.

    Not this when: one record alone jumps; the loss stays up (`loss_divergence`); the jumps are lower, as hard text
    makes them. Judged only where the loss jumps at all, and begins at ln(vocabulary), as that of a model trained from
    scratch does.
    """
    found = passing_jumps(run)
    if not found:
        raise CannotTell("the loss does not jump")
    uniform_of_tokens(run)
    high = [spike for spike in found if spike.height >= NATS]
    records = sum(spike.last - spike.first + 1 for spike in high)
    if records < RECORDS:
        return None
    loss = run["loss"].finite
    worst = max(high, key=lambda spike: spike.height)
    return Evidence(
        f"loss jumps by {figure(worst.height)} nats per token from {figure(worst.level)} at {run.step_name} "
        f"{figure(float(loss.step[worst.first]))}; {counted(len(high), 'jump')} of {figure(NATS)} or more, of "
        f"{records} records in all",
        steps=tuple(float(loss.step[spike.first]) for spike in high)[:10],
        values={"height": worst.height, "level": worst.level, "count": len(high), "records": records},
    )
