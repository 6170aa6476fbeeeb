"""Do the rewards of a group of completions differ?"""

from __future__ import annotations

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.groups import Groups, groups
from mldebug_mcp.measure.policy import NOT_POLICY
from mldebug_mcp.measure.statistics import median
from mldebug_mcp.symptoms.readings import outcome_of
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, question
from mldebug_mcp.text import counted, figure

LEAST_RECORDS = 10
"""Records that are needed to speak of the run. Chosen: a sound run has a few without variance now and then."""
MOST = 0.8
"""The share of records, in the later half of the log, that lack variance. Chosen: by hand."""


def no_variance_in_excerpt(run: Run, found: Groups) -> Evidence:
    """No reward variance in the few records there are.

    In every one of a few records, too few to speak of the run, nearly all groups have the same reward.
    Not this when: one of the records has some variance; there are ten records or more. A sound run has such
    records now and then.
    """
    series = found.series
    return Evidence(
        f"{series.name} is {figure(series.value[-1])} at {run.place(series.step[-1])}: "
        f"groups without variance in all {counted(len(series), 'record')} there are",
        steps=(float(series.step[0]),),
        values={"records": float(len(series))},
    )


def reward_std_zero(run: Run, found: Groups) -> Evidence | None:
    """No reward variance within groups.

    Nearly all groups of completions have the same reward, record after record.
    Not this when: it happens only sometimes, or in less than 80 % of the groups; the task is solved, and all get
    the most that there is (a remark).
    """
    later = found.dead[len(found.dead) // 2 :]
    if later.mean() < MOST:
        return None
    typical = median(found.series.value[len(found.dead) // 2 :])
    beside = "" if found.level is None else f"; the reward there is {figure(found.level)}"
    solved = ", the most that can be earned, and was less at first" if found.solved else ""
    return Evidence(
        f"{found.series.name} is {figure(typical)} in the later half of the log: groups without variance in "
        f"{later.mean():.0%} of its records, from {run.place(found.onset)} on{beside}{solved}",
        steps=(found.onset,),
        values={"share_of_records": float(found.dead.mean()), "share_of_later_half": float(later.mean())},
        present=not found.solved,
    )


@question(
    outcome_of(reward_std_zero, 0.01, "axolotl_stability", follows=("eval_reward_falls",)),
    outcome_of(no_variance_in_excerpt, 0.1, "axolotl_stability"),
    any_of=("frac_reward_zero_std", "reward_std"),
    not_for=NOT_POLICY,
)
def reward_spread(run: Run) -> Answers:
    """The later half of a log; of an excerpt of a few records, all of them."""
    found = groups(run)
    if found is None:
        raise CannotTell("no finite value of the variance within groups")
    count = len(found.dead)
    if count < LEAST_RECORDS:
        few = CannotTell(f"{found.series.name} has {counted(count, 'value')}; {LEAST_RECORDS} are needed")
        excerpt = {"no_variance_in_excerpt": no_variance_in_excerpt(run, found)} if found.dead.all() else {}
        return {"reward_std_zero": few, **excerpt}
    many = CannotTell(f"{found.series.name} has {counted(count, 'value')}: of fewer than {LEAST_RECORDS} only")
    lasting = reward_std_zero(run, found)
    return {"no_variance_in_excerpt": many, **({} if lasting is None else {"reward_std_zero": lasting})}
