"""Columns of a row, and parts of the data, that disagree: a faulty data set and a healthy near miss each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.batch.kit import Maker, graver, make_hf

from mldebug_mcp.batch.tokenizer import Tokenizer
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.judge import inspect_batch

Columns = Mapping[str, npt.NDArray[np.generic]]


def arrays(path: Path, columns: Columns) -> Path:
    np.savez(path, **dict(columns))  # type: ignore[arg-type]
    return path


def lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def seen(path: Path, **options: Any) -> dict[str, str]:
    return {finding.check: finding.summary for finding in inspect_batch(path, **options).findings}


def chance() -> np.random.Generator:
    return np.random.default_rng(4)


# Speech.


def speech(symbols: int, *, again: bool = False) -> Columns:
    targets = np.tile(np.arange(1, 13), (40, 1))
    targets[:, symbols:] = 0
    if again:
        targets[:4, 1] = targets[:4, 0]
    features = chance().normal(size=(40, 60, 8)).astype("float32")
    lengths = np.full(40, symbols)
    lengths[4:], targets[4:, 5:] = 5, 0
    return {"input_features": features, "input_lengths": np.full(40, 8), "targets": targets, "target_lengths": lengths}


def test_transcripts_longer_than_their_frames_are_seen_and_padding_of_transcripts_is_quiet(tmp_path: Path) -> None:
    found = seen(arrays(tmp_path / "long.npz", speech(9)))
    assert found["target_longer_than_input"].startswith("rows 0, 1, 2, 3 (4 of 40)")
    assert "padding_not_masked" not in found
    assert not seen(arrays(tmp_path / "fit.npz", speech(8)))
    assert "target_longer_than_input" in seen(arrays(tmp_path / "again.npz", speech(8, again=True)))


def test_lengths_of_speech_are_known_by_other_names_and_those_of_texts_are_none(tmp_path: Path) -> None:
    columns = dict(speech(9))
    named = {"feats": columns["input_features"], "feat_len": columns["input_lengths"], "tgt": columns["targets"]}
    found = seen(arrays(tmp_path / "long.npz", named | {"tgt_len": columns["target_lengths"]}))
    assert found["target_longer_than_input"].startswith("rows 0, 1, 2, 3 (4 of 40)")
    texts = named | {"src_len": columns["input_lengths"], "tgt_len": columns["target_lengths"]}
    del texts["feat_len"]
    assert "target_longer_than_input" not in seen(arrays(tmp_path / "texts.npz", texts))


def test_speech_that_is_made_of_text_is_longer_than_it(tmp_path: Path) -> None:
    columns = {**speech(5), "target_lengths": np.full(40, 12)}
    assert "target_longer_than_input" not in seen(arrays(tmp_path / "tts.npz", columns))


# Items and transitions.


def items(drawn_again: int) -> Columns:
    positive = np.arange(400) % 90
    drawn = (positive[:, np.newaxis] + np.array([[7, 31, 55]])) % 90
    drawn[:drawn_again, 1] = positive[:drawn_again]
    return {"user_ids": np.arange(400) % 37, "pos_items": positive, "neg_items": drawn}


def test_a_negative_that_is_the_positive_item_is_seen_and_a_few_by_chance_are_a_remark(tmp_path: Path) -> None:
    path = arrays(tmp_path / "triples.npz", items(60))
    found = inspect_batch(path).findings
    assert [(finding.check, finding.severity, finding.row_count) for finding in found] == [
        ("positive_equals_negative", "warning", 60)
    ]
    assert [finding.severity for finding in inspect_batch(arrays(tmp_path / "few.npz", items(3))).findings] == ["info"]
    assert not seen(arrays(tmp_path / "none.npz", items(0)))


def episodes(copied: Sequence[int], *, still: bool = False) -> Columns:
    """Make ten episodes of twenty steps."""
    walk = chance().normal(size=(10, 21, 3)).cumsum(axis=1)
    if still:
        walk[2:4] = walk[2:4, :1]
    now, after = walk[:, :-1].copy(), walk[:, 1:].copy()
    for episode in copied:
        after[episode] = now[episode]
    ends = np.zeros((10, 20), np.bool_)
    ends[:, -1] = True
    return {
        "observations": now.reshape(-1, 3),
        "next_observations": after.reshape(-1, 3),
        "actions": chance().normal(size=(200, 2)),
        "terminals": ends.reshape(-1),
    }


def test_histories_of_items_are_read_and_the_next_item_at_their_end_is_seen(tmp_path: Path) -> None:
    histories = [[*chance().integers(1, 900, 3 + row % 9).tolist(), row + 1] for row in range(60)]
    alone = [{"user": row, "item_seq": history} for row, history in enumerate(histories)]
    assert not seen(lines(tmp_path / "alone.jsonl", alone))
    known = [{"history": history, "target_item": history[-1]} for history in histories]
    found = seen(lines(tmp_path / "known.jsonl", known))
    assert found["equal_columns"] == "history ends with the target in 60 of 60 rows"
    again = [each | {"target_item": 901} if row % 3 else each for row, each in enumerate(known)]
    assert not seen(lines(tmp_path / "again.jsonl", again))


def test_next_observations_that_are_copies_are_seen_and_an_agent_that_stands_still_is_none(tmp_path: Path) -> None:
    found = seen(arrays(tmp_path / "some.npz", episodes([3, 7])))
    assert "(38 of 200)" in found["next_observation_same"]
    assert "next_observation_same" in seen(arrays(tmp_path / "all.npz", episodes(range(10))))
    assert not seen(arrays(tmp_path / "fine.npz", episodes([])))
    assert "next_observation_same" not in seen(arrays(tmp_path / "still.npz", episodes([], still=True)))
    unmarked = {name: column for name, column in episodes([], still=True).items() if name != "terminals"}
    assert "next_observation_same" not in seen(arrays(tmp_path / "unmarked.npz", unmarked))


def test_nodes_of_a_graph_in_two_splits_are_seen(tmp_path: Path) -> None:
    train, test = np.arange(100) < 60, np.arange(100) >= 60
    graph = {"x": chance().normal(size=(100, 8)).astype("float32"), "y": np.arange(100) % 3, "train_mask": train}
    assert "split_leakage" not in seen(arrays(tmp_path / "apart.npz", {**graph, "test_mask": test}))
    found = seen(arrays(tmp_path / "both.npz", {**graph, "test_mask": np.arange(100) >= 55}))
    assert found["split_leakage"].startswith("5 of 45 rows of test_mask are in train_mask as well")


def test_edges_and_images_of_two_splits_are_seen_and_edges_that_pass_messages_are_none(tmp_path: Path) -> None:
    ends = np.stack([np.arange(90), np.arange(90) * 7 % 100 + 100])
    graph = {"x": chance().normal(size=(200, 8)).astype("float32"), "train_edge_index": ends[:, :60]}
    apart = {**graph, "test_edge_index": ends[:, 60:]}
    assert "split_leakage" not in seen(arrays(tmp_path / "apart.npz", apart))
    turned = {**graph, "test_edge_index": ends[::-1, 50:]}
    found = seen(arrays(tmp_path / "turned.npz", turned))
    assert found["split_leakage"] == "10 of 40 edges of test_edge_index are in train_edge_index as well"
    both_ways = {**graph, "train_edge_index": np.concatenate([ends[:, :60], ends[::-1, :9]], axis=1)}
    directed = {**both_ways, "test_edge_index": ends[::-1, 50:]}
    assert "split_leakage" not in seen(arrays(tmp_path / "directed.npz", directed))
    messages = {**graph, "test_edge_index": ends}
    assert "split_leakage" not in seen(arrays(tmp_path / "messages.npz", messages))
    pictures = photographs(90, 3)
    split = {"x_train": pictures[:60], "y_train": np.arange(60) % 4, "x_test": pictures[60:]}
    assert "split_leakage" not in seen(arrays(tmp_path / "split.npz", split))
    found = seen(arrays(tmp_path / "shared.npz", {**split, "x_test": pictures[50:]}))
    assert found["split_leakage"] == "10 of 40 rows of x_test are in x_train as well"


def test_edges_that_count_nodes_from_one_are_seen(tmp_path: Path) -> None:
    edges = np.stack([np.arange(99), np.arange(1, 100)])
    graph = {"x": chance().normal(size=(100, 8)).astype("float32"), "y": np.arange(100) % 3}
    assert "edge_out_of_range" not in seen(arrays(tmp_path / "zero.npz", {**graph, "edge_index": edges}))
    found = seen(arrays(tmp_path / "one.npz", {**graph, "edge_index": edges + 1}))
    assert found["edge_out_of_range"].startswith("1 of 198 numbers in edge_index are no node")


def test_columns_without_rows_and_choices_that_are_missing_are_read(tmp_path: Path) -> None:
    assert not seen(arrays(tmp_path / "none.npz", {"x": np.ones((0, 3)), "y": np.arange(3), "reward": np.ones((0, 3))}))
    rows: list[dict[str, Any]] = [{"input_ids": [[1, 2], [3]], "label": 0}, {"input_ids": 2.5, "label": 1}]
    with pytest.raises(InputError, match="input_ids"):
        seen(lines(tmp_path / "choices.jsonl", rows))


# Answers and solutions.


def problems(slipped: int, source: str = "web") -> list[dict[str, str]]:
    rows = [
        {"prompt": f"What is {row} plus {7 * row}?", "solution": f"{row}+{7 * row}={8 * row}\n#### {8 * row:,}",
         "answer": str(8 * row), "source": "book"}
        for row in range(200, 260)
    ]  # fmt: skip
    for row in range(slipped):
        rows[row] |= {"answer": rows[row + 1]["answer"], "source": source}
    return rows


def test_answers_that_slipped_by_a_row_are_seen_with_their_source(tmp_path: Path) -> None:
    found = seen(lines(tmp_path / "slipped.jsonl", problems(12)))
    assert "of 60 answers" in found["answer_contradicts_solution"]
    assert found["answer_contradicts_solution"].endswith('all of them have source "web", which 12 rows have')
    assert "all of them" not in seen(lines(tmp_path / "one.jsonl", problems(12, "book")))["answer_contradicts_solution"]
    assert not seen(lines(tmp_path / "fine.jsonl", problems(0)))


def test_answers_that_a_model_gave_and_a_reward_rates_may_differ(tmp_path: Path) -> None:
    rows = [{**row, "reward": float(place > 11)} for place, row in enumerate(problems(12))]
    assert "answer_contradicts_solution" not in seen(lines(tmp_path / "rated.jsonl", rows))


def test_lists_of_drawn_items_are_read_and_counts_of_reviews_are_none(tmp_path: Path) -> None:
    columns = items(60)
    rows = [{name: column[row].tolist() for name, column in columns.items()} for row in range(400)]
    assert "(60 of 400)" in seen(lines(tmp_path / "triples.jsonl", rows))["positive_equals_negative"]
    counts = {"pos_count": np.arange(60) % 5, "neg_count": np.arange(60) % 3, "y": np.arange(60) % 2}
    assert "positive_equals_negative" not in seen(arrays(tmp_path / "counts.npz", counts))


# Parts of the data.


def reviews(folder: Path, first: Sequence[int]) -> Path:
    """Write files of labels, each of five classes from its first one on."""
    folder.mkdir()
    for file, start in enumerate(first):
        rows = [
            {
                "text": f"item {file} {row} is {'very ' * (row % 7)}{'good' if row % 5 else 'bad'}",
                "label": row % 5 + start,
            }
            for row in range(200)
        ]
        lines(folder / f"part{file}.jsonl", rows)
    return folder


def test_a_file_that_numbers_its_classes_from_one_is_seen(tmp_path: Path) -> None:
    found = seen(reviews(tmp_path / "moved", [0, 0, 1]))
    assert found["classes_moved"] == (
        'labels run from 1 to 5 in "part2.jsonl" (1 of 3 parts), and from 0 to 4 in the others'
    )
    assert "classes_moved" not in seen(reviews(tmp_path / "same", [0, 0, 0]))
    assert "classes_moved" not in seen(reviews(tmp_path / "all", [1, 1, 1]))


def masks(*values: int) -> Columns:
    images = chance().integers(0, 200, (20 * len(values), 3, 12, 12)).astype("uint8")
    drawn = chance().random((20 * len(values), 12, 12)) > 0.7
    return {"images": images, "masks": drawn * np.repeat(values, 20)[:, np.newaxis, np.newaxis].astype("uint8")}


def test_masks_of_black_and_white_among_masks_of_classes_are_seen(tmp_path: Path) -> None:
    found = seen(arrays(tmp_path / "white.npz", masks(1, 255, 1)))
    assert found["classes_moved"] == "masks are 0 and 255 in 20 rows, and 0 and 1 in 40"
    assert "classes_moved" not in seen(arrays(tmp_path / "ones.npz", masks(1, 1)))
    voids = masks(1, 255, 1)
    voids["masks"][0, :6], voids["masks"][0, 6:] = 1, 255
    assert "classes_moved" not in seen(arrays(tmp_path / "void.npz", voids))


def photographs(count: int, seed: int) -> npt.NDArray[np.float64]:
    drawn = np.random.default_rng(seed)
    return np.clip(drawn.normal([0.6, 0.45, 0.3], 0.1, (count, 9, 9, 3)), 0, 1).transpose(0, 3, 1, 2)


def test_an_evaluation_set_in_another_order_of_channels_or_scale_is_seen(tmp_path: Path) -> None:
    train = arrays(tmp_path / "train.npz", {"images": photographs(60, 1), "labels": np.arange(60) % 4})
    pictures = photographs(40, 2)
    labels = np.arange(40) % 4
    same, turned, bytes_ = (
        arrays(tmp_path / f"{name}.npz", {"images": images, "labels": labels})
        for name, images in (("same", pictures), ("turned", pictures[:, ::-1]), ("bytes", pictures * 255))
    )
    assert "parts_prepared_apart" not in seen(train, against=same)
    assert "in the opposite order" in seen(train, against=turned)["parts_prepared_apart"]
    assert "against 0.1" in seen(train, against=bytes_)["parts_prepared_apart"]


def test_latents_without_their_factor_are_seen_and_a_wide_spread_is_none(tmp_path: Path) -> None:
    latents = chance().normal(size=(64, 4, 8, 8)) * np.linspace(0.7, 1.3, 64).reshape(-1, 1, 1, 1)
    assert not seen(arrays(tmp_path / "fine.npz", {"latents": latents}))
    latents[10:16] /= 0.18215
    assert (
        "in rows 10, 11, 12, 13, 14, 15 (6 of 64)"
        in seen(arrays(tmp_path / "some.npz", {"latents": latents}))["rows_on_two_scales"]
    )
    wide = chance().normal(size=(64, 4, 8, 8)) * np.geomspace(0.1, 9, 64).reshape(-1, 1, 1, 1)
    assert "rows_on_two_scales" not in seen(arrays(tmp_path / "wide.npz", {"latents": wide}))


def test_sounds_of_whole_numbers_among_floats_are_seen_and_soft_ones_are_none(tmp_path: Path) -> None:
    sounds = chance().normal(size=(60, 400)) * 0.1
    soft = sounds * np.where(np.arange(60) % 6, 1, 0.05)[:, np.newaxis]
    assert "rows_on_two_scales" not in seen(arrays(tmp_path / "soft.npz", {"audio": soft}))
    sounds[::6] = np.round(sounds[::6] * 32_767)
    assert "(10 of 60)" in seen(arrays(tmp_path / "whole.npz", {"audio": sounds}))["rows_on_two_scales"]


def test_ranks_that_read_the_same_shard_are_seen_whatever_the_rows_are_for(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    rows = [chance().integers(3, 900, (24, 16)) + 900 * rank for rank in range(3)]
    for name, ranks in (("apart", (0, 1, 2)), ("twice", (0, 1, 0))):
        (tmp_path / name).mkdir()
        for place, rank in enumerate(ranks):
            ids = torch.tensor(rows[rank][:: -1 if place else 1].copy())
            torch.save({"input_ids": ids, "attention_mask": torch.ones_like(ids)}, tmp_path / name / f"rank{place}.pt")
    assert "(rank2.pt is rank0.pt)" in seen(tmp_path / "twice")["duplicate_rows"]
    assert "duplicate_rows" not in seen(tmp_path / "apart")


def test_a_folder_of_weights_is_no_data_set(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save({"layer.weight": torch.zeros(8, 8), "layer.bias": torch.zeros(8)}, tmp_path / "model.pt")
    with pytest.raises(InputError, match="may be weights"):
        seen(tmp_path)


def test_a_shard_without_ends_between_its_documents_is_seen(tmp_path: Path) -> None:
    made = Maker("base")
    for name, bare in (("whole", None), ("bare", 2)):
        (tmp_path / name).mkdir()
        for shard in range(4):
            ids = chance().integers(10, 300, 6000).astype(np.uint16)
            if shard != bare:
                ids[199::200] = made.hf.eos_token_id
            ids.tofile(tmp_path / name / f"train_{shard}.bin")
    found = seen(tmp_path / "bare", tokenizer=made.tokenizer, dtype="uint16")
    assert found["document_end_missing"].startswith("train_2.bin holds no token that stands between documents (1 file")
    assert "document_end_missing" not in seen(tmp_path / "whole", tokenizer=made.tokenizer, dtype="uint16")


def test_rows_with_ids_of_another_text_are_seen_and_cut_ones_are_none(tmp_path: Path) -> None:
    made = Maker("base")
    rows = [
        {"text": f"The price of item {row} is {row * 37} euros, and it fell by {row % 9} since." * 2}
        for row in range(40)
    ]
    tokens = [made.tokenizer.encode(row["text"], special=False) for row in rows]
    cut = [{**row, "input_ids": ids[:20]} for row, ids in zip(rows, tokens, strict=True)]
    assert "tokenizer_mismatch" not in seen(lines(tmp_path / "cut.jsonl", cut), tokenizer=made.tokenizer)
    for row in range(0, 40, 8):
        cut[row]["input_ids"] = [number + 40 for number in tokens[row]]
    found = seen(lines(tmp_path / "other.jsonl", cut), tokenizer=made.tokenizer)
    assert found["tokenizer_mismatch"] == "this tokenizer makes other ids from the text of 5 of 40 rows compared"


def test_all_rows_of_a_problem_are_counted(tmp_path: Path) -> None:
    rows = [{"text": f"row {row} {'fÃ¼r Ã¤lter' if row % 2 else 'plain'}"} for row in range(2600)]
    assert "(1300 of 2600)" in seen(lines(tmp_path / "many.jsonl", rows))["garbled_text"]


def test_a_batch_grouped_by_length_and_a_corpus_without_first_tokens_are_healthy(tmp_path: Path) -> None:
    ids = np.zeros((30, 40), np.int64)
    for row in range(30):
        ids[row, : row + 8] = chance().integers(5, 300, row + 8)
    batch = {"input_ids": ids, "labels": ids, "attention_mask": (ids != 0).astype(np.int64)}
    found = {one.check: one.severity for one in inspect_batch(arrays(tmp_path / "batch.npz", batch)).findings}
    assert found.get("corpus_sorted", "info") == "info"
    assert "missing_bos" not in graver(found)


def test_images_of_one_source_in_another_order_of_channels_are_seen(tmp_path: Path) -> None:
    pictures, sources = photographs(120, 3), np.array(["web", "phone", "cam"] * 40)
    columns = {"images": pictures, "labels": np.arange(120) % 4, "source": sources}
    assert "parts_prepared_apart" not in seen(arrays(tmp_path / "same.npz", columns))
    pictures[sources == "cam"] = pictures[sources == "cam"][:, ::-1]
    assert seen(arrays(tmp_path / "turned.npz", columns))["parts_prepared_apart"].startswith("images of cam have the")


def test_steps_written_as_lists_and_answers_within_records_are_compared(tmp_path: Path) -> None:
    columns = episodes([3, 7])
    rows = [{name: column[row].tolist() for name, column in columns.items()} for row in range(200)]
    assert "(38 of 200)" in seen(lines(tmp_path / "steps.jsonl", rows))["next_observation_same"]
    records = [
        {"prompt": row["prompt"], "reward_model": {"style": "rule", "ground_truth": row["answer"]},
         "extra_info": {"answer": row["solution"]}}
        for row in problems(12)
    ]  # fmt: skip
    assert "(12 of 60)" in seen(lines(tmp_path / "verl.jsonl", records))["answer_contradicts_solution"]


def test_a_summary_states_that_a_template_was_tried_on_the_first_conversations_alone(tmp_path: Path) -> None:
    made = make_hf("chatml")
    made.chat_template = "{% for m in messages if m.role != 'system' %}{{ m.content }}<|im_end|>{% endfor %}"
    tokenizer = Tokenizer(made, "chatml")
    rows = [
        {"messages": [{"role": "system", "content": f"Be brief about item {row}."}, {"role": "user", "content": "Hm?"},
                      {"role": "assistant", "content": f"It is item {row}."}]}
        for row in range(70)
    ]  # fmt: skip
    few = seen(lines(tmp_path / "few.jsonl", rows[:60]), tokenizer=tokenizer)["system_prompt_dropped"]
    many = seen(lines(tmp_path / "many.jsonl", rows), tokenizer=tokenizer)["system_prompt_dropped"]
    assert "left out" not in few
    assert "seen in the first 64 conversations; the others were left out" in many


ENGLISH, GERMAN = (
    text.split()
    for text in (
        "the of and to in is that it was for on are with as his they at be this have from",
        "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als",
    )
)


def test_rows_in_another_language_than_they_name_are_seen_and_code_and_a_few_are_not(tmp_path: Path) -> None:
    random = chance()

    def row(lang: str, words: Sequence[str]) -> dict[str, str]:
        topic = f"{lang}{random.integers(40)}"
        return {"text": " ".join([topic, *random.choice(list(words), 14)]), "lang": lang}

    rows = [row("en", ENGLISH) for _ in range(200)] + [row("de", GERMAN) for _ in range(180)]
    others = [row("de", ENGLISH) for _ in range(20)]
    found = seen(lines(tmp_path / "other.jsonl", rows + others))
    assert found["language_mismatch"].startswith("20 of 200 rows of de are in en")
    assert "language_mismatch" not in seen(lines(tmp_path / "few.jsonl", rows + others[:3]))
    same = [row(lang, ENGLISH) for lang in ("en-GB", "en-US", "sco") for _ in range(150)]
    assert "language_mismatch" not in seen(lines(tmp_path / "same.jsonl", same))
    code = [{**each, "lang": {"en": "python", "de": "html"}[each["lang"]]} for each in rows + others]
    assert "language_mismatch" not in seen(lines(tmp_path / "code.jsonl", code))


def test_documents_that_are_the_same_in_their_text_alone_are_seen(tmp_path: Path) -> None:
    words = [" ".join(f"w{number}" for number in chance().permutation(400)[:150] + n) for n in range(60)]
    files = [{"repo": f"r{n}", "content": text} for n, text in enumerate(words)]
    forks = [{"repo": f"f{n}", "content": text} for n, text in enumerate(words[:20])]
    assert "duplicate_rows" not in seen(lines(tmp_path / "apart.jsonl", files))
    found = seen(lines(tmp_path / "forks.jsonl", [*files, *forks]))
    assert found["duplicate_rows"] == "0 of 80 rows repeat another, 20 more in their text alone"


def test_of_findings_as_grave_the_one_in_most_rows_stands_first(tmp_path: Path) -> None:
    rows = [
        {
            "prompt": f"ask {n} of it",
            "chosen": f"say {n}",
            "rejected": f"no {n}",
            "score_chosen": 5,
            "score_rejected": 1,
        }
        for n in range(60)
    ]
    rows[7]["rejected"] = rows[7]["chosen"]
    for row in rows[10:16]:
        row |= {"score_chosen": 1, "score_rejected": 5}
    assert [*seen(lines(tmp_path / "pairs.jsonl", rows))][:2] == ["preference_swapped", "chosen_equals_rejected"]


def test_a_folder_of_tables_states_which_files_are_held_out(tmp_path: Path) -> None:
    for name in ("train", "test"):
        (tmp_path / f"{name}.csv").write_text("a,b,y\n" + "".join(f"{n},{n * 0.5},{n % 2}\n" for n in range(60)))
    assert any("test.csv" in note for note in inspect_batch(tmp_path).notes)
