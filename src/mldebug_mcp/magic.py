"""`%diagnose` in IPython and Jupyter: the diagnosis of a path, or of a variable of the notebook."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from mldebug_mcp.errors import InputError

if TYPE_CHECKING:
    from mldebug_mcp.report.run_diagnosis import RunDiagnosis

USAGE = "%diagnose PATH or VARIABLE [--reference PATH or VARIABLE]"


class InteractiveShell(Protocol):
    """What is asked of IPython's shell."""

    user_ns: dict[str, Any]

    def register_magic_function(self, func: Callable[[str], Any], magic_kind: str, magic_name: str) -> None:
        """Add a magic."""


def add_magic(shell: InteractiveShell) -> None:
    """Add `%diagnose` to a shell."""

    def diagnose(line: str) -> RunDiagnosis:
        from mldebug_mcp.library import diagnose_run

        words = shlex.split(line)
        reference = words[2] if len(words) == 3 and words[1] == "--reference" else None
        if len(words) != 1 and reference is None:
            raise InputError(f"%diagnose: {line.strip()!r} is not understood; write {USAGE}")
        compared = None if reference is None else shell.user_ns.get(reference, reference)
        return diagnose_run(shell.user_ns.get(words[0], words[0]), reference=compared)

    diagnose.__doc__ = f"Diagnose a run: {USAGE}."
    shell.register_magic_function(diagnose, "line", "diagnose")
