"""What a log means beyond its names: conventions that show only when all columns are known.

Each is a function that changes the columns where its convention holds, and says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from mldebug_mcp.logs.columns import Column, stretches_of
from mldebug_mcp.logs.names import canonical, normal
from mldebug_mcp.logs.several import choose_run
from mldebug_mcp.logs.steps import ascends

if TYPE_CHECKING:
    from mldebug_mcp.logs.builder import RunBuilder

Columns = dict[str, Column]

_PERPLEXITIES = ("ppl", "perplexity", "PPL", "Perplexity")
HELD = 3
"""Records with one evaluation loss, on average, from which on it is one that is printed again; chosen by hand."""
_EXPORT = re.compile(r"(?P<run>.+?) - (?P<metric>.+?)(?P<bound>__MIN|__MAX)?")


_PART = re.compile(r"(?:box|obj|cls|dfl|seg|pose|kobj|rle|angle)_loss")


def apply(builder: RunBuilder, columns: Columns) -> None:
    """Apply every convention to the columns of a log (raw name → column); the builder is told what held."""
    wandb_export(builder, columns)
    for convention in _CONVENTIONS:
        note = convention(columns)
        if note:
            builder.note(note)


def wandb_export(builder: RunBuilder, columns: Columns) -> None:
    """CSV exported from a W&B chart: "run - metric" beside "run - metric__MIN" and "__MAX".

    The bounds of a chart's bucket are no metrics. Where the chart shows several runs, one is read.
    """
    found = {name: match for name in columns if (match := _EXPORT.fullmatch(name))}
    if not any(match["bound"] for match in found.values()):
        return
    sizes: dict[str, int] = {}
    for name, match in found.items():
        sizes[match["run"]] = max(sizes.get(match["run"], 0), len(columns[name]))
    chosen = choose_run(builder, "the export", sizes, {})
    for name, match in found.items():
        column = columns.pop(name)
        if match["run"] == chosen and not match["bound"]:
            columns[match["metric"]] = column


def warmup_of_biases(columns: Columns) -> str | None:
    """Ultralytics: the biases, group 0, warm up from a high rate of their own; the weights are group 1."""
    for biases, weights in (("lr/pg0", "lr/pg1"), ("x/lr0", "x/lr1")):
        if not {biases, weights} <= columns.keys() or "learning_rate" in columns:
            continue
        if not np.array_equal(columns[biases].values(), columns[weights].values(), equal_nan=True):
            columns["learning_rate"] = columns.pop(weights)
            return f"learning_rate is {weights}, the rate of the weights: {biases} is that of the biases"
    return None


def gym_monitor(columns: Columns) -> str | None:
    """Gym's and Stable-Baselines' monitor.csv: r, l, t are return, length and time of each episode."""
    if not {"r", "l", "t"} <= columns.keys() or len(columns) > 5:
        return None
    for old, new in (("r", "reward"), ("l", "episode_length"), ("t", "elapsed")):
        columns[new] = columns.pop(old)
    at, length = columns["episode_length"].arrays()
    columns["step"] = Column()
    columns["step"].extend(stretches_of(at), np.cumsum(length))
    return "an episode monitor (r, l, t): steps are environment steps, the sum of the episodes' lengths"


_SCORES = (
    "average_score",
    "avg_score",
    "mean_score",
    "score",
    "total_reward",
    "total_score",
    "rewards",
    "r",
)
"""What episodes are said to bring where nothing is called their reward, the smoothest first."""


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
    if score is None or any(canonical(name) == "reward" for name in columns):
        return None
    columns["reward"] = columns.pop(score)
    return f"{score!r} of the episodes is read as the reward"


_BOOSTED = re.compile(
    r"(?:(?P<train>d?train(?:ing)?)|d?(?:eval|valid|validation|test)(?:_\d+)?)(?:'s |-|/)(?P<measure>[\w@.-]+)"
)
_BOOSTED_LOSSES = (
    "logloss", "mlogloss", "binary_logloss", "multi_logloss", "cross_entropy", "rmse", "l2", "mse", "mae", "l1",
    "rmsle", "mape", "huber", "quantile", "poisson", "gamma", "tweedie", "poisson-nloglik", "gamma-nloglik",
    "cox-nloglik",
)  # fmt: skip


def boosted_trees(columns: Columns) -> str | None:
    """XGBoost, LightGBM and CatBoost name a loss by its measure and the part of the data: "train-rmse", "valid_0's l2".

    The loss is the first of their measures that is one; of several parts to evaluate on, the last counts, as it does
    for early stopping.
    """
    if {"learn", "test", "best"} <= columns.keys():
        return _catboost(columns)
    found = [match for name in columns if (match := _BOOSTED.fullmatch(name))]
    measure = next((match["measure"] for match in found if match["measure"] in _BOOSTED_LOSSES), None)
    if measure is None or any(canonical(name) in ("loss", "eval_loss") for name in columns):
        return None
    parts = [match for match in found if match["measure"] == measure]
    trained = next((match.string for match in parts if match["train"]), None)
    evaluated = [match.string for match in parts if not match["train"]]
    named = {"loss": trained, "eval_loss": evaluated[-1] if evaluated else None}
    for new, old in named.items():
        if old is not None:
            columns[new] = columns.pop(old)
    return ", ".join(f"{old!r} is read as the {new}" for new, old in named.items() if old is not None)


def _catboost(columns: Columns) -> str | None:
    for old, new in (("total", "elapsed"), ("remaining", "eta")):
        if old in columns:
            columns[new] = columns.pop(old)
    best = columns["best"].values()
    if best[-1] > best[0]:
        return None  # an accuracy: what is best goes up
    for old, new in (("learn", "loss"), ("test", "eval_loss")):
        columns[new] = columns.pop(old)
    return "'learn' is read as the loss, 'test' as the eval_loss"


def linear_model(columns: Columns) -> str | None:
    """scikit-learn's SGD prints the norm of its weights: no gradient's."""
    if {"Norm", "NNZs"} <= columns.keys():
        columns["weight_norm"] = columns.pop("Norm")
    return None


def cross_entropy(columns: Columns) -> str | None:
    """MXNet's loss is its cross-entropy; beside a loss it is another measure, such as Marian's of whole sentences."""
    if any(canonical(name) in ("loss", "eval_loss") for name in columns):
        return None
    names = {normal(name): name for name in columns}
    told = []
    for prefixes, total in ((("", "train_"), "loss"), (("eval_", "val_", "validation_"), "eval_loss")):
        found = next((names[f"{one}cross_entropy"] for one in prefixes if f"{one}cross_entropy" in names), None)
        if found is not None:
            columns[total] = columns.pop(found)
            told.append(f"{found!r} is read as the {total}")
    return ", ".join(told) or None


def time_and_data(columns: Columns) -> str | None:
    """`time` beside `data`, in the same records and never shorter: of a step, and the wait for its data in it."""
    names = {name.lower(): name for name in columns if name.lower() in ("time", "data")}
    if len(names) == 2 and "data_time" not in columns:
        time, data = columns[names["time"]], columns[names["data"]]
        if len(time) == len(data) and bool(np.all(data.values() <= time.values())):
            columns["data_time"] = columns.pop(names["data"])
    return None


def clock(columns: Columns) -> str | None:
    """A column `time` is the time of a step beside a data_time; else, where it only goes up, it is a clock."""
    for name in ("time", "Time", "train/time"):
        if name in columns and not {"step_time", "elapsed"} & columns.keys():
            value = columns[name].values()
            if "data_time" in columns:
                columns["step_time"] = columns.pop(name)
            elif len(value) > 2 and bool(np.all(np.diff(value) >= 0)) and value[-1] > value[0]:
                columns["elapsed"] = columns.pop(name)
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
    told = []
    for total, prefixes in (("loss", ("train/", "")), ("eval_loss", ("val/",))):
        for prefix in prefixes:
            parts = [name for name in columns if _PART.fullmatch(name.removeprefix(prefix)) and name.startswith(prefix)]
            if len(parts) < 2 or any(canonical(name) == total for name in columns):
                continue
            at = [columns[name].arrays()[0] for name in parts]
            if all(np.array_equal(at[0], one) for one in at):
                columns[total] = Column()
                columns[total].extend(stretches_of(at[0]), np.sum([columns[name].values() for name in parts], axis=0))
                told.append(f"{total} is the sum of {', '.join(parts)}")
    return "; ".join(told) or None


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


def perplexity_alone(columns: Columns) -> str | None:
    """A perplexity is e to the power of the loss: where only it was logged, the loss is its logarithm."""
    names = {canonical(name): name for name in columns}
    train = next((names[name] for name in _PERPLEXITIES if name in names), None)
    evaluation = next((names[f"eval_{name}"] for name in _PERPLEXITIES if f"eval_{name}" in names), None)
    if "loss" not in names and train is not None:
        columns["loss"] = _logarithm(columns[train])
    elif "loss" not in names or train is None or not _is_power(columns[names["loss"]], columns[train]):
        return None  # whether an evaluation's perplexity is in the units of the loss is not known
    if "eval_loss" not in names and evaluation is not None:
        columns["eval_loss"] = _logarithm(columns[evaluation])
    elif "loss" in names:
        return None
    return "the loss is worked out from the perplexity where it was not logged: its natural logarithm"


def _logarithm(column: Column) -> Column:
    at, value = column.arrays()
    loss = Column()
    with np.errstate(divide="ignore", invalid="ignore"):
        loss.extend(stretches_of(at), np.log(value))
    return loss


def _is_power(loss: Column, perplexity: Column) -> bool:
    """Say whether a perplexity is e to the power of a loss that was logged with it."""
    at, value = loss.arrays()
    beside, power = perplexity.arrays()
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        apart = np.abs(np.log(power[np.isin(beside, at)]) - value[np.isin(at, beside)])
    return bool(np.nanmedian(np.append(apart, np.inf)) < 0.05) if len(apart) else False


def held_evaluation(columns: Columns) -> str | None:
    """LitGPT and NeMo print the last evaluation loss again with every training record until the next evaluation.

    Only the records where it changes are evaluations. When the first value was worked out, the log does not say.
    """
    loss = next((column for name, column in columns.items() if canonical(name) == "loss"), None)
    name = next((name for name in columns if canonical(name) == "eval_loss"), "")
    if loss is None or not name:
        return None
    at, value = columns[name].arrays()
    changes = np.flatnonzero(value[1:] != value[:-1]) + 1
    if len(value) < HELD * (len(changes) + 1) or float(np.isin(at, loss.arrays()[0]).mean()) < 0.9:
        return None
    if not len(changes) and not _within_an_epoch(columns):
        return None  # an evaluation that always comes out the same
    first = at[0] > loss.arrays()[0][0]  # printed only once there had been an evaluation
    kept = np.concatenate([[0], changes]) if first else changes
    columns.pop(name)
    if len(kept):
        columns[name] = Column()
        columns[name].extend(stretches_of(at[kept]), value[kept])
    unknown = "" if first else ", that of the first ones was worked out before the log begins and is left out"
    return f"{name} is printed again with each record: only records where it changes are evaluations{unknown}"


def _within_an_epoch(columns: Columns) -> bool:
    epoch = next((column.values() for name, column in columns.items() if canonical(name) == "epoch"), None)
    return epoch is not None and len(epoch) > 2 * len(np.unique(epoch))


def batch_in_epoch(columns: Columns) -> str | None:
    """An epoch and a batch without a step: the batch counts inside the epoch."""
    names = {name.lower(): name for name in columns}
    if "epoch" in names and "batch" in names and not any(canonical(name) == "step" for name in columns):
        columns["step"] = columns.pop(names["batch"])
    return None


def filtered_nan(columns: Columns) -> str | None:
    """The Trainer hides a NaN loss behind the mean of the others unless logging_nan_inf_filter is off."""
    if not {"loss", "grad_norm", "learning_rate", "epoch"} <= columns.keys():
        return None
    bad = ~np.isfinite(columns["grad_norm"].values())
    if not bad.any():
        return None
    at, (loss_at, loss) = columns["grad_norm"].arrays()[0], columns["loss"].arrays()
    hidden = int(np.isin(loss_at[np.isfinite(loss)], at[bad]).sum())
    if not hidden:
        return None
    return (
        f"{hidden} record(s) have a finite loss beside a gradient norm of NaN or Inf: the Trainer logs the mean of the "
        "other steps in place of a NaN loss (logging_nan_inf_filter)"
    )


_CONVENTIONS: tuple[Callable[[Columns], str | None], ...] = (
    gym_monitor,
    episodes,
    boosted_trees,
    linear_model,
    warmup_of_biases,
    moments,
    sum_of_parts,
    cross_entropy,
    time_and_data,
    clock,
    percentages,
    perplexity_alone,
    held_evaluation,
    batch_in_epoch,
    filtered_nan,
)
