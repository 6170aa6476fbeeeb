#!/usr/bin/env bash
# Captions that are right to the word have a CIDEr of 0 for one image, 10 for many, and 2.5 where each is one word.
#
# Guess: a text scored against itself has the best score, whatever the number of images; CIDEr goes from 0 to 10.
# Seen:  a word weighs the less, the more images of the scored set have it in their captions. With one image, or one
#        caption for all, each word is in all images and weighs nothing: 0.0. So a mean over batches of one image is 0
#        for a model that has 5.0 on the set, and a check on the first image shows a broken model. Captions below four
#        words lack the longer n-grams, which count as 0 in a mean of four: 2.5, 5.0 or 7.5 is then the best there is.
# With:  pycocoevalcap 1.2, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q pycocoevalcap==1.2 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
from pycocoevalcap.cider.cider import Cider

THINGS = "cat dog cup book pen fork lamp key".split()
for name, captions in {
    "eight images": [f"a {thing} lies on the table" for thing in THINGS],
    "the first alone": ["a cat lies on the table"],
    "one caption for eight": ["a cat lies on the table"] * 8,
    "one word": THINGS,
    "two words": [f"a {thing}" for thing in THINGS],
    "three words": [f"a big {thing}" for thing in THINGS],
}.items():
    same = {number: [caption] for number, caption in enumerate(captions)}
    mean, scores = Cider().compute_score(same, same)
    print(name, f"| mean {mean:.2f} | by image", *(f"{score:.1f}" for score in scores))
right = [f"a {thing} lies on the table" for thing in THINGS]
said = right[:4] + right[3:7]
for size in (8, 1):
    means = []
    for start in range(0, 8, size):
        part = range(start, start + size)
        means.append(Cider().compute_score({row: [right[row]] for row in part}, {row: [said[row]] for row in part})[0])
    print(f"half of the things right, in batches of {size} | mean of batches {sum(means) / len(means):.2f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
eight images | mean 10.00 | by image 10.0 10.0 10.0 10.0 10.0 10.0 10.0 10.0
the first alone | mean 0.00 | by image 0.0
one caption for eight | mean 0.00 | by image 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0
one word | mean 2.50 | by image 2.5 2.5 2.5 2.5 2.5 2.5 2.5 2.5
two words | mean 5.00 | by image 5.0 5.0 5.0 5.0 5.0 5.0 5.0 5.0
three words | mean 7.50 | by image 7.5 7.5 7.5 7.5 7.5 7.5 7.5 7.5
half of the things right, in batches of 8 | mean of batches 5.00
half of the things right, in batches of 1 | mean of batches 0.00
SEEN
