#!/usr/bin/env bash
# A search that finds nothing for half of its queries is perfect by pytrec_eval, and half as good by ir_measures.
#
# Guess: a query without a result counts as 0 in the mean, in each library.
# Seen:  pytrec_eval returns values for the queries alone that have results; their mean is 1.0. ir_measures, which calls
#        pytrec_eval, adds the others as 0 and says 0.5. ranx refuses until it is asked to fill them in, and says 0.5.
# With:  pytrec_eval-terrier 0.5.11, ir_measures 0.4.3, ranx 0.3.21
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q pytrec_eval-terrier==0.5.11 ir_measures==0.4.3 ranx==0.3.21 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import ir_measures
import pytrec_eval
import ranx

wanted = {"first": {"a": 1}, "second": {"b": 1}}
found = {"first": {"a": 1.0}}
values = pytrec_eval.RelevanceEvaluator(wanted, {"recip_rank"}).evaluate(found)
print("pytrec_eval", sum(value["recip_rank"] for value in values.values()) / len(values))
print("ir_measures", ir_measures.calc_aggregate([ir_measures.RR], wanted, found)[ir_measures.RR])
try:
    ranx.evaluate(ranx.Qrels(wanted), ranx.Run(found), "mrr")
except AssertionError:
    print("ranx refuses")
print("ranx, filled in", float(ranx.evaluate(ranx.Qrels(wanted), ranx.Run(found), "mrr", make_comparable=True)))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
pytrec_eval 1.0
ir_measures 0.5
ranx refuses
ranx, filled in 0.5
SEEN
