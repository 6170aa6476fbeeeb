"""The command on training scripts: `script`, what is wrong in one, read and never run."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from mldebug_mcp import __version__
from mldebug_mcp.cli.commands import DONE, FOUND, UNUSABLE, Commands, shown_progress, verb
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import percent

if TYPE_CHECKING:
    from mldebug_mcp.models.script import ReviewPlace, ScriptFinding, ScriptReport

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
    reports, problems = _inspected(options)
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
            _print(report, places=options.places)
    if options.format in ("sarif", "github"):  # which have no place for them
        problems = [*(note for report in reports for note in report.notes), *problems]
    for problem in problems:
        print(f"note: {problem}", file=sys.stderr)
    sure = any(finding.certainty != "depends" for finding in findings)
    if options.check and sure:
        return FOUND
    return UNUSABLE if len(reports) < len(options.paths) else DONE


def _inspected(options: argparse.Namespace) -> tuple[list[ScriptReport], list[str]]:
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


def _print(report: ScriptReport, *, places: bool) -> None:
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
        lines += [
            f"{finding.file}:{finding.line}: {finding.certainty}{_read(finding)}: {finding.summary} [{finding.cause}]",
            f"    in a log: {finding.shows}",
            f"    fix: {finding.fix}",
        ]
    if report.ruled_out:
        lines.append(
            f"done right: {', '.join(f'{ruled_out.summary} (line {ruled_out.line})' for ruled_out in report.ruled_out)}"
        )
    return [*lines, *(f"note: {note}" for note in report.notes)]


def _read(finding: ScriptFinding) -> str:
    return "" if finding.probability is None else f" (reader {percent(finding.probability)})"


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
