"""What work costs: in a process of its own, with the most memory that is resident (Linux), or in this one."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_BEGIN = """
import json, resource, sys, time
def used():
    below = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + below.ru_utime + below.ru_stime
answer, printed = None, sys.stdout
sys.stdout = open("/dev/null", "w")
began, before = time.perf_counter(), used()
"""
_END = """
took = [time.perf_counter() - began, used() - before]
# not its own `ru_maxrss`, which begins with the most that the parent process took
own = int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
below = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(json.dumps([*took, max(own, below) / 1024, answer]), file=printed)
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """What work took.

    Args:
        seconds: Of the work alone.
        cpu: Processor seconds of the work alone, with those of processes that it started.
        memory: The most that the process, or one that it started, held, in MiB.
        answer: What the work left in the variable of that name, as JSON holds it.
        process: Seconds of the whole process, with the start of the interpreter and all imports.
        process_cpu: Processor seconds of the whole process.
    """

    seconds: float
    cpu: float
    memory: float
    answer: Any
    process: float
    process_cpu: float


def cost_of(setup: str, work: str, *arguments: object, variables: Mapping[str, str] | None = None) -> Cost:
    """Run Python code, after a setup that is not measured, in a fresh interpreter with compiled bytecode.

    Args:
        setup: Code, such as imports.
        work: Code whose cost is measured; `sys.argv[1:]` are the arguments.
        arguments: Given as text.
        variables: Further variables of the environment.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", f"{setup}\n{_BEGIN}\n{work}\n{_END}", *map(str, arguments)]
    began, before = time.perf_counter(), _cpu_of_children()
    done = subprocess.run(command, env=environment | dict(variables or {}), capture_output=True, text=True, check=False)
    process, process_cpu = time.perf_counter() - began, _cpu_of_children() - before
    assert not done.returncode, done.stderr
    seconds, cpu, memory, answer = json.loads(done.stdout.splitlines()[-1])
    return Cost(seconds, cpu, memory, answer, process, process_cpu)


def seconds(work: Callable[[], object], repeat: int) -> float:
    """Return the processor seconds of the fastest of some runs in this process."""
    took = []
    for _ in range(repeat):
        began = time.process_time()
        work()
        took.append(time.process_time() - began)
    return min(took)


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
