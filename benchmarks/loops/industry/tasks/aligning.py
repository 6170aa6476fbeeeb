"""Tiny models tuned by the trainers of TRL, logged as these log."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks.loops.industry.tasks.sequences import text
from benchmarks.loops.industry.trace import Trace

_WORDS = [f"w{number}" for number in range(44)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Align:
    """The settings of a run; `bug` is what they do not tell."""

    method: str = "dpo"
    steps: int = 60
    rows: int = 400
    lr: float = 1e-3
    batch: int = 8
    beta: float = 0.1
    longest: int = 12
    group: int = 8
    reward: str = "even"
    bug: str = ""
    every: int = 2
    seed: int = 0

    def shown(self) -> dict[str, object]:
        """Return the arguments as a script would keep them."""
        shown: dict[str, object] = {
            "trainer": self.method,
            "learning_rate": self.lr,
            "per_device_train_batch_size": self.batch,
            "max_steps": self.steps,
            "logging_steps": self.every,
            "seed": self.seed,
        }
        if self.method == "grpo":
            shown |= {"num_generations": self.group, "max_completion_length": self.longest}
        return shown if self.method == "sft" else {**shown, "beta": self.beta}


def _tokenizer() -> Any:  # noqa: ANN401 - a tokenizer of transformers
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = ["<pad>", "<unk>", "<bos>", "<eos>", *_WORDS]
    kept = Tokenizer(models.WordLevel({word: at for at, word in enumerate(words)}, unk_token="<unk>"))  # noqa: S106
    kept.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<bos>", "eos_token": "<eos>"}
    return PreTrainedTokenizerFast(tokenizer_object=kept, **special)


def _model(seed: int) -> Any:  # noqa: ANN401 - a model of transformers
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(seed)
    size = {"n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 4}
    return GPT2LMHeadModel(GPT2Config(vocab_size=48, bos_token_id=2, eos_token_id=3, pad_token_id=0, **size))


def _said(tokens: torch.Tensor) -> list[str]:
    return [" ".join(_WORDS[token % 44] for token in row) for row in tokens.tolist()]


def _rows(align: Align) -> list[dict[str, str]]:
    tokens = text(align.rows, 33 + align.seed)
    draw = torch.Generator().manual_seed(align.seed)
    hit = torch.rand(tokens.shape, generator=draw) < 0.4
    worse = torch.where(hit, torch.randint(0, 44, tokens.shape, generator=draw), tokens)
    prompts, good, bad = _said(tokens[:, :6]), _said(tokens[:, 6:18]), _said(worse[:, 6:18])
    if align.method == "sft":
        return [{"text": f"{prompt} {answer}"} for prompt, answer in zip(prompts, good, strict=True)]
    if align.method == "grpo":
        return [{"prompt": prompt} for prompt in prompts]
    if align.bug == "same":
        bad = good
    if align.bug == "swapped":
        good, bad = bad, good
    return [{"prompt": p, "chosen": f" {g}", "rejected": f" {b}"} for p, g, b in zip(prompts, good, bad, strict=True)]


def _even(completions: list[str], **_more: object) -> list[float]:
    words = [completion.split() for completion in completions]
    even = [sum(word[1:].isdigit() and int(word[1:]) % 2 == 0 for word in one) / max(1, len(one)) for one in words]
    return [share - 0.04 * max(0, len(one) - 5) for share, one in zip(even, words, strict=True)]


def _parsed(completions: list[str], **_more: object) -> list[float]:
    return [float("<answer>" in completion) for completion in completions]


def _trainer(align: Align, place: str) -> Any:  # noqa: ANN401 - a trainer of TRL
    import trl
    from datasets import Dataset

    common: dict[str, Any] = {
        "output_dir": place,
        "max_steps": align.steps,
        "learning_rate": align.lr,
        "per_device_train_batch_size": align.batch,
        "logging_steps": align.every,
        "report_to": "none",
        "use_cpu": True,
        "bf16": False,
        "seed": align.seed,
        "disable_tqdm": True,
        "save_strategy": "no",
        "gradient_checkpointing": False,
    }
    base = f"{place}/base"
    _model(align.seed).save_pretrained(base)
    tokenizer = _tokenizer()
    tokenizer.save_pretrained(base)
    rows = Dataset.from_list(_rows(align))
    parts: dict[str, Any] = {"model": base, "train_dataset": rows, "processing_class": tokenizer}
    if align.method == "sft":
        return trl.SFTTrainer(args=trl.SFTConfig(**common, max_length=32), **parts)
    if align.method == "dpo":
        return trl.DPOTrainer(args=trl.DPOConfig(**common, beta=align.beta, max_length=40), **parts)
    limits = {"num_generations": align.group, "max_completion_length": align.longest}
    rewards: dict[str, Callable[..., list[float]]] = {"even": _even, "parsed": _parsed}
    config = trl.GRPOConfig(**common, **limits, beta=align.beta)
    return trl.GRPOTrainer(args=config, reward_funcs=rewards[align.reward], **parts)


def aligning(align: Align, *, state: bool = False) -> Trace:
    """Tune; the log is what was printed, or the state that the trainer saves."""
    from datasets.utils import logging as quiet
    from transformers.utils import logging

    logging.set_verbosity_error()
    quiet.disable_progress_bar()
    printed = io.StringIO()
    with tempfile.TemporaryDirectory() as place, contextlib.redirect_stdout(printed):
        trainer = _trainer(align, place)
        trainer.train()
    trace = Trace(settings=align.shown())
    if state:
        history = trainer.state.log_history
        trace.note(json.dumps({"global_step": align.steps, "max_steps": align.steps, "log_history": history}, indent=2))
    for line in [] if state else printed.getvalue().splitlines():
        trace.note(line)
    return trace
