"""What went wrong in a log, as `reader` finds it: failures with their tracebacks and ranks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from mldebug_mcp.logs.failures import words

_LIBRARY = re.compile(
    r"(?:site|dist)-packages[/\\]|[/\\]lib(?:64)?[/\\]python\d|[/\\]Lib[/\\]\w+\.py$|[/\\]Lib[/\\](?:multiprocessing|"
    r"concurrent|asyncio|importlib|json|encodings)[/\\]|^<(?!ipython-input|cell |stdin)|[/\\]ray[/\\]_private[/\\]|"
    r"[/\\]bin[/\\](?:torchrun|accelerate|deepspeed)$|\.pyx$|"
    r"[/\\]torch[/\\](?:_dynamo|_inductor|_functorch|autograd|distributed|fx|nn[/\\]modules|optim)[/\\]"
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

    @property
    def is_bare_end(self) -> bool:
        """Whether it says only that an exception of C++ ended the process, and not what was wrong."""
        return words.WITHOUT_MESSAGE.match(self.text) is not None

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
        root_rank: The rank that torchelastic's summary names as the first to fail.
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
