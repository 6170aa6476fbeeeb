"""Faults that go through helpers, classes and configurations are found; healthy neighbours of each are not accused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.script.test_kinds import rules_of

FAULTS: dict[str, list[str]] = {
    "runs_without_gradient": [
        """
class Block(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.fc = nn.Linear(i, o)
    def forward(self, x):
        return torch.relu(self.fc(x))
class Pair:
    def __init__(self):
        self.gen = nn.Sequential(Block(8, 16), nn.Linear(16, 4))
        self.dis = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
        self.opt_gen = torch.optim.Adam(self.gen.parameters(), 1e-4)
        self.opt_dis = torch.optim.Adam(self.dis.parameters(), 1e-4)
    @torch.no_grad()
    def draw(self, n):
        return self.gen(torch.randn(n, 8))
    def discriminate(self, real):
        loss = F.softplus(-self.dis(real)).mean() + F.softplus(self.dis(self.draw(len(real)))).mean()
        self.opt_dis.zero_grad()
        loss.backward()
        self.opt_dis.step()
    def generate(self, n):
        loss = F.softplus(-self.dis(self.draw(n))).mean()
        self.opt_gen.zero_grad()
        loss.backward()
        self.opt_gen.step()
def main(loader):
    pair = Pair()
    for real in loader:
        pair.discriminate(real)
        pair.generate(len(real))
main(loader)
""",
        """
class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 4, 3, padding=1)
    def forward(self, x):
        return x + self.conv(x)
def features(encoder, x):
    with torch.no_grad():
        return encoder(x).mean(2)
def main(loader):
    encoder, head = nn.Sequential(Part(), nn.Sequential(Part(), Part())), nn.Linear(4, 10)
    opt_encoder = torch.optim.AdamW(encoder.parameters(), 1e-4)
    opt_head = torch.optim.AdamW(head.parameters(), 1e-3)
    for x, y in loader:
        opt_encoder.zero_grad()
        opt_head.zero_grad()
        F.cross_entropy(head(features(encoder, x)), y).backward()
        opt_encoder.step()
        opt_head.step()
main(loader)
""",
    ],
}
FAULTS |= {
    "compared_across_prompts": [
        """
def whiten(rewards, k):
    table = rewards.reshape(k, -1)
    base, spread = table.mean(0), table.std(0)
    return ((table - base) / (spread + 1e-6)).reshape(-1)
def rollout(policy, prompts, judge, k):
    prompts = [p for p in prompts for _ in range(k)]
    texts = policy.write(prompts)
    return texts, whiten(judge(prompts, texts), k)
""",
        """
class Learner:
    def __init__(self, num_generations):
        self.num_generations = num_generations
    def advantage(self, scores):
        by_prompt = scores.view((-1, self.num_generations))
        return (by_prompt - torch.mean(by_prompt, dim=0, keepdim=True)).flatten()
""",
    ],
}
FAULTS |= {
    "clip_too_late": [
        """
class Loop:
    def __init__(self, net, opt):
        self.net, self.opt, self.hooks = net, opt, {}
    def add(self, when, function):
        self.hooks.setdefault(when, []).append(function)
    def emit(self, when):
        for hook in self.hooks.get(when, []):
            hook(self)
    def run(self, loader):
        for x, y in loader:
            self.opt.zero_grad()
            F.cross_entropy(self.net(x), y).backward()
            self.emit("gradients")
            self.opt.step()
            self.emit("updated")
def clip(loop):
    torch.nn.utils.clip_grad_norm_(loop.net.parameters(), 1.0)
def main(net, opt, loader):
    loop = Loop(net, opt)
    loop.add("updated", clip)
    loop.run(loader)
""",
        """
from collections import defaultdict
class Bus:
    def __init__(self):
        self.handlers = defaultdict(list)
    def on(self, event):
        def register(function):
            self.handlers[event].append(function)
            return function
        return register
    def fire(self, event, *given):
        for handle in self.handlers[event]:
            handle(*given)
bus = Bus()
@bus.on("after_step")
def limit(net):
    torch.nn.utils.clip_grad_value_(net.parameters(), 0.5)
def fit(net, opt, loader):
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
        bus.fire("after_step", net)
""",
    ],
}
FAULTS |= {
    "same_data": [
        """
from dataclasses import dataclass
@dataclass
class Config:
    root: str = "data"
    subset: str = "training"
class Volumes(Dataset):
    def __init__(self, folder):
        self.files = sorted(folder.glob("*.pt"))
    def __getitem__(self, i):
        return torch.load(self.files[i])
class Module:
    def __init__(self, config):
        self.config = config
    def loader(self, subset):
        rows = Volumes(self.config.root / self.config.subset)
        return DataLoader(rows, 8, shuffle=subset == "training")
    def loaders(self):
        return self.loader("training"), self.loader(subset="validation")
""",
        """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--split", default="train")
args = parser.parse_args()
def make(split, batch):
    rows = load_dataset("pile", split=args.split)
    if split == "train":
        rows = rows.shuffle()
    return DataLoader(rows, batch, shuffle=split == "train")
train_loader, test_loader = make("train", 8), make("test", 16)
""",
    ],
}
FAULTS |= {
    "schedule_units": [
        """
def plan(cfg, loader):
    total = cfg.epochs * len(loader)
    return total // 20, total
def fit(net, cfg, loader):
    opt = torch.optim.AdamW(net.parameters(), 1e-4)
    warmup, total = plan(cfg, loader)
    def factor(step):
        return min(1.0, step / warmup, (total - step) / (total - warmup))
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / warmup))
    for epoch in range(cfg.epochs):
        for i, (x, y) in enumerate(loader):
            (F.cross_entropy(net(x), y) / cfg.accum).backward()
            if (i + 1) % cfg.accum == 0 or i + 1 == len(loader):
                opt.step()
                sched.step()
                opt.zero_grad()
""",
        """
class Trainer:
    def __init__(self, net, rows, epochs):
        self.net, self.epochs = net, epochs
        self.loader = DataLoader(rows, batch_size=64, shuffle=True)
        self.opt = torch.optim.SGD(net.parameters(), 0.1)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, epochs * len(rows))
    def fit(self):
        for epoch in range(self.epochs):
            for x, y in self.loader:
                self.opt.zero_grad()
                F.cross_entropy(self.net(x), y).backward()
                self.opt.step()
                self.scheduler.step()
""",
    ],
}
FAULTS |= {
    "action_without_gradient": [
        """
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.spread = nn.Linear(3, 1), nn.Parameter(torch.zeros(1))
    def act(self, obs):
        dist = torch.distributions.Normal(self.mean(obs), self.spread.exp())
        action = dist.sample()
        return action.tanh(), dist.log_prob(action).sum(-1)
def improve(policy, q_net, opt, obs):
    action, logp = policy.act(obs)
    loss = (0.2 * logp - q_net(obs, action)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
policy, q_net = Policy(), torch.load("q.pt").eval()
opt = torch.optim.Adam(policy.parameters(), 3e-4)
for obs in loader:
    improve(policy, q_net, opt, obs)
""",
        """
from torch.distributions import Independent, Normal
def train(actor, critic, batches):
    actor_optimizer = torch.optim.Adam(actor.parameters(), 1e-4)
    critic_optimizer = torch.optim.Adam(critic.parameters(), 1e-3)
    for obs, action, target in batches:
        critic_optimizer.zero_grad()
        F.mse_loss(critic(torch.cat([obs, action], -1)), target).backward()
        critic_optimizer.step()
        mean, std = actor(obs)
        dist = Independent(Normal(mean, std), 1)
        drawn = dist.sample()
        value = critic(torch.cat([obs, drawn], -1))
        actor_optimizer.zero_grad()
        (-value.mean()).backward()
        actor_optimizer.step()
""",
    ],
}
FAULTS |= {
    "shapes_broadcast": [
        """
class Heads(nn.Module):
    def __init__(self, names):
        super().__init__()
        self.body = nn.Linear(8, 16)
        self.heads = nn.ModuleDict({name: nn.Sequential(nn.Linear(16, 1), nn.Softplus()) for name in names})
    def forward(self, x):
        h = self.body(x)
        return {name: head(h) for name, head in self.heads.items()}
def distance(guess, truth):
    return (truth - guess).abs().mean()
def fit(loader, names):
    net = Heads(names)
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    for x, y in loader:
        out = net(x)
        loss = sum(distance(out[name], y.reshape(-1)) for name in names)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
        """
class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.value = nn.Linear(8, 16), nn.Linear(16, 1)
    def forward(self, x):
        h = self.body(x)
        return h, self.value(h)
def discounted(rewards):
    total, found = 0.0, []
    for reward in rewards:
        total = reward + 0.9 * total
        found.append(total)
    return torch.stack(found).flatten()
def objective(net, obs, returns):
    _, value = net(obs)
    return torch.square(value - returns).mean()
net = Critic()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for obs, rewards in loader:
    loss = objective(net, obs, discounted(rewards))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ],
}
FAULTS |= {
    "activation_twice": [
        """
LAYERS = {"dense": lambda i, o: nn.Linear(i, o), "act": lambda: nn.ReLU(), "probs": lambda: nn.Softmax(dim=1)}
PLAN = [("dense", 8, 32), ("act",), ("dense", 32, 10), ("probs",)]
def build(plan):
    return nn.Sequential(*(LAYERS[name](*sizes) for name, *sizes in plan))
def fit(loader, path=None):
    net = build(torch.load(path) if path else PLAN)
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
""",
        """
CONFIG = dict(lr=1e-3, layers=[{"type": "Linear", "args": [8, 1]}, {"type": "Sigmoid", "args": []}])
class Built(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(getattr(nn, layer["type"])(*layer["args"]) for layer in layers)
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
def fit(loader):
    net, criterion = Built(CONFIG["layers"]), nn.BCEWithLogitsLoss()
    opt = torch.optim.Adam(net.parameters(), CONFIG["lr"])
    for x, y in loader:
        opt.zero_grad()
        criterion(net(x), y).backward()
        opt.step()
""",
    ],
}

HEALTHY: dict[str, str] = {
    "a generator that is drawn from without gradients for the critic alone": """
class Block(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.fc = nn.Linear(i, o)
    def forward(self, x):
        return torch.relu(self.fc(x))
class Pair:
    def __init__(self):
        self.gen = nn.Sequential(Block(8, 16), nn.Linear(16, 4))
        self.dis = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
        self.opt_gen = torch.optim.Adam(self.gen.parameters(), 1e-4)
        self.opt_dis = torch.optim.Adam(self.dis.parameters(), 1e-4)
    def draw(self, n):
        return self.gen(torch.randn(n, 8))
    def discriminate(self, real):
        with torch.no_grad():
            fake = self.draw(len(real))
        loss = F.softplus(-self.dis(real)).mean() + F.softplus(self.dis(fake)).mean()
        self.opt_dis.zero_grad()
        loss.backward()
        self.opt_dis.step()
    def generate(self, n):
        loss = F.softplus(-self.dis(self.draw(n))).mean()
        self.opt_gen.zero_grad()
        loss.backward()
        self.opt_gen.step()
def main(loader):
    pair = Pair()
    for real in loader:
        pair.discriminate(real)
        pair.generate(len(real))
main(loader)
""",
    "a frozen encoder of blocks whose features a head learns from": """
class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 4, 3, padding=1)
    def forward(self, x):
        return x + self.conv(x)
def features(encoder, x):
    with torch.no_grad():
        return encoder(x).mean(2)
def main(loader):
    encoder, head = nn.Sequential(Part(), Part()).eval(), nn.Linear(4, 10)
    opt = torch.optim.AdamW(head.parameters(), 1e-3)
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(head(features(encoder, x)), y).backward()
        opt.step()
main(loader)
""",
}
HEALTHY |= {
    "rewards of completions that lie prompt by prompt": """
def whiten(rewards, k):
    table = rewards.reshape(-1, k)
    base, spread = table.mean(1, keepdim=True), table.std(1, keepdim=True)
    return ((table - base) / (spread + 1e-6)).reshape(-1)
def rollout(policy, prompts, judge, k):
    prompts = [p for p in prompts for _ in range(k)]
    texts = policy.write(prompts)
    return texts, whiten(judge(prompts, texts), k)
""",
    "rewards of all prompts, round after round": """
def advantages(scores, group):
    table = scores.view(group, -1)
    return (table - table.mean(dim=0)).flatten()
def rollout(policy, prompts, judge, group):
    ids = prompts.repeat(group, 1)
    return advantages(judge(policy.write(ids)), group)
""",
}
HEALTHY |= {
    "a handler that clips before the step": """
class Loop:
    def __init__(self, net, opt):
        self.net, self.opt, self.hooks = net, opt, {}
    def add(self, when, function):
        self.hooks.setdefault(when, []).append(function)
    def emit(self, when):
        for hook in self.hooks.get(when, []):
            hook(self)
    def run(self, loader):
        for x, y in loader:
            self.opt.zero_grad()
            F.cross_entropy(self.net(x), y).backward()
            self.emit("gradients")
            self.opt.step()
            self.emit("updated")
def clip(loop):
    torch.nn.utils.clip_grad_norm_(loop.net.parameters(), 1.0)
def main(net, opt, loader):
    loop = Loop(net, opt)
    loop.add("gradients", clip)
    loop.run(loader)
""",
    "a handler of the end of a round, whose gradient the next round steps with": """
from collections import defaultdict
class Bus:
    def __init__(self):
        self.handlers = defaultdict(list)
    def on(self, event):
        def register(function):
            self.handlers[event].append(function)
            return function
        return register
    def fire(self, event, *given):
        for handle in self.handlers[event]:
            handle(*given)
bus = Bus()
@bus.on("batch_done")
def limit(net):
    torch.nn.utils.clip_grad_value_(net.parameters(), 0.5)
def fit(net, opt, loader):
    for x, y in loader:
        F.cross_entropy(net(x), y).backward()
        bus.fire("batch_done", net)
        opt.step()
        opt.zero_grad()
""",
}
HEALTHY |= {
    "a split that is asked for, or else that of the configuration": """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--split", default="train")
args = parser.parse_args()
def make(batch, split=None):
    rows = load_dataset("pile", split=split or args.split)
    return DataLoader(rows, batch, shuffle=split != "test")
train_loader, test_loader = make(8), make(16, "test")
""",
    "a configuration that is changed for each split": """
from dataclasses import dataclass, replace
@dataclass
class Config:
    root: str = "data"
    split: str = "train"
def make(config, split):
    rows = load_dataset(config.root, config.split)
    return DataLoader(rows, 8, shuffle=split == "train")
config = Config()
train_loader = make(config, "train")
val_loader = make(replace(config, split="val"), "val")
""",
}
HEALTHY |= {
    "a schedule of updates that a helper counts": """
def plan(cfg, n_batches):
    total = cfg.epochs * -(-n_batches // cfg.accum)
    return total // 20, total
def fit(net, cfg, loader):
    opt = torch.optim.AdamW(net.parameters(), 1e-4)
    warmup, total = plan(cfg, len(loader))
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / warmup, (total - s) / total))
    for epoch in range(cfg.epochs):
        for i, (x, y) in enumerate(loader):
            (F.cross_entropy(net(x), y) / cfg.accum).backward()
            if (i + 1) % cfg.accum == 0 or i + 1 == len(loader):
                opt.step()
                sched.step()
                opt.zero_grad()
""",
    "rows divided by the size of a batch": """
class Trainer:
    def __init__(self, net, rows, epochs, batch_size):
        self.net, self.epochs = net, epochs
        self.loader = DataLoader(rows, batch_size=batch_size, shuffle=True, drop_last=True)
        self.opt = torch.optim.SGD(net.parameters(), 0.1)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, epochs * (len(rows) // batch_size))
    def fit(self):
        for epoch in range(self.epochs):
            for x, y in self.loader:
                self.opt.zero_grad()
                F.cross_entropy(self.net(x), y).backward()
                self.opt.step()
                self.scheduler.step()
""",
}
HEALTHY |= {
    "an action that is drawn with its gradient, and another for the target": """
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.spread = nn.Linear(3, 1), nn.Parameter(torch.zeros(1))
    def act(self, obs):
        dist = torch.distributions.Normal(self.mean(obs), self.spread.exp())
        action = dist.rsample()
        return action.tanh(), dist.log_prob(action).sum(-1)
    @torch.no_grad()
    def explore(self, obs):
        action = torch.distributions.Normal(self.mean(obs), 1.0).sample()
        return action
def improve(policy, q_net, opt, obs):
    action, logp = policy.act(obs)
    loss = (0.2 * logp - q_net(obs, action)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
policy, q_net = Policy(), torch.load("q.pt").eval()
opt = torch.optim.Adam(policy.parameters(), 3e-4)
for obs in loader:
    improve(policy, q_net, opt, obs)
""",
    "a log-probability that is weighted by the value of its action": """
from torch.distributions import Normal
def train(actor, critic, batches):
    opt = torch.optim.Adam(actor.parameters(), 1e-4)
    for obs in batches:
        dist = Normal(*actor(obs))
        action = dist.sample()
        loss = -(dist.log_prob(action) * critic(obs, action).detach()).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
}
HEALTHY |= {
    "heads of one output against columns": """
class Heads(nn.Module):
    def __init__(self, names):
        super().__init__()
        self.body = nn.Linear(8, 16)
        self.heads = nn.ModuleDict({name: nn.Sequential(nn.Linear(16, 1), nn.Softplus()) for name in names})
    def forward(self, x):
        h = self.body(x)
        return {name: head(h).squeeze(-1) for name, head in self.heads.items()}
def distance(guess, truth):
    return (truth - guess).abs().mean()
def fit(loader, names):
    net = Heads(names)
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    for x, y in loader:
        out = net(x)
        loss = sum(distance(out[name], y.reshape(-1)) for name in names)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    "all pairs of scores": """
class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.score = nn.Linear(8, 16), nn.Linear(16, 1)
    def forward(self, x):
        return self.score(torch.relu(self.body(x)))
def objective(net, x, y):
    score = net(x)
    above = score - score.view(-1)
    return F.softplus(-above)[y.view(-1, 1) > y.view(-1)].mean()
net = Scorer()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for x, y in loader:
    loss = objective(net, x, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}
HEALTHY |= {
    "a softmax that a configuration may choose, and does not put at the end": """
LAYERS = {"dense": lambda i, o: nn.Linear(i, o), "act": lambda: nn.ReLU(), "probs": lambda: nn.Softmax(dim=1)}
PLAN = [("dense", 8, 32), ("probs",), ("dense", 32, 10)]
def build(plan):
    return nn.Sequential(*(LAYERS[name](*sizes) for name, *sizes in plan))
def fit(loader):
    net = build(PLAN)
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
""",
    "a sigmoid at the end, and a loss of probabilities": """
CONFIG = dict(lr=1e-3, layers=[{"type": "Linear", "args": [8, 1]}, {"type": "Sigmoid", "args": []}])
class Built(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(getattr(nn, layer["type"])(*layer["args"]) for layer in layers)
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
def fit(loader):
    net, criterion = Built(CONFIG["layers"]), nn.BCELoss()
    opt = torch.optim.Adam(net.parameters(), CONFIG["lr"])
    for x, y in loader:
        opt.zero_grad()
        criterion(net(x), y).backward()
        opt.step()
""",
}

CASES = [pytest.param(rule, text, id=f"{rule}-{n}") for rule, texts in FAULTS.items() for n, text in enumerate(texts)]


@pytest.mark.parametrize(("rule", "text"), CASES)
def test_a_fault_behind_helpers_is_found(rule: str, text: str, tmp_path: Path) -> None:
    assert rules_of(tmp_path, text) == [rule]


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in HEALTHY.items()])
def test_a_healthy_neighbour_is_not_accused(text: str, tmp_path: Path) -> None:
    assert rules_of(tmp_path, text) == []
