"""The verb `rows_at`: which rows were in the batch of a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mldebug_mcp.access import OutsideError, is_file, is_folder, require
from mldebug_mcp.diagnose.next_call import is_sendable
from mldebug_mcp.diagnose.rows_data import Data, Seen, look_up, rows_of_keys
from mldebug_mcp.diagnose.rows_fed import Fed, fed_at
from mldebug_mcp.diagnose.rows_settings import PastEnd, Sampler, SamplerOptions
from mldebug_mcp.errors import InputError
from mldebug_mcp.models import Call
from mldebug_mcp.models.rows import FedRow, RowsAt
from mldebug_mcp.paths import expanded
from mldebug_mcp.rows.recording import RowId
from mldebug_mcp.text import counted, shorten

MOST_BEFORE = 5
LAST_STEP = 2**53


def rows_at(
    path: str | Path,
    step: int,
    data: str | Path | None = None,
    tokenizer: str | Path | None = None,
    *,
    purpose: str = "auto",
    sampler: Sampler | None = None,
    seed: int | None = None,
    batch_size: int | None = None,
    accumulation: int | None = None,
    world: int | None = None,
    rows: int | None = None,
    drop_last: bool | None = None,
    split_batches: bool | None = None,
    dispatch_batches: bool | None = None,
    past_end: PastEnd | None = None,
    first_step: int | None = None,
    resumed_at: Sequence[int] | None = None,
) -> RowsAt:
    """Say which rows of the data were in the batch of a step: as they were recorded, else drawn again from the seed.

    Args:
        path: The log or the folder of a run, or a recording.
        step: The step, as the log numbers it.
        data: The training data as the sampler saw them, in any form that `inspect_batch` reads, to show the rows.
        tokenizer: The tokenizer's folder or file, to decode them.
        purpose: What the data are for, as `inspect_batch` takes it.
        sampler: How rows were sampled, where the run's files do not say: "transformers", "accelerate", "lightning",
            "distributed", "random", "shuffle" or "sequential".
        seed: What the sampler was seeded with.
        batch_size: Rows of a micro-batch of one rank.
        accumulation: Micro-batches of a step.
        world: Ranks that rows are divided among.
        rows: Rows of the data, as the sampler counts them.
        drop_last: Whether the loader leaves out a last, smaller batch.
        split_batches: Whether Accelerate splits each batch among the ranks.
        dispatch_batches: Whether Accelerate's first rank reads for all.
        past_end: What becomes of micro-batches at the end of a pass that make no whole step: "step" or "carry".
        first_step: The number that the log gives the first step: 0 or 1.
        resumed_at: Steps after which a resumed run began its pass anew (`ignore_data_skip`).

    Returns:
        The rows, exactly: the steps in which they were before, and with `data` what they hold and what is odd in them.

    Raises:
        InputError: the rows cannot be told exactly; the message says why, and what would make it so.
        MissingExtraError: the data or the tokenizer need a package that is not installed.
    """
    place = expanded(path)
    require(place)
    if not is_file(place) and not is_folder(place):
        raise InputError(f"{shorten(str(path), 200)}: no such file or folder; name the log or the folder of a run")
    if isinstance(step, bool) or not 0 <= step < LAST_STEP:
        raise InputError(f"step is {step}; a step is a whole number from 0 to {LAST_STEP - 1}")
    resumed = None if resumed_at is None else tuple(sorted(resumed_at))
    options = SamplerOptions(
        sampler, seed, batch_size, accumulation, world, rows, drop_last, split_batches, dispatch_batches, past_end,
        first_step, resumed,
    )  # fmt: skip
    named = None if data is None else Data.of(data, tokenizer, purpose)
    fed = fed_at(place, step, options, None if named is None else expanded(named.path))
    if named is not None:
        fed = _with_numbers(fed, named)
    seen = None if named is None else _seen(fed, named)
    return _answer(str(path), step, fed, seen, named)


def _with_numbers(fed: Fed, data: Data) -> Fed:
    """Return what was recorded as keys of tokens with the numbers of those rows in the data."""
    keys = {row for row in (*fed.rows, *fed.around) if isinstance(row, str)}
    if not keys:
        return fed
    numbers = rows_of_keys(data, keys)
    missing = sum(row not in numbers for row in fed.rows)
    if missing:
        fed.notes.append(
            f"{counted(missing, 'row')} of the step not found in the data by their tokens: name the data as they were "
            "tokenized for this run, with the tokenizer"
        )
    return replace(
        fed,
        batches=[
            one.model_copy(update={"rows": [numbers.get(str(row), row) for row in one.rows]}) for one in fed.batches
        ],
        around=[numbers.get(str(row), row) for row in fed.around],
        before={numbers.get(str(row), row): steps for row, steps in fed.before.items()},
    )


def _seen(fed: Fed, data: Data) -> Seen | None:
    """Return what the data show of the rows; where they cannot be shown, the notes say why: the rows stay true."""
    own = [row for row in fed.rows if isinstance(row, int)]
    try:
        return look_up(data, own, [row for row in fed.around if isinstance(row, int)]) if own else None
    except OutsideError:
        raise
    except InputError as error:
        fed.notes.append(f"the rows could not be shown: {error}")
        return None


def _answer(path: str, step: int, fed: Fed, seen: Seen | None, data: Data | None) -> RowsAt:
    odd = list(seen.odd) if seen is not None else []
    rows = sorted(fed.rows, key=lambda row: odd.index(row) if row in odd else len(odd))
    return RowsAt(
        path=path,
        step=step,
        source="recorded" if fed.recorded else "reconstructed",
        row_count=sum(len(one.rows) for one in fed.batches),
        batches=fed.batches,
        rows=[_row(row, fed, seen) for row in rows],
        here=None if seen is None else seen.here,
        around=None if seen is None else seen.around,
        findings=[] if seen is None else list(seen.findings),
        basis=fed.basis,
        next_step=_next(path, data),
        notes=[*fed.notes, *(() if seen is None else seen.notes)],
    )


def _row(row: RowId, fed: Fed, seen: Seen | None) -> FedRow:
    view = seen.views.get(row) if seen is not None and isinstance(row, int) else None
    return FedRow(
        row=row,
        before=fed.before.get(row, [])[-MOST_BEFORE:],
        odd=seen.odd.get(row, []) if seen is not None and isinstance(row, int) else [],
        tokens=None if view is None else view.tokens,
        trained=None if view is None else view.trained,
        text="" if view is None else view.text,
    )


def _next(path: str, data: Data | None) -> Call | None:
    if data is not None and is_sendable(data.path):
        return Call(tool="inspect_batch", arguments={"path": data.path}, why="is the rest of the data sound?")
    if is_sendable(path):
        return Call(tool="explain", arguments={"id": "bad_batch"}, why="how a bad batch is told from a hot rate")
    return None
