"""Pipelines of further families of models for `benchmarks.probe_matrix`, with faults and without.

They differ in what the models are made of: diffusion, contrast, adversaries, experts, recurrence, latent variables,
quantised and tied weights, distances. FAULTS and HEALTHY were written before the probe was asked.
"""

from __future__ import annotations

import math
from types import SimpleNamespace as Pipeline
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import spectral_norm
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.checkpoint import checkpoint

from benchmarks.probe_recipes import classes, drawn, label_loss, labelled, network, text, values


def frames(rows: int = 12, steps: int = 12, width: int = 10) -> Tensor:
    return torch.randn(rows, steps, width, generator=drawn(61))


def series(model: nn.Module, rows: int = 12, steps: int = 12) -> Pipeline:
    batch = {"features": frames(rows, steps), "labels": classes(rows)}
    return Pipeline(model=model, batch=batch, loss=label_loss)


class Noised(nn.Module):
    """A denoiser of vectors that is shown the share of noise."""

    def __init__(self) -> None:
        super().__init__()
        self.body = network(11, 128, 128, 10)

    def forward(self, noisy: Tensor, share: Tensor) -> Tensor:
        return self.body(torch.cat([noisy, share[:, None]], 1))


class Last(nn.Module):
    """A recurrent layer and a head on its last output."""

    def __init__(self, *, batch_first: bool = True) -> None:
        super().__init__()
        self.body, self.head = nn.LSTM(10, 48, batch_first=batch_first), nn.Linear(48, 5)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden, _ = self.body(inputs)
        return self.head(hidden[:, -1])


class Latent(nn.Module):
    """An autoencoder whose latent variable is drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = network(10, 64, 16), network(8, 64, 10)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, spread = self.encoder(inputs).chunk(2, dim=1)
        return self.decoder(mean + torch.randn_like(mean) * spread.exp()), mean, spread


def divergence(mean: Tensor, spread: Tensor) -> Tensor:
    return 0.5 * (mean**2 + (2 * spread).exp() - 2 * spread - 1).sum(1).mean()


# --- faults -----------------------------------------------------------------------------------------------------------


def context_detached() -> Pipeline:
    class Translator(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.source, self.target = nn.Embedding(40, 48), nn.Embedding(40, 48)
            self.encoder, self.decoder = nn.GRU(48, 48, batch_first=True), nn.GRU(48, 48, batch_first=True)
            self.head = nn.Linear(48, 40)

        def forward(self, source: Tensor, target: Tensor) -> Tensor:
            _, state = self.encoder(self.source(source))
            hidden, _ = self.decoder(self.target(target), state.detach())
            return self.head(hidden)

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        scores = model(batch["source"], batch["target"][:, :-1])
        return functional.cross_entropy(scores.flatten(0, 1), batch["target"][:, 1:].flatten())

    return Pipeline(model=Translator(), batch={"source": text(), "target": text(seed=67)}, loss=loss)


def noise_to_predict_drawn_again() -> Pipeline:
    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        share = torch.rand(len(batch))
        noisy = (1 - share)[:, None] * batch + share[:, None] * torch.randn_like(batch)
        return functional.mse_loss(model(noisy, share), torch.randn_like(batch))

    return Pipeline(model=Noised(), batch=values(), loss=loss)


def attraction_alone() -> Pipeline:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        first, second = (functional.normalize(model(batch[name]), dim=1) for name in ("anchor", "positive"))
        return (1 - (first * second).sum(1)).mean()

    batch = {"anchor": values(), "positive": values() + 0.3 * values(seed=71)}
    return Pipeline(model=network(10, 64, 16), batch=batch, loss=loss)


def generator_climbs() -> Pipeline:
    model: Any = nn.ModuleDict({"generator": network(6, 64, 10), "critic": network(10, 64, 1)})
    optimizer = torch.optim.Adam(model["generator"].parameters(), lr=1e-3)
    noise = values(16, 6, 73)

    def loss(model: Any, batch: Tensor) -> Tensor:
        return functional.softplus(-model["critic"](model["generator"](batch))).mean()

    def train_step() -> Tensor:
        optimizer.zero_grad()
        found = loss(model, noise)
        (-found).backward()
        optimizer.step()
        return found.detach()

    return Pipeline(model=model, batch=noise, loss=loss, train_step=train_step)


def evaluation_mode_left_on() -> Pipeline:
    model = nn.Sequential(nn.Linear(10, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 5))
    pipeline = labelled(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    def train_step() -> Tensor:
        model.eval()
        optimizer.zero_grad()
        found = label_loss(model, pipeline.batch)
        found.backward()
        optimizer.step()
        return found.detach()

    pipeline.train_step = train_step
    return pipeline


def inputs_erased() -> Pipeline:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        kept = (torch.rand(batch["features"].shape) > 1.0).float()
        return functional.cross_entropy(model(batch["features"] * kept), batch["labels"])

    return labelled(network(10, 64, 64, 5), loss=loss)


def time_and_rows_exchanged() -> Pipeline:
    return series(Last(batch_first=False))


def recurrent_weights_too_large() -> Pipeline:
    class Simple(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = nn.RNN(10, 48, nonlinearity="relu", batch_first=True), nn.Linear(48, 5)
            nn.init.normal_(self.body.all_weights[0][1], std=0.6)

        def forward(self, inputs: Tensor) -> Tensor:
            hidden, _ = self.body(inputs)
            return self.head(hidden[:, -1])

    return series(Simple(), steps=16)


def router_over_the_rows() -> Pipeline:
    class Experts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.router = nn.Linear(10, 3)
            self.experts = nn.ModuleList(network(10, 32, 5) for _ in range(3))

        def forward(self, inputs: Tensor) -> Tensor:
            weights = self.router(inputs).softmax(0)
            return (torch.stack([expert(inputs) for expert in self.experts], 1) * weights[..., None]).sum(1)

    return labelled(Experts())


def divergence_negated() -> Pipeline:
    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        made, mean, spread = model(batch)
        return functional.mse_loss(made, batch) - divergence(mean, spread)

    return Pipeline(model=Latent(), batch=values(), loss=loss)


def latent_without_a_gradient() -> Pipeline:
    class Sampled(Latent):
        def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            mean, spread = self.encoder(inputs).chunk(2, dim=1)
            return self.decoder(torch.distributions.Normal(mean, spread.exp()).sample()), mean, spread

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        return functional.mse_loss(model(batch)[0], batch)

    return Pipeline(model=Sampled(), batch=values(), loss=loss)


def triplet_of_the_positive() -> Pipeline:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        anchor, positive, negative = (functional.normalize(model(batch[name]), dim=1) for name in batch)
        return functional.triplet_margin_loss(anchor, positive, negative, margin=0.2)

    positive = values() + 0.3 * values(seed=71)
    batch = {"anchor": values(), "positive": positive, "negative": positive.clone()}
    return Pipeline(model=network(10, 64, 16), batch=batch, loss=loss)


def words_not_shifted() -> Pipeline:
    class Writer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ids, self.body, self.head = nn.Embedding(40, 48), nn.GRU(48, 64, batch_first=True), nn.Linear(64, 40)

        def forward(self, ids: Tensor) -> Tensor:
            hidden, _ = self.body(self.ids(ids))
            return self.head(hidden)

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return functional.cross_entropy(model(batch["input_ids"]).flatten(0, 1), batch["labels"].flatten())

    ids = text()
    return Pipeline(model=Writer(), batch={"input_ids": ids, "labels": ids.clone()}, loss=loss)


def ids_beyond_the_table() -> Pipeline:
    model = nn.Sequential(nn.EmbeddingBag(30, 32), nn.Linear(32, 5))

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return functional.cross_entropy(model(batch["input_ids"]), batch["labels"])

    return Pipeline(model=model, batch={"input_ids": text(16), "labels": classes()}, loss=loss)


def bias_far_off() -> Pipeline:
    last = nn.Linear(64, 5)
    nn.init.constant_(last.bias[:1], 80.0)
    return labelled(nn.Sequential(network(10, 64, 64), nn.SiLU(), last))


def entropy_of_certainty() -> Pipeline:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        shares = (200 * model(batch["features"])).softmax(-1)
        entropy = -(shares * shares.log()).sum(1).mean()
        return functional.nll_loss(shares.clamp(min=1e-6).log(), batch["labels"]) - 0.01 * entropy

    return labelled(network(10, 64, 5), loss=loss)


def step_left_out() -> Pipeline:
    pipeline = series(Last())
    optimizer = torch.optim.Adam(pipeline.model.parameters(), lr=3e-3)

    def train_step() -> Tensor:
        optimizer.zero_grad()
        found = label_loss(pipeline.model, pipeline.batch)
        found.backward()
        return found.detach()

    pipeline.train_step = train_step
    pipeline.optimizer = optimizer
    return pipeline


def gradient_cleared_before_the_step() -> Pipeline:
    pipeline = labelled(network(10, 64, 64, 5))
    optimizer = torch.optim.Adam(pipeline.model.parameters(), lr=3e-3)

    def train_step() -> Tensor:
        found = label_loss(pipeline.model, pipeline.batch)
        found.backward()
        optimizer.zero_grad()
        optimizer.step()
        return found.detach()

    pipeline.train_step = train_step
    return pipeline


def warm_up_never_stepped() -> Pipeline:
    pipeline = labelled(network(10, 64, 64, 5))
    optimizer = torch.optim.AdamW(pipeline.model.parameters(), lr=1e-3)
    pipeline.schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, step / 100))

    def train_step() -> Tensor:
        optimizer.zero_grad()
        found = label_loss(pipeline.model, pipeline.batch)
        found.backward()
        optimizer.step()
        return found.detach()

    pipeline.train_step = train_step
    return pipeline


def weights_of_rows_all_zero() -> Pipeline:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        every = functional.cross_entropy(model(batch["features"]), batch["labels"], reduction="none")
        return (every * batch["weights"]).mean()

    batch = {"features": values(), "labels": classes(), "weights": torch.zeros(16)}
    return Pipeline(model=network(10, 64, 5), batch=batch, loss=loss)


def labels_smoothed_away() -> Pipeline:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return functional.cross_entropy(model(batch["features"]), batch["labels"], label_smoothing=1.0)

    return labelled(network(10, 64, 64, 5), loss=loss)


def checkpoint_of_frozen_inputs() -> Pipeline:
    class Saved(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = network(10, 64, 64), nn.Linear(64, 5)

        def forward(self, inputs: Tensor) -> Tensor:
            return self.head(checkpoint(self.body, inputs, use_reentrant=True))

    return labelled(Saved())


def one_unit_wide() -> Pipeline:
    return labelled(network(10, 64, 1, 5, activation=nn.Tanh))


def mask_hides_whole_rows() -> Pipeline:
    class Reader(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.TransformerEncoderLayer(10, 2, 32, 0.0, batch_first=True)
            self.head = nn.Linear(10, 5)

        def forward(self, inputs: Tensor, seen: Tensor) -> Tensor:
            scores = inputs @ inputs.transpose(1, 2) / math.sqrt(10)
            weights = scores.masked_fill(seen[:, None, :], float("-inf")).softmax(-1)
            return self.head(self.body(weights @ inputs).mean(1))

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return functional.cross_entropy(model(batch["features"], batch["seen"]), batch["labels"])

    seen = torch.arange(12)[None] < torch.tensor([12, 8, 5, 12, 7, 9, 12, 3, 6, 12, 10, 4])[:, None]
    return Pipeline(model=Reader(), batch={"features": frames(), "seen": seen, "labels": classes(12)}, loss=loss)


# --- healthy ----------------------------------------------------------------------------------------------------------


def velocity_of_noise() -> Pipeline:
    """Diffusion of images with a convolution, a cosine schedule and the prediction of v."""

    class Painter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Conv2d(4, 32, 3, padding=1), nn.Conv2d(32, 3, 3, padding=1)
            self.middle = nn.Sequential(nn.GroupNorm(4, 32), nn.SiLU(), nn.Conv2d(32, 32, 3, padding=1), nn.SiLU())

        def forward(self, noisy: Tensor, angle: Tensor) -> Tensor:
            plane = angle[:, None, None, None].expand(-1, 1, *noisy.shape[2:])
            hidden = self.first(torch.cat([noisy, plane], 1))
            return self.last(hidden + self.middle(hidden))

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        angle, noise = torch.rand(len(batch)) * math.pi / 2, torch.randn_like(batch)
        near, far = angle.cos()[:, None, None, None], angle.sin()[:, None, None, None]
        return functional.mse_loss(model(near * batch + far * noise, angle), near * noise - far * batch)

    pixels = torch.randn(6, 3, 6, 6, generator=drawn(83))
    return Pipeline(model=Painter(), batch=pixels, loss=loss)


def two_noisy_views() -> Pipeline:
    """Contrast of two augmented views of each row, at a temperature."""

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        views = torch.cat([batch + 0.1 * torch.randn_like(batch) for _ in range(2)])
        found = functional.normalize(model(views), dim=1)
        scores = (found @ found.T / 0.2).masked_fill(torch.eye(len(found), dtype=torch.bool), -1e9)
        return functional.cross_entropy(scores, torch.arange(len(found)).roll(len(batch)))

    return Pipeline(model=network(10, 64, 32), batch=values(), loss=loss)


def hinge_with_spectral_norm() -> Pipeline:
    model: Any = nn.ModuleDict({
        "generator": network(6, 48, 10),
        "critic": nn.Sequential(spectral_norm(nn.Linear(10, 48)), nn.LeakyReLU(0.2), spectral_norm(nn.Linear(48, 1))),
    })  # fmt: skip
    optimizers = {name: torch.optim.Adam(part.parameters(), lr=4e-4, betas=(0.0, 0.9)) for name, part in model.items()}
    real = values()

    def loss(model: Any, batch: Tensor) -> Tensor:
        return -model["critic"](model["generator"](torch.randn(len(batch), 6))).mean()

    def train_step() -> dict[str, Tensor]:
        made = model["generator"](torch.randn(len(real), 6)).detach()
        judged = functional.relu(1 - model["critic"](real)) + functional.relu(1 + model["critic"](made))
        optimizers["critic"].zero_grad()
        judged.mean().backward()
        optimizers["critic"].step()
        optimizers["generator"].zero_grad()
        found = loss(model, real)
        found.backward()
        optimizers["generator"].step()
        return {"loss": found.detach(), "critic": judged.mean().detach()}

    return Pipeline(model=model, batch=real, loss=loss, train_step=train_step)


def half_dropped() -> Pipeline:
    model = nn.Sequential(
        nn.Linear(10, 256), nn.ReLU(), nn.Dropout(0.5), nn.Linear(256, 256), nn.ReLU(), nn.Dropout(0.5),
        nn.Linear(256, 5),
    )  # fmt: skip
    return labelled(model)


def batch_norm_of_few_rows() -> Pipeline:
    model = nn.Sequential(nn.Linear(10, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64), nn.BatchNorm1d(64),
                          nn.ReLU(), nn.Linear(64, 4))  # fmt: skip
    batch = {"features": values(4), "labels": torch.arange(4)}
    return Pipeline(model=model, batch=batch, loss=label_loss)


def cropped_and_turned() -> Pipeline:
    """Random crops, mirrors and erased patches of images."""
    model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(),
                          nn.Flatten(), nn.Linear(32 * 64, 4))  # fmt: skip

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        padded = functional.pad(batch["pixels"], (1, 1, 1, 1), mode="reflect")
        top, left, place = torch.randint(0, 3, (3,)).tolist()
        pixels = padded[:, :, top : top + 8, left : left + 8].clone()
        pixels = pixels.flip(3) if torch.rand(()) < 0.5 else pixels
        pixels[:, :, place : place + 2, place : place + 2] = 0
        return functional.cross_entropy(model(pixels), batch["labels"])

    batch = {"pixels": torch.randn(8, 3, 8, 8, generator=drawn(89)), "labels": torch.arange(8) % 4}
    return Pipeline(model=model, batch=batch, loss=loss)


def packed_recurrence() -> Pipeline:
    """Rows of several lengths, packed, from a learned first state."""

    class Packed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ids, self.body = nn.Embedding(40, 32, padding_idx=0), nn.GRU(32, 48, batch_first=True)
            self.first, self.head = nn.Parameter(torch.zeros(1, 1, 48)), nn.Linear(48, 5)

        def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
            packed = pack_padded_sequence(self.ids(ids), lengths, batch_first=True, enforce_sorted=False)
            _, state = self.body(packed, self.first.expand(-1, len(ids), -1).contiguous())
            return self.head(state[-1])

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return functional.cross_entropy(model(batch["input_ids"], batch["lengths"]), batch["labels"])

    lengths = torch.tensor([12, 5, 8, 3, 10, 7, 12, 4])
    ids = text() * (torch.arange(12)[None] < lengths[:, None])
    return Pipeline(model=Packed(), batch={"input_ids": ids, "lengths": lengths, "labels": classes(8)}, loss=loss)


def one_expert_a_row() -> Pipeline:
    """Experts of which each row takes one, weighted by its gate, with a loss that balances them."""

    class Switch(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate, self.experts = nn.Linear(10, 4), nn.ModuleList(network(10, 32, 32) for _ in range(4))
            self.head = nn.Linear(32, 5)

        def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
            shares = self.gate(inputs).softmax(-1)
            weight, chosen = shares.max(-1)
            hidden = torch.zeros(len(inputs), 32)
            for place, expert in enumerate(self.experts):
                rows = (chosen == place).nonzero()[:, 0]
                if len(rows):
                    hidden = hidden.index_add(0, rows, weight[rows, None] * expert(inputs[rows]))
            used = functional.one_hot(chosen, 4).float().mean(0)
            return self.head(hidden), 4 * (used * shares.mean(0)).sum()

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        scores, balance = model(batch["features"])
        return functional.cross_entropy(scores, batch["labels"]) + 0.01 * balance

    return labelled(Switch(), loss=loss)


def divergence_with_free_bits() -> Pipeline:
    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        made, mean, spread = model(batch)
        return functional.mse_loss(made, batch) + 0.01 * divergence(mean, spread).clamp(min=2.0)

    return Pipeline(model=Latent(), batch=values(), loss=loss)


def learned_step_of_quantisation() -> Pipeline:
    class Stepped(nn.Linear):
        def __init__(self, inputs: int, outputs: int) -> None:
            super().__init__(inputs, outputs)
            self.step = nn.Parameter(self.weight.detach().abs().mean() / 2)

        def forward(self, inputs: Tensor) -> Tensor:
            scaled = (self.weight / self.step).clamp(-8, 7)
            rounded = scaled + (scaled.round() - scaled).detach()
            return functional.linear(inputs, rounded * self.step, self.bias)

    return labelled(nn.Sequential(Stepped(10, 64), nn.ReLU(), Stepped(64, 64), nn.ReLU(), Stepped(64, 5)))


def tied_autoencoder() -> Pipeline:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.bias = nn.Linear(10, 24), nn.Parameter(torch.zeros(10))

        def forward(self, inputs: Tensor) -> Tensor:
            return functional.linear(self.encoder(inputs), self.encoder.weight.T, self.bias)

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        return functional.mse_loss(model(batch), batch)

    return Pipeline(model=Tied(), batch=values(), loss=loss)


def angular_margin() -> Pipeline:
    """Class centres on a sphere, with a margin at the right one, as ArcFace has them."""

    class Sphere(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.centres = network(10, 64, 32), nn.Parameter(torch.randn(5, 32))

        def forward(self, inputs: Tensor, labels: Tensor | None = None) -> Tensor:
            cosine = functional.normalize(self.body(inputs), dim=1) @ functional.normalize(self.centres, dim=1).T
            angle = cosine.clamp(-1 + 1e-6, 1 - 1e-6).acos()
            margin = 0.0 if labels is None else 0.3 * functional.one_hot(labels, 5)
            return 16 * (angle + margin).cos()

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return functional.cross_entropy(model(batch["features"], batch["labels"]), batch["labels"])

    return labelled(Sphere(), loss=loss)


HEALTHY = (
    "velocity_of_noise", "two_noisy_views", "hinge_with_spectral_norm", "half_dropped", "batch_norm_of_few_rows",
    "cropped_and_turned", "packed_recurrence", "one_expert_a_row", "divergence_with_free_bits",
    "learned_step_of_quantisation", "tied_autoencoder", "angular_margin",
)  # fmt: skip

RUNS_ON = {"memorised", "too_slow", "cannot_learn"}
STOPS = {"too_slow", "cannot_learn"}
FAULTS: dict[str, tuple[set[str], set[str]]] = {
    "context_detached": (RUNS_ON, {"params_not_training"}),
    "noise_to_predict_drawn_again": ({"cannot_learn"}, {"label_noise", "wrong_loss", "unknown"}),
    "attraction_alone": ({"memorised"}, {"representation_collapse", "no_signal"}),
    "generator_climbs": (STOPS | {"not_finite"}, {"wrong_loss"}),
    "evaluation_mode_left_on": (RUNS_ON, {"eval_mode_bug"}),
    "inputs_erased": ({"cannot_learn"}, {"no_signal"}),
    "time_and_rows_exchanged": (RUNS_ON, {"rows_mixed"}),
    "recurrent_weights_too_large": (RUNS_ON | {"not_finite"}, {"exploding_gradients", "bad_init"}),
    "router_over_the_rows": (RUNS_ON, {"rows_mixed"}),
    "divergence_negated": ({"cannot_learn", "not_finite"}, {"wrong_loss"}),
    "latent_without_a_gradient": (RUNS_ON, {"params_not_training"}),
    "triplet_of_the_positive": ({"cannot_learn"}, {"no_preference_signal", "no_signal", "wrong_loss"}),
    "words_not_shifted": ({"memorised"}, {"label_shift_error"}),
    "ids_beyond_the_table": ({"failed"}, {"", "tokenizer_mismatch"}),
    "bias_far_off": (RUNS_ON, {"bad_init"}),
    "entropy_of_certainty": ({"not_finite"}, {"invalid_math"}),
    "step_left_out": ({"cannot_learn"}, {"params_not_training"}),
    "gradient_cleared_before_the_step": ({"cannot_learn"}, {"params_not_training"}),
    "warm_up_never_stepped": ({"cannot_learn"}, {"lr_too_low", "lr_schedule_bug"}),
    "weights_of_rows_all_zero": ({"cannot_learn"}, {"wrong_loss", "all_labels_masked"}),
    "labels_smoothed_away": ({"cannot_learn"}, {"wrong_loss", "no_signal", "label_noise", "unknown"}),
    "checkpoint_of_frozen_inputs": (RUNS_ON, {"params_not_training"}),
    "one_unit_wide": (STOPS, {"too_little_capacity"}),
    "mask_hides_whole_rows": ({"not_finite"}, {"invalid_math", "bad_batch"}),
}
"""The verdicts and the leading causes that are right."""
