"""Loss of saturated outputs, wrong as often as the accuracy says."""

from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.statistics import aligned, median
from mldebug_mcp.symptoms.quality import as_share
from mldebug_mcp.symptoms.registry import CannotTell, Evidence, symptom
from mldebug_mcp.text import figure

CLIPPED = {
    "1e-7": -math.log(1e-7),
    "1e-8": -math.log(1e-8),
    "1e-12": -math.log(1e-12),
    "1e-15": -math.log(1e-15),
    "the smallest float32": -math.log(1.17549435e-38),
    "e^-100": 100.0,
}
"""What a cross-entropy of a wrong answer comes to where probabilities are kept above so much: Keras (1e-7), older Keras
and hand-written ones, scikit-learn and older Theano code (1e-15), Caffe (`FLT_MIN`, 87.3365), PyTorch's `BCELoss`
(e^-100), where a printed perplexity often ends too."""
NEAR = 0.005
"""Of the expected loss: accuracies are printed with three or four digits. Chosen by hand."""
EXACT = 2e-5
"""Of a bound itself, without an accuracy: 87.3365 and 16.118 have six and five digits."""
LEAST_WRONG = 0.02
LEAST = 3


@symptom(needs=("loss",), points=LEAST, not_for=("grpo", "ppo", "rl", "preference", "diffusion"), background=0.0005)
def loss_at_clip(run: Run) -> Evidence | None:
    """The training loss is that of answers of probability 0 or 1, clipped, wrong as often as the accuracy says.

    The outputs are saturated: no gradient comes through, and a single answer is given to all. (1 - accuracy) times
    -ln(1e-7) is 8.06 at an accuracy of a half. Not this when: the loss only passes such a value; the answers are
    confident but mostly right.
    """
    loss = run["loss"].finite
    if "accuracy" in run and len(pair := aligned(run["accuracy"].finite, loss)[1]) >= LEAST:
        wrong = 1 - as_share(median(pair[-LEAST:]))
        values = loss.value[-LEAST:]
        bounds = {name: wrong * bound for name, bound in CLIPPED.items()} if wrong > LEAST_WRONG else {}
        near = {name: bound for name, bound in bounds.items() if bool(np.all(abs(values - bound) < NEAR * bound))}
        share = f", where {wrong:.1%} of the answers are wrong"
    else:
        values, share, near = loss.value[-LEAST:], "", {}
    if not near:
        share = ""
        near = {name: bound for name, bound in CLIPPED.items() if bool(np.all(abs(values - bound) < EXACT * bound))}
        if not near and "accuracy" not in run and float(np.ptp(values)) > 0:
            raise CannotTell("no accuracy is logged, and the loss is none of those that clipping gives")
    if not near:
        return None
    name, bound = next(iter(near.items()))
    low = np.abs(loss.value - bound) > (NEAR if share else EXACT) * bound
    at = len(low) - int(np.argmax(low[::-1])) if low.any() else 0
    return Evidence(
        f"loss is {figure(float(values[-1]))} from {run.step_name} {figure(float(loss.step[at]))} on{share}: that of "
        f"answers of probability 0 or 1 clipped at {name}",
        steps=(float(loss.step[at]),),
        values={"loss": float(values[-1]), "expected": bound},
    )
