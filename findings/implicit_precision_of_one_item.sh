#!/usr/bin/env bash
# The precision at 10 that implicit reports is 1.0 where each user has one item to find: it is not a share of ten.
#
# Guess: precision at 10 is the share of ten recommended items that are relevant: with one relevant item at most 0.1.
# Seen:  implicit divides by the items that could be found: by ten, or by the user's own number where that is lower. With
#        one item it is the rate of hits, ten times the precision of ranx. Its mean is over items, not over users: a
#        user with many items weighs more. With twenty items to find for each, the two agree.
# With:  implicit 0.7.3, ranx 0.3.21
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q implicit==0.7.3 ranx==0.3.21 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import implicit
import numpy
import ranx
import scipy.sparse
from implicit.evaluation import ranking_metrics_at_k


def precisions(relevant):
    """Return both precisions of a model that ranks item 0 first, then 1 and so on, for each user."""
    users, items = len(relevant), 50
    model = implicit.als.AlternatingLeastSquares(factors=1)
    model.user_factors = numpy.ones((users, 1), dtype=numpy.float32)
    model.item_factors = numpy.arange(items, 0, -1, dtype=numpy.float32).reshape(-1, 1)
    held = scipy.sparse.lil_matrix((users, items), dtype=numpy.float32)
    for user, found in enumerate(relevant):
        held[user, found] = 1
    seen = scipy.sparse.csr_matrix((users, items), dtype=numpy.float32)
    ours = ranking_metrics_at_k(model, seen, held.tocsr(), K=10, show_progress=False)["precision"]
    labels = {f"u{user}": {f"i{item}": 1 for item in found} for user, found in enumerate(relevant)}
    scores = {f"u{user}": {f"i{item}": 50.0 - item for item in range(10)} for user in range(users)}
    return round(float(ours), 3), round(float(ranx.evaluate(ranx.Qrels(labels), ranx.Run(scores), "precision@10")), 3)


for name, relevant in {
    "one item each": [[3], [7]],
    "one item, and ten of which none is found": [[3], list(range(40, 50))],
    "twenty items each": [list(range(20)), list(range(5, 25))],
}.items():
    print(name, "| implicit, ranx", precisions(relevant))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
one item each | implicit, ranx (1.0, 0.1)
one item, and ten of which none is found | implicit, ranx (0.091, 0.05)
twenty items each | implicit, ranx (0.75, 0.75)
SEEN
