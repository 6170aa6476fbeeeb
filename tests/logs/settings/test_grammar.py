"""Which key is which setting, and which is none."""

from __future__ import annotations

import pytest

from mldebug_mcp.logs.settings import Scalar, Settings


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("optimizer.lr", "learning_rate"),
        ("train.optim.learningRate", "learning_rate"),
        ("--learning-rate", "learning_rate"),
        ("LR", "learning_rate"),
        ("MaxLR", "learning_rate"),
        ("actor_rollout_ref/actor/optim/lr", "learning_rate"),
        ("scheduler/warmup", "warmup_steps"),
        ("lr_warmup_iters", "warmup_steps"),
        ("training/max_norm", "max_grad_norm"),
        ("gradient_clip_val", "max_grad_norm"),
        ("model.hidden_size", "hidden_size"),
        ("train/model/dim", "hidden_size"),
        ("lora_dim", "lora_r"),
        ("train/data/size", "train_rows"),
        ("eval_batch_size", "per_device_eval_batch_size"),
        ("train_micro_batch_size_per_gpu", "per_device_train_batch_size"),
        ("num_iters", "max_steps"),
        ("numGPUs", "world_size"),
        ("dataset/num_labels", "num_labels"),
        ("optimizer/params/eps", "adam_epsilon"),
    ],
)
def test_a_key_is_a_setting_by_its_words_in_any_case_order_and_nesting(key: str, name: str) -> None:
    settings = Settings.of({key: 10})
    assert settings[name].value == 10
    assert settings[name].known
    assert settings[name].key == key


@pytest.mark.parametrize(
    "key",
    ["reward_model.lr", "critic/optim/lr", "lr_scale", "warmup_lr", "loss_scale_window", "eval/steps", "logging/steps",
     "ema/beta", "num_beams", "batch_sampler", "lr_patience", "weight_decay_norm",
     "train/image/size", "data/patch/size", "model/size"],
)  # fmt: skip
def test_a_key_that_only_looks_like_a_setting_keeps_its_own_name(key: str) -> None:
    settings = Settings.of({key: 10})
    assert [(one.known, one.value) for one in settings.values()] == [(False, 10)]


@pytest.mark.parametrize(
    ("key", "value", "name", "read"),
    [
        ("lr", "3e-4", "learning_rate", 3e-4),
        ("max_steps", "1e5", "max_steps", 1e5),
        ("max_steps", "100_000", "max_steps", 100_000),
        ("max_steps", "2k", "max_steps", 2000),
        ("weight_decay", "0.1%", "weight_decay", 0.001),
        ("warmup", 0.1, "warmup_ratio", 0.1),
        ("warmup", "10%", "warmup_ratio", 0.1),
        ("warmup", 2000, "warmup_steps", 2000),
        ("fp16", "False", "fp16", False),
        ("fp16", 0, "fp16", False),
        ("fp16", None, "fp16", None),
        ("grad_clip", "None", "max_grad_norm", None),
        ("batch_size", "auto", "per_device_train_batch_size", "auto"),
        ("precision", "bf16-mixed", "precision", "bf16-mixed"),
        ("beta2", "[0.99]", "adam_beta2", 0.99),
    ],
)
def test_a_value_is_typed_with_its_unit_and_explicit_null_and_false_are_kept(
    key: str, value: Scalar, name: str, read: Scalar
) -> None:
    found = Settings.of({key: value}).flat
    assert name in found
    assert found[name] == (pytest.approx(read) if isinstance(read, float) else read)


def test_a_list_of_betas_is_two_settings() -> None:
    settings = Settings.of({"optimizer": {"betas": [0.9, 0.95]}})
    assert (settings.number("adam_beta1"), settings.number("adam_beta2")) == (0.9, 0.95)


def test_a_list_of_numbers_is_kept() -> None:
    settings = Settings.of({"lr": [1e-3, 1e-4]})
    assert settings.numbers("learning_rate") == (1e-3, 1e-4)
    assert settings.number("learning_rate") is None


def test_of_two_keys_for_one_setting_the_outer_one_stands_and_the_choice_is_told() -> None:
    settings = Settings.of({"extra": {"deep": {"lr": 0.5}}, "lr": 0.1})
    assert settings.number("learning_rate") == 0.1
    assert settings.notes == ("learning_rate is read from 'lr' (0.1); 'extra/deep/lr' (0.5) is left out",)


def test_a_null_gives_way_to_a_value_under_another_key() -> None:
    assert Settings.of({"max_steps": -1, "trainer": {"train_steps": 500}}).number("max_steps") == 500


def test_a_value_of_the_wrong_type_is_no_such_setting() -> None:
    settings = Settings.of({"lr": True, "optimizer": 3, "fp16": "O2"})
    assert not any(one.known for one in settings.values())


def test_what_an_earlier_source_says_stands() -> None:
    merged = Settings.merged(Settings.of({"lr": 0.1}, "a"), Settings.of({"learning_rate": 0.2, "seed": 3}, "b"))
    assert (merged["learning_rate"].value, merged["learning_rate"].source) == (0.1, "a")
    assert merged["seed"].source == "b"


def test_a_plain_key_stands_before_a_general_one_wherever_it_is() -> None:
    settings = Settings.of({"num_iterations": 1, "trainer": {"max_steps": 200}})  # TRL's: passes over one batch
    assert settings["max_steps"].value == 200


def test_of_two_guessed_keys_for_one_setting_the_other_keeps_its_own_name() -> None:
    settings = Settings.of({"emsize": 400, "nhid": 1150})
    assert {name: setting.value for name, setting in settings.items()} == {"hidden_size": 400, "nhid": 1150}
    assert not settings["nhid"].known
    assert settings.notes == ()
    assert list(Settings.of({"emsize": 200, "nhid": 200})) == ["hidden_size"]
