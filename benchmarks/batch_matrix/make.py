"""Make the samples by the real collators: `python -m benchmarks.batch_matrix.make`.

It needs TRL, Transformers, sentence-transformers, datasets, Axolotl and torchtune; the samples are read without them.
LLaMA-Factory's batches got the same answers as Axolotl's, so none of its own are kept. A fault is put where
users make it: in the rows that go into the collator where that can be, else into what comes out.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tests.batch.kit import make_hf
from transformers import (
    DataCollatorForLanguageModeling,
    DataCollatorForSeq2Seq,
    DataCollatorForTokenClassification,
    PreTrainedTokenizerFast,
    default_data_collator,
    set_seed,
)

SAMPLES = Path(__file__).parent / "samples"
IGNORE = -100
UNKNOWN = "[UNK]"
TALK = [
    ("What is the capital of France?", "The capital of France is Paris, a city on the river Seine."),
    ("Name a prime number.", "Seven is a prime number, and so are eleven and thirteen."),
    ("Who wrote Hamlet?", "Hamlet was written by William Shakespeare around the year 1600."),
    ("How do plants make food?", "They turn light, water and carbon dioxide into sugar in their leaves."),
    ("Why is the sky blue?", "Short waves of light are scattered more by the air than long ones."),
    ("What does a compiler do?", "It translates the source of a program into code that a machine can run."),
    ("How far away is the moon?", "It is about 384 thousand kilometres away from the earth."),
    ("What is bread made of?", "Flour, water, salt and yeast, which makes the dough rise before it is baked."),
]
BAD = [
    "I do not know.", "Six is a prime number.", "It was written by a friend of mine.", "Plants eat the soil.",
    "Because it mirrors the sea.", "It deletes the program.", "It is quite near.", "Of stones, I think.",
]  # fmt: skip
SYSTEM = {"role": "system", "content": "You answer as a pirate and never name a city."}
Rows = list[dict[str, Any]]
Sample = dict[str, Any]


def listed(value: Any) -> Any:
    """Return tensors and arrays as lists, their numbers with three decimals, so that JSON holds them."""
    if isinstance(value, dict) or (hasattr(value, "data") and hasattr(value, "keys")):
        return {name: listed(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [listed(part) for part in value]
    if hasattr(value, "tolist"):
        return listed(value.tolist())
    return round(value, 3) if isinstance(value, float) else value


def stored(name: str) -> Any:
    """Return a tokenizer of the samples: their trainers do not give the same vocabulary twice."""
    return PreTrainedTokenizerFast.from_pretrained(SAMPLES / name)


def chat() -> Any:
    return stored("chat")


def wordpiece() -> Any:
    return stored("wordpiece")


def make_chat() -> Any:
    hf = make_hf("llama3")
    hf.model_max_length = 256
    return hf


def other_chat() -> Any:
    """Return a tokenizer of as many tokens whose ids mean something else."""
    from tokenizers import Tokenizer

    state = json.loads(chat().backend_tokenizer.to_str())
    vocabulary = state["model"]["vocab"]
    special = {token["id"] for token in state["added_tokens"]}
    plain = sorted(number for number in vocabulary.values() if number not in special)
    moved = dict(zip(plain, np.random.default_rng(3).permutation(plain).tolist(), strict=True))
    state["model"]["vocab"] = {token: moved.get(number, number) for token, number in vocabulary.items()}
    hf = PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(json.dumps(state)))
    hf.chat_template, hf.bos_token = chat().chat_template, chat().bos_token
    return hf


def make_wordpiece() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    fast = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
    fast.pre_tokenizer, fast.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    special = ["[PAD]", UNKNOWN, "[CLS]", "[SEP]", "[MASK]"]
    words = [" ".join(pair) for pair in TALK]
    fast.train_from_iterator(words * 4, trainers.WordPieceTrainer(vocab_size=320, special_tokens=special))
    fast.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {"pad": "[PAD]", "unk": UNKNOWN, "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    return PreTrainedTokenizerFast(
        tokenizer_object=fast, model_max_length=128, **{f"{name}_token": token for name, token in names.items()}
    )


def make_system_less() -> Any:
    """Return the chat tokenizer with a template that leaves the system's message out."""
    hf = chat()
    hf.chat_template = hf.chat_template.replace(
        "{% for m in messages %}", "{% for m in messages if m['role'] != 'system' %}"
    )
    return hf


def make_pad_is_eos() -> Any:
    hf = chat()
    hf.pad_token = hf.eos_token
    return hf


TOKENIZERS: dict[str, Callable[[], Any]] = {
    "chat": make_chat, "system_less": make_system_less, "pad_is_eos": make_pad_is_eos, "wordpiece": make_wordpiece,
}  # fmt: skip


def messages(number: int, *, system: bool = False) -> list[dict[str, str]]:
    asked, answer = TALK[number]
    talk = [{"role": "user", "content": asked}, {"role": "assistant", "content": answer}]
    return [SYSTEM, *talk] if system else talk


def rendered(hf: Any, talk: list[dict[str, str]], *, prompt: bool = False) -> list[int]:
    ids: list[int] = hf.apply_chat_template(talk, add_generation_prompt=prompt, return_dict=False)
    return ids


def conversation_rows(hf: Any) -> Rows:
    """Return rows as SFTTrainer prepares them: the prompt is not trained on."""
    rows = []
    for number in range(len(TALK)):
        talk = messages(number)
        ids, prompt = rendered(hf, talk), rendered(hf, talk[:1], prompt=True)
        rows.append({"input_ids": ids, "labels": [IGNORE] * len(prompt) + ids[len(prompt) :]})
    return rows


def preference_rows(hf: Any) -> Rows:
    rows = []
    for number, bad in enumerate(BAD):
        talk = messages(number)
        prompt = rendered(hf, talk[:1], prompt=True)
        chosen = rendered(hf, talk)[len(prompt) :]
        rejected = rendered(hf, [talk[0], {"role": "assistant", "content": bad}])[len(prompt) :]
        rows.append({"prompt_ids": prompt, "chosen_ids": chosen, "rejected_ids": rejected})
    return rows


def cut(rows: Rows, length: int) -> Rows:
    return [{name: value[:length] for name, value in row.items()} for row in rows]


def without_end(rows: Rows, *names: str) -> Rows:
    return [{name: value[:-1] if name in names else value for name, value in row.items()} for row in rows]


def with_start_again(rows: Rows, start: int, *names: str) -> Rows:
    """Put the start token before rows that have it already; labels get a masked place."""
    return [
        {
            name: [IGNORE if name == "labels" else start, *value] if name in names else value
            for name, value in row.items()
        }
        for row in rows
    ]


def repeated(rows: Rows) -> Rows:
    return [*rows[:3], *rows[:3], *rows[:2]]


def all_ones(batch: Sample, name: str = "attention_mask") -> Sample:
    return {**batch, name: [[1] * len(row) for row in batch[name]]}


def padded_far(batch: Sample, fill: dict[str, int], width: int = 256) -> Sample:
    """Pad each row to the same great width, as padding='max_length' does."""
    return {
        name: [[*row, *[fill[name]] * (width - len(row))] for row in value] if name in fill else value
        for name, value in batch.items()
    }


def sample(fault: str, checks: str, batch: Any, **more: Any) -> Sample:
    return {"fault": fault, "checks": checks.split(), "batch": listed(batch), **more}


def sft() -> Iterator[Sample]:
    from trl.trainer.sft_trainer import DataCollatorForLanguageModeling as Collator

    hf, pad = chat(), chat().pad_token_id
    collate = Collator(pad_token_id=pad)
    rows = conversation_rows(hf)
    batch = listed(collate(rows))
    yield sample("", "", batch)
    yield sample("", "", listed(Collator(pad_token_id=pad, padding_free=True)(rows)), name="padding free")
    nothing = [{"input_ids": row["input_ids"], "labels": [IGNORE] * len(row["input_ids"])} for row in rows]
    yield sample("template without the generation keyword", "all_labels_masked", collate(nothing))
    talks = [{"messages": messages(number)} for number in range(len(TALK))]
    yield sample("", "", talks, name="messages")
    shortest = min(row["labels"].count(IGNORE) for row in rows)
    yield sample("answers cut off", "no_completion_left all_labels_masked row_labels_masked truncated_completion",
                 collate(cut(rows, shortest + 6)))  # fmt: skip
    yield sample("attention on padding", "attention_mask_mismatch", all_ones(batch))
    later = [{"input_ids": row["input_ids"], "labels": [*row["labels"][1:], IGNORE]} for row in rows]
    yield sample("labels shifted once more", "labels_shifted", collate(later))
    yield sample("start token twice", "double_bos",
                 collate(with_start_again(rows, hf.bos_token_id, "input_ids", "labels")))  # fmt: skip
    yield sample("end of the answer missing", "missing_eos", collate(without_end(rows, "input_ids", "labels")))
    yield sample("tokens of another tokenizer", "tokenizer_mismatch", collate(conversation_rows(other_chat())))
    far = [{name: [value + 300 if value > 20 else value for value in row[name]] for name in row} for row in rows]
    yield sample("ids beyond the vocabulary", "token_id_out_of_range vocab_size_mismatch", collate(far))
    packed = {name: [list(chain.from_iterable(row[name] for row in rows))] for name in rows[0]}
    yield sample("packed without restarting positions", "packing_without_position_reset",
                 {**packed, "position_ids": [list(range(len(packed["input_ids"][0])))]})  # fmt: skip
    yield sample("system prompt dropped by the template", "system_prompt_dropped",
                 [{"messages": messages(number, system=True)} for number in range(len(TALK))],
                 tokenizer="system_less")  # fmt: skip
    yield sample("rows repeated", "duplicate_rows", collate(repeated(rows)))
    yield sample("padded to the greatest length", "padding_excessive",
                 padded_far(batch, {"input_ids": pad, "labels": IGNORE, "attention_mask": 0}))  # fmt: skip
    bare = [{"input_ids": row["input_ids"], "labels": row["input_ids"]} for row in rows]
    yield sample("prompt trained on", "prompt_not_masked", collate(bare), purpose="sft")


def dpo() -> Iterator[Sample]:
    from trl.trainer.dpo_trainer import DataCollatorForPreference

    hf, pad = chat(), chat().pad_token_id
    collate = DataCollatorForPreference(pad_token_id=pad)
    rows = preference_rows(hf)
    batch = listed(collate(rows))
    yield sample("", "", batch)
    yield sample("", "", rows, name="rows")
    same = [{**row, "rejected_ids": row["chosen_ids"]} if place % 3 == 0 else row for place, row in enumerate(rows)]
    yield sample("chosen equals rejected in part", "chosen_equals_rejected", collate(same))
    yield sample("start token twice", "double_bos", collate(with_start_again(rows, hf.bos_token_id, "prompt_ids")))
    yield sample("end of the answer missing", "missing_eos", collate(without_end(rows, "chosen_ids", "rejected_ids")))
    yield sample("attention on padding", "attention_mask_mismatch", all_ones(batch))
    yield sample("rows repeated", "duplicate_rows", collate(repeated(rows)))
    yield sample("tokens of another tokenizer", "tokenizer_mismatch", collate(preference_rows(other_chat())))
    yield sample("prompt longer than the limit", "no_completion_left chosen_equals_rejected",
                 DataCollatorForPreference(pad_token_id=pad, max_length=12)(rows))  # fmt: skip
    yield sample("answers cut off", "truncated_completion missing_eos",
                 collate([{**row, "chosen_ids": row["chosen_ids"][:6], "rejected_ids": row["rejected_ids"][:6]}
                          for row in rows]))  # fmt: skip
    yield sample("prompt dropped", "prompt_missing", collate([{**row, "prompt_ids": row["prompt_ids"][:1]}
                                                               for row in rows]))  # fmt: skip
    empty = [{**row, "chosen_ids": row["chosen_ids"][-1:]} if place % 3 == 0 else row
             for place, row in enumerate(rows)]  # fmt: skip
    yield sample("chosen answer empty", "empty_row no_completion_left", collate(empty))
    scored = [
        {
            "prompt": asked, "chosen": answer, "rejected": bad,
            "score_chosen": 2.0 if place % 3 == 0 else 8.5, "score_rejected": 8.5 if place % 3 == 0 else 2.0,
        }
        for place, ((asked, answer), bad) in enumerate(zip(TALK, BAD, strict=True))
    ]  # fmt: skip
    yield sample("pairs swapped in part", "preference_swapped", scored)
    yield sample("padded to the greatest length", "padding_excessive",
                 padded_far(batch, {"input_ids": pad, "completion_mask": 0, "attention_mask": 0}))  # fmt: skip
    yield sample("system prompt dropped by the template", "system_prompt_dropped",
                 [{"prompt": [SYSTEM, *messages(number)[:1]], "chosen": messages(number)[1:],
                   "rejected": [{"role": "assistant", "content": bad}]} for number, bad in enumerate(BAD)],
                 tokenizer="system_less")  # fmt: skip


def reward() -> Iterator[Sample]:
    from trl.trainer.reward_trainer import DataCollatorForPreference

    hf, pad = chat(), chat().pad_token_id
    collate = DataCollatorForPreference(pad_token_id=pad)
    rows = [
        {name: row["prompt_ids"] + row[name] for name in ("chosen_ids", "rejected_ids")} for row in preference_rows(hf)
    ]
    names = ("chosen_ids", "rejected_ids")
    batch = listed(collate(rows))
    yield sample("", "", batch)
    yield sample("", "", rows, name="rows")
    same = [{**row, "rejected_ids": row["chosen_ids"]} if place % 3 == 0 else row for place, row in enumerate(rows)]
    yield sample("chosen equals rejected in part", "chosen_equals_rejected", collate(same))
    yield sample("pairs swapped in part", "preference_swapped",
                 collate([{**row, "margin": -1.5 if place % 3 == 0 else 2.0} for place, row in enumerate(rows)])
                 )  # fmt: skip
    yield sample("start token twice", "double_bos", collate(with_start_again(rows, hf.bos_token_id, *names)))
    yield sample("end of the answer missing", "missing_eos", collate(without_end(rows, *names)))
    yield sample("attention on padding", "attention_mask_mismatch", all_ones(batch))
    yield sample("tokens of another tokenizer", "tokenizer_mismatch", collate([
        {name: row["prompt_ids"] + row[name] for name in names} for row in preference_rows(other_chat())]))  # fmt: skip
    yield sample("rows repeated", "duplicate_rows", collate(repeated(rows)))
    yield sample("prompt longer than the limit", "chosen_equals_rejected no_completion_left", collate(cut(rows, 10)))
    yield sample("padded to the greatest length", "padding_excessive",
                 padded_far(batch, {"input_ids": pad, "attention_mask": 0}))  # fmt: skip


def generated(*, flat: bool = False) -> Sample:
    """Return what GRPOTrainer's loss gets in its first step, with a tiny model that really generates."""
    from datasets import Dataset
    from transformers import LlamaConfig, LlamaForCausalLM
    from trl import GRPOConfig, GRPOTrainer

    set_seed(1)
    hf = chat()
    config = LlamaConfig(
        vocab_size=len(hf), hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        bos_token_id=hf.bos_token_id, eos_token_id=hf.eos_token_id, pad_token_id=hf.pad_token_id,
    )  # fmt: skip
    caught: list[Sample] = []

    class Catches(GRPOTrainer):  # type: ignore[misc]
        def _compute_loss(self, model: Any, inputs: Sample) -> Any:
            caught.append(listed({name: value for name, value in inputs.items() if isinstance(value, torch.Tensor)}))
            return super()._compute_loss(model, inputs)

    with tempfile.TemporaryDirectory() as folder:
        arguments = GRPOConfig(
            output_dir=folder, report_to=[], use_cpu=True, bf16=False, per_device_train_batch_size=8, max_steps=1,
            num_generations=4, max_completion_length=12, gradient_accumulation_steps=1, logging_strategy="no",
        )  # fmt: skip
        Catches(
            LlamaForCausalLM(config),
            reward_funcs=lambda completions, **_: [0.0 if flat else float(len(str(one)) % 7) for one in completions],
            args=arguments,
            train_dataset=Dataset.from_list([{"prompt": messages(number)[:1]} for number in range(len(TALK))]),
            processing_class=hf,
        ).train()
    return caught[0]


def grpo() -> Iterator[Sample]:
    hf = chat()
    batch = generated()
    yield sample("", "", batch)
    prompts = [{"prompt": messages(number)[:1]} for number in range(len(TALK))]
    yield sample("", "", prompts, name="prompts")
    yield sample("all rewards of a group equal", "advantages_zero", generated(flat=True))
    yield sample("attention on padding", "attention_mask_mismatch", all_ones(batch, "prompt_mask"))
    right = [[token for token, kept in zip(row, mask, strict=True) if kept]
             for row, mask in zip(batch["prompt_ids"], batch["prompt_mask"], strict=True)]  # fmt: skip
    width = len(batch["prompt_ids"][0])
    yield sample("prompts padded on the right", "padding_side_wrong", {
        **batch,
        "prompt_ids": [row + [hf.pad_token_id] * (width - len(row)) for row in right],
        "prompt_mask": [[1] * len(row) + [0] * (width - len(row)) for row in right],
    })  # fmt: skip
    twice = [[hf.bos_token_id, *row] for row in right]
    yield sample("start token twice", "double_bos", {
        **batch,
        "prompt_ids": [[hf.pad_token_id] * (width + 1 - len(row)) + row for row in twice],
        "prompt_mask": [[0] * (width + 1 - len(row)) + [1] * len(row) for row in twice],
    })  # fmt: skip
    header = len(rendered(hf, messages(0)[:1], prompt=True)) - len(rendered(hf, messages(0)[:1]))
    yield sample("prompts without the assistant's header", "generation_prompt_missing",
                 [{"prompt_ids": rendered(hf, messages(number)[:1])} for number in range(len(TALK))],
                 purpose="generation")  # fmt: skip
    yield sample("prompt longer than the limit", "missing_bos prompt_missing truncated_prompt", {
        **batch,
        "prompt_ids": [row[-header - 3 :] for row in batch["prompt_ids"]],
        "prompt_mask": [row[-header - 3 :] for row in batch["prompt_mask"]],
    })  # fmt: skip
    moved = other_chat().get_vocab()
    back = {number: token for token, number in hf.get_vocab().items()}
    yield sample("tokens of another tokenizer", "tokenizer_mismatch", {
        **batch, "prompt_ids": [[moved[back[token]] for token in row] for row in batch["prompt_ids"]],
    })  # fmt: skip
    yield sample("system prompt dropped by the template", "system_prompt_dropped",
                 [{"prompt": [SYSTEM, *messages(number)[:1]]} for number in range(len(TALK))],
                 tokenizer="system_less")  # fmt: skip


def causal() -> Iterator[Sample]:
    hf = chat()
    texts = [" ".join(pair) for pair in TALK]
    rows = [{"input_ids": [*hf(text).input_ids, hf.eos_token_id]} for text in texts]
    collate = DataCollatorForLanguageModeling(hf, mlm=False)
    batch = listed(collate(rows))
    more = {"purpose": "pretraining"}
    yield sample("", "", batch, **more)
    yield sample("start token twice", "double_bos", collate(with_start_again(rows, hf.bos_token_id, "input_ids")),
                 **more)  # fmt: skip
    yield sample("end of the text missing", "missing_eos", collate(without_end(rows, "input_ids")), purpose="sft")
    yield sample("attention on padding", "attention_mask_mismatch", all_ones(batch), **more)
    yield sample("labels shifted once more", "labels_shifted",
                 {**batch, "labels": [[*row[1:], IGNORE] for row in batch["labels"]]}, **more)  # fmt: skip
    other = other_chat()
    strange = [{"input_ids": [*other(text).input_ids, hf.eos_token_id]} for text in texts]
    yield sample("tokens of another tokenizer", "tokenizer_mismatch", collate(strange), **more)
    yield sample("padding trained on", "padding_not_masked", {**batch, "labels": batch["input_ids"]}, **more)
    yield sample("rows repeated", "duplicate_rows", collate(repeated(rows)), **more)
    yield sample("padded to the greatest length", "padding_excessive", padded_far(
        batch, {"input_ids": hf.pad_token_id, "labels": IGNORE, "attention_mask": 0}), **more)  # fmt: skip
    same = DataCollatorForLanguageModeling(stored("pad_is_eos"), mlm=False)(rows)
    yield sample("padding token is the end token", "pad_is_eos eos_masked", same, **more, tokenizer="pad_is_eos")


def masked(collate: Any, hf: Any) -> Iterator[Sample]:
    """Yield what both collators for masked language models make, with faults."""
    texts = [" ".join(pair) for pair in TALK]
    names = ["input_ids", "attention_mask", *(["offset_mapping"] if collate.whole_word_mask else [])]
    # The collator cannot pad offsets, so that rows for whole words come padded.
    padding: Any = "max_length" if collate.whole_word_mask else False
    found = [hf(text, return_offsets_mapping=True, padding=padding, max_length=48) for text in texts]
    rows = [{name: row[name] for name in names} for row in found]
    set_seed(2)
    batch = listed(collate(rows))
    more = {"tokenizer": "wordpiece"}
    yield sample("", "", batch, **more)
    yield sample("attention on padding", "attention_mask_mismatch", all_ones(batch), **more)
    yield sample("no token chosen", "all_labels_masked",
                 {**batch, "labels": [[IGNORE] * len(row) for row in batch["labels"]]}, **more)  # fmt: skip
    whole = [
        [token if label == IGNORE else label for token, label in zip(*pair, strict=True)]
        for pair in zip(batch["input_ids"], batch["labels"], strict=True)
    ]
    yield sample("no token hidden", "labels_mismatch nothing_hidden", {**batch, "input_ids": whole}, **more)
    yield sample("labels shifted", "labels_shifted labels_mismatch",
                 {**batch, "labels": [[IGNORE, *row[:-1]] for row in batch["labels"]]}, **more)  # fmt: skip
    yield sample("start token twice", "double_bos",
                 collate([{**row, "input_ids": [hf.cls_token_id, *row["input_ids"]],
                           **({"offset_mapping": [(0, 0), *row["offset_mapping"]]} if "offset_mapping" in row else {}),
                           "attention_mask": [1, *row["attention_mask"]]} for row in rows]), **more)  # fmt: skip
    yield sample("start and end left out", "missing_bos missing_eos",
                 collate([{name: value[1:-1] for name, value in row.items()} for row in rows]), **more)  # fmt: skip
    far = [{"input_ids": [token + 300 if token > 20 else token for token in row["input_ids"]]} for row in rows]
    yield sample("ids beyond the vocabulary", "token_id_out_of_range vocab_size_mismatch",
                 DataCollatorForSeq2Seq(hf)(far), **more)  # fmt: skip
    yield sample("padded to the greatest length", "padding_excessive", padded_far(
        batch, {"input_ids": 0, "labels": IGNORE, "attention_mask": 0}, 128), **more)  # fmt: skip


def masked_language_model() -> Iterator[Sample]:
    hf = wordpiece()
    yield from masked(DataCollatorForLanguageModeling(hf, mlm_probability=0.15), hf)


def whole_words() -> Iterator[Sample]:
    hf = wordpiece()
    yield from masked(DataCollatorForLanguageModeling(hf, mlm_probability=0.15, whole_word_mask=True), hf)


def sequence_to_sequence() -> Iterator[Sample]:
    from transformers import T5Config, T5ForConditionalGeneration

    hf = chat()
    end = [hf.eos_token_id]
    start = hf.bos_token_id
    model = {"model_type": "t5", "is_encoder_decoder": True, "decoder_start_token_id": start,
             "pad_token_id": hf.pad_token_id, "eos_token_id": hf.eos_token_id, "vocab_size": len(hf)}  # fmt: skip
    tiny = T5ForConditionalGeneration(T5Config(
        d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, **{n: v for n, v in model.items() if n != "model_type"}
    ))  # fmt: skip
    rows = [
        {"input_ids": [*hf(asked).input_ids, *end], "labels": [*hf(answer).input_ids[1:], *end]}
        for asked, answer in TALK
    ]
    collate = DataCollatorForSeq2Seq(hf, model=tiny)
    batch = listed(collate(rows))
    more = {"model": model}
    yield sample("", "", batch, **more)
    yield sample("", "", DataCollatorForSeq2Seq(hf)(rows), **more, name="without decoder inputs")
    filled = [[hf.pad_token_id if token == IGNORE else token for token in row] for row in batch["labels"]]
    yield sample("decoder input without its start", "labels_shifted", {**batch, "decoder_input_ids": filled}, **more)
    yield sample("padding trained on", "padding_not_masked",
                 DataCollatorForSeq2Seq(hf, label_pad_token_id=hf.pad_token_id)(rows), **more)  # fmt: skip
    yield sample("end of the answer missing", "missing_eos", collate(without_end(rows, "labels")), **more)
    yield sample("start token twice", "double_bos",
                 collate([{**row, "labels": [start, *row["labels"]]} for row in rows]), **more)  # fmt: skip
    yield sample("attention on padding", "attention_mask_mismatch", all_ones(batch), **more)
    yield sample("answers cut off", "missing_eos truncated_completion",
                 collate([{**row, "labels": row["labels"][:5]} for row in rows]), **more)  # fmt: skip
    yield sample("target equals the source", "target_equals_source",
                 collate([{**row, "labels": row["input_ids"][1:]} for row in rows]), **more)  # fmt: skip
    yield sample("rows repeated", "duplicate_rows", collate(repeated(rows)), **more)
    other = other_chat()
    strange = [{"input_ids": [*other(asked).input_ids, *end], "labels": [*other(answer).input_ids[1:], *end]}
               for asked, answer in TALK]  # fmt: skip
    yield sample("tokens of another tokenizer", "tokenizer_mismatch", collate(strange), **more)


def token_classification() -> Iterator[Sample]:
    hf = wordpiece()
    names = ["O", "B-NAME", "I-NAME", "B-PLACE"]
    model = {"model_type": "bert", "architectures": ["BertForTokenClassification"], "num_labels": len(names),
             "id2label": dict(enumerate(names)), "vocab_size": len(hf), "pad_token_id": 0}  # fmt: skip
    collate = DataCollatorForTokenClassification(hf)
    rng = np.random.default_rng(4)
    rows: Rows = []
    for _, answer in TALK:
        words = answer.split()
        found = hf(words, is_split_into_words=True)
        tags = rng.choice(4, len(words), p=[0.6, 0.15, 0.1, 0.15]).tolist()
        labels, before = [], None
        for word in found.word_ids():
            labels.append(IGNORE if word is None or word == before else tags[word])
            before = word
        rows.append({"input_ids": found.input_ids, "labels": labels})
    batch = listed(collate(rows))
    more = {"model": model, "tokenizer": "wordpiece", "purpose": "classification"}
    yield sample("", "", batch, **more)
    yield sample("class ids one too high", "label_out_of_range", collate(
        [{**row, "labels": [label + 1 if label >= 0 else label for label in row["labels"]]} for row in rows]),
        **more)  # fmt: skip
    yield sample("padding labelled", "padding_not_masked",
                 DataCollatorForTokenClassification(hf, label_pad_token_id=0)(rows), **more)  # fmt: skip
    yield sample("labels one place too early", "labels_shifted labels_misplaced", collate(
        [{**row, "labels": [*row["labels"][1:], IGNORE]} for row in rows]), **more)  # fmt: skip
    yield sample("attention on padding", "attention_mask_mismatch", all_ones(batch), **more)
    yield sample("only one class left", "class_imbalance", collate(
        [{**row, "labels": [min(label, 0) for label in row["labels"]]} for row in rows]), **more)  # fmt: skip
    yield sample("nothing labelled", "all_labels_masked", collate(
        [{**row, "labels": [IGNORE] * len(row["labels"])} for row in rows]), **more)  # fmt: skip
    yield sample("rows repeated", "duplicate_rows", collate(repeated(rows)), **more)
    yield sample("start token twice", "double_bos", collate(with_start_again(rows, 2, "input_ids", "labels")), **more)


def embeddings() -> Iterator[Sample]:
    from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator

    hf = wordpiece()

    def preprocess(texts: list[str], **_: Any) -> Any:
        return hf(texts, padding=True, return_tensors="pt", return_token_type_ids=False)

    collate = SentenceTransformerDataCollator(preprocess_fn=preprocess)
    more = {"tokenizer": "wordpiece", "purpose": "embedding"}
    rows = [{"anchor": asked, "positive": answer, "negative": bad}
            for (asked, answer), bad in zip(TALK, BAD, strict=True)]  # fmt: skip
    batch = listed(collate(rows))
    yield sample("", "", batch, **more)
    yield sample("", "", rows, **more, name="rows")
    pairs = [{name: row[name] for name in ("anchor", "positive")} for row in rows]
    yield sample("", "", collate(pairs), **more, name="pairs")
    yield sample("pairs repeated", "duplicate_rows", collate(repeated(pairs)), **more)
    one = [{**row, "positive": rows[place % 2]["positive"]} for place, row in enumerate(pairs)]
    yield sample("few positives for many anchors", "positives_shared", collate(one), **more)
    yield sample("negative equals positive", "positive_equals_negative", collate(
        [{**row, "negative": row["positive"]} if place % 3 == 0 else row for place, row in enumerate(rows)]),
        **more)  # fmt: skip
    yield sample("anchor equals positive in part", "anchor_equals_positive", collate(
        [{**row, "positive": row["anchor"]} if place % 3 == 0 else row for place, row in enumerate(rows)]),
        **more)  # fmt: skip
    yield sample("attention on padding", "attention_mask_mismatch", all_ones(batch, "positive_attention_mask"), **more)
    twice = {name: [[2, *row] if name.endswith("ids") else [1, *row] for row in value] for name, value in batch.items()}
    yield sample("start token twice", "double_bos", twice, **more)
    yield sample("padded to the greatest length", "padding_excessive", padded_far(batch, {
        f"{name}_{column}": 0 for name in rows[0] for column in ("input_ids", "attention_mask")}, 128),
        **more)  # fmt: skip
    far = {name: [[token + 300 if token > 20 else token for token in row] for row in value]
           if name.endswith("ids") else value for name, value in batch.items()}  # fmt: skip
    yield sample("ids beyond the vocabulary", "token_id_out_of_range vocab_size_mismatch", far, **more)


def pictures() -> list[np.ndarray[Any, Any]]:
    """Return smooth pictures, 0 to 255, rows by columns by channels."""
    rng = np.random.default_rng(5)
    coarse = rng.integers(0, 256, (len(TALK), 3, 4, 3))
    return [np.kron(picture, np.ones((2, 2, 1))).astype(np.uint8) for picture in coarse]


MEAN, SPREAD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


def image_classification() -> Iterator[Sample]:
    def rows(prepare: Callable[[Any], Any], label: int = 0) -> Rows:
        return [{"pixel_values": prepare(picture / 255.0), "labels": place % 4 + label}
                for place, picture in enumerate(pictures())]  # fmt: skip

    def normal(picture: Any) -> Any:
        return ((picture - MEAN) / SPREAD).transpose(2, 0, 1).astype(np.float32)

    model = {"model_type": "vit", "architectures": ["ViTForImageClassification"], "num_labels": 4, "num_channels": 3}
    more = {"model": model, "purpose": "classification", "tokenizer": ""}
    collate = default_data_collator
    yield sample("", "", collate(rows(normal)), **more)
    yield sample("", "", collate(rows(lambda picture: picture.transpose(2, 0, 1).astype(np.float32))), **more,
                 name="0 to 1")  # fmt: skip
    yield sample("values of 0 to 255", "input_not_normalized",
                 collate(rows(lambda picture: (255 * picture).transpose(2, 0, 1).astype(np.float32))),
                 **more)  # fmt: skip
    yield sample("channels last", "schema_mismatch",
                 collate(rows(lambda picture: ((picture - MEAN) / SPREAD).astype(np.float32))),
                 **more)  # fmt: skip
    yield sample("normalised twice", "input_not_normalized",
                 collate(rows(lambda picture: ((normal(picture).transpose(1, 2, 0) - MEAN) / SPREAD)
                              .transpose(2, 0, 1).astype(np.float32))),
                 **more)  # fmt: skip
    yield sample("divided by 255 twice", "input_not_normalized",
                 collate(rows(lambda picture: (picture / 255).transpose(2, 0, 1).astype(np.float32))),
                 **more)  # fmt: skip
    yield sample("class ids one too high", "label_out_of_range", collate(rows(normal, 1)), **more)
    few = rows(normal)
    yield sample("rows repeated", "duplicate_rows", collate(repeated(few)), **more)
    yield sample("only one class left", "class_imbalance", collate([{**row, "labels": 1} for row in few]), **more)
    yield sample("pictures all alike", "constant_column duplicate_rows input_not_normalized",
                 collate([{**row, "pixel_values": np.zeros((3, 6, 8), np.float32)} for row in few]),
                 **more)  # fmt: skip


def detection() -> Iterator[Sample]:
    rng = np.random.default_rng(6)
    model = {"model_type": "detr", "architectures": ["DetrForObjectDetection"], "num_labels": 5}
    more = {"model": model, "tokenizer": ""}

    def batch(change: Callable[[Any], Any] = lambda boxes: boxes, label: int = 0, side: int = 1) -> Sample:
        nonlocal rng
        rng = np.random.default_rng(6)
        pixels, labels = [], []
        for place, picture in enumerate(pictures()):
            count = 1 + place % 3
            size = rng.uniform(0.1, 0.4, (count, 2))
            centre = rng.uniform(size / 2, 1 - size / 2)
            boxes = change(np.concatenate([centre, size], 1)) * side
            classes = rng.integers(0, 5, count) + label
            pixels.append(((picture / 255 - MEAN) / SPREAD).transpose(2, 0, 1))
            labels.append({"class_labels": classes, "boxes": boxes, "image_id": [place]})
        return {"pixel_values": torch.tensor(np.stack(pixels)), "labels": labels}

    yield sample("", "", batch(), **more)
    yield sample("boxes beyond the image", "box_out_of_range",
                 batch(lambda boxes: boxes + np.array([0.6, 0.0, 0.3, 0.0])), **more)  # fmt: skip
    yield sample("boxes in pixels", "box_out_of_range", batch(side=640), **more)
    corners = lambda boxes: np.concatenate([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2], 1)  # noqa: E731
    yield sample("corners where centres are expected", "box_out_of_range", batch(corners), **more)
    yield sample("class ids one too high", "label_out_of_range", batch(label=1), **more)
    yield sample("boxes without size", "box_out_of_range",
                 batch(lambda boxes: boxes * np.array([1, 1, 0, 1])), **more)  # fmt: skip


def conversation_faults(hf: Any, collate: Callable[[Rows], Any], ids: str = "input_ids") -> Iterator[Sample]:
    """Yield a healthy batch of a collator and twenty with faults; most lie in the rows that go into it.

    Args:
        hf: The tokenizer.
        collate: Makes a batch of rows with `input_ids` and `labels`.
        ids: What the collator calls the token ids of a batch.
    """
    rows = conversation_rows(hf)[:6]
    pad, bos, eos = hf.pad_token_id, hf.bos_token_id, hf.eos_token_id

    def changed(change: Callable[[list[int], list[int]], tuple[list[int], list[int]]], every: int = 1) -> Any:
        made = []
        for place, row in enumerate(rows):
            tokens, labels = row["input_ids"], row["labels"]
            tokens, labels = change(tokens, labels) if place % every == 0 else (tokens, labels)
            made.append({"input_ids": tokens, "labels": labels})
        return listed(collate(made))

    def words(text: str) -> list[int]:
        return [token for token in hf(text).input_ids if token != bos]

    def far_ids(tokens: list[int]) -> list[int]:
        return [token + 400 if token > 250 else token for token in tokens]

    batch = listed(collate(rows))
    yield sample("", "", batch)
    yield sample("", "", listed(collate([rows[0], *rows[3:5]])), name="three rows")
    yield sample(
        "user trained on, assistant not",
        "wrong_role_in_loss",
        changed(
            lambda tokens, labels: (
                tokens,
                [IGNORE if label != IGNORE else token for token, label in zip(tokens, labels, strict=True)],
            )
        ),
    )
    yield sample(
        "prompt trained on", "prompt_not_masked", changed(lambda tokens, _: (tokens, list(tokens))), purpose="sft"
    )
    yield sample("nothing trained on", "all_labels_masked", changed(lambda tokens, _: (tokens, [IGNORE] * len(tokens))))
    yield sample(
        "every second row without labels",
        "row_labels_masked",
        changed(lambda tokens, _: (tokens, [IGNORE] * len(tokens)), 2),
    )
    yield sample(
        "labels one place early", "labels_shifted", changed(lambda tokens, labels: (tokens, [*labels[1:], IGNORE]))
    )
    yield sample(
        "labels one place late", "labels_shifted", changed(lambda tokens, labels: (tokens, [IGNORE, *labels[:-1]]))
    )
    yield sample("end missing", "missing_eos", changed(lambda tokens, labels: (tokens[:-1], labels[:-1])))
    yield sample("end masked", "eos_masked", changed(lambda tokens, labels: (tokens, [*labels[:-1], IGNORE])))
    yield sample("first token twice", "double_bos", changed(lambda tokens, labels: ([bos, *tokens], [IGNORE, *labels])))
    yield sample("first token missing", "missing_bos", changed(lambda tokens, labels: (tokens[1:], labels[1:])))
    other = conversation_rows(other_chat())[:6]
    yield sample("tokens of another tokenizer", "tokenizer_mismatch", listed(collate(other)))
    yield sample(
        "ids beyond the vocabulary",
        "token_id_out_of_range vocab_size_mismatch",
        changed(lambda tokens, labels: (far_ids(tokens), far_ids(labels))),
    )
    yield sample("rows repeated", "duplicate_rows", listed(collate([*rows[:3], *rows[:3]])))
    yield sample(
        "answers empty",
        "empty_row",
        changed(
            lambda tokens, labels: (
                [token for token, label in zip(tokens, labels, strict=True) if label == IGNORE] + [eos],
                [IGNORE] * labels.count(IGNORE) + [eos],
            )
        ),
    )
    asked = words("<|im_start|>user\nName a river.<|im_end|>\n<|im_start|>assistant\n")
    said = words("The Seine.<|im_end|>")
    yield sample(
        "markers of another template",
        "chat_template_mismatch",
        changed(lambda *_: ([bos, *asked, *said, eos], [IGNORE] * (1 + len(asked)) + [*said, eos])),
    )
    end = spelt(hf, hf.eos_token)
    yield sample(
        "end written as text",
        "special_token_split",
        changed(lambda tokens, labels: ([*tokens[:-1], *end], [*labels[:-1], *end])),
    )
    cut = max(row["labels"].count(IGNORE) for row in rows) + 4
    yield sample(
        "answers cut off",
        "truncated_completion missing_eos",
        changed(lambda tokens, labels: (tokens[:cut], labels[:cut])),
    )
    answers = [[label for label in row["labels"] if label != IGNORE] for row in rows]
    swapped = [
        [*([IGNORE] * row["labels"].count(IGNORE)), *(answers[place - 1] * 9)][: len(row["labels"])]
        for place, row in enumerate(rows)
    ]
    yield sample(
        "labels of another row",
        "labels_mismatch",
        listed(collate([{**row, "labels": labels} for row, labels in zip(rows, swapped, strict=True)])),
    )
    names = {name: value for name, value in batch.items() if name in (ids, "labels", "attention_mask", "position_ids")}
    filled = [
        [pad if label == IGNORE and token == pad else label for token, label in zip(*pair, strict=True)]
        for pair in zip(names[ids], names["labels"], strict=True)
    ]
    yield sample("padding trained on", "padding_not_masked", {**names, "labels": filled})
    fill = {ids: pad, "labels": IGNORE, "attention_mask": 0, "position_ids": 0}
    yield sample("padded to the greatest length", "padding_excessive", padded_far(names, fill, 320))
    if "attention_mask" in names:
        yield sample("attention on padding", "attention_mask_mismatch", all_ones(names))
    else:
        far = [[-1 if token == pad else token for token in row] for row in names[ids]]
        yield sample("padding with an id that no embedding has", "token_id_out_of_range", {**names, ids: far})


def spelt(hf: Any, token: str) -> list[int]:
    """Return a special token as ordinary ones spell it."""
    found: list[int] = hf(token, split_special_tokens=True, add_special_tokens=False).input_ids
    return found


def axolotl() -> Iterator[Sample]:
    from axolotl.utils.collators.batching import DataCollatorForSeq2Seq as Collator

    hf = chat()
    collate = Collator(hf, pad_to_multiple_of=8)
    yield from conversation_faults(
        hf, lambda rows: collate([{**row, "attention_mask": [1] * len(row["input_ids"])} for row in rows])
    )


def torchtune() -> Iterator[Sample]:
    from torchtune.data._collate import padded_collate_sft

    hf = chat()
    yield from conversation_faults(
        hf,
        lambda rows: padded_collate_sft(
            [{"tokens": row["input_ids"], "labels": row["labels"]} for row in rows], hf.pad_token_id, IGNORE
        ),
        "tokens",
    )


COLLATORS: dict[str, Callable[[], Iterator[Sample]]] = {
    "trl_sft": sft, "trl_dpo": dpo, "trl_reward": reward, "trl_grpo": grpo, "transformers_causal": causal,
    "transformers_masked": masked_language_model, "transformers_whole_word": whole_words,
    "transformers_seq2seq": sequence_to_sequence, "transformers_token_classification": token_classification,
    "sentence_transformers": embeddings, "image_classification": image_classification, "detection": detection,
    "axolotl": axolotl, "torchtune": torchtune,
}  # fmt: skip
PURPOSES = {"trl_reward": {"purpose": "dpo"}}
"""Nothing in a batch of RewardTrainer says that its halves are pairs."""


def main() -> None:
    """Write the tokenizers and one file of samples for each collator."""
    import sys

    SAMPLES.mkdir(exist_ok=True)
    for name, make in TOKENIZERS.items():
        if not (SAMPLES / name).exists():
            make().save_pretrained(SAMPLES / name)
    for name, make_samples in COLLATORS.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        with contextlib.redirect_stdout(sys.stderr):
            samples = [{**PURPOSES.get(name, {}), **one} for one in make_samples()]
        lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in samples)
        (SAMPLES / f"{name}.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
