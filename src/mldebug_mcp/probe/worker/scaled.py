"""The user's model class, built small from its `config.json`: few layers, small width, the same ratios."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from .batches import crop, with_labels
from .failure import KnownFailure
from .report import Report
from .subject import Subject

WIDTH, LAYERS, HEADS = 64, 2, 4
LARGE_VOCABULARY, NARROW = 60_000, 32
"""Vocabulary above which the width is smaller, since nearly all parameters are in the embedding."""
MAX_LOGITS = 4_000_000
"""Rows x positions x vocabulary above which the batch is cut: the vocabulary stays as configured."""
MAX_ROWS, MAX_POSITIONS = 8, 64

WIDTHS = ("hidden_size", "n_embd", "d_model", "dim", "word_embed_proj_dim", "embedding_size")
DEPTHS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "encoder_layers", "decoder_layers",
          "num_decoder_layers")  # fmt: skip
HEAD_COUNTS = ("num_attention_heads", "n_head", "n_heads", "encoder_attention_heads", "decoder_attention_heads")
INNER = ("intermediate_size", "n_inner", "ffn_dim", "d_ff", "encoder_ffn_dim", "decoder_ffn_dim", "hidden_dim",
         "moe_intermediate_size", "shared_expert_intermediate_size")  # fmt: skip
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")
DROPOUTS = ("dropout", "attention_dropout", "hidden_dropout_prob", "attention_probs_dropout_prob", "resid_pdrop",
            "embd_pdrop", "attn_pdrop", "hidden_dropout", "activation_dropout", "classifier_dropout",
            "dropout_rate", "summary_first_dropout", "layerdrop")  # fmt: skip
MAX_EXPERTS = 4
DROPPED = ("quantization_config", "torch_dtype", "dtype")
LATER = ("layer_types", "mlp_layer_types", "max_window_layers", "sliding_window_pattern", "attention_layers")


def scaled_subject(config: dict[str, Any], batch: dict[str, torch.Tensor], report: Report) -> Subject:
    """Return the model of a configuration, small, with the loss that it computes itself from labels.

    Raises:
        KnownFailure: transformers is missing, does not know the model, or cannot build it this small.
    """
    try:
        import transformers
    except ImportError:
        message = "this interpreter has no transformers, which builds models from config.json; pip install transformers"
        raise KnownFailure("config", message) from None
    report.measured.setdefault("environment", {})["transformers"] = transformers.__version__
    small = scale_down(config)
    try:
        settings = transformers.AutoConfig.for_model(**small)
        model = _model_class(transformers, settings, config, batch)(settings)
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError, ImportError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise KnownFailure(
            "config", f"transformers {transformers.__version__} cannot build this model: {first}"
        ) from None
    report.note(
        f"{type(model).__name__} was built small, with fresh weights and without dropout: "
        f"{sum(one.numel() for one in model.parameters()):,} parameters"
    )
    ready = _ready(batch, settings, report)
    return Subject(model, ready, _own_loss, ours=True)


def scale_down(config: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration with few layers and a small width; ratios of heads and inner widths are kept."""
    small = {key: value for key, value in config.items() if key not in (*LATER, *DROPPED)}
    if isinstance(config.get("hidden_sizes"), list):
        return _scale_stages(small)
    change = _changes(config)
    for name, value in small.items():
        if _is_count(value) and name in change:
            small[name] = change[name](value)
        elif name.endswith("_config") and isinstance(value, dict):
            small[name] = scale_down(value)
    return small | {name: 0.0 for name in DROPOUTS if isinstance(config.get(name), (int, float))}


def _changes(config: dict[str, Any]) -> dict[str, Callable[[int], int]]:
    """Return how each number of a configuration is scaled."""
    width = next((int(config[name]) for name in WIDTHS if _is_count(config.get(name))), WIDTH)
    heads = next((int(config[name]) for name in HEAD_COUNTS if _is_count(config.get(name))), HEADS)
    vocabulary = config.get("vocab_size")
    most = NARROW if isinstance(vocabulary, int) and vocabulary > LARGE_VOCABULARY else WIDTH
    target, few = min(width, most), min(heads, HEADS)
    return {
        **dict.fromkeys(WIDTHS, lambda _: target),
        **dict.fromkeys(DEPTHS, lambda value: min(value, LAYERS)),
        **dict.fromkeys(HEAD_COUNTS, lambda _: few),
        **dict.fromkeys(INNER, lambda value: max(8, round(value * target / width / 8) * 8)),
        **dict.fromkeys(EXPERTS, lambda value: min(value, MAX_EXPERTS)),
        # The same number of query heads per key as configured, as far as so few heads allow.
        "num_key_value_heads": lambda value: max(1, few * value // heads),
        "head_dim": lambda _: target // few,
    }


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _scale_stages(small: dict[str, Any]) -> dict[str, Any]:
    """Scale a network of convolution stages: widths to a sixteenth, one block per stage."""
    stages = len(small["hidden_sizes"])
    small["hidden_sizes"] = [16 * 2 ** min(stage, 2) for stage in range(stages)]
    if isinstance(small.get("embedding_size"), int):
        small["embedding_size"] = 16
    if isinstance(small.get("depths"), list):
        small["depths"] = [1] * stages
    return small


def _model_class(transformers: Any, settings: Any, config: dict[str, Any], batch: dict[str, torch.Tensor]) -> Any:
    for name in config.get("architectures") or ():
        found = getattr(transformers, str(name), None)
        if isinstance(found, type) and issubclass(found, nn.Module):
            return found
    auto = transformers.AutoModelForCausalLM
    if "pixel_values" in batch:
        auto = transformers.AutoModelForImageClassification
    elif "labels" in batch and batch["labels"].ndim == 1:
        auto = transformers.AutoModelForSequenceClassification
    return auto.from_config if type(settings) in auto._model_mapping else transformers.AutoModelForMaskedLM.from_config


def _ready(batch: dict[str, torch.Tensor], settings: Any, report: Report) -> dict[str, torch.Tensor]:
    """Return a batch that the model takes, cut so that a step stays fast."""
    batch = with_labels(batch, report)
    ids = batch.get("input_ids")
    if ids is not None and ids.ndim == 2:
        vocabulary = int(getattr(settings, "vocab_size", None) or 1)
        rows, positions = min(MAX_ROWS, len(ids)), min(MAX_POSITIONS, ids.shape[1])
        while rows * positions * vocabulary > MAX_LOGITS and (rows > 2 or positions > 16):
            rows, positions = (max(2, rows // 2), positions) if rows > 2 else (rows, max(16, positions // 2))
        cut = crop(batch, rows, positions)
        if cut["input_ids"].shape != ids.shape:
            report.note(f"{rows} of {ids.shape[0]} rows are probed, {positions} of {ids.shape[1]} positions each")
        batch = cut
    return {name: one[:32] for name, one in batch.items()}


def _own_loss(model: nn.Module, batch: Any) -> torch.Tensor:
    output = model(**batch)
    loss = getattr(output, "loss", None)
    if loss is None:
        message = f"{type(model).__name__} gives no loss for {', '.join(batch)}; its batch needs labels that it knows"
        raise KnownFailure("config", message)
    return loss  # type: ignore[no-any-return]
