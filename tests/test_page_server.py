from __future__ import annotations

import http.client
import json
import os
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from mldebug_mcp.cli.live import CLOSED_PAGE_GRACE_SECONDS, MAX_IDLE_SECONDS, LivePage, PageServer
from mldebug_mcp.logs.follow import FollowedRun
from tests.conftest import PATIENCE

EXAMPLES = Path(__file__).parent.parent / "examples"


class Shown:
    """A page that is served, at a time of our own."""

    def __init__(self) -> None:
        self.now = 0.0
        self.text = "<p>one</p>"
        self.server = PageServer(lambda: self.text, clock=lambda: self.now)
        self._thread = Thread(target=self.server.serve, daemon=True)
        self._thread.start()

    def ask(
        self, method: str = "GET", path: str | None = None, body: str | None = None, **headers: str
    ) -> tuple[int, str, http.client.HTTPMessage]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=PATIENCE)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, self.server.path if path is None else path, body, named)
        answer = connection.getresponse()
        content = answer.read().decode()
        connection.close()
        return answer.status, content, answer.headers

    def ends(self) -> bool:
        self._thread.join(20)
        return not self._thread.is_alive()

    def close(self) -> None:
        self.now = 10 * MAX_IDLE_SECONDS
        self._thread.join(20)
        self.server.server_close()


@pytest.fixture
def shown() -> Iterator[Shown]:
    made = Shown()
    yield made
    made.close()


def test_the_page_is_shown_below_its_own_path_and_nothing_else_is(shown: Shown) -> None:
    status, text, headers = shown.ask()

    assert (status, text) == (200, "<p>one</p>")
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"
    for path in ("/", "/index.html", shown.server.path + "x", "/../../etc/passwd", f"{shown.server.path}../etc/passwd"):
        assert shown.ask(path=path)[0] == 404


def test_the_path_cannot_be_guessed_and_is_another_one_each_time(shown: Shown) -> None:
    with PageServer(str) as other:
        assert other.path != shown.server.path
    assert len(shown.server.path) >= 32


def test_it_listens_on_this_machine_alone(shown: Shown) -> None:
    assert shown.server.server_address[0] == "127.0.0.1"
    assert shown.server.url.startswith("http://127.0.0.1:")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "0.0.0.0:{port}", ""])
def test_a_name_that_is_not_of_this_machine_gets_nothing(shown: Shown, host: str) -> None:
    status, text, _ = shown.ask(Host=host.format(port=shown.server.server_port))

    assert status == 421
    assert "one" not in text


def test_another_page_of_the_browser_gets_nothing(shown: Shown) -> None:
    assert shown.ask(Origin="http://evil.example")[0] == 403
    assert shown.ask("POST", body="bye", Origin="null")[0] == 403


def test_a_page_that_is_known_is_not_sent_again_until_it_changes(shown: Shown) -> None:
    _, _, headers = shown.ask()
    known = headers["ETag"]

    assert shown.ask(If_None_Match=known)[:2] == (304, "")
    shown.text = "<p>two</p>"
    assert shown.ask(If_None_Match=known)[:2] == (200, "<p>two</p>")


def test_it_ends_after_a_goodbye_unless_the_page_comes_back(shown: Shown) -> None:
    shown.ask()
    assert shown.ask("POST", body="bye")[0] == 204
    shown.ask()
    shown.now += CLOSED_PAGE_GRACE_SECONDS
    assert not shown.server.is_over
    shown.ask("POST", body="bye")
    shown.now += CLOSED_PAGE_GRACE_SECONDS
    assert shown.ends()


def test_it_ends_when_nobody_asks_any_more(shown: Shown) -> None:
    shown.now = MAX_IDLE_SECONDS - 1
    shown.ask()
    shown.now += MAX_IDLE_SECONDS - 1
    assert not shown.server.is_over
    shown.now += 1
    assert shown.ends()


def test_a_stranger_does_not_keep_it_alive(shown: Shown) -> None:
    shown.now = MAX_IDLE_SECONDS - 1
    shown.ask(path="/")
    shown.now += 1
    assert shown.ends()


@pytest.mark.parametrize(("method", "status"), [("PUT", 501), ("DELETE", 501), ("HEAD", 200)])
def test_other_methods_change_nothing(shown: Shown, method: str, status: int) -> None:
    assert shown.ask(method)[0] == status
    assert shown.ask()[0] == 200


def test_a_long_goodbye_is_refused(shown: Shown) -> None:
    assert shown.ask("POST", body="x" * 1000)[0] == 413


def lines(first: int, last: int) -> str:
    return "".join(f"{json.dumps({'step': step, 'loss': 3 - step / 500})}\n" for step in range(first, last))


def test_the_page_of_a_run_grows_with_its_log(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    page = LivePage(str(log), FollowedRun(log))
    assert "Waiting for a log" in page.html()

    log.write_text(lines(0, 100))
    first = page.html()
    assert "100 records" in first
    assert page.html() is first, "it is made once"

    with log.open("a") as file:
        file.write(lines(100, 150))
    assert "150 records" in page.html()


def test_a_run_that_is_still_going_is_not_accused_of_having_stopped(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"max_steps": 10_000, "learning_rate": 1e-4}))
    log = tmp_path / "log.jsonl"
    log.write_text(lines(0, 300))

    assert "<b>log_stops</b>" not in LivePage(str(log), FollowedRun(log)).html()
    os.utime(log, (0, 0))
    assert "<b>log_stops</b>" in LivePage(str(log), FollowedRun(log)).html()


def test_the_page_may_ask_its_own_server_and_no_other() -> None:
    path = str(EXAMPLES / "loss_spike")
    page = LivePage(path, FollowedRun(path)).html()

    assert "connect-src 'self'" in page
    assert page.count("http-equiv") == 1
