"""`python -m benchmarks.faults train|fit|report|loops|ablate|restyle|invariance|young|compare`."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from benchmarks.faults import compare, invariance
from benchmarks.faults.ablation import ablate
from benchmarks.faults.figures import Rows, keep, table
from benchmarks.faults.fit import fit, without_each, write
from benchmarks.faults.report import accuracy, by_part, judge, per_cause, report
from benchmarks.faults.restyle import restyle
from benchmarks.faults.runs import Case, cases, make, other_cases
from benchmarks.faults.young import judge_young, stages

FOLDER = Path(__file__).parent / "made"


def train_missing(wanted: Iterable[Case], folder: Path, processes: int) -> None:
    """Train the runs that have no label yet."""
    missing = [case for case in wanted if not (folder / f"{case.name}.label.json").exists()]
    began = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for number, name in enumerate(pool.imap_unordered(partial(make, folder=folder), missing), start=1):
            if sys.stderr.isatty() or number % 50 == 0 or number == len(missing):
                print(f"{number} of {len(missing)} runs, {time.monotonic() - began:.0f} s: {name}", file=sys.stderr)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.faults", description="Runs with known faults, and their diagnosis."
    )
    parser.add_argument(
        "command", choices=["train", "fit", "report", "loops", "ablate", "restyle", "invariance", "young", "compare"]
    )
    parser.add_argument("--subset", action="store_true", help="one run of each fault and part: a few minutes")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument(
        "--fresh", type=int, default=0, help="train: the test part, with seeds moved by this; give it a --folder"
    )
    parser.add_argument("--other-tasks", action="store_true", help="train: tasks of neither part; give it a --folder")
    parser.add_argument(
        "--beside", action="append", default=[], type=_named, metavar="NAME=FOLDER",
        help="report, young: a folder of further runs, for another column; fit, ablate: counted as well; repeatable",
    )  # fmt: skip
    parser.add_argument("--into", type=Path, help="restyle: where the versions go")
    parser.add_argument("--versions", type=int, default=2, help="restyle: so many of each run")
    parser.add_argument("--runs", type=int, default=200, help="invariance: so many runs, chosen by --seed")
    parser.add_argument("--styles", type=int, default=40, help="invariance: so many styles")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--tools",
        type=Path,
        default=Path(sys.executable),
        help=f"compare: a Python that has the other tools. {compare.HOW}",
    )
    parser.add_argument("--sample", type=int, help="compare: this many runs, chosen by --seed")
    parser.add_argument(
        "--save",
        action="store_true",
        help="keep the figures for the README; not for fit",
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.command == "train":
        wanted = other_cases() if options.other_tasks else cases(subset=options.subset, fresh=options.fresh)
        train_missing(wanted, options.folder, options.processes)
    elif options.command == "restyle":
        restyle(options.folder, options.into or parser.error("restyle needs --into"), options.versions, options.seed)
    elif options.command == "invariance":
        found = invariance.measure(
            options.folder, options.runs, options.styles, seed=options.seed, processes=options.processes
        )
        print(
            "\n\n".join(table(rows) for rows in (invariance.worst_styles(found), invariance.by_finding(found)) if rows)
        )
        _show({"invariance": invariance.by_change(found)}, save=options.save)
    elif options.command == "fit":
        write(*fit([one for folder in (options.folder, *dict(options.beside).values()) for one in judge(folder)]))
    elif options.command == "loops":
        ones = [one for folder in (options.folder, *dict(options.beside).values()) for one in judge(folder)]
        _show({"loops": accuracy([], without_each(ones, options.processes))}, save=options.save)
    elif options.command == "ablate":
        ones = [one for folder in (options.folder, *dict(options.beside).values()) for one in judge(folder)]
        _show({"ablation": ablate(ones, options.processes)}, save=options.save)
    elif options.command == "young":
        further = {name: judge_young(folder) for name, folder in options.beside}
        _show({"young": stages(by_part(judge_young(options.folder), further))}, save=options.save)
    elif options.command == "compare":
        said = compare.judge(options.folder, options.tools, options.sample, options.seed)
        _show({"comparison": compare.compare(said), "comparison_by_cause": compare.by_cause(said)}, save=options.save)
    else:
        judged, beside = judge(options.folder), {name: judge(folder) for name, folder in options.beside}
        print(report(judged, beside))
        if options.save:
            parts = by_part(judged, beside).items()
            unseen = [one for name, ones in parts for one in ones if not name.startswith("tuning")]
            _keep({"accuracy": accuracy(judged, beside), "causes": per_cause(unseen)})


def _named(text: str) -> tuple[str, Path]:
    name, equals, folder = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r}: write NAME=FOLDER")
    return name, Path(folder)


def _show(tables: Mapping[str, Rows], *, save: bool) -> None:
    print("\n\n".join(table(rows) for rows in tables.values()))
    if save:
        _keep(tables)


def _keep(tables: Mapping[str, Rows]) -> None:
    for name, rows in tables.items():
        keep(name, rows)
    print("kept in figures.json; `python docs/update_readme.py` shows them in the pages", file=sys.stderr)


if __name__ == "__main__":
    main()
