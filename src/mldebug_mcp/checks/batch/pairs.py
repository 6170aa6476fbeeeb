"""Do the sides of pairs differ as they should, and do rollouts teach anything?"""

from __future__ import annotations

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.endings import Pair, content, pairs
from mldebug_mcp.batch.sequences import Bools, Ints, Sequences
from mldebug_mcp.batch.templates import PROMPT_ROLES
from mldebug_mcp.checks.batch.affected_rows import batch_evidence, of_rows
from mldebug_mcp.checks.check import Evidence, batch_check
from mldebug_mcp.models.base import Severity

# Preference pairs without a difference.


MOST_ALIKE = 64
"""Tokens after the first difference up to which texts are compared. Chosen: longer ones differ in more than spaces."""


@batch_check(
    severity="error",
    why=(
        "Such a pair has no preference: its loss stays at ln 2 and its gradient is zero; many of them keep the "
        "accuracy at one half."
    ),
    fix="Drop pairs whose completions are equal after stripping; check that the two columns have different sources.",
    quotes=("karpathy_recipe_inspect_data",),
    purposes=("dpo",),
)
def chosen_equals_rejected(batch: Batch) -> Evidence | None:
    """Chosen and rejected completions are the same, or differ only in spaces around them and in special tokens.

    Not this when: they differ in a single word, or in the spaces inside them.
    """
    chosen, rejected = batch.side("chosen"), batch.side("rejected")
    if chosen is None or rejected is None:
        return None
    rows = np.array(
        [pair.number for pair in pairs(chosen, rejected) if pair.same or _reads_same(batch, chosen, rejected, pair)],
        np.int64,
    )
    if not len(rows):
        return None
    severity: Severity | None = "warning" if len(rows) < 0.05 * batch.rows else None
    summary = f"chosen and rejected are the same in {of_rows(rows, batch.rows)}"
    return batch_evidence(summary, rows, values={"pairs": len(rows)}, severity=severity)


def _reads_same(batch: Batch, chosen: Sequences, rejected: Sequences, pair: Pair) -> bool:
    array, two = content(chosen, pair.chosen)[pair.shared :], content(rejected, pair.rejected)[pair.shared :]
    tokenizer = batch.tokenizer
    if tokenizer is None or max(len(array), len(two)) > MOST_ALIKE:
        return False
    special = tokenizer.special_ids
    texts = [
        "".join(tokenizer.pieces([number for number in side.tolist() if number not in special])).rstrip()
        for side in (array, two)
    ]
    if _begins_there(chosen, pair):
        texts = [text.lstrip() for text in texts]
    return texts[0] == texts[1]


def _begins_there(chosen: Sequences, pair: Pair) -> bool:
    """Whether the completions part at their beginning: further on spaces count, as those of code do."""
    if pair.shared == 0 or chosen.trained is None:
        return pair.shared == 0
    first = int(chosen.ids.offsets[pair.chosen]) + pair.chosen_start
    return not bool(chosen.trained[first : first + pair.shared].any())


# Pairs and triplets for embeddings in which two of a row's texts are the same.


_POSITIVE = ("positive", "pos")
_NEGATIVE = ("negative", "neg")


@batch_check(
    severity="error",
    why="The same text is to be near the anchor and far from it: the two terms of the loss cancel, and it cannot fall.",
    fix="See that the columns have different sources; drop mined negatives that are the positive or the anchor itself.",
    quotes=("karpathy_recipe_inspect_data",),
    purposes=("embedding",),
)
def positive_equals_negative(batch: Batch) -> Evidence | None:
    """A row's negative is its positive, or its anchor, token for token.

    Not this when: anchor and positive are the same, as in SimCSE, where dropout tells them apart; the columns do not
    say which of them is the negative.
    """
    rows, other = _same(batch, _POSITIVE), "positive"
    if not len(rows):
        rows, other = _same(batch, ("anchor", "query")), "anchor"
    if not len(rows):
        return None
    severity: Severity | None = "warning" if len(rows) < 0.05 * batch.rows else None
    summary = f"the negative is the {other} in {of_rows(rows, batch.rows)}"
    return batch_evidence(summary, rows, values={"rows": len(rows)}, severity=severity)


def _same(batch: Batch, names: tuple[str, ...]) -> Ints:
    """Return the rows in which a negative is the same as the side of one of these names."""
    others = [side for side in batch.sides if side.name in names]
    negatives = [side for side in batch.sides if side.name.startswith(_NEGATIVE)]
    found = [pair.number for other in others for two in negatives for pair in pairs(other, two) if pair.same]
    return np.unique(np.array(found, np.int64))


# Rejected completions that were scored higher than the chosen ones.


MIN_SHARE_OF_PAIRS = 0.5
"""Share of the pairs above which the columns are exchanged, and not single pairs: then it is an error."""


@batch_check(
    severity="warning",
    why="The model is trained away from what was liked better: rewards look right, and answers get worse.",
    fix="Take the completion with the higher score as chosen; see which of the two lists the data set gives first.",
    quotes=("karpathy_recipe_inspect_data",),
    purposes=("dpo",),
)
def preference_swapped(batch: Batch) -> Evidence | None:
    """The data's own scores, ratings or rewards of the pairs say that the rejected completion is the better one.

    Not this when: there are no columns of scores for both sides; a pair's scores are equal.
    """
    problem = next((problem for problem in batch.problems if problem.check == "preference_swapped"), None)
    if problem is None:
        return None
    rows = np.array(problem.rows, np.int64)
    severity: Severity | None = "error" if len(rows) > MIN_SHARE_OF_PAIRS * batch.rows else None
    summary = f"{problem.summary}, the rejected completion has the higher one in {of_rows(rows, batch.rows)}"
    return batch_evidence(summary, rows, values={"pairs": len(rows)}, severity=severity)


# A preference pair lacks its prompt or its sides do not share it.


LEAST_SHARED = 2
"""Different tokens that both sides begin with, besides the first one, that may be a prompt where no tokenizer tells."""


@batch_check(
    severity="error",
    why="The two completions are compared as answers to different questions, or to none.",
    fix=(
        "Give prompt, chosen and rejected columns (TRL calls this the explicit prompt format), or conversations "
        "that begin alike."
    ),
    fixes={
        "Axolotl": "check type: under datasets: and the field names of prompt, chosen and rejected.",
        "LLaMA-Factory": "ranking: true and the columns prompt, chosen, rejected in dataset_info.json.",
    },
    quotes=("hfcourse_decode_inputs",),
    purposes=("dpo",),
)
def prompt_missing(batch: Batch) -> Evidence | None:
    """The prompt of a pair is empty, or the chosen and the rejected row do not begin alike.

    Nor do they where they share a system turn or a marker, and the user asks something else in each.

    Not this when: prompts stand in a column of their own.
    """
    chosen, rejected, prompt = batch.side("chosen"), batch.side("rejected"), batch.side("prompt")
    if prompt is not None:
        rows = prompt.numbers[_hardly_anything(batch, prompt)]
        what = "the prompt of {} is empty"
    elif chosen is not None and rejected is not None:
        rows = np.array(
            [pair.number for pair in pairs(chosen, rejected) if not pair.same and _begin_apart(batch, chosen, pair)],
            np.int64,
        )
        asked = [row for problem in batch.problems if problem.check == "prompt_missing" for row in problem.rows]
        rows = np.union1d(rows, asked).astype(np.int64)
        what = "chosen and rejected of {} do not begin with the same prompt"
    else:
        return None
    if not len(rows):
        return None
    return batch_evidence(what.format(of_rows(rows, batch.rows)), rows)


def _hardly_anything(batch: Batch, prompt: Sequences) -> Bools:
    special = batch.tokenizer.special_ids if batch.tokenizer is not None else batch.ends | {batch.bos}
    rows = [bool(set(content(prompt, row).tolist()) - special) for row in range(prompt.rows)]
    return ~np.array(rows, np.bool_)


def _begin_apart(batch: Batch, chosen: Sequences, pair: Pair) -> bool:
    """Whether what both sides begin with holds no word of a prompt."""
    shared = content(chosen, pair.chosen)[: pair.shared]
    known = batch.tokenizer
    if known is None:
        # A beginning that is masked is a prompt, however short.
        masked = chosen.trained is not None and not chosen.trained[chosen.bounds[0][pair.chosen]]
        return len(set(shared.tolist()) - {batch.bos}) < (1 if masked else LEAST_SHARED)
    row = next((row for row in batch.roles if row.side is chosen and row.index == pair.chosen), None)
    if row is not None and row.turns:
        first = row.turns[0]
        return first.role not in PROMPT_ROLES or pair.chosen_start + pair.shared <= first.start
    return not set(shared.tolist()) - known.special_ids


@batch_check(
    severity="error",
    why="The policy gradient is the advantage times a gradient: with zeros everywhere nothing is learnt from it.",
    fix=(
        "Look at the rewards: the same for all completions of a prompt make every advantage of its group zero. Call "
        "the reward function by hand on a right and a wrong answer; take prompts that are solved sometimes."
    ),
    fixes={"TRL": "watch frac_reward_zero_std; num_generations above 1."},
    quotes=("reddit_reward_variance", "trl_frac_zero_std", "axolotl_reward_standalone"),
)
def advantages_zero(batch: Batch) -> Evidence | None:
    """The advantages of all rows are exactly zero.

    Not this when: some group has others; the rows are fewer than four.
    """
    problem = next((problem for problem in batch.problems if problem.check == "advantages_zero"), None)
    return None if problem is None else batch_evidence(problem.summary)
