"""What autograd keeps of a forward pass of a transformer, in bytes for one token, as Transformers writes its layers.

Each formula follows the operations of the model's code and what PyTorch saves for their gradients. They are checked
against measured peaks (`benchmarks/gpu/peaks.json`) and against Transformers' models on tensors without data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mldebug_mcp.memory.model_shape import ModelShape
from mldebug_mcp.models.memory import Precision

Attention = Literal["flash", "eager"]

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
