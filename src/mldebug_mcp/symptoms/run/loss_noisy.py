"""Large step-to-step variation of the loss."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.statistics import median, noise, sample, start_level
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.text import figure

SHARE, FLOOR = 0.5, 0.2
"""Standard deviation of the noise over the level, which counts as a share of the first one at least. Chosen: batches of
one have 0.1 to 0.35 in fine-tuning, and near zero loss large relative noise is nothing."""


@symptom(
    needs=("loss",),
    sources=("mccandlish_2018",),
    points=20,
    not_for=("grpo", "ppo", "rl", "diffusion"),
    background=0.3,
    follows=("loss_climbs_to_nan", "loss_huge"),
)
def loss_noisy(run: Run) -> Evidence | None:
    """The training loss varies from record to record by half of its level or more.

    Not this when: the loss is nearly zero already; each record is a sample of a wide distribution, as in diffusion.
    """
    loss = run["loss"].finite
    start = abs(start_level(loss.value))
    late = loss.value[len(loss) // 4 :]
    level = max(median(np.abs(sample(late))), FLOOR * start)
    size = noise(late)
    if level <= 0 or size < SHARE * level:
        return None
    return Evidence(
        f"loss varies from record to record by {figure(size)} (standard deviation) around a level of "
        f"{figure(median(late))}: {size / level:.0%}",
        steps=(float(loss.step[len(loss) // 4]),),
        values={"noise": size, "level": median(late), "share": size / level},
    )
