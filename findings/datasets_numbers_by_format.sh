#!/usr/bin/env bash
# Unix times of one minute apart are one and the same number, and an id of 2**40 + 7 is 7, once `datasets` formats them.
#
# Guess: `with_format` changes the kind of array, not the numbers: columns of float64 and int64 keep their precision.
# Seen:  decimals become float32, in the NumPy format, too. Times near 1.7e9 are rounded to 128 seconds, so that their
#        differences are 0 or 128. In the JAX format ids wrap to 32 bits, some below zero, and nothing is said. A gap
#        in a batch makes its whole numbers float32: 2**24 + 1 loses its last digit there, and keeps it in the next
#        batch.
# With:  datasets 5.2.0, jax 0.10.2, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q datasets==5.2.0 jax==0.10.2 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import datasets

rows = datasets.Dataset.from_dict(
    {
        "time": [1.7e9, 1.7e9 + 60, 1.7e9 + 120, 1.7e9 + 180],
        "id": [1, 2**31 + 5, 2**32, 2**40 + 7],
        "gap": [2**24 + 1, 2**24 + 1, 2**24 + 1, None],
    }
)
for name in ("numpy", "jax"):
    formatted = rows.with_format(name)
    batches = list(formatted.iter(2))
    times, ids = formatted[:]["time"], formatted[:]["id"]
    print(name, "| seconds since the first", *(int(time) - 1_700_000_000 for time in times.tolist()))
    print(name, "| ids", *ids.tolist())
    print(name, "| batches", *(f"{str(batch['gap'].dtype)} {batch['gap'].tolist()}" for batch in batches))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
numpy | seconds since the first 0 0 128 128
numpy | ids 1 2147483653 4294967296 1099511627783
numpy | batches int64 [16777217, 16777217] float32 [16777216.0, nan]
jax | seconds since the first 0 0 128 128
jax | ids 1 -2147483643 0 7
jax | batches int32 [16777217, 16777217] float32 [16777216.0, nan]
SEEN
