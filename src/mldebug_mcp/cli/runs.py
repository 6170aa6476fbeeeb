"""The commands on training runs: on one run, on a run that still goes on, on many runs, and on the rows of a step."""

from __future__ import annotations

import argparse
import csv
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple

from mldebug_mcp.cli.commands import (
    EXIT_DONE,
    EXIT_FOUND,
    EXIT_UNJUDGED,
    EXIT_UNUSABLE,
    Commands,
    OncePerName,
    add_json,
    add_reader,
    checked,
    count,
    print_answer,
    reader_from,
    save_view,
    show_line,
    shown_progress,
    verb,
)
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import replace
from mldebug_mcp.core.text import LONGEST_ERROR, percent, shorten

if TYPE_CHECKING:
    from mldebug_mcp.cli.live import Alarm
    from mldebug_mcp.judge.reader import Reader
    from mldebug_mcp.logs import Run
    from mldebug_mcp.models import Diagnosis
    from mldebug_mcp.models.runs import Record, Runs
    from mldebug_mcp.models.script import ScriptReport


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
    paths = matching(options.paths)
    if len(paths) > 1 or options.short:
        return _diagnose_several(paths, options)
    answer, run, reference = _diagnosed(paths[0], options, _Sources.of(options))
    save_view(options.png, "chart.diagnosis_png", answer, run, reference)
    save_view(options.html, "diagnosis_html.diagnosis_html", answer, run, reference)
    if options.json or options.long:
        print_answer(answer, options, "runs_terminal.print_diagnosis", run=run, bits=options.bits)
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

    codes, sources = {EXIT_DONE}, _Sources.of(options)
    for path in paths:
        try:
            answer, _, _ = _diagnosed(path, options, sources)
        except InputError as error:
            print(f"mldebug-mcp: {shorten(str(error), LONGEST_ERROR)}", file=sys.stderr)
            codes.add(EXIT_UNUSABLE)
            continue
        print(answer.to_json() if options.json else short_line(answer), flush=True)
        codes.add(_code(answer, options))
    return next(code for code in (EXIT_UNUSABLE, EXIT_FOUND, EXIT_UNJUDGED, EXIT_DONE) if code in codes)


class _Sources(NamedTuple):
    """What judges a run besides its log, the same for all runs of a command."""

    script: ScriptReport | None
    reader: Reader | None

    @classmethod
    def of(cls, options: argparse.Namespace) -> _Sources:
        """Read what the options name."""
        script = None
        if options.script:  # else nothing is loaded yet: the log is read first
            from mldebug_mcp.judge.script import inspect_script

            script = inspect_script(options.script)
        return cls(script, reader_from(options))


def _diagnosed(path: str, options: argparse.Namespace, sources: _Sources) -> tuple[Diagnosis, Run, Run | None]:
    """Return the diagnosis of a run, the run, and the one that it was compared with."""
    from mldebug_mcp.logs import read_run

    with shown_progress():
        with _preparing_diagnosis():
            run = run_of(path, options)
        from mldebug_mcp.judge import diagnose

        reference = read_run(options.reference) if options.reference else None
        answer = diagnose(run, reference, outcomes=options.outcomes, script=sources.script)
        if sources.reader is not None:
            from mldebug_mcp.judge.reader import with_reader

            answer = with_reader(answer, sources.reader)
        return answer, run, reference


MIN_SECONDS_OF_READING = 0.2
"""From here on a thread loads the rest meanwhile. Chosen: a small log is read sooner, and two threads cost more CPU."""


@contextmanager
def _preparing_diagnosis() -> Iterator[None]:
    """Load what a diagnosis needs in a thread while the log is read inside.

    Compiled code parses a large log, so Python is free meanwhile. The thread starts at a checkpoint of the reader, when
    the reader has loaded what it needs itself.
    """
    from mldebug_mcp.core.limits import listening

    thread, began = Thread(target=_prepare_diagnosis), time.monotonic()

    def start_if_it_pays(_: str) -> None:
        if thread.ident is None and time.monotonic() - began > MIN_SECONDS_OF_READING:
            thread.start()

    with listening(start_if_it_pays):
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
    print_answer(answer, options, "runs_terminal.print_reading")
    return EXIT_DONE


def _read_coverage(options: argparse.Namespace) -> int:
    from mldebug_mcp.judge.read_metric import read_coverage

    if options.path == "-":
        raise InputError("--coverage looks at a file; name it instead of -")
    if options.metrics:
        raise InputError("--coverage looks at all lines of a log; leave the names of metrics out")
    with shown_progress():
        answer = read_coverage(options.path, options.run, options.names)
    print_answer(answer, options, "runs_terminal.print_coverage")
    return EXIT_DONE


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
    print_answer(answer, options, "runs_terminal.print_choice")
    return EXIT_DONE


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
    print(answer.to_json(indent=2) if options.json else "\n".join(record_lines(answer)))
    return EXIT_DONE


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


# The commands on a run that is still going: `watch` it, `open` its page.


def add_watch(verbs: Commands) -> None:
    """Add the command with its options."""
    watch = verb(verbs, "watch", "look at a run that is still going again and again, and tell what is new")
    watch.add_argument("path", metavar="PATH", help="a log file or a run folder; it may come into being later")
    add_reading(watch)
    add_reader(watch)
    watch.add_argument("--every", type=_positive, metavar="SECONDS", help="seconds between two looks (default 30)")
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
    watch.add_argument(
        "--webhook", metavar="URL", help="send an alarm to this address, as JSON that Slack and others take"
    )
    watch.add_argument(
        "--alarm-at", type=_share, metavar="SHARE", help="the least probability of the leading fault (default 0)"
    )
    watch.add_argument(
        "--alarm-looks", type=count, metavar="N", help="looks in a row at which the fault leads (default 2)"
    )
    watch.add_argument("--json", action="store_true", help="print each piece of news as a line of JSON")
    watch.set_defaults(command=do_watch)


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def _share(text: str) -> float:
    value = _positive(text)
    if value > 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a probability: give a number above 0, at most 1")
    return value


def do_watch(options: argparse.Namespace) -> int:
    """Watch a run until it ends, the time is over, or a cause leads and that is what was waited for."""
    from mldebug_mcp.judge.watch import LOOK_INTERVAL_SECONDS, LOOKS_BEFORE_ALARM, Watch
    from mldebug_mcp.report.runs_terminal import print_news, print_status, what_now

    alarms = _alarms(options)
    watch = Watch(
        options.path, options.config, options.run, names=options.names, at=options.alarm_at or 0.0,
        looks=options.alarm_looks or LOOKS_BEFORE_ALARM, reader=reader_from(options),
    )  # fmt: skip
    every = options.every or LOOK_INTERVAL_SECONDS
    until = time.monotonic() + 60 * options.minutes if options.minutes else math.inf
    try:
        while True:
            news = watch.look()
            show_line("")
            for item in news:
                print(item.to_json(), flush=True) if options.json else print_news(item)
                for alarm in alarms if item.alarm else ():
                    alarm(item)
            if watch.has_grown and not options.json and not sys.stderr.isatty():
                print_status(watch.status)
            if options.until_alarm and any(entry.alarm for entry in news):
                if not options.json:
                    print(what_now(options.path))
                return EXIT_FOUND
            if watch.finished or time.monotonic() + every > until:
                return EXIT_DONE
            show_line(watch.status)
            time.sleep(every)
    finally:
        show_line("")


def _alarms(options: argparse.Namespace) -> list[Alarm]:
    """Return what is done at an alarm."""
    from mldebug_mcp.cli.live import notifying, running, sending

    alarms = [running(options.on_alarm, options.path)] if options.on_alarm else []
    alarms += [notifying(options.path)] if options.notify else []
    return alarms + ([sending(options.webhook, options.path)] if options.webhook else [])


def add_open(verbs: Commands) -> None:
    """Add the command with its options."""
    opened = verb(verbs, "open", "show the diagnosis in the browser, anew as the run goes on")
    opened.add_argument("path", metavar="PATH", help="a log file or a run folder; it may come into being later")
    add_reading(opened)
    opened.add_argument("--reference", metavar="PATH", help="a run that went well, to compare with")
    opened.add_argument(
        "--no-browser", action="store_false", dest="browser", help="only print the address, for a browser of your own"
    )
    opened.set_defaults(command=do_open)


def do_open(options: argparse.Namespace) -> int:
    """Show the page of a run in the browser until nobody looks at it any more."""
    from mldebug_mcp.cli.live import LivePage, PageServer
    from mldebug_mcp.logs import read_run
    from mldebug_mcp.logs.follow import FollowedRun

    reference = read_run(options.reference) if options.reference else None
    page = LivePage(options.path, FollowedRun(options.path, options.config, options.run, options.names), reference)
    with PageServer(page.html) as server:
        print(f"{server.url}\nends by itself when the page is closed; Ctrl+C ends it now", file=sys.stderr, flush=True)
        if options.browser:
            import webbrowser

            webbrowser.open(server.url)
        server.serve()
    return EXIT_DONE


# The commands on many runs: `runs`, the sick ones of a folder, and `compare`, two kinds of runs.


def add_runs(verbs: Commands) -> None:
    """Add both commands."""
    says = "say which runs of a folder are sick, and what those share"
    runs = verb(verbs, "runs", says)
    runs.add_argument("path", metavar="FOLDER", help="a folder of runs, up to four levels deep, or a file of several")
    runs.add_argument("--all", action="store_true", help="all rows, not only the first ones")
    runs.add_argument(
        "--html",
        metavar="FILE",
        help="also write a page with a small curve of each run, and filters; into a folder also a page for each run",
    )
    runs.add_argument("--csv", metavar="FILE", help="also write the rows as CSV")
    add_json(runs)
    runs.add_argument("--processes", type=int, default=os.cpu_count() or 1, metavar="N", help="default: one per core")
    runs.add_argument("--ray", metavar="ADDRESS", help="have it done by a Ray cluster; local starts one here")
    runs.add_argument(
        "--no-cache",
        action="store_true",
        help="read every run anew, and keep nothing (MLDEBUG_MCP_CACHE: a folder for what is kept, or off)",
    )
    add_reader(runs)
    runs.add_argument(
        "--read-at-most", type=count, default=20, metavar="N", help="runs that the reader reads (default 20)"
    )
    runs.add_argument(
        "--check", action="store_true", help="exit with 1 if a fault leads in any run, with 3 if none can be judged"
    )
    runs.set_defaults(command=do_runs)

    says = "say whether one kind of runs is better than another, or the difference is what seeds do"
    compare = verb(verbs, "compare", says)
    compare.add_argument("a", nargs="+", metavar="A", help="logs or run folders of the first kind, then --b or --")
    compare.add_argument("--b", nargs="+", metavar="B", required=True, help="those of the second kind")
    compare.add_argument("--metric", default="", metavar="NAME", help="default: evaluation loss, reward or score")
    compare.add_argument("--best", action="store_true", help="each run's best value instead of its last level")
    add_json(compare)
    compare.set_defaults(command=do_compare)


def with_sides_named(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of `compare A… -- B…` as `compare A… --b B…`: argparse drops a bare `--` between paths."""
    given = list(arguments)
    if given[:1] == ["compare"] and "--" in given and "--b" not in given:
        given[given.index("--")] = "--b"
    return given


def do_runs(options: argparse.Namespace) -> int:
    """Diagnose all runs of a folder."""
    from mldebug_mcp.judge.runs import cache_file, diagnose_runs
    from mldebug_mcp.logs.remote_files import is_remote

    if options.processes < 1:
        raise InputError("--processes: at least 1")
    cache, problems = None, []
    if not options.no_cache and not is_remote(options.path):
        try:
            cache = cache_file(options.path)
        except InputError as error:
            problems.append(str(error))
    with shown_progress():
        answer = diagnose_runs(
            options.path, processes=options.processes, cache=cache, ray=options.ray, reader=reader_from(options),
            read_at_most=options.read_at_most,
        )  # fmt: skip
    answer = answer.model_copy(update={"notes": [*answer.notes, *problems]})
    if options.html:
        from mldebug_mcp.report.pages import write_runs_html

        write_runs_html(answer, options.html)
    if options.csv:
        _write_csv(answer, Path(options.csv))
    print_answer(answer, options, "runs_terminal.print_runs", every_row=options.all)
    glance = answer.at_a_glance
    return checked(
        options,
        found=any(row.is_sick for row in answer.rows),
        judged=glance is None or glance.kind != "not judged",
    )


def do_compare(options: argparse.Namespace) -> int:
    """Compare two kinds of runs."""
    from mldebug_mcp.judge.group_comparison import compare_runs

    with shown_progress():
        answer = compare_runs(matching(options.a), matching(options.b), options.metric, best=options.best)
    print_answer(answer, options, "runs_terminal.print_contest")
    return EXIT_DONE


def _write_csv(answer: Runs, file: Path) -> None:
    varied = {name: None for row in answer.rows for name in row.settings}
    rows = [
        row.model_dump(mode="json", exclude={"settings"})
        | {"seen": " ".join(row.seen)}
        | {f"setting {name}": row.settings.get(name) for name in varied}
        for row in answer.rows
    ]
    try:
        with file.open("w", encoding="utf-8", newline="") as out:
            writer = csv.DictWriter(out, list(rows[0]))
            writer.writeheader()
            writer.writerows({name: _harmless(value) for name, value in row.items()} for row in rows)
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror}); name another file") from None


def _harmless(value: object) -> object:
    """Return a cell that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value


# The command `rows`: which rows were in the batch of a step.


_SETTINGS = (
    "sampler", "seed", "batch_size", "accumulation", "world", "rows", "drop_last", "split_batches", "dispatch_batches",
    "past_end", "first_step", "resumed_at",
)  # fmt: skip


def add_rows(verbs: Commands) -> None:
    """Add the command."""
    rows = verb(verbs, "rows", "say which rows of the data were in the batch of a step, and what is odd in them")
    rows.add_argument("path", metavar="PATH", help="a run folder, a log or a recording")
    rows.add_argument("--step", type=int, required=True, metavar="N", help="the step, as the log numbers it")
    rows.add_argument("--data", metavar="DATA", help="the training data as the sampler saw them, to show the rows")
    rows.add_argument("--tokenizer", metavar="T", help="the tokenizer's folder or tokenizer.json, to decode them")
    rows.add_argument(
        "--sampler",
        choices=("transformers", "accelerate", "lightning", "distributed", "random", "shuffle", "sequential"),
        help="how rows were sampled, where no recording and no training_args.bin tells; random: RandomSampler with a "
        "seeded generator, shuffle: DataLoader(shuffle=True, generator=…)",
    )
    rows.add_argument("--seed", type=int, help="what the sampler was seeded with")
    rows.add_argument("--batch-size", type=int, metavar="N", help="rows of a micro-batch of one rank")
    rows.add_argument("--accumulation", type=int, metavar="N", help="micro-batches of a step (default 1)")
    rows.add_argument("--world", type=int, metavar="N", help="ranks that rows are divided among (default 1)")
    rows.add_argument("--rows", type=int, metavar="N", help="rows of the data (default: counted in --data)")
    rows.add_argument("--drop-last", action="store_true", default=None, help="a last, smaller batch is left out")
    rows.add_argument("--split-batches", action="store_true", default=None, help="as Accelerate's setting")
    rows.add_argument("--dispatch-batches", action="store_true", default=None, help="as Accelerate's setting")
    rows.add_argument(
        "--past-end", choices=("step", "carry"),
        help="micro-batches left at the end of a pass make a smaller step, or go into the next one",
    )  # fmt: skip
    rows.add_argument("--first-step", type=int, choices=(0, 1), help="the number of the log's first step")
    rows.add_argument(
        "--resumed-at", type=_resumed_at, action="append", metavar="N",
        help="a step after which a resumed run began its pass anew (ignore_data_skip), or none; repeatable",
    )  # fmt: skip
    add_json(rows)
    rows.set_defaults(command=do_rows)


def _resumed_at(text: str) -> int | None:
    if text == "none":
        return None
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a step nor none") from None


def do_rows(options: argparse.Namespace) -> int:
    """Tell the rows of a step."""
    from mldebug_mcp.judge.rows import rows_at

    settings = {name: getattr(options, name) for name in _SETTINGS}
    if options.resumed_at is not None:
        settings["resumed_at"] = [step for step in options.resumed_at if step is not None]
    with shown_progress():
        answer = rows_at(options.path, options.step, options.data, options.tokenizer, **settings)
    print_answer(answer, options, "data_terminal.print_rows")
    return EXIT_DONE


# Several runs named at once: paths, and patterns that a shell was told to leave alone.


_MAGIC = frozenset("*?[")
"""Characters of a pattern that stand for others."""


def matching(patterns: Sequence[str]) -> list[str]:
    """Return the paths that are meant, each once: a pattern such as `runs/*/log.jsonl` stands for all that match it.

    Raises:
        InputError: nothing matches a pattern.
    """
    from mldebug_mcp.core.paths import expanded
    from mldebug_mcp.logs.remote_files import is_remote

    found: dict[str, None] = {}
    for pattern in patterns:
        if is_remote(pattern):
            found[pattern] = None
            continue
        place = expanded(pattern)
        if not _MAGIC.intersection(pattern) or place.exists():  # a folder may be called run[1]
            found[pattern] = None
            continue
        import glob

        matches = sorted(glob.glob(str(place), recursive=True))  # noqa: PTH207 - Path.glob takes no absolute pattern
        if not matches:
            raise InputError(f"{shorten(pattern, 200)}: no file or folder matches this pattern; check it with ls")
        found |= dict.fromkeys(matches)
    return list(found)


# `-` for a path: what is piped into a command, kept in a file of its own while it is read.


STANDARD_INPUT = "standard input"
MAX_BYTES = 1024 * 1024 * 1024
_PIECE_BYTES = 1024 * 1024


@contextmanager
def kept_input() -> Iterator[Path]:
    """Keep what comes in a folder of its own, so that no other file's configuration is taken for its own.

    Raises:
        InputError: more comes than `MAX_BYTES`, or what is done inside refuses it; the message calls it what it is.
    """
    from mldebug_mcp.core.paths import temporary_folder

    with temporary_folder("mldebug-input-") as folder:
        path = Path(folder) / STANDARD_INPUT
        left = MAX_BYTES
        with path.open("wb") as kept:
            while piece := sys.stdin.buffer.read(_PIECE_BYTES):
                left -= kept.write(piece)
                if left < 0:
                    raise InputError(
                        f"{STANDARD_INPUT}: more than {MAX_BYTES:,} bytes; save it to a file, and name that"
                    )
        try:
            yield path
        except InputError as error:
            raise InputError(str(error).replace(str(path), STANDARD_INPUT)) from None
