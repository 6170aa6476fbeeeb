#!/usr/bin/env bash
# Gymnasium's NormalizeReward makes 70.7 of the first reward 1.0, and thousands of later ones in episodes of one step.
#
# Guess: rewards that are all 1.0 are near 1 once normalized, or fall slowly to the scale of the return.
# Seen:  the variance of the discounted return begins with a weight of a ten-thousandth. So the first rewards are
#        divided by almost nothing: 70.7, then 2.0. A new critic learns from those values. Where each episode is one
#        step with one reward, the variance goes to zero: rewards grow with the root of the count, without an end.
# With:  gymnasium 1.4.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q gymnasium==1.4.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import gymnasium
import numpy


class OneEachStep(gymnasium.Env):
    """Give a reward of 1.0 at each step, and end an episode after a number of steps."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[numpy.ndarray, dict]:
        """Begin an episode."""
        self.taken = 0
        return numpy.zeros(1, "float32"), {}

    def step(self, action: int) -> tuple[numpy.ndarray, float, bool, bool, dict]:
        """Take a step."""
        self.taken += 1
        return numpy.zeros(1, "float32"), 1.0, self.taken >= self.steps, False, {}


for steps in (200, 1):
    environment = gymnasium.wrappers.NormalizeReward(OneEachStep(steps))
    rewards = []
    for _ in range(4000 // steps):
        environment.reset()
        rewards += [float(environment.step(0)[1]) for _ in range(steps)]
    chosen = (f"{count}: {rewards[count - 1]:.2f}" for count in (1, 2, 3, 100, 4000))
    print("episodes of", steps, "| normalized reward of step", *chosen)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
episodes of 200 | normalized reward of step 1: 70.71 2: 2.02 3: 1.24 100: 0.06 4000: 0.04
episodes of 1 | normalized reward of step 1: 70.71 2: 100.00 3: 122.47 100: 705.35 4000: 4082.48
SEEN
