#!/usr/bin/env bash
# A checkpoint of PyTorch's own torch.distributed.checkpoint resumes Adam without its moments, and does not say so.
#
# Guess: what was saved is loaded: `dcp.load` fills the state of model and optimizer, or stops at what does not fit.
# Seen:  it loads the keys that the new state has, and a new optimizer has no moments yet. They stay in the file: the
#        weights, the step and the learning rate are right, so the first loss is, too; then the run goes another
#        way than the unbroken one. `get_state_dict` makes the keys first, and loads all.
# With:  torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict


def start():
    """Return a new model with its optimizer."""
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    return model, torch.optim.Adam(model.parameters(), 0.01)


def train(model, optimizer, steps, seed):
    """Return the losses of some steps on rows of this seed."""
    torch.manual_seed(seed)
    losses = []
    for _ in range(steps):
        rows = torch.randn(64, 4)
        loss = (model(rows) - rows.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(round(loss.item(), 2))
    return losses


model, optimizer = start()
train(model, optimizer, 50, seed=1)
optimizer.param_groups[0]["lr"] = 0.05
dcp.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 50}, checkpoint_id="plain")
kept = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer), strict=True))
dcp.save(kept | {"step": 50}, checkpoint_id="named")
print("unbroken |", *train(model, optimizer, 8, seed=2)[::2])
for kind in ("plain", "named"):
    model, optimizer = start()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 0}
    if kind == "named":
        state |= dict(zip(("model", "optimizer"), get_state_dict(model, optimizer), strict=True))
    dcp.load(state, checkpoint_id=kind)
    if kind == "named":
        set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    else:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    moments, rate = len(optimizer.state), optimizer.param_groups[0]["lr"]
    losses = train(model, optimizer, 8, seed=2)[::2]
    print(kind, "|", *losses, "| step", state["step"], "| rate", rate, "| weights with moments", moments)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
unbroken | 2.24 1.6 1.21 1.22
plain | 2.24 1.52 1.25 1.14 | step 50 | rate 0.05 | weights with moments 0
named | 2.24 1.6 1.21 1.22 | step 50 | rate 0.05 | weights with moments 2
SEEN
