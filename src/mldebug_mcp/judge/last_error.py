"""The error that ended a run, its meaning and its fix: what an answer leads with where no fault explains it."""

from __future__ import annotations

from collections.abc import Sequence

from mldebug_mcp.checks.run.end_of_run import error_that_ended
from mldebug_mcp.core.access import is_file
from mldebug_mcp.core.lazy import dataclass
from mldebug_mcp.core.paths import expanded
from mldebug_mcp.core.text import capitalised, percent, shorten
from mldebug_mcp.judge.next_call import is_sendable
from mldebug_mcp.judge.run_verdict import MAX_FIX_CHARACTERS, whole_sentences
from mldebug_mcp.logs import Run
from mldebug_mcp.logs.failures import Prefixes
from mldebug_mcp.models import Hypothesis, RunVerdict
from mldebug_mcp.models.base import SOUND

MAX_MESSAGE_CHARACTERS = 160
MAX_MEANING_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class LastError:
    """The error that ended a run.

    Args:
        words: The message, without the prefix of its rank.
        rank: The rank that failed with it; empty where that is not known.
        place: The line that it stands in.
        id: The entry of the message; empty where it is not a known one.
        meaning: What it means.
        fix: What usually helps.
        look_in: The log that holds it, else its message.
    """

    words: str
    rank: str
    place: str
    id: str
    meaning: str
    fix: str
    look_in: str


def died_of(run: Run) -> LastError | None:
    """Return the error that ended a run, of several ranks that of the first to fail; None where none did."""
    message, _ = error_that_ended(run)
    if message is None:
        return None
    from mldebug_mcp.judge.explain_error import explain_lines  # few runs end in an error

    prefixes = Prefixes()
    rank, words = prefixes.split(message.text)
    frame = ["Traceback (most recent call last):", '  File "<log>", line 1, in <module>', f"    {message.code}"]
    answer = explain_lines([*(frame if message.code else []), words])
    known = answer.matches[0] if answer.matches else None
    problem = "" if answer.problem == "unknown" else f"; a problem of {answer.problem}"
    first = None if run.ranks is None else run.ranks.first_failed
    if first is not None:
        rank = ".".join(first.rank)
    elif rank not in prefixes.ranks:
        rank = ""
    return LastError(
        words=shorten(words, MAX_MESSAGE_CHARACTERS),
        rank=rank,
        place=message.place,
        id="" if known is None else known.id,
        meaning=f"not a known message{problem}" if known is None else known.cause,
        fix=answer.advice if known is None else known.fix,
        look_in=_log_of(run, message.text),
    )


def _log_of(run: Run, text: str) -> str:
    """Return the path of the log that holds the error, where it is known; else the message."""
    first = None if run.ranks is None else run.ranks.first_failed
    path = run.path if first is None else str(first.file)
    return path if is_sendable(path) and is_file(expanded(path)) else shorten(text, 300)


def verdict_of_error(error: LastError, hypotheses: Sequence[Hypothesis]) -> RunVerdict:
    """Return the verdict on a run that an error ended, where no fault of the catalogue leads."""
    of_rank = f" of rank {error.rank}" if error.rank else ""
    named = f" [{error.id}]" if error.id else ""
    sound = (
        f"; its curves may be healthy ({percent(hypotheses[0].probability)})" if hypotheses[0].cause == SOUND else ""
    )
    return RunVerdict.model_construct(
        kind="fault",
        headline=f"It ended in an error{of_rank}: {error.words}{named}{sound}",
        facts=[f"it stands in {error.place}", whole_sentences(error.meaning, MAX_MEANING_CHARACTERS)],
        next="Read what this error means, with the line of your own code.",
        fix=capitalised(whole_sentences(error.fix, MAX_FIX_CHARACTERS)),
    )
