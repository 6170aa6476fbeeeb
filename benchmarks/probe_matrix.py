"""Probe pipelines of many tasks, with faults and without, each with several seeds: `python -m benchmarks.probe_matrix`.

The pipelines are written as users write them, in plain torch and with small random models of Transformers. FAULTS says
for each fault which verdicts and which leading causes are right; HEALTHY lists the pipelines that must be memorised
without an accusation. Both tables were written before the probe was asked.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Iterable
from types import SimpleNamespace as Pipeline
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

SEEDS = 3
TIME_LIMIT_SECONDS = 60


def seeded(seed: int = 7) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def features(rows: int = 16, width: int = 12) -> Tensor:
    return torch.randn(rows, width, generator=seeded())


def classes(rows: int = 16, count: int = 6) -> Tensor:
    return torch.randint(0, count, (rows,), generator=seeded(11))


def tokens(rows: int = 8, length: int = 14, vocabulary: int = 50) -> Tensor:
    return torch.randint(3, vocabulary, (rows, length), generator=seeded(13))


def images(rows: int = 12, size: int = 12) -> Tensor:
    return torch.randn(rows, 3, size, size, generator=seeded(17))


def perceptron(inputs: int = 12, outputs: int = 6, width: int = 64) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, outputs)
    )


def convolutions(outputs: int = 6) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 32, 3, stride=2, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * 36, 64), nn.ReLU(), nn.Linear(64, outputs),
    )  # fmt: skip


def classify(model: nn.Module, batch: Any) -> Tensor:
    inputs, labels = batch
    return functional.cross_entropy(model(inputs), labels)


def gpt() -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(
        GPT2Config(vocab_size=50, n_positions=32, n_embd=48, n_layer=2, n_head=4, eos_token_id=2, bos_token_id=2)
    )


def bert() -> nn.Module:
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=50, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, num_labels=4
    )
    return BertForSequenceClassification(config)


def sequence_to_sequence() -> nn.Module:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(vocab_size=50, d_model=48, d_kv=12, d_ff=96, num_layers=2, num_heads=4, decoder_start_token_id=0)
    return T5ForConditionalGeneration(config)


def loss_of_output(model: nn.Module, batch: Any) -> Tensor:
    loss: Tensor = model(**batch).loss
    return loss


def padded_text() -> dict[str, Tensor]:
    lengths = torch.tensor([5, 9, 14, 7, 11, 6, 12, 8])
    mask = (torch.arange(14)[None] < lengths[:, None]).long()
    return {"input_ids": tokens() * mask, "attention_mask": mask, "labels": classes(8, 4)}


def translation() -> dict[str, Tensor]:
    return {"input_ids": tokens(), "labels": tokens(8, 9).flip(1)}


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = perceptron(12, 16), perceptron(8, 12)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, log_variance = self.encoder(inputs).chunk(2, dim=1)
        latent = mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)
        return self.decoder(latent), mean, log_variance


def evidence_bound(model: nn.Module, batch: Tensor) -> Tensor:
    reconstruction, mean, log_variance = model(batch)
    divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum(1).mean()
    return functional.mse_loss(reconstruction, batch) + 1e-3 * divergence


def token_log_probabilities(model: nn.Module, ids: Tensor) -> Tensor:
    """Return the summed log-probability of each row but for its prompt, the first four tokens."""
    logits = model(input_ids=ids).logits[:, :-1].log_softmax(-1)
    return logits.gather(2, ids[:, 1:, None])[:, 3:, 0].sum(1)


def preferences() -> dict[str, Tensor]:
    chosen = tokens()
    rejected = chosen.clone()
    rejected[:, 4:] = tokens(8, 24)[:, -10:]
    return {"chosen": chosen, "rejected": rejected}


def preference_loss(model: nn.Module, reference: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    with torch.no_grad():
        base = token_log_probabilities(reference, batch["chosen"]) - token_log_probabilities(
            reference, batch["rejected"]
        )
    margin = token_log_probabilities(model, batch["chosen"]) - token_log_probabilities(model, batch["rejected"])
    return -functional.logsigmoid(0.1 * (margin - base)).mean()


class ActorCritic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.policy, self.value = perceptron(12, 64), nn.Linear(64, 4), nn.Linear(64, 1)

    def forward(self, states: Tensor) -> tuple[Tensor, Tensor]:
        hidden = torch.tanh(self.body(states))
        return self.policy(hidden), self.value(hidden)[:, 0]


class Detector(nn.Module):
    """Finds one object in an image: its class and its box."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.label, self.box = convolutions(64), nn.Linear(64, 5), nn.Linear(64, 4)

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        hidden = functional.relu(self.body(pixels))
        return self.label(hidden), self.box(hidden).sigmoid()


def objects() -> dict[str, Tensor]:
    return {"pixels": images(), "labels": classes(12, 5), "boxes": torch.rand(12, 4, generator=seeded(19))}


class Recogniser(nn.Module):
    """Transcribes frames: a recurrent layer whose outputs go to a CTC loss."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.GRU(12, 64, batch_first=True), nn.Linear(64, 10)

    def forward(self, frames: Tensor) -> Tensor:
        hidden, _ = self.body(frames)
        return self.head(hidden)


def speech() -> dict[str, Tensor]:
    return {
        "frames": torch.randn(6, 20, 12, generator=seeded(23)),
        "transcripts": torch.randint(1, 10, (6, 5), generator=seeded(29)),
    }


def transcription_loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    scores = model(batch["frames"]).log_softmax(-1).transpose(0, 1)
    rows = len(batch["frames"])
    lengths = torch.full((rows,), 20), torch.full((rows,), 5)
    return functional.ctc_loss(scores, batch["transcripts"], *lengths)


def regression() -> tuple[Tensor, Tensor]:
    return features(), torch.randn(16, 1, generator=seeded(31))


def square_error(model: nn.Module, batch: Any) -> Tensor:
    inputs, targets = batch
    return functional.mse_loss(model(inputs), targets)


def stepper(pipeline: Pipeline, optimizer: torch.optim.Optimizer, *, clip: float = 0.0) -> Pipeline:
    """Add the user's own step, which may clip the gradients."""

    def train_step() -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = pipeline.loss(pipeline.model, pipeline.batch)
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(pipeline.model.parameters(), clip)
        optimizer.step()
        return loss.detach()

    pipeline.train_step = train_step
    return pipeline


# --- faults -----------------------------------------------------------------------------------------------------------


def dropout_always_on() -> Pipeline:
    class Always(nn.Module):
        def forward(self, inputs: Tensor) -> Tensor:
            return functional.dropout(inputs, 0.3, training=True)

    model = nn.Sequential(nn.Linear(12, 128), nn.ReLU(), Always(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 6))
    return Pipeline(model=model, batch=(features(), classes()), loss=classify)


def labels_drawn_anew() -> Pipeline:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        found: Tensor = model(input_ids=batch["input_ids"], labels=torch.randint_like(batch["labels"], 3, 50)).loss
        return found

    return Pipeline(model=sequence_to_sequence(), batch=translation(), loss=loss)


def head_made_in_forward() -> Pipeline:
    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ids, self.body = nn.Embedding(50, 48), nn.LSTM(48, 48, batch_first=True)

        def forward(self, ids: Tensor) -> Tensor:
            hidden, _ = self.body(self.ids(ids))
            return nn.Linear(48, 7)(hidden)

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return functional.cross_entropy(model(batch["input_ids"]).flatten(0, 1), batch["labels"].flatten())

    return Pipeline(model=Tagger(), batch={"input_ids": tokens(), "labels": tokens() % 7}, loss=loss)


def loss_detached() -> Pipeline:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        inputs, targets = batch
        return functional.mse_loss(model(inputs).detach(), targets).requires_grad_()

    return Pipeline(model=perceptron(12, 1), batch=regression(), loss=loss)


def all_frozen() -> Pipeline:
    model = bert().requires_grad_(requires_grad=False)
    return Pipeline(model=model, batch=padded_text(), loss=loss_of_output)


def optimizer_with_half_the_parameters() -> Pipeline:
    model = Detector()
    pipeline = Pipeline(model=model, batch=objects(), loss=detection_loss)
    pipeline.optimizer = torch.optim.Adam(model.box.parameters(), lr=1e-3)
    return pipeline


def detection_loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    scores, boxes = model(batch["pixels"])
    return functional.cross_entropy(scores, batch["labels"]) + functional.l1_loss(boxes, batch["boxes"])


def sign_of_the_loss() -> Pipeline:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        inputs, labels = batch
        scores = model(inputs).log_softmax(-1)
        return scores.gather(1, labels[:, None]).mean()

    return Pipeline(model=convolutions(), batch=(images(), classes(12)), loss=loss)


def softmax_twice() -> Pipeline:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        shares = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits.softmax(-1)
        return functional.cross_entropy(shares, batch["labels"])

    return Pipeline(model=bert(), batch=padded_text(), loss=loss)


def shifted_twice() -> Pipeline:
    ids = tokens(8, 15)
    return Pipeline(model=gpt(), batch={"input_ids": ids[:, :-1], "labels": ids[:, 1:]}, loss=loss_of_output)


def padding_mask_inverted() -> Pipeline:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        found: Tensor = model(**{**batch, "attention_mask": 1 - batch["attention_mask"]}).loss
        return found

    return Pipeline(model=bert(), batch=padded_text(), loss=loss)


def learning_rate_far_too_high() -> Pipeline:
    pipeline = Pipeline(model=Recogniser(), batch=speech(), loss=transcription_loss)
    pipeline.optimizer = torch.optim.AdamW(pipeline.model.parameters(), lr=5.0)
    return pipeline


def learning_rate_far_too_low() -> Pipeline:
    pipeline = Pipeline(model=sequence_to_sequence(), batch=translation(), loss=loss_of_output)
    pipeline.optimizer = torch.optim.AdamW(pipeline.model.parameters(), lr=1e-8)
    return pipeline


def dead_relus() -> Pipeline:
    model = convolutions()
    for layer in model:
        if isinstance(layer, nn.Conv2d):
            nn.init.constant_(layer.bias, -20.0)  # type: ignore[arg-type]
    return Pipeline(model=model, batch=(images(), classes(12)), loss=classify)


def constant_inputs() -> Pipeline:
    batch = {"pixels": (images().clamp(0, 1) // 2), "labels": classes(12, 5), "boxes": objects()["boxes"]}
    return Pipeline(model=Detector(), batch=batch, loss=detection_loss)


def constant_labels() -> Pipeline:
    return Pipeline(model=perceptron(), batch=(features(), torch.zeros(16, dtype=torch.long)), loss=classify)


def target_scale() -> Pipeline:
    inputs, targets = regression()
    return Pipeline(model=perceptron(12, 1), batch=(inputs, 3e6 + 4e5 * targets), loss=square_error)


def zero_grad_missing() -> Pipeline:
    pipeline = Pipeline(model=Autoencoder(), batch=features(), loss=evidence_bound)
    optimizer = torch.optim.SGD(pipeline.model.parameters(), lr=0.05)

    def train_step() -> Tensor:
        loss = evidence_bound(pipeline.model, pipeline.batch)
        loss.backward()
        optimizer.step()
        return loss.detach()

    pipeline.train_step = train_step
    return pipeline


def clipped_to_nothing() -> Pipeline:
    pipeline = Pipeline(model=convolutions(), batch=(images(), classes(12)), loss=classify)
    return stepper(pipeline, torch.optim.SGD(pipeline.model.parameters(), lr=0.1, momentum=0.9), clip=1e-4)


def batch_changed_in_place() -> Pipeline:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        inputs, targets = batch
        inputs.mul_(0.8)
        return functional.mse_loss(model(inputs), targets)

    return Pipeline(model=perceptron(12, 1), batch=regression(), loss=loss)


def no_grad_around_the_body() -> Pipeline:
    class Tower(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = perceptron(12, 4), nn.Linear(4, 6)

        def forward(self, inputs: Tensor) -> Tensor:
            with torch.no_grad():
                hidden = self.body(inputs)
            return self.head(hidden)

    return Pipeline(model=Tower(), batch=(features(), classes()), loss=classify)


def head_replaced_after_the_optimizer() -> Pipeline:
    model: Any = bert()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model.classifier = nn.Linear(48, 4)
    return Pipeline(model=model, batch=padded_text(), loss=loss_of_output, optimizer=optimizer)


def loss_of_another_tensor() -> Pipeline:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        scores, values = model(batch["states"])
        log_shares = scores.log_softmax(-1).gather(1, batch["actions"][:, None])[:, 0]
        ratio = (log_shares - log_shares.detach()).exp()
        surprise = functional.mse_loss(values, values.detach())
        return 0.5 * surprise - (ratio * torch.zeros_like(batch["returns"])).mean()

    return Pipeline(model=ActorCritic(), batch=episodes(), loss=loss)


def episodes() -> dict[str, Tensor]:
    returns = torch.randn(16, generator=seeded(37))
    return {"states": features(), "actions": classes(16, 4), "returns": returns}


def graph_kept_between_steps() -> Pipeline:
    class Remembers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.head = nn.GRUCell(12, 32), nn.Linear(32, 6)
            self.state = torch.zeros(16, 32)

        def forward(self, inputs: Tensor) -> Tensor:
            self.state = self.cell(inputs, self.state)
            return self.head(self.state)

    return Pipeline(model=Remembers(), batch=(features(), classes()), loss=classify)


def copies_get_the_gradients() -> Pipeline:
    class Copies(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = perceptron()

        def forward(self, inputs: Tensor) -> Tensor:
            copies = [copy.deepcopy(self.module) for _ in range(2)]
            return torch.cat([replica(part) for replica, part in zip(copies, inputs.chunk(2), strict=True)])

    return Pipeline(model=Copies(), batch=(features(), classes()), loss=classify)


def reference_is_the_policy() -> Pipeline:
    return Pipeline(model=gpt(), batch=preferences(), loss=lambda model, batch: preference_loss(model, model, batch))


# --- healthy ----------------------------------------------------------------------------------------------------------


def diffusion() -> Pipeline:
    steps = 50
    kept = torch.cumprod(1 - torch.linspace(1e-3, 0.15, steps), 0)

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        time, noise = torch.randint(0, steps, (len(batch),)), torch.randn_like(batch)
        share = kept[time][:, None]
        noisy = share.sqrt() * batch + (1 - share).sqrt() * noise
        return functional.mse_loss(model(torch.cat([noisy, time[:, None] / steps], 1)), noise)

    return Pipeline(model=perceptron(13, 12, 128), batch=features(), loss=loss)


def contrastive() -> Pipeline:
    class TwoTowers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.image, self.text = perceptron(12, 24), nn.EmbeddingBag(50, 24)
            self.scale = nn.Parameter(torch.tensor(2.0))

        def forward(self, pictures: Tensor, captions: Tensor) -> Tensor:
            image, text = (functional.normalize(e, dim=1) for e in (self.image(pictures), self.text(captions)))
            return self.scale.exp() * image @ text.T

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        scores = model(batch["pictures"], batch["captions"])
        pairs = torch.arange(len(scores))
        return (functional.cross_entropy(scores, pairs) + functional.cross_entropy(scores.T, pairs)) / 2

    batch = {"pictures": features(8), "captions": tokens()}
    return Pipeline(model=TwoTowers(), batch=batch, loss=loss)


def adversarial() -> Pipeline:
    model = nn.ModuleDict({"generator": perceptron(6, 12), "critic": perceptron(12, 1)})
    generator = torch.optim.Adam(model["generator"].parameters(), lr=2e-4, betas=(0.5, 0.999))
    critic = torch.optim.Adam(model["critic"].parameters(), lr=2e-4, betas=(0.5, 0.999))
    real = features()

    def loss(model: Any, batch: Tensor) -> Tensor:
        made = model["generator"](torch.randn(len(batch), 6))
        return functional.softplus(-model["critic"](made)).mean()

    def train_step() -> dict[str, Tensor]:
        made = model["generator"](torch.randn(len(real), 6))
        critic.zero_grad()
        judged = functional.softplus(-model["critic"](real)) + functional.softplus(model["critic"](made.detach()))
        judged.mean().backward()
        critic.step()
        generator.zero_grad()
        fooled = functional.softplus(-model["critic"](made)).mean()
        fooled.backward()
        generator.step()
        return {"loss": fooled.detach()}

    return Pipeline(model=model, batch=real, loss=loss, train_step=train_step)


def dropout_and_batch_norm() -> Pipeline:
    model = nn.Sequential(
        nn.Conv2d(3, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.Dropout2d(0.1),
        nn.Conv2d(24, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Flatten(), nn.Dropout(0.3), nn.Linear(32 * 36, 6),
    )  # fmt: skip
    return Pipeline(model=model, batch=(images(), classes(12)), loss=classify)


def random_augmentation() -> Pipeline:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        pixels, labels = batch
        rows, columns = torch.randint(-1, 2, (2,)).tolist()
        pixels = pixels.roll((rows, columns), (2, 3)) * (0.8 + 0.4 * torch.rand(len(pixels), 1, 1, 1))
        return functional.cross_entropy(model(pixels), labels)

    return Pipeline(model=convolutions(), batch=(images(), classes(12)), loss=loss)


def carried_state() -> Pipeline:
    class Stateful(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ids, self.body, self.head = nn.Embedding(50, 48), nn.LSTM(48, 64, batch_first=True), nn.Linear(64, 50)
            self.state: tuple[Tensor, Tensor] | None = None

        def forward(self, ids: Tensor) -> Tensor:
            hidden, state = self.body(self.ids(ids), self.state)
            self.state = (state[0].detach(), state[1].detach())
            return self.head(hidden)

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        return functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())

    return Pipeline(model=Stateful(), batch=tokens(), loss=loss)


def mixture_of_experts() -> Pipeline:
    class Experts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.router, self.experts = nn.Linear(12, 4), nn.ModuleList(perceptron(12, 6, 32) for _ in range(4))

        def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
            noisy = self.router(inputs) + (0.1 * torch.randn(len(inputs), 4) if self.training else 0.0)
            weights, chosen = noisy.softmax(-1).topk(2, dim=-1)
            every = torch.stack([expert(inputs) for expert in self.experts], 1)
            picked = every.gather(1, chosen[..., None].expand(-1, -1, 6))
            return (picked * weights[..., None]).sum(1), 4 * (noisy.softmax(-1).mean(0) ** 2).sum()

    def loss(model: nn.Module, batch: Any) -> Tensor:
        scores, balance = model(batch[0])
        return functional.cross_entropy(scores, batch[1]) + 0.01 * balance

    return Pipeline(model=Experts(), batch=(features(), classes()), loss=loss)


def variational() -> Pipeline:
    return Pipeline(model=Autoencoder(), batch=features(), loss=evidence_bound)


def quantisation_aware() -> Pipeline:
    class Quantised(nn.Linear):
        def forward(self, inputs: Tensor) -> Tensor:
            step = self.weight.detach().abs().amax() / 7
            rounded = (self.weight / step).round().clamp(-7, 7) * step
            return functional.linear(inputs, self.weight + (rounded - self.weight).detach(), self.bias)

    model = nn.Sequential(Quantised(12, 64), nn.ReLU(), Quantised(64, 64), nn.ReLU(), Quantised(64, 6))
    return Pipeline(model=model, batch=(features(), classes()), loss=classify)


def gradient_checkpointing() -> Pipeline:
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ids, self.head = nn.Embedding(50, 48), nn.Linear(48, 50)
            self.layers = nn.ModuleList(
                nn.TransformerEncoderLayer(48, 4, 96, 0.0, batch_first=True, norm_first=True) for _ in range(2)
            )

        def forward(self, ids: Tensor) -> Tensor:
            hidden = self.ids(ids)
            mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
            for layer in self.layers:
                hidden = checkpoint(layer, hidden, mask, use_reentrant=False)
            return self.head(hidden)

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        return functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())

    return Pipeline(model=Checkpointed(), batch=tokens(), loss=loss)


def stochastic_depth() -> Pipeline:
    class Deep(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(12, 64), nn.Linear(64, 6)
            self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 64), nn.GELU()) for _ in range(4))

        def forward(self, inputs: Tensor) -> Tensor:
            hidden = self.first(inputs)
            for block in self.blocks:
                if not self.training:
                    hidden = hidden + 0.8 * block(hidden)
                elif torch.rand(()) < 0.8:
                    hidden = hidden + block(hidden)
            return self.last(hidden)

    return Pipeline(model=Deep(), batch=(features(), classes()), loss=classify)


def smoothed_labels_of_two_tasks() -> Pipeline:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        scores, boxes = model(batch["pixels"])
        label = functional.cross_entropy(scores, batch["labels"], label_smoothing=0.1)
        return label + 5 * functional.smooth_l1_loss(boxes, batch["boxes"])

    return Pipeline(model=Detector(), batch=objects(), loss=loss)


HEALTHY = (
    "diffusion", "contrastive", "adversarial", "dropout_and_batch_norm", "random_augmentation", "carried_state",
    "mixture_of_experts", "variational", "quantisation_aware", "gradient_checkpointing", "stochastic_depth",
    "smoothed_labels_of_two_tasks",
)  # fmt: skip

RUNS_ON = {"memorised", "too_slow", "cannot_learn"}
"""The verdicts of a fault that does not stop learning as such: what comes of it depends on the model."""
FAULTS: dict[str, tuple[set[str], set[str]]] = {
    "dropout_always_on": ({"memorised", "too_slow"}, {"eval_mode_bug"}),
    "labels_drawn_anew": ({"cannot_learn"}, {"label_noise", "unknown"}),
    "head_made_in_forward": ({"cannot_learn", "too_slow"}, {"params_not_training"}),
    "loss_detached": ({"cannot_learn"}, {"params_not_training"}),
    "all_frozen": ({"cannot_learn"}, {"params_not_training"}),
    "optimizer_with_half_the_parameters": ({"cannot_learn", "too_slow"}, {"params_not_training"}),
    "sign_of_the_loss": ({"cannot_learn", "not_finite"}, {"wrong_loss"}),
    "softmax_twice": ({"cannot_learn", "too_slow"}, {"double_softmax"}),
    "shifted_twice": ({"memorised"}, {"label_shift_error"}),
    "padding_mask_inverted": (RUNS_ON, {"train_eval_mismatch", "bad_batch", "no_signal"}),
    "learning_rate_far_too_high": ({"too_slow", "cannot_learn", "not_finite"}, {"lr_too_high"}),
    "learning_rate_far_too_low": ({"too_slow", "cannot_learn"}, {"lr_too_low"}),
    "dead_relus": ({"cannot_learn"}, {"dead_units"}),
    "constant_inputs": ({"cannot_learn"}, {"no_signal"}),
    "constant_labels": ({"memorised"}, {"class_imbalance", "no_signal"}),
    "target_scale": ({"too_slow", "cannot_learn"}, {"bad_batch", "lr_too_low", "bad_init"}),
    "zero_grad_missing": (RUNS_ON | {"not_finite"}, {"missing_zero_grad"}),
    "clipped_to_nothing": ({"too_slow", "cannot_learn"}, {"clip_too_tight"}),
    "batch_changed_in_place": ({"too_slow", "cannot_learn"}, {"no_signal", "bad_batch", "unknown"}),
    "no_grad_around_the_body": (RUNS_ON, {"params_not_training"}),
    "head_replaced_after_the_optimizer": (RUNS_ON, {"params_not_training"}),
    "loss_of_another_tensor": ({"cannot_learn"}, {"wrong_loss", "params_not_training"}),
    "graph_kept_between_steps": ({"failed"}, {""}),
    "copies_get_the_gradients": ({"cannot_learn"}, {"params_not_training"}),
    "reference_is_the_policy": ({"cannot_learn"}, {"no_preference_signal", "wrong_loss"}),
}
"""The verdicts and the leading causes that are right; a probe that fails names no cause."""


def main(arguments: Iterable[str] | None = None) -> None:
    """Print verdicts and leading causes of each pipeline with each seed, then how many are right."""
    from benchmarks import probe_families, probe_recipes
    from mldebug_mcp import probe_overfit

    parser = argparse.ArgumentParser("benchmarks.probe_matrix", description=__doc__)
    parser.add_argument("names", nargs="*", help="pipelines (default: all)")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="seeds of each pipeline (default %(default)s)")
    parser.add_argument("--time-limit", type=float, default=TIME_LIMIT_SECONDS, help="seconds (default %(default)s)")
    options = parser.parse_args(None if arguments is None else list(arguments))
    files = dict.fromkeys([*FAULTS, *HEALTHY], __file__)
    healthy, expected = {*HEALTHY}, {**FAULTS}
    for module in (probe_recipes, probe_families):
        files |= dict.fromkeys([*module.FAULTS, *module.HEALTHY], str(module.__file__))
        healthy |= {*module.HEALTHY}
        expected |= module.FAULTS
    expected |= dict.fromkeys(healthy, ({"memorised"}, {"healthy"}))
    count = right_verdicts = right_causes = accused = agreeing = 0
    names = options.names or list(files)
    for name in names:
        verdicts, causes = expected[name]
        given: list[tuple[str, str]] = []
        slowest = 0.0
        for seed in range(options.seeds):
            result = probe_overfit(
                entry=f"{files[name]}:{name}", device="cpu", seed=seed, time_limit=options.time_limit
            )
            given.append((result.verdict, result.causes[0].cause if result.causes else ""))
            slowest = max(slowest, result.seconds)
        count += len(given)
        right_verdicts += sum(verdict in verdicts for verdict, _ in given)
        right_causes += sum(cause in causes for _, cause in given)
        accused += sum(name in healthy and cause not in causes for _, cause in given)
        agreeing += len({verdict for verdict, _ in given}) == 1
        right = all(verdict in verdicts and cause in causes for verdict, cause in given)
        answers = ", ".join(f"{verdict} {cause or '-'}" for verdict, cause in dict.fromkeys(given))
        print(f"{'' if right else 'WRONG':5} {name:36} {slowest:5.1f} s  {answers}", flush=True)
    print(
        f"verdict {right_verdicts}/{count}, cause {right_causes}/{count}, healthy accused {accused}, "
        f"seeds agree on the verdict {agreeing}/{len(names)}"
    )


if __name__ == "__main__":
    main()
