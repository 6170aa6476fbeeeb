"""Does the configured regularisation outweigh the data?"""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.optimizers import Family, family_of
from mldebug_mcp.measure.rate import peak_of
from mldebug_mcp.measure.usual import USUAL as TABLE
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.text import figure

(USUAL,) = TABLE["weight_decay"]
"""What is usual for weight decay. Source: axolotl_stability."""
FACTOR = 2.0
"""Times the usual. Chosen: the least that is clearly above."""
PER_STEP = {Family.LION: 0.02, Family.MUON: 0.1}
"""The share of itself that a weight may lose in a step, of families that take more. Chosen: several times the usual."""
LEAST_PER_STEP = 0.005
"""... and of all others. Chosen: so a weight forgets what it learnt 200 steps ago; usual are 1e-6 to 1e-3."""
LEAST_DECAY = 0.02
"""A decay of SGD below this is usual whatever the rate. Chosen: where the product is large the rate is."""


OUTWEIGHS = Outcome(
    "weight_decay_outweighs",
    """At its highest rate, a step takes so much of each weight that what was learnt 200 steps ago is forgotten.

    Not this when: the optimizer takes larger values by design (Lion, Muon); decay itself is usual.""",
    background=0.003,
    sources=("axolotl_stability",),
    as_chosen=True,
)
HIGH = Outcome(
    "weight_decay_high",
    """The configured weight decay is twice what is usual.

    Not this when: the optimizer takes larger values by design (Lion, Muon); it outweighs a step, which says more.""",
    background=0.02,
    sources=("axolotl_stability",),
    as_chosen=True,
    instead=(OUTWEIGHS.id,),
)


@question(OUTWEIGHS, HIGH, whole_run=True, not_for=("diffusion",))
def regularisation(run: Run) -> Answers:
    """Judge the configured weight decay by what it takes in a step, else on its own."""
    decay = run.facts.optimizer.weight_decay
    if decay is None:
        raise CannotTell("weight_decay is not in the configuration")
    family, peak = family_of(run), _peak(run)
    values, said = {"weight_decay": decay}, f"weight_decay is {figure(decay)}; {USUAL} is usual"
    if peak is not None:
        per_step = values["per_step"] = decay * peak
        said += f"; at a rate of {figure(peak)} a weight loses {figure(per_step)} of itself in a step"
        least = LEAST_PER_STEP if family is None else PER_STEP.get(family, LEAST_PER_STEP)
        unusual = decay > USUAL.high or (family is Family.SGD and decay >= LEAST_DECAY)
        if per_step >= least and unusual:
            return {OUTWEIGHS.id: Evidence(said, values=values)}
    is_high = decay >= FACTOR * USUAL.high and family not in PER_STEP
    return {HIGH.id: Evidence(said, values=values)} if is_high else {}


def _peak(run: Run) -> float | None:
    logged = peak_of(run)
    return run.facts.schedule.peak or (None if logged is None else logged.value)
