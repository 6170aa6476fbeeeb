"""Pipelines of further training recipes for `benchmarks.probe_matrix`, with faults and without.

They differ from those of the matrix in what is trained: adapters, distillation, adversaries, policies, target networks,
vector quantisation, matching of boxes, two precisions, own steps with several passes. FAULTS and HEALTHY were written
before the probe was asked.
"""

from __future__ import annotations

import copy
import itertools
import math
from types import SimpleNamespace as Pipeline
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


def drawn(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def values(rows: int = 16, width: int = 10, seed: int = 41) -> Tensor:
    return torch.randn(rows, width, generator=drawn(seed))


def classes(rows: int = 16, count: int = 5, seed: int = 43) -> Tensor:
    return torch.randint(0, count, (rows,), generator=drawn(seed))


def text(rows: int = 8, length: int = 12, vocabulary: int = 40, seed: int = 47) -> Tensor:
    return torch.randint(2, vocabulary, (rows, length), generator=drawn(seed))


def network(*widths: int, activation: type[nn.Module] = nn.SiLU) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [nn.Linear(inputs, outputs), activation()]
    return nn.Sequential(*layers[:-1])


def label_loss(model: nn.Module, batch: Any) -> Tensor:
    return functional.cross_entropy(model(batch["features"]), batch["labels"])


def labelled(model: nn.Module, **more: Any) -> Pipeline:
    batch = {"features": values(), "labels": classes()}
    return Pipeline(**{"model": model, "batch": batch, "loss": label_loss, **more})


class LowRank(nn.Module):
    """A frozen linear layer with a trained correction of low rank, as LoRA has it."""

    def __init__(self, inputs: int, outputs: int, rank: int = 8) -> None:
        super().__init__()
        self.base = nn.Linear(inputs, outputs).requires_grad_(requires_grad=False)
        self.down, self.up = (
            nn.Parameter(torch.randn(rank, inputs) / math.sqrt(inputs)),
            nn.Parameter(torch.zeros(outputs, rank)),
        )

    def forward(self, inputs: Tensor) -> Tensor:
        return self.base(inputs) + 2.0 * inputs @ self.down.T @ self.up.T


def adapted() -> nn.Module:
    """Return a frozen network with adapters in all layers."""
    return nn.Sequential(LowRank(10, 64), nn.SiLU(), LowRank(64, 64), nn.SiLU(), LowRank(64, 5))


class TinyTransformer(nn.Module):
    """A language model with its embedding tied to the head."""

    def __init__(self, *, causal: bool = True, normed: bool = True, vocabulary: int = 40) -> None:
        super().__init__()
        self.causal = causal
        self.ids, self.places = nn.Embedding(vocabulary, 48), nn.Embedding(32, 48)
        nn.init.normal_(self.ids.weight, std=0.02)
        self.body = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(48, 4, 96, 0.0, batch_first=True, norm_first=normed),
            2,
            enable_nested_tensor=False,
        )
        self.last = nn.LayerNorm(48)

    def forward(self, ids: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1]) if self.causal else None
        hidden = self.body(self.ids(ids) + self.places.weight[: ids.shape[1]], mask=mask, is_causal=self.causal)
        return self.last(hidden) @ self.ids.weight.T


def next_token_loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    logits = model(batch["input_ids"])
    return functional.cross_entropy(logits[:, :-1].flatten(0, 1), batch["labels"][:, 1:].flatten())


def language(model: nn.Module) -> Pipeline:
    ids = text()
    return Pipeline(model=model, batch={"input_ids": ids, "labels": ids.clone()}, loss=next_token_loss)


class Boxes(nn.Module):
    """Predicts a set of boxes with a class each."""

    def __init__(self, queries: int = 4) -> None:
        super().__init__()
        self.queries = queries
        self.body, self.label, self.box = network(30, 96, 96), nn.Linear(96, queries * 4), nn.Linear(96, queries * 4)

    def forward(self, pixels: Tensor) -> dict[str, Tensor]:
        hidden = functional.silu(self.body(pixels.flatten(1)))
        shape = (len(pixels), self.queries, 4)
        return {"scores": self.label(hidden).reshape(shape), "boxes": self.box(hidden).reshape(shape).sigmoid()}


def scene() -> dict[str, Any]:
    boxes = torch.rand(6, 2, 4, generator=drawn(53)) * 0.4 + 0.3
    return {"pixels": values(6, 30).reshape(6, 5, 6), "classes": classes(12, 3).reshape(6, 2), "boxes": boxes}


def matched_loss(model: nn.Module, batch: dict[str, Any]) -> Tensor:
    """Match each object to the prediction that costs least, as DETR does; class 3 is none."""
    found = model(batch["pixels"])
    total = torch.zeros(())
    for row in range(len(batch["pixels"])):
        scores, boxes = found["scores"][row], found["boxes"][row]
        cost = torch.cdist(boxes, batch["boxes"][row], p=1) - scores.softmax(-1)[:, batch["classes"][row]]
        best = min(itertools.permutations(range(4), 2), key=lambda pair: float(cost[list(pair), torch.arange(2)].sum()))
        labels = torch.full((4,), 3)
        labels[list(best)] = batch["classes"][row]
        total = total + functional.cross_entropy(scores, labels)
        total = total + 5 * functional.l1_loss(boxes[list(best)], batch["boxes"][row])
    return total / len(batch["pixels"])


# --- faults -----------------------------------------------------------------------------------------------------------


def adapter_left_out_of_the_optimizer() -> Pipeline:
    model = adapted()
    bases = [one for name, one in model.named_parameters() if "base" in name]
    return labelled(model, optimizer=torch.optim.AdamW(bases, lr=1e-3))


def adapter_never_added() -> Pipeline:
    class Forgotten(LowRank):
        def forward(self, inputs: Tensor) -> Tensor:
            correction = inputs @ self.down.T @ self.up.T
            return self.base(inputs) + 0.0 * correction

    return labelled(nn.Sequential(Forgotten(10, 64), nn.SiLU(), Forgotten(64, 5)))


def generator_gets_no_gradient() -> Pipeline:
    model = nn.ModuleDict({"generator": network(6, 48, 10), "critic": network(10, 48, 1)})
    generator = torch.optim.Adam(model["generator"].parameters(), lr=1e-3)
    critic = torch.optim.Adam(model["critic"].parameters(), lr=1e-3)
    real = values()

    def loss(model: Any, batch: Tensor) -> Tensor:
        made = model["generator"](torch.randn(len(batch), 6)).detach()
        return functional.softplus(-model["critic"](made)).mean()

    def train_step() -> Tensor:
        made = model["generator"](torch.randn(len(real), 6)).detach()
        critic.zero_grad()
        (functional.softplus(-model["critic"](real)) + functional.softplus(model["critic"](made))).mean().backward()
        critic.step()
        generator.zero_grad()
        fooled = functional.softplus(-model["critic"](made)).mean()
        fooled.backward()
        generator.step()
        return fooled.detach()

    return Pipeline(model=model, batch=real, loss=loss, train_step=train_step)


def transcript_longer_than_its_frames() -> Pipeline:
    model = nn.Sequential(nn.Linear(8, 48), nn.SiLU(), nn.Linear(48, 12))
    batch = {"frames": torch.randn(4, 6, 8, generator=drawn(59)), "transcripts": torch.randint(1, 12, (4, 9))}

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        scores = model(batch["frames"]).log_softmax(-1).transpose(0, 1)
        return functional.ctc_loss(scores, batch["transcripts"], torch.full((4,), 6), torch.full((4,), 9))

    return Pipeline(model=model, batch=batch, loss=loss)


def distance_of_equal_rows() -> Pipeline:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        one, other = model(batch["anchor"]), model(batch["positive"])
        distance = (one - other).square().sum(1).sqrt()
        apart = (one - other.roll(1, 0)).square().sum(1).sqrt()
        return (distance + functional.relu(1 - apart)).mean()

    anchor = values()
    positive = anchor + 0.1 * values(seed=61)
    positive[0] = anchor[0]
    return Pipeline(model=network(10, 48, 8), batch={"anchor": anchor, "positive": positive}, loss=loss)


def softmax_over_the_rows() -> Pipeline:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return functional.nll_loss(model(batch["features"]).log_softmax(0), batch["labels"])

    return labelled(network(10, 64, 64, 5), loss=loss)


def rows_shuffled_without_their_labels() -> Pipeline:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        order = torch.randperm(len(batch["features"]))
        return functional.cross_entropy(model(batch["features"][order]), batch["labels"])

    return labelled(network(10, 64, 64, 5), loss=loss)


def statistics_never_updated() -> Pipeline:
    model = nn.Sequential(
        nn.Linear(10, 64), nn.BatchNorm1d(64, momentum=0.0), nn.ReLU(), nn.Linear(64, 64),
        nn.BatchNorm1d(64, momentum=0.0), nn.ReLU(), nn.Linear(64, 5),
    )  # fmt: skip
    pipeline = labelled(model)
    pipeline.batch["features"] = 20 * pipeline.batch["features"] + 35
    return pipeline


def optimizer_filtered_before_unfreezing() -> Pipeline:
    model = network(10, 64, 64, 5).requires_grad_(requires_grad=False)
    model[0].requires_grad_()
    optimizer = torch.optim.AdamW([one for one in model.parameters() if one.requires_grad], lr=1e-3)
    model.requires_grad_(requires_grad=True)
    model[0].requires_grad_(requires_grad=False)
    return labelled(model, optimizer=optimizer)


def divergence_outweighs_the_reconstruction() -> Pipeline:
    class Coder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.decoder = network(10, 64, 12), network(6, 64, 10)

        def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            mean, log_variance = self.encoder(inputs).chunk(2, 1)
            return self.decoder(mean + torch.randn_like(mean) * (0.5 * log_variance).exp()), mean, log_variance

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        made, mean, log_variance = model(batch)
        divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum(1).mean()
        return functional.mse_loss(made, batch) + 100 * divergence

    return Pipeline(model=Coder(), batch=values(), loss=loss)


def returns_far_from_the_values() -> Pipeline:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return functional.mse_loss(model(batch["states"])[:, 0], batch["targets"])

    batch = {"states": values(), "targets": 20_000 + 3_000 * values(16, 1)[:, 0]}
    model = network(10, 64, 64, 1)
    return Pipeline(model=model, batch=batch, loss=loss, optimizer=torch.optim.Adam(model.parameters(), lr=3e-4))


def causal_mask_forgotten() -> Pipeline:
    return language(TinyTransformer(causal=False))


def rows_mixed_by_a_view() -> Pipeline:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ids, self.body, self.head = nn.Embedding(40, 32), nn.GRU(32, 64), nn.Linear(64, 5)

        def forward(self, ids: Tensor) -> Tensor:
            rows, length = ids.shape
            _, last = self.body(self.ids(ids).reshape(length, rows, 32))
            return self.head(last[0])

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return functional.cross_entropy(model(batch["input_ids"]), batch["labels"])

    return Pipeline(model=Mixed(), batch={"input_ids": text(), "labels": classes(8)}, loss=loss)


def sigmoid_before_its_loss() -> Pipeline:
    marks = (torch.rand(12, 6, generator=drawn(67)) > 0.7).float()

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return functional.binary_cross_entropy_with_logits(model(batch["features"]).sigmoid(), batch["labels"])

    batch = {"features": values(12), "labels": marks}
    return Pipeline(model=network(10, 64, 64, 6), batch=batch, loss=loss)


def decay_outweighs_the_gradient() -> Pipeline:
    model = network(10, 64, 64, 5)
    return labelled(model, optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=60.0))


def schedule_ends_after_ten_steps() -> Pipeline:
    model = TinyTransformer()
    pipeline = language(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.0, 1 - step / 10))

    def train_step() -> Tensor:
        optimizer.zero_grad()
        loss = next_token_loss(model, pipeline.batch)
        loss.backward()
        optimizer.step()
        schedule.step()
        return loss.detach()

    pipeline.train_step = train_step
    return pipeline


def scores_beyond_half_precision() -> Pipeline:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.head = nn.Linear(10, 64), nn.Linear(64, 5)

        def forward(self, inputs: Tensor) -> Tensor:
            hidden = (self.first(inputs) * 40).half()
            scores = hidden @ hidden.T * 40
            return self.head((scores.softmax(-1) @ hidden).float())

    return labelled(Attention())


def updates_lost_in_bfloat16() -> Pipeline:
    model = network(10, 64, 64, 5).bfloat16()
    pipeline = labelled(model, optimizer=torch.optim.SGD(model.parameters(), lr=1e-4))
    pipeline.batch["features"] = pipeline.batch["features"].bfloat16()
    return pipeline


def rounded_without_straight_through() -> Pipeline:
    class Rounded(nn.Module):
        def forward(self, inputs: Tensor) -> Tensor:
            return (inputs * 16).round() / 16

    return labelled(nn.Sequential(nn.Linear(10, 64), nn.SiLU(), nn.Linear(64, 5), Rounded()))


def expert_chosen_by_argmax() -> Pipeline:
    class Hard(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.codes, self.head = network(10, 128, 4), nn.Embedding(4, 8), nn.Linear(8, 5)

        def forward(self, inputs: Tensor) -> Tensor:
            return self.head(self.codes(self.encoder(inputs).argmax(-1)))

    return labelled(Hard())


def second_loss_added_as_a_number() -> Pipeline:
    class TwoHeads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.label, self.score = network(10, 64, 5), network(10, 96, 1)

        def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
            return self.label(inputs), self.score(inputs)[:, 0]

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        label, score = model(batch["features"])
        other = functional.mse_loss(score, batch["scores"])
        return functional.cross_entropy(label, batch["labels"]) + other.item()

    batch = {"features": values(), "labels": classes(), "scores": values(16, 1)[:, 0]}
    return Pipeline(model=TwoHeads(), batch=batch, loss=loss)


def weights_all_zero() -> Pipeline:
    model = network(10, 64, 64, 5, activation=nn.Tanh)
    for one in model.parameters():
        nn.init.zeros_(one)
    return labelled(model)


def weights_of_unit_deviation() -> Pipeline:
    model = network(10, 256, 256, 256, 256, 5, activation=nn.Tanh)
    for one in model.parameters():
        nn.init.normal_(one, std=3.0)
    return labelled(model)


def many_sigmoids() -> Pipeline:
    return labelled(network(10, *[32] * 12, 5, activation=nn.Sigmoid))


def equal_inputs_with_different_labels() -> Pipeline:
    pipeline = labelled(network(10, 64, 64, 5))
    pipeline.batch["features"] = pipeline.batch["features"][:8].repeat(2, 1)
    return pipeline


def target_network_is_the_network() -> Pipeline:
    model = network(10, 64, 64, 3)
    batch = {"states": values(), "next_states": values(seed=71), "actions": classes(16, 3),
             "rewards": values(16, 1, 73)[:, 0]}  # fmt: skip

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        taken = model(batch["states"]).gather(1, batch["actions"][:, None])[:, 0]
        wanted = batch["rewards"] + 1.2 * model(batch["next_states"]).max(1).values.detach()
        return -functional.smooth_l1_loss(taken, wanted)

    return Pipeline(model=model, batch=batch, loss=loss)


def error_against_every_label() -> Pipeline:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return (model(batch["features"]) - batch["labels"]).square().mean()

    batch = {"features": values(), "labels": values(16, 1, 79)[:, 0]}
    return Pipeline(model=network(10, 64, 64, 1), batch=batch, loss=loss)


def answers_all_masked() -> Pipeline:
    pipeline = language(TinyTransformer())
    pipeline.batch["labels"] = torch.full_like(pipeline.batch["labels"], -100)
    return pipeline


def rate_of_a_large_model() -> Pipeline:
    model = adapted()
    trained = [one for one in model.parameters() if one.requires_grad]
    return labelled(model, optimizer=torch.optim.AdamW(trained, lr=1e-7))


def head_outside_the_module() -> Pipeline:
    class Lists(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(10, 3)
            self.rest = [nn.Linear(3, 64), nn.Linear(64, 5)]

        def forward(self, inputs: Tensor) -> Tensor:
            hidden = torch.tanh(self.first(inputs))
            for layer in self.rest:
                hidden = layer(torch.tanh(hidden))
            return hidden

    return labelled(Lists())


# --- healthy ----------------------------------------------------------------------------------------------------------


def flow_matching() -> Pipeline:
    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        time, noise = torch.rand(len(batch), 1), torch.randn_like(batch)
        return functional.mse_loss(model(torch.cat([(1 - time) * noise + time * batch, time], 1)), batch - noise)

    return Pipeline(model=network(11, 128, 128, 10), batch=values(), loss=loss)


def own_teacher() -> Pipeline:
    """Two views, a predictor and a slow copy without a gradient, as BYOL has them."""
    model = nn.ModuleDict({
        "student": nn.Sequential(nn.Linear(10, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 16)),
        "predictor": nn.Sequential(nn.Linear(16, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 16)),
    })  # fmt: skip
    teacher = copy.deepcopy(model["student"]).requires_grad_(requires_grad=False)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    batch = values(32)

    def loss(model: Any, batch: Tensor) -> Tensor:
        one, other = (batch + 0.1 * torch.randn_like(batch) for _ in range(2))
        found = functional.normalize(model["predictor"](model["student"](one)), dim=1)
        with torch.no_grad():
            wanted = functional.normalize(teacher(other), dim=1)
        return 2 - 2 * (found * wanted).sum(1).mean()

    def train_step() -> Tensor:
        optimizer.zero_grad()
        found = loss(model, batch)
        found.backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(teacher.parameters(), model["student"].parameters(), strict=True):
                slow.lerp_(fast, 0.01)
        return found.detach()

    return Pipeline(model=model, batch=batch, loss=loss, train_step=train_step)


def critic_with_a_gradient_penalty() -> Pipeline:
    model = nn.ModuleDict({"generator": network(4, 48, 10), "critic": network(10, 48, 1)})
    generator = torch.optim.Adam(model["generator"].parameters(), lr=1e-4, betas=(0.0, 0.9))
    critic = torch.optim.Adam(model["critic"].parameters(), lr=1e-4, betas=(0.0, 0.9))
    real = values()

    def loss(model: Any, batch: Tensor) -> Tensor:
        return -model["critic"](model["generator"](torch.randn(len(batch), 4))).mean()

    def train_step() -> Tensor:
        for _ in range(3):
            made = model["generator"](torch.randn(len(real), 4)).detach()
            share = torch.rand(len(real), 1)
            between = (share * real + (1 - share) * made).requires_grad_()
            slope = torch.autograd.grad(model["critic"](between).sum(), between, create_graph=True)[0]
            penalty = 10 * (slope.norm(dim=1) - 1).square().mean()
            critic.zero_grad()
            (model["critic"](made).mean() - model["critic"](real).mean() + penalty).backward()
            critic.step()
        generator.zero_grad()
        found = loss(model, real)
        found.backward()
        generator.step()
        return found.detach()

    return Pipeline(model=model, batch=real, loss=loss, train_step=train_step)


def likelihood_with_a_learned_variance() -> Pipeline:
    """The loss goes below zero and has no floor."""

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        mean, log_variance = model(batch["features"]).chunk(2, 1)
        log_variance = log_variance.clamp(-6, 6)
        return 0.5 * (log_variance + (batch["labels"] - mean).square() / log_variance.exp()).mean()

    batch = {"features": values(), "labels": values(16, 2, 83)}
    return Pipeline(model=network(10, 64, 64, 4), batch=batch, loss=loss)


def low_rank_adapter() -> Pipeline:
    model = adapted()
    trained = [one for one in model.parameters() if one.requires_grad]
    return labelled(model, optimizer=torch.optim.AdamW(trained, lr=3e-3))


def masked_patches() -> Pipeline:
    class Restorer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.hole = nn.Parameter(torch.zeros(12))
            self.into, self.out, self.places = nn.Linear(12, 48), nn.Linear(48, 12), nn.Parameter(torch.randn(9, 48))
            self.body = nn.TransformerEncoderLayer(48, 4, 96, 0.0, batch_first=True, norm_first=True)

        def forward(self, patches: Tensor, hidden: Tensor) -> Tensor:
            shown = torch.where(hidden[..., None], self.hole, patches)
            return self.out(self.body(self.into(shown) + self.places))

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        hidden = torch.rand(batch.shape[:2]).argsort(1) < 4
        return (model(batch, hidden) - batch)[hidden].square().mean()

    patches = torch.randn(8, 9, 12, generator=drawn(89))
    return Pipeline(model=Restorer(), batch=patches, loss=loss)


def own_inputs_now_and_then() -> Pipeline:
    """A decoder that is fed its own words in a quarter of the places, and smoothed labels."""

    class Speller(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ids, self.encoder, self.decoder = (
                nn.Embedding(40, 48),
                nn.GRU(48, 64, batch_first=True),
                nn.GRUCell(48, 64),
            )
            self.head, self.drop = nn.Linear(64, 40), nn.Dropout(0.1)

        def forward(self, source: Tensor, target: Tensor) -> Tensor:
            _, last = self.encoder(self.drop(self.ids(source)))
            state, word, found = last[0], torch.zeros(len(source), dtype=torch.long), []
            for place in range(target.shape[1]):
                state = self.decoder(self.ids(word), state)
                found.append(self.head(state))
                own = torch.rand(len(source)) < 0.25
                word = torch.where(own & self.training, found[-1].argmax(-1), target[:, place])
            return torch.stack(found, 1)

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        scores = model(batch["input_ids"], batch["labels"])
        return functional.cross_entropy(scores.flatten(0, 1), batch["labels"].flatten(), label_smoothing=0.05)

    batch = {"input_ids": text(), "labels": text(8, 7, seed=97)}
    return Pipeline(model=Speller(), batch=batch, loss=loss)


def boxes_matched_to_objects() -> Pipeline:
    return Pipeline(model=Boxes(), batch=scene(), loss=matched_loss)


def half_precision_with_a_scaler() -> Pipeline:
    model = network(10, 64, 64, 5)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    scaler = torch.amp.GradScaler("cpu")
    pipeline = labelled(model)

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return label_loss(model, batch)

    def train_step() -> Tensor:
        optimizer.zero_grad()
        found = loss(model, pipeline.batch)
        scaler.scale(found).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return found.detach()

    pipeline.loss, pipeline.train_step = loss, train_step
    return pipeline


def accumulated_over_four_parts() -> Pipeline:
    model = TinyTransformer()
    pipeline = language(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

    def train_step() -> float:
        optimizer.zero_grad()
        total = 0.0
        for ids in pipeline.batch["input_ids"].chunk(4):
            part = next_token_loss(model, {"input_ids": ids, "labels": ids}) / 4
            part.backward()
            total += part.item()
        optimizer.step()
        return total

    pipeline.train_step = train_step
    return pipeline


def mixed_up_rows() -> Pipeline:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        share, order = float(torch.distributions.Beta(0.2, 0.2).sample()), torch.randperm(len(batch["labels"]))
        scores = model(share * batch["features"] + (1 - share) * batch["features"][order])
        one, other = (functional.cross_entropy(scores, labels) for labels in (batch["labels"], batch["labels"][order]))
        return share * one + (1 - share) * other

    return labelled(network(10, 128, 128, 5), loss=loss)


def quantised_codes() -> Pipeline:
    """A vector-quantised autoencoder: straight-through codes, a codebook loss and a commitment loss."""

    class Codes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.decoder, self.book = network(10, 64, 32), network(32, 64, 10), nn.Embedding(64, 8)
            nn.init.normal_(self.book.weight, std=0.3)

        def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
            found = self.encoder(inputs).reshape(-1, 4, 8)
            near = self.book(torch.cdist(found, self.book.weight[None]).argmin(-1))
            cost = (near - found.detach()).square().mean() + 0.25 * (found - near.detach()).square().mean()
            return self.decoder((found + (near - found).detach()).flatten(1)), cost

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        made, cost = model(batch)
        return functional.mse_loss(made, batch) + cost

    return Pipeline(model=Codes(), batch=values(), loss=loss)


def two_passes_a_step() -> Pipeline:
    """Sharpness-aware minimisation: up the slope, then down with the gradient from there."""
    model = network(10, 64, 64, 5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    pipeline = labelled(model)

    def train_step() -> Tensor:
        found = label_loss(model, pipeline.batch)
        found.backward()
        norm = torch.stack([one.grad.norm() for one in model.parameters() if one.grad is not None]).norm() + 1e-12
        moved = [0.05 * one.grad / norm for one in model.parameters() if one.grad is not None]
        with torch.no_grad():
            for one, step in zip(model.parameters(), moved, strict=True):
                one.add_(step)
        optimizer.zero_grad()
        label_loss(model, pipeline.batch).backward()
        with torch.no_grad():
            for one, step in zip(model.parameters(), moved, strict=True):
                one.sub_(step)
        optimizer.step()
        optimizer.zero_grad()
        return found.detach()

    pipeline.train_step = train_step
    return pipeline


def closure_of_lbfgs() -> Pipeline:
    model = network(10, 32, 5, activation=nn.Tanh)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=5)
    pipeline = labelled(model)

    def closure() -> Tensor:
        optimizer.zero_grad()
        found = label_loss(model, pipeline.batch)
        found.backward()
        return found

    def train_step() -> Tensor:
        found: Tensor = optimizer.step(closure)
        return found.detach()

    pipeline.train_step = train_step
    return pipeline


def triplets_with_a_margin() -> Pipeline:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        found = functional.normalize(model(batch["features"]), dim=1)
        apart = torch.cdist(found, found)
        same = batch["labels"][:, None] == batch["labels"][None]
        hardest = torch.where(same, apart, -1.0).max(1).values
        nearest = torch.where(same, 9.0, apart).min(1).values
        return functional.relu(hardest - nearest + 0.3).mean()

    return labelled(network(10, 128, 16), loss=loss)


def teacher_and_student() -> Pipeline:
    teacher = network(10, 128, 5).requires_grad_(requires_grad=False)
    for one in teacher.parameters():
        one.mul_(2.0)

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        with torch.no_grad():
            wanted = (teacher(batch["features"]) / 2).log_softmax(-1)
        found = (model(batch["features"]) / 2).log_softmax(-1)
        return 4 * functional.kl_div(found, wanted, log_target=True, reduction="batchmean")

    return Pipeline(model=network(10, 64, 64, 5), batch={"features": values()}, loss=loss)


def slow_target_network() -> Pipeline:
    model = network(10, 64, 64, 3)
    target = copy.deepcopy(model).requires_grad_(requires_grad=False)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    done = torch.zeros(16)
    done[::2] = 1
    batch = {"states": values(), "next_states": values(seed=71), "actions": classes(16, 3),
             "rewards": values(16, 1, 73)[:, 0]}  # fmt: skip
    count = 0

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        with torch.no_grad():
            best = model(batch["next_states"]).argmax(1, keepdim=True)
            ahead = target(batch["next_states"]).gather(1, best)[:, 0]
        taken = model(batch["states"]).gather(1, batch["actions"][:, None])[:, 0]
        return functional.smooth_l1_loss(taken, batch["rewards"] + 0.9 * (1 - done) * ahead)

    def train_step() -> dict[str, Tensor]:
        nonlocal count
        optimizer.zero_grad()
        found = loss(model, batch)
        found.backward()
        optimizer.step()
        count += 1
        if count % 20 == 0:
            target.load_state_dict(model.state_dict())
        return {"td_loss": found.detach()}

    return Pipeline(model=model, batch=batch, loss=loss, train_step=train_step)


def sampled_choices() -> Pipeline:
    """Gumbel-softmax in the middle, with dropout, trained by a dictionary of options."""

    class Chooser(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.decoder = network(10, 64, 24), network(24, 64, 5)

        def forward(self, inputs: Tensor) -> Tensor:
            scores = self.encoder(inputs).reshape(-1, 3, 8)
            chosen = functional.gumbel_softmax(scores, 0.7) if self.training else scores.softmax(-1)
            return self.decoder(chosen.flatten(1))

    return labelled(Chooser())


def words_and_drawn_negatives() -> Pipeline:
    class Skipgram(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.word, self.context = nn.Embedding(40, 24), nn.Embedding(40, 24)

        def forward(self, words: Tensor, others: Tensor) -> Tensor:
            return (self.word(words)[:, None] * self.context(others)).sum(-1)

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        negatives = torch.randint(20, 40, (len(batch), 4))
        near, far = model(batch[:, 0], batch[:, 1:2]), model(batch[:, 0], negatives)
        return -(functional.logsigmoid(near).mean() + functional.logsigmoid(-far).mean())

    pairs = torch.stack([torch.arange(16), torch.randint(0, 20, (16,), generator=drawn(101))], 1)
    return Pipeline(model=Skipgram(), batch=pairs, loss=loss)


HEALTHY = (
    "flow_matching", "own_teacher", "critic_with_a_gradient_penalty", "likelihood_with_a_learned_variance",
    "low_rank_adapter", "masked_patches", "own_inputs_now_and_then", "boxes_matched_to_objects",
    "half_precision_with_a_scaler", "accumulated_over_four_parts", "mixed_up_rows", "quantised_codes",
    "two_passes_a_step", "closure_of_lbfgs", "triplets_with_a_margin", "teacher_and_student", "slow_target_network",
    "sampled_choices", "words_and_drawn_negatives",
)  # fmt: skip

RUNS_ON = {"memorised", "too_slow", "cannot_learn"}
STOPS = {"too_slow", "cannot_learn"}
FAULTS: dict[str, tuple[set[str], set[str]]] = {
    "adapter_left_out_of_the_optimizer": (STOPS, {"params_not_training"}),
    "adapter_never_added": ({"cannot_learn"}, {"params_not_training", "dead_units"}),
    "generator_gets_no_gradient": (STOPS, {"params_not_training"}),
    "transcript_longer_than_its_frames": ({"not_finite"}, {"bad_batch", "invalid_math"}),
    "distance_of_equal_rows": ({"not_finite"}, {"invalid_math"}),
    "softmax_over_the_rows": (STOPS, {"wrong_loss", "unknown"}),
    "rows_shuffled_without_their_labels": ({"cannot_learn"}, {"label_noise", "unknown"}),
    "statistics_never_updated": ({"memorised"}, {"eval_mode_bug"}),
    "optimizer_filtered_before_unfreezing": (STOPS, {"params_not_training"}),
    "divergence_outweighs_the_reconstruction": (STOPS, {"wrong_loss", "unknown", "no_signal",
                                                         "representation_collapse"}),
    "returns_far_from_the_values": (STOPS, {"bad_init", "lr_too_low", "bad_batch"}),
    "causal_mask_forgotten": ({"memorised"}, {"causal_mask_missing"}),
    "rows_mixed_by_a_view": (RUNS_ON, {"rows_mixed"}),
    "sigmoid_before_its_loss": (STOPS, {"double_softmax"}),
    "decay_outweighs_the_gradient": (STOPS, {"weight_decay_too_high"}),
    "schedule_ends_after_ten_steps": (STOPS, {"lr_schedule_bug", "lr_too_low"}),
    "scores_beyond_half_precision": ({"not_finite"}, {"fp16_overflow"}),
    "updates_lost_in_bfloat16": (STOPS, {"low_precision_update", "lr_too_low"}),
    "rounded_without_straight_through": ({"cannot_learn"}, {"params_not_training", "dead_units", "wrong_loss",
                                                            "vanishing_gradients"}),
    "expert_chosen_by_argmax": (RUNS_ON, {"params_not_training"}),
    "second_loss_added_as_a_number": (RUNS_ON, {"params_not_training"}),
    "weights_all_zero": ({"cannot_learn"}, {"bad_init"}),
    "weights_of_unit_deviation": (RUNS_ON, {"bad_init", "vanishing_gradients", "exploding_gradients"}),
    "many_sigmoids": (STOPS, {"vanishing_gradients"}),
    "equal_inputs_with_different_labels": (RUNS_ON, {"label_noise"}),
    "target_network_is_the_network": ({"cannot_learn", "not_finite"}, {"wrong_loss"}),
    "error_against_every_label": ({"cannot_learn"}, {"wrong_loss"}),
    "answers_all_masked": ({"cannot_learn", "not_finite"}, {"all_labels_masked"}),
    "rate_of_a_large_model": (STOPS, {"lr_too_low"}),
    "head_outside_the_module": (RUNS_ON, {"params_not_training"}),
}  # fmt: skip
"""The verdicts and the leading causes that are right."""
