"""Make the samples of Keras by running it (Keras 3.15 on torch was used).

A classifier of noisy sums: its CSV log and what `fit` printed, once with bars (verbose=1, as in a terminal that cannot
go back) and once with lines (verbose=2), each with the remarks of a checkpoint between and an evaluation after it; then
the same CSV appended to by a second fit.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from tests.logs.samples.make.keeping import folder_of, tell, terminal

os.environ.setdefault("KERAS_BACKEND", "torch")


def rows(count: int, seed: int) -> tuple[Any, Any]:
    """Return inputs (count, 8) and which of two sums of them is larger, one label in ten turned."""
    draw = np.random.default_rng(seed)
    inputs = draw.normal(size=(count, 8)).astype("float32")
    labels = inputs[:, :4].sum(axis=1) > inputs[:, 4:].sum(axis=1)
    return inputs, (labels ^ (draw.random(count) < 0.1)).astype("float32")


def model() -> Any:
    """Return a compiled classifier."""
    import keras

    keras.utils.set_random_seed(1)
    layers = [keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1, activation="sigmoid")]
    classifier = keras.Sequential([keras.Input((8,)), *layers])
    classifier.compile(keras.optimizers.Adam(3e-3), loss="binary_crossentropy", metrics=["accuracy"])
    return classifier


def fit(kept: Path, name: str, *, verbose: int, append: bool = False, epochs: int = 6) -> None:
    """Fit, and keep what was printed and the CSV log."""
    import keras

    with tempfile.TemporaryDirectory() as place:
        log = Path(place) / "training.csv"
        if append:
            shutil.copy(kept / "training.csv", log)
        with terminal(kept / f"{name}.log"):
            classifier = model()
            classifier.summary()
            checkpoint = keras.callbacks.ModelCheckpoint(
                str(Path(place) / "best.keras"), save_best_only=True, verbose=1
            )
            classifier.fit(
                *rows(512, 0), validation_data=rows(128, 1), epochs=epochs, batch_size=32, verbose=verbose,
                callbacks=[checkpoint, keras.callbacks.CSVLogger(str(log), append=append)],
            )  # fmt: skip
            classifier.evaluate(*rows(128, 2), verbose=verbose)
        shutil.copy(log, kept / ("appended.csv" if append else "training.csv"))


if __name__ == "__main__":
    folder = folder_of("keras")
    fit(folder, "bars", verbose=1)
    fit(folder, "lines", verbose=2)
    fit(folder, "appended", verbose=2, append=True, epochs=4)
    (folder / "appended.log").unlink()
    tell(folder)
