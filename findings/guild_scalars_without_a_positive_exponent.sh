#!/usr/bin/env bash
# Guild takes no number with "e+", no NaN and no infinity that a script prints for a scalar.
#
# Guess: each `name: number` that a script prints is a scalar of the run, so a loss that diverges is seen to do so.
# Seen:  `3e-05` and `5000000.0` are kept; `3e+19`, `inf` and `nan` are not, and nothing is said of them. A run that
#        diverges ends at its last usual loss. What was printed stands whole in `.guild/output`.
# With:  guildai 0.9.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q guildai==0.9.0 "setuptools<80" 2>/dev/null
mkdir "$folder/home" "$folder/project"
cd "$folder/project"
cat > train.py <<'PYTHON'
for name, value in [("usual", 5e6), ("small", 3e-5), ("large", 3e19), ("infinite", float("inf")), ("missing", float("nan"))]:
    print(f"{name}: {value}")
PYTHON
export GUILD_HOME="$folder/home"
"$folder/env/bin/guild" run train.py -y >/dev/null 2>&1
echo "printed" $(cut -d: -f1 "$GUILD_HOME"/runs/*/.guild/output) | tee ../seen.txt
"$folder/env/bin/guild" runs info --json 2>/dev/null |
  "$folder/env/bin/python" -c 'import json, sys; print("kept", *sorted(json.load(sys.stdin)["scalars"]))' |
  tee -a ../seen.txt
diff ../seen.txt - <<'SEEN' && echo "as found"
printed usual small large infinite missing
kept small usual
SEEN
