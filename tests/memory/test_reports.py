from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp.cli import main
from mldebug_mcp.core.errors import InputError, UnknownIdError
from mldebug_mcp.judge.memory import check_memory, report
from mldebug_mcp.judge.search import explain
from mldebug_mcp.memory.read import read_memory
from mldebug_mcp.memory.snapshot import timeline_of
from mldebug_mcp.report.concise import concise_memory
from mldebug_mcp.report.pages import memory_html
from tests.memory import scenarios
from tests.memory.allocator import MIB, Allocator, OutOfMemory
from tests.memory.conftest import LLAMA_8B, Save


def test_the_command_prints_what_is_seen_and_who_holds_it(save: Save, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", str(save(scenarios.snapshot_of(scenarios.leak())))]) == 0

    printed = capsys.readouterr().out
    assert "leak: device 0: me/train.py:71 remember leaves 8.00 MiB" in printed
    assert "optimizer_state" in printed
    assert "448.00 MiB" in printed


def test_several_devices_are_summed_in_a_table_and_named_beside_who_holds_it(
    save: Save, capsys: pytest.CaptureFixture[str]
) -> None:
    gpus = scenarios.training(gpu=Allocator(0)), scenarios.training(gpu=Allocator(1))
    path = save(scenarios.snapshot_of(*gpus))

    assert main(["memory", str(path)]) == 0

    printed = capsys.readouterr().out
    each, both = check_memory(path).devices[0], check_memory(path).snapshot
    assert f"{both.peak_allocated_bytes / MIB / 1024:.2f} GiB" in next(
        line for line in printed.splitlines() if line.strip().startswith("sum")
    )
    assert both.peak_allocated_bytes == 2 * each.peak_allocated_bytes
    assert "device 1: me/train.py" in printed


def test_json_is_the_librarys_answer(save: Save, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(scenarios.snapshot_of(scenarios.out_of_memory()))

    assert main(["memory", str(path), "--json"]) == 0

    assert json.loads(capsys.readouterr().out) == json.loads(check_memory(path).to_json())


def test_check_exits_with_one_only_where_something_is_worth_acting_on(save: Save) -> None:
    assert main(["memory", str(save(scenarios.snapshot_of(scenarios.leak()))), "--check"]) == 1
    assert main(["memory", str(save(scenarios.snapshot_of(scenarios.training()))), "--check"]) == 0
    assert main(["memory", "/nowhere.pickle"]) == 2


def test_a_picture_is_drawn_where_matplotlib_is_installed_and_asked_for_elsewhere(
    save: Save, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "timeline.png"
    code = main(["memory", str(save(scenarios.snapshot_of(scenarios.out_of_memory()))), "--png", str(picture)])

    if code:
        assert "pip install 'mldebug-mcp[plot]'" in capsys.readouterr().err
    else:
        assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_page_stands_alone_and_escapes_what_comes_from_the_snapshot(save: Save, tmp_path: Path) -> None:
    gpu = scenarios.training(steps=2)
    gpu.malloc(900 * MIB, [{"filename": "</td><script>alert(1)</script>.py", "line": 1, "name": "f"}])
    path = save(scenarios.snapshot_of(gpu))
    page = tmp_path / "page.html"

    assert main(["memory", str(path), "--html", str(page)]) == 0

    text = page.read_text()
    assert "<script" not in text
    assert "http:" not in text
    assert "https:" not in text
    assert "peak" in text
    assert text.count("<polygon") >= 4


def test_a_page_without_history_has_no_picture_but_all_else(save: Save) -> None:
    snapshot = read_memory(save(scenarios.snapshot_of(scenarios.training())["segments"]))

    assert "<svg" not in memory_html(snapshot, report(snapshot))


def test_the_timeline_adds_up_and_keeps_the_peak(save: Save) -> None:
    device = read_memory(save(scenarios.snapshot_of(scenarios.training(steps=6)))).devices[0]

    drawn = timeline_of(device, points=40)

    assert drawn is not None
    assert len(drawn.moments) <= 40
    assert int(np.sum(list(drawn.held.values()), axis=0).max()) == device.peak_allocated


def test_the_concise_answer_stays_under_two_thousand_five_hundred_tokens(save: Save) -> None:
    many = [scenarios.leak() if number % 2 else scenarios.out_of_memory() for number in range(8)]
    for number, gpu in enumerate(many):
        gpu.device = number
    for tree in (
        scenarios.snapshot_of(*many),
        scenarios.snapshot_of(scenarios.graph_kept()),
        scenarios.snapshot_of(scenarios.fragmented()),
    ):
        # Three characters of such JSON are about a token.
        assert len(concise_memory(check_memory(save(tree))).to_json()) < 7500


def test_a_focus_gives_the_whole_stack_and_the_life_of_a_site(save: Save) -> None:
    path = save(scenarios.snapshot_of(scenarios.leak()))
    site = next(one for one in check_memory(path).top_allocations if "remember" in one.site)

    detailed = check_memory(path, focus=site.id).top_allocations

    assert len(detailed) == 1
    assert detailed[0].details["never_freed"] == 8
    assert {one.category for one in check_memory(path, focus="activations").top_allocations} == {"activations"}
    with pytest.raises(UnknownIdError, match="top_allocations"):
        check_memory(path, focus="d9s9.nothing")


@pytest.mark.parametrize("name", ["leak", "oom", "graph_kept_alive", "logits_dominate"])
def test_a_finding_explains_itself(name: str) -> None:
    explained = explain(name)

    assert explained.kind == "symptom"
    assert "**Fix:**" in explained.text
    assert explained.related


def test_two_snapshots_are_compared_by_site_and_category(save: Save) -> None:
    small, large = scenarios.training(batch=2), scenarios.training(batch=4)

    comparison = check_memory(
        save(scenarios.snapshot_of(large), "b.pickle"), save(scenarios.snapshot_of(small), "a.pickle")
    ).comparison

    assert comparison is not None
    assert comparison.peak_change_bytes > 0
    assert comparison.categories["activations"] > 0
    assert "parameters" not in comparison.categories
    assert all(site.change_bytes == site.after_bytes - site.before_bytes for site in comparison.sites)


def test_a_snapshot_against_itself_changed_nothing(save: Save) -> None:
    path = save(scenarios.snapshot_of(scenarios.training()))

    comparison = check_memory(path, path).comparison

    assert comparison is not None
    assert comparison.sites == []
    assert comparison.categories == {}


def test_the_estimate_is_printed_with_its_formulas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA_8B))

    assert main(["estimate", str(path), "--batch-size", "2", "--checkpointing", "full"]) == 0
    printed = capsys.readouterr().out
    assert "8,030,261,248" in printed
    assert "arXiv 2205.05198" in printed
    assert main(["estimate", str(path), "--precision", "fp4"]) == 2


def test_a_picture_of_a_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "oom.txt"
    path.write_text(
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB of which 1.00 "
        "GiB is free."
    )

    from mldebug_mcp.report.pages import memory_png

    with pytest.raises(InputError, match="no history"):
        memory_png(read_memory(path))


def test_a_device_that_leaks_and_fails_is_told_how_much_stopping_the_leak_would_save(save: Save) -> None:
    gpu = Allocator(capacity=1200 * MIB)
    model = scenarios.Decoder(gpu).build()
    with pytest.raises(OutOfMemory):
        leak_until_full(model)

    levers = {one.lever: one for one in check_memory(save(scenarios.snapshot_of(gpu))).levers}

    assert levers["stop_the_leak"].saves_bytes >= 100 * MIB
    assert levers["stop_the_leak"].enough is True


def test_what_is_at_fault_comes_before_what_costs_speed_or_batch_size(save: Save) -> None:
    gpu = Allocator(capacity=1000 * MIB)
    scenarios.Decoder(gpu, layers=1).build()
    for address in [gpu.malloc(100 * MIB, scenarios.layer(31)) for _ in range(8)]:
        gpu.free(address)
    for _ in range(8):
        gpu.malloc(72 * MIB, scenarios.layer(32))
    with pytest.raises(OutOfMemory):
        gpu.malloc(200 * MIB, scenarios.layer(31))
    pieces = check_memory(save(scenarios.snapshot_of(gpu))).levers
    assert pieces[0].lever == "expandable_segments"
    assert any(one.saves_bytes > pieces[0].saves_bytes for one in pieces[1:])

    sound = check_memory(save(scenarios.snapshot_of(scenarios.training()))).levers
    assert [one.saves_bytes for one in sound] == sorted((one.saves_bytes for one in sound), reverse=True)


def leak_until_full(model: scenarios.Decoder) -> None:
    for _ in range(200):
        model.train_step()
        model.gpu.malloc(16 * MIB, scenarios.LEAK)
