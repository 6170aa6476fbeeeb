"""Crash small torchrun jobs of two ranks on the CPU, and count how often the first failing rank and line are found.

python -m benchmarks.errors.crashed_jobs
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from mldebug_mcp.judge.explain_error import explain_error

FAULTS = {
    "index": "[1, 2][5]",
    "shape": "model(torch.randn(8, 3))",
    "key": "{'a': 1}['input_ids']",
    "value": "float('abc')",
    "file": "open('/nonexistent/data.bin')",
    "dtype": "model(torch.ones(8, 4, dtype=torch.long))",
    "graph": "torch.ones(2).sum().backward()",
    "state": "model.load_state_dict({'weight': torch.zeros(3, 4), 'bias': torch.zeros(2)})",
    "none": "None.shape",
    "label": "torch.nn.functional.cross_entropy(torch.randn(2, 3), torch.tensor([0, 7]))",
    "stack": "torch.stack([torch.zeros(2), torch.zeros(3)])",
    "zero": "1 / len([])",
}
JOB = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.Linear(4, 2)
for step in range(3):
    print(f"step {{step}} loss {{model(torch.randn(8, 4)).square().mean().item():.4f}}", flush=True)
if dist.get_rank() == {rank}:
    {fault}
dist.barrier()
"""


def is_right(fault: str, rank: int) -> bool:
    """Crash one job; return whether the line and the rank of its first failure are found."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "job.py"
        script.write_text(JOB.format(rank=rank, fault=fault), encoding="utf-8")
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
        run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    lines = (run.stdout + run.stderr).splitlines()
    error = explain_error("\n".join(lines)).error
    raised = (place for place, line in enumerate(lines, 1) if re.match(rf"\[rank{rank}\]: (?:\w+\.)*\w+Error", line))
    return error is not None and error.line == next(raised, None) and error.ranks == [str(rank)]


def main() -> None:
    """Print what was missed, and the share that is right."""
    jobs = [(name, rank) for place, name in enumerate(FAULTS) for rank in (place % 2, 1 - place % 2)]
    wrong = [f"{name} on rank {rank}" for name, rank in jobs if not is_right(FAULTS[name], rank)]
    print(f"first failing rank and line: {len(jobs) - len(wrong)} of {len(jobs)}", *wrong, sep="\n")


if __name__ == "__main__":
    main()
