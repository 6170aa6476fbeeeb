"""The commands on many runs, and the command on the rows of a step."""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mldebug_mcp.cli.commands import (
    DONE,
    Commands,
    add_json,
    add_reader,
    checked,
    count,
    print_json,
    reader_from,
    shown_progress,
    verb,
)
from mldebug_mcp.core.errors import InputError

if TYPE_CHECKING:
    from mldebug_mcp.models.runs import Runs

# The commands on many runs: `runs`, the sick ones of a folder, and `compare`, two kinds of runs.


def add_runs(verbs: Commands) -> None:
    """Add both commands."""
    says = "say which runs of a folder are sick, and what those share"
    runs = verb(verbs, "runs", says)
    runs.add_argument("path", metavar="FOLDER", help="a folder of runs, up to four levels deep, or a file of several")
    runs.add_argument("--all", action="store_true", help="all rows, not only the first ones")
    runs.add_argument(
        "--html",
        metavar="FILE",
        help="also write a page with a small curve of each run, and filters; into a folder also a page for each run",
    )
    runs.add_argument("--csv", metavar="FILE", help="also write the rows as CSV")
    add_json(runs)
    runs.add_argument("--processes", type=int, default=os.cpu_count() or 1, metavar="N", help="default: one per core")
    runs.add_argument("--ray", metavar="ADDRESS", help="have it done by a Ray cluster; local starts one here")
    runs.add_argument(
        "--no-cache",
        action="store_true",
        help="read every run anew, and keep nothing (MLDEBUG_MCP_CACHE: a folder for what is kept, or off)",
    )
    add_reader(runs)
    runs.add_argument(
        "--read-at-most", type=count, default=20, metavar="N", help="runs that the reader reads (default 20)"
    )
    runs.add_argument(
        "--check", action="store_true", help="exit with 1 if a fault leads in any run, with 3 if none can be judged"
    )
    runs.set_defaults(command=do_runs)

    says = "say whether one kind of runs is better than another, or the difference is what seeds do"
    compare = verb(verbs, "compare", says)
    compare.add_argument("a", nargs="+", metavar="A", help="logs or run folders of the first kind, then --b or --")
    compare.add_argument("--b", nargs="+", metavar="B", required=True, help="those of the second kind")
    compare.add_argument("--metric", default="", metavar="NAME", help="default: evaluation loss, reward or score")
    compare.add_argument("--best", action="store_true", help="each run's best value instead of its last level")
    add_json(compare)
    compare.set_defaults(command=do_compare)


def with_sides_named(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of `compare A… -- B…` as `compare A… --b B…`: argparse drops a bare `--` between paths."""
    given = list(arguments)
    if given[:1] == ["compare"] and "--" in given and "--b" not in given:
        given[given.index("--")] = "--b"
    return given


def do_runs(options: argparse.Namespace) -> int:
    """Diagnose all runs of a folder."""
    from mldebug_mcp.judge.runs import cache_file, diagnose_runs
    from mldebug_mcp.logs.remote_files import is_remote

    if options.processes < 1:
        raise InputError("--processes: at least 1")
    cache, problems = None, []
    if not options.no_cache and not is_remote(options.path):
        try:
            cache = cache_file(options.path)
        except InputError as error:
            problems.append(str(error))
    with shown_progress():
        answer = diagnose_runs(
            options.path, processes=options.processes, cache=cache, ray=options.ray, reader=reader_from(options),
            read_at_most=options.read_at_most,
        )  # fmt: skip
    answer = answer.model_copy(update={"notes": [*answer.notes, *problems]})
    if options.html:
        from mldebug_mcp.report.pages import write_runs_html

        write_runs_html(answer, options.html)
    if options.csv:
        _write_csv(answer, Path(options.csv))
    if options.json:
        print_json(answer)
    else:
        from mldebug_mcp.report.console import console_for
        from mldebug_mcp.report.runs_terminal import MAX_TABLE_ROWS, print_runs

        print_runs(console_for(), answer, len(answer.rows) if options.all else MAX_TABLE_ROWS)
    glance = answer.at_a_glance
    return checked(
        options,
        found=any(row.is_sick for row in answer.rows),
        judged=glance is None or glance.kind != "not judged",
    )


def do_compare(options: argparse.Namespace) -> int:
    """Compare two kinds of runs."""
    from mldebug_mcp.cli.inputs import matching
    from mldebug_mcp.judge.group_comparison import compare_runs

    with shown_progress():
        answer = compare_runs(matching(options.a), matching(options.b), options.metric, best=options.best)
    if options.json:
        print_json(answer)
    else:
        from mldebug_mcp.report.console import console_for
        from mldebug_mcp.report.runs_terminal import print_contest

        print_contest(console_for(), answer)
    return DONE


def _write_csv(answer: Runs, file: Path) -> None:
    varied = {name: None for row in answer.rows for name in row.settings}
    rows = [
        row.model_dump(mode="json", exclude={"settings"})
        | {"seen": " ".join(row.seen)}
        | {f"setting {name}": row.settings.get(name) for name in varied}
        for row in answer.rows
    ]
    try:
        with file.open("w", encoding="utf-8", newline="") as out:
            writer = csv.DictWriter(out, list(rows[0]))
            writer.writeheader()
            writer.writerows({name: _harmless(value) for name, value in row.items()} for row in rows)
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror}); name another file") from None


def _harmless(value: object) -> object:
    """Return a cell that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value


# The command `rows`: which rows were in the batch of a step.


_SETTINGS = (
    "sampler", "seed", "batch_size", "accumulation", "world", "rows", "drop_last", "split_batches", "dispatch_batches",
    "past_end", "first_step", "resumed_at",
)  # fmt: skip


def add_rows(verbs: Commands) -> None:
    """Add the command."""
    rows = verb(verbs, "rows", "say which rows of the data were in the batch of a step, and what is odd in them")
    rows.add_argument("path", metavar="PATH", help="a run folder, a log or a recording")
    rows.add_argument("--step", type=int, required=True, metavar="N", help="the step, as the log numbers it")
    rows.add_argument("--data", metavar="DATA", help="the training data as the sampler saw them, to show the rows")
    rows.add_argument("--tokenizer", metavar="T", help="the tokenizer's folder or tokenizer.json, to decode them")
    rows.add_argument(
        "--sampler",
        choices=("transformers", "accelerate", "lightning", "distributed", "random", "shuffle", "sequential"),
        help="how rows were sampled, where no recording and no training_args.bin tells; random: RandomSampler with a "
        "seeded generator, shuffle: DataLoader(shuffle=True, generator=…)",
    )
    rows.add_argument("--seed", type=int, help="what the sampler was seeded with")
    rows.add_argument("--batch-size", type=int, metavar="N", help="rows of a micro-batch of one rank")
    rows.add_argument("--accumulation", type=int, metavar="N", help="micro-batches of a step (default 1)")
    rows.add_argument("--world", type=int, metavar="N", help="ranks that rows are divided among (default 1)")
    rows.add_argument("--rows", type=int, metavar="N", help="rows of the data (default: counted in --data)")
    rows.add_argument("--drop-last", action="store_true", default=None, help="a last, smaller batch is left out")
    rows.add_argument("--split-batches", action="store_true", default=None, help="as Accelerate's setting")
    rows.add_argument("--dispatch-batches", action="store_true", default=None, help="as Accelerate's setting")
    rows.add_argument(
        "--past-end", choices=("step", "carry"),
        help="micro-batches left at the end of a pass make a smaller step, or go into the next one",
    )  # fmt: skip
    rows.add_argument("--first-step", type=int, choices=(0, 1), help="the number of the log's first step")
    rows.add_argument(
        "--resumed-at", type=_resumed_at, action="append", metavar="N",
        help="a step after which a resumed run began its pass anew (ignore_data_skip), or none; repeatable",
    )  # fmt: skip
    add_json(rows)
    rows.set_defaults(command=do_rows)


def _resumed_at(text: str) -> int | None:
    if text == "none":
        return None
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a step nor none") from None


def do_rows(options: argparse.Namespace) -> int:
    """Tell the rows of a step."""
    from mldebug_mcp.judge.rows import rows_at

    settings = {name: getattr(options, name) for name in _SETTINGS}
    if options.resumed_at is not None:
        settings["resumed_at"] = [step for step in options.resumed_at if step is not None]
    with shown_progress():
        answer = rows_at(options.path, options.step, options.data, options.tokenizer, **settings)
    if options.json:
        print(answer.to_json(indent=2))
    else:
        from mldebug_mcp.report.console import console_for
        from mldebug_mcp.report.data_terminal import print_rows

        print_rows(console_for(), answer)
    return DONE
