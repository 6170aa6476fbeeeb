"""The sequence of a probe. Each phase reports what it measured, so that nothing is lost if a later one fails."""

from __future__ import annotations

import math
import time
from typing import Any

import torch

from . import reference
from .dependence import dependence
from .examine import first_bad_backward, first_pass
from .losses import accuracy, cross_entropy, identify
from .outputs import IGNORED, Capture, Targets, targets_of, token_ids
from .parameters import LISTED, Movement, describe, gradients, initial_scale
from .report import Report
from .subject import State, Subject
from .trace import Trace
from .training import Curve, Plan, find_rate, train, train_as_user
from .tree import at, inputs, labels_path
from .watch import StepWatch

WATCHED_STEPS = 3
MEMORISED = 0.05
"""Share of the distance between a uniform guess and the least possible loss that may be left: chosen, so that each
label has a probability near 0.8 or above with a vocabulary of 100, and above 0.55 with one of 100,000."""
FOR_CONTRAST = 0.4
"""Share of the time left that is kept for the contrast."""
SETTLING_PASSES = 30
"""Passes that let BatchNorm's running statistics (momentum 0.1) settle: 0.9^30 = 4 % of the start is left."""


class Probe:
    """One probe of a subject.

    Args:
        subject: What is probed.
        report: Where it is written.
        job: The job as the host wrote it.
        deadline: Time (monotonic) by which training must have ended.
    """

    def __init__(self, subject: Subject, report: Report, job: dict[str, Any], deadline: float) -> None:
        self.subject, self.report, self.job, self.deadline = subject, report, job, deadline
        self.measured = report.measured
        self.state = State(subject)
        self.shifted = False

    def run(self) -> None:
        """Measure everything, cheapest first."""
        self._batch()
        self.report.enter("parameters")
        self.measured["parameters"] = describe(self.subject)
        self.measured["init"] = initial_scale(self.subject.model)
        self.report.enter("first pass")
        self.subject.model.train(self.subject.train_step is None or self.subject.model.training)
        seen, output = first_pass(self.subject)
        self.measured.update(seen)
        self.measured["mode_modules"] = _mode_modules(self.subject.model)
        self._used_but_unregistered()
        self.state.restore()
        if not math.isfinite(seen["initial_loss"]):
            self._against_full_precision()
            self._loss(targets_of(self.subject, output))
            return
        self.report.enter("dependence")
        self._dependence()
        self._loss(targets_of(self.subject, output))
        if seen.get("first_nonfinite") is not None:
            self._against_full_precision()
        if seen["loss_has_graph"] or self.subject.train_step is not None:
            self._train()

    def _used_but_unregistered(self) -> None:
        """Of the parameters that the model does not know of, keep those that the loss depends on."""
        held = {id(one) for group in (self.subject.optimizer.param_groups if self.subject.optimizer else ())
                for one in group["params"]}  # fmt: skip
        used = [name for name, one in self.subject.hidden if one.grad is not None and id(one) not in held]
        self.measured["unregistered"] = used[:LISTED]

    def _batch(self) -> None:
        subject = self.subject
        path = labels_path(subject.batch)
        given = inputs(subject.batch)
        self.measured["inputs_finite"] = all(
            bool(torch.isfinite(one).all()) for _, one in given if one.is_floating_point()
        )
        if path is None:
            return
        labels = at(subject.batch, path)
        if not labels.is_floating_point():
            self.measured["trained_labels"] = int((labels != IGNORED).sum())
        ids = token_ids(subject)
        if ids is not None and ids.shape == labels.shape and not labels.is_floating_point():
            self.measured["labels_against_ids"] = _relation(ids, labels)

    @property
    def _low(self) -> bool:
        return _is_low(self.subject) or self.measured.get("output_dtype") in ("torch.float16", "torch.bfloat16")

    def _dependence(self) -> None:
        found = dependence(self.subject)
        self.state.restore()
        self.measured["dependence"] = found
        if self.subject.causal is None and "sees_future" in found:
            self.subject.causal = not found["sees_future"]

    def _loss(self, targets: Targets | None) -> None:
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

    def _is_shifted(self, targets: Targets, name: str | None) -> bool:
        if targets.kind != "tokens":
            return False
        if name is not None:
            return "shifted" in name
        return self.subject.causal is True and token_ids(self.subject) is not None

    def goal(self) -> float:
        """Return the loss at which the batch counts as memorised; minus infinity where there is no telling."""
        initial, known = self.measured["initial_loss"], self.measured.get("reference")
        formula = self.measured.get("loss_formula")
        if known is None or formula is None:
            return MEMORISED * initial if initial > 0 else -math.inf
        if "negated" in formula:
            return -math.inf
        scale = float(known["trained_labels"]) if "summed" in formula else 1
        least, guess = float(known["least"]), float(known.get("variance", known["uniform"]))
        return scale * (least + MEMORISED * max(0.0, guess - least))

    def _plan(self, steps: int) -> Plan:
        def watch(number: int, loss: float) -> None:
            self.report.progress(number + 1, steps, loss)

        return Plan(steps, self.goal(), self.deadline, self.job.get("clip"), self.job["optimizer"], watch)

    def _train(self) -> None:
        users = self.subject.train_step is not None or self.subject.optimizer is not None
        self.measured["goal"] = self.goal()
        if users:
            self.report.enter("watched steps")
            self._watched()
        self.report.enter("training")
        movement = Movement(self.subject)
        curve = self._users_way() if users else self._own_way()
        self.measured["curve"] = curve.as_dict()
        self.measured["movement"] = movement.still()
        self._after(curve)
        if users and curve.ended != "goal" and not self.measured.get("memorised"):
            self.report.enter("contrast")
            self.state.restore()
            self.subject.model.train()
            own = self._own_way()
            self.measured["contrast"] = {**own.as_dict(), "memorised": self._memorised(own, self._outcome())}

    def _watched(self) -> None:
        """Watch a few of the user's steps, and compare the first with the gradient of the user's own loss."""
        subject, losses = self.subject, []
        subject.model.zero_grad(set_to_none=True)
        loss = subject.compute_loss()
        uphill = None
        if loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]
        slopes = [(one, one.grad.detach().clone(), one.detach().clone()) for _, one in subject.parameters()
                  if one.grad is not None]  # fmt: skip
        self.state.restore()
        plan = self._plan(1)
        movement = Movement(subject)
        with StepWatch(subject) as watch:
            for number in range(WATCHED_STEPS):
                losses.extend(train_as_user(subject, plan).losses)
                if number == 0:
                    uphill = _cosine_of_step(slopes)
                    self.measured["update_ratio"] = movement.ratio()
        self.measured["in_training_mode"] = watch.in_training_mode
        self.measured["watched"] = {**watch.result(len(losses)), "uphill": uphill, "losses": losses}
        self.state.restore()

    def _users_way(self) -> Curve:
        plan = self._plan(self.job["steps"])
        # If it fails, the probe's own loop is the contrast, which needs time too.
        plan.deadline -= FOR_CONTRAST * (plan.deadline - time.monotonic())
        return train_as_user(self.subject, plan)

    def _own_way(self) -> Curve:
        rate = self.job.get("learning_rate")
        plan = self._plan(self.job["steps"])
        self.subject.model.train()
        if rate is None:
            rate, tried = find_rate(self.subject, self._plan(self.job["steps"]), self.state)
            self.measured["rates_tried"] = tried
        movement = Movement(self.subject)
        first = train(self.subject, Plan(1, -math.inf, self.deadline, plan.clip, plan.optimizer), rate)
        if first.losses and math.isfinite(first.losses[0]):
            self.measured.setdefault("update_ratio", movement.ratio())
        self.state.restore()
        return train(self.subject, plan, rate)

    def _after(self, curve: Curve) -> None:
        """Measure what training came to, in training and in evaluation mode."""
        self.report.enter("outcome")
        if curve.losses and not math.isfinite(curve.losses[-1]):
            self._find_nonfinite()
            return
        outcome = self._outcome()
        self.measured["outcome"] = outcome
        self.measured["memorised"] = self._memorised(curve, outcome)
        self.subject.model.zero_grad(set_to_none=True)
        loss = self.subject.compute_loss()
        if loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]
            self.measured["gradients_after"] = gradients(self.subject)
            self.subject.model.zero_grad(set_to_none=True)

    def _outcome(self) -> dict[str, Any]:
        """Return loss and accuracy on the batch in both modes."""
        model, result = self.subject.model, {}
        was = model.training
        for mode in ("train", "evaluation"):
            model.train(mode == "train")
            with torch.no_grad(), Capture(model) as capture:
                if mode == "train":
                    for _ in range(SETTLING_PASSES if _has_batch_norm(model) else 0):
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

    def _confirm_formula(self, targets: Targets, loss: float) -> None:
        """Name the loss again: at the start, where all predictions are alike, several formulas give the same number."""
        if self.measured.get("loss_formula") is not None:
            self.measured["loss_formula"] = identify(
                targets, loss, known=self.measured["loss_formula"], low_precision=self._low
            )
            self.measured["goal"] = self.goal()

    def _memorised(self, curve: Curve, outcome: dict[str, Any]) -> bool:
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

    def _find_nonfinite(self) -> None:
        """Look at a pass with the parameters as they are now: the last step before may have spoilt them."""
        with torch.no_grad(), Trace(self.subject.model) as trace:
            loss = float(self.subject.compute_loss())
        if not math.isfinite(loss):
            self.measured.setdefault("first_nonfinite", trace.culprit())
        self.measured["parameters_finite_at_end"] = all(
            bool(torch.isfinite(one).all()) for _, one in self.subject.parameters()
        )

    def _against_full_precision(self) -> None:
        """Repeat the first pass in 32 bits, if any of it was in fewer."""
        if not _is_low(self.subject):
            frame = self.measured.get("first_nonfinite") or {}
            if frame.get("dtype") not in ("float16", "bfloat16"):
                return
        self.measured["full_precision"] = in_full_precision(self.subject)


def in_full_precision(subject: Subject) -> dict[str, Any]:
    """Return loss and finiteness of gradients of one pass with everything in 32 bits."""
    import copy

    from .tree import mapped

    model = copy.deepcopy(subject.model).float()
    batch = mapped(subject.batch, lambda _, one: one.float() if one.is_floating_point() else one)
    usual = torch.autocast.__init__

    def disabled(self: Any, *arguments: Any, **keywords: Any) -> None:
        keywords["enabled"] = False
        usual(self, *arguments[:2], **keywords)

    torch.autocast.__init__ = disabled  # type: ignore[method-assign]
    try:
        loss = subject.loss(model, batch)
        if loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]
        finite = all(bool(torch.isfinite(one.grad).all()) for one in model.parameters() if one.grad is not None)
        return {"loss": float(loss.detach()), "gradients_finite": finite}
    except RuntimeError:
        return {}  # the loss function is tied to its precision
    finally:
        torch.autocast.__init__ = usual  # type: ignore[method-assign]


def _is_low(subject: Subject) -> bool:
    low = (torch.float16, torch.bfloat16)
    return subject.dtype in low or any(one.dtype in low for _, one in subject.parameters())


def _mode_modules(model: torch.nn.Module) -> list[str]:
    """Return the modules that act differently in evaluation mode."""
    found = []
    for name, one in model.named_modules():
        dropout = isinstance(one, torch.nn.modules.dropout._DropoutNd) and one.p > 0
        if dropout or isinstance(one, torch.nn.modules.batchnorm._BatchNorm):
            found.append(f"{name} ({type(one).__name__})")
    return found[:LISTED]


def _has_batch_norm(model: torch.nn.Module) -> bool:
    return any(isinstance(one, torch.nn.modules.batchnorm._BatchNorm) for one in model.modules())


def _relation(ids: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    """Return which share of the trained labels is the id at the same position, the next, or the one before."""
    shares = {}
    for name, own, other in (
        ("same", labels, ids),
        ("next", labels[:, :-1], ids[:, 1:]),
        ("previous", labels[:, 1:], ids[:, :-1]),
    ):
        trained = own >= 0
        count = int(trained.sum())
        shares[name] = float((own == other)[trained].float().mean()) if count else math.nan
    trained = labels >= 0
    under = ids[trained]
    shares["under_one_id"] = float((under == under.mode().values).float().mean()) if len(under) else math.nan
    return shares


def _cosine_of_step(slopes: list[tuple[Any, torch.Tensor, torch.Tensor]]) -> float | None:
    """Return the cosine between what a step did and the slope of the loss: above 0, the step went uphill."""
    if not slopes:
        return None
    step = torch.cat([(one.detach() - before).float().flatten() for one, _, before in slopes])
    slope = torch.cat([gradient.float().flatten() for _, gradient, _ in slopes])
    if not float(step.norm()) or not float(slope.norm()) or not bool(torch.isfinite(step).all()):
        return None
    return float(torch.nn.functional.cosine_similarity(step, slope, dim=0))


__all__ = ["Probe", "first_bad_backward", "in_full_precision"]
