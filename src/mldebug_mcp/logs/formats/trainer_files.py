"""Files that trainers write by themselves, each of a form of its own: most of them JSON."""

from __future__ import annotations

import io
import math
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.lib import format as npy

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import regex
from mldebug_mcp.core.text import shorten
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.json_yaml import cut_off, objects_in, parse_document, parse_object
from mldebug_mcp.logs.log_file import LogFile
from mldebug_mcp.logs.names.lexicon import PHASES
from mldebug_mcp.logs.names.words import words_in
from mldebug_mcp.logs.numbers import parse_number, to_number

if TYPE_CHECKING:
    import zipfile

_HISTORY = regex(r'"log_history"\s*:\s*\[', needs='"log_history"')
_ENDLESS = 2**63 - 1
"""Epochs of a run that is planned by its steps, of data without a length: Python's sys.maxsize."""
_SETTINGS = ("max_steps", "num_train_epochs", "logging_steps", "eval_steps", "save_steps")
"""Not its train_batch_size, which is that of a micro-batch on one device: how many make a step is unknown."""


class TrainerStateReader:
    """`trainer_state.json` of the Hugging Face Trainer: everything is in its `log_history`."""

    NAME = "hf_trainer_state"

    @staticmethod
    def matches(file: LogFile) -> bool:
        """A JSON object with a log_history. One that ends in its first line and has none is a record (ms-swift)."""
        head = file.head.lstrip()
        if not head.startswith("{"):
            return False
        if file.plain_name == "trainer_state.json":
            return True
        first = parse_object(head.partition("\n")[0])
        return _HISTORY.search(head) is not None and (first is None or "log_history" in first)

    @staticmethod
    def read(file: LogFile, builder: RunBuilder) -> None:
        """Read the history; from a file that is cut off, the records before the cut."""
        text = file.text()
        try:
            state = parse_document(text)
        except ValueError:
            history = _HISTORY.search(text)
            records = list(objects_in(text, history.end())) if history else []
            if not records:
                raise InputError(
                    f"{file.name}: broken JSON without a single whole record; copy the file again"
                ) from None
            builder.note(cut_off(file.path.name, len(records)))
            state = {"log_history": records}
        if not isinstance(state, dict) or not isinstance(state.get("log_history"), list):
            raise InputError(
                f"{file.name}: no log_history list in it; name the trainer_state.json of a run, or its log"
            )
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


_SET = regex(r"(?P<kind>learn|test)(?P<number>\d*)")


class CatboostReader:
    """CatBoost's `catboost_training.json`: every measure of every set, by iteration, and which way each is better.

    The tables and event files next to it hold the same numbers, rounded or cut.
    """

    NAME = "catboost"

    @staticmethod
    def matches(file: LogFile) -> bool:
        """It has CatBoost's name, or its head lists measures of learning and of tests."""
        return file.head.lstrip().startswith("{") and '"learn_metrics"' in file.head and '"test_metrics"' in file.head

    @staticmethod
    def read(file: LogFile, builder: RunBuilder) -> None:
        """Read the iterations. A training that runs, or was killed, leaves the document open."""
        text = file.text()
        try:
            document = parse_document(text)
            meta, rows = (
                (document.get("meta"), document.get("iterations")) if isinstance(document, dict) else (None, None)
            )
        except ValueError:
            start = text.find("{", text.find("{") + 1)
            found = list(objects_in(text, max(start, 0)))
            meta, rows = (found[0], found[1:]) if found else (None, None)
            builder.note("the document is not closed: the training still runs, or it was killed")
        if not isinstance(meta, Mapping) or not isinstance(rows, list):
            raise InputError(f"{file.name}: no iterations in it; name another file of CatBoost's train_dir")
        names = {key: [_name(metric) for metric in _list(meta.get(f"{key}_metrics"))] for key in ("learn", "test")}
        for row in rows:
            if isinstance(row, Mapping):
                builder.record(dict(_numbers(row, names)))
        builder.configure({"booster": "catboost", "iterations": meta.get("iteration_count")}, CatboostReader.NAME)


def _numbers(row: Mapping[str, object], names: Mapping[str, list[str]]) -> Iterator[tuple[str, object]]:
    yield "iteration", row.get("iteration")
    for key, values in row.items():
        of_set = _SET.fullmatch(key)
        if of_set is None:
            continue
        part = "train" if of_set["kind"] == "learn" else f"test{of_set['number']}"
        for name, value in zip(names[of_set["kind"]], _list(values), strict=False):
            if name and to_number(value) is not None:
                yield f"{part}-{name}", value


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _name(measure: object) -> str:
    return str(measure.get("name", "")) if isinstance(measure, Mapping) else ""


class GoldenValuesReader:
    """Golden values of Megatron-LM's functional tests: metric → {start_step, end_step, step_interval, values}."""

    NAME = "golden_values"

    @staticmethod
    def matches(file: LogFile) -> bool:
        """A JSON object whose first entries hold `step_interval` and `values`."""
        head = file.head[:4096]
        return head.lstrip().startswith("{") and '"step_interval"' in head and '"values"' in head

    @staticmethod
    def read(file: LogFile, builder: RunBuilder) -> None:
        """Read each metric's values; the steps are the keys, or follow from the interval where there is a list."""
        try:
            document = parse_document(file.text())
        except ValueError as error:
            raise InputError(
                f"{file.name}: golden values that are not valid JSON ({error}); copy the file again"
            ) from None
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


_MODE = regex(r'"mode": ?"(?:train|val)"', needs='"mode"')


class MmcvReader:
    """`*.log.json` of mmcv: records of the modes train and val, counted inside each epoch."""

    NAME = "mmcv"

    @staticmethod
    def matches(file: LogFile) -> bool:
        """JSON lines with a mode, an epoch and an iteration."""
        return file.head.lstrip().startswith("{") and _MODE.search(file.head) is not None and '"iter"' in file.head

    @staticmethod
    def read(file: LogFile, builder: RunBuilder) -> None:
        """Read the records. What a validation reports is an evaluation metric; its own count is not a step."""
        from mldebug_mcp.logs.documents import objects_by_line

        for record in objects_by_line(file, builder):
            if record.get("mode") == "val":
                builder.record(
                    {
                        name
                        if name == "epoch" or not PHASES.keys().isdisjoint(words_in(name))
                        else f"eval_{name}": value
                        for name, value in record.items()
                        if name not in ("iter", "lr")
                    }
                )
            elif "mode" in record:
                builder.record(record)
            else:
                builder.configure({name: value for name, value in record.items() if isinstance(value, (int, float))})


_TRAINING = {"iter", "step", "data_time", "time"}


class MmengineReader:
    """JSON lines of MMEngine (`vis_data/*.json`, `scalars.json`): records of training and of validation in one file.

    A validation record has no `iter`. Its `step` is the iteration in a loop that counts iterations, but the epoch in a
    loop that counts epochs; there the validation is at the training step before it.
    """

    NAME = "mmengine"

    @staticmethod
    def matches(file: LogFile) -> bool:
        """JSON lines whose first has an iteration, a step and the times of both."""
        first = file.head.lstrip().partition("\n")[0]
        if not first.startswith("{") or not all(f'"{name}"' in first for name in _TRAINING):
            return False
        record = parse_object(first)
        return record is not None and record.keys() >= _TRAINING and "mode" not in record

    @staticmethod
    def read(file: LogFile, builder: RunBuilder) -> None:
        """Read the records. What a validation reports is an evaluation metric; times are of one step."""
        from mldebug_mcp.logs.documents import objects_by_line

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


_STEPS = "timesteps"
_MEANS = {"results": "eval/mean_reward", "ep_lengths": "eval/mean_ep_length", "successes": "eval/success_rate"}
"""Arrays, and what Stable-Baselines3 calls their means in its logs."""
_MAX_BYTES = 64 * 1024 * 1024
"""Bytes of one array: a million evaluations of eight episodes."""
_MAX_HEADER = 4096
_MAX_ENTRIES = 100
_NUMBERS = "buif"


class EvaluationsReader:
    """`evaluations.npz` of Stable-Baselines3's EvalCallback: what each evaluation of the policy earned.

    Arrays of shape (evaluations,), `timesteps`, and (evaluations, episodes), `results`, `ep_lengths` and `successes`.
    Source: stable_baselines3/common/callbacks.py. They are read without numpy's own loader: what an entry of the
    archive and the header of an array claim is checked before anything is expanded, and objects are refused.
    """

    NAME = "sb3_evaluations"

    @staticmethod
    def read(file: LogFile, builder: RunBuilder) -> None:
        """Read the evaluations."""
        with file.stream() as stream:
            arrays = _arrays(stream, file.name)
        steps = arrays.get(_STEPS)
        means = {_MEANS[key]: _mean(array) for key, array in arrays.items() if key in _MEANS}
        if steps is None or steps.ndim != 1 or not means:
            raise InputError(
                f"{file.name}: no evaluations of Stable-Baselines3 in it (the arrays {_STEPS} and results); "
                "name a log of the training"
            )
        count = min(len(steps), *map(len, means.values()))
        if count < max(len(steps), *map(len, means.values())):
            builder.note("its arrays are not equally long: evaluations that one of them lacks are left out")
        builder.columns({_STEPS: steps[:count]} | {name: mean[:count] for name, mean in means.items()}, {})


def _mean(array: Floats) -> Floats:
    """Return the mean over the episodes of each evaluation, shape (evaluations,)."""
    return array.reshape(len(array), -1).mean(axis=1) if array.size else np.empty(0)


def _arrays(stream: BinaryIO, name: str) -> dict[str, Floats]:
    import zipfile  # of the formats here, one alone is an archive

    try:
        with zipfile.ZipFile(stream) as archive:
            entries = archive.infolist()[:_MAX_ENTRIES]
            by_name = {entry.filename.removesuffix(".npy"): entry for entry in entries}
            return {key: _array(archive, by_name[key], name) for key in (_STEPS, *_MEANS) if key in by_name}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError) as error:
        raise InputError(f"{name}: a damaged archive ({shorten(str(error), 120)}); copy it again, whole") from None


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> Floats:
    """Return an array of numbers as floats; raises InputError if it holds anything else or more than it should."""
    what = f"{name}: {shorten(entry.filename, 60)}"
    if entry.file_size > _MAX_BYTES:
        raise InputError(
            f"{what} claims {entry.file_size:,} bytes, more than {_MAX_BYTES:,}; name a log of the training"
        )
    content = io.BytesIO(archive.read(entry))  # no more than the size that it claims
    try:
        version = npy.read_magic(content)
        header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, by_columns, kind = header(content, max_header_size=_MAX_HEADER)
    except ValueError as error:
        raise InputError(f"{what} is not an array ({shorten(str(error), 120)}); copy the file again") from None
    data = content.read()
    if kind.kind not in _NUMBERS or kind.hasobject:
        raise InputError(f"{what} holds {shorten(str(kind), 60)}, not numbers; name a log of the training")
    if math.prod(shape) * kind.itemsize != len(data) or not shape:
        raise InputError(f"{what} is not as long as its header says; copy the file again")
    return np.frombuffer(data, dtype=kind).reshape(shape, order="F" if by_columns else "C").astype(np.float64)
