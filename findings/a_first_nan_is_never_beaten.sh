#!/usr/bin/env bash
# A first val_loss of NaN ends a Keras or Flax run that then improves in each epoch, and leaves no later checkpoint.
#
# Guess: NaN is passed over: the best loss is infinite until a number comes, and each improvement counts.
# Seen:  what comes first is the best, whatever it is, and no number is less than NaN. EarlyStopping with a patience of
#        2 stops Keras after three epochs, with the weights of the NaN epoch, and Flax after four. ModelCheckpoint
#        keeps the first epoch, and ReduceLROnPlateau brings the rate to a hundredth. A NaN in epoch 2 does nothing.
# With:  keras 3.15.1, flax 0.12.8, jax 0.10.2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q keras==3.15.1 flax==0.12.8 jax==0.10.2 numpy==2.4.6 2>/dev/null
cd "$folder"
export KERAS_BACKEND=jax
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import keras
import numpy
from flax.training.early_stopping import EarlyStopping

ROWS = numpy.ones((4, 1), "float32")


class Losses(keras.callbacks.Callback):
    """Give each epoch its validation loss."""

    def __init__(self, losses: list[float]) -> None:
        super().__init__()
        self.losses = losses

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        logs["val_loss"] = self.losses[epoch]


def outcome_in_keras(losses: list[float], callback: keras.callbacks.Callback) -> tuple[int, float]:
    """Return the number of epochs and the last learning rate."""
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    epochs = model.fit(ROWS, ROWS, epochs=len(losses), verbose=0, callbacks=[Losses(losses), callback]).epoch
    return len(epochs), round(float(model.optimizer.learning_rate), 4)


for place in (0, 1):
    losses = [0.6, 0.5, 0.4, 0.3, 0.2, 0.1]
    losses[place] = float("nan")
    print("losses", *losses)
    options = {"monitor": "val_loss", "mode": "min"}
    print("  Keras stops after", outcome_in_keras(losses, keras.callbacks.EarlyStopping(patience=2, **options))[0])
    checkpoint = keras.callbacks.ModelCheckpoint("best.keras", save_best_only=True, **options)
    outcome_in_keras(losses, checkpoint)
    print("  Keras' checkpoint is of loss", checkpoint.best)
    plateau = keras.callbacks.ReduceLROnPlateau(patience=2, **options)
    print("  Keras' rate ends at", outcome_in_keras(losses, plateau)[1])
    stopping, states = EarlyStopping(patience=2), []
    for loss in losses:
        stopping = stopping.update(loss)
        states.append(stopping.should_stop)
    print("  Flax stops after", states.index(True) + 1 if True in states else len(losses))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
losses nan 0.5 0.4 0.3 0.2 0.1
  Keras stops after 3
  Keras' checkpoint is of loss nan
  Keras' rate ends at 0.001
  Flax stops after 4
losses 0.6 nan 0.4 0.3 0.2 0.1
  Keras stops after 6
  Keras' checkpoint is of loss 0.1
  Keras' rate ends at 0.1
  Flax stops after 6
SEEN
