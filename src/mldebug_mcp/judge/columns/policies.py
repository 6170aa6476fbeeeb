"""Policies and preferences: what training pays for, next to what is wanted, and what samples and clips tell of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mldebug_mcp.checks.curve import noise
from mldebug_mcp.checks.policies import kept_rise
from mldebug_mcp.checks.run.rewards import EVAL_REWARD_FALLS_SIGMAS, MIN_SCORES
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.text import figure, percent
from mldebug_mcp.judge.columns.run_columns import (
    LEAST_PAIRS,
    LOSSES,
    MIN_RECORDS_FOR_LEVEL,
    POLICIES,
    columns_of,
    named,
    tail,
    training_loss,
)
from mldebug_mcp.judge.columns.trained import weighted_parts
from mldebug_mcp.logs import Run, Series
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.names.lexicon import JUDGED, MISJUDGED
from mldebug_mcp.logs.names.words import pieces_of
from mldebug_mcp.models.diagnosis import DerivedFact


def entropy_lowered(run: Run) -> Iterator[DerivedFact]:
    """Yield that the loss of a policy grows with its entropy, where a bonus has to lower it."""
    if run.kind not in POLICIES or (total := training_loss(run)) is None:
        return
    _, weighted = weighted_parts(run, total, *LOSSES, Quantity.KL, Quantity.ENTROPY)
    for part, weight, first, last in weighted:
        if part.role is None or part.role.quantity is not Quantity.ENTROPY or weight < 0:
            continue
        yield DerivedFact.model_construct(
            fact="entropy_lowered",
            text=(
                f"{named(total)} holds the entropy with the factor +{figure(weight)} (least squares over {len(total)} "
                f"records): training lowers it, from about {figure(first)} to about {figure(last)}. A bonus for "
                "entropy has a negative factor."
            ),
            values={"factor": float(weight), "first": first, "last": last},
        )
        return


# A length that stands at its limit.


NEAR_LIMIT = 0.85
"""Share of the limit that the mean length comes to. Chosen."""
MANY_CUT = 0.3
"""Share of completions that are cut. Chosen."""
ALL_CUT = 0.97
"""Share of completions that are cut from which on hardly one ends by itself, which no limit explains. Chosen."""


def at_limit(run: Run) -> Iterator[DerivedFact]:
    """Yield that completions reach their limit, with the share that is cut."""
    cut = columns_of(run, Quantity.CLIPPED_COMPLETIONS, phase="train")
    lengths = columns_of(run, Quantity.COMPLETION_LENGTH, phase="train")
    limit = run.setting("max_completion_length")
    if not cut or len(cut[0]) < MIN_RECORDS_FOR_LEVEL or median(cut[0].value) < MANY_CUT:
        return
    text = f"{percent(median(cut[0].value))} of the completions are cut at their limit (median of {len(cut[0])} records"
    text += f"; {percent(median(tail(cut[0])))} lately)"
    if lengths:
        text += f"; the mean length is {figure(median(tail(lengths[0])))}" + (
            f" of at most {figure(limit)}" if limit else ""
        )
    longer = columns_of(run, Quantity.COMPLETION_LENGTH, phase="eval")
    if longer and lengths and median(longer[0].value) > median(lengths[0].value) / NEAR_LIMIT:
        text += f", and {figure(median(longer[0].value))} in evaluation"
    yield DerivedFact.model_construct(
        fact="cut_at_limit" if median(cut[0].value) < ALL_CUT else "none_ends",
        text=f"{text}. What is cut before its answer earns nothing; a few per cent are expected.",
        values={"share": median(cut[0].value)},
    )


# How much of a policy's ratios is clipped, against what healthy policies have.


MOST_CLIPPED = 0.15
"""Median share from which on a policy is clipped more than any healthy one of the data set."""
HEALTHY_CLIPPED = (56, 0.044, 0.13)
"""Healthy policies of the data set that log it, the 95 % quantile of their medians, and the highest. Counted."""


def much_clipped(run: Run) -> Iterator[DerivedFact]:
    """Yield a share of clipped ratios that no healthy policy of the data set has."""
    columns = columns_of(run, Quantity.CLIP_FRACTION, phase="train", least=MIN_RECORDS_FOR_LEVEL)
    most = max(columns, key=lambda series: median(series.value), default=None)
    if most is None or median(most.value) < MOST_CLIPPED:
        return
    count, usual, highest = HEALTHY_CLIPPED
    yield DerivedFact.model_construct(
        fact="much_clipped",
        text=(
            f"{named(most)} is about {figure(median(most.value))} (median of {len(most)} records): so many ratios to "
            f"the policy that sampled are clipped. Of {count} healthy policies that were trained for comparison 95 % "
            f"have a median of at most {figure(usual)}, and none above {figure(highest)}."
        ),
        values={"share": median(most.value), "usual": usual},
    )


TIMES_AS_UNLIKELY = 2.0
"""Times the nats of chosen answers from which on they are lost. Chosen: see the text of the fact."""
LEAST_NATS = 50.0
"""Nats more from which on they are lost. Chosen: see the text of the fact."""


def logps_multiplied(run: Run) -> Iterator[DerivedFact]:
    """Yield log-probabilities of chosen answers that sink to a multiple of what they began with."""
    if run.kind != "preference":
        return
    for series in (run[name].finite for name in ("logps/chosen", "eval_logps/chosen") if name in run):
        if len(series) < LEAST_PAIRS:
            continue
        first, last = float(series.value[0]), median(series.value[-LEAST_PAIRS:])
        if not (first < 0 and last < TIMES_AS_UNLIKELY * first and first - last > LEAST_NATS):
            continue
        yield DerivedFact.model_construct(
            fact="logps_multiplied",
            text=(
                f"{named(series)} sinks from {figure(first)} to about {figure(last)}, {figure(last / first)} times as "
                "many nats: the model hardly writes the answers that it is to prefer. They lose a few nats where "
                "preferences are learnt."
            ),
            values={"first": first, "last": last},
        )
        return


EARLY = 0.1
"""Share of the records that are early. Chosen: what is lost is often lost soon."""
LEFT_OF_SUCCESS = 0.5
"""Share of its early level that a success keeps at most where it falls. Chosen: another kind of rows costs less."""
HARDLY_LEFT = 0.1
"""The same where hardly any is left. Chosen: answers that only grow longer are as often right."""
LEAST_LOST = 0.1
"""Share of right answers that is lost at least. Chosen: less is chance where a few rows are asked."""
GAINED = 0.1
"""Share of right pairs that training gains at least. Chosen: as much."""
LEFT_OF_LOSS = 0.5
"""Share of its first level that a loss comes down to at most. Chosen: by hand."""
_SHARES = (
    Quantity.ACCURACY, Quantity.TOKEN_ACCURACY, Quantity.SUCCESS_RATE, Quantity.SCORE, Quantity.REWARD_ACCURACY,
)  # fmt: skip
_NOT_OF_TOKENS = ("supervised", "diffusion", "boosting")
"""Kinds of runs whose labels are no tokens of their own rows."""


def success_falls(run: Run) -> Iterator[DerivedFact]:
    """Yield that most shares of success fall to half and less for good, while what training pays for goes well.

    Not this where a score scatters, comes back, or is one of a few that fall.
    """
    paid = _paid(run)
    shares = _successes(run) if paid else []
    lost = [(early - late, share, early, late) for share in shares for early, late in _lost(share)]
    if paid is None or 2 * len(lost) <= len(shares):
        return
    _, share, early, late = max(lost, key=lambda each: each[0])
    fact, gain = paid
    yield DerivedFact.model_construct(
        fact=fact,
        text=(
            f"{named(share)} falls from about {figure(early)} to {figure(late)} and stays there, while {gain}. "
            "What training rewards is not what is counted there."
        ),
        values={"early": early, "late": late},
        steps=[float(share.step[0])],
    )
    if run.kind in POLICIES and late <= HARDLY_LEFT * early:
        yield DerivedFact.model_construct(
            fact="success_gone",
            text=(
                f"Of {named(share)} {figure(100 * late / early)} % is left. Answers that only grow longer are as often "
                "right as before, unless they are cut."
            ),
            values={"left": late / early},
        )


def _paid(run: Run) -> tuple[str, str] | None:
    """Return the fact that a kind of run gets, and how what training pays for goes well; None where it does not."""
    if run.kind in POLICIES:
        rise = kept_rise(run)
        gain = "" if rise is None else f"the reward rises from {figure(rise[0])} to {figure(rise[1])}"
        return ("success_falls_with_reward", gain) if gain else None
    if run.kind == "preference":
        right = columns_of(run, Quantity.ACCURACY, Quantity.REWARD_ACCURACY, least=MIN_SCORES)
        whole = next((share for share in right if share.role and share.role.is_whole), None)
        if whole is None or median(tail(whole)) < median(whole.value[:MIN_SCORES]) + GAINED:
            return None
        return "success_falls_with_pairs", f"{named(whole)} rises to {figure(median(tail(whole)))}"
    loss = training_loss(run, MIN_RECORDS_FOR_LEVEL, not_of=_NOT_OF_TOKENS)
    both = [loss, run["eval_loss"].finite] if loss and "eval_loss" in run else []
    if loss is None or not both or any(len(each) < MIN_SCORES or not _falls(each) for each in both):
        return None
    return (
        "success_falls_with_loss",
        f"{' and '.join(f'{named(each)} to {figure(each.value[-1])}' for each in both)} fall",
    )


def _falls(loss: Series) -> bool:
    return 0 < median(tail(loss)) <= LEFT_OF_LOSS * float(loss.value[0])


def _successes(run: Run) -> list[Series]:
    """Return the shares of success that others count than training: of rows held out, or by people and checks."""
    pairs = run.kind == "preference"
    found = [
        series.finite
        for name, series in run.series.items()
        if series is run[name] and (_is_counted(series, whole=not pairs) or _is_judged(series))
    ]
    return [series for series in found if len(series) >= MIN_SCORES and _is_share(series)]


def _is_counted(series: Series, *, whole: bool) -> bool:
    role = series.role
    return role is not None and role.quantity in _SHARES and ((whole and role.phase == "eval") or bool(role.part))


def _is_judged(series: Series) -> bool:
    words = set(pieces_of(series.logged_as or series.name))
    return series.role is None and not JUDGED.isdisjoint(words) and MISJUDGED.isdisjoint(words)


def _is_share(series: Series) -> bool:
    return float(series.value.min()) >= 0 and float(series.value.max()) <= 1


def _lost(share: Series) -> Iterator[tuple[float, float]]:
    """Yield the early level of a share and the late one, where it loses half and more of it for good."""
    first, last = share.value[: max(1, int(EARLY * len(share)))], tail(share)
    early, late = float(np.mean(first)), median(last)
    least = max(LEAST_LOST, (1 - LEFT_OF_SUCCESS) * early, EVAL_REWARD_FALLS_SIGMAS * noise(share.value))
    if early - late >= least and float(last.max()) < float(first.min()):
        yield early, late


# What a policy earns, and what other scores say of the same answers.


SOLVED = 0.9
"""Share of right answers from which on a task is solved. Chosen."""
UNSOLVED = 0.5
"""Share of right answers at first, below which it was not. Chosen."""


def solved_with_reward(run: Run) -> Iterator[DerivedFact]:
    """Yield that a share of right answers rises to nearly all together with the reward that is trained."""
    rise = kept_rise(run) if run.kind in POLICIES else None
    if rise is None:
        return
    for score in columns_of(run, Quantity.ACCURACY, Quantity.SUCCESS_RATE, least=MIN_RECORDS_FOR_LEVEL):
        first, last = median(score.value[:LEAST_PAIRS]), median(score.value[-MIN_RECORDS_FOR_LEVEL:])
        if first >= UNSOLVED or not SOLVED <= last <= 1:
            continue
        yield DerivedFact.model_construct(
            fact="solved_with_reward",
            text=(
                f"{named(score)} rises from {figure(first)} to {figure(last)} while the reward rises from "
                f"{figure(rise[0])} to {figure(rise[1])} and stays: the answers are right, too. Where nearly all are "
                "right, little entropy, small gradients and groups of equal rewards are to be expected."
            ),
            values={"first": first, "last": last},
        )
        return


STALE = 16.0
"""Updates by which the policy that samples lags behind, from which on it is old. Chosen: a few are usual."""
FEW_EFFECTIVE = 0.5
"""Share of the samples that is effective, below which weights of a few rule. Chosen: fresh samples have nearly 1."""


def stale_policy(run: Run) -> Iterator[DerivedFact]:
    """Yield how old the policy that samples becomes, and which share of its samples is effective."""
    ages = columns_of(run, Quantity.POLICY_AGE, least=MIN_RECORDS_FOR_LEVEL)
    effective = columns_of(run, Quantity.EFFECTIVE_SAMPLES, least=MIN_RECORDS_FOR_LEVEL)
    oldest = float(ages[0].value.max()) if ages else 0.0
    share = median(effective[0].value) if effective else 1.0
    parts = [f"{named(ages[0])} goes up to {figure(oldest)}"] if oldest >= STALE else []
    if share < FEW_EFFECTIVE and float(effective[0].value.max()) <= 1:
        lowest = figure(float(effective[0].value.min()))
        parts.append(f"{named(effective[0])} is about {figure(share)} (median), and {lowest} at the least")
    if parts:
        yield DerivedFact.model_construct(
            fact="stale_policy",
            text=f"{'; '.join(parts)}. Samples of a policy that is a few updates old nearly all count.",
            values={"oldest": oldest, "effective": share},
        )
