"""Columns that mean something of their own in the framework that writes them.

Each function changes the columns where its framework's habit shows, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mldebug_mcp.core.lazy import regex
from mldebug_mcp.logs.columns import Column, Columns, ascends
from mldebug_mcp.logs.names import normal
from mldebug_mcp.logs.names.lexicon import CONCEPTS, NAMESPACES, PARTS_OF_A_MODEL, PHASES, STATISTICS
from mldebug_mcp.logs.names.metrics import called, canonical, is_telling
from mldebug_mcp.logs.names.records import phase_in
from mldebug_mcp.logs.names.words import words_in

BOOSTER = "booster"
"""The setting that says which boosted trees are trained: XGBoost's own name, and what the readers call them."""
_SCORES = ("average_score", "avg_score", "mean_score", "score", "total_reward", "total_score", "rewards", "r")
"""What episodes bring where nothing is called their reward, the smoothest first."""
_BOOSTED = regex(
    r"(?:(?P<train>d?train(?:ing)?)|d?(?:eval|val|valid|validation|test)(?:_\d+)?)(?:'s |-|/)(?P<measure>[\w@.-]+)"
)
_BOOSTED_LOSSES = (
    "logloss", "mlogloss", "binary_logloss", "multi_logloss", "cross_entropy", "rmse", "l2", "mse", "mae", "l1",
    "rmsle", "rmspe", "mape", "smape", "mphe", "huber", "quantile", "poisson", "gamma", "tweedie", "poisson-nloglik",
    "gamma-nloglik", "cox-nloglik",
)  # fmt: skip
_BOOSTED_SCORES = ("auc", "aucpr", "map", "ndcg", "average_precision", "accuracy")
_BOOSTED_ERRORS = ("error", "merror", "binary_error", "multi_error")
_OF_NETWORKS_TOO = frozenset(
    {"accuracy", "auc", "mse", "mae", "l1", "l2", "rmse", "cross_entropy", "huber", "mape", "error", "map"}
)
_OF_CATBOOST = frozenset({"learn", "test", "best"})
_OF_CATBOOST_ALONE = frozenset({"eval_test", "eval_best", "eval_total", "eval_remaining"})
"""... where it works its measure out on the rows of evaluation alone."""
_OF_HISTOGRAMS = frozenset({"max depth", "train loss"})
"""What HistGradientBoosting of scikit-learn prints for each iteration."""
_ERROR_OF_ATOMS = regex(r"(?:RMSE|MAE)_(?:E|F|MU|Mu|stress|virials|polarizability)(?:_per_atom)?$")
"""The errors of energies, forces and dipoles that MACE prints."""
_BETWEEN_RUN_AND_METRIC = (" - ", " | ", ": ")
"""What stands there in the columns of an export with several runs side by side."""
_BOUNDS = ("__MIN", "__MAX")
"""How W&B ends the names of the bounds of a chart's bucket, which are no metrics."""
_DETECTOR_LOSS = regex(r"(?:box|iou|obj|cls|dfl|seg|pose|kobj|rle|angle)_loss")
"""What Ultralytics calls the parts of a detector's loss."""


def wide_export(columns: Columns, choose: Callable[[Mapping[str, int]], str]) -> None:
    """Read one run of a table that holds several side by side: "run - metric" for each of them.

    W&B exports a chart so, with bounds next to each metric for a single run too.
    """
    between = next((text for text in _BETWEEN_RUN_AND_METRIC if any(text in name for name in columns)), "")
    if not between:
        return
    parted = {name: name.rpartition(between) for name in columns if between in name}
    found = {name: (run, metric) for name, (run, _, metric) in parted.items()}
    bounded = any(name.endswith(_BOUNDS) for name in found)
    if not bounded and not _are_runs([name for name in columns if name not in found], list(found.values())):
        return
    sizes: dict[str, int] = {}
    for name, (run, _) in found.items():
        sizes[run] = max(sizes.get(run, 0), len(columns[name]))
    chosen = choose(sizes)
    for name, (run, metric) in found.items():
        column = columns.pop(name)
        if run == chosen and not name.endswith(_BOUNDS):
            columns[metric] = column


def _are_runs(others: Sequence[str], found: Sequence[tuple[str, str]]) -> bool:
    """Say whether columns are the same metrics of several runs, and not those of phases or of parts of a model.

    The other columns, which the runs share, count and measure nothing.
    """
    runs = {run for run, _ in found}
    measured = [metric for _, metric in found if is_telling(metric)]
    repeated = len(measured) > len(set(measured)) and len(runs) > 1
    return repeated and not any(map(is_telling, others)) and not any(map(_is_part, runs))


def _is_part(name: str) -> bool:
    """Say whether a name is that of a phase or of a part of a model: its words are known, those of a run are not."""
    words = words_in(name)
    known = PARTS_OF_A_MODEL | CONCEPTS | NAMESPACES | set(PHASES.values()) | set(STATISTICS.values())
    return known.issuperset(words) or phase_in(name) != ""


def gym_monitor(columns: Columns) -> str | None:
    """Gym's and Stable-Baselines' monitor.csv: r, l, t are return, length and time of each episode."""
    if not {"r", "l", "t"} <= columns.keys() or len(columns) > 5:
        return None
    for old, new in (("r", "reward"), ("l", "episode_length"), ("t", "elapsed")):
        columns[new] = columns.pop(old)
    at, length = columns["episode_length"].arrays()
    columns["step"] = Column.of(at, np.cumsum(length))
    return "an episode monitor (r, l, t): steps are environment steps, the sum of the episodes' lengths"


def episodes(columns: Columns) -> str | None:
    """The score of an episode is its reward, and steps that do not go up with the episodes are their lengths."""
    counters = [name for name in columns if canonical(name) == "episode"]
    if not counters or bool(np.any(np.diff(columns[counters[0]].values()) < 0)):
        return None
    at, episode = columns[counters[0]].arrays()
    for name in [name for name in columns if canonical(name) == "step" and ascends(episode)]:
        if np.array_equal(columns[name].arrays()[0], at) and not ascends(columns[name].values()):
            columns["episode_length"] = columns.pop(name)
    scores = {normal(name): name for name in columns}
    score = next((scores[name] for name in _SCORES if name in scores), None)
    if score is None or called(columns, "reward"):
        return None
    columns["reward"] = columns.pop(score)
    return f"{score!r} of the episodes is read as the reward"


def are_measures_of_boosting(names: set[str]) -> bool:
    """Say whether XGBoost or LightGBM gives these names to what it measures, and no network's logger one of them."""
    return names <= {*_BOOSTED_LOSSES, *_BOOSTED_SCORES, *_BOOSTED_ERRORS} and not names <= _OF_NETWORKS_TOO


_OF_NETWORKS_ALONE = ("epoch", "loss", "grad_norm", "learning_rate")


def is_boosted(columns: Columns) -> bool:
    """Say whether columns are named as XGBoost, LightGBM and CatBoost name theirs, and no neural network does."""
    if any(columns.keys() >= names for names in (_OF_CATBOOST, _OF_CATBOOST_ALONE, _OF_HISTOGRAMS)):
        return True
    found = [match for name in columns if (match := _BOOSTED.fullmatch(name)) and "/" not in name]
    return not any(canonical(name) in _OF_NETWORKS_ALONE for name in columns) and any(
        match["measure"] in (*_BOOSTED_LOSSES, *_BOOSTED_SCORES, *_BOOSTED_ERRORS) for match in found
    )


def boosted_trees(columns: Columns) -> str | None:
    """XGBoost, LightGBM and CatBoost name a loss by its measure and the part of the data: "train-rmse", "valid_0's l2".

    The loss is the first of their measures that is one; of several parts to evaluate on, the last counts, as it does
    for early stopping.
    """
    if columns.keys() >= _OF_CATBOOST:
        return _catboost(columns)
    if columns.keys() >= _OF_CATBOOST_ALONE:
        return _catboost_score(columns)
    found = [match for name in columns if (match := _BOOSTED.fullmatch(name))]
    measure = next((match["measure"] for match in found if match["measure"] in _BOOSTED_LOSSES), None)
    if measure is None or called(columns, "loss", "eval_loss"):
        return None
    parts = [match for match in found if match["measure"] == measure]
    trained = next((match.string for match in parts if match["train"]), None)
    evaluated = [match.string for match in parts if not match["train"]]
    named = {"loss": trained, "eval_loss": evaluated[-1] if evaluated else None}
    for new, old in named.items():
        if old is not None:
            columns[new] = columns.pop(old)
    return ", ".join(f"{old!r} is read as the {new}" for new, old in named.items() if old is not None)


def boosted_scores(columns: Columns) -> str | None:
    """XGBoost and LightGBM name a score as they do a loss: "test's auc" is the AUC of evaluation."""
    notes = []
    for old in reversed(list(columns)):  # of several parts to evaluate on, the last counts
        match = _BOOSTED.fullmatch(old)
        if match is None or match["measure"] not in _BOOSTED_SCORES:
            continue
        new = match["measure"] if match["train"] else f"eval_{match['measure']}"
        if new not in columns:
            columns[new] = columns.pop(old)
            notes.append(f"{old!r} is read as the {new}")
    return ", ".join(notes) or None


def _catboost(columns: Columns) -> str | None:
    for old, new in (("total", "elapsed"), ("remaining", "eta")):
        if old in columns:
            columns[new] = columns.pop(old)
    best, test = columns["best"].values(), columns["test"].values()
    short = len(best) == len(test) and bool(np.any(test < best))  # of a loss, no value is below the best one
    kind = "score" if short or best[-1] > best[0] else "loss"
    for old, new in (("learn", kind), ("test", f"eval_{kind}")):
        columns[new] = columns.pop(old)
    return f"'learn' is read as the {kind}, 'test' as the eval_{kind}"


def _catboost_score(columns: Columns) -> str:
    """Name what CatBoost prints of a measure that it works out on the rows of evaluation alone, as it does the AUC."""
    for old, new in (("eval_total", "elapsed"), ("eval_remaining", "eta")):
        columns[new] = columns.pop(old)
    del columns["eval_best"]  # its iteration
    value = columns["eval_test"].values()
    new = "eval_loss" if value[-1] < value[0] else "eval_score"
    columns[new] = columns.pop("eval_test")
    return f"'test' is read as the {new}"


def times_of_espnet(columns: Columns) -> str | None:
    """ESPnet: `iter_time` is the wait for the next batch, `train_time` the whole step, its forward pass and all."""
    if not {"iter_time", "forward_time", "train_time"} <= columns.keys() or "step_time" in columns:
        return None
    columns["data_time"], columns["step_time"] = columns.pop("iter_time"), columns.pop("train_time")
    return "iter_time is read as the data_time and train_time as the step_time, as ESPnet measures them"


def spacy_table(columns: Columns) -> str | None:
    """spaCy: E and # are epoch and step, SCORE is of the development data, and LOSS is one for each component.

    The last component's loss is the task's: those of the embedding before it are what it passes back to them.
    """
    losses = [name for name in columns if name.startswith("LOSS ")]
    if not {"E", "#", "SCORE"} <= columns.keys() or not losses:
        return None
    scores = [name for name in columns if name not in ("E", "#", *losses)]
    for old, new in (("E", "epoch"), ("#", "step"), *((name, f"eval_{name.lower()}") for name in scores)):
        columns[new] = columns.pop(old)
    columns["loss"] = columns.pop(losses[-1])
    return f"{losses[-1]!r} is read as the loss, the scores as those of evaluation"


_ENTITIES = {"NER P.": "eval_ner_precision", "NER R.": "eval_ner_recall", "NER F.": "eval_ner_f1"}


def old_spacy_table(columns: Columns) -> str | None:
    """SpaCy 2: NER P., NER R. and NER F. are of the development data, and NER Loss or N.Loss is the task's."""
    losses = [name for name in ("NER Loss", "N.Loss") if name in columns]
    if not columns.keys() >= _ENTITIES.keys() or not losses or "loss" in columns:
        return None
    for old, new in (*_ENTITIES.items(), (losses[0], "loss")):
        columns[new] = columns.pop(old)
    return f"{losses[0]!r} is read as the loss, the scores of entities as those of evaluation"


def genetic_program(columns: Columns) -> str | None:
    """What gplearn prints is the fitness of its best program, which is an error unless another measure was chosen."""
    if not {"Length", "Fitness"} <= columns.keys():
        return None
    columns["best_program"] = columns.pop("Fitness")
    return "'Fitness' is that of the best program (gplearn): no policy's reward"


def interatomic_potential(columns: Columns) -> str | None:
    """MACE prints after each epoch the loss and the errors of validation, under no name of it."""
    errors = [name for name in columns if _ERROR_OF_ATOMS.match(name)]
    if "loss" not in columns or not errors:
        return None
    for name in ("loss", *errors):
        columns[f"eval_{name}"] = columns.pop(name)
    return f"loss, {', '.join(errors)}: read as of validation, as MACE prints them"


def linear_model(columns: Columns) -> str | None:
    """scikit-learn's SGD prints the norm of its weights: no gradient's."""
    if {"Norm", "NNZs"} <= columns.keys():
        columns["weight_norm"] = columns.pop("Norm")
    return None


def natural_gradient_boosting(columns: Columns) -> str | None:
    """NGBoost prints a validation loss of zero where it is given no rows to validate on."""
    if not {"loss", "val_loss", "scale", "norm"} <= columns.keys() or columns["val_loss"].values().any():
        return None
    del columns["val_loss"]
    return "val_loss is always 0, as NGBoost prints it without validation rows: left out"


def warmup_of_biases(columns: Columns) -> str | None:
    """Ultralytics: the biases, group 0, warm up from a high rate of their own; the weights are group 1."""
    for biases, weights in (("lr/pg0", "lr/pg1"), ("x/lr0", "x/lr1")):
        if not {biases, weights} <= columns.keys() or "learning_rate" in columns:
            continue
        if not np.array_equal(columns[biases].values(), columns[weights].values(), equal_nan=True):
            columns["learning_rate"] = columns.pop(weights)
            return f"learning_rate is {weights}, the rate of the weights: {biases} is that of the biases"
    return None


def moments(columns: Columns) -> str | None:
    """StyleGAN and EDM log a count, a mean and a deviation of each metric: the mean is the metric."""
    names = [name[: -len("/mean")] for name in columns if name.endswith("/mean")]
    names = [name for name in names if {f"{name}/num", f"{name}/std"} <= columns.keys() and name not in columns]
    for name in names:
        columns[name] = columns.pop(f"{name}/mean")
        del columns[f"{name}/num"], columns[f"{name}/std"]
    return "each metric is logged as num, mean and std: the mean is read" if names else None


def sum_of_parts(columns: Columns) -> str | None:
    """Ultralytics logs the parts of a detector's loss, weighted as they are trained, and not their sum."""
    notes = []
    for total, prefixes in (("loss", ("train/", "")), ("eval_loss", ("val/",))):
        for prefix in prefixes:
            parts = [
                name
                for name in columns
                if _DETECTOR_LOSS.fullmatch(name.removeprefix(prefix)) and name.startswith(prefix)
            ]
            if len(parts) < 2 or called(columns, total):
                continue
            at = [columns[name].arrays()[0] for name in parts]
            if all(np.array_equal(at[0], array) for array in at):
                columns[total] = Column.of(at[0], np.sum([columns[name].values() for name in parts], axis=0))
                notes.append(f"{total} is the sum of {', '.join(parts)}")
    return "; ".join(notes) or None


def cross_entropy(columns: Columns) -> str | None:
    """MXNet's loss is its cross-entropy; next to a loss it is another measure, such as Marian's of whole sentences."""
    if called(columns, "loss", "eval_loss"):
        return None
    names = {normal(name): name for name in columns}
    notes = []
    for prefixes, total in ((("", "train_"), "loss"), (("eval_", "val_", "validation_"), "eval_loss")):
        found = next(
            (names[f"{prefix}cross_entropy"] for prefix in prefixes if f"{prefix}cross_entropy" in names), None
        )
        if found is not None:
            columns[total] = columns.pop(found)
            notes.append(f"{found!r} is read as the {total}")
    return ", ".join(notes) or None


_RETURNS = ("mean", "median", "stdev", "max", "min")
"""What PFRL and ChainerRL call the returns of the episodes of an evaluation."""


def returns_of_pfrl(columns: Columns) -> str | None:
    """PFRL's `scores.txt` has the mean return of each evaluation as `mean`, with its spread and the updates so far."""
    own = {"n_updates"} <= columns.keys() or {"steps", "episodes", "elapsed", "average_v"} <= columns.keys()
    if not own or not set(_RETURNS) <= columns.keys():
        return None
    for name in _RETURNS:
        columns["eval_reward" if name == "mean" else f"eval_reward_{name}"] = columns.pop(name)
    return "mean, median, stdev, max and min are the returns of an evaluation (PFRL, ChainerRL)"


_ALL_UPDATES = "total_train_updates"


def updates_of_parlai(columns: Columns) -> str | None:
    """ParlAI counts the updates of each record as `updates`, and all of them so far."""
    if _ALL_UPDATES not in columns or called(columns, "step") not in ("", "updates"):
        return None
    if "updates" in columns:
        columns["updates of the record"] = columns.pop("updates")
    columns["step"] = columns.pop(_ALL_UPDATES)
    return f"{_ALL_UPDATES!r} is read as the step (ParlAI)"


def before_first_update(columns: Columns) -> str | None:
    """PFRL logs a mean over the updates so far, which is NaN where there has been none: nothing is lost there."""
    if "n_updates" not in columns:
        return None
    at, updates = columns["n_updates"].arrays()
    unlearnt = at[updates == 0]
    emptied = []
    for name in columns:
        rows, values = columns[name].arrays()
        empty = np.isnan(values) & np.isin(rows, unlearnt)
        if empty.any():
            columns[name] = Column.of(rows[~empty], values[~empty])
            emptied.append(name)
    return (
        f"{', '.join(emptied)}: NaN before the first update is the mean of nothing, and is left out"
        if emptied
        else None
    )


_TIANSHOU_UPDATES = "info/timing/train_time_update"
"""What Tianshou calls the seconds that all updates took so far."""


def times_of_tianshou(columns: Columns) -> str | None:
    """Tianshou's `train_time_update` grows over the run: it is not the time of one update."""
    if _TIANSHOU_UPDATES not in columns:
        return None
    columns["info/timing/updates_so_far"] = columns.pop(_TIANSHOU_UPDATES)
    return f"{_TIANSHOU_UPDATES} is the time of all updates so far, not of one (Tianshou)"


OF_FRAMEWORKS: tuple[Callable[[Columns], str | None], ...] = (
    gym_monitor,
    returns_of_pfrl,
    updates_of_parlai,
    before_first_update,
    episodes,
    boosted_trees,
    boosted_scores,
    times_of_espnet,
    times_of_tianshou,
    spacy_table,
    old_spacy_table,
    genetic_program,
    interatomic_potential,
    linear_model,
    natural_gradient_boosting,
    warmup_of_biases,
    moments,
    sum_of_parts,
    cross_entropy,
)
"""In the order in which they are tried."""
