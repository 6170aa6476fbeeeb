"""The first real error of a log: the cause, not its echoes; its ranks; the user's frame."""

from __future__ import annotations

from pathlib import Path

import pytest

from mldebug_mcp import ErrorExplanation, InputError, explain_error
from mldebug_mcp.diagnose.explain_error import explain_lines

TRACEBACK = """\
Traceback (most recent call last):
  File "/home/me/proj/train.py", line 20, in main
    loss = model(batch)
  File "/opt/conda/lib/python3.10/site-packages/torch/nn/modules/module.py", line 1501, in _call_impl
    return forward_call(*args, **kwargs)
"""
WATCHDOG = (
    "[Rank {0}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE) ran for 600000 ms"
)
SUMMARY = """\
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
Root Cause (first observed failure):
[0]:
  time      : 2025-11-05_12:34:00
  host      : node1
  rank      : {0} (local_rank: {0})
  exitcode  : 1 (pid: 4242)
"""


def prefixed(text: str, rank: int) -> str:
    return "\n".join(f"[rank{rank}]: {line}" for line in text.splitlines())


def first(answer: ErrorExplanation) -> tuple[str, list[str]]:
    assert answer.error is not None
    return answer.error.exception, answer.error.ranks


def test_the_rank_that_died_first_is_named_and_not_the_ranks_that_waited_for_it() -> None:
    echoes = "\n".join(f"[rank{rank}]:{WATCHDOG.format(rank)}" for rank in (0, 1, 2))
    died = prefixed(TRACEBACK + "KeyError: 'label'", 3)
    for log in (f"{echoes}\n{died}", f"{died}\n{echoes}\n{SUMMARY.format(3)}"):
        answer = explain_error(log)
        assert first(answer) == ("KeyError", ["3"])
        assert answer.error is not None
        assert answer.error.user_frame == "/home/me/proj/train.py:20 in main: loss = model(batch)"
        assert any("echoes" in note for note in answer.notes)


def test_tracebacks_of_ranks_that_are_interleaved_are_put_together() -> None:
    one, two = prefixed(TRACEBACK + "ValueError: bad row 7", 1), prefixed(TRACEBACK + "ValueError: bad row 9", 2)
    mixed = [line for pair in zip(one.splitlines(), two.splitlines(), strict=True) for line in pair]
    answer = explain_error("\n".join(mixed))
    assert first(answer) == ("ValueError", ["1", "2"])
    assert answer.error is not None
    assert answer.error.text == "ValueError: bad row 7"
    assert answer.error.user_frame.startswith("/home/me/proj/train.py:20")


def test_torchelastic_decides_between_two_ranks_that_failed() -> None:
    log = "\n".join(
        [
            prefixed(TRACEBACK + "ValueError: bad row", 0),
            prefixed(TRACEBACK + "KeyError: 'label'", 5),
            SUMMARY.format(5),
        ]
    )
    assert first(explain_error(log)) == ("KeyError", ["5"])


@pytest.mark.parametrize("prefix", ["3: ", "[default3]:", "[1,3]<stderr>:", "[rank3]: "])
def test_the_prefixes_of_launchers_name_the_rank(prefix: str) -> None:
    log = "\n".join(prefix + line for line in (TRACEBACK + "KeyError: 'label'").splitlines())
    assert first(explain_error(log)) == ("KeyError", ["3"])


def test_the_prefixes_of_an_inference_engine_are_taken_off() -> None:
    prefix = "(EngineCore_0 pid=6940) ERROR 08-19 12:28:29 [core.py:502] "
    log = "\n".join(prefix + line for line in (TRACEBACK + "KeyError: 'label'").splitlines())
    dead = "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above)"
    answer = explain_error(f"{log}\n{dead}")
    assert first(answer) == ("KeyError", [])
    assert answer.error is not None
    assert answer.error.user_frame.startswith("/home/me/proj/train.py:20")


def test_of_a_chain_of_exceptions_the_first_is_the_cause() -> None:
    log = (
        TRACEBACK
        + "KeyError: 'label'\n\nDuring handling of the above exception, another exception occurred:\n\n"
        + TRACEBACK
        + "RuntimeError: could not make the batch\n"
    )
    assert first(explain_error(log)) == ("KeyError", [])


def test_of_a_chain_the_message_that_is_known_counts() -> None:
    log = (
        TRACEBACK
        + "KeyError: 'qwen9'\n\nDuring handling of the above exception, another exception occurred:\n\n"
        + TRACEBACK
        + "ValueError: The checkpoint you are trying to load has model type `qwen9` but Transformers does not "
        "recognize this architecture.\n"
    )
    assert explain_error(log).matches[0].id == "unknown_model_type"


def test_the_original_error_inside_a_dataloader_worker_is_found() -> None:
    log = (
        TRACEBACK
        + "ValueError: Caught ValueError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n"
        '  File "/home/me/proj/data.py", line 33, in __getitem__\n    raise ValueError("bad row 17")\n'
        "ValueError: bad row 17\n"
    )
    answer = explain_error(log)
    assert answer.error is not None
    assert answer.error.text == "ValueError: bad row 17"
    assert answer.error.user_frame.startswith("/home/me/proj/data.py:33")


def test_an_error_that_training_survived_comes_after_the_one_that_ended_it() -> None:
    survived = [*(TRACEBACK + "ConnectionError: upload failed").splitlines(), *(f"loss {n}" for n in range(100))]
    log = [*survived, *(TRACEBACK + "IndexError: list index out of range").splitlines()]
    assert first(explain_error("\n".join(log))) == ("IndexError", [])


def test_echoes_alone_are_explained_with_the_ranks_that_are_silent() -> None:
    log = "[rank3]: loading shard 7\n[rank3]: Warning: slow disk\n" + "\n".join(
        f"[rank{rank}]: {WATCHDOG.format(rank)}" for rank in (0, 1, 2)
    )
    answer = explain_error(log)
    assert answer.matches[0].id == "nccl_watchdog"
    assert first(answer)[1] == ["0", "1", "2"]
    assert any("look first at the ranks that do not report it: 3" in note for note in answer.notes)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("ModuleNotFoundError: No module named 'mypkg'", "environment"),
        ("TypeError: f() got an unexpected keyword argument 'foo'", "interface"),
        ("KeyError: 'text'", "data"),
        ("RuntimeError: shape mismatch in my op", "shapes"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'x'", "files"),
        ("my.pkg.StrangeError: what", "unknown"),
        ("TypeError: object of type 'NoneType' has no len()", "interface: None"),
        ("ValueError: batch_size (10) must be divisible by group_size (4)", "configuration: a number"),
        ("ValueError: the device my:1 is not available, use batch_size 2", "a value or type"),
        ("RuntimeError: Expected weights of size 4 but got 5", "shapes"),
        ("RuntimeError: expected dtype float32 for input", "types or devices"),
        ("AttributeError: 'tuple' object has no attribute 'shape'", "interface"),
    ],
)
def test_a_traceback_without_a_known_message_gets_a_class_and_something_to_try(line: str, problem: str) -> None:
    answer = explain_error(TRACEBACK + line)
    assert answer.matches == []
    assert answer.problem.startswith(problem)
    assert "/home/me/proj/train.py:20" in answer.advice


def test_text_without_an_error_says_so() -> None:
    answer = explain_error("step 1 loss 2.0\nstep 2 loss 1.9\nsaving checkpoint\n")
    assert answer.error is None
    assert answer.matches == []
    assert answer.problem == "no error found"


def test_a_file_is_read_by_its_path(tmp_path: Path) -> None:
    log = tmp_path / "crash.log"
    log.write_text("loss 1\n" + TRACEBACK + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
    assert explain_error(str(log)).matches[0].id == "cuda_oom"


@pytest.mark.parametrize("text", ["", "  \n "])
def test_an_empty_text_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="empty"):
        explain_error(text)


def test_an_endless_flood_of_tracebacks_is_answered_in_bounded_memory() -> None:
    lines = (line for n in range(3_000) for line in (TRACEBACK + f"ValueError: bad row {n}").splitlines())
    answer = explain_lines(lines)
    assert first(answer) == ("ValueError", [])
    assert any("left out" in note for note in answer.notes)


@pytest.mark.parametrize(
    "text", ["\x00\x01Error", "Error: " * 5_000, "Traceback (most recent call last):\n" * 500, "[rank" * 1_000]
)
def test_hostile_text_is_answered(text: str) -> None:
    answer = explain_error(text)
    assert "\x00" not in answer.to_json()
