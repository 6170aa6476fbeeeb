"""The labels of a language model are not its inputs, at no shift: shuffled or another text."""

from __future__ import annotations

from mldebug_mcp.probe.measured import Measured
from mldebug_mcp.symptoms.probe.registry import probe_symptom
from mldebug_mcp.symptoms.registry import CannotTell, Evidence

FEW_CLASSES = 16
"""Distinct labels up to which it is not judged. Chosen: so few may be tags rather than tokens."""


@probe_symptom(
    needs=("labels_against_ids", "causal", "reference"),
    effects={"no_signal": "often"},
    background=0.0001,
)
def probe_labels_unrelated(seen: Measured) -> Evidence | None:
    """The labels of a language model are not its inputs, at no shift: shuffled or another text.

    Not this when: positions are tagged with few classes, or one mask token stands for what is to be predicted.
    """
    assert seen.labels_against_ids is not None
    assert seen.reference is not None
    if not seen.causal or seen.targets != "tokens" or (seen.reference.distinct_labels or 0) <= FEW_CLASSES:
        raise CannotTell("not a causal language model")
    shares = seen.labels_against_ids
    best = max(shares["same"], shares["next"], shares["previous"])
    if best > 0.5 or shares["under_one_id"] > 0.5:
        return None
    return Evidence(
        f"{shares['same']:.0%} of the labels are the token at their position, {shares['next']:.0%} the next one",
        values={"same_position": shares["same"], "next_position": shares["next"]},
    )
