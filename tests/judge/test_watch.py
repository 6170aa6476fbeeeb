from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp import watch_run
from mldebug_mcp.cli import main
from mldebug_mcp.judge.watch import MIN_SILENT_SECONDS, Watch
from mldebug_mcp.models.runs import News

EXAMPLES = Path(__file__).parents[2] / "examples"


class Log:
    """A log that grows, and the watch on it, at a time of our own."""

    def __init__(self, path: Path) -> None:
        self.path, self.now = path, 0.0
        self.watch = Watch(path, clock=lambda: self.now)

    def look(self, records: Iterable[Mapping[str, object]] = (), after: float = 30.0) -> list[News]:
        self.now += after
        with self.path.open("a") as file:
            file.writelines(f"{json.dumps(one)}\n" for one in records)
        return self.watch.look()


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "log.jsonl")


def falling(first: int, last: int, spikes: Mapping[int, float] | None = None) -> list[dict[str, float]]:
    noise = np.random.default_rng(0).normal(0, 0.02, 1000)
    high = spikes or {}
    return [
        {"step": step, "loss": 2 + 3 * 0.98**step + float(noise[step]) + high.get(step, 0.0)}
        for step in range(first, last)
    ]


def records_of(example: str) -> list[dict[str, object]]:
    lines = (EXAMPLES / example / "log.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_a_log_that_is_not_there_yet_is_waited_for_and_told_of_once(log: Log) -> None:
    first = log.watch.look()
    assert [one.what for one in first] == ["waiting"]
    assert log.watch.look() == []
    assert [one.what for one in log.look(falling(0, 30))] == ["reading"]


def test_a_healthy_run_is_never_accused_however_often_one_looks(log: Log) -> None:
    records = records_of("healthy")
    news = [one for at in range(0, len(records), 10) for one in log.look(records[at : at + 10])]
    assert [one.what for one in news] == ["reading"]


def test_a_finding_is_told_once_and_again_when_it_begins_anew(log: Log) -> None:
    spikes = {150: 5.0, 250: 5.0}
    told = [
        (one.symptom, one.step)
        for at in range(0, 320, 20)
        for one in log.look(falling(at, at + 20, spikes))
        if one.symptom == "loss_spike"
    ]
    assert [step for _, step in told] == [159, 259]


def test_another_cause_leads_only_if_it_does_at_two_looks(log: Log) -> None:
    log.look(falling(0, 100))
    rising = [{"step": step, "loss": 2.4 * 1.08 ** (step - 100)} for step in range(100, 160)]
    alarms = [[one for one in log.look(rising[at : at + 12]) if one.alarm] for at in range(0, 60, 12)]
    first = next(number for number, found in enumerate(alarms) if found)
    assert first >= 1
    assert sum(map(len, alarms)) >= 1
    assert next(iter(alarms[first][0].causes)) not in {"healthy", "unknown"}


def test_a_run_that_writes_nothing_for_long_is_silent_and_told_of_once_each_time(log: Log) -> None:
    for at in range(0, 50, 10):
        log.look(falling(at, at + 10))
    assert log.look() == []
    (silent,) = log.look(after=MIN_SILENT_SECONDS)
    assert silent.text == "nothing was written for 6 min, where records had come every 30 s"
    assert log.look(after=MIN_SILENT_SECONDS) == []
    assert log.look(falling(50, 60)) == []
    assert [one.what for one in log.look(after=7200)] == ["silent"]


def test_a_pause_as_long_as_usual_is_not_silence(log: Log) -> None:
    for at in range(0, 50, 10):
        log.look(falling(at, at + 10), after=200)
    assert log.look(after=600) == []
    assert log.look(after=1500)[0].what == "silent"


def test_that_a_run_has_not_come_to_its_planned_end_is_no_news(log: Log) -> None:
    (log.path.parent / "config.json").write_text(json.dumps({"max_steps": 1000, "learning_rate": 1e-4}))
    news = [one for at in range(0, 100, 20) for one in log.look(falling(at, at + 20))]
    assert "log_stops" not in {one.symptom for one in news}


def test_the_watch_ends_with_the_run(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    lines = [str({"loss": 3 - step / 50, "learning_rate": 1e-4, "epoch": step / 10}) for step in range(50)]
    path.write_text("\n".join([*lines, str({"train_runtime": 12.5, "train_loss": 2.5, "epoch": 5.0})]) + "\n")
    assert [one.what for one in watch_run(path, every=0.01)][-1] == "finished"


def test_news_come_as_long_as_the_run_goes_on(tmp_path: Path) -> None:
    assert [one.what for one in islice(watch_run(tmp_path / "none.jsonl", every=0.01), 1)] == ["waiting"]


def test_a_folder_is_watched_too(log: Log) -> None:
    watch = Watch(log.path.parent, clock=lambda: 0.0)
    assert watch.look()[0].what == "waiting"
    log.look(falling(0, 30))
    assert watch.look()[0].what == "reading"


@pytest.mark.parametrize(("run", "code"), [("divergence", 1), ("healthy", 0)])
def test_the_command_waits_for_an_alarm_or_the_end_of_its_time(
    run: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    log = next((EXAMPLES / run).glob("*.log"), EXAMPLES / run)
    options = ["--every", "0.01", "--for", "0.001", "--until-alarm"]
    assert main(["watch", str(log), *options]) == code
    printed = capsys.readouterr().out
    assert "reading: " in printed
    assert ("says the facts for it" in printed) is bool(code)
    assert main(["watch", str(log), *options, "--json"]) == code
    news = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert news[0]["what"] == "reading"
    assert any(one.get("alarm") for one in news) is bool(code)


@pytest.mark.parametrize("every", ["0", "-1", "nan", "inf", "soon"])
def test_a_time_that_is_none_is_refused(every: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["watch", "log.jsonl", "--every", every])
    assert "not a number above 0" in capsys.readouterr().err


def test_another_run_that_is_written_to_the_same_file_is_told_anew(log: Log) -> None:
    diverged = [{"step": step, "loss": float("nan")} for step in range(60, 90)]
    first = log.look([*falling(0, 60), *diverged])
    assert "loss_nonfinite" in {one.symptom for one in first}

    second = log.look(falling(0, 40))
    assert second[0].what == "reading"
    assert second[0].step == 39

    again = log.look([{"step": step, "loss": float("nan")} for step in range(40, 60)])
    assert "loss_nonfinite" in {one.symptom for one in again}
