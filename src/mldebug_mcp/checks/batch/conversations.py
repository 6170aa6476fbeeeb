"""Are conversations rendered with the right template, and do template and pairs keep what was written?"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.columns import CONTRASTED
from mldebug_mcp.batch.endings import RoleLoss, content, pairs, repeated_prompts, role_losses, rows_of_another_template
from mldebug_mcp.batch.roles import RowRoles
from mldebug_mcp.batch.sequences import Bools, Ints, Sequences, count_rows
from mldebug_mcp.batch.templates import marker_before
from mldebug_mcp.batch.text_problems import (
    ASKED,
    EMPTY_THINKING,
    MIN_REPEATED_CHATS,
    MIN_SHARE_EMPTY,
    MIN_SHARE_OF_CONVERSATIONS,
    OF_SOME,
    THINKING,
)
from mldebug_mcp.batch.tokenizer import Tokenizer
from mldebug_mcp.checks.batch import (
    NO_ROWS,
    batch_evidence,
    in_rows,
    problem_evidence,
    problems_of,
    prompt_spot,
    rows_of,
    rows_where,
)
from mldebug_mcp.checks.check import Evidence, Spot, batch_check
from mldebug_mcp.core.conventions import IGNORED_LABEL
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
    name = found[0].family.name if found[0].family is not None else ""
    whose = (
        f"the tokenizer's template is {own.name}"
        if own is not None
        else "the tokenizer has no such tokens and no template"
    )
    return in_rows(
        batch,
        np.unique([row.number for row in found]),
        f"{{rows holds|hold}} {name} role markers as plain text; {whose}",
        tuple(Spot(row.side, row.index, row.turns[0].header, row.turns[0].start) for row in found[:3]),
        severity=None if own is not None else "warning",
    )


def _inside_turns(batch: Batch) -> Evidence | None:
    """Return the rows whose turns have markers of their own and begin with others, if most rows do."""
    rows = rows_of(problems_of(batch, "chat_template_mismatch"))
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
    return in_rows(batch, rows, "the turns of {rows} have role markers inside their words")


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
    return in_rows(
        batch,
        np.unique([row.number for row in found]),
        f"the prompts of {{rows}} end with a closed turn and do not open the assistant's, {opening}",
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
    texts = sorted({text for _, split in found for text in split})
    return in_rows(
        batch,
        np.unique([row.number for row, _ in found]),
        f"in {{rows}} special tokens are spelt by ordinary ones: {', '.join(texts[:4])}",
        tuple(_spot(row, split) for row, split in found[:3]),
    )


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
    rows = rows_of(problems_of(batch, "tool_call_invalid"))
    return in_rows(
        batch, rows, "{rows holds|hold} tool calls whose arguments are no JSON, or results without their call"
    )


@batch_check(
    severity="error",
    why="The model learns to write the user's side of the conversation and is never taught to answer.",
    fix=(
        "Invert the mask: labels are -100 on everything but the assistant's turns. In TRL, see that the "
        "{% generation %} marks of the chat template surround the assistant's content. Conversations that end with the "
        "user's turn: exchange their roles, or drop them."
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
    """The user's turns are trained on and the assistant's are not; or conversations have the two exchanged.

    They do where the assistant speaks first and the user has the last word. Where only some do, it is a remark.

    Not this when: both are trained on (`prompt_not_masked`), or neither (`row_labels_masked`).
    """
    found = [row for row in role_losses(batch) if row.prompts_trained and row.only_prompts]
    summary = "in {rows} the loss is on {tokens} tokens of the prompt's roles and on hardly any of the assistant's"
    return _on_prompts(batch, found, summary) or _exchanged(batch)


def _on_prompts(batch: Batch, found: list[RoleLoss], summary: str) -> Evidence | None:
    rows, tokens = np.unique([row.roles.number for row in found]), sum(row.prompt_tokens for row in found)
    spots = tuple(prompt_spot(row) for row in found[:3])
    return in_rows(batch, rows, summary.replace("{tokens}", str(tokens)), spots, {"prompt_tokens_trained": tokens})


def _exchanged(batch: Batch) -> Evidence | None:
    of_most, of_some = "wrong_role_in_loss", "wrong_role_in_loss" + OF_SOME
    problem = next((problem for problem in batch.problems if problem.check in (of_most, of_some)), None)
    if problem is None:
        return None
    # Prompts for reinforcement learning end with the user too, and some begin with a greeting.
    return in_rows(
        batch,
        rows_of([problem]),
        f"the conversations of {{rows}} {problem.summary}",
        severity="warning" if problem.check == of_most else "info",
    )


@batch_check(
    severity="warning",
    why=(
        "The model spends its capacity on writing a user's words or a tool's output; on short answers the loss is "
        "mostly the prompt's, so it looks better or worse than the answers are."
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
    roles = {turn.role for row in found for turn in row.prompts_trained}
    where = f", all of them in turns of the {roles.pop()}" if len(roles) == 1 else ""
    summary = f"{{tokens}} prompt tokens in {{rows}} carry labels{where}"
    return _on_prompts(batch, found, summary) or _against_columns(batch)


def _against_columns(batch: Batch) -> Evidence | None:
    """Look for labels where the completion mask says prompt, and on what both sides of a pair share."""
    rows = rows_where(batch.sides, _labelled_outside_completion)
    chosen, rejected = batch.side("chosen"), batch.side("rejected")
    if not len(rows) and chosen is not None and rejected is not None:
        rows = _shared_and_trained(chosen, rejected)
    if len(rows):
        return in_rows(batch, rows, "prompt tokens in {rows} carry labels")
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
    outside = np.flatnonzero((side.labels.flat != IGNORED_LABEL) & (side.loss_mask.flat == 0) & side.content)
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
        if bool(np.any(labels[:2] != IGNORED_LABEL)) and float(np.mean(labels != IGNORED_LABEL)) > 0.5:
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
    return in_rows(batch, repeated_prompts(batch), "the completions of {rows} begin with the prompt once more")


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
    return in_rows(batch, rows, "{rows reaches|reach} the greatest length of the batch, without a completion")


def _only_prompt(batch: Batch, side: Sequences) -> Bools:
    longest = int(side.lengths.max(initial=0))
    _, stop = side.bounds
    last = side.ids.flat[np.maximum(stop - 1, 0)] if len(side.ids.flat) else side.ids.flat
    ended = (
        np.isin(last, np.fromiter(batch.ends, np.int64)) if len(last) == side.rows else np.zeros(side.rows, np.bool_)
    )
    found: Bools = (side.trained_per_row == 0) & (side.lengths == longest) & (longest > 1) & ~ended
    return found


# Do the chat template and the pairs keep what the data set holds: tool calls, reasoning, text, distinct positives?


@batch_check(
    severity="error",
    why="The turns that call a tool are rendered empty: the model learns to answer nothing, and never to call.",
    fix="Use a chat template that renders tool_calls and tools, such as the one of the model's instruct version.",
    fixes={"TRL": "pass tools as a column of the data set; set chat_template_path to a template with tools."},
    quotes=("karpathy_recipe_inspect_data",),
    purposes=("sft", "dpo", "vlm", "pretraining", "generation"),
)
def tool_calls_dropped(batch: Batch) -> Evidence | None:
    """The name of a function that a message calls does not appear in the rendered conversation.

    Not this when: no tokenizer with a chat template is given; the rows are tokenized already.
    """
    return problem_evidence(batch, "tool_calls_dropped")


@batch_check(
    severity="error",
    why="The model never sees its instructions: it learns answers that they do not explain, and ignores them in use.",
    fix="Use a chat template that renders system messages, or put their words before the first question.",
    quotes=("karpathy_recipe_inspect_data",),
    purposes=("sft", "dpo", "vlm", "pretraining", "generation"),
)
def system_prompt_dropped(batch: Batch) -> Evidence | None:
    """The words of a system message do not appear in the rendered conversation.

    Not this when: no tokenizer with a chat template is given; the rows are tokenized already.
    """
    return problem_evidence(batch, "system_prompt_dropped")


def _lost_text_evidence(batch: Batch, check: str) -> Evidence | None:
    """Return what is lost of what the model is to write; where it is lost of what it reads alone, a fact."""
    found = problem_evidence(batch, check)
    asked = None if found is not None else problem_evidence(batch, check + ASKED)
    return found if asked is None else replace(asked, severity="info")


@batch_check(
    severity="warning",
    why="The model learns an answer that is empty, or one that is the list of parts with its braces.",
    fix="Give each message its text as one string, or take a template that reads parts, as those of processors do.",
    quotes=("karpathy_recipe_inspect_data",),
    purposes=("sft", "dpo", "vlm", "pretraining", "generation"),
)
def message_parts_lost(batch: Batch) -> Evidence | None:
    """The text of messages that is given in parts is not rendered, or the list of parts is, braces and all.

    A fact where it is so of the messages alone that the model does not write.

    Not this when: no tokenizer with a chat template is given; the text of each part stands in the rendered one.
    """
    return _lost_text_evidence(batch, "message_parts_lost")


@batch_check(
    severity="warning",
    why="The first line loses its depth, and the lines below keep theirs: the model learns code that does not run.",
    fix="Begin answers with a line that has no indent, such as a fence; or take the strip out of the template.",
    quotes=("karpathy_recipe_inspect_data",),
    purposes=("sft", "dpo", "vlm", "pretraining", "generation"),
)
def first_indent_lost(batch: Batch) -> Evidence | None:
    """The chat template trims a message whose first line is indented, as are lines below it.

    A fact where it is so of the messages alone that the model does not write.

    Not this when: the message is one line, or the lines below it have no indent.
    """
    return _lost_text_evidence(batch, "first_indent_lost")


@batch_check(
    severity="warning",
    why="The model never sees these characters: numbers and words without them are other numbers and words.",
    fix="Train the tokenizer with the whole alphabet of bytes, or add the characters and new embeddings.",
    fixes={"tokenizers": "BpeTrainer(initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), ...)."},
    quotes=("sanh_tokenizer_outputs",),
)
def characters_without_token(batch: Batch) -> Evidence | None:
    """Letters, digits or signs of the text become no token, and no unknown one stands in their place.

    A fact where it is so of the text alone that the model does not write.

    Not this when: the rows are tokenized already; an unknown token counts them; only marks and spaces are dropped.
    """
    return _lost_text_evidence(batch, "characters_without_token")


@batch_check(
    severity="warning",
    why="The model learns to skip its reasoning: it writes an empty block before every answer.",
    fix="Train with the reasoning, or mask the empty block; where it is meant (a model without thinking), leave it.",
    quotes=("karpathy_recipe_inspect_data",),
    purposes=("sft", "dpo", "vlm"),
)
def empty_thinking(batch: Batch) -> Evidence | None:
    """Most conversations hold a block of reasoning for the answer, and the blocks of nine in ten of them are empty.

    Not this when: more of the blocks hold reasoning; no template and no text writes one; the blocks are masked.
    """
    return problem_evidence(batch, "empty_thinking") or _empty_in_tokens(batch)


def _empty_in_tokens(batch: Batch) -> Evidence | None:
    """Look for blocks in tokenized rows, where they are trained on."""
    opened = [row for row in batch.roles if "<think" in row.text and row.side.trained is not None]
    # The others hold reasoning in a block.
    found = [row for row in opened if len(EMPTY_THINKING.findall(row.text)) >= max(1, len(THINKING.findall(row.text)))]
    trained = [row for row in found if _is_trained(row)]
    if not trained or 2 * len(trained) <= len(batch.roles) or len(found) < MIN_SHARE_EMPTY * len(opened):
        return None
    rows = np.unique([row.number for row in trained])
    return in_rows(batch, rows, "every block of reasoning is empty, in {rows}")


def _is_trained(row: RowRoles) -> bool:
    place = next(found.end() - 1 for found in EMPTY_THINKING.finditer(row.text))
    trained = row.side.trained
    return trained is not None and bool(trained[int(row.side.ids.offsets[row.index]) + row.token_at(place)])


# Pairs for embeddings that share their positive.


MIN_PAIRS = 4
"""Pairs of a tokenized batch with one positive. Chosen: two or three happen."""
MIN_SHARE = 0.25
"""Their share of the batch. Chosen: then most anchors meet their positive as a negative."""


def _anchor_and_positive(batch: Batch) -> tuple[Sequences, Sequences] | None:
    """Return the tokenized sides of pairs for embeddings."""
    sides = {side.name: side for side in batch.sides}
    names = next((group[:2] for group in CONTRASTED if set(group[:2]) <= sides.keys()), None)
    return None if names is None or batch.words is not None else (sides[names[0]], sides[names[1]])


def _texts(side: Sequences) -> list[bytes]:
    return [content(side, row).astype(np.int64).tobytes() for row in range(side.rows)]


@batch_check(
    severity="warning",
    why="Losses with in-batch negatives push the anchor from the same text when another pair of the batch holds it.",
    fix="Keep equal positives out of a batch, or use a loss that takes classes or groups.",
    fixes={"sentence-transformers": "batch_sampler=BatchSamplers.NO_DUPLICATES."},
    quotes=("karpathy_recipe_inspect_data",),
    purposes=("embedding",),
)
def positives_shared(batch: Batch) -> Evidence | None:
    """One text is the positive of at least 8 pairs and of a tenth of all, with different anchors.

    In a tokenized batch it is that of at least 4 pairs and of a quarter of all.

    Not this when: the positives recur seldom, so that a usual batch does not hold one twice.
    """
    found = problem_evidence(batch, "positives_shared")
    sides = _anchor_and_positive(batch)
    if found is not None or sides is None or len(set(_texts(sides[0]))) < sides[0].rows:
        return found
    texts = _texts(sides[1])
    shared = {text for text, n in Counter(texts).items() if n >= max(MIN_PAIRS, MIN_SHARE * len(texts))}
    if not shared:
        return None
    rows = sides[1].numbers[[place for place, text in enumerate(texts) if text in shared]]
    return in_rows(batch, rows, f"{len(rows)} pairs share {len(shared)} positive text(s), in {{rows}}")


@batch_check(
    severity="warning",
    why="Such a pair is solved without learning anything: the model gives both the same vector.",
    fix="Drop the pairs whose two texts are equal; see that the columns have different sources.",
    quotes=("karpathy_recipe_inspect_data",),
    purposes=("embedding",),
)
def anchor_equals_positive(batch: Batch) -> Evidence | None:
    """The anchor and the positive of a pair are the same text.

    Not this when: all pairs are so, as in SimCSE, where dropout tells the two apart.
    """
    found, sides = problem_evidence(batch, "anchor_equals_positive"), _anchor_and_positive(batch)
    rows = NO_ROWS if found is None else found.rows.numbers
    if sides is not None:
        rows = np.array([pair.number for pair in pairs(*sides) if pair.same], np.int64)
    if len(rows) >= batch.rows:
        return None
    return in_rows(batch, rows, "anchor and positive are the same in {rows}")
