"""The rows that are drawn again for Lightning are those that its loaders give."""

from __future__ import annotations

from itertools import product

import pytest

from mldebug_mcp.rows.plan import Orders, Plan

connector = pytest.importorskip("lightning.pytorch.trainer.connectors.data_connector")
data = pytest.importorskip("torch.utils.data")


def test_the_sampler_that_lightning_puts_in_on_several_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PL_GLOBAL_SEED", "13")
    for rows, size, world in product((7, 16, 23), (2, 3), (2, 3)):
        plan = Plan(rows, size, "seedable", 13, "distributed", world)
        orders = Orders(plan)
        for rank, epoch in product(range(world), range(2)):
            loader = data.DataLoader(range(rows), batch_size=size, shuffle=True)
            among = {"num_replicas": world, "rank": rank}
            sampler = connector._get_distributed_sampler(loader, shuffle=True, overfit_batches=0, **among)
            sampler.set_epoch(epoch)
            fed = list(data.BatchSampler(sampler, size, drop_last=False))
            steps = range(epoch * plan.steps + 1, (epoch + 1) * plan.steps + 1)
            dealt = [one for step in steps for one in plan.step(step) if one.rank == rank]
            assert [orders.of(epoch)[one.places].tolist() for one in dealt] == fed
