"""Raise errors with the installed libraries, and count how often they are recognised and named rightly.

python -m benchmarks.errors.raised_messages

`raised.jsonl` holds a case a line: its kind, the ids of `errors.jsonl` that are right for it, the modules that it
needs, and the code that raises. The ids were written down before the tool was asked. A case whose modules are not
installed is passed over, and counted.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import linecache
import os
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from pathlib import Path

from pydantic import BaseModel

from mldebug_mcp.judge.explain_error import explain_error

CASES = Path(__file__).parent / "raised.jsonl"
SCRIPT = "train.py"
"""The name under which a case's code stands in its traceback."""
SURE = "almost certain"


class Case(BaseModel):
    """A line of `raised.jsonl`."""

    kind: str
    right: list[str]
    needs: list[str] = []
    code: str

    @property
    def can_run(self) -> bool:
        """Whether its modules are installed."""
        return all(importlib.util.find_spec(module) is not None for module in self.needs)


def raised(case: Case) -> str:
    """Return the traceback that the code of a case ends with; empty where it raises nothing."""
    names: dict[str, object] = {}
    source = case.code
    settings = dict(os.environ)
    linecache.cache[SCRIPT] = (len(source), None, source.splitlines(keepends=True), SCRIPT)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            exec(compile(source, SCRIPT, "exec"), names)  # noqa: S102 - the cases are this repository's own
        except BaseException:  # noqa: BLE001 - PyTorch raises some errors beside Exception, and a parser exits
            return traceback.format_exc()
        finally:
            os.environ.clear()
            os.environ |= settings
            distributed = sys.modules.get("torch.distributed")
            if distributed is not None and distributed.is_initialized():
                distributed.destroy_process_group()
    return ""


def main() -> None:
    """Print each case that is unknown or wrong, and the shares by kind."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled", "CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}
    cases = [Case.model_validate(json.loads(line)) for line in CASES.read_text(encoding="utf-8").splitlines()]
    counts: dict[str, Counter[str]] = {}
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(folder)
        for number, case in enumerate(cases, 1):
            outcome = judged(number, case) if case.can_run else "not installed"
            counts.setdefault(case.kind, Counter())[outcome] += 1
        os.chdir(here)
    total = sum(counts.values(), Counter())
    for kind, by_outcome in [*sorted(counts.items()), ("all", total)]:
        print(f"{kind:<14}", *(f"{outcome} {count}" for outcome, count in sorted(by_outcome.items())))


def judged(number: int, case: Case) -> str:
    """Raise a case's error and ask for it; print it where the answer is not right."""
    text = raised(case)
    if not text:
        print(f"line {number}: nothing is raised")
        return "not raised"
    matches = explain_error(text).matches
    outcome = "unknown" if not matches else "right" if matches[0].id in case.right else "wrong"
    if outcome == "wrong" and matches[0].credence == SURE:
        outcome = "wrong and sure"
    if outcome != "right":
        message = text.strip().splitlines()[-1][:300]
        print(f"line {number}: {outcome}: {[match.id for match in matches]} for {case.right}: {message}")
    return outcome


if __name__ == "__main__":
    main()
