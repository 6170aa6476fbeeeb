"""What the loss should be: of a uniform guess, of one that knows the label frequencies, and the least possible."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from typing import Any

import torch

from .outputs import IGNORED, Targets, token_ids
from .subject import Subject
from .tree import inputs

MAX_ROWS = 256


def expected_losses(subject: Subject, targets: Targets, *, shifted: bool) -> dict[str, Any]:
    """Return the reference losses in nats (or squared units) and the rows whose labels contradict one another.

    `uniform` is ln(classes) (karpathy_recipe: "verify loss @ init"), for values the variance of the labels; `unigram`
    the entropy of the trained labels; `least` the mean entropy of the label given all that the model may see.
    """
    if targets.kind == "values":
        return {**_of_values(subject, targets), "trained_labels": targets.labels.numel()}
    pairs = list(_contexts(subject, targets, shifted=shifted))
    labels = Counter(label for _, label, _ in pairs)
    seen: dict[Hashable, Counter[Hashable]] = defaultdict(Counter)
    rows: dict[Hashable, set[int]] = defaultdict(set)
    for context, label, row in pairs:
        seen[context][label] += 1
        rows[context].add(row)
    split = {context: counts for context, counts in seen.items() if len(counts) > 1}
    total = max(1, len(pairs))
    best = sum(max(counts.values()) for counts in seen.values()) / total
    return {
        "uniform": math.log(targets.classes),
        "unigram": _entropy(labels),
        "least": sum(_entropy(counts) * sum(counts.values()) for counts in split.values()) / total,
        "best_accuracy": best,
        "contradicting_rows": sorted({row for context in split for row in rows[context]}),
        "trained_labels": len(pairs),
        "distinct_labels": len(labels),
        "rows_without_labels": _rows_without(targets, {row for _, _, row in pairs}),
    }


def _rows_without(targets: Targets, with_labels: set[int]) -> list[int]:
    return [row for row in range(len(targets.labels)) if row not in with_labels]


def _entropy(counts: Counter[Any]) -> float:
    total = sum(counts.values())
    return -sum(count / total * math.log(count / total) for count in counts.values()) if total else 0.0


def _contexts(subject: Subject, targets: Targets, *, shifted: bool) -> Iterable[tuple[Hashable, Hashable, int]]:
    """Yield what is known, the label and the row, for each trained label."""
    rows = row_contents(subject, len(targets.labels))
    if targets.kind != "tokens":
        for row, label in enumerate(targets.labels.reshape(len(targets.labels), -1).tolist()):
            if label != [IGNORED]:
                yield rows[row], tuple(label), row
        return
    ids = token_ids(subject)
    causal = subject.causal is True and ids is not None and ids.shape == targets.labels.shape
    tokens = ids.tolist() if causal and ids is not None else None
    for row, labels in enumerate(targets.labels.tolist()):
        prefix = 0
        for position in range(len(labels) - shifted):
            if tokens is not None:
                prefix = hash((prefix, tokens[row][position]))
            label = labels[position + shifted]
            if label >= 0:
                yield (prefix if tokens is not None else (rows[row], position)), label, row


def row_contents(subject: Subject, count: int) -> list[Hashable]:
    """Return a key per row, equal for rows with equal inputs."""
    tensors = [tensor for _, tensor in inputs(subject.batch) if tensor.ndim and len(tensor) == count]
    if not tensors or count > MAX_ROWS:
        return list(range(count))
    keys: list[Hashable] = []
    first_seen: list[tuple[int, list[torch.Tensor]]] = []
    for row in range(count):
        parts = [tensor[row].detach().cpu() for tensor in tensors]
        twin = next((key for key, other in first_seen if all(map(torch.equal, parts, other))), None)
        if twin is None:
            first_seen.append((row, parts))
        keys.append(row if twin is None else twin)
    return keys


def _of_values(subject: Subject, targets: Targets) -> dict[str, Any]:
    labels = targets.labels.reshape(len(targets.labels), -1)
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for row, key in enumerate(row_contents(subject, len(labels))):
        groups[key].append(row)
    variance = float(labels.var(unbiased=False, dim=0).mean()) if len(labels) > 1 else float((labels**2).mean())
    within = [(labels[rows] - labels[rows].mean(0)).square().mean(1).sum() for rows in groups.values()]
    split = [row for rows in groups.values() for row in rows if float((labels[rows] - labels[rows[0]]).abs().max()) > 0]
    # A network begins near zero, not at the mean of its targets.
    return {"uniform": float(labels.square().mean()), "variance": variance, "least": float(sum(within)) / len(labels),
            "contradicting_rows": sorted(split)}  # fmt: skip
