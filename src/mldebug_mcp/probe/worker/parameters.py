"""Parameters. How they start, which gradient they get, whether they move, and what acts differently in evaluation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

from .subject import Subject

MAX_NAMES_LISTED = 12
"""Names given per list; counts are of all."""
MAX_VANISHED_RATIO = 1e-6
"""A gradient this far below the largest is tiny: Adam's eps (1e-8) and rounding begin to decide the update."""
MAX_UNIT_DIFFERENCE_RATIO = 1e-6
"""Share of the largest weight by which units differ that are alike: float32 rounds at 1e-7 of it."""
MIN_WEIGHT_SCALE = 1e-6
"""What the largest weight is taken for, at least: units of a layer of zeros are alike."""


def hidden_parameters(model: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """Return parameters in plain lists and dicts of a module, where `parameters()` does not find them."""
    known = {id(parameter) for parameter in model.parameters()}
    found: dict[int, tuple[str, nn.Parameter]] = {}
    for owner, module in model.named_modules():
        for name, value in vars(module).items():
            if name in ("_parameters", "_buffers", "_modules") or name.endswith("_hooks"):
                continue
            for path, parameter in _inside(value, f"{owner}.{name}".lstrip("."), depth=2):
                if id(parameter) not in known and parameter.requires_grad:
                    found.setdefault(id(parameter), (path, parameter))
    return list(found.values())


def _inside(value: Any, path: str, depth: int) -> Iterator[tuple[str, nn.Parameter]]:
    if isinstance(value, nn.Parameter):
        yield path, value
    elif isinstance(value, nn.Module):
        yield from ((f"{path}.{name}", parameter) for name, parameter in value.named_parameters())
    elif depth and isinstance(value, (list, tuple)):
        for index, item in enumerate(value[:1000]):
            yield from _inside(item, f"{path}[{index}]", depth - 1)
    elif depth and isinstance(value, Mapping):
        for key, item in list(value.items())[:1000]:
            yield from _inside(item, f"{path}[{key!r}]", depth - 1)


def describe(subject: Subject) -> dict[str, Any]:
    """Return counts of parameters and how they stand to training."""
    parameters = subject.parameters()
    frozen = [name for name, parameter in parameters if not parameter.requires_grad]
    result: dict[str, Any] = {
        "frozen": frozen[:MAX_NAMES_LISTED],
        "frozen_share": _share(((parameter, not parameter.requires_grad) for _, parameter in parameters)),
        "nonfinite_at_start": [name for name, parameter in parameters if not bool(torch.isfinite(parameter).all())][
            :MAX_NAMES_LISTED
        ],
    }
    if subject.optimizer is not None:
        optimized = set(map(id, subject.optimized))
        outside = [name for name, parameter in parameters if parameter.requires_grad and id(parameter) not in optimized]
        result["not_in_optimizer"] = outside[:MAX_NAMES_LISTED]
        result["not_in_optimizer_share"] = _share(
            ((parameter, id(parameter) not in optimized) for _, parameter in parameters if parameter.requires_grad)
        )
        result["learning_rates"] = sorted({float(group["lr"]) for group in subject.optimizer.param_groups})
        result["decay_per_step"] = max(
            float(group["lr"]) * float(group.get("weight_decay", 0.0)) for group in subject.optimizer.param_groups
        )
        result["stale_in_optimizer"] = len(stale(subject))
    return result


def stale(subject: Subject) -> list[nn.Parameter]:
    """Return what the optimizer holds that is not a parameter of the model and got no gradient, as far as is known."""
    known = {id(parameter) for _, parameter in subject.parameters()}
    return [parameter for parameter in subject.optimized if id(parameter) not in known and parameter.grad is None]


def _share(marked: Iterator[tuple[nn.Parameter, bool]]) -> float:
    total = counted = 0
    for parameter, is_marked in marked:
        total += parameter.numel()
        counted += parameter.numel() * is_marked
    return counted / total if total else 0.0


def initial_scale(model: nn.Module) -> dict[str, Any]:
    """Return the weight matrices' standard deviations against the formulas for their width.

    The formula is sqrt(2 / (5 hidden)) (bekman_instabilities, "STD Init"). Embeddings are held against 1.
    """
    layers = []
    embeddings = {id(embedding.weight) for embedding in model.modules() if isinstance(embedding, nn.Embedding)}
    for name, module in model.named_modules():
        weight = getattr(module, "weight", None)
        if not isinstance(module, nn.Embedding) and id(weight) in embeddings:
            continue  # a head that shares the weights of an embedding begins as that does
        if isinstance(weight, nn.Parameter) and weight.ndim >= 2 and weight.is_floating_point():
            hidden = weight.shape[1] if isinstance(module, nn.Embedding) else weight[0].numel()
            deviation = float(weight.detach().float().std(unbiased=False))
            usual = 1.0 if isinstance(module, nn.Embedding) else math.sqrt(2 / (5 * hidden))
            layers.append({"name": name, "std": deviation,
                           "usual_init": math.sqrt(2 / (5 * hidden)), "factor": deviation / usual})  # fmt: skip
    layers.sort(key=lambda layer: -layer["factor"])
    return {"largest": layers[:MAX_NAMES_LISTED]}


def gradients(subject: Subject) -> dict[str, Any]:
    """Sort the trainable parameters by the gradient that backward left: none, zero, non-finite or tiny."""
    norms: dict[str, float] = {}
    none, nonfinite, elements = [], [], {}
    for name, parameter in subject.parameters():
        if not parameter.requires_grad:
            continue
        elements[name] = parameter.numel()
        if parameter.grad is None:
            none.append(name)
            continue
        norm = float(parameter.grad.detach().float().norm())
        norms[name] = norm
        if not math.isfinite(norm):
            nonfinite.append(name)
    largest = max((norm for norm in norms.values() if math.isfinite(norm)), default=0.0)
    zero = [name for name, norm in norms.items() if norm == 0]
    tiny = [name for name, norm in norms.items() if 0 < norm < MAX_VANISHED_RATIO * largest]
    total = max(1, sum(elements.values()))

    def share(names: list[str]) -> float:
        return sum(elements[name] for name in names) / total

    finite = [norm for norm in norms.values() if math.isfinite(norm)]
    return {
        "norm": math.sqrt(sum(norm**2 for norm in finite)), "largest": largest, "trainable": len(elements),
        "none": none[:MAX_NAMES_LISTED], "none_share": share(none),
        "zero": zero[:MAX_NAMES_LISTED], "zero_share": share(zero),
        "nonfinite": nonfinite[:MAX_NAMES_LISTED], "nonfinite_count": len(nonfinite),
        "tiny": tiny[:MAX_NAMES_LISTED], "tiny_share": share(tiny),
    }  # fmt: skip


def alike_units(model: nn.Module) -> list[str]:
    """Return the layers whose units all have the same weights: they give and learn the same for ever."""
    found = []
    for name, module in model.named_modules():
        weight = getattr(module, "weight", None)
        if not isinstance(weight, nn.Parameter) or weight.ndim < 2 or len(weight) < 2:
            continue
        if weight.requires_grad and not isinstance(module, nn.Embedding):
            units = weight.detach().float().flatten(1)
            largest = max(float(units.abs().max()), MIN_WEIGHT_SCALE)
            if float((units - units[0]).abs().max()) <= MAX_UNIT_DIFFERENCE_RATIO * largest:
                found.append(name)
    return found[:MAX_NAMES_LISTED]


class Movement:
    """How far the parameters have moved since this was made."""

    def __init__(self, subject: Subject) -> None:
        self._start = [
            (name, parameter, parameter.detach().clone())
            for name, parameter in subject.parameters()
            if parameter.requires_grad
        ]

    def ratio(self) -> float | None:
        """Return the median over weight matrices of |change| / |weight|, the update-to-weight ratio after one step."""
        ratios = sorted(
            float((parameter.detach() - start).float().norm()) / norm
            for _, parameter, start in self._start
            if start.ndim >= 2 and (norm := float(start.float().norm())) > 0
        )
        return ratios[len(ratios) // 2] if ratios else None

    def rounded_away(self, gradients: Mapping[int, torch.Tensor]) -> float | None:
        """Return the share of the 16-bit elements with a gradient that a step did not change; None where none has.

        The gradients are those that the optimizer used, by the id of the parameter.
        """
        moved = total = 0
        for _, parameter, start in self._start:
            used = gradients.get(id(parameter))
            if used is not None and parameter.dtype in (torch.float16, torch.bfloat16):
                total += int((used != 0).sum())
                moved += int(((used != 0) & (parameter.detach() != start)).sum())
        return 1 - moved / total if total else None

    def still(self) -> dict[str, Any]:
        """Return which parameters have not moved at all."""
        still = [(name, parameter) for name, parameter, start in self._start if torch.equal(parameter.detach(), start)]
        total = sum(parameter.numel() for _, parameter, _ in self._start)
        return {
            "still": [name for name, _ in still][:MAX_NAMES_LISTED],
            "still_share": sum(parameter.numel() for _, parameter in still) / total if total else 1.0,
        }


def mode_modules(model: torch.nn.Module) -> list[str]:
    """Return the modules that act differently in evaluation mode."""
    found = []
    for name, dropout_nd in model.named_modules():
        dropout = isinstance(dropout_nd, torch.nn.modules.dropout._DropoutNd) and dropout_nd.p > 0
        if dropout or isinstance(dropout_nd, torch.nn.modules.batchnorm._BatchNorm):
            found.append(f"{name} ({type(dropout_nd).__name__})")
    return found[:MAX_NAMES_LISTED]


def has_batch_norm(model: torch.nn.Module) -> bool:
    """Tell whether a model keeps running statistics."""
    return any(isinstance(module, torch.nn.modules.batchnorm._BatchNorm) for module in model.modules())
