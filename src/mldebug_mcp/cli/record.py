"""The command `record`: what was tried on a run, kept next to it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mldebug_mcp.cli.commands import DONE, Commands, OncePerName, add_json, print_json, shown_progress, verb
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import percent

if TYPE_CHECKING:
    from mldebug_mcp.models.tried import Record


def add_record(verbs: Commands) -> None:
    """Add the command with its options."""
    record = verb(verbs, "record", "show what was tried on a run, or record a check or a change next to it")
    record.add_argument("path", metavar="RUN", help="a log file or a run folder")
    record.add_argument("--check", default="", metavar="ID", help="a check of a diagnosis, such as lr_too_high.1")
    record.add_argument(
        "--change", default="", metavar="WORDS", help="what was changed instead of a check; needs --cause"
    )
    record.add_argument("--cause", default="", metavar="ID", help="the hypothesis that a change is about")
    record.add_argument("--predicts", default="", metavar="WORDS", help="what it should show if the cause is there")
    record.add_argument(
        "--outcome", choices=("confirms", "refutes"), help="the verdict; it needs --measured or --against"
    )
    record.add_argument(
        "--measured", action=OncePerName, default={}, type=_measurement, metavar="NAME=NUMBER",
        help="what was measured, such as loss=2.31; repeatable",
    )  # fmt: skip
    record.add_argument("--against", nargs="+", default=[], metavar="RUN", help="runs with the change, to compare with")
    record.add_argument("--baseline", nargs="+", default=[], metavar="RUN", help="more runs without the change")
    record.add_argument("--metric", default="", metavar="NAME", help="default: evaluation loss, reward or score")
    record.add_argument("--note", default="", metavar="WORDS", help="what else to keep")
    record.add_argument("--config", metavar="FILE", help="its configuration (JSON or YAML), if not next to the log")
    record.add_argument("--run", metavar="NAME", default="", help="which run, where RUN holds several")
    add_json(record)
    record.set_defaults(command=do_record)


def _measurement(text: str) -> tuple[str, float]:
    name, equals, value = text.rpartition("=")
    try:
        return name.strip(), float(value) if equals and name.strip() else float("x")
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=NUMBER, such as loss=2.31") from None


def do_record(options: argparse.Namespace) -> int:
    """Show the record, or add to it."""
    from mldebug_mcp.judge.record import read_record, record_check

    with shown_progress():
        if options.check or options.change:
            answer = record_check(
                options.path, check=options.check, change=options.change, cause=options.cause,
                predicts=options.predicts, outcome=options.outcome, measured=options.measured,
                against=options.against, baseline=options.baseline, metric=options.metric, note=options.note,
                config=options.config, run=options.run,
            )  # fmt: skip
        elif options.outcome or options.measured or options.against:
            raise InputError("name what was tried: --check ID of a diagnosis, or --change WORDS with --cause ID")
        else:
            answer = read_record(options.path, options.config, options.run)
    print_json(answer) if options.json else print("\n".join(lines_of(answer)))
    return DONE


def lines_of(record: Record) -> list[str]:
    """Return a record as lines for a person."""
    lines = [
        f"{record.file}: {len(record.tried)} recorded" if record.tried else f"nothing is recorded of {record.path}"
    ]
    for tried in record.tried:
        lines.append(f"  {tried.line()}")
        if tried.predicted:
            lines.append(f"      predicted: {tried.predicted}")
        if tried.after is not None and tried.before is not None:
            lines.append(f"      {tried.cause}: {percent(tried.before)} before, {percent(tried.after)} after")
    for title, names in (
        ("ruled out", record.ruled_out), ("contradicted, and possible all the same", record.contradicted),
        ("confirmed", record.confirmed), ("open", record.open),
    ):  # fmt: skip
        lines += [f"{title}: {', '.join(names)}"] if names else []
    return [*lines, *(f"note: {note}" for note in record.notes)]
