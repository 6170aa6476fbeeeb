"""Runs of the Hugging Face Trainer and of TRL on tiny models, with their own logs."""

import contextlib
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch

from benchmarks.loops.language.task import Record
from benchmarks.loops.language.tasks_sft import WORDS, example

Row = dict[str, Any]
SPECIAL = ["<pad>", "<eos>", "<unk>"]


@cache
def tokenizer() -> Any:  # noqa: ANN401 - transformers has no types here
    """A character tokenizer with padding and end tokens."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    from benchmarks.loops.language.text import CHARS

    vocab = {token: index for index, token in enumerate([*SPECIAL, *CHARS])}
    inner = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))  # noqa: S106 - no password
    inner.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    inner.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", model_max_length=256  # noqa: S106
    )  # fmt: skip


def decoder(*, width: int = 48, layers: int = 2, seed: int = 0, dropout: float = 0.0, init: float = 0.02) -> Any:  # noqa: ANN401
    """A tiny Llama over characters."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer()), hidden_size=width, intermediate_size=2 * width, num_hidden_layers=layers,
        num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=256, attention_dropout=dropout,
        initializer_range=init, pad_token_id=0, eos_token_id=1, bos_token_id=None,
    )  # fmt: skip
    return LlamaForCausalLM(config)


@cache
def warm_weights() -> Row:
    """Weights of the tiny Llama after it has read puzzles, right and wrong answers alike."""
    model = decoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    for step in range(220):
        rows = [example(100_000 + step * 16 + i) for i in range(16)]
        batch = tokenizer()(
            [p + (c if i % 2 else wrong(c)) for i, (p, c) in enumerate(rows)], padding=True, return_tensors="pt"
        )
        ids = batch["input_ids"]
        loss = model(input_ids=ids, attention_mask=batch["attention_mask"], labels=ids.masked_fill(ids == 0, -100)).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def warm_decoder() -> Any:  # noqa: ANN401
    """The tiny Llama with warm weights."""
    model = decoder()
    model.load_state_dict(warm_weights())
    return model


def wrong(completion: str) -> str:
    """Another answer of about the same length."""
    parts = completion.strip().split(" ")
    return " ".join(WORDS[(len(part) * 7 + ord(part[0])) % len(WORDS)] for part in parts) + "\n"


@dataclass(frozen=True)
class Hub:
    """One run of a trainer: what it trains on, with which arguments, and what is left of it."""

    kind: str
    args: Row
    model: Callable[[], Any]
    train: Callable[[], list[Row]]
    held_out: Callable[[], list[Row]] | None = None
    leave: str = "state"
    trainer: Callable[[type], type] | None = None
    more: Callable[[], Row] | None = None


def classes(kind: str) -> tuple[Any, Any]:
    """Trainer and arguments of this kind."""
    import transformers
    import trl

    if kind == "trainer":
        return transformers.Trainer, transformers.TrainingArguments
    return getattr(trl, f"{kind}Trainer"), getattr(trl, f"{kind}Config")


def arguments(hub: Hub, folder: Path) -> Any:  # noqa: ANN401
    """Arguments with the defaults that keep such a run small."""
    usual: Row = {
        "output_dir": str(folder / "out"), "per_device_train_batch_size": 8, "logging_steps": 5, "save_strategy": "no",
        "report_to": [], "use_cpu": True, "disable_tqdm": True, "seed": 42, "logging_nan_inf_filter": False,
    }  # fmt: skip
    if hub.held_out:
        usual |= {"eval_strategy": "steps", "eval_steps": 20, "per_device_eval_batch_size": 32}
    if hub.kind != "trainer":
        usual |= {"bf16": False, "gradient_checkpointing": False}
    return classes(hub.kind)[1](**usual | hub.args)


def run(hub: Hub, folder: Path) -> list[Record]:
    """Train, and leave the trainer's state, its console, or both in the folder. Returns its log history."""
    from datasets import Dataset
    from transformers import set_seed

    folder.mkdir(parents=True, exist_ok=True)
    args = arguments(hub, folder)
    set_seed(args.seed)
    base = classes(hub.kind)[0]
    trainer_class = hub.trainer(base) if hub.trainer else base
    more: Row = dict(hub.more()) if hub.more else {}
    if hub.kind != "trainer":
        more["processing_class"] = tokenizer()
    if hub.held_out:
        more["eval_dataset"] = Dataset.from_list(hub.held_out())
    console, quiet = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(console), contextlib.redirect_stderr(quiet):
        trainer = trainer_class(model=hub.model(), args=args, train_dataset=Dataset.from_list(hub.train()), **more)
        trainer.train()
    leave(trainer, hub.leave, folder, console.getvalue())
    return [{k: float(v) for k, v in row.items() if isinstance(v, int | float)} for row in trainer.state.log_history]


def leave(trainer: Any, how: str, folder: Path, console: str) -> None:  # noqa: ANN401
    """Keep what the author of such a run would keep."""
    if "state" in how:
        trainer.state.save_to_json(str(folder / "trainer_state.json"))
    if "console" in how:
        (folder / "console.log").write_text(console, encoding="utf-8")
    if "args" in how:
        kept = {
            k: v for k, v in json.loads(trainer.args.to_json_string()).items() if not k.endswith(("_dir", "_token"))
        }
        (folder / "training_args.json").write_text(json.dumps(kept, indent=2), encoding="utf-8")
    if "repr" in how:
        text = (folder / "console.log").read_text(encoding="utf-8") if (folder / "console.log").exists() else console
        head = "\n".join(
            line for line in str(trainer.args).splitlines() if "_dir=" not in line and "run_name" not in line
        )
        (folder / "console.log").write_text(f"{head}\n{text}", encoding="utf-8")
