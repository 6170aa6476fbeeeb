"""Columns with names of one's own: a loss, an evaluation, a score, a norm or a setting that only numbers bear out."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp.logs import Run, read_run
from mldebug_mcp.logs.names import Quantity

RECORDS = 60
STEPS = np.arange(RECORDS) * 5.0
NOISE = 0.02 * np.sin(np.arange(RECORDS) * 2.7)
FALLS = 2.1 * np.exp(-np.arange(RECORDS) / 20) + 0.2 + NOISE
RISES = np.clip(0.9 - 0.8 * np.exp(-np.arange(RECORDS) / 20) + NOISE, 0, 1)
RATE = np.full(RECORDS, 3e-4)
NORM = 1.5 + 10 * np.abs(NOISE)
NOW_AND_THEN = np.where(np.arange(RECORDS) % 10 == 9, 1.0, np.nan)
"""Present in every tenth record alone."""


def _read(folder: Path, columns: Mapping[str, np.ndarray], settings: Mapping[str, object] | None = None) -> Run:
    """Read a table in which NaN is an empty cell; what is logged now and then has rows of its own."""
    rare = {name for name, values in columns.items() if np.isnan(values).any()}
    with (folder / "log.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["step", *columns])
        for row, step in enumerate(STEPS):
            table.writerow([step, *("" if name in rare else values[row] for name, values in columns.items())])
            if any(np.isfinite(columns[name][row]) for name in rare):
                cells = [values[row] if name in rare else "" for name, values in columns.items()]
                table.writerow([step + 1, *cells])
    if settings is not None:
        (folder / "config.json").write_text(json.dumps(settings))
    return read_run(folder)


def _logged_as(run: Run, name: str) -> str:
    return run[name].logged_as if name in run else ""


@pytest.mark.parametrize(
    "name",
    ["eps-mse", "E_batch", "rmsle2", "nce6", "tr/bce_pix", "misfit", "kosten", "weather_huber", "L_tot", "J", "Lp+Lke",
     "energy", "kl", "ошибка_сетки", "损失_像素"],
)  # fmt: skip
def test_a_word_of_a_loss_among_others_is_the_loss_where_no_other_is_logged(tmp_path: Path, name: str) -> None:
    run = _read(tmp_path, {name: FALLS, "lr": RATE, "tide": NOISE})
    np.testing.assert_allclose(run["loss"].value, FALLS)


@pytest.mark.parametrize(
    ("trained", "evaluated", "quantity"),
    [
        ("kosten", "kosten_pruefung", "loss"),
        ("coût", "coût_validation", "loss"),
        ("costo", "costo_convalida", "loss"),
        ("custo", "custo_teste", "loss"),
        ("代价", "验证代价", "loss"),
        ("コスト", "検証コスト", "loss"),
        ("비용", "검증비용", "loss"),
        ("treffer", "treffer_pruef", "accuracy"),
        ("aciertos", "aciertos_prueba", "accuracy"),
        ("acertos", "acertos_teste", "accuracy"),
        ("命中率", "验证命中率", "accuracy"),
        ("的中率", "検証的中率", "accuracy"),
        ("적중률", "검증적중률", "accuracy"),
    ],
)
def test_words_of_other_languages_are_the_loss_and_the_accuracy(
    tmp_path: Path, trained: str, evaluated: str, quantity: str
) -> None:
    values = FALLS if quantity == "loss" else RISES
    run = _read(tmp_path, {trained: values, "lr": RATE, evaluated: values * NOW_AND_THEN})
    np.testing.assert_allclose(run[quantity].value, values)
    np.testing.assert_allclose(run[f"eval_{quantity}"].value, values[9::10])


@pytest.mark.parametrize("name", ["durchgang", "durchlauf"])
def test_a_pass_in_german_is_an_epoch(tmp_path: Path, name: str) -> None:
    assert "epoch" in _read(tmp_path, {name: np.arange(RECORDS) // 10 * 1.0, "xent": FALLS})


def test_a_step_width_in_german_is_the_learning_rate(tmp_path: Path) -> None:
    assert "learning_rate" in _read(tmp_path, {"Schrittweite": RATE, "xent": FALLS})


def test_a_guess_is_stated_with_what_it_is_read_as(tmp_path: Path) -> None:
    run = _read(tmp_path, {"E_batch": FALLS, "lr": RATE, "E_pruef": FALLS * NOW_AND_THEN})
    assert "'E_batch' is read as the loss, 'E_pruef' as the eval_loss (guessed)" in run.notes


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("E_share", RISES),
        ("err_norm", FALLS),
        ("mse_weight", FALLS),
        ("E", -FALLS),
        ("E_const", np.full(RECORDS, 0.7)),
        ("err_count", np.floor(10 * FALLS)),
        ("E_growth", 3 * RISES),
        ("Lag", FALLS),
        ("max_mse_tile", FALLS),
        ("Fehler", 1 - RISES),
        ("energy", 1.3 + NOISE),
        ("ciou_boxes", RISES),
        ("ce_time_ms", FALLS),
    ],
)
def test_what_has_no_numbers_of_a_loss_or_speaks_of_something_else_is_none(
    tmp_path: Path, name: str, values: np.ndarray
) -> None:
    assert "loss" not in _read(tmp_path, {name: values, "lr": RATE, "tide": NOISE})


def test_of_several_that_are_as_sure_none_is_taken(tmp_path: Path) -> None:
    assert "loss" not in _read(tmp_path, {"wind_mse": FALLS, "rain_mse": FALLS / 2, "lr": RATE})


def test_next_to_terms_that_are_named_as_losses_nothing_is_guessed(tmp_path: Path) -> None:
    run = _read(tmp_path, {"recon_loss": FALLS, "style_loss": FALLS, "tile_mse": FALLS / 2, "lr": RATE})
    assert "loss" not in run


def test_a_surer_word_stands_before_a_letter_and_an_error(tmp_path: Path) -> None:
    run = _read(tmp_path, {"E_x": FALLS, "tile_mse": FALLS / 2, "tile_nll": FALLS / 3, "lr": RATE})
    assert _logged_as(run, "loss") == "tile_nll"


def test_an_energy_that_stays_is_the_loss_where_it_is_measured_of_held_out_data_too(tmp_path: Path) -> None:
    run = _read(tmp_path, {"L/batch": 2.08 + NOISE, "lr": RATE, "test/L": (2.08 + NOISE) * NOW_AND_THEN})
    assert (_logged_as(run, "loss"), _logged_as(run, "eval_loss")) == ("L/batch", "test/L")


def test_where_a_loss_is_named_nothing_is_guessed(tmp_path: Path) -> None:
    run = _read(tmp_path, {"loss": FALLS, "E_batch": FALLS / 2, "lr": RATE})
    assert _logged_as(run, "loss") == ""
    assert not any("guessed" in note for note in run.notes)


def test_the_errors_of_a_policy_are_no_loss(tmp_path: Path) -> None:
    run = _read(tmp_path, {"reward": RISES, "kl": FALLS / 9, "grid_mse": FALLS, "lr": RATE})
    assert "loss" not in run


@pytest.mark.parametrize("name", ["td_huber", "v_mse"])
def test_the_error_of_values_is_the_value_loss_where_a_policy_learns(tmp_path: Path, name: str) -> None:
    run = _read(tmp_path, {"episodes": np.arange(RECORDS) * 1.0, "eps": 1 - RISES, name: FALLS})
    assert _logged_as(run, "value_loss") == name


@pytest.mark.parametrize("name", ["log10(tile mse)", "log10 tile_mse", "lg(tile_mse)", "log10(loss)"])
def test_the_power_of_ten_of_a_logarithm_is_the_loss_and_the_logarithm_stays(tmp_path: Path, name: str) -> None:
    run = _read(tmp_path, {name: np.log10(FALLS), "lr": RATE})
    np.testing.assert_allclose(run["loss"].value, FALLS)
    np.testing.assert_allclose(run[name].value, np.log10(FALLS))
    assert any(note.startswith(f"10 to the power of {name!r}") for note in run.notes)


@pytest.mark.parametrize(
    ("trained", "evaluated"),
    [
        ("tr/nce", "gal/nce"),
        ("xent", "xent_t"),
        ("E_batch", "E_val"),
        ("tile_mse", "mse_holdout"),
        ("log10(mse)", "mse"),
    ],
)
def test_the_same_measure_that_is_logged_more_rarely_is_the_evaluation_loss(
    tmp_path: Path, trained: str, evaluated: str
) -> None:
    values = np.log10(FALLS) if "log10" in trained else FALLS
    run = _read(tmp_path, {trained: values, "lr": RATE, evaluated: FALLS * NOW_AND_THEN})
    np.testing.assert_allclose(run["loss"].value, FALLS)
    np.testing.assert_allclose(run["eval_loss"].value, FALLS[9::10])


@pytest.mark.parametrize(
    ("trained", "other"),
    [("nce6", "gallery256/nce"), ("tile_mse", "gal/mae"), ("loss", "panel_loss"), ("tile_mse", "tile_mse_max")],
)
def test_another_measure_or_a_loss_that_says_so_gets_no_evaluation_by_guess(
    tmp_path: Path, trained: str, other: str
) -> None:
    assert "eval_loss" not in _read(tmp_path, {trained: FALLS, "lr": RATE, other: FALLS * NOW_AND_THEN})


def test_an_error_that_is_logged_now_and_then_is_of_an_evaluation(tmp_path: Path) -> None:
    run = _read(tmp_path, {"Lp+Lke": FALLS, "lr": RATE, "MAE": 300 * FALLS * NOW_AND_THEN})
    assert _logged_as(run, "loss") == "Lp+Lke"
    assert len(run["eval_mae"]) == 6


def test_a_share_that_rises_as_the_loss_falls_is_the_accuracy(tmp_path: Path) -> None:
    run = _read(tmp_path, {"tr/nce": FALLS, "tr/pick1": RISES, "lr": RATE, "gal/pick1": RISES * NOW_AND_THEN})
    assert (_logged_as(run, "accuracy"), _logged_as(run, "eval_accuracy")) == ("tr/pick1", "gal/pick1")


@pytest.mark.parametrize(("name", "values"), [("pick1", 1 - RISES), ("silent_share", RISES), ("pick1", 200 * RISES)])
def test_a_share_that_falls_or_of_something_else_is_no_accuracy(tmp_path: Path, name: str, values: np.ndarray) -> None:
    assert "accuracy" not in _read(tmp_path, {"xent": FALLS, name: values, "lr": RATE})


@pytest.mark.parametrize("name", ["opt/g", "|g|opt", "g", "|dE/dw|"])
def test_a_letter_of_the_optimizer_is_the_gradient_norm(tmp_path: Path, name: str) -> None:
    assert _logged_as(_read(tmp_path, {"xent": FALLS, "lr": RATE, name: NORM}), "grad_norm") == name


@pytest.mark.parametrize("values", [-NORM, np.floor(NORM), np.zeros(RECORDS)])
def test_a_letter_with_other_numbers_is_no_gradient_norm(tmp_path: Path, values: np.ndarray) -> None:
    assert "grad_norm" not in _read(tmp_path, {"xent": FALLS, "lr": RATE, "g": values})


@pytest.mark.parametrize(("name", "values"), [("rate", RATE), ("step size", 0.1 * FALLS[::-1].cumsum() / 200)])
def test_a_small_rate_that_moves_as_a_schedule_does_is_the_learning_rate(
    tmp_path: Path, name: str, values: np.ndarray
) -> None:
    assert _logged_as(_read(tmp_path, {"xent": FALLS, name: values}), "learning_rate") == name


@pytest.mark.parametrize("values", [RATE * 1e6, 0.2 + NOISE])
def test_a_rate_that_is_large_or_jumps_is_no_learning_rate(tmp_path: Path, values: np.ndarray) -> None:
    assert "learning_rate" not in _read(tmp_path, {"xent": FALLS, "rate": values})


def test_a_scale_and_updates_that_were_not_applied_are_those_of_half_precision(tmp_path: Path) -> None:
    halves = 65536.0 * 0.5 ** np.arange(RECORDS)
    run = _read(tmp_path, {"xent": FALLS, "amp.factor": halves, "not applied": np.arange(RECORDS) * 1.0})
    assert {"loss_scale", "skipped_iterations"} <= run.series.keys()


@pytest.mark.parametrize("name", ["scale", "amp", "dyn_scale"])
def test_a_bare_scale_of_powers_of_two_is_the_loss_scale_and_no_other_is(tmp_path: Path, name: str) -> None:
    halves = np.array([float(f"{value:.6g}") for value in 65536.0 * 0.5 ** (np.arange(RECORDS) // 2)])
    assert _logged_as(_read(tmp_path, {"xent": FALLS, name: halves}), "loss_scale") == name
    assert "loss_scale" not in _read(tmp_path, {"xent": FALLS, name: 8 * FALLS})
    assert "loss_scale" not in _read(tmp_path, {"xent": FALLS, "fp8/amax": FALLS, name: halves})


def test_the_last_number_of_a_rate_of_goals_says_over_how_many(tmp_path: Path) -> None:
    role = _read(tmp_path, {"xent": FALLS, "goal_rate_last20": RISES})["goal_rate_last20"].role
    assert role is not None
    assert role.is_whole


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"adam": 0.002}, {"optim": "adam", "learning_rate": 0.002}),
        ({"opt": "adam 2e-3"}, {"optim": "adam", "learning_rate": 0.002}),
        ({"optimizer": "SGD(lr=0.1)"}, {"optim": "SGD", "learning_rate": 0.1}),
        ({"sgd": {"lr": 0.1}}, {"optim": "sgd", "learning_rate": 0.1}),
        ({"adam": True, "lr": 0.1}, {"optim": "adam", "learning_rate": 0.1}),
        ({"rate": 1.5e-6, "batch": 64}, {"learning_rate": 1.5e-6, "per_device_train_batch_size": 64}),
        ({"eta_max": 0.035, "it": 1000}, {"learning_rate": 0.035, "max_steps": 1000}),
        ({"step size": 0.01, "n_updates": 700}, {"learning_rate": 0.01, "max_steps": 700}),
        ({"amp_factor": 65536, "max_g": 0.5}, {"initial_loss_scale": 65536, "max_grad_norm": 0.5}),
        ({"tasa_de_aprendizaje": 0.1, "epocas": 4}, {"learning_rate": 0.1, "num_train_epochs": 4}),
        ({"impuls": 0.9, "klassen": 8}, {"momentum": 0.9, "num_labels": 8}),
    ],
)
def test_settings_of_ones_own_are_the_known_ones(
    tmp_path: Path, settings: Mapping[str, object], expected: Mapping[str, object]
) -> None:
    run = _read(tmp_path, {"xent": FALLS}, settings)
    assert {name: run.settings[name].value for name in expected} == expected


@pytest.mark.parametrize(
    "settings",
    [{"rate": 16000}, {"data": {"rate": 0.5}}, {"scheduler": {"step_size": 30}}, {"eta": 0.0}, {"adam": False}],
)
def test_a_rate_of_something_else_sets_no_learning_rate(tmp_path: Path, settings: Mapping[str, object]) -> None:
    assert "learning_rate" not in _read(tmp_path, {"xent": FALLS}, settings).settings


def test_a_total_next_to_a_wait_that_is_a_part_of_it_is_the_time_of_a_step(tmp_path: Path) -> None:
    lines = [f"step {at} loss={2 - at / 99:.3f} fetch={40 + at % 7}.5ms total={50 + at % 9}.0ms\n" for at in range(40)]
    (tmp_path / "train.log").write_text("".join(lines))
    run = read_run(tmp_path)
    assert run["step_time"].value[0] == pytest.approx(0.05)
    assert run["data_time"].value[0] == pytest.approx(0.0405)


def test_a_score_keeps_its_meaning_where_its_name_loses_its_capitals(tmp_path: Path) -> None:
    rows = "".join(f"{at},{2 / at},{70 + at},{40 + at}\n" for at in range(1, 9))
    (tmp_path / "log.csv").write_text(f"step,train/loss,val/aAcc,val/mAcc\n{rows}")
    run = read_run(tmp_path / "log.csv")
    roles = [series.role for series in run.series.values() if series.name.endswith("acc")]
    assert [(role.quantity, role.phase) for role in roles if role] == [(Quantity.ACCURACY, "eval")] * 2


def test_the_ratio_of_a_replay_is_not_that_of_a_policy(tmp_path: Path) -> None:
    rows = "".join(f"{at},{at / 9},{2 / at},{1 / at},32\n" for at in range(1, 9))
    (tmp_path / "log.csv").write_text(f"step,episode/score,train/loss/policy,train/loss/value,replay/ratio\n{rows}")
    assert "policy_ratio" not in read_run(tmp_path / "log.csv").series


@pytest.mark.parametrize(
    ("trained", "evaluated"),
    [("nats", "held nats"), ("ce.run", "ce.held"), ("xent (fit)", "xent (check)"), ("seen nll", "hidden nll"),
     ("mse run", "mse kept-out"), ("nats/char", "nats/char h/o"), ("nll_own", "nll_other")],
)  # fmt: skip
def test_a_measure_of_two_sets_is_the_loss_and_its_evaluation_in_any_order(
    tmp_path: Path, trained: str, evaluated: str
) -> None:
    run = _read(tmp_path, {trained: FALLS, evaluated: FALLS + 0.1, "lr": RATE})
    np.testing.assert_allclose(run["loss"].value, FALLS)
    np.testing.assert_allclose(run["eval_loss"].value, FALLS + 0.1)


@pytest.mark.parametrize(("first", "second"), [("fit time", "check time"), ("seen nll", "rain nll"), ("run", "check")])
def test_words_of_sets_without_a_measure_of_both_say_nothing(tmp_path: Path, first: str, second: str) -> None:
    assert "eval_loss" not in _read(tmp_path, {first: FALLS, second: FALLS + 0.1, "lr": RATE})


def test_log_probabilities_by_the_sides_of_a_pair_are_of_preferences(tmp_path: Path) -> None:
    run = _read(tmp_path, {"loss": FALLS, "lp/win": -20 + FALLS, "lp/lose": -22 + FALLS, "acc": RISES})
    assert run.kind == "preference"
    np.testing.assert_allclose(run["logps/chosen"].value, -20 + FALLS)
    assert _read(tmp_path, {"loss": FALLS, "games/win": RISES, "games/lose": FALLS}).kind != "preference"


def test_the_norm_of_a_part_between_double_bars_is_one_of_weights(tmp_path: Path) -> None:
    run = _read(tmp_path, {"loss": FALLS, "‖conv1‖": NORM, "∇conv1": NORM, "‖update‖": NORM})
    quantities = {series.name: series.role.quantity if series.role else None for series in run.series.values()}
    assert quantities["‖conv1‖"] is Quantity.WEIGHT_NORM
    assert quantities["∇conv1"] is Quantity.GRADIENT_NORM
    assert quantities["‖update‖"] is not Quantity.WEIGHT_NORM
