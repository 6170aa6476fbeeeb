"""What training pays for and what is wanted come apart: success that others count falls while training goes well."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mldebug_mcp.checks.curve import noise
from mldebug_mcp.checks.policies import kept_rise
from mldebug_mcp.checks.run.rewards import EVAL_REWARD_FALLS_SIGMAS, MIN_SCORES
from mldebug_mcp.core.arrays import median
from mldebug_mcp.core.text import figure
from mldebug_mcp.judge.column_pairs import MIN_RECORDS_FOR_LEVEL, POLICIES, columns_of, named, tail, training_loss
from mldebug_mcp.logs import Run, Series
from mldebug_mcp.logs.names import Quantity
from mldebug_mcp.logs.names.lexicon import JUDGED, MISJUDGED
from mldebug_mcp.logs.names.words import pieces_of
from mldebug_mcp.models.diagnosis import DerivedFact

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
