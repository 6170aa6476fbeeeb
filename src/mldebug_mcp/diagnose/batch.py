"""The verb `inspect_batch`: read the batch, judge every check, decode the rows that matter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from mldebug_mcp.batch import Batch, read_batches
from mldebug_mcp.batch.overlap import Fingerprints, Overlap
from mldebug_mcp.batch.templates import spans
from mldebug_mcp.batch.tokenizer import Tokenizer, load_tokenizer
from mldebug_mcp.diagnose.batch_rows import row_views, spot_place
from mldebug_mcp.diagnose.batch_summary import Summing
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.models.batch import BatchFinding, BatchInspection, Leak, RoleSpan, Severity, TemplateView
from mldebug_mcp.symptoms.batch import batch_checks
from mldebug_mcp.symptoms.batch_registry import BatchCheck, BatchEvidence, judge_check

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
MAX_ROWS = 1000
MAX_PLACES = 3
MAX_CITATIONS = 2
MAX_EXAMPLES = 10

Progress = Callable[[int, int], None]
"""Called with the rows and tokens read so far."""


@dataclass(slots=True)
class Seen:
    """What a check saw over all pieces of the data."""

    check: BatchCheck
    evidence: list[BatchEvidence] = field(default_factory=list)


def inspect_batch(
    path: str | Path,
    tokenizer: str | Path | Tokenizer | None = None,
    model: str | Path | None = None,
    purpose: str = "auto",
    *,
    sample: int | None = None,
    against: str | Path | None = None,
    progress: Progress | None = None,
) -> BatchInspection:
    """Say what a model is really trained on, from a tokenized batch or data set.

    Args:
        path: JSON, JSONL, parquet, Arrow or `save_to_disk` folder, safetensors, npz, or `.pt` of plain tensors. Text
        that
            is not tokenized is rendered and tokenized first, which needs a tokenizer.
        tokenizer: The tokenizer's folder or file. Without one, checks that need it find nothing.
        model: The model's `config.json`.
        purpose: sft, pretraining, dpo, generation, classification, vlm, or auto to infer it.
        sample: Look at about this many rows, spread evenly over the data.
        against: Another data set, such as the evaluation split, to look for rows that stand in both.
        progress: Called after each piece of a large file.

    Returns:
        What was read, the checks that found something, gravest first, and some rows decoded.

    Raises:
        InputError: the input cannot be used; the message says why and what to do.
        MissingExtraError: a format or the tokenizer needs a package that is not installed.
    """
    loaded = load_tokenizer(tokenizer) if isinstance(tokenizer, (str, Path)) else tokenizer
    seen = {one.id: Seen(one) for one in batch_checks().values()}
    summing, prints = Summing(), Fingerprints()
    notes: dict[str, None] = {}
    first: Batch | None = None
    for batch in read_batches(path, loaded, model, purpose, sample):
        first = first or batch
        notes.update(dict.fromkeys(batch.notes))
        _judge([one for one in seen.values() if not one.check.whole], batch, notes)
        summing.add(batch)
        prints.add(batch)
        if progress is not None:
            progress(summing.rows, summing.tokens)
    assert first is not None  # noqa: S101 - reading raises on empty input
    other = None if against is None else _fingerprints(against, loaded, first.purpose)
    overlap = prints.overlap(other, "" if against is None else str(against))
    _judge([one for one in seen.values() if one.check.whole], replace(first, rows=summing.rows, overlap=overlap), notes)
    findings = _findings(seen, summing, loaded)
    return BatchInspection(
        batch=summing.summary(first, findings, sampled=sample is not None),
        findings=findings,
        rows=row_views(first, findings),
        template=_template(first),
        leakage=_leak(overlap),
        notes=[*notes, *_advice(first, prints.thinned, summing)],
    )


def _judge(wanted: Iterable[Seen], batch: Batch, notes: dict[str, None]) -> None:
    for one in wanted:
        evidence, problem = judge_check(one.check, batch)
        if evidence is not None:
            one.evidence.append(evidence)
        if problem is not None:
            notes[problem] = None


def _fingerprints(path: str | Path, tokenizer: Tokenizer | None, purpose: str) -> Fingerprints:
    prints = Fingerprints()
    for batch in read_batches(path, tokenizer, None, purpose):
        prints.add(batch)
    return prints


def _leak(overlap: Overlap) -> Leak | None:
    if overlap.against_exact is None or overlap.against_near is None:
        return None
    pairs = [*overlap.against_exact[:MAX_EXAMPLES].tolist(), *overlap.against_near[:MAX_EXAMPLES].tolist()]
    return Leak(
        against=overlap.against,
        rows=overlap.against_rows,
        exact=len(np.unique(overlap.against_exact[:, 1])),
        near=len(np.unique(overlap.against_near[:, 1])),
        examples=pairs[:MAX_EXAMPLES],
    )


def _findings(seen: dict[str, Seen], summing: Summing, tokenizer: Tokenizer | None) -> list[BatchFinding]:
    if summing.trained:
        # A piece without a trained token is no more than rows without one, if another piece has some.
        whole = seen["all_labels_masked"]
        seen["row_labels_masked"].evidence += whole.evidence
        whole.evidence = []
    found = [_finding(one, tokenizer) for one in seen.values() if one.evidence]
    return sorted(found, key=lambda finding: (SEVERITIES.index(finding.severity), finding.check))


def _finding(one: Seen, tokenizer: Tokenizer | None) -> BatchFinding:
    check = one.check
    rows = np.unique(np.concatenate([evidence.rows for evidence in one.evidence]))
    worst = min(
        (evidence.severity or check.severity for evidence in one.evidence),
        key=SEVERITIES.index,
    )
    known = catalogue()
    return BatchFinding(
        check=check.id,
        severity=worst,
        summary=_summary(one.evidence, len(rows)),
        why=check.why,
        fix=check.fix,
        fixes=dict(check.fixes),
        rows=rows[:MAX_ROWS].tolist(),
        row_count=len(rows),
        places=[spot_place(spot, tokenizer) for evidence in one.evidence for spot in evidence.spots][:MAX_PLACES],
        values=_values(one.evidence),
        citations=known.cite(tuple(quote for quote in check.quotes if quote in known.quotes)[:MAX_CITATIONS]),
    )


def _summary(evidence: Sequence[BatchEvidence], rows: int) -> str:
    if len(evidence) == 1:
        return evidence[0].summary
    return f"{rows} rows, in {len(evidence)} pieces of the data; in the first of them: {evidence[0].summary}"


def _values(evidence: Sequence[BatchEvidence]) -> dict[str, float]:
    if len(evidence) == 1:
        return dict(evidence[0].values)
    return {}


def _template(batch: Batch) -> TemplateView | None:
    template = None if batch.tokenizer is None else batch.tokenizer.template
    if template is None:
        return None
    found = spans(template.example, template.family)
    roles = [RoleSpan(role=one.role, start=one.start, stop=one.stop) for one in found]
    return TemplateView(text=template.example, spans=roles)


def _advice(batch: Batch, thinned: bool, summing: Summing) -> list[str]:
    """Return what could not be looked at for want of something that the user may have."""
    notes = []
    if thinned:
        notes.append("there are too many rows to compare all of them: repeated rows were looked for in an even part")
    if batch.tokenizer is not None and summing.decoded < summing.positions:
        notes.append(
            f"roles and markers were looked for in the first {summing.decoded:,} tokens and a part of the rest"
        )
    if batch.sides and batch.tokenizer is None:
        notes.append(
            "no tokenizer was given: rows are not decoded, and checks of templates, ends and first tokens are left out"
        )
    tokenizer = batch.tokenizer
    if tokenizer is not None and tokenizer.eos is not None and tokenizer.template_end not in (None, tokenizer.eos):
        notes.append(
            f"the chat template ends the assistant's turn with another token than tokenizer.eos_token "
            f"({tokenizer.hf.eos_token}): "
            "generation must stop at both (generation_config.eos_token_id)"
        )
    return notes
