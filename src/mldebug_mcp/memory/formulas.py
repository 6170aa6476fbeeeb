"""The parts of the memory that training a transformer takes on each device, by formula."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mldebug_mcp.memory.model_shape import ModelShape
from mldebug_mcp.models.data import (
    Attention,
    Checkpointing,
    Frozen,
    MemoryPart,
    Offload,
    Optimizer,
    Precision,
    Sharding,
)

# What autograd keeps of a forward pass of a transformer, in bytes for one token, as Transformers writes its layers.
#
# Each formula follows the operations of the model's code and what PyTorch saves for their gradients. They are checked
# against measured peaks (`benchmarks/gpu/peaks.json`) and against Transformers' models on tensors without data.


FP32 = 4
"""Bytes of a number in 32 bits."""
BYTES_OF_HALF = 2
"""Bytes of a number in 16 bits."""
GELU_PARTS: dict[str, int] = {"mixed": 12, "bf16": 6, "fp16": 6, "fp32": 12}
"""Bytes that a composed GELU keeps for each number besides input and output: half the input, tanh and one plus tanh;
under autocast, which computes powers in float32, also its input in float32."""
LOSS_UPCAST: dict[str, int] = {"mixed": 12, "bf16": 12, "fp16": 12, "fp32": 12}
LOSS_PLAIN: dict[str, int] = {"mixed": 10, "bf16": 6, "fp16": 6, "fp32": 12}
"""Bytes for each logit when backward begins: its log-probability, the gradient of that, and that of the logit. Causal
models copy the logits to float32 first; other losses compute in the logits' precision, and under autocast give the last
of the three in 16 bits."""


@dataclass(frozen=True, slots=True)
class Kept:
    """How the activations of one token are kept.

    `scores` says whether attention scores are kept where the attention stores them: not with selective checkpointing.
    """

    shape: ModelShape
    precision: Precision
    attention: Attention
    length: int
    lora_rank: int | None = None
    scores: bool = True

    @property
    def width(self) -> int:
        """Bytes of an activation in the precision that linear layers compute in."""
        return FP32 if self.precision == "fp32" else BYTES_OF_HALF

    @property
    def residual(self) -> int:
        """Bytes of a number of the residual stream: autocast adds in float32."""
        return FP32 if self.precision in ("mixed", "fp32") and self.lora_rank is None else self.width

    @property
    def stores_scores(self) -> bool:
        """Whether attention keeps its scores: eager, or fused attention in float32 with grouped keys and values.

        The fused kernels take no groups in float32, so PyTorch computes those as eager attention does.
        """
        return self.attention == "eager" or (self.precision == "fp32" and self.shape.kv_heads < self.shape.heads)

    def layer(self) -> int:
        """Return the bytes that one layer keeps."""
        return self._norms() + self._attention() + self._feed_forward() + self._dropout_masks(2) + self._adapters()

    def outside(self) -> int:
        """Return the bytes that is kept outside the layers: of the last norm, the embedding's dropout, and a head."""
        shape = self.shape
        kept = self._norm(1) + self._dropout_masks(1)
        if shape.head_transform:
            kept += 3 * shape.hidden * self.width
        return kept

    def logits(self) -> int:
        """Return the bytes for each logit when backward begins."""
        kept = (LOSS_UPCAST if self.shape.upcast_loss else LOSS_PLAIN)[self.precision]
        return kept + (self.width if self.shape.final_softcap else 0)

    def _norms(self) -> int:
        """Return what the norms of a layer keep: those before its two parts, and those behind them."""
        shape = self.shape
        into_attention, into_mlp = 1 if shape.fused_qkv else 3, 1 if shape.matrices == 2 or shape.fused_gate else 2
        if shape.norms == "before" and shape.parallel_norms == 1:
            kept = self._norm(into_attention + into_mlp)
        elif shape.norms == "after":
            inputs = [self._copies(into_attention), self._copies(into_mlp)]
            kept = sum(inputs) * shape.hidden + 2 * self._norm_behind(shape.hidden)
        else:
            kept = self._norm(into_attention) + self._norm(into_mlp)
        if shape.parallel_norms == 2 and self.lora_rank is None:
            # Both norms have the same input.
            kept -= self.residual * shape.hidden
        if shape.norms == "both":
            kept += 2 * self._norm_behind(shape.hidden)
        if shape.normed_queries:
            kept += self._norm_behind(shape.attention_width + shape.kv_width)
        return kept

    def _copies(self, layers: int) -> int:
        """Return the bytes of a number that linear layers keep as their input; autocast copies it for each of them."""
        if self.precision == "mixed":
            return BYTES_OF_HALF * layers
        return self.width

    def _norm(self, layers: int) -> int:
        """Return what a norm of the residual stream keeps, with the inputs of the linear layers behind it."""
        output, wide = self._copies(layers), self.shape.hidden
        if self.shape.norm == "layer":
            of_input = FP32 if self.precision == "mixed" else self.width
            return wide * (of_input + output)
        # RMSNorm is composed of several operations, computes in float32, and keeps what it multiplies by its weight.
        if self.lora_rank is not None:
            return wide * (FP32 + output)
        normalised = (
            BYTES_OF_HALF
            if self.shape.norm == "rms" and self.width == BYTES_OF_HALF and self.precision != "mixed"
            else FP32
        )
        return wide * (FP32 + normalised + output)

    def _norm_behind(self, wide: int) -> int:
        """Return what a norm of a linear layer's output keeps."""
        if self.shape.norm == "layer":
            return wide * self.width
        if self.lora_rank is not None:
            return wide * FP32
        return wide * (FP32 + (BYTES_OF_HALF if self.shape.norm == "rms" and self.width == BYTES_OF_HALF else FP32))

    def _attention(self) -> int:
        """Return queries, keys, values and output.

        Fused attention keeps a fused projection whole, as its values are a view of it.
        """
        shape = self.shape
        kept = (2 * shape.attention_width + 2 * shape.kv_width) * self.width
        if shape.fused_qkv and shape.rotary and not self.stores_scores:
            kept += (shape.attention_width + shape.kv_width) * self.width
        if not self.stores_scores:
            return kept
        # Groups of keys and values are repeated for each head.
        kept += 2 * (shape.attention_width - shape.kv_width) * self.width
        return kept + (shape.heads * self.length * self._scores() if self.scores else 0)

    def _scores(self) -> int:
        """Return the bytes for each score: of the softmax, its copy in 16 bits, its dropout and a soft cap."""
        shape = self.shape
        in_float = self.precision in ("mixed", "fp32") or shape.softmax_in_float
        kept = FP32 if in_float else BYTES_OF_HALF
        copied = in_float and self.width == BYTES_OF_HALF
        if self.attention == "eager" and shape.attention_dropout:
            # The mask takes a byte; what is left after it is kept too, under autocast as its copy alone.
            kept += 1 + (self.width if self.precision == "mixed" else BYTES_OF_HALF * copied + self.width)
        elif copied:
            kept += BYTES_OF_HALF
        if self.attention == "eager" and shape.attention_softcap:
            kept += self.width
        return kept

    def _feed_forward(self) -> int:
        shape = self.shape
        wide = shape.expert_width * shape.active_experts if shape.experts > 1 else shape.feed_forward
        numbers = 4 if shape.matrices == 3 else 2
        if shape.relu and self.lora_rank is None:
            numbers -= 1  # ReLU keeps its output, which the next layer keeps as its input.
        return wide * (numbers * self.width + (GELU_PARTS[self.precision] if shape.composed else 0))

    def _dropout_masks(self, count: int) -> int:
        """Return a byte for each number that dropout may drop."""
        return count * self.shape.hidden if self.shape.dropout else 0

    def _adapters(self) -> int:
        """Return what adapters keep: the numbers between their matrices, and a copy of attention's output."""
        if self.lora_rank is None:
            return 0
        copy = BYTES_OF_HALF * self.shape.attention_width if self.precision == "mixed" else 0
        return len(self.shape.linears[: 4 + self.shape.matrices]) * self.lora_rank * self.width + copy


# The parts of the memory that training a transformer takes on each device, by formula, in bytes.
#
# | part | bytes | source | | --- | --- | --- | | parameters | 4 or 2 each; mixed precision adds a 16-bit copy (2) |
# Rajbhandari et al. 2020 (ZeRO), section 3.1 | | frozen base of a LoRA | 4, 2, or in linear layers 1 or 0.516, no copy
# | Dettmers et al. 2023 (QLoRA), section 3 | | gradients | as the parameters | the same | | optimizer state | AdamW 2
# numbers per parameter, in the parameter's precision | the same; torch.optim.adamw | | activations | per token and
# layer, what autograd keeps (`activations.Kept`) | the models' code in Transformers | | logits | batch x length x
# vocabulary: log-probabilities and two gradients in float32 | torch cross_entropy | | sharding | state / N; from stage
# 2 gradients / N; at stage 3 parameters / N; in mixed precision the state holds the 32-bit copy | Rajbhandari et al.
# 2020, figure 1 | | tensor parallel | everything of a layer, its activations too, / T | Korthikanti et al. 2022, eq. 4
# | | pipeline parallel | layers / P; the first of P stages holds up to P micro-batches at once | Narayanan et al. 2021
# | | workspace | 65 MiB of cuBLAS | measured on an H200 |
#
# For AdamW in mixed precision this is 4 + 2 + 4 + 8 = 18 bytes per parameter, as Bekman counts (ML Engineering, anatomy
# of a model's memory usage). Sharded by ZeRO it is 2 + 2 + 12, as the paper counts.


LOSS_CHUNKS = 8
"""Pieces in which a chunked loss takes the logits."""
WORKSPACE = 65 * 1024 * 1024
"""Bytes that cuBLAS takes once for each thread that computes products: 32 MiB and 1 MiB in forward, 32 MiB in backward.
Measured on an H200; cards before Hopper take 8 MiB each."""
_FROZEN_BYTES: Mapping[str, float] = {"32bit": 4, "16bit": 2, "8bit": 1, "4bit": 0.5 + 0.127 / 8}
"""Bytes of a frozen weight in a linear layer; 4-bit NF4 has another 0.127 bits for its constants, quantized twice."""


@dataclass(frozen=True, slots=True)
class OptimizerState:
    """The numbers that an optimizer keeps for each parameter, and whether they move to the CPU when the device is full.

    `each` are bytes of a parameter's state in all; None where each number has the parameter's precision.
    """

    numbers: float
    each: float | None = None
    paged: bool = False


STATES: Mapping[str, OptimizerState] = {
    "adamw": OptimizerState(2),
    "adamw_fused": OptimizerState(2),
    "adamw_8bit": OptimizerState(2, 2.033),
    "adamw_4bit": OptimizerState(2, 1.063),
    "adamw_fp8": OptimizerState(2, 2.031),
    "paged_adamw": OptimizerState(2, 8, paged=True),
    "paged_adamw_8bit": OptimizerState(2, 2.033, paged=True),
    "lion": OptimizerState(1),
    "lion_8bit": OptimizerState(1, 1.017),
    "paged_lion_8bit": OptimizerState(1, 1.017, paged=True),
    "sgd": OptimizerState(0),
    "sgd_momentum": OptimizerState(1),
    "adafactor": OptimizerState(0),
}
"""The bytes of 8, 4 and fp8 bits are measured with bitsandbytes and torchao on an H200, their scales included."""
SMALL_TENSOR = 4096
"""Numbers below which a tensor's state stays in 32 bits: `min_8bit_size` of bitsandbytes, and the same in torchao."""


@dataclass(frozen=True, slots=True)
class Setup:
    """How a model is trained; `estimate_memory` says what each setting means.

    Accumulation keeps gradients together with activations. Tensor parallelism splits sequence and vocabulary, too. A
    pipeline schedules one forward, one backward. A chunked loss works on an eighth of the logits at a time.
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
    offload: Offload = "none"
    optimizer_in_backward: bool = False

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

    @property
    def master_in_state(self) -> bool:
        """Whether the optimizer holds the 32-bit copy of the parameters: with ZeRO, which splits it as state."""
        return self.precision == "mixed" and self.stage > 0

    @property
    def gradients_leave(self) -> bool:
        """Whether gradients go to the CPU as they arise: with parameters there, or from stage 2 on (ZeRO-Offload)."""
        return self.offload == "parameters" or (self.offload == "optimizer" and self.stage > 1)


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
    first, last = (_stage(Stage(shape, setup, first=is_first, last=not is_first)) for is_first in (True, False))
    return max(first, last, key=lambda parts: peak_of(parts, setup))


@dataclass(frozen=True, slots=True)
class Stage:
    """What one stage of a pipeline holds of a model; without a pipeline all of it.

    The first holds the embedding and most micro-batches, the last the output layer and the loss.
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
    def note(self) -> str:
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
    shards = {stage: f" / {setup.devices} devices" if setup.share(stage) > 1 else "" for stage in (1, 2, 3)}
    gathers = setup.share(3) > 1 or setup.offload == "parameters"
    steps_all = setup.optimizer == "adamw" and setup.offload == "none" and not setup.optimizer_in_backward
    entries = (
        ("parameters", *_parameters(stage, in_all, trained, shards[3])),
        (
            "gathered_parameters",
            2 * shape.layer_parameters * setup.compute_bytes // setup.tensor_parallel if gathers else 0,
            "two layers, gathered for use",
        ),
        ("gradients", *_gradients(stage, in_all, trained, shards[2])),
        ("optimizer_state", *_optimizer_state(stage, in_all, trained, shards[1])),
        (
            "optimizer_temporary",
            trained * setup.weight_bytes / setup.share(1) if steps_all else 0,
            f"{in_all:,} x {setup.weight_bytes}{shards[1]}, while the optimizer steps all parameters at once (foreach)",
        ),
        ("activations", *_activations(stage)),
        ("recomputed_layer", *_recomputed(stage)),
        *([("logits", *_logits(stage))] if stage.last else []),
        ("workspace", WORKSPACE, "what cuBLAS takes: 32 MiB a thread from Hopper on, 8 MiB before"),
    )
    return {name: MemoryPart(part=name, bytes=int(size), formula=text) for name, size, text in entries if int(size)}


def _gradients(stage: Stage, in_all: int, trained: float, shard: str) -> tuple[float, str]:
    """Return the gradients' bytes; of those that are stepped or moved away one by one, those of the largest tensor.

    That is whole on each device, as it is split when it is reduced.
    """
    shape, setup = stage.shape, stage.setup
    each = BYTES_OF_HALF if setup.master_in_state else setup.weight_bytes
    if setup.optimizer_in_backward or setup.gradients_leave:
        largest = max(shape.vocabulary * shape.embedding, *(a * b for a, b in shape.linears))
        if setup.lora_rank is not None:
            largest = setup.lora_rank * max(max(pair) for pair in shape.linears)
        gone = "freed when it is stepped" if setup.optimizer_in_backward else "which goes to the CPU"
        return largest * each / setup.tensor_parallel, f"{largest:,} x {each} of the largest tensor, {gone}"
    return trained * each / setup.share(2), f"{in_all:,} x {each}{shard}{stage.note}"


def _optimizer_state(stage: Stage, in_all: int, trained: float, shard: str) -> tuple[float, str]:
    """Return the state's bytes on the device: none where it lies on the CPU or in memory that moves there."""
    setup, state = stage.setup, STATES[stage.setup.optimizer]
    if setup.offload != "none":
        return 0, ""
    master = FP32 if setup.master_in_state else 0
    if state.each is None:
        each = state.numbers * setup.weight_bytes
        text = f"{in_all:,} x {state.numbers:g} x {setup.weight_bytes}"
        wide = 0.0
    else:
        # Small tensors keep their state in 32 bits.
        stays_wide = setup.lora_rank is None and stage.shape.hidden < SMALL_TENSOR
        small = stage.shape.small_parameters if stays_wide else 0
        wide = min(trained, stage.held(small, 0)) * max(0.0, state.numbers * FP32 - state.each)
        each, text = state.each, f"{in_all:,} x {state.each:g}"
    if state.paged:
        each, wide, text = 0.0, 0.0, f"{in_all:,} x 0 of paged state"
    text += f" + {in_all:,} x {master} for the 32-bit copy" if master else ""
    return (trained * (each + master) + wide) / setup.share(1), text + shard + stage.note


def _outside_layers(shape: ModelShape) -> int:
    """Return the parameters of embeddings, output layer and last norm."""
    embeddings = shape.vocabulary * shape.embedding * (1 if shape.tied else 2)
    return min(shape.parameters, embeddings + shape.patch * shape.hidden)


def _parameters(stage: Stage, in_all: int, trained: float, shard: str) -> tuple[float, str]:
    """Return the bytes of the weights: of all, or of the adapters and of the frozen base, which needs no copy."""
    shape, setup = stage.shape, stage.setup
    if setup.offload == "parameters":
        return 0, ""
    each = setup.weight_bytes + (BYTES_OF_HALF if setup.precision == "mixed" else 0)
    copy = " + 2 for the 16-bit copy" if setup.precision == "mixed" else ""
    text = f"{in_all:,} x {setup.weight_bytes}{copy}"
    if setup.master_in_state:
        each, text = BYTES_OF_HALF, f"{in_all:,} x {BYTES_OF_HALF}"
    if setup.lora_rank is None:
        return trained * each / setup.share(3), text + shard + stage.note
    linear = shape.linear_parameters
    rest = shape.parameters - linear
    of_linear, of_rest = _FROZEN_BYTES[setup.base], max(2, _FROZEN_BYTES[setup.base])
    total = trained * each + stage.held(linear * of_linear, rest * of_rest)
    text += f", and frozen {linear:,} x {of_linear:.4g} + {rest:,} x {of_rest:.4g}{shard}{stage.note}"
    return total / setup.share(3), text


def kept(shape: ModelShape, setup: Setup) -> Kept:
    """Return how the activations of a setup are kept."""
    scores = setup.checkpointing == "none"
    return Kept(shape, setup.precision, setup.attention, setup.length, setup.lora_rank, scores)


def bytes_per_token(shape: ModelShape, setup: Setup) -> tuple[int, str]:
    """Return the bytes that autograd keeps for one token in one layer, and how they come about."""
    kept_bytes = kept(shape, setup)
    stored = ", attention scores of heads x length among them" if kept_bytes.stores_scores and kept_bytes.scores else ""
    return kept_bytes.layer(), f"norms, attention and feed-forward part{stored}"


def _activations(stage: Stage) -> tuple[float, str]:
    shape, setup = stage.shape, stage.setup
    kept_bytes = kept(shape, setup)
    one_layer, formula = bytes_per_token(shape, setup)
    tokens = setup.tokens * stage.micro_batches / setup.tensor_parallel
    layers = shape.all_layers * stage.layers
    several = f" x {stage.micro_batches} micro-batches" if stage.micro_batches > 1 else ""
    stages = several + stage.note
    outside = tokens * kept_bytes.outside() * (1 if stage.last else 0)
    if setup.checkpointing == "full":
        each = kept_bytes.residual
        text = f"tokens x layers x hidden x {each}, and the last norm{stages}"
        return tokens * shape.hidden * each * layers + outside, text
    # A decoder's attention to the encoder keeps what its own attention does, and one norm.
    cross = (2 * shape.hidden + 2 * shape.attention_width + 2 * shape.kv_width) * setup.compute_bytes
    whole = tokens * (one_layer * layers + cross * shape.decoder_layers * stage.layers) + outside
    return whole, f"tokens x layers x {one_layer:,} bytes ({formula}), and the last norm{stages}"


def _recomputed(stage: Stage) -> tuple[float, str]:
    """Return what the layer keeps that is computed again in backward."""
    setup = stage.setup
    if setup.checkpointing != "full":
        return 0, ""
    one_layer = replace(kept(stage.shape, setup), scores=True).layer()
    return setup.tokens / setup.tensor_parallel * one_layer, f"tokens x {one_layer:,} bytes of one layer{stage.note}"


def _logits(stage: Stage) -> tuple[float, str]:
    """Return log-probabilities, their gradient and that of the logits, when backward begins.

    With checkpointing the 16-bit copies of the layers' weights are gone by then. In forward they are there, as are the
    logits, their copy and their log-probabilities.
    """
    shape, setup = stage.shape, stage.setup
    each = kept(shape, setup).logits()
    chunks = LOSS_CHUNKS if setup.chunked_loss else 1
    numbers = setup.tokens * shape.vocabulary / chunks / setup.tensor_parallel
    text = f"tokens x {shape.vocabulary:,} x {each}{f' / {chunks} chunks' if chunks > 1 else ''}{stage.note}"
    if setup.checkpointing != "full" or setup.precision != "mixed" or setup.lora_rank is not None:
        return numbers * each, text
    gone = BYTES_OF_HALF * stage.held(shape.linear_parameters, 0) / setup.share(3)
    in_forward = each - BYTES_OF_HALF
    return max(numbers * in_forward, numbers * each - gone), f"{text}, or x {in_forward} with the weights' copies"


def peak_of(parts: Mapping[str, MemoryPart], setup: Setup) -> int:
    """Return the peak: at the start of backward, or in the optimizer's step.

    The logits are gone when the first layer is computed again. With one micro-batch per step the gradients replace the
    activations; with more they are held at the same time.
    """

    def of(*names: str) -> int:
        return sum(parts[name].bytes for name in names if name in parts)

    always = of("parameters", "gathered_parameters", "optimizer_state", "workspace")
    step = of("activations") + max(of("logits"), of("recomputed_layer"))
    stepped = of("gradients") + of("optimizer_temporary") - _copies_of(parts, setup)
    return always + (max(step + of("gradients"), stepped) if setup.accumulation > 1 else max(step, stepped))


def _copies_of(parts: Mapping[str, MemoryPart], setup: Setup) -> int:
    """Return the bytes of the 16-bit copies that autocast makes: they are gone when the optimizer steps."""
    if setup.precision != "mixed" or setup.master_in_state or setup.lora_rank is not None or "parameters" not in parts:
        return 0
    return parts["parameters"].bytes * BYTES_OF_HALF // (FP32 + BYTES_OF_HALF)
