"""Any sequence of records, printed in any of these shapes, reads back equal."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mldebug_mcp.logs import read_run

Record = dict[str, float]

NUMBERS = st.one_of(
    st.floats(-1e6, 1e6).map(lambda value: float(f"{value:.6g}")), st.just(math.nan), st.just(math.inf), st.just(0.0)
)
RECORDS = st.lists(
    st.fixed_dictionaries(
        {"loss": NUMBERS, "grad_norm": NUMBERS, "lr": st.floats(1e-9, 1).map(lambda x: float(f"{x:.4g}"))}
    ),
    min_size=1,
    max_size=40,
)


def _pairs(separator: str, between: str) -> Callable[[int, Record], str]:
    def line(step: int, record: Record) -> str:
        return between.join(
            [f"step{separator}{step}", *(f"{name}{separator}{value}" for name, value in record.items())]
        )

    return line


def _box(step: int, record: Record) -> str:
    rows = [("total_timesteps", step), *record.items()]
    rule = "-" * 40
    return "\n".join([rule, *(f"| {name:<18} | {value!r:<15} |" for name, value in rows), rule])


def _bar(step: int, record: Record) -> str:
    metrics = ", ".join(f"{name}={value}" for name, value in record.items())
    return f"train:  5%|▌    | {step}/100000 [00:10<01:00,  1.50it/s, {metrics}]"


def _block(step: int, record: Record) -> str:
    return "\n".join([f"[step={step}/100000]", *(f"    train/{name}={value}" for name, value in record.items())])


SHAPES: dict[str, Callable[[int, Record], str]] = {
    "colons": _pairs(": ", ", "),
    "equals": _pairs("=", " "),
    "pipes": _pairs(" ", " | "),
    "dashes": _pairs(":", " - "),
    "logged": lambda step, record: (
        f"2026-01-31 12:00:0{step % 10},123 - root - INFO - {_pairs(': ', '  ')(step, record)}"
    ),
    "rank": lambda step, record: f"[rank3]: {_pairs(': ', ' ')(step, record)}",
    "dict": lambda step, record: repr({"step": step, **record}),
    "strings": lambda step, record: repr({name: str(value) for name, value in {"step": step, **record}.items()}),
    "box": _box,
    "bar": _bar,
    "block": _block,
}


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=25, deadline=None)
@given(records=RECORDS, interval=st.sampled_from([1, 7, 100]))
def test_what_is_printed_reads_back(shape: str, records: list[Record], interval: int) -> None:
    lines = [SHAPES[shape](interval * index, record) for index, record in enumerate(records, start=1)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.out"
        path.write_text("Some script starts.\n" + "\n".join(lines) + "\nDone.\n")
        run = read_run(path)
    assert run.records == len(records)
    for name, canonical in (("loss", "loss"), ("grad_norm", "grad_norm"), ("lr", "learning_rate")):
        np.testing.assert_array_equal(run[canonical].step, [interval * index for index in range(1, len(records) + 1)])
        np.testing.assert_array_equal(run[canonical].value, [record[name] for record in records])
