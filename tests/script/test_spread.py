"""Faults spread over registries, mixins, data classes and stores are found, and their healthy neighbours are not accused."""

# ruff: noqa: E501 - a case stands on one line

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from mldebug_mcp.script.trace.follower import trace_of
from tests.script.test_kinds import rules_of

REGISTRY = """
from dataclasses import dataclass
PARTS = {"head": {}, "loss": {}}
def register(kind, name):
    def keep(made):
        PARTS[kind][name] = made
        return made
    return keep
@dataclass
class Settings:
    head: str = "votes"
    loss: str = "ce"
@register("head", "votes")
class Votes(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.out = nn.Linear(width, 3)
    def forward(self, z):
        return self.out(z)ENDS
@register("loss", "ce")
def smooth():
    return nn.CrossEntropyLoss(label_smoothing=0.1)
class Net(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.body = nn.Linear(8, 16)
        self.head = PARTS["head"][settings.head](16)
    def forward(self, x):
        return self.head(torch.relu(self.body(x)))
class Run:
    def __init__(self, settings):
        self.net = Net(settings)
        self.compare = PARTS["loss"][settings.loss]()
        self.opt = torch.optim.Adam(self.net.parameters(), 1e-3)
    def go(self, loader):
        for x, y in loader:
            self.opt.zero_grad()
            self.compare(self.net(x), y).backward()
            self.opt.step()
Run(Settings()).go(loader)
"""
MIXINS = """
class Half:
    def prepare(self):
        self.scaler = torch.amp.GradScaler("cuda")
    def back(self, loss):
        self.scaler.scale(loss).backward()
    def update(self):
        self.scaler.unscale_(self.opt)
        ATUPDATE
        self.scaler.step(self.opt)
        self.scaler.update()
class Limits:
    def limit(self):
        nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
class Trainer(Half, Limits):
    def __init__(self):
        self.net = nn.Linear(8, 3)
        self.opt = torch.optim.SGD(self.net.parameters(), 0.1)
        self.prepare()
    def fit(self, loader):
        for x, y in loader:
            self.opt.zero_grad()
            self.back(F.cross_entropy(self.net(x), y))
            ATFIT
            self.update()
Trainer().fit(loader)
"""
ARGUMENTS = """
from dataclasses import asdict, dataclass, field
from transformers import Trainer, TrainingArguments
SMALLER = {"loss", "wer"ALSO}
@dataclass
class Choice:
    metric: str = "rmse"
    def settings(self):
        return {"metric_for_best_model": self.metric, "greater_is_better": self.metric not in SMALLER}
@dataclass
class Pace:
    eval_strategy: str = "steps"
    save_strategy: str = "steps"
@dataclass
class Plan:
    choice: Choice = field(default_factory=Choice)
    pace: Pace = field(default_factory=Pace)
    def arguments(self):
        return TrainingArguments(
            output_dir="out", load_best_model_at_end=True, **asdict(self.pace), **self.choice.settings()
        )
Trainer(model=model, args=Plan().arguments(), train_dataset=rows, eval_dataset=held).train()
"""
RESUMED = """
class Fit:
    def __init__(self):
        self.net = nn.Linear(8, 3)
    def build(self):
        self.opt = torch.optim.AdamW(self.net.parameters(), 1e-3)
    def resume(self):
        blob = torch.load("last.pt")
        self.build()
        self.net.load_state_dict(blob["net"])
        self.opt.load_state_dict(blob["opt"])
        return self
    def run(self, loader):
        BUILD
        for x, y in loader:
            self.opt.zero_grad()
            F.cross_entropy(self.net(x), y).backward()
            self.opt.step()
Fit().resume().run(loader)
"""
AVERAGE = """
class Average:
    def __init__(self, net):
        self.net = copy.deepcopy(net).eval().requires_grad_(False)
    def follow(self, source):
        live = dict(source.named_parameters())
        for name, mean in self.net.named_parameters():
            UPDATE
net = nn.Linear(8, 3)
opt, average = torch.optim.AdamW(net.parameters(), 1e-3), Average(net)
for x, y in loader:
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    opt.step()
    average.follow(net)
torch.save(average.net.state_dict(), "mean.pt")
"""
PARTS = """
def terms(net, x):
    mean, spread = net(x).chunk(2, -1)
    fit, divergence = (mean - x).pow(2).mean(), (mean.pow(2) + spread.exp() - spread - 1).mean()
    return fit, divergence, {"fit": fit.item(), "divergence": divergence.item()}
net = nn.Linear(8, 16)
opt = torch.optim.Adam(net.parameters(), 1e-3)
for x, _ in loader:
    fit, divergence, shown = terms(net, x)
    loss = fit + 0.1 * ADDED
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(shown["fit"] + shown["divergence"])
"""
MARGIN = """
class Margin(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(classes, width))
        nn.init.xavier_uniform_(self.weight)
    def forward(self, z, y):
        return F.cross_entropy(F.linear(F.normalize(z), F.normalize(self.weight)), y)
net, margin = nn.Linear(8, 4), Margin(4, 3)
opt = torch.optim.SGD(GIVEN, 0.1)
for x, y in loader:
    opt.zero_grad()
    margin.zero_grad()
    margin(net(x), y).backward()
    opt.step()
"""
NAMED_LATER = """
import sys
FIRST, SECOND = sys.argv[1:3]
nets = {FIRST: nn.Linear(8, 4), SECOND: nn.Linear(4, 3)}
opt = torch.optim.Adam([p for net in KEPT for p in net.parameters()], 1e-3)
for x, y in loader:
    opt.zero_grad()
    F.cross_entropy(nets[SECOND](nets[FIRST](x)), y).backward()
    opt.step()
"""
CASES = {
    "a head of a registry that ends in a softmax": (REGISTRY, {"ENDS": ".softmax(-1)"}, ["activation_twice"]),
    "a head of a registry that gives logits": (REGISTRY, {"ENDS": ""}, []),
    "clipped by one base class before another unscales": (MIXINS, {"ATFIT": "self.limit()", "ATUPDATE": "pass"}, ["clip_scaled"]),
    "clipped after it is unscaled": (MIXINS, {"ATFIT": "pass", "ATUPDATE": "self.limit()"}, []),
    "a direction that a set decides": (ARGUMENTS, {"ALSO": ""}, ["best_is_worst"]),
    "a direction that a set decides rightly": (ARGUMENTS, {"ALSO": ', "rmse"'}, []),
    "an optimizer made anew after its state is loaded": (RESUMED, {"BUILD": "self.build()"}, ["made_anew_after_loading"]),
    "an optimizer that keeps the state it loaded": (RESUMED, {"BUILD": "self.net.train()"}, []),
    "an average that gives its names other values": (AVERAGE, {"UPDATE": "mean = 0.99 * mean + 0.01 * live[name]"}, ["parameter_renamed"]),
    "an average that changes its tensors": (AVERAGE, {"UPDATE": "mean.lerp_(live[name].detach(), 0.01)"}, []),
    "a part of the loss taken from what is shown": (PARTS, {"ADDED": 'shown["divergence"]'}, ["loss_cut_off"]),
    "numbers that are shown alone": (PARTS, {"ADDED": "divergence"}, []),
    "weights of a loss that no optimizer has": (MARGIN, {"GIVEN": "net.parameters()"}, ["outside_optimizer"]),
    "weights of a loss that the optimizer has": (MARGIN, {"GIVEN": "[*net.parameters(), *margin.parameters()]"}, []),
    "networks whose names the command line gives": (NAMED_LATER, {"KEPT": "nets.values()"}, []),
}  # fmt: skip


def test_a_mapping_keeps_all_values_whose_keys_are_not_known() -> None:
    text = NAMED_LATER.replace("KEPT", "nets.values()")
    trace = trace_of(ast.parse(f"import torch\nimport torch.nn.functional as F\nfrom torch import nn\n{text}"))
    (optimizer,) = (made for made in trace.objects if made.kind == "optimizer")
    assert len(optimizer.holds) == 2


@pytest.mark.parametrize("kind", CASES)
def test_a_value_is_followed_to_where_it_is_used(kind: str, tmp_path: Path) -> None:
    text, filled, rules = CASES[kind]
    for word, code in filled.items():
        text = text.replace(word, code)
    assert rules_of(tmp_path, text) == rules
