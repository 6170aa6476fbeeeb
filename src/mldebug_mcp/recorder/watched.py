"""The objects that a recorder watches. It records the settings that they tell, and what they do in each step."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from mldebug_mcp.recorder import layers
from mldebug_mcp.recorder.batches import Step, numbered
from mldebug_mcp.recorder.late import (
    FREE_IN_A_STEP,
    MAX_SHARE_OF_STEP_TIME,
    Budget,
    Value,
    guarded,
    is_here,
    is_lost,
    number_of,
)
from mldebug_mcp.recorder.layers import (
    APART,
    KEPT,
    SPREAD,
    Activations,
    FollowedModules,
    GradientSizes,
    Inputs,
    KeptGradients,
    Layers,
    aligned,
    logits_of,
    named_inputs,
    norms_of,
    numbers_of,
    of_outputs,
    origin_of,
    recomputed,
    spread,
)
from mldebug_mcp.recorder.rows import NAME as ROWS_EVALUATED
from mldebug_mcp.recorder.rows import Evaluated, RowKeys, column_of

if TYPE_CHECKING:
    from torch import Tensor, nn

# What a recording tells of how a run is set, from the objects that it watches.


def settings_of(model: nn.Module, optimizer: Value) -> dict[str, object]:
    """Return the settings that a model and its optimizer tell, by the names of TrainingArguments."""
    own = list(model.parameters())
    found: dict[str, object] = {
        "model": type(model).__name__,
        "parameters": sum(parameter.numel() for parameter in own),
        "trained_parameters": sum(parameter.numel() for parameter in own if parameter.requires_grad),
        "dtype": str(own[0].dtype).removeprefix("torch.") if own else None,
    }
    groups = getattr(optimizer, "param_groups", None)
    if groups:
        first = groups[0]
        betas = first.get("betas") or (None, None)
        found |= {
            "optimizer": type(optimizer).__name__.lower(),
            "learning_rate": first.get("initial_lr", first.get("lr")),
            "weight_decay": first.get("weight_decay"),
            "momentum": first.get("momentum"),
            "adam_beta1": betas[0],
            "adam_beta2": betas[1],
            "adam_epsilon": first.get("eps"),
        }
    return {name: _plain(value) for name, value in found.items() if value is not None}


def features_of(model: nn.Module, outputs: int) -> int | None:
    """Return how many numbers the layer reads that makes the outputs, None where none has as many of them."""
    found: int | None = None
    for module in model.modules():
        weight: Value = getattr(module, "weight", None)
        made = getattr(module, "out_features", getattr(module, "out_channels", None))
        if made == outputs and hasattr(weight, "numel"):
            found = weight.numel() // outputs
    return found


def _plain(value: object) -> object:
    return float(value) if hasattr(value, "item") else value  # type: ignore[arg-type]


class Place(NamedTuple):
    """The rank of a process, and how many there are."""

    rank: int
    world: int

    @property
    def mark(self) -> str:
        """What stands in the names of its files; nothing where it is alone."""
        return f".rank{self.rank}" if self.world > 1 else ""


def place_in_world() -> Place:
    """Return the place of this process: of torch.distributed, else of the environment."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return Place(distributed.get_rank(), distributed.get_world_size())
    world = _number("WORLD_SIZE", 1)
    return Place(_number("RANK", 0), world) if world > 1 else Place(0, 1)


def _number(variable: str, other: int) -> int:
    text = os.environ.get(variable, "")
    return int(text) if text.isdecimal() else other


# What torch tells of a step by its hooks: of the model, of the optimizer, and of clipping.


SPREADS = 0.003
"""Share of the time of steps spent on measuring how much the inputs vary. Chosen: each step of 10 ms or more."""


class Watched:
    """A model and its optimizer.

    Args:
        model: The model; of its forward pass in an evaluation the rows are seen alone.
        optimizer: Its optimizer, or what wraps it.
        scaler: The loss scaler of mixed precision.
        settings: Gets what becomes known of the run.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: Value,
        scaler: Value,
        settings: Callable[[dict[str, object]], None],
    ) -> None:
        self.model = model
        self.scaler = getattr(optimizer, "scaler", None) if scaler is None else scaler
        self.optimizer = _unwrapped(optimizer)
        self._settings = settings
        self._step: Step | None = None
        self.on_gpu = any(parameter.device.type == "cuda" for parameter in model.parameters())
        self.inputs: tuple[Value, Value] | None = None
        self._parameters = dict(model.named_parameters())
        self._ids = {id(parameter) for parameter in self._parameters.values()}
        self._is_away = not all(map(is_here, self._parameters.values()))
        self._layers = Layers(model)
        self._activations = None if _is_compiled(model) else Activations(inner_of(model), self._take)
        follows = self._is_away and not _is_compiled(model) and _can_run_again(model)
        self._followed = FollowedModules(inner_of(model)) if follows else None
        self._norms, self._normed = (
            Budget(every=1, share=MAX_SHARE_OF_STEP_TIME / 2, free=FREE_IN_A_STEP),
            time.perf_counter(),
        )
        self._spreads, self._spread_at = Budget(1, SPREADS, FREE_IN_A_STEP), time.perf_counter()
        self._evaluated, self._inputs = Evaluated(), Inputs()
        self._kept = KeptGradients(model, _total_norm)
        self._forward_began: Value = None
        self._optimizer_began: Value = None
        self._written: set[str] = set()
        self._handles: list[Any] = []
        layers.listen(self)
        if not _is_compiled(model):
            self._handles += [
                model.register_forward_pre_hook(self._before_forward, with_kwargs=True),
                model.register_forward_hook(self._after_forward, with_kwargs=True),
            ]
        if hasattr(self.optimizer, "register_step_pre_hook"):
            self._handles += [
                self.optimizer.register_step_pre_hook(self._before_optimizer),
                self.optimizer.register_step_post_hook(self._after_optimizer),
            ]

    def __deepcopy__(self, memo: object) -> Unwatched:
        """A copy of the model, such as an average of its weights, is not watched: its hooks do nothing."""
        return Unwatched()

    def __reduce__(self) -> tuple[type[Unwatched], tuple[()]]:
        """A model that is saved whole, with its hooks, is not watched where it is loaded."""
        return Unwatched, ()

    def leave(self) -> None:
        """Take the hooks away."""
        for handle in self._handles:
            handle.remove()
        if self._followed is not None:
            self._followed.leave()
        layers.leave(self)
        self.inputs = None

    def begin(self, step: Step) -> None:
        """Begin a step: one that is looked into gets hooks on its modules."""
        self._step = step
        step.draft.is_scaled = self._has_scaler
        if step.deep and self._activations is not None:
            began = time.thread_time()
            self._activations.begin()
            step.cost += time.thread_time() - began

    def end(self, step: Step) -> None:
        """End a step: take what only its end tells."""
        self._step = None
        if step.deep and self._activations is not None:
            self._activations.end()
            step.cost += self._activations.seconds
        for name, values in step.recomputed.items():
            step.draft.put(name, sum(values[1:], values[0]) / len(values))
        if not step.has("learning_rate"):
            self._rates(step)
        self.look_for_origin(step)
        if self.scaler is not None and self._has_scaler:
            scale = getattr(self.scaler, "_scale", None)
            step.draft.put("loss_scale", self.scaler.get_scale() if scale is None else scale)

    @property
    def _has_scaler(self) -> bool:
        """Whether a loss scaler skips the steps whose gradients are not finite."""
        return self.scaler is not None and bool(self.scaler.is_enabled())

    @guarded
    def clips(self, parameters: list[Tensor], max_norm: float, norm: Tensor) -> None:
        """Take the norm that clipping worked out, before it scales the gradients."""
        step = self._step
        if step is None or not parameters or id(parameters[0]) not in self._ids:
            return
        step.backward_until(step.now())
        step.draft.put("grad_norm", norm)
        if max_norm != math.inf:
            step.draft.max_norm = max_norm
            self._tell("max_grad_norm", max_norm)
        self._gradients(step)
        if self._is_away:
            self._gradient_sizes(step)
        self.look_for_origin(step)  # a norm that is not finite spoils every gradient that it scales

    @guarded
    def _before_forward(self, model: nn.Module, args: Value, kwargs: Value) -> None:
        if model is not self.model:
            return  # a copy of it, whose hooks are the same
        step = self._step
        if not model.training:
            self._evaluated.take(args, kwargs)
            self._inputs.take(args, kwargs)
        elif step is not None:
            self.inputs = (args, kwargs)
            self._spread(step, args, kwargs)
            if step.deep and not step.has(APART):
                self._compare(step, args, kwargs)
            if self._followed is not None:
                self._followed.begin(named_inputs(self.inputs))
            self._forward_began = step.now()

    @guarded
    def _after_forward(self, model: nn.Module, _args: Value, kwargs: Mapping[str, Value], output: Value) -> None:
        step = self._step
        if step is None or self._forward_began is None or model is not self.model or not model.training:
            return
        step.forward(self._forward_began, step.now())
        self._forward_began = None
        if self._followed is not None:
            step.draft.put_sizes(self._followed.end())
        self._kept.watch(logits_of(output) if step.deep else None, deep=step.deep)
        loss = None if hasattr(output, "dtype") else _loss_of(output)
        if loss is not None and loss.numel() == 1:
            step.model_losses.append(number_of(loss))
            step.summed = kwargs.get("num_items_in_batch") is not None
        if step.deep:
            began = time.thread_time()
            of_outputs(output, step.draft.put)
            if loss is None:
                for name, value in recomputed(logits_of(output), step.labels).items():
                    step.recomputed.setdefault(name, []).append(number_of(value))
            step.cost += time.thread_time() - began
        if "output" not in self._written:
            self._written.add("output")
            labels = kwargs.get("labels")
            self._of_output(logits_of(output), step.labels if labels is None else labels)

    @guarded
    def _before_optimizer(self, _optimizer: Value, _args: Value, _kwargs: Value) -> None:
        step = self._step
        if step is None:
            return
        step.backward_until(step.now())
        self._gradients(step)
        if not step.has("grad_norm"):
            self._norm(step)
        self._rates(step)
        self.look_for_origin(step)
        if step.deep:
            began = time.thread_time()
            self._layers.before_step()
            step.cost += time.thread_time() - began
        self._optimizer_began = step.now()

    @guarded
    def _after_optimizer(self, _optimizer: Value, _args: Value, _kwargs: Value) -> None:
        step = self._step
        kept = self._kept.updated()
        if step is None or self._optimizer_began is None:
            return
        if kept is not None:
            step.draft.put(KEPT, kept)
        step.took("time/optimizer_s", self._optimizer_began, step.now())
        self._optimizer_began, step.is_updated = None, True
        if step.deep:
            began = time.thread_time()
            step.draft.put_all(self._layers.moved())
            step.draft.put_all(self._layers.weights())
            step.cost += time.thread_time() - began

    def look_for_origin(self, step: Step) -> None:
        """Look where values that are not finite began, if there are some, before an update spoils the weights."""
        if step.is_updated or step.draft.origin is not None:
            return
        norm = None if step.draft.is_scaled else step.draft.values.get("grad_norm")
        if is_lost(norm) or any(map(is_lost, step.losses)) or any(map(is_lost, step.model_losses)):
            step.draft.origin = {}
            step.draft.origin = origin_of(inner_of(self.model), self.inputs if _can_run_again(self.model) else None)

    def _compare(self, step: Step, args: Value, kwargs: Mapping[str, Value]) -> None:
        """Take which share of the batch was in an evaluation before, and how far it is from one."""
        began = time.thread_time()
        share, apart = self._evaluated.share(args, kwargs), self._inputs.apart(args, kwargs)
        if share is not None:
            step.draft.values[ROWS_EVALUATED] = share
        if apart is not None:
            step.draft.put(APART, apart)
        step.cost += time.thread_time() - began

    def _spread(self, step: Step, args: Value, kwargs: Mapping[str, Value]) -> None:
        """Take how much the numbers of a batch vary, as often as that can be afforded."""
        column = column_of(kwargs or list(args))
        if column is step.column and step.rows and isinstance(step.rows[-1], RowKeys):
            if (found := spread(column, step.rows[-1].values)) is not None:
                step.draft.put(SPREAD, found)  # the numbers were copied for the keys of the rows
            return
        now, began = time.perf_counter(), time.thread_time()
        self._spreads.step(now - self._spread_at)
        self._spread_at = now
        if self._spreads.allows(step.number) and (found := spread(numbers_of(column))) is not None:
            step.draft.put(SPREAD, found)
            self._spreads.spent(step.number, time.thread_time() - began)

    def _norm(self, step: Step) -> None:
        """Work out the norm of all gradients, where nobody clips them, as often as that can be afforded."""
        if self._is_away:
            self._gradient_sizes(step)
        now, began = time.perf_counter(), time.thread_time()
        self._norms.step(now - self._normed)
        self._normed = now
        if not self._norms.allows(step.number):
            return
        gradients = [parameter.grad for parameter in self._parameters.values() if parameter.grad is not None]
        if gradients:
            step.draft.put("grad_norm", _total_norm(gradients))
        self._norms.spent(step.number, time.thread_time() - began)

    def _gradient_sizes(self, step: Step) -> None:
        """Take the largest size of the gradient of each parameter, which is read when it has arrived."""
        named = [(name, parameter.grad) for name, parameter in self._parameters.items() if parameter.grad is not None]
        if named and not any(type(gradient).__name__ == "DTensor" for _, gradient in named):
            sizes = norms_of([gradient for _, gradient in named], math.inf)
            step.draft.put_sizes(GradientSizes(sizes, [name for name, _ in named]))

    def _gradients(self, step: Step) -> None:
        """Take the gradients by layer, before they are clipped, of a step that is looked into."""
        if step.deep and not step.has_gradients:
            began = time.thread_time()
            step.draft.put_all(self._layers.gradients())
            step.has_gradients = True
            step.cost += time.thread_time() - began

    def _rates(self, step: Step) -> None:
        groups = getattr(self.optimizer, "param_groups", None) or ()
        step.draft.values |= numbered([group["lr"] for group in groups if "lr" in group])

    def _take(self, name: str, value: Value) -> None:
        step = self._step
        if step is not None:
            step.draft.put(name, value)

    def _tell(self, name: str, value: object) -> None:
        if name not in self._written:
            self._written.add(name)
            self._settings({name: value})

    def _of_output(self, logits: Tensor | None, labels: Value) -> None:
        """Tell the number of classes or tokens, where labels are whole numbers, and what the last layer reads."""
        if logits is None or labels is None or labels.is_floating_point():
            return
        both = aligned(logits, labels)
        if both is None:
            return
        classes = both.scores.shape[-1]
        self._tell("vocab_size" if logits.dim() > 2 and logits.shape[-1] == classes else "num_classes", classes)
        if (features := features_of(inner_of(self.model), classes)) is not None:
            self._tell("features", features)


class Unwatched:
    """Stands for `Watched` in the hooks of a copy of a model, which do nothing."""

    model: nn.Module | None = None
    _step: Step | None = None

    def _before_forward(self, *_: object) -> None:
        """Do nothing."""

    _after_forward = _before_forward


def _loss_of(output: Value) -> Value:
    return output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)


def inner_of(model: nn.Module) -> nn.Module:
    """Return the model within `DistributedDataParallel` or `DataParallel`, else the model itself."""
    inner: nn.Module = getattr(model, "module", model) if type(model).__name__.endswith("DataParallel") else model
    return inner


def _can_run_again(model: nn.Module) -> bool:
    """Say whether a forward pass of one rank alone waits for no other."""
    sharded = any(type(parameter).__name__ == "DTensor" for parameter in model.parameters())
    return not sharded and type(model).__name__ != "FullyShardedDataParallel"


def _is_compiled(model: nn.Module) -> bool:
    """Say whether hooks would be compiled, and break the graph."""
    return type(model).__name__ == "OptimizedModule" or getattr(model, "_compiled_call_impl", None) is not None


def _unwrapped(optimizer: Value) -> Value:
    """Return the optimizer of torch in what Accelerate wraps around it."""
    inner = getattr(optimizer, "optimizer", None)
    return inner if hasattr(inner, "param_groups") else optimizer


def _total_norm(gradients: list[Any]) -> Any:  # noqa: ANN401 - a tensor
    """Return the norm of all gradients together."""
    if any(type(gradient).__name__ == "DTensor" for gradient in gradients):
        return sys.modules["torch"].nn.utils.get_total_norm(gradients)
    return sys.modules["torch"].linalg.vector_norm(norms_of(gradients))
