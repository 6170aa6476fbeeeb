"""NaN or Inf gradient norm."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.text import figure

ISOLATED_SHARE = 0.01
"""Up to one step in a hundred, with a finite loss, is a loss scaler that probes for its limit by overflowing."""


@symptom(
    needs=("grad_norm",),
    sources=("axolotl_stability",),
    background=0.005,
    follows=("loss_nonfinite",),
    instead=("grad_norm_growing", "loss_scale_falls", "steps_skipped"),
)
def grad_norm_nonfinite(run: Run) -> Evidence | None:
    """The gradient norm is NaN or infinite.

    Not this when: it happens to single steps, far apart, and the loss goes on as before: a skipped step of a loss
    scaler. The share was chosen by hand.
    """
    norm = run["grad_norm"]
    bad = ~np.isfinite(norm.value)
    count = int(bad.sum())
    if not count:
        return None
    first = float(norm.step[int(np.argmax(bad))])
    kind = "NaN" if np.isnan(norm.value[int(np.argmax(bad))]) else "infinite"
    loss_is_finite = "loss" not in run or bool(np.isfinite(run["loss"].value).all())
    isolated = loss_is_finite and count / len(bad) <= ISOLATED_SHARE and not bool(bad[-1])
    remark = "; the loss stays finite and the norm recovers each time" if isolated else ""
    return Evidence(
        f"grad_norm is {kind} at {run.step_name} {figure(first)}; {count} of {len(bad)} values are not finite{remark}",
        steps=(first,),
        values={"count": count, "share": count / len(bad)},
        present=not isolated,
    )
