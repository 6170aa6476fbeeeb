"""The commands on the memory of a GPU: `memory`, what filled it, and `estimate`, what training will take."""

from __future__ import annotations

import argparse

from mldebug_mcp.cli.progress import shown_progress
from mldebug_mcp.cli.verbs import DONE, FOUND, Commands, add_json, print_json, verb


def add_memory(verbs: Commands) -> None:
    """Add the command with its options."""
    memory = verb(verbs, "memory", "say what filled the GPU, what leaks and why it ran out, from a memory snapshot")
    memory.add_argument(
        "path",
        metavar="PATH",
        help="a snapshot's pickle (or .gz), or a text with an out-of-memory message, memory_summary() or nvidia-smi",
    )
    memory.add_argument("--against", metavar="OTHER", help="an earlier snapshot to compare with")
    memory.add_argument(
        "--focus", metavar="ID", help="the id of a call site or a category: list only that, with whole stacks"
    )
    memory.add_argument("--png", metavar="FILE", help="also draw the timeline, stacked by category")
    memory.add_argument("--html", metavar="FILE", help="also write the whole report as a web page")
    memory.add_argument("--check", action="store_true", help="exit with 1 if a finding is an error or a warning")
    add_json(memory)
    memory.set_defaults(command=do_memory)


def do_memory(options: argparse.Namespace) -> int:
    """Check a memory snapshot."""
    from mldebug_mcp.diagnose.memory import report
    from mldebug_mcp.memory.read import read_memory

    with shown_progress():
        snapshot = read_memory(options.path)
        answer = report(snapshot, read_memory(options.against) if options.against else None, options.focus)
    if options.png:
        from mldebug_mcp.report.memory_plot import plot_memory

        plot_memory(snapshot, options.png)
    if options.html:
        from mldebug_mcp.report.memory_html import write_memory_html

        write_memory_html(snapshot, answer, options.html)
    if options.json:
        print_json(answer)
    else:
        from mldebug_mcp.report.console import console_for
        from mldebug_mcp.report.memory_terminal import print_memory

        print_memory(console_for(), answer)
    worth_acting_on = any(one.severity != "info" for one in answer.findings)
    return FOUND if options.check and worth_acting_on else DONE


def add_estimate(verbs: Commands) -> None:
    """Add the command with its options."""
    estimate = verb(verbs, "estimate", "estimate the memory of training a model, from its config.json")
    estimate.add_argument("config", metavar="CONFIG", help="the model's config.json or its folder")
    estimate.add_argument("--batch-size", type=int, default=1, help="rows per device and forward pass (default 1)")
    estimate.add_argument(
        "--length", type=int, help="tokens per row (default: the longest the model takes, 2048 at most)"
    )
    estimate.add_argument("--precision", default="mixed", help="mixed, bf16, fp16 or fp32 (default mixed)")
    estimate.add_argument(
        "--optimizer", default="adamw", help="adamw, adamw_8bit, lion, sgd, sgd_momentum or adafactor (default adamw)"
    )
    estimate.add_argument("--checkpointing", default="none", help="none, selective or full (default none)")
    estimate.add_argument("--attention", default="flash", help="flash or eager (default flash)")
    estimate.add_argument("--accumulation", type=int, default=1, help="micro-batches per step (default 1)")
    estimate.add_argument("--devices", type=int, default=1, help="devices that --sharding splits over (default 1)")
    estimate.add_argument("--sharding", default="none", help="none, zero1, zero2 or zero3 (FSDP) (default none)")
    estimate.add_argument(
        "--tensor-parallel", type=int, default=1, help="devices among which each layer is split (default 1)"
    )
    estimate.add_argument(
        "--pipeline-parallel", type=int, default=1, help="stages in which the layers are split (default 1)"
    )
    estimate.add_argument(
        "--gpu", help="its GiB (24) or a name (H100, A100-80GB, 4090, T4): whether it fits, and what would make it"
    )
    estimate.add_argument("--lora-rank", type=int, help="LoRA rank, if only adapters are trained")
    estimate.add_argument(
        "--frozen", help="how a LoRA's frozen base is held: 32bit, 16bit, 8bit or 4bit (QLoRA) (default 16bit)"
    )
    estimate.add_argument(
        "--chunked-loss", action="store_true", help="a fused or chunked loss, which never holds all logits"
    )
    estimate.add_argument("--snapshot", metavar="PATH", help="a memory snapshot, to show its peak beside the estimate")
    add_json(estimate)
    estimate.set_defaults(command=do_estimate)


def do_estimate(options: argparse.Namespace) -> int:
    """Estimate training memory."""
    from mldebug_mcp.memory.estimate import estimate_memory

    settings = {name: value for name, value in vars(options).items() if name not in ("command", "json", "config")}
    answer = estimate_memory(options.config, **settings)
    if options.json:
        print_json(answer)
    else:
        from mldebug_mcp.report.console import console_for
        from mldebug_mcp.report.memory_terminal import print_estimate

        print_estimate(console_for(), answer)
    return DONE
