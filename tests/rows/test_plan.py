"""Plans deal rows out as the samplers of PyTorch and Accelerate do, in every small case there is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import pytest

from mldebug_mcp.rows.plan import Generator, Orders, Plan, Sharing

torch = pytest.importorskip("torch")
data = pytest.importorskip("torch.utils.data")

ROWS = (1, 2, 3, 7, 8, 9, 16, 23)
BATCHES = (1, 2, 3, 4)


def planned(plan: Plan, epochs: int) -> list[list[list[int]]]:
    """Return the micro-batches of some passes, rank by rank."""
    ranks: list[list[list[int]]] = [[] for _ in range(plan.world)]
    orders = Orders(plan)
    for step in range(1, epochs * plan.steps + 1):
        for one in plan.step(step):
            if one.places.size:
                ranks[one.rank].append(orders.of(one.epoch)[one.places].tolist())
    return ranks


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("seed", [0, 42, -1, 2**40 + 7])
def test_a_random_sampler_with_its_own_generator(*, drop_last: bool, seed: int) -> None:
    for rows, size in product(ROWS, BATCHES):
        sampler = data.RandomSampler(range(rows), generator=torch.Generator().manual_seed(seed))
        loader = data.DataLoader(range(rows), batch_size=size, sampler=sampler, drop_last=drop_last)
        fed = [batch.tolist() for _ in range(3) for batch in loader]
        plan = Plan(rows, size, "generator", seed, drop_last=drop_last)
        assert planned(plan, 3) == [fed], (rows, size)


@pytest.mark.parametrize("drop_last", [False, True])
def test_a_loader_with_a_generator_that_shuffles(*, drop_last: bool) -> None:
    for rows, size in product(ROWS, BATCHES):
        generator = torch.Generator().manual_seed(5)
        loader = data.DataLoader(range(rows), size, shuffle=True, generator=generator, drop_last=drop_last)
        fed = [batch.tolist() for _ in range(3) for batch in loader]
        assert planned(Plan(rows, size, "loader_generator", 5, drop_last=drop_last), 3) == [fed], (rows, size)


@pytest.mark.parametrize(("drop_last", "drop_rows"), list(product([False, True], repeat=2)))
def test_a_distributed_sampler(*, drop_last: bool, drop_rows: bool) -> None:
    for rows, size, world in product(ROWS, BATCHES, (1, 2, 3)):
        if drop_rows and rows < world:
            continue
        fed = []
        for rank in range(world):
            sampler = data.DistributedSampler(range(rows), world, rank, seed=9, drop_last=drop_rows)
            loader = data.DataLoader(range(rows), batch_size=size, sampler=sampler, drop_last=drop_last)
            fed.append([batch.tolist() for _ in passes(sampler, 2) for batch in loader])
        plan = Plan(rows, size, "seedable", 9, "distributed", world, drop_last=drop_last, drop_rows=drop_rows)
        assert planned(plan, 2) == fed, (rows, size, world)


def passes(sampler: object, count: int) -> Iterator[int]:
    for epoch in range(count):
        sampler.set_epoch(epoch)  # type: ignore[attr-defined]
        yield epoch


@pytest.mark.parametrize(("drop_last", "split", "even"), list(product([False, True], repeat=3)))
def test_shards_of_accelerate(*, drop_last: bool, split: bool, even: bool) -> None:
    loading = pytest.importorskip("accelerate.data_loader")
    for rows, size, world in product(ROWS, BATCHES, (2, 3)):
        if split and size % world:
            continue
        plan = Plan(rows, size, "seedable", 3, "shards", world, drop_last=drop_last, even=even, split=split)
        if not plan.is_even:
            continue
        fed = []
        for rank in range(world):
            sampler = loading.SeedableRandomSampler(range(rows), data_seed=3)
            batches = data.BatchSampler(sampler, size, drop_last)
            shard = loading.BatchSamplerShard(batches, world, rank, split, even)
            fed.append([batch for _ in passes(sampler, 2) for batch in shard])
            assert len(shard) == plan.batches
        assert planned(plan, 2) == fed, (rows, size, world)


@pytest.mark.parametrize("carries", [False, True])
def test_a_place_is_found_in_the_step_that_it_was_fed_in(*, carries: bool) -> None:
    shared: Sequence[tuple[Sharing, int]] = (("alone", 1), ("shards", 2), ("dispatch", 2), ("distributed", 3))
    for rows, (sharing, world), drop in product(ROWS, shared, (False, True)):
        plan = Plan(
            rows,
            2,
            "seedable",
            1,
            sharing,
            world,
            accumulation=3,
            drop_last=drop,
            carries=carries,
        )
        if not plan.batches:
            continue
        fed: dict[tuple[int, int], int] = {}
        for step in range(1, 3 * plan.steps + 1):
            for one in plan.step(step):
                for place in one.places.tolist():
                    fed.setdefault((one.epoch, place), step)
        for place in range(rows):
            assert plan.step_with(1, place) == fed.get((1, place)), (rows, sharing, drop, place)


@pytest.mark.parametrize("seed", [0, 1, 42, 2**32 - 1, 2**40 + 7, -3])
@pytest.mark.parametrize("rows", [1, 2, 3, 1000, 70_001])
def test_the_shuffle_is_that_of_torch_whole_and_in_its_beginning(seed: int, rows: int) -> None:
    drawn = torch.randperm(rows, generator=torch.Generator().manual_seed(seed)).tolist()
    assert Generator(seed).shuffled(rows).tolist() == drawn
    assert Generator(seed).shuffled(rows, 7).tolist() == drawn[:7]


def test_a_long_order_is_made_as_far_as_it_is_needed() -> None:
    orders = Orders(Plan(600_000, 4, "seedable", 2))
    whole = Generator(2).shuffled(600_000)
    assert orders.rows_at(0, np.array([3, 0])) == whole[[3, 0]].tolist()
    assert orders.rows_at(0, np.array([599_999])) == [whole[599_999]]
    assert orders.of(0).tolist() == whole.tolist()
