"""`evaluations.npz` of Stable-Baselines3: its means at their steps; what is no such archive is refused unexpanded."""

from __future__ import annotations

import io
import pickle
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.hostile.pickles import CALLS, Calling
from tests.logs.reading import points

from mldebug_mcp.core.errors import InputError
from mldebug_mcp.logs import read_run

SAMPLE = Path(__file__).parent / "samples" / "stable_baselines3" / "evaluated" / "evaluations.npz"


def saved(folder: Path, **arrays: Any) -> Path:
    np.savez(folder / "evaluations.npz", **arrays)
    return folder / "evaluations.npz"


def archive(folder: Path, **entries: bytes) -> Path:
    with zipfile.ZipFile(folder / "evaluations.npz", "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in entries.items():
            zipped.writestr(f"{name}.npy", content)
    return folder / "evaluations.npz"


def array_bytes(array: Any) -> bytes:
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


def test_the_evaluations_of_an_agent_are_read_by_themselves_and_in_a_run_folder(tmp_path: Path) -> None:
    run = read_run(SAMPLE)
    assert run.step_name == "step"
    assert points(run, "eval_reward") == pytest.approx(
        {512: 47.2, 1024: 53.4, 1536: 62.2, 2048: 64.2, 2560: 234.2, 3072: 500, 3584: 473, 4096: 473}
    )
    (tmp_path / "logs").mkdir()
    shutil.copy(SAMPLE, tmp_path / "logs")
    np.savez(tmp_path / "features.npz", features=np.zeros(5))
    assert read_run(tmp_path)["eval_episode_length"].value[-1] == 473


def test_further_arrays_and_compressed_archives_are_read_and_a_shorter_one_cuts_the_others(tmp_path: Path) -> None:
    steps, earned = np.arange(10, 60, 10), np.arange(10.0).reshape(5, 2)
    np.savez_compressed(tmp_path / "a.npz", timesteps=steps, results=earned, successes=earned > 4, other=np.array("x"))
    run = read_run(tmp_path / "a.npz")
    assert points(run, "eval_reward") == {10: 0.5, 20: 2.5, 30: 4.5, 40: 6.5, 50: 8.5}
    run = read_run(saved(tmp_path, timesteps=steps, results=earned[:3]))
    assert run.records == 3
    assert any("not equally long" in note for note in run.notes)


@pytest.mark.parametrize(
    ("arrays", "why"),
    [
        ({"weights": np.zeros((3, 3))}, "no evaluations of Stable-Baselines3"),
        ({"timesteps": np.arange(3)}, "no evaluations of Stable-Baselines3"),
        ({"timesteps": np.arange(3), "results": np.array(["a", "b", "c"])}, "not numbers"),
    ],
)
def test_another_archive_is_refused(tmp_path: Path, arrays: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        read_run(saved(tmp_path, **arrays))


def test_no_pickle_in_an_archive_is_loaded(tmp_path: Path) -> None:
    content = array_bytes(np.array([0], dtype=object))
    header = content[: content.index(b"\n") + 1]
    path = archive(tmp_path, timesteps=array_bytes(np.arange(1)), results=header + pickle.dumps(Calling()))
    with pytest.raises(InputError, match="not numbers"):
        read_run(path)
    assert not CALLS


def test_a_header_that_claims_more_than_is_there_and_an_entry_that_is_too_large_are_refused(tmp_path: Path) -> None:
    steps = array_bytes(np.arange(3))
    huge = steps.replace(b"(3,), }" + b" " * 9, b"(3000000,), }   ", 1)
    assert huge != steps
    with pytest.raises(InputError, match="not as long as its header says"):
        read_run(archive(tmp_path, timesteps=huge, results=steps))
    with pytest.raises(InputError, match=r"claims 70,000,000 bytes, more than"):
        read_run(archive(tmp_path, timesteps=steps, results=b"\0" * 70_000_000))


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, timesteps=np.arange(300), results=np.zeros((300, 2)))
    path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(InputError, match="a damaged archive"):
        read_run(path)
