"""Pipelines that are broken in one known way each, and healthy ones: what the probe is measured on.

Each function is an entry as users write them. BROKEN and HEALTHY say what the probe should answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

ROWS, LENGTH, VOCABULARY, CLASSES, FEATURES = 8, 16, 60, 10, 20


class TinyLM(nn.Module):
    def __init__(self, *, causal: bool = True, width: int = 48, dropout: float = 0.0) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.places = nn.Parameter(torch.randn(LENGTH, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, VOCABULARY)
        self.causal = causal

    def forward(self, ids: Tensor) -> Tensor:
        length = ids.shape[1]
        mask = torch.ones(length, length, dtype=torch.bool, device=ids.device).triu(1) if self.causal else None
        places = self.places[:length]
        body = self.body(self.tokens(ids) + places, mask=mask, is_causal=self.causal)
        return self.head(body)  # type: ignore[no-any-return]


def text(rows: int = ROWS) -> Tensor:
    return torch.randint(1, VOCABULARY, (rows, LENGTH), generator=torch.Generator().manual_seed(1))


def shifted_loss(model: nn.Module, batch: Any) -> Tensor:
    logits = model(batch["input_ids"])
    return functional.cross_entropy(logits[:, :-1].flatten(0, 1), batch["labels"][:, 1:].flatten())


def unshifted_loss(model: nn.Module, batch: Any) -> Tensor:
    return functional.cross_entropy(model(batch["input_ids"]).flatten(0, 1), batch["labels"].flatten())


def language(labels: Tensor | None = None, **changes: Any) -> SimpleNamespace:
    torch.manual_seed(0)
    ids = text()
    whole = {"model": TinyLM(), "batch": {"input_ids": ids, "labels": ids if labels is None else labels}}
    return SimpleNamespace(**(whole | {"loss": shifted_loss} | changes))


def data(rows: int = 16) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(rows, FEATURES, generator=generator), torch.randint(0, CLASSES, (rows,), generator=generator)


def class_loss(model: nn.Module, batch: Any) -> Tensor:
    return functional.cross_entropy(model(batch[0]), batch[1])


def perceptron(width: int = 48) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(FEATURES, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                         nn.Linear(width, CLASSES))  # fmt: skip


def classifier(**changes: Any) -> SimpleNamespace:
    return SimpleNamespace(**({"model": perceptron(), "batch": data(), "loss": class_loss} | changes))


def stepping(given: SimpleNamespace, optimizer: torch.optim.Optimizer, **how: bool) -> SimpleNamespace:
    """Add a train_step to a pipeline, with the faults that `how` names."""

    def train_step() -> Tensor:
        if how.get("evaluation"):
            given.model.eval()
        if not how.get("no_zero_grad"):
            optimizer.zero_grad()
        loss: Tensor = given.loss(given.model, given.batch)
        (-loss if how.get("uphill") else loss).backward()  # type: ignore[no-untyped-call]
        if not how.get("no_step"):
            optimizer.step()
        return loss

    given.train_step = train_step
    return given


# --- broken: labels ---------------------------------------------------------------------------------------------------


def labels_all_masked() -> SimpleNamespace:
    return language(torch.full((ROWS, LENGTH), -100))


def class_labels_all_masked() -> SimpleNamespace:
    inputs, labels = data()
    return classifier(batch=(inputs, torch.full_like(labels, -100)))


def labels_masked_with_a_loss_of_zero() -> SimpleNamespace:
    return language(torch.full((ROWS, LENGTH), -100), loss=averaged_loss)


def labels_masked_with_an_own_step() -> SimpleNamespace:
    given = labels_masked_with_a_loss_of_zero()
    return stepping(given, torch.optim.SGD(given.model.parameters(), lr=0.1))


def labels_left_in_the_first_place_alone() -> SimpleNamespace:
    labels = torch.full((ROWS, LENGTH), -100)
    labels[:, 0] = text()[:, 0]
    return language(labels)


def loss_mask_of_zeros() -> SimpleNamespace:
    ids = text()
    return language(batch={"input_ids": ids, "loss_mask": torch.zeros_like(ids)}, loss=averaged_loss)


def averaged_loss(model: nn.Module, batch: Any) -> Tensor:
    """Return the loss over the labels that count, 0 where none does."""
    ids: Tensor = batch["input_ids"]
    mask: Tensor = batch["loss_mask"] if "loss_mask" in batch else batch["labels"] != -100
    each = functional.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
    counts = mask[:, 1:].flatten().float()
    return (each * counts).sum() / counts.sum().clamp(min=1)


def labels_shifted_twice() -> SimpleNamespace:
    labels = text().roll(-1, 1)
    labels[:, -1] = -100
    return language(labels)


def labels_not_shifted() -> SimpleNamespace:
    return language(loss=unshifted_loss)


def labels_shuffled() -> SimpleNamespace:
    order = torch.randperm(ROWS * LENGTH, generator=torch.Generator().manual_seed(3))
    return language(text().flatten()[order].reshape(ROWS, LENGTH))


def rows_contradict() -> SimpleNamespace:
    inputs, labels = data()
    inputs[1::2] = inputs[::2]
    labels[1::2] = (labels[::2] + 1) % CLASSES
    return classifier(batch=(inputs, labels))


def text_rows_contradict() -> SimpleNamespace:
    ids = text()
    ids[1::2, : LENGTH // 2] = ids[::2, : LENGTH // 2]
    labels = ids.clone()
    ids[1::2], labels[:, : LENGTH // 2] = ids[::2], -100
    return language(labels, batch={"input_ids": ids, "labels": labels})


def values_contradict() -> SimpleNamespace:
    inputs, _ = data()
    inputs[1::2] = inputs[::2]
    return SimpleNamespace(model=nn.Sequential(nn.Linear(FEATURES, 64), nn.Tanh(), nn.Linear(64, 1)),
                           batch=(inputs, torch.randn(16, 1, generator=torch.Generator().manual_seed(2))),
                           loss=lambda model, batch: functional.mse_loss(model(batch[0]), batch[1]))  # fmt: skip


def inputs_zeroed() -> SimpleNamespace:
    inputs, labels = data()
    return classifier(batch=(torch.zeros_like(inputs), labels))


def vocabulary_too_small() -> SimpleNamespace:
    ids = text()
    ids[2, 3] = VOCABULARY + 4
    return language(batch={"input_ids": ids, "labels": ids})


# --- broken: parameters and optimizer ---------------------------------------------------------------------------------


def all_frozen() -> SimpleNamespace:
    given = classifier()
    given.model.requires_grad_(False)
    return given


def body_frozen() -> SimpleNamespace:
    given = language()
    given.model.requires_grad_(False)
    given.model.head.bias.requires_grad_(True)
    return given


class Unregistered(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(FEATURES, 32)
        self.hidden = [nn.Linear(32, 32) for _ in range(3)]
        self.last = nn.Linear(32, CLASSES)

    def forward(self, inputs: Tensor) -> Tensor:
        value = torch.relu(self.first(inputs))
        for layer in self.hidden:
            value = torch.relu(layer(value))
        return self.last(value)  # type: ignore[no-any-return]


def layers_in_a_list() -> SimpleNamespace:
    torch.manual_seed(0)
    return classifier(model=Unregistered())


def graph_detached() -> SimpleNamespace:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        return functional.cross_entropy(model(batch[0]).detach(), batch[1])

    return classifier(loss=loss)


class DetachedBody(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 1))
        self.head = nn.Linear(1, CLASSES)

    def forward(self, inputs: Tensor) -> Tensor:
        body = self.body(inputs).detach().cpu().numpy()
        return self.head(torch.tensor(body, device=inputs.device))  # type: ignore[no-any-return]


def body_detached() -> SimpleNamespace:
    torch.manual_seed(0)
    return classifier(model=DetachedBody())


def optimizer_of_another_model() -> SimpleNamespace:
    return classifier(optimizer=torch.optim.AdamW(perceptron().parameters(), lr=1e-2))


def learning_rate_zero() -> SimpleNamespace:
    given = classifier()
    given.optimizer = torch.optim.AdamW(given.model.parameters(), lr=0.0)
    return given


def learning_rate_tiny() -> SimpleNamespace:
    given = classifier()
    given.optimizer = torch.optim.AdamW(given.model.parameters(), lr=1e-7)
    return given


def learning_rate_of_adam_with_sgd() -> SimpleNamespace:
    given = language()
    return stepping(given, torch.optim.SGD(given.model.parameters(), lr=1e-5))


def learning_rate_huge() -> SimpleNamespace:
    given = classifier()
    given.optimizer = torch.optim.SGD(given.model.parameters(), lr=50.0, momentum=0.9)
    return given


def zero_grad_missing() -> SimpleNamespace:
    given = language()
    return stepping(given, torch.optim.SGD(given.model.parameters(), lr=0.3), no_zero_grad=True)


def zero_grad_missing_with_adam() -> SimpleNamespace:
    given = classifier()
    return stepping(given, torch.optim.Adam(given.model.parameters(), lr=3e-3), no_zero_grad=True)


def optimizer_never_steps() -> SimpleNamespace:
    given = classifier()
    return stepping(given, torch.optim.AdamW(given.model.parameters(), lr=1e-2), no_step=True)


# --- broken: the loss -------------------------------------------------------------------------------------------------


def double_softmax() -> SimpleNamespace:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        return functional.cross_entropy(model(batch[0]).softmax(-1), batch[1])

    return classifier(loss=loss)


def model_ends_in_softmax() -> SimpleNamespace:
    return classifier(model=nn.Sequential(perceptron(), nn.Softmax(-1)))


def double_sigmoid() -> SimpleNamespace:
    inputs, labels = data()
    model = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid())

    def loss(model: nn.Module, batch: Any) -> Tensor:
        return functional.binary_cross_entropy_with_logits(model(batch[0]), batch[1])

    return SimpleNamespace(model=model, batch=(inputs, (labels[:, None] % 2).float()), loss=loss)


def wrong_sign() -> SimpleNamespace:
    return classifier(loss=lambda model, batch: -class_loss(model, batch))


def step_uphill() -> SimpleNamespace:
    given = classifier()
    return stepping(given, torch.optim.SGD(given.model.parameters(), lr=0.05), uphill=True)


# --- broken: numbers --------------------------------------------------------------------------------------------------


def log_of_zero() -> SimpleNamespace:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        probabilities = torch.relu(model(batch[0]))
        return -torch.log(probabilities).gather(1, batch[1][:, None]).mean()

    return classifier(loss=loss)


def root_of_zero() -> SimpleNamespace:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        value = model(batch[0])
        distance = torch.sqrt(((value - value.detach()) ** 2).sum(1))
        return functional.cross_entropy(value, batch[1]) + distance.mean()

    return classifier(loss=loss)


def zero_by_zero() -> SimpleNamespace:
    inputs, labels = data()
    inputs[:, 3] = 1.0

    def loss(model: nn.Module, batch: Any) -> Tensor:
        scaled = (batch[0] - batch[0].mean(0)) / batch[0].std(0)
        return functional.cross_entropy(model(scaled), batch[1])

    return classifier(batch=(inputs, labels), loss=loss)


class Exponential(nn.Module):
    def forward(self, value: Tensor) -> Tensor:
        return torch.exp(value * 1e4)


def overflow_in_a_layer() -> SimpleNamespace:
    torch.manual_seed(0)
    return classifier(model=nn.Sequential(nn.Linear(FEATURES, 32), Exponential(), nn.Linear(32, CLASSES)))


def overflow_in_half_precision() -> SimpleNamespace:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, CLASSES))
    with torch.no_grad():
        for one in model.parameters():
            one.mul_(300)
    inputs, labels = data()
    return classifier(model=model.half(), batch=((inputs * 10).half(), labels),
                      loss=lambda model, batch: functional.cross_entropy(model(batch[0]), batch[1]))  # fmt: skip


def overflow_under_autocast() -> SimpleNamespace:
    torch.manual_seed(0)
    given = classifier()
    inputs, labels = given.batch

    def loss(model: nn.Module, batch: Any) -> Tensor:
        with torch.autocast(batch[0].device.type, dtype=torch.float16):
            # Not a power, which autocast computes in float32 on a GPU.
            value = model(batch[0]) * 1e3
            return functional.cross_entropy(value * value / 1e6, batch[1])

    given.loss, given.batch = loss, (inputs * 3, labels)
    return given


def batch_holds_nan() -> SimpleNamespace:
    inputs, labels = data()
    inputs[3, 2] = math.nan
    return classifier(batch=(inputs, labels))


# --- broken: initialisation and activations ---------------------------------------------------------------------------


def initial_weights_huge() -> SimpleNamespace:
    given = language()
    for one in given.model.parameters():
        if one.ndim > 1:
            nn.init.normal_(one, std=20.0)
    return given


def head_weights_huge() -> SimpleNamespace:
    given = classifier()
    nn.init.normal_(given.model[-1].weight, std=20.0)
    return given


def activations_saturated() -> SimpleNamespace:
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for width in (FEATURES, 48, 48, 48, 48, 48):
        layer = nn.Linear(width, 48)
        nn.init.normal_(layer.weight, std=20.0)
        layers += [layer, nn.Sigmoid()]
    return classifier(model=nn.Sequential(*layers[:-2], nn.Linear(48, 2), nn.Sigmoid(), nn.Linear(2, CLASSES)))


def sigmoids_deep() -> SimpleNamespace:
    return classifier(model=squashing(8))


def sigmoids_deeper_and_narrow() -> SimpleNamespace:
    return classifier(model=squashing(20, width=16))


def tanhs_deep() -> SimpleNamespace:
    return classifier(model=squashing(30, nn.Tanh))


def squashing(layers: int, function: Callable[[], nn.Module] = nn.Sigmoid, width: int = 32) -> nn.Module:
    torch.manual_seed(0)
    hidden = [module for _ in range(layers) for module in (nn.Linear(width, width), function())]
    return nn.Sequential(nn.Linear(FEATURES, width), function(), *hidden, nn.Linear(width, CLASSES))


def units_dead() -> SimpleNamespace:
    given = classifier()
    nn.init.constant_(given.model[0].bias, -100.0)
    return given


# --- broken: dependence -----------------------------------------------------------------------------------------------


def causal_mask_missing() -> SimpleNamespace:
    torch.manual_seed(0)
    return language(model=TinyLM(causal=False))


class MixesRows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, 32)
        self.body = nn.GRU(32, 32, batch_first=True)
        self.head = nn.Linear(32, CLASSES)

    def forward(self, ids: Tensor) -> Tensor:
        rows, length = ids.shape
        value = self.tokens(ids).transpose(0, 1).contiguous().view(rows, length, 32)
        return self.head(self.body(value)[0][:, -1])  # type: ignore[no-any-return]


def rows_mixed_by_reshape() -> SimpleNamespace:
    torch.manual_seed(0)
    return SimpleNamespace(model=MixesRows(), batch=(text(), torch.arange(ROWS) % CLASSES), loss=class_loss)


def softmax_over_the_batch() -> SimpleNamespace:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.score, self.value = nn.Linear(FEATURES, 32), nn.Linear(FEATURES, 32)
            self.head = nn.Linear(32, CLASSES)

        def forward(self, inputs: Tensor) -> Tensor:
            return self.head(self.score(inputs).softmax(0) * self.value(inputs))  # type: ignore[no-any-return]

    torch.manual_seed(0)
    return classifier(model=Attention())


class IgnoresInput(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = perceptron()

    def forward(self, inputs: Tensor) -> Tensor:
        return self.body(torch.zeros_like(inputs))  # type: ignore[no-any-return]


def input_ignored() -> SimpleNamespace:
    return classifier(model=IgnoresInput())


# --- broken: modes ----------------------------------------------------------------------------------------------------


def convolutional(norm: nn.Module, last: nn.Module | None = None) -> SimpleNamespace:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), norm, nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
                          nn.AdaptiveAvgPool2d(4), nn.Flatten(), last or nn.Identity(),
                          nn.Linear(32 * 16, CLASSES))  # fmt: skip
    images = torch.rand(16, 3, 16, 16, generator=torch.Generator().manual_seed(5))
    return SimpleNamespace(model=model, batch={"pixel_values": images, "labels": torch.arange(16) % CLASSES},
                           loss=lambda m, b: functional.cross_entropy(m(b["pixel_values"]), b["labels"]))  # fmt: skip


def batch_norm_keeps_no_statistics() -> SimpleNamespace:
    return convolutional(nn.BatchNorm2d(16, track_running_stats=False))


def batch_norm_never_updates() -> SimpleNamespace:
    given = convolutional(nn.BatchNorm2d(16, momentum=0.0))
    given.batch["pixel_values"] = given.batch["pixel_values"] * 0.2
    return given


def trains_in_evaluation_mode() -> SimpleNamespace:
    given = convolutional(nn.BatchNorm2d(16))
    return stepping(given, torch.optim.AdamW(given.model.parameters(), lr=3e-3), evaluation=True)


class AlwaysDrops(nn.Module):
    def forward(self, value: Tensor) -> Tensor:
        return functional.dropout(value, 0.3)


def dropout_in_evaluation() -> SimpleNamespace:
    return convolutional(nn.Identity(), AlwaysDrops())


# --- healthy ----------------------------------------------------------------------------------------------------------


def healthy_language_model() -> SimpleNamespace:
    return language()


def healthy_language_model_with_prompts() -> SimpleNamespace:
    labels = text()
    labels[:, :6] = -100
    return language(labels)


def healthy_targets_shifted_by_the_data() -> SimpleNamespace:
    ids = torch.randint(1, VOCABULARY, (ROWS, LENGTH + 1), generator=torch.Generator().manual_seed(1))
    torch.manual_seed(0)
    return SimpleNamespace(
        model=TinyLM(),
        batch=(ids[:, :-1], ids[:, 1:]),
        loss=lambda m, b: functional.cross_entropy(m(b[0]).flatten(0, 1), b[1].flatten()),
    )


def healthy_masked_language_model() -> SimpleNamespace:
    ids = text()
    hidden = torch.rand(ids.shape, generator=torch.Generator().manual_seed(4)) < 0.3
    labels = torch.where(hidden, ids, -100)
    torch.manual_seed(0)
    return language(labels, model=TinyLM(causal=False), loss=unshifted_loss,
                    batch={"input_ids": torch.where(hidden, 0, ids), "labels": labels})  # fmt: skip


def healthy_classifier() -> SimpleNamespace:
    return classifier()


def healthy_train_step() -> SimpleNamespace:
    given = classifier()
    return stepping(given, torch.optim.AdamW(given.model.parameters(), lr=3e-3))


def healthy_sgd() -> SimpleNamespace:
    given = classifier()
    given.optimizer = torch.optim.SGD(given.model.parameters(), lr=0.1, momentum=0.9)
    return given


def healthy_accumulation() -> SimpleNamespace:
    given = classifier()
    optimizer = torch.optim.AdamW(given.model.parameters(), lr=3e-3)

    def train_step() -> float:
        optimizer.zero_grad()
        total = 0.0
        for part in range(4):
            rows = slice(4 * part, 4 * part + 4)
            loss = class_loss(given.model, (given.batch[0][rows], given.batch[1][rows])) / 4
            loss.backward()  # type: ignore[no-untyped-call]
            total += float(loss)
        nn.utils.clip_grad_norm_(given.model.parameters(), 1.0)
        optimizer.step()
        return total

    given.train_step = train_step
    return given


def healthy_regression() -> SimpleNamespace:
    inputs, _ = data()
    torch.manual_seed(0)
    return SimpleNamespace(model=nn.Sequential(nn.Linear(FEATURES, 64), nn.Tanh(), nn.Linear(64, 2)),
                           batch=(inputs, torch.randn(16, 2) * 3 + 7),
                           loss=lambda m, b: functional.mse_loss(m(b[0]), b[1]))  # fmt: skip


def healthy_convolutions() -> SimpleNamespace:
    return convolutional(nn.BatchNorm2d(16))


def healthy_dropout() -> SimpleNamespace:
    return convolutional(nn.GroupNorm(4, 16), nn.Dropout(0.2))


def healthy_label_smoothing() -> SimpleNamespace:
    return classifier(loss=lambda m, b: functional.cross_entropy(m(b[0]), b[1], label_smoothing=0.1))


def healthy_frozen_backbone() -> SimpleNamespace:
    given = classifier(model=perceptron(256))
    for one in given.model[:4].parameters():
        one.requires_grad_(False)
    return given


def healthy_probabilities() -> SimpleNamespace:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        return functional.nll_loss(model(batch[0]).clamp(min=1e-9).log(), batch[1])

    return classifier(model=nn.Sequential(perceptron(), nn.Softmax(-1)), loss=loss)


def healthy_summed_loss() -> SimpleNamespace:
    return classifier(loss=lambda m, b: functional.cross_entropy(m(b[0]), b[1], reduction="sum"))


def healthy_recurrent() -> SimpleNamespace:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = nn.LSTM(FEATURES, 48, 2, batch_first=True), nn.Linear(48, CLASSES)

        def forward(self, inputs: Tensor) -> Tensor:
            return self.head(self.body(inputs)[0][:, -1])  # type: ignore[no-any-return]

    torch.manual_seed(0)
    return SimpleNamespace(model=Recurrent(), batch=(torch.randn(12, 9, FEATURES), torch.arange(12) % CLASSES),
                           loss=class_loss)  # fmt: skip


def healthy_bfloat16() -> SimpleNamespace:
    given = classifier()

    def loss(model: nn.Module, batch: Any) -> Tensor:
        with torch.autocast(batch[0].device.type, dtype=torch.bfloat16):
            return class_loss(model, batch)

    given.loss = loss
    return given


def healthy_contrastive() -> SimpleNamespace:
    class Towers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.left, self.right = nn.Linear(FEATURES, 32), nn.Linear(FEATURES, 32)

        def forward(self, left: Tensor, right: Tensor) -> Tensor:
            one, other = functional.normalize(self.left(left)), functional.normalize(self.right(right))
            return one @ other.T * 14

    torch.manual_seed(0)
    batch = {"left": torch.randn(12, FEATURES), "right": torch.randn(12, FEATURES)}

    def loss(model: nn.Module, batch: Any) -> Tensor:
        pairs = model(batch["left"], batch["right"])
        return functional.cross_entropy(pairs, torch.arange(12, device=pairs.device))

    return SimpleNamespace(model=Towers(), batch=batch, loss=loss)


def values_broadcast() -> SimpleNamespace:
    inputs, _ = data()
    values = torch.randn(16, generator=torch.Generator().manual_seed(2))
    return SimpleNamespace(model=nn.Sequential(nn.Linear(FEATURES, 64), nn.Tanh(), nn.Linear(64, 1)),
                           batch=(inputs, values),
                           loss=lambda model, batch: (model(batch[0]) - batch[1]).square().mean())  # fmt: skip


def healthy_ids_alone() -> SimpleNamespace:
    """The batch is one tensor of token ids, from which the loss takes inputs and labels, as nanoGPT's data are."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(VOCABULARY, 64), nn.Flatten(), nn.Linear(64 * (LENGTH - 1), VOCABULARY))
    return SimpleNamespace(
        model=model, batch=text(), loss=lambda model, ids: functional.cross_entropy(model(ids[:, :-1]), ids[:, -1])
    )


def healthy_next_id_of_ids_alone() -> SimpleNamespace:
    torch.manual_seed(0)
    return SimpleNamespace(model=TinyLM(), batch=text(), loss=sliced_loss)


def causal_mask_missing_for_ids_alone() -> SimpleNamespace:
    torch.manual_seed(0)
    return SimpleNamespace(model=TinyLM(causal=False), batch=text(), loss=sliced_loss)


def sliced_loss(model: nn.Module, ids: Tensor) -> Tensor:
    return functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


BROKEN: dict[str, tuple[str, str]] = {
    "labels_all_masked": ("cannot_learn", "all_labels_masked"),
    "class_labels_all_masked": ("cannot_learn", "all_labels_masked"),
    "labels_masked_with_a_loss_of_zero": ("cannot_learn", "all_labels_masked"),
    "labels_masked_with_an_own_step": ("cannot_learn", "all_labels_masked"),
    "labels_left_in_the_first_place_alone": ("cannot_learn", "all_labels_masked"),
    "loss_mask_of_zeros": ("cannot_learn", "all_labels_masked"),
    "labels_shifted_twice": ("memorised", "label_shift_error"),
    "labels_not_shifted": ("memorised", "label_shift_error"),
    "labels_shuffled": ("memorised", "no_signal"),
    "rows_contradict": ("cannot_learn", "label_noise"),
    "text_rows_contradict": ("cannot_learn", "label_noise"),
    "values_broadcast": ("cannot_learn", "wrong_loss"),
    "values_contradict": ("cannot_learn", "label_noise"),
    "inputs_zeroed": ("cannot_learn", "no_signal"),
    "vocabulary_too_small": ("cannot_learn", "tokenizer_mismatch"),
    "all_frozen": ("cannot_learn", "params_not_training"),
    "body_frozen": ("cannot_learn", "params_not_training"),
    "layers_in_a_list": ("memorised", "params_not_training"),
    "graph_detached": ("cannot_learn", "params_not_training"),
    "body_detached": ("cannot_learn", "params_not_training"),
    "optimizer_of_another_model": ("cannot_learn", "params_not_training"),
    "optimizer_never_steps": ("cannot_learn", "params_not_training"),
    "learning_rate_zero": ("cannot_learn", "lr_too_low"),
    "learning_rate_tiny": ("too_slow", "lr_too_low"),
    "learning_rate_of_adam_with_sgd": ("too_slow", "lr_too_low"),
    "learning_rate_huge": ("cannot_learn", "lr_too_high"),
    "zero_grad_missing": ("memorised", "missing_zero_grad"),
    "zero_grad_missing_with_adam": ("memorised", "missing_zero_grad"),
    "double_softmax": ("cannot_learn", "double_softmax"),
    "model_ends_in_softmax": ("cannot_learn", "double_softmax"),
    "double_sigmoid": ("cannot_learn", "double_softmax"),
    "wrong_sign": ("cannot_learn", "wrong_loss"),
    "step_uphill": ("not_finite", "wrong_loss"),
    "log_of_zero": ("not_finite", "invalid_math"),
    "root_of_zero": ("not_finite", "invalid_math"),
    "zero_by_zero": ("not_finite", "invalid_math"),
    "overflow_in_a_layer": ("not_finite", "invalid_math"),
    "overflow_in_half_precision": ("not_finite", "fp16_overflow"),
    "overflow_under_autocast": ("not_finite", "fp16_overflow"),
    "batch_holds_nan": ("not_finite", "bad_batch"),
    "initial_weights_huge": ("too_slow", "bad_init"),
    "head_weights_huge": ("memorised", "bad_init"),
    "activations_saturated": ("too_slow", "vanishing_gradients"),
    "sigmoids_deep": ("cannot_learn", "vanishing_gradients"),
    "tanhs_deep": ("cannot_learn", "vanishing_gradients"),
    "sigmoids_deeper_and_narrow": ("cannot_learn", "vanishing_gradients"),
    "units_dead": ("cannot_learn", "dead_units"),
    "causal_mask_missing_for_ids_alone": ("memorised", "causal_mask_missing"),
    "causal_mask_missing": ("memorised", "causal_mask_missing"),
    "rows_mixed_by_reshape": ("memorised", "rows_mixed"),
    "softmax_over_the_batch": ("memorised", "rows_mixed"),
    "input_ignored": ("cannot_learn", "no_signal"),
    "batch_norm_keeps_no_statistics": ("memorised", "eval_mode_bug"),
    "batch_norm_never_updates": ("memorised", "eval_mode_bug"),
    "trains_in_evaluation_mode": ("memorised", "eval_mode_bug"),
    "dropout_in_evaluation": ("memorised", "eval_mode_bug"),
}
"""The verdict and the leading cause for each broken pipeline."""

HEALTHY = tuple(sorted(name for name in globals() if name.startswith("healthy_")))
