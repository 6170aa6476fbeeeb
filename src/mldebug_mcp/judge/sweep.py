"""What the runs of a sweep say about its settings.

It finds the settings that differ, the best level of each, and those that sick runs share.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np

from mldebug_mcp.core.text import counted, figure, percent
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.settings import Scalar, Settings
from mldebug_mcp.logs.settings.settings import effective_batch
from mldebug_mcp.models.runs import BestSetting, RunRow, SharedSetting, Sweep

# The settings in which the runs of a sweep differ, and the levels of each: its values, or ranges of very many.


MOST_VALUES = 12
"""Different values of a setting that are levels of their own; more numbers are cut into ranges, and more names, such as
paths, tell nothing. Chosen: a grid has fewer."""
SEARCH_RANGES = 5
"""Ranges, of as many runs each, that the numbers of a random search are cut into. Chosen."""
NOT_ASKED = ("seed", "path", "dir", "name", "run_id", "output", "date", "time", "trial")
"""Words in settings that differ in every run by design."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A run among many: its name as it stands on the disk, its line, and its settings by canonical name."""

    name: str
    row: RunRow
    settings: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class Level:
    """A value of a setting, or a range of numbers from `low` to `high`, as `text` shows it."""

    text: str
    low: float | None = None
    high: float | None = None
    value: Scalar = None

    def holds(self, value: Scalar) -> bool:
        """Say whether a value is of this level."""
        if self.low is None or self.high is None:
            return value == self.value
        return is_number(value) and self.low <= float(value) <= self.high  # type: ignore[arg-type]


def is_number(value: Scalar) -> bool:
    """Say whether a setting is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def levels_of(settings: Sequence[Mapping[str, Scalar]]) -> Iterator[tuple[str, list[Level]]]:
    """Yield each setting that was varied, with its levels in order."""
    for name in sorted({name for setting in settings for name in setting}):
        given = [setting[name] for setting in settings if setting.get(name) is not None]
        if len(set(given)) > 1 and not any(word in name.lower() for word in NOT_ASKED) and (found := _levels(given)):
            yield name, found


def _levels(given: Sequence[Scalar]) -> list[Level]:
    values = set(given)
    numbers = sorted(float(value) for value in given if is_number(value))  # type: ignore[arg-type]
    if len(values) <= MOST_VALUES:
        named = sorted((value for value in values if not is_number(value)), key=str)
        distinct = sorted(set(numbers))
        return [
            *(Level(figure(value), value, value) for value in distinct),
            *(Level(str(value).lower() if isinstance(value, bool) else str(value), value=value) for value in named),
        ]
    if len(numbers) < len(given):
        return []
    parts = np.array_split(np.array(numbers), SEARCH_RANGES)
    edges = sorted({float(part[0]) for part in parts})
    ends = [*edges[1:], float("inf")]
    inside = [[number for number in numbers if low <= number < high] for low, high in zip(edges, ends, strict=True)]
    return [Level(f"{figure(some[0])} to {figure(some[-1])}", some[0], some[-1]) for some in inside]


# What a sweep says of its settings: the best level of each, how sure that is, and whether it lies at the edge.
#
# A level is judged by the mean rank of its runs among all, so that one that diverged counts as the last and no more (W.
# J. Conover and R. L. Iman, Rank transformations as a bridge between parametric and nonparametric statistics, 1981).
# Whether the levels differ at all, a permutation test says, with Bonferroni's correction for all settings that were
# varied. How sure the best one is, is drawn: each mean from Student's distribution with the spread of runs within
# levels, which holds what seeds and the other settings do. How often chance alone brings so many of the best runs to
# one edge, the hypergeometric distribution tells.


Edge: TypeAlias = Literal["lowest", "highest", ""]
LEAST_RUNS = 5
"""Runs with a result from which a sweep is judged. Chosen: of fewer, any order is chance."""
MIN_SHARE_OF_LONGEST_RUN = 0.5
"""Share of the longest run's steps, or of its rows, that a run must have made to be compared. Chosen."""
MEAN_DRAWS = 4_000
"""Draws of all means of levels, from which the probability that each is best is counted."""
AS_GOOD = 0.05
"""Share of draws in which another level comes first from which it may be as good. Chosen: the usual level."""
MAX_BEST_RUNS_LISTED = 3
"""Best runs that the answer lists. Chosen: more are read in the table."""
MIN_LEADING_RUNS = 3
"""Best runs that are looked at for an edge; of many runs a tenth. Chosen: fewer lie at one edge by chance."""
LEAST_LEVELS = 3
"""Levels from which a setting has an edge: of two, each is one."""
SWEPT_LEVEL = 0.05
"""Chance below which levels differ, and below which best runs lie at an edge. Chosen: the usual level."""
SWEEP_F_DRAWS = 1_999
"""Draws of F with which the spread between levels is compared. Chosen: with the observed one, a round 2,000."""
SWEEP_PERMUTATIONS = 1_999
"""Random orders of the runs with which their ranks are compared. Chosen: with the observed one, a round 2,000."""
SWEPT_ROUNDING = 1e-6
"""Difference of two sums of ranks that rounding may make."""
QUOTES = {"edge": "tuning_playbook_boundary", "seeds": "spinningup_three_seeds"}
OFTEN_REPEATED = 2
"""Runs with equal settings that make a group from which the spread of seeds is taken."""


def sweep_of(answers: Sequence[Answered]) -> Sweep | None:
    """Return what a sweep says of its settings; None where there are too few runs with results to compare."""
    metric, measured = _measured(answers)
    varied = dict(levels_of([answer.settings for answer in answers]))
    compared = [answer for answer in _long_enough(measured) if _tells_any(answer, varied)]
    if len(compared) < LEAST_RUNS or not varied:
        return None
    higher = compared[0].row.better == "higher"
    loss = np.array([float(answered.row.last or 0.0) for answered in compared]) * (-1.0 if higher else 1.0)
    groups, within, between = _seeds(compared, loss, list(varied)) or (0, None, None)
    found = [_best(name, levels, compared, loss) for name, levels in varied.items()]
    tested = [best_setting for best_setting in found if best_setting is not None]
    corrected = (
        best_setting.model_copy(update={"p": min(1.0, best_setting.p * len(tested))}) for best_setting in tested
    )
    settings = [
        _with_edge(best_setting, varied[best_setting.setting], compared, loss)
        if best_setting.p <= SWEPT_LEVEL
        else best_setting
        for best_setting in corrected
    ]
    settings.sort(key=lambda setting: (not setting.edge, setting.p))
    quotes = [QUOTES["edge"]] if any(setting.edge for setting in settings) else []
    quotes += [QUOTES["seeds"]] if within is not None and between is not None and between < within else []
    return Sweep(
        metric=metric,
        better="higher" if higher else "lower",
        compared=len(compared),
        best_runs=[compared[at].row.name for at in np.argsort(loss, kind="stable")[:MAX_BEST_RUNS_LISTED]],
        settings=settings,
        seed_groups=groups,
        between_seeds=within,
        between_settings=between,
        citations=catalogue().cite(tuple(quotes)),
    )


def left_out_of_sweep(answers: Sequence[Answered]) -> list[str]:
    """Return how many runs of a sweep were not compared and why, a note for each reason; none where none is varied."""
    varied = dict(levels_of([answer.settings for answer in answers]))
    if not varied:
        return []
    read = [answer for answer in answers if answer.row.ending != "unread"]
    metric, measured = _measured(read)
    compared = _long_enough(measured)
    without, short = len(read) - len(measured), len(measured) - len(compared)
    bare = sum(not _tells_any(answer, varied) for answer in compared)
    notes = []
    if bare and len(compared) - bare < LEAST_RUNS:
        there = f"{len(compared) - bare} of {counted(len(compared), 'run')} tell one in which the runs differ"
        return [f"settings are not compared: {there}, and {LEAST_RUNS} are needed"]
    if bare:
        notes.append(f"the comparison of settings leaves out {counted(bare, 'run')} of unknown settings")
    if without and measured:
        notes.append(f"the comparison of settings leaves out {counted(without, 'run')} without a finite {metric}")
    if short:
        notes.append(
            f"the comparison of settings leaves out {counted(short, 'run')} with less than "
            f"{percent(MIN_SHARE_OF_LONGEST_RUN)} of the steps of the longest run, and of its rows"
        )
    return notes


def _tells_any(answer: Answered, varied: Collection[str]) -> bool:
    return any(answer.settings.get(name) is not None for name in varied)


def _measured(answers: Sequence[Answered]) -> tuple[str, list[Answered]]:
    """Return the result that most runs have, and the runs that have it; "" where none has one."""
    finite = [answer for answer in answers if answer.row.last is not None and math.isfinite(answer.row.last)]
    results = Counter(answer.row.metric for answer in finite if answer.row.metric)
    metric = results.most_common(1)[0][0] if results else ""
    return metric, [answer for answer in finite if metric and answer.row.metric == metric]


def _long_enough(answers: Sequence[Answered]) -> list[Answered]:
    """Return the runs that made enough steps of the longest run, or were fed enough of its rows.

    Runs of equal epochs make fewer steps where their batch is larger.
    """
    steps = [float(answer.row.step or 0) for answer in answers]
    batches = [effective_batch(Settings.of(answer.settings)) for answer in answers]
    counted_in_steps = all(answer.row.step_name == "step" for answer in answers)
    rows = [step * (batch or 0.0) for step, batch in zip(steps, batches, strict=True)]
    if not (counted_in_steps and all(batches)):
        rows = steps
    least_steps, least_rows = (MIN_SHARE_OF_LONGEST_RUN * max(lengths, default=0.0) for lengths in (steps, rows))
    lengths = zip(answers, steps, rows, strict=True)
    return [answer for answer, step, fed in lengths if step >= least_steps or fed >= least_rows]


def _seeds(answers: Sequence[Answered], loss: Floats, names: Sequence[str]) -> tuple[int, float, float] | None:
    """Return how many groups have equal settings, and the standard deviations within them and of the groups themselves.

    Source: one-way random effects. None without a group of several runs that differ.
    """
    groups: dict[tuple[object, ...], list[float]] = defaultdict(list)
    for answered, value in zip(answers, loss.tolist(), strict=True):
        if not answered.row.is_sick:
            groups[tuple(answered.settings.get(name) for name in names)].append(value)
    repeated = [np.array(some) for some in groups.values() if len(some) >= OFTEN_REPEATED]
    if len(repeated) < OFTEN_REPEATED:
        return None
    freedom = sum(len(some) - 1 for some in repeated)
    within = sum(float(((some - some.mean()) ** 2).sum()) for some in repeated) / freedom
    if not within:  # copies of one run, and no seeds
        return None
    usual = len(repeated) / sum(1 / len(some) for some in repeated)
    between = float(np.var([some.mean() for some in repeated], ddof=1)) - within / usual
    return len(repeated), math.sqrt(within), math.sqrt(max(0.0, between))


def _best(name: str, levels: Sequence[Level], answers: Sequence[Answered], loss: Floats) -> BestSetting | None:
    place = np.argsort(np.argsort(loss, kind="stable"), kind="stable").astype(float)
    of_level = {level.text: place[[level.holds(answer.settings.get(name)) for answer in answers]] for level in levels}
    tried = {text: some for text, some in of_level.items() if len(some)}
    if len(tried) < 2:
        return None
    best = min(tried, key=lambda text: float(tried[text].mean()))
    values = [loss[np.argsort(place)[some.astype(np.int64)]] for some in tried.values()]
    first = _coming_first(tried)
    return BestSetting(
        setting=name,
        tried=list(of_level),
        best=best,
        p=_by_rank_or_value(list(tried.values()), values),
        certainty=first.get(best),
        as_good=[text for text, share in first.items() if text != best and share >= AS_GOOD],
    )


def _by_rank_or_value(places: Sequence[Floats], values: Sequence[Floats]) -> float:
    """Return how often chance parts levels as far, by the values themselves where ranks of so few runs cannot tell.

    Source: one-way analysis of variance, whose F is drawn. The ranks of two runs at each of three levels are in the
    order of the levels in 1 of 15 deals.
    """
    sizes = [len(some) for some in places]
    alike = math.prod(math.factorial(sizes.count(size)) for size in set(sizes))
    deals = math.factorial(sum(sizes)) / math.prod(math.factorial(size) for size in sizes)
    freedom = (len(sizes) - 1, sum(sizes) - len(sizes))
    if alike / deals <= SWEPT_LEVEL or not freedom[1]:
        return _chance(places)
    whole = np.concatenate(values)
    within = sum(float(((some - some.mean()) ** 2).sum()) for some in values) / freedom[1]
    between = sum(len(some) * float((some.mean() - whole.mean()) ** 2) for some in values) / freedom[0]
    if not within:  # copies of one run, and no seeds
        return _chance(places)
    drawn = np.random.default_rng(0).f(*freedom, SWEEP_F_DRAWS)
    return float(1 + (drawn >= between / within).sum()) / (1 + SWEEP_F_DRAWS)


def _chance(of_level: Sequence[Floats]) -> float:
    """Return how often the mean ranks of levels differ as much where the runs are dealt out at random."""
    sizes = [len(some) for some in of_level]
    starts = np.cumsum([0, *sizes[:-1]])
    draw = np.random.default_rng(0)

    def apart(places: Floats) -> float:
        return float((np.add.reduceat(places, starts) ** 2 / sizes).sum())

    places = np.concatenate(of_level)
    observed = apart(places)
    as_far = sum(apart(draw.permutation(places)) >= observed - SWEPT_ROUNDING for _ in range(SWEEP_PERMUTATIONS))
    return (1 + as_far) / (1 + SWEEP_PERMUTATIONS)


def _coming_first(of_level: Mapping[str, Floats]) -> dict[str, float]:
    """Return how often each level comes first in draws of their means; nothing where no level has two runs."""
    some = list(of_level.values())
    freedom = sum(len(array) - 1 for array in some)
    if not freedom:
        return {}
    spread = math.sqrt(sum(float(((array - array.mean()) ** 2).sum()) for array in some) / freedom)
    draws = np.random.default_rng(0).standard_t(freedom, (MEAN_DRAWS, len(some))) * spread
    means = np.array([array.mean() for array in some]) + draws / np.sqrt([len(array) for array in some])
    shares = np.bincount(means.argmin(axis=1), minlength=len(some)) / MEAN_DRAWS
    return dict(zip(of_level, shares.tolist(), strict=True))


def _with_edge(best: BestSetting, levels: Sequence[Level], answers: Sequence[Answered], loss: Floats) -> BestSetting:
    """Say at which edge of what was tried the best runs lie, how many of them, and of how many."""
    if len(levels) < LEAST_LEVELS or any(level.low is None for level in levels):
        return best
    values = [answer.settings.get(best.setting) for answer in answers]
    numeric = [at for at, value in enumerate(values) if is_number(value)]
    top = min(max(MIN_LEADING_RUNS, len(numeric) // 10), len(numeric))
    leading = sorted(numeric, key=lambda at: loss[at])[:top]
    edges: tuple[tuple[Edge, Level], ...] = (("lowest", levels[0]), ("highest", levels[-1]))
    for edge, level in edges:
        there = {at for at in numeric if level.holds(values[at])}
        found = sum(at in there for at in leading)
        if 2 * _chance_of_as_many(found, len(there), top, len(numeric)) <= SWEPT_LEVEL and 2 * found > top:
            return best.model_copy(update={"edge": edge, "at_edge": found, "top": top})
    return best


def _chance_of_as_many(found: int, marked: int, drawn: int, total: int) -> float:
    """Return how often at least so many of those drawn are marked, by chance."""
    ways = sum(
        math.comb(marked, number) * math.comb(total - marked, drawn - number) for number in range(found, drawn + 1)
    )
    return ways / math.comb(total, drawn)


# What runs share in which the same cause leads: settings that go with it beyond chance.
#
# Each setting is tried at each of its values, numbers also as "at least" and "at most" each of them, by Fisher's exact
# test of the runs with the cause against the others. Holm's correction for all conditions tried bounds the chance that
# any of those shown is there by accident (S. Holm, A simple sequentially rejective multiple test procedure, 1979).


LEAST_SICK = 3
"""Runs with a cause from which it is asked what they share. Chosen: two runs cannot be distinguished from chance."""
SHARED_SETTINGS_LEVEL = 0.05
"""Corrected p below which a setting is shown. Chosen: the usual one."""
ANY = "any fault"
SHARED_SETTINGS_ROUNDING = 1e-7
"""What two equal logarithms of probabilities may differ by."""


@dataclass(frozen=True, slots=True)
class _Condition:
    setting: str
    text: str
    holds: Callable[[Scalar], bool]


def shared_settings(answers: Sequence[Answered]) -> list[SharedSetting]:
    """Return the settings that go with a cause, at most one condition for each setting, the most certain first."""
    judged = [answer for answer in answers if answer.row.cause]
    sick = Counter(cause for answered in judged for cause in _groups(answered.row))
    causes = [cause for cause, runs in sick.items() if runs >= LEAST_SICK and not (cause == ANY and len(sick) == 2)]
    conditions = list(_conditions([answered.settings for answered in judged]))
    tried = [_tried(cause, condition, judged) for cause in causes for condition in conditions]
    found: dict[tuple[str, str], SharedSetting] = {}
    passed = True
    for rank, shared_setting in enumerate(
        sorted(tried, key=lambda shared_setting: (shared_setting.p, -shared_setting.sick_with))
    ):
        corrected = shared_setting.p * (len(tried) - rank)
        passed = passed and corrected <= SHARED_SETTINGS_LEVEL
        if (
            passed
            and shared_setting.sick_with * shared_setting.others > shared_setting.others_with * shared_setting.sick
        ):
            found.setdefault(
                (shared_setting.cause, shared_setting.setting),
                shared_setting.model_copy(update={"p": min(1.0, corrected)}),
            )
    return list(found.values())


def _groups(row: RunRow) -> tuple[str, ...]:
    """Return the groups of sick runs that a run belongs to: what one fault breaks may look like several."""
    return (row.cause, ANY) if row.is_sick else ()


def _conditions(settings: Sequence[Mapping[str, Scalar]]) -> Iterator[_Condition]:
    for name, levels in levels_of(settings):
        for level in levels:
            yield _Condition(name, f"= {level.text}" if level.low == level.high else level.text, level.holds)
        bounded = [level for level in levels if level.low is not None]
        for level in bounded[1:-1]:
            low, high = level.low or 0.0, level.high or 0.0
            yield _Condition(name, f">= {figure(low)}", Level("", low, math.inf).holds)
            yield _Condition(name, f"<= {figure(high)}", Level("", -math.inf, high).holds)


def _tried(cause: str, condition: _Condition, judged: Sequence[Answered]) -> SharedSetting:
    with_setting = [answered for answered in judged if answered.settings.get(condition.setting) is not None]
    sick = [answered for answered in with_setting if cause in _groups(answered.row)]
    having = [answered for answered in with_setting if condition.holds(answered.settings[condition.setting])]
    sick_with = sum(cause in _groups(answered.row) for answered in having)
    return SharedSetting(
        cause=cause,
        setting=condition.setting,
        condition=condition.text,
        sick_with=sick_with,
        sick=len(sick),
        others_with=len(having) - sick_with,
        others=len(with_setting) - len(sick),
        p=fisher(sick_with, len(sick), len(having), len(with_setting)),
    )


def fisher(both: int, marked: int, drawn: int, total: int) -> float:
    """Return the two-sided p of Fisher's exact test: of a total some are marked, some are drawn, and some are both."""
    logs = _log_factorials(total)
    array = np.arange(max(0, drawn - (total - marked)), min(marked, drawn) + 1)
    ways = (
        (logs[marked] - logs[array] - logs[marked - array])
        + (logs[total - marked] - logs[drawn - array] - logs[total - marked - drawn + array])
        - (logs[total] - logs[drawn] - logs[total - drawn])
    )
    as_rare = ways <= ways[both - array[0]] + SHARED_SETTINGS_ROUNDING
    return min(1.0, float(np.exp(ways[as_rare]).sum()))


@lru_cache(maxsize=8)
def _log_factorials(most: int) -> Floats:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most + 1)))])
