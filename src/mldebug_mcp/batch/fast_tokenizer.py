"""A `tokenizer.json` and the settings beside it, as transformers loads them into its PreTrainedTokenizerFast.

Only the package `tokenizers` is needed. What the checks ask of a tokenizer has the names that it has there, so that a
tokenizer of transformers can stand in its place where there is no `tokenizer.json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mldebug_mcp.batch.tokenizer_files import ADDED, CONFIG, SPECIAL, TEMPLATE, TEMPLATES, WHOLE
from mldebug_mcp.limits import unhurried

if TYPE_CHECKING:
    from tokenizers import AddedToken
    from tokenizers import Tokenizer as Backend

NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
"""The special tokens that every tokenizer may have; models add names of their own, such as image_token."""
UNLIMITED = int(1e30)
"""The length of a text where none is given."""


class FastTokenizer:
    """A tokenizer.

    Args:
        backend: What was read from `tokenizer.json`, with all added tokens.
        named: The special tokens by name: bos_token, eos_token ...
        extra: Further special tokens.
        chat_template: The template, or several by name.
        model_max_length: The longest text, in tokens.
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
    """Return tokenizer_config.json, and where it lists no added tokens, what older versions wrote beside it."""
    settings = _read(folder / CONFIG)
    if not settings.get("extra_special_tokens"):
        settings["extra_special_tokens"] = settings.pop("additional_special_tokens", [])
    if "added_tokens_decoder" not in settings:
        older = _read(folder / SPECIAL)
        more = older.pop("extra_special_tokens", None) or older.pop("additional_special_tokens", [])
        settings |= {name: _as_special(token) for name, token in older.items() if name.endswith("_token")}
        settings["extra_special_tokens"] = settings["extra_special_tokens"] or (
            more if isinstance(more, dict) else [_as_special(token) for token in more]
        )
        special = {_text(token) for token in (*_special(settings)[0].values(), *_special(settings)[1])}
        settings["added_tokens_decoder"] = {
            number: {"content": text, "special": text in special, "normalized": text not in special}
            for text, number in _read(folder / ADDED).items()
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
    for one in (*named.values(), *extra):
        if _text(one) not in known:
            tokens.append(_token(_as_special(one) if isinstance(one, str) else one))
            known.add(_text(one))
    names = {_text(one) for one in named.values()}
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
    return {one["name"]: one["template"] for one in found} if isinstance(found, list) else found


def _read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return found
