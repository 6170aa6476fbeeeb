"""A tokenizer's files, copied for the library that loads them: known names only, and known keys of checked types.

A library that is given a folder opens whatever the configuration in it names (`vocab`, `gguf_file`, ...). So it never
gets the folder that the user named, but one of ours: the vocabulary files as they are, under the names that
`save_pretrained` gives them, and configurations written anew with the keys below. Keys not listed are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, TypeAdapter, ValidationError

from mldebug_mcp.access import EmptyFileError, is_file, is_folder, read_bytes
from mldebug_mcp.errors import InputError
from mldebug_mcp.folders import entries
from mldebug_mcp.temporary import temporary_folder

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
MAX_BYTES = 256 * 1024 * 1024
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
    """The keys of special_tokens_map.json beside the named tokens."""

    additional_special_tokens: _Tokens | None = None
    extra_special_tokens: _Tokens | _NamedTokens | None = None


_NAMED = TypeAdapter(_NamedTokens)
_ADDED_IDS = TypeAdapter(dict[_Content, _Id])


@contextmanager
def copied(place: Path, name: str) -> Iterator[Path]:
    """Yield a folder of ours with what may be loaded of a tokenizer.

    Args:
        place: The tokenizer's folder, or a file like tokenizer.json.
        name: What messages call it.

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
        room = MAX_BYTES
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
        with _told(f"{name}: {ADDED}"):
            _write(copy / ADDED, name, _ADDED_IDS.validate_python(added))
    _write_templates(folder, copy)


def _with_tokens(model: type[_Checked], settings: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the keys of a model, and the named special tokens where there can be any."""
    with _told(where):
        known = model.model_validate(settings).model_dump(by_alias=True, exclude_none=True, mode="json")
        if model is not _ModelConfig:
            named = {key: value for key, value in settings.items() if _NAMED_TOKEN.fullmatch(key)}
            named = {key: value for key, value in named.items() if key not in model.model_fields}
            tokens = _NAMED.validate_python(named)
            known |= _NAMED.dump_python(tokens, by_alias=True, exclude_none=True, mode="json")
    return known


@contextmanager
def _told(where: str) -> Iterator[None]:
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
