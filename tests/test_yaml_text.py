"""YAML that says too much is refused before anything is built of it; what configurations hold is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from mldebug_mcp.core import config_files
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.logs.settings.files import read_settings
from tests.hostile.yaml_texts import TEXTS, aliases, nested_merges


@pytest.mark.parametrize("text", [text for name, text in TEXTS.items() if name != "a call"])
def test_a_yaml_that_says_too_much_is_refused_in_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "args.yaml"
    path.write_text(text)
    with pytest.raises(
        InputError, match=r"args\.yaml: no settings could be read from it .*mend it or name another"
    ) as raised:
        read_settings(path)
    assert "\n" not in str(raised.value)


def test_a_yaml_of_more_values_than_are_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "args.yaml"
    path.write_text("a: [" + "1, " * 99 + "1]")
    assert len(read_settings(path)) == 1
    monkeypatch.setattr(config_files, "MAX_NODES", 100)
    with pytest.raises(InputError, match="more than 100 values"):
        read_settings(path)


@pytest.mark.parametrize("text", [nested_merges(3), aliases(3)])
def test_aliases_and_merges_within_bounds_are_read(text: str, tmp_path: Path) -> None:
    path = tmp_path / "args.yaml"
    path.write_text(text + "\nlearning_rate: 0.5\n")
    assert read_settings(path)["learning_rate"].value == 0.5


def test_the_tags_of_configurations_are_read_as_plain_values_and_nothing_is_called(tmp_path: Path) -> None:
    path = tmp_path / "hparams.yaml"
    path.write_text(f"lr: !!python/tuple [0.5]\nseed: !!python/object/apply:os.mkdir ['{tmp_path}/made']\nworkers: 7\n")
    assert read_settings(path)["num_workers"].value == 7
    assert not (tmp_path / "made").exists()


def test_a_long_configuration_is_read(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "".join(f"group{group}:\n" + "".join(f"  key{key}: {key}\n" for key in range(99)) for group in range(20))
    )
    assert read_settings(path)["group7/key5"].value == 5
