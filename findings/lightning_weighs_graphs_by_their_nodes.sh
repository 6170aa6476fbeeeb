#!/usr/bin/env bash
# The validation loss that Lightning logs of graphs depends on the size of a batch: large graphs count by their nodes.
#
# Guess: `self.log` in a validation step weighs each batch by its graphs, as it weighs images by their number, so that
#        the epoch has one mean for each batch size.
# Seen:  Lightning takes the first size that it finds in a batch of PyTorch Geometric, which is that of the nodes. A
#        mean over graphs of 4.6 is 9.7 in batches of one or two graphs, and 4.6 where one batch has them all. A model
#        that is worse at large graphs seems worse than it is, and the best checkpoint is one of large graphs. A
#        warning comes once. `batch_size=batch.num_graphs` gives the mean.
# With:  lightning 2.6.6, torch-geometric 2.8.1, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q lightning==2.6.6 torch-geometric==2.8.1 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | grep "^batches" | tee seen.txt
import lightning
import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader


class Model(lightning.LightningModule):
    """A model whose loss of each graph is known: the graph's label."""

    def validation_step(self, batch, number):
        """Log the mean loss of a batch, with and without its number of graphs."""
        self.log("logged", batch.y.mean())
        self.log("by_graphs", batch.y.mean(), batch_size=batch.num_graphs)


edges = torch.tensor([[0, 1], [1, 0]])
losses, sizes = [1.0, 1.0, 10.0, 10.0, 1.0], [2, 2, 90, 90, 2]
graphs = [
    Data(x=torch.zeros(size, 1), edge_index=edges, y=torch.tensor([loss]))
    for loss, size in zip(losses, sizes, strict=True)
]
quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "accelerator": "cpu"}
for size in (1, 2, 3, 5):
    (found,) = lightning.Trainer(**quiet).validate(Model(), DataLoader(graphs, batch_size=size), verbose=False)
    print(f"batches of {size} | mean over graphs 4.6 |", {name: round(value, 2) for name, value in found.items()})
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
batches of 1 | mean over graphs 4.6 | {'logged': 9.71, 'by_graphs': 4.6}
batches of 2 | mean over graphs 4.6 | {'logged': 9.71, 'by_graphs': 4.6}
batches of 3 | mean over graphs 4.6 | {'logged': 4.74, 'by_graphs': 4.6}
batches of 5 | mean over graphs 4.6 | {'logged': 4.6, 'by_graphs': 4.6}
SEEN
