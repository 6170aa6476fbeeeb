"""A tokenizer's files, copied for the library that loads them. Names and keys are known ones, of checked types."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, TypeAdapter, ValidationError

from mldebug_mcp.core.access import EmptyFileError, entries, is_file, is_folder, read_bytes
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.limits import unhurried
from mldebug_mcp.core.writing import temporary_folder

if TYPE_CHECKING:
    from tokenizers import AddedToken
    from tokenizers import Tokenizer as Backend

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


class FastTokenizer:
    """A tokenizer as read from `tokenizer.json`, with all added tokens; special ones by name, and `extra` ones.

    `model_max_length` is the longest text, in tokens; the chat template is one, or several by name.
    """

    def __init__(
        self,
        backend: Backend,
        named: Mapping[str, str],
        extra: Sequence[str],
        chat_template: str | dict[str, str] | None,
        model_max_length: int | float,
    ) -> None:
        self.backend = backend
        self.special_tokens_map = dict(named)
        self.all_special_tokens = list(dict.fromkeys([*named.values(), *extra]))
        self.chat_template = chat_template
        self.model_max_length = model_max_length

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
    """Load a tokenizer from a folder of ours (`tokenizer_files`) that holds a `tokenizer.json`.

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
    return FastTokenizer(
        backend,
        {name: _text(token) for name, token in named.items()},
        [_text(token) for token in extra],
        _chat_template(folder, settings),
        settings.get("model_max_length", settings.get("max_len", UNLIMITED)),
    )


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
