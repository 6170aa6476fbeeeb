"""Log files and run folders → `Run`.

- A path → the logs of a run: `folder`, `run_folders`, `several` (which run), `merge`, `tail` (a log that grows).
- A file → its reader: `source` opens it, `readers` lists the modules of `formats`, one per format.
- Text → records: `formats.text_log`, and `lines` with one module per shape that a printed record takes.
- Records → a run: `builder` gathers them into `columns`, `naming` gives those canonical names (`names`, by the table in
  `spellings`), `conventions` and `framework_columns` say what they mean beyond those, `steps` where the run is at each
  record, `series` makes series and segments, `kinds` says what is trained, `config` how.
- What went wrong: `error_lines` for a run's messages, `failures` for tracebacks.
"""

from __future__ import annotations

from mldebug_mcp.logs.folder import read_run
from mldebug_mcp.logs.run import Message, Run, Segment, Series
from mldebug_mcp.logs.tail import LogTail

__all__ = ["LogTail", "Message", "Run", "Segment", "Series", "read_run"]
