"""A training script is read and never run: a fault that is put into a right loop is found, and the loop is not accused."""

# ruff: noqa: E501 - pieces of scripts stand on one line

from __future__ import annotations

import json
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
    if kind == "never back to training":
        text = text.replace("        model.train()\n", "", 1)
    return text


def test_a_loop_that_is_right_has_no_finding_and_rules_causes_out(tmp_path: Path) -> None:
    report = inspect_script(written(tmp_path, RIGHT))
    assert report.findings == []
    assert {one.cause for one in report.ruled_out} >= {"missing_zero_grad", "double_softmax", "unshuffled_data"}


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
    assert report.notes == ["a trainer of a framework makes the loop: of the loop itself nothing is said"]


def test_labels_that_a_model_shifts_again_are_found(tmp_path: Path) -> None:
    text = RIGHT.replace("criterion(model(x), y)", "model(input_ids=x[:, :-1], labels=x[:, 1:]).loss")
    assert [one.rule for one in inspect_script(written(tmp_path, text)).findings] == ["shifted_twice"]


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
    assert "nothing wrong found" in capsys.readouterr().out
