"""Input that cannot be used, or wants to do harm: a clear line or a finding, and no code of its own is run."""

from __future__ import annotations

import json
import pickle
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.batch.kit import Inspect, Maker
from tests.hostile.pickles import CALLS, Calling

from mldebug_mcp.batch.formats import tables
from mldebug_mcp.batch.tokenizer import load_tokenizer
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.judge import inspect_batch


@pytest.mark.parametrize("name", ["batch.pt", "batch.bin"])
def test_a_pickle_is_refused_and_not_run(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(pickle.dumps({"input_ids": Calling()}))
    with pytest.raises(InputError, match="nothing in it was run"):
        inspect_batch(tmp_path / name)
    assert not CALLS


def test_a_torch_archive_with_code_is_refused(tmp_path: Path) -> None:
    import torch

    torch.save({"input_ids": Calling()}, tmp_path / "batch.pt")
    with pytest.raises(InputError, match="nothing in it was run"):
        inspect_batch(tmp_path / "batch.pt")
    assert not CALLS


@pytest.mark.parametrize("name", ["batch.pt", "batch.npz"])
def test_a_small_file_that_stands_for_many_numbers_is_refused(name: str, tmp_path: Path) -> None:
    import torch

    shape = (128, 80_000)
    if name == "batch.pt":
        torch.save({"input_ids": torch.zeros(1, dtype=torch.int64).expand(shape)}, tmp_path / name)
    else:
        np.savez_compressed(tmp_path / name, input_ids=np.zeros(shape, np.int64))
    with pytest.raises(InputError, match=r"bytes that stand for 81,920,\d+; save what is in it as parquet"):
        inspect_batch(tmp_path / name)


def test_pickled_objects_in_npz_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "batch.npz", input_ids=np.array([Calling()], dtype=object))
    with pytest.raises(InputError, match="plain arrays"):
        inspect_batch(tmp_path / "batch.npz")
    assert not CALLS


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("missing.json", None, "no such file or folder"),
        ("empty.json", b"", "empty"),
        ("spaces.json", b"  \n ", "empty"),
        ("noise.bin", bytes(range(256)) * 8, "not a format"),
        ("text.txt", b"step 1 loss 2.0\nstep 2 loss 1.9\n", "not a format"),
        ("broken.json", b'{"input_ids": [[1, 2', "not JSON"),
        ("deep.json", b"[" * 100_000, "not JSON"),
        ("bare.json", b"x [[0.5, NaN]],, 1", "no column of numbers"),
        ("printed.json", b"{'input_ids': tensor([[1, 2, ..., 3]])}", "left numbers out"),
        ("other.json", b'{"loss": "high", "step": "one"}', "none of its columns"),
        ("number.json", b"[1, 2, 3]", "no rows"),
        ("words.json", b'{"input_ids": [["a", "b"]]}', "whole numbers"),
        ("fractions.json", b'{"input_ids": [[1.5, 2.5]]}', "whole numbers"),
        ("mixed.json", b'{"input_ids": [[1, 2], 3]}', "whole numbers"),
        ("broken.parquet", b"PAR1 and then nothing of the kind", "broken parquet"),
        ("broken.arrow", b"ARROW1 and then nothing of the kind", "broken Arrow"),
        ("broken.npz", b"PK\x03\x04 and then nothing", "plain arrays"),
        ("broken.safetensors", (8).to_bytes(8, "little") + b"{not json", "broken safetensors"),
        ("huge.safetensors", (2**26).to_bytes(8, "little") + b'{"a": 1}', "broken safetensors"),
    ],
)
def test_files_that_are_no_batch_get_a_line(name: str, content: bytes | None, says: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=says) as caught:
        inspect_batch(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_json_of_more_lists_than_are_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MAX_LISTS", 100)
    (tmp_path / "batch.json").write_text('{"input_ids": [' + "[]," * 100 + "[]]}")
    with pytest.raises(InputError, match="more than 100 lists"):
        inspect_batch(tmp_path / "batch.json")


def test_a_column_of_thousands_of_characters_is_named_in_short(tmp_path: Path) -> None:
    (tmp_path / "batch.json").write_text(json.dumps({f"rejected_{'x' * 5000}_input_ids": 1e300}))
    with pytest.raises(InputError, match="whole numbers") as caught:
        inspect_batch(tmp_path / "batch.json")
    assert len(str(caught.value)) < 600


def test_a_safetensors_header_that_lies_is_refused(tmp_path: Path) -> None:
    header = json.dumps({"input_ids": {"dtype": "I64", "shape": [10**3, 10**3], "data_offsets": [0, 8]}}).encode()
    (tmp_path / "lie.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 8)
    with pytest.raises(InputError, match="broken safetensors"):
        inspect_batch(tmp_path / "lie.safetensors")


def test_an_archive_of_something_else_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "other.npz", "w") as archive:
        archive.writestr("input_ids.npy", b"x")
    with pytest.raises(InputError, match="plain arrays"):
        inspect_batch(tmp_path / "other.npz")


def test_a_folder_without_data_and_a_device_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="folder without"):
        inspect_batch(tmp_path)
    with pytest.raises(InputError, match="regular file"):
        inspect_batch("/dev/zero")


def test_an_unknown_purpose_names_the_known_ones(inspect: Inspect) -> None:
    with pytest.raises(InputError, match="use one of: auto, sft"):
        inspect({"input_ids": [[1, 2]]}, purpose="training")


def test_a_missing_tokenizer_is_a_line(tmp_path: Path) -> None:
    (tmp_path / "batch.json").write_text('{"input_ids": [[1, 2]]}')
    (tmp_path / "folder").mkdir()
    (tmp_path / "broken.json").write_text("{}")
    for name, says in (
        ("nowhere", "no such tokenizer"),
        ("folder", "no tokenizer in this folder"),
        ("broken.json", "not a tokenizer"),
    ):
        with pytest.raises(InputError, match=says):
            inspect_batch(tmp_path / "batch.json", tmp_path / name)


def test_a_tokenizer_that_asks_for_code_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "ran"
    Maker("chatml").hf.save_pretrained(tmp_path / "tokenizer")
    config = tmp_path / "tokenizer" / "tokenizer_config.json"
    settings = json.loads(config.read_text())
    settings["auto_map"] = {"AutoTokenizer": ["evil.Evil", None]}
    config.write_text(json.dumps(settings))
    (tmp_path / "tokenizer" / "evil.py").write_text(f"open({str(target)!r}, 'w').write('ran')")
    with pytest.raises(InputError, match="asks to run code"):
        load_tokenizer(tmp_path / "tokenizer")
    assert not target.exists()


def test_a_tokenizer_loads_from_its_folder_and_from_its_file(tmp_path: Path) -> None:
    made = Maker("llama3")
    made.hf.save_pretrained(tmp_path / "tokenizer")
    for place in (tmp_path / "tokenizer", tmp_path / "tokenizer" / "tokenizer.json"):
        loaded = load_tokenizer(place)
        assert (loaded.bos, loaded.pad, loaded.ends) == (made.tokenizer.bos, made.tokenizer.pad, made.tokenizer.ends)


def test_a_tokenizer_that_does_not_fit_is_a_finding(inspect: Inspect) -> None:
    made = Maker("chatml")
    rows = {"input_ids": [[500_000 + row, 7, 8, 9] for row in range(4)]}
    assert inspect(rows, made.tokenizer)["token_id_out_of_range"] == "error"


def test_a_template_that_raises_is_a_line(inspect: Inspect) -> None:
    from tests.batch.kit import make_hf

    from mldebug_mcp.batch.tokenizer import Tokenizer

    hf = make_hf("chatml")
    hf.chat_template = "{{ raise_exception('no such role') }}"
    with pytest.raises(InputError, match="row 0: the chat template or tokenizer failed: no such role"):
        inspect([{"messages": [{"role": "user", "content": "Hello"}]}], Tokenizer(hf, "x"))
    assert inspect([{"input_ids": [5, 6, 7]}], Tokenizer(hf, "x")) == {}


def test_a_template_that_takes_longer_than_it_may_is_a_line(inspect: Inspect, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.batch.kit import make_hf

    from mldebug_mcp.batch import tokenizer
    from mldebug_mcp.batch.tokenizer import Tokenizer

    monkeypatch.setattr(tokenizer, "MAX_TEMPLATE_SECONDS", 0.0)
    before = sys.gettrace()
    loop = "{% for a in range(99) %}{% for b in range(99) %}{% endfor %}{% endfor %}"
    for template in (loop, loop + "{% generation %}{% endgeneration %}"):
        hf = make_hf("chatml")
        hf.chat_template = template
        with pytest.raises(InputError, match="it ran for more than 0"):
            inspect([{"messages": [{"role": "user", "content": "Hello"}]}], Tokenizer(hf, "x"))
    assert sys.gettrace() is before
    assert inspect([{"input_ids": [5, 6, 7]}], Tokenizer(hf, "x")) == {}


@pytest.mark.parametrize(
    "rows",
    [
        {"input_ids": [[]]},
        {"input_ids": [[], []], "labels": [[], []], "attention_mask": [[], []]},
        {"input_ids": [[1]], "labels": [[-100]], "position_ids": [[5]]},
        {"input_ids": [[10**30, -(10**30), 3]], "labels": [[10**30, -100, 3]]},
        {"input_ids": [[0, 0, 0]], "attention_mask": [[0, 0, 0]], "labels": [[0, 0, 0]]},
        {"input_ids": [[1, 2]], "attention_mask": [[7, -3]], "loss_mask": [[0, 9]]},
        {"chosen_input_ids": [[1, 2]], "labels": [[1]]},
        {"chosen_input_ids": [[1, 2]], "rejected_input_ids": [[1, 2], [3]]},
        {"prompt_input_ids": [[1, 2]], "completion_ids": [[3]], "completion_mask": [[1]]},
        {"pixel_values": [[[float("inf")]], [[1.0]]], "labels": [None, 1]},
        {"input_ids": [1, 2, 3], "labels": [1, 2, 3]},
        {"input_ids": [[1, 2], None], "labels": [[1, 2], [3]]},
        {"input_ids": [[1, 2, 3]], "attention_mask": [[[1, 1, 1], [0, 1, 1], [0, 0, 1]]]},
        {"labels": [0, 1, 2], "pixel_values": "none"},
    ],
)
@pytest.mark.parametrize("purpose", ["auto", "sft", "pretraining", "dpo", "generation", "classification", "vlm"])
def test_odd_batches_never_break_a_check(rows: dict[str, Any], purpose: str, inspect: Inspect) -> None:
    tokenizers = (None, Maker("llama3").tokenizer)
    assert all(isinstance(inspect(rows, tokenizer, purpose), dict) for tokenizer in tokenizers)
