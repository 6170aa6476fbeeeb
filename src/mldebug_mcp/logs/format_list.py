"""Which formats of logs there are, each a module of `formats`, and the endings of their files in a folder.

The first bytes tell a binary format. Of the formats of text the first whose `matches` holds reads the file.
"""

BINARY_READERS = {
    "tensorboard": "tensorboard", "wandb": "wandb_file", "swanlab": "swanlab_file", "visualdl": "visualdl_file",
    "sqlite": "sqlite_store", "parquet": "parquet", "npz": "evaluations",
}  # fmt: skip
"""The module of each binary format, by what `unpack.binary_format` calls it."""
TEXT_READERS = (
    "recording", "notebook", "mllog", "hf_trainer_state", "catboost_training", "golden_values", "mmcv_json",
    "mmengine_json", "wrapped_text", "scalar_events", "jsonl", "json_file", "yaml_records", "table", "bare_columns",
    "text_log",
)  # fmt: skip
"""Modules of the formats of text, most particular first; `text_log` takes any text."""
LOG_SUFFIXES = (
    ".jsonl", ".ndjson", ".csv", ".tsv", ".log", ".out", ".txt", ".json", ".parquet", ".wandb", ".swanlab",
    ".db", ".sqlite", ".sqlite3", ".err", ".ipynb", ".md",
)  # fmt: skip
"""Endings of files in a run folder that may be logs; a file named outright may have any.

A file of another ending is found in a folder only where no file of these endings holds a metric.
"""
