#!/usr/bin/env bash
# Gradient checkpointing changes a model with BatchNorm in evaluation: its running means take in each batch twice.
#
# Guess: `torch.utils.checkpoint` saves memory and costs time. It computes the same again, down to the dropout, so that
#        weights, losses and what evaluation makes of them stay what they were.
# Seen:  the losses and gradients of training are the same. Whatever a layer counts in its forward pass is counted a
#        second time as that pass is made again: `num_batches_tracked` is 20 after ten batches, and a momentum of 0.1
#        acts like 0.19. So evaluation differs, 0.16 in place of 0.29 here, and rows that a layer counts itself are
#        twice as many. `use_reentrant` makes no difference.
# With:  torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Counter(nn.Module):
    """Count the rows that pass."""

    rows = 0

    def forward(self, x):
        """Return what came."""
        self.rows += len(x)
        return x


for name, options in (
    ("without", None),
    ("use_reentrant=False", {"use_reentrant": False}),
    ("use_reentrant=True", {"use_reentrant": True}),
):
    torch.manual_seed(0)
    counter, norm = Counter(), nn.BatchNorm1d(4)
    body, head = nn.Sequential(nn.Linear(4, 4), counter, norm, nn.Dropout(0.5)), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
    for _ in range(10):
        rows = (torch.randn(32, 4) + 3).requires_grad_()
        hidden = checkpoint(body, rows, **options) if options else body(rows)
        loss = (head(hidden) - rows.mean(1, keepdim=True).detach()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    body.eval()
    last = (head(body(rows)) - rows.mean(1, keepdim=True)).square().mean()
    print(f"{name} | loss of training {loss.item():.4f}, of evaluation {last.item():.4f}", end=" | ")
    print("batches tracked", norm.num_batches_tracked.item(), "rows counted", counter.rows - len(rows))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
without | loss of training 0.2624, of evaluation 0.2857 | batches tracked 10 rows counted 320
use_reentrant=False | loss of training 0.2624, of evaluation 0.1641 | batches tracked 20 rows counted 640
use_reentrant=True | loss of training 0.2624, of evaluation 0.1641 | batches tracked 20 rows counted 640
SEEN
