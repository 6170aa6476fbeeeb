"""Names that no grammar can know: the user says what they mean, and until then nothing is called healthy."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from mldebug_mcp import InputError, diagnose_run, read_run, watch_run
from mldebug_mcp.cli import main

ROWS = [f"{10 * at},{0.2 + 2.1 * math.exp(-at / 30):.4f},{1 + 0.1 * math.sin(at):.4f}" for at in range(1, 80)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["step,zl,gn", *ROWS]) + "\n", "utf-8")
    return path


def test_a_log_without_a_loss_score_or_reward_leads_with_that_and_is_not_healthy(log: Path) -> None:
    answer = diagnose_run(log)
    assert answer.notes[0].startswith("no loss, score or reward found among zl, gn")
    assert "--map zl=loss" in answer.notes[0]
    assert answer.hypotheses[0].cause == "unknown"
    assert next(one for one in answer.hypotheses if one.cause == "healthy").probability < 0.01


def test_that_nothing_was_understood_makes_no_cause_likelier_than_it_was(log: Path) -> None:
    credence = {one.cause: one.probability for one in diagnose_run(log).hypotheses}
    assert 0.3 < credence["unknown"] < 0.8
    assert credence["lr_too_high"] > 0.02


def test_names_that_are_explained_are_read_and_judged(log: Path) -> None:
    answer = diagnose_run(log, names={"zl": "loss", "gn": "grad_norm"})
    assert answer.hypotheses[0].cause == "healthy"
    assert {"loss", "grad_norm"} <= set(answer.run.metrics)
    assert not any(note.startswith("no loss") for note in answer.notes)


def test_a_name_that_is_explained_in_one_log_means_nothing_in_the_next(log: Path) -> None:
    assert "loss" in read_run(log, names={"zl": "loss"})
    assert "loss" not in read_run(log)


def test_an_unknown_target_is_refused_with_what_is_allowed(log: Path) -> None:
    with pytest.raises(InputError, match=r"'losss' is not a metric .*allowed are loss, eval_loss, accuracy"):
        diagnose_run(log, names={"zl": "losss"})
    with pytest.raises(InputError, match="'losss' is not a metric"):
        next(watch_run(log, names={"zl": "losss"}))


def test_a_name_that_is_not_in_the_log_is_refused_with_what_is(log: Path) -> None:
    with pytest.raises(InputError, match="nothing called 'Q' is in it; it has zl, gn"):
        diagnose_run(log, names={"Q": "loss"})


def test_words_of_a_text_log_can_be_explained(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("".join(f"iter {at}: zz {3 - at / 50:.3f}\n" for at in range(1, 60)), "utf-8")
    run = read_run(path, names={"zz": "loss"})
    assert run["loss"].value[:2].tolist() == [2.98, 2.96]


def test_the_command_line_maps_names_and_its_check_fails_without_a_loss(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diagnose", str(log), "--check"]) == 3
    assert "no loss, score or reward found among zl, gn" in capsys.readouterr().out
    assert main(["diagnose", str(log), "--check", "--map", "zl=loss,gn=grad_norm"]) == 0
    capsys.readouterr()
    assert main(["diagnose", str(log), "--map", "Q=loss"]) == 2
    assert "nothing called 'Q'" in capsys.readouterr().err


def test_a_watched_run_is_read_with_the_names_that_are_explained(log: Path) -> None:
    news = next(watch_run(log, names={"zl": "loss"}))
    assert "loss 0.3" in news.text
