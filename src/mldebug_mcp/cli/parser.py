"""The commands and their options."""

from __future__ import annotations

import argparse
from typing import NoReturn

from mldebug_mcp import __version__
from mldebug_mcp.cli import commands
from mldebug_mcp.cli.rows import add_rows
from mldebug_mcp.cli.runs import add_runs
from mldebug_mcp.cli.verbs import Commands, add_json, verb
from mldebug_mcp.clients.table import CLIENTS
from mldebug_mcp.text import LONGEST_ERROR, shorten


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are safe to print: a shell may have put the name of any file into its arguments."""

    def error(self, message: str) -> NoReturn:
        super().error(shorten(message, LONGEST_ERROR))


def make_parser() -> argparse.ArgumentParser:
    """Return the parser; each command sets `command` to the function that does it."""
    parser: argparse.ArgumentParser = _Parser(
        prog="mldebug-mcp",
        description="Why did my loss spike? Ranked, cited hypotheses for a training run that went wrong. "
        "Without a command: the MCP server over stdio.",
    )
    parser.add_argument("--version", action="version", version=f"mldebug-mcp {__version__}")
    _add_access(parser)
    parser.set_defaults(command=commands.do_serve)
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND")

    _add_diagnose(verbs)
    _add_read(verbs)
    _add_open(verbs)
    add_runs(verbs)
    _add_watch(verbs)
    _add_batch(verbs)
    add_rows(verbs)
    _add_search(verbs)

    explain = verb(verbs, "explain", "print a symptom, cause, quote or source, whole")
    explain.add_argument("id", help="an id from an answer, such as loss_spike or lr_too_high")
    add_json(explain)
    explain.set_defaults(command=commands.do_explain)

    error = verb(verbs, "error", "say what an error message means and what to do")
    error.add_argument("text", nargs="+", help="the message, a log file, or - for standard input")
    add_json(error)
    error.set_defaults(command=commands.do_error)

    _add_evidence(verbs)
    _add_memory(verbs)
    _add_estimate(verbs)
    _add_probe(verbs)
    _add_install(verbs)
    _add_serve(verbs)
    _add_help(verbs, parser)
    return parser


def _add_help(verbs: Commands, parser: argparse.ArgumentParser) -> None:
    help_on = verb(verbs, "help", "show the commands, or the options of one")
    help_on.add_argument("topic", metavar="COMMAND", nargs="?", choices=list(verbs.choices), help="one of the commands")
    help_on.set_defaults(command=lambda options: commands.do_help(verbs.choices.get(options.topic, parser)))


def _add_access(parser: argparse.ArgumentParser) -> None:
    """Add what the server may read and run. No default, so that `serve` does not undo options given before it."""
    parser.add_argument(
        "--root", action="append", metavar="DIR", default=argparse.SUPPRESS, dest="server_roots",
        help="for the server: a folder that it may read; repeatable "
        "(default: MLDEBUG_MCP_ROOTS, else the working directory)",
    )  # fmt: skip
    parser.add_argument(
        "--python", action="append", metavar="PATH", default=argparse.SUPPRESS, dest="server_pythons",
        help="for the server: an interpreter or environment outside its roots that a probe may run; repeatable",
    )  # fmt: skip


def _add_diagnose(verbs: Commands) -> None:
    diagnose = verb(verbs, "diagnose", "say what is seen in a training log, what it may be and what to check next")
    diagnose.add_argument(
        "paths", metavar="PATH", nargs="+",
        help="a log file or a run folder; - reads standard input. Several, or a quoted pattern such as "
        "'runs/*/log.jsonl', are answered in a line each",
    )  # fmt: skip
    _add_reading(diagnose)
    diagnose.add_argument("--short", action="store_true", help="a line for each run: what leads, and what is seen")
    diagnose.add_argument("--reference", metavar="PATH", help="a run that went well, to compare with")
    diagnose.add_argument(
        "--outcome", action="append", metavar="CHECK=OUTCOME", default=[], dest="outcomes", type=_outcome,
        help="how a check of an earlier diagnosis turned out, such as bad_batch.1=refutes (or =confirms); repeatable",
    )  # fmt: skip
    diagnose.add_argument("--png", metavar="FILE", help="also draw the curves with what is seen in them")
    diagnose.add_argument("--html", metavar="FILE", help="also write the diagnosis as a web page, curves included")
    diagnose.add_argument("--long", action="store_true", help="print all of it, not one screen")
    diagnose.add_argument("--bits", action="store_true", help="say how much each finding speaks for a cause, in bits")
    diagnose.add_argument("--check", action="store_true", help="exit with 1 unless `healthy` leads the hypotheses")
    add_json(diagnose)
    diagnose.set_defaults(command=commands.do_diagnose)


def _add_reading(verb: argparse.ArgumentParser) -> None:
    """Add what says which run of a path is read, and how."""
    verb.add_argument("--config", metavar="FILE", help="its configuration (JSON or YAML), if not beside the log")
    verb.add_argument("--run", metavar="NAME", default="", help="which run, where PATH holds several, or 'attempt N'")
    verb.add_argument(
        "--map", type=_names, default={}, metavar="NAME=METRIC,…", dest="names",
        help="what names in the log mean that do not say it, such as L=loss,gn=grad_norm",
    )  # fmt: skip


def _names(text: str) -> dict[str, str]:
    pairs = [pair.rpartition("=") for pair in text.split(",")]
    if not all(name.strip() and metric.strip() for name, _, metric in pairs):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=METRIC,NAME=METRIC, such as L=loss")
    return {name.strip(): metric.strip() for name, _, metric in pairs}


def _add_read(verbs: Commands) -> None:
    read = verb(verbs, "read", "print the values of metrics of a log, thinned so that extremes survive")
    read.add_argument("path", metavar="PATH", help="a log file or a run folder; - reads standard input")
    read.add_argument("metrics", nargs="*", metavar="NAME", help="as logged (train/loss) or a role (loss, grad_norm)")
    _add_reading(read)
    read.add_argument("--first", type=float, metavar="STEP", help="the first step")
    read.add_argument("--last", type=float, metavar="STEP", help="the last step")
    read.add_argument("--points", type=_count, default=60, metavar="N", help="about how many points of each curve")
    add_json(read)
    read.set_defaults(command=commands.do_read)


def _add_watch(verbs: Commands) -> None:
    watch = verb(verbs, "watch", "look at a run that is still going again and again, and tell what is new")
    watch.add_argument("path", metavar="PATH", help="a log file or a run folder; it may come into being later")
    _add_reading(watch)
    watch.add_argument(
        "--every", type=_positive, default=30.0, metavar="SECONDS", help="seconds between two looks (default 30)"
    )
    watch.add_argument("--for", type=_positive, metavar="MINUTES", dest="minutes", help="stop after so many minutes")
    watch.add_argument(
        "--until-alarm", action="store_true",
        help="exit with 1 once another cause than `healthy` leads at two looks, or no loss is found at two",
    )  # fmt: skip
    watch.add_argument(
        "--on-alarm", metavar="COMMAND",
        help="run this command of the shell at an alarm; it gets the alarm as JSON on its input and in MLDEBUG_TEXT",
    )  # fmt: skip
    watch.add_argument("--notify", action="store_true", help="show an alarm on the desktop, too")
    watch.add_argument("--json", action="store_true", help="print each piece of news as a line of JSON")
    watch.set_defaults(command=commands.do_watch)


def _add_open(verbs: Commands) -> None:
    opened = verb(verbs, "open", "show the diagnosis in the browser, anew as the run goes on")
    opened.add_argument("path", metavar="PATH", help="a log file or a run folder; it may come into being later")
    _add_reading(opened)
    opened.add_argument("--reference", metavar="PATH", help="a run that went well, to compare with")
    opened.add_argument(
        "--no-browser", action="store_false", dest="browser", help="only print the address, for a browser of your own"
    )
    opened.set_defaults(command=commands.do_open)


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return value


def _outcome(text: str) -> tuple[str, str]:
    check, equals, outcome = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} has no outcome; write CHECK=confirms or CHECK=refutes")
    return check, outcome


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 up")
    return int(text)


def _add_search(verbs: Commands) -> None:
    search = verb(verbs, "search", "find what practitioners said, verbatim and cited")
    search.add_argument("query", nargs="+", help="a question or keywords")
    search.add_argument(
        "--domain", help="only this domain: general, llm, rl, vision, diffusion, vlm, distributed, memory"
    )
    search.add_argument("--topic", help="only this topic, such as loss_spike")
    search.add_argument(
        "--kind",
        choices=["quote", "cause", "symptom", "error", "menu", "any"],
        default="any",
        help="only entries of this kind (default any)",
    )
    search.add_argument("--limit", type=_count, default=5, help="at most this many quotes (default 5)")
    add_json(search)
    search.set_defaults(command=commands.do_search)


def _add_evidence(verbs: Commands) -> None:
    evidence = verb(verbs, "evidence", "check the records that all quotes come from")
    actions = evidence.add_subparsers(title="actions", metavar="ACTION", required=True)
    verify = actions.add_parser(
        "verify", help="check the records against each other, or each quote against its source; changes nothing"
    )
    verify.add_argument(
        "--copies", metavar="DIR", help="a folder with copies of the originals, read instead of the web"
    )
    network = verify.add_mutually_exclusive_group()
    network.add_argument("--online", action="store_true", help="fetch each source, and look for the quote in it")
    network.add_argument("--offline", action="store_true", help="only check the records against each other (default)")
    verify.add_argument("--check", action="store_true", help="exit with 1 if a quote changed or the records disagree")
    add_json(verify)
    verify.set_defaults(command=commands.do_verify)


def _add_batch(verbs: Commands) -> None:
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
    batch.set_defaults(command=commands.do_batch)


def _add_memory(verbs: Commands) -> None:
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
    memory.set_defaults(command=commands.do_memory)


def _add_estimate(verbs: Commands) -> None:
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
    estimate.add_argument("--lora-rank", type=int, help="LoRA rank, if only adapters are trained")
    estimate.add_argument(
        "--frozen", help="how a LoRA's frozen base is held: 32bit, 16bit, 8bit or 4bit (QLoRA) (default 16bit)"
    )
    estimate.add_argument(
        "--chunked-loss", action="store_true", help="a fused or chunked loss, which never holds all logits"
    )
    estimate.add_argument("--snapshot", metavar="PATH", help="a memory snapshot, to show its peak beside the estimate")
    add_json(estimate)
    estimate.set_defaults(command=commands.do_estimate)


def _add_probe(verbs: Commands) -> None:
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
    parser.set_defaults(command=commands.do_probe)


def _add_install(verbs: Commands) -> None:
    install = verbs.add_parser(
        "install",
        help="put the MCP server into a client's configuration",
        description="Put the MCP server into a client's configuration, or print what to put there. Other entries and "
        "comments stay, the file as it was is kept as a backup, and a second run finds nothing to do.",
        epilog="The command written is the absolute path of the mldebug-mcp that is running (in its virtual "
        "environment, pipx or uv folder), because clients do not see your PATH; run through uvx, it is the command of "
        "uvx. Claude Code's user configuration is changed by `claude mcp add`; without `claude` on PATH, .mcp.json in "
        "the working directory is written.",
    )
    install.add_argument("client", metavar="CLIENT", choices=list(CLIENTS), help=", ".join(CLIENTS))
    install.add_argument(
        "--print", action="store_true", help="print the configuration and where it goes; write nothing"
    )
    install.add_argument(
        "--scope",
        choices=("user", "project"),
        help="user: for all your projects; project: in the working directory's own file (default user)",
    )
    install.add_argument(
        "--root",
        metavar="DIR",
        action="append",
        default=[],
        help="a folder that the server may read; repeat for more (default: the folder in which the client starts it)",
    )
    install.add_argument("--name", default="mldebug", help="the server's name in the client (default mldebug)")
    install.set_defaults(command=commands.do_install)


def _add_serve(verbs: Commands) -> None:
    serve = verb(verbs, "serve", "run the MCP server, over stdio (as without a command) or over HTTP")
    serve.set_defaults(command=commands.do_serve)
    _add_access(serve)
    serve.add_argument("--http", action="store_true", help="over streamable HTTP, with a bearer token")
    http = serve.add_argument_group("with --http")
    http.add_argument("--host", metavar="ADDRESS", help="the address to listen at (default 127.0.0.1: this machine)")
    http.add_argument("--port", type=int, help="the port (default 8765; 0: any free port)")
    http.add_argument(
        "--token",
        help="the bearer token (default: the variable MLDEBUG_MCP_TOKEN, which other users cannot see; else a new one)",
    )
    http.add_argument(
        "--allowed-host",
        dest="allowed_hosts",
        metavar="NAME",
        action="append",
        help="a name, with or without port, that clients call besides localhost; may be given several times",
    )
    http.add_argument(
        "--allowed-origin",
        dest="allowed_origins",
        metavar="ORIGIN",
        action="append",
        help="an origin of web pages that may call, such as https://example.org; may be given several times",
    )
