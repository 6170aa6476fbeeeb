"""What the answers of a classifier are like, as its accuracy, recalls and means over classes tell."""

from __future__ import annotations

from mldebug_mcp.logs.run import Run, Series
from mldebug_mcp.measure.one_answer import one_answer
from mldebug_mcp.measure.quality import is_auc
from mldebug_mcp.measure.recalls import (
    LEAST,
    last_share,
    means_over_classes,
    recalls_of_classes,
    scores_of_the_positive,
)
from mldebug_mcp.measure.shares import as_shares
from mldebug_mcp.symptoms.readings import ask_in_turn, reading
from mldebug_mcp.symptoms.registry import CannotTell, Evidence
from mldebug_mcp.text import counted, figure

LASTS = 0.5
"""Share of the evaluations, at the end. Chosen: a model that learns gives the commonest answer at first as well."""
FOUND, MISSED = 0.9, 0.1
"""Recall of a class that always wins, and of one that is as good as never predicted. Chosen: by hand."""
SHARE = 0.3
"""Of the other classes: so many are missed. Chosen: by hand."""
APART = 0.35
"""How far a mean over classes lies below the accuracy where some are not learnt at all. Chosen: by hand."""
RIGHT = 0.6
"""An accuracy that answers of the commonest class alone reach. Chosen: by hand."""
RANKS = 0.7
"""An area under the curve from which on the scores tell rows apart, only never beyond the threshold. Chosen: by
hand."""


def minority_missed(run: Run) -> Evidence | None:
    """Some classes are hardly ever found at evaluation, to the end, while another nearly always is.

    Judged by the recall of each class, or by a mean over classes, an F1 or a recall far below the accuracy.
    Not this when: all classes are found in the end, or all is right; the model finds none of them well.
    """
    accuracy = last_share(run["eval_accuracy"].finite) if "eval_accuracy" in run else 0.0
    recalls = recalls_of_classes(run)
    if len(recalls) >= 2:
        return None if accuracy == 1 else _by_recall(recalls)
    means, found = means_over_classes(run), scores_of_the_positive(run)
    if not accuracy or not (means or found):
        raise CannotTell("not logged: the recall of each class, or a mean over classes beside the accuracy")
    one = (means or found)[0]
    here = last_share(one) if means else float(as_shares(one.value)[len(one) // 2 :].max())
    if (accuracy < FOUND or accuracy - here < APART) if means else (here > MISSED or accuracy < RIGHT):
        return None
    said = f"{one.name} is {figure(here)} at the end while the accuracy is {figure(accuracy)}"
    return Evidence(said, steps=(float(one.step[0]),), values={"found": here, "accuracy": accuracy})


def _by_recall(recalls: list[Series]) -> Evidence | None:
    last = {one.name: last_share(one) for one in recalls}
    missed = [name for name, value in last.items() if value < MISSED]
    best = max(last, key=lambda name: last[name])
    if last[best] < FOUND or len(missed) < SHARE * (len(last) - 1):
        return None
    return Evidence(
        f"at the end {len(missed)} of {len(last)} classes have a recall below {MISSED:g} (such as {missed[0]}: "
        f"{figure(last[missed[0]])}), while {best} is {figure(last[best])}",
        steps=(float(recalls[0].step[0]),),
        values={"classes": len(last), "missed": len(missed), "best": last[best]},
    )


def one_answer_for_all(run: Run) -> Evidence | None:
    """The metrics of evaluation are to the digit those of one answer for all rows, over the later half and to the end.

    Balanced accuracy is one in C, the Matthews correlation is 0, R² is 0 and the like. Not this when: the evaluations
    end otherwise; all is right; an area under the ROC curve says that the scores rank rows well (a remark).
    """
    tested = one_answer(run)
    if not tested or all(len(one.holds) < LEAST for one in tested):
        raise CannotTell(
            f"what tells one answer for all from others, such as balanced accuracy, is not logged {LEAST} times"
        )
    seen = next((one for one in tested if one.until_the_end >= max(LEAST, LASTS * len(one.holds))), None)
    if seen is None:
        return None
    auc = next((one.finite for one in run.series.values() if is_auc(one) and len(one.finite)), None)
    ranks = auc is not None and float(auc.value[-1]) > RANKS
    beside = f"; {auc.name} is {figure(auc.value[-1])}" if ranks and auc is not None else ""
    return Evidence(
        f"{seen.said}: at {counted(seen.until_the_end, 'evaluation')} of {len(seen.holds)}, from "
        f"{run.place(seen.since)} to the end, as of one answer for all rows{beside}",
        steps=(seen.since,),
        values={"evaluations": seen.until_the_end, "of": len(seen.holds)},
        present=not ranks,
    )


ask_in_turn(
    "class_answers",
    reading(minority_missed, sources=("focal_loss_2017",), background=0.01),
    reading(
        one_answer_for_all,
        background=0.003,
        not_for=("pretraining", "sft"),
        follows=("loss_nonfinite", "eval_loss_constant"),
    ),
    not_for=("grpo", "ppo", "rl", "preference"),
    whole_run=True,
)
