"""The model's `config.json`: the few numbers that a batch has to fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mldebug_mcp.config_json import read_config_json

_IMAGE_TOKEN = ("image_token_id", "image_token_index")

_RELATIVE = ("rope_theta", "rope_scaling", "rope_parameters", "rotary_dim", "rotary_pct", "alibi")
"""Settings of models in which only the distance between tokens counts, so that padding in front moves nothing."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """What a batch is checked against. Everything is None, empty or False if the file does not say."""

    vocab_size: int | None = None
    bos: int | None = None
    eos: tuple[int, ...] = ()
    pad: int | None = None
    num_labels: int | None = None
    max_positions: int | None = None
    encoder_decoder: bool = False
    decoder_start: int | None = None
    token_classification: bool = False
    relative_positions: bool = False
    image_token: int | None = None
    image_merge: int | None = None
    image_tokens: int | None = None
    given: bool = field(default=False)


def read_model_config(path: str | Path) -> ModelConfig:
    """Read a model's `config.json`, or the one in a folder.

    Raises:
        InputError: it cannot be read, or is not a JSON object.
    """
    settings, _ = read_config_json(path)
    return _from(settings)


def _from(settings: Mapping[str, object]) -> ModelConfig:
    text = settings.get("text_config")
    inner: Mapping[str, object] = text if isinstance(text, dict) else {}

    def number(*names: str) -> int | None:
        for source in (inner, settings):
            for name in names:
                value = source.get(name)
                if isinstance(value, int) and not isinstance(value, bool):
                    return value
        return None

    eos = settings.get("eos_token_id", inner.get("eos_token_id"))
    ends = [eos] if isinstance(eos, int) else eos if isinstance(eos, list) else []
    vision = settings.get("vision_config")
    sight: Mapping[str, object] = vision if isinstance(vision, dict) else {}
    return ModelConfig(
        vocab_size=number("vocab_size"),
        bos=number("bos_token_id"),
        eos=tuple(end for end in ends if isinstance(end, int)),
        pad=number("pad_token_id"),
        num_labels=_classes(settings, number("num_labels", "num_classes")),
        max_positions=number("max_position_embeddings", "n_positions"),
        decoder_start=number("decoder_start_token_id"),
        encoder_decoder=settings.get("is_encoder_decoder") is True,
        token_classification="ForTokenClassification" in str(settings.get("architectures")),
        relative_positions=any(name in source for source in (inner, settings) for name in _RELATIVE),
        image_token=number(*_IMAGE_TOKEN),
        image_merge=_whole(sight.get("spatial_merge_size")),
        image_tokens=_image_tokens(settings),
        given=True,
    )


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _classes(settings: Mapping[str, object], number: int | None) -> int | None:
    names = settings.get("id2label")
    return len(names) if isinstance(names, dict) and names else number


def _image_tokens(settings: Mapping[str, object]) -> int | None:
    """Return how many placeholders an image takes, where the configuration fixes that."""
    for name in ("image_seq_length", "mm_tokens_per_image", "image_seq_len"):
        if (told := _whole(settings.get(name))) is not None:
            return told
    return None
