"""`*.log.json` of mmcv: records of the modes train and val, counted inside each epoch."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.decoding.json_values import parse_object
from mldebug_mcp.logs.source import LogFile

NAME = "mmcv"

_MODE = re.compile(r'"mode": ?"(?:train|val)"')


def matches(file: LogFile) -> bool:
    """JSON lines with a mode, an epoch and an iteration."""
    return file.head.lstrip().startswith("{") and _MODE.search(file.head) is not None and '"iter"' in file.head


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read the records. What a validation reports is an evaluation metric; its own iteration count is no step."""
    for record in objects(file, builder):
        if record.get("mode") == "val":
            builder.record(
                {
                    name if name == "epoch" else f"eval_{name}": value
                    for name, value in record.items()
                    if name not in ("iter", "lr")
                }
            )
        elif "mode" in record:
            builder.record(record)
        else:
            builder.configure({name: value for name, value in record.items() if isinstance(value, (int, float))})


def objects(file: LogFile, builder: RunBuilder) -> Iterator[dict[str, object]]:
    """Yield the object of each line; the lines that are none are counted in the notes."""
    broken = 0
    for line in file.lines():
        if not line.strip():
            continue
        record = parse_object(line)
        if record is not None:
            yield record
        else:
            broken += 1
    if broken:
        builder.note(f"skipped {broken} line(s) that are not JSON objects")
