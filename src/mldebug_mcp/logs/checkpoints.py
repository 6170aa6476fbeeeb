"""The checkpoints in the folder of a run, and what their names say: step, epoch, score, best, last."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Literal

from mldebug_mcp.core.access import is_file, is_folder, walk
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import dataclass, regex, replace
from mldebug_mcp.logs.run import Run

# What a name says. Trainers put words and numbers together in their own ways, all of which this grammar covers:
# checkpoint-500, epoch=3-step=400.ckpt, ep3-ba400, step_1000.pt, rl_model_10000_steps.zip, iter_0005000,
# weights.05-0.32.hdf5, best_coco_bbox_mAP_epoch_10.pth, model_best.pth.tar. A number belongs to the words before it.

EPOCH_WORDS = frozenset({"epoch", "epochs", "ep", "e"})
STEP_WORDS = frozenset(
    {"step", "steps", "globalstep", "gs", "iter", "iters", "iteration", "iterations", "it", "update", "updates",
     "batch", "batches", "ba"}
)  # fmt: skip
MODEL_WORDS = frozenset(
    {"checkpoint", "checkpoints", "ckpt", "ckpts", "cp", "model", "models", "weights", "weight", "state", "net",
     "network", "save", "saved", "snapshot", "pytorch", "adapter", "lora", "unet"}
)  # fmt: skip
"""Words for what is saved: a number behind one of them says when, in a unit that it does not name."""
BEST_WORDS = frozenset({"best"})
LAST_WORDS = frozenset({"last", "latest", "final", "end"})
_SIDE = regex(
    r"optim|sched|scaler|rng|random_state|sampler|training_args|train_args|tokenizer|vocab|dataset|embedding|feature"
    r"|labels|events|evaluations|merges|spiece|ema_state|loader|trainer_state",
    re.IGNORECASE,
)
"""What is saved next to weights, or is not a checkpoint."""
_TOKEN = regex(r"(?P<word>[A-Za-z]+)|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<mark>.)", re.DOTALL)
_SHARD = regex(
    r"[-_.]\d{5}-of-\d{5}|[-_.](?:rank|shard|mp_rank|tp|pp)[-_]?\d+|__\d+_\d+",
    re.IGNORECASE,
    needs=("-of-", "rank", "shard", "tp", "pp", "__"),
)
_THOUSANDS = {"k": 1e3, "m": 1e6}
_MIN_PADDED_DIGITS = 4
"""Digits of a number with leading zeros that counts steps or epochs whatever word stands before it (kohya_ss)."""


@dataclass(frozen=True, slots=True)
class Named:
    """What a name says.

    Args:
        step: The step of the optimizer.
        epoch: The epoch, by the count of whoever saved it.
        number: A step or an epoch: the name has no word for the unit.
        label: Whether it calls itself the best or the last one.
        scores: Numbers with other words, such as val_loss; one without a word stands under "".
        words: Its words other than those of positions and labels.
    """

    step: float | None = None
    epoch: float | None = None
    number: float | None = None
    label: Literal["best", "last", ""] = ""
    scores: Mapping[str, float] = field(default_factory=dict)
    words: tuple[str, ...] = ()

    @property
    def says_when(self) -> bool:
        """Whether it says at which point of the run it was saved."""
        return self.step is not None or self.epoch is not None or self.number is not None


@dataclass(frozen=True, slots=True)
class _Number:
    text: str
    value: float
    words: tuple[str, ...]
    is_attached: bool
    is_assigned: bool
    is_first: bool


def read_name(stem: str) -> Named:
    """Return what the name of a checkpoint says, without its ending."""
    numbers, trailing, every = _pieces(_SHARD.sub("", stem))
    step = epoch = None
    bare: list[float] = []
    scores: dict[str, float] = {}
    taken = False
    for place, piece in enumerate(numbers):
        last = piece.words[-1].lower() if piece.words else ""
        after = numbers[place + 1].words[:-1] if place + 1 < len(numbers) else trailing
        unit = last if last in EPOCH_WORDS | STEP_WORDS else ""
        if not unit and not taken and after and after[0].lower() in STEP_WORDS | EPOCH_WORDS and not piece.is_assigned:
            unit = after[0].lower()  # rl_model_10000_steps
        is_whole = "." not in piece.text and "e" not in piece.text.lower()
        taken = False
        if unit in EPOCH_WORDS and epoch is None:
            epoch = piece.value
        elif unit in STEP_WORDS and step is None:
            step, taken = piece.value, True
        elif last in ("samples", "tokens", "seed", "v", "version"):
            continue
        elif not is_whole or (piece.is_assigned and last not in MODEL_WORDS):
            name = "_".join(word for word in piece.words if word.lower() not in BEST_WORDS | LAST_WORDS | MODEL_WORDS)
            scores[name] = piece.value
        elif _counts(piece, last) or (bare and not piece.words):
            bare.append(piece.value)
    if len(bare) > 1 and step is None and epoch is None:
        epoch, step = bare[0], bare[1]  # fairseq: checkpoint_EPOCH_UPDATES
    number = bare[0] if bare and step is None and epoch is None else None
    lower = {word.lower() for word in every}
    label: Literal["best", "last", ""] = "best" if lower & BEST_WORDS else "last" if lower & LAST_WORDS else ""
    known = EPOCH_WORDS | STEP_WORDS | BEST_WORDS | LAST_WORDS
    words = tuple(word for word in every if word.lower() not in known)
    return Named(step, epoch, number, label, scores, words)


def _counts(number: _Number, last: str) -> bool:
    """Say whether a bare number may be that of a step or an epoch: those in names of models (gpt2, 7b) are not."""
    if last in MODEL_WORDS or (number.is_first and not number.words):
        return True
    padded = number.text.startswith("0") and len(number.text) >= _MIN_PADDED_DIGITS
    return padded or (not number.is_attached and number.is_first and last in BEST_WORDS | LAST_WORDS)


def _pieces(stem: str) -> tuple[list[_Number], tuple[str, ...], list[str]]:
    """Return the numbers of a name, each with the words before it; the words behind the last; and all words."""
    numbers: list[_Number] = []
    words: list[str] = []
    every: list[str] = []
    marks = ""
    tokens = list(_TOKEN.finditer(stem))
    for place, token in enumerate(tokens):
        if token["word"]:
            before = tokens[place - 1] if place else None
            if before is not None and before["number"] and token["word"].lower() in _THOUSANDS and numbers:
                numbers[-1] = replace(numbers[-1], value=numbers[-1].value * _THOUSANDS[token["word"].lower()])
                continue
            words.append(token["word"])
            every.append(token["word"])
            marks = ""
        elif token["number"]:
            negative = marks.endswith("=-") or marks == "--"
            value = float(token["number"]) * (-1 if negative else 1)
            numbers.append(_Number(token["number"], value, tuple(words), not marks and bool(words), "=" in marks,
                                   not numbers))  # fmt: skip
            words, marks = [], ""
        else:
            marks += token["mark"]
    return numbers, tuple(words), every


# Which files and folders are checkpoints.

WEIGHT_SUFFIXES = (
    ".weights.h5", ".pth.tar", ".pt.tar", ".ckpt", ".pt", ".pth", ".bin", ".safetensors", ".keras", ".h5", ".hdf5",
    ".msgpack", ".pdparams", ".params", ".index", ".distcp", ".eqx", ".tar", ".zip", ".mdlus", ".nemo",
)  # fmt: skip
_SHARED = (".zip", ".tar", ".index", ".params")
"""Endings that other files have too: the name has to say when it was saved, or that it is the best or the last."""
_SAVED_FOLDERS = frozenset({"checkpoint", "checkpoints", "ckpt", "ckpts"})
_MANIFESTS = frozenset({".metadata", "_CHECKPOINT_METADATA", "manifest.ocdbt", "_METADATA", "saved_model.pb"})
"""Files that a checkpoint in many pieces holds (torch.distributed.checkpoint, Orbax, TensorFlow)."""
_NEVER = frozenset(
    {"node_modules", "__pycache__", "site-packages", "data", "dataset", "datasets", "wandb", "images", "media", "plots",
     "code", "src", "cache", "tokenizer", "batches"}
)  # fmt: skip
DEPTH, DEPTH_INSIDE = 4, 4
MAX_INSIDE = 1000
"""Entries of a checkpoint that are looked at: its weights stand near its top."""
MAX_NEAR = 4000
"""Entries near a log that are looked at for checkpoints. Chosen: a folder of more holds more than a run."""
MAX_CHECKPOINTS = 2000
"""Checkpoints of a run that are looked at."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint in the folder of a run.

    Args:
        name: Its path from that folder.
        path: Where it is.
        named: What its name says.
        has_weights: Whether files of weights are in it, or it is one.
        size: Bytes of these.
    """

    name: str
    path: Path
    named: Named
    has_weights: bool
    size: int


def checkpoints_of(run: Run) -> list[Checkpoint]:
    """Return the checkpoints in the folder of a run and below it, by name; none of a folder that cannot be read."""
    try:
        own_log = Path(run.path).absolute() if run.folder and is_file(Path(run.path)) else None
        home = _home(Path(run.folder).absolute())
        found = list(_checkpoints_in(home, MAX_NEAR, own_log)) if run.folder else []
    except (OSError, InputError):
        return []
    shards = {checkpoint.path.parent / _SHARD.sub("", checkpoint.path.name): checkpoint for checkpoint in found}
    return sorted(shards.values(), key=lambda shard: shard.name)[:MAX_CHECKPOINTS]


def _home(folder: Path) -> Path:
    """Return the folder of a run, also where one of its checkpoints was named."""
    if not any(map(str.isdigit, folder.name)):
        return folder
    named = read_name(folder.name)
    is_checkpoint = named.number is not None and not _SAVED_FOLDERS.isdisjoint(map(str.lower, named.words))
    return folder.parent if is_checkpoint and is_folder(folder.parent) else folder


_LOGS = (
    "trainer_state.json", "metrics.csv", "metrics.jsonl", "progress.csv", "results.csv", "history.csv", "log.txt",
    "train.log",
)  # fmt: skip
"""Names of logs that trainers write into the folder of a run."""


def _is_of_another_run(place: Path, own_log: Path) -> bool:
    """Say whether a folder has a log of its own, and so checkpoints of another run than the log next to it."""
    return place not in own_log.parents and any(is_file(place / name) for name in _LOGS)


def _checkpoints_in(folder: Path, most: int | None = None, own_log: Path | None = None) -> Iterator[Checkpoint]:
    folders: list[Path] = []

    def enters(place: Path) -> bool:
        if place.name.startswith(".") or place.name.lower() in _NEVER:
            return False
        if own_log is not None and not _may_be_folder(place) and _is_of_another_run(place, own_log):
            return False
        if _may_be_folder(place):
            folders.append(place)
            return False
        return True

    for path in walk(folder, DEPTH, enters, most=most):
        named = _named_file(path)
        if named is not None:
            name = path.relative_to(folder).as_posix()
            yield Checkpoint(name, path, named, has_weights=True, size=_size([path]))
    for place in folders:
        if is_folder(place):
            yield from _in_named_folder(folder, place)


def _in_named_folder(folder: Path, place: Path) -> Iterator[Checkpoint]:
    """Return the checkpoint that a folder is by its name, or those below it."""
    inside = list(walk(place, DEPTH_INSIDE, most=MAX_INSIDE))
    parted = list(_parted(folder, place, inside))
    if parted:
        yield from parted
        return
    weights = [path for path in inside if _is_weights(path)]
    named = read_name(place.name)
    surely = bool({word.lower() for word in named.words} & _SAVED_FOLDERS) or place.name.startswith("global_step")
    name = place.relative_to(folder).as_posix()
    if weights or surely:
        yield Checkpoint(name, place, named, has_weights=bool(weights), size=_size(weights))
    else:  # named by an epoch or a step, as pictures and logs are too: a checkpoint may stand below
        yield from (replace(found, name=f"{name}/{found.name}") for found in _checkpoints_in(place, MAX_INSIDE))


def _parted(folder: Path, place: Path, inside: Iterable[Path]) -> Iterator[Checkpoint]:
    """Return the checkpoints whose names a slash in a metric parts: Lightning writes epoch=3-val/auroc=0.91.ckpt."""
    for path in inside:
        if path.parent == place and path.suffix == ".ckpt" and "=" in path.stem and "=" in place.name:
            named = read_name(f"{place.name}_{path.stem}")
            yield Checkpoint(path.relative_to(folder).as_posix(), path, named, has_weights=True, size=_size([path]))


def _may_be_folder(place: Path) -> bool:
    """Say whether a folder is named as a checkpoint is: by a position, or as the best or the last."""
    named = read_name(place.name)
    words = {word.lower() for word in named.words}
    if named.step is not None or named.epoch is not None:
        return True
    if named.number is not None:
        return bool(words & MODEL_WORDS) or (not words and place.parent.name.lower() in _SAVED_FOLDERS)
    return bool(named.label) and bool(words & MODEL_WORDS or not words)


def _named_file(path: Path) -> Named | None:
    """Return what the name of a file says, None for other files."""
    suffix = _suffix(path)
    if not suffix or path.name.startswith("."):
        return None
    stem = path.name[: -len(suffix)]
    if _SIDE.search(stem):
        return None
    named = read_name(stem)
    is_model = bool({word.lower() for word in named.words} & MODEL_WORDS)
    says = named.says_when or bool(named.label)
    return named if says or (is_model and suffix not in _SHARED) else None


def _is_weights(path: Path) -> bool:
    if path.name in _MANIFESTS:
        return True
    suffix = _suffix(path)
    stem = path.name[: -len(suffix)]
    return bool(suffix) and (stem.lower().startswith("model") or not _SIDE.search(stem))  # Megatron: model_optim_rng.pt


def _suffix(path: Path) -> str:
    """Return the ending of a file of weights, "" for another file."""
    name = path.name.lower()
    return next((suffix for suffix in WEIGHT_SUFFIXES if name.endswith(suffix)), "")


def _size(files: Iterable[Path]) -> int:
    total = 0
    for file in files:
        try:
            total += file.stat().st_size
        except OSError:  # it was removed meanwhile
            continue
    return total
