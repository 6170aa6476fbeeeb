"""The metric that decides between checkpoints: its author's, else the usual score of such a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mldebug_mcp.checks.check import all_known
from mldebug_mcp.checks.evaluation import evaluation_losses, quality_metrics
from mldebug_mcp.checks.policies import held_out_scores, rewards_of
from mldebug_mcp.checks.results import improves_upwards, named
from mldebug_mcp.core.access import entries, is_file
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import dataclass, regex, replace
from mldebug_mcp.core.text import shorten
from mldebug_mcp.logs import Run, Series
from mldebug_mcp.logs.checkpoints import Checkpoint
from mldebug_mcp.logs.names.metrics import canonical
from mldebug_mcp.logs.names.quantities import Quantity
from mldebug_mcp.logs.settings.settings import POLICIES

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
    losses, scores = (
        known_series(evaluation_losses, run),
        sorted(filter(_is_score, known_series(quality_metrics, run)), key=_rank),
    )
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
