"""Known errors at the end of a log: what they do to the causes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mldebug_mcp import check_memory, diagnose_run, explain_error
from mldebug_mcp.models import Diagnosis

RECORDS = [f"step {step}, loss {3 - step / 100:.3f}" for step in range(1, 101)]


def diagnosis_of(folder: Path, *lines: str) -> Diagnosis:
    path = folder / "train.log"
    path.write_text("\n".join(lines), encoding="utf-8")
    return diagnose_run(path)


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        ("RuntimeError: CUDA error: device-side assert triggered", "tokenizer_mismatch"),
        ("ValueError: Attempting to unscale FP16 gradients.", "fp16_overflow"),
        ("ValueError: optimizer got an empty parameter list", "params_not_training"),
        ("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0)", "out_of_memory"),
    ],
)
def test_an_error_that_ended_the_run_speaks_for_its_cause(tmp_path: Path, error: str, cause: str) -> None:
    diagnosis = diagnosis_of(tmp_path, *RECORDS, "Traceback (most recent call last):", error)
    leader = diagnosis.hypotheses[0]
    assert leader.cause == cause
    assert any(said.startswith("the error in line 102") for said in leader.because)


def test_an_error_that_training_went_on_after_does_not(tmp_path: Path) -> None:
    error = "RuntimeError: CUDA error: device-side assert triggered"
    diagnosis = diagnosis_of(tmp_path, *RECORDS[:20], error, *RECORDS[20:])
    assert not any("the error in line" in said for one in diagnosis.hypotheses for said in one.because)


@pytest.mark.parametrize(
    "error",
    [
        "OSError: [Errno 28] No space left on device",
        "RuntimeError: No CUDA GPUs are available",
        "Segmentation fault (core dumped)",
        "RuntimeError: Failed to recv, got 0 bytes. Connection was likely closed.",
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process 4242 got signal: 15",
        "lightgbm.basic.LightGBMError: Cannot change max_depth_bin after constructed Dataset handle.",
        "ValueError: didn't find ['cls'] in ['__key__', '__url__', 'webp']",
        "AttributeError: 'tuple' object has no attribute 'get_seq_length'",
    ],
)
def test_a_known_error_of_no_cause_in_the_list_speaks_for_unknown(tmp_path: Path, error: str) -> None:
    diagnosis = diagnosis_of(tmp_path, *RECORDS, error)
    assert diagnosis.hypotheses[0].cause == "unknown"


def test_an_unknown_exception_at_the_end_is_seen_and_the_run_is_not_clearly_healthy(tmp_path: Path) -> None:
    diagnosis = diagnosis_of(tmp_path, *RECORDS, "Traceback (most recent call last):", "TypeError: no such thing")
    shares = {one.cause: one.probability for one in diagnosis.hypotheses}
    assert "ends_in_error" in {finding.symptom for finding in diagnosis.findings if finding.state == "present"}
    assert shares["unknown"] > 0.2


def test_the_last_error_is_kept_however_many_came_before(tmp_path: Path) -> None:
    many = [f"ValueError: sample {at} is broken, skipped" for at in range(300)]
    diagnosis = diagnosis_of(tmp_path, *many, *RECORDS, "ValueError: Attempting to unscale FP16 gradients.")
    assert diagnosis.hypotheses[0].cause == "fp16_overflow"


@pytest.mark.parametrize("key", ["error", "message"])
def test_an_error_in_a_structured_log_is_read(tmp_path: Path, key: str) -> None:
    rows = [{"step": step, "loss": 3 - step / 100} for step in range(1, 50)]
    last = {"level": "error", key: "ValueError: Attempting to unscale FP16 gradients."}
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, [*rows, last])), encoding="utf-8")
    assert diagnose_run(path).hypotheses[0].cause == "fp16_overflow"


def test_a_message_speaks_for_no_cause_of_other_messages(tmp_path: Path) -> None:
    diagnosis = diagnosis_of(tmp_path, *RECORDS, "ERROR:tensorflow:Model diverged with loss = NaN.")
    ranked = [one.cause for one in diagnosis.hypotheses]
    assert ranked[0] in {"exploding_gradients", "lr_too_high", "invalid_math", "fp16_overflow"}
    assert not {"out_of_memory", "tokenizer_mismatch", "all_labels_masked"}.intersection(ranked[:3])
    assert not any("error_message" in said for one in diagnosis.hypotheses for said in one.because)


def test_a_long_message_is_read_to_its_end_and_every_verb_judges_it_alike(tmp_path: Path) -> None:
    processes = " ".join(f"Process {100 + one} has 2.00 GiB memory in use." for one in range(6))
    error = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
        f"94.00 GiB of which 1.06 GiB is free. {processes} Including non-PyTorch memory, this process has 74.00 GiB "
        "memory in use. Of the allocated memory 52.00 GiB is allocated by PyTorch, and 21.50 GiB is reserved by "
        "PyTorch but unallocated."
    )
    diagnosis = diagnosis_of(tmp_path, *RECORDS, "Traceback (most recent call last):", error)
    assert diagnosis.hypotheses[0].cause == "fragmentation"
    assert check_memory(tmp_path / "train.log").hypotheses[0].cause == "fragmentation"
    assert explain_error(error).matches[0].causes[0] == "fragmentation"


@pytest.mark.parametrize(
    ("asked", "allocated", "unused", "in_pieces"),
    [
        ("2.00 GiB", "20.11 GiB", "1.90 GiB", False),
        ("1.50 GiB", "36.00 GiB", "1.40 GiB", False),
        ("512.00 MiB", "77.90 GiB", "640.00 MiB", False),
        ("3.00 GiB", "50.00 GiB", "12.40 GiB", True),
    ],
)
def test_every_verb_judges_the_numbers_of_a_message_alike(
    tmp_path: Path, asked: str, allocated: str, unused: str, in_pieces: bool
) -> None:
    error = (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. GPU 0 has a total capacity of "
        f"79.10 GiB of which 480.00 MiB is free. Of the allocated memory {allocated} is allocated by PyTorch, and "
        f"{unused} is reserved by PyTorch but unallocated."
    )
    diagnosis = diagnosis_of(tmp_path, *RECORDS, "Traceback (most recent call last):", error)
    memory, explained = check_memory(tmp_path / "train.log"), explain_error(error)
    cause = "fragmentation" if in_pieces else "out_of_memory"
    assert diagnosis.hypotheses[0].cause == memory.hypotheses[0].cause == explained.matches[0].causes[0] == cause
    assert in_pieces or memory.hypotheses[0].probability < 0.86
    fixes = (diagnosis.verdict.fix, memory.findings[0].fix, explained.advice)
    assert in_pieces or all("micro-batch" in fix[:60].lower() for fix in fixes)
    assert not any("`levers`" in fix for fix in fixes)


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("LLVM ERROR: Failed to infer result type(s).", "unknown"),
        ("pyarrow.lib.ArrowInvalid: cannot mix list and non-list, non-null values", "unknown"),
        ("2024-08-21 14:30: E external/cuda_dnn.cc:461] No handle: CUDNN_STATUS_INTERNAL_ERROR", "out_of_memory"),
        ("F0000 00:00:17.89 9276 client.cc:487] Non-OK-status: INTERNAL: Core halted unexpectedly", "hardware_fault"),
    ],
)
def test_what_stops_a_process_without_an_exception_is_seen(tmp_path: Path, line: str, cause: str) -> None:
    leader = diagnosis_of(tmp_path, *RECORDS, line).hypotheses[0]
    assert leader.cause == cause
    assert any(said.startswith("the error in line 101") for said in leader.because)


def test_what_tensorflow_prints_when_it_starts_is_no_error(tmp_path: Path) -> None:
    start = "E0000 00:00:1727.123 1234 cuda_dnn.cc:8310] Unable to register cuDNN factory: Attempting to register"
    diagnosis = diagnosis_of(tmp_path, start, *RECORDS[:2])
    assert not any("error" in said for one in diagnosis.hypotheses for said in one.because)


def test_the_line_of_code_tells_apart_errors_of_the_same_words(tmp_path: Path) -> None:
    def told(code: str) -> list[str]:
        frame = ["Traceback (most recent call last):", '  File "/home/me/train.py", line 9, in resume', f"    {code}"]
        diagnosis = diagnosis_of(tmp_path, *RECORDS, *frame, "KeyError: 'optimizer'")
        return [one.cause for one in diagnosis.hypotheses if any("the error in line" in said for said in one.because)]

    assert told("optimizer.load_state_dict(checkpoint['optimizer'])") == ["resume_state_lost"]
    assert told("settings['optimizer']") == []
