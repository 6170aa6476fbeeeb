"""`python -m benchmarks.faults fit|report|relations|loops|ablate|invariance|young|compare`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.corpus.archive import AUTHORS, HABITS, LATER, OWN
from benchmarks.faults import compare, invariance, relations, traits
from benchmarks.faults.ablation import ablate
from benchmarks.faults.figures import Rows, keep, table
from benchmarks.faults.fit import fit, without_each, write
from benchmarks.faults.report import accuracy, by_part, per_cause, report
from benchmarks.faults.sets import EVERY, STYLED, judged, runs_of
from benchmarks.faults.young import judge_young, stages

READS: Mapping[str, tuple[str, ...]] = {
    "fit": EVERY,
    "report": EVERY,
    "relations": (OWN, *AUTHORS, LATER),
    "loops": EVERY,
    "ablate": (OWN,),
    "invariance": (OWN,),
    "young": (OWN, STYLED),
    "compare": (OWN,),
    "traits": (*AUTHORS, LATER, HABITS),
}
"""The sets that each command reads unless `--sets` names others. `invariance` and `compare` read the first alone."""


def main() -> None:
    """Run the command."""
    options = _options()
    if options.into:
        options.into.mkdir(parents=True, exist_ok=True)
    names = options.sets or READS[options.command]
    folders = {name: runs_of(name) for name in names} | dict(options.beside)
    first = next(iter(folders.values()))
    if options.command == "invariance":
        found = invariance.measure(first, options.runs, options.styles, seed=options.seed, processes=options.processes)
        print(
            "\n\n".join(table(rows) for rows in (invariance.worst_styles(found), invariance.by_finding(found)) if rows)
        )
        _show({"invariance": invariance.by_change(found)}, save=options.save)
    elif options.command == "young":
        young = {name: judge_young(folder) for name, folder in folders.items()}
        _show({"young": stages(by_part(young.pop(OWN, []), young))}, save=options.save)
    elif options.command == "compare":
        said = compare.judge(first, options.tools, options.sample, options.seed)
        _show({"comparison": compare.compare(said), "comparison_by_cause": compare.by_cause(said)}, save=options.save)
    elif options.command == "traits":
        _of_traits(options, folders)
    elif options.command == "relations":
        print(relations.count(folders.values(), options.processes))
    else:
        _of_judged(options, folders)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks.faults", description="Runs with known faults, and their diagnosis."
    )
    parser.add_argument("command", choices=[*READS])
    parser.add_argument(
        "--sets",
        nargs="+",
        choices=(*EVERY, LATER, HABITS),
        help="the sets to read; without it, what the command needs",
    )
    parser.add_argument(
        "--beside", action="append", default=[], type=_named, metavar="NAME=FOLDER",
        help="a folder of further runs of the author NAME, with a labels.jsonl; repeatable",
    )  # fmt: skip
    parser.add_argument("--left-out", action="store_true", help="traits: also fit without each of the later authors")
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
    parser.add_argument("--save", action="store_true", help="keep the figures for the pages; not for fit")
    parser.add_argument("--into", type=Path, help="fit, traits: a folder for the fitted files; else the package's own")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def _of_traits(options: argparse.Namespace, folders: Mapping[str, Path]) -> None:
    """Fit the likeness of traits and write it; show how often it is right on authors whom a fit does not see."""
    runs = {name: traits.describe(folder, name, options.processes) for name, folder in folders.items()}
    every = [run for ones in runs.values() for run in ones]
    traits.write(traits.fit_traits(every), options.into)
    later = sorted({run.author for name in (LATER, HABITS) for run in runs.get(name, [])})
    if options.left_out:
        _show({"traits": traits.left_out(every, later, options.processes)}, save=options.save)


def _of_judged(options: argparse.Namespace, folders: Mapping[str, Path]) -> None:
    """Run a command on diagnosed runs."""
    sets = judged(folders, options.processes)
    every = [one for ones in sets.values() for one in ones]
    if options.command == "fit":
        write(*fit(every), options.into)
    elif options.command == "loops":
        _show({"loops": accuracy([], without_each(every, options.processes))}, save=options.save)
    elif options.command == "ablate":
        _show({"ablation": ablate(every, options.processes)}, save=options.save)
    else:
        own = sets.pop(OWN, [])
        print(report(own, sets))
        if options.save:
            parts = by_part(own, sets).items()
            unseen = [one for name, ones in parts for one in ones if not name.startswith("tuning")]
            _keep({"accuracy": accuracy(own, sets), "causes": per_cause(unseen)})


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
