"""Healthy pipelines of tasks and steps that the pipelines of `tests/probe` lack: each must be memorised."""

from __future__ import annotations

import copy
import itertools
from types import SimpleNamespace as Pipeline
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence

from benchmarks.probe.kit import (
    Composed,
    adapted,
    adversaries,
    checkpointed,
    classes,
    drawn,
    experiences,
    healthy,
    label_loss,
    language,
    latent,
    network,
    next_token_loss,
    pipeline,
    taken,
    text,
    values,
    with_step,
)

# --- noise of its own -------------------------------------------------------------------------------------------------


@healthy
def flow_matching() -> Pipeline:
    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        time, noise = torch.rand(len(batch), 1), torch.randn_like(batch)
        return functional.mse_loss(model(torch.cat([(1 - time) * noise + time * batch, time], 1)), batch - noise)

    return pipeline(network(11, 128, 128, 10), loss, batch=values())


@healthy
def stochastic_depth() -> Pipeline:
    def compute(model: Any, inputs: Tensor) -> Any:
        hidden = model.first(inputs)
        for block in model.blocks:
            if not model.training:
                hidden = hidden + 0.8 * block(hidden)
            elif torch.rand(()) < 0.8:
                hidden = hidden + block(hidden)
        return model.last(hidden)

    blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 64), nn.GELU()) for _ in range(4))
    return pipeline(Composed(compute, first=nn.Linear(10, 64), blocks=blocks, last=nn.Linear(64, 5)))


@healthy
def sampled_choices() -> Pipeline:
    def compute(model: Any, inputs: Tensor) -> Any:
        scores = model.encoder(inputs).reshape(-1, 3, 8)
        chosen = functional.gumbel_softmax(scores, 0.7) if model.training else scores.softmax(-1)
        return model.decoder(chosen.flatten(1))

    return pipeline(Composed(compute, encoder=network(10, 64, 24), decoder=network(24, 64, 5)))


@healthy
def mixed_up_rows() -> Pipeline:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        share, order = float(torch.distributions.Beta(0.2, 0.2).sample()), torch.randperm(len(batch["labels"]))
        scores = model(share * batch["features"] + (1 - share) * batch["features"][order])
        own, other = (functional.cross_entropy(scores, labels) for labels in (batch["labels"], batch["labels"][order]))
        return share * own + (1 - share) * other

    return pipeline(network(10, 128, 128, 5), loss)


@healthy
def masked_patches() -> Pipeline:
    def compute(model: Any, patches: Tensor, hidden: Tensor) -> Any:
        shown = torch.where(hidden[..., None], model.hole, patches)
        return model.out(model.body(model.into(shown) + model.places))

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        hidden = torch.rand(batch.shape[:2]).argsort(1) < 4
        return (model(batch, hidden) - batch)[hidden].square().mean()

    body = nn.TransformerEncoderLayer(48, 4, 96, 0.0, batch_first=True, norm_first=True)
    hole, places = nn.Parameter(torch.zeros(12)), nn.Parameter(torch.randn(9, 48))
    model = Composed(compute, hole=hole, into=nn.Linear(12, 48), out=nn.Linear(48, 12), places=places, body=body)
    return pipeline(model, loss, batch=torch.randn(8, 9, 12, generator=drawn(89)))


@healthy
def half_dropped() -> Pipeline:
    layers = [layer for width in (10, 256) for layer in (nn.Linear(width, 256), nn.ReLU(), nn.Dropout(0.5))]
    return pipeline(nn.Sequential(*layers, nn.Linear(256, 5)))


@healthy
def divergence_with_free_bits() -> Pipeline:
    return latent(lambda divergence: 0.01 * divergence.clamp(min=2.0))


# --- parts of networks ------------------------------------------------------------------------------------------------


@healthy
def low_rank_adapter() -> Pipeline:
    model = adapted()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return pipeline(model, optimizer=torch.optim.AdamW(trained, lr=3e-3))


@healthy
def gradient_checkpointing() -> Pipeline:
    return checkpointed(reentrant=False)


@healthy
def batch_norm_of_few_rows() -> Pipeline:
    layers = [layer for width in (10, 64) for layer in (nn.Linear(width, 64), nn.BatchNorm1d(64), nn.ReLU())]
    batch = {"features": values(4), "labels": torch.arange(4)}
    return pipeline(nn.Sequential(*layers, nn.Linear(64, 4)), batch=batch)


@healthy
def quantisation_aware() -> Pipeline:
    class Quantised(nn.Linear):
        def forward(self, inputs: Tensor) -> Tensor:
            step = self.weight.detach().abs().amax() / 7
            rounded = (self.weight / step).round().clamp(-7, 7) * step
            return functional.linear(inputs, self.weight + (rounded - self.weight).detach(), self.bias)

    return pipeline(nn.Sequential(Quantised(10, 64), nn.ReLU(), Quantised(64, 64), nn.ReLU(), Quantised(64, 5)))


@healthy
def quantised_codes() -> Pipeline:
    """A vector-quantised autoencoder: straight-through codes, a codebook loss and a commitment loss."""

    def compute(model: Any, inputs: Tensor) -> Any:
        found = model.encoder(inputs).reshape(-1, 4, 8)
        near = model.book(torch.cdist(found, model.book.weight[None]).argmin(-1))
        cost = (near - found.detach()).square().mean() + 0.25 * (found - near.detach()).square().mean()
        return model.decoder((found + (near - found).detach()).flatten(1)), cost

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        made, cost = model(batch)
        return functional.mse_loss(made, batch) + cost

    book = nn.Embedding(64, 8)
    nn.init.normal_(book.weight, std=0.3)
    model = Composed(compute, encoder=network(10, 64, 32), decoder=network(32, 64, 10), book=book)
    return pipeline(model, loss, batch=values())


@healthy
def packed_recurrence() -> Pipeline:
    """Rows of several lengths, packed, from a learned first state."""

    def compute(model: Any, ids: Tensor, lengths: Tensor) -> Any:
        packed = pack_padded_sequence(model.ids(ids), lengths, batch_first=True, enforce_sorted=False)
        _, state = model.body(packed, model.first.expand(-1, len(ids), -1).contiguous())
        return model.head(state[-1])

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return functional.cross_entropy(model(batch["input_ids"], batch["lengths"]), batch["labels"])

    lengths = torch.tensor([12, 5, 8, 3, 10, 7, 12, 4])
    ids = text() * (torch.arange(12)[None] < lengths[:, None])
    first, body = nn.Parameter(torch.zeros(1, 1, 48)), nn.GRU(32, 48, batch_first=True)
    model = Composed(compute, ids=nn.Embedding(40, 32, padding_idx=0), body=body, first=first, head=nn.Linear(48, 5))
    return pipeline(model, loss, batch={"input_ids": ids, "lengths": lengths, "labels": classes(8)})


# --- losses -----------------------------------------------------------------------------------------------------------


@healthy
def contrastive() -> Pipeline:
    """Pictures and captions in one space, with a learned temperature, as CLIP has them."""

    def compute(model: Any, pictures: Tensor, captions: Tensor) -> Any:
        image, words = (functional.normalize(found, dim=1) for found in (model.image(pictures), model.words(captions)))
        return model.scale.exp() * image @ words.T

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        scores = model(*batch.values())
        order = torch.arange(len(scores))
        return (functional.cross_entropy(scores, order) + functional.cross_entropy(scores.T, order)) / 2

    scale = nn.Parameter(torch.tensor(2.0))
    model = Composed(compute, image=network(10, 64, 24), words=nn.EmbeddingBag(40, 24), scale=scale)
    return pipeline(model, loss, batch={"pictures": values(8), "captions": text()})


@healthy
def angular_margin() -> Pipeline:
    """Class centres on a sphere, with a margin at the right one, as ArcFace has them."""

    def compute(model: Any, inputs: Tensor, labels: Tensor | None = None) -> Tensor:
        cosine = functional.normalize(model.body(inputs), dim=1) @ functional.normalize(model.centres, dim=1).T
        angle = cosine.clamp(-1 + 1e-6, 1 - 1e-6).acos()
        margin = 0.0 if labels is None else 0.3 * functional.one_hot(labels, 5)
        return 16 * (angle + margin).cos()

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return functional.cross_entropy(model(batch["features"], batch["labels"]), batch["labels"])

    return pipeline(Composed(compute, body=network(10, 64, 32), centres=nn.Parameter(torch.randn(5, 32))), loss)


@healthy
def triplets_with_a_margin() -> Pipeline:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        found = functional.normalize(model(batch["features"]), dim=1)
        apart = torch.cdist(found, found)
        same = batch["labels"][:, None] == batch["labels"][None]
        hardest = torch.where(same, apart, -1.0).max(1).values
        nearest = torch.where(same, 9.0, apart).min(1).values
        return functional.relu(hardest - nearest + 0.3).mean()

    return pipeline(network(10, 128, 16), loss)


@healthy
def likelihood_with_a_learned_variance() -> Pipeline:
    """The loss goes below zero and has no floor."""

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        mean, log_variance = model(batch["features"]).chunk(2, 1)
        log_variance = log_variance.clamp(-6, 6)
        return 0.5 * (log_variance + (batch["labels"] - mean).square() / log_variance.exp()).mean()

    return pipeline(network(10, 64, 64, 4), loss, batch={"features": values(), "labels": values(16, 2, 83)})


@healthy
def words_and_drawn_negatives() -> Pipeline:
    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        negatives = torch.randint(20, 40, (len(batch), 4))
        near, far = model(batch[:, 0], batch[:, 1:2]), model(batch[:, 0], negatives)
        return -(functional.logsigmoid(near).mean() + functional.logsigmoid(-far).mean())

    model = Composed(
        lambda model, words, others: (model.word(words)[:, None] * model.context(others)).sum(-1),
        word=nn.Embedding(40, 24), context=nn.Embedding(40, 24),
    )  # fmt: skip
    couples = torch.stack([torch.arange(16), torch.randint(0, 20, (16,), generator=drawn(101))], 1)
    return pipeline(model, loss, batch=couples)


@healthy
def boxes_matched_to_objects() -> Pipeline:
    """Match each object to the prediction that costs least, as DETR does; class 3 is none."""

    def compute(model: Any, pixels: Tensor) -> tuple[Tensor, Tensor]:
        hidden = functional.silu(model.body(pixels))
        shape = (len(pixels), 4, 4)
        return model.label(hidden).reshape(shape), model.box(hidden).reshape(shape).sigmoid()

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        total = torch.zeros(())
        for scores, boxes, objects, places in zip(
            *model(batch["pixels"]), batch["classes"], batch["boxes"], strict=True
        ):
            cost = torch.cdist(boxes, places, p=1) - scores.softmax(-1)[:, objects]
            pairs = itertools.permutations(range(4), 2)
            best = list(min(pairs, key=lambda pair: float(cost[list(pair), torch.arange(2)].sum())))
            labels = torch.full((4,), 3)
            labels[best] = objects
            total = total + functional.cross_entropy(scores, labels) + 5 * functional.l1_loss(boxes[best], places)
        return total / len(batch["pixels"])

    boxes = torch.rand(6, 2, 4, generator=drawn(53)) * 0.4 + 0.3
    batch = {"pixels": values(6, 30), "classes": classes(12, 3).reshape(6, 2), "boxes": boxes}
    parts = {"body": network(30, 96, 96), "label": nn.Linear(96, 16), "box": nn.Linear(96, 16)}
    return pipeline(Composed(compute, **parts), loss, batch=batch)


@healthy
def teacher_and_student() -> Pipeline:
    teacher = network(10, 128, 5).requires_grad_(requires_grad=False)
    for parameter in teacher.parameters():
        parameter.mul_(2.0)

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        with torch.no_grad():
            wanted = (teacher(batch["features"]) / 2).log_softmax(-1)
        found = (model(batch["features"]) / 2).log_softmax(-1)
        return 4 * functional.kl_div(found, wanted, log_target=True, reduction="batchmean")

    return pipeline(network(10, 64, 64, 5), loss, batch={"features": values()})


# --- steps ------------------------------------------------------------------------------------------------------------


@healthy
def own_teacher() -> Pipeline:
    """Two views, a predictor and a slow copy without a gradient, as BYOL has them."""

    def normed(inputs: int) -> nn.Sequential:
        return nn.Sequential(nn.Linear(inputs, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 16))

    model = nn.ModuleDict({"student": normed(10), "predictor": normed(16)})
    teacher = copy.deepcopy(model["student"]).requires_grad_(requires_grad=False)

    def loss(model: Any, batch: Tensor) -> Tensor:
        own, other = (batch + 0.1 * torch.randn_like(batch) for _ in range(2))
        found = functional.normalize(model["predictor"](model["student"](own)), dim=1)
        with torch.no_grad():
            wanted = functional.normalize(teacher(other), dim=1)
        return 2 - 2 * (found * wanted).sum(1).mean()

    @torch.no_grad()
    def follow() -> None:
        for slow, fast in zip(teacher.parameters(), model["student"].parameters(), strict=True):
            slow.lerp_(fast, 0.01)

    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    return with_step(pipeline(model, loss, batch=values(32)), optimizer, after_step=follow)


@healthy
def critic_with_a_gradient_penalty() -> Pipeline:
    model, generator, critic = adversaries(4, 1e-4, (0.0, 0.9))
    real = values()

    def loss(model: Any, batch: Tensor) -> Tensor:
        return -model["critic"](model["generator"](torch.randn(len(batch), 4))).mean()

    def train_critic() -> None:
        for _ in range(3):
            made = model["generator"](torch.randn(len(real), 4)).detach()
            share = torch.rand(len(real), 1)
            between = (share * real + (1 - share) * made).requires_grad_()
            slope = torch.autograd.grad(model["critic"](between).sum(), between, create_graph=True)[0]
            penalty = 10 * (slope.norm(dim=1) - 1).square().mean()
            critic.zero_grad()
            torch.autograd.backward(model["critic"](made).mean() - model["critic"](real).mean() + penalty)
            critic.step()

    return with_step(pipeline(model, loss, batch=real), generator, after_step=train_critic)


@healthy
def half_precision_with_a_scaler() -> Pipeline:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return label_loss(model, batch)

    given = pipeline(network(10, 64, 64, 5), loss)
    optimizer, scaler = torch.optim.AdamW(given.model.parameters(), lr=3e-3), torch.amp.GradScaler("cpu")

    def train_step() -> Tensor:
        optimizer.zero_grad()
        found = loss(given.model, given.batch)
        scaler.scale(found).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(given.model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return found.detach()

    given.train_step = train_step
    return given


@healthy
def accumulated_over_four_parts() -> Pipeline:
    given = language()
    optimizer = torch.optim.AdamW(given.model.parameters(), lr=3e-3)

    def train_step() -> float:
        optimizer.zero_grad()
        total = 0.0
        for ids in given.batch["input_ids"].chunk(4):
            part = next_token_loss(given.model, {"input_ids": ids, "labels": ids}) / 4
            torch.autograd.backward(part)
            total += part.item()
        optimizer.step()
        return total

    given.train_step = train_step
    return given


@healthy
def two_passes_a_step() -> Pipeline:
    """Sharpness-aware minimisation: up the slope, then down with the gradient from there."""
    given = pipeline(network(10, 64, 64, 5))
    parameters = list(given.model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)

    def climb() -> None:
        slopes = [parameter.grad for parameter in parameters if parameter.grad is not None]
        norm = torch.stack([slope.norm() for slope in slopes]).norm() + 1e-12
        moved = [0.05 * slope / norm for slope in slopes]
        with torch.no_grad():
            torch._foreach_add_(parameters, moved)
        optimizer.zero_grad()
        torch.autograd.backward(label_loss(given.model, given.batch))
        with torch.no_grad():
            torch._foreach_sub_(parameters, moved)

    return with_step(given, optimizer, after_backward=climb)


@healthy
def closure_of_lbfgs() -> Pipeline:
    given = pipeline(network(10, 32, 5, activation=nn.Tanh))
    optimizer = torch.optim.LBFGS(given.model.parameters(), lr=0.5, max_iter=5)

    def closure() -> Tensor:
        optimizer.zero_grad()
        found = label_loss(given.model, given.batch)
        torch.autograd.backward(found)
        return found

    given.train_step = lambda: optimizer.step(closure).detach()
    return given


@healthy
def slow_target_network() -> Pipeline:
    """The step returns its loss by name."""
    model = network(10, 64, 64, 3)
    target = copy.deepcopy(model).requires_grad_(requires_grad=False)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    goes_on = torch.arange(16) % 2
    steps = itertools.count(1)

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        with torch.no_grad():
            best = model(batch["next_states"]).argmax(1, keepdim=True)
            ahead = target(batch["next_states"]).gather(1, best)[:, 0]
        return functional.smooth_l1_loss(taken(model, batch), batch["rewards"] + 0.9 * goes_on * ahead)

    def follow() -> None:
        if next(steps) % 20 == 0:
            target.load_state_dict(model.state_dict())

    given = with_step(pipeline(model, loss, batch=experiences()), optimizer, after_step=follow)
    step = given.train_step
    given.train_step = lambda: {"td_loss": step()}
    return given
