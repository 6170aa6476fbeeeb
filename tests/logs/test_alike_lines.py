"""Lines of known shapes are taken by the block: what comes of it is what reading each line by itself gives."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from benchmarks.logs.text_shapes import SHAPES, pieces
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from mldebug_mcp.logs import read_run
from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.formats import text_log
from mldebug_mcp.logs.run import Run
from mldebug_mcp.logs.text import line_shape, own_layout, records
from mldebug_mcp.logs.text.parsed_line import content_of
from mldebug_mcp.logs.text.skeletons import Skeletons

SAMPLES = Path(__file__).parent / "samples"
STEPS = 1100
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
"""Without the search for the smallest mixture that fails, which takes minutes."""


def read(text: bytes, *, learns: bool) -> Run:
    """Return what is read of a text, by the shapes that are learnt or line by line."""
    builder = RunBuilder()
    reader = text_log.Text(builder, learns=learns)
    reader.take_block(text)
    reader.end()
    return builder.build("train.log")


def assert_read_alike(text: bytes) -> Run:
    fast, slow = read(text, learns=True), read(text, learns=False)
    for field in ("formats", "step_name", "kind", "records", "messages", "resumes", "notes"):
        assert getattr(fast, field) == getattr(slow, field), field
    assert list(fast.series) == list(slow.series)
    for name, series in slow.series.items():
        np.testing.assert_array_equal(fast[name].step, series.step, err_msg=name)
        np.testing.assert_array_equal(fast[name].value, series.value, err_msg=name)
    assert len(fast.segments) == len(slow.segments)
    return fast


def of_shape(shape: str, steps: int = STEPS) -> bytes:
    return ("".join(islice(pieces(shape), steps)) + "\n").encode()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_log_of_one_shape_reads_alike_by_the_block_and_by_the_line(shape: str) -> None:
    run = assert_read_alike(of_shape(shape))
    assert "loss" in run


def test_counters_with_underscores_read_alike_by_the_block_and_by_the_line() -> None:
    lines = (
        f"2026-11-20 10:00:01,123 [rank0] step {250 * at:_} tokens={4096 * at:_} "
        f"loss={2 + 1 / at:.4f} lr=1.0e-04 run_{at}_000 shard 2026_11_20 b-{at}_{at:03d} 12_34 1234_567 1_000_x\n"
        for at in range(1, STEPS)
    )
    run = assert_read_alike("".join(lines).encode())
    np.testing.assert_array_equal(run["loss"].step, 250.0 * np.arange(1, STEPS))
    np.testing.assert_array_equal(run["tokens"].value, 4096.0 * np.arange(1, STEPS))


def test_an_error_line_is_quoted_with_its_underscores() -> None:
    run = assert_read_alike(b"step 1_000 loss 2.5\nValueError: batch of 10_000 rows is too long\n")
    assert [message.text for message in run.messages] == ["ValueError: batch of 10_000 rows is too long"]


def test_learning_reads_no_more_lines_than_a_text_has_where_shapes_do_not_come_again_often() -> None:
    names = ["".join(chr(ord("a") + int(digit)) for digit in str(number)) for number in range(1000, 2000)]
    text = "".join(f"step {at} loss 0.5 {name}: {at}.5\n" * 2 for at, name in enumerate(names)).encode()
    with (
        patch.object(records, "FREE_READS", 0),
        patch("mldebug_mcp.logs.text.records.learn", wraps=line_shape.learn) as learn,
    ):
        run = assert_read_alike(text)
    assert run.records == 2000
    assert 0 < learn.call_count < 600


@pytest.mark.parametrize(
    ("head", "line"),
    [
        ("", "loss {}.5\n"),
        ("step 7 loss 0.25 lr 0.1\n", "acc {}.5 lr 0.5\n"),
        ("Epoch 3:\n", "train_loss {}.5 loss 2\n"),
        ("[rank1]: loss: 9.5\n", "[rank0]: loss: {}.25\n"),
        ("eval:\n", "loss {}.5\n"),
        ("loss: nan\n" + "acc 1 lr 2\n" * 40, "train_loss {}.5\n"),
    ],
)
def test_lines_without_a_counter_read_alike_by_the_block_and_by_the_line(head: str, line: str) -> None:
    lines = "".join(line.format(number % 7) for number in range(2200))
    assert_read_alike((head + lines + "loss: nan\n" + lines[:900] + "step 8 loss 0.5\n" + lines[:900]).encode())


@pytest.mark.parametrize("sample", sorted(SAMPLES.rglob("*.log")), ids=lambda path: path.stem)
def test_a_sample_of_a_framework_reads_alike_by_the_block_and_by_the_line(sample: Path) -> None:
    text = sample.read_bytes()
    assert_read_alike(text + b"\n" + text)


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape != "no two alike"])
def test_few_lines_of_a_known_shape_are_read_by_their_words(shape: str) -> None:
    text = of_shape(shape)
    with patch.object(text_log.Text, "_unlike", autospec=True, side_effect=text_log.Text._unlike) as read_slowly:
        read(text, learns=True)
    assert read_slowly.call_count < 200 < text.count(b"\n") + text.count(b"\r")


LINES = (
    "step {i}: loss {x}",
    "step {i}: loss {x} lr {y}",
    "step: {i}, val_loss: {x}, acc: {y}%",
    "epoch {e} | step {i} | loss {x} | {i:,} tokens",
    "[rank0]: step {i} | loss {x}",
    "[rank1]: step {i} | loss {x}",
    "[0]: iter {i} loss={x}",
    "[3]: iter {i} loss={x}",
    "2024-01-01 10:00:{e:02d},{e:03d} INFO step {i} loss {x}",
    "{{'loss': {x}, 'epoch': {e}.5}}",
    "{{'eval_loss': {x}, 'eval_runtime': {y}, 'epoch': {e}.0}}",
    "{{'loss': {x},",
    " 'epoch': {e}.5}}",
    " {e:2d}%|██  | {i}/1000 [00:01<00:09, 3.21it/s]",
    " {e:2d}%|█▏  | {i}/1000 [00:01<00:09, 3.21it/s, loss={x}]",
    "Epoch {e}:  50%|#### | {i}/1000 [00:01<00:09, 3.21it/s, v_num=0, train_loss={x}, val_loss={y}]",
    "Epoch {e}/10",
    "Epoch {e}",
    " {e:3d}/100 [===>......] - ETA: 1s - loss: {x}",
    "100/100 [==========] - 2s 20ms/step - loss: {x} - val_loss: {y}",
    "Validation:",
    "loss: {x}",
    "accuracy {y}",
    "Acc@1 {x} ({x}) Acc@5 {y} ({y}) step {i}",
    "worker{e} fetched shard {i} in {y} s",
    "lr: {y}",
    "throughput {y} retry {e}",
    "| loss | {x} |",
    "| step | {i} |",
    "-------------------",
    "step   loss   acc",
    "{i}   {x}   {y}",
    "Traceback (most recent call last):",
    '  File "train.py", line {i}, in main',
    "    raise ValueError",
    "ValueError: {x} is no number",
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate {i} MiB",
    "GPU 0 has a total capacity of {i} GiB of which {x} GiB is free",
    "Resuming training from checkpoint-{i} at step {i}",
    "process ended with exit code: {i}",
    "Skipping step {i}, reducing loss scale to {e}",
    "\x1b[31mstep: {i} \x1b[32mloss: {x}\x1b[0m",
    "step {i}: loss {x}^Mstep {i}: loss {y}",
    "损失 第{e}轮 loss: {x}",
    "",
    "saving the model at step {i}",
    "epoch {e}: val_loss {x}",
    "| rollout/ |      |",
    "|    ep_rew_mean | {x} |",
    "{{'loss': {x}, 'step': {i}}}",
    "100%|██████████| {i}/{i} [00:01<00:09, 3.21it/s]",
    "train: {e:2d}%|██  | {i}/900 [00:01<00:09, 3.21it/s]",
)
NUMBERS = st.one_of(
    st.floats(-1e3, 1e3).map(lambda value: f"{value:.4f}"),
    st.floats(1e-9, 1.0).map(repr),
    st.sampled_from(["nan", "inf", "-inf", "NaN", "1e-05", "0", "12", "1,234.5", ".5", "3.", "2.5K", "1.2.3", "1.5ms"]),
)
RUNS = st.lists(
    st.tuples(st.sampled_from(LINES), st.integers(1, 45), NUMBERS, NUMBERS, st.integers(0, 99)), min_size=1, max_size=14
)


def written(runs: list[tuple[str, int, str, str, int]], end: str) -> bytes:
    """Return lines in runs of each kind, with a step that counts on, and odd numbers at its ends."""
    step, lines = 0, []
    for line, count, first, other, epoch in runs:
        for number in range(count):
            step += 1
            value = first if number in (0, count - 1) else f"{1 / step:.4f}"
            lines.append(line.format(i=step, x=value, y=other, e=(epoch + number // 9) % 100))
    return (end.join(lines) + end).encode()


@given(RUNS, st.sampled_from(["\n", "\r\n"]))
@settings(max_examples=60, deadline=None, phases=PHASES)
def test_any_mixture_of_lines_reads_alike_by_the_block_and_by_the_line(
    runs: list[tuple[str, int, str, str, int]], end: str
) -> None:
    assert_read_alike(written(runs * 2, end))


@pytest.mark.parametrize(
    "runs",
    [
        [
            ("{{'eval_loss': {x}, 'eval_runtime': {y}, 'epoch': {e}.0}}", 3, "inf", "-0.0000", 41),
            ("损失 第{e}轮 loss: {x}", 39, "0.0489", "1.5", 38),
        ],
        [
            ("[0]: iter {i} loss={x}", 19, "0.743", "0", 72),
            (
                "Epoch {e}:  50%|#### | {i}/1000 [00:01<00:09, 3.21it/s, v_num=0, train_loss={x}, val_loss={y}]",
                43, "683.5361", "-361.9138", 14,
            ),
            ("lr: {y}", 1, "0.005", "0.0857", 49),
        ],
    ],
    ids=["no dict among many lines", "a line below bars of a later epoch"],
)  # fmt: skip
def test_a_mixture_that_was_read_otherwise_reads_alike(runs: list[tuple[str, int, str, str, int]]) -> None:
    assert_read_alike(written(runs * 2, "\n"))


@given(st.lists(st.tuples(st.sampled_from(LINES), NUMBERS, NUMBERS, st.integers(0, 99)), min_size=1, max_size=6))
@settings(max_examples=30, deadline=None, phases=PHASES)
def test_lines_that_take_turns_read_alike_by_the_block_and_by_the_line(lines: list[tuple[str, str, str, int]]) -> None:
    runs = [(line, 1, first, other, epoch) for line, first, other, epoch in lines]
    assert_read_alike(written(runs * 40, "\n"))


@given(
    st.lists(st.sampled_from(LINES), min_size=2, max_size=4),
    st.lists(st.integers(0, 3), min_size=2, max_size=12),
    st.integers(1, 4),
    NUMBERS,
)
@settings(max_examples=60, deadline=None, phases=PHASES)
def test_lines_that_name_one_step_after_another_read_alike_by_the_block_and_by_the_line(
    lines: list[str], order: list[int], times: int, odd: str
) -> None:
    text = []
    for number in range(300):
        line = lines[order[number % len(order)] % len(lines)]
        value = odd if number % 97 == 96 else f"{1 / (number + 1):.4f}"
        text.append(line.format(i=number // times, x=value, y=value, e=number // times // 50))
    assert_read_alike(("\n".join(text) + "\n").encode())


RULE = "-" * 30
BOXES = (
    [RULE, "| rollout/ |      |", "|    ep_rew_mean | {x} |", "| train/   |   |", "|    loss  | {y} |", RULE],
    [RULE, "| rollout/ |      |", "|    ep_rew_mean | {x} |", "| time/ |  |", "|    total_timesteps | {i} |", RULE],
    [RULE, "| eval/    |      |", "|    mean_reward | {y} |", "| time/ |  |", "|    total_timesteps | {i} |", RULE],
    [RULE, "| epoch    | {e}  |", "| loss   | {x}  |", RULE],
    [RULE, "| step     | {i}  |", "| loss   | {x}  |", "", "| lr   | {y}  |", RULE],
    [RULE, "| step     | {i}  |", "| loss   | {x}  |", "fetched a shard"],
    [RULE, "| step     | {i}  |", "| loss   | {x}  |", "----"],
    ["+------+-----+", "| layer {e} | {x} |", "| loss | {y} | ", "|------|-----|", "| acc | {x}% |", "+------+-----+"],
    ["+------+-----+", "| loss | nan | ", "| acc | {x} |", "| loss | {y} |", "+------+-----+"],
    ["+------+-----+", "| loss   ", "| step | {i} |", "| loss | {y} |", "| run | 1.2.3 |", "+------+-----+"],
    [RULE, "| train_runtime | {i} |", "| loss | {x} |", RULE],
)
BETWEEN = (
    "", "fetched shard {i}", "step {i}: loss {x}", "epoch {e}", "Validation:", "step  loss  acc", "{{'loss': {x}}}",
    " {e:2d}%|██  | {i}/1000 [00:01<00:09, 3.21it/s]", "UserWarning: of step {i}", "ValueError: {x}", "lr: {y}",
    "{{'loss': {x},", "Traceback (most recent call last):", '  File "train.py", line {i}, in main', "----------",
)  # fmt: skip
TABLES = (
    ("epoch     train_loss  valid_loss  accuracy  time    ", "{e}    {x}     {y}    {x}    00:12   "),
    ("step,train_loss,val_loss", "{i},{x},{y}"),
    ("| Step | Training Loss | Validation Loss |", "| {i} | {x} | No log |"),
    ("epoch       iteration   main/loss   accuracy", "{e:<12}{i:<12}{x:<12}{y:<12}"),
    ("epoch       iteration   main/loss   accuracy", "{e:<12}{i:<12}            {y:<12}"),
    ("      Epoch    GPU_mem   box_loss   cls_loss  Instances       Size", "  {e}/99   2.5G   {x}   {y}   {i}   640"),
    ("                 Class     Images  Instances   Box(P    R   mAP50", "  all   {i}   {e}   {x}   {y}   0.5"),
    ("name   step   loss", "run{e}   {i}   {x}"),
    ("| step | loss |", "| {i} | {x} |"),
    ("step   loss   lr   etc", "{i}   {x}   {y}   1.60e+03-1147.49"),
    ("[0, '1']", "[{e}, {x}, {y}, '00:12']"),
)


@given(
    st.lists(st.sampled_from(TABLES), min_size=1, max_size=3),
    st.sampled_from(["", *BETWEEN]),
    st.sampled_from([3, 40, 47, 90, 10**6]),
    st.sampled_from([50, 110, 10**6]),
    st.lists(NUMBERS, min_size=1, max_size=4),
)
@settings(max_examples=80, deadline=None, phases=PHASES)
def test_tables_read_alike_by_the_block_and_by_the_row(
    tables: list[tuple[str, str]], between: str, apart: int, again: int, odd: list[str]
) -> None:
    lines = [between.format(i=0, x=1.0, y=2.0, e=0)]
    for number in range(250):
        value = odd[number % len(odd)] if number % 37 == 36 else f"{1 / (number + 1):.3g}"
        head, row = tables[number // again % len(tables)]
        parts = [*([head] if number % again == 0 else []), row, *([between] if number % apart == 2 else [])]
        lines += [part.format(i=number, x=value, y=f"{number % 5}", e=number // 20) for part in parts]
    assert_read_alike(("\n".join(lines) + "\n").encode())


@given(
    st.lists(st.sampled_from(BOXES), min_size=1, max_size=3),
    st.lists(st.integers(0, 2), min_size=1, max_size=9),
    st.sampled_from(BETWEEN),
    st.sampled_from([3, 9, 50, 90, 10**6]),
    st.lists(NUMBERS, min_size=1, max_size=4),
)
@settings(max_examples=80, deadline=None, phases=PHASES)
def test_boxes_read_alike_by_the_block_and_by_the_box(
    boxes: list[list[str]], order: list[int], between: str, apart: int, odd: list[str]
) -> None:
    lines = [between.format(i=0, x=1.0, y=2.0, e=0)]
    for number in range(1, 130):
        value = odd[number % len(odd)] if number % 7 == 0 else f"{1 / number:.3g}"
        told = {"i": number, "x": value, "y": f"{number % 5}", "e": number // 20}
        box = boxes[order[number % len(order)] % len(boxes)]
        lines += [line.format(**told) for line in (*box, *([between] if number % apart == 0 else []))]
    assert_read_alike(("\n".join(lines) + "\n").encode())


def test_a_log_is_read_on_by_its_shapes_wherever_it_is_cut() -> None:
    text = of_shape("bars with metrics", 300).replace(b"\r", b"\n")
    builder = RunBuilder()
    reader = text_log.Text(builder)
    for line in text.splitlines(keepends=True):
        reader.take_block(line)
    reader.end()
    run, whole = builder.build("train.log"), read(text, learns=False)
    np.testing.assert_array_equal(run["loss"].value, whole["loss"].value)
    np.testing.assert_array_equal(run["loss"].step, whole["loss"].step)


def test_shapes_outlast_more_kinds_of_noise_than_are_remembered() -> None:
    noise = [
        f"opened blob{number}x{number * 7} of the store\nstep {number}: loss {1 / number:.4f}"
        for number in range(1, 400)
    ]
    with patch.object(records, "MAX_KEYS", 50), patch.object(text_log, "FIRST_BYTES", 512):
        run = assert_read_alike(("\n".join(noise) + "\n").encode())
    assert len(run["loss"]) == 399


@pytest.mark.parametrize(
    ("line", "numbers"),
    [
        ("step 12: loss -0.5, lr 1e-05", ["12", "-0.5", "1e-05"]),
        ("12,345 tokens, 1,234.5 s, at 10:20:30,123", ["12,345", "1,234.5"]),
        ("[rank0] 2024-01-31T10:20:30.123456Z loss 1.5, 10:20:30, 8 of 1:02:03", ["1.5", "8", "1", "02", "03"]),
        ("10:20:30,0.25 10:20:30,12 at 10:20:30:40", ["0.25", "12", "10", "20", "30", "40"]),
        ("[1,2,3] 0.123,456 1234,567", ["1", "2", "3", "0.123", "456", "1234", "567"]),
        ("layer12 v1.2.3 x1e5 acc@5", ["5"]),
        ("2024-01-31 -1-2 +.5e+3 5. 1.2.3", ["2024", "01", "31", "-1", "2", "+.5e+3", "5.", "1.2.3"]),
        ("3e 4e- 5e5 12.3it/s 40%", ["3", "4", "5e5", "12.3", "40"]),
    ],
)
def test_the_numbers_of_a_line_are_told_from_its_words(line: str, numbers: list[str]) -> None:
    skeletons = Skeletons(f"\n{line}\n".encode())
    assert [line[start:end] for start, end in skeletons.numbers_in(1)] == numbers


@pytest.mark.parametrize(
    "prefix",
    ["2026-11-20 10:%s,123 - INFO - train.py:88 - [rank0] ", "[10:%s] [rank0]: ", "2026-11-20T10:%s.12Z INFO [rank0] "],
)
def test_a_rank_behind_a_time_does_not_hide_that_lines_are_alike(prefix: str) -> None:
    lines = [
        f"{prefix % f'{n // 60:02d}:{n % 60:02d}'}Iter [{n}/900] eta: 1:02:03, loss: {9 / n:.4f}" for n in range(1, 900)
    ]
    with patch.object(text_log.Text, "_slowly", autospec=True, side_effect=text_log.Text._slowly) as slowly:
        run = assert_read_alike(("\n".join(lines) + "\n").encode())
    assert len(run["loss"]) == 899
    by_learning = slowly.call_count - 899  # the exact reader takes each line
    assert by_learning < 50


def test_lines_that_differ_in_their_numbers_or_in_how_far_a_bar_is_drawn_have_one_skeleton() -> None:
    lines = [" 15%|█▌        | 15/100 loss=0.5", " 35%|███▌      | 35/100 loss=-1e-3", "step 5", "step 5.5"]
    keys = Skeletons(("\n".join(lines) + "\n").encode()).keys
    assert keys[0] == keys[1]
    assert keys[2] != keys[3]


def test_the_numbers_of_a_block_are_those_that_python_reads() -> None:
    draw = np.random.default_rng(0)
    values = (draw.normal(size=500) * 10.0 ** draw.integers(-30, 30, 500)).tolist()
    skeletons = Skeletons("".join(f"x {value!r} 12,345\n" for value in values).encode())
    assert skeletons.numbers.tolist() == [number for value in values for number in (value, 12345.0)]


def test_numbers_at_the_same_places_of_many_lines_are_those_that_python_reads() -> None:
    draw = np.random.default_rng(0)
    values = (draw.normal(size=400) * 10.0 ** draw.integers(-30, 30, 400)).tolist()
    rows = [
        [f"{value:+.5e}", f"{value % 10:.15f}", f"{value % 1:.17f}", f"{place:06d}", "-0.000", ".5", "5.", "12,345.25"]
        for place, value in enumerate(values)
    ]
    skeletons = Skeletons("".join(f"a {' | '.join(row)} 1.2.3\n" for row in rows).encode())
    printed = [float(text.replace(",", "")) for row in rows for text in row]
    assert [repr(number) for number in skeletons.numbers.tolist() if number == number] == list(map(repr, printed))  # noqa: PLR0124
    assert np.count_nonzero(np.isnan(skeletons.numbers)) == len(rows)


def test_lines_that_differ_in_the_digits_of_a_word_have_other_skeletons() -> None:
    lines = ["layer1 at 10:00:01 loss 0.25", "layer2 at 10:00:02 loss 0.75"] * 50
    skeletons = Skeletons("".join(f"{line}\n" for line in lines).encode())
    assert skeletons.keys[0] != skeletons.keys[1]
    assert skeletons.keys[0] == skeletons.keys[2]
    assert skeletons.numbers.tolist() == [0.25, 0.75] * 50


def test_a_line_of_the_head_that_stands_between_records_too_is_not_read_each_time() -> None:
    chatter = "some words about nothing in particular {0} 34\n"
    records = "".join(f"step {step} | loss 2.{step}\n{chatter.format(step)}" for step in range(1000, 4000))
    with patch.object(text_log, "content_of", wraps=content_of) as reads:
        run = read(records.encode(), learns=True)
    assert run.records == 3000
    assert reads.call_count < 1000


def test_epochs_that_end_in_a_line_of_their_own_read_alike_however_long_the_log_is() -> None:
    steps = "".join(f"step {at} loss {3 - at / 1000:.4f}\n" for at in range(10, 110, 10))
    text = "".join(f"{steps}Epoch {epoch} finished. val_loss {4 / epoch:.4f}\n" for epoch in range(1, 100)).encode()
    run = read(text, learns=True)
    assert run["eval_loss"].step.tolist() == read(text, learns=False)["eval_loss"].step.tolist()
    assert run["epoch"].value.tolist()[1:] == [2 + at // 10 for at in range(980)]


def test_lines_that_are_read_whole_are_not_read_by_the_places_of_their_numbers(tmp_path: Path) -> None:
    """That takes thirty times as long, and is for numbers that known forms leave out."""
    log = tmp_path / "train.log"
    lines = [f"step {step:4d}: | loss {3 - step / 100:.4f} | lr {1e-3 / (1 + step):.3e} |" for step in range(1, 101)]
    with patch.object(own_layout, "read_own_layout", return_value=False) as again:
        log.write_text("\n".join(lines))
        assert list(read_run(log).series) == ["loss", "learning_rate"]
        assert not again.called
        for other in ("step 101: | loss 2.0 | lr 1.0e-05 | dead 0.25 |", "step 101: | loss nan | lr 1.0e-05 |", "val:"):
            again.reset_mock()
            log.write_text("\n".join([*lines, other]))
            read_run(log)
            assert again.called, other
