"""Write the output schemas of the tools, which the server loads: `python docs/update_schemas.py`.

The tests fail if the file differs from the types.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import TypeAdapter

from mldebug_mcp.server.strict import SCHEMAS, answer_type
from mldebug_mcp.server.tools import TOOLS


def schemas() -> dict[str, Any]:
    """Return the output schema of each tool, by its name."""
    return {tool.__name__: TypeAdapter(answer_type(tool)).json_schema() for tool in TOOLS}


if __name__ == "__main__":
    SCHEMAS.write_text(json.dumps(schemas(), separators=(",", ":")) + "\n", encoding="utf-8")
