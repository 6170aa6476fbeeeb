"""What is known of a batch besides the content of its file."""

from __future__ import annotations

from dataclasses import dataclass, field

from mldebug_mcp.batch.batch import Purpose
from mldebug_mcp.batch.model_config import ModelConfig
from mldebug_mcp.batch.tokenizer import Tokenizer


@dataclass(slots=True)
class Context:
    """What is known besides the file's content: the same for each piece of a large file.

    Args:
        path: As the user gave it.
        formats: The readers used.
        purpose: As the user gave it, or None to infer it.
        first: The number of the piece's first row.
    """

    path: str
    formats: tuple[str, ...] = ()
    purpose: Purpose | None = None
    tokenizer: Tokenizer | None = None
    model: ModelConfig = field(default_factory=ModelConfig)
    first: int = 0
