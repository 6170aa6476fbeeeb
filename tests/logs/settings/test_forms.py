"""One configuration, written in every form by the libraries that write them, is read as the same settings."""

from __future__ import annotations

import argparse
import configparser
import dataclasses
import io
import json
import pprint
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest
import tomlkit
import yaml
from tests.hostile.pickles import CALLS, NOTE

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.logs import read_run
from mldebug_mcp.logs.run import Run
from mldebug_mcp.logs.settings import Settings, settings_printed_in
from mldebug_mcp.logs.settings.files import read_settings

WANTED: Mapping[str, object] = {
    "learning_rate": 3e-4,
    "weight_decay": 0.1,
    "adam_beta1": 0.9,
    "adam_beta2": 0.95,
    "max_steps": 2000,
    "warmup_steps": 100,
    "per_device_train_batch_size": 16,
    "gradient_accumulation_steps": 4,
    "max_grad_norm": 1.0,
    "fp16": False,
    "bf16": True,
    "optim": "adamw",
    "seed": 7,
}

FLAT: Mapping[str, object] = {
    "lr": 3e-4,
    "weight_decay": 0.1,
    "betas": [0.9, 0.95],
    "max_iters": 2000,
    "warmup_iters": 100,
    "batch_size": 16,
    "grad_accum": 4,
    "grad_clip": 1.0,
    "fp16": False,
    "bf16": True,
    "optimizer": "adamw",
    "seed": 7,
}

NESTED: Mapping[str, object] = {
    "optim": {"name": "adamw", "learningRate": 3e-4, "weightDecay": 0.1, "beta1": 0.9, "beta2": 0.95},
    "scheduler": {"warmup": {"steps": 100}},
    "trainer": {"maxSteps": 2000, "accumulateGradBatches": 4, "gradientClipVal": 1.0, "fp16": {"enabled": False}},
    "bf16": {"enabled": True},
    "data": {"batchSize": 16},
    "seed": 7,
}


@dataclasses.dataclass
class OptimizerArgs:
    name: str = "adamw"
    lr: float = 3e-4
    weight_decay: float = 0.1
    betas: tuple[float, float] = (0.9, 0.95)


@dataclasses.dataclass
class TrainConfig:
    optimizer: OptimizerArgs = dataclasses.field(default_factory=OptimizerArgs)
    max_steps: int = 2000
    warmup_steps: int = 100
    micro_batch_size: int = 16
    gradient_accumulation_steps: int = 4
    clip_grad_norm: float = 1.0
    fp16: bool = False
    bf16: bool = True
    seed: int = 7


def _json() -> str:
    return json.dumps(FLAT)


def _nested_json() -> str:
    return json.dumps(NESTED, indent=1)


def _yaml() -> str:
    return yaml.safe_dump(dict(FLAT))


def _nested_yaml() -> str:
    return yaml.safe_dump(dict(NESTED))


def _toml() -> str:
    return tomlkit.dumps(dict(NESTED))


def _ini() -> str:
    parser = configparser.ConfigParser()
    parser["train"] = {name: str(value) for name, value in FLAT.items()}
    written = io.StringIO()
    parser.write(written)
    return written.getvalue()


def _namespace() -> str:
    return str(argparse.Namespace(**FLAT))


def _dataclass() -> str:
    return repr(TrainConfig())


def _pretty() -> str:
    return pprint.pformat(dict(NESTED), width=60)


def _command() -> str:
    return (
        "torchrun --standalone train.py --lr 3e-4 --weight-decay=0.1 --betas 0.9 0.95 --max-steps 2k \\\n"
        "  --warmup_steps 100 --batch-size 16 --grad-accum 4 --grad-clip 1.0 --no-fp16 --bf16 \\\n"
        "  --optimizer adamw --seed 7\n"
    )


_PROGRAM = "torchrun --standalone train.py "


def _options() -> str:
    return _command().removeprefix(_PROGRAM).replace("\\\n", "")


def _script() -> str:
    return f"# on two devices\n$ WANDB_MODE=offline OMP_NUM_THREADS=4 ./bin/train.py data/small {_options()}"


def _script_over_lines() -> str:
    return "pretrain.py \\\n  " + _options().replace(" --", " \\\n  --")


def _program_without_ending() -> str:
    return f"./run_training {_options()}"


def _word_a_line() -> str:
    return "# generated\n" + "\n".join(_options().split()) + "\n"


def _shell_script() -> str:
    text = f"#!/bin/bash\nset -e\nexport LR=3e-4\nSIZE=16\n\npython -u train.py {_options()}"
    return text.replace("--lr 3e-4", "--lr $LR").replace("--batch-size 16", "--batch-size ${SIZE}")


def _list_of_words() -> str:
    return json.dumps({"git": "0a1b2c", "argv": ["train.py", *_options().split()]})


def _command_in_json() -> str:
    return json.dumps({"host": "a1", "cmd": f"python train.py {_options()}"})


def _any_program() -> str:
    return f"mytrainer fit {_options()}"


def _hydra_overrides() -> str:
    return yaml.safe_dump(
        ["optim.lr=3e-4", "optim.name=adamw", "optim.weight_decay=0.1", "optim.betas=[0.9,0.95]",
         "+trainer.max_steps=2_000",
         "scheduler.warmup_steps=1e2", "batch_size=16", "trainer.accumulate_grad_batches=4",
         "trainer.gradient_clip_val=1", "fp16=false", "bf16=true", "seed=7"]
    )  # fmt: skip


def _wandb() -> str:
    wrapped = {name: {"value": value, "desc": None} for name, value in FLAT.items()}
    return yaml.safe_dump({"_wandb": {"value": {"cli_version": "0.19", "t": {"1": [1, 5]}}}, **wrapped})


def _megatron() -> str:
    names = {
        "lr": "0.0003", "weight_decay": "0.1", "adam_beta1": "0.9", "adam_beta2": "0.95", "train_iters": "2000",
        "lr_warmup_iters": "100", "micro_batch_size": "16", "gradient_accumulation_steps": "4", "clip_grad": "1.0",
        "fp16": "False", "bf16": "True", "optimizer": "adamw", "seed": "7",
    }  # fmt: skip
    return "\n".join(f"  {name} {'.' * (46 - len(name))} {value}" for name, value in names.items())


def _block() -> str:
    return "\n".join(f"{name:>24} = {value}" for name, value in FLAT.items())


def _table() -> str:
    return "\n".join(f"| {name:<24} | {value!s:<20} |" for name, value in FLAT.items())


FILES: Mapping[str, tuple[str, Callable[[], str]]] = {
    "json": ("config.json", _json),
    "nested json": ("config.json", _nested_json),
    "yaml": ("config.yaml", _yaml),
    "nested yaml": ("train.yml", _nested_yaml),
    "toml": ("config.toml", _toml),
    "ini": ("config.ini", _ini),
    "namespace": ("args.txt", _namespace),
    "dataclass": ("args.txt", _dataclass),
    "pretty dictionary": ("opt.txt", _pretty),
    "command line": ("cmd.txt", _command),
    "script and options": ("args.txt", _script),
    "script over lines": ("args.txt", _script_over_lines),
    "program and options": ("command.txt", _program_without_ending),
    "options": ("args.txt", _options),
    "a word a line": ("args.txt", _word_a_line),
    "shell script": ("run.sh", _shell_script),
    "command in JSON": ("run.json", _command_in_json),
    "any program": ("cmd.txt", _any_program),
    "batch script": ("job.sbatch", _shell_script),
    "words of a command in JSON": ("run.json", _list_of_words),
    "hydra overrides": ("overrides.yaml", _hydra_overrides),
    "wandb": ("config.yaml", _wandb),
    "megatron": ("args.txt", _megatron),
    "lines": ("opt.txt", _block),
}
PRINTED: Mapping[str, Callable[[], str]] = {
    "json": _nested_json,
    "yaml": _nested_yaml,
    "flat yaml": _yaml,
    "namespace": _namespace,
    "dataclass": _dataclass,
    "pretty dictionary": _pretty,
    "command line": _command,
    "script over lines": _script_over_lines,
    "megatron": _megatron,
    "lines": _block,
    "table": _table,
}


@pytest.mark.parametrize("form", FILES)
def test_a_file_in_any_form_holds_the_same_settings(form: str, tmp_path: Path) -> None:
    name, write = FILES[form]
    (tmp_path / name).write_text(write())
    settings = read_settings(tmp_path / name)
    assert {wanted: settings.flat.get(wanted) for wanted in WANTED} == WANTED
    assert {one.source for one in settings.values()} == {name}


@pytest.mark.parametrize("stamp", [
    "", "2025-03-01 10:22:31,123 INFO trainer - ", "2025-03-01 10:22:31,123 - mlm.train - INFO - ", "[rank0]: ",
])  # fmt: skip
@pytest.mark.parametrize("form", PRINTED)
def test_a_log_that_prints_its_configuration_in_any_form_holds_the_same_settings(form: str, stamp: str) -> None:
    lines = ["starting", *PRINTED[form]().splitlines(), "step 1 loss 3.2", "step 2 loss 3.1"]
    settings = settings_printed_in([f"{stamp}{line}" for line in lines])
    assert {wanted: settings.flat.get(wanted) for wanted in WANTED} == WANTED
    assert {one.source for one in settings.values()} <= {"printed at line 2", "printed at line 3"}


def _run(folder: Path, name: str = "metrics.jsonl") -> Run:
    (folder / name).write_text("".join(f'{{"step": {step}, "loss": {4 - step / 50}}}\n' for step in range(1, 60)))
    return read_run(folder)


def test_the_only_shell_script_in_the_folder_of_a_run_is_its_configuration(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(_shell_script())
    assert _run(tmp_path).settings["learning_rate"].value == 3e-4


def test_a_line_of_a_log_that_names_a_file_and_numbers_is_no_command() -> None:
    lines = ["train.py - INFO - lr=0.1 batch_size=8", "/data/run-1/a.bin lr=0.1 batch_size=8 epochs=2", "step 1 loss 2"]
    assert not any("train.py" in str(one.value) for one in settings_printed_in(lines).values())
    assert "max_steps" not in settings_printed_in(["./saved step=10 max_steps=20 in a-b"])


class _Member:
    """A member of an enumeration as Python 3.11.2 pickles it: by its name."""

    def __reduce__(self) -> tuple[object, tuple[object, str]]:
        return getattr, (re.RegexFlag, "IGNORECASE")


def test_a_member_that_is_pickled_by_its_name_is_read_as_one_pickled_by_its_value(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save(SimpleNamespace(lr_scheduler_type=_Member(), learning_rate=2e-5), tmp_path / "training_args.bin")
    assert read_settings(tmp_path / "training_args.bin").text("lr_scheduler_type") == "ignorecase"


def test_training_arguments_of_transformers_are_read_in_all_their_forms(tmp_path: Path) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "out"), learning_rate=2e-5, per_device_train_batch_size=4, warmup_steps=30,
        bf16=False, fp16=False, adam_beta2=0.98, max_grad_norm=0.5, num_train_epochs=2, lr_scheduler_type="cosine",
        use_cpu=True,
    )  # fmt: skip
    torch.save(arguments, tmp_path / "training_args.bin")
    (tmp_path / "training_args.json").write_text(arguments.to_json_string())
    (tmp_path / "args.txt").write_text(str(arguments))
    wanted = {"learning_rate": 2e-5, "warmup_steps": 30, "adam_beta2": 0.98, "max_grad_norm": 0.5,
              "num_train_epochs": 2, "fp16": False, "bf16": False, "per_device_train_batch_size": 4}  # fmt: skip
    for name in ("training_args.bin", "training_args.json", "args.txt"):
        settings = read_settings(tmp_path / name)
        assert {one: settings.flat.get(one) for one in wanted} == wanted, name
        assert "cosine" in settings.text("lr_scheduler_type"), name
    printed = settings_printed_in(
        ["11/22/2025 20:40:13 - INFO - __main__ - Training parameters", *str(arguments).splitlines()]
    )
    assert {one: printed.flat.get(one) for one in wanted} == wanted


def test_nothing_in_saved_arguments_is_run(tmp_path: Path) -> None:
    path = tmp_path / "training_args.bin"
    path.write_bytes(b"c" + NOTE + b"(S'called'\ntR}(S'lr'\nF0.1\nuS'lr'\nF0.1\nsb.")
    assert read_settings(path).number("learning_rate") == 0.1
    assert not CALLS


def test_the_metadata_and_the_configuration_of_wandb_are_both_read(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"vocab_size": {"value": 96}}))
    metadata = {"program": "train.py", "args": ["--lr", "1e-3", "--fp16"], "gpu_count": 8}
    (tmp_path / "wandb-metadata.json").write_text(json.dumps(metadata))
    run = _run(tmp_path)
    assert (run.setting("vocab_size"), run.setting("learning_rate")) == (96, 1e-3)
    assert run.settings.flag("fp16") is True
    assert run.settings["learning_rate"].source == "wandb-metadata.json"


def test_the_configuration_of_deepspeed_is_read(tmp_path: Path) -> None:
    config = {
        "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2, "gradient_clipping": 1.0,
        "fp16": {"enabled": False, "loss_scale": 0}, "bf16": {"enabled": True}, "zero_optimization": {"stage": 2},
        "optimizer": {"type": "AdamW", "params": {"lr": 3e-5, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1}},
        "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 500}},
    }  # fmt: skip
    (tmp_path / "ds_config.json").write_text(json.dumps(config))
    (tmp_path / "train.log").write_text("".join(f"step {step} loss {3 - step / 50}\n" for step in range(1, 30)))
    run = read_run(tmp_path)
    told = {
        "per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "max_grad_norm": 1.0, "fp16": False,
        "bf16": True, "zero_stage": 2, "optim": "AdamW", "learning_rate": 3e-5, "adam_beta2": 0.95,
        "weight_decay": 0.1, "lr_scheduler_type": "WarmupLR", "warmup_steps": 500,
    }  # fmt: skip
    assert {name: run.settings[name].value for name in told} == told


def test_a_file_under_any_name_is_the_configuration_if_it_is_the_only_one_with_settings(tmp_path: Path) -> None:
    (tmp_path / "my_experiment.yaml").write_text(_nested_yaml())
    (tmp_path / "labels.json").write_text('{"0": "cat", "1": "dog"}')
    run = _run(tmp_path)
    assert run.setting("learning_rate") == 3e-4
    told = "configuration read from my_experiment.yaml (the only configuration in the folder of the run)"
    assert told in run.notes


def test_of_several_files_the_namesake_of_the_log_is_the_configuration_and_without_one_none_is(tmp_path: Path) -> None:
    for name, rate in (("small", 1e-3), ("large", 1e-4)):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump({**FLAT, "lr": rate}))
    _run(tmp_path, "large.jsonl")
    assert read_run(tmp_path / "large.jsonl").setting("learning_rate") == 1e-4
    (tmp_path / "large.jsonl").rename(tmp_path / "train.jsonl")
    assert read_run(tmp_path / "train.jsonl").setting("learning_rate") is None


def test_the_rank_of_an_adapter_needs_no_more_than_the_name_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text(
        '{"r": 16, "lora_alpha": 32, "task_type": "CAUSAL_LM", "peft_type": "LORA"}'
    )
    run = _run(tmp_path)
    assert run.setting("lora_r") == 16
    assert run.kind == "sft"


def test_the_name_of_a_file_says_nothing_of_keys_in_its_sections(tmp_path: Path) -> None:
    sections = "[train]\nsteps = 90\nbatch_size = 8\nlog_every = 1\nlr = 0.01\nseed = 1\n\n[model]\nsize = 16\n"
    (tmp_path / "train.toml").write_text(sections)
    run = _run(tmp_path)
    assert run.setting("max_steps") == 90
    assert run.setting("train_rows") is None


def test_a_record_of_a_log_is_no_configuration() -> None:
    lines = [
        "{'loss': 0.5, 'learning_rate': 1e-5, 'epoch': 0.1, 'batch_size': 3, 'weight_decay': 0.1, 'momentum': 0.9}",
        "step: 100",
        "loss: 2.5",
        "lr: 0.001",
        "batch_size: 8",
        "epoch 1 lr: 0.001 momentum: 0.9 batch_size: 8 weight_decay: 0.1",
    ]
    assert len(settings_printed_in(lines)) == 0


def test_the_head_of_training_that_the_trainer_prints_is_read() -> None:
    lines = [
        "***** Running training *****", "  Num examples = 1,000", "  Num Epochs = 3",
        "  Instantaneous batch size per device = 8",
        "  Total train batch size (w. parallel, distributed & accumulation) = 32",
        "  Gradient Accumulation steps = 4", "  Total optimization steps = 96",
    ]  # fmt: skip
    settings = settings_printed_in(lines)
    assert settings.flat == {
        "train_rows": 1000, "num_train_epochs": 3, "per_device_train_batch_size": 8, "global_batch_size": 32,
        "gradient_accumulation_steps": 4, "max_steps": 96,
    }  # fmt: skip
    assert settings["train_rows"].key == "Num examples"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config.json", '{"lr": 0.1'),
        ("config.yaml", "a: [1"),
        ("config.toml", "lr = = 3"),
        ("config.ini", "[train\nlr"),
        ("config.json", "[" * 100_000),
        ("args.txt", "Namespace(" * 50_000),
        ("args.txt", "plain words without any setting at all"),
        ("training_args.bin", "PK\x03\x04 cut off"),
        ("training_args.bin", "\x80\x04" + "}" * 200_000 + "."),
    ],
)
def test_a_broken_or_hostile_file_is_refused_with_what_is_wrong(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=name):
        read_settings(tmp_path / name)


def test_aliases_that_stand_for_a_huge_object_are_cut_with_a_note() -> None:
    bomb: object = 1
    for _ in range(12):
        bomb = {f"key{number}": bomb for number in range(10)}
    settings = Settings.of({"lr": 0.1, "bomb": bomb})
    assert settings.number("learning_rate") == 0.1
    assert len(settings) <= 2000
    assert any("2,000 keys" in note or "levels" in note for note in settings.notes)


def test_an_object_inside_itself_is_read_to_a_depth() -> None:
    circle: dict[str, object] = {"lr": 0.1}
    circle.update(a=circle, b=[circle])
    settings = Settings.of(circle)
    assert settings.number("learning_rate") == 0.1
    assert settings.notes


def test_adapters_that_are_switched_off_set_nothing() -> None:
    for off in ({"lora": False}, {"use_peft": "false"}):
        settings = Settings.of({**off, "lora_rank": 4, "lr": 0.005})
        assert "lora_r" not in settings
        assert settings["learning_rate"].value == 0.005
    assert Settings.of({"lora": True, "lora_rank": 4})["lora_r"].value == 4


def test_a_section_that_is_switched_off_sets_nothing() -> None:
    solver = {"MAX_ITER": 9000, "CLIP_GRADIENTS": {"ENABLED": False, "CLIP_VALUE": 1.0}, "AMP": {"ENABLED": False}}
    read = Settings.of({"SOLVER": solver})
    assert (read.number("max_steps"), read.number("max_grad_norm"), read.flag("amp")) == (9000, None, False)
    on = Settings.of({"SOLVER": {"CLIP_GRADIENTS": {"ENABLED": True, "CLIP_VALUE": 1.0}}})
    assert on.number("max_grad_norm") == 1.0


def test_the_configuration_that_detectron2_prints_above_its_records_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    stamp = "[03/12 10:15:3"
    records = (
        f"{stamp}{at} d2.utils.events]:  eta: 2:07:11  iter: {19 + 20 * at}  total_loss: {3.9 - at / 4:.3f}  "
        f"loss_cls: 1.{at}04  time: 0.4231  data_time: 0.0091  lr: 0.00399  max_mem: 6120M\n"
        for at in range(6)
    )
    log.write_text(
        f"{stamp}1 detectron2]: Running with full config:\nINPUT:\n  MIN_SIZE_TRAIN:\n  - 640\n  - 672\n"
        "SOLVER:\n  BASE_LR: 0.02\n  IMS_PER_BATCH: 16\n  MAX_ITER: 9000\n  WEIGHT_DECAY: 0.0001\n"
        "  WARMUP_ITERS: 100\nVERSION: 2\n\n" + "".join(records)
    )
    read = read_run(log).settings
    assert [read.number(name) for name in ("learning_rate", "global_batch_size", "max_steps")] == [0.02, 16, 9000]


MMENGINE = """2024/06/11 10:00:00 - mmengine - INFO - Config:
model = dict(
    type='Classifier', head=dict(num_classes=7, loss=dict(type='Smooth', label_smooth_val=0.1)),
    train_cfg=dict(augments=[dict(type='Mixup', alpha=0.8)]))
optim_wrapper = dict(optimizer=dict(type='AdamW', lr=0.003, weight_decay=0.05))
val_evaluator = dict(type='Accuracy', topk=(1, )), dict(type='Loss')
"""


def test_a_configuration_that_is_printed_as_python_source_is_read_from_the_head_of_a_log() -> None:
    settings = settings_printed_in(
        [*MMENGINE.splitlines(), "2024/06/11 10:00:01 - mmengine - INFO - lr: 1.0 loss: 2.0"]
    )
    expected = {"num_labels": 7, "optim": "AdamW", "learning_rate": 0.003, "weight_decay": 0.05}
    assert {name: settings[name].value for name in expected} == expected
    assert settings["model/head/loss/label_smooth_val"].value == 0.1


def test_assignments_of_numbers_alone_are_records_and_no_configuration() -> None:
    assert not settings_printed_in(["loss = 0.5", "accuracy = 0.75", "loss = 0.25", "accuracy = 0.875"])


@pytest.mark.parametrize("line", ["found vocab_size = 96 (inside data/meta.pkl)", "Vocab size: 96 (char level)"])
def test_a_remark_in_brackets_behind_a_number_is_no_part_of_it(line: str) -> None:
    lines = ["learning_rate = 0.2", "optim = adamw (fused)", "max_iters = 500", "batch_size = 8", line]
    printed = settings_printed_in(lines)
    assert (printed.number("vocab_size"), printed.text("optim")) == (96, "adamw (fused)")


@pytest.mark.parametrize(("line", "settings"), [
    ("[cfg] sgd lr 0.05 m 0.9 local_bs 64 clip 2.0 log every 10",
     {"optim": "sgd", "learning_rate": 0.05, "momentum": 0.9, "per_device_train_batch_size": 64, "max_grad_norm": 2.0}),
    ("task: recall after T=40 (10 symbols)  rnn-tanh h=48  adam 1e-3  bs 64  clip 5.0",
     {"optim": "adam", "learning_rate": 1e-3, "per_device_train_batch_size": 64, "max_grad_norm": 5.0}),
    ("10:00:00 INFO adamw lr 2e-3 wd 0.02 cosine 25 epochs bs 50",
     {"optim": "adamw", "learning_rate": 2e-3, "weight_decay": 0.02, "num_train_epochs": 25,
      "per_device_train_batch_size": 50}),
    ("adamw 2.5e-3 cosine wd .05 clip 1.0",
     {"optim": "adamw", "learning_rate": 2.5e-3, "weight_decay": 0.05, "max_grad_norm": 1.0}),
    ("cfg: bs=96 prefetch=1 workers=0 decode=on_the_fly amp=False",
     {"per_device_train_batch_size": 96, "num_workers": 0}),
    ("[dist] world_size=4 backend=gloo bucket_cap=25MB", {"world_size": 4}),
    ("[data] 7416 chunks x 48 tokens, 1 epoch = 618 steps @ bs 12", {"steps_per_epoch": 618}),
])  # fmt: skip
def test_a_line_of_words_that_names_an_optimizer_or_a_size_holds_settings(
    line: str, settings: dict[str, object], tmp_path: Path
) -> None:
    (tmp_path / "train.log").write_text(line + "\n" + "".join(f"step {at} loss {3 / at}\n" for at in range(1, 20)))
    run = read_run(tmp_path / "train.log")
    assert {name: run.settings[name].value for name in settings} == settings


@pytest.mark.parametrize("line", ["adam 3 layers 4 heads", "step 10 loss 2.0 sgd lr 0.1 m 0.9 bs 3", "sgd 40 steps"])
def test_a_line_that_measures_or_names_an_optimizer_alone_holds_no_settings(line: str) -> None:
    assert not {"learning_rate", "max_steps"} & settings_printed_in([line, "step 1 loss 2"]).keys()
