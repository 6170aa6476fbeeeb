"""Write each trained run in other styles, and an index of these versions.

The first version of a run tells what its log tells, as far as the form has a place for it. Further ones are poorer: a
longer interval, columns or the configuration left out, three or four digits. Some forms are for the test part alone.
"""

from __future__ import annotations

import multiprocessing
import shutil
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
from tests.restyle import settings
from tests.restyle.files import FILES
from tests.restyle.lines import COUNT_STEPS, LINES
from tests.restyle.settings import FILE_FORMS, FORMS
from tests.restyle.story import Curve, Story
from tests.restyle.style import Style, random_style
from tests.restyle.styles import STYLES
from tests.restyle.templates import TEMPLATES
from tests.restyle.write import Written, write

from benchmarks.corpus.labels import Label, read_labels, write_labels
from benchmarks.faults.deciding import BRIEF, SETTINGS, columns, still_shown
from benchmarks.faults.recorded import KEYS, Recorded, recorded, steps_per_pass, story

HELD = frozenset(
    {"json_nested", "logfmt", "colon_tabs", "space_bars", "brackets", "grid", "columns", "yaml_documents"}
    | {"dict_of_strings", "csv_long", "csv_two", "wandb_export", "mlflow", "parquet"}
    | {"fairseq", "mmcv", "detectron2", "tf_estimator", "paddle", "tutorial", "torchtitan", "xl_bars"}
)
"""Forms that only runs of the test part are written in."""
KEEP_REPEATS = frozenset({*LINES, "csv", "tsv", "json_array"})
"""Forms that keep the records of steps that were made twice."""
OWN_PACE = frozenset({"bar", "lightning_bar", "keras", "keras2"})
"""Forms that print a pace of their own, which is not that of the run."""
VERSIONS = 2
"""Of each run."""
POLICIES = ("grpo", "dpo", "ppo", "dqn", "trl_grpo", "trl_dpo")
"""Tasks whose every column may decide."""
LEAST_RECORDS = 40
"""Records of the loss that a longer interval leaves."""
MAY_GO = ("gradient_norm", "learning_rate", "accuracy")
CLOSE = 0.01
"""Relative error of a number as printed; a style whose digits lose more is not for this run."""
TRIES = 200


@dataclass(frozen=True, slots=True)
class Content:
    """What a version tells.

    Args:
        story: The run.
        told: The configuration is written.
        passes: The log says where in its passes over the data the run is.
        digits: Format of the numbers; that of the style where it is empty.
    """

    story: Story
    told: bool
    passes: bool
    digits: str = ""


@dataclass(frozen=True, slots=True)
class Version:
    """Content as it was written."""

    style: Style
    written: Written
    columns: frozenset[str]


def restyle(made: Path, into: Path, versions: int = VERSIONS, seed: int = 0, processes: int = 2) -> None:
    """Write versions of every run of a folder into another, which is emptied; print which cannot be written anew."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    write = partial(_versions, made=made, into=into, versions=versions, seed=seed)
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        written = pool.map(write, read_labels(made).items(), chunksize=8)
    write_labels(into, {name: label for labels in written for name, label in labels.items()})


def _versions(run: tuple[str, Label], *, made: Path, into: Path, versions: int, seed: int) -> dict[str, Label]:
    """Write the versions of a run and return their labels; none where its log cannot be told as a story."""
    name, label = run
    try:
        whole = content(recorded(made / name), name)
    except ValueError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return {}
    before = columns(whole.story.curves, settings=whole.told, passes=whole.passes)
    also = set(before) if name.startswith(POLICIES) else {SETTINGS} if label.settings_decide else set()
    found: dict[str, Label] = {}
    for number in range(1, versions + 1):
        draw = Random(f"{seed} {name} {number}")  # noqa: S311 - repeatable
        given = whole if number == 1 else poorer(whole, label, draw, keep=also)
        held = not label.tuning and draw.random() < 0.5
        try:
            version = written(given, draw, into / f"{name}-v{number}", held=held)
        except ValueError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return found
        shows = label.shows and still_shown(label.cause, before, version.columns, also)
        found[f"{name}-v{number}"] = replace(
            label, shows=shows, restyled=version.style.name, of=name, style_seen=not held
        )
    return found


def content(run: Recorded, name: str) -> Content:
    """Return all that a log tells.

    Raises:
        ValueError: it cannot be told as a story.
    """
    return Content(story(run, name), bool(run.config), bool(steps_per_pass(run.records)))


def poorer(whole: Content, label: Label, draw: Random, *, keep: Collection[str] = ()) -> Content:
    """Return what a poorer log tells: at least one thing less, never the loss.

    Args:
        whole: What the run's log tells.
        label: What is known of the run; a cause that shows in a few records keeps its interval.
        draw: Chooses.
        keep: Columns that stay.
    """
    ways = draw.sample(["interval", "columns", "settings", "digits"], draw.choice([1, 2, 3]))
    told, passes, run = whole.told, whole.passes, whole.story
    longest = min(10, len(run.curves.get(("train", "loss"), ())) // LEAST_RECORDS)
    if "interval" in ways and longest > 1 and label.cause not in BRIEF and run.resume is None:
        run = with_interval(run, draw.randint(2, longest))
    if "columns" in ways:
        gone = [what for what in MAY_GO if draw.random() < 0.5]
        kept = {q: c for q, c in run.curves.items() if q[1] not in gone or "/".join(q) in keep}
        run, passes = replace(run, curves=kept), passes and draw.random() < 0.5
    if "settings" in ways and SETTINGS not in keep:
        told = False
    return Content(run, told, passes, draw.choice([".3g", ".4g"]) if "digits" in ways else "")


def with_interval(run: Story, every: int) -> Story:
    """Log training at every so many-th record: the mean loss since the last one, and the rest as it is then."""
    train = {q: _sparse(c, every, mean=q[1] == "loss") for q, c in run.curves.items() if q[0] == "train"}
    return replace(run, curves={**run.curves, **train})


def _sparse(curve: Curve, every: int, *, mean: bool) -> Curve:
    steps = sorted(curve)
    windows = [steps[start : start + every] for start in range(0, len(steps), every)]
    return {one[-1]: sum(curve[step] for step in one) / len(one) if mean else curve[one[-1]] for one in windows}


def written(given: Content, draw: Random, folder: Path, *, held: bool) -> Version:
    """Write content in a style drawn at random, into a folder that is emptied before.

    Args:
        given: What to write.
        draw: Chooses.
        folder: Where to.
        held: Whether the style is one of those for the test part alone.

    Raises:
        ValueError: no style was found whose digits and form suit the run.
    """
    named = [*STYLES.values()]
    for _ in range(TRIES):
        style = draw.choice(named) if draw.random() < 0.5 else random_style(draw.randrange(10**6))
        if (style.form in HELD) is held and (fitted := suited(style, given, draw)):
            version = version_of(given, fitted, folder)
            if faithful(given.story, version.written):
                return version
    raise ValueError(f"no style suits it within {TRIES} tries")


def version_of(given: Content, style: Style, folder: Path) -> Version:
    """Write content in a style that suits it, into a folder that is emptied before.

    A setting that the style's family of keys has no place for keeps the key that it has in the benchmark.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    left_out = given.story.settings.keys() - settings.written(given.story.settings, style.keys).keys()
    extra = {KEYS[name]: given.story.settings[name] for name in sorted(left_out)}
    done = write(replace(given.story, extra={**given.story.extra, **extra}), style, folder)
    passes = done.axis.startswith(("epoch", "step+epoch"))
    return Version(style, done, frozenset(columns(done.series, settings=bool(style.config), passes=passes)))


def suited(style: Style, given: Content, draw: Random) -> Style | None:
    """Return a style with what a run needs and without what it cannot have; None where it cannot be helped."""
    run, form = given.story, style.form
    own = TEMPLATES[form].axis if form in TEMPLATES else "step" if form in COUNT_STEPS else ""
    if form in OWN_PACE and ("train", "step_time") in run.curves:
        return None
    if (form in FILES and run.error) or (run.resume and form not in KEEP_REPEATS):
        return None
    if own == "epoch" or (not given.passes and (own.startswith("epoch") or form == "trainer_state")):
        return None
    forms = FILE_FORMS if form in FILES else FORMS
    config = (style.config if style.config in forms else draw.choice([*forms])) if given.told else ""
    axis = style.axis if _allowed(style.axis, given, config) else "step"
    axis = "step+epoch" if axis == "step" and given.passes else axis
    naming = replace(style.naming, any_loss=True)
    digits = given.digits or style.digits
    return replace(style, naming=naming, config=config, axis=axis, every=1, omit=(), digits=digits)


def _allowed(axis: str, given: Content, config: str) -> bool:
    """Say whether a run can be told on an axis: passes where it has them, rows where the log says how many a step."""
    if axis in {"samples", "tokens"}:
        return bool(config) and "batch_size" in given.story.settings and given.story.resume is None
    return axis != "epoch" and (given.passes or "epoch" not in axis)


def faithful(run: Story, done: Written) -> bool:
    """Say whether the numbers can be had from what was printed, and every record of the loss is there."""
    loss = ("train", "loss")
    if loss not in done.series or len(done.series[loss].values) < len(run.curves[loss]):
        return False
    return all(_close(run.curves[quantity], series.values) for quantity, series in done.series.items())


def _close(curve: Curve, printed: Mapping[float, float]) -> bool:
    """Say whether nearly all values of a curve, or at least most where others were added, are as printed."""
    true = np.array([curve[step] for step in sorted(curve)])
    told = np.array([printed[position] for position in sorted(printed)])
    if len(true) != len(told):
        return bool(len(told) > 0.9 * len(true))
    return bool(np.isclose(told, true, rtol=CLOSE, atol=0, equal_nan=True).mean() > 0.95)
