"""What a model is fed and computes, layer by layer, at the steps that are looked into."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from mldebug_mcp.core.conventions import IGNORED_LABEL
from mldebug_mcp.recorder.late import Sizes, Value, Vector, guarded
from mldebug_mcp.recorder.rows import alike, array_of, column_of

if TYPE_CHECKING:
    from torch import Tensor, nn

# The model layer by layer: norms of gradients and weights, and how far a step moves them.


LAYERS_MOST = 128
"""Layers that are distinguished. Chosen: readers keep 2000 metrics, and a layer has three."""
SAMPLED_WEIGHTS = 8192
"""Weights of a parameter that are compared before and after a step. Chosen: 1 % of error in the norm of a movement."""
NORM_EPSILON = 1e-12
"""Norm that is divided by at least: a layer of zeros has none."""


class Layers:
    """The parameters of a model by layer.

    Args:
        model: The model.
    """

    def __init__(self, model: nn.Module) -> None:
        self.layers = layers_of(model)
        self._before: list[Tensor] = []

    def gradients(self) -> Vector | None:
        """Return the norm of the gradient of each layer that has one."""
        found = {name: [p.grad for p in own if p.grad is not None] for name, own in self.layers.items()}
        found = {name: grads for name, grads in found.items() if grads}
        return _vector("grad_norm", list(found), _norms(found.values())) if found else None

    def weights(self) -> Vector | None:
        """Return the norm of the weights of each layer."""
        return _vector("weight_norm", list(self.layers), _norms(self.layers.values())) if self.layers else None

    def before_step(self) -> None:
        """Keep some of the weights of each layer, to compare them after the step."""
        self._before = [_sample(tensor).clone() for own in self.layers.values() for tensor in own]

    def moved(self) -> Vector | None:
        """Return how far the step moved each layer, as a share of its weights."""
        before, self._before = self._before, []
        if not before:
            return None
        weights = [_sample(tensor) for own in self.layers.values() for tensor in own]
        differences = sys.modules["torch"]._foreach_sub(weights, before)
        moved, had = (_norms(self._by_layer(tensors)) for tensors in (differences, before))
        return _vector("update_ratio", list(self.layers), moved / had.clamp(min=NORM_EPSILON))

    def _by_layer(self, tensors: Iterable[Tensor]) -> list[list[Tensor]]:
        """Return tensors, one for each parameter, by layer."""
        each = iter(tensors)
        return [list(islice(each, len(own))) for own in self.layers.values()]


def layers_of(model: nn.Module) -> dict[str, list[Tensor]]:
    """Return the trained parameters of a model by the module that holds them.

    Modules of a block that is repeated many times are taken together: `layers.3.attention.query` is `layers.3`.
    """
    owned = {
        name or "model": [parameter for parameter in module.parameters(recurse=False) if parameter.requires_grad]
        for name, module in model.named_modules()
    }
    owned = {name: parameters for name, parameters in owned.items() if parameters}
    if len(owned) <= LAYERS_MOST // 2:
        return owned
    together: dict[str, list[Tensor]] = {}
    for name, parameters in owned.items():
        together.setdefault(_block(name), []).extend(parameters)
    return dict(list(together.items())[:LAYERS_MOST])


def _block(name: str) -> str:
    """Return the path of a module up to its first number."""
    pieces = name.split(".")
    end = next((at + 1 for at, piece in enumerate(pieces) if piece.isdecimal()), len(pieces))
    return ".".join(pieces[:end])


def _sample(tensor: Tensor) -> Tensor:
    flat = tensor.detach().reshape(-1)
    return flat[:: max(1, flat.numel() // SAMPLED_WEIGHTS)]


def norms_of(tensors: Sequence[Tensor], order: float = 2.0) -> Tensor:
    """Return the norm of each of some tensors, in 32 bits; one call for all, as calls from Python are what it costs."""
    torch = sys.modules["torch"]
    with torch.no_grad():
        norms = torch._foreach_norm(tensors, order, torch.float32)
        try:
            found: Tensor = torch.stack(norms)
        except RuntimeError:  # they lie on several devices
            found = torch.stack([norm.to(norms[0].device) for norm in norms])
    return found


def _norms(groups: Iterable[Sequence[Tensor]]) -> Tensor:
    """Return the norm of the tensors of each group together."""
    torch = sys.modules["torch"]
    sizes = [len(group) for group in groups]
    each = norms_of([tensor for group in groups for tensor in group])
    if len(each) == len(sizes):
        return each
    groups_of = torch.repeat_interleave(torch.tensor(sizes)).to(each.device, non_blocking=True)
    found: Tensor = each.new_zeros(len(sizes)).index_add_(0, groups_of, each.square()).sqrt()
    return found


def _vector(what: str, names: Sequence[str], values: Tensor) -> Vector:
    return Vector([f"{what}/{name}" for name in names], values)


# What a model computes, at the steps that are looked into: dead and saturated units, logits, entropies, embeddings.


FLAT = frozenset({"ReLU", "ReLU6", "LeakyReLU", "GELU", "SiLU", "ELU", "Mish", "NewGELUActivation", "GELUActivation",
                  "SiLUActivation"})  # fmt: skip
"""Modules whose units can be dead: nothing comes out of them for any row."""
BOUNDED = {"Tanh": -1.0, "Sigmoid": 0.0, "Softsign": -1.0, "Hardtanh": -1.0, "Hardsigmoid": 0.0}
"""Modules whose values can be at a bound: the lower one; the upper one is 1."""
AT_A_BOUND = 0.01
"""Share of the range of a bounded module that is its end."""
MAX_DEAD_OUTPUT = 1e-3
"""A value below this is nothing. Chosen: what is left of a GELU far below zero."""
NORMALISED = frozenset({"BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"})
"""Modules that keep running statistics, by which evaluation normalises."""
FEWEST_VALUES = 32
"""Values of a channel whose statistics are compared. Chosen: those of fewer differ by chance."""
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
            began = time.thread_time()
            if type(module).__name__ in NORMALISED:
                if (apart := _statistics_apart(module, inputs[0].detach())) is not None:
                    self._take(f"{STATISTICS}/{name}", apart)
            elif isinstance(output, sys.modules["torch"].Tensor) and output.is_floating_point():
                for what, value in _of_module(module, output.detach()):
                    self._take(f"{what}/{name}", value)
            self.seconds += time.thread_time() - began

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
        yield "units_dead", (units.amax(dim=0) < MAX_DEAD_OUTPUT).float().mean()
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


# Where values that are not finite began: the first module of a forward pass that makes some of finite inputs.


ORIGIN_MOST = 8
"""Modules that are named."""


def origin_of(model: nn.Module, inputs: tuple[Value, Value] | None) -> dict[str, list[str]]:
    """Return what is not finite: columns under "inputs", modules under "weights", "outputs" and "gradients".

    The forward pass is made again with the batch of the step, without gradients, with the same random numbers; then
    statistics of normalisations are put back. Of outputs the first is where it began; of gradients the last layers.

    Args:
        model: The model.
        inputs: What it was called with, positional and by name; None where it may not be called again.
    """
    parameters = dict(model.named_parameters())
    found = {
        "inputs": _inputs(inputs) if inputs is not None else [],
        "weights": _named(name for name, parameter in parameters.items() if not _is_finite(parameter)),
        "outputs": _outputs(model, inputs) if inputs is not None else [],
        "gradients": _named(
            name
            for name, parameter in reversed(parameters.items())
            if parameter.grad is not None and not _is_finite(parameter.grad)
        ),
    }
    return {what: names for what, names in found.items() if names}


MAX_FOLLOWED = 32
"""Modules whose values are followed on a device. Chosen: each costs some microseconds in each step."""
MAX_HELD_BYTES = 32 * 2**20
"""Bytes of values that wait for their sizes together. Chosen: next to nothing of a device's memory."""


class FollowedModules:
    """Takes the largest size of what modules take and give, on the device where they compute.

    A size that is not finite shows such values. It is read late, when nothing waits for it: so the first module
    that made some of finite inputs is known although the pass cannot be made again: an update has spoilt the weights.

    Args:
        model: The model, whose modules or, where those are many, whose blocks are followed.
    """

    def __init__(self, model: nn.Module) -> None:
        self._handles = [module.register_forward_hook(self._hook(name)) for name, module in followed_modules(model)]
        self._is_on = False
        self._begin({})

    def begin(self, inputs: Mapping[str, Value]) -> None:
        """Begin a forward pass of the model.

        Args:
            inputs: What the model is called with, by name.
        """
        self._begin(inputs)
        self._is_on = bool(self._handles)

    def end(self) -> Sizes | None:
        """End it, and return its sizes."""
        self._is_on = False
        if not self._modules:
            return None
        self._reduce()
        found = Sizes(sys.modules["torch"].cat(self._sizes), partial(_lost_in_pass, self._inputs, self._modules))
        self._begin({})
        return found

    def leave(self) -> None:
        """Take the hooks away."""
        for handle in self._handles:
            handle.remove()

    def _begin(self, inputs: Mapping[str, Value]) -> None:
        self._place_of: dict[int, int] = {}
        self._waiting: list[Tensor] = []
        self._waiting_bytes = self._count = 0
        self._sizes: list[Tensor] = []
        self._modules: list[tuple[str, list[int], list[int]]] = []
        self._inputs = {name: self._places(value) for name, value in inputs.items()}

    def _hook(self, name: str) -> Callable[..., None]:
        def follow(_module: nn.Module, given: Value, output: Value) -> None:
            if self._is_on:
                self._take(name, given, output)

        return follow

    @guarded
    def _take(self, name: str, given: Value, output: Value) -> None:
        self._modules.append((name, self._places(given), self._places(output)))
        if self._waiting_bytes > MAX_HELD_BYTES:
            self._reduce()

    def _places(self, value: Value) -> list[int]:
        """Return the places that the sizes of the tensors in a value have; a tensor that waits has one already."""
        places: list[int] = []
        for tensor in _tensors(value):
            if not tensor.is_floating_point() or not tensor.numel():
                continue
            place = self._place_of.get(id(tensor))
            if place is None:
                place = self._place_of[id(tensor)] = self._count
                self._count += 1
                self._waiting.append(tensor)
                self._waiting_bytes += tensor.numel() * tensor.element_size()
            places.append(place)
        return places

    def _reduce(self) -> None:
        if self._waiting:
            self._sizes.append(norms_of(self._waiting, math.inf))
        self._place_of, self._waiting, self._waiting_bytes = {}, [], 0


def _lost_in_pass(
    inputs: Mapping[str, list[int]], modules: Sequence[tuple[str, list[int], list[int]]], sizes: Sequence[float]
) -> dict[str, list[str]]:
    """Return the columns that are not finite, and the modules that make such values of finite ones.

    Each column and module comes with the places of its sizes, those of what a module takes before what it gives.
    """
    bad = {place for place, size in enumerate(sizes) if not math.isfinite(size)}
    columns = [name for name, places in inputs.items() if bad.intersection(places)]
    outputs = [name for name, given, made in modules if bad.intersection(made) and not bad.intersection(given)]
    return {what: names[:ORIGIN_MOST] for what, names in (("inputs", columns), ("outputs", outputs)) if names}


def gradient_sizes(named: Mapping[str, Tensor]) -> Sizes:
    """Take the largest size of each gradient, by name in the order of the model; the last ones are named first."""

    def lost(sizes: Sequence[float]) -> dict[str, list[str]]:
        pairs = zip(reversed(list(named)), reversed(sizes), strict=True)
        names = _named(name for name, size in pairs if not math.isfinite(size))
        return {"gradients": names} if names else {}

    return Sizes(norms_of(list(named.values()), math.inf), lost, of_gradients=True)


def followed_modules(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """Return the modules of a model that are followed: all, or those down to the depth at which they are few.

    None of a model with a compiled part: a hook would be compiled with it.
    """
    named = [(name, module) for name, module in model.named_modules() if name]
    if any(getattr(module, "_compiled_call_impl", None) is not None or hasattr(module, "_orig_mod")
           for _, module in named):  # fmt: skip
        return []
    while len(named) > MAX_FOLLOWED:
        deepest = max(name.count(".") for name, _ in named)
        if deepest == 0:
            break
        named = [(name, module) for name, module in named if name.count(".") < deepest]
    return named[:MAX_FOLLOWED]


def _named(names: Iterable[str]) -> list[str]:
    """Return the modules of parameters, each once."""
    return list(dict.fromkeys(name.rpartition(".")[0] or name for name in names))[:ORIGIN_MOST]


def _outputs(model: nn.Module, inputs: tuple[Value, Value]) -> list[str]:
    torch = sys.modules["torch"]
    found: list[str] = []
    names = {module: name for name, module in model.named_modules()}

    def look(module: nn.Module, given: Value, output: Value) -> None:
        if len(found) < ORIGIN_MOST and not _all_finite(output) and _all_finite(given) and names[module]:
            found.append(names[module])

    handles = [module.register_forward_hook(look) for module in names]
    buffers = {name: tensor.clone() for name, tensor in model.named_buffers()}
    devices = {parameter.device for parameter in model.parameters() if parameter.device.type == "cuda"}
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=list(devices)):
            model(*inputs[0], **inputs[1])
    finally:
        for handle in handles:
            handle.remove()
        with torch.no_grad():
            for name, tensor in model.named_buffers():
                tensor.copy_(buffers[name])
    return found


def _inputs(inputs: tuple[Value, Value]) -> list[str]:
    """Return the names of the columns that hold values which are not finite; of unnamed ones the number."""
    return [name for name, value in named_inputs(inputs).items() if not _all_finite(value)]


def named_inputs(inputs: tuple[Value, Value]) -> dict[str, Value]:
    """Return what a model is called with by name; of what has none by its place."""
    return {**{str(at): value for at, value in enumerate(inputs[0])}, **inputs[1]}


def _all_finite(value: Value) -> bool:
    return all(_is_finite(tensor) for tensor in _tensors(value))


def _tensors(value: Value) -> Iterator[Value]:
    torch = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _tensors(item)


def _is_finite(tensor: Value) -> bool:
    return not tensor.is_floating_point() or bool(tensor.isfinite().all())


# What a model is fed: how much its numbers vary, and how far the inputs of evaluation are from those of training.


SPREAD = "inputs_spread"
"""The standard deviation of the numbers of a batch. Whole numbers, such as tokens, have none."""
APART = "inputs_apart"
"""The largest difference between the shares of numbers up to a bound in a batch of training and in the evaluation
(Kolmogorov and Smirnov). Whole numbers, such as tokens, have none."""
INPUTS_MOST_NUMBERS = 1024
"""Numbers of a batch that give its spread, drawn evenly. Chosen: known to 2 %."""
FEWEST_SPREAD = 16
"""... and the fewest. Chosen: the spread of fewer varies by itself."""
MOST_COMPARED = 1024
"""Numbers of a batch that are compared, drawn evenly. Chosen: shares are known to 2 %."""
FEWEST_COMPARED = 256
"""... and the fewest. Chosen: shares are known to 3 %."""
MOST_BATCHES = 8
"""Batches of evaluations that are kept for it. Chosen: of 8,000 numbers the comparison takes a millisecond."""


class Inputs:
    """Compares the inputs of training with those of evaluations, where both are of one kind."""

    def __init__(self) -> None:
        self._evaluated: list[Tensor] = []

    def take(self, args: Value, kwargs: Mapping[str, Value]) -> None:
        """Keep some numbers of a batch of an evaluation, of the first ones alone."""
        if len(self._evaluated) < MOST_BATCHES and (found := numbers_of(column_of(kwargs or args))) is not None:
            self._evaluated.append(_sampled_numbers(found.detach(), MOST_COMPARED).float().clone())

    def apart(self, args: Value, kwargs: Mapping[str, Value]) -> Tensor | None:
        """Return how far a batch of training is from the evaluation: 0 where alike, 1 where nothing is shared."""
        inputs = numbers_of(column_of(kwargs or args)) if self._evaluated else None
        if inputs is None or inputs.device != self._evaluated[0].device or inputs.numel() < FEWEST_COMPARED:
            return None
        torch = sys.modules["torch"]
        here, there = (
            _sampled_numbers(inputs.detach(), MOST_COMPARED).float().sort()[0],
            torch.cat(self._evaluated).sort()[0],
        )
        values = torch.cat([here, there])
        up_to = [torch.searchsorted(side, values, right=True) / len(side) for side in (here, there)]
        found: Tensor = (up_to[0] - up_to[1]).abs().amax()
        return found


def spreads_of(arrays: Sequence[Value]) -> list[float]:
    """Return the standard deviations of the numbers of batches, of all of one shape together.

    NaN of whole numbers, of too few, and where it is not finite: then its origin is recorded.
    """
    numpy, found = sys.modules["numpy"], [math.nan] * len(arrays)
    rows = [array.reshape(1, -1) if array.dtype.kind == "f" and array.size >= FEWEST_SPREAD else None
            for array in arrays]  # fmt: skip
    for places in alike(rows):
        with numpy.errstate(all="ignore"):
            joined = numpy.concatenate([rows[at] for at in places])
            numbers = joined[:, :: _stride(joined.shape[1], INPUTS_MOST_NUMBERS)].astype("f8")
            numbers -= numbers.sum(axis=1, keepdims=True) / numbers.shape[1]  # its own `std` is written in Python
            spreads = numpy.sqrt((numbers * numbers).sum(axis=1) / (numbers.shape[1] - 1))
        for at, spread in zip(places, spreads.tolist(), strict=True):
            found[at] = spread
    return found


def some_inputs(inputs: Tensor) -> Value:
    """Return some numbers of a batch on the CPU that nobody else changes; None where they cannot be had."""
    numbers = array_of(inputs)
    return None if numbers is None else _sampled_numbers(numbers, INPUTS_MOST_NUMBERS).copy()


def spread(inputs: Tensor) -> Tensor | None:
    """Return the standard deviation of the numbers of a batch on a device, None where they are too few."""
    return (
        _sampled_numbers(inputs.detach(), INPUTS_MOST_NUMBERS).float().std()
        if inputs.numel() >= FEWEST_SPREAD
        else None
    )


def numbers_of(column: Value) -> Tensor | None:
    """Return the numbers that a model is given first, None where they are no tensor, or whole numbers."""
    is_numbers = isinstance(column, sys.modules["torch"].Tensor) and column.is_floating_point()
    return column if is_numbers else None


def _sampled_numbers(numbers: Value, most: int) -> Value:
    """Return about so many numbers of a tensor or an array, by an odd stride: the lengths of rows are even."""
    flat = numbers.reshape(-1)
    return flat[:: _stride(len(flat), most)]


def _stride(count: int, most: int) -> int:
    """Return the odd stride at which about so many of a count of numbers are taken."""
    return max(1, count // most) | 1


# The mean cross-entropy of what a model returned, beside the loss that a loop made of it.
#
# Told at the steps that are looked into, where the loop shows its batches and they hold labels that are whole numbers.


ONCE = "recomputed/once"
"""The loss worked out anew of the outputs as logits."""
TWICE = "recomputed/twice"
"""The same of their softmax as logits, as where a loss takes it once more."""
SHIFTED = "recomputed/shifted"
"""The same of each position's outputs with the label of the next one, as language models have it."""
LABELS = ("labels", "label", "targets", "target", "y")
"""Columns that hold labels, the first that a batch has; of a pair the second."""
RECOMPUTED_MOST_NUMBERS = 1 << 20
"""Numbers of logits that are looked at. Chosen: a millisecond on a core; of more, rows are drawn evenly."""


class Aligned(NamedTuple):
    """Logits of shape (targets, classes), and labels of shape (targets,)."""

    scores: Tensor
    labels: Tensor


def labels_of(batch: Value) -> Value:
    """Return the labels of a batch, None where it has none that are whole numbers."""
    found: Value = None
    if isinstance(batch, Mapping) or hasattr(batch, "items"):
        found = next((batch[name] for name in LABELS if name in batch), None)
    elif isinstance(batch, tuple | list) and len(batch) > 1:
        found = batch[1]
    if not hasattr(found, "is_floating_point") or found.is_floating_point() or found.is_complex():
        return None
    return found


def aligned(logits: Tensor, labels: Tensor) -> Aligned | None:
    """Return logits and labels side by side, classes last or in the second place; None where shapes do not fit."""
    if logits.dim() != labels.dim() + 1:
        return None
    if logits.shape[:-1] == labels.shape:
        return Aligned(logits.flatten(0, -2), labels.flatten())
    if logits.shape[:1] + logits.shape[2:] == labels.shape:
        return Aligned(logits.movedim(1, -1).flatten(0, -2), labels.flatten())
    return None


def recomputed(logits: Tensor | None, labels: Value) -> dict[str, Tensor]:
    """Return the mean cross-entropy of the outputs, by name; nothing where they do not fit the labels."""
    if logits is None or labels is None or not logits.is_floating_point():
        return {}
    labels = labels.to(logits.device, non_blocking=True)  # a loader gives them on the CPU
    both = aligned(logits.detach(), labels)
    if both is None or both.scores.shape[-1] < 2:
        return {}
    found = {ONCE: _cross_entropy(*both), TWICE: _cross_entropy(both.scores.float().softmax(dim=-1), both.labels)}
    if labels.dim() == 2 and logits.shape[:2] == labels.shape and labels.shape[1] > 1:
        found[SHIFTED] = _cross_entropy(logits.detach()[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
    return found


def _cross_entropy(scores: Tensor, labels: Tensor) -> Tensor:
    every = -(-scores.numel() // RECOMPUTED_MOST_NUMBERS)
    scores, labels = scores[::every].float(), labels[::every].long()
    known = (labels >= 0) & (labels < scores.shape[-1])
    wanted = labels.where(known, labels.new_full((), IGNORED_LABEL))
    found: Tensor = sys.modules["torch"].nn.functional.cross_entropy(scores, wanted, ignore_index=IGNORED_LABEL)
    return found


# Hears of every gradient clipping that torch makes, with the norm that it worked out anyway.


_INNER = "_clip_grads_with_norm_"
"""What `clip_grad_norm_` scales gradients with, however a script has imported that. Source: torch 2.6 and later."""
Listener: TypeAlias = Callable[[list[Any], float, Any], None]
"""Takes the parameters whose gradients are about to be scaled, to which norm, and the norm that they have."""
_LISTENERS: list[Listener] = []


def listen(listener: Listener) -> None:
    """Report clippings to a listener until it leaves; a torch that is too old for that reports none."""
    module = import_module("torch.nn.utils.clip_grad")
    inner = getattr(module, _INNER, None)
    if inner is None:
        return
    if not getattr(inner, "tells_recorder", False):
        setattr(module, _INNER, _telling(inner))
    _LISTENERS.append(listener)


def leave(listener: Listener) -> None:
    """Tell a listener no more."""
    if listener in _LISTENERS:
        _LISTENERS.remove(listener)


def _telling(inner: Callable[..., None]) -> Callable[..., None]:
    def clip(parameters: Any, max_norm: float, total_norm: Any, *more: Any, **named: Any) -> None:  # noqa: ANN401
        if not isinstance(parameters, list):
            parameters = [parameters] if hasattr(parameters, "grad") else list(parameters)
        for listener in _LISTENERS:
            listener(parameters, max_norm, total_norm)
        inner(parameters, max_norm, total_norm, *more, **named)

    clip.tells_recorder = True  # type: ignore[attr-defined]
    return clip


# Looks whether gradients are cleared between two updates: before some backward pass there has to be none.


KEPT = "gradients_kept"
"""Least norm of the gradients that were there before a backward pass, of all backward passes since the last update: 0
where a loop clears them."""


class KeptGradients:
    """Follows the gradients of a model from update to update.

    A loop that accumulates gradients keeps them from one backward pass to the next, and one with two optimizers has
    other gradients in between: but each clears them once between two updates.

    Args:
        model: The model.
        norm: Returns the norm of all of some gradients together.
    """

    def __init__(self, model: nn.Module, norm: Callable[[list[Value]], Value]) -> None:
        self._norm = norm
        self._parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self._norms: list[Value] = []
        self._cleared = False
        self.is_unseen = False
        """Whether a backward pass since the last update was not looked at."""
        self.is_seen = False
        """Whether one was."""

    def watch(self, output: Value) -> None:
        """Look before the backward pass of an output, if there is one that has a gradient."""
        if output is None or not output.requires_grad:
            self.is_unseen = True
        elif not self._cleared:
            output.register_hook(lambda _: self._look())

    def _look(self) -> None:
        self.is_seen = True
        kept = [parameter.grad for parameter in self._parameters if parameter.grad is not None]
        if kept:
            self._norms.append(self._norm(kept))
        else:
            self._cleared = True

    def updated(self) -> Value:
        """Return the least norm since the last update, and begin anew; None where not all of it was seen."""
        norms, cleared, unseen = self._norms, self._cleared, self.is_unseen
        self._norms, self._cleared, self.is_unseen, self.is_seen = [], False, False, False
        if cleared:
            return 0.0
        if unseen or not norms:
            return None
        return _smallest_norm(norms)


def _smallest_norm(norms: list[Tensor]) -> Tensor:
    import torch

    return torch.stack(norms).min()
