from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mldebug_mcp.cli import main
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.memory.estimate import CAPACITY, estimate_memory, gpu_of
from mldebug_mcp.models.data import MemoryFit
from tests.memory.conftest import LLAMA_8B

GIB = 1024**3
TINY = {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 256, "n_positions": 128}


def fit(path: Path, gpu: str | float, **settings: Any) -> MemoryFit:
    answer = estimate_memory(path, gpu=gpu, **settings).fit
    assert answer is not None
    return answer


def planned(path: Path, answer: MemoryFit, **settings: Any) -> int:
    """Return what the estimate says of the settings that the plan ends with."""
    typed = {"lora_rank": int, "batch_size": int, "accumulation": int, "length": int, "chunked_loss": bool}
    for step in answer.plan:
        settings |= {name: typed.get(name, str)(value) for name, value in step.settings.items()}
    return estimate_memory(path, **settings).total_bytes


def test_a_training_that_fits_needs_no_plan(llama: Path) -> None:
    answer = fit(llama, "H200", precision="bf16", checkpointing="full")

    assert (answer.verdict, answer.plan, answer.enough) == ("fits", [], True)
    assert answer.needed_bytes < answer.capacity_bytes
    assert answer.summary.startswith("fits: ")


def test_what_fits_only_by_the_formula_is_tight(llama: Path) -> None:
    needed = fit(llama, "B200", batch_size=8, precision="bf16").needed_bytes

    assert fit(llama, needed / GIB + 1, batch_size=8, precision="bf16").verdict == "tight"


@pytest.mark.parametrize("gpu", ["24", "T4", "H100", "MI300X"])
@pytest.mark.parametrize(
    "settings",
    [{}, {"batch_size": 8}, {"lora_rank": 8}, {"batch_size": 8, "devices": 8}, {"optimizer": "sgd", "length": 4096}],
)
def test_the_plan_ends_where_the_estimate_of_its_settings_says_it_fits(
    llama: Path, gpu: str, settings: dict[str, Any]
) -> None:
    answer = fit(llama, gpu, **settings)

    assert answer.enough
    if answer.plan:
        assert answer.verdict == "does_not_fit"
        assert answer.plan[-1].needed_bytes == planned(llama, answer, **settings) + GIB <= answer.capacity_bytes
        assert answer.needed_bytes - sum(step.saves_bytes for step in answer.plan) == answer.plan[-1].needed_bytes


def test_no_change_of_the_plan_is_needless(llama: Path) -> None:
    answer = fit(llama, 24, batch_size=4)

    assert [step.lever for step in answer.plan][:1] == ["lora"]
    for left_out in answer.plan:
        rest = answer.model_copy(update={"plan": [step for step in answer.plan if step is not left_out]})
        if left_out.lever != "lora":
            assert planned(llama, rest, batch_size=4) + GIB > answer.capacity_bytes


def test_what_leaves_the_result_as_it_is_comes_before_adapters_and_shorter_rows(llama: Path) -> None:
    levers = {step.lever for step in fit(llama, "H100", batch_size=8, devices=8).plan}

    assert "zero1" in levers
    assert not levers & {"lora", "qlora", "shorter_length", "adamw_8bit"}


def test_eager_attention_gives_way_to_fused_attention_before_anything_that_costs_time(llama: Path) -> None:
    answer = fit(llama, "H200", attention="eager", precision="bf16", length=4096, optimizer="adamw_fused")

    assert [step.lever for step in answer.plan] == ["fused_attention"]


def test_where_nothing_is_enough_it_says_over_how_many_gpus(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA_8B | {"num_hidden_layers": 400, "hidden_size": 8192, "num_attention_heads": 64}))

    answer = fit(path, "RTX 3060")

    assert not answer.enough
    assert answer.devices_needed is not None
    assert f"over {answer.devices_needed} such GPUs" in answer.summary


def test_a_tiny_model_is_told_in_mebibytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(TINY))

    assert main(["estimate", str(path), "--gpu", "T4"]) == 0

    printed = capsys.readouterr().out
    assert "MiB on each device at the peak" in printed
    assert "fits: 1.0" in printed


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("h100", "H100"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("nvidia-a100-sxm4-80gb", "A100-80GB"),
        ("A100", "A100-40GB"),
        ("RTX 4090", "RTX 4090"),
        ("4090", "RTX 4090"),
        ("Tesla T4", "T4"),
        ("AMD Instinct MI300X", "MI300X"),
        ("RTX A6000", "A6000"),
        ("L4 24GB", "L4"),
        ("24", "24 GiB"),
        ("80GB", "80 GiB"),
        ("0.5 GiB", "0.5 GiB"),
    ],
)
def test_a_gpu_is_known_by_the_names_that_people_and_drivers_give_it(text: str, name: str) -> None:
    gpu = gpu_of(text)

    assert gpu.name == name
    assert gpu.capacity == int((CAPACITY[name] if name in CAPACITY else float(name.removesuffix(" GiB"))) * GIB)


def test_the_longest_row_that_fits_is_told(llama: Path) -> None:
    settings: dict[str, Any] = {"precision": "bf16", "checkpointing": "full", "length": 512}

    longest = fit(llama, "H100", **settings).largest_length

    assert longest is not None
    assert fit(llama, "H100", **settings | {"length": longest}).verdict in ("fits", "tight")
    assert fit(llama, "H100", **settings | {"length": longest + 1}).verdict == "does_not_fit"
    assert fit(llama, "T4").largest_length is None


@pytest.mark.parametrize(("text", "said"), [("H110", "did you mean H100"), ("abacus", "give its memory"), ("0", "GiB")])
def test_an_unknown_gpu_says_which_are_known(text: str, said: str, llama: Path) -> None:
    with pytest.raises(InputError, match=said):
        estimate_memory(llama, gpu=text)


def test_tensor_parallelism_splits_all_of_a_layer(llama: Path) -> None:
    whole = {one.part: one.bytes for one in estimate_memory(llama).parts}
    split = {one.part: one.bytes for one in estimate_memory(llama, tensor_parallel=4).parts}

    assert split.pop("workspace") == whole.pop("workspace")
    assert split == {name: pytest.approx(held / 4, abs=1) for name, held in whole.items()}


def test_a_pipelines_first_stage_holds_a_micro_batch_for_each_stage(llama: Path) -> None:
    whole = {one.part: one.bytes for one in estimate_memory(llama).parts}

    filled = {one.part: one.bytes for one in estimate_memory(llama, pipeline_parallel=4, accumulation=8).parts}
    # Without what is kept of the last norm.
    assert filled["activations"] == pytest.approx(whole["activations"] - 2048 * 4096 * (4 + 4 + 2))
    assert "logits" not in filled

    layers = 8_030_261_248 - 2 * 128256 * 4096
    assert filled["gradients"] == pytest.approx(4 * (layers / 4 + 128256 * 4096), rel=1e-4)


def test_a_pipeline_of_one_micro_batch_is_fullest_where_the_loss_is(llama: Path) -> None:
    parts = {one.part: one.formula for one in estimate_memory(llama, pipeline_parallel=4, batch_size=16).parts}

    assert "last of 4 stages" in parts["logits"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"tensor_parallel": 5}, "divide the 32"),
        ({"pipeline_parallel": 33}, "32 layers"),
        ({"tensor_parallel": 0}, "1"),
    ],
)
def test_a_split_that_the_model_does_not_allow_is_refused(settings: dict[str, int], said: str, llama: Path) -> None:
    with pytest.raises(InputError, match=said):
        estimate_memory(llama, **settings)  # type: ignore[arg-type]


def test_the_command_prints_the_plan_in_numbers(llama: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["estimate", str(llama), "--gpu", "24"]) == 0

    printed = capsys.readouterr().out
    assert "does not fit: 150.64 GiB" in printed
    assert "lora_rank 16" in printed
    assert "With these it fits" in printed


@pytest.mark.parametrize(("gpu", "devices"), [("H100", 8), ("24", 1)])
def test_the_next_step_is_the_plan_that_fits_on_the_same_gpu_and_then_nothing_more_is_saved(
    llama: Path, gpu: str, devices: int
) -> None:
    answer = estimate_memory(llama, gpu=gpu, devices=devices)
    assert answer.fit is not None
    assert answer.next_step is not None

    arguments: dict[str, Any] = answer.next_step.arguments
    planned = estimate_memory(**arguments)

    assert planned.fit is not None
    assert planned.fit.verdict == "fits"
    assert (planned.fit.gpu, planned.fit.needed_bytes) == (answer.fit.gpu, answer.fit.plan[-1].needed_bytes)
    assert planned.next_step is not None
    assert planned.next_step.tool == "explain"


def test_devices_that_share_nothing_are_noted(llama: Path) -> None:
    assert any("devices=8 changes nothing here" in note for note in estimate_memory(llama, devices=8).notes)
    assert not any("changes nothing" in note for note in estimate_memory(llama, devices=8, sharding="zero1").notes)


def test_rows_are_no_longer_than_the_embedded_positions_of_a_model(tmp_path: Path, llama: Path) -> None:
    (tmp_path / "gpt2.json").write_text(json.dumps(TINY))

    assert fit(tmp_path / "gpt2.json", 24).largest_length == 128
    assert "rows of all its 128 positions fit" in fit(tmp_path / "gpt2.json", 24).summary
    llama.write_text(json.dumps(LLAMA_8B | {"max_position_embeddings": 512}))
    assert "more than the 512 positions of its configuration" in fit(llama, "B200", lora_rank=8).summary


def test_images_of_one_size_are_counted_by_the_batch(tmp_path: Path) -> None:
    vit = {"model_type": "vit", "hidden_size": 96, "num_hidden_layers": 4, "num_attention_heads": 3}
    (tmp_path / "vit.json").write_text(json.dumps(vit | {"image_size": 224, "patch_size": 16}))
    answer = fit(tmp_path / "vit.json", 24)
    rows = int(answer.summary.partition("batches of up to ")[2].partition(" images")[0].replace(",", ""))

    assert answer.largest_length is None
    assert fit(tmp_path / "vit.json", 24, batch_size=rows).verdict != "does_not_fit"
    assert fit(tmp_path / "vit.json", 24, batch_size=rows + 1).verdict == "does_not_fit"


@pytest.mark.parametrize(
    ("stated", "parameters"),
    [({}, 222_903_552), ({"is_encoder_decoder": False}, None), ({"architectures": ["T5EncoderModel"]}, None)],
)
def test_a_t5_has_both_stacks_unless_its_file_says_otherwise(
    stated: dict[str, Any], parameters: int | None, tmp_path: Path
) -> None:
    base = {"model_type": "t5", "d_model": 768, "d_ff": 3072, "d_kv": 64, "num_heads": 12, "num_layers": 12}
    (tmp_path / "t5.json").write_text(json.dumps(base | {"vocab_size": 32128} | stated))
    counted = estimate_memory(tmp_path / "t5.json").parameters

    assert counted == pytest.approx(parameters or 109_628_160, rel=2e-3)
