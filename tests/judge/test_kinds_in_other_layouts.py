"""A kind of evidence is found whatever the columns are called and however they are laid out."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp.api import diagnose_run

NOISE = np.random.default_rng(3).normal(1, 0.04, 400)


def leading(folder: Path, line: Callable[[int], str], records: int = 20, head: str = "") -> tuple[str, set[str]]:
    """Return the first cause and the facts of a log of such lines."""
    log = folder / "run.log"
    log.write_text("\n".join([head, *map(line, range(1, records + 1))]) + "\n", encoding="utf-8")
    answer = diagnose_run(str(log))
    return answer.hypotheses[0].cause, {fact.fact for fact in answer.sheet.facts}


def falling(i: int, start: float = 4.0) -> float:
    return float(start * math.exp(-0.05 * i) * NOISE[i])


@pytest.mark.parametrize("line", [
    lambda i: f"epoch {i} xent {falling(i):.3f} size of weights: front 11.602, pool {4 + i / 9:.3f}, head {8 + i:.3f}",
    lambda i: f"it {i * 50} mae {falling(i):.4f} norm(user) {8 + i:.4f} norm(item) 12.7719 norm(bias) {i / 20:.4f}",
    lambda i: f"[{i * 40:>4}] kd={falling(i):.3f} w(net.emb)=55.2071 w(net.l0)={18 + i / 5:.4f} w(net.lm)={41 + i:.4f}",
])  # fmt: skip
def test_a_part_whose_size_never_changes_is_not_trained(tmp_path: Path, line: Callable[[int], str]) -> None:
    cause, facts = leading(tmp_path, line)
    assert (cause, "new_part_stands_still" in facts) == ("params_not_training", True)


@pytest.mark.parametrize("line", [
    lambda i: f"epoch {i} loss {falling(i):.3f} size of weights: encoder 88.2071, head {3 + 0.4 * i:.4f}",
    lambda i: f"epoch {i} loss {falling(i):.3f} norms: conv {10 + 0.3 * i:.3f}, bn 8.000, fc {3 + 0.4 * i:.3f}",
])  # fmt: skip
def test_a_part_that_often_comes_trained_or_has_few_digits_may_stand_still(
    tmp_path: Path, line: Callable[[int], str]
) -> None:
    assert leading(tmp_path, line) == ("healthy", set())


def of_parts(i: int, power: float = 0.9) -> float:
    """Return a gradient norm that grows with the number of parts, which is twice as large every eight records."""
    return float(0.62 * 2 ** (power * ((i - 1) // 8)) * NOISE[i + 100])


@pytest.mark.parametrize("line", [
    lambda i: f"{i * 20},{falling(i, 3) ** 0.5:.4f},{of_parts(i):.3f},{48 * 2 ** ((i - 1) // 8)}",
    lambda i: f"  {i * 20:>5} nll {falling(i, 3):.3f} |grad| {of_parts(i):.2f} ({2 ** ((i - 1) // 8)} shards/update)",
    lambda i: f"it={i * 20} ce={falling(i, 3) ** 0.5:.3f} gnorm={of_parts(i):.3f}",
])  # fmt: skip
def test_a_gradient_norm_that_steps_up_with_the_parts_of_a_batch_is_a_sum(
    tmp_path: Path, line: Callable[[int], str]
) -> None:
    head = "step,loss,gradient_norm,rows_per_update" if "," in line(1) else ""
    cause, facts = leading(tmp_path, line, 32, head)
    assert cause == "grad_accum_scaling"
    assert facts & {"norm_rises_with_batch", "norm_rises_by_steps"}


@pytest.mark.parametrize("line", [
    lambda i: f"it={i * 20} ce={falling(i, 3) ** 0.5:.3f} gnorm={of_parts(i, -0.4):.3f} shards={2 ** ((i - 1) // 8)}",
    lambda i: f"it={i * 20} ce={falling(i, 3) ** 0.5:.3f} gnorm={of_parts(9) if 8 < i < 17 else of_parts(1):.3f}",
])  # fmt: skip
def test_a_gradient_norm_that_falls_with_the_parts_or_comes_back_is_no_sum(
    tmp_path: Path, line: Callable[[int], str]
) -> None:
    assert not leading(tmp_path, line, 32)[1] & {"norm_rises_with_batch", "norm_rises_by_steps"}
