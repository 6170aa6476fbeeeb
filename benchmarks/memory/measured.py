"""The work that is measured on a snapshot: ours, and what others do with the same file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

_LOAD = "import pickle\nwith open(path, 'rb') as f: tree = pickle.load(f)"
_TORCH = """
import importlib.util, os, pickle
where = importlib.util.find_spec('torch').submodule_search_locations[0]
spec = importlib.util.spec_from_file_location('viz', os.path.join(where, 'cuda', '_memory_viz.py'))
viz = importlib.util.module_from_spec(spec); spec.loader.exec_module(viz)
"""
_OURS = """
from mldebug_mcp.judge.memory import check_memory
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.checks import symptoms
symptoms("memory"); catalogue()
"""
PROGRAMS = {
    "pickle.load": ("", _LOAD),
    "segsum + trace": (
        _TORCH,
        "for verb in (viz.segsum, viz.trace):\n  with open(path, 'rb') as f: verb(pickle.load(f))",
    ),
    "check_memory": (_OURS, "check_memory(path)"),
}
"""What is done before the clock starts, and what is measured. Torch's file runs without the rest of torch."""


def work(program: str, path: Path) -> tuple[float, float]:
    """Return CPU seconds and peak memory in MiB of a piece of work on a snapshot, in a fresh process.

    The kernel's mark of the memory is taken (Linux): what `getrusage` tells is never below that of the process that
    started this one.
    """
    before, measured = PROGRAMS[program]
    code = (
        f"import json, time\npath = {str(path)!r}\n{before}\nstart = time.process_time()\n{measured}\n"
        "most = open('/proc/self/status').read().split('VmHWM:')[1].split()[0]\n"
        "print(json.dumps([time.process_time() - start, int(most) / 1024]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, mebibytes = json.loads(done.stdout.splitlines()[-1])
    return float(seconds), float(mebibytes)
