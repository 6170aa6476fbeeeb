#!/usr/bin/env bash
# A diffusion model trains on images without any noise from its first validation image on: they share a scheduler.
#
# Guess: `add_noise` of diffusers adds what belongs to the timesteps that it is given; `set_timesteps` is for sampling.
# Seen:  once `set_begin_index` was called, as the pipelines of Stable Diffusion XL, Flux and Wan do, the timesteps are
#        ignored: each row gets the noise of where sampling stopped, and at its end that is none. The loss jumps to that
#        of guessing noise which is not there, and nothing is said. Without a begin index Euler and flow matching stop
#        with an IndexError, and DPM-Solver takes the nearest of the 20 steps that were sampled, or its last. DDPM and
#        DDIM, which have one table, go on as before. A copy of the scheduler for sampling does no harm.
# With:  diffusers 0.42.1, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q diffusers==0.42.1 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import copy

import diffusers
import torch


def noise(scheduler):
    """Return the share of noise that images get at four timesteps of training."""
    timesteps = torch.tensor([1, 250, 500, 999])
    image, noise = torch.zeros(4, 1), torch.ones(4, 1)
    try:
        if isinstance(scheduler, diffusers.FlowMatchEulerDiscreteScheduler):
            noisy = scheduler.scale_noise(image, timesteps.float(), noise)
        else:
            noisy = scheduler.add_noise(image, noise, timesteps)
    except IndexError:
        return ["IndexError"]
    return [round(value, 2) for value in noisy.ravel().tolist()]


def sample(scheduler, begin):
    """Sample an image of 20 steps, as a pipeline does."""
    scheduler.set_timesteps(20)
    if begin:
        scheduler.set_begin_index(0)
    image = torch.ones(1, 1, 8, 8)
    for timestep in scheduler.timesteps:
        if hasattr(scheduler, "scale_model_input"):
            scheduler.scale_model_input(image, timestep)
        image = scheduler.step(torch.zeros_like(image), timestep, image).prev_sample


for kind in ("FlowMatchEulerDiscrete", "EulerDiscrete", "DPMSolverMultistep", "DDPM", "DDIM"):
    make = getattr(diffusers, f"{kind}Scheduler")
    print(kind)
    print("  before:", *noise(make()))
    for begin in (True, False):
        scheduler = make()
        if begin and not hasattr(scheduler, "set_begin_index"):
            continue
        sample(scheduler, begin)
        print("  after an image", "with a begin index:" if begin else "without:", *noise(scheduler))
    scheduler = make()
    sample(copy.deepcopy(scheduler), hasattr(scheduler, "set_begin_index"))
    print("  after an image by a copy:", *noise(scheduler))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
FlowMatchEulerDiscrete
  before: 0.0 0.25 0.5 1.0
  after an image with a begin index: 0.0 0.0 0.0 0.0
  after an image without: IndexError
  after an image by a copy: 0.0 0.25 0.5 1.0
EulerDiscrete
  before: 0.01 0.96 3.44 157.41
  after an image with a begin index: 0.0 0.0 0.0 0.0
  after an image without: IndexError
  after an image by a copy: 0.01 0.96 3.44 157.41
DPMSolverMultistep
  before: 1.0 1.0 0.96 0.01
  after an image with a begin index: 0.0 0.0 0.0 0.0
  after an image without: 0.17 0.69 0.96 1.0
  after an image by a copy: 1.0 1.0 0.96 0.01
DDPM
  before: 0.01 0.69 0.96 1.0
  after an image without: 0.01 0.69 0.96 1.0
  after an image by a copy: 0.01 0.69 0.96 1.0
DDIM
  before: 0.01 0.69 0.96 1.0
  after an image without: 0.01 0.69 0.96 1.0
  after an image by a copy: 0.01 0.69 0.96 1.0
SEEN
