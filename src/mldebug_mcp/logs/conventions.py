"""What a log means beyond its names: conventions that show only when all columns are known.

Each is a function that changes the columns where its convention holds, and says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from mldebug_mcp.logs.columns import Column, Columns, stretches_of
from mldebug_mcp.logs.framework_columns import OF_FRAMEWORKS, is_boosted, wandb_export
from mldebug_mcp.logs.kinds import BOOSTER
from mldebug_mcp.logs.names import canonical, is_evaluation, is_telling, normal
from mldebug_mcp.logs.roles import Quantity, role_of
from mldebug_mcp.logs.roles.grammar import MAX_NAME
from mldebug_mcp.logs.run import Floats

_PERPLEXITIES = ("ppl", "perplexity", "PPL", "Perplexity")
HELD = 3
"""Records with one evaluation loss, on average, from which on it is one that is printed again; chosen by hand."""
LEAST_HELD = 2
"""Records from one change to the next, as a rule, where an evaluation is printed again until the next one."""


@dataclass(frozen=True, slots=True)
class Held:
    """What the conventions that hold for a log say of it.

    Args:
        notes: What was read otherwise than its names say.
        settings: What they tell of the configuration.
    """

    notes: tuple[str, ...]
    settings: Mapping[str, str]


def apply(columns: Columns, choose: Callable[[Mapping[str, int]], str]) -> Held:
    """Apply every convention to the columns of a log (raw name → column), in place.

    Args:
        columns: By the names that they were logged with.
        choose: Returns which run is read, of several by the number of their values.
    """
    wandb_export(columns, choose)
    settings = {BOOSTER: "trees"} if is_boosted(columns) else {}
    notes = tuple(note for convention in _CONVENTIONS if (note := convention(columns)))
    return Held(notes, settings)


def time_and_data(columns: Columns) -> str | None:
    """`time` or `batch` beside `data`, in the same records and never shorter: of a step, and the wait for its data."""
    names = {name.lower(): name for name in columns if name.lower() in ("time", "batch", "data")}
    if len(names) == 2 and "data" in names and "data_time" not in columns:
        whole = names["time" if "time" in names else "batch"]
        time, data = columns[whole], columns[names["data"]]
        if len(time) == len(data) and bool(np.all(data.values() <= time.values())):
            columns["data_time"] = columns.pop(names["data"])
            if "batch" in names:  # Pointcept and semseg: "Data 0.002 (0.574) Batch 0.818 (3.887)"
                columns["step_time"] = columns.pop(whole)
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


_ERRORS = ("total", "nll", "bce", "ce", "mse", "rmse", "mae", "l1", "l2")
_HELD_OUT = ("val", "valid", "validation", "test", "eval", "dev")
_OF_HELD_OUT = "|".join(_HELD_OUT)
_MEAN_REWARDS = frozenset({"reward_mean", "rewards_mean", "mean_reward"})
_POLICY = frozenset({Quantity.KL, Quantity.APPROXIMATE_KL, Quantity.ENTROPY, Quantity.COMPLETION_LENGTH})
"""What the training of a policy logs, and that of a reward model does not."""
_OF_AGENTS = frozenset({Quantity.EXPLAINED_VARIANCE, Quantity.POLICY_LOSS, Quantity.VALUE_LOSS})
"""What agents alone log."""
LEAST_BARE = 4
"""Records of losses that are called by their phase alone; chosen by hand."""
_NO_LOSS_OF_ITS_OWN = re.compile(
    r"^(?!loss)\w+/|policy|value|critic|actor|entropy|reward|kl|aux|reg(?:ular|_)|gen|dis[ck]|(?:^|_)[dgqv](?:_|$)"
    r"|box|bbox|obj|cls|dfl|seg|pose|mask|iou"
)
"""Parts of a loss that move by rules of their own, and the losses of two networks that play against each other."""
_OF_AN_OPPONENT = re.compile(r"(?:^|[_/ ])d(?:isc\w*|_|$|\()|critic|adv|fake|real", re.IGNORECASE)
_OF_EMBEDDINGS = re.compile(r"triplet|contrastive|info_?nce|(?:^|_)nce(?:_|$)|nt_?xent")
_WORDS_OF_PHASE = re.compile(
    rf"^(?:train(?:ing)?|{_OF_HELD_OUT}|avg|average|mean|running)[_/.]|[_/.](?:train(?:ing)?|{_OF_HELD_OUT}|avg|mean)$"
)
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


def named_loss(columns: Columns) -> str | None:
    """A single loss with a name of its own, `contrastive_loss` or `mse`, is the loss of a log that has no other.

    The same measure is that of evaluation; another one could not be compared with it.
    """
    if any(canonical(name) in ("loss", "reward", "policy_loss", "value_loss") for name in columns):
        return None
    names = {_bare(name): name for name in columns if not is_evaluation(name)}
    losses = [bare for bare in names if re.search(r"loss(?:es)?$|^loss", bare) and is_telling(bare)]
    found = losses or [bare for bare in _ERRORS if bare in names and _is_measured(columns[names[bare]])][:1]
    alone = found == ["g_loss"] and not any(_OF_AN_OPPONENT.search(name) for name in columns)  # KAIR, of every model
    if len(found) != 1 or (_NO_LOSS_OF_ITS_OWN.search(found[0]) and not alone):
        return None
    evaluated = [name for name in columns if is_evaluation(name) and _bare(name) == found[0]]
    columns["loss"] = columns[names[found[0]]]
    if not _OF_EMBEDDINGS.search(found[0]):  # those keep their own name too: it says what the loss can tell
        columns.pop(names[found[0]])
    if not evaluated or any(canonical(name) == "eval_loss" for name in columns):
        return f"{names[found[0]]!r} is read as the loss"
    columns["eval_loss"] = columns.pop(evaluated[0])
    return f"{names[found[0]]!r} is read as the loss, {evaluated[0]!r} as the eval_loss"


def mean_reward(columns: Columns) -> str | None:
    """`reward_mean` is the reward where there is no other, in the log of an agent, or of a policy beside its spread.

    Elsewhere it may be that of a reward model.
    """
    mean = next((name for name in columns if normal(name) in _MEAN_REWARDS), None)
    roles = {role.quantity for name in columns if (role := role_of(name)) is not None and role.is_whole}
    of_a_policy = Quantity.REWARD_SPREAD in roles and not _POLICY.isdisjoint(roles)
    if mean is None or Quantity.REWARD in roles or not (of_a_policy or not _OF_AGENTS.isdisjoint(roles)):
        return None
    columns["reward"] = columns.pop(mean)
    return f"{mean!r} is read as the reward"


def bare_phases(columns: Columns) -> str | None:
    """`train 0.52 val 0.61` without another word are losses where there is no other and both go down."""
    names = {name.lower(): name for name in columns}
    evaluated = next((names[name] for name in _HELD_OUT if name in names), None)
    if "train" not in names or evaluated is None or any(_is_no_score(name) for name in columns):
        return None
    both = [columns[name].values() for name in (names["train"], evaluated)]
    if any(len(one) < LEAST_BARE or not _is_measured_down(one) for one in both):
        return None
    columns["loss"], columns["eval_loss"] = columns.pop(names["train"]), columns.pop(evaluated)
    return f"{names['train']!r} is read as the loss, {evaluated!r} as the eval_loss: both go down (guessed)"


def _is_no_score(name: str) -> bool:
    """Say whether a name is one of what training or evaluation tells, but for scores, which say nothing of a loss."""
    role = role_of(name)
    return is_telling(name) and not (role is not None and role.quantity.higher_is_better)


def _is_measured_down(values: Floats) -> bool:
    """Say whether values are no counts, and lie lower in their later half than at first."""
    measured = bool(np.any(values != np.floor(values)))
    return measured and float(np.nanmedian(values[len(values) // 2 :])) < float(values[0])


def evaluation_of_its_name(columns: Columns) -> str | None:
    """Beside a `train_nll` that is read as the loss, `val_nll` is the evaluation loss."""
    loss = next((name for name in columns if canonical(name) == "loss"), None)
    if loss is None or any(canonical(name) == "eval_loss" for name in columns):
        return None
    measure = _WORDS_OF_PHASE.sub("", normal(_HUMP.sub("_", loss)))
    evaluated = [name for name in columns if is_evaluation(name) and _bare(name) == measure]
    if (measure not in _ERRORS and not measure.endswith("loss")) or len(evaluated) != 1:
        return None
    columns["eval_loss"] = columns.pop(evaluated[0])
    return f"{evaluated[0]!r} is read as the eval_loss"


def _is_measured(column: Column) -> bool:
    """Say whether the values are no counts."""
    values = column.values()
    return bool(np.any(~np.isfinite(values) | (values != np.floor(values))))


def _bare(name: str) -> str:
    """Return a name without what says of which phase it is, or that it is a mean."""
    bare = normal(canonical(_HUMP.sub("_", name[:MAX_NAME])))
    while (shorter := _WORDS_OF_PHASE.sub("", bare)) != bare and shorter:
        bare = shorter
    return bare


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


def taking_turns(columns: Columns) -> str | None:
    """A loss of training and one of evaluation that take turns: NaN in the records of the other means not logged."""
    names = {canonical(name): name for name in columns}
    if not {"loss", "eval_loss"} <= names.keys():
        return None
    (at, loss), (beside, evaluation) = (columns[names[name]].arrays() for name in ("loss", "eval_loss"))
    if len(at) != len(beside) or bool(np.any(at != beside)) or not np.isfinite(loss).any():
        return None
    if not np.isfinite(evaluation).any() or bool(np.any(np.isfinite(loss) == np.isfinite(evaluation))):
        return None
    for name, value in ((names["loss"], loss), (names["eval_loss"], evaluation)):
        columns[name] = Column()
        columns[name].extend(stretches_of(at[np.isfinite(value)]), value[np.isfinite(value)])
    return f"{names['loss']} and {names['eval_loss']} take turns: NaN in one beside a number in the other is not logged"


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
    trained = loss.arrays()[0]
    if 2 * len(value) < np.count_nonzero(trained >= at[0]):
        return None  # by far not with each record
    if not len(changes) and not _within_an_epoch(columns):
        return None  # an evaluation that always comes out the same
    if len(changes) > 1 and float(np.median(np.diff(changes))) < LEAST_HELD:
        return None  # it is worked out for each record, and stands still at last
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
    *OF_FRAMEWORKS,
    time_and_data,
    clock,
    percentages,
    mean_reward,
    named_loss,
    evaluation_of_its_name,
    bare_phases,
    perplexity_alone,
    taking_turns,
    held_evaluation,
    batch_in_epoch,
    filtered_nan,
)
