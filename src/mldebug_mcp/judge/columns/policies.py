"""Policies and preferences: what training pays for, next to what is wanted, and what samples and clips tell of it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import permutations

import numpy as np

from mldebug_mcp.checks.curve import at_common_steps, end_level, monotone, noise, sample, start_level, true_at_end
from mldebug_mcp.checks.evaluation import as_shares, beside_training, harder_in_training
from mldebug_mcp.checks.policies import (
    MIN_DIVERGENCE_RECORDS,
    chance_ends,
    components,
    divergences,
    earns_all_at_once,
    kept_rise,
    never_succeeds,
    rewards_of,
)
from mldebug_mcp.checks.run.policy import EVAL_REWARD_FALLS_SIGMAS, MIN_SCORES
from mldebug_mcp.checks.train_eval_gap import sampling_error
from mldebug_mcp.core.arrays import distinct, median, median_gap
from mldebug_mcp.core.lazy import regex, replace
from mldebug_mcp.core.text import figure, percent
from mldebug_mcp.judge.columns import (
    HALVED,
    LEAST_PAIRS,
    LOSSES,
    MIN_RECORDS_FOR_LEVEL,
    POLICIES,
    Facts,
    Losses,
    are_shares,
    by_key,
    called,
    columns_of,
    derived_fact,
    ends_of,
    from_to,
    given_loss,
    given_losses,
    last_level,
    logged,
    named,
    tail,
    training_loss,
    whole_column,
    whole_columns,
)
from mldebug_mcp.judge.columns.trained import weighted_parts
from mldebug_mcp.logs import Run, Series
from mldebug_mcp.logs.names import Quantity, role_of
from mldebug_mcp.logs.names.lexicon import JUDGED, MISJUDGED, PHASES
from mldebug_mcp.logs.names.words import pieces_of


@given_loss()
def entropy_lowered(run: Run, total: Series) -> Facts:
    """Yield that the loss of a policy grows with its entropy, where a bonus has to lower it."""
    if run.kind not in POLICIES:
        return
    _, weighted = weighted_parts(run, total, *LOSSES, Quantity.KL, Quantity.ENTROPY)
    for part, weight, first, last in weighted:
        if part.quantity is not Quantity.ENTROPY or weight < 0:
            continue
        yield derived_fact(
            "entropy_lowered",
            f"{named(total)} holds the entropy with the factor +{figure(weight)} (least squares over {len(total)} "
            f"records): training lowers it, from about {figure(first)} to about {figure(last)}. A bonus for "
            "entropy has a negative factor.",
            {"factor": weight, "first": first, "last": last},
        )


_TARGET = regex(r"(?:^|[/_])(?:target_entropy|entropy_target)$", re.IGNORECASE)
_ACTIONS = regex(r"(?:n|num)_(?:of_)?actions?|actions")
_DISCRETE = regex(r"(?<!multi)(?<!multi[-_])discrete|categorical", re.IGNORECASE)
LEFT_AT_END = 0.1
"""Share of its start that an entropy, or a success, has come down to where hardly any is left. Chosen."""


def entropy_out_of_bounds(run: Run) -> Facts:
    """Yield a target below the entropy of any choice among actions, or an entropy above that of all alike.

    An entropy of continuous actions falls below zero with such a target. Above all alike is above that in bits.
    """
    entropy = whole_column(run, Quantity.ENTROPY, phase="train", least=MIN_RECORDS_FOR_LEVEL)
    if entropy is None or run.kind not in POLICIES or entropy.value.min() < 0:
        return
    settings = run.settings.values()
    targets = [(setting.key, setting.value) for setting in settings if _TARGET.search(setting.key)]
    targets += [(name, run[name].value[-1]) for name in run.series if _TARGET.search(name)]
    below = [(name, float(value)) for name, value in targets if isinstance(value, int | float) and value < 0]
    first, late = entropy.value[0], last_level(entropy)
    # One of continuous actions that is on its way to its target passes 0 within a third of a run.
    if below and tail(entropy).max() <= LEFT_AT_END * first:
        name, target = below[0]
        yield derived_fact(
            "entropy_target_below_any",
            f"{name} is {figure(target)}, and {named(entropy)} goes from {figure(first)} to {figure(late)}, never "
            "below 0, as that of a choice among actions. It is above the target to the very end, so the "
            "temperature falls until nothing pays for entropy.",
            {"target": target, "first": first, "late": late},
        )
    counts = [setting.value for setting in settings if _ACTIONS.fullmatch(setting.last_part)]
    actions = next((float(value) for value in counts if isinstance(value, int | float) and value > 1), math.inf)
    is_discrete = any(_DISCRETE.search(f"{each.key} {each.value}") for each in settings)
    if is_discrete and entropy.value.min() > math.log2(actions):
        yield derived_fact(
            "entropy_above_all_alike",
            f"{named(entropy)} is {figure(entropy.value.min())} or more, and {figure(actions)} actions that "
            f"are all alike have {figure(math.log(actions))} = ln {figure(actions)}. No policy has more.",
            {"lowest": entropy.value.min(), "actions": actions},
        )


NEARLY_ALL = 0.9
"""Share of the groups whose rewards are equal. Chosen."""
MIN_REWARD_RANGE_SHARE = 0.1
"""Share of their level by which rewards vary where prompts, or what an agent does, differ. Chosen."""


def groups_alike(run: Run) -> Facts:
    """Yield that all answers to a prompt earn alike, though prompts do not, with what the entropy says of the reason.

    Not this where all prompts earn the same, as where all are solved, or nothing is ever earned.
    """
    alike = columns_of(run, Quantity.GROUPS_WITHOUT_SPREAD, phase="train", least=MIN_RECORDS_FOR_LEVEL)
    paid = rewards_of(run) if run.kind in POLICIES else None
    entropy = whole_column(run, Quantity.ENTROPY, phase="train", least=MIN_RECORDS_FOR_LEVEL)
    if not alike or paid is None or entropy is None or len(paid) < MIN_RECORDS_FOR_LEVEL:
        return
    share, (low, middle, high) = last_level(alike[0]), np.quantile(tail(paid), (0.1, 0.5, 0.9)).tolist()
    if share < NEARLY_ALL or high - low <= MIN_REWARD_RANGE_SHARE * max(abs(paid.value.max()), abs(middle)):
        return
    early, late = entropy.value[0], last_level(entropy)
    fact = "groups_alike_with_entropy"
    why = "Its answers to a prompt differ still, so prompts are too easy or too hard, or the reward sees no answer."
    if late <= HALVED * early:
        fact = "groups_alike_without_entropy"
        why = "The policy has one answer left for each prompt, right or wrong, and explores no other."
    yield derived_fact(
        fact,
        f"{named(alike[0])} is about {figure(share)}: all answers to a prompt earn alike. But {named(paid)} goes "
        f"from {figure(low)} to {figure(high)} from record to record (10 and 90 % of the last third), so prompts "
        f"do not. {named(entropy)} goes from {figure(early)} to about {figure(late)}. {why}",
        {"share": share, "low": low, "high": high, "entropy": late},
    )


HALF_THE_SPREAD = 0.5
"""Share of the spread of rewards within groups below which a gain is small. Fitted: a policy that is paid for length or
for a proxy gains 0.7 and more."""
_DIFFERENT = frozenset({"uniq", "unique", "distinct", "nunique", "different"})
"""Words for how many of the answers differ from all others."""
MOST_ALIKE = 0.5
"""Share of the answers that differ, up to which each has several copies. Chosen: two of a kind leave a half."""


def answers_alike(run: Run) -> Facts:
    """Yield that few of the answers differ and the gradient is exactly 0, though rewards vary from record to record."""
    norm = whole_column(run, Quantity.GRADIENT_NORM, phase="train", least=MIN_RECORDS_FOR_LEVEL)
    paid = _mean_reward(run) if run.kind in POLICIES and norm is not None else None
    if norm is None or paid is None or np.any(norm.value != 0):
        return
    low, high = paid.value.min(), paid.value.max()
    if high - low <= MIN_REWARD_RANGE_SHARE * max(abs(low), abs(high)):
        return
    for different in called(run, _DIFFERENT, least=MIN_RECORDS_FOR_LEVEL, any_quantity=True):
        shares = as_shares(different.value)
        if not 0 < shares.max() <= MOST_ALIKE:
            continue
        yield derived_fact(
            "answers_alike",
            f"{named(different)} is {percent(median(shares))} of the answers, and {named(norm)} is exactly 0 in all "
            f"{len(norm)} records, though {named(paid)} goes from {figure(low)} to {figure(high)} from record to "
            "record. The answers to one prompt are copies, so all of them earn alike and none is better than "
            "their mean.",
            {"different": median(shares), "from": low, "to": high},
        )


def far_without_gain(run: Run) -> Facts:
    """Yield that a policy ends far from its reference, and earns little more for it than chance between its answers.

    Not this where the rewards of its groups hardly differ any more, as they do where all earn the most.
    """
    rewards, spread = rewards_of(run), logged(run, "reward_std")
    if run.kind != "grpo" or rewards is None or len(rewards) < MIN_DIVERGENCE_RECORDS or spread is None:
        return
    usual, first, last = median(spread.value), start_level(rewards.value), end_level(rewards.value)
    gains = last - first >= HALF_THE_SPREAD * usual or end_level(spread.value) < HALF_THE_SPREAD * usual
    for divergence in divergences(run) if not gains else ():
        kl, end = divergence.series, end_level(divergence.series.value)
        if divergence.of_update or len(kl) < MIN_DIVERGENCE_RECORDS or end <= divergence.limit:
            continue
        yield derived_fact(
            "far_without_gain",
            f"{named(kl)} ends at about {figure(end)}, while the reward goes from about {figure(first)} to "
            f"{figure(last)}. Rewards within a group differ by {figure(usual)} (standard deviation), so "
            "the policy hardly gains by going so far. One that is paid for length or for a proxy gains more.",
            {"kl": end, "first": first, "last": last, "spread": usual},
        )


HARDLY_ANY = 0.02
"""Of the first entropy, what is left where a policy takes one action everywhere. Chosen: by hand."""


def unpaid_entropy_lost(run: Run) -> Facts:
    """Yield that a policy without a bonus for entropy has none left, and earns less than at its start.

    Not this where it earns as much: a task that is solved needs one action at each place.
    """
    paid = rewards_of(run) if run.kind in POLICIES and run.setting("ent_coef") == 0 else None
    entropy = whole_column(run, Quantity.ENTROPY, phase="train", least=MIN_RECORDS_FOR_LEVEL)
    if paid is None or len(paid) < MIN_RECORDS_FOR_LEVEL or entropy is None:
        return
    first, (_, last), (began, ends) = entropy.value[0], ends_of(entropy), ends_of(paid)
    if 0 <= last <= HARDLY_ANY * first and ends < began:
        yield derived_fact(
            "unpaid_entropy_lost",
            f"ent_coef is 0, so nothing pays for entropy. {named(entropy)} goes from {figure(first)} to "
            f"{figure(last)} in the end, and {named(paid)} from {figure(began)} to {figure(ends)}. A "
            "policy that takes one action everywhere meets nothing that could teach it better.",
            {"first": first, "last": last, "from": began, "to": ends},
        )


HARDLY_MORE = 0.5
"""Share of what random actions earn, by which an agent earns more at most where it has learnt little. Chosen."""


def chance_ends_at_once(run: Run) -> Facts:
    """Yield that random actions end within the first steps, and that the agent earns hardly more than they did.

    Not this where it goes on learning without them.
    """
    paid, ends = rewards_of(run) if run.kind == "rl" else None, chance_ends(run)
    if paid is None or ends is None or len(paid) < MIN_RECORDS_FOR_LEVEL:
        return
    share, end = ends
    random, late = paid.value[paid.step <= end].max(initial=-math.inf), tail(paid)
    learns_on = median(late) - random > HARDLY_MORE * abs(random) and not never_succeeds(run)
    if random == -math.inf or np.ptp(late) > MIN_REWARD_RANGE_SHARE * abs(median(late)) or learns_on:
        return
    yield derived_fact(
        "chance_ends_at_once",
        f"{named(share)} is {figure(share.value[share.step >= end][0])} from {run.place(end)} of "
        f"{figure(run.last_step)} on. "
        f"{named(paid)} is up to {figure(random)} until then and {from_to(late)} in the last third: the agent "
        "repeats what it had met by then, and tries nothing else.",
        {"share": end / run.last_step, "random": random, "last": median(late)},
        at=end,
    )


# A length that stands at its limit.


NEAR_LIMIT = 0.85
"""Share of the limit that the mean length comes to. Chosen."""
MANY_CUT = 0.3
"""Share of completions that are cut. Chosen."""
ALL_CUT = 0.97
"""Share of completions that are cut from which on hardly one ends by itself, which no limit explains. Chosen."""


def at_limit(run: Run) -> Facts:
    """Yield that completions reach their limit, with the share that is cut."""
    cut = next(iter(columns_of(run, Quantity.CLIPPED_COMPLETIONS, phase="train")), None)
    if cut is None or len(cut) < MIN_RECORDS_FOR_LEVEL or (share := median(cut.value)) < MANY_CUT:
        return
    text = f"{percent(share)} of the completions are cut at their limit (median of {len(cut)} records"
    text += f"; {percent(last_level(cut))} lately)"
    lengths, longer = (columns_of(run, Quantity.COMPLETION_LENGTH, phase=phase) for phase in ("train", "eval"))
    limit, paid = run.setting("max_completion_length"), rewards_of(run)
    if lengths:
        text += f"; the mean length is {figure(last_level(lengths[0]))}" + (
            f" of at most {figure(limit)}" if limit else ""
        )
    if longer and lengths and median(longer[0].value) > median(lengths[0].value) / NEAR_LIMIT:
        text += f", and {figure(median(longer[0].value))} in evaluation"
    earned = median(paid.value) if paid is not None and are_shares(paid.value) else 0.0
    fact, why = "cut_at_limit", "What is cut before its answer earns nothing; a few per cent are expected."
    if share >= ALL_CUT:
        fact = "none_ends"
    elif paid is not None and earned > 1 - share:
        fact, name = "cut_ones_are_paid", named(paid)
        why = f"{name} is about {figure(earned)}, more than the others can earn at 1 each: cut ones are paid, too."
    yield derived_fact(fact, f"{text}. {why}", {"share": share})


HARDLY_CUT = 0.1
"""Share of completions that is cut at first, up to which the limit has room. Chosen."""
MOSTLY_CUT = 0.5
"""Share of completions that is cut in the end, from which on the cut ones are the rule. Chosen."""
TIMES_LONGER = 3.0
"""Times as long that completions get, or as short. Chosen: reasoning that is learnt grows as well, but ends, and those
of an answer of one token lose less."""


def cut_ones_earn(run: Run) -> Facts:
    """Yield that completions grow until most are cut at their limit, while the reward rises all the same.

    A mean length that comes back to one whole number and never lies above it is at the limit, too. Not this where they
    are cut from the start, or where the reward falls with what is cut.
    """
    logged_cut = columns_of(run, Quantity.CLIPPED_COMPLETIONS, phase="train", least=MIN_RECORDS_FOR_LEVEL)
    lengths = whole_columns(run, Quantity.COMPLETION_LENGTH, phase="train", least=MIN_RECORDS_FOR_LEVEL)
    paid = _mean_reward(run) if run.kind in POLICIES and lengths else None
    cut = next(iter(logged_cut or _at_highest(lengths)), None)
    if paid is None or cut is None:
        return
    (first_cut, last_cut), (short, long), (low, high) = map(ends_of, (cut, lengths[0], paid))
    cut_then = np.interp(paid.step, cut.step, cut.value)
    whole, cut_ones = paid.value[cut_then <= HARDLY_CUT], paid.value[cut_then >= MOSTLY_CUT]
    grew = first_cut <= HARDLY_CUT and last_cut >= MOSTLY_CUT and long >= TIMES_LONGER * short
    is_known = len(whole) > 1 and len(cut_ones) >= LEAST_PAIRS
    if not grew or not is_known or high <= low or cut_ones.min() < median(whole):
        return
    at_bound = f"{percent(last_cut)} of the completions are cut at their limit in the end"
    if not logged_cut:
        limit = figure(float(lengths[0].value.max()))
        at_bound = f"stays at {limit}, which a mean has where nearly all are cut there"
    yield derived_fact(
        "cut_ones_earn",
        f"{named(lengths[0])} grows from about {figure(short)} to {figure(long)}, and {at_bound}. "
        f"{named(paid)} rises from about {figure(low)} to {figure(high)} all the same, and is "
        f"{figure(cut_ones.min())} or more wherever most are cut. "
        "What is cut before it ends holds no answer, so length itself is paid.",
        {"length": long, "cut": last_cut, "from": low, "to": high},
        at=cut.step[int(np.argmax(cut.value >= MOSTLY_CUT))],
    )


AT_HIGHEST = 0.97
"""Share of the highest mean length from which on nearly all completions have it. Chosen: few end early."""


def _at_highest(lengths: Sequence[Series]) -> Iterator[Series]:
    """Yield where a mean length is at its limit, as shares of 0 and 1; nothing where no limit shows."""
    for length in lengths[:1]:
        highest = float(length.value.max())
        if not highest % 1 and int((length.value == highest).sum()) >= LEAST_PAIRS and (length.value % 1).any():
            yield replace(length, value=(length.value >= AT_HIGHEST * highest).astype(float))


ONE_TOKEN = 1.1
"""Mean length up to which nearly all completions are one token, which is their end. Chosen."""


def nothing_written(run: Run) -> Facts:
    """Yield that completions come down to one token each, their end, while the reward does not fall."""
    lengths = whole_columns(run, Quantity.COMPLETION_LENGTH, phase="train", least=MIN_RECORDS_FOR_LEVEL)
    lengths = [series for series in lengths if series.role is not None and series.role.statistic in ("", "mean")]
    paid = _mean_reward(run) if run.kind in POLICIES and lengths else None
    if paid is None or run.setting("max_completion_length") == 1:
        return
    (long, short), (low, high) = ends_of(lengths[0]), ends_of(paid)
    if 0 <= short <= ONE_TOKEN and long >= TIMES_LONGER * max(short, 1.0) and high >= low:
        yield derived_fact(
            "nothing_written",
            f"{named(lengths[0])} goes from about {figure(long)} to {figure(short)}, and {named(paid)} from "
            f"{figure(low)} to {figure(high)}. A completion of one token is its end alone, or one word for all "
            "prompts, so the reward pays for what is short.",
            {"length": short, "from": low, "to": high},
        )


def _mean_reward(run: Run) -> Series | None:
    """Return what completions earn on average: the reward, or the mean score of training."""
    rewards = rewards_of(run)
    scores = whole_columns(run, Quantity.REWARD, Quantity.SCORE, phase="train", least=MIN_RECORDS_FOR_LEVEL)
    return rewards or next(iter(scores), None)


# How much of a policy's ratios is clipped, against what healthy policies have.


MOST_CLIPPED = 0.15
"""Median share from which on a policy is clipped more than any healthy one of the data set."""
HEALTHY_CLIPPED = (56, 0.044, 0.13)
"""Healthy policies of the data set that log it, the 95 % quantile of their medians, and the highest. Counted."""


def much_clipped(run: Run) -> Facts:
    """Yield a share of clipped ratios that no healthy policy of the data set has."""
    columns = columns_of(run, Quantity.CLIP_FRACTION, phase="train", least=MIN_RECORDS_FOR_LEVEL)
    most = max(columns, key=lambda series: median(series.value), default=None)
    if most is None or median(most.value) < MOST_CLIPPED:
        return
    count, usual, highest = HEALTHY_CLIPPED
    yield derived_fact(
        "much_clipped",
        f"{named(most)} is about {figure(median(most.value))} (median of {len(most)} records): so many ratios to "
        f"the policy that sampled are clipped. Of {count} healthy policies that were trained for comparison 95 % "
        f"have a median of at most {figure(usual)}, and none above {figure(highest)}.",
        {"share": median(most.value), "usual": usual},
    )


TIMES_AS_UNLIKELY = 2.0
"""Times the nats of chosen answers from which on they are lost. Chosen: see the text of the fact."""
LEAST_NATS = 50.0
"""Nats more from which on they are lost. Chosen: see the text of the fact."""


def logps_multiplied(run: Run) -> Facts:
    """Yield log-probabilities of chosen answers that sink to a multiple of what they began with."""
    sides = (logged(run, name, LEAST_PAIRS) for name in ("logps/chosen", "eval_logps/chosen"))
    for series in sides if run.kind == "preference" else ():
        first, last = (0.0, 0.0) if series is None else (series.value[0], median(series.value[-LEAST_PAIRS:]))
        if series is not None and first < 0 and last < TIMES_AS_UNLIKELY * first and first - last > LEAST_NATS:
            yield derived_fact(
                "logps_multiplied",
                f"{named(series)} sinks from {figure(first)} to about {figure(last)}, {figure(last / first)} times as "
                "many nats: the model hardly writes the answers that it is to prefer. They lose a few nats where "
                "preferences are learnt.",
                {"first": first, "last": last},
            )


MIN_NATS_LOST = 8.0
"""Nats that both answers lose. Chosen: chosen ones lose a few where preferences are learnt."""
FAR_SIGMAS = 3.0
"""Times the noise of single records that they lose. Chosen."""
MIN_PARTING_SHARE = 0.25
"""Share of what the chosen answer loses by which the rejected one loses more at least, where they part. Chosen."""


def both_sides_sink(run: Run) -> Facts:
    """Yield that chosen and rejected answers lose nearly as many nats: what parts them is small next to that.

    Not this where chosen answers lose a few nats alone, or no more than records scatter.
    """
    found = (logged(run, name, MIN_RECORDS_FOR_LEVEL) for name in ("logps/chosen", "logps/rejected"))
    sides = [side for side in found if side is not None]
    if run.kind != "preference" or len(sides) < 2:
        return
    starts, ends = [median(side.value[:LEAST_PAIRS]) for side in sides], list(map(last_level, sides))
    chosen, rejected = (start - end for start, end in zip(starts, ends, strict=True))
    scatter = max(noise(side.value) for side in sides)
    if chosen < max(MIN_NATS_LOST, FAR_SIGMAS * scatter) or rejected - chosen > MIN_PARTING_SHARE * chosen:
        return
    yield derived_fact(
        "both_sides_sink",
        f"{named(sides[0])} goes from {figure(starts[0])} to {figure(ends[0])} and {named(sides[1])} from "
        f"{figure(starts[1])} to {figure(ends[1])}: both answers lose about as many nats. Preferences that are learnt "
        "lower the rejected answer by far more.",
        {"chosen": chosen, "rejected": rejected},
        at=sides[0].step[-len(tail(sides[0]))],
    )


MAX_FIRST_STEP = 2
"""Step of a first record that is as good as of the start: a policy has hardly left its reference. Chosen."""
MIN_FIRST_REWARD = 0.3
"""Implicit reward that no two updates give. Chosen: with a beta of 0.1 those are three nats."""


def begins_off_reference(run: Run) -> Facts:
    """Yield implicit rewards of both answers that begin above 0: the reference is not what training starts from.

    Below 0 they may be log-probabilities, as methods without a reference log them.
    """
    both = [logged(run, name) for name in ("rewards/chosen", "rewards/rejected")]
    first = [(named(each), each.value[0]) for each in both if each is not None and each.step[0] <= MAX_FIRST_STEP]
    if run.kind != "preference" or run.resumes or run.first_step > MAX_FIRST_STEP or len(first) < len(both):
        return
    if min(value for _, value in first) >= MIN_FIRST_REWARD:
        yield derived_fact(
            "begins_off_reference",
            f"{' and '.join(f'{name} is {figure(value)}' for name, value in first)} at {run.place(run.first_step)}. A "
            "policy that starts as its reference has 0 there, and log-probabilities alone are below 0: the reference "
            "is another model than the one that training starts from.",
            {"chosen": first[0][1], "rejected": first[1][1]},
            at=run.first_step,
        )


RIGHT_IN_TRAINING = 0.65
"""Share of training pairs that are in the right order, from which on preferences are learnt. Chosen."""
WRONG_WAY = 0.35
"""Share of evaluation pairs in the right order that is the wrong way. Chosen: who has learnt nothing has half right."""
FEWEST_EVALUATIONS = 2
"""Evaluations that show it. Chosen: preference runs have few."""


def pairs_contradict(run: Run) -> Facts:
    """Yield that training pairs are in the right order and pairs of evaluation the wrong way round, each time by then.

    The pairs are those of the whole set, or of one that people judged: others may be split from the training pairs.
    Not this where about a half are right: what was learnt does not carry over then.
    """
    shares = (Quantity.REWARD_ACCURACY, Quantity.ACCURACY)
    judged = [series for series in _of_sets(run, *shares) if _by_people(series)]
    others = {series.name for series in judged}
    train = next((each for each in whole_columns(run, *shares, phase="train") if each.name not in others), None)
    if run.kind != "preference" or train is None or len(train) < LEAST_PAIRS:
        return
    held_out = _of_pairs(whole_columns(run, *shares, phase="eval", least=FEWEST_EVALUATIONS))
    pairs = min([*held_out[:1], *judged], key=lambda series: series.value.max(), default=None)
    if pairs is not None:
        steps, levels, _ = beside_training(train, pairs)
        since = steps[levels >= RIGHT_IN_TRAINING].min(initial=np.inf)
        pairs = pairs.where(pairs.step >= since)
    right = last_level(train)
    if pairs is None or not len(pairs) or (most := pairs.value.max()) > WRONG_WAY:
        yield from _one_source_contradicts(run, right)
        return
    margins = columns_of(run, Quantity.REWARD_MARGIN, Quantity.MARGIN, phase="eval", least=FEWEST_EVALUATIONS)
    margins = [series.where(series.step >= since) for series in margins if not _by_people(pairs)]  # of the whole set
    margins = [series for series in margins if len(series)]
    is_wrong = not margins or margins[0].value.max() < 0
    if not RIGHT_IN_TRAINING <= right <= 1 or len(pairs) < FEWEST_EVALUATIONS or not is_wrong:
        return
    margin = f", and {named(margins[0])} is {from_to(margins[0].value)}" if margins else ""
    since_then = f" from {run.place(since)} on" if since > steps[0] else ""
    yield derived_fact(
        "source_contradicts" if _by_people(pairs) else "pairs_contradict",
        f"{named(pairs)} is {from_to(pairs.value)} at all {len(pairs)} evaluations{since_then}{margin}, while "
        f"{named(train)} is about {figure(right)}. A model that has learnt nothing has half of the pairs right. "
        "Far fewer means that what one set calls chosen the other calls rejected.",
        {"train": right, "eval": most},
        at=pairs.step[0],
    )


HARDLY_ANY_RIGHT = (0.15, 0.25)
"""Share of the pairs of one source in the right order, below which nearly all are the wrong way round; and the most
that is, where other sources are as often wrong. Chosen: hard pairs are more often right."""
AS_OFTEN_WRONG = 1.25
"""Times the wrong pairs of other sources that such a source has right, as its answers are mirrored. Chosen."""


def _of_pairs(shares: Sequence[Series]) -> list[Series]:
    """Return those of some shares of right answers that are of pairs: accuracies of rewards, where there are any."""
    rewards = [series for series in shares if series.quantity is Quantity.REWARD_ACCURACY]
    return rewards or [series for series in shares if not _is_written(series)]


def _one_source_contradicts(run: Run, right: float) -> Facts:
    """Yield that hardly any pairs of one source are in the right order at the end, and most of another are."""
    shares = _of_sets(run, Quantity.REWARD_ACCURACY, Quantity.ACCURACY)
    sources = [series for series in shares if _set_of(series) and not _is_written(series)]
    ends = sorted((last_level(series), series.name) for series in sources)
    if len(ends) < 2:
        return
    (low, wrong), (high, other), (least, most) = ends[0], ends[-1], HARDLY_ANY_RIGHT
    mirrored = AS_OFTEN_WRONG * (1 - median([share for share, _ in ends[1:]]))
    if low <= min(most, max(least, mirrored)) and RIGHT_IN_TRAINING <= high <= 1:
        yield derived_fact(
            "source_contradicts",
            f"{named(run[wrong])} ends at about {figure(low)} and {named(run[other])} at {figure(high)}. A model that "
            "has learnt nothing has half of the pairs right. Far fewer in one set means that its pairs are the wrong "
            "way round, there or in training.",
            {"train": right, "eval": low, "other": high},
            at=run[wrong].finite.step[0],
        )


PAIRS_APART = 0.1
"""Share of pairs in the right order by which training lies below evaluation. Chosen: pairs that are trained on are
learnt at least as well, and a small model hardly better."""
ERRORS_APART = 2.5
"""Standard errors of both shares by which it does. Chosen."""


@given_losses(MIN_RECORDS_FOR_LEVEL)
def training_pairs_behind(run: Run, losses: Losses) -> Facts:
    """Yield that fewer training pairs are in the right order than pairs of evaluation, at each of the later ones.

    Their loss is higher and their margin smaller as well. Not this where dropout explains it.
    """
    shares, phases = (Quantity.REWARD_ACCURACY, Quantity.ACCURACY), ("train", "eval")
    train, held_out = (next(iter(whole_columns(run, *shares, phase=of, least=LEAST_PAIRS)), None) for of in phases)
    if run.kind != "preference" or harder_in_training(run) or train is None or held_out is None:
        return
    half = len(held_out) // 2
    later, since = held_out.where(held_out.step >= held_out.step[half]), held_out.step[half - 1]
    recent = train.where(train.step > since)
    rows = (run.facts.effective_batch or 0) * (recent.step[-1] - since if len(recent) else 0)
    if not rows or later.value.max() > 1:
        return
    low, high = recent.value.mean(), later.value.mean()
    error = math.hypot(sampling_error(low, rows), sampling_error(high, run.setting("eval_rows") or rows))
    if high - low < max(PAIRS_APART, ERRORS_APART * error) or low >= later.value.min():
        return
    higher = [median(series.where(series.step > since).value) for series in losses]
    margins = [columns_of(run, Quantity.REWARD_MARGIN, phase=phase, least=LEAST_PAIRS)[:1] for phase in phases]
    smaller = [margin.where(margin.step > since).value.mean() for each in margins for margin in each]
    if higher[0] <= higher[1] or (len(smaller) == 2 and smaller[0] >= smaller[1]):
        return
    yield derived_fact(
        "training_pairs_behind",
        f"from {run.place(since)} on {named(train)} is {figure(low)} in the mean and {named(held_out)} "
        f"{figure(high)}, with a loss of {figure(higher[0])} next to {figure(higher[1])}. Pairs that are trained "
        "on are learnt at least as well as others, unless some of them are the wrong way round.",
        {"train": low, "eval": high},
        at=since,
    )


_WRITTEN = frozenset(
    {"exact", "match", "em", "solved", "generator", "gen", "generated", "generation", "generations", "greedy"}
    | {"written", "decoded", "sampled", "sample", "samples", "completion", "completions"}
)
"""Words for answers that the model writes itself: of these a share may be right by any model, and not half of them."""


def _is_written(series: Series) -> bool:
    return not _WRITTEN.isdisjoint(pieces_of(named(series)))


AS_MANY_RECORDS = 2
"""Times the records of a set that is judged now and then which training has. Chosen: by hand."""


def _of_sets(run: Run, *quantities: Quantity) -> list[Series]:
    """Return columns of evaluation, and those of named sets at its steps: `gold/accuracy`, `panel_acc`."""
    evaluated = run["eval_loss"].finite.step if "eval_loss" in run else np.empty(0)
    trained = len(run["loss"].finite) if "loss" in run else 0
    return [
        series
        for series in columns_of(run, *quantities, least=FEWEST_EVALUATIONS)
        if (role := series.role) is not None
        and (
            role.is_evaluation
            or (not role.phase and _set_of(series) and np.array_equal(series.step, evaluated))
            or (not role.phase and _by_people(series) and AS_MANY_RECORDS * len(series) <= trained)
        )
    ]


def _set_of(series: Series) -> list[str]:
    """Return the words of the set that a score is of, by the name of the score."""
    return [] if series.role is None else [*series.role.part.split(), *pieces_of(series.role.namespace)]


def _by_people(series: Series) -> bool:
    """Say whether a score is of a set of pairs that people or checks have judged, by the name of the set."""
    return not JUDGED.isdisjoint(_set_of(series)) and not _is_written(series)


MIRRORED_WITHIN = 0.06
"""By which a share and that of the other sources are off one in sum, in each record. Chosen: for sampling."""
MOSTLY_RIGHT = 0.7
"""Share of right answers of the other sources at the end. Chosen: near a half all shares are mirrored."""


def source_mirrored(run: Run) -> Facts:
    """Yield that of shares by source one is what all others lack, in each record: its answers are the wrong way round.

    The others, two at least, go together. Two alone are mirrored where they are the two answers to one question.
    """
    groups = by_key(
        (tuple(series.step.tolist()), series)
        for series in (each.finite for each in run.series.values() if each.role is None or each.role.part)
        if len(series) >= LEAST_PAIRS and are_shares(series.value) and np.ptp(series.value) > 0
    )
    candidates = ((wrong, shares) for shares in groups.values() for wrong in shares)
    for wrong, shares in candidates if run.kind not in POLICIES else ():
        low = last_level(wrong)
        if low > 1 - MOSTLY_RIGHT + MIRRORED_WITHIN:
            continue
        rest = [series for series in shares if series is not wrong]
        others = [series for series in rest if np.abs(series.value + wrong.value - 1).max() <= MIRRORED_WITHIN]
        how = f"in each of {len(wrong)} records it is what these lack of one"
        if run.kind == "preference" and wrong.value[0] >= MOSTLY_RIGHT and low <= 1 - MOSTLY_RIGHT:
            last, how = pieces_of(wrong.name)[-1], f"it was {figure(wrong.value[0])} at first"
            others = others or [series for series in rest if pieces_of(series.name)[-1] == last]
        right = list(map(last_level, others))
        if len(others) < 2 or min(right) < MOSTLY_RIGHT:
            continue
        yield derived_fact(
            "source_mirrored",
            f"{named(wrong)} ends at about {figure(low)}, and {named(others[0])} and {named(others[1])} at "
            f"{figure(right[0])} and {figure(right[1])}; {how}. Answers that are right as often, and labels the "
            "other way round, look so.",
            {"low": low, "high": right[0]},
            at=wrong.step[0],
        )


_OF_VALUES = frozenset({"v", "vf", "value", "values", "critic", "q", "baseline", "td"})
_OF_SQUARES = frozenset({"sq", "squared", "mse", "loss", "err", "error", "se"})
"""Words of what a critic foresees, and of its squared error."""
FAR_BEYOND_RETURNS = 1000.0
"""Times the largest return. Chosen: a discount of 0.99 adds up a hundred rewards."""
_OF_EPISODES = frozenset({"ep", "eprew", "episode", "episodic", "return", "returns", "ret"})
"""Words of the sum of the rewards of an episode."""
FAR_BEYOND_EPISODES = 10.0
"""Times the largest sum of an episode over the later half. Chosen: what is left of an episode sums up to less."""
TIMES_GROWN = 10.0
"""Times by which it has grown from its first to its last values. Chosen: by hand."""


RUNS_OFF = 10_000.0
"""Times its first value, or times one where that is less, to which it has grown where no return is logged. Chosen: by
hand; values of returns in raw units begin near zero and grow to some thousands."""


def values_run_off(run: Run) -> Facts:
    """Yield that what a critic foresees, or the root of its squared error, grows far beyond all that was earned."""
    reward = logged(run, "reward", LEAST_PAIRS) if run.kind in POLICIES else None
    if reward is None and (run.kind not in (*POLICIES, "unknown") or "loss" in run):
        return
    is_of_episodes = reward is not None and not _OF_EPISODES.isdisjoint(pieces_of(named(reward)))
    earned = np.zeros(0) if reward is None else reward.value[-(len(reward) // 2) :] if is_of_episodes else reward.value
    most = float(np.abs(earned).max(initial=0.0))
    if reward is not None and not most > 0:
        return
    for series in called(run, _OF_VALUES, least=MIN_RECORDS_FOR_LEVEL, any_quantity=True):
        is_squared = not _OF_SQUARES.isdisjoint(pieces_of(series.logged_as or series.name))
        value = np.sqrt(np.abs(series.value)) if is_squared else np.abs(series.value)
        first, last = float(value[0]), median(value[-LEAST_PAIRS:])
        beyond, least = "", RUNS_OFF * max(first, 1.0)
        if reward is not None:
            least = max((FAR_BEYOND_EPISODES if is_of_episodes else FAR_BEYOND_RETURNS) * most, TIMES_GROWN * first)
            when = " over the later half" if is_of_episodes else ""
            beyond = f", while {named(reward)} is {figure(most)} at the most{when}. No return is so large"
        if last >= least and monotone(sample(value)) >= MOSTLY_RIGHT:
            yield derived_fact(
                "values_run_off",
                f"{'the root of ' if is_squared else ''}{named(series)} grows from {figure(first)} to "
                f"{figure(last)}{beyond}: the critic takes its own values as targets, which grow by it.",
                {"value": last, "most": most},
                at=series.step[0],
            )


EARLY_RECORDS_SHARE = 0.1
"""Share of the records that are early. Chosen: what is lost is often lost soon."""
MIN_GAINED_SHARE = 0.1
"""Share of right answers, or pairs, that is gained or lost at least. Chosen: less is chance where few are asked."""
_SHARES = (
    Quantity.ACCURACY, Quantity.TOKEN_ACCURACY, Quantity.SUCCESS_RATE, Quantity.SCORE, Quantity.REWARD_ACCURACY,
)  # fmt: skip
_NOT_OF_TOKENS = ("supervised", "diffusion", "boosting")
"""Kinds of runs whose labels are no tokens of their own rows."""


def success_falls(run: Run) -> Facts:
    """Yield that most shares of success fall to half and less for good, while what training pays for goes well.

    Not this where a score scatters, comes back, or is one of a few that fall.
    """
    if (paid := _paid(run)) is None:
        return
    is_apart = run.kind == "preference" and "logps/chosen" in run  # `writing_falls_with_pairs` states it then
    shares = [share for share in _successes(run) if not (is_apart and _is_written(share))]
    lost = [(early, late, share) for share in shares for early, late in _lost_levels(share)]
    if 2 * len(lost) <= len(shares):
        return
    (early, late, share), (fact, gain) = max(lost, key=lambda each: each[0] - each[1]), paid
    yield derived_fact(
        fact,
        f"{named(share)} falls from about {figure(early)} to {figure(late)} and stays there, while {gain}. "
        "What training rewards is not what is counted there.",
        {"early": early, "late": late},
        at=share.step[0],
    )
    if run.kind in POLICIES and late <= LEFT_AT_END * early:
        yield derived_fact(
            "success_gone",
            f"Of {named(share)} {figure(100 * late / early)} % is left. Answers that only grow longer are as often "
            "right as before, unless they are cut.",
            {"left": late / early},
        )


LEAST_WRITTEN = 0.05
"""Share of written answers that is right at first at least. Chosen: fewer are chance."""
LEFT_OF_WRITTEN = 0.25
"""Share of these that is left at most. Chosen: by hand."""
TIMES_AS_SURE = 1.25
"""Times the nats of chosen answers up to which these stay as likely. Chosen: a few nats are lost anyway."""


def writing_falls_with_pairs(run: Run) -> Facts:
    """Yield that a model writes hardly a right answer once pairs are learnt, and how likely chosen ones stay.

    They are as likely as before where what the pairs call chosen is wrong, and hardly written where both have sunk.
    """
    right = _of_pairs(whole_columns(run, Quantity.REWARD_ACCURACY, Quantity.ACCURACY, phase="train", least=LEAST_PAIRS))
    chosen = logged(run, "logps/chosen")
    if run.kind != "preference" or not right or last_level(right[0]) < MIN_SOLVED_SHARE or chosen is None:
        return
    first, last = chosen.value[0], median(chosen.value[-LEAST_PAIRS:])
    left = HALVED if TIMES_AS_SURE * first <= last < 0 else LEFT_OF_WRITTEN
    fact = "writing_falls_with_pairs"
    why = "The model hardly writes what the pairs call chosen, nor anything else that is right."
    if first < 0 and last >= first - LEAST_NATS:
        fact = "writing_against_pairs"
        why = "The model writes what the pairs call chosen, and that is not what counts as right."
    for score in _successes(run, LEAST_PAIRS):
        early, late = score.value[0], last_level(score)
        if _is_written(score) and early >= LEAST_WRITTEN and late <= left * early:
            yield derived_fact(
                fact,
                f"{named(score)} falls from {figure(early)} to {figure(late)}, while {named(right[0])} is about "
                f"{figure(last_level(right[0]))} and {named(chosen)} goes from {figure(first)} to {figure(last)}. "
                f"{why}",
                {"early": early, "late": late, "first": first, "last": last},
            )


_GRADED = frozenset(
    {"judge", "judged", "rubric", "grade", "graded", "quality", "rating", "ratings", "score", "scores", "lexicon"}
    | {"helpfulness", "samples", "human", "raters", "rater", "users"}
)
"""Words of a score of what the model writes, in any unit: the higher, the better."""
_NOT_GRADED = MISJUDGED | {"margin", "margins", "loss", "perplexity", "kl", "length", "len"}
FALLS_OF_GRADE = 0.3
"""Share of its first value by which such a score falls. Chosen: pairs that are learnt too well cost less."""
FALLS_OF_NOISE = 5.0
"""Times its noise by which it does. Chosen."""
RIGHT_WHERE_LEARNT = 0.75
"""Share of pairs in the right order from which on their order is learnt. Chosen: labels of people are as noisy."""


def _grades(run: Run) -> Iterator[Series]:
    """Yield the scores of what the model writes."""
    for score in (series.finite for series in run.series.values()):
        pieces = set(pieces_of(named(score)))
        is_score = score.quantity in (None, Quantity.SCORE)
        if is_score and len(score) > LEAST_PAIRS and pieces & _GRADED and not pieces & _NOT_GRADED:
            yield score


def grades_fall_with_pairs(run: Run) -> Facts:
    """Yield that a score of what the model writes falls from its first value on, while the order of pairs is learnt.

    Not this where it rises first, as where too much is made of the pairs, nor where chosen answers sink as well.
    """
    right = _of_pairs(whole_columns(run, Quantity.REWARD_ACCURACY, Quantity.ACCURACY, least=LEAST_PAIRS))
    chosen, learnt = logged(run, "logps/chosen", LEAST_PAIRS), max(map(last_level, right), default=0.0)
    sinks = chosen is not None and last_level(chosen) < TIMES_AS_UNLIKELY * chosen.value[0]
    for score in _grades(run) if run.kind == "preference" and RIGHT_WHERE_LEARNT <= learnt <= 1 and not sinks else ():
        first, late = score.value[0], last_level(score)
        least = max(FALLS_OF_GRADE * abs(first), FALLS_OF_NOISE * noise(score.value))
        if first - late >= least and score.value[1:].max() < first:
            yield derived_fact(
                "grades_fall_with_pairs",
                f"{named(score)} falls from {figure(first)} to {figure(late)} and never comes back, while "
                f"{percent(learnt)} of the pairs are in the right order. The model learns what the pairs call chosen, "
                "and what it writes gets worse by that.",
                {"first": first, "late": late, "right": learnt},
                at=score.step[0],
            )


_PICKED = frozenset({"best", "bo", "bon", "top", "pick", "picked", "selected", "rerank", "reranked", "argmax"})
"""Words for the answer that a model of preferences ranks first among several."""
_AT_RANDOM = frozenset({"first", "random", "mean", "avg", "average", "baseline", "base", "unranked", "any", "single"})
"""Words for answers that no model has picked."""
_OF_SEVERAL = frozenset({"of", "at", "n", "k", "from", "by"}) | PHASES.keys()
_RATED = JUDGED | {"quality", "rating", "ratings", "users", "votes", "win", "winrate"}
"""Words for a score of answers that the model of preferences does not give itself."""
PICKS_WORSE_BY = 0.1
"""Share of the score of answers at random by which a pick is worse. Chosen: few prompts make less by chance."""


def picks_worse_than_chance(run: Run) -> Facts:
    """Yield that the best of several answers by a model of preferences is worse than one that nothing picked.

    Not this where the pairs are not learnt: such a model picks at random.
    """
    learnt = _of_pairs(whole_columns(run, Quantity.REWARD_ACCURACY, Quantity.ACCURACY, least=FEWEST_EVALUATIONS))
    right = max(map(last_level, learnt), default=0.0)
    if run.kind != "preference" or not RIGHT_IN_TRAINING <= right <= 1:
        return
    scores: dict[frozenset[str], dict[bool, Series]] = {}
    for series in run.series.values():
        pieces = pieces_of(named(series))
        words, numbers = {word for word in pieces if not word.isdigit()}, [word for word in pieces if word.isdigit()]
        is_pick = not _PICKED.isdisjoint(words) and ("top" in words or numbers != ["1"])
        rated = frozenset(words - _PICKED - _AT_RANDOM - _OF_SEVERAL)
        is_score = not _RATED.isdisjoint(rated) and MISJUDGED.isdisjoint(rated)
        if is_score and not words.isdisjoint(_PICKED | _AT_RANDOM):
            scores.setdefault(rated, {})[is_pick] = series.finite
    for pair in (pair for pair in scores.values() if len(pair) == 2):
        steps, picked, usual = at_common_steps(pair[True], pair[False])
        if len(steps) >= FEWEST_EVALUATIONS and (picked < usual - PICKS_WORSE_BY * np.abs(usual)).all():
            yield derived_fact(
                "picks_worse_than_chance",
                f"{named(pair[True])} is {from_to(picked)} and {named(pair[False])} {from_to(usual)} at {len(steps)} "
                f"evaluations, while {figure(100 * right)} % of the pairs are in the right order. What the model ranks "
                "first is worse than an answer that nothing picked: the pairs teach it to prefer the worse.",
                {"picked": picked[-1], "usual": usual[-1], "right": right},
                at=steps[0],
            )


FEW_RIGHT = 0.3
"""Share of right answers, below which few are. Chosen: a harder set has more of them where training gets all right."""
AS_LONG = 2.0
"""Times by which completions get longer or shorter at most where length is not what pays. Chosen: by hand."""


def success_stays_low(run: Run) -> Facts:
    """Yield that a policy comes to earn nearly all there is, while few answers are right at first and at last.

    Not this where success rises as well, as on a harder set, or has fallen, which `success_falls` states.
    """
    rise, paid = kept_rise(run), rewards_of(run)
    is_solved = rise is not None and rise[1] >= MIN_SOLVED_SHARE and run.kind in POLICIES
    if rise is None or paid is None or not is_solved or not are_shares(paid.value):
        return
    shares = [(*ends_of(share), share) for share in _successes(run, LEAST_PAIRS) if not any(_lost_levels(share))]
    low = [(early, late, share) for early, late, share in shares if late < min(FEW_RIGHT, early + MIN_GAINED_SHARE)]
    if not low or len(low) < len(shares):
        return
    early, late, share = low[0]
    yield derived_fact(
        "success_stays_low",
        f"{named(paid)} rises from {figure(rise[0])} to {figure(rise[1])}, nearly all there is, while {named(share)} "
        f"is about {figure(early)} at first and {figure(late)} at the end. Most of what earns the reward is wrong.",
        {"reward": rise[1], "early": early, "late": late},
        at=share.step[0],
    )
    cut = columns_of(run, Quantity.CLIPPED_COMPLETIONS, phase="train", least=MIN_RECORDS_FOR_LEVEL)
    cut_late = [first for first, end in map(ends_of, cut) if end > HARDLY_CUT]
    at_first = "most are cut from the start" if cut_late else "hardly any are cut"
    for lengths in whole_columns(run, Quantity.COMPLETION_LENGTH, phase="train", least=MIN_RECORDS_FOR_LEVEL)[:1]:
        short, long = sorted(ends_of(lengths))
        if 0 < long <= AS_LONG * short and all(first >= MOSTLY_CUT for first in cut_late):
            yield derived_fact(
                "as_long_as_before",
                f"{named(lengths)} ends within {figure(long / short)} times its start, and {at_first}.",
                {"short": short, "long": long},
            )


def _paid(run: Run) -> tuple[str, str] | None:
    """Return the fact that a kind of run gets, and how what training pays for goes well; None where it does not."""
    if run.kind in POLICIES:
        rise = kept_rise(run)
        rises = rise and f"the reward rises from {figure(rise[0])} to {figure(rise[1])}"
        return ("success_falls_with_reward", rises) if rises else None
    if run.kind == "preference":
        whole = whole_column(run, Quantity.ACCURACY, Quantity.REWARD_ACCURACY, least=MIN_SCORES)
        if whole is None or last_level(whole) < median(whole.value[:MIN_SCORES]) + MIN_GAINED_SHARE:
            return None
        return "success_falls_with_pairs", f"{named(whole)} rises to {figure(last_level(whole))}"
    both = [training_loss(run, MIN_RECORDS_FOR_LEVEL, not_of=_NOT_OF_TOKENS), logged(run, "eval_loss", MIN_SCORES)]
    fallen = [each for each in both if each is not None and 0 < last_level(each) <= HALVED * each.value[0]]
    falls = " and ".join(f"{named(each)} to {figure(each.value[-1])}" for each in fallen)
    return ("success_falls_with_loss", f"{falls} fall") if len(fallen) == 2 else None


def _successes(run: Run, least: int = MIN_SCORES) -> list[Series]:
    """Return the shares of success that others count than training: of rows held out, or by people and checks."""
    phase = "" if run.kind == "preference" else "eval"
    found = [series.finite for name, series in run.series.items() if series is run[name] and _is_counted(series, phase)]
    return [series for series in [*found, *_unpaid_parts(run)] if len(series) >= least and are_shares(series.value)]


def _unpaid_parts(run: Run) -> list[Series]:
    """Return the components of a reward that another of them is alone, so that their weight is zero."""
    paid, parts = rewards_of(run), [part.finite for part in components(run)]
    alike = [part for part in parts if paid is not None and np.array_equal(part.step, paid.step)]
    whole = [part for part in alike if paid is not None and np.allclose(part.value, paid.value, rtol=1e-3)]
    return [part for part in parts if part is not whole[0]] if len(whole) == 1 else []


def _is_counted(series: Series, phase: str) -> bool:
    """Say whether a column is a share of success of a part, or of a phase, or one that people and checks count."""
    words = set(pieces_of(series.logged_as or series.name))
    if (role := series.role) is None:
        return not JUDGED.isdisjoint(words) and MISJUDGED.isdisjoint(words)
    return role.quantity in _SHARES and (bool(role.part) or role.phase == phase != "")


def _lost_levels(share: Series) -> Iterator[tuple[float, float]]:
    """Yield the early level of a share and the late one, where it loses half and more of it for good."""
    first, last = share.value[: max(1, int(EARLY_RECORDS_SHARE * len(share)))], tail(share)
    early, late = float(np.mean(first)), median(last)
    least = max(MIN_GAINED_SHARE, (1 - HALVED) * early, EVAL_REWARD_FALLS_SIGMAS * noise(share.value))
    if early - late >= least and last.max() < first.min():
        yield early, late


# What a policy earns, and what other scores say of the same answers.


MIN_SOLVED_SHARE = 0.9
"""Share of right answers, or of right pairs, from which on a task is solved. Chosen."""
MAX_UNSOLVED_SHARE = 0.5
"""Share of right answers at first, below which it was not. Chosen."""


def solved_with_reward(run: Run) -> Facts:
    """Yield that a share of right answers rises to nearly all together with the reward that is trained."""
    rise = kept_rise(run) if run.kind in POLICIES else None
    scores = columns_of(run, Quantity.ACCURACY, Quantity.SUCCESS_RATE, least=MIN_RECORDS_FOR_LEVEL)
    for score in scores if rise is not None else ():
        first, last = median(score.value[:LEAST_PAIRS]), median(score.value[-MIN_RECORDS_FOR_LEVEL:])
        if rise is not None and first < MAX_UNSOLVED_SHARE and MIN_SOLVED_SHARE <= last <= 1:
            yield derived_fact(
                "solved_with_reward",
                f"{named(score)} rises from {figure(first)} to {figure(last)} while the reward rises from "
                f"{figure(rise[0])} to {figure(rise[1])} and stays: the answers are right, too. Where nearly all are "
                "right, little entropy, small gradients and groups of equal rewards are to be expected.",
                {"first": first, "last": last},
            )


MIN_TRYING_ENTROPY_SHARE = 0.3
"""Share of its first value to which the entropy of a policy falls at most that still tries other answers. Chosen."""


def little_left_to_earn(run: Run) -> Facts:
    """Yield that a policy which samples text earns nearly all there is from the first records on, and keeps trying."""
    paid = rewards_of(run) if run.kind in ("grpo", "ppo") else None
    if paid is None or len(paid) < MIN_RECORDS_FOR_LEVEL or kept_rise(run) is not None or not earns_all_at_once(paid):
        return
    entropies = columns_of(run, Quantity.ENTROPY, least=MIN_RECORDS_FOR_LEVEL)
    if all(last_level(entropy) >= MIN_TRYING_ENTROPY_SHARE * entropy.value[0] for entropy in entropies):
        yield derived_fact(
            "little_left_to_earn",
            f"{named(paid)} is {figure(paid.value[0])} in the first record, the lowest, and {figure(last_level(paid))} "
            "over the last third: nearly the most that there is. A reward that cannot rise further, groups of equal "
            "rewards and small gradients are then to be expected.",
            {"first": paid.value[0], "late": last_level(paid)},
        )


FALLS_TO = 0.25
"""Share of the three values before that a ratio falls to at once. Chosen: noise of healthy ratios is less."""
AT_THE_TOP = {Quantity.CLIP_FRACTION: 0.3, Quantity.APPROXIMATE_KL: 0.1, Quantity.KL: 0.1}
"""By quantity, the level before a fall of a policy that is far off. Chosen: several updates of one batch leave less."""
LEAST_FALLS = 3
"""Falls that recur after as many steps each. Chosen: two always do, but a setting may name the interval."""
SHOWN_FALLS = 5
"""Falls whose place is stated. Chosen."""
MOST_FALLS_APART = 0.1
"""Share of the interval by which falls come early or late at most, where that is more than a record. Chosen."""


def falls_at_intervals(run: Run) -> Facts:
    """Yield that a policy parts from the one that samples bit by bit, and falls back to it after as many steps each.

    Not this where the tops are low, as where several updates are made of one batch.
    """
    numbers = [(each.key, each.value) for each in run.settings.values() if _INTERVAL.search(each.key)]
    intervals = [(key, float(value)) for key, value in numbers if isinstance(value, int | float)]
    columns = columns_of(run, *AT_THE_TOP, phase="train", least=2 * MIN_RECORDS_FOR_LEVEL)
    for series in columns if run.kind in POLICIES else ():
        falls, gap = _falls_at_once(series), median_gap(series.step)
        if series.role is None or len(falls) < LEAST_FALLS - 1:
            continue
        apart = np.diff(series.step[falls])
        interval = median(apart)
        near = ((key, value) for key, value in intervals if abs(value - interval) <= gap)
        setting, planned = next(near, ("", 0.0))
        is_even = np.abs(apart - interval).max() <= max(gap, MOST_FALLS_APART * interval)
        if (len(falls) < LEAST_FALLS and not setting) or interval < 2 * LEAST_PAIRS * gap or not is_even:
            continue
        tops = median([median(series.value[at - LEAST_PAIRS : at]) for at in falls])
        if tops < AT_THE_TOP[series.role.quantity]:
            continue
        low = median(series.value[falls])
        is_set = f", and {setting} is {figure(planned)}" if setting else ""
        yield derived_fact(
            "falls_at_intervals",
            f"{named(series)} grows to about {figure(tops)} and falls to {figure(low)} at once, {len(falls)} times: "
            f"first at {run.step_name} {', '.join(map(figure, series.step[falls][:SHOWN_FALLS].tolist()))}. It takes "
            f"{figure(interval)} {run.step_name}s each time{is_set}. So the policy that samples is brought up to date "
            "only then, and its samples are old in between.",
            {"interval": interval, "top": tops, "low": low},
            steps=series.step[falls].tolist(),
        )


def _falls_at_once(series: Series) -> list[int]:
    """Return the records at which a column falls at once to a small share of the values just before, in time order."""
    value = series.value
    lowest = np.minimum.reduce([value[back : back - LEAST_PAIRS] for back in range(LEAST_PAIRS)])
    falls = np.flatnonzero((lowest > 0) & (value[LEAST_PAIRS:] <= FALLS_TO * lowest)) + LEAST_PAIRS
    found = list[int]()
    for at in falls.tolist():
        if not found or at - found[-1] > LEAST_PAIRS:
            found.append(at)
    return found


_INTERVAL = regex(r"sync|interval|every|freq|stale|lag|refresh", re.IGNORECASE)
"""What the name of a setting holds that gives after how many steps something is done."""


_FIRST_WORDS = frozenset({"first", "initial", "init", "before", "pre", "start", "0", "mb0", "epoch0"})
_STEP_WORDS = frozenset(
    {"mb", "minibatch", "mini", "batch", "step", "epoch", "update", "at", "of", "in", "iter", "pass"}
)
"""Words of a column that is of the first update on a batch alone, and what they stand next to."""
MIN_MOVED_BEFORE = {Quantity.CLIP_FRACTION: 0.02, Quantity.KL: 0.002, Quantity.APPROXIMATE_KL: 0.002}
"""What the policy has moved before any update, at least. Chosen: rounding moves it by less."""
MIN_SHARE_OF_MOVE = 0.3
"""Share of what it moves by in all updates on the batch. Chosen: a batch of the policy itself has none."""


def moved_before_update(run: Run) -> Facts:
    """Yield that the policy is off the one that sampled before any update on the batch, as far as in all of them.

    A divergence counts where no reference is meant: next to clipped ratios, or by its name.
    """
    firsts: dict[Quantity, Series] = {}
    for first in called(run, _FIRST_WORDS, least=MIN_RECORDS_FOR_LEVEL, any_quantity=True):
        words = pieces_of(first.logged_as or first.name)
        role = role_of("_".join(word for word in words if word not in _FIRST_WORDS | _STEP_WORDS))
        if role is not None and role.quantity in MIN_MOVED_BEFORE:
            firsts.setdefault(role.quantity, first)
    quantity = next((each for each in MIN_MOVED_BEFORE if each in firsts), None)
    if quantity is None or run.kind not in POLICIES or (quantity is Quantity.KL and run.kind != "rl"):
        return
    first = firsts[quantity]
    others = [series for series in columns_of(run, quantity) if series.name != first.name]
    moved, usual = median(first.value), median(others[0].value) if others else 0.0
    if moved < max(MIN_MOVED_BEFORE[quantity], MIN_SHARE_OF_MOVE * usual):
        return
    whole = f", and {named(others[0])} {figure(usual)}" if others else ""
    yield derived_fact(
        "moved_before_update",
        f"{named(first)} is about {figure(moved)} (median of {len(first)} records){whole}. Before any update on a "
        "batch it is the policy that sampled, so that nothing has moved: other weights, or another engine, sampled.",
        {"first": moved, "whole": usual},
    )


MIN_STALE_UPDATES = 16.0
"""Updates by which the policy that samples lags behind, from which on it is old. Chosen: a few are usual."""
FEW_EFFECTIVE = 0.5
"""Share of the samples that is effective, below which weights of a few rule. Chosen: fresh samples have nearly 1."""
_OF_RATIOS = frozenset({"ratio", "ratios", "rho", "importance", "isratio"})
PRINTED_ONE = 2e-3
"""How far a ratio is from 1 that is 1 but for its last digits. Chosen: for three printed ones."""
FAR_FROM_ONE = (0.9, 1.1)
"""Ratios at the least and at the most where samples are of another policy. Chosen: one update moves few so far."""


def ratio_leaves_one(run: Run) -> Facts:
    """Yield that all ratios of the policy to the one that sampled are 1 up to a record, and never again behind it.

    Not this where they are off from the start, as after several updates with the same samples.
    """
    ends: dict[str, dict[str, Series]] = {}
    for name, series in run.series.items():
        head, _, end = (series.logged_as or name).replace("_", "/").rpartition("/")
        if end.lower() in ("min", "max") and not _OF_RATIOS.isdisjoint(pieces_of(head)):
            ends.setdefault(head, {})[end.lower()] = series.finite
    for head, pair in ends.items():
        if len(pair) < 2 or not np.array_equal(pair["min"].step, pair["max"].step):
            continue
        low, high, steps = pair["min"].value, pair["max"].value, pair["min"].step
        off = np.maximum(np.abs(low - 1), np.abs(high - 1)) > PRINTED_ONE
        first = len(off) - true_at_end(off)
        is_far = median(low[first:]) < FAR_FROM_ONE[0] and median(high[first:]) > FAR_FROM_ONE[1]
        if first < LEAST_PAIRS or off[:first].any() or len(off) - first < MIN_RECORDS_FOR_LEVEL or not is_far:
            continue
        yield derived_fact(
            "ratio_leaves_one",
            f"{head} is 1 at the least and at the most in the first {first} records; from "
            f"{run.place(steps[first])} on it is {from_to(low[first:])} at the least and "
            f"{from_to(high[first:])} at the most. Samples of the policy that is trained have a ratio of 1; these "
            "are of one that no longer follows it.",
            {"records": len(off) - first},
            at=steps[first],
        )


def stale_policy(run: Run) -> Facts:
    """Yield how old the policy that samples becomes, and which share of its samples is effective."""
    age = _policy_age(run) if run.kind in POLICIES else None
    ages = [age] if age is not None else columns_of(run, Quantity.POLICY_AGE, least=MIN_RECORDS_FOR_LEVEL)
    oldest, share, parts = ages[0].value.max() if ages else 0.0, 1.0, []
    if oldest >= MIN_STALE_UPDATES:
        parts.append(f"{named(ages[0])} goes up to {figure(oldest)}")
    for effective in columns_of(run, Quantity.EFFECTIVE_SAMPLES, least=MIN_RECORDS_FOR_LEVEL)[:1]:
        share, lowest = median(effective.value), figure(effective.value.min())
        if share < FEW_EFFECTIVE and effective.value.max() <= 1:
            parts.append(f"{named(effective)} is about {figure(share)} (median), and {lowest} at the least")
    if parts:
        yield derived_fact(
            "stale_policy",
            f"{'; '.join(parts)}. Samples of a policy that is a few updates old nearly all count.",
            {"oldest": oldest, "effective": share},
        )


MOST_SYNCS = 0.67
"""Share of the records, at most, that find the policy that samples up to date. Chosen: more often, none is old."""
MIN_UPDATES_BEHIND = 2.0
"""Updates by which the policy that samples is behind, from which on a sync is missing. Chosen: one is always made."""


def old_samples_far_off(run: Run) -> Facts:
    """Yield that ratios to the policy that sampled are far off in records where that policy is known to be old.

    Not this where the samples are of the last update, or old and near all the same.
    """
    age = _policy_age(run) if run.kind in POLICIES else None
    of_sampling = (Quantity.CLIP_FRACTION, Quantity.APPROXIMATE_KL)  # another KL may be to a reference
    columns = columns_of(run, *of_sampling, phase="train", least=MIN_RECORDS_FOR_LEVEL)
    for series in columns if age is not None else ():
        if age is None or series.role is None:
            continue
        steps, level, updates = at_common_steps(series, age)
        far = (updates >= MIN_UPDATES_BEHIND) & (level >= AT_THE_TOP[series.role.quantity])
        if int(far.sum()) >= MIN_RECORDS_FOR_LEVEL:
            yield derived_fact(
                "old_samples_far_off",
                f"{named(age)} goes up to {figure(updates.max())} updates. {named(series)} is "
                f"{figure(level[far].min())} to {figure(level[far].max())} in {int(far.sum())} records "
                "of such old samples. Fresh samples have little of it.",
                {"oldest": updates.max(), "records": far.sum()},
                at=steps[int(far.argmax())],
            )


def _policy_age(run: Run) -> Series | None:
    """Return by how many updates the policy that samples is behind: as it is logged, or as two versions have it.

    The step may be one of these. Two are of one policy where the one rests and comes up to the other again and again.
    So are two where one follows the other at a distance, as samples do that wait in a queue.
    """
    for age in columns_of(run, Quantity.POLICY_AGE, least=MIN_RECORDS_FOR_LEVEL):
        return age
    versions = called(run, {"version"}, least=MIN_RECORDS_FOR_LEVEL, any_quantity=True)
    counted = [each for each in versions if not (each.value % 1).any() and bool(np.all(np.diff(each.value) >= 0))]
    if counted and run.step_name == "step":
        steps = distinct(np.concatenate([series.step for series in counted]))
        counted.append(Series("step", steps, steps))
    for sampling, trained in permutations(counted, 2):
        steps, old, new = at_common_steps(sampling, trained)
        behind, syncs = new - old, np.flatnonzero(np.diff(old)) + 1
        if len(syncs) < LEAST_PAIRS or behind.min() < 0:
            continue
        rests = len(syncs) <= MOST_SYNCS * len(steps)
        is_synced = rests and median(behind[syncs]) <= max(1.0, median(np.diff(new)))
        if is_synced or (not rests and median(behind) >= MIN_UPDATES_BEHIND and sampling.name != "step"):
            return Series(f"{named(trained)} - {named(sampling)}", steps, behind)
    return None
