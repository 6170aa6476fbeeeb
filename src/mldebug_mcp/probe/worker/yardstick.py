"""What a loss is measured by: its formula, the losses of reference, and where the batch counts as memorised."""

from __future__ import annotations

import math
from typing import Any

import torch

from . import reference
from .losses import accuracy, cross_entropy, identify
from .modes import has_batch_norm
from .outputs import Capture, Targets, targets_of, token_ids
from .precision import is_low
from .subject import Subject
from .training import Curve

MEMORISED = 0.05
"""Share of the distance between a uniform guess and the least possible loss that may be left: chosen, so that each
label has a probability near 0.8 or above with a vocabulary of 100, and above 0.55 with one of 100,000."""
SETTLING_PASSES = 30
"""Passes that let BatchNorm's running statistics (momentum 0.1) settle: 0.9^30 = 4 % of the start is left."""


class Yardstick:
    """What the loss of a subject means.

    Args:
        subject: What is probed.
        measured: What is known of it, `initial_loss` among it; what is learnt is added there.
    """

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
        self.measured["reference"] = reference.expected_losses(self.subject, targets, shifted=self.shifted)
        self.measured["causal"] = self.subject.causal
        self.measured["distinct_inputs"] = len(set(reference.row_contents(self.subject, len(targets.labels))))

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
            return MEMORISED * initial if initial > 0 else -math.inf
        if "negated" in formula:
            return -math.inf
        scale = float(known["trained_labels"]) if "summed" in formula else 1
        least, guess = float(known["least"]), float(known.get("variance", known["uniform"]))
        return scale * (least + MEMORISED * max(0.0, guess - least))

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
                if targets.kind in ("tokens", "classes"):
                    entry["cross_entropy"] = cross_entropy(targets, shifted=self.shifted)
            result[mode] = entry
        model.train(was)
        return result

    def memorised(self, curve: Curve, outcome: dict[str, Any]) -> bool:
        """Tell whether the batch is memorised: the loss came down to the goal.

        A loss of a form that is not known may have a floor of its own: there it counts that all labels are right.
        """
        loss = min(outcome["train"]["loss"], outcome["evaluation"]["loss"], *(curve.losses[-1:]))
        known = self.measured.get("reference")
        if loss <= self.goal():
            return True
        right = max(one.get("accuracy", 0.0) for one in outcome.values())
        return (
            self.measured.get("loss_formula") is None
            and known is not None
            and right >= known.get("best_accuracy", 2.0) - 0.01
            and loss < 0.9 * self.measured["initial_loss"]
        )

    def _confirm_formula(self, targets: Targets, loss: float) -> None:
        """Name the loss again: at the start, where all predictions are alike, several formulas give the same number."""
        if self.measured.get("loss_formula") is not None:
            self.measured["loss_formula"] = identify(
                targets, loss, known=self.measured["loss_formula"], low_precision=self._low
            )
            self.measured["goal"] = self.goal()
