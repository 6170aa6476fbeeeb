"""The verbs `search_folklore` and `explain`: what the catalogue holds, by the words that people use and by id."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal, get_args

from mldebug_mcp.checks import Symptom, symptoms
from mldebug_mcp.core.errors import InputError, UnknownIdError
from mldebug_mcp.core.text import nearest, plain, shorten
from mldebug_mcp.judge.next_call import after_explanation, after_search
from mldebug_mcp.knowledge import Cause, Menu, Quote, Source, catalogue
from mldebug_mcp.knowledge.catalogue import Frequency
from mldebug_mcp.knowledge.errors import KnownError, known_errors, match
from mldebug_mcp.knowledge.search_index import Answer, Document, Found, Index
from mldebug_mcp.models import EntryHit, Explanation, QuoteHit, SearchResult

Kind = Literal["quote", "cause", "symptom", "error", "menu", "any"]

MAX_LIMIT = 20
LEADING_MENU_CAUSES = 2
"""Causes of an item of a menu whose words it has: the others are less likely."""
MAX_DISPUTED_CAUSES = 3
"""Causes found first, whose disagreeing sources are named (chosen: the question is hardly about the others)."""
OFTEN_FREQUENCIES = (Frequency.ALWAYS, Frequency.USUALLY)
MAX_QUERY = 500
MAX_CHARACTERS = 5_200
"""Characters of an answer as JSON: about 1,500 tokens, at 3.5 characters each."""
MAX_SUMMARY_CHARACTERS = 160
MAX_UNKNOWN = 6
_OF_PRACTICE = re.compile(r"\bshould (?:i|we|one)\b|\bbest practices?\b|\brecommend", re.IGNORECASE)
"""How people ask what to do as a rule, and not what is wrong."""


def search_folklore(
    query: str,
    domain: str | None = None,
    topic: str | None = None,
    kind: Kind = "any",
    limit: int = 5,
    *,
    whole: bool = False,
) -> SearchResult:
    """Find what is known about a question, best first.

    Args:
        query: A question or keywords, as one would put it to a colleague.
        domain: Only quotes of this domain, such as "rl" or "vision".
        topic: Only quotes on this topic, such as "loss_spike" or "learning_rate".
        kind: Only quotes, causes, symptoms, error messages or menus; "any" for all of them.
        limit: At most this many quotes, and this many other entries, 1 to 20.
        whole: Return all of them, even if that takes more than about 1,500 tokens.

    Raises:
        InputError: the query is empty, or the domain, topic or kind does not exist; the message lists those that do.
    """
    _check(domain, frozenset(name for quote in catalogue().quotes.values() for name in quote.domains), "domain")
    _check(topic, frozenset(name for quote in catalogue().quotes.values() for name in quote.topics), "topic")
    _check(kind, frozenset(get_args(Kind)), "kind")
    if not any(character.isalnum() for character in query[:MAX_QUERY]):
        raise InputError("the query is empty; ask in a few words, for example 'loss spike after warmup'")
    answer = _index().find(
        query[:MAX_QUERY],
        frozenset(f"error:{known_error.id}" for known_error in match(query[:MAX_QUERY], warnings=True)),
    )
    found = [hit for hit in answer.found if kind in ("any", hit.document.kind)]
    limit = max(1, min(limit, MAX_LIMIT))
    quotes = [hit for hit in found if hit.document.kind == "quote" and _is_filed(hit.document.id, domain, topic)]
    entries = [] if domain or topic else [hit for hit in found if hit.document.kind != "quote"]
    result = SearchResult(
        query=shorten(query, MAX_QUERY),
        quotes=[_quote_hit(quote) for quote in quotes[:limit]],
        entries=[_entry_hit(entry) for entry in entries[:limit]],
    )
    result = result.model_copy(
        update={
            "next_step": after_search(result.quotes, result.entries, of_practice=_asks_for_practice(query, result)),
            "notes": _notes(result, answer),
        }
    )
    return result if whole else within_size(result)


def _asks_for_practice(query: str, result: SearchResult) -> bool:
    """Say whether a question asks what to do as a rule, and none of the quotes found is one on the likeliest cause."""
    if _OF_PRACTICE.search(query[:MAX_QUERY]) is None:
        return False
    cited = _cited()
    bears_on = {cause for quote in result.quotes for cause in cited.get(quote.id, ())}
    return not result.entries or result.entries[0].id not in bears_on


def _check(value: str | None, allowed: frozenset[str], name: str) -> None:
    if value is not None and value not in allowed:
        raise InputError(f"{name} {shorten(value, 60)!r} does not exist; use one of: {', '.join(sorted(allowed))}")


def _is_filed(quote_id: str, domain: str | None, topic: str | None) -> bool:
    quote = catalogue().quotes[quote_id]
    return (domain is None or domain in quote.domains) and (topic is None or topic in quote.topics)


def within_size(result: SearchResult) -> SearchResult:
    """Return the answer, without its last hits if it is too long."""
    quote_hits, entry_hits = list(result.quotes), list(result.entries)
    left_out = 0
    while sum(map(len, map(QuoteHit.to_json, quote_hits))) + sum(map(len, map(EntryHit.to_json, entry_hits))) > (
        MAX_CHARACTERS
    ):
        (quote_hits if len(quote_hits) >= len(entry_hits) else entry_hits).pop()
        left_out += 1
    if not left_out:
        return result
    note = f"{left_out} more hits left out to keep this short; ask for one kind, domain or topic to see them"
    return result.model_copy(update={"quotes": quote_hits, "entries": entry_hits, "notes": [*result.notes, note]})


def _notes(result: SearchResult, answer: Answer) -> list[str]:
    """Say what the answer is not about: an entry on other words must not pass for an answer."""
    unknown = answer.unknown
    named = ", ".join(shorten(word, 30) for word in unknown[:MAX_UNKNOWN])
    if result.quotes or result.entries:
        numbers = [f"{number.number} is {number.is_}" for number in answer.numbers]
        return [*([f"nothing here speaks of: {named}"] if unknown else []), *numbers, *_disagreements(result)]
    if answer.found:
        return [f"nothing of this kind, domain or topic; {len(answer.found)} entries without these conditions"]
    known = f" (unknown words: {named})" if unknown else ""
    return [
        f"nothing here answers this{known}; ask in English, in the words of a symptom, such as 'loss plateau' or 'NaN'"
    ]


def _disagreements(result: SearchResult) -> Iterator[str]:
    """Say where sources disagree about the likeliest cause, each side with its date and what was trained."""
    known = catalogue()
    likeliest = [hit.id for hit in result.entries if hit.kind == "cause"][:MAX_DISPUTED_CAUSES]
    found = {hit.id for hit in result.quotes}
    cited = [described.id for described in known.causes.values() if len(found.intersection(described.disagreeing)) > 1]
    for cause in map(known.causes.__getitem__, [*likeliest, *cited]):
        sides = [known.quotes[quote].source for quote in cause.disagreeing]
        if sides:
            titles = {
                side.title: f"{shorten(side.title, 60)} ({', '.join(filter(None, (side.year, side.regime)))})"
                for side in sides
            }
            yield f"sources disagree here: {'; '.join(titles.values())}. explain('{cause.id}') sets them side by side"
            return


def _quote_hit(found: Found) -> QuoteHit:
    return QuoteHit(**catalogue().quotes[found.document.id].cite().model_dump(), score=round(found.score, 3))


def _entry_hit(found: Found) -> EntryHit:
    document = found.document
    return EntryHit(
        kind=document.kind,
        id=document.id,
        title=shorten(document.id, 80),
        summary=shorten(document.summary, MAX_SUMMARY_CHARACTERS),
        score=round(found.score, 3),
    )


@lru_cache(maxsize=1)
def _index() -> Index:
    return Index(indexed())


def indexed() -> Iterator[Document]:
    """Yield all that can be found."""
    known = catalogue()
    cited = _cited()
    yield from (_of_quote(quote, cited.get(quote.id, ())) for quote in known.quotes.values())
    yield from map(_of_cause, known.causes.values())
    yield from map(_of_menu, known.menus.values())
    yield from map(_of_symptom, symptoms().values())
    yield from map(_of_error, known_errors().values())


def _cited() -> dict[str, tuple[str, ...]]:
    causes: dict[str, list[str]] = {}
    for cause in catalogue().causes.values():
        for quote in cause.quotes:
            causes.setdefault(quote, []).append(cause.id)
    return {quote: tuple(ids) for quote, ids in causes.items()}


def _of_quote(quote: Quote, leads_to: tuple[str, ...]) -> Document:
    return Document(
        kind="quote",
        id=quote.id,
        summary=quote.text,
        text=quote.text,
        tags=quote.topics + quote.situations,
        domains=quote.domains,
        generality=quote.generality,
        source=f"{quote.source.authors} {quote.source.title}",
        leads_to=leads_to,
    )


def _of_cause(cause: Cause) -> Document:
    return Document(
        kind="cause",
        id=cause.id,
        summary=plain(cause.summary),
        text=f"{plain(cause.summary)} {plain(cause.fix)}",
        tags=(
            cause.id,
            cause.id,
            *(effect.symptom for effect in cause.effects if effect.frequency in OFTEN_FREQUENCIES),
        ),
        generality=2,
        asked=tuple(
            plain(item.seen)
            for menu in catalogue().menus.values()
            for item in menu.items
            if cause.id in item.causes[:LEADING_MENU_CAUSES]
        ),
    )


def _of_menu(menu: Menu) -> Document:
    return Document(
        kind="menu",
        id=menu.id,
        summary=plain(menu.summary),
        text=" ".join([plain(menu.summary), plain(menu.first), *(item.seen for item in menu.items)]),
        tags=(menu.id, menu.id),
        generality=1,
    )


def _of_symptom(symptom: Symptom) -> Document:
    causes = tuple(
        cause.id
        for cause in catalogue().causes.values()
        if any(effect.symptom == symptom.id and effect.frequency in OFTEN_FREQUENCIES for effect in cause.effects)
    )
    return Document(
        kind="symptom",
        id=symptom.id,
        summary=symptom.title,
        text=symptom.doc,
        tags=(symptom.id, symptom.id),
        leads_to=causes,
    )


def _of_error(error: KnownError) -> Document:
    return Document(
        kind="error",
        id=error.id,
        summary=f"{error.cause} {error.fix}",
        text=f"{error.message} {error.cause}",
        tags=(error.id,),
        generality=5,
        leads_to=error.causes,
    )


# The verb `explain`: one entry of the catalogue, in full.


MAX_ID = 200
MAX_IDS_RETURNED = 3
MAX_SEARCH_RESULTS = 10
"""Entries that a search for the words of an id gives, whose best of each kind is named. Chosen."""
MAX_SUGGESTED_IDS = 2
"""Ids of like spelling that are suggested before what is meant."""
MIN_ID_SIMILARITY = 0.8
"""Likeness of spelling from which an id is suggested before what is meant."""
MIN_REMOTE_LIKENESS = 0.5
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
    known = catalogue()
    entries = [id_ for id_ in ids if id_ not in known.quotes and id_ not in known.sources]
    near = nearest(name, entries, alike=MIN_ID_SIMILARITY)
    words = name.replace("_", " ")
    found = search_folklore(words, limit=MAX_SEARCH_RESULTS, whole=True).entries if any(map(str.isalnum, words)) else []
    meant = {entry_hit.kind: entry_hit.id for entry_hit in reversed(found)}
    remote = nearest(name, ids, most=1, alike=MIN_REMOTE_LIKENESS)
    return list(dict.fromkeys([*near[:MAX_SUGGESTED_IDS], *reversed(meant.values()), *near, *remote]))[
        :MAX_IDS_RETURNED
    ]


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
