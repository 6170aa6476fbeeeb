#!/usr/bin/env bash
# A hidden Markov model of hmmlearn is `converged` after one step of 200: the flag is true whenever a fit ends.
#
# Guess: `monitor_.converged` is false where a fit used all its iterations up while the likelihood still rose.
# Seen:  reaching `n_iter` counts as convergence, so the flag that its own guide checks says nothing, and no warning
#        comes. The history lacks the model that `fit` returns: its last value is of the parameters one step before.
#        After one step it says -707.9, where the model has -528.6.
# With:  hmmlearn 0.3.3, scikit-learn 1.9.1, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q hmmlearn==0.3.3 scikit-learn==1.9.1 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import numpy
from hmmlearn.hmm import GaussianHMM

draw = numpy.random.default_rng(0)
rows = numpy.concatenate([draw.normal(mean, 1, (50, 1)) for mean in (0, 3, 0, 5, 3, 0, 5)])
for limit in (1, 5, 200):
    model = GaussianHMM(4, n_iter=limit, random_state=0).fit(rows)
    log = model.monitor_
    print(f"steps {log.iter} of {limit} | converged {log.converged} |", end=" ")
    print(f"last of history {log.history[-1]:.1f} | score of the model {model.score(rows):.1f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
steps 1 of 1 | converged True | last of history -707.9 | score of the model -528.6
steps 5 of 5 | converged True | last of history -524.0 | score of the model -523.6
steps 16 of 200 | converged True | last of history -520.1 | score of the model -520.1
SEEN
