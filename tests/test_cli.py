from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from mldebug_mcp.cli import main
from mldebug_mcp.judge import diagnose_run
from mldebug_mcp.knowledge import catalogue


def test_diagnose_prints_what_is_seen_what_it_may_be_and_what_to_check(
    examples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diagnose", "--long", str(examples / "loss_spike")]) == 0
    printed = capsys.readouterr().out
    for words in (
        "loss_spike: loss jumps",
        "▲ step 250",
        "bad_batch",
        "Check next",
        "confirms:",
        "Practitioners on this",
    ):
        assert words in printed
    assert "\x1b" not in printed, "no colour codes where the output is no terminal"


def test_json_is_the_full_answer_and_nothing_else(examples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", "--json", str(examples / "nan_loss")]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert sum(one["probability"] for one in answer["hypotheses"]) == pytest.approx(1)
    assert {"healthy", "unknown"} <= {one["cause"] for one in answer["hypotheses"]}


def test_the_outcome_of_a_check_is_named_as_it_is_printed_and_moves_the_causes(
    examples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(examples / "loss_spike")
    main(["diagnose", "--long", run])
    before = capsys.readouterr().out
    assert "(bad_batch.1: seconds" in before
    assert "; also for " in before
    assert main(["diagnose", "--long", run, "--outcome", "bad_batch.1=refutes"]) == 0
    after = capsys.readouterr().out
    assert "check bad_batch.1 refutes it" in after
    assert "(bad_batch.1:" not in after
    assert main(["diagnose", run, "--outcome", "bad_batch.1=perhaps"]) == 2
    assert "use confirms or refutes" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["diagnose", run, "--outcome", "bad_batch.1"])
    assert "write CHECK=confirms or CHECK=refutes" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["diagnose", run, "--outcome", "bad_batch.1=refutes", "--outcome", "bad_batch.1=confirms"])
    assert "bad_batch.1 is given as refutes and as confirms; give it once" in capsys.readouterr().err


@pytest.mark.parametrize(("run", "code"), [("healthy", 0), ("divergence", 1)])
def test_check_tells_by_its_exit_code_whether_something_was_found(
    examples: Path, run: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diagnose", "--check", str(examples / run)]) == code
    assert capsys.readouterr().out


@pytest.mark.parametrize("losses", ["3.1 2.9", "1.0 0.9 0.8 0.7", "5e3"])
def test_check_exits_with_a_code_of_its_own_where_nothing_can_be_judged(
    tmp_path: Path, losses: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    records = [json.dumps({"step": at, "loss": float(loss)}) for at, loss in enumerate(losses.split(), start=1)]
    (run / "log.jsonl").write_text("\n".join(records), encoding="utf-8")
    assert main(["diagnose", "--check", str(run)]) == 3
    assert main(["diagnose", str(run)]) == 0
    assert main(["runs", "--check", "--no-cache", "--processes", "1", str(tmp_path)]) == 3
    assert "Healthy" not in capsys.readouterr().out


def test_a_fault_in_one_run_goes_before_another_that_cannot_be_judged(
    tmp_path: Path, examples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short = tmp_path / "log.jsonl"
    short.write_text('{"step": 1, "loss": 2.5}\n', encoding="utf-8")
    assert main(["diagnose", "--short", "--check", str(short), str(examples / "divergence")]) == 1
    assert main(["diagnose", "--short", "--check", str(short), str(examples / "healthy")]) == 3
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_an_error_names_the_options_of_the_command_and_not_the_arguments_of_python(
    tmp_path: Path, examples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(
        "".join(json.dumps({"step": at, "loss": 3 / at}) + "\n" for at in range(10, 90, 10)), encoding="utf-8"
    )
    plain = ["--sampler", "random", "--seed", "3", "--batch-size", "2", "--rows", "40"]
    given = {
        "--rows N is needed": ["rows", str(log), "--step", "10", *plain[:-2], "--first-step", "1"],
        "say --first-step 0 or --first-step 1": ["rows", str(log), "--step", "10", *plain],
        "with --checkpoints FOLDER": ["checkpoint", str(examples / "healthy")],
    }
    for said, arguments in given.items():
        assert main(arguments) == 2
        error = capsys.readouterr().err
        assert said in error
        assert not re.search(r"\b(?:rows|first_step|checkpoints)\b=", error)


@pytest.mark.parametrize("points", ["3", "2001", "0"])
def test_a_number_of_points_that_no_curve_is_shown_with_is_refused_with_the_others(
    points: str, examples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["read", str(examples / "healthy"), "loss", "--points", points])
    assert "--points" in capsys.readouterr().err


@pytest.mark.parametrize("points", [4, 5, 11, 30])
def test_about_so_many_points_are_shown_as_are_asked_for(
    points: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps({"step": at, "loss": 3 / at}) + "\n" for at in range(1, 400)), encoding="utf-8")
    assert main(["read", str(log), "loss", "--points", str(points), "--json"]) == 0
    (series,) = json.loads(capsys.readouterr().out)["series"]
    assert 0.7 * points <= len(series["points"]) <= points


def test_the_folder_in_which_a_script_lies_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "experiment"
    folder.mkdir()
    for name in ("a.py", "b.py"):
        (folder / name).write_text("for x, y in loader:\n    criterion(model(x), y).backward()\n    optimizer.step()\n")
    monkeypatch.chdir(folder)
    assert main(["script", "."]) == 0
    assert " in experiment (2 files)" in capsys.readouterr().out.splitlines()[0]


def test_search_prints_quotes_with_author_and_address(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "overfit", "a", "single", "batch", "--limit", "2"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("“") == 2
    assert "https://" in printed


def test_explain_prints_the_fix_of_a_cause_before_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "lr_too_high"]) == 0
    printed = capsys.readouterr().out
    assert printed.index("Fix\n") < printed.index("Shows\n") < printed.index("Checks\n")
    assert "See also:" in printed


@pytest.mark.parametrize("name", ["bad_batch", "menu_loss_spiked", "loss_spike", "bekman_mle", "label_shift_error"])
def test_explain_prints_text_for_people(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", name]) == 0
    printed = capsys.readouterr().out
    assert "](" not in printed, "no addresses of links within a sentence"
    assert "**" not in printed
    assert max(map(len, printed.splitlines())) <= 100


def test_explain_lists_the_ten_symptoms_that_a_cause_shows_most_often(capsys: pytest.CaptureFixture[str]) -> None:
    main(["explain", "lr_too_high"])
    printed = capsys.readouterr().out
    effects = sorted(catalogue().causes["lr_too_high"].effects, key=lambda one: -one.frequency.share)
    words = (["always"], ["usually"], ["often"], ["sometimes"])
    shown = printed[printed.index("Shows\n") : printed.index("Against it\n")]
    listed = [line.split()[1] for line in shown.splitlines() if line.split()[:1] in words]
    assert listed == [one.symptom for one in effects[:10]]


def unusable(kind: str, folder: Path) -> Path:
    path = folder / f"{kind}.json"
    match kind:
        case "malformed":
            path.write_text('{"log_history": [{"loss": ')
        case "zero_bytes":
            path.touch()
        case "binary":
            path.write_bytes(bytes(range(256)) * 50)
        case "no_metrics":
            path.with_suffix(".txt").write_text("nothing to see here\n" * 5)
            return path.with_suffix(".txt")
        case "empty_folder":
            return folder
    return path


@pytest.mark.parametrize("kind", ["malformed", "zero_bytes", "binary", "no_metrics", "empty_folder", "missing"])
def test_unusable_input_is_one_line_on_stderr_and_exit_code_2(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = unusable(kind, tmp_path)
    assert main(["diagnose", str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("mldebug-mcp: ")
    assert printed.err.count("\n") == 1
    assert str(path) in printed.err


def test_a_file_without_permission_is_refused_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"loss": 1}')

    def refuse(*_: object, **__: object) -> None:  # root, as in containers, may read everything
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", refuse)
    assert main(["diagnose", str(path)]) == 2
    assert "no permission to read it" in capsys.readouterr().err


def test_an_unknown_id_names_the_closest_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "loss_spik"]) == 2
    assert "loss_spike" in capsys.readouterr().err


def test_a_reader_that_stops_early_gets_no_complaint(examples: Path) -> None:
    command = f"{sys.executable} -m mldebug_mcp diagnose --json {examples / 'loss_spike'} | head -c 10"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout == '{\n  "verdi'


def test_what_cannot_be_loaded_beside_a_log_is_told_by_the_diagnosis_alone(
    examples: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> None:
        raise RuntimeError

    monkeypatch.setattr("mldebug_mcp.judge.diagnosis.prepare", fails)
    assert main(["diagnose", str(examples / "loss_spike")]) == 0
    printed = capsys.readouterr()
    assert "loss_spike: loss jumps" in printed.out
    assert not printed.err


def test_linear_algebra_gets_one_thread_unless_a_user_says_more_or_a_process_of_the_user_inherits_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "4")
    main(["explain", "lr_too_high"])
    assert os.environ["OPENBLAS_NUM_THREADS"] == "4"
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    main(["probe", "no such batch"])
    assert "OPENBLAS_NUM_THREADS" not in os.environ
    main(["explain", "lr_too_high"])
    assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
    assert capsys.readouterr().out


@pytest.mark.parametrize(
    "command", [["diagnose", "examples/overfit"], ["explain", "loss_spike"], ["search", "loss spike"], ["error", "NaN"]]
)
def test_no_line_of_a_file_ends_in_spaces(
    command: list[str], examples: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(examples.parent)
    assert main(command) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if line != line.rstrip()] == []


def test_a_log_of_one_record_is_not_said_to_show_nothing_unusual(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"step": 40, "loss": 1e10}\n', encoding="utf-8")
    assert main(["diagnose", str(log)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Cannot be judged: the log holds only 1 step of loss. To judge it, log ")
    assert "nothing unusual" not in printed


def test_long_work_says_what_it_does_on_a_terminal_and_leaves_nothing_of_it_there(
    examples: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mldebug_mcp.cli.commands.SECONDS_BEFORE_PROGRESS", 0.0)
    assert main(["diagnose", str(examples / "loss_spike")]) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["diagnose", str(examples / "loss_spike")]) == 0
    told = capsys.readouterr().err
    assert "reading log.jsonl" in told or "looking for" in told
    assert told.endswith("\r\x1b[K")


@pytest.mark.parametrize("width", [12, 24, 40, 60, 80])
@pytest.mark.parametrize("example", ["loss_spike", "nan_loss", "overfit"])
def test_a_diagnosis_fits_a_narrow_terminal(
    example: str, width: int, examples: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mldebug_mcp.report.diagnosis_screen.PLAIN_WIDTH", width)
    assert main(["diagnose", str(examples / example)]) == 0
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    commands = [line for line in lines if line.lstrip().startswith("mldebug-mcp ")]
    assert max(len(line) for line in lines if line not in commands) <= width
    assert len(commands) == 1, "it stands whole on one line, to be copied"
    if 24 <= width < 72:
        curve = next(line for line in printed.splitlines() if set(line.strip()) <= set("▁▂▃▄▅▆▇█×") and line)
        assert len(curve) == width - 2, "the curve has a line of its own"


def test_a_curve_between_the_largest_numbers_of_both_signs_is_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("".join(f'{{"step": {n}, "loss": {["1e308", "-1e308", "0"][n % 3]}}}\n' for n in range(60)))
    assert main(["diagnose", str(log)]) == 0
    assert "█" in capsys.readouterr().out


def test_the_command_below_a_diagnosis_reads_a_metric_once_its_path_is_put_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"step": 1, "my loss": 2.0}\n{"step": 2, "my loss": 1.9}\n')
    assert main(["diagnose", str(log)]) == 0
    command = capsys.readouterr().out.replace("\n", " ").partition("mldebug-mcp read PATH ")[2]
    assert main(["read", str(log), *shlex.split(command)]) == 0
    assert "1.9" in capsys.readouterr().out


def test_a_name_with_a_line_end_stands_on_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "my\nlog.jsonl"
    log.write_text('{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 1.9}\n')
    assert main(["diagnose", str(log)]) == 0
    assert "my log.jsonl run of a kind that is not known, 2 records" in capsys.readouterr().out.replace("\n", " ")


@pytest.mark.parametrize("limit", ["0", "-3", "many"])
def test_a_limit_that_is_none_is_refused(limit: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["search", "loss spike", "--limit", limit])
    assert end.value.code == 2
    assert "--limit" in capsys.readouterr().err


def test_a_folder_given_for_an_error_message_is_refused_with_what_to_name(
    examples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["error", str(examples)]) == 2
    assert "a folder; name the log file" in capsys.readouterr().err


def test_a_page_that_cannot_be_written_whole_leaves_the_old_one(tmp_path: Path, examples: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("the old page")
    full = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); import signal; "
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); from mldebug_mcp.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-B", "-c", full, "diagnose", str(examples / "overfit"), "--html", str(page)]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    assert [one.read_text() for one in tmp_path.iterdir()] == ["the old page"]


def test_a_page_is_replaced_with_its_permissions_and_through_a_link(tmp_path: Path, examples: Path) -> None:
    page, link = tmp_path / "page.html", tmp_path / "link.html"
    page.write_text("the old page")
    page.chmod(0o640)
    link.symlink_to(page)

    assert main(["diagnose", str(examples / "overfit"), "--html", str(link)]) == 0

    assert page.read_text().startswith("<!doctype html>")
    assert page.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()
    assert len(list(tmp_path.iterdir())) == 2


def test_a_picture_leaves_nothing_in_the_home_of_the_user(tmp_path: Path, examples: Path) -> None:
    pytest.importorskip("matplotlib")
    home = tmp_path / "home"
    home.mkdir()
    hidden = {name: value for name, value in os.environ.items() if name != "MPLCONFIGDIR" and "XDG" not in name}
    command = [sys.executable, "-m", "mldebug_mcp", "diagnose", str(examples / "overfit"), "--png",
               str(tmp_path / "curves.png")]  # fmt: skip

    done = subprocess.run(command, env={**hidden, "HOME": str(home)}, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "curves.png").stat().st_size > 1000
    assert list(home.rglob("*")) == []


@pytest.mark.parametrize("arguments", [["diagnose", "runs.zip"], ["probe", "batch.json"]])
def test_a_process_that_may_write_no_file_says_so(tmp_path: Path, arguments: list[str]) -> None:
    resource = pytest.importorskip("resource")
    with zipfile.ZipFile(tmp_path / "runs.zip", "w") as archive:
        archive.writestr("a/log.jsonl", '{"step": 1, "loss": 2}\n{"step": 2, "loss": 1}\n')
    (tmp_path / "batch.json").write_text('{"input_ids": [[1, 5, 6]], "labels": [[1, 5, 6]]}')
    done = subprocess.run(
        [sys.executable, "-m", "mldebug_mcp", arguments[0], str(tmp_path / arguments[1])],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "its limit on file sizes is 0" in done.stderr


def test_reading_a_database_with_a_journal_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    script = (
        "import json, os, sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.execute('PRAGMA journal_mode=WAL'); "
        "d.execute('CREATE TABLE metrics (run_name, step, metrics)'); "
        "[d.execute('INSERT INTO metrics VALUES (?, ?, ?)', ('r', i, json.dumps({'loss': 4 / (i + 1)}))) "
        "for i in range(50)]; d.commit(); os.unlink(sys.argv[1] + '-shm'); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)
    before = sorted(one.name for one in tmp_path.iterdir())
    assert before == ["run.db", "run.db-wal"]

    assert diagnose_run(path).run.records == 50

    assert sorted(one.name for one in tmp_path.iterdir()) == before


def test_what_the_locale_cannot_show_is_shown_as_a_question_mark(examples: Path) -> None:
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "mldebug_mcp", "diagnose", str(examples / "loss_spike")]

    done = subprocess.run(command, env=environment, capture_output=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert b"loss_spike" in done.stdout


def test_a_command_ends_at_once_with_its_code_after_all_that_was_registered_meanwhile(examples: Path) -> None:
    program = """
import atexit, sys
from mldebug_mcp.cli import main

class Kept:
    def __del__(self):
        print("freed", flush=True)

kept = Kept()
code = main()
atexit.register(print, "called", flush=True)
sys.exit(code)
"""
    command = [sys.executable, "-c", program, "diagnose", str(examples / "loss_spike"), "--check"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout.splitlines()[-1]) == (1, "called")
    assert "freed" not in ended.stdout
