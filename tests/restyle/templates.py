"""Lines as frameworks and well-known scripts print them.

`{what:format}` is a quantity of training, `{eval_what:format}` one of evaluation; `{what@unit:format}` in another unit
(a key of `words.UNITS`). `{mean_what}` is the mean of the pass so far. `where` in `write` lists what says where the run
is, as `{step}`; `{clock:format}` is the time of day. What stands in `[[ ]]` is left out where it was not measured.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.restyle.story import Quantity

HOLE = re.compile(r"\{(?P<name>\w+)(?:@(?P<unit>\w+))?(?::(?P<format>[^{}]*))?\}")
OPTIONAL = re.compile(r"\[\[(.*?)\]\]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Template:
    """How a framework prints a record.

    Args:
        train: The text of a record of training; empty where evaluation's carries both.
        eval: The text of a record of evaluation; empty where it prints none.
        axis: As in `Style`: what a reader can know of where the run is.
        free: Quantities that carry no unit: percents for shares, whatever the framework uses for memory.
    """

    train: str
    eval: str = ""
    axis: str = "step"
    free: tuple[str, ...] = ()


TEMPLATES: Mapping[str, Template] = {
    "nanogpt": Template(
        "iter {step0}: loss {loss:.4f}, time {step_time@ms:.2f}ms, mfu 31.52%",
        "step {step0}: train loss {loss:.4f}, val loss {eval_loss:.4f}",
        axis="step0",
    ),
    "torchtitan": Template(
        "[titan] {clock:%Y-%m-%d %H:%M:%S},589 - root - INFO - step: {step:2}  loss: {loss:7.4f}[[  "
        "grad_norm: {gradient_norm:7.4f}]][[  memory: {device_memory@GiB:5.2f}GiB(23.10%)]][[  tps: {throughput:,.0f}]]"
        "  mfu: 9.72%",
        "[titan] {clock:%Y-%m-%d %H:%M:%S},589 - root - INFO - validate step: {step:2}  loss: {eval_loss:7.4f}",
    ),
    "megatron": Template(
        " [{clock:%Y-%m-%d %H:%M:%S}] iteration {step:8}/{steps:8} | consumed samples: {samples:12} | [[elapsed "
        "time per iteration (ms): {step_time@ms:.1f} | ]][[learning rate: {learning_rate:.6E} | ]]global batch size: "
        "{rows:5} | lm loss: {loss:.6E} | [[loss scale: {loss_scale:.1f} | ]][[grad norm: {gradient_norm:.3f} | ]]"
        "number of skipped iterations:   0 | number of nan iterations:   0 |",
        "-" * 60 + "\n validation loss at iteration {step} | lm loss value: {eval_loss:.6E} | \n" + "-" * 60,
    ),
    "fairseq": Template(
        "{clock:%Y-%m-%d %H:%M:%S} | INFO | train_inner | epoch {epoch:03}: {iter:6} / {iters} loss={loss:.3f}"
        "[[, wps={throughput:.1f}]], num_updates={step}[[, lr={learning_rate:.6g}]][[, gnorm={gradient_norm:.3f}]]",
        "{clock:%Y-%m-%d %H:%M:%S} | INFO | valid | epoch {epoch:03} | valid on 'valid' subset | loss {eval_loss:.3f} "
        "| num_updates {step}",
    ),
    "fairseq_json": Template(
        '{clock:%Y-%m-%d %H:%M:%S} | INFO | train_inner | {{"epoch": {epoch}, "update": {passes:.3f}, "loss": '
        '"{loss:.3f}"[[, "lr": "{learning_rate:.6g}"]][[, "gnorm": "{gradient_norm:.3f}"]], "num_updates": "{step}"}}',
        '{clock:%Y-%m-%d %H:%M:%S} | INFO | valid | {{"epoch": {epoch}, "valid_loss": "{eval_loss:.3f}", '
        '"valid_num_updates": "{step}"}}',
    ),
    "mmengine": Template(
        "{clock:%Y/%m/%d %H:%M:%S} - mmengine - INFO - Epoch(train)  [{epoch}][{iter:3}/{iters}]  [[lr: "
        "{learning_rate:.4e}  ]]eta: 0:02:14[[  time: {step_time:.4f}]][[  data_time: {data_wait:.4f}]][[  memory: "
        "{device_memory@MiB:.0f}]][[  grad_norm: {gradient_norm:.4f}]]  loss: {loss:.4f}",
        "{clock:%Y/%m/%d %H:%M:%S} - mmengine - INFO - Epoch(val) [{epoch}][13/13]    [[accuracy/top1: "
        "{eval_accuracy@pct:.4f}  ]]loss: {eval_loss:.4f}  data_time: 0.0050  time: 0.0131",
        axis="epoch_iter",
        free=("accuracy", "device_memory"),
    ),
    "mmcv": Template(
        "{clock:%Y-%m-%d %H:%M:%S},589 - INFO - Epoch [{epoch}][{iter}/{iters}]\t[[lr: {learning_rate:.5f}, ]]eta: "
        "1:36:49[[, time: {step_time:.3f}]][[, data_time: {data_wait:.3f}]][[, memory: {device_memory@MiB:.0f}]], "
        "loss: {loss:.4f}[[, grad_norm: {gradient_norm:.4f}]]",
        axis="epoch_iter",
        free=("device_memory",),
    ),
    "detectron2": Template(
        "[{clock:%m/%d %H:%M:%S} d2.utils.events]:  eta: 0:04:31  iter: {step0}  total_loss: {loss:.4g}[[  time: "
        "{step_time:.4f}]][[  data_time: {data_wait:.4f}]][[  lr: {learning_rate:.5g}]][[  max_mem: "
        "{device_memory@MiB:.0f}M]]",
        axis="step0",
        free=("device_memory",),
    ),
    "imagenet_example": Template(
        "Epoch: [{epoch0}][{iter0:4}/{iters}]\t[[Time {step_time:6.3f} ({mean_step_time:6.3f})\t]]"
        "[[Data {data_wait:6.3f} ({mean_data_wait:6.3f})\t]]"
        "Loss {loss:.4e} ({mean_loss:.4e})[[\tAcc@1 {accuracy@pct:6.2f} ({mean_accuracy@pct:6.2f})]]",
        "[[ *   Acc@1 {eval_accuracy@pct:.3f} Acc@5 92.114]]",
        axis="epoch_iter",
        free=("accuracy",),
    ),
    "mnist_example": Template(
        "Train Epoch: {epoch} [{samples_in_pass}/{samples_per_pass} ({percent:.0f}%)]\tLoss: {loss:.6f}",
        "\nTest set: Average loss: {eval_loss:.4f}[[, Accuracy: {eval_accuracy@pct:.0f}%]]\n",
        axis="epoch_iter",
    ),
    "keras": Template(
        "",
        "Epoch {epoch}/{epochs}\n{iters}/{iters} ━━━━━━━━━━━━━━━━━━━━ 21s 420ms/step[[ - accuracy: {accuracy:.4f}]] - "
        "loss: {loss:.4f}[[ - val_accuracy: {eval_accuracy:.4f}]] - val_loss: {eval_loss:.4f}[[ - learning_rate: "
        "{learning_rate:.4e}]]",
        axis="epoch",
    ),
    "keras2": Template(
        "",
        "Epoch {epoch}/{epochs}\n{iters}/{iters} [==============================] - 21s 420ms/step - loss: {loss:.4f}"
        "[[ - accuracy: {accuracy:.4f}]] - val_loss: {eval_loss:.4f}[[ - val_accuracy: {eval_accuracy:.4f}]]",
        axis="epoch",
    ),
    "litgpt": Template(
        "Epoch {epoch} | iter {step} step {step} | loss train: {loss:.3f}, val: n/a | iter time: {step_time@ms:.2f} ms "
        "(step) remaining time: 0:02:11",
        "iter {step}: val loss {eval_loss:.4f}, val time: 812.20 ms",
    ),
    "lightning_bar": Template(
        "\rEpoch {epoch0}:  {percent:3.0f}%|████      | {iter}/{iters} [00:21<00:00,  2.37it/s, v_num=3, "
        "train_loss_step={loss:.3f}]",
        axis="epoch_iter",
    ),
    "tf_estimator": Template("INFO:tensorflow:loss = {loss:.6g}, step = {step} (42.1 sec)"),
    "caffe": Template(
        "I0314 09:26:53.589 140223 solver.cpp:218] Iteration {step} (2.38 iter/s, 4.2s/10 iters), loss = {loss:.6g}"
        "[[\nI0314 09:26:53.590 140223 sgd_solver.cpp:105] Iteration {step}, lr = {learning_rate:.6g}]]",
        "I0314 09:26:54.101 140223 solver.cpp:330] Iteration {step}, Testing net (#0)[[\nI0314 09:26:54.512 140223 "
        "solver.cpp:397]     Test net output #0: accuracy = {eval_accuracy:.6g}]]\nI0314 09:26:54.512 140223 "
        "solver.cpp:397]     Test net output #1: loss = {eval_loss:.6g} (* 1 = {eval_loss:.6g} loss)",
    ),
    "paddle": Template(
        "[{clock:%Y/%m/%d %H:%M:%S}] ppocr INFO: epoch: [{epoch}/{epochs}], global_step: {step}[[, lr: "
        "{learning_rate:.6f}]], loss: {loss:.6f}[[, avg_reader_cost: {data_wait:.5f} s]][[, avg_batch_cost: "
        "{step_time:.5f} s]], avg_samples: {rows}",
    ),
    "tutorial": Template(
        "Epoch {epoch}/{epochs}, Step {iter}/{iters}, Loss: {loss:.4f}[[, Acc: {accuracy@pct:.2f}%]]",
        "Epoch {epoch}/{epochs} - Validation Loss: {eval_loss:.4f}[[, Validation Accuracy: {eval_accuracy@pct:.2f}%]]",
        axis="epoch_iter",
    ),
    "epochs_only": Template(
        "",
        "[Epoch {epoch:03}] train loss: {loss:.4f}[[ acc: {accuracy:.4f}]] | val loss: {eval_loss:.4f}"
        "[[ acc: {eval_accuracy:.4f}]]",
        axis="epoch",
    ),
    "karpathy_llmc": Template(
        "step {step:4}/{steps} | loss {loss:.6f} (+nanz)[[ | norm {gradient_norm:.4f} (+nanz)]][[ | lr "
        "{learning_rate:.2e}]][[ | {step_time@ms:.2f} ms]] | 33.1% bf16 MFU[[ | {throughput:.0f} tok/s]]",
        "val loss {eval_loss:.6f}",
    ),
    "xl_bars": Template(
        "| epoch {epoch:3} step {step:8} | {iter:6} batches[[ | lr {learning_rate:.3g}]][[ | ms/batch "
        "{step_time@ms:5.2f}]] | loss {loss:5.2f}",
        "| Eval {epoch:3} at step {step:8} | time: 12.31s | valid loss {eval_loss:5.2f}",
    ),
}


@dataclass(slots=True)
class Filled:
    """A filled template and the quantities in it, as text with unit."""

    text: str
    cells: list[tuple[Quantity, str, str]]


def fill(
    template: str, values: Mapping[Quantity, float], where: Mapping[str, object], scale: Callable[[str], float]
) -> Filled | None:
    """Fill a template; None where a quantity that is not optional was not measured.

    Args:
        template: The text with its holes.
        values: What was measured.
        where: Values of the holes that are no quantity.
        scale: What one of a unit is in seconds, bytes or shares.
    """
    cells: list[tuple[Quantity, str, str]] = []

    def known(name: str) -> bool:
        return name in where or _quantity(name) in values

    def put(hole: re.Match[str]) -> str:
        name, unit, form = hole["name"], hole["unit"] or "", hole["format"] or ""
        if name in where:
            value = where[name]
            return format(value / scale(unit) if unit and isinstance(value, float) else value, form)
        text = format(values[_quantity(name)] / scale(unit), form)
        cells.append((_quantity(name), text, unit))
        return text

    kept = OPTIONAL.sub(lambda part: part[1] if all(known(h["name"]) for h in HOLE.finditer(part[1])) else "", template)
    if not all(known(hole["name"]) for hole in HOLE.finditer(kept)):
        return None
    return Filled(HOLE.sub(put, kept).replace("{{", "{").replace("}}", "}"), cells)


def _quantity(name: str) -> Quantity:
    return ("eval", name.removeprefix("eval_")) if name.startswith("eval_") else ("train", name)
