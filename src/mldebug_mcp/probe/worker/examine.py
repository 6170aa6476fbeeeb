"""The first pass: loss, gradients, and where a non-finite value comes from."""

from __future__ import annotations

import math
import re
import warnings
from typing import Any

import torch
from torch import nn

from .failure import KnownFailure
from .outputs import Capture
from .parameters import gradients
from .subject import Subject
from .trace import SHOWN, Trace


def first_pass(subject: Subject) -> tuple[dict[str, Any], torch.Tensor | None]:
    """Compute loss and gradients once, watched. Returns what was seen and the model's output.

    Raises:
        KnownFailure: the loss is not a scalar tensor, or an id has no row in its embedding.
    """
    subject.model.zero_grad(set_to_none=True)
    with Capture(subject.model) as capture, VocabularyCheck(subject.model), Trace(subject.model) as trace:
        loss = subject.compute_loss()
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        found = tuple(loss.shape) if isinstance(loss, torch.Tensor) else type(loss).__name__
        raise KnownFailure("entry", f"the loss is {found}, not a scalar tensor; reduce it, for example with .mean()")
    result: dict[str, Any] = {
        "initial_loss": float(loss.detach()),
        "loss_has_graph": loss.requires_grad,
        "activations": [{**one} for one in trace.units],
        "frames": sorted(trace.frames, key=lambda one: -(one["largest_out"] or 0.0))[:SHOWN],
        "output_dtype": str(capture.output.dtype) if isinstance(capture.output, torch.Tensor) else None,
        "model_calls": capture.calls,
        "in_training_mode": capture.in_training_mode,
    }
    if not math.isfinite(result["initial_loss"]):
        result["first_nonfinite"] = trace.culprit()
    elif loss.requires_grad:
        loss.backward()  # type: ignore[no-untyped-call]
        result["gradients"] = gradients(subject)
        if result["gradients"]["nonfinite_count"]:
            result["first_nonfinite"] = first_bad_backward(subject)
    return result, capture.tensor()


def first_bad_backward(subject: Subject) -> dict[str, Any] | None:
    """Run a pass backward until an operation gives a non-finite gradient; return that and the modules on the way."""
    seen: list[dict[str, Any]] = []

    def watch(name: str) -> Any:
        def look(gradient: torch.Tensor) -> None:
            value = float(gradient.detach().abs().max()) if gradient.numel() else 0.0
            largest = None if math.isnan(value) else value
            seen.append({"module": name, "op": "gradient of output", "largest_out": largest})

        return look

    def hook(name: str) -> Any:
        def attach(module: nn.Module, arguments: Any, output: Any) -> None:
            del module, arguments
            if isinstance(output, torch.Tensor) and output.requires_grad:
                output.register_hook(watch(name))  # type: ignore[no-untyped-call]

        return attach

    handles = [one.register_forward_hook(hook(name)) for name, one in subject.model.named_modules() if name]
    subject.model.zero_grad(set_to_none=True)
    try:
        loss = subject.compute_loss()
        loss.backward()  # type: ignore[no-untyped-call]
    finally:
        for handle in handles:
            handle.remove()
    bad = next((i for i, one in enumerate(seen) if one["largest_out"] is None or math.isinf(one["largest_out"])), None)
    module = seen[bad]["module"] if bad is not None else next(_bad_parameters(subject), "")
    found = {"direction": "backward", "module": module, "op": _operation(subject), "frames": seen[: bad or 0][-SHOWN:]}
    subject.model.zero_grad(set_to_none=True)
    return found


def _bad_parameters(subject: Subject) -> Any:
    for name, one in subject.parameters():
        if one.grad is not None and not bool(torch.isfinite(one.grad).all()):
            yield name


def _operation(subject: Subject) -> str:
    """Return the operation whose backward gives NaN, as torch's anomaly detection names it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with torch.autograd.detect_anomaly():
                subject.compute_loss().backward()  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        named = re.search(r"Function '(\w+)'", str(error))
        return named[1] if named else ""
    return ""


class VocabularyCheck:
    """Raises a clear error for ids beyond the end of an embedding, for which CUDA would end the process."""

    def __init__(self, model: nn.Module) -> None:
        self._embeddings = [(name, one) for name, one in model.named_modules() if isinstance(one, nn.Embedding)]

    def __enter__(self) -> None:
        self._handles = [one.register_forward_pre_hook(self._check(name)) for name, one in self._embeddings]

    def __exit__(self, *error: object) -> None:
        for handle in self._handles:
            handle.remove()

    @staticmethod
    def _check(name: str) -> Any:
        def check(module: nn.Embedding, arguments: Any) -> None:
            ids = arguments[0] if arguments else None
            if not isinstance(ids, torch.Tensor) or not ids.numel():
                return
            highest, lowest = int(ids.max()), int(ids.min())
            if highest >= module.num_embeddings or lowest < 0:
                worst = highest if highest >= module.num_embeddings else lowest
                raise KnownFailure("vocabulary", f"id {worst} has no row in {name}, which has {module.num_embeddings}")

        return check
