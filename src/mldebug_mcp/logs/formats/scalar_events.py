"""JSON lines of events, some of them scalars: ClearML's offline `metrics.jsonl` and Comet's `messages.json`.

A line is one event, or a list of events. ClearML splits the name of a metric into `metric` and `variant`, and writes
NaN and infinities as 0. Comet wraps each event into a `payload`.

Source: written by clearml 2.1 and comet_ml 3.58.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import shorten
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.formats.long_columns import LongTable
from mldebug_mcp.logs.json_yaml import parse_json
from mldebug_mcp.logs.log_file import LogFile
from mldebug_mcp.logs.numbers import to_number

NAME = "scalar events"

_MARKS = regex(r'"type": ?"(?:training_stats_scalar|metric_msg|parameter_msg|installed_packages)"')
_OWN = ("sys.", ":monitor:")
"""How the names begin of what the trackers measure of the machine."""


def matches(file: LogFile) -> bool:
    """Its lines are events of ClearML or Comet."""
    return file.head.lstrip()[:1] in ("{", "[") and _MARKS.search(file.head) is not None


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read the scalars and the parameters among the events; the others are passed over."""
    table, broken, zeros = LongTable(), 0, 0
    parameters: dict[str, object] = {}
    for line in file.lines():
        if not line.strip():
            continue
        try:
            events = parse_json(line)
        except ValueError:
            broken += 1
            continue
        for event in _each(events):
            payload = event.get("payload")
            kind = event.get("type")
            if kind == "training_stats_scalar":
                zeros += _take(event, _names(event, "metric", "variant"), "value", "iter", table)
            elif kind == "metric_msg" and isinstance(payload, Mapping) and isinstance(payload.get("metric"), Mapping):
                metric = payload["metric"]
                _take(metric, _names(metric, "metricName"), "metricValue", "step", table)
            elif kind == "parameter_msg" and isinstance(payload, Mapping):
                parameters |= _parameter(payload.get("param"))
    table.give(builder)
    builder.configure(parameters, NAME)
    if zeros:
        builder.note(
            f"{zeros} value(s) are exactly 0: ClearML writes NaN and infinities as 0 in this file, so that these may "
            "have been NaN; its console log says so"
        )
    if broken:
        builder.note(f"{shorten(file.path.name, 80)}: skipped {broken} line(s) that are not JSON")


def _each(events: object) -> Iterator[Mapping[str, object]]:
    yield from (event for event in (events if isinstance(events, list) else [events]) if isinstance(event, Mapping))


def _names(event: Mapping[str, object], *keys: str) -> str:
    return "/".join(text for key in keys if isinstance(text := event.get(key), str) and text)


def _take(event: Mapping[str, object], name: str, value_key: str, step_key: str, table: LongTable) -> bool:
    """Take a scalar; return whether its value is exactly 0, as that of a number that ClearML could not write."""
    value, step = to_number(event.get(value_key)), to_number(event.get(step_key))
    if not name or value is None or step is None or name.startswith(_OWN):
        return False
    table.add(name, step, value)
    return value == 0


def _parameter(parameter: object) -> dict[str, object]:
    """Return a parameter that the script logged; those that Comet finds by itself are of the process."""
    if not isinstance(parameter, Mapping) or parameter.get("source") in ("cli", "auto-logged"):
        return {}
    name = parameter.get("paramName")
    return {name: parameter.get("paramValue")} if isinstance(name, str) else {}
