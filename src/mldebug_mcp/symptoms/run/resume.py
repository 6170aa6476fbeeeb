"""What the loss does where the run was resumed, or where its data may have started over unseen."""

from __future__ import annotations

import math

import numpy as np

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.falls import Fall, falls_of
from mldebug_mcp.measure.resumes import Join, joins_of, restart_of_data
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.measure.terms import refuse_new_terms
from mldebug_mcp.symptoms.readings import outcome_of
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.symptoms.telling import by_outcome, told
from mldebug_mcp.text import figure

SHARE, SIGMAS = 0.05, 5.0
"""A jump is this share of the level, and so many standard errors. Chosen: no sound resume of our runs comes near."""
DIP_SHARE, DIP_SIGMAS = 0.06, 3.8
"""... and a dip this share, pooled over all resumes of the run. Chosen: as for jumps."""
CUT = 0.8
"""Times the rate before the resume. Chosen: less of it lowers the loss by itself."""
LEAST_POINTS = 40
"""Records in which a fall that no resume marks can be told. Chosen: fewer have falls by chance."""
NEAR = 3
"""Records by which a fall may be off a resume. Chosen: logs tell of it before or after."""
SHOWN = 10
"""Steps that evidence lists. Chosen: a line holds as many."""


def _falls(run: Run) -> list[Fall]:
    """Return the falls of the loss with nothing to mark them.

    Raises:
        CannotTell: too few records, means of whole epochs, or a term of the loss that sets in.
    """
    loss = run["loss"].finite
    if len(loss) < LEAST_POINTS:
        raise CannotTell(f"loss has {len(loss)} finite values here; {LEAST_POINTS} are needed")
    if run.step_name == "epoch" and bool(np.all(loss.step == np.floor(loss.step))):
        raise CannotTell("each record is the mean of an epoch, in which all rows are seen once")
    refuse_new_terms(run)
    return falls_of(run)


def loss_falls_back(run: Run, falls: list[Fall]) -> Evidence:
    """The training loss falls at one step to a lower level, and climbs back from there over many steps.

    So do rows that were seen before. Not this when: the rate is cut there; a spike or a bad stretch ends; an epoch
    does (`loss_epoch_steps`); the loss stays low. At resumes less of a fall is needed, and several count together.
    """
    first = falls[0]
    more = f"; {len(falls)} such falls" if len(falls) > 1 else ""
    return Evidence(
        f"loss falls from {figure(first.before)} to {figure(first.after)} at {run.place(first.step)} and "
        f"climbs back{more}",
        steps=tuple(one.step for one in falls[:SHOWN]),
        values={"before": first.before, "after": first.after, "falls": len(falls)},
    )


def _at_joins(run: Run, falls: list[Fall], joins: tuple[Join, ...]) -> Answers:
    """Return that falls are at resumes, if any is: within three records of one."""
    near = NEAR * median(np.abs(np.diff(run["loss"].finite.step)))
    at = [fall for fall in falls if any(join.told and abs(join.step - fall.step) <= near for join in joins)]
    return {"falls_back_at_resume": falls_back_at_resume(run, [one.step for one in at])} if at else {}


def _falls_at_joins(run: Run, joins: tuple[Join, ...]) -> Answers:
    """Return the dips that begin at resumes as evidence, all of them together, if their mean is clear."""
    dips = [
        (join, join.dip)
        for join in joins
        if join.told and join.dip is not None and not join.new_epoch and (join.rate is None or join.rate >= CUT)
    ]
    if not dips or len(dips) < sum(join.told for join in joins):
        return {}
    depth = sum(dip.depth / abs(join.before or math.inf) for join, dip in dips) / len(dips)
    squared = sum((dip.error / abs(join.before or math.inf)) ** 2 for join, dip in dips)
    if depth < max(DIP_SHARE, DIP_SIGMAS * math.sqrt(squared) / len(dips)):
        return {}
    join, dip = max(dips, key=lambda one: one[1].depth)
    more = f"; at {len(dips)} resumes it falls by {depth:.0%} on average" if len(dips) > 1 else ""
    steps = [join.step, *(other.step for other, _ in dips if other is not join)]
    return {
        "loss_falls_back": Evidence(
            f"loss falls from {figure(join.before)} to {figure(dip.low)} at {run.place(join.step)} for "
            f"about {dip.records} records and climbs back to {figure(dip.back)}{more}",
            steps=tuple(steps[:SHOWN]),
            values={"before": join.before, "after": dip.low, "back": dip.back, "falls": len(dips)},
        ),
        "falls_back_at_resume": falls_back_at_resume(run, steps),
    }


def falls_back_at_resume(run: Run, steps: list[float]) -> Evidence:
    """The fall of the loss from which it climbs back begins where the log shows a resume.

    Not this when: the log shows none there, or only a gap in its steps.
    """
    more = f" and {len(steps) - 1} more" if len(steps) > 1 else ""
    said = f"the fall of the loss at {run.place(steps[0])}{more} begins where the run was resumed"
    return Evidence(said, steps=tuple(steps[:SHOWN]), values={"resumes": len(steps)})


def epoch_starts_over(run: Run) -> Evidence | None:
    """The epoch that the log counts falls back in the middle of a pass, while the steps go on: data start over.

    Not this when: a pass was whole, as where a new stage of training begins; the steps fall back as well.
    """
    restart = restart_of_data(run)
    if restart is None:
        return None
    return Evidence(
        f"the epoch goes from {figure(restart.before)} to {figure(restart.after)} at {run.place(restart.step)}, and "
        "the steps go on",
        steps=(restart.step,),
        values={"before": restart.before, "after": restart.after},
    )


def _jumps(join: Join) -> bool:
    """Say whether the loss jumps beyond noise: up, or also down where the same steps were run again."""
    size = abs(join.jump) if join.replayed else join.jump
    return size > max(SHARE * abs(join.before), SIGMAS * join.error)


def loss_jump_at_resume(run: Run, joins: tuple[Join, ...]) -> Evidence | None:
    """The loss jumps where the run was resumed, by its steps or its words, or across a gap in the steps.

    Not this when: the jump is within the noise or the trend; the second stretch starts from the beginning; the loss
    falls and climbs back (`loss_falls_back`). Where the same steps were run again, a fall for good counts too.
    """
    if not joins:
        raise CannotTell("the log shows no resume: it tells of none, and its steps neither fall back nor have a gap")
    jumps = [join for join in joins if _jumps(join)]
    if not jumps:
        return None
    worst = max(jumps, key=lambda join: abs(join.jump))
    more = f"; {len(jumps)} such jumps at {len(joins)} joins" if len(joins) > 1 else ""
    where = "where the run was resumed" if worst.told else "after a gap in the logged steps"
    rate = (
        f"; the learning rate is {figure(worst.rate)} times that before"
        if worst.rate is not None and abs(worst.rate - 1) > 1 - CUT
        else ""
    )
    return Evidence(
        f"loss goes from {figure(worst.before)} to {figure(worst.after)} at {run.place(worst.step)}, "
        f"{where}{more}{rate}",
        steps=(worst.step, *(join.step for join in jumps if join is not worst))[:SHOWN],
        values={"before": worst.before, "after": worst.after, "jump": worst.after - worst.before, "joins": len(joins)},
    )


# Of jumps: one run in ten is resumed in its log, of which one in fifty jumps so. They are judged in resumed runs alone,
# so that the priors of causes, which are shares of all runs, come too low for them.
@question(
    outcome_of(loss_jump_at_resume, 0.002, "bekman_mle", as_chosen=True),
    outcome_of(loss_falls_back, 0.01, "bekman_mle", follows=("loss_spikes_recur", "loss_spike_single")),
    outcome_of(falls_back_at_resume, 0.05, "bekman_mle", of="loss_falls_back", as_chosen=True),
    outcome_of(epoch_starts_over, 0.002, needs=("epoch",)),
    needs=("loss",),
    points=8,
    not_for=("grpo", "ppo", "rl"),
    whole_run=True,
)
def resume(run: Run) -> Answers:
    """Say whether the loss jumps at a resume, or falls there, or anywhere, and whether the data start over."""
    return {**_of_the_loss(run), **told(by_outcome((epoch_starts_over,), run))}


def _of_the_loss(run: Run) -> Answers:
    joins = joins_of(run)
    answers: dict[str, Evidence | CannotTell] = {}
    try:
        falls = _falls(run)
    except CannotTell as why:
        falls, answers["loss_falls_back"] = [], why
    if falls:
        return {"loss_falls_back": loss_falls_back(run, falls), **_at_joins(run, falls, joins)}
    return _falls_at_joins(run, joins) or {**answers, **told(by_outcome((loss_jump_at_resume,), run, joins))}
