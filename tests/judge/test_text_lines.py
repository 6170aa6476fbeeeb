"""What a log says in words between its records stands in the answer, at its step."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest

from mldebug_mcp import InputError, RunDiagnosis, diagnose_run


def _log(path: Path, words: dict[int, str], *, jump: float = 0.0) -> Path:
    """Write a log of 240 steps with lines of words behind some steps; behind the first of them the loss may jump."""
    draw = random.Random(3)
    lines = []
    for step in range(2, 241, 2):
        since = step - min(words, default=0)
        loss = (
            0.5 + 2.5 * math.exp(-step / 25) + draw.gauss(0, 0.02) + (jump * math.exp(-since / 20) if since > 0 else 0)
        )
        lines.append(f"2026-01-17 07:45:20 INFO train: step {step}/240 loss={loss:.3f} lr=0.001")
        lines += [f"2026-01-17 07:45:20 INFO train: {words[step]}"] if step in words else []
    path.write_text("\n".join(lines) + "\n")
    return path


def _events(answer: RunDiagnosis) -> dict[float, str]:
    return {one.step: one.text for one in answer.sheet.events}


def test_a_line_between_the_records_is_an_event_at_its_step(tmp_path: Path) -> None:
    answer = diagnose_run(_log(tmp_path / "train.log", {100: "No mosaic augmentation from here on"}))

    assert "No mosaic augmentation from here on" in _events(answer)[100]


def test_words_below_the_last_record_are_no_event(tmp_path: Path) -> None:
    answer = diagnose_run(_log(tmp_path / "train.log", {240: "Model saved to out/final"}))

    assert all("saved to" not in text for text in _events(answer).values())


def test_a_log_that_talks_much_keeps_its_warnings(tmp_path: Path) -> None:
    words = {
        step: f"sample: {'abcdefghij'[step % 10] * 3}{'klmnopqrst'[step // 10 % 10] * 3}" for step in range(4, 200, 2)
    }
    words[120] = "WARNING teacher weights not found, a random teacher is used"
    answer = diagnose_run(_log(tmp_path / "train.log", words))

    texts = list(_events(answer).values())
    assert any("random teacher" in text for text in texts)
    assert sum("sample:" in text for text in texts) < 10


def test_a_log_of_warnings_alone_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("WARNING the pretrained weights were not found\n" * 3)

    with pytest.raises(InputError, match="no metrics"):
        diagnose_run(tmp_path / "train.log")


LOST = (
    "Loaded model weights from ckpt_120.pt (missing in file: optimizer_state)",
    "Resuming training from checkpoint at step 120; scheduler state not found, starting fresh",
    "restored checkpoint ckpt-120 (step 120), optimizer skipped",
)


@pytest.mark.parametrize("said", LOST)
def test_a_resume_that_says_which_state_is_missing_leads_to_lost_state(said: str, tmp_path: Path) -> None:
    answer = diagnose_run(_log(tmp_path / "train.log", {120: said}, jump=0.1))

    assert answer.hypotheses[0].cause == "resume_state_lost"
    assert any(one.symptom == "state_missing_at_resume" and one.state == "present" for one in answer.findings)


def test_weights_read_between_records_are_a_resume_where_the_same_words_began_the_log(tmp_path: Path) -> None:
    words = "2026-01-17 07:45:20 INFO train: Loaded model weights from"
    log = _log(tmp_path / "train.log", {120: "Loaded model weights from ckpt_120.pt"})
    log.write_text(f"{words} ckpt_000.pt\n{log.read_text()}")

    assert _events(diagnose_run(log))[122].startswith("resumed")


def test_a_resume_that_restores_everything_is_healthy(tmp_path: Path) -> None:
    said = "=> loaded checkpoint out/ckpt_120.pt (step 120), optimizer and scheduler restored"
    answer = diagnose_run(_log(tmp_path / "train.log", {120: said}))

    assert answer.hypotheses[0].cause == "healthy"
