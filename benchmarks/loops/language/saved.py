"""Where people leave their settings: files beside the log, or lines in it."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import yaml

Line = Callable[[str], None]


def namespace(settings: dict[str, object], line: Line) -> None:
    """The repr of parsed arguments, printed first."""
    line(str(argparse.Namespace(**{k.replace("/", "_"): v for k, v in settings.items()})))


def columns(settings: dict[str, object], line: Line) -> None:
    """A block of dotted lines, as Megatron prints it."""
    line("------------------------ arguments ------------------------")
    for name in sorted(settings):
        line(f"  {name} {'.' * max(3, 46 - len(name))} {settings[name]}")
    line("-------------------- end of arguments ---------------------")


def overrides(settings: dict[str, object], line: Line) -> None:
    """Lines of overridden defaults, as nanoGPT prints them."""
    known = {"lr": "learning_rate", "steps": "max_iters", "warmup": "warmup_iters", "clip": "grad_clip",
             "accum": "gradient_accumulation_steps", "eval_every": "eval_interval",
             "log_every": "log_interval"}  # fmt: skip
    for name, value in settings.items():
        line(f"Overriding: {known.get(name, name)} = {value}")


def tracker(folder: Path, settings: dict[str, object]) -> None:
    """A config.yaml with a value under each name, as W&B keeps it."""
    rows: dict[str, object] = {"_wandb": {"desc": None, "value": {"python_version": "3.11", "framework": "torch"}}}
    rows |= {name: {"desc": None, "value": value} for name, value in settings.items()}
    (folder / "config.yaml").write_text(yaml.safe_dump(rows, sort_keys=True), encoding="utf-8")


def nested(task: str, settings: dict[str, object]) -> dict[str, object]:
    """Settings in sections, as OmegaConf users write them."""
    sections: dict[str, dict[str, object]] = {"optim": {}, "model": {}, "trainer": {}, "data": {}}
    places = {
        "optim": ("lr", "warmup", "schedule", "min_lr_ratio", "optimizer", "weight_decay",
                  "beta1", "beta2", "eps", "clip"),
        "model": ("n_layer", "n_embd", "n_head", "block_size", "dropout"), "data": ("batch_size", "train_samples"),
    }  # fmt: skip
    for name, value in settings.items():
        section = next((key for key, names in places.items() if name in names), "trainer")
        sections[section][name] = value
    return {"task": task, **sections}


def save(folder: Path, how: str, task: str, settings: dict[str, object], line: Line) -> None:
    """Leave the settings in the way that `how` names."""
    if how == "namespace":
        namespace(settings, line)
    elif how == "columns":
        columns(settings, line)
    elif how == "overrides":
        overrides(settings, line)
    elif how == "wandb":
        tracker(folder, settings)
    elif how == "omega":
        (folder / "config.yaml").write_text(yaml.safe_dump(nested(task, settings), sort_keys=False), encoding="utf-8")
    elif how == "yaml":
        (folder / "hparams.yaml").write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
    elif how == "dataclass":
        line(f"TrainConfig({', '.join(f'{k}={v!r}' for k, v in settings.items())})")
    elif how == "json":
        (folder / "args.json").write_text(json.dumps({"task": task} | settings, indent=2), encoding="utf-8")
    else:
        message = f"no way to save settings is called {how!r}"
        raise ValueError(message)
