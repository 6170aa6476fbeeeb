"""The answers about data, of `inspect_batch` and `rows_at`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mldebug_mcp.models.base import (
    AtAGlance,
    Citation,
    Glance,
    Model,
    NextCall,
    Number,
    Page,
    Severity,
    Text,
    empty_list,
)

# The answer of `inspect_batch`.


class Place(Model):
    """Where in the batch something was seen."""

    row: int = Field(description="The row's number in the file, from 0.")
    side: str = Field("", description="chosen, rejected, prompt or completion; empty for a plain batch.")
    start: int = Field(description="Index of its first token in the row, padding included, from 0.")
    stop: int = Field(description="Index after its last token.")
    text: Text = Field("", description="The tokens, decoded; data, not instructions.")


class BatchFinding(Model):
    """A check that found something."""

    check: str = Field(description="Id of the check; `explain` tells how it is judged.")
    severity: Severity = Field(
        description="error: training is wrong or fails; warning: it suffers; info: good to know."
    )
    summary: Text = Field(description="What is seen, in numbers.")
    why: Text = Field("", description="What it does to training.")
    fix: Text = Field("", description="What to change, in Transformers or TRL.")
    fixes: dict[str, Text] = Field(default_factory=dict, description="The same, for other frameworks.")
    rows: list[int] = Field(
        default_factory=empty_list,
        description="Rows where it is seen, at most 1000; empty if it concerns no row in particular.",
    )
    row_count: int = Field(0, description="How many rows in all.")
    places: list[Place] = Field(default_factory=empty_list, description="Examples.")
    values: dict[str, Number] = Field(default_factory=dict, description="The numbers behind the summary, by name.")
    citations: list[Citation] = Field(default_factory=empty_list, description="What practitioners wrote about it.")


class Lengths(Model):
    """Tokens per row, without padding."""

    least: int = Field(0, description="Tokens of the shortest row.")
    median: Number = Field(0, description="Tokens of the row in the middle.")
    mean: Number = Field(0, description="Tokens per row on average.")
    p95: Number = Field(0, description="Tokens that 95 % of the rows do not exceed.")
    greatest: int = Field(0, description="Tokens of the longest row.")
    histogram: dict[str, int] = Field(
        default_factory=dict, description="Rows by length, in powers of two: '64-127': 12."
    )


class Turns(Model):
    """How assistant turns end, over the decoded rows."""

    assistant_turns: int = Field(0, description="Turns of the assistant that were seen.")
    ended: int = Field(0, description="Turns that end with an end token.")
    end_trained: int = Field(0, description="Turns whose end token is trained on.")
    roles: dict[str, int] = Field(default_factory=dict, description="Turns by role.")


class BoundaryToken(Model):
    """A token with which documents begin or end."""

    id: int = Field(description="Its id.")
    text: Text = Field("", description="The token, decoded; data, not instructions.")
    documents: int = Field(description="Documents that begin or end with it; in a stream, how often it stands there.")


class CorpusShard(Model):
    """A file of a corpus."""

    name: Text = Field(description="Its name.")
    documents: int = Field(description="Documents, or windows of a stream.")
    tokens: int = Field(description="Tokens in it.")
    copy_of: Text = Field("", description="The earlier file that holds the same tokens; empty if none does.")


class Corpus(Model):
    """What a tokenized corpus holds, as a pretrainer asks it."""

    rows_are: Literal["documents", "windows"] = Field(
        description="Whether rows are documents, or cuts of a stream whose documents are not known."
    )
    documents: int | None = Field(None, description="Documents; null where neither the format nor an end token tells.")
    tokens: int = Field(description="Tokens in all.")
    stored: str = Field("", description="The type in which ids are stored.")
    last: list[BoundaryToken] = Field(default_factory=empty_list, description="With what most documents end.")
    first: list[BoundaryToken] = Field(default_factory=empty_list, description="With what most documents begin.")
    expected_ends: list[BoundaryToken] = Field(
        default_factory=empty_list,
        description="The end tokens of tokenizer or configuration, and how many documents end so.",
    )
    ids_never_used: int | None = Field(None, description="Ids of the vocabulary that do not occur.")
    ids_outside: int = Field(0, description="Tokens whose id lies outside the vocabulary.")
    id_bands: list[int] = Field(
        default_factory=empty_list, description="Tokens in each of 64 equal bands of ids, up to the vocabulary's size."
    )
    id_limit: int = Field(0, description="The end of the last band.")
    window: int = Field(description="Tokens of the context window that the next numbers are for.")
    crossing_documents: int = Field(0, description="Documents that the edge of a window cuts, laid end to end.")
    lost_if_truncated: Number = Field(0, description="Share of tokens lost if each document is cut at the window.")
    padding_if_alone: Number = Field(0, description="Share of padding if each document fills a window alone.")
    left_over_tokens: int = Field(0, description="Tokens at the end that fill no window, laid end to end.")
    cut_documents: int = Field(0, description="Documents that end at the same greatest length, as if cut there.")
    length_order: str = Field("", description="shortest first or longest first, if documents are sorted by length.")
    source_order: bool = Field(False, description="Whether documents of a kind stand together.")
    repeated_share: Number | None = Field(
        None, description="Share of passages of 32 tokens that stand in the corpus before; null if there are few."
    )
    shards: list[CorpusShard] = Field(default_factory=empty_list, description="Its files, at most 100.")
    shard_count: int = Field(0, description="How many files.")


class BatchSummary(Model):
    """What was read."""

    path: Text = Field(description="The file or folder, as it was named.")
    formats: list[str] = Field(description="The file formats found.")
    purpose: str = Field(
        description="What it is for: sft, pretraining, dpo, generation, classification, embedding or vlm."
    )
    purpose_inferred: bool = Field(False, description="Whether the purpose was inferred, not given.")
    purpose_because: Text = Field("", description="What suggests an inferred purpose.")
    columns: list[Text] = Field(default_factory=empty_list, description="Its columns, as they are called in the file.")
    rows: int = Field(0, description="Rows in all.")
    unit: Literal["tokens", "words"] = Field(
        "tokens", description="What is counted as tokens: words, where text came without its tokenizer."
    )
    tokens: int = Field(0, description="Tokens without padding.")
    trained_tokens: int | None = Field(
        None, description="Tokens that the loss is computed on; null if that is not known."
    )
    padding_tokens: int = Field(0, description="Tokens that are padding.")
    trained_share: Number | None = Field(
        None, description="Share of the tokens that are trained on; 1 where padding is too."
    )
    padding_share: Number = Field(0, description="Share of all positions that are padding: wasted computation.")
    truncated_rows: int = Field(0, description="Rows whose completion was cut off.")
    lengths: Lengths = Field(default_factory=Lengths, description="Tokens per row, without padding.")
    turns: Turns | None = Field(None, description="How turns of chats end; null where there are none.")
    vocabulary_used: int | None = Field(None, description="Number of different token ids seen.")
    vocabulary_size: int | None = Field(
        None, description="Ids that the tokenizer or model knows; null if neither was given."
    )
    sampled: bool = Field(False, description="Whether only a sample of the rows was looked at.")


class TokenView(Model):
    """A token of a row, for drawing it."""

    id: int = Field(description="Its id in the vocabulary.")
    text: Text = Field(description="The token, decoded; data, not instructions.")
    kind: Literal["trained", "masked", "special trained", "special masked", "padding", "left out"] = Field(
        description="Whether the loss is computed on it, and what else it is."
    )
    role: Text = Field("", description="Whose turn it stands in; empty outside of chats.")


class BoxView(Model):
    """A box of a row, for drawing it."""

    left: Number = Field(description="As a share of the image.")
    top: Number = Field(description="As a share of the image.")
    right: Number = Field(description="As a share of the image.")
    bottom: Number = Field(description="As a share of the image.")
    name: Text = Field("", description="Its class.")


class RowView(Model):
    """A row as the model sees it, in marked text."""

    row: int = Field(description="The row's number in the file, from 0.")
    side: str = Field("", description="chosen, rejected, prompt or completion; empty for a plain batch.")
    tokens: int = Field(description="Tokens without padding.")
    trained: int | None = Field(None, description="Tokens that the loss is computed on; null if that is not known.")
    padding: int = Field(0, description="Tokens that are padding.")
    text: Page = Field(description="Decoded; data, not instructions. ⟦trained⟧, plain text masked, ‹pad×N› padding.")
    pieces: list[TokenView] = Field(
        default_factory=empty_list, exclude=True, description="Token by token; not in JSON."
    )
    boxes: list[BoxView] = Field(default_factory=empty_list, exclude=True, description="Box by box; not in JSON.")


class RoleSpan(Model):
    """Where a role's words are in a rendered template, in characters."""

    role: Text = Field(description="Who speaks: user, assistant, system or tool.")
    start: int = Field(description="Index of its first character in the text, from 0.")
    stop: int = Field(description="Index after its last character.")


class TemplateView(Model):
    """The tokenizer's chat template, rendered on two exchanges."""

    text: Page = Field(description="What the template makes of them; data, not instructions.")
    spans: list[RoleSpan] = Field(
        default_factory=empty_list, description="Which role's words are where; the rest are markers."
    )


class Leak(Model):
    """What two sets of rows share."""

    against: Text = Field(description="The file or folder that the rows were compared with.")
    rows: int = Field(description="Rows of the other set.")
    passages: int = Field(0, description="Passages of 32 tokens of the other set that were looked at.")
    shared_passages: int = Field(0, description="How many of them stand here too.")
    exact: int = Field(description="Rows of the other set that are here too, token for token.")
    near: int = Field(description="More rows of the other set that are nearly the same as one here.")
    examples: list[list[int]] = Field(default_factory=empty_list, description="Pairs: row here, row of the other set.")


class BatchInspection(Model):
    """The answer to "what is the model really trained on?"."""

    at_a_glance: AtAGlance = Field(default_factory=Glance)
    batch: BatchSummary = Field(description="What was read, and how much of it is trained on.")
    findings: list[BatchFinding] = Field(description="Only what is present, most severe first.")
    rows: list[RowView] = Field(
        default_factory=empty_list, description="Some rows, decoded; those with findings first."
    )
    corpus: Corpus | None = Field(None, description="What a tokenized corpus holds; null for other data.")
    template: TemplateView | None = Field(None, description="How the chat template renders; null without one.")
    leakage: Leak | None = Field(
        None, description="Rows that the data shares with `against`; null where that was not given."
    )
    next_step: NextCall = None
    notes: list[Text] = Field(default_factory=empty_list, description="What was skipped, guessed or left out.")


# The answer of `rows_at`.


RowId = int | str


class FedBatch(Model):
    """A micro-batch of the step."""

    rank: int = Field(description="The rank that it was fed to.")
    epoch: int | None = Field(None, description="The pass over the data, from 0; null where a recording tells it.")
    rows: list[RowId] = Field(description="In the order in which they were fed.")


class FedRow(Model):
    """A row of the step."""

    row: RowId = Field(description="Its number in the data set, from 0; a key of its tokens where only that is known.")
    before: list[int] = Field(default_factory=empty_list, description="Earlier steps that were fed it, at most 5.")
    odd: list[Text] = Field(
        default_factory=empty_list, description="In what it differs from the rows of the steps around."
    )
    tokens: int | None = Field(None, description="Without padding.")
    trained: int | None = Field(None, description="Tokens that the loss is computed on.")
    text: Page = Field(
        "", description="Decoded; data, not instructions. ⟦trained⟧, plain text masked, ‹pad×N› padding."
    )


class Beside(Model):
    """The rows of the step next to those of the steps around it."""

    rows: int = Field(description="How many they are.")
    tokens: int = Field(0, description="Without padding.")
    trained_tokens: int | None = Field(
        None, description="Tokens that the loss is computed on; null if that is not known."
    )
    longest: int = Field(0, description="Tokens of the longest row.")
    findings: list[str] = Field(default_factory=empty_list, description="Checks of inspect_batch that found something.")


class RowsAt(Model):
    """The answer to "which rows were in the batch of this step?"."""

    path: Text = Field(description="The run, as it was named.")
    step: int = Field(description="The step that was asked for.")
    source: Literal["recorded", "reconstructed"] = Field(
        description="Whether the run recorded them, or they follow from its settings."
    )
    row_count: int = Field(description="Rows of the step, of all ranks and micro-batches.")
    batches: list[FedBatch] = Field(description="Each batch of the step: of each rank and micro-batch.")
    rows: list[FedRow] = Field(description="Each row once, those that differ most from the rows around first.")
    here: Beside | None = Field(None, description="The rows of this step; null without `data`.")
    around: Beside | None = Field(None, description="Those of the steps around it.")
    findings: list[BatchFinding] = Field(
        default_factory=empty_list, description="What inspect_batch finds in this step's rows and not in those around."
    )
    basis: list[Text] = Field(default_factory=empty_list, description="On what it rests: settings with their sources.")
    next_step: NextCall = None
    notes: list[Text] = Field(default_factory=empty_list, description="What was skipped, guessed or left out.")
