from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp.checks import examine, symptoms
from mldebug_mcp.checks.check import judge
from mldebug_mcp.knowledge.catalogue import KINDS
from mldebug_mcp.logs.run import Run
from mldebug_mcp.logs.settings import Scalar
from mldebug_mcp.models import State
from tests.runs import run_of_records

EVIDENCE = Path(__file__).parents[2] / "evidence"
METRICS = sorted(
    {need for one in symptoms().values() for need in one.needs}
    | {
        "loss", "eval_loss", "eval_g0_loss", "eval_accuracy", "accuracy", "grad_norm", "learning_rate", "epoch",
        "loss_scale", "skipped_iterations", "rewards/margins", "rewards/accuracies", "rewards/chosen",
        "rewards/rejected", "logps/chosen", "logps/rejected", "reward", "reward_std", "kl", "entropy", "value_loss",
        "step_time", "data_time", "memory", "completion_length", "completions/clipped_ratio", "clip_ratio",
    }
)  # fmt: skip
CONFIG: dict[str, Scalar] = {
    "max_grad_norm": 1.0,
    "beta": 0.1,
    "num_labels": 10,
    "gradient_accumulation_steps": 8,
    "optim": "adamw",
}


def hostile(values: list[float], steps: list[float] | None = None, kind: str = "unknown") -> Run:
    steps = steps or [float(position + 1) for position in range(len(values))]
    records = [{"step": step, **dict.fromkeys(METRICS, value)} for step, value in zip(steps, values, strict=True)]
    return run_of_records(records, config=CONFIG, kind=kind)


RAMP = [float(value) for value in range(1, 41)]
RUNS = {
    "empty": [],
    "one row": [1.0],
    "one zero": [0.0],
    "two rows": [2.0, 1.0],
    "all NaN": [math.nan] * 30,
    "all infinite": [math.inf] * 30,
    "all minus infinite": [-math.inf] * 30,
    "NaN and Inf among numbers": [1.0, math.nan, math.inf, -math.inf, 2.0] * 8,
    "one number among NaN": [math.nan] * 20 + [1.0] + [math.nan] * 20,
    "constant": [1.5] * 40,
    "all zero": [0.0] * 40,
    "negative": [-value for value in RAMP],
    "huge": [1e308, -1e308] * 20,
    "huge and tiny": [1e308, 1e-308] * 20,
    "tiny": [1e-308 * value for value in RAMP],
    "subnormal": [5e-324] * 40,
    "both signs": [(-1) ** value * value for value in range(40)],
    "a spike of 1e300": [1.0] * 20 + [1e300] + [1.0] * 20,
}


@pytest.mark.parametrize("kind", ["unknown", *KINDS])
@pytest.mark.parametrize("values", RUNS.values(), ids=RUNS.keys())
def test_no_symptom_breaks_on_hostile_values(values: list[float], kind: str) -> None:
    findings, notes = examine(hostile(values, kind=kind))
    assert notes == []
    assert [finding.symptom for finding in findings] == list(symptoms())


@pytest.mark.parametrize(
    "steps",
    [
        [5.0] * 40,
        [float(step // 2) for step in range(40)],
        np.random.default_rng(3).permutation(40).astype(float).tolist(),
        [*RAMP[:25], *RAMP[10:25]],
        [*RAMP[:20], *RAMP[:20]],
        [-value for value in RAMP],
        [1e300 * value for value in RAMP],
        [math.nan, math.inf, *RAMP[:38]],
    ],
    ids=["same step", "duplicates", "unsorted", "resumed", "two runs", "negative", "huge", "not finite"],
)
def test_no_symptom_breaks_on_hostile_steps(steps: list[float]) -> None:
    values = (3 * np.exp(-np.arange(40) / 10)).tolist()
    findings, notes = examine(hostile(values, steps))
    assert notes == []
    assert len(findings) == len(symptoms())


def test_a_run_without_any_metric_leaves_everything_unknown_or_absent() -> None:
    findings, notes = examine(run_of_records([]))
    assert notes == []
    assert State.PRESENT not in {finding.state for finding in findings}


@pytest.mark.parametrize("name", symptoms())
def test_what_a_symptom_needs_and_lacks_makes_it_unknown(name: str) -> None:
    one = symptoms()[name]
    finding, broke = judge(one, run_of_records([{"step": step, "other": 1.0} for step in range(1, 30)]))
    assert broke is None
    if one.needs:
        assert finding.state is State.UNKNOWN
        assert finding.summary


@pytest.mark.parametrize("name", symptoms())
def test_every_symptom_is_documented(name: str) -> None:
    lines = symptoms()[name].doc.splitlines()
    assert lines[0].endswith("."), "the first line of the docstring is a sentence"
    assert len(lines) > 2, "the docstring is a sentence, an empty line, and when it is not that"
    assert not lines[1], "the second line of the docstring is empty"
    assert "not this when" in " ".join(lines).lower(), "the docstring says `Not this when: …`"


@pytest.mark.parametrize("name", symptoms())
def test_every_symptom_names_known_sources_and_kinds(name: str) -> None:
    one = symptoms()[name]
    assert [source for source in one.outcome.sources if not (EVIDENCE / f"{source}.md").is_file()] == []
    assert set(one.question.not_for) <= set(KINDS)
    assert 0 < one.outcome.background < 1


@pytest.mark.parametrize("name", symptoms())
def test_an_attribute_belongs_to_an_outcome_of_its_question(name: str) -> None:
    one = symptoms()[name]
    assert one.outcome.of in {"", *(other.id for other in one.question.outcomes if not other.of)}


@pytest.mark.parametrize("name", symptoms())
def test_every_symptom_has_its_tests(name: str) -> None:
    file = f"tests/checks/run/test_{symptoms()[name].question.id}.py"
    assert (EVIDENCE.parent / file).is_file(), f"write the tests of this question into {file}"
