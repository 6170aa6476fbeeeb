"""Steps that are smaller than the distance between two numbers of the weights' type."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.optimizers import Family, family_of
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.symptoms.tuning import ADAPTERS, peak_rate, tuning
from mldebug_mcp.text import figure

TYPICAL = 0.02
"""Size of a typical weight, that of the usual initialisation of transformers (`initializer_range`)."""
HALF_SPACING = {"bf16": 2.0**-9, "fp16": 2.0**-12}
"""Half the distance between neighbours over the number: a smaller change is rounded away. They have 8 and 11 bits."""
KEPT = ("kahan", "stochastic", "master", "anyprecision")
"""Parts of names of optimizers that keep what rounding loses."""


@symptom(whole_run=True, background=0.1, as_chosen=True, not_for=("diffusion", "boosting"))
def updates_below_rounding(run: Run) -> Evidence | None:
    """Weights are kept in bf16 or fp16, and Adam's step at the peak rate is below the rounding of a typical weight.

    Adam moves a weight by about the rate; half the spacing of bf16 at 0.02 is 4e-5. Not this when: only activations are
    in half precision (autocast), adapters are trained, or an engine keeps weights in fp32 beside them. Fine-tuning in
    bf16 at such rates is usual and still learns, by its smallest weights: by itself this says little.
    """
    kept = _weights(run)
    if kept is None:
        raise CannotTell("the configuration does not tell in which type weights are kept")
    if kept == "fp32":
        return None
    name = (run.facts.optimizer.name or "").lower()
    if tuning(run) is ADAPTERS or run.setting("zero_stage") is not None or any(part in name for part in KEPT):
        raise CannotTell("adapters, or an engine or optimizer that may keep weights in fp32 as well")
    if family_of(run) not in (Family.ADAM, Family.LION):
        raise CannotTell("how far a step goes is known for Adam and Lion only")
    peak, step = peak_rate(run)
    bound = TYPICAL * HALF_SPACING[kept]
    if not 0 < peak < bound:
        return None
    return Evidence(
        f"weights are kept in {kept}, and learning_rate peaks at {figure(peak)}; below {figure(bound)} a step is less "
        f"than half the distance between two such numbers at {figure(TYPICAL)}",
        steps=(step,),
        values={"peak": peak, "bound": bound},
    )


def _weights(run: Run) -> str | None:
    """Return the type in which weights are kept, None where the settings speak of computing only."""
    words = (run.settings.text("torch_dtype"), run.settings.text("precision"))
    for name, spellings in (("bf16", ("bfloat16", "bf16-true")), ("fp16", ("float16", "16-true", "half"))):
        if any(spelling in word for word in words for spelling in spellings):
            return name
    return "fp32" if any("32" in word for word in words) else None
