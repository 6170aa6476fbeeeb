#!/usr/bin/env bash
# Opacus logs NaN losses of a run that is well: by chance a batch has no row, and the mean over no row is NaN.
#
# Guess: a loader of batches of 3 has 3 rows in each; a NaN loss is a model that diverged, and all later losses are
#        NaN.
# Seen:  `make_private` puts a loader in its place that draws each row by chance, from none to three times the size.
#        The loss of an empty batch is NaN. Its step is noise alone, the weights stay finite, and the next loss is as
#        before. So the mean of an epoch is NaN where its losses are not, and a guard that ends a run at a NaN ends a
#        good one. The mean of losses gives the row of a small batch more weight than the step does, which divides by
#        the size that was asked for.
# With:  opacus 1.6.0, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q opacus==1.6.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import opacus
import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.randn(60, 4)
labels = (inputs[:, 0] > 0).long()
model = torch.nn.Linear(4, 2)
model, optimizer, loader = opacus.PrivacyEngine().make_private(
    module=model,
    optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
    data_loader=DataLoader(TensorDataset(inputs, labels), batch_size=3),
    noise_multiplier=0.5,
    max_grad_norm=1.0,
)
for epoch in range(6):
    losses, sizes = [], []
    for rows, goals in loader:
        optimizer.zero_grad()
        loss = cross_entropy(model(rows), goals)
        loss.backward()
        optimizer.step()
        losses.append(loss)
        sizes.append(len(goals))
    losses = torch.stack(losses)
    finite = all(weight.isfinite().all() for weight in model.parameters())
    with torch.no_grad():
        whole = cross_entropy(model(inputs), labels).item()
    print(f"epoch {epoch} | sizes {min(sizes)} to {max(sizes)}, NaN losses {losses.isnan().sum().item()}", end=" | ")
    print(f"mean {losses.mean().item():.2f}, of the others {losses.nanmean().item():.2f}", end=" | ")
    print(f"finite weights {finite}, loss of all rows {whole:.2f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
epoch 0 | sizes 1 to 8, NaN losses 0 | mean 0.69, of the others 0.69 | finite weights True, loss of all rows 0.60
epoch 1 | sizes 1 to 8, NaN losses 0 | mean 0.46, of the others 0.46 | finite weights True, loss of all rows 0.41
epoch 2 | sizes 1 to 7, NaN losses 0 | mean 0.37, of the others 0.37 | finite weights True, loss of all rows 0.35
epoch 3 | sizes 0 to 6, NaN losses 2 | mean nan, of the others 0.42 | finite weights True, loss of all rows 0.28
epoch 4 | sizes 0 to 6, NaN losses 2 | mean nan, of the others 0.23 | finite weights True, loss of all rows 0.28
epoch 5 | sizes 0 to 7, NaN losses 1 | mean nan, of the others 0.23 | finite weights True, loss of all rows 0.27
SEEN
