"""`*.log.json` of mmcv: records of the modes train and val, counted inside each epoch."""

from __future__ import annotations

from mldebug_mcp.core.lazy import regex
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.documents import objects_by_line
from mldebug_mcp.logs.log_file import LogFile
from mldebug_mcp.logs.names.lexicon import PHASES
from mldebug_mcp.logs.names.words import words_in

NAME = "mmcv"

_MODE = regex(r'"mode": ?"(?:train|val)"')


def matches(file: LogFile) -> bool:
    """JSON lines with a mode, an epoch and an iteration."""
    return file.head.lstrip().startswith("{") and _MODE.search(file.head) is not None and '"iter"' in file.head


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read the records. What a validation reports is an evaluation metric; its own iteration count is not a step."""
    for record in objects_by_line(file, builder):
        if record.get("mode") == "val":
            builder.record(
                {
                    name if name == "epoch" or not PHASES.keys().isdisjoint(words_in(name)) else f"eval_{name}": value
                    for name, value in record.items()
                    if name not in ("iter", "lr")
                }
            )
        elif "mode" in record:
            builder.record(record)
        else:
            builder.configure({name: value for name, value in record.items() if isinstance(value, (int, float))})
