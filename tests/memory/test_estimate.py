from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.judge.memory import check_memory
from mldebug_mcp.memory.estimate import MEASURED_ERROR, estimate_memory
from mldebug_mcp.memory.formulas import Setup, bytes_per_token
from mldebug_mcp.memory.model_shape import shape_of
from tests.memory import scenarios
from tests.memory.conftest import LLAMA_8B, Save

PUBLISHED = {
    "Llama 3.1 8B": (LLAMA_8B, 8_030_261_248),
    "Llama 2 7B": (
        LLAMA_8B | {"intermediate_size": 11008, "num_key_value_heads": 32, "vocab_size": 32000},
        6_738_415_616,
    ),
    "Mistral 7B": (LLAMA_8B | {"model_type": "mistral", "vocab_size": 32000}, 7_241_732_096),
    "Mixtral 8x7B": (
        LLAMA_8B | {"model_type": "mixtral", "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2},
        46_702_792_704,
    ),
    "DeepSeek-V3": (
        {
            "model_type": "deepseek_v3",
            "hidden_size": 7168,
            "intermediate_size": 18432,
            "moe_intermediate_size": 2048,
            "n_routed_experts": 256,
            "n_shared_experts": 1,
            "num_experts_per_tok": 8,
            "first_k_dense_replace": 3,
            "num_hidden_layers": 61,
            "num_attention_heads": 128,
            "q_lora_rank": 1536,
            "kv_lora_rank": 512,
            "qk_nope_head_dim": 128,
            "qk_rope_head_dim": 64,
            "v_head_dim": 128,
            "vocab_size": 129280,
            "tie_word_embeddings": False,
        },
        671_026_404_352,
    ),
    "Qwen1.5 MoE, four layers": (
        {
            "model_type": "qwen2_moe",
            "hidden_size": 2048,
            "intermediate_size": 5632,
            "moe_intermediate_size": 1408,
            "shared_expert_intermediate_size": 5632,
            "num_experts": 60,
            "num_experts_per_tok": 4,
            "num_hidden_layers": 4,
            "num_attention_heads": 16,
            "vocab_size": 151936,
            "tie_word_embeddings": False,
        },
        2_904_573_952,
    ),
    "Llama 4, four layers": (
        {
            "model_type": "llama4_text",
            "hidden_size": 5120,
            "intermediate_size": 8192,
            "intermediate_size_mlp": 16384,
            "num_local_experts": 2,
            "num_experts_per_tok": 1,
            "interleave_moe_layer_step": 2,
            "num_hidden_layers": 4,
            "num_attention_heads": 40,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "vocab_size": 202048,
            "tie_word_embeddings": False,
        },
        3_578_987_520,
    ),
    "StarCoder2 3B": (
        {
            "model_type": "starcoder2",
            "hidden_size": 3072,
            "intermediate_size": 12288,
            "num_hidden_layers": 30,
            "num_attention_heads": 24,
            "num_key_value_heads": 2,
            "vocab_size": 49152,
        },
        3_030_371_328,
    ),
    "GPT-2": (
        {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257, "n_positions": 1024},
        124_439_808,
    ),
    "Qwen2.5 0.5B": (
        {
            "model_type": "qwen2",
            "hidden_size": 896,
            "intermediate_size": 4864,
            "num_hidden_layers": 24,
            "num_attention_heads": 14,
            "num_key_value_heads": 2,
            "vocab_size": 151936,
            "tie_word_embeddings": True,
        },
        494_032_768,
    ),
}


BERT = {
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "max_position_embeddings": 512,
}
T5 = {"model_type": "t5", "d_model": 768, "d_kv": 64, "num_layers": 12, "num_heads": 12, "is_encoder_decoder": True}
BUILT = {
    "T5": (T5 | {"d_ff": 3072, "vocab_size": 32128}, 222_903_552),
    "gated T5": (
        T5 | {"d_ff": 2048, "vocab_size": 32128, "feed_forward_proj": "gated-gelu", "num_decoder_layers": 12},
        222_903_552,
    ),
    "BART": (
        {
            "model_type": "bart",
            "is_encoder_decoder": True,
            "d_model": 768,
            "vocab_size": 50265,
            "max_position_embeddings": 1024,
            **{f"{side}_layers": 6 for side in ("encoder", "decoder")},
            **{f"{side}_ffn_dim": 3072 for side in ("encoder", "decoder")},
            **{f"{side}_attention_heads": 12 for side in ("encoder", "decoder")},
        },
        139_420_416,
    ),
    "ViT": (BERT | {"model_type": "vit", "image_size": 224, "patch_size": 16, "num_channels": 3}, 86_567_656),
    "BERT": (BERT | {"model_type": "bert", "vocab_size": 30522}, 109_514_298),
    "XLM-RoBERTa": (BERT | {"model_type": "xlm-roberta", "vocab_size": 250002}, 278_295_954),
    "ALBERT": (
        {
            "model_type": "albert",
            "hidden_size": 4096,
            "intermediate_size": 16384,
            "num_hidden_layers": 12,
            "num_attention_heads": 64,
            "embedding_size": 128,
            "vocab_size": 30000,
            "max_position_embeddings": 512,
        },
        206_368_944,
    ),
    "Falcon": (
        {
            "model_type": "falcon",
            "hidden_size": 4544,
            "num_hidden_layers": 32,
            "num_attention_heads": 71,
            "num_kv_heads": 71,
            "multi_query": True,
            "vocab_size": 65024,
        },
        6_921_720_704,
    ),
    "StarCoder": (
        {
            "model_type": "gpt_bigcode",
            "n_embd": 2048,
            "n_layer": 24,
            "n_head": 16,
            "n_inner": 8192,
            "n_positions": 8192,
            "multi_query": True,
            "vocab_size": 49152,
        },
        1_137_207_296,
    ),
}
"""Parameters of the models that Transformers builds from these configurations, heads and small parts included."""


MODEL_STATES = ("parameters", "gradients", "optimizer_state")
CARD = json.loads((Path(__file__).parents[2] / "benchmarks" / "gpu" / "peaks.json").read_text(encoding="utf-8"))
MEASURED = CARD["peaks"]


def part(path: Path, name: str, **settings: object) -> int:
    parts = {one.part: one.bytes for one in estimate_memory(path, **settings).parts}  # type: ignore[arg-type]
    return parts.get(name, 0)


@pytest.mark.parametrize("model", PUBLISHED)
def test_the_parameters_of_published_models_are_counted_exactly(model: str) -> None:
    config, published = PUBLISHED[model]

    assert shape_of(config).parameters == published


@pytest.mark.parametrize("model", BUILT)
def test_the_parameters_of_other_architectures_are_counted_to_a_percent(model: str) -> None:
    config, built = BUILT[model]

    assert shape_of(config).parameters == pytest.approx(built, rel=0.01)


def test_an_image_models_rows_are_its_patches(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(BUILT["ViT"][0]))

    answer = estimate_memory(path, batch_size=8)

    assert answer.settings["length"] == "197"
    assert "logits" not in {one.part for one in answer.parts}


def test_mixed_precision_adamw_takes_eighteen_bytes_per_parameter(llama: Path) -> None:
    parts = {one.part: one.bytes for one in estimate_memory(llama).parts}

    assert parts["parameters"] + parts["gradients"] + parts["optimizer_state"] == 18 * PUBLISHED["Llama 3.1 8B"][1]


def test_gpts_activations_are_korthikantis_without_dropout() -> None:
    config = {
        "model_type": "gpt2",
        "hidden_size": 1024,
        "num_hidden_layers": 1,
        "num_attention_heads": 16,
        "vocab_size": 100,
        "activation_function": "gelu",
        "resid_pdrop": 0.0,
        "attn_pdrop": 0.1,
    }
    shape = shape_of(config)

    assert bytes_per_token(shape, Setup(1, 512, "bf16"))[0] == 32 * 1024
    assert bytes_per_token(shape, Setup(1, 512, "bf16", attention="eager"))[0] == 32 * 1024 + 5 * 16 * 512
    # Two masks of a byte for each number.
    assert bytes_per_token(shape_of(config | {"resid_pdrop": 0.1}), Setup(1, 512, "bf16"))[0] == 34 * 1024
    # A GELU that is composed of several operations keeps three more numbers of four times the width.
    composed = shape_of(config | {"activation_function": "gelu_new"})
    assert bytes_per_token(composed, Setup(1, 512, "bf16"))[0] == 32 * 1024 + 3 * 2 * 4 * 1024


def test_logits_take_twelve_bytes_per_token_and_word(llama: Path) -> None:
    assert part(llama, "logits", batch_size=2, length=1000) == 2 * 1000 * 128256 * 12
    assert part(llama, "logits", batch_size=2, length=1000, chunked_loss=True) == 2 * 1000 * 128256 * 12 // 8


def test_activations_grow_with_the_batch_and_shrink_with_checkpointing(llama: Path) -> None:
    one = part(llama, "activations", batch_size=1)

    assert part(llama, "activations", batch_size=4) == 4 * one
    assert part(llama, "activations", batch_size=1, checkpointing="full") < one / 8


@pytest.mark.parametrize(
    ("stage", "whole", "split"), [("zero1", 2 + 2, 12), ("zero2", 2, 2 + 12), ("zero3", 0, 2 + 2 + 12)]
)
@pytest.mark.parametrize("devices", [1, 8, 64])
def test_zero_in_mixed_precision_takes_the_sums_of_its_paper(
    llama: Path, stage: str, whole: int, split: int, devices: int
) -> None:
    count = PUBLISHED["Llama 3.1 8B"][1]

    held = [part(llama, name, sharding=stage, devices=devices) for name in MODEL_STATES]

    assert sum(held) == pytest.approx(whole * count + split * count / devices, abs=4)


@pytest.mark.parametrize(
    ("settings", "whole", "split"),
    [
        ({"sharding": "zero1", "offload": "optimizer"}, 4, 0),
        ({"sharding": "zero2", "offload": "optimizer"}, 2, 0),
        ({"sharding": "zero3", "offload": "optimizer"}, 0, 2),
        ({"sharding": "zero3", "offload": "parameters"}, 0, 0),
    ],
)
@pytest.mark.parametrize("devices", [1, 64])
def test_zero_with_offload_takes_the_sums_of_its_papers_and_the_gradient_that_moves(
    llama: Path, settings: dict[str, str], whole: int, split: int, devices: int
) -> None:
    count = PUBLISHED["Llama 3.1 8B"][1]

    held = sum(part(llama, name, devices=devices, **settings) for name in MODEL_STATES)

    moving = 0 if settings["sharding"] == "zero1" else 128256 * 4096 * 2
    assert held == pytest.approx(whole * count + split * count / devices + moving, abs=4)


@pytest.mark.parametrize(("stage", "split"), [("zero1", 1), ("zero2", 2), ("zero3", 3)])
def test_sharding_in_one_precision_splits_what_its_stage_says(llama: Path, stage: str, split: int) -> None:
    for place, name in enumerate(reversed(MODEL_STATES)):
        shared = 8 if place < split else 1
        alone = part(llama, name, precision="bf16")
        assert part(llama, name, precision="bf16", sharding=stage, devices=8) == pytest.approx(alone / shared, abs=1)


@pytest.mark.parametrize(
    ("optimizer", "each"),
    [("adamw_8bit", 2.033), ("adamw_4bit", 1.063), ("adamw_fp8", 2.031), ("lion_8bit", 1.017), ("paged_adamw", 0)],
)
def test_the_state_of_an_optimizer_takes_the_bytes_that_were_measured(llama: Path, optimizer: str, each: float) -> None:
    count = PUBLISHED["Llama 3.1 8B"][1]

    assert part(llama, "optimizer_state", optimizer=optimizer) == pytest.approx(each * count, rel=1e-3)


def test_small_tensors_keep_their_state_in_32_bits(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(BUILT["BERT"][0]))
    shape = shape_of(BUILT["BERT"][0])

    held = part(path, "optimizer_state", optimizer="adamw_8bit")

    assert held == pytest.approx(2.033 * shape.parameters + (8 - 2.033) * shape.small_parameters, abs=2)


def test_what_lies_on_the_cpu_takes_nothing_of_the_device(llama: Path) -> None:
    assert part(llama, "optimizer_state", offload="optimizer") == 0
    assert part(llama, "parameters", offload="parameters") == 0
    assert part(llama, "gathered_parameters", offload="parameters") > 0
    by_itself = part(llama, "gradients", optimizer_in_backward=True)
    assert by_itself == 128256 * 4096 * 4
    with pytest.raises(InputError, match="accumulation"):
        estimate_memory(llama, optimizer_in_backward=True, accumulation=2)


def test_adamw_that_steps_all_parameters_at_once_peaks_in_its_step(llama: Path) -> None:
    short = {"length": 16, "precision": "fp32", "chunked_loss": True}

    at_once = estimate_memory(llama, optimizer="adamw", **short).total_bytes  # type: ignore[arg-type]
    fused = estimate_memory(llama, optimizer="adamw_fused", **short).total_bytes  # type: ignore[arg-type]

    assert at_once - fused == 4 * PUBLISHED["Llama 3.1 8B"][1]


@pytest.mark.parametrize("peak", MEASURED, ids=lambda one: f"{one['config']}-{one['set']}")
def test_an_estimate_is_as_near_to_a_measured_peak_as_it_says(peak: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CARD["configs"][peak["config"]]))
    settings = CARD["settings"][peak["set"]]

    estimate = estimate_memory(path, batch_size=peak["batch"], length=peak["length"], **settings)

    assert abs(estimate.total_bytes / peak["peak"] - 1) <= MEASURED_ERROR
    assert any(f"{MEASURED_ERROR:.1%}" in note and "H200" in note for note in estimate.notes)
    if "lora_rank" not in settings:
        assert estimate.parameters == peak["parameters"]


def test_the_towers_of_a_model_that_sees_are_counted_and_what_is_not_is_said(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    text = LLAMA_8B | {
        "model_type": "qwen2_5_vl",
        "hidden_size": 3584,
        "intermediate_size": 18944,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "vocab_size": 152064,
        "attention_bias": False,
    }
    vision = {
        "depth": 32,
        "hidden_size": 1280,
        "intermediate_size": 3420,
        "hidden_act": "silu",
        "patch_size": 14,
        "temporal_patch_size": 2,
        "in_channels": 3,
        "spatial_merge_size": 2,
    }
    path.write_text(json.dumps(text | {"vision_config": vision}))

    answer = estimate_memory(path)

    # Qwen2.5-VL 7B: 8.29 billion parameters, 0.68 of them in its tower.
    assert answer.parameters == pytest.approx(8_292_166_656, rel=0.005)
    assert any("vision_config" in note and "length" in note for note in answer.notes)
    path.write_text(json.dumps(text | {"vision_config": {"name": "unheard of"}}))
    assert any("left out" in note for note in estimate_memory(path).notes)


WITH_VISION = {
    "text_config": {**LLAMA_8B, "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 8,
                    "num_attention_heads": 16, "num_key_value_heads": 8, "vocab_size": 32000, "head_dim": 64},
    "vision_config": {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "patch_size": 14},
}  # fmt: skip
QWEN3_VISION = {
    "vision_config": {"depth": 12, "hidden_size": 768, "intermediate_size": 3072, "patch_size": 16,
                      "temporal_patch_size": 2, "spatial_merge_size": 2, "deepstack_visual_indexes": [3, 6, 9]}
}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "parameters", "towers"),
    [
        ({"tie_word_embeddings": False}, 247_715_328, "vision_config"),
        ({"tie_word_embeddings": True}, 247_715_328 - 32000 * 1024, "vision_config"),
        (QWEN3_VISION, 298_298_624, "vision_config"),
        (
            {"qformer_config": {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12}},
            247_715_328 + 105_137_664,
            "vision_config, qformer_config",
        ),
    ],
    ids=["LLaVA", "tied by the whole model", "Qwen3-VL", "a tower of another name"],
)
def test_every_nested_part_with_layers_is_counted_by_what_transformers_builds(
    more: dict[str, Any], parameters: int, towers: str, tmp_path: Path
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(WITH_VISION | more))

    answer = estimate_memory(path)

    assert answer.parameters == pytest.approx(parameters, rel=0.06)
    assert any(note.startswith(f"{towers}: about") for note in answer.notes)


def test_grouped_keys_in_float32_store_scores_and_the_answer_says_so(llama: Path) -> None:
    answer = estimate_memory(llama, precision="fp32", length=1000)

    assert any("length x length" in note for note in answer.notes)
    assert part(llama, "activations", precision="fp32", length=1000) == part(
        llama, "activations", precision="fp32", length=1000, attention="eager"
    )


def test_lora_trains_only_its_adapters(llama: Path) -> None:
    answer = estimate_memory(llama, lora_rank=16, precision="bf16")

    assert answer.trained_parameters == 41_943_040
    assert answer.total_bytes < estimate_memory(llama, precision="bf16").total_bytes * 0.6


def test_a_loras_frozen_base_takes_what_its_precision_says(llama: Path) -> None:
    whole = part(llama, "parameters", precision="bf16")
    adapters = 41_943_040

    assert part(llama, "parameters", lora_rank=16, precision="bf16") == whole + 2 * adapters
    assert part(llama, "parameters", lora_rank=16) == whole + 6 * adapters
    assert part(llama, "parameters", lora_rank=16, precision="fp32") == 2 * whole + 4 * adapters
    linear = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336)
    quantized = whole - round(linear * (1.5 - 0.127 / 8)) + 6 * adapters
    assert part(llama, "parameters", lora_rank=16, frozen="4bit") == pytest.approx(quantized, abs=2)
    next_step = estimate_memory(llama, lora_rank=16, checkpointing="full", chunked_loss=True).next_step
    assert next_step is not None
    assert next_step.arguments["frozen"] == "4bit"


def test_accumulation_keeps_gradients_beside_activations(llama: Path) -> None:
    assert estimate_memory(llama, accumulation=4).total_bytes > estimate_memory(llama, accumulation=1).total_bytes


def test_a_snapshots_peak_stands_beside_the_estimate(llama: Path, save: Save) -> None:
    path = save(scenarios.snapshot_of(scenarios.training(steps=2)))

    peak = check_memory(path).snapshot.peak_allocated_bytes
    assert estimate_memory(llama, snapshot=path).measured_peak_bytes == peak
    assert peak
    without = scenarios.snapshot_of(scenarios.training(steps=2)) | {"device_traces": []}
    with pytest.raises(InputError, match="no history"):
        estimate_memory(llama, snapshot=save(without, "state.pickle"))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"precision": "fp4"}, "mixed, bf16"),
        ({"batch_size": 0}, "at least 1"),
        ({"lora_rank": 0}, "at least 1"),
        ({"sharding": "fsdp9"}, "zero3"),
        ({"frozen": "2bit", "lora_rank": 8}, "16bit, 8bit, 4bit"),
        ({"frozen": "4bit"}, "give lora_rank"),
    ],
)
def test_a_setting_that_is_not_known_says_what_is(settings: dict[str, object], said: str, llama: Path) -> None:
    with pytest.raises(InputError, match=said):
        estimate_memory(llama, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["[]", "{}", "no json", '{"hidden_size": "x"}', "[" * 100_000])
def test_a_configuration_that_cannot_be_used_is_a_clear_error(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)

    with pytest.raises(InputError, match=r"config\.json"):
        estimate_memory(path)


def test_a_mixture_of_a_kind_that_is_not_known_says_that_its_parameters_have_to_be_compared(tmp_path: Path) -> None:
    notes = {}
    for kind, experts in (
        ("mixtral", "num_local_experts"),
        ("jamba", "num_experts"),
        ("ernie4_5_moe", "moe_num_experts"),
    ):
        file = tmp_path / f"{kind}.json"
        file.write_text(json.dumps(LLAMA_8B | {"model_type": kind, experts: 8}))
        notes[kind] = any("a mixture of experts whose layers" in note for note in estimate_memory(file).notes)
    assert notes == {"mixtral": False, "jamba": True, "ernie4_5_moe": True}


@pytest.mark.parametrize(("kind", "compared"), [("llama", True), ("qwen2_5_vl", True), ("bamba", False)])
def test_a_kind_whose_layers_are_not_known_says_whose_are_counted(kind: str, compared: bool, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(LLAMA_8B | {"model_type": kind}))

    notes = " ".join(estimate_memory(file).notes)

    assert ("its layers are counted as Llama's; compare its parameters with the 8,030," in notes) is not compared
