#!/usr/bin/env bash
# mmengine saves averaged weights under `state_dict`, and the weights that were trained under `ema_state_dict`.
#
# Guess: `state_dict` has the weights that the optimizer moves, and `ema_state_dict` their average.
# Seen:  `EMAHook` exchanges the two in each file. Whoever loads `state_dict` into a plain PyTorch loop goes on from the
#        average, with the moments of other weights; who takes `ema_state_dict` for evaluation evaluates the raw
#        weights. In a short run the average is mostly the start: 0.49 where training is at 20. Validation in the run is
#        of the average, so the val metrics seem to lag behind a falling loss. Without the hook `state_dict` has the
#        weights that were trained.
# With:  mmengine 0.10.7, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q mmengine==0.10.7 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch
from mmengine.evaluator import BaseMetric
from mmengine.model import BaseModel
from mmengine.runner import Runner
from torch.utils.data import DataLoader


class Climbing(BaseModel):
    """A model of one weight, which goes up by 0.1 in each step."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))

    def forward(self, row, mode="loss"):
        return {"loss": -self.weight} if mode == "loss" else [self.weight.item()]


class Weight(BaseMetric):
    default_prefix = "seen"

    def process(self, data_batch, data_samples):
        self.results.append(data_samples[0])

    def compute_metrics(self, results):
        print(f"validated weight {results[0]:.2f}")
        return {"weight": results[0]}


def run(hooks):
    rows = [{"row": torch.zeros(1)}] * 100
    runner = Runner(
        Climbing(),
        "work",
        train_dataloader=DataLoader(rows),
        val_dataloader=DataLoader(rows[:1]),
        val_evaluator=[Weight()],
        train_cfg={"by_epoch": True, "max_epochs": 2},
        val_cfg={},
        optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.1}},
        custom_hooks=[{"type": hook} for hook in hooks],
        log_level="ERROR",
        experiment_name="_".join(["run", *hooks]),
    )
    runner.train()
    saved = torch.load("work/epoch_2.pth", weights_only=False)
    print("after two epochs", *hooks, f"| trained weight {runner.model.weight.item():.2f} | in the file", end="")
    for name in ("state_dict", "ema_state_dict"):
        print(f" {name}", {key: round(value.item(), 2) for key, value in saved.get(name, {}).items()}, end="")
    print()


run(["EMAHook"])
run([])
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
validated weight 0.20
validated weight 0.49
after two epochs EMAHook | trained weight 20.00 | in the file state_dict {'weight': 0.49} ema_state_dict {'steps': 200, 'module.weight': 20.0}
validated weight 10.00
validated weight 20.00
after two epochs | trained weight 20.00 | in the file state_dict {'weight': 20.0} ema_state_dict {}
SEEN
