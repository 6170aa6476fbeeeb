"""The call of `inspect_batch` that a diagnosis suggests, with what is known of the run filled in."""

from __future__ import annotations

from pathlib import Path

from mldebug_mcp.access import is_file, is_folder
from mldebug_mcp.errors import InputError
from mldebug_mcp.paths import expanded
from mldebug_mcp.text import quoted

PURPOSES = {
    "pretraining": "pretraining",
    "sft": "sft",
    "preference": "dpo",
    "grpo": "generation",
    "ppo": "generation",
    "supervised": "classification",
}
"""The purpose of the batches of each kind of run."""
NAMES = tuple(f"batch{ending}" for ending in (".safetensors", ".pt", ".npz", ".json", ".jsonl", ".parquet"))
"""The names that `mldebug_mcp.capture.save_batch` is usually told to write."""


def filled_batch_call(call: str, path: str, kind: str) -> str:
    """Return the call with the purpose that fits the run, and with a batch saved beside its log, if there is one."""
    purpose = PURPOSES.get(kind)
    if purpose is not None:
        head, mark, _ = call.partition('purpose="')
        call = f'{head}{mark}{purpose}")' if mark else call
    try:
        place = expanded(path)
        folder = place if is_folder(place) else place.parent
        saved = next((folder / name for name in NAMES if is_file(folder / name)), None)
    except (OSError, ValueError, InputError):
        return call
    if saved is None:
        return call
    beside = Path(f"{saved}.tokenizer")
    tokenizer = f", tokenizer={quoted(str(beside))}" if is_folder(beside) else ""
    return call.replace('"BATCH"', quoted(str(saved)) + tokenizer)
