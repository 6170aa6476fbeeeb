#!/usr/bin/env bash
# A metric logged to W&B without a step joins the last step that was named, and what is named there later is lost.
#
# Guess: `log(a, step=5)`, `log(b)`, `log(c)` give steps 5, 6 and 7; a later `log(d, step=6)` adds d to step 6.
# Seen:  `log` with a step leaves that step open. So b joins it and closes it, and c stands at 6. Then d at 6 and e at
#        3 are dropped, with a warning in the terminal alone. A loop that names its steps so loses metrics to a
#        callback that names none.
# With:  wandb 0.31.0, offline
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q wandb==0.31.0 2>/dev/null
cd "$folder"
export WANDB_MODE=offline WANDB_SILENT=true HOME="$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import wandb

run = wandb.init(project="project")
for name, named in {"a": 5, "b": None, "c": None, "d": 6, "e": 3, "f": None}.items():
    at = run.step if named is None else named
    run.log({name: 1}, step=named)
    print(name, "at", at, "| next", run.step)
print("kept", *sorted(name for name in run.summary.keys() if not name.startswith("_")))
run.finish()
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
a at 5 | next 5
b at 5 | next 6
c at 6 | next 7
d at 6 | next 7
e at 3 | next 7
f at 7 | next 8
kept a b c f
SEEN
