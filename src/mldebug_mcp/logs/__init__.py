"""Log files and run folders → `Run`.

- A path → the logs of a run: `folder`, `run_folders`, `places`, `same_run` (which logs belong together), `siblings`,
  `several` (which run), `merge`, `tail` (logs that grow).
- A file → its reader: `source` opens it, `readers` lists the modules of `formats`, one per format.
- Text → records: `formats.text_log`, and `lines` with one module per shape that a printed record takes.
- Records → a run: `builder` gathers them into what was `recorded`; `attempts` splits that where the program started
  again (`attempt_starts`, `process_starts`); `naming` gives its `columns` canonical names (`names`, by the grammar in
  `roles`), `conventions` say what they mean beyond those; `steps` makes the axis, `segments` and `series` what stands
  on it. `settings` says how it was trained, `kinds` what, `plan` how far.
- How it ends: `endings`. What went wrong: `error_lines` and `messages` for a run's messages, `failures` for tracebacks.
"""

from __future__ import annotations

from mldebug_mcp.logs.follow import FolderTail, LogTail
from mldebug_mcp.logs.read import read_run
from mldebug_mcp.logs.run import Message, Run, Segment, Series

__all__ = ["FolderTail", "LogTail", "Message", "Run", "Segment", "Series", "read_run"]
