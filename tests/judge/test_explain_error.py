"""The first real error of a log: the cause, not its echoes; its ranks; the user's frame."""

from __future__ import annotations

from pathlib import Path

import pytest

from mldebug_mcp import ErrorExplanation, InputError, explain_error
from mldebug_mcp.judge.explain_error import explain_lines

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


@pytest.mark.parametrize(
    "killed",
    [
        "slurmstepd: error: Detected 1 oom_kill event in StepId=8.batch. Some of the tasks have been OOM Killed.",
        "[81234.512345] Out of memory: Killed process 41 (python) total-vm:9000kB",
        "Nov  3 04:12:50 node3 kernel: Memory cgroup out of memory: Killed process 41 (python)",
    ],
)
def test_what_killed_a_worker_explains_that_it_is_gone(killed: str) -> None:
    gone = f"{TRACEBACK}RuntimeError: DataLoader worker (pid(s) 41) exited unexpectedly\n{killed}\n"
    answer = explain_error(gone)
    assert [match.id for match in answer.matches][:1] == ["slurm_oom_kill"]
    signal = "RuntimeError: DataLoader worker (pid 41) is killed by signal: Killed. "
    both = explain_error(f"{TRACEBACK}{signal}\n{killed}\n")
    assert both.matches[0].id == "dataloader_worker_killed"
    assert any(killed.split(maxsplit=1)[0] in note for note in both.notes)


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
    ("line", "row"),
    [
        ("TypeError: f() got an unexpected keyword argument 'foo'", "python_call"),
        ("TypeError: encode() takes at most 2 arguments (3 given)", "python_call"),
        ("AttributeError: 'NoneType' object has no attribute 'items'", "python_none"),
        ("AttributeError: 'Mine' object has no attribute 'items'", "python_attribute"),
        ("TypeError: 'Mine' object is not subscriptable", "python_kind"),
        ("TypeError: list indices must be integers or slices, not str", "python_kind"),
        ("ValueError: too many values to unpack (expected 2)", "python_unpack"),
        ("UnboundLocalError: local variable 'loss' referenced before assignment", "python_unbound"),
        ("KeyError: 'text'", "python_key"),
        ("TypeError: object of type 'NoneType' has no len()", "python_none"),
        ("AttributeError: 'tuple' object has no attribute 'shape'", "python_attribute"),
        ("IndexError: list index out of range", "python_index"),
        ("NameError: name 'optimizer' is not defined", "python_name"),
        ("SyntaxError: invalid syntax", "python_syntax"),
        ("ZeroDivisionError: float division by zero", "python_zero_division"),
        ("PermissionError: [Errno 13] Permission denied: '/data/cache'", "permission_denied"),
    ],
)
def test_what_python_itself_raises_is_known_in_any_code(line: str, row: str) -> None:
    answer = explain_error(TRACEBACK + line)
    assert answer.matches[0].id == row
    assert answer.matches[0].credence != "almost certain"
    assert "the error" in answer.advice


def test_a_librarys_words_say_more_than_the_error_of_python_before_them() -> None:
    chain = "KeyError: 'bert-nano'\n\nDuring handling of the above exception, another exception occurred:\n\n"
    raised = (
        '  File "/opt/venv/lib/python3.11/site-packages/lib/auto.py", line 5, in get\n    raise ValueError(message)\n'
    )
    answer = explain_error(
        TRACEBACK + chain + TRACEBACK + raised + "ValueError: Unknown model name bert-nano, choose from tiny, small"
    )
    assert answer.matches[0].id == "setting_out_of_range"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("ImportError: dynamic module does not define module export function (PyInit_mine)", "environment"),
        ("requests.exceptions.ProxyError: cannot reach it", "network"),
        ("KeyboardInterrupt", "stopped by hand"),
        ("my.pkg.StrangeError: what", "unknown"),
    ],
)
def test_a_traceback_without_a_known_message_gets_a_class_and_something_to_try(line: str, problem: str) -> None:
    answer = explain_error(TRACEBACK + line)
    assert answer.matches == []
    assert answer.problem.startswith(problem)
    assert answer.error is not None
    assert "/home/me/proj/train.py:20" in answer.error.user_frame
    assert "the error" in answer.advice
    assert "train.py" not in answer.advice


@pytest.mark.parametrize(
    "next_line",
    ["Resuming from checkpoint step 200", "step 201: loss 2.4563, lr 1.639e-03", "{'loss': 2.31, 'epoch': 0.4}"],
)
def test_a_message_ends_where_training_goes_on(next_line: str) -> None:
    error = "RuntimeError: CUDA error: an illegal memory access was encountered"
    answer = explain_error(f"{TRACEBACK}{error}\n{next_line}\nstep 202: loss 2.4539, lr 1.629e-03\nsaved model.pt\n")

    assert answer.error is not None
    assert answer.error.text == error


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


def test_an_uncaught_exception_of_cpp_is_read_with_its_message() -> None:
    ended = "step 3 loss 2.0\nterminate called after throwing an instance of '{}'\n  what():  {}\nAborted (core dumped)"
    unknown = explain_error(ended.format("zeta::shard_error", "shard 14 is of another make"))
    assert first(unknown) == ("zeta::shard_error", [])
    assert unknown.matches == []
    assert unknown.error is not None
    assert "shard 14" in unknown.error.text
    known = explain_error(ended.format("c10::Error", "CUDA error: an illegal memory access was encountered"))
    assert known.matches[0].id == "illegal_memory"


def test_an_exception_that_python_ignored_stopped_nothing() -> None:
    answer = explain_error("Exception ignored in: <_io.TextIOWrapper name='<stdout>'>\nBrokenPipeError: Broken pipe\n")
    assert any("nothing in this text stopped a run" in note for note in answer.notes)


def test_what_a_rendezvous_tried_in_vain_at_first_comes_after_a_failure() -> None:
    tried = "[W socket.cpp:601] [c10d] The client socket has failed to connect to [localhost]:29500 (errno: 97)."
    assert first(explain_error(f"{tried}\nloss 2.0\n{TRACEBACK}KeyError: 'label'")) == ("KeyError", [])


def test_where_the_first_exception_shows_no_code_of_the_user_a_later_one_of_its_chain_does() -> None:
    library = TRACEBACK.replace("/home/me/proj/train.py", "/opt/conda/lib/python3.10/site-packages/zeta/session.py")
    between = "\n\nDuring handling of the above exception, another exception occurred:\n\n"
    answer = explain_error(f"{library}ZetaError: shapes differ{between}{TRACEBACK}RuntimeError: the session failed")
    assert first(answer) == ("ZetaError", [])
    assert answer.error is not None
    assert answer.error.user_frame.startswith("/home/me/proj/train.py:20")


def test_hosts_that_are_named_by_their_addresses_are_told_apart() -> None:
    one = [f"10.0.0.4: {line}" for line in (TRACEBACK + "ValueError: bad row 7").splitlines()]
    two = [f"10.0.0.5: [rank3]: {line}" for line in (TRACEBACK + "KeyError: 'label'").splitlines()]
    two[0] = "10.0.0.5: bye[rank3]: Traceback (most recent call last):"
    mixed = [line for pair in zip(one, two, strict=True) for line in pair]
    answer = explain_error("\n".join(mixed))
    assert first(answer) == ("ValueError", [])
    assert any("KeyError" in note for note in answer.notes)
    assert first(explain_error("\n".join(two))) == ("KeyError", ["3"])


def test_what_a_shell_prints_below_a_message_does_not_hide_it() -> None:
    assert explain_error("loss 2.0\nKilled\n(base) me@host:~$ ls").matches[0].id == "host_killed"
    assert explain_error("loss 2.0\nKilled idle worker 7\nloss 1.9").error is None


def test_a_log_line_with_a_date_of_any_order_is_no_part_of_the_message_above() -> None:
    answer = explain_error(TRACEBACK + "KeyError: 'label'\n10/29/2023 11:23:40 - WARNING - cached\n")
    assert answer.error is not None
    assert answer.error.text == "KeyError: 'label'"


def test_the_summary_of_torchelastic_alone_names_the_rank_and_is_taken_for_an_echo() -> None:
    answer = explain_error(SUMMARY.format(3).replace("exitcode  : 1", "exitcode  : -6").partition("train.py FAILED")[2])
    assert answer.matches[0].id == "aborted"
    assert any("rank 3" in note for note in answer.notes)
    assert any("echoes" in note for note in answer.notes)


def test_values_that_do_not_unpack_are_of_an_environment_where_the_code_steps_one() -> None:
    message = "ValueError: not enough values to unpack (expected 5, got 4)"
    stepped = TRACEBACK + '  File "/opt/conda/lib/python3.10/site-packages/gym/w.py", line 5, in step\n'
    code = "    obs, reward, terminated, truncated, info = self.env.step(action)\n"
    assert explain_error(stepped + code + message).matches[0].id == "gym_step_values"
    assert explain_error(TRACEBACK + message).matches[0].id == "python_unpack"


def test_an_assertion_without_words_is_known_by_its_code() -> None:
    frame = '  File "/opt/conda/lib/python3.10/site-packages/bitsandbytes/f.py", line 566, in matmul_4bit\n'
    answer = explain_error(TRACEBACK + frame + "    assert quant_state is not None\nAssertionError")
    assert answer.matches[0].id == "bnb_no_quant_state"
    assert explain_error(TRACEBACK + "AssertionError").matches == []


def test_a_box_whose_head_was_cut_off_still_shows_the_frame() -> None:
    box = "│ /home/me/proj/train.py:20 in main │\n│ ❱ 20 │ loss = model(batch) │\n╰──╯\nZetaError: not met"
    answer = explain_error(box)
    assert answer.error is not None
    assert answer.error.user_frame == "/home/me/proj/train.py:20 in main: loss = model(batch)"


def test_an_observation_of_another_shape_is_known_by_the_code_that_stores_it() -> None:
    message = "ValueError: could not broadcast input array from shape (12,) into shape (8,)"
    frame = '  File "/opt/conda/lib/python3.10/site-packages/sb3/dummy.py", line 9, in _save_obs\n'
    answer = explain_error(TRACEBACK + frame + "    self.buf_obs[key][env_idx] = obs\n" + message)
    assert answer.matches[0].id == "observation_shape"
    elsewhere = explain_error(TRACEBACK + frame + "    row[:] = sample\n" + message).matches[0]
    assert elsewhere.id != "observation_shape"
    assert "12" in elsewhere.cause
    assert "8" in elsewhere.cause


def test_what_stopped_the_interpreter_comes_before_the_signals_that_followed() -> None:
    fatal = "Fatal Python error: zeta_dealloc: a refcount error\nPython runtime state: initialized\n\n"
    after = (
        "W0802 23:48:41.941000 1034 torch/distributed/elastic/api.py:900] Sending process 12 closing signal SIGTERM\n"
    )
    answer = explain_error(fatal + after)
    assert answer.error is not None
    assert answer.error.text.startswith("Fatal Python error: zeta_dealloc")
    assert answer.matches == []


def test_an_exception_that_is_padded_with_spaces_ends_its_traceback() -> None:
    answer = explain_error("[rank7]: " + TRACEBACK.replace("\n", "   \n[rank7]: ") + "AssertionError      ")
    assert answer.error is not None
    assert (answer.error.exception, answer.error.ranks) == ("AssertionError", ["7"])


def test_a_download_that_was_cut_off_is_no_echo_of_another_rank() -> None:
    between = "\n\nDuring handling of the above exception, another exception occurred:\n\n"
    reset = "ConnectionResetError: [Errno 104] Connection reset by peer"
    aborted = "requests.exceptions.ConnectionError: ('Connection aborted.', ConnectionResetError(104, 'reset'))"
    answer = explain_error(TRACEBACK + reset + between + TRACEBACK + aborted)
    assert answer.matches[0].id == "transfer_cut_off"
    assert explain_error(TRACEBACK + reset).matches[0].id == "store_connection_reset"


def test_what_nccl_adds_below_its_error_belongs_to_it() -> None:
    log = (
        "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:133, unhandled cuda error\n"
        "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\n"
        "Cuda failure 'CUDA-capable device(s) is/are busy or unavailable'\n"
    )
    assert explain_error(TRACEBACK + log).matches[0].id == "cuda_device_busy"


def test_an_error_that_a_logger_wrote_into_one_line_of_json_is_read_with_its_frames() -> None:
    body = (TRACEBACK + "ValueError: the flux is odd").replace('"', '\\"').replace("\n", "\\n")
    answer = explain_error(f'{{"level": "error", "msg": "{body}"}}\n')
    assert first(answer) == ("ValueError", [])
    assert answer.error is not None
    assert answer.error.text == "ValueError: the flux is odd"
    assert answer.error.user_frame.startswith("/home/me/proj/train.py:20")


def test_the_remains_of_colours_in_a_pasted_notebook_are_taken_off() -> None:
    log = (
        "[0;31mRuntimeError[0m                              Traceback (most recent call last)\n"
        "[0;32m<ipython-input-4-2>[0m in [0;36m<module>[0;34m[0m\n"
        "[0;32m----> 1[0;31m [0mtrainer[0m[0;34m.[0m[0mtrain[0m[0;34m([0m[0;34m)[0m\n\n"
        "[0;31mRuntimeError[0m: the flux is odd"
    )
    answer = explain_error(log)
    assert first(answer) == ("RuntimeError", [])
    assert answer.error is not None
    assert answer.error.user_frame == "<ipython-input-4-2>:1 in <module>: trainer.train()"


def test_what_jax_says_of_its_own_frames_is_not_taken_for_the_error() -> None:
    chained = "\nThe above exception was the direct cause of the following exception:\n\n"
    simplified = "jax.errors.SimplifiedTraceback: For simplicity, JAX has removed its internal frames."
    answer = explain_error(
        simplified + "\n" + chained + TRACEBACK + "jaxlib.XlaRuntimeError: INTERNAL: the flux is odd"
    )
    assert first(answer) == ("XlaRuntimeError", [])


@pytest.mark.parametrize(
    ("line", "exception"),
    [
        ("F0401 15:13:19.040458  3143 relu_layer.cu:29] Cuda kernel failed.", "FATAL"),
        ("LLVM ERROR: the flux is odd", "LLVM ERROR"),
        ("2024-05-05 10:00:00 [ERROR] worker 3 failed: RuntimeError: the flux is odd", "RuntimeError"),
    ],
)
def test_a_line_that_stops_a_process_is_an_error_though_no_known_one(line: str, exception: str) -> None:
    answer = explain_error(f"step 3 loss 2.0\n{line}\nAborted (core dumped)\n")
    assert first(answer) == (exception, [])


def test_code_that_raises_an_error_is_not_taken_for_the_error() -> None:
    message = "ValueError: Label values must be <= vocab_size: 9"
    log = f'    raise ValueError(f"Label values must be <= vocab_size: {{n}}")\n{message}'
    answer = explain_error(log)
    assert answer.error is not None
    assert answer.error.text == message


def test_ranks_in_bare_brackets_are_told_apart() -> None:
    log = "\n".join(f"[3]:{line}" for line in (TRACEBACK + "KeyError: 'flux'").splitlines())
    assert first(explain_error(log)) == ("KeyError", ["3"])


@pytest.mark.parametrize(
    ("code", "message", "row"),
    [
        ("assert len(set(t.dtype for t in tensors)) == 1", "AssertionError", "zero3_mixed_dtypes"),
        ("assert len(self.train_dataloader) >= 1", "AssertionError", "verl_empty_loader"),
        ("idx, data = r", "ValueError: not enough values to unpack (expected 2, got 0)", "pin_memory_pipe"),
        ("epoch = checkpoint['epoch']", "KeyError: 'epoch'", "checkpoint_key_missing"),
        ("config_class = CONFIG_MAPPING[model_type]", "KeyError: 'qwen9'", "keyerror_config_mapping"),
        ('prompt["instruction"],', "KeyError: 'instruction'", "column_missing"),
        (
            "height, width = img.shape[:2]",
            "AttributeError: 'NoneType' object has no attribute 'shape'",
            "image_is_none",
        ),
        ("return sentencepiece.LoadFromFile(self, arg)", "TypeError: not a string", "sentencepiece_not_string"),
        (
            "rep_anchor, rep_pos, rep_neg = embeddings",
            "ValueError: not enough values to unpack (expected 3, got 2)",
            "sentence_transformers_columns",
        ),
        (
            "obj = instantiator(cls, _cls_kwargs) if instantiator else cls(**_cls_kwargs)",
            "TypeError: Net.__init__() missing 1 required positional argument: 'width'",
            "lightning_hyperparameters_missing",
        ),
        (
            'tok = Tokenizer.from_file("vocab.json")',
            "Exception: expected `,` or `}` at line 1 column 9",
            "tokenizer_file_form",
        ),
        ("a, b, c = rows", "ValueError: not enough values to unpack (expected 3, got 2)", "python_unpack"),
        ("block -= mean", "ValueError: output array is read-only", "array_read_only"),
        ("assert n > 0", "AssertionError", "python_assert"),
        ("value = settings['epoch']", "KeyError: 'epoch'", "python_key"),
    ],
)
def test_the_line_of_code_tells_apart_errors_of_the_same_words(code: str, message: str, row: str | None) -> None:
    log = f'Traceback (most recent call last):\n  File "/home/me/x.py", line 3, in f\n    {code}\n{message}\n'
    assert [match.id for match in explain_error(log).matches[:1]] == ([row] if row else [])


def test_where_there_is_no_error_the_next_call_is_of_use(tmp_path: Path) -> None:
    asked = explain_error("my loss is stuck").next_step
    assert asked is not None
    assert (asked.tool, asked.arguments) == ("search_folklore", {"query": "my loss is stuck"})
    log = tmp_path / "train.log"
    log.write_text("step 1: loss 2.5\nstep 2: loss 2.4\n", encoding="utf-8")
    read = explain_error(str(log)).next_step
    assert read is not None
    assert (read.tool, read.arguments) == ("diagnose_run", {"path": str(log)})


def test_what_was_thrown_has_been_said_above_the_end_of_the_process() -> None:
    end = "terminate called after throwing an instance of 'c10::DistBackendError'"
    answer = explain_error(f"{WATCHDOG.format(1)}\n{end}")
    assert [one.id for one in answer.matches][:1] == ["nccl_watchdog"]
    told = explain_error("terminate called after throwing an instance of 'std::runtime_error'\n  what():  bad shape 7")
    assert told.error is not None
    assert "bad shape 7" in told.error.text


def test_the_exception_inside_the_stack_trace_of_jax_is_explained_without_its_traceback() -> None:
    inner = "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8 bytes."
    for line in (inner, f"jax._src.traceback_util.UnfilteredStackTrace: {inner}"):
        answer = explain_error(f"{line}\nBufferAssignment OOM Debugging.")
        assert [one.id for one in answer.matches] == ["jax_oom"]


def test_the_rank_that_is_behind_is_named() -> None:
    report = (
        "[rank{1}]:[E1 ProcessGroupNCCL.cpp:6] [PG ID {0} PG GUID {0} Rank {1}] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum={2}, OpType=ALLREDUCE) ran for 600000 milliseconds before timing out."
    )

    def late(*seen: tuple[int, int, int]) -> str:
        return " ".join(explain_error("\n".join(report.format(*one) for one in seen)).notes)

    assert "rank 7 waits in collective 64088" in late((0, 0, 96120), (0, 7, 64088), (0, 1, 96120))
    assert "waits in collective" not in late((0, 0, 96120), (0, 7, 96120))
    assert "waits in collective" not in late((0, 0, 96120), (1, 7, 12))


@pytest.mark.parametrize(
    "line",
    [
        "step 10 train loss 0.5 error: 0.12",
        "num_errors=0",
        "Traceback handling enabled",
        "INFO error_rate=0.02 validation error 0.12",
        "0 errors, 0 warnings",
        "epoch 1 top1_err 34.2 error 0.31",
    ],
)
def test_names_no_error_in_a_healthy_log_that_uses_the_word(line: str) -> None:
    answer = explain_error(f"step 1 loss 2.0\n{line}\nstep 2 loss 1.5\n")
    assert answer.error is None
    assert answer.problem == "no error found"
