"""Logs of jobs of several processes: the first failure is named, with its rank, and not what followed it."""

from __future__ import annotations

import pytest

from mldebug_mcp import ErrorExplanation, explain_error

LAUNCHER = """\
W1128 09:29:22.158000 5296 torch/distributed/elastic/multiprocessing/api.py:1028] \
Sending process 5410 closing signal SIGTERM
E1128 09:29:22.219000 5296 torch/distributed/elastic/multiprocessing/api.py:1002] \
failed (exitcode: {code}) local_rank: 1 (pid: 5411) of binary: /opt/venv/bin/python
Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/torch/distributed/launcher/api.py", line 383, in launch_agent
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
job.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-28_09:29:22
  host      : node1
  rank      : 1 (local_rank: 1)
  exitcode  : {code} (pid: 5411)
"""
TRAINING = "".join(f"step {step} loss {2 - step / 10:.2f}\n" for step in range(3))
WAITING = """\
[rank0]: Traceback (most recent call last):
[rank0]:   File "/home/me/job.py", line 22, in <module>
[rank0]:     dist.barrier()
[rank0]: RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:896.
"""
THREAD = """\
Exception in thread prefetch:
Traceback (most recent call last):
  File "/usr/lib/python3.12/threading.py", line 1045, in _bootstrap_inner
    self.run()
  File "/home/me/job.py", line 18, in prefetch
    raise ValueError('batch 3 has no text')
ValueError: batch 3 has no text
[rank1]: Traceback (most recent call last):
[rank1]:   File "/home/me/job.py", line 21, in <module>
[rank1]:     batches.get(timeout=4)
[rank1]: _queue.Empty
"""


def first(text: str) -> tuple[str, list[str]]:
    answer: ErrorExplanation = explain_error(text)
    assert answer.error is not None
    return text.splitlines()[answer.error.line - 1], answer.error.ranks


@pytest.mark.parametrize(
    ("code", "known"), [(-9, "exitcode_minus_9"), (-11, "segfault"), (-6, "aborted"), (3, "child_failed")]
)
def test_a_rank_that_ended_without_a_word_is_named_by_its_launcher(code: int, known: str) -> None:
    text = TRAINING + LAUNCHER.format(code=code)
    line, ranks = first(text)
    assert "local_rank: 1" in line
    assert ranks == ["1"]
    assert explain_error(text).matches[0].id == known


def test_the_ranks_that_waited_for_a_killed_one_are_its_echo() -> None:
    line, ranks = first(TRAINING + WAITING + LAUNCHER.format(code=-9))
    assert "exitcode: -9" in line
    assert ranks == ["1"]


def test_an_exception_in_a_thread_comes_before_what_it_led_to() -> None:
    line, ranks = first(TRAINING + THREAD + WAITING + LAUNCHER.format(code=1))
    assert line == "ValueError: batch 3 has no text"
    assert ranks == ["1"]


def test_an_exception_that_was_caught_and_printed_is_not_the_failure() -> None:
    caught = (
        "Traceback (most recent call last):\n"
        '  File "/home/me/job.py", line 15, in <module>\n    {}["cache"]\n'
        "KeyError: 'cache'\n"
    )
    raised = "[rank1]: Traceback (most recent call last):\n[rank1]: LookupError: no shard\n"
    line, ranks = first(TRAINING + caught + raised + WAITING + LAUNCHER.format(code=1))
    assert line == "[rank1]: LookupError: no shard"
    assert ranks == ["1"]


def test_a_rank_that_fails_before_it_joins_the_others_is_named() -> None:
    early = (
        "Traceback (most recent call last):\n"
        '  File "/home/me/job.py", line 2, in <module>\n    import my_kernels\n'
        "ModuleNotFoundError: No module named 'my_kernels'\n"
    )
    line, ranks = first(early + LAUNCHER.format(code=1))
    assert line.startswith("ModuleNotFoundError")
    assert ranks == ["1"]


def test_a_rank_that_waits_too_long_is_an_echo_of_the_one_that_is_late() -> None:
    text = TRAINING + WAITING.replace(
        "pair.cc:553] Connection closed by peer [127.0.0.1]:896.",
        "unbound_buffer.cc:78] Timed out waiting 5000ms for recv operation to complete",
    )
    answer = explain_error(text)
    assert answer.matches[0].id == "gloo_timeout"
    assert any("echoes a failure elsewhere" in note for note in answer.notes)


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("[E ProcessGroupNCCL.cpp:1385] [PG 0 Rank 0] PG on this rank that detected no heartbeat of its watchdog.",
         "nccl_watchdog_stuck"),
        ("[rank4]:[E1 ProcessGroupNCCL.cpp:1282] [Rank 4] Received a dump signal due to a timeout from rank 5",
         "nccl_dump_signal"),
        ("(raylet) A worker died or was killed while executing a task because the node was running low on memory.",
         "ray_memory_pressure"),
        ("Pod was evicted: The node had condition: [MemoryPressure].", "pod_evicted"),
        ("systemd-oomd[702]: Killed /user.slice due to memory pressure for /user.slice being 62.01% > 50.00% for > 20s",
         "slurm_oom_kill"),
        ("The kernel appears to have died. It will restart automatically.", "notebook_kernel_died"),
        ("[ERROR] [launch.py:325:sigkill_handler] ['python', 'train.py', '--local_rank=1'] exits with return code = -9",
         "exitcode_minus_9"),
        ("mpirun noticed that process rank 3 with PID 0 on node n1 exited on signal 9 (Killed).", "exitcode_minus_9"),
        ("The following tasks are unhealthy (stopped sending heartbeats): /job:jax_worker/replica:0/task:1",
         "jax_coordination"),
    ],
)  # fmt: skip
def test_a_hang_or_a_kill_is_an_error_though_no_exception_was_raised(text: str, known: str) -> None:
    answer = explain_error(TRAINING + text + "\n")
    assert answer.error is not None
    assert answer.error.line == 4
    assert answer.matches[0].id == known


@pytest.mark.parametrize(
    "text",
    [
        TRAINING,
        "setting timeout=1800 for the process group\n" + TRAINING,
        "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=600, watchdog enabled\n" + TRAINING,
        "evaluation crashed into 0.31 accuracy\n" + TRAINING,
    ],
)
def test_a_log_without_an_error_has_none(text: str) -> None:
    answer = explain_error(text)
    assert answer.error is None
    assert answer.matches == []


def test_the_worker_that_ray_train_names_comes_before_what_its_controller_printed_earlier() -> None:
    controller = "(TrainController pid=11606) "
    polled = (
        "Traceback (most recent call last):\n"
        '  File "/opt/venv/lib/python3.12/site-packages/ray/_private/worker.py", line 3009, in get\n'
        "    values = worker.get_objects(\n"
        "ray.exceptions.GetTimeoutError: Get timed out: some object(s) not ready.\n"
    )
    named = (
        "ray.train.WorkerGroupError: Training failed due to worker errors:\n"
        "[Rank 1 Error Snippet]:\n"
        "Traceback (most recent call last):\n"
        '  File "/home/me/job.py", line 17, in loop\n'
        "    raise ValueError('empty shard')\n"
        "ValueError: empty shard\n"
    )
    line, ranks = first("".join(f"{controller}{line}\n" for line in (polled + named).splitlines()))
    assert line.endswith("ValueError: empty shard")
    assert ranks == ["1"]


def test_a_line_that_an_own_hook_prints_of_the_exception_comes_before_the_ranks_that_waited() -> None:
    line, ranks = first("[rank1]: [worker 1] fatal RuntimeError: shard 3 holds no rows\n" + WAITING)
    assert "shard 3" in line
    assert ranks == ["1"]


@pytest.mark.parametrize(
    ("end", "shown"),
    [
        (
            "ProcessRaisedException: \n\n-- Process 1 terminated with the following error:\n"
            'Traceback (most recent call last):\n  File "/home/me/job.py", line 16, in work\n    fit()\nKeyError: 3\n',
            "KeyError: 3",
        ),
        ("ProcessExitedException: process 1 terminated with signal SIGKILL\n", "signal SIGKILL"),
    ],
)
def test_a_process_that_torch_spawned_is_named_by_its_index(end: str, shown: str) -> None:
    joined = (
        'Traceback (most recent call last):\n  File "/opt/lib/site-packages/torch/multiprocessing/spawn.py", line 2\n'
    )
    line, ranks = first(f"{TRAINING}{joined}    raise\ntorch.multiprocessing.spawn.{end}")
    assert shown in line
    assert ranks == ["1"]
