"""The pass over a data set as a Ray Data job, on a Ray of this machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.batch.kit import Maker
from tests.batch.test_data_sets import as_parquet, random_rows

from mldebug_mcp.cli import main
from mldebug_mcp.core.errors import InputError, MissingExtraError
from mldebug_mcp.judge import inspect_batch
from mldebug_mcp.judge.ray import on_ray

# Ray warns of settings of its own.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """A Ray of this machine that all tests here share."""
    pytest.importorskip("ray")
    with ExitStack() as stack:
        stack.enter_context(on_ray("local"))
        yield "local"


def faulty_rows() -> list[dict[str, Any]]:
    """Rows with a fault in each third: masked labels, an id outside the vocabulary, a repeat, one row far too long."""
    rows = random_rows(60)
    for row in (7, 8, 47):
        rows[row]["labels"] = [-100] * len(rows[row]["labels"])
    rows[50]["input_ids"][5] = rows[50]["labels"][5] = 40_000
    rows[41] = rows[3]
    rows[30] = random_rows(1, seed=9, length=6000)[0]
    return rows


def in_parts(rows: list[dict[str, Any]], folder: Path) -> Path:
    """Write rows as a folder of three parquet files, which are three parts."""
    folder.mkdir()
    for number in range(3):
        as_parquet(rows[number * 20 : number * 20 + 20], folder / f"{number}.parquet")
    return folder


def test_a_ray_job_gives_the_answer_of_one_machine(tmp_path: Path, config: Path, cluster: str) -> None:
    train = in_parts(faulty_rows(), tmp_path / "train")
    held_out = as_parquet([random_rows(60)[20], *random_rows(20, seed=3)], tmp_path / "eval.parquet")
    seen: list[int] = []
    on_cluster = inspect_batch(
        train, None, config, against=held_out, ray=cluster, progress=lambda rows, _: seen.append(rows)
    )
    assert seen == [20, 40, 60]
    assert {"row_labels_masked", "token_id_out_of_range", "duplicate_rows", "length_outlier", "split_leakage"} <= {
        one.check for one in on_cluster.findings
    }
    assert on_cluster == inspect_batch(train, None, config, against=held_out)


def test_a_sample_on_ray_is_the_sample_of_one_machine(tmp_path: Path, config: Path, cluster: str) -> None:
    train = in_parts(faulty_rows(), tmp_path / "train")
    on_cluster = inspect_batch(train, None, config, sample=15, ray=cluster)
    assert on_cluster.batch.rows == 15
    assert on_cluster == inspect_batch(train, None, config, sample=15)


@pytest.mark.parametrize("name", ["rows.jsonl", "saved"])
def test_conversations_and_their_tokenizer_reach_the_workers(name: str, tmp_path: Path, cluster: str) -> None:
    from datasets import Dataset

    made = Maker("chatml")
    rows = [{"messages": [{"role": "user", "content": f"Hello {row}"}, {"role": "assistant", "content": "Hi"}]}
            for row in range(12)]  # fmt: skip
    path = tmp_path / name
    if name == "saved":
        Dataset.from_list(rows).save_to_disk(str(path), num_shards=3)
    else:
        path.write_text("\n".join(map(json.dumps, rows)))
    on_cluster = inspect_batch(path, made.tokenizer, ray=cluster)
    assert on_cluster.batch.turns is not None
    assert on_cluster == inspect_batch(path, made.tokenizer)


def test_an_error_in_a_worker_is_one_line(tmp_path: Path, config: Path, cluster: str) -> None:
    folder = in_parts(faulty_rows(), tmp_path / "rows")
    as_parquet([{"other": 1}], folder / "1.parquet")
    with pytest.raises(InputError, match="no column of a batch") as raised:
        inspect_batch(folder, None, config, ray=cluster)
    assert "\n" not in str(raised.value)


def test_the_command_line_passes_the_address_on(
    tmp_path: Path, config: Path, cluster: str, capsys: pytest.CaptureFixture[str]
) -> None:
    train = in_parts(faulty_rows(), tmp_path / "train")
    assert main(["batch", str(train), "--model", str(config), "--ray", cluster, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(inspect_batch(train, None, config).to_json())


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "ray://127.0.0.1:99999"])
def test_an_address_where_nobody_answers_is_one_line(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pytest.importorskip("ray"), "is_initialized", lambda: False)
    path = as_parquet(random_rows(4), tmp_path / "rows.parquet")
    with pytest.raises(InputError, match="nobody answers"):
        inspect_batch(path, ray=address)


def test_without_ray_the_error_names_the_extra(tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    path = as_parquet(random_rows(4), tmp_path / "rows.parquet")
    with pytest.raises(MissingExtraError, match=r"mldebug-mcp\[ray\]"):
        inspect_batch(path, None, config, ray="local")
