"""The configured clipping threshold is tiny."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

LOW = 0.05
"""Practice lies between 0.1 (RL on language models) and 1.0, the default of most configurations."""


@symptom(needs=(), sources=("axolotl_stability", "opt_175b"), whole_run=True, background=0.01, as_chosen=True)
def grad_clip_low(run: Run) -> Evidence | None:
    """The threshold that gradients are clipped to is configured to 0.05 or less.

    Not this when: it is 0, which switches clipping off; the gradient norm that is logged stays below it.
    """
    threshold = run.setting("max_grad_norm")
    if threshold is None:
        raise CannotTell("the clipping threshold (max_grad_norm) is not in the configuration")
    if not 0 < threshold <= LOW:
        return None
    norm = run["grad_norm"].finite if "grad_norm" in run else None
    if norm is not None and len(norm) and float(norm.value.max()) <= threshold:
        return None
    return Evidence(
        f"max_grad_norm is {figure(threshold)}; most configurations have 0.1 to 1.0",
        values={"max_grad_norm": threshold},
    )
