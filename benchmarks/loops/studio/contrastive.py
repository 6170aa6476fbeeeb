"""Self-supervised learning on images: SimCLR, SimSiam, BYOL and a triplet loss."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.loops.studio import data
from benchmarks.loops.studio.core import Values
from benchmarks.loops.studio.loop import Batch, Bench


class Encoder(nn.Module):
    """Encoder, projector and predictor, with a slow copy for BYOL."""

    def __init__(self, width: int = 64, out: int = 16) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Flatten(), nn.Linear(144, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, out)
        )
        self.pred = nn.Sequential(nn.Linear(out, out), nn.ReLU(), nn.Linear(out, out))

    def forward(self, x: Tensor) -> Tensor:
        """Embeddings."""
        z: Tensor = self.body(x)
        return z


def views(x: Tensor, strength: float) -> tuple[Tensor, Tensor]:
    """Two augmented copies."""

    def one() -> Tensor:
        gain = 0.7 + 0.6 * torch.rand(len(x), 1, 1, 1)
        return x * gain + strength * torch.randn_like(x)

    return one(), one()


def spread(z: Tensor) -> Tensor:
    """Mean standard deviation of the normalised embeddings, times the root of their size."""
    out: Tensor = functional.normalize(z, dim=1).std(0).mean() * z.shape[1] ** 0.5
    return out


def loss_of(model: nn.Module, x: Tensor, kind: str, stop: bool, temp: float) -> tuple[Tensor, Tensor]:
    """The loss of one kind and the embeddings."""
    a, b = views(x, 0.5)
    za, zb = model(a), model(b)
    if kind == "simclr":
        na, nb = functional.normalize(za, dim=1), functional.normalize(zb, dim=1)
        return functional.cross_entropy(na @ nb.T / temp, torch.arange(len(x))), za
    if kind == "triplet":
        na, nb = functional.normalize(za, dim=1), functional.normalize(zb, dim=1)
        near = ((na - nb) ** 2).sum(1)
        far = ((na - nb.roll(1, 0)) ** 2).sum(1)
        return functional.relu(near - far + 0.3).mean(), za
    predictor = model.get_submodule("pred")
    ta, tb = (za.detach(), zb.detach()) if stop else (za, zb)
    pa, pb = (predictor(za), predictor(zb)) if stop else (za, zb)
    loss = -(functional.cosine_similarity(pa, tb).mean() + functional.cosine_similarity(pb, ta).mean()) / 2
    return loss, za


def contrast(
    seed: int,
    kind: str = "simclr",
    stop: bool = True,
    temp: float = 0.2,
    show: bool = True,
) -> Bench:
    """Pairs of views; evaluation is a nearest-centroid probe on labels."""
    torch.manual_seed(seed)
    x, _ = data.images(1024, 10, seed, 1.2)
    ex, ey = data.images(500, 10, seed + 5000, 1.2)

    def loss(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        value, z = loss_of(model, batch[0], kind, stop, temp)
        return {"loss": value, "std": spread(z)} if show else {"loss": value}

    def metrics(model: nn.Module, batch: Batch) -> Values:
        z = functional.normalize(model(batch[0]), dim=1)
        half = len(z) // 2
        y = batch[1]
        mean = torch.stack([z[:half][y[:half] == c].mean(0) for c in range(10)])
        hit = (torch.cdist(z[half:], mean).argmin(1) == y[half:]).float().mean()
        return {"probe_acc": hit.item()}

    model = Encoder()
    return Bench(
        model,
        (x,),
        {"val": (ex, ey)},
        loss,
        metrics,
        {"method": kind, "temperature": temp, "proj_dim": 16, "arch": "mlp"},
    )
