"""Numbers with units, in text and in the cells of tables: each metric comes out in one unit, whatever its lines say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mldebug_mcp import diagnose_run, read_metric
from mldebug_mcp.logs import read_run
from mldebug_mcp.logs.names.metrics import canonical

FALLS = [f"{8 - step / 20:.3f}" for step in range(60)]


def test_data_in_a_unit_of_time_is_the_wait_for_data(tmp_path: Path) -> None:
    lines = [f"step {step} loss={loss} data={80 + step % 7}ms step_time=0.1s" for step, loss in enumerate(FALLS)]
    (tmp_path / "train.log").write_text("\n".join(lines))
    found = [finding for finding in diagnose_run(str(tmp_path)).findings if finding.symptom == "data_wait_high"]
    assert "83% of a typical step" in found[0].summary


@pytest.mark.parametrize("pair", ["tok/s {}", "tok/s: {}", "tok/s={}"])
def test_thousands_and_millions_behind_a_rate_per_second_count(tmp_path: Path, pair: str) -> None:
    rates = ["1.23M"] * 40 + ["310K"] * 20
    lines = [
        f"step {step} | loss {loss} | {pair.format(rate)}"
        for step, (loss, rate) in enumerate(zip(FALLS, rates, strict=True))
    ]
    (tmp_path / "train.log").write_text("\n".join(lines))
    answer = read_metric(str(tmp_path), ["tok/s"]).series[0]
    assert [value for _, value in answer.points[:: len(answer.points) - 1]] == [1.23e6, 310e3]
    texts = [event.text for event in diagnose_run(str(tmp_path)).sheet.events]
    assert "tok/s from about 1230000 to 310000 (stays)" in texts


TABLE = {
    "tok/s": (["12.3k", "1.2M", "12,500"], [12_300.0, 1.2e6, 12_500.0]),
    "mem": (["22.0GB", "512 MiB", "0.0625TB"], [22.0, 0.5, 64.0]),
    "step_time": (["900ms", "0.96s", "1m 10s"], [0.9, 0.96, 70.0]),
    "mem (MiB)": (["40234", "2 GiB", "512MiB"], [40234 / 1024, 2.0, 0.5]),
    "seq": (["1.5k", "2K", "0.5"], [1500.0, 2000.0, 0.5]),
}


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("kind", ["table.csv", "table.tsv", "markdown.log"])
def test_cells_with_units_are_numbers_of_one_unit(tmp_path: Path, kind: str, name: str) -> None:
    cells, expected = TABLE[name]
    rows = [["step", "loss", name], *([str(step), "2.5", cell] for step, cell in enumerate(cells * 4))]
    mark = {"table.csv": ";", "table.tsv": "\t", "markdown.log": " | "}[kind]
    lines = [mark.join(row) for row in rows]
    if kind == "markdown.log":
        lines = [f"| {line} |" for line in lines]
    (tmp_path / kind).write_text("\n".join(lines) + "\n")
    run = read_run(tmp_path)
    assert run[canonical(name)].value.tolist() == pytest.approx(expected * 4)


@pytest.mark.parametrize(
    ("pairs", "metric", "expected"),
    [
        ("Time: 1m {}s | LR: 0.1", "time", [60.0, 61.0, 62.0]),
        ("elapsed=0h0{}m lr=0.1", "elapsed", [0.0, 60.0, 120.0]),
        ("elapsed=1h02m0{}s lr=0.1", "elapsed", [3720.0, 3721.0, 3722.0]),
        ("speed=1{}.5k samples/s mem=30.5GB", "memory", [30.5] * 3),
        ("speed=1{}.5k samples/s mem=30.5GB", "speed", [10_500.0, 11_500.0, 12_500.0]),
        ("gpu_mem_alloc 2{}.5 GB gpu_mem_reserved 30.5 GB", "memory", [20.5, 21.5, 22.5]),
        ("gpu_mem_alloc 2{}.5 GB gpu_mem_reserved 30.5 GB", "gpu_mem_reserved", [30.5] * 3),
        ("RAM: 61.{}% swap: 3.25 GB", "ram (%)", [61.0, 61.1, 61.2]),
        ("step_time 9{} sec grad_norm 0.5", "grad_norm", [0.5] * 3),
        ("disk_used 512 MB step_time 9{} msec", "step_time", [0.09, 0.091, 0.092]),
    ],
)
def test_units_stay_with_their_numbers(tmp_path: Path, pairs: str, metric: str, expected: list[float]) -> None:
    lines = [f"step {step} loss={FALLS[step]} {pairs.format(step % 3)}\n" for step in range(60)]
    (tmp_path / "train.log").write_text("".join(lines))
    run = read_run(tmp_path)
    found = next(series for name, series in run.series.items() if name.lower() == metric)
    assert found.value.tolist() == pytest.approx(expected * 20)


def test_a_time_in_milliseconds_and_in_seconds_is_one_metric(tmp_path: Path) -> None:
    times = ["time=950ms", "time=1.05s"] * 30
    lines = [f"step {step} loss={loss} {time}\n" for step, (loss, time) in enumerate(zip(FALLS, times, strict=True))]
    (tmp_path / "train.log").write_text("".join(lines))
    run = read_run(tmp_path)
    assert run["step_time"].value.tolist() == pytest.approx([0.95, 1.05] * 30)
    assert "time" not in run


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [("mem (MiB)", "40234", "in GiB"), ("ms/batch", "12.30", "in s"), ("train_acc (%)", "27.5", "in shares of 1")],
)
def test_the_unit_of_a_value_is_given_where_the_name_gives_another(
    tmp_path: Path, name: str, value: str, shown: str
) -> None:
    (tmp_path / "log.csv").write_text(
        f"step,loss,{name}\n" + "".join(f"{at},{FALLS[at]},{value}\n" for at in range(60))
    )
    series = read_metric(str(tmp_path), [name]).series[0]
    assert (series.name, f"in {series.unit}") == (name, shown)
    curves = [curve for quantity in diagnose_run(str(tmp_path)).sheet.quantities for curve in quantity.curves]
    assert f"{name} (= {series.metric}) {shown}: " in next(curve.text for curve in curves if curve.name == name)


def test_json_records_may_write_units_too(tmp_path: Path) -> None:
    records = [{"step": step, "loss": 2.5, "step_time": cell} for step, cell in enumerate(["900ms", "0.96s"] * 3)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    assert read_run(tmp_path)["step_time"].value.tolist() == pytest.approx([0.9, 0.96] * 3)


def test_a_metric_whose_cells_cannot_be_read_is_counted_in_the_notes(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(
        "step,loss,step_time\n" + "".join(f"{step},2.5,slow{step}\n" for step in range(9))
    )
    assert "9 cells of step_time hold no number, such as 'slow0': left out" in diagnose_run(str(tmp_path)).notes
