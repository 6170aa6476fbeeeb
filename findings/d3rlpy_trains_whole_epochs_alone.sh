#!/usr/bin/env bash
# d3rlpy trains 0 of the 5,000 steps that it was asked for, and ends as if all were well.
#
# Guess: `fit(data, n_steps=5000)` makes 5,000 updates; an epoch is how often it logs, and the last one may be short.
# Seen:  it makes whole epochs alone, of 10,000 steps if no length is named. So 5,000 steps are no update: no warning,
#        no row of a log, and a policy at its random start that `predict` and an evaluation take for a trained one.
#        With epochs of 1,000 steps, 1,900 steps are 1,000.
# With:  d3rlpy 2.8.1, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q d3rlpy==2.8.1 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import d3rlpy
import numpy
import structlog

structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
draw = numpy.random.default_rng(0)
rows, ends = draw.normal(size=(200, 3)).astype("float32"), numpy.arange(200) % 20 == 19
data = d3rlpy.dataset.MDPDataset(rows, draw.integers(0, 2, (200, 1)), rows[:, :1], ends.astype("float32"))
for steps, options in {5000: {}, 1900: {"n_steps_per_epoch": 1000}, 900: {"n_steps_per_epoch": 300}}.items():
    policy = d3rlpy.algos.DQNConfig(batch_size=4).create()
    epochs = policy.fit(data, n_steps=steps, show_progress=False, **options)
    print(f"asked for {steps} steps", options, "| updates", policy.grad_step, "| epochs logged", len(epochs))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
asked for 5000 steps {} | updates 0 | epochs logged 0
asked for 1900 steps {'n_steps_per_epoch': 1000} | updates 1000 | epochs logged 1
asked for 900 steps {'n_steps_per_epoch': 300} | updates 900 | epochs logged 3
SEEN
