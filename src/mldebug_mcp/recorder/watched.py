"""The objects that a recorder watches. It records the settings that they tell, and what they do in each step."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from mldebug_mcp.recorder import layers
from mldebug_mcp.recorder.batches import (
    BACKWARD_OVER,
    FORWARD,
    FORWARD_OVER,
    OPTIMIZER,
    OPTIMIZER_OVER,
    Batches,
    Step,
)
from mldebug_mcp.recorder.late import FREE_IN_A_STEP, Budget, Value, failed_at, guarded, is_here, number_of
from mldebug_mcp.recorder.rows import MAX_CLONED, ROWS_EVALUATED, Evaluated, column_of

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


INPUT_SPREAD_TIME_SHARE = 0.001
"""Share of the time of steps spent on the spread of inputs on a device. Chosen: each step of 40 ms or more."""
GRADIENT_NORM_TIME_SHARE = 0.002
"""... and on the norm of gradients that nobody clips. Chosen: where Python bounds a loop, every tenth step or so."""


class Loop(Protocol):
    """A loop: the step that is being made, and what the steps before took."""

    step_now: Step | None
    seconds: float
    batches: Batches

    def configure(self, settings: Mapping[str, Value]) -> None:
        """Take settings of the run."""


class Watched:
    """A model and its optimizer.

    Args:
        model: The model; of its forward pass in an evaluation the rows are seen alone.
        optimizer: Its optimizer, or what wraps it.
        scaler: The loss scaler of mixed precision.
        loop: The steps, and what gets settings that become known.
    """

    def __init__(self, model: nn.Module, optimizer: Value, scaler: Value, loop: Loop) -> None:
        self.model = model
        self.scaler = getattr(optimizer, "scaler", None) if scaler is None else scaler
        self.optimizer = _unwrapped(optimizer)
        self._loop = loop
        self._tensor = sys.modules["torch"].Tensor
        devices = (parameter.device for parameter in model.parameters())
        self.device = next((device for device in devices if device.type == "cuda"), None)
        """The GPU of the model, None where it is on none."""
        self.inputs: tuple[Value, Value] | None = None
        self._parameters = dict(model.named_parameters())
        self._ids = {id(parameter) for parameter in self._parameters.values()}
        self._is_away = not all(map(is_here, self._parameters.values()))
        self._layers = layers.Layers(model)
        self._activations = None if _is_compiled(model) else layers.Activations(inner_of(model), self._take)
        is_hooked = hasattr(self.optimizer, "register_step_pre_hook")
        self._names_origins = self._is_away and is_hooked  # which needs the gradients of each update
        self._sized: list[Value] | None = None
        """The mark before the gradients whose sizes were taken last."""
        follows = self._names_origins and not _is_compiled(model) and _can_run_again(model)
        self._followed = layers.FollowedModules(inner_of(model)) if follows else None
        self._norms = Budget(every=1, share=GRADIENT_NORM_TIME_SHARE, free=FREE_IN_A_STEP)
        self._spreads = Budget(every=1, share=INPUT_SPREAD_TIME_SHARE, free=FREE_IN_A_STEP)
        self._evaluated, self._inputs = Evaluated(), layers.Inputs()
        self._kept = layers.KeptGradients(model, _total_norm)
        self._written: set[str] = set()
        self._has_output = False
        self._has_numbers = True
        """Whether the model is fed numbers, and no whole ones, as far as is known."""
        self._handles: list[Any] = []
        layers.listen(self.clips)
        if not _is_compiled(model):
            self._handles += [
                model.register_forward_pre_hook(self._before_forward, with_kwargs=True),
                model.register_forward_hook(self._after_forward, with_kwargs=True),
            ]
        if is_hooked:
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
        layers.leave(self.clips)
        self.inputs = None

    def begin(self, step: Step) -> None:
        """Begin a step: one that is looked into gets hooks on its modules."""
        if self.scaler is not None:
            step.is_scaled = self._has_scaler
        if step.deep and self._activations is not None:
            began = time.thread_time()
            self._activations.begin()
            step.cost += time.thread_time() - began

    def end(self, step: Step) -> None:
        """End a step: take what only its end tells."""
        if step.deep and self._activations is not None:
            self._activations.end()
            step.cost += self._activations.seconds
        for name, values in step.recomputed.items():
            step.put(name, sum(values[1:], values[0]) / len(values))
        if "learning_rate" not in step.values:
            self._rates(step)
        if step.is_nonfinite:
            self._look_for_origin(step)
        if self.scaler is not None and self._has_scaler:
            scale = getattr(self.scaler, "_scale", None)
            step.put("loss_scale", self.scaler.get_scale() if scale is None else scale)

    @property
    def _has_scaler(self) -> bool:
        """Whether a loss scaler skips the steps whose gradients are not finite."""
        return self.scaler is not None and bool(self.scaler.is_enabled())

    # What follows runs in each step, where the call of a function takes microseconds: so there are few calls.

    def clips(self, parameters: list[Tensor], max_norm: float, norm: Tensor) -> None:
        """Take the norm that clipping worked out, before it scales the gradients."""
        try:
            step = self._loop.step_now
            if step is None or not parameters or id(parameters[0]) not in self._ids:
                return
            step.marks += (BACKWARD_OVER, step.now())
            step.max_norm = max_norm
            if self._is_away:
                step.put("grad_norm", norm)
                self._gradient_sizes(step)
            else:
                step.values["grad_norm"] = number = norm.item()
                if not number < inf and not step.is_scaled:
                    step.is_nonfinite = True
            if step.deep:
                began = time.thread_time()
                self._gradients(step)
                self._tell("max_grad_norm", max_norm)
                step.cost += time.thread_time() - began
            if step.is_nonfinite:  # a norm that is not finite spoils every gradient that it scales
                self._look_for_origin(step)
        except Exception as error:  # noqa: BLE001 - see `guarded`
            failed_at(self, "clips", error)

    def _before_forward(self, model: nn.Module, args: Value, kwargs: Value) -> None:
        try:
            step = self._loop.step_now
            if model is not self.model:
                return  # a copy of it, whose hooks are the same
            if not model.training:
                self._evaluated.take(args, kwargs)
                self._inputs.take(args, kwargs)
            elif step is not None:
                self.inputs = (args, kwargs)
                if step.fed is None and (self._has_numbers or step.deep):
                    self._feed(step, args[0] if args else column_of(kwargs))
                if step.deep and layers.APART not in step.values:
                    self._compare(step, args, kwargs)
                if self._names_origins and self._followed is not None:
                    self._followed.begin(layers.named_inputs(self.inputs))
                step.marks += (FORWARD, step.now())
        except Exception as error:  # noqa: BLE001 - see `guarded`
            failed_at(self, "before_forward", error)

    def _after_forward(self, model: nn.Module, _args: Value, kwargs: Mapping[str, Value], output: Value) -> None:
        try:
            step = self._loop.step_now
            if step is None or model is not self.model or not model.training:
                return
            step.marks += (FORWARD_OVER, step.now())
            if self._followed is not None:
                step.put_sizes(self._followed.end())
            loss = None if type(output) is self._tensor else _loss_of(output)
            if loss is not None and loss.numel() == 1:
                number = number_of(loss)
                step.model_losses += (number,)
                if type(number) is float and not -inf < number < inf:
                    step.is_nonfinite = True
                step.summed = kwargs.get("num_items_in_batch") is not None
            if step.deep:
                self._look_at(output, step, loss is not None)
            else:
                self._kept.is_unseen = True
            if not self._has_output:
                self._has_output = True
                labels = kwargs.get("labels")
                self._of_output(layers.logits_of(output), self._loop.batches.labels if labels is None else labels)
        except Exception as error:  # noqa: BLE001 - see `guarded`
            failed_at(self, "after_forward", error)

    def _before_optimizer(self, optimizer: Value, _args: Value, _kwargs: Value) -> None:
        try:
            step = self._loop.step_now
            if step is None:
                return
            if self._is_away:
                self._gradient_sizes(step)
            is_due = "grad_norm" not in step.values and step.number >= self._norms.next_step
            if step.deep or is_due:
                step.marks += (BACKWARD_OVER, step.now())
                self._measure(step, is_due=is_due)
            groups = optimizer.param_groups
            rate = groups[0].get("lr")
            if len(groups) == 1 and type(rate) is float:
                step.values["learning_rate"] = rate
            else:
                self._rates(step)
            if step.is_nonfinite:
                self._look_for_origin(step)
            step.marks += (OPTIMIZER, step.now())
        except Exception as error:  # noqa: BLE001 - see `guarded`
            failed_at(self, "before_optimizer", error)

    def _after_optimizer(self, _optimizer: Value, _args: Value, _kwargs: Value) -> None:
        try:
            step, kept = self._loop.step_now, self._kept
            norm = kept.updated() if kept.is_seen else None
            kept.is_unseen = False
            if step is None:
                self._names_origins = False  # nothing is known of the gradients of this update
                return
            step.marks += (OPTIMIZER_OVER, step.now())
            step.updates += 1
            if norm is not None:
                step.put(layers.KEPT, norm)
            if step.deep:
                began = time.thread_time()
                step.put_all(self._layers.moved())
                step.put_all(self._layers.weights())
                step.cost += time.thread_time() - began
        except Exception as error:  # noqa: BLE001 - see `guarded`
            failed_at(self, "after_optimizer", error)

    # What follows runs in some steps alone.

    def _feed(self, step: Step, column: Value) -> None:
        """Take numbers that the model is fed: on a device their spread, as often as that can be afforded."""
        if step.rows and column is self._loop.batches.column and type(step.rows[-1]) is tuple:
            step.fed = step.rows[-1][0]  # copied for the keys of the rows
            return
        try:
            numbers = layers.numbers_of(column)
            self._has_numbers = numbers is not None
            if numbers is None:
                return
            if is_here(numbers):
                is_small = numbers.numel() <= MAX_CLONED
                step.fed = numbers.detach().clone() if is_small else layers.some_inputs(numbers)
            elif self._spreads.allows(step.number, self._loop.seconds):
                began = time.thread_time()
                if (found := layers.spread(numbers)) is not None:
                    step.put(layers.SPREAD, found)
                self._spreads.spent(step.number, time.thread_time() - began)
        except Exception as error:  # noqa: BLE001 - see `guarded`
            failed_at(self, "feed", error)

    @guarded
    def _measure(self, step: Step, *, is_due: bool) -> None:
        """Look into the gradients and weights, and work out the norm where it is due."""
        began = time.thread_time()
        if step.deep:
            self._gradients(step)
            self._layers.before_step()
            step.cost += time.thread_time() - began
        if is_due:
            self._norm(step)

    @guarded
    def _look_at(self, output: Value, step: Step, is_loss_known: bool) -> None:
        self._kept.watch(layers.logits_of(output))
        began = time.thread_time()
        layers.of_outputs(output, step.put)
        if not is_loss_known:
            for name, value in layers.recomputed(layers.logits_of(output), self._loop.batches.labels).items():
                before = step.recomputed.get(name, [])
                step.recomputed = {**step.recomputed, name: [*before, number_of(value)]}
        step.cost += time.thread_time() - began

    @guarded
    def _look_for_origin(self, step: Step) -> None:
        """Look where values that are not finite began, before an update spoils the weights."""
        if step.updates or step.origin is not None:
            return
        step.origin = {}
        step.origin = layers.origin_of(inner_of(self.model), self.inputs if _can_run_again(self.model) else None)

    @guarded
    def _compare(self, step: Step, args: Value, kwargs: Mapping[str, Value]) -> None:
        """Take which share of the batch was in an evaluation before, and how far it is from one."""
        began = time.thread_time()
        share, apart = self._evaluated.share(args, kwargs), self._inputs.apart(args, kwargs)
        if share is not None:
            step.values[ROWS_EVALUATED] = share
        if apart is not None:
            step.put(layers.APART, apart)
        step.cost += time.thread_time() - began

    @guarded
    def _norm(self, step: Step) -> None:
        """Work out the norm of all gradients, where nobody clips them, as often as that can be afforded."""
        if self._norms.allows(step.number, self._loop.seconds):
            began = time.thread_time()
            gradients = [parameter.grad for parameter in self._parameters.values() if parameter.grad is not None]
            if gradients:
                norm = step.put("grad_norm", _total_norm(gradients))
                if type(norm) is float and not norm < inf and not step.is_scaled:
                    step.is_nonfinite = True
            self._norms.spent(step.number, time.thread_time() - began)

    def _gradient_sizes(self, step: Step) -> None:
        """Take the largest size of the gradient of each parameter, once behind each mark; it is read late."""
        mark = step.marks[-2:]
        if not self._names_origins or mark == self._sized:
            return
        self._sized = mark or None
        named = {name: parameter.grad for name, parameter in self._parameters.items() if parameter.grad is not None}
        if named and not any(type(gradient).__name__ == "DTensor" for gradient in named.values()):
            step.put_sizes(layers.gradient_sizes(named))

    @guarded
    def _gradients(self, step: Step) -> None:
        """Take the gradients by layer, before they are clipped, of a step that is looked into."""
        if not step.has_gradients:
            step.has_gradients = True
            step.put_all(self._layers.gradients())

    def _rates(self, step: Step) -> None:
        groups = getattr(self.optimizer, "param_groups", None) or ()
        first = groups[0].get("lr") if groups else None
        for at, group in enumerate(groups):
            rate = group.get("lr")
            if rate is not None and (not at or hasattr(rate, "detach") or rate != first):  # the first, and what differs
                step.put(f"learning_rate/{at}" if at else "learning_rate", rate)

    def _take(self, name: str, value: Value) -> None:
        if self._loop.step_now is not None:
            self._loop.step_now.put(name, value)

    def _tell(self, name: str, value: object) -> None:
        if name not in self._written:
            self._written.add(name)
            self._loop.configure({name: value})

    @guarded
    def _of_output(self, logits: Tensor | None, labels: Value) -> None:
        """Tell the number of classes or tokens, where labels are whole numbers, and what the last layer reads."""
        if logits is None or labels is None or labels.is_floating_point():
            return
        both = layers.aligned(logits, labels)
        if both is None:
            return
        classes = both.scores.shape[-1]
        self._tell("vocab_size" if logits.dim() > 2 and logits.shape[-1] == classes else "num_classes", classes)
        if (features := features_of(inner_of(self.model), classes)) is not None:
            self._tell("features", features)


class Unwatched:
    """Stands for `Watched` in the hooks of a copy of a model, which do nothing."""

    model = step_now = None

    def __init__(self) -> None:
        self._loop = self

    def _before_forward(self, *_: object) -> None:
        """Do nothing."""

    _after_forward = _before_forward


def _loss_of(output: Value) -> Value:
    if hasattr(output, "dtype"):
        return None
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
    return sys.modules["torch"].linalg.vector_norm(layers.norms_of(gradients))
