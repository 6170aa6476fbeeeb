#!/usr/bin/env bash
# SpeechBrain counts 37 frames of speech where there are 36: a model that is always right has a loss of 2.7 by padding.
#
# Guess: lengths are shares of the longest clip, and losses and metrics turn them back into whole frames.
# Seen:  36 / 140 times 140 is a little above 36 in float32, and a mask takes each frame that begins below it. What a
#        model says of that frame of padding counts in its loss and gradient: at one length in 38 up to 299 frames. The
#        accuracy counts it from 7 frames of 13 on, where losses take off a millionth, which is too little for longer
#        clips. So one clip has another loss by the longest clip of its batch.
# With:  speechbrain 1.1.2, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q speechbrain==1.1.2 torch==2.13.0 numpy==2.4.6 2>/dev/null
"$folder/env/bin/pip" uninstall -q -y torchaudio 2>/dev/null
cd "$folder"
touch torchaudio.py # SpeechBrain imports it for files, and there are none
PYTHONPATH=. env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch
from speechbrain.nnet.losses import compute_length_mask, mse_loss, nll_loss
from speechbrain.utils.Accuracy import Accuracy

for spoken, frames in ((7, 12), (7, 13), (36, 139), (36, 140), (36, 141)):
    share = torch.tensor([spoken / frames])
    targets = torch.zeros(1, frames, dtype=torch.int64)
    speech = (torch.arange(frames) < spoken)[None, :, None]
    outputs = torch.where(speech, torch.tensor([0.0, -100.0]), torch.tensor([-100.0, 0.0]))
    counted = compute_length_mask(targets, share).sum().item()
    nll, mse = nll_loss(outputs, targets, share).item(), mse_loss(outputs[..., 0], targets.float(), share).item()
    right, frames_of_metric = Accuracy(outputs, targets, share)
    print(spoken, "frames of", frames, "| counted", counted, f"| nll {nll:.2f} mse {mse:.0f}", end=" | ")
    print("accuracy", int(right), "of", int(frames_of_metric))
wrong = 0
for frames in range(1, 300):
    spoken = torch.arange(1, frames + 1)
    wrong += (compute_length_mask(torch.ones(frames, frames), spoken / frames).sum(1) > spoken).sum().item()
print("lengths up to 299 frames", 299 * 300 // 2, "| a frame too many in", wrong)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
7 frames of 12 | counted 7 | nll 0.00 mse 0 | accuracy 7 of 7
7 frames of 13 | counted 7 | nll 0.00 mse 0 | accuracy 7 of 8
36 frames of 139 | counted 36 | nll 0.00 mse 0 | accuracy 36 of 36
36 frames of 140 | counted 37 | nll 2.70 mse 270 | accuracy 36 of 37
36 frames of 141 | counted 36 | nll 0.00 mse 0 | accuracy 36 of 36
lengths up to 299 frames 44850 | a frame too many in 1166
SEEN
