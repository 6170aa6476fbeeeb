"""Log files and run folders → `Run`.

- A path → the logs of a run: `read` takes the steps in their order; `files` finds the logs, `merge` joins those of one
  run; `ranks` looks at those of one job; `remote_files` brings in what is elsewhere; `follow` reads logs that grow.
- A file → its records: `log_file` opens it, `formats` has a reader for each format, `text` reads what scripts print.
- Records → a run: `builder` gathers them, `attempts` splits them where the program started again, `names` gives columns
  canonical names, `align` makes the axis and the series. `settings` says how it was trained, `kinds` what.
- How it ends: `endings`. What went wrong, with tracebacks: `failures`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldebug_mcp.core.lazy import lazily
from mldebug_mcp.logs.read import read_run
from mldebug_mcp.logs.run import Message, Run, Segment, Series

if TYPE_CHECKING:
    from mldebug_mcp.logs.follow import FollowedRun, LogTail

__all__ = ["FollowedRun", "LogTail", "Message", "Run", "Segment", "Series", "read_run"]

if not TYPE_CHECKING:  # a type checker would take every name for one that is there
    __getattr__ = lazily(__name__, {"FollowedRun": "follow", "LogTail": "follow"})
