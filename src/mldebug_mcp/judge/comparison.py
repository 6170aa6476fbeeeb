"""A run compared with a good one.

It says which settings differ, where the metrics part, and which causes a differing setting suggests.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import numpy as np

from mldebug_mcp.checks.curve import at_common_steps, noise, noise_on_slope, true_at_end
from mldebug_mcp.checks.learning_rate import peak_of
from mldebug_mcp.checks.results import improves_upwards
from mldebug_mcp.checks.run.loss_events import find_spikes
from mldebug_mcp.core.arrays import median
from mldebug_mcp.judge.sheet import is_clock
from mldebug_mcp.logs import Run, Series
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.names.quantities import THROUGHPUTS
from mldebug_mcp.logs.settings import Scalar
from mldebug_mcp.logs.settings.settings import POLICIES
from mldebug_mcp.models import Comparison, Parting, SettingDifference, SharedJump

# Which causes a setting suggests that is not as it usually is: in good runs, in siblings, or in a reference run.


FAULTS: Mapping[tuple[str, int], tuple[str, ...]] = {
    ("learning_rate", +1): ("lr_too_high",),
    ("learning_rate", -1): ("lr_too_low",),
    ("warmup_steps", -1): ("insufficient_warmup",),
    ("warmup_ratio", -1): ("insufficient_warmup",),
    ("max_steps", -1): ("lr_schedule_bug",),
    ("lr_scheduler_type", 0): ("lr_schedule_bug",),
    ("weight_decay", +1): ("weight_decay_too_high",),
    ("max_grad_norm", -1): ("clip_too_tight",),
    ("max_grad_norm", +1): ("exploding_gradients",),
    ("per_device_train_batch_size", -1): ("batch_too_small",),
    ("gradient_accumulation_steps", -1): ("batch_too_small",),
    ("gradient_accumulation_steps", +1): ("grad_accum_scaling",),
    ("adam_beta2", +1): ("adam_instability",),
    ("adam_epsilon", -1): ("adam_instability",),
    ("adam_epsilon", +1): ("lr_too_low",),
    ("dropout", +1): ("too_little_capacity",),
    ("label_smoothing_factor", +1): ("wrong_loss",),
    ("ent_coef", +1): ("wrong_loss", "exploration_failure"),
    ("clip_range", -1): ("clip_too_tight", "lr_too_low"),
    ("fp16", 0): ("fp16_overflow",),
    ("bf16", 0): ("fp16_overflow", "low_precision_update"),
    ("beta", -1): ("kl_blowup", "dpo_collapse"),
    ("num_generations", -1): ("no_reward_variance",),
    ("max_completion_length", -1): ("completion_limit_low", "reward_broken"),
    ("init_scale", +1): ("bad_init",),
    ("init_scale", -1): ("bad_init", "vanishing_gradients"),
    ("momentum", +1): ("lr_too_high",),
    ("shuffle", -1): ("unshuffled_data",),
    ("hidden_size", -1): ("too_little_capacity",),
    ("lora_r", -1): ("too_little_capacity",),
    ("planned_passes", +1): ("overfitting", "duplicated_data"),
    ("temperature", -1): ("no_reward_variance", "entropy_collapse"),
    ("temperature", +1): ("kl_blowup",),
    ("clip_range", +1): ("kl_blowup",),
    ("vf_coef", +1): ("value_instability",),
    ("buffer_size", -1): ("value_instability",),
    ("ent_coef", -1): ("entropy_collapse", "exploration_failure"),
}
"""The causes that a setting suggests if it is higher (+1), lower (-1) or just different (0) than usual."""


def faults_of(setting: str, direction: int) -> tuple[str, ...]:
    """Return the causes that a setting suggests that is higher (+1) or lower (-1) than usual, or another (0)."""
    of_any = FAULTS.get((setting, 0), ())
    return (*FAULTS.get((setting, direction), ()), *of_any) if direction else of_any


COMPARED_STRETCHES = 60
"""Stretches that the common steps are cut into: a departure is located to a sixtieth of them, then to a record."""
MIN_DEPARTURE_SIGMAS = 5.0
"""Levels of two stretches differ if they are this many standard deviations of their noise apart ..."""
MIN_RELATIVE_DIFFERENCE = 0.02
"""... and by this share of the reference: two seeds of one recipe differ by about a percent. Both chosen by hand."""
MOST_SIGMAS = 1000.0
"""The words for values without noise, such as learning rates."""
MIN_DEPARTED_STRETCHES = 3
"""Stretches in a row that have to differ: a difference that goes away is a spike."""
MIN_RECORDS_FOR_COURSE = 8
"""Records of a curve below which only its end is compared. Chosen by hand: their noise is hardly known."""
MIN_WORSE_RESULT_SHARE = 0.05
"""Share of the reference, and of what the reference gained, by which a result is worse or better.

Chosen: two seeds of one recipe differ by about a percent. What was gained counts, since losses near zero differ by
large shares that mean little.
"""
MAX_SETTINGS = 40
MAX_JUMPS = 5
"""Jumps that are compared. Chosen: the highest say most."""
SINGLE_PRECISION = 1e-6
"""Share by which a number differs in single precision, some times over: 2 to the power of -24 is the exact one."""
PRINTED_ROUNDING_SHARE = 1e-4
"""Share by which two values differ that are the same. Chosen: a log prints five digits."""

# Settings that say where things are stored, or how a run is called, explain nothing.
_NO_CAUSE = (
    "path", "dir", "name", "run_id", "tags", "notes", "date", "time", "host", "wandb", "logging", "report_to",
    "version",
)  # fmt: skip
_NO_RESULTS = THROUGHPUTS | {
    Quantity.BATCH_SIZE, Quantity.DEVICE_UTILISATION, Quantity.HOST_UTILISATION, Quantity.TEMPERATURE, Quantity.POWER,
    Quantity.FLOPS_UTILISATION,
}  # fmt: skip
"""What depends on machines and schedules: two healthy runs may differ in it."""

_CLOCK_NAMES = ("time", "eta", "epoch", "iteration")


def compare(run: Run, reference: Run) -> Comparison:
    """Return how a run differs from a reference run, and the steps at which their metrics depart beyond the noise."""
    shared = [name for name in run.series if _is_compared(run[name]) and _overlap(run, reference, name)]
    found = {name: _parting(run[name].finite, reference[name].finite, _better(run, name)) for name in shared}
    return Comparison(
        reference=reference.path,
        settings=_differences(settings_with_rate(run), settings_with_rate(reference)),
        partings=sorted(
            (parting for parting in found.values() if parting is not None), key=lambda parting: parting.step
        ),
        alike=[name for name, parting in found.items() if parting is None],
        jumps=_jumps(run, reference),
        same_order=_is_of_same_order(run, reference),
        same_losses=_have_same_losses(run, reference),
    )


def _losses(run: Run, reference: Run) -> tuple[Series, Series] | None:
    """Return the finite losses of both runs, None where they have no steps in common."""
    if run.step_name != reference.step_name or "loss" not in run or not _overlap(run, reference, "loss"):
        return None
    return run["loss"].finite, reference["loss"].finite


def _jumps(run: Run, reference: Run) -> list[SharedJump]:
    """Return the highest jumps of the loss over steps at which the reference run logged its loss as well."""
    losses = _losses(run, reference)
    if losses is None:
        return []
    own, other = losses
    theirs = [(float(other.step[spike.first]), float(other.step[spike.peak])) for spike in find_spikes(other.value)]
    found: list[SharedJump] = []
    for spike in sorted(find_spikes(own.value), key=lambda spike: -spike.height):
        first, peak = float(own.step[spike.first]), float(own.step[spike.peak])
        there = other.value[(other.step >= first) & (other.step <= peak)]
        if len(there) and len(found) < MAX_JUMPS:
            found.append(
                SharedJump(
                    step=first,
                    level=spike.level,
                    run=float(own.value[spike.peak]),
                    reference=float(there.max()),
                    both=any(start <= peak and top >= first for start, top in theirs),
                )
            )
    return found


def _have_same_losses(run: Run, reference: Run) -> bool:
    """Say whether two logs hold the same losses at all steps that they have in common, but for rounding."""
    losses = _losses(run, reference)
    if losses is None:
        return False
    steps, ours, theirs = at_common_steps(*losses)
    same = np.isclose(ours, theirs, rtol=PRINTED_ROUNDING_SHARE, atol=0.0)
    return len(steps) >= MIN_RECORDS_FOR_COURSE and bool(same.all())


def _is_of_same_order(run: Run, reference: Run) -> bool:
    """Say whether the settings of both runs name the same seed of their data."""
    seeds = next((name for name in ("data_seed", "seed") if run.config.get(name) is not None), "")
    return bool(seeds) and run.config[seeds] == reference.config.get(seeds)


def _is_compared(series: Series) -> bool:
    """Say whether a curve tells how training goes, rather than the time or the machine."""
    role = series.role
    if is_clock(series) or (role is None and series.name.startswith(_CLOCK_NAMES)):
        return False
    if role is None:
        return True
    return not (role.quantity.is_duration or role.quantity.is_memory or role.quantity in _NO_RESULTS)


def _better(run: Run, name: str) -> int:
    """Return in which direction a result is better, up (+1) or down (-1); 0 for other metrics."""
    role = run[name].role
    if role is None or not role.is_whole:
        return 0
    quantity = role.quantity
    if improves_upwards(run[name]):
        return +1
    lower = quantity.lower_is_better or quantity in {Quantity.PERPLEXITY, Quantity.BITS}
    return -1 if lower or (quantity is Quantity.LOSS and run.kind not in POLICIES) else 0


def settings_with_rate(run: Run) -> Mapping[str, Scalar]:
    """Return the settings of a run; where they do not tell the learning rate, its peak in the log does."""
    peak = peak_of(run)
    if run.setting("learning_rate") is not None or peak is None or not peak.is_seen:
        return run.config
    return {**run.config, "learning_rate": peak.value}


def _overlap(run: Run, reference: Run, metric: str) -> bool:
    if metric not in reference or not len(run[metric].finite) or not len(reference[metric].finite):
        return False
    first, last = _common_steps(run[metric].finite, reference[metric].finite)
    return first < last


def _common_steps(run: Series, reference: Series) -> tuple[float, float]:
    first = max(run.step[0], reference.step[0])
    return float(first), float(min(run.step[-1], reference.step[-1]))


def suspects(comparison: Comparison) -> dict[str, str]:
    """Return the causes that the differing settings suggest, each with the difference in words."""
    found: dict[str, str] = {}
    for setting in comparison.settings:
        for cause in faults_of(setting.setting, _direction(setting)):
            found.setdefault(cause, f"{setting.setting} is {setting.run}, in the reference run {setting.reference}")
    return found


def _direction(difference: SettingDifference) -> int:
    run, reference = difference.run, difference.reference
    if isinstance(run, float) and isinstance(reference, float):
        return int(np.sign(run - reference))
    return 0


def _differences(run: Mapping[str, Scalar], reference: Mapping[str, Scalar]) -> list[SettingDifference]:
    names = [name for name in {**run, **reference} if not any(word in name.lower() for word in _NO_CAUSE)]
    different = [name for name in names if not _is_same_value(run.get(name), reference.get(name))]
    known = {name for name, _ in FAULTS}
    differences = [
        SettingDifference(
            setting=name,
            run=_plain_scalar(run.get(name)),
            reference=_plain_scalar(reference.get(name)),
            factor=_factor(run.get(name), reference.get(name)),
        )
        for name in different
    ]
    differences.sort(
        key=lambda setting_difference: (
            setting_difference.setting not in known,
            -abs(math.log(setting_difference.factor or 1.0)),
            setting_difference.setting,
        )
    )
    return differences[:MAX_SETTINGS]


def _is_same_value(run: Scalar, reference: Scalar) -> bool:
    """Say whether two settings are the same: a number that a file keeps in single precision differs by its rounding."""
    if isinstance(run, float) and isinstance(reference, float):
        return math.isclose(run, reference, rel_tol=SINGLE_PRECISION) or run == reference
    return run == reference


def _factor(run: Scalar, reference: Scalar) -> float | None:
    """Return how many times as large a setting is as in the reference run; None where that says nothing."""
    numbers = [
        float(value) for value in (run, reference) if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    if len(numbers) < 2 or not all(0 < number < math.inf for number in numbers):
        return None
    return numbers[0] / numbers[1]


def _plain_scalar(value: Scalar) -> str | float | None:
    return str(value).lower() if isinstance(value, bool) else float(value) if isinstance(value, int) else value


def _parting(run: Series, reference: Series, better: int) -> Parting | None:
    """Return where two curves depart for good, or None if they do not within the steps that both have.

    `better` is the direction in which the metric is better, 0 for other metrics.
    """
    edges = np.linspace(*_common_steps(run, reference), COMPARED_STRETCHES + 1)
    (level, spread), (other, other_spread) = _levels(run, edges), _levels(reference, edges)
    distance = np.abs(level - other)
    apart = (distance > MIN_DEPARTURE_SIGMAS * np.hypot(spread, other_spread)) & (
        distance > MIN_RELATIVE_DIFFERENCE * np.abs(other)
    )
    known = np.flatnonzero(np.isfinite(distance))
    if not len(known):
        return None
    short = min(len(run), len(reference)) < MIN_RECORDS_FOR_COURSE
    starts = [
        at
        for at in range(len(known) - MIN_DEPARTED_STRETCHES + 1)
        if not short and apart[known[at : at + MIN_DEPARTED_STRETCHES]].all()
    ]
    last = known[-max(1, len(known) // 10) :]
    end, other_end = median(level[last]), median(other[last])
    ends = _ends(end, other_end, float(other[known[0]]), better)
    if not starts and ends in ("worse", "better") and apart[last].all():
        starts = [len(known) - true_at_end(apart[known])]  # of few records, or late
    if not starts:
        return None
    at, before = int(known[starts[0]]), int(known[max(0, starts[0] - 1)])
    step = _refined(run, reference, edges[before], edges[at + 1])
    sigmas = min(float(distance[at] / max(float(np.hypot(spread[at], other_spread[at])), 1e-12)), MOST_SIGMAS)
    return Parting(
        metric=run.name,
        step=step,
        run=float(level[at]),
        reference=float(other[at]),
        sigmas=sigmas,
        run_at_end=end,
        reference_at_end=other_end,
        ends=ends,
        worse=ends == "worse",
    )


def _ends(end: float, reference: float, start: float, better: int) -> Literal["worse", "better", "alike", ""]:
    """Compare how a result ends with the reference run, which began at `start`, by the last levels."""
    if not better:
        return ""
    lead = better * (reference - end)
    if abs(lead) <= MIN_WORSE_RESULT_SHARE * max(abs(reference), abs(start - reference)):
        return "alike"
    return "worse" if lead > 0 else "better"


def _levels(series: Series, edges: Floats) -> tuple[Floats, Floats]:
    """Return the median of each stretch and the standard deviation of that median; NaN where nothing was logged."""
    which = np.searchsorted(edges, series.step, side="right") - 1
    which[series.step == edges[-1]] = COMPARED_STRETCHES - 1
    level, spread = np.full(COMPARED_STRETCHES, np.nan), np.full(COMPARED_STRETCHES, np.nan)
    around = noise_on_slope(series.value) if len(series) < MIN_RECORDS_FOR_COURSE else noise(series.value)
    for at in range(COMPARED_STRETCHES):
        inside = series.value[which == at]
        if len(inside):
            level[at] = median(inside)
            spread[at] = max(around, noise(inside)) / np.sqrt(len(inside))
    return level, spread


def _refined(run: Series, reference: Series, first: float, last: float) -> float:
    """Return the first record of a stretch that lies beyond the noise of both curves, or where the stretch begins."""
    inside = run.between(first, last)
    other = np.interp(inside.step, reference.step, reference.value)
    beyond = np.abs(inside.value - other) > MIN_DEPARTURE_SIGMAS * np.hypot(noise(run.value), noise(reference.value))
    return float(inside.step[int(np.argmax(beyond))]) if beyond.any() else float(first)
