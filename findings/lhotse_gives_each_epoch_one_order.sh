#!/usr/bin/env bash
# A shuffled sampler of lhotse gives each epoch the very same batches in the same order, in one process as well.
#
# Guess: `shuffle=True` draws a new order for each pass, as PyTorch's loader does where one process trains alone.
# Seen:  the order is of the seed and the epoch number, and a pass does not count the number up. Ten passes over a
#        `DataLoader` have one order, and each batch the same neighbours; the loss repeats its pattern from epoch to
#        epoch. `sampler.set_epoch`, which one calls for distributed runs, draws a new one. A pass that is left early
#        begins anew, so that `max_steps` per epoch shows the first batches alone: the rest is never seen.
# With:  lhotse 1.33.0, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q lhotse==1.33.0 urllib3==2.8.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
from lhotse import CutSet
from lhotse.dataset import DynamicBucketingSampler, DynamicCutSampler, SimpleCutSampler
from lhotse.testing.dummies import dummy_cut
from torch.utils.data import DataLoader, Dataset


class Names(Dataset):
    def __getitem__(self, cuts):
        return tuple(cut.id for cut in cuts)


cuts = CutSet.from_cuts(dummy_cut(number, duration=1.0 + number % 3) for number in range(100))
for name, make in {
    "SimpleCutSampler": lambda: SimpleCutSampler(cuts, max_duration=10.0, shuffle=True),
    "DynamicCutSampler": lambda: DynamicCutSampler(cuts, max_duration=10.0, shuffle=True),
    "DynamicBucketingSampler": lambda: DynamicBucketingSampler(cuts, max_duration=10.0, num_buckets=3, shuffle=True),
}.items():
    print(name, end="")
    for counted in (False, True):
        sampler = make()
        loader, passes = DataLoader(Names(), sampler=sampler, batch_size=None), []
        for epoch in range(10):
            if counted:
                sampler.set_epoch(epoch)
            passes.append(tuple(tuple(batch) for batch in loader))
        print(" | set_epoch" if counted else " |", len(set(passes)), "orders of 10 passes", end="")
    sampler = make()
    loader, seen = DataLoader(Names(), sampler=sampler, batch_size=None), set()
    for _ in range(10):
        seen.update(row for _, batch in zip(range(5), loader) for row in batch)
    print(" | ten times five batches see", len(seen), "of", len(cuts), "cuts")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
SimpleCutSampler | 1 orders of 10 passes | set_epoch 10 orders of 10 passes | ten times five batches see 19 of 100 cuts
DynamicCutSampler | 1 orders of 10 passes | set_epoch 10 orders of 10 passes | ten times five batches see 17 of 100 cuts
DynamicBucketingSampler | 1 orders of 10 passes | set_epoch 10 orders of 10 passes | ten times five batches see 21 of 100 cuts
SEEN
