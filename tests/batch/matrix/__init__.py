"""Batches of the newest collators and image processors, with faults and without, and which checks are right.

The real collators of TRL, Transformers, sentence-transformers, Axolotl and torchtune made the batches in `samples`. A
fault was put where users put it: in the rows that go into the collator where that can be, else into what comes out. A
file is a list of `fault` ("" for a healthy batch), `checks` and `batch`, and where they differ from the usual ones
`tokenizer`, `model` and `purpose`. `processors.py` makes batches of images on the spot.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mldebug_mcp.judge import inspect_batch

SAMPLES = Path(__file__).parent / "samples"


@dataclass(frozen=True, slots=True)
class Sample:
    """What a collator or a processor made.

    Args:
        collator: What made it.
        name: The fault; what is special about it for a healthy one.
        checks: Any of these is right; empty for a healthy one.
        batch: What came out, as JSON holds it, or of tensors.
        tokenizer: The folder of its tokenizer, if it has one.
        model: Its config.
        purpose: What `inspect_batch` is asked for.
        processor: The image processor of its model, if it has one.
    """

    collator: str
    name: str
    checks: tuple[str, ...]
    batch: Any
    tokenizer: str = ""
    model: dict[str, Any] | None = None
    purpose: str = "auto"
    processor: Any = None

    def __str__(self) -> str:
        """Return collator and fault."""
        return f"{self.collator}: {self.name or 'healthy'}"

    def inspect(self) -> dict[str, str]:
        """Return the severity of each finding by check."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            path = self._saved(folder)
            if self.model is not None:
                (folder / "config.json").write_text(json.dumps(self.model), encoding="utf-8")
            if self.processor is not None:
                self.processor.save_pretrained(folder)
            tokenizer = SAMPLES / self.tokenizer if self.tokenizer else None
            answer = inspect_batch(path, tokenizer, folder if self.model is not None else None, self.purpose)
        return {finding.check: finding.severity for finding in answer.findings}

    def _saved(self, folder: Path) -> Path:
        path = folder / "batch.json"
        try:
            path.write_text(json.dumps(self.batch), encoding="utf-8")
        except TypeError:  # tensors
            import torch

            path = folder / "batch.pt"
            torch.save(self.batch, path)
        return path

    def is_right(self, found: dict[str, str]) -> bool:
        """Tell whether an expected check was found; for a healthy batch, whether nothing but remarks was."""
        if self.checks:
            return bool(found.keys() & set(self.checks))
        return all(severity == "info" for severity in found.values())


def samples() -> Iterator[Sample]:
    """Yield all samples that are stored."""
    for path in sorted(SAMPLES.glob("*.json")):
        for entry in json.loads(path.read_text(encoding="utf-8")):
            yield Sample(
                path.stem,
                entry["fault"] or entry.get("name", ""),
                tuple(entry["checks"]),
                entry["batch"],
                entry.get("tokenizer", "chat"),
                entry.get("model"),
                entry.get("purpose", "auto"),
            )
