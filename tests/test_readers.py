"""The test of a reader: what they are given tells nothing but what was observed, and their answers are counted."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from benchmarks.foreign.labels import labelled
from benchmarks.readers.draw import draw, write
from benchmarks.readers.score import score

from mldebug_mcp.knowledge import catalogue
from tests.test_foreign import CRASH, folder_of, sound

RUNS: tuple[Mapping[str, object], ...] = (
    {"id": "telling_oom", "cause": ["out_of_memory"], "half": "open", "text": CRASH},
    {"id": "telling_sound", "cause": ["healthy"], "half": "open", "text": sound()},
    {"id": "telling_refused", "cause": ["overfitting"], "half": "open", "text": "no numbers in here\n"},
    {"id": "telling_closed", "cause": ["fragmentation"], "half": "closed", "text": CRASH},
)
CAUSES = frozenset(catalogue().causes) - {"unknown"}  # a finding may be unknown, too


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What readers get of three open runs."""
    folder = tmp_path_factory.mktemp("readers")
    ones = labelled(folder_of(folder / "runs_of_others", "labels.jsonl", *RUNS), closed=False)
    write(draw(ones, 40, seed=0), folder / "asked")
    return folder / "asked"


def named(folder: Path, form: str, **answers: tuple[str, ...]) -> None:
    """Answer as a reader: by the right cause of each run, what they name."""
    key = [json.loads(line) for line in (folder / "key.jsonl").read_text().splitlines()]
    places = ("first", "second", "third")
    lines = [
        {"run": one["run"], **dict(zip(places, answers[one["right"][0]], strict=False))}
        for one in key
        if one["right"][0] in answers
    ]
    (folder / form / "answers.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))


def test_the_same_seed_draws_the_same_runs_and_another_one_others(tmp_path: Path) -> None:
    many = [{"id": f"r{at}", "cause": ["healthy"], "text": ""} for at in range(40)]
    ones = labelled(folder_of(tmp_path, "labels.jsonl", *many), closed=False)
    drawn = [[one.one.name for one in draw(ones, 5, seed)] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(drawn[0])) == 5


def test_a_closed_run_is_not_drawn_unless_asked_for(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "labels.jsonl", *RUNS)
    assert len(draw(labelled(folder, closed=False), 40, seed=0)) == 3
    assert len(draw(labelled(folder, closed=True), 40, seed=0)) == 4


def test_no_reader_learns_where_a_run_lies_or_what_it_is_called(asked: Path) -> None:
    files = [one for form in ("hidden", "shown") for one in (asked / form).iterdir()]
    assert len(files) == 2 * (3 + 2)
    for one in files:
        told = one.read_text()
        assert "telling" not in told
        assert str(asked.parent) not in told
        assert tempfile.gettempdir() not in told


def test_the_hidden_form_holds_the_observations_and_names_no_cause(asked: Path) -> None:
    for path in (asked / "shown").glob("run-*.json"):
        shown, hidden = path.read_text(), (asked / "hidden" / path.name).read_text()
        if not shown.startswith("{"):
            assert hidden == shown
            continue
        whole, observed = json.loads(shown), json.loads(hidden)
        assert whole["hypotheses"]
        assert observed == {**{name: whole[name] for name in ("run", "sheet", "findings")}, "notes": observed["notes"]}
        assert CAUSES.isdisjoint(re.findall(r"\w+", hidden))
        assert "nothing unusual" not in observed["notes"]


def test_every_cause_has_a_line_with_one_sentence_and_no_link(asked: Path) -> None:
    lines = (asked / "hidden" / "causes.md").read_text().splitlines()[2:]
    assert [line.split("`")[1] for line in lines] == list(catalogue().causes)
    for line in lines:
        assert line.endswith(".")
        assert "](" not in line


def test_answers_are_counted_beside_the_ranking_of_the_tool(asked: Path) -> None:
    named(
        asked,
        "hidden",
        out_of_memory=("fragmentation", "out_of_memory", "hang"),
        healthy=("healthy",),
        overfitting=("healthy", "bad_batch", "hang"),
    )
    named(asked, "shown", out_of_memory=("out_of_memory",), healthy=("lr_too_high", "too_high"))
    said = score(asked)
    assert "| | hidden | shown | the tool's ranking |" in said
    assert "| runs answered | 3 of 3 | 2 of 3 | 2 of 3 |" in said, "the tool refuses a log without numbers"
    assert "| right cause first | 0 of 2 (0.00) | 1 of 2 (0.50) | 1 of 2 (0.50) |" in said
    assert "| right cause among the first 3 | 1 of 2 (0.50) | 1 of 2 (0.50) | 1 of 2 (0.50) |" in said
    assert "| healthy runs called healthy | 1 of 1 (1.00) | 0 of 1 (0.00) | 1 of 1 (1.00) |" in said
    assert "| words that are no cause of the list | 0 | 1 | 0 |" in said


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("lr_too_high", "line 1: not an object with `run` and `first`"),
        ('{"run": "run-99", "first": "healthy"}', "line 1: 'run-99' was not asked"),
        ('{"run": "run-01", "first": "healthy"}\n' * 2, "line 2: 'run-01' is answered twice"),
    ],
)
def test_an_answer_that_cannot_be_counted_is_told_with_its_line(asked: Path, line: str, why: str) -> None:
    (asked / "hidden" / "answers.jsonl").write_text(line)
    with pytest.raises(SystemExit, match=re.escape(why)):
        score(asked)


def test_a_folder_with_something_in_it_is_not_written_into(asked: Path) -> None:
    with pytest.raises(SystemExit, match="not empty"):
        write([], asked)
