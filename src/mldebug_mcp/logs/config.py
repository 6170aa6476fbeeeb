"""The training configuration beside a log, flattened to the names of TrainingArguments.

It is read from JSON or YAML, never from a pickle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import cast

from mldebug_mcp.access import is_file
from mldebug_mcp.errors import InputError
from mldebug_mcp.logs.decoding.json_values import parse_json
from mldebug_mcp.logs.run import Scalar
from mldebug_mcp.logs.source import LogFile
from mldebug_mcp.text import shorten

MAX_CONFIG_BYTES = 4 * 1024 * 1024
MAX_YAML_BYTES = 512 * 1024
"""YAML takes ten seconds for a megabyte."""
MAX_KEYS = 2000

FILE_NAMES = (
    "config.json", "config.yaml", "config.yml", "training_args.json", "train_args.json", "training_config.json",
    "args.json", "args.yaml", "hparams.yaml", "hparams.json", "params.json", "train_config.yaml", "train_config.json",
    "training_args.yaml", "run_config.json", ".hydra/config.yaml", "adapter_config.json",
)  # fmt: skip
"""Where trainers leave their configuration, in the order in which they are believed."""

SPELLINGS: dict[str, tuple[str, ...]] = {
    "learning_rate": (
        "learning_rate", "lr", "max_lr", "peak_lr", "base_lr", "lr0", "optimizer/lr", "optim/lr",
        "optimizer/learning_rate",
    ),
    "warmup_steps": (
        "warmup_steps", "warmup_iters", "num_warmup_steps", "lr_warmup_steps", "lr_warmup_iters", "warmup",
        "scheduler/warmup_steps",
    ),
    "warmup_ratio": ("warmup_ratio", "warmup_fraction", "lr_warmup_fraction"),
    "max_steps": (
        "max_steps", "max_iters", "train_iters", "total_steps", "num_training_steps", "max_train_steps",
        "num_iterations", "steps",
    ),
    "num_train_epochs": ("num_train_epochs", "epochs", "num_epochs", "max_epochs", "n_epochs"),
    "max_grad_norm": (
        "max_grad_norm", "grad_clip", "gradient_clip_val", "clip_grad", "clip_grad_norm", "gradient_clipping",
        "grad_clip_norm", "max_norm", "optim/max_grad_norm", "training/max_norm",
    ),
    "weight_decay": ("weight_decay", "wd", "optimizer/weight_decay"),
    "adam_beta2": ("adam_beta2", "beta2", "optimizer/beta2"),
    "adam_epsilon": ("adam_epsilon", "eps", "adam_eps"),
    "vocab_size": ("vocab_size", "n_vocab", "padded_vocab_size", "model/vocab_size", "text_config/vocab_size"),
    "num_labels": ("num_labels", "num_classes", "n_classes", "nc"),
    "per_device_train_batch_size": (
        "per_device_train_batch_size", "micro_batch_size", "batch_size", "train_batch_size", "device_batch_size",
    ),
    "gradient_accumulation_steps": (
        "gradient_accumulation_steps", "grad_accum", "accumulate_grad_batches", "grad_accum_steps",
    ),
    "lr_scheduler_type": ("lr_scheduler_type", "lr_scheduler", "scheduler", "lr_decay_style"),
    "optim": ("optim", "optimizer", "optimizer_type"),
    "beta": ("beta", "dpo_beta", "kl_coef", "init_kl_coef", "kl_coeff"),
    "num_generations": ("num_generations", "n_samples_per_prompt", "group_size"),
    "max_completion_length": ("max_completion_length", "max_new_tokens", "response_length"),
    "lora_r": ("lora_r", "lora_rank", "r", "peft/r"),
    "task": ("task", "task_type"),
}  # fmt: skip

_CANONICAL = {spelling: name for name, spellings in SPELLINGS.items() for spelling in spellings}


def read_config(path: Path) -> dict[str, Scalar]:
    """Return the settings in a JSON or YAML file; raises InputError if it is neither."""
    file = LogFile.open(path)
    is_yaml = path.suffix in (".yaml", ".yml")
    if file.size > (MAX_YAML_BYTES if is_yaml else MAX_CONFIG_BYTES):
        raise InputError(
            f"{file.name}: {file.size:,} bytes is too large for a configuration; name the training configuration"
        )
    text = file.text()
    try:
        values = _parse_yaml(text) if is_yaml else parse_json(text)
    except ValueError as error:
        raise InputError(
            f"{file.name}: not valid JSON or YAML ({shorten(str(error), 120)}); mend it or name another configuration"
        ) from None
    if not isinstance(values, dict):
        raise InputError(f"{file.name}: no settings in it; a mapping of names to values is needed")
    return settings(values)


def read_found_config(path: Path) -> tuple[dict[str, Scalar], str]:
    """Return the settings in a file that nobody named, and a note of it: if it is broken, the log is read without."""
    try:
        return read_config(path), f"configuration read from {shorten(path.name, 80)}"
    except InputError as error:
        return {}, f"read without its configuration: {error}"


def settings(values: Mapping[str, object]) -> dict[str, Scalar]:
    """Return a configuration flat and under canonical names; of several spellings the outermost stands."""
    flat: dict[str, Scalar] = {}
    # Bounded before sorting: YAML aliases let a small file stand for a huge object.
    for _, name, value in sorted(islice(_flatten(values), MAX_KEYS), key=itemgetter(0)):
        last = name.rsplit("/", 1)[-1]
        known = _CANONICAL.get(name.lower()) or _CANONICAL.get(last.lower(), name)
        flat.setdefault(shorten(known, 120), value)
    return flat


def find_config(folder: Path) -> Path | None:
    """Return the training configuration in a folder, or None."""
    for name in FILE_NAMES:
        candidate = folder / name
        if is_file(candidate):
            return candidate
    return None


def _parse_yaml(text: str) -> object:
    """Parse YAML; what a tag would make an object of, as PyYAML writes tuples and paths, is read as what it is made of.

    Lightning's hparams.yaml is full of such tags. Nothing is called.
    """
    import yaml

    class Loader(yaml.SafeLoader):
        """Reads tagged values as plain ones."""

    def plain(loader: yaml.SafeLoader, _tag: str, node: yaml.Node) -> object:
        if isinstance(node, yaml.MappingNode):
            return loader.construct_mapping(node, deep=True)
        if isinstance(node, yaml.SequenceNode):
            return loader.construct_sequence(node, deep=True)
        return loader.construct_scalar(cast("yaml.ScalarNode", node))

    Loader.add_multi_constructor("", plain)
    try:
        return yaml.load(text, Loader)  # noqa: S506 - a SafeLoader
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except (yaml.YAMLError, TypeError) as error:  # TypeError: a key that cannot be one
        raise ValueError(str(error)) from None


def _flatten(values: Mapping[str, object], prefix: str = "", depth: int = 0) -> Iterator[tuple[int, str, Scalar]]:
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            # A W&B configuration wraps each value: {"lr": {"value": 0.1, "desc": null}}.
            if set(value) <= {"value", "desc"} and "value" in value:
                value = value["value"]  # noqa: PLW2901
            elif depth < 6:
                yield from _flatten(value, f"{name}/", depth + 1)
                continue
        if value is None or isinstance(value, (str, int, float, bool)):
            yield depth, name, value
