"""Do the columns of a row agree: lengths with lengths, steps with the next step, answers with solutions?"""

from __future__ import annotations

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.checks.batch import batch_evidence, in_rows, problems_of, rows_of
from mldebug_mcp.checks.check import Evidence, batch_check
from mldebug_mcp.models.base import Severity


@batch_check(
    severity="error",
    why="CTC needs a frame for each symbol: such a row has an infinite loss, or none where zero_infinity hides it.",
    fix="Drop these rows, or subsample less; compare both lengths behind the encoder.",
    fixes={"torch": "CTCLoss(zero_infinity=True) leaves the rows out."},
    quotes=("karpathy_recipe_inspect_data",),
)
def target_longer_than_input(batch: Batch) -> Evidence | None:
    """A row has fewer frames (`input_lengths`) than symbols (`target_lengths`) and blanks between equal ones.

    Not this when: most rows are so, as where speech is made of text.
    """
    rows = rows_of(problems_of(batch, "target_longer_than_input"))
    return in_rows(batch, rows, "{rows has|have} more symbols in the target than frames in the input")


@batch_check(
    severity="warning",
    why="The value of such a step is learnt from itself: nothing that the action does is seen.",
    fix="Copy the observation before the environment steps (obs.copy()): many environments write into one buffer.",
    quotes=("karpathy_recipe_inspect_data",),
)
def next_observation_same(batch: Batch) -> Evidence | None:
    """A step's next observation is its own, and the row behind it, of the same episode, goes on from another.

    Not this when: the row behind has the same observation too, as where an agent stands still; rows are shuffled; fewer
    than one step in a hundred is so, or one in twenty where no column marks the ends of episodes.
    """
    problems = problems_of(batch, "next_observation_same")
    rows = rows_of(problems)
    return in_rows(batch, rows, f"{problems[0].summary} in {{rows}}") if problems else None


@batch_check(
    severity="error",
    why="Gathering the features of such a node fails: a device-side assert on a GPU, often reported at another line.",
    fix="Number the nodes from 0 in the order of x; take 1 off numbers that begin at 1.",
    quotes=("hfcourse_walk_pipeline",),
)
def edge_out_of_range(batch: Batch) -> Evidence | None:
    """An edge of a graph (`edge_index`) names a node that the features of nodes (`x`) do not hold.

    Not this when: `x` holds no row for each node; edges are no array of two rows.
    """
    problems = problems_of(batch, "edge_out_of_range")
    return batch_evidence(problems[0].summary) if problems else None


MAX_SHARE_OF_SLIPS = 0.01
"""Share of the answers up to which they are slips of the pen. Chosen: collections in use hold as many."""


@batch_check(
    severity="warning",
    why="The reward or the loss is for another answer: right ones are punished and wrong ones learnt.",
    fix="Join both columns by the problem's id, not by the place of the row; take the answer from the solution.",
    quotes=("karpathy_recipe_inspect_data", "axolotl_reward_standalone"),
)
def answer_contradicts_solution(batch: Batch) -> Evidence | None:
    """A problem's answer is another number than the one that its own solution ends with (`####` or a box).

    Not this when: most rows are so, as the columns then mean other things; the rows are rated answers of a model. Of
    one row in a hundred it is a remark: collections hold a few.
    """
    problems = problems_of(batch, "answer_contradicts_solution")
    rows = rows_of(problems)
    severity: Severity | None = "info" if len(rows) <= MAX_SHARE_OF_SLIPS * batch.rows else None
    summary = f"{problems[0].summary}, another number stands in {{rows}}" if problems else ""
    return in_rows(batch, rows, summary, severity=severity)


@batch_check(
    severity="warning",
    why="The model learns to answer in another language than it is asked for; the shares are not what they seem.",
    fix="Identify the language of each text (such as with fastText's lid.176); mark these rows anew or drop them.",
    quotes=("karpathy_recipe_inspect_data",),
)
def language_mismatch(batch: Batch) -> Evidence | None:
    """The words of rows that are common in some language of the data are those of another than the row names (`lang`).

    Not this when: fewer than three rows in a hundred of a language are so, as in collections from the web; rows are
    short; the data hold no rows of that other language.
    """
    problems = problems_of(batch, "language_mismatch")
    summary = "; ".join(problem.summary for problem in problems)
    return batch_evidence(summary, rows_of(problems)) if problems else None
