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
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn, TypeAlias

import numpy as np
from jinja2 import Environment, TemplateError, nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, TypeAdapter, ValidationError

from mldebug_mcp.batch.templates import Template, template_of
from mldebug_mcp.core.access import EmptyFileError, entries, is_file, is_folder, read_bytes, require
from mldebug_mcp.core.errors import InputError, is_failure
from mldebug_mcp.core.limits import unhurried
from mldebug_mcp.core.paths import expanded, temporary_folder
from mldebug_mcp.core.text import shorten

if TYPE_CHECKING:
    from tokenizers import AddedToken
    from tokenizers import Tokenizer as Backend

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
            "strftime_now": _formatted_now,
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


def _formatted_now(form: str) -> str:
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


MAX_TEMPLATE_SECONDS = 5.0
"""Seconds that a template may take. Chosen by hand: a conversation takes milliseconds."""
_TEMPLATE = "<template>"
"""The file name under which Jinja compiles a template."""
Traced: TypeAlias = object
"""What Python hands to a trace function besides the frame and the event."""


class TemplateTimeoutError(Exception):
    """A chat template ran for too long."""


@contextmanager
def template_limit() -> Iterator[None]:
    """Raise TemplateTimeoutError out of a template that runs for longer than `MAX_TEMPLATE_SECONDS`.

    The clock is read before each line of the compiled template. Unlike signals that works in any thread, and it needs
    no extra process for each rendering. It does not limit memory.
    """
    end = time.monotonic() + MAX_TEMPLATE_SECONDS

    def line(frame: FrameType, event: str, value: Traced) -> object:
        del frame, event, value
        if time.monotonic() > end:
            raise TemplateTimeoutError(f"it ran for more than {MAX_TEMPLATE_SECONDS:g} seconds")
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

    The library that loads it is given copies of ours, never the folder itself.

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


# A tokenizer's files, copied for the library that loads them: known names only, and known keys of checked types.
#
# A library that is given a folder opens whatever the configuration in it names (`vocab`, `gguf_file`, ...). So it never
# gets the folder that the user named, but one of ours: the vocabulary files as they are, under the names that
# `save_pretrained` gives them, and configurations written anew with the keys below. Keys not listed are left out.


CONFIG = "tokenizer_config.json"
WHOLE = "tokenizer.json"
SPECIAL = "special_tokens_map.json"
ADDED = "added_tokens.json"
NAMES = (WHOLE, CONFIG, "tokenizer.model", "vocab.json", "vocab.txt")
"""Files by which a folder is known to hold a tokenizer."""
_VOCABULARIES = (
    "vocab.json", "vocab.txt", "merges.txt", "bpe.codes", "tokenizer.model", "spiece.model", "spm.model",
    "sentencepiece.model", "sentencepiece.bpe.model", "tiktoken.model", "tekken.json",
)  # fmt: skip
TEMPLATE = "chat_template.jinja"
TEMPLATES = "additional_chat_templates"
MAX_VOCABULARY_BYTES = 256 * 1024 * 1024
"""Bytes of a tokenizer's vocabulary files together: many links to one file are as many copies."""
MAX_CONFIG_BYTES = 16 * 1024 * 1024
"""Bytes of one configuration: those of models with thousands of reserved tokens have some hundred kilobytes."""
MAX_TEMPLATE = 1024 * 1024
"""Bytes of one chat template: the longest in use have some ten kilobytes."""
MAX_TEMPLATES = 32
MAX_ID = 2**21
"""Ids of added tokens: eight times the largest vocabulary in use (262,144); loaders fill the ids below with tokens."""
_NAMED_TOKEN = re.compile(r"[a-z][a-z0-9_]{0,60}_token")
_Name = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$")]
_Content = Annotated[str, Field(max_length=1024)]
_Script = Annotated[str, Field(max_length=MAX_TEMPLATE)]
_Side = Literal["left", "right"]


class _Checked(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _AddedToken(_Checked):
    """A token as `AddedToken` is saved."""

    type: Literal["AddedToken"] | None = Field(None, alias="__type")
    content: _Content
    single_word: StrictBool | None = None
    lstrip: StrictBool | None = None
    rstrip: StrictBool | None = None
    normalized: StrictBool | None = None
    special: StrictBool | None = None


_Token = _Content | _AddedToken
_Tokens = Annotated[list[_Token], Field(max_length=MAX_ID)]
_NamedTokens = dict[Annotated[str, Field(pattern=f"^{_NAMED_TOKEN.pattern}$")], _Token | None]
_Id = Annotated[int, Field(ge=0, lt=MAX_ID)]


class _NamedTemplate(_Checked):
    name: _Name
    template: _Script


class _TokenizerConfig(_Checked):
    """The keys of tokenizer_config.json that are kept. None of them is a path."""

    tokenizer_class: _Name | None = None
    chat_template: _Script | dict[_Name, _Script] | list[_NamedTemplate] | None = None
    model_max_length: StrictInt | StrictFloat | None = None
    max_len: StrictInt | StrictFloat | None = None
    model_input_names: Annotated[list[_Name], Field(max_length=32)] | None = None
    padding_side: _Side | None = None
    truncation_side: _Side | None = None
    errors: Literal["strict", "ignore", "replace"] | None = None
    add_bos_token: StrictBool | None = None
    add_eos_token: StrictBool | None = None
    add_prefix_space: StrictBool | None = None
    clean_up_tokenization_spaces: StrictBool | None = None
    do_basic_tokenize: StrictBool | None = None
    do_lower_case: StrictBool | None = None
    keep_accents: StrictBool | None = None
    legacy: StrictBool | None = None
    remove_space: StrictBool | None = None
    split_special_tokens: StrictBool | None = None
    strip_accents: StrictBool | None = None
    tokenize_chinese_chars: StrictBool | None = None
    trim_offsets: StrictBool | None = None
    additional_special_tokens: _Tokens | None = None
    extra_special_tokens: _Tokens | _NamedTokens | None = None
    added_tokens_decoder: dict[_Id, _AddedToken] | None = None


class _ModelConfig(_Checked):
    """What loaders of tokenizers look up in config.json."""

    model_type: _Name | None = None
    transformers_version: _Name | Annotated[str, Field(pattern=r"^[0-9][0-9A-Za-z.+-]{0,40}$")] | None = None


class _TokenMap(_Checked):
    """The keys of special_tokens_map.json besides the named tokens."""

    additional_special_tokens: _Tokens | None = None
    extra_special_tokens: _Tokens | _NamedTokens | None = None


_NAMED_TOKENS = TypeAdapter(_NamedTokens)
_ADDED_IDS = TypeAdapter(dict[_Content, _Id])


@contextmanager
def copied(place: Path, name: str) -> Iterator[Path]:
    """Yield a folder of ours with what may be loaded of a tokenizer.

    Raises:
        InputError: a file is too large, not what its name says, or asks to run code.
    """
    folder = place if is_folder(place) else place.parent
    with temporary_folder("mldebug-tokenizer-") as made:
        copy = Path(made)
        whole = place if place != folder and place.name not in NAMES[1:] else folder / WHOLE
        files = {WHOLE: whole}
        if place == folder or is_file(folder / CONFIG):
            files |= {file: folder / file for file in _VOCABULARIES}
            _write_configurations(folder, copy, name)
        room = MAX_VOCABULARY_BYTES
        for file, source in files.items():
            if is_file(source):
                room -= _copy(source, copy / file, room)
        yield copy


def _copy(file: Path, target: Path, room: int) -> int:
    """Copy a file and return its size; raises InputError if it has more bytes than there is room for."""
    try:
        return target.write_bytes(read_bytes(file, room, "save the tokenizer again, with one vocabulary"))
    except EmptyFileError:
        target.touch()
        return 0


def _write_configurations(folder: Path, copy: Path, name: str) -> None:
    settings = _read(folder / CONFIG, name)
    if settings is not None:
        if settings.get("auto_map"):
            raise InputError(
                f"{name}: this tokenizer asks to run code of its own (auto_map), which is never done; "
                "remove auto_map from tokenizer_config.json if its tokenizer.json is enough, or give another tokenizer"
            )
        _write(copy / CONFIG, name, _with_tokens(_TokenizerConfig, settings, f"{name}: {CONFIG}"))
    for file, model in ((SPECIAL, _TokenMap), ("config.json", _ModelConfig)):
        if (found := _read(folder / file, name)) is not None:
            _write(copy / file, name, _with_tokens(model, found, f"{name}: {file}"))
    if (added := _read(folder / ADDED, name)) is not None:
        with _validated(f"{name}: {ADDED}"):
            _write(copy / ADDED, name, _ADDED_IDS.validate_python(added))
    _write_templates(folder, copy)


def _with_tokens(model: type[_Checked], settings: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the keys of a model, and the named special tokens where there can be any."""
    with _validated(where):
        known = model.model_validate(settings).model_dump(by_alias=True, exclude_none=True, mode="json")
        if model is not _ModelConfig:
            named = {key: value for key, value in settings.items() if _NAMED_TOKEN.fullmatch(key)}
            named = {key: value for key, value in named.items() if key not in model.model_fields}
            tokens = _NAMED_TOKENS.validate_python(named)
            known |= _NAMED_TOKENS.dump_python(tokens, by_alias=True, exclude_none=True, mode="json")
    return known


@contextmanager
def _validated(where: str) -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(part)[:40] for part in first["loc"][:3])
        raise InputError(f"{where}: {key}: {first['msg'][:200]}; correct it or save the tokenizer again") from None


def _read(file: Path, name: str) -> dict[str, Any] | None:
    """Return a configuration as it was written, or None where there is none."""
    if not is_file(file):
        return None
    try:
        settings = json.loads(read_bytes(file, MAX_CONFIG_BYTES))
    except InputError:
        raise InputError(f"{name}: {file.name} is empty or too large; save the tokenizer again") from None
    except (OSError, ValueError, RecursionError):
        raise InputError(f"{name}: {file.name} is not JSON; save the tokenizer again") from None
    if not isinstance(settings, dict):
        raise InputError(f"{name}: {file.name} is not a JSON object; save the tokenizer again")
    return settings


def _write(file: Path, name: str, settings: dict[str, Any]) -> None:
    try:
        file.write_text(json.dumps(settings), encoding="utf-8")
    except UnicodeError:
        raise InputError(f"{name}: {file.name} is not Unicode text; save the tokenizer again") from None


def _write_templates(folder: Path, copy: Path) -> None:
    """Copy the chat templates that stand in files of their own."""
    if is_file(folder / TEMPLATE):
        (copy / TEMPLATE).write_bytes(read_bytes(folder / TEMPLATE, MAX_TEMPLATE))
    if not is_folder(folder / TEMPLATES):
        return
    (copy / TEMPLATES).mkdir()
    scripts = (file for file in entries(folder / TEMPLATES) if file.suffix == ".jinja" and is_file(file))
    for file in islice(scripts, MAX_TEMPLATES):
        (copy / TEMPLATES / file.name).write_bytes(read_bytes(file, MAX_TEMPLATE))


# A `tokenizer.json` and the settings beside it, as transformers loads them into its PreTrainedTokenizerFast.
#
# Only the package `tokenizers` is needed. What the checks ask of a tokenizer has the names that it has there, so that a
# tokenizer of transformers can stand in its place where there is no `tokenizer.json`.


NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
"""The special tokens that every tokenizer may have; models add names of their own, such as image_token."""
UNLIMITED = int(1e30)
"""The length of a text where none is given."""


@dataclass(eq=False)
class FastTokenizer:
    """A tokenizer as read from `tokenizer.json`, with all added tokens; special ones by name, and others too.

    `model_max_length` is the longest text, in tokens; the chat template is one, or several by name.
    """

    backend: Backend
    special_tokens_map: dict[str, str]
    all_special_tokens: list[str]
    chat_template: str | dict[str, str] | None
    model_max_length: int | float

    def __len__(self) -> int:
        return int(self.backend.get_vocab_size(with_added_tokens=True))

    def __call__(
        self, text: str, *, add_special_tokens: bool = True, return_offsets_mapping: bool = False
    ) -> dict[str, Any]:
        """Return the ids of a text and, if asked, the characters that each token stands for."""
        made = self.backend.encode(text, add_special_tokens=add_special_tokens)
        return {"input_ids": made.ids} | ({"offset_mapping": made.offsets} if return_offsets_mapping else {})

    def get_vocab(self) -> dict[str, int]:
        """Return all tokens with their ids."""
        return dict(self.backend.get_vocab(with_added_tokens=True))

    @cached_property
    def added_tokens_decoder(self) -> dict[int, AddedToken]:
        """The tokens that were added to the model's vocabulary, by id."""
        return dict(self.backend.get_added_tokens_decoder())

    def convert_tokens_to_ids(self, token: str) -> int | None:
        """Return the id of a token, or that of the unknown token."""
        number = self.backend.token_to_id(token)
        unknown = self.special_tokens_map.get("unk_token")
        return number if number is not None or unknown is None else self.backend.token_to_id(unknown)

    def convert_ids_to_tokens(self, number: int) -> str | None:
        """Return the token of an id."""
        token: str | None = self.backend.id_to_token(number)
        return token

    def decode(self, ids: Sequence[int], *, clean_up_tokenization_spaces: bool = False) -> str:
        """Return the text of ids, special tokens too. Spaces are never cleaned up."""
        del clean_up_tokenization_spaces
        return str(self.backend.decode(list(ids), skip_special_tokens=False))

    def __getattr__(self, name: str) -> str | int | None:
        """Return a special token (`bos_token`) or its id (`bos_token_id`); None where it has none."""
        token = name.removesuffix("_id")
        if token not in NAMED:
            raise AttributeError(f"a tokenizer has no {name}")
        text = self.special_tokens_map.get(token)
        return text if token == name or text is None else self.convert_tokens_to_ids(text)


def load_fast(folder: Path) -> FastTokenizer:
    """Load a tokenizer from a folder of ours that holds a `tokenizer.json`.

    Raises:
        Exception: whatever the package raises that reads it.
    """
    with unhurried():
        from tokenizers import Tokenizer as Backend

    backend = Backend.from_file(str(folder / WHOLE))
    settings = _settings(folder, backend)
    named, extra = _special(settings)
    _add(backend, settings["added_tokens_decoder"], named, extra)
    backend.encode_special_tokens = bool(settings.get("split_special_tokens", False))
    backend.no_truncation()
    backend.no_padding()
    special = list(dict.fromkeys(map(_text, (*named.values(), *extra))))
    longest = settings.get("model_max_length", settings.get("max_len", UNLIMITED))
    texts = {name: _text(token) for name, token in named.items()}
    return FastTokenizer(backend, texts, special, _chat_template(folder, settings), longest)


def _settings(folder: Path, backend: Backend) -> dict[str, Any]:
    """Return tokenizer_config.json, and where it lists no added tokens, what older versions wrote next to it."""
    settings = _fast_tokenizer_read(folder / CONFIG)
    if not settings.get("extra_special_tokens"):
        settings["extra_special_tokens"] = settings.pop("additional_special_tokens", [])
    if "added_tokens_decoder" not in settings:
        older = _fast_tokenizer_read(folder / SPECIAL)
        more = older.pop("extra_special_tokens", None) or older.pop("additional_special_tokens", [])
        settings |= {name: _as_special(token) for name, token in older.items() if name.endswith("_token")}
        settings["extra_special_tokens"] = settings["extra_special_tokens"] or (
            more if isinstance(more, dict) else [_as_special(token) for token in more]
        )
        special = {_text(token) for token in (*_special(settings)[0].values(), *_special(settings)[1])}
        settings["added_tokens_decoder"] = {
            number: {"content": text, "special": text in special, "normalized": text not in special}
            for text, number in _fast_tokenizer_read(folder / ADDED).items()
        }
    if backend.padding is not None:
        settings.setdefault("pad_token", backend.padding["pad_token"])
    return settings


def _special(settings: Mapping[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    """Return the special tokens that have names, the usual ones first, and the others; as text or with properties."""
    extra = settings["extra_special_tokens"]
    given = {**settings, **extra} if isinstance(extra, dict) else settings
    own = [name for name in given if name.endswith("_token")]
    named = {name: given[name] for name in dict.fromkeys((*NAMED, *own)) if isinstance(given.get(name), (str, dict))}
    return named, [] if isinstance(extra, dict) else list(extra)


def _add(backend: Backend, listed: Mapping[str, Any], named: Mapping[str, Any], extra: Sequence[Any]) -> None:
    """Add to the vocabulary what the settings name and it lacks."""
    added = {int(number): _token(token) for number, token in listed.items()}
    tokens = [token for _, token in sorted(added.items())]
    known = {token.content for token in (*tokens, *backend.get_added_tokens_decoder().values())}
    for text in (*named.values(), *extra):
        if _text(text) not in known:
            tokens.append(_token(_as_special(text) if isinstance(text, str) else text))
            known.add(_text(text))
    names = {_text(special) for special in named.values()}
    for token in tokens:
        token.special = token.special or token.content in names
    backend.add_tokens(tokens)


def _token(token: Mapping[str, Any]) -> AddedToken:
    from tokenizers import AddedToken

    return AddedToken(**{key: value for key, value in token.items() if key != "__type"})


def _as_special(token: str | Mapping[str, Any]) -> dict[str, Any]:
    return {"content": token, "special": True} if isinstance(token, str) else {**token, "special": True}


def _text(token: str | Mapping[str, Any]) -> str:
    return token if isinstance(token, str) else str(token["content"])


def _chat_template(folder: Path, settings: Mapping[str, Any]) -> str | dict[str, str] | None:
    """Return the chat template: that of files of its own before that of the settings; several by name."""
    files = {"default": folder / TEMPLATE} if (folder / TEMPLATE).is_file() else {}
    files |= {file.stem: file for file in (folder / TEMPLATES).glob("*.jinja")}
    if files:
        texts = {name: file.read_text(encoding="utf-8") for name, file in files.items()}
        return texts["default"] if list(texts) == ["default"] else texts
    found: str | dict[str, str] | list[dict[str, str]] | None = settings.get("chat_template")
    return {template["name"]: template["template"] for template in found} if isinstance(found, list) else found


def _fast_tokenizer_read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return found
