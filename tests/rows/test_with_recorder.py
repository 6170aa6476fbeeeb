"""What the recorder writes down of a loop is what the loop was fed, and what is drawn again without the recording."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mldebug_mcp import rows_at
from mldebug_mcp.recorder import Recorder

torch = pytest.importorskip("torch")


def test_recorded_rows_are_those_that_were_fed_and_those_that_are_drawn_again(tmp_path: Path) -> None:
    data = torch.arange(40.0)[:, None]
    loader = torch.utils.data.DataLoader(
        data, batch_size=8, shuffle=True, generator=torch.Generator().manual_seed(3), drop_last=True
    )
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    fed, log = [], []
    with Recorder(tmp_path / "recorded") as recorder:
        recorder.watch(model, optimizer)
        for _ in range(2):
            for batch in recorder.steps(loader):
                fed.append([int(one) for one in batch[:, 0].tolist()])
                loss = (model(batch / 40) ** 2).mean()
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                recorder.log(loss=loss)
                log.append({"step": len(fed), "loss": float(loss.detach())})
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in log))
    assert len(fed) == 10
    for step, rows in enumerate(fed, 1):
        recorded = rows_at(tmp_path / "recorded", step)
        drawn = rows_at(tmp_path / "log.jsonl", step, sampler="shuffle", seed=3, batch_size=8, rows=40, drop_last=True)
        assert (recorded.source, drawn.source) == ("recorded", "reconstructed")
        assert recorded.batches[0].rows == drawn.batches[0].rows == rows
        assert {one.row: one.before for one in recorded.rows} == {one.row: one.before for one in drawn.rows}
