#!/usr/bin/env bash
# The recipe in PFRL's own documentation for a falling learning rate lowers an attribute, and no rate.
#
# Guess: `LinearInterpolationHook` with the setter of its docstring, `agent.optimizer.lr = value`, brings the rate of the
#        optimizer down to 0 as the last step is made.
# Seen:  optimizers of PyTorch have no `lr`: the line makes a new attribute, which is 0.0 at the end, and
#        `param_groups` stays at 0.001. A log of `agent.optimizer.lr` shows the fall that was wished for. The last steps
#        of the run move the weights on, which looks like a policy that does not settle. With a setter of
#        `param_groups` they are nearly 0.
# With:  pfrl 0.4.0, gym 0.26.2, packaging 25.0, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q pfrl==0.4.0 gym==0.26.2 packaging==25.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import numpy as np
import pfrl
import torch
from pfrl.agents import DoubleDQN
from pfrl.experiments import LinearInterpolationHook, train_agent
from pfrl.explorers import ConstantEpsilonGreedy
from pfrl.q_functions import DiscreteActionValueHead
from pfrl.replay_buffers import ReplayBuffer


class Task:
    """Episodes of ten steps with a random reward, so that the gradient never vanishes."""

    def reset(self):
        self.steps = 0
        return np.ones(2, dtype=np.float32)

    def step(self, action):
        self.steps += 1
        return np.ones(2, dtype=np.float32), float(generator.normal()), self.steps == 10, {}


def as_documented(env, agent, value):
    agent.optimizer.lr = value


def by_group(env, agent, value):
    for group in agent.optimizer.param_groups:
        group["lr"] = value


for setter in (as_documented, by_group):
    pfrl.utils.set_random_seed(0)
    generator = np.random.default_rng(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), DiscreteActionValueHead())
    explorer = ConstantEpsilonGreedy(0.1, lambda: np.random.randint(2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    agent = DoubleDQN(
        model, optimizer, ReplayBuffer(1000), 0.9, explorer, replay_start_size=100, target_update_interval=100
    )
    ways, rates, last = [], [], torch.nn.utils.parameters_to_vector(model.parameters()).detach().clone()

    def watch(env, agent, step):
        global last
        now = torch.nn.utils.parameters_to_vector(model.parameters()).detach().clone()
        ways.append(float((now - last).abs().sum()))
        rates.append(optimizer.param_groups[0]["lr"])
        last = now

    hook = LinearInterpolationHook(2000, 0.001, 0, setter)
    train_agent(agent, Task(), 2000, ".", step_hooks=[hook, watch])
    print(setter.__name__, "| optimizer.lr at the end", getattr(optimizer, "lr", "missing"), end=" | ")
    print("rates at steps 200, 1000, 2000", *(round(rates[step - 1], 5) for step in (200, 1000, 2000)), end=" | ")
    print("last 100 steps at least a tenth of 100 early ones:", sum(ways[-100:]) > 0.1 * sum(ways[200:300]))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
as_documented | optimizer.lr at the end 0.0 | rates at steps 200, 1000, 2000 0.001 0.001 0.001 | last 100 steps at least a tenth of 100 early ones: True
by_group | optimizer.lr at the end missing | rates at steps 200, 1000, 2000 0.0009 0.0005 0.0 | last 100 steps at least a tenth of 100 early ones: False
SEEN
