"""The user's tokenizer: local files only, and never any code that comes with it.

A `tokenizer.json` needs the package `tokenizers` alone; vocabulary files without one need the class that transformers
has for them.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from mldebug_mcp.access import is_file, is_folder, require
from mldebug_mcp.batch.chat_template import ChatTemplate, Spans, trained_tokens
from mldebug_mcp.batch.fast_tokenizer import load_fast
from mldebug_mcp.batch.templates import Template, template_of
from mldebug_mcp.batch.time_limit import template_limit
from mldebug_mcp.batch.tokenizer_files import NAMES, WHOLE, copied
from mldebug_mcp.errors import InputError, is_failure
from mldebug_mcp.limits import unhurried
from mldebug_mcp.paths import expanded
from mldebug_mcp.text import shorten

_ENDS = frozenset(
    {
        "</s>", "<eos>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>",
        "<|im_end|>", "<|end|>", "<|return|>", "<｜end▁of▁sentence｜>",
    }
)  # fmt: skip
"""Tokens that end a text or a turn in the models that people fine-tune."""
HFTokenizer: TypeAlias = Any
"""A `FastTokenizer`, or a `PreTrainedTokenizerBase` of transformers, which is optional and imported late."""
_GENERATION = re.compile(r"\{%-?\s*generation\b")


class Tokenizer:
    """What the checks ask of a tokenizer. `hf` is what was loaded, with the names that transformers has for it."""

    def __init__(self, hf: HFTokenizer, name: str) -> None:
        self.hf = hf
        self.name = name
        self._pieces: dict[int, str] = {}
        self._templates: dict[str, ChatTemplate] = {}

    @cached_property
    def size(self) -> int:
        """How many ids it knows: the highest id and one, as an embedding would have to be."""
        with quiet():
            known = self.hf.get_vocab()
        return max(len(self.hf), max(known.values(), default=-1) + 1)

    @property
    def bos(self) -> int | None:
        """The id of the token that begins a text, or None if it has none."""
        return _id(self.hf.bos_token_id)

    @property
    def eos(self) -> int | None:
        """The id of the token that ends a text, or None."""
        return _id(self.hf.eos_token_id)

    @property
    def pad(self) -> int | None:
        """The id of the padding token, or None."""
        return _id(self.hf.pad_token_id)

    @property
    def mask(self) -> int | None:
        """The id of the mask token of a masked language model, or None."""
        return _id(self.hf.mask_token_id)

    @cached_property
    def special(self) -> Mapping[str, int]:
        """The special tokens with their ids: those that are never part of ordinary text."""
        found = {
            str(token.content): int(number) for number, token in self.hf.added_tokens_decoder.items() if token.special
        }
        for text in self.hf.all_special_tokens:
            found.setdefault(str(text), int(self.hf.convert_tokens_to_ids(text)))
        return found

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """The ids of the special tokens."""
        return frozenset(self.special.values())

    @property
    def chat_template(self) -> str | None:
        """The chat template, or None. Of several, the default one."""
        template = self.hf.chat_template
        if isinstance(template, dict):
            template = template.get("default") or next(iter(template.values()), None)
        return template if isinstance(template, str) and template.strip() else None

    @cached_property
    def template(self) -> Template | None:
        """The markers that the chat template writes around each role, or None if they cannot be told."""
        return None if self.chat_template is None else template_of(self.render, self.special)

    @cached_property
    def adds_bos(self) -> bool:
        """Whether tokenizing plain text puts the first token in front."""
        return self.bos is not None and self.encode("a")[:1] == [self.bos]

    @cached_property
    def template_adds_bos(self) -> bool:
        """Whether the chat template writes the first token."""
        return (
            self.template is not None and self.bos is not None and self.template.opening.startswith(self.hf.bos_token)
        )

    @property
    def template_end(self) -> int | None:
        """The id of the token that the chat template writes after the assistant's words, or None."""
        return None if self.template is None else self.special.get(self.template.end)

    @cached_property
    def ends(self) -> frozenset[int]:
        """The ids that end a text or the assistant's turn."""
        found = {self.eos} if self.eos is not None else set()
        if self.template_end is not None:
            found.add(self.template_end)
        # A model may know more ends than its tokenizer names (Llama 3 has three); padding is none of them.
        found |= {number for text, number in self.special.items() if text in _ENDS and number != self.pad}
        return frozenset(found)

    def encode(self, text: str, *, special: bool = True) -> list[int]:
        """Tokenize text as a call of the tokenizer does."""
        with quiet():
            return [int(one) for one in self.hf(text, add_special_tokens=special)["input_ids"]]

    def render(self, messages: Sequence[Mapping[str, object]], *, add_generation_prompt: bool = False) -> str:
        """Apply the chat template. Raises whatever the template raises, and TemplateTimeoutError if it hangs."""
        return self._rendered(messages, add_generation_prompt=add_generation_prompt)[0]

    def generation_mask(self, messages: Sequence[Mapping[str, object]]) -> list[bool] | None:
        """Return which tokens stand inside {% generation %} marks, or None if the template has none."""
        if self.chat_template is None or not _GENERATION.search(self.chat_template):
            return None
        text, spans = self._rendered(messages)
        with quiet():
            made = self.hf(text, add_special_tokens=False, return_offsets_mapping=True)
        return trained_tokens(made["offset_mapping"], spans)

    def _rendered(
        self, messages: Sequence[Mapping[str, object]], *, add_generation_prompt: bool = False
    ) -> tuple[str, Spans]:
        source = self.chat_template
        if source is None or (isinstance(self.hf.chat_template, dict) and "default" not in self.hf.chat_template):
            raise ValueError("the tokenizer has no chat template, or several of which none is called default")
        if source not in self._templates:
            self._templates[source] = ChatTemplate(source)
        with template_limit():
            return self._templates[source].render(
                messages, self.hf.special_tokens_map, add_generation_prompt=add_generation_prompt
            )

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the text of each token, spaces kept; an id that it does not know reads `<unknown id N>`."""
        return [self._piece(int(one)) for one in ids]

    def _piece(self, number: int) -> str:
        if number not in self._pieces:
            self._pieces[number] = self._decode(number)
        return self._pieces[number]

    def _decode(self, number: int) -> str:
        if not 0 <= number < self.size:
            return f"<unknown id {number}>"
        with quiet():
            token = self.hf.convert_ids_to_tokens(number)
            if token is None:
                return f"<unknown id {number}>"
            if number in self.special_ids:
                return str(token)
            text = str(self.hf.decode([number], clean_up_tokenization_spaces=False))
        # Sentencepiece drops the space of a first token when it decodes.
        return text if not str(token).startswith("▁") or text[:1].isspace() else str(token).replace("▁", " ")


def _id(value: object) -> int | None:
    return value if isinstance(value, int) else None


@contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers from writing warnings: standard error is the user's, and none of them is news."""
    logger = logging.getLogger("transformers")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)


def load_tokenizer(path: str | Path) -> Tokenizer:
    """Load a tokenizer from a folder or a `tokenizer.json`.

    The library that loads it is given copies of ours (`tokenizer_files`), never the folder itself.

    Raises:
        InputError: there is none, it is broken, it needs code of its own, or it needs transformers, which is not
            installed; the message says which.
    """
    place = expanded(path)
    name = shorten(str(path), 200)
    require(place)
    is_whole = is_folder(place)
    if not is_whole and not is_file(place):
        raise InputError(f"{name}: no such tokenizer; give a local folder or a tokenizer.json (nothing is downloaded)")
    if is_whole and not any(is_file(place / file) for file in NAMES):
        raise InputError(f"{name}: no tokenizer in this folder; it should hold tokenizer.json or tokenizer_config.json")
    with copied(place, name) as copy:
        return Tokenizer(_load(copy, name), name)


def _load(folder: Path, name: str) -> HFTokenizer:
    """Load what was copied; only where there is no tokenizer.json does a configuration choose the class."""
    try:
        return load_fast(folder) if (folder / WHOLE).is_file() else _load_by_class(folder, name)
    except InputError:
        raise
    except BaseException as error:
        if not is_failure(error):
            raise
        problem = shorten(str(error), 160) or type(error).__name__
    raise InputError(f"{name}: not a tokenizer that can be loaded ({problem}); give a folder with tokenizer.json")


def _load_by_class(folder: Path, name: str) -> HFTokenizer:
    try:
        with unhurried():
            from transformers import AutoTokenizer, PreTrainedTokenizerBase
    except ImportError:
        raise InputError(
            f"{name}: this tokenizer has no tokenizer.json, and of what it has the class is in transformers, which is "
            "not installed here: save it with tokenizer.save_pretrained(FOLDER) of transformers, which writes "
            "tokenizer.json, and give FOLDER; or pip install 'mldebug-mcp[batch]'"
        ) from None
    with quiet():
        loaded = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False, local_files_only=True)
    if not isinstance(loaded, PreTrainedTokenizerBase):
        kind = type(loaded).__name__
        raise InputError(f"{name}: a {kind} is no tokenizer but holds several; give the folder of one of them")
    return loaded
