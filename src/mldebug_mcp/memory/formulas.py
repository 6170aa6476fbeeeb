"""The parts of the memory that training a transformer takes on each device, by formula, in bytes.

| part | bytes | source |
| --- | --- | --- |
| parameters | 4 or 2 each; mixed precision adds a 16-bit copy (2) | Rajbhandari et al. 2020 (ZeRO), section 3.1 |
| frozen base of a LoRA | 4, 2, or in linear layers 1 or 0.516, no copy | Dettmers et al. 2023 (QLoRA), section 3 |
| gradients | as the parameters | the same |
| optimizer state | AdamW 2 numbers per parameter, in the parameter's precision | the same; torch.optim.adamw |
| activations | per token and layer, what autograd keeps (`bytes_per_token`) | Korthikanti et al. 2022, eq. 1 and 2 |
| logits | batch x length x vocabulary: logits, float32 copy, log-probabilities, gradient | torch cross_entropy |
| sharding | state / N; from stage 2 gradients / N; at stage 3 parameters / N | Rajbhandari et al. 2020, figure 1 |

For AdamW in mixed precision this is 4 + 2 + 4 + 8 = 18 bytes per parameter, as Bekman counts (ML Engineering, anatomy
of a model's memory usage).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mldebug_mcp.memory.model_shape import ModelShape
from mldebug_mcp.models.memory import Attention, Checkpointing, Frozen, MemoryPart, Optimizer, Precision, Sharding

LOSS_CHUNKS = 8
_FROZEN_BYTES: Mapping[str, float] = {"32bit": 4, "16bit": 2, "8bit": 1, "4bit": 0.5 + 0.127 / 8}
"""Bytes of a frozen weight in a linear layer; 4-bit NF4 has another 0.127 bits for its constants, quantized twice."""
_STATES: Mapping[str, float] = {"adamw": 2, "adamw_8bit": 2, "lion": 1, "sgd": 0, "sgd_momentum": 1, "adafactor": 0}
"""Numbers that each optimizer keeps per parameter."""


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
        devices: Devices that share what `sharding` splits.
        sharding: What they share.
        lora_rank: Rank of adapters on every linear layer, if only those are trained.
        chunked_loss: Whether the loss works on an eighth of the logits at a time.
        frozen: How the frozen base model of a LoRA is held; None for 16 bits, or 32 with precision fp32.
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
    """Return what takes memory on a device, by name, each with its formula."""
    trained = trained_parameters(shape, setup)
    state = 1 if setup.optimizer == "adamw_8bit" else setup.weight_bytes
    numbers = _STATES[setup.optimizer]
    shards = {stage: f" / {setup.devices} devices" if setup.share(stage) > 1 else "" for stage in (1, 2, 3)}
    entries = (
        ("parameters", *_parameters(shape, setup, trained, shards[3])),
        (
            "gathered_parameters",
            2 * shape.layer_parameters * setup.compute_bytes if setup.share(3) > 1 else 0,
            "two layers, gathered for use",
        ),
        ("gradients", trained * setup.weight_bytes // setup.share(2), f"{trained:,} x {setup.weight_bytes}{shards[2]}"),
        (
            "optimizer_state",
            int(trained * numbers * state) // setup.share(1),
            f"{trained:,} x {numbers:g} x {state}{shards[1]}",
        ),
        ("activations", *_activations(shape, setup)),
        ("logits", *_logits(shape, setup)),
    )
    return {name: MemoryPart(part=name, bytes=size, formula=text) for name, size, text in entries if size}


def _parameters(shape: ModelShape, setup: Setup, trained: int, shard: str) -> tuple[int, str]:
    """Return the bytes of the weights: of all, or of the adapters and of the frozen base, which needs no copy."""
    each = setup.weight_bytes + (2 if setup.precision == "mixed" else 0)
    copy = " + 2 for the 16-bit copy" if setup.precision == "mixed" else ""
    text = f"{trained:,} x {setup.weight_bytes}{copy}"
    if setup.lora_rank is None:
        return trained * each // setup.share(3), text + shard
    linear = shape.linear_parameters
    rest = shape.parameters - linear
    of_linear, of_rest = _FROZEN_BYTES[setup.base], max(2, _FROZEN_BYTES[setup.base])
    total = int(trained * each + linear * of_linear + rest * of_rest)
    return total // setup.share(3), f"{text}, and frozen {linear:,} x {of_linear:.4g} + {rest:,} x {of_rest:.4g}{shard}"


def _activations(shape: ModelShape, setup: Setup) -> tuple[int, str]:
    one_layer, formula = bytes_per_token(shape, setup)
    if setup.checkpointing == "full":
        kept = setup.tokens * (shape.hidden * setup.compute_bytes * shape.all_layers + one_layer)
        return kept, f"tokens x (layers x hidden x {setup.compute_bytes} + one layer recomputed: {one_layer:,} bytes)"
    # A decoder's attention to the encoder keeps what its own attention does, and one norm.
    cross = (2 * shape.hidden + 2 * shape.attention_width + 2 * shape.kv_width) * setup.compute_bytes
    kept = setup.tokens * (one_layer * shape.all_layers + cross * shape.decoder_layers)
    return kept, f"tokens x layers x {one_layer:,} bytes ({formula})"


def bytes_per_token(shape: ModelShape, setup: Setup) -> tuple[int, str]:
    """Return the bytes that autograd keeps for one token in one layer.

    Inputs and outputs of both norms, queries, keys and values, attention's output, and of the feed-forward part each
    matrix's output and the product's factors. For GPT without dropout these are the 32 bytes x hidden of
    Korthikanti's 34.
    """
    wide = shape.expert_width * shape.active_experts if shape.experts > 1 else shape.feed_forward
    kept = 4 * shape.hidden + 2 * shape.attention_width + 2 * shape.kv_width
    kept += wide * (4 if shape.matrices == 3 else 2)
    size = kept * setup.compute_bytes
    if setup.attention == "eager" and setup.checkpointing == "none":
        return size + 5 * shape.heads * setup.length, "with attention scores: 5 x heads x length"
    return size, f"{kept:,} numbers kept"


def _logits(shape: ModelShape, setup: Setup) -> tuple[int, str]:
    """Return logits, their float32 copy where they are shorter, log-probabilities and gradient."""
    each = 12 if setup.compute_bytes == 4 else 14
    chunks = LOSS_CHUNKS if setup.chunked_loss else 1
    text = f"tokens x {shape.vocabulary:,} x {each}{f' / {chunks} chunks' if chunks > 1 else ''}"
    return setup.tokens * shape.vocabulary * each // chunks, text


def peak_of(parts: Mapping[str, MemoryPart], setup: Setup) -> int:
    """Return the peak: at the start of backward, or at its end.

    With one micro-batch per step the gradients replace the activations; with more they are held at the same time.
    """

    def of(*names: str) -> int:
        return sum(parts[name].bytes for name in names if name in parts)

    always = of("parameters", "gathered_parameters", "optimizer_state")
    step = of("activations", "logits")
    return always + (step + of("gradients") if setup.accumulation > 1 else max(step, of("gradients")))
