"""Instruction tuning on string puzzles, packed or padded."""

from functools import cache

import torch
from torch import Tensor

from benchmarks.loops.language import nets, text
from benchmarks.loops.language.settings import Settings
from benchmarks.loops.language.task import Batch, Record, Task, token_loss

WORDS = [
    "cat",
    "dog",
    "sun",
    "map",
    "ink",
    "owl",
    "jar",
    "fig",
    "gem",
    "hut",
    "ivy",
    "kit",
    "log",
    "mud",
    "net",
    "oak",
    "pen",
    "rug",
    "tub",
    "van",
    "wax",
    "yak",
    "zip",
    "bee",
    "ant",
    "cup",
]
KINDS = ("upper", "reverse", "first", "spell")


def answer(kind: str, words: list[str]) -> str:
    """What the puzzle asks for."""
    joined = {"upper": lambda: " ".join(words).upper(), "reverse": lambda: " ".join(reversed(words)),
              "first": lambda: words[0], "spell": lambda: "-".join(words[0])}  # fmt: skip
    return joined[kind]()


@cache
def example(row: int, kinds: tuple[str, ...] = KINDS) -> tuple[str, str]:
    """Prompt and completion of the row."""
    draw = text.rng(row, 9)
    words = [WORDS[i] for i in draw.integers(0, len(WORDS), 3)]
    kind = kinds[int(draw.integers(len(kinds)))]
    return f"<user> {kind}: {' '.join(words)} <bot> ", answer(kind, words) + "\n"


def pack(rows: list[tuple[str, str]], length: int, *, mask_prompt: bool = True) -> tuple[Tensor, Tensor]:
    """Concatenate examples into one row of ids and labels of this length; prompts are masked with -100."""
    ids: list[Tensor] = []
    labels: list[Tensor] = []
    for prompt, completion in rows:
        left, right = text.encode(prompt), text.encode(completion)
        ids += [left, right]
        labels += [torch.full_like(left, -100) if mask_prompt else left, right]
    return torch.cat(ids)[:length], torch.cat(labels)[:length]


class Sft(Task):
    """Puzzles packed into rows of block_size characters, with the loss on completions.

    Mistakes: `mask` is "completion", "none" (prompts are trained on) or "all"; a `template` for evaluation of its own;
    `order_by_kind` sorts the data; `shift` of the labels; `blank` replaces the tokens of prompts.
    """

    name = "packed_sft"

    def __init__(
        self, s: Settings, *, mask: str = "completion", other_template: bool = False, sort: bool = False,
        shift: int = 1, repeat: int = 0, leak_eval: bool = False, remap: bool = False, blank: bool = False,
        truncate: int = 0, base: bool = True, **model: float | str | bool
    ) -> None:  # fmt: skip
        super().__init__(s, shuffle=not sort)
        self.mask, self.other_template, self.sort, self.shift = mask, other_template, sort, shift
        self.repeat, self.leak_eval, self.remap, self.blank, self.truncate = repeat, leak_eval, remap, blank, truncate
        self.tokens_per_sample = s.block_size
        self.model = nets.Transformer(text.VOCAB, s, **model)  # type: ignore[arg-type]
        if base:
            from benchmarks.loops.language.tasks_lm import pretrained

            self.model.load_state_dict(pretrained(s.n_embd, s.n_layer))

    def row(self, row: int, *, held_out: bool = False) -> tuple[Tensor, Tensor]:
        """Ids and labels of one packed row."""
        kinds: tuple[str, ...] = KINDS
        if self.sort and self.s.train_samples and not held_out:
            kinds = (KINDS[min(3, row * 4 // self.s.train_samples)],)
        source = row % self.repeat if self.repeat and not held_out else row
        pairs = [example(source * 8 + place + (10**8 if held_out else 0), kinds) for place in range(8)]
        if held_out and self.other_template:
            pairs = [(p.replace("<user> ", "[INST] ").replace(" <bot>", " [/INST]"), c) for p, c in pairs]
        if self.blank:
            pairs = [("#" * len(p), c) for p, c in pairs]
        ids, labels = pack(pairs, self.s.block_size + 2, mask_prompt=self.mask != "none")
        if self.mask == "all":
            labels = torch.full_like(labels, -100)
        if self.truncate:
            labels[self.truncate :] = -100
        return ids, labels

    def batch(self, index: int) -> Batch:
        """Ids and labels of the rows of a micro-batch."""
        pairs = [self.row(int(row)) for row in self.rows(index)]
        ids, labels = torch.stack([p[0] for p in pairs]), torch.stack([p[1] for p in pairs])
        if self.remap:
            ids, labels = (ids * 37 + 11) % text.VOCAB, torch.where(labels < 0, labels, (labels * 37 + 11) % text.VOCAB)
        return ids, labels

    def loss(self, batch: Batch) -> tuple[Tensor, Record]:
        """Cross-entropy over the trained tokens, with their number."""
        ids, labels = batch
        size = self.s.block_size
        target = labels[:, self.shift : self.shift + size]
        logits = self.model(ids[:, :size])
        kept = target >= 0
        hits = (logits.argmax(-1) == target)[kept].float().mean().item() if kept.any() else 0.0
        return token_loss(logits, target), {"num_tokens": float(kept.sum()), "token_accuracy": hits}

    def evaluate(self) -> Record:
        """Loss and token accuracy on other puzzles."""
        pairs = [self.row(row, held_out=not self.leak_eval) for row in range(32)]
        loss, extra = self.loss((torch.stack([p[0] for p in pairs]), torch.stack([p[1] for p in pairs])))
        return {"loss": float(loss), "token_accuracy": extra["token_accuracy"]}
