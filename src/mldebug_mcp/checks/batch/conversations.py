"""Are conversations rendered with the right template, and is the loss computed on the right turns?"""

from __future__ import annotations

import re

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.endings import pairs, repeated_prompts, role_losses, rows_of_another_template
from mldebug_mcp.batch.roles import RowRoles
from mldebug_mcp.batch.sequences import IGNORE, Bools, Ints, Sequences, count_rows
from mldebug_mcp.batch.templates import marker_before
from mldebug_mcp.batch.text_problems import MIN_REPEATED_CHATS, MIN_SHARE_OF_CONVERSATIONS
from mldebug_mcp.batch.tokenizer import Tokenizer
from mldebug_mcp.checks.batch.affected_rows import batch_evidence, of_rows, prompt_spot, rows_that, rows_where
from mldebug_mcp.checks.check import Evidence, Spot, batch_check
from mldebug_mcp.core.errors import is_failure

# Role markers of another template, as plain text.


@batch_check(
    severity="error",
    why=(
        "The model reads another model's markers as ordinary words: it neither knows whose turn it is nor learns "
        "its own markers."
    ),
    fix="Render conversations with this tokenizer's own apply_chat_template.",
    fixes={
        "Unsloth": "get_chat_template(tokenizer, chat_template=...) with the model's own name.",
        "Axolotl": "chat_template: tokenizer_default.",
        "LLaMA-Factory": "template: the name that belongs to the model.",
    },
    quotes=("unsloth_chat_template", "transformers_template_special_tokens"),
)
def chat_template_mismatch(batch: Batch) -> Evidence | None:
    """Rows show user and assistant markers of another template, which are not tokens of this tokenizer.

    Or the words of the turns themselves begin with role markers in most rows: a template was applied before.

    Not this when: the tokenizer's own markers frame the row and another's are only mentioned; the markers are plain
    words by design, as Alpaca's and Vicuna's are; the tokenizer has them as tokens.
    """
    if (twice := _inside_turns(batch)) is not None:
        return twice
    tokenizer = batch.tokenizer
    if tokenizer is None:
        return None
    own = tokenizer.template.family if tokenizer.template is not None else None
    found = rows_of_another_template(batch)
    if not found:
        return None
    rows = np.unique([row.number for row in found])
    name = found[0].family.name if found[0].family is not None else ""
    whose = (
        f"the tokenizer's template is {own.name}"
        if own is not None
        else "the tokenizer has no such tokens and no template"
    )
    return batch_evidence(
        f"{rows_that(rows, batch.rows, 'holds', 'hold')} {name} role markers as plain text; {whose}",
        rows,
        tuple(Spot(row.side, row.index, row.turns[0].header, row.turns[0].start) for row in found[:3]),
        severity=None if own is not None else "warning",
    )


def _inside_turns(batch: Batch) -> Evidence | None:
    """Return the rows whose turns have markers of their own and begin with others, if most rows do."""
    at_rows = [row for problem in batch.problems if problem.check == "chat_template_mismatch" for row in problem.rows]
    rows = np.unique(at_rows).astype(np.int64)
    if not len(rows):
        with_turns = [row for row in batch.roles if row.turns]
        marked = np.unique(
            [row.number for row in with_turns if any(marker_before(row.words(turn)) for turn in row.turns)]
        )
        rows = (
            marked.astype(np.int64)
            if len(marked) >= max(MIN_REPEATED_CHATS, MIN_SHARE_OF_CONVERSATIONS * len(with_turns))
            else rows
        )
    if not len(rows):
        return None
    return batch_evidence(f"the turns of {of_rows(rows, batch.rows)} have role markers inside their words", rows)


# Prompts for generation stop before the assistant's turn is opened.


_QUESTION = "Where is the river?"


@batch_check(
    severity="error",
    why="The model must write the marker of its own turn first: it goes on with the user's words, or stops.",
    fix="tokenizer.apply_chat_template(messages, add_generation_prompt=True) for every prompt that is generated from.",
    fixes={"vLLM": "llm.chat adds it; with llm.generate render the prompt yourself."},
    quotes=("unsloth_chat_template", "transformers_template_special_tokens"),
    purposes=("generation",),
)
def generation_prompt_missing(batch: Batch) -> Evidence | None:
    """A prompt ends with a turn of the user or of a tool, and the template would open the assistant's after it.

    Not this when: the template opens no turn, or closes none of the user's (Mistral's); the prompt ends within an
    assistant's turn, to be continued; rows without labels may be something else than prompts, as long as nobody says
    what they are for.
    """
    closing, opening = ("", "") if batch.tokenizer is None else _markers(batch.tokenizer)
    if not closing or not opening:
        return None
    named = {side.name for side in batch.sides if side.name == "prompt" or batch.purpose_given}
    found = [row for row in batch.roles if row.side.name in named and _stops_short(row.text, closing, opening)]
    if not found:
        return None
    rows = np.unique([row.number for row in found])
    which = of_rows(rows, batch.rows)
    return batch_evidence(
        f"the prompts of {which} end with a closed turn and do not open the assistant's, {opening}", rows
    )


def _markers(tokenizer: Tokenizer) -> tuple[str, str]:
    """Return what the chat template writes after a question, and what it adds to open the answer; "" for nothing."""
    if tokenizer.template is None:
        return "", ""
    try:
        closed, opened = (
            tokenizer.render([{"role": "user", "content": _QUESTION}], add_generation_prompt=add)
            for add in (False, True)
        )
    except BaseException as error:
        if not is_failure(error):
            raise
        return "", ""
    return closed.rpartition(_QUESTION)[2].strip(), opened.removeprefix(closed).strip()


def _stops_short(text: str, closing: str, opening: str) -> bool:
    """Whether a text ends with a closed turn that is not the assistant's."""
    before, found, after = text.rstrip().rpartition(closing)
    return bool(found) and not after and opening not in before.rpartition(closing)[2]


@batch_check(
    severity="error",
    why="The model gets a few ordinary tokens where a special one is due: no first token, no end, no turns.",
    fix=(
        "Tokenize with the fast tokenizer of the model and split_special_tokens=False; append "
        "tokenizer.eos_token_id as an id, not as text."
    ),
    fixes={
        "Axolotl": "list added markers under special_tokens: or tokens:.",
        "Unsloth": "append tokenizer.eos_token, not a literal of another model.",
        "LLaMA-Factory": "split_special_tokens: false; add_special_tokens for your own.",
    },
    quotes=("sanh_tokenizer_outputs", "transformers_template_special_tokens"),
)
def special_token_split(batch: Batch) -> Evidence | None:
    """The text of a special token is spelt by ordinary tokens, at a place where it matters.

    Not this when: a text mentions such a token in passing, and the row's real ones are whole. What counts: the end
    token at the end of a row, the first token at its beginning, or two different special tokens. But for the end, the
    token is whole nowhere in the row.
    """
    tokenizer = batch.tokenizer
    if tokenizer is None:
        return None
    found = [(row, split) for row in batch.roles if (split := _split(tokenizer, row))]
    if not found:
        return None
    rows = np.unique([row.number for row, _ in found])
    texts = sorted({text for _, split in found for text in split})
    summary = f"in {of_rows(rows, batch.rows)} special tokens are spelt by ordinary ones: {', '.join(texts[:4])}"
    return batch_evidence(summary, rows, tuple(_spot(row, split) for row, split in found[:3]))


def _split(tokenizer: Tokenizer, row: RowRoles) -> dict[str, int]:
    """Return the special tokens that a row spells where they matter, with the character where each begins."""
    offset = int(row.side.ids.offsets[row.index])
    spelt: dict[str, int] = {}
    stripped = row.text.rstrip()
    for text, number in tokenizer.special.items():
        if len(text) < 3 or text not in row.text:
            continue
        places = [found.start() for found in re.finditer(re.escape(text), row.text)]
        if number in tokenizer.ends and stripped.endswith(text):
            places = places[-1:]  # an end that stands whole after another turn does not make this one whole
        if not any(int(row.side.ids.flat[offset + row.token_at(place)]) == number for place in places):
            spelt[text] = places[-1]
    if len(spelt) >= 2:
        return spelt
    hf = tokenizer.hf
    return {
        text: place
        for text, place in spelt.items()
        if (tokenizer.special[text] in tokenizer.ends and stripped.endswith(text))
        or (text == hf.bos_token and row.text.lstrip().startswith(text))
    }


def _spot(row: RowRoles, split: dict[str, int]) -> Spot:
    text, place = next(iter(split.items()))
    return Spot(row.side, row.index, row.token_at(place), row.token_at(place + len(text) - 1) + 1)


@batch_check(
    severity="warning",
    why="The model learns to write calls that fail, or that a result comes without a call.",
    fix="Write arguments with json.dumps, and give each result the tool_call_id of its call; leave out broken rows.",
    quotes=("karpathy_recipe_inspect_data",),
)
def tool_call_invalid(batch: Batch) -> Evidence | None:
    """The arguments of a tool call are no JSON, or a result names a call that no message made.

    Not this when: calls have no ids; arguments are given as an object.
    """
    at_rows = [row for problem in batch.problems if problem.check == "tool_call_invalid" for row in problem.rows]
    if not at_rows:
        return None
    rows = np.unique(at_rows).astype(np.int64)
    return batch_evidence(
        f"{rows_that(rows, batch.rows, 'holds', 'hold')} tool calls whose arguments are no JSON, or results without "
        "their call",
        rows,
    )


@batch_check(
    severity="error",
    why="The model learns to write the user's side of the conversation and is never taught to answer.",
    fix=(
        "Invert the mask: labels are -100 on everything but the assistant's turns. In TRL, see that the "
        "{% generation %} marks of the chat template surround the assistant's content."
    ),
    fixes={
        "Unsloth": "train_on_responses_only: instruction_part and response_part are exchanged.",
        "Axolotl": "roles_to_train: [assistant]; check the role mapping (message_property_mappings, roles).",
        "LLaMA-Factory": "check the tags: user_tag and assistant_tag are exchanged.",
    },
    quotes=("axolotl_plateau_mask", "hfcourse_decode_inputs"),
    purposes=("sft", "dpo", "vlm"),
)
def wrong_role_in_loss(batch: Batch) -> Evidence | None:
    """The user's turns are trained on and the assistant's are not; or most conversations have the two exchanged.

    They do where the assistant speaks first and the user has the last word.

    Not this when: both are trained on (`prompt_not_masked`), or neither (`row_labels_masked`).
    """
    found = [row for row in role_losses(batch) if row.prompts_trained and row.only_prompts]
    if not found:
        return _exchanged(batch)
    rows = np.unique([row.roles.number for row in found])
    tokens = sum(row.prompt_tokens for row in found)
    return batch_evidence(
        f"in {of_rows(rows, batch.rows)} the loss is on {tokens} tokens of the prompt's roles and on hardly any of "
        f"the assistant's",
        rows,
        tuple(prompt_spot(row) for row in found[:3]),
        {"prompt_tokens_trained": tokens},
    )


def _exchanged(batch: Batch) -> Evidence | None:
    problem = next((problem for problem in batch.problems if problem.check == "wrong_role_in_loss"), None)
    if problem is None:
        return None
    rows = np.array(problem.rows, np.int64)
    # Prompts for reinforcement learning end with the user too, and some begin with a greeting.
    return batch_evidence(
        f"the conversations of {of_rows(rows, batch.rows)} {problem.summary}", rows, severity="warning"
    )


@batch_check(
    severity="warning",
    why=(
        "The model spends its capacity on writing the user's words; on short answers the loss is mostly the prompt's, "
        "so it looks better or worse than the answers are."
    ),
    fix=(
        "TRL: give prompt and completion columns (completion_only_loss is then the default), or "
        "assistant_only_loss=True for conversations with a template that has {% generation %} marks."
    ),
    fixes={
        "Transformers": "set the labels of prompt tokens to -100.",
        "Unsloth": "wrap the trainer in train_on_responses_only(...).",
        "Axolotl": "train_on_inputs: false, and roles_to_train: [assistant].",
        "LLaMA-Factory": "train_on_prompt: false.",
    },
    quotes=("axolotl_plateau_mask", "hfcourse_decode_inputs"),
    purposes=("sft", "dpo", "vlm"),
)
def prompt_not_masked(batch: Batch) -> Evidence | None:
    """The loss is computed on the system's, user's or tool's turns besides the assistant's.

    Not this when: only the markers before an answer are trained on; the assistant's turns are the masked ones
    (`wrong_role_in_loss`); the purpose is pretraining, where every token is trained on. A turn counts if more than
    half of its words are trained on: a mask that is off by a token or two does not count.
    """
    found = [row for row in role_losses(batch) if row.prompts_trained and not row.only_prompts]
    if found:
        rows = np.unique([row.roles.number for row in found])
        tokens = sum(row.prompt_tokens for row in found)
        return batch_evidence(
            f"{tokens} prompt tokens in {of_rows(rows, batch.rows)} carry labels",
            rows,
            tuple(prompt_spot(row) for row in found[:3]),
            {"prompt_tokens_trained": tokens},
        )
    return _against_columns(batch)


def _against_columns(batch: Batch) -> Evidence | None:
    """Look for labels where the completion mask says prompt, and on what both sides of a pair share."""
    rows = rows_where(batch.sides, _labelled_outside_completion)
    chosen, rejected = batch.side("chosen"), batch.side("rejected")
    if not len(rows) and chosen is not None and rejected is not None:
        rows = _shared_and_trained(chosen, rejected)
    if len(rows):
        return batch_evidence(f"prompt tokens in {of_rows(rows, batch.rows)} carry labels", rows)
    plain = batch.purpose == "sft" and batch.purpose_given and not any(row.turns for row in batch.roles)
    if plain and batch.trained_sides and all(map(_all_trained, batch.trained_sides)):
        return batch_evidence(
            "no token of any row is masked: if the rows begin with prompts, the prompts are trained on too",
            severity="info",
        )
    return None


def _all_trained(side: Sequences) -> bool:
    return side.trained is not None and not side.packed and bool(np.all(side.trained[side.content]))


def _labelled_outside_completion(side: Sequences) -> Bools:
    if side.labels is None or side.loss_mask is None or not side.loss_mask.flat.any():
        return np.zeros(side.rows, np.bool_)
    outside = np.flatnonzero((side.labels.flat != IGNORE) & (side.loss_mask.flat == 0) & side.content)
    return count_rows(outside, side.ids) > 1


def _shared_and_trained(chosen: Sequences, rejected: Sequences) -> Ints:
    """Return the pairs in which most of what both sides begin with is trained on, from its first or second token.

    What is masked first and then trained on is a prompt, and completions that begin alike.
    """
    rows = []
    for pair in pairs(chosen, rejected):
        if chosen.labels is None or pair.shared < 2 or pair.same:
            continue
        labels = chosen.labels.row(pair.chosen)[pair.chosen_start : pair.chosen_start + pair.shared]
        if bool(np.any(labels[:2] != IGNORE)) and float(np.mean(labels != IGNORE)) > 0.5:
            rows.append(pair.number)
    return np.array(rows, np.int64)


@batch_check(
    severity="error",
    why="The model is trained to write the question before it answers, and its context is spent twice.",
    fix=(
        "Let the completion column hold the answer alone; in preference data without a prompt column leave the prompt "
        "in both sides, with one leave it out of both."
    ),
    fixes={"TRL": "prompt and completion columns (SFT, KTO), or prompt, chosen and rejected without the prompt (DPO)."},
    quotes=("hfcourse_decode_inputs",),
    purposes=("sft", "dpo", "vlm"),
)
def prompt_repeated(batch: Batch) -> Evidence | None:
    """The completions of at least half of the rows begin with their whole prompt.

    Not this when: prompts are of three tokens or fewer; only some answers begin with the words of the question.
    """
    rows = repeated_prompts(batch)
    if not len(rows):
        return None
    return batch_evidence(f"the completions of {of_rows(rows, batch.rows)} begin with the prompt once more", rows)


@batch_check(
    severity="error",
    why="Such rows train on nothing; the longest prompts, often the hardest tasks, are lost silently.",
    fix="Raise max_length, truncate the prompt from its left, or drop rows whose prompt alone reaches the limit.",
    fixes={
        "Axolotl": "raise sequence_len, or excess_length_strategy: drop.",
        "Unsloth": "raise max_seq_length.",
        "LLaMA-Factory": "raise cutoff_len.",
    },
    quotes=("trl_maxlen_discard",),
    purposes=("sft", "dpo", "vlm"),
)
def no_completion_left(batch: Batch) -> Evidence | None:
    """Rows that fill the greatest length of the batch have no trained token.

    Not this when: a shorter row has no trained token (`row_labels_masked`), as nothing was cut there.
    """
    sides = [side for side in batch.trained_sides if side.name != "prompt"]
    if not any(int(side.trained_per_row.sum()) for side in sides):
        return None
    rows = rows_where(sides, lambda side: _only_prompt(batch, side))
    if not len(rows):
        return None
    reaches = rows_that(rows, batch.rows, "reaches", "reach")
    return batch_evidence(f"{reaches} the greatest length of the batch, without a completion", rows)


def _only_prompt(batch: Batch, side: Sequences) -> Bools:
    longest = int(side.lengths.max(initial=0))
    _, stop = side.bounds
    last = side.ids.flat[np.maximum(stop - 1, 0)] if len(side.ids.flat) else side.ids.flat
    ended = (
        np.isin(last, np.fromiter(batch.ends, np.int64)) if len(last) == side.rows else np.zeros(side.rows, np.bool_)
    )
    found: Bools = (side.trained_per_row == 0) & (side.lengths == longest) & (longest > 1) & ~ended
    return found
