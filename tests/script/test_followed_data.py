"""Facts of data are followed from data sets and collators to losses and attention; healthy neighbours stay quiet."""

# ruff: noqa: E501 - a case stands on one line

from __future__ import annotations

from pathlib import Path

import pytest

from mldebug_mcp import inspect_script
from tests.script.test_kinds import rules_of

MASKS = """
import math
from torch.nn.utils.rnn import pad_sequence
PAD = 0
class Rows(Dataset):
    def __init__(self, rows):
        self.rows = rows
    def __getitem__(self, i):
        return torch.tensor(self.rows[i]["ids"]), int(self.rows[i]["y"])
def collate(items):
    seqs, ys = zip(*items)
    ids = pad_sequence(seqs, batch_first=True, padding_value=PAD)
    lengths = torch.tensor([len(s) for s in seqs])
    mask = MADE
    return {"ids": ids, "mask": mask, "y": torch.tensor(ys)}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.att, self.out = nn.Embedding(50, 16), nn.MultiheadAttention(16, 2, batch_first=True), nn.Linear(16, 3)
    def forward(self, ids, mask):
        x = self.emb(ids)
        scores = x @ x.transpose(1, 2) / 4
        USED
        return self.out(x)
def main(rows):
    net = Net()
    opt = torch.optim.Adam(net.parameters())
    for b in DataLoader(Rows(rows), 8, shuffle=True, collate_fn=collate):
        loss = F.cross_entropy(net(b["ids"], b["mask"]), b["y"])
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
REAL = (
    "ids != PAD",
    "torch.arange(ids.size(1))[None] < lengths[:, None]",
    "pad_sequence([torch.ones(len(s)) for s in seqs], batch_first=True)",
)
PADDING = ("ids.eq(PAD)", "torch.arange(ids.size(1))[None, :] >= lengths[:, None]", "~(ids != PAD)")
WANTS_REAL = (
    "x = (F.softmax(scores + (1 - mask[:, None].float()) * torch.finfo(x.dtype).min, -1) @ x).mean(1)",
    "x = (scores.masked_fill(mask[:, None] == 0, -1e4).softmax(-1) @ x).mean(1)",
    "x = F.scaled_dot_product_attention(x, x, x, attn_mask=mask[:, None, :].bool()).mean(1)",
    "x = (x * mask[..., None].float()).sum(1) / mask[..., None].float().sum(1).clamp(min=1)",
    "x = (torch.where(mask[:, None, :].bool(), scores, torch.full_like(scores, -math.inf)).softmax(-1) @ x).mean(1)",
)
WANTS_PADDING = (
    "x = ((scores + mask[:, None].float() * -1e9).softmax(-1) @ x).mean(1)",
    'x = (torch.softmax(scores.masked_fill(mask.unsqueeze(1).bool(), float("-inf")), dim=-1) @ x).mean(1)',
    "x = self.att(x, x, x, key_padding_mask=mask)[0].mean(1)",
    "x = x.masked_fill(mask.unsqueeze(-1).bool(), -1e4).max(1).values",
)


@pytest.mark.parametrize("used", [*WANTS_REAL, *WANTS_PADDING])
@pytest.mark.parametrize("made", [*REAL, *PADDING])
def test_a_mask_of_a_collator_that_hides_the_data_is_found(made: str, used: str, tmp_path: Path) -> None:
    inverted = (made in REAL) is not (used in WANTS_REAL)
    text = MASKS.replace("MADE", made).replace("USED", used)
    assert rules_of(tmp_path, text) == (["mask_inverted"] if inverted else [])


SHIFTS = """
class Text(Dataset):
    def __init__(self, ids, size):
        self.ids, self.size = ids, size
    def __len__(self):
        return (len(self.ids) - 1) // self.size
    def __getitem__(self, i):
        i = i * self.size
        return self.ids[i:i + self.size + 1]
def collate(rows):
    block = torch.stack(rows)
    return DATA
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.rnn, self.out = nn.Embedding(50, 16), nn.GRU(16, 16, batch_first=True), nn.Linear(16, 50)
    def forward(self, ids):
        return self.out(self.rnn(self.emb(ids))[0])
class Loss(nn.Module):
    def forward(self, logits, y):
        return LOSS
def main(text):
    ids = torch.tensor([ord(c) for c in text])
    net, compare = Net(), Loss()
    opt = torch.optim.Adam(net.parameters())
    for x, y in DataLoader(Text(ids, 32), 8, shuffle=True, collate_fn=collate):
        loss = compare(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
ONCE = "block[:, :-1], block[:, 1:].clone()"
AGAIN = "F.cross_entropy(logits[..., :-1, :].reshape(-1, 50), y[..., 1:].reshape(-1))"
PLAIN = "F.cross_entropy(logits.reshape(-1, 50), y.reshape(-1))"


@pytest.mark.parametrize(
    ("data", "loss", "found"),
    [
        (ONCE, AGAIN, ["shifted_twice"]),
        (ONCE, "F.cross_entropy(logits[:, :-1].transpose(1, 2), y[:, 1:])", ["shifted_twice"]),
        (ONCE, PLAIN, []),
        ("block, block", AGAIN, []),
        ("block[:, :-2], block[:, 2:]", PLAIN, []),
        ("block[:, :-2], block[:, 2:]", AGAIN, []),
    ],
)
def test_labels_that_a_collator_and_a_loss_module_shift_are_found(
    data: str, loss: str, found: list[str], tmp_path: Path
) -> None:
    assert rules_of(tmp_path, SHIFTS.replace("DATA", data).replace("LOSS", loss)) == found


SHAPES = """
class Rows(Dataset):
    def __init__(self, rows):
        self.rows = rows
    def __getitem__(self, i):
        return torch.tensor(self.rows[i]["x"]), TARGET
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(8, 1), nn.Linear(8, 1)])
    def forward(self, x):
        total = self.parts[0](x)
        for part in self.parts[1:]:
            total = total + part(x)
        return totalOUT
def run(net, loader, compare, opt):
    for x, y in loader:
        opt.zero_grad()
        compare(net(x), y).backward()
        opt.step()
def main(rows):
    net = Net()
    run(net, DataLoader(Rows(rows), 8, shuffle=True), nn.SmoothL1Loss(), torch.optim.Adam(net.parameters()))
"""


@pytest.mark.parametrize(
    ("target", "out", "found"),
    [
        ('float(self.rows[i]["y"])', "", ["shapes_broadcast"]),
        ('torch.tensor(float(self.rows[i]["y"]))', "", ["shapes_broadcast"]),
        ('float(self.rows[i]["y"])', ".squeeze(-1)", []),
        ('torch.tensor([float(self.rows[i]["y"])])', "", []),
        ('torch.tensor(float(self.rows[i]["y"])).unsqueeze(0)', "", []),
    ],
)
def test_targets_of_a_data_set_that_do_not_fit_an_output_are_found(
    target: str, out: str, found: list[str], tmp_path: Path
) -> None:
    assert rules_of(tmp_path, SHAPES.replace("TARGET", target).replace("OUT", out)) == found


def test_an_output_that_meets_the_same_data_in_two_shapes_is_found(tmp_path: Path) -> None:
    text = SHAPES.replace("TARGET", 'torch.tensor(self.rows[i]["y"])').replace("OUT", "")
    text = text.replace(
        "        opt.step()\n", "        opt.step()\n        print((net(x).detach().squeeze(-1) - y).abs().mean())\n", 1
    )
    assert rules_of(tmp_path, text) == ["shapes_broadcast"]


SPLITS = """
import numpy as np
import pandas as pd
HELPER
def main():
    table = pd.read_csv("a.csv")
    n = int(0.8 * len(table))
    MADE
    net = nn.Linear(3, 2)
    opt = torch.optim.Adam(net.parameters())
    for x, y in DataLoader(a, 32, shuffle=True):
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        for x, y in DataLoader(b, 32):
            print((net(x).argmax(1) == y).float().mean())
main()
"""
OWN = """
def pack(part):
    x = part[["u", "v", "w"]].to_numpy(np.float32)
    x = (x - x.mean(0)) / (x.std(0) + 1e-6)
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(part["y"].to_numpy()))
"""
SCALE = """
class Scale:
    def fit(self, x):
        self.m, self.s = x.mean(0), x.std(0)
        return self
def pack(part, scale):
    x = part.to_numpy(np.float32)
    return TensorDataset(torch.from_numpy((x - scale.m) / scale.s), torch.from_numpy(part["y"].to_numpy()))
"""


@pytest.mark.parametrize(
    ("helper", "made", "found"),
    [
        (OWN, "a, b = (pack(part) for part in (table[:n], table[n:]))", ["own_statistics"]),
        (
            OWN,
            "sets = {k: pack(v) for k, v in {'train': table[:n], 'val': table[n:]}.items()}; a, b = sets['train'], sets['val']",
            ["own_statistics"],
        ),
        (
            OWN,
            "a = pack(table[table['split'] == 'train']); b = pack(table[table['split'] == 'val'])",
            ["own_statistics"],
        ),
        (SCALE, "a, b = (pack(part, Scale().fit(part)) for part in (table[:n], table[n:]))", ["own_statistics"]),
        (SCALE, "scale = Scale().fit(table[:n]); a, b = (pack(part, scale) for part in (table[:n], table[n:]))", []),
        (OWN.replace("mean(0)", "mean(1)"), "a, b = (pack(part) for part in (table[:n], table[n:]))", []),
    ],
)
def test_slices_that_are_scaled_by_their_own_mean_are_found(
    helper: str, made: str, found: list[str], tmp_path: Path
) -> None:
    assert rules_of(tmp_path, SPLITS.replace("HELPER", helper).replace("MADE", made)) == found


def test_slices_that_a_function_cuts_are_named_as_they_are_written(tmp_path: Path) -> None:
    helper = OWN + "\ndef halves(frame):\n    n = int(len(frame) * 0.8)\n    return frame[:n], frame[n:]\n"
    made = "first, second = halves(table.sort_values('t').reset_index(drop=True)); a, b = pack(first), pack(second)"
    path = tmp_path / "train.py"
    path.write_text(SPLITS.replace("HELPER", helper).replace("MADE", made), encoding="utf-8")
    (finding,) = inspect_script(str(path)).findings
    assert finding.summary == "each of frame[:n] and frame[n:] is scaled by its own mean here"


AUGMENTED = """
from torch.utils.data import Subset, random_split
from torchvision import transforms as T
class Pictures(Dataset):
    def __init__(self, rows, augment=False, transform=None):
        self.rows, self.augment, self.transform = rows, augment, transform
    def jitter(self, x):
        return x * (0.8 + 0.4 * torch.rand(()))
    def __getitem__(self, i):
        x, y = torch.load(self.rows[i])
        if self.augment:
            x = self.jitter(x)
        return (x if self.transform is None else self.transform(x)), y
def loaders(rows, n):
    MADE
    return DataLoader(a, 32, shuffle=True), DataLoader(b, 32)
def main(rows, n):
    first, second = loaders(rows, n)
    net = nn.Linear(100, 10)
    opt = torch.optim.Adam(net.parameters())
    for x, y in first:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        print(sum((net(x).argmax(1) == y).sum().item() for x, y in second))
main([], 5)
"""


@pytest.mark.parametrize(
    ("made", "found"),
    [
        ("a, b = random_split(Pictures(rows, augment=True), [n, 9])", ["augmented_evaluation"]),
        (
            "full = Pictures(rows, transform=T.Compose([T.RandomHorizontalFlip(), T.ToTensor()])); a, b = (Subset(full, p) for p in (range(n), range(n, 9)))",
            ["augmented_evaluation"],
        ),
        ("a, b = Subset(Pictures(rows, augment=True), range(n)), Subset(Pictures(rows), range(n, 9))", []),
        ("a, b = random_split(Pictures(rows), [n, 9])", []),
        ("full = Pictures(rows, augment=True); a, b = random_split(full, [n, 9]); b.dataset = Pictures(rows)", []),
    ],
)
def test_subsets_of_one_augmented_data_set_are_found(made: str, found: list[str], tmp_path: Path) -> None:
    assert rules_of(tmp_path, AUGMENTED.replace("MADE", made)) == found


RESUMED = """
import os
net = nn.Linear(4, 2)
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=10)
start = 0
if os.path.exists("c.pt"):
    kept = torch.load("c.pt")
    net.load_state_dict(kept["net"])
    LOADED
    start = kept["epoch"] + 1
for epoch in range(start, 10):
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
    sched.step()
"""


@pytest.mark.parametrize(
    ("loaded", "found"),
    [
        ('opt.load_state_dict(kept["opt"])', ["state_left_out"]),
        (
            'for name, part in {"opt": opt, "sched": sched}.items():\n'
            "        if isinstance(part, nn.Module):\n            part.load_state_dict(kept[name])",
            ["state_left_out"],
        ),
        (
            'for name, part in {"opt": opt, "sched": sched}.items():\n'
            "        if not isinstance(part, (nn.Module, int)):\n            part.load_state_dict(kept[name])",
            [],
        ),
        ("pass", ["state_left_out"]),
        ('for name, part in {"opt": opt, "sched": sched}.items(): part.load_state_dict(kept[name])', []),
        ('opt.load_state_dict(kept["opt"])\n    for _ in range(kept["epoch"]): sched.step()', []),
        ("load_checkpoint(kept, opt, sched)", []),
    ],
)
def test_a_run_that_goes_on_without_a_state_is_found(loaded: str, found: list[str], tmp_path: Path) -> None:
    assert rules_of(tmp_path, RESUMED.replace("LOADED", loaded)) == found


def in_a_function(loaded: str) -> str:
    """Return a run that goes on where a path is given, as it is not by default."""
    lines = RESUMED.replace("LOADED", loaded).replace('if os.path.exists("c.pt"):', "if resume:").splitlines()
    return "\n".join(["def train(loader, resume=None):", *(f"    {line}" for line in lines)])


@pytest.mark.parametrize(
    ("loaded", "found"),
    [
        ("pass", ["state_left_out"]),
        ('opt.load_state_dict(kept["opt"])\n    sched.load_state_dict(kept["sched"])', []),
        ("restore(kept, opt, sched)", []),
        ('for part in (opt, sched): part.load_state_dict(kept["all"])', []),
    ],
)
def test_a_branch_that_a_default_leaves_out_is_read_as_well(loaded: str, found: list[str], tmp_path: Path) -> None:
    assert rules_of(tmp_path, in_a_function(loaded)) == found


EVENTS = """
import enum
from collections import defaultdict
class Moment(enum.Enum):
    STEP = enum.auto()
    UPDATED = enum.auto()
    DONE = enum.auto()
class Engine:
    def __init__(self, net, opt):
        self.net, self.opt, self.handlers = net, opt, defaultdict(list)
    def on(self, moment, function):
        self.handlers[moment].append(function)
    def fire(self, moment):
        for handle in self.handlers[moment]:
            handle(self)
    def run(self, loader):
        for x, y in loader:
            self.opt.zero_grad()
            F.cross_entropy(self.net(x), y).backward()
            self.opt.step()
            self.fire(Moment.FIRED)
        self.fire(Moment.DONE)
def average(engine):
    print("average")
def count(engine):
    print("step")
def report(engine):
    print("done")
def main(net, opt, loader):
    engine = Engine(net, opt)
    engine.on(Moment.UPDATED, average)
    engine.on(Moment.STEP, count)
    engine.on(Moment.DONE, report)
    engine.run(loader)
"""


@pytest.mark.parametrize(
    ("fired", "found"), [("STEP", ["handler_never_called"]), ("STEP)\n            self.fire(Moment.UPDATED", [])]
)
def test_a_handler_of_an_event_that_nothing_fires_is_found(fired: str, found: list[str], tmp_path: Path) -> None:
    assert rules_of(tmp_path, EVENTS.replace("FIRED", fired)) == found


WEIGHTED = """
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.pi, self.v = nn.Linear(4, 2), nn.Linear(4, 1)
WEIGHTS = {"policy": 1.0, "value": 0.5, "entropy": WEIGHT}
def losses(net, o, a, adv, ret, hp):
    d = torch.distributions.Categorical(logits=net.pi(o))
    parts = {"policy": -(d.log_prob(a) * adv).mean(), "value": (net.v(o).squeeze(-1) - ret).pow(2).mean(), "entropy": d.entropy().mean()}
    SUM
def main(hp, batches):
    net = Policy()
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    for batch in batches:
        loss = losses(net, *(part for part in batch), hp)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
SUMS = (
    "return sum(WEIGHTS[k] * v for k, v in parts.items())",
    "return torch.stack([WEIGHTS[k] * v for k, v in parts.items()]).sum()",
    "total = 0.0\n    for k in parts: total += WEIGHTS[k] * parts[k]\n    return total",
)


@pytest.mark.parametrize("total", [*SUMS, "return sum(hp.weights[k] * v for k, v in parts.items())"])
@pytest.mark.parametrize("weight", ["0.01", "-0.01"])
def test_an_entropy_that_a_mapping_of_weights_adds_is_found(weight: str, total: str, tmp_path: Path) -> None:
    found = ["entropy_sign"] if weight == "0.01" and total in SUMS else []
    assert rules_of(tmp_path, WEIGHTED.replace("WEIGHT}", f"{weight}}}").replace("SUM", total)) == found


MODES = """
from contextlib import contextmanager
@contextmanager
def kept(net):
    FIRST
    try:
        with torch.no_grad():
            yield
    finally:
        net.train(was)
def score(net, loader):
    BEGUN
    with kept(net):
        return sum((net(x).argmax(1) == y).sum().item() for x, y in loader)
def main(loader, held):
    net = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.1), nn.Linear(8, 2))
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    net.train()
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
        score(net, held)
"""


@pytest.mark.parametrize(
    ("first", "begun", "found"),
    [
        ("was = net.training; net.eval()", "pass", []),
        ("was = net.training; net.eval()", "net.eval()", ["never_back_to_training"]),
        ("net.eval(); was = net.training", "pass", ["never_back_to_training"]),
    ],
)
def test_a_mode_that_is_recorded_too_late_is_found(first: str, begun: str, found: list[str], tmp_path: Path) -> None:
    assert rules_of(tmp_path, MODES.replace("FIRST", first).replace("BEGUN", begun)) == found


CHOSEN = """
import numpy as np
import pandas as pd
table = pd.read_csv("rows.csv")
table = table[table.year > 2000]
data = np.load("rows.npz")
marks, y = data["split"], data["y"]
x = (data["x"] - data["x"][marks == 0].mean()) / data["x"][marks == 0].std()
x, y = x[:9000], y[:9000] * 1
class Rows(Dataset):
    def __init__(self, x, y, mirrored=False):
        self.x, self.y, self.mirrored = x, y, mirrored
    def __getitem__(self, i):
        return self.x[i], self.y[i]
def loader(k, trains):
    CHOICE
    return DataLoader(Rows(PART), 64, shuffle=trains)
train, held = LOADERS
net = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.1), nn.Linear(8, 2))
opt = torch.optim.AdamW(net.parameters(), 1e-3)
for epoch in range(9):
    net.train()
    for a, b in train:
        opt.zero_grad()
        F.cross_entropy(net(a), b).backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        print(sum((net(a).argmax(1) == b).sum().item() for a, b in held))
"""
CHOICES = (
    ("pass", "x[marks == k], y[marks == k], trains"),
    ("kept = marks == k", "x[kept], y[kept]"),
    ("places = np.flatnonzero(marks == k)", "x[places], y[places]"),
    ("part = table[table.fold == k]", "part.x, part.y"),
    ("part = table[table.fold != k]", "part.x, part.y"),
    ('part = table.query(f"fold == {k}")', "part.x, part.y"),
    ("part = table.filter(like=str(k), axis=0)", "part.x, part.y"),
)
APART = ("loader(0, True), loader(1, False)", "[loader(k, k == 0) for k in (0, 1)]")


@pytest.mark.parametrize("loaders", APART)
@pytest.mark.parametrize(("choice", "part"), CHOICES)
def test_rows_that_another_value_chooses_are_other_rows(choice: str, part: str, loaders: str, tmp_path: Path) -> None:
    text = CHOSEN.replace("CHOICE", choice).replace("PART", part).replace("LOADERS", loaders)
    assert rules_of(tmp_path, text) == []


@pytest.mark.parametrize("choice", [CHOICES[0], CHOICES[3]])
def test_rows_that_the_same_value_chooses_are_the_same(choice: tuple[str, str], tmp_path: Path) -> None:
    text = CHOSEN.replace("CHOICE", choice[0]).replace("PART", choice[1])
    assert rules_of(tmp_path, text.replace("LOADERS", "loader(0, True), loader(0, False)")) == ["same_data"]


COLUMNS = """
import pandas as pd
class Windows(Dataset):
    def __init__(self, values, target):
        self.values, self.target = torch.tensor(values), torch.tensor(target)
    def __getitem__(self, i):
        return self.values[i:i + 9], self.target[i + 9]
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.out = nn.LSTM(3, 8, batch_first=True), nn.Linear(8, 1)
    def forward(self, x):
        return self.out(self.lstm(x)[0][:, -1])
class Root(nn.Module):
    def forward(self, out, y):
        return torch.sqrt(torch.mean((out - y) ** 2))
table = pd.read_csv("power.csv").sort_index().ffill()
part = (table[:900] - table[:900].mean()) / table[:900].std()
net, compare = Net(), Root()
opt = torch.optim.Adam(net.parameters())
for x, y in DataLoader(Windows(part.values, TARGET), 8, shuffle=True):
    opt.zero_grad()
    compare(net(x), y).backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ('part["power"].values', ["shapes_broadcast"]),
        ('part["power"].fillna(0).to_numpy()', ["shapes_broadcast"]),
        ('part["power"].values[:, None]', []),
        ('part["power"].values.reshape(-1, 1)', []),
        ('part[["power"]].values', []),
    ],
)
def test_a_column_of_a_table_that_does_not_fit_an_output_is_found(
    target: str, found: list[str], tmp_path: Path
) -> None:
    assert rules_of(tmp_path, COLUMNS.replace("TARGET", target)) == found
