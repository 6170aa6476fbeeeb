#!/usr/bin/env bash
# A tqdm bar shows the loss of batch 12 at the count of batch 6: the last drawing at a count is of a later batch.
#
# Guess: a drawing "6/12, loss=6" shows the loss of the batch that it counts, and the last drawing at a count stands.
# Seen:  where a loop iterates over the bar, tqdm counts on at intervals of 0.1 seconds alone, while each `set_postfix`
#        draws at once, at the count before. Only the first drawing at a count shows the metrics of that batch.
#        Where a loop calls `update` before `set_postfix`, each drawing stands at its own count.
# With:  tqdm 4.70.1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q tqdm==4.70.1 2>/dev/null
cd "$folder"
env/bin/python - <<'PYTHON' | tee seen.txt
import io
import re

import tqdm
import tqdm.std

clock = [100.0]
tqdm.std.time = lambda: clock[0]
tqdm.tqdm.monitor_interval = 0


def drawn(out):
    """Return the batches whose loss was drawn at each count."""
    found = {}
    for count, loss in re.findall(r"(\d+)/12 [^\r]*loss=(\d+)", out.getvalue()):
        found.setdefault(int(count), []).append(int(loss))
    return found


out = io.StringIO()
bar = tqdm.tqdm(range(1, 13), file=out)
for batch in bar:
    clock[0] += 0.02
    bar.set_postfix(loss=batch)
print("iterates", drawn(out))

out = io.StringIO()
bar = tqdm.tqdm(total=12, file=out)
for batch in range(1, 13):
    clock[0] += 0.02
    bar.update()
    bar.set_postfix(loss=batch)
bar.close()
print("updates first", {count: losses[-1] for count, losses in drawn(out).items()})
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
iterates {0: [1, 2, 3, 4, 5, 6], 6: [6, 7, 8, 9, 10, 11, 12], 12: [12, 12]}
updates first {1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7, 8: 8, 9: 9, 10: 10, 11: 11, 12: 12}
SEEN
