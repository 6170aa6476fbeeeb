"""A fault is found, and its healthy twin is not accused."""

# ruff: noqa: E501 - a case stands on one line

from __future__ import annotations

from pathlib import Path

import pytest

from tests.script.test_kinds import rules_of

RESUMED = """
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import MADE, set_state_dict
def train(model, loader, path, resume):
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    if resume:
        state = STATE
        dcp.load(state, checkpoint_id=path)
        set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"])
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
"""
FOLLOWER = """
class Pair(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.online = nn.Sequential(encoder, nn.Linear(512, 64))
        self.target = copy.deepcopy(self.online).requires_grad_(False)
    @torch.no_grad()
    def update(self, m=0.996):
        for o, t in zip(self.online.parameters(), self.target.parameters()):
            t.data = m * t.data + (1 - m) * o.data
    def forward(self, a, b):
        with torch.no_grad():
            seen = self.target(b)
        return 2 - 2 * F.cosine_similarity(self.online(a), seen).mean()
def train(encoder, loader):
    pair = Pair(encoder)
    opt = torch.optim.AdamW(pair.online.parameters(), 3e-4)
    for a, b in loader:
        loss = pair(a, b)
        opt.zero_grad()
        loss.backward()
        opt.step()
        pair.update()
"""
BEST = """
def train(model, opt, loader, evaluate):
    best, waited = float("inf"), 0
    for epoch in range(9):
        for x, y in loader:
            opt.zero_grad()
            F.cross_entropy(model(x), y).backward()
            opt.step()
        total, rows = evaluate(model)
        CHOICE
"""
CTC = """
def train(model, loader):
    ctc, opt = nn.CTCLoss(zero_infinity=True), torch.optim.Adam(model.parameters(), 3e-4)
    for x, y, lengths, counts in loader:
        out = model(x).ENDS(2).transpose(0, 1)
        opt.zero_grad()
        ctc(out, y, lengths, counts).backward()
        opt.step()
"""
PAIRS = """
def train(image, text, scale, loader, opt):
    for a, b in loader:
        i, t = F.normalize(image(a), dim=AXIS), F.normalize(text(b), dim=-1)
        logits = scale.exp() * i @ t.t()
        opt.zero_grad()
        F.cross_entropy(logits, torch.arange(len(a))).backward()
        opt.step()
"""
NOISE = """
net = nn.Linear(8, 8)
opt = torch.optim.Adam(net.parameters(), 1e-3)
for step in range(100):
    x = torch.randn(64, 8).sign()
    noise = torch.randn_like(x)
    opt.zero_grad()
    F.mse_loss(net(0.6 * x + 0.8 * noise), TARGET).backward()
    opt.step()
"""
CHUNKS = """
from contextlib import nullcontext
class Chunks(nn.Module):
    def predict(self, rows, learn):
        context = nullcontext if learn else torch.no_grad
        with context():
            return self.model(rows)
    def fit(self, loader, opt):
        for rows in loader:
            first = self.predict(rows, False)
            opt.zero_grad()
            (self.predict(rows, True) * first).sum().backward()
            opt.step()
"""
PARTS = """
class Rows(Dataset):
    def __init__(self, path, transform=None, /):
        self.rows, self.transform = torch.load(path), transform
    def __getitem__(self, i, /):
        return self.rows[i] if self.transform is None else self.transform(self.rows[i])
def train(model, opt):
    for x, y in DataLoader(Rows("rows.pt"), 8ORDER):
        opt.zero_grad()
        F.cross_entropy(model(x), y).backward()
        opt.step()
"""
PATHS = """
def join(out, query):
    NAME = (query * torch.tanh(out).mean(1)).sum(-1)
    return (F.softmax(NAME, dim=0)[:, None, None] * out).sum(0)
"""
MADE_EMPTY = '{"model": model.state_dict(), "optim": optimizer.state_dict()}'
TWINS = {
    "moments that are not loaded": (RESUMED.replace("STATE", MADE_EMPTY).replace("MADE", "StateDictOptions"), "state_left_out"),
    "moments that are loaded": (RESUMED.replace("STATE", 'dict(zip(("model", "optim"), get_state_dict(model, optimizer)))').replace("MADE", "get_state_dict"), ""),
    "a follower in a model that is made twice": (FOLLOWER, ""),
    "a follower whose update does nothing": (FOLLOWER.replace("t.data = m * t.data + (1 - m) * o.data", "m * t.data"), "target_never_updated"),
    "a best that nothing beats": (BEST.replace("CHOICE", "if total / rows > best: best = total / rows"), "best_is_worst"),
    "a best that is beaten": (BEST.replace("CHOICE", "if total / rows < best: best = total / rows"), ""),
    "a wait for a better value": (BEST.replace("CHOICE", "if total > best: waited += 1\n        else: best, waited = total, 0"), ""),
    "probabilities for CTC": (CTC.replace("ENDS", "softmax"), "nll_of_probabilities"),
    "log-probabilities for CTC": (CTC.replace("ENDS", "log_softmax"), ""),
    "scaled vectors over the batch": (PAIRS.replace("AXIS", "0"), "normalized_over_batch"),
    "scaled vectors of rows": (PAIRS.replace("AXIS", "-1"), ""),
    "a target that is drawn outside of functions": (NOISE.replace("TARGET", "torch.randn_like(x)"), "target_is_random"),
    "a target that the input is made with": (NOISE.replace("TARGET", "noise"), ""),
    "a caller that decides on gradients": (CHUNKS, ""),
    "attention over paths along the first axis": (PATHS.replace("NAME", "attn_score"), ""),
    "outputs that add up over the batch": (PATHS.replace("NAME", "logits"), "softmax_over_batch"),
    "rows in one order, of parameters by place alone": (PARTS.replace("ORDER", ""), "not_shuffled"),
    "rows in a random order, of parameters by place alone": (PARTS.replace("ORDER", ", shuffle=True"), ""),
}  # fmt: skip


@pytest.mark.parametrize(("text", "rule"), [pytest.param(*twin, id=name) for name, twin in TWINS.items()])
def test_a_fault_is_found_and_its_twin_is_not_accused(text: str, rule: str, tmp_path: Path) -> None:
    assert rules_of(tmp_path, text) == [rule] * bool(rule)
