"""The command line: a thin adapter over the library.

Each group of commands has a module of its own, with their options and what they do. Exit codes: 0 done, 1 something was
found (with --check), 2 the input cannot be used.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import gc
import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from mldebug_mcp import __version__
from mldebug_mcp.cli.commands import EXIT_DONE, EXIT_UNUSABLE, Commands, prefer, verb
from mldebug_mcp.cli.data import add_batch, add_estimate, add_memory, add_probe, add_script, do_probe
from mldebug_mcp.cli.knowledge import add_knowledge
from mldebug_mcp.cli.runs import (
    add_checkpoint,
    add_diagnose,
    add_open,
    add_read,
    add_record,
    add_rows,
    add_runs,
    add_watch,
    with_sides_named,
)
from mldebug_mcp.cli.serving import add_access, add_install, add_serve, do_serve
from mldebug_mcp.core.errors import InputError, MLDebugError
from mldebug_mcp.core.limits import OFFLINE
from mldebug_mcp.core.text import LONGEST_ERROR, did_you_mean, nearest, shorten

_LIGHT = {"OPENBLAS_NUM_THREADS": "1", "PYDANTIC_DISABLE_PLUGINS": "1"}
"""Settings that let numpy and pydantic start faster: no threads for linear algebra, no search for plugins."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    # Most of what is imported and read lives until the end: collecting garbage takes a twentieth of the time ...
    gc.set_threshold(250_000)
    codes = _codes_at_exit() if arguments is None else []
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # in the C locale a step's mark would end the command
            stream.reconfigure(errors="replace")
    if "_ARGCOMPLETE" in os.environ:  # the shell asks what may follow; this ends the process
        from argcomplete import autocomplete

        autocomplete(make_parser())
    words = with_sides_named(sys.argv[1:] if arguments is None else arguments)
    parser = make_parser(*words[:1])
    options = parsed(parser, words)
    if options.command is not do_serve and {"server_roots", "server_pythons"} & set(vars(options)):
        parser.error(
            "--root and --python before a command are for the server only; leave them out: other commands may read "
            "everything"
        )
    # For the libraries loaded in this process; used as a library, the package leaves the environment alone.
    os.environ |= OFFLINE
    if options.command not in (do_serve, do_probe):  # these start processes for the user, which would inherit it
        os.environ |= _LIGHT | os.environ
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        prefer(options)
        code = command(options)
        sys.stdout.flush()  # here and not at exit, where a closed pipe could not be told from an error
    except MLDebugError as error:
        message = error.with_options() if isinstance(error, InputError) else str(error)
        print(f"mldebug-mcp: {shorten(message, LONGEST_ERROR)}", file=sys.stderr)
        return EXIT_UNUSABLE
    except BrokenPipeError:
        # The reader (such as `head`) has seen enough. What is left goes nowhere, so that nothing fails at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_DONE
    except KeyboardInterrupt:
        return 130
    else:
        codes += [code] if command is not do_serve else []
        return code
    finally:
        gc.freeze()  # ... and a fifth of a short command's time at exit, where everything is freed anyway


def _codes_at_exit() -> list[int]:
    """Return a list for the exit code of the command that this process is: with one in it, the process ends at once.

    What is registered first is called last.
    """
    codes: list[int] = []
    atexit.register(_end_at_once, codes)
    return codes


def _end_at_once(codes: Sequence[int]) -> None:
    """End the process of a command that returned, without freeing each object first: a twenty-fifth of its time.

    The interpreter calls this when all threads have ended and whatever was registered later has been called. What
    traces the process, such as a measurement of coverage, was registered sooner, and still has to write.
    """
    if not codes or _is_traced():
        return
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return  # the interpreter reports it
    os._exit(codes[-1])


def _is_traced() -> bool:
    monitoring = getattr(sys, "monitoring", None)  # since Python 3.12
    tools = [monitoring.get_tool(number) for number in range(6)] if monitoring is not None else []
    return any(tool is not None for tool in (sys.gettrace(), sys.getprofile(), *tools))


MEANT = {
    **dict.fromkeys(("analyse", "analyze", "check", "report", "why", "debug", "summary"), ("diagnose",)),
    **dict.fromkeys(("show", "page", "html", "view", "plot"), ("open",)),
    **dict.fromkeys(("list", "ls", "sweep"), ("runs",)),
    **dict.fromkeys(("diff", "against"), ("compare",)),
    **dict.fromkeys(("tail", "follow", "monitor", "live"), ("watch",)),
    **dict.fromkeys(("values", "metric", "curve"), ("read",)),
    **dict.fromkeys(("tokens", "labels", "data", "inspect"), ("batch",)),
    **dict.fromkeys(("ask", "find", "folklore"), ("search",)),
    **dict.fromkeys(("cause", "symptom", "what"), ("explain",)),
    **dict.fromkeys(("traceback", "crash", "exception"), ("error",)),
    **dict.fromkeys(("oom", "cuda", "gpu", "leak", "snapshot"), ("memory", "error")),
    **dict.fromkeys(("vram", "fit", "fits", "size"), ("estimate",)),
    **dict.fromkeys(("overfit", "train", "sanity"), ("probe",)),
    **dict.fromkeys(("lint", "loop", "source"), ("script",)),
    **dict.fromkeys(("quote", "quotes", "cite", "sources"), ("evidence",)),
    **dict.fromkeys(("setup", "add", "init", "configure"), ("install",)),
    **dict.fromkeys(("server", "mcp", "start", "run"), ("serve",)),
    **dict.fromkeys(("claude",), ("claude-code", "claude-desktop")),
    **dict.fromkeys(("code", "copilot"), ("vscode",)),
}
"""What other words for commands and clients mean."""
MEANT_OPTIONS = {
    **dict.fromkeys(("gradaccum", "gradientaccumulationsteps", "accumulationsteps"), ("--accumulation",)),
    **dict.fromkeys(("seqlen", "maxlength", "maxseqlength", "context"), ("--length",)),
    **dict.fromkeys(("perdevicetrainbatchsize", "microbatchsize", "bs"), ("--batch-size",)),
    **dict.fromkeys(("compare", "baseline", "before"), ("--against", "--good", "--b")),
    **dict.fromkeys(("tp",), ("--tensor-parallel",)),
    **dict.fromkeys(("pp",), ("--pipeline-parallel",)),
    **dict.fromkeys(("zero", "fsdp"), ("--sharding",)),
    **dict.fromkeys(("lora", "rank"), ("--lora-rank",)),
    **dict.fromkeys(("vram", "device"), ("--gpu", "--devices")),
    **dict.fromkeys(("brief", "quiet", "concise"), ("--short",)),
}
"""What other words for options mean."""


class _Formatter(argparse.HelpFormatter):
    """A writer of help that loads little, as argparse makes one for each option even where it writes none."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_width_of_help())


def _width_of_help() -> int:
    """Return as many columns as argparse does, without a module that takes long to load."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns) - 2
    with contextlib.suppress(ValueError, OSError):  # closed, or no terminal
        descriptor = sys.__stdout__.fileno() if sys.__stdout__ is not None else -1
        return (os.get_terminal_size(descriptor).columns or 80) - 2
    return 78


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are safe to print and name what was meant.

    A shell may have put the name of any file into its arguments.
    """

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - those of the base class
        super().__init__(**{"formatter_class": _Formatter} | options)

    def error(self, message: str) -> NoReturn:
        super().error(shorten(message, LONGEST_ERROR))

    def _check_value(self, action: argparse.Action, value: Any) -> None:  # noqa: ANN401 - the base class's signature
        if action.choices is None or value in action.choices:
            return
        choices = list(map(str, action.choices))
        near = did_you_mean(nearest(str(value), choices, meanings=MEANT))
        raise argparse.ArgumentError(action, f"{value!r} is not known; {near}it takes {', '.join(choices)}")


def parsed(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line; end with an error that names what a mistyped option may have meant."""
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        near = did_you_mean(
            nearest(unknown[0].partition("=")[0], _options_of(parser, arguments), meanings=MEANT_OPTIONS)
        )
        parser.error(f"unrecognized arguments: {' '.join(unknown)}; {near or 'see --help of the command'}".strip())
    return options


def _options_of(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> list[str]:
    """Return the options that the help of the command names."""
    out = io.StringIO()
    command = next((argument for argument in arguments if not argument.startswith("-")), "help")
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        parser.parse_args([command, "--help"])
    return list(dict.fromkeys(re.findall(r"--[a-z][a-z-]+", out.getvalue())))


_ADDERS: Sequence[tuple[Callable[[Commands], None], Sequence[str]]] = (
    (add_diagnose, ("diagnose",)),
    (add_read, ("read",)),
    (add_checkpoint, ("checkpoint",)),
    (add_open, ("open",)),
    (add_runs, ("runs", "compare")),
    (add_watch, ("watch",)),
    (add_record, ("record",)),
    (add_script, ("script",)),
    (add_batch, ("batch",)),
    (add_rows, ("rows",)),
    (add_knowledge, ("explain", "error", "search", "evidence")),
    (add_memory, ("memory",)),
    (add_estimate, ("estimate",)),
    (add_probe, ("probe",)),
    (add_install, ("install",)),
    (add_serve, ("serve",)),
)
"""What adds commands, and which."""


def make_parser(first: str = "") -> argparse.ArgumentParser:
    """Return the parser; each command sets `command` to the function that does it.

    Args:
        first: The first argument: where it is a command, the parser needs no other, and is made sooner.
    """
    parser: argparse.ArgumentParser = _Parser(
        prog="mldebug-mcp",
        description="Why did my loss spike? Ranked, cited hypotheses for a training run that went wrong. "
        "Without a command: the MCP server over stdio.",
    )
    parser.add_argument("--version", action="version", version=f"mldebug-mcp {__version__}")
    add_access(parser)
    parser.set_defaults(command=do_serve)
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND")
    for add, commands in _ADDERS:
        if first in commands:
            add(verbs)
            return parser
    for add, _ in _ADDERS:
        add(verbs)
    _add_completion(verbs)
    _add_help(verbs, parser)
    return parser


def _add_completion(verbs: Commands) -> None:
    completion = verb(verbs, "completion", "print what completes commands and options in a shell")
    completion.add_argument(
        "shell", choices=("bash", "zsh", "fish"), help='for bash and zsh: eval "$(mldebug-mcp completion bash)"'
    )
    completion.set_defaults(command=_print_completion)


def _print_completion(options: argparse.Namespace) -> int:
    from argcomplete.shell_integration import shellcode

    print(shellcode(["mldebug-mcp"], shell=options.shell))
    return EXIT_DONE


def _add_help(verbs: Commands, parser: argparse.ArgumentParser) -> None:
    help_on = verb(verbs, "help", "show the commands, or the options of one")
    help_on.add_argument("topic", metavar="COMMAND", nargs="?", choices=list(verbs.choices), help="one of the commands")
    help_on.set_defaults(command=lambda options: _show(verbs.choices.get(options.topic, parser)))


def _show(parser: argparse.ArgumentParser) -> int:
    parser.print_help()
    return EXIT_DONE
