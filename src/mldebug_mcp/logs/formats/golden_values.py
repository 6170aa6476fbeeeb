"""Golden values of Megatron-LM's functional tests: metric → {start_step, end_step, step_interval, values}."""

from __future__ import annotations

from collections import defaultdict

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.json_yaml import parse_document
from mldebug_mcp.logs.log_file import LogFile
from mldebug_mcp.logs.numbers import parse_number, to_number

NAME = "golden_values"


def matches(file: LogFile) -> bool:
    """A JSON object whose first entries hold `step_interval` and `values`."""
    head = file.head[:4096]
    return head.lstrip().startswith("{") and '"step_interval"' in head and '"values"' in head


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read each metric's values; the steps are the keys, or follow from the interval where the values are a list."""
    try:
        document = parse_document(file.text())
    except ValueError as error:
        raise InputError(f"{file.name}: golden values that are not valid JSON ({error}); copy the file again") from None
    records: dict[float, dict[str, object]] = defaultdict(dict)
    for metric, entry in document.items() if isinstance(document, dict) else ():
        if not isinstance(entry, dict):
            continue
        values, interval = entry.get("values"), to_number(entry.get("step_interval")) or 1.0
        if isinstance(values, dict):
            for step, value in values.items():
                at = parse_number(str(step))
                if at is not None:
                    records[at][metric] = value
        elif isinstance(values, list):
            start = to_number(entry.get("start_step")) or 0.0
            for index, value in enumerate(values):
                records[start + interval * index][metric] = value
    for step in sorted(records):
        builder.record({"step": step, **records[step]})
