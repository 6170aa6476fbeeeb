"""Identifying the loss: the reported number is compared with what known formulas give for the same output."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.nn import functional

from .outputs import IGNORED, Targets

TOLERANCE, LOW_TOLERANCE = 1e-5, 1e-2
"""Relative difference at which two losses are the same: above rounding, in 32 bits and in half precision."""


FEW = 8
"""Numbers that must all lie between 0 and 1 to be taken for probabilities."""


def identify(targets: Targets, reported: float, *, known: str | None = None, low_precision: bool = False) -> str | None:
    """Return the name of the formula that gives the reported loss, or None.

    The name's parts say how: `cross_entropy`, `binary_cross_entropy`, `squared_error` or `absolute_error`; `shifted`
    (position t predicts t+1); `softmaxed` (probabilities taken for logits); `negated`; `summed`; `broadcast` (each
    output against every label). Of several that fit, the one that is `known` from another pass stands.
    """
    tolerance = LOW_TOLERANCE if low_precision else TOLERANCE
    fitting = [
        prefix + name
        for name, value in _formulas(targets)
        for sign, prefix in ((1.0, ""), (-1.0, "negated "))
        if abs(sign * value - reported) <= tolerance * max(abs(reported), 1e-3)
    ]
    return known if known in fitting else next(iter(fitting), None)


def cross_entropy(targets: Targets, *, shifted: bool = False) -> float:
    """Return the mean cross-entropy over the trained labels; NaN if there is none."""
    logits, labels = aligned(targets, shifted=shifted)
    return float(functional.cross_entropy(logits, labels, ignore_index=IGNORED))


def aligned(targets: Targets, *, shifted: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Return logits (predictions, classes) and labels (predictions); ids that name no class are ignored."""
    logits, labels = targets.logits, targets.labels.long()
    if targets.kind == "tokens" and shifted:
        logits, labels = logits[:, :-1], labels[:, 1:]
    labels = labels.reshape(-1)
    known = (labels >= 0) & (labels < targets.classes)
    return logits.reshape(-1, targets.classes), torch.where(known, labels, IGNORED)


def accuracy(targets: Targets, *, shifted: bool) -> tuple[float, list[float]] | None:
    """Return the share of trained labels that the highest logit names, over all and per row; None for values."""
    if targets.kind == "values":
        return None
    if targets.kind == "binary":
        right = ((targets.logits > 0) == (targets.labels > 0.5)).float().reshape(len(targets.labels), -1)
        return float(right.mean()), right.mean(dim=1).tolist()
    logits, labels = aligned(targets, shifted=shifted)
    counted = (labels != IGNORED).reshape(len(targets.labels), -1)
    right = (logits.argmax(dim=-1) == labels).reshape(counted.shape) & counted
    if not counted.any():
        return None
    per_row = right.sum(1) / counted.sum(1).clamp(min=1)
    return float(right.sum() / counted.sum()), torch.where(counted.any(1), per_row.float(), torch.nan).tolist()


def _formulas(targets: Targets) -> Iterator[tuple[str, float]]:
    if targets.kind in ("tokens", "classes"):
        yield from _of_classes(targets)
    else:
        yield from _of_values(targets)


def _of_classes(targets: Targets) -> Iterator[tuple[str, float]]:
    probabilities = bool((targets.logits >= 0).all()) and bool(((targets.logits.sum(-1) - 1).abs() < 1e-2).all())
    for shift in ("", " shifted") if targets.kind == "tokens" else ("",):
        logits, labels = aligned(targets, shifted=bool(shift))
        count = int((labels != IGNORED).sum())
        if not count:
            continue
        plain = float(functional.cross_entropy(logits, labels, ignore_index=IGNORED))
        twice = float(functional.cross_entropy(logits.softmax(-1), labels, ignore_index=IGNORED))
        # If the model gives probabilities, plain cross-entropy of them is the double softmax.
        yield f"cross_entropy{' softmaxed' if probabilities else ''}{shift}", plain
        yield f"cross_entropy softmaxed{shift}", twice
        if probabilities:
            logs = logits.clamp(min=1e-12).log()
            yield f"cross_entropy{shift}", float(functional.nll_loss(logs, labels, ignore_index=IGNORED))
        yield f"cross_entropy summed{shift}", plain * count


def _of_values(targets: Targets) -> Iterator[tuple[str, float]]:
    outputs, labels = targets.logits, targets.labels
    if targets.kind == "binary":
        with_logits = functional.binary_cross_entropy_with_logits
        probabilities = outputs.numel() >= FEW and bool(((outputs >= 0) & (outputs <= 1)).all())
        yield f"binary_cross_entropy{' softmaxed' if probabilities else ''}", float(with_logits(outputs, labels))
        yield "binary_cross_entropy softmaxed", float(with_logits(outputs.sigmoid(), labels))
        if probabilities:
            yield "binary_cross_entropy", float(functional.binary_cross_entropy(outputs, labels))
    yield "squared_error", float(functional.mse_loss(outputs, labels))
    yield "squared_error summed", float(functional.mse_loss(outputs, labels, reduction="sum"))
    yield "absolute_error", float(functional.l1_loss(outputs, labels))
    if len(labels) == labels.numel() > 1:
        every, each = outputs.reshape(-1, 1), labels.reshape(1, -1)
        yield "squared_error broadcast", float((every - each).square().mean())
        yield "absolute_error broadcast", float((every - each).abs().mean())
