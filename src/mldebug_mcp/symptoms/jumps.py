"""What is told of the jumps of a loss, beside the fact: how many, how high, how they end, and what came before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.run import Floats, Run, Series
from mldebug_mcp.measure.events import Shape, interval, shape_of
from mldebug_mcp.measure.spikes import Spike
from mldebug_mcp.measure.statistics import end_level, median, start_level
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import counted, figure

LEAST_RECORDS = 12
"""Finite records from which on the height of a jump says something. Chosen: fewer have no noise to compare with."""
SEVERAL_RECORDS = 20
"""... and from which on several jumps are more than noise. Chosen: as many as the noise of a window takes."""
SHARE_OF_START = 0.2
"""Of the loss at the start: a jump of this height. Chosen: hard batches of healthy runs make lower ones."""
AT_ONCE_SHARE, AT_ONCE_RECORDS = 0.02, 3
"""One jump is over within this share of the log, or so many records. Chosen: what one batch does is over as soon."""
SHOWN = 6
"""Jumps that a summary lists. Chosen: a line holds as many."""
MEANS = 5.0
"""Steps per record beyond which what fades seems over at once. Chosen: recoveries of our runs take as many steps."""
FADES = 2
"""Records between half of the height and the level before. Chosen: what comes back over more was not one batch."""
LEAST_EVEN, EVEN = 3, 0.1
"""Jumps of which a distance can be told, and the share by which it varies. Chosen: by chance one in twenty-five."""
BESIDE, ABOVE = 2, 1.1
"""Records on either side, but for the nearest, that a record one distance before tops by a factor. Chosen: noise."""


@dataclass(frozen=True, slots=True)
class Jumps:
    """The jumps of the loss of a run.

    Args:
        run: The run.
        loss: Its finite losses.
        found: Its jumps in order, at least one.
    """

    run: Run
    loss: Series
    found: list[Spike]

    @property
    def worst(self) -> Spike:
        """The highest of them."""
        return max(self.found, key=lambda spike: spike.height)

    @property
    def steps(self) -> Floats:
        """The steps at which they begin, shape (jumps,)."""
        return self.loss.step[[spike.first for spike in self.found]]

    @property
    def where(self) -> str:
        """Where the highest begins, in words."""
        return f"the jump at {self.run.step_name} {figure(self.at)}"

    @property
    def at(self) -> float:
        """The step at which the highest begins."""
        return float(self.loss.step[self.worst.first])


def loss_spike_high(jumps: Jumps) -> Evidence | None:
    """A jump of the training loss is as high as a fifth of the loss at the start of the run.

    Not this when: it is lower, as those of hard batches are. Of a log-density it cannot be told.
    """
    _need(jumps, LEAST_RECORDS)
    worst = jumps.worst
    _refuse_densities(jumps.loss, worst)
    start = start_level(jumps.loss.value)
    if not start or worst.height < SHARE_OF_START * abs(start):
        return None
    return Evidence(
        f"{jumps.where} is {figure(worst.height)} high; the loss began around {figure(start)}",
        steps=(jumps.at,),
        values={"height": worst.height, "start": start, "share": worst.height / abs(start)},
    )


def loss_spike_single(jumps: Jumps) -> Evidence | None:
    """The training loss jumps once in the whole log and is back within a few records.

    Not this when: it jumps again, or takes long to come back. Of a log-density it cannot be told.
    """
    _need(jumps, LEAST_RECORDS)
    spike = jumps.found[0]
    _refuse_densities(jumps.loss, spike)
    width = spike.last - spike.first + 1
    longest = max(AT_ONCE_RECORDS, AT_ONCE_SHARE * len(jumps.loss))
    if len(jumps.found) > 1 or not spike.recovered or width > longest:
        return None
    return Evidence(
        f"{jumps.where} is the only one in {len(jumps.loss)} records and lasts {width} of them",
        steps=(jumps.at,),
        values={"width_records": width},
    )


def loss_spikes_recur(jumps: Jumps) -> Evidence | None:
    """The training loss jumps far above its recent level more than once.

    Not this when: the noise is heavy-tailed (`loss_noisy`).
    """
    _need(jumps, SEVERAL_RECORDS)
    if len(jumps.found) < 2:
        return None
    steps = jumps.steps
    gaps = np.diff(steps)
    said = ", ".join(_said(spike, jumps.loss) for spike in jumps.found[:SHOWN])
    return Evidence(
        f"loss jumps {len(steps)} times, {figure(float(gaps.min()))} to {figure(float(gaps.max()))} "
        f"{jumps.run.step_name}s apart: {said}{', …' if len(steps) > SHOWN else ''}",
        steps=tuple(steps.tolist()),
        values={
            "count": len(steps),
            "closest": float(gaps.min()),
            "farthest": float(gaps.max()),
            "highest": jumps.worst.height,
            "widest_records": max(spike.last - spike.first + 1 for spike in jumps.found),
        },
    )


def loss_spikes_regular(jumps: Jumps) -> Evidence | None:
    """The training loss jumps at even distances, as when the same data comes again.

    Not this when: there are fewer than three jumps. The summary says whether the distance is that of epochs.
    """
    run, loss, steps = jumps.run, jumps.loss, jumps.steps
    if len(steps) < LEAST_EVEN or len(loss) < SEVERAL_RECORDS:
        raise CannotTell(f"the loss jumps {len(steps)} times; {LEAST_EVEN} are needed to speak of a distance")
    gaps = np.diff(steps)
    distance = float(gaps.mean())
    if float(gaps.std()) > EVEN * distance:
        return None
    steps = np.concatenate([_one_before(loss, float(steps[0]), distance), steps])
    return Evidence(
        f"the {len(steps)} jumps are {figure(distance)} {run.step_name}s apart, the first at "
        f"{figure(float(steps[0]))}{_rhythm(run, distance)}",
        steps=tuple(steps.tolist()),
        values={"distance": distance, "count": len(steps)},
    )


def spike_fades(jumps: Jumps) -> Evidence | None:
    """From its highest jump the loss comes back over several records: what was thrown off is learnt again.

    Not this when: it falls back from one record to the next, which means over many steps do not show.
    """
    shape = _shape(jumps)
    if shape.fading < FADES:
        _refuse_means(jumps)
        return None
    return _ending(jumps, shape, f"over {counted(shape.fading, 'record')}")


def _need(jumps: Jumps, records: int) -> None:
    if len(jumps.loss) < records:
        raise CannotTell(f"loss has {counted(len(jumps.loss), 'finite value')} here; {records} are needed")


def _refuse_densities(loss: Series, spike: Spike) -> None:
    """Raise CannotTell if a loss has come below zero and a jump stays below where it was before.

    So do negative log-densities, and no cross-entropy: one row far out costs any amount.
    """
    before = loss.value[: spike.first]
    if end_level(loss.value) < 0 and len(before) and loss.value[spike.peak] < before.max():
        raise CannotTell("the loss has come below zero, as a log-density's does: how far a jump goes says little")


def _shape(jumps: Jumps) -> Shape:
    shape = shape_of(jumps.loss.value, jumps.worst)
    if shape is None:
        raise CannotTell("the jump does not come back before the log ends, or too few records come before it")
    return shape


def _refuse_means(jumps: Jumps) -> None:
    if jumps.run.step_name != "step" or interval(jumps.loss) > MEANS:
        raise CannotTell("the records are too many steps apart to show that a jump is over at once")


def _ending(jumps: Jumps, shape: Shape, how: str) -> Evidence:
    return Evidence(
        f"{jumps.where} stands above half of its height for {counted(shape.high, 'record')} and comes back to the "
        f"level before it {how}",
        steps=(jumps.at,),
        values={"records_high": shape.high, "records_fading": shape.fading, "height": jumps.worst.height},
    )


def _said(spike: Spike, loss: Series) -> str:
    width = spike.last - spike.first + 1
    top = figure(float(loss.value[spike.peak]))
    return f"at {figure(float(loss.step[spike.first]))} from {figure(spike.level)} to {top} for " + counted(
        width, "record"
    )


def _one_before(loss: Series, first: float, distance: float) -> Floats:
    """Return the step of a record one distance before the first jump that stands above its neighbours, if there is."""
    at = int(np.searchsorted(loss.step, first - distance))
    near = slice(max(0, at - 1), at + 2)
    if first - distance < loss.step[0] or at < BESIDE + 1 or at + BESIDE + 2 > len(loss):
        return np.empty(0)
    top = near.start + int(np.argmax(loss.value[near]))
    others = np.concatenate([loss.value[top - 1 - BESIDE : top - 1], loss.value[top + 2 : top + 2 + BESIDE]])
    return loss.step[top : top + 1] if loss.value[top] > ABOVE * others.max() > 0 else np.empty(0)


def _rhythm(run: Run, distance: float) -> str:
    """Say what else happens at this distance, or a whole number of times in it: epochs, evaluations."""
    said = []
    epoch = run["epoch"].finite if "epoch" in run and run.step_name == "step" else None
    if epoch is not None and len(epoch) > 1 and epoch.value[-1] > epoch.value[0]:
        said.append(("an epoch is", float(np.ptp(epoch.step) / np.ptp(epoch.value))))
    evaluations = run["eval_loss"].step if "eval_loss" in run else np.empty(0)
    if len(evaluations) > 2:
        said.append(("evaluations come every", median(np.diff(evaluations))))
    return "".join(
        f"; {words} {figure(length)} {run.step_name}s" for words, length in said if _divides(length, distance)
    )


def _divides(length: float, distance: float) -> bool:
    times = distance / length if length > 0 else 0.0
    return times >= 1 - EVEN and abs(times - round(times)) <= EVEN / 2 * max(1.0, round(times) ** (1 / 2))
