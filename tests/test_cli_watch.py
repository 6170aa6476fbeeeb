from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from mldebug_mcp.cli import main
from mldebug_mcp.cli.live import notifying, running, sending
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.models.runs import News

EXAMPLES = Path(__file__).parent.parent / "examples"
ALARM = News(what="leader", text="may be: $(touch evil) `touch evil` <b>", alarm=True)


def script(tmp_path: Path, code: str) -> str:
    path = tmp_path / "alarm.py"
    path.write_text(code)
    return shlex.join([sys.executable, str(path)])


def test_a_command_is_run_at_an_alarm_with_the_alarm_as_its_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = tmp_path / "told"
    code = f"import os, sys; open({str(told)!r}, 'w').write(os.environ['MLDEBUG_PATH'] + chr(10) + sys.stdin.read())"
    run = str(EXAMPLES / "divergence")

    assert main(["watch", run, "--until-alarm", "--on-alarm", script(tmp_path, code)]) == 1

    path, news = told.read_text().splitlines()
    assert path == run
    assert json.loads(news)["alarm"] is True
    assert "lr_too_high" in json.loads(news)["causes"]
    assert "may be: lr_too_high" in capsys.readouterr().out


def test_a_sound_run_runs_no_command(tmp_path: Path) -> None:
    told = tmp_path / "told"
    command = script(tmp_path, f"open({str(told)!r}, 'w')")

    assert main(["watch", str(EXAMPLES / "healthy"), "--until-alarm", "--on-alarm", command, "--for", "0.001"]) == 0
    assert not told.exists()


def test_what_a_log_says_is_never_a_word_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    running(script(tmp_path, "import sys; sys.stdin.read()"), "$(touch evil)")(ALARM)

    assert not (tmp_path / "evil").exists()


def test_a_command_that_fails_is_told_and_the_watch_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    running(script(tmp_path, "raise SystemExit(3)"), "run")(ALARM)

    assert "it ended with 3" in capsys.readouterr().err


def test_a_notification_is_shown_with_its_text_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown, program = tmp_path / "shown", tmp_path / "notify-send"
    program.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {shown}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    notifying("runs/7")(ALARM)

    assert shown.read_text().splitlines() == [
        "--", "mldebug-mcp", "runs/7: may be: $(touch evil) `touch evil` &lt;b&gt;",
    ]  # fmt: skip


def test_a_machine_that_shows_no_notifications_is_told_so_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(InputError, match="needs notify-send"):
        notifying("run")


def test_a_log_without_any_result_ends_a_watch_for_an_alarm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("".join(f"{json.dumps({'step': step, 'widgets': step % 7 + 0.5})}\n" for step in range(50)))

    assert main(["watch", str(log), "--until-alarm", "--every", "0.01"]) == 1
    assert "no_result: no loss, score or reward found among widgets" in capsys.readouterr().out


def test_each_look_that_finds_something_new_is_summed_up_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(EXAMPLES / "healthy"), "--for", "0.001"]) == 0

    assert any(" step 400, loss " in line and "healthy" in line for line in capsys.readouterr().out.splitlines())


def test_json_holds_news_alone(capsys: pytest.CaptureFixture[str]) -> None:
    main(["watch", str(EXAMPLES / "healthy"), "--json", "--for", "0.001"])

    assert all(json.loads(line)["what"] for line in capsys.readouterr().out.splitlines())


@pytest.fixture
def webhook() -> Iterator[tuple[str, list[dict[str, object]]]]:
    """An address of this machine, and what is posted there."""
    posted: list[dict[str, object]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200 if self.path == "/hook" else 500)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as in the base class
            del format, args

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", posted
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_alarm_is_posted_to_a_webhook_as_slack_takes_it(webhook: tuple[str, list[dict[str, object]]]) -> None:
    address, posted = webhook
    run = str(EXAMPLES / "divergence")
    assert main(["watch", run, "--every", "0.01", "--until-alarm", "--webhook", f"{address}/hook"]) == 1
    [message] = posted
    assert str(message["text"]).startswith(run)
    assert message["path"] == run
    assert isinstance(message["alarm"], dict)
    assert message["alarm"]["alarm"] is True


def test_a_webhook_that_fails_is_named_by_its_host_alone(
    webhook: tuple[str, list[dict[str, object]]], capsys: pytest.CaptureFixture[str]
) -> None:
    sending(f"{webhook[0]}/secret", "run")(ALARM)
    error = capsys.readouterr().err
    assert "127.0.0.1" in error
    assert "secret" not in error


@pytest.mark.parametrize("address", ["file:///etc/hosts", "example.org", "https://"])
def test_a_webhook_is_an_address_of_the_web(address: str) -> None:
    with pytest.raises(InputError, match="--webhook"):
        sending(address, "run")


def test_a_fault_below_the_probability_that_was_asked_for_is_no_alarm(capsys: pytest.CaptureFixture[str]) -> None:
    run = str(EXAMPLES / "loss_spike")
    assert main(["watch", run, "--every", "0.01", "--until-alarm", "--alarm-at", "0.99"]) == 0
    assert main(["watch", run, "--every", "0.01", "--until-alarm", "--alarm-at", "0.05"]) == 1
    assert "may be" in capsys.readouterr().out
