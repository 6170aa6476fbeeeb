"""What is known of a run's sampler → the plan by which its rows were dealt out, each setting with its source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal, NamedTuple

from mldebug_mcp.diagnose.rows_checked import checked, rows_by_pace
from mldebug_mcp.diagnose.rows_trainer import RECORD, read_arguments, trainer_folder
from mldebug_mcp.errors import InputError
from mldebug_mcp.logs import Run
from mldebug_mcp.rows.plan import Order, Plan, Sharing
from mldebug_mcp.rows.shuffle import MOST_ROWS
from mldebug_mcp.text import counted, shorten

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
MOST = 2**31
MOST_FED = 100_000
"""Rows of a step, of all ranks and micro-batches."""


@dataclass(frozen=True, slots=True)
class SamplerOptions:
    """What a caller says of the sampler; None is not said. See `rows_at` for each."""

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


class Known(NamedTuple):
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

    Args:
        options: What the caller says; it stands before all else.
        place: The log or the folder of the run.
        run: The run, where its log could be read.
        head: The head of its recording; empty where there is none.
        data_rows: How many rows the data set has that the caller named.

    Raises:
        InputError: it cannot be told exactly; the message says why, and what would make it so.
    """
    known = _known(options, place, run, head, data_rows)
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
    agreeing = checked(plan, run, _value("passes", known)) if sampler == "transformers" else []
    told = ", ".join(f"{name} {value.value} ({value.source})" for name, value in known.items())
    basis = [told, *agreeing, *_made_before(known), *_assumed(sampler)]
    return Settled(plan, _first_step(options, sampler, run), basis)


def _known(
    options: SamplerOptions, place: Path, run: Run | None, head: Mapping[str, object], data_rows: int | None
) -> dict[str, Known]:
    """Return the settings, what is believed most first."""
    known: dict[str, Known] = {}
    said = {one.name: getattr(options, one.name) for one in fields(options) if one.name not in ("first_step",)}
    _add(known, said.items(), "given")
    folder = trainer_folder(place) if _value("sampler", known) in (None, "transformers") else None
    if folder is not None:
        _add(known, {"sampler": "transformers", **read_arguments(folder)}.items(), "training_args.bin")
    told = head.get("sampler")
    told = told if isinstance(told, Mapping) else {}
    sampler = {"sampler": _OF_CLASS.get(str(told.get("kind", "")).rpartition(".")[2])}
    sampler |= {name: told.get(name) for name in _IN_A_HEAD}
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
    {one.name for one in fields(SamplerOptions)}
    | {"even_batches", "in_order", "ignore_data_skip", "passes", "packed", "shuffled"}
)


def _add(known: dict[str, Known], values: Iterable[tuple[str, object]], source: str) -> None:
    for name, value in values:
        if value is not None and name in _NAMES and name not in known:
            known[name] = Known(value, shorten(source, 80))


def _require_certain(sampler: str, known: Mapping[str, Known], run: Run | None) -> None:
    """Refuse what random numbers decide that nobody kept."""
    starts_anew = "resumed_at" in known or (run is not None and len(run.segments) > 1)
    if sampler in ("random", "shuffle") and starts_anew:
        raise InputError(f"the run was resumed, and what its generator gave afterwards depends on the script; {RECORD}")
    if sampler == "lightning" and _whole("world", known, 1) < 2:
        raise InputError(
            "on one device Lightning leaves the loader as it is, whose shuffle takes random numbers that were not "
            f"kept; if it has a seeded generator, say sampler='shuffle'; else {RECORD}"
        )
    if sampler in ("random", "shuffle", "sequential") and _whole("world", known, 1) > 1:
        raise InputError(
            "of several ranks, say which library divides the rows among them: sampler 'distributed' "
            "(DistributedSampler), 'accelerate' or 'lightning'"
        )
    if starts_anew and sampler in ("lightning", "distributed", "accelerate") and "resumed_at" not in known:
        raise InputError(
            "the log shows that the run was resumed: say resumed_at=[] if the batches it had seen were left out, or "
            "the steps at which it began a pass anew"
        )


def _plan(sampler: str, known: Mapping[str, Known]) -> Plan:
    order, sharing = _DEALT[sampler]
    world = _whole("world", known, 1)
    if _flag("in_order", known):
        order = "sequential"
    if sharing == "shards":
        sharing = "alone" if world == 1 else "dispatch" if _flag("dispatch_batches", known) else "shards"
    rows = _whole("rows", known)
    if rows > MOST_ROWS and order != "sequential":
        raise InputError(f"{rows:,} rows are more than are shuffled again ({MOST_ROWS:,}); {RECORD}")
    split = _flag("split_batches", known) and world > 1
    batch_size = _whole("batch_size", known)
    if split and batch_size % world:
        raise InputError(f"split_batches divides a batch of {batch_size} among {world} ranks, which does not come out")
    restarts = sampler != "transformers" or _flag("ignore_data_skip", known)
    resumed = _value("resumed_at", known)
    return Plan(
        rows=rows,
        batch_size=batch_size,
        order=order,
        seed=_whole("seed", known, None if order != "sequential" else 0, least=-(2**63), most=2**64),
        sharing=sharing,
        world=world,
        accumulation=_whole("accumulation", known, 1),
        drop_last=_flag("drop_last", known),
        even=_flag("even_batches", known, default=True),
        split=split,
        carries=_value("past_end", known) == "carry",
        resumed_at=tuple(resumed) if restarts and isinstance(resumed, tuple) else (),
    )


def _whole(
    name: str, known: Mapping[str, Known], default: int | None = None, *, least: int = 1, most: int = MOST
) -> int:
    if name not in known:
        if default is None:
            raise InputError(f"{name} is needed to draw the rows again, and is not in the run's files; say {name}")
        return default
    value, source = known[name]
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < most:
        raise InputError(
            f"{name} is {shorten(str(value), 40)} ({source}); it is a whole number from {least} to {most - 1}"
        )
    return value


def _value(name: str, known: Mapping[str, Known]) -> object:
    return known[name].value if name in known else None


def _flag(name: str, known: Mapping[str, Known], *, default: bool = False) -> bool:
    value = _value(name, known)
    return value if isinstance(value, bool) else default


def _first_step(options: SamplerOptions, sampler: str, run: Run | None) -> int:
    """Return the number that the log gives the first step."""
    if options.first_step is not None:
        return options.first_step
    if sampler in ("transformers", "lightning"):
        return 1 if sampler == "transformers" else 0
    first = min((float(one.step[0]) for one in run.series.values() if len(one)), default=None) if run else None
    if first in (0.0, 1.0):
        return int(first)
    raise InputError("the log does not show whether its first step is 0 or 1; say first_step=0 or first_step=1")


def _made_before(known: Mapping[str, Known]) -> list[str]:
    """Return what the trainer itself did to the data before rows were numbered."""
    done = [word for word in ("packed", "shuffled") if _flag(word, known)]
    return [f"the trainer {one} the data first: rows are numbered as they were then" for one in done]


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
