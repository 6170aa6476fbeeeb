"""The command line: a thin adapter over the library.

Exit codes: 0 done, 1 something was found (with --check), 2 the input cannot be used.
"""

from __future__ import annotations

import argparse
import gc
import io
import os
import sys
from collections.abc import Callable, Sequence

from mldebug_mcp.cli.commands import DONE, UNUSABLE, prefer
from mldebug_mcp.cli.data import do_probe
from mldebug_mcp.cli.parser import make_parser, parsed
from mldebug_mcp.cli.runs import with_sides_named
from mldebug_mcp.cli.serving import do_serve
from mldebug_mcp.core.errors import InputError, MLDebugError
from mldebug_mcp.core.limits import OFFLINE
from mldebug_mcp.core.text import LONGEST_ERROR, shorten

_LIGHT = {"OPENBLAS_NUM_THREADS": "1", "PYDANTIC_DISABLE_PLUGINS": "1"}
"""Settings that let numpy and pydantic start faster: no threads for linear algebra, no search for plugins."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    # Most of what is imported and read lives until the end: collecting garbage takes a twentieth of the time ...
    gc.set_threshold(250_000)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # in the C locale a step's mark would end the command
            stream.reconfigure(errors="replace")
    if "_ARGCOMPLETE" in os.environ:  # the shell asks what may follow; this ends the process
        from argcomplete import autocomplete

        autocomplete(make_parser())
    words = with_sides_named(sys.argv[1:] if arguments is None else arguments)
    parser = make_parser(*words[:1])
    options = parsed(parser, words)
    if options.command is not do_serve and {"server_roots", "server_pythons"} & set(vars(options)):
        parser.error(
            "--root and --python before a command are for the server only; leave them out: other commands may read "
            "everything"
        )
    # For the libraries loaded in this process; used as a library, the package leaves the environment alone.
    os.environ |= OFFLINE
    if options.command not in (do_serve, do_probe):  # these start processes for the user, which would inherit it
        os.environ |= _LIGHT | os.environ
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        prefer(options)
        code = command(options)
        sys.stdout.flush()  # here and not at exit, where a closed pipe could not be told from an error
    except MLDebugError as error:
        said = error.with_options() if isinstance(error, InputError) else str(error)
        print(f"mldebug-mcp: {shorten(said, LONGEST_ERROR)}", file=sys.stderr)
        return UNUSABLE
    except BrokenPipeError:
        # The reader (such as `head`) has seen enough. What is left goes nowhere, so that nothing fails at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt:
        return 130
    else:
        return code
    finally:
        gc.freeze()  # ... and a fifth of a short command's time at exit, where everything is freed anyway
