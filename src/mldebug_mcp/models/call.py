"""A call that an answer suggests, ready to send."""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import Field

from mldebug_mcp.models.base import Model, Text

Argument = Text | int | float | bool | dict[str, Text]


class Call(Model):
    """A call of one of our tools that can be made as it stands: it has no placeholders."""

    tool: str = Field(description="Its name.")
    arguments: dict[str, Argument] = Field(default_factory=dict, description="By name, as the tool takes them.")
    why: Text = Field("", description="What it will show.")

    def __str__(self) -> str:
        given = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in self.arguments.items())
        return f"{self.tool}({given})"


NextCall = Annotated[Call | None, Field(description="The call to make next, ready to send.")]
