"""Bars of tqdm, drawn by tqdm itself with a clock that the test moves: each value read is that of its batch."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from tests.logs.reading import points, read
from tqdm import tqdm

from mldebug_mcp import InputError
from mldebug_mcp.logs import Run

FAST, SLOW = 0.004, 0.12
"""Seconds that a batch takes: tqdm counts on each 0.1 seconds at most."""
BATCHES = 120


class Clock:
    """The time that tqdm sees."""

    now = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Give tqdm a clock, and no thread that draws by itself."""
    clock = Clock()
    monkeypatch.setattr("tqdm.std.time", clock)
    monkeypatch.setattr(tqdm, "monitor_interval", 0)
    return clock


def loss_of(batch: int) -> float:
    """Return the loss of a batch, counted from 1, as `set_postfix` prints it."""
    return float(f"{2.5 / (1 + 0.01 * batch) + (batch * 7919 % 97) / 500:.3g}")


def iterate(clock: Clock, out: StringIO, seconds: float, count: int = BATCHES, first: int = 0, **how: Any) -> None:
    """Iterate over a bar and show each loss."""
    bar = tqdm(range(count), file=out, **how)
    for batch in bar:
        clock.now += seconds
        bar.set_postfix(loss=loss_of(first + batch + 1))


def count_by_hand(clock: Clock, out: StringIO, seconds: float, *, shows_first: bool, size: int = 1) -> None:
    """Count on by hand, before or after the loss is shown."""
    bar = tqdm(total=BATCHES * size, file=out)
    for batch in range(BATCHES):
        clock.now += seconds
        if shows_first:
            bar.set_postfix(loss=loss_of(batch + 1))
        bar.update(size)
        if not shows_first:
            bar.set_postfix(loss=loss_of(batch + 1))
    bar.close()


def show_in_head(clock: Clock, out: StringIO, seconds: float) -> None:
    """Show each loss before the bar."""
    bar = tqdm(range(BATCHES), file=out)
    for batch in bar:
        clock.now += seconds
        bar.set_description(f"loss {loss_of(batch + 1)}")


def in_epochs(clock: Clock, out: StringIO, seconds: float, name: str) -> None:
    """Draw a bar for each of four epochs."""
    for epoch in range(4):
        iterate(clock, out, seconds, BATCHES // 4, epoch * BATCHES // 4, desc=name.format(epoch + 1))


def in_another_bar(clock: Clock, out: StringIO, seconds: float) -> None:
    """Draw bars of batches under one of epochs, which vanish."""
    for epoch in tqdm(range(4), file=out, desc="epochs", position=0):
        how = {"desc": f"Epoch {epoch}", "position": 1, "leave": False}
        iterate(clock, out, seconds, BATCHES // 4, epoch * BATCHES // 4, **how)


@pytest.mark.parametrize("seconds", [FAST, SLOW])
@pytest.mark.parametrize(
    "loop",
    [
        iterate,
        lambda *how: iterate(*how, mininterval=10),
        lambda *how: iterate(*how, mininterval=0),
        lambda *how: count_by_hand(*how, shows_first=True),
        lambda *how: count_by_hand(*how, shows_first=False),
        show_in_head,
        lambda clock, out, seconds: in_epochs(clock, out, seconds, "Epoch {}/4"),
        lambda clock, out, seconds: in_epochs(clock, out, seconds, ""),
        in_another_bar,
    ],
    ids=[
        "iterates",
        "counts seldom",
        "counts at once",
        "shows, then counts",
        "counts, then shows",
        "in the head",
        "epochs",
        "epochs without a name",
        "nested",
    ],
)
def test_each_batch_has_the_loss_that_its_loop_showed(
    tmp_path: Path, clock: Clock, loop: Callable[[Clock, StringIO, float], None], seconds: float
) -> None:
    assert points(_read(tmp_path, clock, loop, seconds), "loss") == {
        step: loss_of(step) for step in range(1, BATCHES + 1)
    }


@pytest.mark.parametrize("shows_first", [True, False])
def test_a_bar_that_counts_samples_gives_a_batch_the_samples_behind_it(
    tmp_path: Path, clock: Clock, shows_first: bool
) -> None:
    run = _read(tmp_path, clock, lambda *how: count_by_hand(*how, shows_first=shows_first, size=32), FAST)
    assert points(run, "loss") == {32 * batch: loss_of(batch) for batch in range(1, BATCHES + 1)}


@pytest.mark.parametrize("shows_first", [True, False])
def test_metrics_that_are_set_but_not_drawn_may_be_a_step_old(tmp_path: Path, clock: Clock, shows_first: bool) -> None:
    def loop(clock: Clock, out: StringIO, seconds: float) -> None:
        bar = tqdm(total=BATCHES, file=out)
        for batch in range(BATCHES):
            clock.now += seconds * (1 + batch * batch % 11)
            if shows_first:
                bar.set_postfix(loss=loss_of(batch + 1), refresh=False)
            bar.update()
            if not shows_first:
                bar.set_postfix(loss=loss_of(batch + 1), refresh=False)
        bar.close()

    run = _read(tmp_path, clock, loop, FAST)
    read_at = points(run, "loss")
    assert len(read_at) > 3
    assert all(value in (loss_of(int(step)), loss_of(int(step) - 1)) for step, value in read_at.items())
    assert any("up to 1 step(s) older" in note for note in run.notes)


@pytest.mark.parametrize("first", [0, 9])
def test_metrics_that_are_shown_each_ten_batches_are_as_old_as_the_answer_says(
    tmp_path: Path, clock: Clock, first: int
) -> None:
    def loop(clock: Clock, out: StringIO, seconds: float) -> None:
        bar = tqdm(range(BATCHES), file=out)
        for batch in bar:
            clock.now += seconds
            if batch % 10 == first:
                bar.set_postfix(loss=loss_of(batch + 1))

    run = _read(tmp_path, clock, loop, FAST)
    lag = next(int(note.split("up to ")[1].split()[0]) for note in run.notes if "set last" in note)
    assert lag <= 20
    for step, value in points(run, "loss").items():
        assert value in [loss_of(int(step) - back) for back in range(lag + 1)]


@pytest.mark.parametrize(("seconds", "first"), [(FAST, 0), (FAST, 9), (SLOW, 9)])
def test_a_loop_that_shows_seldom_and_counts_first_gives_values_at_their_own_steps(
    tmp_path: Path, clock: Clock, seconds: float, first: int
) -> None:
    def loop(clock: Clock, out: StringIO, seconds: float) -> None:
        bar = tqdm(total=BATCHES, file=out)
        for batch in range(BATCHES):
            clock.now += seconds
            bar.update()
            if batch % 10 == first:
                bar.set_postfix(loss=loss_of(batch + 1))
        bar.close()

    run = _read(tmp_path, clock, loop, seconds)
    assert points(run, "loss") == {step: loss_of(step) for step in range(first + 1, BATCHES + 1, 10)}


@pytest.mark.parametrize("changes", [BATCHES, 3])
def test_a_loop_whose_first_losses_are_alike_has_them_at_each_batch(tmp_path: Path, changes: int) -> None:
    losses = {step: 0.693 if step <= changes else loss_of(step) for step in range(1, BATCHES + 1)}
    bar = "train:  5%|▌    | {0}/1000 [00:10<01:00,  1.50it/s, loss={1}]\n"
    assert points(read(tmp_path, "".join(bar.format(*each) for each in losses.items())), "loss") == losses


def test_lines_that_are_written_above_a_bar_change_nothing(tmp_path: Path, clock: Clock) -> None:
    def loop(clock: Clock, out: StringIO, seconds: float) -> None:
        bar = tqdm(range(BATCHES), file=out)
        for batch in bar:
            clock.now += seconds
            bar.set_postfix(loss=loss_of(batch + 1))
            if batch % 10 == 9:
                tqdm.write(f"saved the model to model_{batch}.pt", file=out)

    assert points(_read(tmp_path, clock, loop, FAST), "loss") == {step: loss_of(step) for step in range(1, BATCHES + 1)}


@pytest.mark.parametrize("share", [0.1, 0.35, 0.6])
def test_a_log_that_begins_within_a_bar_has_no_loss_of_another_batch(
    tmp_path: Path, clock: Clock, share: float
) -> None:
    out = StringIO()
    iterate(clock, out, FAST)
    text = out.getvalue()
    read_at = points(read(tmp_path, text[int(share * len(text)) :]), "loss")
    assert len(read_at) > 10
    assert read_at == {step: loss_of(int(step)) for step in read_at}


def test_epochs_of_training_and_validation_keep_their_own_losses(tmp_path: Path, clock: Clock) -> None:
    def loop(clock: Clock, out: StringIO, seconds: float) -> None:
        for epoch in range(4):
            iterate(clock, out, seconds, 30, 30 * epoch, desc=f"Epoch {epoch + 1} train")
            bar = tqdm(range(7), file=out, desc=f"Epoch {epoch + 1} val")
            for _ in bar:
                clock.now += seconds
                bar.set_postfix(val_loss=3 - epoch / 10)
            out.write(f"Epoch {epoch + 1}: val_loss={3 - epoch / 10}\n")

    run = _read(tmp_path, clock, loop, FAST)
    assert points(run, "loss") == {step: loss_of(step) for step in range(1, BATCHES + 1)}
    assert run["eval_loss"].value.tolist()[-1] == pytest.approx(2.7)


def _read(folder: Path, clock: Clock, loop: Callable[[Clock, StringIO, float], None], seconds: float) -> Run:
    out = StringIO()
    loop(clock, out, seconds)
    return read(folder, out.getvalue())


@pytest.mark.parametrize("redrawn", [True, False])
def test_dicts_stand_at_the_step_of_the_bar_above_where_none_is_drawn_again_below(
    redrawn: bool, tmp_path: Path
) -> None:
    lines = []
    for step in range(1, 61):
        bar = f" {step * 100 // 60}%|###       | {step}/60 [00:{step:02}<00:10,  1.00it/s]\n"
        lines += [bar, f"{{'loss': {3 - step / 60:.4f}, 'learning_rate': 1e-05, 'epoch': {step / 20:.2f}}}\n"]
        lines += [f"{{'eval_loss': {3.5 - step / 60:.4f}, 'epoch': {step / 20:.2f}}}\n"] * (step % 20 == 0)
        lines += [bar] * redrawn
    run = read(tmp_path, "".join(lines))
    assert run["loss"].step.tolist() == [*range(1, 61)]
    assert run["eval_loss"].step.tolist() == [20, 40, 60]


def test_one_bar_over_all_epochs_counts_the_steps_of_the_plan_under_their_headings(tmp_path: Path) -> None:
    lines = []
    for step in range(1, 61):
        lines += [f"epoch {step // 20 + 1}/3\n"] * (step % 20 == 1)
        lines += [
            f"\rsteps: {step * 100 // 60}%|##  | {step}/60 [00:01<00:10,  2.01s/it, avr_loss={3 - step / 60:.4f}]"
        ]
        lines += [f"\nsaving checkpoint: /out/lora-{step:06}.safetensors\n"] * (step % 20 == 0)
    run = read(tmp_path, "".join(lines))
    assert points(run, "epoch") == {step: (step - 1) // 20 + 1 for step in range(1, 61)}
    assert run.planned == {"epoch": 3, "step": 60}
    assert run.ending.how == "finished"
    assert run.text_lines[0].step == 20


def bar_of_epochs(head: str, *, redrawn: bool, between: str = "") -> str:
    """Return the drawings of a bar that counts 8 epochs, whose head names each of them."""
    drawn = "{head}: {0}%|##  | {0}/8 [00:0{0}<00:05,  2.50it/s]\n"
    heads = [(at, head.format(at, at + 1, 3 / (at + 1))) for at in range(8)]
    return "".join(
        drawn.format(at, head=head) + drawn.format(at + 1, head=head) * redrawn + between.format(at / 10)
        for at, head in heads
    )


@pytest.mark.parametrize("redrawn", [False, True])
@pytest.mark.parametrize(("head", "first"), [
    ("Epoch {0} | loss: {2:.4f}", 0), ("Epoch {1}/8, loss: {2:.4f}", 1), ("epoch {1} train loss={2:.4f}", 1),
])  # fmt: skip
def test_a_bar_that_counts_the_epochs_its_head_names_has_no_batches(
    tmp_path: Path, head: str, first: int, redrawn: bool
) -> None:
    run = read(tmp_path, bar_of_epochs(head, redrawn=redrawn))
    assert run.step_name == "epoch"
    assert points(run, "loss") == {at + first: round(3 / (at + 1), 4) for at in range(8)}
    assert run.planned == {"epoch": 8}


def test_lines_between_its_drawings_change_nothing_in_what_a_bar_counts(tmp_path: Path) -> None:
    bars = bar_of_epochs("Epoch {0}, loss: {2:.4f}", redrawn=False, between="validation accuracy: {0}\n")
    run = read(tmp_path, bars)
    assert run["loss"].step.tolist() == list(range(8))
    assert points(run, "eval_accuracy") == {at: at / 10 for at in range(8)}


def test_bars_of_as_many_batches_as_there_are_epochs_count_within_each(tmp_path: Path) -> None:
    bar = "Epoch {0}: {1}%|##  | {1}/3 [00:0{1}<00:05,  2.50it/s, loss={2}]\n"
    drawn = [bar.format(epoch, at, 9 - 3 * epoch - at) for epoch in range(3) for at in range(4)]
    assert read(tmp_path, "".join(drawn))["loss"].step.tolist() == list(range(1, 10))


@pytest.mark.parametrize(("printed", "steps"), [("{0}, {1}", [1, 11, 21, 31]), ("{0}9, {1}", None)])
def test_two_numbers_behind_a_bar_are_its_step_and_the_loss(
    tmp_path: Path, printed: str, steps: list[int] | None
) -> None:
    bar = "{0}%|#  | {1}/312 [00:0{0}<1:00, 2.5s/it]" + printed.replace("0", "2").replace("1", "3") + "\n"
    text = "".join(bar.format(at, 10 * at + 1, 10 * at, 2.5 - at / 4) for at in range(4))
    if steps is None:
        with pytest.raises(InputError):
            read(tmp_path, text)
    else:
        assert points(read(tmp_path, text), "loss") == dict(zip(steps, [2.5, 2.25, 2.0, 1.75], strict=True))


def test_the_rate_in_the_heading_of_a_bar_is_that_of_its_epoch(tmp_path: Path) -> None:
    drawn = "Epoch {0}, learning rate = 0.00{1}\nTrain loss: 0.{1}: 100%|██████████| 183/183 [01:12<00:00,  2.51it/s]\n"
    run = read(tmp_path, "".join(drawn.format(at, 9 - at) for at in range(3)))
    assert points(run, "learning_rate") == {183: 0.009, 366: 0.008, 549: 0.007}
    assert points(run, "epoch") == {183: 0, 366: 1, 549: 2}
