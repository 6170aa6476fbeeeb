"""The verb `choose_checkpoint`: which of the checkpoints of a run to keep, by the metric that its author chose.

It advises by that metric alone: an accuracy that rises while the loss rises too is not a reason to go back.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mldebug_mcp.checks.check import all_known
from mldebug_mcp.checks.curve import MEDIAN_ERROR, at_common_steps, mad, noise_on_slope, true_at_end
from mldebug_mcp.checks.evaluation import evaluation_losses, quality_metrics
from mldebug_mcp.checks.policies import held_out_scores, rewards_of
from mldebug_mcp.checks.results import improves_upwards, named
from mldebug_mcp.checks.train_eval_gap import rows_behind
from mldebug_mcp.core.access import entries, is_file
from mldebug_mcp.core.arrays import distinct, median
from mldebug_mcp.core.conventions import STD_PER_MAD
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import dataclass, regex, replace
from mldebug_mcp.core.paths import expanded
from mldebug_mcp.core.text import counted, figure, shorten
from mldebug_mcp.logs import Run, Series, read_run
from mldebug_mcp.logs.checkpoints import Checkpoint, checkpoints_of
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names.metrics import canonical
from mldebug_mcp.logs.names.quantities import Quantity
from mldebug_mcp.logs.read import owns_folder
from mldebug_mcp.logs.settings.settings import POLICIES
from mldebug_mcp.models.diagnosis import CheckpointChoice, CheckpointFact

# The metric that decides between checkpoints: its author's, else the usual score of such a run.


MAX_STATE_BYTES = 64 * 1024 * 1024
LOSS_FIRST = ("pretraining", "sft", "preference", "diffusion")
"""Kinds whose usual score is the evaluation loss, also where accuracies of tokens or pairs are logged."""
_SCORES = (
    Quantity.ACCURACY, Quantity.AVERAGE_PRECISION, Quantity.IOU, Quantity.DICE, Quantity.NDCG, Quantity.F1,
    Quantity.AUC, Quantity.BLEU, Quantity.ROUGE, Quantity.CHRF, Quantity.METEOR, Quantity.WORD_ERROR_RATE,
    Quantity.ERROR_RATE,
)  # fmt: skip
"""Scores in the order in which one stands for a run that logs several."""
_ELSE = (
    Quantity.PERPLEXITY, Quantity.BITS,
    *(quantity for quantity in Quantity if quantity.higher_is_better or quantity.lower_is_better),
)  # fmt: skip
"""What decides where no score and no loss is evaluated: all else whose better side its name gives."""
_METRIC_SETTINGS = (
    "metric_for_best_model", "best_checkpoint_metric", "checkpoint_metric", "save_best", "monitor", "monitor_metric",
    "eval_metric", "early_stopping_metric", "metric_to_track", "best_metric_name",
)  # fmt: skip
"""Settings that name the metric: Transformers, fairseq, MMEngine, Lightning and Keras, timm, AllenNLP."""
_DIRECTION_SETTINGS = (
    "greater_is_better", "maximize_best_checkpoint_metric", "monitor_mode", "mode", "early_stopping_mode",
    "decreasing_metric",
)  # fmt: skip
_OF_ONE_CLASS = regex(r"class|cls|label|small|medium|large", re.IGNORECASE)
_SAYS_NOTHING = ("auto", "none", "null", "")
_FALLS = regex(r"loss|err|wer\b|cer\b|perplexity|ppl|mae|mse|rmse|fid|nll|bpb|bpc", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric that decides.

    Args:
        name: As the author calls it.
        series: What was logged of it, None where nothing was.
        higher: Whether higher is better.
        chosen_by: Who says so, as the end of "METRIC decides: ...".
        notes: What was taken for granted.
        is_authors: Whether its author chose it; else it is the usual one.
    """

    name: str
    series: Series | None
    higher: bool
    chosen_by: str
    notes: tuple[str, ...] = ()
    is_authors: bool = True


def series_named(run: Run, name: str) -> Series | None:
    """Return the series that a setting means: of evaluation where it names none of training."""
    wanted = [name]
    if not canonical(name).startswith("eval_") and "train" not in name.lower():
        wanted.insert(0, f"eval_{name}")
    found = (series for each in wanted for series in named(run, each) if len(series.finite))
    return next(found, None)


def metric_named(run: Run, name: str, chosen_by: str, higher: bool | None = None) -> Metric:
    """Return a metric by its name, with what was logged of it and the direction that is better."""
    series = series_named(run, name)
    usual = _improves_upwards(name if series is None else series.name, series)
    if higher is None:
        unsure = series is not None and series.role is None and _FALLS.search(series.name) is None
        taken = f"{name} is taken as better the higher it is: its name does not say, greater_is_better would"
        return Metric(name, series, usual, chosen_by, (taken,) * unsure)
    notes: tuple[str, ...] = ()
    if higher is not usual:
        way = "higher" if higher else "lower"
        notes = (f"{name} is taken as better the {way} it is, as its author set; usually it is the other way round",)
    return Metric(name, series, higher, chosen_by, notes)


def _improves_upwards(name: str, series: Series | None) -> bool:
    role = None if series is None else series.role
    if series is not None and role is not None:
        return improves_upwards(series)
    return _FALLS.search(name) is None


def authors_metric(run: Run, saved: Sequence[Checkpoint], inside: Mapping[str, Mapping[str, object]]) -> Metric:
    """Return the metric that the author chose, by settings, by the state of the Trainer, by what was saved."""
    chosen = _by_settings(run) or _by_state(run) or _by_callback(run, inside) or _by_names(run, saved)
    if chosen is not None and (chosen.series is not None or chosen.chosen_by == IN_NAMES):
        return chosen
    usual = _usual(run)
    if chosen is None:
        return usual
    note = f"{chosen.name} is not logged ({chosen.chosen_by})"
    return replace(usual, notes=(*usual.notes, note))


def _by_settings(run: Run) -> Metric | None:
    flat = {key.replace(".", "/"): value for key, value in run.settings.flat.items()}
    for wanted in _METRIC_SETTINGS:
        for key, value in flat.items():
            prefix, _, last = key.rpartition("/")
            if last == wanted and isinstance(value, str) and value.lower() not in _SAYS_NOTHING:
                return metric_named(run, value, f"{wanted} names it", _direction(flat, prefix))
    if run.settings.flag("load_best_model_at_end") and (loss := series_named(run, "eval_loss")) is not None:
        return Metric(loss.name, loss, higher=False, chosen_by="load_best_model_at_end is set, which goes by it")
    return None


def _direction(flat: Mapping[str, object], prefix: str) -> bool | None:
    for name in _DIRECTION_SETTINGS:
        value = flat.get(f"{prefix}/{name}" if prefix else name)
        text = str(value).lower()
        if text in ("true", "max"):
            return name != "decreasing_metric"
        if text in ("false", "min"):
            return name == "decreasing_metric"
    return None


def _by_state(run: Run) -> Metric | None:
    """Return the metric whose value the Trainer's state calls best: its name is in no state."""
    state = _trainer_state(Path(run.folder))
    best = state.get("best_metric")
    if not isinstance(best, int | float) or isinstance(best, bool):
        return None
    step = state.get("best_global_step")
    if not isinstance(step, int):
        step = _step_of_best(state)
    for series in sorted(_of_evaluation(run), key=lambda candidate: "loss" not in candidate.name):
        finite = series.finite
        there = finite.value == best if step is None else (finite.value == best) & (finite.step == step)
        if there.any():
            higher = best >= float(finite.value.max()) and best > float(finite.value.min())
            even = float(finite.value.max()) == float(finite.value.min())
            way = _improves_upwards(series.name, series) if even else higher
            return Metric(series.name, series, way, "best_metric in trainer_state.json is its value")
    return None


def _step_of_best(state: Mapping[str, object]) -> int | None:
    """Return the step of the checkpoint that the Trainer's state calls best, by its name."""
    place = re.search(r"(\d+)/*$", str(state.get("best_model_checkpoint") or ""))
    return int(place[1]) if place else None


def best_saved_as(run: Run, step: float) -> str:
    """Return the name of the best checkpoint of a step, which the Trainer's state says it saved; "" for none."""
    state = _trainer_state(Path(run.folder))
    named = str(state.get("best_model_checkpoint") or "").replace("\\", "/").rstrip("/")
    return named.rpartition("/")[2] if _step_of_best(state) == step else ""


def _of_evaluation(run: Run) -> list[Series]:
    return [series for name, series in run.series.items() if name.startswith("eval_") and len(series.finite)]


def _trainer_state(folder: Path) -> Mapping[str, object]:
    """Return the state of a Trainer, its history apart: the run's own, else that of its newest checkpoint."""
    from mldebug_mcp.logs.json_yaml import parse_document
    from mldebug_mcp.logs.log_file import LogFile

    try:
        places = [folder, *(entry for entry in entries(folder) if entry.name.startswith("checkpoint-"))]
        states = [state_file for place in places if is_file(state_file := place / "trainer_state.json")]
        newest = max(states, key=lambda path: (path.parent == folder, len(path.parent.name), path.parent.name))
        file = LogFile.open(newest)
        state = parse_document(file.text()) if file.size <= MAX_STATE_BYTES else {}
    except (OSError, InputError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def _by_callback(run: Run, inside: Mapping[str, Mapping[str, object]]) -> Metric | None:
    """Return what Lightning's ModelCheckpoint watches: its state stands in each checkpoint."""
    for counters in inside.values():
        monitor, mode = counters.get("monitor"), counters.get("mode")
        if isinstance(monitor, str):
            higher = None if mode not in ("min", "max") else mode == "max"
            return metric_named(run, monitor, "ModelCheckpoint monitors it", higher)
    return None


IN_NAMES = "the names of the checkpoints hold its values"


def _by_names(run: Run, saved: Sequence[Checkpoint]) -> Metric | None:
    """Return the metric whose values stand in the names of the checkpoints, or that a best one is named by."""
    for checkpoint in saved:
        for key in checkpoint.named.scores:
            if key and (series_named(run, key) is not None or _FALLS.search(key) or "acc" in key.lower()):
                return metric_named(run, key, IN_NAMES)
    return _by_name_of_best(run, saved)


def _by_name_of_best(run: Run, saved: Sequence[Checkpoint]) -> Metric | None:
    """Return the metric that a best checkpoint is named by, as best_coco_bbox_mAP_epoch_10.pth is."""
    logged = [each_series for each_series in run.series.values() if len(each_series.finite)]
    for checkpoint in saved:
        if checkpoint.named.label == "best" and checkpoint.named.words:
            joined = "_".join(checkpoint.named.words)
            series = next(
                (each for each in logged if plain_name(each.logged_as or each.name) == plain_name(joined)),
                None,
            )
            if series is not None:
                return Metric(
                    series.name, series, _improves_upwards(series.name, series), f"{checkpoint.name} is named by it"
                )
    return None


def plain_name(name: str) -> str:
    """Return a name without case, punctuation and the word for the evaluation before it."""
    return re.sub(r"[^a-z0-9]|^(?:eval|val|test)(?=[_/])", "", name.lower())


def _usual(run: Run) -> Metric:
    """Return the score of a kind of run: a reward, a score of evaluation, or the evaluation loss."""
    kind = "the usual metric" if run.kind == "unknown" else f"the usual metric of a {run.kind} run"
    kind = f"no setting names another; it is {kind}"
    if run.kind in POLICIES:
        scores = held_out_scores(run, 1)
        reward = rewards_of(run)
        series = scores[0] if scores else reward
        if series is not None and len(series):
            return Metric(series.name, series, _improves_upwards(series.name, series), kind, is_authors=False)
    losses = known_series(evaluation_losses, run)
    scores = sorted(filter(_is_score, known_series(quality_metrics, run)), key=_rank)
    rewards = [series for series in run.with_role(Quantity.REWARD, phase="eval") if len(series.finite)]
    others = run.with_role(*_ELSE, phase="eval", parts=True)
    distances = run.with_role(Quantity.FID)  # never one of training
    others_logged = [series for series in (*others, *distances) if len(series.finite)]
    first = (losses or scores if run.kind in LOSS_FIRST else scores or losses) or rewards
    if not (first or others_logged):
        return Metric("", None, higher=False, chosen_by="", is_authors=False)
    series = (first or others_logged)[0]
    higher = _improves_upwards(series.name, series)
    if first:
        return Metric(series.name, series, higher, kind, is_authors=False)
    kind = "no setting names another; neither a loss nor a usual score is evaluated"
    rest = list(dict.fromkeys(other.name for other in others_logged if other.name != series.name))
    note = f"evaluated too, and any of them can be named in its place: {shorten(', '.join(rest), 200)}"
    return Metric(series.name, series, higher, kind, (note,) * bool(rest), is_authors=False)


def undirected(run: Run) -> list[str]:
    """Return the names of the evaluated metrics whose better side neither their name nor a setting gives."""
    return [each.name for each in _of_evaluation(run) if each.role is None or each.role.quantity.is_result]


def known_series(find: Callable[[Run], list[Series]], run: Run) -> list[Series]:
    """Return the series that a reader finds and that have a finite value."""
    return [series for series in all_known(find, run) if len(series.finite)]


def _is_score(series: Series) -> bool:
    role = series.role
    return role is not None and role.quantity in _SCORES and not _OF_ONE_CLASS.search(series.name)


def _rank(series: Series) -> tuple[int, bool, bool]:
    """Return the order of scores: the whole before parts, and of the mean precisions that over all overlaps."""
    role = series.role
    if role is None:
        return len(_SCORES), True, True
    return _SCORES.index(role.quantity), not role.is_whole, "95" not in role.part


BAND = 2 * math.sqrt(2)
"""Times the noise of one evaluation: two standard deviations of the difference of two, some 95 %."""
MAX_SHOWN = 200
MAX_NAMED = 4
MAX_LISTED = 300
"""Characters of the names of metrics in a sentence."""


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
        has = shorten(", ".join(sorted(own.series)), MAX_LISTED)
        raise InputError(f"{shorten(own.path, 200)}: nothing called {shorten(metric, 60)!r} is logged; it has {has}")
    found = checkpoint_choice(own, metric)
    if found is None:
        raise InputError(
            f"{shorten(str(checkpoints or path), 200)}: no checkpoint found; name the folder that holds them with "
            "checkpoints=FOLDER",
            arguments=("checkpoints",),
        )
    from mldebug_mcp.judge.at_a_glance import glance_at_choice  # a diagnosis says it in its own words

    return found.model_copy(update={"at_a_glance": glance_at_choice(found, str(path), undirected(own))})


def checkpoint_choice(run: Run, metric: str = "") -> CheckpointChoice | None:
    """Return which checkpoint of a run to keep, None where its folder holds none; see `choose_checkpoint`."""
    if not run.folder or (run.runs_in_folder > 1 and not run.name):
        return None
    saved = _of_this_run(run, checkpoints_of(run))
    if not saved or (is_file(expanded(run.path)) and not owns_folder(expanded(run.path))):
        return None
    with np.errstate(all="ignore"):
        return _choice(run, saved, metric)


SAME_WITHIN = 0.02
"""Share by which two records of one value differ. Chosen: three digits of a printed log."""


def _of_this_run(run: Run, saved: Sequence[Checkpoint]) -> list[Checkpoint]:
    """Return the checkpoints without those of folders whose Trainer wrote down other losses at the same steps."""
    folders = {checkpoint.path.parent: checkpoint.path for checkpoint in saved}
    others = {folder for folder, last in folders.items() if _tells_of_another(run, last / "trainer_state.json")}
    return [checkpoint for checkpoint in saved if checkpoint.path.parent not in others]


def _tells_of_another(run: Run, state: Path) -> bool:
    if not is_file(state):
        return False
    try:
        theirs = read_run(state)
    except (OSError, InputError):
        return False
    for name in ("eval_loss", "loss"):
        if name in run and name in theirs:
            steps, mine, written = at_common_steps(run[name].finite, theirs[name].finite)
            if len(steps):
                near = np.abs(mine - written) <= SAME_WITHIN * np.maximum(np.abs(mine), np.abs(written))
                return float(near.mean()) < 1 / 2
    return False


def _choice(run: Run, saved: Sequence[Checkpoint], metric: str) -> CheckpointChoice:
    inside = {checkpoint.name: counters_in(checkpoint) for checkpoint in saved if asks_inside(checkpoint)}
    author = metric_named(run, metric, "it was asked for") if metric else authors_metric(run, saved, inside)
    curve = curve_of(run, author)
    facts = [_fact(checkpoint, place) for checkpoint, place in places_of(run, saved, inside, author, curve)]
    facts = _with_what_is_missing(saved, facts)
    choice = _decided(run, author, curve, facts)
    notes = [*choice.notes, *_far_smaller(saved), *_lost_evaluations(run, curve)]
    return choice.model_copy(update={"notes": notes})


def _lost_evaluations(run: Run, curve: Curve) -> list[str]:
    if curve.lost is None or not len(curve.lost):
        return []
    count = f"{len(curve.lost)} of {len(curve) + len(curve.lost)} evaluations"
    return [f"{curve.lost.name} is not finite at {count}, first at {run.place(curve.lost.step[0])}"]


LEAST_ALIKE = 3
"""Checkpoints of one kind and size by which another is too small. Chosen: two may be of different things."""
SAME_SIZE = 0.1
"""Share by which their sizes differ. Chosen: the same weights take the same room."""
FAR_SMALLER = 0.5
"""Share of their size below which another may not be whole. Chosen: by hand."""


def _far_smaller(saved: Sequence[Checkpoint]) -> list[str]:
    """Return which checkpoints have far fewer bytes than those that are named like them, which have as many."""
    kinds: dict[tuple[object, ...], list[Checkpoint]] = {}
    for checkpoint in saved:
        name = checkpoint.named
        kind = (checkpoint.path.parent, checkpoint.path.suffix, name.words, name.label, name.says_when)
        kinds.setdefault(kind, []).append(checkpoint)
    notes = []
    for alike in kinds.values():
        usual = median([checkpoint.size for checkpoint in alike])
        if sum(abs(checkpoint.size - usual) <= SAME_SIZE * usual for checkpoint in alike) >= LEAST_ALIKE:
            notes += [
                f"{checkpoint.name} has {counted(checkpoint.size, 'byte')} where others like it have {usual:,.0f}: "
                "it may not have been saved whole"
                for checkpoint in alike
                if 0 < checkpoint.size < FAR_SMALLER * usual
            ]
    return notes


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
BEST = regex(r"(?:^|[^a-z])best(?:[^a-z]|$)", re.IGNORECASE)


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
        summary = _not_evaluated(run, metric, curve, len(facts))
        if named_best:
            summary = f"Keep {named_best}: its author's code named it the best one; by which metric is not known."
        return CheckpointChoice(
            keep=named_best,
            verdict="not evaluated",
            summary=summary,
            **common,
            checkpoints=_shown_checkpoints(facts),
            notes=notes,
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
        "noise": top.noise, "band": band, "checkpoints": _shown_checkpoints(marked),
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


def _shown_checkpoints(facts: Facts) -> list[CheckpointFact]:
    return [fact for fact, _ in facts][:MAX_SHOWN]


def _not_evaluated(run: Run, metric: Metric, curve: Curve, count: int) -> str:
    there = f"{counted(count, 'checkpoint')} saved"
    if not metric.name and (names := undirected(run)):
        listed = shorten(", ".join(names), MAX_LISTED)
        return f"{there}; which metric decides is not known. Evaluated were: {listed}."
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
        saved_as = shorten(best_saved_as(run, top.step), 60)
        gone = f"was saved as {saved_as}, which is not here now" if saved_as else "has no checkpoint here"
        lines.append(
            f"The best evaluation {gone}: {metric.name} {figure(top.value)} at {run.place(top.step)}; "
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
        fact.name: value
        for fact, _ in whole
        if fact.step is not None and (value := _value_near(loss, fact.step)) is not None
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


def _value_near(series: Series, step: float) -> float | None:
    there: Iterable[int] = np.flatnonzero(np.abs(series.step - step) <= 1)
    return next((float(series.value[index]) for index in there), None)


# Where each checkpoint stands on the curve of a metric, and the value there.


MIN_EVALUATIONS = 3
"""Evaluations below which nothing is distinguished. Chosen: two show no noise."""
MIN_FOR_NOISE = 4
"""Evaluations from which their noise is known: two second differences."""
MIN_FOR_THIRD = 6
"""Evaluations from which third differences count: three of them."""
MAX_DISTANCE_BY_STEPS = 0.02
MAX_DISTANCE_OTHERWISE = 0.05
"""Of the usual distance of evaluations: so near to one a checkpoint was evaluated, by steps and by epochs. Chosen: the
step of a checkpoint and that of its record differ by one in some trainers (Lightning)."""
NEAR_MULTIPLE = 0.02
"""Share by which the steps of a name and of the log may differ from a multiple. Chosen: ends of epochs are exact."""
MOST_OF_LEAST_DISTANCE = 0.49
"""Of the least distance of evaluations, which a step of one must not exceed."""
MOST_RECORDS = 50
"""Training records whose median stands for a checkpoint, where only those tell how good it is. Chosen: by hand."""
NAMED_BEST = "named the best one"
_COUNTERS = ("global_step", "iter_num", "iteration", "step", "epoch", "num_updates", "completed_steps")


def asks_inside(checkpoint: Checkpoint) -> bool:
    """Say whether a checkpoint is a file of torch.save that tells more than its name: when, or by which metric."""
    if not checkpoint.path.name.lower().endswith((".pt", ".pth", ".ckpt")) or not checkpoint.size:
        return False
    return checkpoint.path.suffix == ".ckpt" or not (checkpoint.named.says_when or checkpoint.named.label)


def counters_in(checkpoint: Checkpoint) -> dict[str, object]:
    """Return the step, epoch and monitor that a checkpoint holds; nothing of one that cannot be read so."""
    from mldebug_mcp.logs.settings.files import plain_values_in_checkpoint

    try:
        found = plain_values_in_checkpoint(checkpoint.path)
    except (OSError, InputError):
        return {}
    counters = {name: found[name] for name in _COUNTERS if isinstance(found.get(name), int)}
    callbacks = found.get("callbacks")
    for key, state in callbacks.items() if isinstance(callbacks, dict) else ():
        if isinstance(state, dict) and "ModelCheckpoint" in str(key) and isinstance(state.get("monitor"), str):
            mode = re.search(r"'mode': '(min|max)'", str(key))
            counters |= {"monitor": state["monitor"], "mode": mode[1] if mode else ""}
    return counters


@dataclass(frozen=True, slots=True)
class Curve:
    """The metric over the run.

    Args:
        step: Where it was evaluated, ascending, shape (n,).
        value: The values there, shape (n,).
        epoch: The epochs there, shape (n,); None is not known.
        is_training: Whether they are records of training, each too noisy to stand for a checkpoint.
        noise: Standard deviation of one value, None where it is not known.
        lost: Where an evaluation gave no finite number, and which, in order of its steps; None is nowhere.
    """

    step: Floats
    value: Floats
    epoch: Floats | None
    is_training: bool
    noise: float | None
    lost: Series | None = None

    def __len__(self) -> int:
        return len(self.value)


def curve_of(run: Run, metric: Metric) -> Curve:
    """Return the metric over the run, with its noise; empty where nothing was logged of it."""
    empty = np.empty(0)
    if metric.series is None:
        return Curve(empty, empty, None, is_training=False, noise=None)
    lost = metric.series.where(~np.isfinite(metric.series.value))
    since = _loss_lost_since(run)
    if not len(lost) and since < np.inf:
        after = metric.series.where(metric.series.step >= since)
        lost = Series(run["loss"].logged_as or "loss", after.step, np.full(len(after), np.nan))
    series = metric.series.finite.where(metric.series.finite.step < since)
    role = series.role
    is_training = run.kind in POLICIES and not (role is not None and role.is_evaluation)
    noise = None
    if len(series) >= MIN_FOR_NOISE:
        rows = None if role is None or not role.quantity.is_share else rows_behind(series.value)
        noise = max(_noise(series.value), 1 / rows if rows else 0.0)
    epochs = _epochs_at(run, series.step)
    return Curve(series.step, series.value, epochs, is_training, noise, None if is_training else lost)


def _loss_lost_since(run: Run) -> float:
    """Return the step from which on the training loss is NaN to its end, infinite where it is not.

    The weights are lost there, and a score that only compares numbers, such as a rank, may be perfect.
    """
    if "loss" not in run or not (lost := true_at_end(np.isnan(run["loss"].value))):
        return np.inf
    return float(run["loss"].step[-lost])


def _noise(values: Floats) -> float:
    """Return the noise of evaluations, by second differences or third ones, whichever a bend of the curve moves less.

    The variance of third differences of independent values is 20 times that of one (1 + 9 + 9 + 1).
    """
    on_slope = noise_on_slope(values)
    if len(values) < MIN_FOR_THIRD:
        return on_slope
    return min(on_slope, STD_PER_MAD * median(np.abs(np.diff(values, n=3))) / math.sqrt(20))


def _epochs_at(run: Run, steps: Floats) -> Floats | None:
    if run.step_name != "step":
        return steps
    epoch = run["epoch"].finite if "epoch" in run else None
    if epoch is not None and len(epoch):
        return epoch.held(steps)
    per_pass = run.facts.steps_per_pass
    return steps / per_pass if per_pass else None


@dataclass(frozen=True, slots=True)
class _When:
    """When a checkpoint was saved.

    Args:
        step: By the count of whoever saved it.
        epoch: By the count of the log.
        note: How that is known, where its name does not say it.
        per_epoch: Steps in an epoch, None where that is not known.
    """

    step: float | None
    epoch: float | None
    note: str = ""
    per_epoch: float | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a checkpoint stands on the curve.

    Args:
        step: Its position on the axis of the log.
        index: The evaluation that was made there, None where none was.
        value: The metric there.
        how: How that is known.
        note: A remark.
    """

    step: float | None = None
    index: int | None = None
    value: float | None = None
    how: Literal["there", "between", "by its name", "no"] = "no"
    note: str = ""


def places_of(
    run: Run, saved: Sequence[Checkpoint], inside: Mapping[str, Mapping[str, object]], metric: Metric, curve: Curve
) -> list[tuple[Checkpoint, Place]]:
    """Return the checkpoints, each with where it stands on the curve."""
    of_epochs = [checkpoint.named.epoch for checkpoint in saved if checkpoint.named.epoch is not None]
    keras = any(checkpoint.path.name.endswith((".keras", ".h5", ".hdf5")) for checkpoint in saved)
    offset = _offset(of_epochs, curve, keras=keras)
    bare = [checkpoint.named.number for checkpoint in saved if checkpoint.named.number is not None]
    steps = [checkpoint.named.step for checkpoint in saved if checkpoint.named.step is not None]
    by_epoch = _counts_epochs(run, bare, curve)
    shift = _offset(bare, curve, keras=keras) if by_epoch else 0.0
    per_pass = run.facts.steps_per_pass or _steps_per_epoch(run, steps if by_epoch else [*steps, *bare], curve)
    optimizers = _optimizers_counted(run, saved)
    placed = []
    for checkpoint in saved:
        name, counters = checkpoint.named, inside.get(checkpoint.name, {})
        step, epoch, note = name.step, name.epoch, ""
        if name.number is not None:
            step, epoch = (None, name.number + shift) if by_epoch else (name.number, None)
        elif epoch is not None:
            epoch += offset
        if optimizers > 1 and step is not None:
            note = f"its name counts the steps of {optimizers} optimizers"
            step /= optimizers
        if step is None and epoch is None and (counter := next((key for key in _COUNTERS if key in counters), "")):
            count = float(str(counters[counter]))
            step, epoch = (None, count) if counter == "epoch" else (count, None)
            note = f"{counter} {figure(count)} is written in it"
        placed.append((checkpoint, _place(run, checkpoint, _When(step, epoch, note, per_pass), metric, curve)))
    return placed


def _optimizers_counted(run: Run, saved: Sequence[Checkpoint]) -> int:
    """Return how often the names of checkpoints count a step of the log, 1 unless names with an epoch tell more.

    Lightning 2.6.6 counts each optimizer in the name `epoch=0-step=40.ckpt` of a GAN, whose log ends that epoch at 19.
    """
    latest: dict[float, float] = {}
    for epoch, step in ((checkpoint.named.epoch, checkpoint.named.step) for checkpoint in saved):
        if epoch is not None and step is not None:
            latest[epoch] = max(step, latest.get(epoch, 0.0))
    if run.step_name != "step" or "epoch" not in run or len(latest) < 2:
        return 1
    logged = run["epoch"].finite
    ends = {epoch: logged.step[logged.value == epoch] for epoch in latest if epoch < logged.value[-1]}
    times = [latest[epoch] / (float(steps.max()) + 1) for epoch, steps in ends.items() if len(steps)]
    counted = {round(time) if abs(time - round(time)) <= NEAR_MULTIPLE * time else 1 for time in times}
    return counted.pop() if len(times) > 1 and len(counted) == 1 else 1


def _place(run: Run, checkpoint: Checkpoint, when: _When, metric: Metric, curve: Curve) -> Place:
    where = _axis_position(run, when, curve)
    if when.step is None and when.epoch is None and (labelled := _by_label(run, checkpoint, metric, curve)) is not None:
        return labelled
    there = None if where is None or not len(curve) else _on_curve(run, curve, where, when)
    if there is not None and there.how == "there":
        return there
    score = _score_in_name(checkpoint, metric)
    if score is not None:
        return Place(when.step if where is None else where, None, score, "by its name", when.note)
    return there or Place(when.step if where is None else where, note=when.note)


def _on_curve(run: Run, curve: Curve, where: float, when: _When) -> Place:
    if curve.is_training:
        return Place(where, _record_at(curve, where), level_at(curve, where), "there", when.note)
    epoch = when.epoch if when.step is None else None
    index = _evaluated(run, curve.step, where, epoch)
    if index is not None:
        return Place(where, index, float(curve.value[index]), "there", when.note)
    if lost := _lost_at(run, curve, where, epoch):
        return Place(where, note="; ".join(filter(None, (when.note, lost))))
    if curve.step[0] < where < curve.step[-1]:
        return Place(where, None, float(np.interp(where, curve.step, curve.value)), "between", when.note)
    beyond = "before the first evaluation" if where <= curve.step[0] else "after the last evaluation"
    return Place(where, note=when.note or beyond)


def _axis_position(run: Run, when: _When, curve: Curve) -> float | None:
    step, epoch, per_pass = when.step, when.epoch, when.per_epoch
    if run.step_name == "step":
        if step is not None:
            return step
        if epoch is None or curve.epoch is None or not len(curve):
            return epoch * per_pass if epoch is not None and per_pass else None
        near = np.flatnonzero(np.abs(curve.epoch - epoch) <= MAX_DISTANCE_OTHERWISE)
        if len(near):
            return float(curve.step[near[-1]])
        return float(np.interp(epoch, curve.epoch, curve.step)) if curve.epoch[0] < epoch < curve.epoch[-1] else None
    if epoch is not None:
        return epoch
    return step / per_pass if step is not None and per_pass else step


def _lost_at(run: Run, curve: Curve, where: float, epoch: float | None = None) -> str:
    """Return in words that the evaluation of a checkpoint gave no finite number, "" where it did not."""
    index = None if curve.lost is None else _evaluated(run, curve.lost.step, where, epoch)
    if curve.lost is None or index is None:
        return ""
    return f"{curve.lost.name} is {'NaN' if np.isnan(curve.lost.value[index]) else 'infinite'} there"


def _evaluated(run: Run, steps: Floats, where: float, epoch: float | None) -> int | None:
    """Return which of the evaluations at these steps is that of a checkpoint, None where there was none."""
    apart = np.diff(distinct(steps))
    usual, least = (median(apart), float(apart.min())) if len(apart) else (math.inf, math.inf)
    if run.step_name == "step":
        near = min(
            max(1.0, MAX_DISTANCE_BY_STEPS * usual if math.isfinite(usual) else 1.0), MOST_OF_LEAST_DISTANCE * least
        )
    else:
        near = MAX_DISTANCE_OTHERWISE * (usual if math.isfinite(usual) else 1.0)
    if epoch is not None and run.step_name == "step":
        near = max(near, 1.0)
    there = np.flatnonzero(np.abs(steps - where) <= near + 1e-9)
    return int(there[-1]) if len(there) else None


def _record_at(curve: Curve, where: float) -> int | None:
    index = int(np.searchsorted(curve.step, where, side="right")) - 1
    return index if index >= 0 else None


def level_at(curve: Curve, where: float) -> float | None:
    """Return the median of the training records before a checkpoint: a single one is too noisy."""
    until = int(np.searchsorted(curve.step, where, side="right"))
    return median(curve.value[max(0, until - window_of(curve)) : until]) if until else None


def window_of(curve: Curve) -> int:
    """Return how many training records stand for a checkpoint: a twentieth of them."""
    return min(MOST_RECORDS, max(1, len(curve) // 20))


def _by_label(run: Run, checkpoint: Checkpoint, metric: Metric, curve: Curve) -> Place | None:
    """Return where a checkpoint stands that calls itself the best or the last, or is overwritten as one of them."""
    label, note = checkpoint.named.label, ""
    if not label:
        always = run.settings.flag("always_save_checkpoint")
        if always is None and not run.settings.flag("load_best_model_at_end"):
            return None
        label = "last" if always else "best"
        why = "load_best_model_at_end" if always is None else f"always_save_checkpoint={str(always).lower()}"
        note = f"taken for the {label} one, as {why}"
    if not len(curve):
        return Place(step=run.last_step if label == "last" else None, note=note)
    if label == "best":
        index = best_of(curve, metric)
        return Place(float(curve.step[index]), index, value_at(curve, index), "there", note or NAMED_BEST)
    index = len(curve) - 1
    if not curve.is_training and _evaluated(run, curve.step, run.last_step, None) != index:
        lost = _lost_at(run, curve, run.last_step) or "the end was not evaluated"
        return Place(run.last_step, note=note or f"named the last one; {lost}")
    return Place(float(curve.step[index]), index, value_at(curve, index), "there", note or "named the last one")


def value_at(curve: Curve, index: int) -> float | None:
    """Return what stands for an evaluation: its value, or the level of the training records before it."""
    return level_at(curve, float(curve.step[index])) if curve.is_training else float(curve.value[index])


def _score_in_name(checkpoint: Checkpoint, metric: Metric) -> float | None:
    for key, value in checkpoint.named.scores.items():
        if not key or canonical(key) == canonical(metric.name) or plain_name(key) == plain_name(metric.name):
            return value
    return None


def _offset(epochs: Sequence[float], curve: Curve, *, keras: bool) -> float:
    """Return what is to be added to the epochs in names for those of the log: one counts from 0, the other from 1."""
    if not epochs or curve.epoch is None or not len(curve):
        return 0.0
    first, last = float(curve.epoch.min()), float(curve.epoch.max())
    low, high = min(epochs), max(epochs)
    if keras and first == 0:
        return -1.0  # Keras numbers files from 1 and logs from 0
    if high == last + 1 and first == 0:
        return -1.0
    return 1.0 if low == 0 and 0 < first <= 1 else 0.0


def _steps_per_epoch(run: Run, steps: Sequence[float], curve: Curve) -> float | None:
    """Return the steps in an epoch of a log that counts epochs alone, by checkpoints that count steps.

    The last of them then was saved at the last evaluation, and each other at one, too; else it is not known.
    """
    if run.step_name == "step" or len(steps) < MIN_EVALUATIONS or len(curve) < MIN_EVALUATIONS:
        return None
    each = max(steps) / float(curve.step[-1]) if curve.step[-1] > 0 else 0.0
    if each < 2:
        return None
    apart = np.abs(np.subtract.outer(np.array(steps) / each, curve.step)).min(axis=1)
    return each if bool(np.all(apart <= MAX_DISTANCE_OTHERWISE)) else None


def _counts_epochs(run: Run, bare: Sequence[float], curve: Curve) -> bool:
    """Say whether numbers without a word count epochs: more of them fit to the epochs than to the steps of the log."""
    if bare and run.step_name == "epoch":
        return max(bare) <= (run.last_step + 1) * 2
    if not bare or run.step_name != "step" or curve.epoch is None:
        return False
    last = max(run.last_step, float(curve.step[-1]) if len(curve) else 0.0)
    if max(bare) > last + 1:
        return False
    of_steps = sum(bool(np.any(np.abs(curve.step - value) <= 1)) for value in bare)
    of_epochs = sum(bool(np.any(np.abs(curve.epoch - value) <= MAX_DISTANCE_OTHERWISE)) for value in bare)
    return of_epochs > of_steps and max(bare) <= float(curve.epoch.max()) + 1


def best_of(curve: Curve, metric: Metric) -> int:
    """Return which evaluation is the best."""
    if curve.is_training:
        levels = np.array([level_at(curve, float(step)) for step in curve.step], float)
        return int(np.argmax(levels) if metric.higher else np.argmin(levels))
    return int(np.argmax(curve.value) if metric.higher else np.argmin(curve.value))
