#!/usr/bin/env bash
# seqeval does not count a label ORG that has no prefix, whether it was found or not.
#
# Guess: labels without B- and I- are scored as they are: a model that misses each ORG has a recall below 1.
# Seen:  the first letter is always the prefix. ORG is O, outside: a model that finds none has F1 1.0. Each token of
#        BRAND (B) or SOFTWARE (S) is an entity of its own, while PER and PRODUCT join. It warns of the names, once.
# With:  seqeval 1.2.2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q seqeval==1.2.2 "setuptools<80" wheel 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
from seqeval.metrics import f1_score
from seqeval.metrics.sequence_labeling import get_entities

print("no ORG found, F1", f1_score([["ORG", "ORG", "O", "PER"]], [["O", "O", "O", "PER"]]), end=" ")
print("with prefixes", round(f1_score([["B-ORG", "I-ORG", "O", "B-PER"]], [["O", "O", "O", "B-PER"]]), 2))
for name in ("ORG", "PER", "PRODUCT", "BRAND", "SOFTWARE"):
    print(name, "twice is", len(get_entities([name, name, "O"])), "entities")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
no ORG found, F1 1.0 with prefixes 0.67
ORG twice is 0 entities
PER twice is 1 entities
PRODUCT twice is 1 entities
BRAND twice is 2 entities
SOFTWARE twice is 2 entities
SEEN
