"""The field's ways to say the same thing: what people write in a question → the tags that entries are filed under.

`concepts.jsonl` holds a concept per line: `said`, patterns over the question in lower case, and `tags`: topics and
situations of quotes, ids of symptoms, causes and menus.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

FILE = "concepts.jsonl"


@dataclass(frozen=True, slots=True)
class Concept:
    """A thing that people ask about."""

    pattern: re.Pattern[str]
    tags: tuple[str, ...]


@lru_cache(maxsize=1)
def concepts() -> tuple[Concept, ...]:
    """Return the concepts in file order."""
    lines = (Path(__file__).parent / FILE).read_text(encoding="utf-8").splitlines()
    rows = map(json.loads, lines)
    return tuple(Concept(re.compile("|".join(row["said"])), tuple(row["tags"])) for row in rows)


DOMAINS = {
    "rl": re.compile(
        r"\brl\b|rlhf|reward|policy|agent|\bppo\b|grpo|dapo|rollout|critic|episode|entropy|exploration|advantage|\bkl\b"
    ),
    "vision": re.compile(
        r"image|pixel|box|detect|segment|miou|\bmap\b|vision|background|augment|conv|batch-?norm|backbone"
    ),
    "diffusion": re.compile(r"diffusion|denois|timestep|\bema\b|\bvae\b|dreambooth|samples?\b|blurry|latent"),
    "vlm": re.compile(r"vision[- ]language|\bvlm\b|projector|image tokens?|llava|ignores? the image"),
}
"""Domains that an entry has to be asked for, with the words that ask for them."""

STACK = re.compile(
    r"\bvllm|\blora|qlora|\bpeft|\btrl\b|axolotl|unsloth|deepspeed|\bfsdp|megatron|nccl|lightning|keras|\bjax|flash|ollama"
    r"|bitsandbytes|\bgrpo|\bdpo\b|\bppo\b|fp8|fp16|bf16|torch\.compile|\bddp\b|mmdet|sdxl|dreambooth|llava|batch-?norm"
)
"""Words that name a stack: with one of them the specific entries come first, without one the general ones."""

_STOPPED = """
a about after all am an and any are as at be because been but by can could did do does doing don for from get
gets good had has have how i if in into is isn it its just like me much my no not of off on one or our out
over s should so some t than that the their then there they this to up us was we what when where which while
who why will with would you your
"""
STOPWORDS = frozenset(_STOPPED.split())
"""Words that say nothing on what is asked."""
