"""Columns under the names that they were logged with → columns under canonical names.

Conventions that show only when all columns are known come first. Each is a function that changes the columns where
its convention holds, and returns a note.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count

import numpy as np

from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.core.text import shorten
from mldebug_mcp.logs.columns import Column, Columns, Floats, Rows, ascends, rename, stretches_of
from mldebug_mcp.logs.names import Quantity, Role, normal, role_of
from mldebug_mcp.logs.names.grammar import MAX_NAME
from mldebug_mcp.logs.names.guesses import (
    CONVENTIONS_AFTER_LOSSES,
    CONVENTIONS_BEFORE_LOSSES,
    CONVENTIONS_OF_SHORT_NAMES,
    lone_counter,
    shares_of_phases,
)
from mldebug_mcp.logs.names.lexicon import CONCEPTS, NAMESPACES, PARTS_OF_A_MODEL, PHASES, SECONDS, STATISTICS
from mldebug_mcp.logs.names.losses import (
    CONVENTIONS_OF_EVALUATIONS,
    CONVENTIONS_OF_LOSSES,
    CONVENTIONS_OF_REWARDS,
    filtered_nan,
    scores_of_evaluation,
)
from mldebug_mcp.logs.names.metrics import (
    COUNTERS,
    called,
    canonical,
    factor,
    is_pace,
    is_telling,
    is_training_loss,
    phase_in,
    rank,
)
from mldebug_mcp.logs.names.quantities import PAIRS
from mldebug_mcp.logs.names.words import pieces_of, segments_of, words_in

# Columns that mean something of their own in the framework that writes them.
#
# Each function changes the columns where its framework's habit shows, and says so.


BOOSTER = "booster"
"""The setting that says which boosted trees are trained: XGBoost's own name, and what the readers call them."""
_SCORES = ("average_score", "avg_score", "mean_score", "score", "total_reward", "total_score", "rewards", "r")
"""What episodes bring where nothing is called their reward, the smoothest first."""
_BOOSTED = regex(
    r"(?:(?P<train>d?train(?:ing)?|(?:train(?:ing)?_\w{1,20}|trn)(?='s ))|"
    r"d?(?:eval|val|valid|validation|test)(?:_\d+)?|[A-Za-z]\w{0,40}(?='s ))(?:'s |-|/)(?P<measure>[\w@.-]+)",
    needs=("train", "val", "test", "'s "),
)
"""LightGBM's sets may have any name, and stand before `'s`; those that do not say so are none of training."""
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
_OF_CATBOOST_TRAINING = frozenset({"learn", "total", "remaining"})
_OF_CATBOOST_ALONE = frozenset({"eval_best", "eval_total", "eval_remaining"})
"""... where it works its measure out on the rows of evaluation alone."""
_OF_HISTOGRAMS = frozenset({"max depth", "train loss"})
"""What HistGradientBoosting of scikit-learn prints for each iteration."""
_ERROR_OF_ATOMS = regex(
    r"(?:RMSE|MAE)_(?:E|F|MU|Mu|stress|virials|polarizability)(?:_per_atom)?$", needs=("rmse_", "mae_")
)
"""The errors of energies, forces and dipoles that MACE prints."""
_BETWEEN_RUN_AND_METRIC = (" - ", " | ", ": ")
"""What stands there in the columns of an export with several runs side by side."""
_BOUNDS = ("__MIN", "__MAX")
"""How W&B ends the names of the bounds of a chart's bucket, which are no metrics."""
_DETECTOR_LOSS = regex(
    r"(?:box|iou|obj|cls|dfl|seg|pose|kobj|rle|angle)_loss",
    needs=("box_", "iou_", "obj_", "cls_", "dfl_", "seg_", "pose_", "rle_", "angle_"),
)
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
    if any(
        columns.keys() >= names for names in (_OF_CATBOOST, _OF_CATBOOST_TRAINING, _OF_CATBOOST_ALONE, _OF_HISTOGRAMS)
    ):
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
    if columns.keys() >= _OF_CATBOOST_ALONE and not {"test", "eval_test"}.isdisjoint(columns):
        return _catboost_score(columns)
    if columns.keys() >= _OF_CATBOOST_TRAINING and "test" not in columns:
        return _catboost_training(columns)
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
    _name_clocks_of_catboost(columns)
    best, test = columns["best"].values(), columns["test"].values()
    short = len(best) == len(test) and bool(np.any(test < best))  # of a loss, no value is below the best one
    kind = "score" if short or best[-1] > best[0] else "loss"
    for old, new in (("learn", kind), ("test", f"eval_{kind}")):
        columns[new] = columns.pop(old)
    return f"'learn' is read as the {kind}, 'test' as the eval_{kind}"


def _catboost_training(columns: Columns) -> str:
    """Name what CatBoost prints where it is given no rows of evaluation: what it learns by falls, if it is a loss."""
    _name_clocks_of_catboost(columns)
    learn = columns["learn"].values()
    kind = "loss" if learn[-1] <= learn[0] else "score"
    columns[kind] = columns.pop("learn")
    return f"'learn' is read as the {kind}"


def _name_clocks_of_catboost(columns: Columns) -> None:
    for old, new in (("total", "elapsed"), ("remaining", "eta_s")):
        if old in columns:
            columns[new] = columns.pop(old)


def _catboost_score(columns: Columns) -> str:
    """Name what CatBoost prints of a measure that it works out on the rows of evaluation alone, as it does the AUC."""
    for old, new in (("eval_total", "elapsed"), ("eval_remaining", "eta_s")):
        columns[new] = columns.pop(old)
    del columns["eval_best"]  # its iteration
    name = "eval_test" if "eval_test" in columns else "test"
    value = columns[name].values()
    new = "eval_loss" if value[-1] < value[0] else "eval_score"
    columns[new] = columns.pop(name)
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
    """MACE prints after each epoch the loss and the errors of validation, under no name of it.

    A loss in records without these errors, such as one of each step, is of training.
    """
    errors = [name for name in columns if _ERROR_OF_ATOMS.match(name.rpartition("/")[2])]  # behind that of a head
    if "loss" not in columns or not errors:
        return None
    for name in [name for name in columns if name == "loss" or name.endswith("/loss")]:
        head = name.rpartition("/")[0]
        at = [columns[error].arrays()[0] for error in errors if error.rpartition("/")[0] == head]
        rows, values = columns.pop(name).arrays()
        is_validation = np.isin(rows, np.concatenate([np.empty(0), *at]))
        for new, its_own in ((f"eval_{name}", is_validation), (name, ~is_validation)):
            if its_own.any():
                columns[new] = Column.of(rows[its_own], values[its_own])
    for name in errors:
        columns[f"eval_{name}"] = columns.pop(name)
    return f"loss, {', '.join(errors)}: read as of validation, as MACE prints them"


def scoring_history(columns: Columns) -> str | None:
    """H2O counts trees, next to the time that they took."""
    if "number_of_trees" in columns and "step" not in columns:
        columns["step"] = columns.pop("number_of_trees")
    return None


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


_CROSS_ENTROPIES = ("cross_entropy", "crossentropywithsoftmax")


def cross_entropy(columns: Columns) -> str | None:
    """MXNet's and CNTK's loss is a cross-entropy; next to a loss it is another measure, as Marian's of sentences."""
    if called(columns, "loss", "eval_loss"):
        return None
    names = {normal(name): name for name in columns}
    notes = []
    for prefixes, total in ((("", "train_"), "loss"), (("eval_", "val_", "validation_"), "eval_loss")):
        shown = (f"{prefix}{name}" for name in _CROSS_ENTROPIES for prefix in prefixes)
        found = next((names[name] for name in shown if name in names), None)
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
    scoring_history,
    linear_model,
    natural_gradient_boosting,
    warmup_of_biases,
    moments,
    sum_of_parts,
    cross_entropy,
)
"""In the order in which they are tried."""


_OF_TRAINING = regex(r"train(?:ing)?[ ._/-]", re.IGNORECASE, needs="train")
TIMES_AS_OFTEN = 8
"""Times as many values as the bare name has, from which on a name of training is the loss. Chosen: a last line alone,
such as "exported: loss 0.10", has one."""
_BARE = frozenset({"loss", "acc", "accuracy", "acc@1", "top1"})

MIN_FALLS_OF_COUNT = 0.2
"""Share of records with a smaller count than the one before, from which on it may count each record apart. Chosen."""
MIN_LEAST_OF_COUNT = 0.5
"""Share of its largest value below which such a count never lies: a counter that starts again does. Chosen by hand."""
MIN_COUNTS, MAX_COUNT = 4, 1e15
"""Records from which on a count is judged, and what no count comes to."""
PER_RECORD = " per record"
"""Ends the name of what counts the steps or tokens of each record apart."""


def name_counts_per_record(columns: Columns) -> str | None:
    """Rename what counts the steps or tokens of each record apart, as verl its tokens: it says nothing of the run."""
    notes = []
    for raw in [raw for raw in columns if canonical(raw) in (*COUNTERS, Quantity.TOKENS_SEEN)]:
        value = columns[raw].values()
        if len(value) < MIN_COUNTS or not bool(np.all((value > 0) & (value < MAX_COUNT))):
            continue
        falls = float(np.mean(value[1:] < value[:-1]))
        half = len(value) // 2
        rises = abs(median(value[half:]) - median(value[:half])) > float(np.std(value))
        near = float(value.min()) > MIN_LEAST_OF_COUNT * float(value.max())
        if falls >= MIN_FALLS_OF_COUNT and near and not rises:
            rename(columns, raw, raw + PER_RECORD)
            notes.append(repr(shorten(raw, 60)))
    return f"{', '.join(notes)}: counted in each record apart: no step of the run, and no total" if notes else None


LEAST_BEFORE_NULLS = 2
"""Values that tell how often a metric is logged; a training loss is taken for one of each record."""


MIN_EPISODES = 5
"""Records that show that steps are those of an episode. Chosen by hand."""
SHARE_OF_SHORTER = 0.3
"""Share of them with fewer steps than the one before. Chosen: of records in order it is near 0, of any other 0.5."""
SHARE_OF_SHORTEST = 0.5
"""How many of these may have the fewest steps of all. Chosen: a counter of each epoch begins anew at its least."""
SHARE_IN_STEP = 0.5
"""How many may lie the usual interval from the next, in order. Chosen: a counter goes on by its interval."""


def steps_of_episodes(columns: Columns) -> str | None:
    """The steps next to the return of an episode that go up and down are its length: they count no run."""
    raw = next((raw for raw in columns if canonical(raw) == "step"), "")
    roles = {role.quantity: column for name, column in columns.items() if (role := role_of(name)) is not None}
    if (
        not raw
        or Quantity.REWARD not in roles
        or not roles.keys().isdisjoint({Quantity.EPISODE_LENGTH, Quantity.EPOCH})
    ):
        return None
    at, value = columns[raw].arrays()
    value = value[np.isin(at, roles[Quantity.REWARD].arrays()[0])]
    shorter = value[1:] < value[:-1]
    if len(value) < MIN_EPISODES or float(shorter.mean()) < SHARE_OF_SHORTER:
        return None
    apart = np.diff(np.sort(value))
    if float(np.mean(value[1:][shorter] == value.min())) >= SHARE_OF_SHORTEST:
        return None
    if float(np.mean(apart == median(apart))) >= SHARE_IN_STEP:
        return None
    rename(columns, raw, "episode_length")
    return f"{raw!r} goes up and down, and is read as the length of episodes"


def nulls_at_end(columns: Columns, rows: int, nulls: Iterable[str]) -> str | None:
    """Read a metric as NaN from where it is null for good: JSON has no NaN, and JavaScript writes null for it.

    A metric that is logged now and then is null between its values: then the nulls at the end count only where they
    go on for longer than any before, in records that each count further.

    Args:
        columns: The columns of a log.
        rows: Its records.
        nulls: The names that are next to a null in its last record.
    """
    notes = []
    for raw in nulls:
        role = role_of(raw)
        is_measured = is_telling(raw) or (role is not None and role.quantity is Quantity.GRADIENT_NORM)
        if raw not in columns or not len(columns[raw]) or not is_measured:
            continue
        at = columns[raw].arrays()[0]
        if len(at) < LEAST_BEFORE_NULLS and not is_training_loss(raw):
            continue
        last, gap = int(at[-1]), int(np.diff(at).max(initial=1))
        missing = np.arange(last + gap, rows, gap)
        if len(missing) and _count_further(columns, last, rows):
            columns[raw].extend(stretches_of(missing), np.full(len(missing), np.nan))
            notes.append(f"{shorten(raw, 60)!r} in the last {len(missing)} record(s)")
    return f"null is read as NaN, which JSON cannot write: {', '.join(notes)}" if notes else None


def _count_further(columns: Columns, first: int, rows: int) -> bool:
    """Say whether the counters rise in each record from one on, or nothing is counted."""
    for raw in columns:
        if canonical(raw) not in COUNTERS:
            continue
        at, value = columns[raw].arrays()
        counted = value[at >= first]
        if len(counted) == rows - first and ascends(counted):
            return True
    return all(canonical(raw) not in COUNTERS for raw in columns)


def join_counters(columns: Columns) -> None:
    """Make one counter of several spellings that take turns, each record having one, if together they ascend."""
    for counter in COUNTERS:
        spellings = sorted((raw for raw in columns if canonical(raw) == counter), key=rank)
        for raw in spellings[1:]:
            joined = columns[spellings[0]].joined(columns[raw])
            if joined is not None and bool(np.all(np.diff(joined.values()) >= 0)):
                columns[spellings[0]] = joined
                del columns[raw]


def join_cut_box(columns: Columns) -> None:
    """Take what stands under no section because the log begins inside of a box for what it is in the later boxes.

    The first record of Stable-Baselines then has a `value_loss`, and all others a `train/value_loss`.
    """
    below: dict[str, list[str]] = {}
    for column in columns:
        if "/" in column:
            below.setdefault(column.rpartition("/")[2], []).append(column)
    for raw in [raw for raw in columns if "/" not in raw and len(columns[raw]) == 1]:
        later = [text for text in below.get(raw, ()) if canonical(text) == canonical(raw)]
        if len(later) == 1 and columns[raw].arrays()[0][0] < columns[later[0]].arrays()[0][0]:
            joined = columns[raw].joined(columns[later[0]])
            if joined is not None:
                columns[later[0]] = joined
                del columns[raw]


def _means_over_epochs(columns: Columns) -> set[str]:
    """Return what is named as training next to the same of a single batch that is logged no more often.

    "Train Loss", as it is printed at the end of an epoch, is its mean, and what evaluation is compared with; the loss
    of a bar, or of the batch that is printed once in an epoch, is that of one batch. `train_loss` is so next to a bare
    name that is logged far less often.
    """
    train = {raw for raw in columns if _OF_TRAINING.match(raw) and canonical(raw) in ("loss", "accuracy")}
    bare = {canonical(raw): len(columns[raw]) for raw in columns if raw.lower() in _BARE}
    often = {raw: len(columns[raw]) if " " in raw else len(columns[raw]) // TIMES_AS_OFTEN for raw in train}
    return {raw for raw in train if bare.get(canonical(raw), len(columns[raw]) + 1) <= often[raw]}


OF_ANSWERS, OTHER_REWARDS = "critic/rewards/mean", ("critic/returns/mean", "critic/process_rewards/mean")
"""What verl calls the rewards of whole answers, and what else it calls rewards: targets of the critic, and turns."""


def named_columns(columns: Columns) -> tuple[Columns, list[str]]:
    """Give each column its canonical name; of several that claim one role the closest gets it.

    That is the one whose name is plainest, then the one with most values: the others keep their own names. What stands
    under several namespaces that are not understood are parts, as of an encoder and a decoder.

    Args:
        columns: By the names that they were logged with.

    Returns:
        The columns under their names, in the order in which they came, and notes on what was chosen.
    """
    named: Columns = {}
    notes: list[str] = []
    taken: dict[str, str] = {}
    numbers: dict[str, Iterator[int]] = {}
    means, parts = _means_over_epochs(columns), _in_unknown_places(columns)
    later = OTHER_REWARDS if OF_ANSWERS in columns else ()
    for raw in sorted(
        columns,
        key=lambda raw: (raw not in means, raw in later, rank(raw), -len(columns[raw]), raw != canonical(raw)),
    ):
        name = shorten(raw if raw in parts else canonical(raw), MAX_NAME)
        if name in named:
            both = f"{shorten(taken[name], 60)!r} and {shorten(raw, 60)!r}"
            notes.append(f"{both} both name the {name}: the first is read as it")
            # Names that differ in what cannot be seen are told apart by a number.
            own = shorten(raw, MAX_NAME)
            further = (f"{own} ({number})" for number in numbers.setdefault(own, count(2)))
            name = next(text for text in chain([own], further) if text not in named)
        taken[name] = raw
        column = columns[raw]
        if canonical(raw) == name and factor(raw) != 1.0:
            column.scale(factor(raw))
        column.logged_as = column.logged_as or (raw if raw != name else "")
        named[name] = column
    order = {id(column): position for position, column in enumerate(columns.values())}
    return dict(sorted(named.items(), key=lambda item: order[id(item[1])])), notes


def _in_unknown_places(columns: Columns) -> set[str]:
    """Return the columns of one role that stand under several namespaces that are not understood."""
    places: dict[str, list[str]] = {}
    for raw in columns:
        role = role_of(raw)
        if role is not None and role.namespace and role.name:
            places.setdefault(role.name, []).append(raw)
    return {raw for several in places.values() if len(several) > 1 for raw in several}


# Metrics of pairs of answers under names that mean something else in the training of a policy.

_OF_POLICIES = frozenset({
    Quantity.REWARD, Quantity.REWARD_SPREAD, Quantity.KL, Quantity.APPROXIMATE_KL, Quantity.ENTROPY,
    Quantity.COMPLETION_LENGTH, Quantity.POLICY_LOSS, Quantity.VALUE_LOSS, Quantity.EPISODE_LENGTH,
})  # fmt: skip
"""What is logged where a policy is rewarded: an accuracy of the reward is then one of its rewards."""


def pairs(columns: Columns) -> str | None:
    """`reward_accuracy` is how often the chosen answer has the higher reward, and `train-margin` by how much."""
    roles = {name: role for name in columns if (role := role_of(name)) is not None}
    quantities = {role.quantity for role in roles.values() if role.is_whole}
    is_reward_model = {Quantity.MARGIN, Quantity.ACCURACY} <= quantities and _OF_POLICIES & quantities == {
        Quantity.REWARD
    }
    if PAIRS.isdisjoint(quantities) and not (is_reward_model or _OF_POLICIES.isdisjoint(quantities)):
        return None
    notes = []
    for old, role in roles.items():
        new = _name(role)
        if new and new not in columns and not _is_setting(columns[old]):
            columns[new] = columns.pop(old)
            notes.append(f"{old!r} is read as {new}, of pairs of answers")
    return "; ".join(notes) or None


def _is_setting(column: Column) -> bool:
    """Say whether a column holds the same number everywhere, as the margin of a loss that is printed with it."""
    value = column.values()
    return len(value) > 2 and bool(np.all(value == value[0]))


def _name(role: Role) -> str:
    """Return the name that a metric of pairs has elsewhere, "" if it is none or has it."""
    phase = "eval_" if role.is_evaluation else ""
    if role.quantity is Quantity.ACCURACY and role.part == "reward" and role.is_level:
        return f"{phase}{Quantity.REWARD_ACCURACY}"
    return f"{phase}{Quantity.MARGIN}" if role.quantity is Quantity.MARGIN and role.is_whole else ""


# Times, counters, shares and memory whose unit, or what they are of, only their numbers tell.

RATES = ("eta", "η")
"""Symbols of papers for the learning rate."""
BARE_SECONDS = {
    unit: SECONDS[unit]
    for unit in ("s", "sec", "secs", "second", "seconds", "ms", "msec", "min", "mins", "minutes", "hrs", "hours")
}
"""Units of time that columns are called by alone, in seconds."""
CLOCKS_ALONE = ("min", "mins", "minutes", "hrs", "hours")
"""... and those that do not fit a step: a column is a clock, or it is something else, such as the least of values."""
_NEXT_TO_LEAST = {"max", "maximum", "avg", "average", "mean", "median", "std"}
"""What stands next to `min` where it is the least of values, as in the tables of DEAP."""
_NO_MEASURE = NAMESPACES | {*PHASES.values(), "time"}
WAITS = ("data", "load", "loading", "fetch", "io", "input", "feed", "batch_load", "wait", "waits", "stall")
"""What columns are called that hold the wait for data, next to the time of the step."""
HARDLY_EVER_LONGER = 0.95
"""Share of the records in which a wait is within its step. Chosen: two clocks are rounded apart."""
MOST_GIB = 512.0
"""GiB that no process has of a device: a larger number without a unit is in MiB. Chosen: devices of today have 288."""
MIB, BYTES = 2.0**-10, 2.0**-30


_WHOLES = ("total", "whole", "overall")
"""What the time of a step is called next to a wait that is a part of it."""


def time_and_data(columns: Columns) -> str | None:
    """`data` next to the time of a step (`time`, `batch`), in as many records, hardly ever longer: the wait.

    Next to a wait, `total` is the time of the step that it is a part of.
    """
    known = called(columns, "data_time")
    waits = [known] if known else [name for name in columns if _bare(name) in WAITS]
    wholes = [name for name in columns if canonical(name) == "step_time" or _bare(name) in ("time", "batch")]
    if known and wholes:
        return None
    wholes = wholes or [name for name in columns if _bare(name) in _WHOLES]
    if len(waits) != 1 or len(wholes) != 1:
        return None
    time, data = columns[wholes[0]], columns[waits[0]]
    if len(time) == len(data) and float(np.mean(data.values() <= time.values())) >= HARDLY_EVER_LONGER:
        rename(columns, waits[0], "data_time")
        if _bare(wholes[0]) in ("batch", *_WHOLES):  # Pointcept and semseg: "Data 0.002 (0.574) Batch 0.818 (3.887)"
            rename(columns, wholes[0], "step_time")
    return None


_OF_NEXT_BATCH = ("next", "wait", "fetch", "data")
"""What a wait for data is called next to the time of a computation, without the word "time" and brackets."""


def time_and_computation(columns: Columns) -> str | None:
    """`next() time` next to `compute time`, without the time of a step: together they are the step."""
    if not any("compute" in name for name in columns) or called(columns, "data_time") or called(columns, "step_time"):
        return None
    bare = {name: " ".join(word for word in pieces_of(_bare(name)) if word not in ("time", "t")) for name in columns}
    waits = [name for name, words in bare.items() if words in _OF_NEXT_BATCH]
    computations = [name for name, words in bare.items() if words == "compute"]
    if len(waits) != 1 or len(computations) != 1 or len(columns[waits[0]]) != len(columns[computations[0]]):
        return None
    rename(columns, waits[0], "data_time")
    rename(columns, computations[0], "compute_time")
    return None


TIMES_OF_ONE = 3.0
"""Times that may be printed in ms and in s and be of the same thing. Chosen: what lies further apart is of another."""


def time_in_two_units(columns: Columns) -> str | None:
    """`time=950ms` was read as the time of a step; `time=1.05s` in other records of the log is the same."""
    bare = next((name for name in columns if _is_bare_time(name)), "")
    if not bare or "step_time" not in columns:
        return None
    (rows, value), (others, other) = columns["step_time"].arrays(), columns[bare].arrays()
    medians = sorted((median(value), median(other)))
    if len(np.intersect1d(rows, others)) or not 0 < medians[1] <= TIMES_OF_ONE * medians[0]:
        return None
    at = np.concatenate([rows, others])
    order = np.argsort(at)
    columns["step_time"] = Column.of(at[order], np.concatenate([value, other])[order])
    del columns[bare]
    return None


LEAST_OF_A_RECORD = 1e-4
"""Seconds that a clock moves by at least from one record to the next. Chosen: no step is as short, and a mean of the
times of all steps moves by less."""


def clock(columns: Columns) -> str | None:
    """A column `time` is the time of a step next to a data_time; else, where it only goes up, it is a clock.

    One that is called by a unit of time alone, or is a time in a unit, is a clock where it goes up; else the time
    of a step.
    """
    for name in columns:
        unit = _unit_of_time(name)
        if unit is None and not _is_bare_time(name):
            continue
        if {"step_time", "elapsed"} & {canonical(column) for column in columns}:
            return None
        if _bare(name) == "min" and any(_bare(other) in _NEXT_TO_LEAST for other in columns):
            continue
        value = columns[name].values()
        goes_up = len(value) > 2 and bool(np.all(np.diff(value) >= 0)) and value[-1] > value[0]
        creeps = goes_up and value[-1] - value[0] < LEAST_OF_A_RECORD * (len(value) - 1)  # a mean of all steps so far
        goes_up = goes_up and not creeps
        if _bare(name) in CLOCKS_ALONE and not goes_up:
            continue
        if unit is not None:
            columns[name].scale(unit)
        if "data_time" in columns or creeps or (unit is not None and not goes_up):
            columns["step_time"] = columns.pop(name)
        elif goes_up:
            columns["elapsed"] = columns.pop(name)
        called = "elapsed time" if "elapsed" in columns else "step_time"
        return f"{name!r} is read as the {called}" if unit is not None else None
    return None


def _unit_of_time(name: str) -> float | None:
    """Return the seconds in the unit that a name is all of, or in that of a bare time: `ms`, "time (ms)"."""
    if role_of(name) is not None:
        return None
    words = _words(name)
    unit = BARE_SECONDS.get(_bare(name))
    if unit is not None:
        return unit if {*words[:-1]} <= _NO_MEASURE else None  # "audio/s" is a rate
    return SECONDS.get(words[-1]) if words and words[:-1] in (["time"], ["train", "time"]) else None


def _is_bare_time(name: str) -> bool:
    return name in ("time", "Time", "train/time") or (not name.isascii() and _words(name) == ["time"])


def _words(name: str) -> list[str]:
    return [word for segment in segments_of(name[:MAX_NAME]) for word in segment]


def _bare(name: str) -> str:
    """Return a name without what it stands below: `train/sec` is sec."""
    return name.rpartition("/")[2].strip().lower()


SAME_WORK = 1.02
"""Times by which the product of a pace and a time may vary where one is worked out of the other. Chosen: both are
rounded."""
MIN_TIMES = 3
"""Values of a time that tell whether it is of each record. Chosen by hand."""
SHARE_OF_SHORTER_TIMES = 0.2
"""Share of records with a shorter time than the one before, from which on it is the time of each. Chosen: resumes are
rarer."""


def time_of_record(columns: Columns) -> str | None:
    """An elapsed time that falls again and again, or that a pace is worked out of, is the time of each record."""
    name = next((name for name in columns if canonical(name) == "elapsed"), "")
    if not name or called(columns, "step_time") or len(columns[name]) < MIN_TIMES:
        return None
    rows, value = columns[name].arrays()
    if not (
        _is_shorter_at_times(value) or any(_is_pace_of(columns[pace], rows, value) for pace in columns if is_pace(pace))
    ):
        return None
    rename(columns, name, "step_time")
    return f"{name!r} is read as the time of each record: it does not go on over the run"


def _is_shorter_at_times(time: Floats) -> bool:
    """Say whether times fall often and by some, and never to the beginning, as a clock of each epoch does."""
    falls = time[:-1] - time[1:]
    shorter = falls[falls > 0]
    often = len(shorter) >= SHARE_OF_SHORTER_TIMES * len(falls) and len(shorter) > 0
    by_some = often and float(shorter.mean()) > (SAME_WORK - 1.0) * float(time.max())
    return bool(by_some and time.min() > MIN_LEAST_OF_COUNT * time.max())


def _is_pace_of(pace: Column, rows: Rows, time: Floats) -> bool:
    """Say whether a pace and a time have the same product in all records, though both change."""
    at, value = pace.arrays()
    _, of_time, of_pace = np.intersect1d(rows, at, return_indices=True)
    seconds, work = time[of_time], time[of_time] * value[of_pace]
    if len(work) < MIN_TIMES or not bool(np.all(work > 0)):
        return False
    return bool(work.max() <= SAME_WORK * work.min() and seconds.max() > SAME_WORK * seconds.min())


def cost_of_an_agent(columns: Columns) -> str | None:
    """The cost next to a reward and the losses of an agent is what its constraint counts, not a loss."""
    roles = {role.quantity for name in columns if (role := role_of(name)) is not None and role.is_whole}
    cost = next((name for name in columns if canonical(name) == "loss" and _words(name)[-1:] == ["cost"]), "")
    if not cost or Quantity.REWARD not in roles or not {Quantity.POLICY_LOSS, Quantity.VALUE_LOSS} <= roles:
        return None
    rename(columns, cost, "constraint")
    return f"{cost!r} is read as what a constraint counts: the losses of the agent are logged, too"


def rates(columns: Columns) -> str | None:
    """`eta` is the learning rate unless it is a time that is left, which is longer than that or gets shorter."""
    if called(columns, "learning_rate"):
        return None
    for name in [column for column in columns if _bare(column) in RATES]:
        value = columns[name].values()
        if len(value) and bool(np.all((value >= 0) & ((value < 1) | (value == value[0])))):
            columns["learning_rate"] = columns.pop(name)
            return f"{name!r} is read as learning_rate"
    return None


def percentages(columns: Columns) -> str | None:
    """An accuracy above one is a percentage."""
    found = [
        name
        for name, column in columns.items()
        if canonical(name) in ("accuracy", "eval_accuracy", "mean_token_accuracy", "rewards/accuracies")
        and len(column)
        and float(np.nanmax(np.append(column.values(), 0.0))) > 1.5
    ]
    return f"{', '.join(found[:3])}: in percent" if found else None


def memory(columns: Columns) -> str | None:
    """A memory without a unit that no device has in GiB is in MiB, as MMEngine and nvidia-smi write it, or in bytes."""
    notes = []
    for name, column in columns.items():
        role = role_of(name)
        if role is None or not role.quantity.is_memory or role.unit or not len(column):
            continue
        most = float(np.nanmax(np.append(column.values(), 0.0)))
        unit = next((unit for unit in (1.0, MIB, BYTES) if most * unit <= MOST_GIB), 1.0)
        if unit != 1.0:
            column.scale(unit)
            notes.append(f"{name!r} is read in {'MiB' if unit == MIB else 'bytes'} by its size")
    return "; ".join(notes[:3]) or None


def batch_in_epoch(columns: Columns) -> str | None:
    """An epoch and a batch without a step: the batch counts inside the epoch."""
    names = {name.lower(): name for name in columns}
    if "epoch" in names and "batch" in names and not called(columns, "step"):
        columns["step"] = columns.pop(names["batch"])
    return None


# Which metrics are of training and which of evaluation, where their names do not say it, or name both.


def of_training_inside(columns: Columns) -> str | None:
    """`val/train_acc` next to `val/acc` is of training: the evaluation measured both."""
    names = []
    for name in list(columns):
        place, mark, inside = name.rpartition("/")
        bare = inside.removeprefix("train_")
        is_both = mark and bare != inside and phase_in(place) == "eval" and f"{place}/{bare}" in columns
        if is_both and all(canonical(column) != canonical(inside) for column in columns):
            rename(columns, name, inside)
            names.append(name)
    return f"{', '.join(names[:3])}: read as of training" if names else None


_NO_SET = frozenset({"best", "ema", "swa", "avg", "mean", "smooth", "smoothed", "running", "total", "delta", "gap"})
"""Words in front of a measure that name no rows."""
_WORD_AND_MEASURE = regex(r"(?P<word>[^\W\d_]{2,20})(?P<between>[ _/])(?P<measure>\w[\w /.-]{0,40})")
LEAST_MEASURES_OF_SETS = 2
"""Measures that training, evaluation and another word have in common. Chosen: one may be a part of a sum."""


def sets_by_their_kin(columns: Columns) -> str | None:
    """A word is a set of evaluation that has each measure which training and evaluation have: `later auc`."""
    of_phases: dict[str, set[str]] = {"train": set(), "eval": set()}
    of_others: dict[tuple[str, str], set[str]] = {}
    for found in filter(None, map(_WORD_AND_MEASURE.fullmatch, columns)):
        word, between, measure = found.groups()
        phase = phase_in(word)
        (of_phases[phase] if phase else of_others.setdefault((word, between), set())).add(measure)
    shared = of_phases["train"] & of_phases["eval"]
    if len(shared) < LEAST_MEASURES_OF_SETS:
        return None
    sets = [key for key, measures in of_others.items() if measures >= shared and key[0] not in _NO_SET]
    for word, between in sets:
        for measure in shared:
            rename(columns, f"{word}{between}{measure}", f"eval_{word}/{measure}")
    named = ", ".join(word for word, _ in sets)
    return f"{named}: read as evaluations, as they have the measures of training and evaluation" if sets else None


def metrics_of_validation(columns: Columns) -> str | None:
    """fastai: what accompanies `train_loss` and `valid_loss`, as often as they do, is of validation."""
    if not {"train_loss", "valid_loss"} <= columns.keys():
        return None
    at, names = columns["valid_loss"].arrays()[0], {canonical(name) for name in columns}
    as_validation = []
    for name in list(columns):
        role = role_of(name)
        scores = role is not None and (role.quantity.higher_is_better or role.quantity.lower_is_better)
        paired = f"train_{name}" in columns
        bare = (role is None or not role.phase) and (scores or paired) and canonical(f"eval_{name}") not in names
        if bare and np.array_equal(columns[name].arrays()[0], at):
            columns[f"eval_{name}"] = columns.pop(name)
            as_validation.append(name)
    return f"{', '.join(as_validation[:3])}: read as of validation, as fastai logs them" if as_validation else None


# What a log means beyond its names: conventions that show only when all columns are known.


@dataclass(frozen=True, slots=True)
class AppliedConventions:
    """What the conventions that hold for a log say of it.

    Args:
        notes: What was read otherwise than its names say.
        settings: What they tell of the configuration.
        counter_is_guessed: What counts the records has a name that nobody knows.
    """

    notes: tuple[str, ...]
    settings: Mapping[str, str]
    counter_is_guessed: bool


def apply(columns: Columns, choose: Callable[[Mapping[str, int]], str]) -> AppliedConventions:
    """Apply every convention to the columns of a log (raw name → column), in place.

    `choose` returns which run is read, of several by the number of their values.
    """
    wide_export(columns, choose)
    settings = {BOOSTER: "trees"} if is_boosted(columns) else {}
    notes = {convention: note for convention in _CONVENTIONS if (note := convention(columns))}
    return AppliedConventions(tuple(notes.values()), settings, counter_is_guessed=lone_counter in notes)


LEAST_ZERO_NORMS = 5
"""Records whose gradient norm is zero before it counts as not measured; chosen by hand."""
LEAST_CHANGE_OF_LOSS = 0.1
"""Share of its first level by which a loss changes that is trained; chosen by hand."""


def unmeasured_norm(columns: Columns) -> str | None:
    """Coqui's trainer logs a gradient norm of 0 where it clips nothing: while the loss moves, that was not measured."""
    norms = [name for name in columns if canonical(name) == "grad_norm"]
    losses = [name for name in columns if canonical(name) == "loss"]
    if not norms or not losses or len(columns[norms[0]]) < LEAST_ZERO_NORMS or columns[norms[0]].arrays()[1].any():
        return None
    values = columns[losses[0]].arrays()[1]
    third = len(values) // 3
    if len(values) < LEAST_ZERO_NORMS or not np.isfinite(values[:third]).all():
        return None
    # The loss of untrained weights moves from batch to batch as well; but it neither falls nor blows up.
    first, last = median(values[:third]), median(values[-third:])
    if abs(last - first) <= LEAST_CHANGE_OF_LOSS * abs(first):
        return None
    del columns[norms[0]]
    return f"{norms[0]} is 0 at all records while the loss moves: it was not measured and is left out"


_CONVENTIONS: tuple[Callable[[Columns], str | None], ...] = (
    *OF_FRAMEWORKS,
    *CONVENTIONS_OF_SHORT_NAMES,
    unmeasured_norm,
    shares_of_phases,
    time_and_data,
    time_and_computation,
    time_in_two_units,
    clock,
    time_of_record,
    cost_of_an_agent,
    lone_counter,
    rates,
    percentages,
    memory,
    *CONVENTIONS_OF_REWARDS,
    pairs,
    sets_by_their_kin,
    *CONVENTIONS_BEFORE_LOSSES,
    *CONVENTIONS_OF_LOSSES,
    *CONVENTIONS_AFTER_LOSSES,
    metrics_of_validation,
    *CONVENTIONS_OF_EVALUATIONS,
    of_training_inside,
    scores_of_evaluation,
    batch_in_epoch,
    filtered_nan,
)
