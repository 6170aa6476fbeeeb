#!/usr/bin/env bash
# To name CatBoost's own default of a parameter, `l2_leaf_reg=3`, makes its learning rate a tenth of what it was.
#
# Guess: a parameter set to its default changes nothing, and ten rounds of a long run are the first ten of a short one.
# Seen:  CatBoost chooses the learning rate by rows and rounds, if none is given: 0.297 for 100 rounds, 0.046 for 1,000.
#        Where `l2_leaf_reg` or `leaf_estimation_iterations` is named, whatever its value, it is 0.03. A search over
#        that parameter compares none of its runs with the one that left it out, and nothing warns of it.
# With:  catboost 1.2.10, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q catboost==1.2.10 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - <<'PYTHON' | tee seen.txt
import numpy
from catboost import CatBoostRegressor

draw = numpy.random.default_rng(0)
rows = draw.normal(size=(2000, 5))
wanted = rows[:, 0] + draw.normal(size=2000)
common = {"iterations": 100, "verbose": False, "allow_writing_files": False, "thread_count": 1}
for named in (
    {},
    {"l2_leaf_reg": 3},
    {"leaf_estimation_iterations": 1},
    {"random_strength": 1},
    {"iterations": 1000},
    {"iterations": 1000, "l2_leaf_reg": 3},
):
    model = CatBoostRegressor(**common | named).fit(rows, wanted)
    used = model.get_all_params()
    tenth = model.get_evals_result()["learn"]["RMSE"][9]
    parts = (named, "| l2", used["l2_leaf_reg"], "steps", used["leaf_estimation_iterations"])
    print(*parts, "rate", round(used["learning_rate"], 3), "RMSE of round 10", round(tenth, 2))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
{} | l2 3 steps 1 rate 0.297 RMSE of round 10 0.99
{'l2_leaf_reg': 3} | l2 3 steps 1 rate 0.03 RMSE of round 10 1.27
{'leaf_estimation_iterations': 1} | l2 3 steps 1 rate 0.03 RMSE of round 10 1.27
{'random_strength': 1} | l2 3 steps 1 rate 0.297 RMSE of round 10 0.99
{'iterations': 1000} | l2 3 steps 1 rate 0.046 RMSE of round 10 1.21
{'iterations': 1000, 'l2_leaf_reg': 3} | l2 3 steps 1 rate 0.03 RMSE of round 10 1.27
SEEN
