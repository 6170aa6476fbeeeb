#!/usr/bin/env bash
# A run that goes back to an earlier checkpoint and on from there has none of its new steps saved by Orbax.
#
# Guess: after `restore(10)`, `save(15)` writes step 15, and `save(20)` replaces the old step 20, or either raises.
# Seen:  `save` returns False and writes nothing for each step up to the last one on disk. A run that went back from
#        step 20 to 10 has a checkpoint of its own again at 25. Step 20, the one that was left behind, stays as it was:
#        whoever resumes there resumes the run that was given up. With `force=True`, step 15 is written.
# With:  orbax-checkpoint 0.12.8, jax 0.10.2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q orbax-checkpoint==0.12.8 jax==0.10.2 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import pathlib

import jax.numpy as jnp
import orbax.checkpoint as ocp


def save(manager, step, weight, **options):
    saved = manager.save(step, args=ocp.args.StandardSave({"weight": jnp.asarray(weight)}), **options)
    manager.wait_until_finished()
    return saved


manager = ocp.CheckpointManager(pathlib.Path("run").absolute())
print("first time", {step: save(manager, step, 1.0) for step in (0, 10, 20)})
manager.restore(10, args=ocp.args.StandardRestore())
print("again from 10", {step: save(manager, step, 2.0) for step in (15, 20)}, "on disk", list(manager.all_steps()))
print("step 20 is of the first time", float(manager.restore(20, args=ocp.args.StandardRestore())["weight"]) == 1)
print("then", {25: save(manager, 25, 2.0)}, "on disk", list(manager.all_steps()))
print("forced", {15: save(manager, 15, 2.0, force=True)}, "on disk", sorted(manager.all_steps()))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
first time {0: True, 10: True, 20: True}
again from 10 {15: False, 20: False} on disk [0, 10, 20]
step 20 is of the first time True
then {25: True} on disk [0, 10, 20, 25]
forced {15: True} on disk [0, 10, 15, 20, 25]
SEEN
