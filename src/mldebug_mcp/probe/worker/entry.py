"""The user's own pipeline: `FILE.py:function` or `package.module:function`, called without arguments."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .failure import KnownFailure
from .subject import Subject
from .tree import to_device

WANTED = "an object with the attributes model (a torch module), batch and loss (a function of model and batch)"


def load_entry(entry: str, device: torch.device) -> Subject:
    """Call the entry and check what it returns.

    Raises:
        KnownFailure: there is no such function, or what it returns is incomplete.
    """
    given = _function(entry)()
    model, loss = getattr(given, "model", None), getattr(given, "loss", None)
    if not isinstance(model, nn.Module) or not callable(loss) or not hasattr(given, "batch"):
        found = ", ".join(name for name in ("model", "batch", "loss") if hasattr(given, name)) or "none of them"
        raise KnownFailure("entry", f"{entry} returned {type(given).__name__} with {found}; it must return {WANTED}")
    batch = given.batch() if callable(given.batch) and not isinstance(given.batch, torch.Tensor) else given.batch
    train_step, optimizer = getattr(given, "train_step", None), getattr(given, "optimizer", None)
    if train_step is not None and not callable(train_step):
        raise KnownFailure(
            "entry", f"{entry}: train_step is not a function; it must do one whole step and return the loss"
        )
    if train_step is None:
        # The user's own loop holds the model and the batch: they cannot be moved under it.
        model, batch = model.to(device), to_device(batch, device)
    return Subject(model, batch, loss, _optimizer(entry, optimizer), train_step)


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
