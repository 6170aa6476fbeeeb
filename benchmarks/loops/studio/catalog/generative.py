"""Faulty generative and self-supervised runs."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.studio import adversarial, contrastive, generative
from benchmarks.loops.studio.catalog.tools import once, swap, times
from benchmarks.loops.studio.core import Plan, Record, Spec
from benchmarks.loops.studio.loop import Batch, Twist, go


def hardest(s: int) -> Record:
    """A triplet loss on the hardest negatives at a high rate, without a squared root."""
    bench = contrastive.contrast(s, "triplet")

    def loss(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        a, b = contrastive.views(batch[0], 1.5)
        za, zb = model(a) * 0.2, model(b) * 0.2
        near = ((za - zb) ** 2).sum(1)
        far = (torch.cdist(za, zb) ** 2 + 1e6 * torch.eye(len(za))).amin(1)
        return {"loss": functional.relu(near - far + 0.3).mean(), "emb_std": za.std(0).mean()}

    return go(s, swap(bench, loss=loss, margin=0.3, mining="hardest"), Plan(epochs=20, lr=4e-3, batch=128))


def same_pairs(s: int) -> Record:
    """SimCLR on inputs that are all alike (a broken decoder of files)."""
    bench = contrastive.contrast(s)
    return go(
        s,
        swap(bench, data=(bench.data[0][:1].repeat(1024, 1, 1, 1) * 0,)),
        Plan(epochs=12, lr=2e-3, batch=128),
    )


def silent(s: int) -> Record:
    """A code that the decoder does not use."""
    return go(s, generative.vae(s, beta=lambda _step: 150.0), Plan(epochs=14, lr=3e-3, log_every=8), beta_kl=150.0)


def unscaled(s: int) -> Record:
    """Evaluation data that miss the normalisation of the training data."""
    bench = generative.diffusion(s)
    (points,) = bench.evals["val"]
    return go(s, swap(bench, evals={"val": (points * 0.35,)}), Plan(epochs=40, lr=3e-3, batch=128, eval_every=4))


SPECS = [
    Spec(
        "lr_too_high",
        "csv_german",
        "diffusion",
        lambda s: go(s, generative.diffusion(s), Plan(epochs=30, lr=1.5, batch=128, eval_every=5)),
        "the noise error jumps and stays near or above one",
    ),
    Spec(
        "too_few_epochs",
        "sacred",
        "diffusion",
        lambda s: go(s, generative.diffusion(s), Plan(epochs=3, lr=1e-3, batch=128, log_every=4)),
        "loss and sample distance still fall at the end",
        ("lr_too_low",),
    ),
    Spec(
        "train_eval_mismatch",
        "tensorboard_csv",
        "diffusion",
        unscaled,
        "validation error is bad from the first time on and gets worse, training is fine",
        ("metric_bug", "overfitting"),
    ),
    Spec(
        "wrong_loss",
        "yaml_list",
        "diffusion",
        lambda s: go(
            s,
            generative.diffusion(s, "v", sample_kind="eps"),
            Plan(epochs=50, lr=3e-3, batch=128, eval_every=5),
            prediction_type="epsilon",
        ),
        "loss like that of v, sampled as noise: the samples are bad throughout",
        ("train_eval_mismatch", "metric_bug"),
    ),
    Spec(
        "bad_batch",
        "csv_plain",
        "diffusion",
        lambda s: go(
            s,
            generative.diffusion(s),
            Plan(epochs=30, lr=3e-3, batch=128, eval_every=5, log_every=5),
            Twist(batch=once(240, times(80.0))),
        ),
        "one jump of the loss at step 241, then back",
        ("healthy",),
    ),
    Spec("representation_collapse", "mlflow", "vae", silent, "KL goes to zero and stays"),
    Spec(
        "representation_collapse",
        "ansi",
        "ssl",
        lambda s: go(s, contrastive.contrast(s, "simsiam", stop=False), Plan(epochs=24, lr=6e-3, batch=128)),
        "the loss goes to -1 and the spread of embeddings to zero",
    ),
    Spec(
        "representation_collapse",
        "keras_history",
        "ssl",
        hardest,
        "the loss sits at the margin of 0.3, spread near zero",
    ),
    Spec(
        "representation_collapse",
        "terse",
        "ssl",
        lambda s: go(
            s,
            contrastive.contrast(s, "simsiam", stop=False, show=False),
            Plan(epochs=10, lr=3e-3, batch=128, log_every=4),
        ),
        "the loss goes to -1 at once, without a spread of embeddings in the log",
        (),
        True,
    ),
    Spec(
        "no_signal",
        "lightning_csv",
        "ssl",
        same_pairs,
        "the loss stays around ln 128 = 4.85 and the spread shrinks",
        ("representation_collapse",),
    ),
    Spec(
        "lr_too_low",
        "fastai",
        "vae",
        lambda s: go(s, generative.vae(s), Plan(epochs=14, lr=8e-6)),
        "smooth and hardly moving",
    ),
    Spec(
        "invalid_math",
        "jsonl_flat",
        "vae",
        lambda s: go(
            s,
            generative.vae(s, variance=lambda v: torch.sqrt(1 + v / 3) ** 6),
            Plan(epochs=12, lr=4e-3, log_every=2),
        ),
        "NaN suddenly, from the KL term, out of a sound descent",
        (),
    ),
    Spec(
        "adversarial_imbalance",
        "prose_toml",
        "gan",
        lambda s: adversarial.gan(s, lr_g=3e-5, lr_d=5e-3, d_steps=4, noise=0.0, steps=400, width_d=96, width_g=16),
        "discriminator loss near zero, scores near one and zero",
    ),
    Spec(
        "adversarial_imbalance",
        "wandb_export",
        "gan",
        lambda s: adversarial.gan(s, lr_g=2e-3, lr_d=1e-7, noise=0.15),
        "the discriminator stays at ln 2 while the generator drifts",
    ),
    Spec(
        "adversarial_imbalance",
        "units_ini",
        "gan",
        lambda s: adversarial.gan(
            s, lr_g=2e-5, lr_d=4e-3, noise=0.0, saturating=True, steps=400, d_steps=4, width_d=96
        ),
        "generator gradient vanishes as the discriminator wins",
        ("vanishing_gradients",),
    ),
    Spec(
        "params_not_training",
        "drawn_table",
        "gan",
        lambda s: adversarial.gan(s, freeze_g=True, noise=0.1, steps=500, log_every=20),
        "sample distance never changes though the gradient is there",
        ("adversarial_imbalance",),
    ),
]
