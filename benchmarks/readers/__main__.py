"""The command: see the package."""

from __future__ import annotations

import argparse
from pathlib import Path

import benchmarks.readers
from benchmarks.foreign.labels import labelled
from benchmarks.readers import prompts
from benchmarks.readers.draw import draw, write
from benchmarks.readers.score import score

RUNS = 40


def main() -> None:
    """Write answers for readers, or count what they said."""
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "benchmarks.readers", description=benchmarks.readers.__doc__, formatter_class=about
    )
    commands = parser.add_subparsers(dest="command", required=True)
    drawing = commands.add_parser("draw", help="write the answers to some labelled runs")
    _add_drawing(drawing, "answers", "how many runs")
    scoring = commands.add_parser("score", help="count what readers answered")
    scoring.add_argument(
        "folder", type=Path, metavar="FOLDER", help="what `draw` wrote, with the readers' answers in it"
    )
    prompting = commands.add_parser("prompts", help="write the prompts of --reader to some labelled runs")
    _add_drawing(prompting, "prompts", "runs of each")
    pooling = commands.add_parser("pool", help="count what replies and own ranking are worth together")
    pooling.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="the folders of labelled logs")
    pooling.add_argument("--replies", type=Path, metavar="FOLDER", help="what `prompts` wrote (default: those kept)")
    pooling.add_argument("--keep", action="store_true", help="keep these replies")
    asked = parser.parse_args()
    if asked.command == "prompts":
        some = [
            one
            for folder in asked.folders
            for one in draw(labelled(folder, closed=asked.closed), asked.runs, asked.seed)
        ]
        prompts.write(some, asked.into)
        return
    if asked.command == "pool":
        labels = prompts.labels_of(asked.folders)
        read = prompts.replies_of(asked.replies, labels) if asked.replies else prompts.kept_replies(labels)
        if asked.keep:
            prompts.keep(read)
        print(prompts.measured(read))
        return
    if asked.command == "score":
        print(score(asked.folder))
        return
    ones = [one for folder in asked.folders for one in labelled(folder, closed=asked.closed)]
    write(draw(ones, asked.runs, asked.seed), asked.into)


def _add_drawing(parser: argparse.ArgumentParser, what: str, runs: str) -> None:
    """Add what says which runs are drawn, and where to."""
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="a folder of labelled logs")
    parser.add_argument("--into", required=True, type=Path, metavar="FOLDER", help=f"a new folder for the {what}")
    parser.add_argument("--runs", type=int, default=RUNS, metavar="N", help=f"{runs} (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the draw (default: %(default)s)")
    parser.add_argument("--closed", action="store_true", help="draw from the closed half too")


if __name__ == "__main__":
    main()
