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


def kept(i: int, start: float = 3.3) -> float:
    return start - 0.002 * i + 0.02 * float(NOISE[i])


@pytest.mark.parametrize(("head", "line"), [
    ("weights torch.bfloat16, sgd lr 2e-3",
     lambda i: f"{i * 100:5d} xent {kept(i):.3f} |dw| wanted {3.1e-3 * NOISE[i]:.2e} |dw| got {1.3e-3 * 0.97**i:.2e}"),
    ("", lambda i: f"step {i * 200} | loss {kept(i):.4f} | update: computed {4e-3 * NOISE[i]:.1e} applied 1.1e-03"),
    ("params float16, sgd lr 0.002", lambda i: f"it {i * 100} loss {kept(i):.4f} unchanged entries {0.93 + i / 400}"),
])  # fmt: skip
def test_updates_that_hardly_reach_the_weights_are_rounded_away(
    tmp_path: Path, head: str, line: Callable[[int], str]
) -> None:
    cause, facts = leading(tmp_path, line, head=head)
    assert cause == "low_precision_update"
    assert facts & {"update_partly_lost", "few_weights_change"}


@pytest.mark.parametrize("line", [
    lambda i: f"{i * 25} loss={falling(i):.3f} step_norm(target)={5.6e-3 * NOISE[i]:.3e} step_norm(actual)=5.59e-03",
    lambda i: f"{i * 25} loss={falling(i):.3f} target={5.6 * NOISE[i]:.3f} actual={2.1 * NOISE[i]:.3f}",
])  # fmt: skip
def test_updates_that_reach_the_weights_and_targets_of_something_else_are_none_that_are_lost(
    tmp_path: Path, line: Callable[[int], str]
) -> None:
    assert "update_partly_lost" not in leading(tmp_path, line, head="dtype=float32 opt=adamw lr=0.001")[1]


@pytest.mark.parametrize("line", [
    lambda i: f"step {i * 100} loss {kept(i, 1):.3f} share of zeros [0.52, {min(1, 0.7 + i / 10):.2f}, 1.00]",
    lambda i: f"[{i * 50}] loss={kept(i, 0.69):.4f} neurons never on: {min(256, 150 + 12 * i)}/256",
    lambda i: f"[{i * 50}] loss={kept(i, 1.6):.4f} dead_h1={min(1, 0.6 + i / 20):.3f} dead_h2={min(0.94, i / 9):.3f}",
])  # fmt: skip
def test_a_layer_of_zeros_in_a_run_that_learns_nothing_is_dead(tmp_path: Path, line: Callable[[int], str]) -> None:
    cause, facts = leading(tmp_path, line)
    assert (cause, "layer_of_zeros" in facts) == ("dead_units", True)


@pytest.mark.parametrize("line", [
    lambda i: f"step {i * 100} loss {falling(i):.3f} share of zeros [0.52, {0.58 + i / 400:.2f}, 1.00]",
    lambda i: f"step {i * 100} loss {kept(i, 1):.3f} share of zero labels [1.00, 1.00]",
])  # fmt: skip
def test_zeros_where_something_is_learnt_or_of_labels_are_of_no_dead_layer(
    tmp_path: Path, line: Callable[[int], str]
) -> None:
    assert "layer_of_zeros" not in leading(tmp_path, line)[1]


def decayed(i: int, first: float) -> float:
    return first * (0.03 + math.exp(-0.4 * i))


@pytest.mark.parametrize("line", [
    lambda i: f"[{i * 50}] ce={kept(i, 2.2):.3f} w(emb)={decayed(i, 58):.3f} w(ffn)={decayed(i, 31):.3f} w(gain)=12.5",
    lambda i: f"{i * 50},{kept(i, 2.2):.4f},{decayed(i, 14):.4f},{decayed(i, 9):.4f},{1 + i / 100:.4f}",
])  # fmt: skip
def test_parts_that_shrink_where_another_keeps_its_size_are_decayed(tmp_path: Path, line: Callable[[int], str]) -> None:
    cause, facts = leading(tmp_path, line, head="step,ce,|embed|,|hidden1|,|scale|" if "," in line(1) else "")
    assert (cause, "parts_shrink_apart" in facts) == ("weight_decay_too_high", True)


@pytest.mark.parametrize("line", [
    lambda i: f"{i * 50} ce={falling(i):.3f} w(emb)={58 - i / 4:.3f} w(ffn)={31 - i / 5:.3f} w(gain)={12 + i / 20:.3f}",
    lambda i: f"{i * 50} ce={falling(i):.3f} act(emb)={decayed(i, 58):.3f} act(ffn)={decayed(i, 31):.3f} act(out)=12.5",
])  # fmt: skip
def test_parts_that_shrink_by_little_and_activations_are_not_decayed(
    tmp_path: Path, line: Callable[[int], str]
) -> None:
    assert "parts_shrink_apart" not in leading(tmp_path, line)[1]
