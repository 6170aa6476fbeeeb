"""The first pass. It measures loss and gradients, where a value stops being finite, and what the output depends on."""

from __future__ import annotations

import contextlib
import math
import random
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook, register_module_parameter_registration_hook
from torch.overrides import TorchFunctionMode

from .outputs import Capture, spans, token_ids
from .parameters import MAX_NAMES_LISTED, gradients
from .report import KnownFailure
from .subject import LABEL_NAMES, Attributes, Subject, TreePath, inputs, labels_path, leaves, mapped, seed_everything

CALLS_OF_EACH_KIND = 4
"""Calls of each kind. Chosen: two alike by chance are rare, four are not met."""


def repeated_losses(subject: Subject) -> dict[str, Any]:
    """Call the loss again and again in evaluation mode with nothing changed between the calls.

    Modules that are random in training mode alone, such as dropout, are quiet there. What differs is drawn anew by each
    call. Generators and attributes of modules are put back afterwards, so that later phases see the same numbers.

    Returns:
        `repeated_losses` of calls that draw freely, `replayed_losses` of calls with one seed: they differ by rounding
        alone where all draws can be seeded, and `loss_rounding`, the relative rounding of the loss's precision. Nothing
        if a call fails.
    """
    modes = [(module, module.training) for module in subject.model.modules()]
    attributes = Attributes(subject.model)
    calls: list[Call] = []
    cards = [subject.device] if subject.device.type == "cuda" else []
    free: list[float] = []
    replayed: list[float] = []
    try:
        with torch.no_grad(), _generators_put_back(cards):
            for number in range(2 * CALLS_OF_EACH_KIND):
                attributes.restore()
                subject.model.eval()
                if number >= CALLS_OF_EACH_KIND:
                    seed_everything(0)
                with CallWatch(subject) as watch:
                    loss = subject.compute_loss()
                if number < CALLS_OF_EACH_KIND:
                    calls.append(watch.call)
                (free if number < CALLS_OF_EACH_KIND else replayed).append(float(loss))
            rounding = torch.finfo(loss.dtype).eps
    except Exception:  # noqa: BLE001 - the user's code, which may not bear evaluation mode or a pass without gradients
        return {}
    finally:
        attributes.restore()
        for module, training in modes:
            module.training = training
    return {
        "repeated_losses": free,
        "replayed_losses": replayed,
        "loss_rounding": rounding,
        "made_in_call": calls[-1].made[:MAX_NAMES_LISTED],
        "changed_in_call": calls[-1].changed[:MAX_NAMES_LISTED],
        "targets_drawn": targets_drawn(calls),
    }


@dataclass
class Call:
    """What one call of the loss did.

    Args:
        made: Modules that registered parameters, so that they were made in the call.
        changed: Tensors of the batch that the call changed.
        labels: The labels that the model was given.
        parts: Whether the loss called parts of the model by themselves, so that its output is not all that counts.
        output: Sum and norm of the model's main output, which may be too large to keep.
        rows: A number for each row of what the model was given.
    """

    made: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    labels: torch.Tensor | None = None
    parts: bool = False
    output: tuple[float, float] | None = None
    rows: torch.Tensor | None = None


class CallWatch:
    """Watches one call of the loss while it is entered."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._known = {id(module) for module in subject.model.modules()}
        self._before = [(path, tensor, tensor.detach().clone()) for path, tensor in leaves(subject.batch)]
        self._capture = Capture(subject.model)
        self._inside = False
        self.call = Call()

    def __enter__(self) -> CallWatch:
        self._handles = [
            register_module_parameter_registration_hook(self._registered),
            self._subject.model.register_forward_pre_hook(self._given, with_kwargs=True),
            self._subject.model.register_forward_hook(self._leave_call),
            register_module_forward_pre_hook(self._called),
        ]
        self._capture.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._capture.__exit__(*error)
        for handle in self._handles:
            handle.remove()
        output = self._capture.tensor()
        self.call.output = None if output is None else (float(output.sum()), float(output.norm()))
        self.call.changed = [
            ".".join(map(str, path)) or "the batch" for path, tensor, kept in self._before if not same(tensor, kept)
        ]

    def _registered(self, module: nn.Module, name: str, parameter: nn.Parameter) -> None:
        if parameter is not None and id(module) not in self._known:
            self.call.made.append(f"{type(module).__name__}.{name}")

    def _given(self, module: nn.Module, arguments: Any, keywords: dict[str, Any]) -> None:
        del module
        self._inside = True
        given = [tensor for _, tensor in leaves((list(arguments), dict(keywords))) if tensor.ndim > 1]
        self.call.rows = row_marks(given[0]) if given else None
        labels = next((keywords[name] for name in LABEL_NAMES if isinstance(keywords.get(name), torch.Tensor)), None)
        self.call.labels = None if labels is None else labels.detach().clone()

    def _leave_call(self, module: nn.Module, arguments: Any, output: Any) -> None:
        del module, arguments, output
        self._inside = False

    def _called(self, module: nn.Module, arguments: Any) -> None:
        del arguments
        if not self._inside and module is not self._subject.model and id(module) in self._known:
            self.call.parts = True


def same(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two tensors hold the same, NaN included."""
    return tensor.shape == other.shape and bool(((tensor == other) | (tensor.isnan() & other.isnan())).all())


def row_marks(given: torch.Tensor) -> torch.Tensor:
    """Return a number for each row that is the same for equal rows: a weighted sum of what it holds."""
    flat = given.detach().flatten(1).double().cpu()
    return flat @ torch.sin(torch.arange(1, flat.shape[1] + 1, dtype=torch.float64))


def targets_drawn(calls: list[Call]) -> str:
    """Return what shows that targets are drawn anew, or "".

    It is "labels" that the model is given, the "order" of its rows, or "outputs" that stay.

    Outputs that stay the same while the loss changes are compared with something that does not. A loss that changes
    where only the order of the rows does compares them with something in another order.
    """
    labels = [call.labels for call in calls if call.labels is not None]
    alike = [label for label in labels if label.shape == labels[0].shape]
    # Labels that are left out here and there hide words at random: what stands in them is compared.
    if any(bool(((tensor != labels[0]) & (tensor >= 0) & (labels[0] >= 0)).any()) for tensor in alike):
        return "labels"
    if _only_order_differs([call.rows for call in calls if call.rows is not None]):
        return "order"
    first = calls[0].output
    whole = first is not None and not any(call.parts for call in calls)
    return "outputs" if whole and all(call.output == first for call in calls) else ""


def _only_order_differs(marks: list[torch.Tensor]) -> bool:
    """Return whether the calls were given the same rows, and in another order."""
    if len(marks) < CALLS_OF_EACH_KIND or len({len(mark) for mark in marks}) != 1:
        return False
    sets = [mark.sort().values for mark in marks]
    return all(torch.equal(set_, sets[0]) for set_ in sets) and not all(torch.equal(mark, marks[0]) for mark in marks)


@contextlib.contextmanager
def _generators_put_back(cards: list[torch.device]) -> Iterator[None]:
    """Put the generators of torch, Python and numpy back afterwards."""
    numpy, state = sys.modules.get("numpy"), random.getstate()
    of_numpy = numpy.random.get_state() if numpy is not None else None
    with torch.random.fork_rng(devices=cards):
        try:
            yield
        finally:
            random.setstate(state)
            if numpy is not None:
                numpy.random.set_state(of_numpy)


# One pass watched operation by operation: where values grow, and where the first non-finite one comes from.
#
# Every torch function of the pass is seen, so a NaN is traced to the operation and the line that made it, in a module
# or in the loss function alike. That is slow; it is done for one or two passes, never while training.


MAX_SHOWN_FRAMES = 8
"""Frames shown before the first non-finite value."""
_MAKES_MASKS = ("masked_fill", "masked_fill_", "full", "full_like", "where", "triu", "tril", "triu_", "__setitem__",
                "fill_", "new_full", "to", "clone", "expand", "__get__", "__getitem__", "unsqueeze")  # fmt: skip
"""Operations that put infinities where a program asks for them, as an attention mask does."""
MIN_SATURATED_OUTPUT = 0.99
"""|tanh|, or a sigmoid's distance from one half doubled, above this has less than 2 % of its greatest slope."""
Frame = dict[str, Any]


class Trace(TorchFunctionMode):
    """Record the operations of a pass.

    Attributes:
        frames: The latest operations: `op`, `module`, `where`, `largest_out`, `dtype`.
        origins: Operations that made a non-finite value out of finite ones, in order.
        units: Per squashing or rectifying operation, the share of its outputs that is saturated or zero.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.frames: list[Frame] = []
        self.origins: list[Frame] = []
        self.units: list[dict[str, Any]] = []
        self._names = {id(module): name or "model" for name, module in model.named_modules()}
        self._stack: list[str] = []
        self._handles: list[Any] = []
        self._before: list[list[Frame]] = []

    def __enter__(self) -> Trace:
        hooks = nn.modules.module
        self._handles = [
            hooks.register_module_forward_pre_hook(self._enter_module),
            hooks.register_module_forward_hook(self._leave_module),
        ]
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        for handle in self._handles:
            handle.remove()

    def _enter_module(self, module: nn.Module, inputs: Any) -> None:
        del inputs
        self._stack.append(self._names.get(id(module), type(module).__name__))

    def _leave_module(self, module: nn.Module, inputs: Any, output: Any) -> None:
        del module, inputs, output
        if self._stack:
            self._stack.pop()

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        # In-place operations destroy their input: look at it first.
        before = _largest((args, kwargs or {}))
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", str(func))
        made = [tensor for _, tensor in leaves(result) if tensor.is_floating_point() and tensor.numel()]
        if made and not name.startswith("__get"):
            self._record(name, before, made)
        return result

    def _record(self, name: str, before: float | None, made: list[torch.Tensor]) -> None:
        with torch._C.DisableTorchFunction():
            after = _largest(made)
            frame = {"op": name, "module": self._stack[-1] if self._stack else "",
                     "largest_out": after, "dtype": str(made[0].dtype).removeprefix("torch.")}  # fmt: skip
            if name in ("tanh", "sigmoid", "relu", "tanh_", "sigmoid_", "relu_"):
                self.units.append({**frame, "share": _share_lost(name.rstrip("_"), made[0])})
            self.frames.append(frame)
            del self.frames[: -MAX_SHOWN_FRAMES - 1]
            # Infinities of a mask are meant: an operation that makes NaN of them is where it began.
            of_a_mask = after is None and before is not None and not self.origins
            worse = of_a_mask or (_bad(after) and not _bad(before))
            if worse and name not in _MAKES_MASKS and len(self.origins) < 50:
                frame["where"] = _user_frame()
                self.origins.append(frame)
                self._before.append(self.frames[:-1])

    def culprit(self) -> Frame | None:
        """Return the operation to blame for a non-finite loss, with the frames before it; None if none is seen.

        A NaN is blamed on the operation that first made one of finite values. An infinity counts where there is none.
        """
        if not self.origins:
            return None
        index = next((i for i, origin in enumerate(self.origins) if origin["largest_out"] is None), 0)
        return {**self.origins[index], "frames": self._before[index]}


def _bad(largest: float | None) -> bool:
    return largest is None or largest == float("inf")


def _largest(value: Any) -> float | None:
    """Return the largest absolute value in a nest of tensors; None for a NaN."""
    with torch._C.DisableTorchFunction(), torch.no_grad():
        most = 0.0
        for _, tensor in leaves([*value[0], value[1]] if isinstance(value, tuple) else value):
            if not tensor.is_floating_point() or not tensor.numel():
                continue
            largest = float(tensor.detach().abs().max())
            if largest != largest:  # noqa: PLR0124 - NaN
                return None
            most = max(most, largest)
        return most


def _share_lost(name: str, output: torch.Tensor) -> float:
    value = output.detach().float()
    if name == "relu":
        # A unit is dead if it is zero for every row; a row's zeros alone are how a ReLU works.
        flat = value.reshape(-1, value.shape[-1]) if value.ndim <= 3 else value.movedim(1, -1).flatten(0, -2)
        return float((flat == 0).all(dim=0).float().mean())
    squashed = value if name == "tanh" else 2 * value - 1
    return float((squashed.abs() > MIN_SATURATED_OUTPUT).float().mean())


def _user_frame() -> str:
    """Return file and line of the innermost frame that is neither torch's nor the probe's."""
    frame: types.FrameType | None = sys._getframe(1)
    here = str(Path(__file__).parent)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((here, "<")) and f"{Path(torch.__file__).parent}" not in file:
            return f"{Path(file).name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def first_pass(subject: Subject) -> tuple[dict[str, Any], torch.Tensor | None]:
    """Compute loss and gradients once, watched. Returns what was seen and the model's output.

    Raises:
        KnownFailure: the loss is not a scalar tensor, or an id has no row in its embedding.
    """
    subject.model.zero_grad(set_to_none=True)
    with Capture(subject.model) as capture, vocabulary_checked(subject.model), Trace(subject.model) as trace:
        loss = subject.compute_loss()
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        found = tuple(loss.shape) if isinstance(loss, torch.Tensor) else type(loss).__name__
        raise KnownFailure("entry", f"the loss is {found}, not a scalar tensor; reduce it, for example with .mean()")
    result: dict[str, Any] = {
        "initial_loss": float(loss.detach()),
        "loss_has_graph": loss.requires_grad,
        "activations": [{**unit} for unit in trace.units],
        "output_dtype": str(capture.output.dtype) if isinstance(capture.output, torch.Tensor) else None,
        "distinct_given": distinct_given(capture.given),
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


def distinct_given(given: list[torch.Tensor]) -> int | None:
    """Return how many rows of what the model is given differ; None where it has no rows."""
    rows = {len(tensor) for tensor in given if tensor.ndim > 1}
    if len(rows) != 1 or (count := rows.pop()) < MIN_ROWS_COMPARED:
        return None
    tensors = [tensor for tensor in given if tensor.ndim and len(tensor) == count]
    return 1 if all(same(tensor, tensor[:1].expand_as(tensor)) for tensor in tensors) else count


MIN_ROWS_COMPARED = 2
"""Rows without which outputs are not compared by row."""


def first_bad_backward(subject: Subject) -> dict[str, Any] | None:
    """Run a pass backward until an operation gives a non-finite gradient; return that and the modules on the way."""
    frames: list[dict[str, Any]] = []

    def watch(name: str) -> Any:
        def look(gradient: torch.Tensor) -> None:
            value = float(gradient.detach().abs().max()) if gradient.numel() else 0.0
            largest = None if math.isnan(value) else value
            frames.append({"module": name, "op": "gradient of output", "largest_out": largest})

        return look

    def hook(name: str) -> Any:
        def attach(module: nn.Module, arguments: Any, output: Any) -> None:
            del module, arguments
            if isinstance(output, torch.Tensor) and output.requires_grad:
                output.register_hook(watch(name))  # type: ignore[no-untyped-call]

        return attach

    handles = [submodule.register_forward_hook(hook(name)) for name, submodule in subject.model.named_modules() if name]
    try:
        subject.backward()
    finally:
        for handle in handles:
            handle.remove()
    bad = next(
        (i for i, frame in enumerate(frames) if frame["largest_out"] is None or math.isinf(frame["largest_out"])), None
    )
    parameters = ((name, parameter.grad) for name, parameter in subject.parameters() if parameter.grad is not None)
    spoilt = (name for name, gradient in parameters if not bool(torch.isfinite(gradient).all()))
    module = frames[bad]["module"] if bad is not None else next(spoilt, "")
    found = {
        "direction": "backward",
        "module": module,
        "op": _operation(subject),
        "frames": frames[: bad or 0][-MAX_SHOWN_FRAMES:],
    }
    subject.model.zero_grad(set_to_none=True)
    return found


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


@contextlib.contextmanager
def vocabulary_checked(model: nn.Module) -> Iterator[None]:
    """Raise a clear error for ids beyond the end of an embedding, for which CUDA would end the process."""
    names = {embedding: name for name, embedding in model.named_modules() if isinstance(embedding, nn.Embedding)}

    def check(module: nn.Embedding, arguments: Any) -> None:
        ids = arguments[0] if arguments else None
        if not isinstance(ids, torch.Tensor) or not ids.numel():
            return
        highest, lowest, rows = int(ids.max()), int(ids.min()), module.num_embeddings
        if highest >= rows or lowest < 0:
            worst = highest if highest >= rows else lowest
            raise KnownFailure("vocabulary", f"id {worst} has no row in {names[module]}, which has {rows}")

    handles = [embedding.register_forward_pre_hook(check) for embedding in names]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


# What the output depends on: inputs are changed one at a time and the model is run again.
#
# The source of the idea: karpathy_recipe, "use backprop to chart dependencies". Here inputs are perturbed instead,
# since token ids have no gradient; like there, an output that changes where it must not shows the fault.


MIN_OUTPUT_CHANGE = 1e-4
"""Relative change of an output that counts: above what another order of summation does in 32 bits."""


def dependence(subject: Subject) -> dict[str, Any]:
    """Return which dependences are there that should not be, and which are missing that should be there.

    Everything is done in evaluation mode, where rows must not see each other. A key is absent where it is unknown.
    """
    modes = [(module, module.training) for module in subject.model.modules()]
    subject.model.eval()
    statistics: set[str] = set()
    handles = [
        module.register_forward_pre_hook(_statistics_watch(name, statistics))
        for name, module in subject.model.named_modules()
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm)
    ]
    try:
        with torch.no_grad():
            with DropoutWatch() as dropout:
                _output(subject, subject.batch)
            return {**_measure(subject), "batch_statistics": sorted(statistics), "dropout": sorted(dropout.active)}
    finally:
        for handle in handles:
            handle.remove()
        for module, training in modes:
            module.training = training


def _measure(subject: Subject) -> dict[str, Any]:
    first = _output(subject, subject.batch)
    if first is None or not bool(torch.isfinite(first).all()):
        return {}
    result: dict[str, Any] = _padding(subject, first)
    if _differs(first, _output(subject, subject.batch)):
        return result  # if the output is random whatever the seed, no other comparison means anything
    if not _reaches_model(subject):
        return result  # the loss takes its inputs from elsewhere
    rows = _rows(subject)
    changed = _output(subject, _perturbed(subject.batch, slice(None)))
    if changed is not None:
        result["inputs_change"] = _change(first, changed)
    if rows is not None and rows > 1 and len(first) == rows and first.ndim >= 2 and first.shape != (rows, rows):
        # Rows against rows, as in a contrastive loss, mix by design.
        # A pass along the rows, as of a recurrence that takes them for time, carries a change to one side alone.
        for place, rest in ((rows - 1, slice(0, -1)), (0, slice(1, None))):
            others = _perturbed(subject.batch, slice(place, place + 1))
            changed = _output(subject, others)
            if changed is not None and not result.get("rows_mixed") and _other_rows_stay(subject, others, rest):
                result["rows_mixed"] = _differs(first[rest], changed[rest])
                result["row_change"] = _change(first[rest], changed[rest])
    ids = token_ids(subject)
    if ids is not None and ids.shape[1] > 2 and first.ndim == 3 and spans(first, ids):
        middle = ids.shape[1] // 2
        changed = _output(subject, _perturbed(subject.batch, slice(None), middle))
        if changed is not None:
            result["sees_future"] = _differs(first[:, :middle], changed[:, :middle])
            result["future_change"] = _change(first[:, :middle], changed[:, :middle])
    return result


ATTENTION_MASKS = ("attention_mask", "padding_mask", "mask")
"""Columns whose zeros are padding."""


def _padding(subject: Subject, first: torch.Tensor) -> dict[str, Any]:
    """Return whether the outputs change with what stands in the padding, where the model uses the mask."""
    given, ids = inputs(subject.batch), token_ids(subject)
    masks = [(path, tensor) for path, tensor in given if path and path[-1] in ATTENTION_MASKS]
    if ids is None or not masks or masks[0][1].shape != ids.shape:
        return {}
    path, mask = masks[0]
    real = mask != 0
    if not bool(torch.isin(mask, torch.tensor([0, 1], device=mask.device)).all()) or bool(real.all() | ~real.any()):
        return {}
    rest = real if first.ndim == 3 and first.shape[:2] == real.shape else slice(None)

    def changes(what: TreePath, other: torch.Tensor) -> bool | None:
        output = _output(subject, mapped(subject.batch, lambda here, tensor: other if here == what else tensor))
        # a mask that leaves nothing gives NaN, which is a change too
        return None if output is None else not _change(first[rest], output[rest]) <= MIN_OUTPUT_CHANGE

    where = next(here for here, tensor in given if tensor is ids)
    others = ids[real]
    filled = others[torch.arange(ids.numel(), device=ids.device) % len(others)].reshape(ids.shape)
    padding, used = changes(where, torch.where(real, ids, filled)), changes(path, torch.ones_like(mask))
    return {} if padding is None or used is None else {"padding_seen": padding, "mask_used": used}


def _statistics_watch(name: str, found: set[str]) -> Any:
    def look(module: torch.nn.Module, arguments: Any) -> None:
        del arguments
        if module.training or module.running_mean is None:
            found.add(name)

    return look


class DropoutWatch(TorchFunctionMode):
    """Names the dropout that is active while it is entered."""

    def __init__(self) -> None:
        super().__init__()
        self.active: set[str] = set()

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note calls of dropout; pass on all calls."""
        del types
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "dropout" and kwargs.get("training", args[2] if len(args) > 2 else True):
            share = kwargs.get("p", args[1] if len(args) > 1 else 0.5)
            if share > 0:
                self.active.add(f"p = {share:g}")
        elif name == "scaled_dot_product_attention" and kwargs.get("dropout_p", args[4] if len(args) > 4 else 0.0) > 0:
            self.active.add("in attention")
        return func(*args, **kwargs)


def _reaches_model(subject: Subject) -> bool:
    """Return whether the model is given something else when the batch is changed."""
    others = _perturbed(subject.batch, slice(None))
    before, after = _input_tensors(subject, subject.batch), _input_tensors(subject, others)
    return len(before) != len(after) or not all(map(torch.equal, before, after))


def _other_rows_stay(subject: Subject, batch: Any, rest: slice) -> bool:
    """Return whether the model is given the same rows in the rest, so that the loss does not mix them before."""
    before, after = _input_tensors(subject, subject.batch), _input_tensors(subject, batch)
    return len(before) == len(after) and all(
        torch.equal(tensor[rest], other[rest]) for tensor, other in zip(before, after, strict=True)
    )


def _input_tensors(subject: Subject, batch: Any) -> list[torch.Tensor]:
    with Capture(subject.model) as capture:
        _output(subject, batch)
    return [tensor for tensor in capture.given if tensor.ndim]


def _output(subject: Subject, batch: Any) -> torch.Tensor | None:
    torch.manual_seed(0)
    attributes = Attributes(subject.model)
    with Capture(subject.model) as capture:
        try:
            subject.loss(subject.model, batch)
        except (RuntimeError, ValueError, IndexError):
            return None  # the model does not take the changed input, which tells nothing
        finally:
            attributes.restore()
    found = capture.tensor()
    return None if found is None else found.float().clone()


def _rows(subject: Subject) -> int | None:
    labels = labels_path(subject.batch)
    tensors = [tensor for _, tensor in inputs(subject.batch) if tensor.ndim]
    if labels is None or not tensors:
        return None
    counts = {len(tensor) for tensor in tensors}
    return counts.pop() if len(counts) == 1 else None


def _perturbed(batch: Any, rows: slice, positions_from: int = 0) -> Any:
    """Return the batch with other contents in these rows from a position on: ids shuffled, values replaced by noise."""
    wanted = {path for path, tensor in inputs(batch) if _is_content(path, tensor)}

    def change(path: TreePath, tensor: torch.Tensor) -> torch.Tensor:
        if path not in wanted:
            return tensor
        tensor = tensor.clone()
        part = tensor[rows, positions_from:] if tensor.ndim > 1 else tensor[rows]
        if tensor.is_floating_point():
            scale = float(tensor.float().std()) if tensor.numel() > 1 else 1.0
            part.copy_(part + torch.randn_like(part.float()).to(part.dtype) * max(scale, 1e-3))
        else:
            part.copy_(_other_ids(tensor, part))
        return tensor

    return mapped(batch, change)


def _other_ids(tensor: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
    """Return ids that occur in the tensor, each different from the one it replaces where there is a choice."""
    known = torch.unique(tensor)
    if len(known) < 2:
        return (part + 1).clamp(max=int(tensor.max())) if int(tensor.max()) > 0 else part + 1
    other: torch.Tensor = known[(torch.searchsorted(known, part.contiguous()) + 1) % len(known)]
    return other


def _is_content(path: TreePath, tensor: torch.Tensor) -> bool:
    name = str(path[-1]) if path else ""
    return (
        "mask" not in name
        and "position" not in name
        and "type" not in name
        and tensor.ndim >= 1
        and (tensor.is_floating_point() or tensor.dtype in (torch.int64, torch.int32, torch.uint8))
    )


def _change(tensor: torch.Tensor, other: torch.Tensor) -> float:
    if tensor.shape != other.shape:
        return float("inf")
    scale = float(tensor.abs().max()) or 1.0
    return float((tensor - other).abs().max()) / scale


def _differs(tensor: torch.Tensor, other: torch.Tensor | None) -> bool:
    return other is None or _change(tensor, other) > MIN_OUTPUT_CHANGE
