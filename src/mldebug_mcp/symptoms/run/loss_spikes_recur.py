"""Several jumps of the loss."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.run.loss_spike import jumps
from mldebug_mcp.text import figure

LEAST = 2


@symptom(needs=("loss",), sources=("palm_2022",), points=20, not_for=("grpo", "ppo", "rl"), background=0.3)
def loss_spikes_recur(run: Run) -> Evidence | None:
    """The training loss jumps far above its recent level more than once.

    Not this when: the noise is heavy-tailed (`loss_noisy`). What counts as a jump is told under `loss_spike`;
    judged only where the loss jumps at all, so that one jump does not count twice.
    """
    loss = run["loss"].finite
    found = jumps(run)
    if not found:
        raise CannotTell("the loss does not jump")
    if not LEAST <= len(found) <= max(5, len(loss) // 20):
        return None
    steps = tuple(float(loss.step[spike.first]) for spike in found)
    return Evidence(
        f"loss jumps {len(found)} times, at {run.step_name}s {', '.join(map(figure, steps[:6]))}",
        steps=steps[:10],
        values={"count": len(found)},
    )
