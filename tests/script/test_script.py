"""A training script is read and never run: a fault that is put into a right loop is found, and the loop is not accused."""

# ruff: noqa: E501 - pieces of scripts stand on one line

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mldebug_mcp import InputError, diagnose_run, inspect_script
from mldebug_mcp.cli import main
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.script.faults import kinds

RIGHT = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(10, 32)
        self.drop = nn.Dropout(0.1)
        self.last = nn.Linear(32, 3)

    def forward(self, x):
        hidden = self.drop(F.relu(self.first(x)))
        return self.last(hidden)


def evaluate(model, loader):
    model.eval()
    right = rows = 0
    with torch.no_grad():
        for x, y in loader:
            out = model(x)
            right += (out.argmax(1) == y).sum().item()
            rows += len(y)
    model.train()
    return right / rows


def main(train_set, val_set, epochs=10):
    train_loader = DataLoader(train_set, 64, shuffle=True)
    val_loader = DataLoader(val_set, 64)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * len(train_loader))
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            total += loss.item()
        print(epoch, total / len(train_loader), evaluate(model, val_loader))
"""
CLIP = "            nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
STEP = "            optimizer.step()\n"
ZERO = "            optimizer.zero_grad()\n"
BACKWARD = "            loss.backward()\n"

FAULTS: dict[str, tuple[str, str, str]] = {
    "zero_grad left out": (ZERO, "", "gradients_never_cleared"),
    "zero_grad once a pass": (f"        total = 0.0\n        for x, y in train_loader:\n{ZERO}", "        total = 0.0\n        optimizer.zero_grad()\n        for x, y in train_loader:\n", "gradients_cleared_outside"),
    "zero_grad after backward": (BACKWARD, BACKWARD + ZERO, "cleared_before_step"),
    "step before backward": (f"{BACKWARD}{CLIP}{STEP}", f"{STEP}{BACKWARD}", "step_before_backward"),
    "no step": (STEP, "", "no_step"),
    "step without parentheses": (STEP, "            optimizer.step\n", "not_called"),
    "clip after step": (f"{CLIP}{STEP}", f"{STEP}{CLIP}", "clip_too_late"),
    "clip far too tight": ("parameters(), 1.0", "parameters(), 0.0001", "clip_far_too_tight"),
    "schedule first": (f"{STEP}            scheduler.step()\n", f"            scheduler.step()\n{STEP}", "schedule_first"),
    "schedule per batch": ("T_max=epochs * len(train_loader)", "T_max=epochs", "schedule_per_batch"),
    "schedule per epoch": ("            scheduler.step()\n            total += loss.item()\n", "            total += loss.item()\n        scheduler.step()\n", "schedule_per_epoch"),
    "schedule never stepped": ("            scheduler.step()\n", "", "schedule_never_stepped"),
    "accumulation not divided": (f"{CLIP}{STEP}            scheduler.step()\n", "            if step % 4 == 3:\n                optimizer.step()\n                optimizer.zero_grad()\n                scheduler.step()\n", "accumulation_not_divided"),
    "softmax before cross-entropy": ("criterion(model(x), y)", "criterion(F.softmax(model(x), dim=-1), y)", "activation_twice"),
    "softmax in the model": ("return self.last(hidden)", "return torch.softmax(self.last(hidden), dim=1)", "activation_twice"),
    "probabilities for the nll": ("criterion(model(x), y)", "F.nll_loss(F.softmax(model(x), dim=-1), y)", "nll_of_probabilities"),
    "loss cut off": (BACKWARD, "            loss = torch.tensor(loss.item(), requires_grad=True)\n" + BACKWARD, "loss_cut_off"),
    "losses kept": ("total += loss.item()", "total += loss", "losses_kept"),
    "never back to training": ("    model.train()\n    return right", "    return right", "never_back_to_training"),
    "no eval": ("    model.eval()\n", "", "evaluates_in_training_mode"),
    "functional dropout": ("self.drop(F.relu(self.first(x)))", "F.dropout(F.relu(self.first(x)), 0.1)", "dropout_always_on"),
    "not shuffled": (", shuffle=True", "", "not_shuffled"),
    "same data": ("DataLoader(val_set, 64)", "DataLoader(train_set, 64)", "same_data"),
    "layers in a list": ("self.first = nn.Linear(10, 32)", "self.first = [nn.Linear(10, 32) for _ in range(3)]", "layers_in_a_list"),
    "layer after the optimizer": ("    criterion = nn", "    model.last = nn.Linear(32, 5)\n    criterion = nn", "made_after_optimizer"),
    "all frozen": ("    optimizer = torch", "    for p in model.parameters():\n        p.requires_grad = False\n    optimizer = torch", "all_frozen"),
    "optimizer made anew": ("            optimizer.zero_grad()\n", "            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)\n            optimizer.zero_grad()\n", "optimizer_made_anew"),
    "mean of means": ("total / len(train_loader)", "total / len(train_loader.dataset)", "mean_of_means"),
    "class along the batch": ("out.argmax(1)", "out.argmax(0)", "argmax_over_batch"),
    "rate far too high": ("lr=1e-3", "lr=0.5", "rate_far_too_high"),
    "a seed in the loop": (ZERO, "            torch.manual_seed(0)\n" + ZERO, "seed_in_loop"),
    "backward under autocast": (BACKWARD, "            with torch.autocast('cuda'):\n                loss.backward()\n", "backward_in_autocast"),
    "a part of the loss is a number": (BACKWARD, "            extra = model(x).norm()\n            loss = loss + extra.item()\n" + BACKWARD, "loss_cut_off"),
    "a mean and a sum": ("loss = criterion(model(x), y)", "loss = F.mse_loss(model(x), y) + torch.sum(model(x).exp())", "reductions_mixed"),
    "a column and a row": ("criterion(model(x), y)", "F.mse_loss(model(x).gather(1, y.unsqueeze(1)), x.max(1)[0])", "shapes_broadcast"),
    "micro-batches not divided": (f"{ZERO}            loss = criterion(model(x), y)\n{BACKWARD}", f"{ZERO}            for part in range(grad_accum):\n                criterion(model(x), y).backward()\n", "accumulation_not_divided"),
    "few steps counted per batch": ("CosineAnnealingLR(optimizer, T_max=epochs * len(train_loader))", "StepLR(optimizer, step_size=3)", "schedule_per_batch"),
    "evaluation mode between passes, set back once": ("    for epoch in range(epochs):\n        model.train()\n", "    model.train()\n    for epoch in range(epochs):\n", "never_back_to_training"),
    "sharded after the optimizer": ("    criterion = nn", "    model = FSDP(model)\n    criterion = nn", "made_after_optimizer"),
    "decay far too high": ("lr=1e-3", "lr=1e-3, weight_decay=10.0", "decay_far_too_high"),
}  # fmt: skip


def written(folder: Path, text: str, name: str = "train.py") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def put_in(kind: str) -> str:
    old, new, _ = FAULTS[kind]
    assert RIGHT.count(old) >= 1, kind
    text = RIGHT.replace(old, new, 1)
    if kind == "accumulation not divided":
        text = text.replace(ZERO, "", 1).replace(
            "for x, y in train_loader", "for step, (x, y) in enumerate(train_loader)"
        )
    if kind == "evaluation mode between passes, set back once":
        text = text.replace("    model.train()\n    return right", "    return right", 1)
    if kind == "a mean and a sum":
        text = text.replace("    criterion = nn.CrossEntropyLoss()\n", "", 1)
    if kind == "never back to training":
        text = text.replace("        model.train()\n", "", 1)
    return text


def test_a_loop_that_is_right_has_no_finding_and_rules_causes_out(tmp_path: Path) -> None:
    report = inspect_script(written(tmp_path, RIGHT))
    assert report.findings == []
    assert {one.cause for one in report.ruled_out} >= {"missing_zero_grad", "double_softmax", "unshuffled_data"}


ACCELERATED = """
def main(model, loader):
    acc = Accelerator(gradient_accumulation_steps=4)
    opt = torch.optim.AdamW(model.parameters())
    model, opt, loader = acc.prepare(model, opt, loader)
    for x, y in loader:
        with acc.accumulate(model):
            loss = nn.functional.cross_entropy(model(x), y)
            acc.backward(loss)
            opt.step()
            opt.zero_grad()
"""
MICRO = """
def main(model, loader, parts):
    opt = torch.optim.AdamW(model.parameters())
    for x, y in loader:
        opt.zero_grad()
        for a, b in zip(x.chunk(parts), y.chunk(parts)):
            (nn.functional.cross_entropy(model(a), b) / parts).backward()
        opt.step()
"""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (RIGHT, "each batch makes a step: no gradients are accumulated"),
        (ACCELERATED, "accelerator.accumulate divides the loss and steps at the last batch of each window"),
        (MICRO, ""),
        (ACCELERATED.replace("with acc.accumulate(model)", "with contexts.no_sync(model)"), ""),
    ],
)
def test_what_is_done_right_of_accumulated_gradients_is_what_stands_there(text: str, says: str, tmp_path: Path) -> None:
    right = inspect_script(written(tmp_path, text)).ruled_out
    assert [one.summary for one in right if one.cause == "grad_accum_scaling"] == [says] * bool(says)


WARMS_UP = """
opt = schedulefree.AdamWScheduleFree(net.parameters(), lr=1e-3, warmup_steps={steps})
for x, y in loader:
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    opt.step()
"""


@pytest.mark.parametrize(("steps", "expected"), [("2000", "absent"), ("args.warmup", "absent"), ("0", "present")])
def test_a_warm_up_within_the_optimizer_is_not_missed_in_the_learning_rate(
    steps: str, expected: str, tmp_path: Path
) -> None:
    script = written(tmp_path, WARMS_UP.format(steps=steps))
    records = [{"step": step, "loss": 3.0 - step / 200, "lr": 1e-3} for step in range(0, 400, 4)]
    states = {finding.symptom: finding.state for finding in diagnose_run(records, script=script).findings}
    assert states["lr_no_warmup"] == expected


@pytest.mark.parametrize("kind", FAULTS)
def test_one_fault_put_in_is_found_and_nothing_else(kind: str, tmp_path: Path) -> None:
    report = inspect_script(written(tmp_path, put_in(kind)))
    sure = [one.rule for one in report.findings if one.certainty != "depends"]
    assert FAULTS[kind][2] in sure
    assert set(sure) <= {FAULTS[kind][2], "clip_too_late"}
    causes = {one.cause for one in report.findings}
    assert causes.isdisjoint({one.cause for one in report.ruled_out})


SOUND = {
    "gradients as None": RIGHT.replace(ZERO, "            for p in model.parameters():\n                p.grad = None\n"),
    "accumulated": RIGHT.replace(ZERO, "").replace("for x, y in train", "for i, (x, y) in enumerate(train").replace("train_loader:\n            loss", "train_loader):\n            loss").replace("criterion(model(x), y)", "criterion(model(x), y) / 4").replace(f"{CLIP}{STEP}            scheduler.step()\n", "            if (i + 1) % 4 == 0 or i + 1 == len(train_loader):\n                optimizer.step()\n                scheduler.step()\n                optimizer.zero_grad()\n"),
    "log-probabilities": RIGHT.replace("criterion(model(x), y)", "F.nll_loss(F.log_softmax(model(x), dim=-1), y)"),
    "losses as numbers": RIGHT.replace("total += loss.item()", "total += loss.detach()"),
    "shuffled by a sampler": RIGHT.replace("shuffle=True", "sampler=torch.utils.data.RandomSampler(train_set)"),
    "a module list": RIGHT.replace("nn.Linear(10, 32)", "nn.ModuleList([nn.Linear(10, 32) for _ in range(3)])"),
    "a new head, then the optimizer": RIGHT.replace("    optimizer = torch", "    for p in model.parameters():\n        p.requires_grad = False\n    model.last = nn.Linear(32, 5)\n    optimizer = torch"),
    "a scaler": RIGHT.replace(BACKWARD, "            scaler.scale(loss).backward()\n            scaler.unscale_(optimizer)\n").replace(STEP, "            scaler.step(optimizer)\n            scaler.update()\n"),
    "divided by a method": RIGHT.replace(f"{ZERO}            loss = criterion(model(x), y)\n{BACKWARD}", f"{ZERO}            for part in range(grad_accum):\n                criterion(model(x), y).div(grad_accum).backward()\n"),
    "a sum that begins anew with each window": RIGHT.replace("            total += loss.item()\n", "            window += loss\n            if full:\n                window = 0\n"),
    "a target that is cut off": RIGHT.replace("criterion(model(x), y)", "-(model(x) * y.detach()).mean()"),
    "a seed of each pass": RIGHT.replace("        model.train()\n        total", "        torch.manual_seed(epoch)\n        model.train()\n        total"),
    "a schedule of another library, called": RIGHT.replace("            scheduler.step()\n", "            scheduler(epoch)\n"),
    "whole data at each step": RIGHT.replace("for x, y in train_loader", "for step in range(epochs)").replace("T_max=epochs * len(train_loader)", "T_max=epochs"),
    "a learning rate that a function of the step scales": RIGHT.replace("lr=1e-3", "lr=1.0").replace("CosineAnnealingLR(optimizer, T_max=epochs * len(train_loader))", "LambdaLR(optimizer, lambda step: 1e-3)"),
    "a penalty of weights": RIGHT.replace("loss = criterion(model(x), y)", "loss = F.cross_entropy(model(x), y) + torch.sum(model.first.weight ** 2)"),
    "probabilities of a model of another file": RIGHT.replace("model = Net()", "model = networks.Critic()").replace("criterion(model(x), y)", "F.binary_cross_entropy(model(x), y)"),
    "rows on both sides": RIGHT.replace("criterion(model(x), y)", "F.mse_loss(model(x).gather(1, y.unsqueeze(1)).squeeze(1), x.max(1)[0])"),
    "once a pass": RIGHT.replace("T_max=epochs * len(train_loader)", "T_max=epochs").replace("            scheduler.step()\n            total += loss.item()\n", "            total += loss.item()\n        scheduler.step()\n"),
}  # fmt: skip


@pytest.mark.parametrize("kind", SOUND)
def test_another_way_to_write_it_right_is_not_accused(kind: str, tmp_path: Path) -> None:
    assert SOUND[kind] != RIGHT
    report = inspect_script(written(tmp_path, SOUND[kind]))
    assert [one for one in report.findings if one.certainty != "depends"] == []


def test_settings_of_a_trainer_that_contradict_each_other_are_found(tmp_path: Path) -> None:
    text = (
        "from transformers import TrainingArguments, Trainer\n"
        "args = TrainingArguments('out', fp16=True, bf16=True, max_steps=100, warmup_steps=500,\n"
        "    load_best_model_at_end=True, eval_strategy='epoch', save_strategy='steps', max_grad_norm=1e-5)\n"
        "Trainer(model, args).train()\n"
    )
    report = inspect_script(written(tmp_path, text))
    assert {one.rule for one in report.findings} == {
        "two_precisions", "warmup_beyond_plan", "best_model_unknown", "clip_far_too_tight"
    }  # fmt: skip
    assert report.notes == ["a trainer of a framework makes the loop: the loop itself was not judged"]


CONFIGURATIONS = {
    "TrainingArguments('out', metric_for_best_model='eval_loss', greater_is_better=True)": "best_is_worst",
    "ModelCheckpoint(monitor='val_acc', mode='min')": "best_is_worst",
    "TrainingArguments('out', lr_scheduler_type='constant', warmup_ratio=0.1)": "warmup_not_used",
    "GRPOConfig(num_generations=8, temperature=0.0)": "greedy_rollouts",
    "DPOConfig(beta=0.0)": "beta_of_zero",
    "DPOConfig(max_length=512, max_prompt_length=1024)": "prompt_takes_all",
    "SFTConfig('out', **given)": "warmup_beyond_plan",
    "TrainingArguments('out', load_best_model_at_end=True, eval_strategy='steps', eval_steps=200, save_steps=500)": "best_model_unknown",
}


@pytest.mark.parametrize("line", CONFIGURATIONS)
def test_arguments_that_contradict_each_other_are_found_at_their_line(line: str, tmp_path: Path) -> None:
    text = f"given = dict(max_steps=100, warmup_steps=STEPS)\nSTEPS = 500\n{line}\n"
    found = inspect_script(written(tmp_path, text)).findings
    assert [one.rule for one in found] == [CONFIGURATIONS[line]]


@pytest.mark.parametrize(
    "line",
    [
        "TrainingArguments('out', metric_for_best_model='eval_loss', greater_is_better=False)",
        "ModelCheckpoint(monitor='val_acc', mode='max')",
        "TrainingArguments('out', lr_scheduler_type='constant_with_warmup', warmup_ratio=0.1)",
        "GRPOConfig(num_generations=8, temperature=1.0)",
        "DPOConfig(max_length=1024, max_prompt_length=512)",
        "SFTConfig('out', **elsewhere)",
    ],
)
def test_arguments_that_agree_are_not_accused(line: str, tmp_path: Path) -> None:
    assert inspect_script(written(tmp_path, line)).findings == []


LIGHTNING = """\
class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(10, 10)
        self.head = nn.Linear(10, 3)

    def training_step(self, batch, index):
        return F.cross_entropy(self.head(self.body(batch[0])), batch[1])

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), 1e-3)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=self.trainer.estimated_stepping_batches)
        return [optimizer], [{"scheduler": schedule, "interval": "step"}]


L.Trainer(max_epochs=3).fit(Model(), loader)
"""


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        (', "interval": "step"', "", "schedule_per_epoch"),
        ("self.parameters()", "self.body.parameters()", "outside_optimizer"),
        ("max_epochs=3", "max_epochs=3, gradient_clip_val=1.0", "manual_optimization"),
    ],
)
def test_a_lightning_module_whose_parts_contradict_each_other_is_found(
    old: str, new: str, rule: str, tmp_path: Path
) -> None:
    manual = "        self.automatic_optimization = False\n" if rule == "manual_optimization" else ""
    text = LIGHTNING.replace("super().__init__()\n", "super().__init__()\n" + manual).replace(old, new)
    assert inspect_script(written(tmp_path, LIGHTNING, "right.py")).findings == []
    found = [one.rule for one in inspect_script(written(tmp_path, text)).findings]
    assert found == (["no_step", rule] if manual else [rule])


KERAS = """\
model = keras.Sequential([layers.Dense(64, activation="relu"), layers.Dense(10{activation})])
model.compile("adam", loss=keras.losses.SparseCategoricalCrossentropy({logits}))
model.fit(x, y)
"""


@pytest.mark.parametrize(
    ("activation", "logits", "rules"),
    [
        (', activation="softmax"', "from_logits=True", ["activation_twice"]),
        (', activation="softmax"', "", []),
        ("", "from_logits=True", []),
        ("", "", ["logits_as_probabilities"]),
    ],
)
def test_a_keras_model_and_its_loss_agree_on_logits(
    activation: str, logits: str, rules: list[str], tmp_path: Path
) -> None:
    text = KERAS.format(activation=activation, logits=logits)
    assert [one.rule for one in inspect_script(written(tmp_path, text)).findings] == rules


@pytest.mark.parametrize(("hand", "rules"), [(" / accumulation", ["divided_twice"]), ("", [])])
def test_a_loss_that_accelerate_divides_as_well_is_found(hand: str, rules: list[str], tmp_path: Path) -> None:
    text = (
        "accelerator = Accelerator(gradient_accumulation_steps=accumulation)\n"
        "for batch in loader:\n"
        "    with accelerator.accumulate(model):\n"
        f"        loss = model(**batch).loss{hand}\n"
        "        accelerator.backward(loss)\n"
        "        optimizer.step()\n"
        "        optimizer.zero_grad()\n"
    )
    assert [one.rule for one in inspect_script(written(tmp_path, text)).findings] == rules


def test_a_second_optimizer_whose_gradients_stay_is_found(tmp_path: Path) -> None:
    text = (
        "critic_optimizer = torch.optim.Adam(critic.parameters())\n"
        "maker_optimizer = torch.optim.Adam(maker.parameters())\n"
        "for real in loader:\n"
        "    critic.zero_grad()\n"
        "    (critic(maker(noise).detach()).mean() - critic(real).mean()).backward()\n"
        "    critic_optimizer.step()\n"
        "    {clear}\n"
        "    (-critic(maker(noise)).mean()).backward()\n"
        "    maker_optimizer.step()\n"
    )
    wrong = inspect_script(written(tmp_path, text.format(clear="pass"))).findings
    right = inspect_script(written(tmp_path, text.format(clear="maker.zero_grad()"), "right.py")).findings
    assert ([one.rule for one in wrong], right) == (["one_optimizer_not_cleared"], [])


def test_an_optimizer_that_never_steps_is_found_beside_a_schedule_and_a_simulator_that_do(tmp_path: Path) -> None:
    text = RIGHT.replace(STEP, "            simulator.step(action)\n").replace(CLIP, "")
    assert [one.rule for one in inspect_script(written(tmp_path, text)).findings] == ["no_step"]


def test_steps_without_gradients_are_found(tmp_path: Path) -> None:
    text = RIGHT.replace(BACKWARD, "").replace(CLIP, "")
    assert [one.rule for one in inspect_script(written(tmp_path, text)).findings] == ["no_backward"]


@pytest.mark.parametrize("gradient", ["parameter.grad = estimate(parameter, y)", "parameter.grad.copy_(y)"])
def test_steps_with_gradients_that_the_script_writes_itself_are_not_accused(gradient: str, tmp_path: Path) -> None:
    by_hand = f"            for parameter in model.parameters():\n                {gradient}\n"
    text = RIGHT.replace(BACKWARD, by_hand).replace(CLIP, "")
    assert by_hand in text
    assert "no_backward" not in [one.rule for one in inspect_script(written(tmp_path, text)).findings]


def test_steps_whose_gradients_are_set_to_none_alone_are_found(tmp_path: Path) -> None:
    cleared = "            for parameter in model.parameters():\n                parameter.grad = None\n"
    text = RIGHT.replace(BACKWARD, cleared).replace(CLIP, "")
    assert "no_backward" in [one.rule for one in inspect_script(written(tmp_path, text)).findings]


def test_a_schedule_that_a_function_is_given_and_does_not_step_is_found(tmp_path: Path) -> None:
    text = (
        "def train(loader, optimizer, scheduler):\n"
        "    for x, y in loader:\n"
        "        optimizer.zero_grad()\n"
        "        loss(model(x), y).backward()\n"
        "        optimizer.step()\n"
        "{step}"
        "rows = DataLoader(data, {shuffle})\n"
        "optimizer = torch.optim.AdamW(model.parameters())\n"
        "plan = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=len(rows))\n"
        "train(rows, optimizer, plan)\n"
    )
    wrong = inspect_script(written(tmp_path, text.format(step="", shuffle="shuffle=False"))).findings
    right = text.format(step="        scheduler.step()\n", shuffle="shuffle=True")
    assert [one.rule for one in wrong] == ["not_shuffled", "schedule_never_stepped"]
    assert inspect_script(written(tmp_path, right, "right.py")).findings == []


def test_clipping_of_scaled_gradients_is_found_where_micro_batches_add_them(tmp_path: Path) -> None:
    text = RIGHT.replace(
        BACKWARD, "            for part in range(accum):\n                scaler.scale(loss / accum).backward()\n"
    ).replace(STEP, "            scaler.step(optimizer)\n            scaler.update()\n")
    assert [one.rule for one in inspect_script(written(tmp_path, text)).findings] == ["clip_scaled"]
    right = text.replace(CLIP, "            scaler.unscale_(optimizer)\n" + CLIP)
    assert inspect_script(written(tmp_path, right, "right.py")).findings == []


@pytest.mark.parametrize("test", ["step % 4 != 3", "step % every", "(step + 1) % 4 != 0"])
def test_accumulation_that_goes_on_to_the_next_batch_is_found(test: str, tmp_path: Path) -> None:
    text = (
        "for step, (x, y) in enumerate(loader):\n"
        "    loss = criterion(model(x), y){by}\n"
        "    loss.backward()\n"
        f"    if {test}:\n"
        "        continue\n"
        "    optimizer.step()\n"
        "    optimizer.zero_grad()\n"
    )
    wrong = inspect_script(written(tmp_path, text.format(by=""))).findings
    right = inspect_script(written(tmp_path, text.format(by=" / 4"), "right.py")).findings
    assert [one.rule for one in wrong if one.certainty != "depends"] == ["accumulation_not_divided"]
    assert [one for one in right if one.certainty != "depends"] == []


def test_labels_that_a_collator_shifts_for_a_model_that_shifts_them_are_found(tmp_path: Path) -> None:
    text = (
        "def collate(rows):\n"
        "    labels = pad_sequence([row[1:] for row in rows])\n"
        "    return dict(input_ids=pad_sequence([row[:-1] for row in rows]), labels=labels)\n"
        "Trainer({model}.from_pretrained('gpt2'), args, data_collator=collate).train()\n"
    )
    shifts = inspect_script(written(tmp_path, text.format(model="AutoModelForCausalLM"))).findings
    does_not = inspect_script(written(tmp_path, text.format(model="OwnModel"), "own.py")).findings
    assert ([one.rule for one in shifts], does_not) == (["shifted_twice"], [])


@pytest.mark.parametrize(
    ("inputs", "labels", "found"),
    [
        ("x[i, :n] = torch.tensor(row)", "y[i, :n - 1] = torch.tensor(row[1:])", True),
        ("x[i, :n - 1] = torch.tensor(row[:-1])", "y[i, k - 1:n - 1] = torch.tensor(row[k:])", True),
        ("x[i, :n] = torch.tensor(row)", "y[i, k:n] = torch.tensor(row[k:])", False),
        ("x[i, :n - 1] = torch.tensor(row[:-1])", "y[i, k:n - 1] = torch.tensor(row[k:-1])", False),
    ],
)
def test_labels_that_are_filled_one_place_early_for_a_model_that_shifts_them_are_found(
    inputs: str, labels: str, found: bool, tmp_path: Path
) -> None:
    text = (
        "def collate(rows):\n"
        "    n, k = max(map(len, rows)), 4\n"
        "    x, y = torch.zeros(len(rows), n).long(), torch.full((len(rows), n), -100)\n"
        "    for i, row in enumerate(rows):\n"
        f"        {inputs}\n"
        f"        {labels}\n"
        "    return {'input_ids': x, 'labels': y}\n"
        "Trainer(AutoModelForCausalLM.from_pretrained('gpt2'), args, data_collator=collate).train()\n"
    )
    rules = [finding.rule for finding in inspect_script(written(tmp_path, text)).findings]
    assert rules == ["shifted_twice"] * found


def test_a_model_evaluated_in_training_mode_beside_a_teacher_is_found(tmp_path: Path) -> None:
    text = (
        "class Distiller:\n"
        "    def train(self):\n"
        "        self.teacher.eval()\n"
        "        self.student.train()\n"
        "        for x, y in self.loader:\n"
        "            self.optimizer.zero_grad()\n"
        "            loss(self.student(x), self.teacher(x)).backward()\n"
        "            self.optimizer.step()\n"
        "    def test(self):\n"
        "        with torch.no_grad():\n"
        "            for x, y in self.held_out:\n"
        "                right += (self.student(x).argmax(1) == y).sum()\n"
    )
    assert [one.rule for one in inspect_script(written(tmp_path, text)).findings] == ["evaluates_in_training_mode"]
    right = text.replace("        with torch", "        self.student.eval()\n        with torch")
    assert inspect_script(written(tmp_path, right, "right.py")).findings == []


def test_a_model_without_units_of_two_modes_is_not_accused_of_its_mode(tmp_path: Path) -> None:
    text = (
        RIGHT.replace("    model.eval()\n", "")
        .replace("        self.drop = nn.Dropout(0.1)\n", "")
        .replace("self.drop(F.relu(self.first(x)))", "F.relu(self.first(x))")
    )
    assert inspect_script(written(tmp_path, text)).findings == []


def test_a_piece_of_a_training_loop_is_not_accused_of_what_stands_elsewhere(tmp_path: Path) -> None:
    text = (
        "class Scaler:\n    def __call__(self, loss, optimizer):\n        loss.backward()\n        optimizer.step()\n"
    )
    assert inspect_script(written(tmp_path, text)).findings == []


def test_labels_that_a_model_shifts_again_are_found(tmp_path: Path) -> None:
    text = RIGHT.replace("criterion(model(x), y)", "model(input_ids=x[:, :-1], labels=x[:, 1:]).loss")
    assert [one.rule for one in inspect_script(written(tmp_path, text)).findings] == ["shifted_twice"]


def test_json_is_asked_for_as_of_every_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["script", str(written(tmp_path, RIGHT)), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == 1


@pytest.mark.parametrize(("before", "certainty"), [
    ("    for epoch in range(epochs):\n", "certain"), ("        total = 0.0\n", "likely"),
])  # fmt: skip
def test_losses_that_each_epoch_lists_anew_are_kept_for_an_epoch_alone(
    before: str, certainty: str, tmp_path: Path
) -> None:
    indent = before[: len(before) - len(before.lstrip())]
    text = RIGHT.replace(before, f"{indent}kept = []\n{before}", 1)
    text = text.replace(
        "            total += loss.item()\n", "            total += loss.item()\n            kept.append(loss)\n"
    )
    report = inspect_script(written(tmp_path, text))
    assert [(one.rule, one.certainty) for one in report.findings] == [("losses_kept", certainty)]


def test_every_rule_names_a_cause_of_the_playbook() -> None:
    assert {cause for cause, _, _ in kinds().values()} <= set(catalogue().causes)


def test_a_folder_is_read_whole_and_what_is_no_python_is_a_note(tmp_path: Path) -> None:
    written(tmp_path, RIGHT, "right.py")
    written(tmp_path, put_in("losses kept"), "wrong.py")
    written(tmp_path, "def broken(:\n", "broken.py")
    report = inspect_script(tmp_path)
    assert report.files == 2
    assert [(Path(one.file).name, one.rule) for one in report.findings] == [("wrong.py", "losses_kept")]
    assert report.notes[0].startswith("broken.py, line 1: no Python")


@pytest.mark.parametrize("text", ["def broken(:\n", "x = '\0'\n", "(" * 5000])
def test_a_file_that_is_no_script_is_an_error_of_one_line(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="name a training script"):
        inspect_script(written(tmp_path, text))


def test_what_a_script_does_counts_in_the_diagnosis_of_its_run(tmp_path: Path) -> None:
    run = Path(__file__).parents[2] / "examples" / "divergence"
    wrong, right = written(tmp_path, put_in("zero_grad left out"), "wrong.py"), written(tmp_path, RIGHT)
    answers = {name: diagnose_run(run, script=file) for name, file in (("", None), ("wrong", wrong), ("right", right))}
    shares = {
        name: {one.cause: one.probability for one in answer.hypotheses}["missing_zero_grad"]
        for name, answer in answers.items()
    }
    assert shares["wrong"] > 20 * shares[""]
    assert shares["right"] < shares[""]
    named = next(one for one in answers["wrong"].hypotheses if one.cause == "missing_zero_grad")
    assert any(reason.fact.startswith("script, line") for reason in named.reasons)


def test_a_run_with_a_fault_of_code_asks_for_its_script_until_that_is_given(tmp_path: Path) -> None:
    records = [{"step": step, "loss": 2.302585, "eval_loss": 2.302585, "grad_norm": 0.8} for step in range(1, 201)]
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    asked = diagnose_run(log)
    assert asked.hypotheses[0].cause == "params_not_training"
    assert 'inspect_script(path="TRAIN.py")' in [step.call for step in asked.next_steps]
    answered = diagnose_run(log, script=written(tmp_path, RIGHT))
    assert not any((step.call or "").startswith("inspect_script") for step in answered.next_steps)


def test_a_fix_that_begins_with_code_runs_as_it_is_written(tmp_path: Path) -> None:
    layers = RIGHT.replace("self.last = nn.Linear(32, 3)", "self.last = [nn.Linear(32, 3)]")
    hidden = layers.replace("return self.last(hidden)", "return self.last[0](hidden)")
    assert inspect_script(written(tmp_path, hidden)).at_a_glance.fix == "nn.ModuleList or nn.ModuleDict."


def test_the_command_prints_text_and_annotations_and_sarif(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(written(tmp_path, put_in("losses kept")))
    assert main(["script", file]) == 0
    assert f"{file}:48: certain:" in capsys.readouterr().out
    assert main(["script", file, "--check", "--format", "github"]) == 1
    assert capsys.readouterr().out.startswith("::error file=")
    assert main(["script", file, "--format", "sarif"]) == 0
    result = json.loads(capsys.readouterr().out)["runs"][0]["results"][0]
    assert result["ruleId"] == "losses_kept"
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 48
    assert main(["script", str(written(tmp_path, RIGHT, "right.py")), "--check"]) == 0
    assert "Nothing wrong found" in capsys.readouterr().out


def test_sarif_has_what_code_scanning_requires(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "my runs"
    folder.mkdir()
    written(folder, put_in("losses kept"), "train it.py")
    assert main(["script", "my runs", "--format", "sarif"]) == 0
    report = json.loads(capsys.readouterr().out)
    run = report["runs"][0]
    assert report["version"] == "2.1.0"
    assert run["tool"]["driver"]["name"]
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(ids) == len(set(ids))
    for result in run["results"]:
        assert result["ruleId"] in ids
        assert result["message"]["text"]
        location = result["locations"][0]["physicalLocation"]
        assert location["artifactLocation"]["uri"] == "my%20runs/train%20it.py"
        assert location["region"]["startLine"] >= 1


def test_a_notebook_is_refused_and_not_taken_for_python(tmp_path: Path) -> None:
    file = written(tmp_path, '{"cells": [], "metadata": {}, "nbformat": 4}', "train.ipynb")
    with pytest.raises(InputError, match="nbconvert"):
        inspect_script(file)


def test_an_error_names_its_file_once(tmp_path: Path) -> None:
    file = written(tmp_path, "print 'old'\n", "old.py")
    with pytest.raises(InputError) as caught:
        inspect_script(file)
    assert str(caught.value).count("old.py") == 1


def test_a_script_that_is_nested_too_deeply_gets_a_note(tmp_path: Path) -> None:
    report = inspect_script(written(tmp_path, "x = " + " + ".join(["y"] * 900) + "\n"))
    assert report.findings == []
    assert any("nested too deeply" in note for note in report.notes)


def test_a_folder_in_which_a_file_cannot_be_read_is_not_called_clean(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("def f(:\n")
    (tmp_path / "util.py").write_text("x = 1\n")
    for name in "abcdefgh":
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    report = inspect_script(tmp_path)
    assert report.at_a_glance.kind == "unclear"
    assert "1 other file could not be read" in report.at_a_glance.headline
    assert report.unread == 1
    assert [note for note in report.notes if "__init__" in note] == []
    assert any("train.py" in note and "no Python" in note for note in report.notes)


def test_one_path_that_cannot_be_read_leaves_the_findings_of_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, broken, empty = written(tmp_path, put_in("zero_grad left out")), tmp_path / "b.py", tmp_path / "__init__.py"
    broken.write_text("def f(:\n")
    empty.write_text("")
    assert main(["script", str(good), str(empty), "--check"]) == 1
    capsys.readouterr()
    assert main(["script", str(good), str(broken), "--format", "github"]) == 2
    shown = capsys.readouterr()
    assert "::error file=" in shown.out
    assert "b.py, line 1: no Python" in shown.err
    assert main(["script", str(good), str(empty), "--format", "json"]) == 0
    assert [report["files"] for report in json.loads(capsys.readouterr().out)] == [1, 1]


@pytest.mark.parametrize("encoded", [b"\xef\xbb\xbf%s", b"# -*- coding: latin-1 -*-\n# caf\xe9\n%s"])
def test_a_script_is_decoded_as_python_does(encoded: bytes, tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_bytes(encoded % put_in("zero_grad left out").encode())
    assert [found.cause for found in inspect_script(file).findings] == ["missing_zero_grad"]


def test_of_several_files_each_line_has_its_file(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("x = 1\n")
    written(tmp_path, put_in("zero_grad left out"))
    assert re.search(r"\(2 files\), \w+\.py:\d+: ", inspect_script(tmp_path).at_a_glance.headline)
