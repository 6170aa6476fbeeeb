"""The commands on one run: its diagnosis, its values, its checkpoints, and the record of what was tried on it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple

from mldebug_mcp.cli.commands import (
    DONE,
    FOUND,
    UNJUDGED,
    UNUSABLE,
    Commands,
    OncePerName,
    add_json,
    add_reader,
    checked,
    count,
    print_json,
    reader_from,
    shown_progress,
    verb,
)
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import replace
from mldebug_mcp.core.text import LONGEST_ERROR, percent, shorten

if TYPE_CHECKING:
    from mldebug_mcp.judge.reader import Reader
    from mldebug_mcp.logs import Run
    from mldebug_mcp.models import Diagnosis
    from mldebug_mcp.models.script import ScriptReport
    from mldebug_mcp.models.tried import Record


def add_diagnose(verbs: Commands) -> None:
    """Add the command with its options."""
    diagnose = verb(verbs, "diagnose", "say what is seen in a training log, what it may be and what to check next")
    diagnose.add_argument(
        "paths", metavar="PATH", nargs="+",
        help="a log file or a run folder; - reads standard input. Several, or a quoted pattern such as "
        "'runs/*/log.jsonl', are answered in a line each",
    )  # fmt: skip
    add_reading(diagnose)
    diagnose.add_argument("--short", action="store_true", help="a line for each run: what leads, and what is seen")
    diagnose.add_argument("--reference", metavar="PATH", help="a run that went well, to compare with")
    diagnose.add_argument(
        "--outcome", action=OncePerName, metavar="CHECK=OUTCOME", default={}, dest="outcomes", type=_outcome,
        help="how a check of an earlier diagnosis turned out, such as bad_batch.1=refutes (or =confirms); repeatable",
    )  # fmt: skip
    diagnose.add_argument("--png", metavar="FILE", help="also draw the curves with what is seen in them")
    diagnose.add_argument("--html", metavar="FILE", help="also write the diagnosis as a web page, curves included")
    diagnose.add_argument("--script", metavar="FILE", help="the training script: what it does wrong or right counts")
    add_reader(diagnose)
    diagnose.add_argument("--long", action="store_true", help="print all of it, not one screen")
    diagnose.add_argument("--bits", action="store_true", help="show how much each finding supports a cause, in bits")
    diagnose.add_argument(
        "--check",
        action="store_true",
        help="exit with 1 unless `healthy` leads the hypotheses, with 3 if nothing can be judged",
    )
    add_json(diagnose)
    diagnose.set_defaults(command=do_diagnose)


def _outcome(text: str) -> tuple[str, str]:
    check, equals, outcome = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} has no outcome; write CHECK=confirms or CHECK=refutes")
    return check, outcome


def do_diagnose(options: argparse.Namespace) -> int:
    """Diagnose a run, or several in a line each."""
    from mldebug_mcp.cli.inputs import matching

    paths = matching(options.paths)
    if len(paths) > 1 or options.short:
        return _diagnose_several(paths, options)
    answer, run, reference = _diagnosed(paths[0], options, _Beside.of(options))
    if options.png:
        from mldebug_mcp.report.chart import plot_diagnosis

        plot_diagnosis(answer, run, options.png, reference)
    if options.html:
        from mldebug_mcp.report.diagnosis_html import write_diagnosis_html

        write_diagnosis_html(answer, run, options.html, reference)
    if options.json:
        print_json(answer)
    elif options.long:
        from mldebug_mcp.report.console import console_for
        from mldebug_mcp.report.diagnosis_terminal import print_diagnosis

        print_diagnosis(console_for(), answer, run, bits=options.bits)
    else:
        from mldebug_mcp.report.diagnosis_screen import print_screen

        print_screen(answer, run, bits=options.bits)
    return _code(answer, options)


def _code(answer: Diagnosis, options: argparse.Namespace) -> int:
    from mldebug_mcp.models.base import SOUND

    return checked(options, found=answer.leader != SOUND, judged=answer.verdict.kind != "not judged")


def _diagnose_several(paths: Sequence[str], options: argparse.Namespace) -> int:
    """Print a line for each run; one that cannot be read is reported on standard error, and the others go on."""
    if options.html or options.png:
        raise InputError(f"{'--html' if options.html else '--png'} takes one run at a time; name one, without --short")
    if "-" in paths and len(paths) > 1:
        raise InputError("- (standard input) is read alone; name it without other runs")
    from mldebug_mcp.report.diagnosis_screen import short_line

    codes, beside = {DONE}, _Beside.of(options)
    for path in paths:
        try:
            answer, _, _ = _diagnosed(path, options, beside)
        except InputError as error:
            print(f"mldebug-mcp: {shorten(str(error), LONGEST_ERROR)}", file=sys.stderr)
            codes.add(UNUSABLE)
            continue
        print(answer.to_json() if options.json else short_line(answer), flush=True)
        codes.add(_code(answer, options))
    return next(code for code in (UNUSABLE, FOUND, UNJUDGED, DONE) if code in codes)


class _Beside(NamedTuple):
    """What judges a run besides its log, the same for all runs of a command."""

    script: ScriptReport | None
    reader: Reader | None

    @classmethod
    def of(cls, options: argparse.Namespace) -> _Beside:
        """Read what the options name."""
        script = None
        if options.script:  # else nothing is loaded yet: the log is read first
            from mldebug_mcp.judge.script import inspect_script

            script = inspect_script(options.script)
        return cls(script, reader_from(options))


def _diagnosed(path: str, options: argparse.Namespace, beside: _Beside) -> tuple[Diagnosis, Run, Run | None]:
    """Return the diagnosis of a run, the run, and the one that it was compared with."""
    from mldebug_mcp.logs import read_run

    with shown_progress():
        with _preparing_diagnosis():
            run = run_of(path, options)
        from mldebug_mcp.judge import diagnose

        reference = read_run(options.reference) if options.reference else None
        answer = diagnose(run, reference, outcomes=options.outcomes, script=beside.script)
        if beside.reader is not None:
            from mldebug_mcp.judge.reader import with_reader

            answer = with_reader(answer, beside.reader)
        return answer, run, reference


@contextmanager
def _preparing_diagnosis() -> Iterator[None]:
    """Load what a diagnosis needs in a thread while the log is read inside.

    Compiled code parses a large log, so Python is free meanwhile. The thread starts at the reader's first checkpoint,
    when the reader has loaded what it needs itself.
    """
    from mldebug_mcp.core.limits import listening

    thread = Thread(target=_prepare_diagnosis)
    with listening(lambda _: None if thread.ident else thread.start()):
        yield
    if thread.ident:
        thread.join()


def _prepare_diagnosis() -> None:
    with suppress(Exception):  # raised again, and reported, by the diagnosis itself
        from mldebug_mcp.judge.diagnosis import prepare

        prepare()
        import_module("mldebug_mcp.report.diagnosis_screen")


def add_read(verbs: Commands) -> None:
    """Add the command with its options."""
    read = verb(verbs, "read", "print the values of metrics of a log, thinned so that extremes survive")
    read.add_argument("path", metavar="PATH", help="a log file or a run folder; - reads standard input")
    read.add_argument("metrics", nargs="*", metavar="NAME", help="as logged (train/loss) or a role (loss, grad_norm)")
    add_reading(read)
    read.add_argument("--first", type=float, metavar="STEP", help="the first step")
    read.add_argument("--last", type=float, metavar="STEP", help="the last step")
    read.add_argument(
        "--points", type=_points, default=60, metavar="N", help="about how many points of each curve, 4 to 2000"
    )
    read.add_argument(
        "--coverage", action="store_true", help="list the kinds of lines with numbers, and what was made of each"
    )
    add_json(read)
    read.set_defaults(command=do_read)


def _points(text: str) -> int:
    from mldebug_mcp.judge.read_metric import require_points

    number = count(text)
    try:
        require_points(number)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return number


def do_read(options: argparse.Namespace) -> int:
    """Print values of metrics, or what was made of the lines of the log."""
    if options.coverage:
        return _read_coverage(options)
    from mldebug_mcp.judge.read_metric import read_curves

    with shown_progress():
        run = run_of(options.path, options)
        answer = read_curves(run, options.metrics, options.first, options.last, options.points)
    if options.json:
        print_json(answer)
    else:
        from mldebug_mcp.report.console import console_for
        from mldebug_mcp.report.runs_terminal import print_reading

        print_reading(console_for(), answer)
    return DONE


def _read_coverage(options: argparse.Namespace) -> int:
    from mldebug_mcp.judge.coverage import read_coverage

    if options.path == "-":
        raise InputError("--coverage looks at a file; name it instead of -")
    if options.metrics:
        raise InputError("--coverage looks at all lines of a log; leave the names of metrics out")
    with shown_progress():
        answer = read_coverage(options.path, options.run, options.names)
    if options.json:
        print_json(answer)
    else:
        from mldebug_mcp.report.console import console_for
        from mldebug_mcp.report.runs_terminal import print_coverage

        print_coverage(console_for(), answer)
    return DONE


def add_checkpoint(verbs: Commands) -> None:
    """Add the command with its options."""
    checkpoint = verb(verbs, "checkpoint", "say which checkpoint of a run to keep, by the metric that its author chose")
    checkpoint.add_argument("path", metavar="PATH", help="a run folder, or a log file in one")
    add_reading(checkpoint)
    checkpoint.add_argument(
        "--metric", default="", metavar="NAME", help="the metric that decides (default: the author's)"
    )
    checkpoint.add_argument("--checkpoints", metavar="FOLDER", help="where they are, if not in the folder of the run")
    add_json(checkpoint)
    checkpoint.set_defaults(command=do_checkpoint)


def do_checkpoint(options: argparse.Namespace) -> int:
    """Say which checkpoint to keep."""
    from mldebug_mcp.judge.checkpoints import choose_checkpoint

    with shown_progress():
        answer = choose_checkpoint(
            options.path, options.config, options.run, metric=options.metric, checkpoints=options.checkpoints,
            names=options.names,
        )  # fmt: skip
    if options.json:
        print_json(answer)
    else:
        from mldebug_mcp.report.console import console_for
        from mldebug_mcp.report.runs_terminal import print_choice

        print_choice(console_for(), answer)
    return DONE


def add_reading(verb: argparse.ArgumentParser) -> None:
    """Add what says which run of a path is read, and how."""
    verb.add_argument("--config", metavar="FILE", help="its configuration (JSON or YAML), if not next to the log")
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


def run_of(path: str, options: argparse.Namespace) -> Run:
    """Read the run that is to be diagnosed: a path, or `-` for standard input."""
    from mldebug_mcp.logs import read_run

    if path != "-":
        return read_run(path, options.config, options.run, options.names)
    from mldebug_mcp.cli.inputs import STANDARD_INPUT, kept_input

    with kept_input() as kept:
        return replace(read_run(kept, options.config, options.run, options.names), path=STANDARD_INPUT)


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
    print_json(answer) if options.json else print("\n".join(record_lines(answer)))
    return DONE


def record_lines(record: Record) -> list[str]:
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
