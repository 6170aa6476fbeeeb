"""The labels are shifted twice, or not at all, against the logits."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import CannotTell, Evidence

CLEAR = 0.9
"""Share of labels that settles it. Chosen: a template may change a few."""


@probe_symptom(
    needs=("labels_against_ids", "causal"),
    effects={"label_shift_error": "usually"},
)
def probe_labels_shifted(seen: Measured) -> Evidence | None:
    """The labels are shifted twice, or not at all, against the logits.

    Not this when: the labels repeat the inputs so much that positions cannot be told apart.
    """
    assert seen.labels_against_ids is not None
    same, following = seen.labels_against_ids["same"], seen.labels_against_ids["next"]
    if seen.loss_formula is None or "cross_entropy" not in seen.loss_formula or not seen.causal:
        raise CannotTell("not a language model whose loss is a known form of cross-entropy")
    shifted = "shifted" in seen.loss_formula
    if shifted and following > CLEAR > 0.5 > same:
        what = f"{following:.0%} of the labels are the next token already, and the loss shifts them once more"
    elif not shifted and same > CLEAR > 0.5 > following:
        what = f"{same:.0%} of the labels are the token at their own position, and the loss does not shift them"
    else:
        return None
    return Evidence(what, values={"same_position": same, "next_position": following})
