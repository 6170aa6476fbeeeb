"""What columns with names of one's own may be, where the rules for names leave a log without a loss or a score.

A word of a loss among words that mean nothing here, `eps-mse` or `E_batch`, is a guess that the numbers have to bear
out. Each guess is stated in a note, so that a wrong one is seen and can be corrected with a name of the user's own.
Letters and short words, which other columns explain, come first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np

from mldebug_mcp.core.arrays import are_whole, distinct, median
from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.logs.columns import Column, Columns, Floats, ascends, rename
from mldebug_mcp.logs.names import Quantity, lexicon, normal, role_of
from mldebug_mcp.logs.names.grammar import LEVELS, MAX_NAME
from mldebug_mcp.logs.names.lexicon import OWN_SETS, PHASES, SET_ASIDE
from mldebug_mcp.logs.names.losses import (
    KEPT_LEVEL,
    LEAST_PERCENTAGE,
    OF_TEXT,
    UNDER_A_LOGARITHM,
    is_auxiliary,
    is_of_embeddings,
)
from mldebug_mcp.logs.names.metrics import (
    CLIPPED_NORM,
    COUNTERS,
    LISTED,
    SET_AT,
    called,
    canonical,
    is_phase_alone,
    is_training_loss,
    phase_alone,
    set_of,
)
from mldebug_mcp.logs.names.quantities import AMOUNTS, LOSSES, PAIRS
from mldebug_mcp.logs.names.words import chunks_in, pieces_of, segments_of, sorted_out

# Letters and short words that mean something only with what else is logged: `H` next to a reward is the entropy.
#
# A column is read so only where its name has no role by itself; no other column may have the role that it would get.
# Its values have to fit that role.


_WORD = regex(r"[^\W_]+%?|[%#]")
_SHARE_OF = regex(rf"({'|'.join(phase for phase in PHASES if phase.isascii())}) ?%", re.IGNORECASE, needs="%")
_MEANS = frozenset({"mean", "avg", "average", "ema"})
_COSTS = frozenset({"timing", "time", "times", "mfu", "perf", "throughput", "replay"})
"""Words of places in which no name is one of what is learnt: of times, of the hardware, and of what was stored."""
_SURELY_OF_A_POLICY = frozenset({
    Quantity.REWARD, Quantity.REWARD_SPREAD, Quantity.GROUPS_WITHOUT_SPREAD, Quantity.KL, Quantity.APPROXIMATE_KL,
    Quantity.POLICY_LOSS, Quantity.VALUE_LOSS, Quantity.ADVANTAGE, Quantity.EXPLAINED_VARIANCE, Quantity.POLICY_RATIO,
    Quantity.EPISODE_LENGTH, Quantity.COMPLETION_LENGTH, Quantity.CLIPPED_COMPLETIONS, Quantity.EPISODE,
})  # fmt: skip
"""What is logged where a policy learns; a divergence alone may be that of a variational model or of a student."""
_DIVERGENCES = frozenset({Quantity.KL, Quantity.APPROXIMATE_KL})
_BY_CHANCE = frozenset({Quantity.POLICY_RATIO, Quantity.POLICY_LOSS, Quantity.APPROXIMATE_KL})
"""What is logged where the policy itself draws its actions: no share of them is drawn at random besides."""
_AGENTS = frozenset({Quantity.EPISODE, Quantity.EPISODE_LENGTH, Quantity.EXPLORATION})
_TELLING = frozenset({
    "r", "r std", "rm", "scorer", "grader", "h", "ev", "pg", "pi", "vf", "dead groups", "flat groups", "ratio",
    "ratio min", "ratio max", "at cap", "hit cap", "cap hit",
})  # fmt: skip
"""Abbreviations that tell together that a policy learns: `eps` and `clip` may be those of private gradients."""
_EPISODES = regex(r"n(?:um)?[/_](?:eps?|episodes?)", re.IGNORECASE, needs=("_ep", "/ep"))
"""How many episodes a record holds: Tianshou's `n/ep`."""
LEAST_HALVINGS = 2
"""Halvings between the largest and the smallest loss scale that is guessed. Chosen: one may be that of anything."""
PRINTED = 1e-4
"""How far the logarithm of a printed power of two is off, at most. Chosen: six digits are off by less."""
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


def _has_values(values: Floats) -> bool:
    return len(values) > 0


def _is_within(values: Floats, most: float = 100.0) -> bool:
    """Say whether values lie between zero and a bound, by default as shares of one or percentages do."""
    return float(values.min()) >= 0 and float(values.max()) <= most


def _is_share_of_all(values: Floats) -> bool:
    """Say whether values are shares of one, none of them all: "moved 823/33608"."""
    return len(values) >= LEAST_GUESSED and _is_within(values, 1.0) and float(values.max()) < 1


def _positive(values: Floats) -> bool:
    return bool(np.all(values >= 0))


def _counts(values: Floats) -> bool:
    """Say whether values count on: whole numbers that do not fall."""
    rises = np.diff(values)
    return _positive(values) and are_whole(values) and bool(np.all(rises >= 0) and np.any(rises > 0))


def _counts_again(values: Floats) -> bool:
    """Say whether values are whole numbers, like those of a counter that may begin anew with each epoch."""
    return _positive(values) and are_whole(values) and len(distinct(values)) > 1


def _counts_evenly(values: Floats) -> bool:
    """Say whether values count on by the same whole number above one each time, as seconds hardly do."""
    rises = distinct(np.diff(values))
    return _counts(values) and len(values) >= MIN_COUNTED and len(rises) == 1 and float(rises[0]) > 1


def _is_no_count(values: Floats) -> bool:
    """Say whether values count nothing, as versions do."""
    return not _counts(values)


def _passes(values: Floats) -> bool:
    """Say whether values may be epochs: they do not fall."""
    rises = np.diff(values)
    return _positive(values) and bool(np.all(rises >= 0) and np.any(rises > 0))


def _is_halved(values: Floats) -> bool:
    """Say whether values are powers of two, of several sizes, to the digits that are printed."""
    if len(values) < LEAST_GUESSED or float(values.min()) <= 0:
        return False
    exponents = np.log2(values)
    return float(np.ptp(exponents)) >= LEAST_HALVINGS and bool(
        np.all(np.abs(exponents - np.round(exponents)) < PRINTED)
    )


def _are_means(values: Floats) -> bool:
    """Say whether values are above zero and not all whole: of `mean_tokens`, and not of tokens that are counted."""
    return len(values) >= LEAST_GUESSED and float(values.min()) > 0 and bool(np.any(values != np.floor(values)))


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What an abbreviation is read as, and whether its values can be that."""

    name: str
    can_be: Callable[[Floats], bool] = _has_values


_OF_A_POLICY: Mapping[str, _Meaning] = {
    **dict.fromkeys(("r", "ret", "rm", "fit", "fitness", "rew", "scorer", "grader", "score"), _Meaning("reward")),
    **dict.fromkeys(("r std", "fit std", "rstd", "scorer group sd"), _Meaning("reward_std", _positive)),
    **dict.fromkeys(("h", "h pi", "ent", "seq entropy"), _Meaning("entropy")),
    **dict.fromkeys(("ev", "exp var"), _Meaning("explained_variance")),
    "kl loss": _Meaning("kl"),
    **dict.fromkeys(
        ("at cap", "capped", "cap hit", "hit cap", "cap frac", "at limit", "at max", "maxed"),
        _Meaning("completions/clipped_ratio", _is_within),
    ),
    **dict.fromkeys(("pg", "pi"), _Meaning("policy_loss")),
    **dict.fromkeys(("v", "v pred", "v hat", "baseline"), _Meaning("value", _is_no_count)),
    **dict.fromkeys(("vf", "vloss", "baseline loss", "loss value", "val fn loss"), _Meaning("value_loss")),
    **dict.fromkeys(
        ("clip", "clip%", "clip %", "clip frac", "outside", "frac outside", "ratio outside"),
        _Meaning("clip_ratio", _is_within),
    ),
    **dict.fromkeys(("ε", "eps", "explore eps", "exploration eps"), _Meaning("exploration_rate", _is_within)),
    **dict.fromkeys(("dead groups", "zero groups", "flat groups"), _Meaning("frac_reward_zero_std", _is_within)),
    **dict.fromkeys(("ratio", "ppo ratio"), _Meaning("policy_ratio", _positive)),
    "ratio min": _Meaning("policy_ratio_min", _positive),
    "ratio max": _Meaning("policy_ratio_max", _positive),
    "adv": _Meaning("advantages"),
    **dict.fromkeys(("td", "td huber", "td mse", "v mse", "v huber"), _Meaning("value_loss")),
    **dict.fromkeys(("surr", "surrogate"), _Meaning("policy_loss")),
    "clip high": _Meaning("clip_ratio/high_mean", _is_within),
    "clip low": _Meaning("clip_ratio/low_mean", _is_within),
    "is clipped": _Meaning("clip_ratio/mean", _is_within),
}
_OF_A_GRADIENT: Mapping[str, _Meaning] = {word: meaning for word, meaning in _OF_A_POLICY.items() if word != "eps"}
"""... where the policy explores by its own chance: TRL's `eps` are episodes per second."""
_OF_COMPLETIONS: Mapping[str, _Meaning] = {
    **dict.fromkeys(("len", "resp len", "resp length", "gen len", "out len"), _Meaning("completion_length", _positive)),
    **dict.fromkeys(("tokens", "words", "toks", "n tok", "n words"), _Meaning("completion_length", _are_means)),
}
_OF_EPISODES: Mapping[str, _Meaning] = {"len": _Meaning("episode_length", _positive)}
_OF_PAIRS: Mapping[str, _Meaning] = {
    "r+": _Meaning("rewards/chosen"),
    "r-": _Meaning("rewards/rejected"),
    **dict.fromkeys(("δr", "dr", "r margin", "r gap", "implicit margin"), _Meaning("rewards/margins")),
    **dict.fromkeys(("acc", "implicit acc", "dpo acc"), _Meaning("rewards/accuracies", _is_within)),
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
) | {"s": _Meaning("step", _counts_evenly)}
_WITHIN: Mapping[str, _Meaning] = dict.fromkeys(("i", "batch"), _Meaning("step", _counts_again))
_EVER: Mapping[str, _Meaning] = {
    **dict.fromkeys(("toks", "n toks"), _Meaning("num_tokens", _counts)),
    **dict.fromkeys(("alloc", "mem peak", "peak alloc"), _Meaning("memory", _positive)),
    **dict.fromkeys(("moved", "weights moved", "params moved"), _Meaning("changed_weights", _is_share_of_all)),
}
_OF_AMOUNTS: Mapping[str, _Meaning] = {"tokens": _Meaning("num_tokens", _counts)}
"""... where nothing counts: next to a step, tokens may be those of a batch."""
_OF_LABELS: Mapping[str, _Meaning] = {
    "tgt": _Meaning("loss_tokens", _counts_again),
    "tok": _Meaning("batch_tokens", _counts_again),
}
"""... where both are logged: the tokens that have a target, of all tokens of a batch."""
_OF_HALVES: Mapping[str, _Meaning] = dict.fromkeys(
    ("scale", "sc", "amp", "ls", "dyn scale", "dynamic scale"), _Meaning("loss_scale", _is_halved)
)
"""... where nothing has 8 bits, whose tensors have scales of their own."""
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
    words = {name.rpartition("/")[2] for name in rising} - {"version"}  # weights may be older than the step
    if any(word.lower() in LISTED for word in words):
        return None
    most = max(map(len, columns.values()), default=0)
    rising = [name for name in rising if name.rpartition("/")[2] in words]
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
    if not any("8" in name for name in columns):
        tables.append(_OF_HALVES)
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
    outside, _, inside = (part.strip() for part in name.rpartition("/"))
    if outside and inside.lower() in _MEANS:
        return _word(outside)  # {"score": {"mean": 0.5}}
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
    Quantity.SCORE: ("reward",),
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
    sure = _SURELY_OF_A_POLICY & log.quantities
    abbreviated = {_OF_A_POLICY[word].name for word in log.words & _TELLING}
    if sure - _DIVERGENCES:
        return True
    return len(abbreviated) + bool(sure) >= LEAST_OF_A_POLICY


def _are_opponents(log: _Log) -> bool:
    """Say whether two networks play against each other."""
    meant = {_OF_OPPONENTS[word].name for word in log.words if word in _OF_OPPONENTS}
    return len(meant) > 1


_OWN_SETS = {
    **OWN_SETS,
    **dict.fromkeys(("run", "own"), "train"),
    **dict.fromkeys(("unseen", "kept", "other", "out", "o"), "eval"),
}
"""... in names that stand with one measure each."""
_PIECE = regex(r"[^\W\d_]+")


def sets_of_ones_own(columns: Columns) -> str | None:
    """`seen nll` next to `hidden nll` is of training, where both words stand with one measure; so is `ce.fit`."""
    found: dict[str, tuple[str, str]] = {}
    for name in columns:
        pieces = _PIECE.findall(name.lower())
        sets = [piece for piece in pieces if piece in _OWN_SETS]
        if len(sets) == 1 and 1 < len(pieces) <= MOST_WORDS and not name.startswith(SET_ASIDE):
            found[name] = (_OWN_SETS[sets[0]], " ".join(piece for piece in pieces if piece != sets[0]))
    both = [{measure for kind, measure in found.values() if kind == phase} for phase in ("train", "eval")]
    measures = both[0] & both[1]
    if not any(_read(measure).rank is not None or role_of(measure) is not None for measure in measures):
        return None
    notes = []
    for name, (phase, measure) in found.items():
        new = f"{'val' if phase == 'eval' else 'train'} {measure}"
        is_measure = measure in measures or role_of(measure) is not None
        if is_measure and new not in columns and sum(each == (phase, measure) for each in found.values()) == 1:
            rename(columns, name, new)
            notes.append(f"{name!r} is read as {new!r}")
    return f"{'; '.join(notes)} (guessed)" if notes else None


_SIDES = {
    "win": "lose",
    "winner": "loser",
    "w": "l",
    "pos": "neg",
    "good": "bad",
    "better": "worse",
    "preferred": "other",
}
"""What the two answers of a pair are called, besides chosen and rejected."""
_LOGPS = regex(r"(?:^|[^a-z])(?:lp|logps?|log_?probs?|ll)(?:[^a-z]|$)", re.IGNORECASE)
_LAST_WORD = regex(rf"(?P<before>.*[^a-z])(?P<word>{'|'.join(_SIDES)})", re.IGNORECASE | re.ASCII, needs=tuple(_SIDES))


def sides_of_pairs(columns: Columns) -> str | None:
    """`lp/win` next to `lp/lose` are the log-probabilities of the two answers of a pair, where both are below zero."""
    notes = []
    for name in list(columns):
        found = _LAST_WORD.fullmatch(name)
        if found is None or _LOGPS.search(found["before"]) is None:
            continue
        side = _SIDES[found["word"].lower()]
        other = next((each for each in columns if each.lower() == f"{found['before']}{side}".lower()), "")
        for column, new in ((name, "logps/chosen"), (other, "logps/rejected")) if other else ():
            meant = _in_phase(column, new)
            values = columns[column].finite()
            if meant not in columns and len(values) and float(values.max()) < 0:
                rename(columns, column, meant)
                notes.append(f"{column!r} is read as {meant}")
    return "; ".join(notes) or None


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
    if Quantity.CLIP_FRACTION not in quantities or not (_SURELY_OF_A_POLICY | {Quantity.ENTROPY}).isdisjoint(
        quantities
    ):
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
_OF_TEXT = OF_TEXT | {Quantity.COMPLETION_LENGTH}
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
        if not taken and len(values) and _is_within(values, 1.0):
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


LEAST_GUESSED = 8
"""Finite values from which on numbers can bear out a guess; chosen by hand."""
MIN_SHARE_OF_RECORDS = 0.5
"""Share of the records of the longest column that a training loss stands in; chosen by hand."""
MAX_SHARE_OF_EVALUATIONS = 0.5
"""Share of the records of a training loss up to which its like may be of an evaluation; chosen by hand."""
MAX_SHARE_OF_RARE = 0.25
"""... and up to which an error without a phase is none of training, next to a loss of each record. Chosen by hand."""
LEAST_RISE = 1.1
"""Factor by which a share rises that is a score for want of a sure word; chosen by hand."""
LEAST_FIRST = 3
"""Values that tell where a curve begins."""
LEAST_FALL = 0.95
"""Factor by which an error or an energy falls that is taken for the loss. Chosen by hand."""
MAX_POWER = 300.0
"""Largest power of ten that a logarithm to the base of ten stands for: beyond it lies what no float can hold."""
_VAGUE_RANK = 2
"""Rank of names from which on a loss is only what does not rise."""
MOST_WORDS = 5
"""Words of a name that may be a loss: more are a sentence."""

_SURE, _ERRORS, _VAGUE = (
    lexicon.all_of(lexicon.METRICS[name]) for name in ("own_losses", "own_errors", "own_vague_losses")
)
_LETTERS = lexicon.all_of(lexicon.METRICS["own_letters_of_a_loss"])
_LETTERS_IN_WORDS = frozenset(letter.lower() for letter in _LETTERS)
_OF_LOSSES = lexicon.NAMED_LOSSES | _SURE | _ERRORS | _VAGUE
_SCORES, _VAGUE_SCORES = (lexicon.all_of(lexicon.METRICS[name]) for name in ("own_scores", "own_vague_scores"))
_OPPONENTS = frozenset({"d", "g", "discriminator", "generator", "real", "fake"})
_NOT_OF_A_LOSS = (
    lexicon.SPOILERS
    | _OPPONENTS
    | ((lexicon.CONCEPTS | _SCORES) - _OF_LOSSES - lexicon.SOFT - lexicon.OF_A_LOSS_TOO - _LETTERS_IN_WORDS)
)
"""Words that make something else of a name that has a word of a loss: its rate, its norm, its weight."""
_MARKS_OF_EVALUATION = frozenset({"t", "v"})
"""Letters behind the name of a loss that stand for a test or a validation, where it is logged more rarely."""
_KNOWN = (
    lexicon.CONCEPTS | lexicon.SOFT | lexicon.SPOILERS | lexicon.PARTS_OF_A_LOSS | lexicon.PARTS_OF_A_MODEL
) - _MARKS_OF_EVALUATION
_SUM = regex(r"[ELJ]\w{0,8}(?:\+[ELJ]\w{0,8}){1,5}", needs="+")
_MAY_BE = LOSSES | {
    Quantity.SQUARED_ERROR, Quantity.ROOT_SQUARED_ERROR, Quantity.ABSOLUTE_ERROR, Quantity.ERROR_RATE, Quantity.KL,
}  # fmt: skip
"""Quantities that a name may have which is the loss of a log without another."""
LEAST_EVALUATIONS = 2
"""Values of an evaluation that is guessed at."""
_LOSSES = ("loss", "eval_loss")
_OPPONENT_LOSSES = ("discriminator_loss", "generator_loss")
_NOT_OF_A_SCORE = lexicon.SPOILERS | (lexicon.CONCEPTS - lexicon.SOFT - _SCORES - {"rate", "top", "fraction"})
_IN_BARS = regex(r"\|[ ]?(?:g|grad|gradient|d[ELJ]/d[wθ])[ ]?\|[ _]?(?:it|iter|opt|step|batch|raw)?", re.IGNORECASE)
"""A norm between bars, with what it is the norm of, and where it was taken."""
_IN_THE_OPTIMIZER = regex(r"opt", re.IGNORECASE)
_STEP_SIZES = (["rate"], ["size", "step"], ["stepsize"])
MAX_STEP_SIZE = 0.5
"""Largest value of a bare `rate` that is a learning rate: above it may be a share of anything. Chosen by hand."""
MOST_TURNS = 0.15
"""Share of records at which a learning rate turns from falling to rising or back, as it does twice at a restart.
Chosen by hand: what is drawn at random turns at two of three."""


@dataclass(frozen=True, slots=True)
class _Name:
    """The words of a name that no grammar knows as a whole.

    Args:
        words: What may be measured, and of what.
        letters: The capital letters that stand alone in it.
        numbers: Numbers in it.
        phase: "train", "eval" or "".
        statistic: "mean", "max", …, or "".
        unit: The unit of its values, or "".
        is_logarithm: Whether it is under a logarithm to the base of ten.
        is_sum: Whether it is a sum of symbols for losses: `Lp+Lke`.
    """

    words: frozenset[str]
    letters: frozenset[str]
    numbers: tuple[str, ...]
    phase: str
    statistic: str
    unit: str
    is_logarithm: bool
    is_sum: bool

    @property
    def measure(self) -> frozenset[str]:
        """Those of the words, or of its letters, that may be of a loss or a score."""
        named = self.words & (_OF_LOSSES | _SCORES | _VAGUE_SCORES)
        return named or self.words & _LETTERS_IN_WORDS

    @property
    def core(self) -> frozenset[str]:
        """The words that say which loss it is."""
        return self.words - lexicon.SOFT

    @property
    def rank(self) -> int | None:
        """How unsure it is that this is a loss, 0 for the surest; None if it is none."""
        if not self.words or len(self.words) > MOST_WORDS or self.unit or self.statistic not in LEVELS:
            return None
        if not self.words.isdisjoint(_NOT_OF_A_LOSS):
            return None
        kinds = (_SURE | lexicon.NAMED_LOSSES, _ERRORS, _VAGUE)
        found = next((rank for rank, kind in enumerate(kinds) if not kind.isdisjoint(self.words)), None)
        symbolic = not self.letters.isdisjoint(_LETTERS) or self.is_sum
        return len(kinds) if found is None and symbolic else found


@lru_cache(maxsize=4096)
def _read(name: str) -> _Name:
    bare = UNDER_A_LOGARITHM.sub("", name[:MAX_NAME])
    words = sorted_out(segments_of(bare))
    letters = frozenset(chunk for chunk in chunks_in(bare) if len(chunk) == 1 and chunk.isupper())
    return _Name(
        frozenset(words.base),
        letters,
        tuple(words.numbers),
        words.phase,
        words.statistic,
        words.unit,
        bare != name[:MAX_NAME],
        _SUM.fullmatch(bare) is not None,
    )


def _names(columns: Columns) -> dict[str, _Name]:
    """Return the words of the columns, but for those that a reader set aside."""
    return {name: _read(name) for name in columns if not name.startswith(lexicon.SET_ASIDE)}


def _ends(values: Floats) -> tuple[float, float]:
    """Return the median of the first tenth of values, as most is learnt early, and of the last third."""
    tenth, third = max(len(values) // 10, LEAST_FIRST), max(len(values) // 3, 1)
    return median(values[:tenth]), median(values[-third:])


def _power_of_ten(column: Column) -> Column:
    """Return the numbers whose logarithms to the base of ten a column holds."""
    at, value = column.arrays()
    with np.errstate(over="ignore", invalid="ignore"):
        return Column.of(at, np.power(10.0, value))


# The loss.


def rare_errors(columns: Columns) -> str | None:
    """A bare `MAE` that is logged now and then is of an evaluation where a loss with its own name is in each record."""
    if called(columns, "loss", "eval_loss"):
        return None
    loss = _training_loss(columns)
    if loss is None:
        return None
    notes = []
    for name, read in _names(columns).items():
        bare = len(read.words) == 1 and read.words <= _ERRORS and not read.phase and not read.is_logarithm
        if bare and len(columns[name]) <= MAX_SHARE_OF_RARE * len(columns[loss]):
            rename(columns, name, f"eval_{canonical(name)}")
            notes.append(f"{name!r} is read as of evaluation: it is logged more rarely than {loss!r} (guessed)")
    return "; ".join(notes) or None


def loss_of_ones_own(columns: Columns) -> str | None:
    """`eps-mse`, `E_batch` or `log10(mse)` is the loss of a log without another, where its numbers are those of one."""
    if called(columns, "loss"):
        return None
    name = _training_loss(columns)
    if name is None:
        return None
    twin = None if called(columns, "eval_loss") else _evaluation_of(columns, name, columns[name])
    _read_as(columns, name, "loss")
    if twin is None:
        return f"{_name_text(name)} is read as the loss (guessed)"
    _read_as(columns, twin, "eval_loss")
    return f"{_name_text(name)} is read as the loss, {_name_text(twin)} as the eval_loss (guessed)"


def _name_text(name: str) -> str:
    return f"10 to the power of {name!r}" if _read(name).is_logarithm else repr(name)


def _read_as(columns: Columns, name: str, new: str) -> None:
    """Read a column as the loss: what is under a logarithm, or says what the loss can tell, keeps its own name too."""
    if _read(name).is_logarithm:
        columns[new] = _power_of_ten(columns[name])
    elif is_of_embeddings(name) and new == "loss":
        columns[new] = columns[name]
    else:
        rename(columns, name, new)


def _training_loss(columns: Columns) -> str | None:
    """Return the column that is the loss as far as names and numbers tell, None where none is, or several may be."""
    quantities = {role.quantity for name in columns if (role := role_of(name)) is not None}
    if any("loss" in name.lower() and is_training_loss(name) and _is_a_term(name) for name in columns):
        return None  # of which the rules for names leave it open which one is the loss
    if learns_a_policy(columns) or not quantities.isdisjoint(_OF_ANOTHER_LEARNER) or _is_one_curve(columns):
        return None
    longest = max((len(columns[name]) for name in columns), default=0)
    found: list[tuple[int, int, str]] = []
    for name, read in _names(columns).items():
        rank = read.rank
        if "kl" in read.words and (len(read.core) > 1 or not quantities.isdisjoint(LOSSES)):
            continue  # a term of a loss whose sum is not logged
        if _is_error_rate(name, columns[name]):
            continue
        if rank is None or read.phase == "eval" or is_auxiliary(name) or not _is_free(name):
            continue
        if len(columns[name]) < MIN_SHARE_OF_RECORDS * longest or not _may_be_loss(columns[name], rank, read):
            continue
        # An `energy` that stays may be a measure of anything, unless it is taken of held-out data, too.
        if rank < _VAGUE_RANK or _falls(columns[name], read) or _evaluation_of(columns, name, columns[name]):
            # `E` stands before `E_data`, and the loss itself before its logarithm
            found.append((rank, len(read.core) + (read.statistic not in ("", "mean")) + read.is_logarithm, name))
    found.sort(key=lambda item: item[:2])
    if not found or (len(found) > 1 and found[0][:2] == found[1][:2]):
        return None
    return found[0][2]


def _is_a_term(name: str) -> bool:
    return not (is_auxiliary(name) or _read(name).is_logarithm or name.startswith(lexicon.SET_ASIDE))


def _is_one_curve(columns: Columns) -> bool:
    """Say whether a file holds a single curve next to counters and clocks, as one tag of many that was exported."""
    roles = [role_of(name) for name in columns]
    measured = [role for role in roles if role is None or not (role.quantity.is_counter or role.quantity in _CLOCKS)]
    return len(measured) < 2


_CLOCKS = frozenset({Quantity.ELAPSED, Quantity.TIMESTAMP, Quantity.STEP_TIME})
_OF_ANOTHER_LEARNER = frozenset({
    Quantity.REWARD, Quantity.POLICY_LOSS, Quantity.VALUE_LOSS, Quantity.EXPLORATION, Quantity.EPISODE,
    Quantity.DISCRIMINATOR_LOSS, Quantity.GENERATOR_LOSS,
})  # fmt: skip
"""What is logged where no single loss says how training goes."""


def _is_error_rate(name: str, column: Column) -> bool:
    """Say whether a bare error is a share of wrong answers, or may be one in percent."""
    role, values = role_of(name), column.finite()
    is_error = role is not None and role.quantity is Quantity.ERROR_RATE and role.is_whole
    return is_error and len(values) > 0 and not 1 < float(values.max()) <= LEAST_PERCENTAGE


def _is_free(name: str) -> bool:
    """Say whether a name is not understood, or as an error or the part of a loss."""
    role = role_of(name)
    return role is None or (role.quantity in _MAY_BE and role.statistic in LEVELS)


def _may_be_loss(column: Column, rank: int, read: _Name) -> bool:
    """Say whether numbers can be those of a loss: positive, no counts, no constant, no share that rises."""
    values = column.finite()
    if len(values) < LEAST_GUESSED:
        return False
    first, last = _ends(values)
    if read.is_logarithm:
        return float(np.abs(values).max()) < MAX_POWER and float(np.ptp(values)) > 0
    if values.min() < 0 or not np.any(values != np.floor(values)) or np.ptp(values) == 0:
        return False
    rises = last > (1 + KEPT_LEVEL) * first
    return not (rises and (rank >= _VAGUE_RANK or _is_share(values)))


def _falls(column: Column, read: _Name) -> bool:
    first, last = _ends(column.finite())
    return last < first + np.log10(LEAST_FALL) if read.is_logarithm else last < LEAST_FALL * first


# What was measured of held-out data under a name of one's own.


def evaluation_of_ones_own(columns: Columns) -> str | None:
    """Next to `xent`, which is read as the loss, `xent_t` that is logged more rarely is the evaluation loss."""
    loss = called(columns, "loss")
    if not loss or called(columns, "eval_loss"):
        return None
    name = columns[loss].logged_as or loss
    if "loss" in name.lower():
        return None  # the rules for names know how the evaluation of such a loss is called
    twin = _evaluation_of(columns, name, columns[loss])
    if twin is None:
        return None
    _read_as(columns, twin, "eval_loss")
    return f"{_name_text(twin)} is read as the eval_loss: it is logged in other records than {name!r} (guessed)"


def _evaluation_of(columns: Columns, name: str, trained: Column) -> str | None:
    """Return the column that is a measure of held-out data, None where none is, or several may be.

    It has a phase; or a word that means nothing here, and stands in fewer and in other records.
    """
    own = _read(name)
    surely, maybe = [], []
    for other, read in _names(columns).items():
        if other == name or len(columns[other].finite()) < LEAST_EVALUATIONS or canonical(other) in _LOSSES:
            continue
        if not _is_same_measure(own, read):
            continue
        if read.phase == "eval":
            surely.append(other)
        elif not read.phase and _is_another_place(own, read) and _is_rare_and_apart(columns[other], trained):
            maybe.append(other)
    found = [twin for twin in surely if _read(twin).core == own.core] or surely or maybe
    return found[0] if len(found) == 1 else None


def _is_same_measure(own: _Name, other: _Name) -> bool:
    """Say whether two names are of one measure, in other places: of 6 answers or of 256 another level is good."""
    if other.unit or other.statistic not in LEVELS or other.numbers != own.numbers:
        return False
    return own.measure == other.measure != frozenset() and (own.core ^ other.core).isdisjoint(_KNOWN)


def _is_another_place(own: _Name, other: _Name) -> bool:
    added = other.core - own.core
    return bool(added) and all(len(word) > 1 or word in _MARKS_OF_EVALUATION for word in added)


def _is_rare_and_apart(column: Column, trained: Column) -> bool:
    """Say whether a column stands in fewer records than one of training, and in other ones."""
    at, trained_at = column.arrays()[0], trained.arrays()[0]
    return len(at) <= MAX_SHARE_OF_EVALUATIONS * len(trained_at) and not np.isin(at, trained_at).any()


_MAY_BE_SHARE = regex(r"(?:valid|prob(?:e|ing)|harness)\b", re.IGNORECASE)
"""Phases that are also words for a share of outputs, or of a layer, next to an evaluation."""
MAX_APART_AT_START = 1.5
"""Times by which the first evaluation and the training of that time differ at most. Chosen: both begin at chance."""
MAX_APART_OF_ONE_COURSE = 4.0
"""... and where it falls with the loss, whose first value is of an epoch that begins untrained. Chosen by hand."""


def evaluation_by_phase_alone(columns: Columns) -> str | None:
    """`val` alone is the evaluation loss or accuracy, whichever of training it begins near to; so is each `val@96`.

    So are sets that only their phase and their own name tell of: "dev legal 2.4  dev code 3.1", "fresh 2.2".
    """
    if learns_a_policy(columns):
        return None
    unread = [name for name in columns if role_of(name) is None]
    sets = [name for name in unread if phase_alone(set_of(name)) == "eval"]
    sets.sort(key=lambda name: (not is_phase_alone(name), -len(columns[name])))
    notes = [note for name in sets if (note := _read_by_phase(columns, name)) is not None]
    at = {name: match["at"] for name in unread if (match := SET_AT.fullmatch(name)) is not None}
    if at and not sets and (near := _near_to(columns, next(iter(at)))):
        for name, place in at.items():
            rename(columns, name, f"{near}@{place}")
        listed = f"{', '.join(map(repr, at))} {'is' if len(at) == 1 else 'are'}"
        notes.append(f"{listed} read as the {near}: no other word stands next to the phase (guessed)")
    return "; ".join(notes) or None


def _near_to(columns: Columns, name: str) -> str:
    """Return what a set is an evaluation of, the loss or the accuracy, whichever it begins near to; "" if no one."""
    measured = {"eval_loss": called(columns, "loss"), "eval_accuracy": called(columns, "accuracy")}
    apart: dict[str, float] = {}
    for new, trained in measured.items() if len(columns[name].finite()) >= LEAST_EVALUATIONS else ():
        begins, first = _first_beside(columns[trained], columns[name]) if trained else (0.0, 0.0)
        if min(first, begins) > 0:
            apart[new] = max(first / begins, begins / first)
    if len(apart) > 1 and _goes_with_loss(columns, name, *measured.values()):
        return "eval_loss" if apart["eval_loss"] <= MAX_APART_OF_ONE_COURSE else ""
    near = [new for new, times in apart.items() if times <= MAX_APART_AT_START]
    return near[0] if len(near) == 1 else ""


def _goes_with_loss(columns: Columns, name: str, loss: str, accuracy: str) -> bool:
    """Say whether a set falls with the loss, to half or less, while the accuracy rises, which no accuracy does."""
    (_, last), (begins, ends), (least, most) = (_ends(columns[at].finite()) for at in (name, loss, accuracy))
    return 0 < last <= float(columns[name].finite()[0]) / 2 and ends < begins and most > least


def _read_by_phase(columns: Columns, name: str) -> str | None:
    """Read a column of one set as what it begins near to."""
    new = "" if _MAY_BE_SHARE.match(name) and called(columns, "eval_loss") else _near_to(columns, name)
    if not new:
        return None
    if not is_phase_alone(name) or called(columns, new):
        new = f"{name} {new.removeprefix('eval_')}"
    rename(columns, name, new)
    return f"{name!r} is read as the {new}: no other word stands next to the phase (guessed)"


def _first_beside(trained: Column, evaluated: Column) -> tuple[float, float]:
    """Return the level of training where a set is evaluated first, and what that gives."""
    (rows, values), (at, first) = trained.arrays(), evaluated.arrays()
    end = max(int(np.searchsorted(rows, at[0], side="right")), 1)
    return median(values[max(0, end - LEAST_FIRST) : end]), float(first[0])


def return_within_bounds(columns: Columns) -> str | None:
    """`ticks 41 (min 3 max 90)` is the return of a policy where no reward is logged: one mean has bounds of its own."""
    bounds = {normal(name): name for name in columns}
    results = [role for name in columns if (role := role_of(name)) is not None and role.quantity in _RETURNS]
    if results or not {"min", "max"} <= bounds.keys() or not learns_a_policy(columns):
        return None
    low, high = columns[bounds["min"]], columns[bounds["max"]]
    found = [
        name
        for name in columns
        if role_of(name) is None
        and canonical(name) not in COUNTERS
        and normal(name) not in ("min", "max")
        and _lies_within(low, columns[name], high)
    ]
    if len(found) != 1 or _OF_LENGTH.search(found[0]):
        return None
    rename(columns, found[0], "reward")
    return f"{found[0]!r} is read as the reward: it alone stands with its least and its most (guessed)"


def _lies_within(low: Column, between: Column, high: Column) -> bool:
    """Say whether values lie between two others at each record, and off both at some."""
    (rows, least), (at, values), (also, most) = low.arrays(), between.arrays(), high.arrays()
    if len(at) < LEAST_GUESSED or not (np.array_equal(rows, at) and np.array_equal(at, also)):
        return False
    return bool(np.all((least <= values) & (values <= most)) and np.any((least < values) & (values < most)))


# The share of right answers.


def score_of_ones_own(columns: Columns) -> str | None:
    """`pick1` next to a loss is the accuracy of a log without a score, where it is a share that rises as that falls."""
    loss = called(columns, "loss")
    roles = [role for name in columns if (role := role_of(name)) is not None and role.is_whole]
    if not loss or learns_a_policy(columns) or any(role.quantity.higher_is_better for role in roles):
        return None
    trained = columns[loss]
    names = [name for name, read in _names(columns).items() if _is_a_score(name, read)]
    found = [name for name in names if _may_be_score(columns[name], _read(name), trained)]
    often = [name for name in found if len(columns[name]) >= MIN_SHARE_OF_RECORDS * len(trained)]
    own = [name for name in often if _read(name).phase != "eval"]
    if len(own) > 1:
        return None
    twin = _evaluation_of(columns, own[0], columns[own[0]]) if own else None
    if not own:
        rare = [name for name in found if _read(name).phase == "eval" or _is_rare_and_apart(columns[name], trained)]
        twin = rare[0] if len(rare) == 1 else None
    notes = []
    for name, new in ((own[0] if own else None, "accuracy"), (twin, "eval_accuracy")):
        if name is not None and _is_share(columns[name].finite()):
            rename(columns, name, new)
            notes.append(f"{name!r} is read as the {new}")
    return f"{', '.join(notes)} (guessed)" if notes else None


def _is_a_score(name: str, read: _Name) -> bool:
    words = read.core
    sure_or_vague = not (_SCORES | _VAGUE_SCORES).isdisjoint(words)
    return sure_or_vague and role_of(name) is None and words.isdisjoint(_NOT_OF_A_SCORE) and not read.is_logarithm


def _may_be_score(column: Column, read: _Name, trained: Column) -> bool:
    """Say whether numbers are shares; under a word that may mean another share, they have to rise as the loss falls."""
    values, loss = column.finite(), trained.finite()
    if min(len(values), len(loss)) < LEAST_GUESSED or not _is_share(values):
        return False
    (first, last), (loss_first, loss_last) = _ends(values), _ends(loss)
    return not _SCORES.isdisjoint(read.words) or (loss_last < loss_first and last > LEAST_RISE * first)


def _is_share(values: Floats) -> bool:
    """Say whether values are shares of one or percentages that are not all the same."""
    return (
        len(values) > 0
        and _is_within(values)
        and float(np.ptp(values)) > 0
        and bool(np.any(values != np.floor(values)))
    )


# The learning rate and the norm of the gradients.


_RETURNS = frozenset({
    Quantity.REWARD, Quantity.SCORE, Quantity.SUCCESS_RATE, Quantity.LOSS, Quantity.ACCURACY, Quantity.EPISODE_LENGTH,
})  # fmt: skip
"""What tells by itself how well a policy does, or that another column is not its return."""
_OF_LENGTH = regex(r"len|length|tok|time|dur|age|lag", re.IGNORECASE)
_GRADIENTS = frozenset({"g", "gn", "grad", "grads", "gnorm", "gradnorm", "gradient", "gradients"})
_BEFORE_CLIPPING = frozenset({"raw", "pre", "before", "unclipped", "full", "preclip", "clip", "clipping"})
_AFTER_CLIPPING = frozenset({"used", "post", "after", "clipped", "applied", "postclip", "clip", "clipping"})
_LEFT_BY_CLIPPING = _AFTER_CLIPPING - {"clipped", "clip", "clipping"}
"""Words of such a norm that are of no share of the steps, as `clipped` may be."""
_COMPARED = frozenset({"ratio", "frac", "fraction", "share", "rate", "coef", "scale", "factor", "count", "steps"})
"""Words of a name that is of how much clipping takes, and no norm."""
MOST_ROUNDED = 0.01
"""Share by which a printed norm may lie above another that is as large. Chosen: two digits round by less."""


def step_size_of_ones_own(columns: Columns) -> str | None:
    """A bare `rate` or "step size" is the learning rate where it is small, and rises and falls as a schedule does."""
    if called(columns, "learning_rate"):
        return None
    for name, read in _names(columns).items():
        if role_of(name) is not None or read.unit or sorted(read.words) not in _STEP_SIZES or read.phase == "eval":
            continue
        values = columns[name].finite()
        if len(values) >= LEAST_GUESSED and _is_within(values, MAX_STEP_SIZE) and _is_smooth(values):
            rename(columns, name, "learning_rate")
            return f"{name!r} is read as learning_rate (guessed)"
    return None


def _is_smooth(values: Floats) -> bool:
    """Say whether values turn from rising to falling and back at few records."""
    signs = np.sign(np.diff(values))
    moved = signs[signs != 0]
    return float(np.count_nonzero(moved[1:] != moved[:-1])) <= MOST_TURNS * len(values)


def gradient_norm_of_ones_own(columns: Columns) -> str | None:
    """`opt/g`, `|g|opt` and `g` next to a learning rate are the gradient norm of a log without another."""
    if called(columns, "grad_norm"):
        return None
    found = [name for name, read in _names(columns).items() if _is_of_gradient(name, read, columns)]
    found = [name for name in found if _IN_THE_OPTIMIZER.search(name)] or found
    if len(found) != 1 or not _may_be_norm(columns[found[0]], _read(found[0])):
        return None
    _read_as(columns, found[0], "grad_norm")
    return f"{_name_text(found[0])} is read as grad_norm (guessed)"


def norms_around_clipping(columns: Columns) -> str | None:
    """`raw g` and `used g` are the norm of the gradient before and after clipping, which never lies above the other."""
    parts = {name: {*pieces_of(name)} for name in columns}
    of_gradient = [name for name, words in parts.items() if words & _GRADIENTS and not words & _COMPARED]
    for after in of_gradient:
        words = parts[after]
        bare = words - _AFTER_CLIPPING
        others = [name for name in of_gradient if name != after]
        before = others if len(others) == 1 else [name for name in others if parts[name] - _BEFORE_CLIPPING == bare]
        if bare == words or len(before) != 1 or not _never_above(columns[after], columns[before[0]]):
            continue
        (first,) = before
        if canonical(first) != "grad_norm":
            if called(columns, "grad_norm") not in ("", after):
                return None
            rename(columns, first, "grad_norm")
        rename(columns, after, CLIPPED_NORM)
        return f"{first!r} is read as grad_norm, {after!r} as what clipping leaves of it (guessed)"
    return _norm_held_at_bound(columns)


def _norm_held_at_bound(columns: Columns) -> str | None:
    """`applied` next to the gradient norm is what clipping leaves of it, where it is one number and never above it."""
    if not (norm := called(columns, "grad_norm")):
        return None
    words_after = {name: {*pieces_of(name)} for name in columns if role_of(name) is None}
    held = [
        name
        for name, words in words_after.items()
        if words and words <= _LEFT_BY_CLIPPING | _GRADIENTS | {"norm"} and words & _LEFT_BY_CLIPPING
        and len(distinct(columns[name].finite())) == 1
    ]  # fmt: skip
    if len(held) != 1 or not _never_above(columns[held[0]], columns[norm]):
        return None
    (after,) = held
    rename(columns, after, CLIPPED_NORM)
    return f"{after!r} is read as what clipping leaves of {norm!r} (guessed)"


def _never_above(after: Column, before: Column) -> bool:
    """Say whether norms behind clipping lie at or below those before it, and below it at some record."""
    (rows, cut), (at, norms) = after.arrays(), before.arrays()
    _, first, second = np.intersect1d(rows, at, return_indices=True)
    known = np.isfinite(cut[first]) & np.isfinite(norms[second])
    cut, norms = cut[first][known], norms[second][known]
    within = bool(np.all((cut >= 0) & (cut <= norms * (1 + MOST_ROUNDED))))
    return len(cut) >= LEAST_GUESSED and within and bool(np.any(cut < norms))


def _is_of_gradient(name: str, read: _Name, columns: Columns) -> bool:
    role = role_of(name)
    if read.is_logarithm and role is not None and role.quantity is Quantity.GRADIENT_NORM:
        return True
    if _IN_BARS.fullmatch(name.strip()) is not None:
        return True
    is_letter = (
        read.words == {"g"} and bool(called(columns, "learning_rate")) and not called(columns, *_OPPONENT_LOSSES)
    )
    return role is None and not read.unit and (is_letter or read.words == {"optimizer", "g"})


def _may_be_norm(column: Column, read: _Name) -> bool:
    values = column.finite()
    if len(values) < LEAST_GUESSED or not np.ptp(values) or not np.any(values != np.floor(values)):
        return False
    return float(np.abs(values).max()) < MAX_POWER if read.is_logarithm else float(values.min()) >= 0


_NORM_OF = regex(r"\s*[|‖]{1,2}\s?(?P<part>[A-Za-z][\w.-]{0,30})\s?[|‖]{1,2}\s*", needs=("|", "‖"))
"""The norm of what is named in bars: `|emb|`."""
LEAST_NORMS = 3
"""Norms of parts that stand side by side in bars. Chosen: one or two may be of anything."""
SAME_NORM = 0.05
"""Share by which the norms of parts, put together, may be off the norm of the whole. Chosen: for printed digits."""


def norms_of_parts(columns: Columns) -> str | None:
    """`|emb|`, `|attn|`, `|mlp|` next to the gradient norm are its parts where they add up to it, else of weights."""
    found = {name: match["part"] for name in columns if (match := _NORM_OF.fullmatch(name))}
    own = (Quantity.GRADIENT_NORM, Quantity.UPDATE_NORM, Quantity.UPDATE_RATIO)
    found = {name: part for name, part in found.items() if (role := role_of(name)) is None or role.quantity not in own}
    found = {name: part for name, part in found.items() if canonical(name) not in ("weight_norm", "grad_norm")}
    name_of_whole = called(columns, "grad_norm")
    whole = columns[name_of_whole].finite() if name_of_whole else None
    values = [columns[name].finite() for name in found]
    if len(found) < LEAST_NORMS or whole is None or any(len(each) != len(whole) or each.min() < 0 for each in values):
        return None
    summed = np.sqrt(np.sum(np.square(values), axis=0))
    is_gradient = bool(np.all(np.abs(summed - whole) <= SAME_NORM * whole))
    quantity = "grad_norm" if is_gradient else "weight_norm"
    for name, part in found.items():
        rename(columns, name, f"{quantity}/{part}")
    why = "they add up to its norm" if is_gradient else "they do not add up to the gradient norm"
    return f"{', '.join(map(repr, found))} are read as {quantity} of parts of the model: {why} (guessed)"


CONVENTIONS_OF_SHORT_NAMES = (
    counters_of_composer, episodes_as_ep, sets_of_ones_own, sides_of_pairs, abbreviations, shares_of_a_policy,
    clipped_completions, clipped_gradients, return_within_bounds,
)  # fmt: skip
"""Conventions of names that other columns explain, in the order in which they are tried."""
CONVENTIONS_BEFORE_LOSSES = (
    step_size_of_ones_own,
    norms_around_clipping,
    gradient_norm_of_ones_own,
    norms_of_parts,
    rare_errors,
)
"""Conventions of names of one's own that losses with names of their own depend on."""
CONVENTIONS_AFTER_LOSSES = (loss_of_ones_own, evaluation_of_ones_own, evaluation_by_phase_alone, score_of_ones_own)
"""... and those that ask whether a loss was found."""
