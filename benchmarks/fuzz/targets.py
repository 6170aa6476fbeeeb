"""What is fuzzed: whole verbs for every format that is read, and calls that need more than a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from benchmarks.fuzz import grammars, own_calls, seeds, verbs
from benchmarks.fuzz.verbs import Parse, Verb, configured, diagnosed, inspected, run_folder


@dataclass(frozen=True, slots=True)
class Target:
    """A verb or a parser.

    Args:
        name: What it is called in the table.
        share: Its part of all inputs: quick ones get more, as a diagnosis takes a hundred times what a line does.
        seeds: Inputs as they should be.
        open: Makes, in an empty folder, the function that takes an input and checks the answer.
        wrap: Makes a file of a damaged input, with the checksums that its format demands.
        in_place: Whether places in the file are numbered, so that most damage should move nothing.
        maker: Makes inputs of a grammar.
    """

    name: str
    share: float
    seeds: Callable[[], Sequence[bytes]]
    open: Callable[[Path], Parse]
    wrap: Callable[[bytes], bytes] | None = None
    in_place: bool = False
    maker: Callable[[Random], bytes] | None = None

    @property
    def file(self) -> str:
        """The name of the file that an input becomes; "" where it becomes none."""
        return self.open.file if isinstance(self.open, Verb) else ""

    def made(self, data: bytes) -> bytes:
        """Return the input that is made of damaged data."""
        return data if self.wrap is None else self.wrap(data)


_FORMS = grammars.made_form
TARGETS: tuple[Target, ...] = (
    Target("diagnose: text", 0.4, seeds.text_logs, diagnosed("train.log")),
    Target("diagnose: JSON lines", 0.4, seeds.json_lines, diagnosed("train.jsonl")),
    Target("diagnose: JSON", 0.5, seeds.json_logs, diagnosed("trainer_state.json")),
    Target("diagnose: JSON, histories", 0.4, seeds.json_logs, diagnosed("history.json")),
    Target("diagnose: CSV, TSV, columns", 0.4, seeds.tables, diagnosed("metrics.csv")),
    Target("diagnose: long and wide tables", 0.4, seeds.shaped_tables, diagnosed("metrics.csv")),
    Target("diagnose: JSON lines by blocks", 0.4, seeds.json_lines, verbs.by_blocks("train.jsonl")),
    Target("diagnose: CSV by blocks", 0.4, seeds.tables, verbs.by_blocks("metrics.csv")),
    Target("diagnose: lists in YAML", 0.4, seeds.yaml_records, diagnosed("history.yaml")),
    Target("diagnose: TensorBoard", 0.4, seeds.event_payloads, diagnosed("events.out.tfevents.1"), seeds.event_file),
    Target("diagnose: W&B", 0.5, seeds.wandb_payloads, diagnosed("run.wandb"), seeds.wandb_file),
    Target("diagnose: SQLite", 1.5, seeds.databases, diagnosed("mlflow.db"), in_place=True),
    Target("diagnose: parquet", 0.1, seeds.parquet_files, diagnosed("history.parquet"), in_place=True),
    Target("diagnose: gz, bz2, xz, zst", 1.5, seeds.compressed_logs, diagnosed("train.log.packed"), in_place=True),
    Target("diagnose: notebook", 0.5, seeds.notebooks, diagnosed("train.ipynb")),
    Target("diagnose: MLPerf", 0.4, seeds.mllog, diagnosed("mllog.log")),
    Target("diagnose: evaluations.npz", 2, seeds.evaluations, diagnosed("evaluations.npz"), in_place=True),
    Target("diagnose: folder, a log", 0.3, seeds.text_logs, run_folder("other.log")),
    Target("diagnose: folder, settings", 0.3, seeds.named_settings, run_folder("args.txt"), maker=_FORMS),
    Target("diagnose: folder, printed settings", 0.3, seeds.named_settings, run_folder("train.log"), maker=_FORMS),
    Target("settings: JSON, YAML", 0.4, seeds.configurations, configured("args.yaml"), maker=_FORMS),
    Target("settings: TOML", 0.4, lambda: [grammars.TOML], configured("args.toml"), maker=_FORMS),
    Target("settings: INI", 0.4, lambda: [grammars.INI], configured("args.ini"), maker=_FORMS),
    Target("settings: any text", 0.4, seeds.named_settings, configured("args.txt"), maker=_FORMS),
    Target("settings: Python", 0.4, lambda: grammars.PYTHON, configured("args.py"), maker=_FORMS),
    Target("settings: training_args.bin", 0.4, grammars.pickled, configured("training_args.bin"), in_place=True),
    Target("diagnose: recording", 0.4, seeds.recordings, verbs.RECORDING),
    Target("diagnose: flight recorder", 0.4, seeds.flight_dumps, verbs.DUMPED, in_place=True),
    Target("diagnose: files of one metric", 0.3, seeds.metric_files, verbs.METRIC_FILE),
    Target("diagnose: zip", 1.5, seeds.archives, verbs.ARCHIVE, in_place=True),
    Target("diagnose: zip, names and logs", 0.4, seeds.packed_logs, verbs.ARCHIVE, seeds.packed),
    Target("diagnose: paths and URLs", 25, lambda: seeds.URLS, own_calls.located),
    Target("diagnose_runs: a log", 0.3, seeds.json_lines, verbs.MANY),
    Target("diagnose_runs: settings", 0.3, lambda: seeds.configurations()[2:], verbs.MANY_SETTINGS, maker=_FORMS),
    Target("compare_runs: a log", 0.5, seeds.json_lines, verbs.CONTEST),
    Target("read_metric: a log", 1.5, lambda: [*seeds.json_lines(), *seeds.text_logs()], verbs.METRIC),
    Target("read_metric: names", 5, lambda: seeds.NAMES, own_calls.metric_asked),
    Target("rows_at: recording", 1.5, seeds.recordings, verbs.FED),
    Target("rows_at: drawn again", 2, lambda: seeds.recordings()[3:], verbs.DRAWN),
    Target("rows_at: data", 2, lambda: [*seeds.texts(), *seeds.json_batches()], verbs.SHOWN),
    Target("rows_at: training_args.bin", 2, seeds.arguments, verbs.TRAINED, in_place=True),
    Target("open: a log's page", 0.25, lambda: [*seeds.json_lines(), *seeds.text_logs()], own_calls.live),
    Target("open: requests", 25, lambda: own_calls.REQUESTS, own_calls.requested),
    Target("watch: a log that grows", 0.3, lambda: [*seeds.json_lines(), *seeds.text_logs()], own_calls.looked_at),
    Target("inspect: JSON", 15, seeds.json_batches, inspected("batch.json", model="config.json")),
    Target("inspect: text", 8, seeds.texts, inspected("batch.jsonl", purpose="dpo")),
    Target("inspect: CSV", 4, seeds.data_tables, inspected("batch.csv", against="FILE")),
    Target("inspect: raw token ids", 8, seeds.token_ids, inspected("batch.bin")),
    Target("inspect: npy, npz", 12, seeds.arrays, inspected("batch.npz"), seeds.archive, in_place=True),
    Target("inspect: safetensors", 15, seeds.safetensors, inspected("batch.safetensors"), in_place=True),
    Target("inspect: parquet", 6, seeds.parquet_files, inspected("batch.parquet"), in_place=True),
    Target("inspect: Arrow", 5, seeds.arrow_files, inspected("batch.arrow"), in_place=True),
    Target("inspect: torch.save", 5, seeds.torch_files, inspected("batch.pt"), in_place=True),
    Target("inspect: tokenizer.json", 0.3, seeds.tokenizers, verbs.TOKENIZED),
    Target("inspect: tokenizer_config.json", 0.3, seeds.tokenizer_configs, verbs.TOKENIZER_CONFIG),
    Target("inspect: chat template", 0.5, lambda: grammars.TEMPLATES, verbs.TEMPLATE, maker=grammars.template),
    Target("inspect: model's config.json", 8, seeds.configurations, verbs.MODELLED),
    Target("probe: its batch", 30, seeds.json_batches, verbs.PROBED),
    Target("memory: snapshot", 10, seeds.snapshots, verbs.COMPARED_SNAPSHOT, seeds.zipped, in_place=True),
    Target("memory: texts", 50, lambda: seeds.MEMORY_TEXTS, verbs.COMPARED),
    Target("estimate: config.json", 40, seeds.configurations, verbs.ESTIMATE),
    Target("explain_error: text", 12, lambda: seeds.ERRORS, verbs.ERROR),
    Target("explain_error: a log", 3, lambda: [*seeds.ERRORS, *seeds.text_logs()], verbs.CRASHED),
    Target("update: an error", 0.5, lambda: seeds.ERRORS, verbs.UPDATED),
    Target("search, explain", 3, lambda: seeds.QUESTIONS, own_calls.asked),
    Target("MCP calls", 1, seeds.names, own_calls.calls),
    Target("MLflow folder", 3, seeds.mlflow_points, own_calls.mlflow),
    Target("probe result", 5, seeds.results, own_calls.probe_result),
)


def by_name(name: str) -> Target:
    """Return the target of a name."""
    return next(target for target in TARGETS if target.name == name)


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in a folder, so that relative paths mean files there."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
