"""Models that the probe makes itself, and their batches.

They are tiny ones for a bare batch, and the user's class built small.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from .outputs import IGNORED_LABEL
from .report import KnownFailure, Report
from .subject import Subject


def to_batch(columns: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Return the columns as tensors.

    Raises:
        KnownFailure: rows of a column differ in length, or hold something other than numbers.
    """
    batch: dict[str, torch.Tensor] = {}
    for name, values in columns.items():
        try:
            batch[name] = torch.tensor(values)
        except (ValueError, TypeError, RuntimeError) as error:
            message = f"column {name!r} is not a regular array of numbers ({error}); pad the rows to one length"
            raise KnownFailure("batch", message) from None
    return batch


def with_labels(batch: dict[str, torch.Tensor], report: Report) -> dict[str, torch.Tensor]:
    """Return the batch; token ids without labels are their own labels, except where they are padding."""
    ids, mask = batch.get("input_ids"), batch.get("attention_mask")
    if "labels" in batch or ids is None or ids.ndim != 2:
        return batch
    report.note("the batch has no labels: its input_ids, except padding, were taken as labels")
    return {**batch, "labels": ids if mask is None else torch.where(mask.bool(), ids, IGNORED_LABEL)}


def crop(batch: dict[str, torch.Tensor], rows: int, positions: int) -> dict[str, torch.Tensor]:
    """Return at most this many rows and positions: those where most labels are trained."""
    labels, ids = batch.get("labels"), batch.get("input_ids")
    if labels is None or ids is None or ids.ndim != 2 or (ids.shape[0] <= rows and ids.shape[1] <= positions):
        return {name: tensor[:rows] for name, tensor in batch.items()}
    if labels.shape != ids.shape:
        return {
            name: tensor[:rows, :positions] if tensor.shape == ids.shape else tensor[:rows]
            for name, tensor in batch.items()
        }
    trained = (labels >= 0).sum(1)
    chosen = trained.argsort(descending=True, stable=True)[:rows].sort().values
    start = _busiest(labels[chosen] >= 0, positions)
    window = slice(start, start + positions)
    return {
        name: tensor[chosen][:, window] if tensor.shape == ids.shape else tensor[chosen]
        for name, tensor in batch.items()
    }


def _busiest(trained: torch.Tensor, positions: int) -> int:
    """Return where a window of this length holds most trained labels."""
    counts = torch.nn.functional.pad(trained.sum(0).cumsum(0), (1, 0))
    if len(counts) <= positions + 1:
        return 0
    return int((counts[positions:] - counts[:-positions]).argmax())


# The probe's own tiny models for a bare batch: a transformer for token ids, a perceptron for everything else.


TINY_WIDTH = 64
TINY_HEADS = 4
TINY_LAYERS = 2
TINY_MAX_ROWS = 16
TINY_MAX_POSITIONS = 128
TINY_MAX_LOGITS = 8_000_000
"""Rows x positions x vocabulary above which the vocabulary is cut to the ids that occur: steps would take seconds."""


class TinyTransformer(nn.Module):
    """A causal pre-norm transformer; with `per_row`, it gives one prediction for each row instead of each position."""

    def __init__(self, vocabulary: int, positions: int, outputs: int, *, per_row: bool) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, TINY_WIDTH)
        self.positions = nn.Embedding(positions, TINY_WIDTH)
        block = nn.TransformerEncoderLayer(
            TINY_WIDTH, TINY_HEADS, 4 * TINY_WIDTH, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(block, TINY_LAYERS, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(TINY_WIDTH)
        self.head = nn.Linear(TINY_WIDTH, outputs, bias=False)
        self.per_row = per_row
        for table in (self.tokens, self.positions):
            nn.init.normal_(table.weight, std=0.02)
        nn.init.normal_(self.head.weight, std=0.02)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        """Take ids (rows, positions), give logits (rows, positions, outputs) or (rows, outputs)."""
        length = input_ids.shape[1]
        mask = torch.ones(length, length, dtype=torch.bool, device=input_ids.device).triu(1)
        hidden = self.tokens(input_ids) + self.positions.weight[:length]
        hidden = self.norm(self.blocks(hidden, mask=None if self.per_row else mask))
        return self.head(hidden.mean(1) if self.per_row else hidden)  # type: ignore[no-any-return]


def tiny_subject(batch: dict[str, torch.Tensor], report: Report) -> Subject:
    """Return the tiny model that fits a batch, with the loss that its labels ask for.

    Raises:
        KnownFailure: the batch lacks inputs or labels.
    """
    if not batch:
        raise KnownFailure("batch", "the batch is empty; give input_ids and labels, or float inputs and labels")
    batch = with_labels(batch, report)
    if "labels" not in batch or len(batch) < 2:
        raise KnownFailure("batch", f"the batch has {', '.join(batch)}; the probe needs inputs and labels")
    return _of_tokens(batch, report) if "input_ids" in batch else _of_values(batch, report)


def _of_tokens(batch: dict[str, torch.Tensor], report: Report) -> Subject:
    whole = batch["input_ids"].shape
    batch = crop(batch, TINY_MAX_ROWS, TINY_MAX_POSITIONS)
    ids, labels = batch["input_ids"].long(), batch["labels"]
    if ids.shape != whole:
        report.note(f"{ids.shape[0]} of {whole[0]} rows are probed, {ids.shape[1]} of {whole[1]} positions each")
    per_row = labels.shape != ids.shape
    if bool((ids < 0).any()):
        raise KnownFailure(
            "batch", f"input_ids holds {int(ids.min())}; ids must not be negative (is -100 in the inputs?)"
        )
    highest = int(max(ids.max(), 0 if per_row else labels.max())) + 1
    if ids.numel() * highest > TINY_MAX_LOGITS:
        ids, labels, count = _renumbered(ids, labels, per_row=per_row)
        report.note(f"the ids that occur were renumbered, so the vocabulary is {count} and not {highest}")
        highest = count
    outputs = int(labels.max()) + 1 if per_row else highest
    model = TinyTransformer(highest, ids.shape[1], max(2, outputs), per_row=per_row)
    if per_row:
        return Subject(model, {"input_ids": ids, "labels": labels.reshape(-1).long()}, _row_loss, causal=False)
    return Subject(model, {"input_ids": ids, "labels": labels.long()}, _next_token_loss, causal=True)


def _renumbered(ids: torch.Tensor, labels: torch.Tensor, *, per_row: bool) -> tuple[torch.Tensor, torch.Tensor, int]:
    known = torch.unique(ids if per_row else torch.cat((ids.flatten(), labels[labels >= 0].flatten().long())))
    ids = torch.searchsorted(known, ids)
    if not per_row:
        labels = torch.where(labels >= 0, torch.searchsorted(known, labels.long().clamp(min=0)), labels)
    return ids, labels, len(known)


def _of_values(batch: dict[str, torch.Tensor], report: Report) -> Subject:
    name = next(name for name in batch if name != "labels")
    inputs, labels = batch[name][:64].float(), batch["labels"][:64]
    if len(batch[name]) > 64:
        report.note(f"64 rows are probed, of {len(batch[name])}")
    if len(inputs) != len(labels):
        raise KnownFailure("batch", f"{name} has {len(inputs)} rows and labels {len(labels)}; they must be as many")
    flat = inputs[0].numel()
    values = labels.is_floating_point()
    outputs = labels[0].numel() if values else max(2, int(labels.max()) + 1)
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(flat, 128), nn.GELU(), nn.Linear(128, 128), nn.GELU(), nn.Linear(128, outputs)
    )
    if values:
        return Subject(model, (inputs, labels.float().reshape(len(labels), -1)), _squared_error)
    return Subject(model, (inputs, labels.long().reshape(-1)), _class_loss)


def _next_token_loss(model: nn.Module, batch: Any) -> torch.Tensor:
    logits = model(batch["input_ids"])[:, :-1]
    return functional.cross_entropy(logits.flatten(0, 1), batch["labels"][:, 1:].flatten())


def _row_loss(model: nn.Module, batch: Any) -> torch.Tensor:
    return functional.cross_entropy(model(batch["input_ids"]), batch["labels"])


def _class_loss(model: nn.Module, batch: Any) -> torch.Tensor:
    return functional.cross_entropy(model(batch[0]), batch[1])


def _squared_error(model: nn.Module, batch: Any) -> torch.Tensor:
    return functional.mse_loss(model(batch[0]), batch[1])


# The user's model class, built small from its `config.json`: few layers, small width, the same ratios.


SCALED_WIDTH = 64
SCALED_LAYERS = 2
SCALED_HEADS = 4
LARGE_VOCABULARY = 60_000
"""Vocabulary above which the width is smaller, since nearly all parameters are in the embedding."""
LARGE_VOCABULARY_WIDTH = 32
"""Width of a model whose vocabulary is above `LARGE_VOCABULARY`."""
SCALED_MAX_LOGITS = 4_000_000
"""Rows x positions x vocabulary above which the batch is cut: the vocabulary stays as configured."""
SCALED_MAX_ROWS = 8
SCALED_MAX_POSITIONS = 64
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
        _silence_dropout(settings)
        model = _model_class(transformers, settings, config, batch)(settings)
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError, ImportError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise KnownFailure(
            "config", f"transformers {transformers.__version__} cannot build this model: {first}"
        ) from None
    report.note(
        f"{type(model).__name__} was built small, with fresh weights and without dropout: "
        f"{sum(parameter.numel() for parameter in model.parameters()):,} parameters"
    )
    ready = _ready(batch, settings, report)
    return Subject(model, ready, _own_loss)


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
    return small


def _silence_dropout(settings: Any) -> None:
    """Set all dropout of a configuration to 0, that of its parts and of transformers' defaults among it."""
    for name, value in vars(settings).items():
        if name in DROPOUTS and isinstance(value, (int, float)):
            setattr(settings, name, 0.0)
        elif name.endswith("_config") and hasattr(value, "to_dict"):
            _silence_dropout(value)


def _changes(config: dict[str, Any]) -> dict[str, Callable[[int], int]]:
    """Return how each number of a configuration is scaled."""
    width = next((int(config[name]) for name in WIDTHS if _is_count(config.get(name))), SCALED_WIDTH)
    heads = next((int(config[name]) for name in HEAD_COUNTS if _is_count(config.get(name))), SCALED_HEADS)
    vocabulary = config.get("vocab_size")
    most = LARGE_VOCABULARY_WIDTH if isinstance(vocabulary, int) and vocabulary > LARGE_VOCABULARY else SCALED_WIDTH
    target, few = min(width, most), min(heads, SCALED_HEADS)
    return {
        **dict.fromkeys(WIDTHS, lambda _: target),
        **dict.fromkeys(DEPTHS, lambda value: min(value, SCALED_LAYERS)),
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
        rows, positions = min(SCALED_MAX_ROWS, len(ids)), min(SCALED_MAX_POSITIONS, ids.shape[1])
        while rows * positions * vocabulary > SCALED_MAX_LOGITS and (rows > 2 or positions > 16):
            rows, positions = (max(2, rows // 2), positions) if rows > 2 else (rows, max(16, positions // 2))
        cut = crop(batch, rows, positions)
        if cut["input_ids"].shape != ids.shape:
            report.note(f"{rows} of {ids.shape[0]} rows are probed, {positions} of {ids.shape[1]} positions each")
        batch = cut
    return {name: tensor[:32] for name, tensor in batch.items()}


def _own_loss(model: nn.Module, batch: Any) -> torch.Tensor:
    output = model(**batch)
    loss = getattr(output, "loss", None)
    if loss is None:
        message = f"{type(model).__name__} gives no loss for {', '.join(batch)}; its batch needs labels that it knows"
        raise KnownFailure("config", message)
    return loss  # type: ignore[no-any-return]
