"""A transformer's `config.json` as the numbers and choices that its memory follows from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from mldebug_mcp.core.config_files import read_config_json
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.text import shorten

MAX_NUMBER = 1 << 40
MAX_RATIO = 64
MAX_LAYERS = 10_000
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
_T5 = ("t5", "mt5", "umt5")
_AFTER_PADDING = ("roberta", "xlm-roberta", "camembert", "mpnet")
"""Model types whose positions begin after the padding token's number, so that two of the table are never used."""
_BIASED = (
    *("gpt2", "gpt_neox", "gpt_bigcode", "opt", "bloom", "phi", "starcoder2", "deberta", "deberta-v2"),
    *(*_ENCODERS, *_ENCODER_DECODERS, *_VISION),
)
_TIED_BY_DEFAULT = (
    *("gpt2", "gpt_neo", "gpt_bigcode", "opt", "bloom", "gemma", "gemma2", "gemma3_text", "falcon", "mpt", "t5"),
    *("smollm3", "starcoder2", "cohere", "cohere2", "gemma3", "deberta", "deberta-v2", *_ENCODERS, *_ENCODER_DECODERS),
)
_COMPOSED = ("gelu_new", "gelu_fast")
"""Activation functions that Transformers composes of several operations, each keeping its input or result."""
_COMPOSED_BY_DEFAULT = ("gpt2", "gpt_neo", "gptj", "codegen", "phi", "albert")
_LAYER_NORM = (*_BIASED, "falcon", "stablelm", "gptj", "codegen", "gpt_neo", "mpt")
"""Model types that norm with LayerNorm, one operation; the others compose RMSNorm of several."""
_WEIGHT_IN_FLOAT = ("gemma", "gemma2", "gemma3", "gemma3_text", "olmo2", "olmo3", "cohere", "cohere2")
"""Model types whose norm multiplies by its weight in float32 and keeps what it multiplies."""
_NORMS_ON_BOTH_SIDES = ("gemma2", "gemma3", "gemma3_text", "glm4")
_NORMS_AFTER = ("olmo2", "olmo3")
_NORMED_QUERIES = ("qwen3", "qwen3_moe", "gemma3", "gemma3_text", "olmo2", "olmo3", "olmoe")
_ONE_NORM = ("phi", "gptj", "codegen", "falcon", "cohere", "cohere2")
"""Model types whose attention and feed-forward part run side by side behind one norm."""
_FUSED_QKV = ("gpt2", "gpt_bigcode", "gpt_neox", "bloom", "falcon", "mpt", "phi3", "codegen")
_ROTARY_FUSED = ("gpt_neox", "falcon", "phi3")
_FUSED_GATE = ("phi3", "glm", "glm4")
_DROPOUT_BY_DEFAULT = ("gpt2", "gpt_bigcode", "opt", "t5", "bart", "mbart", "marian", "pegasus", *_ENCODERS)
_ATTENTION_DROPOUT_BY_DEFAULT = ("gpt2", "gpt_bigcode", "t5", *_ENCODERS)
_SOFTMAX_IN_PRECISION = ("gpt2", "gpt_bigcode", "gpt_neo", "bart", "mbart", "marian", "pegasus", *_ENCODERS, *_VISION)
"""Model types whose eager attention computes the softmax in the activations' precision; the others in float32."""
_RELU_BY_DEFAULT = ("opt", "t5")
_MIXTURES = (
    *("mixtral", "qwen2_moe", "qwen3_moe", "deepseek_v2", "deepseek_v3", "glm4_moe", "glm4_moe_lite", "llama4_text"),
    *("olmoe", "flex_olmo", "phimoe", "granitemoe", "gpt_oss"),
)
"""Model types of mixtures whose parameters are those of Transformers 5.23 to a thousandth."""
_LAYERS_COUNTED = (
    *("bitnet", "cohere", "cohere2", "ernie4_5", "exaone4", "gemma", "gemma2", "gemma3", "gemma3_text", "glm", "glm4"),
    *("granite", "helium", "hyperclovax", "internlm3", "llama", "minicpm3", "ministral3", "mistral"),
    *("modernbert-decoder", "olmo", "olmo2", "olmo3", "phi3", "qwen2", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl"),
    *("qwen2_5_vl_text", "qwen3", "qwen3_vl", "qwen3_vl_text", "seed_oss", "smollm3", "stablelm", "vaultgemma"),
    *(*_PLAIN_MLP, *_T5, *_MIXTURES),
)
"""Model types whose parameters are those of Transformers 5.23 to a hundredth."""
_TOKEN_TYPES = ("bert", "electra", "albert", "deberta")


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
        stated_positions: Tokens of the longest row that the configuration names; None where it names none.
        matrices: Matrices in the feed-forward part: 3 if gated.
        experts: Feed-forward parts per layer; 1 unless a mixture.
        active_experts: How many of them a token passes.
        expert_width: Width of one of them.
        biased: Whether linear layers have biases (else none; Qwen2's are added).
        learned_positions: Whether positions have an embedding.
        tied: Whether the output layer shares the embedding.
        qkv_bias: Whether queries, keys and values have biases although the rest has none.
        composed: Whether the activation function is composed of several operations.
        norm: layer; rms; or rms_in_float, which also multiplies by its weight in float32.
        norms: Whether they stand before the two parts of a layer, after them, or on both sides.
        parallel_norms: Norms before attention and feed-forward part where these run side by side; 0 where they do not.
        normed_queries: Whether queries and keys have norms.
        fused_qkv: Whether queries, keys and values come from one linear layer.
        rotary: Whether a fused projection is rotated, which copies queries and keys.
        fused_gate: Whether gate and up projection are one linear layer.
        relu: Whether the activation function is ReLU.
        dropout: Whether training drops numbers of the residual stream.
        attention_dropout: Whether training drops attention scores.
        softmax_in_float: Whether eager attention computes its softmax in float32.
        attention_softcap: Whether eager attention caps its scores.
        final_softcap: Whether the logits are capped.
        upcast_loss: Whether the loss copies the logits to float32.
        head_transform: Whether a dense layer and a norm stand before the output layer, as in BERT.
        token_types: Rows of the embedding of token types.
        tower: Parameters of a vision or audio tower and its projector; None where there is one that cannot be read.
        towers: What the configuration calls its towers.
        like: Whose layers are counted, where the model type's own may be others.
        further: Weights of linear layers beyond those of equal layers; below zero where some layers have fewer.
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
    norm: Literal["layer", "rms", "rms_in_float"] = "rms"
    norms: Literal["before", "after", "both"] = "before"
    parallel_norms: int = 0
    normed_queries: bool = False
    fused_qkv: bool = False
    rotary: bool = False
    fused_gate: bool = False
    relu: bool = False
    dropout: bool = False
    attention_dropout: bool = False
    softmax_in_float: bool = True
    attention_softcap: bool = False
    final_softcap: bool = False
    upcast_loss: bool = True
    head_transform: bool = False
    token_types: int = 0
    tower: int | None = 0
    towers: tuple[str, ...] = ()
    like: str = ""
    further: int = 0
    stated_positions: int | None = None

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
        return own + self.decoder_layers * sum(a * b for a, b in self.cross_linears) + self.further

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
        of_queries = 2 * self.head_dim if self.normed_queries else 0
        norms = 4 if self.norms == "both" else 1 if self.parallel_norms == 1 else 2
        return sum(a * b for a, b in self.linears) + biases + norms * self._norm + of_queries

    @property
    def _norm(self) -> int:
        return self.hidden * (2 if self.biased else 1)

    @property
    def parameters(self) -> int:
        """All parameters; a tied output layer counts once, a tower that can be read is included."""
        return self.text_parameters + (self.tower or 0)

    @property
    def small_parameters(self) -> int:
        """Parameters of norms and biases, whose tensors an optimizer of 8 bits keeps wide."""
        return max(0, self.text_parameters - self.linear_parameters - self._embeddings)

    @property
    def text_parameters(self) -> int:
        """Parameters without towers."""
        own = (1 if self.shared_layers else self.all_layers) * self.layer_parameters + self.further
        stacks = 2 if self.decoder_layers else 1
        return self._embeddings + own + self.decoder_layers * self._cross_parameters + stacks * self._norm + self._head

    @property
    def _head(self) -> int:
        """Parameters of a dense layer and a norm before the output layer, and of its bias."""
        if not self.head_transform:
            return 0
        return self.hidden * self.embedding + self.embedding + 2 * self.embedding + self.vocabulary

    @property
    def _embeddings(self) -> int:
        embeddings = self.vocabulary * self.embedding * (1 if self.tied else 2) + self.patch * self.hidden
        if self.embedding != self.hidden:
            embeddings += self.embedding * self.hidden
        stacks = 2 if self.decoder_layers else 1
        positions = stacks * self.positions * self.embedding if self.learned_positions else 0
        return embeddings + positions + self.token_types * self.embedding


def read_shape(path: str | Path) -> ModelShape:
    """Read a model's shape from its `config.json`, or from the folder that holds it.

    Raises:
        InputError: it cannot be read, or lacks a number that is needed.
    """
    return shape_of(*read_config_json(path))


def shape_of(config: Mapping[str, Any], name: str = "config") -> ModelShape:
    """Return the shape that a configuration describes; raises InputError naming what is missing."""
    whole = config
    inner = next(
        (nested for name in _TEXT if isinstance(nested := config.get(name), Mapping) and "hidden_size" in nested), None
    )
    if inner is not None:
        # The output layer is the whole model's: whether it is tied is stated outside, where it is.
        of_whole = {"tie_word_embeddings": tied} if isinstance(tied := whole.get("tie_word_embeddings"), bool) else {}
        config = {**config, **inner, **of_whole}
    numbers = {what: _number(config, names) for what, names in _NAMES.items()}
    image, patch = numbers["image"], numbers["patch"]
    sees = image is not None and patch is not None and numbers["vocabulary"] is None
    for what in ("hidden", "layers", "heads", *(() if sees else ("vocabulary",))):
        if numbers[what] is None:
            raise InputError(f"{name}: no {' or '.join(_NAMES[what][:3])}; this needs a transformer's config.json")
    kind = str(config.get("model_type", ""))[:60]
    hidden, heads = numbers["hidden"] or 1, numbers["heads"] or 1
    wide = numbers["feed_forward"] or 4 * hidden
    shape = ModelShape(
        name=shorten(str(config.get("_name_or_path") or kind or name), 120),
        hidden=hidden,
        layers=numbers["layers"] or 1,
        heads=heads,
        kv_heads=1 if _is_multi_query(config) else numbers["kv_heads"] or heads,
        head_dim=numbers["head_dim"] or max(1, hidden // heads),
        feed_forward=wide,
        decoder_layers=(numbers["decoder_layers"] or numbers["layers"] or 1) if _has_two_stacks(config) else 0,
        vocabulary=numbers["vocabulary"] or 0,
        embedding=numbers["embedding"] or hidden,
        patch=(numbers["channels"] or 3) * patch**2 if sees and patch else 0,
        shared_layers=kind == "albert",
        positions=(image // patch) ** 2 + 1 if sees and image and patch else numbers["positions"] or 2048,
        matrices=2 if kind in _PLAIN_MLP and not _is_gated(config) else 3,
        experts=numbers["experts"] or 1,
        active_experts=numbers["active_experts"] or 1,
        expert_width=numbers["expert_width"] or wide,
        biased=kind in _BIASED,
        learned_positions=kind in _LEARNED_POSITIONS,
        tied=bool(config.get("tie_word_embeddings", kind in _TIED_BY_DEFAULT)),
        qkv_bias=bool(config.get("attention_bias")) or kind in ("qwen2", "qwen2_moe"),
        composed=_named(config, _ACTIVATIONS[:3], "gelu_new" if kind in _COMPOSED_BY_DEFAULT else "") in _COMPOSED,
        stated_positions=_stated_positions(kind, numbers["positions"]),
        **_layer_kind(config, kind),
        **_towers(whole, hidden),
    )
    mixes = any("expert" in key or "moe" in key for key, value in config.items() if value)
    like = "" if not kind or kind in (_MIXTURES if mixes else _LAYERS_COUNTED) else "Mixtral" if mixes else "Llama"
    return replace(shape, further=_further(config, shape, kind), like=like)


def _further(config: Mapping[str, Any], shape: ModelShape, kind: str) -> int:
    """Return the weights that a mixture has beyond equal layers, by the classes of Transformers 5.23.

    They are those of shared experts, and of dense layers among the sparse ones, less those of the experts there. Those
    of an attention through narrow projections count as far as they differ from the usual.
    """
    attention = sum(a * b for a, b in shape.linears[:4])
    narrow = shape.all_layers * (_narrow_attention(config, shape) or attention) - shape.all_layers * attention
    if shape.experts == 1:
        return narrow
    sparse = sum(a * b for a, b in shape.linears) - attention
    dense_width = _number(config, ("intermediate_size_mlp",)) or shape.feed_forward
    dense = shape.matrices * shape.hidden * dense_width
    shared_width = _number(config, ("shared_expert_intermediate_size",)) or 0
    gate = shape.hidden if shared_width else 0
    shared_width += (_number(config, ("n_shared_experts",)) or 0) * shape.expert_width
    shared_width += shape.expert_width if kind == "llama4_text" else 0
    shared = shape.matrices * shape.hidden * shared_width + gate
    dense_layers = _dense_layers(config, shape.layers)
    return narrow + dense_layers * (dense - sparse) + (shape.layers - dense_layers) * shared


def _dense_layers(config: Mapping[str, Any], layers: int) -> int:
    """Return how many layers of a mixture have one wide feed-forward part in place of experts."""
    if isinstance(kinds := config.get("mlp_layer_types"), list):
        return kinds[:layers].count("dense")
    if isinstance(sparse := config.get("moe_layers"), list):
        return layers - len({layer for layer in sparse if isinstance(layer, int) and 0 <= layer < layers})
    every = _number(config, ("interleave_moe_layer_step", "decoder_sparse_step")) or 1
    alone = config.get("mlp_only_layers")
    never = {layer for layer in alone if isinstance(layer, int)} if isinstance(alone, list) else set[int]()
    first = min(layers, _number(config, ("first_k_dense_replace",)) or 0)
    sparse_layers = range(first, min(layers, MAX_LAYERS))
    return layers - sum((at + 1) % every == 0 and at not in never for at in sparse_layers)


def _narrow_attention(config: Mapping[str, Any], shape: ModelShape) -> int | None:
    """Return the weights of DeepSeek's latent attention and its norms in a layer; None of another attention."""
    names = (("kv_lora_rank",), ("qk_nope_head_dim",), ("qk_rope_head_dim",), ("v_head_dim",))
    latent, plain, rotated, value = (_number(config, name) for name in names)
    if latent is None or plain is None or rotated is None or value is None:
        return None
    outputs, rank = shape.heads * (plain + rotated), _number(config, ("q_lora_rank",))
    queries = shape.hidden * outputs if rank is None else rank * (shape.hidden + outputs + 1)
    keys = shape.hidden * (latent + rotated) + latent * (shape.heads * (plain + value) + 1)
    return queries + keys + shape.heads * value * shape.hidden


def _layer_kind(config: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return how a model's layers are written, by its type and what the configuration says."""
    encoder = kind in _ENCODERS or kind in ("deberta", "deberta-v2")
    parallel = config.get("use_parallel_residual", kind == "gpt_neox") is True
    one_norm = kind in _ONE_NORM and config.get("new_decoder_architecture") is not True
    return {
        "norm": "layer" if kind in _LAYER_NORM else "rms_in_float" if kind in _WEIGHT_IN_FLOAT else "rms",
        "norms": "both" if kind in _NORMS_ON_BOTH_SIDES else "after" if kind in _NORMS_AFTER else "before",
        "parallel_norms": 1 if one_norm or (parallel and kind == "stablelm") else 2 if parallel else 0,
        "normed_queries": kind in _NORMED_QUERIES,
        "fused_qkv": kind in _FUSED_QKV,
        "rotary": kind in _ROTARY_FUSED,
        "fused_gate": kind in _FUSED_GATE,
        "relu": not _is_gated(config)
        and _named(config, _ACTIVATIONS, "relu" if kind in _RELU_BY_DEFAULT else "") == "relu",
        "dropout": _probability(config, _DROPOUTS, kind in _DROPOUT_BY_DEFAULT),
        "attention_dropout": _probability(config, _ATTENTION_DROPOUTS, kind in _ATTENTION_DROPOUT_BY_DEFAULT),
        "softmax_in_float": kind not in _SOFTMAX_IN_PRECISION,
        "attention_softcap": bool(config.get("attn_logit_softcapping")),
        "final_softcap": bool(config.get("final_logit_softcapping")),
        "upcast_loss": not encoder and not _has_two_stacks(config) and kind != "t5",
        "head_transform": encoder,
        "token_types": _number(config, ("type_vocab_size",)) or (2 if kind in _TOKEN_TYPES else 1 if encoder else 0),
    }


_TEXT = ("text_config", "llm_config", "language_config", "thinker_config")
_TOWERS = ("vision_config", "audio_config", "vision_tower_config", "visual", "speech_config")
_ACTIVATIONS = ("activation_function", "hidden_act", "hidden_activation", "dense_act_fn", "activation")
_DROPOUTS = ("resid_pdrop", "hidden_dropout_prob", "hidden_dropout", "dropout", "dropout_rate", "residual_dropout")
_ATTENTION_DROPOUTS = ("attn_pdrop", "attention_probs_dropout_prob", "attention_dropout", "dropout_rate")


def _probability(config: Mapping[str, Any], names: tuple[str, ...], default: bool) -> bool:
    given = next((probability for name in names if isinstance(probability := config.get(name), int | float)), None)
    return default if given is None else given > 0


def _named(config: Mapping[str, Any], names: tuple[str, ...], default: str) -> str:
    return next((value for name in names if isinstance(value := config.get(name), str)), default)


def _is_gated(config: Mapping[str, Any]) -> bool:
    return config.get("is_gated_act") is True or str(config.get("feed_forward_proj", "")).startswith("gated")


def _towers(config: Mapping[str, Any], hidden: int) -> dict[str, Any]:
    """Return the parameters of vision and audio towers with their projectors, as far as they can be read."""
    nested = {name: part for name, part in config.items() if isinstance(part, Mapping) and name not in _TEXT}
    sizes = {name: _tower_parameters(part, hidden) for name, part in nested.items()}
    # A part of another name, such as `qformer_config`, is a tower where it has layers.
    found = {name: size for name, size in sizes.items() if name in _TOWERS or size is not None}
    whole = None if None in found.values() else sum(size for size in found.values() if size is not None)
    return {"tower": whole, "towers": tuple(found)}


def _tower_parameters(tower: Mapping[str, Any], hidden: int) -> int | None:
    """Return the parameters of a tower of transformer layers and its projectors of two layers; None if unreadable."""
    width = _number(tower, ("embed_dim", "hidden_size", "d_model", "width", "dim"))
    layers = _number(tower, ("depth", "num_hidden_layers", "encoder_layers", "layers", "num_layers"))
    if width is None or layers is None:
        return None
    ratio = tower.get("mlp_ratio")
    times = ratio if isinstance(ratio, int | float) and 0 < ratio < MAX_RATIO else 4
    wide = _number(tower, ("intermediate_size", "encoder_ffn_dim", "ffn_dim")) or int(times * width)
    gated = _named(tower, _ACTIVATIONS, "") in ("silu", "swiglu")
    patch = _number(tower, ("patch_size", "spatial_patch_size")) or 0
    frames = _number(tower, ("temporal_patch_size",)) or 1
    channels = _number(tower, ("num_channels", "in_channels", "in_chans", "num_mel_bins")) or 3
    of_layer = 4 * width * width + (3 if gated else 2) * width * wide
    merged = width * (_number(tower, ("spatial_merge_size",)) or 1) ** 2
    projector = merged * (merged if merged > width else hidden) + (merged if merged > width else hidden) * hidden
    inside = tower.get("deepstack_visual_indexes")  # layers whose results are projected as the last one's are
    projectors = 1 + (len(inside) if isinstance(inside, list) else 0)
    return layers * of_layer + channels * frames * patch**2 * width + projectors * projector


def _is_multi_query(config: Mapping[str, Any]) -> bool:
    by_default = config.get("model_type") == "falcon"
    return config.get("multi_query", by_default) is True and config.get("new_decoder_architecture") is not True


def _has_two_stacks(config: Mapping[str, Any]) -> bool:
    """Say whether a model has an encoder and a decoder: as its file says, else as its type has it by default."""
    if isinstance(stated := config.get("is_encoder_decoder"), bool):
        return stated
    classes = config.get("architectures")
    encodes = isinstance(classes, list) and bool(classes) and str(classes[0]).endswith("EncoderModel")
    return config.get("model_type") in (*_T5, *_ENCODER_DECODERS) and not encodes


def _stated_positions(kind: str, stated: int | None) -> int | None:
    """Return how many tokens of a row have positions; None where the file says nothing, or positions are relative."""
    if stated is None or kind in _T5:
        return None
    return stated - 2 if kind in _AFTER_PADDING else stated


def _number(config: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        value = config.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < MAX_NUMBER:
            return value
    return None
