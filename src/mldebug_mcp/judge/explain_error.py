"""The verb `explain_error`: the first real error of a text or log, what it means and what to do."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mldebug_mcp.core.access import LONGEST_PATH, is_file, is_folder, require
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.paths import expanded, unreadable
from mldebug_mcp.core.text import clean, counted, shorten
from mldebug_mcp.judge.at_a_glance import glance_at_error
from mldebug_mcp.judge.next_call import after_a_sound_log, after_error, after_words, without_error
from mldebug_mcp.judge.search import search_folklore
from mldebug_mcp.judge.statements import FORMS, Statement
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.knowledge.errors import MAX_TEXT, KnownError, Role, known_errors, match
from mldebug_mcp.logs.failures import Failure, FailureLog, read_failures
from mldebug_mcp.logs.log_file import LogFile
from mldebug_mcp.logs.numbers import NO_DIGITS
from mldebug_mcp.models import Call, ErrorExplanation, ErrorMatch, FirstError

# The kind of problem behind an exception whose message is not known, and what to try: by type, then by words.


@dataclass(frozen=True, slots=True)
class Problem:
    """A class of problems: the types of exceptions that are raised, and words of their message; empty: any."""

    name: str
    advice: str
    raised_as: str = ""
    says: str = ""


_UNKNOWN = Problem(
    "unknown",
    "Read the innermost frame of your own code and print what goes into it; reproduce with one process, one batch and "
    "num_workers=0; search the exact message in the issues of the library that raised it.",
)
_SHAPES = (
    r"shapes? mismatch|mismatch(?:ed)? (?:in )?(?:shape|size|dimension)|broadcast|must match|not aligned|"
    r"\b(?:[Ss]hapes?|[Ss]izes?|[Dd]imensions?|dims?|ranks?|channels)\b.{0,80}(?:expected|but got|incompatible|"
    r"inhomogeneous|inconsistent|invalid|do(?:es)? not|cannot be)|"
    r"(?:[Ee]xpected|inconsistent|incompatible|invalid|wrong).{0,60}\b(?:shapes?|sizes?|dimensions?|channels)\b"
)
_TYPES = (
    r"dtypes?\b|scalar ?type|float(?:16|32|64)|\b(?:c10::)?(?:Half|BFloat16|Float|Double|Long|Byte|Bool)(?:Tensor)?\b|"
    r"(?:same|different|wrong|mismatched|unexpected) devices?\b|on (?:the )?(?:cpu|cuda\S*) but|device type"
)
_PROBLEMS = (
    Problem(
        "environment: a package is missing or does not fit",
        "Check with pip that the package is installed in the interpreter that runs (python -m pip list), and "
        "that its version fits the code; look for a file of yours with the package's name.",
        raised_as=r"ModuleNotFoundError|ImportError|PackageNotFoundError",
    ),
    Problem(
        "interface: a function is called with arguments that it does not take",
        "Two versions do not fit: compare the call with the signature in the installed version, then pin or "
        "upgrade. In an overridden method, take over the new signature.",
        raised_as=r"TypeError",
        says=(
            r"unexpected keyword argument|missing \d+ required|takes (?:from |at most |exactly |no )?\w+ |"
            r"got multiple values"
        ),
    ),
    Problem(
        "interface: None where an object was expected",
        "Print what the line takes: a function that returned nothing, a setting that was not given, or a column or "
        "file that was not found upstream.",
        raised_as=r"TypeError|AttributeError",
        says=r"NoneType|\bgot None\b",
    ),
    Problem(
        "interface: an object lacks what is asked of it",
        "Print type() of it one line above: a tuple, list, string or array where an object was expected; a name "
        "that is misspelt or set in another place; or one that another version of the library has.",
        raised_as=r"AttributeError",
        says=r"has no attribute|object has no setter|can't set attribute",
    ),
    Problem(
        "interface: an object is of another kind than the code expects",
        "Print type() of it one line above: a string or dictionary for an object, a class for its instance "
        "(missing brackets), a property called like a method; text from a configuration for a number.",
        raised_as=r"TypeError",
        says=(
            r"not (?:subscriptable|callable|iterable|reversible)|indices must be|unsupported operand|unhashable|"
            r"has no len|not supported between instances|must be (?:str|real number|an integer)|not '?\w{1,30}'?$"
        ),
    ),
    Problem(
        "interface: a result has another number of parts than the code takes",
        "Print the value and its length there: a function, data set or environment that returns more or fewer "
        "parts (another version, another mode), or a row that is malformed.",
        raised_as=r"ValueError|TypeError",
        says=r"values to unpack|cannot unpack",
    ),
    Problem(
        "code: a name is used before it got a value",
        "The branch or loop that sets it did not run: as a rule a data loader or list without a single element, or "
        "a condition that no case fits. Print how often the loop ran.",
        raised_as=r"UnboundLocalError",
    ),
    Problem(
        "configuration: a number does not divide another",
        "The message names both: sizes of batches, heads, layers or groups of ranks have to split evenly. Change "
        "the one that is free; where none is, the number of processes.",
        raised_as=r"AssertionError|ValueError|RuntimeError|Exception",
        says=r"divisible|divide evenly|multiple of",
    ),
    Problem(
        "shapes: two tensors do not fit",
        "Print the shapes at the frame of your own code. Set the batch size to an unusual number, so "
        "that it can be distinguished from other dimensions.",
        raised_as=r"RuntimeError|ValueError|IndexError|InvalidArgumentError",
        says=_SHAPES,
    ),
    Problem(
        "types or devices: tensors of different dtype or device meet",
        "Print dtype and device of what enters the frame of your own code; cast or move on purpose at one place.",
        raised_as=r"RuntimeError|TypeError|ValueError",
        says=_TYPES,
    ),
    Problem(
        "data: a key or column is missing",
        "Print the keys of one example and of one batch just before that line; compare with the columns that the "
        "trainer expects; the name may have been dropped or renamed on the way.",
        raised_as=r"KeyError",
    ),
    Problem(
        "data: an index is out of range, or the data ended",
        "Print the length and the index at that line; look for an empty row, an empty split or a wrong label.",
        raised_as=r"IndexError|StopIteration",
    ),
    Problem(
        "files: a path is missing, wrong or not allowed",
        "Print the absolute path and the working directory; check that the path exists on every node and in the "
        "container, that it is writable, and that the disk is not full.",
        raised_as=r"FileNotFoundError|NotADirectoryError|IsADirectoryError|PermissionError|FileExistsError|OSError|IOError",
    ),
    Problem(
        "network: a server was not reached or refused",
        "Check that the node has network, the address, and the token; download beforehand and run offline.",
        raised_as=(
            r"\w*HTTPError|HfHub\w*Error|Connection\w*Error|\w*Timeout\w*|SSLError|ProxyError|URLError|RemoteDisconnected|"
            r"ProtocolError|gaierror"
        ),
    ),
    Problem(
        "memory of the host: an allocation failed",
        "Stream or memory-map the data, fewer workers; look for a list that grows over the run.",
        raised_as=r"MemoryError",
    ),
    Problem(
        "numbers: a division by zero or an overflow in Python",
        "Look for an empty batch, an empty split or a count of zero that is divided by; guard it where it arises.",
        raised_as=r"ZeroDivisionError|FloatingPointError|OverflowError",
    ),
    Problem(
        "files: the content cannot be read",
        "Look at the first and last lines of the file; it may be cut off, empty, or of another format or encoding.",
        raised_as=(
            r"JSONDecodeError|Unicode\w*Error|\w*ParserError|YAMLError|ScannerError|ConstructorError|UnpicklingError|EOFError|"
            r"BadZipFile|DataLossError"
        ),
    ),
    Problem(
        "an assumption of the code does not hold",
        "Read the assertion at the innermost frame: it names what was expected; print both sides of it.",
        raised_as=r"AssertionError",
    ),
    Problem(
        "stopped by hand",
        "Nothing failed: somebody pressed Ctrl-C or sent SIGINT. Where nobody did, look at the scheduler.",
        raised_as=r"KeyboardInterrupt",
    ),
    Problem(
        "code: a function calls itself without end",
        "Look at the pair of frames that repeats.",
        raised_as=r"RecursionError",
    ),
    Problem(
        "a combination that the library does not offer",
        "Look in its documentation for what the device, dtype or option needs, or use another one.",
        raised_as=r"NotImplementedError",
    ),
    Problem(
        "a warning",
        "It stopped nothing by itself; look for an exception after it.",
        raised_as=r"UserWarning|\w*Warning",
    ),
    Problem(
        "code: a name or a line of the script is wrong",
        "Fix the line of the innermost frame of your own code; where the name belongs to a package, its import is "
        "missing, or failed above (an optional package, an extension that was not built).",
        raised_as=r"NameError|SyntaxError|IndentationError|TabError",
    ),
    Problem(
        "a value or type that is not allowed, in the configuration or in the data",
        "The message says which; follow it from the frame of your own code back to the configuration or to the row "
        "of data that it comes from.",
        raised_as=r"ValueError|TypeError",
    ),
)
"""Those that are known by words, before those that are known by type alone: the first that fits counts."""


def classify(exception: str, message: str) -> Problem:
    """Return the kind of problem that an exception is; its type has no modules, and may be empty."""
    for problem in _PROBLEMS:
        if re.fullmatch(problem.raised_as, exception) and re.search(problem.says, message[:2_000]):
            return problem
    return _UNKNOWN


# Which rank is behind, from the numbers that NCCL's watchdog prints: each process group counts its collectives.


_WAITED = re.compile(
    r"(?:\[PG (?:ID )?(?P<group>[\w ()]{1,60}?) )?\[?Rank (?P<rank>\d{1,6})\].{0,160}?SeqNum=(?P<number>\d{1,12})"
)
"""A rank's report; newer versions name the process group before it."""
MAX_NAMED = 8


def behind(texts: Iterable[str]) -> str | None:
    """Return which ranks wait in an earlier collective than the others of their group, or None if none does.

    Ranks of one group make the same collectives in the same order. So one that waits at a lower number took another
    path, such as one batch fewer or a branch of its own. (PyTorch's flight recorder compares the same numbers.)
    """
    reached: dict[str, dict[str, int]] = defaultdict(dict)
    for text in texts:
        for found in _WAITED.finditer(text):
            ranks, rank = reached[found["group"] or ""], found["rank"]
            ranks[rank] = max(int(found["number"]), ranks.get(rank, 0))
    for group, ranks in reached.items():
        least, most = min(ranks.values()), max(ranks.values())
        if least < most:
            late = sorted((rank for rank, number in ranks.items() if number == least), key=int)
            named = ", ".join(late[:MAX_NAMED])
            they = "they" if group else "if they are of one process group, they"
            return (
                f"rank {named} waits in collective {least}, others as far as {most}: {they} do not make the same "
                "collectives (uneven batches, or a branch that only some ranks take)"
            )
    return None


_WARNED = re.compile(
    r".{0,200}?(?:\w[Ww]arning|\bwarning|WARNING|\bWARN)\b(?<!NCCL WARN)|"
    r"\[W\d{0,4}[ \d:.]{0,30}\w{1,40}\.cpp:\d|W\d{4} \d\d:\d\d:\d\d"
)
"""A line that calls itself a warning, so that it stopped nothing. (NCCL uses WARN for its errors, too.)"""
MAX_MATCHES = 3
MAX_RANKS = 32
_PATH = re.compile(r"[~.]{0,2}[/\\][^\s:]+")
"""What reads like a path and like nothing else."""
_FILE_NAME = re.compile(r"[^\s:]+\.(?:log|txt|out|err|jsonl?|csv|tsv)|[~.]{0,2}[/\\][^\s:]+")
"""What is the name of a file and no message."""
MIN_SURVIVED_MENTIONS = 40
"""Mentions of a loss after a failure that show that training survived it: 20 records of most formats (chosen)."""


@dataclass(frozen=True, slots=True)
class _Judged:
    """A failure with the known errors that it shows."""

    failure: Failure
    known: tuple[KnownError, ...]

    @property
    def weight(self) -> int:
        """How much it looks like the cause: 3 a failure, 2 an echo, 1 a warning, 0 unknown."""
        roles = {row.role for row in self.known}
        if self.failure.ignored or (roles and not self.failure.exception and _WARNED.match(self.failure.text)):
            return 1
        if Role.ERROR in roles:
            return 3
        if Role.ECHO in roles or self.failure.is_wrapper or self.failure.is_bare_end:
            return 2
        return 3 if self.failure.exception else int(bool(roles))


def explain_error(text: str) -> ErrorExplanation:
    """Find the first real error in a text and explain it.

    Args:
        text: An error message, a traceback or a whole log; or the path of a log file.

    Raises:
        InputError: the text is empty, or the file cannot be read.
    """
    if not text.strip():
        raise InputError("the text is empty; give an error message, a traceback, or the path of a log file")
    name = text.strip()
    if "\n" in name or len(name) > LONGEST_PATH:
        return explain_lines(text.splitlines())
    if _is_file(name):
        answer = explain_lines(LogFile.open(expanded(name)).lines())
        return answer if answer.error else _at_a_glance(answer, next_step=after_a_sound_log(name), advice=OF_A_LOG)
    if _is_folder(name):
        raise InputError(f"{shorten(name, 200)}: a folder; name the log file in it that holds the error")
    if _FILE_NAME.fullmatch(name):
        missing = unreadable(name, FileNotFoundError())
        raise InputError(f"{missing}, though it reads like the path of a log; check the path")
    answer = explain_lines([name])
    return answer if answer.error else _at_a_glance(answer, next_step=after_words(name), advice=OF_WORDS)


OF_A_LOG = (
    "See what its metrics show. A run that stops without a message was usually killed from outside: look at dmesg and "
    "the scheduler's log."
)
OF_WORDS = "See what is known about these words; for an error give the lines around the first traceback."


def _at_a_glance(answer: ErrorExplanation, **changed: Call | str) -> ErrorExplanation:
    answer = answer.model_copy(update=changed)
    return answer.model_copy(update={"at_a_glance": glance_at_error(answer)})


def explain_lines(lines: Iterable[str]) -> ErrorExplanation:
    """Find the first real error in the lines of a log and explain it; the lines are read once and not kept."""
    head: list[str] = []
    log = read_failures(_remembering(lines, head), lambda line: bool(match(line, warnings=True)))
    # A chain of exceptions is one failure, represented by its last exception.
    within_chains = {id(failure.earlier) for failure in log.failures}
    judged = [_judge(failure) for failure in log.failures if id(failure) not in within_chains]
    judged = [judgement for judgement in judged if judgement.weight > 0]
    if not judged:
        return _at_a_glance(_from_words("\n".join(head), log))
    return _at_a_glance(_explanation(_first_cause(judged, log), judged, log))


def _is_file(name: str) -> bool:
    try:
        path = expanded(name)
    except InputError:
        return False
    if _PATH.fullmatch(name):
        # That it may not be read has to be said, or the answer would be that its name is no known error.
        require(path)
    return is_file(path)


def _is_folder(name: str) -> bool:
    try:
        return is_folder(expanded(name))
    except InputError:
        return False


def _remembering(lines: Iterable[str], head: list[str]) -> Iterable[str]:
    for line in lines:
        if len(head) < 40:
            head.append(line[:400])
        yield line


def _judge(failure: Failure) -> _Judged:
    """Judge a chain of exceptions by the first of them whose message is known, then by kind, else by the first."""
    chain = list(failure.chain())[:10]
    judged = [(link, _known_errors(link)) for link in chain]
    errors = [(link, known) for link, known in judged if any(row.role is Role.ERROR for row in known)]
    if errors:
        chosen, known = min(errors, key=lambda error: error[1][0].vagueness)
        return _Judged(_of_chain(chosen, chain), known)
    first = next((link for link in chain if not link.is_wrapper), chain[0])
    return _Judged(_of_chain(first, chain), _known_errors(first))


def _known_errors(failure: Failure) -> tuple[KnownError, ...]:
    """Return the known errors that a failure shows, or else its first line: what stands below may not belong to it."""
    code = failure.frames[-1].code if failure.frames else ""
    origin = "\n".join([failure.process, *map(str, failure.frames)])
    # The kinds of messages are those of libraries: what a line of the user's own code raises is none of them.
    own = failure.frames and failure.frames[-1].is_users
    general = not own or bool(code and not code.startswith(("raise ", "assert ")))
    for text in (failure.text, failure.text.partition("\n")[0]):
        if rows := match(text, warnings=True, code=code, origin=origin, general=general):
            return tuple(rows)
    stated = _statement_of(failure) if failure.exception else None
    return (known_errors()[stated.id],) if stated else ()


def _of_chain(chosen: Failure, chain: Sequence[Failure]) -> Failure:
    """Return the failure that stands for a chain, with the ranks of its last one and the first frame of the user's."""
    chosen.ranks |= chain[-1].ranks
    if chosen.user_frame is None:
        chosen.outside = next((failure.user_frame for failure in chain if failure.user_frame is not None), None)
    return chosen


def _first_cause(judged: Sequence[_Judged], log: FailureLog) -> _Judged:
    """Return the failure that caused the others: the first of those that look most like a cause.

    A failure that training survived for many records comes after one that it did not; the rank that torchelastic
    names as the first to fail comes before the others; what a thread raised may be of that rank, too.
    """
    heaviest = max(judgement.weight for judgement in judged)
    candidates = [judgement for judgement in judged if judgement.weight == heaviest]
    fatal = [candidate for candidate in candidates if log.progress - candidate.failure.progress < MIN_SURVIVED_MENTIONS]
    candidates = fatal or candidates
    if any(log.root_rank in candidate.failure.ranks for candidate in candidates):
        candidates = [
            candidate
            for candidate in candidates
            if candidate.failure.in_thread or log.root_rank in candidate.failure.ranks
        ]
    return min(candidates, key=lambda candidate: candidate.failure.line)


def _explanation(first: _Judged, judged: Sequence[_Judged], log: FailureLog) -> ErrorExplanation:
    failure = first.failure
    same = [
        judgement.failure
        for judgement in judged
        if judgement.failure.exception == failure.exception and _is_same_failure(judgement, first)
    ]
    ranks = sorted(set().union(*(repeated.ranks for repeated in same)), key=lambda rank: (len(rank), rank))
    if not ranks and log.root_rank is not None:
        ranks = [log.root_rank]  # a process that was killed or failed early names no rank: its launcher does
    problem = classify(failure.exception, failure.text)
    error = FirstError(
        text=shorten(failure.text, 700),
        line=failure.line,
        ranks=ranks[:MAX_RANKS],
        exception=failure.exception,
        user_frame=shorten(str(failure.user_frame), 300) if failure.user_frame else "",
    )
    matches = _matches(first)
    # The frame itself is text of the log's, and what stands in an advice is taken for ours.
    where = " The line of your own code is given with the error." if error.user_frame else ""
    return ErrorExplanation(
        error=error,
        problem="known message" if first.known and not first.known[0].interpreter else problem.name,
        matches=matches,
        advice=(matches[0].fix if matches else problem.advice) + where,
        next_step=after_error(error, matches, _is_found),
        notes=_notes(first, same, judged, log, ranks),
    )


def _is_same_failure(judged: _Judged, first: _Judged) -> bool:
    if [row.id for row in judged.known[:1]] != [row.id for row in first.known[:1]]:
        return False
    if first.known and not first.known[0].vagueness:
        return True
    return judged.failure.text.translate(NO_DIGITS)[:80] == first.failure.text.translate(NO_DIGITS)[:80]


def _notes(
    first: _Judged, same: Sequence[Failure], judged: Sequence[_Judged], log: FailureLog, ranks: Sequence[str]
) -> list[str]:
    notes = []
    if first.weight == 2:
        notes.append("this message echoes a failure elsewhere, and nothing in this text shows that failure itself")
        silent = sorted(log.ranks - set(ranks), key=lambda rank: (len(rank), rank))
        if silent and ranks:
            notes.append(f"look first at the ranks that do not report it: {', '.join(silent[:MAX_RANKS])}")
    if late := behind(failure.text for failure in log.failures):
        notes.append(late)
    if first.weight == 1 and log.cut_off:
        notes.append(_cut_off(log))
    elif first.weight == 1:
        notes.append("there are only warnings: nothing in this text stopped a run")
    others = [
        judgement.failure
        for judgement in judged
        if judgement.failure not in same and judgement.failure is not first.failure
    ]
    if others:
        lines = ", ".join(f"{other.line} ({other.exception or shorten(other.text, 40)})" for other in others[:5])
        notes.append(f"{counted(len(others), 'other message')}, taken as echoes or later errors, at lines {lines}")
    if len(ranks) > MAX_RANKS:
        notes.append(f"{len(ranks)} ranks report it; the first {MAX_RANKS} are listed")
    if log.root_rank is not None:
        notes.append(f"the launcher names rank {log.root_rank} as the first to fail")
    if log.left_out:
        notes.append(f"{log.left_out} later messages were left out")
    return notes


def _matches(first: _Judged) -> list[ErrorMatch]:
    """Return the entries that fit, the first of them with what the message says itself.

    An entry of one message keeps its own words, behind those of the message. One of a kind of messages says less than
    the message, whose words take the place of its own.
    """
    rows, stated = list(first.known[:MAX_MATCHES]), _statement_of(first.failure)
    if stated is None or not rows or rows[0].role is not Role.ERROR:
        return [_match(row) for row in rows]
    own, first_row = known_errors()[stated.id], rows[0]
    if not first_row.vagueness and not first_row.states and first_row is not own:
        specific = _match(first_row)
        return [specific.model_copy(update={"cause": f"{stated.says} {specific.cause}"}), *map(_match, rows[1:])]
    speaker = own if first_row.interpreter else first_row
    return [_saying(speaker, stated), *(_match(row) for row in rows[1:] if row is not speaker)]


def _saying(row: KnownError, stated: Statement) -> ErrorMatch:
    """Return an entry with what a message says in the place of its own words."""
    words = {"cause": stated.says, "fix": stated.change}
    return _match(row).model_copy(update=words if row.id == stated.id else {**words, "mistaken_for": ""})


def _match(row: KnownError) -> ErrorMatch:
    source = catalogue().sources.get(row.source)
    return ErrorMatch(
        id=row.id,
        message=row.message,
        cause=row.cause,
        fix=row.fix,
        mistaken_for=row.mistaken_for,
        causes=list(row.causes),
        credence=row.credence,
        source=f"{source.title} {source.url} [{source.id}]" if source else row.source,
        locator=row.locator,
    )


def _from_words(head: str, log: FailureLog) -> ErrorExplanation:
    """Explain a text in which no line reads like an error: by its beginning as a whole, if that is known."""
    known = match(head, warnings=True)
    if known:
        failure = Failure(1, head)
        return _explanation(_Judged(failure, tuple(known)), [], log)
    if (explained := _memory_printed(head)) is not None:
        return explained
    return ErrorExplanation(
        error=None,
        problem="no error found",
        advice="Give the lines around the first traceback, from every rank if there are several. A run that stops "
        "without a message was usually killed from outside: look at dmesg and the scheduler's log.",
        next_step=without_error(),
        notes=[_cut_off(log) if log.cut_off else f"{counted(log.lines, 'line')} read; none reads like an error"],
    )


def _memory_printed(head: str) -> ErrorExplanation | None:
    """Return what to do with a text that prints memory numbers and no error; None where it prints none."""
    from mldebug_mcp.memory.snapshot import printed_numbers

    devices = printed_numbers(head)
    if not devices:
        return None
    sizes = [
        f"device {device.device}: {device.allocated:,} bytes allocated, {device.reserved:,} reserved"
        for device in devices
    ]
    return ErrorExplanation(
        error=None,
        problem="no error found",
        advice="These are memory numbers: what tensors hold (allocated) and what PyTorch's allocator holds (reserved). "
        "check_memory (`mldebug-mcp memory`) judges them.",
        next_step=Call(tool="check_memory", arguments={"path": head}, why="what the numbers say of the memory"),
        notes=sizes[:MAX_MATCHES],
    )


def _cut_off(log: FailureLog) -> str:
    return f"the traceback at line {log.cut_off} ends before its exception: give the lines below it too"


MIN_SHARE_OF_WORDS = 0.5
"""Share of the words of a message that a quote or an entry has to hold to be about it. Chosen by hand."""


def _is_found(words: str) -> bool:
    found = search_folklore(words)
    asked = set(words.lower().split())
    texts = [*(quote.text for quote in found.quotes), *(f"{entry.title} {entry.summary}" for entry in found.entries)]
    shared_words = [asked & set(re.findall(r"[a-z_]{3,}", text.lower())) for text in texts]
    return any(len(words_held) >= MIN_SHARE_OF_WORDS * len(asked) for words_held in shared_words)


def _statement_of(failure: Failure) -> Statement | None:
    """Return what the message of a failure says itself; None where it is of no form that is known."""
    text = " ".join(clean(failure.text[: 4 * MAX_TEXT]).split())[:MAX_TEXT]
    for form in FORMS:
        found = form.pattern.search(text)
        if found is None or form.context.search(text) is None:
            continue
        if (statement := form.read(found, failure)) is not None:
            return Statement(form.entry, *statement)
    return None
