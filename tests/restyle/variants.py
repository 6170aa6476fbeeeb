"""Changes to how a run is written, or to its scale, that must not change what is told of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random

from tests.restyle.story import Quantity, Resume, Story
from tests.restyle.style import Style


@dataclass(frozen=True, slots=True)
class Variant:
    """A run and a style that tell the same as those it was made from, but for what `name` says."""

    name: str
    story: Story
    style: Style


def variants(story: Story, style: Style) -> Iterator[Variant]:
    """Every change, one at a time."""
    yield Variant("irrelevant column", with_weight_norm(story), style)
    yield Variant("step axis times ten", with_scaled_steps(story, 10), style)
    yield Variant("every other record", story, replace(style, every=style.every * 2))
    yield Variant("four digits", story, replace(style, digits=".4g"))


def with_weight_norm(story: Story, seed: int = 0) -> Story:
    """Add a quantity that says nothing of what happens: a norm that stays where it is."""
    draw = Random(seed)
    steps = story.curves["train", "loss"]
    flat = {step: 311.0 + draw.gauss(0, 0.01) for step in steps}
    return replace(story, curves={**story.curves, ("train", "weight_norm"): flat})


def with_scaled_steps(story: Story, factor: int) -> Story:
    """Count `factor` steps where one was counted."""
    resume = story.resume and Resume(
        story.resume.at * factor, story.resume.back_to * factor, _scaled(story.resume.before, factor)
    )
    counted = ("total_steps", "warmup_steps")
    settings = {k: v * factor if k in counted and isinstance(v, int) else v for k, v in story.settings.items()}
    return replace(
        story,
        curves=_scaled(story.curves, factor),
        settings=settings,
        steps_per_epoch=story.steps_per_epoch * factor,
        resume=resume,
    )


def _scaled(curves: Mapping[Quantity, Mapping[int, float]], factor: int) -> dict[Quantity, dict[int, float]]:
    return {quantity: {step * factor: v for step, v in curve.items()} for quantity, curve in curves.items()}
