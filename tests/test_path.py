"""Following the path of a run from `diagnose_run` to the answer: few calls between files, in few files."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import FrameType

import pytest

import mldebug_mcp

SOURCE = str(Path(mldebug_mcp.__file__).parent)
MAKES = "/core/lazy.py"
"""Makes classes and patterns when they are first used: it does nothing with a path that passes."""
CARRIERS = ("LogFile", "RunFolder")
"""What the path becomes on its way."""
MOST_CALLS, MOST_FILES = 50, 25


class Trace:
    """Counts the calls from one file to another that hand the path on; formats that are only asked are one.

    Args:
        path: The path of the run.
    """

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self.calls: set[tuple[str, str, str, str]] = set()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Take an event of the interpreter, as `sys.setprofile` hands it over."""
        code, caller = frame.f_code, frame.f_back
        if event != "call" or not code.co_filename.startswith(SOURCE):
            return
        while caller is not None and not caller.f_code.co_filename.startswith(SOURCE):
            caller = caller.f_back
        if caller is None or caller.f_code.co_filename == code.co_filename or code.co_filename.endswith(MAKES):
            return
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if any(self._carries(frame.f_locals.get(name)) for name in names):
            asked = code.co_name == "matches"
            file = "a format" if asked else code.co_filename.removeprefix(SOURCE)
            self.calls.add((caller.f_code.co_filename.removeprefix(SOURCE), caller.f_code.co_name, file, code.co_name))

    def _carries(self, value: object) -> bool:
        if isinstance(value, str | os.PathLike):
            text = os.fspath(value)
            return isinstance(text, str) and (text == self._path or text.startswith(f"{self._path}/"))
        return type(value).__name__ in CARRIERS

    @property
    def files(self) -> set[str]:
        """The files that the path comes through."""
        return {file for call in self.calls for file in (call[0], call[2])}


@pytest.mark.parametrize("run", ["healthy", "nan_loss"])
def test_the_path_of_a_run_comes_through_few_files(run: str) -> None:
    path = Path(__file__).parent.parent / "examples" / run
    mldebug_mcp.diagnose_run(path)  # what is loaded and remembered at the first call is no part of the way
    trace = Trace(path)
    sys.setprofile(trace)
    try:
        mldebug_mcp.diagnose_run(path)
    finally:
        sys.setprofile(None)
    assert len(trace.calls) <= MOST_CALLS, sorted(trace.calls)
    assert len(trace.files) <= MOST_FILES, sorted(trace.files)
