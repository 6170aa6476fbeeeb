"""The verb `explain`: one entry of the catalogue, in full."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from mldebug_mcp.checks import Symptom, symptoms
from mldebug_mcp.core.errors import UnknownIdError
from mldebug_mcp.core.text import nearest, shorten
from mldebug_mcp.judge.next_call import after_explanation
from mldebug_mcp.knowledge import Cause, Menu, Quote, Source, catalogue
from mldebug_mcp.knowledge.catalogue import Frequency
from mldebug_mcp.knowledge.errors import KnownError, known_errors
from mldebug_mcp.models import Explanation

MAX_ID = 200
SUGGESTED = 3
MAX_SEARCH_RESULTS = 10
"""Entries that a search for the words of an id gives, whose best of each kind is named. Chosen."""
MAX_SUGGESTED_IDS = 2
"""Ids of like spelling that are suggested before what is meant."""
MIN_ID_SIMILARITY = 0.8
"""Likeness of spelling from which an id is suggested before what is meant."""
REMOTE = 0.5
"""Likeness of spelling from which an id is suggested after what is meant."""
_CHECK = re.compile(r"\.\d+$")
"""What the id of a next step has beyond that of its cause, where the step stands."""


def explain(id: str) -> Explanation:  # noqa: A002 - the word that users see
    """Return a symptom, batch check, cause, menu, quote, source or known error in full.

    Args:
        id: An id as it stands in an answer, such as `loss_spike` or `lr_too_high`; or that of a next step, such as
            `lr_too_high.1`, for the cause that it belongs to.

    Raises:
        UnknownIdError: the id is unknown; the message names the closest ones.
    """
    name = _CHECK.sub("", re.sub(r"[\s-]+", "_", id[:MAX_ID].strip()))
    kinds = _kinds()
    for entries, show in kinds:
        found = next((text for text in (name, name.lower()) if text in entries), None)
        if found is not None:
            entry = show(entries[found])
            return entry.model_copy(update={"next_step": after_explanation(entry)})
    near = _nearest(name, {text for entries, _ in kinds for text in entries})
    hint = f"did you mean {', '.join(near)}?" if near else "find ids in the answers of diagnose_run and search_folklore"
    raise UnknownIdError(f"unknown id {shorten(name, 80)!r}; {hint}")


def _nearest(name: str, ids: Collection[str]) -> list[str]:
    """Return the ids that are spelled nearly so, then those that mean what the name says, the best of each kind."""
    from mldebug_mcp.judge.search import search_folklore  # a large index, for a wrong id alone

    known = catalogue()
    entries = [id_ for id_ in ids if id_ not in known.quotes and id_ not in known.sources]
    near = nearest(name, entries, alike=MIN_ID_SIMILARITY)
    words = name.replace("_", " ")
    found = search_folklore(words, limit=MAX_SEARCH_RESULTS, whole=True).entries if any(map(str.isalnum, words)) else []
    meant = {entry_hit.kind: entry_hit.id for entry_hit in reversed(found)}
    remote = nearest(name, ids, most=1, alike=REMOTE)
    return list(dict.fromkeys([*near[:MAX_SUGGESTED_IDS], *reversed(meant.values()), *near, *remote]))[:SUGGESTED]


def _kinds() -> tuple[tuple[Mapping[str, Any], Callable[[Any], Explanation]], ...]:
    """Return everything that has an id, by kind, and what shows one of the kind."""
    known = catalogue()
    return (
        (symptoms(), _symptom),
        (symptoms("probe"), _symptom),
        (symptoms("batch"), _batch_check),
        (known.causes, _cause),
        (symptoms("memory"), _memory_symptom),
        (known.quotes, _quote),
        (known.sources, _source),
        (known.menus, _menu),
        (known_errors(), _error),
    )


def _symptom(symptom: Symptom) -> Explanation:
    known = catalogue()
    causes = list(symptom.outcome.effects) or [
        cause.id for cause in known.causes.values() if symptom.id in {effect.symptom for effect in cause.effects}
    ]
    needed = [*symptom.needs, *filter(None, [" or ".join(symptom.question.any_of)])]
    sources, background = symptom.outcome.sources, symptom.outcome.background
    needs = ", ".join(needed) or "nothing in particular"
    quotes = [
        quote.id
        for source in sources
        for quote in known.quotes_of(source)
        if symptom.id in quote.situations + quote.topics
    ]
    text = f"{symptom.doc}\n\nNeeds: {needs}. {_background_line(background, 'runs')}"
    return Explanation(
        id=symptom.id,
        kind="symptom",
        title=symptom.title,
        text=text,
        citations=known.cite(tuple(quotes[:3])),
        related=causes,
    )


def _batch_check(symptom: Symptom) -> Explanation:
    known = catalogue()
    fixes = "".join(f"\n- {framework}: {fix}" for framework, fix in symptom.outcome.fixes.items())
    text = (
        f"{symptom.doc}\n\nSeverity: {symptom.outcome.severity}. {symptom.outcome.why}\n\n**Fix:** "
        f"{symptom.outcome.fix}{fixes}"
    )
    return Explanation(
        id=symptom.id,
        kind="check",
        title=symptom.title,
        text=text,
        citations=known.cite(tuple(quote for quote in symptom.outcome.quotes if quote in known.quotes)),
    )


def _memory_symptom(symptom: Symptom) -> Explanation:
    known, outcome = catalogue(), symptom.outcome
    how_often = _background_line(outcome.background, "snapshots")
    return Explanation(
        id=symptom.id,
        kind="symptom",
        title=symptom.title,
        text=f"{symptom.doc}\n\n**Fix:** {outcome.fix}\n\nSeverity: {outcome.severity}. {how_often}",
        citations=known.cite(symptom.outcome.quotes),
        related=[c.id for c in known.causes.values() if any(effect.symptom == symptom.id for effect in c.effects)],
    )


def _background_line(background: float, of: str) -> str:
    return f"Seen on about {100 * background:.3g}% of the {of} with nothing wrong in which it can be judged."


def _cause(cause: Cause) -> Explanation:
    related = [effect.symptom for effect in cause.effects] + list(cause.mistaken_for)
    return Explanation(
        id=cause.id,
        kind="cause",
        title=cause.id,
        text=f"{cause.markdown}{_outcomes(cause)}{_further(cause)}{side_by_side(cause)}",
        citations=catalogue().cite(cause.quotes),
        related=related,
    )


def _outcomes(cause: Cause) -> str:
    """Return all outcomes of a cause by how often it shows them."""
    by_word = {word: [effect.symptom for effect in cause.effects if effect.frequency is word] for word in Frequency}
    shown = "; ".join(f"{word} {', '.join(ids)}" for word, ids in by_word.items() if ids)
    return f"\n\n**Outcomes:** {shown}." if shown else ""


def _further(cause: Cause) -> str:
    """Return the checks beyond that of the page, and where sources disagree."""
    checks = "".join(
        f"\n{number}. {step.action} ({step.cost}) Confirms: {step.confirms}. Refutes: {step.refutes}."
        + (f" Call: `{step.call}`" if step.call else "")
        for number, step in enumerate(cause.next_steps[1:], start=2)
    )
    disagreement = f"\n\n**Disagreement:** {cause.disagreement}" if cause.disagreement else ""
    return (f"\n\n**Further checks:**\n{checks}" if checks else "") + disagreement


def side_by_side(cause: Cause) -> str:
    """Return what the sources that disagree about a cause say, oldest first, each with its date and regime."""
    rows = "".join(f"\n| {_when(quote.source)} | {quote.text} |" for quote in catalogue().sides(cause))
    head = "\n\n**Side by side:**\n\n| source, year, what was trained | its words |\n| --- | --- |"
    return head + rows if rows else ""


def _when(source: Source) -> str:
    return ", ".join(filter(None, (source.title, source.year, source.regime)))


def _quote(quote: Quote) -> Explanation:
    source = quote.source
    regime = f"; {source.regime}" if source.regime else ""
    source_line = f"{source.authors}, *{source.title}* ({source.year}{regime}), {quote.locator}. {source.url}"
    text = f"> {quote.text}\n\n{source_line}\n\nVerified against {quote.verified_against} ({quote.grade})."
    return Explanation(
        id=quote.id, kind="quote", title=f"{source.authors}, {source.title}", text=text, citations=[quote.cite()],
        related=[quote.source.id],
    )  # fmt: skip


def _source(source: Source) -> Explanation:
    quotes = catalogue().quotes_of(source.id)
    text = (
        f"{source.authors}, *{source.title}* ({source.year}), {source.kind}. {source.url}\n\nLicence: {source.licence}."
    )
    return Explanation(
        id=source.id, kind="source", title=source.title, text=text + (f"\n\n{source.notes}" if source.notes else ""),
        citations=[quote.cite() for quote in quotes], related=[quote.id for quote in quotes],
    )  # fmt: skip


def _menu(menu: Menu) -> Explanation:
    return Explanation(
        id=menu.id,
        kind="menu",
        title=menu.id.removeprefix("menu_").replace("_", " "),
        text=menu.markdown,
        citations=catalogue().cite(menu.quotes),
        related=list(menu.causes),
    )


def _error(error: KnownError) -> Explanation:
    source = catalogue().sources.get(error.source)
    where = f"{source.title} ({source.url})" if source else error.source
    message = f"`{error.message}`\n\n" if error.message else ""
    text = (
        f"{message}Cause ({error.credence}): {error.cause}\n\nFix: {error.fix}\n\n"
        f"Mistaken for: {error.mistaken_for}\n\nSource: {where}, {error.locator}."
    )
    related = list(error.causes) + ([source.id] if source else [])
    return Explanation(id=error.id, kind="error", title=error.cause, text=text, related=related)
