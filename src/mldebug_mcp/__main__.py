"""`python -m mldebug_mcp` is the command line."""

from __future__ import annotations

import sys

from mldebug_mcp.cli import main

sys.exit(main())
