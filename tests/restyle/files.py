"""Forms that are a file or a folder of their own, as loggers and trackers write them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import polars as pl

from tests.restyle.lines import Record

Records = Sequence[Record]


def _columns(records: Records) -> list[str]:
    return list(dict.fromkeys(cell.name for record in records for cell in record.cells))


def _table(records: Records, separator: str = ",", pad: int = 0) -> str:
    columns = _columns(records)
    rows = [columns]
    for record in records:
        texts = {cell.name: cell.text for cell in record.cells}
        rows.append([texts.get(column, "") for column in columns])
    return "".join(separator.join(text.rjust(pad) for text in row) + "\n" for row in rows)


def _csv(records: Records, folder: Path) -> Path:
    return _put(folder / "metrics.csv", _table(records))


def _tsv(records: Records, folder: Path) -> Path:
    return _put(folder / "log.tsv", _table(records, "\t"))


def _padded(records: Records, folder: Path) -> Path:
    return _put(folder / "results.csv", _table(records, ",", 23))


def _two(records: Records, folder: Path) -> Path:
    _put(folder / "train.csv", _table([record for record in records if record.phase != "eval"]))
    _put(folder / "eval.csv", _table([record for record in records if record.phase == "eval"]))
    return folder


def _long(records: Records, folder: Path) -> Path:
    lines = [f"{records[0].axis[0].name},metric,value"]
    lines += [f"{record.axis[0].text},{cell.name},{cell.text}" for record in records for cell in record.metrics]
    return _put(folder / "metrics.csv", "\n".join(lines) + "\n")


def _objects(records: Records) -> list[dict[str, object]]:
    return [{cell.name: cell.text if cell.word else _number(cell.text) for cell in record.cells} for record in records]


def _number(text: str) -> float | int | str:
    if "/" in text:
        return text
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _array(records: Records, folder: Path) -> Path:
    return _put(folder / "metrics.json", json.dumps(_objects(records), indent=1))


def _by_column(records: Records, folder: Path) -> Path:
    objects = _objects(records)
    full = {name: [row[name] for row in objects if name in row] for name in _columns(records)}
    return _put(folder / "history.json", json.dumps(full))


def _without_repeats(records: Records) -> list[Record]:
    """What remains where the state of a checkpoint includes the log: later records at a step replace earlier ones."""
    latest = {(record.step, record.phase): record for record in records}
    return sorted(latest.values(), key=lambda record: record.step)


def _trainer_state(records: Records, folder: Path) -> Path:
    records = _without_repeats(records)
    state = {
        "epoch": float(records[-1].axis[1].text), "global_step": records[-1].step, "is_world_process_zero": True,
        "log_history": _objects(records), "logging_steps": 1, "max_steps": records[-1].of,
    }  # fmt: skip
    return _put(folder / "trainer_state.json", json.dumps(state, indent=2))


def _exported(records: Records, folder: Path) -> Path:
    """W&B's download of a chart with several metrics."""
    names = list(dict.fromkeys(cell.name for record in records for cell in record.metrics))
    heading = ["Step", *(f"clean-sun-12 - {name}{end}" for name in names for end in ("", "__MIN", "__MAX"))]
    rows: dict[str, dict[str, str]] = {}
    for record in _without_repeats(records):
        rows.setdefault(record.axis[0].text, {}).update({cell.name: cell.text for cell in record.metrics})
    lines = [",".join(f'"{name}"' for name in heading)]
    for step, texts in rows.items():
        lines.append(",".join([f'"{step}"', *(f'"{texts.get(name, "")}"' for name in names for _ in range(3))]))
    return _put(folder / "wandb_export.csv", "\n".join(lines) + "\n")


def _scalars(records: Records, folder: Path) -> Path:
    """TensorBoard's downloads, a file for each tag, named after run and tag."""
    named: dict[str, list[str]] = {}
    for record in records:
        for cell in record.metrics:
            line = f"{record.time.timestamp():.6f},{record.axis[0].text},{cell.text}"
            named.setdefault(cell.name.replace("/", "_"), []).append(line)
    for name, lines in named.items():
        _put(folder / f"run-version_7-tag-{name}.csv", "\n".join(["Wall time,Step,Value", *lines]) + "\n")
    return folder


def _events(records: Records, folder: Path) -> Path:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(folder))
    for record in records:
        values = [Summary.Value(tag=cell.name, simple_value=float(cell.text)) for cell in record.metrics]
        event = Event(wall_time=record.time.timestamp(), step=int(record.axis[0].text), summary=Summary(value=values))
        writer.add_event(event)
    writer.close()
    return folder


def _mlflow(records: Records, folder: Path) -> Path:
    run = folder / "mlruns" / "0" / "3f1c2a9be7d84c6c9a5b0d1e2f3a4b5c"
    lines: dict[str, list[str]] = {}
    for record in records:
        for cell in record.metrics:
            line = f"{int(record.time.timestamp() * 1000)} {cell.text} {record.axis[0].text}\n"
            lines.setdefault(cell.name, []).append(line)
    for name, rows in lines.items():
        _put(run / "metrics" / name, "".join(rows))
    _put(run / "meta.yaml", "artifact_uri: ''\nlifecycle_stage: active\nrun_name: clean-sun\nstatus: 3\n")
    return folder / "mlruns"


def _parquet(records: Records, folder: Path) -> Path:
    path = folder / "metrics.parquet"
    pl.DataFrame(_objects(records), infer_schema_length=None).write_parquet(path)
    return path


def _put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


PLAIN: Mapping[str, Callable[[Records, Path], Path]] = {
    "csv": _csv,
    "tsv": _tsv,
    "csv_long": _long,
    "json_array": _array,
    "parquet": _parquet,
}
"""Tables that can hold any names and any axis."""
FILES: Mapping[str, Callable[[Records, Path], Path]] = {
    **PLAIN,
    "csv_padded": _padded,
    "csv_two": _two,
    "json_columns": _by_column,
    "trainer_state": _trainer_state,
    "wandb_export": _exported,
    "tensorboard_csv": _scalars,
    "tensorboard": _events,
    "mlflow": _mlflow,
}
"""From records to what a reader is pointed at: a file, or a folder."""
