"""What every command of the parser has."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from mldebug_mcp.models import Model

DONE, FOUND, UNUSABLE = 0, 1, 2
"""Exit codes: done; something was found, with --check; the input cannot be used."""
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def verb(verbs: Commands, name: str, says: str) -> argparse.ArgumentParser:
    """Add a command, with what it does in the list of all and at the head of its own help."""
    return verbs.add_parser(name, help=says, description=f"{says[0].upper()}{says[1:]}.")


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option for the whole answer as JSON."""
    parser.add_argument(
        "--json", action="store_true", help="print the answer as JSON, as the MCP tool gives it with detail='full'"
    )


def count(text: str) -> int:
    """Return the number of an option that counts."""
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 up")
    return int(text)


def print_json(answer: Model) -> None:
    """Print an answer as JSON."""
    print(answer.to_json(indent=2))
