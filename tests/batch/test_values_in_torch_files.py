"""NaN is found wherever a file of `torch.save` holds floats, named or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mldebug_mcp.capture import save_batch
from mldebug_mcp.judge.batch import inspect_batch

torch: Any = pytest.importorskip("torch")

LABELS = torch.arange(8) % 3


def with_nan(*shape: int) -> Any:
    values = torch.randn(*shape, generator=torch.Generator().manual_seed(1))
    values.view(-1)[3] = float("nan")
    return values


def found_in(batch: Any, folder: Path) -> dict[str, str]:
    file = folder / "batch.pt"
    torch.save(batch, file)
    return {finding.check: finding.summary for finding in inspect_batch(file).findings}


@pytest.mark.parametrize(
    ("batch", "column"),
    [
        ({"inputs": {"image": with_nan(8, 3, 8, 8), "state": torch.randn(8, 4)}, "y": LABELS}, "inputs.image"),
        ({"obs": {"camera": {"rgb": with_nan(8, 3, 8, 8)}}, "action": torch.randn(8, 2)}, "obs.camera.rgb"),
        ([{"x": {"a": with_nan(4)}, "y": 1} for _ in range(8)], "x.a"),
        ((with_nan(8, 4), LABELS), "x"),
        ([torch.randn(8, 4), with_nan(8, 1)], "y"),
        ([(with_nan(4), label) for label in LABELS], "x"),
        (with_nan(8, 4), "x"),
        ({"masked_features": with_nan(8, 4), "y": LABELS}, "masked_features"),
        ({"x": torch.complex(torch.randn(8, 4), with_nan(8, 4)), "y": LABELS}, "x"),
        (
            {
                "pixel_values": torch.randn(4, 3, 8, 8),
                "labels": [{"class_labels": torch.tensor([1]), "boxes": with_nan(1, 4)} for _ in range(4)],
            },
            "labels.boxes",
        ),
    ],
    ids=[
        "mapping",
        "deep mapping",
        "rows of mappings",
        "pair",
        "values",
        "samples",
        "bare",
        "mask",
        "complex",
        "boxes",
    ],
)
def test_nan_is_found_in(batch: Any, column: str, tmp_path: Path) -> None:
    assert found_in(batch, tmp_path)["nonfinite_values"].startswith(f"{column} holds ")


def test_minus_infinity_in_a_mask_is_meant(tmp_path: Path) -> None:
    mask = torch.triu(torch.full((6, 6), float("-inf")), 1).expand(8, 1, 6, 6).clone()
    assert "nonfinite_values" not in found_in({"x": torch.randn(8, 4), "attention_mask": mask}, tmp_path)


def test_finite_values_in_mappings_raise_no_alarm(tmp_path: Path) -> None:
    batch = {"inputs": {"image": torch.randn(8, 3, 8, 8), "state": torch.randn(8, 4)}, "y": LABELS}
    assert not found_in(batch, tmp_path)


@pytest.mark.parametrize("ending", ["json", "pt", "npz"])
def test_a_pair_without_names_is_saved(ending: str, tmp_path: Path) -> None:
    file = save_batch((with_nan(8, 4), LABELS), tmp_path / f"batch.{ending}")
    assert "nonfinite_values" in {finding.check for finding in inspect_batch(file).findings}
