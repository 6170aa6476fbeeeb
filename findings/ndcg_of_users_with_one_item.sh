#!/usr/bin/env bash
# A recommender that puts each user's item first has an NDCG at 10 of 0.22 in RecTools, and of 1.0 in scikit-learn.
#
# Guess: NDCG divides by what the best ranking gains, so that a perfect one has 1.0, whatever a user has to find.
# Seen:  RecTools divides by ten hits, also where a user has one item to find: the best there is with one is 0.22, with
#        three 0.47. MAP, MRR and recall of the same run are 1.0. So with one item kept back for each user, the usual
#        split, a model near its ceiling looks poor, and two sets are not to be compared by it: one with more items
#        for each user has the higher score. `divide_by_achievable=True` gives 1.0.
# With:  rectools 0.19.0, scikit-learn 1.6.1, pandas 2.3.3, numpy 1.26.4
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q rectools==0.19.0 scikit-learn==1.6.1 pandas==2.3.3 numpy==1.26.4 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import pandas
from rectools.metrics import MAP, MRR, NDCG, Recall, calc_metrics
from sklearn.metrics import ndcg_score

users, ranks = range(5), range(1, 11)
shown = [(user, rank, rank) for user in users for rank in ranks]
shown = pandas.DataFrame(shown, columns=["user_id", "item_id", "rank"])
for found in (1, 3, 10):
    liked = pandas.DataFrame([(user, item) for user in users for item in ranks[:found]], columns=["user_id", "item_id"])
    metrics = {"NDCG": NDCG(k=10), "MAP": MAP(k=10), "MRR": MRR(k=10), "recall": Recall(k=10)}
    metrics["NDCG of the achievable"] = NDCG(k=10, divide_by_achievable=True)
    scores = calc_metrics(metrics, reco=shown, interactions=liked)
    print(f"items to find {found} | RecTools", *[f"{name} {scores[name]:.2f}" for name in metrics], end="")
    gains, given = [[1] * found + [0] * (10 - found)], [list(range(10, 0, -1))]
    print(f" | scikit-learn NDCG {ndcg_score(gains, given, k=10):.2f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
items to find 1 | RecTools NDCG 0.22 MAP 1.00 MRR 1.00 recall 1.00 NDCG of the achievable 1.00 | scikit-learn NDCG 1.00
items to find 3 | RecTools NDCG 0.47 MAP 1.00 MRR 1.00 recall 1.00 NDCG of the achievable 1.00 | scikit-learn NDCG 1.00
items to find 10 | RecTools NDCG 1.00 MAP 1.00 MRR 1.00 recall 1.00 NDCG of the achievable 1.00 | scikit-learn NDCG 1.00
SEEN
