"""Make the samples of TRL's trainers by running them (TRL 1.16 was used).

A GPT-2 of two layers, made from a configuration, and a tokenizer trained on the spot: SFT, DPO, KTO, a reward model,
GRPO and RLOO. (TRL 1.16 has no PPO any more.) Each keeps its trainer_state.json and what it printed.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.logs.samples.make.keeping import folder_of, tell, terminal

WORDS = ("red", "green", "blue", "one", "two", "three", "four", "sun", "moon", "sea", "is", "the", "and", "not")
Rows = list[dict[str, Any]]


def texts(count: int) -> list[tuple[str, str, str]]:
    """Return prompts with a good answer, which repeats the prompt's words in order, and a bad one, which says "not"."""
    draw = random.Random(0)
    rows = []
    for _ in range(count):
        words, bad = ([draw.choice(WORDS[:-1]) for _ in range(4)] for _ in range(2))
        rows.append((" ".join(words), " " + " ".join(words), " " + " ".join([*bad[:3], WORDS[-1]])))
    return rows


def tokenizer() -> Any:
    """Return a tokenizer of whole words."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    special = {"unk_token": "<unk>", "pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>"}
    backend = Tokenizer(models.WordLevel(unk_token=special["unk_token"]))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.train_from_iterator([" ".join(WORDS)], trainers.WordLevelTrainer(special_tokens=list(special.values())))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **special)


def model(kind: str = "GPT2LMHeadModel", **more: Any) -> Any:
    """Return a small GPT-2."""
    import transformers

    transformers.set_seed(0)
    size = {"vocab_size": 18, "n_positions": 64, "n_embd": 48, "n_layer": 2, "n_head": 4}
    config = transformers.GPT2Config(**size, bos_token_id=2, eos_token_id=3, pad_token_id=1, **more)
    return getattr(transformers, kind)(config)


def usual(output: Path) -> dict[str, Any]:
    """Return the arguments that all runs share."""
    return {
        "output_dir": str(output), "learning_rate": 2e-3, "warmup_steps": 5, "logging_steps": 5, "max_steps": 40,
        "per_device_train_batch_size": 8, "save_strategy": "no", "report_to": [], "use_cpu": True, "bf16": False,
        "eval_strategy": "steps", "eval_steps": 20, "gradient_checkpointing": False,
    }  # fmt: skip


def pairs(rows: list[tuple[str, str, str]]) -> Rows:
    """Return preference pairs."""
    return [{"prompt": prompt, "chosen": good, "rejected": bad} for prompt, good, bad in rows]


def right_words(prompts: list[str], completions: list[str], **_: object) -> list[float]:
    """Reward each word of the prompt that the completion has too."""
    return [
        len(set(prompt.split()) & set(completion.split())) / len(set(prompt.split()))
        for prompt, completion in zip(prompts, completions, strict=True)
    ]


def sft(output: Path, **more: Any) -> Any:
    """Return a trainer that fine-tunes on prompts with their good answers."""
    import datasets
    import trl

    rows = [{"prompt": prompt, "completion": good} for prompt, good, _ in texts(320)]
    return trl.SFTTrainer(
        model(), trl.SFTConfig(**usual(output), **more), train_dataset=datasets.Dataset.from_list(rows[:256]),
        eval_dataset=datasets.Dataset.from_list(rows[256:]), processing_class=tokenizer(),
    )  # fmt: skip


def dpo(output: Path) -> Any:
    """Return a trainer of preferences."""
    import datasets
    import trl

    rows = pairs(texts(320))
    options = usual(output) | {"learning_rate": 5e-4, "beta": 0.5}
    return trl.DPOTrainer(
        model(), ref_model=model(), args=trl.DPOConfig(**options), train_dataset=datasets.Dataset.from_list(rows[:256]),
        eval_dataset=datasets.Dataset.from_list(rows[256:]), processing_class=tokenizer(),
    )  # fmt: skip


def kto(output: Path) -> Any:
    """Return a trainer of answers with a verdict each."""
    import datasets
    import trl

    rows = [
        {"prompt": prompt, "completion": answer, "label": label}
        for prompt, good, bad in texts(160)
        for answer, label in ((good, True), (bad, False))
    ]
    options = usual(output) | {"learning_rate": 5e-4, "beta": 0.5}
    return trl.KTOTrainer(
        model(), ref_model=model(), args=trl.KTOConfig(**options), train_dataset=datasets.Dataset.from_list(rows[:256]),
        eval_dataset=datasets.Dataset.from_list(rows[256:]), processing_class=tokenizer(),
    )  # fmt: skip


def reward(output: Path) -> Any:
    """Return a trainer of a reward model."""
    import datasets
    import trl

    rows = pairs(texts(320))
    options = usual(output) | {"learning_rate": 1e-3}
    return trl.RewardTrainer(
        model("GPT2ForSequenceClassification", num_labels=1), args=trl.RewardConfig(**options),
        train_dataset=datasets.Dataset.from_list(rows[:256]), eval_dataset=datasets.Dataset.from_list(rows[256:]),
        processing_class=tokenizer(),
    )  # fmt: skip


def online(output: Path, name: str) -> Any:
    """Return a GRPO or an RLOO trainer; they read the model from a folder, to have it once more as the reference."""
    import datasets
    import trl

    rows = [{"prompt": prompt} for prompt, _, _ in texts(320)]
    options = usual(output) | {"eval_strategy": "no", "learning_rate": 1e-3, "num_generations": 4}
    options |= {"max_completion_length": 8, "beta": 0.02}
    config, trainer = getattr(trl, f"{name}Config"), getattr(trl, f"{name}Trainer")
    model().save_pretrained(output / "start")
    return trainer(
        model=str(output / "start"), args=config(**options), reward_funcs=right_words, processing_class=tokenizer(),
        train_dataset=datasets.Dataset.from_list(rows),
    )  # fmt: skip


RUNS: dict[str, Callable[[Path], Any]] = {
    "sft": sft,
    "dpo": dpo,
    "kto": kto,
    "reward": reward,
    "grpo": lambda output: online(output, "GRPO"),
    "rloo": lambda output: online(output, "RLOO"),
}


if __name__ == "__main__":
    folder = folder_of("trl")
    for name, make in RUNS.items():
        (folder / name).mkdir()
        with tempfile.TemporaryDirectory() as place:
            with terminal(folder / name / "stdout.log"):
                trainer = make(Path(place))
                trainer.train()
                trainer.save_state()
            shutil.copy(Path(place) / "trainer_state.json", folder / name / "trainer_state.json")
    tell(folder)
