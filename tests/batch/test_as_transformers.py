"""A tokenizer.json is loaded and a chat template rendered as transformers does it: its own answers are the measure."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.batch.kit import FAMILIES, TEXT, make_hf, talk

from mldebug_mcp.batch.tokenizer import ChatTemplate, Tokenizer, load_tokenizer

pytest.importorskip("transformers")
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast
from transformers.utils.chat_template_utils import render_jinja_template

LINES = [
    *TEXT,
    "",
    "What is <|im_start|> the </s>capital[MASK] of <image> France?  \n <extra>  Él niño 日本 🎉 <new>x<s>y",
]


def trained(model: Any, before: Any, trainer: Any) -> Any:
    made = tokenizers.Tokenizer(model)
    made.pre_tokenizer = before
    made.train_from_iterator(TEXT * 4, trainer)
    return made


def wordpiece() -> Any:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=special, show_progress=False)
    made = trained(models.WordPiece(unk_token="[UNK]"), pre_tokenizers.BertPreTokenizer(), trainer)
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.decoder = decoders.WordPiece()
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return made


def unigram() -> Any:
    special = ["<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=200, special_tokens=special, unk_token="<unk>", show_progress=False)
    made = trained(models.Unigram(), pre_tokenizers.Metaspace(), trainer)
    made.decoder = decoders.Metaspace()
    made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return made


def write(folder: Path, made: Any, **files: Any) -> None:
    folder.mkdir()
    made.save(str(folder / "tokenizer.json"))
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))


def saved(family: str) -> Callable[[Path], None]:
    return lambda folder: make_hf(family).save_pretrained(folder)


def bare(folder: Path) -> None:
    write(folder, unigram())


def listed(folder: Path) -> None:
    """As transformers 4 saves it: added tokens in the configuration, not all of which tokenizer.json has."""
    tokens = {
        "2": {"content": "[CLS]", "lstrip": False, "normalized": False, "rstrip": False, "special": True},
        "4": {"content": "[MASK]", "lstrip": True, "normalized": False, "rstrip": False, "special": True},
        "200": {"content": "<new>", "lstrip": False, "normalized": True, "rstrip": True, "special": False},
    }
    config = {
        "added_tokens_decoder": tokens, "cls_token": "[CLS]", "mask_token": "[MASK]", "pad_token": "[PAD]",
        "sep_token": "[SEP]", "unk_token": "[UNK]", "eos_token": "<new>", "bos_token": None,
        "additional_special_tokens": ["<extra>"], "model_max_length": 512, "clean_up_tokenization_spaces": True,
        "add_bos_token": True, "tokenizer_class": "BertTokenizer",
    }  # fmt: skip
    write(folder, wordpiece(), tokenizer_config=config, special_tokens_map={"bos_token": "<never read>"})


def older(folder: Path) -> None:
    """As versions before that: the special tokens in files of their own."""
    named = {
        "pad_token": "<pad>",
        "unk_token": {"content": "<unk>", "lstrip": False, "normalized": False, "rstrip": False, "single_word": False},
        "eos_token": "</s>", "bos_token": "<s>", "image_token": "<image>", "additional_special_tokens": ["<extra>"],
    }  # fmt: skip
    added = {"<new>": 201, "<extra>": 202}
    config = {"model_max_length": 1e30, "eos_token": "<other>"}
    write(folder, unigram(), tokenizer_config=config, special_tokens_map=named, added_tokens=added)


def with_names_of_its_own(folder: Path) -> None:
    marks = {"__type": "AddedToken", "content": "<extra>", "lstrip": True, "normalized": False, "special": True}
    config = {
        "bos_token": "<s>", "eos_token": marks, "extra_special_tokens": {"image_token": "<image>", "of_token": "<new>"},
        "chat_template": [{"name": "default", "template": "{{ image_token }}{{ messages[0].content }}{{ bos_token }}"}],
        "split_special_tokens": True, "max_len": 77,
    }  # fmt: skip
    write(folder, unigram(), tokenizer_config=config)


def padded(folder: Path) -> None:
    made = unigram()
    made.enable_padding(pad_token="<pad>", pad_id=0, length=40)
    made.enable_truncation(5)
    write(folder, made, tokenizer_config={"unk_token": "<unk>"})


def with_templates_in_files(folder: Path) -> None:
    write(folder, wordpiece(), tokenizer_config={"chat_template": "not this one"})
    (folder / "chat_template.jinja").write_text("{% for m in messages %}\r\n[CLS]{{ m.content }}[SEP]{% endfor %}\n")
    (folder / "additional_chat_templates").mkdir()
    (folder / "additional_chat_templates" / "tool_use.jinja").write_text("tools")


FOLDERS: dict[str, Callable[[Path], None]] = {
    **{family: saved(family) for family in FAMILIES},
    **{
        make.__name__: make
        for make in (bare, listed, older, with_names_of_its_own, padded, with_templates_in_files)
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_tokenizer_json_is_loaded_as_transformers_loads_it(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "tokenizer"
    FOLDERS[kind](folder)
    ours, theirs = load_tokenizer(folder), PreTrainedTokenizerFast.from_pretrained(str(folder))
    assert type(ours.hf).__name__ == "FastTokenizer"
    assert ours.hf.special_tokens_map == theirs.special_tokens_map
    assert ours.hf.all_special_tokens == theirs.all_special_tokens
    assert {number: str(one) for number, one in ours.hf.added_tokens_decoder.items()} == {
        number: str(one) for number, one in theirs.added_tokens_decoder.items()
    }
    assert ours.hf.get_vocab() == theirs.get_vocab()
    assert (ours.hf.chat_template, ours.hf.model_max_length) == (theirs.chat_template, theirs.model_max_length)
    same = Tokenizer(theirs, "theirs")
    for asked in ("size", "bos", "eos", "pad", "mask", "special", "ends", "adds_bos", "template_adds_bos"):
        assert getattr(ours, asked) == getattr(same, asked), asked
    for line in LINES:
        assert ours.encode(line) == theirs(line)["input_ids"]
        assert ours.encode(line, special=False) == theirs(line, add_special_tokens=False)["input_ids"]
    assert ours.pieces(range(ours.size + 2)) == same.pieces(range(ours.size + 2))
    if ours.chat_template is not None:
        for prompt in (False, True):
            expected = theirs.apply_chat_template(talk(2), tokenize=False, add_generation_prompt=prompt)
            assert ours.render(talk(2), add_generation_prompt=prompt) == expected


@pytest.mark.parametrize("family", ["chatml", "phi3"])
def test_the_tokens_of_the_assistant_are_those_that_transformers_masks(tmp_path: Path, family: str) -> None:
    make_hf(family).save_pretrained(tmp_path)
    ours, theirs = load_tokenizer(tmp_path), PreTrainedTokenizerFast.from_pretrained(str(tmp_path))
    for turns in (1, 3):
        expected = theirs.apply_chat_template(talk(turns), return_dict=True, return_assistant_tokens_mask=True)
        assert ours.generation_mask(talk(turns)) == [bool(one) for one in expected["assistant_masks"]]
        assert any(expected["assistant_masks"])


MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "Be <brief> & 'kind'.", "name": None},
    {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Was ist das? 日本"}]},
    {
        "role": "assistant", "reasoning": "Hm.", "content": None,
        "tool_calls": [{"function": {"name": "f", "arguments": {"b": 1, "a": [True, None, 2.5]}}}],
    },
    {"role": "tool", "content": "  42\n"},
    {"role": "assistant", "content": " Six times seven. "},
]  # fmt: skip

TEMPLATES = sorted((Path(__file__).parent / "chat_templates").glob("*.jinja"))


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.stem)
def test_a_template_is_rendered_as_transformers_renders_it(template: Path) -> None:
    source, names = template.read_text(encoding="utf-8"), {"bos_token": "<s>", "eos_token": "</s>"}
    for prompt in (False, True):
        given = [{key: value for key, value in message.items() if value is not None} for message in MESSAGES]
        [text], [spans] = render_jinja_template(
            [given], chat_template=source, return_assistant_tokens_mask=True, add_generation_prompt=prompt, **names
        )
        assert ChatTemplate(source).render(MESSAGES, names, add_generation_prompt=prompt) == (text, spans)
    assert text


@pytest.mark.parametrize(
    "source",
    [
        "{{ raise_exception('roles must alternate') }}",
        "{{ messages[0].content.nothing.more }}",
        "{{ messages.append(1) }}",
        "{% set ns = namespace(__class__=1) %}",
        "{% set ns = namespace() %}{% set ns._x = 1 %}",
        "{{ dict.__init__.__globals__ }}{{ 1/0 }}",
        "{{ raise_exception.__globals__['json'] }}",
        "{{ strftime_now.__code__.co_code }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{% for m in messages %}",
        "{% generation %}",
        "{% include 'file' %}",
        "{{ range(10 ** 9) | list }}",
        "{{ '%s' % messages.__class__.__init__.__globals__ }}",
        "{{ ''.format_map.__self__.__class__.mro() }}",
    ],
)
def test_a_template_that_transformers_refuses_is_refused(source: str) -> None:
    with pytest.raises(Exception) as theirs:  # noqa: PT011 - whatever the sandbox raises
        render_jinja_template([MESSAGES], chat_template=source)
    with pytest.raises(type(theirs.value)):
        ChatTemplate(source).render(MESSAGES, {})


def test_a_template_meets_plain_values_alone() -> None:
    import numpy as np

    odd = {"role": "user", "content": np.int64(7), "when": datetime.now(UTC), "flag": np.bool_(False), "pair": (1, "a")}
    source = "{{ messages[0] }}"
    [expected], _ = render_jinja_template([[odd]], chat_template=source)
    assert ChatTemplate(source).render([odd], {}) == (expected, [])
    assert "<datetime>" in expected


def test_an_empty_conversation_is_refused() -> None:
    with pytest.raises(ValueError, match="no message"):
        ChatTemplate("x").render([], {})
