"""A story in a style: the files, and what a reader without fault gets back from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.restyle import noise, settings
from tests.restyle.files import FILES
from tests.restyle.lines import COUNT_STEPS, EXTENSION, LINES, Cell, Record
from tests.restyle.stories import INTERRUPTED, OUT_OF_MEMORY
from tests.restyle.story import Quantity, Setting, Story, epoch_of
from tests.restyle.style import Style
from tests.restyle.templates import TEMPLATES, fill
from tests.restyle.words import BARE, BARE_SIZE, UNITS, Unit

EXACT = frozenset({"step", "step0", "step+epoch"})
"""Axes whose numbers are those of the steps; the others say where the run is in a unit of their own."""


@dataclass(slots=True)
class Series:
    """What was written of one quantity.

    Args:
        values: By position on the axis, in seconds, bytes, and shares of 1, as far as the printed digits tell.
        scales: Factors that a fair reader may be off by, where the unit was not written; 1 is among them.
    """

    values: dict[float, float] = field(default_factory=dict)
    scales: tuple[float, ...] = (1.0,)


@dataclass(slots=True)
class Written:
    """What a reader without fault gets back.

    Args:
        path: What to point the reader at.
        series: By quantity.
        settings: Those that were written, under the names of `story.SETTINGS`; only those that are on.
        axis: As in `Style`.
        attempts: Attempts in the file; the last one is told here.
        resumes: Steps of checkpoints that the log tells the run was resumed from.
        error: Text of the traceback that ends it, or empty.
    """

    path: Path
    series: dict[Quantity, Series]
    settings: dict[str, Setting]
    axis: str
    attempts: int = 1
    resumes: tuple[int, ...] = ()
    error: str = ""

    @property
    def exact_steps(self) -> bool:
        """Whether the position on the axis is the number of the step."""
        return self.axis in EXACT


@dataclass(frozen=True, slots=True)
class _Entry:
    """A step at which something is logged; "resume" tells of a restart from it."""

    step: int
    phase: str
    values: Mapping[Quantity, float]


def write(story: Story, style: Style, folder: Path) -> Written:
    """Write a story in a style into an empty folder."""
    given = settings.given(story.settings, style.config, style.keys, story.extra) if style.config else settings.Given()
    for name, text in dict(given.files).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    page = _Page(story, style)
    told = settings.written(story.settings, style.keys) if style.config else {}
    if style.form in FILES:
        records = [page.record(entry) for entry in timeline(story, style, page.axis) if entry.phase != "resume"]
        path = FILES[style.form](records, folder)
        return Written(path, page.series, told, page.axis)
    text = "".join(_attempts(page, given.lines))
    mixed = given.lines or style.noise or style.earlier or story.resume or story.error
    path = folder / f"train.{'log' if mixed else EXTENSION.get(style.form, 'log')}"
    path.write_text(text, encoding="utf-8", newline="")
    target = folder if given.files else path
    resumes = (story.resume.back_to,) if story.resume and page.axis != "epoch" else ()
    return Written(target, page.series, told, page.axis, 1 + bool(style.earlier), resumes, story.error)


def _attempts(page: _Page, head: Sequence[str]) -> Iterator[str]:
    """The text of a log, an earlier attempt in front where the style has one."""
    story, style = page.story, page.style
    banner = [*(noise.BANNER if style.noise else ()), *head]
    if style.earlier:
        early = _Page(Story(story.name, story.curves, story.settings, story.steps_per_epoch), style, spoiled=True)
        entries = [entry for entry in timeline(early.story, style, early.axis) if entry.step <= story.steps // 3]
        error = OUT_OF_MEMORY if style.earlier == "memory" else INTERRUPTED
        yield from _log(early, entries, [noise.COMMAND, *banner], error)
        page.seconds = early.seconds + 300.0
    start = [noise.COMMAND, *banner] if style.earlier else banner
    yield from _log(page, list(timeline(story, style, page.axis)), start, story.error or _end(story, style))


def _end(story: Story, style: Style) -> str:
    return noise.FINISHED if story.finished and style.form not in {"json", "json_nested", "json_event"} else ""


def _log(page: _Page, entries: Sequence[_Entry], head: Sequence[str], end: str) -> Iterator[str]:
    yield from (f"{line}\n" for line in head)
    fresh = True
    for number, entry in enumerate(entries):
        if entry.phase == "resume":
            yield from ("" if fresh else "\n", noise.RESUMED.format(step=entry.step), "\n")
            page.opened = ()
            fresh = True
            continue
        text = page.text(entry)
        if not text:
            continue
        redraws = text.startswith("\r")
        yield text if redraws or fresh else f"\n{text}" if not text.startswith("\n") else text
        fresh = False
        if page.style.noise and number % 23 == 11:
            yield "\n" + noise.BETWEEN[number % len(noise.BETWEEN)].format(step=entry.step) + "\n"
            fresh = True
    yield from ("" if fresh else "\n", f"{end}\n" if end else "")


def timeline(story: Story, style: Style, axis: str) -> Iterator[_Entry]:
    """What is logged, in order, with a restart and the steps that it repeats."""
    resume = story.resume
    if resume is None or axis == "epoch":
        yield from _stretch(story, style, axis, 0, story.steps)
        return
    for entry in _stretch(story, style, axis, 0, resume.at):
        first = {q: resume.before.get(q, {}).get(entry.step, value) for q, value in entry.values.items()}
        yield _Entry(entry.step, entry.phase, first)
    yield _Entry(resume.back_to, "resume", {})
    yield from _stretch(story, style, axis, resume.back_to, story.steps)


def _stretch(story: Story, style: Style, axis: str, after: int, until: int) -> Iterator[_Entry]:
    curves = {quantity: curve for quantity, curve in story.curves.items() if quantity[1] not in style.omit}
    trained = sorted({step for (phase, _), curve in curves.items() if phase == "train" for step in curve})
    tested = {step for (phase, _), curve in curves.items() if phase == "eval" for step in curve}
    kept = {step for number, step in enumerate(trained, 1) if number % style.every == 0}
    if axis == "epoch":
        kept = {step for step in trained if step % story.steps_per_epoch == 0}
    for step in sorted(kept | tested):
        if not after < step <= until:
            continue
        train = {q: c[step] for q, c in curves.items() if q[0] == "train" and step in c}
        test = {q: c[step] for q, c in curves.items() if q[0] == "eval" and step in c}
        joined = (axis == "epoch" or not style.apart) and step in kept and bool(test)
        if joined:
            yield _Entry(step, "both", {**train, **test})
            continue
        if step in kept:
            yield _Entry(step, "train", train)
        if test:
            yield _Entry(step, "eval", test)


def _axis(story: Story, style: Style) -> str:
    """The axis that a form with its own, and a story without tokens, leave of the style's."""
    if style.form in COUNT_STEPS:
        return "step"
    if style.form in TEMPLATES:
        return TEMPLATES[style.form].axis
    return "samples" if style.axis == "tokens" and "sequence_length" not in story.settings else style.axis


class _Page:
    """Puts entries into words, and keeps the truth of what it wrote."""

    def __init__(self, story: Story, style: Style, *, spoiled: bool = False) -> None:
        self.story, self.style, self.spoiled = story, style, spoiled
        self.template = TEMPLATES.get(style.form)
        self.axis = _axis(story, style)
        self.series: dict[Quantity, Series] = {}
        self.opened: tuple[str, ...] = ()
        self.seconds = 0.0
        self._last = 0
        self._pass: dict[Quantity, tuple[int, float, int]] = {}

    def text(self, entry: _Entry) -> str:
        """A record as printed; empty where this form prints nothing for it."""
        if self.template is None:
            record = self.record(entry)
            return noise.PREFIXES[self.style.prefix](record.time) + LINES[self.style.form](record)
        self._clock(entry)
        values = self._values(entry)
        for_eval = entry.phase in {"eval", "both"} and bool(self.template.eval)
        pattern = self.template.eval if for_eval else self.template.train
        if for_eval:  # what is printed beside it of training is what was measured at the same step
            values = {**{q: c[entry.step] for q, c in self.story.curves.items() if entry.step in c}, **values}
        filled = fill(pattern, values, self._where(entry, values), lambda unit: UNITS[unit].scale if unit else 1.0)
        if filled is None:
            return ""
        for quantity, text, unit in filled.cells:
            free = quantity[1] in self.template.free
            self._note(quantity, entry, text, UNITS[unit] if unit else BARE, free=free)
        return filled.text

    def record(self, entry: _Entry) -> Record:
        """A record whose names the style chooses."""
        self._clock(entry)
        naming, cells = self.style.naming, []
        counted = "tokens" if "sequence_length" in self.story.settings else "rows"
        for quantity, value in self._values(entry).items():
            unit = naming.unit(quantity)
            text = format(value / unit.scale, self.style.digits).strip()
            in_name = unit.word and naming.unit_at == "name"
            cells.append(Cell(naming.name(quantity, counted), text + (unit.sign if naming.unit_at == "value" else "")))
            self._note(quantity, entry, text, unit, free=unit is BARE_SIZE and not in_name)
        axis = self._axis_cells(entry)
        names = tuple(cell.name for cell in [*axis, *cells])
        opens, self.opened = names != self.opened, names
        return Record(entry.step, entry.phase, axis, cells, opens, noise.clock(self.seconds), self.story.steps)

    def _values(self, entry: _Entry) -> Mapping[Quantity, float]:
        """The values; an attempt that is not to be judged has others, so that mixing them is seen."""
        return {q: value * 1.01 for q, value in entry.values.items()} if self.spoiled else entry.values

    def _note(self, quantity: Quantity, entry: _Entry, text: str, unit: Unit, *, free: bool) -> None:
        series = self.series.setdefault(quantity, Series())
        series.values[self._position(entry)] = float(text.replace(",", "")) * unit.scale
        others = unit.also if not free else (1.0, 1e-2, 1.0 / 2**20, *BARE_SIZE.also)
        series.scales = (1.0, *(other / unit.scale for other in others))

    def _clock(self, entry: _Entry) -> None:
        """Move the time of day on: a step takes its time, an evaluation some more, and a restart a minute."""
        back = entry.step < self._last
        pace = self.story.curves.get(("train", "step_time"), {}).get(entry.step, 0.42)
        self.seconds += 60.0 if back else pace * (entry.step - self._last) + (5.0 if entry.phase == "eval" else 0.0)
        self._last = entry.step

    def _position(self, entry: _Entry) -> float:
        """Where a record stands on the axis, as far as it says."""
        step, story = entry.step, self.story
        return {
            "step0": step - 1,
            "epoch": epoch_of(step, story.steps_per_epoch),
            "epoch_fraction": float(f"{step / story.steps_per_epoch:.4f}"),
            "samples": step * story.rows_per_step,
            "tokens": step * story.tokens_per_step,
        }.get(self.axis, step)

    def _axis_cells(self, entry: _Entry) -> list[Cell]:
        position, passes = self._position(entry), entry.step / self.story.steps_per_epoch
        style, where = self.style, self._where(entry, {})
        cased = style.naming.cased
        whole = Cell(style.axis_name, f"{position:.0f}")
        cells = {
            "step+epoch": [whole, Cell("epoch", f"{passes:.4f}")],
            "epoch": [Cell("epoch", f"{position:.0f}")],
            "epoch_fraction": [Cell("epoch", f"{position:.4f}")],
            "epoch_iter": [
                Cell("epoch", f"{where['epoch']}/{where['epochs']}"),
                *([Cell("iter", f"{where['iter']}/{where['iters']}")] if entry.phase != "eval" else []),
            ],
            "samples": [Cell(cased(["samples", "seen"]), f"{position:.0f}")],
            "tokens": [Cell(cased(["tokens", "seen"]), f"{position:.0f}")],
        }.get(self.axis, [whole])
        if style.split:
            cells.append(Cell(style.split, style.naming.eval if entry.phase == "eval" else style.naming.train, True))
        return cells

    def _where(self, entry: _Entry, values: Mapping[Quantity, float]) -> dict[str, object]:
        story, step = self.story, entry.step
        epoch, per = epoch_of(step, story.steps_per_epoch), story.steps_per_epoch
        inside = step - (epoch - 1) * per
        rows = story.rows_per_step
        return {
            "step": step, "step0": step - 1, "steps": story.steps, "epoch": epoch, "epoch0": epoch - 1,
            "epochs": epoch_of(story.steps, per), "iter": inside, "iter0": inside - 1, "iters": per, "rows": rows,
            "samples": step * rows, "samples_in_pass": inside * rows, "samples_per_pass": per * rows,
            "percent": 100 * inside / per, "passes": step / per, "clock": noise.clock(self.seconds),
            **{f"mean_{q[1]}": self._mean(q, epoch, value) for q, value in values.items() if q[0] == "train"},
        }  # fmt: skip

    def _mean(self, quantity: Quantity, epoch: int, value: float) -> float:
        """The mean of the pass so far."""
        of, total, count = self._pass.get(quantity, (epoch, 0.0, 0))
        total, count = (total + value, count + 1) if of == epoch else (value, 1)
        self._pass[quantity] = (epoch, total, count)
        return total / count
