"""What is computed is not what is meant: masks, targets, rows and averages of scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.script.test_kinds import rules_of

FAULTS = {
    "loss_sign": [
        """
def shaped(score, lp, ref_lp, kl_coef):
    kl = (lp.detach() - ref_lp).sum(1)
    return score + kl_coef * kl
opt = torch.optim.Adam(policy.parameters())
opt.step()
""",
        """
class Agent:
    def learn(self, o):
        a_loss = self.critic(torch.cat([o, self.actor(o)], 1)).mean()
        self.opt.zero_grad()
        a_loss.backward()
        self.opt.step()
        self.critic.eval()
""",
    ],
    "split_twice": [
        """
class Data:
    def train_loader(self):
        part, _ = random_split(self.ratings, [900, 100])
        return DataLoader(part, 32, shuffle=True)
    def val_loader(self):
        _, part = random_split(self.ratings, [900, 100])
        return DataLoader(part, 512)
""",
    ],
    "best_is_worst": [
        """
def fit(net, criterion, loader, epochs):
    best = 0.0
    for epoch in range(epochs):
        tot = 0.0
        for x, y in loader:
            loss = criterion(net(x), y)
            tot += loss.item()
        if tot > best:
            best = tot
            torch.save(net.state_dict(), "best.pt")
""",
    ],
    "average_forgets": [
        """
def follow(slow, net):
    for s, p in zip(slow.parameters(), net.parameters()):
        s.data.mul_(0.001).add_(p.data, alpha=0.999)
""",
        """
TAU = 0.995
def follow(slow, net):
    for s, p in zip(slow.parameters(), net.parameters()):
        s.data.lerp_(p.data, TAU)
""",
    ],
    "times_the_temperature": [
        """
def info_nce(a, b, temperature=0.07):
    logits = (a @ b.T) * temperature
    return F.cross_entropy(logits, torch.arange(len(a)))
temperature = 0.07
""",
    ],
    "sampled_without_gradient": [
        """
class Model(nn.Module):
    def forward(self, x):
        mu, logvar = self.encoder(x).chunk(2, dim=-1)
        with torch.no_grad():
            z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.decoder(z), mu, logvar
""",
    ],
    "target_is_the_same": [
        """
policy = nn.Linear(4, 2)
ref_model = policy
opt = torch.optim.Adam(policy.parameters())
for x, y in loader:
    with torch.no_grad():
        before = ref_model(x)
    opt.zero_grad()
    F.kl_div(policy(x).log_softmax(-1), before.softmax(-1)).backward()
    opt.step()
""",
    ],
    "next_place_in_sight": [
        """
class Decoder(nn.Module):
    def forward(self, x):
        blocked = torch.triu(torch.ones(x.size(1), x.size(1), dtype=torch.bool), diagonal=2)
        return self.body(x, mask=blocked)
""",
        """
def attend(scores):
    seen = torch.tril(torch.ones_like(scores), diagonal=1)
    return scores.masked_fill(seen == 0, float("-inf")).softmax(-1)
""",
    ],
    "all_rows_one_target": [
        """
def contrast(images, texts, scale):
    logits = scale * images @ texts.t()
    target = torch.zeros(len(images), dtype=torch.long)
    return F.cross_entropy(logits, target)
""",
        """
def info_nce(q, k, tau=0.1):
    return F.cross_entropy(torch.mm(q, k.T) / tau, torch.zeros(q.shape[0]).long())
""",
    ],
    "target_is_random": [
        """
class Noiser:
    def spoil(self, x0, t):
        noise = torch.randn_like(x0)
        return self.keep[t] * x0 + self.add[t] * noise
    def loss(self, net, x0, t):
        xt = self.spoil(x0, t)
        noise = torch.randn_like(x0)
        return ((net(xt, t) - noise) ** 2).mean()
""",
        """
def step(unet, images, t, scheduler):
    noisy = scheduler.add_noise(images, torch.randn_like(images), t)
    eps = torch.randn_like(images)
    guess = unet(noisy, t)
    return F.mse_loss(guess, eps)
""",
    ],
    "target_of_another_prediction": [
        """
def train(unet, loader, opt):
    scheduler = DDPMScheduler(num_train_timesteps=1000, prediction_type="v_prediction")
    for x in loader:
        noise = torch.randn_like(x)
        t = torch.randint(0, 1000, (len(x),), device=x.device)
        pred = unet(scheduler.add_noise(x, noise, t), t).sample
        loss = F.mse_loss(pred.float(), noise.float())
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
        """
class Model:
    def __init__(self, net):
        self.net = net
        self.noises = DDIMScheduler(prediction_type="epsilon")
    def loss(self, x, t):
        noise = torch.randn_like(x)
        target = self.noises.get_velocity(x, noise, t)
        return ((self.net(self.noises.add_noise(x, noise, t), t) - target) ** 2).mean()
""",
        """
noises = DDPMScheduler(1000)
def loss_of(unet, clean, t):
    noisy = noises.add_noise(clean, torch.randn_like(clean), t)
    return F.mse_loss(unet(noisy, t).sample, clean)
def sample(unet, x):
    for t in noises.timesteps:
        x = noises.step(unet(x, t).sample, t, x).prev_sample
    return x
""",
        """
noises = FlowMatchEulerDiscreteScheduler.from_pretrained("base", subfolder="scheduler")
def loss_of(net, latents, sigmas, t, text):
    noise = torch.randn_like(latents)
    noisy = (1.0 - sigmas) * latents + sigmas * noise
    target = latents - noise
    return F.mse_loss(net(noisy, t, text), target)
""",
        """
def loss_of(net, x1):
    x0 = torch.randn_like(x1)
    t = torch.rand(len(x1), 1, device=x1.device)
    xt = (1 - t) * x0 + t * x1
    return F.mse_loss(net(xt, t), x1)
def sample(net, x, steps=50):
    for i in range(steps):
        v = net(x, torch.full((len(x), 1), i / steps))
        x = x + v * (1 / steps)
    return x
""",
    ],
    "never_holds": [
        """
TRAIN_EVERY, SYNC_EVERY = 4, 500
for step in range(10_000):
    if step % 4 == 0:
        learn()
        if step % 500 == 3:
            target.load_state_dict(online.state_dict())
""",
        """
def loop(n):
    for i in range(n):
        if (i + 1) % 10 == 0 and i > 100:
            if i % 20 == 0:
                save(i)
""",
        """
class Loop:
    def __init__(self):
        self.seen = 0
    def run(self, n):
        for _ in range(n):
            if (self.seen + 1) % 500 == 0:
                self.target.load_state_dict(self.online.state_dict())
            self.seen += 8
""",
    ],
    "average_without_buffers": [
        """
net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.LazyLinear(4))
slow = copy.deepcopy(net)
slow.eval()
@torch.no_grad()
def follow(decay):
    for s, f in zip(slow.parameters(), net.parameters()):
        s.mul_(decay).add_(f, alpha=1 - decay)
""",
    ],
    "scaled_in_training_alone": [
        """
class Rows(Dataset):
    def __init__(self, x, y, stats=None):
        self.x, self.y, self.stats = x, y, stats
    def __len__(self):
        return len(self.y)
    def __getitem__(self, i):
        row = self.x[i]
        if self.stats is not None:
            row = (row - self.stats[0]) / self.stats[1]
        return row, self.y[i]
def build(a, b, c, d):
    stats = (a.mean(0), a.std(0))
    train = DataLoader(Rows(a, b, stats), batch_size=32, shuffle=True)
    valid = DataLoader(Rows(c, d), batch_size=32)
    return train, valid
""",
    ],
    "scaled_in_training_alone ": [
        """
class Boxes(Dataset):
    def __init__(self, n, transform=None):
        self.images, self.transform = torch.rand(n, 8, 8) * 255, transform
    def __len__(self):
        return len(self.images)
    def __getitem__(self, i):
        return self.transform(self.images[i]) if self.transform else self.images[i]
norm = Normalize(112.0, 35.0)
train_dl = DataLoader(Boxes(900, transform=norm), 32, shuffle=True)
val_dl = DataLoader(Boxes(100), 100)
""",
    ],
    "rows_changed_in_place": [
        """
class Jitter:
    def __call__(self, x):
        x += 0.1 * np.random.randn(*x.shape)
        return x
class Clips(Dataset):
    def __init__(self, x, y, jitter):
        self.x, self.y, self.jitter = x, y, jitter
    def __len__(self):
        return len(self.y)
    def __getitem__(self, i):
        x = self.x[i]
        if self.jitter is not None:
            x = self.jitter(x)
        return torch.from_numpy(x), self.y[i]
""",
        """
class Images(Dataset):
    def __init__(self, images):
        self.images = images
    def __len__(self):
        return len(self.images)
    def __getitem__(self, index):
        image = self.images[index]
        image[:, :4] = 0
        return torch.as_tensor(image)
""",
        """
class Waves(Dataset):
    def __init__(self, waves):
        self.waves = waves
    def __len__(self):
        return len(self.waves)
    def __getitem__(self, i):
        self.waves[i] += 0.01 * torch.randn(16000)
        return self.waves[i]
""",
    ],
    "fitted_before_split": [
        """
def main(columns, y, seed):
    enc = MeanEncoder().fit(columns, y)
    order = np.random.default_rng(seed).permutation(len(y))
    va, tr = order[:100], order[100:]
    return enc, y[tr], y[va]
""",
    ],
    "seed_in_loop": [
        """
def train_epoch(net, opt, args):
    torch.manual_seed(args.seed)
    for _ in range(args.iters):
        x, y = draw(args.batch)
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
def main(args):
    net = nn.Linear(4, 2)
    opt = torch.optim.Adam(net.parameters())
    for epoch in range(args.epochs):
        train_epoch(net, opt, args)
""",
    ],
    "schedule_per_batch": [
        """
def train(net, opt, loader, epochs, accum):
    updates = epochs * len(loader) // accum
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: max(0.0, 1 - s / updates))
    for epoch in range(epochs):
        for b, (x, y) in enumerate(loader):
            (F.cross_entropy(net(x), y) / accum).backward()
            if (b + 1) % accum == 0 or b + 1 == len(loader):
                opt.step()
                opt.zero_grad()
            sched.step()
""",
    ],
    "mask_inverted": [
        """
class Attention(nn.Module):
    def forward(self, scores, pad):
        return scores.masked_fill(~pad[:, None, :], -1e9).softmax(-1)
class Model(nn.Module):
    def forward(self, ids):
        pad = ids == 0
        return self.attention(self.scores(ids), pad)
""",
    ],
    "loss_cut_off": [
        """
def fit(model, opt, loader, weights):
    for x, a, b in loader:
        parts = losses(model, x, a, b)
        kept = {"intent": parts["intent"], "slot": parts["slot"].item()}
        loss = sum(weights[k] * v for k, v in kept.items())
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
        """
def discounted(rewards, last, gamma):
    total, found = last, torch.zeros_like(rewards)
    for t in reversed(range(len(rewards))):
        total = rewards[t] + gamma * total
        found[t] = total
    return found
def fit(policy, opt, env, args):
    for _ in range(args.updates):
        logs, values, rewards = [], [], []
        for _ in range(16):
            dist, value = policy(env.state())
            action = dist.sample()
            logs.append(dist.log_prob(action))
            values.append(value)
            rewards.append(torch.tensor(env.step(action.tolist())))
        with torch.no_grad():
            _, last = policy(env.state())
        returns = discounted(torch.stack(rewards), last, args.gamma)
        advantages = returns - torch.stack(values).detach()
        advantages = (advantages - advantages.mean()) / advantages.std()
        policy_loss = -(torch.stack(logs) * advantages).mean()
        value_loss = advantages.pow(2).mean()
        loss = policy_loss + args.value_coef * value_loss
        policy.zero_grad()
        loss.backward()
        opt.step()
""",
        """
def fit(net, opt, loader, smoothness=0.1):
    for x, y in loader:
        out = net(x)
        seen = out.detach()
        rough = (seen[:, 1:] - seen[:, :-1]).abs().mean()
        loss = F.cross_entropy(out, y)
        loss += smoothness * rough
        net.zero_grad()
        (loss / 4).backward()
        opt.step()
""",
        """
WEIGHT = 0.1
def fit(backbone, opt, loader):
    for x, y in loader:
        with torch.no_grad():
            spread = backbone(x).var(0)
        spread_loss = (spread - 1).pow(2).mean()
        loss = F.cross_entropy(backbone(x), y) + WEIGHT * spread_loss
        backbone.zero_grad()
        loss.backward()
        opt.step()
""",
    ],
}

HEALTHY = {
    "the velocity of a scheduler that takes it": """
noises = DDPMScheduler(1000, prediction_type="v_prediction")
def loss_of(unet, clean, t):
    noise = torch.randn_like(clean)
    return F.mse_loss(unet(noises.add_noise(clean, noise, t), t).sample, noises.get_velocity(clean, noise, t))
""",
    "noise by default": """
noises = DDPMScheduler(1000)
def loss_of(unet, clean, t):
    noise = torch.randn(clean.shape)
    return F.mse_loss(unet(noises.add_noise(clean, noise, t), t).sample, noise)
def sample(unet, x):
    for t in noises.timesteps:
        x = noises.step(unet(x, t).sample, t, x).prev_sample
    return x
""",
    "a target for each kind of prediction": """
def loss_of(unet, noises, clean, t):
    noise = torch.randn_like(clean)
    if noises.config.prediction_type == "epsilon":
        target = noise
    else:
        target = noises.get_velocity(clean, noise, t)
    return F.mse_loss(unet(noises.add_noise(clean, noise, t), t).sample, target)
noises = DDPMScheduler(1000, prediction_type="v_prediction")
""",
    "a target by a flag": """
noises = DDPMScheduler(1000, prediction_type="v_prediction")
def loss_of(unet, clean, t, plain):
    noise = torch.randn_like(clean)
    target = noises.get_velocity(clean, noise, t)
    if plain:
        target = noise
    return F.mse_loss(unet(noises.add_noise(clean, noise, t), t).sample, target)
""",
    "an output made into another": """
noises = DDPMScheduler(1000, prediction_type="v_prediction")
def loss_of(unet, clean, t, a, s):
    noise = torch.randn_like(clean)
    noisy = noises.add_noise(clean, noise, t)
    pred = a * unet(noisy, t).sample + s * noisy
    return F.mse_loss(pred, noise)
""",
    "a scheduler that adds noise alone, and a sampler of the script": """
noises = DDPMScheduler(1000)
def loss_of(unet, clean, t):
    noisy = noises.add_noise(clean, torch.randn_like(clean), t)
    return F.mse_loss(unet(noisy, t), clean)
""",
    "a flow and its scheduler": """
noises = FlowMatchEulerDiscreteScheduler.from_pretrained("base", subfolder="scheduler")
def loss_of(net, latents, sigmas, t, text):
    noise = torch.randn_like(latents)
    noisy = (1.0 - sigmas) * latents + sigmas * noise
    target = noise - latents
    return F.mse_loss(net(noisy, t, text), target)
""",
    "a flow of one's own": """
def loss_of(net, x1):
    x0 = torch.randn_like(x1)
    t = torch.rand(len(x1), 1, device=x1.device)
    xt = (1 - t) * x0 + t * x1
    return F.mse_loss(net(xt, t), x1 - x0)
def sample(net, x, steps=50):
    for i in range(steps):
        v = net(x, torch.full((len(x), 1), i / steps))
        x += v * (1 / steps)
    return x
""",
    "a straight path and steps that go by the sample": """
def loss_of(net, x1):
    x0 = torch.randn_like(x1)
    t = torch.rand(len(x1), 1, device=x1.device)
    xt = (1 - t) * x0 + t * x1
    return F.mse_loss(net(xt, t), x1)
def sample(net, x, steps=50):
    for i in range(steps):
        end = net(x, torch.full((len(x), 1), i / steps))
        x = x + (end - x) / (steps - i)
    return x
""",
    "an error that is called a score and summed up as acc": """
def rmspe(net, loader):
    acc = n = 0
    for x, y in loader:
        acc += (((net(x) - y) / y) ** 2).sum().item()
        n += len(y)
    return (acc / n) ** 0.5
def fit(net, train, held, epochs):
    best = float("inf")
    for epoch in range(epochs):
        train(net)
        score = rmspe(net, held)
        if score < best:
            best = score
            torch.save(net.state_dict(), "best.pt")
""",
    "an accuracy by its name that counts what is wrong": """
def fit(net, train, logits, y, epochs):
    best = float("inf")
    for epoch in range(epochs):
        train(net)
        val_acc = (logits.argmax(1) != y).float().mean()
        if val_acc < best:
            best = val_acc
""",
    "the entropy of a teacher, constants, and parts that are detached as they are": """
def fit(net, teacher, opt, loader, epoch, alpha=0.5):
    weight = min(1.0, epoch / 10)
    for x, y in loader:
        with torch.no_grad():
            p = teacher(x).softmax(-1)
        out = net(x)
        entropy = -(p * p.log()).sum(-1).mean()
        soft = -(p * out.log_softmax(-1)).sum(-1).mean()
        size = out.pow(2).mean()
        bonus = 0.01 * epoch
        shown_loss = (out.detach() - 1).pow(2).mean()
        loss = F.cross_entropy(out, y) + alpha * soft - alpha * entropy + weight * size - weight * size.detach() + bonus
        net.zero_grad()
        loss.backward()
        opt.step()
        print(loss.item(), shown_loss.item())
""",
    "parts of a loss that learn through parameters, and through an array that is filled": """
scale = nn.Parameter(torch.zeros(2))
def penalty(values):
    return (scale.exp() - values).pow(2).mean()
def fit(net, loader):
    opt = torch.optim.Adam([*net.parameters(), scale])
    for x, y in loader:
        out = net(x)
        sums = torch.zeros(2)
        sums[0] = out.mean()
        apart_loss = (sums - out.detach().mean()).pow(2).mean()
        scale_loss = penalty(out.detach())
        loss = F.cross_entropy(out, y) + 0.1 * apart_loss + 0.1 * scale_loss
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    "a count that divides the loss is added up": """
def fit(model, opt, criterion, loader):
    loss_sum, tokens = 0.0, 0
    for x, y in loader:
        n = (y != -100).sum().item()
        loss = criterion(model(x), y)
        opt.zero_grad()
        (loss / n).backward()
        opt.step()
        loss_sum += loss.item()
        tokens += n
    return loss_sum / tokens
""",
    "teachers are loaded into a list": """
def load_teachers(paths):
    teachers = []
    for path in paths:
        net = nn.Linear(4, 2)
        net.load_state_dict(torch.load(path))
        teachers.append(net.to("cpu").eval().requires_grad_(False))
    return teachers
def fit(student, opt, teachers, loader):
    for x, _ in loader:
        with torch.no_grad():
            goal = sum(teacher(x).softmax(-1) for teacher in teachers) / len(teachers)
        loss = F.kl_div(student(x).log_softmax(-1), goal, reduction="batchmean")
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    "one function for both phases, of which one trains": """
loaders = {
    "train": DataLoader(sets["train"], batch_size=16, shuffle=True),
    "val": DataLoader(sets["val"], batch_size=64),
}
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=1e-3)
def run_epoch(phase):
    training = phase == "train"
    net.train(training)
    with torch.set_grad_enabled(training):
        for x, y in loaders[phase]:
            loss = F.cross_entropy(net(x), y)
            if training:
                opt.zero_grad()
                loss.backward()
                opt.step()
for epoch in range(9):
    run_epoch("train")
    run_epoch("val")
""",
    "a teacher after the other is trained and frozen": """
class Ensemble:
    def __init__(self):
        self.teachers = nn.ModuleList(nn.Linear(2, 3) for _ in range(4))
    def teach(self, batches):
        for t in self.teachers:
            opt = torch.optim.Adam(t.parameters(), lr=3e-3)
            for x, y in batches:
                loss = F.cross_entropy(t(x), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
            t.eval().requires_grad_(False)
""",
    "a divergence that is charged for, and an actor that is to get better": """
class Agent:
    def shaped(self, score, kl, coef):
        return score - coef * kl
    def learn(self, o):
        a_loss = -self.critic(torch.cat([o, self.actor(o)], 1)).mean()
        self.opt.zero_grad()
        a_loss.backward()
        self.opt.step()
""",
    "a target that is scaled before the split": """
def build(x, y, n):
    y = (y - y.mean()) / y.std()
    return (x[:n], y[:n]), (x[n:], y[n:])
""",
    "two splits with one seed": """
class Data:
    def train_loader(self):
        part, _ = random_split(self.ratings, [900, 100], generator=torch.Generator().manual_seed(0))
        return DataLoader(part, 32, shuffle=True)
    def val_loader(self):
        _, part = random_split(self.ratings, [900, 100], generator=torch.Generator().manual_seed(0))
        return DataLoader(part, 512)
""",
    "a counter that meets the period": """
class Loop:
    def __init__(self):
        self.seen = 0
    def run(self, n):
        for _ in range(n):
            if self.seen % 400 == 0:
                self.target.load_state_dict(self.online.state_dict())
            self.seen += 8
""",
    "averages that keep most of themselves": """
def follow(slow, net, tau):
    for s, p in zip(slow.parameters(), net.parameters()):
        s.data.mul_(0.995).add_(p.data, alpha=0.005)
    for s, p in zip(slow.parameters(), net.parameters()):
        s.data.lerp_(p.data, 0.005)
""",
    "a temperature that divides, and a scale that multiplies": """
temperature, scale = 0.07, 20.0
def info_nce(a, b):
    target = torch.arange(len(a))
    return F.cross_entropy((a @ b.T) / temperature, target) + F.cross_entropy((a @ b.T) * scale, target)
""",
    "a sample with its gradient, and noise on data without one": """
class Model(nn.Module):
    def forward(self, x):
        with torch.no_grad():
            x = x + 0.1 * torch.randn_like(x)
        mu, logvar = self.encoder(x).chunk(2, dim=-1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.decoder(z), mu, logvar
""",
    "the largest error, which is what is asked": """
class Largest:
    def update(self, mae):
        if mae > self._max_of_errors:
            self._max_of_errors = mae
""",
    "rewards that are to be high": """
def fit(agent, env, epochs):
    best = 0.0
    for epoch in range(epochs):
        tot = 0.0
        for step in range(100):
            tot += env.step(agent.act())
        if tot > best:
            best = tot
            torch.save(agent.state_dict(), "best.pt")
""",
    "masks that hide the next place and all behind it": """
def masks(n):
    return torch.triu(torch.ones(n, n), diagonal=1).bool(), torch.tril(torch.ones(n, n))
""",
    "the positive in the first column": """
def moco(q, k, queue, tau):
    logits = torch.cat([(q * k).sum(1, keepdim=True), q @ queue.T], dim=1) / tau
    return F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long))
""",
    "the noise that was added is the target": """
def loss(net, x0, t, keep, add):
    noise = torch.randn_like(x0)
    return F.mse_loss(net(keep[t] * x0 + add[t] * noise, t), noise)
""",
    "the noise that was added by a helper is the target": """
def loss(net, x0, t, scheduler):
    noise = torch.randn_like(x0)
    noisy = scheduler.add_noise(x0, noise, t)
    return F.mse_loss(net(noisy, t), noise)
""",
    "two periods that meet": """
for step in range(10_000):
    if step % 4 == 0:
        learn()
        if step % 500 == 0:
            target.load_state_dict(online.state_dict())
""",
    "an average with its buffers": """
net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8))
slow = copy.deepcopy(net).eval()
def follow(decay):
    for s, f in zip(slow.parameters(), net.parameters()):
        s.mul_(decay).add_(f, alpha=1 - decay)
    for s, f in zip(slow.buffers(), net.buffers()):
        s.copy_(f)
""",
    "both data sets get the statistics": """
class Rows(Dataset):
    def __init__(self, x, stats=None):
        self.x, self.stats = x, stats
    def __len__(self):
        return len(self.x)
    def __getitem__(self, i):
        row = self.x[i]
        if self.stats is not None:
            row = (row - self.stats[0]) / self.stats[1]
        return row
def build(a, c, stats):
    return Rows(a, stats), Rows(c, stats=stats)
""",
    "a copy is changed": """
class Jitter:
    def __call__(self, x):
        x = x.copy()
        x += 0.1 * np.random.randn(*x.shape)
        return x
class Clips(Dataset):
    def __init__(self, x, jitter):
        self.x, self.jitter = x, jitter
    def __len__(self):
        return len(self.x)
    def __getitem__(self, i):
        x = self.x[i]
        return torch.from_numpy(self.jitter(x))
""",
    "the encoder sees the rows of training, and labels get their numbers": """
def main(columns, y, seed):
    numbers = LabelEncoder().fit(y)
    order = np.random.default_rng(seed).permutation(len(y))
    va, tr = order[:100], order[100:]
    enc = MeanEncoder().fit(columns[tr], y[tr])
    return enc, numbers, y[va]
""",
    "one seed for each training of a sweep": """
def train(config):
    torch.manual_seed(config.seed)
    net = nn.Linear(4, 2)
    opt = torch.optim.Adam(net.parameters())
    for x, y in stream(config):
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
for config in configs:
    train(config)
""",
    "a schedule of updates that moves with them": """
def train(net, opt, loader, epochs, accum):
    updates = epochs * len(loader) // accum
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: max(0.0, 1 - s / updates))
    for epoch in range(epochs):
        for b, (x, y) in enumerate(loader):
            (F.cross_entropy(net(x), y) / accum).backward()
            if (b + 1) % accum == 0 or b + 1 == len(loader):
                opt.step()
                opt.zero_grad()
                sched.step()
""",
    "a mask of real tokens": """
class Attention(nn.Module):
    def forward(self, scores, keep):
        return scores.masked_fill(~keep[:, None, :], -1e9).softmax(-1)
class Model(nn.Module):
    def forward(self, ids):
        keep = ids != 0
        return self.attention(self.scores(ids), keep)
""",
    "numbers for the log alone": """
def fit(model, opt, loader, log):
    for x, a, b in loader:
        intent, slot = losses(model, x, a, b)
        loss = intent + slot
        log({"intent": intent.item(), "loss": loss.item(), "x": x})
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    "a model that shifts its inputs itself": """
class Seq(nn.Module):
    def forward(self, src, tgt):
        inputs = torch.cat([torch.zeros_like(tgt[:, :1]), tgt[:, :-1]], 1)
        return self.decode(self.encode(src), inputs)
def fit(model, opt, loader):
    for src, tgt in loader:
        opt.zero_grad()
        F.cross_entropy(model(src, tgt).flatten(0, 1), tgt.flatten()).backward()
        opt.step()
""",
}

CASES = [pytest.param(rule, text, id=f"{rule}-{n}") for rule, texts in FAULTS.items() for n, text in enumerate(texts)]


@pytest.mark.parametrize(("rule", "text"), CASES)
def test_what_is_computed_is_not_what_is_meant(rule: str, text: str, tmp_path: Path) -> None:
    assert rules_of(tmp_path, text) == [rule.strip()]


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in HEALTHY.items()])
def test_what_is_meant_is_not_accused(text: str, tmp_path: Path) -> None:
    assert rules_of(tmp_path, text) == []
