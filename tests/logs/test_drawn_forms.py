"""Text logs of any form are read as they were written, by the form of their lines: few are read one by one."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest
from tests.logs.drawn_logs import Shape, misread, shapes
from tests.logs.test_alike_lines import assert_read_alike

from mldebug_mcp.logs.formats import text_log
from mldebug_mcp.logs.read import read_run
from mldebug_mcp.logs.text import parsed_line

LINES = 3000
FORMS = shapes(40)


@pytest.mark.parametrize("form", FORMS, ids=range(len(FORMS)))
def test_lines_of_a_drawn_form_are_read_as_written_and_hardly_one_by_itself(
    form: Shape, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = form.log(LINES)
    (tmp_path / "train.log").write_text("".join(f"{line}\n" for line in log.lines))
    reads = 0
    content_of = parsed_line.content_of

    def counted(line: str, **options: bool) -> object:
        nonlocal reads
        reads += 1
        return content_of(line, **options)

    monkeypatch.setattr(text_log, "content_of", counted)
    run = read_run(tmp_path / "train.log")
    assert misread(log, run) == {}
    assert log.points.keys() <= run.series.keys()
    assert reads < LINES / 5


def test_ranks_that_take_turns_are_told_apart_by_the_number_in_their_lines(tmp_path: Path) -> None:
    lines = [
        f"2026-11-20 10:{step // 60:02}:{step % 60:02},123 - INFO - train.py:88 - [rank{rank}] step {step} "
        f"loss {2 + rank + 1 / (1 + step):.4f} eta {step // 60}:{step % 60:02}:00"
        for step in range(600)
        for rank in range(4)
    ]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    loss = read_run(tmp_path / "train.log")["loss"]
    assert len(loss) == 600
    assert loss.value[:3].tolist() == [3.0, 2.5, 2.3333]


def test_a_time_that_is_written_with_fewer_digits_makes_another_form(tmp_path: Path) -> None:
    lines = [
        f"{hour}:{step % 60:02}:07 step {step} loss {3 - step / 1000:.3f}"
        for hour in (8, 9, 10)
        for step in _steps(hour)
    ]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    loss = read_run(tmp_path / "train.log")["loss"]
    assert loss.step.tolist() == list(range(900))
    assert np.allclose(loss.value, 3 - np.arange(900) / 1000)


@pytest.mark.parametrize("form", FORMS[:30], ids=range(30))
def test_forms_with_odd_lines_among_them_read_alike_by_the_block_and_by_the_line(form: Shape) -> None:
    rng = random.Random(form.name)
    lines = [_odd(line, rng) for line in form.log(300).lines]
    assert_read_alike(("\n".join(lines) + "\n").encode())


def _odd(line: str, rng: random.Random) -> str:
    """Change the rank of a line, the place that logs, the width of its hour, or all that it says."""
    line = re.sub(r"(rank|default|GPU)([ =]?)0", lambda found: f"{found[1]}{found[2]}{rng.randrange(4)}", line)
    chance = rng.random()
    if chance < 0.1:
        line = re.sub(r":88\b", f":{rng.randrange(1000)}", line)
    if chance > 0.97:
        return rng.choice(["validation ", "val: "]) + line
    if chance > 0.95:
        return line.replace("loss", "val_loss")
    if chance > 0.93:
        return line.replace("00:", "0:", 1)
    if chance > 0.91:
        return rng.choice(["saving at 10:00:01", "eta 1:00:02", "===== epoch 3 =====", "", f"{line} nan"])
    return line


def _steps(hour: int) -> range:
    return range((hour - 8) * 300, (hour - 7) * 300)
