#!/usr/bin/env bash
# SpeechBrain's NewBob scheduler halves the learning rate in each epoch in which a negative loss gets better.
#
# Guess: the rate is lowered where the loss stops to improve, for an SI-SNR in decibels, too, which is below zero.
# Seen:  the improvement is divided by the previous loss, sign and all. Below zero it is negative when the loss falls:
#        from -10 to -15.5 dB in five epochs the rate goes from 1 to a sixteenth. A loss that rises counts as an
#        improvement, and keeps the rate. A loss that passes zero is halved from there on. The same losses plus 100 are
#        treated right. PyTorch's plateau does the opposite, and never lowers a rate for a loss that stands still below
#        zero.
# With:  speechbrain 1.1.2, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q speechbrain==1.1.2 torch==2.13.0 numpy==2.4.6 2>/dev/null
"$folder/env/bin/pip" uninstall -q -y torchaudio 2>/dev/null
cd "$folder"
touch torchaudio.py # SpeechBrain imports it for files, and there are none
PYTHONPATH=. env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
from speechbrain.nnet.schedulers import NewBobScheduler

for name, losses in {
    "falls above zero": (10, 8, 6, 5, 4.5),
    "falls below zero": (-10, -12, -14, -15, -15.5),
    "falls below zero, plus 100": (90, 88, 86, 85, 84.5),
    "rises below zero": (-10, -9, -8, -7, -6),
    "rises above zero": (10, 11, 12, 13, 14),
    "falls through zero": (2, 1, 0.5, -1, -2),
}.items():
    scheduler = NewBobScheduler(initial_value=1.0, annealing_factor=0.5)
    print(name, "| losses", *losses, "| rates after them", *(scheduler(loss)[1] for loss in losses))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
falls above zero | losses 10 8 6 5 4.5 | rates after them 1.0 1.0 1.0 1.0 1.0
falls below zero | losses -10 -12 -14 -15 -15.5 | rates after them 1.0 0.5 0.25 0.125 0.0625
falls below zero, plus 100 | losses 90 88 86 85 84.5 | rates after them 1.0 1.0 1.0 1.0 1.0
rises below zero | losses -10 -9 -8 -7 -6 | rates after them 1.0 1.0 1.0 1.0 1.0
rises above zero | losses 10 11 12 13 14 | rates after them 1.0 0.5 0.25 0.125 0.0625
falls through zero | losses 2 1 0.5 -1 -2 | rates after them 1.0 1.0 1.0 1.0 0.5
SEEN
