"""What a folder holds: which files belong to which run, and which are those of the ranks of one job.

A run is a folder with logs in it, together with what trainers put one level below (checkpoints, `logs/`, W&B's
`files/`). A folder without logs of its own holds several runs, one in each folder below that has some. Files of ranks
have paths that differ in numbers alone; whether such a number is a rank is decided by the path or by the file itself.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path, PurePath, PurePosixPath
from typing import NamedTuple, TypeAlias

from mldebug_mcp.core.access import entries, head_of, is_file, is_folder, read_bytes, walk
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.logs.log_file import HEAD_BYTES, log_name
from mldebug_mcp.logs.names import role_of
from mldebug_mcp.logs.names.metrics import phase_in
from mldebug_mcp.logs.settings.files import FILE_NAMES, SettingsFile, find_settings

# Runs that are spread over sub-folders: TensorBoard's `add_scalars`, and folders of curves, one file for each.


CURVES = {".tsv": ("plots", "metrics"), ".plx": ("events", "metric")}
"""The folders in which DVCLive and Polyaxon keep their curves, by the ending of the tables.

The path of a table below them is the metric's name.
"""
CATBOOST = "catboost_training.json"
"""What CatBoost calls the file that holds every measure of every set."""
REPEATS = regex(r"(?:(?:learn|test\d*)/events\.out\.tfevents|(?:learn|test)_error\.tsv|time_left\.tsv)")
"""The files next to it that repeat it, by their path below its folder."""
EVENTS_HEAD_BYTES = 64 * 1024
"""Bytes of an event file in which its first tag is looked for."""
MAX_LINE_BYTES = 200
"""Bytes of the first line of a table of one curve without a header: three numbers take no more."""
BARE = "curves"
"""The format of tables that are named after their metrics."""
_BARE_ROW = regex(rb"\d{1,18},(?:\d{1,18},)?(?:[-+]?\d[\d.eE+-]{0,40}|[-+]?(?:nan|inf))\r?\n", re.IGNORECASE)
"""A row of such a table: d3rlpy's epoch, step and value, torchrl's step and value."""
_PARAMETER_HEADER = regex(rb"epoch,step,[\w,]+\r?\n")
"""The header of a table that d3rlpy writes of a parameter's gradient, next to those of one curve."""
_OF_CURVE = {
    **dict.fromkeys(("step", "steps", "global step", "iteration", "iterations", "iter"), "step"),
    **dict.fromkeys(("wall time", "time", "timestamp"), "time"),
    "value": "value",
}
"""The columns of a table that TensorBoard exports of one tag, and of those written alike."""
_EVENTS = regex(r"events\.out\.tfevents\.\d+\.(?P<writer>.+\.\d+)\.\d+")
"""What event files are called: the time, then the machine and the process that wrote them, then a number."""


def may_hold_curves(folder: Path) -> bool:
    """Say whether a folder called `plots` or `events` holds curves, and not pictures."""
    return any(folder.name == outer and is_folder(folder / inner) for outer, inner in CURVES.values())


def curve_name(path: PurePath) -> str:
    """Return the metric of a table of one curve by its path, such as "train/loss"; "" if it is none."""
    parts, folders = path.parts, CURVES.get(path.suffix)
    at = next((at for at in range(len(parts) - 2) if parts[at : at + 2] == folders), None)
    if at is None:
        return ""
    return "/".join((*parts[at + 2 : -1], path.stem))


def bare_curves(files: Iterable[Path]) -> list[list[Path]]:
    """Return the tables of one curve without a header that stand together, by folder: those of one run.

    d3rlpy and torchrl write `loss.csv` with rows of counters and a value. The name of the file is the metric's.
    """
    places: dict[Path, dict[Path, bytes]] = {}
    for path in files:
        if path.suffix == ".csv" and (line := _first_line(path)):
            places.setdefault(path.parent, {})[path] = line
    tables = [
        [path for path, line in lines.items() if _BARE_ROW.fullmatch(line) or _PARAMETER_HEADER.fullmatch(line)]
        for lines in places.values()
        if sum(_BARE_ROW.fullmatch(line) is not None for line in lines.values()) > 1
    ]
    return [some for some in tables if some]


_TRIPLES = regex(rb"\s{0,20}\[\s{0,20}\[\s{0,20}\d{9,10}(?:\.\d{1,9})?,\s{0,20}\d{1,15},\s{0,20}[-+\dNI\"]")
"""A list of times in seconds, steps and values: what TensorBoard gives of one tag as JSON."""
JSON = "json"


class CurveColumns(NamedTuple):
    """The delimiter of a table of one curve, `JSON` for a list, and what each column is: "step", "value" or "time"."""

    delimiter: str
    names: tuple[str, ...]


def curve_columns(path: Path) -> CurveColumns | None:
    """Return the columns of a table whose header calls its metric "value": its name is that of the metric.

    One that TensorBoard exports has the run in its name too, `run-a-tag-loss.csv`, and is read by itself.
    """
    if "-tag-" in path.name:
        return None
    if path.suffix == ".json" and _TRIPLES.match(head_of(path, MAX_LINE_BYTES)):
        return CurveColumns(JSON, ("time", "step", "value"))
    if path.suffix not in (".csv", ".tsv"):
        return None
    line = _first_line(path).decode("utf-8", errors="replace").strip()
    delimiter = next((mark for mark in ",;\t" if mark in line), ",")
    names = [_OF_CURVE.get(name.strip('" ').lower().replace("_", " "), "") for name in line.split(delimiter)]
    known = len(set(names)) == len(names) and {"step", "value"} <= set(names) <= set(_OF_CURVE.values())
    return CurveColumns(delimiter, tuple(names)) if known else None


def is_phase_of_metric(path: Path) -> bool:
    """Say whether a table of one curve is named after a phase in the folder of its metric, `loss/train.csv`."""
    return phase_in(path.stem) != "" and role_of(path.parent.name) is not None and curve_columns(path) is not None


def curves_by_tag(files: Iterable[Path]) -> dict[Path, str]:
    """Return such tables of one run with the metrics that their files and folders name; empty where these name none.

    Files that are named after runs, `small.csv`, hold the same metric. What all begin with is the run, `gcn_` of
    `gcn_val_loss.csv`.
    """
    tables = [path for path in files if curve_columns(path) is not None]
    if len(tables) < 2:
        return {}
    above = Path(os.path.commonpath([path.parent for path in tables]))
    is_part = phase_in(above.name) or any(path.parent == above and is_phase_of_metric(path) for path in tables)
    above = above.parent if is_part else above
    tags = {path: path.relative_to(above).with_suffix("").as_posix() for path in tables}
    if not _name_metrics(tags.values()):
        first, last = min(tags.values()), max(tags.values())
        alike = next((at for at, (own, its) in enumerate(zip(first, last, strict=False)) if own != its), len(first))
        of_run = max(first.rfind(mark, 0, alike) for mark in "_-./") + 1
        tags = {path: tag[of_run:] for path, tag in tags.items()}
    return tags if _name_metrics(tags.values()) else {}


def _name_metrics(tags: Iterable[str]) -> bool:
    """Say whether tags are of several metrics."""
    return len({role.name for tag in tags if (role := role_of(tag)) is not None}) > 1


def _first_line(path: Path) -> bytes:
    head = head_of(path, MAX_LINE_BYTES)
    return head.partition(b"\n")[0] + b"\n" if head else b""


def home_of_curve(path: Path) -> Path | None:
    """Return the folder of the run whose curve a table is, None for other tables."""
    name = curve_name(path)
    return path.parents[name.count("/") + len(CURVES[path.suffix])] if name else None


def scalars_tag(path: Path) -> str:
    """Return the tag that `SummaryWriter.add_scalars` made the folder of an event file for, "" if it did not.

    Such a folder is called after the tag and the key of the dictionary, `loss_train`. Its events carry the tag, and
    the same process wrote those of the folder above it.
    """
    name = _EVENTS.fullmatch(path.name)
    above = [_EVENTS.fullmatch(entry.name) for entry in entries(path.parent.parent)] if name else []
    if name is None or not any(match is not None and match["writer"] == name["writer"] for match in above):
        return ""
    head, folder = head_of(path, EVENTS_HEAD_BYTES), path.parent.name
    for end in (match.start() for match in re.finditer("_", folder)):
        tag = folder[:end].encode()
        if len(tag) > 127:  # its length takes one byte
            return ""
        pattern = b"\x0a" + re.escape(bytes([len(tag)])) + b"(" + re.escape(tag).replace(b"_", b"[_/]") + b")"
        if (found := re.search(pattern, head, re.DOTALL)) is not None:
            return found[1].decode(errors="replace")
    return ""


def scalars_name(path: Path) -> str:
    """Return what the metric of an event file that `add_scalars` made is called: "loss/train"; "" if it is none."""
    tag = scalars_tag(path)
    return f"{tag}/{path.parent.name[len(tag) + 1 :]}" if tag else ""


# Which files of a folder are those of the ranks of one job, by the structure of their paths and by what they hold.
#
# Such paths differ in numbers alone. That a number is a rank, and not that of a run in a sweep, is told by the word in
# front of it (`rank0.log`, `worker-3/stdout`, `node3/gpu5.log`), by the folder of an attempt above it (torchelastic's
# `attempt_0/7/stderr.log`), or by the file itself, which calls its rank by that number. Runs whose folders hold
# different configurations are runs, whatever they are called.

RANK_HEAD_BYTES = 16 * 1024
"""Bytes at the beginning of a file in which its rank is looked for."""
LEAST_UNNAMED = 4
"""Files that differ in one number before they are opened to see whether that is a rank."""
LARGEST_SETTINGS = 256 * 1024

Key: TypeAlias = tuple[Path, str]
"""A job: the folder that holds its ranks, and the paths below it without ranks and streams."""
_NUMBER_IN_PATH = regex(r"\d{1,9}")
_RANK_WORD = regex(
    r"(?:^|[^a-z])(?:global|local)?[-_]?(?:rank|worker|node|host|gpu|device|proc|process|replica|machine|pod)s?[-_.=]?$",
    re.IGNORECASE,
)
_NOT_TEXT = frozenset({".parquet", ".wandb", ".swanlab", ".db", ".sqlite", ".sqlite3", ".npz", ".ipynb", ".md"})
_ATTEMPT = regex(r"attempt[-_]?\d+", re.IGNORECASE)
_STREAM = regex(r"\b(?:stdout|stderr|out|err)\b|(?<=_)(?:stdout|stderr)", re.IGNORECASE)
_OWN_RANK = regex(rb"(?:\b(?:global[_ ]|local[_ ])?rank[\"']?\s{0,2}[:= ]?\s{0,2}|\[rank|\[default)(\d{1,6})\b", re.I)


@dataclass(slots=True)
class Job:
    """A job of several ranks.

    Args:
        home: The folder that holds its ranks.
        shape: The paths below it, "#" for each rank.
        ranks: The files of each rank, by its numbers: ("3",), or ("1", "3") of the third one of a first node.
    """

    home: Path
    shape: str
    ranks: dict[tuple[str, ...], list[Path]] = field(default_factory=dict)


def jobs_in(folder: Path, paths: Sequence[Path]) -> list[Job]:
    """Return the jobs whose ranks wrote some of the files of a folder, at least two ranks each."""
    jobs: dict[Key, Job] = {}
    unnamed: dict[Key, dict[str, Path]] = defaultdict(dict)
    for path in filter(_is_text, paths):
        numbers = _rank_numbers(path.relative_to(folder).parts)
        if numbers:
            _take(jobs, folder, path, numbers)
        elif len(every := _numbers(path.relative_to(folder).parts)) == 1:
            key, rank = _key(folder, path, every)
            unnamed[key][rank[0]] = path
    for files in unnamed.values():
        if len(files) >= LEAST_UNNAMED and _call_themselves(files):
            for path in files.values():
                _take(jobs, folder, path, _numbers(path.relative_to(folder).parts))
    return [job for job in jobs.values() if len(job.ranks) > 1 and not _differ_in_settings(job)]


Place: TypeAlias = tuple[int, int, int]
"""Where a number stands: part of the path, first character, end."""


def _is_text(path: Path) -> bool:
    return "tfevents" not in path.name and path.suffix.lower() not in _NOT_TEXT


def _numbers(parts: Sequence[str]) -> list[Place]:
    return [
        (at, match.start(), match.end()) for at, part in enumerate(parts) for match in _NUMBER_IN_PATH.finditer(part)
    ]


def _rank_numbers(parts: Sequence[str]) -> list[Place]:
    found = []
    for at, start, end in _numbers(parts):
        part, above = parts[at], parts[at - 1] if at else ""
        whole = start == 0 and part[end:] in ("", Path(part).suffix)
        if _RANK_WORD.search(part[:start]) or (whole and (_ATTEMPT.fullmatch(above) or _RANK_WORD.search(above))):
            found.append((at, start, end))
    return found


def _key(folder: Path, path: Path, places: Sequence[Place]) -> tuple[Key, tuple[str, ...]]:
    """Return the job that a file belongs to, and the numbers of its rank."""
    parts = list(path.relative_to(folder).parts)
    rank = tuple(parts[at][start:end] for at, start, end in places)
    first = places[0][0]
    for at, start, end in reversed(places):
        parts[at] = f"{parts[at][:start]}#{parts[at][end:]}"
    parts[-1] = _STREAM.sub("@", log_name(parts[-1]))
    return (folder.joinpath(*parts[:first]), "/".join(parts[first:])), rank


def _take(jobs: dict[Key, Job], folder: Path, path: Path, places: Sequence[Place]) -> None:
    key, rank = _key(folder, path, places)
    inside = "#" not in key[1].rpartition("/")[2]  # the files in the folder of a rank are its own, whatever their names
    shape = key[1].rpartition("/")[0] if inside else key[1]
    job = jobs.setdefault((key[0], shape), Job(key[0], shape))
    job.ranks.setdefault(tuple(text.lstrip("0") or "0" for text in rank), []).append(path)


def _call_themselves(files: dict[str, Path]) -> bool:
    """Say whether the first, a middle and the last file each call their own rank by the number in their name."""
    numbers = sorted(files, key=int)
    asked = {numbers[0], numbers[len(numbers) // 2], numbers[-1]}
    return all(_own_rank(files[number]) == int(number) for number in asked)


def _own_rank(path: Path) -> int | None:
    found = {int(rank) for rank in _OWN_RANK.findall(head_of(path, RANK_HEAD_BYTES))}
    return found.pop() if len(found) == 1 else None


def _differ_in_settings(job: Job) -> bool:
    """Say whether the folders of ranks hold configurations of their own that differ, as those of runs do."""
    ranks = list(job.ranks.values())
    looked_at = (ranks[0][0], ranks[len(ranks) // 2][0], ranks[-1][0])
    places = {path.parent for path in looked_at if path.parent != job.home}
    return len(set(_settings(places))) > 1


def _settings(places: Iterable[Path]) -> list[bytes]:
    found = []
    for place in places:
        for name in FILE_NAMES:
            if is_file(place / name):
                try:
                    found.append(read_bytes(place / name, LARGEST_SETTINGS))
                except (OSError, InputError):
                    found.append(b"")
                break
    return found


# What a folder holds: which files belong to which run.

LOG_SUFFIXES = (
    ".jsonl", ".ndjson", ".csv", ".tsv", ".log", ".out", ".txt", ".json", ".parquet", ".wandb", ".swanlab",
    ".db", ".sqlite", ".sqlite3", ".err", ".ipynb", ".md",
)  # fmt: skip
"""Endings of files in a run folder that may be logs; a file named outright may have any.

A file of another ending is found in a folder only where no file of these endings holds a metric. A table of steps in
a `.dat` is found anyway.
"""
STREAMS = frozenset({"stdout", "stderr"})
"""What launchers call the output of a process."""
EVALUATIONS = "evaluations.npz"
"""What Stable-Baselines3 names its evaluations; other archives in a run folder are data."""
EVALUATION_FOLDERS = frozenset({"eval", "val", "validation", "test"})
"""Folders in a run whose logs are of its evaluation, as Keras writes them for TensorBoard."""
MAX_FILES = 200
"""Files of one run that are read."""
MAX_DEPTH = 4

_CHECKPOINT = regex(r"(?:checkpoint|step|global_step|epoch)[-_]?(\d+)(?:\.\w+)?", needs=("checkpoint", "step", "epoch"))
_TIME_IN_NAME = regex(r"\d{10}\.\d+")
GUILD = ".guild"
"""The folder of a run that Guild keeps its events in."""
_PARTS = frozenset(
    {"logs", "log", "tensorboard", "tb", "tb_logs", "files", "csv", "csv_logs", "metrics", "train", "eval", "val",
     "validation", GUILD,
     "test", "events", "runs", "summaries", "output", "outputs", "results", "vis_data", "out", "scalars", "curves",
     "history"}
)  # fmt: skip
_IGNORED = frozenset(
    {"node_modules", ".git", "__pycache__", "site-packages", "code", "src", "data", "dataset", "datasets", "tokenizer",
     "artifacts", "batches", "images", "media", "plots", "weights"}
)  # fmt: skip
_NOT_LOGS = frozenset(
    {Path(name).name for name in FILE_NAMES}
    | {"package.json", "tokenizer.json", "tokenizer_config.json", "vocab.json", "special_tokens_map.json", "merges.txt",
       "generation_config.json", "requirements.txt", "README.txt", "LICENSE.txt", "wandb-metadata.json", "meta.json",
       "swanlab-metadata.json", "lineages.plx.json",
       "preprocessor_config.json", "added_tokens.json", "dataset_info.json", "model.safetensors.index.json",
       "pytorch_model.bin.index.json", "data_args.json", "classes.txt", "labels.txt", "README.md",
       "CHANGELOG.md"}
)  # fmt: skip


_STATES = regex(
    r"(?:experiment_state|basic-variant-state|searcher-state|search_gen_state)-.{1,80}\.json",
    needs=("_state-", "-state-"),
)
"""What Ray Tune keeps of an experiment to go on with it."""
_NO_TEXT = (
    ".py", ".sh", ".ipynb", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".lock", ".pt", ".pth", ".ckpt", ".bin",
    ".safetensors", ".pkl", ".pickle", ".npy", ".npz", ".h5", ".onnx", ".gguf", ".png", ".jpg", ".jpeg", ".gif", ".svg",
    ".pdf", ".html", ".zip", ".tar", ".so", ".model",
)  # fmt: skip
"""Endings of files that are no logs, where no file has the name of one."""
_TEXTS = (".yaml", ".yml", ".toml", ".ini", ".cfg", ".lock", ".html", ".model")
_NEVER_LOGS = tuple(ending for ending in _NO_TEXT if ending not in _TEXTS)
"""Those of files that are no logs either where no file that may be one holds a metric: code and binary files."""


MAX_CARD = 1 << 18
"""Bytes of a README in which a table is looked for. Chosen: cards of models have a few thousand."""
_TABLE_OF_STEPS = regex(
    rb"^\|(?:[^|\n]{1,200}\|){0,40} {0,40}(?:global[_ ])?(?:step|epoch|iteration)s? {0,40}\|[^\n]{0,2000}\n"
    rb"\|(?=[^\n]{0,2000}--)[ \t|:-]{3,2000}\r?\n",
    re.IGNORECASE | re.MULTILINE,
)
_COLUMNS_BY_STEP = regex(
    rb"\s{0,20}#?\s{0,20}(?:global[_ ])?(?:step|epoch|iter(?:ation)?)s?\b[^\n]{0,2000}(?:loss|reward|return|score|acc)",
    re.IGNORECASE,
)
"""The head of a table of numbers in columns: "#step loss score_mean"."""


@dataclass(slots=True)
class RunFolder:
    """The files of one run.

    Args:
        name: The run's folder, relative to the folder that was asked for; "." for that itself.
        folder: Where its configuration stands.
        files: What may be its logs.
        checkpoints: The folders of a Trainer's checkpoints, which hold the configuration of the model.
        ranks: The files of each rank, where each of them wrote its own; which of them are read, their ends tell.
        attempts_apart: Each start in its log counts as a run of its own.
        consoles: Those of its files that stand above its folder: what the process printed, by its framework's layout.
    """

    name: str
    folder: Path
    files: list[Path] = field(default_factory=list)
    checkpoints: list[Path] = field(default_factory=list)
    ranks: dict[tuple[str, ...], list[Path]] = field(default_factory=dict)
    consoles: list[Path] = field(default_factory=list)
    attempts_apart: bool = False

    def name_of(self, file: Path) -> str:
        """Return the name of one of its files, relative to its folder."""
        return os.path.relpath(file, self.folder)

    def config(
        self, texts: Sequence[Path] = (), logs: Sequence[Path] = (), *, is_shared: bool = False
    ) -> tuple[SettingsFile, ...]:
        """Return a run's configuration: in its folder, next to one of its logs, or in its newest checkpoint.

        Args:
            texts: Files that are no logs, as they hold no metrics: what a script printed of its arguments.
            logs: The logs of the run; by default all files.
            is_shared: The folder holds other runs too.
        """
        logs = logs or self.files
        folders = [self.folder, *(file.parent for file in logs), self.folder / "files"]
        checkpoints = sorted(self.checkpoints, key=_checkpoint_step, reverse=True)[:1]
        return find_settings([*folders, *checkpoints], logs, texts, lambda: not is_shared)

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
    logs = _without_repeats(
        [path for path in files if may_be_log(path) or _lists_records(path) or _holds_columns(path)]
    )
    paths = logs or list(filter(_may_be_text, files))
    jobs = jobs_in(folder, paths)
    of_ranks = {path for job in jobs for files in job.ranks.values() for path in files}
    found = _by_home(folder, (path for path in paths if path not in of_ranks))
    for job in jobs:
        _add_job(folder, found, job)
    _add_consoles(found)
    _add_dated(found)
    _add_tagged(found)
    for run in found.values():
        states = [path.parent for path in run.files if path.name == "trainer_state.json"]
        run.checkpoints = [place for place in states if place != run.folder]
        run.files = _newest_state(run.files)
    return _own_first(found)


def _by_home(folder: Path, paths: Iterable[Path]) -> dict[Path, RunFolder]:
    """Return the runs that files belong to, by the folder of each."""
    found: dict[Path, RunFolder] = {}
    for path in paths:
        home = _home(folder, path)
        run = found.setdefault(home, RunFolder(str(home.relative_to(folder)), home))
        if len(run.files) < MAX_FILES:
            run.files.append(path)
    return found


def _own_first(found: Mapping[Path, RunFolder]) -> list[RunFolder]:
    return sorted(found.values(), key=lambda run: (run.name != ".", run.name))


_VERSION = regex(r"version_(\d{1,9})", needs="version_")
_CONSOLES = (".log", ".out", ".err", ".txt")
_OF_VERSION = regex(rb"\bv_num[=:]\s{0,4}(\d{1,9})\b")
"""The version of its run that Lightning prints at its bar."""
_OF_LIGHTNING = regex(rb"GPU available: |`Trainer\.fit`|\bTrainer already configured")
"""What it prints without a bar."""


def _add_consoles(found: dict[Path, RunFolder]) -> None:
    """Add what a process printed above the folders of its runs to them, as Lightning lays them out.

    It writes `lightning_logs/version_0` below the folder that it is started in. A text there is of the version whose
    number it prints; one of Lightning that prints none is of the only version, if it is the only text.
    """
    versions: dict[Path, dict[int, RunFolder]] = {}
    for place, run in found.items():
        number = _VERSION.fullmatch(place.name)
        if number is not None:
            versions.setdefault(place.parent.parent, {})[int(number[1])] = run
    for root, by_number in versions.items():
        above = found.get(root)
        texts = [path for path in above.files if path.suffix.lower() in _CONSOLES] if above is not None else []
        for path in texts:
            only = next(iter(by_number)) if len(by_number) == len(texts) == 1 else None
            version = by_number.get(_version_in(path, only))
            if above is not None and version is not None:
                above.files.remove(path)
                version.files.append(path)
                version.consoles.append(path)
        if above is not None and not above.files and not above.ranks:
            del found[root]


def _version_in(path: Path, only: int | None) -> int:
    """Return the version that a text prints, or the `only` one for a text of Lightning that prints none; -1 for none.

    A text that prints several is of several runs.
    """
    head = head_of(path, HEAD_BYTES)
    numbers = {int(number) for number in _OF_VERSION.findall(head)}
    if not numbers and only is not None and _OF_LIGHTNING.search(head):
        return only
    return numbers.pop() if len(numbers) == 1 else -1


_DATED = regex(r"[A-Z][a-z]{2}\d{2}_\d{2}-\d{2}-\d{2}_.+", needs="-")
"""What TensorBoard's writer for PyTorch, and so the Trainer, names a folder of events: "Nov28_12-00-00_host"."""


def _add_dated(found: dict[Path, RunFolder]) -> None:
    """Add the only `runs/DATE_HOST` below a run's folder to it, as the Trainer lays it out: what it holds tells."""
    dated: dict[Path, list[Path]] = {}
    for place in found:
        if _DATED.fullmatch(place.name) and place.parent.name == "runs":
            dated.setdefault(_root_of(place.parent.parent, found), []).append(place)
    for root, places in dated.items():
        if root in found and len(places) == 1:
            found[root].files += found.pop(places[0]).files


def _root_of(place: Path, found: Mapping[Path, RunFolder]) -> Path:
    """Return the folder of a run that a place is part of: the first above it that has no name of a part."""
    while place not in found and place.name.lower() in _PARTS:
        place = place.parent
    return place


def _add_tagged(found: dict[Path, RunFolder]) -> None:
    """Add the curves of folders that are parts of tags, `optim/lr.csv` next to `train/loss.csv`, to their run.

    Folders of runs repeat the names of their files.
    """
    groups: dict[Path, list[Path]] = {}
    for place, run in found.items():
        root = _root_of(place.parent, found)
        if root in found and run.files and all(map(curve_columns, run.files)):
            groups.setdefault(root, []).append(place)
    for root, places in groups.items():
        names = [path.name for place in places for path in found[place].files]
        own = {path.name for path in found[root].files if curve_columns(path)}
        if own and own.isdisjoint(names) and len(set(names)) == len(names):
            for place in places:
                found[root].files += found.pop(place).files


def _without_repeats(paths: list[Path]) -> list[Path]:
    """Leave out what CatBoost writes next to the file that holds all of it."""
    whole = [path.parent for path in paths if path.name == CATBOOST]
    repeats = {
        path
        for place in whole
        for path in paths
        if path.is_relative_to(place) and REPEATS.fullmatch(path.relative_to(place).as_posix())
    }
    return [path for path in paths if path not in repeats]


def _add_job(folder: Path, found: dict[Path, RunFolder], job: Job) -> None:
    """Add a job of several ranks: to the run of its folder, or as one of several runs there."""
    name = str(job.home.relative_to(folder))
    run = found.setdefault(job.home, RunFolder(name, job.home))
    if run.ranks:
        place = job.home / job.shape
        run = found.setdefault(place, RunFolder(str(place.relative_to(folder)), job.home))
    run.ranks = job.ranks


def _may_hold_logs(folder: Path) -> bool:
    is_hidden = folder.name.startswith(".") and folder.name != GUILD
    return may_hold_curves(folder) or (folder.name not in _IGNORED and not is_hidden)


RECORD = "mldebug-record.jsonl"
"""The record of what was tried on a run, in its folder; in a folder with logs of several, LOG.mldebug-record.jsonl."""


def may_be_log(path: PurePath) -> bool:
    """Say whether a file of a run folder may be a log, by its name."""
    name = log_name(path.name)
    if name in _NOT_LOGS or name.startswith(".") or name.endswith(RECORD) or _STATES.fullmatch(name):
        return False
    is_of_guild = name == "output" and path.parent.name == GUILD  # what the script printed; the events lack NaN
    is_named_so = (
        is_of_guild or name.lower() in STREAMS or "tfevents" in name or name == EVALUATIONS or curve_name(path) != ""
    )
    return is_named_so or name.lower().endswith(LOG_SUFFIXES)


def _lists_records(path: Path) -> bool:
    """Say whether a YAML file lists records, as a loop appends them: a configuration is a mapping."""
    if path.suffix.lower() not in (".yaml", ".yml") or path.name in _NOT_LOGS or path.name.startswith("."):
        return False
    head = head_of(path, HEAD_BYTES)
    if not head:
        return False
    from mldebug_mcp.logs.json_yaml import lists_records  # few folders have YAML that may be a log

    return head.startswith(b"- ") or lists_records(head.decode("utf-8", errors="replace"))


def _holds_columns(path: Path) -> bool:
    """Say whether a file that may hold any data is a table whose first column counts steps or epochs."""
    return path.suffix.lower() == ".dat" and _COLUMNS_BY_STEP.match(head_of(path, HEAD_BYTES)) is not None


def texts_in(folder: Path) -> list[RunFolder]:
    """Return the runs in a folder if any text in it may be a log, whatever its ending: its reader tells.

    Of what a folder tells people of itself, that is a table by step or epoch, as the Trainer writes it into a card.
    """
    texts = [
        path
        for path in walk(folder, MAX_DEPTH + 1, _may_hold_logs, [])
        if _may_be_text(path, _NEVER_LOGS) or _holds_table(path)
    ]
    return _own_first(_by_home(folder, texts))


def _may_be_text(path: Path, not_text: tuple[str, ...] = _NO_TEXT) -> bool:
    """Say whether a file may be a log under a name of its own, such as absl's `train.INFO`: its reader tells."""
    name = path.name
    return not (name in _NOT_LOGS or name.startswith(".") or name.endswith(RECORD) or name.lower().endswith(not_text))


def _holds_table(path: Path) -> bool:
    """Say whether a README holds a Markdown table with a column of steps or epochs."""
    return path.name.lower() == "readme.md" and _TABLE_OF_STEPS.search(head_of(path, MAX_CARD)) is not None


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
    place = home_of_curve(path) or path.parent
    if not place.is_relative_to(folder):
        return folder
    if place != folder and (scalars_tag(path) or is_phase_of_metric(path)):
        place = place.parent
    while place != folder and (
        place.name.lower() in _PARTS
        or (_CHECKPOINT.fullmatch(place.name) and path.name == "trainer_state.json")
        or _holds_hyperparameters(place)
    ):
        place = place.parent
    return place


def _holds_hyperparameters(place: Path) -> bool:
    """Say whether a folder is one that `SummaryWriter.add_hparams` makes next to the events of a run."""
    return _TIME_IN_NAME.fullmatch(place.name) is not None and any(
        "tfevents" in entry.name for entry in entries(place.parent)
    )


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
