#!/usr/bin/env bash
# TorchRL's `loss_critic` of one critic is 95.5, 47.8 or 1.0, by `critic_coeff`.
#
# Guess: `loss_critic` and `loss_entropy` are what the critic misses and the entropy; the weights come in where they
#        are added up, as in Stable-Baselines3, whose `value_loss` has none.
# Seen:  the weights are in each part already, and `loss_entropy` is the negative entropy times its weight, so that it
#        is 0 where the weight is 0 and the policy's entropy is 1.42. Two runs with other weights are not to be
#        compared by them, and a critic with a weight of 0.01 seems to have learnt. The explained variance of goals
#        that are all the same, which is undefined, is under -1,000,000: a small number stands in for their variance,
#        and one such batch rules the mean of a run.
# With:  torchrl 0.14.1, tensordict 0.14.3, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torchrl==0.14.1 tensordict==0.14.3 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torch.distributions import Normal
from torchrl.modules import ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss


class Policy(torch.nn.Module):
    """Give the mean and the scale of an action."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def forward(self, observation):
        mean = self.layer(observation)
        return mean, torch.ones_like(mean)


torch.manual_seed(0)
actor = ProbabilisticActor(
    TensorDictModule(Policy(), in_keys=["observation"], out_keys=["loc", "scale"]),
    in_keys=["loc", "scale"],
    distribution_class=Normal,
    return_log_prob=True,
)
critic = ValueOperator(torch.nn.Linear(2, 1), in_keys=["observation"])
batch = TensorDict({"observation": torch.randn(8, 2)}, [8])
with torch.no_grad():
    actor(batch)
batch["advantage"] = torch.randn(8, 1)
for goals, target in (("equal", torch.full((8, 1), 10.0)), ("other", torch.arange(8.0)[:, None])):
    batch["value_target"] = target
    with torch.no_grad():
        error = (critic.module(batch["observation"]) - target).square().mean().item()
    for weight, entropy in ((1.0, 0.01), (0.5, 0.01), (0.01, 0.0)):
        loss = ClipPPOLoss(actor, critic, critic_coeff=weight, entropy_coeff=entropy, loss_critic_type="l2")
        found = {name: value.mean().item() for name, value in loss(batch).items()}
        print(f"{goals} goals, weights {weight} and {entropy} | error {error:.1f}", end=", ")
        print(f"loss_critic {found['loss_critic']:.1f} | entropy {found['entropy']:.2f}", end=", ")
        print(f"loss_entropy {found['loss_entropy']:.3f}", end=" | ")
        print("explained variance under -1e6", found["explained_variance"] < -1e6)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
equal goals, weights 1.0 and 0.01 | error 95.5, loss_critic 95.5 | entropy 1.42, loss_entropy -0.014 | explained variance under -1e6 True
equal goals, weights 0.5 and 0.01 | error 95.5, loss_critic 47.8 | entropy 1.42, loss_entropy -0.014 | explained variance under -1e6 True
equal goals, weights 0.01 and 0.0 | error 95.5, loss_critic 1.0 | entropy 1.42, loss_entropy 0.000 | explained variance under -1e6 True
other goals, weights 1.0 and 0.01 | error 16.7, loss_critic 16.7 | entropy 1.42, loss_entropy -0.014 | explained variance under -1e6 False
other goals, weights 0.5 and 0.01 | error 16.7, loss_critic 8.4 | entropy 1.42, loss_entropy -0.014 | explained variance under -1e6 False
other goals, weights 0.01 and 0.0 | error 16.7, loss_critic 0.2 | entropy 1.42, loss_entropy 0.000 | explained variance under -1e6 False
SEEN
