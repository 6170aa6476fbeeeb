"""The commands on data: `batch`, what is trained on, and `probe`, whether it can be memorised."""

from __future__ import annotations

import argparse

from mldebug_mcp.cli.progress import shown_progress
from mldebug_mcp.cli.verbs import DONE, FOUND, UNUSABLE, Commands, add_json, print_json, verb


def add_batch(verbs: Commands) -> None:
    """Add the command with its options."""
    batch = verb(verbs, "batch", "say what a tokenized batch or data set really trains the model on")
    batch.add_argument(
        "path",
        metavar="PATH",
        help="JSON, JSONL, CSV, parquet, Arrow or save_to_disk folder, safetensors, npz, .pt or a .bin of token ids",
    )
    batch.add_argument(
        "--tokenizer", metavar="T", help="the tokenizer's folder or tokenizer.json; text is read as words without it"
    )
    batch.add_argument("--model", metavar="CONFIG", help="the model's config.json")
    batch.add_argument(
        "--purpose",
        metavar="P",
        default="auto",
        help="sft, pretraining, dpo, generation, classification, embedding, vlm or auto (default: auto, inferred)",
    )
    batch.add_argument("--sample", metavar="N", type=int, help="look at about N rows only, spread evenly")
    batch.add_argument("--against", metavar="EVAL", help="the evaluation split: look for rows that are in both")
    batch.add_argument(
        "--ray", metavar="ADDRESS", help="pass over the data as a Ray Data job there (local starts Ray on this machine)"
    )
    batch.add_argument("--html", metavar="FILE", help="also write the inspection as a web page")
    batch.add_argument("--check", action="store_true", help="exit with 1 if a finding is an error or a warning")
    add_json(batch)
    batch.set_defaults(command=do_batch)


def do_batch(options: argparse.Namespace) -> int:
    """Inspect a batch or data set."""
    from mldebug_mcp.diagnose.batch import inspect_batch

    with shown_progress():
        answer = inspect_batch(
            options.path,
            options.tokenizer,
            options.model,
            options.purpose,
            sample=options.sample,
            against=options.against,
            ray=options.ray,
        )
    if options.html:
        from mldebug_mcp.report.batch_html import write_page

        write_page(answer, options.html)
    if options.json:
        print_json(answer)
    else:
        from mldebug_mcp.report.batch_terminal import print_inspection
        from mldebug_mcp.report.console import console_for

        print_inspection(console_for(), answer)
    return FOUND if options.check and any(one.severity != "info" for one in answer.findings) else DONE


def add_probe(verbs: Commands) -> None:
    """Add the command with its options."""
    parser = verb(verbs, "probe", "try to memorise one batch, and say what stands in the way")
    parser.add_argument("batch", nargs="?", metavar="BATCH", help="a batch file; needed unless --entry is given")
    parser.add_argument(
        "--model", metavar="CONFIG", help="a model's config.json, built scaled down instead of a tiny one"
    )
    parser.add_argument("--entry", metavar="FILE.py:function", help="your own model, batch and loss; runs your code")
    parser.add_argument("--python", metavar="PATH", help="the interpreter or environment that has torch")
    parser.add_argument("--device", default="auto", help="auto (default), cpu, cuda, cuda:1, mps")
    parser.add_argument(
        "--dtype", choices=("float32", "bfloat16", "float16"), default="float32", help="precision (default float32)"
    )
    parser.add_argument("--steps", type=int, default=300, help="at most this many optimizer steps (default 300)")
    parser.add_argument("--lr", type=float, dest="learning_rate", help="learning rate (default: found by trying some)")
    parser.add_argument(
        "--optimizer", choices=("adamw", "adam", "sgd"), default="adamw", help="of the probe's own loop (default adamw)"
    )
    parser.add_argument(
        "--time-limit", type=float, default=60.0, metavar="SECONDS", help="stop after this long (default 60)"
    )
    parser.add_argument(
        "--memory-limit",
        type=float,
        metavar="GIB",
        help="stop beyond this much memory (default: four fifths of the machine's)",
    )
    parser.add_argument("--plot", metavar="PNG", help="write the loss curve as a picture (needs matplotlib)")
    parser.add_argument("--check", action="store_true", help="exit with 1 unless the batch is memorised and healthy")
    add_json(parser)
    parser.set_defaults(command=do_probe)


def do_probe(options: argparse.Namespace) -> int:
    """Probe whether a batch can be memorised."""
    from mldebug_mcp.diagnose.probe import is_sound, probe_overfit
    from mldebug_mcp.report.console import console_for
    from mldebug_mcp.report.probe_terminal import print_probe, show_progress

    settings = {
        name: getattr(options, name)
        for name in ("device", "dtype", "steps", "learning_rate", "optimizer", "time_limit")
    }
    with show_progress() as told:
        answer = probe_overfit(
            options.batch, options.model, options.entry, options.python,
            memory_gb=options.memory_limit, on_progress=told, **settings,
        )  # fmt: skip
    if options.plot:
        from mldebug_mcp.report.probe_plot import plot_probe

        plot_probe(answer, options.plot)
    if options.json:
        print_json(answer)
    else:
        print_probe(console_for(), answer)
    if answer.verdict == "failed":
        return UNUSABLE
    return FOUND if options.check and not is_sound(answer) else DONE
