"""Batches of the newest collators, with faults and without, and which checks should speak."""

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
    """What a collator made.

    Args:
        collator: The library and its collator.
        name: The fault; what is special about it for a healthy one.
        checks: Any of these is right; empty for a healthy one.
        batch: What came out, as JSON holds it.
        tokenizer: The folder of its tokenizer, if it has one.
        model: Its config.
        purpose: What `inspect_batch` is asked for.
    """

    collator: str
    name: str
    checks: tuple[str, ...]
    batch: Any
    tokenizer: str = ""
    model: dict[str, Any] | None = None
    purpose: str = "auto"

    def __str__(self) -> str:
        """Return collator and fault."""
        return f"{self.collator}: {self.name or 'healthy'}"

    def inspect(self) -> dict[str, str]:
        """Return the severity of each finding by check."""
        with tempfile.TemporaryDirectory() as folder:
            path, config = Path(folder) / "batch.json", Path(folder) / "config.json"
            path.write_text(json.dumps(self.batch), encoding="utf-8")
            config.write_text(json.dumps(self.model), encoding="utf-8")
            tokenizer = SAMPLES / self.tokenizer if self.tokenizer else None
            answer = inspect_batch(path, tokenizer, config if self.model else None, self.purpose)
        return {finding.check: finding.severity for finding in answer.findings}

    def is_right(self, found: dict[str, str]) -> bool:
        """Tell whether an expected check was found; for a healthy batch, whether nothing but remarks was."""
        if self.checks:
            return bool(found.keys() & set(self.checks))
        return not {check for check, severity in found.items() if severity != "info"}


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
