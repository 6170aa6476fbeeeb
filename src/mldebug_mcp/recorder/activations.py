"""What a model computes, at the steps that are looked into: dead and saturated units, logits, entropies, embeddings."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mldebug_mcp.recorder.late import Value

if TYPE_CHECKING:
    from torch import Tensor, nn

FLAT = frozenset({"ReLU", "ReLU6", "LeakyReLU", "GELU", "SiLU", "ELU", "Mish", "NewGELUActivation", "GELUActivation",
                  "SiLUActivation"})  # fmt: skip
"""Modules whose units can be dead: nothing comes out of them for any row."""
BOUNDED = {"Tanh": -1.0, "Sigmoid": 0.0, "Softsign": -1.0, "Hardtanh": -1.0, "Hardsigmoid": 0.0}
"""Modules whose values can stand at a bound: the lower one; the upper one is 1."""
AT_A_BOUND = 0.01
"""Share of the range of a bounded module that is its end."""
NOTHING = 1e-3
"""A value below this is nothing. Chosen: what is left of a GELU far below zero."""
NORMALISED = frozenset({"BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"})
"""Modules that keep running statistics, by which evaluation normalises."""
FEWEST_VALUES = 32
"""Values of a channel of which statistics are compared. Chosen: those of fewer are apart by chance."""
STATISTICS = "statistics_apart"
MOST_MODULES = 64
MOST_ROWS = 512
"""Rows of logits that are looked at."""


class Activations:
    """Measures the activations of one step by hooks that it takes away again.

    Args:
        model: The model.
        take: Gets each value by its name.
    """

    def __init__(self, model: nn.Module, take: Callable[[str, Value], None]) -> None:
        self._take = take
        self._handles: list[Any] = []
        self.seconds = 0.0
        """What the hooks of the last step took."""
        self._modules = [(name, module) for name, module in model.named_modules() if _is_measured(module)]
        self._modules = self._modules[:: -(-len(self._modules) // MOST_MODULES) or 1]

    def begin(self) -> None:
        """Add the hooks."""
        self.seconds = 0.0
        self._handles = [module.register_forward_hook(self._hook(name)) for name, module in self._modules]

    def end(self) -> None:
        """Take the hooks away."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _hook(self, name: str) -> Callable[..., None]:
        def measure(module: nn.Module, inputs: Value, output: Value) -> None:
            began = time.perf_counter()
            if type(module).__name__ in NORMALISED:
                if (apart := _statistics_apart(module, inputs[0].detach())) is not None:
                    self._take(f"{STATISTICS}/{name}", apart)
            elif isinstance(output, sys.modules["torch"].Tensor) and output.is_floating_point():
                for what, value in _of_module(module, output.detach()):
                    self._take(f"{what}/{name}", value)
            self.seconds += time.perf_counter() - began

        return measure


def _is_measured(module: nn.Module) -> bool:
    kind = type(module).__name__
    return kind in FLAT or kind in BOUNDED or kind in NORMALISED or kind == "Embedding"


def _of_module(module: nn.Module, output: Tensor) -> Iterable[tuple[str, Tensor]]:
    kind = type(module).__name__
    if kind == "Embedding":
        yield "embedding_norm", output.norm(dim=-1).mean()
    elif kind in FLAT:
        units = output.abs().flatten(0, -2) if output.dim() != 4 else output.abs().transpose(0, 1).flatten(1).T
        yield "units_dead", (units.amax(dim=0) < NOTHING).float().mean()
    else:
        low = BOUNDED[kind]
        edge = AT_A_BOUND * (1 - low)
        yield "saturated_units", ((output < low + edge) | (output > 1 - edge)).float().mean()


def _statistics_apart(module: Value, inputs: Tensor) -> Tensor | None:
    """Return how far the statistics of a batch are from the running ones, in standard deviations and their logarithms.

    A mean over channels. None where a module keeps none, does not train, or sees too few values for that.
    """
    channels = inputs.shape[1] if inputs.dim() > 1 else 0
    if not module.training or module.running_var is None or inputs.numel() < FEWEST_VALUES * max(channels, 1):
        return None
    variance, mean = sys.modules["torch"].var_mean(inputs.float(), dim=[0, *range(2, inputs.dim())])
    variance, running = variance + module.eps, module.running_var + module.eps
    found: Tensor = ((mean - module.running_mean).abs() / variance.sqrt() + (running / variance).log().abs() / 2).mean()
    return found


def of_outputs(output: Value, take: Callable[[str, Value], None]) -> None:
    """Take the size of the logits, the entropy of the answers, and of the attention where its weights are returned."""
    torch = sys.modules["torch"]
    logits = logits_of(output)
    if logits is not None and logits.is_floating_point() and logits.dim() >= 2 and logits.shape[-1] > 1:
        some = logits.detach().flatten(0, -2)
        some = some[:: max(1, len(some) // MOST_ROWS)].float()
        take("logits_abs_max", some.abs().amax())
        answers = torch.log_softmax(some, dim=-1)
        take("entropies/output", -(answers.exp() * answers).sum(dim=-1).mean())
    attentions = output.get("attentions") if isinstance(output, Mapping) else getattr(output, "attentions", None)
    for number, weights in enumerate(attentions or ()):
        if isinstance(weights, torch.Tensor):
            some = weights.detach().float().clamp(min=1e-9)
            take(f"entropies/attention.{number}", -(some * some.log()).sum(dim=-1).mean())


def logits_of(output: Value) -> Tensor | None:
    """Return the logits in what a model returns, None where there are none."""
    torch = sys.modules["torch"]
    if isinstance(output, torch.Tensor):
        return output  # type: ignore[no-any-return]
    found = output.get("logits") if isinstance(output, Mapping) else getattr(output, "logits", None)
    return found if isinstance(found, torch.Tensor) else None
