"""Numbers with units, in text and in the cells of tables: each metric comes out in one unit, whatever its lines say."""

from __future__ import annotations

from pathlib import Path

import pytest

from mldebug_mcp import diagnose_run, read_metric

FALLS = [f"{8 - step / 20:.3f}" for step in range(60)]


@pytest.mark.parametrize("pair", ["tok/s {}", "tok/s: {}", "tok/s={}"])
def test_thousands_and_millions_behind_a_rate_per_second_count(tmp_path: Path, pair: str) -> None:
    rates = ["1.23M"] * 40 + ["310K"] * 20
    lines = [
        f"step {step} | loss {loss} | {pair.format(rate)}"
        for step, (loss, rate) in enumerate(zip(FALLS, rates, strict=True))
    ]
    (tmp_path / "train.log").write_text("\n".join(lines))
    answer = read_metric(str(tmp_path), ["tok/s"]).series[0]
    assert [value for _, value in answer.points[:: len(answer.points) - 1]] == [1.23e6, 310e3]
    texts = [event.text for event in diagnose_run(str(tmp_path)).sheet.events]
    assert "tok/s from about 1230000 to 310000 (stays)" in texts
