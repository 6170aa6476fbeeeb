from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from torch import Tensor, nn

from mldebug_mcp import read_run
from mldebug_mcp.recorder import recorder as module
from tests.recorder.loops import BATCH, ROWS, classifier, loader

PAGE = (Path(__file__).parent.parent.parent / "docs" / "recorder.md").read_text(encoding="utf-8")


def test_the_recorder_of_its_page_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = next(one for one in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "recorder.steps(" in one)
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def train_step(batch: list[Tensor]) -> Tensor:
        loss = nn.functional.cross_entropy(model(batch[0]), batch[1])
        torch.autograd.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    names = {"model": model, "optimizer": optimizer, "loader": loader(), "train_step": train_step}
    exec(compile(code, "recorder.md", "exec"), names)  # noqa: S102 - our own example
    recorder = names["recorder"]
    assert isinstance(recorder, module.Recorder)
    recorder.close()
    assert len(read_run(tmp_path / "runs" / "a")["loss"]) == ROWS // BATCH


def test_its_page_names_every_adapter() -> None:
    import mldebug_mcp.recorder

    assert [name for name in mldebug_mcp.recorder.__all__ if name not in PAGE and name != "Alarm"] == []
    assert all(getattr(mldebug_mcp.recorder, name).__doc__ for name in mldebug_mcp.recorder.__all__)
