"""Ways to print a log that no framework has: every loss, every step."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from tests.logs.reading import read

from mldebug_mcp.logs import read_run

COUNT = 24
LOSSES = [round(2.3 * math.exp(-step / 9) + 0.1, 3) for step in range(COUNT)]
EVALUATED = [round(2.3 * math.exp(-step / 10) + 0.2, 3) for step in range(COUNT)]
BOX = (
    "┏━━━━━━━━┳━━━━━━━━┓\n┃ Metric ┃ Value  ┃\n┡━━━━━━━━╇━━━━━━━━┩\n"
    "│ step   │ {0:<6} │\n│ loss   │ {1:<6} │\n│ lr     │ 0.001  │\n└────────┴────────┘\n"
)
PRINTED = {
    "phases beside a score": "epoch {0:03d} | train {1} | val {2} | acc 70.1% | lr 1.0e-03 | 12s\n",
    "a box of rich": BOX,
    "tqdm-loggable": "\rProgress on:train {0}it/240it rate:2.1it/s remaining:00:10 elapsed:00:05 postfix:loss={1}",
    "arrows": "[{0:>5}/240] loss → {1}  lr → 1e-3\n",
    "Catalyst": "train ({0}/24) acc: 0.7 | loss: {1} | lr: 0.001\nvalid ({0}/24) acc: 0.7 | loss: {2} | lr: 0.001\n",
    "the place in the code": "INFO - train.py:100 - loop :: step={0} train/loss={1} val/loss={2}\n",
    "Paddle": "INFO: [Train][Epoch 1/1][Iter: {0}/240]lr(LinearWarmup): 0.00100000, loss: {1}, ips: 5.1 samples/s\n",
}
TABLES = {
    "Comet": ("metricName,metricValue,timestamp,step,epoch\n", "train_loss,{1},{0},{0},1\nval_loss,{2},{0},{0},1\n"),
    "Aim": (
        "run.hash,metric.name,metric.context,step,value\n",
        "abc,loss,{{'subset': 'train'}},{0},{1}\nabc,loss,{{'subset': 'val'}},{0},{2}\n",
    ),
    "German": ("Schritt;Verlust;Lernrate\n", "{0};{1};0.001\n"),
}


def written(form: str) -> str:
    rows = zip(range(1, COUNT + 1), LOSSES, EVALUATED, strict=True)
    return "".join(form.format(*row) for row in rows)


@pytest.mark.parametrize("way", PRINTED)
def test_every_loss_stands_at_its_step(tmp_path: Path, way: str) -> None:
    run = read(tmp_path, written(PRINTED[way]))
    assert run["loss"].value.tolist() == LOSSES
    assert run["loss"].step.tolist() == list(range(1, COUNT + 1))
    if "{2}" in PRINTED[way]:
        assert run["eval_loss"].value.tolist() == EVALUATED
    if "lr" in PRINTED[way]:
        assert run["learning_rate"].value.tolist() == [0.001] * COUNT
    assert "train.py" not in run


@pytest.mark.parametrize("way", TABLES)
def test_every_loss_of_a_table_stands_at_its_step(tmp_path: Path, way: str) -> None:
    head, row = TABLES[way]
    (tmp_path / "export.csv").write_text(head + written(row), encoding="utf-8")
    run = read_run(tmp_path / "export.csv")
    assert run["loss"].value.tolist() == LOSSES
    assert run["loss"].step.tolist() == list(range(1, COUNT + 1))
    if "{2}" in row:
        assert run["eval_loss"].value.tolist() == EVALUATED


SENTENCES = {
    "a sentence": "After {0} steps the training loss is {1} and the validation loss is {2}.\n",
    "attributes": '<record step="{0}" loss="{1}" val_loss="{2}"/>\n',
    "names in quotes": '"step"={0}, "loss"={1}, "val_loss"={2}\n',
    "a tuple": "('step', {0}, 'loss', {1}, 'val_loss', {2})\n",
    "out of how many": "{0}/24: loss/train {1}, loss/val {2}\n",
    "two phases and one name": "iter {0} (train/val) loss: {1}/{2}\n",
    "SageMaker": "#quality_metric: host=algo-1, epoch={0}, train loss <loss>={1}\n"
    "#quality_metric: host=algo-1, epoch={0}, validation loss <loss>={2}\n",
    "a hash of Ruby": "{{:step=>{0}, :loss=>{1}, :val_loss=>{2}}}\n",
    "Julia": "┌ Info: train\n│   step = {0}\n│   loss = {1}f0\n└   val_loss = {2}f0\n",
    "R": '[1] "step {0} loss {1} val_loss {2}"\n',
    "documents of YAML": "---\nstep: {0}\nloss: {1}\nval_loss: {2}\n",
    "structlog": "2026-01-01T00:00:00Z [info     ] train_step      loss={1} lr=0.001 step={0} val_loss={2}\n",
    "Kubernetes": "2026-01-01T00:00:00.123456789Z stdout F step={0} loss={1} val_loss={2}\n",
    "a dataclass": "Metrics(step={0}, loss={1}, val_loss={2})\n",
    "a table of Markdown": "| {0} | {1} | {2} |\n",
    "a frame of pandas": "{3:<4}{0:>4}  {1:.4f}  {2:.4f}\n",
}
HEADS = {
    "a table of Markdown": "| step | loss | val_loss |\n|---:|---:|---:|\n",
    "a frame of pandas": "    step    loss  val_loss\n",
}


@pytest.mark.parametrize("way", SENTENCES)
def test_every_loss_of_both_phases_stands_at_its_step(tmp_path: Path, way: str) -> None:
    rows = enumerate(zip(range(1, COUNT + 1), LOSSES, EVALUATED, strict=True))
    run = read(tmp_path, HEADS.get(way, "") + "".join(SENTENCES[way].format(*row, at) for at, row in rows))
    assert run["loss"].step.tolist() == list(range(1, COUNT + 1))
    assert run["loss"].value.tolist() == LOSSES
    assert run["eval_loss"].value.tolist() == EVALUATED
