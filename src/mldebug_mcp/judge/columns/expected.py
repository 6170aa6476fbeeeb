"""What is usually logged of machines, rows, weights and samples, and what a healthy run holds there.

A row of the tables is one kind of column: the words of its name, the bound that a healthy run keeps, and the reason.
The words are those of the name in lower case, joined by `_`, without those of training and of a mean.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from mldebug_mcp.checks.curve import at_common_steps
from mldebug_mcp.checks.evaluation import as_shares, mixes_labels
from mldebug_mcp.checks.policies import kept_rise
from mldebug_mcp.core.arrays import distinct, median
from mldebug_mcp.core.lazy import regex, replace
from mldebug_mcp.core.text import figure, some_of
from mldebug_mcp.judge.columns import (
    LEAST_PAIRS,
    MIN_LEARNING_FALL_SHARE,
    MIN_RECORDS_FOR_LEVEL,
    NOT_BY_LOSS,
    POLICIES,
    Facts,
    Losses,
    by_key,
    columns_of,
    derived_fact,
    from_to,
    given_losses,
    last_level,
    last_third,
    learns,
    named,
    tail,
    whole_column,
    whole_columns,
)
from mldebug_mcp.logs import Run, Series
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.names.metrics import side_of
from mldebug_mcp.logs.names.quantities import HIGHER_IS_BETTER, LOWER_IS_BETTER
from mldebug_mcp.logs.names.words import in_words, pieces_of
from mldebug_mcp.models.diagnosis import DerivedFact


class Bound(NamedTuple):
    """Where a healthy run stays by the last third: below `most`, above `least`.

    Args:
        most: The bound from above.
        least: The bound from below.
        of_first: The bounds are times the level of the first eighth.
        of_highest: The bounds are times the highest value.
        is_share: The values are shares of one; those in per cent are divided by 100.
    """

    most: float = np.inf
    least: float = -np.inf
    of_first: bool = False
    of_highest: bool = False
    is_share: bool = False

    def crossed(self, values: Floats) -> int | None:
        """Return the first record beyond the bound where the last third lies there; None where it does not."""
        scale = 1.0
        if self.of_first or self.of_highest:
            scale = median(values[: max(1, len(values) // 8)]) if self.of_first else float(values.max())
            if scale <= 0:
                return None
        late = median(last_third(values))
        if self.least * scale <= late <= self.most * scale:
            return None
        return int(np.argmax((values > self.most * scale) | (values < self.least * scale)))


class Expectation(NamedTuple):
    """What a kind of column is expected to hold.

    Args:
        fact: The id of the fact that it does not.
        name: The quantity of the whole run, or the words of the name.
        bound: Where a healthy run stays.
        expected: What is expected, as a sentence.
        not_for: Kinds of runs in which the column means something else.
        only_for: Kinds of runs in which alone it means this; empty for all.
    """

    fact: str
    name: Quantity | re.Pattern[str]
    bound: Bound
    expected: str
    not_for: Collection[str] = ()
    only_for: Collection[str] = ()


_SHARE = r"(?:frac(?:tion)?|share|ratio|rate|pct|percent(?:age)?)"
_TOKENS_THAT_COUNT = (
    rf"(?:supervised|unmasked|loss_mask)(?:_tokens?)?(?:_{_SHARE})?|(?:label|target|answer|valid)_tokens?_{_SHARE}"
)
_EXPECTED = (
    Expectation(
        "waits_for_data",
        regex(
            rf"(?:data|input|loader|dataloader|fetch)_(?:wait(?:ing)?|stall|load|time)_{_SHARE}",
            needs=("data", "input", "load", "fetch"),
        ),
        Bound(most=0.4, is_share=True),
        "A loader that keeps up makes a step wait for a few per cent of its time.",
    ),
    Expectation(
        "loader_queue_empty",
        regex(
            r"(?:data|loader|dataloader|prefetch)_(?:queue|buffer)(?:_(?:depth|size|len(?:gth)?|fill))?|queue_depth"
            r"|prefetched_batches",
            needs=("queue", "buffer", "prefetched"),
        ),
        Bound(least=0.5),
        "Batches that wait in the queue show that the loader keeps up. With an empty one each step waits.",
    ),
    Expectation(
        "device_idle",
        Quantity.DEVICE_UTILISATION,
        Bound(least=0.2, is_share=True),
        "A device that is fed computes for most of the time.",
    ),
    Expectation(
        "clip_leaves_little",
        regex(r"(?:grad(?:ient)?_)?clip(?:ping)?_(?:coef(?:f|ficient)?|factor|multiplier)", needs="clip"),
        Bound(least=0.05),
        "Each gradient is scaled by this number. Clipping that is meant for rare steps leaves most of them whole.",
    ),
    Expectation(
        "update_ratio_large",
        Quantity.UPDATE_RATIO,
        Bound(most=0.03),
        "About 0.001 of the weights in a step is usual. At 0.03 some 30 steps replace them.",
    ),
    Expectation(
        "updates_turn_back",
        regex(r"(?:update|upd|grad|gradient|step)s?_(?:cos(?:ine)?|autocorr)(?:_(?:sim|prev))*", needs=("cos", "corr")),
        Bound(least=-0.5),
        "Steps of a fitting length go on in much the same direction. These turn back each time.",
    ),
    Expectation(
        "weight_norm_grows",
        Quantity.WEIGHT_NORM,
        Bound(most=10.0, of_first=True),
        "Weights that learn grow by tens of per cent. Logits and activations grow with these.",
    ),
    Expectation(
        "attention_entropy_gone",
        regex(r"(?:attn|att|attention)_(?:\w+_)?(?:entropy|ent)", needs="ent"),
        Bound(least=0.15, of_highest=True),
        "Heads that look at one place alone have logits that grew. The loss gets unstable with them.",
    ),
    Expectation(
        "logit_scale_beyond",
        regex(r"(?:exp_)?logit_scale(?:_exp)?", needs="logit"),
        Bound(most=100.5),
        "CLIP holds this scale at 100 at most. Beyond it, single pairs decide the gradient.",
    ),
    Expectation(
        "temperature_gone",
        regex(r"(?:loss_|contrastive_|learned_|clip_)?temp(?:erature)?", needs="temp"),
        Bound(least=0.01),
        "CLIP holds a learned temperature at 0.01 at least. Below it, single pairs decide the gradient.",
        not_for=POLICIES,
    ),
    Expectation(
        "rows_are_copies",
        regex(rf"(?:dups?|duplicates?|duplicated|repeated)(?:_(?:rows|samples|docs))?_{_SHARE}", needs=("dup", "rep")),
        Bound(most=0.2, is_share=True),
        "Rows of one pass are distinct but for some per cent.",
    ),
    Expectation(
        "padding_mostly",
        regex(rf"pad(?:ding|ded)?(?:_tokens?)?_{_SHARE}", needs="pad"),
        Bound(most=0.8, is_share=True),
        "Most of what is computed is thrown away. Batches of rows of like lengths, or packing, save it.",
    ),
    Expectation(
        "hardly_any_target",
        regex(_TOKENS_THAT_COUNT, needs=("supervised", "mask", "tok")),
        Bound(least=0.005, is_share=True),
        "So few labels count that next to nothing is trained on.",
    ),
    Expectation(
        "every_token_counts",
        regex(_TOKENS_THAT_COUNT, needs=("supervised", "mask", "tok")),
        Bound(most=0.999, is_share=True),
        "Answers are a part of rows of prompts and answers. Here the loss counts the prompts too.",
        only_for=("sft",),
    ),
    Expectation(
        "codebook_unused",
        regex(rf"(?:codebook|codes?|vq)_(?:used|usage|utili[sz]ation|alive)(?:_{_SHARE})?", needs=("code", "vq")),
        Bound(least=0.1, is_share=True),
        "A codebook that works uses most of its codes. Here nearly all inputs share a few.",
    ),
    Expectation(
        "codebook_perplexity_gone",
        regex(r"(?:codebook|code|vq|cluster)_(?:perplexity|ppl)", needs=("perplexity", "ppl")),
        Bound(least=0.2, of_highest=True),
        "It is the number of codes in equal use, and rises as a codebook fills.",
    ),
    Expectation(
        "samples_alike",
        regex(
            rf"(?:(?:sample|intra|gen|generated|output|image)_)?diversity|distinct_\d"
            rf"|unique_(?:(?:samples?|completions?|answers?|outputs?)_)?{_SHARE}",
            needs=("diversity", "distinct", "unique"),
        ),
        Bound(least=0.15, of_highest=True),
        "What is generated keeps most of its variety in a healthy run.",
    ),
    Expectation(
        "text_repeats",
        regex(rf"rep(?:etition|eat|eated)?(?:_(?:\d|n|grams?|gram_{_SHARE}|{_SHARE}))+", needs="rep"),
        Bound(most=0.5, is_share=True),
        "Text of a trained model repeats some per cent of its n-grams.",
    ),
    Expectation(
        "ratio_far_off",
        regex(r"(?:(?:policy|importance|is|sampling)_)*ratio_max|max_(?:(?:policy|is)_)?ratio", needs="ratio"),
        Bound(most=100.0),
        "The probabilities of a policy move by tens of per cent between two updates.",
        only_for=POLICIES,
    ),
    Expectation(
        "sampler_differs",
        regex(
            r"(?!.*max).*(?:sampling|sampler|rollout|inference|vllm|generation)_.*(?:log_?prob|logp|prob)s?_"
            r"(?:.*_)?(?:diff|difference|gap|delta)",
            needs=("diff", "gap", "delta"),
        ),
        Bound(most=0.2),
        "Sampler and trainer with the same weights differ by about 0.01 nats a token, from rounding alone.",
        only_for=POLICIES,
    ),
    Expectation(
        "samples_hardly_count",
        Quantity.EFFECTIVE_SAMPLES,
        Bound(least=0.2, is_share=True),
        "Samples of the policy that is trained count nearly whole. Old ones are weighed away.",
        only_for=POLICIES,
    ),
    Expectation(
        "advantages_without_spread",
        regex(r"adv(?:antage)?s?_(?:std|spread)", needs="adv"),
        Bound(least=1e-3),
        "Advantages are usually scaled to a spread of one. Without any, nothing is preferred.",
        only_for=POLICIES,
    ),
    Expectation(
        "actions_without_spread",
        regex(r"(?:actions?|act|policy)_(?:std|sigma|stddev)", needs=("act", "policy")),
        Bound(least=0.03, of_first=True),
        "A policy that explores keeps some spread of its actions.",
        only_for=POLICIES,
    ),
)  # fmt: skip


class Count(NamedTuple):
    """Events that a healthy run has none of, or a few at its start.

    Args:
        fact: The id of the fact that they go on.
        name: The words of the name.
        expected: What is expected, as a sentence.
    """

    fact: str
    name: re.Pattern[str]
    expected: str


_EVENTS = (
    Count(
        "allocator_retries",
        regex(r"(?:num_|n_)?(?:(?:cuda_)?(?:malloc|alloc|allocator)_retries|ooms)", needs=("retries", "ooms")),
        "Each retry gives all cached memory back and waits. Free memory lies in pieces, or is short.",
    ),
    Count(
        "device_errors",
        regex(
            r"(?:.*_)?(?:ecc|xid|nvlink|pcie|crc|dram)_(?:.*_)?(?:errors?|replays?|events?|retries)|(?:num_|n_)?xids?",
            needs=("ecc", "xid", "nvlink", "pcie", "crc", "dram"),
        ),
        "A working device counts none.",
    ),
    Count(
        "gradients_not_finite",
        regex(
            r"(?:num_|n_)?(?:grads?_)?(?:non_?finite|nans?|infs|nan_inf)(?:_(?:grads?|gradients?|params?|count|steps))?"
            r"|has_(?:nan|inf)",
            needs=("finite", "nan", "inf"),
        ),
        "Half precision overflows at times while the loss scale settles. Later each has a reason of its own.",
    ),
)  # fmt: skip
"""Counts, and what a count that goes on means."""
MIN_LATE_EVENTS = 3
"""Events in the last third. Chosen: one or two happen."""


def off_expectation(run: Run) -> Facts:
    """Yield each column that is not where a healthy run holds it by the last third of its records.

    Not this where no row knows its name, or a share lies outside of 0 to 1 without being in per cent.
    """
    rows = [row for row in _EXPECTED if run.kind not in row.not_for and (not row.only_for or run.kind in row.only_for)]
    for series, words in _long(run):
        for row in (row for row in rows if _is_of(series, words, row)):
            values = _as_asked(series, words, row.bound)
            if values is not None and (at := row.bound.crossed(values)) is not None:
                yield _stated(row.fact, series, at, row.expected)


def events_go_on(run: Run) -> Facts:
    """Yield each count of errors that goes on in the last third of its records."""
    for series, words in _long(run):
        for row in _EVENTS:
            if row.name.fullmatch(words) is None or series.value.min() < 0:
                continue
            is_sum = bool(np.all(np.diff(series.value) >= 0)) and series.value[-1] > series.value[0]
            each = np.diff(series.value, prepend=series.value[0]) if is_sum else series.value
            if last_third(each).sum() >= MIN_LATE_EVENTS and last_level(series) > 0:
                yield _stated(row.fact, series, int(np.argmax(each > 0)), row.expected)


def _long(run: Run) -> Iterator[tuple[Series, str]]:
    """Yield the columns of some length with the words of their names, without training and mean."""
    for name, column in run.series.items():
        series = column.finite
        if len(series) >= MIN_RECORDS_FOR_LEVEL:
            yield series, in_words(name, with_means=False)


def _is_of(series: Series, words: str, row: Expectation) -> bool:
    if isinstance(row.name, Quantity):
        return series.role is not None and series.quantity is row.name and series.role.is_whole
    return row.name.fullmatch(words) is not None


def _as_asked(series: Series, words: str, bound: Bound) -> Floats | None:
    """Return the values, shares of one where these are asked; None where they are no shares."""
    values = series.value
    if not bound.is_share:
        return values
    low, high = float(values.min()), float(values.max())
    in_per_cent = "pct" in words or "percent" in words or (series.role is not None and series.role.quantity.is_share)
    if low < 0 or high > (100 if in_per_cent else 1):
        return None
    return values / 100 if high > 1 else values


def _stated(fact: str, series: Series, at: int, expected: str) -> DerivedFact:
    first, late = float(series.value[0]), last_level(series)
    goes = f"goes from {figure(first)} to {figure(late)}" if np.ptp(series.value) else f"is {figure(late)} throughout"
    return derived_fact(
        fact, f"{named(series)} {goes}. {expected}", {"first": first, "late": late}, at=float(series.step[at])
    )


MANY_SKIPPED = 0.2
"""Share of the last third's steps that are skipped. Chosen: a loss scale that is tried higher costs one in 2,000."""


def steps_skipped(run: Run) -> Facts:
    """Yield that many of the last third's steps were skipped, where their count is a sum over the run."""
    skipped = whole_column(run, Quantity.SKIPPED_STEPS, least=MIN_RECORDS_FOR_LEVEL)
    if skipped is None or np.any(np.diff(skipped.value) < 0):
        return
    late = len(skipped) - max(2, len(skipped) // 3)
    lost, steps = skipped.value[-1] - skipped.value[late], skipped.step[-1] - skipped.step[late]
    if MANY_SKIPPED * steps <= lost <= steps:
        yield derived_fact(
            "steps_skipped",
            f"{named(skipped)} rises by {figure(lost)} over the last {figure(steps)} steps: so many updates are left "
            "out. A loss scale that has settled skips one in thousands.",
            {"skipped": lost, "steps": steps},
            at=skipped.step[late],
        )


_OF_ANSWERS = frozenset({"pred", "preds", "predicted", "prediction", "predictions", "output", "outputs", "yhat"})
_OF_TARGETS = frozenset({"label", "labels", "target", "targets", "true", "gold", "actual", "y"})
_OF_SPREAD = frozenset({"std", "spread", "var", "sigma"})
_OF_SHARES = frozenset({"frac", "fraction", "share", "ratio", "rate", "pos", "positive", "positives"})
LEFT_OF_TARGETS = 0.05
"""What answers have of the spread, or of the share, of the targets at most. Chosen: regularised ones have a half."""


def predictions_off_labels(run: Run) -> Facts:
    """Yield that answers have next to none of the spread, or of the positive ones, that targets have in the same log.

    Their names differ in one word: `pred_std` and `target_std`.
    """
    targets, answers = dict[tuple[str, ...], Series](), dict[tuple[str, ...], Series]()
    for series, words in _long(run):
        pieces = words.split("_")
        for found, of in ((targets, _OF_TARGETS), (answers, _OF_ANSWERS)):
            if len(rest := tuple(piece for piece in pieces if piece not in of)) == len(pieces) - 1:
                found[rest] = series
    for rest, target in targets.items():
        answer, is_spread = answers.get(rest), not _OF_SPREAD.isdisjoint(rest)
        if answer is None or answer.value.min() < 0 or not (is_spread or not _OF_SHARES.isdisjoint(rest)):
            continue
        level, late = last_level(target), last_level(answer)
        if level > 0 and late <= LEFT_OF_TARGETS * level:
            means = "nearly all rows get one answer" if is_spread else "next to no row gets the answer that these have"
            yield derived_fact(
                "predictions_without_spread" if is_spread else "predictions_without_label",
                f"{named(answer)} is {figure(late)} by the last third, where {named(target)} is {figure(level)}: "
                f"{means}.",
                {"answers": late, "targets": level},
                at=last_third(answer.step)[0],
            )


def _silent(parts: Sequence[Series], fact: str, counted_as: str, why: str) -> Facts:
    """Yield that some parts of a list are exactly 0 in all records, where another one never is."""
    silent, live = [part for part in parts if not part.value.any()], [part for part in parts if part.value.all()]
    if silent and live:
        yield derived_fact(
            fact,
            f"{some_of([named(part) for part in silent])} {'is' if len(silent) == 1 else 'are'} exactly 0 in all "
            f"{len(silent[0])} records, where {named(live[0])} is {from_to(live[0].value)}. {why}",
            {counted_as: len(silent)},
            at=silent[0].step[0],
        )


_FROZEN = regex(
    r"(?i)freez|frozen|lora|adapter|peft|linear_?prob", needs=("freez", "frozen", "lora", "adapter", "peft", "prob")
)


def part_without_gradient(run: Run) -> Facts:
    """Yield that the gradient norm of a part is exactly 0 in all records, and that of another part is not.

    Not this where a setting says that something is frozen, or trained by adapters.
    """
    settings = run.settings.values()
    if not any(_FROZEN.search(each.key) and each.value not in (False, 0, "", "none") for each in settings):
        norms = columns_of(run, Quantity.GRADIENT_NORM, least=MIN_RECORDS_FOR_LEVEL)
        yield from _silent(
            [norm for norm in norms if norm.role is not None and not norm.role.is_whole],
            "part_without_gradient",
            "parts",
            "No gradient gets there: frozen, detached, or not part of what the loss depends on.",
        )


_OF_ACTIVATIONS = frozenset(
    {"act", "acts", "activation", "activations", "hidden", "output", "out", "feature", "features"}
)
_OF_SIZE = frozenset({"std", "rms", "norm", "abs", "absmean", "scale", "var"})
MIN_LAYERS = 4
"""Layers in a row. Chosen: the change from one to the next is then none of a single one."""
FAR_APART = 100.0
"""Times that the sizes of first and last layer differ. Chosen: with one size kept by design a few times are usual."""


def layers_shrink(run: Run) -> Facts:
    """Yield that activations shrink, or grow, from each layer to the next, a hundredfold in all, from the start on."""
    lists: dict[str, dict[int, Series]] = {}
    for series, words in _long(run):
        pieces = words.split("_")
        numbers = [piece for piece in pieces if piece.isdecimal()]
        if len(numbers) == 1 and not _OF_ACTIVATIONS.isdisjoint(pieces) and not _OF_SIZE.isdisjoint(pieces):
            lists.setdefault(words.replace(numbers[0], "#", 1), {})[int(numbers[0])] = series
    for layers in lists.values():
        ordered = [layers[number] for number in sorted(layers)]
        sizes = np.array([float(series.value[0]) for series in ordered])
        if len(ordered) < MIN_LAYERS or sizes.min() <= 0:
            continue
        steps = np.diff(np.log(sizes))
        is_falling = bool(np.all(steps < 0))
        if (is_falling or bool(np.all(steps > 0))) and abs(steps.sum()) > np.log(FAR_APART):
            yield derived_fact(
                "layers_shrink" if is_falling else "layers_grow",
                f"In the first record {named(ordered[0])} is {figure(sizes[0])} and {named(ordered[-1])} "
                f"{figure(sizes[-1])}, and each layer between is {'smaller' if is_falling else 'larger'} than the one "
                "before. Weights of a fitting scale keep the size from layer to layer.",
                {"first": sizes[0], "last": sizes[-1]},
                at=ordered[0].step[0],
            )


_OF_FIRING = frozenset({"nonzero", "active", "alive", "firing", "fires", "fired"})
_OF_SILENCE = frozenset(
    {"dead", "zero", "zeros", "sparsity", "inactive", "saturated", "grad", "gradient", "importance"}
)
"""Words of a list in which zero is what a sound layer has."""


def layer_gives_nothing(run: Run) -> Facts:
    """Yield that what one layer gives is exactly 0 in all records, where another layer of the same list gives some."""
    lists = by_key((name.rpartition("/")[0], series) for name, series in run.series.items())
    for head, columns in lists.items():
        words = set(pieces_of(head))
        is_of_layers = words & _OF_FIRING or (words & _OF_ACTIVATIONS and words & (_OF_SIZE | {"mean", "frac"}))
        if is_of_layers and not words & _OF_SILENCE:
            yield from _silent(
                [column.finite for column in columns if len(column.finite) >= MIN_RECORDS_FOR_LEVEL],
                "layer_gives_nothing",
                "layers",
                "No unit of that layer fires for any row, so that no gradient gets through it.",
            )


def policy_never_moves(run: Run) -> Facts:
    """Yield that the divergence of a policy from the one that sampled, and its clips, are exactly 0 after the start.

    Not this where the reward rises: with one pass over each batch the first measure is taken before the update.
    """
    kl = whole_column(run, Quantity.APPROXIMATE_KL, least=MIN_RECORDS_FOR_LEVEL)
    clips = whole_column(run, Quantity.CLIP_FRACTION, least=MIN_RECORDS_FOR_LEVEL)
    moves = [series for series in (kl, clips) if series is not None]
    if run.kind not in POLICIES or kl is None or kept_rise(run) is not None:
        return
    if not any(series.value[1:].any() for series in moves):
        yield derived_fact(
            "policy_never_moves",
            f"{' and '.join(map(named, moves))} {'is' if len(moves) == 1 else 'are'} exactly 0 in all "
            f"{len(kl)} records. Any update leaves some; with several passes over a batch it shows.",
            at=kl.step[0],
        )


_OF_VALUES = regex(r"(?:target_)?(?:q|qs|q_values?|q_target|critic_q)(?:_\d)?(?:_(?:pred|values?|target))?", needs="q")
TIMES_RETURN = 3.0
"""Times the largest return of an episode. Chosen: discounted sums of the same rewards stay below one."""


def values_above_returns(run: Run) -> Facts:
    """Yield that a critic's values are far above any return of an episode, where rewards are not negative."""
    returns = whole_column(run, Quantity.REWARD, least=MIN_RECORDS_FOR_LEVEL)
    if run.kind != "rl" or returns is None or returns.value.min() < 0:
        return
    most = float(returns.value.max())
    for series, words in _long(run):
        if _OF_VALUES.fullmatch(words) is not None and last_level(series) > TIMES_RETURN * most:
            yield derived_fact(
                "values_above_returns",
                f"{named(series)} goes from {figure(series.value[0])} to {figure(last_level(series))}, and the best "
                f"{named(returns)} is {figure(most)}. With no negative rewards no state is worth more "
                "than the best episode gives.",
                {"value": last_level(series), "return": most},
                at=series.step[int(np.argmax(series.value > TIMES_RETURN * most))],
            )


MIN_EVALUATIONS = 6
"""Evaluations over which a score worsens. Chosen: of fewer, two bad ones would do."""
WORSE_BY = 0.15
"""Share of its first level by which a score ends worse at least. Chosen: other rows cost less."""
_NEGATIVE = frozenset({"neg", "negative", "minus"})
_OF_SAMPLES = frozenset({Quantity.FID, Quantity.LPIPS})
"""What is measured of generated samples alone."""
_WITH_A_BETTER_SIDE = sorted((HIGHER_IS_BETTER | LOWER_IS_BETTER) - {Quantity.RANK})


def score_worsens(run: Run) -> Facts:
    """Yield that a score of evaluation ends worse than it ever was at first, while each loss falls.

    Not this where the loss of evaluation rises too, which says that rows are learnt by heart.
    """
    losses = [run[name].finite for name in ("loss", "eval_loss") if name in run]
    if run.kind in NOT_BY_LOSS or not losses or any(len(loss) < LEAST_PAIRS for loss in losses):
        return
    if any(loss.value[0] > 0 and not learns(loss) for loss in losses):
        return
    for series in columns_of(run, *_WITH_A_BETTER_SIDE, least=MIN_EVALUATIONS):
        role = series.role
        if role is None or not (role.is_evaluation or role.quantity in _OF_SAMPLES):
            continue
        if not _NEGATIVE.isdisjoint(pieces_of(named(series))):
            continue  # a bound that is negated is better the lower it is
        first, way = series.value[: len(series) // 3], 1 if role.quantity.higher_is_better else -1
        level, moved = median(first), abs(last_level(series) - median(first))
        if (way * tail(series)).max() < (way * first).min() and moved > WORSE_BY * abs(level):
            falls = " and ".join(
                f"{named(loss)} falls from {figure(loss.value[0])} to {figure(loss.value[-1])}" for loss in losses
            )
            yield derived_fact(
                "score_worsens",
                f"{named(series)} goes from {figure(series.value[0])} to {figure(series.value[-1])}, which is worse, "
                f"while {falls}. What is scored there is not what training gets better at.",
                {"first": series.value[0], "last": series.value[-1]},
                at=series.step[len(first)],
            )


@given_losses(LEAST_PAIRS)
def evaluation_is_training(_: Run, losses: Losses) -> Facts:
    """Yield that the losses of training and evaluation are one number, to the last digit, wherever both are logged."""
    steps, trained, evaluated = at_common_steps(*losses)
    if np.array_equal(trained, evaluated) and len(distinct(evaluated)) >= LEAST_PAIRS:
        yield derived_fact(
            "evaluation_is_training",
            f"{named(losses[1])} and {named(losses[0])} are the same number, to the last digit, in all {len(steps)} "
            f"records of both, from {figure(evaluated[0])} to {figure(evaluated[-1])}. Other rows have another loss: "
            "training rows are evaluated, or one number is logged twice.",
            {"records": len(steps), "last": evaluated[-1]},
            at=float(steps[0]),
        )


SETS_APART = 0.25
"""Share of right answers, or area under a curve, between two sets. Chosen: rows of one origin differ by less."""
_OF_ONE_SCORE = (Quantity.ACCURACY, Quantity.AUC, Quantity.F1, Quantity.IOU, Quantity.DICE, Quantity.AVERAGE_PRECISION)
_MOVING = frozenset({"ema", "swa", "teacher", "averaged", "smoothed", "best", "top"})


def sets_score_apart(run: Run) -> Facts:
    """Yield that the same score of two held-out sets differs by far at each common evaluation of the last third.

    Not this where one of them is a class, a layer or a moving average, or both are as good as a guess.
    """
    for quantity in _OF_ONE_SCORE:
        scores = whole_columns(run, quantity, phase="eval", least=LEAST_PAIRS)
        found = [_as_shares(score) for score in scores if _MOVING.isdisjoint(pieces_of(named(score)))]
        for one, other in combinations(found, 2):
            steps, first, second = at_common_steps(one, other)
            apart = np.abs(last_third(first) - last_third(second))
            if len(steps) < LEAST_PAIRS or apart.min() < SETS_APART:
                continue
            yield derived_fact(
                "sets_score_apart",
                f"{named(one)} is {figure(first[-1])} and {named(other)} {figure(second[-1])} at the last one, "
                f"and they are {figure(apart.min())} or more apart over the last third. "
                "Either rows of the better set are in the training data, or the other set is of another kind.",
                {"one": first[-1], "other": second[-1]},
                at=float(last_third(steps)[0]),
            )


def _as_shares(score: Series) -> Series:
    return replace(score, value=as_shares(score.value))


BETTER_BY_LOSS = 0.7
"""Share of the training loss that an evaluation loss has at most, where it is far better. Chosen."""


def sides_disagree(run: Run) -> Facts:
    """Yield that evaluation is far better than training by the loss, and far worse by the same score of both.

    Not this where the loss of training counts what evaluation does not, as that of softened labels or of policies.
    """
    if run.kind in POLICIES or not {"loss", "eval_loss"} <= run.series.keys() or mixes_labels(run):
        return
    _, *losses = at_common_steps(run["loss"].finite, run["eval_loss"].finite)
    if len(losses[0]) < LEAST_PAIRS or not (low := median(last_third(losses[1]))) > 0:
        return
    high = median(last_third(losses[0]))
    for train, evaluation in _scores_of_both(run) if low <= BETTER_BY_LOSS * high else ():
        steps, ours, theirs = at_common_steps(train, evaluation)
        ours, theirs, is_still = last_third(ours), last_third(theirs), len(steps) < LEAST_PAIRS or np.ptp(ours) == 0
        if is_still or (ours - theirs).min() < SETS_APART:
            continue
        yield derived_fact(
            "sides_disagree",
            f"{named(evaluation)} is {from_to(theirs)} over the last third where {named(train)} is "
            f"{from_to(ours)}, and yet the loss of evaluation, about {figure(low)}, is below that of training, "
            f"{figure(high)}. Rows of one scale cannot be both: evaluation gets its rows on another scale.",
            {"train": median(ours), "eval": median(theirs)},
            at=float(steps[0]),
        )


def _scores_of_both(run: Run) -> Iterator[tuple[Series, Series]]:
    """Yield scores of training next to the same of evaluation: by quantity, or called by their set alone."""
    alone = {side_of(name): column.finite for name, column in run.series.items() if column.role is None}
    if {"train", "eval"} <= alone.keys() and max(np.abs(alone[of].value).max() for of in ("train", "eval")) <= 1:
        yield alone["train"], alone["eval"]
    for quantity in _OF_ONE_SCORE:
        ours, theirs = (whole_column(run, quantity, phase=phase, least=LEAST_PAIRS) for phase in ("train", "eval"))
        if ours is not None and theirs is not None:
            yield replace(ours, value=as_shares(ours.value)), replace(theirs, value=as_shares(theirs.value))


ALIKE_AT_FIRST = 1.5
"""Times the lowest first level of the parts that the highest is. Chosen: untrained, rows of all origins are as hard."""
LEARNS_NOTHING = 0.9
"""Share of its first level that a part of the loss keeps at least. Chosen."""
_LAST_WORDS = regex(r"[/_.][^/_.]+$|(?<=_t)\d+$")


def part_never_learns(run: Run) -> Facts:
    """Yield that one part of the training loss stays at its first level while all others of its list fall by far.

    Not this where the parts begin on different levels, as terms of one loss do.
    """
    lists = by_key(
        (_LAST_WORDS.sub("", series.name), series)
        for series in columns_of(run, Quantity.LOSS, phase="train", least=MIN_RECORDS_FOR_LEVEL)
        if series.role is not None and series.role.part and series.value.min() > 0
    )
    for parts in lists.values():
        first = [median(part.value[: max(1, len(part) // 20)]) for part in parts]
        left = {part.name: last_level(part) / level for part, level in zip(parts, first, strict=True)}
        still = [part for part in parts if LEARNS_NOTHING <= left[part.name] <= 1 / LEARNS_NOTHING]
        fallen = [part for part in parts if left[part.name] <= 1 - MIN_LEARNING_FALL_SHARE]
        if max(first) > ALIKE_AT_FIRST * min(first) or len(still) != 1 or not 0 < len(fallen) == len(parts) - 1:
            continue
        (part,) = still
        yield derived_fact(
            "part_never_learns",
            f"{named(part)} is {figure(part.value[0])} at first and {figure(last_level(part))} over the last "
            f"third, while {some_of([named(each) for each in fallen])} {'falls' if len(parts) == 2 else 'fall'} to "
            f"{from_to(np.array([last_level(each) for each in fallen]))}. Nothing is learnt of this part.",
            {"first": part.value[0], "late": last_level(part)},
            at=part.step[0],
        )


_PREDICTS_NOISE = regex(
    r"\b(?:eps|epsilon|noise)[ _-](?:net|pred|prediction|model)|(?:pred|predicts?|prediction|target|objective|"
    r"parametri[sz]ation)(?:[ _]type)?\b.{0,12}\b(?:eps|epsilon|noise)\b",
    re.IGNORECASE,
    needs=("eps", "noise"),
)
"""A setting by which a denoiser foresees the noise."""
_OF_NOISE_LEVEL = frozenset({"t", "timestep", "timesteps", "sigma", "noise"})
HARDER_AT_END = 4.0
"""Times the loss at the least noise that the one at the most noise has. Chosen: of noise it is the other way round."""
_NUMBER_AT_END = regex(r"_?\d+$")


def loss_by_noise_backwards(run: Run) -> Facts:
    """Yield that a denoiser is to foresee the noise, and its loss rises from the least noise to the most."""
    lists = by_key(
        (_NUMBER_AT_END.sub("", words), series)
        for series, words in _long(run)
        if series.role is None and not _OF_NOISE_LEVEL.isdisjoint(words.split("_")) and series.value.min() > 0
    )
    settings = run.settings.values() if lists else ()
    stated = [setting for setting in settings if _PREDICTS_NOISE.search(f"{setting.key} {setting.value}")]
    for levels in lists.values() if stated else ():
        late = list(map(last_level, levels))
        if len(levels) >= LEAST_PAIRS and late == sorted(late) and late[-1] >= HARDER_AT_END * late[0]:
            yield derived_fact(
                "loss_by_noise_backwards",
                f"{stated[0].key} is {stated[0].value}, and {named(levels[0])} to {named(levels[-1])} are "
                f"{', '.join(map(figure, late))}: the loss rises with the noise. Noise is hardest to foresee where "
                "there is least of it. A loss that rises is one of clean data, or levels are counted the other way.",
                {"first": late[0], "last": late[-1]},
                at=levels[0].step[0],
            )


_TRUE = frozenset({"gold", "true", "oracle", "human", "judge", "heldout", "holdout", "real", "actual", "external"})
"""Words of a reward that is not the trained one."""


_REWARDED = frozenset({Quantity.REWARD, Quantity.SCORE, Quantity.ACCURACY, Quantity.SUCCESS_RATE})


def true_reward_falls(run: Run) -> Facts:
    """Yield that a reward by another judge falls while the trained one rises and stays."""
    rise = kept_rise(run) if run.kind in POLICIES else None
    for series, words in _long(run) if rise is not None else ():
        is_true = series.quantity in _REWARDED and not _TRUE.isdisjoint(words.split("_"))
        if rise is not None and is_true and tail(series).max() < series.value[: max(1, len(series) // 8)].min():
            yield derived_fact(
                "true_reward_falls",
                f"{named(series)} falls from {figure(series.value[0])} to {figure(last_level(series))}, while the "
                f"trained reward rises from {figure(rise[0])} to {figure(rise[1])}. Both measure the same answers.",
                {"first": series.value[0], "late": last_level(series)},
                at=series.step[0],
            )


def component_never_earned(run: Run) -> Facts:
    """Yield that one component of a reward is exactly 0 in all records, while the whole rises by another."""
    rise = kept_rise(run) if run.kind in POLICIES else None
    parts = [
        series for series in columns_of(run, Quantity.REWARD, phase="train", least=MIN_RECORDS_FOR_LEVEL)
        if series.role is not None and series.role.part and _OF_SPREAD.isdisjoint(pieces_of(series.name))
    ]  # fmt: skip
    never, earned = [part for part in parts if not part.value.any()], [part for part in parts if part.value[-1] > 0]
    if rise is not None and len(never) == 1 and earned:
        yield derived_fact(
            "component_never_earned",
            f"{named(never[0])} is exactly 0 in all {len(never[0])} records, and the reward rises from "
            f"{figure(rise[0])} to {figure(rise[1])} by {some_of([named(part) for part in earned])} alone. Either "
            "nothing is ever right, or the check that gives it never passes.",
            at=never[0].step[0],
        )
