"""Whole data sets: read in pieces, sampled, compared with another split."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.batch.kit import Maker

from mldebug_mcp.batch.formats import tables
from mldebug_mcp.batch.read import open_data
from mldebug_mcp.cli import main
from mldebug_mcp.judge import batch_pass, inspect_batch
from mldebug_mcp.judge.batch_pass import BatchPass, pass_over
from mldebug_mcp.models import BatchInspection
from mldebug_mcp.report.concise import concise_inspection

EOS, PAD = 2, 0


def random_rows(count: int, seed: int = 0, length: int = 300) -> list[dict[str, Any]]:
    chance = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        ids = [*chance.integers(3, 32_000, int(chance.integers(length // 2, length))).tolist(), EOS]
        rows.append({"input_ids": ids, "labels": [-100] * 20 + ids[20:]})
    return rows


def as_parquet(rows: list[dict[str, Any]], path: Path) -> Path:
    from pyarrow import parquet

    parquet.write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_BYTES", 20_000)


def by_check(answer: BatchInspection) -> dict[str, Any]:
    return {one.check: one for one in answer.findings}


@pytest.mark.usefixtures("small_pieces")
def test_pieces_give_the_answer_of_the_whole(tmp_path: Path, config: Path) -> None:
    rows = random_rows(60)
    rows[7]["labels"] = [-100] * len(rows[7]["labels"])
    rows[50]["input_ids"][5] = rows[50]["labels"][5] = 40_000
    rows[41] = rows[3]
    seen: list[int] = []
    path = as_parquet(rows, tmp_path / "rows.parquet")
    answer = inspect_batch(path, None, config, "sft", progress=lambda count, _: seen.append(count))
    assert len(seen) > 3
    assert seen[-1] == answer.batch.rows == 60
    assert answer.batch.tokens == sum(len(row["input_ids"]) for row in rows)
    assert answer.batch.trained_tokens == sum(label != -100 for row in rows for label in row["labels"])
    found = by_check(answer)
    assert found["row_labels_masked"].rows == [7]
    assert found["token_id_out_of_range"].rows == [50]
    assert found["duplicate_rows"].rows == [3, 41]
    assert sum(answer.batch.lengths.histogram.values()) == 60


@pytest.mark.usefixtures("small_pieces")
def test_nothing_is_trained_on_only_if_no_piece_is(tmp_path: Path, config: Path) -> None:
    rows = random_rows(60)
    for row in rows[:40]:
        row["labels"] = [-100] * len(row["labels"])
    found = by_check(inspect_batch(as_parquet(rows, tmp_path / "rows.parquet"), None, config, "sft"))
    assert "all_labels_masked" not in found
    assert found["row_labels_masked"].row_count == 40
    for row in rows:
        row["labels"] = [-100] * len(row["labels"])
    found = by_check(inspect_batch(as_parquet(rows, tmp_path / "rows.parquet"), None, config, "sft"))
    assert found["all_labels_masked"].row_count == 60
    assert "row_labels_masked" not in found


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("name", ["rows.parquet", "saved"])
def test_passes_over_parts_add_up_to_the_pass_over_all(
    name: str, tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datasets import Dataset
    from pyarrow import parquet

    monkeypatch.setattr(batch_pass, "MAX_ROW_KEYS", 50)
    monkeypatch.setattr(batch_pass, "MAX_ANCHORS", 500)
    rows = random_rows(60)
    for row in (7, 44):
        rows[row]["labels"] = [-100] * len(rows[row]["labels"])
    rows += rows[:20]
    path = tmp_path / name
    if name == "saved":
        Dataset.from_list(rows).save_to_disk(str(path), num_shards=4)
    else:
        parquet.write_table(pa.Table.from_pylist(rows), path, row_group_size=9)
        monkeypatch.setattr("mldebug_mcp.batch.formats.tables.MOST_BYTES", 30_000)
    data = open_data(path, None, config, "sft")
    whole, merged, parts = pass_over(data), BatchPass(), data.parts()
    assert len(parts) > 3
    for part in parts:
        one = BatchPass()
        for batch in data.batches_of(part):
            one.add(batch)
        merged.merge(one)
    ends = [each.prints.overlap() for each in (whole, merged)]
    assert len(ends[0].exact)
    assert np.array_equal(ends[0].exact, ends[1].exact)
    assert np.array_equal(ends[0].near, ends[1].near)
    for each, end in zip((whole, merged), ends, strict=True):
        each.finish(end)
    assert whole.tallies == merged.tallies
    assert whole.tallies["row_labels_masked"].rows == [7, 44, 67]
    assert whole.tallies["duplicate_rows"].pieces == 1
    assert whole.counts.totals.lengths[""].counts == merged.counts.totals.lengths[""].counts


@pytest.mark.usefixtures("small_pieces")
def test_classes_are_counted_over_all_pieces(tmp_path: Path) -> None:
    rows = [{"input_ids": [5, 6, 7] * 50, "label": row // 60} for row in range(120)]
    sorted_by_class = as_parquet(rows, tmp_path / "rows.parquet")
    pieces: list[int] = []
    answer = inspect_batch(sorted_by_class, progress=lambda count, _: pieces.append(count))
    assert len(pieces) > 3
    assert "class_imbalance" not in by_check(answer)
    rows += [{"input_ids": [5, 6, 7] * 50, "label": 0}] * 1200
    found = by_check(inspect_batch(as_parquet(rows, tmp_path / "rows.parquet")))["class_imbalance"]
    assert found.summary == "95% of 1320 labels are class 0"


@pytest.mark.usefixtures("small_pieces")
def test_a_row_is_far_too_long_by_the_lengths_of_all_pieces(tmp_path: Path, config: Path) -> None:
    short, long = random_rows(40, length=40), random_rows(40, seed=1, length=600)
    sorted_by_length = as_parquet([*short, *long[:1], *long], tmp_path / "rows.parquet")
    assert "length_outlier" not in by_check(inspect_batch(sorted_by_length, None, config))
    found = by_check(inspect_batch(as_parquet([*short, *long[:1]], tmp_path / "rows.parquet"), None, config))
    assert found["length_outlier"].rows == [40]


@pytest.mark.parametrize("name", ["rows.parquet", "rows.jsonl", "saved"])
def test_a_sample_agrees_with_the_full_pass(name: str, tmp_path: Path, config: Path) -> None:
    import json

    from datasets import Dataset

    rows = random_rows(400, length=60)
    for row in rows[::4]:
        row["labels"] = [-100] * len(row["labels"])
    path = tmp_path / name
    if name == "saved":
        Dataset.from_list(rows).save_to_disk(str(path))
    elif name == "rows.parquet":
        as_parquet(rows, path)
    else:
        path.write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    full = inspect_batch(path, None, config, "sft")
    part = inspect_batch(path, None, config, "sft", sample=100)
    assert part.batch.sampled
    assert 90 <= part.batch.rows <= 110
    assert by_check(part).keys() == by_check(full).keys()
    masked = by_check(part)["row_labels_masked"]
    assert all(row % 4 == 0 for row in masked.rows)
    assert 15 <= masked.row_count <= 35


def test_rows_of_the_evaluation_split_in_the_training_data_are_leaked(tmp_path: Path, config: Path) -> None:
    train, held_out = random_rows(40), random_rows(20, seed=1)
    clean = inspect_batch(
        as_parquet(train, tmp_path / "train.parquet"),
        None,
        config,
        against=as_parquet(held_out, tmp_path / "a.parquet"),
    )
    assert "split_leakage" not in by_check(clean)
    assert clean.leakage is not None
    assert (clean.leakage.exact, clean.leakage.near) == (0, 0)
    near = {name: list(column) for name, column in train[9].items()}
    near["input_ids"][60] = 7
    held_out[4], held_out[11] = train[30], near
    other = tmp_path / "eval.json"
    other.write_text(str([row["input_ids"] for row in held_out]))
    leaked = inspect_batch(tmp_path / "train.parquet", None, config, against=other)
    assert by_check(leaked)["split_leakage"].severity == "error"
    assert leaked.leakage is not None
    assert (leaked.leakage.exact, leaked.leakage.near) == (1, 1)
    assert leaked.leakage.examples == [[30, 4], [9, 11]]


def test_a_shared_prompt_is_no_leak(tmp_path: Path, config: Path) -> None:
    shared = random_rows(1, seed=5, length=150)[0]["input_ids"][:-1]
    sets = [random_rows(20, seed=seed, length=200) for seed in (1, 2)]
    for rows in sets:
        for row in rows:
            row["input_ids"] = shared + row["input_ids"]
            row["labels"] = [-100] * len(shared) + row["labels"]
    paths = [as_parquet(rows, tmp_path / f"{number}.parquet") for number, rows in enumerate(sets)]
    found = by_check(inspect_batch(paths[0], None, config, against=paths[1]))
    assert not {"split_leakage", "duplicate_rows"} & found.keys()


def test_nearly_repeated_rows_are_counted_beside_repeated_ones(tmp_path: Path, config: Path) -> None:
    rows = random_rows(20)
    near = {name: list(column) for name, column in rows[2].items()}
    near["input_ids"][100] = near["labels"][100] = 9
    rows += [rows[5], near]
    found = by_check(inspect_batch(as_parquet(rows, tmp_path / "rows.parquet"), None, config))
    assert found["duplicate_rows"].values == {"duplicates": 1, "near_duplicates": 1}


def test_splits_in_one_folder_have_to_be_named(tmp_path: Path) -> None:
    from datasets import Dataset, DatasetDict

    from mldebug_mcp.core.errors import InputError

    made = Maker("chatml")
    splits = DatasetDict({name: Dataset.from_list(made.rows()) for name in ("train", "test")})
    splits.save_to_disk(str(tmp_path / "both"))
    with pytest.raises(InputError, match="the splits test, train"):
        inspect_batch(tmp_path / "both", made.tokenizer)
    assert inspect_batch(tmp_path / "both" / "train", made.tokenizer).findings == []


def test_a_sample_is_called_one_in_every_form_of_the_answer(
    tmp_path: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, page = as_parquet(random_rows(30), tmp_path / "train.parquet"), tmp_path / "page.html"
    assert main(["batch", str(path), "--model", str(config), "--sample", "10", "--html", str(page)]) == 0
    printed = capsys.readouterr().out
    told = inspect_batch(path, None, config, sample=10)

    assert "Found in a sample of 10 rows" in printed
    assert "rows of the sample" in printed
    assert "Found in a sample of 10 rows" in page.read_text(encoding="utf-8")
    assert told.batch.sampled
    assert told.notes[0].startswith("only a sample of 10 rows was looked at")
    assert concise_inspection(told).notes[0] == told.notes[0]
    assert "sample" not in str(inspect_batch(path, None, config).notes)


def test_the_command_line_takes_a_sample_and_another_split(
    tmp_path: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = as_parquet(random_rows(30), tmp_path / "train.parquet")
    arguments = ["batch", str(path), "--model", str(config), "--sample", "10", "--against", str(path), "--check"]
    assert main(arguments) == 1
    assert "are in the sample too" in " ".join(capsys.readouterr().out.split())
    assert main(["batch", str(path), "--sample", "0"]) == 2
    assert "ask for 1 or more" in capsys.readouterr().err


def test_a_folder_of_shards_of_rows_is_one_data_set_and_a_finding_names_its_shard(tmp_path: Path, config: Path) -> None:
    for kind in ("jsonl", "npz"):
        (tmp_path / kind).mkdir()
        for number in range(3):
            ids = np.array([row["input_ids"][:90] for row in random_rows(8, seed=number)])
            mask = np.repeat([[1] * 70 + [0] * 20], 8, axis=0)
            columns = {"input_ids": np.where(mask, ids, PAD), "labels": np.where(mask, ids, -100)}
            columns["attention_mask"] = 1 - mask if number == 2 else mask
            file = tmp_path / kind / f"rank{number}.{kind}"
            if kind == "npz":
                np.savez(file, **columns)  # type: ignore[arg-type]
            else:
                rows = [{name: column[row].tolist() for name, column in columns.items()} for row in range(8)]
                file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        answer = inspect_batch(tmp_path / kind, None, config)
        found = by_check(answer)["attention_mask_inverted"]
        assert answer.batch.rows == 24
        assert found.summary.startswith(f"rank2.{kind}: ")
        assert found.rows == [*range(16, 24)]
        (tmp_path / kind / f"rank2.{kind}").unlink()
        assert "attention_mask_inverted" not in by_check(inspect_batch(tmp_path / kind, None, config))


def test_rows_that_differ_in_case_and_punctuation_are_nearly_the_same(tmp_path: Path) -> None:
    def write(name: str, texts: list[str]) -> Path:
        rows = [{"prompt": f"What is number {n}?", "completion": text} for n, text in enumerate(texts)]
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        return tmp_path / name

    texts = [f"Number {n} stands on the {n * 7}th place, behind `{n - 1}` (its neighbour)." for n in range(40)]
    train = write("train.jsonl", texts)
    leaked = inspect_batch(train, against=write("same.jsonl", [text.lower().replace("`", "") for text in texts[:9]]))
    assert "of 9 rows" in by_check(leaked)["split_leakage"].summary
    assert leaked.leakage is not None
    assert (leaked.leakage.exact, leaked.leakage.near) == (0, 9)
    others = [text.replace("behind", "not before") for text in texts[:9]]
    assert "split_leakage" not in by_check(inspect_batch(train, against=write("others.jsonl", others)))


@pytest.mark.usefixtures("small_pieces")
def test_a_finding_without_rows_in_some_pieces_states_no_rows(tmp_path: Path) -> None:
    rows = [{"text": f"{n} " + "word " * 20, "label": n // 60} for n in range(240)]
    (tmp_path / "shards").mkdir()
    for shard in range(2):
        as_parquet(rows[shard * 120 : shard * 120 + 120], tmp_path / "shards" / f"{shard}.parquet")
    summaries = [finding.summary for finding in inspect_batch(tmp_path / "shards").findings]
    assert any("pieces of the data" in summary for summary in summaries)
    assert not any("0 rows" in summary for summary in summaries)
