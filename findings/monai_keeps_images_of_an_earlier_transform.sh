#!/usr/bin/env bash
# MONAI's PersistentDataset gives the images of an earlier run after its transforms were changed, without a word.
#
# Guess: the cache on disk knows the transforms that made it: a new intensity range is in the images of the next run.
# Seen:  a file is named by a hash of the row alone, though the class says that it tries to hash the steps, too. The
#        first run scales 0 to 1,000 to 1; a second one that scales 0 to 100, or that leaves a step out, still gets the
#        old numbers, a tenth of what it asks for. Random steps that come after are new, so images differ from epoch to
#        epoch and look alive. Rows added since then are made by the new steps: one set has two scales. `CacheDataset`,
#        in memory, and `hash_transform=pickle_hashing` are right.
# With:  monai 1.6.1, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q monai==1.6.1 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import numpy
from monai.data import CacheDataset, PersistentDataset, pickle_hashing
from monai.transforms import Compose, RandScaleIntensityd, ScaleIntensityRanged


def rows(count):
    return [{"image": numpy.full((1, 2, 2), 50.0 + number, numpy.float32)} for number in range(count)]


def scaled(upper):
    return ScaleIntensityRanged("image", 0, upper, 0, 1)


def mean(row):
    return f"{row['image'].mean().item():.2f}"


for name, make in {
    "CacheDataset": lambda count, steps: CacheDataset(rows(count), steps, progress=False),
    "PersistentDataset": lambda count, steps: PersistentDataset(rows(count), steps, "cache"),
    "with hash_transform": lambda count, steps: PersistentDataset(
        rows(count), steps, "other_cache", hash_transform=pickle_hashing
    ),
}.items():
    print(name, end="")
    for run, count, upper in (("first run", 2, 1000), ("second run", 3, 100)):
        images = make(count, Compose([scaled(upper)]))
        print(f" | {run}, 0 to {upper}:", *(mean(images[row]) for row in range(count)), end="")
    print()
shaken = Compose([scaled(100), RandScaleIntensityd("image", 0.5, prob=1.0)]).set_random_state(0)
images = PersistentDataset(rows(2), shaken, "cache")
print("PersistentDataset with a random step | epochs", *(mean(images[0]) for _ in range(3)))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
CacheDataset | first run, 0 to 1000: 0.05 0.05 | second run, 0 to 100: 0.50 0.51 0.52
PersistentDataset | first run, 0 to 1000: 0.05 0.05 | second run, 0 to 100: 0.05 0.05 0.52
with hash_transform | first run, 0 to 1000: 0.05 0.05 | second run, 0 to 100: 0.50 0.51 0.52
PersistentDataset with a random step | epochs 0.03 0.07 0.05
SEEN
