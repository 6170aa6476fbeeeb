"""Inputs made by grammars: chat templates, and configurations in every form that is read."""

from __future__ import annotations

import io
import pickle
import zipfile
from argparse import Namespace
from enum import Enum
from random import Random

NAMES = (
    "messages", "message", "m", "loop", "bos_token", "eos_token", "add_generation_prompt", "tools", "ns", "x", "None",
)  # fmt: skip
ATTRIBUTES = (
    "role", "content", "index", "index0", "first", "last", "previtem", "items()", "split('a')", "strip()", "x",
    "__class__", "__init__.__globals__", "format('%s')", "join(messages)", "upper()", "replace('', 'aa')",
)  # fmt: skip
FILTERS = (
    "trim", "length", "upper", "list", "tojson", "join(',')", "first", "last", "default('')", "string", "int", "sort",
    "unique|list", "reverse|list", "batch(2)|list", "map(attribute='role')|list", "sum", "safe", "e",
    "replace('a','bb')", "indent(4)", "wordwrap(3)", "center(99)", "pprint", "xmlattr", "urlize", "dictsort",
)  # fmt: skip
TESTS = ("defined", "none", "string", "mapping", "iterable", "odd", "sameas none", "in messages", "divisibleby(0)")
LITERALS = (
    "0", "1", "-1", "1e308", "'assistant'", "'user'", "''", "'\\n'", "[]", "{}", "[1, 'a']", "{'a': [1]}", "true",
    "range(9)|list", "'<|im_start|>'", "'\u202e\\x1b[31m'", "'a'*99", "namespace(a=1)",
)  # fmt: skip
OPERATORS = ("+", "-", "*", "/", "//", "%", "~", "==", "<", "and", "or", "in")
CALLS = (
    "raise_exception('no')", "strftime_now('%Y')", "range(0, 9, 2)", "dict(a=1)", "cycler('a','b').next()", "f(x)",
    "joiner()()", "lipsum(1)", "messages[0]['role']", "messages[::-1]", "messages[99].content",
)  # fmt: skip


def template(random: Random) -> bytes:
    """Write a chat template that no loop but those over what there is makes long."""
    return _block(random, 0).encode()


def _block(random: Random, depth: int) -> str:
    return "".join(_statement(random, depth) for _ in range(random.randrange(1, 4)))


def _statement(random: Random, depth: int) -> str:  # noqa: PLR0911 - one for each kind
    def inner() -> str:
        return _block(random, depth + 1) if depth < 4 else "a"

    value = _expression(random, depth)
    kind = random.randrange(12)
    if kind < 4:
        return f"{{{{ {value} }}}}"
    if kind < 6:
        over = random.choice(("messages", "messages[1:]", value))
        return f"{{%- for {random.choice(('m', 'message', 'x'))} in {over} %}}{inner()}{{% endfor %}}"
    if kind == 6:
        return f"{{% if {value} %}}{inner()}{{% else %}}{inner()}{{% endif %}}"
    if kind == 7:
        return f"{{% set {random.choice(('x', 'ns.a', 'messages'))} = {value} %}}"
    if kind == 8:
        return f"{{% macro f(a, b=1) %}}{inner()}{{% endmacro %}}{{{{ f({value}) }}}}"
    if kind == 9:
        return f"{{% generation %}}{inner()}{{% endgeneration %}}"
    return random.choice(
        (
            "<|im_start|>",
            "<|im_end|>\n",
            "{{ m.role }}\n{{ m.content }}",
            "{% break %}",
            "{#",
            "{{",
            "%}",
            "{% include 'x' %}",
            "{% filter upper %}a{% endfilter %}",
            "\0",
            "\u202e",
            "{% raw %}",
        )
    )


def _expression(random: Random, depth: int) -> str:
    one = random.choice(random.choice((NAMES, LITERALS, CALLS)))
    for _ in range(random.randrange(3)):
        kind = random.randrange(5)
        if kind == 0:
            one = f"{one}.{random.choice(ATTRIBUTES)}"
        elif kind == 1:
            one = f"{one}|{random.choice(FILTERS)}"
        elif kind == 2:
            one = f"({one} is {random.choice(('', 'not '))}{random.choice(TESTS)})"
        elif depth < 6:
            one = f"({one} {random.choice(OPERATORS)} {_expression(random, depth + 3)})"
    return one


TEMPLATES = (
    b"{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}",
    b"{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content|trim }} [/INST]{% else %}"
    b"{% generation %}{{ m.content }}{% endgeneration %}{{ eos_token }}{% endif %}{% endfor %}",
)


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
