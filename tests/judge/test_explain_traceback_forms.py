"""Tracebacks as notebooks, boxes, hosts and loggers write them; what ends a message and what goes on with it."""

from __future__ import annotations

import pytest

from mldebug_mcp import ErrorExplanation, explain_error
from mldebug_mcp.models import FirstError

PLAIN = """\
Traceback (most recent call last):
  File "/data/me/run.py", line 8, in main
    step(batch)
  File "/opt/venv/lib/python3.11/site-packages/torch/nn/functional.py", line 90, in linear
    return f(x)
KeyError: 'mask'"""


def error_of(answer: ErrorExplanation) -> FirstError:
    assert answer.error is not None
    return answer.error


NOTEBOOK_8 = """\
---------------------------------------------------------------------------
ValueError                                Traceback (most recent call last)
Cell In[12], line 4
      2 opt = Adam(net.parameters())
      3 for x, y in loader:
----> 4     fit(net, x, y)
      5     opt.step()

File ~/code/helpers.py:31, in fit(net, x, y)
     29 def fit(net, x, y):
     30     out = net(x)
---> 31     return check(out, y)

File /opt/conda/lib/python3.11/site-packages/checks/core.py:77, in check(a, b)
     76 if a.shape != b.shape:
---> 77     raise ValueError("odd rows")

ValueError: odd rows"""
NOTEBOOK_7 = """\
ValueError                                Traceback (most recent call last)
<ipython-input-5-0a1b2c3d4e5f> in <module>()
      1 import checks
----> 2 checks.run(rows)

/usr/local/lib/python3.9/dist-packages/checks/core.py in run(rows)
     10     for row in rows:
---> 11         raise ValueError("odd rows")

ValueError: odd rows"""
PASTED = """\
ValueError                                Traceback (most recent call last)
[<ipython-input-5-0a1b2c3d4e5f>](https://localhost:8080/#) in <cell line: 2>()
      1 import checks
----> 2 checks.run(rows)

ValueError: odd rows"""
BOX = """\
╭─────────────── Traceback (most recent call last) ───────────────╮
│ /data/me/a/rather/long/folder/that/does/not/fit/into/the/box/tr │
│ ain.py:19 in main                                               │
│                                                                 │
│   18 │   batch = next(loader)                                   │
│ ❱ 19 │   │   fit(net, batch)                                    │
│   20 │   done()                                                 │
│                                                                 │
│ /opt/venv/lib/python3.11/site-packages/checks/core.py:77 in fit │
│                                                                 │
│ ❱ 77 │   raise ValueError("odd rows")                           │
╰─────────────────────────────────────────────────────────────────╯
ValueError: odd rows"""


@pytest.mark.parametrize(
    ("log", "frame"),
    [
        (NOTEBOOK_8, "~/code/helpers.py:31 in fit: return check(out, y)"),
        (NOTEBOOK_7, "<ipython-input-5-0a1b2c3d4e5f>:2 in <module>: checks.run(rows)"),
        (PASTED, "<ipython-input-5-0a1b2c3d4e5f>:2 in <cell line: 2>: checks.run(rows)"),
        (BOX, "/data/me/a/rather/long/folder/that/does/not/fit/into/the/box/train.py:19 in main: fit(net, batch)"),
    ],
    ids=["notebook", "older notebook", "notebook on a page", "box"],
)
def test_the_users_frame_is_found_however_the_traceback_is_drawn(log: str, frame: str) -> None:
    error = error_of(explain_error(log))
    assert (error.exception, error.text) == ("ValueError", "ValueError: odd rows")
    assert error.user_frame == frame


@pytest.mark.parametrize(
    "prefix", ["gpu-node07: ", "2026-01-02 03:04:05,678 - trainer - ERROR - ", "[1] host3 | ", "| worker-0 | "]
)
def test_what_stands_before_a_traceback_is_taken_off_its_lines(prefix: str) -> None:
    log = "\n".join(prefix + line for line in PLAIN.splitlines())
    error = error_of(explain_error(log))
    assert (error.exception, error.text) == ("KeyError", "KeyError: 'mask'")
    assert error.user_frame == "/data/me/run.py:8 in main: step(batch)"


def test_a_prefix_whose_digits_change_from_line_to_line_is_taken_off() -> None:
    log = "\n".join(f"2026-01-02T03:04:{5 + n:02}.{n * 37}Z {line}" for n, line in enumerate(PLAIN.splitlines()))
    assert error_of(explain_error(log)).text == "KeyError: 'mask'"


def test_tracebacks_of_hosts_that_are_interleaved_are_told_apart() -> None:
    other = PLAIN.replace("run.py", "eval.py").replace("KeyError: 'mask'", "ValueError: no rows")
    pairs = zip(PLAIN.splitlines(), other.splitlines(), strict=True)
    log = "\n".join(line for one, two in pairs for line in (f"node1: {one}", f"node2: {two}"))
    error = error_of(explain_error(log))
    assert (error.text, error.user_frame) == ("KeyError: 'mask'", "/data/me/run.py:8 in main: step(batch)")


def test_a_line_that_a_logger_wrote_does_not_go_on_with_the_message_above_it() -> None:
    log = PLAIN + "\n[2026-01-02 03:04:05,678] torch.distributed.elastic: [ERROR] failed (exitcode: 1) local_rank: 0"
    answer = explain_error(log)
    assert error_of(answer).text == "KeyError: 'mask'"
    assert [match.id for match in answer.matches] == ["python_key"]


def test_an_exception_that_python_ignored_is_not_the_cause() -> None:
    ignored = "Exception ignored in: <function Pool.__del__ at 0x7f00>\n" + PLAIN.replace("KeyError: 'mask'", "{0}")
    known = "AttributeError: 'DummyOptim' object has no attribute 'step'"
    log = ignored.format(known) + "\n" + PLAIN
    error = error_of(explain_error(log))
    assert error.text == "KeyError: 'mask'"


def test_a_known_message_in_a_warning_comes_after_the_exception_that_ended_the_run() -> None:
    log = "WARNING: kernels are off: /opt/x.so: undefined symbol: _ZN2at4_ops\n" + PLAIN
    answer = explain_error(log)
    assert error_of(answer).text == "KeyError: 'mask'"
    assert [match.id for match in answer.matches] == ["python_key"]


def test_the_message_of_a_graph_is_found_below_the_list_of_its_nodes() -> None:
    log = """\
InvalidArgumentError: Graph execution error:

Detected at node 'net/gather' defined at (most recent call last):
    File "/data/me/fit.py", line 20, in <module>
      model.fit(rows)
    File "/usr/lib/python3/dist-packages/keras/x.py", line 3, in f
      return g()
Node: 'net/gather'
indices[3,0] = 900 is not in [0, 800)
\t [[{{node net/gather}}]]"""
    error = error_of(explain_error(log))
    assert error.exception == "InvalidArgumentError"
    assert "900 is not in [0, 800)" in error.text


def test_a_frame_of_a_template_is_not_the_users() -> None:
    log = PLAIN.replace("/opt/venv/lib/python3.11/site-packages/torch/nn/functional.py", "<template>")
    assert error_of(explain_error(log)).user_frame == "/data/me/run.py:8 in main: step(batch)"


def test_the_death_of_an_actor_is_an_echo_of_the_error_in_it() -> None:
    actor = "\n".join("(Worker pid=77) " + line for line in PLAIN.splitlines())
    died = PLAIN.replace("KeyError: 'mask'", "ray.exceptions.ActorDiedError: The actor died unexpectedly.")
    for log in (f"{actor}\n{died}", f"{died}\n{actor}"):
        assert error_of(explain_error(log)).text == "KeyError: 'mask'"


def test_the_end_of_a_box_is_no_frame_and_a_path_that_is_broken_is_put_together() -> None:
    log = """\
╭───────────────────── Traceback (most recent call last) ─────────────────────╮
│ /data/me/run.py:8 in <module>                                               │
│                                                                             │
│ ❱ 8 fit(net)                                                                │
│                                                                             │
│ /opt/venv/lib/python3.11/site-packages/checks/a/long/way/down/the/road/cor  │
│ y:55 in fit                                                                 │
╰─────────────────────────────────────────────────────────────────────────────╯
KeyError: 'mask'"""
    assert error_of(explain_error(log)).user_frame == "/data/me/run.py:8 in <module>: fit(net)"


@pytest.mark.parametrize("margin", ["    ", "> ", "> > ", "  "])
def test_a_traceback_that_is_quoted_or_indented_as_a_whole_is_read(margin: str) -> None:
    answer = explain_error("\n".join(margin + line for line in PLAIN.splitlines()) + "\n\nwhat is this?\n")
    assert (error_of(answer).exception, error_of(answer).user_frame) == (
        "KeyError",
        "/data/me/run.py:8 in main: step(batch)",
    )


def test_a_traceback_in_the_launchers_summary_is_read() -> None:
    log = """\
Root Cause (first observed failure):
[0]:
  time      : 2031-04-01_10:00:00
  rank      : 2 (local_rank: 2)
  exitcode  : 1 (pid: 77)
  traceback : Traceback (most recent call last):
    File "/data/me/run.py", line 8, in main
      step(batch)
    File "/opt/venv/lib/python3.11/site-packages/torch/nn/functional.py", line 90, in linear
      return f(x)
  RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x10 and 20x5)

====================================="""
    answer = explain_error(log)
    assert error_of(answer).user_frame == "/data/me/run.py:8 in main: step(batch)"
    assert [row.id for row in answer.matches] == ["mat_shapes"]


def test_pytests_mark_before_an_error_is_taken_off() -> None:
    answer = explain_error(">       loss = model(x)\n\ntests/test_model.py:12:\nE       KeyError: 'mask'\n")
    assert error_of(answer).exception == "KeyError"


def test_the_users_frame_above_a_workers_traceback_stands_for_one_within_it() -> None:
    log = """\
Traceback (most recent call last):
  File "/data/me/run.py", line 8, in main
    for batch in loader:
  File "/opt/venv/lib/python3.11/site-packages/torch/_utils.py", line 90, in reraise
    raise exception
RuntimeError: Caught RuntimeError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "/opt/venv/lib/python3.11/site-packages/torch/utils/data/_utils/collate.py", line 9, in collate
    return f(x)
RuntimeError: stack expects each tensor to be equal size, but got [3] at entry 0 and [4] at entry 1"""
    answer = explain_error(log)
    assert error_of(answer).user_frame == "/data/me/run.py:8 in main: for batch in loader:"
    assert answer.matches[0].id == "stack_equal_size"


def test_an_exception_of_a_module_of_errors_is_one_whatever_its_name() -> None:
    answer = explain_error("W0101 a.py:1] [2/8] torch._dynamo hit config.recompile_limit (8)\n\nlib.exc.TooOften: stop")
    assert error_of(answer).exception == "TooOften"


def test_a_traceback_that_ends_before_its_exception_is_said_to_be_cut() -> None:
    cut = PLAIN.rpartition("\n")[0]
    assert explain_error(cut).notes == [
        "the traceback at line 1 ends before its exception: give the lines below it too"
    ]
    assert explain_error(PLAIN).notes == []


def test_the_quotes_around_a_workers_traceback_do_not_go_on_with_its_message() -> None:
    answer = explain_error('RemoteTraceback:\n"""\n' + PLAIN + '\n"""\n')
    assert error_of(answer).text == "KeyError: 'mask'"


def test_the_causes_that_ray_always_lists_are_not_taken_for_findings() -> None:
    answer = explain_error(
        "(raylet) A worker died or was killed while executing a task by an unexpected system error. There are some"
        " potential root causes. (1) The process is killed by SIGKILL by OOM killer due to high memory usage. (2) ray"
        " stop --force is called. (3) The worker is crashed unexpectedly due to SIGSEGV or other unexpected errors.\n"
    )
    assert [row.id for row in answer.matches] == ["ray_worker_died"]
    assert "echoes a failure elsewhere" in answer.notes[0]


def test_ranks_that_two_launchers_wrote_before_a_line_are_taken_off() -> None:
    lines = PLAIN.splitlines()
    log = [f"{rank:2}: [rank{rank}]: {line}" for line in lines for rank in (2, 15)]
    answer = explain_error("\n".join(log))
    assert (error_of(answer).text, error_of(answer).ranks) == ("KeyError: 'mask'", ["2", "15"])
    assert error_of(answer).user_frame == "/data/me/run.py:8 in main: step(batch)"


TRACEBACK = 'Traceback (most recent call last):\n  File "/home/me/train.py", line 20, in main\n    loss = step(batch)\n'


def test_the_error_that_torchscript_carries_comes_before_its_carrier() -> None:
    text = (
        TRACEBACK + "RuntimeError: The following operation failed in the TorchScript interpreter.\n"
        'Traceback of TorchScript (most recent call last):\n  File "/home/me/model.py", line 59, in forward\n'
        "        x = self.conv(x)\n            ~~~~~~~~~ <--- HERE\n"
        "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB\n"
    )
    answer = explain_error(text)
    assert answer.matches[0].id == "cuda_oom"
    assert answer.error is not None
    assert answer.error.user_frame.startswith("/home/me/model.py:59")


@pytest.mark.parametrize("head", ["calling Functional.call().", "calling layer 'sequential' (type Sequential)."])
def test_what_keras_writes_below_the_name_of_a_layer_belongs_to_the_message(head: str) -> None:
    text = f"""{TRACEBACK}ValueError: Exception encountered when {head}

\x1b[1mInput 0 of layer "dense" is incompatible with the layer: expected axis -1 of input shape to have value 784\x1b[0m

Arguments received by it:
"""
    assert explain_error(text).matches[0].id == "keras_input_incompatible"


def test_an_exception_that_an_editor_heads_is_read_with_its_message() -> None:
    text = "Exception has occurred: RuntimeError\nmat1 and mat2 shapes cannot be multiplied (32x512 and 256x10)\n"
    answer = explain_error(text)
    assert answer.error is not None
    assert (answer.error.exception, answer.matches[0].id) == ("RuntimeError", "mat_shapes")


def test_a_program_that_was_not_found_comes_before_what_srun_says_of_the_task() -> None:
    text = (
        "slurmstepd: error: execve(): torchrun: No such file or directory\n"
        "srun: error: g1: task 0: Exited with exit code 2\n"
    )
    assert explain_error(text).matches[0].id == "program_missing"
