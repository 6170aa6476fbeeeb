#!/usr/bin/env bash
# Pyro's `clip_norm` turns the gradient: of two weights with gradients of 300 and 3 both take the same step.
#
# Guess: the norm that is clipped is that of all gradients, as with `clip_grad_norm_`: the step is shorter, and its
#        direction stays.
# Seen:  Pyro makes an optimizer for each parameter, and clips each alone. All gradients above the limit become equally
#        long, so that a weight with a hundredth of the gradient steps as far as the other. The whole step grows with
#        the root of the number of parameters: a hundred of them, with a limit of 1, go ten times as far as in PyTorch.
# With:  pyro-ppl 1.9.2, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q pyro-ppl==1.9.2 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import pyro
import torch
from pyro.distributions import Normal
from pyro.infer import SVI, Trace_ELBO


def in_pyro(scales):
    """Return the weights after a step of Pyro, with a limit of 1 and a rate of 1."""

    def model():
        mean = sum(scale * pyro.param(f"w{place}", torch.tensor(0.0)) for place, scale in enumerate(scales))
        pyro.sample("goal", Normal(mean, 1.0), obs=torch.tensor(3.0))

    pyro.clear_param_store()
    optimizer = pyro.optim.SGD({"lr": 1.0}, clip_args={"clip_norm": 1.0})
    SVI(model, lambda: None, optimizer, Trace_ELBO()).step()
    return torch.stack([pyro.param(f"w{place}").detach() for place in range(len(scales))])


def in_torch(scales):
    """Return the weights after the same step in PyTorch."""
    weights = [torch.zeros((), requires_grad=True) for _ in scales]
    mean = sum(scale * weight for scale, weight in zip(scales, weights))
    (-torch.distributions.Normal(mean, 1.0).log_prob(torch.tensor(3.0))).backward()
    torch.nn.utils.clip_grad_norm_(weights, 1.0)
    torch.optim.SGD(weights, lr=1.0).step()
    return torch.stack(weights).detach()


for name, scales in (("gradients 300 and 3", [100.0, 1.0]), ("a hundred of 3", [1.0] * 100)):
    for library, step in (("Pyro", in_pyro(scales)), ("PyTorch", in_torch(scales))):
        first = ", ".join(f"{weight:.2f}" for weight in step[:2].tolist())
        print(f"{name}, {library} | first steps {first}, length of the whole {step.norm().item():.2f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
gradients 300 and 3, Pyro | first steps 1.00, 1.00, length of the whole 1.41
gradients 300 and 3, PyTorch | first steps 1.00, 0.01, length of the whole 1.00
a hundred of 3, Pyro | first steps 1.00, 1.00, length of the whole 10.00
a hundred of 3, PyTorch | first steps 0.10, 0.10, length of the whole 1.00
SEEN
