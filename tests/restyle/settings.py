"""How people give and print a configuration: what the keys are called, and the form they stand in."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import tomlkit
import yaml

from tests.restyle.story import Setting

Tree = dict[str, object]
_TORCH = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
_LIGHTNING = {"bf16": "bf16-mixed", "fp16": "16-mixed", "fp32": "32-true"}
_HF_OPTIMIZERS = {"adamw": "adamw_torch"}


@dataclass(frozen=True, slots=True)
class Given:
    """A configuration as given: lines at the head of a log, or files beside it by their path in the folder."""

    lines: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)


def _named(settings: Mapping[str, Setting], names: Mapping[str, str]) -> Tree:
    return {key: _plain(settings[name]) for name, key in names.items() if name in settings}


def _plain(value: Setting) -> object:
    return list(value) if isinstance(value, tuple) else value


def _flags(settings: Mapping[str, Setting]) -> Tree:
    precision = settings.get("precision")
    return {} if precision is None else {"bf16": precision == "bf16", "fp16": precision == "fp16"}


def _two_betas(settings: Mapping[str, Setting]) -> Tree:
    betas = settings.get("betas")
    return {"adam_beta1": betas[0], "adam_beta2": betas[1]} if isinstance(betas, tuple) else {}


def _transformers(settings: Mapping[str, Setting]) -> Tree:
    names = {
        "model": "model_name_or_path", "dataset": "dataset_name", "learning_rate": "learning_rate",
        "warmup_steps": "warmup_steps", "schedule": "lr_scheduler_type", "weight_decay": "weight_decay",
        "clipping": "max_grad_norm", "batch_size": "per_device_train_batch_size",
        "accumulation": "gradient_accumulation_steps", "epochs": "num_train_epochs", "total_steps": "max_steps",
        "seed": "seed", "kl_coefficient": "beta",
    }  # fmt: skip
    tree = {**_named(settings, names), **_two_betas(settings), **_flags(settings)}
    optimizer = settings.get("optimizer")
    return tree if optimizer is None else {**tree, "optim": _HF_OPTIMIZERS.get(str(optimizer), optimizer)}


def _short(settings: Mapping[str, Setting]) -> Tree:
    names = {
        "task": "task", "model": "model", "dataset": "dataset", "vocabulary": "vocab_size", "classes": "num_classes",
        "sequence_length": "block_size", "learning_rate": "lr", "warmup_steps": "warmup_iters", "optimizer": "opt",
        "betas": "betas", "weight_decay": "wd", "clipping": "grad_clip", "batch_size": "bs",
        "accumulation": "accum_steps", "epochs": "epochs", "total_steps": "max_iters", "seed": "seed",
        "kl_coefficient": "kl_coef",
    }  # fmt: skip
    return {**_named(settings, names), **_dtype(settings, "dtype", _TORCH)}


def _camel(settings: Mapping[str, Setting]) -> Tree:
    names = {
        "task": "task", "model": "modelName", "vocabulary": "vocabSize", "classes": "numClasses",
        "learning_rate": "learningRate", "warmup_steps": "warmupSteps", "optimizer": "optimizer", "betas": "betas",
        "weight_decay": "weightDecay", "clipping": "gradClipNorm", "batch_size": "batchSize",
        "accumulation": "gradAccumSteps", "epochs": "numEpochs", "total_steps": "maxSteps", "seed": "seed",
    }  # fmt: skip
    return {**_named(settings, names), **_dtype(settings, "mixedPrecision", {"fp32": "no"})}


def _megatron(settings: Mapping[str, Setting]) -> Tree:
    names = {
        "batch_size": "micro_batch_size", "total_steps": "train_iters", "learning_rate": "lr", "clipping": "clip_grad",
        "warmup_steps": "lr_warmup_iters", "schedule": "lr_decay_style", "optimizer": "optimizer",
        "weight_decay": "weight_decay", "sequence_length": "seq_length", "vocabulary": "padded_vocab_size",
        "seed": "seed",
    }  # fmt: skip
    return {**_named(settings, names), **_two_betas(settings), **_flags(settings)}


def _nested(settings: Mapping[str, Setting]) -> Tree:
    rooms = {
        "model": {"model": "name", "vocabulary": "vocab_size", "classes": "num_classes", "sequence_length": "max_len"},
        "data": {"dataset": "name", "dataset_rows": "num_rows", "batch_size": "batch_size"},
        "optimizer": {"optimizer": "name", "learning_rate": "lr", "betas": "betas", "weight_decay": "weight_decay"},
        "scheduler": {"schedule": "name", "warmup_steps": "warmup_steps"},
        "trainer": {
            "epochs": "max_epochs", "total_steps": "max_steps", "accumulation": "accumulate_grad_batches",
            "clipping": "gradient_clip_val", "seed": "seed",
        },
    }  # fmt: skip
    tree: Tree = _named(settings, {"task": "task"})
    for room, names in rooms.items():
        tree[room] = _named(settings, names)
    return {**tree, "precision": _LIGHTNING[str(settings["precision"])]} if "precision" in settings else tree


def _dtype(settings: Mapping[str, Setting], key: str, words: Mapping[str, str]) -> Tree:
    precision = settings.get("precision")
    return {key: words.get(str(precision), precision)} if precision is not None else {}


FAMILIES: Mapping[str, Callable[[Mapping[str, Setting]], Tree]] = {
    "hf": _transformers, "short": _short, "nested": _nested, "camel": _camel, "megatron": _megatron,
}  # fmt: skip
_LEAVES_OUT: Mapping[str, frozenset[str]] = {
    "hf": frozenset({"task", "dataset_rows", "vocabulary", "classes", "sequence_length"}),
    "short": frozenset({"dataset_rows", "schedule"}),
    "nested": frozenset({"kl_coefficient"}),
    "camel": frozenset({"dataset", "dataset_rows", "sequence_length", "schedule", "kl_coefficient"}),
    "megatron": frozenset(
        {"task", "model", "dataset", "dataset_rows", "classes", "accumulation", "epochs", "kl_coefficient"}
    ),
}


def written(settings: Mapping[str, Setting], keys: str) -> dict[str, Setting]:
    """The settings that a family of keys has a place for; those that are off cannot be told from those not given."""
    return {name: value for name, value in settings.items() if name not in _LEAVES_OUT[keys] and value is not None}


def flat(tree: Mapping[str, object], joint: str = ".") -> Tree:
    """A nested configuration with joined keys."""
    leaves: Tree = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            leaves |= {f"{key}{joint}{inner}": leaf for inner, leaf in flat(value, joint).items()}
        else:
            leaves[key] = value
    return leaves


def _toml(tree: Tree) -> str:
    without = {k: {a: b for a, b in v.items() if b is not None} if isinstance(v, dict) else v for k, v in tree.items()}
    return tomlkit.dumps({key: value for key, value in without.items() if value is not None})


def _command(tree: Tree) -> Given:
    words = []
    for key, value in flat(tree).items():
        name = "--" + key.replace("_", "-")
        if value is True:
            words.append(name)
        elif isinstance(value, list):
            words.append(" ".join([name, *map(str, value)]))
        elif value is not None and value is not False:
            words.append(f"{name} {value}")
    return Given(lines=("$ torchrun --nproc_per_node=1 train.py " + " ".join(words),))


def _dots(tree: Tree) -> Given:
    body = [f"  {key} {'.' * (48 - len(key))} {value}" for key, value in sorted(flat(tree, "_").items())]
    rule = "-" * 24
    return Given(lines=(f"{rule} arguments {rule}", *body, f"{rule} end of arguments {rule}"))


def _block(tree: Tree) -> Given:
    return Given(
        lines=("Configuration:", *(f"  {line}" for line in yaml.safe_dump(tree, sort_keys=False).splitlines()))
    )


def _repr(tree: Tree, name: str, joint: str = ",\n") -> Given:
    body = joint.join(f"{key}={value!r}" for key, value in flat(tree, "_").items())
    text = f"{name}(\n{body},\n)" if joint == ",\n" else f"{name}({body})"
    return Given(lines=tuple(text.splitlines()))


def _wandb(tree: Tree) -> Given:
    wrapped = {"wandb_version": 1, **{key: {"desc": None, "value": value} for key, value in tree.items()}}
    return Given(files={"config.yaml": yaml.safe_dump(wrapped, sort_keys=False)})


FILE_FORMS: Mapping[str, Callable[[Tree], Given]] = {
    "json_file": lambda tree: Given(files={"config.json": json.dumps(tree, indent=2)}),
    "yaml_file": lambda tree: Given(files={"config.yaml": yaml.safe_dump(tree, sort_keys=False)}),
    "toml_file": lambda tree: Given(files={"config.toml": _toml(tree)}),
    "hydra": lambda tree: Given(files={".hydra/config.yaml": yaml.safe_dump(tree, sort_keys=False)}),
    "args_file": lambda tree: Given(files={"args.json": json.dumps(flat(tree, "_"), indent=4)}),
    "wandb": _wandb,
}
FORMS: Mapping[str, Callable[[Tree], Given]] = {
    **FILE_FORMS,
    "namespace": lambda tree: _repr(tree, "Namespace", ", "),
    "dataclass": lambda tree: _repr(tree, "TrainConfig", ", "),
    "arguments": lambda tree: _repr(tree, "TrainingArguments"),
    "command": _command,
    "dots": _dots,
    "block": _block,
    "printed_json": lambda tree: Given(lines=tuple(json.dumps(tree, indent=2).splitlines())),
    "printed_dict": lambda tree: Given(lines=(f"config: {tree!r}",)),
}


def given(settings: Mapping[str, Setting], form: str, keys: str, extra: Mapping[str, object] | None = None) -> Given:
    """Settings in a form, under a family's keys; `extra` are written under their own."""
    return FORMS[form]({**FAMILIES[keys](settings), **(extra or {})})
