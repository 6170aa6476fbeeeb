"""The sequence of a probe. Each phase reports what it measured, so that nothing is lost if a later one fails."""

from __future__ import annotations

import math
import time
from typing import Any

import torch

from .dependence import dependence
from .examine import first_pass
from .labels import describe_batch
from .modes import mode_modules
from .outputs import targets_of
from .parameters import LISTED, Movement, describe, gradients, initial_scale
from .precision import in_full_precision, is_low
from .report import Report
from .seeds import Again, other_seeds
from .subject import State, Subject
from .trace import Trace
from .training import Curve, Plan, find_rate, train, train_as_user
from .watch import watch_steps
from .yardstick import Yardstick

FOR_CONTRAST = 0.4
"""Share of the time left that is kept for the contrast."""


class Probe:
    """One probe of a subject.

    Args:
        subject: What is probed.
        report: Where it is written.
        job: The job as the host wrote it.
        deadline: Time (monotonic) by which training must have ended.
        again: Builds the subject again with another seed.
    """

    def __init__(self, subject: Subject, report: Report, job: dict[str, Any], deadline: float, again: Again) -> None:
        self.subject, self.report, self.job, self.deadline, self.again = subject, report, job, deadline, again
        self.measured = report.measured
        self.state = State(subject)
        self.yardstick = Yardstick(subject, self.measured)

    def run(self) -> None:
        """Measure everything, cheapest first."""
        self.measured.update(describe_batch(self.subject))
        self.report.enter("parameters")
        self.measured["parameters"] = describe(self.subject)
        self.measured["init"] = initial_scale(self.subject.model)
        self.report.enter("first pass")
        self.subject.model.train(self.subject.train_step is None or self.subject.model.training)
        seen, output = first_pass(self.subject)
        self.measured.update(seen)
        self.measured["mode_modules"] = mode_modules(self.subject.model)
        self._used_but_unregistered()
        self.state.restore()
        if not math.isfinite(seen["initial_loss"]):
            self._against_full_precision()
            self.yardstick.learn(targets_of(self.subject, output))
            return
        self.report.enter("dependence")
        self._dependence()
        self.yardstick.learn(targets_of(self.subject, output))
        if seen.get("first_nonfinite") is not None:
            self._against_full_precision()
        if seen["loss_has_graph"] or self.subject.train_step is not None:
            self._train()

    def _used_but_unregistered(self) -> None:
        """Of the parameters that are not registered, keep those that the loss depends on."""
        held = {id(one) for group in (self.subject.optimizer.param_groups if self.subject.optimizer else ())
                for one in group["params"]}  # fmt: skip
        used = [name for name, one in self.subject.hidden if one.grad is not None and id(one) not in held]
        self.measured["unregistered"] = used[:LISTED]

    def _dependence(self) -> None:
        found = dependence(self.subject)
        self.state.restore()
        self.measured["dependence"] = found
        if self.subject.causal is None and "sees_future" in found:
            self.subject.causal = not found["sees_future"]

    def _plan(self, steps: int) -> Plan:
        def watch(number: int, loss: float) -> None:
            self.report.progress(number + 1, steps, loss)

        return Plan(steps, self.yardstick.goal(), self.deadline, self.job.get("clip"), self.job["optimizer"], watch)

    def _train(self) -> None:
        users = self.subject.train_step is not None or self.subject.optimizer is not None
        self.measured["goal"] = self.yardstick.goal()
        if users:
            self.report.enter("watched steps")
            self.measured.update(watch_steps(self.subject, self.state, self._plan(1)))
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
            self.measured["contrast"] = {**own.as_dict(), "memorised": self._memorised(own)}
        self.report.enter("other seeds")
        self.state.restore()
        plan, job = self._plan(self.job["steps"]), self.job
        self.measured["seeds"] = other_seeds(
            self.subject, curve, plan, rate=job.get("learning_rate"), seed=job["seed"], again=self.again,
            report=self.report,
        )  # fmt: skip

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
        outcome = self.yardstick.outcome()
        self.measured["outcome"] = outcome
        self.measured["memorised"] = self.yardstick.memorised(curve, outcome)
        self.subject.model.zero_grad(set_to_none=True)
        loss = self.subject.compute_loss()
        if loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]
            self.measured["gradients_after"] = gradients(self.subject)
            self.subject.model.zero_grad(set_to_none=True)

    def _memorised(self, curve: Curve) -> bool:
        return self.yardstick.memorised(curve, self.yardstick.outcome())

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
        if not is_low(self.subject):
            frame = self.measured.get("first_nonfinite") or {}
            if frame.get("dtype") not in ("float16", "bfloat16"):
                return
        self.measured["full_precision"] = in_full_precision(self.subject)
