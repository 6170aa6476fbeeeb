"""What memory holds by the stacks that asked for it, steps as the optimizer makes them, and what stays behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from mldebug_mcp.judge.memory import check_memory
from mldebug_mcp.models.data import CategoryBytes, MemoryReport
from tests.memory import scenarios
from tests.memory.allocator import MIB, Allocator, Frame, OutOfMemory
from tests.memory.conftest import Save
from tests.memory.scenarios import CALL, FOREACH, MAIN, STEP, Decoder, layer, stack

_TORCH = "/opt/env/lib/python3.11/site-packages/torch"
LOOP = ("/home/me/train.py", 66, "train_step")


def held(report: MemoryReport) -> dict[str, CategoryBytes]:
    return {one.category: one for one in report.devices[0].categories}


def found(report: MemoryReport) -> set[str]:
    return {one.finding for one in report.findings}


def levers(report: MemoryReport) -> dict[str, int]:
    return {one.lever: one.saves_bytes for one in report.levers}


# What memory holds.


def test_a_vocabulary_as_wide_as_the_feed_forward_part_makes_no_logits_of_activations(save: Save) -> None:
    gpu = scenarios.training(hidden=1024, vocab=4096, batch=8, fp32_logits=False)

    report = check_memory(save(scenarios.snapshot_of(gpu)))

    tokens = 8 * 512
    # The logits in 16 bits, log-probabilities and their gradient in 32.
    assert held(report)["logits"].bytes == tokens * 4096 * (2 + 4 + 4)
    assert "logits_dominate" not in found(report)
    assert "logits_in_chunks" not in {one.lever for one in report.levers if one.enough}


def test_memory_runs_out_in_a_forward_pass_that_has_no_logits_yet(save: Save) -> None:
    gpu = Allocator(capacity=900 * MIB)
    model = Decoder(gpu, hidden=512, vocab=2048, layers=4, fp32_logits=False).build()
    for _ in range(3):
        model.train_step()
    model.batch = 64
    with pytest.raises(OutOfMemory):
        model.forward()

    report = check_memory(save(scenarios.snapshot_of(gpu)))

    assert {"oom", "activations_dominate"} <= found(report)
    assert "logits_dominate" not in found(report)
    assert "logits" not in held(report)


EAGER = (
    "/opt/env/lib/python3.11/site-packages/transformers/models/llama/modeling_llama.py",
    210,
    "eager_attention_forward",
)
ATTENTION = ("/opt/env/lib/python3.11/site-packages/transformers/models/llama/modeling_llama.py", 270, "forward")
PLAIN = ("/home/me/model.py", 50, "forward")
SOFTMAX = (f"{_TORCH}/nn/functional.py", 2140, "softmax")
INNER = {
    "a function of attention": [EAGER, ATTENTION],
    "a softmax of torch.nn": [SOFTMAX, PLAIN],
    "plain code that makes many": [PLAIN],
}


@pytest.mark.parametrize("kind", INNER)
def test_attention_scores_are_told_with_what_stores_none(kind: str, save: Save) -> None:
    gpu = Allocator()
    model = Decoder(gpu, hidden=512, vocab=2000, layers=4).build()
    scores = 4 * 16 * 512 * 512 * 4
    for _ in range(4):
        batch = gpu.malloc(4 * 512 * 8, scenarios.BATCH)
        kept = model.forward()
        stored = []
        for _ in range(4):
            gpu.free(gpu.malloc(scores, stack(INNER[kind][-1], CALL, STEP, MAIN)))
            stored.append(gpu.malloc(scores, stack(*INNER[kind], CALL, STEP, MAIN)))
        loss = model.loss()
        for address in stored:
            gpu.free(gpu.malloc(scores, scenarios.BACKWARD))
            gpu.free(address)
        model.backward(kept, loss)
        model.optimizer_step()
        model.zero_grad()
        gpu.free(batch)

    report = check_memory(save(scenarios.snapshot_of(gpu)))

    assert held(report)["attention_scores"].bytes >= 4 * scores
    assert levers(report)["fused_attention"] == held(report)["attention_scores"].bytes
    assert "attention scores" in next(one.summary for one in report.findings if one.finding == "activations_dominate")


def test_a_matrix_of_all_pairs_for_a_loss_is_no_attention(save: Save) -> None:
    gpu = Allocator()
    model = Decoder(gpu, hidden=512, vocab=2000, layers=4).build()
    for _ in range(4):
        kept = model.forward()
        pairs = [gpu.malloc(200 * MIB, stack(("/home/me/train.py", line, "contrast"), STEP, MAIN)) for line in (40, 41)]
        model.backward(kept, model.loss())
        for address in pairs:
            gpu.free(address)
        model.optimizer_step()
        model.zero_grad()

    report = check_memory(save(scenarios.snapshot_of(gpu)))

    assert "attention_scores" not in held(report)
    assert "fused_attention" not in levers(report)


def test_temporaries_of_the_optimizer_are_told_with_what_makes_none(save: Save) -> None:
    gpu = Allocator()
    model = Decoder(gpu, hidden=1024, layers=4, batch=1, length=64, vocab=2000).build()
    for _ in range(4):
        batch = gpu.malloc(4096, scenarios.BATCH)
        model.backward(model.forward(), model.loss())
        model.optimizer_step()
        at_once = [gpu.malloc(size, FOREACH) for size in model.sizes]
        for address in at_once:
            gpu.free(address)
        model.zero_grad()
        gpu.free(batch)

    report = check_memory(save(scenarios.snapshot_of(gpu)))

    temporary = held(report)["optimizer_temporary"]
    assert temporary.bytes == pytest.approx(sum(model.sizes), rel=0.01)
    assert levers(report)["fused_optimizer"] == temporary.bytes
    assert (temporary.sure, temporary.unexplained_share) == ("high", 0)


def test_each_category_says_how_much_of_it_no_stack_explains(save: Save) -> None:
    report = check_memory(save(scenarios.snapshot_of(scenarios.training(batch=16, vocab=2000))))

    shares = {name: one.unexplained_share for name, one in held(report).items()}
    assert shares["activations"] == shares["optimizer_state"] == shares["parameters"] == 0
    assert 0 < shares["logits"] < 1  # the gradient's stack lies in a thread without Python
    without = check_memory(save(scenarios.snapshot_of(scenarios.training(batch=16, vocab=2000), frames=False)))
    assert {one.unexplained_share for one in held(without).values()} == {1}


def test_activations_are_told_by_the_module_that_made_them(save: Save) -> None:
    gpu = scenarios.training(batch=16, vocab=2000)

    modules = held(check_memory(save(scenarios.snapshot_of(gpu))))["activations"].modules

    assert list(modules) == ["linear", "cross_entropy"]
    assert modules["cross_entropy"] == 512  # the loss itself


BACKWARD_OF_COMPILED = stack(
    ("/home/me/torchinductor_me/ab/cab.py", 1300, "call"),
    ("/home/me/model.py", 96, "forward"),
    (f"{_TORCH}/_inductor/utils.py", 3401, "run"),
    (f"{_TORCH}/_functorch/_aot_autograd/runtime_wrappers.py", 2918, "_backward_impl"),
    (f"{_TORCH}/autograd/function.py", 317, "apply"),
)


def test_a_compiled_models_backward_is_no_forward_pass(save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "BACKWARD", BACKWARD_OF_COMPILED)

    report = check_memory(save(scenarios.snapshot_of(scenarios.training(steps=5))))

    assert report.devices[0].steps_found == 5
    assert "optimizer_state_jump" in found(report)
    sites = {one.site for one in report.top_allocations}
    assert not any("torchinductor" in site for site in sites)


def test_a_frame_without_a_line_has_the_largest_number_of_64_bits(save: Save) -> None:
    nowhere: list[Frame] = [{"name": "init", "filename": "/home/me/model.py", "line": 2**64 - 1}]
    gpu = Allocator()
    gpu.malloc(32 * MIB, nowhere)
    gpu.free(gpu.malloc(MIB, nowhere))

    for protocol in (2, 4, 5):
        report = check_memory(save(scenarios.snapshot_of(gpu), protocol=protocol))
        assert report.top_allocations[0].site == "me/model.py init"


# Peaks.


@pytest.mark.parametrize("megabytes", [1.2, 3.3, 9.7, 19.4, 30.1])
def test_the_rest_of_a_block_that_is_not_split_counts_as_torch_counts_it(megabytes: float, save: Save) -> None:
    gpu, most = Allocator(), 0
    kept: list[int] = []
    for number in range(60):
        kept.append(gpu.malloc(int((megabytes + number % 3 / 7) * MIB), layer(31)))
        most = max(most, sum(map(gpu.size_of, kept)))
        if number % 4 == 3:
            gpu.free(kept.pop(0))
            gpu.free(kept.pop(-2))
    for address in kept:
        gpu.free(address)

    assert check_memory(save(scenarios.snapshot_of(gpu))).snapshot.peak_allocated_bytes == most


# Steps.


def _annotated(steps: int, long: int) -> Allocator:
    gpu = Allocator()
    model = Decoder(gpu, layers=2, vocab=2000).build()
    for step in range(steps):
        model.length = 4096 if step == long else 512
        gpu.annotate("Optimizer.zero_grad#AdamW.zero_grad")
        model.zero_grad()
        model.backward(model.forward(), model.loss())
        gpu.annotate("Optimizer.step#AdamW.step")
        model.optimizer_step()
        gpu.annotate("Optimizer.step#AdamW.step", "END")
    return gpu


@pytest.mark.parametrize("annotated", [True, False])
def test_a_step_has_the_number_that_the_loop_gives_it(annotated: bool, save: Save) -> None:
    tree = scenarios.snapshot_of(_annotated(10, long=6))
    if not annotated:
        del tree["external_annotations"]

    report = check_memory(save(tree))

    device = report.devices[0]
    assert (device.steps_found, device.peak_step) == (10, 6)
    assert "optimizer" in device.steps_from
    assert "step 6 peaks" in next(one.summary for one in report.findings if one.finding == "uneven_steps")


def test_two_optimizers_in_turn_make_one_step(save: Save) -> None:
    gpu = Allocator()
    first, second = Decoder(gpu, layers=1).build(), Decoder(gpu, layers=1).build()
    other = [frame | {"line": 90} if frame["filename"] == LOOP[0] else frame for frame in FOREACH]
    for _ in range(6):
        for model, frames in ((first, FOREACH), (second, other)):
            model.backward(model.forward(), model.loss())
            gpu.free(gpu.malloc(4 * MIB, frames))
            model.zero_grad()

    assert check_memory(save(scenarios.snapshot_of(gpu))).devices[0].steps_found == 6


# What stays behind.

COPY = stack(
    (f"{_TORCH}/storage.py", 255, "clone"),
    (f"{_TORCH}/_tensor.py", 182, "__deepcopy__"),
    ("/opt/env/lib/python3.11/copy.py", 143, "deepcopy"),
    ("/home/me/train.py", 77, "save_best"),
    MAIN,
)


def _copies(steps: int, every: int, last: int = 0) -> Allocator:
    """Copy the weights after each so many steps; with `last`, all but as many copies go."""
    gpu = Allocator()
    model = Decoder(gpu, layers=2).build()
    copies: list[list[int]] = []
    for step in range(steps):
        model.train_step()
        if step % every == every - 1:
            copies.append([gpu.malloc(size, COPY) for size in model.sizes])
        if last and len(copies) > last:
            for address in copies.pop(0):
                gpu.free(address)
    return gpu


@pytest.mark.parametrize(("steps", "every"), [(10, 2), (12, 3), (16, 4)])
def test_copies_that_come_every_so_many_steps_leak(steps: int, every: int, save: Save) -> None:
    report = check_memory(save(scenarios.snapshot_of(_copies(steps, every))))

    leak = next(one for one in report.findings if one.finding == "leak")
    assert "save_best" in leak.summary
    assert report.levers[0].lever == "stop_the_leak"
    assert held(report)["parameters"].bytes > 3 * held(report)["optimizer_state"].bytes / 4


@pytest.mark.parametrize(("steps", "every", "last"), [(16, 2, 3), (12, 3, 1), (20, 2, 5)])
def test_the_last_few_copies_are_no_leak(steps: int, every: int, last: int, save: Save) -> None:
    assert "leak" not in found(check_memory(save(scenarios.snapshot_of(_copies(steps, every, last)))))


def test_a_state_that_is_never_detached_leaves_a_graph_in_each_of_the_loops_steps(save: Save) -> None:
    gpu = Allocator()
    model = Decoder(gpu, layers=1, batch=1).build()
    for step in range(8):
        for _ in range(5):  # time steps
            gpu.malloc(8 * MIB, layer(31))
        loss = gpu.malloc(4, scenarios.CROSS_ENTROPY)
        for _ in range(5 * (step + 1)):  # backward goes through all the steps before, too
            gpu.free(gpu.malloc(8 * MIB, scenarios.BACKWARD))
        gpu.free(loss)
        del model.grads[:]

    report = check_memory(save(scenarios.snapshot_of(gpu)))

    assert report.devices[0].steps_found == 8
    leak = next(one for one in report.findings if one.finding == "leak")
    assert leak.values["bytes_per_step"] == 5 * 8 * MIB


# What cannot be known.


def test_without_a_history_no_peak_and_no_cause_is_told(save: Save) -> None:
    tree = scenarios.snapshot_of(scenarios.training()) | {"device_traces": []}

    report = check_memory(save(tree))

    assert (report.snapshot.peak_allocated_bytes, report.devices[0].peak_allocated_bytes) == (0, 0)
    assert found(report) >= {"history_missing"}
    assert "healthy" not in found(report)
    assert report.hypotheses == []
    assert any("no cause is ranked" in note for note in report.notes)


@pytest.mark.parametrize("events", [[], [[{"action": "snapshot", "addr": 0, "size": 0, "stream": 0, "frames": []}]]])
def test_gradients_are_told_from_parameters_without_a_history(events: list[object], save: Save) -> None:
    gpu = Allocator()
    model = Decoder(gpu, vocab=8192).build()
    model.backward(model.forward(), model.loss())
    model.optimizer_step()

    report = check_memory(save(scenarios.snapshot_of(gpu) | {"device_traces": events}))

    for category in ("parameters", "gradients"):
        assert held(report)[category].bytes == sum(model.sizes)
    assert (held(report)["parameters"].sure, held(report)["gradients"].sure) == ("high", "low")


def test_a_limit_of_the_process_is_named_where_the_device_had_enough_left(save: Save) -> None:
    gpu = Allocator(capacity=800 * MIB, beyond=64 << 30)
    model = Decoder(gpu).build()
    model.train_step()
    model.batch = 32
    with pytest.raises(OutOfMemory):
        model.train_step()

    report = check_memory(save(scenarios.snapshot_of(gpu)))

    assert "set_per_process_memory_fraction" in next(one.summary for one in report.findings if one.finding == "oom")


MESSAGE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 96.00 MiB. GPU 0 has a total capacity of 139.80 GiB "
    "of which 136.00 GiB is free. Including non-PyTorch memory, this process has 2.64 GiB memory in use. Process 2505 "
    "has 584.00 MiB memory in use. Process 2509 has 584.00 MiB memory in use. 2.00 GiB allowed; Of the allocated "
    "memory 1.86 GiB is allocated by PyTorch, and 62.08 MiB is reserved by PyTorch but unallocated."
)


def test_a_message_names_the_limit_and_does_not_count_the_own_context_among_others(tmp_path: Path) -> None:
    path = tmp_path / "error.txt"
    path.write_text(MESSAGE)

    report = check_memory(path)

    assert report.oom is not None
    assert report.oom.limit_bytes == 2 << 30
    assert report.oom.others_bytes == 2 * 584 * MIB
    assert report.oom.own_bytes == pytest.approx(0.72 * (1 << 30), rel=0.02)
    summary = next(one.summary for one in report.findings if one.finding == "oom")
    assert "may take 2.00 GiB" in summary
    assert "other processes on this device hold 1.14 GiB" in summary
