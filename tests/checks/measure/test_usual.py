"""What is usual for a setting stands in one table, each row with where it is from."""

from __future__ import annotations

import pytest

from mldebug_mcp.checks.reference_settings import RATES, RATES_OF_FAMILY, USUAL
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.logs.names.settings import PHRASES
from tests.runs import run_of, seen

SOURCES = {
    **{name: [one.source for one in rows] for name, rows in USUAL.items()},
    **{f"rate of {name}": [one.source] for name, one in (*RATES.items(), *RATES_OF_FAMILY.items())},
}
DERIVED = {"effective_batch"}


@pytest.mark.parametrize("name", SOURCES)
def test_each_range_says_where_it_is_from(name: str) -> None:
    for part in (part for source in SOURCES[name] for part in source.split("; ")):
        assert part.startswith(("default of ", "chosen")) or part in catalogue().sources


@pytest.mark.parametrize("name", USUAL)
def test_what_is_usual_is_not_marked_and_has_a_setting(name: str) -> None:
    assert name in PHRASES or name in DERIVED
    for one in USUAL[name]:
        assert one.marked[0] <= one.low <= one.high <= one.marked[1]


@pytest.mark.parametrize(
    ("symptom", "setting", "value", "kind"),
    [("beta_low", "beta", 1e-4, "preference"), ("weight_decay_high", "weight_decay", 0.5, "sft")],
)
def test_a_symptom_names_the_range_of_the_table(symptom: str, setting: str, value: float, kind: str) -> None:
    run = run_of(loss=[2.0] * 20, config={setting: value}, kind=kind)
    (usual,) = (one for one in USUAL[setting] if not one.kinds or kind in one.kinds)
    assert str(usual) in seen(symptom, run).summary
