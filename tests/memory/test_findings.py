from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from mldebug_mcp.checks import symptoms
from mldebug_mcp.judge.memory import check_memory
from mldebug_mcp.models.data import MemoryReport
from tests.memory import scenarios
from tests.memory.allocator import MIB, Allocator, OutOfMemory
from tests.memory.conftest import Save


def found(report: MemoryReport) -> set[str]:
    return {one.finding for one in report.findings}


def acted_on(report: MemoryReport) -> set[str]:
    return {one.finding for one in report.findings if one.severity != "info"}


HEALTHY: dict[str, Callable[[], Allocator]] = {
    "training": scenarios.training,
    "long training": lambda: scenarios.training(steps=40),
    "large batch": lambda: scenarios.training(steps=6, batch=16, vocab=2000),
    "one step": lambda: scenarios.training(steps=1),
    "deep": lambda: scenarios.training(steps=5, layers=12, vocab=2000),
    "inference": scenarios.inference,
    "two models": scenarios.two_models,
    "expandable segments": lambda: scenarios.training(gpu=Allocator(expandable=True)),
    "model only": lambda: scenarios.Decoder(Allocator(), layers=24).build().gpu,
}


@pytest.mark.parametrize("layout", ["2.1", "2.13"])
@pytest.mark.parametrize("frames", [True, False])
@pytest.mark.parametrize("workload", HEALTHY)
def test_a_healthy_workload_raises_no_alarm(workload: str, frames: bool, layout: str, save: Save) -> None:
    report = check_memory(save(scenarios.snapshot_of(HEALTHY[workload](), layout=layout, frames=frames)))

    assert acted_on(report) == set()
    assert "healthy" in found(report)
    assert report.hypotheses[0].cause == "healthy"


def test_batches_of_changing_length_are_healthy(save: Save) -> None:
    model = scenarios.Decoder(Allocator(), vocab=2000).build()
    for step in range(12):
        model.length = 128 * (1 + (step * 7) % 5)
        model.train_step()

    assert acted_on(check_memory(save(scenarios.snapshot_of(model.gpu)))) == set()


@pytest.mark.parametrize("frames", [True, False])
def test_a_leak_is_found_with_its_line_and_rate(frames: bool, save: Save) -> None:
    report = check_memory(save(scenarios.snapshot_of(scenarios.leak(each=8 * MIB), frames=frames)))

    leak = next(one for one in report.findings if one.finding == "leak")
    assert leak.values["bytes_per_step"] == 8 * MIB
    assert leak.bytes == 64 * MIB
    assert not frames or "train.py:71 remember" in leak.stack[0]
    assert "graph_kept_alive" not in found(report)
    assert report.hypotheses[0].cause == "memory_leak"


def test_a_leak_on_a_device_that_filled_up_is_found_at_the_failure(save: Save) -> None:
    gpu = Allocator(capacity=1200 * MIB)
    model = scenarios.Decoder(gpu).build()
    with contextlib.suppress(OutOfMemory):
        for _ in range(200):
            model.train_step()
            gpu.malloc(16 * MIB, scenarios.LEAK)

    report = check_memory(save(scenarios.snapshot_of(gpu)))

    assert {"oom", "leak"} <= found(report)


def test_a_failure_in_the_first_pass_of_a_deep_model_is_no_leak(save: Save) -> None:
    gpu = Allocator(capacity=1200 * MIB)
    with contextlib.suppress(OutOfMemory):
        scenarios.Decoder(gpu, layers=40, hidden=512).build().forward()

    report = check_memory(save(scenarios.snapshot_of(gpu)))

    assert "oom" in found(report)
    assert not {"leak", "graph_kept_alive"} & found(report)
    assert report.hypotheses[0].cause == "out_of_memory"


def test_a_leak_is_found_in_a_training_that_runs_inside_a_constructor(save: Save) -> None:
    gpu = scenarios.leak()
    cli = {"name": "__init__", "filename": "/opt/env/lib/python3.11/site-packages/lightning/cli.py", "line": 400}
    for event in gpu.events:
        if event.get("frames"):
            event["frames"] = [*event["frames"], cli]

    report = check_memory(save(scenarios.snapshot_of(gpu)))

    assert "leak" in found(report)


def test_a_leak_is_counted_by_training_steps_though_evaluations_lie_between(save: Save) -> None:
    model = scenarios.Decoder(Allocator()).build()
    for step in range(16):
        model.train_step()
        model.gpu.malloc(8 * MIB, scenarios.LEAK)
        if step % 4 == 3:
            for _ in range(10):
                for address in model.forward(scenarios.EVALUATE):
                    model.gpu.free(address)

    report = check_memory(save(scenarios.snapshot_of(model.gpu)))

    assert report.devices[0].steps_found == 16
    assert next(one for one in report.findings if one.finding == "leak").values["bytes_per_step"] == 8 * MIB


def test_outputs_that_an_evaluation_collects_are_a_leak_though_no_other_call_comes_once_per_batch(save: Save) -> None:
    gpu = Allocator()
    evaluate, main = ("/home/me/evaluate.py", 33, "evaluate"), ("/home/me/evaluate.py", 70, "main")
    keep = ("/home/me/evaluate.py", 34, "evaluate")
    for _ in range(20):
        hidden = [gpu.malloc(12 * MIB, scenarios.layer(60, evaluate)) for _ in range(10)]
        gpu.malloc(36 * MIB, scenarios.stack(scenarios.LINEAR, scenarios.CALL, keep, main))
        for address in hidden:
            gpu.free(address)

    leak = next(one for one in check_memory(save(scenarios.snapshot_of(gpu))).findings if one.finding == "leak")

    assert leak.values["bytes_per_step"] == 36 * MIB
    assert "evaluate.py:34" in " ".join(leak.stack)


@pytest.mark.parametrize("kept", [True, False])
def test_outputs_that_an_evaluation_after_training_collects_are_a_leak(save: Save, kept: bool) -> None:
    model = scenarios.Decoder(Allocator()).build()
    for _ in range(5):
        model.train_step()
    keep = scenarios.stack(("/home/me/train.py", 44, "evaluate"), ("/home/me/train.py", 70, "main"))
    for _ in range(12):
        hidden = [model.gpu.malloc(12 * MIB, scenarios.layer(60, scenarios.EVALUATE)) for _ in range(10)]
        outputs = model.gpu.malloc(36 * MIB, keep)
        for address in (*hidden, *(() if kept else (outputs,))):
            model.gpu.free(address)

    report = check_memory(save(scenarios.snapshot_of(model.gpu)))

    assert ("leak" in found(report)) is kept
    assert report.devices[0].steps_found == 5


def test_the_healthy_answer_does_not_deny_a_leak_that_it_could_not_judge(save: Save) -> None:
    model = scenarios.Decoder(Allocator()).build()
    model.train_step()

    healthy = next(
        one for one in check_memory(save(scenarios.snapshot_of(model.gpu))).findings if one.finding == "healthy"
    )

    assert "cannot be judged" in healthy.summary


def test_losses_kept_as_tensors_are_told_by_the_many_lines_that_stay(save: Save) -> None:
    report = check_memory(save(scenarios.snapshot_of(scenarios.graph_kept())))

    assert report.findings[0].finding == "graph_kept_alive"
    assert report.hypotheses[0].cause == "memory_leak"


def test_an_evaluation_without_no_grad_is_found_and_one_with_it_is_not(save: Save) -> None:
    assert "graph_kept_alive" in found(
        check_memory(save(scenarios.snapshot_of(scenarios.evaluation_without_no_grad())))
    )
    assert "graph_kept_alive" not in found(check_memory(save(scenarios.snapshot_of(scenarios.inference()))))


def test_an_evaluation_under_no_grad_is_no_kept_graph_whatever_outputs_it_collects(save: Save) -> None:
    report = check_memory(save(scenarios.snapshot_of(scenarios.evaluation_under_no_grad())))
    assert not found(report) & {"graph_kept_alive", "leak"}

    collected = check_memory(save(scenarios.snapshot_of(scenarios.evaluation_under_no_grad(kept=True))))
    assert "graph_kept_alive" not in found(collected)
    assert "leak" in found(collected)


def test_an_evaluation_of_a_history_without_training_that_collects_outputs_is_no_kept_graph(save: Save) -> None:
    report = check_memory(save(scenarios.snapshot_of(scenarios.evaluation_under_no_grad(steps=0, kept=True))))

    assert "graph_kept_alive" not in found(report)


def test_without_stacks_an_evaluation_is_unknown_rather_than_innocent(save: Save) -> None:
    report = check_memory(save(scenarios.snapshot_of(scenarios.evaluation_without_no_grad(), frames=False)))

    assert "graph_kept_alive" not in found(report)
    assert any("cannot be judged: graph_kept_alive (no stacks recorded" in note for note in report.notes)


def test_a_failed_allocation_says_what_was_asked_and_what_would_have_been_enough(save: Save) -> None:
    tree = scenarios.snapshot_of(scenarios.out_of_memory(800 * MIB))
    event = next(one for one in tree["device_traces"][0] if one["action"] == "oom")

    report = check_memory(save(tree))

    assert report.findings[0].finding == "oom"
    assert report.oom is not None
    assert report.oom.requested_bytes == event["size"]
    assert report.oom.device_free_bytes == event["device_free"]
    assert report.oom.missing_bytes == event["size"] - event["device_free"]
    assert "model.py" in report.oom.site
    halved = next(one for one in report.levers if one.lever == "halve_micro_batch")
    assert halved.enough is True
    assert report.hypotheses[0].cause == "out_of_memory"


def test_free_pieces_that_add_up_to_the_request_are_fragmentation(save: Save) -> None:
    report = check_memory(save(scenarios.snapshot_of(scenarios.fragmented())))

    assert {"oom", "fragmentation"} <= found(report)
    finding = next(one for one in report.findings if one.finding == "fragmentation")
    assert finding.values["largest_free"] < 64 * MIB < finding.values["free_in_reserved"]
    lever = next(one for one in report.levers if one.lever == "expandable_segments")
    assert lever.enough is True
    assert report.hypotheses[0].cause == "fragmentation"


def test_small_pieces_at_the_end_of_a_history_without_steps_are_fragmentation(save: Save) -> None:
    gpu = Allocator()
    kept = [gpu.malloc((3 + number % 5) * MIB, scenarios.BATCH) for number in range(100)]
    for address in kept[::2]:
        gpu.free(address)

    report = check_memory(save(scenarios.snapshot_of(gpu)))

    assert "fragmentation" in found(report)
    finding = next(one for one in report.findings if one.finding == "fragmentation")
    assert finding.values["free_in_reserved"] > 0.3 * finding.values["reserved"]


def test_one_step_alone_is_no_fragmentation(save: Save) -> None:
    gpu = Allocator()
    kept = [gpu.malloc((3 + number % 5) * MIB, scenarios.BATCH) for number in range(100)]
    for address in kept[60:]:
        gpu.free(address)

    assert "fragmentation" not in found(check_memory(save(scenarios.snapshot_of(gpu))))


def test_expandable_segments_are_not_proposed_where_they_are_on(save: Save) -> None:
    report = check_memory(save(scenarios.snapshot_of(scenarios.fragmented(expandable=True))))

    levers = {one.lever for one in report.levers}
    assert levers
    assert "expandable_segments" not in levers


def test_a_request_larger_than_the_device_is_no_fragmentation(save: Save) -> None:
    gpu = Allocator(capacity=600 * MIB)
    scenarios.Decoder(gpu).build()
    with pytest.raises(OutOfMemory):
        gpu.malloc(4000 * MIB, scenarios.LEAK)

    report = check_memory(save(scenarios.snapshot_of(gpu)))

    assert "fragmentation" not in found(report)
    assert "large_allocation" in found(report)


def test_logits_of_a_large_vocabulary_dominate(save: Save) -> None:
    report = check_memory(save(scenarios.snapshot_of(scenarios.training(vocab=64_000, hidden=512))))

    logits = next(one for one in report.findings if one.finding == "logits_dominate")
    held = next(one for one in report.devices[0].categories if one.category == "logits")
    assert logits.bytes == held.bytes
    # bf16 logits, their float32 copy, the loss's float32 result and its gradient
    assert held.bytes == 4 * 512 * 64_000 * (2 + 4 + 4 + 4)


def test_activations_of_a_large_batch_dominate(save: Save) -> None:
    report = check_memory(save(scenarios.snapshot_of(scenarios.training(batch=16, vocab=2000))))

    assert "activations_dominate" in found(report)
    assert "logits_dominate" not in found(report)


def test_optimizer_state_appears_with_the_first_step(save: Save) -> None:
    model = scenarios.Decoder(Allocator()).build()
    for _ in range(5):
        model.train_step()

    report = check_memory(save(scenarios.snapshot_of(model.gpu)))

    jump = next(one for one in report.findings if one.finding == "optimizer_state_jump")
    assert jump.bytes == pytest.approx(2 * 4 * sum(size // 2 for size in model.sizes), rel=0.01)
    assert jump.values["step"] == 0


def test_one_huge_tensor_is_a_large_allocation(save: Save) -> None:
    gpu = Allocator()
    scenarios.Decoder(gpu).build()
    gpu.malloc(400 * MIB, scenarios.LEAK)

    large = next(
        one for one in check_memory(save(scenarios.snapshot_of(gpu))).findings if one.finding == "large_allocation"
    )

    assert large.bytes == 400 * MIB
    assert "remember" in large.stack[0]


def test_one_batch_far_longer_than_the_rest_is_told_with_its_step(save: Save) -> None:
    model = scenarios.Decoder(Allocator()).build()
    for step in range(10):
        model.length = 4096 if step == 6 else 512
        model.train_step()

    uneven = next(
        one for one in check_memory(save(scenarios.snapshot_of(model.gpu))).findings if one.finding == "uneven_steps"
    )

    assert uneven.severity == "info"
    assert uneven.values["step"] == 6
    assert uneven.values["peak"] > 2 * uneven.values["usual"]
    assert "uneven_steps" not in found(check_memory(save(scenarios.snapshot_of(scenarios.training(steps=10)))))


def test_memory_cached_after_a_phase_is_told_but_not_between_steps(save: Save) -> None:
    gpu = scenarios.training(steps=3)
    assert "cached_not_released" not in found(check_memory(save(scenarios.snapshot_of(gpu))))
    model = scenarios.Decoder(gpu, layers=1, batch=1).build()
    gpu.free(gpu.malloc(900 * MIB, scenarios.LEAK))
    for _ in range(60):
        for address in scenarios.no_grad(model):
            gpu.free(address)
    for address in model.params:
        gpu.free(address)

    report = check_memory(save(scenarios.snapshot_of(gpu)))

    assert "cached_not_released" in found(report)
    assert acted_on(report) == set()


def test_devices_that_differ_are_told_and_a_mere_context_is_not(save: Save) -> None:
    big, small = scenarios.training(gpu=Allocator(0)), scenarios.Decoder(Allocator(1), layers=2).build().gpu
    assert "device_imbalance" in found(check_memory(save(scenarios.snapshot_of(big, small))))

    context = Allocator(1)
    context.malloc(512, scenarios.LEAK)
    assert "device_imbalance" not in found(check_memory(save(scenarios.snapshot_of(big, context))))


def test_outputs_that_data_parallel_gathers_on_one_device_are_told_as_imbalance(save: Save) -> None:
    report = check_memory(save(scenarios.snapshot_of(*scenarios.data_parallel())))

    finding = next(one for one in report.findings if one.finding == "device_imbalance")
    assert finding.device == 0
    assert finding.values["gathered"] == 192 * MIB
    assert "DataParallel gathered" in finding.summary

    replicas = scenarios.training(gpu=Allocator(0)), scenarios.training(gpu=Allocator(1), batch=5)
    assert "device_imbalance" not in found(check_memory(save(scenarios.snapshot_of(*replicas))))


def test_a_wrapped_history_is_told_and_a_late_one_is_not(save: Save) -> None:
    wrapped = scenarios.training(steps=8)
    wrapped.max_entries = 700
    report = check_memory(save(scenarios.snapshot_of(wrapped)))
    assert "history_truncated" in found(report)

    assert "history_truncated" not in found(check_memory(save(scenarios.snapshot_of(scenarios.training()))))


def test_a_snapshot_without_history_says_so_and_names_what_it_cannot_judge(save: Save) -> None:
    tree: dict[str, Any] = scenarios.snapshot_of(scenarios.training())
    tree["device_traces"] = [[]]

    report = check_memory(save(tree))

    assert "history_missing" in found(report)
    assert any("leak" in note for note in report.notes)


def test_every_finding_of_the_vocabulary_is_a_symptom_or_the_healthy_answer() -> None:
    expected = {
        "oom",
        "leak",
        "fragmentation",
        "large_allocation",
        "logits_dominate",
        "optimizer_state_jump",
        "activations_dominate",
        "graph_kept_alive",
        "cached_not_released",
        "device_imbalance",
        "history_missing",
        "history_truncated",
        "uneven_steps",
    }

    assert set(symptoms("memory")) == expected


@pytest.mark.parametrize("name", sorted(symptoms("memory")))
def test_every_memory_symptom_is_documented(name: str) -> None:
    symptom = symptoms("memory")[name]

    assert symptom.title.endswith(".")
    assert symptom.doc.endswith(".")
    assert symptom.outcome.fix


def test_the_steps_are_those_of_the_loop(save: Save) -> None:
    for annotated in (True, False):
        gpu = scenarios.training(steps=9)
        if not annotated:
            gpu.annotations = []
        device = check_memory(save(scenarios.snapshot_of(gpu))).devices[0]
        assert device.steps_found == 9
        assert len({step.peak_bytes for step in device.steps[1:]}) == 1


def test_the_answer_stays_short(save: Save) -> None:
    for workload in (scenarios.leak, scenarios.graph_kept, scenarios.out_of_memory, scenarios.fragmented):
        assert len(check_memory(save(scenarios.snapshot_of(workload()))).to_json()) < 12_000


def test_a_process_that_may_take_a_share_of_its_device_is_told_as_out_of_memory_alone(save: Save) -> None:
    gpu = Allocator(capacity=800 * MIB, beyond=64 << 30)
    model = scenarios.Decoder(gpu).build()
    with contextlib.suppress(OutOfMemory):
        for _ in range(4):
            model.train_step()
            model.batch *= 2

    report = check_memory(save(scenarios.snapshot_of(gpu)))

    assert "oom" in found(report)
    assert "fragmentation" not in found(report)
    assert report.oom is not None
    assert report.oom.missing_bytes == report.oom.requested_bytes
    assert report.devices[0].capacity_bytes == report.oom.reserved_bytes


def test_the_single_event_that_is_kept_where_only_the_state_is_recorded_is_no_history(save: Save) -> None:
    tree: dict[str, Any] = scenarios.snapshot_of(scenarios.training())
    tree["device_traces"] = [[tree["device_traces"][0][-1]]]

    report = check_memory(save(tree))

    assert "history_missing" in found(report)
    assert report.snapshot.allocated_bytes > 100 * MIB


def test_graphs_of_a_loss_that_is_followed_beside_the_training_are_told_though_the_training_frees_its_own(
    save: Save,
) -> None:
    model = scenarios.Decoder(Allocator(), batch=1).build()
    for _ in range(8):
        model.train_step()
        model.forward(("/home/me/train.py", 88, "follow"))

    report = check_memory(save(scenarios.snapshot_of(model.gpu)))

    assert "graph_kept_alive" in found(report)
