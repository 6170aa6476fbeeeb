"""Names as people log them in loops of their own: abbreviations, losses by what they compute, other languages."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mldebug_mcp.logs import Run, read_run
from mldebug_mcp.logs.names import Quantity, role_of

RECORDS = 24
FALLS = 2.5 * np.exp(-np.arange(RECORDS) / 8) + 0.3
RISES = 0.9 - 0.5 * np.exp(-np.arange(RECORDS) / 8)
COUNTS = np.arange(1, RECORDS + 1)
LEVEL = 0.25 + 0.01 * np.sin(np.arange(RECORDS))


def _read(folder: Path, columns: Mapping[str, np.ndarray]) -> Run:
    with (folder / "log.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(columns)
        table.writerows(zip(*columns.values(), strict=True))
    return read_run(folder / "log.csv")


def _said(name: str) -> tuple[str, str] | None:
    role = role_of(name)
    return None if role is None else (str(role.quantity), "eval" if role.is_evaluation else "")


@pytest.mark.parametrize(
    ("name", "quantity", "phase"),
    [
        ("perdida_entrenamiento", "loss", ""),
        ("perda_validação", "loss", "eval"),
        ("Trainingsverlust", "loss", ""),
        ("Verlust_zurückgehalten", "loss", "eval"),
        ("потери_отлож", "loss", "eval"),
        ("норма градиента", "grad_norm", ""),
        ("скорость_обучения", "learning_rate", ""),
        ("токенов/с", "tokens_per_second", ""),
        ("taux d'apprentissage", "learning_rate", ""),
        ("jetons/s", "tokens_per_second", ""),
        ("学習損失", "loss", ""),
        ("検証MAPE(%)", "mape", "eval"),
        ("トークン/秒", "tokens_per_second", ""),
        ("验证交并比", "iou", "eval"),
        ("梯度范数", "grad_norm", ""),
        ("均衡损失", "loss", ""),
        ("判别器损失", "discriminator_loss", ""),
        ("검증손실", "loss", "eval"),
        ("기울기노름", "grad_norm", ""),
        ("Restzeit", "eta", ""),
        ("残り時間", "eta", ""),
        ("Grafikspeicher [GB]", "memory", ""),
    ],
)
def test_a_name_is_read_in_the_language_that_it_is_written_in(name: str, quantity: str, phase: str) -> None:
    assert _said(name) == (quantity, phase)


@pytest.mark.parametrize(
    ("name", "quantity", "phase"),
    [
        ("gn", "grad_norm", ""),
        ("router_gn", "grad_norm", ""),
        ("‖∇‖", "grad_norm", ""),
        ("|θ|", "weight_norm", ""),
        ("|w-w_prev|", "update_norm", ""),
        ("‖Δθ‖", "update_norm", ""),
        ("|lr*u|", "update_norm", ""),
        ("dw/w", "update_ratio", ""),
        ("|Δθ|/|θ|", "update_ratio", ""),
        ("lr_vit", "learning_rate", ""),
        ("last_layer_lr", "learning_rate", ""),
        ("lr-DecoupledSGDW/group0", "learning_rate", ""),
        ("L.r.", "learning_rate", ""),
        ("Ep.", "epoch", ""),
        ("tst_bce", "loss", "eval"),
        ("ho_nll", "loss", "eval"),
        ("val_neg_log_likelihood", "loss", "eval"),
        ("Negative log-probability", "loss", ""),
        ("neg_logp", "loss", ""),
        ("trn bce+dice", "loss", ""),
        ("L_box", "loss", ""),
        ("recall_at_10", "recall", ""),
        ("R@10", "recall", ""),
        ("hr@20", "hit_rate", ""),
        ("p@10", "precision", ""),
        ("knn@20", "accuracy", ""),
        ("valid_1's average_precision", "map", "eval"),
        ("va sens", "recall", "eval"),
        ("dev τ", "correlation", "eval"),
        ("task EM", "accuracy", ""),
        ("test err", "error_rate", "eval"),
        ("s/ep", "epoch_time", ""),
        ("m/ep", "epoch_time", ""),
        ("s/b", "step_time", ""),
        ("t_opt", "optimizer_time", ""),
        ("wait ms", "data_time", ""),
        ("forward-compute", "forward_time", ""),
        ("GB peak", "memory", ""),
        ("hbm_gb", "memory", ""),
        ("gpu%", "gpu_utilisation", ""),
        ("tok_s", "tokens_per_second", ""),
        ("kt/s", "tokens_per_second", ""),
        ("sent/s", "samples_per_second", ""),
        ("queries/s", "samples_per_second", ""),
        ("logp+", "logps/chosen", ""),
        ("avg_logp_l", "logps/rejected", ""),
    ],
)
def test_an_abbreviation_that_can_mean_one_thing_alone_is_read_as_it(name: str, quantity: str, phase: str) -> None:
    assert _said(name) == (quantity, phase)


@pytest.mark.parametrize(
    ("name", "factor"),
    [("lr x1e-4", 1e-4), ("train/lr(1e-3)", 1e-3), ("lr*1e5", 1e-5), ("kt/s", 1e3), ("Gtokens", 1e9), ("m/ep", 60.0)],
)
def test_a_power_of_ten_in_a_name_is_that_of_its_values(name: str, factor: float) -> None:
    role = role_of(name)
    assert role is not None
    assert role.factor == pytest.approx(factor)


@pytest.mark.parametrize(
    "name",
    [
        "attn_ent", "router.entropy", "codebook ppl", "val/gen_ppl", "val/sample_entropy", "wm/prior_ent", "gn_thresh",
        "ce_weight", "focal_alpha", "mlm_probability", "dino_momentum", "moco_k", "aux_coef", "lr_mult", "lr_warmup",
        "lr_critic", "gate_top1_prob", "top1_agree", "ac/imag_ret", "int ret", "prompt_length/clip_ratio",
        "rollout_corr/kl", "metrics/ce_loss_score", "ΔCE", "mmlu Δ", "max|g|", "R", "H", "P", "T", "rest", "acc_step",
        "objective/non_score_reward", "ortho_err", "sec audio/s", "kl/active_total",
    ],
)  # fmt: skip
def test_what_has_another_meaning_is_no_quantity(name: str) -> None:
    assert role_of(name) is None


def test_letters_beside_what_a_policy_logs_are_read(tmp_path: Path) -> None:
    names = {"it": COUNTS, "R": RISES, "R_std": LEVEL, "len": 300 + COUNTS, "H": FALLS, "KL to ref": LEVEL / 10}
    run = _read(tmp_path, {**names, "clip%": 100 * LEVEL, "EV": RISES, "pg": LEVEL - 0.25, "vf": FALLS})
    assert {
        "reward", "reward_std", "completion_length", "entropy", "kl", "clip_ratio", "explained_variance", "policy_loss",
        "value_loss",
    } <= run.series.keys()  # fmt: skip
    assert run["reward"].logged_as == "R"


@pytest.mark.parametrize("name", ["R", "H", "EV", "pg"])
def test_a_letter_beside_nothing_of_a_policy_stays_unread(tmp_path: Path, name: str) -> None:
    run = _read(tmp_path, {"step": COUNTS, "loss": FALLS, name: RISES, "eps": LEVEL, "clip": LEVEL})
    assert {name, "eps", "clip"} <= run.series.keys()


def test_rewards_with_signs_are_those_of_pairs(tmp_path: Path) -> None:
    pairs = {"r+": RISES, "r-": -RISES, "Δr": 2 * RISES, "acc": RISES, "logp+": -200 * LEVEL}
    run = _read(tmp_path, {"it": COUNTS, "dpo": FALLS, **pairs})
    assert {
        "loss", "rewards/chosen", "rewards/rejected", "rewards/margins", "rewards/accuracies", "logps/chosen"
    } <= run.series.keys()  # fmt: skip


def test_two_networks_that_play_against_each_other_are_told_by_their_names(tmp_path: Path) -> None:
    run = _read(tmp_path, {"step": COUNTS, "critic": -FALLS, "gen": LEVEL})
    assert {run[name].role.quantity for name in run.series if run[name].role} >= {  # type: ignore[union-attr]
        Quantity.DISCRIMINATOR_LOSS, Quantity.GENERATOR_LOSS
    }  # fmt: skip


@pytest.mark.parametrize("name", ["ce", "infoNCE", "byol", "rnnt", "bpr", "mlm", "tweedie", "xe", "ctc"])
def test_the_only_loss_is_the_loss_whatever_it_computes(tmp_path: Path, name: str) -> None:
    run = _read(tmp_path, {"step": COUNTS, name: FALLS, f"val_{name}": FALLS + 0.1, "lr": LEVEL})
    assert run["loss"].value[0] == pytest.approx(FALLS[0])
    assert run["eval_loss"].value[0] == pytest.approx(FALLS[0] + 0.1)


def test_terms_that_are_added_to_a_loss_are_not_the_loss(tmp_path: Path) -> None:
    run = _read(tmp_path, {"step": COUNTS, "ce": FALLS, "aux": LEVEL, "z_loss": LEVEL / 10})
    assert run["loss"].value[0] == pytest.approx(FALLS[0])
    assert {"aux", "z_loss"} <= run.series.keys()


def test_beside_a_loss_what_is_called_by_its_name_is_a_part_of_it(tmp_path: Path) -> None:
    run = _read(tmp_path, {"step": COUNTS, "loss": FALLS, "ce": FALLS / 2, "bce": FALLS / 2})
    parts = [role.part for name in ("ce", "bce") if (role := run[name].role) is not None]
    assert parts == ["ce", "bce"]


@pytest.mark.parametrize(
    ("name", "axis"), [("i", "step"), ("t", "step"), ("upd", "step"), ("ep", "epoch"), ("E", "epoch")]
)
def test_a_letter_counts_where_nothing_else_does(tmp_path: Path, name: str, axis: str) -> None:
    run = _read(tmp_path, {name: COUNTS, "loss": FALLS})
    assert run.step_name == axis
    assert run["loss"].step.tolist() == COUNTS.tolist()


def test_a_letter_that_does_not_count_is_no_counter(tmp_path: Path) -> None:
    run = _read(tmp_path, {"step": COUNTS, "loss": FALLS, "T": np.full(RECORDS, 2.0), "t": LEVEL})
    assert {"T", "t"} <= run.series.keys()


def test_the_episodes_of_an_agent_are_no_epochs(tmp_path: Path) -> None:
    run = _read(tmp_path, {"ep": COUNTS, "reward": RISES, "loss": FALLS, "ε": LEVEL})
    assert run.step_name == "episode"
    assert "exploration_rate" in run.series


@pytest.mark.parametrize("name", ["it/s", "tok/s", "sec audio/s"])
def test_what_is_counted_per_second_is_no_step_time(tmp_path: Path, name: str) -> None:
    assert "step_time" not in _read(tmp_path, {"step": COUNTS, "loss": FALLS, name: LEVEL}).series


@pytest.mark.parametrize(
    ("name", "values", "read_as", "first"),
    [
        ("time (ms)", 1000 * LEVEL, "step_time", 0.25),
        ("время, с", COUNTS * 2.0, "elapsed", 2.0),
        ("mins", COUNTS * 2.0, "elapsed", 120.0),
        ("min", LEVEL, "min", 0.25),
    ],
)
def test_a_time_is_told_by_its_unit_and_its_course(
    tmp_path: Path, name: str, values: np.ndarray, read_as: str, first: float
) -> None:
    run = _read(tmp_path, {"step": COUNTS, "loss": FALLS, name: values})
    assert run[read_as].value[0] == pytest.approx(first)


def test_a_share_that_is_clipped_where_no_policy_learns_is_that_of_gradients(tmp_path: Path) -> None:
    run = _read(tmp_path, {"step": COUNTS, "loss": FALLS, "gn": RISES, "clipped frac": LEVEL})
    assert "clip_ratio" not in run.series


def test_composer_counts_batches_and_tokens_under_the_time(tmp_path: Path) -> None:
    run = _read(tmp_path, {"time/batch": COUNTS, "time/token": 4096 * COUNTS, "loss/train/total": FALLS})
    assert run.step_name == "step"
    assert "num_tokens" in run.series


@pytest.mark.parametrize("more", [{"time/sample": 16 * COUNTS}, {"step": COUNTS}], ids=["sample", "step"])
def test_batches_that_composer_counts_along_with_the_step_are_no_time(tmp_path: Path, more: dict[str, Any]) -> None:
    run = _read(tmp_path, {"step": COUNTS, "time/batch": COUNTS, "loss/train/total": FALLS, **more})
    assert "step_time" not in run.series


def test_a_time_of_a_batch_in_whole_seconds_is_a_time(tmp_path: Path) -> None:
    run = _read(tmp_path, {"step": COUNTS, "time/batch": 3 + COUNTS // 40, "loss": FALLS})
    assert "step_time" in run.series


def test_a_percentage_for_each_phase_is_the_accuracy(tmp_path: Path) -> None:
    run = _read(tmp_path, {"epoch": COUNTS, "Loss": FALLS, "Train%": 100 * RISES, "Valid%": 90 * RISES})
    assert {"accuracy", "eval_accuracy"} <= run.series.keys()


def test_values_of_an_evaluation_by_length_below_a_record_are_of_it(tmp_path: Path) -> None:
    lines = (f"{at} L12 loss={3 / at} gn=1\n      val@12={2 / at} val@32={4 / at}\n" for at in range(1, 20))
    (tmp_path / "train.log").write_text("".join(lines))
    run = read_run(tmp_path / "train.log")
    assert run["val@32"].value.tolist() == [4 / at for at in range(1, 20)]


def _read_text(tmp_path: Path, text: str) -> Run:
    (tmp_path / "train.log").write_text(text)
    return read_run(tmp_path / "train.log")


@pytest.mark.parametrize(
    "line",
    [
        "Epoch: {at:03}, Loss: {loss:.4f}, Train: {train:.4f}, Val: {val:.4f}, Test: {test:.4f}\n",
        "Epoch {at:03} | loss {loss:.4f} | train {train:.4f} | valid {val:.4f} | test {test:.4f}\n",
        "[{at:03}] loss={loss:.4f} tr={train:.4f} va={val:.4f} te={test:.4f}\n",
    ],
)
def test_phases_alone_next_to_a_loss_over_several_classes_are_accuracies_where_they_rise(
    tmp_path: Path, line: str
) -> None:
    def lines(first: float) -> str:
        return "".join(
            line.format(at=at, loss=first - 0.1 * at, train=0.3 + 0.06 * at, val=0.25 + 0.05 * at, test=0.2 + 0.05 * at)
            for at in range(1, 9)
        )

    run = _read_text(tmp_path, lines(2.0))
    assert run["accuracy"].value[1] == pytest.approx(0.42)
    assert run["eval_accuracy"].value[1] == pytest.approx(0.35)
    assert run["test_accuracy"].value[1] == pytest.approx(0.3)
    two_classes = _read_text(tmp_path, lines(0.9))
    assert not {"accuracy", "eval_accuracy", "test_accuracy", "eval_loss"} & set(two_classes.series)


@pytest.mark.parametrize(
    "line",
    [
        "[{at:03}/020] train: loss={loss:.3f} err={err:.1f}%  test: loss={loss:.3f} err={err:.1f}%  (lr 0.001)\n",
        "epoch {at} train: loss={loss:.3f} acc={err:.2f} test: loss={loss:.3f} acc={err:.2f} | lr 0.001\n",
        "Epoch {at}: train loss {loss:.3f} acc {err:.2f}, val loss {loss:.3f} acc {err:.2f} lr 0.001\n",
    ],
)
def test_a_learning_rate_behind_an_evaluation_is_that_of_training(tmp_path: Path, line: str) -> None:
    run = _read_text(tmp_path, "".join(line.format(at=at, loss=2 - 0.1 * at, err=50 - at) for at in range(1, 9)))
    assert run["learning_rate"].value.tolist() == [0.001] * 8
    assert len(run["eval_loss"]) == 8
