"""The loss compares each output with every label."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import Evidence


@probe_symptom(
    needs=("loss_formula",),
    effects={"wrong_loss": "sometimes"},
    sources=("fsdl_2021_l7",),
)
def probe_loss_broadcast(seen: Measured) -> Evidence | None:
    """The loss compares each output with every label: shapes (n, 1) and (n) were broadcast to (n, n).

    Its floor is the variance of the labels, which an output that ignores its input reaches.
    """
    assert seen.loss_formula is not None
    if "broadcast" not in seen.loss_formula:
        return None
    name = seen.loss_formula.removesuffix(" broadcast").replace("_", " ")
    return Evidence(f"the loss equals the {name} of each output against every label: two shapes were broadcast")
