"""Fit a model of a statistical or scientific library, as it should be and with a far too high learning rate.

Run as `python -m benchmarks.samples.sciences LIBRARY FOLDER` with the package installed; see
`benchmarks/samples/frameworks.py` for what is kept.
"""

# ruff: noqa: ANN401, D403 - the classes of libraries have no types, and their names are written small
from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.samples.frameworks import classes, printed_to, write_samples


def deepxde(factor: float, path: Path) -> None:
    """DeepXDE's table of lists."""
    import deepxde as dde
    import numpy as np

    dde.config.set_random_seed(0)
    data = dde.data.PDE(
        dde.geometry.Interval(-1, 1),
        lambda x, y: -dde.grad.hessian(y, x) - np.pi**2 * dde.backend.torch.sin(np.pi * x),
        dde.icbc.DirichletBC(dde.geometry.Interval(-1, 1), lambda _: 0, lambda _, on_edge: on_edge),
        16, 2, solution=lambda x: np.sin(np.pi * x), num_test=50,
    )  # fmt: skip
    model = dde.Model(data, dde.nn.FNN([1, 16, 16, 1], "tanh", "Glorot uniform"))
    with printed_to(path):
        model.compile("adam", lr=0.005 * factor, metrics=["l2 relative error"])
        model.train(iterations=600, display_every=50)


def hmmlearn(factor: float, path: Path) -> None:
    """hmmlearn's columns of iteration, log likelihood and gain."""
    from hmmlearn.hmm import GaussianHMM

    x, _ = classes()
    with printed_to(path), contextlib.suppress(Exception):
        GaussianHMM(3, "diag", n_iter=20, tol=1e-4, random_state=0, verbose=True, min_covar=1e-3 * factor).fit(x)


def boltzmann_machine(factor: float, path: Path) -> None:
    """scikit-learn's restricted Boltzmann machine."""
    from sklearn.neural_network import BernoulliRBM

    x, _ = classes()
    with printed_to(path):
        BernoulliRBM(8, learning_rate=0.05 * factor, n_iter=15, verbose=1, random_state=0).fit(
            (x > 0).astype("float32")
        )


def pomegranate(factor: float, path: Path) -> None:
    """pomegranate's lines of improvement."""
    import torch
    from pomegranate.distributions import Normal
    from pomegranate.gmm import GeneralMixtureModel

    torch.manual_seed(0)
    x, _ = classes()
    with printed_to(path):
        GeneralMixtureModel(
            [Normal() for _ in range(3)], verbose=True, max_iter=20, inertia=min(0.1 * factor, 1.0)
        ).fit(torch.tensor(x))


def numpyro(factor: float, path: Path) -> None:
    """NumPyro's bar of stochastic variational inference."""
    import jax
    import numpyro as package
    from numpyro import distributions, infer

    x, y = classes()

    def model(rows: Any, labels: Any) -> None:
        weight = package.sample("weight", distributions.Normal(0, 1).expand([8]).to_event(1))
        package.sample("label", distributions.Bernoulli(logits=rows @ weight), obs=labels)

    guide = infer.autoguide.AutoNormal(model)
    with printed_to(path):
        infer.SVI(model, guide, package.optim.Adam(0.01 * factor), infer.Trace_ELBO()).run(
            jax.random.PRNGKey(0), 400, x, y
        )


def open_tsne(factor: float, path: Path) -> None:
    """openTSNE's two phases, of rows in four groups."""
    import numpy as np
    from openTSNE import TSNE

    x, _ = classes()
    with printed_to(path):
        TSNE(
            learning_rate=300.0 * factor, n_iter=300, early_exaggeration_iter=250, verbose=True, random_state=0,
            max_step_norm=5 if factor == 1 else None,
        ).fit(x + 4 * np.eye(8)[np.arange(300) % 4])  # fmt: skip


def k_means(factor: float, path: Path) -> None:
    """scikit-learn's K-means, which has no learning rate: the rows of the second run are scaled."""
    from sklearn.cluster import KMeans

    x, _ = classes()
    with printed_to(path):
        KMeans(4, verbose=1, n_init=1, random_state=0, max_iter=15).fit(x * factor)


def gplearn(factor: float, path: Path) -> None:
    """gplearn's table of generations; the second run mutates more."""
    from gplearn.genetic import SymbolicRegressor

    x, y = classes()
    with printed_to(path):
        SymbolicRegressor(
            population_size=100, generations=8, verbose=1, random_state=0, p_crossover=0.9 if factor == 1 else 0.1
        ).fit(x, y)


def pyod(factor: float, path: Path) -> None:
    """PyOD's lines of an autoencoder."""
    from pyod.models.auto_encoder import AutoEncoder

    x, _ = classes()
    with printed_to(path):
        AutoEncoder(epoch_num=10, batch_size=32, lr=1e-3 * factor, verbose=2, device="cpu", random_state=0).fit(x)


def cornac(factor: float, path: Path) -> None:
    """Cornac's bar of matrix factorisation."""
    import cornac as package

    ratings = [(f"u{i % 30}", f"i{i * 7 % 41}", float(1 + i % 5)) for i in range(600)]
    rows = package.data.Dataset.from_uir(ratings, seed=0)
    with printed_to(path):
        package.models.MF(k=8, max_iter=20, learning_rate=0.01 * factor, verbose=True, seed=0, num_threads=1).fit(rows)


def scvi(factor: float, path: Path) -> None:
    """The history of scVI by epoch, with a divergence that is always 0."""
    import anndata
    import numpy as np
    import pandas as pd
    import scvi as package

    package.settings.seed = 0
    random = np.random.default_rng(0)
    code = random.normal(size=(500, 3)) @ random.normal(size=(3, 100))
    cells = anndata.AnnData(random.poisson(np.exp(np.clip(code, -2, 2))).astype("float32"))
    package.model.SCVI.setup_anndata(cells)
    model = package.model.SCVI(cells, n_hidden=32, n_latent=3)
    options = {"accelerator": "cpu", "batch_size": 64, "check_val_every_n_epoch": 1, "enable_progress_bar": False}
    with contextlib.suppress(ValueError):  # a network of NaN
        model.train(max_epochs=40, plan_kwargs={"lr": 0.001 * factor}, **options)
        path.parent.mkdir(parents=True, exist_ok=True)
        pd.concat(model.history.values(), axis=1).to_csv(path.with_suffix(".csv"))


LIBRARIES: dict[str, Callable[[float, Path], None]] = {
    function.__name__: function
    for function in (
        deepxde, hmmlearn, boltzmann_machine, pomegranate, numpyro, open_tsne, k_means, gplearn, pyod,
        cornac, scvi,
    )
}  # fmt: skip

if __name__ == "__main__":
    write_samples(LIBRARIES)
