"""A quote beside a hypothesis is about what this run shows, and about runs of its kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mldebug_mcp import inspect_batch
from mldebug_mcp.judge.hypotheses import DOMAINS, SPECIAL, quotes_for
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.report.concise import concise_inspection


def test_a_quote_on_a_symptom_is_shown_only_where_the_symptom_is_seen() -> None:
    unknown = catalogue().causes["unknown"]
    assert quotes_for(unknown, {"loss_spike"}, "sft")[0] == "bekman_dont_understand_spikes"
    shown = quotes_for(unknown, {"eval_gap_grows"}, "sft")
    assert shown
    assert "bekman_dont_understand_spikes" not in shown


def test_quotes_on_what_is_seen_come_before_those_on_the_cause_as_a_whole() -> None:
    known = catalogue().quotes
    for cause in catalogue().causes.values():
        for effect in cause.effects:
            if any("general" in known[one].domains for one in effect.quotes):
                assert quotes_for(cause, {effect.symptom}, "unknown")[0] in effect.quotes, (cause.id, effect.symptom)


@pytest.mark.parametrize("kind", DOMAINS)
def test_no_run_of_a_known_kind_is_told_what_holds_in_another_domain(kind: str) -> None:
    known = catalogue().quotes
    for cause in catalogue().causes.values():
        for quote in quotes_for(cause, {effect.symptom for effect in cause.effects}, kind):
            domains = set(known[quote].domains)
            assert domains & {"general", *DOMAINS[kind]} or not domains <= SPECIAL, (cause.id, quote)


def test_where_the_kind_of_run_is_not_known_a_special_quote_is_better_than_none() -> None:
    causes = catalogue().causes.values()
    assert all(quotes_for(one, {effect.symptom for effect in one.effects}, "unknown") for one in causes if one.quotes)


def test_a_quote_for_the_other_side_does_not_stand_beside_a_hypothesis() -> None:
    lr_too_high = catalogue().causes["lr_too_high"]
    assert "superconvergence_one_cycle" in lr_too_high.quotes
    assert "superconvergence_one_cycle" not in quotes_for(lr_too_high, set(), "pretraining")
    assert "olmo3_no_kl" not in quotes_for(catalogue().causes["kl_blowup"], {"kl_high"}, "grpo")


def test_what_is_written_on_one_technique_is_not_shown_for_another() -> None:
    duplicated = catalogue().causes["duplicated_data"]
    assert "smol_po_overfit" not in quotes_for(duplicated, {"eval_gap_grows"}, "supervised")


def test_a_quote_on_what_the_run_shows_comes_first_also_beside_a_cause_without_symptoms() -> None:
    healthy = catalogue().causes["healthy"]
    assert quotes_for(healthy, set(), "pretraining", {"loss_spike"})[0] == "palm_20_spikes"
    assert quotes_for(healthy, set(), "pretraining", set())[0] != "palm_20_spikes"


def test_a_report_holds_each_quote_once(tmp_path: Path) -> None:
    rows = [{"prompt": "hi", "chosen": "yes", "rejected": "yes"}] * 20
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    whole = inspect_batch(tmp_path / "pairs.jsonl")
    quoted = [quote.id for finding in whole.findings for quote in finding.citations]
    short = [quote.id for finding in concise_inspection(whole).findings for quote in finding.citations]
    assert len(quoted) > len(set(quoted))
    assert len(short) == len(set(short)) > 0
