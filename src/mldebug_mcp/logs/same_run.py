"""Which logs of one folder are of the same run: only those that something ties together.

Ties are the ranks of one job, the same results number by number in two forms, names that differ in the phase alone
(`train.csv` and `valid.csv`, `bert.log` and `bert.csv`), one metric per file, and a run folder in which each file is
named for what it holds (`metrics.jsonl` and `stdout.log`). Every other log is a run of its own: two runs of one script
look alike, and a fault of one must not be built on a metric of the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath

import numpy as np

from mldebug_mcp.logs.continued import goes_further
from mldebug_mcp.logs.names import canonical
from mldebug_mcp.logs.roles import Quantity
from mldebug_mcp.logs.roles.lexicon import PHASES
from mldebug_mcp.logs.rotation import log_name
from mldebug_mcp.logs.run import Run, Series

RESULTS = ("loss", "eval_loss", "reward")
"""Metrics that no two runs share number by number."""
MIN_COMMON_VALUES = 3
"""Different values that two logs must share to be compared. Chosen."""
ROUNDING = 1e-3
"""Relative difference that rounding makes. Chosen."""
MIN_SHARED = 0.5
"""Share of values from which on two logs hold the same. Chosen."""
MAX_BY_CHANCE = 0.1
"""Share of its range that the values of a log may cover: any number lies near one of a dense curve. Chosen."""
NEAR = 0.15
"""Share of its range by which a result may lie apart in logs of two formats, one of which may have averaged. Chosen."""
LONG_NUMBER = 5
"""Digits from which on a number in a name is a time, a process or a job, and no count of runs. Chosen."""

_CLOCKS = (Quantity.ELAPSED, Quantity.TIMESTAMP)
_RANK = re.compile(
    r"(?:rank|worker|gpu|node|proc(?:ess)?|task|local|host|device|stdout|stderr)s?[-_.]?\d+", re.IGNORECASE
)
_WORD = re.compile(r"[^\W\d_]+|\d+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_PHASES = PHASES | dict.fromkeys(("learn", "learning"), "train")
"""CatBoost writes `learn_error.tsv` and `test_error.tsv`."""
_HOLDS = frozenset({
    "log", "logs", "metric", "metrics", "progress", "history", "result", "results", "loss", "losses", "curve",
    "curves", "scalar", "scalars", "summary", "stats", "monitor", "evaluation", "evaluations", "train", "training",
    "trainer", "state", "eval", "val", "valid", "validation", "test", "out", "output", "stdout", "err", "stderr",
    "console", "terminal", "screen", "nohup", "slurm", "job", "run", "events", "tfevents", "wandb", "learner",
    "driver", "debug", "info", "error", "errors", "json", "csv", "txt", "data", "epoch", "step", "steps",
    "all", "recorder",
})  # fmt: skip
"""Words by which a file of a run folder is named for what it holds. None of them names a run."""
_STREAMS = frozenset({"err", "out", "stdout", "stderr", "nohup", "slurm", "console", "terminal", "screen", "job"})
"""Words that name the output of a process."""

Named = tuple[str, Run]


def grouped(runs: list[Named]) -> list[list[Named]]:
    """Put together the logs that are of one run, each group under its fullest log."""
    groups: list[list[Named]] = []
    with_series = [item for item in runs if item[1].series]
    for item in sorted(with_series, key=lambda item: -item[1].records):
        own = next((group for group in groups if _belongs(item, group)), None)
        if own is None:
            groups.append([item])
        else:
            own.append(item)
    for item in runs:
        if not item[1].series:
            _add_error_lines(groups, item)
    return groups


def are_named_as_one(name: str, other: str) -> bool:
    """Say whether the names of two logs tie them to one run, whatever is in them."""
    words, others = _words(name), _words(other)
    is_phase = _without_phase(words) == _without_phase(others) and _phase(words) != _phase(others)
    if is_phase or words == others or _without_rank(name) == _without_rank(other):
        return True
    if _is_stream(words) and _stem_words(words) == _stem_words(others) != []:
        return True  # the output of a process, named for its run
    return _is_named_for_content(words) and _is_named_for_content(others) and not _are_numbered(words, others)


def holds_evaluation(name: str, names: Iterable[str]) -> bool:
    """Say whether a log is named as the evaluation of another one: "eval" beside "train", "log_val" beside "log"."""
    words = _words(name)
    rest = _without_phase(words)
    return _phase(words) == "eval" and any(
        _phase(others) != "eval" and _without_phase(others) == rest for others in map(_words, names)
    )


def _belongs(item: Named, group: list[Named]) -> bool:
    relations = [_is_same(one, item) for one in group]
    return True in relations and False not in relations


def _is_same(one: Named, other: Named) -> bool | None:
    """Say whether two logs are of one run; None where nothing ties them and nothing keeps them apart."""
    (name, run), (other_name, another) = one, other
    if _without_rank(name) == _without_rank(other_name):
        return True
    is_tied = are_named_as_one(name, other_name) or _hold_one_metric_each(one, other)
    same = [_hold_the_same(run, another, metric) for metric in RESULTS if metric in run and metric in another]
    if True in same or goes_further(run, another) or goes_further(another, run):
        # Logs of one form with the same metrics are copies, or what one seed does twice.
        return is_tied or run.formats != another.formats or run.series.keys() != another.series.keys()
    if False in same:
        return False
    return True if is_tied else None


def _hold_one_metric_each(one: Named, other: Named) -> bool:
    (name, run), (other_name, another) = one, other
    here, there = _only_metric(run), _only_metric(another)
    if here is None or there is None or here.name == there.name or run.step_name != another.step_name:
        return False
    return _without_metric(name, here) == _without_metric(other_name, there)


def _only_metric(run: Run) -> Series | None:
    """Return the one metric of a log, besides the time at which it was logged; None if it holds several."""
    metrics = [one for one in run.series.values() if one.role is None or one.role.quantity not in _CLOCKS]
    return metrics[0] if len(metrics) == 1 else None


def _without_metric(name: str, metric: Series) -> list[str]:
    """Return the words of the name of a log that tell neither its metric nor a phase."""
    words = _without_phase(_words(name))
    ends = range(len(words))
    named = next((at for at in ends if canonical("_".join(words[at:])) == metric.name.removeprefix("eval_")), None)
    if named is not None:
        return words[:named]
    own = {*_WORD.findall(metric.name.lower()), *_WORD.findall(metric.logged_as.lower())}
    return [word for word in words if word not in own]


def _add_error_lines(groups: list[list[Named]], item: Named) -> None:
    """Add a log that holds nothing but error lines to the run that its name ties it to, or that is the only one."""
    named = [group for group in groups if any(are_named_as_one(name, item[0]) for name, _ in group)]
    own = named or (groups if len(groups) == 1 else [])
    if len(own) == 1:
        own[0].append(item)
    else:
        groups.append([item])


def _words(name: str) -> list[str]:
    """Return the words and numbers of the name of a log, without its ending, in lower case."""
    stem = PurePath(log_name(PurePath(name).name)).stem
    return [word.lower() for word in _WORD.findall(_HUMP.sub(" ", stem))]


def _phase(words: list[str]) -> str:
    phases = {_PHASES[word] for word in words if word in _PHASES}
    return phases.pop() if len(phases) == 1 else ""


def _without_phase(words: list[str]) -> list[str]:
    return [word for word in words if word not in _PHASES]


def _is_named_for_content(words: list[str]) -> bool:
    return all(word in _HOLDS or word.isdigit() for word in words)


def _are_numbered(words: list[str], others: list[str]) -> bool:
    """Say whether short numbers count runs: `log_1.txt` and `log_2.txt`."""
    counts, other_counts = (
        [word for word in each if word.isdigit() and len(word) < LONG_NUMBER] for each in (words, others)
    )
    return bool(counts) and bool(other_counts) and counts != other_counts


def _is_stream(words: list[str]) -> bool:
    return any(word in _STREAMS for word in words)


def _stem_words(words: list[str]) -> list[str]:
    return [word for word in words if word not in _HOLDS]


def _without_rank(name: str) -> str:
    """Return a name without what tells the ranks of a run apart; the whole name where nothing does."""
    bare = _RANK.sub("", name)
    return bare if bare != name else f"{name}/"


def _hold_the_same(one: Run, other: Run, metric: str) -> bool | None:
    """Say whether two logs hold the same values of a metric, None where that cannot be seen."""
    here, there = one[metric], other[metric]
    if min(len(here), len(there)) < MIN_COMMON_VALUES:
        return None
    steps, at, at_other = np.intersect1d(here.step, there.step, return_indices=True)
    if one.step_name != other.step_name or len(steps) < MIN_COMMON_VALUES:
        return True if _shares_values(here, there) else None
    alike = np.isclose(here.value[at], there.value[at_other], rtol=ROUNDING, atol=0, equal_nan=True)
    if float(alike.mean()) >= MIN_SHARED:
        return True if len(np.unique(here.value[at][alike])) >= MIN_COMMON_VALUES else None
    if one.formats == other.formats:
        return False
    apart = np.abs(here.value[at] - there.value[at_other])
    spread = float(np.ptp(here.finite.value)) if len(here.finite) else 0.0
    return None if bool(np.nanmedian(np.append(apart, np.inf)) <= NEAR * spread) else False


def _shares_values(one: Series, other: Series) -> bool:
    """Say whether most values of the shorter series stand in the longer one too, and not by chance."""
    short, long = sorted((np.unique(one.finite.value), np.unique(other.finite.value)), key=len)
    if len(short) < MIN_COMMON_VALUES:
        return False
    covered = 2 * ROUNDING * float(np.abs(long).sum())
    if covered > MAX_BY_CHANCE * float(np.ptp(long)):
        return False
    place = np.searchsorted(long, short).clip(1, len(long) - 1)
    nearest = np.minimum(np.abs(long[place] - short), np.abs(long[place - 1] - short))
    return float(np.mean(nearest <= ROUNDING * np.abs(short))) >= MIN_SHARED
