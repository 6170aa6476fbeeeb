#!/usr/bin/env bash
# Albumentations and MONAI change each image in one and the same way in all epochs, once two workers load the images.
#
# Guess: a random crop or brightness is drawn anew for each image and epoch, with workers or without, as PyTorch seeds
#        them.
# Seen:  PyTorch seeds its own numbers in a worker, and those of `random` and NumPy. Both libraries keep a generator in
#        each change, and each epoch begins with new workers, which copy it from the main process, where nobody draws.
#        So 18 images of three epochs have three values, not 18: both workers draw the same, and each epoch repeats the
#        one before, as if nothing were augmented. No seed is set. With `persistent_workers` epochs differ and workers
#        do not. MONAI's own DataLoader and one call in a `worker_init_fn` put that right.
# With:  albumentations 2.0.8, monai 1.6.1, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q albumentations==2.0.8 monai==1.6.1 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import albumentations
import numpy
import torch
from monai.data import DataLoader as MonaiLoader
from monai.transforms import RandScaleIntensity
from torch.utils.data import DataLoader, get_worker_info

PLAIN = numpy.full((2, 2, 3), 0.5, numpy.float32)


class Rows(torch.utils.data.Dataset):
    """Six equal images, each changed at random."""

    def __init__(self, changes):
        self.transform = changes

    def __len__(self):
        return 6

    def __getitem__(self, row):
        if isinstance(self.transform, albumentations.Compose):
            return float(self.transform(image=PLAIN)["image"].mean())
        return float(self.transform(torch.ones(1, 1)).mean())


def brighter():
    return albumentations.Compose([albumentations.RandomBrightnessContrast(p=1.0)])


def seeded(number):
    worker = get_worker_info()
    worker.dataset.transform.set_random_seed(worker.seed % 2**32)


for name, make, loader, options in (
    ("albumentations", brighter, DataLoader, {}),
    ("albumentations seeded in workers", brighter, DataLoader, {"worker_init_fn": seeded}),
    ("MONAI in PyTorch's loader", lambda: RandScaleIntensity(0.5, prob=1.0), DataLoader, {}),
    ("MONAI in its own loader", lambda: RandScaleIntensity(0.5, prob=1.0), MonaiLoader, {}),
    ("torch.rand", lambda: lambda image: image * torch.rand(1), DataLoader, {}),
    ("numpy.random", lambda: lambda image: image * numpy.random.random(), DataLoader, {}),
):
    print(name, end="")
    for workers, kept in ((0, False), (2, False), (2, True)):
        batches = loader(Rows(make()), num_workers=workers, persistent_workers=kept, **(options if workers else {}))
        epochs = [[batch.item() for batch in batches] for _ in range(3)]
        values = len({value for epoch in epochs for value in epoch})
        print(f" | {workers} workers{' kept' * kept}: {values} values, alike {epochs[0] == epochs[1]}", end="")
    print()
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
albumentations | 0 workers: 18 values, alike False | 2 workers: 3 values, alike True | 2 workers kept: 9 values, alike False
albumentations seeded in workers | 0 workers: 18 values, alike False | 2 workers: 18 values, alike False | 2 workers kept: 18 values, alike False
MONAI in PyTorch's loader | 0 workers: 18 values, alike False | 2 workers: 3 values, alike True | 2 workers kept: 9 values, alike False
MONAI in its own loader | 0 workers: 18 values, alike False | 2 workers: 18 values, alike False | 2 workers kept: 18 values, alike False
torch.rand | 0 workers: 18 values, alike False | 2 workers: 18 values, alike False | 2 workers kept: 18 values, alike False
numpy.random | 0 workers: 18 values, alike False | 2 workers: 18 values, alike False | 2 workers kept: 18 values, alike False
SEEN
