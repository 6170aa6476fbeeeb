#!/usr/bin/env bash
# Vowpal Wabbit learns from 90 of 100 rows as soon as it is to pass over them twice, and makes 13 of 20 passes.
#
# Guess: `--passes 20` is twenty times what one pass does, and `average loss` falls as one sum over all rows.
# Seen:  with more than one pass each tenth row is kept back, and the loss of those rows decides when to stop. One pass
#        ends at 1.0, of each row before it was learned; two at 0.136, of the rows kept back. Only an `h` behind the
#        number says so. `--holdout_off` brings back rows and passes, and a loss that has the first pass in it.
# With:  vowpalwabbit 9.11.9, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q vowpalwabbit==9.11.9 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - <<'PYTHON' | tee seen.txt
import random
import re
from pathlib import Path

from vowpalwabbit import Workspace

random.seed(0)
values = [random.gauss(0, 1) for _ in range(100)]
Path("rows.txt").write_text("".join(f"{2 * value:.3f} | x:{value:.4f}\n" for value in values))
asked = ("number of examples", "number of examples per pass", "passes used", "average loss")
for options in ("--passes 1", "--passes 2", "--passes 20", "--passes 20 --holdout_off"):
    learner = Workspace(f"-d rows.txt --kill_cache --cache_file rows.cache {options}", enable_logging=True)
    learner.finish()
    lines = dict(re.findall(r"^([a-z ]{5,40}) = (.{1,40})$", "\n".join(learner.get_log()), re.MULTILINE))
    print(options, *(f"| {name} {lines[name]}" for name in asked if name in lines))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
--passes 1 | number of examples 100 | average loss 1.000632
--passes 2 | number of examples per pass 90 | passes used 2 | average loss 0.135894 h
--passes 20 | number of examples per pass 90 | passes used 13 | average loss 0.017223 h
--passes 20 --holdout_off | number of examples per pass 100 | passes used 20 | average loss 0.055907
SEEN
