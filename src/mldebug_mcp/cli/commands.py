"""What all commands share. These are their options, what the user prefers, and a line on what a long command does."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.limits import listening
from mldebug_mcp.core.text import shorten

if TYPE_CHECKING:
    from mldebug_mcp.judge.reader import Reader
    from mldebug_mcp.models import Model

# What every command of the parser has.


EXIT_DONE = 0
"""Exit code where all is done."""
EXIT_FOUND = 1
"""Exit code where something was found, with --check."""
EXIT_UNUSABLE = 2
"""Exit code where the input cannot be used."""
EXIT_UNJUDGED = 3
"""Exit code where nothing could be judged, with --check."""
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def checked(options: argparse.Namespace, *, found: bool, judged: bool) -> int:
    """Return the exit code of a command that has --check.

    Args:
        options: Those of the command.
        found: Whether something was found.
        judged: Whether anything could be judged.
    """
    return (
        EXIT_DONE if not options.check else EXIT_FOUND if found and judged else EXIT_DONE if judged else EXIT_UNJUDGED
    )


class OncePerName(argparse.Action):
    """Collects options of the form NAME=VALUE as a dict; a second value of a name is refused, as one would be lost."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Add what one option gave."""
        del parser, option_string
        name, value = cast("tuple[str, object]", values)
        kept = getattr(namespace, self.dest)
        if kept.get(name, value) != value:
            raise argparse.ArgumentError(self, f"{name} is given as {kept[name]} and as {value}; give it once")
        setattr(namespace, self.dest, kept | {name: value})


def verb(verbs: Commands, name: str, says: str) -> argparse.ArgumentParser:
    """Add a command, with what it does in the list of all and at the head of its own help."""
    return verbs.add_parser(name, help=says, description=f"{says[0].upper()}{says[1:]}.")


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option for the whole answer as JSON."""
    parser.add_argument(
        "--json", action="store_true", help="print the answer as JSON, as the MCP tool gives it with detail='full'"
    )


def add_reader(parser: argparse.ArgumentParser) -> None:
    """Add the option for a reader of the user's own."""
    parser.add_argument(
        "--reader", metavar="COMMAND",
        help="a command that judges the run as well, such as 'claude -p': it gets the facts of the answer on its input "
        "and prints what it makes of them (default: the command in MLDEBUG_MCP_READER, if any)",
    )  # fmt: skip


def reader_from(options: argparse.Namespace) -> Reader | None:
    """Return the reader that the command line, the environment or the user's preferences name (see `prefer`).

    Raises:
        InputError: it cannot be run.
    """
    if not options.reader:
        return None
    from mldebug_mcp.core.paths import cache_folder
    from mldebug_mcp.judge.reader import reader_of

    folder = None
    if not getattr(options, "no_cache", False):
        with suppress(InputError):  # without a home folder no reply is kept
            folder = cache_folder()
    return reader_of(options.reader, folder)


def count(text: str) -> int:
    """Return the number of an option that counts."""
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 up")
    return int(text)


def print_answer(answer: Model, options: argparse.Namespace, view: str, **shown: object) -> None:
    """Print an answer as JSON where the options ask for it, else for a person.

    Args:
        answer: The answer.
        options: Those of the command.
        view: What prints it in a terminal, such as "runs_terminal.print_runs" of `report`: loaded only where it prints.
        shown: What else the view takes.
    """
    if options.json:
        print(answer.to_json(indent=2))
        return
    from mldebug_mcp.report.console import console_for

    _view(view)(console_for(), answer, **shown)


def save_view(path: str | None, view: str, *shown: object) -> None:
    """Write what a view returns, a page or a picture, to a file where one is named; it is loaded only then.

    Raises:
        InputError: nothing can be drawn, or the file cannot be written.
        MissingExtraError: a package that draws is not installed.
    """
    if path:
        from mldebug_mcp.report.web_page import write_file

        write_file(path, _view(view)(*shown))


def _view(name: str) -> Callable[..., Any]:
    """Return a function of `report` by its module and its name."""
    room, function = name.split(".")
    view: Callable[..., Any] = getattr(import_module(f"mldebug_mcp.report.{room}"), function)
    return view


# What a long command is doing: a line on standard error that goes away before the answer is printed.


SECONDS_BEFORE_PROGRESS = 1.0
"""Seconds in which nothing is shown: most commands are done by then."""
PROGRESS_INTERVAL_SECONDS = 0.1
"""Seconds between two changes of the line."""
_CLEARED = "\r\x1b[K"


@contextmanager
def shown_progress() -> Iterator[None]:
    """Show the checkpoints of the work inside, if standard error is a terminal and it takes more than a second."""
    if not sys.stderr.isatty():
        yield
        return
    due = time.monotonic() + SECONDS_BEFORE_PROGRESS
    shown = False

    def show(doing: str) -> None:
        nonlocal due, shown
        if time.monotonic() >= due:
            due, shown = time.monotonic() + PROGRESS_INTERVAL_SECONDS, True
            show_line(doing)

    try:
        with listening(show):
            yield
    finally:
        if shown:
            show_line("")


def show_line(text: str) -> None:
    """Show a line on standard error in place of the one before, if that is a terminal; an empty one clears it."""
    if sys.stderr.isatty():
        import shutil

        room = max(20, shutil.get_terminal_size().columns - 1)
        print(_CLEARED + shorten(text, room), end="", file=sys.stderr, flush=True)


# Options that a command line leaves open → what the user prefers.


def prefer(options: argparse.Namespace) -> None:
    """Fill the options of a command, in place, from the files of preferences.

    Raises:
        InputError: a file of preferences is wrong.
    """
    if not (hasattr(options, "names") or hasattr(options, "reader")):
        return
    from mldebug_mcp.core.preferences import READER_VARIABLE, find_preferences

    preferred, notes = find_preferences()
    for note in notes:
        print(f"mldebug-mcp: {note}", file=sys.stderr)
    if hasattr(options, "names"):
        options.names = {**preferred.names, **options.names}
    alarms = preferred.alarms
    if hasattr(options, "reader"):
        options.reader = options.reader or os.environ.get(READER_VARIABLE) or preferred.reader
    for name, value in {
        "every": alarms.every, "alarm_at": alarms.probability, "alarm_looks": alarms.looks,
        "on_alarm": alarms.command, "webhook": alarms.webhook, "notify": alarms.notify,
    }.items():  # fmt: skip
        if value is not None and not getattr(options, name, True):
            setattr(options, name, value)
