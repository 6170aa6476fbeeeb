"""The user's tokenizer, from local files alone and without any code that comes with it.

Chat templates are rendered in Jinja's sandbox, within a time limit.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TypeAlias

import numpy as np
from jinja2 import Environment, TemplateError, nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from mldebug_mcp.batch.templates import Template, template_of
from mldebug_mcp.batch.tokenizer_files import NAMES, WHOLE, copied, load_fast
from mldebug_mcp.core.access import is_file, is_folder, require
from mldebug_mcp.core.errors import InputError, is_failure
from mldebug_mcp.core.limits import unhurried
from mldebug_mcp.core.paths import expanded
from mldebug_mcp.core.text import shorten

# Chat templates rendered as transformers renders them: in Jinja's sandbox, with the names and tags that it documents.
#
# Source: https://huggingface.co/docs/transformers/chat_templating_writing


Spans = list[tuple[int, int]]
_REASONING = ("reasoning_content", "thinking", "reasoning")
"""The names under which messages hold what was thought, by precedence."""


class ChatTemplate:
    """A compiled chat template. Rendering it keeps state: not for several threads at once."""

    def __init__(self, source: str) -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
        )
        environment.filters["tojson"] = _to_json
        environment.globals |= {
            "raise_exception": _raise,
            "strftime_now": _now,
            "dict": _Dicts(),
            "namespace": _Namespace,
        }
        self._template = environment.from_string(source)
        self._generation = next(
            extension for extension in environment.extensions.values() if isinstance(extension, _Generation)
        )

    def render(
        self, messages: Sequence[Mapping[str, object]], names: Mapping[str, str], *, add_generation_prompt: bool = False
    ) -> tuple[str, Spans]:
        """Return a conversation as text, and the characters of it that stand inside {% generation %} marks.

        Templates write special tokens by name, such as bos_token.

        Raises:
            ValueError: the list of messages is empty.
            Exception: whatever the template raises.
        """
        if not messages:
            raise ValueError("the conversation has no message to render")
        self._generation.begin()
        for part in self._template.generate(
            messages=[_message(message) for message in messages],
            tools=None,
            documents=None,
            add_generation_prompt=add_generation_prompt,
            **names,
        ):
            self._generation.written.append(part)
        return "".join(self._generation.written), self._generation.spans


def trained_tokens(offsets: Sequence[tuple[int, int]], spans: Spans) -> list[bool]:
    """Return which tokens stand inside spans of characters, as transformers' assistant mask has it.

    Both give the first character and the one behind the last.
    """
    token_at: dict[int, int] = {}
    for token, (start, stop) in enumerate(offsets):
        for place in range(start, stop):
            token_at.setdefault(place, token)
    mask = [False] * len(offsets)
    for start, stop in spans:
        first, last = token_at.get(start), token_at.get(stop - 1)
        if first is None:
            break
        # Also if the last token is the first of all, the mask goes to the end: training with transformers has it so.
        end = last + 1 if last else len(mask)
        mask[first:end] = [True] * (end - first)
    return mask


class _Generation(Extension):
    """The tag {% generation %}, which marks what the assistant says."""

    tags = {"generation"}  # noqa: RUF012 - as Jinja declares it

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.begin()

    def begin(self) -> None:
        """Forget what was rendered before."""
        self.written: list[str] = []
        self.spans: Spans = []

    def parse(self, parser: Parser) -> nodes.Node:
        """Take the tag as a call with what it encloses."""
        tag = next(parser.stream)
        inside = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("enclosed"), [], [], inside).set_lineno(tag.lineno)

    def enclosed(self, caller: Macro) -> str:
        """Return what is enclosed, and note where it stands."""
        text = str(caller())
        before = sum(map(len, self.written))
        self.spans.append((before, before + len(text)))
        return text


class _Dicts:
    """`dict` without its attributes, which would lead out of the sandbox."""

    def __call__(self, *given: Any, **named: Any) -> dict[Any, Any]:  # noqa: ANN401 - whatever a template says
        return dict(*given, **named)

    def fromkeys(self, keys: Iterable[Any], value: Any = None) -> dict[Any, Any]:  # noqa: ANN401
        return dict.fromkeys(keys, value)


class _Namespace(Namespace):
    """`namespace` without names that begin with an underscore, which are Python's own."""

    def __init__(*args: Any, **named: Any) -> None:  # noqa: ANN401 - `self` may be among the names
        for name in dict(*args[1:], **named):
            _check_name(name)
        Namespace.__init__(*args, **named)

    def __setitem__(self, name: str, value: Any) -> None:  # noqa: ANN401
        _check_name(name)
        super().__setitem__(name, value)


def _check_name(name: object) -> None:
    if str(name).startswith("_"):
        raise SecurityError(f"a namespace of a chat template may hold no name like {name!r}; rename it")


def _raise(message: object) -> NoReturn:
    raise TemplateError(str(message))


def _now(form: str) -> str:
    return datetime.now().strftime(form)


def _to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    # Jinja's own filter writes < and > for HTML.
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _message(message: Mapping[str, object]) -> dict[str, object]:
    """Return a message as templates get it: without what is None, of plain types, its reasoning by each name in use."""
    plain = {str(key): _plain(value) for key, value in message.items() if value is not None}
    thought = next((plain[name] for name in _REASONING if name in plain), None)
    return plain if thought is None else {"thinking": thought, **plain, "reasoning_content": thought}


def _plain(value: object) -> object:
    """Return a value built of plain types alone: an object of any other has methods that a template could call."""
    if isinstance(value, Mapping):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    if isinstance(value, np.generic):
        value = value.item()
    return value if value is None or type(value) in (str, int, float, bool) else f"<{type(value).__name__}>"


# A limit on how long a chat template may run: it is a program that comes with the tokenizer, and may loop forever.


SECONDS = 5.0
"""Chosen by hand: a conversation takes milliseconds."""
_TEMPLATE = "<template>"
"""The file name under which Jinja compiles a template."""

Traced: TypeAlias = object
"""What Python hands to a trace function besides the frame and the event."""


class TemplateTimeoutError(Exception):
    """A chat template ran for too long."""


@contextmanager
def template_limit() -> Iterator[None]:
    """Raise TemplateTimeoutError out of a template that runs for longer than `SECONDS`.

    The clock is read before each line of the compiled template. Unlike signals that works in any thread, and it needs
    no extra process for each rendering. It does not limit memory.
    """
    end = time.monotonic() + SECONDS

    def line(frame: FrameType, event: str, value: Traced) -> object:
        del frame, event, value
        if time.monotonic() > end:
            raise TemplateTimeoutError(f"it ran for more than {SECONDS:g} seconds")
        return line

    def call(frame: FrameType, event: str, value: Traced) -> object:
        del event, value
        return line if frame.f_code.co_filename == _TEMPLATE else None

    before = sys.gettrace()
    sys.settrace(call)  # type: ignore[arg-type]
    try:
        yield
    finally:
        sys.settrace(before)


# The user's tokenizer: local files only, and never any code that comes with it.
#
# A `tokenizer.json` needs the package `tokenizers` alone; vocabulary files without one need the class that transformers
# has for them.


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
        """The id of the token that begins a text (BERT's is its class token), or None if it has none."""
        first = _id(self.hf.bos_token_id)
        return first if first is not None else _id(self.hf.cls_token_id)

    @property
    def bos_text(self) -> str:
        """The text of the token that begins a text, or "" if it has none."""
        return str(self.hf.bos_token or self.hf.cls_token or "")

    @property
    def eos(self) -> int | None:
        """The id of the token that ends a text, or None."""
        return _id(self.hf.eos_token_id)

    @property
    def pad(self) -> int | None:
        """The id of the padding token, or None."""
        return _id(self.hf.pad_token_id)

    @property
    def unknown(self) -> int | None:
        """The id that stands for text that no token covers, or None."""
        return _id(self.hf.unk_token_id)

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
        """The ids of the special tokens; what stands for words that the vocabulary lacks is none."""
        return frozenset(self.special.values()) - {self.unknown_alone}

    @cached_property
    def unknown_alone(self) -> int | None:
        """The id that stands for text that no token covers, unless it begins, ends or pads texts too."""
        return None if self.unknown in {*self.ends, self.bos, self.pad, self.mask} else self.unknown

    @property
    def chat_template(self) -> str | None:
        """The chat template, or None. Of several, the default one."""
        template = self.hf.chat_template
        if isinstance(template, dict):
            template = template.get("default") or next(iter(template.values()), None)
        return template if isinstance(template, str) and template.strip() else None

    @cached_property
    def template(self) -> Template | None:
        """The markers that the chat template writes around each role, or None if unknown."""
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
            return [int(id_) for id_ in self.hf(text, add_special_tokens=special)["input_ids"]]

    def render(self, messages: Sequence[Mapping[str, object]], *, add_generation_prompt: bool = False) -> str:
        """Apply the chat template. Raises whatever the template raises, and TemplateTimeoutError if it hangs."""
        return self._rendered(messages, add_generation_prompt=add_generation_prompt)[0]

    @property
    def marks_generation(self) -> bool:
        """Whether the chat template has {% generation %} marks."""
        return self.chat_template is not None and bool(_GENERATION.search(self.chat_template))

    def generation_mask(self, messages: Sequence[Mapping[str, object]]) -> list[bool] | None:
        """Return which tokens stand inside {% generation %} marks, or None if the template has none."""
        if not self.marks_generation:
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
            raise ValueError("the tokenizer has no chat template, or several without one called default")
        if source not in self._templates:
            self._templates[source] = ChatTemplate(source)
        with template_limit():
            return self._templates[source].render(
                messages, self.hf.special_tokens_map, add_generation_prompt=add_generation_prompt
            )

    def text(self, ids: Sequence[int]) -> str:
        """Return the text that ids stand for together."""
        with quiet():
            return str(self.hf.decode(list(ids), clean_up_tokenization_spaces=False))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the text of each token, spaces kept; an id that it does not know reads `<unknown id N>`."""
        return [self._piece(int(id_)) for id_ in ids]

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
    """Load what was copied; a configuration chooses the class only without tokenizer.json."""
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
        raise InputError(f"{name}: a {kind} holds several tokenizers; give the folder of one of them")
    return loaded
