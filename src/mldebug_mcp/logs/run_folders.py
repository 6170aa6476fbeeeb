"""What a folder holds: which files belong to which run.

A run is a folder with logs in it, together with what trainers put one level below (checkpoints, `logs/`, W&B's
`files/`). A folder without logs of its own holds several runs, one in each folder below that has some.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath, PurePosixPath

from mldebug_mcp.access import open_input
from mldebug_mcp.errors import InputError
from mldebug_mcp.folders import entries, walk
from mldebug_mcp.logs.ranks.files import Job, jobs_in
from mldebug_mcp.logs.rotation import log_name
from mldebug_mcp.logs.settings.files import FILE_NAMES, SettingsFile, find_settings
from mldebug_mcp.logs.source import HEAD_BYTES

LOG_SUFFIXES = (
    ".jsonl", ".ndjson", ".csv", ".tsv", ".log", ".out", ".txt", ".json", ".parquet", ".wandb",
    ".db", ".sqlite", ".err", ".ipynb", ".md",
)  # fmt: skip
"""Endings of files in a run folder that may be logs; a file named outright may have any."""
STREAMS = frozenset({"stdout", "stderr"})
"""What launchers call the output of a process."""
EVALUATIONS = "evaluations.npz"
"""What Stable-Baselines3 names its evaluations; other archives in a run folder are data."""
EVALUATION_FOLDERS = frozenset({"eval", "val", "validation", "test"})
"""Folders in a run whose logs are of its evaluation, as Keras writes them for TensorBoard."""
MAX_FILES = 200
"""Files of one run that are read."""
MAX_DEPTH = 4

_CHECKPOINT = re.compile(r"(?:checkpoint|step|global_step|epoch)[-_]?(\d+)(?:\.\w+)?")
_TIME = re.compile(r"\d{10}\.\d+")
_PARTS = frozenset(
    {"logs", "log", "tensorboard", "tb", "tb_logs", "files", "csv", "csv_logs", "metrics", "train", "eval", "val",
     "validation",
     "test", "events", "runs", "summaries", "output", "outputs", "results", "vis_data", "out"}
)  # fmt: skip
_IGNORED = frozenset(
    {"node_modules", ".git", "__pycache__", "site-packages", "code", "src", "data", "dataset", "datasets", "tokenizer",
     "artifacts", "batches", "images", "media", "plots", "weights"}
)  # fmt: skip
_NOT_LOGS = frozenset(
    {Path(name).name for name in FILE_NAMES}
    | {"package.json", "tokenizer.json", "tokenizer_config.json", "vocab.json", "special_tokens_map.json", "merges.txt",
       "generation_config.json", "requirements.txt", "README.txt", "LICENSE.txt", "wandb-metadata.json", "meta.json",
       "preprocessor_config.json", "added_tokens.json", "dataset_info.json", "model.safetensors.index.json",
       "pytorch_model.bin.index.json", "data_args.json", "classes.txt", "labels.txt", "README.md",
       "CHANGELOG.md"}
)  # fmt: skip


_NO_TEXT = (
    ".py", ".sh", ".ipynb", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".lock", ".pt", ".pth", ".ckpt", ".bin",
    ".safetensors", ".pkl", ".pickle", ".npy", ".npz", ".h5", ".onnx", ".gguf", ".png", ".jpg", ".jpeg", ".gif", ".svg",
    ".pdf", ".html", ".zip", ".tar", ".so", ".model",
)  # fmt: skip
"""Endings of files that are no logs, where no file has the name of one."""


@dataclass(slots=True)
class RunFolder:
    """The files of one run.

    Args:
        name: The run's folder, relative to the folder that was asked for; "." for that itself.
        folder: Where its configuration stands.
        files: What may be its logs.
        checkpoints: The folders of a Trainer's checkpoints, which hold the configuration of the model.
        ranks: The files of each rank, where each of them wrote its own; which of them are read, their ends tell.
    """

    name: str
    folder: Path
    files: list[Path] = field(default_factory=list)
    checkpoints: list[Path] = field(default_factory=list)
    ranks: dict[tuple[str, ...], list[Path]] = field(default_factory=dict)

    def config(
        self, texts: Sequence[Path] = (), logs: Sequence[Path] = (), *, is_shared: bool = False
    ) -> tuple[SettingsFile, ...]:
        """Return a run's configuration: in its folder, beside one of its logs, or in its newest checkpoint.

        Args:
            texts: Files that are no logs, as they hold no metrics: what a script printed of its arguments.
            logs: The logs of the run; by default all files.
            is_shared: The folder holds other runs too.
        """
        logs = logs or self.files
        beside = [self.folder, *(file.parent for file in logs)]
        checkpoints = sorted(self.checkpoints, key=_checkpoint_step, reverse=True)[:1]
        return find_settings([*beside, *checkpoints], logs, texts, lambda: not is_shared)

    def all_files(self) -> list[Path]:
        """Return its files, those of its ranks included."""
        return [*self.files, *(file for files in self.ranks.values() for file in files)]

    def size(self) -> int:
        """Return the bytes of its files."""
        return sum(file.stat().st_size for file in self.all_files())


def runs_in(folder: Path, notes: list[str], most: int | None = None) -> list[RunFolder]:
    """Return the runs in a folder, its own first, the others by name.

    Args:
        folder: The folder.
        notes: Gets what was left out.
        most: Entries of the folder that are looked at; see `walk`.
    """
    files = list(walk(folder, MAX_DEPTH + 1, _may_hold_logs, notes, most))
    logs = [path for path in files if may_be_log(path) or _lists_records(path)]
    paths = logs or list(filter(_may_be_text, files))
    jobs = jobs_in(folder, paths)
    of_ranks = {path for job in jobs for files in job.ranks.values() for path in files}
    found: dict[Path, RunFolder] = {}
    for path in (path for path in paths if path not in of_ranks):
        home = _home(folder, path)
        run = found.setdefault(home, RunFolder(str(home.relative_to(folder)), home))
        if len(run.files) < MAX_FILES:
            run.files.append(path)
    for job in jobs:
        _add_job(folder, found, job)
    for run in found.values():
        states = [path.parent for path in run.files if path.name == "trainer_state.json"]
        run.checkpoints = [place for place in states if place != run.folder]
        run.files = _newest_state(run.files)
    return sorted(found.values(), key=lambda run: (run.name != ".", run.name))


def _add_job(folder: Path, found: dict[Path, RunFolder], job: Job) -> None:
    """Add a job of several ranks: to the run of its folder, or as one of several runs there."""
    name = str(job.home.relative_to(folder))
    run = found.setdefault(job.home, RunFolder(name, job.home))
    if run.ranks:
        place = job.home / job.shape
        run = found.setdefault(place, RunFolder(str(place.relative_to(folder)), job.home))
    run.ranks = job.ranks


def _may_hold_logs(folder: Path) -> bool:
    return folder.name not in _IGNORED and not folder.name.startswith(".")


def may_be_log(path: PurePath) -> bool:
    """Say whether a file of a run folder may be a log, by its name."""
    name = log_name(path.name)
    if name in _NOT_LOGS or name.startswith("."):
        return False
    return name.lower().endswith(LOG_SUFFIXES) or name.lower() in STREAMS or "tfevents" in name or name == EVALUATIONS


def _lists_records(path: Path) -> bool:
    """Say whether a YAML file lists records, as a loop appends them: a configuration is a mapping."""
    if path.suffix.lower() not in (".yaml", ".yml") or path.name in _NOT_LOGS or path.name.startswith("."):
        return False
    try:
        with open_input(path) as file:
            head = file.read(HEAD_BYTES)
    except (InputError, OSError):
        return False
    from mldebug_mcp.logs.decoding.yaml_items import lists_records  # few folders have YAML that may be a log

    return head.startswith(b"- ") or lists_records(head.decode("utf-8", errors="replace"))


def _may_be_text(path: Path) -> bool:
    """Say whether a file may be a log under a name of its own, such as absl's `train.INFO`: its reader tells."""
    name = path.name
    return not (name in _NOT_LOGS or name.startswith(".") or name.lower().endswith(_NO_TEXT))


def home_of(path: PurePosixPath) -> PurePosixPath:
    """Return the folder of the run that a member of an archive belongs to, by names alone."""
    place = path.parent
    while place.name and (
        place.name.lower() in _PARTS or place.name.startswith(".") or _CHECKPOINT.fullmatch(place.name)
    ):
        place = place.parent
    return place


def _home(folder: Path, path: Path) -> Path:
    """Return the folder of the run that a file belongs to."""
    place = path.parent
    while place != folder and (
        place.name.lower() in _PARTS
        or (_CHECKPOINT.fullmatch(place.name) and path.name == "trainer_state.json")
        or _holds_hyperparameters(place)
    ):
        place = place.parent
    return place


def _holds_hyperparameters(place: Path) -> bool:
    """Say whether a folder is one that `SummaryWriter.add_hparams` makes beside the events of a run."""
    return _TIME.fullmatch(place.name) is not None and any("tfevents" in one.name for one in entries(place.parent))


def _newest_state(files: list[Path]) -> list[Path]:
    """Keep one trainer_state.json, the run's own or that of the newest checkpoint: each repeats those before it."""
    states = [path for path in files if path.name == "trainer_state.json"]
    if len(states) < 2:
        return files

    newest = max(states, key=lambda path: _checkpoint_step(path.parent))
    return [path for path in files if path.name != "trainer_state.json" or path == newest]


def _checkpoint_step(folder: Path) -> float:
    """Return the step of a checkpoint by its name; infinity for a folder that is none."""
    checkpoint = _CHECKPOINT.fullmatch(folder.name)
    return float(checkpoint[1]) if checkpoint else float("inf")
