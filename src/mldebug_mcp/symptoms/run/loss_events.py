"""Does the training loss jump and come back, and if so, how?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.beside import Moved, level_and_extreme, moved
from mldebug_mcp.measure.events import interval, shape_of
from mldebug_mcp.measure.jumps import Jumps, find_spikes
from mldebug_mcp.measure.rise import rise_for_good
from mldebug_mcp.measure.sawtooth import teeth_of
from mldebug_mcp.measure.spikes import Spike
from mldebug_mcp.measure.statistics import start_level
from mldebug_mcp.measure.terms import term_set_in
from mldebug_mcp.symptoms.readings import outcome_of
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.symptoms.telling import by_outcome, told
from mldebug_mcp.text import counted, figure

FEW, SHARE = 5, 50
"""More jumps than this, and than one in so many records, are noise. Chosen: on curves with heavy-tailed noise."""
LEAST_RECORDS, SEVERAL_RECORDS = 12, 20
"""Finite records from which on the height of a jump says something, and several jumps do. Chosen: as many as the noise
of a window takes."""
SHARE_OF_START = 0.2
"""Of the loss at the start: a jump of this height. Chosen: hard batches of healthy runs make lower ones."""
AT_ONCE_SHARE, AT_ONCE_RECORDS = 0.02, 3
"""One jump is over within this share of the log, or so many records. Chosen: what one batch does is over as soon."""
MEANS, FADES = 5.0, 2
"""Steps per record beyond which what fades seems over at once; records between half of the height and the level before.
Chosen: recoveries of our runs take as many steps, and what comes back over more records was not one batch."""
LEAST_EVEN, EVEN = 3, 0.1
"""Jumps of which a distance can be told, and the share by which it varies. Chosen: by chance one in twenty-five."""
LISTED, SHOWN = 6, 10
"""Jumps that a summary lists, and steps that evidence does. Chosen: a line holds as many."""


def loss_spike(jumps: Jumps) -> Evidence:
    """The training loss jumps far above its recent level and comes back.

    Not this when: many points stand out, so that the curve is noisy; it stays up (`loss_divergence`); a term of the
    loss sets in there. A jump at the very end of the log counts, and the summary says that the log ends there.
    """
    run, worst, at = jumps.run, jumps.worst, jumps.at
    last, top = float(jumps.loss.step[worst.last]), float(jumps.loss.value[worst.peak])
    gaps, others = np.diff(jumps.steps), moved(run, at, last)
    even = len(gaps) > 1 and float(gaps.std()) <= EVEN / 2 * float(gaps.mean())
    spacing = {"spacing": float(gaps.mean())} if even else {}
    more = f"; {len(jumps.found)} such jumps in all" if len(jumps.found) > 1 else ""
    more += f", {figure(spacing['spacing'])} {run.step_name}s apart" if spacing else ""
    return Evidence(
        f"loss jumps from {figure(worst.level)} to {figure(top)} at {run.place(at)} {_back(jumps)}{more}"
        f"{_beside(run, at, last, others)}",
        steps=(at, *(step for step in jumps.steps.tolist() if step != at))[:SHOWN],
        values={
            "level_before": worst.level,
            "peak": top,
            "height": worst.height,
            "factor": top / worst.level if worst.level > 0 else float("nan"),
            "width_records": worst.last - worst.first + 1,
            "width_steps": last - at,
            "count": len(jumps.found),
            "recovered": float(bool(worst.recovered)),
            **spacing,
            **{name: number for one in others for name, number in one.numbers.items()},
        },
    )


def loss_spike_high(jumps: Jumps) -> Evidence | None:
    """A jump of the training loss is as high as a fifth of the loss at the start of the run.

    Not this when: it is lower, as those of hard batches are. Of a log-density it cannot be told.
    """
    jumps.need(LEAST_RECORDS)
    jumps.refuse_densities()
    height, start = jumps.worst.height, start_level(jumps.loss.value)
    if not start or height < SHARE_OF_START * abs(start):
        return None
    said = f"{jumps.where} is {figure(height)} high; the loss began around {figure(start)}"
    return Evidence(said, steps=(jumps.at,), values={"height": height, "start": start, "share": height / abs(start)})


def loss_spike_single(jumps: Jumps) -> Evidence | None:
    """The training loss jumps once in the whole log and is back within a few records.

    Not this when: it jumps again, or takes long to come back. Of a log-density it cannot be told.
    """
    jumps.need(LEAST_RECORDS)
    jumps.refuse_densities()
    spike, count = jumps.found[0], len(jumps.loss)
    width = spike.last - spike.first + 1
    if len(jumps.found) > 1 or not spike.recovered or width > max(AT_ONCE_RECORDS, AT_ONCE_SHARE * count):
        return None
    said = f"{jumps.where} is the only one in {count} records and lasts {width} of them"
    return Evidence(said, steps=(jumps.at,), values={"width_records": width})


def loss_spikes_recur(jumps: Jumps) -> Evidence | None:
    """The training loss jumps far above its recent level more than once.

    Not this when: the noise is heavy-tailed (`loss_noisy`).
    """
    jumps.need(SEVERAL_RECORDS)
    if len(jumps.found) < 2:
        return None
    steps, gaps = jumps.steps, np.diff(jumps.steps)
    said = ", ".join(_said(spike, jumps.loss) for spike in jumps.found[:LISTED])
    return Evidence(
        f"loss jumps {len(steps)} times, {figure(gaps.min())} to {figure(gaps.max())} "
        f"{jumps.run.step_name}s apart: {said}{', …' if len(steps) > LISTED else ''}",
        steps=tuple(steps.tolist()),
        values={
            "count": len(steps),
            "closest": float(gaps.min()),
            "farthest": float(gaps.max()),
            "highest": jumps.worst.height,
        },
    )


def loss_spikes_regular(jumps: Jumps) -> Evidence | None:
    """The training loss jumps at even distances, as when the same data comes again.

    Not this when: there are fewer than three jumps.
    """
    steps, run = jumps.steps, jumps.run
    jumps.need(SEVERAL_RECORDS)
    if len(steps) < LEAST_EVEN:
        raise CannotTell(f"the loss jumps {len(steps)} times; {LEAST_EVEN} are needed to speak of a distance")
    gaps = np.diff(steps)
    distance = float(gaps.mean())
    if float(gaps.std()) > EVEN * distance:
        return None
    said = f"the {len(steps)} jumps are {figure(distance)} {run.step_name}s apart, the first at {figure(steps[0])}"
    return Evidence(said, steps=tuple(steps.tolist()), values={"distance": distance, "count": len(steps)})


def spike_fades(jumps: Jumps) -> Evidence | None:
    """From its highest jump the loss comes back over several records: what was thrown off is learnt again.

    Not this when: it falls back from one record to the next, which means over many steps do not show.
    """
    shape = shape_of(jumps.loss.value, jumps.worst)
    if shape is None:
        raise CannotTell("the jump does not come back before the log ends, or too few records come before it")
    if shape.fading < FADES:
        if jumps.run.step_name != "step" or interval(jumps.loss) > MEANS:
            raise CannotTell("the records are too many steps apart to show that a jump is over at once")
        return None
    return Evidence(
        f"{jumps.where} stands above half of its height for {counted(shape.high, 'record')} and comes back to the "
        f"level before it over {counted(shape.fading, 'record')}",
        steps=(jumps.at,),
        values={"records_high": shape.high, "records_fading": shape.fading, "height": jumps.worst.height},
    )


FORMS = (loss_spike_single, loss_spikes_recur, loss_spikes_regular, loss_spike_high, spike_fades)


@question(
    outcome_of(
        loss_spike,
        0.1,  # a large healthy run has twenty (palm_2022)
        "axolotl_stability",
        instead=("logits_grow", "loss_divergence", "loss_nonfinite"),
        as_chosen=True,
    ),
    outcome_of(loss_spike_single, 0.4, "idefics_80b_chronicles", of="loss_spike"),
    outcome_of(loss_spikes_recur, 0.3, "palm_2022", of="loss_spike"),
    outcome_of(loss_spikes_regular, 0.04, "bekman_mle", of="loss_spike", follows=("loss_periodic",)),
    outcome_of(loss_spike_high, 0.3, "palm_2022", of="loss_spike"),
    outcome_of(spike_fades, 0.15, of="loss_spike"),
    needs=("loss",),
    points=3,
    not_for=("grpo", "ppo", "rl"),
)
def loss_events(run: Run) -> Answers:
    """Say whether the training loss jumps and comes back, and if so, how."""
    loss = run["loss"].finite
    if teeth_of(loss.value) is not None:
        raise CannotTell("the loss goes like the teeth of a saw, whose jumps are no spikes (`loss_sawtooth`)")
    every = [one for one in find_spikes(loss.value) if term_set_in(run, float(loss.step[one.first])) is None]
    found = [one for one in every if one.recovered is not False]
    if not found or len(found) > max(FEW, len(loss) // SHARE):
        return {}
    if not any(spike.recovered for spike in found) and rise_for_good(run) is not None:
        raise CannotTell("the loss has jumped and is still up where the log ends (`loss_divergence`)")
    jumps = Jumps(run, loss, every)
    return {"loss_spike": loss_spike(Jumps(run, loss, found)), **told(by_outcome(FORMS, jumps))}


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


def _said(spike: Spike, loss: Series) -> str:
    top, width = figure(loss.value[spike.peak]), counted(spike.last - spike.first + 1, "record")
    return f"at {figure(loss.step[spike.first])} from {figure(spike.level)} to {top} for {width}"
