#!/usr/bin/env bash
# Labels that are cast to another order of their names keep their numbers in `datasets`: "positive" becomes "negative".
#
# Guess: a cast of one ClassLabel to another goes by the names, as that of text to a ClassLabel does; it changes the
#        numbers, or stops where the orders differ.
# Seen:  it changes the names and leaves the numbers, so that each label means another class. Fewer names are taken,
#        too, as long as no number is beyond them. Joining two sets with two orders stops with a hint that
#        features must match, and the cast is the way to make them match: one half of the rows is then labelled the
#        wrong way round, accuracy stays at a half, and nothing is said. `align_labels_with_mapping` goes by names.
# With:  datasets 5.2.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q datasets==5.2.0 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
from datasets import ClassLabel, Dataset, Features, Value, concatenate_datasets


def reviews(names):
    """Return a data set of reviews whose labels are in this order."""
    features = Features({"text": Value("string"), "label": ClassLabel(names=names)})
    words = ["bad", "good"]
    return Dataset.from_dict({"text": words, "label": ["negative", "positive"]}, features=features)


def names(data):
    """Return each text with the name of its label."""
    return " ".join(f"{row['text']}:{data.features['label'].int2str(row['label'])}" for row in data)


first, second = reviews(["negative", "positive"]), reviews(["positive", "negative"])
print("as read |", names(second))
try:
    concatenate_datasets([first, second])
except ValueError:
    print("joined as they are | refused")
print("cast |", names(second.cast(first.features)))
print("cast_column |", names(second.cast_column("label", first.features["label"])))
print("joined after the cast |", names(concatenate_datasets([first, second.cast(first.features)])))
print("aligned |", names(second.align_labels_with_mapping({"negative": 0, "positive": 1}, "label")))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
as read | bad:negative good:positive
joined as they are | refused
cast | bad:positive good:negative
cast_column | bad:positive good:negative
joined after the cast | bad:negative good:positive bad:positive good:negative
aligned | bad:negative good:positive
SEEN
