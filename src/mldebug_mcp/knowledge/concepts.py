"""The field's ways to say the same thing: what people write in a question → the tags that entries are filed under.

`concepts.jsonl` holds a concept per line: `said`, patterns over the question in lower case, and `tags`: topics and
situations of quotes, ids of symptoms, causes and menus. `against` are ids of causes that are told of in the same words,
and of which the question says the contrary.
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
    against: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def concepts() -> tuple[Concept, ...]:
    """Return the concepts in file order."""
    lines = (Path(__file__).parent / FILE).read_text(encoding="utf-8").splitlines()
    rows = map(json.loads, lines)
    return tuple(Concept(_pattern(row["said"]), tuple(row["tags"]), tuple(row.get("against", ()))) for row in rows)


def _pattern(said: list[str]) -> re.Pattern[str]:
    """Return a pattern that begins with a word, so that `hang` is not found in `change`."""
    return re.compile(rf"(?<![^\W_])(?:un|re|non-?|pre|mis)?(?:{'|'.join(said)})")


DOMAINS = {
    "rl": re.compile(
        r"\brl\b|rlhf|reward|policy|agent|\bppo\b|grpo|dapo|rollout|critic|episode|entropy|exploration|advantage|\bkl\b"
    ),
    "vision": re.compile(
        r"image|pixel|box|cnn|resnet|\bvit\b|unet|yolo|detect|segment|miou|\bmap\b|vision|background|augment|conv|batch-?norm|backbone"
    ),
    "diffusion": re.compile(
        r"diffusion|denois|ddpm|sdxl|stable diffusion|timestep|\bema\b|\bvae\b|dreambooth|samples?\b|blurry|latent"
    ),
    "vlm": re.compile(r"vision[- ]language|\bvlm\b|projector|image tokens?|llava|ignores? the image"),
}
"""Domains that an entry has to be asked for, with the words that ask for them."""

STACK = re.compile(
    r"\bvllm|\blora|qlora|\bpeft|\btrl\b|axolotl|unsloth|deepspeed|\bfsdp|megatron|nccl|lightning|keras|\bjax|flash|ollama"
    r"|bitsandbytes|\bgrpo|\bdpo\b|\bppo\b|fp8|fp16|bf16|torch\.compile|\bddp\b|mmdet|sdxl|dreambooth|llava|batch-?norm"
)
"""Words that name a stack: with one of them the specific entries come first, without one the general ones."""

_STOPPED = """
a about actually after again all also always am an and another any anybody anyone anything are as ask at away back
basically be because been being best better bit but by call called came can cannot cant come comes could dear did didn
didnt do does doesn doesnt doing don done dont each either else etc even ever every everything find for from get gets
getting give gives go goes going gone good got great had happen happened happening happens has have having he hello
help here hey hi how however i if im in instead into is isn isnt it its ive just keep keeps kind know let like look
looking looks lot lots made make makes making many may maybe me mean means might more most much must my need needed
needs no nope not nothing now of off ok okay on one only or other our out over people per percent perhaps please ppl
put puts quite rather really right said same say says see seem seems seen should since so some somebody someone
something sometimes still such sure take tell than thank thanks that the their them then there these they thing things
think this those though to too tried tries try trying up us use used user using usually versus very vs want wants was
wasn way we well went were weren what whats when where whether which while who whole why will with without won wont work
worried would yeah yes yet you your
aber alle als am an auch auf aus bei beim bin bitte das dass dem den der des die dies diese doch durch ein eine einem
einen einer er erkenne es für ganz gibt habe haben hat ich ihr im immer in ist kann kein keine man mein meine mich mir
mit nach nicht noch nur ob oder ohne schon sein seine sich sie sind so soll sollte trotz trotzdem um und uns vom von
vor war warum was weil wenn werden wie wieder wieso wir wird wo woran wurde zu zum zur über
"""
STOPWORDS = frozenset(_STOPPED.split())
"""Words that say nothing on what is asked."""

_NAMED = """
albert alexnet alpaca bart bert bloom cifar coco colab cuda deberta deepseek densenet detr distilbert efficientnet
electra falcon flux geforce gemma gpt imagenet inception internlm kaggle llama llava mamba maskrcnn mistral mixtral
mnist mobilenet nvidia olmo opt palm phi qwen resnet resnext retinanet roberta rtx rwkv segformer squad swin titan tpu
unet vgg vicuna vit whisper xception yolo
"""
NAMES = frozenset(_NAMED.split())
"""Names of models, data sets and hardware: where no entry speaks of them they are no words of another field."""
