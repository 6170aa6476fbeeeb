"""Records that a loop appends to a list in YAML."""

from __future__ import annotations

from pathlib import Path

import pytest

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.logs import read_run

RECORDS = "".join(
    f"- step: {at}\n  epoch: {at / 20}\n  train/loss: {2 - at / 50}\n  'opt lr': 0.001\n" for at in range(1, 41)
)


def test_a_list_of_records_is_read_with_its_steps(tmp_path: Path) -> None:
    (tmp_path / "history.yaml").write_text(RECORDS)
    run = read_run(tmp_path / "history.yaml")
    assert run.formats == ("yaml",)
    assert run["loss"].step.tolist()[:3] == [1, 2, 3]
    assert run["loss"].value[-1] == 1.2


def test_a_folder_is_searched_for_lists_beside_its_configuration(tmp_path: Path) -> None:
    (tmp_path / "history.yaml").write_text(RECORDS)
    (tmp_path / "config.yaml").write_text("learning_rate: 0.001\nmax_steps: 40\nbatch_size: 8\noptim: adamw_torch\n")
    run = read_run(tmp_path)
    assert len(run["loss"]) == 40
    assert run.setting("max_steps") == 40


def test_mappings_inside_of_records_and_numbers_that_are_not_finite_are_read(tmp_path: Path) -> None:
    text = "# a log\n---\n" + "".join(
        f"- step: {at}\n  train:\n    loss: {'.nan' if at == 5 else at}\n  eval:\n    loss: 3.5\n" for at in range(1, 9)
    )
    (tmp_path / "log.yml").write_text(text)
    run = read_run(tmp_path / "log.yml")
    assert run["loss"].value[:4].tolist() == [1, 2, 3, 4]
    assert len(run["loss"].finite) == 7
    assert "eval_loss" in run


@pytest.mark.parametrize(
    "record",
    [
        "- step: {at}\n  train: {{loss: {loss}, acc: 0.5}}\n",
        "- {{step: {at}, train: {{loss: {loss}, 'acc': 0.5}}, note: \"a, b\"}}\n",
        '- {{"step": {at}, "train": {{"loss": {loss}, "acc": 0.5}}}}\n',
    ],
    ids=["under a key", "the whole record", "as in JSON"],
)
def test_mappings_in_braces_are_read(tmp_path: Path, record: str) -> None:
    head = "config: {lr: 0.01, layers: [2, 3]}\nhistory:\n"
    text = head + "".join(record.format(at=at, loss=2 - at / 10) for at in range(1, 13))
    (tmp_path / "run.yaml").write_text(text)
    run = read_run(tmp_path / "run.yaml")
    assert dict(zip(run["loss"].step.tolist(), run["loss"].value.tolist(), strict=True)) == {
        float(at): 2 - at / 10 for at in range(1, 13)
    }
    assert run["accuracy"].value.tolist() == [0.5] * 12


def test_braces_in_braces_without_end_are_answered_at_once(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(f"{RECORDS}- step: 41\n  odd: {'{a: ' * 50_000}1{'}' * 50_000}\n")
    assert len(read_run(tmp_path / "run.yaml")["loss"]) == 40


def test_lines_that_are_no_keys_are_told_and_what_stands_around_them_is_read(tmp_path: Path) -> None:
    (tmp_path / "log.yaml").write_text(
        RECORDS + "Traceback: what now?\n- - -\n" + RECORDS.replace("step: ", "step: 1000")
    )
    run = read_run(tmp_path / "log.yaml")
    assert len(run["loss"]) == 80
    assert any("no keys of a record" in note for note in run.notes)


def test_a_configuration_alone_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("learning_rate: 0.001\nsteps:\n  - 1\n  - 2\n")
    with pytest.raises(InputError, match="no training log"):
        read_run(tmp_path)


def test_records_under_a_key_are_read_and_what_stands_before_them_is_the_configuration(tmp_path: Path) -> None:
    head = "config:\n  model: gcn\n  epochs: 80\n  batch_size: 64\n  optimizer: adam\n  lr: 0.01\nhistory:\n"
    records = "".join(
        f"  - step: {5 * at}\n    train:\n      loss: {2 - at / 10}\n    val:\n      loss: {3 - at / 10}\n"
        for at in range(1, 9)
    )
    (tmp_path / "run.yaml").write_text(f"{head}{records}ended: normally\n")
    run = read_run(tmp_path)
    assert run.formats == ("yaml",)
    assert run["loss"].step.tolist() == [5 * at for at in range(1, 9)]
    assert run["eval_loss"].value[-1] == 2.2
    assert run.setting("learning_rate") == 0.01
    assert not [note for note in run.notes if "skipped" in note]


def test_records_may_stand_as_far_left_as_their_key(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("history:\n" + RECORDS + "best: 1.2\n")
    assert len(read_run(tmp_path / "run.yaml")["loss"]) == 40


def test_a_configuration_that_lists_mappings_lists_no_records(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(
        "trainer:\n  lr: 0.1\ncallbacks:\n  - name: stop\n    patience: 3\n  - name: save\n    every: 5\n"
    )
    with pytest.raises(InputError, match="no training log"):
        read_run(tmp_path)


@pytest.mark.parametrize("ending", [".log", ".yaml"])
@pytest.mark.parametrize(
    "document",
    [
        "---\nstep: '{0}'\nloss: \"{1}\"\n",
        "---  # logged\nstep: {0}  # counts from 1\ntrain:\n  loss: {1}\n",
        "step: {0}\nloss: {1}\nnote: all well\n...\n---\n",
    ],
)
def test_each_document_of_a_stream_is_a_record(tmp_path: Path, document: str, ending: str) -> None:
    path = tmp_path / f"run{ending}"
    path.write_text("".join(document.format(step, f"{2 / step:.4f}") for step in range(1, 40)))
    loss = read_run(path)["loss"]
    assert loss.step.tolist() == list(range(1, 40))
    assert loss.value[3] == 0.5


def test_rules_between_blocks_of_text_do_not_make_it_a_stream_of_documents(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text("".join(f"---\nstep: {step}\nloss: {2 / step:.4f} (best 0.1)\n" for step in range(1, 40)))
    assert len(read_run(path)["loss"]) == 39


def test_results_that_rllib_prints_are_records_with_an_empty_line_between_them(tmp_path: Path) -> None:
    result = (
        "custom_metrics: {{}}\nepisode_reward_mean: {}\nepisode_len_mean: 21.5\ninfo:\n  learner:\n"
        "    default_policy:\n      total_loss: {}\n      vf_explained_var: .nan\ntraining_iteration: {}\n"
    )
    (tmp_path / "console.txt").write_text(result.format(4.5, 8.5, 6) + "\n" + result.format(5.5, 7.5, 7))
    run = read_run(tmp_path / "console.txt")
    assert run["reward"].value.tolist() == [4.5, 5.5]
    assert run["loss"].step.tolist() == [6, 7]


def test_of_a_long_text_of_printed_results_all_are_records(tmp_path: Path) -> None:
    path = tmp_path / "console.txt"
    path.write_text(
        "".join(f"  episode_reward_mean: {at}.5\n  timesteps_total: {10 * at}\n  \n" for at in range(1, 9000))
    )
    reward = read_run(path)["reward"]
    assert (len(reward), reward.step[0], reward.value[-1]) == (8999, 10, 8999.5)


def test_shares_that_are_listed_under_a_key_are_those_of_layers(tmp_path: Path) -> None:
    head = "config:\n  hidden:\n  - 64\n  - 64\n  lr: 0.001\nhistory:\n"
    records = "".join(
        f"- epoch: {at}\n  loss: {3 - at / 10}\n  zero_fraction:\n  - 0.{at}\n  - 1.0\n  names:\n  - a\n  lr: 0.1\n"
        for at in range(1, 9)
    )
    (tmp_path / "run.yaml").write_text(head + records)
    run = read_run(tmp_path / "run.yaml")
    assert run["zero_fraction/0"].value.tolist() == [at / 10 for at in range(1, 9)]
    assert run["zero_fraction/1"].value.tolist() == [1.0] * 8
    assert run["loss"].value[-1] == 2.2
    assert not any("hidden" in name or "names" in name for name in run.series)
