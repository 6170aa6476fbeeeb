"""A memory snapshot as tables of numbers, with its stack traces folded, and sizes in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mldebug_mcp.core.text import shorten

# Stack traces of a snapshot, folded: which line of whose code asked for the memory, and in which phase of training.


MAX_FRAMES = 256
"""Frames of a stack that are looked at, innermost first. With those of C++ and CPython between, the fifty Python frames
of a Trainer come to more than 128."""
SHOWN_FRAMES = 6
MAX_LINE_NUMBER = 1 << 31
NO_PYTHON = "(no Python frame)"
_INSTALLED = re.compile(r"(?:site|dist)-packages/|/lib(?:64)?/python3|^<frozen|^torch/|/torch/_|lib/python3")
_TORCH = re.compile(
    r"(?:^|/)(?:torch|torchgen|triton|functorch|jax|jaxlib|torchinductor_[^/]*)/|/lib(?:64)?/python3\.\d+/(?!site-packages|dist-packages)|^<frozen"
)
_NATIVE = re.compile(r"\.(?:c|cc|cpp|cxx|cu|cuh|h|hpp|so[.\d]*|pyx)$|^\?\?$|^$|^:0$|^none$")
_FX_FILE = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<name>\S+)')


class Phase(IntEnum):
    """What the program was doing when it asked for memory, from the innermost frame that tells."""

    UNKNOWN = 0
    SETUP = 1
    FORWARD = 2
    LOSS = 3
    BACKWARD = 4
    OPTIMIZER = 5
    OPTIMIZER_STATE = 6
    COLLECTIVE = 7


# Tried in this order on each frame, written file:function, innermost frame first: a forward pass that runs inside a
# closure of optimizer.step (Lightning), or inside backward (checkpointing), is a forward pass.
_FIRST_OF_ALL: tuple[tuple[Phase, re.Pattern[str]], ...] = (
    # The code that torch.compile generates names the line of the model that each operation comes from, in backward too.
    (Phase.BACKWARD, re.compile(r"/_aot_autograd/.*:_backward_impl$")),
    # FSDP2 makes the gradients that stay in its own reduction.
    (Phase.BACKWARD, re.compile(r"/_fsdp_collectives\.py:foreach_reduce$")),
    # torch.compile runs kernels to time them; their arguments are copies.
    (Phase.UNKNOWN, re.compile(r"/torch/_inductor/.*:benchmark\w*$|/_subclasses/fake_tensor\.py:init_gpu_context$")),
    # Parameters that FSDP and DeepSpeed split, flatten or copy are made in modules of torch.distributed.
    (
        Phase.SETUP,
        re.compile(
            r"/_fsdp_param\.py:(?:__init__|_init_sharded_param\w*)$|/_flat_param\.py:(?:flatten_\w+|_init_flat_param\w*)$"
            r"|/nn/parameter\.py:__deepcopy__$"
        ),
    ),
)
"""Functions that decide by themselves, wherever in a stack they are."""
_RULES: tuple[tuple[Phase, re.Pattern[str]], ...] = tuple(
    (phase, re.compile("|".join(alternatives)))
    for phase, alternatives in (
        (
            Phase.OPTIMIZER_STATE,
            (
                r"optim.*:(?:_init_group|_?init_state\w*|init_8bit_state|get_state_buffer|(?:_process_value_of_|_?load_)state_dict\w*)$",
            ),
        ),
        (
            Phase.OPTIMIZER,
            (
                r"(?:/optim/|optimizers?[/.]|optim\.py|adam|lion|adafactor|muon|shampoo).*:(?:step|_step|update\w*|_?\w*(?:adam|sgd|adagrad|adadelta|rmsprop|lion|muon)\w*)$",
            ),
        ),
        (
            Phase.LOSS,
            (
                r":(?:\w*cross_entropy\w*|\w*CrossEntropy\w*|\w*nll_loss\w*|_?log_softmax|ForCausalLMLoss|selective_log_softmax|kl_div)$",
                r":at::\S*(?:log_softmax|nll_loss|cross_entropy)",
            ),
        ),
        (
            Phase.BACKWARD,
            (
                r":(?:backward|_engine_run_backward)$",
                r":.*(?:torch::autograd::(?:Engine|python::PythonEngine|AccumulateGrad)|Backward\d*::apply)",
            ),
        ),
        (
            Phase.COLLECTIVE,
            (
                r"/torch/distributed/(?!algorithms/_checkpoint).*:(?!forward$|_?call_impl$|wrapper$|inner$)\w+$",
                r"deepspeed/comm/",
                r"/nn/parallel/distributed\.py:(?:_ddp_init_helper|_pre_forward|_post_forward|_sync_\w+)$",
                r":.*(?:ncclComm|ProcessGroupNCCL|c10d::)",
            ),
        ),
        (
            Phase.SETUP,
            (
                r"/nn/modules/module\.py:(?:_apply|convert|to|cuda|half|float|bfloat16)$",
                r":(?:from_pretrained|\w*load_state_dict\w*|_load_from_state_dict|set_module_tensor_to_device|reset_parameters|to_empty)$",
                r"/nn/modules/\w+\.py:__init__$",
            ),
        ),
        (
            Phase.FORWARD,
            (
                r":(?:\w*forward\w*|_call_impl|_wrapped_call_impl|training_step|compute_loss|generate)$",
                r"/nn/functional\.py:",
                r"/nn/modules/",
            ),
        ),
        (Phase.SETUP, (r":(?:__init__|(?:build|create|init|load|make|setup|get)_?\w*model\w*)$",)),
    )
)
_EVALUATION = re.compile(
    r":_?(?:evaluat\w*|eval|eval_\w+|validat\w*|valid|valid_\w+|val_\w+|test_step|prediction_step|prediction_loop)$"
)
_ATTENTION = re.compile(
    r":\w*(?:attention|attn|sdpa|eager|multi_?head|mha)\w*$"
    r"|/\w*(?:attention|attn)\w*\.py:"
    r"|/nn/functional\.py:(?:scaled_dot_product_attention|multi_head_attention_forward)$"
    r"|:at::\S*scaled_dot_product_attention_math",
    re.IGNORECASE,
)
"""Functions and files of attention."""
_SOFTMAX = re.compile(r"/nn/functional\.py:softmax$|:at::(?:native::|_)?softmax\b")
_MODULE = re.compile(r"/torch/nn/modules/(?!module\.py|container\.py)(?P<module>\w+)\.py:\w*forward\w*$")
_FUNCTIONAL = re.compile(r"/torch/nn/functional\.py:(?P<function>\w+)$")
_COPIES = re.compile(r"/torch/_tensor\.py:__deepcopy__$|/torch/storage\.py:(?:__deepcopy__|clone|_deepcopy)$")
_INPUTS = re.compile(
    r":_?(?:send_to_device|to_device|\w*prepare_inputs?|move_\w*to_device|batch_to_device|\w*transfer_batch\w*"
    r"|collate\w*|pin_memory|next_batch|get_batch)$"
)
"""Functions that copy a batch to the device."""
_RECOMPUTES = re.compile(r"/torch/utils/checkpoint\.py:(?:recompute_fn|unpack_hook|backward|_run_fn_with_\w+)$")
"""Functions of checkpointing that run a forward pass again within backward."""
_GATHERS = re.compile(r"/nn/parallel/\w+\.py:gather")
"""Where `nn.DataParallel` gathers on one device what its replicas give."""


@dataclass(frozen=True, slots=True)
class Stack:
    """One distinct stack trace.

    Args:
        site: The innermost frame outside torch and the interpreter, as file:line name; what a person looks for.
        caller: The innermost frame of the user's own code, where that is another one, else "".
        frames: The frames that tell something, innermost first, library frames folded into counts.
        phase: What the program was doing.
        evaluation: Whether a function named like an evaluation called it.
        recorded: False where no frame was recorded.
        gathers: Whether `nn.DataParallel` gathers the outputs of its replicas in it.
        module: The module of `torch.nn` that asked, as linear or normalization, or the function of
            `torch.nn.functional`; "" where plain code asked.
        attention: Whether a function of attention asked, itself or by a softmax.
        softmax: Whether a softmax asked.
        copies: Whether `copy.deepcopy` asked.
        inputs: Whether a function asked that copies batches to the device.
        recomputes: Whether checkpointing runs it again within backward.
        function: The file and function of `site`, without its line.
    """

    site: str
    caller: str
    frames: tuple[str, ...]
    phase: Phase
    evaluation: bool
    recorded: bool
    gathers: bool = False
    module: str = ""
    attention: bool = False
    softmax: bool = False
    copies: bool = False
    inputs: bool = False
    recomputes: bool = False
    function: str = ""


class Stacks:
    """The distinct stacks of a snapshot. Stack 0 is the empty one."""

    def __init__(self) -> None:
        self.all: list[Stack] = [Stack(NO_PYTHON, "", (), Phase.UNKNOWN, evaluation=False, recorded=False)]
        self._by_objects: dict[tuple[int, ...], int] = {(): 0}
        self._by_content: dict[tuple[str, ...], int] = {(): 0}
        self._texts: list[tuple[str, ...]] = [()]

    def __getitem__(self, index: int) -> Stack:
        return self.all[index]

    def __len__(self) -> int:
        return len(self.all)

    def add(self, frames: object) -> int:
        """Return the id of a stack as it stands in a snapshot: a list of frames, innermost first."""
        if not isinstance(frames, list):
            return 0
        # Torch writes equal frames as one object, so that their identities name a stack far faster than their texts.
        objects = tuple(map(id, frames if len(frames) <= MAX_FRAMES else frames[:MAX_FRAMES]))
        known = self._by_objects.get(objects)
        if known is None:
            texts = tuple(_frame(frame) for frame in frames[:MAX_FRAMES] if isinstance(frame, Mapping))
            known = self._by_content.get(texts)
            if known is None:
                known = self._by_content[texts] = len(self.all)
                self.all.append(_stack(texts))
                self._texts.append(texts)
            self._by_objects[objects] = known
        return known

    def shared(self, which: Iterable[int]) -> tuple[str, ...]:
        """Return the functions that all these stacks run in, outermost first, as file:name.

        The last is the one in which they part: a loop that makes them all runs in it, or further out. Stacks that were
        not recorded say nothing and are left out.
        """
        outermost_first = [self._texts[number][::-1] for number in which if number > 0]
        if not outermost_first:
            return ()
        # Between the first and the last in sorted order lie all others: what these two share, all share.
        pairs = zip(min(outermost_first), max(outermost_first), strict=False)
        same = [frame for frame, other in takewhile(lambda pair: pair[0] == pair[1], pairs)]
        parting = {_function(stack[len(same)]) for stack in outermost_first if len(stack) > len(same)}
        return (*map(_function, same), *(parting if len(parting) == 1 else ()))

    def within(self, functions: Sequence[str]) -> list[int]:
        """Return the stacks that run in these functions, outermost first, as `shared` gives them."""
        depth = len(functions)
        return [
            number
            for number, texts in enumerate(self._texts)
            if len(texts) >= depth and all(map(str.__eq__, functions, map(_function, texts[::-1][:depth])))
        ]

    def forget_objects(self) -> None:
        """Forget the identities: the objects behind them are about to go."""
        self._by_objects = {(): 0}


def _frame(frame: Mapping[str, Any]) -> str:
    """Return a frame as file:line:name; generated code is traced back to the model's source where torch recorded it."""
    original = frame.get("fx_original_trace")
    if isinstance(original, str) and (places := list(_FX_FILE.finditer(original[:20_000]))):
        place = places[-1]
        return f"{place['file']}:{place['line']}:{place['name'].rstrip(',')}"
    filename, name, line = str(frame.get("filename", ""))[:400], str(frame.get("name", ""))[:200], frame.get("line", 0)
    # A frame without a line has 2^64 - 1.
    return f"{filename}:{line if isinstance(line, int) and line < MAX_LINE_NUMBER else 0}:{name}"


def _split(text: str) -> tuple[str, str, str]:
    """Return file, line and name. The name may hold colons (C++), the file a drive letter."""
    match = re.match(r"(?P<file>(?:[A-Za-z]:)?[^:]*):(?P<line>-?\d+):(?P<name>.*)", text, re.DOTALL)
    return (match["file"], match["line"], match["name"]) if match else ("", "0", text)


def _function(text: str) -> str:
    file, _, name = _split(text)
    return f"{file}:{name}"


def _stack(texts: Sequence[str]) -> Stack:
    parts = [_split(text) for text in texts]
    python = [part for part in parts if not _NATIVE.search(part[0])]
    outside_torch = [part for part in python if not _TORCH.search(part[0])]
    own = [part for part in outside_torch if not _INSTALLED.search(part[0])]
    first = next(iter(outside_torch or python), None)
    site = _label(first) if first else NO_PYTHON
    caller = _label(own[0]) if own else ""
    places = [f"{file}:{name}" for file, _, name in parts]
    # The frames up to the first outside torch: the function that asked, and what it called.
    innermost = places[: parts.index(first) + 1 if first else None]

    def runs_in(pattern: re.Pattern[str], where: Sequence[str] = places) -> bool:
        return any(map(pattern.search, where))

    return Stack(
        site,
        "" if caller == site else caller,
        _folded(parts),
        _phase(places),
        evaluation=runs_in(_EVALUATION),
        recorded=bool(texts),
        gathers=runs_in(_GATHERS),
        module=_module(parts),
        attention=runs_in(_ATTENTION, innermost),
        softmax=runs_in(_SOFTMAX, innermost),
        copies=runs_in(_COPIES),
        inputs=runs_in(_INPUTS),
        recomputes=runs_in(_RECOMPUTES),
        function=f"{first[0]}:{first[2]}" if first else "",
    )


def _module(parts: Sequence[tuple[str, str, str]]) -> str:
    """Return the module of `torch.nn` that the innermost frames run in; a frame outside torch ends the search."""
    for file, _, name in parts:
        if found := _MODULE.search(f"{file}:{name}"):
            return found["module"]
        if found := _FUNCTIONAL.search(f"{file}:{name}"):
            return found["function"]
        if not (_TORCH.search(file) or _NATIVE.search(file)):
            return ""
    return ""


def _phase(places: Sequence[str]) -> Phase:
    for phase, pattern in _FIRST_OF_ALL:
        if any(pattern.search(place) for place in places):
            return phase
    return next((phase for place in places for phase, pattern in _RULES if pattern.search(place)), Phase.UNKNOWN)


def _label(part: tuple[str, str, str]) -> str:
    file, line, name = part
    place = f":{line}" if line != "0" else ""
    return shorten(f"{'/'.join(file.rsplit('/', 2)[-2:])}{place} {name}", 120)


def _folded(parts: Sequence[tuple[str, str, str]]) -> tuple[str, ...]:
    """Return the frames outside torch, and the innermost one of torch's, with counts of what was folded between."""
    shown: list[str] = []
    hidden = 0
    for number, part in enumerate(parts):
        uninteresting = bool(_NATIVE.search(part[0]) or _TORCH.search(part[0]))
        if uninteresting and not (number == 0 and not _NATIVE.search(part[0])):
            hidden += 1
            continue
        if hidden:
            shown.append(f"… {hidden} library frame(s)")
            hidden = 0
        shown.append(_label(part))
    return tuple(shown[: SHOWN_FRAMES * 2])


Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Action(IntEnum):
    """What the allocator did; the names are those in a snapshot."""

    ALLOC = 0
    FREE_REQUESTED = 1
    FREE_COMPLETED = 2
    SEGMENT_ALLOC = 3
    SEGMENT_FREE = 4
    SEGMENT_MAP = 5
    SEGMENT_UNMAP = 6
    OOM = 7
    SNAPSHOT = 8
    OTHER = 9


@dataclass(frozen=True, slots=True)
class Segments:
    """Memory taken from the device. All columns have shape (segments,); sizes in bytes."""

    address: Ints
    size: Ints
    expandable: Bools


@dataclass(frozen=True, slots=True)
class Blocks:
    """Pieces of segments when the snapshot was taken. All columns have shape (blocks,); sizes in bytes."""

    address: Ints
    size: Ints
    requested: Ints
    live: Bools
    pending: Bools
    """Freed, but another stream may still use it."""
    stack: Ints
    segment: Ints


@dataclass(frozen=True, slots=True)
class Events:
    """The recorded history, oldest first. All columns have shape (events,); `address` of an OOM is the free memory."""

    action: Ints
    address: Ints
    size: Ints
    time: Ints
    stack: Ints
    stated: Ints
    """The `Category` of what torch's profiler wrote; -1 where it wrote none."""

    def __len__(self) -> int:
        return len(self.action)

    def since(self, first: int) -> Events:
        """Return the events from one on."""
        return Events(*(getattr(self, column.name)[first:] for column in fields(self)))


@dataclass(frozen=True, slots=True)
class Annotation:
    """A named moment: the start of a `record_function` range, such as ProfilerStep#3."""

    name: str
    time: int
    device: int


@dataclass(frozen=True, slots=True)
class DeviceTables:
    """One device."""

    device: int
    segments: Segments
    blocks: Blocks
    events: Events


@dataclass(slots=True)
class SnapshotTables:
    """A snapshot as read: a device for each that holds or did anything, and what columns named `stack` point into.

    The layout is "snapshot", "segments only" or "profiler timeline". Annotations are named moments in order of time;
    notes say what was skipped or guessed.
    """

    path: str
    layout: str
    devices: list[DeviceTables]
    stacks: Stacks
    annotations: list[Annotation] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


MIB = 1024**2
"""Bytes in a mebibyte. Source: IEC 80000-13."""
GIB = 1024**3
"""Bytes in a gibibyte. Source: IEC 80000-13."""
BYTES_OF = {"": 1, "k": 1024, "m": MIB, "g": GIB, "t": 1024 * GIB}
"""Bytes of a unit, by the letter that it begins with; none of bytes themselves."""


def bytes_of(number: float, unit: str) -> int:
    """Return a number with a unit, such as GiB, MB or bytes, as bytes; all are binary, as torch means them."""
    letter = unit[:1].lower()
    return int(number * BYTES_OF["" if letter == "b" else letter])


def size(count: float) -> str:
    """Return bytes for a sentence, in the binary units that torch uses."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (1024, "KiB")):
        if abs(count) >= unit:
            return f"{count / unit:.2f} {name}"
    return f"{count:.0f} B"


def percent(part: float, whole: float) -> str:
    """Return a share in percent."""
    return f"{part / whole:.0%}" if whole else "0%"
