"""The lines of a log → the failures in it.

They are tracebacks, put together per rank, and single lines that read like errors. Ranks and hosts are kept apart by
the prefixes of their lines. Lines without a prefix are one stream, in which interleaved tracebacks are followed as
far as possible. Memory is bounded: a traceback keeps its last frames, the log its first failures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from itertools import islice

from mldebug_mcp.core.lazy import dataclass, regex, replace
from mldebug_mcp.core.limits import checkpoint
from mldebug_mcp.core.text import clean
from mldebug_mcp.logs import line_prefixes
from mldebug_mcp.logs.numbers import whole_number

# What launchers, hosts and loggers write before a line: taken off, and read for the rank that it names.
#
# Launchers write `[rank3]:`, `[default3]:`, `[3]:`, `3:`, `[1,3]<stderr>:`, `10.0.0.4:` or `(Worker pid=42)`. Other
# prefixes (host names, times, a logger's) are learned from the first line of a traceback: what stands before
# `Traceback` also stands before its frames.

TRACEBACK = "Traceback (most recent call last)"
_GROUP = f"Exception Group {TRACEBACK}"
_GROUP_MARGIN = regex(r" {1,80}(?:\+-[-+ \d]{4,200}|\+(?= Exc)|\|) {0,2}(?:Exception Group (?=Trace))?")
"""What Python draws before each line of a group of exceptions."""
MAX_LEARNED = 16
MAX_PROCESSES = 2_000
MAX_PREFIX = 120

_PREFIX = regex(
    rf"(?:{line_prefixes.BRACKETED}:|{line_prefixes.MPIRUN}|{line_prefixes.NAMED}) ?|"
    rf"{line_prefixes.NUMBERED}(?=[ \w\[])|"
    r"\[(?P<indexed>\d{1,5})\]:(?= {0,12}\S)|"
    r"(?P<address>\d{1,3}(?:\.\d{1,3}){3}): ?|"
    r"\((?:(?P<process>[\w:.]+) (?:\w{1,20}=\d{1,9} ){0,3})?pid=(?P<pid>\d+)[^)]{0,80}\) ?|"
    r"(?:ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./ ]{1,60}:\d+\] ?"
)
_COLOUR = regex(r"\[(?:[01];)?\d{1,2}m")
"""What a page leaves of a colour: its code, without the character that begins it."""
_QUOTED = regex(r"^(?:> (?=\S|  )|E {3,7}(?=\S)| {1,3}(?=\d{1,4}: (?:\[|  |Traceback)))")
"""What a page writes before a line that is quoted, pytest before one that is an error's, srun before a short rank."""
_NO_PREFIX = regex(r"\w*(?:Error|Exception|Interrupt|Warning|Exit)\b|Original $|traceback *: *$|[╭─│]|\s{2}$")
"""What may stand before `Traceback` and is not a prefix: an exception's name (in a notebook), torchelastic's
summary, a box, more than a space."""


class Prefixes:
    """The prefixes of a log; those of its own are learned on the way."""

    def __init__(self) -> None:
        self.ranks: set[str] = set()
        """All ranks that prefixes named."""
        self.processes: dict[str, str] = {}
        """The name of each process that prefixes named, by its number."""
        self._learned: dict[str, re.Pattern[str]] = {}

    def split(self, line: str) -> tuple[str, str]:
        """Return what tells the stream of a line apart ("" for nothing) and the line without its prefixes."""
        if "\x1b" in line:
            line = clean(line)
        elif "[0" in line:
            line = _COLOUR.sub("", line)
        own, line = self._split_prefix(_QUOTED.sub("", line, count=1))
        if not line or line[0] not in "[(0123456789rREC":
            return own, line
        rank, start = "", 0
        for _ in range(3):
            prefix = _PREFIX.match(line, start)
            if prefix is None or prefix.end() == start:
                break
            named = prefix.groupdict()
            if (process := named.pop("process")) and len(self.processes) < MAX_PROCESSES:
                self.processes.setdefault(named["pid"], process)
            found = next((value for value in named.values() if value is not None), None)
            rank, start = (found or rank), prefix.end()
        # The number of a process and a host's address tell streams apart, but they are no ranks.
        if rank.isdigit() and not line.startswith("("):
            self.ranks.add(rank)
        return rank or own, line[start:]

    def learn(self, line: str) -> str:
        """Learn what stands before `Traceback`; return the stream that it tells apart."""
        prefix = line[: line.index(TRACEBACK)]
        if (
            not prefix.strip()
            or len(prefix) > MAX_PREFIX
            or _NO_PREFIX.search(prefix)
            or len(self._learned) >= MAX_LEARNED
        ):
            return ""
        # Digits differ from line to line in times, and from stream to stream in host names.
        shape = r"\d{1,20}".join(map(re.escape, re.split(r"\d+", prefix)))
        self._learned[prefix] = re.compile(shape)
        return prefix

    def _split_prefix(self, line: str) -> tuple[str, str]:
        for literal in self._learned:
            bare = literal.rstrip()
            if line.startswith(literal) or line.rstrip() == bare:
                return literal, line[len(literal) :]
        for shape in self._learned.values():
            found = shape.match(line)
            if found:
                return "", line[found.end() :]
        return "", line


# What errors, and the lines around them, look like.

EXCEPTION = regex(r"(?P<type>[A-Za-z_][\w.]{0,150})(?::(?: |$)|$)")
BARE_EXCEPTION = regex(
    r"(?P<type>(?!nccl[A-Z])(?:\w{1,60}\.){0,8}\w{0,60}(?:Error|Exception|Interrupt|ArrowInvalid|InvalidType|OutOfResources|BackendCompilerFailed|Unsupported)|"
    r"(?:\w{1,60}\.){1,8}_?(?:exc|errors?|exceptions?)\.[A-Z]\w{0,60})(?::(?: |$)|$)"
)
_CPP_EXCEPTION = (
    r"(?:libc\+\+abi: )?terminat(?:e called after throwing an instance of '|ing .{0,40}exception of type )"
    r"(?P<type>[\w:]{1,150}\w)"
)
CPP_EXCEPTION = regex(_CPP_EXCEPTION)
"""What a process prints that ends in an exception of C++; its message stands below, after `what():`."""
WITHOUT_MESSAGE = regex(_CPP_EXCEPTION + r"[' .]*$")
"""... and nothing more: what was thrown has been printed above, by whatever threw it."""
ASSERTED = regex(r"\W{0,40}(?P<code>assert \S.{0,300}?)\s{1,40}(?P<error>AssertionError\b(?::.*)?)$")
"""An assertion and its failure in one line, as where they are pasted as a title."""
ASSERTION = regex(r"\W{0,40}assert \S")
"""How the line of an assertion begins, where it stands above its failure without a traceback."""
CARRIER = regex(r"(?:\w{1,60}\.){0,6}(?:UnfilteredStackTrace|JaxStackTraceBeforeTransformation): (?=\S)")
"""What stands before an exception whose stack JAX shows whole."""
FATAL = regex(
    r"(?P<type>Fatal Python error|LLVM ERROR): |(?P<logged>F\d{4} [\d:.]{8,30} +\d{1,9} [\w./]{1,80}:\d{1,6}\] |"
    r"\[LightGBM\] \[Fatal\] |(?:\[[\d:]{8}\] [\w./-]{1,160}\.(?:cc|cpp|cu|h):\d{1,6}: ){1,2}(?=Check failed: ))"
)
"""What the interpreter, the compiler or a logger of C++ prints before it stops the process: an error, whatever follows.
"""
LOGGED = regex(
    r".{0,160}?\b(?:ERROR|CRITICAL|FATAL|[Ff]atal|[Ff]ailed)\b.{0,120}?(?<![\w'\"(])(?:[a-z_]\w{0,40}\.){0,6}"
    r"(?P<type>[A-Z]\w{1,60}(?:Error|Exception)): \S"
)
"""A line in which a logger reports an exception without its traceback."""
ERRORS = (BARE_EXCEPTION, CPP_EXCEPTION, FATAL, LOGGED)
"""What makes a line an error outside a traceback, known or not."""
WRAPPERS = regex(
    r"RemoteTraceback|RayTaskError|RayActorError|ActorDiedError|ProcessRaisedException|ChildFailedError|"
    r"SimplifiedTraceback|UnfilteredStackTrace|JaxStackTraceBeforeTransformation"
)
CARRIES = regex(r"\w{1,80}: The following operation failed in the TorchScript interpreter")
"""The message of an exception that only carries another one, which stands below it."""
GOES_ON = regex(r":$|Exception encountered when calling .{1,200}[.)]$")
"""How a message ends that goes on below a blank line: "Graph execution error:", Keras naming the layer that failed."""
EDITOR = regex(r"Exception has occurred: (?P<type>\w{1,80}(?:\.\w{1,80}){0,6})\s*$")
"""How an editor (VS Code) heads an exception, whose message stands in the next line."""
SIGNS = (
    "Traceback", '  File "', "assert ",
    "rror", "xception", "emory", "NCCL", "CUD", "CUBLAS", "illed", "ignal", "SIG", "Segmentation", "atchdog", "Xid",
    "ECC", "oom", "OOM", "ailed", "Warning", "etected", "minimum", "padding", "Token indices", "Some weights", "DUE TO",
    "incompatible", "forked", "ran out of", "hit config", "untagged", "undefined symbol", "fatbin", "No space", "quota",
    "nable", "annot", "upported", "not found", "bbox", "assistant_", "xitcode", "exit status", "unallocated",
    "compiled using", "fallen off", "clients joined", "no chat", "is null", "uncorrectable", "already", "onnection",
    "Broken pipe", "Invalid", "ambiguous", "RESOURCE", "not compiled", "EOS token", "EOT token", "does not", "must be",
    "exc.", "Assertion `", "libdevice", "are not used by", "not supported", "no longer", "CuDNN", "bad_alloc",
    "terminate called", "terminating due", "oss is n", "oss is N", "oss is i", "oss is -", "iverged", "EADDRINUSE",
    "cache_size_limit", "Root Cause", "upsertBucket", "low on resource", "│ /", "│ C:", "│ D:", "halted", "an't open",
    "llegal", "LLVM", "[Fatal]", "not recognized", "项识别", "外部命令", "srun: ", "nterrupt", "free()", "malloc()",
    "orrupt", "smashing", "ProcessPool", "not compatible", "Exception encountered", "xit code", "Tcl_Async",
    "victed", "have died", "rashed", "return code", "TERMINATION", "EXIT CODE", "nhealthy", "imed out", "imeout",
    "enforce fail", "BoundsCheck", "InvalidType", "Check f", "Inner Error", "AICPU", "ueue.Empty", "ueue.Full",
)  # fmt: skip
LOG_LINE = regex(
    r"\[?\d{4}[-/]\d\d[-/]\d\d[ T_]|\[?\d\d/\d\d/\d{4}[ ,]|\[?\d\d:\d\d:\d\d|"
    r"\[?(?:INFO|DEBUG|WARN|ERROR|CRITICAL|FATAL)|\[?[IWEF]\d{3,4} |"
    r"\S{1,80}:\d+:\d+ \[\d+\] NCCL |.{0,40}\d%\|| {0,4}\d{1,3}% |"
    r"(?:Aborted|Killed|Segmentation fault|Bus error)\b|-{20,}$|"
    r"(?:slurmstepd|srun|mpirun|kernel|systemd-oomd)(?:\[\d{1,9}\])?: |\[ {0,6}\d{1,9}\.\d{6}\] |"
    r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d |(?:Out of memory|Memory cgroup out of memory): Kill"
)
"""How a line begins that a logger, a progress bar, a shell, a scheduler or the kernel wrote: it goes on with no message
above it."""
TRAINS_ON = regex(
    r"\W{0,3}(?i:resum(?:ing|ed)\b|(?:global[_ ]?)?(?:step|epoch|iter(?:ation)?)\W{0,4}\d.{0,200}loss)|"
    r"\{.{0,200}loss['\"]: "
)
"""A record of training, or that it goes on from a checkpoint: a message above has ended."""
GRAPH = "Detected at node"
"""TensorFlow's list of where the nodes of a graph were made: frames, but no traceback; the message follows `Node:`."""
RAISE = regex(r"\s{0,80}(?:-{1,6}> ?\d{1,6} )?\s{0,80}raise \w")
"""Code that raises an error: the error itself stands below."""
NOT_A_FAILURE = regex(r"[Rr]etrying|[Rr]etry in")
RANK_NAMED = regex(r"\b(?:[Rr]ank[ =:]{0,2}|process (?=\d{1,6} terminated with ))(\d{1,6})\b")
ROOT_CAUSE = "Root Cause (first observed failure)"
WORKER_FAILED = regex(
    r"\[Rank (?P<snippet>\d{1,6}) Error Snippet\]:|-- Process (?P<spawned>\d{1,6}) terminated with the following error:"
)
"""How Ray Train and torch.multiprocessing.spawn head the traceback of a worker that failed: it stands below."""
ROOT_RANK = regex(r"\s*rank\s{0,10}:\s{0,4}(\d{1,6})")
LINE_END = regex(r"\\{1,2}n")
"""How a line ends inside a string of JSON."""
CHAINS = ("During handling of the above exception", "The above exception was the direct cause")
WITHOUT_DIGITS = str.maketrans("", "", "0123456789.")


# What went wrong in a log: failures with their tracebacks and ranks.

_LIBRARY = regex(
    r"(?:site|dist)-packages[/\\]|[/\\]lib(?:64)?[/\\]python\d|[/\\]Lib[/\\]\w+\.py$|[/\\]Lib[/\\](?:multiprocessing|"
    r"concurrent|asyncio|importlib|json|encodings)[/\\]|^<(?!ipython-input|cell |stdin)|[/\\]ray[/\\]_private[/\\]|"
    r"[/\\]bin[/\\](?:torchrun|accelerate|deepspeed)$|\.p(?:yx|xi|xd)$|"
    r"(?:^|[/\\])torch[/\\](?:_dynamo|_inductor|_functorch|autograd|distributed|fx|nn[/\\]modules|optim)[/\\]"
)


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame of a traceback."""

    file: str
    line: int
    function: str
    code: str = ""

    @property
    def is_users(self) -> bool:
        """Whether the file is the user's and not an installed library's."""
        return _LIBRARY.search(self.file) is None

    def __str__(self) -> str:
        line = f":{self.line}" if self.line else ""
        where = self.file + line + (f" in {self.function}" if self.function else "")
        return f"{where}: {self.code}" if self.code else where


@dataclass(slots=True)
class Failure:
    """Something that reads like an error.

    Args:
        line: Line number of the line that names it, from 1.
        text: That line and the ones that continue it, cleaned.
        exception: Type of the exception, without its modules; empty for a line that is none.
        frames: Frames of its traceback, outermost first; empty without one.
        ranks: Ranks that report it, from prefixes or from its words.
        earlier: The exception that this one was raised after ("During handling of ...", "direct cause").
        progress: Training records that the log holds before it.
        ignored: Whether Python itself says that the exception was ignored.
        is_wrapper: Whether its type only carries another failure over from a worker.
        outside: The user's frame of the traceback that carries this one over ("Original Traceback").
        process: The name of the process that reports it, from the prefix of its line.
        in_thread: Whether a thread other than the main one raised it: PyTorch writes no rank before those.
    """

    line: int
    text: str
    exception: str = ""
    frames: tuple[Frame, ...] = ()
    ranks: set[str] = field(default_factory=set)
    earlier: Failure | None = None
    progress: int = 0
    ignored: bool = False
    is_wrapper: bool = False
    outside: Frame | None = None
    process: str = ""
    in_thread: bool = False

    @property
    def is_bare_end(self) -> bool:
        """Whether it says only that an exception of C++ ended the process, and not what was wrong."""
        return WITHOUT_MESSAGE.match(self.text) is not None

    def chain(self) -> Iterator[Failure]:
        """Yield the exceptions of a chain, the first one raised first."""
        if self.earlier is not None:
            yield from self.earlier.chain()
        yield self

    @property
    def user_frame(self) -> Frame | None:
        """The innermost frame that is not a library's."""
        return next((frame for frame in reversed(self.frames) if frame.is_users), self.outside)


@dataclass(slots=True)
class FailureLog:
    """What a log tells about its failures.

    Args:
        failures: In order of their lines, at most 500.
        left_out: How many more there were.
        root_rank: The rank that the launcher's summary (torchelastic, Ray Train) names as the first to fail.
        ranks: All ranks seen in prefixes.
        progress: Training records in the log.
        lines: Lines read.
        cut_off: Line of a traceback that ends before its exception; 0 for none.
    """

    failures: list[Failure] = field(default_factory=list)
    left_out: int = 0
    root_rank: str | None = None
    ranks: set[str] = field(default_factory=set)
    progress: int = 0
    lines: int = 0
    cut_off: int = 0


# A line of a traceback → the frame or the code that it names, as Python, notebooks (IPython) and Rich write them.
#
# Python writes `File "x.py", line 3, in f` and the code below. IPython writes `File x.py:3, in f(a)`, `Cell In[7], line
# 3` or (before version 8) `x.py in f(a)`, and marks the line among its neighbours by an arrow. Rich draws a box with
# `x.py:3 in f`, and marks the line by `❱`; a long path goes on in the next line of the box.

MAX_CODE = 160
BOX = ("│", "╭", "╰")
"""How a line of a box begins, in which Rich draws a traceback."""

_PYTHON = regex(r'\s*File "(?P<file>[^"]{1,400})", line (?P<line>\d+)(?:, in (?P<function>.{1,120}))?')
_IPYTHON = (
    regex(r'File (?P<file>[^\s"][^"]{0,400}?):(?P<line>\d+)(?:, in (?P<function>[^(]{1,120}))?'),
    regex(r"(?P<file>(?:Cell|Input) In ?\[\d+\])(?:, (?:in )?[\[<(]?(?:cell )?line:? (?P<line>\d+))?(?P<function>)"),
    regex(
        r"(?P<file><ipython-input-[\w-]{1,80}>|[~./\\\w][^\s()]{0,300}) in "
        r"(?P<function><[^<>]{1,60}>|[\w.]{1,120})(?P<line>)"
    ),
)
_LINK = regex(r"\[([^\]\[]{1,300})\]\([^()\s]{1,400}\)")
"""What a page makes of a path or a line number that a notebook shows as a link."""
_ARROW = regex(r"-{1,6}> (?P<line>\d+)(?: (?P<code>.*))?$")
_NUMBERED = regex(r"\s*\d+(?:\s|$)")
_RICH = regex(r"(?P<file>\S.{0,400}):(?P<line>\d+)(?: in(?: (?P<function>\S{1,120}))?)?$")
_WHOLE_PATH = regex(r"[/~\\<]|[A-Za-z]:[/\\]")
"""How a path begins; a line of a box that begins otherwise may hold the end of one."""
_RICH_CELL = regex(r"in (?P<file><[^<>]{1,80}>):(?P<line>\d+)$")
_RICH_ARROW = regex(r"❱ +\d+ +(?:│ *)*(?P<code>.*)$")


def python_frame(line: str) -> Frame | None:
    """Return the frame that a line of Python's own traceback names."""
    return _frame(_PYTHON.match(line)) if 'File "' in line else None


def notebook_frame(line: str) -> Frame | None:
    """Return the frame that a line of a notebook's traceback names; its line number may be at its code."""
    if line[:1].isspace():
        return None
    line = _LINK.sub(r"\1", line)
    return next((_frame(found) for pattern in _IPYTHON if (found := pattern.match(line))), None)


def box_frame(line: str, above: str) -> Frame | None:
    """Return the frame that a line of a box names.

    The content of the line above it in the box may hold the first half of a path.
    """
    inner = box_content(line)
    if not line.startswith("│") or not inner:
        return None
    found = _RICH_CELL.match(inner) or _RICH.match(inner if _WHOLE_PATH.match(inner) else above + inner)
    return _frame(found) if found and "❱" not in inner and not _NUMBERED.match(inner) else None


def box_content(line: str) -> str:
    """Return what a line of a box holds between its borders."""
    return line.strip("│ \t\r\n")


def with_code(frame: Frame, line: str) -> Frame:
    """Return a frame with the code that a line below it shows; the frame itself where the line shows none."""
    arrow = _ARROW.match(_LINK.sub(r"\1", line).strip())
    if arrow:
        number = whole_number(arrow["line"])
        return replace(frame, line=frame.line or number, code=clean((arrow["code"] or "").strip())[:MAX_CODE])
    if line.startswith(BOX):
        marked = _RICH_ARROW.search(box_content(line))
        return replace(frame, code=clean(marked["code"].strip())[:MAX_CODE]) if marked else frame
    code = line.strip()
    if frame.code or not code.strip("^~ ") or not line[:1].isspace() or _NUMBERED.match(line):
        return frame
    return replace(frame, code=clean(code)[:MAX_CODE])


def is_arrow(line: str) -> bool:
    """Return whether a line is the one that a notebook's traceback marks."""
    return line.startswith("-") and _ARROW.match(_LINK.sub(r"\1", line)) is not None


def _frame(found: re.Match[str] | None) -> Frame | None:
    if found is None:
        return None
    function = clean(found.groupdict().get("function") or "").strip()
    return Frame(clean(found["file"]), whole_number(found["line"] or "0"), function)


# The lines of a log → the failures in it: tracebacks put together per rank, and single lines that read like errors.

MAX_FAILURES = 500
MAX_STREAMS = 2_000
MAX_FRAMES = 40
MAX_CONTINUATION = 6
"""Lines after the first one of a message that still belong to it."""
MAX_SHOWN = 600
"""Characters of a line that are kept."""
LINES_PER_BLOCK = 256
"""Lines that are looked through at once for the signs of an error."""
MAX_SHAPES = 5_000
"""Different lines that are looked at closely; lines that differ in their numbers only count once."""


def read_failures(lines: Iterable[str], known: Callable[[str], bool]) -> FailureLog:
    """Read the failures of a log, line by line, in bounded memory.

    `known` says whether a line outside of exceptions is an error message; others are passed over.
    """
    reader = _Reader(known)
    remaining = iter(lines)
    while block := list(islice(remaining, LINES_PER_BLOCK)):
        reader.take_block(block)
        checkpoint(f"{reader.log.lines:,} lines read")
    reader.log.failures.sort(key=lambda failure: failure.line)
    reader.log.ranks = reader.ranks
    reader.log.cut_off = reader.cut_off()
    return reader.log


@dataclass(slots=True)
class _Stream:
    """The lines of one rank: the traceback that is open and the failure that the next lines may continue."""

    in_traceback: bool = False
    ignored: bool = False
    frames: list[Frame] = field(default_factory=list)
    open: Failure | None = None
    room: int = 0
    chained_to: Failure | None = None
    above: str = ""
    in_graph: bool = False
    begun: int = 0
    margin: int = 0
    outside: Frame | None = None
    in_thread: bool = False
    rank: str = ""
    assertion: str = ""


class _Reader:
    """Follows each rank's lines; most lines are passed over after a look for the signs of an error."""

    def __init__(self, known: Callable[[str], bool]) -> None:
        self.log = FailureLog()
        self._known = known
        self._prefixes = Prefixes()
        self._grouped: set[str] = set()
        """The streams in a group of exceptions."""
        self._quiet = True
        self._streams: dict[str, _Stream] = {}
        self._shapes: set[str] = set()
        self._root_lines = 0

    @property
    def ranks(self) -> set[str]:
        """All ranks that prefixes named."""
        return self._prefixes.ranks

    def cut_off(self) -> int:
        """Return the line of the first traceback that is still open; 0 for none."""
        return min(
            (stream.begun for stream in self._streams.values() if stream.in_traceback and stream.begun), default=0
        )

    def take_block(self, block: list[str]) -> None:
        """Take the next lines; a block without the signs of an error costs next to nothing."""
        text = "\n".join(block)
        if self._quiet and not _has_sign(text):
            self.log.lines += len(block)
            self.log.progress += text.count("loss")
            return
        for line in block:
            self.log.lines += 1
            self.log.progress += "loss" in line
            if not self._quiet or _has_sign(line):
                self._take(self.log.lines, line)

    def _take(self, number: int, line: str) -> None:
        if TRACEBACK in line and LINE_END.search(line):
            for piece in _unescaped(line):
                self._take(number, piece)
            return
        line = line[: 4 * MAX_SHOWN]
        key, rest = self._prefixes.split(line)
        rest = self._without_group(key, rest)
        if TRACEBACK in rest:
            key = self._prefixes.learn(rest) or key
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams.setdefault(key if len(self._streams) < MAX_STREAMS else "", _Stream())
        if self._root_lines or ROOT_CAUSE in line:
            self._root(line)
        if (worker := WORKER_FAILED.match(rest)) and key not in self.ranks:
            stream.rank = worker["snippet"] or worker["spawned"]
            self.log.root_rank = self.log.root_rank or stream.rank
        self._follow(stream, key, number, rest.rstrip())
        self._quiet = not self._root_lines and not any(map(_is_waiting, self._streams.values()))

    def _without_group(self, key: str, line: str) -> str:
        """Return a line without the margin of a group of exceptions, where its stream shows one."""
        margin = _GROUP_MARGIN.match(line) if _GROUP in line or key in self._grouped else None
        if margin is None:
            self._grouped.discard(key)
            return line
        self._grouped.add(key)
        return line[margin.end() :]

    def _root(self, line: str) -> None:
        self._root_lines = 12 if ROOT_CAUSE in line else self._root_lines - 1
        rank = ROOT_RANK.match(line)
        if rank:
            self.log.root_rank, self._root_lines = rank[1], 0

    def _follow(self, stream: _Stream, key: str, number: int, line: str) -> None:
        line = _with_assertion(stream, EDITOR.sub(r"\g<type>:", _without_margin(stream, line)))
        if TRACEBACK in line:
            carrier = stream.open if line.startswith("Original") else None
            stream.outside = carrier.user_frame if carrier else None
            stream.in_traceback, stream.frames, stream.open, stream.begun = True, [], None, number
        elif self._is_of_graph(stream, line) or self._is_of_traceback(stream, line):
            pass
        elif not line.strip("\"' \t\r"):
            if stream.open is None or not GOES_ON.search(stream.open.text):
                stream.room = 0
        elif line.startswith(CHAINS):
            stream.chained_to = stream.open or stream.chained_to
            stream.open = None
        elif not self._ends_traceback(stream, key, number, line):
            self._single(stream, key, number, line)

    def _is_of_graph(self, stream: _Stream, line: str) -> bool:
        """Return whether a line belongs to TensorFlow's list of where a graph's nodes were made."""
        if line.startswith(GRAPH) and stream.open is not None:
            stream.in_graph = True
        elif stream.in_graph and line.startswith("Node:"):
            stream.in_graph, stream.room = False, MAX_CONTINUATION
        elif stream.in_graph and line.strip() and not line[0].isspace():
            stream.in_graph = False
        return stream.in_graph

    def _is_of_traceback(self, stream: _Stream, line: str) -> bool:
        """Return whether a line is a frame or its code, and take it."""
        frame = python_frame(line)
        if frame is None and line.startswith(BOX):
            frame = box_frame(line, stream.above)
            stream.above = box_content(line)
        elif frame is None and stream.in_traceback:
            frame = notebook_frame(line)
        if frame is not None:
            stream.in_traceback, stream.open = True, None
            stream.frames.append(frame)
            del stream.frames[:-MAX_FRAMES]
            return True
        is_code = line[:1].isspace() or is_arrow(line)
        if stream.in_traceback and line.strip() and (is_code or line.startswith(BOX)):
            if stream.frames:
                stream.frames[-1] = with_code(stream.frames[-1], line)
            return True
        return False

    def _ends_traceback(self, stream: _Stream, key: str, number: int, line: str) -> bool:
        exception = EXCEPTION.match(line) if stream.in_traceback else None
        if exception is None:
            return False
        failure = self._add(stream, key, number, line, exception["type"])
        failure.frames, failure.earlier = tuple(stream.frames), stream.chained_to
        failure.ignored, stream.ignored = stream.ignored, False
        failure.outside, stream.outside = stream.outside, None
        failure.in_thread, stream.in_thread = stream.in_thread, False
        stream.in_traceback, stream.frames, stream.chained_to = False, [], None
        return True

    def _single(self, stream: _Stream, key: str, number: int, line: str) -> None:
        """Take a line outside tracebacks: an error of its own, the continuation of the last one, or neither."""
        if "Exception ignored" in line:
            stream.ignored, stream.room = True, 0
            return
        if line.startswith("Exception in thread "):
            stream.in_thread, stream.room = True, 0
            return
        if RAISE.match(line):
            return
        if stream.room and TRAINS_ON.match(line):
            stream.room = 0
        line = CARRIER.sub("", line, count=1)
        if asserted := ASSERTED.match(line):
            failure = self._add(stream, key, number, asserted["error"], "AssertionError")
            failure.frames = (Frame("the line itself", 0, "", asserted["code"]),)
            return
        bare = next((found for error in ERRORS if (found := error.match(line))), None)
        goes_on = bare is None and stream.room > 0 and stream.open is not None and not LOG_LINE.match(line)
        # Below an exception its message may go on with a line that is known; below another line that is a new error.
        below_exception = goes_on and stream.open is not None and stream.open.exception != ""
        known = bare is None and not below_exception and self._is_known_line(key, line)
        if goes_on and stream.open is not None and not known:
            stream.room -= 1
            stream.open.text += "\n" + clean(line[:MAX_SHOWN])
        elif (known or bare is not None) and not NOT_A_FAILURE.search(line):
            failure = self._add(stream, key, number, line, (bare["type"] or "FATAL") if bare else "")
            failure.ignored, stream.ignored = stream.ignored, False
            if bare is not None:  # of a chain whose tracebacks were not pasted
                failure.earlier, stream.chained_to = stream.chained_to, None

    def _is_known_line(self, key: str, line: str) -> bool:
        """Return whether a line is an error message that is known, and not one that was seen with other numbers."""
        shape = key + line[:200].translate(WITHOUT_DIGITS)
        if shape in self._shapes or len(self._shapes) >= MAX_SHAPES:
            return False
        self._shapes.add(shape)
        return self._known(line[:MAX_SHOWN])

    def _add(self, stream: _Stream, key: str, number: int, line: str, exception: str) -> Failure:
        text = clean(line[:MAX_SHOWN]).strip()
        ranks = {key} if key in self._prefixes.ranks else set(RANK_NAMED.findall(text)[:8])
        if stream.rank and exception:
            ranks, stream.rank = {stream.rank}, ""
        failure = Failure(number, text, exception.rpartition(".")[2], ranks=ranks, progress=self.log.progress)
        failure.is_wrapper = bool(WRAPPERS.search(exception) or CARRIES.match(text))
        failure.process = self._prefixes.processes.get(key, "")
        stream.open, stream.room = failure, MAX_CONTINUATION
        if len(self.log.failures) < MAX_FAILURES or exception:
            self.log.failures.append(failure)
            if len(self.log.failures) > 2 * MAX_FAILURES:
                # Keep the first failures, and of the later ones those with the newest lines.
                del self.log.failures[MAX_FAILURES]
                self.log.left_out += 1
        else:
            self.log.left_out += 1
        return failure


def _without_margin(stream: _Stream, line: str) -> str:
    """Return a line without the margin of a traceback that is indented as a whole, as its frames show it."""
    indent = len(line) - len(line.lstrip(" "))
    if python_frame(line) is not None:
        stream.margin = max(indent - 2, 0)
    elif indent < stream.margin and line.strip():
        stream.margin = 0
    return line[stream.margin :] if indent >= stream.margin else line


def _with_assertion(stream: _Stream, line: str) -> str:
    """Return a line behind the assertion above it, where it is the failure of that and no traceback holds both."""
    if not line.strip(" ^~"):
        return line
    above, stream.assertion = stream.assertion, line if ASSERTION.match(line) and not stream.in_traceback else ""
    both = f"{above} {line}"
    return both if above and ASSERTED.match(both) else line


def _unescaped(line: str) -> list[str]:
    """Return the lines of a traceback that a string of JSON holds: its beginning and its end, where it is very long."""
    body = line[line.index(TRACEBACK) :].replace('\\"', '"')
    pieces = [piece.removesuffix('"}').partition('", "')[0].partition('","')[0] for piece in LINE_END.split(body)]
    return pieces[:MAX_FRAMES] + pieces[MAX_FRAMES:][-MAX_FRAMES:]


def _has_sign(text: str) -> bool:
    return any(sign in text for sign in SIGNS)


def _is_waiting(stream: _Stream) -> bool:
    return stream.in_traceback or stream.room > 0 or stream.chained_to is not None or stream.assertion != ""
