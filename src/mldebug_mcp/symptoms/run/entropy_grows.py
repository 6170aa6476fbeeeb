"""Policy entropy grows."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms.policy import ENTROPIES, NOT_POLICY
from mldebug_mcp.symptoms.registry import Evidence, symptom
from mldebug_mcp.symptoms.run.entropy_high import GROWS, course


@symptom(any_of=ENTROPIES, sources=("axolotl_stability",), not_for=NOT_POLICY, background=0.004)
def entropy_grows(run: Run) -> Evidence | None:
    """The entropy of the policy grows far above its lowest level.

    Not this when: it is as high as it was at the start (`entropy_high`): that tells of the model, its temperature or
    its exploration, and not of a policy that comes apart. The limits are those of `entropy_high`.
    """
    seen = course(run)
    return seen.evidence if seen is not None and seen.what == GROWS else None
