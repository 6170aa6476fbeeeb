"""A fault that a device reports counts where the loss jumps in the same record, though training goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from mldebug_mcp import diagnose_run

XID = "WARNING loop: NVRM: Xid (PCI:0000:4b:00): 63, pid=3318, name=python, Row Remapper: New row marked for remapping"
OWN = "WARNING loop: NVRM: Xid (PCI:0000:4b:00): 31, pid=3318, name=python, Ch 00000008, MMU Fault"


def leader(tmp_path: Path, message: str, *, said_at: int, jumps_at: int) -> str:
    lines = []
    for step in range(1, 81):
        if step == said_at:
            lines.append(message)
        height = 15.0 if jumps_at <= step < jumps_at + 3 else 0.0
        lines.append(f"step {step} loss {0.8 + 3 / step + height + 0.01 * (step % 3):.4f}")
    path = tmp_path / "train.log"
    path.write_text("\n".join(lines) + "\n")
    return diagnose_run(path).leader


def test_a_fault_at_the_jump_is_the_leading_cause(tmp_path: Path) -> None:
    assert leader(tmp_path, XID, said_at=50, jumps_at=50) == "hardware_fault"


@pytest.mark.parametrize(("message", "said_at"), [(XID, 20), (OWN, 50)])
def test_a_fault_elsewhere_or_of_the_programs_own_work_is_not(tmp_path: Path, message: str, said_at: int) -> None:
    assert leader(tmp_path, message, said_at=said_at, jumps_at=50) != "hardware_fault"
