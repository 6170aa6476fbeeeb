"""What checks ask of rows.

How completions end, where documents meet, what pairs share, what the loss counts of each role.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from itertools import dropwhile, islice

import numpy as np
import numpy.typing as npt

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.roles import RowRoles
from mldebug_mcp.batch.sequences import Bools, Ints, Runs, Sequences, shift_of, shifted_rows
from mldebug_mcp.batch.templates import ASSISTANT, PROMPT_ROLES, Turn
from mldebug_mcp.batch.tokenizer import Tokenizer

# Where one document ends and the next begins inside a row.


NOWHERE: Ints = np.empty(0, np.int64)


def holds_documents(batch: Batch, side: Sequences) -> bool:
    """Whether rows hold several documents, kept apart or not: then a row may begin and end inside one."""
    return side.packed or bool(len(document_starts(batch, side)))


def document_starts(batch: Batch, side: Sequences) -> Ints:
    """Return the flat positions at which a further document begins inside a row.

    A first token inside a row begins one. Without such tokens an end token ends one, unless it ends the turns of a
    conversation. Then a second system turn begins one, or a single masked token after an end that opens no answer:
    joined rows mask their first token. So does what follows an end of text that the template never writes between
    turns. Text without a tokenizer is one document a row.
    """
    if batch.words is not None:
        return NOWHERE
    bos = batch.bos
    if bos is not None and bos not in batch.ends and not _begins_turns(batch):
        starts = np.flatnonzero(side.ids.flat == bos)
        if len(starts):
            return _inside(side, starts, bos)
    if _ends_are_turns(batch):
        separated = np.setdiff1d(_separated(batch, side), _headers(batch, side, ASSISTANT))
        found = np.union1d(_headers(batch, side, "system"), separated)
        return np.union1d(found, _after_end_of_text(batch, side))
    if not batch.ends:
        return NOWHERE
    is_end = np.isin(side.ids.flat, np.fromiter(batch.ends, np.int64))
    # An end token at the very beginning of a row begins it, and of those that follow each other the last one counts.
    is_end[side.bounds[0][side.ids.lengths > 0]] = False
    last = is_end & ~np.append(is_end[1:], False)
    return _inside(side, np.flatnonzero(last) + 1, None)


def _begins_turns(batch: Batch) -> bool:
    """Whether the chat template writes the first token before each exchange, as Llama 2's does."""
    tokenizer = batch.tokenizer
    return (
        tokenizer is not None
        and tokenizer.template is not None
        and tokenizer.template.example.count(str(tokenizer.hf.bos_token)) > 1
    )


def _inside(side: Sequences, starts: Ints, bos: int | None) -> Ints:
    start, stop = side.bounds
    starts = starts[starts < len(side.ids.flat)]
    row = side.ids.row_of(starts)
    inside: Ints = starts[(starts > start[row]) & (starts < stop[row])]
    if bos is None or not len(inside):
        return inside
    first: Ints = inside[side.ids.flat[inside - 1] != bos]
    return first


def _ends_are_turns(batch: Batch) -> bool:
    if batch.purpose == "pretraining" and not any(row.turns for row in batch.roles):
        return False
    return batch.tokenizer is None or batch.tokenizer.template is not None or any(row.turns for row in batch.roles)


def _separated(batch: Batch, side: Sequences) -> Ints:
    if side.trained is None or not batch.ends or len(side.trained) < 3:
        return NOWHERE
    trained = side.trained
    alone = np.flatnonzero(~trained[1:-1] & trained[:-2] & trained[2:]) + 1
    # What follows has to be content: behind the last token padding may be trained on by mistake.
    alone = alone[alone + 1 < side.bounds[1][side.ids.row_of(alone)]]
    return _inside(side, alone[np.isin(side.ids.flat[alone - 1], np.fromiter(batch.ends, np.int64))], None)


def _after_end_of_text(batch: Batch, side: Sequences) -> Ints:
    """Return what follows the end token where it ends no turn: Phi-3's template writes it after the last one alone."""
    tokenizer = batch.tokenizer
    if tokenizer is None or tokenizer.eos is None or tokenizer.template is None:
        return NOWHERE
    end, example = str(tokenizer.hf.eos_token), tokenizer.template.example.rstrip()
    if example.removesuffix(end).count(end):
        return NOWHERE
    return _inside(side, np.flatnonzero(side.ids.flat == tokenizer.eos) + 1, None)


def _headers(batch: Batch, side: Sequences, role: str) -> Ints:
    """Return where a role's turns begin behind the first turn of their row."""
    found = [
        int(side.ids.offsets[row.index]) + turn.header
        for row in batch.roles
        if row.side is side
        for number, turn in enumerate(row.turns)
        if turn.role == role and number
    ]
    return np.array(found, np.int64)


# Preference pairs: a chosen and a rejected row, and what they share.


Row = npt.NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class Pair:
    """A pair, by place in each side, with the padding left out.

    Args:
        number: The row's number in the file.
        chosen, rejected: Places of the two rows in their sides.
        chosen_start: The first content token of the chosen row, counted with its padding.
        shared: Tokens that both begin with.
        same: Whether both are the same, token for token.
    """

    number: int
    chosen: int
    rejected: int
    chosen_start: int
    shared: int
    same: bool


def content(side: Sequences, index: int) -> Row:
    """Return a row without its padding."""
    start, stop = side.bounds
    return side.ids.flat[start[index] : stop[index]]


def pairs(chosen: Sequences, rejected: Sequences) -> Iterator[Pair]:
    """Yield the pairs whose rows were both read."""
    places = {int(number): place for place, number in enumerate(rejected.numbers)}
    for place, number in enumerate(chosen.numbers.tolist()):
        if number not in places:
            continue
        array, two = content(chosen, place), content(rejected, places[number])
        least = min(len(array), len(two))
        apart = np.flatnonzero(array[:least] != two[:least])
        shared = int(apart[0]) if len(apart) else least
        start = int(chosen.bounds[0][place] - chosen.ids.offsets[place])
        yield Pair(number, place, places[number], start, shared, shared == len(array) == len(two))


# How much of each role's words the loss is computed on, row by row.


MIN_SHARE_OF_TRAINED_WORDS = 0.5
"""Share of a turn's words that have to be trained on for the turn to count as trained. Chosen by hand: a mask may be
off by a token or two, and nobody trains on half a turn on purpose."""


@dataclass(frozen=True, slots=True)
class RoleLoss:
    """A row whose turns and trained tokens are known: trained turns of the prompt's roles, and their tokens.

    `only_prompts` says whether no turn of the assistant is trained on, though there is one.
    """

    roles: RowRoles
    prompts_trained: tuple[Turn, ...]
    only_prompts: bool
    prompt_tokens: int


def role_losses(batch: Batch) -> Iterator[RoleLoss]:
    """Yield the decoded rows in which both turns and the loss are known."""
    for row in batch.roles:
        if row.side.trained is None or not row.turns or row.side.name == "prompt":
            continue
        offset = int(row.side.ids.offsets[row.index])
        trained = row.side.trained[offset : int(row.side.ids.offsets[row.index + 1])]
        prompts = tuple(
            turn
            for turn in row.turns
            if turn.role in PROMPT_ROLES and _share(trained, turn) > MIN_SHARE_OF_TRAINED_WORDS
        )
        answers = [_share(trained, turn) for turn in row.turns if turn.role == ASSISTANT and turn.stop > turn.start]
        tokens = sum(int(trained[turn.start : turn.stop].sum()) for turn in prompts)
        yield RoleLoss(row, prompts, bool(answers) and max(answers) <= MIN_SHARE_OF_TRAINED_WORDS, tokens)


def _share(trained: Bools, turn: Turn) -> float:
    words = trained[turn.start : turn.stop]
    return float(words.mean()) if len(words) else 0.0


# Rows whose role markers are those of another template than the tokenizer's.


PLAIN_WITHOUT_TEMPLATE = frozenset({"Mistral", "Zephyr"})
"""Families whose first models spelt their markers in ordinary tokens."""


def rows_of_another_template(batch: Batch) -> list[RowRoles]:
    """Return the rows that hold role markers of another template than the tokenizer's, as plain text."""
    tokenizer = batch.tokenizer
    if tokenizer is None:
        return []
    own = tokenizer.template.family if tokenizer.template is not None else None
    return [
        row
        for row in batch.roles
        if row.turns
        and row.family is not None
        and row.family is not own
        and not row.family.plain
        and (own is not None or row.family.name not in PLAIN_WITHOUT_TEMPLATE)
        and not _is_token(tokenizer, row)
    ]


def _is_token(tokenizer: Tokenizer, row: RowRoles) -> bool:
    """Whether the first role marker of a row begins with a token that is special or was added."""
    place = int(row.side.ids.offsets[row.index]) + row.turns[0].header
    number = int(row.side.ids.flat[place])
    return number in tokenizer.special_ids or number in tokenizer.hf.added_tokens_decoder


# How completions end: with an end token that is trained on, with one that is masked, cut off, or with none.


LOOK_BACK = 3
"""Trained tokens at the end of a turn among which the end token is looked for: some templates end in a line break."""
ROUND_LENGTH_MULTIPLE = 128
"""Rows whose length is a multiple of this look cut at a chosen maximum: `max_length` is nearly always such a number."""


@dataclass(frozen=True, slots=True)
class Endings:
    """For each row of a side, how its completion ends. A row without one is in none of these.

    Args:
        masked: An end token follows, but no end token of the row is trained on.
        cut: No end token, and the row is as long as rows can be.
        open: No end token, and there would have been room for one.
        last: The flat position of the completion's last token.
    """

    masked: Bools
    cut: Bools
    open: Bools
    last: Ints


def endings(batch: Batch, side: Sequences) -> Endings | None:
    """Return how the completions of a side end, or None if that is unknown.

    Rows are skipped that train only on the user's turns, or whose markers are another template's.
    """
    if not batch.ends:
        return None
    turns = side.trained_runs
    if turns is None:
        if batch.rows_are_for not in ("dpo", "sft") or batch.targets is not None:
            return None
        start, stop = side.bounds
        turns = Runs(start, stop, np.arange(side.rows)).kept(stop > start)
    # Labels that are the next tokens train on the tokens behind them.
    shift = shift_of(side, of_some=True) * shifted_rows(side)[turns.row]
    turns = _without_padding(side, Runs(turns.start + shift, turns.stop + shift, turns.row))
    rows = side.rows
    turns = turns.kept(~_without_answers(batch, side)[turns.row])
    has = np.zeros(rows, np.bool_)
    has[turns.row] = True
    ends = np.fromiter(batch.ends, np.int64)
    closed = _closed(side, turns, ends)
    masked_after = ~closed & _end_follows(side, turns, ends)
    last_run = np.full(rows, -1, np.int64)
    last_run[turns.row] = np.arange(len(turns))
    ended = np.zeros(rows, np.bool_)
    ended[has] = closed[last_run[has]]
    any_closed = np.bincount(turns.row, weights=closed, minlength=rows) > 0
    joined = holds_documents(batch, side)
    if joined:
        ended = ended | any_closed
    masked = (np.bincount(turns.row, weights=masked_after, minlength=rows) > 0) & ~any_closed & has
    last = np.full(rows, -1, np.int64)
    last[has] = turns.stop[last_run[has]] - 1
    masked_last = np.zeros(rows, np.bool_)
    masked_last[has] = masked_after[last_run[has]]
    loose = has & ~ended & ~masked & ~masked_last
    cut = loose & _at_limit(batch, side, last, loose, ended) & (not joined)
    return Endings(masked, cut, loose & ~cut, last)


def _without_padding(side: Sequences, turns: Runs) -> Runs:
    """Return the turns as far as they are content: padding that carries labels does not belong to a completion."""
    first, last = side.bounds
    start, stop = np.maximum(turns.start, first[turns.row]), np.minimum(turns.stop, last[turns.row])
    return Runs(start, stop, turns.row).kept(stop > start)


def _without_answers(batch: Batch, side: Sequences) -> Bools:
    """Return the rows whose turns are no answers of this model: the user's alone, or in another template's markers."""
    silent = np.zeros(side.rows, np.bool_)
    prompts = (row.roles for row in role_losses(batch) if row.prompts_trained and row.only_prompts)
    for row in (*prompts, *rows_of_another_template(batch)):
        if row.side is side:
            silent[row.index] = True
    return silent


def _closed(side: Sequences, turns: Runs, ends: Ints) -> Bools:
    found = np.zeros(len(turns), np.bool_)
    for back in range(1, LOOK_BACK + 1):
        place = turns.stop - back
        found |= (place >= turns.start) & np.isin(side.ids.flat[np.maximum(place, 0)], ends)
    return found


def _end_follows(side: Sequences, turns: Runs, ends: Ints) -> Bools:
    """Whether an end token stands right after a turn, inside the row's content."""
    _, stop = side.bounds
    inside = turns.stop < stop[turns.row]
    place = np.minimum(turns.stop, len(side.ids.flat) - 1)
    return inside & np.isin(side.ids.flat[place], ends)


def _at_limit(batch: Batch, side: Sequences, last: Ints, loose: Bools, ended: Bools) -> Bools:
    """Whether a row's completion runs up to the greatest length of the batch, and that looks like a limit."""
    if not side.rows:
        return np.zeros(0, np.bool_)
    longest = int(side.lengths.max())
    _, stop = side.bounds
    full = (side.lengths == longest) & ((last == stop - 1) | (last < 0)) & (stop == side.ids.offsets[1:])
    limits = (batch.model.max_positions, batch.tokenizer.hf.model_max_length if batch.tokenizer is not None else None)
    known = (longest % ROUND_LENGTH_MULTIPLE == 0 and longest > 0) or longest in limits
    # Where shorter rows lack their ends too, the ends are missing, not cut off.
    several = int((full & ~ended).sum()) >= 2 and not bool((loose & ~full).any())
    return full if known or several or bool(ended.any()) else np.zeros(side.rows, np.bool_)


def all_endings(batch: Batch) -> Iterable[tuple[Sequences, Endings]]:
    """Yield the sides whose completions' ends can be determined."""
    # Transcripts for CTC have no end token: targets are judged where a decoder writes them.
    decoded = batch.targets if batch.sides or batch.model.encoder_decoder else None
    for side in (*batch.sides, decoded):
        if side is None or side.name == "prompt":
            continue
        found = endings(batch, side)
        if found is not None:
            yield side, found


# Prompts that stand twice: once as the prompt, and again where the completion begins.


MIN_TOKENS_REPEATED = 4
"""Tokens of a prompt that have to stand again, special ones in front left out. Chosen: fewer begin many answers."""
MIN_SHARE_REPEATED_PROMPTS = 0.5
"""Share of the rows in which they have to. Chosen: some answers begin with the words of the question."""
MAX_ROWS_TRIED = 200
"""Rows of a side after which the others are looked at only if these repeat their prompts: most data do not."""


def repeated_prompts(batch: Batch) -> Ints:
    """Return the numbers of the rows whose completion begins with their whole prompt; none where it is not the rule."""
    special = frozenset() if batch.tokenizer is None else batch.tokenizer.special_ids
    prompt = batch.side("prompt")
    found, judged = [NOWHERE], 0
    for side in batch.sides:
        if side is prompt or side.trained_runs is None or (prompt is not None and prompt.rows != side.rows):
            continue
        judged += side.rows
        found.append(side.numbers[_repeating(side, prompt, special | {batch.bos})])
    rows = np.concatenate(found)
    return np.unique(rows) if len(rows) >= max(2, MIN_SHARE_REPEATED_PROMPTS * judged) else NOWHERE


def _repeating(side: Sequences, prompt: Sequences | None, skipped: Set[int | None]) -> list[int]:
    """Return the rows whose first trained stretch begins with their prompt."""
    runs = side.trained_runs
    assert runs is not None  # noqa: S101 - the caller saw them
    found: list[int] = []
    rows, first = np.unique(runs.row, return_index=True)
    for tried, (row, start) in enumerate(zip(rows.tolist(), runs.start[first].tolist(), strict=True)):
        if tried == MAX_ROWS_TRIED and len(found) < MIN_SHARE_REPEATED_PROMPTS * tried:
            return []
        begin, end = (int(bound[row]) for bound in side.bounds)
        asked = side.ids.flat[begin:start] if prompt is None else content(prompt, row)
        if _stands_again(asked.tolist(), side.ids.flat[start:end], skipped):
            found.append(row)
    return found


def _stands_again(prompt: list[int], answer: npt.NDArray[np.integer], skipped: Set[int | None]) -> bool:
    """Whether an answer begins with a prompt, but for its last token, which may join with what follows."""
    asked = list(dropwhile(skipped.__contains__, prompt))[:-1]
    if len(asked) < MIN_TOKENS_REPEATED:
        return False
    reply = dropwhile(skipped.__contains__, answer[: len(prompt) + len(asked)].tolist())
    return list(islice(reply, len(asked))) == asked
