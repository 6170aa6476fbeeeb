"""Command lines: `torchrun --nproc-per-node 8 train.py --lr 3e-4 --bf16 --no-shuffle trainer.max_steps=100`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from mldebug_mcp.logs.settings.reprs import value_in

MAX_WORDS = 2000
MAX_LIST = 16
"""Words that one option takes."""

STARTED = re.compile(
    r"(?:^|[\s/+$>;&(])(?:python[\d.]*|torchrun|deepspeed|accelerate\s+launch|srun|mpirun|horovodrun|uv\s+run|"
    r"llamafactory-cli|axolotl|trl|swift|colossalai\s+run|lightning\s+run)\s+(?=\S)"
)
"""What starts a training on a command line."""
_OPTION = re.compile(r"--?([A-Za-z][\w./-]*)(?:=(.*))?", re.DOTALL)
_OVERRIDE = re.compile(r"[+~]{0,2}([A-Za-z_][\w./@]*)=(.*)", re.DOTALL)
_NUMBER = re.compile(r"-?[\d.]")


def settings_in_words(words: Sequence[str]) -> dict[str, object]:
    """Return the options and overrides among the words of a command line; an option without a value is a flag."""
    found: dict[str, object] = {}
    name = ""
    for word in words[:MAX_WORDS]:
        option, override = _OPTION.fullmatch(word), _OVERRIDE.fullmatch(word)
        if option and not _NUMBER.match(word):
            name = option[1]
            if option[2] is not None:
                found[name], name = value_in(option[2]), ""
            elif name.startswith(("no-", "no_")):
                found[name[3:]], name = False, ""
            else:
                found[name] = True
        elif override and not name:
            found[override[1]] = value_in(override[2])
        elif name:
            before = found[name]
            taken = [] if before is True else before if isinstance(before, list) else [before]
            if len(taken) < MAX_LIST and not word.endswith(".py"):
                found[name] = value_in(word) if not taken else [*taken, value_in(word)]
            if word.endswith(".py"):
                name = ""
    return found


def settings_in_command(text: str) -> dict[str, object]:
    """Return the options of a command line; a line that ends in a backslash goes on."""
    joined = re.sub(r"\\\s*\n", " ", text[:100_000])
    lines = [line for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    found: dict[str, object] = {}
    for line in lines[:MAX_WORDS]:
        try:
            words = shlex.split(line)
        except ValueError:  # a quote that is not closed
            words = line.split()
        found.update(settings_in_words(words))
    return found
