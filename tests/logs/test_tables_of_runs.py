"""A table whose rows are runs is no curve: it is refused, whatever tool wrote it; a table of records is read."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.logs.reading import read

from mldebug_mcp import InputError, diagnose_runs
from mldebug_mcp.logs import read_run

OPTUNA = """\
,number,value,datetime_start,datetime_complete,duration,params_dropout,params_lr,state
0,0,0.71,2025-03-01 09:00:00,2025-03-01 09:05:00,0 days 00:05:00,0.1,0.003,COMPLETE
1,1,0.66,2025-03-01 09:05:00,2025-03-01 09:09:00,0 days 00:04:00,0.3,0.01,COMPLETE
2,2,,2025-03-01 09:09:00,2025-03-01 09:10:00,0 days 00:01:00,0.2,0.1,PRUNED
"""
RAY = """\
loss,training_iteration,trial_id,date,time_total_s,pid,hostname,config/lr,config/width,logdir
0.91,20,5f3a1_00000,2025-03-01_09-00-00,31.5,811,node-1,0.001,64,5f3a1_00000
0.64,20,5f3a1_00001,2025-03-01_09-00-01,33.1,812,node-1,0.01,64,5f3a1_00001
2.31,8,5f3a1_00002,2025-03-01_09-00-01,12.9,813,node-1,1.0,128,5f3a1_00002
"""
CLEARML = """\
NAME;STATUS;PROJECT;USER;STARTED;ITERATION;train loss;batch_size
bert base;Completed;nlp;ann;01.03.2025 09:00;400;0.41;16
bert large;Failed;nlp;ann;01.03.2025 10:00;120;1.93;8
bert tiny;Completed;nlp;ann;01.03.2025 11:00;400;0.62;16
"""
OWN = "model,seed,hidden_size,final_loss,accuracy\nmlp-a,1,64,0.5,0.8\nmlp-b,2,64,0.4,0.83\nmlp-c,1,256,0.9,0.7\n"


@pytest.mark.parametrize("text", [OPTUNA, RAY, CLEARML, OWN], ids=["optuna", "ray", "clearml", "own"])
@pytest.mark.parametrize("form", ["csv", "json", "jsonl"])
def test_a_table_of_runs_is_refused_with_what_to_give_instead(text: str, form: str, tmp_path: Path) -> None:
    if form != "csv":
        rows = list(csv.DictReader(io.StringIO(text), delimiter=";" if text is CLEARML else ","))
        text = json.dumps(rows) if form == "json" else "".join(json.dumps(row) + "\n" for row in rows)
    with pytest.raises(InputError, match=r"each row is a run, not a record \(.+\): give the history .+ runs FOLDER"):
        read(tmp_path, text, f"runs.{form}")


def test_runs_with_their_configuration_and_summary_inside_are_a_table_too(tmp_path: Path) -> None:
    runs = [
        {"id": name, "state": state, "config": {"width": width}, "summary": {"loss": loss, "step": 900}}
        for name, state, width, loss in (("k1", "finished", 8, 0.5), ("k2", "crashed", 16, 2.5))
    ]
    with pytest.raises(InputError, match="'id' names each row, 'state' holds states of runs"):
        read(tmp_path, json.dumps(runs), "api.json")


def test_a_table_of_runs_beside_their_histories_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text(OWN)
    for name in ("mlp-a", "mlp-b"):
        (tmp_path / f"{name}.csv").write_text("step,loss\n" + "".join(f"{n},{2 - n / 20}\n" for n in range(20)))
    assert {row.name for row in diagnose_runs(tmp_path).rows if row.ending != "unread"} == {"mlp-a.csv", "mlp-b.csv"}


LOSSES = [2.5, 2.25, 2.0, 1.75]
RECORDS = {
    "a constant run name": "run,state,step,loss\n"
    + "".join(f"deft-sun-3,running,{n},{x}\n" for n, x in enumerate(LOSSES)),
    "a name in each record": "uuid,status,step,lr,loss\n"
    + "".join(f"rec-{chr(97 + n)},finished,{n},{0.1 / (n + 1)},{x}\n" for n, x in enumerate(LOSSES)),
    "checkpoints by epoch": "epoch,checkpoint,batch_size,loss\n"
    + "".join(f"{n},model-{n}.pt,{8 * (n + 1)},{x}\n" for n, x in enumerate(LOSSES)),
    "times alone": "time,lr,loss\n" + "".join(f"Mon 09:00:0{n},{0.1 / (n + 1)},{x}\n" for n, x in enumerate(LOSSES)),
    "states of one run": "status,momentum,loss\n" + "".join(f"running,0.{n + 5},{x}\n" for n, x in enumerate(LOSSES)),
    "messages": "note,learning_rate,loss\n"
    + "".join(f"pass {'i' * n},{0.1 / (n + 1)},{x}\n" for n, x in enumerate(LOSSES)),
}


@pytest.mark.parametrize("text", RECORDS.values(), ids=RECORDS)
def test_a_table_of_records_with_words_in_it_is_read(text: str, tmp_path: Path) -> None:
    assert read(tmp_path, text, "history.csv")["loss"].value.tolist() == LOSSES


def test_two_rows_of_words_are_records(tmp_path: Path) -> None:
    log = tmp_path / "values.jsonl"
    rows = [{"precision": "fp16", "grad_norm": "nan"}, {"precision": "fp32", "grad_norm": 0.4}]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert "grad_norm" in read_run(log)


def rows(run: str, loss: float) -> list[dict[str, object]]:
    return [{"run_id": run, "step": step, "loss": loss - step / 100} for step in range(1, 41)]


def as_table(records: list[dict[str, object]]) -> str:
    return "run_id,step,loss\n" + "".join(",".join(map(str, record.values())) + "\n" for record in records)


def as_lines(records: list[dict[str, object]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.mark.parametrize(("ending", "written"), [("csv", as_table), ("jsonl", as_lines)])
@pytest.mark.parametrize("interleaved", [True, False], ids=["in turn", "one below the other"])
def test_records_of_two_runs_in_one_file_are_two_runs(
    tmp_path: Path, ending: str, written: Callable[[list[dict[str, object]]], str], interleaved: bool
) -> None:
    first, second = rows("A", 3.0), rows("B", 9.0)[:30]
    both = [record for pair in zip(first, second, strict=False) for record in pair] if interleaved else first + second
    log = tmp_path / f"log.{ending}"
    log.write_text(written(both + first[30:] if interleaved else both))

    longest, other = read_run(log), read_run(log, run="B")

    assert (longest.records, float(longest["loss"].value[0])) == (40, 2.99)
    assert (other.records, float(other["loss"].value[-1])) == (30, 8.7)
    assert len(longest.runs_in_file) == 2
    assert len(diagnose_runs(log).rows) == 2


def test_a_run_that_goes_on_under_another_name_is_one_run(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text(as_table(rows("A", 3.0)[:20]) + as_table(rows("B", 3.0)[20:]).partition("\n")[2])
    assert read_run(log).records == 40


def test_numbers_with_units_name_no_runs(tmp_path: Path) -> None:
    rows = "".join(f"2026/03/01 10:00:{at:02}.000, NVIDIA H100, {90 + at} %, {61000 + at} MiB\n" for at in range(9))
    path = tmp_path / "nvidia.csv"
    path.write_text(f"timestamp, name, utilization.gpu [%], memory.used [MiB]\n{rows}")
    run = read_run(path)
    assert run["utilization.gpu [%]"].value.tolist() == [90.0 + at for at in range(9)]


BY_SEED = "".join(f"seed {at}: acc 0.{80 + at * 7 % 9} loss 0.{30 + at * 5 % 9}\n" for at in range(10))


def test_results_by_seed_are_no_curve_alone_and_no_figures_of_a_log_next_to_them(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="each row is a seed, not a record"):
        read(tmp_path, BY_SEED, "results.txt")
    log = "".join(f"epoch {at}: train loss {3 - at / 5:.3f}\n" for at in range(8))
    (tmp_path / "run").mkdir()
    (tmp_path / "run/train.log").write_text(log)
    (tmp_path / "run/results.txt").write_text(BY_SEED)
    run = read_run(tmp_path / "run")
    assert list(run.series) == ["loss"]
    assert run["loss"].value[-1] == 1.6


@pytest.mark.parametrize("line", [
    "pair {at}: cosine 0.{at} bleu {low}.5\n",
    "doc {at}: ppl {low}.25 nll 2.{at}\n",
    "{at} lat 48.{at} lon 11.{low} ele 5{low}.5\n",
])  # fmt: skip
def test_a_list_that_is_longer_than_the_log_next_to_it_does_not_take_its_place(tmp_path: Path, line: str) -> None:
    (tmp_path / "train.log").write_text("".join(f"epoch {at}: train loss {3 - at / 5:.3f}\n" for at in range(8)))
    (tmp_path / "list.txt").write_text("".join(line.format(at=at, low=99 - at) for at in range(10, 70)))
    run = read_run(tmp_path)
    assert list(run.series) == ["loss"]
    assert run.runs_in_folder == 1
    assert read_run(tmp_path, run="list.txt").records == 60
