"""Are rows empty, repeated, garbled, too long or of the evaluation data, and do the sides of pairs differ?"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from mldebug_mcp.batch.batch import Batch, LengthCounts, arrays_of, median_of
from mldebug_mcp.batch.endings import Pair, content, pairs
from mldebug_mcp.batch.roles import END_OF_TURN_ID, RowRoles
from mldebug_mcp.batch.sequences import Bools, Ints, Sequences
from mldebug_mcp.batch.templates import PROMPT_ROLES
from mldebug_mcp.batch.text_problems import is_garbled
from mldebug_mcp.checks.batch import (
    NO_ROWS,
    batch_evidence,
    in_rows,
    problem_evidence,
    problems_of,
    rows_of,
    rows_where,
)
from mldebug_mcp.checks.check import Evidence, batch_check
from mldebug_mcp.core.conventions import STD_PER_MAD
from mldebug_mcp.core.text import figure
from mldebug_mcp.models.base import Severity

# Identical rows.


SHARDS_NAMED = 3
"""Copies that a sentence names. Chosen: a line holds as many."""


@batch_check(
    severity="warning",
    why="Duplicates weigh more than the rest and are memorised; across splits they make an evaluation worthless.",
    fix="Drop duplicates before the split; see that no source is listed twice and that workers do not share a seed.",
    fixes={
        "Axolotl": "dataset_exact_deduplication: true.",
        "LLaMA-Factory": "see that a data set is not listed twice.",
    },
    quotes=("karpathy_recipe_inspect_data",),
    whole=True,
)
def duplicate_rows(batch: Batch) -> Evidence | None:
    """A row is the same as an earlier one in everything that the model sees, or one document in twenty is in its text.

    Not this when: prompts are the same and completions differ; prompts for generation are repeated, as GRPO does.
    Where rows have rewards, it is a remark: a policy answers an easy prompt several times alike. A file of a folder
    that holds the same rows as another is seen for all purposes: ranks that read one shard.
    """
    if batch.overlap is None:
        return None
    same_tokens = [] if batch.corpus is None else batch.corpus.copies()
    copies = same_tokens or list(batch.overlap.files)
    # Chosen by hand: sentences recur beside other sounds or files; documents of 100 words in one of twenty do not.
    documents = bool(batch.sides) and batch.sides[0].lengths.mean() >= 100
    many = documents and batch.overlap.same_text >= 0.05 * batch.overlap.rows
    if not copies and (batch.purpose == "generation" or not (len(batch.overlap.exact) or many)):
        return None
    again = batch.overlap.exact
    example = f" (row {again[0, 0]} is row {again[0, 1]})" if len(again) else ""
    whole = ", ".join(f"{copy} is {original}" for copy, original in copies[:SHARDS_NAMED])
    what = "shards whose tokens" if same_tokens else "files whose rows"
    shards = f"; {what} are all those of another: {len(copies)} ({whole})" if copies else ""
    # Chosen by hand: collections of instructions hold up to about one in a hundred.
    few = (len(again) < 0.01 * batch.overlap.rows and not many) or batch.is_rated
    severity: Severity | None = "info" if few and not copies else None
    same, nearly = batch.overlap.same_text, len(batch.overlap.near) - batch.overlap.same_text
    near = f", {same} more in their text alone" * (same > 0) + f", {nearly} more nearly do" * (nearly > 0)
    return batch_evidence(
        f"{len(again)} of {batch.overlap.rows} rows repeat another{example}{near}{shards}",
        np.unique(again),
        values={"duplicates": len(again), "near_duplicates": len(batch.overlap.near)},
        severity=severity,
    )


# Rows without content.


FEW_EMPTY = 0.01
"""Share of empty documents up to which they are a remark. Chosen: blank lines of a corpus become such documents."""
MAX_SHORT_ROW_TOKENS = 8
"""Tokens up to which a row is looked at whole. Chosen: longer ones hold more than special tokens."""


@batch_check(
    severity="warning",
    why="They teach nothing; a micro-batch of such rows alone gives a NaN loss.",
    fix="Filter them out before training: dataset.filter(lambda row: len(row['input_ids']) > 1).",
    quotes=("karpathy_recipe_inspect_data", "axolotl_spike_one_sample"),
)
def empty_row(batch: Batch) -> Evidence | None:
    """A row has no token besides padding and special tokens, or its completion none besides its end.

    Not this when: it is the prompt of a preference pair (`prompt_missing`); nothing of the row is trained on
    (`row_labels_masked`).
    """
    sides = [side for side in batch.sides if not (side.name == "prompt" and batch.purpose == "dpo")]
    special = (
        batch.tokenizer.special_ids
        if batch.tokenizer is not None
        else batch.ends | ({batch.bos} if batch.bos is not None else set())
    )
    rows = rows_where(sides, lambda side: _nothing_but(side, np.array(sorted(special), np.int64)))
    if len(rows):
        few = batch.is_corpus and len(rows) <= FEW_EMPTY * batch.rows
        return in_rows(batch, rows, "{rows is|are} empty", severity="info" if few else None)
    if batch.rows_are_for not in ("sft", "dpo", "vlm"):
        return None
    rows = rows_where(batch.trained_sides, lambda side: _ends_at_once(batch, side))
    if not len(rows):
        return problem_evidence(batch, "empty_row")
    if batch.purpose == "dpo":
        names = [side.name for side in batch.trained_sides if _ends_at_once(batch, side).any()]
        return in_rows(batch, rows, f"the {' and the '.join(names)} answer of {{rows}} is empty")
    return in_rows(batch, rows, "in {rows} the completion is empty: only its end is trained on")


def _ends_at_once(batch: Batch, side: Sequences) -> Bools:
    """Return the rows in which an end token, and no word, is trained on."""
    trained = side.trained
    empty = np.zeros(side.rows, np.bool_)
    if batch.words is not None and side.trained_runs is not None:
        # Each stretch is a turn of the assistant, or a text, with its end.
        runs = side.trained_runs
        empty[runs.row[(runs.stop - runs.start == 1) & (side.ids.flat[runs.start] == END_OF_TURN_ID)]] = True
        return empty
    for row in np.flatnonzero((side.trained_per_row > 0) & (side.trained_per_row <= MAX_SHORT_ROW_TOKENS)).tolist():
        inside = slice(int(side.ids.offsets[row]), int(side.ids.offsets[row + 1]))
        tokens = [] if trained is None else side.ids.flat[inside][(trained & side.content)[inside]].tolist()
        words = [token for token in tokens if token not in batch.ends]
        blank = batch.tokenizer is not None and not "".join(batch.tokenizer.pieces(words)).strip()
        empty[row] = len(words) < len(tokens) and (not words or blank)
    return empty


def _nothing_but(side: Sequences, special: Ints) -> Bools:
    empty: Bools = side.lengths == 0
    for row in np.flatnonzero((side.lengths > 0) & (side.lengths <= MAX_SHORT_ROW_TOKENS)).tolist():
        empty[row] = bool(np.isin(content(side, row), special).all()) if len(special) else False
    return empty


# Rows of the evaluation data are in the training data.


MIN_PASSAGES = 50
"""Passages that are compared. Chosen: of fewer a single text that is quoted is a large share."""
SOME_SHARED = 0.03
"""Share of the other set's passages that are here. Chosen: below the over 4 % of validation sets in use that overlap
with their training data (https://arxiv.org/abs/2107.06499)."""
MANY_SHARED = 0.1
"""Share of them that makes an evaluation worthless. Chosen: above what sets in use share."""


@batch_check(
    severity="error",
    why="The evaluation measures memory: its loss is too low, and it cannot show overfitting.",
    fix="Drop the shared rows from the training data, and split by source or conversation before cutting rows.",
    quotes=("kapoor_17_fields",),
    whole=True,
)
def split_leakage(batch: Batch) -> Evidence | None:
    """Rows of the data set given with --against are also here, exactly or nearly; or two masks of splits share rows.

    So do arrays of images, and of edges, that are named alike but for the split (`x_train`, `x_test`).

    Not this when: rows share a system prompt or other boilerplate, but not four fifths of their text. Below one row
    in a hundred, all of them near, it is a warning; the share was chosen by hand. Of corpora, passages of 32 tokens are
    compared too, so that cuts at other places hide nothing.
    """
    if masks := problems_of(batch, "split_leakage"):
        return batch_evidence("; ".join(problem.summary for problem in masks), rows_of(masks))
    overlap = batch.overlap
    if overlap is None or overlap.against_exact is None or overlap.against_near is None:
        return None
    exact, near = (len(np.unique(pairs[:, 1])) for pairs in (overlap.against_exact, overlap.against_near))
    passages, shared = overlap.against_passages, overlap.against_shared
    many = passages >= MIN_PASSAGES and shared >= SOME_SHARED * passages
    summary = f"{shared / max(1, passages):.0%} of the passages of 32 tokens of {overlap.against} stand here too"
    if not exact + near:
        return (
            batch_evidence(
                summary,
                values={"passages": passages, "shared": shared},
                severity=None if shared >= MANY_SHARED * passages else "warning",
            )
            if many
            else None
        )
    severity: Severity | None = "warning" if not exact and near < 0.01 * overlap.against_rows else None
    return batch_evidence(
        f"of {overlap.against_rows} rows of {overlap.against}, {exact} are here too, and {near} more nearly so"
        + (f"; {summary}" if many else ""),
        np.unique(np.concatenate([overlap.against_exact[:, 0], overlap.against_near[:, 0]])),
        values={"exact": exact, "near": near, "against_rows": overlap.against_rows},
        severity=severity,
    )


@batch_check(
    severity="error",
    why="The collator or the loss stops over shapes; padded apart, labels and tokens no longer stand side by side.",
    fix=(
        "Cut and pad all columns of a row together; a collator that pads input_ids must pad labels, masks and "
        "position ids too."
    ),
    fixes={"Transformers": "DataCollatorForSeq2Seq pads labels; DataCollatorWithPadding does not."},
    quotes=("hfcourse_walk_pipeline",),
)
def length_mismatch(batch: Batch) -> Evidence | None:
    """A column of a row is longer or shorter than its token ids.

    Not this when: the model is an encoder-decoder, whose labels have their own length. The other checks leave such
    rows, or the column, out.
    """
    problems = problems_of(batch, "length_mismatch")
    if not problems:
        return None
    return batch_evidence("; ".join(problem.summary for problem in problems[:4]), rows_of(problems))


# Rows far longer than the rest.


MIN_ROWS_FOR_TYPICAL_LENGTH = 4
"""Rows that a side must have. Chosen: fewer have no usual length."""
MIN_TIMES_MEDIAN_LENGTH = 5
"""Times the median length. Chosen: log-normal lengths; the widest in use hardly ever show one."""
MIN_LENGTH_DEVIATIONS = 6
"""Robust deviations of log length above the median. Chosen: as `MIN_TIMES_MEDIAN_LENGTH`, on log-normal lengths."""
MIN_TIMES_NEXT_LENGTH = 10
"""Times the next longest row. Chosen: of 16 log-normal lengths of deviation 1.2 one batch in a hundred has such a row,
of deviation 0.8 one in a thousand."""
MIN_ROWS_FOR_NEXT_LENGTH = 8
"""Rows that a next longest must be of. Chosen: fewer have no usual length of several kinds."""
LEAST_EXCESS = 64
"""Tokens above the median. Chosen: among short rows several times the median is little to pad."""
MIN_HARMFUL_LENGTH = 512
"""Tokens below which the longest row is a remark. Chosen: a batch padded to fewer fills no memory."""


@batch_check(
    severity="warning",
    why="One very long row sets the padding of its batch and the peak of memory, and can make the loss spike.",
    fix="Look at the row; cut or drop such rows (max_length), or group rows by length (group_by_length=True).",
    fixes={
        "Axolotl": "sequence_len with excess_length_strategy: drop; sample_packing: true.",
        "LLaMA-Factory": "lower cutoff_len.",
    },
    quotes=("axolotl_spike_one_sample", "karpathy_recipe_inspect_data"),
    whole=True,
)
def length_outlier(batch: Batch) -> Evidence | None:
    """A row is 5 times as long as the median, 64 tokens longer, and 6 robust deviations of log length above it.

    Or it is 10 times as long as the next longest, where rows are of several kinds.

    Not this when: lengths vary widely anyway, as those of web documents do. The factors were chosen on log-normal
    lengths, where the widest in use hardly ever show one.
    """
    if batch.totals is None:
        return None
    sides = batch.totals.lengths.values()
    rows = np.unique(np.concatenate([NO_ROWS, *(_far_longer(side) for side in sides)]))
    if not len(rows):
        return None
    lengths, counts = arrays_of(sum((side.counts for side in sides), Counter()))
    longest, median = int(lengths[-1]), median_of(lengths, counts)
    summary = f"{{rows has|have}} up to {longest} {batch.unit}, the median is {figure(median)}"
    severity: Severity | None = "info" if longest < MIN_HARMFUL_LENGTH else None
    return in_rows(batch, rows, summary, values={"longest": longest, "median": median}, severity=severity)


def _far_longer(side: LengthCounts) -> Ints:
    lengths, counts = arrays_of(side.counts)
    if counts.sum() < MIN_ROWS_FOR_TYPICAL_LENGTH:
        return NO_ROWS
    log = np.log(np.maximum(lengths, 1))
    middle = median_of(log, counts)
    spread = STD_PER_MAD * median_of(np.abs(log - middle), counts)
    least = max(
        math.exp(middle + max(math.log(MIN_TIMES_MEDIAN_LENGTH), MIN_LENGTH_DEVIATIONS * spread)),
        math.exp(middle) + LEAST_EXCESS,
    )
    alone = len(lengths) > 1 and counts[-1] == 1 and lengths[-1] >= MIN_TIMES_NEXT_LENGTH * max(lengths[-2], 1)
    if alone and counts.sum() >= MIN_ROWS_FOR_NEXT_LENGTH and lengths[-1] - math.exp(middle) >= LEAST_EXCESS:
        least = min(least, float(lengths[-2]))
    return side.numbers[side.longest > least]


# Text that was read with the wrong encoding.


MAX_SHARE_FOR_REMARK = 0.01
"""Share of the rows up to which it is a remark. Chosen: text from the web has as much, and it does no harm."""


@batch_check(
    severity="warning",
    why="The model learns to read and to write the garbled characters; rare scripts become long runs of odd tokens.",
    fix='Read the source files anew with encoding="utf-8"; text that is damaged already can mostly be mended (ftfy).',
    quotes=("karpathy_recipe_inspect_data",),
)
def garbled_text(batch: Batch) -> Evidence | None:
    """Characters such as "Ã©" or "â€™" stand where the text had "é" or "’": UTF-8 was read as Latin-1.

    Not this when: an accented letter stands before a sign or two; single characters were lost.
    """
    garbled = [row.number for row in batch.roles if is_garbled(_text(batch, row))]
    rows = np.union1d(rows_of(problems_of(batch, "garbled_text")), garbled)
    severity: Severity | None = "info" if len(rows) <= MAX_SHARE_FOR_REMARK * batch.rows else None
    summary = "{rows holds|hold} characters that are UTF-8 read with another encoding"
    return in_rows(batch, rows, summary, severity=severity)


UNREADABLE_BYTES = "\N{REPLACEMENT CHARACTER}"
"""What stands for bytes that make no character."""


def _text(batch: Batch, row: RowRoles) -> str:
    """Return the text of a row without bytes that make no character, as where a row was cut.

    The tokens are read together where one alone is a part of a character.
    """
    if UNREADABLE_BYTES not in row.text or batch.tokenizer is None:
        return row.text
    return batch.tokenizer.text(content(row.side, row.index).tolist()).replace(UNREADABLE_BYTES, "")


# Do the sides of pairs differ as they should, and do rollouts teach anything?


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
    severity: Severity | None = "warning" if len(rows) < 0.05 * batch.rows else None
    summary = "chosen and rejected are the same in {rows}"
    return in_rows(batch, rows, summary, values={"pairs": len(rows)}, severity=severity)


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
    why="The same text or item is to be near and far: the two terms of the loss cancel, and it cannot fall.",
    fix="See that the columns have different sources; drop mined negatives that are the positive or the anchor itself.",
    quotes=("karpathy_recipe_inspect_data",),
    purposes=("embedding", "classification"),
)
def positive_equals_negative(batch: Batch) -> Evidence | None:
    """A row's negative is its positive, or its anchor, token for token; or an item that was drawn against it is it.

    Not this when: anchor and positive are the same, as in SimCSE, where dropout tells them apart; the columns do not
    say which of them is the negative. Of one row in a hundred it is a remark: items are drawn by chance.
    """
    drawn = rows_of(problems_of(batch, "positive_equals_negative"))
    if len(drawn):
        grade: Severity = "info" if len(drawn) <= MAX_SHARE_FOR_REMARK * batch.rows else "warning"
        return in_rows(batch, drawn, "an item that is drawn as a negative is the positive in {rows}", severity=grade)
    rows, other = _rows_with_equal_sides(batch, _POSITIVE), "positive"
    if not len(rows):
        rows, other = _rows_with_equal_sides(batch, ("anchor", "query")), "anchor"
    severity: Severity | None = "warning" if len(rows) < 0.05 * batch.rows else None
    summary = f"the negative is the {other} in {{rows}}"
    return in_rows(batch, rows, summary, values={"rows": len(rows)}, severity=severity)


def _rows_with_equal_sides(batch: Batch, names: tuple[str, ...]) -> Ints:
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
    problems = problems_of(batch, "preference_swapped")
    if not problems:
        return None
    rows = rows_of(problems[:1])
    severity: Severity | None = "error" if len(rows) > MIN_SHARE_OF_PAIRS * batch.rows else None
    summary = f"{problems[0].summary}, the rejected completion has the higher one in {{rows}}"
    return in_rows(batch, rows, summary, values={"pairs": len(rows)}, severity=severity)


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
        what = "the prompt of {rows} is empty"
    elif chosen is not None and rejected is not None:
        rows = np.array(
            [pair.number for pair in pairs(chosen, rejected) if not pair.same and _begin_apart(batch, chosen, pair)],
            np.int64,
        )
        rows = np.union1d(rows, rows_of(problems_of(batch, "prompt_missing")))
        what = "chosen and rejected of {rows} do not begin with the same prompt"
    else:
        return None
    return in_rows(batch, rows, what)


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
    """The advantages of all rows are exactly zero, or the reward of all rows is the same and not above zero.

    Or the reward of all rows of a source is so, and that of others varies, which is a warning.

    Not this when: some group has others; the rows are fewer than four, or 32 of rewards; kept rows have one reward.
    """
    problems = problems_of(batch, "advantages_zero")
    if not problems:
        return None
    rows = rows_of(problems)
    summary = "; ".join(problem.summary for problem in problems[:4])
    return batch_evidence(summary, rows, severity="warning" if len(rows) else None)
