"""NaN or Inf gradient norm."""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.text import figure

ISOLATED_SHARE = 0.01
"""Up to one step in a hundred, with a finite loss, is a loss scaler that probes for its limit by overflowing."""

SETTLING = 20
"""Steps from the start over which a scaler halves its scale from far above its limit: torch's begins at 2 ** 16. Chosen
by hand."""


@symptom(
    needs=("grad_norm",),
    sources=("axolotl_stability",),
    background=0.005,
    follows=("loss_nonfinite",),
    instead=("grad_norm_growing", "loss_scale_falls", "steps_skipped"),
)
def grad_norm_nonfinite(run: Run) -> Evidence | None:
    """The gradient norm is NaN or infinite.

    Not this when: it happens to single steps, far apart, or in the first steps only, and the loss goes on as before:
    skipped steps of a loss scaler. The share was chosen by hand.
    """
    norm = run["grad_norm"]
    bad = ~np.isfinite(norm.value)
    count = int(bad.sum())
    if not count:
        return None
    first = float(norm.step[int(np.argmax(bad))])
    kind = "NaN" if np.isnan(norm.value[int(np.argmax(bad))]) else "infinite"
    loss_is_finite = "loss" not in run or bool(np.isfinite(run["loss"].value).all())
    later = count if run.step_name != "step" else int((bad & (norm.step > SETTLING)).sum())
    isolated = loss_is_finite and later / len(bad) <= ISOLATED_SHARE and not bool(bad[-1])
    remark = "; the loss stays finite and the norm recovers each time" if isolated else ""
    return Evidence(
        f"grad_norm is {kind} at {run.step_name} {figure(first)}; {count} of {len(bad)} values are not finite{remark}",
        steps=(first,),
        values={"count": count, "share": count / len(bad)},
        present=not isolated,
    )
