#!/usr/bin/env bash
# The log-mel features of a clip change with the other clips of its batch: librosa makes 92 percent of them one value.
#
# Guess: `power_to_db` works on each value, or at most on each clip, so that a batch gives what its clips give alone.
# Seen:  its `top_db=80` is below the loudest value of the whole array, and `ref=numpy.max` is that value. With a loud
#        clip in the batch a quiet one loses all but its loudest frequencies, and is 48 dB lower. So features depend on
#        the order of rows and the batch size, and validation in batches of one sees other inputs than training.
# With:  librosa 0.11.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q librosa==0.11.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import librosa
import numpy

draw = numpy.random.default_rng(0)
time = numpy.arange(16000) / 16000
quiet = 0.001 * numpy.sin(2 * numpy.pi * 440 * time) + 0.00001 * draw.normal(size=16000)
loud = draw.normal(size=16000)
for name, options in {"defaults": {}, "ref=numpy.max": {"ref": numpy.max}, "top_db=None": {"top_db": None}}.items():
    alone, among = (
        librosa.power_to_db(librosa.feature.melspectrogram(y=clips, sr=16000, n_mels=32), **options)
        for clips in (quiet, numpy.stack([quiet, loud]))
    )
    found, lowest = among[0], round(float((among[0] == among[0].min()).mean()), 2)
    print(name, f"| alone {alone.min():.0f} to {alone.max():.0f}", end=" ")
    print(f"| with noise {found.min():.0f} to {found.max():.0f}, at the lowest {lowest}")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
defaults | alone -85 to -25 | with noise -56 to -25, at the lowest 0.92
ref=numpy.max | alone -61 to 0 | with noise -80 to -48, at the lowest 0.92
top_db=None | alone -85 to -25 | with noise -85 to -25, at the lowest 0.0
SEEN
