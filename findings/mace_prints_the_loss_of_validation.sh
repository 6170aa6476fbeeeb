#!/usr/bin/env bash
# The loss that MACE prints for an epoch is that of validation; its training loss stands in no line.
#
# Guess: "Epoch 1: head: Default, loss=12.6, RMSE_F= 1004.25 meV / A" shows the loss that is trained on.
# Seen:  it is the loss of the validation rows, and the errors are of them, too. The loss of each training batch is in
#        results/*_train.txt alone, by epoch and without a step, so that a run that overfits shows no gap in its log.
# With:  mace-torch 0.3.16
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q mace-torch==0.3.16 "torch<2.14" 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON'
import ase.io
import numpy as np
from ase.build import bulk
from ase.calculators.emt import EMT

random, rows = np.random.default_rng(0), []
for _ in range(12):
    atoms = bulk("Cu", cubic=True)
    atoms.positions += random.normal(scale=0.1, size=atoms.positions.shape)
    atoms.calc = EMT()
    row = atoms.copy()
    row.info["REF_energy"], row.arrays["REF_forces"] = atoms.get_potential_energy(), atoms.get_forces()
    rows.append(row)
ase.io.write("rows.xyz", rows)
PYTHON
env/bin/mace_run_train --name=run --train_file=rows.xyz --valid_fraction=0.25 --E0s=average --num_channels=4 --max_L=0 \
  --r_max=3.5 --num_interactions=1 --batch_size=3 --max_num_epochs=2 --energy_key=REF_energy --forces_key=REF_forces \
  --device=cpu --seed=1 --default_dtype=float32 >console.txt 2>&1
env/bin/python - <<'PYTHON' | tee seen.txt
import json
import re
from pathlib import Path

(results,) = Path("results").glob("*_train.txt")
rows = [json.loads(line) for line in results.read_text().splitlines()]
printed = re.findall(r"Epoch (\d+): head: Default, loss= *(\S+),", Path("console.txt").read_text())
for epoch, loss in printed:
    of = {mode: [row["loss"] for row in rows if (row["mode"], row["epoch"]) == (mode, int(epoch))] for mode in ("opt", "eval")}
    print("epoch", epoch, *(f"{mode} {any(abs(float(loss) - each) < 1e-6 for each in of[mode])}" for mode in of))
    print("batches", len(of["opt"]), "steps", any("step" in row for row in rows))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
epoch 0 opt False eval True
batches 3 steps False
epoch 1 opt False eval True
batches 3 steps False
SEEN
