"""A loss that grows without end is not blamed on weight decay, which only shrinks weights."""

from __future__ import annotations

import json
from pathlib import Path

from mldebug_mcp import diagnose_run


def test_a_loss_that_grows_fourfold_a_step_is_not_blamed_on_decay(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"lr": 1.5, "weight_decay": 0.1, "optimizer": "sgd"}))
    rows = [{"step": step, "loss": 100.0 * 4.0**step, "lr": 1.5} for step in range(20)]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, rows)))
    leading = diagnose_run(tmp_path).hypotheses[0]
    assert leading.cause == "lr_too_high"
