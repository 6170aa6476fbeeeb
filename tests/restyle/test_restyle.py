"""The generator itself: its files are what they claim to be, and its truth is what stands in them."""

from __future__ import annotations

import ast
import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from mldebug_mcp.logs import read_run
from tests.restyle import settings
from tests.restyle.compare import misses
from tests.restyle.files import FILES
from tests.restyle.lines import LINES
from tests.restyle.noise import PREFIXES
from tests.restyle.stories import STORIES, healthy_classifier, resume_jump
from tests.restyle.story import Story, story_from_records
from tests.restyle.style import Style, random_style
from tests.restyle.styles import STYLES
from tests.restyle.templates import TEMPLATES
from tests.restyle.variants import variants
from tests.restyle.words import Naming
from tests.restyle.write import Series, Written, write

NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?|nan)", re.IGNORECASE)
LOSS = ("train", "loss")
SCALES = (1.0, 1e-3, 1e-2, 2.0**20, 2.0**30)


def losses(written: Written) -> list[float]:
    return [value for _, value in sorted(written.series[LOSS].values.items())]


def table(text: str, separator: str = ",") -> list[dict[str, str]]:
    rows = csv.DictReader(io.StringIO(text), delimiter=separator)
    return [{str(key).strip(): (value or "").strip() for key, value in row.items()} for row in rows]


def column(rows: Iterable[Mapping[str, object]], name: str) -> list[float]:
    return [float(str(row[name])) for row in rows if str(row.get(name) or "").strip()]


def by_tensorboard(path: Path, name: str) -> list[float]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(path), size_guidance={"scalars": 0})
    events.Reload()
    return [event.value for event in events.Scalars(name)]


def objects(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def named_lines(path: Path, name: str) -> list[float]:
    """What stands behind a name in a text, at the first place on each line."""
    pattern = re.compile(rf"(?<![\w./-]){re.escape(name)}'?\s*[=:|]?\s*'?({NUMBER.pattern})")
    return [float(found[1]) for line in re.split("[\r\n]", path.read_text()) if (found := pattern.search(line))]


OWNERS: Mapping[str, Callable[[Path, str], list[float]]] = {
    "json": lambda path, name: column(objects(path.read_text()), name),
    "json_nested": lambda path, name: [
        float(row["train"]["loss"])  # type: ignore[index]
        for row in objects(path.read_text())
        if "train" in row and name == "train/loss"
    ],
    "json_event": lambda path, name: column(
        [row["data"] for row in objects(path.read_text())],  # type: ignore[misc]
        name,
    ),
    "dict": lambda path, name: column(map(ast.literal_eval, path.read_text().splitlines()[:-1]), name),
    "dict_of_strings": lambda path, name: column(map(ast.literal_eval, path.read_text().splitlines()[:-1]), name),
    "yaml_documents": lambda path, name: column(
        yaml.safe_load_all(path.read_text().replace("Training finished.", "")), name
    ),
    "csv": lambda path, name: column(table(path.read_text()), name),
    "csv_padded": lambda path, name: column(table(path.read_text()), name),
    "csv_two": lambda path, name: column(table((path / "train.csv").read_text()), name),
    "csv_long": lambda path, name: column([row for row in table(path.read_text()) if row["metric"] == name], "value"),
    "tsv": lambda path, name: column(table(path.read_text(), "\t"), name),
    "wandb_export": lambda path, name: column(table(path.read_text()), f"clean-sun-12 - {name}"),
    "tensorboard_csv": lambda path, name: column(
        table(next(path.glob(f"*-{name.replace('/', '_')}.csv")).read_text()), "Value"
    ),
    "parquet": lambda path, name: pl.read_parquet(path)[name].drop_nulls().to_list(),
    "json_array": lambda path, name: column(json.loads(path.read_text()), name),
    "json_columns": lambda path, name: json.loads(path.read_text())[name],
    "trainer_state": lambda path, name: column(json.loads(path.read_text())["log_history"], name),
    "tensorboard": by_tensorboard,
    "mlflow": lambda path, name: [
        float(line.split()[1]) for line in next(path.glob(f"0/*/metrics/{name}")).read_text().splitlines()
    ],
}
"""Reads the column of a name by the library that owns the format, for what has an owner."""
BY_NAME = ("equals", "equals_commas", "colon_bars", "colon_commas", "colon_spaces", "colon_tabs", "space_bars",
           "sentence", "brackets", "logfmt", "bar", "box", "pretty_dict")  # fmt: skip


@pytest.mark.parametrize("form", [*OWNERS, *BY_NAME])
def test_a_form_is_read_by_the_library_that_owns_it_or_by_a_pattern(form: str, tmp_path: Path) -> None:
    naming = Naming(phase="" if form == "csv_two" else "/")
    style = Style(form, form, naming, every=3, digits=".6g", axis="step")
    if form == "trainer_state":
        style = replace(style, axis="step+epoch")
    written = write(healthy_classifier(), style, tmp_path)

    name = naming.name(LOSS)
    read = OWNERS.get(form, named_lines)(written.path, name)

    assert len(read) == 100
    assert read == pytest.approx(losses(written), rel=1e-6)


def test_a_machine_log_holds_one_line_for_each_number(tmp_path: Path) -> None:
    written = write(healthy_classifier(), Style("m", "mllog"), tmp_path)
    lines = [line for line in written.path.read_text().splitlines() if line.startswith(":::MLLOG ")]
    entries = [json.loads(line.removeprefix(":::MLLOG ")) for line in lines]
    assert [entry["value"] for entry in entries if entry["key"] == "loss"] == losses(written)
    assert [entry["metadata"]["step_num"] for entry in entries if entry["key"] == "loss"] == [*range(1, 301)]


@pytest.mark.parametrize("form", ["grid", "markdown", "columns", "printed_csv"])
def test_the_columns_of_a_printed_table_stand_below_their_names(form: str, tmp_path: Path) -> None:
    style = Style(form, form, Naming(eval="val"), axis="epoch", apart=False)
    written = write(healthy_classifier(), style, tmp_path)
    lines = [line for line in written.path.read_text().splitlines() if not re.fullmatch(r"[-+| ]+|Training.*", line)]
    rows = [[cell for cell in re.split(r"\s*[|,]\s*|\s{2,}", line.strip()) if cell] for line in lines]
    at = rows[0].index("loss")
    assert [float(row[at]) for row in rows[1:]] == losses(written)


@pytest.mark.parametrize("style", [s for s in STYLES.values() if s.form not in FILES], ids=lambda style: style.name)
def test_every_true_value_stands_in_the_log(style: Style, tmp_path: Path) -> None:
    written = write(healthy_classifier(steps=100), style, tmp_path)
    log = written.path if written.path.is_file() else next(written.path.glob("train.*"))
    text = log.read_text()
    numbers = {
        float(number.replace(",", "")) for number in NUMBER.findall(text) + NUMBER.findall(text.replace(",", " "))
    }
    for quantity, series in written.series.items():
        assert any(all(_near(value / scale, numbers) for value in series.values.values()) for scale in SCALES), quantity


def _near(value: float, numbers: set[float]) -> bool:
    return any(candidate in numbers for candidate in (value, float(f"{value:.12g}"), float(f"{value:.9g}")))


@pytest.mark.parametrize("style", STYLES.values(), ids=lambda style: style.name)
def test_the_truth_is_what_the_story_tells_to_the_printed_digits(style: Style, tmp_path: Path) -> None:
    story = healthy_classifier(steps=100)
    written = write(story, style, tmp_path)
    assert LOSS in written.series
    for quantity, series in written.series.items():
        assert [*series.values] == sorted(series.values), quantity
        told = [story.curves[quantity][_step(at, written.axis, story)] for at in series.values]
        assert [*series.values.values()] == pytest.approx(told, rel=5e-3, abs=6e-3), quantity


def _step(at: float, axis: str, story: Story) -> int:
    per = story.steps_per_epoch
    scale = {"samples": 1 / story.rows_per_step, "tokens": 1 / story.tokens_per_step, "epoch": per}
    scale["epoch_fraction"] = per
    return round(at * scale.get(axis, 1.0)) + (axis == "step0")


@pytest.mark.parametrize("style", STYLES.values(), ids=lambda style: style.name)
def test_the_same_story_in_the_same_style_gives_the_same_bytes(style: Style, tmp_path: Path) -> None:
    texts = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        written = write(STORIES["spike"](steps=60), style, folder)
        files = sorted(path for path in folder.rglob("*") if path.is_file() and "tfevents" not in path.name)
        texts.append((written.series, written.settings, [path.read_bytes() for path in files]))
    assert texts[0] == texts[1]


def test_there_are_many_styles_and_every_list_is_used() -> None:
    assert len(STYLES) >= 48
    assert {style.form for style in STYLES.values()} == {*LINES, *FILES, *TEMPLATES}
    assert {style.config for style in STYLES.values()} == {"", *settings.FORMS}
    assert {style.keys for style in STYLES.values()} == {*settings.FAMILIES}
    assert {style.prefix for style in STYLES.values()} >= {*PREFIXES} - {"brackets"}
    assert len({repr(replace(random_style(seed), name="")) for seed in range(500)}) == 500


@pytest.mark.parametrize("seed", range(24))
def test_a_style_drawn_by_seed_can_be_written(seed: int, tmp_path: Path) -> None:
    written = write(resume_jump(steps=200), random_style(seed), tmp_path)
    assert written.path.exists()
    assert len(written.series[LOSS].values) >= 200 // 5


def test_an_earlier_attempt_stands_in_front_and_is_no_part_of_the_truth(tmp_path: Path) -> None:
    written = write(healthy_classifier(), Style("a", "json", earlier="memory", digits=".8g"), tmp_path)
    before, _, after = written.path.read_text().partition("torch.OutOfMemoryError")
    assert written.attempts == 2
    assert column(objects(after), "loss") == losses(written)
    assert len(column(objects(before), "loss")) == 100
    assert not set(column(objects(before), "loss")) & set(losses(written))


def test_a_resumed_run_writes_steps_again_and_the_later_values_are_true(tmp_path: Path) -> None:
    written = write(resume_jump(), Style("r", "json", digits=".8g"), tmp_path)
    before, told, after = written.path.read_text().partition("Resuming from checkpoint out/checkpoint-160")
    first = {row["step"]: row["loss"] for row in objects(before) if "loss" in row}
    again = {row["step"]: row["loss"] for row in objects(after) if "loss" in row}
    assert told
    assert written.resumes == (160,)
    assert (max(map(int, map(str, first))), min(map(int, map(str, again)))) == (180, 161)
    assert written.series[LOSS].values[170] == again[170] != first[170]


def test_the_time_of_day_never_goes_back(tmp_path: Path) -> None:
    written = write(resume_jump(), Style("t", "json_event", earlier="interrupt"), tmp_path)
    times = [str(row["timestamp"]) for row in objects(written.path.read_text())]
    assert times == sorted(times)
    assert len(times) > 300


def test_an_error_ends_the_log(tmp_path: Path) -> None:
    written = write(STORIES["memory_climbs"](), Style("e", "equals"), tmp_path)
    assert written.path.read_text().rstrip().endswith(written.error.splitlines()[-1])


def test_noise_stands_between_records_but_in_none(tmp_path: Path) -> None:
    written = write(healthy_classifier(), Style("n", "json", noise=True, digits=".8g"), tmp_path)
    text = written.path.read_text()
    assert "urllib3" in text
    assert column(objects(text), "loss") == losses(written)


def test_unwritten_units_allow_for_any_scale_and_written_ones_for_none(tmp_path: Path) -> None:
    memory = ("train", "device_memory")
    bare = write(healthy_classifier(), Style("b", "json"), _made(tmp_path / "a"))
    told = write(healthy_classifier(), Style("t", "json", Naming(units={"size": "GiB"})), _made(tmp_path / "b"))
    assert told.series[memory].values[1] == bare.series[memory].values[1] == 9216 * 2**20
    assert told.series[memory].scales == (1.0,)
    assert len(bare.series[memory].scales) > 1


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.mark.parametrize("name", STORIES)
def test_a_story_is_the_same_for_the_same_seed_and_another_for_another(name: str) -> None:
    make = STORIES[name]
    assert repr(make(seed=1)) == repr(make(seed=1))
    assert make(seed=1).curves != make(seed=2).curves


def test_stories_show_what_they_are_called() -> None:
    loss = {name: [*make().curves[LOSS].values()] for name, make in STORIES.items()}
    assert loss["healthy_language_model"][-1] < loss["healthy_language_model"][0] / 2
    assert 178 <= max(range(100, 300), key=loss["spike"].__getitem__) <= 182
    assert loss["divergence"][-1] > loss["divergence"][0]
    assert [math.isnan(value) for value in loss["not_a_number"]].index(True) == 232
    memory = [*STORIES["memory_climbs"]().curves["train", "host_memory"].values()]
    assert memory[-1] > 2 * memory[0]
    late = [*STORIES["overfitting"]().curves["eval", "loss"].values()]
    assert late[-1] > min(late) * 1.2
    data = STORIES["slow_data"]().curves
    assert data["train", "data_wait"][100] > 0.5 * data["train", "step_time"][100]


def test_recorded_rows_become_a_story(tmp_path: Path) -> None:
    rows = [{"step": s, "train/loss": 2.0 / s, **({"eval/accuracy": 0.5} if s == 4 else {})} for s in range(1, 9)]
    story = story_from_records(rows, {"learning_rate": 0.1})
    written = write(story, Style("s", "csv", config="json_file"), tmp_path)
    assert written.series[LOSS].values == pytest.approx({s: 2.0 / s for s in range(1, 9)}, rel=1e-5)
    assert written.series["eval", "accuracy"].values == {4: 0.5}


@pytest.mark.parametrize("row", [{"train/loss": 1.0}, {"step": 1, "loss": 1.0}, {"step": 1, "train/lossy": 1.0}])
def test_rows_that_say_nothing_known_are_refused(row: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"no step|write a quantity|not a quantity"):
        story_from_records([row], {})


def test_each_kind_of_difference_between_what_was_read_and_written_is_seen(tmp_path: Path) -> None:
    story = story_from_records(({"step": s, "train/loss": 2.0 / s} for s in range(1, 31)), {})
    written = write(story, Style("d", "csv", digits=".8g"), tmp_path)
    run, series = read_run(written.path), written.series[LOSS]
    assert [*misses(run, written)] == []

    def kinds(values: dict[float, float], **changed: Any) -> list[str]:
        return [miss.kind for miss in misses(run, replace(written, series={LOSS: Series(values)}, **changed))]

    assert kinds({**series.values, 7: 0.3}) == ["other values"]
    assert kinds({step + (step == 30): value for step, value in series.values.items()}) == ["other steps"]
    assert kinds({step: value for step, value in series.values.items() if step < 30}) == ["other count"]
    assert kinds(series.values, settings={"learning_rate": 0.1}) == ["setting"]
    assert kinds(series.values, attempts=2) == ["attempts"]
    assert kinds(series.values, resumes=(9,)) == ["resumes"]
    unread = replace(written, series={("eval", "accuracy"): series})
    assert [miss.kind for miss in misses(run, unread)] == ["not found"]


def test_a_variant_changes_what_it_says_and_nothing_else(tmp_path: Path) -> None:
    story, style = resume_jump(), Style("v", "csv", digits=".8g")
    made = {v.name: write(v.story, v.style, _made(tmp_path / v.name)).series for v in variants(story, style)}
    plain = write(story, style, _made(tmp_path / "plain")).series
    assert made["irrelevant column"].keys() - plain.keys() == {("train", "weight_norm")}
    assert made["irrelevant column"][LOSS] == plain[LOSS]
    assert made["step axis times ten"][LOSS].values == {10 * s: v for s, v in plain[LOSS].values.items()}
    assert made["every other record"][LOSS].values == {s: v for s, v in plain[LOSS].values.items() if s % 2 == 0}
    assert made["four digits"][LOSS].values == pytest.approx(plain[LOSS].values, rel=1e-3)
    assert made["four digits"][LOSS] != plain[LOSS]
