"""The command `rows`: which rows were in the batch of a step."""

from __future__ import annotations

import argparse

from mldebug_mcp.cli.progress import shown_progress
from mldebug_mcp.cli.verbs import DONE, Commands, add_json, verb

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
        "--resumed-at", type=int, action="append", metavar="N",
        help="a step after which a resumed run began its pass anew (ignore_data_skip); repeatable",
    )  # fmt: skip
    add_json(rows)
    rows.set_defaults(command=do_rows)


def do_rows(options: argparse.Namespace) -> int:
    """Tell the rows of a step."""
    from mldebug_mcp.diagnose.rows import rows_at

    settings = {name: getattr(options, name) for name in _SETTINGS}
    with shown_progress():
        answer = rows_at(options.path, options.step, options.data, options.tokenizer, **settings)
    if options.json:
        print(answer.to_json(indent=2))
    else:
        from mldebug_mcp.report.console import console_for
        from mldebug_mcp.report.rows_terminal import print_rows

        print_rows(console_for(), answer)
    return DONE
