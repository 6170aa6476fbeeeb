"""Do all parts of the model get a gradient of comparable size?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.gradients import Part, parts_of, profile_of
from mldebug_mcp.symptoms.readings import outcome_of
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.symptoms.telling import by_outcome, first_seen
from mldebug_mcp.text import figure

LEAST = 3
"""Records. Chosen: with adapters whose second matrix begins at zero the first has no gradient in the first step."""
FAR = 1000.0
"""Times between the first layer and the last. Chosen: layers of sound models differ by a factor of 100 at most."""
ORDER = 0.9
"""Rank correlation with depth that makes a course. Chosen: a layer or two may stand out of it."""
MEANT = ("expert", "router", "bias", "position", "frozen")
"""Parts that may have no gradient in a sound model: experts without tokens, biases before a normalisation."""
LOST = 1e-5
"""Of the norm of the whole: a part with less does not learn. Chosen: in deep sound models it is a hundredth."""
FREEZES = ("freeze", "frozen")


def _lost(run: Run, parts: Sequence[Part]) -> Evidence | None:
    """Say whether hardly anything of the gradient of the whole comes to a part, which is not none at all."""
    whole = run["grad_norm"].finite.value if "grad_norm" in run else np.empty(0)
    if len(whole) < LEAST:
        return None
    level = float(np.median(whole))
    faint = [part for part in parts if 0 < part.level < LOST * level and part.records >= LEAST and not _is_meant(part)]
    if not faint:
        return None
    part = min(faint, key=lambda one: one.level)
    return Evidence(
        f"the median gradient norm is {figure(part.level)} in {part.name} and {figure(level)} in the whole model",
        steps=(run.first_step,),
        values={"first": part.level, "last": level, "layers": float(len(parts))},
    )


def _is_meant(part: Part) -> bool:
    return any(word in part.name.lower() for word in MEANT)


def grad_part_zero(run: Run, parts: Sequence[Part]) -> Evidence | None:
    """The gradient norm of a part of the model is exactly zero in every record, while others are not.

    Not this when: the configuration freezes parts; the part is an expert, a bias or a table of positions; fewer
    than three records have it.
    """
    zero = [part for part in parts if part.zeros == 1 and part.records >= LEAST and not _is_meant(part)]
    alive = any(part.zeros < 1 and part.level > 0 for part in parts)
    if not zero or not alive or any(word in name.lower() for name in run.settings for word in FREEZES):
        return None
    named = ", ".join(part.name for part in zero[:3]) + (", …" if len(zero) > 3 else "")
    said = f"the gradient norm is exactly 0 in every record of {len(zero)} of {len(parts)} parts: {named}"
    return Evidence(said, steps=(run.first_step,), values={"parts": len(zero), "of": len(parts)})


def grad_fades_with_depth(run: Run, parts: Sequence[Part]) -> Evidence | None:
    """Gradient norms shrink steadily from the last layer to the first, to a thousandth or less.

    Not this when: layers differ by less, or in no order; neither four layers nor both ends are logged.
    """
    profile = profile_of(parts)
    if profile is None:
        raise CannotTell("the norms of too few layers are logged")
    first, last, layers = profile.first, profile.last, profile.layers
    if abs(profile.order) < ORDER or first.level / last.level > 1 / FAR:
        return None
    between = f", with {layers - 2} layers in order between" if layers > 2 else ""
    return Evidence(
        f"the median gradient norm is {figure(first.level)} in {first.name} and {figure(last.level)} in {last.name}"
        f"{between}",
        steps=(run.first_step,),
        values={"first": first.level, "last": last.level, "layers": layers},
    )


@question(
    outcome_of(grad_part_zero, 0.03),
    outcome_of(grad_fades_with_depth, 0.01),
    any_of=(Quantity.GRADIENT_NORM,),
    whole_run=True,
)
def gradient_parts(run: Run) -> Answers:
    """Look for parts without a gradient, then for a course from layer to layer."""
    parts = parts_of(run)
    lost = _lost(run, parts)
    if lost is not None:
        return {"grad_fades_with_depth": lost}
    if len(parts) < 2:
        raise CannotTell("no gradient norms of parts of the model are logged")
    return first_seen(by_outcome((grad_part_zero, grad_fades_with_depth), run, parts))
