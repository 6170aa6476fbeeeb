"""What is probed, and the user's own pipeline that makes it."""

from __future__ import annotations

import copy
import importlib
import importlib.util
import inspect
import random
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .report import KnownFailure

# Batches of any shape: dicts, tuples, lists and objects of tensors, seen as a flat list of leaves.


LABEL_NAMES = ("labels", "label", "targets", "target", "y")
TreePath = tuple[Any, ...]


def leaves(value: Any, path: TreePath = ()) -> list[tuple[TreePath, torch.Tensor]]:
    """Return the tensors in a batch with their paths."""
    if isinstance(value, torch.Tensor):
        return [(path, value)]
    if isinstance(value, Mapping):
        return [leaf for key, item in value.items() for leaf in leaves(item, (*path, key))]
    if isinstance(value, (list, tuple)):
        return [leaf for index, item in enumerate(value) for leaf in leaves(item, (*path, index))]
    return []


def mapped(value: Any, change: Callable[[TreePath, torch.Tensor], torch.Tensor], path: TreePath = ()) -> Any:
    """Return a copy of a batch with each tensor replaced by `change(path, tensor)`."""
    if isinstance(value, torch.Tensor):
        return change(path, value)
    if isinstance(value, Mapping):
        items = {key: mapped(item, change, (*path, key)) for key, item in value.items()}
        if type(value) is dict:
            return items
        same = copy.copy(value)  # a BatchEncoding, a TensorDict: keep its type
        for key, item in items.items():
            same[key] = item  # type: ignore[index]
        return same
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(item, change, (*path, index)) for index, item in enumerate(value)))
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(item, change, (*path, index)) for index, item in enumerate(value))
    return value


def labels_path(batch: Any) -> TreePath | None:
    """Return where the labels of a batch are: under a usual name, or second of a pair; None if unknown."""
    if isinstance(batch, Mapping):
        return next(((name,) for name in LABEL_NAMES if isinstance(batch.get(name), torch.Tensor)), None)
    if isinstance(batch, (list, tuple)) and len(batch) == 2 and isinstance(batch[1], torch.Tensor):
        return (1,)
    return None


def at(batch: Any, path: TreePath) -> torch.Tensor:
    """Return the tensor at a path."""
    for key in path:
        batch = batch[key]
    assert isinstance(batch, torch.Tensor)
    return batch


def inputs(batch: Any) -> list[tuple[TreePath, torch.Tensor]]:
    """Return the leaves that are not labels."""
    labels = labels_path(batch)
    return [(path, tensor) for path, tensor in leaves(batch) if path != labels]


def to_device(batch: Any, device: torch.device) -> Any:
    """Return the batch with its tensors on a device."""
    return mapped(batch, lambda _, tensor: tensor.to(device))


# The subject, and how it is made.


@dataclass
class Subject:
    """A model with what it is trained on.

    Args:
        model: The model.
        batch: Whatever `loss` takes; only nested tensors are examined.
        loss: Gives the scalar to minimise.
        optimizer: The user's own, if the probe has to use it.
        train_step: One whole step of the user's own, returning the loss.
        draws: The seed that is set before each loss, so that each call draws the same; None to leave all draws free.
        causal: Position t may depend on positions up to t alone; None where it is not known.
        build_seconds: How long it took to build all this.
    """

    model: nn.Module
    batch: Any
    loss: Callable[[nn.Module, Any], torch.Tensor]
    optimizer: torch.optim.Optimizer | None = None
    train_step: Callable[..., Any] | None = None
    causal: bool | None = None
    dtype: torch.dtype = torch.float32
    draws: int | None = None
    hidden: list[tuple[str, nn.Parameter]] = field(default_factory=list)
    build_seconds: float = 0.0

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next((tensor.device for tensor in self.model.parameters()), torch.device("cpu"))

    @cached_property
    def scaler(self) -> torch.amp.GradScaler | None:
        """What keeps gradients in the range of 16-bit floats: one for all loops, so that its scale is found once."""
        if self.dtype is not torch.float16 or self.device.type == "mps":
            return None
        return torch.amp.GradScaler(self.device.type)

    @property
    def optimized(self) -> list[nn.Parameter]:
        """What the user's own optimizer holds."""
        groups = self.optimizer.param_groups if self.optimizer is not None else []
        return [parameter for group in groups for parameter in group["params"]]

    def backward(self) -> torch.Tensor:
        """Leave the gradients of the loss alone in the parameters, none where it has no graph, and return the loss."""
        self.model.zero_grad(set_to_none=True)
        loss = self.compute_loss()
        if loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]
        return loss

    def compute_loss(self) -> torch.Tensor:
        """Return the loss of the batch, in the precision that was asked for."""
        if self.draws is not None:
            seed_everything(self.draws)
        if self.dtype is torch.float32:
            return self._loss()
        with torch.autocast(self.device.type, dtype=self.dtype):
            return self._loss()

    def _loss(self) -> torch.Tensor:
        loss: torch.Tensor = loss_in(self.loss(self.model, self.batch))
        return loss

    def step(self) -> float:
        """Do one step of the user's own and return its loss."""
        assert self.train_step is not None
        if self.draws is not None:
            seed_everything(self.draws)
        value = loss_in(_call_step(self.train_step, self))
        return float(value.detach()) if isinstance(value, torch.Tensor) else float(value)

    def parameters(self) -> list[tuple[str, nn.Parameter]]:
        """Return the parameters with their names, the unregistered ones last."""
        return [*self.model.named_parameters(), *self.hidden]


def loss_in(value: Any) -> Any:
    """Return the loss of what a loss function or a step gave: itself, or its `loss`, as Transformers' outputs have it.

    Of several numbers without that name the first is taken, as Lightning and Keras log the loss first.
    """
    if isinstance(value, Mapping):
        return value["loss"] if "loss" in value else next(iter(value.values()), value)
    if isinstance(value, (list, tuple)) and value and not hasattr(value, "loss"):
        return value[0]
    return getattr(value, "loss", value)


def _call_step(train_step: Callable[..., Any], subject: Subject) -> Any:
    try:
        wanted = sum(
            parameter.default is parameter.empty
            and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
            for parameter in inspect.signature(train_step).parameters.values()
        )
    except (TypeError, ValueError):
        wanted = 0
    return train_step(*(subject.model, subject.batch, subject.optimizer)[:wanted])


def seed_everything(seed: int) -> None:
    """Seed the generators that a loss may draw from: those of torch, of Python, and of numpy where it is loaded."""
    torch.manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)


class Attributes:
    """The plain attributes of all modules, to return to, such as the state that a recurrent model keeps for itself."""

    def __init__(self, model: nn.Module) -> None:
        self._kept = [
            (module, {name: value for name, value in vars(module).items() if not name.startswith("_")})
            for module in model.modules()
        ]

    def restore(self) -> None:
        """Put back what was assigned anew since."""
        for module, kept in self._kept:
            vars(module).update(kept)


class State:
    """A copy of all parameters, buffers and optimizer state, and the plain attributes of modules, to return to."""

    def __init__(self, subject: Subject) -> None:
        self._tensors = [(tensor, tensor.detach().clone()) for tensor in _tensors(subject)]
        self._attributes = Attributes(subject.model)
        self._optimizer = subject.optimizer
        self._optimizer_state = copy.deepcopy(subject.optimizer.state_dict()) if subject.optimizer else None

    def restore(self) -> None:
        """Put every tensor back and forget all gradients."""
        with torch.no_grad():
            for tensor, kept in self._tensors:
                tensor.copy_(kept)
                tensor.grad = None
        self._attributes.restore()
        if self._optimizer is not None and self._optimizer_state is not None:
            self._optimizer.load_state_dict(copy.deepcopy(self._optimizer_state))


def _tensors(subject: Subject) -> list[torch.Tensor]:
    held = (*(parameter for _, parameter in subject.parameters()), *subject.model.buffers(), *subject.optimized)
    return list({id(tensor): tensor for tensor in held}.values())


# The user's own pipeline: `FILE.py:function` or `package.module:function`, called without arguments.


WANTED = (
    "an object or a dict with model (a torch module), batch, and loss or loss_fn (a function of model and batch); "
    "optimizer and train_step are optional"
)


def load_entry(entry: str, device: torch.device) -> Subject:
    """Call the entry and check what it returns.

    Raises:
        KnownFailure: the function does not exist, or what it returns is incomplete.
    """
    given = _function(entry)()
    parts = _parts(given)
    model, loss = parts.get("model"), parts.get("loss")
    if not isinstance(model, nn.Module) or not callable(loss) or "batch" not in parts:
        found = ", ".join(name for name in ("model", "batch", "loss") if name in parts) or "none of them"
        raise KnownFailure("entry", f"{entry} returned {type(given).__name__} with {found}; it must return {WANTED}")
    batch = parts["batch"]
    if callable(batch) and not isinstance(batch, torch.Tensor):
        batch = batch()
    train_step, optimizer = parts.get("train_step"), parts.get("optimizer")
    if train_step is not None and not callable(train_step):
        raise KnownFailure(
            "entry", f"{entry}: train_step is not a function; it must do one whole step and return the loss"
        )
    if train_step is None:
        # The user's own loop holds the model and the batch: they cannot be moved under it.
        model, batch = model.to(device), to_device(batch, device)
    return Subject(model, batch, loss, _optimizer(entry, optimizer), train_step)


def _parts(given: Any) -> dict[str, Any]:
    """Return what an entry gave, by name, from the keys of a dict or the attributes of another object."""
    names = ("model", "batch", "loss", "loss_fn", "optimizer", "train_step")
    if isinstance(given, Mapping):
        parts = {name: given[name] for name in names if name in given}
    else:
        parts = {name: getattr(given, name) for name in names if hasattr(given, name)}
    if "loss_fn" in parts:
        parts.setdefault("loss", parts["loss_fn"])
    return parts


def _optimizer(entry: str, optimizer: Any) -> torch.optim.Optimizer | None:
    if optimizer is None or isinstance(optimizer, torch.optim.Optimizer):
        return optimizer
    raise KnownFailure(
        "entry", f"{entry}: optimizer is {type(optimizer).__name__}, not a torch optimizer; leave it out"
    )


def _function(entry: str) -> Callable[[], Any]:
    where, _, name = entry.rpartition(":")
    if not where or not name:
        raise KnownFailure("entry", f"{entry!r} names no function; write FILE.py:function or package.module:function")
    module = _module(where)
    function = getattr(module, name, None)
    if not callable(function):
        known = ", ".join(key for key, value in vars(module).items() if callable(value) and not key.startswith("_"))
        raise KnownFailure("entry", f"{where} has no function {name!r}; it has: {known[:200] or 'none'}")
    return function  # type: ignore[no-any-return]


def _module(where: str) -> Any:
    sys.path.insert(0, str(Path.cwd()))
    if not where.endswith(".py"):
        try:
            return importlib.import_module(where)
        except ModuleNotFoundError as error:
            if error.name and where.startswith(error.name):
                raise KnownFailure("entry", f"no module {where!r} here; give the path of its file instead") from None
            raise
    path = Path(where).resolve()
    if not path.is_file():
        raise KnownFailure("entry", f"{where}: no such file; give the path of the file that defines the function")
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
