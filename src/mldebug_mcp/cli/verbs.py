"""What every command of the parser has."""

from __future__ import annotations

import argparse
from typing import TypeAlias

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def verb(verbs: Commands, name: str, says: str) -> argparse.ArgumentParser:
    """Add a command, with what it does in the list of all and at the head of its own help."""
    return verbs.add_parser(name, help=says, description=f"{says[0].upper()}{says[1:]}.")


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option for the whole answer as JSON."""
    parser.add_argument(
        "--json", action="store_true", help="print the answer as JSON, as the MCP tool gives it with detail='full'"
    )
