#!/usr/bin/env bash
# DPM-Solver makes pure noise of an image at timestep 0 and leaves it clean at 999: training runs the wrong way round.
#
# Guess: `add_noise` of each scheduler in diffusers adds little at timestep 0 and nearly all at 999, as DDPM does.
# Seen:  DPM-Solver, UniPC and DEIS count their timesteps from 999 down and their noise from small to large, until
#        `set_timesteps` was called. A loop that takes such a scheduler for its training, as it was made, gets the noise
#        of 999 - t for timestep t. A model that is right for DDPM has a loss of 9,668 there at timestep 0, and 0.98
#        at 999, where it should be 0. After `set_timesteps(1000)` the order is right. Euler and DDIM have it from the
#        start.
# With:  diffusers 0.42.1, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q diffusers==0.42.1 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import diffusers
import torch

timesteps = torch.tensor([0, 100, 500, 900, 999])


def shares(scheduler):
    """Return the share of noise in an image at five timesteps."""
    ones, zeros = torch.ones(5, 1), torch.zeros(5, 1)
    image, noise = (scheduler.add_noise(*pair, timesteps).ravel() for pair in ((ones, zeros), (zeros, ones)))
    share = noise / (image.square() + noise.square()).sqrt()
    return " ".join(f"{value:.2f}" for value in share.tolist())


print("share of noise at the timesteps", *timesteps.tolist())
solvers = ("DPMSolverMultistep", "DPMSolverSinglestep", "UniPCMultistep", "DEISMultistep")
for kind in ("DDPM", "DDIM", "EulerDiscrete", *solvers):
    scheduler = getattr(diffusers, f"{kind}Scheduler")()
    first = shares(scheduler)
    scheduler.set_timesteps(1000)
    print(f"{kind}: {first} | after set_timesteps(1000): {shares(scheduler)}")


def losses(kind):
    """Return the loss, by timestep, of a model of black images that is right for the noise of DDPM."""
    model = diffusers.DDPMScheduler()
    scheduler = getattr(diffusers, f"{kind}Scheduler")()
    images, noise = torch.zeros(5, 4096), torch.randn(5, 4096, generator=torch.Generator().manual_seed(0))
    noisy = scheduler.add_noise(images, noise, timesteps)
    guess = noisy / (1 - model.alphas_cumprod[timesteps]).sqrt().unsqueeze(1)
    return " ".join(f"{value:.2f}" for value in (guess - noise).square().mean(1).tolist())


for kind in ("DDPM", "DPMSolverMultistep"):
    print(f"loss of a model that is right for DDPM, on noise of {kind}: {losses(kind)}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
share of noise at the timesteps 0 100 500 900 999
DDPM: 0.01 0.32 0.96 1.00 1.00 | after set_timesteps(1000): 0.01 0.32 0.96 1.00 1.00
DDIM: 0.01 0.32 0.96 1.00 1.00 | after set_timesteps(1000): 0.01 0.32 0.96 1.00 1.00
EulerDiscrete: 0.01 0.32 0.96 1.00 1.00 | after set_timesteps(1000): 0.01 0.32 0.96 1.00 1.00
DPMSolverMultistep: 1.00 1.00 0.96 0.32 0.01 | after set_timesteps(1000): 0.01 0.32 0.96 1.00 1.00
DPMSolverSinglestep: 1.00 1.00 0.96 0.32 0.01 | after set_timesteps(1000): 0.01 0.32 0.96 1.00 1.00
UniPCMultistep: 1.00 1.00 0.96 0.32 0.01 | after set_timesteps(1000): 0.01 0.32 0.96 1.00 1.00
DEISMultistep: 1.00 1.00 0.96 0.32 0.01 | after set_timesteps(1000): 0.01 0.32 0.96 1.00 1.00
loss of a model that is right for DDPM, on noise of DDPM: 0.00 0.00 0.00 0.00 0.00
loss of a model that is right for DDPM, on noise of DPMSolverMultistep: 9668.22 4.45 0.00 0.47 0.98
SEEN
