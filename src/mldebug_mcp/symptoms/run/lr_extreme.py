"""Learning rate far beyond the usual range."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.symptoms.run.lr_high import extreme, too_high


@symptom(
    sources=("axolotl_stability", "remote_gpu_trainer", "trl_docs", "smol_playbook", "karpathy_recipe"),
    not_for=("diffusion",),
    background=0.004,
    as_chosen=True,
    instead=("lr_high",),
)
def lr_extreme(run: Run) -> Evidence | None:
    """The peak learning rate lies more than an order of magnitude above the range that is usual for such a run.

    Not this when: it is a few times above the range, as for small models (`lr_high`); the usual range is not known.
    """
    found = too_high(run)
    return found if found is not None and extreme(found) else None
