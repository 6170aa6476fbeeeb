"""The commands on what a run is made of: its data, what can be memorised, the memory of a GPU, and its script."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from mldebug_mcp import __version__
from mldebug_mcp.cli.commands import (
    EXIT_DONE,
    EXIT_FOUND,
    EXIT_UNUSABLE,
    Commands,
    OncePerName,
    add_json,
    checked,
    print_answer,
    save_view,
    shown_progress,
    verb,
)
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import percent

if TYPE_CHECKING:
    from mldebug_mcp.models.script import ReviewPlace, ScriptFinding, ScriptReport

# The commands on data: `batch`, what is trained on, and `probe`, whether it can be memorised.


def add_batch(verbs: Commands) -> None:
    """Add the command with its options."""
    batch = verb(verbs, "batch", "say what a tokenized batch or data set really trains the model on")
    batch.add_argument(
        "path",
        metavar="PATH",
        help="JSON, JSONL, CSV, parquet, Arrow or save_to_disk folder, safetensors, npz, .pt, a tokenized corpus, or a "
        "text with a printed batch",
    )
    batch.add_argument(
        "--tokenizer", metavar="T", help="the tokenizer's folder or tokenizer.json; text is read as words without it"
    )
    batch.add_argument("--model", metavar="CONFIG", help="the model's config.json")
    batch.add_argument(
        "--purpose",
        metavar="P",
        default="auto",
        help="sft, pretraining, dpo, kto, generation, classification, embedding, vlm or auto (default: auto, inferred)",
    )
    batch.add_argument("--sample", metavar="N", type=int, help="look at about N rows only, spread evenly")
    batch.add_argument("--against", metavar="EVAL", help="the evaluation split: look for rows that are in both")
    batch.add_argument(
        "--ray", metavar="ADDRESS", help="pass over the data as a Ray Data job there (local starts Ray on this machine)"
    )
    batch.add_argument(
        "--format", metavar="F", default="", help="the file's format, such as tokens or megatron (default: inferred)"
    )
    batch.add_argument(
        "--dtype",
        metavar="D",
        default="",
        help="the type of raw token ids: uint16, int64, >u2 (default: inferred)",
    )
    batch.add_argument(
        "--names",
        metavar="NAME=COLUMN",
        dest="column_names",
        action=OncePerName,
        type=_pair,
        default={},
        help="which column of the file is input_ids, labels, ...: input_ids=my_tokens (repeatable)",
    )
    batch.add_argument("--html", metavar="FILE", help="also write the inspection as a web page")
    batch.add_argument("--check", action="store_true", help="exit with 1 if a finding is an error or a warning")
    add_json(batch)
    batch.set_defaults(command=do_batch)


def _pair(text: str) -> tuple[str, str]:
    """Return the two sides of NAME=COLUMN. Raises ValueError, which argparse reports, without such a sign."""
    name, sign, column = text.partition("=")
    if not (sign and name and column):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=COLUMN, such as input_ids=my_tokens")
    return name, column


def do_batch(options: argparse.Namespace) -> int:
    """Inspect a batch or data set."""
    from mldebug_mcp.judge.batch import inspect_batch

    with shown_progress():
        answer = inspect_batch(
            options.path,
            options.tokenizer,
            options.model,
            options.purpose,
            sample=options.sample,
            against=options.against,
            ray=options.ray,
            format=options.format,
            dtype=options.dtype,
            names=options.column_names,
        )
    save_view(options.html, "pages.page", answer)
    print_answer(answer, options, "data_terminal.print_inspection")
    return EXIT_FOUND if options.check and any(finding.severity != "info" for finding in answer.findings) else EXIT_DONE


def add_probe(verbs: Commands) -> None:
    """Add the command with its options."""
    parser = verb(verbs, "probe", "try to memorise one batch, and say what stands in the way")
    parser.add_argument("batch", nargs="?", metavar="BATCH", help="a batch file; needed unless --entry is given")
    parser.add_argument(
        "--model", metavar="CONFIG", help="a model's config.json, built scaled down instead of a tiny one"
    )
    parser.add_argument(
        "--entry",
        metavar="FILE.py:function",
        help="a function of yours, which is run; it returns an object or a dict with model, batch and "
        "loss (a function of model and batch), optionally optimizer and train_step",
    )
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
        "--time-limit",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="limit without the import of torch (default 60)",
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
    from mldebug_mcp.judge.probe import is_sound, probe_overfit
    from mldebug_mcp.report.data_terminal import show_progress

    settings = {
        name: getattr(options, name)
        for name in ("device", "dtype", "steps", "learning_rate", "optimizer", "time_limit")
    }
    with show_progress() as on_progress:
        answer = probe_overfit(
            options.batch, options.model, options.entry, options.python,
            memory_gb=options.memory_limit, on_progress=on_progress, **settings,
        )  # fmt: skip
    save_view(options.plot, "chart.draw_probe", answer)
    print_answer(answer, options, "data_terminal.print_probe")
    if answer.verdict == "failed":
        return EXIT_UNUSABLE
    return EXIT_FOUND if options.check and not is_sound(answer) else EXIT_DONE


# The commands on the memory of a GPU: `memory`, what filled it, and `estimate`, what training will take.


def add_memory(verbs: Commands) -> None:
    """Add the command with its options."""
    memory = verb(verbs, "memory", "say what filled the GPU, what leaks and why it ran out, from a memory snapshot")
    memory.add_argument(
        "path",
        metavar="PATH",
        help="a snapshot's pickle, JAX's device memory profile, a memory timeline of torch.profiler (JSON), or a text "
        "with an out-of-memory message, memory_summary(), nvidia-smi or printed numbers; each may be gzipped",
    )
    memory.add_argument("--against", metavar="OTHER", help="an earlier snapshot or profile to compare with")
    memory.add_argument(
        "--focus", metavar="ID", help="the id of a call site or a category: list only that, with whole stacks"
    )
    memory.add_argument("--png", metavar="FILE", help="also draw the timeline, stacked by category")
    memory.add_argument("--html", metavar="FILE", help="also write the whole report as a web page")
    memory.add_argument(
        "--check",
        action="store_true",
        help="exit with 1 if a finding is an error or a warning, with 3 if nothing can be judged",
    )
    add_json(memory)
    memory.set_defaults(command=do_memory)


def do_memory(options: argparse.Namespace) -> int:
    """Check a memory snapshot."""
    from mldebug_mcp.judge.memory import report
    from mldebug_mcp.memory.read import read_memory

    with shown_progress():
        snapshot = read_memory(options.path)
        answer = report(snapshot, read_memory(options.against) if options.against else None, options.focus)
    save_view(options.png, "pages.memory_png", snapshot)
    save_view(options.html, "pages.memory_html", snapshot, answer)
    print_answer(answer, options, "data_terminal.print_memory")
    worth_acting_on = any(finding.severity != "info" for finding in answer.findings)
    judged = answer.at_a_glance is None or answer.at_a_glance.kind != "not judged"
    return checked(options, found=worth_acting_on, judged=judged)


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
        "--optimizer",
        default="adamw",
        help="adamw, adamw_fused, adamw_8bit, adamw_4bit, adamw_fp8, paged_adamw, paged_adamw_8bit, lion, lion_8bit, "
        "paged_lion_8bit, sgd, sgd_momentum or adafactor (default adamw)",
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
    estimate.add_argument(
        "--offload", default="none", help="what lies on the CPU: none, optimizer or parameters (default none)"
    )
    estimate.add_argument(
        "--optimizer-in-backward",
        action="store_true",
        help="each parameter is stepped when its gradient is there, which is freed then",
    )
    estimate.add_argument("--snapshot", metavar="PATH", help="a memory snapshot, to show its peak next to the estimate")
    add_json(estimate)
    estimate.set_defaults(command=do_estimate)


def do_estimate(options: argparse.Namespace) -> int:
    """Estimate training memory."""
    from mldebug_mcp.memory.estimate import estimate_memory

    settings = {name: value for name, value in vars(options).items() if name not in ("command", "json", "config")}
    answer = estimate_memory(options.config, **settings)
    print_answer(answer, options, "data_terminal.print_estimate")
    return EXIT_DONE


# The command on training scripts: `script`, what is wrong in one, read and never run.


LEVELS = {"certain": "error", "likely": "warning", "depends": "note"}
"""What SARIF and GitHub call the certainties; GitHub says "notice" for a note."""


def add_script(verbs: Commands) -> None:
    """Add the command with its options."""
    script = verb(verbs, "script", "say what is wrong in a training script, which is read and never run")
    script.add_argument("paths", metavar="PATH", nargs="+", help="Python files, or folders of them")
    script.add_argument(
        "--format", choices=("text", "json", "sarif", "github"), default="text",
        help="github: annotations of a workflow; sarif: for code scanning (default text)",
    )  # fmt: skip
    script.add_argument("--json", action="store_const", const="json", dest="format", help="the same as --format json")
    script.add_argument("--check", action="store_true", help="exit with 1 if a finding is certain or likely")
    script.add_argument(
        "--places", action="store_true", help="print the questions of a review, each with the lines that may answer it"
    )
    script.add_argument(
        "--reader", metavar="COMMAND", dest="script_reader",
        help="a command that reads the scripts as well, such as 'claude -p': it gets them whole on its input; no "
        "command is taken from the environment",
    )  # fmt: skip
    script.set_defaults(command=do_script)


def do_script(options: argparse.Namespace) -> int:
    """Inspect scripts; a path that cannot be read leaves the findings of the others as they are.

    Raises:
        InputError: none of the paths can be read.
    """
    reports, problems = _scripts_inspected(options)
    findings = [finding for report in reports for finding in report.findings]
    if options.format == "sarif":
        print(json.dumps(sarif(findings), indent=2))
    elif options.format == "github":
        print("\n".join(map(annotation, findings)))
    elif options.format == "json":
        texts = [report.to_json(indent=2) for report in reports]
        print(texts[0] if len(options.paths) == 1 else f"[{', '.join(texts)}]")
    else:
        for report in reports:
            _print_script(report, places=options.places)
    if options.format in ("sarif", "github"):  # which have no place for them
        problems = [*(note for report in reports for note in report.notes), *problems]
    for problem in problems:
        print(f"note: {problem}", file=sys.stderr)
    sure = any(finding.certainty != "depends" for finding in findings)
    if options.check and sure:
        return EXIT_FOUND
    return EXIT_UNUSABLE if len(reports) < len(options.paths) else EXIT_DONE


def _scripts_inspected(options: argparse.Namespace) -> tuple[list[ScriptReport], list[str]]:
    """Return what is found at each path, and what is wrong with those that cannot be read."""
    from mldebug_mcp.judge.script import inspect_script

    reports: list[ScriptReport] = []
    problems: list[str] = []
    with shown_progress():
        for path in options.paths:
            try:
                reports.append(inspect_script(path, options.script_reader))
            except InputError as error:
                problems.append(str(error))
                if len(problems) == len(options.paths):
                    raise
    return reports, problems


def _print_script(report: ScriptReport, *, places: bool) -> None:
    from mldebug_mcp.report.console import console_for, print_first

    print_first(console_for(), report.at_a_glance)
    print("\n".join(lines_of(report)))
    if places:
        print("\n".join(f"{place.file}:{place.lines[0]}: {_question(place)}" for place in report.places))


def _question(place: ReviewPlace) -> str:
    others = f" (also lines {', '.join(map(str, place.lines[1:]))})" if len(place.lines) > 1 else ""
    return f"{place.question}{others}"


def lines_of(report: ScriptReport) -> list[str]:
    """Return the answer as lines."""
    lines = []
    for finding in report.findings:
        reader = "" if finding.probability is None else f" (reader {percent(finding.probability)})"
        lines += [
            f"{finding.file}:{finding.line}: {finding.certainty}{reader}: {finding.summary} [{finding.cause}]",
            f"    in a log: {finding.shows}",
            f"    fix: {finding.fix}",
        ]
    if report.ruled_out:
        lines.append(
            f"done right: {', '.join(f'{ruled_out.summary} (line {ruled_out.line})' for ruled_out in report.ruled_out)}"
        )
    return [*lines, *(f"note: {note}" for note in report.notes)]


def annotation(script_finding: ScriptFinding) -> str:
    """Return a finding as a workflow command of GitHub Actions."""
    level = LEVELS[script_finding.certainty].replace("note", "notice")
    text = f"{script_finding.summary}. Fix: {script_finding.fix}"
    for sign, code in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A")):
        text = text.replace(sign, code)
    file = script_finding.file
    for sign, code in (("%", "%25"), (":", "%3A"), (",", "%2C"), ("\n", "%0A")):
        file = file.replace(sign, code)
    return f"::{level} file={file},line={script_finding.line},title=mldebug {script_finding.rule}::{text}"


def uri_of(file: str) -> str:
    """Return the URI of a file: relative to the working folder where it is below that, as code scanning asks."""
    path = Path(file).absolute()
    below = path.is_relative_to(Path.cwd())
    return quote(path.relative_to(Path.cwd()).as_posix()) if below else path.as_uri()


def sarif(findings: list[ScriptFinding]) -> dict[str, Any]:
    """Return findings as SARIF 2.1.0, the format of code scanning (OASIS)."""
    rules = {finding.rule: finding for finding in findings}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "mldebug-mcp",
                        "version": __version__,
                        "rules": [
                            {
                                "id": name,
                                "shortDescription": {"text": script_finding.cause},
                                "help": {"text": f"In a log: {script_finding.shows}. Fix: {script_finding.fix}."},
                            }
                            for name, script_finding in rules.items()
                        ],
                    }
                },
                "results": [
                    {
                        "ruleId": finding.rule,
                        "level": LEVELS[finding.certainty],
                        "message": {"text": finding.summary},
                        "locations": [
                            {
                                "physicalLocation": {
                                    "artifactLocation": {"uri": uri_of(finding.file)},
                                    "region": {"startLine": finding.line},
                                }
                            }
                        ],
                    }
                    for finding in findings
                ],
            }
        ],
    }
