"""What schedules of the settings expect of the columns: of the learning rate, and of a task that gets harder."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from mldebug_mcp.checks.curve import start_level
from mldebug_mcp.checks.learning_rate import Shape, rate_of, shape_of
from mldebug_mcp.checks.run.schedule import LEARNT
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import figure, ratio
from mldebug_mcp.judge.columns import (
    LEAST_PAIRS,
    MIN_RECORDS_FOR_LEVEL,
    POLICIES,
    named,
    tail,
    training_loss,
)
from mldebug_mcp.logs import Run, Series
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.kinds import plan_of
from mldebug_mcp.logs.names.lexicon import PHASES
from mldebug_mcp.logs.names.words import pieces_of
from mldebug_mcp.models.diagnosis import DerivedFact

# A learning rate that is at the end of its schedule from the beginning on.


AT_FLOOR = 1.02
"""Times the last rate of a schedule up to which a rate is there. Chosen: rounding of logs takes less."""
NO_FLOOR = 0.5
"""Share of the peak from which on the last rate of a schedule hardly differs from it. Chosen."""
EARLIEST_END = 0.1
"""Share of the plan in which no schedule over all of it has ended. Chosen: warm-ups are as long."""
_FLOOR_SHARE = regex(
    r"lrf|(?:min|final|end)_(?:lr|learning_rate)_(?:ratio|rate|frac(?:tion)?|factor|share)"
    r"|lr_(?:min|final|end)_(?:ratio|frac(?:tion)?|factor|share)",
    re.IGNORECASE,
    needs=("lrf", "min_", "final_", "end_"),
)
_FLOOR = regex(
    r"eta_min|(?:min|final|end)_(?:lr|learning_rate)|(?:lr|learning_rate)_(?:min|final|end)",
    re.IGNORECASE,
    needs=("min_", "final_", "end_", "_min", "_final", "_end"),
)
"""What a setting is called that gives the last rate of a schedule: as a share of the peak, and by itself."""


def rate_at_floor_at_once(run: Run) -> Iterator[DerivedFact]:
    """Yield that the learning rate is at the last value of its schedule from the first part of the plan on.

    Not this where the rate is constant by the settings, or where these let it decay over a part of the plan.
    """
    peak, rate, plan = run.facts.schedule.peak, rate_of(run), plan_of(run)
    if not peak or rate is None or plan is None or shape_of(run) is Shape.CONSTANT or run.resumes:
        return
    floor = next((found for found in _floors(run, peak) if 0 < found <= NO_FLOOR * peak), None)
    above = np.flatnonzero(rate.value > AT_FLOOR * (floor or 0.0))
    since = int(above[-1]) + 1 if len(above) else 0
    if floor is None or len(rate) - since < MIN_RECORDS_FOR_LEVEL or float(rate.value[-1]) < floor / AT_FLOOR:
        return
    step = float(rate.step[since])
    decay = run.setting("lr_decay_steps")
    if step > EARLIEST_END * plan.planned or (decay is not None and decay < plan.planned / 2):
        return
    yield DerivedFact.model_construct(
        fact="rate_at_floor_at_once",
        text=(
            f"{named(rate)} is {figure(floor)} in all {len(rate) - since} records from {run.place(step)} on. That is "
            f"the last value that the settings give, and {plan.unit} {figure(plan.planned)} is the end of the plan. A "
            f"schedule that takes the rate there from {figure(peak)} arrives at the end. One that steps for each "
            "batch instead of each epoch arrives at once."
        ),
        values={"floor": floor, "peak": peak, "planned": plan.planned},
        steps=[step],
    )


def _floors(run: Run, peak: float) -> Iterator[float]:
    """Yield the last learning rates that settings give: as shares of the peak, or by themselves."""
    for setting in run.settings.values():
        if isinstance(setting.value, bool) or not isinstance(setting.value, int | float):
            continue
        if _FLOOR_SHARE.fullmatch(setting.last_part):
            yield float(setting.value) * peak
        elif _FLOOR.fullmatch(setting.last_part):
            yield float(setting.value)


def rate_zero_throughout(run: Run) -> Iterator[DerivedFact]:
    """Yield that the learning rate is 0 in all records: no peak was ever reached that could be raised."""
    rate = rate_of(run)
    if rate is None or len(rate) < MIN_RECORDS_FOR_LEVEL or np.any(rate.value != 0):
        return
    loss = training_loss(run, MIN_RECORDS_FOR_LEVEL, not_of=POLICIES)
    if loss is not None and median(tail(loss)) < (1 - LEARNT) * start_level(loss.value):
        return  # the rate is printed with too few digits
    yield DerivedFact.model_construct(
        fact="rate_zero_throughout",
        text=(
            f"Updates at a learning rate of 0 change nothing: the schedule gives 0 for all {len(rate)} records, or the "
            "optimizer gets no learning rate."
        ),
        values={"records": float(len(rate))},
        steps=[float(rate.step[0])],
    )


# A learning rate that falls elsewhere than at the milestones of the settings.


FALLS_TO = 0.7
"""Times its last value up to which a rate has fallen at once. Chosen: the usual factors are 0.1 to 0.5."""
TOO_EARLY = 0.6
"""Share of its milestone before which a rate falls too early. Chosen: counts of warm-up steps move it less."""


def rate_falls_before_milestones(run: Run) -> Iterator[DerivedFact]:
    """Yield that the rate falls long before the milestones that settings give, each by about the same factor."""
    rate, plan, milestones = rate_of(run), plan_of(run), run.settings.numbers("lr_milestones")
    if rate is None or plan is None or run.resumes or not milestones or rate.step[-1] <= 0:
        return
    planned = next((known for known in _planned(run, plan.planned) if milestones[-1] < known), None)
    falls = np.flatnonzero(rate.value[1:] <= FALLS_TO * rate.value[:-1]) + 1
    rises = np.any(np.diff(rate.value)[int(np.argmax(rate.value)) :] > 0)
    if planned is None or len(falls) != len(milestones) or rises:
        return
    steps = rate.step[falls]
    expected = np.array(milestones) / planned / (plan.reached / plan.planned) * float(rate.step[-1])
    if np.any(steps > TOO_EARLY * expected):
        return
    times = ratio(float(expected[0] / steps[0]))
    yield DerivedFact.model_construct(
        fact="rate_falls_before_milestones",
        text=(
            f"{named(rate)} falls at {run.place(float(steps[0]))}{_and_more(steps)}. The settings have it fall at "
            f"{' and '.join(map(figure, milestones))} of {figure(planned)}: about {times} times later. "
            "A scheduler that steps more often than its milestones count arrives early."
        ),
        values={"first": float(steps[0]), "expected": float(expected[0]), "planned": planned},
        steps=[float(steps[0])],
    )


def _and_more(steps: Floats) -> str:
    return f" and at {', '.join(map(figure, steps[1:].tolist()))}" if len(steps) > 1 else ""


def _planned(run: Run, planned: float) -> Iterator[float]:
    """Yield how many epochs, and then how many steps, are planned."""
    for known in (run.setting("num_train_epochs"), run.setting("max_steps"), planned):
        if known:
            yield known


# A task that gets harder by stages: the loss jumps where one begins.


MOST_STAGES = 12
"""Stages of a curriculum. Chosen: what changes more often has no stages."""
JUMPS_AT_STAGE = 1.25
"""Times its level before by which a loss jumps at a stage. Chosen: noise of a mean over a batch has less."""
OF_LARGEST = 0.5
"""Share of the largest jump at a stage that one elsewhere has at most. Chosen: the stages then explain the jumps."""
COMES_DOWN = 0.5
"""Share of the jump that is gone at the end of the stage. Chosen: the harder task is learnt, too."""
_HARDER = frozenset(
    {"curriculum", "stage", "difficulty", "level", "horizon", "rollout", "digits", "length", "len", "seqlen"}
    | {"resolution", "hops", "operands", "lesson"}
)
"""Words of what a curriculum makes larger."""
_PLANNED = frozenset({"curriculum", "schedule", "stages", "lessons", "progressive"})
"""Words of settings that say when: a column that such a setting names may step down as well, as a noise ratio does."""
_AT = frozenset({"until", "from", "at", "start", "begin", "end", "step", "steps", "milestone", "milestones"})
"""Words of the steps in them."""


def stages_explain_jumps(run: Run) -> Iterator[DerivedFact]:
    """Yield that the loss jumps where a stage of the task begins, nowhere else as far, and comes down in that stage."""
    loss = training_loss(run, MIN_RECORDS_FOR_LEVEL, not_of=POLICIES)
    if loss is None:
        return
    rises = np.diff(loss.value, prepend=loss.value[0])
    where, begins = _logged_stages(run, loss) or _configured_stages(run, loss, rises)
    begins = [at for at in begins if LEAST_PAIRS <= at <= len(loss) - LEAST_PAIRS]
    if not begins:
        return
    first = max(begins, key=lambda at: float(rises[at]))
    end_of_stage = next((at for at in begins if at > first), len(loss))
    before, high = median(loss.value[first - LEAST_PAIRS : first]), float(loss.value[first])
    end = median(loss.value[max(first + 1, end_of_stage - LEAST_PAIRS) : end_of_stage])
    elsewhere = np.delete(rises, begins)[LEAST_PAIRS:]
    is_jump = before > 0 and high >= JUMPS_AT_STAGE * before and high - end >= COMES_DOWN * (high - before)
    if not is_jump or (len(elsewhere) and float(elsewhere.max()) > OF_LARGEST * float(rises[first])):
        return
    step = float(loss.step[first])
    yield DerivedFact.model_construct(
        fact="stages_explain_jumps",
        text=(
            f"{named(loss)} goes from about {figure(before)} to {figure(high)} at {run.place(step)}, where {where}. "
            f"It is about {figure(end)} at the end of that stage, and jumps nowhere else as far. A "
            "harder task begins with a higher loss."
        ),
        values={"before": before, "high": high, "end": end},
        steps=[step],
    )


def _logged_stages(run: Run, loss: Series) -> tuple[str, list[int]] | None:
    """Return what a column of stages does, and at which records of the loss they begin; None where there is none."""
    for series in run.series.values():
        column = series.finite
        words = set(pieces_of(series.name)) - PHASES.keys()
        is_planned = bool(words) and any(
            words <= (parts := set(pieces_of(key))) and parts & _PLANNED for key in _keys(run)
        )
        if series.role is not None or len(column) < MIN_RECORDS_FOR_LEVEL or not (words & _HARDER or is_planned):
            continue
        changes = np.diff(column.value)
        at = np.flatnonzero(changes) + 1
        lasts = np.diff(np.concatenate([[0], at, [len(column)]]))
        way = "up" if np.all(changes >= 0) else "down" if is_planned and np.all(changes <= 0) else ""
        if 0 < len(at) < MOST_STAGES and int(lasts.min()) >= LEAST_PAIRS and way:
            return f"{named(series)} steps {way}", np.searchsorted(loss.step, column.step[at]).tolist()
    return None


def _configured_stages(run: Run, loss: Series, rises: Floats) -> tuple[str, list[int]]:
    """Return what a setting of stages does, and at which records of the loss they begin; no record where there is none.

    A stage until a step begins behind it: of the two records around it the one that rises more is taken.
    """
    name, begins = "", set[int]()
    for setting in run.settings.values():
        parts = pieces_of(setting.key)
        if not (_PLANNED & set(parts) and (_HARDER | {"stages", "lessons"}) & set(parts)):
            continue
        step = float(parts[-1]) if parts[-1].isdecimal() else setting.value if parts[-1] in _AT else None
        if isinstance(step, bool) or not isinstance(step, int | float) or not loss.step[0] < step < loss.step[-1]:
            continue
        at = np.searchsorted(loss.step, step, side="left"), np.searchsorted(loss.step, step, side="right")
        begins.add(int(max(at, key=lambda index: float(rises[index]))))
        name = name or f"a stage of {setting.key} begins"
    return name, sorted(begins) if len(begins) < MOST_STAGES else []


def _keys(run: Run) -> list[str]:
    return [setting.key for setting in run.settings.values()]
