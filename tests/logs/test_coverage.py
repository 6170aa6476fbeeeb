"""Every line with a number is read, or counted by its kind: what was made of a log can be looked up."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import pytest

from mldebug_mcp import Coverage, InputError, read_coverage
from mldebug_mcp.cli import main

SAMPLES = Path(__file__).parent / "samples"
ACCOUNTED_FOR = 0.98
LOG = """\
Namespace(lr=0.001, batch_size=32, epochs=2, optimizer='adam')
Torch build 2.9 on 4 devices of node 7
(conv): Conv2d(3, 64, kernel_size=(7, 7), stride=(2, 2))
step 1 loss 2.31 lr 0.001
step 2 loss 2.22 lr 0.001
cache 17 3 98 4
step 3 loss 2.11 lr 0.001
cache 18 3 97 4
Saved the weights of step 3 where the others are
RuntimeError: CUDA error: device-side assert triggered in block 12
"""


def uses(coverage: Coverage) -> dict[str, str]:
    return {one.example: one.use for one in coverage.kinds}


def text_of(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "train.log"
    path.write_text(text)
    return path


def test_each_kind_of_line_has_its_count_an_example_and_what_was_made_of_it(tmp_path: Path) -> None:
    coverage = read_coverage(text_of(tmp_path, LOG))
    seen = {one.pattern: (one.count, one.line, one.use) for one in coverage.kinds}
    assert seen["step # loss # lr #"] == (3, 4, "records")
    assert seen["cache # # # #"] == (2, 6, "not read")
    assert coverage.kinds[0].use == "not read"
    assert uses(coverage) == {
        "Namespace(lr=0.001, batch_size=32, epochs=2, optimizer='adam')": "settings",
        "Torch build 2.9 on 4 devices of node 7": "setup",
        "(conv): Conv2d(3, 64, kernel_size=(7, 7), stride=(2, 2))": "setup",
        "step 1 loss 2.31 lr 0.001": "records",
        "cache 17 3 98 4": "not read",
        "Saved the weights of step 3 where the others are": "progress",
        "RuntimeError: CUDA error: device-side assert triggered in block 12": "error",
    }
    assert coverage.lines == 10
    assert coverage.accounted_for == pytest.approx(0.8)


def test_a_metric_that_stands_above_the_first_record_unread_is_not_passed_off_as_setup(tmp_path: Path) -> None:
    coverage = read_coverage(text_of(tmp_path, "held-out top5 accuracy = 0.31 at zork\n" + LOG))
    assert uses(coverage)["held-out top5 accuracy = 0.31 at zork"] != "setup"


def test_objects_of_a_log_are_records_events_or_counted_as_not_read(tmp_path: Path) -> None:
    lines = [json.dumps({"step": step, "loss": 3 - step / 10}) for step in range(8)]
    lines.insert(4, json.dumps({"event": "resume", "from": "step 3"}))
    lines.insert(6, json.dumps({"host": "node17"}))
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(lines))
    coverage = read_coverage(path)
    assert sorted((one.use, one.count) for one in coverage.kinds) == [("event", 1), ("not read", 1), ("records", 8)]


def test_rows_of_a_table_that_are_no_records_are_counted_by_themselves(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    rows = [f"{step},{3 - step / 10},{step / 10}" for step in range(8)]
    path.write_text("\n".join(["epoch,loss,metrics/mAP50", *rows, "Early stopping: no better loss for 5 epochs"]))
    coverage = read_coverage(path)
    assert sorted((kind.use, kind.count) for kind in coverage.kinds) == [("prose", 1), ("records", 8), ("setup", 1)]


def test_lines_that_repeat_have_the_use_that_each_has_by_itself(tmp_path: Path) -> None:
    three = "step {0} loss 2.{0}\ncache {0} 3 98\nslept {0} s for the node\n"
    lines = [three.format(step) for step in range(90)]
    coverage = read_coverage(text_of(tmp_path, "".join(lines)))
    assert {kind.pattern: (kind.use, kind.count) for kind in coverage.kinds} == {
        "step # loss #": ("records", 90), "cache # # #": ("not read", 90), "slept # s for the node": ("prose", 90),
    }  # fmt: skip


def test_a_compressed_log_has_the_same_kinds(tmp_path: Path) -> None:
    plain, packed = text_of(tmp_path, LOG), tmp_path / "train.log.gz"
    packed.write_bytes(gzip.compress(LOG.encode()))
    assert read_coverage(packed).kinds == read_coverage(plain).kinds


def test_an_archive_has_the_kinds_of_the_log_in_it(tmp_path: Path) -> None:
    plain, packed = text_of(tmp_path, LOG), tmp_path / "run.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(plain, "train.log")
    assert read_coverage(packed).kinds == read_coverage(plain).kinds


def test_a_log_of_very_many_kinds_of_lines_gets_a_bounded_answer(tmp_path: Path) -> None:
    words = ("".join(chr(97 + one // 26**place % 26) for place in range(3)) for one in range(3000))
    odd = "".join(f"{word} 1 2 3 4 5\n" for word in words)
    coverage = read_coverage(text_of(tmp_path, LOG + odd))
    assert len(coverage.kinds) <= 2010
    assert coverage.lines == 3010


def test_a_path_without_a_log_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="check the path"):
        read_coverage(tmp_path / "nowhere.log")


def test_the_command_prints_the_kinds_and_their_share(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = text_of(tmp_path, LOG)
    assert main(["read", str(path), "--coverage"]) == 0
    printed = capsys.readouterr().out
    assert "10 lines with numbers, 80% accounted for" in " ".join(printed.split())
    assert "cache # # # #" in printed
    assert main(["read", str(path), "loss", "--coverage"]) == 2
    assert "leave the names of metrics out" in capsys.readouterr().err
    assert main(["read", str(path), "--coverage", "--json"]) == 0
    assert Coverage.model_validate_json(capsys.readouterr().out) == read_coverage(path)


def test_nearly_all_lines_of_the_samples_are_accounted_for() -> None:
    found = [read_coverage(path) for path in sorted(SAMPLES.iterdir()) if path.name != "make"]
    lines = sum(one.lines for one in found)
    left = sum(kind.count for one in found for kind in one.kinds if kind.use == "not read")
    assert len(found) > 50
    assert 1 - left / lines >= ACCOUNTED_FOR


def test_a_line_is_of_the_records_by_what_was_kept_of_it_not_by_its_shape(tmp_path: Path) -> None:
    epochs = "".join(f"Epoch {at}/2\n10/10 - 1s - loss: {1 / at} - val_loss: {2 / at}\n" for at in (1, 2))
    evaluated = "10/10 - 1s - loss: 0.625\n"
    batches = "".join(f"Test: [{at}/50] loss 2.{at} (2.{at})\n" for at in (10, 20, 49))
    coverage = uses(read_coverage(text_of(tmp_path, epochs + evaluated)))
    assert coverage["10/10 - 1s - loss: 1.0 - val_loss: 2.0"] == "records"
    assert coverage["10/10 - 1s - loss: 0.625"] == "not read"
    trained = "Epoch: [0][99/100] loss 2.5 (2.5)\n" + batches + "Epoch: [1][99/100] loss 2.25 (2.25)\n"
    assert {kind.use for kind in read_coverage(text_of(tmp_path, trained)).kinds} == {"progress", "records"}


def test_rows_that_are_put_together_are_counted_as_they_are_read(tmp_path: Path) -> None:
    rows = "replay/size   {0}00\npolicy/loss   {0}.5\nreturn_mean   1{0}.5\nepoch         {0}\n\n"
    coverage = read_coverage(text_of(tmp_path, "".join(map(rows.format, range(3)))))
    assert coverage.accounted_for == 1
    assert {kind.use for kind in coverage.kinds} == {"records"}
