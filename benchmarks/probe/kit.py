"""What the pipelines of the matrix are made of: data, networks, steps, and the tables that they enter themselves in."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from types import SimpleNamespace as Pipeline
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

Make = TypeVar("Make", bound=Callable[[], Pipeline])
STOPS = "too_slow cannot_learn"
RUNS_ON = f"memorised {STOPS}"
"""The verdicts of a fault that does not stop learning as such: what comes of it depends on the model."""


class Case(NamedTuple):
    """A pipeline: the file of its function and its name, and the verdicts and leading causes that are right."""

    file: str
    name: str
    verdicts: set[str]
    causes: set[str]

    @property
    def is_healthy(self) -> bool:
        """Whether it must be memorised without an accusation."""
        return self.causes == {"healthy"}


CASES: dict[str, Case] = {}
"""The pipelines by name."""


def fault(verdicts: str, causes: str) -> Callable[[Make], Make]:
    """Enter a pipeline with what is right for it; a probe that fails names no cause."""

    def entered(make: Make) -> Make:
        name = make.__name__
        CASES[name] = Case(make.__code__.co_filename, name, set(verdicts.split()), set(causes.split()) or {""})
        return make

    return entered


healthy = fault("memorised", "healthy")
"""Enter a pipeline without a fault."""


def drawn(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def values(rows: int = 16, width: int = 10, seed: int = 41) -> Tensor:
    return torch.randn(rows, width, generator=drawn(seed))


def classes(rows: int = 16, count: int = 5, seed: int = 43) -> Tensor:
    return torch.randint(0, count, (rows,), generator=drawn(seed))


def text(rows: int = 8, length: int = 12, vocabulary: int = 40, seed: int = 47) -> Tensor:
    return torch.randint(2, vocabulary, (rows, length), generator=drawn(seed))


def frames(rows: int = 12, steps: int = 12, width: int = 10) -> Tensor:
    return torch.randn(rows, steps, width, generator=drawn(61))


def network(*widths: int, activation: type[nn.Module] = nn.SiLU) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [nn.Linear(inputs, outputs), activation()]
    return nn.Sequential(*layers[:-1])


class Composed(nn.Module):
    """A model of named parts, and a function of itself and of its inputs that makes its outputs."""

    def __init__(self, compute: Callable[..., Any], **parts: nn.Module | nn.Parameter) -> None:
        super().__init__()
        self.compute = compute
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *inputs: Any) -> Any:
        return self.compute(self, *inputs)


def label_loss(model: nn.Module, batch: Any) -> Tensor:
    return functional.cross_entropy(model(batch["features"]), batch["labels"])


def value_loss(model: nn.Module, batch: Any) -> Tensor:
    return functional.mse_loss(model(batch["features"]), batch["labels"])


def output_loss(model: nn.Module, batch: Any) -> Tensor:
    found: Tensor = model(**batch).loss
    return found


def pipeline(model: nn.Module, loss: Any = label_loss, **more: Any) -> Pipeline:
    """Return a pipeline of a model; its batch holds features and classes where none is given."""
    return Pipeline(**{"model": model, "loss": loss, "batch": {"features": values(), "labels": classes()}, **more})


def series(model: nn.Module, steps: int = 12) -> Pipeline:
    return pipeline(model, batch={"features": frames(steps=steps), "labels": classes(12)})


def nothing() -> None:
    """Do nothing."""


def with_step(
    given: Pipeline,
    optimizer: torch.optim.Optimizer,
    *,
    after_backward: Callable[[], object] = nothing,
    after_step: Callable[[], object] = nothing,
    zero_grad: bool = True,
) -> Pipeline:
    """Add a step as users write it, with something more in two places of it."""

    def train_step() -> Tensor:
        if zero_grad:
            optimizer.zero_grad()
        loss: Tensor = given.loss(given.model, given.batch)
        torch.autograd.backward(loss)
        after_backward()
        optimizer.step()
        after_step()
        return loss.detach()

    given.train_step = train_step
    return given


class LowRank(nn.Module):
    """A frozen linear layer with a trained correction of low rank, as LoRA has it."""

    def __init__(self, inputs: int, outputs: int, rank: int = 8, scale: float = 2.0) -> None:
        super().__init__()
        self.base = nn.Linear(inputs, outputs).requires_grad_(requires_grad=False)
        self.down = nn.Parameter(torch.randn(rank, inputs) / math.sqrt(inputs))
        self.up, self.scale = nn.Parameter(torch.zeros(outputs, rank)), scale

    def forward(self, inputs: Tensor) -> Tensor:
        return self.base(inputs) + self.scale * inputs @ self.down.T @ self.up.T


def adapted(scale: float = 2.0) -> nn.Module:
    """Return a frozen network with adapters in all layers."""
    sizes = ((10, 64), (64, 64), (64, 5))
    first, second, last = (LowRank(*size, scale=scale) for size in sizes)
    return nn.Sequential(first, nn.SiLU(), second, nn.SiLU(), last)


class TinyTransformer(nn.Module):
    """A language model with its embedding tied to the head."""

    def __init__(self) -> None:
        super().__init__()
        self.ids, self.places, self.last = nn.Embedding(40, 48), nn.Embedding(32, 48), nn.LayerNorm(48)
        nn.init.normal_(self.ids.weight, std=0.02)
        layer = nn.TransformerEncoderLayer(48, 4, 96, 0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, ids: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        hidden = self.body(self.ids(ids) + self.places.weight[: ids.shape[1]], mask=mask, is_causal=True)
        return self.last(hidden) @ self.ids.weight.T


def next_token_loss(model: nn.Module, batch: Any) -> Tensor:
    logits = model(batch["input_ids"])
    return functional.cross_entropy(logits[:, :-1].flatten(0, 1), batch["labels"][:, 1:].flatten())


def language() -> Pipeline:
    ids = text()
    return pipeline(TinyTransformer(), next_token_loss, batch={"input_ids": ids, "labels": ids.clone()})


class Latent(nn.Module):
    """An autoencoder whose latent variable is drawn."""

    def __init__(self, *, with_gradient: bool = True) -> None:
        super().__init__()
        self.encoder, self.decoder, self.with_gradient = network(10, 64, 16), network(8, 64, 10), with_gradient

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, spread = self.encoder(inputs).chunk(2, dim=1)
        latent = torch.distributions.Normal(mean, spread.exp())
        return self.decoder(latent.rsample() if self.with_gradient else latent.sample()), mean, spread


def latent(weigh: Callable[[Tensor], Tensor], *, with_gradient: bool = True) -> Pipeline:
    """Return an autoencoder; `weigh` says what the divergence of its latent variable adds to the loss."""

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        made, mean, spread = model(batch)
        divergence = 0.5 * (mean**2 + (2 * spread).exp() - 2 * spread - 1).sum(1).mean()
        return functional.mse_loss(made, batch) + weigh(divergence)

    return pipeline(Latent(with_gradient=with_gradient), loss, batch=values())


def pairs() -> dict[str, Tensor]:
    """Return anchors, and positives that are near to them."""
    return {"anchor": values(), "positive": values() + 0.3 * values(seed=71)}


def checkpointed(*, reentrant: bool) -> Pipeline:
    from torch.utils.checkpoint import checkpoint

    def compute(model: Any, inputs: Tensor) -> Any:
        return model.head(checkpoint(model.body, inputs, use_reentrant=reentrant))

    return pipeline(Composed(compute, body=network(10, 64, 64), head=nn.Linear(64, 5)))


def adversaries(noise: int, rate: float, betas: tuple[float, float] = (0.9, 0.999)) -> tuple[Any, Any, Any]:
    """Return a generator with its critic, and the optimizer of each."""
    model = nn.ModuleDict({"generator": network(noise, 48, 10), "critic": network(10, 48, 1)})
    generator, critic = (torch.optim.Adam(part.parameters(), lr=rate, betas=betas) for part in model.values())
    return model, generator, critic


def experiences() -> dict[str, Tensor]:
    """Return states, actions, rewards and the states that follow."""
    rewards = values(16, 1, 73)[:, 0]
    return {"states": values(), "next_states": values(seed=71), "actions": classes(16, 3), "rewards": rewards}


def taken(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """Return the values of the actions that were taken."""
    chosen: Tensor = model(batch["states"]).gather(1, batch["actions"][:, None])[:, 0]
    return chosen
