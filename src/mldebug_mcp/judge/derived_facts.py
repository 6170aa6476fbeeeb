"""What follows from several quantities of a run together: facts, neither symptoms nor causes."""

from __future__ import annotations

from collections.abc import Iterator

from mldebug_mcp.checks.pass_jumps import UNTOUCHED, PassPattern, pass_pattern
from mldebug_mcp.checks.rollouts import Rollouts, RunsOut, entropy_runs_out, rollouts_without_gradient
from mldebug_mcp.core.text import figure, percent
from mldebug_mcp.logs import Run
from mldebug_mcp.logs.kinds import plan_of
from mldebug_mcp.models.diagnosis import DerivedFact

WASTED = "rollouts_without_gradient"
RUNS_OUT = "entropy_runs_out"
AT_EVERY_EPOCH = "recurs_at_every_pass"
WORTH_A_WORD = 0.05
"""Share of rollouts without a gradient below which nothing is reported. Chosen: a healthy run has a few."""


def derived_facts(run: Run) -> list[DerivedFact]:
    """Return the facts on what a policy spends, on its entropy, and on what recurs at every pass."""
    return list(_derived_facts(run))


def _derived_facts(run: Run) -> Iterator[DerivedFact]:
    spent = rollouts_without_gradient(run)
    if spent is not None and max(spent.share, spent.lately) >= WORTH_A_WORD:
        yield _wasted(spent)
    out = entropy_runs_out(run)
    if out is not None:
        yield _out(run, out)
    pattern = pass_pattern(run)
    if pattern is not None:
        yield _each_pass(run, pattern)


def _wasted(spent: Rollouts) -> DerivedFact:
    """Return what the groups without a gradient took."""
    values = {"share": spent.share, "lately": spent.lately, "records": float(spent.records)}
    least = "At least " if spent.is_least and spent.share < 1 else ""
    sentences = [
        f"{least}{percent(spent.share)} of the rollouts so far have no gradient, {percent(spent.lately)} lately: all "
        f"rewards of their group are the same ({spent.source})"
    ]
    if spent.all_right is not None and spent.all_wrong is not None:
        ends = "" if spent.ends is None else (
            f", if a wrong answer earns {figure(spent.ends[0])} and a right one {figure(spent.ends[1])}"
        )  # fmt: skip
        sentences.append(
            f"{_between(spent.all_right)} of all are in groups that are all right (too easy), "
            f"{_between(spent.all_wrong)} in groups that are all wrong (too hard){ends}"
        )
        values |= {"all_right_low": spent.all_right[0], "all_right_high": spent.all_right[1]}
        values |= {"all_wrong_low": spent.all_wrong[0], "all_wrong_high": spent.all_wrong[1]}
    else:
        sentences.append("whether they are all right (too easy) or all wrong (too hard) the log does not tell")
    took = []
    if spent.tokens is not None:
        took.append(f"{_amount(spent.tokens[0])} of {_amount(spent.tokens[1])} tokens")
        values |= {"tokens": spent.tokens[0], "tokens_in_all": spent.tokens[1]}
    if spent.seconds is not None:
        took.append(f"{_duration(spent.seconds[0])} of {_duration(spent.seconds[1])}")
        values |= {"seconds": spent.seconds[0], "seconds_in_all": spent.seconds[1]}
    sentences += [f"they took {' and '.join(took)}"] if took else []
    most = _most(spent)
    sentences += [f"most of them are too {most}"] if most else []
    text = " ".join(map(_sentence, sentences))
    return DerivedFact(fact=WASTED, text=text, values=values)


def _most(spent: Rollouts) -> str:
    """Return whether most of the groups without a gradient are too easy or too hard: the two need opposite fixes."""
    easy, hard = spent.all_right, spent.all_wrong
    if easy is None or hard is None:
        return ""
    return "easy: harder prompts would teach more" if easy[0] > hard[1] else (
        "hard: easier prompts, or a reward for part of the way, would teach more" if hard[0] > easy[1] else ""
    )  # fmt: skip


def _out(run: Run, out: RunsOut) -> DerivedFact:
    """Return when the entropy runs out."""
    late = f" and {figure(round(out.high))}"
    text = (
        f"at the pace since {run.place(out.since)} the entropy comes down to a tenth of its start at {run.step_name} "
        f"{figure(round(out.step))} (95 % interval: between {figure(round(out.low))}{late}); it was "
        f"{figure(out.start)} at the start and is {figure(out.now)} now"
    )
    plan = plan_of(run)
    if plan is not None and plan.unit == run.step_name:
        end = f"the planned end at {run.step_name} {figure(plan.planned)}"
        if out.low <= plan.planned <= out.high:
            text += f". Whether that is before {end} is open, as it lies in the interval"
        else:
            text += f". That is {'before' if out.high < plan.planned else 'after'} {end}"
    values = {"step": out.step, "low": out.low, "high": out.high, "start": out.start, "now": out.now}
    return DerivedFact(fact=RUNS_OUT, text=_sentence(text), values=values, steps=[out.step])


def _each_pass(run: Run, found: PassPattern) -> DerivedFact:
    """Return what recurs at every pass."""
    values = {"correlation": found.correlation, "passes": float(found.whole)}
    parts = []
    if found.jump is not None:
        values |= {"jump": found.jump.size, "boundaries": float(found.jump.passes), "clear": float(found.jump.clear)}
        records = "record" if found.head == 1 else f"{found.head} records"
        share = f" ({percent(found.jump.size / found.level)} of its level)" if found.level > 0 else ""
        parts.append(
            f"the training loss jumps by {figure(found.jump.size)}{share} in the first {records} of "
            f"{found.jump.clear} of {found.jump.passes} passes over the data, first at {run.place(found.steps[0])}"
        )
        parts.append(_gradient_there(found))
        values |= {} if found.gradient is None else {"gradient_errors": found.gradient.errors}
    if found.slopes:
        way = "rises" if found.correlation > 0 else "falls"
        parts.append(
            f"the training loss {way} with the position in the pass: rank correlation {found.correlation:.2f} over "
            f"{found.whole} passes, between {found.extremes[0]:.2f} and {found.extremes[1]:.2f}. Such a slope points "
            "to the order of the data, or to a loss that is averaged since the pass began"
        )
    elif found.whole:
        parts.append(f"the rank correlation of the loss with the position in the pass is {found.correlation:.2f}")
    text = ". ".join(_sentence(part).rstrip(".") for part in parts)
    return DerivedFact(
        fact=AT_EVERY_EPOCH,
        text=f"{text}. Passes are known from {found.source}.",
        values=values,
        steps=list(found.steps[:20]),
    )


def _gradient_there(found: PassPattern) -> str:
    if found.gradient is None:
        return (
            "the gradient norm is not logged there, so an artefact of averaging and rows that are harder look the same"
        )
    if abs(found.gradient.errors) < UNTOUCHED:
        return (
            "the gradient norm does not move there: that points to how the loss is averaged or to the order of the "
            "data before it points to bad rows"
        )
    way = "rises" if found.gradient.size > 0 else "falls"
    return f"the gradient norm {way} there as well, by {figure(abs(found.gradient.size))}: the rows there do differ"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}" + ("" if text.endswith(".") else ".")


def _between(bounds: tuple[float, float]) -> str:
    low, high = (percent(bound) for bound in bounds)
    return low if low == high else f"{low} to {high}"


def _amount(count: float) -> str:
    for size, name in ((1e9, "billion"), (1e6, "million"), (1e3, "thousand")):
        if count >= size:
            return f"{count / size:.1f} {name}"
    return f"{count:.0f}"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


CHANGED = 0.1
"""By how much a share of rollouts changes to be reported again. Chosen: one in ten."""


def has_changed(earlier: DerivedFact | None, now: DerivedFact) -> bool:
    """Say whether a fact of a running run must be reported again: its share moved, or its step left the interval."""
    if earlier is None:
        return True
    before, after = earlier.values, now.values
    if now.fact == RUNS_OUT:
        return not before["low"] <= after["step"] <= before["high"]
    return now.fact == WASTED and abs(after["lately"] - before["lately"]) >= CHANGED
