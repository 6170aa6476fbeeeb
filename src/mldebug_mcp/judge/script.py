"""The verb `inspect_script`: read training scripts, never run them, and say what is wrong in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import decode_source
from pathlib import Path
from typing import TYPE_CHECKING

from mldebug_mcp.core.access import is_file, is_folder, read_bytes, require, walk
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.limits import checkpoint
from mldebug_mcp.core.paths import expanded, unreadable
from mldebug_mcp.core.text import shorten
from mldebug_mcp.judge.at_a_glance import glance_at_script
from mldebug_mcp.judge.ranking import CauseEvidence
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.models import Finding, State
from mldebug_mcp.models.base import OTHER, Call
from mldebug_mcp.models.script import SUREST_FIRST, ReviewPlace, RuledOut, ScriptFinding, ScriptReport
from mldebug_mcp.script.calls import Script, read_script
from mldebug_mcp.script.faults import Fault, places_of
from mldebug_mcp.script.roles import Roles
from mldebug_mcp.script.rules import cleared_by, faults_of

if TYPE_CHECKING:
    from mldebug_mcp.judge.reader import Reader

MAX_SCRIPT_BYTES = 2_000_000
"""Bytes of a script. Chosen: fifty thousand lines."""
MAX_FILES = 500
SUFFIXES = (".py", ".pyw", "")
EXPORTS = {".ipynb": "; write its code to a file with `jupyter nbconvert --to script`"}
"""How to get a script out of files that hold one."""
MAX_FAILURES = 2
"""Scripts about which a reader may fail before it is asked no more: each may take two minutes. Chosen."""
MAX_READ = 20
"""Scripts that a reader is asked about. Chosen: each costs some ten thousand tokens."""
LINES_IN_DIAGNOSIS = 12
"""Lines about a script in the diagnosis of its run. Chosen."""
MAX_PLACED = 3
"""Scripts whose questions are listed. Chosen."""
SAME_WITHIN = 5
"""Lines between what a rule and a reader name for one fault. Chosen: a statement over several lines."""
MAX_NAMED = 5
"""Files that could not be read which are named."""
BITS = {"certain": 9.0, "likely": 6.0, "depends": 0.5}
"""Bits that a finding adds to its cause: 500 to one, as it is there for certain and only its harm is in doubt; 64 to
one; hardly any. Chosen, below what was counted: see `AGAINST_HEALTHY`."""
AGAINST_HEALTHY = {"certain": 4.0, "likely": 2.5, "depends": 0.0}
"""Bits that it takes off `healthy`. Counted on unread scripts of eight authors: 96 of 151 with a fault had such a
finding, and 14 of 149 healthy ones. That is more than six to one."""
BITS_AGAINST = 3.0
"""Bits that what a script does right takes off a cause: one of eight such faults is not seen. Chosen."""


def inspect_script(path: str | Path, reader: Reader | str | None = None) -> ScriptReport:
    """Say what is wrong in a training script, and which causes it rules out.

    It is read by Python's own parser and never run.

    Args:
        path: A Python file, or a folder of them.
        reader: What reads scripts that train as well: a function from a prompt to a reply, or a command such as
            "claude -p". It gets the scripts whole. No reader is taken from the environment here.

    Raises:
        InputError: nothing there is a script that can be read.
    """
    file = expanded(path)
    require(file)
    notes: list[str] = []
    files = _python_files(file, notes) if is_folder(file) else [file]
    unread: list[str] = []
    scripts = [Roles(script) for script in _read(files[:MAX_FILES], unread)]
    if not scripts:
        why = [*unread, *notes, f"{shorten(str(path), 200)}: no Python file in it"][0]
        raise InputError(f"{why}; name a training script or a folder of scripts")
    notes += unread[:MAX_NAMED]
    if len(unread) > MAX_NAMED:
        notes.append(f"{len(unread) - MAX_NAMED} more Python files could not be read")
    if len(files) > MAX_FILES:
        notes.append(f"only the first {MAX_FILES} of {len(files)} files were read")
    read_by = _reader(reader)
    findings, done_right = _judged(scripts, notes)
    if read_by is not None:
        findings = _with_reader(findings, read_by, scripts, notes)
    named = {finding.cause for finding in findings}
    ruled_out = [right for right in done_right if right.cause not in named]
    not_judged = _not_judged(scripts)
    answer = ScriptReport(
        path=str(path),
        files=len(scripts),
        unread=len(unread),
        not_judged=not_judged,
        findings=findings,
        ruled_out=list({right.cause: right for right in ruled_out}.values()),
        places=[
            ReviewPlace(file=roles.script.path, question=place.question, lines=list(place.lines))
            for roles in _that_train(scripts)[:MAX_PLACED]
            for place in places_of(roles)
        ],
        next_step=_next_call(findings),
        notes=[*([not_judged] if not_judged else []), *notes],
    )
    return answer.model_copy(update={"at_a_glance": glance_at_script(answer)})


def _judged(scripts: Sequence[Roles], notes: list[str]) -> tuple[list[ScriptFinding], list[RuledOut]]:
    """Return what rules find wrong and right; of a script that they cannot judge a note."""
    findings: list[ScriptFinding] = []
    done_right: list[RuledOut] = []
    for roles in scripts:
        try:
            faults = faults_of(roles)
        except RecursionError:
            notes.append(f"{roles.script.path}: nested too deeply to be judged")
            continue
        findings += [_finding(roles.script.path, fault) for fault in faults]
        done_right += [
            RuledOut(cause=cleared.cause, file=roles.script.path, line=cleared.line, summary=cleared.says)
            for cleared in cleared_by(roles, faults)
        ]
    return findings, done_right


def _not_judged(scripts: Sequence[Roles]) -> str:
    """Return why no training loop was judged; nothing where one was."""
    if any(roles.trains_by_hand for roles in scripts):
        return ""
    trainer = any(roles.trains_elsewhere for roles in scripts)
    where = "a trainer of a framework makes the loop" if trainer else "no call of backward() was found"
    return f"{where}: the loop itself was not judged"


def _that_train(scripts: Sequence[Roles]) -> list[Roles]:
    """Return the scripts that train, by hand or by a trainer; all of them where none does."""
    return [roles for roles in scripts if roles.trains_by_hand or roles.trains_elsewhere] or list(scripts)


def _reader(reader: Reader | str | None) -> Reader | None:
    if not isinstance(reader, str):
        return reader
    from mldebug_mcp.judge.reader import reader_of

    return reader_of(reader) if reader.strip() else None


def _with_reader(
    findings: list[ScriptFinding], reader: Reader, scripts: Sequence[Roles], notes: list[str]
) -> list[ScriptFinding]:
    """Return findings with those of a reader, by file and line; of a script that it cannot read a note."""
    from mldebug_mcp.judge.reader import script_findings

    training = _that_train(scripts)
    asked = failed = 0
    for roles in training[:MAX_READ]:
        if failed == MAX_FAILURES:
            break
        checkpoint(f"{Path(roles.script.path).name} is being read")
        asked += 1
        try:
            found, refused = script_findings(reader, roles)
        except InputError as error:
            failed += 1
            notes.append(f"{roles.script.path}: rules alone: {error}")
            continue
        notes += [f"{roles.script.path}: a finding of the reader is left out: {why}" for why in refused]
        findings = _joined(findings, found)
    if len(training) > asked:
        notes.append(f"the reader was asked about {asked} of {len(training)} scripts that train")
    return sorted(findings, key=lambda finding: (finding.file, finding.line))


def _joined(findings: Sequence[ScriptFinding], read: Sequence[ScriptFinding]) -> list[ScriptFinding]:
    """Return the findings of rules and of a reader; what both find is named once, and likely at least."""
    joined = list(findings)
    for named in read:
        same = next((at for at, own in enumerate(findings) if _is_same_fault(own, named)), None)
        if same is None:
            joined.append(named)
            continue
        own = joined[same]
        certainty = named.certainty if own.certainty == "depends" else own.certainty
        joined[same] = own.model_copy(update={"probability": named.probability, "certainty": certainty})
    return joined


def _is_same_fault(own: ScriptFinding, named: ScriptFinding) -> bool:
    """Say whether a rule and a reader found the same: one cause, in lines that are close."""
    return own.file == named.file and own.cause == named.cause and abs(own.line - named.line) <= SAME_WITHIN


def _python_files(folder: Path, notes: list[str]) -> list[Path]:
    def enters(path: Path) -> bool:
        return not path.name.startswith((".", "__"))

    return sorted(path for path in walk(folder, enters=enters, notes=notes) if path.suffix == ".py")


def _read(files: Sequence[Path], notes: list[str]) -> Iterator[Script]:
    for file in files:
        checkpoint(f"reading {file.name}")
        if file.suffix not in SUFFIXES:
            notes.append(
                f"{file.name}: no Python file, as its name ends in {file.suffix}{EXPORTS.get(file.suffix, '')}"
            )
            continue
        try:
            yield read_script(_text(file), str(file))
        except InputError as error:
            notes.append(str(error))
        except OSError as error:
            notes.append(unreadable(file, error))
        except SyntaxError as error:
            line = f", line {error.lineno}" if error.lineno else ""
            notes.append(f"{file.name}{line}: no Python that this version reads ({error.msg})")
        except (ValueError, RecursionError, MemoryError) as error:
            notes.append(f"{file.name}: cannot be read ({shorten(str(error) or type(error).__name__, 100)})")


def _text(file: Path) -> str:
    """Return a script as Python decodes it: by its byte order mark or declared encoding; an empty file is empty."""
    if is_file(file) and not file.stat().st_size:
        return ""
    content = read_bytes(file, MAX_SCRIPT_BYTES, "a script is shorter")
    try:
        return decode_source(content)
    except (UnicodeDecodeError, SyntaxError):
        return content.decode("utf-8-sig", errors="replace")


def _finding(file: str, fault: Fault) -> ScriptFinding:
    known = catalogue().causes[fault.cause]
    return ScriptFinding(
        rule=fault.rule,
        file=file,
        line=fault.line,
        lines=sorted({*fault.lines} - {fault.line, 0}),
        certainty=fault.certainty,
        cause=fault.cause,
        summary=fault.says,
        shows=fault.shows,
        fix=fault.fix,
        probability=None,
        citations=catalogue().cite(known.on_cause[:1]),
    )


def _next_call(findings: Sequence[ScriptFinding]) -> Call | None:
    """Return the call that tells more of the surest finding; without one, what checks what no script shows.

    None where that finding is of no cause of the catalogue: its own fix is all that is known.
    """
    first = min(findings, key=lambda finding: SUREST_FIRST.index(finding.certainty), default=None)
    if first is None:
        query = {"query": "sanity checks before training"}
        return Call(tool="search_folklore", arguments=query, why="checks of what no script shows")
    if first.cause == OTHER:
        return None
    return Call(tool="explain", arguments={"id": first.cause}, why="how to confirm and fix what the script shows")


def evidence_from_script(report: ScriptReport) -> list[CauseEvidence]:
    """Return what a script says of causes, for a diagnosis of the run that it made."""
    strongest: dict[str, ScriptFinding] = {}
    for finding in report.findings:
        earlier = strongest.get(finding.cause)
        if earlier is None or BITS[finding.certainty] > BITS[earlier.certainty]:
            strongest[finding.cause] = finding
    evidence = [
        CauseEvidence(
            script_finding.cause,
            BITS[script_finding.certainty],
            f"script, line {script_finding.line}: {script_finding.summary}",
            "check",
        )
        for script_finding in strongest.values()
    ]
    against = max((AGAINST_HEALTHY[finding.certainty] for finding in strongest.values()), default=0.0)
    if against:
        evidence.append(CauseEvidence("healthy", -against, "the script has a fault", "check"))
    return evidence + [
        CauseEvidence(ruled_out.cause, -BITS_AGAINST, f"script, line {ruled_out.line}: {ruled_out.summary}", "check")
        for ruled_out in report.ruled_out
    ]


def findings_from_script(report: ScriptReport) -> list[Finding]:
    """Return the symptoms that a script shows to be absent though a log looks like them."""
    warmed_up = (right for right in report.ruled_out if right.cause == "insufficient_warmup")
    return [
        Finding(symptom="lr_no_warmup", state=State.ABSENT, summary=f"script, line {right.line}: {right.summary}")
        for right in warmed_up
    ]


def script_lines(report: ScriptReport) -> list[str]:
    """Return what a script does wrong, the surest first, and what it does right, each with its line."""
    surest = sorted(report.findings, key=lambda finding: SUREST_FIRST.index(finding.certainty))
    wrong = [f"line {finding.line}, {finding.certainty}: {finding.summary}" for finding in surest]
    right = [f"line {ruled_out.line}, done right: {ruled_out.summary}" for ruled_out in report.ruled_out]
    return [*wrong, *right][:LINES_IN_DIAGNOSIS]
