"""Which formula the loss follows, which losses of reference there are, and where the batch counts as memorised."""

from __future__ import annotations

import copy
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from .outputs import IGNORED_LABEL, Capture, Targets, targets_of, token_ids
from .parameters import has_batch_norm
from .subject import Subject, inputs, loss_in, mapped
from .training import Curve

SAME_LOSS_TOLERANCE = 1e-5
"""Relative difference at which two losses are the same: above rounding in 32 bits."""
LOW_TOLERANCE = 1e-2
"""The same in half precision."""
MIN_NUMBERS_IN_UNIT_RANGE = 8
"""Numbers that must all lie between 0 and 1 to be taken for probabilities."""


def identify(targets: Targets, reported: float, *, known: str | None = None, low_precision: bool = False) -> str | None:
    """Return the name of the formula that gives the reported loss, or None.

    The name's parts say how: `cross_entropy`, `binary_cross_entropy`, `squared_error` or `absolute_error`; `shifted`
    (position t predicts t+1); `softmaxed` (probabilities taken for logits); `negated`; `summed`; `broadcast` (each
    output against every label); `over rows` or `over positions` (normalised over that axis in place of the classes). Of
    several that fit, the one that is `known` from another pass stands.
    """
    tolerance = LOW_TOLERANCE if low_precision else SAME_LOSS_TOLERANCE
    formulas = _of_classes if targets.kind in ("tokens", "classes") else _of_values
    fitting = [
        prefix + name
        for name, value in formulas(targets)
        for sign, prefix in ((1.0, ""), (-1.0, "negated "))
        if abs(sign * value - reported) <= tolerance * max(abs(reported), 1e-3)
    ]
    return known if known in fitting else next(iter(fitting), None)


def aligned(targets: Targets, *, shifted: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Return logits (predictions, classes) and labels (predictions); ids that name no class are ignored."""
    logits, labels = targets.logits, targets.labels.long()
    if targets.kind == "tokens" and shifted:
        logits, labels = logits[:, :-1], labels[:, 1:]
    labels = labels.reshape(-1)
    known = (labels >= 0) & (labels < targets.classes)
    return logits.reshape(-1, targets.classes), torch.where(known, labels, IGNORED_LABEL)


def accuracy(targets: Targets, *, shifted: bool) -> tuple[float, list[float]] | None:
    """Return the share of trained labels that the highest logit names, over all and per row; None for values."""
    if targets.kind == "values":
        return None
    if targets.kind == "binary":
        right = ((targets.logits > 0) == (targets.labels > 0.5)).float().reshape(len(targets.labels), -1)
        return float(right.mean()), right.mean(dim=1).tolist()
    logits, labels = aligned(targets, shifted=shifted)
    counted = (labels != IGNORED_LABEL).reshape(len(targets.labels), -1)
    right = (logits.argmax(dim=-1) == labels).reshape(counted.shape) & counted
    if not counted.any():
        return None
    per_row = right.sum(1) / counted.sum(1).clamp(min=1)
    return float(right.sum() / counted.sum()), torch.where(counted.any(1), per_row.float(), torch.nan).tolist()


def _of_classes(targets: Targets) -> Iterator[tuple[str, float]]:
    probabilities = bool((targets.logits >= 0).all()) and bool(((targets.logits.sum(-1) - 1).abs() < 1e-2).all())
    for shift in ("", " shifted") if targets.kind == "tokens" else ("",):
        logits, labels = aligned(targets, shifted=bool(shift))
        count = int((labels != IGNORED_LABEL).sum())
        if not count:
            continue
        plain = float(functional.cross_entropy(logits, labels, ignore_index=IGNORED_LABEL))
        twice = float(functional.cross_entropy(logits.softmax(-1), labels, ignore_index=IGNORED_LABEL))
        # If the model gives probabilities, plain cross-entropy of them is the double softmax.
        yield f"cross_entropy{' softmaxed' if probabilities else ''}{shift}", plain
        yield f"cross_entropy softmaxed{shift}", twice
        if probabilities:
            logs = logits.clamp(min=1e-12).log()
            yield f"cross_entropy{shift}", float(functional.nll_loss(logs, labels, ignore_index=IGNORED_LABEL))
        yield f"cross_entropy summed{shift}", plain * count
    yield from _over_other_axes(targets)


def _over_other_axes(targets: Targets) -> Iterator[tuple[str, float]]:
    """Yield cross-entropies of probabilities that sum to 1 over the rows or the positions, not over the classes."""
    for axis, name in enumerate(("rows", "positions")[: targets.logits.ndim - 1]):
        given = targets.logits
        if bool((given >= 0).all()) and bool(((given.sum(axis) - 1).abs() < 1e-2).all()):
            given = given.clamp(min=1e-12).log()
        for shift in ("", " shifted") if targets.kind == "tokens" else ("",):
            logits, labels = aligned(replace(targets, logits=given.log_softmax(axis)), shifted=bool(shift))
            if bool((labels != IGNORED_LABEL).any()):
                loss = float(functional.nll_loss(logits, labels, ignore_index=IGNORED_LABEL))
                yield f"cross_entropy over {name}{shift}", loss


def _of_values(targets: Targets) -> Iterator[tuple[str, float]]:
    outputs, labels = targets.logits, targets.labels
    if targets.kind == "binary":
        with_logits = functional.binary_cross_entropy_with_logits
        probabilities = outputs.numel() >= MIN_NUMBERS_IN_UNIT_RANGE and bool(((outputs >= 0) & (outputs <= 1)).all())
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


# What the loss should be: of a uniform guess, of one that knows the label frequencies, and the least possible.


MAX_ROWS = 256
"""Rows above which none are compared to find equal inputs."""


def expected_losses(subject: Subject, targets: Targets, *, shifted: bool) -> dict[str, Any]:
    """Return the reference losses in nats (or squared units) and the rows whose labels contradict one another.

    `uniform` is ln(classes) (karpathy_recipe: "verify loss @ init"), for values the variance of the labels; `unigram`
    the entropy of the trained labels; `least` the mean entropy of the label given all that the model may see.
    """
    if targets.kind == "values":
        return {**_reference_of_values(subject, targets), "trained_labels": targets.labels.numel()}
    pairs = list(_contexts(subject, targets, shifted=shifted))
    labels = Counter(label for _, label, _ in pairs)
    labels_after: dict[Hashable, Counter[Hashable]] = defaultdict(Counter)
    rows: dict[Hashable, set[int]] = defaultdict(set)
    for context, label, row in pairs:
        labels_after[context][label] += 1
        rows[context].add(row)
    split = {context: counts for context, counts in labels_after.items() if len(counts) > 1}
    total = max(1, len(pairs))
    best = sum(max(counts.values()) for counts in labels_after.values()) / total
    return {
        "uniform": math.log(targets.classes),
        "unigram": _entropy(labels),
        "least": sum(_entropy(counts) * sum(counts.values()) for counts in split.values()) / total,
        "best_accuracy": best,
        "contradicting_rows": sorted({row for context in split for row in rows[context]}),
        "trained_labels": len(pairs),
        "distinct_labels": len(labels),
        "rows_without_labels": sorted({*range(len(targets.labels))} - {row for _, _, row in pairs}),
    }


def _entropy(counts: Counter[Any]) -> float:
    total = sum(counts.values())
    return -sum(count / total * math.log(count / total) for count in counts.values()) if total else 0.0


def _contexts(subject: Subject, targets: Targets, *, shifted: bool) -> Iterable[tuple[Hashable, Hashable, int]]:
    """Yield what is known, the label and the row, for each trained label."""
    rows = row_contents(subject, len(targets.labels))
    if targets.kind != "tokens":
        for row, label in enumerate(targets.labels.reshape(len(targets.labels), -1).tolist()):
            if label != [IGNORED_LABEL]:
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


def _reference_of_values(subject: Subject, targets: Targets) -> dict[str, Any]:
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


# Whether a pass is computed in few bits, and what it gives in 32.


LOW = (torch.float16, torch.bfloat16)


def is_low(subject: Subject) -> bool:
    """Tell whether the loss is computed, or the parameters are kept, in 16 bits."""
    return subject.dtype in LOW or any(parameter.dtype in LOW for _, parameter in subject.parameters())


class FullPrecision(TorchFunctionMode):
    """Makes 32-bit tensors wherever the code of a pass asks for 16 bits, while it is entered."""

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of torch with each type of 16 bits replaced."""
        del types
        if func in (torch.Tensor.half, torch.Tensor.bfloat16):
            return args[0].float()
        widened = [torch.float32 if argument in LOW else argument for argument in args]
        return func(
            *widened, **{name: torch.float32 if value in LOW else value for name, value in (kwargs or {}).items()}
        )


def in_full_precision(subject: Subject) -> dict[str, Any]:
    """Return loss and finiteness of gradients of one pass with everything in 32 bits."""
    model = copy.deepcopy(subject.model).float()
    batch = mapped(subject.batch, lambda _, tensor: tensor.float() if tensor.is_floating_point() else tensor)
    usual = torch.autocast.__init__

    def disabled(self: Any, *arguments: Any, **keywords: Any) -> None:
        keywords["enabled"] = False
        usual(self, *arguments[:2], **keywords)

    torch.autocast.__init__ = disabled  # type: ignore[method-assign]
    try:
        with FullPrecision():
            loss = loss_in(subject.loss(model, batch))
        if loss.requires_grad:
            loss.backward()
        finite = all(
            bool(torch.isfinite(parameter.grad).all()) for parameter in model.parameters() if parameter.grad is not None
        )
        return {"loss": float(loss.detach()), "gradients_finite": finite}
    except RuntimeError:
        return {}  # the loss function is tied to its precision
    finally:
        torch.autocast.__init__ = usual  # type: ignore[method-assign]


MAX_MEMORISED_SHARE = 0.05
"""Share of the distance between a uniform guess and the least possible loss that may be left: chosen, so that each
label has a probability near 0.8 or above with a vocabulary of 100, and above 0.55 with one of 100,000."""
SETTLING_PASSES = 30
"""Passes that let BatchNorm's running statistics (momentum 0.1) settle: 0.9^30 = 4 % of the start is left."""
NEAR_GOAL = 2.0
"""Times the goal up to which a batch whose labels are all right is memorised. Chosen: dropout of a tenth keeps the loss
at 1.2 times."""


class Yardstick:
    """What the loss of a subject means; what is learnt is added to what is measured."""

    def __init__(self, subject: Subject, measured: dict[str, Any]) -> None:
        self.subject, self.measured = subject, measured
        self.shifted = False

    def learn(self, targets: Targets | None) -> None:
        """Name the loss by what it gives for the first output, and work out what it should be."""
        if targets is None:
            return
        initial = self.measured["initial_loss"]
        name = identify(targets, initial, low_precision=self._low) if math.isfinite(initial) else None
        self.measured["targets"] = targets.kind
        self.measured["loss_formula"] = name
        self.shifted = self._is_shifted(targets, name)
        self.measured["reference"] = expected_losses(self.subject, targets, shifted=self.shifted)
        self.measured["causal"] = self.subject.causal
        self.measured["distinct_inputs"] = len(set(row_contents(self.subject, len(targets.labels))))

    @property
    def _low(self) -> bool:
        return is_low(self.subject) or self.measured.get("output_dtype") in ("torch.float16", "torch.bfloat16")

    def _is_shifted(self, targets: Targets, name: str | None) -> bool:
        if targets.kind != "tokens":
            return False
        if name is not None:
            return "shifted" in name
        return self.subject.causal is True and token_ids(self.subject) is not None

    def goal(self) -> float:
        """Return the loss at which the batch counts as memorised; minus infinity if that is not known."""
        initial, known = self.measured["initial_loss"], self.measured.get("reference")
        formula = self.measured.get("loss_formula")
        if known is None or formula is None:
            return MAX_MEMORISED_SHARE * initial if initial > 0 else -math.inf
        if "negated" in formula:
            return -math.inf
        scale = float(known["trained_labels"]) if "summed" in formula else 1
        least, guess = float(known["least"]), float(known.get("variance", known["uniform"]))
        return scale * (least + MAX_MEMORISED_SHARE * max(0.0, guess - least))

    def outcome(self) -> dict[str, Any]:
        """Return loss and accuracy on the batch in both modes."""
        model, result = self.subject.model, {}
        was = model.training
        for mode in ("train", "evaluation"):
            model.train(mode == "train")
            with torch.no_grad(), Capture(model) as capture:
                if mode == "train":
                    for _ in range(SETTLING_PASSES if has_batch_norm(model) else 0):
                        self.subject.compute_loss()
                loss = float(self.subject.compute_loss())
            entry: dict[str, Any] = {"loss": loss}
            targets = targets_of(self.subject, capture.tensor())
            if mode == "train" and targets is not None:
                self._confirm_formula(targets, loss)
            if targets is not None and (found := accuracy(targets, shifted=self.shifted)) is not None:
                entry["accuracy"], entry["rows"] = found
            result[mode] = entry
        model.train(was)
        return result

    def memorised(self, curve: Curve, outcome: dict[str, Any]) -> bool:
        """Tell whether the batch is memorised: the loss came down to the goal.

        A loss of a form that is not known may have a floor of its own: there it counts that all labels are right. So it
        does where the loss stays a little above the goal, as dropout keeps it.
        """
        loss = min(outcome["train"]["loss"], outcome["evaluation"]["loss"], *(curve.losses[-1:]))
        known = self.measured.get("reference")
        if loss <= self.goal():
            return True
        right = max(result.get("accuracy", 0.0) for result in outcome.values())
        if known is None or right < known.get("best_accuracy", 2.0) - 0.01:
            return False
        if self.measured.get("loss_formula") is None:
            return bool(loss < 0.9 * self.measured["initial_loss"])
        return bool(loss <= NEAR_GOAL * self.goal())

    def _confirm_formula(self, targets: Targets, loss: float) -> None:
        """Name the loss again: at the start, where all predictions are alike, several formulas give the same number."""
        if self.measured.get("loss_formula") is not None:
            self.measured["loss_formula"] = identify(
                targets, loss, known=self.measured["loss_formula"], low_precision=self._low
            )
            self.measured["goal"] = self.goal()
