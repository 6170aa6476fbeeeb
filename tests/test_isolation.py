"""What a stranger's file makes a library do: nothing outside the roots is opened, and the server is not held up."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from mldebug_mcp.batch import tokenizer as tokenizer_module
from mldebug_mcp.batch.tokenizer import copied, load_tokenizer
from mldebug_mcp.core.access import Access, confined
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.judge.batch import inspect_batch
from tests.hostile.tokenizers import SECRET, batch_of_ids, naming_a_file
from tests.stdio_process import Process, started

KEYS = ("vocab", "vocab_file", "merges", "gguf_file", "tokenizer_file", "tokenizer_object", "name_or_path")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return an allowed root beside which a secret stands."""
    root = tmp_path / "allowed"
    root.mkdir()
    (tmp_path / "secret.txt").write_text("\n".join(SECRET))
    batch_of_ids(root / "batch.json")
    return root


@pytest.fixture
def server(root: Path) -> Iterator[Process]:
    with started(root) as running:
        yield running


@contextmanager
def watched(opened: list[str]) -> Iterator[None]:
    """Note the paths of all files that this process opens or lists."""
    watching = True

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if watching and event == "open" and isinstance(arguments[0], str) and not arguments[2] & os.O_PATH:
            opened.append(os.path.realpath(arguments[0]))  # a file that is held has a path below /proc/self/fd

    sys.addaudithook(note)  # hooks stay for good
    try:
        yield
    finally:
        watching = False


def told(root: Path, tokenizer: Path) -> str:
    """Return all that a call says of a batch and a tokenizer."""
    try:
        return inspect_batch(root / "batch.json", tokenizer).model_dump_json()
    except InputError as error:
        return str(error)


@pytest.mark.parametrize("roots", [True, False], ids=["roots", "no roots"])
@pytest.mark.parametrize("whole", [True, False], ids=["tokenizer.json", "vocabulary files"])
@pytest.mark.parametrize("key", KEYS)
def test_no_key_of_a_tokenizer_opens_a_file_elsewhere(root: Path, key: str, whole: bool, roots: bool) -> None:
    tokenizer = naming_a_file(root / "tokenizer", key, root.parent / "secret.txt", whole=whole)
    opened: list[str] = []
    with confined(Access((str(root),) if roots else None)), watched(opened):
        assert "hunter" not in told(root, tokenizer)
    assert str(root.parent / "secret.txt") not in opened


def test_no_tokenizer_shows_a_client_a_file_outside_the_roots(root: Path, server: Process) -> None:
    for key, whole in product(KEYS, (True, False)):
        tokenizer = naming_a_file(root / f"tokenizer {key} {whole}", key, root.parent / "secret.txt", whole=whole)
        arguments = {"path": str(root / "batch.json"), "tokenizer": str(tokenizer), "detail": "full"}
        answer = server.ask("tools/call", name="inspect_batch", arguments=arguments)["result"]
        assert "hunter" not in json.dumps(answer), key


@pytest.mark.parametrize("file", ["tokenizer.json", "tokenizer_config.json", "vocab.txt", "chat_template.jinja"])
@pytest.mark.parametrize("kind", ["pipe", "device", "link out"])
def test_a_pipe_device_or_link_out_in_a_tokenizer_is_never_opened(root: Path, file: str, kind: str) -> None:
    tokenizer = naming_a_file(root / "tokenizer", "vocab", root / "none")
    place = tokenizer / file
    place.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to("/dev/zero" if kind == "device" else root.parent / "secret.txt")
    opened: list[str] = []
    with confined(Access((str(root),))), watched(opened):
        assert "hunter" not in told(root, tokenizer)
    assert not {str(place), "/dev/zero", str(root.parent / "secret.txt")} & set(opened)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"bos_token": 7}, "bos_token"),
        ({"tokenizer_class": "../evil"}, "tokenizer_class"),
        ({"chat_template": {"default": ["not", "text"]}}, "chat_template"),
        ({"added_tokens_decoder": {"99999999": {"content": "<a>"}}}, "added_tokens_decoder"),
        ({"padding_side": "up"}, "padding_side"),
    ],
)
def test_a_key_of_a_tokenizer_that_is_not_what_it_should_be_is_named(
    root: Path, settings: dict[str, Any], says: str
) -> None:
    tokenizer = naming_a_file(root / "tokenizer", "vocab", root / "none")
    (tokenizer / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(InputError, match=f"tokenizer_config.json: {says}.*save the tokenizer again"):
        inspect_batch(root / "batch.json", tokenizer)


def of_vocabulary_files(folder: Path) -> Path:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "paris", "is", "##sh", "red"]
    (folder / "vocab.txt").write_text("\n".join(words))
    settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": 512}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def test_a_tokenizer_of_vocabulary_files_alone_is_loaded_by_its_class(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    loaded = load_tokenizer(of_vocabulary_files(tmp_path))
    assert loaded.hf.convert_ids_to_tokens(loaded.encode("Paris is reddish")) == [
        "[CLS]",
        "paris",
        "is",
        "[UNK]",
        "[SEP]",
    ]
    assert loaded.hf.model_max_length == 512


def test_where_a_class_of_transformers_is_needed_and_not_there_the_error_says_how_to_do_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(InputError, match=r"no tokenizer.json.*save_pretrained.*mldebug-mcp\[batch\]"):
        load_tokenizer(of_vocabulary_files(tmp_path))


def test_a_tokenizer_json_is_loaded_and_its_template_rendered_without_transformers(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    tokenizer = naming_a_file(root / "tokenizer", "vocab", root / "none", whole=True)
    (tokenizer / "chat_template.jinja").write_text(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    )
    rows = [{"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hello"}]}] * 3
    (root / "chats.json").write_text(json.dumps(rows))
    summary = inspect_batch(root / "chats.json", tokenizer).batch
    assert (summary.unit, summary.rows, summary.vocabulary_size) == ("tokens", 3, 28)
    assert summary.trained_tokens


def test_a_tokenizer_of_two_thousand_links_is_copied_up_to_a_bound(root: Path) -> None:
    tokenizer = naming_a_file(root / "tokenizer", "vocab", root / "none")
    (tokenizer / "additional_chat_templates").mkdir()
    (root / "one.jinja").write_text("{{ messages }}")
    for number in range(2000):
        (tokenizer / "additional_chat_templates" / f"{number}.jinja").symlink_to(root / "one.jinja")
        (tokenizer / f"vocab{number}.txt").symlink_to(root / "one.jinja")
    with copied(tokenizer, "tokenizer") as copy:
        assert len([file for file in copy.rglob("*") if file.is_file()]) <= 32 + 15


def test_vocabularies_that_are_links_to_one_file_are_bounded_together(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokenizer_module, "MAX_VOCABULARY_BYTES", 1000)
    tokenizer = naming_a_file(root / "tokenizer", "vocab", root / "none")
    (root / "words").write_text("word\n" * 100)
    for name in ("merges.txt", "bpe.codes", "spm.model"):
        (tokenizer / name).symlink_to(root / "words")
    assert "too large to read whole" in told(root, tokenizer)


def test_a_class_that_holds_several_tokenizers_is_refused_in_one_line(root: Path) -> None:
    pytest.importorskip("transformers")
    of_vocabulary_files(root)
    (root / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "RagTokenizer"}))
    with pytest.raises(InputError, match="RagTokenizer holds several tokenizers"):
        inspect_batch(root / "batch.json", root)
