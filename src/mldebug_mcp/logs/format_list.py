"""Which formats of logs there are, in the order in which they are tried, and the endings of their files in a folder.

Each name is a module of `formats`. The first whose `matches` holds reads the file, so the most particular come first.
"""

BINARY_READERS = (
    "tensorboard",
    "wandb_file",
    "swanlab_file",
    "visualdl_file",
    "sqlite_store",
    "parquet",
    "evaluations",
)
"""Modules of the formats whose first bytes `unpack.binary_format` knows."""
TEXT_READERS = (
    "recording",
    "notebook",
    "mllog",
    "hf_trainer_state",
    "catboost_training",
    "golden_values",
    "mmcv_json",
    "mmengine_json",
    "wrapped_text",
    "scalar_events",
    "jsonl",
    "json_file",
    "yaml_records",
    "table",
    "bare_columns",
    "text_log",
)
"""Modules of the formats of text, most particular first; `text_log` takes any text."""
LOG_SUFFIXES = (
    ".jsonl", ".ndjson", ".csv", ".tsv", ".log", ".out", ".txt", ".json", ".parquet", ".wandb", ".swanlab",
    ".db", ".sqlite", ".sqlite3", ".err", ".ipynb", ".md",
)  # fmt: skip
"""Endings of files in a run folder that may be logs; a file named outright may have any.

A file of another ending is found in a folder only where no file of these endings holds a metric.
"""
