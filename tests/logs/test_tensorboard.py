from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mldebug_mcp.core.protobuf import masked_crc32c_of
from mldebug_mcp.logs import read_run


def event_file(events: list[bytes]) -> bytes:
    return b"".join(
        struct.pack("<Q", len(event))
        + struct.pack("<I", masked_crc32c_of(struct.pack("<Q", len(event))))
        + event
        + struct.pack("<I", masked_crc32c_of(event))
        for event in events
    )


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def message(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def scalar(time: float, step: int, tag: str, value: float) -> bytes:
    summary = message(1, message(1, tag.encode()) + b"\x15" + struct.pack("<f", value))
    at = b"\x10" + varint(step) if step else b""
    return b"\x09" + struct.pack("<d", time) + at + message(5, summary)


def test_the_checksum_is_that_of_the_standard() -> None:
    # RFC 3720, B.4: 32 bytes of zeros and of ones, before TFRecord's mask.
    for data, crc in ((b"\0" * 32, 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43)):
        assert masked_crc32c_of(data) == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


numbers = st.floats(width=32, allow_nan=False)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(st.sampled_from(["loss", "x" * 40, "grad_norm"]), numbers), min_size=1, max_size=50), st.data()
)
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, points: list[tuple[str, float]], data: st.DataObject
) -> None:
    start = data.draw(st.integers(1, 1 << 40))
    events = [scalar(index, start + index * 3, tag, value) for index, (tag, value) in enumerate(points)]
    path = tmp_path_factory.mktemp("events") / "events.out.tfevents.1"
    path.write_bytes(event_file([b"\x1a\x0dbrain.Event:2", *events]))
    run = read_run(path)
    for tag in {tag for tag, _ in points}:
        expected = [(start + index * 3.0, value) for index, (name, value) in enumerate(points) if name == tag]
        assert list(zip(run[tag].step.tolist(), run[tag].value.tolist(), strict=True)) == expected


def test_a_resumed_run_in_two_files_is_one_run_with_a_restart(tmp_path: Path) -> None:
    first = [scalar(100 + step, step, "loss", 5 - step / 100) for step in range(1, 101)]
    second = [scalar(500 + step, step, "loss", 1) for step in range(61, 161)]
    (tmp_path / "events.out.tfevents.1").write_bytes(event_file(first))
    (tmp_path / "events.out.tfevents.2").write_bytes(event_file(second))
    run = read_run(tmp_path)
    assert len(run.segments) == 2
    assert run["loss"].step.tolist() == list(range(1, 161))
    assert run["loss"].at(60) == pytest.approx(4.4)
    assert run["loss"].at(61) == 1


def test_two_files_written_side_by_side_are_no_restart(tmp_path: Path) -> None:
    (tmp_path / "events.out.tfevents.1").write_bytes(
        event_file([scalar(100 + step, step, "loss", 1) for step in range(1, 101)])
    )
    (tmp_path / "events.out.tfevents.2").write_bytes(
        event_file([scalar(100.5 + step, step, "eval/loss", 2) for step in range(10, 101, 10)])
    )
    run = read_run(tmp_path)
    assert len(run.segments) == 1
    assert len(run["loss"]) == 100
    assert run["eval_loss"].step.tolist() == list(range(10, 101, 10))


def test_metrics_flushed_one_after_another_are_no_restart(tmp_path: Path) -> None:
    events = [scalar(100 + step, step, tag, 1) for tag in ("loss", "grad_norm") for step in range(50)]
    (tmp_path / "events.out.tfevents.1").write_bytes(event_file(events))
    run = read_run(tmp_path)
    assert len(run.segments) == 1
    assert run.records == 50


def test_an_empty_event_file_beside_another_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "events.out.tfevents.0").touch()
    (tmp_path / "events.out.tfevents.1").write_bytes(event_file([scalar(1, 1, "loss", 1), scalar(2, 2, "loss", 2)]))
    assert read_run(tmp_path)["loss"].value.tolist() == [1, 2]


def test_a_huge_record_is_passed_over_and_scalars_behind_it_are_read(tmp_path: Path) -> None:
    image = message(5, message(1, message(1, b"picture") + message(4, b"x" * (9 << 20))))
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(event_file([scalar(1, 1, "loss", 1)]))
    with path.open("ab") as file:
        length = struct.pack("<Q", len(image))
        file.write(length + struct.pack("<I", masked_crc32c_of(length)) + image + b"\0\0\0\0")
        file.write(event_file([scalar(2, 2, "loss", 2)]))
    assert read_run(path)["loss"].value.tolist() == [1, 2]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_values_are_those_of_tensorboards_own_reader(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    tensorboard = pytest.importorskip("torch.utils.tensorboard")
    random = np.random.default_rng(0)
    with tensorboard.SummaryWriter(str(tmp_path)) as writer:
        for step in range(200):
            writer.add_scalar("train/loss", random.normal(), step)
            writer.add_scalars("losses", {"a": random.normal(), "b": random.normal()}, step)
            if step % 10 == 0:
                writer.add_histogram("weights", random.normal(size=100), step)
                writer.add_text("note", "text", step)
                writer.add_scalar("eval/loss", random.normal() * 1e30, step, new_style=True)
    for file in tmp_path.rglob("events*"):
        theirs = accumulator.EventAccumulator(str(file), size_guidance={"scalars": 0, "tensors": 0})
        theirs.Reload()
        ours = read_run(file)
        names = {"train/loss": "loss", "eval/loss": "eval_loss", "losses": "loss"}
        for tag in theirs.Tags()["scalars"]:
            expected = [(event.step, event.value) for event in theirs.Scalars(tag)]
            series = ours[names.get(tag, tag)]
            assert list(zip(series.step.tolist(), series.value.tolist(), strict=True)) == expected
        assert theirs.Tags()["scalars"]
        if "eval/loss" in theirs.Tags()["tensors"]:
            values = [event.tensor_proto.float_val[0] for event in theirs.Tensors("eval/loss")]
            assert ours["eval_loss"].value.tolist() == values
        assert "weights" not in ours


def _loop(epochs: int, steps: int, evaluated_at: str) -> bytes:
    """Return what a usual loop writes: training by step, evaluation by epoch or by step."""
    events = []
    for epoch in range(epochs):
        every = range(epoch * steps, (epoch + 1) * steps)
        events += [scalar(1000 + step, step, "Loss/train", 2 / (1 + step / 20)) for step in every]
        at = epoch if evaluated_at == "epoch" else (epoch + 1) * steps - 1
        events.append(scalar(1000 + (epoch + 1) * steps - 0.5, at, "Loss/test", 2.1 / (1 + at / 20)))
    return event_file(events)


def test_an_evaluation_that_counts_epochs_stands_at_the_training_step_before_it(tmp_path: Path) -> None:
    (tmp_path / "events.out.tfevents.1.host.2.0").write_bytes(_loop(6, 30, "epoch"))
    run = read_run(tmp_path)
    assert run["eval_loss"].step.tolist() == [29, 59, 89, 119, 149, 179]
    assert any("count epochs" in note and "Loss/test" in note for note in run.notes)


def test_an_evaluation_by_training_steps_stays_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "events.out.tfevents.1.host.2.0").write_bytes(_loop(6, 30, "step"))
    run = read_run(tmp_path)
    assert run["eval_loss"].step.tolist() == [29, 59, 89, 119, 149, 179]
    assert not any("count epochs" in note for note in run.notes)


def test_training_and_evaluation_that_both_count_epochs_stay_so(tmp_path: Path) -> None:
    events = [scalar(1000 + epoch, epoch, tag, 1.0) for epoch in range(8) for tag in ("Loss/train", "Loss/test")]
    (tmp_path / "events.out.tfevents.1.host.2.0").write_bytes(event_file(events))
    assert read_run(tmp_path)["eval_loss"].step.tolist() == list(range(8))


CONFIGURATION = {"learning_rate": 0.003, "batch_size": 64, "optimizer": "adam", "weight_decay": 0.0, "anneal_lr": True}
TEXTS = {
    "a table": {
        "hyperparameters": "|param|value|\n|-|-|\n" + "\n".join(f"|{k}|{v}|" for k, v in CONFIGURATION.items())
    },
    "JSON": {"args": json.dumps(CONFIGURATION, indent=2)},
    "lines": {"config": "  \n".join(f"{key}: {value}" for key, value in CONFIGURATION.items())},
    "a text for each": {key: str(value) for key, value in CONFIGURATION.items()},
}


def text(tag: str, content: str) -> bytes:
    """Return an event with a text as torch writes it."""
    plugin = message(9, message(1, message(1, b"text")))
    tensor = message(8, b"\x08\x07" + message(8, content.encode()))
    return b"\x09" + struct.pack("<d", 1.0) + message(5, message(1, message(1, tag.encode()) + plugin + tensor))


@pytest.mark.parametrize("form", TEXTS)
def test_a_configuration_written_as_text_becomes_settings(tmp_path: Path, form: str) -> None:
    events = [text(f"{tag}/text_summary", content) for tag, content in TEXTS[form].items()]
    points = [scalar(2.0 + step, step, "loss", 1.0 / (step + 1)) for step in range(9)]
    answers = [text("answers/text_summary", f"the loss: {step}\nof my life") for step in range(9)]
    (tmp_path / "events.out.tfevents.1").write_bytes(event_file([*events, *points, *answers]))
    run = read_run(tmp_path)
    assert {name: one.value for name, one in run.settings.items() if one.known} == {
        "learning_rate": 0.003, "per_device_train_batch_size": 64, "optim": "adam", "weight_decay": 0.0,
    }  # fmt: skip
    assert len(run["loss"]) == 9


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_hyperparameters_of_tensorboard_become_settings(tmp_path: Path) -> None:
    tensorboard = pytest.importorskip("torch.utils.tensorboard")
    with tensorboard.SummaryWriter(str(tmp_path)) as writer:
        for step in range(9):
            writer.add_scalar("train/loss", 1.0 / (step + 1), step)
        writer.add_hparams(CONFIGURATION, {"hparam/accuracy": 0.5})
    run = read_run(tmp_path)
    assert run.settings["learning_rate"].value == 0.003
    assert run.settings["learning_rate"].source == "TensorBoard hparams"
    assert {name: one.value for name, one in run.settings.items()} == {
        "learning_rate": 0.003, "per_device_train_batch_size": 64, "optim": "adam", "weight_decay": 0.0,
        "anneal_lr": True,
    }  # fmt: skip
    assert run["loss"].step.tolist() == list(range(9))
