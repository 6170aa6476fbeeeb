"""The sequence of a probe. Each phase reports what it measured, so that nothing is lost if a later one fails."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable
from typing import Any

import torch

from .examine import Trace, dependence, first_pass, repeated_losses
from .losses import Yardstick, in_full_precision, is_low
from .outputs import describe_batch, targets_of, token_ids
from .parameters import MAX_NAMES_LISTED, Movement, alike_units, describe, gradients, initial_scale, mode_modules, stale
from .report import KnownFailure, Report
from .subject import State, Subject, leaves, mapped
from .training import Curve, Plan, find_rate, train, train_as_user, watch_steps

OTHER_SEEDS = 2
"""Further seeds with which training is repeated."""
MAX_SHARE_OF_TIME_LEFT = 0.25
"""Share of the time left that other seeds may take: a separate question, asked only if it is cheap."""
MAX_REMADE_PARAMETERS = 3_000_000
"""Parameters above which a second model is not made."""
Again = Callable[[int], Subject]
"""Builds the subject again with a seed."""


def other_seeds(
    subject: Subject, first: Curve, plan: Plan, *, rate: float | None, seed: int, again: Again, report: Report
) -> dict[str, Any] | None:
    """Train with other seeds as in the first run, and return how each run ended, the first among them.

    The subject has its initial weights, and is built `again` with each seed. `rate` is None where the user's step
    trains.

    Returns:
        `fixed`: the user's code sets its seed itself, so ours changes nothing. None where it takes too long.
    """
    if (
        first.ended not in ("goal", "steps")
        or sum(parameter.numel() for parameter in subject.model.parameters()) > MAX_REMADE_PARAMETERS
    ):
        return None
    if OTHER_SEEDS * (first.seconds + subject.build_seconds) > MAX_SHARE_OF_TIME_LEFT * (
        plan.deadline - time.monotonic()
    ):
        return None
    runs = [_ending(seed, first)]
    try:
        for number in range(seed + 1, seed + 1 + OTHER_SEEDS):
            other = again(number)
            if _has_equal_weights(subject, other):
                return {"fixed": True, "runs": runs}
            if other.train_step is None:
                other.batch = subject.batch
            runs.append(_ending(number, _trained(other, plan, rate)))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code, which may not bear a second call
        report.note(f"other seeds were not tried: {type(error).__name__} was raised when everything was built again")
        return None
    return {"fixed": False, "runs": runs}


def _trained(other: Subject, plan: Plan, rate: float | None) -> Curve:
    other.model.train()
    if rate is not None:
        return train(other, plan, rate)
    return train_as_user(other, plan)


def _ending(seed: int, curve: Curve) -> dict[str, Any]:
    last = curve.losses[-1] if curve.losses else None
    return {"seed": seed, "ended": curve.ended, "final_loss": last}


def _has_equal_weights(subject: Subject, other: Subject) -> bool:
    pairs = zip(subject.model.parameters(), other.model.parameters(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


# The sequence of a probe. Each phase reports what it measured, so that nothing is lost if a later one fails.


FOR_CONTRAST = 0.4
"""Share of the time left that is kept for the contrast, or for the same training with the same draws at each step."""
SLOWER_RATE_SHARE = 0.1
"""Share of a searched learning rate that is tried where the batch is not memorised at that rate. Chosen: a sound GPT-2
was memorised at 1e-3 to 1e-2 and not at 3e-2, which did best over the first steps."""


class Probe:
    """One probe of a subject, which is built `again` with another seed; training ends by the deadline (monotonic)."""

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
        first, output = first_pass(self.subject)
        self.measured.update(first)
        self.measured["mode_modules"] = mode_modules(self.subject.model)
        self._used_but_unregistered()
        self.state.restore()
        if not math.isfinite(first["initial_loss"]):
            self._against_full_precision()
            self.yardstick.learn(targets_of(self.subject, output))
            return
        self.report.enter("second call")
        self.measured.update(repeated_losses(self.subject))
        self.state.restore()
        self.report.enter("dependence")
        self._dependence()
        self.yardstick.learn(targets_of(self.subject, output))
        if first.get("first_nonfinite") is not None:
            self._against_full_precision()
        if first["loss_has_graph"] or self.subject.train_step is not None:
            self._train()

    def _used_but_unregistered(self) -> None:
        """Of the parameters that are not registered, keep those that the loss depends on."""
        optimized = set(map(id, self.subject.optimized))
        used = [
            name
            for name, parameter in self.subject.hidden
            if parameter.grad is not None and id(parameter) not in optimized
        ]
        self.measured["unregistered"] = used[:MAX_NAMES_LISTED]
        if self.subject.optimizer is not None:
            self.measured["parameters"]["stale_in_optimizer"] = len(stale(self.subject))

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
        self._measure_end(curve)
        if users and curve.ended != "goal" and not self.measured.get("memorised"):
            self.report.enter("contrast")
            self.state.restore()
            self.subject.model.train()
            own = self._own_way()
            self.measured["contrast"] = {**own.as_dict(), "memorised": self._memorised(own)}
        if self._draws_anew and not self.measured.get("memorised"):
            self.report.enter("same draws")
            self._with_same_draws()
        self.report.enter("other seeds")
        self.state.restore()
        plan = self._plan(self.job["steps"])
        self.measured["seeds"] = other_seeds(
            self.subject, curve, plan, rate=curve.learning_rate, seed=self.job["seed"], again=self.again,
            report=self.report,
        )  # fmt: skip

    @property
    def _draws_anew(self) -> bool:
        """Whether two calls of the loss with nothing changed were apart at all; how far counts later."""
        losses = self.measured.get("repeated_losses") or [0.0]
        return bool(max(losses) > min(losses))

    def _with_same_draws(self) -> None:
        """Train once more, with the same seed before each loss: then the loss can be compared from step to step."""
        self.state.restore()
        self.subject.draws = self.job["seed"]
        try:
            curve = self._own_way()
            result = {**curve.as_dict(), "memorised": self._memorised(curve)}
            if (ending := self._gradients_now()) is not None:
                result["last_gradient"] = ending["norm"]
            self.measured["same_draws"] = result
        finally:
            self.subject.draws = None

    def _gradients_now(self) -> dict[str, Any] | None:
        if not self.subject.backward().requires_grad:
            return None
        found = gradients(self.subject)
        self.subject.model.zero_grad(set_to_none=True)
        return found

    def _users_way(self) -> Curve:
        plan = self._plan(self.job["steps"])
        # If it fails, the probe's own loop is the contrast, which needs time too.
        plan.deadline -= FOR_CONTRAST * (plan.deadline - time.monotonic())
        return train_as_user(self.subject, plan)

    def _own_way(self) -> Curve:
        rate = self.job.get("learning_rate")
        plan = self._plan(self.job["steps"])
        if self._draws_anew and self.subject.draws is None:
            plan.deadline -= FOR_CONTRAST * (plan.deadline - time.monotonic())
        self.subject.model.train()
        if rate is None:
            rate, tried = find_rate(self.subject, self._plan(self.job["steps"]), self.state)
            self.measured["rates_tried"] = tried
        movement = Movement(self.subject)
        first = train(self.subject, Plan(1, -math.inf, self.deadline, plan.clip, plan.optimizer), rate)
        if first.losses and math.isfinite(first.losses[0]):
            self.measured.setdefault("update_ratio", movement.ratio())
        self.state.restore()
        curve = train(self.subject, plan, rate)
        searched = self.job.get("learning_rate") is None
        return self._slower(curve, plan, rate) if searched and curve.ended in ("steps", "not_finite") else curve

    def _slower(self, curve: Curve, plan: Plan, rate: float) -> Curve:
        """Train again at a lower rate: the one that does best over the first steps may be too high for all of them.

        Returns that curve where it reaches the goal; else the first one, with the weights that it came to.
        """
        reached = State(self.subject)
        self.state.restore()
        slower = train(self.subject, plan, rate * SLOWER_RATE_SHARE)
        if slower.ended == "goal":
            self.report.note(
                f"not memorised at a learning rate of {rate:g}; what is shown is of {rate * SLOWER_RATE_SHARE:g}"
            )
            return slower
        reached.restore()
        self.report.note(f"not memorised at a learning rate of {rate:g}, nor at {rate * SLOWER_RATE_SHARE:g}")
        return curve

    def _measure_end(self, curve: Curve) -> None:
        """Measure what training came to, in training and in evaluation mode."""
        self.report.enter("outcome")
        if curve.losses and not math.isfinite(curve.losses[-1]):
            self._find_nonfinite()
            return
        outcome = self.yardstick.outcome()
        self.measured["outcome"] = outcome
        self.measured["memorised"] = self.yardstick.memorised(curve, outcome)
        self.measured["alike_units"] = alike_units(self.subject.model)
        if (ending := self._gradients_now()) is not None:
            self.measured["gradients_after"] = ending

    def _memorised(self, curve: Curve) -> bool:
        return self.yardstick.memorised(curve, self.yardstick.outcome())

    def _find_nonfinite(self) -> None:
        """Look at a pass with the parameters as they are now: the last step before may have spoilt them."""
        with torch.no_grad(), Trace(self.subject.model) as trace:
            loss = float(self.subject.compute_loss())
        if not math.isfinite(loss):
            self.measured.setdefault("first_nonfinite", trace.culprit())

    def _against_full_precision(self) -> None:
        """Repeat the first pass in 32 bits, if any of it was in fewer."""
        if not is_low(self.subject):
            frame = self.measured.get("first_nonfinite") or {}
            if frame.get("dtype") not in ("float16", "bfloat16"):
                return
        self.measured["full_precision"] = in_full_precision(self.subject)


# Where and in which precision to compute, and what to do when memory runs out.


DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def choose_device(wanted: str) -> torch.device:
    """Return the device: the one named, or the first of CUDA, MPS and CPU that works.

    Raises:
        KnownFailure: the named one is not here.
    """
    if wanted != "auto":
        try:
            device = torch.device(wanted)
            torch.empty(1, device=device)
        except (RuntimeError, AssertionError) as error:
            first = str(error).splitlines()[0]
            raise KnownFailure("device", f"device {wanted!r} cannot be used here ({first}); try auto or cpu") from None
        return device
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an error says that memory ran out, on any device."""
    if isinstance(error, (MemoryError, torch.cuda.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and ("out of memory" in str(error) or "not enough memory" in str(error)
                                                or "can't allocate memory" in str(error))  # fmt: skip


FEWEST_POSITIONS = 8
"""Positions that rows keep at least when they are halved."""


def probe_what_fits(make: Callable[[], Probe], report: Report) -> None:
    """Run a probe; whenever memory runs out, halve the rows of its batch, then the positions, and begin again.

    The user's own loop holds its batch itself: that cannot be halved, and the error is raised.
    """
    before = dict(report.measured)
    probe = make()
    while not _ran(probe):
        # Outside the handler: its error would keep the frames, and with them the tensors, of the failed pass.
        report.measured.clear()
        report.measured.update(before)
        probe.state.restore()
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        report.note(f"memory ran out: the probe began again with {_halve(probe.subject)}")
        probe = make()


def _ran(probe: Probe) -> bool:
    """Run a probe. Returns False if memory ran out and less may do."""
    try:
        probe.run()
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error) or not _can_be_halved(probe.subject):
            raise
        return False
    return True


def _can_be_halved(subject: Subject) -> bool:
    rows, positions = _size(subject)
    return subject.train_step is None and (rows > 1 or positions >= 2 * FEWEST_POSITIONS)


def _size(subject: Subject) -> tuple[int, int]:
    """Return the batch's rows, 0 if unknown, and its positions, 0 unless it holds token ids."""
    first = next((tensor for _, tensor in leaves(subject.batch) if tensor.ndim), None)
    ids = token_ids(subject)
    return 0 if first is None else len(first), 0 if ids is None else ids.shape[1]


def _halve(subject: Subject) -> str:
    """Halve the batch of a subject and say what is left of it."""
    rows, positions = _size(subject)
    if rows > 1:
        subject.batch = _cut(subject.batch, 0, rows, rows // 2)
        return f"{rows // 2} of {rows} rows"
    subject.batch = _cut(subject.batch, 1, positions, positions // 2)
    return f"{positions // 2} of {positions} positions"


def _cut(batch: Any, dimension: int, whole: int, kept: int) -> Any:
    def first(_: object, tensor: torch.Tensor) -> torch.Tensor:
        fits = tensor.ndim > dimension and tensor.shape[dimension] == whole
        return tensor.narrow(dimension, 0, kept) if fits else tensor

    return mapped(batch, first)
