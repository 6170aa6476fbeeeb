"""Shapes of outputs and targets are followed: a loss that broadcasts is found, and one that fits is not accused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.script.test_kinds import rules_of

REGRESSION = """
import numpy as np
from einops import reduce
def smooth(x):
    return torch.sin(x[:, 0]).unsqueeze(-1)
w = torch.randn(4, 1)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.SGD(model.parameters(), 0.01)
for step in range(100):
    x = torch.randn(64, 4)
    y = TARGET
    loss = (model(x) - y).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
COLUMNS = [
    "x.sum(1, keepdim=True)", "x.norm(2, dim=1, keepdim=True)", "x.var(1, True, True)", "torch.sum(x, 1, True)",
    "x.max(1, keepdim=True)[0]", "x.topk(1).values", "x[:, :1]", "x[..., -1:]", "x[:, [0]]", "x[:, 0, None]",
    "torch.sin(x).cumsum(1)[:, -1:]", "(x[:, :1] > 0).float()", "torch.sign(x[:, :1])", "torch.mm(x, w).clamp(min=0)",
    'reduce(x, "b d -> b 1", "mean")', "x.sum(0, keepdim=True).T[:1].expand(64, 1)", "torch.tensor([[1.0]] * 64)",
    "torch.from_numpy(np.sum(x.numpy(), axis=1, keepdims=True))", "smooth(x)", "x.split(1, dim=1)[0]",
    "2 * x.sum(1, keepdim=True) + 0.1 * x[:, 1:2]", "x.unsqueeze(-1).sum(1)", "torch.rand(64, 3, 1).mean(1)",
    "torch.from_numpy(np.random.default_rng(0).normal(size=(64, 1)))",
]  # fmt: skip
ROWS = [
    "x.sum(1)", "x.mean(dim=-1)", "x[:, 0]", "x[:, :2].sum(1)", "x.max(1).values", "torch.sin(x.prod(1)) + 1",
    "x @ torch.ones(4)", "(x.sum(1) > 0).float()", "x.sum(1, keepdim=True).squeeze(1)", "x.select(1, 0)",
    "torch.from_numpy(np.random.default_rng(0).normal(size=64))", "x.sum(1) - x[:, :1]",
]  # fmt: skip


@pytest.mark.parametrize("target", COLUMNS)
def test_a_target_that_the_script_makes_a_column_fits_one_output(target: str, tmp_path: Path) -> None:
    assert rules_of(tmp_path, REGRESSION.replace("TARGET", target)) == []


ARRAYS = """
import numpy as np
from sklearn.preprocessing import StandardScaler
X = np.load("x.npy")
y = torch.tensor(TARGET, dtype=torch.float32)
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for x, y in DataLoader(TensorDataset(torch.tensor(X), y), 32, shuffle=True):
    opt.zero_grad()
    F.mse_loss(net(x), y).backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("np.sum(X, axis=1, keepdims=True)", []),
        ("np.clip(X[:, :1], 0, 1)", []),
        ("np.c_[X[:, 0]]", []),
        ("X.dot(np.random.randn(8, 2).max(1, keepdims=True))", []),
        ("StandardScaler().fit_transform(X[:, [0]])", []),
        ("[[row.sum()] for row in X]", []),
        ("X[:, 0]", ["shapes_may_broadcast"]),
        ("np.random.rand(len(X))", ["shapes_broadcast"]),
    ],
)
def test_arrays_of_numpy_are_followed_as_tensors_are(target: str, found: list[str], tmp_path: Path) -> None:
    assert rules_of(tmp_path, ARRAYS.replace("TARGET", target)) == found


@pytest.mark.parametrize("target", ROWS)
def test_a_target_that_the_script_makes_a_row_does_not_fit_one_output(target: str, tmp_path: Path) -> None:
    assert rules_of(tmp_path, REGRESSION.replace("TARGET", target)) == ["shapes_broadcast"]


WINDOWS = """
class Windows(Dataset):
    def __init__(self, path, n=24):
        self.series, self.n = torch.load(path), n
    def __len__(self):
        return len(self.series) - self.n
    def __getitem__(self, i):
        return self.series[i:i + self.n], self.series[TARGET]
net = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for x, y in DataLoader(Windows("series.pt"), 32, shuffle=True):
    opt.zero_grad()
    ((net(x) - y) ** 2).mean().backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("target", "found"), [("i + self.n:i + self.n + 1", []), ("i + self.n", ["shapes_may_broadcast"])]
)
def test_a_target_that_an_item_cuts_out_of_a_series_keeps_its_axis(
    target: str, found: list[str], tmp_path: Path
) -> None:
    assert rules_of(tmp_path, WINDOWS.replace("TARGET", target)) == found


CRITIC = """
def update(q, follower, opt, stream):
    value = nn.Linear(8, 1)
    optimizer = torch.optim.Adam(value.parameters(), 1e-3)
    for s, r, s2, done in stream:
        r, done = r.reshape(SHAPE), done.reshape(SHAPE)
        with torch.no_grad():
            target = r + 0.99 * (1 - done) * value(s2)
        loss = F.mse_loss(value(s), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(("shape", "found"), [("-1, 1", []), ("-1", ["shapes_broadcast"])])
def test_rewards_of_another_shape_than_values_make_a_matrix(shape: str, found: list[str], tmp_path: Path) -> None:
    assert rules_of(tmp_path, CRITIC.replace("SHAPE", shape)) == found


OPTAX = """
import jax, jax.numpy as jnp, optax, flax.linen as linen
class MLP(linen.Module):
    @linen.compact
    def __call__(self, x):
        return linen.Dense(1)(linen.relu(linen.Dense(16)(x)))OUT
model = MLP()
x = jax.random.normal(jax.random.PRNGKey(0), (64, 4))
y = TARGET
params = model.init(jax.random.PRNGKey(1), x)
opt = optax.adam(1e-3)
state = opt.init(params)
def loss_fn(params):
    return optax.LOSS(model.apply(params, x), y).mean()
for i in range(100):
    loss, grads = jax.value_and_grad(loss_fn)(params)
    updates, state = opt.update(grads, state, params)
    params = optax.apply_updates(params, updates)
"""


@pytest.mark.parametrize(
    ("loss", "target", "out", "found"),
    [
        ("huber_loss", "x.sum(1)", "", ["shapes_broadcast"]),
        ("losses.log_cosh", "x[:, 0]", "", ["shapes_broadcast"]),
        ("huber_loss", "x.sum(1, keepdims=True)", "", []),
        ("huber_loss", "x.sum(1)", ".squeeze(-1)", []),
        ("squared_error", "x.sum(1)", "", []),
    ],
)
def test_losses_of_optax_that_broadcast_are_found(
    loss: str, target: str, out: str, found: list[str], tmp_path: Path
) -> None:
    text = OPTAX.replace("LOSS", loss).replace("TARGET", target).replace("OUT", out)
    assert rules_of(tmp_path, text) == found
