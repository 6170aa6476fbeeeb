"""Configurations are what they claim to be, in every form and under every family of keys."""

from __future__ import annotations

import argparse
import ast
import json
import shlex
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml

from tests.restyle import settings
from tests.restyle.stories import healthy_classifier, healthy_language_model
from tests.restyle.style import Style
from tests.restyle.write import write


def read_by_parser(words: list[str]) -> dict[str, str]:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("--learning-rate", "--lr", "--optimizer.lr", "--learningRate"):
        parser.add_argument(name, dest="rate")
    return vars(parser.parse_known_args(words[words.index("train.py") + 1 :])[0])


def read_call(text: str) -> dict[str, object]:
    call = ast.parse(text.strip(), mode="eval").body
    assert isinstance(call, ast.Call)
    return {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}


PARSERS: Mapping[str, Callable[[settings.Given], Mapping[str, object]]] = {
    "json_file": lambda given: json.loads(given.files["config.json"]),
    "args_file": lambda given: json.loads(given.files["args.json"]),
    "yaml_file": lambda given: yaml.safe_load(given.files["config.yaml"]),
    "hydra": lambda given: yaml.safe_load(given.files[".hydra/config.yaml"]),
    "toml_file": lambda given: tomllib.loads(given.files["config.toml"]),
    "wandb": lambda given: {
        key: entry["value"]
        for key, entry in yaml.safe_load(given.files["config.yaml"]).items()
        if key != "wandb_version"
    },
    "namespace": lambda given: read_call("\n".join(given.lines)),
    "dataclass": lambda given: read_call("\n".join(given.lines)),
    "arguments": lambda given: read_call("\n".join(given.lines)),
    "command": lambda given: read_by_parser(shlex.split(given.lines[0])),
    "dots": lambda given: {line.split()[0]: line.split()[-1] for line in given.lines[1:-1]},
    "block": lambda given: yaml.safe_load("\n".join(given.lines[1:])),
    "printed_json": lambda given: json.loads("\n".join(given.lines)),
    "printed_dict": lambda given: ast.literal_eval(given.lines[0].removeprefix("config: ")),
}
RATES = ("learning_rate", "lr", "optimizer.lr", "optimizer_lr", "learningRate", "rate")


@pytest.mark.parametrize("keys", settings.FAMILIES)
@pytest.mark.parametrize("form", settings.FORMS)
def test_a_configuration_is_read_by_the_library_that_owns_its_form(form: str, keys: str) -> None:
    given = settings.given(healthy_language_model().settings, form, keys)
    read = settings.flat(PARSERS[form](given))
    assert [float(str(read[name])) for name in RATES if read.get(name) is not None] == [3e-4]


def test_only_settings_that_a_family_has_a_key_for_count_as_written(tmp_path: Path) -> None:
    story = healthy_classifier()
    written = write(story, Style("s", "json", config="json_file", keys="megatron"), tmp_path)
    assert written.settings["learning_rate"] == 0.1
    assert "classes" not in written.settings
    assert "clipping" not in written.settings, "it is off"
