"""What a cause and a link still lack, all at once and with the file or the command that gives it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from benchmarks.faults.counts import fingerprint

from mldebug_mcp.checks import symptoms
from mldebug_mcp.checks.check import Subject
from mldebug_mcp.judge.evidence import SETTLED
from mldebug_mcp.judge.hypotheses import fitted
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.knowledge.catalogue import Cause
from mldebug_mcp.knowledge.search_index import asked, learnt

SUBJECTS: tuple[Subject, ...] = get_args(Subject)
OUTCOMES = {outcome for subject in SUBJECTS for outcome in symptoms(subject)}

WITHOUT_CAUSE = frozenset({"routing_collapses"})
"""Outcomes that are reported, and that no cause of the playbook explains."""


def lacking(cause: Cause) -> Iterator[str]:
    """Yield what a cause lacks: a place in each file, and what is written from these."""
    known = catalogue()
    if not any(cause.id in menu.causes for menu in known.menus.values()):
        yield f"{cause.id}: name it in a menu of PLAYBOOK.md"
    if cause.id not in catalogue().names:
        yield f"{cause.id}: add a row to causes.csv"
    if cause.id not in {*asked(), "unknown"}:
        yield f"{cause.id}: add a line to asked.jsonl"
    if not cause.effects and cause.id not in ("healthy", "unknown"):
        yield f"{cause.id}: link it in links.csv with a word"
    if cause.id not in learnt().causes:
        yield f"{cause.id}: run `python -m benchmarks.search.learn`"


def test_every_cause_has_all_its_parts() -> None:
    problems = [problem for cause in catalogue().causes.values() for problem in lacking(cause)]
    assert not problems, "\n".join(problems)


def test_every_link_leads_to_an_outcome() -> None:
    problems = [f"{link.cause},{link.outcome}" for link in catalogue().links if link.outcome not in OUTCOMES]
    assert not problems, "links.csv names outcomes that no question has:\n" + "\n".join(problems)


def test_every_outcome_of_a_run_leads_to_a_cause() -> None:
    bare = symptoms().keys() - {link.outcome for link in catalogue().links} - WITHOUT_CAUSE
    assert not bare, "\n".join(f"{outcome}: link it to a cause in links.csv" for outcome in sorted(bare))


def test_every_check_that_findings_settle_names_outcomes() -> None:
    unknown = {name for names in SETTLED.values() for name in names} - OUTCOMES
    assert not unknown


def test_every_link_is_quoted_or_counted_or_one_of_a_snapshot() -> None:
    links = catalogue().links
    assert len(links) > 1000
    bare = [link for link in links if not link.quotes and not link.counted and link.outcome not in symptoms("memory")]
    needs = "cite a quote, or take its counts from a fit (docs/adding.md, Counts of a link)"
    assert not bare, "\n".join(f"{link.cause},{link.outcome}: {needs}" for link in bare)


def test_the_counts_are_those_of_the_links() -> None:
    current = fingerprint(catalogue().causes.values())
    needs = f"count new links (docs/adding.md), then set `links` to {current} in judge/fitted.json"
    assert fitted().links == current, needs
