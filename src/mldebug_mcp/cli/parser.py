"""All commands: each group of them has a module of its own, with their options and what they do."""

from __future__ import annotations

import argparse
from typing import NoReturn

from mldebug_mcp import __version__
from mldebug_mcp.cli.data import add_batch, add_probe
from mldebug_mcp.cli.going_on import add_open, add_watch
from mldebug_mcp.cli.gpu_memory import add_estimate, add_memory
from mldebug_mcp.cli.knowledge import add_knowledge
from mldebug_mcp.cli.one_run import add_diagnose, add_read
from mldebug_mcp.cli.rows import add_rows
from mldebug_mcp.cli.runs import add_runs
from mldebug_mcp.cli.serving import add_access, add_install, add_serve, do_serve
from mldebug_mcp.cli.verbs import DONE, Commands, verb
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
    add_access(parser)
    parser.set_defaults(command=do_serve)
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND")
    add_diagnose(verbs)
    add_read(verbs)
    add_open(verbs)
    add_runs(verbs)
    add_watch(verbs)
    add_batch(verbs)
    add_rows(verbs)
    add_knowledge(verbs)
    add_memory(verbs)
    add_estimate(verbs)
    add_probe(verbs)
    add_install(verbs)
    add_serve(verbs)
    _add_help(verbs, parser)
    return parser


def _add_help(verbs: Commands, parser: argparse.ArgumentParser) -> None:
    help_on = verb(verbs, "help", "show the commands, or the options of one")
    help_on.add_argument("topic", metavar="COMMAND", nargs="?", choices=list(verbs.choices), help="one of the commands")
    help_on.set_defaults(command=lambda options: _show(verbs.choices.get(options.topic, parser)))


def _show(parser: argparse.ArgumentParser) -> int:
    parser.print_help()
    return DONE
