"""Does the training loss jump and come back, and if so, how?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.beside import Moved, level_and_extreme, moved
from mldebug_mcp.measure.jumps import find_spikes
from mldebug_mcp.measure.rise import rise_for_good
from mldebug_mcp.measure.terms import term_set_in
from mldebug_mcp.symptoms import jumps as forms
from mldebug_mcp.symptoms.jumps import Jumps
from mldebug_mcp.symptoms.readings import outcome_of
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.symptoms.telling import Teller, told
from mldebug_mcp.text import counted, figure

FEW, SHARE = 5, 50
"""More jumps than this, and than one in so many records, are noise. Chosen: on curves with heavy-tailed noise."""
SAME_DISTANCE = 0.05
"""Share by which distances vary that count as one. Chosen: half of what `loss_spikes_regular` bears."""
SHOWN = 10
"""Steps that evidence lists. Chosen: a line holds as many."""

Form = Callable[[Jumps], Evidence | None]


def loss_spike(jumps: Jumps) -> Evidence:
    """The training loss jumps far above its recent level and comes back.

    Not this when: many points stand out, so that the curve is noisy; it stays up (`loss_divergence`); a term of the
    loss sets in there. A jump at the very end of the log counts, and the summary says that the log ends there.
    """
    run, found, worst = jumps.run, jumps.found, jumps.worst
    at, last, top = jumps.at, float(jumps.loss.step[worst.last]), float(jumps.loss.value[worst.peak])
    gaps = np.diff(jumps.steps)
    even = len(gaps) > 1 and float(gaps.std()) <= SAME_DISTANCE * float(gaps.mean())
    spacing = {"spacing": float(gaps.mean())} if even else {}
    more = f"; {len(found)} such jumps in all" if len(found) > 1 else ""
    more += f", {figure(spacing['spacing'])} {run.step_name}s apart" if spacing else ""
    others = moved(run, at, last)
    return Evidence(
        f"loss jumps from {figure(worst.level)} to {figure(top)} at {run.step_name} {figure(at)} {_back(jumps)}{more}"
        f"{_beside(run, at, last, others)}",
        steps=(at, *(step for step in jumps.steps.tolist() if step != at))[:SHOWN],
        values={
            "level_before": worst.level,
            "peak": top,
            "height": worst.height,
            "factor": top / worst.level if worst.level > 0 else float("nan"),
            "width_records": worst.last - worst.first + 1,
            "width_steps": last - at,
            "count": len(found),
            "recovered": float(bool(worst.recovered)),
            **spacing,
            **_numbers(others),
        },
    )


FORMS: tuple[tuple[Form, float, tuple[str, ...], tuple[str, ...]], ...] = (
    (forms.loss_spike_single, 0.4, ("idefics_80b_chronicles",), ()),
    (forms.loss_spikes_recur, 0.3, ("palm_2022",), ()),
    (forms.loss_spikes_regular, 0.04, ("bekman_mle",), ("loss_periodic",)),
    (forms.loss_spike_high, 0.3, ("palm_2022",), ()),
    (forms.spike_fades, 0.15, (), ()),
)
"""How a loss jumps, how often the jump of a healthy run is like that, its sources, and what it follows.

Chosen: the fit counts the backgrounds anew.
"""


@question(
    outcome_of(
        loss_spike,
        0.1,  # a large healthy run has twenty (palm_2022)
        "axolotl_stability",
        instead=("logits_grow", "loss_divergence", "loss_nonfinite"),
        as_chosen=True,
    ),
    *(
        outcome_of(form, background, *sources, of="loss_spike", follows=follows)
        for form, background, sources, follows in FORMS
    ),
    needs=("loss",),
    points=3,
    not_for=("grpo", "ppo", "rl"),
)
def loss_events(run: Run) -> Answers:
    """Say whether the training loss jumps and comes back, and if so, how."""
    loss = run["loss"].finite
    every = [one for one in find_spikes(loss.value) if term_set_in(run, float(loss.step[one.first])) is None]
    found = [one for one in every if one.recovered is not False]
    if not found or len(found) > max(FEW, len(loss) // SHARE):
        return {}
    if not any(spike.recovered for spike in found) and rise_for_good(run) is not None:
        raise CannotTell("the loss has jumped and is still up where the log ends (`loss_divergence`)")
    jumps = Jumps(run, loss, every)
    told_of = {form.__name__: _bound(form, jumps) for form, *_ in FORMS}
    return {"loss_spike": loss_spike(Jumps(run, loss, found)), **told(told_of)}


def _bound(form: Form, jumps: Jumps) -> Teller:
    return lambda: form(jumps)


def _back(jumps: Jumps) -> str:
    worst = jumps.worst
    if not worst.recovered:
        return "and the log ends before it could come back"
    # A jump counts as over once most of its height is gone, which need not be all.
    after = float(jumps.loss.value[worst.last + 1 : worst.last + 2].min(initial=worst.level + worst.height))
    return f"and is down to {figure(after)} after {counted(worst.last - worst.first + 1, 'record')}"


def _beside(run: Run, first: float, last: float, others: list[Moved]) -> str:
    """Say what else was logged there: the learning rate, the gradient norm, and what moved."""
    said = {one.metric: str(one) for one in others}
    rate = run["learning_rate"].at(first) if "learning_rate" in run else None
    if rate is not None:
        said.setdefault("learning_rate", f"the learning rate there is {figure(rate)}")
    norm = level_and_extreme(run["grad_norm"].finite, first, last) if "grad_norm" in run else None
    if norm is not None:
        said.setdefault("grad_norm", f"grad_norm goes from {figure(norm[0])} to {figure(norm[1])}")
    return "".join(f"; {part}" for part in said.values())


def _numbers(others: list[Moved]) -> dict[str, float]:
    numbers = {}
    for one in others:
        numbers[f"{one.metric}_before"], numbers[f"{one.metric}_there"] = one.before, one.there
        if one.since is not None:
            numbers[f"{one.metric}_moved_since"] = one.since
    return numbers
