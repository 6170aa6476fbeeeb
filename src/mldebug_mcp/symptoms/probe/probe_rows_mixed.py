"""The output of a row changes with another row, in evaluation mode."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import figure


@probe_symptom(
    needs=("dependence",),
    effects={"rows_mixed": "always", "eval_mode_bug": "rarely"},
    sources=("karpathy_recipe", "karpathy_mistakes"),
)
def probe_rows_mixed(seen: Measured) -> Evidence | None:
    """The output of a row changes with another row, in evaluation mode.

    Not this when: rows are compared on purpose, as in a contrastive loss.
    """
    assert seen.dependence is not None
    if seen.dependence.rows_mixed is None:
        raise CannotTell("the output has no rows that belong to those of the batch")
    if not seen.dependence.rows_mixed or seen.dependence.batch_statistics:
        return None
    return Evidence(
        f"outputs of other rows change by {figure(seen.dependence.row_change or 0)} of their size with the last row",
        values={"change": seen.dependence.row_change or 0.0},
    )
