"""A transformer's `config.json` → the numbers that its memory follows from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mldebug_mcp.config_json import read_config_json
from mldebug_mcp.errors import InputError
from mldebug_mcp.text import shorten

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
_COMPOSED = ("gelu_new", "gelu_fast")
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
    return kind in _COMPOSED_BY_DEFAULT if told is None else told in _COMPOSED


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
