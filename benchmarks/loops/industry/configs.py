"""Configurations as files beside the log, or as lines at its head."""

from __future__ import annotations

import configparser
import json
from pathlib import Path

import yaml

Settings = dict[str, object]


def _nested(settings: Settings) -> dict[str, Settings]:
    groups = {"optimizer": "optim", "lr": "optim", "weight_decay": "optim", "momentum": "optim", "lr_schedule": "optim"}
    groups |= {"warmup_steps": "optim", "decay_steps": "optim", "grad_clip": "optim", "max_steps": "trainer"}
    groups |= {"seed": "trainer", "accumulate_grad_batches": "trainer", "early_stopping_patience": "trainer"}
    nested: dict[str, Settings] = {}
    for name, value in settings.items():
        nested.setdefault(groups.get(name, "data" if name == "batch_size" else "task"), {})[name] = value
    return nested


def _toml(settings: Settings) -> str:
    lines: list[str] = []
    for group, values in _nested(settings).items():
        lines.append(f"[{group}]")
        lines += [f"{name} = {json.dumps(value)}" for name, value in values.items() if value is not None]
    return "\n".join(lines) + "\n"


def _ini(path: Path, settings: Settings) -> None:
    parser = configparser.ConfigParser(interpolation=None)
    for group, values in _nested(settings).items():
        parser[group] = {name: str(value) for name, value in values.items()}
    with path.open("w", encoding="utf-8") as file:
        parser.write(file)


def head_lines(kind: str, settings: Settings) -> list[str]:
    """Return the configuration as lines at the head of the log; none if it is a file or missing."""
    if kind == "namespace":
        return ["Namespace(" + ", ".join(f"{name}={value!r}" for name, value in settings.items()) + ")"]
    if kind == "dataclass":
        return ["cfg = TrainConfig(" + ", ".join(f"{name}={value!r}" for name, value in settings.items()) + ")"]
    if kind == "command":
        return [
            "+ python -m train " + " ".join(f"--{name.replace('_', '-')} {value}" for name, value in settings.items())
        ]
    if kind == "printed":
        return ["=" * 40, *(f"{name:<24}{value}" for name, value in settings.items()), "=" * 40]
    return []


def write_file(kind: str, folder: Path, settings: Settings) -> None:
    """Write the configuration as a file, if that is its kind."""
    plain = json.loads(json.dumps(settings))
    if kind == "yaml":
        (folder / "config.yaml").write_text(yaml.safe_dump(plain, sort_keys=False), encoding="utf-8")
    elif kind == "json":
        (folder / "config.json").write_text(json.dumps(_nested(settings), indent=2), encoding="utf-8")
    elif kind == "toml":
        (folder / "config.toml").write_text(_toml(settings), encoding="utf-8")
    elif kind == "ini":
        _ini(folder / "train.ini", settings)
    elif kind == "hydra":
        (folder / ".hydra").mkdir(exist_ok=True)
        text = yaml.safe_dump(json.loads(json.dumps(_nested(settings))), sort_keys=False)
        (folder / ".hydra" / "config.yaml").write_text(text, encoding="utf-8")
    elif kind == "hparams":
        place = folder / "lightning_logs" / "version_0"
        place.mkdir(parents=True, exist_ok=True)
        (place / "hparams.yaml").write_text(yaml.safe_dump(plain), encoding="utf-8")
    elif kind == "params":
        (folder / "params").mkdir(exist_ok=True)
        for name, value in settings.items():
            (folder / "params" / name).write_text(str(value), encoding="utf-8")
