"""Pipelines with a fault each, of tasks and mechanisms that the pipelines of `tests/probe` lack."""

from __future__ import annotations

import copy
import math
from types import SimpleNamespace as Pipeline
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.probe.kit import (
    RUNS_ON,
    STOPS,
    Composed,
    adapted,
    adversaries,
    checkpointed,
    classes,
    drawn,
    experiences,
    fault,
    frames,
    language,
    latent,
    network,
    output_loss,
    pairs,
    pipeline,
    series,
    taken,
    text,
    value_loss,
    values,
    with_step,
)

# --- what the optimizer holds, and what the gradient reaches ----------------------------------------------------------


@fault("cannot_learn too_slow", "params_not_training")
def head_made_in_forward() -> Pipeline:
    model = Composed(lambda model, inputs: nn.Linear(64, 5)(model.body(inputs)), body=network(10, 64, 64))
    return pipeline(model)


@fault(RUNS_ON, "params_not_training")
def head_replaced_after_the_optimizer() -> Pipeline:
    from transformers import BertConfig, BertForSequenceClassification

    sizes = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96}
    model: Any = BertForSequenceClassification(BertConfig(vocab_size=40, num_labels=4, **sizes))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model.classifier = nn.Linear(48, 4)
    return pipeline(model, output_loss, batch={"input_ids": text(), "labels": classes(8, 4)}, optimizer=optimizer)


@fault(STOPS, "params_not_training")
def adapter_left_out_of_the_optimizer() -> Pipeline:
    model = adapted()
    bases = [parameter for name, parameter in model.named_parameters() if "base" in name]
    return pipeline(model, optimizer=torch.optim.AdamW(bases, lr=1e-3))


@fault("cannot_learn", "params_not_training dead_units")
def adapter_never_added() -> Pipeline:
    return pipeline(adapted(scale=0.0))


@fault(STOPS, "params_not_training")
def generator_gets_no_gradient() -> Pipeline:
    model, generator, critic = adversaries(6, 1e-3)
    real = values()

    def loss(model: Any, batch: Tensor) -> Tensor:
        made = model["generator"](torch.randn(len(batch), 6)).detach()
        return functional.softplus(-model["critic"](made)).mean()

    def train_critic() -> None:
        made = model["generator"](torch.randn(len(real), 6)).detach()
        critic.zero_grad()
        judged = functional.softplus(-model["critic"](real)) + functional.softplus(model["critic"](made))
        torch.autograd.backward(judged.mean())
        critic.step()

    return with_step(pipeline(model, loss, batch=real), generator, after_step=train_critic)


@fault("cannot_learn", "params_not_training")
def copies_get_the_gradients() -> Pipeline:
    def compute(model: Any, inputs: Tensor) -> Tensor:
        replicas = [copy.deepcopy(model.module) for _ in range(2)]
        return torch.cat([replica(part) for replica, part in zip(replicas, inputs.chunk(2), strict=True)])

    return pipeline(Composed(compute, module=network(10, 64, 5)))


@fault(RUNS_ON, "params_not_training")
def expert_chosen_by_argmax() -> Pipeline:
    parts = {"encoder": network(10, 128, 4), "codes": nn.Embedding(4, 8), "head": nn.Linear(8, 5)}
    return pipeline(Composed(lambda model, inputs: model.head(model.codes(model.encoder(inputs).argmax(-1))), **parts))


@fault(RUNS_ON, "params_not_training")
def second_loss_added_as_a_number() -> Pipeline:
    def compute(model: Any, inputs: Tensor) -> tuple[Tensor, Tensor]:
        return model.label(inputs), model.score(inputs)[:, 0]

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        label, score = model(batch["features"])
        return functional.cross_entropy(label, batch["labels"]) + functional.mse_loss(score, batch["scores"]).item()

    batch = {"features": values(), "labels": classes(), "scores": values(16, 1)[:, 0]}
    return pipeline(Composed(compute, label=network(10, 64, 5), score=network(10, 96, 1)), loss, batch=batch)


@fault(RUNS_ON, "params_not_training")
def latent_without_a_gradient() -> Pipeline:
    return latent(lambda divergence: 0 * divergence, with_gradient=False)


@fault(RUNS_ON, "params_not_training")
def checkpoint_of_frozen_inputs() -> Pipeline:
    return checkpointed(reentrant=True)


@fault("cannot_learn", "params_not_training dead_units wrong_loss vanishing_gradients")
def rounded_without_straight_through() -> Pipeline:
    return pipeline(Composed(lambda model, inputs: (model.body(inputs) * 16).round() / 16, body=network(10, 64, 5)))


@fault("failed", "")
def graph_kept_between_steps() -> Pipeline:
    states = [torch.zeros(16, 32)]

    def compute(model: Any, inputs: Tensor) -> Any:
        states[0] = model.cell(inputs, states[0])
        return model.head(states[0])

    return pipeline(Composed(compute, cell=nn.GRUCell(10, 32), head=nn.Linear(32, 5)))


# --- losses and data --------------------------------------------------------------------------------------------------


@fault("cannot_learn", "wrong_loss params_not_training")
def loss_of_another_tensor() -> Pipeline:
    def loss(model: Any, batch: dict[str, Tensor]) -> Tensor:
        hidden = torch.tanh(model["body"](batch["states"]))
        shares = model["policy"](hidden).log_softmax(-1).gather(1, batch["actions"][:, None])[:, 0]
        guessed = model["value"](hidden)
        ratio = (shares - shares.detach()).exp()
        return 0.5 * functional.mse_loss(guessed, guessed.detach()) - (ratio * torch.zeros_like(shares)).mean()

    parts = {"body": network(10, 64, 64), "policy": nn.Linear(64, 3), "value": nn.Linear(64, 1)}
    return pipeline(nn.ModuleDict(parts), loss, batch=experiences())


@fault("cannot_learn", "no_preference_signal wrong_loss")
def reference_is_the_policy() -> Pipeline:
    def log_probabilities(model: nn.Module, ids: Tensor) -> Tensor:
        shares = model(ids)[:, :-1].log_softmax(-1)
        return shares.gather(2, ids[:, 1:, None])[:, 3:, 0].sum(1)

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        margin = log_probabilities(model, batch["chosen"]) - log_probabilities(model, batch["rejected"])
        return -functional.logsigmoid(0.1 * (margin - margin.detach())).mean()

    chosen = text()
    rejected = torch.cat([chosen[:, :4], text(8, 8, seed=67)], 1)
    return pipeline(language().model, loss, batch={"chosen": chosen, "rejected": rejected})


@fault("cannot_learn not_finite", "wrong_loss")
def target_network_is_the_network() -> Pipeline:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        wanted = batch["rewards"] + 1.2 * model(batch["next_states"]).max(1).values.detach()
        return -functional.smooth_l1_loss(taken(model, batch), wanted)

    return pipeline(network(10, 64, 64, 3), loss, batch=experiences())


@fault(STOPS, "wrong_loss unknown no_signal representation_collapse")
def divergence_outweighs_the_reconstruction() -> Pipeline:
    return latent(lambda divergence: 100 * divergence)


@fault("cannot_learn not_finite", "wrong_loss")
def divergence_negated() -> Pipeline:
    return latent(lambda divergence: -divergence)


@fault("memorised", "representation_collapse no_signal")
def attraction_alone() -> Pipeline:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        first, second = (functional.normalize(model(rows), dim=1) for rows in batch.values())
        return (1 - (first * second).sum(1)).mean()

    return pipeline(network(10, 64, 16), loss, batch=pairs())


@fault("cannot_learn", "no_preference_signal no_signal wrong_loss")
def triplet_of_the_positive() -> Pipeline:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        anchor, positive, negative = (functional.normalize(model(rows), dim=1) for rows in batch.values())
        return functional.triplet_margin_loss(anchor, positive, negative, margin=0.2)

    batch = pairs()
    return pipeline(network(10, 64, 16), loss, batch={**batch, "negative": batch["positive"].clone()})


@fault("cannot_learn", "wrong_loss no_signal label_noise unknown")
def labels_smoothed_away() -> Pipeline:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return functional.cross_entropy(model(batch["features"]), batch["labels"], label_smoothing=1.0)

    return pipeline(network(10, 64, 64, 5), loss)


@fault("memorised", "class_imbalance no_signal")
def constant_labels() -> Pipeline:
    batch = {"features": values(), "labels": torch.zeros(16, dtype=torch.long)}
    return pipeline(network(10, 64, 64, 5), batch=batch)


@fault(STOPS, "bad_batch lr_too_low bad_init")
def target_scale() -> Pipeline:
    batch = {"features": values(), "labels": 3e6 + 4e5 * values(16, 1, 31)}
    return pipeline(network(10, 64, 64, 1), value_loss, batch=batch)


@fault(STOPS, "no_signal bad_batch unknown")
def batch_changed_in_place() -> Pipeline:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        batch["features"].mul_(0.8)
        return value_loss(model, batch)

    return pipeline(network(10, 64, 64, 1), loss, batch={"features": values(), "labels": values(16, 1, 31)})


@fault(RUNS_ON, "rows_mixed")
def time_and_rows_exchanged() -> Pipeline:
    return series(Composed(lambda model, rows: model.head(model.body(rows)[0][:, -1]), body=nn.LSTM(10, 48),
                           head=nn.Linear(48, 5)))  # fmt: skip


# --- numbers ----------------------------------------------------------------------------------------------------------


@fault("not_finite", "bad_batch invalid_math")
def transcript_longer_than_its_frames() -> Pipeline:
    batch = {"frames": torch.randn(4, 6, 8, generator=drawn(59)), "transcripts": torch.randint(1, 12, (4, 9))}

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        scores = model(batch["frames"]).log_softmax(-1).transpose(0, 1)
        return functional.ctc_loss(scores, batch["transcripts"], torch.full((4,), 6), torch.full((4,), 9))

    return pipeline(network(8, 48, 12), loss, batch=batch)


@fault("not_finite", "invalid_math")
def distance_of_equal_rows() -> Pipeline:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        first, second = (model(rows) for rows in batch.values())
        near, far = ((first - other).square().sum(1).sqrt() for other in (second, second.roll(1, 0)))
        return (near + functional.relu(1 - far)).mean()

    batch = pairs()
    batch["positive"][0] = batch["anchor"][0]
    return pipeline(network(10, 48, 8), loss, batch=batch)


@fault("not_finite", "invalid_math bad_batch")
def mask_hides_whole_rows() -> Pipeline:
    def compute(model: Any, inputs: Tensor, hidden: Tensor) -> Any:
        scores = inputs @ inputs.transpose(1, 2) / math.sqrt(10)
        weights = scores.masked_fill(hidden[:, None, :], float("-inf")).softmax(-1)
        return model.head(model.body(weights @ inputs).mean(1))

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return functional.cross_entropy(model(batch["features"], batch["hidden"]), batch["labels"])

    hidden = torch.arange(12)[None] < torch.tensor([12, 8, 5, 12, 7, 9, 12, 3, 6, 12, 10, 4])[:, None]
    model = Composed(compute, body=network(10, 32, 10), head=nn.Linear(10, 5))
    return pipeline(model, loss, batch={"features": frames(), "hidden": hidden, "labels": classes(12)})


@fault(f"{RUNS_ON} not_finite", "exploding_gradients bad_init")
def recurrent_weights_too_large() -> Pipeline:
    body = nn.RNN(10, 48, nonlinearity="relu", batch_first=True)
    nn.init.normal_(body.all_weights[0][1], std=0.6)
    model = Composed(lambda model, rows: model.head(model.body(rows)[0][:, -1]), body=body, head=nn.Linear(48, 5))
    return series(model, steps=16)


@fault(STOPS, "low_precision_update lr_too_low")
def updates_lost_in_bfloat16() -> Pipeline:
    model = network(10, 64, 64, 5).bfloat16()
    batch = {"features": values().bfloat16(), "labels": classes()}
    return pipeline(model, batch=batch, optimizer=torch.optim.SGD(model.parameters(), lr=1e-4))


# --- steps ------------------------------------------------------------------------------------------------------------


@fault(STOPS, "clip_too_tight")
def clipped_to_nothing() -> Pipeline:
    model = network(10, 64, 64, 5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    clip = lambda: nn.utils.clip_grad_norm_(model.parameters(), 1e-4)  # noqa: E731 - of one line
    return with_step(pipeline(model), optimizer, after_backward=clip)


@fault(STOPS, "weight_decay_too_high")
def decay_outweighs_the_gradient() -> Pipeline:
    model = network(10, 64, 64, 5)
    return pipeline(model, optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=60.0))


@fault(STOPS, "lr_schedule_bug lr_too_low")
def schedule_ends_after_ten_steps() -> Pipeline:
    given = language()
    optimizer = torch.optim.AdamW(given.model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.0, 1 - step / 10))
    return with_step(given, optimizer, after_step=schedule.step)


@fault("cannot_learn", "lr_too_low lr_schedule_bug")
def warm_up_never_stepped() -> Pipeline:
    given = pipeline(network(10, 64, 64, 5))
    optimizer = torch.optim.AdamW(given.model.parameters(), lr=1e-3)
    given.schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, step / 100))
    return with_step(given, optimizer)


@fault(STOPS, "too_little_capacity")
def one_unit_wide() -> Pipeline:
    return pipeline(network(10, 64, 1, 5, activation=nn.Tanh))
