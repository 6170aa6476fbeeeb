"""Bytes → values and records, for the formats that need more than a line at a time.

- Text: `json_values`; `blocks` of whole lines, which `fast_jsonl` and `fast_table` hand to polars.
- Tables: `parquet_worker` decodes parquet in a process of its own, `frames` makes records of polars' tables.
- Event files: `tfrecord` (with `crc32c`) finds the messages, `protobuf` their fields, `event_scalars` the scalars.
- `points` makes records of stores that keep each metric by itself.
"""
