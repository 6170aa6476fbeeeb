"""Which column is the loss, its evaluation or the reward, where no name says it in full.

A letter may be a metric that only its neighbours explain. Of an evaluation, it finds which records are one and which
values were worked out at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mldebug_mcp.core.arrays import distinct, median, median_of_numbers, nearest_sum
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.logs.columns import Column, Columns, Floats, Rows, rename
from mldebug_mcp.logs.names import Quantity, normal, role_of
from mldebug_mcp.logs.names.grammar import MAX_NAME
from mldebug_mcp.logs.names.lexicon import METHODS, NAMED_LOSSES, OTHER_LANGUAGES, SET_ASIDE, TESTS, all_of
from mldebug_mcp.logs.names.metrics import (
    UNNAMED,
    called,
    canonical,
    is_evaluation,
    is_telling,
    is_training_loss,
    phase_alone,
    phase_in,
)
from mldebug_mcp.logs.names.quantities import OF_UPDATES
from mldebug_mcp.logs.names.words import segments_of, sorted_out

_PERPLEXITIES = ("ppl", "perplexity", "PPL", "Perplexity")
_ERRORS = ("total", "objective", "nll", "bce", "ce", "mse", "rmse", "mae", "l1", "l2", "l")
_ERRORS_FIRST = frozenset({"total", "objective"})
_AUXILIARY_LOSS = regex(
    r"(?:^|[_/. -])(?:z(?:loss)?|aux(?:iliary)?|lb|(?:load_?)?balanc\w*|router|commit\w*|koleo)(?:[_/. -]|$)",
    re.IGNORECASE,
)
_MEAN_REWARDS = frozenset({"reward_mean", "rewards_mean", "mean_reward"})
_REWARDS, _MEANS = frozenset({"reward", "rewards"}), all_of(OTHER_LANGUAGES["statistics"]["mean"])
_POLICY = frozenset({Quantity.KL, Quantity.APPROXIMATE_KL, Quantity.ENTROPY, Quantity.COMPLETION_LENGTH})
"""What the training of a policy logs, and that of a reward model does not."""
OF_TEXT = frozenset({Quantity.KL, Quantity.REWARD_SPREAD, Quantity.GROUPS_WITHOUT_SPREAD})
"""What the training of a language model's policy logs, and that of agents rarely does."""
_BARE_MEAN = regex(r"(?:avg|average|mean|running|rolling|moving|smoothed|_)+\d{1,5}")
"""A mean over as many episodes, whose name says not of what: `avg100`, "running_mean_10"."""
_LENGTHS = frozenset(
    {"length", "len", "mean_length", "length_mean", "avg_length", "average_length", "len_mean", "mean_len", "avg_len"}
)
_OF_AGENTS = frozenset({Quantity.EXPLAINED_VARIANCE, Quantity.POLICY_LOSS, Quantity.VALUE_LOSS})
"""What agents alone log."""
KEPT_LEVEL = 0.1
"""Share by which a loss that rests may lie above its first value: that is of one batch. Chosen by hand."""
LEAST_PERCENTAGE = 10.0
"""Above this, what rises may be a percentage of right answers. Chosen by hand: losses begin below it."""
LEAST_BARE = 4
"""Records of losses that are called by their phase alone; chosen by hand."""
LEAST_BARE_EVALUATIONS = 3
"""... and of their evaluations, which are rarer; chosen by hand."""
LEAST_OF_CLASSES = 1.0
"""The least first loss of a model that chooses between several classes. Chosen: one between two begins near 0.69."""
_NO_LOSS_OF_ITS_OWN = regex(
    r"policy|value|critic|actor|entropy|reward|kl|aux|reg(?:ular|_)|gen|dis[ck]|(?:^|_)[dgqv](?:_|$)"
    r"|box|bbox|obj(?!ective)|cls|dfl|seg|pose|mask|iou"
)
"""Parts of a loss that move by rules of their own, and the losses of two networks that play against each other."""
_OF_AN_OPPONENT = regex(r"(?:^|[_/ ])d(?:isc\w*|_|$|\()|critic|adv|fake|real", re.IGNORECASE)
MIN_RECORDS_OF_SUM = 3
"""Records beyond the number of parts, from which on a sum of these is seen; chosen by hand."""
LEFT_OF_SUM = 0.01
"""Share of what a sum varies by that its parts leave over at most. Chosen: four printed digits leave less."""
_SO_FAR = regex(r"(?:^|[/_ ])(?:best|lowest)[_ ]", re.IGNORECASE)
"""The lowest value so far, which never rises: hyperopt shows the "best loss" of its trials."""
UNDER_A_LOGARITHM = regex(r"(?<![^\W_])(?:log_?10|lg(?=[ _(\[]))[ _]{0,4}", re.IGNORECASE, needs=("log", "lg"))
"""What is logged as its logarithm to the base of ten: `log10(mse)`."""
_OF_EMBEDDINGS = regex(r"triplet|contrastive|info_?nce|(?:^|_)nce(?:_|$)|nt_?xent")


def is_auxiliary(name: str) -> bool:
    """Return whether a term is added to a loss to keep a model in shape, such as busy experts; it need not fall."""
    return _AUXILIARY_LOSS.search(name) is not None


def is_of_embeddings(name: str) -> bool:
    """Return whether a loss compares embeddings: its name says what it can tell, and is kept next to the loss."""
    return _OF_EMBEDDINGS.search(name) is not None


def named_loss(columns: Columns) -> str | None:
    """A single loss with a name of its own, `contrastive_loss` or `mse`, is the loss of a log that has no other.

    The same measure is that of evaluation; another one could not be compared with it.
    """
    if called(columns, "loss", "reward", "policy_loss", "value_loss"):
        return None
    own = [
        name
        for name in columns
        if not (name.startswith(SET_ASIDE) or _SO_FAR.search(name) or UNDER_A_LOGARITHM.search(name))
    ]
    own.sort(key=lambda name: len(columns[name]) > 1)  # of one in several places, none that is logged once
    names = {_bare(name) or name.lower(): name for name in own if not _is_held_out(name) and not _is_elsewhere(name)}
    losses = [bare for bare in names if re.search(r"loss(?:es)?$|^loss", bare) and is_telling(bare)]
    losses = [bare for bare in losses if not is_auxiliary(bare)] or losses
    by_name = [bare for bare in names if _is_called_by_name(bare) and _is_measured(columns[names[bare]])]
    are_auxiliary = all(map(is_auxiliary, losses))
    if are_auxiliary and len(by_name) == 1 and not (_ERRORS_FIRST & names.keys()):
        losses = by_name
    if len(losses) > 1:
        losses = [
            bare for bare in _ERRORS_FIRST & names.keys() if _is_sum(columns, names[bare], losses, names)
        ] or losses
    errors = [bare for bare in _ERRORS if bare in names and _is_measured(columns[names[bare]])]
    errors = [bare for bare in errors if bare != "total" or not _is_sum_so_far(columns[names[bare]])]
    found = losses or errors[:1]
    alone = found == ["g_loss"] and not any(_OF_AN_OPPONENT.search(name) for name in columns)  # KAIR, of every model
    alone = alone or (found == ["cls_loss"] and any(_is_accuracy(name) for name in columns))
    if len(found) != 1 or (_NO_LOSS_OF_ITS_OWN.search(found[0]) and not alone):
        return None
    evaluated = [name for name in columns if _is_held_out(name) and _bare(name) == found[0]]
    if is_of_embeddings(found[0]):
        columns["loss"] = columns[names[found[0]]]
    else:
        rename(columns, names[found[0]], "loss")
    if not evaluated or called(columns, "eval_loss"):
        return f"{names[found[0]]!r} is read as the loss"
    rename(columns, evaluated[0], "eval_loss")
    return f"{names[found[0]]!r} is read as the loss, {evaluated[0]!r} as the eval_loss"


def _is_sum_so_far(column: Column) -> bool:
    """Say whether a column only grows: "component 12: variance 0.1 cumulative 0.9"."""
    return bool(np.all(np.diff(column.finite()) >= 0))


def _is_accuracy(name: str) -> bool:
    """Say whether a column has the share of right answers, as classifiers log it, and detectors do not."""
    role = role_of(name)
    return role is not None and role.quantity is Quantity.ACCURACY and role.is_whole


def _is_sum(columns: Columns, total: str, parts: Sequence[str], names: Mapping[str, str]) -> bool:
    """Say whether a column is a weighted sum of losses that are logged with it each time."""
    at, value = columns[total].arrays()
    logged = [columns[names[part]].arrays() for part in parts]
    if any(not np.array_equal(at, of_part) for of_part, _ in logged) or len(at) < len(parts) + MIN_RECORDS_OF_SUM:
        return False
    terms = np.stack([part for _, part in logged], axis=1)
    if not np.isfinite(terms).all() or not np.isfinite(value).all():
        return False
    _, left = nearest_sum(value, terms)
    return left <= LEFT_OF_SUM * float(np.std(value))


def _is_called_by_name(bare: str) -> bool:
    """Say whether words are those of a loss that goes without the word: `infonce`, "gen mlm"."""
    return not (NAMED_LOSSES | METHODS).isdisjoint(bare.split("_")) and is_training_loss(bare)


def _is_held_out(name: str) -> bool:
    """Say whether a name says, in whatever place, that held-out data were measured: `train/holdout_objective`."""
    return is_evaluation(name) or sorted_out(segments_of(name[:MAX_NAME])).phase == "eval"


def _is_elsewhere(name: str) -> bool:
    """Say whether a name stands under one that is not understood, such as a part of the model, or that sums up."""
    role = role_of(name)
    return name.startswith(SET_ASIDE) or (role is not None and role.namespace != "")


def mean_reward(columns: Columns) -> str | None:
    """`reward_mean` is the reward where it is the only one, in the log of an agent, or of a policy with its spread.

    Elsewhere it may be that of a reward model.
    """
    mean = next((name for name in columns if normal(name) in _MEAN_REWARDS or _is_mean_reward(name)), None)
    roles = {role.quantity for name in columns if (role := role_of(name)) is not None and role.is_whole}
    of_a_policy = Quantity.REWARD_SPREAD in roles and not _POLICY.isdisjoint(roles)
    of_agents = not (_OF_AGENTS | {Quantity.EPISODE}).isdisjoint(roles)
    if mean is None or Quantity.REWARD in roles or not (of_a_policy or of_agents):
        return None
    columns["reward"] = columns.pop(mean)
    return f"{mean!r} is read as the reward"


def mean_score(columns: Columns) -> str | None:
    """`score_mean` next to `score_std` and what a policy logs is the reward, where nothing is called so.

    So is a `score_last_50` next to what agents alone log.
    """
    roles = {name: role for name in columns if (role := role_of(name)) is not None and not role.part}
    quantities = {role.quantity for role in roles.values()}
    scores = {
        role.statistic: name
        for name, role in roles.items()
        if role.quantity is Quantity.SCORE and not role.is_evaluation
    }
    mean = scores.get("mean") or scores.get("last") or scores.get("")
    of_agents = not _OF_AGENTS.isdisjoint(quantities)
    if mean is None or not ("std" in scores or of_agents) or _POLICY.isdisjoint(quantities):
        return None
    if {Quantity.REWARD, Quantity.REWARD_SPREAD} & quantities:
        return None
    rename(columns, mean, "reward")
    if "std" in scores:
        rename(columns, scores["std"], "reward_std")
    return f"{mean!r} is read as the reward"


def means_of_returns(columns: Columns) -> str | None:
    """`avg100` next to the return of an episode is the mean of the last ones, if it lies within what they bring."""
    returns = [name for name in columns if (role := role_of(name)) is not None and role.quantity is Quantity.REWARD]
    means = [name for name in columns if role_of(name) is None and _BARE_MEAN.fullmatch(normal(name))]
    if len(returns) != 1 or not means:
        return None
    least, most = (bound(columns[returns[0]].finite(), initial=0.0) for bound in (np.min, np.max))
    inside = [name for name in means if np.all((columns[name].finite() >= least) & (columns[name].finite() <= most))]
    for name in inside:
        rename(columns, name, f"reward_{name}")
    return f"{', '.join(map(repr, inside))}: read as means of {returns[0]!r} over several episodes" if inside else None


def no_episode_ended(columns: Columns) -> str | None:
    """A mean over episodes is NaN in each record: none has ended, or none is recorded.

    Source: the answers of ray-project/ray#10416 and hill-a/stable-baselines#178.
    """
    roles = {name: role.quantity for name in columns if (role := role_of(name)) is not None and role.is_whole}
    means = [name for name, quantity in roles.items() if quantity in (Quantity.REWARD, Quantity.EPISODE_LENGTH)]
    if Quantity.EPISODE_LENGTH not in roles.values() or any(
        np.isfinite(columns[name].values()).any() for name in means
    ):
        return None
    names = " and ".join(map(repr, means[:2]))
    return f"{names}: NaN in each record, as no episode has ended, or the environment has no wrapper that records them"


def _is_mean_reward(name: str) -> bool:
    """Say whether a name is a mean reward whose mean is named in another language: "Reward moyen"."""
    words = normal(name).split("_")
    return len(words) > 1 and not _REWARDS.isdisjoint(words) and _MEANS.issuperset(set(words) - _REWARDS)


def length_of_completions(columns: Columns) -> str | None:
    """A bare `length` next to a reward and its spread, or a divergence, is that of what a policy writes."""
    name = next((name for name in columns if normal(name) in _LENGTHS), None)
    roles = {role.quantity for name in columns if (role := role_of(name)) is not None and role.is_whole}
    taken = {Quantity.COMPLETION_LENGTH, Quantity.EPISODE_LENGTH} & roles or not _OF_AGENTS.isdisjoint(roles)
    of_a_policy = Quantity.REWARD in roles and not OF_TEXT.isdisjoint(roles)
    if name is None or taken or not of_a_policy:
        return None
    columns["completion_length"] = columns.pop(name)
    return f"{name!r} is read as the length of completions"


def bare_phases(columns: Columns) -> str | None:
    """`train 0.52 val 0.61` without another word are losses where no other loss is logged and neither goes up.

    So is a number without a name behind the counter of its line. What stands behind both, "tr 0.5/0.9 te 0.6/0.8", is
    the accuracy where it is a share that rises.
    """
    trained = next((name for name in columns if phase_alone(name) == "train" or name == UNNAMED), None)
    sets = [name for name in columns if phase_alone(name) == "eval"]
    evaluated = max(sets, key=lambda name: len(columns[name]), default=None)
    if trained is None or any(_is_no_score(name) for name in columns):
        return None
    if evaluated is None and (trained != UNNAMED or not _falls(columns[trained].values())):
        return None
    found = {trained: "loss"} | ({} if evaluated is None or trained == UNNAMED else {evaluated: "eval_loss"})
    arrays = [columns[name].values() for name in found]
    if len(arrays[0]) < LEAST_BARE or len(arrays[-1]) < LEAST_BARE_EVALUATIONS:
        return None
    if not all(map(_is_measured_and_no_score, arrays)):
        return None
    behind = {f"{name}_2": new.replace("loss", "accuracy") for name, new in found.items() if f"{name}_2" in columns}
    found |= behind if all(_is_rising_share(columns[name].values()) for name in behind) else {}
    for name, new in found.items():
        rename(columns, name, new)
    listed = ", ".join(f"{name!r} as the {new}" for name, new in found.items())
    return f"{listed.replace(' as ', ' is read as ', 1)}: no loss goes up (guessed)"


def _falls(values: Floats) -> bool:
    """Say whether the later half of values lies below the first one by more than a loss that rests."""
    return median_of_numbers(values[len(values) // 2 :]) < (1 - KEPT_LEVEL) * float(values[0])


def accuracies_by_phase(columns: Columns) -> str | None:
    """`Train: 0.99 Val: 0.87` without another word, next to a loss over several classes, are shares of right answers.

    They are where all of them lie between 0 and 1 or 100 and rise. A loss that begins above that of a guess between
    two classes, ln 2, has no curve of ranks (AUC) next to it.
    """
    loss = called(columns, "loss")
    if not loss or called(columns, "accuracy", "eval_accuracy") or float(columns[loss].values()[0]) < LEAST_OF_CLASSES:
        return None
    trained, evaluated = ([name for name in columns if phase_alone(name) == phase] for phase in ("train", "eval"))
    scores = [columns[name].values() for name in (*trained, *evaluated)]
    if len(trained) != 1 or not evaluated or not all(map(_is_rising_share, scores)):
        return None
    rename(columns, trained[0], "accuracy")
    for name in evaluated:
        measured = "test_accuracy" if name.lower() in TESTS else "eval_accuracy"
        if not called(columns, measured):
            rename(columns, name, measured)
    return f"{trained[0]!r} and {', '.join(map(repr, evaluated))} are read as accuracies: they rise (guessed)"


def _is_rising_share(values: Floats) -> bool:
    """Say whether values lie between 0 and 1, or 0 and 100, and lie higher in their later half than at first."""
    return (
        len(values) >= LEAST_BARE
        and float(np.nanmin(values)) >= 0
        and float(np.nanmax(values)) <= (1 if float(values[0]) <= 1 else 100)
        and median_of_numbers(values[len(values) // 2 :]) > (1 + KEPT_LEVEL) * float(values[0])
    )


def _is_no_score(name: str) -> bool:
    """Say whether a name is one of what training or evaluation tells, but for what says nothing of a loss.

    Scores do not, and neither does the norm of a gradient.
    """
    role = role_of(name)
    says_nothing = role is not None and (role.quantity.higher_is_better or role.quantity in OF_UPDATES)
    return is_telling(name) and not says_nothing


def _is_measured_and_no_score(values: Floats) -> bool:
    """Say whether values are no counts, and no shares or percentages that lie higher in their later half."""
    measured, highest = bool(np.any(values != np.floor(values))), float(np.nanmax(values))
    later = median_of_numbers(values[len(values) // 2 :])
    rises = later > (1 + KEPT_LEVEL) * float(values[0])
    return measured and not (rises and (highest <= 1 or later > LEAST_PERCENTAGE))


def evaluation_of_its_name(columns: Columns) -> str | None:
    """Next to a `train_nll` that is read as the loss, `val_nll` is the evaluation loss."""
    loss = called(columns, "loss")
    if not loss or called(columns, "eval_loss"):
        return None
    measure = _bare(loss)
    evaluated = [name for name in columns if _is_held_out(name) and _bare(name) == measure]
    if (measure not in _ERRORS and not measure.endswith("loss")) or len(evaluated) != 1:
        return None
    rename(columns, evaluated[0], "eval_loss")
    return f"{evaluated[0]!r} is read as the eval_loss"


_OF_TOKENS = frozenset({"completion", "assistant", "target", "next", "char", "character", "token", "word"})
"""Parts of the loss of a language model that stand for the whole: of the tokens that count, or of each of them."""


def evaluation_of_answers(columns: Columns) -> str | None:
    """`eval/answer_loss` is the evaluation loss where a log has no other, and trains on no loss of the same part.

    The tokens of answers are those that count, and the likelihood of the next token is what training minimises.
    """
    if not called(columns, "loss") or called(columns, "eval_loss"):
        return None
    roles = {name: role for name in columns if (role := role_of(name)) is not None and not name.startswith(SET_ASIDE)}
    losses = {name: role for name, role in roles.items() if role.quantity is Quantity.LOSS}
    evaluated = [name for name, role in losses.items() if role.is_evaluation]
    if len(evaluated) != 1 or not losses[evaluated[0]].is_level:
        return None
    part = losses[evaluated[0]].part
    words = set(part.split()) - {"nll"}
    if (
        not words
        or not words <= _OF_TOKENS
        or any(role.part == part for role in losses.values() if not role.is_evaluation)
    ):
        return None
    rename(columns, evaluated[0], "eval_loss")
    return f"{evaluated[0]!r} is read as the eval_loss, as no other is logged"


def _is_measured(column: Column) -> bool:
    """Say whether the values are no counts."""
    values = column.values()
    return bool(np.any(~np.isfinite(values) | (values != np.floor(values))))


def _bare(name: str) -> str:
    """Return the words of a name that say what is measured: without its phase, and not that it is a mean.

    What is a place elsewhere is measured where nothing else is named: `train/objective`.
    """
    segments = segments_of(name[:MAX_NAME])
    words = sorted_out(segments)
    if not words.base and segments and segments[-1][-1] in _ERRORS:
        return segments[-1][-1]
    return "_".join([*words.base, *words.numbers])


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
    with np.errstate(divide="ignore", invalid="ignore"):
        return Column.of(at, np.log(value))


def _is_power(loss: Column, perplexity: Column) -> bool:
    """Say whether a perplexity is e to the power of a loss that was logged with it."""
    at, value = loss.arrays()
    power_at, power = perplexity.arrays()
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        apart = np.abs(np.log(power[np.isin(power_at, at)]) - value[np.isin(at, power_at)])
    return median_of_numbers(np.append(apart, np.inf)) < 0.05 if len(apart) else False


# Metrics that are called by a letter or a syllable, which only what stands beside them explains.

_ACCURACY = {"a": "accuracy", "eval_a": "eval_accuracy"}
_OBJECTIVE = regex(
    r"(?:(?P<before>[a-z]{2,10})[/_. ])?(?:obj|(?<=[/_. ])error)"
    r"(?:[/_. ]?[\[(](?P<inside>[a-z]{2,10})[\])]|[/_. ](?P<behind>[a-z]{2,10}))?",
    re.IGNORECASE,
    needs=("obj", "error"),
)
_OF_BOXES = regex(r"box|cls|iou|loss|class", re.IGNORECASE)


def loss_of_mu(columns: Columns) -> str | None:
    """`mu_loss` is that of a policy next to a reward or the loss of a value; else it may be that of a mean."""
    if "mu_loss" in columns and called(columns, "reward", "value_loss") and not called(columns, "policy_loss"):
        rename(columns, "mu_loss", "policy_loss")
        return "mu_loss: read as the policy_loss"
    return None


def accuracy_as_a(columns: Columns) -> str | None:
    """`a` next to a loss is the accuracy where it is a share: "L=2.136 a=0.2695"."""
    names = {canonical(name) for name in columns}
    if "loss" not in names or not names.isdisjoint(_ACCURACY.values()):
        return None
    found = [name for name in columns if name in _ACCURACY]
    if not found or not all(_is_share(columns, name) for name in found):
        return None
    for name in found:
        columns[_ACCURACY[name]] = columns.pop(name)
    return f"{', '.join(found)}: read as the accuracy next to the loss"


def _is_share(columns: Columns, name: str) -> bool:
    value = columns[name].finite()
    return len(value) > 0 and bool(np.all((value >= 0) & (value <= 1)))


def objective_alone(columns: Columns) -> str | None:
    """`obj` or `error` of a phase is the loss where nothing else is, and so is `f` or `error` next to a gradient norm.

    Next to boxes and classes `obj` is a part of a detector's loss.
    """
    names = {canonical(name) for name in columns}
    found = {name: phase for name in columns if (phase := _phase_of_objective(name)) is not None}
    if "grad_norm" in names:
        found |= {name: "" for name in ("f", "error") if name in columns}
    if names.isdisjoint({"reward", "policy_loss", "entropy", "completion_length"}):
        found |= {name: "" for name in columns if name.lower() == "kl divergence"}  # openTSNE's objective
    if not found or not names.isdisjoint({"loss", "eval_loss"}) or any(_OF_BOXES.search(name) for name in columns):
        return None
    as_loss = []
    for name, phase in found.items():
        new = "eval_loss" if phase == "eval" else "loss"
        if new not in columns:
            rename(columns, name, new)
            as_loss.append(name)
    return f"{', '.join(as_loss)}: read as the loss, as no other is logged"


def _phase_of_objective(name: str) -> str | None:
    """Return the phase of a column of this name, "" where it says none; None for other columns."""
    match = _OBJECTIVE.fullmatch(name)
    if match is None:
        return None
    words = [word for word in (match["before"], match["inside"], match["behind"]) if word]
    phases = [phase_in(word) for word in words]
    return None if not all(phases) else phases[0] if phases else ""


# Which records of an evaluation are evaluations, and which values of a loss were worked out at all.

MIN_RECORDS_PER_EVALUATION = 3
"""Records with one evaluation loss, on average, from which on it is one that is printed again; chosen by hand."""
MIN_EVALUATIONS_WITH_SCORE, MOST_EVALUATED = 2, 0.5
"""Evaluations, and the largest share of the training records that they accompany, where it tells something that a
score is logged with them alone. Chosen: once an epoch, both are logged together."""
MIN_SHARE_STILL = 0.5
"""Share of records whose training loss does not change either, from which on nothing changes; chosen by hand."""
MIN_RECORDS_BETWEEN_CHANGES = 2
"""Records from one change to the next, as a rule, where an evaluation is printed again until the next one."""


def taking_turns(columns: Columns) -> str | None:
    """A loss of training and one of evaluation that take turns: NaN in the records of the other means not logged."""
    names = {canonical(name): name for name in columns}
    if not {"loss", "eval_loss"} <= names.keys():
        return None
    (at, loss), (eval_at, evaluation) = (columns[names[name]].arrays() for name in ("loss", "eval_loss"))
    if len(at) != len(eval_at) or bool(np.any(at != eval_at)) or not np.isfinite(loss).any():
        return None
    if not np.isfinite(evaluation).any() or bool(np.any(np.isfinite(loss) == np.isfinite(evaluation))):
        return None
    for name, value in ((names["loss"], loss), (names["eval_loss"], evaluation)):
        columns[name] = Column.of(at[np.isfinite(value)], value[np.isfinite(value)])
    return f"{names['loss']} and {names['eval_loss']} take turns: NaN in one with a number in the other is not logged"


MIN_REGULAR_EVALUATIONS = 3
"""Numbers at one distance between NaN, from which on the others are blanks. Chosen by hand."""
MIN_SHARE_REGULAR = 0.5
"""Share of evaluations at the usual distance from the one before; chosen: the others failed in between."""


_NAN_IF_NOTHING_HELD_OUT = "ValidDeviance"
"""What R's gbm prints as NaN throughout where no rows are held out, as by default."""


def unmeasured_evaluation(columns: Columns) -> str | None:
    """A measure of evaluation that is NaN but for a number in each fifth record was not measured in the others.

    NaN at the place of an evaluation stays a value.
    """
    notes = []
    held_out = columns.get(_NAN_IF_NOTHING_HELD_OUT)
    if held_out is not None and np.isnan(held_out.values()).all():
        del columns[_NAN_IF_NOTHING_HELD_OUT]
        notes.append(f"{_NAN_IF_NOTHING_HELD_OUT} is NaN in all records: gbm held out no rows")
    for name in [name for name in columns if is_evaluation(name)]:
        at, value = columns[name].arrays()
        measured = at[~np.isnan(value)]
        gaps = np.diff(measured)
        if len(measured) < MIN_REGULAR_EVALUATIONS or (every := int(gaps.min())) < 2:
            continue
        regular = float(np.mean(gaps == every)) >= MIN_SHARE_REGULAR and not np.any(gaps % every)
        kept = (at - measured[0]) % every == 0
        if regular and not kept.all():
            columns[name] = Column.of(at[kept], value[kept])
            notes.append(f"{name} is NaN but in each {every}th record: not measured in the others")
    return "; ".join(notes[:3]) or None


def repeated_evaluation(columns: Columns) -> str | None:
    """LitGPT and NeMo print the last evaluation loss again with every training record until the next evaluation.

    Only the records where it changes are evaluations. When the first value was worked out, the log does not say.
    """
    loss = next((column for name, column in columns.items() if canonical(name) == "loss"), None)
    name = called(columns, "eval_loss")
    if loss is None or not name:
        return None
    at, value = columns[name].arrays()
    changes = np.flatnonzero(value[1:] != value[:-1]) + 1
    if (
        len(value) < MIN_RECORDS_PER_EVALUATION * (len(changes) + 1)
        or float(np.isin(at, loss.arrays()[0]).mean()) < 0.9
    ):
        return None
    trained, training = loss.arrays()
    stands = np.count_nonzero(training[1:] == training[:-1])
    if stands >= MIN_SHARE_STILL * (len(training) - 1) or 2 * len(value) < np.count_nonzero(trained >= at[0]):
        return None  # nothing changes, training no more than evaluation; or it is by far not with each record
    if not len(changes) and not _within_an_epoch(columns):
        return None  # an evaluation that always comes out the same
    if len(changes) > 1 and median(np.diff(changes)) < MIN_RECORDS_BETWEEN_CHANGES:
        return None  # it is worked out for each record, and stands still at last
    first = at[0] > loss.arrays()[0][0]  # printed only once there had been an evaluation
    kept = np.concatenate([[0], changes]) if first else changes
    columns.pop(name)
    if len(kept):
        columns[name] = Column.of(at[kept], value[kept])
    unknown = "" if first else ", that of the first ones was worked out before the log begins and is left out"
    return f"{name} is printed again with each record: only records where it changes are evaluations{unknown}"


def scores_of_evaluation(columns: Columns) -> str | None:
    """A score that is logged with the evaluation losses, and with no other of the training losses, is of evaluation."""
    names = {canonical(name): name for name in columns}
    if not {"loss", "eval_loss"} <= names.keys():
        return None
    places = _places(columns)
    trained, evaluated = (distinct(places(columns[names[name]].arrays()[0])) for name in ("loss", "eval_loss"))
    if len(evaluated) < MIN_EVALUATIONS_WITH_SCORE or _share_within(trained, evaluated) > MOST_EVALUATED:
        return None
    shown = []
    for name in list(columns):
        role, new = role_of(name), f"eval_{name}"
        if role is None or role.phase or not (role.quantity.higher_is_better or role.quantity.lower_is_better):
            continue
        if canonical(new) not in names and np.array_equal(distinct(places(columns[name].arrays()[0])), evaluated):
            rename(columns, name, new)
            shown.append(name)
    if not shown:
        return None
    return (
        f"{', '.join(shown[:3])}: read as of evaluation, as {'it is' if len(shown) == 1 else 'they are'} logged with it"
    )


def _share_within(places: Floats, others: Floats) -> float:
    """Return the share of distinct places that are among others; both ascend."""
    at = np.minimum(np.searchsorted(others, places), len(others) - 1)
    return float(np.mean(others[at] == places))


def _places(columns: Columns) -> Callable[[Rows], Floats]:
    """Return what tells the steps of records, or their numbers where the records count no step."""
    counter = next((column for name, column in columns.items() if canonical(name) == "step"), None)
    if counter is None or not len(counter):
        return lambda rows: rows.astype(np.float64)
    at, step = counter.arrays()
    return lambda rows: step[np.clip(np.searchsorted(at, rows, side="right") - 1, 0, len(step) - 1)]


def _within_an_epoch(columns: Columns) -> bool:
    epoch = next((column.values() for name, column in columns.items() if canonical(name) == "epoch"), None)
    return epoch is not None and len(epoch) > 2 * len(distinct(epoch))


def filtered_nan(columns: Columns) -> str | None:
    """The Trainer puts the running mean in the place of a NaN loss unless logging_nan_inf_filter is off."""
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
        f"{hidden} record(s) have a finite loss next to a gradient norm of NaN or Inf: the Trainer puts the "
        "running mean of the losses in place of one that is not finite, and averages with it (logging_nan_inf_filter)"
    )


CONVENTIONS_OF_REWARDS = (
    mean_reward, mean_score, means_of_returns, no_episode_ended, length_of_completions, loss_of_mu,
)  # fmt: skip
CONVENTIONS_OF_LOSSES = (
    named_loss, evaluation_of_its_name, evaluation_of_answers, bare_phases, accuracies_by_phase, perplexity_alone,
    objective_alone, accuracy_as_a,
)  # fmt: skip
CONVENTIONS_OF_EVALUATIONS = (taking_turns, unmeasured_evaluation, repeated_evaluation)
"""In the order in which they are tried."""
