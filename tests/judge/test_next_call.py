"""The call that an answer suggests can be made as it stands, and is worth making."""

from __future__ import annotations

import pickle
import random
from pathlib import Path

from tests.memory import scenarios

from mldebug_mcp import check_memory, diagnose_run, explain_error, search_folklore
from mldebug_mcp.models import Call


def lines_with_nan(count: int = 300) -> list[str]:
    draw = random.Random(0)
    losses = [f"{2 / at**0.3 + draw.gauss(0, 0.02):.4f}" if at < 200 else "nan" for at in range(1, count)]
    return [f"step {at}: loss {loss} grad_norm 1.{at % 7}" for at, loss in enumerate(losses, start=1)]


def after(answer: object) -> Call:
    call = getattr(answer, "next_step", None)
    assert isinstance(call, Call)
    return call


def test_a_log_that_holds_no_error_is_not_to_be_searched_for_one(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("\n".join(lines_with_nan()), encoding="utf-8")
    diagnosis = diagnose_run(log)
    assert str(log) not in "".join(
        step.call or "" for step in diagnosis.next_steps if "explain_error" in str(step.call)
    )
    assert after(diagnosis).tool != "explain_error"


def test_a_log_that_holds_an_error_is_to_be_searched_for_it(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    error = 'Traceback (most recent call last):\n  File "t.py", line 3, in main\n'
    error += "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    log.write_text("\n".join([*lines_with_nan(150), error]), encoding="utf-8")
    assert "explain_error" in [str(step.call).partition("(")[0] for step in diagnose_run(log).next_steps]


def test_of_a_snapshot_the_line_that_leaks_is_looked_at_and_not_the_largest(tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot.pickle"
    snapshot.write_bytes(pickle.dumps(scenarios.snapshot_of(scenarios.leak())))
    report = check_memory(snapshot)
    leak = next(one for one in report.findings if one.finding == "leak")
    focus = after(report).arguments["focus"]
    assert next(one for one in report.top_allocations if one.id == focus).site == leak.stack[0]


def test_who_asks_for_practice_is_told_to_read_the_source_and_not_a_cause_on_which_no_quote_bears() -> None:
    answer = search_folklore("what should I log during training")
    assert after(answer).arguments == {"id": answer.quotes[0].source}
    ill = search_folklore("loss is nan after a few steps")
    assert after(ill).arguments == {"id": ill.entries[0].id}


def test_an_error_of_which_nothing_is_known_is_not_searched_for_in_vain() -> None:
    assert after(explain_error("FrobnicateError: grommet zyzzyva at quux")).arguments == {"id": "unknown"}
