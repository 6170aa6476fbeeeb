#!/usr/bin/env bash
# Orbax deletes the best checkpoint in favour of one whose loss is NaN, where it keeps the best one alone.
#
# Guess: a loss of NaN is the worst there is, or has no rank: the checkpoint with a loss of 0.3 stays.
# Seen:  a checkpoint that comes with NaN is the best one at once, whether the least or the largest value counts, and
#        with `max_to_keep=1` the one of 0.3 is gone. A run that ends in NaN so keeps its broken weights alone. With
#        two places, two epochs of NaN take both.
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

LOSSES = [0.5, 0.3, float("nan"), float("nan")]
for mode in ("min", "max"):
    for places in (1, 2):
        best = {"best_fn": lambda scores: scores["loss"], "best_mode": mode}
        options = ocp.CheckpointManagerOptions(max_to_keep=places, **best)
        manager = ocp.CheckpointManager(pathlib.Path(f"{mode}{places}").absolute(), options=options)
        for step, loss in enumerate(LOSSES):
            weights = ocp.args.StandardSave({"weight": jnp.full(1, loss)})
            manager.save(step, args=weights, metrics={"loss": loss if mode == "min" else -loss})
            manager.wait_until_finished()
            print(mode, places, "| loss", loss, "| kept", *manager.all_steps(), "| best", manager.best_step())
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
min 1 | loss 0.5 | kept 0 | best 0
min 1 | loss 0.3 | kept 1 | best 1
min 1 | loss nan | kept 2 | best 2
min 1 | loss nan | kept 3 | best 3
min 2 | loss 0.5 | kept 0 | best 0
min 2 | loss 0.3 | kept 0 1 | best 1
min 2 | loss nan | kept 1 2 | best 2
min 2 | loss nan | kept 2 3 | best 3
max 1 | loss 0.5 | kept 0 | best 0
max 1 | loss 0.3 | kept 1 | best 1
max 1 | loss nan | kept 2 | best 2
max 1 | loss nan | kept 3 | best 3
max 2 | loss 0.5 | kept 0 | best 0
max 2 | loss 0.3 | kept 0 1 | best 1
max 2 | loss nan | kept 1 2 | best 2
max 2 | loss nan | kept 2 3 | best 3
SEEN
