"""The parts of the memory that training a transformer takes on each device, from its `config.json`, by formula."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mldebug_mcp.core.config_files import read_config_json
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import shorten
from mldebug_mcp.models.memory import Attention, Checkpointing, Frozen, MemoryPart, Optimizer, Precision, Sharding

# A transformer's `config.json` → the numbers that its memory follows from.


MAX_NUMBER = 1 << 40

_NAMES: Mapping[str, tuple[str, ...]] = {
    "hidden": ("hidden_size", "n_embd", "d_model", "dim", "model_dim"),
    "layers": ("encoder_layers", "num_hidden_layers", "n_layer", "num_layers", "n_layers"),
    "decoder_layers": ("decoder_layers", "num_decoder_layers"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads"),
    "kv_heads": ("num_key_value_heads", "n_kv_heads", "num_kv_heads"),
    "head_dim": ("head_dim", "d_kv"),
    "feed_forward": (
        "intermediate_size",
        "ffn_dim",
        "n_inner",
        "d_ff",
        "ffn_hidden_size",
        "hidden_dim",
        "encoder_ffn_dim",
    ),
    "vocabulary": ("vocab_size", "padded_vocab_size"),
    "positions": ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "max_target_positions"),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts"),
    "expert_width": ("moe_intermediate_size",),
    "active_experts": ("num_experts_per_tok",),
    "embedding": ("embedding_size",),
    "image": ("image_size",),
    "patch": ("patch_size",),
    "channels": ("num_channels",),
}
_ENCODERS = ("bert", "roberta", "xlm-roberta", "camembert", "electra", "distilbert", "mpnet", "albert")
_ENCODER_DECODERS = ("bart", "mbart", "marian", "pegasus", "m2m_100", "blenderbot", "whisper")
_VISION = ("vit", "deit", "dinov2", "beit", "clip_vision_model", "siglip_vision_model")
_PLAIN_MLP = (
    *("gpt2", "gpt_neo", "gpt_neox", "gptj", "gpt_bigcode", "opt", "bloom", "falcon", "phi", "mpt", "codegen"),
    *("starcoder2", "t5", "deberta", "deberta-v2", *_ENCODERS, *_ENCODER_DECODERS, *_VISION),
)
"""Model types with two matrices in the feed-forward part, unless the file says that it is gated; the others gate it
with a third."""
_LEARNED_POSITIONS = ("gpt2", "gpt_neo", "gpt_bigcode", "opt", *_ENCODERS, *_ENCODER_DECODERS, *_VISION)
_BIASED = (
    *("gpt2", "gpt_neox", "gpt_bigcode", "opt", "bloom", "phi", "starcoder2", "deberta", "deberta-v2"),
    *(*_ENCODERS, *_ENCODER_DECODERS, *_VISION),
)
_TIED_BY_DEFAULT = (
    *("gpt2", "gpt_neo", "gpt_bigcode", "opt", "bloom", "gemma", "gemma2", "gemma3_text", "falcon", "mpt", "t5"),
    *("deberta", "deberta-v2", *_ENCODERS, *_ENCODER_DECODERS),
)
_MODEL_SHAPE_COMPOSED = ("gelu_new", "gelu_fast")
"""Activation functions that Transformers composes of several operations, each of which keeps its input or result."""
_COMPOSED_BY_DEFAULT = ("gpt2", "gpt_neo", "gptj", "codegen", "phi", "albert")


@dataclass(frozen=True, slots=True)
class ModelShape:
    """A transformer's shape.

    Args:
        name: What the configuration calls it.
        hidden, layers, heads, kv_heads, head_dim, feed_forward: As usual; layers of the encoder, where there are two.
        decoder_layers: Layers that also attend to an encoder; 0 for models of one stack.
        vocabulary: Tokens; 0 for models of images.
        embedding: Width of a token's embedding, mostly `hidden`.
        patch: Numbers in a patch of an image; 0 for models of tokens.
        shared_layers: Whether all layers have the same parameters, as ALBERT's.
        positions: The longest sequence.
        matrices: Matrices in the feed-forward part: 3 if gated.
        experts: Feed-forward parts per layer; 1 unless a mixture.
        active_experts: How many of them a token passes.
        expert_width: Width of one of them.
        biased: Whether linear layers have biases (else none; Qwen2's are added).
        learned_positions: Whether positions have an embedding.
        tied: Whether the output layer shares the embedding.
        qkv_bias: Whether queries, keys and values have biases although the rest has none.
        composed: Whether the activation function is composed of several operations.
    """

    name: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    feed_forward: int
    decoder_layers: int
    vocabulary: int
    embedding: int
    patch: int
    shared_layers: bool
    positions: int
    matrices: int
    experts: int
    active_experts: int
    expert_width: int
    biased: bool
    learned_positions: bool
    tied: bool
    qkv_bias: bool
    composed: bool

    @property
    def attention_width(self) -> int:
        """Outputs of the query projection."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Outputs of the key projection."""
        return self.kv_heads * self.head_dim

    @property
    def linears(self) -> list[tuple[int, int]]:
        """Inputs and outputs of each linear layer of one layer of the model."""
        width = self.expert_width if self.experts > 1 else self.feed_forward
        up = [(self.hidden, width)] * (self.matrices - 1)
        attention = [
            (self.hidden, self.attention_width),
            (self.hidden, self.kv_width),
            (self.hidden, self.kv_width),
            (self.attention_width, self.hidden),
        ]
        router = [(self.hidden, self.experts)] if self.experts > 1 else []
        return attention + router + [*up, (width, self.hidden)] * max(1, self.experts)

    @property
    def cross_linears(self) -> list[tuple[int, int]]:
        """The further linear layers of a decoder's layer that attends to an encoder."""
        return self.linears[:4]

    @property
    def all_layers(self) -> int:
        """Layers of both stacks."""
        return self.layers + self.decoder_layers

    @property
    def linear_parameters(self) -> int:
        """Weights of the linear layers inside the layers, which is what is quantized."""
        own = (1 if self.shared_layers else self.all_layers) * sum(a * b for a, b in self.linears)
        return own + self.decoder_layers * sum(a * b for a, b in self.cross_linears)

    @property
    def _cross_parameters(self) -> int:
        biases = sum(out for _, out in self.cross_linears) if self.biased else 0
        return sum(a * b for a, b in self.cross_linears) + biases + self._norm

    @property
    def layer_parameters(self) -> int:
        """Parameters of one layer: linear layers, biases, two norms."""
        biases = sum(out for _, out in self.linears) if self.biased else 0
        if self.qkv_bias and not self.biased:
            biases = self.attention_width + 2 * self.kv_width
        return sum(a * b for a, b in self.linears) + biases + 2 * self._norm

    @property
    def _norm(self) -> int:
        return self.hidden * (2 if self.biased else 1)

    @property
    def parameters(self) -> int:
        """All parameters; a tied output layer counts once."""
        embeddings = self.vocabulary * self.embedding * (1 if self.tied else 2) + self.patch * self.hidden
        if self.embedding != self.hidden:
            embeddings += self.embedding * self.hidden
        stacks = 2 if self.decoder_layers else 1
        positions = stacks * self.positions * self.embedding if self.learned_positions else 0
        own = (1 if self.shared_layers else self.all_layers) * self.layer_parameters
        return embeddings + positions + own + self.decoder_layers * self._cross_parameters + stacks * self._norm


def read_shape(path: str | Path) -> ModelShape:
    """Read a model's shape from its `config.json`, or from the folder that holds it.

    Raises:
        InputError: it cannot be read, or lacks a number that is needed.
    """
    return shape_of(*read_config_json(path))


def shape_of(config: Mapping[str, Any], name: str = "config") -> ModelShape:
    """Return the shape that a configuration describes; raises InputError naming what is missing."""
    inner = config.get("text_config")
    if isinstance(inner, Mapping) and "hidden_size" in inner:
        config = {**config, **inner}
    numbers = {what: _number(config, names) for what, names in _NAMES.items()}
    image, patch = numbers["image"], numbers["patch"]
    sees = image is not None and patch is not None and numbers["vocabulary"] is None
    for what in ("hidden", "layers", "heads", *(() if sees else ("vocabulary",))):
        if numbers[what] is None:
            raise InputError(f"{name}: no {' or '.join(_NAMES[what][:3])}; this needs a transformer's config.json")
    kind = str(config.get("model_type", ""))[:60]
    hidden, heads = numbers["hidden"] or 1, numbers["heads"] or 1
    wide = numbers["feed_forward"] or 4 * hidden
    return ModelShape(
        name=shorten(str(config.get("_name_or_path") or kind or name), 120),
        hidden=hidden,
        layers=numbers["layers"] or 1,
        heads=heads,
        kv_heads=1 if _is_multi_query(config) else numbers["kv_heads"] or heads,
        head_dim=numbers["head_dim"] or max(1, hidden // heads),
        feed_forward=wide,
        decoder_layers=_decoder_layers(config, numbers["decoder_layers"], numbers["layers"] or 1),
        vocabulary=numbers["vocabulary"] or 0,
        embedding=numbers["embedding"] or hidden,
        patch=(numbers["channels"] or 3) * patch**2 if sees and patch else 0,
        shared_layers=kind == "albert",
        positions=(image // patch) ** 2 + 1 if sees and image and patch else numbers["positions"] or 2048,
        matrices=2 if _is_plain(config, kind) else 3,
        experts=numbers["experts"] or 1,
        active_experts=numbers["active_experts"] or 1,
        expert_width=numbers["expert_width"] or wide,
        biased=kind in _BIASED,
        learned_positions=kind in _LEARNED_POSITIONS,
        tied=bool(config.get("tie_word_embeddings", kind in _TIED_BY_DEFAULT)),
        qkv_bias=bool(config.get("attention_bias")) or kind in ("qwen2", "qwen2_moe"),
        composed=_is_composed(config, kind),
    )


def _is_multi_query(config: Mapping[str, Any]) -> bool:
    return config.get("multi_query") is True and config.get("new_decoder_architecture") is not True


def _is_plain(config: Mapping[str, Any], kind: str) -> bool:
    gated = config.get("is_gated_act") is True or str(config.get("feed_forward_proj", "")).startswith("gated")
    return kind in _PLAIN_MLP and not gated


def _is_composed(config: Mapping[str, Any], kind: str) -> bool:
    named = (config.get(key) for key in ("activation_function", "hidden_act", "hidden_activation"))
    told = next((one for one in named if isinstance(one, str)), None)
    return kind in _COMPOSED_BY_DEFAULT if told is None else told in _MODEL_SHAPE_COMPOSED


def _decoder_layers(config: Mapping[str, Any], told: int | None, layers: int) -> int:
    if config.get("is_encoder_decoder") is not True:
        return 0
    return told or layers


def _number(config: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        value = config.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < MAX_NUMBER:
            return value
    return None


# The parts of the memory that training a transformer takes on each device, by formula, in bytes.
#
# | part | bytes | source | | --- | --- | --- | | parameters | 4 or 2 each; mixed precision adds a 16-bit copy (2) |
# Rajbhandari et al. 2020 (ZeRO), section 3.1 | | frozen base of a LoRA | 4, 2, or in linear layers 1 or 0.516, no copy
# | Dettmers et al. 2023 (QLoRA), section 3 | | gradients | as the parameters | the same | | optimizer state | AdamW 2
# numbers per parameter, in the parameter's precision | the same; torch.optim.adamw | | activations | per token and
# layer, what autograd keeps (`bytes_per_token`) | Korthikanti et al. 2022, eq. 1 and 2 | | logits | batch x length x
# vocabulary: log-probabilities and two gradients in float32 | torch cross_entropy | | sharding | state / N; from stage
# 2 gradients / N; at stage 3 parameters / N | Rajbhandari et al. 2020, figure 1 | | tensor parallel | everything of a
# layer, its activations too, / T | Korthikanti et al. 2022, eq. 4 | | pipeline parallel | layers / P; the first of P
# stages holds up to P micro-batches at once | Narayanan et al. 2021 |
#
# For AdamW in mixed precision this is 4 + 2 + 4 + 8 = 18 bytes per parameter, as Bekman counts (ML Engineering, anatomy
# of a model's memory usage).


LOSS_CHUNKS = 8
_FROZEN_BYTES: Mapping[str, float] = {"32bit": 4, "16bit": 2, "8bit": 1, "4bit": 0.5 + 0.127 / 8}
"""Bytes of a frozen weight in a linear layer; 4-bit NF4 has another 0.127 bits for its constants, quantized twice."""
_STATES: Mapping[str, float] = {"adamw": 2, "adamw_8bit": 2, "lion": 1, "sgd": 0, "sgd_momentum": 1, "adafactor": 0}
"""Numbers that each optimizer keeps per parameter."""
_NORM: Mapping[str, tuple[int, int]] = {"mixed": (6, 10), "bf16": (4, 8), "fp16": (4, 8), "fp32": (8, 12)}
"""Bytes that autograd keeps of a norm for each number of its width: of LayerNorm input and output, of RMSNorm as
Transformers composes it also the normalised input, which it computes in float32. Autocast computes both in float32 and
keeps the output in 16 bits (torch's list of operations that autocast to float32)."""
_FORMULAS_COMPOSED: Mapping[str, int] = {"mixed": 14, "bf16": 6, "fp16": 6, "fp32": 12}
"""Bytes that a composed GELU keeps for each number beside its input and output: half the input, tanh and one plus tanh;
under autocast, which computes powers in float32, also its input in float32."""


@dataclass(frozen=True, slots=True)
class Setup:
    """How a model is trained.

    Args:
        batch_size: Rows per device and forward pass.
        length: Tokens per row.
        precision: mixed (autocast over float32 weights), or all in one.
        optimizer: Which.
        checkpointing: What is recomputed in backward.
        attention: Whether scores are stored (eager).
        accumulation: Micro-batches per step; more than one keeps gradients beside activations.
        devices: Devices that share what `sharding` splits; each holds a replica, or a part of one with `tensor` and
            `pipeline`.
        sharding: What they share.
        lora_rank: Rank of adapters on every linear layer, if only those are trained.
        chunked_loss: Whether the loss works on an eighth of the logits at a time.
        frozen: How the frozen base model of a LoRA is held; None for 16 bits, or 32 with precision fp32.
        tensor_parallel: Devices among which each layer is split, sequence and vocabulary included.
        pipeline_parallel: Stages in which the layers are split, scheduled one forward, one backward.
    """

    batch_size: int
    length: int
    precision: Precision = "mixed"
    optimizer: Optimizer = "adamw"
    checkpointing: Checkpointing = "none"
    attention: Attention = "flash"
    accumulation: int = 1
    devices: int = 1
    sharding: Sharding = "none"
    lora_rank: int | None = None
    chunked_loss: bool = False
    frozen: Frozen | None = None
    tensor_parallel: int = 1
    pipeline_parallel: int = 1

    @property
    def base(self) -> Frozen:
        """How the frozen base model of a LoRA is held."""
        return self.frozen or ("32bit" if self.precision == "fp32" else "16bit")

    @property
    def tokens(self) -> int:
        """Tokens of a forward pass."""
        return self.batch_size * self.length

    @property
    def weight_bytes(self) -> int:
        """Bytes of a parameter."""
        return 4 if self.precision in ("mixed", "fp32") else 2

    @property
    def compute_bytes(self) -> int:
        """Bytes of an activation."""
        return 4 if self.precision == "fp32" else 2

    @property
    def stage(self) -> int:
        """ZeRO stage."""
        return ("none", "zero1", "zero2", "zero3").index(self.sharding)

    def share(self, stage: int) -> int:
        """Return among how many devices something is split that is split from this stage on."""
        return self.devices if self.stage >= stage else 1


def trained_parameters(shape: ModelShape, setup: Setup) -> int:
    """Return how many parameters are trained: all of the model's, or those of its adapters."""
    if setup.lora_rank is None:
        return shape.parameters
    own = shape.all_layers * sum(setup.lora_rank * (inputs + outputs) for inputs, outputs in shape.linears)
    return own + shape.decoder_layers * sum(setup.lora_rank * (a + b) for a, b in shape.cross_linears)


def parts_of(shape: ModelShape, setup: Setup) -> dict[str, MemoryPart]:
    """Return what takes memory on the fullest device, by name, each with its formula."""
    if setup.pipeline_parallel == 1:
        return _stage(Stage(shape, setup, first=True, last=True))
    first, last = (_stage(Stage(shape, setup, first=one, last=not one)) for one in (True, False))
    return max(first, last, key=lambda parts: peak_of(parts, setup))


@dataclass(frozen=True, slots=True)
class Stage:
    """What one stage of a pipeline holds of a model; without a pipeline all of it.

    Args:
        shape: The model.
        setup: How it is trained.
        first: Whether it is the first, which holds the embedding and most micro-batches.
        last: Whether it is the last, which holds the output layer and the loss.
    """

    shape: ModelShape
    setup: Setup
    first: bool
    last: bool

    @property
    def layers(self) -> float:
        """Share of the layers that it holds: those of the longest stage."""
        return -(-self.shape.all_layers // self.setup.pipeline_parallel) / self.shape.all_layers

    @property
    def micro_batches(self) -> int:
        """Micro-batches whose activations it holds at once."""
        return min(self.setup.pipeline_parallel, self.setup.accumulation) if self.first else 1

    @property
    def outside(self) -> float:
        """Share of what lies outside the layers: an untied embedding and output layer are halves of it."""
        return 1 if (self.first and self.last) or self.shape.tied else 0.5

    def held(self, in_layers: float, outside: float) -> float:
        """Return what one device holds of something that the layers have and something outside them."""
        return (in_layers * self.layers + outside * self.outside) / self.setup.tensor_parallel

    @property
    def told(self) -> str:
        """How a formula ends that holds for this stage."""
        setup = self.setup
        tensor = f" / {setup.tensor_parallel} (tensor)" if setup.tensor_parallel > 1 else ""
        name = "first" if self.first else "last"
        return tensor + (f", {name} of {setup.pipeline_parallel} stages" if setup.pipeline_parallel > 1 else "")


def _stage(stage: Stage) -> dict[str, MemoryPart]:
    shape, setup = stage.shape, stage.setup
    in_all = trained_parameters(shape, setup)
    outside = 0 if setup.lora_rank is not None else _outside_layers(shape)
    trained = stage.held(in_all - outside, outside)
    state = 1 if setup.optimizer == "adamw_8bit" else setup.weight_bytes
    numbers = _STATES[setup.optimizer]
    shards = {stage: f" / {setup.devices} devices" if setup.share(stage) > 1 else "" for stage in (1, 2, 3)}
    entries = (
        ("parameters", *_parameters(stage, in_all, trained, shards[3])),
        (
            "gathered_parameters",
            2 * shape.layer_parameters * setup.compute_bytes // setup.tensor_parallel if setup.share(3) > 1 else 0,
            "two layers, gathered for use",
        ),
        (
            "gradients",
            trained * setup.weight_bytes / setup.share(2),
            f"{in_all:,} x {setup.weight_bytes}{shards[2]}{stage.told}",
        ),
        (
            "optimizer_state",
            trained * numbers * state / setup.share(1),
            f"{in_all:,} x {numbers:g} x {state}{shards[1]}{stage.told}",
        ),
        ("activations", *_activations(stage)),
        ("recomputed_layer", *_recomputed(stage)),
        *([("logits", *_logits(stage))] if stage.last else []),
    )
    return {name: MemoryPart(part=name, bytes=int(size), formula=text) for name, size, text in entries if int(size)}


def _outside_layers(shape: ModelShape) -> int:
    """Return the parameters of embeddings, output layer and last norm."""
    embeddings = shape.vocabulary * shape.embedding * (1 if shape.tied else 2)
    return min(shape.parameters, embeddings + shape.patch * shape.hidden)


def _parameters(stage: Stage, in_all: int, trained: float, shard: str) -> tuple[float, str]:
    """Return the bytes of the weights: of all, or of the adapters and of the frozen base, which needs no copy."""
    shape, setup = stage.shape, stage.setup
    each = setup.weight_bytes + (2 if setup.precision == "mixed" else 0)
    copy = " + 2 for the 16-bit copy" if setup.precision == "mixed" else ""
    text = f"{in_all:,} x {setup.weight_bytes}{copy}"
    if setup.lora_rank is None:
        return trained * each / setup.share(3), text + shard + stage.told
    linear = shape.linear_parameters
    rest = shape.parameters - linear
    of_linear, of_rest = _FROZEN_BYTES[setup.base], max(2, _FROZEN_BYTES[setup.base])
    total = trained * each + stage.held(linear * of_linear, rest * of_rest)
    text += f", and frozen {linear:,} x {of_linear:.4g} + {rest:,} x {of_rest:.4g}{shard}{stage.told}"
    return total / setup.share(3), text


def _activations(stage: Stage) -> tuple[float, str]:
    shape, setup = stage.shape, stage.setup
    one_layer, formula = bytes_per_token(shape, setup)
    tokens = setup.tokens * stage.micro_batches / setup.tensor_parallel
    layers = shape.all_layers * stage.layers
    several = f" x {stage.micro_batches} micro-batches" if stage.micro_batches > 1 else ""
    told = several + stage.told
    if setup.checkpointing == "full":
        return tokens * shape.hidden * setup.compute_bytes * layers, (
            f"tokens x layers x hidden x {setup.compute_bytes}{told}"
        )
    # A decoder's attention to the encoder keeps what its own attention does, and one norm.
    cross = (2 * shape.hidden + 2 * shape.attention_width + 2 * shape.kv_width) * setup.compute_bytes
    kept = tokens * (one_layer * layers + cross * shape.decoder_layers * stage.layers)
    return kept, f"tokens x layers x {one_layer:,} bytes ({formula}){told}"


def _recomputed(stage: Stage) -> tuple[float, str]:
    """Return what the layer keeps that is computed again in backward."""
    setup = stage.setup
    if setup.checkpointing != "full":
        return 0, ""
    one_layer, _ = bytes_per_token(stage.shape, setup)
    return setup.tokens / setup.tensor_parallel * one_layer, f"tokens x {one_layer:,} bytes of one layer{stage.told}"


def bytes_per_token(shape: ModelShape, setup: Setup) -> tuple[int, str]:
    """Return the bytes that autograd keeps for one token in one layer.

    Inputs and outputs of both norms, queries, keys and values, attention's output, and of the feed-forward part each
    matrix's output and the product's factors. For GPT without dropout these are the 32 bytes x hidden of
    Korthikanti's 34.
    """
    wide = shape.expert_width * shape.active_experts if shape.experts > 1 else shape.feed_forward
    kept = 2 * shape.attention_width + 2 * shape.kv_width + wide * (4 if shape.matrices == 3 else 2)
    norms = 2 * shape.hidden * _NORM[setup.precision][not shape.biased]
    size = kept * setup.compute_bytes + norms + wide * (_FORMULAS_COMPOSED[setup.precision] if shape.composed else 0)
    if setup.attention == "eager" and setup.checkpointing == "none":
        return size + 5 * shape.heads * setup.length, "with attention scores: 5 x heads x length"
    return size, f"{kept:,} numbers and {norms:,} bytes of norms kept"


def _logits(stage: Stage) -> tuple[float, str]:
    """Return log-probabilities, their gradient and that of the logits, all in float32; the logits are gone by then."""
    setup, each = stage.setup, 12
    chunks = LOSS_CHUNKS if setup.chunked_loss else 1
    text = f"tokens x {stage.shape.vocabulary:,} x {each}{f' / {chunks} chunks' if chunks > 1 else ''}{stage.told}"
    return setup.tokens * stage.shape.vocabulary * each / chunks / setup.tensor_parallel, text


def peak_of(parts: Mapping[str, MemoryPart], setup: Setup) -> int:
    """Return the peak: at the start of backward, or at its end.

    The logits are gone when the first layer is computed again. With one micro-batch per step the gradients replace the
    activations; with more they are held at the same time.
    """

    def of(*names: str) -> int:
        return sum(parts[name].bytes for name in names if name in parts)

    always = of("parameters", "gathered_parameters", "optimizer_state")
    step = of("activations") + max(of("logits"), of("recomputed_layer"))
    return always + (step + of("gradients") if setup.accumulation > 1 else max(step, of("gradients")))
