"""JSON lines of MMEngine (`vis_data/*.json`, `scalars.json`): records of training and of validation in one file.

A validation record has no `iter`. Its `step` is the iteration in a loop that counts iterations, but the epoch in a loop
that counts epochs; there the validation is at the training step before it.
"""

from __future__ import annotations

from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.documents import objects_by_line
from mldebug_mcp.logs.json_yaml import parse_object
from mldebug_mcp.logs.log_file import LogFile
from mldebug_mcp.logs.numbers import to_number

NAME = "mmengine"

_TRAINING = {"iter", "step", "data_time", "time"}


def matches(file: LogFile) -> bool:
    """JSON lines whose first has an iteration, a step and the times of both."""
    first = file.head.lstrip().partition("\n")[0]
    if not first.startswith("{") or not all(f'"{name}"' in first for name in _TRAINING):
        return False
    record = parse_object(first)
    return record is not None and record.keys() >= _TRAINING and "mode" not in record


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read the records. What a validation reports is an evaluation metric; times are of one step."""
    last = 0.0
    by_epoch = False
    for record in objects_by_line(file, builder):
        step = to_number(record.get("step"))
        times = {"time": "step_time", "iter": ""}
        if "iter" in record:
            last = last if step is None else step
            named = {times.get(name, name): value for name, value in record.items()}
        else:
            by_epoch = by_epoch or (step is not None and step < last)
            named = {f"eval_{name}": value for name, value in record.items() if name != "step"}
            named["step"] = last if step is None or step < last else step
        builder.record({name: value for name, value in named.items() if name})
    if by_epoch:
        builder.note("validations count epochs: each is at the training step before it")
