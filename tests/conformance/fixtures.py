"""What the official conformance suite calls by name, added to our own server: only for its tests.

The names and the shape of each answer are the suite's; see the requirements that it prints for each scenario.
"""

from __future__ import annotations

import base64
import io
import json
import struct
import wave
import zlib
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.shared.exceptions import MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)

FIXTURE = "A fixture of the conformance suite"


def picture() -> bytes:
    """A PNG of one pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(4))) + chunk(b"IEND", b"")


def sound() -> bytes:
    """A WAV of one sample."""
    file = io.BytesIO()
    with wave.open(file, "wb") as wav:
        wav.setnchannels(1)
        wav.setsampwidth(2)
        wav.setframerate(8000)
        wav.writeframes(bytes(2))
    return file.getvalue()


def image() -> ImageContent:
    return ImageContent(data=base64.b64encode(picture()).decode(), mime_type="image/png")


def resource(uri: str, text: str, mime_type: str = "text/plain") -> EmbeddedResource:
    return EmbeddedResource(resource=TextResourceContents(uri=uri, mime_type=mime_type, text=text))


def add_fixtures(server: MCPServer[Any]) -> None:
    """Add the tools, resources and prompts that the suite asks for."""
    add_contents(server)
    add_tools(server)
    add_resources(server)
    add_prompts(server)


def add_contents(server: MCPServer[Any]) -> None:
    @server.tool(structured_output=False, description=FIXTURE)
    def test_simple_text() -> str:
        return "one line"

    @server.tool(structured_output=False, description=FIXTURE)
    def test_image_content() -> list[ImageContent]:
        return [image()]

    @server.tool(structured_output=False, description=FIXTURE)
    def test_audio_content() -> list[AudioContent]:
        return [AudioContent(data=base64.b64encode(sound()).decode(), mime_type="audio/wav")]

    @server.tool(structured_output=False, description=FIXTURE)
    def test_embedded_resource() -> list[EmbeddedResource]:
        return [resource("test://embedded-resource", "embedded")]

    @server.tool(structured_output=False, description=FIXTURE)
    def test_multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
        return [TextContent(text="three kinds"), image(), resource("test://mixed", '{"a": 1}', "application/json")]


def add_tools(server: MCPServer[Any]) -> None:
    @server.tool(structured_output=False, description=FIXTURE)
    def test_error_handling() -> str:
        raise ToolError("This tool intentionally returns an error for testing")

    @server.tool(structured_output=False, description=FIXTURE)
    async def test_tool_with_progress(context: Context[Any, Any]) -> str:
        for done in (0, 50, 100):
            await context.report_progress(done, 100, f"{done} of 100")
        return "done"

    @server.tool(structured_output=False, description=FIXTURE)
    async def test_missing_capability(context: Context[Any, Any]) -> str:
        declared = context.request_context.session.client_capabilities
        if declared is None or declared.sampling is None:
            raise MCPError(
                code=MISSING_REQUIRED_CLIENT_CAPABILITY,
                message="it needs sampling",
                data={"requiredCapabilities": {"sampling": {}}},
            )
        return "done"

    @server.tool(structured_output=False, description=FIXTURE)
    async def test_trigger_tool_change(context: Context[Any, Any]) -> str:
        await context.notify_tools_changed()
        return "done"

    @server.tool(structured_output=False, description=FIXTURE)
    async def test_trigger_prompt_change(context: Context[Any, Any]) -> str:
        await context.notify_prompts_changed()
        return "done"


def add_resources(server: MCPServer[Any]) -> None:
    @server.resource("test://static-text", mime_type="text/plain")
    def static_text() -> str:
        return "text"

    @server.resource("test://static-binary", mime_type="image/png")
    def static_binary() -> bytes:
        return picture()

    @server.resource("test://template/{id}/data", mime_type="application/json")
    def template(id: str) -> str:  # noqa: A002 - the variable of the template
        return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


def add_prompts(server: MCPServer[Any]) -> None:
    @server.prompt(description=FIXTURE)
    def test_simple_prompt() -> str:
        return "a prompt"

    @server.prompt(description=FIXTURE)
    def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        return f"arg1={arg1!r}, arg2={arg2!r}"

    @server.prompt(description=FIXTURE)
    def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:  # noqa: N803 - the suite's name
        return [UserMessage(resource(resourceUri, "embedded")), UserMessage("read it")]

    @server.prompt(description=FIXTURE)
    def test_prompt_with_image() -> list[UserMessage]:
        return [UserMessage(image()), UserMessage("look at it")]
