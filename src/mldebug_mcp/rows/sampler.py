"""What is known of a run's sampler, with the source of each setting."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Literal, NamedTuple

from mldebug_mcp.core.access import is_file, read_bytes
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import dataclass, replace
from mldebug_mcp.core.text import counted, figure, shorten
from mldebug_mcp.logs import Run, Series
from mldebug_mcp.logs.settings.files import read_pickled
from mldebug_mcp.rows.plan import (
    ARGUMENTS,
    SHUFFLE_MOST_ROWS,
    Order,
    Plan,
    Sharing,
    checkpoint_folders,
    trainer_folder,
)

# What a Trainer logs beside its losses, against the plan by which its rows are drawn again.

MAX_ROUNDING_ROWS = 0.4
"""Rows by which an estimate may be off that is rounded to whole rows. Chosen: below one half."""
EPOCH_SLACK = 1e-6
"""By how much an epoch that was logged with all its digits may differ from the plan's. Chosen: rounding is less."""
MOST_CHECKED = 2000
"""Logged epochs that are compared with the plan, evenly chosen."""
MIN_STEPS_PACED = 3
"""Steps with an epoch that show its pace. Chosen: two may be one record and the last."""
MAX_PACE_APART = 0.1
"""Share by which a pace may differ. Chosen: epochs of two digits are rounded, and settings that differ double it."""


class Pace(NamedTuple):
    """Rows of the data as a summary tells them, and by how many that may be off."""

    rows: float
    slack: float

    @property
    def is_sure(self) -> bool:
        """Whether it is one whole number of rows: the summary of a resumed run counts a part of them."""
        return self.slack < MAX_ROUNDING_ROWS and abs(self.rows - round(self.rows)) <= self.slack + EPOCH_SLACK


def rows_by_pace(run: Run, passes: object) -> Pace | None:
    """Return the rows of the data as the Trainer's summary tells: its samples are rows times passes.

    It rounds samples per second to 3 digits behind the point and the runtime to 4 (`speed_metrics` of Transformers).
    """
    summaries = [run.series.get(f"summary/train_{name}") for name in ("samples_per_second", "runtime")]
    pace, seconds = [None if series is None or not len(series) else float(series.value[-1]) for series in summaries]
    if not isinstance(passes, int | float) or passes <= 0 or not pace or not seconds:
        return None
    return Pace(pace * seconds / passes, (0.0005 * seconds + 0.00005 * pace) / passes)


def checked(plan: Plan, run: Run | None, passes: object) -> list[str]:
    """Return what of the log agrees with a plan; raises InputError where something does not."""
    if run is None:
        return []
    pace = rows_by_pace(run, passes)
    if (
        pace is not None
        and abs(plan.rows - pace.rows) > pace.slack + MAX_ROUNDING_ROWS
        and _as_many_batches(plan, pace.rows)
    ):
        raise InputError(
            f"the log does not agree: by its samples per second and its runtime the data have "
            f"{round(pace.rows):,} rows, not {plan.rows:,}; say rows, or name the data as the Trainer saw them"
        )
    epochs = run.series.get("epoch") if run.step_name == "step" else None
    if epochs is None:
        return []
    steps, logged = _by_step(epochs)
    for step, epoch in zip(steps, logged, strict=True):
        expected = plan.passed_at(step)
        if abs(expected - epoch) > _slack(epoch):
            raise InputError(
                f"the log does not agree: at step {step} it has epoch {epoch:.6g}, and by these settings "
                f"({counted(plan.rows, 'row')}, batches of {plan.batch_size}, accumulation {plan.accumulation}, world "
                f"{plan.world}) it would be {figure(expected)}; check rows and world, and say resumed_at if it was "
                "resumed with ignore_data_skip"
            )
    return [f"the epochs that the log has at {counted(len(steps), 'step')} agree"]


def paced(plan: Plan, run: Run | None) -> list[str]:
    """Return that the pace of the log's epochs agrees with a plan; raises InputError where it does not.

    Only epochs in fractions have a pace. Where they begin is not looked at: trainers count the first step differently.
    """
    epochs = run.series.get("epoch") if run is not None and run.step_name == "step" else None
    steps, logged = _by_step(epochs) if epochs is not None else ([], [])
    if len(steps) < MIN_STEPS_PACED or plan.resumed_at or all(epoch.is_integer() for epoch in logged):
        return []
    pace = (logged[-1] - logged[0]) / (steps[-1] - steps[0])
    expected = (plan.passed_at(steps[-1]) - plan.passed_at(steps[0])) / (steps[-1] - steps[0])
    if abs(pace - expected) > MAX_PACE_APART * expected:
        raise InputError(
            f"the log does not agree: it has a pass every {figure(1 / pace) if pace > 0 else 'no'} steps, and by these "
            f"settings ({counted(plan.rows, 'row')}, batches of {plan.batch_size}, accumulation {plan.accumulation}, "
            f"world {plan.world}) it would be every {figure(1 / expected)}; check rows, batch_size and world"
        )
    return [f"the pace of the epochs that the log has at {counted(len(steps), 'step')} agrees"]


def _as_many_batches(plan: Plan, rows: float) -> bool:
    """Return whether so many rows make as many batches, which the part of a resumed run does not."""
    return round(rows) > 0 and replace(plan, rows=round(rows)).batches == plan.batches


def _by_step(epochs: Series) -> tuple[list[int], list[float]]:
    """Return the whole steps from 1 up with the epochs logged there, the last of each."""
    found = {int(step): float(value) for step, value in zip(epochs.step, epochs.value, strict=True) if step >= 1}
    chosen = list(found)[:: -(-len(found) // MOST_CHECKED) or 1]
    return chosen, [found[step] for step in chosen]


def _slack(epoch: float) -> float:
    """Return how far a logged epoch may be off: half of its last digit."""
    digits = len(f"{epoch:.10g}".partition(".")[2])
    return max(EPOCH_SLACK, 0.500001 * 10.0**-digits)


# The folder of a Transformers Trainer → how its rows were dealt out, or why that cannot be told.

STATE = "trainer_state.json"
MAX_STATE = 64 * 1024 * 1024
RECORD = "record the rows (mldebug_mcp.recorder) to know those of the next run"
_OF_OTHERS = {
    "num_generations": "TRL's online trainers repeat prompts in an order of their own",
    "vllm_server_timeout": "TRL's online trainers repeat prompts in an order of their own",
    "multi_dataset_batch_sampler": "Sentence Transformers makes batches in its own way",
    "parallelism_config": "ranks that share a row are divided in a way of their own",
}
"""Arguments of trainers that deal rows out otherwise, with why that is not followed."""


def read_arguments(folder: Path) -> dict[str, object]:
    """Return what rows depend on of the arguments of a Trainer, by the names of `rows_settings`.

    Raises:
        InputError: they cannot be read, or say that rows are not known; the message says why.
    """
    arguments = read_pickled(folder / ARGUMENTS)
    name = shorten(str(folder / ARGUMENTS), 160)
    accelerator = arguments.get("accelerator_config")
    accelerator = accelerator if isinstance(accelerator, Mapping) else {}
    reason = _why_not(arguments, accelerator)
    if reason:
        raise InputError(f"{name}: the rows of a step are not known exactly: {reason}; {RECORD}")
    distributed = arguments.get("distributed_state")
    world = distributed.get("num_processes") if isinstance(distributed, Mapping) else None
    batch = _train_batch_size(folder)
    if batch is None and not arguments.get("auto_find_batch_size"):
        batch = _whole_number(arguments.get("per_device_train_batch_size"))
        batch = batch and batch * max(1, _whole_number(arguments.get("_n_gpu")) or 1)
    seed = arguments.get("data_seed")
    found = {
        "seed": arguments.get("seed") if seed is None else seed,
        "batch_size": batch,
        "accumulation": arguments.get("gradient_accumulation_steps"),
        "world": world,
        "drop_last": arguments.get("dataloader_drop_last"),
        "split_batches": accelerator.get("split_batches"),
        "dispatch_batches": accelerator.get("dispatch_batches"),
        "even_batches": accelerator.get("even_batches"),
        "in_order": arguments.get("train_sampling_strategy") == "sequential",
        "packed": arguments.get("packing") or None,
        "shuffled": arguments.get("shuffle_dataset") or None,
        "ignore_data_skip": arguments.get("ignore_data_skip"),
        "passes": arguments.get("num_train_epochs") if (_whole_number(arguments.get("max_steps")) or -1) < 0 else None,
    }
    return {key: value for key, value in found.items() if value is not None}


def _why_not(arguments: Mapping[str, object], accelerator: Mapping[str, object]) -> str:
    """Return why the rows cannot be drawn again; empty where they can."""
    strategy = arguments.get(
        "train_sampling_strategy", "group_by_length" if arguments.get("group_by_length") else "random"
    )
    if strategy not in ("random", "sequential"):
        return f"{shorten(str(strategy), 40)} orders rows by their lengths, with random numbers that were not kept"
    if strategy == "random" and not accelerator.get("use_seedable_sampler"):
        return "without use_seedable_sampler the shuffle takes random numbers that were not kept"
    return next((why for name, why in _OF_OTHERS.items() if arguments.get(name) is not None), "")


def _train_batch_size(folder: Path) -> int | None:
    """Return the batch size that the Trainer's state says was used in the end."""
    file = next(
        (state_file for place in (folder, *checkpoint_folders(folder)) if is_file(state_file := place / STATE)), None
    )
    if file is None:
        return None
    try:
        state = json.loads(read_bytes(file, MAX_STATE))
    except (OSError, InputError, ValueError, RecursionError):
        return None
    return _whole_number(state.get("train_batch_size")) if isinstance(state, dict) else None


def _whole_number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


# What is known of a run's sampler → the plan by which its rows were dealt out, each setting with its source.

Sampler = Literal["transformers", "accelerate", "lightning", "distributed", "random", "shuffle", "sequential"]
"""How rows were sampled: Transformers' Trainer; Accelerate's `SeedableRandomSampler` (`use_seedable_sampler=True`);
Lightning on several devices; `DistributedSampler` with `set_epoch`; `RandomSampler` with a seeded generator of its own;
`DataLoader(shuffle=True, generator=…)` with a seeded one; one row after the other."""
PastEnd = Literal["step", "carry"]
"""What becomes of micro-batches at the end of a pass that make no whole step: a smaller step, or part of the next."""

_DEALT: Mapping[str, tuple[Order, Sharing]] = {
    "transformers": ("seedable", "shards"),
    "accelerate": ("seedable", "shards"),
    "lightning": ("seedable", "distributed"),
    "distributed": ("seedable", "distributed"),
    "random": ("generator", "alone"),
    "shuffle": ("loader_generator", "alone"),
    "sequential": ("sequential", "alone"),
}
_OF_CLASS = {
    "SequentialSampler": "sequential", "DistributedSampler": "distributed", "SeedableRandomSampler": "accelerate",
    "transformers": "transformers",
}  # fmt: skip
"""Samplers that the head of a recording names, where the name alone says how they deal rows out."""
_IN_THE_LOG = {
    "seed": "seed", "batch_size": "per_device_train_batch_size", "accumulation": "gradient_accumulation_steps",
    "world": "world_size", "rows": "train_rows",
}  # fmt: skip
_IN_A_HEAD = ("seed", "batch_size", "accumulation", "world", "drop_last")
_ENDS_WITH_A_STEP = ("transformers", "accelerate", "lightning")
MAX_ROWS_OF_DATA = 2**31
MOST_FED = 100_000
"""Rows of a step, of all ranks and micro-batches."""


@dataclass(frozen=True, slots=True)
class SamplerOptions:
    """What a caller says of the sampler; None is unknown. See `rows_at` for each."""

    sampler: Sampler | None = None
    seed: int | None = None
    batch_size: int | None = None
    accumulation: int | None = None
    world: int | None = None
    rows: int | None = None
    drop_last: bool | None = None
    split_batches: bool | None = None
    dispatch_batches: bool | None = None
    past_end: PastEnd | None = None
    first_step: int | None = None
    resumed_at: tuple[int, ...] | None = None


class SourcedSetting(NamedTuple):
    """A setting and where it is from."""

    value: object
    source: str


class Settled(NamedTuple):
    """A plan, the number that its first step has in the log, and the sentences on what it rests on."""

    plan: Plan
    first_step: int
    basis: list[str]


def settle(
    options: SamplerOptions, place: Path, run: Run | None, head: Mapping[str, object], data_rows: int | None
) -> Settled:
    """Return how rows were dealt out.

    What the caller says stands before all else; `data_rows` are those of the data set that the caller named.

    Raises:
        InputError: it is not known exactly; the message says why, and what would make it so.
    """
    known = _known_settings(options, place, run, head, data_rows)
    sampler = str(_value("sampler", known) or "")
    if sampler and sampler not in _DEALT:
        raise InputError(f"sampler {shorten(sampler, 40)!r} does not exist; use one of: {', '.join(_DEALT)}")
    if not sampler:
        raise InputError(
            f"{shorten(str(place), 200)}: nothing there tells how rows were sampled (no recording of rows, no "
            f"training_args.bin); say sampler ({', '.join(_DEALT)}) with seed, batch_size and rows, or {RECORD}"
        )
    _require_certain(sampler, known, run)
    plan = _plan(sampler, known)
    if plan.batch_size * plan.accumulation * plan.world > MOST_FED:
        raise InputError(f"a step of more than {MOST_FED:,} rows is not drawn again; check batch_size and world")
    if not plan.batches:
        raise InputError(f"a pass over {counted(plan.rows, 'row')} holds no batch of {plan.batch_size}; check rows")
    if not plan.is_even:
        raise InputError("ranks get different numbers of batches with even_batches=False; no step is certain")
    if plan.batches % plan.accumulation and sampler not in _ENDS_WITH_A_STEP and options.past_end is None:
        raise InputError(
            f"{plan.batches} micro-batches of a pass make no whole number of steps of {plan.accumulation}; say what "
            "becomes of the last ones with past_end: 'step' (a smaller step) or 'carry' (part of the next pass's first)"
        )
    agreeing = checked(plan, run, _value("passes", known)) if sampler == "transformers" else paced(plan, run)
    sources = ", ".join(f"{name} {value.value} ({value.source})" for name, value in known.items())
    basis = [sources, *agreeing, *_made_before(known), *_assumed(sampler)]
    return Settled(plan, _first_step(options, sampler, run), basis)


def _known_settings(
    options: SamplerOptions, place: Path, run: Run | None, head: Mapping[str, object], data_rows: int | None
) -> dict[str, SourcedSetting]:
    """Return the settings, what is believed most first."""
    known: dict[str, SourcedSetting] = {}
    given = {field.name: getattr(options, field.name) for field in fields(options) if field.name not in ("first_step",)}
    _add(known, given.items(), "given")
    folder = trainer_folder(place) if _value("sampler", known) in (None, "transformers") else None
    if folder is not None:
        _add(known, {"sampler": "transformers", **read_arguments(folder)}.items(), "training_args.bin")
    recorded = head.get("sampler")
    recorded = recorded if isinstance(recorded, Mapping) else {}
    sampler = {"sampler": _OF_CLASS.get(str(recorded.get("kind", "")).rpartition(".")[2])}
    sampler |= {name: recorded.get(name) for name in _IN_A_HEAD}
    _add(known, {**sampler, "rows": head.get("data_length")}.items(), "the recording's head")
    _add(known, {"rows": data_rows}.items(), "the data named")
    if run is not None:
        pace = rows_by_pace(run, _value("passes", known))
        if pace is not None and pace.is_sure:
            _add(known, {"rows": round(pace.rows)}.items(), "samples per second times runtime, by pass")
        for name, called in _IN_THE_LOG.items():
            number = run.settings.number(called)
            if number is not None and number.is_integer() and (number > 0 or name == "seed"):
                _add(known, {name: int(number)}.items(), f"{run.settings[called].key}, {run.settings[called].source}")
    return known


_NAMES = frozenset(
    (*SamplerOptions.__annotations__, "even_batches", "in_order", "ignore_data_skip", "passes", "packed", "shuffled")
)


def _add(known: dict[str, SourcedSetting], values: Iterable[tuple[str, object]], source: str) -> None:
    for name, value in values:
        if value is not None and name in _NAMES and name not in known:
            known[name] = SourcedSetting(value, shorten(source, 80))


def _require_certain(sampler: str, known: Mapping[str, SourcedSetting], run: Run | None) -> None:
    """Refuse what random numbers decide that nobody kept."""
    starts_anew = "resumed_at" in known or (run is not None and len(run.segments) > 1)
    if sampler in ("random", "shuffle") and starts_anew:
        raise InputError(f"the run was resumed, and what its generator gave afterwards depends on the script; {RECORD}")
    if sampler == "lightning" and _whole_setting("world", known, 1) < 2:
        raise InputError(
            "on one device Lightning leaves the loader as it is, whose shuffle takes random numbers that were not "
            f"kept; if it has a seeded generator, say sampler=shuffle; else {RECORD}",
            arguments=("sampler",),
        )
    if sampler in ("random", "shuffle", "sequential") and _whole_setting("world", known, 1) > 1:
        raise InputError(
            "of several ranks, say which library divides the rows among them: sampler=distributed "
            "(DistributedSampler), sampler=accelerate or sampler=lightning",
            arguments=("sampler",),
        )
    if starts_anew and sampler in ("lightning", "distributed", "accelerate") and "resumed_at" not in known:
        raise InputError(
            "the log shows that the run was resumed: say resumed_at=N for each step at which it began a pass anew, or "
            "resumed_at=[] if the batches it had seen were left out",
            arguments=("resumed_at",),
        )


def _plan(sampler: str, known: Mapping[str, SourcedSetting]) -> Plan:
    order, sharing = _DEALT[sampler]
    world = _whole_setting("world", known, 1)
    if _flag("in_order", known):
        order = "sequential"
    if sharing == "shards":
        sharing = "alone" if world == 1 else "dispatch" if _flag("dispatch_batches", known) else "shards"
    rows = _whole_setting("rows", known)
    if rows > SHUFFLE_MOST_ROWS and order != "sequential":
        raise InputError(f"{rows:,} rows are more than are shuffled again ({SHUFFLE_MOST_ROWS:,}); {RECORD}")
    split = _flag("split_batches", known) and world > 1
    batch_size = _whole_setting("batch_size", known)
    if split and batch_size % world:
        raise InputError(f"split_batches divides a batch of {batch_size} among {world} ranks, which does not come out")
    restarts = sampler != "transformers" or _flag("ignore_data_skip", known)
    resumed = _value("resumed_at", known)
    return Plan(
        rows=rows,
        batch_size=batch_size,
        order=order,
        seed=_whole_setting("seed", known, None if order != "sequential" else 0, least=-(2**63), most=2**64),
        sharing=sharing,
        world=world,
        accumulation=_whole_setting("accumulation", known, 1),
        drop_last=_flag("drop_last", known),
        even=_flag("even_batches", known, default=True),
        split=split,
        carries=_value("past_end", known) == "carry",
        resumed_at=tuple(resumed) if restarts and isinstance(resumed, tuple) else (),
    )


def _whole_setting(
    name: str,
    known: Mapping[str, SourcedSetting],
    default: int | None = None,
    *,
    least: int = 1,
    most: int = MAX_ROWS_OF_DATA,
) -> int:
    if name not in known:
        if default is None:
            raise InputError(
                f"{name}=N is needed to draw the rows again, and is not in the run's files", arguments=(name,)
            )
        return default
    value, source = known[name]
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < most:
        raise InputError(
            f"{name} is {shorten(str(value), 40)} ({source}); it is a whole number from {least} to {most - 1}"
        )
    return value


def _value(name: str, known: Mapping[str, SourcedSetting]) -> object:
    return known[name].value if name in known else None


def _flag(name: str, known: Mapping[str, SourcedSetting], *, default: bool = False) -> bool:
    value = _value(name, known)
    return value if isinstance(value, bool) else default


def _first_step(options: SamplerOptions, sampler: str, run: Run | None) -> int:
    """Return the number that the log gives the first step."""
    if options.first_step is not None:
        return options.first_step
    if sampler in ("transformers", "lightning"):
        return 1 if sampler == "transformers" else 0
    first = min((float(series.step[0]) for series in run.series.values() if len(series)), default=None) if run else None
    if first in (0.0, 1.0):
        return int(first)
    raise InputError(
        "the log does not show whether its first step is 0 or 1; say first_step=0 or first_step=1",
        arguments=("first_step",),
    )


def _made_before(known: Mapping[str, SourcedSetting]) -> list[str]:
    """Return what the trainer itself did to the data before rows were numbered."""
    done = [word for word in ("packed", "shuffled") if _flag(word, known)]
    return [f"the trainer {text} the data first: rows are numbered as they were then" for text in done]


def _assumed(sampler: str) -> list[str]:
    """Return what no file can tell, and what the rows rest on."""
    assumed = {
        "transformers": "assumed: no other seed was set between making the Trainer and train(), and the Trainer's own "
        "sampler was used",
        "accelerate": "assumed: the seed is the one that torch had when the loader was prepared, or data_seed",
        "lightning": "assumed: Lightning put in its own DistributedSampler, seeded by seed_everything (0 without)",
        "distributed": "assumed: set_epoch was called with 0, 1, 2, … before each pass",
        "random": "assumed: nothing else drew from the sampler's generator",
        "shuffle": "assumed: nothing else drew from the loader's generator, and workers were not persistent",
    }
    return [assumed[sampler]] if sampler in assumed else []
