"""Letters and short words that mean something only with what else is logged: `H` next to a reward is the entropy.

A column is read so only where its name has no role by itself; no other column may have the role that it would get. Its
values have to fit that role.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import numpy as np

from mldebug_mcp.core.arrays import distinct
from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.logs.columns import Columns, Floats, ascends, rename
from mldebug_mcp.logs.names import Quantity, normal, role_of
from mldebug_mcp.logs.names.grammar import MAX_NAME
from mldebug_mcp.logs.names.lexicon import PHASES, SET_ASIDE
from mldebug_mcp.logs.names.metrics import called, canonical
from mldebug_mcp.logs.names.quantities import AMOUNTS, PAIRS

_WORD = regex(r"[^\W_]+%?|[%#]")
_SHARE_OF = regex(rf"({'|'.join(phase for phase in PHASES if phase.isascii())}) ?%", re.IGNORECASE)
_MEANS = frozenset({"mean", "avg", "average", "ema"})
_COSTS = frozenset({"timing", "time", "times", "mfu", "perf", "throughput"})
"""Words of places in which no name is one of what is learnt."""
_SURE = frozenset({
    Quantity.REWARD, Quantity.REWARD_SPREAD, Quantity.GROUPS_WITHOUT_SPREAD, Quantity.KL, Quantity.APPROXIMATE_KL,
    Quantity.POLICY_LOSS, Quantity.VALUE_LOSS, Quantity.ADVANTAGE, Quantity.EXPLAINED_VARIANCE, Quantity.POLICY_RATIO,
    Quantity.EPISODE_LENGTH, Quantity.COMPLETION_LENGTH, Quantity.CLIPPED_COMPLETIONS, Quantity.EPISODE,
})  # fmt: skip
"""What is logged where a policy learns; a divergence alone may be that of a variational model or of a student."""
_DIVERGENCES = frozenset({Quantity.KL, Quantity.APPROXIMATE_KL})
_BY_CHANCE = frozenset({Quantity.POLICY_RATIO, Quantity.POLICY_LOSS, Quantity.APPROXIMATE_KL})
"""What is logged where the policy itself draws its actions: no share of them is drawn at random besides."""
_AGENTS = frozenset({Quantity.EPISODE, Quantity.EPISODE_LENGTH, Quantity.EXPLORATION})
_TELLING = frozenset(
    {"r", "r std", "rm", "scorer", "grader", "h", "ev", "pg", "pi", "vf", "dead groups", "flat groups"}
)
"""Abbreviations that tell together that a policy learns: `eps` and `clip` may be those of private gradients."""
_EPISODES = regex(r"n(?:um)?[/_](?:eps?|episodes?)", re.IGNORECASE)
"""How many episodes a record holds: Tianshou's `n/ep`."""
LEAST_OF_A_POLICY = 2
"""Abbreviations of what a policy logs that tell that one learns, where no name does in full; chosen by hand."""


@dataclass(frozen=True, slots=True)
class _Log:
    """What the names of a log tell.

    Args:
        quantities: Those of its names that are understood.
        words: What columns are called but for their phase and that they are a mean.
    """

    quantities: frozenset[Quantity]
    words: frozenset[str]

    def has(self, *words: str) -> bool:
        """Say whether columns are called by all of some words."""
        return all(word in self.words for word in words)


def _any(values: Floats) -> bool:
    return len(values) > 0


def _share(values: Floats) -> bool:
    return bool(np.all((values >= 0) & (values <= 100)))


def _positive(values: Floats) -> bool:
    return bool(np.all(values >= 0))


def _counts(values: Floats) -> bool:
    """Say whether values count on: whole numbers that do not fall."""
    rises = np.diff(values)
    return _positive(values) and bool(np.all(values == np.floor(values)) and np.all(rises >= 0) and np.any(rises > 0))


def _counts_again(values: Floats) -> bool:
    """Say whether values are whole numbers, like those of a counter that may begin anew with each epoch."""
    return _positive(values) and bool(np.all(values == np.floor(values))) and len(distinct(values)) > 1


def _passes(values: Floats) -> bool:
    """Say whether values may be epochs: they do not fall."""
    rises = np.diff(values)
    return _positive(values) and bool(np.all(rises >= 0) and np.any(rises > 0))


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What an abbreviation is read as, and whether its values can be that."""

    name: str
    can_be: Callable[[Floats], bool] = _any


_OF_A_POLICY: Mapping[str, _Meaning] = {
    **dict.fromkeys(("r", "ret", "rm", "fit", "fitness", "rew", "scorer", "grader"), _Meaning("reward")),
    **dict.fromkeys(("r std", "fit std", "rstd", "scorer group sd"), _Meaning("reward_std", _positive)),
    **dict.fromkeys(("h", "h pi", "ent", "seq entropy"), _Meaning("entropy")),
    **dict.fromkeys(("ev", "exp var"), _Meaning("explained_variance")),
    "kl loss": _Meaning("kl"),
    **dict.fromkeys(("pg", "pi"), _Meaning("policy_loss")),
    **dict.fromkeys(("vf", "vloss", "baseline loss", "loss value", "val fn loss"), _Meaning("value_loss")),
    **dict.fromkeys(("clip", "clip%", "clip %", "clip frac"), _Meaning("clip_ratio", _share)),
    **dict.fromkeys(("ε", "eps", "explore eps", "exploration eps"), _Meaning("exploration_rate", _share)),
    **dict.fromkeys(("dead groups", "zero groups", "flat groups"), _Meaning("frac_reward_zero_std", _share)),
    **dict.fromkeys(("ratio", "ppo ratio"), _Meaning("policy_ratio", _positive)),
    "adv": _Meaning("advantages"),
    **dict.fromkeys(("td", "td huber", "td mse", "v mse", "v huber"), _Meaning("value_loss")),
    **dict.fromkeys(("surr", "surrogate"), _Meaning("policy_loss")),
    "clip high": _Meaning("clip_ratio/high_mean", _share),
    "clip low": _Meaning("clip_ratio/low_mean", _share),
    "is clipped": _Meaning("clip_ratio/mean", _share),
}
_OF_A_GRADIENT: Mapping[str, _Meaning] = {word: meaning for word, meaning in _OF_A_POLICY.items() if word != "eps"}
"""... where the policy explores by its own chance: TRL's `eps` are episodes per second."""
_OF_COMPLETIONS: Mapping[str, _Meaning] = dict.fromkeys(
    ("len", "resp len", "resp length", "gen len", "out len"), _Meaning("completion_length", _positive)
)
_OF_EPISODES: Mapping[str, _Meaning] = {"len": _Meaning("episode_length", _positive)}
_OF_PAIRS: Mapping[str, _Meaning] = {
    "r+": _Meaning("rewards/chosen"),
    "r-": _Meaning("rewards/rejected"),
    **dict.fromkeys(("δr", "dr", "r margin", "r gap", "implicit margin"), _Meaning("rewards/margins")),
    **dict.fromkeys(("acc", "implicit acc", "dpo acc"), _Meaning("rewards/accuracies", _share)),
}
_OF_OPPONENTS: Mapping[str, _Meaning] = {
    **dict.fromkeys(("critic", "disc", "dl", "gan d", "d gan"), _Meaning("discriminator_loss")),
    **dict.fromkeys(("gen", "gl", "gan g", "g gan"), _Meaning("generator_loss")),
}
_OF_BOXES: Mapping[str, _Meaning] = {"p": _Meaning("precision"), "r": _Meaning("recall"), "ar": _Meaning("recall")}
_OF_SUMMARIES: Mapping[str, _Meaning] = {
    "r 1": _Meaning("rouge1"),
    "r 2": _Meaning("rouge2"),
    "r l": _Meaning("rougeL"),
}
_OF_PHASES: Mapping[str, _Meaning] = {"tl": _Meaning("loss"), "vl": _Meaning("eval_loss")}
_EPOCHS: Mapping[str, _Meaning] = dict.fromkeys(("e", "ep"), _Meaning("epoch", _passes))
_STEPS: Mapping[str, _Meaning] = dict.fromkeys(
    ("i", "t", "#", "up", "gen", "mini step", "gen iter"), _Meaning("step", _counts)
)
_WITHIN: Mapping[str, _Meaning] = dict.fromkeys(("i", "batch"), _Meaning("step", _counts_again))
_EVER: Mapping[str, _Meaning] = {
    **dict.fromkeys(("toks", "n toks"), _Meaning("num_tokens", _counts)),
    **dict.fromkeys(("alloc", "mem peak", "peak alloc"), _Meaning("memory", _positive)),
}
_OF_AMOUNTS: Mapping[str, _Meaning] = {"tokens": _Meaning("num_tokens", _counts)}
"""... where nothing counts: next to a step, tokens may be those of a batch."""
_OF_LABELS: Mapping[str, _Meaning] = {
    "tgt": _Meaning("loss_tokens", _counts_again),
    "tok": _Meaning("batch_tokens", _counts_again),
}
"""... where both are logged: the tokens that have a target, of all tokens of a batch."""
_OF_TIMES: Mapping[str, _Meaning] = {
    "optimizer": _Meaning("optimizer_time", _positive),
    "t total": _Meaning("step_time", _positive),
}
"""... where the times of the passes through a model are logged, too."""


def abbreviations(columns: Columns) -> str | None:
    """Names that only what else is logged explains, `R`, `H` and `EV` of a policy, `E` and `#` where nothing counts."""
    notes, words = [], _words(columns)
    for meanings in _tables(columns):
        for name, word in words.items():
            meaning = meanings.get(word) if name in columns else None
            if meaning is None or not _fits(columns, name, meaning):
                continue
            new = _in_phase(name, meaning.name)
            if any(canonical(column) == new for column in columns if column != name):
                continue
            rename(columns, name, new)
            notes.append(f"{name!r} is read as {new}")
    return "; ".join(notes) or None


MIN_COUNTED = 5
"""Records in which an unknown column has to count on before it is the step. Chosen: chance seldom rises as often."""
MIN_SHARE_OF_RISES = 0.1
"""... and the share of them in which it rises. Chosen: a record may hold one of ten metrics of a step."""


def lone_counter(columns: Columns) -> str | None:
    """The only column without a role whose whole numbers rise all the time, where nothing else counts, `n`."""
    quantities = _log_of(columns).quantities
    if not quantities.isdisjoint({Quantity.STEP, Quantity.EPOCH, Quantity.EPISODE, *AMOUNTS}):
        return None
    rising = [name for name, column in columns.items() if role_of(name) is None and _counts_on(column.values())]
    words = {name.rpartition("/")[2] for name in rising}
    most = max(map(len, columns.values()), default=0)
    if len(words) != 1 or sum(len(columns[name]) for name in rising) < max(most, MIN_COUNTED):
        return None
    for name in rising:
        rename(columns, name, _in_phase(name, "step"))
    return f"{words.pop()!r} is read as step: it alone counts on"


def _counts_on(values: Floats) -> bool:
    return len(values) > 1 and _counts(values) and float(np.mean(np.diff(values) > 0)) >= MIN_SHARE_OF_RISES


def _tables(columns: Columns) -> list[Mapping[str, _Meaning]]:
    """Return what abbreviations mean in a log, the surest first."""
    log = _log_of(columns)
    tables = [_OF_PAIRS] if _is_of_pairs(log) else []
    tables += _of_what_is_trained(log)
    if log.has("r 1", "r 2"):
        tables.append(_OF_SUMMARIES)
    if Quantity.EPOCH not in log.quantities:
        tables.append(_EPOCHS)
    if Quantity.STEP not in log.quantities:
        tables += [_STEPS, _WITHIN] if Quantity.EPOCH in log.quantities else [_STEPS, _OF_AMOUNTS]
    if log.has("tgt", "tok"):
        tables.append(_OF_LABELS)
    if {Quantity.FORWARD_TIME, Quantity.BACKWARD_TIME} <= log.quantities:
        tables.append(_OF_TIMES)
    return [*tables, _EVER]


def _of_what_is_trained(log: _Log) -> list[Mapping[str, _Meaning]]:
    """Return what abbreviations mean where two networks play against each other, a policy learns, or neither."""
    if not log.quantities.isdisjoint({Quantity.DISCRIMINATOR_LOSS, Quantity.GENERATOR_LOSS}) or _are_opponents(log):
        return [_OF_OPPONENTS]
    if _is_of_a_policy(log):
        tables = [_OF_A_POLICY] if _BY_CHANCE.isdisjoint(log.quantities) else [_OF_A_GRADIENT]
        return [*tables, _OF_COMPLETIONS if _AGENTS.isdisjoint(log.quantities) else _OF_EPISODES]
    names_phases = log.has("tl", "vl") or (log.has("vl") and Quantity.LOSS in log.quantities)
    return [
        *([_OF_BOXES] if Quantity.AVERAGE_PRECISION in log.quantities else []),
        *([_OF_PHASES] if names_phases else []),
    ]


def _log_of(columns: Columns) -> _Log:
    quantities = frozenset(role.quantity for name in columns if (role := role_of(name)) is not None)
    if any(map(_EPISODES.fullmatch, columns)):
        quantities |= {Quantity.EPISODE}
    return _Log(quantities, frozenset(_words(columns).values()))


def _words(columns: Columns) -> dict[str, str]:
    """Return the word of each column, which may be an abbreviation: in lower case, without a phase or a mean."""
    return {
        name: _word(name)
        for name in columns
        if len(name) <= MAX_NAME and not name.startswith(SET_ASIDE) and not _is_a_cost(name)
    }


def _is_a_cost(name: str) -> bool:
    """Say whether a name stands in a place for times or for use of the hardware: verl's `timing_s/gen`."""
    return not _COSTS.isdisjoint(_WORD.findall(name.lower().rpartition("/")[0]))


def _word(name: str) -> str:
    inside = name.rpartition("/")[2].strip()
    if inside.lower() in _OF_PAIRS:
        return inside.lower()
    if inside in ("T", "I"):
        return inside  # a temperature, a number of images
    if name in ("eval_P", "eval_R", "eval_p", "eval_r"):
        return name  # the readers' own names for columns of a detector's table
    words: list[str] = _WORD.findall(inside.lower().rstrip("."))
    kept = [word for word in words if word not in PHASES and word not in _MEANS]
    return " ".join(kept)


def _in_phase(name: str, meant: str) -> str:
    """Return a canonical name as that of evaluation where a name says so."""
    words = _WORD.findall(normal(name))
    return f"eval_{meant}" if any(PHASES.get(word) == "eval" for word in words) else meant


def _fits(columns: Columns, name: str, meaning: _Meaning) -> bool:
    """Say whether a column is not understood, or less closely, and its values can be those of what it would be."""
    role = role_of(name)
    if role is not None and meaning.name not in _CLOSER.get(role.quantity, ()):
        return False
    values = columns[name].finite()
    return len(values) > 0 and meaning.can_be(values)


_CLOSER: Mapping[Quantity, tuple[str, ...]] = {
    Quantity.ACCURACY: ("rewards/accuracies",),
    Quantity.VALUE: ("value_loss", "discriminator_loss"),
    Quantity.LOSS: ("value_loss", "kl"),
    Quantity.RECALL: ("reward",),
    Quantity.SQUARED_ERROR: ("value_loss",),
}
"""Which names may be another quantity, of what they say by themselves."""


def _is_of_pairs(log: _Log) -> bool:
    """Say whether answers are compared in pairs."""
    return not PAIRS.isdisjoint(log.quantities) or log.has("r+", "r-")


def learns_a_policy(columns: Columns) -> bool:
    """Say whether the columns of a log are those of a policy that learns from rewards."""
    return _is_of_a_policy(_log_of(columns))


def _is_of_a_policy(log: _Log) -> bool:
    """Say whether a policy learns from rewards."""
    sure = _SURE & log.quantities
    abbreviated = {_OF_A_POLICY[word].name for word in log.words & _TELLING}
    if sure - _DIVERGENCES:
        return True
    return len(abbreviated) + bool(sure) >= LEAST_OF_A_POLICY


def _are_opponents(log: _Log) -> bool:
    """Say whether two networks play against each other."""
    meant = {_OF_OPPONENTS[word].name for word in log.words if word in _OF_OPPONENTS}
    return len(meant) > 1


def episodes_as_ep(columns: Columns) -> str | None:
    """`ep` next to a reward, where no other counts episodes or epochs, counts the episodes of an agent."""
    names = {normal(name).rstrip("."): name for name in columns}
    quantities = _log_of(columns).quantities
    if "ep" not in names or Quantity.EPISODE in quantities or Quantity.REWARD not in quantities:
        return None
    if not _DIVERGENCES.isdisjoint(quantities) or not ascends(columns[names["ep"]].finite()):
        return None
    columns["episode"] = columns.pop(names["ep"])
    return f"{names['ep']!r} is read as the episode"


def shares_of_phases(columns: Columns) -> str | None:
    """`Train%` next to `Valid%` is the accuracy, in percent."""
    found = {name: PHASES[match[1].lower()] for name in columns if (match := _SHARE_OF.fullmatch(name)) is not None}
    if len(found) < LEAST_OF_A_POLICY or called(columns, "accuracy", "eval_accuracy"):
        return None
    notes = []
    for name, phase in found.items():
        new = "eval_accuracy" if phase == "eval" else "accuracy"
        if new not in columns:
            rename(columns, name, new)
            notes.append(f"{name!r} is read as {new}")
    return "; ".join(notes) or None


def clipped_gradients(columns: Columns) -> str | None:
    """A share that was clipped is that of gradients where no policy learns: it is not a clip ratio."""
    quantities = _log_of(columns).quantities
    if Quantity.CLIP_FRACTION not in quantities or not (_SURE | {Quantity.ENTROPY}).isdisjoint(quantities):
        return None
    notes = []
    for name in [name for name in columns if (role := role_of(name)) and role.quantity is Quantity.CLIP_FRACTION]:
        if Quantity.GRADIENT_NORM in quantities and "gradients_clipped" not in columns:
            columns["gradients_clipped"] = columns.pop(name)
            notes.append(f"{name!r} is read as the share of gradients that were clipped: no policy learns here")
    return "; ".join(notes) or None


_OF_COMPOSER = frozenset({"time/epoch", "time/sample", "time/token", "time/batch_in_epoch", "time/sample_in_epoch"})
"""What Composer counts along with `time/batch`."""


def counters_of_composer(columns: Columns) -> str | None:
    """Composer logs under `time/` where a run is: `time/batch` are its batches, and `time/token` its tokens.

    Its console and its log file name the batch in front of each record, which `time/batch` then repeats.
    """
    notes = []
    along = len(_OF_COMPOSER & columns.keys())
    for old, new in (("time/batch", "step"), ("time/token", "num_tokens"), ("time/sample", "num_samples")):
        if old not in columns:
            continue
        values = columns[old].finite()
        alone = len(values) == 1 and along > 1
        if not alone and not (_counts(values) and ascends(values)):
            continue
        if not called(columns, new):
            columns[new] = columns.pop(old)
            notes.append(f"{old!r} is read as {new}")
        elif old == "time/batch" and (_repeats_step(columns, old) or not _OF_COMPOSER.isdisjoint(columns)):
            columns["batches_done"] = columns.pop(old)
            notes.append(f"{old!r} is the number of batches so far, not a time (Composer)")
    return "; ".join(notes) or None


def _repeats_step(columns: Columns, name: str) -> bool:
    """Say whether a column is the step of its records, counted from 0 or from 1."""
    rows, values = columns[name].arrays()
    for step in [column for raw, column in columns.items() if canonical(raw) == "step"]:
        at, steps = step.arrays()
        apart = steps[np.isin(at, rows)] - values[np.isin(rows, at)]
        if len(apart) and len(distinct(apart)) == 1 and abs(apart[0]) <= 1:
            return True
    return False


_SHARES_OF_A_POLICY = frozenset({Quantity.CLIP_FRACTION, Quantity.CLIPPED_COMPLETIONS, Quantity.GROUPS_WITHOUT_SPREAD})
_OF_TEXT = frozenset({Quantity.KL, Quantity.REWARD_SPREAD, Quantity.GROUPS_WITHOUT_SPREAD, Quantity.COMPLETION_LENGTH})
"""What is logged where a language model is the policy."""


def shares_of_a_policy(columns: Columns) -> str | None:
    """What would be a share with the word, and lies between 0 and 1, is that share: `zero_std_groups`, `truncated`.

    Without a language model, episodes are truncated by their time limit.
    """
    log = _log_of(columns)
    if not _is_of_a_policy(log) or _OF_TEXT.isdisjoint(log.quantities) or not _AGENTS.isdisjoint(log.quantities):
        return None
    notes = []
    for name in list(columns):
        role = role_of(f"{name}_fraction") if role_of(name) is None else None
        if role is None or role.quantity not in _SHARES_OF_A_POLICY or not role.is_whole or role.unit:
            continue
        values, taken = columns[name].finite(), called(columns, role.name)
        if not taken and len(values) and bool(np.all((values >= 0) & (values <= 1))):
            rename(columns, name, role.name)
            notes.append(f"{name!r} is read as {role.name}, a share")
    return "; ".join(notes) or None


def clipped_completions(columns: Columns) -> str | None:
    """`clipped_ratio` next to lengths is that of completions, as TRL calls it, and so is a second clipped share."""
    roles = {name: role for name in columns if (role := role_of(name)) is not None and role.is_whole}
    quantities = {role.quantity for role in roles.values()}
    shares = [name for name, role in roles.items() if role.quantity is Quantity.CLIP_FRACTION]
    found = [name for name in shares if "clipped" in normal(name)]
    if len(found) != 1 or Quantity.COMPLETION_LENGTH not in quantities:
        return None
    if len(shares) == 1 and normal(found[0]).rpartition("/")[2] != "clipped_ratio":
        return None
    if Quantity.CLIPPED_COMPLETIONS in quantities:
        return None
    new = _in_phase(found[0], str(Quantity.CLIPPED_COMPLETIONS))
    rename(columns, found[0], new)
    others = [share for share in shares if share != found[0]]
    return (
        f"{found[0]!r} is read as {new}, as {repr(others[0]) if others else 'the length of completions'} is logged, too"
    )
