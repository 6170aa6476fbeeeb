"""The verb `choose_checkpoint`: which of the checkpoints of a run to keep, by the metric that its author chose.

It advises by that metric alone: an accuracy that rises while the loss rises too is not a reason to go back.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mldebug_mcp.checks.curve import MEDIAN_ERROR, mad
from mldebug_mcp.checks.evaluation import evaluation_losses
from mldebug_mcp.core.access import is_file
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.core.paths import expanded
from mldebug_mcp.core.text import counted, figure, shorten
from mldebug_mcp.judge.at_a_glance import glance_at_choice
from mldebug_mcp.judge.checkpoint_metric import Metric, authors_metric, known_series, metric_named, series_named
from mldebug_mcp.judge.checkpoint_places import (
    MIN_EVALUATIONS,
    NAMED_BEST,
    Curve,
    Place,
    asks_inside,
    best_of,
    counters_in,
    curve_of,
    places_of,
    value_at,
    window_of,
)
from mldebug_mcp.logs import Run, Series, read_run
from mldebug_mcp.logs.checkpoints import Checkpoint, checkpoints_of
from mldebug_mcp.logs.read import owns_folder
from mldebug_mcp.models.checkpoints import CheckpointChoice, CheckpointFact

BAND = 2 * math.sqrt(2)
"""Times the noise of one evaluation: two standard deviations of the difference of two, some 95 %."""
MAX_SHOWN = 200
MAX_NAMED = 4


def choose_checkpoint(
    path: str | Path,
    config: str | Path | None = None,
    run: str = "",
    *,
    metric: str = "",
    checkpoints: str | Path | None = None,
    names: Mapping[str, str] | None = None,
) -> CheckpointChoice:
    """Say which checkpoint of a run to keep, by the metric that its author chose, with a noise band.

    Args:
        path: A run folder, or a log file in one.
        config: The training configuration (JSON or YAML), if it is not next to the log.
        run: Which run to read, if the path holds several.
        metric: The metric that decides, in place of the author's.
        checkpoints: The folder of the checkpoints, where that is another.
        names: What names of the log mean that do not say it, such as {"L": "loss"}.

    Raises:
        InputError: a path cannot be used, no checkpoint exists, or the metric is not logged.
    """
    own = read_run(path, config, run, names)
    if checkpoints is not None:
        own = replace(own, folder=str(expanded(checkpoints)), path=str(checkpoints))
    if metric and not series_named(own, metric):
        has = shorten(", ".join(sorted(own.series)), 300)
        raise InputError(f"{shorten(own.path, 200)}: nothing called {shorten(metric, 60)!r} is logged; it has {has}")
    found = checkpoint_choice(own, metric)
    if found is None:
        raise InputError(
            f"{shorten(str(checkpoints or path), 200)}: no checkpoint found; name the folder that holds them with "
            "checkpoints=FOLDER",
            arguments=("checkpoints",),
        )
    return found.model_copy(update={"at_a_glance": glance_at_choice(found, str(path))})


def checkpoint_choice(run: Run, metric: str = "") -> CheckpointChoice | None:
    """Return which checkpoint of a run to keep, None where its folder holds none; see `choose_checkpoint`."""
    if not run.folder or run.runs_in_folder > 1:
        return None
    saved = checkpoints_of(run)
    if not saved or (is_file(expanded(run.path)) and not owns_folder(expanded(run.path))):
        return None
    with np.errstate(all="ignore"):
        return _choice(run, saved, metric)


def _choice(run: Run, saved: Sequence[Checkpoint], metric: str) -> CheckpointChoice:
    inside = {checkpoint.name: counters_in(checkpoint) for checkpoint in saved if asks_inside(checkpoint)}
    author = metric_named(run, metric, "it was asked for") if metric else authors_metric(run, saved, inside)
    curve = curve_of(run, author)
    facts = [_fact(checkpoint, place) for checkpoint, place in places_of(run, saved, inside, author, curve)]
    facts = _with_what_is_missing(saved, facts)
    return _decided(run, author, curve, facts)


def _fact(checkpoint: Checkpoint, place: Place) -> tuple[CheckpointFact, int | None]:
    fact = CheckpointFact(
        name=checkpoint.name, step=place.step, value=place.value, evaluated=place.how, note=place.note
    )
    return fact, place.index


Facts = list[tuple[CheckpointFact, int | None]]


def _with_what_is_missing(saved: Sequence[Checkpoint], facts: Facts) -> Facts:
    """Return the facts; a checkpoint without weights where others have some was not saved whole."""
    weights, bytes_ = any(checkpoint.has_weights for checkpoint in saved), any(checkpoint.size for checkpoint in saved)
    marked = []
    for checkpoint, (fact, index) in zip(saved, facts, strict=True):
        broken = (weights and not checkpoint.has_weights) or (bytes_ and checkpoint.has_weights and not checkpoint.size)
        note = f"{INCOMPLETE}: {'its files of weights are empty' if checkpoint.has_weights else 'no weights in it'}"
        marked.append((fact.model_copy(update={"note": note}) if broken else fact, index))
    return marked


INCOMPLETE = "not saved whole"
BEST = re.compile(r"(?:^|[^a-z])best(?:[^a-z]|$)", re.IGNORECASE)


def _decided(run: Run, metric: Metric, curve: Curve, facts: Facts) -> CheckpointChoice:
    facts = sorted(facts, key=lambda fact: (fact[0].step is None, fact[0].step or 0.0, fact[0].name))
    whole = [(fact, index) for fact, index in facts if not fact.note.startswith(INCOMPLETE)]
    known = [(fact, index) for fact, index in whole if fact.value is not None]
    sign = 1.0 if metric.higher else -1.0
    notes = [*metric.notes, *(f"{fact.name}: {fact.note}" for fact, _ in facts if fact.note.startswith(INCOMPLETE))]
    count = len(curve) or sum(fact.evaluated == "by its name" for fact, _ in facts)
    common: dict[str, Any] = {
        "metric": metric.name,
        "better": "" if not metric.name else "higher" if metric.higher else "lower",
        "chosen_by": metric.chosen_by,
        "evaluations": count,
    }
    if not known:
        named_best = next((fact.name for fact, _ in whole if BEST.search(Path(fact.name).name)), "")
        summary = _not_evaluated(metric, curve, len(facts))
        if named_best:
            summary = f"Keep {named_best}: its author's code named it the best one; by which metric is not known."
        return CheckpointChoice(
            keep=named_best, verdict="not evaluated", summary=summary, **common, checkpoints=_shown(facts), notes=notes
        )
    best = max(known, key=lambda pair: (sign * _number(pair[0].value), *_preferred(pair[0], metric)))
    top = _top(metric, curve, whole, best[0])
    band = top.band
    as_good = [
        fact for fact, _ in known
        if fact is not best[0] and band is not None and sign * (_number(best[0].value) - _number(fact.value)) <= band
    ]  # fmt: skip
    marked = [(fact.model_copy(update={"as_good": fact is best[0] or fact in as_good}), index) for fact, index in facts]
    result: dict[str, Any] = {
        **common, "value": best[0].value, "best": top.value, "best_step": top.step, "best_saved": top.is_saved,
        "noise": top.noise, "band": band, "checkpoints": _shown(marked),
    }  # fmt: skip
    notes += _by_the_loss(run, metric, best[0], whole)
    if count < MIN_EVALUATIONS:
        summary = _too_few(metric, count, best[0], len(known))
        return CheckpointChoice(verdict="too few evaluations", summary=summary, **result, notes=notes)
    summary = _summary(run, metric, best[0], top, as_good)
    return CheckpointChoice(
        keep=best[0].name, verdict="within noise" if as_good else "clear", summary=summary, **result,
        as_good=[fact.name for fact in as_good], notes=notes,
    )  # fmt: skip


def _preferred(fact: CheckpointFact, metric: Metric) -> tuple[bool, bool]:
    """Return the order of checkpoints of one value: what its author's code calls the best, where its metric is unknown.

    Else what was evaluated, and of that what says when it was saved.
    """
    named_best = fact.note == NAMED_BEST
    return (not metric.is_authors and named_best) or (metric.is_authors and fact.evaluated == "there"), not fact.note


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


@dataclass(frozen=True, slots=True)
class _Top:
    """The best evaluation of the log.

    Args:
        value: The metric there.
        step: Where that is.
        noise: Standard deviation of one value; None is not known.
        is_saved: Whether a checkpoint of it is there.
    """

    value: float | None
    step: float | None
    noise: float | None
    is_saved: bool

    @property
    def band(self) -> float | None:
        """A smaller difference may be noise."""
        return None if self.noise is None else BAND * self.noise


def _top(metric: Metric, curve: Curve, whole: Facts, best: CheckpointFact) -> _Top:
    if not len(curve):
        return _Top(best.value, best.step, None, is_saved=True)
    at = best_of(curve, metric)
    value, step = value_at(curve, at), float(curve.step[at])
    if curve.is_training:
        noise_of_one = mad(np.diff(curve.value)) / math.sqrt(2)
        noise = MEDIAN_ERROR * noise_of_one / math.sqrt(window_of(curve))
        return _Top(value, step, noise, is_saved=abs(_number(best.value) - _number(value)) <= BAND * noise)
    is_saved = any(index is not None and curve.value[index] == curve.value[at] for _, index in whole)
    return _Top(value, step, curve.noise, is_saved)


def _shown(facts: Facts) -> list[CheckpointFact]:
    return [fact for fact, _ in facts][:MAX_SHOWN]


def _not_evaluated(metric: Metric, curve: Curve, count: int) -> str:
    there = f"{counted(count, 'checkpoint')} saved"
    if not metric.name:
        return f"{there}; no evaluation is logged, so which one to keep is unknown: the training loss does not show it."
    if not len(curve):
        return f"{there}; {metric.name} is not logged, so which one to keep is unknown."
    return f"{there}; {metric.name} was evaluated at none of their steps, so which one to keep is unknown."


def _too_few(metric: Metric, count: int, best: CheckpointFact, known: int) -> str:
    shortage = (
        f"Not enough evaluations to tell which checkpoint to keep: {counted(count, 'value')} of {metric.name}, and "
        f"{MIN_EVALUATIONS} are needed to tell a difference from noise."
    )
    return f"{shortage} {best.name} has {figure(_number(best.value))}" + (", the better value." if known > 1 else ".")


def _summary(run: Run, metric: Metric, best: CheckpointFact, top: _Top, as_good: Sequence[CheckpointFact]) -> str:
    value, way, band = _number(best.value), "highest" if metric.higher else "lowest", top.band
    of_saved = "" if top.is_saved else " of those saved"
    how = " (read off between two evaluations)" if best.evaluated == "between" else ""
    if best.note == NAMED_BEST and not metric.is_authors:
        place = "" if best.step is None else f" at {run.place(best.step)}"
        lines = [
            f"Keep {best.name}: its author's code named it the best one; no setting says by which metric. By "
            f"{metric.name}, the usual one, the best evaluation is {figure(value)}{place}."
        ]
    else:
        lines = [f"Keep {best.name}: {metric.name} is {figure(value)}{how}, the {way}{of_saved} ({metric.chosen_by})."]
    if not top.is_saved and top.value is not None and top.step is not None:
        apart = abs(value - top.value)
        within = "" if band is None else ", which is within noise" if apart <= band else ", which is beyond noise"
        lines.append(
            f"The best evaluation was never saved: {metric.name} {figure(top.value)} at {run.place(top.step)}; "
            f"the difference is {figure(apart)}{within}."
        )
    same = [checkpoint_fact for checkpoint_fact in as_good if checkpoint_fact.step == best.step]
    as_good = [checkpoint_fact for checkpoint_fact in as_good if checkpoint_fact.step != best.step]
    if same:
        lines.append(
            f"Of the same evaluation: {', '.join(checkpoint_fact.name for checkpoint_fact in same[:MAX_NAMED])}."
        )
    if as_good:
        shown = ", ".join(
            f"{checkpoint_fact.name} ({figure(_number(checkpoint_fact.value))})"
            for checkpoint_fact in as_good[:MAX_NAMED]
        )
        more = f" and {len(as_good) - MAX_NAMED} more" if len(as_good) > MAX_NAMED else ""
        limit = figure(_number(band))
        lines.append(f"Noise alone could part it from {shown}{more}: differences up to {limit} may be noise.")
    elif band is None:
        lines.append("The noise is not known from so few evaluations.")
    return " ".join(lines)


def _by_the_loss(run: Run, metric: Metric, best: CheckpointFact, whole: Facts) -> list[str]:
    """Return that the evaluation loss would choose another, as a fact: the metric decides, not the loss."""
    losses = known_series(evaluation_losses, run)
    if not losses or metric.series is None or losses[0].name == metric.series.name:
        return []
    loss = losses[0].finite
    at = {
        fact.name: value for fact, _ in whole if fact.step is not None and (value := _near(loss, fact.step)) is not None
    }
    if len(at) < 2 or best.name not in at:
        return []
    lowest = min(at, key=lambda name: at[name])
    if at[lowest] >= at[best.name]:
        return []
    return [
        f"{loss.name} is lowest at {lowest} ({figure(at[lowest])}, at {best.name} {figure(at[best.name])}); "
        f"{metric.name} decides, and its higher loss gives no reason to go back"
    ]


def _near(series: Series, step: float) -> float | None:
    there: Iterable[int] = np.flatnonzero(np.abs(series.step - step) <= 1)
    return next((float(series.value[index]) for index in there), None)
