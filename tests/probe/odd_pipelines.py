"""Healthy pipelines of unusual kinds, and faults that only repeated calls or a look at the mask tell apart.

Each function is an entry as users write them. HEALTHY and BROKEN say what the probe should answer, with any seed.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

Loss = Callable[[nn.Module, Any], Tensor]


def drawn(number: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(number)


def network(inputs: int, outputs: int, width: int = 64) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, outputs)
    )


def rows(count: int = 16, width: int = 20) -> Tensor:
    return torch.randn(count, width, generator=drawn())


def labels(count: int = 16, classes: int = 10) -> Tensor:
    return torch.randint(0, classes, (count,), generator=drawn(3))


def class_loss(model: nn.Module, batch: Any) -> Tensor:
    return functional.cross_entropy(model(batch[0]), batch[1])


def classifier(model: nn.Module, loss: Loss = class_loss, **more: Any) -> SimpleNamespace:
    return SimpleNamespace(model=model, batch=(rows(), labels()), loss=loss, **more)


# --- healthy ----------------------------------------------------------------------------------------------------------


class Denoiser(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = network(17, 16, 128)

    def forward(self, noisy: Tensor, times: Tensor) -> Tensor:
        found: Tensor = self.body(torch.cat([noisy, times[:, None]], 1))
        return found


def _denoised(target: Callable[[Tensor], Tensor]) -> SimpleNamespace:
    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        times, noise = torch.rand(len(batch)), torch.randn_like(batch)
        keep, add = torch.cos(1.57 * times)[:, None], torch.sin(1.57 * times)[:, None]
        return functional.mse_loss(model(keep * batch + add * noise, times), target(noise))

    return SimpleNamespace(model=Denoiser(), batch=rows(16, 16), loss=loss)


def diffusion() -> SimpleNamespace:
    return _denoised(lambda noise: noise)


def two_views() -> SimpleNamespace:
    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        views = torch.cat([batch + 0.1 * torch.randn_like(batch) for _ in range(2)])
        found = functional.normalize(model(views), dim=1)
        scores = (found @ found.T / 0.5).masked_fill(torch.eye(len(found), dtype=torch.bool), -1e9)
        other = torch.arange(len(views)).roll(len(batch))
        return functional.cross_entropy(scores, other)

    return SimpleNamespace(model=network(20, 16), batch=rows(), loss=loss)


class Adversaries(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.generator, self.critic = network(8, 16), network(16, 1)

    def forward(self, noise: Tensor) -> Tensor:
        found: Tensor = self.generator(noise)
        return found


def adversaries() -> SimpleNamespace:
    model, real = Adversaries(), rows(16, 16)
    of_generator = torch.optim.Adam(model.generator.parameters(), 1e-3, betas=(0.5, 0.99))
    of_critic = torch.optim.Adam(model.critic.parameters(), 1e-3, betas=(0.5, 0.99))

    def judged(images: Tensor, *, real: bool) -> Tensor:
        scores = model.critic(images)
        return functional.binary_cross_entropy_with_logits(scores, torch.full_like(scores, float(real)))

    def loss(_model: nn.Module, batch: Tensor) -> Tensor:
        return judged(model(torch.randn(len(batch), 8)), real=True)

    def train_step() -> Tensor:
        noise = torch.randn(16, 8)
        of_critic.zero_grad()
        first = judged(real, real=True) + judged(model(noise).detach(), real=False)
        torch.autograd.backward(first)
        of_critic.step()
        of_generator.zero_grad()
        second = judged(model(noise), real=True)
        torch.autograd.backward(second)
        of_generator.step()
        return first.detach() + second.detach()

    return SimpleNamespace(model=model, batch=real, loss=loss, train_step=train_step)


def augmentation() -> SimpleNamespace:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        images, classes = batch
        flipped = images.flip(-1) if torch.rand(()) < 0.5 else images
        return functional.cross_entropy(model(flipped + 0.05 * torch.randn_like(images)), classes)

    model = nn.Sequential(
        nn.Conv2d(3, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 32, 3, stride=2, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(288, 64), nn.ReLU(), nn.Linear(64, 6),
    )  # fmt: skip
    images = torch.rand(12, 3, 12, 12, generator=drawn())
    return SimpleNamespace(model=model, batch=(images, labels(12, 6)), loss=loss)


class KeepsState(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ids, self.body, self.head = nn.Embedding(30, 32), nn.GRU(32, 64, batch_first=True), nn.Linear(64, 30)
        self.state: Tensor | None = None

    def forward(self, ids: Tensor) -> Tensor:
        found, state = self.body(self.ids(ids), self.state)
        self.state = state.detach()
        return self.head(found)  # type: ignore[no-any-return]


def recurrent_state() -> SimpleNamespace:
    ids = torch.randint(0, 30, (8, 13), generator=drawn())

    def loss(model: nn.Module, batch: Any) -> Tensor:
        return functional.cross_entropy(model(batch["input_ids"]).flatten(0, 1), batch["labels"].flatten())

    return SimpleNamespace(model=KeepsState(), batch={"input_ids": ids[:, :-1], "labels": ids[:, 1:]}, loss=loss)


class Variational(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = network(20, 16), network(8, 20)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, log_variance = self.encoder(inputs).chunk(2, 1)
        hidden = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        return self.decoder(hidden), mean, log_variance


def variational() -> SimpleNamespace:
    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        again, mean, log_variance = model(batch)
        divergence = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum()
        whole: Tensor = functional.mse_loss(again, batch, reduction="sum") + divergence
        return whole / len(batch)

    return SimpleNamespace(model=Variational(), batch=rows(), loss=loss)


def clipped_policy() -> SimpleNamespace:
    model, seen = network(8, 4), rows(32, 8)
    actions, rewards = labels(32, 4), torch.randn(32, generator=drawn(2))

    def log_shares(of: nn.Module) -> Tensor:
        return functional.log_softmax(of(seen), 1).gather(1, actions[:, None])[:, 0]

    before = log_shares(model).detach()

    def loss(of: nn.Module, batch: Any) -> Tensor:
        ratio, advantage = (log_shares(of) - before).exp(), batch["advantages"]
        least: Tensor = torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
        return -least

    advantages = (rewards - rewards.mean()) / rewards.std()
    return SimpleNamespace(model=model, batch={"observations": seen, "advantages": advantages}, loss=loss)


class Experts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(network(20, 32, 32) for _ in range(4))
        self.router, self.head = nn.Linear(20, 4), nn.Linear(32, 10)
        self.balance = torch.zeros(())

    def forward(self, inputs: Tensor) -> Tensor:
        shares = self.router(inputs).softmax(1)
        share, chosen = shares.max(1)
        found = torch.zeros(len(inputs), 32)
        for number, expert in enumerate(self.experts):
            if (mine := chosen == number).any():
                found[mine] = expert(inputs[mine]) * share[mine, None]
        self.balance = 4 * (shares.mean(0) * functional.one_hot(chosen, 4).float().mean(0)).sum()
        return self.head(found)  # type: ignore[no-any-return]


def experts() -> SimpleNamespace:
    return classifier(Experts(), lambda model, batch: class_loss(model, batch) + 0.01 * cast("Experts", model).balance)


class Masked(nn.Module):
    """Classifies padded rows of tokens by a layer of attention; `inverted` turns the mask round on its way there."""

    def __init__(self, *, inverted: bool = False) -> None:
        super().__init__()
        self.ids, self.places = nn.Embedding(40, 32), nn.Parameter(0.02 * torch.randn(12, 32))
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True, norm_first=True)
        self.head, self.inverted = nn.Linear(32, 5), inverted

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        padding = mask.bool() if self.inverted else ~mask.bool()
        found = self.layer(self.ids(ids) + self.places, src_key_padding_mask=padding)
        return self.head((found * mask[..., None]).sum(1) / mask.sum(1, keepdim=True))  # type: ignore[no-any-return]


def padding_mask(*, inverted: bool = False) -> SimpleNamespace:
    lengths = torch.randint(4, 11, (12,), generator=drawn(5))
    mask = (torch.arange(12)[None] < lengths[:, None]).long()
    ids = torch.randint(1, 40, (12, 12), generator=drawn()) * mask

    def loss(model: nn.Module, batch: Any) -> Tensor:
        return functional.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])

    batch = {"input_ids": ids, "attention_mask": mask, "labels": labels(12, 5)}
    return SimpleNamespace(model=Masked(inverted=inverted), batch=batch, loss=loss)


HEALTHY = [
    "diffusion", "two_views", "adversaries", "augmentation", "recurrent_state", "variational", "clipped_policy",
    "experts", "padding_mask",
]  # fmt: skip


# --- broken -----------------------------------------------------------------------------------------------------------


def padding_mask_inverted() -> SimpleNamespace:
    return padding_mask(inverted=True)


def equal_weights() -> SimpleNamespace:
    model = network(20, 10)
    for one in model.parameters():
        nn.init.constant_(one, 0.05)
    return classifier(model)


def targets_drawn_anew() -> SimpleNamespace:
    return _denoised(torch.randn_like)


def labels_in_another_order_at_each_call() -> SimpleNamespace:
    return classifier(network(20, 10), lambda model, batch: class_loss(model, (batch[0], batch[1][torch.randperm(16)])))


def gradients_cleared_before_the_step() -> SimpleNamespace:
    given = classifier(network(20, 10))
    optimizer = torch.optim.Adam(given.model.parameters(), 1e-3)

    def train_step() -> Tensor:
        loss: Tensor = given.loss(given.model, given.batch)
        torch.autograd.backward(loss)
        optimizer.zero_grad()
        optimizer.step()
        return loss

    given.train_step = train_step
    return given


def log_of_zero_under_autocast() -> SimpleNamespace:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            scores = model(batch[0])
        sure = functional.one_hot(scores.argmax(1), 10) * scores.softmax(1)
        return -torch.log(sure.gather(1, batch[1][:, None])).mean()

    return classifier(network(20, 10), loss)


BROKEN = {
    "padding_mask_inverted": ({"memorised", "cannot_learn"}, "train_eval_mismatch"),
    "equal_weights": ({"cannot_learn", "too_slow"}, "bad_init"),
    "targets_drawn_anew": ({"cannot_learn"}, "unknown"),
    "labels_in_another_order_at_each_call": ({"cannot_learn"}, "label_noise"),
    "gradients_cleared_before_the_step": ({"cannot_learn"}, "params_not_training"),
    "log_of_zero_under_autocast": ({"not_finite"}, "invalid_math"),
}
