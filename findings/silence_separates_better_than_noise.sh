#!/usr/bin/env bash
# A model that gives silence in place of a voice has an SI-SDR of 0 dB in torchmetrics; a noisy voice has -12 dB.
#
# Guess: an output of zeros has nothing of the voice: its ratio is minus infinity or close, the worst that there is.
# Seen:  both sides of the ratio are then 0, and the small number that is added to each makes it 1: 0 dB. A voice under
#        loud noise has -12 dB, so that a model whose output died looks improved. auraloss has -80 dB for silence.
#        Where the voice itself is silent, silence has 0 dB, and a faint hiss -31: clips without a voice pull the mean.
#        Minus the voice, each sign turned, is perfect in both libraries.
# With:  torchmetrics 1.9.0, auraloss 0.4.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torchmetrics==1.9.0 auraloss==0.4.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import auraloss
import torch
from torchmetrics.functional.audio import (
    scale_invariant_signal_distortion_ratio,
    scale_invariant_signal_noise_ratio,
    signal_noise_ratio,
)

torch.manual_seed(0)
voice, noise = torch.sin(torch.arange(16000) / 20), torch.randn(16000)
for name, output, target in (
    ("a little noise", voice + 0.1 * noise, voice),
    ("loud noise", voice + 3 * noise, voice),
    ("silence", 0 * voice, voice),
    ("minus the voice", -voice, voice),
    ("silence for silence", 0 * voice, 0 * voice),
    ("faint hiss for silence", 0.0001 * noise, 0 * voice),
):
    print(f"{name} | SI-SDR {scale_invariant_signal_distortion_ratio(output, target):.0f}", end=" ")
    print(f"SI-SNR {scale_invariant_signal_noise_ratio(output, target):.0f}", end=" ")
    print(f"SNR {signal_noise_ratio(output, target):.0f}", end=" | ")
    print(f"auraloss SI-SDR {-auraloss.time.SISDRLoss()(output[None, None], target[None, None]):.0f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
a little noise | SI-SDR 17 SI-SNR 17 SNR 17 | auraloss SI-SDR 17
loud noise | SI-SDR -12 SI-SNR -12 SNR -13 | auraloss SI-SDR -12
silence | SI-SDR 0 SI-SNR 0 SNR 0 | auraloss SI-SDR -80
minus the voice | SI-SDR 108 SI-SNR 108 SNR -6 | auraloss SI-SDR 119
silence for silence | SI-SDR 0 SI-SNR 0 SNR 0 | auraloss SI-SDR -80
faint hiss for silence | SI-SDR -31 SI-SNR -31 SNR -31 | auraloss SI-SDR -80
SEEN
