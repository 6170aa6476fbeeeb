"""The forms in which people keep the settings of a run."""

from __future__ import annotations

import json

import yaml

from benchmarks.loops.science.task import Setting
from benchmarks.loops.science.writers.page import Page


def save_settings(page: Page, *, printed: bool) -> None:
    """Write the settings in the run's form; what is printed heads the log if that is a console."""
    settings = page.run.experiment.settings()
    form = page.run.settings
    if form == "yaml":
        page.write("config.yaml", [yaml.safe_dump(settings, sort_keys=False).rstrip()])
    elif form == "hparams":
        page.write("hparams.yaml", [yaml.safe_dump(settings).rstrip()])
    elif form == "wandb":
        wrapped = {"wandb_version": 1} | {name: {"desc": None, "value": value} for name, value in settings.items()}
        page.write("config.yaml", [yaml.safe_dump(wrapped).rstrip()])
    elif form == "json":
        page.write("config.json", [json.dumps({"task": page.run.experiment.name} | settings, indent=2)])
    else:
        _say(page, _command(settings) if form == "args" else _namespace(settings), printed=printed)


def _say(page: Page, line: str, *, printed: bool) -> None:
    if printed:
        page.head.append(line)
    else:
        page.write("args.txt", [line])


def _namespace(settings: dict[str, Setting]) -> str:
    return "Namespace(" + ", ".join(f"{name}={value!r}" for name, value in settings.items()) + ")"


def _command(settings: dict[str, Setting]) -> str:
    return "python train.py " + " ".join(_flag(name, value) for name, value in settings.items())


def _flag(name: str, value: Setting) -> str:
    dashed = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{dashed}" if value else f"--no-{dashed}"
    return f"--{dashed} {value}"
