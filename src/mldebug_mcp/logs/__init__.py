"""Log files and run folders → `Run`. One module per format; `readers` lists them, most particular first."""

from __future__ import annotations

from mldebug_mcp.logs.folder import read_run
from mldebug_mcp.logs.run import Message, Run, Segment, Series
from mldebug_mcp.logs.tail import LogTail

__all__ = ["LogTail", "Message", "Run", "Segment", "Series", "read_run"]
