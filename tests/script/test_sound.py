"""Sound scripts in idioms that look like faults are not accused: what is not certain is at most said to depend."""

from __future__ import annotations

from pathlib import Path

import pytest

from mldebug_mcp import inspect_script
from tests.script.test_kinds import HEAD

SOUND = {
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
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in SOUND.items()])
def test_a_sound_script_is_not_accused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(HEAD + text, encoding="utf-8")
    accused = [finding.rule for finding in inspect_script(file).findings if finding.certainty != "depends"]
    assert accused == []
