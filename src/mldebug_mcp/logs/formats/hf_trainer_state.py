"""`trainer_state.json` of the Hugging Face Trainer: everything is in its `log_history`."""

from __future__ import annotations

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.json_yaml import cut_off, objects_in, parse_document, parse_object
from mldebug_mcp.logs.log_file import LogFile

NAME = "hf_trainer_state"

_HISTORY = regex(r'"log_history"\s*:\s*\[')
_ENDLESS = 2**63 - 1
"""Epochs of a run that is planned by its steps, of data without a length: Python's sys.maxsize."""
_SETTINGS = ("max_steps", "num_train_epochs", "logging_steps", "eval_steps", "save_steps")
"""Not its train_batch_size, which is that of a micro-batch on one device: how many make a step is unknown."""


def matches(file: LogFile) -> bool:
    """A JSON object that holds a log_history. One that ends in its first line and holds none is a record (ms-swift)."""
    head = file.head.lstrip()
    if not head.startswith("{"):
        return False
    if file.plain_name == "trainer_state.json":
        return True
    first = parse_object(head.partition("\n")[0])
    return _HISTORY.search(head) is not None and (first is None or "log_history" in first)


def read(file: LogFile, builder: RunBuilder) -> None:
    """Read the history; from a file that is cut off, the records before the cut."""
    text = file.text()
    try:
        state = parse_document(text)
    except ValueError:
        history = _HISTORY.search(text)
        records = list(objects_in(text, history.end())) if history else []
        if not records:
            raise InputError(f"{file.name}: broken JSON without a single whole record; copy the file again") from None
        builder.note(cut_off(file.path.name, len(records)))
        state = {"log_history": records}
    if not isinstance(state, dict) or not isinstance(state.get("log_history"), list):
        raise InputError(f"{file.name}: no log_history list in it; name the trainer_state.json of a run, or its log")
    records = [record for record in state["log_history"] if isinstance(record, dict)]
    settings = {key: state[key] for key in _SETTINGS if isinstance(state.get(key), (int, float))}
    if settings.get("num_train_epochs") == _ENDLESS:
        del settings["num_train_epochs"]
        records = _of_a_stream(records, builder)
    builder.configure(settings)
    for record in records:
        builder.record(record)


def _of_a_stream(records: list[dict[str, object]], builder: RunBuilder) -> list[dict[str, object]]:
    """Leave out epochs in which no pass ended: they are the share of the planned steps, and tell of no pass."""
    epochs = [epoch for record in records if isinstance(epoch := record.get("epoch"), (int, float))]
    if not epochs or max(epochs) > 1:
        return records
    builder.note("'epoch' is left out: the data has no known length, so it counts the steps that are planned")
    return [{name: value for name, value in record.items() if name != "epoch"} for record in records]
