from __future__ import annotations

import json
from pathlib import Path

import pytest

from mldebug_mcp.cli import main
from mldebug_mcp.core.errors import InputError, UnknownIdError
from mldebug_mcp.core.text import did_you_mean, nearest
from mldebug_mcp.judge.read_metric import read_metric
from mldebug_mcp.judge.search import explain
from mldebug_mcp.memory.estimate import estimate_memory


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("diganose", "diagnose"),
        ("compair", "compare"),
        ("memmory", "memory"),
        ("estimat", "estimate"),
        ("explian", "explain"),
        ("wacht", "watch"),
        ("serach", "search"),
        ("tracback", "error"),
        ("oom", "memory or error"),
        ("analyze", "diagnose"),
        ("diff", "compare"),
    ],
)
def test_a_mistyped_command_names_the_one_that_was_meant(
    word: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([word, "x"])

    assert ended.value.code == 2
    assert f"did you mean {meant}?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["diagnose", "x", "--jsn"], "--json"),
        (["diagnose", "x", "--shrt"], "--short"),
        (["estimate", "x", "--batchsize", "4"], "--batch-size"),
        (["estimate", "x", "--grad-accum=4"], "--accumulation"),
        (["estimate", "x", "--tp", "2"], "--tensor-parallel"),
        (["memory", "x", "--compare", "y"], "--against"),
        (["install", "claud-code"], "claude-code"),
    ],
)
def test_a_mistyped_option_names_the_one_of_its_command(
    arguments: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)

    assert f"did you mean {meant}?" in capsys.readouterr().err


def test_an_option_like_none_says_where_they_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["diagnose", "x", "--qqqq"])

    said = capsys.readouterr().err
    assert "did you mean" not in said
    assert "--help" in said


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("lr_to_high", "lr_too_high"),
        ("learning_rate_too_high", "lr_too_high"),
        ("LossSpike", "loss_spike"),
        ("exploding_gradient", "exploding_gradients"),
        ("overfit", "overfitting"),
        ("memory_leek", "memory_leak"),
        ("graph_kept", "graph_kept_alive"),
        ("grad_clip", "grad_clip_low"),
        ("vanishing", "vanishing_gradients"),
        ("labels_masked", "all_labels_masked"),
        ("loss_is_nan", "menu_nan"),
    ],
)
def test_a_mistyped_id_names_the_one_that_was_meant(name: str, meant: str) -> None:
    with pytest.raises(UnknownIdError, match=rf"did you mean [^?]*\b{meant}\b"):
        explain(name)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    names = ("loss", "grad_norm", "learning_rate", "eval_loss")
    path.write_text(
        "".join(json.dumps({"step": step, **dict.fromkeys(names, 1.0 / step)}) + "\n" for step in (1, 2, 3))
    )
    return path


@pytest.mark.parametrize(
    ("asked", "read"), [("lr", "learning_rate"), ("val_loss", "eval_loss"), ("train/loss", "loss")]
)
def test_another_name_for_a_metric_reads_it(asked: str, read: str, log: Path) -> None:
    assert [one.name for one in read_metric(log, [asked]).series] == [read]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("grad_nrom", "the nearest: grad_norm$"),
        ("los", "the nearest: loss, eval_loss$"),
        ("learning_rat", "the nearest: learning_rate$"),
        ("perplexity", "in it are: loss, grad_norm, learning_rate, eval_loss$"),
    ],
)
def test_a_mistyped_metric_names_the_nearest_and_nothing_by_chance(asked: str, said: str, log: Path) -> None:
    with pytest.raises(InputError, match=said):
        read_metric(log, [asked])


@pytest.mark.parametrize(
    ("setting", "given", "meant"),
    [
        ("optimizer", "adamw8bit", "adamw_8bit"),
        ("optimizer", "adamw_torch", "adamw"),
        ("sharding", "fsdp", "zero3"),
        ("sharding", "zero-3", "zero3"),
        ("checkpointing", "yes", "full"),
        ("attention", "sdpa", "flash"),
        ("precision", "float16", "fp16"),
        ("frozen", "nf4", "4bit"),
    ],
)
def test_what_frameworks_call_a_setting_names_the_value_here(
    setting: str, given: str, meant: str, tmp_path: Path
) -> None:
    config = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100}
    (tmp_path / "config.json").write_text(json.dumps(config))

    with pytest.raises(InputError, match=rf"did you mean {meant}\?"):
        estimate_memory(tmp_path, **{setting: given, "lora_rank": 8})  # type: ignore[arg-type]


def test_what_is_alike_by_chance_is_not_named() -> None:
    assert nearest("xyzzy", ["loss", "memory", "compare"]) == []
    assert nearest("...", ["loss"]) == []
    assert did_you_mean([]) == ""


def test_a_word_of_any_length_is_looked_at_in_part() -> None:
    assert nearest("loss" * 100_000, ["loss"]) == []
