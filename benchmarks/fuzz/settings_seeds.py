"""Configurations in every form that is read: files of all kinds, and what scripts print."""

from __future__ import annotations

import io
import pickle
import zipfile
from argparse import Namespace
from enum import Enum
from random import Random

TOML = b"""seed = 7\n[optimizer]\nname = "adamw"\nlr = 3e-4\nbetas = [0.9, 0.95]\n[train]\nmax_steps = 2000
batch_size = 32\nbf16 = true\nwhen = 2024-05-01T10:00:00Z\n[[data]]\npath = '''a'''\n"""
INI = b"[train]\nlearning_rate: 1e-4\nbatch_size = 8 ; rows\nfp16\n[DEFAULT]\nepochs = 3\n[model]\nhidden_size=64\n"
COMMANDS = (
    b"torchrun --nproc-per-node 8 train.py --lr 3e-4 --bf16 --no-shuffle --betas 0.9 0.95 trainer.max_steps=100\n",
    b"#!/bin/bash\nexport A=1\npython -m train \\\n  --learning_rate=1e-4 \\\n  --config 'x y.yaml' +optim.lr=3e-4\n",
)
PRINTED = (
    b"Namespace(lr=0.0003, betas=(0.9, 0.95), fp16=False, path=PosixPath('x'), mode=<Mode.A: 'a'>, none=None)\n",
    b"TrainingArguments(\nlearning_rate=5e-05,\nnum_train_epochs=3,\nlr_scheduler_type=SchedulerType.LINEAR,\n)\n",
    b"{'lr': 0.1, 'epochs': 3, 'batch_size': 8, 'optim': {'name': 'sgd', 'momentum': 0.9}, 'seed': 1}\n",
    b"  lr ...................... 0.0003\n  fp16 .................... False\n  train_iters ............. 500\n"
    b"  micro_batch_size ........ 4\n  seq_length .............. 2048\n  clip_grad ............... 1.0\n",
    b"learning_rate: 0.001\nbatch_size = 8\nmax_epochs: 3\nweight_decay = 0.1\nwarmup_steps: 10\n",
)
PYTHON = (
    b"seed = 7\nlr: float = 3e-4\nbetas = (0.9, 0.95)\noptimizer = dict(type='AdamW', lr=3e-4, weight_decay=0.1)\n"
    b"train = {'epochs': 3, 'batch_size': 32, 'steps': -1, **other}\nfrom a import b\n\ndef f(x):\n    return x\n",
    b"import torch\n\nTrainer(model, learning_rate=1e-4, epochs=3, batch_size=8, seed=1, betas=[0.9, 1 - 1e-3])\n",
)


class _Mode(Enum):
    FAST = "fast"


def forms() -> list[bytes]:
    """Return configurations in every form of text."""
    return [TOML, INI, *COMMANDS, *PRINTED, *PYTHON]


def pickled() -> list[bytes]:
    """Return saved arguments: bare pickles of several protocols, and the archive of torch.save."""
    value = Namespace(learning_rate=1e-4, mode=_Mode.FAST, betas=(0.9, 0.95), nested={"a": [1, None]}, seed=1)
    made = [pickle.dumps(value, protocol) for protocol in (0, 2, 4)]
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("training_args/data.pkl", made[1])
    return [*made, archive.getvalue()]


def made_form(random: Random) -> bytes:
    """Write nested settings in one of the forms, with the values and the nesting at random."""
    keys = ("lr", "betas", "fp16", "batch_size", "optimizer", "a" * 300, "x.y", "max_steps", "", "num_classes", "0")

    def value(depth: int) -> object:
        scalars = (0.1, 3, "1e-4", "auto", True, None, 10**30, -1e308, float("nan"), "\u202e", "'", "x" * 999, "=", ":")
        if depth > random.choice((1, 2, 30)):
            return random.choice(scalars)
        kind = random.randrange(4)
        if kind == 0:
            return {random.choice(keys): value(depth + 1) for _ in range(random.randrange(5))}
        if kind == 1:
            return [value(depth + 1) for _ in range(random.randrange(4))]
        return random.choice(scalars)

    settings = {random.choice(keys): value(0) for _ in range(random.randrange(1, 8))}
    return random.choice(_WRITERS)(settings).encode(errors="replace")


def _command(settings: dict[str, object]) -> str:
    return "python train.py " + " ".join(f"--{key} {value!r}" for key, value in settings.items())


def _namespace(settings: dict[str, object]) -> str:
    return f"Namespace({', '.join(f'{key}={value!r}' for key, value in settings.items())})"


def _toml(settings: dict[str, object]) -> str:
    return "\n".join(f"{key or 'e'} = {value!r}" for key, value in settings.items())


def _ini(settings: dict[str, object]) -> str:
    return "[a b]\n" + "\n".join(f"{key} = {value}" for key, value in settings.items())


def _dots(settings: dict[str, object]) -> str:
    return "\n".join(f"  {key} {'.' * (40 - len(key))} {value}" for key, value in settings.items())


def _yaml(settings: dict[str, object]) -> str:
    return "\n".join(f"{key}: {value!r}" for key, value in settings.items())


_WRITERS = (repr, _command, _namespace, _toml, _ini, _dots, _yaml)
