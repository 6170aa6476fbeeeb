"""Sound scripts in idioms that look like faults are not accused: what is not certain is at most said to depend."""

from __future__ import annotations

from pathlib import Path

import pytest

from mldebug_mcp import inspect_script
from tests.script.test_kinds import HEAD

TRAINED_AND_JUDGED = """
net = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.1), nn.Linear(8, 2)); opt = torch.optim.AdamW(net.parameters(), 1e-3)
for epoch in range(9):
    net.train()
    for x, y in train:
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        right = sum((net(x).argmax(1) == y).sum().item() for x, y in held)
"""
SOUND = {
    "schedules of one name in two functions, each at its own pace": """
def pretrain(net, opt, loader, epochs):
    total = epochs * len(loader)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: 1 - s / total)
    for _ in range(epochs):
        for x, y in loader:
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
def probe(net, opt, loader, epochs):
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs)
    for _ in range(epochs):
        for x, y in loader:
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        sched.step()
""",
    "a penalty on gradients whose weight is a gamma": """
R1_GAMMA = 10.0
def penalty(D, real):
    real = real.detach().requires_grad_(True)
    (grad,) = torch.autograd.grad(D(real).sum(), real, create_graph=True)
    return grad.pow(2).flatten(1).sum(1).mean()
def fit(G, loader):
    D = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 1))
    opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
    for real in loader:
        with torch.no_grad():
            fake = G(torch.randn(len(real), 8))
        loss_d = F.relu(1 - D(real)).mean() + F.relu(1 + D(fake)).mean()
        loss_d = loss_d + 0.5 * R1_GAMMA * penalty(D, real)
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()
        loss_g = -D(G(torch.randn(len(real), 8))).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
""",
    "a loss that is added up from nothing, divided and zeroed in place": """
def fit(model, opt, loader, heads, is_dummy):
    for x, ys in loader:
        loss = 0.0
        for head, y in zip(heads, ys):
            loss += F.cross_entropy(model(x, head), y)
        loss /= 4
        if is_dummy:
            loss *= 0
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    "a loss of nothing where a batch has no rows": """
def fit(model, opt, loader):
    for x, y in loader:
        if len(y):
            loss = F.cross_entropy(model(x), y)
        else:
            loss = torch.tensor(0.0, requires_grad=True)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    "gradients that are turned on again inside": """
@torch.no_grad()
def guide(unet, latents, steps):
    for t in steps:
        with torch.enable_grad():
            x = latents.detach().requires_grad_(True)
            loss = unet(x, t).pow(2).mean()
            loss.backward()
        latents = latents - x.grad
    return latents
""",
    "dropout where training is asked after, and in a loss": """
class Net(nn.Module):
    def forward(self, x):
        if self.training:
            x = F.dropout(x, 0.3)
        rate = 0.2 if self.training else 0.0
        return F.dropout(x, p=rate)
def contrast(model, opt, batch):
    a, b = F.dropout(model(batch), p=0.1), model(batch)
    loss = F.cross_entropy(a @ b.T / 0.05, torch.arange(len(a)))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a counter that changes between two tests, and two of one name": """
def play(n):
    step = 0
    while step < n:
        if step % 4 == 0:
            learn()
            step += 1
            if step % 4 == 1:
                evaluate()
        step += 1
def wait(n):
    i = 0
    while i < n:
        i += 2
    for i in range(n):
        if i % 2 == 1:
            log(i)
""",
    "losses of the file's own, under names of PyTorch": """
def cross_entropy(labels, logits):
    return -(labels * logits.log_softmax(1)).sum(1).mean()
def kl_div(p, q):
    return (p * (p.log() - q.log())).sum(-1).mean()
def fit(student, teacher, opt, loader):
    for x, labels in loader:
        logits = student(x)
        loss = cross_entropy(labels, logits) + kl_div(F.softmax(teacher(x), -1), F.softmax(logits, -1))
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    "probabilities over time, of one row, and in both directions": """
def pool(head, out):
    weight = F.softmax(head(out), dim=0)
    return (weight * out).sum(0)
def act(policy, state):
    logits = policy(state)
    return torch.multinomial(torch.softmax(logits, dim=0), 1)
def match(logits):
    return logits.softmax(dim=0) * logits.softmax(dim=1)
def best(model, x):
    output = model(x.unsqueeze(0))[0]
    return torch.softmax(output, dim=0).topk(5)
""",
    "triangles that choose pairs": """
def pairs(sim):
    seen = torch.tril(torch.ones_like(sim)).bool()
    return sim.masked_fill(seen, float("-inf")).max(1).values
def far(distance):
    return distance * torch.triu(torch.ones(len(distance), len(distance)), diagonal=2)
def band_mask(n):
    mask = torch.tril(torch.ones(n, n), diagonal=1) * torch.triu(torch.ones(n, n), diagonal=-1)
    return mask
""",
    "samples that are not to train their encoder": """
def step(vae, unet, opt, x, t, scheduler):
    with torch.no_grad():
        mean, logvar = vae.encode(x).chunk(2, 1)
        z = mean + torch.randn_like(mean) * torch.exp(0.5 * logvar)
    noise = torch.randn_like(z)
    loss = F.mse_loss(unet(scheduler.add_noise(z, noise, t), t), noise)
    opt.zero_grad()
    loss.backward()
    opt.step()
def noisy(x, mean, std):
    with torch.no_grad():
        y = x + mean + std * torch.randn_like(x)
    return y
""",
    "a network that is made to remember noise": """
def capacity(net, x, y, opt):
    target = torch.rand_like(y)
    for _ in range(100):
        loss = F.mse_loss(net(x), target)
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    "rows of a file, and counts that a data set keeps of its rows": """
class Stored(Dataset):
    def __init__(self, path):
        self.data = h5py.File(path)["x"]
        self.draws = np.zeros(len(self.data))
    def __getitem__(self, i):
        self.draws[i] += 1
        x = self.data[i]
        x -= x.mean()
        return torch.from_numpy(x)
""",
    "copies that follow by a method, anew, or not under a setting": """
class Agent:
    def __init__(self, mac, q, value, uses_target=False):
        self.mac, self.q, self.value = mac, q, value
        self.target_mac, self.target_q = copy.deepcopy(mac), copy.deepcopy(q)
        self.value_target = copy.deepcopy(value) if uses_target else value
        self.opt = torch.optim.Adam([*mac.parameters(), *q.parameters(), *value.parameters()], 1e-3)
    def train(self, loader):
        for i, (x, y) in enumerate(loader):
            with torch.no_grad():
                goal = self.target_mac(x) + self.target_q(x) + self.value_target(x)
            loss = F.mse_loss(self.mac(x) + self.q(x) + self.value(x), y + goal)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            if i % 100 == 0:
                self.target_mac.load_state(self.mac)
                self.target_q = copy.deepcopy(self.q)
""",
    "returns of one episode in a helper": """
class Agent:
    def returns(self, rewards, gamma):
        out, g = [], 0.0
        for r in reversed(rewards):
            g = r + gamma * g
            out.append(g)
        return out[::-1]
    def run(self, envs, n):
        obs, rewards = envs.reset(), []
        for _ in range(n):
            obs, r, done, _ = envs.step(self.act(obs))
            rewards.append(r)
            if done:
                self.store(self.returns(rewards, 0.99))
                obs, rewards = envs.reset(), []
def discounted(rewards, gamma):
    g = 0.0
    for r in reversed(rewards):
        g = r + gamma * g
    return g
""",
    "bounds of PPO for costs and for bad actions, and divergences with their sign": """
def dual(ratio, adv, eps, c):
    surr = torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv)
    return -torch.where(adv < 0, torch.max(surr, c * adv), surr).mean()
def of_cost(ratio, cost_adv, eps):
    return torch.max(ratio * cost_adv, ratio.clamp(1 - eps, 1 + eps) * cost_adv).mean()
def shaped(reward, logp, ref, beta):
    kl = ref - logp
    return reward + beta * kl
""",
    "values of own actions that are negated later, or are costs": """
class Agent:
    def learn(self, o):
        q_pi = self.critic(torch.cat([o, self.actor(o)], 1)).mean()
        loss = -q_pi
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
    def stay_safe(self, o):
        risk = self.cost_critic(torch.cat([o, self.actor(o)], 1)).mean()
        self.opt.zero_grad()
        risk.backward()
        self.opt.step()
""",
    "an attack on the weights, and pairs that are pushed apart": """
def perturb(proxy, opt, x, noisy, y, beta):
    out = proxy(x)
    clean = F.cross_entropy(out, y)
    kl = F.kl_div(F.log_softmax(proxy(noisy), 1), F.softmax(out, 1), reduction="batchmean")
    loss = -1.0 * (clean + beta * kl)
    opt.zero_grad()
    loss.backward()
    opt.step()
def perturb_by(proxy, opt, x, noisy, y, beta):
    kl = nn.KLDivLoss(reduction="sum")(F.log_softmax(proxy.model(noisy), 1), F.softmax(proxy.model(x), 1))
    loss = -1.0 * (proxy.loss(x, y) + beta * kl)
    opt.zero_grad()
    loss.backward()
    opt.step()
def repel(a, b, opt):
    loss = F.cosine_similarity(a, b, dim=-1).clamp(min=0).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a schedule that moves every thousandth batch": """
def fit(net, loader):
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)
    step = 0
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
        step += 1
        if step % 1000 == 0:
            sched.step()
""",
    "the plot of a schedule": """
opt = torch.optim.SGD(nn.Linear(1, 1).parameters(), 0.1)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 100)
rates = []
for _ in range(100):
    opt.step()
    rates.append(sched.get_last_lr()[0])
    sched.step()
""",
    "several optimizers as one, and gradients of a function that is given": """
class Several:
    def __init__(self, optimizers, criterion):
        self.optimizers, self.criterion = optimizers, criterion
    def step(self):
        for optimizer in self.optimizers:
            optimizer.step()
    def loss(self, out, y):
        return self.criterion(out, y)
def minimise(optimizer, closure, n):
    for _ in range(n):
        value = closure()
        optimizer.step()
    return value
""",
    "a first batch of a loader that shuffles": """
loader = DataLoader(data, 32, shuffle=True)
net = nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(100):
    x, y = next(iter(loader))
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    opt.step()
""",
    "rows of training in evaluation, as a reference and for comparison": """
def evaluate(net, train_loader, val_loader):
    net.eval()
    bank, hits = [], 0
    with torch.no_grad():
        for x, y in train_loader:
            bank.append((net(x), y))
        for x, y in val_loader:
            hits += nearest(net(x), y, bank)
    return hits
def test_epoch(model, train_data, dev_data):
    for rows in (train_data, dev_data):
        print(score(model, rows))
""",
    "one pass over a distributed sampler": """
loader = DataLoader(data, 32, sampler=DistributedSampler(data))
net = nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), 0.1)
for x, y in loader:
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    opt.step()
""",
    "a distributed sampler that another file is given": """
class Engine:
    def prepare(self, rows):
        sampler = DistributedSampler(rows)
        self.batches = self.io(rows, sampler=sampler)
    def fit(self, epochs):
        for _ in range(epochs):
            for x in self.batches:
                self.model(x).backward()
""",
    "splits in two branches": """
def split(rows, small):
    if small:
        train, valid = random_split(rows, [0.8, 0.2])
    else:
        train, valid = random_split(rows, [0.9, 0.1])
    return train, valid
""",
    "layers that a part of another file registers": """
class Net(nn.Module):
    def __init__(self, names):
        super().__init__()
        self.scalers = {name: nn.Linear(1, 8) for name in names}
        self.select = VariableSelection(names, scalers=self.scalers)
    def forward(self, x):
        return self.select(x)
""",
    "an optimizer that is put into another object": """
class Wrapper:
    def __init__(self, inner):
        self.inner = inner
    def restart(self):
        self.inner.optimizer = torch.optim.SGD(self.inner.model.parameters(), 0.1)
    def fit(self, loader):
        for x, y in loader:
            self.inner.optimizer.zero_grad()
            F.cross_entropy(self.inner.model(x), y).backward()
            self.inner.update()
""",
    "a loss that a helper scales": """
class Mixed:
    def __init__(self, opt):
        self.opt, self.scaler = opt, torch.amp.GradScaler("cuda")
    def scale_loss(self, loss):
        return self.scaler.scale(loss)
    def backward(self, loss):
        scaled_loss = self.scale_loss(loss)
        scaled_loss.backward()
    def step(self):
        self.scaler.step(self.opt)
        self.scaler.update()
""",
    "gradients that are scaled back by hand": """
class Mixed:
    def backward(self, loss):
        self.scaler.scale(loss).backward()
    def step(self):
        self._unscale_grads()
        self.fp32_optimizer.step()
""",
    "a model and an optimizer for each case": """
def check(cases):
    for case in cases:
        emb = nn.Embedding(10, 4)
        emb(torch.arange(10)).sum().backward()
        opt = torch.optim.SGD(emb.parameters(), 1)
        opt.step()
        assert emb.weight.grad is not None
""",
    "models of two kinds that a class makes where it needs them": """
class Attack:
    def fit(self, x, y, loss_fn):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.features = nn.Sequential(nn.Linear(4, 2))
            def forward(self, x):
                return self.features(x)
        self.net = Net()
        opt = torch.optim.Adam(self.net.parameters(), 1e-3)
        for a, b in DataLoader(TensorDataset(x, y), 32, shuffle=True):
            opt.zero_grad()
            loss_fn(self.net(a), b).backward()
            opt.step()
""",
    "losses of a pass that Lightning clears at its end": """
import lightning as L
class Module(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net, self.losses = nn.Linear(2, 1), []
    def training_step(self, batch, i):
        x, y = batch
        loss = F.mse_loss(self.net(x), y.view(-1, 1))
        self.losses.append(loss)
        return loss
    def on_train_epoch_end(self):
        self.log("mean", torch.stack(self.losses).mean())
        self.losses.clear()
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-3)
""",
    "autocast of an engine around its backward pass": """
def fit(net, opt, loader, accelerator):
    for x, y in loader:
        with accelerator.autocast():
            loss = F.cross_entropy(net(x), y)
            accelerator.backward(loss)
        opt.step()
        opt.zero_grad()
""",
    "a report of the loss and a metric": """
def stage(model, opt, batch, metric, is_last):
    out = model(batch)
    if is_last:
        loss = F.cross_entropy(out, batch.y)
        report = [loss.item(), metric]
    else:
        report = loss = out.mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    return report
""",
    "outputs that are named as a loss elsewhere": """
def fit(model, opt, loader):
    for x in loader:
        result = model(x).sum()
        opt.zero_grad()
        result.backward()
        opt.step()
def compare(model, rows):
    model.eval()
    kept = []
    for row in rows:
        result = lookup(row)
        kept.append(result)
    return kept
""",
    "a model whose part of another file shifts its inputs": """
from parts import PixelDecoder
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.decoder = PixelDecoder(16)
    def forward(self, x):
        return self.decoder(x)
    def loss(self, x):
        logits = self(x)
        return F.cross_entropy(logits.view(-1, logits.size(-1)), x.view(-1).long())
""",
    "a high learning rate for what a function is given": """
def optimizer_of(p):
    return torch.optim.Adam(p, 0.1)
""",
    "micro-batches whose loss a block scales": """
class Finder:
    def train(self, batches, accumulation_steps):
        self.opt.zero_grad()
        for i in range(accumulation_steps):
            loss = self.criterion(self.model(next(batches)))
            loss /= accumulation_steps
            with amp.scale_loss(loss, self.opt) as scaled_loss:
                scaled_loss.backward()
        self.opt.step()
""",
    "an optimizer that a trainer of another module is given": """
class Trainer:
    def fit(self, net, batches):
        optimizer = mx.optimizer.Adam(learning_rate=0.01)
        trainer = mx.gluon.Trainer(net.collect_params(), optimizer=optimizer)
        for x, y in batches:
            loss = self.loss(net(x), y)
            loss.backward()
            trainer.step(len(x))
""",
    "steps of a callback, for gradients that are computed elsewhere": """
class Stepper:
    def __init__(self, optimizer, model):
        self.optimizer, self.model = optimizer, model
    def after_batch(self, batch):
        self.optimizer.step()
class Callbacks:
    def after(self, batches):
        for batch in batches:
            self.stepper.after_batch(batch)
class Report:
    def show(self, loss_fn, out):
        return loss_fn(out)
""",
    "rows that are counted and kept next to a loss": """
def fit(net, opt, loader, seen):
    n = 0
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
        n += len(y)
        seen.append(y)
    return n
""",
    "two optimizers after one backward pass, one of a model that is not known": """
class Trainer:
    def __init__(self, actor_optim, engine):
        self.actor_optim, self.engine = actor_optim, engine
        self.value = nn.Linear(3, 1)
        self.value_optim = torch.optim.Adam(self.value.parameters(), 1e-4)
    def learn(self, loader):
        for x in loader:
            loss = self.value(x).pow(2).mean()
            self.engine.backward(loss)
            self.actor_optim.step()
            self.actor_optim.zero_grad()
            self.value_optim.step()
            self.value_optim.zero_grad()
""",
    "statistics of the training rows that the other data sets are given": """
class Sensors(Dataset):
    def __init__(self, values, stats=None):
        if stats is None:
            stats = values.mean(0), values.std(0)
        self.mean, self.std = stats
        self.values = (values - self.mean) / self.std
    def __len__(self):
        return len(self.values)
    def __getitem__(self, i):
        return self.values[i]
train = Sensors(table[:800])
valid = Sensors(table[800:], (train.mean, train.std))
""",
    "rows that are each scaled by themselves, or by statistics that are set afterwards": """
class Scans(Dataset):
    def __init__(self, rows):
        self.mean, self.std = rows.mean(axis=1), rows.std(axis=1)
        self.rows = (rows - self.mean) / self.std
    def __getitem__(self, i):
        return self.rows[i]
class Series(Dataset):
    def __init__(self, rows):
        self.rows, self.low, self.wide = rows, rows.mean(0), rows.std(0)
    def __getitem__(self, i):
        return (self.rows[i] - self.low) / self.wide
train, valid = Scans(table[:800]), Scans(table[800:])
train_series, valid_series = Series(table[:800]), Series(table[800:])
valid_series.low, valid_series.wide = train_series.low, train_series.wide
""",
    "a margin head that is given the class of each row": """
class Margin(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.body = nn.Linear(40, width)
        self.weight = nn.Parameter(torch.randn(classes, width))
    def forward(self, x, y, margin):
        cos = F.normalize(self.body(x)) @ F.normalize(self.weight).t()
        return 30 * (cos - margin * F.one_hot(y, len(self.weight)))
net = Margin(64, 10)
opt = torch.optim.Adam(net.parameters(), 1e-3)
for x, y in loader:
    loss = F.cross_entropy(net(x, y, 0.2), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a network that is conditioned on the label that a second head predicts": """
net = Conditioned(10)
opt = torch.optim.Adam(net.parameters(), 1e-3)
for image, label in loader:
    scores = net(image, label)
    loss = F.cross_entropy(scores, label)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a loss with weights that the optimizer has as well": """
class Weighting(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.logs = nn.Parameter(torch.zeros(n))
    def forward(self, losses):
        return (torch.exp(-self.logs) * losses + self.logs).sum()
net, weigh = nn.Linear(8, 2), Weighting(2)
groups = {"net": [], "rest": []}
for part in (net, weigh):
    for name, p in part.named_parameters():
        groups["net" if part is net else "rest"].append(p)
opt = torch.optim.Adam([{"params": groups["net"]}, {"params": groups["rest"], "lr": 1e-2}], 1e-3)
for x, y in loader:
    opt.zero_grad()
    loss = weigh((net(x) - y).pow(2).mean(0))
    loss.backward()
    opt.step()
""",
    "a loss whose weights are fixed on purpose": """
class Weighting(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.weights = nn.Parameter(weights, requires_grad=False)
    def forward(self, losses):
        return (self.weights * losses).sum()
net, weigh = nn.Linear(8, 2), Weighting(torch.tensor([1.0, 0.1]))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for x, y in loader:
    opt.zero_grad()
    loss = weigh((net(x) - y).pow(2).mean(0))
    loss.backward()
    opt.step()
""",
    "a state that is changed and then loaded, saved or given back": """
def follow(slow, net, rate):
    state = slow.state_dict()
    for key, value in net.state_dict().items():
        state[key] = state[key] * rate + value * (1 - rate)
    slow.load_state_dict(state)
def write(net, path, prefix):
    state = net.state_dict()
    state["prefix"] = prefix
    torch.save(state, path)
def add(net, other):
    state = copy.deepcopy(net.state_dict())
    state.update(other.state_dict())
    return state
""",
    "tensors of a state that are changed in place": """
@torch.no_grad()
def follow(slow, net, rate):
    state, new = slow.state_dict(), net.state_dict()
    for key in state:
        state[key].mul_(rate).add_(new[key], alpha=1 - rate)
        slow.state_dict()[key].copy_(state[key])
""",
    "labels of masked places alone, without padding": """
class Masking:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
    def __call__(self, rows):
        ids = pad_sequence(rows, batch_first=True)
        labels = ids.clone()
        special = ids < 5
        drawn = torch.bernoulli(torch.full(ids.shape, 0.15)).bool() & ~special
        labels[~drawn] = -100
        labels[special] = -100
        ids[torch.bernoulli(torch.full(ids.shape, 0.8)).bool() & drawn] = self.tokenizer.mask_token_id
        return {"input_ids": ids, "labels": labels}
""",
    "a mask whose name is used again for padding": """
MASK_ID, PAD_ID = 4, 0
def corrupt(tokens):
    clean = tokens.clone()
    where = torch.rand(tokens.shape) < 0.15
    labels = torch.where(where, clean, -100)
    tokens = tokens.masked_fill(where, MASK_ID)
    where = clean == PAD_ID
    labels[where] = -100
    return tokens, labels
""",
    "targets that the data shift, for a loss that does not": """
class Text(Dataset):
    def __init__(self, rows):
        self.rows = rows
    def __getitem__(self, i):
        return {"ids": self.rows[i][:-1], "next": self.rows[i][1:]}
net = nn.Sequential(nn.Embedding(99, 64), nn.Linear(64, 99))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for batch in DataLoader(Text(rows), 32, shuffle=True):
    opt.zero_grad()
    logits = net(batch["ids"])
    F.cross_entropy(logits.flatten(0, 1), batch["next"].flatten()).backward()
    F.cross_entropy(logits[:, 1:].flatten(0, 1), batch["next"][:, 1:].flatten()).backward()
    opt.step()
""",
    "rows that the loss alone shifts, next to pairs of another form": """
from transformers import AutoModelForCausalLM
class Text(Dataset):
    def __init__(self, rows):
        self.rows = rows
    def __getitem__(self, i):
        ids = self.rows[i]
        return ids, ids.clone()
class Pairs(Dataset):
    def __init__(self, rows):
        self.rows = rows
    def __getitem__(self, i):
        return self.rows[i][:-1], self.rows[i][1:], i
net = AutoModelForCausalLM.from_pretrained("small")
opt = torch.optim.Adam(net.parameters(), 1e-4)
for ids, labels in DataLoader(Text(rows), 32, shuffle=True):
    opt.zero_grad()
    logits = net(ids).logits
    F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()).backward()
    opt.step()
""",
    "parts of the rows by a helper that is given their bounds": """
codes, targets = np.load("x.npy"), np.load("y.npy")
cut = int(0.8 * len(codes))
def part(lo, hi):
    return TensorDataset(torch.from_numpy(codes[lo:hi]), torch.from_numpy(targets[lo:hi]))
train = DataLoader(part(0, cut), batch_size=64, shuffle=True)
held = DataLoader(part(cut, len(codes)), batch_size=256)"""
    + TRAINED_AND_JUDGED,
    "a switch that holds the last item of each row out": """
class Sessions(Dataset):
    def __init__(self, items, spans, holdout):
        self.items, self.spans, self.holdout = items, spans, holdout
    def __len__(self):
        return len(self.spans)
    def __getitem__(self, i):
        lo, hi = self.spans[i]
        row = self.items[lo:hi] if self.holdout else self.items[lo:hi - 1]
        return row[:-1], row[-1]
items, spans = np.load("items.npy"), np.load("spans.npy")
train = DataLoader(Sessions(items, spans, False), batch_size=64, shuffle=True)
held = DataLoader(Sessions(items, spans, True), batch_size=256)"""
    + TRAINED_AND_JUDGED,
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in SOUND.items()])
def test_a_sound_script_is_not_accused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(HEAD + text, encoding="utf-8")
    accused = [finding.rule for finding in inspect_script(file).findings if finding.certainty != "depends"]
    assert accused == []
