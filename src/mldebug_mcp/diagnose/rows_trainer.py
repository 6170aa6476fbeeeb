"""The folder of a Transformers Trainer → how its rows were dealt out, or why that cannot be told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from mldebug_mcp.access import is_file, is_folder, read_bytes
from mldebug_mcp.errors import InputError
from mldebug_mcp.folders import entries
from mldebug_mcp.logs.settings.pickled import read_pickled
from mldebug_mcp.text import shorten

ARGUMENTS, STATE = "training_args.bin", "trainer_state.json"
MAX_STATE = 64 * 1024 * 1024
MAX_CHECKPOINTS = 1000
RECORD = "record the rows (mldebug_mcp.recorder) to know those of the next run"
_OF_OTHERS = {
    "num_generations": "TRL's online trainers repeat prompts in an order of their own",
    "vllm_server_timeout": "TRL's online trainers repeat prompts in an order of their own",
    "multi_dataset_batch_sampler": "Sentence Transformers makes batches in its own way",
    "parallelism_config": "ranks that share a row are divided in a way of their own",
}
"""Arguments of trainers that deal rows out otherwise, with why that is not followed."""


def trainer_folder(place: Path) -> Path | None:
    """Return the folder with the arguments of a Trainer: that of the log, above it, or of its newest checkpoint."""
    folder = place if is_folder(place) else place.parent
    places = [folder, *_checkpoints(folder)]
    if folder.name.startswith("checkpoint-"):
        places.append(folder.parent)
    return next((one for one in places if is_file(one / ARGUMENTS)), None)


def read_arguments(folder: Path) -> dict[str, object]:
    """Return what rows depend on of the arguments of a Trainer, by the names of `rows_settings`.

    Raises:
        InputError: they cannot be read, or say that rows cannot be told; the message says why.
    """
    told = read_pickled(folder / ARGUMENTS)
    name = shorten(str(folder / ARGUMENTS), 160)
    accelerator = told.get("accelerator_config")
    accelerator = accelerator if isinstance(accelerator, Mapping) else {}
    reason = _why_not(told, accelerator)
    if reason:
        raise InputError(f"{name}: the rows of a step cannot be told exactly: {reason}; {RECORD}")
    distributed = told.get("distributed_state")
    world = distributed.get("num_processes") if isinstance(distributed, Mapping) else None
    batch = _train_batch_size(folder)
    if batch is None and not told.get("auto_find_batch_size"):
        batch = _times(told.get("per_device_train_batch_size"), max(1, _whole(told.get("_n_gpu")) or 1))
    seed = told.get("data_seed")
    found = {
        "seed": told.get("seed") if seed is None else seed,
        "batch_size": batch,
        "accumulation": told.get("gradient_accumulation_steps"),
        "world": world,
        "drop_last": told.get("dataloader_drop_last"),
        "split_batches": accelerator.get("split_batches"),
        "dispatch_batches": accelerator.get("dispatch_batches"),
        "even_batches": accelerator.get("even_batches"),
        "in_order": told.get("train_sampling_strategy") == "sequential",
        "packed": told.get("packing") or None,
        "shuffled": told.get("shuffle_dataset") or None,
        "ignore_data_skip": told.get("ignore_data_skip"),
        "passes": told.get("num_train_epochs") if (_whole(told.get("max_steps")) or -1) < 0 else None,
    }
    return {key: value for key, value in found.items() if value is not None}


def _why_not(told: Mapping[str, object], accelerator: Mapping[str, object]) -> str:
    """Return why the rows cannot be drawn again; empty where they can."""
    strategy = told.get("train_sampling_strategy", "group_by_length" if told.get("group_by_length") else "random")
    if strategy not in ("random", "sequential"):
        return f"{shorten(str(strategy), 40)} orders rows by their lengths, with random numbers that were not kept"
    if strategy == "random" and not accelerator.get("use_seedable_sampler"):
        return "without use_seedable_sampler the shuffle takes random numbers that were not kept"
    return next((why for name, why in _OF_OTHERS.items() if told.get(name) is not None), "")


def _train_batch_size(folder: Path) -> int | None:
    """Return the batch size that the Trainer's state says was used in the end."""
    file = next((one for place in (folder, *_checkpoints(folder)) if is_file(one := place / STATE)), None)
    if file is None:
        return None
    try:
        state = json.loads(read_bytes(file, MAX_STATE))
    except (OSError, InputError, ValueError, RecursionError):
        return None
    return _whole(state.get("train_batch_size")) if isinstance(state, dict) else None


def _checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints of a folder, the newest first."""
    try:
        found = [one for one in entries(folder) if one.name.startswith("checkpoint-")]
    except (OSError, InputError):
        return []
    return sorted(found, key=lambda one: (len(one.name), one.name), reverse=True)[:MAX_CHECKPOINTS]


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _times(value: object, factor: int) -> int | None:
    number = _whole(value)
    return None if number is None else number * factor
