"""A quote beside a hypothesis is about what this run shows, and about runs of its kind."""

from __future__ import annotations

import pytest

from mldebug_mcp.diagnose.citations import DOMAINS, SPECIAL, quotes_for
from mldebug_mcp.knowledge import catalogue


def test_a_quote_on_a_symptom_is_shown_only_where_the_symptom_is_seen() -> None:
    unknown = catalogue().causes["unknown"]
    assert quotes_for(unknown, {"loss_spike"}, "sft")[0] == "bekman_dont_understand_spikes"
    shown = quotes_for(unknown, {"eval_gap_grows"}, "sft")
    assert shown
    assert "bekman_dont_understand_spikes" not in shown


def test_quotes_on_what_is_seen_come_before_those_on_the_cause_as_a_whole() -> None:
    for cause in catalogue().causes.values():
        for effect in cause.effects:
            first = quotes_for(cause, {effect.symptom}, "unknown")[:1]
            if effect.quotes and not any(SPECIAL & set(catalogue().quotes[one].domains) for one in effect.quotes):
                assert first == effect.quotes[:1], (cause.id, effect.symptom)


@pytest.mark.parametrize("kind", DOMAINS)
def test_no_run_of_a_known_kind_is_told_what_holds_in_another_domain(kind: str) -> None:
    known = catalogue().quotes
    for cause in catalogue().causes.values():
        for quote in quotes_for(cause, {effect.symptom for effect in cause.effects}, kind):
            domains = set(known[quote].domains)
            assert domains & {"general", *DOMAINS[kind]} or not domains & SPECIAL, (cause.id, quote)


def test_where_the_kind_of_run_is_not_known_a_special_quote_is_better_than_none() -> None:
    causes = catalogue().causes.values()
    assert all(quotes_for(one, {effect.symptom for effect in one.effects}, "unknown") for one in causes if one.quotes)
