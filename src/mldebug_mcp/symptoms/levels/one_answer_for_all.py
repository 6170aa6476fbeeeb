"""Metrics of evaluation that are exactly those of one answer for every row."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.one_answer import OneAnswer, one_answer
from mldebug_mcp.measure.quality import is_auc
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import counted, figure

LEAST = 4
"""Evaluations up to the last, at least, that are those of one answer. Chosen: by hand."""
LASTS = 0.5
"""Of the evaluations: a model that learns gives the commonest answer at the first few as well. Chosen: by hand."""
RANKS = 0.7
"""An area under the curve from which on the scores tell rows apart, only never beyond the threshold. Chosen: by
hand."""


def one_answer_for_all(run: Run) -> Evidence | None:
    """The metrics of evaluation are to the digit those of one answer for all rows, over the later half and to the end.

    Balanced accuracy is one in C, macro F1 is 2a / (1 + a) / C, recall is 1 where precision equals the accuracy, the
    Matthews correlation is 0, the loss is the entropy of the classes' shares, R² is 0. What is missed while others are
    found is `minority_missed`.

    Not this when: the evaluations end otherwise; all is right; an area under the ROC curve says that the scores rank
    rows well, and only the threshold is never reached, which is remarked. The shares were chosen by hand.
    """
    tested = one_answer(run)
    if not tested:
        raise CannotTell("not logged: what tells one answer for all from others, such as balanced accuracy or F1")
    seen = [one for one in tested if one.until_the_end >= max(LEAST, LASTS * len(one.holds))]
    if not seen:
        if all(len(one.holds) < LEAST for one in tested):
            raise CannotTell(f"fewer than {LEAST} evaluations")
        return None
    auc = next((one.finite for one in run.series.values() if is_auc(one) and len(one.finite)), None)
    return _evidence(run, seen[0], auc)


def _evidence(run: Run, seen: OneAnswer, auc: Series | None) -> Evidence:
    ranks = auc is not None and float(auc.value[-1]) > RANKS
    beside = f"; {auc.name} is {figure(float(auc.value[-1]))}" if ranks and auc is not None else ""
    return Evidence(
        f"{seen.said}: at {counted(seen.until_the_end, 'evaluation')} of {len(seen.holds)}, from {run.step_name} "
        f"{figure(seen.since)} to the end, as of one answer for all rows{beside}",
        steps=(seen.since,),
        values={"evaluations": seen.until_the_end, "of": len(seen.holds)},
        present=not ranks,
    )
