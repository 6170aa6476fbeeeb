#!/usr/bin/env bash
# The mean of 10,000 losses near 2 is 2.0 in JAX and 0.1 in NumPy, whose sum of bfloat16 numbers stops at 1,024.
#
# Guess: bfloat16 has two to three digits, so that the mean of 10,000 losses near 2 is 2.0 in NumPy, as it is in JAX.
# Seen:  `numpy.asarray` keeps the type, which ml_dtypes made, and NumPy adds such numbers one by one in that type. Next
#        to 256 is 258, so that ones add up to 256 for good, and losses near 2 to 1,024; that is divided by all of them.
#        So the mean goes down with the length of the epoch alone. pandas does the same. float16, for which NumPy has a
#        rule of its own, is right, and so is JAX. `dtype=numpy.float32` mends it.
# With:  numpy 2.4.6, jax 0.10.2, ml_dtypes 0.6.0, pandas 2.3.3
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 jax==0.10.2 ml_dtypes==0.6.0 pandas==2.3.3 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import jax
import numpy
import pandas

draws = jax.random.uniform(jax.random.key(0), (10_000,), minval=1.5, maxval=2.5)
for steps in (50, 200, 1000, 10_000):
    losses = draws[:steps].astype("bfloat16")
    read = numpy.asarray(losses)
    print(f"{steps} losses | NumPy {read.mean():.3f} | pandas {pandas.Series(read).mean():.3f}", end=" | ")
    print(f"JAX {losses.mean():.3f} | NumPy as float16 {read.astype('float16').mean():.3f}", end=" | ")
    print(f"with dtype float32 {read.mean(dtype=numpy.float32):.3f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
50 losses | NumPy 2.031 | pandas 2.030 | JAX 2.031 | NumPy as float16 2.027 | with dtype float32 2.027
200 losses | NumPy 2.016 | pandas 2.010 | JAX 2.000 | NumPy as float16 2.006 | with dtype float32 2.006
1000 losses | NumPy 1.023 | pandas 1.024 | JAX 2.000 | NumPy as float16 2.004 | with dtype float32 2.003
10000 losses | NumPy 0.103 | pandas 0.102 | JAX 2.000 | NumPy as float16 1.999 | with dtype float32 1.999
SEEN
