"""How a run is written down: a choice on each of several independent axes."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.restyle.words import Naming


@dataclass(frozen=True, slots=True)
class Style:
    """One way to write a run.

    Args:
        name: What it is called in tests and reports.
        form: The form of a record: a key of `lines.LINES`, `templates.TEMPLATES` or `files.FILES`.
        naming: How quantities are named, and their units. Templates have names of their own.
        digits: Format of a number; templates have their own.
        every: Every how many-th record of training is kept.
        axis: step, step0 (counts from 0), step+epoch, epoch_iter, epoch (one record a pass), epoch_fraction, samples or
            tokens.
        axis_name: What a step is called.
        apart: Evaluation is written in records of its own; otherwise beside training where both were measured.
        split: Name of a field that says "train" or the word for evaluation; empty for none.
        config: How settings are given: a key of `settings.FORMS`, or empty.
        keys: What settings are called: a key of `settings.FAMILIES`.
        prefix: What stands in front of each line: a key of `noise.PREFIXES`.
        noise: Lines that say nothing about the run stand between.
        earlier: The same file holds an attempt before: "memory" (it ran out of it), "interrupt", or empty.
        omit: Quantities that are not written.
    """

    name: str
    form: str
    naming: Naming = field(default_factory=Naming)
    digits: str = ".6g"
    every: int = 1
    axis: str = "step"
    axis_name: str = "step"
    apart: bool = True
    split: str = ""
    config: str = ""
    keys: str = "hf"
    prefix: str = ""
    noise: bool = False
    earlier: str = ""
    omit: tuple[str, ...] = ()


def random_style(seed: int) -> Style:
    """Draw a style from the lists: as many as there are seeds, each a thing that somebody could have written."""
    from tests.restyle import files, lines, noise, settings

    draw = Random(seed)
    form = draw.choice([*lines.LINES, *files.PLAIN])
    printed = form in lines.LINES
    apart = draw.random() < 0.7
    phase = draw.choice(["/", ".", "_", "eval", "eval", "end"])
    naming = Naming(
        case=draw.choice(["snake", "snake", "kebab", "camel"]),
        phase=phase if form != "json_nested" else "/",
        train=draw.choice(["train", "training"]),
        eval=draw.choice(["eval", "val", "valid", "validation", "test", "dev"]),
        groups=draw.choice([{}, {}, {"pace": "perf", "machine": "sys"}, {"pace": "time", "machine": "system"}]),
        units={
            "duration": draw.choice(["s", "sec", "ms"]),
            "size": draw.choice(["B", "MB", "MiB", "GB", "GiB"]),
            **({"share": "pct"} if draw.random() < 0.3 else {}),
        },
        seed=seed,
    )
    return Style(
        name=f"random_{seed}_{form}",
        form=form,
        naming=naming,
        digits=draw.choice([".4f", ".6g", ".4g", ".5e", ".8f"]) if printed else draw.choice([".6g", ".8g", ".7e"]),
        every=draw.choice([1, 1, 2, 5]),
        axis=draw.choice(["step", "step", "step0", "step+epoch", "samples", "tokens"]),
        axis_name=draw.choice(["step", "global_step", "iter", "iteration", "itr"]),
        apart=apart,
        config=draw.choice(["", *settings.FORMS] if printed else ["", *settings.FILE_FORMS]),
        keys=draw.choice([*settings.FAMILIES]),
        prefix=draw.choice([*noise.PREFIXES]) if form in lines.ONE_LINE else "",
        noise=printed and draw.random() < 0.5,
        earlier=draw.choice(["", "", "memory", "interrupt"]) if printed else "",
        omit=tuple(draw.sample(["data_wait", "throughput", "host_memory", "gradient_norm", "device_memory"], 2)),
    )
