#!/usr/bin/env bash
# The mean return of an episode falls from 100 to 7 with 16 environments in Gymnasium's vector wrapper, by its zeros.
#
# Guess: `infos["episode"]["r"]` of a vector holds the returns of the episodes that ended in this step, so that its mean
#        is their mean, as with one environment.
# Seen:  it has a place for each environment, and 0.0 where none ended. The more environments, the lower the mean, up to
#        the true return divided by their number; the mask stands at `infos["_episode"]`. The wrapper's own
#        `return_queue` is right here, but keeps the last 100 episodes: seven environments that end after ten steps hide
#        an eighth of 1000 steps in most steps, and the mean is 10 or 20, where it is 134 by environment.
# With:  gymnasium 1.4.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q gymnasium==1.4.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import gymnasium
import numpy as np
from gymnasium.wrappers.vector import RecordEpisodeStatistics


class Timed(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.time += 1
        return np.zeros(1, np.float32), 1.0, self.time >= self.steps, False, {}


def vector(lengths: list[int]) -> RecordEpisodeStatistics:
    made = RecordEpisodeStatistics(gymnasium.vector.SyncVectorEnv([lambda n=n: Timed(n) for n in lengths]))
    made.reset(seed=0)
    return made


for count in (1, 4, 16):
    environments, means, masked = vector([100 + place for place in range(count)]), [], []
    for _ in range(1000):
        infos = environments.step(np.zeros(count, int))[4]
        if "episode" in infos:
            means.append(infos["episode"]["r"].mean())
            masked.append(infos["episode"]["r"][infos["_episode"]].mean())
    print(f"{count} environments | mean {np.mean(means):.1f} | with the mask {np.mean(masked):.1f}", end=" | ")
    print(f"queue {np.mean(environments.return_queue):.1f}")
environments = vector([10] * 7 + [1000])
for step in range(1, 3001):
    environments.step(np.zeros(8, int))
    if step in (900, 1000, 1300, 3000):
        print(f"step {step} | queue {np.mean(environments.return_queue):.1f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
1 environments | mean 100.0 | with the mask 100.0 | queue 100.0
4 environments | mean 25.4 | with the mask 101.5 | queue 101.5
16 environments | mean 6.7 | with the mask 107.3 | queue 107.5
step 900 | queue 10.0
step 1000 | queue 19.9
step 1300 | queue 10.0
step 3000 | queue 10.0
SEEN
