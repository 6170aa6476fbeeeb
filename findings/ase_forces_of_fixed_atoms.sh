#!/usr/bin/env bash
# Forces of atoms that are fixed in ASE are 0 as labels, and the file with the right ones reads back as zeros.
#
# Guess: a constraint says how atoms move; `get_forces()` gives the forces of the calculator, as a model is to learn
#        them.
# Seen:  the forces of fixed atoms are 0. They are written to extxyz and traj as they were computed, with the
#        constraint, so that `get_forces()` of the file is 0 there again, while `calc.results` and the ASE database
#        have them. A model trained on one and scored on the other has an error that no training lowers: half of the
#        atoms of a slab are wrong by the size of their force. `get_forces(apply_constraint=False)` has them all.
# With:  ase 3.29.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q ase==3.29.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import numpy
from ase.build import fcc111
from ase.calculators.emt import EMT
from ase.constraints import FixAtoms
from ase.db import connect
from ase.io import read, write

slab = fcc111("Cu", (2, 2, 4), vacuum=8)
slab.rattle(0.1, seed=0)
slab.calc = EMT()
truth = slab.get_forces()
slab.set_constraint(FixAtoms(mask=slab.get_tags() > 2))
found = {"no constraint": truth, "get_forces": slab.get_forces()}
for name in ("slab.extxyz", "slab.traj"):
    write(name, slab)
    image = read(name)
    found |= {f"{name}, get_forces": image.get_forces(), f"{name}, results": image.calc.results["forces"]}
    found[f"{name}, without constraint"] = image.get_forces(apply_constraint=False)
with connect("slab.db") as base:
    base.write(slab)
found["slab.db, row"] = base.get(1).forces
found["slab.db, get_forces"] = base.get_atoms(1).get_forces()
for name, forces in found.items():
    zeros, error = int((forces == 0).all(1).sum()), numpy.abs(forces - truth).mean()
    print(f"{name}: {zeros} of {len(forces)} atoms without force, mean error {error:.2f} eV/A")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
no constraint: 0 of 16 atoms without force, mean error 0.00 eV/A
get_forces: 8 of 16 atoms without force, mean error 0.39 eV/A
slab.extxyz, get_forces: 8 of 16 atoms without force, mean error 0.39 eV/A
slab.extxyz, results: 0 of 16 atoms without force, mean error 0.00 eV/A
slab.extxyz, without constraint: 0 of 16 atoms without force, mean error 0.00 eV/A
slab.traj, get_forces: 8 of 16 atoms without force, mean error 0.39 eV/A
slab.traj, results: 0 of 16 atoms without force, mean error 0.00 eV/A
slab.traj, without constraint: 0 of 16 atoms without force, mean error 0.00 eV/A
slab.db, row: 0 of 16 atoms without force, mean error 0.00 eV/A
slab.db, get_forces: 8 of 16 atoms without force, mean error 0.39 eV/A
SEEN
