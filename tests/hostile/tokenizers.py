"""Tokenizer folders that want more than to be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SECRET = [f"hunter{number}" for number in range(24)]
"""Lines of a file outside the roots, each of which would be the text of one id."""


def naming_a_file(
    folder: Path, key: str, file: Path, tokenizer_class: str = "BertTokenizer", *, whole: bool = False
) -> Path:
    """Write a tokenizer whose configuration names a file elsewhere; `whole`: beside a tokenizer.json."""
    folder.mkdir(parents=True, exist_ok=True)
    if whole:
        words = {word: number for number, word in enumerate(["<unk>", "hello", *map(chr, range(97, 123))])}
        model = {"type": "WordLevel", "unk_token": "<unk>", "vocab": words}
        (folder / "tokenizer.json").write_text(
            json.dumps({"added_tokens": [], "pre_tokenizer": {"type": "Whitespace"}, "model": model})
        )
    (folder / "vocab.txt").touch()
    (folder / "vocab.json").write_text("{}")
    settings: dict[str, Any] = {"tokenizer_class": tokenizer_class, key: str(file)}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def batch_of_ids(file: Path, count: int = 24) -> Path:
    """Write a batch that holds each id once, so that an answer shows the text of each."""
    file.write_text(json.dumps({"input_ids": [list(range(count))], "labels": [list(range(count))]}))
    return file
