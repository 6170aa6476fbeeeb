#!/usr/bin/env bash
# Outputs of a molecule generator that are mostly noise have a validity of 1.0: RDKit reads to the first blank.
#
# Guess: a text that is no molecule as a whole gives None, so that it lowers the share of valid outputs.
# Seen:  what follows a blank is taken for a name, whatever it is. A model of characters that emits a blank, as one does
#        that was trained on lines with names, is valid with "C )))(", and unique in each sample, while all of them are
#        methane. The empty text, of a model that ends at once, is a molecule of no atoms, and valid, too. Without its
#        blank each of the texts is refused. `parseName=False` refuses what follows, and takes the empty text.
# With:  rdkit 2026.9.1, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q rdkit==2026.9.1 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import random

from rdkit import Chem

strict = Chem.SmilesParserParams()
strict.parseName = False
draw = random.Random(0)
noise = ["".join(draw.choices("CNO()=1", k=12)) for _ in range(1000)]
for name, texts in {
    "noise": noise,
    "an atom and noise": ["C" + text for text in noise],
    "an atom, a blank and noise": ["C " + text for text in noise],
    "nothing": [""] * 1000,
}.items():
    valid = [text for text in texts if Chem.MolFromSmiles(text) is not None]
    kinds = {Chem.MolToSmiles(Chem.MolFromSmiles(text)) for text in valid}
    strictly = [text for text in texts if Chem.MolFromSmiles(text, strict) is not None]
    print(f"{name} | valid {len(valid) / 1000} | texts {len(set(valid))} | molecules {len(kinds)}", end="")
    print(f" | valid without names {len(strictly) / 1000}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
noise | valid 0.003 | texts 3 | molecules 3 | valid without names 0.003
an atom and noise | valid 0.004 | texts 4 | molecules 4 | valid without names 0.004
an atom, a blank and noise | valid 1.0 | texts 1000 | molecules 1 | valid without names 0.0
nothing | valid 1.0 | texts 1 | molecules 1 | valid without names 1.0
SEEN
