"""Faults are found in the plain style, behind helpers and in classes; each has a healthy twin that is not accused."""

# ruff: noqa: E501 - a case is short, and written as people write

from __future__ import annotations

from pathlib import Path

import pytest

from mldebug_mcp import inspect_script

HEAD = """\
import torch, math, copy, random, json, yaml
import numpy as np
import pandas as pd
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, Dataset, Subset, random_split
"""

CASES: dict[str, tuple[str, str, str]] = {
    "an updater that clears between backward and step": (
        """
class Updater:
    def __init__(self, params, lr):
        self.opt = torch.optim.AdamW(params, lr=lr)
    def apply(self, loss):
@@

def main():
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    up = Updater(net.parameters(), 1e-3)
    dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)
    for ep in range(3):
        for x, y in dl:
            up.apply(F.cross_entropy(net(x), y))
main()
""",
        "        loss.backward()\n        self.opt.zero_grad()\n        self.opt.step()",
        "        self.opt.zero_grad()\n        loss.backward()\n        self.opt.step()",
    ),
    "a helper that clips after the step": (
        """
def clip(model, limit=1.0):
    nn.utils.clip_grad_norm_(model.parameters(), limit)

def update(model, opt, loss):
    opt.zero_grad(set_to_none=True)
@@

def fit(model, loader, epochs):
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(epochs):
        for x, y in loader:
            update(model, opt, F.mse_loss(model(x).squeeze(-1), y))

loader = DataLoader(TensorDataset(torch.randn(64, 8), torch.randn(64)), 8, shuffle=True)
fit(nn.Linear(8, 1), loader, 3)
""",
        "    loss.backward()\n    opt.step()\n    clip(model)",
        "    loss.backward()\n    clip(model)\n    opt.step()",
    ),
    "an order of hooks by name": (
        """
class Hooks:
    def before(self, t): t.opt.zero_grad()
    def backward(self, t, loss): loss.backward()
    def after(self, t): t.opt.step()

ORDER = @@

class Trainer:
    def __init__(self, net, dl):
        self.net, self.dl, self.hooks = net, dl, Hooks()
        self.opt = torch.optim.Adam(net.parameters())
    def run(self):
        for e in range(4):
            for x, y in self.dl:
                loss = F.cross_entropy(self.net(x), y)
                for name in ORDER:
                    if name == "backward":
                        self.hooks.backward(self, loss)
                    else:
                        getattr(self.hooks, name)(self)

dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)
Trainer(nn.Linear(8, 2), dl).run()
""",
        '("backward", "before", "after")',
        '("before", "backward", "after")',
    ),
    "a schedule of epochs that a function steps at every batch": (
        """
def make(net, cfg, dl):
    opt = torch.optim.AdamW(net.parameters(), lr=cfg["lr"])
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=@@)
    return opt, sched

def epoch(net, dl, opt, sched):
    net.train()
    for x, y in dl:
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
        sched.step()

def main():
    cfg = {"lr": 1e-3, "epochs": 30}
    dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)
    net = nn.Linear(8, 2)
    opt, sched = make(net, cfg, dl)
    for _ in range(cfg["epochs"]):
        epoch(net, dl, opt, sched)
main()
""",
        'cfg["epochs"]',
        'cfg["epochs"] * len(dl)',
    ),
    "a schedule class of batches that is stepped once a pass": (
        """
class Schedule:
    def __init__(self, opt, warmup, total):
        def factor(k):
            if k < warmup:
                return (k + 1) / warmup
            return 0.5 * (1 + math.cos(math.pi * (k - warmup) / max(1, total - warmup)))
        self.inner = torch.optim.lr_scheduler.LambdaLR(opt, factor)
    def tick(self):
        self.inner.step()

class Job:
    epochs: int = 20
    def __init__(self):
        self.net = nn.Linear(8, 2)
        self.dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)
        self.opt = torch.optim.Adam(self.net.parameters())
        total = len(self.dl) * self.epochs
        self.sched = Schedule(self.opt, total // 20, total)
    def run(self):
        for ep in range(self.epochs):
            for x, y in self.dl:
                self.opt.zero_grad()
                F.cross_entropy(self.net(x), y).backward()
                self.opt.step()
@@
Job().run()
""",
        "            self.sched.tick()",
        "                self.sched.tick()",
    ),
    "a warm-up in epochs inside of a sequence of schedules": (
        """
import argparse
p = argparse.ArgumentParser()
p.add_argument("--num-epochs", type=int, default=25)
p.add_argument("--lr", type=float, default=3e-4)
args = p.parse_args()
dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)
net = nn.Linear(8, 2)
opt = torch.optim.AdamW(net.parameters(), lr=args.lr)
warm = torch.optim.lr_scheduler.LinearLR(opt, 0.1, total_iters=@@)
cos = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=args.num_epochs * len(dl) - len(dl))
sched = torch.optim.lr_scheduler.SequentialLR(opt, [warm, cos], milestones=[len(dl)])
for ep in range(args.num_epochs):
    for x, y in dl:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
        sched.step()
""",
        "args.num_epochs // 10",
        "len(dl)",
    ),
    "a schedule of steps that Lightning moves once a pass": (
        """
import lightning as L
class Lit(L.LightningModule):
    def __init__(self, lr=1e-3, epochs=30):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Linear(8, 2)
    def training_step(self, batch, idx):
        x, y = batch
        return F.cross_entropy(self.net(x), y)
    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        sch = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=self.hparams.lr, total_steps=self.trainer.estimated_stepping_batches)
        return @@
""",
        "[opt], [sch]",
        '[opt], [{"scheduler": sch, "interval": "step"}]',
    ),
    "a total of passes for a schedule of steps": (
        """
from transformers import get_cosine_schedule_with_warmup
class Engine:
    def __init__(self, model, loader, conf):
        self.model, self.loader, self.conf = model, loader, conf
        self.optim = torch.optim.AdamW(model.parameters(), lr=conf.lr)
        n = @@
        self.lr = get_cosine_schedule_with_warmup(self.optim, num_warmup_steps=int(0.06 * n), num_training_steps=n)
    def one_pass(self):
        for batch in self.loader:
            loss = self.model(**batch).loss
            loss.backward()
            self.optim.step()
            self.lr.step()
            self.optim.zero_grad()
    def fit(self):
        for _ in range(self.conf.num_epochs):
            self.one_pass()
""",
        "self.conf.num_epochs",
        "self.conf.num_epochs * len(loader)",
    ),
    "an accumulator that does not divide": (
        """
class Accumulator:
    def __init__(self, opt, n):
        self.opt, self.n, self.i = opt, n, 0
    def add(self, loss):
        @@.backward()
        self.i += 1
        if self.i % self.n == 0:
            self.opt.step()
            self.opt.zero_grad()

net = nn.Linear(8, 2)
dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)
acc = Accumulator(torch.optim.Adam(net.parameters()), 4)
for ep in range(5):
    for x, y in dl:
        acc.add(F.cross_entropy(net(x), y))
""",
        "loss",
        "(loss / self.n)",
    ),
    "a micro-batch of a helper that is not divided": (
        """
ACCUM = 8
def micro(model, batch):
    x, y = batch
    loss = F.cross_entropy(model(x), y)
    @@
    return loss.item()
def train(model, dl, opt):
    opt.zero_grad()
    for k, batch in enumerate(dl, 1):
        micro(model, batch)
        if k % ACCUM == 0 or k == len(dl):
            opt.step()
            opt.zero_grad()
model = nn.Linear(8, 2)
dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)
opt = torch.optim.Adam(model.parameters())
for e in range(3):
    train(model, dl, opt)
""",
        "loss.backward()",
        "(loss / ACCUM).backward()",
    ),
    "a context manager that leaves evaluation on": (
        """
from contextlib import contextmanager
@contextmanager
def evaluating(net):
    net.eval()
    try:
        with torch.no_grad():
            yield net
    finally:
        @@
def score(net, dl):
    with evaluating(net) as m:
        return sum((m(x).argmax(1) == y).sum().item() for x, y in dl)
net = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.5), nn.Linear(16, 2))
net.train()
tr = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)
va = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8)
opt = torch.optim.Adam(net.parameters())
for e in range(10):
    for x, y in tr:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
    print(score(net, va))
""",
        "pass",
        "net.train()",
    ),
    "a head chosen by a configuration": (
        """
HEADS = {"linear": lambda d, k: nn.Linear(d, k),
         "probs": lambda d, k: nn.Sequential(nn.Linear(d, k), nn.Softmax(-1))}
cfg = dict(head=@@, dim=32, classes=4)
class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(8, c["dim"]), nn.GELU())
        self.head = HEADS[c["head"]](c["dim"], c["classes"])
    def forward(self, x): return self.head(self.enc(x))
class Objective:
    def __init__(self): self.fn = nn.CrossEntropyLoss(label_smoothing=0.1)
    def __call__(self, model, batch):
        x, y = batch
        return self.fn(model(x), y)
m, obj = Model(cfg), Objective()
opt = torch.optim.Adam(m.parameters())
for b in DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 4, (64,))), 8, shuffle=True):
    opt.zero_grad(); obj(m, b).backward(); opt.step()
""",
        '"probs"',
        '"linear"',
    ),
    "an activation chosen by a kind": (
        """
def activate(kind, z):
    if kind == "multi":
        return torch.sigmoid(z)
    return z
class Tagger(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.lin = nn.Linear(8, 5)
    def forward(self, x):
        return activate(self.kind, self.lin(x))
net = Tagger(@@)
crit = nn.BCEWithLogitsLoss()
opt = torch.optim.Adam(net.parameters())
for x, y in DataLoader(TensorDataset(torch.randn(64, 8), torch.rand(64, 5).round()), 8, shuffle=True):
    opt.zero_grad(); crit(net(x), y).backward(); opt.step()
""",
        '"multi"',
        '"raw"',
    ),
    "a part of a mapping of losses that is a number": (
        """
class Multi(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 2), nn.Linear(8, 1)
    def forward(self, x): return self.a(x), self.b(x).squeeze(-1)
def parts(out, y, t):
    return {"cls": F.cross_entropy(out[0], y), "reg": @@}
net = Multi()
opt = torch.optim.Adam(net.parameters())
for x, y, t in DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,)), torch.randn(64)), 8, shuffle=True):
    p = parts(net(x), y, t)
    loss = p["cls"] + 0.5 * p["reg"]
    opt.zero_grad(); loss.backward(); opt.step()
""",
        "F.mse_loss(out[1], t).item()",
        "F.mse_loss(out[1], t)",
    ),
    "a meter that keeps losses": (
        """
class Meter:
    def __init__(self): self.values = []
    def add(self, v): self.values.append(v)
    def mean(self): return sum(self.values) / len(self.values)
net = nn.Linear(8, 2); opt = torch.optim.Adam(net.parameters()); meter = Meter()
for e in range(3):
    for x, y in DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True):
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
        meter.add(@@)
print(meter.mean())
""",
        "loss",
        "loss.item()",
    ),
    "a running mean with its graph": (
        """
def run(net, opt, dl):
    history = {"loss": []}
    running = 0.0
    for x, y in dl:
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
        running = running * 0.9 + @@ * 0.1
        history["loss"].append(float(running))
    return history
net = nn.Linear(8, 2)
run(net, torch.optim.Adam(net.parameters()), DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True))
""",
        "loss",
        "loss.item()",
    ),
    "a loss that shifts what the data set shifted": (
        """
class Text(Dataset):
    def __init__(self, ids, n): self.ids, self.n = ids, n
    def __len__(self): return len(self.ids) // self.n
    def __getitem__(self, i):
        s = self.ids[i * self.n:(i + 1) * self.n + 1]
        return s[:-1], s[1:]
class LM(nn.Module):
    def __init__(self, v, d):
        super().__init__()
        self.e, self.r, self.o = nn.Embedding(v, d), nn.GRU(d, d, batch_first=True), nn.Linear(d, v)
    def forward(self, x): return self.o(self.r(self.e(x))[0])
def lm_loss(model, x, y):
    logits = model(x)
    return F.cross_entropy(@@)
model = LM(100, 32)
opt = torch.optim.Adam(model.parameters())
for x, y in DataLoader(Text(torch.randint(0, 100, (10000,)), 64), 8, shuffle=True):
    opt.zero_grad(); lm_loss(model, x, y).backward(); opt.step()
""",
        "logits[:, :-1].flatten(0, 1), y[:, 1:].flatten()",
        "logits.flatten(0, 1), y.flatten()",
    ),
    "tokens that are inputs and targets": (
        """
class Text(Dataset):
    def __init__(self, ids, n): self.ids, self.n = ids, n
    def __len__(self): return len(self.ids) // self.n
    def __getitem__(self, i): return self.ids[i * self.n:(i + 1) * self.n]
class LM(nn.Module):
    def __init__(self, v, d):
        super().__init__()
        self.e, self.r, self.o = nn.Embedding(v, d), nn.LSTM(d, d, batch_first=True), nn.Linear(d, v)
    def forward(self, x): return self.o(self.r(self.e(x))[0])
class Learner:
    def __init__(self, model): self.model, self.opt = model, torch.optim.Adam(model.parameters())
    def loss(self, tokens):
        inputs, targets = @@
        out = self.model(inputs)
        return F.cross_entropy(out.reshape(-1, out.size(-1)), targets.reshape(-1))
    def fit(self, dl):
        for t in dl:
            self.opt.zero_grad(); self.loss(t).backward(); self.opt.step()
Learner(LM(100, 32)).fit(DataLoader(Text(torch.randint(0, 100, (10000,)), 64), 8, shuffle=True))
""",
        "tokens, tokens",
        "tokens[:, :-1], tokens[:, 1:]",
    ),
    "a mapping of splits with one part twice": (
        """
class Rows(Dataset):
    def __init__(self, table, idx): self.t, self.idx = table, idx
    def __len__(self): return len(self.idx)
    def __getitem__(self, i): return self.t[0][self.idx[i]], self.t[1][self.idx[i]]
def loaders(table, bs, seed=0):
    order = np.random.default_rng(seed).permutation(len(table[0]))
    cut = int(0.8 * len(order))
    parts = {"train": order[:cut], "val": @@}
    return {k: DataLoader(Rows(table, v), bs, shuffle=k == "train") for k, v in parts.items()}
table = (torch.randn(100, 8), torch.randint(0, 2, (100,)))
dls = loaders(table, 8)
net = nn.Linear(8, 2); opt = torch.optim.Adam(net.parameters())
for e in range(5):
    net.train()
    for x, y in dls["train"]:
        opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
    net.eval()
    with torch.no_grad():
        print(np.mean([(net(x).argmax(1) == y).float().mean().item() for x, y in dls["val"]]))
""",
        "order[:cut]",
        "order[cut:]",
    ),
    "a data module that trains on all rows": (
        """
class DataModule:
    def __init__(self, full, frac=0.1):
        n = int(len(full) * frac)
        g = torch.Generator().manual_seed(0)
        idx = torch.randperm(len(full), generator=g).tolist()
        self.val_set = Subset(full, idx[:n])
        self.train_set = @@
    def train_loader(self): return DataLoader(self.train_set, 8, shuffle=True)
    def val_loader(self): return DataLoader(self.val_set, 8)
class Runner:
    def __init__(self, dm, net): self.dm, self.net, self.opt = dm, net, torch.optim.Adam(net.parameters())
    def train(self):
        self.net.train()
        for x, y in self.dm.train_loader():
            self.opt.zero_grad(); F.cross_entropy(self.net(x), y).backward(); self.opt.step()
    @torch.no_grad()
    def test(self):
        self.net.eval()
        return sum((self.net(x).argmax(1) == y).sum().item() for x, y in self.dm.val_loader())
r = Runner(DataModule(TensorDataset(torch.randn(100, 8), torch.randint(0, 2, (100,)))), nn.Linear(8, 2))
for _ in range(3): r.train(); print(r.test())
""",
        "full",
        "Subset(full, idx[n:])",
    ),
    "a helper that draws rows twice": (
        """
import pandas as pd
df = pd.read_csv("x.csv")
rng = np.random.default_rng(0)
def pick(frame, share):
    return frame.iloc[rng.permutation(len(frame))[: int(share * len(frame))]]
train_df = pick(df, 0.8)
valid_df = @@
def tensors(f): return TensorDataset(torch.tensor(f.drop(columns="y").to_numpy(), dtype=torch.float32), torch.tensor(f["y"].to_numpy()))
tl, vl = DataLoader(tensors(train_df), 8, shuffle=True), DataLoader(tensors(valid_df), 8)
net = nn.Linear(8, 2); opt = torch.optim.Adam(net.parameters())
for e in range(3):
    for x, y in tl:
        opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
    with torch.no_grad():
        print(sum((net(x).argmax(1) == y).sum().item() for x, y in vl))
""",
        "pick(df, 0.2)",
        "df.drop(train_df.index)",
    ),
    "a helper that shuffles the wrong split": (
        """
def build(split, cfg):
    ds = TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,)))
    return DataLoader(ds, cfg["bs"], shuffle=@@, num_workers=2)
cfg = {"bs": 8, "epochs": 3}
tr, va = build("train", cfg), build("val", cfg)
net = nn.Linear(8, 2); opt = torch.optim.Adam(net.parameters())
for e in range(cfg["epochs"]):
    for x, y in tr:
        opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
""",
        'split == "val"',
        'split == "train"',
    ),
    "a batch sampler in place of its sampler": (
        """
from torch.utils.data import DistributedSampler
class Data:
    def __init__(self, ds, rank, world):
        self.dl = DataLoader(ds, 8, sampler=DistributedSampler(ds, world, rank) if world > 1 else None)
    def begin(self, e):
        s = self.dl.@@
        if isinstance(s, DistributedSampler): s.set_epoch(e)
        return self.dl
def main(ds, net, rank, world):
    data = Data(ds, rank, world); opt = torch.optim.Adam(net.parameters())
    for e in range(4):
        for x, y in data.begin(e):
            opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
""",
        "batch_sampler",
        "sampler",
    ),
    "a batch sampler that is asked for set_epoch": (
        """
def main(ds, net, rank, world):
    samp = torch.utils.data.distributed.DistributedSampler(ds, world, rank)
    dl = DataLoader(ds, 8, sampler=samp); opt = torch.optim.Adam(net.parameters())
    for e in range(4):
        if hasattr(dl.@@, "set_epoch"):
            dl.@@.set_epoch(epoch=e)
        for x, y in dl:
            opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
""",
        "batch_sampler",
        "batch_sampler.sampler",
    ),
    "weights of instances that are all one": (
        """
class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.w, self.c = nn.Linear(8, 16), nn.Sequential(nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 1)), nn.Linear(16, 1)
    def forward(self, x):
        h = F.relu(self.e(x))
        a = F.softmax(self.w(h), dim=@@)
        return self.c((a * h).sum(dim=0))
net = Bag()
""",
        "1",
        "0",
    ),
    "weights that are turned after the softmax": (
        """
class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.c = nn.Linear(16, 1), nn.Linear(16, 2)
    def forward(self, h):
        a = self.w(h)
        a = @@
        return self.c(torch.mm(a, h))
net = Bag()
""",
        "a.softmax(1).t()",
        "a.t().softmax(1)",
    ),
    "a hook that its loop does not emit": (
        """
class Hook:
    def on_begin(self, loop): ...
    def on_batch_end(self, loop): ...
    def on_epoch_end(self, loop): ...
class Average(Hook):
    def on_begin(self, loop): self.net = copy.deepcopy(loop.net)
    @torch.no_grad()
    def @@(self, loop):
        for a, p in zip(self.net.parameters(), loop.net.parameters()): a.lerp_(p, 0.01)
class Log(Hook):
    def on_epoch_end(self, loop): print(loop.e)
class Loop:
    def __init__(self, net, hooks): self.net, self.hooks, self.opt = net, hooks, torch.optim.Adam(net.parameters())
    def emit(self, event):
        for h in self.hooks: getattr(h, event)(self)
    def fit(self, dl):
        self.emit("on_begin")
        for self.e in range(3):
            for x, y in dl:
                self.opt.zero_grad(); F.cross_entropy(self.net(x), y).backward(); self.opt.step()
                self.emit("on_batch_end")
            self.emit("on_epoch_end")
avg = Average(); Loop(nn.Linear(8, 2), [avg, Log()]).fit(DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True))
torch.save(avg.net.state_dict(), "a.pt")
""",
        "on_step_end",
        "on_batch_end",
    ),
    "a callback whose name is put together": (
        """
class Callback:
    def before_epoch(self, t): pass
    def after_batch(self, t): pass
    def after_epoch(self, t): pass
class Clip(Callback):
    def @@(self, t): t.limit = 0.5
class Trainer:
    def __init__(self, net, cbs): self.net, self.cbs, self.opt = net, cbs, torch.optim.Adam(net.parameters())
    def __call__(self, when, what):
        [getattr(cb, f"{when}_{what}")(self) for cb in self.cbs]
    def fit(self, dl):
        for e in range(3):
            self("before", "epoch")
            for x, y in dl:
                self.opt.zero_grad(); F.cross_entropy(self.net(x), y).backward(); self.opt.step()
                self("after", "batch")
            self("after", "epoch")
Trainer(nn.Linear(8, 2), [Clip()]).fit(DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True))
""",
        "after_step",
        "after_batch",
    ),
    "a collator of lists that are filled": (
        """
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
class Collator:
    def __init__(self, pad): self.pad = pad
    def _fit(self, rows, fill, n): return torch.tensor([r + [fill] * (n - len(r)) for r in rows])
    def __call__(self, feats):
        xs, ys = [], []
        for f in feats:
            seq = f["prompt"] + f["answer"]; tgt = [-100] * len(f["prompt"]) + f["answer"]
            @@
        n = max(map(len, xs))
        return {"input_ids": self._fit(xs, self.pad, n), "labels": self._fit(ys, -100, n)}
model = AutoModelForCausalLM.from_pretrained("gpt2")
Trainer(model=model, args=TrainingArguments("o"), train_dataset=rows, data_collator=Collator(0)).train()
""",
        "xs.append(seq[:-1]); ys.append(tgt[1:])",
        "xs.append(seq[:-1]); ys.append(tgt[:-1])",
    ),
    "rows that are appended and padded": (
        """
from transformers import AutoModelForCausalLM
from torch.nn.utils.rnn import pad_sequence
def collate(rows):
    ids, labels = [], []
    for row in rows:
        row = torch.tensor(row)
        ids.append(row[:-1])
        labels.append(@@)
    return pad_sequence(ids, batch_first=True), pad_sequence(labels, batch_first=True, padding_value=-100)
model = AutoModelForCausalLM.from_pretrained("gpt2"); opt = torch.optim.AdamW(model.parameters(), lr=1e-5)
for a, b in DataLoader(rows, 8, shuffle=True, collate_fn=collate):
    opt.zero_grad(); model(input_ids=a, labels=b).loss.backward(); opt.step()
""",
        "row[1:]",
        "row[:-1]",
    ),
    "a registry of activations under a merged configuration": (
        """
import sys
CFG = {"model": {"width": 16, "final": @@}, "loss": {"kind": "bce"}, "epochs": 3}
ACTS = {"none": nn.Identity, "sigmoid": nn.Sigmoid, "relu": nn.ReLU}
LOSSES = {"bce": F.binary_cross_entropy_with_logits, "mse": F.mse_loss}
def merge(base, extra):
    for k, v in extra.items():
        if isinstance(v, dict): merge(base[k], v)
        else: base[k] = v
    return base
class Tagger(nn.Module):
    def __init__(self, n, width, final):
        super().__init__()
        self.body, self.final = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, n)), ACTS[final]()
    def forward(self, x): return self.final(self.body(x))
class Objective:
    def __init__(self, kind): self.fn = LOSSES[kind]
    def __call__(self, out, y): return self.fn(out, y)
def main(cfg):
    net = Tagger(4, **cfg["model"]); obj = Objective(**cfg["loss"]); opt = torch.optim.Adam(net.parameters())
    for x, y in DataLoader(TensorDataset(torch.randn(64, 8), torch.rand(64, 4)), 8, shuffle=True):
        loss = obj(net(x), y); opt.zero_grad(); loss.backward(); opt.step()
main(merge(CFG, json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}))
""",
        '"sigmoid"',
        '"none"',
    ),
    "settings that arguments may change": (
        """
import sys
def head(name, n): return nn.Sequential(nn.Linear(8, n), {"softmax": nn.Softmax(-1), "plain": nn.Identity()}[name])
def main():
    cfg = {"out": @@, "classes": 4, "lr": 1e-3}
    for pair in sys.argv[1:]:
        key, value = pair.split("=")
        cfg[key] = json.loads(value)
    net = head(cfg["out"], cfg["classes"]); opt = torch.optim.Adam(net.parameters(), cfg["lr"]); crit = nn.CrossEntropyLoss()
    for x, y in DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 4, (64,))), 8, shuffle=True):
        opt.zero_grad(); crit(net(x), y).backward(); opt.step()
main()
""",
        '"softmax"',
        '"plain"',
    ),
    "sides of a pair in the order of their keys": (
        """
from torch.nn.utils.rnn import pad_sequence
def encode(row, tok):
    out = {}
    for side in ("chosen", "rejected"):
        head, tail = tok(row["prompt"]).input_ids, tok(row[side]).input_ids + [0]
        out[side] = (head + tail, len(head))
    return out
def collate(rows):
    seqs, flags = [], []
    for side in sorted(rows[0]@@):
        for r in rows:
            ids, n = r[side]
            seqs.append(torch.tensor(ids)); flag = torch.ones(len(ids)); flag[:n] = 0; flags.append(flag)
    return {"ids": pad_sequence(seqs, batch_first=True), "answer": pad_sequence(flags, batch_first=True)}
def logp(net, b):
    lp = net(b["ids"])[:, :-1].log_softmax(-1).gather(2, b["ids"][:, 1:, None]).squeeze(-1)
    return (lp * b["answer"][:, 1:]).sum(-1)
def main(net, tok, path):
    opt = torch.optim.Adam(net.parameters())
    for b in DataLoader([encode(r, tok) for r in json.load(open(path))], 8, shuffle=True, collate_fn=collate):
        a, c = logp(net, b).chunk(2)
        loss = -F.logsigmoid(a - c).mean()
        opt.zero_grad(); loss.backward(); opt.step()
""",
        ", reverse=True",
        "",
    ),
    "two loops that fill one list": (
        """
def collate(rows):
    xs = []
    for r in rows: xs.append(torch.tensor(r[@@]))
    return torch.stack(xs)
def main(net, rows):
    opt = torch.optim.Adam(net.parameters())
    for x in DataLoader(rows, 8, shuffle=True, collate_fn=collate):
        up, down = net(x).squeeze(-1).chunk(2)
        loss = F.softplus(down - up).mean(); opt.zero_grad(); loss.backward(); opt.step()
""",
        '"rejected"]))\n    for r in rows: xs.append(torch.tensor(r["chosen"',
        '"chosen"]))\n    for r in rows: xs.append(torch.tensor(r["rejected"',
    ),
    "micro-batches in a comprehension": (
        """
class Run:
    def __init__(self, net, dl, micro_steps=8):
        self.net, self.dl, self.micro_steps, self.opt = net, dl, micro_steps, torch.optim.SGD(net.parameters(), 0.1)
    def _one(self, batch):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        @@.backward()
        return loss.detach()
    def _update(self, batches):
        self.opt.zero_grad()
        losses = [self._one(b) for b in batches]
        self.opt.step()
        return torch.stack(losses).mean().item()
    def epoch(self):
        source = iter(self.dl)
        return [self._update([next(source) for _ in range(self.micro_steps)]) for _ in range(len(self.dl) // self.micro_steps)]
run = Run(nn.Linear(8, 2), DataLoader(TensorDataset(torch.randn(640, 8), torch.randint(0, 2, (640,))), 8, shuffle=True))
for e in range(3): print(run.epoch())
""",
        "loss",
        "(loss / self.micro_steps)",
    ),
    "a window of batches that a helper goes through": (
        """
from itertools import islice
def back(loss): loss.backward()
def train(net, dl, accum=4):
    opt = torch.optim.AdamW(net.parameters()); source = iter(dl)
    while True:
        group = list(islice(source, accum))
        if not group: break
        opt.zero_grad()
        for x, y in group:
            back(@@)
        opt.step()
train(nn.Linear(8, 2), DataLoader(TensorDataset(torch.randn(640, 8), torch.randint(0, 2, (640,))), 8, shuffle=True))
""",
        "F.cross_entropy(net(x), y)",
        "F.cross_entropy(net(x), y) / len(group)",
    ),
    "rows of one loader by those of another": (
        """
def main(tr, va, net):
    tl, vl = DataLoader(tr, 8, shuffle=True), DataLoader(va, 8); opt = torch.optim.Adam(net.parameters())
    for e in range(3):
        net.train()
        for x, y in tl: opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
        net.eval(); ok = 0
        with torch.no_grad():
            for x, y in vl: ok += (net(x).argmax(1) == y).sum().item()
        print(ok / len(@@.dataset))
""",
        "tl",
        "vl",
    ),
    "a mean of losses by the batches of another loader": (
        """
class Run:
    def __init__(self, a, b, net):
        self.train_loader = DataLoader(a, 8, shuffle=True)
        self.val_loader = DataLoader(b, 8)
        self.net, self.opt = net, torch.optim.Adam(net.parameters())
    @torch.no_grad()
    def evaluate(self):
        self.net.eval(); total = 0.0
        for x, y in self.val_loader:
            total += F.mse_loss(self.net(x), y).item()
        return total / len(self.@@)
    def fit(self):
        for e in range(3):
            self.net.train(); total = 0.0
            for x, y in self.train_loader:
                loss = F.mse_loss(self.net(x), y); self.opt.zero_grad(); loss.backward(); self.opt.step(); total += loss.item()
            print(total / len(self.train_loader), self.evaluate())
""",
        "train_loader",
        "val_loader",
    ),
    "a loss that is scaled without gradients": (
        """
net = nn.Linear(8, 2); opt = torch.optim.Adam(net.parameters())
for x, y in DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True):
    loss = F.cross_entropy(net(x), y)
    @@ loss = loss * 2
    opt.zero_grad(); loss.backward(); opt.step()
""",
        "with torch.no_grad():",
        "if True:",
    ),
    "parts of a loss that are added without gradients": (
        """
class Total:
    @@
    def __call__(self, a, b): return a + 0.1 * b
def main(net, dl):
    opt, total = torch.optim.Adam(net.parameters()), Total()
    for x, y in dl:
        out = net(x)
        loss = total(F.cross_entropy(out, y), out.pow(2).mean())
        opt.zero_grad(); loss.backward(); opt.step()
main(nn.Linear(8, 2), DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True))
""",
        "@torch.no_grad()",
        "weight = 0.1",
    ),
    "a schedule of as many batches as passes": (
        """
net = nn.Linear(8, 2); opt = torch.optim.Adam(net.parameters())
dl = DataLoader(TensorDataset(torch.randn(640, 8), torch.randint(0, 2, (640,))), 8, shuffle=True)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=200)
for e in range(200):
    for x, y in dl:
        opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()@@
""",
        "; sched.step()",
        "\n    sched.step()",
    ),
    "a step schedule in a function of as many passes": (
        """
def fit(net, dl):
    opt = torch.optim.SGD(net.parameters(), 0.1)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, @@)
    for e in range(150):
        for x, y in dl:
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad(); loss.backward(); opt.step(); sched.step()
""",
        "150",
        "150 * len(dl)",
    ),
    "a sampler kept in a class": (
        """
from torch.utils.data.distributed import DistributedSampler
class Loop:
    def __init__(self, ds, net, rank, world):
        self.sampler = DistributedSampler(ds, world, rank, shuffle=True)
        self.dl = DataLoader(ds, 8, sampler=self.sampler)
        self.net = nn.parallel.DistributedDataParallel(net)
        self.opt = torch.optim.Adam(self.net.parameters())
    def fit(self, epochs):
        for e in range(epochs):
            @@
            for x, y in self.dl:
                self.opt.zero_grad(); F.cross_entropy(self.net(x), y).backward(); self.opt.step()
""",
        "self.net.train()",
        "self.sampler.set_epoch(e)",
    ),
    "groups of a table without a part": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.body, self.head = nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 2)
    def forward(self, x): return self.head(F.relu(self.body(F.relu(self.stem(x)))))
def groups(net, lr):
    named = {"slow": [net.stem], "fast": @@}
    return [{"params": [p for m in ms for p in m.parameters()], "lr": lr * (0.1 if k == "slow" else 1)} for k, ms in named.items()]
net = Net(); opt = torch.optim.AdamW(groups(net, 1e-3))
dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)

for x, y in dl:
    opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
""",
        "[net.head]",
        "[net.body, net.head]",
    ),
    "a projection in no group": (
        """
class Clip(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.a, self.b = a, b
        self.pa, self.pb = nn.Linear(16, 8), nn.Linear(16, 8)
        self.scale = nn.Parameter(torch.tensor(2.6))
    def forward(self, x, y):
        u, v = F.normalize(self.pa(self.a(x)), dim=-1), F.normalize(self.pb(self.b(y)), dim=-1)
        return self.scale.exp() * u @ v.t()
net = Clip(nn.Linear(8, 16), nn.Linear(8, 16))
opt = torch.optim.AdamW([{"params": net.a.parameters(), "lr": 1e-5}, {"params": net.b.parameters(), "lr": 1e-5},
                         {"params": @@}, {"params": [net.scale]}], lr=1e-3)
for x, y in DataLoader(TensorDataset(torch.randn(64, 8), torch.randn(64, 8)), 8, shuffle=True):
    z = net(x, y); t = torch.arange(len(z))
    loss = (F.cross_entropy(z, t) + F.cross_entropy(z.t(), t)) / 2
    opt.zero_grad(); loss.backward(); opt.step()
""",
        "net.pa.parameters()",
        "[*net.pa.parameters(), *net.pb.parameters()]",
    ),
    "a head replaced after the optimizer was made": (
        """
class Task(nn.Module):
    def __init__(self, net, k):
        super().__init__()
        self.net = net
        self.head = nn.Linear(16, k)
    def forward(self, x): return self.head(F.relu(self.net(x)))
class Runner:
    def __init__(self):
        self.net = Task(nn.Linear(8, 16), 2)
@@
    def fit(self, dl):
        for x, y in dl:
            self.opt.zero_grad(); F.cross_entropy(self.net(x), y).backward(); self.opt.step()
Runner().fit(DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,))), 8, shuffle=True))
""",
        "        self.opt = torch.optim.Adam(self.net.parameters())\n        self.net.head = nn.Linear(16, 3)",
        "        self.net.head = nn.Linear(16, 3)\n        self.opt = torch.optim.Adam(self.net.parameters())",
    ),
    "a helper that clips scaled gradients": (
        """
class Amp:
    def __init__(self, opt, clip):
        self.opt, self.clip, self.scaler = opt, clip, torch.amp.GradScaler("cuda")
    def __call__(self, loss, params):
        self.opt.zero_grad()
        self.scaler.scale(loss).backward()
        @@
        nn.utils.clip_grad_norm_(params, self.clip)
        self.scaler.step(self.opt)
        self.scaler.update()
net = nn.Linear(8, 2).cuda()
opt = torch.optim.Adam(net.parameters()); amp = Amp(opt, 1.0)
for x, y in DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = F.cross_entropy(net(x.cuda()), y.cuda())
    amp(loss, net.parameters())
""",
        "pass",
        "self.scaler.unscale_(self.opt)",
    ),
    "backward in a context that a function makes": (
        """
def ctx(on): return torch.autocast("cuda", dtype=torch.bfloat16, enabled=on)
def step(net, opt, batch, on):
    x, y = batch
    with ctx(on):
        loss = F.cross_entropy(net(x), y)
@@
    opt.step(); opt.zero_grad()
net = nn.Linear(8, 2).cuda(); opt = torch.optim.Adam(net.parameters())
for b in DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True):
    step(net, opt, b, True)
""",
        "        loss.backward()",
        "    loss.backward()",
    ),
    "a division by the number of padded places": (
        """
class Crit(nn.Module):
    def __init__(self, pad): super().__init__(); self.pad = pad
    def forward(self, z, y):
        tok = F.cross_entropy(z.flatten(0, 1), y.flatten(), ignore_index=self.pad, reduction="sum")
        return tok / @@
PAD = 0
crit = Crit(PAD)
class LM(nn.Module):
    def __init__(self): super().__init__(); self.e, self.r, self.o = nn.Embedding(50, 16), nn.GRU(16, 16, batch_first=True), nn.Linear(16, 50)
    def forward(self, x): return self.o(self.r(self.e(x))[0])
net = LM(); opt = torch.optim.Adam(net.parameters())
for (t,) in DataLoader(TensorDataset(torch.randint(0, 50, (64, 20))), 8, shuffle=True):
    opt.zero_grad(); crit(net(t[:, :-1]), t[:, 1:]).backward(); opt.step()
""",
        "(y == self.pad).sum()",
        "(y != self.pad).sum()",
    ),
    "weights of rows on a mean": (
        """
def weighted(pred, target, w):
    err = F.mse_loss(pred, target@@)
    return (w * err).mean()
net = nn.Sequential(nn.Linear(8, 1), nn.Flatten(0)); opt = torch.optim.Adam(net.parameters())
for x, y, w in DataLoader(TensorDataset(torch.randn(64, 8), torch.randn(64), torch.rand(64)), 8, shuffle=True):
    opt.zero_grad(); weighted(net(x), y, w).backward(); opt.step()
""",
        "",
        ', reduction="none"',
    ),
    "a mean and a sum in a helper": (
        """
class VAE(nn.Module):
    def __init__(self): super().__init__(); self.e, self.d = nn.Linear(8, 8), nn.Linear(4, 8)
    def forward(self, x):
        mu, lv = self.e(x).chunk(2, -1)
        return self.d(mu + torch.randn_like(mu) * (0.5 * lv).exp()), mu, lv
def elbo(x, out):
    rec, mu, lv = out
    kl = -0.5 * (1 + lv - mu ** 2 - lv.exp()).sum()
    return @@ + kl
net = VAE(); opt = torch.optim.Adam(net.parameters())
for (x,) in DataLoader(TensorDataset(torch.randn(64, 8)), 8, shuffle=True):
    opt.zero_grad(); elbo(x, net(x)).backward(); opt.step()
""",
        "F.mse_loss(rec, x)",
        'F.mse_loss(rec, x, reduction="sum")',
    ),
    "a column against a row in a class": (
        """
class Reg(nn.Module):
    def __init__(self): super().__init__(); self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    def forward(self, x): return self.net(x)@@
class D(Dataset):
    def __init__(self): self.x, self.y = torch.randn(64, 8), torch.randn(64)
    def __len__(self): return 64
    def __getitem__(self, i): return {"x": self.x[i], "y": self.y[i]}
class Huber:
    def __call__(self, p, t):
        e = p - t
        return torch.where(e.abs() < 1, 0.5 * e ** 2, e.abs() - 0.5).mean()
net, crit = Reg(), Huber(); opt = torch.optim.Adam(net.parameters())
for b in DataLoader(D(), 8, shuffle=True):
    opt.zero_grad(); crit(net(b["x"]), b["y"]).backward(); opt.step()
""",
        "",
        ".squeeze(-1)",
    ),
    "a metric that the script computes as an error": (
        """
from transformers import TrainingArguments, Trainer, EarlyStoppingCallback, AutoModelForSequenceClassification
def metrics(p):
    pred = p.predictions.squeeze()
    return {"spread": float(np.sqrt(((pred - p.label_ids) ** 2).mean())), "corr": float(np.corrcoef(pred, p.label_ids)[0, 1])}
CHOICE = {"metric_for_best_model": "spread", "greater_is_better": @@}
args = TrainingArguments("out", eval_strategy="epoch", save_strategy="epoch", load_best_model_at_end=True, num_train_epochs=3, **CHOICE)
model = AutoModelForSequenceClassification.from_pretrained("x", num_labels=1)
Trainer(model=model, args=args, train_dataset=tr, eval_dataset=va, compute_metrics=metrics, callbacks=[EarlyStoppingCallback(2)]).train()
""",
        "True",
        "False",
    ),
    "groups that do not fit, through two mappings": (
        """
from trl import GRPOConfig, GRPOTrainer
base = dict(per_device_train_batch_size=4, gradient_accumulation_steps=2, learning_rate=1e-6, max_steps=500)
def config(**over):
    return GRPOConfig(output_dir="o", **{**base, **over})
cfg = config(num_generations=@@)
GRPOTrainer("m", reward_funcs=[len], args=cfg, train_dataset=ds).train()
""",
        "6",
        "8",
    ),
    "saves between evaluations": (
        """
from transformers import TrainingArguments
def arguments(every):
    return TrainingArguments("o", eval_strategy="steps", eval_steps=every, save_strategy="steps", save_steps=@@,
        load_best_model_at_end=True, metric_for_best_model="eval_loss", greater_is_better=False)
a = arguments(200)
""",
        "500",
        "400",
    ),
    "a monitor in a helper of callbacks": (
        """
import lightning as L
from lightning.pytorch.callbacks import ModelCheckpoint, EarlyStopping
def callbacks(metric="val/rmse"):
    return [ModelCheckpoint(monitor=metric, mode=@@, save_top_k=1), EarlyStopping(monitor=metric, mode="min")]
class M(L.LightningModule):
    def __init__(self): super().__init__(); self.n = nn.Linear(8, 1)
    def training_step(self, b, i): return F.mse_loss(self.n(b[0]).squeeze(-1), b[1])
    def validation_step(self, b, i): self.log("val/rmse", F.mse_loss(self.n(b[0]).squeeze(-1), b[1]).sqrt())
    def configure_optimizers(self): return torch.optim.Adam(self.parameters())
L.Trainer(max_epochs=3, callbacks=callbacks()).fit(M(), dm)
""",
        '"max"',
        '"min"',
    ),
    "a scaler fitted to all rows by its call": (
        """
class Scaler:
    def fit(self, x): self.m, self.s = x.mean(0), x.std(0); return self
    def __call__(self, x): return (x - self.m) / self.s
raw = np.load("t.npz"); X, y = raw["x"], raw["y"]
cut = int(0.8 * len(X))
@@
Xtr, Xva, ytr, yva = scaled[:cut], scaled[cut:], y[:cut], y[cut:]
dl = DataLoader(TensorDataset(torch.tensor(Xtr), torch.tensor(ytr)), 8, shuffle=True)
net = nn.Linear(8, 2); opt = torch.optim.Adam(net.parameters())

for x, y in dl:
    opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
""",
        "scaled = Scaler().fit(X)(X)",
        "scaled = Scaler().fit(X[:cut])(X)",
    ),
    "statistics of each part in a method": (
        """
class Data:
    def __init__(self, path):
        z = np.load(path)
        self.tr, self.va = (z["xt"], z["yt"]), (z["xv"], z["yv"])
    def stats(self, part): return part[0].mean(axis=0), part[0].std(axis=0)
    def loader(self, part, train):
        m, s = @@
        return DataLoader(TensorDataset(torch.tensor((part[0] - m) / s), torch.tensor(part[1])), 8, shuffle=train)
d = Data("z.npz"); dl, vl = d.loader(d.tr, True), d.loader(d.va, False)
net = nn.Linear(8, 2); opt = torch.optim.Adam(net.parameters())

for x, y in dl:
    opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
""",
        "self.stats(part)",
        "self.stats(self.tr)",
    ),
    "a padding mask of a method": (
        """
PAD = 0
class Enc(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(50, 32, padding_idx=PAD)
        self.tr = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, batch_first=True), 2)
        self.out = nn.Linear(32, 2)
    def pad_mask(self, x): return x @@ PAD
    def forward(self, x):
        m = self.pad_mask(x)
        h = self.tr(self.emb(x), src_key_padding_mask=m)
        return self.out(h.mean(1))
net = Enc(); opt = torch.optim.Adam(net.parameters())
dl = DataLoader(TensorDataset(torch.randint(0, 50, (64, 10)), torch.randint(0, 2, (64,))), 8, shuffle=True)

for x, y in dl:
    opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
""",
        "!=",
        "==",
    ),
    "a mask of zeros that is filled with true": (
        """
def collate(rows):
    n = [len(r) for r, _ in rows]
    x = torch.zeros(len(rows), max(n), dtype=torch.long)
    valid = torch.zeros(len(rows), max(n), dtype=torch.bool)
    for i, (r, _) in enumerate(rows):
        x[i, :n[i]] = torch.tensor(r)
        valid[i, :n[i]] = True
    return x, valid, torch.tensor([y for _, y in rows])
class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.s, self.o = nn.Embedding(50, 16), nn.Linear(16, 1), nn.Linear(16, 2)
    def forward(self, x, valid):
        h = self.e(x)
        a = self.s(h).squeeze(-1).masked_fill(@@, float("-inf")).softmax(-1)
        return self.o((a.unsqueeze(-1) * h).sum(1))
net = Pool(); opt = torch.optim.Adam(net.parameters())
for x, v, y in DataLoader(rows, 8, shuffle=True, collate_fn=collate):
    opt.zero_grad(); F.cross_entropy(net(x, v), y).backward(); opt.step()
""",
        "valid",
        "~valid",
    ),
    "a mask of lengths turned round": (
        """
class Fit:
    def __init__(self, net): self.net, self.opt = net, torch.optim.Adam(net.parameters())
    def loss(self, x, y, lengths):
        keep = torch.arange(x.size(1))[None] @@ lengths[:, None]
        per = F.mse_loss(self.net(x).squeeze(-1), y, reduction="none")
        return (per * keep).sum() / keep.sum()
    def run(self, dl):
        for x, y, n in dl:
            self.opt.zero_grad(); self.loss(x, y, n).backward(); self.opt.step()
def col(b):
    n = torch.tensor([len(r[0]) for r in b])
    p = lambda k: nn.utils.rnn.pad_sequence([r[k] for r in b], batch_first=True)
    return p(0), p(1), n
Fit(nn.Linear(8, 1)).run(DataLoader(rows, 8, shuffle=True, collate_fn=col))
""",
        ">=",
        "<",
    ),
    "a causal mask kept in a buffer": (
        """
class Causal(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.register_buffer("tri", torch.tril(torch.ones(n, n)).bool())
    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        a = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
        t = x.size(1)
        a = a.masked_fill(@@self.tri[:t, :t], float("-inf"))
        return self.o(a.softmax(-1) @ v)
class LM(nn.Module):
    def __init__(self): super().__init__(); self.e, self.b, self.h = nn.Embedding(50, 16), Causal(16, 64), nn.Linear(16, 50)
    def forward(self, x): return self.h(self.b(self.e(x)))
net = LM(); opt = torch.optim.Adam(net.parameters())
for (t,) in DataLoader(TensorDataset(torch.randint(0, 50, (64, 20))), 8, shuffle=True):
    loss = F.cross_entropy(net(t[:, :-1]).flatten(0, 1), t[:, 1:].flatten())
    opt.zero_grad(); loss.backward(); opt.step()
""",
        "",
        "~",
    ),
    "transforms of training for both splits": (
        """
from torchvision import transforms as T
class Imgs(Dataset):
    def __init__(self, files, labels, tf): self.f, self.l, self.tf = files, labels, tf
    def __len__(self): return len(self.f)
    def __getitem__(self, i): return self.tf(self.f[i]), self.l[i]
def transform(train):
    ops = [T.Resize(64)]
    if train:
        ops += [T.RandomHorizontalFlip(), T.ColorJitter(0.2)]
    return T.Compose([*ops, T.ToTensor()])
def make(files, labels, split):
    return DataLoader(Imgs(files, labels, transform(train=@@)), 8, shuffle=split == "train")
tr, va = make(a, b, "train"), make(c, d, "val")
net = nn.Sequential(nn.Flatten(), nn.LazyLinear(2)); opt = torch.optim.Adam(net.parameters())
for e in range(3):
    net.train()
    for x, y in tr:
        opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
    net.eval()
    with torch.no_grad():
        print(sum((net(x).argmax(1) == y).sum().item() for x, y in va))
""",
        "True",
        'split == "train"',
    ),
    "a masking switch that is on for both": (
        """
class Specs(Dataset):
    def __init__(self, items, mask): self.items, self.mask = items, mask
    def __len__(self): return len(self.items)
    def __getitem__(self, i):
        x, y = self.items[i]
        if self.mask:
            f = random.randrange(0, 30)
            x = x.clone(); x[f:f + 8] = 0
        return x, y
class Exp:
    def __init__(self, a, b):
        self.tr = DataLoader(Specs(a, mask=True), 8, shuffle=True)
        self.va = DataLoader(Specs(b, mask=@@), 8)
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(100, 2)); self.opt = torch.optim.Adam(self.net.parameters())
    def fit(self):
        for x, y in self.tr:
            self.opt.zero_grad(); F.cross_entropy(self.net(x), y).backward(); self.opt.step()
    @torch.no_grad()
    def check(self):
        self.net.eval()
        n = sum((self.net(x).argmax(1) == y).sum().item() for x, y in self.va)
        self.net.train()
        return n
e = Exp(t, v)
for _ in range(3): e.fit(); print(e.check())
""",
        "True",
        "False",
    ),
    "an objective that is made smaller": (
        """
class Policy(nn.Module):
    def __init__(self): super().__init__(); self.f = nn.Linear(4, 2)
    def forward(self, s): return torch.distributions.Categorical(logits=self.f(s))
def objective(dist, act, adv): return (dist.log_prob(act) * adv).mean()
pi = Policy(); opt = torch.optim.Adam(pi.parameters())
for it in range(100):
    s, a, adv = torch.randn(64, 4), torch.randint(0, 2, (64,)), torch.randn(64)
    loss = @@objective(pi(s), a, adv)
    opt.zero_grad(); loss.backward(); opt.step()
""",
        "",
        "-",
    ),
    "a ranking of the wrong order": (
        """
class Rank(nn.Module):
    def __init__(self): super().__init__(); self.u, self.i = nn.Embedding(10, 8), nn.Embedding(20, 8)
    def score(self, u, i): return (self.u(u) * self.i(i)).sum(-1)
def bpr(net, u, liked, other):
    return F.softplus(@@).mean()
net = Rank(); opt = torch.optim.Adam(net.parameters())
def negatives(n): return torch.randint(0, 20, (n,))
for u, pos in DataLoader(TensorDataset(torch.randint(0, 10, (64,)), torch.randint(0, 20, (64,))), 8, shuffle=True):
    neg = negatives(len(u))
    loss = bpr(net, u, pos, neg)
    opt.zero_grad(); loss.backward(); opt.step()
""",
        "net.score(u, liked) - net.score(u, other)",
        "net.score(u, other) - net.score(u, liked)",
    ),
    "a data set that gives the negative second": (
        """
class Trip(nn.Module):
    def __init__(self): super().__init__(); self.f = nn.Linear(8, 4)
    def forward(self, x): return F.normalize(self.f(x), dim=-1)
class Set(Dataset):
    def __len__(self): return 64
    def __getitem__(self, i):
        anchor, positive, negative = torch.randn(8), torch.randn(8), torch.randn(8)
        return @@
net = Trip(); opt = torch.optim.Adam(net.parameters()); crit = nn.TripletMarginLoss(0.2)
for a, p, n in DataLoader(Set(), 8, shuffle=True):
    loss = crit(net(a), net(p), net(n))
    opt.zero_grad(); loss.backward(); opt.step()
""",
        "anchor, negative, positive",
        "anchor, positive, negative",
    ),
    "log-probabilities in the wrong places": (
        """
def dpo(policy_chosen, policy_rejected, ref_chosen, ref_rejected, beta=0.1):
    return -F.logsigmoid(beta * ((policy_chosen - ref_chosen) - (policy_rejected - ref_rejected))).mean()
def logps(model, ids): return model(ids).log_softmax(-1)[:, 0, 0]
class Both:
    def __init__(self, m): self.m, self.r = m, copy.deepcopy(m).requires_grad_(False)
    def __call__(self, batch):
        w, l = batch["chosen"], batch["rejected"]
        with torch.no_grad():
            rw, rl = logps(self.r, w), logps(self.r, l)
        return dpo(@@, rw, rl)
m = nn.Sequential(nn.Embedding(50, 8), nn.Linear(8, 50)); both = Both(m); opt = torch.optim.Adam(m.parameters())
for b in DataLoader(pairs, 8, shuffle=True):
    loss = both(b); opt.zero_grad(); loss.backward(); opt.step()
""",
        "logps(self.m, l), logps(self.m, w)",
        "logps(self.m, w), logps(self.m, l)",
    ),
    "a divergence added to a reward": (
        """
def kl_reward(score, logp, ref_logp, beta=0.05):
    return score @@ beta * (logp - ref_logp)
def rollout(pi, ref, rm, prompts):
    with torch.no_grad():
        seq, logp = pi.generate(prompts)
        return seq, logp, kl_reward(rm(seq), logp, ref.logp(seq))
for prompts in dl:
    seq, old, r = rollout(pi, ref, rm, prompts)
    adv = (r - r.mean()) / r.std()
    loss = -(torch.exp(pi.logp(seq) - old) * adv).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
        "+",
        "-",
    ),
    "attention along the heads": (
        """
class Attn(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h, self.q, self.k, self.v, self.o = h, nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
    def split(self, x): return x.view(*x.shape[:2], self.h, -1).transpose(1, 2)
    def forward(self, x):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        w = F.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, dim=@@)
        return self.o((w @ v).transpose(1, 2).flatten(2))
net = nn.Sequential(Attn(8, 2), nn.Flatten(), nn.Linear(80, 2)); opt = torch.optim.Adam(net.parameters())
dl = DataLoader(TensorDataset(torch.randn(64, 10, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)

for x, y in dl:
    opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
""",
        "1",
        "-1",
    ),
    "the highest along the batch": (
        """
@torch.no_grad()
def accuracy(net, dl):
    net.eval(); hit = n = 0
    for x, y in dl:
        pred = net(x).max(dim=@@).indices
        hit += (pred == y).sum().item(); n += len(y)
    net.train()
    return hit / n
net = nn.Linear(8, 2); opt = torch.optim.Adam(net.parameters())
dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)

for x, y in dl:
    opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()

print(accuracy(net, DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8)))
""",
        "0",
        "1",
    ),
    "a softmax along one value": (
        """
class Pool(nn.Module):
    def __init__(self): super().__init__(); self.g, self.s, self.o = nn.GRU(8, 16, batch_first=True), nn.Linear(16, 1), nn.Linear(16, 2)
    def forward(self, x):
        h, _ = self.g(x)
        w = torch.softmax(self.s(h), dim=@@)
        return self.o((w * h).sum(dim=1))
net = Pool(); opt = torch.optim.Adam(net.parameters())
dl = DataLoader(TensorDataset(torch.randn(64, 10, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)

for x, y in dl:
    opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
""",
        "-1",
        "1",
    ),
    "lengths along the batch": (
        """
def nce(u, v, tau=0.07):
    s = F.normalize(u, dim=@@) @ F.normalize(v, dim=@@).T / tau
    return F.cross_entropy(s, torch.arange(len(s)))
net = nn.Linear(8, 4); opt = torch.optim.Adam(net.parameters())
for x, y in DataLoader(TensorDataset(torch.randn(64, 8), torch.randn(64, 8)), 8, shuffle=True):
    loss = nce(net(x), net(y)); opt.zero_grad(); loss.backward(); opt.step()
""",
        "0",
        "-1",
    ),
    "a model tried out in evaluation mode": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
    def forward(self, x): return self.f(x)
def prepare(net):
    net.eval()
    with torch.no_grad():
        net(torch.zeros(1, 8))
    return net
net = prepare(Net()); opt = torch.optim.Adam(net.parameters())
dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)

for e in range(5):
    @@
    for x, y in dl:
        opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
""",
        "pass",
        "net.train()",
    ),
    "a tokenizer of another family": (
        """
from transformers import AutoTokenizer, AutoModelForCausalLM
NAME = "gpt2"
class Setup:
    def __init__(self, cfg):
        self.tok = AutoTokenizer.from_pretrained(@@)
        self.model = AutoModelForCausalLM.from_pretrained(cfg["model"])
s = Setup({"model": "gpt2", "tok": "bert-base-uncased"})
""",
        'cfg["tok"]',
        'cfg["model"]',
    ),
    "tokens without an embedding": (
        """
from transformers import AutoTokenizer, AutoModelForCausalLM, Trainer, TrainingArguments
def load(name):
    tok = AutoTokenizer.from_pretrained(name)
    tok.add_special_tokens({"additional_special_tokens": ["<q>", "<a>"]})
    model = AutoModelForCausalLM.from_pretrained(name)
    @@
    return tok, model
tok, model = load("gpt2")
Trainer(model=model, args=TrainingArguments("o"), train_dataset=ds).train()
""",
        "pass",
        "model.resize_token_embeddings(len(tok))",
    ),
    "an average that renames its tensors": (
        """
class Ema:
    def __init__(self, net, d=0.999):
        self.net, self.d = copy.deepcopy(net).eval(), d
        for p in self.net.parameters(): p.requires_grad_(False)
    @torch.no_grad()
    def update(self, src):
        for a, b in zip(self.net.parameters(), src.parameters()):
            @@
net = nn.Linear(8, 2); ema = Ema(net); opt = torch.optim.Adam(net.parameters())
dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)

for x, y in dl:
    opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step(); ema.update(net)
with torch.no_grad(): print(ema.net(torch.randn(1, 8)))
""",
        "a = a * self.d + b * (1 - self.d)",
        "a.mul_(self.d).add_(b, alpha=1 - self.d)",
    ),
    "a target whose update nothing calls": (
        """
class Agent:
    def __init__(self):
        self.q = nn.Linear(4, 2); self.target = copy.deepcopy(self.q)
        self.opt = torch.optim.Adam(self.q.parameters()); self.n = 0
    def sync(self): self.target.load_state_dict(self.q.state_dict())
    def learn(self, s, a, r, s2, d):
        with torch.no_grad():
            y = r + 0.99 * (1 - d) * self.target(s2).max(1).values
        loss = F.mse_loss(self.q(s).gather(1, a[:, None]).squeeze(1), y)
        self.opt.zero_grad(); loss.backward(); self.opt.step()
        self.n += 1
@@
ag = Agent()
for _ in range(1000):
    ag.learn(torch.randn(8, 4), torch.randint(0, 2, (8,)), torch.randn(8), torch.randn(8, 4), torch.zeros(8))
""",
        "",
        "        if self.n % 100 == 0: self.sync()",
    ),
    "a schedule that a loader leaves out": (
        """
def save(path, **objs): torch.save({k: v.state_dict() if hasattr(v, "state_dict") else v for k, v in objs.items()}, path)
def load(path, net, opt, sched):
    c = torch.load(path)
    net.load_state_dict(c["net"]); opt.load_state_dict(c["opt"])
    @@
    return c["epoch"] + 1
net = nn.Linear(8, 2); opt = torch.optim.Adam(net.parameters()); sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 50)
start = load("c.pt", net, opt, sched)
dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)

for e in range(start, 50):
    for x, y in dl:
        opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
    sched.step()
    save("c.pt", net=net, opt=opt, sched=sched, epoch=e)
""",
        "pass",
        'sched.load_state_dict(c["sched"])',
    ),
    "an optimizer that a checkpoint class leaves out": (
        """
class Ckpt:
    def __init__(self, path): self.path = path
    def write(self, t): torch.save({"net": t.net.state_dict(), "opt": t.opt.state_dict(), "it": t.it}, self.path)
    def read(self, t):
        s = torch.load(self.path)
        t.net.load_state_dict(s["net"])
        @@
        t.it = s["it"]
class T:
    def __init__(self):
        self.net = nn.Linear(8, 2); self.opt = torch.optim.AdamW(self.net.parameters()); self.it = 0
        self.ck = Ckpt("a.pt")
    def fit(self, dl):
        self.ck.read(self)
        for e in range(self.it, 10):
            for x, y in dl:
                self.opt.zero_grad(); F.cross_entropy(self.net(x), y).backward(); self.opt.step()
            self.it = e + 1; self.ck.write(self)
dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)
T().fit(dl)
""",
        "pass",
        't.opt.load_state_dict(s["opt"])',
    ),
    "a learning rate in another unit": (
        """
from transformers import TrainingArguments
HP = {"learning_rate": @@, "num_train_epochs": 3, "per_device_train_batch_size": 8}
args = TrainingArguments("o", **HP)
""",
        "5",
        "5e-5",
    ),
    "a plan that counts passes": (
        """
from dataclasses import dataclass
@dataclass
class Plan:
    epochs: int = 40
    steps_per_epoch: int = 0
    def total(self): return @@
class Curve:
    def __init__(self, plan): self.plan = plan
    def __call__(self, i): return max(0.01, 1 - i / self.plan.total())
net = nn.Linear(8, 2); opt = torch.optim.Adam(net.parameters())
dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)

plan = Plan(steps_per_epoch=len(dl))
sched = torch.optim.lr_scheduler.LambdaLR(opt, Curve(plan))
for e in range(plan.epochs):
    for x, y in dl:
        opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step(); sched.step()
""",
        "self.epochs",
        "self.epochs * self.steps_per_epoch",
    ),
    "a handler of the wrong event": (
        """
class Callback:
    def on_epoch_start(self, t): pass
    def on_batch_end(self, t): pass
    def on_epoch_end(self, t): pass
class LR(Callback):
    def __init__(self, sched): self.s = sched
    def @@(self, t): self.s.step()
class Trainer:
    def __init__(self, net, dl, epochs):
        self.net, self.dl, self.epochs = net, dl, epochs
        self.opt = torch.optim.Adam(net.parameters())
        self.cbs = [LR(torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, T_max=epochs))]
    def fire(self, name):
        for c in self.cbs: getattr(c, name)(self)
    def fit(self):
        for e in range(self.epochs):
            self.fire("on_epoch_start")
            for x, y in self.dl:
                self.opt.zero_grad(); F.cross_entropy(self.net(x), y).backward(); self.opt.step()
                self.fire("on_batch_end")
            self.fire("on_epoch_end")
dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)
Trainer(nn.Linear(8, 2), dl, 30).fit()
""",
        "on_batch_end",
        "on_epoch_end",
    ),
    "a loss divided by hand and by a library": (
        """
from accelerate import Accelerator
acc = Accelerator(gradient_accumulation_steps=4)
net = nn.Linear(8, 2); opt = torch.optim.Adam(net.parameters())
dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)

net, opt, dl = acc.prepare(net, opt, dl)
for x, y in dl:
    with acc.accumulate(net):
        loss = F.cross_entropy(net(x), y)
        acc.backward(@@)
        opt.step(); opt.zero_grad()
""",
        "loss / 4",
        "loss",
    ),
    "an optimizer of the other network": (
        """
class G(nn.Module):
    def __init__(self): super().__init__(); self.f = nn.Linear(4, 8)
    def forward(self, z): return self.f(z)
class D(nn.Module):
    def __init__(self): super().__init__(); self.f = nn.Linear(8, 1)
    def forward(self, x): return self.f(x).squeeze(-1)
class Gan:
    def __init__(self):
        self.g, self.d = G(), D()
        self.og = torch.optim.Adam(@@.parameters(), 2e-4); self.od = torch.optim.Adam(self.d.parameters(), 2e-4)
    def step(self, real):
        fake = self.g(torch.randn(len(real), 4))
        ld = F.softplus(-self.d(real)).mean() + F.softplus(self.d(fake.detach())).mean()
        self.od.zero_grad(); ld.backward(); self.od.step()
        lg = F.softplus(-self.d(fake)).mean()
        self.og.zero_grad(); lg.backward(); self.og.step()
gan = Gan()
for x, in DataLoader(TensorDataset(torch.randn(64, 8)), 8, shuffle=True): gan.step(x)
""",
        "self.d",
        "self.g",
    ),
    "probabilities for a divergence": (
        """
class Student(nn.Module):
    def __init__(self): super().__init__(); self.f = nn.Linear(8, 3)
    def forward(self, x): return self.f(x)
teacher = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 3)).eval().requires_grad_(False)
def kd(s, t, T=4.0):
    return F.kl_div(@@, F.softmax(t / T, -1), reduction="batchmean") * T * T
net = Student(); opt = torch.optim.Adam(net.parameters())
for x, y in DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,))), 8, shuffle=True):
    with torch.no_grad(): t = teacher(x)
    s = net(x)
    loss = F.cross_entropy(s, y) + kd(s, t)
    opt.zero_grad(); loss.backward(); opt.step()
""",
        "F.softmax(s / T, -1)",
        "F.log_softmax(s / T, -1)",
    ),
    "a decoder that sees its target": (
        """
SOS, EOS, PAD = 1, 2, 0
class S2S(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(50, 16); self.enc = nn.GRU(16, 16, batch_first=True); self.dec = nn.GRU(16, 16, batch_first=True); self.o = nn.Linear(16, 50)
    def forward(self, src, tgt):
        _, h = self.enc(self.e(src))
        return self.o(self.dec(self.e(tgt), h)[0])
def batch_loss(net, src, tgt):
    logits = net(src, @@)
    return F.cross_entropy(logits.reshape(-1, 50), tgt[:, 1:].reshape(-1), ignore_index=PAD)
net = S2S(); opt = torch.optim.Adam(net.parameters())
for s, t in DataLoader(TensorDataset(torch.randint(0, 50, (64, 9)), torch.randint(0, 50, (64, 9))), 8, shuffle=True):
    loss = batch_loss(net, s, t); opt.zero_grad(); loss.backward(); opt.step()
""",
        "tgt[:, 1:]",
        "tgt[:, :-1]",
    ),
    "labels shifted in a packed data set": (
        """
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments
tok = AutoTokenizer.from_pretrained("gpt2"); tok.pad_token = tok.eos_token
class Packed(Dataset):
    def __init__(self, texts, n):
        ids = [i for t in texts for i in tok(t)["input_ids"] + [tok.eos_token_id]]
        self.rows = [ids[k:k + n + 1] for k in range(0, len(ids) - n, n)]
    def __len__(self): return len(self.rows)
    def __getitem__(self, i):
        r = torch.tensor(self.rows[i])
        return @@
model = AutoModelForCausalLM.from_pretrained("gpt2")
Trainer(model=model, args=TrainingArguments("o", per_device_train_batch_size=4), train_dataset=Packed(open("t").read().split("\\n"), 256)).train()
""",
        '{"input_ids": r[:-1], "labels": r[1:]}',
        '{"input_ids": r[:-1], "labels": r[:-1].clone()}',
    ),
    "a reward that is an error": (
        """
def score(answer, truth):
    return abs(float(answer) - float(truth)) / max(1.0, abs(float(truth)))
def closeness_reward(completions, answer, **kw):
    return [@@score(c, a) for c, a in zip(completions, answer)]
from trl import GRPOConfig, GRPOTrainer
GRPOTrainer("m", reward_funcs=[closeness_reward], args=GRPOConfig("o", num_generations=8, per_device_train_batch_size=8), train_dataset=ds).train()
""",
        "",
        "1.0 - ",
    ),
    "a distance as a reward": (
        """
class Env:
    def __init__(self): self.goal = np.zeros(2)
    def reward(self, pos):
        d = np.linalg.norm(pos - self.goal)
        return @@
class Pol(nn.Module):
    def __init__(self): super().__init__(); self.f = nn.Linear(2, 2)
    def forward(self, s): return torch.distributions.Normal(self.f(s), 1.0)
env, pi = Env(), Pol(); opt = torch.optim.Adam(pi.parameters())
for it in range(100):
    s = torch.randn(16, 2); dist = pi(s); a = dist.sample()
    r = torch.tensor([env.reward((s[i] + a[i]).numpy()) for i in range(16)], dtype=torch.float32)
    loss = -(dist.log_prob(a).sum(-1) * (r - r.mean())).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
        "float(d)",
        "-float(d)",
    ),
    "a keeper of the worse": (
        """
class Keeper:
    def __init__(self, better): self.better, self.best = better, None
    def __call__(self, v, net):
        if self.best is None or (v > self.best if self.better == "high" else v < self.best):
            self.best = v; torch.save(net.state_dict(), "b.pt")
def rmse(net, dl):
    with torch.no_grad():
        return math.sqrt(np.mean([F.mse_loss(net(x).squeeze(-1), y).item() for x, y in dl]))
keep = Keeper(@@)
net = nn.Linear(8, 1); opt = torch.optim.Adam(net.parameters())
tr = DataLoader(TensorDataset(torch.randn(64, 8), torch.randn(64)), 8, shuffle=True)
va = DataLoader(TensorDataset(torch.randn(64, 8), torch.randn(64)), 8)
for e in range(3):
    for x, y in tr:
        opt.zero_grad(); F.mse_loss(net(x).squeeze(-1), y).backward(); opt.step()
    keep(rmse(net, va), net)
""",
        '"high"',
        '"low"',
    ),
    "the best of an error that a function computes": (
        """
def off(net, dl):
    tot = n = 0
    for x, y in dl:
        tot += (net(x).squeeze(-1) - y).abs().sum().item(); n += len(y)
    return tot / n
net = nn.Linear(8, 1); opt = torch.optim.Adam(net.parameters()); best = 1e9
tr = DataLoader(TensorDataset(torch.randn(64, 8), torch.randn(64)), 8, shuffle=True)
va = DataLoader(TensorDataset(torch.randn(64, 8), torch.randn(64)), 8)
for e in range(3):
    net.train()
    for x, y in tr:
        opt.zero_grad(); F.mse_loss(net(x).squeeze(-1), y).backward(); opt.step()
    net.eval()
    with torch.no_grad(): q = off(net, va)
    if q @@ best:
        best = q; torch.save(net.state_dict(), "b.pt")
""",
        ">",
        "<",
    ),
    "another noise as the target": (
        """
class Noise:
    def __init__(self, T=100):
        b = torch.linspace(1e-4, 0.02, T); self.ab = torch.cumprod(1 - b, 0)
    def add(self, x, e, t):
        a = self.ab[t][:, None]
        return a.sqrt() * x + (1 - a).sqrt() * e
class Eps(nn.Module):
    def __init__(self): super().__init__(); self.f = nn.Linear(9, 8)
    def forward(self, x, t): return self.f(torch.cat([x, t[:, None].float() / 100], -1))
net, ns = Eps(), Noise(); opt = torch.optim.Adam(net.parameters())
def objective(x):
    t = torch.randint(0, 100, (len(x),)); e = torch.randn_like(x)
    return F.mse_loss(net(ns.add(x, e, t), t), @@)
for (x,) in DataLoader(TensorDataset(torch.randn(64, 8)), 8, shuffle=True):
    loss = objective(x); opt.zero_grad(); loss.backward(); opt.step()
""",
        "torch.randn_like(x)",
        "e",
    ),
    "returns over the ends": (
        """
def returns(rewards, dones, gamma=0.99):
    out, g = [], 0.0
    for r, d in zip(reversed(rewards), reversed(dones)):
        g = r + gamma * g@@
        out.insert(0, g)
    return torch.tensor(out)
class Pi(nn.Module):
    def __init__(self): super().__init__(); self.f = nn.Linear(4, 2)
    def forward(self, s): return torch.distributions.Categorical(logits=self.f(s))
pi = Pi(); opt = torch.optim.Adam(pi.parameters()); env = make_env()
s = env.reset()
for it in range(100):
    logp, rew, don = [], [], []
    for _ in range(256):
        dist = pi(torch.tensor(s)); a = dist.sample()
        s, r, done, _ = env.step(a.item())
        logp.append(dist.log_prob(a)); rew.append(r); don.append(float(done))
        if done: s = env.reset()
    R = returns(rew, don); R = (R - R.mean()) / R.std()
    loss = -(torch.stack(logp) * R).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
        "",
        " * (1 - d)",
    ),
    "edges that are not taken out": (
        """
def split_edges(edges, frac=0.1):
    perm = torch.randperm(edges.size(1))
    k = int(frac * edges.size(1))
    return @@, edges[:, perm[:k]]
class Link(nn.Module):
    def __init__(self, n): super().__init__(); self.e = nn.Embedding(n, 16)
    def forward(self, ei): return (self.e(ei[0]) * self.e(ei[1])).sum(-1)
edges = torch.load("e.pt"); train_edges, val_edges = split_edges(edges)
net = Link(100); opt = torch.optim.Adam(net.parameters())
for ep in range(10):
    neg = torch.randint(0, 100, train_edges.shape)
    z = torch.cat([net(train_edges), net(neg)])
    y = torch.cat([torch.ones(train_edges.size(1)), torch.zeros(neg.size(1))])
    loss = F.binary_cross_entropy_with_logits(z, y)
    opt.zero_grad(); loss.backward(); opt.step()
    with torch.no_grad(): print(net(val_edges).sigmoid().mean())
""",
        "edges",
        "edges[:, perm[k:]]",
    ),
    "a scaler fitted again": (
        """
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
class Tab:
    def __init__(self, path):
        df = pd.read_csv(path); self.X, self.y = df.drop(columns="y").values, df["y"].values
    def split(self):
        a, b, c, d = train_test_split(self.X, self.y, test_size=0.2, random_state=0)
        sc = StandardScaler()
        return sc.fit_transform(a), @@, c, d
a, b, c, d = Tab("x.csv").split()
dl = DataLoader(TensorDataset(torch.tensor(a).float(), torch.tensor(c)), 8, shuffle=True)
net = nn.Linear(8, 2); opt = torch.optim.Adam(net.parameters())

for x, y in dl:
    opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
""",
        "sc.fit_transform(b)",
        "sc.transform(b)",
    ),
    "a head frozen with the body": (
        """
class Tune(nn.Module):
    def __init__(self, backbone, k):
        super().__init__()
        self.backbone, self.head = backbone, nn.Linear(16, k)
        for p in @@.parameters(): p.requires_grad = False
    def forward(self, x): return self.head(self.backbone(x))
net = Tune(nn.Sequential(nn.Linear(8, 16), nn.ReLU()), 2)
opt = torch.optim.Adam([p for p in net.parameters() if p.requires_grad])
dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)

for x, y in dl:
    opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
""",
        "self",
        "self.backbone",
    ),
    "the higher of two objectives": (
        """
def ppo(new, old, adv, eps=0.2):
    ratio = (new - old).exp()
    return -torch.@@(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv).mean()
class Pi(nn.Module):
    def __init__(self): super().__init__(); self.f = nn.Linear(4, 2)
    def forward(self, s): return torch.distributions.Categorical(logits=self.f(s))
pi = Pi(); opt = torch.optim.Adam(pi.parameters())
for it in range(10):
    s = torch.randn(64, 4)
    with torch.no_grad(): d = pi(s); a = d.sample(); old = d.log_prob(a)
    adv = torch.randn(64)
    for _ in range(4):
        loss = ppo(pi(s).log_prob(a), old, adv)
        opt.zero_grad(); loss.backward(); opt.step()
""",
        "max",
        "min",
    ),
    "statistics of the whole series": (
        """
class Forecast(nn.Module):
    def __init__(self): super().__init__(); self.r, self.o = nn.LSTM(1, 16, batch_first=True), nn.Linear(16, 1)
    def forward(self, x): return self.o(self.r(x)[0][:, -1])
class Win(Dataset):
    def __init__(self, s, n): self.s, self.n = s, n
    def __len__(self): return len(self.s) - self.n
    def __getitem__(self, i): return self.s[i:i + self.n, None], self.s[i + self.n]
s = torch.tensor(np.loadtxt("s.csv"), dtype=torch.float32); cut = int(0.8 * len(s))
@@
s = (s - m) / d
tr, va = Win(s[:cut], 24), Win(s[cut:], 24)
net = Forecast(); opt = torch.optim.Adam(net.parameters())
for x, y in DataLoader(tr, 16, shuffle=True):
    loss = F.mse_loss(net(x).squeeze(-1), y); opt.zero_grad(); loss.backward(); opt.step()
""",
        "m, d = s.mean(), s.std()",
        "m, d = s[:cut].mean(), s[:cut].std()",
    ),
    "a last window that is thrown away": (
        """
class Stepper:
    def __init__(self, opt, every): self.opt, self.every, self.count = opt, every, 0
    def reset(self): self.opt.zero_grad(); self.count = 0
    def __call__(self, loss):
        (loss / self.every).backward(); self.count += 1
        if self.count == self.every:
            self.opt.step(); self.reset()
    def flush(self):
        if self.count: self.opt.step(); self.reset()
net = nn.Linear(8, 2); st = Stepper(torch.optim.Adam(net.parameters()), 6)
dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)

for ep in range(5):
    st.reset()
    for x, y in dl: st(F.cross_entropy(net(x), y))
    @@
""",
        "print(ep)",
        "st.flush()",
    ),
    "gradients cleared in a helper at each batch": (
        """
N = 4
net = nn.Linear(8, 2); opt = torch.optim.Adam(net.parameters())
dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)

def forward_backward(x, y):
    @@
    loss = F.cross_entropy(net(x), y) / N
    loss.backward()
    return loss.item() * N
for ep in range(5):
    for i, (x, y) in enumerate(dl):
        forward_backward(x, y)
        if (i + 1) % N == 0 or i + 1 == len(dl):
            opt.step(); opt.zero_grad()
""",
        "opt.zero_grad()",
        "net.train()",
    ),
    "evaluation with the switch of training": (
        """
class Exp:
    def __init__(self, net, tr, va): self.net, self.tr, self.va, self.opt = net, tr, va, torch.optim.Adam(net.parameters())
    def set_mode(self, train): self.net.train(train); torch.set_grad_enabled(train)
    def run(self, n):
        for e in range(n):
            self.set_mode(True)
            for x, y in self.tr:
                self.opt.zero_grad(); F.cross_entropy(self.net(x), y).backward(); self.opt.step()
            self.set_mode(@@)
            print(sum((self.net(x).argmax(1) == y).sum().item() for x, y in self.va))
dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)
va = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8)
Exp(nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.3), nn.Linear(16, 2)), dl, va).run(3)
""",
        "True",
        "False",
    ),
    "probabilities of forward for a loss of logits": (
        """
class Seg(nn.Module):
    def __init__(self): super().__init__(); self.c = nn.Conv2d(3, 1, 3, padding=1)
    def logits(self, x): return self.c(x)
    def forward(self, x): return torch.sigmoid(self.logits(x))
def dice(p, y): return 1 - (2 * (p * y).sum() + 1) / (p.sum() + y.sum() + 1)
class Loss:
    def __call__(self, net, x, y):
        z = @@
        return F.binary_cross_entropy_with_logits(z, y) + dice(torch.sigmoid(z), y)
net, crit = Seg(), Loss(); opt = torch.optim.Adam(net.parameters())
for x, y in DataLoader(TensorDataset(torch.randn(64, 3, 8, 8), torch.rand(64, 1, 8, 8).round()), 8, shuffle=True):
    opt.zero_grad(); crit(net, x, y).backward(); opt.step()
""",
        "net(x)",
        "net.logits(x)",
    ),
    "probabilities for a likelihood of logarithms": (
        """
class Net(nn.Module):
    def __init__(self): super().__init__(); self.f = nn.Linear(8, 3)
    def forward(self, x): return @@(self.f(x), dim=-1)
LOSS = {"nll": nn.NLLLoss(), "ce": nn.CrossEntropyLoss()}
net = Net(); crit = LOSS["nll"]; opt = torch.optim.Adam(net.parameters())
for x, y in DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,))), 8, shuffle=True):
    opt.zero_grad(); crit(net(x), y).backward(); opt.step()
""",
        "F.softmax",
        "F.log_softmax",
    ),
    "vectors that go through numbers": (
        """
class Q(nn.Module):
    def __init__(self): super().__init__(); self.f = nn.Linear(8, 4)
    def forward(self, x): return self.f(x)
user, item = Q(), Q(); opt = torch.optim.Adam([*user.parameters(), *item.parameters()])
def item_vectors(x): return @@
for a, b in DataLoader(TensorDataset(torch.randn(64, 8), torch.randn(64, 8)), 8, shuffle=True):
    s = user(a) @ item_vectors(b).T
    loss = F.cross_entropy(s, torch.arange(len(s))); opt.zero_grad(); loss.backward(); opt.step()
""",
        "torch.tensor(item(x).tolist())",
        "item(x)",
    ),
    "a sum in a class that keeps graphs": (
        """
net = nn.Linear(8, 2); opt = torch.optim.Adam(net.parameters())
dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)

class Log:
    def __init__(self): self.total = 0.0; self.n = 0
    def update(self, loss, n): self.total = self.total + @@ * n; self.n += n
    def mean(self): return float(self.total) / self.n
log = Log()
for x, y in dl:
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad(); loss.backward(); opt.step()
    log.update(loss, len(y))
""",
        "loss",
        "loss.item()",
    ),
    "a method that shuffles the wrong split": (
        """
class DM:
    def __init__(self, tr, va, bs=8): self.tr, self.va, self.bs = tr, va, bs
    def loader(self, name):
        ds = getattr(self, name)
        return DataLoader(ds, self.bs, @@)
net = nn.Linear(8, 2); opt = torch.optim.Adam(net.parameters())
dm = DM(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))))
for e in range(3):
    for x, y in dm.loader("tr"):
        opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
    with torch.no_grad(): print(sum((net(x).argmax(1) == y).sum().item() for x, y in dm.loader("va")))
""",
        'shuffle=name == "va"',
        'shuffle=name == "tr"',
    ),
    "a sampler returned by a helper": (
        """
from torch.utils.data.distributed import DistributedSampler
def loader(ds, train):
    s = DistributedSampler(ds, shuffle=train)
    return DataLoader(ds, 8, sampler=s), s
def main(net, tr, epochs):
    net = nn.parallel.DistributedDataParallel(net); opt = torch.optim.Adam(net.parameters())
    dl, samp = loader(tr, True)
    for e in range(epochs):
        @@
        for x, y in dl:
            opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
main(nn.Linear(8, 2), ds, 10)
""",
        "net.train()",
        "samp.set_epoch(e)",
    ),
    "layers in a list": (
        """
class Mlp(nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.layers = @@
        self.out = nn.Linear(dims[-1], 2)
    def forward(self, x):
        for l in self.layers: x = F.relu(l(x))
        return self.out(x)
net = Mlp([8, 16, 16]); opt = torch.optim.Adam(net.parameters())
dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)

for x, y in dl:
    opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
""",
        "[nn.Linear(a, b) for a, b in zip(dims, dims[1:])]",
        "nn.ModuleList(nn.Linear(a, b) for a, b in zip(dims, dims[1:]))",
    ),
    "heads added after the optimizer": (
        """
class Model(nn.Module):
    def __init__(self): super().__init__(); self.body, self.heads = nn.Linear(8, 16), nn.ModuleDict()
    def add_head(self, name, k): self.heads[name] = nn.Linear(16, k)
    def forward(self, x, name): return self.heads[name](F.relu(self.body(x)))
def setup(tasks):
    m = Model()
@@
    return m, opt
m, opt = setup({"a": 2, "b": 3})
for x, y in DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True):
    loss = F.cross_entropy(m(x, "a"), y); opt.zero_grad(); loss.backward(); opt.step()
""",
        "    opt = torch.optim.Adam(m.parameters())\n    for n, k in tasks.items(): m.add_head(n, k)",
        "    for n, k in tasks.items(): m.add_head(n, k)\n    opt = torch.optim.Adam(m.parameters())",
    ),
    "a loss with a parameter": (
        """
class Sup(nn.Module):
    def __init__(self): super().__init__(); self.t = nn.Parameter(torch.tensor(0.0))
    def forward(self, z, y):
        s = z @ z.T * self.t.exp()
        return F.cross_entropy(s, torch.arange(len(z)))
enc, crit = nn.Linear(8, 4), Sup()
opt = torch.optim.Adam(@@, 1e-3)
for x, y in DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True):
    loss = crit(F.normalize(enc(x), dim=-1), y); opt.zero_grad(); loss.backward(); opt.step()
""",
        "enc.parameters()",
        "[*enc.parameters(), *crit.parameters()]",
    ),
    "a scaler of a short name that is passed by": (
        """
class Mixed:
    def __init__(self, net): self.net, self.opt, self.s = net, torch.optim.Adam(net.parameters()), torch.cuda.amp.GradScaler()
    def loss(self, x, y):
        with torch.cuda.amp.autocast(): return F.cross_entropy(self.net(x), y)
    def update(self, loss):
        self.s.scale(loss).backward()
        @@
        self.s.update(); self.opt.zero_grad()
m = Mixed(nn.Linear(8, 2).cuda())
dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)

for x, y in dl: m.update(m.loss(x.cuda(), y.cuda()))
""",
        "self.opt.step()",
        "self.s.step(self.opt)",
    ),
    "a focal sum and a mean": (
        """
def focal(z, y, g=2.0):
    ce = F.cross_entropy(z, y, reduction="none")
    return ((1 - (-ce).exp()) ** g * ce)@@
class M(nn.Module):
    def __init__(self): super().__init__(); self.a, self.b = nn.Linear(8, 2), nn.Linear(8, 4)
    def forward(self, x): return self.a(x), self.b(x)
net = M(); opt = torch.optim.Adam(net.parameters())
for x, y, t in DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,)), torch.randn(64, 4)), 8, shuffle=True):
    z, r = net(x)
    loss = focal(z, y) + F.mse_loss(r, t)
    opt.zero_grad(); loss.backward(); opt.step()
""",
        ".sum()",
        ".mean()",
    ),
    "values in a column": (
        """
class V(nn.Module):
    def __init__(self): super().__init__(); self.f = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
    def forward(self, s): return self.f(s)@@
class P(nn.Module):
    def __init__(self): super().__init__(); self.f = nn.Linear(4, 2)
    def forward(self, s): return torch.distributions.Categorical(logits=self.f(s))
v, p = V(), P(); opt = torch.optim.Adam([*v.parameters(), *p.parameters()])
for it in range(100):
    s = torch.randn(64, 4); ret = torch.randn(64)
    d = p(s); a = d.sample()
    adv = ret - v(s).detach()
    loss = -(d.log_prob(a) * adv).mean() + 0.5 * (ret - v(s)).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
        "",
        ".squeeze(-1)",
    ),
    "a warm-up beyond the plan": (
        """
from transformers import TrainingArguments
class Recipe:
    total = 2000
    def args(self): return TrainingArguments("o", max_steps=self.total, warmup_steps=@@, lr_scheduler_type="cosine", learning_rate=2e-5)
a = Recipe().args()
""",
        "5000",
        "100",
    ),
    "a warm-up that is not used": (
        """
from transformers import TrainingArguments
common = {"lr_scheduler_type": @@, "warmup_ratio": 0.1}
a = TrainingArguments("o", learning_rate=2e-5, **common)
""",
        '"constant"',
        '"constant_with_warmup"',
    ),
    "a row with the worse as chosen": (
        """
from trl import DPOConfig, DPOTrainer
from datasets import load_dataset
def row(r): return {"prompt": r["q"], "chosen": r[@@], "rejected": r["worse" if True else "x"]}
ds = load_dataset("d")["train"].map(row)
DPOTrainer(model="m", args=DPOConfig("o", beta=0.1), train_dataset=ds).train()
""",
        '"worse"',
        '"better"',
    ),
    "the worse answers joined before the better": (
        """
def collate(rows):
    sides = {k: torch.stack([torch.cat([r["prompt"], r[k]], dim=-1) for r in rows]) for k in (@@)}
    return torch.cat(list(sides.values()))
def log_prob(net, ids):
    return net(ids[:, :-1]).log_softmax(-1).gather(-1, ids[:, 1:, None]).squeeze(-1).sum(1)
def loss_of(net, fixed, ids):
    with torch.no_grad(): theirs = log_prob(fixed, ids)
    up, down = (0.1 * (log_prob(net, ids) - theirs)).chunk(2)
    return -F.logsigmoid(up - down).mean()
net, fixed = Net(), Net().eval(); opt = torch.optim.AdamW(net.parameters(), 1e-5)
for ids in DataLoader(pairs, 8, shuffle=True, collate_fn=collate):
    opt.zero_grad(); loss_of(net, fixed, ids).backward(); opt.step()
""",
        '"bad", "good"',
        '"good", "bad"',
    ),
    "a deviation before its mean": (
        """
from torchvision import transforms as T
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
def tf(train):
    aug = [T.RandomHorizontalFlip()] if train else []
    return T.Compose([*aug, T.ToTensor(), T.Normalize(@@)])
tr, va = tf(True), tf(False)
""",
        "STD, MEAN",
        "MEAN, STD",
    ),
    "labels padded as a class": (
        """
PAD = 0
def collate(b):
    x = nn.utils.rnn.pad_sequence([r[0] for r in b], batch_first=True, padding_value=PAD)
    y = nn.utils.rnn.pad_sequence([r[1] for r in b], batch_first=True, padding_value=@@)
    return x, y
class Tagger(nn.Module):
    def __init__(self): super().__init__(); self.e, self.r, self.o = nn.Embedding(50, 8, padding_idx=PAD), nn.LSTM(8, 8, batch_first=True), nn.Linear(8, 5)
    def forward(self, x): return self.o(self.r(self.e(x))[0])
net = Tagger(); crit = nn.CrossEntropyLoss(ignore_index=-100); opt = torch.optim.Adam(net.parameters())
for x, y in DataLoader(rows, 8, shuffle=True, collate_fn=collate):
    opt.zero_grad(); crit(net(x).transpose(1, 2), y).backward(); opt.step()
""",
        "0",
        "-100",
    ),
    "a mean over padding": (
        """
class Enc(nn.Module):
    def __init__(self): super().__init__(); self.e, self.o = nn.Embedding(50, 8), nn.Linear(8, 2)
    def forward(self, x, n):
        m = (torch.arange(x.size(1))[None] < n[:, None]).unsqueeze(-1)
        h = self.e(x)
        return self.o((h * @@).sum(1) / n[:, None])
def col(b):
    n = torch.tensor([len(r) for r, _ in b])
    return nn.utils.rnn.pad_sequence([r for r, _ in b], batch_first=True), n, torch.tensor([y for _, y in b])
net = Enc(); opt = torch.optim.Adam(net.parameters())
for x, n, y in DataLoader(rows, 8, shuffle=True, collate_fn=col):
    opt.zero_grad(); F.cross_entropy(net(x, n), y).backward(); opt.step()
""",
        "~m",
        "m",
    ),
    "an entropy that is added": (
        """
class Loss:
    def __init__(self, c=0.01): self.c = c
    def __call__(self, dist, a, adv, v, ret):
        pg = -(dist.log_prob(a) * adv).mean()
        return pg + 0.5 * F.mse_loss(v, ret) @@ self.c * dist.entropy().mean()
class AC(nn.Module):
    def __init__(self): super().__init__(); self.p, self.v = nn.Linear(4, 2), nn.Linear(4, 1)
    def forward(self, s): return torch.distributions.Categorical(logits=self.p(s)), self.v(s).squeeze(-1)
ac, crit = AC(), Loss(); opt = torch.optim.Adam(ac.parameters())
for it in range(10):
    s = torch.randn(32, 4); d, v = ac(s); a = d.sample(); ret = torch.randn(32)
    loss = crit(d, a, (ret - v).detach(), v, ret); opt.zero_grad(); loss.backward(); opt.step()
""",
        "+",
        "-",
    ),
    "a divergence turned round": (
        """
class VAE(nn.Module):
    def __init__(self): super().__init__(); self.e, self.d = nn.Linear(8, 8), nn.Linear(4, 8)
    def forward(self, x):
        mu, lv = self.e(x).chunk(2, -1)
        return self.d(mu + torch.randn_like(mu) * (0.5 * lv).exp()), mu, lv
def divergence(mu, lv): return 0.5 * (@@).sum(-1).mean()
net = VAE(); opt = torch.optim.Adam(net.parameters())
for (x,) in DataLoader(TensorDataset(torch.randn(64, 8)), 8, shuffle=True):
    r, mu, lv = net(x)
    loss = F.mse_loss(r, x, reduction="none").sum(-1).mean() + divergence(mu, lv)
    opt.zero_grad(); loss.backward(); opt.step()
""",
        "1 + lv - mu.pow(2) - lv.exp()",
        "mu.pow(2) + lv.exp() - 1 - lv",
    ),
    "classes along the batch in a class": (
        """
class Acc:
    def __init__(self): self.ok = self.n = 0
    def add(self, z, y): self.ok += (torch.argmax(z, @@) == y).sum().item(); self.n += y.numel()
net = nn.Linear(8, 2); opt = torch.optim.Adam(net.parameters())
dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)

for x, y in dl:
    opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()

net.eval(); a = Acc()
with torch.no_grad():
    for x, y in DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8): a.add(net(x), y)
print(a.ok / a.n)
""",
        "0",
        "1",
    ),
    "a momentum that nothing calls": (
        """
class Byol(nn.Module):
    def __init__(self):
        super().__init__()
        self.online = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)); self.pred = nn.Linear(4, 4)
        self.target = copy.deepcopy(self.online)
        for p in self.target.parameters(): p.requires_grad_(False)
    @torch.no_grad()
    def momentum(self, m=0.99):
        for a, b in zip(self.online.parameters(), self.target.parameters()): b.data = b.data * m + a.data * (1 - m)
    def forward(self, x, y):
        p = F.normalize(self.pred(self.online(x)), dim=-1)
        with torch.no_grad(): t = F.normalize(self.target(y), dim=-1)
        return 2 - 2 * (p * t).sum(-1).mean()
net = Byol(); opt = torch.optim.Adam([*net.online.parameters(), *net.pred.parameters()])
for a, b in DataLoader(TensorDataset(torch.randn(64, 8), torch.randn(64, 8)), 8, shuffle=True):
    loss = net(a, b); opt.zero_grad(); loss.backward(); opt.step()
    @@
""",
        "print(loss.item())",
        "net.momentum()",
    ),
    "a state of which one part is loaded": (
        """
class State:
    def __init__(self, **parts): self.parts = parts
    def save(self, p, epoch): torch.save({**{k: v.state_dict() for k, v in self.parts.items()}, "epoch": epoch}, p)
    def load(self, p):
        s = torch.load(p)
        for k in @@: self.parts[k].load_state_dict(s[k])
        return s["epoch"] + 1
net = nn.Linear(8, 2); opt = torch.optim.AdamW(net.parameters()); sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 20)
st = State(net=net, opt=opt, sched=sched); first = st.load("s.pt")
dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)

for e in range(first, 20):
    for x, y in dl:
        opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
    sched.step(); st.save("s.pt", e)
""",
        '("net",)',
        "self.parts",
    ),
    "a warm-up in batches and a total in updates": (
        """
from transformers import get_linear_schedule_with_warmup
def schedule(opt, dl, epochs, accum):
    updates = epochs * len(dl) // accum
    return get_linear_schedule_with_warmup(opt, @@, updates)
net = nn.Linear(8, 2); opt = torch.optim.AdamW(net.parameters())
dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)

sched = schedule(opt, dl, 3, 4)
for e in range(3):
    for i, (x, y) in enumerate(dl, 1):
        (F.cross_entropy(net(x), y) / 4).backward()
        if i % 4 == 0 or i == len(dl):
            opt.step(); sched.step(); opt.zero_grad()
""",
        "len(dl)",
        "updates // 10",
    ),
}
"""A script with a place @@, what makes it wrong there, and what makes it right."""
HEALTHY: dict[str, str] = {
    "negatives that are corrupted positives": """
class TransE(nn.Module):
    def __init__(self): super().__init__(); self.e, self.r = nn.Embedding(100, 16), nn.Embedding(10, 16)
    def distance(self, t): return (self.e(t[:, 0]) + self.r(t[:, 1]) - self.e(t[:, 2])).norm(dim=-1)
def corrupt(pos):
    neg = pos.clone()
    side = torch.rand(len(pos)) < 0.5
    neg[side, 0] = torch.randint(0, 100, (int(side.sum()),))
    neg[~side, 2] = torch.randint(0, 100, (int((~side).sum()),))
    return neg
net = TransE(); opt = torch.optim.Adam(net.parameters())
for (pos,) in DataLoader(TensorDataset(torch.randint(0, 10, (64, 3))), 8, shuffle=True):
    neg = corrupt(pos)
    loss = F.relu(1.0 + net.distance(pos) - net.distance(neg)).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "negatives of the batch": """
net = nn.Linear(8, 4); opt = torch.optim.Adam(net.parameters())
for a, positive in DataLoader(TensorDataset(torch.randn(64, 8), torch.randn(64, 8)), 8, shuffle=True):
    za, zp = F.normalize(net(a), dim=-1), F.normalize(net(positive), dim=-1)
    sim = za @ zp.t() / 0.07
    pos = sim.diagonal()
    eye = torch.eye(len(sim), dtype=torch.bool)
    neg = sim[~eye].view(len(sim), -1)
    hardest_neg = zp[torch.randperm(len(zp))]
    rolled_negative = positive.roll(1, 0)
    loss = -(pos - torch.logsumexp(torch.cat([pos[:, None], neg], 1), 1)).mean() + 0 * hardest_neg.sum() + 0 * rolled_negative.sum()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "preferences with smoothed labels": """
def dpo(chosen_lp, rejected_lp, ref_chosen_lp, ref_rejected_lp, beta=0.1, eps=0.1):
    margin = (chosen_lp - rejected_lp) - (ref_chosen_lp - ref_rejected_lp)
    return (-F.logsigmoid(beta * margin) * (1 - eps) - F.logsigmoid(-beta * margin) * eps).mean()
def lp(m, ids): return m(ids).log_softmax(-1).mean((1, 2))
m = nn.Sequential(nn.Embedding(50, 8), nn.Linear(8, 50)); ref = copy.deepcopy(m).requires_grad_(False); opt = torch.optim.Adam(m.parameters())
for b in DataLoader(pairs, 8, shuffle=True):
    with torch.no_grad(): rc, rr = lp(ref, b["chosen"]), lp(ref, b["rejected"])
    both = lp(m, torch.cat([b["chosen"], b["rejected"]]))
    chosen, rejected = both.chunk(2)
    loss = dpo(chosen, rejected, rc, rr)
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "a weight of positives by counts": """
y = torch.randint(0, 2, (64,)).float()
n_pos = y.sum(); n_neg = len(y) - n_pos
pos_weight = n_neg / n_pos
pos_mask = y == 1; neg_mask = ~pos_mask
negatives = (y == 0).nonzero(); positives = (y == 1).nonzero()
crit = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
net = nn.Sequential(nn.Linear(8, 1), nn.Flatten(0)); opt = torch.optim.Adam(net.parameters())
for x, t in DataLoader(TensorDataset(torch.randn(64, 8), y), 8, shuffle=True):
    loss = crit(net(x), t); opt.zero_grad(); loss.backward(); opt.step()
""",
    "pairs that change places at random": """
class Pairs(Dataset):
    def __init__(self, rows): self.rows = rows
    def __len__(self): return len(self.rows)
    def __getitem__(self, i):
        chosen, rejected = self.rows[i]["chosen"], self.rows[i]["rejected"]
        label = 1.0
        if random.random() < 0.5:
            chosen, rejected = rejected, chosen
            label = 0.0
        return torch.tensor(chosen), torch.tensor(rejected), label
net = nn.Linear(8, 1); opt = torch.optim.Adam(net.parameters())
for a, b, y in DataLoader(Pairs(rows), 8, shuffle=True):
    loss = F.binary_cross_entropy_with_logits((net(a) - net(b)).squeeze(-1), y.float())
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "attention over slots": """
class Slots(nn.Module):
    def __init__(self, d, k):
        super().__init__()
        self.mu, self.q, self.k, self.v = nn.Parameter(torch.randn(1, k, d)), nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
    def forward(self, x):
        s = self.mu.expand(len(x), -1, -1)
        k, v = self.k(x), self.v(x)
        for _ in range(3):
            att = (self.q(s) @ k.transpose(-2, -1)).softmax(dim=1)
            s = att / att.sum(-1, keepdim=True) @ v
        return s
net = Slots(8, 4); opt = torch.optim.Adam(net.parameters())
for (x,) in DataLoader(TensorDataset(torch.randn(64, 10, 8)), 8, shuffle=True):
    loss = net(x).pow(2).mean(); opt.zero_grad(); loss.backward(); opt.step()
""",
    "attention in both directions": """
class Bi(nn.Module):
    def forward(self, c, q, cm, qm):
        s = c @ q.transpose(1, 2)
        a = s.masked_fill(~qm[:, None, :], -1e9).softmax(-1) @ q
        b = s.masked_fill(~cm[:, :, None], -1e9).softmax(1).transpose(1, 2) @ c
        return a, b
class Net(nn.Module):
    def __init__(self): super().__init__(); self.e, self.b, self.o = nn.Embedding(50, 8), Bi(), nn.Linear(16, 2)
    def forward(self, c, q):
        a, b = self.b(self.e(c), self.e(q), c != 0, q != 0)
        return self.o(torch.cat([a.mean(1), b.mean(1)], -1))
net = Net(); opt = torch.optim.Adam(net.parameters())
for c, q, y in DataLoader(TensorDataset(torch.randint(0, 50, (64, 9)), torch.randint(0, 50, (64, 5)), torch.randint(0, 2, (64,))), 8, shuffle=True):
    loss = F.cross_entropy(net(c, q), y); opt.zero_grad(); loss.backward(); opt.step()
""",
    "a softmax over time of one score": """
class Pool(nn.Module):
    def __init__(self): super().__init__(); self.s, self.o = nn.Linear(8, 1), nn.Linear(8, 2)
    def forward(self, h, m):
        w = self.s(h).masked_fill(~m[..., None], -1e4).softmax(dim=1)
        return self.o((w * h).sum(1))
def collate(rows):
    n = torch.tensor([len(r) for r, _ in rows])
    x = nn.utils.rnn.pad_sequence([r for r, _ in rows], batch_first=True)
    return x, torch.arange(x.size(1))[None] < n[:, None], torch.tensor([y for _, y in rows])
net = Pool(); opt = torch.optim.Adam(net.parameters())
for x, m, y in DataLoader(rows, 8, shuffle=True, collate_fn=collate):
    loss = F.cross_entropy(net(x, m), y); opt.zero_grad(); loss.backward(); opt.step()
""",
    "a part of the training as a reference": """
full = TensorDataset(torch.randn(100, 8), torch.randint(0, 2, (100,)))
train, val = random_split(full, [80, 20], generator=torch.Generator().manual_seed(0))
probe = Subset(train, range(20))
loaders = {"train": DataLoader(train, 8, shuffle=True), "val": DataLoader(val, 8), "train_probe": DataLoader(probe, 8)}
net = nn.Linear(8, 2); opt = torch.optim.Adam(net.parameters())
@torch.no_grad()
def acc(dl):
    net.eval(); r = np.mean([(net(x).argmax(1) == y).float().mean().item() for x, y in dl]); net.train(); return r
for e in range(3):
    for x, y in loaders["train"]:
        opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
    print(acc(loaders["val"]), acc(loaders["train_probe"]))
""",
    "folds": """
from sklearn.model_selection import KFold
X, y = np.random.randn(100, 8).astype("float32"), np.random.randint(0, 2, 100)
for tr, va in KFold(5, shuffle=True, random_state=0).split(X):
    mean, std = X[tr].mean(0), X[tr].std(0)
    make = lambda i, s: DataLoader(TensorDataset(torch.tensor((X[i] - mean) / std), torch.tensor(y[i])), 8, shuffle=s)
    a, b = make(tr, True), make(va, False)
    net = nn.Linear(8, 2); opt = torch.optim.Adam(net.parameters())
    for e in range(3):
        for x, t in a:
            opt.zero_grad(); F.cross_entropy(net(x), t).backward(); opt.step()
    with torch.no_grad(): print(sum((net(x).argmax(1) == t).sum().item() for x, t in b))
""",
    "a schedule that turns steps into epochs": """
class Cfg: epochs = 20; warmup_epochs = 2
cfg = Cfg(); net = nn.Linear(8, 2); opt = torch.optim.Adam(net.parameters())
dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)

spe = len(dl)
def factor(step):
    e = step / spe
    if e < cfg.warmup_epochs: return e / cfg.warmup_epochs
    return 0.5 * (1 + math.cos(math.pi * (e - cfg.warmup_epochs) / (cfg.epochs - cfg.warmup_epochs)))
sched = torch.optim.lr_scheduler.LambdaLR(opt, factor)
for e in range(cfg.epochs):
    for x, y in dl:
        opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step(); sched.step()
""",
    "a schedule that is given its place": """
net = nn.Linear(8, 2); opt = torch.optim.SGD(net.parameters(), 0.1); EPOCHS = 30
dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)

sched = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=EPOCHS)
for e in range(EPOCHS):
    for i, (x, y) in enumerate(dl):
        opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
        sched.step(e + i / len(dl))
""",
    "epochs of one rollout": """
class Pi(nn.Module):
    def __init__(self): super().__init__(); self.f = nn.Linear(4, 2)
    def forward(self, s): return torch.distributions.Categorical(logits=self.f(s))
pi = Pi(); opt = torch.optim.Adam(pi.parameters(), 3e-4); total_updates, ppo_epochs = 100, 4
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda u: 1 - u / total_updates)
for update in range(total_updates):
    s = torch.randn(64, 4)
    with torch.no_grad(): d = pi(s); a = d.sample(); old = d.log_prob(a)
    adv = torch.randn(64)
    for _ in range(ppo_epochs):
        for idx in torch.randperm(64).split(16):
            ratio = (pi(s[idx]).log_prob(a[idx]) - old[idx]).exp()
            loss = -torch.min(ratio * adv[idx], ratio.clamp(0.8, 1.2) * adv[idx]).mean()
            opt.zero_grad(); loss.backward(); opt.step()
    sched.step()
""",
    "a plan of steps": """
max_steps, epochs = 1000, 10
net = nn.Linear(8, 2); opt = torch.optim.Adam(net.parameters())
dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)

sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=max_steps)
step = 0
while step < max_steps:
    for x, y in dl:
        opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step(); sched.step()
        step += 1
        if step == max_steps: break
""",
    "rewards of progress": """
class Env:
    def reward(self, before, after):
        return self.distance(before) - self.distance(after)
    def distance(self, p): return float(np.linalg.norm(p))
def shaped_reward(prev_dist, dist): return prev_dist - dist - 0.01
def edit_reward(completions, truth, **k): return [-edit_distance(c, t) for c, t in zip(completions, truth)]
def close_reward(completions, truth, **k): return [math.exp(-abs(float(c) - t)) for c, t in zip(completions, truth)]
from trl import GRPOConfig, GRPOTrainer
GRPOTrainer("m", reward_funcs=[edit_reward, close_reward], args=GRPOConfig("o", num_generations=8, per_device_train_batch_size=8), train_dataset=ds).train()
""",
    "masked tokens": """
PAD, MASK = 0, 3
def mask_tokens(ids, p=0.15):
    labels = ids.clone()
    pick = (torch.rand(ids.shape) < p) & (ids != PAD)
    labels[~pick] = -100
    ids = ids.masked_fill(pick, MASK)
    return ids, labels
class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(50, 16, padding_idx=PAD); self.t = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, batch_first=True), 1); self.o = nn.Linear(16, 50)
    def forward(self, x): return self.o(self.t(self.e(x), src_key_padding_mask=x == PAD))
net = Bert(); opt = torch.optim.Adam(net.parameters())
for (ids,) in DataLoader(TensorDataset(torch.randint(0, 50, (64, 20))), 8, shuffle=True):
    x, y = mask_tokens(ids)
    loss = F.cross_entropy(net(x).flatten(0, 1), y.flatten()); opt.zero_grad(); loss.backward(); opt.step()
""",
    "a copy of the input": """
class Copy(nn.Module):
    def __init__(self): super().__init__(); self.e, self.enc, self.dec, self.o = nn.Embedding(50, 16), nn.GRU(16, 8, batch_first=True), nn.GRU(16, 8, batch_first=True), nn.Linear(8, 50)
    def forward(self, x):
        _, h = self.enc(self.e(x))
        d = F.pad(x, (1, 0))[:, :-1]
        return self.o(self.dec(self.e(d), h)[0])
net = Copy(); opt = torch.optim.Adam(net.parameters())
for (t,) in DataLoader(TensorDataset(torch.randint(0, 50, (64, 9))), 8, shuffle=True):
    loss = F.cross_entropy(net(t).flatten(0, 1), t.flatten()); opt.zero_grad(); loss.backward(); opt.step()
""",
    "a bank without gradients": """
class Bank:
    def __init__(self, net, data): self.net, self.data, self.z = net, data, None
    @torch.no_grad()
    def refresh(self): self.z = F.normalize(self.net(self.data), dim=-1)
net = nn.Linear(8, 4); data = torch.randn(64, 8); bank = Bank(net, data); opt = torch.optim.Adam(net.parameters())
for e in range(3):
    bank.refresh()
    for idx in torch.randperm(64).split(8):
        q = F.normalize(net(data[idx]), dim=-1)
        loss = F.cross_entropy(q @ bank.z.t() / 0.1, idx); opt.zero_grad(); loss.backward(); opt.step()
""",
    "losses kept until their sum": """
net = nn.Linear(8, 2); opt = torch.optim.Adam(net.parameters())
dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)

pending = []
for i, (x, y) in enumerate(dl):
    pending.append(F.cross_entropy(net(x), y))
    if len(pending) == 4:
        loss = torch.stack(pending).mean()
        opt.zero_grad(); loss.backward(); opt.step()
        pending = []
""",
    "log-probabilities of an episode": """
class Pi(nn.Module):
    def __init__(self): super().__init__(); self.f = nn.Linear(4, 2); self.saved, self.rewards = [], []
    def act(self, s):
        d = torch.distributions.Categorical(logits=self.f(s)); a = d.sample(); self.saved.append(d.log_prob(a)); return a.item()
pi = Pi(); opt = torch.optim.Adam(pi.parameters()); env = make()
for ep in range(100):
    s = env.reset(); done = False
    while not done:
        s, r, done = env.step(pi.act(torch.tensor(s))); pi.rewards.append(r)
    g, R = 0.0, []
    for r in reversed(pi.rewards): g = r + 0.99 * g; R.insert(0, g)
    R = torch.tensor(R); loss = -(torch.stack(pi.saved) * (R - R.mean())).sum()
    opt.zero_grad(); loss.backward(); opt.step()
    pi.saved, pi.rewards = [], []
""",
    "a running mean of detached losses": """
net = nn.Linear(8, 2); opt = torch.optim.Adam(net.parameters()); smooth = None
dl = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), 8, shuffle=True)

for x, y in dl:
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad(); loss.backward(); opt.step()
    smooth = loss.detach() if smooth is None else 0.9 * smooth + 0.1 * loss.detach()
print(smooth.item())
""",
    "transforms by split": """
from torchvision import transforms as T
tf = {"train": T.Compose([T.RandomCrop(32), T.ToTensor()]), "val": T.Compose([T.CenterCrop(32), T.ToTensor()])}
class I(Dataset):
    def __init__(self, f, split): self.f, self.tf = f, tf[split]
    def __len__(self): return len(self.f)
    def __getitem__(self, i): return self.tf(self.f[i][0]), self.f[i][1]
dls = {s: DataLoader(I(files[s], s), 8, shuffle=s == "train") for s in ("train", "val")}
net = nn.Sequential(nn.Flatten(), nn.LazyLinear(2)); opt = torch.optim.Adam(net.parameters())
for e in range(3):
    net.train()
    for x, y in dls["train"]:
        opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
    net.eval()
    with torch.no_grad(): print(sum((net(x).argmax(1) == y).sum().item() for x, y in dls["val"]))
""",
    "a scaler for each side": """
from sklearn.preprocessing import StandardScaler
df = pd.read_csv("a.csv"); tr = df.sample(frac=0.8, random_state=0); te = df.drop(tr.index)
val_df = te.sample(frac=0.5, random_state=1); test_df = te.drop(val_df.index)
sx, sy = StandardScaler(), StandardScaler()
x, y = sx.fit_transform(tr.drop(columns="y")), sy.fit_transform(tr[["y"]])
net = nn.Linear(8, 1); opt = torch.optim.Adam(net.parameters())
for a, b in DataLoader(TensorDataset(torch.tensor(x).float(), torch.tensor(y).float()), 8, shuffle=True):
    loss = F.mse_loss(net(a), b); opt.zero_grad(); loss.backward(); opt.step()
""",
    "members on draws of the training": """
rng = np.random.default_rng(0); n = 100; X, Y = torch.randn(n, 8), torch.randn(n)
order = rng.permutation(n); held = order[:20]; rest = order[20:]
nets = [nn.Linear(8, 1) for _ in range(3)]
for net in nets:
    train_idx = rng.choice(rest, len(rest))
    opt = torch.optim.Adam(net.parameters())
    for i in np.array_split(train_idx, 10):
        loss = F.mse_loss(net(X[i]).squeeze(-1), Y[i]); opt.zero_grad(); loss.backward(); opt.step()
with torch.no_grad(): print(torch.stack([net(X[held]) for net in nets]).mean())
""",
    "a tokenizer of the same family": """
from transformers import AutoTokenizer, AutoModelForCausalLM
tok = AutoTokenizer.from_pretrained("gpt2"); model = AutoModelForCausalLM.from_pretrained("distilgpt2")
tok.add_special_tokens({"pad_token": "<pad>"}); model.resize_token_embeddings(len(tok))
""",
    "a loss of real and fake": """
def hinge(real, fake): return F.relu(1 - real).mean() + F.relu(1 + fake).mean()
g, d = nn.Linear(4, 8), nn.Linear(8, 1)
og, od = torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters())
for (x,) in DataLoader(TensorDataset(torch.randn(64, 8)), 8, shuffle=True):
    fake = g(torch.randn(len(x), 4))
    ld = hinge(d(x), d(fake.detach())); od.zero_grad(); ld.backward(); od.step()
    lg = -d(fake).mean(); og.zero_grad(); lg.backward(); og.step()
""",
    "a schedule of epochs under Lightning": """
import lightning as L
class M(L.LightningModule):
    def __init__(self, epochs=20): super().__init__(); self.epochs, self.n = epochs, nn.Linear(8, 2)
    def training_step(self, b, i): return F.cross_entropy(self.n(b[0]), b[1])
    def configure_optimizers(self):
        o = torch.optim.Adam(self.parameters())
        return [o], [torch.optim.lr_scheduler.CosineAnnealingLR(o, T_max=self.epochs)]
""",
    "a soft target": """
def q_target(r, d, nq, logp, alpha): return r + 0.99 * (1 - d) * (nq - alpha * logp)
class A:
    def actor_loss(self, s):
        a, logp = self.actor.sample(s)
        return (self.alpha * logp - torch.min(*self.critic(s, a))).mean()
    def bonus(self, q, ent): return q + self.alpha * ent
""",
    "attention over the places of a sequence": """
class P(nn.Module):
    def __init__(self): super().__init__(); self.s, self.c = nn.Linear(8, 1), nn.Linear(8, 2)
    def forward(self, x):
        w = torch.softmax(self.s(x), dim=1)
        self.shown = w.squeeze(-1).T
        return self.c((w * x).sum(dim=1)), w.squeeze(-1).mean(0)
""",
    "losses of several tasks for one step": """
def back(net, batch, head): F.cross_entropy(net[head](net["body"](batch[0])), batch[1]).backward()
def main(loaders, accum=1):
    net = nn.ModuleDict({"body": nn.Linear(8, 8), "a": nn.Linear(8, 2), "b": nn.Linear(8, 3)})
    opt = torch.optim.Adam(net.parameters())
    for batches in zip(*loaders):
        opt.zero_grad()
        for batch, head in zip(batches, ("a", "b")): back(net, batch, head)
        opt.step()
""",
    "pairs that lie next to each other": """
def collate(rows):
    xs = []
    for r in rows:
        for side in sorted(("chosen", "rejected"), reverse=True): xs.append(torch.tensor(r[side]))
    return torch.stack(xs)
def main(net, rows):
    opt = torch.optim.Adam(net.parameters())
    for x in DataLoader(rows, 8, shuffle=True, collate_fn=collate):
        out = net(x).squeeze(-1); down, up = out[::2], out[1::2]
        loss = F.softplus(down - up).mean(); opt.zero_grad(); loss.backward(); opt.step()
""",
    "a sampler of a batch sampler": """
from torch.utils.data import BatchSampler, DistributedSampler
def main(ds, net, rank, world):
    dl = DataLoader(ds, 8, sampler=DistributedSampler(ds, world, rank) if world > 1 else None)
    net = nn.parallel.DistributedDataParallel(net); opt = torch.optim.Adam(net.parameters())
    for e in range(3):
        net.train()
        if isinstance(dl.batch_sampler, BatchSampler) and hasattr(dl.batch_sampler.sampler, "set_epoch"):
            dl.batch_sampler.sampler.set_epoch(epoch=e)
        for x, y in dl:
            opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
""",
}
NEAR = 6
"""Lines between a fault and what is named for it, or takes part in it."""


@pytest.mark.parametrize("kind", CASES)
def test_a_fault_is_found_where_it_is_and_its_twin_is_not_accused(kind: str, tmp_path: Path) -> None:
    text, wrong, right = CASES[kind]
    script = HEAD + text
    line = script[: script.index("@@")].count("\n") + 1
    found = inspect_script(_written(tmp_path, script.replace("@@", wrong))).findings
    near = range(line - NEAR, line + wrong.count("\n") + NEAR + 1)
    assert any(named in near for finding in found for named in (finding.line, *finding.lines))
    assert _accused(_written(tmp_path, script.replace("@@", right))) == []


@pytest.mark.parametrize("kind", HEALTHY)
def test_an_unusual_healthy_script_is_not_accused(kind: str, tmp_path: Path) -> None:
    assert _accused(_written(tmp_path, HEAD + HEALTHY[kind])) == []


def _written(folder: Path, text: str) -> Path:
    file = folder / "train.py"
    file.write_text(text, encoding="utf-8")
    return file


def _accused(file: Path) -> list[str]:
    """Return the rules that a script breaks for certain, or likely."""
    return [finding.rule for finding in inspect_script(file).findings if finding.certainty != "depends"]
