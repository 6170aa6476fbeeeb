#!/usr/bin/env bash
# The loss that gensim counts up ends at 16,777,216: from there on each epoch has loss 0, of a model that learns
# nothing.
#
# Guess: `get_latest_training_loss` is a sum since the beginning, as is known; its growth in an epoch is the epoch's
#        loss.
# Seen:  each word and each negative one adds its own small loss to a number of single precision. Near 2**22 a loss of
#        0.69 counts as 0.5, near 2**23 as 1, from 2**24 on as 0. With a learning rate of 1e-9 all epochs are alike, but
#        the second seems to have 0.7 of the loss of the first, the fourth 1.4, and each from the sixth on none.
# With:  gensim 4.4.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q gensim==4.4.0 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import numpy
from gensim.models import Word2Vec
from gensim.models.callbacks import CallbackAny2Vec


class Sums(CallbackAny2Vec):
    def __init__(self):
        self.sums = [0.0]

    def on_epoch_end(self, model):
        self.sums.append(model.get_latest_training_loss())


sums = Sums()
words = numpy.random.default_rng(0).integers(0, 1000, size=(8000, 20))
options = {"vector_size": 4, "sg": 1, "alpha": 1e-9, "min_alpha": 1e-9, "min_count": 1, "workers": 1, "seed": 1}
Word2Vec([[str(word) for word in line] for line in words], epochs=8, compute_loss=True, callbacks=[sums], **options)
losses = numpy.diff(sums.sums)
print("by the first epoch", *(float(round(loss / losses[0], 1)) for loss in losses), "| sum", sums.sums[-1])
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
by the first epoch 1.0 0.7 0.8 1.4 0.6 0.0 0.0 0.0 | sum 16777216.0
SEEN
