"""The verb `inspect_batch`: read the data, judge every check, decode some rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np

from mldebug_mcp.batch import Batch
from mldebug_mcp.batch.batch import Overlap
from mldebug_mcp.batch.conversations import STEPS
from mldebug_mcp.batch.corpus import CorpusCounts, IdCounts
from mldebug_mcp.batch.formats import Stated, at_prefix
from mldebug_mcp.batch.read import open_data
from mldebug_mcp.batch.roles import NOTE
from mldebug_mcp.batch.templates import turns_in
from mldebug_mcp.batch.tokenizer import Tokenizer, load_tokenizer
from mldebug_mcp.checks import Symptom, symptoms
from mldebug_mcp.checks.batch.corpus import MIN_PASSAGES, is_by_source, order_by_length
from mldebug_mcp.core.paths import expanded
from mldebug_mcp.core.text import counted
from mldebug_mcp.judge.at_a_glance import glance_at_batch
from mldebug_mcp.judge.batch_pass import BatchCounts, PassOver, Progress, Tally, pass_over, row_views
from mldebug_mcp.judge.next_call import after_inspection
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.models.base import GRAVEST_FIRST
from mldebug_mcp.models.data import (
    BatchFinding,
    BatchInspection,
    BatchSummary,
    BoundaryToken,
    Corpus,
    CorpusShard,
    Leak,
    RoleSpan,
    TemplateView,
)

MAX_CITATIONS = 2
MAX_EXAMPLES = 10


def inspect_batch(
    path: str | Path,
    tokenizer: str | Path | Tokenizer | None = None,
    model: str | Path | None = None,
    purpose: str = "auto",
    *,
    sample: int | None = None,
    against: str | Path | None = None,
    rows: Sequence[int] | None = None,
    ray: str | None = None,
    format: str = "",  # noqa: A002 - the word that users see
    dtype: str = "",
    names: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> BatchInspection:
    """Say what a model is really trained on, from a tokenized batch or data set.

    Args:
        path: JSON, JSONL, CSV, parquet, Arrow or `save_to_disk` folder, safetensors, npz, `.pt` of plain tensors; a
            corpus of Megatron, datatrove, MDS, LitData, WebDataset, TFRecord or ArrayRecord, or raw token ids; a text
            in which a program printed the batch.
            Text that is not tokenized is rendered and tokenized first; without a tokenizer it is split into words.
        tokenizer: The tokenizer's folder or file. Without one, checks that need it find nothing.
        model: The model's `config.json`.
        purpose: sft, pretraining, dpo, kto, generation, classification, embedding, vlm, or auto to infer it.
        sample: Look at about this many rows, spread evenly over the data.
        against: Another data set, such as the evaluation split, to look for rows that are in both.
        rows: Look at the rows of these numbers only (from 0), such as those that `rows_at` gives.
        ray: Pass over the data as a Ray Data job at this address; "local" starts Ray on this machine.
        format: The format of the file, where it is not to be inferred, such as tokens, megatron or jsonl.
        dtype: The type of raw token ids, where it is not to be inferred: uint16, uint32, int64, >u2, ...
        names: Columns of the file by the name that they are to have: {"input_ids": "my_tokens"}.
        progress: Called after each piece of a large file.

    Returns:
        What was read, the checks that found something, most severe first, and some rows decoded.

    Raises:
        InputError: the input cannot be used; the message says why and what to do.
        MissingExtraError: a format or the tokenizer needs a package that is not installed.
    """
    loaded = load_tokenizer(tokenizer) if isinstance(tokenizer, (str, Path)) else tokenizer
    stated = Stated(format, dtype, tuple((theirs, ours) for ours, theirs in (names or {}).items()))
    data = replace(open_data(path, loaded, model, purpose, sample, stated), chosen=rows)
    other = None
    with _passes(ray) as passing:
        passed = passing(data, progress)
        if against is not None:
            # With the same purpose, so that the same columns are compared.
            first_purpose = purpose if passed.first is None else passed.first.purpose
            read_as = stated.for_another(at_prefix(expanded(against)))
            other = passing(open_data(against, loaded, model, first_purpose, stated=read_as), judging=False).prints
    overlap = passed.prints.overlap(other, "" if against is None else str(against))
    first, counts = passed.finish(overlap), passed.counts
    findings = _findings(passed.tallies)
    summary = counts.summary(first, findings, sampled=sample is not None)
    answer = BatchInspection(
        batch=summary,
        findings=findings,
        rows=row_views(first, findings),
        corpus=None if passed.corpus is None else corpus_view(first, passed.corpus, overlap),
        template=_template(first),
        leakage=_leak(overlap),
        next_step=after_inspection(str(path), findings, summary.trained_tokens if first.words is None else None),
        notes=[
            *_of_sample(summary),
            *passed.notes,
            *(() if passed.corpus is None else overlap_notes(overlap)),
            *_advice(first, passed.prints.thinned, counts),
        ],
    )
    return answer.model_copy(update={"at_a_glance": glance_at_batch(answer)})


def _passes(ray: str | None) -> AbstractContextManager[PassOver]:
    if ray is None:
        return nullcontext(pass_over)
    from mldebug_mcp.judge.ray import on_ray

    return on_ray(ray)


def _leak(overlap: Overlap) -> Leak | None:
    if overlap.against_exact is None or overlap.against_near is None:
        return None
    pairs = [*overlap.against_exact[:MAX_EXAMPLES].tolist(), *overlap.against_near[:MAX_EXAMPLES].tolist()]
    return Leak(
        against=overlap.against,
        rows=overlap.against_rows,
        exact=len(np.unique(overlap.against_exact[:, 1])),
        near=len(np.unique(overlap.against_near[:, 1])),
        passages=overlap.against_passages,
        shared_passages=overlap.against_shared,
        examples=pairs[:MAX_EXAMPLES],
    )


def _findings(tallies: Mapping[str, Tally]) -> list[BatchFinding]:
    checks = symptoms("batch")
    found = [_finding(checks[name], tally) for name, tally in tallies.items() if tally.pieces]
    return sorted(
        found, key=lambda each: (GRAVEST_FIRST.index(each.severity), each.row_count > 0, -each.row_count, each.check)
    )


def _finding(check: Symptom, tally: Tally) -> BatchFinding:
    known = catalogue()
    summary = f"{tally.shard}: {tally.summary}" if tally.shard else tally.summary
    return BatchFinding(
        check=check.id,
        severity=min((severity or check.outcome.severity for severity in tally.severities), key=GRAVEST_FIRST.index),
        summary=summary
        if tally.pieces == 1
        else (f"{tally.row_count} rows, in " if tally.row_count else "in ")
        + f"{tally.pieces} pieces of the data; in the first of them: {summary}",
        why=check.outcome.why,
        fix=check.outcome.fix,
        fixes=dict(check.outcome.fixes),
        rows=tally.rows,
        row_count=tally.row_count,
        places=tally.places,
        values=tally.values if tally.pieces == 1 else {},
        citations=known.cite(tuple(quote for quote in check.outcome.quotes if quote in known.quotes)[:MAX_CITATIONS]),
    )


def _template(batch: Batch) -> TemplateView | None:
    template = None if batch.tokenizer is None else batch.tokenizer.template
    if template is None:
        return None
    found = turns_in(template.example, template.family)
    roles = [RoleSpan(role=span.role, start=span.start, stop=span.stop) for span in found]
    return TemplateView(text=template.example, spans=roles)


def _of_sample(batch: BatchSummary) -> list[str]:
    """Return the note that only a sample was looked at, which no number and no finding is to be read without."""
    if not batch.sampled:
        return []
    return [
        f"only a sample of {counted(batch.rows, 'row')} was looked at: all counts are of the sample, and what is rare "
        "may not be in it"
    ]


MAX_DESIRED = 4 / 3
"""Weight of the desired completions for each of the undesired that TRL's KTOTrainer still takes without a warning."""


def _marks(batch: Batch, counts: BatchCounts) -> list[str]:
    """Return the note on how many completions, or steps of them, are marked as desired."""
    if batch.purpose == "classification" and STEPS in batch.columns:
        marked = counts.totals.token_classes
        return [f"{marked[1]:,} of {marked.total():,} steps are labelled right"]
    if batch.purpose != "kto":
        return []
    desired, undesired = counts.totals.classes[1], counts.totals.classes[0]
    note = f"{desired:,} completions are marked as desired and {undesired:,} as not"
    if desired and undesired and not 1 <= desired / undesired <= MAX_DESIRED:
        name, low = ("desirable", undesired / desired) if desired < undesired else ("undesirable", desired / undesired)
        least, most = (low, low * MAX_DESIRED) if desired < undesired else (low / MAX_DESIRED, low)
        note += (
            f"; with both weights at 1 that is {desired / undesired:.2f} to 1, and TRL wants 1 to {MAX_DESIRED:.2f}: "
            f"{name}_weight from {least:.2f} to {most:.2f} gives it"
        )
    return [note]


def _advice(batch: Batch, thinned: bool, counts: BatchCounts) -> list[str]:
    """Return notes on what could not be checked, and what is missing for it."""
    notes = _marks(batch, counts)
    if thinned:
        notes.append(
            "there are too many rows to compare all of them: repeated rows were looked for in an evenly spread sample"
        )
    if batch.tokenizer is not None and counts.decoded < counts.positions:
        notes.append(
            f"roles and markers were looked for in the first {counts.decoded:,} tokens and in part of the rest"
        )
    if batch.tokenizer is not None and batch.tokenizer.chat_template is not None and batch.tokenizer.template is None:
        notes.append("the chat template could not be rendered on a short conversation, so its markers are unknown")
    if batch.words is not None:
        notes.append(NOTE)
    elif batch.sides and batch.tokenizer is None:
        notes.append(
            "no tokenizer was given: rows are not decoded, and checks of templates, ends and first tokens are left "
            "out; pass tokenizer"
        )
    tokenizer = batch.tokenizer
    if tokenizer is not None and tokenizer.eos is not None and tokenizer.template_end not in (None, tokenizer.eos):
        notes.append(
            "the chat template ends the assistant's turn with another token than tokenizer.eos_token "
            f"({tokenizer.hf.eos_token}): generation must stop at both (generation_config.eos_token_id)"
        )
    return notes


# What a tokenized corpus holds: the pretrainer's part of the answer.


SHOWN_BOUNDARIES = 3
MAX_SHARDS = 100
ID_BANDS = 64
"""Equal ranges of token ids whose tokens are counted."""


def corpus_view(batch: Batch, corpus: CorpusCounts, overlap: Overlap) -> Corpus:
    """Return what a corpus holds and what its rows share; its first piece has tokenizer and configuration."""
    size, stream = batch.vocabulary, corpus.is_stream
    limit = size or len(corpus.counts.counts)
    lost, padding = (0.0, 0.0) if stream else corpus.lost_if_cut()
    copies = dict(corpus.copies())
    return Corpus(
        rows_are="windows" if stream else "documents",
        documents=_documents(batch, corpus),
        tokens=corpus.tokens,
        stored=corpus.stored,
        last=[] if stream else _boundaries(batch, corpus.last),
        first=[] if stream else _boundaries(batch, corpus.first),
        expected_ends=[
            _boundary(batch, end, corpus.occurs(end) if stream else corpus.last[end]) for end in sorted(batch.ends)
        ],
        ids_never_used=None if size is None else size - int(np.count_nonzero(corpus.counts.counts[:size])),
        ids_outside=corpus.negative + (corpus.huge if size is None else corpus.occurs_from(size)),
        id_bands=_bands(corpus, limit),
        id_limit=limit,
        window=corpus.window,
        crossing_documents=0 if stream else corpus.crossed,
        lost_if_truncated=lost,
        padding_if_alone=padding,
        left_over_tokens=corpus.tokens % corpus.window,
        cut_documents=corpus.cut_documents,
        length_order=order_by_length(corpus),
        source_order=is_by_source(corpus),
        repeated_share=overlap.repeated / overlap.passages if overlap.passages >= MIN_PASSAGES else None,
        shards=[
            CorpusShard(name=name, documents=shard.documents, tokens=shard.tokens, copy_of=copies.get(name, ""))
            for name, shard in list(corpus.shards.items())[:MAX_SHARDS]
        ],
        shard_count=len(corpus.shards),
    )


def _documents(batch: Batch, corpus: CorpusCounts) -> int | None:
    """Return how many documents there are, by the end tokens in a stream; None if nothing tells."""
    if not corpus.is_stream:
        return corpus.documents
    return sum(corpus.occurs(end) for end in batch.ends) or None


def _boundaries(batch: Batch, counts: IdCounts) -> list[BoundaryToken]:
    return [_boundary(batch, number, count) for number, count in counts.most_common(SHOWN_BOUNDARIES)]


def _boundary(batch: Batch, number: int, count: int) -> BoundaryToken:
    text = batch.texts.pieces([number])[0] if batch.texts is not None and number >= 0 else ""
    return BoundaryToken(id=number, text=text, documents=count)


def _bands(corpus: CorpusCounts, limit: int) -> list[int]:
    """Return the tokens in each of `ID_BANDS` equal bands of ids below `limit`."""
    if limit < ID_BANDS:
        return []
    edges = np.linspace(0, limit, ID_BANDS + 1).astype(np.int64)
    sums = np.concatenate([[0], np.cumsum(corpus.counts.counts)])
    places = sums[np.minimum(edges, len(corpus.counts.counts))]
    return [int(count) for count in np.diff(places)]


def overlap_notes(overlap: Overlap) -> list[str]:
    """Return what a comparison with another corpus could not look for."""
    if not overlap.against:
        return []
    notes = [
        "documents that say the same in other words, or were tokenized by another tokenizer, cannot be found by their "
        "tokens"
    ]
    if overlap.against_passages < MIN_PASSAGES:
        notes.append(
            f"passages of 32 tokens could hardly be compared: the other set holds {overlap.against_passages} of them "
            "that were looked at, as its documents are short or few"
        )
    return notes
