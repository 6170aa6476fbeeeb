"""Each kind of fault is found in other hands' styles, and healthy scripts of the same styles are not accused."""

from __future__ import annotations

from pathlib import Path

import pytest

from mldebug_mcp import inspect_script

HEAD = """\
import copy
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset, random_split
from torch.nn.utils.rnn import pad_sequence
"""

FAULTS: dict[str, list[str]] = {
    "ignored_where_masked": [
        """
class Masking:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
    def __call__(self, rows):
        ids = torch.stack(rows)
        labels = ids.clone()
        drawn = torch.bernoulli(torch.full(ids.shape, 0.15)).bool()
        labels[drawn] = -100
        replaced = torch.bernoulli(torch.full(ids.shape, 0.8)).bool() & drawn
        ids[replaced] = self.tokenizer.mask_token_id
        return {"input_ids": ids, "labels": labels}
""",
        """
MASK_ID, IGNORE = 4, -1
def corrupt(tokens, p):
    hide = (torch.rand(tokens.shape) < p) & (tokens > 4)
    return tokens.masked_fill(hide, MASK_ID), torch.where(~hide, tokens, IGNORE)
""",
    ],
    "state_not_loaded": [
        """
def follow(target, net, rate):
    new = net.state_dict()
    for key, value in target.state_dict().items():
        target.state_dict()[key] = rate * value + (1 - rate) * new[key]
""",
        """
def follow(slow, net, rate):
    state = {key: value.clone() for key, value in slow.state_dict().items()}
    for key, value in net.state_dict().items():
        state[key] = state[key] * rate + value * (1 - rate)
""",
    ],
    "augments_in_forward": [
        """
from torchvision.transforms import v2
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = v2.Compose([v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32)])
        self.fc = nn.Linear(3072, 10)
    def forward(self, x):
        return self.fc(self.mix(x).flatten(1))
def train(train_loader, val_loader):
    net = Net()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(9):
        net.train()
        for x, y in train_loader:
            opt.zero_grad()
            F.cross_entropy(net(x), y).backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            print(sum((net(x).argmax(1) == y).sum().item() for x, y in val_loader))
""",
        """
import kornia.augmentation as K
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = K.ColorJitter(0.2, 0.2, 0.2, 0.1)
        self.fc = nn.Linear(3072, 10)
    def forward(self, x):
        x = self.mix(x)
        return self.fc(x.flatten(1))
def train(train_loader, val_loader):
    net = Net()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(9):
        net.train()
        for x, y in train_loader:
            opt.zero_grad()
            F.cross_entropy(net(x), y).backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            print(sum((net(x).argmax(1) == y).sum().item() for x, y in val_loader))
""",
    ],
    "rate_that_nobody_reads": [
        """
def train(net, loader):
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(9):
        opt.lr = 1e-3 * 0.5 ** epoch
        for x, y in loader:
            opt.zero_grad()
            F.mse_loss(net(x), y).backward()
            opt.step()
""",
    ],
    "result_unused": [
        """
def train(net, opt, loader):
    state = torch.zeros(8, 64)
    for x, y in loader:
        opt.zero_grad()
        out, state = net(x, state)
        F.mse_loss(out, y).backward()
        opt.step()
        state.detach()
""",
        """
def train(net, opt, loader):
    for x, y in loader:
        opt.zero_grad()
        z = net(x)
        F.normalize(z, dim=-1)
        F.mse_loss(z, y).backward()
        opt.step()
""",
    ],
    "argument_unused": [
        """
def rows(data, smooth):
    return data.float()
def main(data, net, opt):
    one, other = rows(data, 0.1), rows(data, 0.5)
    F.mse_loss(net(one), other).backward()
    opt.step()
""",
    ],
    "scale_not_used": [
        """
class Fit:
    def __init__(self, net, opt):
        self.net, self.opt, self.scaler = net, opt, torch.amp.GradScaler("cuda")
    def update(self, x, y):
        self.opt.zero_grad()
        with torch.autocast("cuda"):
            loss = F.mse_loss(self.net(x), y)
        self.scaler.scale(loss)
        loss.backward()
        self.scaler.step(self.opt)
        self.scaler.update()
""",
    ],
    "activation_twice": [
        """
class D(nn.Module):
    def __init__(self):
        super().__init__()
        layers = []
        for a, b in ((10, 20), (20, 1)):
            layers += [nn.Linear(a, b), nn.ReLU()]
        layers[-1] = nn.Sigmoid()
        self.net = nn.Sequential(*layers)
    def forward(self, x): return self.net(x).squeeze(1)
def main(dl):
    d = D(); crit = nn.BCEWithLogitsLoss()
    opt = torch.optim.Adam(d.parameters(), 1e-3)
    for x, y in dl:
        loss = crit(d(x), y.float())
        opt.zero_grad(); loss.backward(); opt.step()
""",
    ],
    "clip_scaled": [
        """
def make_step(net, opt, scaler, max_norm):
    def step(x, y):
        with torch.autocast("cuda"):
            loss = F.cross_entropy(net(x), y)
        opt.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(net.parameters(), max_norm)
        scaler.step(opt)
        scaler.update()
        return loss.detach()
    return step
def main(net, dl):
    opt = torch.optim.SGD(net.parameters(), 0.1)
    step = make_step(net, opt, torch.amp.GradScaler("cuda"), 1.0)
    for x, y in dl:
        print(step(x, y))
""",
    ],
    "not_shuffled": [
        """
def make(split, bs):
    return DataLoader(Images(split), batch_size=bs, shuffle=False, num_workers=4)
def main(m):
    train, val = make("train", 32), make("val", 64)
    opt = torch.optim.Adam(m.parameters(), 1e-3)
    for x, y in train:
        loss = F.cross_entropy(m(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
""",
    ],
    "nll_of_logits": [
        """
from torchvision import models
net = models.resnet18()
net.fc = nn.Linear(512, 10)
opt = torch.optim.Adam(net.parameters(), 1e-3)
for x, y in loader:
    opt.zero_grad()
    F.nll_loss(net(x), y).backward()
    opt.step()
""",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 3)
    def forward(self, x): return self.b(F.relu(self.a(x)))
def main(dl):
    n = Net(); opt = torch.optim.Adam(n.parameters(), 1e-3)
    for x, y in dl:
        loss = F.nll_loss(n(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
""",
    ],
    "loss_cut_off": [
        """
net = nn.Linear(2, 1)
opt = torch.optim.Adam(net.parameters(), 1e-3)
for step in range(100):
    opt.zero_grad()
    of_data = torch.mean((u - net(points).detach()) ** 2)
    of_rest = net(others).pow(2).sum()
    loss = of_data + of_rest
    loss.backward()
    opt.step()
""",
        """
import lightning as L
class M(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 2)
    def training_step(self, batch, i):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        return loss.item()
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-3)
""",
    ],
    "no_backward": [
        """
import lightning as L
class M(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 2)
    def training_step(self, batch, i):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.log("loss", loss)
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-3)
""",
    ],
    "divided_twice": [
        """
import lightning as L
class M(L.LightningModule):
    def training_step(self, batch, i):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        return loss / 4
t = L.Trainer(accumulate_grad_batches=4, max_epochs=3)
""",
    ],
    "old_log_prob_with_gradient": [
        """
def update(policy, opt, batch, epochs, clip):
    obs, act, adv = batch
    for _ in range(epochs):
        old_logp = policy(obs).log_prob(act)
        logp = policy(obs).log_prob(act)
        ratio = (logp - old_logp).exp()
        loss = -torch.min(ratio * adv, ratio.clamp(1 - clip, 1 + clip) * adv).mean()
        opt.zero_grad(); loss.backward(); opt.step()
""",
        """
def update(policy, opt, batch, epochs, clip):
    obs, act, adv = batch
    for _ in range(epochs):
        with torch.no_grad():
            old_logp = policy(obs).log_prob(act)
        logp = policy(obs).log_prob(act)
        ratio = (logp - old_logp).exp()
        loss = -torch.min(ratio * adv, ratio.clamp(1 - clip, 1 + clip) * adv).mean()
        opt.zero_grad(); loss.backward(); opt.step()
""",
        """
def improve(actor, adam, states, actions, weights, passes=4, rows=64, eps=0.2):
    for _ in range(passes):
        with torch.no_grad():
            before_old_logp = actor(states).log_prob(actions)
        for places in torch.randperm(len(states)).split(rows):
            r = torch.exp(actor(states[places]).log_prob(actions[places]) - before_old_logp[places])
            goal = torch.min(r * weights[places], r.clamp(1 - eps, 1 + eps) * weights[places])
            adam.zero_grad()
            (-goal.mean()).backward()
            adam.step()
""",
    ],
    "accumulation_cleared": [
        """
def main(net, dl, opt, accum=8):
    for i, (x, y) in enumerate(dl):
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y) / accum
        loss.backward()
        if not (i + 1) % accum:
            opt.step()
""",
    ],
    "backward_in_autocast": [
        """
def main(net, dl, opt):
    amp = torch.autocast("cuda", dtype=torch.float16)
    scaler = torch.amp.GradScaler("cuda")
    for x, y in dl:
        opt.zero_grad()
        with amp:
            loss = F.cross_entropy(net(x), y)
            scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
""",
    ],
    "ema_never_updated": [
        """
class Follower:
    def __init__(self, net):
        self.net = copy.deepcopy(net).eval()
    @torch.no_grad()
    def move(self, net, m=0.99):
        for mine, theirs in zip(self.net.parameters(), net.parameters()):
            mine.mul(m).add(theirs, alpha=1 - m)
""",
        """
class Shadow:
    def __init__(self, net):
        self.net = copy.deepcopy(net).eval()
    @torch.no_grad()
    def follow(self, net):
        for mine, theirs in zip(self.net.parameters(), net.parameters()):
            mine.lerp(theirs, 0.01)
""",
        """
class EMA:
    def __init__(self, net, decay=0.999):
        self.net = copy.deepcopy(net).eval()
        self.decay = decay
    @torch.no_grad()
    def update(self, net):
        for a, b in zip(self.net.parameters(), net.parameters()):
            a.lerp_(b, 1 - self.decay)
def main(train, valid):
    net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))
    ema = EMA(net)
    opt = torch.optim.AdamW(net.parameters(), 1e-3)
    for ep in range(9):
        for x, y in train:
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad(); loss.backward(); opt.step()
        with torch.no_grad():
            print(ep, np.mean([(ema.net(x).argmax(1) == y).float().mean().item() for x, y in valid]))
""",
        """
from torch.optim.swa_utils import AveragedModel
def run(net, train, valid, epochs):
    ema = AveragedModel(net, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.999))
    opt = torch.optim.AdamW(net.parameters(), 1e-3)
    for ep in range(epochs):
        net.train()
        for x, y in train:
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad(); loss.backward(); opt.step()
        ema.eval()
        with torch.no_grad():
            acc = np.mean([(ema(x).argmax(1) == y).float().mean().item() for x, y in valid])
        print(ep, acc)
""",
    ],
    "loss_sign": [
        """
def elbo(recon, x, mu, logvar):
    rec = F.mse_loss(recon, x, reduction="sum")
    kl = 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return rec + kl
vae = nn.Linear(8, 8)
opt = torch.optim.Adam(vae.parameters(), 1e-3)
for x in loader:
    out, mu, logvar = vae(x)
    loss = elbo(out, x, mu, logvar)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        """
flow = nn.Linear(2, 2)
opt = torch.optim.Adam(flow.parameters(), 1e-3)
for x in loader:
    base = torch.distributions.Normal(flow(x), 1.0)
    loss = base.log_prob(x).sum(-1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        """
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 2)
    def forward(self, obs):
        return torch.distributions.Categorical(logits=self.body(obs))
policy = Policy()
opt = torch.optim.Adam(policy.parameters(), 1e-3)
for obs, actions, returns in loader:
    log_probs = policy(obs).log_prob(actions)
    loss = (log_probs * returns).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ],
    "entropy_sign": [
        """
policy = nn.Linear(4, 2)
opt = torch.optim.Adam(policy.parameters(), 1e-3)
for obs, actions, advantages in loader:
    dist = torch.distributions.Categorical(logits=policy(obs))
    loss = -(dist.log_prob(actions) * advantages).mean() + 0.01 * dist.entropy().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ],
    "target_is_the_same": [
        """
class Learner:
    def __init__(self, net, opt):
        self.online = net
        self.target = self.online
        self.opt = opt
    def learn(self, obs, target):
        loss = F.mse_loss(self.online(obs), target)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
    def sync(self):
        self.target.load_state_dict(self.online.state_dict())
""",
    ],
    "weights_kept_by_reference": [
        """
def fit(net, opt, loader, valid):
    best = 0.0
    for epoch in range(9):
        for x, y in loader:
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        score = accuracy(net, valid)
        if score > best:
            best = score
            best_weights = net.state_dict()
    net.load_state_dict(best_weights)
""",
    ],
    "runs_without_gradient": [
        """
class Embedder(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body
    def forward(self, x):
        return self.body(x).mean(1)
def main(full, small, loader):
    teacher, student = Embedder(full), Embedder(small)
    opt = torch.optim.Adam(teacher.parameters(), 1e-4)
    for x in loader:
        with torch.no_grad():
            goal = teacher(x)
        loss = F.mse_loss(student(x), goal)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
        """
encoder, head = nn.Linear(8, 4), nn.Linear(4, 2)
opt = torch.optim.Adam([*encoder.parameters(), *head.parameters()], 1e-3)
for x, y in loader:
    with torch.no_grad():
        z = encoder(x)
    loss = F.cross_entropy(head(z), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ],
    "returns_past_the_end": [
        """
def td_loss(q, target, batch, gamma=0.99):
    obs, action, reward, after, done = batch
    with torch.no_grad():
        goal = reward + gamma * target(after).max(1).values
    return F.smooth_l1_loss(q(obs).gather(1, action[:, None]).squeeze(1), goal)
""",
        """
def collect(envs, policy, steps, gamma):
    rewards, dones = [], []
    obs = envs.reset()
    for _ in range(steps):
        obs, reward, done, info = envs.step(policy(obs))
        rewards.append(reward)
        dones.append(done)
    running = torch.zeros(n_envs)
    returns = []
    for reward in reversed(rewards):
        running = reward + gamma * running
        returns.insert(0, running)
    return returns
""",
    ],
    "target_with_gradient": [
        """
def update(q, opt, obs, action, reward, after, done, gamma):
    following = q(after).max(1, keepdim=True)[0]
    goal = reward + gamma * (1 - done) * following
    loss = F.smooth_l1_loss(q(obs).gather(1, action), goal)
    opt.zero_grad()
    loss.backward()
    opt.step()
    q.eval()
""",
        """
def update(q, opt, obs, action, reward, after, done, gamma):
    value = q(obs).gather(1, action)
    goal = reward + gamma * (1 - done) * q(after).max(1, keepdim=True)[0]
    loss = F.mse_loss(value, goal)
    opt.zero_grad()
    loss.backward()
    opt.step()
    q.eval()
""",
        """
class Learner:
    def learn(self, state, reward, after, over):
        worth = self.critic(state).squeeze(-1)
        goal = reward + self.gamma * (1.0 - over) * self.critic(after).squeeze(-1)
        difference = goal - worth
        error = difference.pow(2).mean()
        self.adam.zero_grad()
        error.backward()
        self.adam.step()
        self.critic.eval()
""",
        """
def update(actor, critic, opt, state, action, reward, after, done, gamma):
    advantage = reward + gamma * critic(after) * (1 - done) - critic(state)
    loss = -(actor(state).log_prob(action) * advantage.detach()).mean() + advantage.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    critic.eval()
""",
    ],
    "clipped_the_wrong_way": [
        """
def policy_loss(new, old, adv, eps):
    ratio = (new - old).exp()
    return -torch.max(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv).mean()
""",
    ],
    "schedule_of_another": [
        """
left, right = nn.Linear(4, 4), nn.Linear(4, 4)
opt_left = torch.optim.Adam(left.parameters(), 1e-3)
opt_right = torch.optim.Adam(right.parameters(), 1e-3)
plan_left = torch.optim.lr_scheduler.StepLR(opt_left, 30)
plan_right = torch.optim.lr_scheduler.StepLR(opt_left, 30)
for epoch in range(90):
    plan_left.step()
    plan_right.step()
""",
    ],
    "weights_on_a_mean": [
        """
def loss_of(logits, labels, mask):
    return (F.cross_entropy(logits, labels) * mask).sum() / mask.sum()
""",
        """
criterion = nn.MSELoss()
def weighted(out, y, sample_weight):
    loss = criterion(out, y)
    return (loss * sample_weight).mean()
""",
    ],
    "workers_alike": [
        """
class Aug(Dataset):
    def __init__(self, x):
        self.x = x
        self.gen = torch.Generator().manual_seed(0)
    def __len__(self): return len(self.x)
    def __getitem__(self, i):
        return self.x[i] + torch.randn(self.x[i].shape, generator=self.gen)
dl = DataLoader(Aug(x), 32, shuffle=True, num_workers=8)
""",
        """
def start(worker):
    np.random.seed(0)
loader = DataLoader(rows, 8, shuffle=True, num_workers=4, worker_init_fn=start)
""",
        """
class Noisy(Dataset):
    def __init__(self, rows):
        self.rows = rows
        self.rng = np.random.default_rng(7)
    def __len__(self):
        return len(self.rows)
    def __getitem__(self, i):
        return self.rows[i] + self.rng.normal(size=3)
loader = DataLoader(Noisy(rows), 8, shuffle=True, num_workers=4)
""",
        """
import argparse
from torch.utils.data import IterableDataset
parser = argparse.ArgumentParser()
parser.add_argument("--workers", type=int, default=8)
args = parser.parse_args()
class Series(IterableDataset):
    def __init__(self, length, seed=0):
        self.length, self.seed = length, seed
    def __iter__(self):
        rng = np.random.default_rng(self.seed)
        while True:
            yield torch.from_numpy(rng.normal(size=self.length))
loader = DataLoader(Series(64), 8, num_workers=args.workers)
""",
        """
from torch.utils.data import IterableDataset
class Lines(IterableDataset):
    def __init__(self, lines):
        self.lines, self.epoch = lines, 0
    def _order(self):
        drawn = torch.Generator()
        drawn.manual_seed(7 + self.epoch)
        return torch.randperm(len(self.lines), generator=drawn)
    def __iter__(self):
        yield from (self.lines[i] for i in self._order())
stream = Lines(lines)
config = {"batch_size": 8, "num_workers": 2}
loader = DataLoader(stream, **config)
""",
    ],
    "sum_times_rows": [
        """
def one_pass(net, loader, objective):
    total = rows = 0
    for x, y in loader:
        loss = objective(net(x), y)
        total += loss.item() * x.size(0)
        rows += x.size(0)
    return total / rows
objective = nn.CrossEntropyLoss(reduction="sum")
one_pass(net, loader, objective)
""",
    ],
    "head_frozen": [
        """
from torchvision.models import resnet18
net = resnet18(weights="DEFAULT")
net.fc = nn.Linear(512, 5)
for name, p in net.named_parameters():
    if "fc" in name:
        p.requires_grad = False
""",
        """
from transformers import AutoModelForSequenceClassification
model = AutoModelForSequenceClassification.from_pretrained("base", num_labels=2)
for name, p in model.named_parameters():
    p.requires_grad_("classifier" not in name)
""",
    ],
    "arguments_swapped": [
        """
for x, labels in loader:
    logits = net(x)
    loss = F.cross_entropy(labels, logits)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ],
    "divergence_of_probabilities": [
        """
def distill(student, teacher, t):
    return F.kl_div(F.softmax(student / t, -1), F.softmax(teacher / t, -1), reduction="batchmean")
""",
        """
soft = nn.KLDivLoss(reduction="batchmean")
def distill(student, teacher):
    return soft(F.log_softmax(student, -1), F.log_softmax(teacher, -1))
""",
    ],
    "softmax_over_batch": [
        """
def predict(net, x):
    logits = net(x)
    return F.softmax(logits, dim=0).argmax(1)
""",
    ],
    "mask_inverted": [
        """
class Tagger(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 4), 2)
    def forward(self, x, ids):
        mask = ids != PAD
        return self.encoder(x, src_key_padding_mask=mask)
""",
        """
def attend(q, k, v):
    scores = q @ k.transpose(-2, -1)
    mask = torch.tril(torch.ones(q.size(-2), k.size(-2)))
    scores = scores.masked_fill(mask == 1, float("-inf"))
    return scores.softmax(-1) @ v
""",
    ],
    "ignored_index_differs": [
        """
def collate(rows):
    labels = pad_sequence(rows, batch_first=True, padding_value=-1)
    return labels
objective = nn.CrossEntropyLoss(ignore_index=-100)
""",
    ],
    "shuffled_apart": [
        """
x = x[torch.randperm(len(x))]
y = y[torch.randperm(len(y))]
""",
    ],
    "split_twice": [
        """
def sets(rows, n):
    train = random_split(rows, [n, len(rows) - n])[0]
    held = random_split(rows, [n, len(rows) - n])[1]
    return train, held
""",
    ],
    "rows_by_batches": [
        """
def accuracy(net, loader):
    net.eval()
    right = 0
    for x, y in loader:
        right += (net(x).argmax(1) == y).sum().item()
    return right / len(loader)
""",
    ],
    "best_is_worst": [
        """
from transformers import Trainer, TrainingArguments
def arguments(out):
    return TrainingArguments(out, save_total_limit=2, metric_for_best_model="rmse")
""",
        """
def keep(val_loss, best_loss, net):
    if val_loss > best_loss:
        best_loss = val_loss
        torch.save(net.state_dict(), "best.pt")
    return best_loss
""",
    ],
    "wrong_collator": [
        """
from transformers import AutoModelForCausalLM, DataCollatorForLanguageModeling, Trainer
model = AutoModelForCausalLM.from_pretrained("small")
Trainer(model=model, data_collator=DataCollatorForLanguageModeling(tokenizer), train_dataset=rows).train()
""",
    ],
    "plateau_of_the_wrong_side": [
        """
plan = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=3)
for epoch in range(9):
    train(net, opt)
    val_acc = evaluate(net)
    plan.step(val_acc)
""",
    ],
    "stepped_twice": [
        """
scaler = torch.amp.GradScaler()
for x, y in loader:
    opt.zero_grad()
    loss = F.mse_loss(net(x), y)
    scaler.scale(loss).backward()
    scaler.step(opt)
    opt.step()
    scaler.update()
""",
    ],
    "state_not_detached": [
        """
class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(8, 8)
        self.out = nn.Linear(8, 9)
    def forward(self, x, state):
        h, state = self.rnn(x, state)
        return self.out(h), state
words = Words()
opt = torch.optim.Adam(words.parameters(), 1e-3)
state = None
for x, y in loader:
    logits, state = words(x, state)
    loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
""",
    ],
    "fitted_before_split": [
        """
def series(path):
    values = read(path).to_numpy()
    centre, spread = values.mean(0), values.std(0)
    values = (values - centre) / spread
    cut = int(0.8 * len(values))
    return values[:cut], values[cut - 24:]
""",
        """
def load(path):
    table = np.load(path)
    x, y = table[:, :-1], table[:, -1]
    x = (x - x.mean(0)) / x.std(0)
    idx = np.random.permutation(len(x))
    cut = int(0.8 * len(x))
    return x[idx[:cut]], y[idx[:cut]], x[idx[cut:]], y[idx[cut:]]
""",
        """
from sklearn.preprocessing import MinMaxScaler
def cut(path, n):
    scaler = MinMaxScaler()
    values = scaler.fit_transform(table(path))
    early = values[:n]
    late = values[n:]
    return early, late
""",
    ],
    "groups_do_not_fit": [
        """
from trl import GRPOConfig, GRPOTrainer
args = GRPOConfig("out", per_device_train_batch_size=6, gradient_accumulation_steps=1, num_generations=4)
GRPOTrainer(model, reward_funcs=score, args=args, train_dataset=rows).train()
""",
    ],
    "own_statistics": [
        """
class Sensors(Dataset):
    def __init__(self, table, length):
        values = np.asarray(table, dtype="float32")
        mean, std = values.mean(0), values.std(0)
        self.values = torch.from_numpy((values - mean) / std)
        self.length = length
    def __len__(self):
        return len(self.values) - self.length
    def __getitem__(self, i):
        return self.values[i:i + self.length], self.values[i + self.length]
parts = {"train": table[:800], "valid": table[800:]}
train_set, valid_set = Sensors(parts["train"], 24), Sensors(parts["valid"], 24)
""",
        """
class Spectra(Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y
        self.mu = torch.mean(x, dim=0)
        self.sigma = torch.std(x, dim=0).clamp_min(1e-6)
    def __len__(self):
        return len(self.x)
    def __getitem__(self, i):
        return (self.x[i] - self.mu) / self.sigma, self.y[i]
def sets(x, y):
    return [Spectra(rows, y) for rows in (x[:900], x[900:])]
""",
        """
def scaled(rows):
    return (rows - rows.mean(0)) / rows.std(0)
x_train, x_valid = scaled(first), scaled(second)
""",
    ],
    "advantage_with_gradient": [
        """
policy, critic = nn.Linear(4, 2), nn.Linear(4, 1)
opt = torch.optim.Adam([*policy.parameters(), *critic.parameters()], 1e-3)
for obs, action, ret in loader:
    chosen = torch.distributions.Categorical(logits=policy(obs)).log_prob(action)
    gain = ret - critic(obs).squeeze(-1)
    loss = -(chosen * gain).mean() + gain.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ],
    "padding_in_loss": [
        """
from transformers import AutoTokenizer, AutoModelForCausalLM, Trainer, TrainingArguments
tok = AutoTokenizer.from_pretrained("gpt2")
def prep(b):
    out = tok(b["text"], padding="max_length", truncation=True, max_length=256)
    out["labels"] = out["input_ids"].copy()
    return out
ds = raw.map(prep, batched=True)
Trainer(model=AutoModelForCausalLM.from_pretrained("gpt2"), args=TrainingArguments("o"), train_dataset=ds).train()
""",
        """
def batchify(rows):
    ids = pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
    return ids[:, :-1], ids[:, 1:]
def fit(lm, loader, opt):
    for inputs, targets in loader:
        logits = lm(inputs)
        loss = F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
        """
class Tagger:
    def __init__(self, net, rate):
        self.net = net
        self.opt = torch.optim.Adam(net.parameters(), rate)
        self.objective = nn.CrossEntropyLoss()
    def collate(self, rows):
        words, tags = zip(*rows)
        return pad_sequence(words, True, padding_value=PAD), pad_sequence(tags, True, padding_value=PAD)
    def update(self, words, tags):
        scores = self.net(words)
        loss = self.objective(scores.transpose(1, 2), tags)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
""",
        """
PAD_ID = 0
class Captions(Dataset):
    def __getitem__(self, i):
        tokens = self.tokens[i]
        return self.images[i], torch.tensor(tokens + [PAD_ID] * (self.longest - len(tokens)))
def training_loss(model, images, captions):
    out = model(images, captions[:, :-1])
    return F.cross_entropy(out.flatten(0, 1), captions[:, 1:].flatten())
for images, captions in loader:
    opt.zero_grad()
    training_loss(model, images, captions).backward()
    opt.step()
""",
    ],
    "layers_in_a_list": [
        """
class Experts(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.experts = [self.make() for _ in range(n)]
    def make(self):
        return nn.Linear(4, 4)
    def forward(self, x):
        return sum(expert(x) for expert in self.experts)
""",
        """
class Tower(nn.Module):
    def __init__(self, widths):
        super().__init__()
        blocks = []
        for a, b in zip(widths, widths[1:]):
            blocks.append(nn.Linear(a, b))
        self.blocks = blocks
    def forward(self, x):
        for block in self.blocks:
            x = block(x).relu()
        return x
""",
        """
class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.inner = nn.Linear(d, d)
    def forward(self, x):
        return x + self.inner(x)
class Stack(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        self.layers = tuple(Block(d) for _ in range(n))
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
""",
        """
class Base(nn.Module):
    pass
class Tasks(Base):
    def __init__(self, names):
        super().__init__()
        self.body = nn.LSTM(8, 8)
        self.out = {}
        for name in names:
            self.out[name] = nn.Linear(8, 1)
    def forward(self, x, name):
        return self.out[name](self.body(x)[0])
""",
    ],
    "accumulation_not_divided": [
        """
def micro_step(net, batch):
    x, y = batch
    loss = F.mse_loss(net(x), y)
    loss.backward()
    return loss.item()
for i, batch in enumerate(loader):
    total += micro_step(net, batch)
    if (i + 1) % 8 == 0 or i + 1 == len(loader):
        opt.step()
        opt.zero_grad()
""",
        """
class Runner:
    def run(self):
        for number, (x, y) in enumerate(self.loader, 1):
            last = number == len(self.loader)
            update_now = number % self.cfg.window == 0 or last
            loss = F.cross_entropy(self.net(x), y)
            self.scaler.scale(loss).backward()
            if not update_now:
                continue
            self.scaler.step(self.opt)
            self.scaler.update()
            self.opt.zero_grad()
""",
        """
held = 0
for x, y in loader:
    loss = loss_fn(net(x), y)
    loss.backward()
    held += 1
    if held == every:
        opt.step()
        opt.zero_grad()
        held = 0
""",
    ],
    "losses_kept": [
        """
def main(m, tr, va):
    opt = torch.optim.Adam(m.parameters(), 1e-3)
    for ep in range(5):
        m.train()
        for x, y in tr:
            loss = F.cross_entropy(m(x), y)
            opt.zero_grad(); loss.backward(); opt.step()
        m.eval()
        val = 0
        for x, y in va:
            val += F.cross_entropy(m(x), y)
        print(val / len(va))
""",
        """
def score(net, loader):
    net.eval()
    kept = []
    for x, y in loader:
        out = net(x)
        kept.append(F.cross_entropy(out, y))
    return torch.stack(kept).mean().item()
for x, y in train_loader:
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    opt.step()
""",
        """
def batch_loss(net, batch):
    x, y = batch
    return (net(x) - y).abs().mean()
def validate(net, batches):
    summed = 0
    for batch in batches:
        summed += batch_loss(net, batch)
    return float(summed / len(batches))
for batch in train:
    opt.zero_grad()
    batch_loss(net, batch).backward()
    opt.step()
    net.eval()
    validate(net, held_out)
    net.train()
""",
        """
class Fit:
    def epoch(self):
        running = 0.0
        for x, y in self.loader:
            self.opt.zero_grad()
            loss = self.criterion(self.net(x), y)
            loss.backward()
            self.opt.step()
            running = running + loss * len(x)
        return running
""",
    ],
    "augmented_evaluation": [
        """
aug = T.Compose([T.RandomCrop(32, 4), T.RandomHorizontalFlip(), T.ToTensor()])
full = datasets.ImageFolder(root, transform=aug)
train_part, val_part = random_split(full, [0.9, 0.1])
train_loader = DataLoader(train_part, 64, shuffle=True)
val_loader = DataLoader(val_part, 64)
""",
        """
class Data(L.LightningDataModule):
    def __init__(self):
        super().__init__()
        self.tf = transforms.Compose([transforms.RandAugment(), transforms.ToTensor()])
    def train_dataloader(self):
        return DataLoader(CIFAR10("data", train=True, transform=self.tf), 64, shuffle=True)
    def val_dataloader(self):
        return DataLoader(CIFAR10("data", train=False, transform=self.tf), 64)
""",
        """
class Photos(Dataset):
    def __init__(self, files):
        self.files = files
        self.change = A.Compose([A.HorizontalFlip(p=0.5), A.RandomBrightnessContrast(), A.Normalize()])
    def __getitem__(self, i):
        return self.change(image=read(self.files[i]))["image"]
loaders = {"train": DataLoader(Photos(train_files), 32, shuffle=True), "valid": DataLoader(Photos(valid_files), 32)}
""",
    ],
    "same_data": [
        """
from transformers import Trainer
Trainer(model=model, args=args, train_dataset=rows["train"].map(encode), eval_dataset=rows["train"].select(few)).train()
""",
        """
import keras
model = keras.Sequential([keras.layers.Dense(1)])
model.compile(optimizer="adam", loss="mse")
model.fit(x, y, validation_data=(x[:1000], y[:1000]))
""",
        """
from transformers import Trainer
Trainer(model=model, args=args, train_dataset=rows["train"], eval_dataset=rows["train"]).train()
""",
        """
import lightning as L
L.Trainer(max_epochs=3).fit(model, loader, loader)
""",
        """
def load(root, part):
    rows = torch.load(root / "rows.pt")
    return DataLoader(TensorDataset(rows["x"], rows["y"]), 64, shuffle=True)
def main(root, net, opt):
    fit, held_out = load(root, "train"), load(root, "val")
    for x, y in fit:
        opt.zero_grad()
        F.mse_loss(net(x), y).backward()
        opt.step()
""",
        """
rows = load_dataset("imdb", split="train")
train_loader = DataLoader(load_dataset("imdb", split="train"), 32, shuffle=True)
valid_loader = DataLoader(rows, 32)
""",
        """
cut = int(0.8 * len(x))
x_train, y_train = x[:cut], y[:cut]
x_val, y_val = x[:cut], y[:cut]
train = DataLoader(TensorDataset(x_train, y_train), 32, shuffle=True)
val = DataLoader(TensorDataset(x_val, y_val), 32)
""",
        """
def loaders(data, order, n):
    first = Subset(data, order[:n])
    second = Subset(data, order[:n])
    return DataLoader(first, 32, shuffle=True), DataLoader(second, 64)
train_dl, test_dl = loaders(data, order, 100)
""",
    ],
    "target_never_updated": [
        """
def regress(q, lagged, opt, batch):
    s, a, r, s2 = batch
    with torch.no_grad():
        goal = r + 0.9 * lagged(s2).max(1).values
    loss = F.mse_loss(q(s).gather(1, a).squeeze(1), goal)
    opt.zero_grad()
    loss.backward()
    opt.step()
def train(memory):
    q, slow_q = nn.Linear(4, 2), nn.Linear(4, 2)
    slow_q.load_state_dict(q.state_dict())
    opt = torch.optim.Adam(q.parameters(), 1e-3)
    for batch in memory:
        regress(q, slow_q, opt, batch)
train(replay)
""",
        """
class Agent:
    def __init__(self, n):
        self.q = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, n))
        self.q_target = copy.deepcopy(self.q)
        self.q_target.eval()
        self.opt = torch.optim.Adam(self.q.parameters(), 1e-3)
    def learn(self, s, a, r, s2, done):
        with torch.no_grad():
            best = r + (1 - done) * 0.99 * self.q_target(s2).max(1).values
        loss = F.smooth_l1_loss(self.q(s).gather(1, a).squeeze(1), best)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
""",
        """
online, target_net = make(), make()
target_net.load_state_dict(online.state_dict())
for p in target_net.parameters():
    p.requires_grad = False
for a, b in loader:
    loss = 2 - 2 * F.cosine_similarity(online(a), target_net(b)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ],
    "ema_never_applied": [
        """
ema = ExponentialMovingAverage(model.parameters(), decay=0.999)
for x, y in loader:
    opt.zero_grad()
    F.cross_entropy(model(x), y).backward()
    opt.step()
    ema.update()
torch.save(model.state_dict(), "model.pt")
""",
        """
class T:
    def __init__(self, net):
        self.net = net
        self.averaged = torch.optim.swa_utils.AveragedModel(net)
        self.opt = torch.optim.SGD(net.parameters(), 0.1)
    def update(self, x, y):
        self.opt.zero_grad()
        F.cross_entropy(self.net(x), y).backward()
        self.opt.step()
        self.averaged.update_parameters(self.net)
""",
    ],
    "clips_another_model": [
        """
opt_a = torch.optim.Adam(actor.parameters(), 1e-3)
opt_c = torch.optim.Adam(critic.parameters(), 1e-3)
for batch in loader:
    opt_a.zero_grad()
    actor_loss(batch).backward()
    nn.utils.clip_grad_norm_(actor.parameters(), 1.0)
    opt_a.step()
    opt_c.zero_grad()
    critic_loss(batch).backward()
    nn.utils.clip_grad_norm_(actor.parameters(), 1.0)
    opt_c.step()
""",
        """
class Learner:
    def __init__(self, encoder, student):
        self.opt = torch.optim.AdamW(self.student.parameters(), 1e-4)
    def update(self, x, y):
        self.opt.zero_grad()
        F.mse_loss(self.student(x), y).backward()
        torch.nn.utils.clip_grad_norm_(self.teacher.parameters(), 0.5)
        self.opt.step()
""",
    ],
    "generator_in_discriminator_loss": [
        """
def main(G, D, dl):
    og, od = torch.optim.Adam(G.parameters(), 1e-4), torch.optim.Adam(D.parameters(), 1e-4)
    for x in dl:
        z = torch.randn(len(x), 8)
        fake = G(z)
        d_loss = F.softplus(-D(x)).mean() + F.softplus(D(fake)).mean()
        od.zero_grad(); og.zero_grad()
        d_loss.backward(retain_graph=True)
        od.step()
        g_loss = F.softplus(-D(fake)).mean()
        g_loss.backward()
        og.step()
""",
        """
def improve(loss, optimizer):
    loss.backward(retain_graph=True)
    optimizer.step()
maker, judge = nn.Linear(8, 16), nn.Linear(16, 1)
by_maker = torch.optim.Adam(maker.parameters(), 2e-4)
by_judge = torch.optim.Adam(judge.parameters(), 2e-4)
for real in loader:
    by_maker.zero_grad()
    by_judge.zero_grad()
    made = maker(torch.randn(32, 8))
    improve(F.softplus(-judge(real)).mean() + F.softplus(judge(made)).mean(), by_judge)
    improve(F.softplus(-judge(made)).mean(), by_maker)
""",
        """
opt_g = torch.optim.Adam(gen.parameters(), 2e-4)
opt_d = torch.optim.Adam(disc.parameters(), 2e-4)
for real in loader:
    fake = gen(torch.randn(len(real), 64))
    opt_d.zero_grad()
    d_loss = bce(disc(real), ones) + bce(disc(fake), zeros)
    d_loss.backward()
    opt_d.step()
    g_loss = bce(disc(gen(torch.randn(len(real), 64))), ones)
    g_loss.backward()
    opt_g.step()
    opt_g.zero_grad()
""",
    ],
    "optimizer_made_anew": [
        """
class Loop:
    def __init__(self, data):
        self.data = data
        self.net = nn.Linear(4, 3)
    def rule(self, rate):
        return torch.optim.AdamW(self.net.parameters(), rate)
    def once(self, number):
        rule = self.rule(0.01 / (1 + number))
        for x, y in self.data:
            rule.zero_grad()
            F.cross_entropy(self.net(x), y).backward()
            rule.step()
    def all(self, passes):
        for number in range(passes):
            self.once(number)
Loop(loader).all(20)
""",
        """
def one_epoch(net, loader):
    opt = torch.optim.AdamW(net.parameters(), 3e-4)
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
for epoch in range(10):
    one_epoch(net, loader)
""",
        """
class Fit:
    def update(self, x, y):
        optimizer = torch.optim.Adam(self.net.parameters(), lr=self.rate)
        optimizer.zero_grad()
        F.cross_entropy(self.net(x), y).backward()
        optimizer.step()
    def run(self):
        for x, y in self.loader:
            self.update(x, y)
""",
    ],
    "made_after_optimizer": [
        """
from transformers import AutoModelForCausalLM
from peft import LoraConfig, get_peft_model
def main(dl):
    base = AutoModelForCausalLM.from_pretrained("gpt2")
    opt = torch.optim.AdamW(base.parameters(), 1e-4)
    net = get_peft_model(base, LoraConfig(task_type="CAUSAL_LM"))
    for batch in dl:
        loss = net(**batch).loss
        opt.zero_grad(); loss.backward(); opt.step()
""",
        """
class Tuning:
    def __init__(self, base, classes):
        self.base = nn.Sequential(base, nn.Linear(8, 8))
        self.opt = torch.optim.SGD(self.base.parameters(), 0.01)
        self.fit_to(classes)
    def fit_to(self, classes):
        self.put(nn.Linear(8, classes))
    def put(self, layer):
        self.base[-1] = layer
    def update(self, x, y):
        self.opt.zero_grad()
        F.cross_entropy(self.base(x), y).backward()
        self.opt.step()
""",
        """
model = resnet18(weights="DEFAULT")
optimizer = torch.optim.SGD(model.parameters(), 0.01)
model.classifier[1] = nn.Linear(512, 10)
""",
        """
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(8, 2)
class Fit:
    def __init__(self, net):
        self.net = net
        self.opt = torch.optim.Adam(self.net.parameters(), 1e-3)
        self.net.head = Head()
""",
        """
tokenizer = AutoTokenizer.from_pretrained(name)
model = AutoModelForCausalLM.from_pretrained(name)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
tokenizer.add_special_tokens({"pad_token": "<pad>"})
model.resize_token_embeddings(len(tokenizer))
""",
    ],
    "unfrozen_outside_optimizer": [
        """
for p in net.backbone.parameters():
    p.requires_grad = False
opt = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], 1e-3)
for epoch in range(10):
    if epoch == 3:
        for p in net.backbone.parameters():
            p.requires_grad = True
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
""",
        """
class Tuner:
    def __init__(self, net):
        self.net = net
        self.net.body.requires_grad_(False)
        self.opt = torch.optim.Adam(filter(lambda p: p.requires_grad, self.net.parameters()), 1e-3)
    def thaw(self):
        self.net.body.requires_grad_(True)
    def update(self, x, y):
        self.opt.zero_grad()
        F.cross_entropy(self.net(x), y).backward()
        self.opt.step()
""",
    ],
    "last_batch_only": [
        """
@torch.no_grad()
def accuracy(net, loader):
    net.eval()
    for x, y in loader:
        guess = net(x).argmax(1)
    return (guess == y).float().mean().item()
""",
        """
class Fit:
    def validate(self):
        self.net.eval()
        with torch.inference_mode():
            for x, y in self.held_out:
                loss = F.cross_entropy(self.net(x), y)
                correct = (self.net(x).argmax(-1) == y).sum().item()
                seen = len(y)
        return correct / seen
""",
    ],
    "schedule_never_stepped": [
        """
class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 3)
    def training_step(self, batch, i):
        return F.cross_entropy(self.net(batch[0]), batch[1])
    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), 1e-3)
        sched = torch.optim.lr_scheduler.StepLR(opt, 10)
        return opt
""",
        """
def build(net):
    opt = torch.optim.SGD(net.parameters(), 0.1)
    plan = torch.optim.lr_scheduler.StepLR(opt, 30)
    return opt
opt = build(net)
for x, y in loader:
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    opt.step()
""",
    ],
    "shifted_twice": [
        """
from transformers import LlamaConfig, LlamaForCausalLM
class Rows(Dataset):
    def __init__(self, ids, size):
        self.ids, self.size = ids, size
    def __len__(self):
        return len(self.ids) - self.size
    def __getitem__(self, i):
        x = self.ids[i:i + self.size]
        y = self.ids[i + 1:i + 1 + self.size]
        return {"x": torch.as_tensor(x).long(), "y": torch.as_tensor(y).long()}
net = LlamaForCausalLM(LlamaConfig())
opt = torch.optim.AdamW(net.parameters(), 1e-4)
for batch in DataLoader(Rows(ids, 128), batch_size=8, shuffle=True):
    x, y = batch["x"].cuda(), batch["y"].cuda()
    loss = net(x, labels=y).loss
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        """
class Text(Dataset):
    def __init__(self, rows):
        self.rows = rows
    def __getitem__(self, i):
        row = self.rows[i]
        return row[:-1].clone(), row[1:].clone()
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn, self.out = nn.Embedding(99, 64), nn.GRU(64, 64, batch_first=True), nn.Linear(64, 99)
    def forward(self, ids, targets):
        logits = self.out(self.rnn(self.embed(ids))[0])
        ahead = targets[:, 1:].reshape(-1)
        return F.cross_entropy(logits[:, :-1].reshape(-1, 99), ahead)
model = Model()
opt = torch.optim.Adam(model.parameters(), 1e-3)
for ids, targets in DataLoader(Text(rows), 32, shuffle=True):
    opt.zero_grad()
    model(ids, targets).backward()
    opt.step()
""",
        """
from transformers import GPT2LMHeadModel
class Blocks(Dataset):
    def __init__(self, ids, n): self.ids, self.n = ids, n
    def __len__(self): return len(self.ids) // self.n - 1
    def __getitem__(self, i):
        chunk = self.ids[i * self.n : (i + 1) * self.n + 1]
        return {"input_ids": chunk[:-1], "labels": chunk[1:]}
def main(ids):
    net = GPT2LMHeadModel.from_pretrained("gpt2")
    opt = torch.optim.AdamW(net.parameters(), 1e-5)
    for b in DataLoader(Blocks(ids, 512), 4, shuffle=True):
        loss = net(**b).loss
        opt.zero_grad(); loss.backward(); opt.step()
""",
        """
model = AutoModelForCausalLM.from_pretrained("gpt2")
for ids in loader:
    inputs, labels = ids[:, :-1], ids[:, 1:]
    loss = model(inputs, labels=labels).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        """
class Blocks(Dataset):
    def __getitem__(self, i):
        block = self.ids[i * 128:(i + 1) * 128 + 1]
        x, y = block[:-1], block[1:]
        return {"input_ids": x, "labels": y}
model = GPT2LMHeadModel(config)
Trainer(model, args, train_dataset=Blocks()).train()
""",
    ],
    "outside_optimizer": [
        """
class Weighting(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.logs = nn.Parameter(torch.zeros(n))
    def forward(self, losses):
        return (torch.exp(-self.logs) * losses + self.logs).sum()
net, weigh = nn.Linear(8, 2), Weighting(2)
opt = torch.optim.Adam(net.parameters(), 1e-3)
for x, y in loader:
    opt.zero_grad()
    loss = weigh((net(x) - y).pow(2).mean(0))
    loss.backward()
    opt.step()
""",
        """
class Centres(nn.Module):
    def __init__(self, n, width):
        super().__init__()
        self.centres = nn.Parameter(torch.randn(n, width))
    def forward(self, z, y):
        return (z - self.centres[y]).pow(2).sum(1).mean()
class Trainer:
    def __init__(self):
        self.net = nn.Linear(8, 16)
        self.pull = Centres(10, 16)
        groups = {"decay": [], "plain": []}
        for name, p in self.net.named_parameters():
            groups["plain" if name.endswith("bias") else "decay"].append(p)
        self.opt = torch.optim.AdamW([{"params": groups["decay"]}, {"params": groups["plain"]}], 1e-3)
    def fit(self, loader):
        for x, y in loader:
            self.opt.zero_grad()
            self.pull(self.net(x), y).backward()
            self.opt.step()
Trainer().fit(loader)
""",
        """
body = BertModel.from_pretrained("b")
opt = torch.optim.AdamW(body.parameters(), 1e-5)
head = nn.Linear(768, 2)
for x, y in loader:
    opt.zero_grad()
    F.cross_entropy(head(body(x).pooler_output), y).backward()
    opt.step()
""",
    ],
    "clipped_at_every_batch": [
        """
def train(net, opt, loader):
    for i, (x, y) in enumerate(loader):
        (F.cross_entropy(net(x), y) / 4).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        if (i + 1) % 4 == 0:
            opt.step()
            opt.zero_grad()
""",
    ],
    "accumulation_leftover": [
        """
for epoch in range(5):
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(net(x), y) / 4
        loss.backward()
        if (i + 1) % 4 == 0:
            opt.step()
            opt.zero_grad()
""",
    ],
    "window_thrown_away": [
        """
for epoch in range(5):
    opt.zero_grad()
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(net(x), y) / 4
        loss.backward()
        if (i + 1) % 4 == 0:
            opt.step()
            opt.zero_grad()
""",
    ],
    "all_frozen": [
        """
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments
model = AutoModelForSequenceClassification.from_pretrained("b", num_labels=3)
for p in model.parameters():
    p.requires_grad = False
Trainer(model=model, args=TrainingArguments("o"), train_dataset=rows["train"], eval_dataset=rows["test"]).train()
""",
    ],
    "no_step": [
        """
import lightning as L
class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.net = nn.Linear(10, 3)
    def training_step(self, batch, number):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        return loss
    def validation_step(self, batch, number):
        x, y = batch
        self.log("val_loss", F.cross_entropy(self.net(x), y))
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-3)
L.Trainer().fit(Classifier(), train_rows, val_rows)
""",
    ],
    "monitored_never_logged": [
        """
import lightning as L
class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(10, 3)
    def training_step(self, batch, number):
        x, y = batch
        return F.cross_entropy(self.net(x), y)
    def validation_step(self, batch, number):
        x, y = batch
        self.log("val_loss", F.cross_entropy(self.net(x), y))
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-3)
best = L.pytorch.callbacks.ModelCheckpoint(monitor="val_acc", mode="max")
L.Trainer(callbacks=[best]).fit(Classifier(), train_rows, val_rows)
""",
    ],
}

HEALTHY = {
    "a random change of pictures in training alone": """
from torchvision.transforms import v2
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = v2.RandomHorizontalFlip()
        self.fc = nn.Linear(3072, 10)
    def forward(self, x):
        x = self.mix(x) if self.training else x
        return self.fc(x.flatten(1))
def train(train_loader, val_loader):
    net = Net()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(9):
        net.train()
        for x, y in train_loader:
            opt.zero_grad()
            F.cross_entropy(net(x), y).backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            print(sum((net(x).argmax(1) == y).sum().item() for x, y in val_loader))
""",
    "two random views of a picture within a model": """
from torchvision.transforms import v2
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = v2.RandomResizedCrop(32)
        self.fc = nn.Linear(3072, 10)
    def forward(self, x):
        return self.fc(self.mix(x).flatten(1)) * self.fc(self.mix(x).flatten(1))
def train(train_loader, val_loader):
    net = Net()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(9):
        net.train()
        for x, y in train_loader:
            opt.zero_grad()
            F.cross_entropy(net(x), y).backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            print(sum((net(x).argmax(1) == y).sum().item() for x, y in val_loader))
""",
    "a rate that is set on an optimizer of another library": """
import mlx.optimizers as optim
def train(net, loader, step):
    opt = optim.Adam(learning_rate=1e-3)
    for epoch in range(9):
        opt.learning_rate = 1e-3 * 0.5 ** epoch
        for x, y in loader:
            step(net, opt, x, y)
""",
    "a rate that is kept on the optimizer and written into its groups": """
def train(net, loader):
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(9):
        opt.lr = 1e-3 * 0.5 ** epoch
        for group in opt.param_groups:
            group["lr"] = opt.lr
        for x, y in loader:
            opt.zero_grad()
            F.mse_loss(net(x), y).backward()
            opt.step()
""",
    "each row is scaled by its own mean": """
def scaled(rows):
    return (rows - rows.mean(1, keepdims=True)) / rows.std(1, keepdims=True)
x_train, x_valid = scaled(first), scaled(second)
""",
    "streams whose workers differ, are alone, or draw another seed": """
from torch.utils.data import IterableDataset, get_worker_info
class Apart(IterableDataset):
    def __iter__(self):
        rng = np.random.default_rng(3 + torch.initial_seed())
        while True:
            yield rng.normal(size=3)
class Alone(IterableDataset):
    def __iter__(self):
        rng = np.random.default_rng(3)
        while True:
            yield rng.normal(size=3)
class Unseeded(IterableDataset):
    def __iter__(self):
        rng = np.random.default_rng()
        while True:
            yield rng.normal(size=3)
loaders = DataLoader(Apart(), 8, num_workers=4), DataLoader(Alone(), 8), DataLoader(Unseeded(), 8, num_workers=4)
""",
    "a stream that asks which worker reads it": """
from torch.utils.data import IterableDataset, get_worker_info
class Series(IterableDataset):
    def __init__(self, seed):
        self.seed = seed
    def __iter__(self):
        info = get_worker_info()
        rng = np.random.default_rng([self.seed, info.id if info else 0])
        while True:
            yield rng.normal(size=3)
loader = DataLoader(Series(3), 8, num_workers=4)
""",
    "a frozen model that gets an adapter before it is trained": """
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments
model = AutoModelForSequenceClassification.from_pretrained("b", num_labels=3)
for p in model.parameters():
    p.requires_grad = False
model.add_adapter(adapter)
Trainer(model=model, args=TrainingArguments("o"), train_dataset=rows["train"], eval_dataset=rows["test"]).train()
""",
    "the log-likelihood of a network of a library with a last layer of its own": """
from torchvision import models
net = models.resnet18()
net.fc = nn.Sequential(nn.Linear(512, 10), nn.LogSoftmax(dim=1))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for x, y in loader:
    opt.zero_grad()
    F.nll_loss(net(x), y).backward()
    opt.step()
""",
    "a module of Lightning that steps by hand and logs by pass what is monitored": """
import lightning as L
class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.net = nn.Linear(10, 3)
    def training_step(self, batch, number):
        x, y = batch
        opt = self.optimizers()
        opt.zero_grad()
        self.manual_backward(F.cross_entropy(self.net(x), y))
        opt.step()
    def validation_step(self, batch, number):
        x, y = batch
        self.log("val_loss", F.cross_entropy(self.net(x), y))
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-3)
best = L.pytorch.callbacks.ModelCheckpoint(monitor="val_loss_epoch")
L.Trainer(callbacks=[best]).fit(Classifier(), train_rows, val_rows)
""",
    "a plot of points, a part that is read, and statements that change what they are called on": """
def show(ax, xs, ys, net, opt, loader):
    ax.scatter(xs, ys)
    for x, y in loader:
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        opt.step()
        net.weight.data.clamp_(-1, 1)
def load(root, part):
    rows = torch.load(root / f"{part}.pt")
    return DataLoader(TensorDataset(rows["x"], rows["y"]), 64, shuffle=part == "train")
def main(root):
    return load(root, "train"), load(root, "val")
""",
    "a target by a name that is cut off": """
def update(q, opt, obs, action, reward, after, done, gamma):
    following = q(after).max(1, keepdim=True)[0].detach()
    goal = reward + gamma * (1 - done) * following
    loss = F.smooth_l1_loss(q(obs).gather(1, action), goal)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "the old policy of each rollout, before the passes over it": """
def train(actor, adam, rounds, passes, collect):
    for _ in range(rounds):
        states, actions, weights = collect(actor)
        with torch.no_grad():
            old_logp = actor(states).log_prob(actions)
        for _ in range(passes):
            r = torch.exp(actor(states).log_prob(actions) - old_logp)
            loss = -torch.min(r * weights, r.clamp(0.8, 1.2) * weights).mean()
            adam.zero_grad()
            loss.backward()
            adam.step()
""",
    "a difference whose target is cut off": """
class Learner:
    def learn(self, state, reward, after, over):
        with torch.no_grad():
            goal = reward + self.gamma * (1.0 - over) * self.critic(after).squeeze(-1)
        difference = goal - self.critic(state).squeeze(-1)
        error = difference.pow(2).mean()
        self.adam.zero_grad()
        error.backward()
        self.adam.step()
""",
    "an advantage of which the actor alone learns, without its graph": """
def update(actor, critic, opt, state, action, reward, after, done, gamma):
    advantage = reward + gamma * critic(after) * (1 - done) - critic(state)
    weight = advantage.detach()
    loss = -(actor(state).log_prob(action) * weight).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "two phases of one model, each with an optimizer of its own": """
class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.head = nn.Linear(8, 8), nn.Linear(8, 3)
    def forward(self, x): return self.head(self.trunk(x))
def phase(model, groups, loader):
    opt = torch.optim.SGD(groups, lr=0.1)
    for epoch in range(3):
        for x, y in loader:
            F.cross_entropy(model(x), y).backward()
            opt.step()
            opt.zero_grad()
def main(data):
    model, loader = Classifier(), DataLoader(data, 8, shuffle=True)
    phase(model, [{"params": model.head.parameters()}], loader)
    phase(model, [{"params": model.trunk.parameters()}, {"params": model.head.parameters()}], loader)
""",
    "rows of evaluation chosen by the labels of augmented data": """
from torchvision import transforms as T
from torchvision.datasets import ImageFolder
from sklearn.model_selection import train_test_split
def loaders(root):
    moved = T.Compose([T.RandomResizedCrop(224), T.ToTensor()])
    plain = T.Compose([T.Resize(224), T.ToTensor()])
    first, second = ImageFolder(root, moved), ImageFolder(root, plain)
    places, held_out = train_test_split(range(len(first)), stratify=first.targets)
    train, valid = Subset(first, places), Subset(second, held_out)
    return DataLoader(train, 32, shuffle=True), DataLoader(valid, 32)
def main(root, net, opt):
    train, valid = loaders(root)
    for epoch in range(3):
        net.train()
        for x, y in train:
            opt.zero_grad()
            F.cross_entropy(net(x), y).backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            right = sum((net(x).argmax(1) == y).sum().item() for x, y in valid)
""",
    "a margin head that is given the labels": """
class Margin(nn.Module):
    def __init__(self, size, classes):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(classes, size))
    def forward(self, features, y):
        cosine = F.linear(F.normalize(features), F.normalize(self.weight))
        return 30 * (cosine - 0.35 * F.one_hot(y, cosine.shape[1]))
def main(loader):
    net, head = nn.Linear(8, 8), Margin(8, 100)
    opt = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
    for x, y in loader:
        loss = F.cross_entropy(head(net(x), y), y)
        opt.zero_grad(); loss.backward(); opt.step()
""",
    "a step in a context manager": """
from contextlib import contextmanager
class Guard:
    def __init__(self, params, opt, scaler):
        self.params, self.opt, self.scaler = list(params), opt, scaler
    @contextmanager
    def update(self):
        self.opt.zero_grad()
        yield self
        self.scaler.unscale_(self.opt)
        torch.nn.utils.clip_grad_norm_(self.params, 1.0)
        self.scaler.step(self.opt)
        self.scaler.update()
    def backward(self, loss):
        self.scaler.scale(loss).backward()
def main(loader):
    net = nn.Linear(4, 2)
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    guard = Guard(net.parameters(), opt, torch.amp.GradScaler("cuda"))
    for x, y in loader:
        with guard.update() as g:
            loss = F.cross_entropy(net(x), y)
            g.backward(loss)
""",
    "a helper that is given the scaled loss": """
def back(loss):
    loss.backward()
def main(net, opt, scaler, loader):
    for x, y in loader:
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        back(scaler.scale(loss))
        scaler.step(opt)
        scaler.update()
""",
    "a soft actor whose log-probability is made smaller on purpose": """
actor, critic = nn.Linear(4, 2), nn.Linear(6, 1)
opt = torch.optim.Adam(actor.parameters(), 1e-3)
of_critic = torch.optim.Adam(critic.parameters(), 1e-3)
for obs, before, goal in loader:
    of_critic.zero_grad()
    F.mse_loss(critic(before).squeeze(-1), goal.flatten()).backward()
    of_critic.step()
    dist = torch.distributions.Normal(actor(obs), 1.0)
    action = dist.rsample()
    loss = (alpha * dist.log_prob(action).sum(-1) - critic(torch.cat([obs, action], 1)).squeeze(-1)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a variational bound that is turned round as a whole": """
net = nn.Linear(8, 8)
opt = torch.optim.Adam(net.parameters(), 1e-3)
for x in loader:
    out, mu, logvar = net(x)
    likelihood = torch.distributions.Normal(out, 1.0).log_prob(x).sum()
    kl = -0.5 * torch.sum(1 + logvar - mu ** 2 - logvar.exp())
    loss = -(likelihood - kl)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a divergence written with variances": """
net = nn.Linear(8, 8)
opt = torch.optim.Adam(net.parameters(), 1e-3)
for x in loader:
    out, mu, sigma = net(x)
    loss = F.mse_loss(out, x) + 0.5 * (mu ** 2 + sigma ** 2 - 1 - torch.log(sigma ** 2)).sum(1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "costs that are made smaller by their log-probabilities": """
policy = nn.Linear(4, 2)
opt = torch.optim.Adam(policy.parameters(), 1e-3)
for obs, actions, costs in loader:
    loss = (torch.distributions.Categorical(logits=policy(obs)).log_prob(actions) * costs).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "returns of one episode": """
def play(env, policy, gamma):
    rewards, done = [], False
    obs, _ = env.reset()
    while not done:
        obs, reward, terminated, truncated, _ = env.step(policy(obs))
        done = terminated or truncated
        rewards.append(reward)
    g, returns = 0.0, []
    for reward in reversed(rewards):
        g = reward + gamma * g
        returns.insert(0, g)
    return returns
""",
    "returns whose future is cut at the end of an episode": """
def returns_of(rewards, cuts, gamma, n_envs):
    g, returns = torch.zeros(n_envs), []
    for reward, cut in zip(reversed(rewards), reversed(cuts)):
        g = g * (1.0 - cut)
        g = reward + gamma * g
        returns.append(g)
    return returns[::-1]
def roll(envs, terminated):
    envs.reset()
""",
    "the best weights as copies": """
def fit(net, opt, loader, valid):
    best, kept = 0.0, None
    for epoch in range(9):
        for x, y in loader:
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        score = accuracy(net, valid)
        if score > best:
            best, kept = score, {key: value.clone() for key, value in net.state_dict().items()}
    net.load_state_dict(kept)
""",
    "a frozen encoder outside of the optimizer": """
encoder, head = nn.Linear(8, 4), nn.Linear(4, 2)
opt = torch.optim.Adam(head.parameters(), 1e-3)
for x, y in loader:
    with torch.no_grad():
        z = encoder(x)
    loss = F.cross_entropy(head(z), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a warm-up and a decay for one of two optimizers": """
left, right = nn.Linear(4, 4), nn.Linear(4, 4)
opt_left = torch.optim.Adam(left.parameters(), 1e-3)
opt_right = torch.optim.SGD(right.parameters(), 1e-3)
warm = torch.optim.lr_scheduler.LinearLR(opt_left, 0.1, 1.0, 5)
decay = torch.optim.lr_scheduler.ExponentialLR(opt_left, 0.95)
for epoch in range(90):
    warm.step()
    decay.step()
""",
    "weights on the losses of rows": """
def loss_of(logits, labels, mask):
    return (F.cross_entropy(logits, labels, reduction="none") * mask).sum() / mask.sum()
""",
    "a weight on one of two losses": """
def loss_of(out, y, mask_weight):
    return F.mse_loss(out, y) + mask_weight * F.l1_loss(out, y)
""",
    "workers that are seeded by their number": """
def start(worker):
    np.random.seed(torch.initial_seed() % 2**32)
    random.seed(3 + worker)
loader = DataLoader(rows, 8, shuffle=True, num_workers=4, worker_init_fn=start)
""",
    "a body that is frozen by the name of the head": """
from torchvision.models import resnet18
net = resnet18(weights="DEFAULT")
net.fc = nn.Linear(512, 5)
for name, p in net.named_parameters():
    if "fc" not in name:
        p.requires_grad = False
for name, p in net.named_parameters():
    p.requires_grad = name.startswith("fc")
""",
    "attention over the places of a set": """
class Pool(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.score = nn.Linear(d, 1)
    def forward(self, x):
        weight = F.softmax(self.score(x).squeeze(-1), dim=0)
        return (weight[:, None] * x).sum(0)
""",
    "masks that hide padding and the future": """
class Tagger(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 4), 2)
    def forward(self, x, ids, attention_mask):
        n = ids.size(1)
        causal = torch.tril(torch.ones(n, n))
        scores = (x @ x.transpose(-2, -1)).masked_fill(causal == 0, float("-inf"))
        future = torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=1)
        scores = scores.masked_fill(future, float("-inf")).masked_fill(~attention_mask.bool(), -1e9)
        return self.encoder(scores.softmax(-1) @ x, src_key_padding_mask=ids == PAD)
""",
    "one order for inputs and targets": """
order = torch.randperm(len(x))
x = x[order]
y = y[order]
""",
    "means of batches by the number of batches, and rows by rows": """
def judge(net, loader):
    net.eval()
    right, total = 0, 0.0
    with torch.no_grad():
        for x, y in loader:
            out = net(x)
            right += (out.argmax(1) == y).float().mean().item()
            total += F.cross_entropy(out, y).item()
    return right / len(loader), total / len(loader)
""",
    "the lowest loss and the highest score": """
def keep(val_loss, val_acc, best_loss, best_acc):
    if val_loss < best_loss:
        best_loss = val_loss
    if best_acc < val_acc:
        best_acc = val_acc
    return best_loss, best_acc
""",
    "a state that is cut off between batches": """
def repackage(state):
    return tuple(one.detach() for one in state)
words = nn.LSTM(8, 8)
opt = torch.optim.Adam(words.parameters(), 1e-3)
state = None
for x, y in loader:
    if state is not None:
        state = repackage(state)
    out, state = words(x, state)
    loss = F.mse_loss(out, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "two objectives of which the lower counts": """
def policy_loss(new, old, adv, eps):
    ratio = (new - old).exp()
    first = torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv).mean()
    second = torch.max(-adv * ratio, -adv * ratio.clamp(1 - eps, 1 + eps)).mean()
    return second - first
""",
    "an actor whose loss goes through a critic that clears its own gradients": """
actor, critic = nn.Linear(4, 2), nn.Linear(6, 1)
of_actor = torch.optim.Adam(actor.parameters(), 1e-3)
of_critic = torch.optim.Adam(critic.parameters(), 1e-3)
for obs, action, goal in loader:
    of_critic.zero_grad()
    F.smooth_l1_loss(critic(torch.cat([obs, action], 1)), goal.view(-1, 1)).backward()
    of_critic.step()
    of_actor.zero_grad()
    (-critic(torch.cat([obs, actor(obs)], 1)).mean()).backward()
    of_actor.step()
""",
    "an optimizer for each fold, whose model begins anew": """
def fit(net, data):
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    for x, y in data:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
net = nn.Linear(4, 2)
start = copy.deepcopy(net.state_dict())
for part in parts:
    net.load_state_dict(start)
    fit(net, part)
""",
    "a schedule that counts updates": """
class Fit:
    def __init__(self, net, loader, epochs, window):
        self.net, self.loader = net, loader
        self.opt = torch.optim.SGD(net.parameters(), 0.1)
        updates_per_epoch = -(-len(loader) // window)
        self.plan = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, T_max=epochs * updates_per_epoch)
    def epoch(self):
        for x, y in self.loader:
            self.opt.zero_grad()
            F.cross_entropy(self.net(x), y).backward()
            self.opt.step()
            self.plan.step()
""",
    "a model that gives probabilities, trained on what is before them": """
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))
    def forward(self, x):
        return self.body(x).softmax(-1)
    def loss(self, x, y):
        return F.cross_entropy(self.body(x), y)
""",
    "a target that a helper moves": """
def follow(slow, fast, rate):
    with torch.no_grad():
        for a, b in zip(slow.parameters(), fast.parameters()):
            a.lerp_(b, rate)
online = nn.Linear(4, 2)
target = copy.deepcopy(online)
opt = torch.optim.Adam(online.parameters(), 1e-3)
for x, r in loader:
    with torch.no_grad():
        goal = r + target(x).max(1).values
    opt.zero_grad()
    F.cross_entropy(online(x), goal).backward()
    opt.step()
    follow(target, online, 0.01)
""",
    "backward in a block that turns gradients off after the loss": """
for x, y in loader:
    loss = F.cross_entropy(model(x), y)
    opt.zero_grad()
    with torch.no_grad():
        loss.backward()
        opt.step()
""",
    "losses kept for one backward of all": """
for rows in loader:
    opt.zero_grad()
    kept = []
    for x, y in rows:
        loss = F.cross_entropy(net(x), y)
        kept.append(loss)
    for i in range(len(kept)):
        loss = kept[i]
        loss.backward()
    opt.step()
""",
    "a contrastive loss over all micro-batches": """
for step in range(100):
    opt.zero_grad()
    for j in range(accum):
        z = net(parts[j])
        loss = nce(torch.cat(cached[:j] + [z] + cached[j + 1:]))
        loss.backward()
    opt.step()
""",
    "an inner optimizer for a copy of each task": """
for task in tasks:
    fast = copy.deepcopy(net)
    inner = torch.optim.SGD(fast.parameters(), 0.01)
    for _ in range(5):
        inner.zero_grad()
        F.cross_entropy(fast(task.x), task.y).backward()
        inner.step()
""",
    "an optimizer that is made once more where layers are unfrozen": """
opt = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], 1e-3)
for epoch in range(10):
    if epoch == 2:
        net.backbone.requires_grad_(True)
        opt = torch.optim.Adam(net.parameters(), 1e-4)
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
""",
    "networks in one optimizer and a fixed random one": """
body, head = nn.Linear(8, 8), nn.Linear(8, 2)
fixed = nn.Linear(8, 2)
opt = torch.optim.AdamW([*body.parameters(), *head.parameters()], 1e-3)
for x in loader:
    opt.zero_grad()
    F.mse_loss(head(body(x)), fixed(x).detach()).backward()
    opt.step()
""",
    "weight decay as high as in work on grokking": """
opt = torch.optim.AdamW(net.parameters(), 1e-3, weight_decay=1.0)
""",
    "a segmentation network that pads its features": """
class Up(nn.Module):
    def forward(self, a, b):
        a = F.pad(a, [0, 1, 0, 1])
        return torch.cat([F.pad(b, [1, 0, 1, 0]), a], 1)
for x, y in loader:
    opt.zero_grad()
    out = net(x).permute(0, 2, 3, 1)
    F.cross_entropy(out.reshape(-1, 5), y.reshape(-1)).backward()
    opt.step()
""",
    "a recurrent network that is read at its last step": """
@torch.no_grad()
def evaluate(net, frames, y):
    net.eval()
    state = None
    for frame in frames:
        out, state = net(frame, state)
    return (out.argmax(1) == y).float().mean()
""",
    "refinement over a fixed number of steps": """
def evaluate(net, x, y):
    net.eval()
    with torch.no_grad():
        for step in range(10):
            out = net(x, step)
    return (out.argmax(1) == y).float().mean()
""",
    "an optimizer and a model under other names in a class": """
class Trainer:
    def __init__(self, model):
        self.model = model
    def fit(self, loader, opt):
        for x, y in loader:
            opt.zero_grad()
            F.cross_entropy(self.model(x), y).backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            opt.step()
net = make()
opt = torch.optim.Adam(net.parameters(), 1e-3)
Trainer(net).fit(loader, opt)
""",
    "an optimizer for each member of an ensemble": """
def train(net, loader):
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    for epoch in range(5):
        for x, y in loader:
            opt.zero_grad()
            F.cross_entropy(net(x), y).backward()
            opt.step()
for i in range(5):
    train(members[i], loader)
""",
    "made-up rows for training and evaluation": """
class Made(Dataset):
    def __init__(self, config):
        self.x = torch.randn(config.n, 8)
    def __getitem__(self, i):
        return self.x[i], self.x[i].sum()
train_loader = DataLoader(Made(config), 32, shuffle=True)
val_loader = DataLoader(Made(config), 32)
""",
    "transforms by the name of the split": """
tf = {
    "train": T.Compose([T.RandomResizedCrop(224), T.ToTensor()]),
    "val": T.Compose([T.Resize(256), T.CenterCrop(224), T.ToTensor()]),
}
sets = {part: ImageFolder(f"data/{part}", tf[part]) for part in ("train", "val")}
train_loader = DataLoader(sets["train"], 32, shuffle=True)
val_loader = DataLoader(sets["val"], 32)
""",
    "folds of one data set": """
for tr, va in KFold(5).split(rows):
    train_loader = DataLoader(Subset(rows, tr), 32, shuffle=True)
    val_loader = DataLoader(Subset(rows, va), 32)
""",
    "a momentum encoder that a method updates": """
class MoCo(nn.Module):
    def __init__(self, q):
        super().__init__()
        self.encoder_q = q
        self.encoder_k = copy.deepcopy(q)
        self.momentum_net = copy.deepcopy(q)
    def follow(self):
        for a, b in zip(self.encoder_q.parameters(), self.momentum_net.parameters()):
            b.data = b.data * 0.99 + a.data * 0.01
    def forward(self, x):
        self.follow()
        return self.encoder_q(x), self.momentum_net(x), self.encoder_k(x)
model = MoCo(net)
for x in loader:
    opt.zero_grad()
    nce(model(x)).backward()
    opt.step()
""",
    "padding that targets mark with -100": """
def collate(rows):
    ids = pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=-100)
    return ids[:, :-1].clamp(min=0), ids[:, 1:]
for inputs, targets in loader:
    opt.zero_grad()
    F.cross_entropy(net(inputs).flatten(0, 1), targets.flatten()).backward()
    opt.step()
""",
    "padding that the loss ignores": """
def collate(rows):
    ids = pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
    return ids[:, :-1], ids[:, 1:]
criterion = nn.CrossEntropyLoss(ignore_index=0)
for inputs, targets in loader:
    opt.zero_grad()
    criterion(net(inputs).flatten(0, 1), targets.flatten()).backward()
    opt.step()
""",
    "padding that a mask takes out": """
def collate(rows):
    ids = pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
    return ids[:, :-1], ids[:, 1:]
for inputs, targets in loader:
    real = targets != 0
    opt.zero_grad()
    logits = net(inputs)
    F.cross_entropy(logits[real], targets[real]).backward()
    opt.step()
""",
    "padded inputs of a classifier": """
def collate(rows):
    words, label = zip(*rows)
    return pad_sequence(words, batch_first=True), torch.tensor(label)
for words, label in loader:
    opt.zero_grad()
    F.cross_entropy(net(words), label).backward()
    opt.step()
""",
    "layers collected for a Sequential": """
class Net(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.parts = []
        for a, b in zip(widths, widths[1:]):
            self.parts += [nn.Linear(a, b), nn.ReLU()]
        self.net = nn.Sequential(*self.parts)
        self.losses = [nn.MSELoss(), nn.L1Loss()]
    def forward(self, x):
        return self.net(x)
""",
    "gradients accumulated and divided in a helper": """
def scaled(loss, accum):
    return loss / accum
for i, (x, y) in enumerate(loader):
    last = (i + 1) % accum == 0 or i + 1 == len(loader)
    scaled(F.cross_entropy(net(x), y), accum).backward()
    if last:
        opt.step()
        opt.zero_grad()
""",
    "gradients of a window that goes on over passes, synchronised each time": """
net = DistributedDataParallel(net)
count = 0
for epoch in range(3):
    for x, y in loader:
        count += 1
        (F.cross_entropy(net(x), y) / accum).backward()
        if count % accum == 0:
            opt.step()
            opt.zero_grad()
""",
    "evaluation under a decorator of the file": """
def frozen(fn):
    def inner(*args):
        with torch.no_grad():
            return fn(*args)
    return inner
@frozen
def evaluate(model, loader):
    model.eval()
    total = 0
    for x, y in loader:
        total += F.cross_entropy(model(x), y)
    return total.item() / len(loader)
for x, y in train_loader:
    opt.zero_grad()
    F.cross_entropy(model(x), y).backward()
    opt.step()
    evaluate(model, val_loader)
    model.train()
""",
    "evaluation whose caller turns gradients off": """
def test_loss(model, loader):
    total = 0
    for x, y in loader:
        total += F.cross_entropy(model(x), y)
    return total / len(loader)
for epoch in range(3):
    model.train()
    for x, y in train_loader:
        opt.zero_grad()
        F.cross_entropy(model(x), y).backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        print(test_loss(model, val_loader).item())
""",
    "a sum of losses that is the loss": """
def unrolled(net, rows):
    total = 0.0
    for x, y in rows:
        total = total + F.mse_loss(net(x), y)
    return total / len(rows)
for rows in loader:
    opt.zero_grad()
    unrolled(net, rows).backward()
    opt.step()
""",
    "one function for training and evaluation": """
def run(model, loader, train=False):
    total = 0.0
    model.train(train)
    with torch.set_grad_enabled(train):
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            if train:
                opt.zero_grad()
                loss.backward()
                opt.step()
            total += loss.item()
    return total / len(loader)
fit_rows = DataLoader(a, 32, shuffle=True)
held_rows = DataLoader(b, 32)
for epoch in range(3):
    run(model, fit_rows, train=True)
    run(model, held_rows)
""",
    "one function for two phases": """
def run(model, loader, phase):
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        if phase != "fit":
            continue
        opt.zero_grad()
        loss.backward()
        opt.step()
rows, others = DataLoader(a, 32, shuffle=True), DataLoader(b, 32)
for epoch in range(3):
    model.train()
    run(model, rows, "fit")
    model.eval()
    run(model, others, "held")
""",
    "SGD with a high learning rate and clipping": """
opt = torch.optim.SGD(lm.parameters(), lr=30)
for x, y in chunks:
    opt.zero_grad()
    F.cross_entropy(lm(x), y).backward()
    nn.utils.clip_grad_norm_(lm.parameters(), 0.25)
    opt.step()
""",
    "Adam with a high learning rate for points": """
points = torch.randn(10, 2, requires_grad=True)
opt = torch.optim.Adam([points], lr=0.1)
for step in range(100):
    opt.zero_grad()
    energy(points).backward()
    opt.step()
""",
    "augmentation in training alone": """
def transform(train):
    ops = [T.Resize(224)]
    if train:
        ops += [T.RandomHorizontalFlip()]
    return T.Compose(ops + [T.ToTensor()])
train_set = ImageFolder("a/train", transform=transform(True))
val_set = ImageFolder("a/val", transform=transform(False))
train_loader = DataLoader(train_set, 64, shuffle=True)
val_loader = DataLoader(val_set, 64)
""",
    "two views of one data set": """
noisy = CIFAR10("d", train=True, transform=T.Compose([T.RandomCrop(32), T.ToTensor()]))
plain = CIFAR10("d", train=True, transform=T.ToTensor())
train_set, val_set = Subset(noisy, order[:n]), Subset(plain, order[n:])
train_loader = DataLoader(train_set, 64, shuffle=True)
val_loader = DataLoader(val_set, 64)
""",
    "a target network that follows": """
class Agent:
    def __init__(self, q):
        self.q, self.target = q, copy.deepcopy(q)
        self.opt = torch.optim.Adam(self.q.parameters(), 1e-3)
    def learn(self, s, r, s2):
        loss = F.mse_loss(self.q(s), r + 0.99 * self.target(s2).detach())
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        with torch.no_grad():
            for p, t in zip(self.q.parameters(), self.target.parameters()):
                t.lerp_(p, 0.005)
""",
    "a frozen reference model": """
reference = copy.deepcopy(policy).eval()
for batch in loader:
    loss = dpo(policy(batch), reference(batch).detach())
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "an average that is evaluated": """
averaged = AveragedModel(net)
for x, y in loader:
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    opt.step()
    averaged.update_parameters(net)
print(accuracy(averaged))
""",
    "a discriminator that is given detached fakes": """
opt_g = torch.optim.Adam(gen.parameters(), 2e-4)
opt_d = torch.optim.Adam(disc.parameters(), 2e-4)
for real in loader:
    fake = gen(torch.randn(len(real), 64))
    opt_d.zero_grad()
    (bce(disc(real), ones) + bce(disc(fake.detach()), zeros)).backward()
    opt_d.step()
    opt_g.zero_grad()
    bce(disc(fake), ones).backward()
    opt_g.step()
""",
    "two optimizers and the clipping of both": """
opt_a = torch.optim.Adam(actor.parameters(), 1e-3)
opt_c = torch.optim.Adam(critic.parameters(), 1e-3)
for batch in loader:
    opt_a.zero_grad()
    opt_c.zero_grad()
    total_loss(batch).backward()
    nn.utils.clip_grad_norm_(actor.parameters(), 1.0)
    nn.utils.clip_grad_norm_(critic.parameters(), 1.0)
    opt_a.step()
    opt_c.step()
""",
    "a fold's optimizer in a function": """
def fold(x, y):
    net = nn.Linear(3, 1)
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    for _ in range(10):
        opt.zero_grad()
        F.binary_cross_entropy_with_logits(net(x), y).backward()
        opt.step()
for x, y in folds:
    fold(x, y)
""",
    "layers that are unfrozen and added": """
for p in net.backbone.parameters():
    p.requires_grad = False
opt = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], 1e-3)
for epoch in range(10):
    if epoch == 3:
        for p in net.backbone.parameters():
            p.requires_grad = True
        opt.add_param_group({"params": net.backbone.parameters(), "lr": 1e-4})
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
""",
    "metrics over all batches": """
@torch.no_grad()
def evaluate(net, loader, metric):
    net.eval()
    hits = 0
    for x, y in loader:
        out = net(x)
        hits = hits + (out.argmax(1) == y).sum().item()
        metric.update(out, y)
        shape = out.shape
    return hits, metric.compute(), shape
""",
    "columns that the file makes": """
def sample(n, gen):
    x = torch.rand(n, 1, generator=gen)
    return x, x.sin()
net = nn.Sequential(nn.Linear(1, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for step in range(100):
    x, y = sample(10, gen)
    opt.zero_grad()
    F.mse_loss(net(x), y).backward()
    opt.step()
""",
    "outputs of several heads put together": """
class Many(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList(nn.Linear(8, 1) for _ in range(4))
    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], 1)
net = Many()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for x, y in loader:
    opt.zero_grad()
    F.mse_loss(net(x), y).backward()
    opt.step()
""",
}

CASES = [pytest.param(rule, text, id=f"{rule}-{n}") for rule, texts in FAULTS.items() for n, text in enumerate(texts)]


def rules_of(folder: Path, text: str) -> list[str]:
    """Return the rules that a script breaks."""
    file = folder / "train.py"
    file.write_text(HEAD + text, encoding="utf-8")
    return [finding.rule for finding in inspect_script(file).findings]


@pytest.mark.parametrize(("rule", "text"), CASES)
def test_a_fault_is_found_in_any_style(rule: str, text: str, tmp_path: Path) -> None:
    assert rules_of(tmp_path, text) == [rule]


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in HEALTHY.items()])
def test_a_healthy_script_is_not_accused(text: str, tmp_path: Path) -> None:
    assert rules_of(tmp_path, text) == []


PLACES = {
    "the training mode that is set once, before the loop": """
def evaluate(net, loader):
    net.eval()
    with torch.no_grad():
        return sum(F.cross_entropy(net(x), y).item() for x, y in loader)
net = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.1), nn.Linear(8, 2))
opt = torch.optim.Adam(net.parameters(), 1e-3)
net.train()  # here
for epoch in range(10):
    for x, y in train_loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
    print(evaluate(net, valid_loader))
""",
    "the call of the model's method that makes a layer": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(8, 8), nn.Linear(8, 10)
    def with_classes(self, n):
        self.head = nn.Linear(8, n)
        return self
    def forward(self, x):
        return self.head(self.body(x))
net = Net()
opt = torch.optim.Adam(net.parameters(), 1e-3)
net.with_classes(2)  # here
for x, y in loader:
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    opt.step()
""",
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in PLACES.items()])
def test_a_finding_names_the_line_that_has_to_change(text: str, tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(HEAD + text, encoding="utf-8")
    place = next(line for line, held in enumerate((HEAD + text).splitlines(), 1) if "# here" in held)
    assert [finding.line for finding in inspect_script(file).findings] == [place]


def test_set_epoch_is_missed_in_the_loop_over_epochs_as_well(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    text = """
from torch.utils.data.distributed import DistributedSampler
loader = DataLoader(rows, 8, sampler=DistributedSampler(rows))
def one_pass(net, opt):
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
for epoch in range(10):  # here
    one_pass(net, opt)
"""
    file.write_text(HEAD + text, encoding="utf-8")
    place = next(line for line, held in enumerate((HEAD + text).splitlines(), 1) if "# here" in held)
    (finding,) = inspect_script(file).findings
    assert finding.rule == "set_epoch_missing"
    assert place in finding.lines
