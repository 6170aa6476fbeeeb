#!/usr/bin/env bash
# Perfect beats of a clip of five seconds score 0 in mir_eval, and perfect speech with long silence 0.00001 in pystoi.
#
# Guess: what equals the reference has the best score, 1, in each metric, however short the sound.
# Seen:  `mir_eval.beat.evaluate` drops the beats of the first five seconds, so that a shorter clip scores 0 in all
#        metrics; `f_measure` by itself does not, and has 1. STOI drops what is quiet; with less than about 0.4 seconds
#        left it returns 0.00001. Each such clip counts as a failure in the mean: five clips of 1 to 20 seconds, each
#        perfect, have a mean of 0.4. An onset metric of a clip without onsets is 0, too.
# With:  mir_eval 0.8.2, pystoi 0.4.1, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q mir_eval==0.8.2 pystoi==0.4.1 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import mir_eval
import numpy as np
from pystoi import stoi

scores = []
for seconds in (1, 3, 5, 10, 20):
    beats = np.arange(0.5, seconds, 0.5)
    scores.append(float(mir_eval.beat.evaluate(beats, beats)["F-measure"]))
    print(f"beats of {seconds} s | evaluate {scores[-1]} | f_measure {mir_eval.beat.f_measure(beats, beats)}")
print("mean", np.mean(scores), "| no onsets", mir_eval.onset.f_measure(np.array([]), np.array([]))[0])
random = np.random.default_rng(0)
for loud in (0.2, 0.3, 0.5, 1.0):
    speech = random.standard_normal(int(16000 * loud))
    padded = np.concatenate([speech, 1e-4 * random.standard_normal(48000)])
    print(f"speech of {loud} s | STOI {stoi(speech, speech, 16000):.5f}", end=" | ")
    print(f"with 3 s of silence {stoi(padded, padded, 16000):.5f}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
beats of 1 s | evaluate 0.0 | f_measure 1.0
beats of 3 s | evaluate 0.0 | f_measure 1.0
beats of 5 s | evaluate 0.0 | f_measure 1.0
beats of 10 s | evaluate 1.0 | f_measure 1.0
beats of 20 s | evaluate 1.0 | f_measure 1.0
mean 0.4 | no onsets 0.0
speech of 0.2 s | STOI 0.00001 | with 3 s of silence 0.00001
speech of 0.3 s | STOI 0.00001 | with 3 s of silence 0.00001
speech of 0.5 s | STOI 1.00000 | with 3 s of silence 1.00000
speech of 1.0 s | STOI 1.00000 | with 3 s of silence 1.00000
SEEN
