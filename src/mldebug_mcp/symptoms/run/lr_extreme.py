"""Learning rate beyond anything that is usual."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.symptoms.run.lr_high import lr_high

FACTOR = 15.0
"""Times the upper end of what is usual: three times the margin of `lr_high`. Chosen by hand."""
SMALLEST_MODELS = 3e-3
"""... and above this: a model of a few layers, made from scratch, takes what is far too much for a large one."""


@symptom(
    sources=("axolotl_stability", "remote_gpu_trainer", "trl_docs", "smol_playbook", "karpathy_recipe"),
    not_for=("rl", "diffusion"),
    background=0.004,
    setting=True,
)
def lr_extreme(run: Run) -> Evidence | None:
    """The peak learning rate lies more than an order of magnitude above the range that is usual for such a run.

    Not this when: it is some times above the range, as for small models (`lr_high`); what is usual is not known.
    """
    high = lr_high(run)
    extreme = high is not None and high.values["factor"] > FACTOR and high.values["peak"] > SMALLEST_MODELS
    return high if extreme else None
