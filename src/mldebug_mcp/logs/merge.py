"""Several logs of one run → one Run: each metric once, from the log that has it best.

Two logs are of one run if they hold the same losses at the same steps, or if one goes on where the other ends. Logs
without a result in common, such as one of training and one of evaluation, belong together.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import PurePath

import numpy as np

from mldebug_mcp.core.arrays import distinct, median, median_gap, median_of_numbers
from mldebug_mcp.core.lazy import regex, replace
from mldebug_mcp.core.text import figure, shorten
from mldebug_mcp.logs.log_file import log_name
from mldebug_mcp.logs.names.lexicon import PHASES
from mldebug_mcp.logs.names.metrics import HUMP, canonical, is_evaluation
from mldebug_mcp.logs.names.quantities import CLOCKS
from mldebug_mcp.logs.run import MAX_RECORDS_AFTER_FATAL, Message, Run, Segment, Series
from mldebug_mcp.logs.settings import Settings

# A training run that was resumed writes on elsewhere: logs that go on where another ends are read as one run.
#
# Lightning makes a new `version_N` at each start, W&B a new offline folder, a Trainer's event files a new `runs/DATE`;
# and the newest checkpoint of a run that crashed knows nothing of what came after it.

MAX_GAP_INTERVALS = 3.0
"""Intervals between records that may lie between the end of a log and the beginning of the one that goes on."""
MIN_LATE_INTERVALS = 5.0
"""Intervals after the beginning of the first log before which another one that begins may be a run of its own."""

Named = tuple[str, Run]


def joined(runs: Sequence[Named]) -> list[Named]:
    """Join runs that go on where another one ends; each stays a segment, under the name of the last.

    Two runs that go on from the same one are branches and stay apart.

    Args:
        runs: What was read, by the path of its folder; only runs in one folder are joined.
    """
    found = list(runs)
    while (pair := _next_pair(found)) is not None:
        first, then = pair
        found[found.index(then)] = (then[0], _concatenated(first, then))
        found.remove(first)
    return found


def goes_further(run: Run, other: Run) -> bool:
    """Say whether another log tells the losses of a run number by number, and more of them."""
    if "loss" not in run or "loss" not in other:
        return False
    here, there = run["loss"].value, other["loss"].value
    if not MIN_COMMON_VALUES <= len(here) < len(there):
        return False
    return bool(np.all(np.isclose(there[: len(here)], here, rtol=SAME_VALUE_TOLERANCE, atol=0, equal_nan=True)))


def _next_pair(runs: Sequence[Named]) -> tuple[Named, Named] | None:
    late = [then for then in runs if _begins_late(then[1])]
    for then in late:
        before = [first for first in runs if _goes_on(first, then)]
        if len(before) == 1 and sum(_goes_on(before[0], other) for other in late) == 1:
            return before[0], then
    return None


def _begins_late(run: Run) -> bool:
    """Say whether a log begins so late that it may go on with another; most do not, and need no comparison."""
    step = next((run[name].step for name in SHARED_RESULTS if name in run), np.empty(0))
    return len(step) > 1 and float(step[0]) >= MIN_LATE_INTERVALS * median_gap(step)


def _goes_on(first: Named, then: Named) -> bool:
    (here, before), (there, after) = first, then
    if here == there or _folder(here) != _folder(there) or before.formats != after.formats:
        return False
    if before.step_name != after.step_name or before.step_name == "record":
        return False
    names = before.series.keys() | after.series.keys()
    if len(before.series.keys() & after.series.keys()) < MIN_SHARED * len(names):
        return False
    shared = [(before[name].step, after[name].step) for name in SHARED_RESULTS if name in before and name in after]
    if not shared or min(map(len, shared[0])) < 2:
        return False
    begun, again = shared[0]
    interval = median(np.concatenate([np.diff(begun), np.diff(again)]))
    late, end = begun[0] + MIN_LATE_INTERVALS * interval, begun[-1] + MAX_GAP_INTERVALS * interval
    return interval > 0 and bool(late <= again[0] <= end) and bool(again[-1] > begun[-1])


def _folder(name: str) -> str:
    return name.rpartition("/")[0]


def _concatenated(first: Named, then: Named) -> Run:
    (here, before), (there, after) = first, then
    series = dict(after.series)
    begins = next(float(after[name].step[0]) for name in SHARED_RESULTS if name in before and name in after)
    for name, curve in before.series.items():
        kept = curve.where(curve.step < begins)
        more = series.get(name, Series(name, np.empty(0), np.empty(0)))
        series[name] = Series(name, np.append(kept.step, more.step), np.append(kept.value, more.value))
    settings = Settings.merged(after.settings, before.settings)
    note = (
        f"{shorten(there, 80)} goes on at {after.step_name} {figure(begins)}, where {shorten(here, 80)} ends "
        f"at {figure(before.last_step)}: they are read as one run that was resumed"
    )
    return replace(
        after,
        series=series,
        settings=settings,
        segments=(*before.segments, *_segments_from(begins, after.segments)),
        records=before.records + after.records,
        messages=(*before.messages, *after.messages),
        form_is_guessed=before.form_is_guessed or after.form_is_guessed,
        notes=tuple(dict.fromkeys((*before.notes, *after.notes, note))),
    )


def _segments_from(begins: float, segments: Sequence[Segment]) -> list[Segment]:
    """Return the stretches without what stands before the first result: Lightning logs `hp_metric` at step 0 again."""
    first, *others = segments
    series = {name: curve.between(begins, np.inf) for name, curve in first.series.items()}
    kept = {name: curve for name, curve in series.items() if len(curve)}
    return [replace(first, first_step=max(begins, first.first_step), series=kept), *others]


# Several logs of one run → one Run: each metric once, from the log that tells it best.

LEAST_BOTH = 3
"""Records that tell step and epoch, by which epochs are placed."""


def merged(runs: Sequence[tuple[str, Run]]) -> Run:
    """Merge the logs of one run by step.

    The fullest log leads. From the others come the metrics that it lacks: where both count the same steps or the
    leading log tells the epoch of its steps, the error lines and the configuration. A metric that several logs hold is
    taken from one of them: nothing is counted twice.

    Args:
        runs: What was read, with the name of each file; at least one.
    """
    ordered = sorted(runs, key=lambda item: _weight(item[1]), reverse=True)
    # A Trainer's state ends at its last checkpoint.
    further = next((item for item in ordered[1:] if goes_further(ordered[0][1], item[1])), None)
    if further is not None:
        ordered = [further, *(item for item in ordered if item is not further)]
    name, lead = ordered[0]
    notes = list(lead.notes)
    series, settings, messages, formats = dict(lead.series), lead.settings, list(lead.messages), list(lead.formats)
    segments, ending, is_guessed = list(lead.segments), lead.ending, lead.form_is_guessed
    taken, skipped = [name], []
    for other_name, other in ordered[1:]:
        messages += _placed(other_name, other, lead)
        ending = replace(other.ending, file=other.ending.file or other_name) if ending.how == "open" else ending
        settings = Settings.merged(settings, other.settings)
        placed = {} if _counts_otherwise(other, lead) else _on_the_axis_of(lead, other)
        added = {
            metric: curve
            for metric, curve in placed.items()
            if metric not in series and not _repeats(curve, series, lead)
        }
        notes += _lost_in(other_name, other, lead)
        if not added:
            skipped.append(other_name)
            continue
        series |= added
        segments = [segment.with_series(added, whole=len(segments) == 1) for segment in segments]
        formats += other.formats
        taken.append(other_name)
        is_guessed = is_guessed or other.form_is_guessed
        notes += [note for note in other.notes if note not in notes]
    if len(taken) > 1:
        notes.append(f"merged by {lead.step_name}: {', '.join(taken)}")
    elif len(ordered) > 1:
        notes.append(f"read {name}")
    if skipped:
        notes.append(f"not merged, as they repeat it or count otherwise: {', '.join(skipped[:6])}; name one to read it")
    return replace(
        lead,
        series=series,
        settings=settings,
        segments=tuple(segments),
        ending=ending,
        formats=tuple(dict.fromkeys(formats)),
        messages=tuple(messages),
        incidents=tuple(incident for _, run in ordered for incident in run.incidents),
        form_is_guessed=is_guessed,
        notes=tuple(dict.fromkeys(notes)),
    )


def _repeats(curve: Series, series: Mapping[str, Series], lead: Run) -> bool:
    """Say whether a metric is there already, by a name without its place: `ray/tune/loss` next to `loss`."""
    logged = curve.logged_as or curve.name
    alike = (name for name in series if is_evaluation(name) == is_evaluation(logged))
    names = {lead.step_name, *(series[name].logged_as or name for name in alike)}
    return "/" in logged and any(logged.endswith(f"/{name}") for name in names)


def _counts_otherwise(other: Run, lead: Run) -> bool:
    """Say whether another log holds a result of the run at other steps, as Ray Tune's event files do."""
    for metric in SHARED_RESULTS:
        if metric in lead and metric in other and len(other[metric].finite) >= MIN_COMMON_VALUES:
            here, there = lead[metric].finite, other[metric].finite
            if len(here) == len(there) and bool(
                np.allclose(here.value, there.value, rtol=SAME_VALUE_TOLERANCE, atol=0)
            ):
                return not np.array_equal(here.step, there.step) and other.step_name == lead.step_name
    return False


def _lost_in(name: str, other: Run, lead: Run) -> list[str]:
    """Say which results that are not finite another log of the run left out, as Ray Tune's event files do."""
    notes = []
    for metric in SHARED_RESULTS:
        if metric not in lead or metric not in other:
            continue
        lost = len(lead[metric]) - len(other[metric])
        if lost > 0 and lost == len(lead[metric]) - len(lead[metric].finite):
            notes.append(f"{name} leaves out {lost} value(s) of {metric} that are not finite")
    return notes


def _placed(name: str, other: Run, lead: Run) -> list[Message]:
    """Return the error lines of a log as they stand to the records of another: those that ended it are at the end."""
    before = max(0, lead.records - MAX_RECORDS_AFTER_FATAL - 1)
    return [
        replace(
            message,
            records=lead.records if message in other.fatal else min(message.records, before),
            file=message.file or name,
            records_there=message.records_there if message.file else message.records,
        )
        for message in other.messages
    ]


def _on_the_axis_of(lead: Run, other: Run) -> Mapping[str, Series]:
    """Return the metrics of a log by the steps of another; empty where the two have no axis in common.

    A log that counts epochs is placed by the records of the other that tell both: an evaluation stands where its epoch
    ended. One that counts nothing is placed by a result that both hold, value for value.
    """
    if other.step_name == "record" != lead.step_name:
        return _on_the_records_of(lead, other)
    if other.step_name == lead.step_name:
        return other.series if other.step_name != "record" and other.first_step <= lead.last_step else {}
    if other.step_name != "epoch" or "epoch" not in lead or len(lead["epoch"]) < LEAST_BOTH:
        return {}
    step, epoch = lead["epoch"].step, lead["epoch"].value
    if bool(np.any(epoch[1:] < epoch[:-1])):
        return {}
    # Where one counts its epochs from 0 and the other from 1, the last ones tell.
    counted_on = other.first_step == 1 and epoch[0] == 0 and other.last_step == epoch[-1] + 1
    placed = {}
    for name, series in other.series.items():
        at = np.searchsorted(epoch, series.step - counted_on, side="right") - 1
        if bool(np.all(at >= 0)):
            placed[name] = Series(name, step[at], series.value)
    return placed


def _on_the_records_of(lead: Run, other: Run) -> Mapping[str, Series]:
    """Return the metrics of a log without counters by the steps of another, with a result in common in each record."""
    for metric in SHARED_RESULTS:
        if metric not in lead or metric not in other or len(lead[metric]) != len(other[metric]):
            continue
        here, there = lead[metric], other[metric]
        alike = np.isclose(here.value, there.value, rtol=SAME_VALUE_TOLERANCE, atol=0, equal_nan=True)
        if len(distinct(here.finite.value)) >= MIN_COMMON_VALUES and bool(alike.all()):
            return {
                name: Series(name, here.step[np.isin(there.step, series.step)], series.value)
                for name, series in other.series.items()
                if bool(np.isin(series.step, there.step).all())
            }
    return {}


def of_evaluation(run: Run) -> Run:
    """Return a log of evaluations alone with its metrics named as such: `loss` is `eval_loss`.

    What was named as that of another set, such as `test_loss`, then keeps its own name.
    """

    def renamed(series: Mapping[str, Series]) -> dict[str, Series]:
        bare = {name: canonical(f"eval_{name}") for name in series if not name.startswith("eval_")}
        taken = set(bare.values())
        names = {
            name: bare.get(name) or (curve.logged_as or name if name in taken else name)
            for name, curve in series.items()
        }
        return {names[name]: replace(curve, name=names[name]) for name, curve in series.items()}

    segments = tuple(replace(segment, series=renamed(segment.series)) for segment in run.segments)
    return replace(run, series=renamed(run.series), segments=segments)


def _weight(run: Run) -> tuple[bool, int, int, bool, int, bool]:
    """A Trainer's own history leads; else the log with the most points of the loss, of these the most that are NaN.

    A log of as many points without them left them out or holds another curve. Then the most records lead, and of logs
    of as many not an event file, which holds single precision.
    """
    results = [run.series[name] for name in SHARED_RESULTS if name in run.series]
    points = max(map(len, results), default=0)
    lost = max((int(np.isnan(series.value).sum()) for series in results), default=0)
    is_exact = "tensorboard" not in run.formats
    return ("hf_trainer_state" in run.formats, points, lost, run.step_name == "step", run.records, is_exact)


# Which logs of one folder are of the same run: only those that something ties together.
#
# Ties are the ranks of one job, the same results number by number in two forms, names that differ in the phase alone
# (`train.csv` and `valid.csv`, `bert.log` and `bert.csv`), one metric per file, and a run folder in which each file is
# named for what it holds (`metrics.jsonl` and `stdout.log`). Every other log is a run of its own: two runs of one
# script look alike, and a fault of one must not be built on a metric of the other.

SHARED_RESULTS = ("loss", "reward", "eval_loss")
"""Metrics that no two runs share number by number."""
MIN_COMMON_VALUES = 3
"""Different values that two logs must share to be compared. Chosen."""
SAME_VALUE_TOLERANCE = 1e-3
"""Relative difference that rounding makes. Chosen."""
MIN_SHARED = 0.5
"""Share of values from which on two logs hold the same, and of metrics that one has which goes on elsewhere. Chosen."""
MAX_BY_CHANCE = 0.1
"""Share of its range that the values of a log may cover: any number lies near one of a dense curve. Chosen."""
MAX_SHARE_OF_RANGE = 0.15
"""Share of its range by which a result may lie apart in logs of two formats, one of them maybe averaged. Chosen."""
LONG_NUMBER = 5
"""Digits from which on a number in a name is a time, a process or a job, and no count of runs. Chosen."""

_RANK = regex(r"(?:rank|worker|gpu|node|proc(?:ess)?|task|local|host|device|stdout|stderr)s?[-_.]?\d+", re.IGNORECASE)
_WORD_OR_NUMBER = regex(r"[^\W\d_]+|\d+")
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
_EVALUATOR = regex(
    r"(?:information_retrieval|similarity|triplet|binary_classification|reranking|translation|mse)_eval(?:uation)?",
    needs="_eval",
)
"""How Sentence Transformers names the tables of its evaluators."""
_STREAMS = frozenset({"err", "out", "stdout", "stderr", "nohup", "slurm", "console", "terminal", "screen", "job"})
"""Words that name the output of a process."""


def grouped(runs: list[Named], consoles: Collection[str] = ()) -> list[list[Named]]:
    """Put together the logs that are of one run, each group under its fullest log.

    Args:
        runs: The logs by name.
        consoles: Names of those that a framework's layout ties to the first group, whatever is in them.
    """
    groups: list[list[Named]] = []
    with_series = [item for item in runs if item[1].series]
    for item in sorted(with_series, key=lambda item: (item[0] in consoles, -item[1].records)):
        if item[0] in consoles and groups:
            groups[0].append(item)
            continue
        own = next((group for group in groups if _belongs(item, group)), None)
        if own is None:
            groups.append([item])
        else:
            own.append(item)
    for item in runs:
        if not item[1].series:
            _add_error_lines(groups, item)
    return groups


def are_named_for_same_run(name: str, other: str) -> bool:
    """Say whether the names of two logs tie them to one run, whatever is in them."""
    words, others = _words(name), _words(other)
    is_phase = _without_phase(words) == _without_phase(others) and _phase(words) != _phase(others)
    if is_phase or words == others or _without_rank(name) == _without_rank(other):
        return True
    if not _STREAMS.isdisjoint(words) and _stem_words(words) == _stem_words(others) != []:
        return True  # the output of a process, named for its run
    return _is_named_for_content(words) and _is_named_for_content(others) and not _are_numbered(words, others)


def holds_evaluation(name: str, names: Iterable[str]) -> bool:
    """Say whether a log is named as the evaluation of another one: "eval" next to "train", "log_val" next to "log"."""
    words = _words(name)
    rest = _without_phase(words)
    if _EVALUATOR.search(name):
        return True
    return _phase(words) == "eval" and any(
        _phase(others) != "eval" and _without_phase(others) == rest for others in map(_words, names)
    )


def _belongs(item: Named, group: list[Named]) -> bool:
    relations = [_is_same_run(log, item) for log in group]
    return True in relations and False not in relations


def _is_same_run(log: Named, other: Named) -> bool | None:
    """Say whether two logs are of one run; None where nothing ties them and nothing keeps them apart."""
    (name, run), (other_name, another) = log, other
    if _without_rank(name) == _without_rank(other_name):
        return True
    is_tied = are_named_for_same_run(name, other_name) or _hold_single_metrics(log, other)
    same = [_hold_the_same(run, another, metric) for metric in SHARED_RESULTS if metric in run and metric in another]
    if True in same or goes_further(run, another) or goes_further(another, run):
        # Logs of one form with the same metrics are copies, or what one seed does twice.
        return is_tied or run.formats != another.formats or run.series.keys() != another.series.keys()
    if False in same:
        return False
    return True if is_tied else None


def _hold_single_metrics(log: Named, other: Named) -> bool:
    (name, run), (other_name, another) = log, other
    here, there = _only_metric(run), _only_metric(another)
    if here is None or there is None or here.name == there.name or run.step_name != another.step_name:
        return False
    return _without_metric(name, here) == _without_metric(other_name, there)


def _only_metric(run: Run) -> Series | None:
    """Return the one metric of a log, besides the time at which it was logged; None if it holds several."""
    metrics = [series for series in run.series.values() if series.role is None or series.role.quantity not in CLOCKS]
    return metrics[0] if len(metrics) == 1 else None


def _without_metric(name: str, metric: Series) -> list[str]:
    """Return the words of the name of a log that tell neither its metric nor a phase."""
    words = _without_phase(_words(name))
    ends = range(len(words))
    named = next((at for at in ends if canonical("_".join(words[at:])) == metric.name.removeprefix("eval_")), None)
    if named is not None:
        return words[:named]
    own = {*_WORD_OR_NUMBER.findall(metric.name.lower()), *_WORD_OR_NUMBER.findall(metric.logged_as.lower())}
    return [word for word in words if word not in own]


def _add_error_lines(groups: list[list[Named]], item: Named) -> None:
    """Add a log that holds nothing but error lines to the run that its name ties it to, or that is the only one."""
    named = [group for group in groups if any(are_named_for_same_run(name, item[0]) for name, _ in group)]
    own = named or (groups if len(groups) == 1 else [])
    if len(own) == 1:
        own[0].append(item)
    else:
        groups.append([item])


def _words(name: str) -> list[str]:
    """Return the words and numbers of the name of a log, without its ending, in lower case."""
    stem = _EVALUATOR.sub("eval", PurePath(log_name(PurePath(name).name)).stem)
    return [word.lower() for word in _WORD_OR_NUMBER.findall(HUMP.sub(" ", stem))]


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


def _stem_words(words: list[str]) -> list[str]:
    return [word for word in words if word not in _HOLDS]


def _without_rank(name: str) -> str:
    """Return a name without what tells the ranks of a run apart; the whole name where nothing does."""
    bare = _RANK.sub("", name)
    return bare if bare != name else f"{name}/"


def _hold_the_same(run: Run, other: Run, metric: str) -> bool | None:
    """Say whether two logs hold the same values of a metric, None where that cannot be seen."""
    here, there = run[metric], other[metric]
    if min(len(here), len(there)) < MIN_COMMON_VALUES:
        return None
    steps, at, at_other = np.intersect1d(here.step, there.step, return_indices=True)
    if run.step_name != other.step_name or len(steps) < MIN_COMMON_VALUES:
        return True if _shares_values(here, there) else None
    alike = np.isclose(here.value[at], there.value[at_other], rtol=SAME_VALUE_TOLERANCE, atol=0, equal_nan=True)
    if float(alike.mean()) >= MIN_SHARED:
        return True if len(distinct(here.value[at][alike])) >= MIN_COMMON_VALUES else None
    if run.formats == other.formats:
        return False
    apart = np.abs(here.value[at] - there.value[at_other])
    spread = float(np.ptp(here.finite.value)) if len(here.finite) else 0.0
    return None if median_of_numbers(np.append(apart, np.inf)) <= MAX_SHARE_OF_RANGE * spread else False


def _shares_values(curve: Series, other: Series) -> bool:
    """Say whether most values of the shorter series stand in the longer one too, and not by chance."""
    short, long = sorted((distinct(curve.finite.value), distinct(other.finite.value)), key=len)
    if len(short) < MIN_COMMON_VALUES:
        return False
    covered = 2 * SAME_VALUE_TOLERANCE * float(np.abs(long).sum())
    if covered > MAX_BY_CHANCE * float(np.ptp(long)):
        return False
    place = np.searchsorted(long, short).clip(1, len(long) - 1)
    nearest = np.minimum(np.abs(long[place] - short), np.abs(long[place - 1] - short))
    return float(np.mean(nearest <= SAME_VALUE_TOLERANCE * np.abs(short))) >= MIN_SHARED
