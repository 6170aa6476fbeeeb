"""Where did values that are not finite begin: in the batch, the model, the loss, the backward pass or the weights?"""

from __future__ import annotations

from mldebug_mcp.logs.run import Incident, Run
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question

BACKGROUND = 0.0005
"""Share of healthy runs. Chosen: a recorder looks for the origin only where a step is lost."""


def _outcome(name: str, documentation: str) -> Outcome:
    return Outcome(name, documentation, background=BACKGROUND, as_chosen=True)


PLACES = {
    "inputs": _outcome(
        "nonfinite_in_inputs",
        """The batch of the first step that is not finite holds values that are not finite.

        Not this when: no recorder looked; the batch is finite, and something that is computed of it is not.""",
    ),
    "weights": _outcome(
        "nonfinite_in_weights",
        """Weights are not finite before the first step in which anything else is not: an update broke them.

        Not this when: no recorder looked; the batch is not finite itself.""",
    ),
    "outputs": _outcome(
        "nonfinite_in_forward",
        """A module of the model first makes values that are not finite, of a batch and weights that are finite.

        Not this when: no recorder looked; what the model returns is finite and its loss is not.""",
    ),
    "loss": _outcome(
        "nonfinite_in_loss",
        """What the model returns is finite, and the loss that is computed of it is not.

        Not this when: no recorder looked; the loss is computed inside of the model.""",
    ),
    "gradients": _outcome(
        "nonfinite_in_backward",
        """The loss is finite, and gradients are first not.

        Not this when: no recorder looked; a loss scaler skips the step, which is its work.""",
    ),
}
"""The outcome by what a recording says is not finite, in the order in which a step computes it: the first began it."""


@question(*PLACES.values(), whole_run=True)
def nonfinite_origin(run: Run) -> Answers:
    """Take the first place of the step in which a recorder first saw values that are not finite."""
    first = next((one for one in run.incidents if one.began), None)
    if first is None:
        raise CannotTell("no recorder looked where values that are not finite began")
    place = next((place for place in PLACES if place in first.began), None)
    return {} if place is None else {PLACES[place].id: _evidence(run, first, place)}


def _evidence(run: Run, first: Incident, place: str) -> Evidence:
    names = first.began[place]
    told = f" ({', '.join(names)})" if names else ""
    return Evidence(
        f"at {run.place(first.step)} the {place}{told} are first not finite"
        if place != "loss"
        else f"at {run.place(first.step)} the loss is not finite, and what the model returns is",
        steps=(first.step,),
        values={"places": len(first.began)},
    )
